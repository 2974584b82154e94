"""Seats of a duel: the program of a seat, CPU time of process trees, cores, and contenders as text."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import gamelore
from gamelore import GameloreError
from gamelore.gdl.limits import GIB, Limits
from gamelore.lab import seat_process
from gamelore.lab.seats import (
    PROGRAM,
    TREE,
    Beginning,
    Contender,
    ProcessSeat,
    ProgramSeat,
    cpu_seconds,
    descendants,
    pin,
    pinned,
    tree_of_program,
    version_of,
)
from gamelore.net.http import Client

CORE = min(os.sched_getaffinity(0))
BUSY = "import time\nwhile time.process_time() < .3: pass\nprint('done', flush=True)\ninput()"

# A source tree as it was before November 2026, made from today's code: other places, and no catalogue.
FORMER = {
    "__init__.py": "import sys\n__path__.append({package!r})\nsys.modules['gamelore.catalogue'] = None\n"
    "from .rulesheets import load\n",
    "play/__init__.py": "",
    "play/roster.py": "from ..matches.opponents import Opponent, OpponentSettings\n"
    "def player(spec, **given):\n    print('made', spec)\n    return Opponent(OpponentSettings(spec))\n",
    "play/graph.py": "from ..players.position_graph import PositionGraph as Graph\n",
    "play/match.py": "from ..matches.match import MatchState\n",
}


@contextmanager
def child(*command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def former(tmp_path: Path) -> Path:
    for name, text in FORMER.items():
        path = tmp_path / "gamelore" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("{package!r}", repr(str(TREE / "gamelore"))))
    return tmp_path


def talk(tree: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Send requests to a seat of this tree, and return the replies."""
    sent = "".join(f"{json.dumps({'id': number, **request})}\n" for number, request in enumerate(requests))
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-P", str(PROGRAM)]
    done = subprocess.run(command, input=sent, env=environment, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_clock_counts_a_busy_child_while_it_runs_and_afterwards() -> None:
    code = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\nprint('over', flush=True)\ninput()"
    )
    with child(sys.executable, "-c", code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        before = cpu_seconds(os.getpid())
        assert process.stdout.readline() == "done\n"
        assert len(descendants(process.pid)) == 2
        assert cpu_seconds(process.pid) >= 0.3
        assert cpu_seconds(os.getpid()) - before >= 0.2  # this process is the parent of both
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "over\n"
        assert descendants(process.pid) == [process.pid]
        assert cpu_seconds(process.pid) >= 0.28  # in ticks of 10 ms now
    assert cpu_seconds(process.pid) == 0


def test_the_clock_is_finer_than_a_tick() -> None:
    readings = {cpu_seconds(os.getpid()) for _ in range(20)}
    assert len(readings) > 10


def test_processes_are_pinned_with_their_children() -> None:
    before = os.sched_getaffinity(0)
    with pinned(frozenset({CORE})), child("/bin/sh", "-c", "sleep 100 & wait") as process:
        os.sched_setaffinity(0, before)
        while len(pids := descendants(process.pid)) < 2:
            pass
        assert [os.sched_getaffinity(pid) for pid in pids] == [{CORE}, {CORE}]
        pin(process.pid, frozenset(before))
        assert [os.sched_getaffinity(pid) for pid in pids] == [before, before]
        os.kill(pids[1], 9)
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("is_former", [False, True])
def test_a_seat_plays_from_a_position(former: Path, is_former: bool) -> None:
    """Two in a row: egreedy wins at once, and the match is over. Prints of a player do not disturb the replies."""
    rules = gamelore.load("tictactoe").rulesheet.text
    position = gamelore.load("tictactoe").start()
    for mark in ("(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 2 2)"):
        position = position.play([mark if mark in moves else "noop" for moves in position.legal.values()])
    loading = {"engine": "auto", "limits": asdict(Limits())}
    start = {"role": 0, "facts": sorted(position.facts), "match": 0, "key": 5, "max_plies": 100}
    replies = talk(
        former if is_former else TREE,
        {"do": "load", "rules": rules, "player": "egreedy", "seed": 0, **loading},
        {"do": "start", **start},
        {"do": "play", "moves": None, "seconds": 1.0},
        {"do": "stop", "moves": ["(mark 1 3)", "noop"]},
        {"do": "start", **start, "role": 1},
        {"do": "play", "moves": None, "seconds": None},
        {"do": "play", "moves": ["(mark 1 1)", "noop"], "seconds": None},
    )
    roles = {"roles": ["xplayer", "oplayer"], "engine": "native"}
    moves = [{}, {"move": "(mark 1 3)"}, {}, {}, {"move": "noop"}]
    assert replies[:6] == [{"id": number, **reply} for number, reply in enumerate([roles, *moves])]
    assert "IllegalMoveError" in replies[6]["error"]


def test_a_seat_loads_its_game_within_the_limits_that_it_gets() -> None:
    rules = gamelore.load("tictactoe").rulesheet.text
    given = {"do": "load", "rules": rules, "player": "random", "seed": 0, "engine": "auto"}
    (reply,) = talk(TREE, {**given, "limits": asdict(Limits(seconds=0))})
    assert "expected the game to load within 0 s" in reply["error"]


def test_a_seat_loads_its_game_with_the_engine_that_it_gets() -> None:
    given = {"do": "load", "rules": gamelore.load("tictactoe").rulesheet.text, "player": "random", "seed": 0}
    replies = [talk(TREE, {**given, "engine": engine, "limits": {}})[0] for engine in ("auto", "reasoner")]
    assert [reply["engine"] for reply in replies] == ["native", "reasoner"]


def test_a_tree_without_such_limits_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seat_process._limited({"seconds": 7.0, "memory": GIB, "warmth": 20}) == {"limits": Limits(7.0, memory=GIB)}
    monkeypatch.setattr(seat_process, "find_spec", lambda name: None if name.endswith("limits") else name)
    assert seat_process._limited(asdict(Limits())) == {}


def test_a_player_that_fails_is_named_with_its_output(tmp_path: Path) -> None:
    code = "from gamelore.players.player import Player\nclass Mad(Player):\n"
    code += "    def begin(self, role, started):\n        print('so long')\n        raise SystemExit(3)\n"
    (tmp_path / "mad.py").write_text(code + "    def choose(self, turn): ...\n")
    contender = Contender.parse(f"{tmp_path / 'mad.py'}:Mad")
    game = gamelore.load("tictactoe")

    async def play() -> None:
        seat = ProcessSeat(contender, game.rulesheet.text, 0, None)
        try:
            with pytest.raises(GameloreError, match=r"mad.py:Mad, got the end of its process; .*:\nso long"):
                await seat.open(Beginning(0, tuple(game.start().facts), "", 1, 100), frozenset({CORE}))
        finally:
            seat.close()
            await asyncio.sleep(0)

    asyncio.run(play())


def test_a_seat_that_did_not_get_its_turn_in_time_has_used_no_time_for_its_move() -> None:
    seat = ProcessSeat(Contender.parse("random"), gamelore.load("tictactoe").rulesheet.text, 0, None)

    async def first_turn() -> None:
        async with seat.turn:  # the other seat on the core is still thinking
            await asyncio.wait_for(seat.play("match", None, 1), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(first_turn())
    assert seat.cpu == [0]
    assert len(seat.seconds) == 1


def test_a_tree_must_not_change_during_a_duel() -> None:
    contender = replace(Contender.parse("random"), version="d148c27b3576 e31c0a5f33ad")
    assert contender.code == "e31c0a5f33ad"
    seat = ProcessSeat(contender, gamelore.load("tictactoe").rulesheet.text, 0, None)
    with pytest.raises(GameloreError, match="play in a worktree that nobody edits"):
        asyncio.run(seat.open(Beginning(0, (), "", 1, 100), frozenset({CORE})))


def test_contenders() -> None:
    own = Contender.parse("uct:simulations=20")
    assert (own.spec, own.tree, own.is_outside) == ("uct:simulations=20", TREE, False)
    assert Contender.parse(f"random@{TREE}") == Contender(f"random@{TREE}", "random", TREE, own.version)
    other = Contender.parse("ggp: java -jar p.jar {port}", Path("data"))
    assert (other.spec, other.is_outside, other.data) == ("java -jar p.jar {port}", True, Path("data"))
    assert other.text == "ggp: java -jar p.jar {port} with data"
    with pytest.raises(GameloreError, match="name the folder src of a checkout"):
        Contender.parse("random@/no/such/tree")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script `gamelore` as pip makes it, beside a source tree that PYTHONPATH can name."""
    (script := tmp_path / "bin" / "gamelore").parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom gamelore.cli import main\nmain()\n")
    script.chmod(0o755)
    (tmp_path / "src" / "gamelore").mkdir(parents=True)
    (tmp_path / "src" / "gamelore" / "__init__.py").touch()
    return script


def test_a_program_that_is_gamelore_has_the_version_of_its_tree(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(TREE))
    own = Contender.parse("random")
    for command in ("gamelore serve --port {port}", "exec gamelore serve", "X=1 gamelore serve", f"{script} serve"):
        program = Contender.parse(f"ggp:{command}", Path("data"))
        assert (program.tree, program.version, program.code) == (TREE, own.version, own.code)
        assert (program.is_outside, program.spec) == (True, command)
    old = Contender.parse(f"ggp: PYTHONPATH={tmp_path / 'src'} gamelore serve")
    assert (old.tree, old.version) == (tmp_path / "src", version_of(tmp_path / "src"))
    with pytest.raises(
        GameloreError, match=r"got '1' of ggp:gamelore serve, whose version is that of .*; leave it out"
    ):
        Contender.parse("ggp:gamelore serve", version="1")
    for command in ("java gamelore", "true;gamelore", "PATH=/bin gamelore", "gamelore;", "cd / && gamelore", "'", ""):
        assert tree_of_program(command) is None
    other = Contender.parse("ggp:java -jar p.jar {port}", version="1.6 with a patch")
    assert (other.tree, other.version, other.code) == (None, "1.6 with a patch", "1.6 with a patch")
    script.write_bytes(b"\x7fELF\0")
    assert tree_of_program("gamelore serve") is None


def test_the_tree_of_a_program_must_not_change_during_a_duel(script: Path, tmp_path: Path) -> None:
    seat = ProgramSeat(Contender.parse(f"ggp:PYTHONPATH={tmp_path / 'src'} {script} serve"), Client())
    (tmp_path / "src" / "gamelore" / "__init__.py").write_text("changed = 1\n")
    with pytest.raises(GameloreError, match="play in a worktree that nobody edits"):
        asyncio.run(seat.open(Beginning(0, (), "", 1, 100), frozenset({CORE})))


def test_the_version_of_a_tree_changes_with_its_code(tmp_path: Path) -> None:
    shutil.copytree(TREE / "gamelore" / "gdl", tmp_path / "gamelore", ignore=shutil.ignore_patterns("__pycache__"))
    before = version_of(tmp_path)
    assert before.startswith("no commit ")
    (tmp_path / "gamelore" / "syntax.py").write_text("changed = 1\n")
    assert version_of(tmp_path) != before
