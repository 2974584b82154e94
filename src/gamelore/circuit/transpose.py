"""Conversion between rows of packed states and bit planes of the compiled circuit; lists of legal moves.

The circuit takes up to 512 rows at a time. Bit b of word w in row i becomes a bit of plane 64 * w + b: bit i % 64 of
its word i // 64. Word w of 64 successive rows is a 64 x 64 matrix of bits, and eight such matrices are transposed at
once (Warren, Hacker's Delight, 7-3).

A single row is not transposed. Each of its bits is copied to all lanes of a plane, and the result is read from lane 0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, Structure, addressof, c_int64, c_void_p
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .aig import Circuit
from .native import NUMBER, Code, IRVariable, OwnRecord, compiled_kernel, number_fields
from .tape import LANES, PlaneLayout, splat, words, zero_planes

Words: TypeAlias = NDArray[np.uint64]
GROUP = 64  # planes in one transposition


class RowJob(Structure):
    """Argument of `run`: a function of the circuit, and its input rows (states and joint moves) and output rows.

    `joint` is 0 if the function reads no actions. The planes `first_output` to `first_output + num_outputs - 1` are
    copied to the rows of `out`. `fault` becomes 1 if an action is out of range.
    """

    _fields_ = number_fields(
        "function planes scratch num_rows states state_words joint num_roles first_action num_actions "
        "out first_output num_outputs fault"
    )


def rows_code() -> str:
    """Return the LLVM IR of `run(job)`, `count_bits(...)` and `list_moves(...)`."""
    parts = [transpose_code, _read, _write, _spread, _gather, _mark, _run, _count_bits, _list_moves]
    return "\n".join(part() for part in parts)


def transpose_code() -> str:
    """Return the IR of `transpose(from, to)`: transpose 64 planes as eight 64 x 64 matrices.

    It takes two passes of three rounds each.
    """
    code = Code("internal void @transpose(ptr %from, ptr %to)")
    for source, apart, distances in (("%from", 8, (32, 16, 8)), ("%to", 1, (4, 2, 1))):
        with code.loop(8) as i:
            first = i if apart == 8 else code.calc("shl", i, 3)
            indices = [code.calc("add", first, apart * k) for k in range(8)]
            values = [code.get(source, index) for index in indices]
            for distance in distances:
                _exchange(code, values, distance, distance // apart)
            for index, value in zip(indices, values, strict=True):
                code.put(value, "%to", index)
    return code.text()


def _exchange(code: Code, values: list[str], distance: int, step: int) -> None:
    """Swap bits between pairs of planes: plane k and plane k + `step`, for each k with k & step == 0.

    The bits of a plane are divided into fields of `distance` bits, in turn low and high. Each high field of plane k is
    swapped with the low field before it in plane k + `step`.
    """
    mask = splat(sum(1 << bit for bit in range(64) if not bit & distance))
    shift = splat(distance)
    for low in (k for k in range(8) if not k & step):
        a, b = values[low], values[low + step]
        changed = code.op("and", code.op("xor", code.op("lshr", a, shift), b), mask)
        values[low + step] = code.op("xor", b, changed)
        values[low] = code.op("xor", a, code.op("shl", changed, shift))


def word_index(code: Code, lane: str) -> str:
    """Return the index of the word of row `lane` in the buffer `scratch`, which has one word of each row.

    `_read` writes the word there and then transposes the buffer into 64 planes. `_write` transposes 64 planes into the
    buffer and then reads the word.
    """
    return code.calc("or", code.calc("shl", code.calc("and", lane, 63), 3), code.calc("lshr", lane, 6))


def _read() -> str:
    """`read(rows, width, lanes, planes, scratch)`: transpose `lanes` rows of `width` words into 64 * width planes."""
    code = Code("internal void @read(ptr %rows, i64 %width, i64 %lanes, ptr %planes, ptr %scratch)")
    with code.loop("%width") as word:
        column = code.at("%rows", word, NUMBER)
        with code.loop("%lanes") as lane:
            value = code.get(column, code.calc("mul", lane, "%width"), NUMBER)
            code.put(value, "%scratch", word_index(code, lane), NUMBER)
        planes = code.at("%planes", code.calc("shl", word, 6))
        code.do(f"call void @transpose(ptr %scratch, ptr {planes})")
    return code.text()


def _write() -> str:
    """`write(rows, count, lanes, planes, scratch)`: transpose `count` planes into rows, padded with 0 bits."""
    code = Code("internal void @write(ptr %rows, i64 %count, i64 %lanes, ptr %planes, ptr %scratch)")
    width = _width(code, "%count")
    with code.loop(width) as word:
        first = code.calc("shl", word, 6)
        code.do(f"call void @transpose(ptr {code.at('%planes', first)}, ptr %scratch)")
        mask = _ones(code, code.calc("sub", "%count", first))
        column = code.at("%rows", word, NUMBER)
        with code.loop("%lanes") as lane:
            value = code.get("%scratch", word_index(code, lane), NUMBER)
            code.put(code.calc("and", value, mask), column, code.calc("mul", lane, width), NUMBER)
    return code.text()


def _width(code: Code, bits: str) -> str:
    """Return the number of words in a row with `bits` bits; 1 for a row without bits."""
    return code.larger(_words(code, bits), 1)


def _words(code: Code, bits: str) -> str:
    return code.calc("lshr", code.calc("add", bits, 63), 6)


def _ones(code: Code, count: str) -> str:
    """Return a word with its lowest `count` bits set. If `count` is 64 or more, all bits are set."""
    some = code.calc("sub", code.calc("shl", 1, code.calc("and", count, 63)), 1)
    return code.select(code.compare("ult", count, 64), some, -1)


def _spread() -> str:
    """`spread(row, width, planes)`: copy each bit of one row to all lanes of a plane."""
    code = Code("internal void @spread(ptr %row, i64 %width, ptr %planes)")
    with code.loop("%width") as word:
        bits = code.get("%row", word, NUMBER)
        planes = code.at("%planes", code.calc("shl", word, 6))
        with code.loop(64) as k:
            bit = code.calc("and", code.calc("lshr", bits, k), 1)
            code.put(code.all_lanes(code.calc("sub", 0, bit)), planes, k)
    return code.text()


def _gather() -> str:
    """`gather(row, count, planes)`: copy lane 0 of `count` planes to the bits of one row."""
    code = Code("internal void @gather(ptr %row, i64 %count, ptr %planes)")
    with code.loop(_width(code, "%count")) as word:
        first = code.calc("shl", word, 6)
        planes = code.at("%planes", first)
        bits = code.number()
        with code.loop(code.smaller(code.calc("sub", "%count", first), 64)) as k:
            bit = code.calc("and", code.get(planes, code.calc("shl", k, 3), NUMBER), 1)
            bits.set(code.calc("or", bits.get(), code.calc("shl", bit, k)))
        code.put(bits.get(), "%row", word, NUMBER)
    return code.text()


def _mark() -> str:
    """`mark(job, joint, lanes, set)`: set the bit of each lane in the planes of the actions of the lane.

    If `set` is false, clear the words that contain these bits.
    """
    code = Code("internal void @mark(ptr %job, ptr %joint, i64 %lanes, i1 %set)")
    roles, num_actions = code.field("%job", RowJob, "num_roles"), code.field("%job", RowJob, "num_actions")
    actions = code.at(code.field("%job", RowJob, "planes", "ptr"), code.field("%job", RowJob, "first_action"))
    with code.loop("%lanes") as lane:
        word, bit = code.calc("lshr", lane, 6), code.calc("shl", 1, code.calc("and", lane, 63))
        with code.loop(roles) as role:
            index = code.calc("add", code.calc("mul", lane, roles), role)
            action = code.line(f"sext i32 {code.get('%joint', index, 'i32')} to i64")
            with code.choice(code.compare("ult", action, num_actions)) as otherwise:
                plane = code.at(actions, action)
                old = code.get(plane, word, NUMBER)
                new = code.line(f"select i1 %set, i64 {code.calc('or', old, bit)}, i64 0")
                code.put(new, plane, word, NUMBER)
                otherwise()
                code.set_field("%job", RowJob, "fault", "1")
    return code.text()


def _run() -> str:
    """`run(job)`: evaluate a function for all rows; see RowJob."""
    code = Code("void @run(ptr %job)")
    total, width = code.field("%job", RowJob, "num_rows"), code.field("%job", RowJob, "state_words")
    addresses = ("states", "joint", "out", "planes", "scratch")
    states, joint, out, planes, scratch = (code.field("%job", RowJob, name, "ptr") for name in addresses)
    count, roles = code.field("%job", RowJob, "num_outputs"), code.field("%job", RowJob, "num_roles")
    outputs = code.at(planes, code.field("%job", RowJob, "first_output"))
    out_width = _width(code, count)
    alone = code.compare("eq", total, 1)
    with code.loop(total, step=LANES) as first:
        lanes = code.smaller(code.calc("sub", total, first), LANES)
        rows = code.at(states, code.calc("mul", first, width), NUMBER)
        moves = code.at(joint, code.calc("mul", first, roles), "i32")
        results = code.at(out, code.calc("mul", first, out_width), NUMBER)
        with code.choice(alone) as otherwise:
            code.do(f"call void @spread(ptr {rows}, i64 {width}, ptr {planes})")
            otherwise()
            code.do(f"call void @read(ptr {rows}, i64 {width}, i64 {lanes}, ptr {planes}, ptr {scratch})")
        acting = code.line(f"icmp ne ptr {joint}, null")
        with code.when(acting):
            code.do(f"call void @mark(ptr %job, ptr {moves}, i64 {lanes}, i1 true)")
        code.do(f"call void {code.field('%job', RowJob, 'function', 'ptr')}(ptr {planes})")
        with code.when(acting):
            code.do(f"call void @mark(ptr %job, ptr {moves}, i64 {lanes}, i1 false)")
        with code.choice(alone) as otherwise:
            code.do(f"call void @gather(ptr {results}, i64 {count}, ptr {outputs})")
            otherwise()
            code.do(f"call void @write(ptr {results}, i64 {count}, i64 {lanes}, ptr {outputs}, ptr {scratch})")
    return code.text()


def _count_bits() -> str:
    """`count_bits(rows, words)`: return the number of bits that are 1."""
    code = Code("i64 @count_bits(ptr %rows, i64 %words)")
    total = code.number()
    with code.loop("%words") as word:
        bits = code.get("%rows", word, NUMBER)
        total.set(code.calc("add", total.get(), code.line(f"call i64 @llvm.ctpop.i64(i64 {bits})")))
    return code.text(f"i64 {total.get()}")


def _list_moves() -> str:
    """`list_moves(rows, count, roles, starts, offsets, actions, terminal)`: list the legal actions in rows of bits.

    A row has one bit for each action, then the terminal bit. The terminal bit of each row is written to `terminal` as a
    byte. Role r has the actions starts[r] to starts[r + 1] - 1. The legal actions of all rows are written to `actions`
    in order; offsets[i * roles + r + 1] is the number of actions written after row i and role r. No actions are
    written for a terminal row.
    """
    pointers = "ptr %starts, ptr %offsets, ptr %actions, ptr %terminal"
    code = Code(f"void @list_moves(ptr %rows, i64 %count, i64 %roles, {pointers})")
    num_actions = code.get("%starts", "%roles", NUMBER)
    width = _width(code, code.calc("add", num_actions, 1))
    written = code.number()
    with code.loop("%count") as index:
        row = code.at("%rows", code.calc("mul", index, width), NUMBER)
        offsets = code.at("%offsets", code.calc("mul", index, "%roles"), NUMBER)
        last = code.get(row, code.calc("lshr", num_actions, 6), NUMBER)
        over = code.calc("and", code.calc("lshr", last, code.calc("and", num_actions, 63)), 1)
        code.put(code.line(f"trunc i64 {over} to i8"), "%terminal", index, "i8")
        going_on = code.calc("sub", over, 1)
        with code.loop("%roles") as role:
            _list_role(code, row, role, going_on, written)
            code.put(written.get(), offsets, code.calc("add", role, 1), NUMBER)
    return code.text()


def _list_role(code: Code, row: str, role: str, mask: str, written: IRVariable) -> None:
    """Write the actions of a role whose bits are set in a row. Each word of the row is combined with `mask` by AND."""
    start, end = code.get("%starts", role, NUMBER), code.get("%starts", code.calc("add", role, 1), NUMBER)
    with code.loop(_words(code, end), code.calc("lshr", start, 6)) as word:
        first = code.calc("shl", word, 6)
        before = _ones(code, code.line(f"call i64 @llvm.usub.sat.i64(i64 {start}, i64 {first})"))
        own = code.calc("xor", _ones(code, code.calc("sub", end, first)), before)
        bits = code.calc("and", code.get(row, word, NUMBER), code.calc("and", own, mask))
        with code.each_bit(bits) as bit:
            index = written.get()
            code.put(code.line(f"trunc i64 {code.calc('or', first, bit)} to i32"), "%actions", index, "i32")
            written.set(code.calc("add", index, 1))


class Rows:
    """The functions of a compiled circuit, applied to packed rows. Several threads may call them at once.

    address_of: returns the address of a function in the loaded code, and keeps the code in memory.
    code: `run`, `count_bits` and `list_moves`. starts: int64[roles + 1], the first action of each role, for
    `list_moves`.
    """

    def __init__(self, address_of: Callable[[str], int], circuit: Circuit, num_planes: int) -> None:
        self._address_of = address_of
        # Outputs are read in blocks of 64 planes, and the last block may extend beyond the planes of the circuit.
        self._num_planes = num_planes + GROUP
        self.starts = np.cumsum([0, *map(len, circuit.actions)], dtype=np.int64)
        self._layout = layout = PlaneLayout(circuit.num_facts, circuit.num_actions, 0)
        moves, goals = circuit.num_actions, sum(map(len, circuit.goals))
        self._asked = {  # function, first output, number of outputs
            "legal": ("legal", layout.outputs, moves + 1),
            "terminal": ("legal", layout.outputs + moves, 1),
            "goal": ("goal", layout.outputs, goals),
            "next": ("next", layout.outputs, circuit.num_facts),
        }
        self.code = code = compiled_kernel(rows_code())
        self._run = CFUNCTYPE(None, c_void_p)(code.address("run"))
        self._count_bits = CFUNCTYPE(c_int64, c_void_p, c_int64)(code.address("count_bits"))
        arguments = [c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_void_p]
        self._list_moves = CFUNCTYPE(None, *arguments)(code.address("list_moves"))
        self._here = threading.local()

    @property
    def num_roles(self) -> int:
        return len(self.starts) - 1

    def ask(self, question: str, states: NDArray[np.uint64], joint: NDArray[np.int32] | None = None) -> Words:
        """Return the outputs uint64[batch, words] for a batch of states; "next" needs joint moves int32[batch, roles].

        question: "legal" (one bit for each action, then the terminal bit), "terminal", "goal" (one bit for each value
        of each role), or "next". Raises ValueError for rows of another shape or type, because machine code would read
        out of bounds. Raises ValueError for an action out of range, too.
        """
        self.check(states, joint)
        job = self._job(question)
        states = np.ascontiguousarray(states)
        out = np.empty((len(states), words(job.num_outputs)), np.uint64)
        job.num_rows, job.states, job.out = len(states), states.ctypes.data, out.ctypes.data
        joint = None if joint is None else np.ascontiguousarray(joint)
        job.joint = 0 if joint is None else joint.ctypes.data
        self._run(addressof(job))
        if job.fault:
            job.fault = 0
            raise ValueError(
                f"expected actions from 0 to {job.num_actions - 1}, got others; take actions from game.legal"
            )
        return out

    def check(self, states: NDArray[np.uint64], joint: NDArray[np.int32] | None = None) -> None:
        """Raise ValueError if states or joint moves do not have the shape and type that this circuit needs."""
        shape = (len(states), words(self._layout.num_facts))
        if states.shape != shape or states.dtype != np.uint64:
            raise ValueError(
                f"expected states uint64[batch, {shape[1]}], got {states.dtype}{list(states.shape)}; use states of "
                "this game, and write a single state as a batch of one: state[None]"
            )
        shape = (len(states), self.num_roles)
        if joint is not None and (joint.shape != shape or joint.dtype != np.int32):
            raise ValueError(f"expected joint moves int32{list(shape)}, got {joint.dtype}{list(joint.shape)}")

    def _job(self, question: str) -> RowJob:
        """Return the job of this thread for a question; its rows are not set yet."""
        try:
            jobs: dict[str, RowJob] = self._here.jobs
        except AttributeError:
            jobs = self._here.jobs = self._new_jobs()
        return jobs[question]

    def _new_jobs(self) -> dict[str, RowJob]:
        self._here.planes = planes = zero_planes(self._num_planes)
        self._here.scratch = scratch = zero_planes(GROUP)
        return {question: self._new_job(question, planes, scratch) for question in self._asked}

    def _new_job(self, question: str, planes: Words, scratch: Words) -> RowJob:
        function, first, count = self._asked[question]
        return RowJob(
            function=self._address_of(function),
            planes=planes.ctypes.data,
            scratch=scratch.ctypes.data,
            state_words=words(self._layout.num_facts),
            num_roles=self.num_roles,
            first_action=self._layout.actions,
            num_actions=self._layout.num_actions,
            first_output=first,
            num_outputs=count,
        )

    def job(self, question: str, states: Words, out: Words, joint: NDArray[np.int32] | None = None) -> OwnRecord:
        """Return a RowJob for machine code that calls `run` and `list_moves` itself; see `ask` for the arguments.

        The arrays stay those of the caller: it sets the number of rows, fills `states` and `joint`, and reads `out`.
        """
        self.check(states, joint)
        planes, scratch = zero_planes(self._num_planes), zero_planes(GROUP)
        job = self._new_job(question, planes, scratch)
        job.states, job.out = states.ctypes.data, out.ctypes.data
        job.joint = 0 if joint is None else joint.ctypes.data
        return OwnRecord(job, {}, (planes, scratch, states, out, joint, self._address_of))

    def moves(self, legal: Words) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
        """Return the legal moves in the output of "legal": offsets int64[batch * roles + 1], actions int32, terminal.

        terminal: bool[batch]. The actions of role r in row i are actions[offsets[k] : offsets[k + 1]] with
        k = i * roles + r.
        """
        num_roles = self.num_roles
        offsets = np.zeros(len(legal) * num_roles + 1, np.int64)
        actions = np.empty(self._count_bits(legal.ctypes.data, legal.size), np.int32)
        terminal = np.empty(len(legal), np.bool_)
        arrays = (self.starts, offsets, actions, terminal)
        self._list_moves(legal.ctypes.data, len(legal), num_roles, *[array.ctypes.data for array in arrays])
        return offsets, actions[: offsets[-1]], terminal
