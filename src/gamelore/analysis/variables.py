"""Variables of a game, and how close they are: which of them the rules need together.

A *variable* is a set of facts that differ in one argument and exclude each other: at most one of them held in each
sampled state. An example is the contents of a cell.

Two variables are *close* if the game needs both at once, for a line, a move or the end of the match. The circuit says
so. To make a literal of the circuit true, all variables of one of several sets are needed: a gate needs a set of each
of its two operands together, and an alternative, which is a negated gate, needs the sets of one or the other. So the
outputs need the lines and the moves of which the rules speak, although gates share and factor them.

The negation of a line needs one of its cells, which says nothing about the others. Therefore a literal that rests on
negated facts only needs no more than what all of its alternatives have in common. The same holds for a literal with too
many alternatives, such as "any line"; then each of its parts counts for itself.

Unlike `locality.Vicinity.neighbours`, this takes a tenth of a second, and some tenths in large games.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..game.engines import States, random_moves, unpack_bits

if TYPE_CHECKING:
    from ..circuit.aig import Circuit, GateLiteral
    from ..game.game import Game
    from ..ground.clingo import GroundTerm

MATCHES, PLIES = 64, 100  # of the sample that shows which facts exclude each other
_MOST_CHANGES = 0.75  # share of the plies in which a variable changes, above which it is no place, but a clock
_MOST_WAYS = 16  # alternatives of a literal that are told apart
_LARGEST = 12  # variables of a set; a larger one says little about each two of them

Bits: TypeAlias = int
"""A set of variables, or of other numbers, as an integer: bit i is set if i is a member."""
_Ways: TypeAlias = frozenset[Bits]
"""The sets of variables that can make a literal true."""
_NOTHING: _Ways = frozenset([0])


class RandomPlies(NamedTuple):
    """Plies of random matches.

    states     uint64[n, words], positions in which all roles have legal moves
    joint      int32[n, roles], a random joint move in each of them
    following  uint64[n, words], the positions after these moves
    """

    states: States
    joint: NDArray[np.int32]
    following: States


def random_plies(game: Game) -> RandomPlies:
    """Return the plies of MATCHES random matches, which are always the same; no more than PLIES of each."""
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], MATCHES, axis=0)
    plies = []
    for _ in range(PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        goes_on = counts.min(axis=1) > 0
        states, starts, counts = states[goes_on], starts[goes_on], counts[goes_on]
        joint = legal.actions[random_moves(starts, counts, rng)]
        plies.append((states, joint, game.next(states, joint)))
        states = plies[-1][-1]
    return RandomPlies(*map(np.concatenate, zip(*plies, strict=True)))


def seen_facts(game: Game, plies: RandomPlies) -> NDArray[np.uint8]:
    """Return uint8[states, facts]: whether each fact held in each different state of some plies, or the first one."""
    assert game.circuit is not None
    seen = np.unique(np.concatenate([game.initial[None], plies.states, plies.following]), axis=0)
    return unpack_bits(seen, len(game.circuit.facts))


def variable_numbers(facts: Sequence[GroundTerm], held: NDArray[np.uint8]) -> NDArray[np.int64]:
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


def _groups(facts: Sequence[GroundTerm]) -> Iterator[list[int]]:
    """Yield groups of facts, as numbers, that are equal except in one argument; begin with the last argument."""
    for place in range(1, 1 + max((len(arguments) for _, arguments in facts), default=0)):
        groups: dict[object, list[int]] = {}
        for number, (name, arguments) in enumerate(facts):
            if len(arguments) >= place:
                before, behind = arguments[:-place], arguments[len(arguments) - place + 1 :]
                groups.setdefault((name, before, behind), []).append(number)
        yield from groups.values()


@dataclass(frozen=True, eq=False)
class Variables:
    """The variables of a game that has a circuit.

    numbers    int64[facts], the variable of each fact
    settled    bool[variables], whether exactly one fact of the variable held in each sampled state
    closeness  float64[variables, variables], see `closeness`; 0 for variables that changed in no sampled ply, or in
               most of them, such as the fact that says whose turn it is
    """

    numbers: NDArray[np.int64]
    settled: NDArray[np.bool_]
    closeness: NDArray[np.float64]

    @classmethod
    def of(cls, game: Game) -> Variables:
        """Return the variables of a game that has a circuit; sample random matches for this."""
        assert game.circuit is not None
        plies = random_plies(game)
        held = seen_facts(game, plies)
        numbers = variable_numbers(game.circuit.facts, held)
        changed = _by_variable(numbers, unpack_bits(plies.states ^ plies.following, len(numbers))) > 0
        num_changes, most = changed.sum(axis=0), _MOST_CHANGES * len(changed)
        settled = (_by_variable(numbers, held) == 1).all(axis=0)
        return cls(numbers, settled, closeness(game.circuit, numbers, (num_changes > 0) & (num_changes <= most)))


def _by_variable(numbers: NDArray[np.int64], held: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of facts of each variable that hold, int64[states, variables]; held: uint8[states, facts]."""
    if not len(numbers):
        return np.zeros((len(held), 0), np.int64)
    order = np.argsort(numbers, kind="stable")
    firsts = np.searchsorted(numbers[order], np.arange(numbers.max() + 1))
    return np.add.reduceat(held[:, order], firsts, axis=1, dtype=np.int64)


def closeness(circuit: Circuit, numbers: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how close each two variables are, float64[variables, variables].

    Each different set of n variables that the outputs of the circuit need adds 1 / (n - 1) to the closeness of each two
    of them. So the cells of a short line are closer than those of a long one, and cells in the middle of many lines
    closer than those that share a single line. The matrix is symmetric, and 0 for a variable and itself.

    Args:
        circuit: circuit of a game
        numbers: int64[facts], the variable of each fact
        chosen: bool[variables]; the others are close to none
    """
    given = [1 << number if chosen[number] else 0 for number in numbers.tolist()]
    close = np.zeros((len(chosen), len(chosen)))
    for needed in sorted(_Needs(circuit, given).sets()):
        together = list(members(needed))
        close[np.ix_(together, together)] += 1 / (len(together) - 1)
    np.fill_diagonal(close, 0.0)
    return close


def members(bits: Bits) -> Iterator[int]:
    """Yield the members of a set, ascending."""
    text = f"{bits:b}"[::-1]  # in which they are found faster than in very large integers
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)


class _Needs:
    """The variables that the literals of a circuit need, see the module.

    Args:
        circuit: circuit of a game
        given: the variable of each fact, as a set; 0 if it does not count
    """

    def __init__(self, circuit: Circuit, given: Sequence[Bits]) -> None:
        first = 1 + circuit.num_facts + circuit.num_actions
        operands = zip(circuit.left.tolist()[first:], circuit.right.tolist()[first:], strict=True)
        # (literal, its operands), where a negated literal is the OR of the negated operands; loop variables have none
        self._gates = [
            (2 * gate + negated, left ^ negated, right ^ negated)
            for gate, (left, right) in enumerate(operands, start=first)
            if left >= 0
            for negated in (0, 1)
        ]
        results = (loop.results for loop in circuit.loops)
        self._outputs = [literal for group in (*circuit.outputs.values(), *results) for literal in group]
        num_literals = 2 * len(circuit.left)
        self._ways: list[_Ways] = [_NOTHING] * num_literals
        self._is_positive = bytearray(num_literals)  # whether it rests on facts that hold
        self._is_cut = bytearray(num_literals)  # whether its alternatives, or those below, are not told apart
        for fact, variable in enumerate(given):
            self._ways[2 * fact + 2] = self._ways[2 * fact + 3] = frozenset([variable])
            self._is_positive[2 * fact + 2] = 1
        self._build()

    def _below(self, goes_on: bytearray) -> bytearray:
        """Return which literals the outputs rest on, by way of literals that go on."""
        reached = bytearray(len(self._ways))
        for literal in self._outputs:
            reached[literal] = 1
        for literal, left, right in reversed(self._gates):
            if reached[literal] and goes_on[literal]:
                reached[left] = reached[right] = 1
        return reached

    def _build(self) -> None:
        """Find the ways to make each literal true."""
        is_needed = self._below(bytearray(b"\x01" * len(self._ways)))
        all_ways, positive, is_cut = self._ways, self._is_positive, self._is_cut
        for literal, left, right in self._gates:
            if not is_needed[literal]:
                continue
            positive[literal] = positive[left] | positive[right]
            is_cut[literal] = is_cut[left] | is_cut[right]
            ways, other = all_ways[left], all_ways[right]
            if ways is _NOTHING and other is _NOTHING:
                continue
            if not literal & 1:
                all_ways[literal] = self._both(literal, ways, other)
            elif positive[literal]:
                all_ways[literal] = self._either(literal, ways | other)
            else:
                all_ways[literal], is_cut[literal] = _common(ways | other), 0

    def _both(self, literal: GateLiteral, ways: _Ways, other: _Ways) -> _Ways:
        """Return the ways in which two operands are true together."""
        if other is _NOTHING or ways is _NOTHING:
            return ways if other is _NOTHING else other
        if len(ways) * len(other) > _MOST_WAYS:
            self._is_cut[literal] = 1
            ways, other = sorted((ways, other), key=len)
            other = _common(other)
        return frozenset(own | their for own in ways for their in other)

    def _either(self, literal: GateLiteral, ways: _Ways) -> _Ways:
        """Return the ways in which one of two operands is true, where these are all ways of both."""
        if len(ways) <= _MOST_WAYS:
            return ways
        self._is_cut[literal] = 1
        return _common(ways)

    def sets(self) -> set[Bits]:
        """Return the sets of several variables that the outputs need, or, where ways are cut, the literals below."""
        reached = self._below(self._is_cut)  # only where ways are cut, the literals below count for themselves
        ways: Iterable[_Ways] = (own for own, is_reached in zip(self._ways, reached, strict=True) if is_reached)
        return {needed for own in ways for needed in own if 1 < needed.bit_count() <= _LARGEST}


def _common(ways: _Ways) -> _Ways:
    """Return what all ways have in common, as the only way."""
    common = reduce(and_, ways)
    return frozenset([common]) if common else _NOTHING
