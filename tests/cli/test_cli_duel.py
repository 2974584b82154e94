"""`gamelore duel`: results, exit codes, and a duel that is ended and goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import run, run_json
from gamelore import load
from gamelore.cli.duel_command import _duel
from gamelore.lab.results import ResultStore, store_path

CORES = sorted(os.sched_getaffinity(0))
CORE = CORES[0]
GAMELORE = (sys.executable, "-c", "from gamelore.cli import main; main()")


def arguments(folder: Path, *others: object, a: str = "random", b: str = "random", matches: int = 2) -> list[object]:
    options = ["--game", "tictactoe", "--matches", matches, "--out", folder, "--share-core", "--cores", CORE]
    return ["duel", a, b, *options, *others]


def num_stored(folder: Path) -> int:
    if not store_path(folder).is_file():
        return 0
    with ResultStore(store_path(folder)) as store:
        return len(store.finished())


def test_results_as_json_and_as_a_table(tmp_path: Path) -> None:
    told = run_json(*arguments(tmp_path, "--seed", 5))
    assert [player["player"] for player in told["players"]] == ["random", "random"]
    (game,) = told["games"]
    assert (game["game"], game["matches"], game["rounds"], game["score"]) == ("tictactoe", 2, 1, 0.5)
    assert told["overall"]["score"] == 0.5
    assert game["faults"] == [0, 0]
    table = run(*arguments(tmp_path, "--seed", 5)).stdout
    assert "tictactoe        2     50.0" in table
    assert "over all games: 50.0 %" in table
    assert "A: random (" in table
    assert "share" not in table
    message = run(*arguments(tmp_path, "--seed", 6), code=1).stderr
    assert "seed was 5, is 6; choose another folder with --out" in message


FIXED = """
(role a) (role b) (init (step 1)) (<= (legal ?r wait) (role ?r)) (<= (next (step 2)) (true (step 1)))
(<= terminal (true (step 2))) (goal a 60) (goal b 20)
"""  # 20 of 80 for whoever has the second role


def test_the_share_is_shown_where_goals_do_not_add_up_to_100(tmp_path: Path) -> None:
    (tmp_path / "fixed.kif").write_text(FIXED)
    wanted = arguments(tmp_path / "out", "--game", tmp_path / "fixed.kif", "--opening-plies", 0)
    told = run_json(*wanted)
    assert [game["game"] for game in told["games"]] == ["tictactoe", "fixed"]
    assert told["games"][0]["share"] is None
    assert (told["games"][1]["score"], told["games"][1]["share"]["mean"]) == (0.4, 0.5)
    assert told["overall"]["score"] == (told["games"][0]["score"] + 0.5) / 2
    table = run(*wanted).stdout
    assert "share %" in table.splitlines()[0]
    assert "50.0 [0.0, 100.0]" in table
    assert "share: goals of A, divided by those of all roles" in table


def test_a_game_that_fails_is_told_at_the_end(tmp_path: Path) -> None:
    """An opening of two plies is too long for the game, which ends after the first one."""
    (tmp_path / "fixed.kif").write_text(FIXED)
    wanted = ["duel", "random", "random", "--game", tmp_path / "fixed.kif", *arguments(tmp_path / "out")[3:]]
    shown = run(*wanted, code=1)
    assert "tictactoe        2     50.0" in shown.stdout
    assert "fixed: expected an opening of 2 plies after which fixed goes on" in shown.stderr
    told = run_json(*wanted, code=1)
    assert [game["matches"] for game in told["games"]] == [0, 2]
    assert list(told["failures"]) == ["fixed"]
    assert told["overall"]["score"] == 0.5


def test_unequal_cpu_times_are_void(tmp_path: Path) -> None:
    wanted = arguments(tmp_path, "--equal-cpu", a="uct:simulations=5000")
    shown = run(*wanted, code=1)
    assert "its score is void" in shown.stderr
    assert " * " in shown.stdout
    assert "*: the CPU times differ by more than 5 %" in shown.stdout


def test_mistakes_in_the_command_line(tmp_path: Path) -> None:
    assert "did you mean random" in run(*arguments(tmp_path, a="randon"), code=2).stderr
    assert "expected some of the cores" in run(*arguments(tmp_path, "--cores", "no"), code=2).stderr
    assert "name the folder src" in run(*arguments(tmp_path, a="random@/no/tree"), code=2).stderr
    assert "give both clocks" in run(*arguments(tmp_path, a="ggp:true"), code=2).stderr
    outside = arguments(tmp_path, "--data-b", tmp_path / "no", b="ggp:true")
    assert "expected a folder of data" in run(*outside, code=2).stderr
    for option in ("--data", "--data-a", "--data-b", "--version-a", "--rewritten-sheet", "--replay-faulty"):
        value = [tmp_path] if option.startswith(("--data", "--version")) else []
        assert (
            f"expected ggp:COMMAND with {option}, got random"
            in run(*arguments(tmp_path, option, *value), code=2).stderr
        )
    outside = arguments(tmp_path, "--data-a", tmp_path, b="ggp:true")
    assert "expected ggp:COMMAND with --data-a, got random; leave --data-a out" in run(*outside, code=2).stderr
    assert "expected different cores" in run(*arguments(tmp_path, "--cores", f"{CORE},{CORE}"), code=2).stderr
    alone = [word for word in arguments(tmp_path, "--cores", f"{CORE},{CORE}") if word != "--share-core"]
    assert "expected different cores" in (told := run(*alone, code=2).stderr)
    assert "--share-core" in told
    assert not store_path(tmp_path).exists()


@pytest.mark.skipif(len(CORES) < 2, reason="each player needs a core")
def test_each_player_may_have_its_own_data_and_version(tmp_path: Path) -> None:
    (own := tmp_path / "own").mkdir()
    settings = {"startclock": 1, "playclock": 1, "shares_core": False}
    cores = ",".join(map(str, CORES[:2]))
    plan = _duel(("ggp:a", "ggp:b"), [load("tictactoe")], tmp_path, 2, (tmp_path, own), cores, settings, ("1", "2"))
    assert [contender.data for contender in plan.contenders] == [tmp_path, own]
    assert [contender.version for contender in plan.contenders] == ["1", "2"]


@pytest.mark.skipif(len(CORES) < 2, reason="each player needs a core")
def test_programs_end_with_a_killed_duel(tmp_path: Path) -> None:
    """The program never answers INFO, so the duel waits."""
    wanted = arguments(
        tmp_path / "out", "--startclock", 5, "--playclock", 5, b="ggp:echo $$ > pid; mv pid PID; exec sleep 1000"
    )
    wanted = [str(word).replace("PID", str(tmp_path / "pid")) for word in wanted if word != "--share-core"]
    with subprocess.Popen(
        [*GAMELORE, *wanted, "--cores", f"{CORES[0]},{CORES[1]}"], stderr=subprocess.DEVNULL
    ) as process:
        while not (tmp_path / "pid").exists() and process.poll() is None:
            time.sleep(0.05)
        process.kill()
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":  # a zombie has ended, too
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_duel_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    wanted = arguments(tmp_path, a="uct:simulations=20", matches=400)
    with subprocess.Popen(list(map(str, [*GAMELORE, *wanted])), stderr=subprocess.PIPE, text=True) as process:
        while num_stored(tmp_path) < 3 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate()
    stored = num_stored(tmp_path)
    assert 3 <= stored < 400
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted; finished matches are stored; run the same command again to continue" in errors
    done = [str(word) for word in arguments(tmp_path, a="uct:simulations=20", matches=stored + stored % 2)]
    assert json.loads(run(*done, "--json").stdout)["games"][0]["matches"] == stored + stored % 2
