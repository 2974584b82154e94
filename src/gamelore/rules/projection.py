"""Long bodies cut in two: variables are projected out as soon as nothing else needs them.

    (<= (next (cell ?x ?y ?p)) (true (cell ?x ?y ?p)) (does ?r (move ?u ?v)) (apart ?x ?y ?u ?v))

has an instance for every content of every cell and every move. Only the last two conditions speak of ?r, ?u and ?v,
so they become a relation of ?x and ?y, a set of actions for each cell, and the rule joins that with the first. It is
elimination of variables as in the evaluation of conjunctive queries (Dechter 1999; for grounders Morak and Woltran
2012), chosen step by step, by estimated numbers of instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from .clauses import Clause, Literal, NewRelations, sentences, signature, unfolded, variables
from .domains import Domains, Estimate
from .gdl import Atom, Variable

SMALL = 2_000  # instances of a clause that are not worth cutting
GAIN = 2  # by so much the estimate must fall
LARGE = 50_000  # instances that make it worth looking into definitions
MAX_DEFINITIONS, MAX_UNFOLDED, UNFOLDING_GAIN = 4, 3, 4

Cut: TypeAlias = tuple[tuple[Literal, ...], tuple[Literal, ...]]
"""The conditions of a new relation, and those that stay."""


class Projection:
    """Cuts clauses; parts that several of them share are made once."""

    def __init__(self, domains: Domains, prefix: str) -> None:
        self.domains, self.parts = domains, NewRelations(prefix)

    def of(self, clause: Clause, depth: int = MAX_UNFOLDED) -> Iterator[Clause]:
        """The clause, or the clauses that replace it; `depth`: of definitions in definitions that are looked into."""
        cost, cut = self._plan(clause)
        unfolded = self._unfolded(clause, cost) if depth else None
        if unfolded is not None:
            for variant in unfolded:
                yield from self.of(variant, depth - 1)
        elif cut is None:
            yield clause
        else:
            yield from self._cut(clause, cut, depth)

    def _cut(self, clause: Clause, cut: Cut, depth: int) -> Iterator[Clause]:
        inner, rest = cut
        part, is_new = self._part(inner, _shared(clause, inner, rest), clause)
        if is_new:
            yield from self.of(Clause(part, inner, clause.location), depth)
        yield from self.of(Clause(clause.head, (Literal(True, part), *rest), clause.location), depth)

    def _plan(self, clause: Clause, depth: int = 2) -> tuple[float, Cut | None]:
        """How many instances the clause has, or what the best way to cut it leaves of them."""
        estimate = Estimate(self.domains, clause.positive)
        whole = estimate.join(clause.positive)
        best: tuple[float, Cut | None] = whole, None
        if depth and whole >= SMALL:
            for inner, rest in _cuts(clause):
                outer = _shared(clause, inner, rest)
                head = Atom("", tuple(Variable(name, clause.location) for name in outer), "", clause.location)
                inside, _ = self._plan(Clause(head, inner, clause.location), depth - 1)
                size = estimate.instances(head, _atoms(inner))
                cost = inside + estimate.join(_atoms(rest), outer, size)
                if GAIN * cost <= whole and cost < best[0]:
                    best = cost, (inner, rest)
        return best

    def _unfolded(self, clause: Clause, cost: float) -> list[Clause] | None:
        """The clauses that result where a relation's definitions take its place, if they cost less."""
        if cost < LARGE:
            return None
        for atom in clause.positive:
            definitions = self.domains.clauses_of.get(signature(atom), [])
            if not 0 < len(definitions) <= MAX_DEFINITIONS or any(
                signature(a) == signature(atom) for d in definitions for a in d.positive
            ):
                continue
            variants = [variant for d in definitions if (variant := unfolded(clause, atom, d)) is not None]
            if UNFOLDING_GAIN * sum(self._plan(variant)[0] for variant in variants) < cost:
                return variants
        return None

    def _part(self, inner: Sequence[Literal], outer: Sequence[str], clause: Clause) -> tuple[Atom, bool]:
        """The atom of the new relation in this clause; whether its clause is still to be written."""
        atom, is_new = self.parts.atom(inner, outer, clause.location)
        if is_new:
            self.domains.declare(atom, _atoms(inner))
        return atom, is_new


def _atoms(literals: Iterable[Literal]) -> list[Atom]:
    return [literal.sentence for literal in literals if literal.positive and isinstance(literal.sentence, Atom)]


def _shared(clause: Clause, inner: Sequence[Literal], rest: Sequence[Literal]) -> list[str]:
    """The variables that the new relation must keep."""
    needed = variables([clause.head, *sentences(rest)])
    return [name for name in variables(sentences(inner)) if name in needed]


def _cuts(clause: Clause) -> Iterator[tuple[tuple[Literal, ...], tuple[Literal, ...]]]:
    """Every way to take out one variable that the head does not need, or all such of one atom."""
    kept = variables([clause.head])
    groups = [{name} for name in variables(sentences(clause.body)) if name not in kept]
    groups += [variables([atom]).keys() - kept.keys() for atom in clause.positive]
    seen: list[set[str]] = []
    for group in groups:
        if not group or group in seen:
            continue
        seen.append(group)
        inner = tuple(literal for literal in clause.body if not group.isdisjoint(variables([literal.sentence])))
        rest = tuple(literal for literal in clause.body if literal not in inner)
        binders = _binders(inner, rest)
        if binders is not None and len(_atoms(inner)) + len(binders) < len(clause.positive):
            yield (*inner, *binders), rest


def _binders(inner: Sequence[Literal], rest: Sequence[Literal]) -> list[Literal] | None:
    """Conditions that stay but bind a variable which the new relation only negates or compares; None if none does."""
    free = variables(sentences(inner)).keys() - variables(_atoms(inner)).keys()
    found: list[Literal] = []
    for literal in rest:
        if literal.positive and isinstance(literal.sentence, Atom):
            bound = variables([literal.sentence]).keys()
            if not free.isdisjoint(bound):
                found.append(literal)
                free -= bound
    return None if free else found
