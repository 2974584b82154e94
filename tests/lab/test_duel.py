"""Duels: rounds, openings, resuming, seals, other programs, and the report."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gamelore
from gamelore import ExperimentError, GameloreError
from gamelore.gdl.limits import Limits
from gamelore.lab import duel as module
from gamelore.lab.duel import Duel, DuelSettings, GameScore, overall
from gamelore.lab.results import ResultStore, store_path
from gamelore.lab.seats import Contender
from gamelore.lab.stats import Interval, clustered_interval, mean_interval, share_interval, t_quantile
from gamelore.net.messages import Info, Play, Start, parse

CORE = min(os.sched_getaffinity(0))
SERVE = f"exec {sys.executable} -c 'from gamelore.cli import main; main()' serve --port {{port}} --margin 0.2 --player "

# A program that is ready and never knows a move. If it gets the name of a file, it writes down there what it hears.
LOST = """
import http.server, json, sys
class Lost(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        heard = self.rfile.read(int(self.headers['Content-Length'])).decode()
        if len(sys.argv) > 2:
            with open(sys.argv[2], 'a') as file:
                file.write(json.dumps(heard) + ',')
        if 'PLAY' in heard.upper():
            print('I do not know', flush=True)
        self.send_response(200); self.end_headers(); self.wfile.write(b'ready')
    def log_message(self, *arguments): pass
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Lost).serve_forever()
"""


class Stopped(Exception):
    """The run was stopped."""


def make(folder: Path, a: str, b: str, matches: int, games: Sequence[str] = ("tictactoe",), **options: Any) -> Duel:
    """A duel in a folder, on one core unless told otherwise."""
    others = {name: options.pop(name) for name in ("cores", "at_once", "open_sealed") if name in options}
    data, version = options.pop("data", None), options.pop("version", "")
    settings = DuelSettings(**{"shares_core": True, "seed": 3, **options})
    contenders = Contender.parse(a, data), Contender.parse(b, data, version)
    return Duel(
        [gamelore.load(name) for name in games], contenders, settings, folder, matches, **{"cores": [CORE], **others}
    )


def run(duel: Duel, on_match: Callable[[int, int], None] | None = None) -> list[GameScore]:
    """The scores of a duel. The first failure of a game is raised."""
    scores = asyncio.run(duel.run(on_match))
    for failure in duel.failures.values():
        raise failure
    return scores


def rows(folder: Path, game: str = "tictactoe", attempt: int = 0) -> dict[int, dict[str, Any]]:
    with ResultStore(store_path(folder)) as store:
        return store.by_run(f"{game}/{attempt}")


def played(row: Mapping[str, Any]) -> list[Any]:
    """What the players decided in a match, without times."""
    return [row[name] for name in ("round", "seat", "goals", "plies", "end", "opening", "moves", "events")]


def test_a_resumed_run_plays_the_same_matches(tmp_path: Path) -> None:
    scores = run(make(tmp_path / "whole", "egreedy", "uct:simulations=20", 12))
    stopped = make(tmp_path / "stopped", "egreedy", "uct:simulations=20", 12)
    told: list[tuple[int, int]] = []

    def stop_after(done: int, total: int) -> None:
        told.append((done, total))
        if done in (3, 7) and len(told) > 1:
            raise Stopped

    for _ in range(2):
        with pytest.raises(Stopped):
            run(stopped, stop_after)
        told.append((-1, -1))
    resumed = run(stopped, lambda done, total: told.append((done, total)))
    assert told[:5] == [(0, 12), (1, 12), (2, 12), (3, 12), (-1, -1)]
    assert told[-6:] == [(7, 12), (8, 12), (9, 12), (10, 12), (11, 12), (12, 12)]
    whole = list(rows(tmp_path / "whole").values())
    assert list(map(played, rows(tmp_path / "stopped").values())) == list(map(played, whole))
    assert [score.score for score in resumed] == [score.score for score in scores]
    assert run(stopped, lambda done, total: told.append((done, total))) == resumed
    assert told[-1] == (12, 12)  # nothing was left to play
    assert len(whole) == 12


def test_a_folder_belongs_to_one_duel_but_may_get_more_matches(tmp_path: Path) -> None:
    run(make(tmp_path, "random", "random", 2))
    with pytest.raises(ExperimentError, match=r"settings.opening_plies was 2, is 1"):
        run(make(tmp_path, "random", "random", 2, opening_plies=1))
    with pytest.raises(ExperimentError, match="contenders was"):
        run(make(tmp_path, "random", "egreedy", 2))
    first = rows(tmp_path)
    run(make(tmp_path, "random", "random", 4))
    assert rows(tmp_path).keys() == {0, 1, 2, 3}
    assert {number: rows(tmp_path)[number] for number in first} == first


def test_other_code_in_a_tree_is_another_duel(tmp_path: Path) -> None:
    run(make(tmp_path, "random", "random", 2))
    changed = make(tmp_path, "random", "random", 2)
    object.__setattr__(changed.contenders[0], "version", "another")
    with pytest.raises(ExperimentError, match=r"expected results of gamelore another and "):
        run(changed)


def test_pairs_share_an_opening_and_swap_sides(tmp_path: Path) -> None:
    (score,) = run(make(tmp_path, "egreedy", "random", 8, half_from_start=True))
    matches = list(rows(tmp_path).values())
    assert [(row["round"], row["seat"]) for row in matches] == [(i // 2, i % 2) for i in range(8)]
    for left, right in zip(matches[::2], matches[1::2], strict=True):
        assert left["opening"] == right["opening"]
        assert [seat["contender"] for seat in left["seats"]] == ["A", "B"]
        assert [seat["contender"] for seat in right["seats"]] == ["B", "A"]
    pairs = zip(matches[::2], matches[1::2], strict=True)
    assert score.score.mean == np.mean([(left["goals"][0] + right["goals"][1]) / 200 for left, right in pairs])
    assert [len(row["opening"]) for row in matches] == [0, 0, 2, 2, 0, 0, 2, 2]
    assert matches[2]["opening"] != matches[6]["opening"]
    game = gamelore.load("tictactoe")
    for row in matches:
        position = game.start()
        for joint in [*row["opening"], *row["moves"]]:
            position = position.play(joint)
        assert position.is_terminal
        assert list(position.goals.values()) == row["goals"]
        assert row["plies"] == len(row["moves"]) == len(row["seats"][0]["cpu"]) == len(row["seats"][1]["seconds"])


def test_equal_players_share_the_points_of_a_pair(tmp_path: Path) -> None:
    (score,) = run(make(tmp_path, "random", "random", 12))
    matches = list(rows(tmp_path).values())
    for left, right in zip(matches[::2], matches[1::2], strict=True):
        assert left["moves"] == right["moves"]
    assert score.score == Interval(0.5, 0.5, 0.5, 6)
    assert len({tuple(row["goals"]) for row in matches}) > 1


def test_moves_at_the_same_time_and_three_roles(tmp_path: Path) -> None:
    goofspiel, three = run(make(tmp_path, "egreedy", "random", 4, ["goofspiel", "tictactoe3p"]))
    assert (len(goofspiel.matches), goofspiel.score.num) == (4, 2)
    assert (len(three.matches), three.score.num) == (6, 2)  # whole rounds
    contenders = ["".join(seat["contender"] for seat in row["seats"]) for row in three.matches.values()]
    assert contenders == ["ABB", "BAB", "BBA"] * 2
    goals = [row["goals"][row["seat"]] / 100 for row in three.matches.values()]
    assert three.score.mean == pytest.approx(sum(goals) / 6)
    for row in three.matches.values():
        assert all(seat["play_cpu"] > 0 for seat in row["seats"])


def test_a_match_may_use_two_cores_and_several_are_played_at_once(tmp_path: Path) -> None:
    scores = run(make(tmp_path, "egreedy", "random", 4, shares_core=False, cores=[CORE] * 4, at_once=2))
    assert list(map(played, rows(tmp_path).values())) == [
        played(row) for row in run(make(tmp_path / "one", "egreedy", "random", 4))[0].matches.values()
    ]
    assert len(scores[0].matches) == 4
    with pytest.raises(GameloreError, match="expected 4 cores for 2 matches at once, got 3"):
        make(tmp_path, "random", "random", 2, shares_core=False, cores=[CORE] * 3, at_once=2)


def test_cpu_time_of_moves_adds_up(tmp_path: Path) -> None:
    (score,) = run(make(tmp_path, "uct:simulations=2000", "random", 2, ["connect3"]))
    for row in score.matches.values():
        for seat in row["seats"]:
            assert sum(seat["cpu"]) == pytest.approx(seat["play_cpu"], rel=0.05, abs=0.002)
    assert score.ratio > 2
    assert not score.has_equal_cpu
    assert score.cpu(0, "start_cpu") > 0.05  # python and the rules


def test_sealed_games_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = gamelore.load("tictactoe").rules_hash
    assert rules not in module.sealed_games()
    monkeypatch.setattr(module, "sealed_games", lambda: {rules: "noughts"})
    with pytest.raises(GameloreError, match="expected a game that is not sealed, got noughts"):
        make(tmp_path, "random", "random", 2)
    assert make(tmp_path, "random", "random", 2, open_sealed=True).games[0].name == "tictactoe"


def test_settings_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match="two or more roles, got pegsolitaire"):
        make(tmp_path, "random", "random", 2, ["pegsolitaire"])
    with pytest.raises(GameloreError, match="got a name twice"):
        make(tmp_path, "random", "random", 2, ["tictactoe", "tictactoe"])
    with pytest.raises(GameloreError, match="give both clocks"):
        make(tmp_path, "random", "ggp:true", 2)
    with pytest.raises(GameloreError, match="give each player a core"):
        make(tmp_path, "random", "ggp:true", 2, startclock=1, playclock=1)
    with pytest.raises(GameloreError, match="a startclock and a playclock, or none"):
        DuelSettings(playclock=1)
    with pytest.raises(GameloreError, match="expected opening_plies of at least 0"):
        DuelSettings(opening_plies=-1)


def test_a_late_move_is_an_event_and_the_next_match_goes_on(tmp_path: Path) -> None:
    """The player is late once, in its first match; its reply comes too late and is left alone."""
    code = "import time\nimport numpy as np\nfrom gamelore.players.player import Player\nclass Slow(Player):\n"
    code += "    slept = 0\n    def begin(self, role, started): pass\n    def choose(self, turn):\n"
    code += "        time.sleep(0 if Slow.slept else 3.5)\n        Slow.slept = 1\n"
    (tmp_path / "slow.py").write_text(code + "        return np.zeros(len(turn.rows), np.int32)\n")
    options: dict[str, Any] = {"startclock": 30, "playclock": 3, "extra": 0.0, "shares_core": False}
    duel = make(tmp_path / "out", "random", f"{tmp_path / 'slow.py'}:Slow", 2, cores=[CORE] * 2, **options)
    (score,) = run(duel)
    first, second = score.matches.values()
    assert [event["kind"] for event in first["events"]] == ["TO"]
    assert second["events"] == []
    assert (score.faults(0), score.faults(1)) == (0, 1)
    assert not first["is_faulty"]  # such matches are played again only if another program was at fault
    assert len(first["seats"][1]["seconds"]) == first["plies"]


def test_a_player_that_is_still_busy_after_its_match_is_killed(tmp_path: Path) -> None:
    """The next match has a new process; else its START would wait behind the old move.

    The matches begin after four plies, so that few moves are waited for.
    """
    code = "import os, time\nimport numpy as np\nfrom gamelore.players.player import Player\nclass Hanging(Player):\n"
    code += "    def begin(self, role, started): pass\n    def choose(self, turn):\n"
    code += f"        mark = {str(tmp_path / 'mark')!r}\n        is_first = not os.path.exists(mark)\n"
    code += "        open(mark, 'w').close()\n        time.sleep(600 if is_first else 0)\n"
    code += "        return np.zeros(len(turn.rows), np.int32)\n"
    (tmp_path / "hanging.py").write_text(code)
    options: dict[str, Any] = {"startclock": 30, "playclock": 1, "extra": 0.0, "shares_core": False, "opening_plies": 4}
    duel = make(tmp_path / "out", "random", f"{tmp_path / 'hanging.py'}:Hanging", 2, cores=[CORE] * 2, **options)
    (score,) = run(duel)
    first, second = score.matches.values()
    assert first["events"][0]["kind"] == "TO"
    assert second["events"] == []


@pytest.mark.parametrize("shares_core", [True, False])
def test_a_lesson_before_the_first_match_costs_no_moves(tmp_path: Path, shares_core: bool) -> None:
    """It takes longer than the startclock, for which the host waits one second, two on a shared core."""
    code = "import time\nimport numpy as np\nfrom gamelore.players.player import Player\nclass Taught(Player):\n"
    code += "    lesson = 2.5\n    def begin(self, role, started):\n        time.sleep(Taught.lesson)\n"
    code += "        Taught.lesson = 0\n"
    code += "    def choose(self, turn): return np.zeros(len(turn.rows), np.int32)\n"
    (tmp_path / "taught.py").write_text(code)
    spec, cores = f"{tmp_path / 'taught.py'}:Taught", [CORE] * (1 if shares_core else 2)
    options: dict[str, Any] = {"startclock": 0, "playclock": 1, "extra": 1.0, "shares_core": shares_core}
    (score,) = run(make(tmp_path / "out", spec, spec, 2, cores=cores, **options))
    assert [row["events"] for row in score.matches.values()] == [[], []]
    assert [row["end"] for row in score.matches.values()] == ["terminal", "terminal"]


def test_other_rules_are_another_duel(tmp_path: Path) -> None:
    (sheet := tmp_path / "own.kif").write_text(gamelore.rulesheets.path("tictactoe").read_text())
    run(make(tmp_path / "out", "random", "random", 2, [str(sheet)]))
    sheet.write_text(f"{sheet.read_text()}\n(spare 1)\n")
    with pytest.raises(ExperimentError, match="expected the rules of own with which"):
        run(make(tmp_path / "out", "random", "random", 2, [str(sheet)]))


# programs over the GGP protocol


def outside(folder: Path, command: str, matches: int, **options: Any) -> Duel:
    clocks = {"startclock": 20, "playclock": 5}
    return make(folder, "egreedy", f"ggp:{command}", matches, shares_core=False, cores=[CORE] * 2, **clocks, **options)


def test_against_gamelore_serve(tmp_path: Path) -> None:
    """Each match has a new process, with a copy of the data; the rules that it gets begin with the opening."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "first").write_text("")
    command = f"rm {{dir}}/first && pwd >> {tmp_path}/folders && {SERVE} random"
    (score,) = run(outside(tmp_path / "out", command, 2, data=data))
    assert [row["events"] for row in score.matches.values()] == [[], []]
    assert [row["end"] for row in score.matches.values()] == ["terminal", "terminal"]
    assert (score.faults(0), score.faults(1), score.replaced) == (0, 0, 0)
    assert score.cpu(1, "start_cpu") > 0.1
    folders = (tmp_path / "folders").read_text().split()
    assert len(set(folders)) == 2
    assert not any(map(os.path.exists, folders))
    assert (data / "first").exists()


def test_another_version_of_a_program_is_another_duel(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST)
    command = f"exec {sys.executable} {tmp_path / 'lost.py'} {{port}}"
    (score,) = run(outside(tmp_path / "out", command, 1, version="1.6"))
    own = Contender.parse("random").version
    assert [seat["version"] for seat in score.matches[0]["seats"]] == [own, "1.6"]
    for version in ("1.7", ""):
        got = f"expected results of gamelore .* and {version or 'another program'}, got results of .* and 1.6 in"
        with pytest.raises(ExperimentError, match=got):
            run(outside(tmp_path / "out", command, 1, version=version))
    run(outside(tmp_path / "out", command, 1, version="1.6"))


def test_a_program_is_overruled_in_the_opening(tmp_path: Path) -> None:
    """It gets the sheet as it is, and hears the random plies as joint moves. No answer is a fault there."""
    (tmp_path / "lost.py").write_text(LOST)
    command = f"exec {sys.executable} {tmp_path / 'lost.py'} {{port}} {tmp_path / 'heard'}"
    (score,) = run(outside(tmp_path / "out", command, 4, half_from_start=True))
    matches = list(score.matches.values())
    messages = map(parse, json.loads(f"[{(tmp_path / 'heard').read_text().strip(',')}]"))
    heard = [message for message in messages if not isinstance(message, Info)]
    starts = [index for index, message in enumerate(heard) if isinstance(message, Start)]
    assert len(starts) == len(matches) == 4
    game = gamelore.load("tictactoe")
    for row, index in zip(matches, starts, strict=True):
        start, plays = heard[index], heard[index + 1 : index + 2 + len(row["opening"])]
        assert isinstance(start, Start)
        assert gamelore.load(start.rules).rules_hash == game.rules_hash
        assert [play.moves for play in plays if isinstance(play, Play)] == [None, *map(tuple, row["opening"])]
        assert [(event["ply"], event["kind"]) for event in row["events"]] == [
            (ply, "IL") for ply in range(len(row["moves"]))
        ]
        assert row["plies"] == len(row["moves"]) == len(row["seats"][0]["cpu"]) == len(row["seats"][1]["seconds"])
        position = game.start()
        for joint in [*row["opening"], *row["moves"]]:
            position = position.play(joint)
        assert list(position.goals.values()) == row["goals"]
        assert all((seat["opening_cpu"] > 0) == bool(row["opening"]) for seat in row["seats"])
    assert [len(row["opening"]) for row in matches] == [0, 0, 2, 2]
    assert matches[2]["opening"] == matches[3]["opening"]


def test_a_program_may_get_rules_that_begin_after_the_opening(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST)
    command = f"exec {sys.executable} {tmp_path / 'lost.py'} {{port}} {tmp_path / 'heard'}"
    (score,) = run(outside(tmp_path / "out", command, 1, rewritten_sheet=True))
    heard = list(map(parse, json.loads(f"[{(tmp_path / 'heard').read_text().strip(',')}]")))
    start = next(message for message in heard if isinstance(message, Start))
    position = gamelore.load("tictactoe").start()
    for joint in score.matches[0]["opening"]:
        position = position.play(joint)
    assert gamelore.load(start.rules).start().facts == position.facts
    assert sum(isinstance(message, Play) for message in heard) == sum(row["plies"] for row in score.matches.values())
    with pytest.raises(ExperimentError, match=r"settings\.overruled"):
        run(outside(tmp_path / "out", command, 1))


def test_logs_of_faulty_matches_are_kept(tmp_path: Path) -> None:
    """The program says something when it is asked for moves; a match without faults leaves nothing behind."""
    (tmp_path / "lost.py").write_text(LOST)
    command = f"exec {sys.executable} {tmp_path / 'lost.py'} {{port}} {tmp_path / 'heard'}"
    (score,) = run(outside(tmp_path / "out", command, 2))
    logs = [{seat["contender"]: seat["log"] for seat in row["seats"]} for row in score.matches.values()]
    assert [log["A"] for log in logs] == [None, None]
    assert [log["B"] for log in logs] == ["logs/tictactoe/0-0-1.log", "logs/tictactoe/1-0-0.log"]
    for log in logs:
        assert "I do not know" in (tmp_path / "out" / log["B"]).read_text()


def test_players_may_think_in_the_startclock_and_in_the_time_of_others(tmp_path: Path) -> None:
    """Each player needs 0.15 seconds for a move, in which the other one thinks."""
    code = "import time\nimport numpy as np\nfrom gamelore.players.player import Player\nclass Eager(Player):\n"
    code += "    times = [0, 0]\n    def begin(self, role, started): pass\n"
    code += "    def prepare(self, game, role): self.times[0] += 1\n"
    code += "    def ponder(self, turn):\n        self.times[1] += 1\n        time.sleep(0.02)\n        return True\n"
    code += f"    def choose(self, turn):\n        print(self.times, file=open({str(tmp_path / 'told')!r}, 'a'))\n"
    code += "        time.sleep(0.15)\n        return np.zeros(len(turn.rows), np.int32)\n"
    (tmp_path / "eager.py").write_text(code)
    spec = f"{tmp_path / 'eager.py'}:Eager"
    options: dict[str, Any] = {"startclock": 1, "playclock": 5, "shares_core": False, "cores": [CORE] * 2}
    (score,) = run(make(tmp_path / "out", spec, spec, 1, ponders=True, **options))
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert min(prepared for prepared, _ in told) == 1
    assert min(pondered for _, pondered in told) > 0  # in the startclock
    assert max(pondered for _, pondered in told) > max(told[0][1], told[1][1])
    assert not any(row["events"] for row in score.matches.values())
    (tmp_path / "told").unlink()
    run(make(tmp_path / "other", spec, spec, 1, **options))
    assert json.loads((tmp_path / "told").read_text().splitlines()[-1]) == [0, 0]
    for wrong in ({"startclock": 1, "playclock": 1, "shares_core": True}, {"shares_core": False, "cores": [CORE] * 2}):
        with pytest.raises(GameloreError, match="expected clocks, and a core for each player"):
            make(tmp_path / "wrong", "random", "random", 1, ponders=True, **wrong)


def test_faulty_matches_are_played_again_and_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    (tmp_path / "lost.py").write_text(LOST)
    command = f"exec {sys.executable} {tmp_path / 'lost.py'} {{port}}"
    (score,) = run(outside(tmp_path / "out", command, 2, replay_faulty=True))
    assert (len(score.matches), score.faults(0), score.faults(1), score.replaced) == (2, 0, 2, 2)
    for attempt in (0, 1):
        for row in rows(tmp_path / "out", attempt=attempt).values():
            assert row["is_faulty"]
            assert {(event["kind"], event["text"]) for event in row["events"]} == {("IL", "ready")}
    kept = run(outside(tmp_path / "out", command, 2))  # without playing again, the first attempts count
    assert [row["moves"] for row in kept[0].matches.values()] == [
        row["moves"] for row in rows(tmp_path / "out").values()
    ]
    assert kept[0].replaced == 0


def test_faults_of_the_first_of_two_programs_count(tmp_path: Path) -> None:
    """Else `gamelore serve` would play again whenever it was late itself."""
    (tmp_path / "lost.py").write_text(LOST)
    command = f"ggp:exec {sys.executable} {tmp_path / 'lost.py'} {{port}}"
    options: dict[str, Any] = {"startclock": 20, "playclock": 5, "shares_core": False, "cores": [CORE] * 2}
    (score,) = run(make(tmp_path / "out", command, command, 2, replay_faulty=True, **options))
    assert score.replaced == 0
    assert score.faults(0) > 0
    assert not any(row["is_faulty"] for row in rows(tmp_path / "out").values())


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(GameloreError, match=r"to answer INFO, got its end; correct the command:\nno such player"):
        run(outside(tmp_path, "echo no such player; exit 1", 2))


# the report


def result(round_number: int, seat: int, score: float, cpu: tuple[float, float] = (1.0, 1.0)) -> dict[str, Any]:
    """A row as `_Table.play` makes them."""
    sides = ["A", "B"] if seat == 0 else ["B", "A"]
    seats = [
        {"role": role, "contender": side, "play_cpu": cpu["AB".index(side)], "start_cpu": 0.0}
        for role, side in zip(("white", "black"), sides, strict=True)
    ]
    goals = [100 * score, 100 - 100 * score] if seat == 0 else [100 - 100 * score, 100 * score]
    about = {"plies": 5, "end": "terminal", "events": [], "seats": seats}
    return {"round": round_number, "seat": seat, "goals": goals, **about}


def score_of(*results: dict[str, Any], game: str = "game") -> GameScore:
    return GameScore(game, 2, dict(enumerate(results)))


def test_rounds_are_the_samples() -> None:
    score = score_of(result(0, 0, 1), result(0, 1, 0), result(1, 0, 1), result(1, 1, 1), result(2, 0, 0))
    assert score.score == mean_interval([0.5, 1.0])  # round 2 is not complete
    assert score.as_json()["score"] == 0.75
    assert score.as_json()["low"] == 0
    assert score.as_json()["matches"] == 5


def test_an_interval_has_a_width_if_all_matches_are_won() -> None:
    won = score_of(*(result(number // 2, number % 2, 1) for number in range(20)))
    assert won.score == share_interval(10, 10)
    assert won.score.low == pytest.approx(0.025 ** (1 / 10))


def test_a_match_without_an_end_is_an_equal_share() -> None:
    """Neither player has a goal, whatever its role, so neither gains by it; a goal that the rules lack is 0."""
    capped = {"goals": [None, None], "end": "cap"}
    score = score_of(result(0, 0, 1), result(0, 1, 0) | capped)
    assert (score.score.mean, score.broken_off, score.as_json()["broken_off"]) == (0.75, 1, 1)
    three = GameScore("game", 3, {seat: {**result(0, seat, 1), **capped, "goals": [None] * 3} for seat in range(3)})
    assert three.score.mean == pytest.approx(1 / 3)
    assert score_of(result(0, 0, 1) | {"goals": [None, 50]}, result(0, 1, 1)).score.mean == 0.5


def goals_of(*goals: tuple[int, int], **others: Any) -> GameScore:
    """The score of matches with these goals of A and of B."""
    given = [(number, goal if number % 2 == 0 else goal[::-1]) for number, goal in enumerate(goals)]
    return score_of(*({**result(number // 2, number % 2, 1), "goals": goal} for number, goal in given), **others)


def test_the_share_of_the_goals_where_they_do_not_add_up() -> None:
    """The sums of the rounds are 60 of 80, 20 of 40 and 30 of 60."""
    score = goals_of((40, 10), (20, 10), (0, 0), (20, 20), (30, 0), (0, 30))
    assert score.score.mean == pytest.approx(110 / 600)
    left_out = np.array([50 / 100, 90 / 140, 80 / 120])
    half = t_quantile(2) * math.sqrt(2 / 3 * float(np.sum((left_out - left_out.mean()) ** 2)))
    assert (score.share.mean, score.share.num) == (pytest.approx(110 / 180), 3)
    assert [score.share.low, score.share.high] == pytest.approx([110 / 180 - half, 110 / 180 + half])
    assert score.as_json()["share"] == {"mean": score.share.mean, "low": max(0, score.share.low), "high": 1}
    three = [(0, [60, 10, 20]), (1, [30, 30, 0]), (2, [0, 0, 0])]
    rows = {seat: {**result(0, seat, 1), "goals": goals} for seat, goals in three}
    assert GameScore("game", 3, rows).share.mean == 90 / 150


def test_a_share_is_the_score_where_goals_add_up_to_100() -> None:
    score = goals_of((100, 0), (50, 50), (70, 30), (0, 100))
    assert score.share is score.score
    assert score.as_json()["share"] is None
    assert goals_of((50, 0), (50, 0), (0, 50), (0, 50)).share.mean == 0.5, "a constant sum, but not of 100"
    assert math.isnan(score_of().share.mean)


def test_a_match_without_an_end_is_an_equal_share_of_the_goals() -> None:
    """It weighs as much as any match, also where goals are small or large."""
    for scale in (1, 100):
        score = goals_of((3 * scale, scale), (3 * scale, scale), (3 * scale, scale), (0, 0))
        score.matches[3].update({"goals": [None, None], "end": "cap"})  # type: ignore[attr-defined]
        assert score.share.mean == (3 * 0.75 + 0.5) / 4
    assert goals_of((0, 0), (0, 0)).share.mean == 0.5, "nobody has got anything"


def test_rounds_that_agree_on_a_share_are_not_certain() -> None:
    assert goals_of(*[(70, 0)] * 20).share == share_interval(10, 10)
    assert goals_of(*[(1, 2)] * 4).share.low == -math.inf
    shares = goals_of(*[(1, 2)] * 20).share
    assert [shares.mean, shares.low, shares.high] == pytest.approx([1 / 3] * 3)


def test_the_cpu_ratio_and_the_void() -> None:
    fair = score_of(result(0, 0, 1, (1.0, 1.0)), result(0, 1, 1, (1.08, 1.0)))
    assert fair.ratio == pytest.approx(1.04)
    assert fair.has_equal_cpu
    unfair = score_of(result(0, 0, 1, (1.0, 1.0)), result(0, 1, 1, (0.88, 1.0)))
    assert unfair.ratio == pytest.approx(0.94)
    assert not unfair.has_equal_cpu
    assert not score_of().has_equal_cpu
    assert score_of().as_json()["score"] is None


def test_faults_belong_to_the_contender_who_made_them() -> None:
    late = {"ply": 0, "role": "white", "kind": "TO", "text": ""}
    score = score_of(result(0, 0, 1) | {"events": [late, late]}, result(0, 1, 1) | {"events": [late]})
    assert (score.faults(0), score.faults(1)) == (1, 1)


def test_games_are_the_samples_over_all() -> None:
    samples = {"one": 1.0, "two": 0.5, "three": 0.6}
    games = [score_of(result(0, 0, score), result(0, 1, score), game=name) for name, score in samples.items()]
    assert overall(games).low == pytest.approx(mean_interval([1.0, 0.5, 0.6]).low)
    assert overall(games).mean == pytest.approx(0.7)
    assert overall([*games, score_of()]) == overall(games)
    assert overall(games[:1]) == games[0].score
    assert math.isnan(overall([]).mean)
    small = goals_of((30, 10), (20, 10), game="small")
    assert overall([small]) == small.share
    assert overall([*games, small]).mean == pytest.approx((2.1 + 50 / 70) / 4)
    names = "breakthrough", "breakthroughSmall", "hex"
    alike = [replace(score, game=name) for score, name in zip(games, names, strict=True)]
    assert overall(alike) == clustered_interval([1.0, 0.5, 0.6], ["b", "b", "h"]), "the first two are a family"


def test_seats_load_the_game_within_the_limits_of_the_duel(tmp_path: Path) -> None:
    duel = make(tmp_path, "random", "random", 2)
    duel.games[0].limits = Limits(seconds=0)
    with pytest.raises(GameloreError, match=r"expected a reply from random, got .*the game to load within 0 s"):
        run(duel)


def test_a_game_that_fails_leaves_the_others_alone_and_is_tried_again(tmp_path: Path) -> None:
    """The players cannot load connect3 at first, and tictactoe is over after the nine plies of its openings."""
    duel = make(tmp_path, "random", "random", 2, ["connect3", "tictactoe", "connectfour"], opening_plies=9)
    duel.games[0].limits = Limits(seconds=0)
    told: list[tuple[int, int]] = []
    scores = asyncio.run(duel.run(lambda done, total: told.append((done, total))))
    assert list(duel.failures) == ["connect3", "tictactoe"]
    assert "the game to load within 0 s" in str(duel.failures["connect3"])
    assert "expected an opening of 9 plies after which tictactoe goes on" in str(duel.failures["tictactoe"])
    assert [len(score.matches) for score in scores] == [0, 0, 2]
    assert told[-1] == (2, 6)
    assert overall(scores) == scores[2].score
    duel.games[0].limits = Limits()
    scores = asyncio.run(duel.run())
    assert list(duel.failures) == ["tictactoe"]
    assert [len(score.matches) for score in scores] == [2, 0, 2]


def test_a_store_that_fails_ends_the_duel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(store: ResultStore, outcomes: object, version: str) -> None:
        raise ExperimentError("no space")

    monkeypatch.setattr(ResultStore, "add", fail)
    duel = make(tmp_path, "random", "random", 2, ["tictactoe", "connect3"])
    with pytest.raises(ExperimentError, match="no space"):
        asyncio.run(duel.run())
    assert duel.failures == {}
