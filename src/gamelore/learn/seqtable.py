"""SeqTable: the sequences met so far, each with what its origin states have in common (Lock & Epstein 2004, 1.1).

Sequences and patterns are kept once for all their images under the symmetries of the game. The canonical form of a
sequence is its smallest image; where several symmetries lead to it (it has a stabiliser), its origin state decides
which one is taken, the smallest image again, so that both are brought to canonical form together.

The context of a sequence is the maximal common pattern of its origin states: the facts that hold in all of them.
A table may also keep a sequence once for each of its origin states, with that as its context.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..play.kernel import kernel
from ..play.statetable import longer
from .excerpts import NO_MOVE, Excerpts
from .patterns import Bits, Patterns, comes_before, image, widened

Moves = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Entries:
    """Sequences with what is known of their origins, one after the other.

    roles       int8[n], the contestants
    kinds       int8[n], DUET or SOLO
    moves       int32[n, longest], move numbers (patterns.py), NO_MOVE behind the end
    contexts    uint64[n, words], the facts that all origin states share
    encounters  int32[n], how often the sequence was met
    several     bool[n], whether it was met in different origin states
    """

    roles: NDArray[np.int8]
    kinds: NDArray[np.int8]
    moves: Moves
    contexts: Bits
    encounters: NDArray[np.int32]
    several: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.roles)

    def __getitem__(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Entries:
        columns = (self.roles, self.kinds, self.moves, self.contexts, self.encounters, self.several)
        return Entries(*(column[chosen] for column in columns))  # type: ignore[arg-type]


class SeqTable:
    """Takes in what stands in matches; sequences of at most `longest` moves. apart: each origin state is an entry."""

    def __init__(self, patterns: Patterns, longest: int, *, apart: bool = False) -> None:
        self.patterns = patterns
        self.apart = apart
        self._numbers: dict[bytes, int] = {}
        self._keys = np.zeros((0, 2 + longest), np.int32)  # role, kind, moves
        self._contexts = np.zeros((0, patterns.num_words), np.uint64)
        self._firsts = self._contexts.copy()
        self._encounters = np.zeros(0, np.int32)
        self._several = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def entries(self) -> Entries:
        """All of them, in the order in which they were first met."""
        num, keys = len(self), self._keys[: len(self)]
        return Entries(
            keys[:, 0].astype(np.int8),
            keys[:, 1].astype(np.int8),
            np.ascontiguousarray(keys[:, 2:]),
            self._contexts[:num],
            self._encounters[:num],
            self._several[:num],
        )

    def add(self, met: Excerpts, origins: Bits) -> None:
        """Takes in sequences with the patterns, uint64[n, words], of their origin states."""
        moves, states = canonical(self.patterns, met.moves, origins)
        padded = np.full((len(moves), self._keys.shape[1]), NO_MOVE, np.int32)
        padded[:, 0], padded[:, 1], padded[:, 2 : 2 + moves.shape[1]] = met.roles, met.kinds, moves
        if len(padded):
            self._take(padded, states, np.ones(len(padded), np.int32), np.zeros(len(padded), np.bool_))

    def restore(self, entries: Entries) -> None:
        """Takes in what another table had. `several` stays as it was there."""
        keys = np.hstack([entries.roles[:, None], entries.kinds[:, None], entries.moves]).astype(np.int32)
        if len(keys):
            self._take(keys, entries.contexts, entries.encounters, entries.several)

    def _take(self, keys: Moves, states: Bits, encounters: NDArray[np.int32], several: NDArray[np.bool_]) -> None:
        width = self.patterns.num_words
        self._contexts, self._firsts = widened(self._contexts, width), widened(self._firsts, width)
        states = widened(states, width)
        numbers = self._numbered(keys, states)
        np.bitwise_and.at(self._contexts, numbers, states)
        np.add.at(self._encounters, numbers, encounters)
        np.logical_or.at(self._several, numbers, several | (states != self._firsts[numbers]).any(axis=1))

    def _numbered(self, keys: Moves, states: Bits) -> NDArray[np.intp]:
        """The number of each entry; new ones begin with the state that they were met in."""
        numbers = self._numbers
        known = len(numbers)
        # trailing zeros are cut, so that patterns which grew wider are the same
        origins = [state.tobytes().rstrip(b"\0") for state in states] if self.apart else [b""] * len(keys)
        names = [key.tobytes() + origin for key, origin in zip(keys, origins, strict=True)]
        found = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.intp)
        new, first = np.unique(found, return_index=True)
        first = first[new >= known]
        self._make_room(len(numbers))
        self._keys[known : len(numbers)] = keys[first]
        self._contexts[known : len(numbers)] = self._firsts[known : len(numbers)] = states[first]
        return found

    def _make_room(self, num: int) -> None:
        if num > len(self._keys):
            room = max(num, 2 * len(self._keys), 1024)
            for name in ("_keys", "_contexts", "_firsts", "_encounters", "_several"):
                setattr(self, name, longer(getattr(self, name), room))


def canonical(patterns: Patterns, moves: Moves, states: Bits) -> tuple[Moves, Bits]:
    """The smallest images of sequences int32[n, longest], each together with its pattern uint64[n, words]."""
    images = patterns.move_images(moves)
    if len(images) == 1 or not len(moves):
        return moves, states
    return _canonical(np.ascontiguousarray(moves), np.ascontiguousarray(states), images, patterns.byte_tables, True)


def canonical_contexts(patterns: Patterns, moves: Moves, contexts: Bits) -> tuple[Moves, Bits]:
    """The same with the pattern first: the smallest image of the context, and under it of the sequence."""
    images = patterns.move_images(moves)
    if len(images) == 1 or not len(moves):
        return moves, contexts
    return _canonical(np.ascontiguousarray(moves), np.ascontiguousarray(contexts), images, patterns.byte_tables, False)


@kernel("int64(int32[::1], int32[:, ::1], int64, int32[::1])")
def _compared(sequence: Moves, images: Moves, symmetry: int, best: Moves) -> int:
    """-1, 0 or 1: how the image of a sequence compares with the best so far."""
    for i in range(sequence.size):
        move = images[symmetry, sequence[i]] if sequence[i] >= 0 else sequence[i]
        if move != best[i]:
            return -1 if move < best[i] else 1
    return 0


@kernel(
    "Tuple((int32[:, ::1], uint64[:, ::1]))(int32[:, ::1], uint64[:, ::1], int32[:, ::1], uint64[:, :, :, ::1],"
    " boolean)"
)
def _canonical(
    moves: Moves, states: Bits, images: Moves, byte_tables: NDArray[np.uint64], moves_first: bool
) -> tuple[Moves, Bits]:
    """See `canonical` and `canonical_contexts`."""
    best_moves, best_states = moves.copy(), states.copy()
    candidate = np.empty(states.shape[1], np.uint64)
    for i in range(moves.shape[0]):
        for symmetry in range(1, images.shape[0]):
            order = _compared(moves[i], images, symmetry, best_moves[i])
            if moves_first and order > 0:
                continue
            image(states[i], symmetry, byte_tables, candidate)
            before = comes_before(candidate, best_states[i])
            same = not before and not comes_before(best_states[i], candidate)
            better = (order < 0 or (order == 0 and before)) if moves_first else (before or (same and order < 0))
            if better:
                best_states[i] = candidate
                for j in range(moves.shape[1]):
                    best_moves[i, j] = images[symmetry, moves[i, j]] if moves[i, j] >= 0 else moves[i, j]
    return best_moves, best_states
