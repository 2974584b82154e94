"""The worker in this process: everything that a match needs is compiled before the match begins."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gamelore.catalogue import player
from gamelore.circuit import native
from gamelore.net import requests
from gamelore.net import worker as worker_module
from gamelore.net.belief import PlayerMatches
from gamelore.net.host import LocalSeat
from gamelore.net.worker import Worker
from gamelore.players.uct import UCT, SearchSettings
from gamelore.rulesheets import load, path
from gamelore.search.champion import Gamelore

CONNECT_FOUR = path("connectfour").read_text(encoding="utf-8")
CUT = {"connectfour": 12, "tictactoe": 12, "goofspiel": 12, "tictactoe3p": 12}

ALARM = """
import time
from pathlib import Path
from gamelore.players.player import Player

class Alarm(Player):
    def choose(self, turn):
        Path(__file__).with_name("left").write_text(str(turn.deadline - time.monotonic()))
        return turn.graph.num_moves[turn.rows, turn.role] - 1
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was compiled and what was loaded, with an empty cache on disk and in memory."""
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path / "cache"))
    native.compiled_kernel.cache_clear()
    happened: list[str] = []

    def note(owner: Any, name: str) -> None:
        old = getattr(owner, name)

        def noted(*given: Any) -> Any:
            happened.append(name)
            return old(*given)

        monkeypatch.setattr(owner, name, noted)

    note(native, "assemble")
    note(native.LoadedCode, "__init__")
    yield happened
    native.compiled_kernel.cache_clear()


def match(worker: Worker, name: str, rules: str, happened: list[str]) -> None:
    """Play one match; nothing is compiled or loaded from its START on."""
    game = load(name, engine="reasoner")  # compiles nothing itself
    role, position, joint = game.roles[0], game.start(), []
    worker.start("m", role, rules)
    before = len(happened)
    for _ in range(CUT[name]):
        legal, _, end, _ = worker.advance("m", joint)
        if end:
            break
        mine = worker.choose("m", time.monotonic() + 60, 60.0)
        assert mine in legal
        joint = [mine, *(moves[0] for moves in list(position.legal.values())[1:])]
        position = position.play(joint)
    worker.stop("m", joint)
    assert len(happened) == before


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("is_known", [True, False])
def test_nothing_is_compiled_after_start(compiled: list[str], tmp_path: Path, name: str, is_known: bool) -> None:
    rules = path(name).read_text(encoding="utf-8") + ("" if is_known else "\n(another fact)")
    worker = Worker("uct:simulations=40", {"knowledge": tmp_path / "k.db"}, 1 << 30, 60.0)
    shared = compiled.count("assemble")
    assert shared > 10  # kernels that all games share
    assert worker.recognise(rules)["name"].startswith(name if is_known else "game-")
    worker.prepare(rules)
    match(worker, name, rules, compiled)
    assert compiled.count("assemble") == shared + 1  # the playouts of this game


@pytest.mark.parametrize("spec", ["uct", "baseline:search=1"])
def test_a_preview_gets_the_player_ready(compiled: list[str], tmp_path: Path, spec: str) -> None:
    worker = Worker(spec, {"knowledge": tmp_path / "k.db"}, 1 << 30, 60.0)
    worker.prepare(CONNECT_FOUR)
    worker.prepare_player(CONNECT_FOUR)
    before = list(compiled)
    worker.start("m", "red", CONNECT_FOUR)
    worker.advance("m", None)
    assert worker.choose("m", time.monotonic() + 0.2, 60.0) in [f"(drop {column})" for column in range(1, 8)]
    assert compiled == before


def test_a_player_without_a_search_compiles_no_playouts(compiled: list[str], tmp_path: Path) -> None:
    worker = Worker("baseline", {"knowledge": tmp_path / "k.db"}, 1 << 30, 60.0)
    shared = compiled.count("assemble")
    match(worker, "tictactoe", path("tictactoe").read_text(encoding="utf-8"), compiled)
    assert compiled.count("assemble") == shared


def test_a_local_player_is_prepared_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    monkeypatch.setattr(UCT, "prepare", lambda self, game, role: happened.append(f"prepare {game.name} {role}"))
    monkeypatch.setattr(UCT, "begin", lambda self, role, started: happened.append("begin"))
    seat = LocalSeat("uct", load("tictactoe"))
    seat._matches.start("m", "oplayer", 0)
    seat._thread.shutdown()
    assert happened == ["prepare tictactoe 1", "begin"]


def test_getting_ready_changes_no_move() -> None:
    def choices(is_prepared: bool) -> list[str]:
        matches = PlayerMatches(load("connectfour"), player("uct:simulations=50"), seed=3)
        if is_prepared:
            matches.player.prepare(matches.game, 0)
        matches.start("m", "red", 0)
        return [matches.choose("m")]

    assert choices(False) == choices(True)


def test_the_time_of_a_move_ends_with_its_share(tmp_path: Path) -> None:
    """Matches that share a process share the time, or the last one of them would have none."""
    file, rules = tmp_path / "alarm.py", path("tictactoe").read_text(encoding="utf-8")
    file.write_text(ALARM)
    worker = Worker(f"{file}:Alarm", {}, 1 << 30, 60.0)
    for share, most in ((10.0, 10.0), (1000.0, 100.0)):
        worker.start(str(share), "xplayer", rules)
        worker.advance(str(share), None)
        worker.choose(str(share), time.monotonic() + 100.0, share)
        assert 0 < float((tmp_path / "left").read_text()) <= most


def test_a_player_that_remembers_is_told_the_startclock_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rivals are named by it. Others are told the time that is left, which may be their deadline."""
    told: list[float | None] = []
    monkeypatch.setattr(Gamelore, "begin", lambda self, role, started: told.append(started.startclock))
    rules = path("tictactoe").read_text(encoding="utf-8")
    for options in ({"knowledge": tmp_path / "k.db"}, {}):
        worker = Worker("gamelore", options, 1 << 30, 60.0)
        for name, startclock in (("m1", 10), ("m2", None), ("m3", 0)):
            worker.start(name, "xplayer", rules, deadline=time.monotonic() + 7.5, startclock=startclock)
    remembering, others = told[:3], told[3:]
    assert (remembering[0], remembering[2]) == (10, 0)
    for left in (remembering[1], *others):
        assert left is not None
        assert 0.0 < left <= 7.5


def test_a_player_is_told_the_startclock_that_is_left_after_its_preparation(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float | None] = []
    monkeypatch.setattr(Gamelore, "prepare", lambda self, game, role: time.sleep(0.5))
    monkeypatch.setattr(Gamelore, "begin", lambda self, role, started: told.append(started.startclock))
    worker = Worker("gamelore", {}, 1 << 30, 60.0)
    begin = time.monotonic()
    worker.start("m", "xplayer", path("tictactoe").read_text(encoding="utf-8"), deadline=begin + 20.0, startclock=20)
    assert told[0] is not None
    assert told[0] <= 19.5


def test_by_the_clock_is_the_default_of_the_server_only() -> None:
    assert player("uct").settings == SearchSettings(simulations=1000)  # type: ignore[attr-defined]
    by_clock = player("uct", clock=True).settings  # type: ignore[attr-defined]
    assert (by_clock.simulations, by_clock.seconds) == (None, None)
    assert player("uct:simulations=7", clock=True).settings.simulations == 7  # type: ignore[attr-defined]
    assert player("uct:seconds=0.5", clock=True).settings.seconds == 0.5  # type: ignore[attr-defined]


def test_the_worker_lets_the_player_ponder_between_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker("gamelore", {"simulations": 20}, 1 << 40, 60.0)
    assert not worker.idle(), "no match runs"
    worker.start("m", "red", CONNECT_FOUR)
    matches = next(iter(worker._games.values()))
    assert worker.idle(), "in the startclock"
    assert worker.ponder("m")
    search = matches.player._lanes[0].search  # type: ignore[attr-defined]
    assert search.visits > 0
    monkeypatch.setattr("gamelore.net.worker.MOST_PONDERING", 0.0)
    time.sleep(0.01)
    assert not worker.idle(), "the host has been silent for long"
    monkeypatch.setattr("gamelore.net.worker.MOST_PONDERING", 60.0)
    worker.abort("m")
    assert not worker.idle()


def test_a_failure_while_it_ponders_is_only_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker("gamelore", {"simulations": 20}, 1 << 40, 60.0)
    worker.start("m", "red", CONNECT_FOUR)

    def fail(*_: object) -> bool:
        raise ValueError("oh")

    monkeypatch.setattr(PlayerMatches, "ponder", fail)
    assert not worker.idle()
    assert not worker.ponder("m")
    assert "failed while it pondered" in caplog.text
    assert worker.choose("m", time.monotonic() + 5, 5.0).startswith("(drop ")


def test_matches_take_turns_between_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time, because a request may be waiting; a match that has nothing to think about is passed over."""
    worker, pondered = Worker("random", {}, 1 << 30, 60.0), list[str]()
    for name in "abc":
        worker.start(name, "red", CONNECT_FOUR)

    def ponder(matches: PlayerMatches, match: str) -> bool:
        pondered.append(match)
        return match != "b"

    monkeypatch.setattr(worker_module, "_has_pondered", ponder)
    assert all(worker.idle() for _ in range(4))
    assert "".join(pondered) == "bcabca"
    monkeypatch.setattr(worker_module, "_has_pondered", lambda matches, match: False)
    assert not worker.idle()


def test_requests_are_read_whole_and_at_once_while_the_child_is_idle() -> None:
    reading, writing = os.pipe()
    idled = list[int]()

    def idle() -> bool:
        idled.append(1)
        if len(idled) == 3:
            os.write(writing, b"first\nsec")
        if len(idled) == 5:
            os.write(writing, b"ond\nthird\n")
            os.close(writing)
        return len(idled) < 8

    assert list(requests._lines(reading, idle)) == [b"first", b"second", b"third"]
    assert len(idled) == 5
    os.close(reading)
