"""What a circuit takes for granted of a state, beyond that it knows the facts: what rewriting the rules proved.

In every reachable state it holds; in one that somebody makes up it need not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..errors import GDLSemanticError
from .circuit import Circuit
from .clauses import clauses
from .gdl import Rulesheet
from .names import GroundTerm, Names
from .persistence import persistent


class Promises:
    """Of a game's circuit, which was compiled from rewritten rules as a rule."""

    def __init__(self, sheet: Rulesheet, names: Names, circuit: Circuit) -> None:
        self._text = names.text
        self._shapes = {(names.numbers[name], arity) for name, arity in persistent(clauses(sheet))}
        first = (fact for fact, holds in zip(circuit.facts, circuit.initial, strict=True) if holds)
        self._lasting = frozenset(filter(self._is_lasting, first))
        self._unique = circuit.unique

    def _is_lasting(self, fact: GroundTerm) -> bool:
        """Whether facts of this shape never change."""
        return (fact[0], len(fact[1])) in self._shapes

    def hold(self, facts: Collection[GroundTerm]) -> bool:
        """Whether a state with these facts keeps them."""
        return not self._changed(facts) and next(self._excluded(facts), None) is None

    def refuse_broken(self, facts: Collection[GroundTerm], game: str) -> None:
        """Raises GDLSemanticError, in which the game is called so, where a state with these facts does not."""
        for changed in self._changed(facts)[:1]:
            raise GDLSemanticError(
                f"expected the facts that never change in {game} as they are at the start, "
                f"got a difference in {self._text(changed)}",
                remedy='take those of game.start().facts, or load the game with engine="reasoner"',
            )
        for both in self._excluded(facts):
            raise GDLSemanticError(
                f"expected at most one of the facts of which {game} has one at most, "
                f"got {' and '.join(map(self._text, both))}",
                remedy='leave out all but one, or load the game with engine="reasoner"',
            )

    def _changed(self, facts: Collection[GroundTerm]) -> list[GroundTerm]:
        """The facts that never change in which a state with these facts differs from the first one."""
        return sorted(self._lasting.symmetric_difference(filter(self._is_lasting, facts)))

    def _excluded(self, facts: Collection[GroundTerm]) -> Iterator[list[GroundTerm]]:
        """Two facts each time, of which at most one holds."""
        for unique in self._unique:
            both = sorted(set(facts).intersection(unique))[:2]
            if len(both) == 2:
                yield both
