"""Sizes of relations: complete static relations, domains of arguments, and estimated sizes of joins.

*Static* relations depend neither on the state nor on moves. clingo derives them once.

The *domain* of an argument of a relation is a set of terms. It contains every term that this argument can ever be.
Terms flow from the bodies of rules to their heads until no domain changes. Negated conditions are ignored. Dependencies
between arguments are ignored, too: if (cell 1 a) and (cell 2 b) can hold, (cell 1 b) is counted as possible. The
domains give upper bounds of the sizes of relations, and estimates of the sizes of joins.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from math import inf, prod
from typing import Any, TypeAlias

from ..gdl.clauses import (
    Clause,
    Dependencies,
    Signature,
    clauses,
    components,
    reachable,
    signature,
    users_of,
    variables,
)
from ..gdl.limits import Limits, check, working_on
from ..gdl.syntax import KEYWORD_ARITY, Atom, Constant, Function, Rulesheet, Term, Variable, variables_of
from .clingo import Grounding, LongJoins, Names, Translator, atoms_of, control, ground_within, too_large

ATTEMPTS = 3
# Limits of one attempt: only a number of literals, so that every run has the same result.
LIMITS = Limits(inf, 300_000, sys.maxsize)
# What clingo goes through in a second: rows of a part of a join, and rows of the whole, for which it looks up the head.
PARTIAL_ROWS, WHOLE_ROWS = 2e7, 3e6
LONG_JOIN = 1e4  # combinations of values; how many seconds are too many depends on the limits
DOUBTFUL = 1e7  # rows of joins of all atoms of their relations
# Seconds for one rule, by the fourth power of its number of atoms that must hold: clingo puts them into an order for
# each of them. Measured for 60 to 800 atoms of relations that depend on themselves; this is an upper bound.
ORDERING = 3e-9
FEW_SECONDS = 1e-4  # rules for which clingo takes less are not counted
GIVEN = frozenset({("true", 1), ("does", 2)})  # relations of a state and of moves
MAX_KNOWN = 2_000  # the rows of a relation are stored if it has at most this number of atoms

Row: TypeAlias = tuple[str | None, ...]
"""Arguments of an atom: the name of a constant, None for another term."""


@dataclass(slots=True)
class Statics:
    """Static relations.

    sizes: relation -> number of its atoms, or an upper bound of this number.
    rows: relation -> all its atoms, for relations with at most MAX_KNOWN atoms.
    """

    sizes: dict[Signature, int] = field(default_factory=dict)
    rows: dict[Signature, list[Row]] = field(default_factory=dict)


def statics(rules: Sequence[Clause]) -> Statics:
    """Derive the static relations. Leave out too large relations, and all relations that depend on them."""
    working_on("deriving the relations that never change")
    large: set[Signature] = set()
    for _ in range(ATTEMPTS):
        derived, complete = _derived(rules, _static(rules, large))
        if complete:
            return derived
        large.add(max(derived.sizes, key=derived.sizes.__getitem__))
    return Statics()


def _derived(rules: Iterable[Clause], relations: Collection[Signature]) -> tuple[Statics, bool]:
    """Derive these relations within the limits. Also return whether the relations are complete."""
    static = [rule for rule in rules if signature(rule.head) in relations]
    sheet = Rulesheet(tuple(rule.rule for rule in static), "")
    names = Names(sheet)
    translator = Translator(names)
    grounding = Grounding(LIMITS, _long_static_joins(static))
    clingo = control("\n".join(translator.rules(sheet)), grounding)
    complete = ground_within(clingo, grounding)
    if grounding.is_out_of_budget:
        raise too_large(grounding, clingo, translator)
    derived = Statics()
    spelled = list(names.numbers)
    for name, arity in sorted(relations):
        atoms = list(atoms_of(clingo, translator.relation(name), arity))
        derived.sizes[name, arity] = len(atoms)
        # If an atom is not a fact after grounding, only a solver could decide whether it holds.
        if len(atoms) <= MAX_KNOWN and all(atom.is_fact for atom in atoms):
            rows = [tuple(_constant(term, spelled) for term in atom.symbol.arguments) for atom in atoms]
            derived.rows[name, arity] = rows
    return derived, complete


def _long_static_joins(rules: Sequence[Clause]) -> LongJoins:
    """Return the long joins of static rules. Look at the domains only if the numbers of facts leave a doubt."""
    facts = Counter(signature(rule.head) for rule in rules if not rule.body)
    derived = {signature(rule.head): LIMITS.literals for rule in rules if rule.body}
    most = {**facts, **derived}
    rows = (prod(float(most.get(signature(atom), 1)) for atom in rule.positive) for rule in rules)
    return Domains(rules, _given(rules)).long_joins(rules, ()) if sum(rows) >= DOUBTFUL else {}


def _given(rules: Iterable[Clause]) -> Statics:
    """Return the relations that consist of facts alone."""
    facts: dict[Signature, list[Row]] = {}
    for rule in rules:
        if not rule.body:
            facts.setdefault(signature(rule.head), []).append(tuple(map(_name, rule.head.args)))
    for rule in rules:
        if rule.body:
            facts.pop(signature(rule.head), None)
    sizes = {name: len(rows) for name, rows in facts.items()}
    return Statics(sizes, {name: rows for name, rows in facts.items() if len(rows) <= MAX_KNOWN})


def _name(term: Term) -> str | None:
    return term.name if isinstance(term, Constant) else None


def long_joins(sheet: Rulesheet, chosen: Collection[Signature] = ()) -> LongJoins:
    """Return the long joins if clingo gets the sheet as it is written; see `Domains.long_joins`."""
    rules = clauses(sheet)
    return Domains(rules, _given(rules)).long_joins(rules, chosen)


def _uncertain(rules: Sequence[Clause], chosen: Collection[Signature]) -> set[Signature]:
    """Return the relations of whose atoms clingo knows none to hold: chosen ones, and those that always need these."""
    if not chosen:
        return set()
    bodies = [set(map(signature, rule.positive)) for rule in rules]
    readers: dict[Signature, list[int]] = {}
    for number, body in enumerate(bodies):
        for name in body:
            readers.setdefault(name, []).append(number)
    uncertain = {signature(rule.head) for rule in rules}.union(chosen)
    certain = [name for name in readers if name not in uncertain]
    certain += [signature(rule.head) for rule, body in zip(rules, bodies, strict=True) if not body]
    for name in certain:  # grows
        if name in chosen:
            continue
        uncertain.discard(name)
        for number in readers.pop(name, ()):
            bodies[number].discard(name)
            if not bodies[number]:
                certain.append(signature(rules[number].head))
    return uncertain


def _constant(symbol: Any, spelled: Sequence[str]) -> str | None:
    return None if symbol.arguments else spelled[int(symbol.name[1:])]


def _static(rules: Sequence[Clause], left_out: Collection[Signature]) -> set[Signature]:
    """Return the static relations. Leave out the relations `left_out`, and all relations that depend on them."""
    dependencies = Dependencies(rules)
    derived = dependencies.uses.keys()
    chosen = {name for name in derived - left_out if name[0] not in KEYWORD_ARITY or name[0] == "role"}
    changing = reachable(users_of(dependencies.uses), (derived | GIVEN) - chosen)
    return chosen - changing


MAX_DEPTH = 8  # maximum nesting of functions in a domain; a deeper argument counts as any term
MAX_WIDTH = 10_000  # maximum number of arguments of functions at one depth; with more, they count as any term
FLOWS_TO = {("init", 1): ("true", 1), ("next", 1): ("true", 1), ("legal", 2): ("does", 2)}


@dataclass(slots=True)
class Terms:
    """A set of ground terms: constants, and functions with a set of terms for each argument.

    any: whether the set contains all terms.
    """

    constants: set[str] = field(default_factory=set)
    functions: dict[Signature, list[Terms]] = field(default_factory=dict)
    any: bool = False

    @property
    def size(self) -> float:
        """Upper bound of the number of terms, a float because products of sizes may be as large as any."""
        if self.any:
            return inf
        if not self.functions:
            return float(len(self.constants))
        check()
        return float(len(self.constants)) + sum(prod(part.size for part in parts) for parts in self.functions.values())

    def __bool__(self) -> bool:
        return self.any or bool(self.constants) or bool(self.functions)

    def add(self, other: Terms, depth: int = 0, width: int = 1) -> bool:
        """Add all terms of another set. Return whether this set has changed.

        depth: number of functions around this set. width: upper bound of the number of sets at this depth.
        """
        if self.any:
            return False
        if other.any or depth > MAX_DEPTH or width > MAX_WIDTH:
            self.any = True
            return True
        before = len(self.constants)
        self.constants |= other.constants
        changed = len(self.constants) > before
        if not other.functions:
            return changed
        check()
        for name, parts in other.functions.items():
            if name not in self.functions:
                self.functions[name] = [Terms() for _ in parts]
                changed = True
        width *= max(1, sum(map(len, self.functions.values())))
        for name, parts in other.functions.items():
            for mine, theirs in zip(self.functions[name], parts, strict=True):
                changed |= mine.add(theirs, depth + 1, width)
        return changed

    def common(self, other: Terms) -> Terms:
        """Return the intersection with another set."""
        if self.any or other.any or self is other:
            return other if self.any else self
        if not (self.functions and other.functions):
            return Terms(self.constants & other.constants)
        check()
        functions = {}
        for name in self.functions.keys() & other.functions.keys():
            parts = [a.common(b) for a, b in zip(self.functions[name], other.functions[name], strict=True)]
            if all(parts):
                functions[name] = parts
        return Terms(self.constants & other.constants, functions)


ANYTHING = Terms(any=True)


def _match(term: Term, terms: Terms, domains: dict[str, Terms]) -> bool:
    """Restrict the domains of a term's variables so that the term is in `terms`. Return False if this is impossible."""
    if isinstance(term, Variable):
        domains[term.name] = domains[term.name].common(terms) if term.name in domains else terms
        return bool(domains[term.name])
    if isinstance(term, Constant):
        return terms.any or term.name in terms.constants
    parts = [ANYTHING] * len(term.args) if terms.any else terms.functions.get((term.name, len(term.args)))
    return parts is not None and all(_match(inner, part, domains) for inner, part in zip(term.args, parts, strict=True))


def _instances(term: Term, variables: Mapping[str, Terms]) -> Terms:
    """Return all instances of a term, given the domains of its variables."""
    if isinstance(term, Variable):
        return variables.get(term.name, ANYTHING)
    if isinstance(term, Constant):
        return Terms({term.name})
    return Terms(functions={(term.name, len(term.args)): [_instances(inner, variables) for inner in term.args]})


def _columns(rows: Sequence[Row], arity: int) -> list[set[str | None]]:
    """Return the set of values in each column."""
    return [{row[place] for row in rows} for place in range(arity)]


class Domains:
    """Domains of the arguments of relations, and sizes of relations estimated from the domains.

    of: relation -> the domain of each argument, for every relation that can have an atom.
    static: the static relations of known size.
    """

    def __init__(self, rules: Sequence[Clause], static: Statics) -> None:
        working_on("estimating the sizes of relations")
        self.of: dict[Signature, list[Terms]] = {}
        self.clauses_of: dict[Signature, list[Clause]] = {}
        self.static = frozenset(static.sizes)
        self._sizes: dict[Signature, float] = dict(static.sizes)
        self._rows = static.rows
        self._largest_groups: dict[tuple[Signature, tuple[int, ...]], int] = {}
        self._columns = {name: _columns(rows, name[1]) for name, rows in static.rows.items()}
        readers: dict[Signature, list[Clause]] = {}
        for rule in rules:
            self.clauses_of.setdefault(signature(rule.head), []).append(rule)
            for atom in rule.positive:
                readers.setdefault(signature(atom), []).append(rule)
        self._flow(rules, readers)

    def _flow(self, rules: Sequence[Clause], readers: Mapping[Signature, list[Clause]]) -> None:
        """Add the instances of all heads to the domains.

        A rule is evaluated again whenever a relation in its body has changed, until no domain changes.
        """
        waiting = {id(rule): rule for rule in rules if rule.positive}
        for rule in rules:
            check()
            if not rule.positive:
                self._add(rule.head, {})
        while waiting:
            check()
            rule = waiting.pop(next(iter(waiting)))
            variables = self.variables(rule.positive)
            for name in self._add(rule.head, variables) if variables is not None else ():
                waiting.update((id(reader), reader) for reader in readers.get(name, ()))

    def _add(self, head: Atom, variables: Mapping[str, Terms]) -> list[Signature]:
        """Add the instances of a head. Return the relations whose domains have changed."""
        instances = [_instances(term, variables) for term in head.args]
        changed = []
        name: Signature | None = signature(head)
        while name:
            new = name not in self.of
            domains = self.of.setdefault(name, [Terms() for _ in instances])
            if any([mine.add(theirs) for mine, theirs in zip(domains, instances, strict=True)]) or new:
                changed.append(name)
            name = FLOWS_TO.get(name)
        return changed

    def variables(self, atoms: Sequence[Atom]) -> dict[str, Terms] | None:
        """Return the domains of the variables if all atoms hold; None if one of the atoms can never hold."""
        domains: dict[str, Terms] = {}
        for atom in atoms:
            check()
            arguments = self.of.get(signature(atom))
            if arguments is None:
                return None
            if not all(_match(term, terms, domains) for term, terms in zip(atom.args, arguments, strict=True)):
                return None
        return domains if all(self._narrow(atom, domains) for atom in atoms) else None

    def _narrow(self, atom: Atom, domains: dict[str, Terms]) -> bool:
        """Restrict the domains of an atom's variables by the rows of its relation. Return False if no row fits."""
        rows = self._rows.get(signature(atom))
        if rows is None or len(atom.args) < 2:
            return True
        columns = self._columns[signature(atom)]
        sets = [_instances(term, domains) for term in atom.args]
        for place, terms in enumerate(sets):
            if not (terms.any or terms.functions or columns[place] <= terms.constants):
                rows = [row for row in rows if row[place] is None or row[place] in terms.constants]
        if len(rows) < len(self._rows[signature(atom)]):
            columns = _columns(rows, len(atom.args))
        for term, terms, column in zip(atom.args, sets, columns, strict=True):
            if isinstance(term, Variable) and None not in column and len(column) < terms.size:
                domains[term.name] = Terms({name for name in column if name is not None})
        return bool(rows)

    def declare(self, atom: Atom, positive: Sequence[Atom]) -> None:
        """Add a new relation. Its atoms are the instances of `atom` for which all atoms of `positive` hold."""
        estimate = Estimate(self, positive)
        if estimate.variables is not None:
            name = signature(atom)
            self.of[name] = [_instances(term, estimate.variables) for term in atom.args]
            self._sizes[name] = estimate.instances(atom, positive)

    def product(self, name: Signature) -> float:
        """Return the number of all combinations of a relation's arguments."""
        return prod(terms.size for terms in self.of[name]) if name in self.of else 0.0

    def size(self, name: Signature) -> float:
        """Return the smaller of two estimates of a relation's size: by its arguments, and by its clauses."""
        if name not in self._sizes:
            self._estimate(reachable(self._uses, [name]) - self._sizes.keys())
        return self._sizes[name]

    @cached_property
    def _uses(self) -> dict[Signature, set[Signature]]:
        """Relation -> the relations that must hold in its clauses."""
        return {
            name: {signature(atom) for rule in own for atom in rule.positive} for name, own in self.clauses_of.items()
        }

    @cached_property
    def _components(self) -> dict[Signature, int]:
        return components(self._uses)

    def _estimate(self, names: Collection[Signature]) -> None:
        """Estimate the sizes of relations whose dependencies are known or among them, dependencies first."""
        component = {name: self._components.get(name, -1) for name in names}  # -1: without clauses
        for _, group in groupby(sorted(names, key=lambda name: (component[name], name)), key=component.__getitem__):
            recursive = list(group)
            self._sizes.update((name, self.product(name)) for name in recursive)  # recursive clauses use these values
            for name in recursive:
                check()
                clauses = self.clauses_of.get(name, ())
                estimates = (Estimate(self, rule.positive).instances(rule.head, rule.positive) for rule in clauses)
                self._sizes[name] = min(self._sizes[name], sum(estimates) if clauses else inf)

    def long_joins(self, rules: Sequence[Clause], chosen: Collection[Signature]) -> LongJoins:
        """Return the rules whose joins may hold clingo without a new ground rule, and for how many seconds.

        clingo reports each new ground rule, and can be stopped there. But a long join may give no new rule: if its
        parts have many rows, and the whole has none, or if many rows of the whole give the same rule. They do so if
        variables occur in no atom of the ground rule; it has no atoms that are known to hold.

        chosen: the relations whose atoms may or may not hold when the rules are ground.
        """
        uncertain = _uncertain(rules, chosen)
        joins = ((rule.rule, self._seconds(rule, uncertain)) for rule in rules if len(rule.positive) > 1)
        return {rule: seconds for rule, seconds in joins if seconds > FEW_SECONDS}

    def _seconds(self, clause: Clause, uncertain: Collection[Signature]) -> float:
        """Return an upper bound of the seconds for which a clause's join gives no ground rule."""
        estimate = Estimate(self, clause.positive)
        joined = variables(clause.positive)
        ordering = ORDERING * len(clause.positive) ** 4
        if estimate.variables is None or estimate.combinations(joined) < LONG_JOIN:
            return ordering
        *before, whole = estimate.rows(clause.positive)
        reported = [atom for atom in clause.positive if signature(atom) in uncertain]
        in_ground_rule = variables([clause.head, *reported]).keys() if reported else set[str]()
        no_other_condition = len(clause.positive) == len(clause.body)
        is_reported = no_other_condition and joined.keys() <= in_ground_rule
        return ordering + max(before) / PARTIAL_ROWS + (0.0 if is_reported else whole / WHOLE_ROWS)

    def largest_group(self, name: Signature, places: tuple[int, ...]) -> float:
        """Return the largest number of atoms of a relation that are equal at some places; an upper bound."""
        if name not in self._rows:
            return self._sizes[name] if name in self.static - GIVEN else self.product(name)
        if (name, places) not in self._largest_groups:
            groups = Counter(tuple(row[place] for place in places) for row in self._rows[name])
            self._largest_groups[name, places] = max(groups.values(), default=0)
        return self._largest_groups[name, places]


def _score(arguments: Sequence[Term], size: float, bound: Collection[str]) -> float:
    """Return clingo's score of an atom or a function; it joins the atom with the smallest one next.

    Source: `FunctionTerm::estimate` and `VarTerm::estimate` of gringo, the grounder of clingo.
    """
    if not arguments:
        return 0.0
    root = max(1.0, (size / 2) ** (1 / len(arguments)))
    scores = (
        (root if term.name not in bound else 0.0)
        if isinstance(term, Variable)
        else _score(_arguments(term), root, bound)
        for term in arguments
    )
    return sum(scores) / len(arguments)


def _arguments(term: Term) -> Sequence[Term]:
    return term.args if isinstance(term, Function) else ()


class Estimate:
    """Estimates for one clause: numbers of instances of its conditions, from the domains of its variables."""

    def __init__(self, domains: Domains, positive: Sequence[Atom]) -> None:
        self.domains = domains
        self.variables = domains.variables(positive)

    def join(self, atoms: Iterable[Atom], part: Iterable[str] = (), part_size: float = inf) -> float:
        """Estimate the number of rows of a join of atoms.

        The join starts with a relation that has the variables `part` and the size `part_size`. Atoms are added
        greedily, the atom with the smallest factor first. All arguments are assumed to be independent.
        """
        if self.variables is None:
            return 0.0
        rows = max(1.0, min(part_size, self.combinations(part)))
        for factor in self.factors(atoms, part):
            rows = max(1.0, rows * factor)
        return rows

    def factors(self, atoms: Iterable[Atom], part: Iterable[str] = ()) -> Iterator[float]:
        """Yield the factor of each atom of a join, see `join`."""
        bound, left = set(part), list(atoms)
        while left:
            check()
            factors = [self.factor(atom, bound) for atom in left]
            place = min(range(len(left)), key=factors.__getitem__)
            bound.update(variables([left.pop(place)]))
            yield factors[place]

    def rows(self, atoms: Iterable[Atom]) -> Iterator[float]:
        """Yield an upper bound of the number of rows after each step of a join, in the order that clingo takes.

        Terms without end do not count: clingo tells the new ones.
        """
        bound, left, rows = set[str](), list(atoms), 1.0
        while left:
            check()
            scores = [_score(atom.args, self.domains.size(signature(atom)), bound) for atom in left]
            atom = left.pop(min(range(len(left)), key=scores.__getitem__))
            factor = self._most_instances(atom, bound)
            rows = max(1.0, rows * factor) if factor < inf else rows
            bound.update(variables([atom]))
            yield rows

    def _most_instances(self, atom: Atom, bound: set[str]) -> float:
        """Return an upper bound of the number of instances of an atom for one instance of the bound variables."""
        combinations = self.combinations(variables([atom]).keys() - bound)
        if combinations <= 1:
            return combinations
        places = tuple(place for place, term in enumerate(atom.args) if variables_of(term) <= bound)
        return min(combinations, self.domains.largest_group(signature(atom), places))

    def instances(self, head: Atom, atoms: Iterable[Atom]) -> float:
        """Estimate the number of instances of a head. All its variables must be in the atoms that derive it."""
        if self.variables is None:
            return 0.0
        return min(self.combinations(variables([head])), self.join(atoms))

    def combinations(self, names: Iterable[str]) -> float:
        """Return the number of combinations of values of some variables."""
        assert self.variables is not None
        return prod(self.variables[name].size if name in self.variables else inf for name in names)

    def factor(self, atom: Atom, bound: set[str]) -> float:
        """Estimate the number of instances of an atom for each instance of the bound variables."""
        if self.variables is None:
            return 0.0
        factor = self.combinations(variables([atom]).keys() - bound)
        if factor <= 1:
            return factor
        arguments = zip(atom.args, self.domains.of[signature(atom)], strict=True)
        bindings = prod(max(1.0, terms.size) for term, terms in arguments if variables_of(term) <= bound)
        return min(factor, self.domains.size(signature(atom)) / bindings)
