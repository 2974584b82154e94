"""Planes: the memory layout of 512 positions. Tapes: the gates of a circuit as numbers for an interpreter.

A *plane* contains the truth value of one proposition in 512 positions. It has 8 words of 64 bits, the size of one
AVX-512 register. On CPUs with smaller registers, LLVM uses several registers for a plane. All planes of a block of 512
positions are in one buffer:

    [facts | actions | outputs | temporaries]     each of the first three padded to a multiple of 64 planes

States are rows of 64-bit words. They are converted to planes and back by transposing 64 planes at a time
(transpose.py); the padding makes this possible. Each position of a block has a *lane*: lane i is bit i % 64 of word
i // 64.

A tape needs no compilation. Its gates are wide: a gate is the AND of any number of planes. Operands may be negated, and
the result may be negated, too. Consecutive gates of the same shape form a *run*, which is a header and then the gates:

    [shape, inverted, number of plain operands, number of negated operands, number of gates]
    [result, plain operands .., negated operands ..]    for each gate

A tape refers to a plane by the offset of the plane in the buffer, in bytes. A run of shape COMMIT ends the sweep of a
loop. It contains pairs [variable, result] in place of gates; one is added to the offset of the result if the result is
negated. Each variable is set to its result. If any lane of any variable changed, evaluation goes back to the start of
the sweep. In a COMMIT header, the number of plain operands is replaced by the number of words to go back. A header of
shape END ends the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..gdl.limits import check, working_on
from .aig import FALSE, TRUE, Circuit, GateLiteral, Ints, Loop, Node, ScheduleStep, WideGates, schedule, wide_gates

Mask = NDArray[np.bool_]
Words = NDArray[np.uint32]

LANES = 512
VECTOR = "<8 x i64>"
# On CPUs that lower their clock for wide registers, LLVM uses only half of each register without these attributes.
ATTRIBUTES = 'nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512"'


def splat(word: int) -> str:
    """Return a constant plane that contains the same word eight times. The word is from -2^63 to 2^64 - 1."""
    signed = word - (1 << 64) if word >> 63 > 0 else word
    return "<" + ", ".join([f"i64 {signed}"] * 8) + ">"


ONES = splat(-1)


def words(bits: int) -> int:
    """Return the number of 64-bit words that are needed for this number of bits; at least one."""
    return max(1, -(-bits // 64))


@dataclass(frozen=True, slots=True)
class PlaneLayout:
    """The layout of the buffer of a block. `actions`, `outputs` and `temporaries` are the first planes of each part."""

    num_facts: int
    num_actions: int
    num_outputs: int

    @property
    def actions(self) -> int:
        return 64 * words(self.num_facts)

    @property
    def outputs(self) -> int:
        return self.actions + 64 * words(self.num_actions)

    @property
    def temporaries(self) -> int:
        return self.outputs + 64 * words(self.num_outputs)

    def input(self, node: Node) -> int:
        """Return the plane of an input node. Input nodes have the numbers from 1 to num_facts + num_actions."""
        return node - 1 if node <= self.num_facts else self.actions + node - 1 - self.num_facts


# The functions of a circuit: the name of each function, and the groups of outputs that it computes.
GROUPS = {"legal": ("legal", "terminal"), "goal": ("goal",), "next": ("next",)}


def outputs_of(circuit: Circuit, group: str) -> tuple[list[GateLiteral], PlaneLayout]:
    """Return the literals of the outputs of a function, and the layout of its planes.

    The planes of facts and actions, and the first plane of the outputs, are the same for all functions.
    """
    literals = [literal for output in GROUPS[group] for literal in circuit.outputs[output]]
    return literals, PlaneLayout(circuit.num_facts, circuit.num_actions, len(literals))


def zero_planes(count: int) -> NDArray[np.uint64]:
    """Return planes of zeros, uint64[count, 8], aligned to 64 bytes."""
    memory = np.zeros(8 * count + 8, np.uint64)
    skip = -memory.ctypes.data % 64 // 8
    return memory[skip : skip + 8 * count].reshape(count, 8)


class Instructions:
    """Writer of LLVM instructions on planes, in static single assignment; `%p` is the address of the buffer."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, instruction: str) -> str:
        """Append an instruction and return the name of its result."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def op(self, name: str, left: str, right: str) -> str:
        """Return the result of an operation on two planes."""
        return self.line(f"{name} {VECTOR} {left}, {right}")

    def negated(self, value: str) -> str:
        return self.op("xor", value, ONES)

    def load(self, plane: int) -> str:
        return self.line(f"load {VECTOR}, ptr {self._address(plane)}, align 64")

    def store(self, plane: int, value: str) -> None:
        self.lines.append(f"  store {VECTOR} {value}, ptr {self._address(plane)}, align 64")

    def any(self, plane: str) -> str:
        """Return a condition (i1): whether any lane of a plane is set."""
        word = self.line(f"call i64 @llvm.vector.reduce.or.v8i64({VECTOR} {plane})")
        return self.line(f"icmp ne i64 {word}, 0")

    def _address(self, plane: int) -> str:
        return self.line(f"getelementptr {VECTOR}, ptr %p, i64 {plane}")


HEADER = 5  # number of words of a header
PLANE = 64  # number of bytes of a plane
# Gates are reordered within windows of this number of gates, so that gates of equal shape are adjacent, and so that no
# gate waits for the result of the gate before it.
WINDOW = 256
# The shapes with code of their own, numbered from 1: the number of plain operands, and of negated operands.
SHAPES = ((1, 0), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3))
ANY, COMMIT, END = 0, len(SHAPES) + 1, len(SHAPES) + 2


@dataclass(frozen=True, slots=True)
class Tape:
    """A tape: its words, uint32, and the number of planes of its buffer."""

    words: Words
    num_planes: int


@dataclass(frozen=True, slots=True)
class Tapes:
    """The tapes of all functions of a circuit: the words of each tape, and the number of planes of their buffer."""

    words: dict[str, Words]
    num_planes: int


def record_circuit(circuit: Circuit) -> Tapes:
    """Return the tapes of all functions of a circuit."""
    working_on("recording the tapes")
    tapes = {name: record(circuit, *outputs_of(circuit, name)) for name in GROUPS}
    return Tapes({name: tape.words for name, tape in tapes.items()}, max(tape.num_planes for tape in tapes.values()))


def record(circuit: Circuit, literals: Sequence[GateLiteral], layout: PlaneLayout) -> Tape:
    """Return the tape that computes these outputs and stores them in the output planes of the layout."""
    return _Recorder(circuit, np.array(literals, np.int64), layout).tape()


class _Recorder:
    """Writer of one tape. A gate that is an output is stored in the plane of this output, negated if necessary."""

    def __init__(self, circuit: Circuit, literals: Ints, layout: PlaneLayout) -> None:
        self.circuit, self.literals, self.layout = circuit, literals, layout
        self.steps = schedule(circuit, literals.tolist())
        results = [literal for step in self.steps if step.loop for literal in step.loop.results]
        gates = wide_gates(circuit, self.steps, [*literals.tolist(), *results])
        self.step_of = np.full(gates.num_nodes, -1)
        self.step_of[gates.nodes] = gates.steps
        self.inverted = np.zeros(gates.num_nodes, np.bool_)
        self.direct = self._direct_outputs()
        self.inverted[literals[self.direct] >> 1] = literals[self.direct] & 1 == 1
        self.gates, self.windows = self._in_windows(gates)
        self.ends = self._window_counts(gates).cumsum() - 1  # the last window of each step
        self.planes, self.num_planes = self._allocate()

    def _direct_outputs(self) -> Ints:
        """Return the indices of the outputs that are gates; if several outputs are one gate, only the first index."""
        nodes, first = np.unique(self.literals >> 1, return_index=True)
        return np.sort(first[self.step_of[nodes] >= 0])

    def _window_counts(self, gates: WideGates) -> Ints:
        """Return int64[steps]: the number of windows of each step, at least one."""
        sizes = np.bincount(gates.steps, minlength=len(self.steps))
        return np.maximum(1, -(-sizes // WINDOW))

    def _in_windows(self, gates: WideGates) -> tuple[WideGates, Ints]:
        """Return the gates, sorted by window, depth and shape, and the window of each gate."""
        counts = self._window_counts(gates)
        rank = np.arange(len(gates.nodes)) - np.searchsorted(gates.steps, gates.steps)
        windows = (counts.cumsum() - counts)[gates.steps] + rank // WINDOW
        num_operands = np.bincount(gates.gates, minlength=len(rank))
        num_negated = np.bincount(gates.gates[self._negated(gates.literals)], minlength=len(rank))
        shape = (num_negated, num_operands, self.inverted[gates.nodes])
        order = np.lexsort((*shape, _depths(gates, windows), windows))
        return gates.reordered(order), windows[order]

    def _negated(self, literals: Ints) -> Mask:
        """Return for each literal whether it is the negation of the plane that is stored for its node."""
        negated: Mask = (literals & 1 == 1) ^ self.inverted[literals >> 1]
        return negated

    def _last_windows(self) -> Ints:
        """Return int64[nodes]: the last window in which the plane of each node is needed; -1 if it is never read.

        If a loop reads a node from outside the loop, the node is needed until the end of the loop. The same is true for
        the variables and the results of the loop.
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
        last[self.literals >> 1] = len(self.windows) + len(self.steps)  # the planes of outputs are never reused
        return last

    def _loops(self) -> list[tuple[int, Loop]]:
        return [(number, step.loop) for number, step in enumerate(self.steps) if step.loop]

    def _allocate(self) -> tuple[Ints, int]:
        """Return int64[nodes], the plane of each node or -1, and the number of planes of the buffer."""
        planes = np.full(len(self.step_of), -1)
        inputs = range(1, self.circuit.num_inputs + 1)
        planes[1 : len(inputs) + 1] = [self.layout.input(node) for node in inputs]
        planes[self.literals[self.direct] >> 1] = self.layout.outputs + self.direct
        nodes, windows = self._temporaries(planes)
        last = self._last_windows()
        expiring = nodes[np.argsort(last[nodes], kind="stable")]
        bounds = np.arange(self.ends[-1] + 2 if len(self.ends) else 1)
        begun, ended = np.searchsorted(windows, bounds).tolist(), np.searchsorted(last[expiring], bounds).tolist()
        free: list[int] = []  # planes that are no longer needed; the last plane of the list is reused first
        num_planes = self.layout.temporaries
        for window in bounds[:-1].tolist():
            check()
            own = nodes[begun[window] : begun[window + 1]]
            reused = free[max(0, len(free) - len(own)) :]
            del free[len(free) - len(reused) :]
            num_new = len(own) - len(reused)
            planes[own] = [*reversed(reused), *range(num_planes, num_planes + num_new)]
            num_planes += num_new
            free += planes[expiring[ended[window] : ended[window + 1]]].tolist()
        return planes, num_planes

    def _temporaries(self, planes: Ints) -> tuple[Ints, Ints]:
        """Return the nodes that need a temporary plane, and the window in which each gets one."""
        new = planes[self.gates.nodes] < 0
        nodes, windows = self.gates.nodes[new], self.windows[new]
        for number, loop in self._loops():
            first_window = self.ends[number - 1] + 1 if number else 0
            at = np.searchsorted(windows, first_window)
            nodes = np.insert(nodes, at, loop.variables)
            windows = np.insert(windows, at, np.full(len(loop.variables), first_window))
        return nodes, windows

    def tape(self) -> Tape:
        """Return the complete tape."""
        bounds = np.searchsorted(self.gates.steps, np.arange(len(self.steps) + 1))
        operands = np.searchsorted(self.gates.gates, bounds)
        parts = []
        for number, step in enumerate(self.steps):
            check()
            gates, read = slice(*bounds[number : number + 2]), slice(*operands[number : number + 2])
            nodes, literals = self.gates.nodes[gates], self.gates.literals[read]
            parts += self._step(step, nodes, self.gates.gates[read] - bounds[number], literals)
        end = np.array([END, 0, 0, 0, 0], np.uint32)
        return Tape(np.concatenate([*parts, self._copies(), end]), self.num_planes)

    def _step(self, step: ScheduleStep, nodes: Ints, gates: Ints, literals: Ints) -> list[Words]:
        """Return the words of a step. If the step is a loop, the first words reset its variables."""
        body = self._runs(self.planes[nodes], self.inverted[nodes], gates, literals)
        if not step.loop:
            return [body]
        variables, results = self.planes[list(step.loop.variables)], np.array(step.loop.results, np.int64)
        none = np.zeros(0, np.int64)
        reset = self._runs(variables, results != TRUE, none, none)
        changing = results > TRUE
        return [reset, body, self._commit(variables[changing], results[changing], len(body))]

    def _commit(self, variables: Ints, results: Ints, back: int) -> Words:
        """Return the run that ends a sweep; `back` is the number of words from the start of the sweep to this run."""
        pairs = np.stack([variables * PLANE, self.planes[results >> 1] * PLANE + self._negated(results)], axis=1)
        return np.concatenate([[COMMIT, 0, back, 0, len(variables)], pairs.ravel()]).astype(np.uint32)

    def _copies(self) -> Words:
        """Return the words that copy the outputs that are not gates, and the outputs that repeat another output."""
        copied = np.ones(len(self.literals), np.bool_)
        copied[self.direct] = False
        literals = self.literals[copied]
        is_false, is_constant = literals == FALSE, literals <= TRUE
        gates = np.arange(len(literals))[~is_constant]
        return self._runs(self.layout.outputs + np.flatnonzero(copied), is_false, gates, literals[~is_constant])

    def _runs(self, results: Ints, inverted: Mask, gates: Ints, literals: Ints) -> Words:
        """Return the words of runs of gates. Gate k is stored in plane `results[k]`.

        The literals that gate k reads are all `literals[i]` with `gates[i] == k`.
        """
        negated = self._negated(literals)
        order = np.lexsort((negated, gates))
        operands, gates = self.planes[literals[order] >> 1], gates[order]
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
        for field, values in enumerate([*header[:, firsts], np.diff(firsts, append=len(results))]):
            words[at[firsts] - HEADER + field] = values
        return words


def _shapes(num_plain: Ints, num_negated: Ints) -> Ints:
    """Return the number of the shape of each gate; ANY if the shape is not in SHAPES."""
    table = np.full((4, 4), ANY)
    table[tuple(np.transpose(SHAPES))] = np.arange(1, 1 + len(SHAPES))
    few = np.minimum(num_plain, 3), np.minimum(num_negated, 3)
    shapes: Ints = np.where((num_plain <= 3) & (num_negated <= 3), table[few], ANY)
    return shapes


def _depths(gates: WideGates, windows: Ints) -> Ints:
    """Return int64[gates]: for each gate, the length of the longest chain of gates that it needs in its window."""
    index_of = np.full(gates.num_nodes, -1)
    index_of[gates.nodes] = np.arange(len(gates.nodes))
    read = index_of[gates.literals >> 1]
    inside = (read >= 0) & (windows[read] == windows[gates.gates])
    read, readers = read[inside], gates.gates[inside]
    depths = np.zeros(len(gates.nodes), np.int64)
    while True:
        check()
        waiting = depths[readers] <= depths[read]
        if not waiting.any():
            return depths
        np.maximum.at(depths, readers[waiting], depths[read[waiting]] + 1)
