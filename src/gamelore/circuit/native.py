"""LLVM: write IR with variables and loops, compile gates and kernels to machine code, and evaluate tapes.

- `Code` writes one function of IR. Its methods take and return the names of IR values: planes (512 lanes), 64-bit
  numbers, addresses and conditions (i1). A variable is stored in memory until LLVM moves it to a register, so `Code`
  writes no phi nodes.
- `Program` translates the gates of one circuit. The gates are divided into *chunks*, functions of about CHUNK gates.
  Inside a chunk, values are in registers. Between chunks, values are in temporary planes, which are reused. A loop of
  the circuit repeats its chunks until no lane of its variables changes.
- A *kernel* is code that is the same for all games. It is compiled once on each machine. It gets the data of a game as
  records of numbers and addresses.
- `TapedCode` evaluates tapes (tape.py) with such a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import Structure, addressof, c_int64, c_void_p
from dataclasses import dataclass
from functools import cache, partial, reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .aig import Circuit, GateLiteral, Loop, Node, schedule
from .cache import fingerprint, object_file
from .tape import ATTRIBUTES, COMMIT, END, GROUPS, HEADER, ONES, PLANE, SHAPES, VECTOR, Instructions, Tapes, outputs_of

ZERO = "zeroinitializer"
NUMBER = "i64"
WORDS_PER_PLANE = 8
CHUNK = 60  # number of gates in a chunk
LEVEL_1_GATES = 8000  # circuits with fewer gates are compiled at optimisation level 1, others at level 0
KERNEL_LEVEL = 2
DECLARATIONS = f"""
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.vector.reduce.or.v8i64({VECTOR})
declare {VECTOR} @llvm.ctpop.v8i64({VECTOR})
declare {VECTOR} @llvm.fshl.v8i64({VECTOR}, {VECTOR}, {VECTOR})
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
attributes #0 = {{ {ATTRIBUTES} }}
"""


class IRVariable:
    """A variable of a function: a plane or a number in memory that can be set again."""

    def __init__(self, code: Code, kind: str, value: str) -> None:
        self._code, self._kind = code, kind
        self._address = code.reserve(kind)
        self.set(value)

    def get(self) -> str:
        return self._code.line(f"load {self._kind}, ptr {self._address}, align {_alignment(self._kind)}")

    def set(self, value: str) -> None:
        self._code.do(f"store {self._kind} {value}, ptr {self._address}, align {_alignment(self._kind)}")


def _alignment(kind: str) -> int:
    return {VECTOR: 64, "i32": 4, "i16": 2, "i8": 1}.get(kind, 8)


def number_fields(names: str) -> list[tuple[str, type[c_int64]]]:
    """Return the fields of a record; each field is a number or an address of 64 bits. names: separated by spaces."""
    return [(name, c_int64) for name in names.split()]


class Code(Instructions):
    """Writer of one function. signature: the text after `define`, up to and including the parameters."""

    def __init__(self, signature: str) -> None:
        super().__init__()
        self._signature = signature
        self._reserved: list[str] = []
        self._num_labels = 0

    def text(self, returned: str = "void") -> str:
        """Return the text of the function; `returned` is the type and the name of its result."""
        body = [*self._reserved, *self.lines, f"  ret {returned}"]
        return "\n".join([f"define {self._signature} #0 {{", "entry:", *body, "}", ""])

    def do(self, instruction: str) -> None:
        """Append an instruction that has no result."""
        self.lines.append(f"  {instruction}")

    def reserve(self, kind: str, count: int = 1) -> str:
        """Return the address of memory for `count` values of this kind, valid until the function returns."""
        address = f"%m{len(self._reserved)}"
        self._reserved.append(f"  {address} = alloca {kind}, i64 {count}, align {_alignment(kind)}")
        return address

    def plane(self, value: str = ZERO) -> IRVariable:
        return IRVariable(self, VECTOR, value)

    def number(self, value: str = "0") -> IRVariable:
        return IRVariable(self, NUMBER, value)

    def at(self, address: str, index: str | int, kind: str = VECTOR) -> str:
        """Return the address of an element of an array."""
        return self.line(f"getelementptr {kind}, ptr {address}, i64 {index}")

    def get(self, address: str, index: str | int = 0, kind: str = VECTOR) -> str:
        """Load an element of an array."""
        return self.line(f"load {kind}, ptr {self.at(address, index, kind)}, align {_alignment(kind)}")

    def put(self, value: str, address: str, index: str | int = 0, kind: str = VECTOR) -> None:
        """Store an element of an array."""
        self.do(f"store {kind} {value}, ptr {self.at(address, index, kind)}, align {_alignment(kind)}")

    def field(self, record: str, layout: type[Structure], name: str, kind: str = NUMBER) -> str:
        """Load a field of a record. All fields of the record must be 64 bits wide."""
        return self.get(record, getattr(layout, name).offset // 8, kind)

    def set_field(self, record: str, layout: type[Structure], name: str, value: str) -> None:
        self.put(value, record, getattr(layout, name).offset // 8, NUMBER)

    def calc(self, operation: str, left: str | int, right: str | int) -> str:
        """Return the result of an operation on two numbers."""
        return self.line(f"{operation} i64 {left}, {right}")

    def compare(self, relation: str, left: str | int, right: str | int) -> str:
        """Return the condition that compares two numbers; the relation is eq, ne, ult, ..."""
        return self.line(f"icmp {relation} i64 {left}, {right}")

    def select(self, condition: str, yes: str | int, no: str | int) -> str:
        return self.line(f"select i1 {condition}, i64 {yes}, i64 {no}")

    def smaller(self, left: str | int, right: str | int) -> str:
        return self.line(f"call i64 @llvm.umin.i64(i64 {left}, i64 {right})")

    def larger(self, left: str | int, right: str | int) -> str:
        return self.line(f"call i64 @llvm.umax.i64(i64 {left}, i64 {right})")

    def lowest(self, bits: str) -> str:
        """Return the index of the lowest set bit of a number, which must not be 0."""
        return self.line(f"call i64 @llvm.cttz.i64(i64 {bits}, i1 true)")

    def without(self, plane: str, removed: str) -> str:
        return self.op("and", plane, self.negated(removed))

    def any_of(self, planes: Sequence[str]) -> str:
        """Return the lanes in which at least one of the planes is set."""
        return reduce(partial(self.op, "or"), planes)

    def chosen(self, mask: str, yes: str, no: str) -> str:
        """Return a plane with the lanes of `yes` where the mask is set, and the lanes of `no` elsewhere."""
        return self.op("xor", no, self.op("and", self.op("xor", yes, no), mask))

    def popcount(self, plane: str) -> str:
        """Return the number of set lanes in each word of a plane."""
        return self.line(f"call {VECTOR} @llvm.ctpop.v8i64({VECTOR} {plane})")

    def all_lanes(self, word: str) -> str:
        """Return a plane that contains the same word eight times."""
        first = self.line(f"insertelement {VECTOR} poison, i64 {word}, i64 0")
        return self.line(f"shufflevector {VECTOR} {first}, {VECTOR} poison, <8 x i32> {ZERO}")

    @contextmanager
    def loop(self, end: str | int, start: str | int = 0, step: int = 1) -> Iterator[str]:
        """Repeat the body for the numbers from `start` to `end` in steps of `step`; `end` is excluded."""
        index = self.number(str(start))
        with self.repeat(lambda: self.compare("ult", index.get(), end)):
            yield (now := index.get())
            index.set(self.calc("add", now, step))

    @contextmanager
    def repeat(self, condition: Callable[[], str]) -> Iterator[None]:
        """Repeat the body while the condition holds."""
        head, body, after = self._labels("head", "body", "after")
        self._begin(head)
        self.do(f"br i1 {condition()}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        yield
        self.do(f"br label %{head}")
        self.lines.append(f"{after}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run the body if the condition holds."""
        body, after = self._labels("then", "after")
        self.do(f"br i1 {condition}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        yield
        self._begin(after)

    @contextmanager
    def choice(self, condition: str) -> Iterator[Callable[[], None]]:
        """Branch on a condition. Write the code for true, call the yielded function, then write the code for false."""
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
        """Repeat the body with the index of each set bit of a number, lowest first."""
        rest = self.number(word)
        with self.repeat(lambda: self.compare("ne", rest.get(), 0)):
            bits = rest.get()
            yield self.lowest(bits)
            rest.set(self.calc("and", bits, self.calc("sub", bits, 1)))

    @contextmanager
    def each_lane(self, plane: str) -> Iterator[str]:
        """Repeat the body for each set lane of a plane, in order."""
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


class Program:
    """The IR of one group of outputs: function `<name>`, and functions `<name>_chunk<i>`, which it calls in order."""

    def __init__(self, circuit: Circuit, name: str) -> None:
        self.circuit, self.name = circuit, name
        self.literals, self.layout = outputs_of(circuit, name)
        self.functions: list[str] = []
        self.calls: list[str] = []
        self.plane_of: dict[Node, int] = {}
        self.free: list[int] = []
        self.expiring: dict[int, list[Node]] = {}  # chunk -> nodes whose planes are free after this chunk
        self.num_planes = self.layout.temporaries
        self.num_chunks = 0
        self.steps = [(list(_chunks(step.gates.tolist())), step.loop) for step in schedule(circuit, self.literals)]
        self.inverted = self._polarity()
        self.last_use = self._last_uses()

    def text(self) -> str:
        """Return the text of all functions. The last one takes the address of the buffer and evaluates one block."""
        for number, (chunks, loop) in enumerate(self.steps):
            self._emit_step(number, chunks, loop)
        self._emit_outputs()
        body = "\n".join(self.calls)
        self.functions.append(f"define void @{self.name}(ptr %p) #0 {{\nentry:\n{body}\n  ret void\n}}\n")
        return "\n".join(self.functions)

    def _polarity(self) -> set[Node]:
        """Return the gates that are read more often with negation than without; their negations are stored."""
        balance: Counter[Node] = Counter()
        gates = (gate for chunks, _ in self.steps for chunk in chunks for gate in chunk)
        read = (literal for gate in gates for literal in self.operands(gate))
        for literal in chain(read, self.literals):
            balance[literal >> 1] += 1 if literal & 1 else -1
        return {node for node, surplus in balance.items() if surplus > 0 and self.circuit.left[node] >= 0}

    def operands(self, gate: Node) -> tuple[GateLiteral, GateLiteral]:
        return self.circuit.left[gate], self.circuit.right[gate]

    def _last_uses(self) -> dict[Node, int]:
        """Return the number of the last chunk that reads each node; a loop reads its nodes until its last chunk."""
        last: dict[Node, int] = {}
        first = 0
        for chunks, loop in self.steps:
            end = first + len(chunks)
            for number, gates in enumerate(chunks, start=first):
                for gate in gates:
                    for literal in self.operands(gate):
                        last[literal >> 1] = end if loop else number
            if loop:
                last.update((literal >> 1, end) for literal in loop.results)
                for node in loop.variables:
                    last.setdefault(node, end)
            first = end + bool(loop)
        last.update((literal >> 1, first) for literal in self.literals)
        return last

    def _emit_step(self, number: int, chunks: Sequence[Sequence[Node]], loop: Loop | None) -> None:
        if loop is None:
            self.calls += map(self._emit_chunk, chunks)
            return
        reset = _Chunk(self)
        for node in loop.variables:
            reset.store(self._assign_plane(node), ZERO)
        self.calls.append(self._function(f"reset{number}", reset))
        self.calls += [f"  br label %sweep{number}", f"sweep{number}:", *map(self._emit_chunk, chunks)]
        self.calls.append(f"  %again{number} = {self._emit_commit(loop).lstrip()}")
        self.calls += [f"  br i1 %again{number}, label %sweep{number}, label %after{number}", f"after{number}:"]

    def _function(self, name: str, chunk: _Chunk, returned: str = "void") -> str:
        """Append a function and return the instruction that calls it. returned: the type and the name of its result."""
        name, (kind, *_) = f"{self.name}_{name}", returned.split()
        body = [*chunk.lines, f"  ret {returned}"]
        self.functions.append("\n".join([f"define internal {kind} @{name}(ptr %p) #0 {{", *body, "}", ""]))
        return f"  call {kind} @{name}(ptr %p)"

    def _emit_chunk(self, gates: Sequence[Node]) -> str:
        """Write a function that evaluates these gates and stores the values for later chunks; return its call."""
        chunk = _Chunk(self)
        number = self.num_chunks
        for gate in gates:
            chunk.gate(gate)
        for gate in gates:
            if self.last_use[gate] > number:
                chunk.store(self._assign_plane(gate), chunk.values[gate])
        self._release(number)
        return self._function(f"chunk{number}", chunk)

    def _emit_commit(self, loop: Loop) -> str:
        """Write a function that sets the variables of a loop to their results; return its call.

        The function returns whether any lane of a variable changed.
        """
        chunk = _Chunk(self)
        number = self.num_chunks
        changes = ZERO
        results = [chunk.literal(literal) for literal in loop.results]
        for node, new in zip(loop.variables, results, strict=True):
            changed = chunk.op("xor", chunk.value(node), new)
            changes = chunk.op("or", changes, changed)
        for node, new in zip(loop.variables, results, strict=True):
            chunk.store(self._assign_plane(node), new)
        self._release(number)
        return self._function(f"chunk{number}", chunk, f"i1 {chunk.any(changes)}")

    def _emit_outputs(self) -> None:
        """Write the functions that copy the outputs to their planes."""
        for part in _chunks(range(len(self.literals))):
            chunk = _Chunk(self)
            for index in part:
                chunk.store(self.layout.outputs + index, chunk.literal(self.literals[index]))
            self.calls.append(self._function(f"outputs{part[0]}", chunk))

    def plane(self, node: Node) -> int:
        """Return the index of the plane of a node, which an earlier chunk or the caller has stored."""
        return self.layout.input(node) if node <= self.circuit.num_inputs else self.plane_of[node]

    def _assign_plane(self, node: Node) -> int:
        """Return the index of the plane of a node. At first use, assign a plane to the node."""
        if node not in self.plane_of:
            if not self.free:
                self.free.append(self.num_planes)
                self.num_planes += 1
            self.plane_of[node] = self.free.pop()
            self.expiring.setdefault(self.last_use[node], []).append(node)
        return self.plane_of[node]

    def _release(self, chunk: int) -> None:
        """End a chunk and release the planes that no later chunk reads."""
        self.free += [self.plane_of[node] for node in self.expiring.pop(chunk, ())]
        self.num_chunks = chunk + 1


def _chunks(gates: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Cut a sequence into parts of CHUNK items."""
    for start in range(0, len(gates), CHUNK):
        yield gates[start : start + CHUNK]


class _Chunk(Instructions):
    """The instructions of one function of a `Program`."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.values: dict[Node, str] = {}

    def value(self, node: Node) -> str:
        """Return the value of a node as it is stored, perhaps negated. At first use, load it."""
        if node not in self.values:
            self.values[node] = self.load(self.program.plane(node))
        return self.values[node]

    def literal(self, literal: GateLiteral) -> str:
        """Return the plane of a literal."""
        if literal <= 1:
            return ONES if literal else ZERO
        value = self.value(literal >> 1)
        return self.negated(value) if self._flipped(literal) else value

    def _flipped(self, literal: GateLiteral) -> bool:
        return bool(literal & 1) != ((literal >> 1) in self.program.inverted)

    def gate(self, node: Node) -> None:
        """Write the instructions for a gate, or for its negation, with as few NOT instructions as possible."""
        left, right = self.program.operands(node)
        x, y = self.value(left >> 1), self.value(right >> 1)
        flip_x, flip_y = self._flipped(left), self._flipped(right)
        inverted = node in self.program.inverted
        if flip_x == flip_y:
            result = self.op("or" if flip_x else "and", x, y)
            self.values[node] = result if inverted == flip_x else self.negated(result)
            return
        plain, flipped = (y, x) if flip_x else (x, y)
        if inverted:
            self.values[node] = self.op("or", self.negated(plain), flipped)
        else:
            self.values[node] = self.op("and", plain, self.negated(flipped))


def compile_circuit(circuit: Circuit) -> bytes:
    """Return an object file with one function for each group of outputs. Each takes the address of the planes."""
    texts, num_planes = [], 0
    for name in GROUPS:
        program = Program(circuit, name)
        texts.append(program.text())
        num_planes = max(num_planes, program.num_planes)
    # Level 1 takes about twice the compile time of level 0, and its code is a third faster.
    level = 1 if circuit.num_gates < LEVEL_1_GATES else 0
    return assemble("\n".join([*texts, f"@num_planes = constant i64 {num_planes}", DECLARATIONS]), level)


def assemble(text: str, level: int) -> bytes:
    """Compile LLVM IR to an object file for this CPU. At KERNEL_LEVEL, run optimisation passes over the IR first."""
    import llvmlite.binding as llvm

    machine = target_machine(level)
    module = llvm.parse_assembly(text)
    if level == KERNEL_LEVEL:
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()  # moves variables to registers
        passes.add_simplify_cfg_pass()
        passes.add_loop_rotate_pass()  # moves the test of a loop to its end
        passes.add_instruction_combine_pass()
        passes.run(module, builder)
    return bytes(machine.emit_object(module))


def target_machine(level: int) -> Any:
    """Return the code generator of LLVM for this CPU with all its features."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=level, jit=True
    )


@dataclass(frozen=True, slots=True)
class OwnRecord:
    """A record for machine code, with its own memory, for callers that are machine code themselves.

    arrays: memory that the caller fills or reads, by name. kept: other memory that the record points to, and the owners
    of the code.
    """

    record: Structure
    arrays: dict[str, NDArray[Any]]
    kept: tuple[object, ...]

    @property
    def address(self) -> int:
        return addressof(self.record)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The fields of the record, int64[fields], as shared memory."""
        numbers: NDArray[np.int64] = np.frombuffer(memoryview(self.record), np.int64)
        return numbers


class LoadedCode:
    """Object code in executable memory for the lifetime of this object."""

    def __init__(self, object_file: bytes) -> None:
        import llvmlite.binding as llvm

        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(0))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
        self._engine.finalize_object()

    def address(self, function: str) -> int:
        """Return the address of a function."""
        return int(self._engine.get_function_address(function))

    @property
    def num_planes(self) -> int:
        """Number of planes of the buffer that the functions of a compiled circuit need."""
        return c_int64.from_address(self.address_of_data("num_planes")).value

    def address_of_data(self, name: str) -> int:
        """Return the address of a global variable."""
        return int(self._engine.get_global_value_address(name))


@cache
def compiled_kernel(text: str) -> LoadedCode:
    """Return the functions of this IR. The same text is loaded only once in a process."""
    return load_kernel(text)


def load_kernel(text: str) -> LoadedCode:
    """Load the functions and data of this IR, from the cache if possible; otherwise compile them."""
    return LoadedCode(object_file(text + DECLARATIONS, lambda ir: assemble(ir, KERNEL_LEVEL)))


def compiled(circuit: Circuit) -> LoadedCode:
    """Load the functions of a circuit, from the cache if possible; otherwise compile them."""
    return LoadedCode(object_file(fingerprint(circuit), lambda _: compile_circuit(circuit)))


WORD = "i32"


class TapedCode:
    """Functions that evaluate tapes, by name. Each function takes the address of the buffer of planes."""

    def __init__(self, tapes: Tapes) -> None:
        self.num_planes = tapes.num_planes
        self._words = tapes.words  # this reference keeps the words in memory for the machine code
        self._code = load_kernel(_tape_code(list(tapes.words)))
        for name, words in tapes.words.items():
            c_void_p.from_address(self._code.address_of_data(f"{name}_tape")).value = words.ctypes.data

    def address(self, function: str) -> int:
        """Return the address of a function. A caller that keeps this bound method keeps the tapes in memory."""
        return self._code.address(function)


def _tape_code(names: list[str]) -> str:
    """Return the IR of functions `<name>(planes)`. The global variable `<name>_tape` has the address of the tape."""
    functions = []
    for name in names:
        code = Code(f"void @{name}(ptr %p)")
        code.do(f"call void @evaluate(ptr %p, ptr {code.line(f'load ptr, ptr @{name}_tape')})")
        functions += [f"@{name}_tape = global ptr null", code.text()]
    return "\n".join([_evaluate(), *functions])


class _TapeCode(Code):
    """Writer of a function that reads the tape `%t` word by word and works on the planes `%p`."""

    def __init__(self, signature: str) -> None:
        super().__init__(signature)
        self.position = self.number()  # index of the next word

    def word(self, ahead: int = 0) -> str:
        """Load the word of the tape that is `ahead` words after the position, as a number."""
        position = self.calc("add", self.position.get(), ahead)
        return self.line(f"zext i32 {self.get('%t', position, WORD)} to i64")

    def skip(self, words: int) -> None:
        """Move the position forward by some words."""
        self.position.set(self.calc("add", self.position.get(), words))

    def load_at(self, offset: str) -> str:
        """Load the plane with this offset in bytes."""
        return self.line(f"load {VECTOR}, ptr {self._byte(offset)}, align {PLANE}")

    def store_at(self, offset: str, plane: str) -> None:
        self.do(f"store {VECTOR} {plane}, ptr {self._byte(offset)}, align {PLANE}")

    def _byte(self, offset: str) -> str:
        return self.line(f"getelementptr i8, ptr %p, i64 {offset}")

    def mask(self, flag: str) -> str:
        """Return a plane with all lanes set if the number `flag` is 1, and no lane set if it is 0."""
        return self.all_lanes(self.calc("sub", 0, flag))


def _evaluate() -> str:
    """Return the IR of the function `evaluate(planes, tape)`."""
    code = _TapeCode("internal void @evaluate(ptr %p, ptr %t)")
    shape = code.number()

    def more() -> str:
        shape.set(code.word())
        return code.compare("ne", shape.get(), END)

    runs = {number: partial(_run_of, code, *operands) for number, operands in enumerate(SHAPES, start=1)}
    runs[COMMIT] = partial(_commit, code)
    with code.repeat(more), ExitStack() as choices:
        for number, run in runs.items():
            otherwise = choices.enter_context(code.choice(code.compare("eq", shape.get(), number)))
            run()
            otherwise()
        _run_of_any_shape(code)
    return code.text()


def _run_of(code: _TapeCode, num_plain: int, num_negated: int) -> None:
    """Write the code for a run of gates with one of the SHAPES; it computes each gate in registers."""
    inverted, count = code.mask(code.word(1)), code.word(4)
    code.skip(HEADER)
    with code.loop(count):
        planes = [code.load_at(code.word(k)) for k in range(1, 1 + num_plain + num_negated)]
        result = ONES
        for plane in planes[:num_plain]:
            result = code.op("and", result, plane)
        if num_negated:
            result = code.without(result, code.any_of(planes[num_plain:]))
        code.store_at(code.word(), code.op("xor", result, inverted))
        code.skip(1 + num_plain + num_negated)


def _run_of_any_shape(code: _TapeCode) -> None:
    """Write the code for a run of gates with any number of operands; it reads one operand after the other."""
    inverted, num_plain, num_negated, count = code.mask(code.word(1)), code.word(2), code.word(3), code.word(4)
    code.skip(HEADER)
    with code.loop(count):
        result_offset = code.word()
        code.skip(1)
        result = code.plane(ONES)
        with code.loop(num_plain):
            result.set(code.op("and", result.get(), code.load_at(code.word())))
            code.skip(1)
        with code.loop(num_negated):
            result.set(code.without(result.get(), code.load_at(code.word())))
            code.skip(1)
        code.store_at(result_offset, code.op("xor", result.get(), inverted))


def _commit(code: _TapeCode) -> None:
    """Write the code for the end of a sweep, which sets the variables of a loop to their results.

    If any variable changed, the position goes back to the start of the sweep.
    """
    start, back, count = code.position.get(), code.word(2), code.word(4)
    code.skip(HEADER)
    changed = code.plane()
    with code.loop(count):
        variable, result = code.word(), code.word(1)
        new = code.load_at(code.calc("and", result, -2))
        new = code.op("xor", new, code.mask(code.calc("and", result, 1)))
        changed.set(code.op("or", changed.get(), code.op("xor", new, code.load_at(variable))))
        code.store_at(variable, new)
        code.skip(2)
    with code.when(code.any(changed.get())):
        code.position.set(code.calc("sub", start, back))
