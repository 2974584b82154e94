"""Planes: how 512 positions lie in memory, and the code that moves packed rows into planes and back.

A *plane* holds one proposition for 512 positions: 8 words of 64 bits, one AVX-512 register (LLVM splits it on smaller
machines). All planes of a block of 512 positions lie in one buffer:

    [facts | actions | outputs | temporaries]     each of the first three padded to a multiple of 64 planes

so that states, packed as rows of 64-bit words, enter and leave by transposing 64 planes at a time. Position i of a
block is bit i // 8 of word i % 8: eight consecutive rows then make one register.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuit import Node

LANES = 512
VECTOR = "<8 x i64>"
ONES = "<" + ", ".join(["i64 -1"] * 8) + ">"
# Without these attributes LLVM keeps to half registers on CPUs that once clocked down for wide ones.
ATTRIBUTES = 'nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512"'


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


def transposition() -> str:
    """Two functions that turn 512 rows of one word into 64 planes and back.

    Eight consecutive rows make one register, so that register b holds row 8 * b + g in its word g; the 64 registers
    are then transposed as eight 64 x 64 bit matrices at once (Warren, Hacker's Delight, 7-3).
    """
    return _rows_to_planes() + _planes_to_rows() + _transpose()


def _rows_to_planes() -> str:
    return f"""
define internal void @rows_to_planes(ptr %rows, i64 %stride, ptr %planes) #0 {{
entry:
  br label %register
register:
  %b = phi i64 [ 0, %entry ], [ %next, %register ]
  %row = mul i64 %b, 8
  %base = mul i64 %row, %stride
{_each_word(_LOAD_WORD)}
  %place = getelementptr {VECTOR}, ptr %planes, i64 %b
  store {VECTOR} %v8, ptr %place, align 64
  %next = add i64 %b, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %register, label %done
done:
  call void @transpose(ptr %planes)
  ret void
}}
"""


def _planes_to_rows() -> str:
    return f"""
define internal void @planes_to_rows(ptr %planes, i64 %stride, ptr %rows) #0 {{
entry:
  call void @transpose(ptr %planes)
  br label %register
register:
  %b = phi i64 [ 0, %entry ], [ %next, %register ]
  %row = mul i64 %b, 8
  %base = mul i64 %row, %stride
  %place = getelementptr {VECTOR}, ptr %planes, i64 %b
  %v = load {VECTOR}, ptr %place, align 64
{_each_word(_STORE_WORD)}
  %next = add i64 %b, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %register, label %done
done:
  ret void
}}
"""


_ROW_ADDRESS = """\
  %o{g} = mul i64 %stride, {g}
  %i{g} = add i64 %base, %o{g}
  %a{g} = getelementptr i64, ptr %rows, i64 %i{g}
"""
_LOAD_WORD = (
    _ROW_ADDRESS
    + """\
  %w{g} = load i64, ptr %a{g}
  %v{h} = insertelement <8 x i64> %v{g}, i64 %w{g}, i32 {g}
"""
)
_STORE_WORD = (
    _ROW_ADDRESS
    + """\
  %w{g} = extractelement <8 x i64> %v, i32 {g}
  store i64 %w{g}, ptr %a{g}
"""
)


def _each_word(template: str) -> str:
    return "".join(template.format(g=word, h=word + 1) for word in range(8)).replace("%v0,", "poison,")


def _transpose() -> str:
    lines = []
    values = []
    for plane in range(64):
        lines.append(f"  %a{plane} = getelementptr {VECTOR}, ptr %p, i64 {plane}")
        lines.append(f"  %r{plane} = load {VECTOR}, ptr %a{plane}, align 64")
        values.append(f"%r{plane}")
    for distance in (32, 16, 8, 4, 2, 1):
        mask = sum(1 << bit for bit in range(64) if not bit & distance)
        for low in (plane for plane in range(64) if not plane & distance):
            high = low + distance
            lines += _exchange(values, low, high, distance, mask)
    lines += [f"  store {VECTOR} {value}, ptr %a{plane}, align 64" for plane, value in enumerate(values)]
    return "\n".join(["define internal void @transpose(ptr %p) #0 {", *lines, "  ret void", "}", ""])


def _exchange(values: list[str], low: int, high: int, distance: int, mask: int) -> list[str]:
    """Exchanges the high bits of values[low] with the low bits of values[high], in fields of `distance` bits."""
    name = f"{distance}_{low}"
    signed = mask - (1 << 64) if mask >> 63 else mask
    lines = [
        f"  %s{name} = lshr {VECTOR} {values[low]}, {_splat(distance)}",
        f"  %d{name} = xor {VECTOR} %s{name}, {values[high]}",
        f"  %t{name} = and {VECTOR} %d{name}, {_splat(signed)}",
        f"  %h{name} = xor {VECTOR} {values[high]}, %t{name}",
        f"  %u{name} = shl {VECTOR} %t{name}, {_splat(distance)}",
        f"  %l{name} = xor {VECTOR} {values[low]}, %u{name}",
    ]
    values[low], values[high] = f"%l{name}", f"%h{name}"
    return lines


def _splat(value: int) -> str:
    return "<" + ", ".join([f"i64 {value}"] * 8) + ">"


def entry_point(name: str, layout: Layout, takes_actions: bool) -> str:
    """`<name>_rows(states, actions, blocks, out, planes)`: packed rows in and out, block by block."""
    sources = [("%states", words(layout.num_facts), 0)]
    if takes_actions:
        sources.append(("%actions", words(layout.num_actions), layout.actions))
    calls = []
    for source, width, first in sources:
        calls += _transfers("rows_to_planes", source, width, first)
    calls.append(f"  call void @{name}(ptr %p)")
    calls += _transfers("planes_to_rows", "%out", words(layout.num_outputs), layout.outputs)
    body = "\n".join(calls)
    return f"""
define void @{name}_rows(ptr %states, ptr %actions, i64 %blocks, ptr %out, ptr %p) #0 {{
entry:
  br label %block
block:
  %b = phi i64 [ 0, %entry ], [ %next, %block ]
{body}
  %next = add i64 %b, 1
  %more = icmp ult i64 %next, %blocks
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""


def _transfers(function: str, rows: str, width: int, first_plane: int) -> list[str]:
    """Calls that move all `width` words of a block's rows."""
    tag = rows[1:]
    lines = [f"  %{tag}_offset = mul i64 %b, {LANES * width}"]
    for word in range(width):
        name = f"{tag}{word}"
        lines += [
            f"  %{name}_i = add i64 %{tag}_offset, {word}",
            f"  %{name}_r = getelementptr i64, ptr {rows}, i64 %{name}_i",
            f"  %{name}_p = getelementptr {VECTOR}, ptr %p, i64 {first_plane + 64 * word}",
            _transfer_call(function, f"%{name}_r", width, f"%{name}_p"),
        ]
    return lines


def _transfer_call(function: str, rows: str, stride: int, planes: str) -> str:
    if function == "rows_to_planes":
        return f"  call void @rows_to_planes(ptr {rows}, i64 {stride}, ptr {planes})"
    return f"  call void @planes_to_rows(ptr {planes}, i64 {stride}, ptr {rows})"
