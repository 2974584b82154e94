"""Wide gates: AND of any number of literals, made of the two-input gates of a circuit that only one other gate reads.

What a wide gate reads it reads once, and only its result is written; nothing in between is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuit import Circuit, GateLiteral
from .schedule import Step

Ints = NDArray[np.int64]

WIDEST = 24  # operands of one gate
PIECE = 16  # a wider one becomes a chain of pieces, each as soon as its operands are there


@dataclass(frozen=True, slots=True)
class WideGates:
    """Gates in an order in which each stands after those that it reads.

    Gate i computes node `nodes[i]` in step `steps[i]`, int64[gates]. `gates` and `literals`, int64[operands], say which
    gate reads what, sorted by gate. `num_nodes` counts the circuit's nodes and those of pieces, which come after them.
    """

    nodes: Ints
    steps: Ints
    gates: Ints
    literals: Ints
    num_nodes: int

    def reordered(self, order: Ints) -> WideGates:
        """The same gates in another order."""
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        gates = places[self.gates]
        by_gate = np.argsort(gates, kind="stable")
        return WideGates(self.nodes[order], self.steps[order], gates[by_gate], self.literals[by_gate], self.num_nodes)


def widened(circuit: Circuit, steps: Sequence[Step], kept: Sequence[GateLiteral]) -> WideGates:
    """The gates of a schedule as wide ones; the nodes of the kept literals stay nodes of their own."""
    nodes = np.concatenate([step.gates for step in steps]) if steps else np.zeros(0, np.int64)
    step_of = np.repeat(np.arange(len(steps)), [len(step.gates) for step in steps])
    literals = np.array([circuit.left, circuit.right], np.int64)[:, nodes].T  # of each gate
    place = np.full(len(circuit.left), -1)
    place[nodes] = np.arange(len(nodes))
    reader = _only_readers(literals, place, step_of, np.asarray(kept, np.int64) >> 1)
    root = np.where(reader < 0, np.arange(len(nodes)), reader)
    while (root[root] != root).any():
        root = root[root]
    gates, read = np.repeat(root, 2), literals.ravel()
    outer = (place[read >> 1] < 0) | (root[place[read >> 1]] == place[read >> 1])
    return _in_pieces(nodes, step_of, place, gates[outer], read[outer])


def _only_readers(literals: Ints, place: Ints, step_of: Ints, kept: Ints) -> Ints:
    """int64[gates]: the gate into which each can be drawn: the only one that reads it, plain and in its step; or -1."""
    read = place[literals.ravel() >> 1]
    by = np.repeat(np.arange(len(literals)), 2)
    known = read >= 0
    uses = np.bincount(read[known], minlength=len(literals))
    kept = place[kept]
    uses[kept[kept >= 0]] += 2
    fits = known & (literals.ravel() & 1 == 0) & (uses[read] == 1) & (step_of[read] == step_of[by])
    reader = np.full(len(literals), -1)
    reader[read[fits]] = by[fits]
    return reader


def _in_pieces(nodes: Ints, step_of: Ints, place: Ints, gates: Ints, literals: Ints) -> WideGates:
    """Cuts what is too wide, and puts each piece behind the last of its operands."""
    available = place[literals >> 1]  # -1 for what is there from the beginning
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
    num_nodes = len(place) + int((~is_last).sum())
    new = nodes[root]
    new[~is_last] = np.arange(len(place), num_nodes)
    chained = np.flatnonzero(~is_last)  # each is read by the piece after it
    of_piece = np.repeat(np.arange(len(starts)), ends - starts)
    whole = WideGates(
        new,
        step_of[root],
        np.concatenate([of_piece, chained + 1]),
        np.concatenate([literals, 2 * new[chained]]),
        num_nodes,
    )
    return whole.reordered(np.argsort(positions, kind="stable"))
