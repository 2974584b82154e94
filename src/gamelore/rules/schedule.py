"""The order in which the gates of a circuit are evaluated: each after what it depends on, close to its first use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .circuit import Circuit, GateLiteral, Loop, Node


@dataclass(frozen=True, slots=True)
class Step:
    """Gates to evaluate in this order; with a loop, again and again until its variables are stable."""

    gates: list[Node]
    loop: Loop | None = None


def schedule(circuit: Circuit, literals: Sequence[GateLiteral]) -> list[Step]:
    """The gates that these outputs need, each after what it depends on; gates of a loop stand in that loop's step."""
    members = _loop_members(circuit)
    steps: list[Step] = []
    done: set[Node] = set()
    for literal in literals:
        for unit in _units_before(circuit, literal >> 1, members, done):
            if isinstance(unit, Loop):
                steps.append(
                    Step(
                        sorted(node for node in members if members[node] is unit and is_gate(circuit, node)),
                        unit,
                    )
                )
            elif steps and steps[-1].loop is None:
                steps[-1].gates.append(unit)
            else:
                steps.append(Step([unit]))
    return steps


def is_gate(circuit: Circuit, node: Node) -> bool:
    """Whether a node is an AND gate, not an input, a loop variable or the constant."""
    return circuit.left[node] >= 0


def _loop_members(circuit: Circuit) -> dict[Node, Loop]:
    """Variables, and gates between a loop's variables and its results."""
    members: dict[Node, Loop] = {}
    for loop in circuit.loops:
        inside = set(loop.variables)
        first = min(loop.variables)
        wanted = _cone(circuit, [literal >> 1 for literal in loop.results], first)
        for node in sorted(wanted):
            if is_gate(circuit, node) and {circuit.left[node] >> 1, circuit.right[node] >> 1} & inside:
                inside.add(node)
        members.update(dict.fromkeys(inside, loop))
    return members


def _cone(circuit: Circuit, roots: Sequence[Node], first: Node) -> set[Node]:
    """All gates from node `first` on that the roots depend on."""
    found: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node >= first and node not in found:
            found.add(node)
            if is_gate(circuit, node):
                stack += (circuit.left[node] >> 1, circuit.right[node] >> 1)
    return found


def _units_before(circuit: Circuit, root: Node, members: dict[Node, Loop], done: set[Node]) -> Iterator[Node | Loop]:
    """Depth first, so that a gate stands close to its first use."""
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        loop = members.get(node)
        if loop is not None:
            node = loop.variables[0]
        if node in done or (loop is None and not is_gate(circuit, node)):
            continue
        if expanded:
            done.add(node)
            yield loop or node
            continue
        stack.append((node, True))
        stack += [(before, False) for before in _inputs(circuit, node, loop, members)]


def _inputs(circuit: Circuit, node: Node, loop: Loop | None, members: dict[Node, Loop]) -> list[Node]:
    if loop is None:
        return [circuit.right[node] >> 1, circuit.left[node] >> 1]
    inside = [member for member in members if members[member] is loop and is_gate(circuit, member)]
    nodes = {literal >> 1 for member in inside for literal in (circuit.left[member], circuit.right[member])}
    nodes |= {literal >> 1 for literal in loop.results}
    return sorted(before for before in nodes if members.get(before) is not loop)
