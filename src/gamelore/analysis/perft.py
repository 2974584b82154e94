"""Perft counts: the sequences of joint moves from the start, depth by depth.

They test engines: a wrong legal move or a wrong terminal state usually changes the counts. The moves and successors of
a depth are made in parts of BATCH_BYTES, so that memory holds little beside the distinct positions of two depths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..game.engines import Legal, States
from ..game.game import Game
from ..gdl.limits import GIB

BATCH_BYTES = 32 << 20  # for the arrays of states that are queried together, and of their moves
ENTRY_BYTES = 40  # for a legal move, or a role, of a state: up to five numbers
MOST_JOINT = 10**10  # joint moves of one depth; more take hours
MOST_LEVEL_BYTES = 4 << 30  # for the positions of one depth
COUNT_BYTES = 40  # for the number of sequences to a position
BATCH = 1 << 16  # largest number of successors that are computed in one call, and of states whose moves are listed


@dataclass(frozen=True, slots=True)
class Level:
    """Counts at one depth: sequences of joint moves, how many of them end a match there, and distinct positions."""

    depth: int
    sequences: int
    complete: int
    positions: int


@dataclass(frozen=True, slots=True)
class Perft:
    """Perft counts: `sequences[d]` sequences have exactly d joint moves; `complete[d]` of them end a match."""

    sequences: tuple[int, ...]
    complete: tuple[int, ...]


def perft(game: Game, depth: int) -> Perft:
    """Return the perft counts up to the given depth, or up to the depth at which all matches have ended."""
    counted = list(islice(levels(game), depth + 1))
    return Perft(tuple(level.sequences for level in counted), tuple(level.complete for level in counted))


def levels(game: Game, progress: Callable[[int, int], None] | None = None) -> Iterator[Level]:
    """Yield the counts for depth 0, 1, ... until all matches have ended. Equal positions are expanded only once.

    `progress` is called from time to time with two numbers about the next depth: the number of successors that are
    computed so far, and the number of all successors.
    """
    level = _Positions(game.initial[None], np.array([1], object))
    for depth in count():
        terminal = game.terminal(level.states)
        yield Level(depth, int(level.counts.sum()), int(level.counts[terminal].sum()), len(level.states))
        total, done, following = _num_joint(game, level.states), 0, _Positions.none(game)
        if not total:
            return
        for part, legal in _legal_parts(game, level.states):
            for parents, joints in joint_batches(legal, game.num_roles, _joints_at_once(game)):
                following.add(game.next(level.states[part][parents], joints), level.counts[part][parents])
                done += len(parents)
                if progress:
                    progress(done, total)
        following.merge()
        level = following


class _Positions:
    """Distinct positions of one depth, uint64[n, num_words], and the number of sequences to each, object[n].

    New positions wait in a list until they are as many as the distinct ones, so that memory follows the latter.
    """

    def __init__(self, states: States, counts: NDArray[np.object_]) -> None:
        self.states, self.counts = states, counts
        self._waiting: list[tuple[States, NDArray[np.object_]]] = []
        self._num_waiting = 0

    @classmethod
    def none(cls, game: Game) -> _Positions:
        return cls(np.zeros((0, game.num_words), np.uint64), np.zeros(0, object))

    def add(self, states: States, counts: NDArray[np.object_]) -> None:
        """Add positions. Raises GameloreError if the distinct ones need more than MOST_LEVEL_BYTES."""
        self._waiting.append((states, counts))
        self._num_waiting += len(states)
        if self._num_waiting >= max(BATCH, len(self.states)):
            self.merge()

    def merge(self) -> None:
        """Merge the waiting positions into the distinct ones."""
        states, counts = map(np.concatenate, zip((self.states, self.counts), *self._waiting, strict=True))
        self._waiting, self._num_waiting = [], 0
        self.states, number = np.unique(states, axis=0, return_inverse=True)
        self.counts = np.zeros(len(self.states), object)
        np.add.at(self.counts, number.ravel(), counts)
        if self.states.nbytes + COUNT_BYTES * len(self.states) > MOST_LEVEL_BYTES:
            raise GameloreError(
                f"expected at most {MOST_LEVEL_BYTES / GIB:g} GiB of positions of one depth, got more than "
                f"{len(self.states):,} positions; the game is too large for this depth"
            )


def _legal_parts(game: Game, states: States) -> Iterator[tuple[slice, Legal]]:
    """Yield the legal moves of slices of a batch of states. A slice needs about BATCH_BYTES."""
    num_actions = game.circuit.num_actions if game.circuit else 0
    start, most = 0, num_actions // 16  # moves of a state so far, or a guess before
    while start < len(states):
        state_bytes = ENTRY_BYTES * (most + game.num_roles) + num_actions // 4
        part = slice(start, start + max(1, min(BATCH, BATCH_BYTES // state_bytes)))
        legal = game.legal(states[part])
        yield part, legal
        most = max(most, int(np.diff(legal.offsets[:: game.num_roles]).max(initial=0)))
        start = part.stop


def _num_joint(game: Game, states: States) -> int:
    """Return the number of joint moves of all states together. Raises GameloreError if it exceeds MOST_JOINT."""
    total = sum(sum(legal.num_joint(game.num_roles).tolist()) for _, legal in _legal_parts(game, states))
    if total > MOST_JOINT:
        raise GameloreError(
            f"expected at most {MOST_JOINT:,} joint moves in the positions of one depth, got {total:,}; {game.name} is "
            "too large for this depth"
        )
    return total


def _joints_at_once(game: Game) -> int:
    """Return the number of joint moves that are made in one call."""
    return min(BATCH, max(1, BATCH_BYTES // (16 * game.num_words + joint_bytes(game.num_roles))))


def joint_bytes(num_roles: int) -> int:
    """Return the bytes that a joint move needs while it is listed: the actions, and up to eight other numbers."""
    return 4 * num_roles + 8 * 8


def joint_batches(legal: Legal, num_roles: int, most: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Yield every joint move of a batch of states, at most so many at once.

    Each part is the index of the state, int64[n], and the actions, int32[n, roles].
    """
    starts, counts = legal.by_role(num_roles)
    ends = np.cumsum(legal.num_joint(num_roles))
    begins = np.concatenate([np.zeros(1, np.int64), ends])
    for first in range(0, int(begins[-1]), most):
        number = np.arange(first, min(first + most, int(begins[-1])))
        parents = np.searchsorted(ends, number, side="right")
        number -= begins[parents]
        joints = np.empty((len(parents), num_roles), np.int32)
        for role in reversed(range(num_roles)):
            number, choice = np.divmod(number, counts[parents, role])
            joints[:, role] = legal.actions[starts[parents, role] + choice]
        yield parents, joints
