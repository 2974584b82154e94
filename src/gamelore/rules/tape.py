"""Tapes: the gates of a circuit as numbers, for one small function of machine code that is the same for all games.

A tape starts at once: nothing is compiled for it. Its gates are wide: AND of any number of planes, some of them
negated, and perhaps the result too. They come in *runs* of gates of the same shape, a header and then the gates:

    [shape, inverted, number of plain operands, number of negated operands, number of gates]
    [result, plain operands .., negated operands ..]    for each gate

A plane is given by its place in the buffer, in bytes. A run of shape COMMIT ends the sweep of a loop: its gates are
pairs [variable, result], the result plus one if it is negated; each variable becomes its result, and if any lane of any
of them changed, the tape goes back by the number of words that stands in place of that of plain operands. END is last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuit import FALSE, TRUE, Circuit, GateLiteral, Loop
from .planes import GROUPS, Layout, layout_of
from .schedule import Step, schedule
from .wide import WideGates, widened

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint32]

HEADER = 5  # words
PLANE = 64  # bytes
WINDOW = 256  # gates whose order may change, so that equal shapes stand together and none waits for the one before
SHAPES = ((1, 0), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3))  # (plain, negated) operands, numbered from 1
ANY, COMMIT, END = 0, len(SHAPES) + 1, len(SHAPES) + 2


@dataclass(frozen=True, slots=True)
class Tape:
    """uint32 words, and the number of planes of the buffer that they speak of."""

    words: Words
    num_planes: int


@dataclass(frozen=True, slots=True)
class Tapes:
    """The words of each function of a circuit, and the number of planes of a buffer for all of them."""

    words: dict[str, Words]
    num_planes: int


def record_circuit(circuit: Circuit) -> Tapes:
    """The tapes of all functions of a circuit."""
    tapes = {}
    for name, outputs in GROUPS.items():
        literals = [literal for output in outputs for literal in circuit.outputs[output]]
        tapes[name] = record(circuit, literals, layout_of(circuit, name))
    return Tapes({name: tape.words for name, tape in tapes.items()}, max(tape.num_planes for tape in tapes.values()))


def record(circuit: Circuit, literals: Sequence[GateLiteral], layout: Layout) -> Tape:
    """The tape that computes these outputs, each at its place in the layout."""
    return _Recorder(circuit, np.array(literals, np.int64), layout).tape()


class _Recorder:
    """Makes one tape. A gate that is an output has its place there, negated where the output is."""

    def __init__(self, circuit: Circuit, literals: Ints, layout: Layout) -> None:
        self.circuit, self.literals, self.layout = circuit, literals, layout
        self.steps = schedule(circuit, literals.tolist())
        results = [literal for step in self.steps if step.loop for literal in step.loop.results]
        gates = widened(circuit, self.steps, [*literals.tolist(), *results])
        self.step_of = np.full(gates.num_nodes, -1)
        self.step_of[gates.nodes] = gates.steps
        self.inverted = np.zeros(gates.num_nodes, np.bool_)
        self.direct = self._direct_outputs()
        self.inverted[literals[self.direct] >> 1] = literals[self.direct] & 1 == 1
        self.gates, self.windows = self._in_windows(gates)
        self.ends = self._window_counts(gates).cumsum() - 1  # the last window of each step
        self.places, self.num_planes = self._allocate()

    def _direct_outputs(self) -> Ints:
        """The outputs that are gates, the first one of each."""
        nodes, first = np.unique(self.literals >> 1, return_index=True)
        return np.sort(first[self.step_of[nodes] >= 0])

    def _window_counts(self, gates: WideGates) -> Ints:
        """int64[steps]: how many windows each step has, at least one."""
        sizes = np.bincount(gates.steps, minlength=len(self.steps))
        return np.maximum(1, -(-sizes // WINDOW))

    def _in_windows(self, gates: WideGates) -> tuple[WideGates, Ints]:
        """The gates, in each window by depth and shape, and the window of each."""
        counts = self._window_counts(gates)
        rank = np.arange(len(gates.nodes)) - np.searchsorted(gates.steps, gates.steps)
        windows = (counts.cumsum() - counts)[gates.steps] + rank // WINDOW
        num_operands = np.bincount(gates.gates, minlength=len(rank))
        num_negated = np.bincount(gates.gates[self._negated(gates.literals)], minlength=len(rank))
        shape = (num_negated, num_operands, self.inverted[gates.nodes])
        order = np.lexsort((*shape, _depths(gates, windows), windows))
        return gates.reordered(order), windows[order]

    def _negated(self, literals: Ints) -> Mask:
        """Which literals are the negation of what is stored."""
        negated: Mask = (literals & 1 == 1) ^ self.inverted[literals >> 1]
        return negated

    def _last_windows(self) -> Ints:
        """int64[nodes]: the window after which a node is not read any more; -1 for what is never read.

        What a loop reads of what was there before must last until its end, and its variables and results too.
        """
        gates, last = self.gates, np.full(len(self.step_of), -1)
        read = gates.literals >> 1
        reader_step = gates.steps[gates.gates]
        in_loop = np.array([step.loop is not None for step in self.steps], np.bool_)[reader_step]
        lasting = in_loop & (self.step_of[read] != reader_step)
        window = np.where(lasting, self.ends[reader_step], self.windows[gates.gates])
        np.maximum.at(last, read, window)
        for number, loop in self._loops():
            nodes = [*loop.variables, *(literal >> 1 for literal in loop.results)]
            last[nodes] = np.maximum(last[nodes], self.ends[number])
        last[self.literals >> 1] = len(self.windows) + len(self.steps)  # more than there are
        return last

    def _loops(self) -> list[tuple[int, Loop]]:
        return [(number, step.loop) for number, step in enumerate(self.steps) if step.loop]

    def _allocate(self) -> tuple[Ints, int]:
        """int64[nodes]: the plane of each node, -1 for what has none; and the number of planes of the buffer."""
        places = np.full(len(self.step_of), -1)
        inputs = range(1, self.circuit.num_inputs + 1)
        places[1 : len(inputs) + 1] = [self.layout.input(node) for node in inputs]
        places[self.literals[self.direct] >> 1] = self.layout.outputs + self.direct
        nodes, windows = self._temporaries(places)
        last = self._last_windows()
        expiring = nodes[np.argsort(last[nodes], kind="stable")]
        bounds = np.arange(self.ends[-1] + 2 if len(self.ends) else 1)
        begun, ended = np.searchsorted(windows, bounds).tolist(), np.searchsorted(last[expiring], bounds).tolist()
        free = _FreePlanes(self.layout.temporaries)
        for window in bounds[:-1].tolist():
            own = nodes[begun[window] : begun[window + 1]]
            places[own] = free.take(len(own))
            free.give_back(places[expiring[ended[window] : ended[window + 1]]])
        return places, free.num_planes

    def _temporaries(self, places: Ints) -> tuple[Ints, Ints]:
        """The gates without a place and the loops' variables, and the window in which each gets one."""
        new = places[self.gates.nodes] < 0
        nodes, windows = self.gates.nodes[new], self.windows[new]
        for number, loop in self._loops():
            first_window = self.ends[number - 1] + 1 if number else 0
            at = np.searchsorted(windows, first_window)
            nodes = np.insert(nodes, at, loop.variables)
            windows = np.insert(windows, at, np.full(len(loop.variables), first_window))
        return nodes, windows

    def tape(self) -> Tape:
        """All words."""
        bounds = np.searchsorted(self.gates.steps, np.arange(len(self.steps) + 1))
        operands = np.searchsorted(self.gates.gates, bounds)
        parts = []
        for number, step in enumerate(self.steps):
            gates, read = slice(*bounds[number : number + 2]), slice(*operands[number : number + 2])
            nodes, literals = self.gates.nodes[gates], self.gates.literals[read]
            parts += self._step(step, nodes, self.gates.gates[read] - bounds[number], literals)
        end = np.array([END, 0, 0, 0, 0], np.uint32)
        return Tape(np.concatenate([*parts, self._copies(), end]), self.num_planes)

    def _step(self, step: Step, nodes: Ints, gates: Ints, literals: Ints) -> list[Words]:
        """The words of a step; of a loop, those that set its variables to false come first."""
        body = self._runs(self.places[nodes], self.inverted[nodes], gates, literals)
        if not step.loop:
            return [body]
        variables, results = self.places[list(step.loop.variables)], np.array(step.loop.results, np.int64)
        none = np.zeros(0, np.int64)
        reset = self._runs(variables, results != TRUE, none, none)
        changing = results > TRUE
        return [reset, body, self._commit(variables[changing], results[changing], len(body))]

    def _commit(self, variables: Ints, results: Ints, back: int) -> Words:
        pairs = np.stack([variables * PLANE, self.places[results >> 1] * PLANE + self._negated(results)], axis=1)
        return np.concatenate([[COMMIT, 0, back, 0, len(variables)], pairs.ravel()]).astype(np.uint32)

    def _copies(self) -> Words:
        """The words that make the outputs that are no gates, or one that is another output too."""
        copied = np.ones(len(self.literals), np.bool_)
        copied[self.direct] = False
        literals = self.literals[copied]
        is_false, is_constant = literals == FALSE, literals <= TRUE
        gates = np.arange(len(literals))[~is_constant]
        return self._runs(self.layout.outputs + np.flatnonzero(copied), is_false, gates, literals[~is_constant])

    def _runs(self, results: Ints, inverted: Mask, gates: Ints, literals: Ints) -> Words:
        """Runs of gates with these results, of which gate `gates[i]` reads `literals[i]`."""
        negated = self._negated(literals)
        order = np.lexsort((negated, gates))
        operands, gates = self.places[literals[order] >> 1], gates[order]
        num_operands = np.bincount(gates, minlength=len(results))
        num_negated = np.bincount(gates[negated[order]], minlength=len(results))
        num_plain = num_operands - num_negated
        header = np.stack([_shapes(num_plain, num_negated), inverted, num_plain, num_negated])
        begins = np.ones(len(results), np.bool_)
        begins[1:] = (header[:, 1:] != header[:, :-1]).any(axis=0)
        ends = (1 + num_operands + HEADER * begins).cumsum()
        at = ends - num_operands - 1
        words = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint32)
        words[at] = results * PLANE
        words[np.arange(len(gates)) - (num_operands.cumsum() - num_operands)[gates] + at[gates] + 1] = operands * PLANE
        firsts = np.flatnonzero(begins)
        for place, values in enumerate([*header[:, firsts], np.diff(firsts, append=len(results))]):
            words[at[firsts] - HEADER + place] = values
        return words


def _shapes(num_plain: Ints, num_negated: Ints) -> Ints:
    """The number of each shape."""
    table = np.full((4, 4), ANY)
    for number, shape in enumerate(SHAPES, start=1):
        table[shape] = number
    few = np.minimum(num_plain, 3), np.minimum(num_negated, 3)
    shapes: Ints = np.where((num_plain <= 3) & (num_negated <= 3), table[few], ANY)
    return shapes


def _depths(gates: WideGates, windows: Ints) -> Ints:
    """int64[gates]: the longest chain of gates of its window that each waits for."""
    place = np.full(gates.num_nodes, -1)
    place[gates.nodes] = np.arange(len(gates.nodes))
    read = place[gates.literals >> 1]
    inside = (read >= 0) & (windows[read] == windows[gates.gates])
    read, readers = read[inside], gates.gates[inside]
    depths = np.zeros(len(gates.nodes), np.int64)
    while True:
        waiting = depths[readers] <= depths[read]
        if not waiting.any():
            return depths
        np.maximum.at(depths, readers[waiting], depths[read[waiting]] + 1)


class _FreePlanes:
    """Planes of the buffer that hold nothing any more; those that became free last are taken first."""

    def __init__(self, first: int) -> None:
        self.num_planes = first
        self._free = np.zeros(1024, np.int64)
        self._count = 0

    def take(self, number: int) -> Ints:
        """So many planes; new ones where not enough are free."""
        self._count -= (old := min(number, self._count))
        taken = self._free[self._count : self._count + old][::-1]
        self.num_planes += number - old
        return np.concatenate([taken, np.arange(self.num_planes - (number - old), self.num_planes)])

    def give_back(self, planes: Ints) -> None:
        """Makes planes free."""
        while self._count + len(planes) > len(self._free):
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
        self._free[self._count : self._count + len(planes)] = planes
        self._count += len(planes)
