"""Rewriting of rules for small groundings: projection of variables, demand (magic sets), bounds by base and input.

This module has two rewritings for different uses. `rewrite` is for compiling: its rules are ground for all facts that
any state may have. `rewrite_for_a_state` is for reasoning: its rules are ground for the facts of one state. This state
may be unreachable. In every reachable state, the answers of both are those of the original rules.

*Projection.* Long bodies are cut. A variable is projected out as soon as no other condition needs it. The rule

    (<= (next (cell ?x ?y ?p)) (true (cell ?x ?y ?p)) (does ?r (move ?u ?v)) (apart ?x ?y ?u ?v))

has an instance for every content of every cell and every move. Only the last two conditions contain ?r, ?u and ?v.
They become a new relation of ?x and ?y, and the rule joins this relation with the first condition. This is variable
elimination as in the evaluation of conjunctive queries (Dechter 1999; for grounders Morak and Woltran 2012). The cuts
are chosen greedily by estimated numbers of instances.

*Demand*, or magic sets (Bancilhon et al. 1986). A relation is derived only for the arguments that some clause needs.
In most conditions, some arguments are already known. For example, the game merrills counts with
(count_loop ?x ?y ?w ?b ..). Only one other rule uses this relation, but without demand it is derived for every pair of
numbers. A large relation gets a *guard* if some of its arguments are bound in every condition that uses it. The guard
is a relation that contains the wanted bindings of these arguments:

    (<= (p ?x ?y) (wanted:p ?x) ..)             the clauses of p hold only for wanted bindings
    (<= (wanted:p ?z) (wanted:q ?z0) (r ?z0 ?z))   for (<= (q ?z0) (r ?z0 ?z) (p ?z ?y))

A guard may contain too many bindings, but never too few, because its clauses leave out negated conditions. `ground`
treats every guard atom as true in every state. This gives the same answers.

*Bounds.* `within_bounds` is for games that are too large otherwise, such as a game with an unbounded counter. It
replaces the rule

    (<= (next (count (s ?n))) (true (count ?n)))

by two rules. The new relation B contains the facts that `base` declares and the facts of the first state. The new fact
`outside` says that the bounds removed a fact:

    (<= (next (count (s ?n))) (true (count ?n)) (B (count (s ?n))))
    (<= (next outside) (true (count ?n)) (not (B (count (s ?n)))))

The rules for `legal` are bounded by `input` in the same way. A state is *outside* if it has the fact `outside`, or if a
move outside the bounds is legal in it. Such a state is terminal, and every role has only the goal `goal_outside`. In
all other states the bounds removed nothing. There the bounded rules and the original rules have the same stable
models, and so the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import TypeAlias

from ..gdl import syntax
from ..gdl.clauses import (
    Clause,
    Dependencies,
    Literal,
    NewRelations,
    RelationGraph,
    Signature,
    TermsTooLargeError,
    all_atoms,
    clauses,
    keyword,
    renamed,
    sentences_of,
    shape,
    signature,
    unfolded,
    variables,
)
from ..gdl.limits import check, working_on
from ..gdl.syntax import (
    KEYWORD_ARITY,
    NOWHERE,
    Atom,
    Condition,
    Constant,
    Function,
    Not,
    Rule,
    Rulesheet,
    Term,
    Variable,
)
from .clingo import MAX_GOAL, LongJoins, goal_value
from .domains import GIVEN, Domains, Estimate, statics
from .invariants import Group, Unique, without_persistent_facts

SMALL = 2_000  # a clause with fewer instances is not cut
GAIN = 2  # minimum factor by which a cut must reduce the estimated instances
LARGE_JOIN = 50_000  # definitions are unfolded only in clauses with at least this number of instances
HUGE_JOIN = 1_000_000  # more cuts are tried for a clause that still has at least this number of instances
MAX_DEFINITIONS, MAX_UNFOLDED, UNFOLDING_GAIN = 4, 3, 4

Cut: TypeAlias = tuple[tuple[Literal, ...], tuple[Literal, ...]]
"""Conditions of a new relation, and the remaining conditions."""


class Projection:
    """Projection of variables out of clauses. Clauses with equal parts share the new relation of the part."""

    def __init__(self, domains: Domains, prefix: str) -> None:
        self.domains, self.parts = domains, NewRelations(prefix)

    def of(self, clause: Clause, depth: int = MAX_UNFOLDED) -> Iterator[Clause]:
        """Yield the clauses that replace a clause. `depth` is the maximum number of nested unfoldings."""
        working_on(f"rewriting the rule at line {clause.location.line}")
        cost, cut = self._plan(clause)
        variants = self._unfolded(clause, cost) if depth else None
        if variants is None and cost >= HUGE_JOIN:
            _, cut = self._plan(clause, more=True)
        if variants is not None:
            for variant in variants:
                yield from self.of(variant, depth - 1)
        elif cut is None:
            yield clause
        else:
            inner, rest = cut
            part, is_new = self.parts.atom(inner, _shared(clause, inner, rest), clause.location)
            if is_new:
                self.domains.declare(part, _atoms(inner))
                yield from self.of(Clause(part, inner, clause.location), depth)
            yield from self.of(Clause(clause.head, (Literal(True, part), *rest), clause.location), depth)

    def _plan(self, clause: Clause, depth: int = 2, more: bool = False) -> tuple[float, Cut | None]:
        """Return the estimated instances of a clause after the best cut, and this cut.

        The cut is None if no cut reduces the estimate enough. `more` tries more cuts, see `_cuts`.
        """
        estimate = Estimate(self.domains, clause.positive)
        whole = estimate.join(clause.positive)
        best: tuple[float, Cut | None] = whole, None
        if depth and whole >= SMALL:
            for inner, rest in _cuts(clause, more):
                check()
                outer = _shared(clause, inner, rest)
                head = Atom("", tuple(Variable(name, clause.location) for name in outer), "", clause.location)
                inside, _ = self._plan(Clause(head, inner, clause.location), depth - 1, more)
                size = estimate.instances(head, _atoms(inner))
                cost = inside + estimate.join(_atoms(rest), outer, size)
                if GAIN * cost <= whole and cost < best[0]:
                    best = cost, (inner, rest)
        return best

    def _unfolded(self, clause: Clause, cost: float) -> list[Clause] | None:
        """Replace an atom of the clause by the definitions of its relation. Return None if this does not cost less."""
        if cost < LARGE_JOIN:
            return None
        for atom in clause.positive:
            definitions = self.domains.clauses_of.get(signature(atom), [])
            recursive = any(signature(a) == signature(atom) for d in definitions for a in d.positive)
            if recursive or not 0 < len(definitions) <= MAX_DEFINITIONS:
                continue
            try:
                variants = [variant for d in definitions if (variant := unfolded(clause, atom, d)) is not None]
            except TermsTooLargeError:
                continue
            if UNFOLDING_GAIN * sum(self._plan(variant)[0] for variant in variants) < cost:
                return variants
        return None


def _atoms(literals: Iterable[Literal]) -> list[Atom]:
    """Return the positive atoms."""
    return [literal.sentence for literal in literals if literal.positive and isinstance(literal.sentence, Atom)]


def _shared(clause: Clause, inner: Sequence[Literal], rest: Sequence[Literal]) -> list[str]:
    """Return the variables that the new relation must keep."""
    needed = variables([clause.head, *sentences_of(rest)])
    return [name for name in variables(sentences_of(inner)) if name in needed]


def _cuts(clause: Clause, more: bool) -> Iterator[Cut]:
    """Yield every way to project out one variable that is not in the head, or all such variables of one atom.

    more: also project out all such variables of an atom but one. In (sum ?x ?y ?z), the relation computes ?z from ?x
        and ?y, and only ?z may be needed then.
    """
    kept = variables([clause.head])
    groups = [frozenset({name}) for name in variables(sentences_of(clause.body)) if name not in kept]
    wholes = [frozenset(variables([atom]).keys() - kept.keys()) for atom in clause.positive]
    groups += wholes
    groups += [whole - {name} for whole in wholes if more and len(whole) > 2 for name in sorted(whole)]
    names = [(literal, variables([literal.sentence]).keys()) for literal in clause.body]
    for group in filter(None, dict.fromkeys(groups)):
        check()
        inner = tuple(literal for literal, own in names if not group.isdisjoint(own))
        rest = tuple(literal for literal, own in names if group.isdisjoint(own))
        binders = _binders(inner, rest)
        if binders is not None and len(_atoms(inner)) + len(binders) < len(clause.positive):
            yield (*inner, *binders), rest


def _binders(inner: Sequence[Literal], rest: Sequence[Literal]) -> list[Literal] | None:
    """Return conditions of `rest` that bind the variables that occur in `inner` but in no positive atom of `inner`.

    Return None if `rest` does not bind all these variables.
    """
    free = variables(sentences_of(inner)).keys() - variables(_atoms(inner)).keys()
    binders: list[Literal] = []
    for literal in rest:
        if literal.positive and isinstance(literal.sentence, Atom):
            bound = variables([literal.sentence]).keys()
            if not free.isdisjoint(bound):
                binders.append(literal)
                free -= bound
    return None if free else binders


FEW = 8  # with fewer possible bindings, a guard is not useful: probably all bindings are wanted

_Asked: TypeAlias = tuple[frozenset[int] | None, frozenset[Signature]]
"""The guarded places of a clause's head and the guarded relations of its body. They determine the clause's calls."""


@dataclass(frozen=True, slots=True)
class _Call:
    """An atom of a guarded relation in the body of a clause.

    The clause needs `atom` only if all atoms of `context` hold. The context binds the arguments of `atom` at `places`.
    """

    atom: Atom
    context: tuple[Atom, ...]
    places: frozenset[int]


class Demand:
    """Rewriting by demand: chooses the relations to guard and their guarded arguments.

    `guarded` returns the clauses with guards, and `guards` the clauses that define the guards. A *call* is an atom
    of a guarded relation in the body of a clause.

    prefix: the prefix of the names of guards.
    large: a relation with at least this number of instances, or a relation that uses it, may get a guard.
    must_pay: guard a relation only if the clauses that use it want fewer bindings than the relation has atoms. Both
        numbers are estimates.
    """

    def __init__(self, rules: Sequence[Clause], domains: Domains, prefix: str, *, large: float, must_pay: bool) -> None:
        self.rules, self.domains, self.prefix, self.large, self.must_pay = rules, domains, prefix, large, must_pay
        self.untrusted: frozenset[Signature] = frozenset()  # relations on which no guard may depend
        self.dependencies = Dependencies(rules)
        self._below, self._negated_below = cache(self.dependencies.below), cache(self.dependencies.negated_below)
        self._calls_of: dict[Clause, tuple[_Asked, list[_Call]]] = {}
        self.candidates = frozenset(self._candidates())
        # Relations that a guard might put into a new cycle through negation. If a guarded relation depends on a doubted
        # relation, the guard must not depend on the negation of this doubted relation.
        self.doubted = self.candidates
        self.places = self._all_places()
        before = self.dependencies.negative_cycles()
        self._settle()
        while broken := Dependencies([*self.guarded(), *self.guards()]).negative_cycles() - before:
            self._distrust(broken)
            self._settle()

    def _all_places(self) -> dict[Signature, frozenset[int]]:
        """Return the places of all arguments of the candidates."""
        return {name: frozenset(range(name[1])) for name in self.candidates}

    def _candidates(self) -> Iterator[Signature]:
        """Yield derived relations with many instances, and all relations that depend on them.

        The relations that depend on a large relation determine its wanted bindings. Relations on which the first state
        or the roles depend are left out.
        """
        num_instances: dict[Signature, float] = {}
        for rule in self.rules:
            if rule.body:
                number = Estimate(self.domains, rule.positive).join(rule.positive)
                num_instances[signature(rule.head)] = num_instances.get(signature(rule.head), 0) + number
        large = {name for name, number in num_instances.items() if number >= self.large}
        fixed = self.dependencies.below(("init", 1), ("role", 1))
        for name in num_instances.keys() & self.domains.of.keys() - fixed:
            if name[0] not in KEYWORD_ARITY and not large.isdisjoint(self._below(name)):
                yield name

    def guarded(self) -> list[Clause]:
        """Return all clauses. Each clause of a guarded relation has the guard as an additional condition."""
        return [self._guarded(rule) for rule in self.rules]

    def _distrust(self, broken: set[Signature]) -> None:
        """Restart after guards have put the relations `broken` into new cycles through negation.

        The first restart adds all relations to `doubted`. Later restarts add the broken relations to `untrusted`. If
        that changes nothing, no relation gets a guard.
        """
        everything = frozenset(self.dependencies.uses)
        new = self.doubted != everything or bool(broken - self.untrusted)
        self.untrusted |= broken if self.doubted == everything else set()
        self.doubted, self._calls_of = everything, {}
        self.places = self._all_places() if new else {}

    def _settle(self) -> None:
        """Keep the relations for which a guard is useful.

        When a relation loses its guard, its atoms come earlier in the order of evaluation, and can bind more arguments
        of other relations. Therefore the computation restarts with the remaining relations as candidates.
        """
        self._keep_what_pays()
        while self.places.keys() < self.candidates:
            self.candidates = frozenset(self.places)
            self.places = self._all_places()
            self._keep_what_pays()

    def _keep_what_pays(self) -> None:
        """Keep the relations for which a guard is useful. Keep only arguments that are bound in every call."""
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
        """Compute the arguments of guarded relations that are bound in every call.

        Guards bind variables, too. Therefore the result is computed as a greatest fixpoint.
        """
        settled: dict[Signature, frozenset[int]] | None = None
        while settled != self.places:
            settled = self.places
            places = dict(settled)
            for rule in self.rules:
                for call in self._calls(rule):
                    places[signature(call.atom)] &= call.places
            self.places = {name: bound for name, bound in places.items() if bound}

    def _num_bindings(self) -> dict[Signature, float]:
        """Estimate the number of wanted bindings of each guarded relation."""
        numbers = dict.fromkeys(self.places, 0.0)
        for rule in self.rules:
            for call in self._calls(rule):
                guard = self._guard(call.atom)
                assert guard is not None
                numbers[signature(call.atom)] += Estimate(self.domains, rule.positive).instances(guard, call.context)
        return {name: min(number, self._product(name, self.places[name])) for name, number in numbers.items()}

    def _product(self, name: Signature, places: Iterable[int]) -> float:
        """Return the number of possible bindings of some arguments."""
        return prod(self.domains.of[name][place].size for place in places)

    def _calls(self, rule: Clause) -> list[_Call]:
        """Return the calls of a clause. They are computed again only if guards of its head or its body have changed."""
        guarded = frozenset(name for atom in all_atoms(rule.body) if (name := signature(atom)) in self.places)
        if not guarded:
            return []
        asked = self.places.get(signature(rule.head)), guarded
        cached = self._calls_of.get(rule)
        if cached is None or cached[0] != asked:
            cached = self._calls_of[rule] = asked, list(self._calls_in_order(rule))
        return cached[1]

    def _calls_in_order(self, rule: Clause) -> Iterator[_Call]:
        """Yield the calls of a clause, as if its conditions were evaluated one by one, in the order of their rank."""
        estimate = Estimate(self.domains, rule.positive)
        guard = self._guard(rule.head)
        context = [guard] if guard else []
        bound = set(variables(context))
        left = list(rule.positive)
        while left:
            check()
            atom = min(left, key=lambda atom: self._rank(atom, estimate, bound))
            left.remove(atom)
            if signature(atom) in self.places:
                yield self._call(rule, atom, context)
            context.append(atom)
            bound |= variables([atom]).keys()
        yield from (self._call(rule, atom, context) for atom in rule.negative if signature(atom) in self.places)

    def _call(self, rule: Clause, atom: Atom, context: Sequence[Atom]) -> _Call:
        """Return the call for an atom, with the part of the context on which its guard may depend."""
        below = self._below(signature(atom))
        doubted = below & self.doubted
        kept = tuple(other for other in context if self._admissible(signature(other), doubted))
        guard = self._guard(rule.head) if signature(rule.head) in below else None
        bound = variables(kept).keys()
        places = (place for place, term in enumerate(atom.args) if syntax.variables_of(term) <= bound)
        return _Call(atom, kept, frozenset(place for place in places if not _grows(atom.args[place], guard, kept)))

    def _admissible(self, other: Signature, below: set[Signature]) -> bool:
        """Return whether a guard may depend on the relation `other`.

        It may not if `other` is untrusted, or if `other` depends on the negation of a relation in `below`.
        """
        return other not in self.untrusted and below.isdisjoint(self._negated_below(other))

    def _rank(self, atom: Atom, estimate: Estimate, bound: set[str]) -> tuple[int, float]:
        """Return the sort key of a condition. The order binds many variables before a guarded atom is reached.

        Unguarded atoms connected to bound variables come first, then connected guarded atoms, then unconnected atoms.
        Within each of these three kinds, the atom with the smallest factor comes first.
        """
        factor = estimate.factor(atom, bound)
        connected = factor <= 1 or not bound.isdisjoint(variables([atom]))
        return int(signature(atom) in self.places) if connected else 2, factor

    def _guard(self, atom: Atom) -> Atom | None:
        """Return the guard of an atom; None if its relation has none."""
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
        """Yield the clauses of the guards."""
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
    """Return whether a recursive call wants a larger term than the guard of its clause. Grounding might not end then.

        (<= (p ?x) (p (f ?x)))

    Bottom up, such a clause takes terms apart; top down, it would build ever larger terms. If other conditions bind all
    variables of a term, the term has finitely many instances.
    """
    if guard is None or not isinstance(term, Function) or term in syntax.terms(guard):
        return False
    return not syntax.variables_of(term) <= variables([atom for atom in context if atom != guard]).keys()


def _needed(context: Sequence[Atom], head: Atom) -> list[Atom]:
    """Return the atoms of the context that share variables with the head, directly or through other atoms."""
    names = [variables([atom]).keys() for atom in context]
    joined = set(variables([head]))
    for _ in context:
        joined.update(*(mine for mine in names if not joined.isdisjoint(mine)))
    return [atom for atom, mine in zip(context, names, strict=True) if not joined.isdisjoint(mine)]


@dataclass(frozen=True, slots=True)
class Rewritten(Rulesheet):
    """Rewritten rules.

    guards: the relations of wanted bindings; see `Demand`.
    unique: groups of facts. The rules are correct only if at most one fact of each group holds; see
        `invariants.Unique`.
    long_joins: the rules whose joins may take long, even if they have few instances; see `Domains.long_joins`.
    """

    guards: frozenset[str] = frozenset()
    unique: frozenset[Group] = frozenset()
    long_joins: LongJoins = field(default_factory=dict)


ASKED = ("role", "init", "next", "legal", "goal", "terminal")  # relations that a game asks for
# Parameter `large` of `Demand`: minimum number of instances of a large relation, for compiling and for reasoning.
LARGE_RELATION, LARGE_IN_A_STATE = 20_000, 200


def rewrite(sheet: Rulesheet) -> Rewritten:
    """Return rules to compile. They keep the ground program small, although it covers all reachable facts."""
    working_on("rewriting the rules")
    rules = clauses(sheet)
    rules = without_persistent_facts(rules, _fresh("always", rules))
    static = statics(rules)
    domains = Domains(rules, static)
    unique = Unique(rules, static, domains, _fresh("some", rules))
    if unique.groups:
        domains = Domains(unique.rules, static)
    rewritten = _rewritten(sheet, unique.rules, domains, LARGE_RELATION, must_pay=True)
    return replace(rewritten, unique=frozenset(unique.groups))


def rewrite_for_a_state(sheet: Rulesheet) -> Rewritten:
    """Return rules to reason with. Their ground program is small for the facts of one state and one move per role."""
    working_on("rewriting the rules")
    rules = clauses(sheet)
    static = statics(rules)
    num_facts = sum(rule.head.name == "init" for rule in rules)
    num_roles = static.sizes.get(("role", 1), 1)
    given = {("true", 1): num_facts, ("does", 2): num_roles}
    domains = Domains(rules, replace(static, sizes=static.sizes | given))
    return _rewritten(sheet, rules, domains, LARGE_IN_A_STATE, must_pay=False)


def _rewritten(sheet: Rulesheet, rules: list[Clause], domains: Domains, large: float, must_pay: bool) -> Rewritten:
    projection = Projection(domains, _fresh("part", rules))
    rules = [part for rule in rules for part in projection.of(rule)]
    working_on("rewriting by demand")
    rules = _needed_rules(rules)
    demand = Demand(rules, domains, _fresh("wanted", rules), large=large, must_pay=must_pay)
    guards = list(demand.guards())
    # Now some relations are derived only for wanted bindings. Some of them are parts of the projection above, or occur
    # in definitions that it could unfold. The clauses of guards may need other bindings of these relations. Therefore
    # guards get a new projection with parts of its own, and without unfolding.
    parts = Projection(domains, _fresh("asked", rules))
    rules = [*demand.guarded(), *(part for guard in guards for part in parts.of(guard, depth=0))]
    names = frozenset(guard.head.name for guard in guards)
    final = tuple(rule.rule for rule in rules)
    return Rewritten(
        final, sheet.text, sheet.path, names, long_joins=domains.long_joins(rules, GIVEN if must_pay else ())
    )


def _needed_rules(rules: list[Clause]) -> list[Clause]:
    """Return the clauses of the relations on which the game depends."""
    needed = Dependencies(rules).below(*((word, KEYWORD_ARITY[word]) for word in ASKED))
    return [rule for rule in rules if signature(rule.head) in needed]


def _fresh(word: str, rules: Iterable[Clause]) -> str:
    """Return a prefix that no relation of the rules has."""
    names = {atom.name for rule in rules for atom in (rule.head, *all_atoms(rule.body))}
    prefix = f"{word}:"
    while any(name.startswith(prefix) for name in names):
        prefix += ":"
    return prefix


Shapes: TypeAlias = set[Signature | None]
"""Shapes of facts or moves; see `clauses.shape`. None stands for every shape."""

BOUNDS = {"next": "base", "legal": "input"}
# No name in a sheet is equal to one of these names, because they contain spaces.
WITHIN = {"base": "within base", "init": "within base", "input": "within input"}
AS_WRITTEN = {"terminal": "terminal as written", "goal": "goal as written"}
OUTSIDE_FACT = Constant("outside of base", "outside of base", NOWHERE)
OUTSIDE = Atom("is outside", (), "is outside", NOWHERE)


def within_bounds(sheet: Rulesheet) -> Rulesheet | None:
    """Return the sheet bounded by its `base` and `input`; None if it declares no bounds that can be applied.

    Names appear in the same order as in the sheet, and new names come last. Therefore terms have the same numbers.
    """
    rules = [renamed(rule, AS_WRITTEN) for rule in sheet.rules]
    bounded = {name: _bounded(name, rules) for name in BOUNDS}
    held_back = [rule for rule in rules if _is_bounded(rule, bounded)]
    if changing_bounds(sheet):
        return None
    reading = {name for name, _ in RelationGraph(sheet).toward(keyword("legal"))}
    reads_next = any(atom.name == "next" for rule in sheet.rules for atom in syntax.body_atoms(rule))
    if not held_back or reads_next or not reading.isdisjoint(WITHIN):
        return None
    everywhere = not reading.isdisjoint({"terminal", "goal", "next"})
    inside = (
        replace(rule, body=(*rule.body, _declaration(rule.head)), arrow=True) if _is_bounded(rule, bounded) else rule
        for rule in rules
    )
    goal = goal_outside(sheet)
    if goal is None:
        return None
    new = (*_definitions(sheet), *(_outside(rule, everywhere) for rule in held_back), *_ends(goal))
    return Rulesheet((*inside, *new), sheet.text, sheet.path)


def changing_bounds(sheet: Rulesheet) -> frozenset[str]:
    """Return which of `base` and `input` depend on the state or the moves. These are no bounds of all matches."""
    graph = RelationGraph(sheet)
    changing = graph.toward(keyword("true")).keys() | graph.toward(keyword("does")).keys()
    return frozenset(word for word in BOUNDS.values() if keyword(word) in changing)


def goal_outside(sheet: Rulesheet) -> int | None:
    """Return the goal of all roles in states outside the bounds: the largest goal value that the sheet does not use.

    Return None if it uses all.
    """
    taken = {goal_value(term.name) for rule in sheet.rules for term in syntax.named_terms(rule)}
    return next((value for value in range(MAX_GOAL, -1, -1) if value not in taken), None)


def _bounded(name: str, rules: Sequence[Rule]) -> Shapes:
    """Return the bounded shapes of `next` or `legal`.

    These are the declared shapes. If a rule may derive every shape, every shape is bounded.
    """
    declared = {shape(rule.head.args[-1]) for rule in rules if rule.head.name == BOUNDS[name]}
    heads = (rule.head for rule in rules if rule.head.name == name and not _keeps(rule))
    return declared | {None} if declared and any(shape(head.args[-1]) is None for head in heads) else declared


def _is_bounded(rule: Rule, bounded: Mapping[str, Shapes]) -> bool:
    """Return whether the bounds apply to the head of a rule."""
    if rule.head.name not in bounded or _keeps(rule):
        return False
    shapes = bounded[rule.head.name]
    return None in shapes or shape(rule.head.args[-1]) in shapes


def _keeps(rule: Rule) -> bool:
    """Return whether a rule for `next` only keeps facts that hold already."""
    return rule.head.name == "next" and any(
        isinstance(condition, Atom) and condition.name == "true" and condition.args == rule.head.args
        for condition in rule.body
    )


def _declaration(head: Atom) -> Atom:
    """Return the condition that holds if the head of a rule is within its bounds."""
    word = BOUNDS[head.name]
    return Atom(WITHIN[word], head.args, word, head.location)


def _outside(rule: Rule, everywhere: bool) -> Rule:
    """Return a new rule that marks a state as outside the bounds if the bounds remove the head of `rule`.

    everywhere: whether a rule for `legal` marks terminal states, too. Moves in a terminal state matter only if other
        answers depend on them.
    """
    removed = (*rule.body, Not(_declaration(rule.head), rule.location))
    if rule.head.name == "next":
        return Rule(Atom("next", (OUTSIDE_FACT,), "next", rule.location), removed, rule.location)
    if everywhere:
        return Rule(OUTSIDE, removed, rule.location)
    end = Atom(AS_WRITTEN["terminal"], (), "terminal", rule.location)
    return Rule(OUTSIDE, (*removed, Not(end, rule.location)), rule.location)


def _definitions(sheet: Rulesheet) -> Iterator[Rule]:
    """Yield the rules that define the bounds: all facts and moves of `base`, `input` and the first state."""
    for rule in sheet.rules:
        if rule.head.name in WITHIN:
            yield Rule(replace(rule.head, name=WITHIN[rule.head.name]), rule.body, rule.location)


def _ends(outside: int) -> Iterator[Rule]:
    """Yield the rules for `terminal` and `goal`: for states outside the bounds, and for all other states."""
    role, value = Variable("role", NOWHERE), Variable("value", NOWHERE)

    def atom(name: str, *args: Term) -> Atom:
        return Atom(AS_WRITTEN.get(name, name), args, name, NOWHERE)

    def rule(name: str, args: tuple[Term, ...], *body: Condition) -> Rule:
        return Rule(Atom(name, args, name, NOWHERE), body, NOWHERE)

    yield rule(OUTSIDE.name, (), Atom("true", (OUTSIDE_FACT,), "true", NOWHERE))
    yield rule("terminal", (), atom("terminal"))
    yield rule("terminal", (), OUTSIDE)
    yield rule("goal", (role, value), atom("goal", role, value), Not(OUTSIDE, NOWHERE))
    yield rule("goal", (role, Constant(str(outside), str(outside), NOWHERE)), atom("role", role), OUTSIDE)
