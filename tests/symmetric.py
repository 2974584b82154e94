"""Whether a game does not notice its symmetries: along random matches, in every position and every image of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gamelore.analysis.symmetry import Symmetries
from gamelore.game.game import Game

MOST_ELEMENTS = 16


def assert_symmetric(game: Game, symmetries: Symmetries, num_matches: int = 20, most_plies: int = 40) -> None:
    """The image of each position has the image of its legal moves, its end, its goals, and of its successors."""
    rng = np.random.default_rng(0)
    elements = np.unique([0, symmetries.num - 1, *rng.integers(symmetries.num, size=MOST_ELEMENTS)])
    states = np.repeat(game.initial[None], num_matches, axis=0)
    initial_images = symmetries.images(states[:1])
    assert (initial_images == states[0]).all(), "the first state moves"
    for _ in range(most_plies):
        images = symmetries.images(states)
        terminal, goals = game.evaluate(states)
        joint = drawn(game, states, rng)
        following = game.next(states, joint)
        images_after = symmetries.images(following)
        for s in elements.tolist():
            own = images[:, s]
            own_terminal, own_goals = game.evaluate(own)
            np.testing.assert_array_equal(own_terminal, terminal)
            np.testing.assert_array_equal(own_goals, goals)
            assert legal_sets(game, own) == [
                {int(symmetries.actions[s, action]) for action in actions} for actions in legal_sets(game, states)
            ]
            np.testing.assert_array_equal(game.next(own, symmetries.actions[s][joint]), images_after[:, s])
        states = following[~terminal & ~stuck(game, states)]
        states = states[~game.evaluate(states)[0]]
        states = states[~stuck(game, states)]
        if not len(states):
            break


def legal_sets(game: Game, states: NDArray[np.uint64]) -> list[set[int]]:
    """The legal moves of each position and role."""
    legal = game.legal(states)
    return [set(part.tolist()) for part in np.split(legal.actions, legal.offsets[1:-1])]


def stuck(game: Game, states: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool[batch]: where a role has no legal move."""
    has_none: NDArray[np.bool_] = (game.legal(states).by_role(game.num_roles)[1] == 0).any(axis=1)
    return has_none


def drawn(game: Game, states: NDArray[np.uint64], rng: np.random.Generator) -> NDArray[np.int32]:
    """A random legal joint move for each state, int32[batch, roles]."""
    legal = game.legal(states)
    starts, counts = legal.by_role(game.num_roles)
    return legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)]


def assert_group(symmetries: Symmetries) -> None:
    """The identity first, no element twice, closed under composition."""
    rows = np.hstack([symmetries.facts, symmetries.actions + symmetries.facts.shape[1]])
    elements = {row.tobytes() for row in rows}
    assert len(elements) == symmetries.num
    np.testing.assert_array_equal(rows[0], np.arange(rows.shape[1]))
    assert all(row[other].tobytes() in elements for row in rows for other in rows[:: max(1, len(rows) // 30)])
    for s, inverse in enumerate(symmetries.inverse.tolist()):
        np.testing.assert_array_equal(rows[s][rows[inverse]], rows[0])
