"""Facts of which at most one holds, proved from the rules, and what that saves: asking about them one by one.

    (true (cell ?x ?y king)) (not (threatened ?x ?y ?u ?v))

needs `threatened` for every square. Where there is one king at most, it is the same to say that no king is threatened:

    (true (cell ?x ?y king)) (not (some:1 ?u ?v))
    (<= (some:1 ?u ?v) (true (cell ?x ?y king)) (threatened ?x ?y ?u ?v))

Then ?x and ?y can be projected out of the rules for `threatened`. That at most one holds is proved by induction: at the
start no two do, and no joint move leads from a state without two to one with two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from math import prod
from typing import NamedTuple

from .chase import Chase, Group
from .clauses import Clause, Literal, NewRelations, Signature, apart, equated, signature, unfolded, variables
from .domains import Domains, Terms
from .gdl import KEYWORD_ARITY, NOWHERE, Atom, Constant, Distinct, Function, Term, Variable
from .statics import Statics
from .stratification import Dependencies

LARGE = 20_000  # atoms of a relation that are worth a proof
GAIN = 8  # facts that could hold for each that does
MAX_GROUPS = 8  # of the facts that one condition may stand for


class Asked(NamedTuple):
    """A clause asks, of one fact after the other, whether a large relation does not hold."""

    fact: Atom
    negated: Atom
    values: tuple[str, ...]  # the variables that the two share
    num_values: float  # that they can have
    groups: frozenset[Group]


def unique(rules: Sequence[Clause], known: Statics, candidates: Collection[Group]) -> dict[Group, set[Group]]:
    """The groups of facts of which at most one holds in every reachable state, as far as that can be proved.

    They are assumed of a state all together and proved of the next; what fails is dropped, until nothing does. Each
    comes with the groups that its own proof relies on.
    """
    at_the_start = Chase(rules, known)
    kept = {group for group in sorted(candidates) if _at_most_one(group, "init", rules, at_the_start)}
    proofs: dict[Group, set[Group]] = {}
    while unsure := sorted(group for group in kept if group not in proofs or not proofs[group] <= kept):
        step = Chase(rules, known, kept)
        for group in unsure:
            step.used = set()
            if _at_most_one(group, "next", rules, step):
                proofs[group] = step.used
            else:
                kept.remove(group)
    return {group: proofs[group] for group in kept}


def _at_most_one(group: Group, head: str, rules: Sequence[Clause], chase: Chase) -> bool:
    """Whether no two clauses, nor one twice, derive two different facts of the group."""
    for left, other in combinations_with_replacement(list(_deriving(group, head, rules)), 2):
        right = apart(other, left)
        two = Literal(True, Distinct(left.head.args[0], right.head.args[0], NOWHERE))
        if not chase.refutes([two, *left.body, *right.body]):
            return False
    return True


def _deriving(group: Group, head: str, rules: Sequence[Clause]) -> Iterator[Clause]:
    """The clauses of `init` or `next`, each for facts of the group alone."""
    for rule in rules:
        if rule.head.name == head:
            special = equated(rule, rule.head.args[0], group.pattern())
            if special is not None:
                yield special


class Unique:
    """Rules in which large relations are asked about facts of which one holds at most.

    `groups` are those facts, and those that the proofs rely on: a state where no two of a group hold is followed by
    such states alone.
    """

    def __init__(self, rules: Sequence[Clause], known: Statics, domains: Domains, prefix: str) -> None:
        self.known, self.domains = known, domains
        self.recursive = Dependencies(rules).recursive()
        found = [asked for rule in rules for asked in self._asked(rule)]
        wanted = frozenset[Group]().union(*(asked.groups for asked in found))
        self.proved = unique(rules, known, wanted | _single(rules)) if wanted else {}
        self.groups: set[Group] = set()
        self.some = NewRelations(prefix)
        self.rules = [new for rule in rules for new in self._rewritten(rule)]

    def _asked(self, rule: Clause) -> Iterator[Asked]:
        """Every way in which a clause asks a large relation about facts."""
        negated = [lit.sentence for lit in rule.body if not lit.positive and isinstance(lit.sentence, Atom)]
        large = [atom for atom in negated if self._is_large(signature(atom))]
        of = self.domains.variables(rule.positive) if large else None
        if of is not None:
            for fact, atom in product((atom for atom in rule.positive if atom.name == "true"), large):
                values = tuple(name for name in variables([fact]) if name in variables([atom]))
                num_values = prod(of[name].size for name in values)
                groups = _groups(fact.args[0], values, of) if num_values >= GAIN else frozenset()
                if groups:
                    yield Asked(fact, atom, values, num_values, groups)

    def _is_large(self, name: Signature) -> bool:
        defined = name in self.domains.clauses_of and name[0] not in KEYWORD_ARITY
        return defined and name not in self.recursive and self.domains.size(name) >= LARGE

    def _rewritten(self, rule: Clause) -> Iterator[Clause]:
        asked = max(
            (asked for asked in self._asked(rule) if asked.groups <= self.proved.keys()),
            key=lambda asked: asked.num_values,
            default=None,
        )
        if asked is None:
            yield rule
            return
        self._rely_on(asked.groups)
        some, definitions = self._some(rule, asked)
        body = (Literal(False, some) if literal.sentence is asked.negated else literal for literal in rule.body)
        yield from definitions
        yield from self._rewritten(Clause(rule.head, tuple(body), rule.location))

    def _rely_on(self, groups: Collection[Group]) -> None:
        for group in groups:
            if group not in self.groups:
                self.groups.add(group)
                self._rely_on(self.proved[group])

    def _some(self, rule: Clause, asked: Asked) -> tuple[Atom, list[Clause]]:
        """The atom that says that the relation holds of one of the facts; its clauses, the first time."""
        names = variables([asked.fact, asked.negated])
        inner = (asked.fact, *self._context(rule, asked.fact, set(names)), asked.negated)
        outer = [name for name in names if name not in asked.values]
        body = tuple(Literal(True, atom) for atom in inner)
        some, is_new = self.some.atom(body, outer, rule.location)
        if not is_new:
            return some, []
        whole = Clause(some, body, rule.location)
        definitions = self.domains.clauses_of.get(signature(asked.negated), [])
        cases = (unfolded(whole, asked.negated, definition) for definition in definitions)
        return some, [case for case in cases if case is not None]

    def _context(self, rule: Clause, fact: Atom, names: set[str]) -> Iterator[Atom]:
        """What the clause says with known relations of the fact's variables: it tells which facts are meant."""
        mine = variables([fact]).keys()
        for atom in rule.positive:
            own = variables([atom]).keys()
            if signature(atom) in self.known.rows and own & mine and own <= names:
                yield atom


def _groups(fact: Term, values: Collection[str], of: Mapping[str, Terms]) -> frozenset[Group]:
    """The groups that a fact must be in by its arguments other than these variables; none where they are many."""
    if not isinstance(fact, Function):
        return frozenset()
    fixed = [
        [(place, name) for name in _constants(argument, of)]
        for place, argument in enumerate(fact.args)
        if not (isinstance(argument, Variable) and argument.name in values)
    ]
    if prod(map(len, fixed)) > MAX_GROUPS:
        return frozenset()
    return frozenset(Group((fact.name, len(fact.args)), choice) for choice in product(*fixed))


def _constants(term: Term, of: Mapping[str, Terms]) -> Collection[str]:
    """What an argument can be, where that is constants; nothing where it can be something else."""
    if isinstance(term, Constant):
        return (term.name,)
    terms = of.get(term.name) if isinstance(term, Variable) else None
    return () if terms is None or terms.any or terms.functions else sorted(terms.constants)


def _single(rules: Sequence[Clause]) -> set[Group]:
    """All facts of one shape, for every shape: what else may be needed for a proof, as whose turn it is."""
    facts = (rule.head.args[0] for rule in rules if rule.head.name == "next")
    return {Group((fact.name, len(fact.args))) for fact in facts if isinstance(fact, Function)}
