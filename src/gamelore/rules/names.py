"""Numbers for names, and ground terms as numbers: what makes the order of actions the same in both engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ..errors import GDLSemanticError
from .gdl import And, Atom, Condition, Distinct, Function, Not, Or, Rulesheet, Term, Variable

MAX_GOAL = 32767  # goals above 100 are a finding of the check, but play; they are kept in 16 bits

GroundTerm: TypeAlias = tuple[int, tuple["GroundTerm", ...]]
"""A ground term: the number of its name, its arguments. Python's order on these tuples is the order of actions."""


class Names:
    """Numbers for constants and functions, by first appearance in the sheet, and their first spelling."""

    def __init__(self, sheet: Rulesheet) -> None:
        self.numbers: dict[str, int] = {}
        self.spellings: list[str] = []
        self.relations: dict[str, int] = {}
        self.relation_spellings: list[str] = []
        self.declared_roles: dict[int, int] = {}
        self.add_relations(sheet)
        for rule in sheet.rules:
            for atom in _atoms((rule.head, *rule.body)):
                for term in atom.args:
                    self._number_term(term)
            if rule.head.name == "role" and not rule.body and not isinstance(rule.head.args[0], Variable):
                self.declared_roles.setdefault(self.numbers[rule.head.args[0].name], len(self.declared_roles))

    def add_relations(self, sheet: Rulesheet) -> None:
        """Numbers the relations of a sheet, by first appearance; those of rewritten rules come after the others."""
        for rule in sheet.rules:
            for atom in _atoms((rule.head, *rule.body)):
                if isinstance(atom, Atom) and atom.name not in self.relations:
                    self.relations[atom.name] = len(self.relation_spellings)
                    self.relation_spellings.append(atom.spelling)

    def _number_term(self, term: Term) -> None:
        if isinstance(term, Variable):
            return
        if term.name not in self.numbers:
            self.numbers[term.name] = len(self.spellings)
            self.spellings.append(term.spelling)
        if isinstance(term, Function):
            for argument in term.args:
                self._number_term(argument)

    def intern(self, name: str, spelling: str) -> int:
        """The number of a name, a new one if the sheet does not have it (facts that a caller brings along)."""
        if name not in self.numbers:
            self.numbers[name] = len(self.spellings)
            self.spellings.append(spelling)
        return self.numbers[name]

    def ground_term(self, term: Term) -> GroundTerm:
        """The numbered form of a term. Raises GDLSemanticError for one with variables."""
        if isinstance(term, Variable):
            raise GDLSemanticError(
                f"expected a fact or a move without variables, got {term}",
                line=term.location.line,
                column=term.location.column,
                remedy=f"put a term in the place of {term}",
            )
        number = self.intern(term.name, term.spelling)
        arguments = term.args if isinstance(term, Function) else ()
        return number, tuple(self.ground_term(argument) for argument in arguments)

    def place_of_role(self, role: GroundTerm) -> tuple[int, GroundTerm]:
        """Sorts roles by the order in which the sheet declares them; roles that a rule derives come last."""
        return self.declared_roles.get(role[0], len(self.declared_roles)), role

    def goal_value(self, term: GroundTerm) -> int | None:
        """The value of a term as a goal; None where it is no whole number from 0 to MAX_GOAL."""
        return goal_value(self.text(term))

    def text(self, term: GroundTerm) -> str:
        """Canonical text in the sheet's spelling: `(cell 1 1 b)`."""
        number, arguments = term
        if not arguments:
            return self.spellings[number]
        return f"({self.spellings[number]} {' '.join(map(self.text, arguments))})"


def goal_value(text: str) -> int | None:
    """The goal that a text writes; None where it is no whole number from 0 to MAX_GOAL."""
    digits = text.lstrip("0") or text[-1:]
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MAX_GOAL))
    return value if fits and (value := int(digits)) <= MAX_GOAL else None


class _Pair(NamedTuple):
    """The two sides of a `distinct`, seen as something that has arguments."""

    args: tuple[Term, ...]


def _atoms(conditions: Sequence[Condition]) -> Iterator[Atom | _Pair]:
    for condition in conditions:
        match condition:
            case Atom():
                yield condition
            case Distinct(left, right):
                yield _Pair((left, right))
            case Not(inner):
                yield from _atoms((inner,))
            case Or(parts) | And(parts):
                yield from _atoms(parts)
