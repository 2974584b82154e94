"""The store of trials: whole or not at all, and never overwritten."""

import csv
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gamelore.errors import ExperimentError
from gamelore.lab import results
from gamelore.lab.experiment import Batch, Lane, SettingGrid, code_version, run_grid
from gamelore.lab.papers.lock2004.plan import Plan
from gamelore.lab.results import Outcome, ResultStore, Trial, store_path
from gamelore.learning.store.features import FeatureValues
from lab.pretended import make_setting, make_source, pretend

VERSION = "1.0"


def outcomes_of(*settings_and_runs: tuple[object, int]) -> list[Outcome]:
    lanes = tuple(Lane(Trial(setting, run), None) for setting, run in settings_and_runs)  # type: ignore[arg-type]
    setting = lanes[0].trial.setting
    return pretend(Batch(setting.game, 0, setting.matches, setting.stage, lanes), lambda matches: None)


def test_what_goes_in_comes_out(store: ResultStore) -> None:
    source = make_source(runs=2)
    outcomes = outcomes_of((source, 1), (source, 0))
    store.add(outcomes, VERSION)
    assert store.finished() == {(source.id, 0), (source.id, 1)}
    assert np.array_equal(store.rewards(source.id), [outcomes[1].rewards, outcomes[0].rewards])
    assert sorted({run for _, run, *_ in store.matches()}) == [0, 1]
    lengths = [(name, run, number, length) for name, run, number, _, length, *_ in store.matches()]
    assert lengths == [(source.id, run, number, number - 1) for run in (0, 1) for number in (1, 2, 3, 4)]
    assert [dict(values) for values in store.values(source.id)] == [{"L,{W}": (0.0, 5)}, {"L,{W}": (1.0, 5)}]
    assert store.rules() == {"source": "rules of source"}
    assert store.totals()["matches"] == 8


def test_replies_are_kept_with_feature_values(store: ResultStore) -> None:
    source, replies = make_source(runs=1), {(1, 0, 0, 2, 0): 7, (0, 0, 1, 1, 3): 2}
    (outcome,) = outcomes_of((source, 0))
    values = FeatureValues({"L": (20.0, 3)}, (0, 100), 2, replies)
    store.add([replace(outcome, values=values)], VERSION)
    (read,) = store.values(source.id)
    assert (dict(read), read.outcomes, read.depth, read.replies) == (dict(values), (0, 100), 2, replies)


def test_a_trial_is_never_overwritten(store: ResultStore) -> None:
    setting = make_setting()
    store.add(outcomes_of((setting, 0)), VERSION)
    with pytest.raises(ExperimentError, match="not yet in"):
        store.add(outcomes_of((setting, 1), (setting, 0)), VERSION)
    assert store.finished() == {(setting.id, 0)}, "all of a batch or none of it"


def test_other_settings_are_refused(store: ResultStore) -> None:
    store.add(outcomes_of((make_setting(), 0)), VERSION)
    store.check(SettingGrid.of([make_setting(runs=9)]).settings, VERSION)
    with pytest.raises(ExperimentError, match=r"game/egreedy/baseline: seed was 1, is 2; choose another folder"):
        store.check(SettingGrid.of([make_setting(seed=2)]).settings, VERSION)
    with pytest.raises(ExperimentError, match=r"expected results of gamelore 1\.1, got results of 1\.0"):
        store.check(SettingGrid.of([make_setting()]).settings, "1.1")


def test_a_store_of_earlier_code_opens_and_is_not_gone_on_with(store: ResultStore) -> None:
    setting = make_setting()
    store.add(outcomes_of((setting, 0)), "0.1.0+0f3ab21c")
    with ResultStore(store.path) as again:
        assert again.finished() == {(setting.id, 0)}
        message = rf"expected results of gamelore {re.escape(code_version())}, got results of 0\.1\.0\+0f3ab21c"
        with pytest.raises(ExperimentError, match=message):
            run_grid(SettingGrid.of([setting]), again, progress=False, play=pretend)


def test_other_rules_are_refused(store: ResultStore) -> None:
    setting = make_setting()
    store.add(outcomes_of((setting, 0)), VERSION)
    other = Outcome(Trial(setting, 1), np.zeros(4, np.float32), np.zeros(4, np.int16), None, "changed rules")
    with pytest.raises(ExperimentError, match="expected the rules of game"):
        store.add([other], VERSION)


def test_missing_runs_are_named(store: ResultStore) -> None:
    setting = make_setting()
    store.add(outcomes_of((setting, 0)), VERSION)
    assert store.rewards(setting.id, 1).shape == (1, 4)
    with pytest.raises(ExperimentError, match="expected 2 finished runs of game/egreedy/baseline"):
        store.rewards(setting.id, 2)


def test_every_match_is_a_row(store: ResultStore, tmp_path: Path) -> None:
    setting = make_setting()
    outcomes = outcomes_of((setting, 0), (setting, 1))
    store.add(outcomes, VERSION)
    assert store.export_matches(tmp_path / "matches.csv") == 8
    with (tmp_path / "matches.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["reward"]) for row in rows[:4]] == outcomes[0].rewards.tolist()
    wanted = {"experiment": setting.id, "run": "1", "match": "4", "opponent": "egreedy", "seed": "1", "version": "1.0"}
    assert wanted.items() <= rows[-1].items()
    made = {"alpha": "0.3", "lambda": "0.7", "epsilon": "0.01", "stage": "target", "rules_hash": "rules of game"}
    assert made.items() <= rows[-1].items()
    assert [path.name for path in tmp_path.glob("*.csv*")] == ["matches.csv"]


def test_notes(store: ResultStore) -> None:
    assert store.noted("cost") is None
    store.note("cost", [1.5, 2.0])
    assert store.noted("cost") == [1.5, 2.0]


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        ExperimentError,
        match=r"expected a folder that can be written at .*; name another "
        r"folder with --out",
    ):
        ResultStore(tmp_path / "file" / "results.db")


def test_files_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be looked at as one " * 40)
    with pytest.raises(ExperimentError, match="expected a store of trials"):
        ResultStore(tmp_path / "text")
    with sqlite3.connect(tmp_path / "foreign.db") as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    with pytest.raises(ExperimentError, match=r"expected trials of format 2 .* got format 0"):
        ResultStore(tmp_path / "foreign.db")


@pytest.mark.parametrize("version", [1, results.FORMAT])
def test_a_foreign_file_of_the_same_format_number(tmp_path: Path, version: int) -> None:
    path = tmp_path / "results.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(
        ExperimentError, match=r"expected trials of format 2 at .*, got the tables other; choose another"
    ):
        ResultStore(path)
    assert path.read_bytes() == content


def test_several_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    def open_it(path: Path) -> None:
        with ResultStore(path):
            pass

    paths = [tmp_path / f"{number}.db" for number in range(60) for _ in range(4)]
    with ThreadPoolExecutor(4) as openers:  # connections do not know whether they are of one process
        assert list(openers.map(open_it, paths)) == [None] * len(paths)


# ---- files of format 1, written by gamelore 0.1.0 before its two stores became one ----

FORMER = Path(__file__).parent / "stores_of_format_1"
FORMER_VERSION = "0.1.0+old"


def test_a_store_of_series_of_format_1_goes_on(tmp_path: Path) -> None:
    shutil.copy(FORMER / "results.db", tmp_path)
    source = make_source(runs=2)
    grid = SettingGrid.of([make_setting("a", runs=2, source=source)])
    for _ in range(2):  # the second time it is of the new format
        with ResultStore(store_path(tmp_path)) as store:
            assert store.rewards("a").tolist() == [[100, 100, 50, 100], [0, 100, 50, 50]]
            assert [row[4] for row in store.matches() if row[0] == "a"] == [0, 1, 2, 3] * 2
            assert [dict(values) for values in store.values(source.id)] == [{"L,{W}": (0.0, 5)}, {"L,{W}": (1.0, 5)}]
            assert store.totals() == {"trials": 4, "matches": 16, "stuck": 0, "missing": 0}
            assert store.rules() == {"game": "rules of game", "source": "rules of source"}
            assert store.noted("cost") == [1.5]
            assert store.export_matches(tmp_path / "matches.csv") == 16
            ran = run_grid(grid, store, workers=1, progress=False, play=pretend, version=FORMER_VERSION)
            assert (ran.played, ran.stored) == (0, 4)
            with pytest.raises(ExperimentError, match=r"expected results of gamelore 2, got results of 0\.1\.0\+old"):
                store.check(grid.settings, "2")


def test_a_store_of_runs_of_format_1_goes_on(tmp_path: Path) -> None:
    shutil.copy(FORMER / "runs.db", tmp_path)
    baseline = Plan(games=("losetictactoe",)).core()[0]
    scores = [{"scores": {"random player": {"perfect": [50, run, 5]}}} for run in range(2)]
    for _ in range(2):
        with ResultStore(store_path(tmp_path)) as store:
            assert store.results(baseline.id) == scores
            assert store.finished() == {(baseline.id, 0), (baseline.id, 1)}
            assert store.rules() == {"losetictactoe": "rules of losetictactoe"}
            assert store.seconds("core") == 3.0
            store.check({baseline.id: baseline}, FORMER_VERSION)
            with pytest.raises(ExperimentError, match=f"other settings in {baseline.id}: seed was 2004, is 5"):
                store.check({baseline.id: replace(baseline, seed=5)}, FORMER_VERSION)


def test_a_migration_that_breaks_off_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(FORMER / "runs.db", tmp_path)
    with monkeypatch.context() as broken:
        broken.setitem(results._STATEMENTS, "runs", (*results._STATEMENTS["runs"], "DROP TABLE missing"))
        with pytest.raises(ExperimentError, match=r"expected a store of trials at .*, got no such table"):
            ResultStore(store_path(tmp_path))
    with ResultStore(store_path(tmp_path)) as store:
        assert len(store.finished()) == 2
