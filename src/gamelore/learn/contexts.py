"""Context pairs: a context with the tree of sequences that it calls for (Lock & Epstein 2004, section 1.1).

Sequences whose contexts coincide, up to symmetry, are branches of one tree. A pair *advises* a move in a state where an
image of its context holds and the first move of the same image of one of its branches is legal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .patterns import Bits, Patterns
from .seqtable import Moves, canonical_contexts

Trees = Literal["context", "first"]


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of each pair's advice, float64[pairs] each.

    comments    states in which the expert was to move and the pair advised something
    agreements  those of them in which it advised the expert's move
    tries       states in which anybody made a move that the pair advised
    successes   those of them in matches that were a success for whoever made it
    """

    comments: NDArray[np.float64]
    agreements: NDArray[np.float64]
    tries: NDArray[np.float64]
    successes: NDArray[np.float64]

    @classmethod
    def empty(cls, num_pairs: int) -> Record:
        """Nothing known."""
        return cls(*np.zeros((4, num_pairs)))

    def __getitem__(self, chosen: NDArray[np.intp]) -> Record:
        return Record(self.comments[chosen], self.agreements[chosen], self.tries[chosen], self.successes[chosen])

    def put(self, places: NDArray[np.intp], other: Record) -> None:
        """Writes another's rows into these places."""
        for name in ("comments", "agreements", "tries", "successes"):
            getattr(self, name)[places] = getattr(other, name)


@dataclass(frozen=True, eq=False)
class ContextPairs:
    """Pairs, one after the other; pair i has the branches `starts[i] : starts[i + 1]`.

    keys      uint64[pairs, 2 + words], who is advised, the first move + 1 where that tells pairs apart, the context
    starts    int64[pairs + 1]
    kinds     int8[branches], DUET or SOLO
    moves     int32[branches, longest], move numbers (patterns.py), NO_MOVE behind the end
    weights   float64[pairs], 0 to 1; 0 until they are weighed
    exact     the contexts are whole states, so that those that hold in a state are found by one look-up
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
        """int8[pairs]: who is advised."""
        return self.keys[:, 0].astype(np.int8)

    @cached_property
    def contexts(self) -> Bits:
        """uint64[pairs, words]."""
        return np.ascontiguousarray(self.keys[:, 2:])

    @classmethod
    def none(cls, patterns: Patterns, longest: int) -> ContextPairs:
        """No pairs yet."""
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
        """The pairs of sequences with their contexts, in an order that the sequences' order does not matter to.

        trees: "context" makes one tree of all sequences of a role with one context; "first" one for each first move.
        """
        moves, contexts = canonical_contexts(patterns, moves, contexts)
        first = moves[:, :1] + 1 if trees == "first" else np.zeros((len(moves), 1), np.int32)
        columns = (roles[:, None], first, contexts, kinds[:, None], moves)
        branches = np.unique(np.hstack([column.astype(np.uint64) for column in columns]), axis=0)
        width = 2 + contexts.shape[1]
        begins = np.flatnonzero(_differs_from_before(branches[:, :width]))
        return cls(
            patterns,
            np.ascontiguousarray(branches[begins, :width]),
            np.append(begins, len(branches)).astype(np.int64),
            branches[:, width].astype(np.int8),
            np.ascontiguousarray(branches[:, width + 1 :].astype(np.int32)),
            Record.empty(len(begins)),
            np.zeros(len(begins)),
            exact,
        )

    def inheriting(self, earlier: ContextPairs) -> ContextPairs:
        """The same pairs; those that were there earlier keep their record."""
        # trailing zeros are cut, so that patterns which grew wider are the same
        places = {key.tobytes().rstrip(b"\0"): i for i, key in enumerate(earlier.keys)}
        known = np.array([places.get(key.tobytes().rstrip(b"\0"), -1) for key in self.keys], np.intp)
        self.record.put(np.flatnonzero(known >= 0), earlier.record[known[known >= 0]])
        return self

    def weighed(self, weights: NDArray[np.float64]) -> ContextPairs:
        """The same pairs with these weights."""
        return replace(self, weights=weights)

    def chosen(self, pairs: NDArray[np.intp]) -> ContextPairs:
        """Some of the pairs, in the order asked for."""
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
        """int64[pairs]: the pairs by role and context where the contexts are exact, else none."""
        if not self.exact:
            return np.zeros(0, np.int64)
        columns = [self.keys[:, 0], *self.contexts.T]
        return np.lexsort(columns[::-1]).astype(np.int64)

    @cached_property
    def first_moves(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The different first moves of each pair: (starts int64[pairs + 1], move numbers int32[any])."""
        pair_of = np.repeat(np.arange(len(self)), np.diff(self.starts))
        first = np.unique(np.column_stack([pair_of, self.moves[:, 0]]).astype(np.int64), axis=0)
        starts = np.searchsorted(first[:, 0], np.arange(len(self) + 1))
        return starts.astype(np.int64), first[:, 1].astype(np.int32)


def _differs_from_before(rows: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool[n]: the first of each run of equal rows."""
    differs = np.ones(len(rows), np.bool_)
    differs[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return differs
