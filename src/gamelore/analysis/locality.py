"""Locality of facts and moves (Lock & Epstein 2004, section 3): variables, their neighbours, and touched variables.

A *variable* is a set of facts that differ in one argument and exclude each other: at most one of them held in each
sampled state. An example is the contents of a cell. An action *touches* a variable if in some sampled state it changes
a fact of the variable, while most actions of its role do not change the fact in this way. For this comparison, illegal
actions count, too.

Two variables are *neighbours* if a rule of the sheet requires both of them, directly or by other relations. For
example, the rule for a line of three cells makes these cells neighbours. A rule is left out if it connects most
variables with most other variables; an example is a rule that counts all pieces on the board.

A variable is *everywhere* if no action touches it, or if most actions of a role touch it. An example is the fact that
says whose turn it is. Such a variable counts as near to every action, but it does not make two actions near.
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

MOST = 0.75  # share of variables, or of a role's actions, that counts as "most" in the text above
AFFORDABLE = Limits(seconds=10.0, literals=8_000_000)  # limits for grounding the rules
ALL = -1  # the set of all variables: an integer in which every bit is set

Bits: TypeAlias = int
"""A set of variables as an integer: bit i is set if variable i is a member."""
Instance: TypeAlias = tuple[int, list[int]]
"""A ground rule: its head atom, and the literals of its body. The literal for a negated atom is the negative number."""


def closeness(sheet: Rulesheet, variables: Mapping[GroundTerm, int], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how close each two variables are, float64[variables, variables]: above 0 if they are neighbours.

    A set of n variables that an instance of a rule requires adds 1 / (n - 1) to the closeness of each two of them; the
    instances of a rule that require the same set count once. So the cells of a short line are closer than those of a
    long one, and cells in the middle of many lines closer than those that share a single line. The matrix is symmetric,
    and 0 for a variable and itself.

    Args:
        sheet: the rules
        variables: the variable of each fact, numbered from 0
        chosen: bool[variables]; the other variables have no neighbours

    Raises:
        GroundingError: the rules as written are too large to ground.
    """
    program, rules = _by_rule(sheet)
    needs = _needs(rules, {atom: 1 << variables[fact] for fact, atom in program.true.items() if fact in variables})
    among = sum(1 << variable for variable in np.flatnonzero(chosen).tolist())
    close = np.zeros((len(chosen), len(chosen)))
    for instances in rules:
        needed = {_union(needs.get(literal, 0) for literal in body) for _, body in instances}
        of_rule = np.zeros_like(close)
        for part in {part & among for part in needed if part != ALL}:
            if part.bit_count() > 1:
                together = list(members(part))
                of_rule[np.ix_(together, together)] += 1 / (len(together) - 1)
        np.fill_diagonal(of_rule, 0.0)
        connected = np.count_nonzero(of_rule.any(axis=1))
        if np.count_nonzero(of_rule) <= MOST * connected * (among.bit_count() - 1):
            close += of_rule
    return close


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


def members(bits: Bits) -> Iterator[int]:
    """Yield the numbers of the bits that are set, ascending: the variables in a set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


MATCHES, PLIES = 64, 100  # size of the sample that shows which facts exclude each other
STATES = 200  # largest number of sampled states in which all actions are tried to find the touched variables


@dataclass(frozen=True, eq=False)
class Vicinity:
    """The locality of a game. A fact has the number of its bit in a state; actions are numbered over all roles.

    variables   int64[num_facts], the variable of each fact
    settled     bool[variables], whether exactly one fact of the variable held in each sampled state
    closeness   float64[variables, variables], see `closeness`
    touched     bool[actions, variables], the variables that each action touches
    everywhere  bool[variables], whether each variable is everywhere; see the module
    """

    variables: NDArray[np.int64]
    settled: NDArray[np.bool_]
    closeness: NDArray[np.float64]
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
        seen, states, joint = _sampled(game)
        held = unpack_bits(seen, len(facts))
        variables = _variables(facts, held)
        touched = _touched(game, variables, states, joint)
        everywhere = _everywhere(touched, list(map(len, game.circuit.actions)))
        variable_of = dict(zip(facts, variables.tolist(), strict=True))
        try:
            close = closeness(game.rulesheet, variable_of, ~everywhere)
        except GroundingError as error:
            raise _unfit(f"whose rules can be grounded as written, got {game.name}: {error}") from None
        return cls(variables, _settled(variables, held), close, touched, everywhere)

    @cached_property
    def neighbours(self) -> NDArray[np.bool_]:
        """bool[variables, variables], whether two variables are neighbours; reflexive and symmetric."""
        return np.asarray((self.closeness > 0) | np.eye(len(self.closeness), dtype=np.bool_))

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


def _sampled(game: Game) -> tuple[States, States, NDArray[np.int32]]:
    """Return sampled states, some of them in which all roles have legal moves, and a joint move for each of the latter.

    The arrays are uint64[n, words], uint64[m, words] and int32[m, roles].
    """
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], MATCHES, axis=0)
    seen, going, played = [states], [], []
    for _ in range(PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        goes_on = counts.min(axis=1) > 0
        states, starts, counts = states[goes_on], starts[goes_on], counts[goes_on]
        joint = legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)]
        going.append(states)
        played.append(joint)
        states = game.next(states, joint)
        seen.append(states)
    different, first = np.unique(np.concatenate(going), axis=0, return_index=True)
    some = np.linspace(0, len(different), min(STATES, len(different)), endpoint=False, dtype=np.int64)
    return np.unique(np.concatenate(seen), axis=0), different[some], np.concatenate(played)[first[some]]


def _variables(facts: Sequence[GroundTerm], held: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the variable of each fact, int64[facts].

    The facts of a variable differ in only one argument. If there are several such arguments, the last one counts. held:
    uint8[states, facts], whether each fact held in each sampled state.
    """
    variables = np.full(len(facts), -1)
    number = 0
    for group in _groups(facts):
        if (variables[group] < 0).all() and held[:, group].sum(axis=1).max(initial=0) <= 1:
            variables[group] = number
            number += 1
    alone = variables < 0
    variables[alone] = number + np.arange(np.count_nonzero(alone))
    return variables


def _settled(variables: NDArray[np.int64], held: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return bool[variables], whether exactly one fact of each variable held in each state of uint8[states, facts]."""
    numbers = range(int(variables.max(initial=-1)) + 1)
    return np.array([bool((held[:, variables == number].sum(axis=1) == 1).all()) for number in numbers], np.bool_)


def _groups(facts: Sequence[GroundTerm]) -> Iterator[list[int]]:
    """Yield groups of facts, as numbers, that are equal except in one argument; begin with the last argument."""
    for place in range(1, 1 + max((len(arguments) for _, arguments in facts), default=0)):
        groups: dict[object, list[int]] = {}
        for number, (name, arguments) in enumerate(facts):
            if len(arguments) >= place:
                before, behind = arguments[:-place], arguments[len(arguments) - place + 1 :]
                groups.setdefault((name, before, behind), []).append(number)
        yield from groups.values()


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
