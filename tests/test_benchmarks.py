"""The benchmarks that need nothing beside gamelore still run. Their figures are not looked at."""

import csv
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import gamelore
from gamelore.errors import ExperimentError, GameloreError
from gamelore.game.game import Game
from gamelore.lab.experiment import SettingGrid
from gamelore.lab.results import Outcome, ResultStore, Setting, Trial
from gamelore.lab.stats import clustered_interval
from gamelore.lab.studies.map_study import MapSetting
from gamelore.lab.studies.memory_study import MemoryJob, MemorySetting
from gamelore.net import player_server
from gamelore.players.random_streams import stream
from gamelore.search.settings import GrowthSettings
from gamelore.search.thinking import Stem
from gamelore.search.tree import UNRELATED
from gamelore.search.value import no_prior
from gamelore.solver.solution import solve
from gamelore.workers.processes import Report

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(gamelore.__file__).parents[1])}  # absolute: the folder is another

Scripts: TypeAlias = Callable[[str], dict[str, Any]]


@pytest.fixture
def script_of(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    """Return the names in a benchmark. The clock of this process stays as it is."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setitem(sys.modules, "cpu_clock", ModuleType("cpu_clock"))
    return lambda name: runpy.run_path(str(BENCHMARKS / name))


@pytest.fixture
def invoked(script_of: Scripts) -> Callable[..., Any]:
    """Run a benchmark in this process, for the second runs of a test; return the result with stdout and stderr."""

    def invoke(name: str, *arguments: object) -> Any:
        app = typer.Typer()
        app.command()(script_of(name)["main"])
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


def test_network(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    options = ["--matches", "2", "--repeats", "1", "--csv", str(table)]
    subprocess.run([sys.executable, BENCHMARKS / "network.py", *options], check=True, capture_output=True, cwd=tmp_path)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["way"] for row in rows] == ["in process", "two local", "over HTTP", "50 at once"]
    assert all(int(row["turns"]) >= 2 * 5 and row["errors"] == "0" for row in rows)


def test_parts() -> None:
    command = [sys.executable, BENCHMARKS / "parts.py", Path(gamelore.__file__).parent / "rulesheets"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "| tictactoe | 2 | serial | 9 | 9 x 3 | 1 | 2 | 0 |" in done.stdout, "nine cells, tied by the lines"
    assert "| pegsolitaire |" not in done.stdout


def test_cores(tmp_path: Path, invoked: Callable[..., Any]) -> None:
    sheets, table = Path(gamelore.__file__).parent / "rulesheets", tmp_path / "rows.csv"
    given = [sheets, "--games", "connectfour", "--seconds", "0.01", "--teaching", "1000", "--matches", "2"]
    given += ["--csv", table]
    command = [sys.executable, BENCHMARKS / "cores.py", *given]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "| connectfour | 1 |" in done.stdout
    rows = table.read_text(encoding="utf-8")
    assert [row.split(",")[5] for row in rows.splitlines()] == ["number", "0", "1"]
    assert invoked("cores.py", *given).exit_code == 0
    assert table.read_text(encoding="utf-8") == rows, "both matches are in the table already"
    table.write_text(rows.replace(rows.splitlines()[1].split(",")[4], "older"), encoding="utf-8")
    older = invoked("cores.py", *given, "--version", "older")
    assert older.exit_code == 0
    assert older.stdout == done.stdout, "the rows of an earlier version are apart"
    table.write_text("game,score\nconnectfour,1\n", encoding="utf-8")
    assert "expected the columns game, seconds" in str(invoked("cores.py", *given).exception)


def test_a_table_that_exists_and_is_empty_gets_its_columns(tmp_path: Path, script_of: Scripts) -> None:
    script, table = script_of("rows.py"), tmp_path / "rows.csv"
    table.touch()
    for number in "01":
        script["append"](table, {"game": "a", "number": number})
    assert script["read"](table) == [{"game": "a", "number": "0"}, {"game": "a", "number": "1"}]


def test_puzzles(tmp_path: Path, invoked: Callable[..., Any]) -> None:
    sheets, table = Path(gamelore.__file__).parent / "rulesheets", tmp_path / "rows.csv"
    given = [sheets, "--seconds", "30", "--csv", table]
    subprocess.run([sys.executable, BENCHMARKS / "puzzles.py", *given], check=True, capture_output=True, cwd=tmp_path)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["sheet"], row["goal"], row["proved"]) for row in rows] == [("pegsolitaire", "100", "True")]
    again = invoked("puzzles.py", *given)
    assert again.exit_code == 0
    assert "| pegsolitaire |" not in again.stdout, "it is in the table already"
    assert "1 of 1 sheets solved to 100" in again.stdout


def test_puzzles_in_a_table_count_for_their_settings_only_and_what_failed_is_tried_again(
    tmp_path: Path, script_of: Scripts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main, table = script_of("puzzles.py")["main"], tmp_path / "rows.csv"
    results = {"goal": 100, "proved": True}

    def in_new_process(sheet: Path, *_: str) -> dict[str, Any]:
        return dict.fromkeys(main.__globals__["COLUMNS"]) | {"sheet": sheet.stem, "engine": "native"} | results

    monkeypatch.setitem(main.__globals__, "in_new_process", in_new_process)
    sheet = tmp_path / "key.kif"
    sheet.write_text("(role robot)", encoding="utf-8")

    def told(**options: Any) -> list[str]:
        defaults = {"seconds": 60.0, "methods": "", "seed": 0, "only": "", "version": "new", "one": False}
        main(sheet, csv_file=table, **(defaults | options))
        return capsys.readouterr().out.splitlines()[2:]

    row, none, solved = "| key | native | None | 100 | None | None | None | True | None | None |", "", "1 of 1 sheets"
    assert told() == [row, none, f"{solved} solved to 100 within 60 s"]
    assert told() == [none, f"{solved} solved to 100 within 60 s"]
    for other in ({"seconds": 30.0}, {"methods": "NRPA"}, {"seed": 1}, {"version": "older"}):
        assert row in told(**other)
        assert row not in told(**other)
    assert row not in told()
    results |= {"engine": "failed", "goal": None}
    assert told(seed=2)[1:] == told(seed=2)[1:] == [none, "0 of 1 sheets solved to 100 within 60 s"]
    results |= {"engine": "native", "goal": 100}
    assert told(seed=2) == [row, none, f"{solved} solved to 100 within 60 s"]
    assert told(seed=2) == [none, f"{solved} solved to 100 within 60 s"]
    assert len(table.read_text(encoding="utf-8").splitlines()) == 1 + 5 + 3


def test_clicks(tmp_path: Path) -> None:
    sheets, table = Path(gamelore.__file__).parent / "rulesheets", tmp_path / "rows.csv"
    command = [sys.executable, BENCHMARKS / "clicks.py", sheets, "--only", "tictactoe,goofspiel", "--matches", "2"]
    done = subprocess.run([*command, "--out", table], check=True, capture_output=True, cwd=tmp_path, text=True)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["sheet"], row["boards"].split(",")[0], row["share"]) for row in rows] == [
        ("goofspiel", "holds (squares)", "1.0"),
        ("tictactoe", "cell (squares)", "1.0"),
    ]
    assert "2 of 2 sheets with at least 95%" in done.stdout


def test_the_transfer_map(tmp_path: Path, invoked: Callable[..., Any]) -> None:
    """A lesson that has not ended a generation is left out; so there are 0 to 2 pairs."""
    sheets, memory = tmp_path / "sheets", tmp_path / "memory"
    sheets.mkdir()
    for name in ("tictactoe", "connect3"):
        shutil.copy(gamelore.rulesheets.path(name), sheets)
    given = [sheets, "--study", "0.7"]
    command = [
        sys.executable,
        BENCHMARKS / "memory.py",
        *given,
        "--out",
        memory,
        "--stage",
        "study",
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env=ENVIRONMENT)
    (teachings,) = (memory / "teachings").iterdir()
    folders = ["--memory", memory, "--teachings", teachings, "--out", tmp_path / "map"]
    done = invoked("transfer_map.py", *given, *folders, "--stage", "report")
    assert done.exit_code == 0
    with (tmp_path / "map" / "transfer-map.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert f"{len(rows)} pair" in done.stdout
    assert {row["source"] for row in rows} <= {"tictactoe", "connect3"}
    assert all(0 <= float(row["score"]) <= 1 and 0 <= float(row["share"]) <= 1 for row in rows)
    assert {"transfer-map.png", "findings.png"} <= {file.name for file in (tmp_path / "map").iterdir()}


@pytest.fixture
def transfer_map(script_of: Scripts) -> dict[str, Any]:
    return script_of("transfer_map.py")


def test_games_that_are_added_to_the_transfer_map(transfer_map: dict[str, Any]) -> None:
    """They leave the lot of the others as it is; each lot has 300 pairs, beside those that carry enough."""
    open_games, added = [f"open{number}" for number in range(40)], [f"new{number}" for number in range(10)]
    names = [*open_games, *added]
    pairs = [
        transfer_map["Pair"](*both, 0.5, 0.3 * (both[0][-1] == both[1][-1]), True) for both in permutations(names, 2)
    ]
    before = transfer_map["chosen_pairs"]([pair for pair in pairs if {pair.source, pair.target} <= set(open_games)], ())
    after = transfer_map["chosen_pairs"](pairs, (), added)
    assert set(before) <= set(after)
    new = [pair for pair in after if "new" in pair.name]
    assert len(before) == 300 + 40 * 3
    assert len(after) == len(before) + len(new)
    assert len(new) == 300 + 2 * 40


def test_pairs_that_have_no_contests(transfer_map: dict[str, Any]) -> None:
    """Those without effect, and those whose target is too large, have no part in the lot either."""
    pair = transfer_map["Pair"]
    pairs = [pair("a", "b", 0.5, share, effect) for share in (0.1, 0.9) for effect in (False, True)]
    others = [pair("a", "c", 0.5, share, True) for share in (0.1, 0.9)]
    assert transfer_map["chosen_pairs"]([*pairs, *others], ["c"]) == [pairs[3], pairs[1]]
    assert pairs[0].name == "a/b"


def test_teachings_that_are_missing_are_told(tmp_path: Path, transfer_map: dict[str, Any]) -> None:
    for run in range(5):
        (tmp_path / f"tictactoe-{run}-1.db").touch()
    transfer_map["check_stores"](["tictactoe"], tmp_path, 1.0)
    (tmp_path / "tictactoe-3-1.db").unlink()
    with pytest.raises(ExperimentError, match=r"expected 5 stores in .*, 1 are missing, such as tictactoe-3-1.db"):
        transfer_map["check_stores"](["tictactoe"], tmp_path, 1.0)


def test_gains_and_harms_take_turns(tmp_path: Path, transfer_map: dict[str, Any]) -> None:
    """Three gains of 90, 85 and 80 %, two harms of 0 and 10 %; a pair with two effective teachings is no finding.

    Nor is one whose matches never end.
    """
    scores = {"a/x": (0.9, 1.0), "b/x": (0.85, 1.0), "c/x": (0.8, 1.0), "d/x": (0.0, 0.0), "e/x": (0.1, 0.1)}
    settings = [
        MapSetting(name, "x.kif", 1, 5, f"{name}.kif", 120.0, 10, 100, 16) for name in [*scores, "idle/x", "even/x"]
    ]
    with ResultStore(tmp_path / "results.db") as store:
        for setting in settings:
            taught, none = scores.get(setting.id, (1.0, 1.0) if setting.id == "idle/x" else (0.5, 0.5))
            results = [
                {"taught": [taught] * 16, "none": [none] * 16, "has_effect": run < 2 or setting.id != "idle/x"}
                for run in range(5)
            ]
            store.add([Outcome(Trial(setting, run), result=own) for run, own in enumerate(results)], "1")
        endless = MapSetting("endless/x", "x.kif", 1, 5, "endless.kif", 120.0, 10, 100, 16)
        result = {"taught": [], "none": [], "has_effect": True}
        store.add([Outcome(Trial(endless, run), result=result) for run in range(5)], "1")
        settings.append(endless)
        assert len(list(transfer_map["extremes"]([setting.id for setting in settings], store))) == 2 + 6
        found = transfer_map["findings"]([setting.id for setting in settings], store)
    assert [own.name for own in found] == ["a/x", "d/x", "b/x", "e/x", "c/x"]
    assert [own.rival for own in found] == ["taught", "none", "taught", "none", "taught"]


def test_walks_are_measured_once(tmp_path: Path, transfer_map: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    measured, scope = list[str](), transfer_map["walks_of"].__globals__
    monkeypatch.setitem(scope, "load", lambda path: path.stem)
    monkeypatch.setitem(scope, "affordable_walks", lambda game, *_: (measured.append(game), 100 * len(measured))[1])
    with ResultStore(tmp_path / "results.db") as store:
        assert transfer_map["walks_of"](["a", "b"], tmp_path, store, measures=False) == {}
        for measures in (True, True, False):
            assert transfer_map["walks_of"](["a", "b", "a"], tmp_path, store, measures) == {"a": 100, "b": 200}
    assert measured == ["a", "b"]


def test_one_finding_for_two_families(transfer_map: dict[str, Any]) -> None:
    """connectFour and connect4 are of a family; games without one stand for themselves."""
    finding = transfer_map["Finding"]
    names = ["connectFour/checkers", "connect4/checkers", "checkers/connect4", "connect4/new", "connectFour/other"]
    kept = transfer_map["of_different_families"]([finding(name, "taught") for name in names])
    assert [own.name for own in kept] == [names[0], *names[2:]]


def test_a_transfer_map_belongs_to_its_teachings(tmp_path: Path, transfer_map: dict[str, Any]) -> None:
    with ResultStore(tmp_path / "results.db") as store:
        for _ in range(2):
            transfer_map["check_teachings"](store, {"folder": "a", "study": 120.0})
        with pytest.raises(ExperimentError, match="choose another folder with --out"):
            transfer_map["check_teachings"](store, {"folder": "b", "study": 120.0})


def test_maps_are_made_for_sources_that_are_added(
    tmp_path: Path, script_of: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, made = script_of("transfer_map.py"), list[tuple[str, str]]()
    scope = script["map_all"].__globals__
    monkeypatch.setitem(scope, "load", lambda path: path.stem)
    monkeypatch.setitem(scope, "source_lesson", lambda folder, path, *_: Path(path).stem)
    monkeypatch.setitem(scope, "mapped", lambda *names: (made.append(names), ((0.5, 0.1, True), None))[1])
    with ResultStore(tmp_path / "results.db") as store:
        for names in (["a", "b"], ["a", "b", "c"], ["a", "b", "c"]):
            pairs = script["map_all"](names, tmp_path, tmp_path, 1.0, store)
            assert [(pair.source, pair.target) for pair in pairs] == [(s, t) for t in names for s in names if s != t]
    assert made == [("b", "a"), ("a", "b"), ("c", "a"), ("c", "b"), ("a", "c"), ("b", "c")]


def test_the_map_of_features(tmp_path: Path, invoked: Callable[..., Any]) -> None:
    """Two small games of a folder, each after the other; a second call plays nothing more."""
    sheets = tmp_path / "sheets"
    sheets.mkdir()
    for name in ("tictactoe", "losetictactoe", "othello4"):
        shutil.copy(gamelore.rulesheets.path(name), sheets)
    (tmp_path / "games.json").write_text(json.dumps(["losetictactoe", "tictactoe"]))
    given = [
        sheets,
        "--memory",
        tmp_path,
        "--out",
        tmp_path / "out",
        "--matches",
        "20",
        "--runs",
        "2",
        "--workers",
        "1",
    ]
    command = [sys.executable, BENCHMARKS / "feature_map.py", *given]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    again = invoked("feature_map.py", *given)
    assert again.exit_code == 0
    for told in (done, again):
        assert told.stderr.splitlines() == ["1 of 2 sources", "2 of 2 sources"]
    table = (tmp_path / "out" / "feature-map.csv").read_text().splitlines()
    assert [row.split(",")[:2] for row in table[1:]] == [["losetictactoe", "tictactoe"], ["tictactoe", "losetictactoe"]]
    assert (tmp_path / "out" / "feature-map.png").exists()


def test_growth(tmp_path: Path, invoked: Callable[..., Any]) -> None:
    sheet = shutil.copy(gamelore.rulesheets.path("tictactoe"), tmp_path)
    given = [
        Path(sheet).parent,
        "--out",
        tmp_path / "out",
        "--game",
        "tictactoe",
        "--checkpoints",
        "0,1",
        "--pairs",
        "1",
        *("--startclock", "0.2", "--runs", "2", "--workers", "2"),
    ]
    command = [sys.executable, BENCHMARKS / "growth.py", *given]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    assert "| tictactoe | without | " in done.stdout
    assert "| all games | without | " in done.stdout
    assert "| tictactoe | minimax:depth=2 | " in done.stdout
    assert "| tictactoe | 1 | 2 | " in done.stdout, "what two runs used after a startclock"
    assert (tmp_path / "out" / "growth.png").exists()
    again = invoked("growth.py", *given, "--report")
    assert again.exit_code == 0
    assert again.stdout == done.stdout


def test_recognition(tmp_path: Path, invoked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table, sheet = tmp_path / "rows.csv", shutil.copy(gamelore.rulesheets.path("tictactoe"), tmp_path)
    given = [Path(sheet).parent, "--out", table, "--game", "tictactoe", "--series", "1", "--runs", "2"]
    command = [sys.executable, BENCHMARKS / "recognition.py", *given]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * (8 + 3)
    assert not table.with_suffix(".missing").exists()
    assert "| 5 | " in done.stdout
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", "")  # so that what the script sets is gone after the test
    again = invoked("recognition.py", *given)
    assert again.exit_code == 0
    assert again.stdout.splitlines() == done.stdout.splitlines()[-len(again.stdout.splitlines()) :]


def test_games_for_recognition(tmp_path: Path, script_of: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are too slow leave their places to the next ones of the lot, and the fastest one comes first."""
    script, measured = script_of("recognition.py"), list[str]()
    scope = script["games_by_lot"].__globals__
    monkeypatch.setitem(scope, "gamelore", SimpleNamespace(load=lambda path: path.stem))
    slow = "bdfhj"
    monkeypatch.setitem(
        scope, "position_seconds", lambda name, runs: (measured.append(name), 5.0 if name in slow else 1 / ord(name))[1]
    )
    for _ in range(2):
        names = script["games_by_lot"]("abcdefghijklmnopqrst", tmp_path, 64, tmp_path / "games.json")
        assert names == sorted(set(measured) - set(slow), reverse=True)
    assert len(names) == 10
    assert len(measured) == len(set(measured))
    assert measured[-1] not in slow, "the lot ends with the tenth game"
    with pytest.raises(ExperimentError, match=r"the games and the runs of the lot in .*, got others"):
        script["games_by_lot"]("abcdefghijklmnopqrst", tmp_path, 32, tmp_path / "games.json")


def test_series_of_a_killed_run_are_whole(tmp_path: Path, script_of: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill during a write leaves the rows before; the series share the policies of a game."""
    script, table = script_of("recognition.py"), tmp_path / "rows.csv"
    row = {"game": "a", "player": "random", "series": 0, "matches": 1, "named": "b", "probability": 1.0, "unknown": 0.0}
    script["write"]([row], table)
    before = table.read_text()

    def rows() -> Iterator[dict[str, object]]:
        yield from (row, row | {"matches": 2})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        script["write"](rows(), table)
    assert table.read_text() == before
    scope, used = script["all_series"].__globals__, set[int]()
    monkeypatch.setitem(scope, "series", lambda policies, *_: used.add(id(policies)) or [{"matches": 1}])
    done = {("tictactoe", "random", "1")}
    played = list(script["all_series"](gamelore.load("tictactoe"), "tictactoe", 2, 2, done))
    assert len(played) == 2 * 11 - 1
    assert len(used) == 1


def test_memory(tmp_path: Path, invoked: Callable[..., Any]) -> None:
    """The table is empty as long as there are no contests."""
    sheets = tmp_path / "sheets"
    sheets.mkdir()
    for name in ("tictactoe", "goofspiel"):
        shutil.copy(gamelore.rulesheets.path(name), sheets)
    given = [sheets, "--out", tmp_path / "out", "--study", "0.3"]
    options = ["--teachings", "2", "--stage"]
    command = [sys.executable, BENCHMARKS / "memory.py", *given, *options, "study"]
    first = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    done = invoked("memory.py", *given, *options, "report")
    assert done.exit_code == 0
    for told in (first, done):
        assert told.stdout.splitlines()[-1] == "2 teachings", (
            "no long ones, because tictactoe is solved; in goofspiel, both choose at the same time"
        )
    assert json.loads((tmp_path / "out" / "solved.json").read_text()) == ["tictactoe"]
    failed = invoked("memory.py", *given, "--stage", "contests", "--version", "other")
    assert failed.exit_code == 1
    assert "expected results of gamelore other" in str(failed.exception), "else all teachings would be made anew"
    assert "| known |" not in done.stdout
    assert "perhaps worse: none" in done.stdout


def memory_result(scores: list[list[float]], *, variant: str = "", openings: bool = False) -> dict[str, Any]:
    """The result of a contest whose first side used a state of its lesson, the first one, in the first session only."""
    used = [{"state": None if number else 0, "knob": None, "openings": openings} for number in range(len(scores))]
    about = {"lessons": 1, "cpu": [3.0, 1.0], "choices": [3, 2], "startclocks": [[1.0, 1.0]], "retrieval": [0.02]}
    return {"scores": scores, "used": used, "used_by_rival": used, "variant": variant, **about}


def test_a_run_may_play_a_part_of_the_contests_of_memory(script_of: Scripts) -> None:
    script = script_of("memory.py")
    settings = script["plan"]([script["Sheet"](name, name, number, number) for number, name in enumerate("abcd")])
    assert {setting.arm for setting in settings} == {
        "known",
        "unrelated",
        "shuffled",
        "default",
        "no-openings",
        "no-knobs",
    }
    assert script["chosen"](settings, None, 60.0) == settings
    known = script["chosen"](settings, "known", 10.0)
    assert {setting.arm for setting in known} == {"known"}
    assert {setting.startclock for setting in known} == {1.0, 10.0}
    assert {setting.startclock for setting in script["chosen"](settings, "known", 60.0)} == {1.0, 10.0, 60.0}


def test_the_tables_of_memory(tmp_path: Path, script_of: Scripts) -> None:
    """Two games with two teachings each. The means: 60 and 70 in one, 40 and 50 in the other one, so 55 in all."""
    script = script_of("memory.py")
    sheets = [script["Sheet"](name, name, number, number) for number, name in enumerate("ab")]
    settings = [
        MemorySetting(f"{name}/{arm}/1s", name, 1, 2, arm, (), 120.0, 1.0, 2.0, 2, 1)
        for name in "ab"
        for arm in ("known", "shuffled")
    ]
    means = {"a/known/1s": (60, 70), "b/known/1s": (40, 50), "a/shuffled/1s": (50, 50), "b/shuffled/1s": (40, 60)}
    with ResultStore(tmp_path / "results.db") as store:
        for setting in settings:
            for run, mean in enumerate(means[setting.id]):
                result = memory_result([[mean - 10.0], [mean + 10.0]], variant="v" * run, openings=True)
                store.add([Outcome(Trial(setting, run), result=result)], "1")
        table, parts, contrasts = (
            [*script[name](settings, store, sheets)] for name in ("table", "parts_table", "contrasts")
        )
    known, shuffled = (line.split(" | ") for line in table[2:])
    assert known[:4] == ["| known", "1", "2", "2"]
    assert [row[4].split()[0] for row in (known, shuffled)] == ["55.0", "50.0"]
    assert known[-5:] == ["45 65", "2.00", "1.00", "20, 20", "0 |"]
    assert [row[10] for row in (known, shuffled)] == ["100%"] * 2, "openings in each session"
    assert [row.split(" | ")[3:7] for row in parts[2:]] == [["50%", "100%", "0%", "50%"]] * 2
    assert [cell.split()[0] for cell in parts[2].split(" | ")[7:]] == ["60.0", "50.0"], "with a variant, and without"
    assert contrasts[2].startswith("| known - shuffled | 1 | 2 | 2 | 5.0 ["), "15 in one game, -5 in the other one"


def test_games_that_seem_worse_are_played_again(tmp_path: Path, script_of: Scripts) -> None:
    """With three degrees of freedom, the pairs of `bad` have t = -2 and a one-sided p of 0.07, those of `even` 0.26."""
    script = script_of("memory.py")
    pairs = {"bad": [20, 60, 20, 20], "even": [30, 60, 40, 50], "good": [80, 90, 80, 70], "default": [0, 10, 0, 10]}
    settings = [MemorySetting(name, name, 1, 1, "known", (), 120.0, 1.0, 2.0, 4, 1) for name in pairs]
    settings[-1] = replace(settings[-1], arm="default")
    with ResultStore(tmp_path / "results.db") as store:
        for setting in settings:
            result = memory_result([[float(score)] for score in pairs[setting.id]])
            store.add([Outcome(Trial(setting, 0), result=result)], "1")
        assert [setting.id for setting in script["worse"](settings, store)] == ["bad"]


def test_fresh_matches_decide_about_memory(tmp_path: Path, script_of: Scripts) -> None:
    """When all teachings of an arm are there."""
    script = script_of("memory.py")
    means: dict[str, list[float]] = {"bad": [30, 31, 32], "good": [70, 71, 72], "worst": [10, 11]}
    losers = [MemorySetting(name, name, 1, 3, "known", (), 120.0, 1.0, 2.0, 1, 1) for name in means]
    losers[2] = replace(losers[2], arm="unrelated")
    with ResultStore(tmp_path / "results.db") as again:
        assert [*script["decided"](losers, again, ())] == [f"{name}: no in 0 of 3 teachings" for name in means]
        for loser in losers:
            results = [memory_result([[mean]]) for mean in means[loser.id]]
            again.add([Outcome(Trial(loser, run), result=result) for run, result in enumerate(results)], "1")
        bad, good, worst = script["decided"](losers, again, ())
        open_arm = next(script["decided"](losers, again, ("known",)))
    assert open_arm.endswith("] in 3 of 3 teachings"), "more of them may need fresh matches"
    assert bad.startswith("bad: 31.0 [")
    assert bad.endswith("] in 3 of 3 teachings, worse")
    assert good.endswith("] in 3 of 3 teachings")
    assert worst.endswith("] in 2 of 3 teachings")


def test_lists_of_games_are_those_of_the_first_run(tmp_path: Path, script_of: Scripts) -> None:
    script = script_of("memory.py")
    file = tmp_path / "out" / "games.json"

    def late() -> list[str]:
        script["kept"](file, lambda: ["first"])
        return ["second"]

    assert script["kept"](file, late) == ["first"], "another run was faster"
    assert [path.name for path in file.parent.iterdir()] == ["games.json"]


def test_teachings_of_killed_runs_are_removed(tmp_path: Path, script_of: Scripts) -> None:
    """A folder is left alone as long as a file in it changes."""
    script, now = script_of("memory.py"), time.time()
    for name in ("unfinished-old", "unfinished-new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.db").touch()
        os.utime(tmp_path / name / "a.db", (now, now - 4000 * (name == "unfinished-old")))
        os.utime(tmp_path / name, (now, now - 4000))
    script["remove_abandoned"](tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["unfinished-new"]


def test_progress_in_large_steps(script_of: Scripts, capsys: pytest.CaptureFixture[str]) -> None:
    progress = script_of("long_runs.py")["Progress"](100)
    for done in (0, 60, 120, 180, 240, 250):
        progress("matches", done, 250)
    assert capsys.readouterr().err.splitlines() == ["120 of 250 matches", "240 of 250 matches", "250 of 250 matches"]


def test_pairs_of_the_map_of_features_that_fail(
    tmp_path: Path, script_of: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of the source are played. A pair is left out by later runs, unless only its process died."""
    script = script_of("feature_map.py")
    plan = script["plan_of"]("s", ["large", "dying", "good"], tmp_path, 1, 10)
    scope, played = script["play"].__globals__, list[list[str]]()

    def run(grid: SettingGrid[Setting], *_: object, **__: object) -> None:
        own = [name for name in ("large", "dying", "good") if any(name in setting for setting in grid.settings)]
        played.append(own)
        if "large" in own:
            raise GameloreError("too many positions")
        if "dying" in own:
            raise ExperimentError("one died")

    monkeypatch.setitem(scope, "run_grid", run)
    with ResultStore(tmp_path / "results.db") as store:
        assert script["play"](plan, store, 1, "1") == 2
        assert store.noted("left out") == {"s/large": "too many positions"}
        assert script["play"](plan, store, 1, "1") == 1
        assert [*script["gains"](plan, store)] == []
    assert played == [
        ["large", "dying", "good"],
        ["large"],
        ["dying"],
        ["good"],
        ["dying", "good"],
        ["dying"],
        ["good"],
    ]


def test_a_job_that_fails_costs_only_itself(tmp_path: Path, script_of: Scripts) -> None:
    script = script_of("long_runs.py")
    setting, broken = MemorySetting("a/b", "a", 1, 1, "known", (), 1.0, 1.0, 2.0, 1, 1), [True]

    def play(job: MemoryJob, report: Report) -> list[Outcome]:
        if broken:
            raise ZeroDivisionError("a bug")
        return [Outcome(job.trial)]

    job, tolerant = MemoryJob(Trial(setting, 3), tmp_path), script["Tolerant"](play, tmp_path / "failures")
    assert tolerant(job, lambda num: None) == []
    assert script["told_failures"](tmp_path / "failures") == 1
    (failure,) = (tmp_path / "failures").iterdir()
    name, _, run = failure.stem.rpartition("-")
    assert script["told_failures"](tmp_path / "failures", [(name, int(run) + 1)]) == 1
    assert script["told_failures"](tmp_path / "failures", [(name, int(run))]) == 0, "another machine has played it"
    assert "a bug" in (tmp_path / "failures" / "a-b-3.txt").read_text()
    broken.clear()
    assert len(tolerant(job, lambda num: None)) == 1
    assert script["told_failures"](tmp_path / "failures") == 0


def test_proofs(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "proofs.py", "--positions", "20", "--games", "tictactoe,capturego3"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    assert "20 positions of 2 games, 0 contradictions" in done.stdout


def test_trees_for_proofs_go_on_where_goals_are_not_as_assumed(script_of: Scripts) -> None:
    """Two roles of connect3 get 100 together, not 90."""
    game = gamelore.load("connect3")
    stem = Stem(game, GrowthSettings(), memory=16)
    stem.begin(game.initial, stream(1), no_prior(game), 90)
    script_of("proofs.py")["_grow"](stem, 500)
    assert stem.tree.assumption == UNRELATED
    assert stem.visits > 400, "without the walks of the first batch"


TACTICS: list[dict[str, Any]] = json.loads((BENCHMARKS / "tactics.json").read_text(encoding="ascii"))


def test_the_stored_tactics_are_what_the_issue_asks_for() -> None:
    games = Counter(tactic["sheet"] for tactic in TACTICS)
    assert len(TACTICS) == 200
    assert len(games) == 10
    assert max(games.values()) <= 30
    assert sum(tactic["is_missed"] for tactic in TACTICS) >= 100, "by uct, in 0.2 s"
    assert all(1 <= len(tactic["keep"]) <= tactic["legal"] / 3 for tactic in TACTICS)
    assert len({(tactic["sheet"], *tactic["moves"]) for tactic in TACTICS}) == 200


@pytest.mark.parametrize("name", ["othello4", "nim4", "chomp"])
def test_stored_moves_keep_the_solved_value(name: str, request: pytest.FixtureRequest) -> None:
    shipped = name == "othello4"
    game = gamelore.load(name if shipped else request.getfixturevalue("shared") / "games" / f"{name}.kif")
    for tactic in TACTICS:
        if tactic["sheet"] == name:
            assert keeping(game, tactic["moves"]) == set(tactic["keep"])


def keeping(game: Game, moves: list[str]) -> set[str]:
    """The moves that keep the value after some moves of those who have a choice, by the solver."""
    position, solution = game.start(), solve(game)
    for move in moves:
        own = {role: legal[0] if len(legal) == 1 else move for role, legal in position.legal.items()}
        if all(len(legal) == 1 for legal in position.legal.values()):
            assert move in own.values()
        position = position.play(own)
    role, legal = max(position.legal.items(), key=lambda item: len(item[1]))
    forced = {other: own[0] for other, own in position.legal.items()}
    later = [position.play(forced | {role: move}) for move in legal]
    assert not any(end.is_terminal and end.goals[role] == 100 for end in later), "no win in one ply"
    index = game.roles.index(role)
    value = solution.look_up(position.state[None])[0][0, index]
    values = [solution.look_up(after.state[None])[0][0, index] for after in later]
    return {move for move, reached in zip(legal, values, strict=True) if reached == value}


def test_tactics(tmp_path: Path) -> None:
    options = ["--sheets", tmp_path, "--games", "othello4", "--player", "gamelore:simulations=300,threads=1"]
    command = [sys.executable, BENCHMARKS / "tactics.py", *options]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    asked = sum(tactic["sheet"] == "othello4" for tactic in TACTICS)
    right, wrong = done.stdout.count(f" of {asked} right"), done.stdout.count("wrong: ")
    assert right == 1, done.stderr
    assert done.returncode == (asked - wrong < 0.95 * asked)


def test_openspiel_matches(shared: Path, tmp_path: Path, invoked: Callable[..., Any]) -> None:
    pytest.importorskip("pyspiel", reason="open_spiel is not installed")
    script, sheets = BENCHMARKS / "openspiel_matches.py", ["--sheets", shared / "games"]
    command = [sys.executable, script, *sheets, "--check", "--matches", "2"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    assert done.stdout.count(" positions compared, equal") == 5
    unknown = invoked(script.name, *sheets, "--check", "--games", "hexx,hex")
    assert unknown.exit_code == 2
    assert "got hexx" in unknown.stderr
    table = tmp_path / "rows.csv"
    options = ["--games", "breakthroughSmall", "--seconds", "0.001", "--matches", "2", "--csv", table]
    subprocess.run([sys.executable, script, *sheets, *options], check=True, cwd=tmp_path, env=ENVIRONMENT)
    assert invoked(script.name, *sheets, *options).exit_code == 0
    with table.open(encoding="ascii", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["number"] for row in rows] == ["0", "1"], "the second run has nothing to play"
    assert all(row["score"] in ("0.0", "1.0") and float(row["theirs"]) > 0 for row in rows)


def test_the_mean_against_openspiel_takes_families_as_clusters(
    script_of: Scripts, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = {"breakthrough": 0.9, "breakthroughSmall": 0.8, "hex": 0.4, "reversi": 0.6}
    rows = [
        {"game": name, "number": str(number), "score": str(score), "ours": "1", "theirs": "1"}
        for name, score in scores.items()
        for number in range(4)
    ]
    script_of("openspiel_matches.py")["report"](rows, list(scores))
    mean = clustered_interval(list(scores.values()), ["b", "b", "h", "r"])
    cells = f"{100 * mean.mean:.0f} | {100 * max(0, mean.low):.0f} to {100 * min(1, mean.high):.0f}"
    assert f"| mean | | {cells} |" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "seconds"), [("load", 5), pytest.param("serve", 2, marks=pytest.mark.long)])
def test_explosions(tmp_path: Path, name: str, seconds: int) -> None:
    """The reasoner plays this sheet, whose facts grow with each move, until the limit of time.

    Within 5 seconds a slow machine, too, stores more of them than a load of tictactoe takes in all.
    """
    limits = ["--seconds", f"{seconds}", "--memory", "1"]
    options = ["--explosions", "successors", "--commands", name, *limits, "--json"]
    command = [sys.executable, BENCHMARKS / "explosions.py", *options]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    (row,) = json.loads(done.stdout)
    assert (row["explosion"], row["command"]) == ("successors", name)
    assert row["message"].startswith("START was answered by 'ready'" if name == "serve" else "")
    assert row["of_time"] > 0
    assert row["of_memory"] > 0
    assert {"traceback", "no answer"}.isdisjoint(row["faults"])


def test_deviations_between_games_and_teachings(script_of: Scripts) -> None:
    """Two games with two teachings of two pairs: variances 200 of pairs, 200 of teachings, 50 of games."""
    deviations = script_of("memory.py")["deviations"]
    scores = [[[40.0, 60.0], [60.0, 80.0]], [[50.0, 70.0], [30.0, 50.0]]]
    assert deviations(scores) == pytest.approx((0.0, 10.0, 200**0.5))
    apart = [[[40.0, 60.0], [60.0, 80.0]], [[90.0, 110.0], [110.0, 130.0]]]
    assert deviations(apart) == pytest.approx(((1250.0 - 100.0) ** 0.5, 10.0, 200**0.5))
    assert deviations([teachings[:1] for teachings in scores]) == (None, None, pytest.approx(200**0.5))


def test_lessons(tmp_path: Path, invoked: Callable[..., Any]) -> None:
    """A store with one lesson has no games of the other kinds. A second run goes on with it and teaches no more."""
    shutil.copy(gamelore.rulesheets.path("tictactoe"), tmp_path)
    store = ["--games", "1", "--seconds", "0.1", "--store", tmp_path / "store.db"]
    command = [sys.executable, BENCHMARKS / "lessons.py", tmp_path, *store, "--json"]
    options = ["--drawn", "1", "--repeats", "1", "--clocked", "1", "--startclocks", "0.3"]
    done = subprocess.run(
        [*command, *options], check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT
    )
    rows = json.loads(done.stdout)
    found = {"known": "lesson", "renamed": "lesson", "moved": "variant", "unrelated": "nothing"}
    assert {row["kind"]: row["found"] for row in rows["retrievals"]} == found
    assert [(row["kind"], row["match"]) for row in rows["startclocks"]] == [(kind, n) for kind in found for n in (1, 2)]
    assert all(row["retrieval"] > 0 for row in rows["startclocks"])
    assert max(row["teaching"] for row in rows["startclocks"] if row["kind"] == "unrelated") > 0.1
    again = invoked("lessons.py", *command[2:], "--drawn", "0")
    assert again.exit_code == 0
    assert json.loads(again.stdout) == {**rows, "retrievals": [], "startclocks": []}
    assert "1 of 1 lessons" in done.stderr
    assert not again.stderr


def test_kept_trials_go_from_store_to_store(script_of: Scripts, tmp_path: Path) -> None:
    names, file = script_of("kept_trials.py"), tmp_path / "trials.jsonl.gz"
    settings = [MemorySetting(f"{name}/known/1s", name, 1, 2, "known", (), 1.0, 1.0, 2.0, 1, 1) for name in "ab"]
    first, second = (tmp_path / name / "results.db" for name in ("first", "second"))
    for path, setting in zip((first, second), settings, strict=True):
        with ResultStore(path) as store:
            rewards = None if setting is settings[0] else np.array([1.5, 2.5], "f4")
            store.add([Outcome(Trial(setting, 1), rewards, result={"scores": [50.0]})], "v1")
    names["main"](first.parent, file)
    names["main"](second.parent, file)
    whole = file.read_bytes()
    names["main"](first.parent, file)
    assert file.read_bytes() == whole, "everything was in the file"
    for path in (first, second):
        with ResultStore(path) as store:
            assert store.finished() == {("a/known/1s", 1), ("b/known/1s", 1)}
            assert store.by_run("a/known/1s") == {1: {"scores": [50.0]}}
    assert names["stored"](first) == names["stored"](second)
    third = tmp_path / "third" / "results.db"
    with ResultStore(third) as store:
        store.add([Outcome(Trial(settings[0], 1), result={"scores": [0.0]})], "v1")
    with pytest.raises(SystemExit, match="run 1 of a/known/1s"):
        names["main"](third.parent, file)
    assert file.read_bytes() == whole


def test_search(script_of: Scripts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A shipped game, hundredths of a second, and a lesson of one round."""
    script = script_of("search.py")
    small: dict[str, Any] = {
        "GAMES": {"connectfour": ("connect_four", 1000)},
        "SECOND": 0.01,
        "PRACTICE": 100,
    }
    for name, value in small.items():
        monkeypatch.setitem(script["main"].__globals__, name, value)
    script["main"](sheets=gamelore.rulesheets.path("connectfour").parent, teaching=1000)
    settings, head, row = capsys.readouterr().out.splitlines()
    assert settings.startswith("settings: GrowthSettings(")
    assert head.split()[:3] == ["game", "first", "state"]
    name, first, nodes, median, least, most, informed, without, wanted, _ = row.replace(",", "").split()
    assert (name, informed, wanted) == ("connectfour", "0%", "1000")
    assert min(map(float, (first, nodes, without))) > 0
    assert 0 < float(least.strip("[")) <= float(median) <= float(most.strip("]"))


def test_uct(script_of: Scripts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = script_of("uct.py")
    for name, value in (("MATCHES", 2), ("SIMULATIONS", 20)):
        monkeypatch.setitem(script["main"].__globals__, name, value)
    script["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:8]] == ["connectfour", "tictactoe"] * 2 + ["connectfour"] * 4
    assert [" 2 matches: " in line for line in lines[:4]] == [True] * 4
    assert all(float(line.split(" simulations/s")[0].split()[-1].replace(",", "")) > 0 for line in lines[4:])


def test_simultaneous(tmp_path: Path) -> None:
    options = ["--cards", "3", "--simulations", "20,40", "--seeds", "2"]
    command = [sys.executable, BENCHMARKS / "simultaneous.py", "goofspiel", *options]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert [row[:2] for row in rows] == [[rule, walks] for rule in ("uct", "regret", "exp3") for walks in ("20", "40")]
    assert all(0 <= float(least) <= float(mean) <= float(most) for _, _, mean, least, most in rows)


def test_goofspiel_with_five_cards_is_the_shipped_one(script_of: Scripts) -> None:
    five, shipped = script_of("simultaneous.py")["goofspiel"](5), gamelore.load("goofspiel")
    assert set(five.rulesheet.rules) == set(shipped.rulesheet.rules)


FAILING = """
from gamelore.players.player import Player

class Failing(Player):
    def choose(self, turn):
        raise ValueError("as always")
"""


def test_late(tmp_path: Path) -> None:
    """The player fails in its turns, at least three of them before the end of a match, and the server answers."""
    (tmp_path / "failing.py").write_text(FAILING, encoding="ascii")
    given = [gamelore.rulesheets.path("tictactoe").parent, "--sheets", "tictactoe", "--moves", "1", "--burners", "0"]
    command = [sys.executable, BENCHMARKS / "late.py", *given, "--player", f"{tmp_path / 'failing.py'}:Failing"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    counts = ",".join(rf" +(\d+) {what}" for what in ("moves", "late", "nil", "faulty", "first"))
    printed = re.fullmatch(rf"tictactoe{counts}, slowest \d+\.\d\d s; slowest START \d+\.\d s\n", done.stdout)
    assert printed, done.stdout
    asked, faulty, first = int(printed[1]), int(printed[4]), int(printed[5])
    assert asked >= 5
    assert faulty == 0, "the server answers with legal moves"
    assert first >= 3


def test_a_player_without_any_answer_is_told_of(script_of: Scripts) -> None:
    script = script_of("late.py")
    seat = script["TimedSeat"]("http://nowhere", None)
    seat.num_asked = 3
    log = "match m: the player is late, the server answers (mark 1 1)\nmatch m: the player made no move: died\n"
    told = "quad             3 moves,   3 late,   0 nil,   0 faulty,   2 first, slowest -; slowest START -"
    assert script["line"]("quad", seat, log, 1) == told


def test_answers_of_the_server_are_counted_by_what_it_logs(script_of: Scripts) -> None:
    script, source = script_of("late.py"), Path(player_server.__file__).read_text(encoding="utf-8")
    assert [source.count(script[name].rstrip(": ")) for name in ("LATE", "FAILED")] == [1, 1]
