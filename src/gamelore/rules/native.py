"""Gates to LLVM IR to machine code.

Gates become chunks, functions of about CHUNK gates that take the buffer's address; inside a chunk values live in
registers, between chunks in temporaries whose places are reused. A loop of the circuit sweeps its chunks until no
plane changes in any lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import c_int64
from typing import Any, NamedTuple

from .circuit import Circuit, GateLiteral, Loop, Node
from .planes import ATTRIBUTES, GROUPS, ONES, VECTOR, Instructions, Layout, layout_of
from .schedule import schedule

CHUNK = 60
DECLARATIONS = f"""
declare i64 @llvm.vector.reduce.or.v8i64({VECTOR})
attributes #0 = {{ {ATTRIBUTES} }}
"""
LEVEL_1_GATES = 8000  # larger circuits are compiled at level 0


class _Step(NamedTuple):
    """A step of the schedule, as Python reads it fastest."""

    gates: list[Node]
    loop: Loop | None


class Program:
    """The IR text of one group of outputs, as functions `<name>_chunk<i>` and one that calls them in order."""

    def __init__(self, circuit: Circuit, name: str, literals: Sequence[GateLiteral], layout: Layout) -> None:
        self.circuit, self.name, self.literals, self.layout = circuit, name, literals, layout
        self.functions: list[str] = []
        self.calls: list[str] = []
        self.places: dict[Node, int] = {}
        self.free: list[int] = []
        self.expiring: dict[int, list[Node]] = {}  # chunk number -> the nodes whose places are free after it
        self.num_planes = layout.temporaries
        self.num_chunks = 0
        self.steps = [_Step(step.gates.tolist(), step.loop) for step in schedule(circuit, literals)]
        self.inverted = self._polarity()
        self.last_use = self._last_uses()

    def text(self) -> str:
        """All functions; the last takes the buffer's address and evaluates one block."""
        for number, step in enumerate(self.steps):
            self._emit_step(number, step)
        self._emit_outputs()
        body = "\n".join(self.calls)
        self.functions.append(f"define void @{self.name}(ptr %p) #0 {{\nentry:\n{body}\n  ret void\n}}\n")
        return "\n".join(self.functions)

    def _polarity(self) -> set[Node]:
        """Gates that are read more often negated than plain are stored negated."""
        balance: dict[Node, int] = {}
        read = [literal for step in self.steps for gate in step.gates for literal in self._operands(gate)]
        for literal in (*read, *self.literals):
            balance[literal >> 1] = balance.get(literal >> 1, 0) + (1 if literal & 1 else -1)
        return {node for node, surplus in balance.items() if surplus > 0 and self.circuit.left[node] >= 0}

    def _operands(self, gate: Node) -> tuple[GateLiteral, GateLiteral]:
        return self.circuit.left[gate], self.circuit.right[gate]

    def _last_uses(self) -> dict[Node, int]:
        """Node -> the chunk that reads it last; all readers in a loop count as that loop's last chunk."""
        last: dict[Node, int] = {}
        chunk = 0
        for step in self.steps:
            chunks = list(_chunks(step.gates))
            end = chunk + len(chunks)
            for offset, gates in enumerate(chunks):
                for gate in gates:
                    for literal in self._operands(gate):
                        last[literal >> 1] = end if step.loop else chunk + offset
            if step.loop:
                for literal in step.loop.results:
                    last[literal >> 1] = end
                for node in step.loop.variables:
                    last.setdefault(node, end)
                end += 1
            chunk = end
        for literal in self.literals:
            last[literal >> 1] = chunk
        return last

    def _emit_step(self, number: int, step: _Step) -> None:
        if step.loop is None:
            for gates in _chunks(step.gates):
                self.calls.append(self._emit_chunk(gates))
            return
        label = f"sweep{number}"
        self.calls.append(self._emit_reset(number, step.loop))
        self.calls += [f"  br label %{label}", f"{label}:"]
        self.calls += [self._emit_chunk(gates) for gates in _chunks(step.gates)]
        commit = self._emit_commit(step.loop)
        self.calls.append(f"  %again{number} = call i1 @{commit}(ptr %p)")
        self.calls += [f"  br i1 %again{number}, label %{label}, label %after{number}", f"after{number}:"]

    def _emit_chunk(self, gates: Sequence[Node]) -> str:
        """One function for these gates; values that later chunks read are stored."""
        chunk = _Chunk(self)
        number = self.num_chunks
        for gate in gates:
            chunk.gate(gate)
        for gate in gates:
            if self.last_use[gate] > number:
                chunk.store(self._place(gate), chunk.values[gate])
        self._release(number)
        name = f"{self.name}_chunk{number}"
        self.functions.append(chunk.function(name, "void", "  ret void"))
        return f"  call void @{name}(ptr %p)"

    def _emit_reset(self, number: int, loop: Loop) -> str:
        """Sets the variables to false."""
        chunk = _Chunk(self)
        for node in loop.variables:
            chunk.store(self._place(node), "zeroinitializer")
        name = f"{self.name}_reset{number}"
        self.functions.append(chunk.function(name, "void", "  ret void"))
        return f"  call void @{name}(ptr %p)"

    def _emit_commit(self, loop: Loop) -> str:
        """Sets the variables to the results; true where any lane of any of them changed."""
        chunk = _Chunk(self)
        number = self.num_chunks
        changes = "zeroinitializer"
        results = [chunk.literal(literal) for literal in loop.results]
        for node, new in zip(loop.variables, results, strict=True):
            changed = chunk.op("xor", chunk.value(node), new)
            changes = chunk.op("or", changes, changed)
        for node, new in zip(loop.variables, results, strict=True):
            chunk.store(self._place(node), new)
        self._release(number)
        again = chunk.any(changes)
        name = f"{self.name}_chunk{number}"
        self.functions.append(chunk.function(name, "i1", f"  ret i1 {again}"))
        return name

    def _emit_outputs(self) -> None:
        """Copies the outputs to their place."""
        for part in _chunks(range(len(self.literals))):
            chunk = _Chunk(self)
            for index in part:
                chunk.store(self.layout.outputs + index, chunk.literal(self.literals[index]))
            name = f"{self.name}_outputs{part[0]}"
            self.functions.append(chunk.function(name, "void", "  ret void"))
            self.calls.append(f"  call void @{name}(ptr %p)")

    def plane(self, node: Node) -> int:
        """Where a node's plane lies that an earlier chunk, or the caller, stored."""
        return self.layout.input(node) if node <= self.circuit.num_inputs else self.places[node]

    def _place(self, node: Node) -> int:
        if node not in self.places:
            if not self.free:
                self.free.append(self.num_planes)
                self.num_planes += 1
            self.places[node] = self.free.pop()
            self.expiring.setdefault(self.last_use[node], []).append(node)
        return self.places[node]

    def _release(self, chunk: int) -> None:
        for node in self.expiring.pop(chunk, ()):
            self.free.append(self.places[node])
        self.num_chunks = chunk + 1


def _chunks(gates: Sequence[Node]) -> Iterator[Sequence[Node]]:
    for start in range(0, len(gates), CHUNK):
        yield gates[start : start + CHUNK]


class _Chunk(Instructions):
    """The instructions of one function."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.values: dict[Node, str] = {}

    def value(self, node: Node) -> str:
        """A node as it is stored, loaded at its first use."""
        if node not in self.values:
            self.values[node] = self.load(self.program.plane(node))
        return self.values[node]

    def literal(self, literal: GateLiteral) -> str:
        """A literal's plane."""
        if literal <= 1:
            return ONES if literal else "zeroinitializer"
        value = self.value(literal >> 1)
        return self.negated(value) if self._flipped(literal) else value

    def _flipped(self, literal: GateLiteral) -> bool:
        return bool(literal & 1) != ((literal >> 1) in self.program.inverted)

    def gate(self, node: Node) -> None:
        """AND of two literals, or its negation, with as few NOTs as the stored polarities allow."""
        left, right = self.program.circuit.left[node], self.program.circuit.right[node]
        x, y = self.value(left >> 1), self.value(right >> 1)
        flip_x, flip_y = self._flipped(left), self._flipped(right)
        inverted = node in self.program.inverted
        if flip_x and flip_y:
            result = self.op("or", x, y)
            self.values[node] = result if inverted else self.negated(result)
        elif not (flip_x or flip_y):
            result = self.op("and", x, y)
            self.values[node] = self.negated(result) if inverted else result
        else:
            plain, flipped = (y, x) if flip_x else (x, y)
            if inverted:
                self.values[node] = self.op("or", self.negated(plain), flipped)
            else:
                self.values[node] = self.op("and", plain, self.negated(flipped))

    def function(self, name: str, returns: str, last: str) -> str:
        return "\n".join([f"define internal {returns} @{name}(ptr %p) #0 {{", *self.lines, last, "}", ""])


def compile_circuit(circuit: Circuit) -> bytes:
    """An object file with a function for each group, which takes the address of the planes."""
    texts, num_planes = [], 0
    for name, outputs in GROUPS.items():
        literals = [literal for output in outputs for literal in circuit.outputs[output]]
        program = Program(circuit, name, literals, layout_of(circuit, name))
        texts.append(program.text())
        num_planes = max(num_planes, program.num_planes)
    return assemble("\n".join([*texts, f"@num_planes = constant i64 {num_planes}"]), _level(circuit))


def _level(circuit: Circuit) -> int:
    """Level 1 compiles for about twice the time of level 0 and runs a third faster: worth it while that is short."""
    return 1 if circuit.num_gates < LEVEL_1_GATES else 0


def assemble(text: str, level: int) -> bytes:
    """LLVM IR to an object file for this CPU."""
    import llvmlite.binding as llvm

    machine = target_machine(level)
    module = llvm.parse_assembly(text + DECLARATIONS)
    return bytes(machine.emit_object(module))


def target_machine(level: int) -> Any:
    """LLVM's code generator for this CPU, all its features on."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=level, jit=True
    )


class LoadedCode:
    """Object code in executable memory, as long as this object lives."""

    def __init__(self, object_file: bytes) -> None:
        import llvmlite.binding as llvm

        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(0))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
        self._engine.finalize_object()

    def address(self, function: str) -> int:
        """Where a function begins."""
        address: int = self._engine.get_function_address(function)
        return address

    @property
    def num_planes(self) -> int:
        """The size of the largest buffer that the functions of a compiled circuit need."""
        return c_int64.from_address(self.address_of_data("num_planes")).value

    def address_of_data(self, name: str) -> int:
        """Where a global variable lies."""
        address: int = self._engine.get_global_value_address(name)
        return address
