"""Perft depth by depth: positions too, how far it is while it counts, and how much memory it takes."""

import tracemalloc
from itertools import islice

import pytest

import gamelore
from gamelore import rulesheets
from gamelore.analysis import perft
from gamelore.analysis.perft import Level, levels


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
    monkeypatch.setattr(perft, "BATCH", 30)
    told = []
    counting = levels(gamelore.load("tictactoe"), lambda done, total: told.append((done, total)))
    assert [level.depth for level in islice(counting, 3)] == [0, 1, 2]
    assert told == [(9, 9), (30, 72), (60, 72), (72, 72)]


def test_many_joint_moves_to_few_positions_take_little_memory():
    moves = " ".join(f"(legal {role} {number})" for role in "ab" for number in range(900))
    game = gamelore.load(f"(role a) (role b) {moves} (init s) (<= (next s) (true s)) (<= terminal (true t)) (goal a 1)")
    next(levels(game))
    tracemalloc.start()
    try:
        assert list(islice(levels(game), 2))[1] == Level(1, 810_000, 0, 1)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_counts_do_not_depend_on_the_size_of_the_parts(monkeypatch, size):
    expected = list(islice(levels(gamelore.load("tictactoe")), 6))
    monkeypatch.setattr(perft, "BATCH", size)
    monkeypatch.setattr(perft, "BATCH_BYTES", 40 * size)
    assert list(islice(levels(gamelore.load("tictactoe")), 6)) == expected


def test_more_positions_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr(perft, "MOST_LEVEL_BYTES", 4000)
    with pytest.raises(gamelore.GameloreError, match=r"positions of one depth, got more than \d+ positions; the game"):
        list(levels(gamelore.load("tictactoe")))
