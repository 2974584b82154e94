"""Perft depth by depth: positions too, and how far it is while it counts."""

from itertools import islice

import pytest

import gamelore
from gamelore import rulesheets
from gamelore.analysis import explore
from gamelore.analysis.explore import Level, levels


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "pegsolitaire"])
def test_levels_have_the_positions_of_the_fixtures(name):
    counts = rulesheets.counts(name)
    counted = list(islice(levels(gamelore.load(name)), 6))
    assert {level.depth: level.positions for level in counted[1:]} == {d: counts.positions[d] for d in range(1, 6)}
    assert counted[0] == Level(0, 1, 0, 1)


def test_levels_end_with_the_last_match():
    last = list(levels(gamelore.load("tictactoe")))[-1]
    assert last == Level(9, 127_872, 127_872, 78)


def test_the_next_depth_is_told_while_it_is_worked_out(monkeypatch):
    monkeypatch.setattr(explore, "BATCH", 30)
    told = []
    counting = levels(gamelore.load("tictactoe"), lambda done, total: told.append((done, total)))
    assert [level.depth for level in islice(counting, 3)] == [0, 1, 2]
    assert told == [(9, 9), (30, 72), (60, 72), (72, 72)]
