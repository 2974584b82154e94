"""gamelore host: what it takes, what it prints, and how it comes to an end."""

from __future__ import annotations

import inspect
import json
import logging
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from commands import run, run_json
from gamelore.cli.network_commands import curve_text, host
from gamelore.net.host import HostSettings
from gamelore.net.messages import Abort, Info, Play, Start, Stop
from scripted import playing
from wire import GAMELORE

LOCAL = ["--player", "xplayer=egreedy", "--player", "oplayer=weak:epsilon=0.1"]


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Puts the handlers back that --verbose takes away."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_local_players_as_json() -> None:
    told = run_json("host", "tictactoe", *LOCAL, "--matches", 12, "--seed", 3, "--window", 5)
    assert told["matches"] == 12
    assert told["ends"] == {"terminal": 12}
    first, second = told["players"]
    assert (first["role"], first["player"]) == ("xplayer", "egreedy")
    assert first["mean_goal"] + second["mean_goal"] == pytest.approx(100)
    assert sum(first["goals"].values()) == 12
    assert len(first["curve"]) == 12
    assert told["errors"] == {"xplayer": {}, "oplayer": {}}
    assert told["record"] is None
    assert told == run_json("host", "tictactoe", *LOCAL, "--matches", 12, "--seed", 3, "--window", 5, "--at-once", 4)


def test_one_match_has_no_standard_error() -> None:
    told = run_json("host", "tictactoe", *LOCAL)
    assert [player["standard_error"] for player in told["players"]] == [None, None]


def test_what_a_reader_sees() -> None:
    shown = run("host", "tictactoe", *LOCAL, "--matches", 20)
    assert "mean goal" in shown.stdout
    assert "20 matches (20 terminal)" in shown.stdout
    assert "10 of 20 matches; mean goals of the last 10: xplayer " in shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()[-2:]] == ["xplayer", "oplayer"]


def test_a_player_behind_a_wire_with_its_faults(tmp_path: Path, own_logging: None) -> None:
    with playing("play#1@0=illegal") as player:
        arguments = ["host", "tictactoe", "--player", f"xplayer={player.url}", "--player", "oplayer=egreedy"]
        shown = run(*arguments, "--matches", 2, "--record", tmp_path / "series", "--verbose")
        assert "IL (no such move)" in shown.stderr
        assert f"{player.url} (scripted)" in shown.stdout
        assert f"recorded in {tmp_path / 'series'}" in shown.stdout
        assert isinstance(player.heard[0], Info)
        count = len(player.heard)
        told = run_json(*arguments, "--matches", 2, "--record", tmp_path / "series")
        assert len(player.heard) == count  # nothing was left to do
    assert told["errors"] == {"xplayer": {"IL": 1}, "oplayer": {}}
    assert told["faulty"] == 1
    assert "1 of these matches have errors; they count, with random legal moves in place" in shown.stdout
    assert len(list((tmp_path / "series").glob("match-*.json"))) == 2


def test_a_series_in_a_folder_goes_on(tmp_path: Path) -> None:
    options = ["host", "tictactoe", *LOCAL, "--record", tmp_path]
    run(*options, "--matches", 3)
    shown = run(*options, "--matches", 5)
    assert f"continuing the series in {tmp_path} after 3 matches" in shown.stderr
    refused = run(*options, "--matches", 5, "--seed", 9, code=1)
    assert "choose another folder" in refused.stderr


def test_only_a_learner_has_a_curve(tmp_path: Path) -> None:
    player = f"xplayer=baseline:knowledge={tmp_path / 'knowledge.db'}"
    shown = run("host", "tictactoe", "--player", player, "--player", "oplayer=egreedy", "--matches", 10)
    (line,) = shown.stdout.rpartition("0 to 100:\n")[2].splitlines()
    assert line.startswith("xplayer  ")


def test_a_figure(tmp_path: Path) -> None:
    shown = run("host", "tictactoe", *LOCAL, "--matches", 3, "--figure", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert f"wrote the picture {tmp_path / 'curve.png'}" in shown.stderr
    refused = run("host", "tictactoe", *LOCAL, "--figure", tmp_path / "curve.doc", code=2)
    assert "expected a picture format" in refused.stderr


@pytest.mark.parametrize(
    ("players", "told"),
    [
        (["xplayer=egreedy"], "got none for oplayer"),
        (["xplayer=egreedy", "oplayr=egreedy"], "did you mean oplayer"),
        (["xplayer=egreedy", "xplayer=random"], "expected one player for xplayer"),
        (["xplayer=egreedy", "oplayer"], "expected --player ROLE=PLAYER"),
        (["xplayer=egreedy", "oplayer=egredy"], "did you mean egreedy"),
        (["xplayer=egreedy", "oplayer=http://:99999"], "expected the address of a player"),
        (["xplayer=egreedy", "oplayer=https://example.org"], "expected the address of a player"),
        (["xplayer=egreedy", "oplayer=127.0.0.1:9147"], "write http://ADDRESS:PORT"),
        (["xplayer=egreedy", "oplayer=localhost:9147/"], "write http://ADDRESS:PORT"),
        (["xplayer=egreedy", "oplayer=http:/[::1]:9147"], "write http://ADDRESS:PORT"),
    ],
)
def test_mistakes_in_players(players: list[str], told: str) -> None:
    options = [part for player in players for part in ("--player", player)]
    assert told in run("host", "tictactoe", *options, code=2).stderr


def test_nobody_listens() -> None:
    with playing() as player:
        url = player.url
    shown = run("host", "tictactoe", "--player", f"xplayer={url}", "--player", "oplayer=egreedy", code=1)
    assert f"expected a player at {url}, got no connection (" in shown.stderr
    assert "); start the player first" in shown.stderr


def test_a_player_that_goes_and_comes_back_and_goes_for_good(tmp_path: Path) -> None:
    clocks = ["--startclock", 0, "--playclock", 0, "--extra", 0.3]
    with playing("; ".join(f"start#{match}=close; play#{match}=close" for match in (1, 2, 4, 5, 6, 7))) as player:
        arguments = ["--player", f"xplayer={player.url}", "--player", "oplayer=egreedy", "--record", tmp_path]
        options = [*clocks, "--matches", 20, "--give-up", 3]
        shown = run("host", "tictactoe", *arguments, *options, code=1)
    lines = [line for line in shown.stderr.splitlines() if line.startswith("match ")]
    assert [line.partition(":")[0] for line in lines] == ["match 1", "match 3", "match 4"]
    assert (
        f"no reply from {player.url}, so xplayer plays random legal moves; at every START the host waits up to 0.3 s"
        in lines[0]
    )
    assert lines[1].endswith("replies again")
    assert f"expected replies from {player.url}, got none in the last 3 matches; start the player again" in shown.stderr
    assert "7 matches (7 terminal)" in shown.stdout  # what was played is told all the same


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("info=garbage", "does not answer INFO like a player"),
        ("info=reply:busy", "answers that it is busy; the series starts anyway"),
    ],
)
def test_a_player_that_says_odd_things_of_itself(script: str, told: str) -> None:
    with playing(script) as player:
        shown = run("host", "tictactoe", "--player", f"xplayer={player.url}", "--player", "oplayer=egreedy")
    assert told in shown.stderr
    assert "1 match (1 terminal)" in shown.stdout


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_host_that_is_interrupted_aborts_its_matches(tmp_path: Path, signum: signal.Signals) -> None:
    options = ["--matches", "5", "--at-once", "2", "--record", str(tmp_path / "series"), "--playclock", "60"]
    with playing("play#2+@1=silent") as player:
        players = ["--player", f"xplayer={player.url}", "--player", "oplayer=random"]
        command = [*GAMELORE, "host", "tictactoe", *players, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            give_up = time.monotonic() + 30
            while player.count(Stop) < 2 or player.count(Start) < 4 or not _all_in_turn_one(player.heard):
                assert time.monotonic() < give_up
                time.sleep(0.01)
            process.send_signal(signum)
            shown, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "2 matches (2 terminal)" in shown
        assert "with --record, run the same command again to continue" in errors
        assert player.count(Abort) == 2
    journal = [json.loads(line) for line in (tmp_path / "series" / "journal.jsonl").read_text().splitlines()]
    assert [entry["is"] for entry in journal].count("aborted") == 2
    assert len(list((tmp_path / "series").glob("match-*.json"))) == 2


def _all_in_turn_one(heard: list[object]) -> bool:
    """Whether matches 2 and 3 wait for a second move."""
    started = [message.match for message in heard if isinstance(message, Start)]
    plays = [message.match for message in heard if isinstance(message, Play)]
    return len(started) >= 4 and all(plays.count(match) >= 2 for match in started[2:4])


def test_its_defaults_are_those_of_the_settings() -> None:
    usual = HostSettings()
    options = {name: one.default for name, one in inspect.signature(host).parameters.items()}
    names = ("startclock", "playclock", "extra", "replace", "seed")
    assert {name: options[name] for name in names} == {name: getattr(usual, name) for name in names}


def test_curves_as_text() -> None:
    assert curve_text([]) == ""
    assert curve_text([0.0, 50.0, 100.0]) == "▁▅█"
    assert curve_text(list(np.linspace(0, 100, 1000)), 8) == "▁▂▃▄▅▆▇█"
    assert len(curve_text([50.0] * 61)) == 60


def test_a_player_that_is_busy_at_start() -> None:
    with playing("start#1=reply:busy") as player:
        arguments = ["host", "tictactoe", "--player", f"xplayer={player.url}", "--player", "oplayer=egreedy"]
        shown = run(*arguments, "--matches", 3, "--startclock", 0, "--extra", 0.3)
        assert f"match 1: aborted, because xplayer at {player.url} is busy; it does not count" in shown.stderr
        assert "2 matches (2 terminal)" in shown.stdout
        assert "1 more match was aborted at START, because a player was busy" in shown.stdout
    with playing("start=reply:busy") as player:
        arguments = ["host", "tictactoe", "--player", f"xplayer={player.url}", "--player", "oplayer=egreedy"]
        shown = run(*arguments, "--matches", 3, "--startclock", 0, "--extra", 0.3, "--give-up", 2, code=1)
        assert "got `busy` to the last 2 STARTs" in shown.stderr
