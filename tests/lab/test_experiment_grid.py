"""Grids: what decides a trial, and what belongs to it."""

from dataclasses import replace

import pytest

from gamelore.errors import ExperimentError
from gamelore.lab.experiment import SettingGrid
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import OpponentSettings
from lab.pretended import make_setting, make_source


def test_hashed_opponents_have_another_order_in_every_run_unless_told() -> None:
    setting = make_setting()
    keys = {setting.opponent_of(run).hash_key for run in range(5)}
    assert len(keys) == 5
    assert setting.opponent_of(0) == make_setting("another/name").opponent_of(0)
    assert setting.opponent_of(0) != make_setting(seed=2).opponent_of(0)
    assert replace(setting, keyed=False).opponent_of(3) == setting.opponent
    first = make_setting(opponent=OpponentSettings(filler="first"))
    assert first.opponent_of(3) == first.opponent


def test_a_description_holds_everything_but_the_number_of_runs() -> None:
    setting = make_setting(source=make_source())
    assert setting.text == replace(setting, runs=99).text
    for change in (
        {"matches": 5},
        {"seed": 2},
        {"learner": LearnerSettings(alpha=0.1)},
        {"opponent": OpponentSettings(epsilon=0.2)},
        {"source": make_source(matches=7)},
        {"source": None},
    ):
        assert replace(setting, **change).text != setting.text  # type: ignore[arg-type]


def test_settings_of_an_older_store_are_still_the_same() -> None:
    learner = make_setting().describe()["learner"]
    assert sorted(learner) == [
        "alpha", "control", "default", "depth", "epsilon", "equivalence", "gamma", "heuristic", "initialisation",
        "kind", "lam", "ties",
    ]  # fmt: skip
    merging = make_setting(learner=LearnerSettings(symmetry="all"))
    assert merging.describe()["learner"] == learner | {"symmetry": "all"}
    assert merging.text != make_setting().text


def test_a_grid_takes_sources_in_with_the_runs_that_are_needed() -> None:
    source = make_source(runs=1)
    grid = SettingGrid.of([make_setting("a", runs=2, source=source), make_setting("b", runs=5, source=source)])
    assert {name: one.runs for name, one in grid.settings.items()} == {source.id: 5, "a": 2, "b": 5}
    assert sum(1 for _ in grid.trials()) == 12


def test_sources_come_before_what_needs_them_and_all_else_last() -> None:
    first = make_source()
    second = make_source("second/egreedy/source", source=first)
    grid = SettingGrid.of([make_setting("target", source=second), make_setting("plain")])
    assert [sorted(one.id for one in stage) for stage in grid.stages()] == [
        ["source/egreedy/source"],
        ["second/egreedy/source"],
        ["plain", "target"],
    ]


def test_one_name_stands_for_one_setting() -> None:
    with pytest.raises(ExperimentError, match="expected one setting with the name game/egreedy/baseline, got two"):
        SettingGrid.of([make_setting(), make_setting(seed=5)])


def test_impossible_settings() -> None:
    with pytest.raises(ExperimentError, match="at least one run and one match"):
        make_setting(runs=0)
    with pytest.raises(ExperimentError, match="keeps its feature values"):
        make_setting(source=make_setting("plain"))
