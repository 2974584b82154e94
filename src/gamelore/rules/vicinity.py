"""Which facts and moves lie near each other: locality, as Lock & Epstein (2004, 3) call it, for any game.

Facts that differ in one argument, and of which one at most was seen to hold in any state, are one *variable*, such as
all that may lie in a cell. An action *touches* a variable where it was seen to make something else of it than most
actions of its role do, legal there or not; how the rules say so does not matter.

Two variables are *neighbours* where a rule of the sheet cannot do without either of them, such as the cells of a line:
it reads them itself, or by way of relations that cannot. A rule that brings most variables together with most of the
others, such as one that counts pieces wherever they lie, does not say who is near whom, and is left out.

A variable that no action touches, or that most of a role's actions do, is *everywhere*, such as whose turn it is: it
makes nothing near and is near to everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from operator import and_, or_
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .clauses import clauses, signature
from .cycles import components
from .engine import States, unpack_bits
from .game import Game
from .gdl import Atom, Constant, Rule, Rulesheet
from .ground import GroundProgram
from .names import GroundTerm, Names
from .stratification import Dependencies
from .symmetry import affordable

MOST = 0.75
MATCHES, PLIES = 64, 100  # looked at for facts that exclude each other
STATES = 200  # of these, looked at for what actions touch
ALL = -1  # the set of all variables, and more

Bits: TypeAlias = int
"""A set of variables: bit i for number i."""
Instance: TypeAlias = tuple[int, list[int]]
"""A ground rule: the atom that it derives, and its conditions, atoms or minus atoms."""


@dataclass(frozen=True, eq=False)
class Vicinity:
    """Facts by their bit number, actions by their flat number.

    variables   int64[num_facts], the variable of each fact
    neighbours  bool[variables, variables], reflexive and symmetric
    touched     bool[actions, variables], what each action touches
    everywhere  bool[variables]
    """

    variables: NDArray[np.int64]
    neighbours: NDArray[np.bool_]
    touched: NDArray[np.bool_]
    everywhere: NDArray[np.bool_]

    @classmethod
    def of(cls, game: Game) -> Vicinity:
        """Grounds the rules as they are written. Raises GameloreError where they are not compiled, GroundingError."""
        if game.circuit is None or game.is_bounded:
            raise GameloreError(
                f"expected a game that is compiled as a whole, got {game.name}: {game.engine_reason}; "
                "leave out locality"
            )
        states, joint = _sampled(game)
        variables = _variables(game.circuit.facts, unpack_bits(states, game.circuit.num_facts))
        some = np.linspace(0, len(states), min(STATES, len(states)), endpoint=False, dtype=np.int64)
        touched = _touched(game, variables, states[some], joint[some])
        everywhere = _everywhere(touched, list(map(len, game.circuit.actions)))
        return cls(variables, _neighbours(game, variables, ~everywhere), touched, everywhere)

    def close_together(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[n]: in which sequences int32[n, longest] each action is near the first; negative is behind the end.

        Two actions are near where what they touch is the same variable or are neighbours, and where one of them
        touches only what is everywhere.
        """
        first, others = sequences[:, :1], np.maximum(sequences, 0)
        near = (self._reached[first] & self._local[others]).any(axis=2)
        nowhere = ~self._local.any(axis=1)
        return np.asarray((near | nowhere[first] | nowhere[others] | (sequences < 0)).all(axis=1))

    def around(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[n, num_facts]: of the variables that an action of the sequence touches, their neighbours, and those
        everywhere."""
        reached = (self._reached[np.maximum(sequences, 0)] & (sequences >= 0)[:, :, None]).any(axis=1)
        return np.asarray((reached | self.everywhere)[:, self.variables])

    @cached_property
    def _local(self) -> NDArray[np.bool_]:
        """bool[actions, variables]: what each action touches that is not everywhere."""
        return self.touched & ~self.everywhere

    @cached_property
    def _reached(self) -> NDArray[np.bool_]:
        """bool[actions, variables]: that, and its neighbours."""
        return np.asarray(self._local.astype(np.float32) @ self.neighbours.astype(np.float32) > 0)


def _sampled(game: Game) -> tuple[States, NDArray[np.int32]]:
    """States of random matches, uint64[n, words], each once, and a joint move played there, int32[n, roles]."""
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], MATCHES, axis=0)
    seen, played = [], []
    for _ in range(PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        goes_on = counts.min(axis=1) > 0
        states, starts, counts = states[goes_on], starts[goes_on], counts[goes_on]
        joint = legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)]
        seen.append(states)
        played.append(joint)
        states = game.next(states, joint)
    found, first = np.unique(np.concatenate(seen), axis=0, return_index=True)
    return found, np.concatenate(played)[first]


def _variables(facts: Sequence[GroundTerm], held: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The variable of each fact: the last argument in which facts differ that exclude each other is its value.

    held: uint8[states, facts].
    """
    found = np.full(len(facts), -1)
    number = 0
    for group in _groups(facts):
        if (found[group] < 0).all() and held[:, group].sum(axis=1).max(initial=0) <= 1:
            found[group] = number
            number += 1
    alone = found < 0
    found[alone] = number + np.arange(np.count_nonzero(alone))
    return found


def _groups(facts: Sequence[GroundTerm]) -> Iterator[list[int]]:
    """Numbers of facts that are equal but for one argument, the last argument first."""
    for place in range(1, 1 + max((len(arguments) for _, arguments in facts), default=0)):
        groups: dict[object, list[int]] = {}
        for number, (name, arguments) in enumerate(facts):
            if len(arguments) >= place:
                before, behind = arguments[:-place], arguments[len(arguments) - place + 1 :]
                groups.setdefault((name, before, behind), []).append(number)
        yield from groups.values()


def _touched(
    game: Game, variables: NDArray[np.int64], states: States, joint: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """bool[actions, variables]: where in one of the states an action gives facts others values than most others do."""
    assert game.circuit is not None
    ends = np.cumsum(list(map(len, game.circuit.actions)))
    differs = np.zeros((game.circuit.num_actions, len(variables)), np.bool_)
    for role, own in enumerate(np.split(np.arange(game.circuit.num_actions), ends[:-1])):
        for state, moves in zip(states, joint, strict=True):
            every = np.repeat(moves[None], len(own), axis=0)
            every[:, role] = own
            following = unpack_bits(game.next(np.repeat(state[None], len(own), axis=0), every), len(variables))
            differs[own] |= following != (2 * following.sum(axis=0) > len(own))
    members = variables[:, None] == np.arange(variables.max(initial=-1) + 1)
    return np.asarray(differs.astype(np.float32) @ members.astype(np.float32) > 0)


def _everywhere(touched: NDArray[np.bool_], num_actions: Sequence[int]) -> NDArray[np.bool_]:
    """bool[variables]: touched by no action, or by most of one role's."""
    by_role = np.split(touched, np.cumsum(num_actions)[:-1])
    by_most = [part.sum(axis=0) > MOST * len(part) for part in by_role]
    return np.asarray(~touched.any(axis=0) | np.any(by_most, axis=0))


def _neighbours(game: Game, variables: NDArray[np.int64], somewhere: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[variables, variables], reflexive and symmetric; those that are not somewhere have none."""
    assert game.circuit is not None
    program, rules = _by_rule(game.rulesheet)
    sets = {fact: 1 << variable for fact, variable in zip(game.circuit.facts, variables.tolist(), strict=True)}
    needs = _needs(rules, {atom: sets[fact] for fact, atom in program.true.items() if fact in sets})
    chosen = sum(1 << variable for variable in np.flatnonzero(somewhere).tolist())
    found = np.eye(len(somewhere), dtype=np.bool_)
    for instances in rules:
        needed = {_union(needs.get(literal, 0) for literal in body) for _, body in instances}
        together = _together(part & chosen for part in needed if part != ALL)
        number = sum(others.bit_count() - 1 for others in together.values())
        if number <= MOST * len(together) * (chosen.bit_count() - 1):
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
    """The rules ground; and what became of each of the sheet that depends on state or moves, then of all others.

    Each of these gets a condition of its own, a fact that only they know, by which the ground rules are sorted.
    """
    below = Dependencies(clauses(sheet)).below
    names, rules, marks = Names(sheet), list(sheet.rules), []
    for number, rule in enumerate(sheet.rules):
        if not below(signature(rule.head)).isdisjoint({("true", 1), ("does", 2)}):
            mark = Constant(f"({number})", f"({number})", rule.location)  # the parser reads no such name
            marks.append((names.intern(mark.name, mark.spelling), ()))
            rules[number] = replace(rule, body=(*rule.body, Atom("true", (mark,), "true", rule.location)))
            rules.append(Rule(Atom("init", (mark,), "init", rule.location), (), rule.location))
    program = affordable(replace(sheet, rules=tuple(rules)), names)
    found: dict[int, list[Instance]] = {program.true[mark]: [] for mark in marks if mark in program.true}
    others: list[Instance] = []
    offsets, literals = program.offsets.tolist(), program.literals.tolist()
    for rule, head in enumerate(program.heads.tolist()):
        body = set(literals[offsets[rule] : offsets[rule + 1]])
        marked = found.keys() & body
        found.get(min(marked, default=0), others).append((head, sorted(body - marked)))
    return program, [*found.values(), others]


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
