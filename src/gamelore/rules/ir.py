"""LLVM IR written with variables, loops and branches: how the code is made that is the same for every game.

A value is its name in the IR: of a *plane* (512 lanes), of a 64-bit number, of an address or of a condition (i1). A
variable lies in memory until LLVM makes a register of it (kernels.py), so that no phi node has to be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import Structure

from .planes import VECTOR, Instructions

ZERO = "zeroinitializer"
NUMBER = "i64"
WORDS_PER_PLANE = 8


class Variable:
    """A plane or a number that changes."""

    def __init__(self, code: Code, kind: str, value: str) -> None:
        self._code, self._kind = code, kind
        self._place = code.reserve(kind)
        self.set(value)

    def get(self) -> str:
        return self._code.line(f"load {self._kind}, ptr {self._place}, align {_alignment(self._kind)}")

    def set(self, value: str) -> None:
        self._code.do(f"store {self._kind} {value}, ptr {self._place}, align {_alignment(self._kind)}")


def _alignment(kind: str) -> int:
    return {VECTOR: 64, "i32": 4, "i16": 2, "i8": 1}.get(kind, 8)


class Code(Instructions):
    """One function, from its signature (what follows `define`) to its text."""

    def __init__(self, signature: str) -> None:
        super().__init__()
        self._signature = signature
        self._reserved: list[str] = []
        self._num_labels = 0

    def text(self, returned: str = "void") -> str:
        """The whole function; `returned` is the value with its type."""
        body = [*self._reserved, *self.lines, f"  ret {returned}"]
        return "\n".join([f"define {self._signature} #0 {{", "entry:", *body, "}", ""])

    def do(self, instruction: str) -> None:
        """Appends an instruction that gives no value."""
        self.lines.append(f"  {instruction}")

    def reserve(self, kind: str, count: int = 1) -> str:
        """The address of memory for `count` values of this kind, until the function returns."""
        place = f"%m{len(self._reserved)}"
        self._reserved.append(f"  {place} = alloca {kind}, i64 {count}, align {_alignment(kind)}")
        return place

    def plane(self, value: str = ZERO) -> Variable:
        return Variable(self, VECTOR, value)

    def number(self, value: str = "0") -> Variable:
        return Variable(self, NUMBER, value)

    # Memory.

    def at(self, address: str, index: str | int, kind: str = VECTOR) -> str:
        """The address of an element of an array."""
        return self.line(f"getelementptr {kind}, ptr {address}, i64 {index}")

    def get(self, address: str, index: str | int = 0, kind: str = VECTOR) -> str:
        """An element of an array."""
        return self.line(f"load {kind}, ptr {self.at(address, index, kind)}, align {_alignment(kind)}")

    def put(self, value: str, address: str, index: str | int = 0, kind: str = VECTOR) -> None:
        """Stores an element of an array."""
        self.do(f"store {kind} {value}, ptr {self.at(address, index, kind)}, align {_alignment(kind)}")

    def field(self, record: str, layout: type[Structure], name: str, kind: str = NUMBER) -> str:
        """A field of a record, all of whose fields are 64 bits wide."""
        return self.get(record, getattr(layout, name).offset // 8, kind)

    def set_field(self, record: str, layout: type[Structure], name: str, value: str) -> None:
        self.put(value, record, getattr(layout, name).offset // 8, NUMBER)

    # Numbers.

    def calc(self, operation: str, left: str | int, right: str | int) -> str:
        """An operation on two numbers."""
        return self.line(f"{operation} i64 {left}, {right}")

    def compare(self, relation: str, left: str | int, right: str | int) -> str:
        """A condition on two numbers: eq, ne, ult, ..."""
        return self.line(f"icmp {relation} i64 {left}, {right}")

    def select(self, condition: str, yes: str | int, no: str | int) -> str:
        return self.line(f"select i1 {condition}, i64 {yes}, i64 {no}")

    def smaller(self, left: str | int, right: str | int) -> str:
        return self.line(f"call i64 @llvm.umin.i64(i64 {left}, i64 {right})")

    def larger(self, left: str | int, right: str | int) -> str:
        return self.line(f"call i64 @llvm.umax.i64(i64 {left}, i64 {right})")

    def lowest(self, bits: str) -> str:
        """The index of a number's lowest set bit; the number is not 0."""
        return self.line(f"call i64 @llvm.cttz.i64(i64 {bits}, i1 true)")

    # Planes.

    def without(self, plane: str, removed: str) -> str:
        return self.op("and", plane, self.negated(removed))

    def any_of(self, planes: Sequence[str]) -> str:
        """The lanes in which at least one of the planes is set."""
        total = planes[0]
        for plane in planes[1:]:
            total = self.op("or", total, plane)
        return total

    def chosen(self, mask: str, yes: str, no: str) -> str:
        """Lane by lane: yes where the mask is set, else no."""
        return self.op("xor", no, self.op("and", self.op("xor", yes, no), mask))

    def popcount(self, plane: str) -> str:
        """For each word of a plane the number of its set lanes."""
        return self.line(f"call {VECTOR} @llvm.ctpop.v8i64({VECTOR} {plane})")

    def all_lanes(self, word: str) -> str:
        """A plane of eight times the same word."""
        one = self.line(f"insertelement {VECTOR} poison, i64 {word}, i64 0")
        return self.line(f"shufflevector {VECTOR} {one}, {VECTOR} poison, <8 x i32> {ZERO}")

    # Control.

    @contextmanager
    def loop(self, end: str | int, start: str | int = 0, step: int = 1) -> Iterator[str]:
        """The body for each number from start up to, not including, end."""
        index = self.number(str(start))
        with self.repeat(lambda: self.compare("ult", index.get(), end)):
            yield (now := index.get())
            index.set(self.calc("add", now, step))

    @contextmanager
    def repeat(self, condition: Callable[[], str]) -> Iterator[None]:
        """The body again and again while the condition, asked before, holds."""
        head, body, after = self._labels("head", "body", "after")
        self._begin(head)
        self.do(f"br i1 {condition()}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        yield
        self.do(f"br label %{head}")
        self.lines.append(f"{after}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        body, after = self._labels("then", "after")
        self.do(f"br i1 {condition}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        yield
        self._begin(after)

    @contextmanager
    def choice(self, condition: str) -> Iterator[Callable[[], None]]:
        """What is written before the call of what this yields is done where the condition holds, the rest elsewhere."""
        yes, no, after = self._labels("yes", "no", "after")
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")
        self.lines.append(f"{yes}:")

        def otherwise() -> None:
            self.do(f"br label %{after}")
            self.lines.append(f"{no}:")

        yield otherwise
        self._begin(after)

    @contextmanager
    def each_bit(self, word: str) -> Iterator[str]:
        """The body for each set bit of a number, lowest first, with its index."""
        rest = self.number(word)
        with self.repeat(lambda: self.compare("ne", rest.get(), 0)):
            bits = rest.get()
            yield self.lowest(bits)
            rest.set(self.calc("and", bits, self.calc("sub", bits, 1)))

    @contextmanager
    def each_lane(self, plane: str) -> Iterator[str]:
        """The body for each set lane of a plane, in order."""
        memory = self.reserve(VECTOR)
        self.put(plane, memory)
        with self.loop(WORDS_PER_PLANE) as word, self.each_bit(self.get(memory, word, NUMBER)) as bit:
            yield self.calc("or", self.calc("shl", word, 6), bit)

    def _labels(self, *names: str) -> list[str]:
        self._num_labels += 1
        return [f"{name}{self._num_labels}" for name in names]

    def _begin(self, label: str) -> None:
        self.do(f"br label %{label}")
        self.lines.append(f"{label}:")
