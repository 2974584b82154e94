"""The order in which the gates of a circuit are evaluated: each after what it depends on.

That is the order in which they were built, close to what uses them; where the circuit has loops, in phases: what lies
in loop k belongs to phase 2 k + 1, what depends on it and on no later loop to phase 2 k + 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuit import Circuit, GateLiteral, Loop, needed_nodes

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """Gates to evaluate in this order, int64[gates]; with a loop, again and again until its variables are stable."""

    gates: Nodes
    loop: Loop | None = None


def schedule(circuit: Circuit, literals: Sequence[GateLiteral]) -> list[Step]:
    """The gates that these outputs need, each after what it depends on; gates of a loop stand in that loop's step."""
    needed = needed_nodes(circuit, literals)
    gates = np.flatnonzero(needed & (np.array(circuit.left) >= 0))
    loops = [(number, loop) for number, loop in enumerate(circuit.loops) if needed[loop.variables[0]]]
    if not loops:
        return [Step(gates)] if len(gates) else []
    phases = _phases(circuit, gates.tolist())
    steps = {phase: Step(part) for phase, part in _split(gates, phases[gates])}
    steps.update({2 * k + 1: Step(steps.get(2 * k + 1, Step(gates[:0])).gates, loop) for k, loop in loops})
    return [steps[phase] for phase in sorted(steps)]


def _phases(circuit: Circuit, gates: Sequence[int]) -> Nodes:
    """int64[nodes]: the phase of each of the gates and of the loops' variables; 0 elsewhere."""
    left, right = circuit.left, circuit.right
    phases = [0] * len(left)
    inside = [0] * len(left)
    for number, loop in enumerate(circuit.loops):
        for node in (*loop.variables, *_between(circuit, loop)):
            inside[node] = phases[node] = 2 * number + 1
    for gate in gates:
        if not inside[gate]:
            phases[gate] = max(phases[left[gate] >> 1] + 1, phases[right[gate] >> 1] + 1) // 2 * 2
    return np.array(phases)


def _between(circuit: Circuit, loop: Loop) -> list[int]:
    """The gates that depend on a loop's variables and that its results depend on."""
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


def _split(gates: Nodes, phases: Nodes) -> list[tuple[int, Nodes]]:
    """The gates of each phase, in their order."""
    order = np.argsort(phases, kind="stable")
    values, starts = np.unique(phases[order], return_index=True)
    ends = np.append(starts[1:], len(gates))[: len(starts)]
    return [(int(value), gates[order[i:j]]) for value, i, j in zip(values, starts, ends, strict=True)]
