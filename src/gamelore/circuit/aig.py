"""And-inverter graphs: build, simplify, evaluate, schedule and widen circuits of gates; find cycles of graphs.

Node 0 of a circuit is the constant false. Nodes 1 to num_facts are the facts of a state. The next num_actions nodes are
the actions of all roles, role by role. All later nodes are AND gates of two literals, or *loop variables*. A *literal*
is `2 * node + negated`, so literal 0 is false and literal 1 is true. A gate reads only nodes before it.

A `Loop` is a recursion within a state. Its variables start with the value false. They are set to the results of the
loop again and again until no variable changes, which gives the least fixpoint.

Contract: the outputs are correct if every role plays exactly one of its actions.

`schedule` orders the gates for evaluation. Gates keep the order in which they were built, so most gates are near the
gates that read them. Circuits with loops are evaluated in phases. Phase 2 k + 1 is loop k, and phase 2 k + 2 contains
the gates that depend on loop k but not on a later loop. `wide_gates` joins gates that have only one reader into wide
gates, the AND of many literals, so that fewer intermediate results are stored.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..gdl.limits import check
from ..ground.clingo import GroundTerm

FALSE, TRUE = 0, 1
BETWEEN_CHECKS = 1024  # nodes between two looks at the budget of loading
BEYOND = 1 << 62  # a number larger than any literal or index
WIDEST = 24  # largest number of operands of one wide gate; wider gates are cut into a chain of pieces
PIECE = 16  # number of operands of each piece; a piece is evaluated directly after its last operand

Node: TypeAlias = int
GateLiteral: TypeAlias = int
Ints: TypeAlias = NDArray[np.int64]


def components_below(roots: Iterable[int], dependencies: Callable[[int], Iterable[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of all nodes below the roots, dependencies first (Tarjan 1972).

    Unlike `gdl.clauses.components`, this visits only what the roots need, and keeps the depth-first order of the roots:
    gates are built in this order, so that most gates are near the gates that read them.
    """
    # For each node on the stack, the smallest index that it reaches so far. For each node that left the stack, BEYOND.
    low: dict[int, int] = {}
    stack: list[int] = []
    for root in roots:
        if root in low:
            continue
        path = [(root, len(low), len(stack), iter(dependencies(root)))]
        low[root] = len(low)
        stack.append(root)
        while path:
            if not len(low) % BETWEEN_CHECKS:
                check()
            node, index, height, successors = path[-1]
            for successor in successors:
                reached = low.get(successor)
                if reached is None:
                    path.append((successor, len(low), len(stack), iter(dependencies(successor))))
                    low[successor] = len(low)
                    stack.append(successor)
                    break
                if reached < low[node]:
                    low[node] = reached
            else:
                path.pop()
                if low[node] == index:
                    component = stack[height:][::-1]
                    del stack[height:]
                    low.update(dict.fromkeys(component, BEYOND))
                    yield component
                else:  # the first node of a path always closes a component
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[node])


def cut(component: Sequence[int], dependencies: Callable[[int], Iterable[int]]) -> tuple[list[int], list[int]]:
    """Return nodes that cut all cycles of a component, and all nodes of the component in depth-first postorder.

    The cutting nodes are the targets of back edges. In the postorder, each node comes after its dependencies, except
    for dependencies that are cutting nodes.
    """
    members = set(component)
    targets: set[int] = set()
    done: dict[int, bool] = {component[0]: False}
    order: list[int] = []
    path = [(component[0], iter(dependencies(component[0])))]
    while path:
        node, successors = path[-1]
        for successor in successors:
            if successor not in members:
                continue
            if successor not in done:
                done[successor] = False
                path.append((successor, iter(dependencies(successor))))
                break
            if not done[successor]:
                targets.add(successor)
        else:
            done[node] = True
            order.append(node)
            path.pop()
    return [node for node in order if node in targets], order


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of a circuit: in each sweep, the node `variables[i]` is set to the value of the literal `results[i]`."""

    variables: tuple[Node, ...]
    results: tuple[GateLiteral, ...]


@dataclass(slots=True)
class Circuit:
    """A circuit as described in the module.

    `left[i]` and `right[i]` are the two literals of gate i. They are -1 for the constant, for inputs and for loop
    variables. `outputs` maps the name of each group to its literals: "legal" has one literal for each action,
    "terminal" has one literal, "goal" has one for each (role, value), and "next" has one for each fact. No two facts of
    a list in `unique` hold in the same state.
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
    """Builder of simplified AND gates. Equal gates are built only once."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.left, self.right = circuit.left, circuit.right
        self.shared: dict[int, GateLiteral] = {}
        for _ in range(circuit.num_inputs + 1):
            self.new_node()
        self.first_action = 2 * (circuit.num_facts + 1)
        sizes = list(map(len, circuit.actions))
        self.ends = list(accumulate(sizes))  # of each role's actions
        self.roles = [(1 << size) - 1 << end - size for size, end in zip(sizes, self.ends, strict=True)]
        # literal -> set of actions: the literal is true if and only if one of these actions is played
        self.known_actions: dict[GateLiteral, int] = {}

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
        """Return a AND b if a or its negation is an operand of gate b; return None otherwise."""
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
        """Return the AND of any number of literals.

        The gates form a tree that splits the sorted literals by their highest differing bits. So two ANDs share the
        gates of each subtree in which they have the same literals.
        """
        ordered = sorted(set(literals))
        if len(ordered) <= 2:
            return self.conjunction(ordered[0], ordered[-1]) if ordered else TRUE
        conjunction = self.conjunction
        values, differences = [ordered[0]], [BEYOND]
        for before, value in pairwise(ordered):
            difference = value ^ before
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
        """Return the OR of any number of literals.

        A role plays exactly one action. So if the literals contain more than half of the actions of a role, the result
        is computed as NOT of its other actions. A set of actions, here and in `known_actions`, is an integer in which
        bit i stands for action i of the circuit.
        """
        played = 0
        others: list[GateLiteral] = []
        saying: list[GateLiteral] = []
        for literal in sorted(set(literals)):
            actions = self._actions(literal)
            played |= actions
            (saying if actions else others).append(literal)
        roles = self._roles_of(played)
        if any(2 * (played & role).bit_count() > role.bit_count() for role in roles):
            saying = [self._any_action(played & role, role) for role in roles]
        result = self.all_of([literal ^ 1 for literal in (*others, *saying)]) ^ 1
        if not others:
            self.known_actions[result] = played
        return result

    def _actions(self, literal: GateLiteral) -> int:
        """Return the set of actions of a literal that means "one of these actions is played"; 0 for other literals."""
        action = (literal - self.first_action) >> 1
        if 0 <= action < self.circuit.num_actions and not literal & 1:
            return 1 << action
        return self.known_actions.get(literal, 0)

    def _roles_of(self, actions: int) -> list[int]:
        """Return the sets of all actions of those roles that have one of these actions."""
        roles = []
        while actions:
            role = self.roles[bisect_right(self.ends, (actions & -actions).bit_length() - 1)]
            roles.append(role)
            actions &= ~role
        return roles

    def _any_action(self, actions: int, role: int) -> GateLiteral:
        """Return the literal that is true if the role plays one of these actions."""
        if 2 * actions.bit_count() > role.bit_count():
            return self._any_action(role & ~actions, role) ^ 1
        members = (action for action, bit in enumerate(f"{actions:b}"[::-1]) if bit == "1")
        return self.all_of([self.first_action + 2 * action ^ 1 for action in members]) ^ 1

    def sum_of_products(self, products: Iterable[Iterable[GateLiteral]]) -> GateLiteral:
        """Return the OR of several products; each product is the AND of its literals."""
        sums = [self.all_of(product) for product in products]
        return self.any_of(sums) if len(sums) != 1 else sums[0]

    def compose(
        self, circuit: Circuit, values: dict[Node, GateLiteral], nodes: Iterable[Node] | None = None
    ) -> Callable[[GateLiteral], GateLiteral]:
        """Build gates of another circuit over other inputs; return the function that maps its literals to the new ones.

        Args:
            circuit: the other circuit
            values: literals that stand for some of its nodes; the literals of all gates that read only these are added
            nodes: its nodes to build, in ascending order; all if they are not given
        """
        values.setdefault(0, FALSE)

        def value(literal: GateLiteral) -> GateLiteral:
            return values[literal >> 1] ^ literal & 1

        for node in range(len(circuit.left)) if nodes is None else nodes:
            left, right = circuit.left[node], circuit.right[node]
            if left >= 0 and left >> 1 in values and right >> 1 in values:
                values[node] = self.conjunction(value(left), value(right))
        return value


def needed_nodes(circuit: Circuit, literals: Sequence[GateLiteral]) -> NDArray[np.bool_]:
    """Return bool[nodes]: whether the literals depend on each node; a loop that is needed is needed as a whole."""
    operands = np.array([circuit.left, circuit.right], np.int64) >> 1
    loop_of = np.full(len(circuit.left), -1)
    for number, loop in enumerate(circuit.loops):
        loop_of[list(loop.variables)] = number
    needed = np.zeros(len(circuit.left), np.bool_)
    frontier = np.unique(np.asarray(literals, np.int64) >> 1)
    while len(frontier):
        needed[frontier] = True
        read = operands[:, frontier].ravel()
        loops = [circuit.loops[number] for number in np.unique(loop_of[frontier]).tolist() if number >= 0]
        inside = [node for loop in loops for node in (*loop.variables, *(literal >> 1 for literal in loop.results))]
        read = np.concatenate([read[read >= 0], np.array(inside, np.int64)])
        frontier = np.unique(read[~needed[read]])
    return needed


def drop_dead(circuit: Circuit) -> None:
    """Remove the gates and loops on which no output depends."""
    kept = needed_nodes(circuit, [literal for literals in circuit.outputs.values() for literal in literals])
    kept[: circuit.num_inputs + 1] = True
    number = np.cumsum(kept) - 1

    def renumbered(literals: Sequence[GateLiteral]) -> Ints:
        old = np.array(literals, np.int64)
        return np.where(old < 0, -1, 2 * number[old >> 1] + (old & 1))

    for side in (circuit.left, circuit.right):
        side[:] = array("i", renumbered(side)[kept].astype(np.intc).tobytes())
    circuit.loops = [
        Loop(tuple(number[list(loop.variables)].tolist()), tuple(renumbered(loop.results).tolist()))
        for loop in circuit.loops
        if kept[loop.variables[0]]
    ]
    circuit.outputs = {name: renumbered(literals).tolist() for name, literals in circuit.outputs.items()}


def evaluate(circuit: Circuit, inputs: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Evaluate a circuit gate by gate and return the output groups, bool[batch, outputs] each.

    inputs: bool[batch, facts + actions]. Each loop evaluates all gates again until no variable changes. This evaluation
    is slow and simple; tests compare compiled code with it.
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
    for loop in circuit.loops:  # a loop may read earlier loops, which are already stable
        changed = True
        while changed:
            results = np.array([value(literal) for literal in loop.results])
            changed = bool((values[list(loop.variables)] != results).any())
            values[list(loop.variables)] = results
            sweep()
    return {
        group: np.array([value(literal) for literal in literals], np.bool_).reshape(-1, len(inputs)).T
        for group, literals in circuit.outputs.items()
    }


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """A step of a schedule: gates in order of evaluation, int64[gates], and perhaps a loop.

    If there is a loop, the gates are evaluated again until its variables do not change.
    """

    gates: Ints
    loop: Loop | None = None


def schedule(circuit: Circuit, literals: Sequence[GateLiteral]) -> list[ScheduleStep]:
    """Return the steps to evaluate the gates that these literals need; each loop has a step of its own.

    Each gate comes after its operands.
    """
    needed = needed_nodes(circuit, literals)
    gates = np.flatnonzero(needed & (np.array(circuit.left) >= 0))
    loops = {2 * number + 1: loop for number, loop in enumerate(circuit.loops) if needed[loop.variables[0]]}
    if not loops:
        return [ScheduleStep(gates)] if len(gates) else []
    phases = _phases(circuit, gates.tolist())[gates]
    order = np.argsort(phases, kind="stable")
    present, starts = np.unique(phases[order], return_index=True)
    gates_of = dict(zip(present.tolist(), np.split(gates[order], starts[1:]), strict=False))
    return [ScheduleStep(gates_of.get(phase, gates[:0]), loops.get(phase)) for phase in sorted({*gates_of, *loops})]


def _phases(circuit: Circuit, gates: Sequence[int]) -> Ints:
    """Return int64[nodes]: the phase of each of these gates and of each loop variable, 0 for other nodes."""
    left, right = circuit.left, circuit.right
    phases = [0] * len(left)
    for number, loop in enumerate(circuit.loops):
        for node in (*loop.variables, *_between(circuit, loop)):
            phases[node] = 2 * number + 1
    for gate in gates:
        if not phases[gate]:
            phases[gate] = max(phases[left[gate] >> 1] + 1, phases[right[gate] >> 1] + 1) // 2 * 2
    return np.array(phases)


def _between(circuit: Circuit, loop: Loop) -> list[int]:
    """Return the gates that depend on a variable of the loop and on which a result of the loop depends."""
    left, right = circuit.left, circuit.right
    first, last = min(loop.variables), max(literal >> 1 for literal in loop.results)
    dependent, wanted = set(loop.variables), {literal >> 1 for literal in loop.results}
    for gate in range(first, last + 1):
        if left[gate] >= 0 and (left[gate] >> 1 in dependent or right[gate] >> 1 in dependent):
            dependent.add(gate)
    for gate in range(last, first, -1):
        if gate in wanted and left[gate] >= 0:
            wanted |= {left[gate] >> 1, right[gate] >> 1}
    return sorted(dependent & wanted - set(loop.variables))


@dataclass(frozen=True, slots=True)
class WideGates:
    """Wide gates in order of evaluation: each gate comes after the gates that it reads.

    Gate i computes node `nodes[i]` in step `steps[i]`; both arrays are int64[gates]. It is the AND of all `literals[k]`
    with `gates[k] == i`; both arrays are int64[operands] and sorted by gate. `num_nodes` is the number of nodes of the
    circuit plus the number of additional nodes, which belong to pieces of gates.
    """

    nodes: Ints
    steps: Ints
    gates: Ints
    literals: Ints
    num_nodes: int

    def reordered(self, order: Ints) -> WideGates:
        """Return the same gates in another order."""
        gates = np.argsort(order)[self.gates]
        by_gate = np.argsort(gates, kind="stable")
        return WideGates(self.nodes[order], self.steps[order], gates[by_gate], self.literals[by_gate], self.num_nodes)


def wide_gates(circuit: Circuit, steps: Sequence[ScheduleStep], kept: Sequence[GateLiteral]) -> WideGates:
    """Join the gates of a schedule into wide gates. A gate whose literal is in `kept` is not joined into its reader."""
    nodes = np.concatenate([step.gates for step in steps]) if steps else np.zeros(0, np.int64)
    step_of = np.repeat(np.arange(len(steps)), [len(step.gates) for step in steps])
    literals = np.array([circuit.left, circuit.right], np.int64)[:, nodes].T  # int64[gates, 2]
    index_of = np.full(len(circuit.left), -1)
    index_of[nodes] = np.arange(len(nodes))
    reader = _only_readers(literals, index_of, step_of, np.asarray(kept, np.int64) >> 1)
    root = np.where(reader < 0, np.arange(len(nodes)), reader)
    while (root[root] != root).any():
        root = root[root]
    gates, read = np.repeat(root, 2), literals.ravel()
    outer = (index_of[read >> 1] < 0) | (root[index_of[read >> 1]] == index_of[read >> 1])
    return _in_pieces(nodes, step_of, index_of, gates[outer], read[outer])


def _only_readers(literals: Ints, index_of: Ints, step_of: Ints, kept: Ints) -> Ints:
    """Return int64[gates]: for each gate, the gate into which it can be joined, or -1.

    A gate is joined into its reader if it has no other reader, if both are in the same step, and if it is read without
    negation. Nodes in `kept` are not joined.
    """
    read = index_of[literals.ravel() >> 1]
    by = np.repeat(np.arange(len(literals)), 2)
    is_gate = read >= 0
    uses = np.bincount(read[is_gate], minlength=len(literals))
    kept = index_of[kept]
    uses[kept[kept >= 0]] += 2
    fits = is_gate & (literals.ravel() & 1 == 0) & (uses[read] == 1) & (step_of[read] == step_of[by])
    reader = np.full(len(literals), -1)
    reader[read[fits]] = by[fits]
    return reader


def _in_pieces(nodes: Ints, step_of: Ints, index_of: Ints, gates: Ints, literals: Ints) -> WideGates:
    """Cut gates that are too wide into pieces, and place each piece directly after the last of its operands."""
    available = index_of[literals >> 1]  # -1 for inputs and loop variables
    order = np.lexsort((literals, available, gates))
    gates, literals, available = gates[order], literals[order], available[order]
    first = np.flatnonzero(np.diff(gates, prepend=-1))
    size = np.diff(first, append=len(gates))
    rank = np.arange(len(gates)) - np.repeat(first, size)
    cut = (np.repeat(size, size) > WIDEST) & (rank % PIECE == 0)
    starts = np.flatnonzero((rank == 0) | cut)
    ends = np.append(starts[1:], len(gates))[: len(starts)]
    root = gates[starts]
    is_last = np.append(root[1:] != root[:-1], True)[: len(root)]
    positions = np.where(is_last, 2 * root, 2 * available[ends - 1] + 1)
    positions = np.maximum(positions, 2 * np.searchsorted(step_of, step_of[root]))
    num_nodes = len(index_of) + int((~is_last).sum())
    new = nodes[root]
    new[~is_last] = np.arange(len(index_of), num_nodes)
    chained = np.flatnonzero(~is_last)  # each of these pieces is read by the next piece of its gate
    of_piece = np.repeat(np.arange(len(starts)), ends - starts)
    readers = np.concatenate([of_piece, chained + 1])
    read = np.concatenate([literals, 2 * new[chained]])
    whole = WideGates(new, step_of[root], readers, read, num_nodes)
    return whole.reordered(np.argsort(positions, kind="stable"))
