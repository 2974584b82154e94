"""Locality of facts and moves (Lock & Epstein 2004, section 3): variables, their neighbours, and touched variables.

The variables are those of variables.py, such as the contents of a cell. An action *touches* a variable if in some
sampled state it changes a fact of the variable, while most actions of its role do not change the fact in this way. For
this comparison, illegal actions count, too.

Two variables are *neighbours* if a rule of the sheet requires both of them, directly or by other relations. For
example, the rule for a line of three cells makes these cells neighbours. A rule is left out if it connects most
variables with most other variables; an example is a rule that counts all pieces on the board.

A variable is *everywhere* if no action touches it, or if most actions of a role touch it. An example is the fact that
says whose turn it is. Such a variable counts as near to every action, but it does not make two actions near.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from operator import and_, or_
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..circuit.aig import components_below
from ..errors import GameloreError, GroundingError
from ..game.engines import States, unpack_bits
from ..game.game import Game
from ..gdl.clauses import Dependencies, clauses, signature
from ..gdl.limits import Limits
from ..gdl.syntax import Atom, Constant, Rule, Rulesheet
from ..ground.clingo import GroundTerm, Names
from ..ground.program import GroundProgram, ground
from .symmetry import symmetries
from .variables import Bits, RandomPlies, members, random_plies, seen_facts, variable_numbers

MOST = 0.75  # share of variables, or of a role's actions, that counts as "most" in the text above
AFFORDABLE = Limits(seconds=10.0, literals=8_000_000)  # limits for grounding the rules
ALL = -1  # the set of all variables: an integer in which every bit is set

Instance: TypeAlias = tuple[int, list[int]]
"""A ground rule: its head atom, and the literals of its body. The literal for a negated atom is the negative number."""


def neighbours(sheet: Rulesheet, variables: Mapping[GroundTerm, int], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which variables are neighbours, bool[variables, variables]; the matrix is reflexive and symmetric.

    variables: the variable of each fact, numbered from 0. chosen: bool[variables]; the other variables have no
    neighbours except themselves. Raise GroundingError if the rules as written are too large to ground.
    """
    program, rules = _by_rule(sheet)
    needs = _needs(rules, {atom: 1 << variables[fact] for fact, atom in program.true.items() if fact in variables})
    among = sum(1 << variable for variable in np.flatnonzero(chosen).tolist())
    near = np.eye(len(chosen), dtype=np.bool_)
    for instances in rules:
        needed = {_union(needs.get(literal, 0) for literal in body) for _, body in instances}
        together: dict[int, Bits] = {}
        for part in (part & among for part in needed if part != ALL):
            for member in members(part) if part.bit_count() > 1 else ():
                together[member] = together.get(member, 0) | part
        number = sum(others.bit_count() - 1 for others in together.values())
        if number <= MOST * len(together) * (among.bit_count() - 1):
            for variable, others in together.items():
                near[variable, list(members(others))] = True
    return near


def _needs(rules: Iterable[Iterable[Instance]], given: Mapping[int, Bits]) -> dict[int, Bits]:
    """Return the variables that every derivation of a literal needs, approximately.

    given: the variables of the facts, by the atoms of the facts.

    To derive an atom, all conditions of one of its rules must hold. So the atom needs the variables that all of its
    rules need. To refute an atom, one condition of each of its rules must fail. As an approximation, the negated atom
    needs the variables that the negations of all of its conditions need. So a rule with the condition "no cell is
    blank" does not make all cells neighbours.
    """
    bodies: dict[int, list[list[int]]] = {}
    for head, body in chain.from_iterable(rules):
        bodies.setdefault(head, []).append(body)
    needs = {sign * atom: variable for atom, variable in given.items() for sign in (1, -1)}
    for component in components_below(bodies, lambda atom: (abs(a) for body in bodies.get(atom, ()) for a in body)):
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
    """Ground the rules as written; return the program and, for each rule, its ground instances.

    Only rules that depend on the state or on moves count. Each such rule gets an additional fact as a condition, by
    which its ground instances are recognised.
    """
    below = Dependencies(clauses(sheet)).below
    names, rules, marks = Names(sheet), list(sheet.rules), []
    for number, rule in enumerate(sheet.rules):
        if not below(signature(rule.head)).isdisjoint({("true", 1), ("does", 2)}):
            mark = Constant(f"({number})", f"({number})", rule.location)  # no rulesheet can contain this name
            marks.append((names.intern(mark.name, mark.spelling), ()))
            rules[number] = replace(rule, body=(*rule.body, Atom("true", (mark,), "true", rule.location)))
            rules.append(Rule(Atom("init", (mark,), "init", rule.location), (), rule.location))
    program = ground(replace(sheet, rules=tuple(rules)), AFFORDABLE, names)
    instances: dict[int, list[Instance]] = {program.true[fact]: [] for fact in marks if fact in program.true}
    offsets, literals = program.offsets.tolist(), program.literals.tolist()
    for i, head in enumerate(program.heads.tolist()):
        body = set(literals[offsets[i] : offsets[i + 1]])
        for own in instances.keys() & body:
            instances[own].append((head, sorted(body - {own})))
    return program, list(instances.values())


def _union(sets: Iterable[Bits]) -> Bits:
    return reduce(or_, sets, 0)


def _common(sets: Iterable[Bits]) -> Bits:
    return reduce(and_, sets, ALL)


STATES = 200  # largest number of sampled states in which all actions are tried to find the touched variables


@dataclass(frozen=True, eq=False)
class Vicinity:
    """The locality of a game. A fact has the number of its bit in a state; actions are numbered over all roles.

    variables   int64[num_facts], the variable of each fact
    neighbours  bool[variables, variables], reflexive and symmetric
    touched     bool[actions, variables], the variables that each action touches
    everywhere  bool[variables], whether each variable is everywhere; see the module
    """

    variables: NDArray[np.int64]
    neighbours: NDArray[np.bool_]
    touched: NDArray[np.bool_]
    everywhere: NDArray[np.bool_]

    @classmethod
    def of(cls, game: Game) -> Vicinity:
        """Return the locality of a game; sample random matches and ground the rules for this.

        Raise GameloreError if the game is not compiled as a whole, or if its rules as written are too large to ground.
        """
        if game.circuit is None or game.is_bounded:
            raise _unfit(f"that is compiled as a whole, got {game.name}, which is not: {game.engine_reason}")
        facts = game.circuit.facts
        plies = random_plies(game)
        variables = variable_numbers(facts, seen_facts(game, plies))
        touched = _touched(game, variables, *_sampled(plies))
        everywhere = _everywhere(touched, list(map(len, game.circuit.actions)))
        variable_of = dict(zip(facts, variables.tolist(), strict=True))
        try:
            return cls(variables, neighbours(game.rulesheet, variable_of, ~everywhere), touched, everywhere)
        except GroundingError as error:
            raise _unfit(f"whose rules can be grounded as written, got {game.name}: {error}") from None

    def close_together(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return bool[n]: whether, in each sequence, every action is near the first action.

        sequences: int32[n, longest]; negative numbers are padding. Two actions are near if they touch the same variable
        or two neighbours, or if one of them touches only variables that are everywhere.
        """
        nowhere = np.asarray(~self._local.any(axis=1))
        close = np.ones(len(sequences), np.bool_)
        first = sequences[:, 0]
        for other in sequences.T[1:]:
            met = (self._reached[first] & self._local[other]).any(axis=1)
            close &= met | nowhere[first] | nowhere[other] | (other < 0)
        return close

    def around(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return bool[n, num_facts]: the facts near each sequence of actions.

        These are the facts of the variables that the actions touch, of their neighbours, and of the variables that are
        everywhere. sequences: int32[n, longest]; negative numbers are padding.
        """
        reached = np.repeat(self.everywhere[None], len(sequences), axis=0)
        for action in sequences.T:
            reached |= self._reached[action] & (action >= 0)[:, None]
        return np.asarray(reached[:, self.variables])

    @cached_property
    def _local(self) -> NDArray[np.bool_]:
        """bool[actions, variables]: the variables that each action touches, without those that are everywhere."""
        return self.touched & ~self.everywhere

    @cached_property
    def _reached(self) -> NDArray[np.bool_]:
        """bool[actions, variables]: the variables of `_local` and their neighbours."""
        return np.asarray(self._local.astype(np.float32) @ self.neighbours.astype(np.float32) > 0)


def _unfit(expected: str) -> GameloreError:
    return GameloreError(f"expected a game {expected}; do not use locality in this game")


def _sampled(plies: RandomPlies) -> tuple[States, NDArray[np.int32]]:
    """Return some different states of plies, and a joint move for each: uint64[n, words] and int32[n, roles]."""
    different, first = np.unique(plies.states, axis=0, return_index=True)
    some = np.linspace(0, len(different), min(STATES, len(different)), endpoint=False, dtype=np.int64)
    return different[some], plies.joint[first[some]]


def _touched(game: Game, variables: NDArray[np.int64], states: States, joint: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return bool[actions, variables]: whether an action touches a variable; symmetric actions are treated alike."""
    differs = _unusual(game, states, joint)
    group = symmetries(game)
    symmetric = np.zeros_like(differs)
    for facts, actions in zip(group.facts, group.actions, strict=True):
        symmetric[np.ix_(actions, facts)] |= differs
    members = variables[:, None] == np.arange(variables.max(initial=-1) + 1)
    return np.asarray(symmetric.astype(np.float32) @ members.astype(np.float32) > 0)


def _unusual(game: Game, states: States, joint: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return bool[actions, facts]: whether an action gives a fact another value than most actions of its role do."""
    assert game.circuit is not None
    num_actions, num_facts = game.circuit.num_actions, game.circuit.num_facts
    ends = np.cumsum(list(map(len, game.circuit.actions)))
    differs = np.zeros((num_actions, num_facts), np.bool_)
    for role, own in enumerate(np.split(np.arange(num_actions), ends[:-1])):
        for state, moves in zip(states, joint, strict=True):
            every = np.repeat(moves[None], len(own), axis=0)
            every[:, role] = own
            following = unpack_bits(game.next(np.repeat(state[None], len(own), axis=0), every), num_facts)
            differs[own] |= following != (2 * following.sum(axis=0) > len(own))
    return differs


def _everywhere(touched: NDArray[np.bool_], num_actions: Sequence[int]) -> NDArray[np.bool_]:
    """Return bool[variables]: whether no action touches a variable, or most actions of one role touch it."""
    by_role = np.split(touched, np.cumsum(num_actions)[:-1])
    by_most = [part.sum(axis=0) > MOST * len(part) for part in by_role]
    return np.asarray(~touched.any(axis=0) | np.any(by_most, axis=0))
