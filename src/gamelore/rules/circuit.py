"""Circuits of gates: their parts, how they are built, and their plain evaluation.

A circuit is an and-inverter graph. Node 0 is the constant false; nodes 1..num_facts are the facts of a state, the next
num_actions the actions of all roles (role by role); all later nodes are AND gates of two literals or *loop variables*.
A *literal* is `2 * node + negated`, so literal 0 is false and 1 is true. A gate reads only nodes before it.

A `Loop` is recursion within a state: its variables start false and are set to its results, again and again, until
nothing changes (the least fixpoint).

Contract: the circuit is exact for states in which every role plays exactly one of its actions.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .names import GroundTerm

FALSE, TRUE = 0, 1
BEYOND = 1 << 62  # larger than any literal

Node: TypeAlias = int
GateLiteral: TypeAlias = int


@dataclass(frozen=True, slots=True)
class Loop:
    """Variables (nodes) and, in the same order, the literals that they become in each sweep."""

    variables: tuple[Node, ...]
    results: tuple[GateLiteral, ...]


@dataclass(slots=True)
class Circuit:
    """See the module. `left[i]`, `right[i]` are the literals of node i, -1 for inputs and loop variables.

    `outputs` maps each group to its literals: "legal" one for each action, "terminal" one, "goal" one for each
    (role, value), "next" one for each fact. Of the facts in each list of `unique` no two hold in a state.
    """

    facts: list[GroundTerm]
    actions: list[list[GroundTerm]]
    goals: list[list[int]]
    initial: list[bool]
    left: array[int] = field(default_factory=lambda: array("i"))
    right: array[int] = field(default_factory=lambda: array("i"))
    loops: list[Loop] = field(default_factory=list)
    outputs: dict[str, list[GateLiteral]] = field(default_factory=dict)
    unique: list[list[GroundTerm]] = field(default_factory=list)

    @property
    def num_facts(self) -> int:
        return len(self.facts)

    @property
    def num_actions(self) -> int:
        return sum(map(len, self.actions))

    @property
    def num_inputs(self) -> int:
        return self.num_facts + self.num_actions

    @property
    def num_gates(self) -> int:
        return int(np.count_nonzero(np.array(self.left) >= 0))


class Builder:
    """Makes AND gates, sharing equal ones and simplifying as it goes."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.left, self.right = circuit.left, circuit.right
        self.shared: dict[int, GateLiteral] = {}
        for _ in range(circuit.num_inputs + 1):
            self.new_node()
        self.first_action = 2 * (circuit.num_facts + 1)
        self.roles = _sets_in_a_row([len(actions) for actions in circuit.actions])
        self.known_actions: dict[GateLiteral, int] = {}  # literals that say that one of these is played

    def new_node(self, left: int = -1, right: int = -1) -> Node:
        self.left.append(left)
        self.right.append(right)
        return len(self.left) - 1

    def conjunction(self, a: GateLiteral, b: GateLiteral) -> GateLiteral:
        if a > b:
            a, b = b, a
        if a <= TRUE:
            return b if a else FALSE
        if a ^ b <= 1:
            return a if a == b else FALSE
        key = a << 32 | b
        result = self.shared.get(key)
        if result is None:
            result = self._absorbed(a, b)
            if result is None:
                result = self._absorbed(b, a)
            if result is None:
                result = 2 * self.new_node(a, b)
            self.shared[key] = result
        return result

    def _absorbed(self, a: GateLiteral, b: GateLiteral) -> GateLiteral | None:
        """a AND b where b is a gate that already says something about a."""
        left, right = self.left[b >> 1], self.right[b >> 1]
        if left < 0:
            return None
        if not b & 1:
            if a in (left, right):
                return b
            return FALSE if a ^ 1 in (left, right) else None
        if a ^ 1 in (left, right):
            return a
        if a in (left, right):
            return self.conjunction(a, (right if a == left else left) ^ 1)
        return None

    def disjunction(self, a: GateLiteral, b: GateLiteral) -> GateLiteral:
        return self.conjunction(a ^ 1, b ^ 1) ^ 1

    def all_of(self, literals: Iterable[GateLiteral]) -> GateLiteral:
        """AND of any number, as a tree that splits them where their highest bits differ.

        Two ANDs of many literals then share the gates of each part of the tree in which they agree.
        """
        ordered = sorted(set(literals))
        if len(ordered) <= 2:
            return self.conjunction(ordered[0], ordered[-1]) if ordered else TRUE
        conjunction = self.conjunction
        values, differences = [ordered[0]], [BEYOND]
        for i in range(1, len(ordered)):
            value = ordered[i]
            difference = value ^ ordered[i - 1]
            while differences[-1] < difference:
                differences.pop()
                last = values.pop()
                values[-1] = conjunction(values[-1], last)
            values.append(value)
            differences.append(difference)
        result = values.pop()
        while values:
            result = conjunction(values.pop(), result)
        return result

    def any_of(self, literals: Iterable[GateLiteral]) -> GateLiteral:
        """OR of any number. More than half of a role's actions become NOT of the rest: it plays exactly one of them.

        Sets of actions, here and in `known_actions`, have bit i for action i of the circuit.
        """
        played = 0
        others: list[GateLiteral] = []
        saying: list[GateLiteral] = []
        for literal in sorted(set(literals)):
            actions = self._actions(literal)
            played |= actions
            (saying if actions else others).append(literal)
        if any(2 * (played & role).bit_count() > role.bit_count() for role in self.roles):
            saying = [self._any_action(played & role, role) for role in self.roles]
        result = self.all_of([literal ^ 1 for literal in (*others, *saying)]) ^ 1
        if not others:
            self.known_actions[result] = played
        return result

    def _actions(self, literal: GateLiteral) -> int:
        """The actions of which a literal says that one of them is played; none if it says something else."""
        action = (literal - self.first_action) >> 1
        if 0 <= action < self.circuit.num_actions and not literal & 1:
            return 1 << action
        return self.known_actions.get(literal, 0)

    def _any_action(self, actions: int, role: int) -> GateLiteral:
        """That one of these actions of a role is played."""
        if 2 * actions.bit_count() > role.bit_count():
            return self._any_action(role & ~actions, role) ^ 1
        return self.all_of([self.first_action + 2 * action ^ 1 for action in _members(actions)]) ^ 1

    def sum_of_products(self, products: Iterable[Iterable[GateLiteral]]) -> GateLiteral:
        """OR of ANDs."""
        sums = [self.all_of(product) for product in products]
        return self.any_of(sums) if len(sums) != 1 else sums[0]


def _sets_in_a_row(sizes: Iterable[int]) -> list[int]:
    """Sets of so many numbers, as bits, each beginning where the one before ends."""
    sets, first = [], 0
    for size in sizes:
        sets.append((1 << size) - 1 << first)
        first += size
    return sets


def _members(numbers: int) -> Iterator[int]:
    """The numbers of the bits of a set."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


def needed_nodes(circuit: Circuit, literals: Sequence[GateLiteral]) -> NDArray[np.bool_]:
    """bool[nodes]: what the literals depend on; all of a loop, where they depend on one of its variables."""
    operands = np.array([circuit.left, circuit.right], np.int64) >> 1
    loop_of = {node: loop for loop in circuit.loops for node in loop.variables}
    is_variable = np.zeros(len(circuit.left), np.bool_)
    is_variable[list(loop_of)] = True
    needed = np.zeros(len(circuit.left), np.bool_)
    found = np.unique(np.asarray(literals, np.int64) >> 1)
    while len(found):
        needed[found] = True
        read = operands[:, found].ravel()
        loops = {loop.variables: loop for loop in map(loop_of.__getitem__, found[is_variable[found]].tolist())}
        inside = [node for loop in loops.values() for node in (*loop.variables, *(a >> 1 for a in loop.results))]
        read = np.concatenate([read[read >= 0], np.array(inside, np.int64)])
        found = np.unique(read[~needed[read]])
    return needed


def drop_dead(circuit: Circuit) -> None:
    """Drops the gates and loops that no output depends on."""
    kept = needed_nodes(circuit, [literal for literals in circuit.outputs.values() for literal in literals])
    kept[: circuit.num_inputs + 1] = True
    number = np.cumsum(kept) - 1

    def renumbered(literals: Iterable[GateLiteral]) -> list[GateLiteral]:
        old = np.array(list(literals), np.int64)
        new: list[GateLiteral] = (2 * number[old >> 1] + (old & 1)).tolist()
        return new

    for side in (circuit.left, circuit.right):
        old = np.array(side, np.int64)[kept]
        side[:] = array("i", np.where(old < 0, -1, 2 * number[old >> 1] + (old & 1)).astype(np.intc).tobytes())
    circuit.loops = [
        Loop(tuple(number[list(loop.variables)].tolist()), tuple(renumbered(loop.results)))
        for loop in circuit.loops
        if kept[loop.variables[0]]
    ]
    circuit.outputs = {name: renumbered(literals) for name, literals in circuit.outputs.items()}


def evaluate(circuit: Circuit, inputs: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Plain evaluation, gate by gate: inputs bool[batch, facts + actions] to each output group, bool[batch, outputs].

    Loops are swept over all gates until nothing changes; slow and simple, the measure of the compiled code.
    """
    values = np.zeros((len(circuit.left), len(inputs)), np.bool_)
    values[1 : 1 + circuit.num_inputs] = inputs.T

    def value(literal: GateLiteral) -> NDArray[np.bool_]:
        plane: NDArray[np.bool_] = values[literal >> 1] ^ bool(literal & 1)
        return plane

    def sweep() -> None:
        for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
            if left >= 0:
                values[node] = value(left) & value(right)

    sweep()
    for loop in circuit.loops:  # later loops may read earlier ones, which are stable by then
        changed = True
        while changed:
            results = [value(literal).copy() for literal in loop.results]
            changed = any((values[node] != result).any() for node, result in zip(loop.variables, results, strict=True))
            for node, result in zip(loop.variables, results, strict=True):
                values[node] = result
            sweep()
    return {
        group: np.array([value(literal) for literal in literals], np.bool_).reshape(-1, len(inputs)).T
        for group, literals in circuit.outputs.items()
    }
