"""The perft counts beside the rulesheets, by both engines."""

import numpy as np
import pytest

import gamelore
from gamelore import rulesheets
from gamelore.analysis.perft import perft
from gamelore.game.engines import MOST_JOINT, Legal
from gamelore.game.game import make
from gamelore.gdl.syntax import parse

MOST_POSITIONS = {"native": 300_000, "reasoner": 700}


def depth_within(counts, most):
    """The depth down to which there are at most so many positions in all."""
    total = 1
    for depth in sorted(counts.positions):
        total += counts.positions[depth]
        if total > most:
            return depth - 1
    return max(counts.positions)


@pytest.mark.parametrize("engine", ["native", "reasoner"])
@pytest.mark.parametrize("name", rulesheets.names())
def test_counts(name, engine):
    counts = rulesheets.counts(name)
    depth = depth_within(counts, MOST_POSITIONS[engine])
    assert depth >= 1
    found = perft(gamelore.load(name, engine=engine), depth)
    assert dict(enumerate(found.sequences)) == {0: 1} | {d: n for d, n in counts.sequences.items() if d <= depth}
    if counts.complete is not None and depth == max(counts.sequences):
        assert sum(found.complete) == counts.complete


def test_connect_four_to_depth_seven():
    expected = (1, 7, 49, 343, 2401, 16807, 117649, 823536)
    assert perft(gamelore.load("connectfour", engine="native"), 7).sequences == expected


def test_more_joint_moves_than_a_float_counts_are_refused_without_a_warning():
    roles = range(1100)
    text = " ".join(f"(role r{i}) (legal r{i} a) (legal r{i} b) (goal r{i} 50)" for i in roles)
    text += "(init s) (<= (next s) (does r0 a)) (<= terminal (true t)) (<= (next t) (does r0 b))"
    game = make(parse(text), "many")
    assert game.legal(game.initial[None]).num_joint(game.num_roles).tolist() == [MOST_JOINT]
    with pytest.raises(
        gamelore.GameloreError,
        match=r"expected at most [0-9,]+ joint moves in the positions of one depth, got 1,000,000,000",
    ):
        perft(game, 1)
    assert "more characters" in repr(game)


def test_of_many_roles_one_without_a_move_leaves_no_joint_move():
    offsets = np.concatenate([[0], np.cumsum([2] * 1100 + [0]), 2200 + np.cumsum([1] * 1101)])
    legal = Legal(offsets, np.zeros(offsets[-1], np.int32), np.zeros(2, np.bool_))
    assert legal.num_joint(1101).tolist() == [0, 1]
