"""Rules with flat bodies. A *clause* is a head and literals that must all hold; a rule with an `or` gives several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, product
from math import prod
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..errors import GDLSemanticError
from . import relations
from .gdl import And, Atom, Condition, Constant, Distinct, Function, Location, Not, Or, Rule, Rulesheet, Term, Variable

MAX_CONJUNCTIONS = 4096  # of one rule whose `or`s are multiplied out

Signature: TypeAlias = tuple[str, int]
"""The name and the number of arguments of a relation."""


class Literal(NamedTuple):
    """An atom or a comparison of two terms, perhaps negated."""

    positive: bool
    sentence: Atom | Distinct

    @property
    def condition(self) -> Condition:
        """The literal as a condition of a rule."""
        return self.sentence if self.positive else Not(self.sentence, self.sentence.location)


@dataclass(frozen=True, eq=False)
class Clause:
    """`head` holds where all of `body` does; `location` is that of the rule it comes from."""

    head: Atom
    body: tuple[Literal, ...]
    location: Location

    def __str__(self) -> str:
        return str(self.rule)

    @property
    def rule(self) -> Rule:
        """The clause as a rule."""
        return Rule(self.head, tuple(literal.condition for literal in self.body), self.location, bool(self.body))

    @cached_property
    def positive(self) -> tuple[Atom, ...]:
        """The atoms that must hold."""
        return tuple(s for positive, s in self.body if positive and isinstance(s, Atom))

    @cached_property
    def variables(self) -> dict[str, None]:
        """The names of the variables, in the order in which they first stand there."""
        return variables([self.head, *sentences(self.body)])


def signature(atom: Atom) -> Signature:
    """Tells relations apart; some sheets use one name with several arities."""
    return atom.name, len(atom.args)


def conjunctions(rule: Rule, path: Path | None = None) -> list[tuple[Literal, ...]]:
    """The body of a rule in disjunctive normal form; several `or`s are multiplied out.

    Raises GDLSemanticError where that gives more than MAX_CONJUNCTIONS.
    """
    body = And(rule.body, rule.location)
    if _num_alternatives(body, positive=True) > MAX_CONJUNCTIONS:
        raise GDLSemanticError(
            f"the `or`s of this rule multiply out to more than {MAX_CONJUNCTIONS} conjunctions",
            path=path,
            line=rule.location.line,
            column=rule.location.column,
            rule=str(rule),
            remedy="give each `or` a relation of its own and use that in the body",
        )
    return _alternatives(body, positive=True)


def _num_alternatives(condition: Condition, positive: bool) -> int:
    """How many conjunctions `_alternatives` would give, without making them."""
    match condition:
        case Atom() | Distinct():
            return 1
        case Not(inner):
            return _num_alternatives(inner, not positive)
        case Or(parts) | And(parts):
            numbers = [_num_alternatives(part, positive) for part in parts]
            return sum(numbers) if isinstance(condition, Or) == positive else prod(numbers)


def _alternatives(condition: Condition, positive: bool) -> list[tuple[Literal, ...]]:
    """A condition, or its negation, as a disjunction of conjunctions of literals."""
    match condition:
        case Atom() | Distinct():
            return [(Literal(positive, condition),)]
        case Not(inner):
            return _alternatives(inner, not positive)
        case Or(parts) | And(parts):
            choices = [_alternatives(part, positive) for part in parts]
            if isinstance(condition, Or) == positive:
                return [alternative for choice in choices for alternative in choice]
            return [tuple(chain(*combination)) for combination in product(*choices)]


def clauses(sheet: Rulesheet) -> list[Clause]:
    """All rules of a sheet as clauses, equalities put in, without those that can never hold."""
    found = []
    for rule in sheet.rules:
        for body in conjunctions(rule, sheet.path):
            clause = without_comparisons(Clause(rule.head, body, rule.location))
            if clause is not None:
                found.append(clause)
    return found


def without_comparisons(clause: Clause) -> Clause | None:
    """Puts `(not (distinct ?x t))` in, drops comparisons that always hold; None where one never does."""
    for literal in clause.body:
        if not isinstance(literal.sentence, Distinct):
            continue
        left, right = literal.sentence.left, literal.sentence.right
        rest = tuple(other for other in clause.body if other is not literal)
        if isinstance(right, Variable):
            left, right = right, left
        if left == right or not (relations.variables_of(left) or relations.variables_of(right)):
            if literal.positive == (left == right):
                return None
            return without_comparisons(Clause(clause.head, rest, clause.location))
        if not literal.positive and isinstance(left, Variable) and left.name not in relations.variables_of(right):
            return without_comparisons(substituted(Clause(clause.head, rest, clause.location), {left.name: right}))
    return clause


def unfolded(clause: Clause, atom: Atom, definition: Clause) -> Clause | None:
    """The clause with the body of a definition in the place of an atom; None where the two do not fit together."""
    if not all(_alike(mine, theirs) for mine, theirs in zip(atom.args, definition.head.args, strict=True)):
        return None
    fresh = apart(definition, clause)
    terms: dict[str, Term] = {}
    if not all(_unified(mine, theirs, terms) for mine, theirs in zip(atom.args, fresh.head.args, strict=True)):
        return None
    rest = tuple(literal for literal in clause.body if literal.sentence is not atom)
    joined = Clause(clause.head, (*rest, *fresh.body), clause.location)
    return without_comparisons(_put_in(joined, terms))


def equated(clause: Clause, left: Term, right: Term) -> Clause | None:
    """The clause where two terms are the same one; None where they cannot be."""
    terms: dict[str, Term] = {}
    return _put_in(clause, terms) if _unified(left, right, terms) else None


def apart(clause: Clause, other: Clause) -> Clause:
    """The clause with variables that the other does not have."""
    terms: dict[str, Term] = {}
    for name in clause.variables:
        fresh = next(new for n in count() if (new := f"{name}'{n}") not in other.variables)
        terms[name] = Variable(fresh, clause.location)
    return substituted(clause, terms)


def _put_in(clause: Clause, terms: Mapping[str, Term]) -> Clause:
    return substituted(clause, {name: _resolved(term, terms) for name, term in terms.items()})


def _unified(left: Term, right: Term, terms: dict[str, Term]) -> bool:
    """Makes two terms equal by putting terms for variables."""
    left, right = _resolved(left, terms), _resolved(right, terms)
    if left == right:
        return True
    if isinstance(right, Variable):
        left, right = right, left
    if isinstance(left, Variable):
        if left.name in relations.variables_of(right):
            return False
        terms[left.name] = right
        return True
    if (
        isinstance(left, Function)
        and isinstance(right, Function)
        and (left.name, len(left.args)) == (right.name, len(right.args))
    ):
        return all(_unified(mine, theirs, terms) for mine, theirs in zip(left.args, right.args, strict=True))
    return False


def _alike(left: Term, right: Term) -> bool:
    """Whether two terms might be made equal, seen from afar: no constant or function in the place of another."""
    if isinstance(left, Function) and isinstance(right, Function):
        same = (left.name, len(left.args)) == (right.name, len(right.args))
        return same and all(_alike(mine, theirs) for mine, theirs in zip(left.args, right.args, strict=True))
    return isinstance(left, Variable) or isinstance(right, Variable) or left == right


def _resolved(term: Term, terms: Mapping[str, Term]) -> Term:
    """The term with everything put in."""
    while True:
        names = relations.variables_of(term) & terms.keys()
        if not names:
            return term
        term = _term(term, terms)


def substituted(clause: Clause, terms: Mapping[str, Term]) -> Clause:
    """The clause with terms in the place of variables."""
    if not terms:
        return clause
    body = tuple(Literal(literal.positive, _sentence(literal.sentence, terms)) for literal in clause.body)
    head = _sentence(clause.head, terms)
    assert isinstance(head, Atom)
    return Clause(head, body, clause.location)


def _renamed(literal: Literal, names: Mapping[str, str]) -> Literal:
    terms = {old: Variable(new, literal.sentence.location) for old, new in names.items()}
    return Literal(literal.positive, _sentence(literal.sentence, terms))


def _sentence(sentence: Atom | Distinct, terms: Mapping[str, Term]) -> Atom | Distinct:
    if isinstance(sentence, Distinct):
        return Distinct(_term(sentence.left, terms), _term(sentence.right, terms), sentence.location)
    arguments = tuple(_term(argument, terms) for argument in sentence.args)
    return Atom(sentence.name, arguments, sentence.spelling, sentence.location)


def _term(term: Term, terms: Mapping[str, Term]) -> Term:
    match term:
        case Variable(name):
            return terms.get(name, term)
        case Function(name, arguments, spelling, location):
            return Function(name, tuple(_term(argument, terms) for argument in arguments), spelling, location)
        case Constant():
            return term


def _canonical(body: Iterable[Literal], outer: Sequence[str]) -> str:
    """The same text for conditions that differ in the names of variables alone; `outer` are those that are seen."""
    body = list(body)
    numbers = {name: str(number) for number, name in enumerate(outer)}
    for name in variables(sentences(body)):
        numbers.setdefault(name, str(len(numbers)))
    return f"{len(outer)}: {' '.join(sorted(str(_renamed(literal, numbers).condition) for literal in body))}"


class NewRelations:
    """Relations made of conditions, `<prefix>1` and on: one for conditions that differ in names of variables alone."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self._names = prefix, dict[str, str]()

    def atom(self, body: Iterable[Literal], outer: Sequence[str], location: Location) -> tuple[Atom, bool]:
        """The relation of these conditions, applied to their variables `outer`; whether it is new."""
        text = _canonical(body, outer)
        is_new = text not in self._names
        name = self._names.setdefault(text, f"{self.prefix}{len(self._names) + 1}")
        return Atom(name, tuple(Variable(variable, location) for variable in outer), name, location), is_new


def variables(sentences: Iterable[Atom | Distinct]) -> dict[str, None]:
    """The names of the variables of sentences, in the order in which they first stand there."""
    return dict.fromkeys(variable.name for variable in relations.variables(*sentences))


def sentences(body: Iterable[Literal]) -> Iterator[Atom | Distinct]:
    """What the literals of a body speak of."""
    return (literal.sentence for literal in body)


def all_atoms(body: Iterable[Literal]) -> Iterator[Atom]:
    """The atoms of a body, negated or not."""
    return (sentence for sentence in sentences(body) if isinstance(sentence, Atom))
