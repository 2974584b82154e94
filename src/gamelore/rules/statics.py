"""Relations that depend on neither state nor moves: derived once, to know how large they are and what they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .asp import Budget, Limits, Translator, control, ground_within
from .clauses import Clause, Signature, signature
from .gdl import KEYWORD_ARITY, Rulesheet
from .names import Names
from .stratification import Dependencies

ATTEMPTS = 3
LIMITS = Limits(seconds=60, literals=300_000)  # of one attempt; by size alone, so that each time gives the same
MAX_KNOWN = 2_000  # atoms of a relation whose arguments are kept

Row: TypeAlias = tuple[str | None, ...]
"""The arguments of an atom: names of constants, None for other terms."""


@dataclass(slots=True)
class Statics:
    """`sizes`: the number of atoms, or more; `rows`: exactly the atoms, of relations with no more than MAX_KNOWN."""

    sizes: dict[Signature, int] = field(default_factory=dict)
    rows: dict[Signature, list[Row]] = field(default_factory=dict)


def statics(rules: Sequence[Clause]) -> Statics:
    """Derives them. What is too large for the limits is left out, with all that depends on it."""
    large: set[Signature] = set()
    for _ in range(ATTEMPTS):
        found, complete = _derived(rules, _static(rules, large))
        if complete:
            return found
        large.add(max(found.sizes, key=found.sizes.__getitem__))
    return Statics()


def _derived(rules: Iterable[Clause], relations: Collection[Signature]) -> tuple[Statics, bool]:
    """What can be derived of these relations within the limits, and whether that is all."""
    sheet = Rulesheet(tuple(rule.rule for rule in rules if signature(rule.head) in relations), "")
    names = Names(sheet)
    translator = Translator(names)
    budget = Budget(LIMITS)
    clingo = control("\n".join(translator.rules(sheet)), budget)
    complete = ground_within(clingo, budget)
    found = Statics()
    spelled = list(names.numbers)
    for name, arity in sorted(relations):
        atoms = list(clingo.symbolic_atoms.by_signature(translator.relation(name), arity))
        found.sizes[name, arity] = len(atoms)
        if len(atoms) <= MAX_KNOWN and all(atom.is_fact for atom in atoms):  # others wait for a solver to decide them
            rows = ([_constant(term, spelled) for term in atom.symbol.arguments] for atom in atoms)
            found.rows[name, arity] = list(map(tuple, rows))
    return found, complete


def _constant(symbol: Any, spelled: Sequence[str]) -> str | None:
    return None if symbol.arguments else spelled[int(symbol.name[1:])]


def _static(rules: Sequence[Clause], left_out: Collection[Signature]) -> set[Signature]:
    """Derived relations all of whose conditions are such relations, none of them left out."""
    edges = Dependencies(rules).uses
    chosen = {name for name in edges.keys() - left_out if name[0] not in KEYWORD_ARITY or name[0] == "role"}
    given = edges.keys() | {("true", 1), ("does", 2)}
    while True:
        dropped = {name for name in chosen if not (edges[name] & given) <= chosen}
        if not dropped:
            return chosen
        chosen -= dropped
