"""Relations derived only where they are asked for: the demand transformation, or magic sets (Bancilhon et al. 1986).

Most clauses ask for a relation with some of its arguments known: the counter of merrills, (count_loop ?x ?y ?w ?b ..),
is asked for from one place and its own recursion, yet derived for every pair of numbers. A relation that may be large
and that every clause asks for with some arguments bound gets a *guard*, the relation of the bindings that are wanted:

    (<= (p ?x ?y) (wanted:p ?x) ..)             the clauses of p hold only where somebody asks
    (<= (wanted:p ?z) (wanted:q ?z0) (r ?z0 ?z))   for (<= (q ?z0) (r ?z0 ?z) (p ?z ?y))

A guard may want too much, never too little: its clauses leave out negation, and whoever holds every wanted atom to be
wanted in every state (as `ground` does) gets the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from .clauses import Clause, Literal, Signature, all_atoms, signature, variables
from .domains import Domains, Estimate
from .gdl import KEYWORD_ARITY, Atom, Function, Term
from .relations import terms, variables_of
from .stratification import Dependencies

FEW = 8  # bindings, of which one is hardly wanted without the others

_Asked: TypeAlias = tuple[frozenset[int] | None, frozenset[Signature]]
"""What the calls of a clause hang on: the guarded places of its head, the guarded relations in its body."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A clause asks for an atom when the atoms of `context` hold; they bind the arguments at `places`."""

    atom: Atom
    context: tuple[Atom, ...]
    places: frozenset[int]


class Demand:
    """Finds which relations to guard and by which arguments, and writes the guards.

    prefix: of the names of guards. large: the atoms of a relation that may be worth a guard. must_pay: only where
    clauses ask for it with fewer bindings than it has atoms, by the estimates.
    """

    def __init__(self, rules: Sequence[Clause], domains: Domains, prefix: str, *, large: float, must_pay: bool) -> None:
        self.rules, self.domains, self.prefix, self.large, self.must_pay = rules, domains, prefix, large, must_pay
        self.untrusted: frozenset[Signature] = frozenset()  # relations that no guard may depend on
        self.dependencies = Dependencies(rules)
        self.below: dict[Signature, set[Signature]] = {}
        self.negated: dict[Signature, set[Signature]] = {}
        self._known_calls: dict[Clause, tuple[_Asked, list[_Call]]] = {}
        self.candidates = frozenset(self._candidates())
        self.doubted = self.candidates  # relations whose negation a guard must not depend on where it leads to them
        self.places = {name: frozenset(range(name[1])) for name in self.candidates}
        before = self.dependencies.negative_cycles()
        self._settle()
        while broken := Dependencies([*self.guarded(), *self.guards()]).negative_cycles() - before:
            self._distrust(broken)
            self._settle()

    def _candidates(self) -> Iterator[Signature]:
        """Derived relations whose clauses have many instances, and those that use them, which say what is wanted there.

        Not those on which the first state and the roles depend.
        """
        num_instances: dict[Signature, float] = {}
        for rule in self.rules:
            if rule.body:
                number = Estimate(self.domains, rule.positive).join(rule.positive)
                num_instances[signature(rule.head)] = num_instances.get(signature(rule.head), 0) + number
        large = {name for name, number in num_instances.items() if number >= self.large}
        fixed = self.dependencies.below(("init", 1), ("role", 1))
        for name in num_instances.keys() & self.domains.of.keys() - fixed:
            if name[0] not in KEYWORD_ARITY and not large.isdisjoint(self.dependencies.below(name)):
                yield name

    def guarded(self) -> list[Clause]:
        """The clauses, those of large relations with their guards."""
        return [self._guarded(rule) for rule in self.rules]

    def _distrust(self, broken: set[Signature]) -> None:
        """Starts again, more careful: at first about all relations, then about these, in the end without guards."""
        everything = frozenset(self.dependencies.uses)
        new = self.doubted != everything or bool(broken - self.untrusted)
        self.untrusted |= broken if self.doubted == everything else set()
        self.doubted, self._known_calls = everything, {}
        self.places = {name: frozenset(range(name[1])) for name in self.candidates} if new else {}

    def _settle(self) -> None:
        """Keeps the relations for which a guard pays. Those that drop out bind arguments of the others, as any atom
        does that is not guarded: so it begins anew without them."""
        self._keep_what_pays()
        while self.places.keys() < self.candidates:
            self.candidates = frozenset(self.places)
            self.places = {name: frozenset(range(name[1])) for name in self.candidates}
            self._keep_what_pays()

    def _keep_what_pays(self) -> None:
        """Leaves the relations for which a guard pays, and of their arguments those that are bound in every call."""
        settled: dict[Signature, frozenset[int]] | None = None
        while settled != self.places:
            settled = self.places
            self._bind()
            if self.must_pay:
                asked = self._num_bindings()
                self.places = {
                    name: kept
                    for name, kept in self.places.items()
                    if asked[name] <= self.domains.size(name) and self._product(name, kept) >= FEW
                }

    def _bind(self) -> None:
        """Which arguments are bound depends on the guards, and they on which are bound: from all downwards."""
        settled: dict[Signature, frozenset[int]] | None = None
        while settled != self.places:
            settled = self.places
            places = dict(settled)
            for rule in self.rules:
                for call in self._calls(rule):
                    places[signature(call.atom)] &= call.places
            self.places = {name: bound for name, bound in places.items() if bound}

    def _num_bindings(self) -> dict[Signature, float]:
        """How many bindings the clauses ask for each relation with."""
        found = dict.fromkeys(self.places, 0.0)
        for rule in self.rules:
            for call in self._calls(rule):
                guard = self._guard(call.atom)
                assert guard is not None
                found[signature(call.atom)] += Estimate(self.domains, rule.positive).instances(guard, call.context)
        return {name: min(number, self._product(name, self.places[name])) for name, number in found.items()}

    def _product(self, name: Signature, places: Iterable[int]) -> float:
        """How many bindings there are of some arguments."""
        return prod(self.domains.of[name][place].size for place in places)

    def _calls(self, rule: Clause) -> list[_Call]:
        """Whom a clause asks for; found out anew only where guards of its head or for its body came or went."""
        guarded = frozenset(name for atom in all_atoms(rule.body) if (name := signature(atom)) in self.places)
        if not guarded:
            return []
        asked = self.places.get(signature(rule.head)), guarded
        known = self._known_calls.get(rule)
        if known is None or known[0] != asked:
            known = self._known_calls[rule] = asked, list(self._calls_in_order(rule))
        return known[1]

    def _calls_in_order(self, rule: Clause) -> Iterator[_Call]:
        """Who is asked for when the conditions of a clause are taken one by one, in the order of their rank."""
        estimate = Estimate(self.domains, rule.positive)
        guard = self._guard(rule.head)
        context = [guard] if guard else []
        bound = set(variables(context))
        left = list(rule.positive)
        while left:
            atom = min(left, key=lambda atom: self._rank(atom, estimate, bound))
            left.remove(atom)
            if signature(atom) in self.places:
                yield self._call(rule, atom, context)
            context.append(atom)
            bound |= variables([atom]).keys()
        for literal in rule.body:
            if (
                not literal.positive
                and isinstance(literal.sentence, Atom)
                and signature(literal.sentence) in self.places
            ):
                yield self._call(rule, literal.sentence, context)

    def _call(self, rule: Clause, atom: Atom, context: Sequence[Atom]) -> _Call:
        """The call, with what of the context may lead to it."""
        name = signature(atom)
        if name not in self.below:
            self.below[name] = self.dependencies.below(name)
        below = self.below[name]
        doubted = below & self.doubted
        kept = tuple(other for other in context if self._admissible(signature(other), doubted))
        guard = self._guard(rule.head) if signature(rule.head) in below else None
        bound = variables(kept).keys()
        places = (place for place, term in enumerate(atom.args) if variables_of(term) <= bound)
        return _Call(atom, kept, frozenset(place for place in places if not _grows(atom.args[place], guard, kept)))

    def _admissible(self, other: Signature, below: set[Signature]) -> bool:
        """Whether a guard may depend on a relation: not where that depends on the negation of what is guarded."""
        if other not in self.negated:
            self.negated[other] = self.dependencies.negated_below(other)
        return other not in self.untrusted and below.isdisjoint(self.negated[other])

    def _rank(self, atom: Atom, estimate: Estimate, bound: set[str]) -> tuple[int, float]:
        """First what the bound variables lead to, then who is to be asked, so that much is bound; the unconnected last.

        Among these, each where it multiplies least.
        """
        factor = estimate.factor(atom, bound)
        connected = factor <= 1 or not bound.isdisjoint(variables([atom]))
        if not connected:
            return 2, factor
        return int(signature(atom) in self.places), factor

    def _guard(self, atom: Atom) -> Atom | None:
        """The guard of an atom, where its relation has one."""
        places = self.places.get(signature(atom))
        if not places:
            return None
        arguments = tuple(term for place, term in enumerate(atom.args) if place in places)
        guard = Atom(f"{self.prefix}{atom.name}", arguments, f"{self.prefix}{atom.spelling}", atom.location)
        self.domains.of[signature(guard)] = [
            terms for place, terms in enumerate(self.domains.of[signature(atom)]) if place in places
        ]
        return guard

    def _guarded(self, rule: Clause) -> Clause:
        guard = self._guard(rule.head)
        return Clause(rule.head, (Literal(True, guard), *rule.body), rule.location) if guard else rule

    def guards(self) -> Iterator[Clause]:
        """The clauses of the guards."""
        written: set[str] = set()
        for rule in self.rules:
            for call in self._calls(rule):
                head = self._guard(call.atom)
                assert head is not None
                clause = Clause(head, tuple(Literal(True, atom) for atom in _needed(call.context, head)), rule.location)
                if str(clause) not in written and head not in clause.positive:
                    written.add(str(clause))
                    yield clause


def _grows(term: Term, guard: Atom | None, context: Sequence[Atom]) -> bool:
    """Whether a recursive call wants a larger term than its clause is wanted with, which might go on for ever.

        (<= (p ?x) (p (f ?x)))

    Bottom up, such a clause takes terms apart; asked from above it would build them. What other conditions bind is
    finite, and so is what is built from it once.
    """
    if guard is None or not isinstance(term, Function) or term in terms(guard):
        return False
    return not variables_of(term) <= variables([atom for atom in context if atom != guard]).keys()


def _needed(context: Sequence[Atom], head: Atom) -> list[Atom]:
    """The atoms of the context that are joined, directly or through others, to the head's variables."""
    joined = set(variables([head]))
    needed: list[Atom] = []
    left = list(context)
    while True:
        found = [atom for atom in left if not joined.isdisjoint(variables([atom]))]
        if not found:
            return [atom for atom in context if atom in needed]
        needed += found
        left = [atom for atom in left if atom not in found]
        joined.update(variables(found))
