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
    loops = _Loops(circuit)
    steps: list[Step] = []
    done: set[Node] = set()
    for literal in literals:
        for unit in _units_before(circuit, literal >> 1, loops, done):
            if isinstance(unit, Loop):
                steps.append(Step(loops.gates[unit.variables[0]], unit))
            elif steps and steps[-1].loop is None:
                steps[-1].gates.append(unit)
            else:
                steps.append(Step([unit]))
    return steps


def is_gate(circuit: Circuit, node: Node) -> bool:
    """Whether a node is an AND gate, not an input, a loop variable or the constant."""
    return circuit.left[node] >= 0


class _Loops:
    """Which nodes lie in which loop: its variables, and the gates between them and its results.

    `of` gives the loop of a node, `gates` the gates of a loop in order, by its first variable.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.of: dict[Node, Loop] = {}
        self.gates: dict[Node, list[Node]] = {}
        for loop in circuit.loops:
            inside = self._inside(loop)
            self.of.update(dict.fromkeys(inside, loop))
            self.gates[loop.variables[0]] = sorted(inside.difference(loop.variables))

    def _inside(self, loop: Loop) -> set[Node]:
        inside = set(loop.variables)
        wanted = _cone(self.circuit, [literal >> 1 for literal in loop.results], min(loop.variables))
        for node in sorted(wanted):
            if is_gate(self.circuit, node) and not inside.isdisjoint(_operands(self.circuit, node)):
                inside.add(node)
        return inside

    def inputs(self, loop: Loop) -> list[Node]:
        """The nodes outside that a loop reads."""
        nodes = {node for gate in self.gates[loop.variables[0]] for node in _operands(self.circuit, gate)}
        nodes |= {literal >> 1 for literal in loop.results}
        return sorted(node for node in nodes if self.of.get(node) is not loop)


def _operands(circuit: Circuit, gate: Node) -> tuple[Node, Node]:
    return circuit.left[gate] >> 1, circuit.right[gate] >> 1


def _cone(circuit: Circuit, roots: Sequence[Node], first: Node) -> set[Node]:
    """All gates from node `first` on that the roots depend on."""
    found: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node >= first and node not in found:
            found.add(node)
            if is_gate(circuit, node):
                stack += _operands(circuit, node)
    return found


def _units_before(circuit: Circuit, root: Node, loops: _Loops, done: set[Node]) -> Iterator[Node | Loop]:
    """Depth first, so that a gate stands close to its first use."""
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        loop = loops.of.get(node)
        if loop is not None:
            node = loop.variables[0]
        if node in done or (loop is None and not is_gate(circuit, node)):
            continue
        if expanded:
            done.add(node)
            yield loop or node
            continue
        stack.append((node, True))
        before = loops.inputs(loop) if loop else reversed(_operands(circuit, node))
        stack += [(input_node, False) for input_node in before]
