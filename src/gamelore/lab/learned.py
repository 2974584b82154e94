"""Context pairs as text, the best first; pairs.py draws them for a terminal, boards.py as pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..learn.excerpts import KIND_NAMES, NO_MOVE
from .effects import Branch
from .pairs import DrawnPair

if TYPE_CHECKING:
    from ..learn.contexts import ContextPairs


class LearnedPair(NamedTuple):
    """A pair: who is advised, its context, its branches as (kind, moves), its weight and what `Record` has of it."""

    role: str
    context: frozenset[str]
    branches: tuple[tuple[str, Branch], ...]
    weight: float
    comments: float
    agreements: float
    tries: float
    successes: float

    def drawn(self, label: str) -> Iterator[DrawnPair]:
        """What there is to draw: its duets and its solos, each with the context."""
        for name in KIND_NAMES:
            moves = tuple(branch for kind, branch in self.branches if kind == name)
            if moves:
                yield DrawnPair(label, self.weight, self.context, moves, name)  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        """The same with the facts in order."""
        branches = [{"kind": kind, "moves": [list(move) for move in moves]} for kind, moves in self.branches]
        return {**self._asdict(), "context": sorted(self.context), "branches": branches}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> LearnedPair:
        """What `as_json` gave."""
        branches = tuple((one["kind"], tuple((role, move) for role, move in one["moves"])) for one in found["branches"])
        return cls(**{**found, "context": frozenset(found["context"]), "branches": branches})


def learned(pairs: ContextPairs, pair: int) -> LearnedPair:
    """A pair by its place."""
    patterns, record = pairs.patterns, pairs.record
    numbers = range(int(pairs.starts[pair]), int(pairs.starts[pair + 1]))
    return LearnedPair(
        patterns.game.roles[pairs.roles[pair]],
        patterns.facts(pairs.contexts[pair]),
        tuple((KIND_NAMES[pairs.kinds[i]], _branch(pairs, i)) for i in numbers),
        float(pairs.weights[pair]),
        *(float(column[pair]) for column in (record.comments, record.agreements, record.tries, record.successes)),
    )


def _branch(pairs: ContextPairs, number: int) -> Branch:
    moves = (pairs.patterns.move_text(move) for move in pairs.moves[number].tolist() if move != NO_MOVE)
    return tuple((pairs.patterns.game.roles[role], move) for role, move in moves)


def best(pairs: ContextPairs, num: int, *, role: str | None = None, min_weight: float = 0.0) -> list[LearnedPair]:
    """At most `num` pairs, of one role or all: by falling weight, of equal ones those with more comments first."""
    order = np.lexsort((-pairs.record.comments, -pairs.weights))
    chosen = pairs.weights[order] >= min_weight
    if role is not None:
        roles = pairs.patterns.game.roles
        chosen &= pairs.roles[order] == (roles.index(role) if role in roles else -1)
    return [learned(pairs, pair) for pair in order[chosen][:num].tolist()]
