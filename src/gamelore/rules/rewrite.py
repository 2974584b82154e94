"""Rules to equivalent rules that ground smaller: long bodies cut, large relations derived where they are asked for.

What is large depends on who asks. To compile a game is to ground its rules for every fact that some state may hold;
to reason about one state, for the facts of that state. So there are two ways to rewrite, with the same answers in
every reachable state; the second has them in any state at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .chase import Group
from .clauses import Clause, all_atoms, clauses, signature
from .demand import Demand
from .domains import Domains
from .gdl import Rulesheet
from .persistence import without_persistent_facts
from .projection import Projection
from .statics import statics
from .stratification import Dependencies
from .unique import Unique


@dataclass(frozen=True, slots=True)
class Rewritten(Rulesheet):
    """Rewritten rules. `guards` are the relations that say what is wanted, see demand.py; of each group of facts in
    `unique` the rules rely on no two to hold, see unique.py."""

    guards: frozenset[str] = frozenset()
    unique: frozenset[Group] = frozenset()


LARGE, LARGE_IN_A_STATE = 20_000, 200  # atoms of a relation that may be worth a guard


def rewrite(sheet: Rulesheet) -> Rewritten:
    """Rules to compile: small where every reachable fact may hold."""
    rules = clauses(sheet)
    rules = without_persistent_facts(rules, _fresh("always", rules))
    known = statics(rules)
    domains = Domains(rules, known)
    unique = Unique(rules, known, domains, _fresh("some", rules))
    if unique.groups:
        domains = Domains(unique.rules, known)
    return replace(_rewritten(sheet, unique.rules, domains, LARGE, must_pay=True), unique=frozenset(unique.groups))


def rewrite_for_a_state(sheet: Rulesheet) -> Rewritten:
    """Rules to reason with: small where a state's facts and one move of each role are given."""
    rules = clauses(sheet)
    known = statics(rules)
    num_facts = sum(rule.head.name == "init" for rule in rules)
    num_roles = known.sizes.get(("role", 1), 1)
    given = {("true", 1): num_facts, ("does", 2): num_roles}
    domains = Domains(rules, replace(known, sizes=known.sizes | given))
    return _rewritten(sheet, rules, domains, LARGE_IN_A_STATE, must_pay=False)


def _rewritten(sheet: Rulesheet, rules: list[Clause], domains: Domains, large: float, must_pay: bool) -> Rewritten:
    projection = Projection(domains, _fresh("part", rules))
    rules = [part for rule in rules for part in projection.of(rule)]
    rules = _needed(rules)
    demand = Demand(rules, domains, _fresh("wanted", rules), large=large, must_pay=must_pay)
    guards = list(demand.guards())
    # They speak of relations as these now are, some only derived where others want it: no part of a rule, and no
    # definition from before, may stand for what they ask.
    parts = Projection(domains, _fresh("asked", rules))
    rules = [*demand.guarded(), *(part for guard in guards for part in parts.of(guard, depth=0))]
    names = frozenset(guard.head.name for guard in guards)
    return Rewritten(tuple(rule.rule for rule in rules), sheet.text, sheet.path, names)


def _needed(rules: list[Clause]) -> list[Clause]:
    """The clauses of relations that the game depends on."""
    needed = Dependencies(rules).below(
        ("role", 1), ("init", 1), ("next", 1), ("legal", 2), ("goal", 2), ("terminal", 0)
    )
    return [rule for rule in rules if signature(rule.head) in needed]


def _fresh(word: str, rules: Iterable[Clause]) -> str:
    """A prefix that no relation has which the rules derive or ask about."""
    names = {atom.name for rule in rules for atom in (rule.head, *all_atoms(rule.body))}
    prefix = f"{word}:"
    while any(name.startswith(prefix) for name in names):
        prefix += ":"
    return prefix
