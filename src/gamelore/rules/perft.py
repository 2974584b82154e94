"""Perft: how many sequences of joint moves there are from the start, depth by depth. Two engines that agree on these
numbers agree on every move and every end that was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from .engine import States
from .game import Game

BATCH = 1 << 16  # successors worked out at once


@dataclass(frozen=True, slots=True)
class Level:
    """What is `depth` joint moves from the start: sequences, those that end a match there, and distinct positions."""

    depth: int
    sequences: int
    complete: int
    positions: int


@dataclass(frozen=True, slots=True)
class Perft:
    """`sequences[d]`: sequences of exactly d joint moves, d = 0 ..; `complete[d]`: those that end a match there."""

    sequences: tuple[int, ...]
    complete: tuple[int, ...]


def perft(game: Game, depth: int) -> Perft:
    """Counts to the given depth, or to where all matches have ended."""
    counted = list(islice(levels(game), depth + 1))
    return Perft(tuple(level.sequences for level in counted), tuple(level.complete for level in counted))


def levels(game: Game, progress: Callable[[int, int], None] | None = None) -> Iterator[Level]:
    """Counts depth by depth, from 0 to where all matches have ended; equal positions are followed once.

    `progress` is told now and then how many of how many successors the next depth has.
    """
    states, counts = game.initial[None], np.array([1], object)
    for depth in count():
        terminal = game.evaluate(states)[0]
        yield Level(depth, int(counts.sum()), int(counts[terminal].sum()), len(states))
        parents, states = _successors(game, states, progress)
        if not len(states):
            return
        states, place = np.unique(states, axis=0, return_inverse=True)
        reached = np.zeros(len(states), object)
        np.add.at(reached, place.ravel(), counts[parents])
        counts = reached


def _successors(
    game: Game, states: States, progress: Callable[[int, int], None] | None
) -> tuple[NDArray[np.int64], States]:
    """All successors, uint64[n, words], and the index of the state each comes from, int64[n]."""
    parents, joints = joint_moves(game, states)
    following = [np.zeros((0, game.num_words), np.uint64)]
    for start in range(0, len(parents), BATCH):
        part = slice(start, start + BATCH)
        following.append(game.next(states[parents[part]], joints[part]))
        if progress:
            progress(min(start + BATCH, len(parents)), len(parents))
    return parents, np.concatenate(following)


def joint_moves(game: Game, states: States) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Every joint move of every state: the state's index, and the actions, int32[n, roles]."""
    legal = game.legal(states)
    starts, counts = legal.by_role(game.num_roles)
    products = counts.prod(axis=1)
    parents = np.repeat(np.arange(len(states)), products)
    number = np.arange(len(parents)) - np.repeat(np.cumsum(products) - products, products)
    joints = np.empty((len(parents), game.num_roles), np.int32)
    for role in reversed(range(game.num_roles)):
        number, choice = np.divmod(number, counts[parents, role])
        joints[:, role] = legal.actions[starts[parents, role] + choice]
    return parents, joints
