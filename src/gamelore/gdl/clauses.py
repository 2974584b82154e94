"""Clauses: rules with `or` multiplied out, substitution and unification, and the dependencies of relations.

A *clause* is a head and a conjunction of literals. A rule with an `or` gives several clauses.

Relation p depends on relation q if q is in the body of a rule for p. The keywords of GDL are relations like any other.
Relations are told apart by name and arity. `RelationGraph` is made of the rules of a sheet, `Dependencies` of clauses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain, count, product
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeAlias, TypeVar

from ..errors import GDLSemanticError
from . import syntax
from .limits import check, checked
from .syntax import (
    GIVEN_RELATIONS,
    KEYWORD_ARITY,
    MAX_NESTING,
    And,
    Atom,
    Condition,
    Constant,
    Distinct,
    Function,
    Location,
    Not,
    Or,
    Rule,
    Rulesheet,
    Term,
    Variable,
    body_atoms,
)

MAX_CONJUNCTIONS = 4096  # maximum number of conjunctions of one rule after its `or`s are multiplied out
MAX_LITERALS = 1_000_000  # maximum number of literals in them, which take half a second and 100 MB
MAX_GROWTH = 100_000  # maximum number of names by which a clause grows with terms in place of variables

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


def keyword(word: str) -> Signature:
    """Return the signature of a keyword of GDL."""
    return word, KEYWORD_ARITY[word]


def shape(term: Term) -> Signature | None:
    """Return the name of a fact or move and its number of arguments; None for a variable, which has any shape."""
    return None if isinstance(term, Variable) else (term.name, len(term.args) if isinstance(term, Function) else 0)


def conjunctions(rule: Rule, path: Path | None = None) -> list[tuple[Literal, ...]]:
    """Return the body of a rule in disjunctive normal form.

    Raises GDLSemanticError if it has more than MAX_CONJUNCTIONS conjunctions, or more than MAX_LITERALS literals.
    """
    literals: list[Literal] = []
    for condition in rule.body:
        check()
        literal = _literal(condition)
        if literal is None:
            return _NormalForm(rule, path).alternatives
        literals.append(literal)
    return [tuple(literals)]


def _literal(condition: Condition) -> Literal | None:
    """Return a condition as a literal; None for an `or` or an `and`, or the negation of one of these."""
    positive = True
    while isinstance(condition, Not):
        condition, positive = condition.condition, not positive
    return None if isinstance(condition, Or | And) else Literal(positive, condition)


class _Size(NamedTuple):
    """Size of a disjunctive normal form: the number of conjunctions, and that of all literals in them.

    Numbers above the bounds are cut, so that they do not get thousands of digits.
    """

    conjunctions: int
    literals: int

    def either(self, other: _Size) -> _Size:
        """Return the size of a disjunction."""
        return _cut(self.conjunctions + other.conjunctions, self.literals + other.literals)

    def both(self, other: _Size) -> _Size:
        """Return the size of a conjunction."""
        literals = self.literals * other.conjunctions + self.conjunctions * other.literals
        return _cut(self.conjunctions * other.conjunctions, literals)


def _cut(conjunctions: int, literals: int) -> _Size:
    return _Size(min(conjunctions, MAX_CONJUNCTIONS + 1), min(literals, MAX_LITERALS + 1))


class _NormalForm:
    """Disjunctive normal form of the body of a rule. Its size is computed before anything is multiplied out."""

    def __init__(self, rule: Rule, path: Path | None) -> None:
        self.rule, self.path = rule, path
        self._sizes: dict[tuple[int, bool], _Size] = {}  # by the identity of an `or` or `and`, and whether it holds

    @property
    def alternatives(self) -> list[tuple[Literal, ...]]:
        """The body as a disjunction of conjunctions of literals."""
        body = And(self.rule.body, self.rule.location)
        size = self._size(body, positive=True)
        if size.conjunctions > MAX_CONJUNCTIONS:
            self._refuse(f"more than {MAX_CONJUNCTIONS} conjunctions")
        if size.literals > MAX_LITERALS:
            self._refuse(f"{size.conjunctions} conjunctions with more than {MAX_LITERALS} conditions in all")
        return self._alternatives(body, positive=True)

    def _refuse(self, got: str) -> NoReturn:
        raise GDLSemanticError(
            f"with all combinations of its 'or' branches, this rule has {got}",
            path=self.path,
            **self.rule.location._asdict(),
            rule=str(self.rule),
            remedy="define a new relation for each 'or', and use these relations in the body",
        )

    def _size(self, condition: Condition, positive: bool) -> _Size:
        """Return the size of `_alternatives` without building them."""
        check()
        match condition:
            case Not(inner):
                return self._size(inner, not positive)
            case Or(parts) | And(parts):
                sizes = (self._size(part, positive) for part in parts)
                is_or = isinstance(condition, Or) == positive
                size = reduce(_Size.either, sizes, _Size(0, 0)) if is_or else reduce(_Size.both, sizes, _Size(1, 0))
                self._sizes[id(condition), positive] = size
                return size
        return _Size(1, 1)

    def _alternatives(self, condition: Condition, positive: bool) -> list[tuple[Literal, ...]]:
        """Return a condition, or its negation, as a disjunction of conjunctions of literals."""
        check()
        match condition:
            case Not(inner):
                return self._alternatives(inner, not positive)
            case Or(parts) | And(parts):
                if not self._sizes[id(condition), positive].conjunctions:
                    return []  # one part is false, but the others may have more conjunctions than the bound
                choices = [self._alternatives(part, positive) for part in parts]
                if isinstance(condition, Or) == positive:
                    return [alternative for choice in choices for alternative in choice]
                return [tuple(chain(*combination)) for combination in product(*choices)]
        return [(Literal(positive, condition),)]


class TermsTooLargeError(Exception):
    """A clause would grow by more than MAX_GROWTH names, or get a term of more than MAX_NESTING levels."""


def clauses(sheet: syntax.Rulesheet) -> list[Clause]:
    """Return all rules of a sheet as clauses. Equalities are substituted. Clauses that can never hold are left out.

    Raises GDLSemanticError if the terms of a rule get too large.
    """
    bodies = ((rule, body) for rule in sheet.rules for body in conjunctions(rule, sheet.path))
    simplified = (_simplified(rule, body, sheet.path) for rule, body in bodies)
    return [clause for clause in simplified if clause is not None]


def _simplified(rule: Rule, body: tuple[Literal, ...], path: Path | None) -> Clause | None:
    try:
        return without_comparisons(Clause(rule.head, body, rule.location))
    except TermsTooLargeError:
        raise GDLSemanticError(
            f"with equal terms in place of variables, this rule grows by more than {MAX_GROWTH} names, or has a term "
            f"of more than {MAX_NESTING} levels",
            path=path,
            **rule.location._asdict(),
            rule=str(rule),
            remedy="use fewer conditions whose terms contain the variables of each other",
        ) from None


def without_comparisons(clause: Clause) -> Clause | None:
    """Apply comparisons: substitute t for ?x in `(not (distinct ?x t))`, and drop comparisons that always hold.

    Return None if a comparison can never hold. Raises TermsTooLargeError.
    """
    if not any(isinstance(sentence, Distinct) for sentence in sentences_of(clause.body)):
        return clause
    equalities, applied = _Substitution(), set[int]()
    for place, (positive, sentence) in enumerate(clause.body):
        check()
        if isinstance(sentence, Distinct) and not positive and equalities.equate(sentence.left, sentence.right):
            applied.add(place)
    if applied:
        rest = tuple(literal for place, literal in enumerate(clause.body) if place not in applied)
        clause = equalities.applied(Clause(clause.head, rest, clause.location))
    kept: list[Literal] = []
    for literal in clause.body:
        check()
        holds = _value(literal)
        if holds is False:
            return None
        if holds is None:
            kept.append(literal)
    return clause if len(kept) == len(clause.body) else Clause(clause.head, tuple(kept), clause.location)


def _value(literal: Literal) -> bool | None:
    """Return whether a comparison holds; None if this depends on variables, and for an atom."""
    if not isinstance(literal.sentence, Distinct):
        return None
    left, right = literal.sentence.left, literal.sentence.right
    if left == right:
        return not literal.positive
    return None if syntax.variables_of(left) or syntax.variables_of(right) else literal.positive


def unfolded(clause: Clause, atom: Atom, definition: Clause) -> Clause | None:
    """Replace an atom of the body by the body of a definition.

    Return None if the atom does not unify with the head of the definition. Raises TermsTooLargeError.
    """
    if not all(_alike(mine, theirs) for mine, theirs in zip(atom.args, definition.head.args, strict=True)):
        return None
    fresh = apart(definition, clause)
    made_equal = _Substitution()
    if not all(made_equal.unify(mine, theirs) for mine, theirs in zip(atom.args, fresh.head.args, strict=True)):
        return None
    rest = tuple(literal for literal in clause.body if literal.sentence is not atom)
    return without_comparisons(made_equal.applied(Clause(clause.head, (*rest, *fresh.body), clause.location)))


def equated(clause: Clause, left: Term, right: Term) -> Clause | None:
    """Return the clause with two terms made equal; None if they do not unify. Raises TermsTooLargeError."""
    made_equal = _Substitution()
    return made_equal.applied(clause) if made_equal.unify(left, right) else None


def apart(clause: Clause, other: Clause) -> Clause:
    """Return the clause with its variables renamed to names that `other` does not use."""
    terms: dict[str, Term] = {}
    for name in clause.variables:
        fresh = next(new for n in count() if (new := f"{name}'{n}") not in other.variables)
        terms[name] = Variable(fresh, clause.location)
    return substituted(clause, terms)


def _alike(left: Term, right: Term) -> bool:
    """Return whether two terms may unify. This fast test compares only names: it is necessary, but not sufficient."""
    if isinstance(left, Function) and isinstance(right, Function):
        same = (left.name, len(left.args)) == (right.name, len(right.args))
        return same and all(_alike(mine, theirs) for mine, theirs in zip(left.args, right.args, strict=True))
    return isinstance(left, Variable) or isinstance(right, Variable) or left == right


class _Substitution:
    """Terms for variables of a clause, given one after another. The variables in a term may have terms, too.

    Terms that contain each other may double with each variable. Raises TermsTooLargeError.
    """

    def __init__(self) -> None:
        self._terms: dict[str, Term] = {}

    def equate(self, left: Term, right: Term) -> bool:
        """Make two terms equal if one is a variable that is not in the other. Return whether it is."""
        left, right = self._resolved(left), self._resolved(right)
        if isinstance(right, Variable):
            left, right = right, left
        if not isinstance(left, Variable) or left.name in syntax.variables_of(right):
            return False
        self._terms[left.name] = right
        return True

    def unify(self, left: Term, right: Term) -> bool:
        """Make two terms equal. Return False if this is impossible."""
        left, right = self._resolved(left), self._resolved(right)
        if left == right or self.equate(left, right):
            return True
        match left, right:
            case Function(), Function() if left.name == right.name and len(left.args) == len(right.args):
                return all(self.unify(mine, theirs) for mine, theirs in zip(left.args, right.args, strict=True))
        return False

    def _resolved(self, term: Term) -> Term:
        """Return the term with terms in place of variables, and in these terms, too."""
        if isinstance(term, Constant) or not self._terms:
            return term
        num_names = 0

        def resolved(term: Term, level: int, is_new: bool) -> Term:
            nonlocal num_names
            check()
            num_names += is_new
            if num_names > MAX_GROWTH or level > MAX_NESTING:
                raise TermsTooLargeError
            match term:
                case Variable():
                    last = self._last(term)
                    return resolved(self._terms[last.name], level, True) if last.name in self._terms else last
                case Function(name, arguments, spelling, location):
                    inside = tuple(resolved(argument, level + 1, is_new) for argument in arguments)
                    return Function(name, inside, spelling, location)
            return term

        return resolved(term, 1, False)

    def _last(self, variable: Variable) -> Variable:
        """Follow variables that stand for variables to the last one, and let all of them stand for it directly."""
        passed: list[str] = []
        while isinstance(following := self._terms.get(variable.name), Variable):
            passed.append(variable.name)
            variable = following
        self._terms.update(dict.fromkeys(passed, variable))
        return variable

    def applied(self, clause: Clause) -> Clause:
        """Return the clause with terms in place of variables."""
        terms = {name: self._resolved(Variable(name, clause.location)) for name in self._terms}
        large = {name: _extent(term) for name, term in terms.items() if isinstance(term, Function)}
        growth = 0
        for term, level in _levels([clause.head, *sentences_of(clause.body)]) if large else ():
            if isinstance(term, Variable) and term.name in large:
                num_names, num_levels = large[term.name]
                growth += num_names
                if growth > MAX_GROWTH or level + num_levels - 1 > MAX_NESTING:
                    raise TermsTooLargeError
        return substituted(clause, terms)


def _extent(term: Term) -> tuple[int, int]:
    """Return the number of names and variables in a term, and the number of its levels."""
    levels = [level for _, level in _levels([Atom("", (term,), "", syntax.NOWHERE)])]
    return len(levels), max(levels)


def _levels(sentences: Iterable[Atom | Distinct]) -> Iterator[tuple[Term, int]]:
    """Yield all terms of sentences and the terms inside them. Yield the level of each, from 1, too."""
    for sentence in sentences:
        check()
        waiting = [(term, 1) for term in syntax.arguments(sentence)]
        for term, level in checked(waiting):  # the list grows while it is read
            yield term, level
            if isinstance(term, Function):
                waiting += [(argument, level + 1) for argument in term.args]


def substituted(clause: Clause, terms: Mapping[str, Term]) -> Clause:
    """Return the clause with terms substituted for variables."""
    if not terms:
        return clause
    body: list[Literal] = []
    for positive, sentence in clause.body:
        check()
        body.append(Literal(positive, _sentence(sentence, terms)))
    head = _sentence(clause.head, terms)
    assert isinstance(head, Atom)
    return Clause(head, tuple(body), clause.location)


def _sentence(sentence: Atom | Distinct, terms: Mapping[str, Term]) -> Atom | Distinct:
    if isinstance(sentence, Distinct):
        return Distinct(_term(sentence.left, terms), _term(sentence.right, terms), sentence.location)
    arguments = tuple(_term(argument, terms) for argument in sentence.args)
    return Atom(sentence.name, arguments, sentence.spelling, sentence.location)


def renamed(rule: Rule, names: Mapping[str, str]) -> Rule:
    """Return the rule with new names for some relations. Their atoms keep the spelling for messages."""

    def atom(atom: Atom) -> Atom:
        return replace(atom, name=names.get(atom.name, atom.name))

    def condition(old: Condition) -> Condition:
        match old:
            case Atom():
                return atom(old)
            case Not(inner, location):
                return Not(condition(inner), location)
            case Or(parts, location) | And(parts, location):
                return type(old)(tuple(map(condition, parts)), location)
        return old

    return replace(rule, head=atom(rule.head), body=tuple(map(condition, rule.body)))


def _term(term: Term, terms: Mapping[str, Term]) -> Term:
    match term:
        case Variable(name):
            return terms.get(name, term)
        case Function(name, arguments, spelling, location):
            check()
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


Node = TypeVar("Node", bound=Hashable)


def components(edges: Mapping[Node, Iterable[Node]]) -> dict[Node, int]:
    """Return the number of the strongly connected component of each node. Nodes are sources and targets of edges."""
    import rustworkx

    nodes = dict.fromkeys(node for source, targets in edges.items() for node in (source, *targets))
    graph: rustworkx.PyDiGraph[Node, None] = rustworkx.PyDiGraph()
    number = dict(zip(nodes, graph.add_nodes_from(list(nodes)), strict=True))
    graph.add_edges_from_no_data([(number[source], number[use]) for source, uses in edges.items() for use in uses])
    groups = rustworkx.strongly_connected_components(graph)
    return {graph[node]: group for group, members in enumerate(groups) for node in members}


def users_of(edges: Mapping[Node, Iterable[Node]]) -> dict[Node, list[Node]]:
    """Return the edges the other way round: for each target, its sources in their order."""
    users: dict[Node, list[Node]] = {}
    for source, targets in edges.items():
        check()
        for target in targets:
            users.setdefault(target, []).append(source)
    return users


class RelationGraph:
    """Dependency graph of the relations of a sheet.

    bodies: relation -> the relations in the bodies of its rules, in order.
    """

    def __init__(self, sheet: Rulesheet) -> None:
        self.bodies: dict[Signature, dict[Signature, None]] = {}
        for rule in checked(sheet.rules):
            uses = self.bodies.setdefault(signature(rule.head), {})
            for atom in map(signature, body_atoms(rule)):
                self.bodies.setdefault(atom, {})
                if rule.head.name not in GIVEN_RELATIONS:
                    uses[atom] = None

    @cached_property
    def users(self) -> dict[Signature, list[Signature]]:
        """The relations in whose rules each relation is used."""
        return users_of(self.bodies)

    def toward(self, target: Signature, start: Signature | None = None) -> dict[Signature, Signature]:
        """Map every relation that depends on `target` to the next relation on a shortest path to it.

        If there is a `start`, the map ends with it.
        """
        steps: dict[Signature, Signature] = {}
        queue = [target]
        for name in queue:
            check()
            if start in steps:
                break
            new = [head for head in self.users.get(name, ()) if head not in steps]
            steps.update(dict.fromkeys(new, name))
            queue += new
        return steps

    def path(self, start: Signature, target: Signature) -> list[Signature]:
        """Return a shortest path from `start` to `target`, both included. `start` must depend on `target`."""
        return followed(self.toward(target, start), start, target)

    @cached_property
    def groups(self) -> dict[Signature, int]:
        """Number of the strongly connected component of each relation."""
        return components(self.bodies)

    def recursive(self, head: Atom, condition: Atom) -> bool:
        """Return whether a condition of a rule is in a cycle with the head."""
        return self.groups[signature(head)] == self.groups[signature(condition)]


def followed(steps: Mapping[Node, Node], start: Node, target: Node) -> list[Node]:
    """Return the path from `start` to `target`, both included, in a map from each relation to the next."""
    path = [start]
    while path[-1] != target:
        check()
        path.append(steps[path[-1]])
    return path


def reachable(edges: Mapping[Node, Iterable[Node]], roots: Iterable[Node]) -> set[Node]:
    """Return all nodes reachable from the roots, the roots included."""
    reached: set[Node] = set()
    stack = list(roots)
    while stack:
        check()
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack += edges.get(name, ())
    return reached


class Dependencies:
    """Dependency graph of the relations of clauses.

    uses: relation -> the relations in the bodies of its clauses.
    negates: relation -> the relations in negated conditions of its clauses.
    """

    def __init__(self, rules: Sequence[Clause]) -> None:
        self.uses: dict[Signature, set[Signature]] = {}
        self.negates: dict[Signature, set[Signature]] = {}
        for rule in rules:
            check()
            head = signature(rule.head)
            self.uses.setdefault(head, set()).update(map(signature, all_atoms(rule.body)))
            self.negates.setdefault(head, set()).update(map(signature, rule.negative))

    def below(self, *roots: Signature) -> set[Signature]:
        """Return these relations and all relations on which they depend."""
        return reachable(self.uses, roots)

    def recursive(self) -> set[Signature]:
        """Return the relations that depend on themselves."""
        component = components(self.uses)
        sizes = Counter(component.values())
        return {name for name, uses in self.uses.items() if sizes[component[name]] > 1 or name in uses}

    def negated_below(self, root: Signature) -> set[Signature]:
        """Return all relations on which a relation depends through at least one negation."""
        return self.below(*(negated for name in self.below(root) for negated in self.negates.get(name, ())))

    def negative_cycles(self) -> set[Signature]:
        """Return the relations of the strongly connected components that contain a negation."""
        component = components(self.uses)
        edges = ((component[head], component[name]) for head, negated in self.negates.items() for name in negated)
        broken = {source for source, target in edges if source == target}
        return {name for name, number in component.items() if number in broken}
