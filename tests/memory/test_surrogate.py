"""The linear surrogate of a network: near to one that is linear, and far from one that only pairs of facts explain."""

import numpy as np
import pytest

from gamelore import load
from gamelore.game.game import Game
from gamelore.memory.lesson import surrogate
from gamelore.networks.network import Network
from gamelore.networks.self_play import played_positions
from gamelore.search.teaching import fact_classes

KEY = np.uint64(3)


@pytest.fixture(scope="module")
def game() -> Game:
    return load("tictactoe")


def network_of(game: Game, pairs: list[tuple[int, int]], weights: np.ndarray) -> Network:
    """Return a network with a tuple for each pair of facts, whose entry for both facts is the weight of the pair."""
    strides = np.zeros((64 * game.num_words, len(pairs)), np.int32)
    for number, pair in enumerate(pairs):
        for place, fact in enumerate(pair):
            strides[fact, number] += 2**place
    entries = np.zeros((game.num_roles, 4 * len(pairs)), np.float32)
    entries[:, 3::4] = weights
    return Network(strides, 4 * np.arange(len(pairs), dtype=np.int32), entries)


def test_a_linear_network_is_explained(game: Game) -> None:
    """With small entries, the value is 1/2 and a quarter of their sum."""
    classes = fact_classes(game)[: len(game.fact_texts)]
    weights = np.random.default_rng(1).uniform(-0.01, 0.01, classes.max() + 1)[classes]
    network = network_of(game, [(fact, fact) for fact in range(len(weights))], weights)
    nearest = surrogate(game, network)
    assert nearest.determination > 0.98
    assert gain_of_centre(game, nearest.weights[0]) == pytest.approx(gain_of_centre(game, weights) / 4, rel=0.05)


def gain_of_centre(game: Game, weights: np.ndarray) -> float:
    """Return by how much x gains more in the centre than in a corner.

    Only this is definite: a cell has one content, and after a move of x there is always one x more than there are o.
    """
    corner, blank_corner, centre, blank = (
        weights[game.fact_texts.index(f"(cell {cell})")] for cell in ("1 1 x", "1 1 b", "2 2 x", "2 2 b")
    )
    return float((centre - blank) - (corner - blank_corner))


def test_what_pairs_of_facts_add_is_not_explained(game: Game) -> None:
    """Corners opposite to each other with the same piece are good, with different pieces bad: no cell is."""
    fact = {text: number for number, text in enumerate(game.fact_texts)}
    cells = [f"(cell {x} {y} {{}})" for x, y in ((1, 1), (3, 3))]
    pairs = [(fact[cells[0].format(a)], fact[cells[1].format(b)]) for a in "xo" for b in "xo"]
    nearest = surrogate(game, network_of(game, pairs, np.array([2.0, -2.0, -2.0, 2.0])))
    assert nearest.determination < 0.5


def test_positions_are_those_of_matches_and_nothing_is_learned(game: Game) -> None:
    network = network_of(game, [(0, 0)], np.array([0.5]))
    before = network.entries.copy()
    states, movers = played_positions(game, network, KEY, 500)
    again, _ = played_positions(game, network, KEY, 500)
    assert np.array_equal(network.entries, before)
    assert np.array_equal(states, again)
    assert states.shape == (500, game.num_words)
    assert not game.terminal(states).any()
    assert set(movers.tolist()) == {0, 1}
    assert all(game.holds(states[movers == number], fact).all() for number, fact in enumerate(turn_of_other(game)))


def turn_of_other(game: Game) -> list[str]:
    """Return the fact that holds after the move of each role."""
    return [f"(control {role})" for role in reversed(game.roles)]


def test_a_network_without_entries_has_nothing_to_explain(game: Game) -> None:
    nearest = surrogate(game, network_of(game, [(0, 0)], np.zeros(1)), 100)
    assert nearest.determination == 0.0
    assert nearest.constants == pytest.approx([0.5, 0.5], abs=1e-4)
