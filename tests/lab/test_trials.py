"""The store of trials: whole or not at all, and never overwritten."""

import csv
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gamelore.errors import ExperimentError
from gamelore.lab.grid import Grid, Trial
from gamelore.lab.runner import Batch, Lane
from gamelore.lab.trials import Outcome, TrialStore
from lab.pretended import make_setting, make_source, pretend

VERSION = "1.0"


def outcomes_of(*settings_and_runs: tuple[object, int]) -> list[Outcome]:
    lanes = tuple(Lane(Trial(setting, run), None) for setting, run in settings_and_runs)  # type: ignore[arg-type]
    setting = lanes[0].trial.setting
    return pretend(Batch(setting.game, 0, setting.matches, setting.stage, lanes), lambda matches: None)


def test_what_goes_in_comes_out(store: TrialStore) -> None:
    source = make_source(runs=2)
    outcomes = outcomes_of((source, 1), (source, 0))
    store.add(outcomes, VERSION)
    assert store.finished() == {(source.id, 0), (source.id, 1)}
    assert store.runs(source.id) == [0, 1]
    assert np.array_equal(store.rewards(source.id), [outcomes[1].rewards, outcomes[0].rewards])
    assert store.lengths(source.id).tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert [dict(values) for values in store.values(source.id)] == [{"L,{W}": (0.0, 5)}, {"L,{W}": (1.0, 5)}]
    assert store.rules() == {"source": "rules of source"}
    assert store.totals()["matches"] == 8


def test_a_trial_is_never_overwritten(store: TrialStore) -> None:
    setting = make_setting()
    store.add(outcomes_of((setting, 0)), VERSION)
    with pytest.raises(ExperimentError, match="not yet in"):
        store.add(outcomes_of((setting, 1), (setting, 0)), VERSION)
    assert store.runs(setting.id) == [0], "all of a batch or none of it"


def test_other_settings_are_refused(store: TrialStore) -> None:
    store.add(outcomes_of((make_setting(), 0)), VERSION)
    store.check(Grid.of([make_setting(runs=9)]), VERSION)
    with pytest.raises(ExperimentError, match=r"game/egreedy/baseline: seed was 1, is 2; choose another folder"):
        store.check(Grid.of([make_setting(seed=2)]), VERSION)
    with pytest.raises(ExperimentError, match=r"expected results of gamelore 1\.1, got 1\.0"):
        store.check(Grid.of([make_setting()]), "1.1")


def test_other_rules_are_refused(store: TrialStore) -> None:
    setting = make_setting()
    store.add(outcomes_of((setting, 0)), VERSION)
    other = Outcome(Trial(setting, 1), np.zeros(4, np.float32), np.zeros(4, np.int16), None, "changed rules")
    with pytest.raises(ExperimentError, match="expected the rules of game"):
        store.add([other], VERSION)


def test_missing_runs_are_named(store: TrialStore) -> None:
    setting = make_setting()
    store.add(outcomes_of((setting, 0)), VERSION)
    assert store.rewards(setting.id, 1).shape == (1, 4)
    with pytest.raises(ExperimentError, match="expected 2 finished runs of game/egreedy/baseline"):
        store.rewards(setting.id, 2)


def test_every_match_is_a_row(store: TrialStore, tmp_path: Path) -> None:
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


def test_notes(store: TrialStore) -> None:
    assert store.noted("cost") is None
    store.note("cost", [1.5, 2.0])
    assert store.noted("cost") == [1.5, 2.0]


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExperimentError, match=r"expected a folder that can be written at .*; name another with --out"):
        TrialStore(tmp_path / "file" / "results.db")


def test_files_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be looked at as one " * 40)
    with pytest.raises(ExperimentError, match="expected a store of trials"):
        TrialStore(tmp_path / "text")
    with sqlite3.connect(tmp_path / "foreign.db") as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    with pytest.raises(ExperimentError, match=r"expected trials of format 1 .* got format 0"):
        TrialStore(tmp_path / "foreign.db")


def test_several_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    def open_it(path: Path) -> None:
        with TrialStore(path):
            pass

    paths = [tmp_path / f"{number}.db" for number in range(60) for _ in range(4)]
    with ThreadPoolExecutor(4) as openers:  # connections do not know whether they are of one process
        assert list(openers.map(open_it, paths)) == [None] * len(paths)
