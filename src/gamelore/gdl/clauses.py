"""Clauses: rules with `or` multiplied out, substitution and unification, and the dependencies of relations.

A *clause* is a head and a conjunction of literals. A rule with an `or` gives several clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, product
from math import prod
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..errors import GDLSemanticError
from . import syntax
from .limits import check
from .syntax import And, Atom, Condition, Constant, Distinct, Function, Location, Not, Or, Rule, Term, Variable

MAX_CONJUNCTIONS = 4096  # maximum number of conjunctions of one rule after its `or`s are multiplied out

Signature: TypeAlias = tuple[str, int]
"""Name and number of arguments of a relation."""


class Literal(NamedTuple):
    """An atom, a comparison of two terms, or the negation of one of these."""

    positive: bool
    sentence: Atom | Distinct

    @property
    def condition(self) -> Condition:
        """Condition of a rule with the same meaning."""
        return self.sentence if self.positive else Not(self.sentence, self.sentence.location)


@dataclass(frozen=True, eq=False)
class Clause:
    """Clause: `head` holds if all literals of `body` hold. `location` is the place of its rule in the text."""

    head: Atom
    body: tuple[Literal, ...]
    location: Location

    def __str__(self) -> str:
        return str(self.rule)

    @property
    def rule(self) -> Rule:
        """Rule with the same meaning."""
        return Rule(self.head, tuple(literal.condition for literal in self.body), self.location, bool(self.body))

    @cached_property
    def positive(self) -> tuple[Atom, ...]:
        """Atoms of the body that must hold."""
        return tuple(s for positive, s in self.body if positive and isinstance(s, Atom))

    @cached_property
    def negative(self) -> tuple[Atom, ...]:
        """Atoms of the body that must not hold."""
        return tuple(s for positive, s in self.body if not positive and isinstance(s, Atom))

    @cached_property
    def variables(self) -> dict[str, None]:
        """Names of the variables, in order of first appearance."""
        return variables([self.head, *sentences_of(self.body)])


def signature(atom: Atom) -> Signature:
    """Return the name and the number of arguments of an atom. Some sheets use one name for several relations."""
    return atom.name, len(atom.args)


def shape(term: Term) -> Signature | None:
    """Return the name of a fact or move and its number of arguments; None for a variable, which has any shape."""
    return None if isinstance(term, Variable) else (term.name, len(term.args) if isinstance(term, Function) else 0)


def conjunctions(rule: Rule, path: Path | None = None) -> list[tuple[Literal, ...]]:
    """Return the body of a rule in disjunctive normal form.

    Raises GDLSemanticError if it has more than MAX_CONJUNCTIONS conjunctions.
    """
    check()
    body = And(rule.body, rule.location)
    if _num_alternatives(body, positive=True) > MAX_CONJUNCTIONS:
        raise GDLSemanticError(
            f"with all combinations of its 'or' branches, this rule has more than {MAX_CONJUNCTIONS} conjunctions",
            path=path,
            **rule.location._asdict(),
            rule=str(rule),
            remedy="define a new relation for each 'or', and use these relations in the body",
        )
    return _alternatives(body, positive=True)


def _num_alternatives(condition: Condition, positive: bool) -> int:
    """Return the number of conjunctions of `_alternatives` without building them."""
    match condition:
        case Atom() | Distinct():
            return 1
        case Not(inner):
            return _num_alternatives(inner, not positive)
        case Or(parts) | And(parts):
            numbers = [_num_alternatives(part, positive) for part in parts]
            return sum(numbers) if isinstance(condition, Or) == positive else prod(numbers)


def _alternatives(condition: Condition, positive: bool) -> list[tuple[Literal, ...]]:
    """Return a condition, or its negation, as a disjunction of conjunctions of literals."""
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


def clauses(sheet: syntax.Rulesheet) -> list[Clause]:
    """Return all rules of a sheet as clauses. Equalities are substituted. Clauses that can never hold are left out."""
    bodies = ((rule, body) for rule in sheet.rules for body in conjunctions(rule, sheet.path))
    simplified = (without_comparisons(Clause(rule.head, body, rule.location)) for rule, body in bodies)
    return [clause for clause in simplified if clause is not None]


def without_comparisons(clause: Clause) -> Clause | None:
    """Apply comparisons: substitute t for ?x in `(not (distinct ?x t))`, and drop comparisons that always hold.

    Return None if a comparison can never hold.
    """
    for literal in clause.body:
        if not isinstance(literal.sentence, Distinct):
            continue
        left, right = literal.sentence.left, literal.sentence.right
        rest = Clause(clause.head, tuple(other for other in clause.body if other is not literal), clause.location)
        if isinstance(right, Variable):
            left, right = right, left
        if left == right or not (syntax.variables_of(left) or syntax.variables_of(right)):
            return None if literal.positive == (left == right) else without_comparisons(rest)
        if not literal.positive and isinstance(left, Variable) and left.name not in syntax.variables_of(right):
            return without_comparisons(substituted(rest, {left.name: right}))
    return clause


def unfolded(clause: Clause, atom: Atom, definition: Clause) -> Clause | None:
    """Replace an atom of the body by the body of a definition.

    Return None if the atom does not unify with the head of the definition.
    """
    if not all(_alike(mine, theirs) for mine, theirs in zip(atom.args, definition.head.args, strict=True)):
        return None
    fresh = apart(definition, clause)
    terms: dict[str, Term] = {}
    if not all(_unify(mine, theirs, terms) for mine, theirs in zip(atom.args, fresh.head.args, strict=True)):
        return None
    rest = tuple(literal for literal in clause.body if literal.sentence is not atom)
    return without_comparisons(_resolved_clause(Clause(clause.head, (*rest, *fresh.body), clause.location), terms))


def equated(clause: Clause, left: Term, right: Term) -> Clause | None:
    """Return the clause with two terms made equal; None if they do not unify."""
    terms: dict[str, Term] = {}
    return _resolved_clause(clause, terms) if _unify(left, right, terms) else None


def apart(clause: Clause, other: Clause) -> Clause:
    """Return the clause with its variables renamed to names that `other` does not use."""
    terms: dict[str, Term] = {}
    for name in clause.variables:
        fresh = next(new for n in count() if (new := f"{name}'{n}") not in other.variables)
        terms[name] = Variable(fresh, clause.location)
    return substituted(clause, terms)


def _unify(left: Term, right: Term, terms: dict[str, Term]) -> bool:
    """Extend the substitution `terms` so that two terms become equal. Return False if this is impossible."""
    left, right = _resolved(left, terms), _resolved(right, terms)
    if isinstance(right, Variable):
        left, right = right, left
    match left, right:
        case _ if left == right:
            return True
        case Variable(name), _:
            terms[name] = right
            return name not in syntax.variables_of(right)
        case Function(), Function() if left.name == right.name and len(left.args) == len(right.args):
            return all(_unify(mine, theirs, terms) for mine, theirs in zip(left.args, right.args, strict=True))
    return False


def _alike(left: Term, right: Term) -> bool:
    """Return whether two terms may unify. This fast test compares only names: it is necessary, but not sufficient."""
    if isinstance(left, Function) and isinstance(right, Function):
        same = (left.name, len(left.args)) == (right.name, len(right.args))
        return same and all(_alike(mine, theirs) for mine, theirs in zip(left.args, right.args, strict=True))
    return isinstance(left, Variable) or isinstance(right, Variable) or left == right


def _resolved(term: Term, terms: Mapping[str, Term]) -> Term:
    """Apply a substitution to a term until nothing changes."""
    while syntax.variables_of(term) & terms.keys():
        term = _term(term, terms)
    return term


def _resolved_clause(clause: Clause, terms: Mapping[str, Term]) -> Clause:
    return substituted(clause, {name: _resolved(term, terms) for name, term in terms.items()})


def substituted(clause: Clause, terms: Mapping[str, Term]) -> Clause:
    """Return the clause with terms substituted for variables."""
    if not terms:
        return clause
    body = tuple(Literal(literal.positive, _sentence(literal.sentence, terms)) for literal in clause.body)
    head = _sentence(clause.head, terms)
    assert isinstance(head, Atom)
    return Clause(head, body, clause.location)


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
    """Return a text of conditions. Conditions that differ only in the names of variables have the same text.

    outer: the variables that are visible outside, in their order.
    """
    body = list(body)
    order = dict.fromkeys((*outer, *variables(sentences_of(body))))
    terms = {name: Variable(str(number), syntax.NOWHERE) for number, name in enumerate(order)}
    renamed = (Literal(positive, _sentence(sentence, terms)).condition for positive, sentence in body)
    return f"{len(outer)}: {' '.join(sorted(map(str, renamed)))}"


class NewRelations:
    """New relations `<prefix>1`, `<prefix>2`, .. for conjunctions.

    Conjunctions that differ only in the names of variables share a relation.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix, self._names = prefix, dict[str, str]()

    def atom(self, body: Iterable[Literal], outer: Sequence[str], location: Location) -> tuple[Atom, bool]:
        """Return the atom of the relation for these conditions, and whether the relation is new.

        outer: the variables that are the arguments of the atom.
        """
        text = _canonical(body, outer)
        is_new = text not in self._names
        name = self._names.setdefault(text, f"{self.prefix}{len(self._names) + 1}")
        return Atom(name, tuple(Variable(variable, location) for variable in outer), name, location), is_new


def variables(sentences: Iterable[Atom | Distinct]) -> dict[str, None]:
    """Return the names of the variables of sentences, in order of first appearance."""
    return dict.fromkeys(variable.name for variable in syntax.term_variables(*sentences))


def sentences_of(body: Iterable[Literal]) -> Iterator[Atom | Distinct]:
    """Return the sentences of the literals of a body."""
    return (literal.sentence for literal in body)


def all_atoms(body: Iterable[Literal]) -> Iterator[Atom]:
    """Return the atoms of a body, negated or not."""
    return (sentence for sentence in sentences_of(body) if isinstance(sentence, Atom))


Edges = Mapping[Signature, Iterable[Signature]]


def reachable(edges: Edges, roots: Iterable[Signature]) -> set[Signature]:
    """Return all nodes reachable from the roots, the roots included."""
    reached: set[Signature] = set()
    stack = list(roots)
    while stack:
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack += edges.get(name, ())
    return reached


class Dependencies:
    """Dependency graph of relations.

    uses: relation -> the relations in the bodies of its clauses.
    negates: relation -> the relations in negated conditions of its clauses.
    """

    def __init__(self, rules: Sequence[Clause]) -> None:
        self.uses: dict[Signature, set[Signature]] = {}
        self.negates: dict[Signature, set[Signature]] = {}
        for rule in rules:
            head = signature(rule.head)
            self.uses.setdefault(head, set()).update(map(signature, all_atoms(rule.body)))
            self.negates.setdefault(head, set()).update(map(signature, rule.negative))

    def below(self, *roots: Signature) -> set[Signature]:
        """Return these relations and all relations on which they depend."""
        return reachable(self.uses, roots)

    def users(self) -> dict[Signature, set[Signature]]:
        """Return relation -> the relations that use it in the bodies of their clauses."""
        users: dict[Signature, set[Signature]] = {}
        for name, uses in self.uses.items():
            check()
            for use in uses:
                users.setdefault(use, set()).add(name)
        return users

    def recursive(self) -> set[Signature]:
        """Return the relations that depend on themselves."""
        return {name for name, uses in self.uses.items() if name in self.below(*uses)}

    def negated_below(self, root: Signature) -> set[Signature]:
        """Return all relations on which a relation depends through at least one negation."""
        return self.below(*(negated for name in self.below(root) for negated in self.negates.get(name, ())))

    def negative_cycles(self) -> set[Signature]:
        """Return the relations of the strongly connected components that contain a negation."""
        component = syntax.components(self.uses)
        edges = ((component[head], component[name]) for head, negated in self.negates.items() for name in negated)
        broken = {source for source, target in edges if source == target}
        return {name for name, number in component.items() if number in broken}
