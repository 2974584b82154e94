"""Planes: how 512 positions lie in memory.

A *plane* holds one proposition for 512 positions: 8 words of 64 bits, one AVX-512 register (LLVM splits it on smaller
machines). All planes of a block of 512 positions lie in one buffer:

    [facts | actions | outputs | temporaries]     each of the first three padded to a multiple of 64 planes

so that states, packed as rows of 64-bit words, enter and leave by transposing 64 planes at a time (rows.py). Position
i of a block, its *lane*, is bit i % 64 of word i // 64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuit import Circuit, Node

LANES = 512
VECTOR = "<8 x i64>"
# Without these attributes LLVM keeps to half registers on CPUs that once clocked down for wide ones.
ATTRIBUTES = 'nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512"'


def splat(word: int) -> str:
    """A constant plane of eight times the same word, -2^63 to 2^64 - 1."""
    signed = word - (1 << 64) if word >> 63 > 0 else word
    return "<" + ", ".join([f"i64 {signed}"] * 8) + ">"


ONES = splat(-1)


def words(bits: int) -> int:
    """The number of 64-bit words that hold so many bits, at least one."""
    return max(1, -(-bits // 64))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the planes of a block lie in the buffer; all numbers count planes."""

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
        """The plane of an input node (1 .. facts + actions)."""
        return node - 1 if node <= self.num_facts else self.actions + node - 1 - self.num_facts


# The functions of a circuit, and the outputs that each makes; `legal` tells also whether a match is over.
GROUPS = {"legal": ("legal", "terminal"), "goal": ("goal",), "next": ("next",)}


def layout_of(circuit: Circuit, group: str) -> Layout:
    """The layout of a group's planes; facts, actions and the beginning of the outputs are at the same place in all."""
    num_outputs = sum(len(circuit.outputs[output]) for output in GROUPS[group])
    return Layout(circuit.num_facts, circuit.num_actions, num_outputs)


def zero_planes(count: int) -> NDArray[np.uint64]:
    """uint64[count, 8] of zeros whose address is a multiple of a register's size."""
    memory = np.zeros(8 * count + 8, np.uint64)
    skip = -memory.ctypes.data % 64 // 8
    return memory[skip : skip + 8 * count].reshape(count, 8)


class Instructions:
    """Instructions over planes in static single assignment; `%p` is the address of the buffer."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, instruction: str) -> str:
        """Appends an instruction; gives the name of its value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def op(self, name: str, left: str, right: str) -> str:
        """A bitwise or lane-wise operation on two planes."""
        return self.line(f"{name} {VECTOR} {left}, {right}")

    def negated(self, value: str) -> str:
        return self.op("xor", value, ONES)

    def load(self, plane: int) -> str:
        return self.line(f"load {VECTOR}, ptr {self._address(plane)}, align 64")

    def store(self, plane: int, value: str) -> None:
        self.lines.append(f"  store {VECTOR} {value}, ptr {self._address(plane)}, align 64")

    def any(self, plane: str) -> str:
        """Whether any lane of a plane is set, as an i1."""
        word = self.line(f"call i64 @llvm.vector.reduce.or.v8i64({VECTOR} {plane})")
        return self.line(f"icmp ne i64 {word}, 0")

    def _address(self, plane: int) -> str:
        return self.line(f"getelementptr {VECTOR}, ptr %p, i64 {plane}")
