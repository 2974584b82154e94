"""What stands in a rulesheet and what depends on what: walks over terms and conditions, the graph of relations.

A *sentence* is an atom or a `distinct`, the smallest condition. Relation p depends on q where q stands in the body of a
rule for p; the words of GDL are relations like any other, and `true` and `does` depend on nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

from .gdl import And, Atom, Condition, Constant, Distinct, Function, Not, Or, Rule, Rulesheet, Term, Variable

Sentence: TypeAlias = Atom | Distinct
GIVEN = frozenset({"true", "does"})  # by the state and the players


def conditions(body: Iterable[Condition]) -> Iterator[Condition]:
    """Every condition of a body and every condition inside it, in the order of the text."""
    for condition in body:
        yield condition
        match condition:
            case Not(inner):
                yield from conditions((inner,))
            case Or(parts) | And(parts):
                yield from conditions(parts)


def terms(sentence: Sentence) -> Iterator[Term]:
    """Every term of a sentence and every term inside it, in the order of the text."""
    yield from _inside((sentence.left, sentence.right) if isinstance(sentence, Distinct) else sentence.args)


def _inside(arguments: Iterable[Term]) -> Iterator[Term]:
    for term in arguments:
        yield term
        if isinstance(term, Function):
            yield from _inside(term.args)


def variables(*sentences: Sentence) -> Iterator[Variable]:
    """The variables of sentences, as often as they stand there."""
    return (term for sentence in sentences for term in terms(sentence) if isinstance(term, Variable))


def variables_of(term: Term) -> set[str]:
    """The names of the variables in a term."""
    if isinstance(term, Function):
        return {inner.name for inner in _inside(term.args) if isinstance(inner, Variable)}
    return {term.name} if isinstance(term, Variable) else set()


def sentences(rule: Rule) -> Iterator[Sentence]:
    """The head and every sentence of the body."""
    yield rule.head
    yield from (condition for condition in conditions(rule.body) if isinstance(condition, Atom | Distinct))


def body_atoms(rule: Rule) -> Iterator[Atom]:
    """The atoms of the body, negated or not."""
    return (condition for condition in conditions(rule.body) if isinstance(condition, Atom))


def named_terms(rule: Rule) -> Iterator[Constant | Function]:
    """Every constant and function of a rule."""
    return (term for sentence in sentences(rule) for term in terms(sentence) if not isinstance(term, Variable))


class InContext(NamedTuple):
    """A sentence of a body, its sign, and the names of the variables that positive conditions beside it bind."""

    sentence: Sentence
    positive: bool
    bound: frozenset[str]


def _all_bind(atom: Atom) -> bool:
    return True


def in_context(rule: Rule, binds: Callable[[Atom], bool] = _all_bind) -> Iterator[InContext]:
    """The sentences of a body, each with what is bound there; only atoms for which `binds` holds bind variables."""
    yield from _in_context(rule.body, _Binding(rule, binds), frozenset())


def bound(rule: Rule) -> frozenset[str]:
    """The names of the variables that the body binds: by a positive atom, or in every branch of an `or`."""
    return _Binding(rule, _all_bind).of(rule.body)


class _Binding:
    """Which variables of a rule conditions bind. An `or` without branches never holds, and so binds them all."""

    def __init__(self, rule: Rule, binds: Callable[[Atom], bool]) -> None:
        self.every = frozenset(variable.name for variable in variables(*sentences(rule)))
        self.binds = binds

    def of(self, parts: Iterable[Condition]) -> frozenset[str]:
        return frozenset[str]().union(*map(self.one, parts))

    def one(self, condition: Condition) -> frozenset[str]:
        match condition:
            case Atom() if self.binds(condition):
                return frozenset(variable.name for variable in variables(condition))
            case And(parts):
                return self.of(parts)
            case Or(branches):
                return self.every.intersection(*map(self.one, branches))
        return frozenset()


def _in_context(parts: Sequence[Condition], binding: _Binding, outside: frozenset[str]) -> Iterator[InContext]:
    here = outside | binding.of(parts)
    for part in parts:
        match part:
            case Atom() | Distinct():
                yield InContext(part, True, here)
            case Not(inner):
                negated = (sentence for sentence in conditions((inner,)) if isinstance(sentence, Atom | Distinct))
                yield from (InContext(sentence, False, here) for sentence in negated)
            case And(inner_parts):
                yield from _in_context(inner_parts, binding, here)
            case Or(branches):
                for branch in branches:
                    yield from _in_context((branch,), binding, here)


class Dependencies:
    """The graph of the relations, by name: which stand in the bodies of which."""

    def __init__(self, sheet: Rulesheet) -> None:
        self.bodies: dict[str, dict[str, None]] = {}
        for rule in sheet.rules:
            uses = self.bodies.setdefault(rule.head.name, {})
            for atom in body_atoms(rule):
                self.bodies.setdefault(atom.name, {})
                if rule.head.name not in GIVEN:
                    uses[atom.name] = None

    def toward(self, target: str) -> dict[str, str]:
        """For every relation that depends on `target`, the next one on a shortest way there (breadth first)."""
        users: dict[str, list[str]] = {}
        for head, uses in self.bodies.items():
            for use in uses:
                users.setdefault(use, []).append(head)
        steps: dict[str, str] = {}
        queue = [target]
        for name in queue:
            for head in users.get(name, ()):
                if head not in steps:
                    steps[head] = name
                    queue.append(head)
        return steps

    def path(self, start: str, target: str) -> list[str]:
        """A shortest way from one relation to another that it depends on, both ends included."""
        steps = self.toward(target)
        way = [start]
        while way[-1] != target:
            way.append(steps[way[-1]])
        return way

    @cached_property
    def groups(self) -> dict[str, int]:
        """The number of each relation's strongly connected component."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        number = {name: place for place, name in enumerate(self.bodies)}
        edges = [(number[head], number[use]) for head, uses in self.bodies.items() for use in uses]
        rows, columns = zip(*edges, strict=True) if edges else ((), ())
        graph = csr_array(([1] * len(edges), (rows, columns)), shape=(len(number), len(number)))
        _, labels = connected_components(graph, connection="strong")
        return dict(zip(number, map(int, labels), strict=True))

    def recursive(self, head: Atom, condition: Atom) -> bool:
        """Whether a condition of a rule is in a cycle with the rule's head."""
        return self.groups[head.name] == self.groups[condition.name]
