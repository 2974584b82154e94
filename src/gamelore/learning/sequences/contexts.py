"""Context pairs: a context with its tree of sequences (Lock & Epstein 2004, 1.1); kernels to compare contexts.

Sequences whose contexts are equal, up to symmetry, are branches of one tree. A pair *advises* a move in a state if two
conditions are true for some symmetry of the game: the image of its context holds in the state, and the move is legal
and is the image of the first move of one of its branches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...players.kernel import I8, I64, U64, U64x2, kernel
from .extraction import Moves, canonical_pairs
from .patterns import Bits, Patterns, comes_before

Trees = Literal["context", "first"]


@dataclass(frozen=True, slots=True)
class Record:
    """Counts of the advice of each pair; every attribute is float64[pairs].

    comments    number of states in which the expert was to move and the pair advised a move
    agreements  number of comments in which the pair advised the move that the expert made
    tries       number of states in which a role made a move that the pair advised
    successes   number of tries in matches that were a success for the role
    """

    comments: NDArray[np.float64]
    agreements: NDArray[np.float64]
    tries: NDArray[np.float64]
    successes: NDArray[np.float64]

    @classmethod
    def empty(cls, num_pairs: int) -> Record:
        """Return a record in which all counts are 0."""
        return cls(*np.zeros((4, num_pairs)))

    def __getitem__(self, chosen: NDArray[np.intp]) -> Record:
        return Record(self.comments[chosen], self.agreements[chosen], self.tries[chosen], self.successes[chosen])

    def put(self, places: NDArray[np.intp], other: Record) -> None:
        """Replace the counts of the pairs with the indices `places` by the counts of another record."""
        for name in ("comments", "agreements", "tries", "successes"):
            getattr(self, name)[places] = getattr(other, name)


@dataclass(frozen=True, eq=False)
class ContextPairs:
    """Context pairs. Pair i has the branches `starts[i] : starts[i + 1]`.

    keys      uint64[pairs, 2 + words], see `pair_keys`
    starts    int64[pairs + 1], index of the first branch of each pair
    kinds     int8[branches], DUET or SOLO
    moves     int32[branches, longest], move numbers (patterns.py); NO_MOVE after the end of a sequence
    record    counts of the advice of each pair
    weights   float64[pairs], 0 to 1; 0 before the first call of `weighed`
    exact     whether each context is a whole state; if so, binary search finds the contexts that hold in a state
    """

    patterns: Patterns
    keys: Bits
    starts: NDArray[np.int64]
    kinds: NDArray[np.int8]
    moves: Moves
    record: Record
    weights: NDArray[np.float64]
    exact: bool = False

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def roles(self) -> NDArray[np.int8]:
        """int8[pairs]: the role that each pair advises."""
        return self.keys[:, 0].astype(np.int8)

    @cached_property
    def contexts(self) -> Bits:
        """uint64[pairs, words]: the context of each pair, as a pattern."""
        return np.ascontiguousarray(self.keys[:, 2:])

    @property
    def branch_roles(self) -> NDArray[np.int8]:
        """int8[branches]: the role that each branch advises."""
        return np.repeat(self.roles, np.diff(self.starts))

    @property
    def branch_contexts(self) -> Bits:
        """uint64[branches, words]: the context of each branch, as a pattern."""
        return np.repeat(self.contexts, np.diff(self.starts), axis=0)

    @classmethod
    def none(cls, patterns: Patterns, longest: int) -> ContextPairs:
        """Return a set of pairs that is empty."""
        nobody = np.zeros(0, np.int8)
        moves, contexts = np.zeros((0, longest), np.int32), np.zeros((0, patterns.num_words), np.uint64)
        return cls.form(patterns, nobody, nobody, moves, contexts)

    @classmethod
    def form(
        cls,
        patterns: Patterns,
        roles: NDArray[np.int8],
        kinds: NDArray[np.int8],
        moves: Moves,
        contexts: Bits,
        trees: Trees = "context",
        *,
        exact: bool = False,
    ) -> ContextPairs:
        """Return the pairs that consist of these sequences and their contexts.

        trees  "context": all sequences with the same role and the same context form one tree; "first": sequences form
               one tree only if they have the same first move as well

        The order of the pairs does not depend on the order of the sequences.
        """
        moves, contexts = canonical_pairs(patterns, moves, contexts, moves_first=False)
        columns = (pair_keys(roles, moves, contexts, trees), kinds[:, None].astype(np.uint64), moves.astype(np.uint64))
        branches = np.unique(np.hstack(columns), axis=0)
        width = 2 + contexts.shape[1]
        keys, begins = np.unique(branches[:, :width], axis=0, return_index=True)
        return cls(
            patterns,
            np.ascontiguousarray(keys),
            np.append(begins, len(branches)).astype(np.int64),
            branches[:, width].astype(np.int8),
            np.ascontiguousarray(branches[:, width + 1 :].astype(np.int32)),
            Record.empty(len(begins)),
            np.zeros(len(begins)),
            exact,
        )

    def inheriting(self, earlier: ContextPairs) -> ContextPairs:
        """Replace the counts of each pair that is also in `earlier` by the counts there. Return self."""
        # without trailing zeros, a key is the same before and after the patterns become wider
        places = {key.tobytes().rstrip(b"\0"): i for i, key in enumerate(earlier.keys)}
        before = np.array([places.get(key.tobytes().rstrip(b"\0"), -1) for key in self.keys], np.intp)
        self.record.put(np.flatnonzero(before >= 0), earlier.record[before[before >= 0]])
        return self

    def weighed(self, weights: NDArray[np.float64]) -> ContextPairs:
        """Return the same pairs with these weights."""
        return replace(self, weights=weights)

    def chosen(self, pairs: NDArray[np.intp]) -> ContextPairs:
        """Return the pairs with these indices, in this order."""
        sizes = np.diff(self.starts)[pairs]
        starts = np.append(0, np.cumsum(sizes))
        branches = np.repeat(self.starts[:-1][pairs] - starts[:-1], sizes) + np.arange(starts[-1])
        return replace(
            self,
            keys=np.ascontiguousarray(self.keys[pairs]),
            starts=starts.astype(np.int64),
            kinds=self.kinds[branches],
            moves=np.ascontiguousarray(self.moves[branches]),
            record=self.record[pairs],
            weights=self.weights[pairs],
        )

    @cached_property
    def by_context(self) -> NDArray[np.int64]:
        """int64[pairs]: the indices of the pairs, sorted by role and context; empty if `exact` is False."""
        if not self.exact:
            return np.zeros(0, np.int64)
        columns = [self.keys[:, 0], *self.contexts.T]
        return np.lexsort(columns[::-1]).astype(np.int64)

    @cached_property
    def first_moves(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The different first moves of each pair: (starts int64[pairs + 1], move numbers int32[any]).

        Pair i has the move numbers `starts[i] : starts[i + 1]`.
        """
        pair_of = np.repeat(np.arange(len(self)), np.diff(self.starts))
        first = np.unique(np.column_stack([pair_of, self.moves[:, 0]]).astype(np.int64), axis=0)
        starts = np.searchsorted(first[:, 0], np.arange(len(self) + 1))
        return starts.astype(np.int64), first[:, 1].astype(np.int32)


def pair_keys(roles: NDArray[np.int8], moves: Moves, contexts: Bits, trees: Trees) -> Bits:
    """Return the keys of pairs, uint64[n, 2 + words].

    A key consists of the advised role, a number and the context. The number is the first move + 1 if `trees` is
    "first", else 0.
    """
    first = moves[:, :1] + 1 if trees == "first" else np.zeros((len(moves), 1), np.int32)
    return np.hstack([column.astype(np.uint64) for column in (roles[:, None], first, contexts)])


@kernel
def holds(contexts: U64x2, pair: int, images: U64x2, symmetry: int, absent: int) -> bool:
    """Return whether the image of a state under a symmetry lacks at most `absent` facts of a pair's context."""
    num_absent = 0
    for word in range(contexts.shape[1]):
        missing = contexts[pair, word] & ~images[symmetry, word]
        while missing:
            num_absent += 1
            if num_absent > absent:
                return False
            missing &= missing - np.uint64(1)  # clears the lowest bit
    return True


@kernel
def smallest(images: U64x2) -> int:
    """Return the index of the smallest image of a state. This image is the canonical form of the state."""
    best = 0
    for symmetry in range(1, images.shape[0]):
        if comes_before(images[symmetry], images[best]):
            best = symmetry
    return best


@kernel
def candidates(roles: I8, contexts: U64x2, by_context: I64, role: int, state: U64) -> tuple[int, int]:
    """Return the range (first, end) of the pairs that can hold in a state, as indices into `by_context`.

    If `by_context` is empty, the contexts are not exact, and the range includes all pairs.

    state  the canonical form of the state; an exact context holds only if it is equal to this form
    """
    if by_context.size == 0:
        return 0, roles.size
    low, high = 0, by_context.size
    while low < high:
        middle = (low + high) // 2
        pair = by_context[middle]
        before = roles[pair] < role or (roles[pair] == role and comes_before(contexts[pair], state))
        low, high = (middle + 1, high) if before else (low, middle)
    end = low
    while end < by_context.size and roles[by_context[end]] == role:
        pair = by_context[end]
        if comes_before(state, contexts[pair]):
            break
        end += 1
    return low, end
