"""The perft counts beside the rulesheets, by both engines."""

import pytest

import gamelore
from gamelore import rulesheets
from gamelore.analysis.explore import perft

MOST_POSITIONS = {"native": 300_000, "reasoner": 1_500}


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
