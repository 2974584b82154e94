"""Which variables of a game belong together by its rules, such as the cells of a line.

A *variable* is a set of facts of which one at most holds. Two of them are neighbours where a rule of the sheet cannot
do without either: it reads them itself, or by way of relations that cannot. A rule that brings most variables together
with most of the others, such as one that counts pieces wherever they lie, does not say who is near whom, and is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .asp import Limits
from .clauses import clauses, signature
from .cycles import components
from .gdl import Atom, Constant, Rule, Rulesheet
from .ground import GroundProgram, ground
from .names import GroundTerm, Names
from .stratification import Dependencies

MOST = 0.75  # of the others, beyond which what a rule says is true of nearly any two
AFFORDABLE = Limits(seconds=10.0, literals=8_000_000)  # to ground
ALL = -1  # the set of all variables, and more

Bits: TypeAlias = int
"""A set of variables: bit i for number i."""
Instance: TypeAlias = tuple[int, list[int]]
"""A ground rule: the atom that it derives, and its conditions, atoms or minus atoms."""


def neighbours(sheet: Rulesheet, variables: Mapping[GroundTerm, int], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[variables, variables], reflexive and symmetric; those that are not chosen, bool[variables], have none.

    variables: the variable of each fact, numbers from 0. Raises GroundingError where the rules as they are written are
    too large to ground.
    """
    program, rules = _by_rule(sheet)
    needs = _needs(rules, {atom: 1 << variables[fact] for fact, atom in program.true.items() if fact in variables})
    among = sum(1 << variable for variable in np.flatnonzero(chosen).tolist())
    found = np.eye(len(chosen), dtype=np.bool_)
    for instances in rules:
        needed = {_union(needs.get(literal, 0) for literal in body) for _, body in instances}
        together = _together(part & among for part in needed if part != ALL)
        number = sum(others.bit_count() - 1 for others in together.values())
        if number <= MOST * len(together) * (among.bit_count() - 1):
            for variable, others in together.items():
                found[variable, list(_members(others))] = True
    return found


def _together(sets: Iterable[Bits]) -> dict[int, Bits]:
    """Each variable that is not alone in one of the sets, with all that are in one with it, itself included."""
    together: dict[int, Bits] = {}
    for part in sets:
        if part.bit_count() > 1:
            for member in _members(part):
                together[member] = together.get(member, 0) | part
    return together


def _needs(rules: Iterable[Iterable[Instance]], given: Mapping[int, Bits]) -> dict[int, Bits]:
    """The variables that nobody can do without who shows a literal; given: those of the facts, by their atoms.

    To show an atom is to show all the conditions of one of its rules; to refute it, one condition of each of them. Here
    an atom only needs, to be shown, what all of its rules do, and to be refuted, what all of their conditions do: that
    no cell is blank needs all of them, but does not make them neighbours.
    """
    bodies: dict[int, list[list[int]]] = {}
    for head, body in chain.from_iterable(rules):
        bodies.setdefault(head, []).append(body)
    needs = {sign * atom: variable for atom, variable in given.items() for sign in (1, -1)}
    for component in components(bodies, lambda atom: (abs(a) for body in bodies.get(atom, ()) for a in body)):
        derived = [atom for atom in component if atom in bodies]
        needs |= {sign * atom: ALL for atom in derived for sign in (1, -1)}
        before: list[Bits] = []
        while before != (now := [needs[sign * atom] for atom in derived for sign in (1, -1)]):
            before = now
            for atom in derived:
                needs[atom] = _common(_union(needs.get(literal, 0) for literal in body) for body in bodies[atom])
                needs[-atom] = _common(needs.get(-literal, 0) for body in bodies[atom] for literal in body)
    return needs


def _by_rule(sheet: Rulesheet) -> tuple[GroundProgram, list[list[Instance]]]:
    """The rules ground as they are written; and what became of each of the sheet that depends on state or moves.

    Each of these gets one more condition, a fact that is its own, by which the ground rules are sorted.
    """
    below = Dependencies(clauses(sheet)).below
    names, rules, marks = Names(sheet), list(sheet.rules), []
    for number, rule in enumerate(sheet.rules):
        if not below(signature(rule.head)).isdisjoint({("true", 1), ("does", 2)}):
            mark = Constant(f"({number})", f"({number})", rule.location)  # the parser reads no such name
            marks.append((names.intern(mark.name, mark.spelling), ()))
            rules[number] = replace(rule, body=(*rule.body, Atom("true", (mark,), "true", rule.location)))
            rules.append(Rule(Atom("init", (mark,), "init", rule.location), (), rule.location))
    program = ground(replace(sheet, rules=tuple(rules)), AFFORDABLE, names)
    found: dict[int, list[Instance]] = {program.true[fact]: [] for fact in marks if fact in program.true}
    offsets, literals = program.offsets.tolist(), program.literals.tolist()
    for i, head in enumerate(program.heads.tolist()):
        body = set(literals[offsets[i] : offsets[i + 1]])
        for own in found.keys() & body:
            found[own].append((head, sorted(body - {own})))
    return program, list(found.values())


def _union(sets: Iterable[Bits]) -> Bits:
    return reduce(or_, sets, 0)


def _common(sets: Iterable[Bits]) -> Bits:
    return reduce(and_, sets, ALL)


def _members(bits: Bits) -> Iterator[int]:
    """The numbers in a set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
