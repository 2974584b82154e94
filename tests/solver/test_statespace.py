from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import gamelore
from gamelore.analysis.symmetry import Symmetries, symmetries
from gamelore.players.position_graph import PositionGraph
from gamelore.solver.statespace import Canonical


def some_states(game: gamelore.Game, plies: int) -> NDArray[np.uint64]:
    """Positions of the first plies."""
    graph = PositionGraph(game)
    rows = np.array([graph.start], np.int32)
    for _ in range(plies):
        rows = graph.children(rows)[:300]
    return graph.states


@pytest.mark.parametrize(("name", "num"), [("tictactoe", 8), ("connect3", 2)])
def test_the_smallest_of_all_images(load: Callable[..., gamelore.Game], name: str, num: int) -> None:
    game = load(name)
    group = symmetries(game)
    assert group.num == num
    states = some_states(game, 4)
    images = group.images(states)
    smallest = [min(map(tuple, of.tolist())) for of in images]
    canonical = Canonical(group)
    assert [tuple(state) for state in canonical.of(states).tolist()] == smallest
    for s in range(num):
        assert (canonical.of(images[:, s]) == canonical.of(states)).all()


def test_orbit_sizes(load: Callable[..., gamelore.Game]) -> None:
    game = load("tictactoe")
    group = symmetries(game)
    canonical = Canonical(group)
    states = canonical.of(some_states(game, 4))
    sizes = [len({tuple(image) for image in of}) for of in group.images(states).tolist()]
    assert canonical.orbit_sizes(states).tolist() == sizes
    assert {1, 4, 8} <= set(sizes)


def test_without_symmetries_states_stay_as_they_are(load: Callable[..., gamelore.Game]) -> None:
    game = load("tictactoe")
    states = some_states(game, 2)
    canonical = Canonical(Symmetries.trivial(game))
    assert (canonical.of(states) == states).all()
    assert (canonical.orbit_sizes(states) == 1).all()


@pytest.mark.parametrize("group_of", [symmetries, Symmetries.trivial])
def test_a_counter_is_left_out_and_put_back(
    load: Callable[..., gamelore.Game], group_of: Callable[[gamelore.Game], Symmetries]
) -> None:
    game = load("tictactoe")
    mask = game.state(["(control xplayer)"]) | game.state(["(control oplayer)"])
    canonical = Canonical(group_of(game), mask)
    marked, other = (
        game.state(["(cell 1 1 x)", "(cell 2 2 b)", f"(control {role})"]) for role in ("xplayer", "oplayer")
    )
    found = canonical.of(np.array([marked, other]))
    assert (found[0] == found[1]).all()
    assert not (found & mask).any()
    assert (canonical.without_counter(marked) == canonical.without_counter(other)).all()
    assert (canonical.playable(found[:1]) & mask == game.state(["(control xplayer)"])).all()


def test_from_arrays(load: Callable[..., gamelore.Game]) -> None:
    game = load("tictactoe")
    states = some_states(game, 3)
    canonical = Canonical(symmetries(game), game.state(["(control xplayer)"]))
    again = Canonical.from_arrays(game, canonical.arrays())
    assert (again.of(states) == canonical.of(states)).all()
    assert (again.playable(states) == canonical.playable(states)).all()
