"""The runner: batches, workers, resuming."""

from pathlib import Path

import numpy as np
import pytest

from gamelore.errors import ExperimentError
from gamelore.lab.grid import Grid
from gamelore.lab.runner import Batch, Lane, Report, batches, play_batch, run_grid
from gamelore.lab.trials import Outcome, TrialStore
from gamelore.learn.transfer import LearnerSettings
from gamelore.play.player import OpponentSettings
from lab.pretended import die, make_setting, make_source, pretend


def small_grid(runs: int = 3) -> Grid:
    source = make_source(runs=runs)
    return Grid.of([make_setting("a", runs=runs, source=source), make_setting("b", runs=runs, game="other")])


def test_batches_hold_one_game_and_are_shared_evenly(store: TrialStore) -> None:
    settings = [make_setting("a", runs=5), make_setting("b", runs=4), make_setting("c", game="other")]
    found = list(batches(Grid.of(settings).trials(), store, workers=2))
    assert [(batch.game, len(batch.lanes)) for batch in found] == [("game", 4), ("game", 5), ("other", 1), ("other", 2)]
    assert len({lane.trial.key for batch in found for lane in batch.lanes}) == 12


def test_everything_is_played_once(store: TrialStore) -> None:
    summary = run_grid(small_grid(), store, workers=1, progress=False, play=pretend)
    assert (summary.played, summary.found) == (9, 0)
    again = run_grid(small_grid(), store, workers=1, progress=False, play=pretend)
    assert (again.played, again.found) == (0, 9)
    more = run_grid(small_grid(runs=5), store, workers=1, progress=False, play=pretend)
    assert (more.played, more.found) == (6, 9)


def test_targets_get_the_values_of_their_own_source_run(store: TrialStore) -> None:
    given: dict[int, float] = {}

    def watch(batch: Batch, report: Report) -> list[Outcome]:
        given.update({lane.trial.run: lane.values["L,{W}"][0] for lane in batch.lanes if lane.values})
        return pretend(batch, report)

    run_grid(small_grid(), store, workers=1, progress=False, play=watch)
    assert given == {0: 0.0, 1: 1.0, 2: 2.0}


def test_printed_values_stand_for_a_source(store: TrialStore) -> None:
    setting = make_setting("printed", printed="weak", runs=1)
    (batch,) = batches(Grid.of([setting]).trials(), store, workers=1)
    assert batch.lanes[0].values is not None
    assert batch.lanes[0].values["{D}"] == (50.0, 1)


def test_a_run_that_broke_off_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def break_off(batch: Batch, report: Report) -> list[Outcome]:
        if batch.game == "other":
            raise KeyboardInterrupt
        return pretend(batch, report)

    grid = small_grid()
    with TrialStore(tmp_path / "broken.db") as store:
        with pytest.raises(KeyboardInterrupt):
            run_grid(grid, store, workers=1, progress=False, play=break_off)
        assert len(store.finished()) == 6
    with TrialStore(tmp_path / "broken.db") as store, TrialStore(tmp_path / "whole.db") as whole:
        assert run_grid(grid, store, workers=1, progress=False, play=pretend).found == 6
        run_grid(grid, whole, workers=1, progress=False, play=pretend)
        for name in grid.settings:
            assert np.array_equal(store.rewards(name), whole.rewards(name))


def test_two_workers_find_the_same_as_one(tmp_path: Path) -> None:
    grid = small_grid()
    with TrialStore(tmp_path / "one.db") as one, TrialStore(tmp_path / "two.db") as two:
        run_grid(grid, one, workers=1, progress=False, play=pretend)
        run_grid(grid, two, workers=2, progress=False, play=pretend)
        for name in grid.settings:
            assert np.array_equal(one.rewards(name), two.rewards(name))


def test_a_worker_that_dies_is_reported(store: TrialStore) -> None:
    with pytest.raises(ExperimentError, match="fewer --workers, finished trials are kept"):
        run_grid(small_grid(), store, workers=2, progress=False, play=die)


def test_results_of_other_settings_are_refused(store: TrialStore) -> None:
    run_grid(small_grid(), store, workers=1, progress=False, play=pretend)
    with pytest.raises(ExperimentError, match="choose another folder"):
        run_grid(Grid.of([make_setting("b", game="third")]), store, workers=1, progress=False, play=pretend)


def test_real_matches_do_not_depend_on_the_batch() -> None:
    setting = make_setting(
        "tictactoe/egreedy/source", game="tictactoe", runs=4, matches=30, stage="source", extract=True,
        learner=LearnerSettings(epsilon=0.5), opponent=OpponentSettings(filler="hashed"),
    )  # fmt: skip
    counted: list[int] = []
    lanes = [Lane(trial, None) for trial in Grid.of([setting]).trials()]
    together = play_batch(Batch("tictactoe", 0, 30, "source", tuple(lanes)), counted.append)
    (alone,) = play_batch(Batch("tictactoe", 0, 30, "source", (lanes[2],)), counted.append)
    assert np.array_equal(alone.rewards, together[2].rewards)
    assert np.array_equal(alone.lengths, together[2].lengths)
    assert alone.values is not None
    assert together[2].values is not None
    assert dict(alone.values) == dict(together[2].values)
    assert sum(counted) == 5 * 30
    assert set(np.unique(alone.rewards)) <= {0.0, 50.0, 100.0}
