"""Sequences of moves extracted from finished matches, and SeqTable, which collects them (Lock & Epstein 2004, 1.1).

A sequence belongs to one role, the *contestant*, and its first move is a move of the contestant. The state before the
first move is the *origin state* of the sequence. There are two kinds:

    duet   consecutive moves of all roles; at least one of them is a move of another role
    solo   consecutive moves of the contestant; the moves of the other roles in between are left out

The length of a sequence is its number of moves. If several roles move at the same time, the contestant's move comes
first, and the moves of the other roles follow in the order of the roles. A role makes a move if it is its turn, or if
it has several legal moves. Otherwise it waits.

SeqTable keeps one entry for all images of a sequence under the symmetries of the game. The canonical form of a sequence
is its smallest image. A symmetry that produces this image is also applied to the origin state. If several symmetries
produce it, the one with the smallest image of the origin state is used.

The context of a sequence is the maximal common pattern of its origin states: the set of facts that hold in all of them.
Optionally SeqTable keeps a separate entry for each origin state of a sequence. Then the context of the entry is the
whole origin state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...players.kernel import I8, I32, Boolx2, I32x2, I32x3, I64x2, U64x2, U64x4, kernel
from ...players.position_graph import longer
from ..store.schema import SequenceKind
from .patterns import Bits, Patterns, comes_before, image, padded

if TYPE_CHECKING:
    from ...players.player import Finished

DUET, SOLO = 0, 1
KIND_NAMES: tuple[SequenceKind, ...] = ("duet", "solo")
NO_MOVE = -1


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Sequences in the form in which they were found in matches.

    roles    int8[n], the contestants
    kinds    int8[n], DUET or SOLO
    rows     int32[n], the origin states, as rows of the graph
    moves    int32[n, longest], move numbers (patterns.py); NO_MOVE after the end of a sequence
    """

    roles: NDArray[np.int8]
    kinds: NDArray[np.int8]
    rows: NDArray[np.int32]
    moves: NDArray[np.int32]

    def chosen(self, which: NDArray[np.bool_]) -> Excerpts:
        """Return the sequences for which `which`, bool[n], is True."""
        return Excerpts(self.roles[which], self.kinds[which], self.rows[which], self.moves[which])


@dataclass(frozen=True, slots=True)
class MoveSequence:
    """All moves of some finished matches, in the order in which they were made.

    matches  int64[n], index of the match among the finished matches
    rows     int32[n], the position before the move, as a row of the graph
    roles    int8[n], the role that moved
    moves    int32[n], move numbers (patterns.py)
    """

    matches: NDArray[np.int64]
    rows: NDArray[np.int32]
    roles: NDArray[np.int8]
    moves: NDArray[np.int32]


def turns(finished: Finished) -> MoveSequence:
    """Return all moves of the matches, in the order in which they were made."""
    graph = finished.graph
    played = np.arange(finished.choices.shape[1]) < finished.plies[:, None]
    matches, plies = np.nonzero(played)
    rows = finished.rows[matches, plies]
    turn, roles = np.nonzero(graph.acting[rows] | (graph.num_moves[rows] > 1))
    rows, choices = rows[turn], finished.choices[matches[turn], plies[turn], roles]
    actions = graph.move_actions[graph.move_start[rows, roles] + choices]
    moves = actions * graph.game.num_roles + roles
    return MoveSequence(matches[turn], rows, roles.astype(np.int8), moves.astype(np.int32))


def excerpts(finished: Finished, learned_from: NDArray[np.bool_], lengths: Sequence[int]) -> Excerpts:
    """Return all sequences of these lengths in the matches.

    learned_from  bool[n, roles], whether the sequences of this contestant in this match are included
    """
    graph, ascending = finished.graph, np.array(sorted(lengths), np.int32)
    matches = (finished.rows, finished.choices, finished.plies, learned_from)
    moves = (graph.acting, graph.num_moves, graph.move_start, graph.move_actions)
    return Excerpts(*_excerpts(*matches, ascending, *moves))


@kernel
def listed_moves(
    rows: I32,
    choices: I32x2,
    plies: int,
    own: int,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
    move_actions: I32,
    numbers: I32,
    by: I8,
    where: I32,
) -> int:
    """List the moves of one match, and return the number of moves. For use inside kernels.

    If several roles move at the same time, the move of the role `own` comes first. The move numbers are written to
    `numbers`, the roles to `by`, and the rows of the positions to `where`. These arrays must have room for a move of
    every role in every ply.
    """
    size = 0
    roles = num_moves.shape[1]
    for ply in range(plies):
        row = rows[ply]
        for i in range(-1, roles):
            role = own if i < 0 else i
            if (i == own) or not (acting[row, role] or num_moves[row, role] > 1):
                continue
            numbers[size] = move_actions[move_start[row, role] + choices[ply, role]] * roles + role
            by[size] = role
            where[size] = row
            size += 1
    return size


@kernel
def _excerpts(
    rows: I32x2,
    choices: I32x3,
    plies: I32,
    learned_from: Boolx2,
    lengths: I32,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
    move_actions: I32,
) -> tuple[I8, I8, I32, I32x2]:
    """See `excerpts`. The lengths must be ascending."""
    roles = num_moves.shape[1]
    room = most = 0
    for i in range(plies.size):
        room += plies[i] * roles * 2 * lengths.size
        most = max(most, plies[i] * roles)
    out_roles, out_kinds = np.empty(room, np.int8), np.empty(room, np.int8)
    out_rows = np.empty(room, np.int32)
    out_moves = np.full((room, lengths[-1]), NO_MOVE, np.int32)
    numbers, by, where = np.empty(most, np.int32), np.empty(most, np.int8), np.empty(most, np.int32)
    size = 0
    for i in range(plies.size):
        for own in range(roles):
            if not learned_from[i, own]:
                continue
            num = listed_moves(
                rows[i], choices[i], plies[i], own, acting, num_moves, move_start, move_actions, numbers, by, where
            )
            for start in range(num):
                if by[start] != own:
                    continue
                for length in lengths:
                    others = 0
                    if start + length <= num:
                        for j in range(length):
                            out_moves[size, j] = numbers[start + j]
                            others += by[start + j] != own
                    if others:
                        out_roles[size], out_kinds[size], out_rows[size] = own, DUET, where[start]
                        size += 1
                    out_moves[size] = NO_MOVE
                    length_so_far, j = 0, start
                    while length_so_far < length and j < num:
                        if by[j] == own:
                            out_moves[size, length_so_far] = numbers[j]
                            length_so_far += 1
                        j += 1
                    if length_so_far == length:
                        out_roles[size], out_kinds[size], out_rows[size] = own, SOLO, where[start]
                        size += 1
                    else:
                        out_moves[size] = NO_MOVE
    return out_roles[:size], out_kinds[:size], out_rows[:size], out_moves[:size]


Moves = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of a SeqTable: sequences with their contexts.

    roles       int8[n], the contestants
    kinds       int8[n], DUET or SOLO
    moves       int32[n, longest], move numbers (patterns.py); NO_MOVE after the end of a sequence
    contexts    uint64[n, words], the facts that hold in all origin states of the sequence
    encounters  int32[n], how often the sequence occurred in matches
    several     bool[n], whether the sequence occurred in different origin states
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
    """A table of sequences of at most `longest` moves.

    apart  whether each origin state of a sequence has a separate entry
    """

    def __init__(self, patterns: Patterns, longest: int, *, apart: bool = False) -> None:
        self.patterns = patterns
        self.apart = apart
        self._numbers: dict[bytes, int] = {}
        self._keys = np.zeros((0, 2 + longest), np.int32)  # role, kind, moves
        self._contexts = np.zeros((0, patterns.num_words), np.uint64)
        self._firsts = self._contexts.copy()
        self._encounters = np.zeros(0, np.int64)
        self._several = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def entries(self) -> Entries:
        """All entries, in the order of their first encounter."""
        num, keys = len(self), self._keys[: len(self)]
        return Entries(
            keys[:, 0].astype(np.int8),
            keys[:, 1].astype(np.int8),
            np.ascontiguousarray(keys[:, 2:]),
            self._contexts[:num],
            np.minimum(self._encounters[:num], np.iinfo(np.int32).max).astype(np.int32),
            self._several[:num],
        )

    def add(self, met: Excerpts, origins: Bits) -> None:
        """Add sequences. `origins` are the patterns of their origin states, uint64[n, words]."""
        moves, states = canonical_pairs(self.patterns, met.moves, origins)
        keys = np.full((len(moves), self._keys.shape[1]), NO_MOVE, np.int32)
        keys[:, 0], keys[:, 1], keys[:, 2 : 2 + moves.shape[1]] = met.roles, met.kinds, moves
        if len(keys):
            self._take(keys, states, np.ones(len(keys), np.int32), np.zeros(len(keys), np.bool_))

    def restore(self, entries: Entries) -> None:
        """Add the entries of another table. Where `several` is true in such an entry, it stays true."""
        keys = np.hstack([entries.roles[:, None], entries.kinds[:, None], entries.moves]).astype(np.int32)
        if len(keys):
            self._take(keys, entries.contexts, entries.encounters, entries.several)

    def _take(self, keys: Moves, states: Bits, encounters: NDArray[np.int32], several: NDArray[np.bool_]) -> None:
        width = self.patterns.num_words
        self._contexts, self._firsts = padded(self._contexts, width), padded(self._firsts, width)
        states = padded(states, width)
        numbers = self._numbered(keys, states)
        np.bitwise_and.at(self._contexts, numbers, states)
        np.add.at(self._encounters, numbers, encounters)
        np.logical_or.at(self._several, numbers, several | (states != self._firsts[numbers]).any(axis=1))

    def _numbered(self, keys: Moves, states: Bits) -> NDArray[np.intp]:
        """Return the index of the entry of each key. Add new entries, with the given state as their context."""
        numbers = self._numbers
        size = len(numbers)
        # without trailing zeros, a state is the same before and after the patterns become wider
        origins = [state.tobytes().rstrip(b"\0") for state in states] if self.apart else [b""] * len(keys)
        names = [key.tobytes() + origin for key, origin in zip(keys, origins, strict=True)]
        entries = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.intp)
        distinct, first = np.unique(entries, return_index=True)
        first = first[distinct >= size]
        if len(numbers) > len(self._keys):
            room = max(len(numbers), 2 * len(self._keys), 1024)
            for column in ("_keys", "_contexts", "_firsts", "_encounters", "_several"):
                setattr(self, column, longer(getattr(self, column), room))
        self._keys[size : len(numbers)] = keys[first]
        self._contexts[size : len(numbers)] = self._firsts[size : len(numbers)] = states[first]
        return entries


def canonical_pairs(patterns: Patterns, moves: Moves, states: Bits, *, moves_first: bool = True) -> tuple[Moves, Bits]:
    """Return the smallest images of pairs of a sequence, int32[n, longest], and a pattern, uint64[n, words].

    The same symmetry is applied to the sequence and to the pattern of a pair.

    moves_first  True: the sequences decide which image is smaller, and for equal sequences the patterns; False: the
                 patterns decide, and for equal patterns the sequences
    """
    images = patterns.move_images(moves)
    if len(images) == 1 or not len(moves):
        return moves, states
    moves, states = np.ascontiguousarray(moves), np.ascontiguousarray(states)
    return _canonical(moves, states, images, patterns.byte_tables, moves_first)


@kernel
def _compared(sequence: I32, images: I32x2, symmetry: int, best: I32) -> int:
    """Return -1, 0 or 1 if the image of a sequence is smaller than, equal to or larger than the sequence `best`."""
    for i in range(sequence.size):
        move = images[symmetry, sequence[i]] if sequence[i] >= 0 else sequence[i]
        if move != best[i]:
            return -1 if move < best[i] else 1
    return 0


@kernel
def _canonical(
    moves: I32x2, states: U64x2, images: I32x2, byte_tables: U64x4, moves_first: bool
) -> tuple[I32x2, U64x2]:
    """See `canonical_pairs`."""
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
