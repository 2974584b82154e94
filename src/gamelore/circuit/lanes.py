"""Matches in lanes whose moves come from outside: all lanes make a ply at once, in code that all games share.

A *block* is 512 lanes. Its state is kept as planes: the facts, then the legal moves, and whether the match is over. So
a ply needs no conversion of states, only of what goes in and out: moves as numbers, and as bytes of 0 or 1 the legal
moves, the observed facts, the roles that act, and the ends of matches.

A lane whose match is over stays as it is until it is refreshed, which puts it into the first state. A role without a
given move makes its first legal move; that is its only one if it has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from ctypes import CFUNCTYPE, Structure, addressof, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .aig import Circuit
from .native import NUMBER, Code, compiled_kernel, number_fields
from .playout import FULL, RoleDraw
from .sampling import STATE, draw_code, num_digits
from .tape import LANES, ONES, VECTOR, PlaneLayout, words, zero_planes
from .transpose import transpose_code, word_index

NO_MOVE = -1
NOWHERE = -1  # in `observed`: a bit that is always 0
_SEAT = f"[{len(RoleDraw._fields_)} x i64]"


class LanesRecord(Structure):
    """Record for `step` and `sample`, which consists of numbers and addresses.

    `legal`, `goal`, `next`: the functions of the circuit. `work`: the buffer of planes in which they work; `actions`
    and `outputs` are indices of planes in it. `seats`: a RoleDraw for each role, of which `first_output` is the number
    of the role's first action. `num_values`: int64[roles], the number of goal values of each role; `values`: these
    values, float32. `initial`: a word for each fact, with all bits set if the fact holds in the first state.
    `controls`: int64[roles], the fact that gives the role its turn, or -1; `busy`: int64[actions], 0 for moves of roles
    that wait.

    `states`: for each block `stride` planes: the facts, the legal moves, the terminal states, and a plane of zeros.
    `random`: STATE planes for each block. `fresh`, `held` and `over`: a plane for each block, the lanes that begin a
    match in the next step, that stay as they are in it, and whose match is over. `drawn`: planes for the moves that
    `sample` draws.

    `joint`: int32[lanes, roles], the moves as numbers of actions, in and out. The results: `goals`,
    float32[lanes, roles], those of matches that ended in the last step, 0 in other lanes. Bytes of 0 or 1 are
    `ended` and `stuck` [lanes], for matches that reached the end, or a state in which a role has no move, in the
    last step; `acting` [roles, lanes]; `mask` [lanes, actions]; `observed` [lanes, num_observed], the planes `index` of
    a state.
    `illegal`: 1 + the number of a lane with an illegal move, or 0.
    """

    _fields_ = number_fields(
        "legal goal next work num_facts num_actions actions outputs num_roles seats num_values values initial controls "
        "busy num_blocks stride states random fresh held over drawn joint goals ended stuck acting mask observed "
        "num_observed index view scratch illegal"
    )


class _LanesCode(Code):
    """Writer of a function whose first argument, `%r`, is the address of a LanesRecord."""

    def of(self, name: str, kind: str = NUMBER) -> str:
        """Load a field of the record."""
        return self.field("%r", LanesRecord, name, kind)

    def seat(self, role: str) -> str:
        return self.at(self.of("seats", "ptr"), role, _SEAT)

    def own_actions(self, role: str) -> tuple[str, str]:
        """Return the number of a role's first action, and of the action after its last one."""
        seat = self.seat(role)
        first = self.field(seat, RoleDraw, "first_output")
        return first, self.calc("add", first, self.field(seat, RoleDraw, "num_moves"))

    def copy(self, to: str, source: str, num_planes: str) -> None:
        size = self.calc("shl", num_planes, 6)
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def clear(self, address: str, size: str) -> None:
        """Set bytes to 0."""
        self.do(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {size}, i1 false)")

    def put_bytes(self, word: str, address: str, index: str) -> None:
        """Store the 64 bits of a word as 64 bytes."""
        value = self.line(f"zext <64 x i1> {self.line(f'bitcast i64 {word} to <64 x i1>')} to <64 x i8>")
        self.do(f"store <64 x i8> {value}, ptr {self.at(address, index, 'i8')}, align 1")


def lanes_code() -> str:
    """Return the IR of `step(record)` and `sample(record)`."""
    parts = [transpose_code, _write_rows, _write_lanes, _sample, _mark, _fill, _settle, _tell_acting, _look, _step]
    return "\n".join(["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", *(part() for part in parts)])


def _write_rows() -> str:
    """`write_rows(planes, count, scratch, out)`: write planes as rows of bytes, a row of `count` bytes for each lane.

    64 planes are written at a time, the last ones first. What the last ones write beyond their row belongs to the
    planes before them in the next row, which are written later. So 63 bytes behind the last row must be free.
    """
    code = _LanesCode("internal void @write_rows(ptr %planes, i64 %count, ptr %scratch, ptr %out)")
    last = code.calc("and", code.calc("sub", "%count", 1), -64)
    with code.loop("%count", step=64) as behind:
        first = code.calc("sub", last, behind)
        code.do(f"call void @transpose(ptr {code.at('%planes', first)}, ptr %scratch)")
        with code.loop(LANES) as lane:
            word = code.get("%scratch", word_index(code, lane), NUMBER)
            code.put_bytes(word, "%out", code.calc("add", code.calc("mul", lane, "%count"), first))
    return code.text()


def _write_lanes() -> str:
    """`write_lanes(plane, out)`: write a plane as a byte for each lane."""
    code = _LanesCode(f"internal void @write_lanes({VECTOR} %plane, ptr %out)")
    memory = code.reserve(VECTOR)
    code.put("%plane", memory)
    with code.loop(8) as word:
        code.put_bytes(code.get(memory, word, NUMBER), "%out", code.calc("shl", word, 6))
    return code.text()


def _sample() -> str:
    """`sample(r)`: draw a legal move of each role in all lanes, and write them to `joint`."""
    code = _LanesCode("void @sample(ptr %r)")
    roles = code.of("num_roles")
    with code.loop(code.of("num_blocks")) as block:
        first_plane = code.calc("add", code.calc("mul", block, code.of("stride")), code.of("num_facts"))
        legal = code.at(code.of("states", "ptr"), first_plane)
        random = code.at(code.of("random", "ptr"), code.calc("mul", block, STATE))
        joint = code.at(code.of("joint", "ptr"), code.calc("mul", code.calc("mul", block, LANES), roles), "i32")
        with code.loop(roles) as role:
            seat, (first, end) = code.seat(role), code.own_actions(role)
            moves = code.at(code.of("drawn", "ptr"), first)
            notes = ", ".join(f"ptr {code.field(seat, RoleDraw, name, 'ptr')}" for name in ("used", "sums"))
            number = code.calc("sub", end, first)
            arguments = (
                f"ptr {code.at(legal, first)}, i64 {number}, ptr {moves}, {notes}, ptr {random}, {VECTOR} {ONES}"
            )
            code.line(f"call {VECTOR} {code.field(seat, RoleDraw, 'draw', 'ptr')}({arguments})")
            with code.loop(number) as move:
                chosen = code.get(moves, move)
                action = code.line(f"trunc i64 {code.calc('add', first, move)} to i32")
                with code.when(code.any(chosen)), code.each_lane(chosen) as lane:
                    code.put(action, joint, code.calc("add", code.calc("mul", lane, roles), role), "i32")
    return code.text()


def _mark() -> str:
    """`mark(r, joint)`: set the lanes of a block in the planes of their actions."""
    code = _LanesCode("internal void @mark(ptr %r, ptr %joint)")
    roles, count = code.of("num_roles"), code.of("num_actions")
    actions = code.at(code.of("work", "ptr"), code.of("actions"))
    with code.loop(LANES) as lane:
        word, bit = code.calc("lshr", lane, 6), code.calc("shl", 1, code.calc("and", lane, 63))
        with code.loop(roles) as role:
            index = code.calc("add", code.calc("mul", lane, roles), role)
            action = code.line(f"sext i32 {code.get('%joint', index, 'i32')} to i64")
            with code.when(code.compare("ult", action, count)):
                plane = code.at(actions, action)
                code.put(code.calc("or", code.get(plane, word, NUMBER), bit), plane, word, NUMBER)
    return code.text()


def _fill() -> str:
    """`fill(r, legal, active)`: set the first legal move where a role has none; return lanes with illegal moves."""
    code = _LanesCode(f"internal {VECTOR} @fill(ptr %r, ptr %legal, {VECTOR} %active)")
    actions, illegal = code.at(code.of("work", "ptr"), code.of("actions")), code.plane()
    with code.loop(code.of("num_roles")) as role:
        first, end = code.own_actions(role)
        given = code.plane()
        with code.loop(end, first) as action:
            plane = code.get(actions, action)
            given.set(code.op("or", given.get(), plane))
            illegal.set(code.op("or", illegal.get(), code.without(plane, code.get("%legal", action))))
        missing = code.plane(code.without("%active", given.get()))
        with code.when(code.any(missing.get())), code.loop(end, first) as action:
            taken = code.op("and", missing.get(), code.get("%legal", action))
            code.put(code.op("or", code.get(actions, action), taken), actions, action)
            missing.set(code.op("xor", missing.get(), taken))
    return code.text(f"{VECTOR} {code.op('and', illegal.get(), '%active')}")


def _settle() -> str:
    """`settle(r, lanes, goals)`: write the goals of the states in these lanes, where a role has just one."""
    code = _LanesCode(f"internal void @settle(ptr %r, {VECTOR} %lanes, ptr %goals)")
    code.do(f"call void {code.of('goal', 'ptr')}(ptr {code.of('work', 'ptr')})")
    outputs, first, roles = code.at(code.of("work", "ptr"), code.of("outputs")), code.number(), code.of("num_roles")
    with code.loop(roles) as role:
        begin = first.get()
        end = code.calc("add", begin, code.get(code.of("num_values", "ptr"), role, NUMBER))
        seen, twice = code.plane(), code.plane()
        with code.loop(end, begin) as value:
            plane = code.get(outputs, value)
            twice.set(code.op("or", twice.get(), code.op("and", seen.get(), plane)))
            seen.set(code.op("or", seen.get(), plane))
        exact = code.op("and", "%lanes", code.without(seen.get(), twice.get()))
        with code.loop(end, begin) as value:
            goal = code.get(code.of("values", "ptr"), value, "i32")  # the bits of a float
            with code.each_lane(code.op("and", code.get(outputs, value), exact)) as lane:
                code.put(goal, "%goals", code.calc("add", code.calc("mul", lane, roles), role), "i32")
        first.set(end)
    return code.text()


def _tell_acting() -> str:
    """`tell_acting(r, facts, legal, first_lane)`: write which roles act; return the lanes in which a role is stuck."""
    code = _LanesCode(f"internal {VECTOR} @tell_acting(ptr %r, ptr %facts, ptr %legal, i64 %first_lane)")
    num_lanes, stuck = code.calc("mul", code.of("num_blocks"), LANES), code.plane()
    over = code.get("%legal", code.of("num_actions"))
    with code.loop(code.of("num_roles")) as role:
        first, end = code.own_actions(role)
        some, several, busy = code.plane(), code.plane(), code.plane()
        with code.loop(end, first) as action:
            plane = code.get("%legal", action)
            several.set(code.op("or", several.get(), code.op("and", some.get(), plane)))
            some.set(code.op("or", some.get(), plane))
            with code.when(code.compare("ne", code.get(code.of("busy", "ptr"), action, NUMBER), 0)):
                busy.set(code.op("or", busy.get(), plane))
        stuck.set(code.op("or", stuck.get(), code.without(code.negated(some.get()), over)))
        acting = code.plane(code.op("or", several.get(), busy.get()))
        control = code.get(code.of("controls", "ptr"), role, NUMBER)
        with code.when(code.compare("ne", control, NOWHERE)):
            acting.set(code.op("or", several.get(), code.get("%facts", control)))
        out = code.calc("add", code.calc("mul", role, num_lanes), "%first_lane")
        shown = code.at(code.of("acting", "ptr"), out, "i8")
        code.do(f"call void @write_lanes({VECTOR} {code.without(acting.get(), over)}, ptr {shown})")
    return code.text(f"{VECTOR} {stuck.get()}")


def _look() -> str:
    """`look(r, block, facts, moved)`: find legal moves and ends after the facts of a block have changed; write results.

    moved: the lanes that have made a ply or begun a match
    """
    code = _LanesCode(f"internal void @look(ptr %r, i64 %block, ptr %facts, {VECTOR} %moved)")
    work, num_facts, num_actions = code.of("work", "ptr"), code.of("num_facts"), code.of("num_actions")
    roles, scratch, lane = code.of("num_roles"), code.of("scratch", "ptr"), code.calc("mul", "%block", LANES)
    code.copy(work, "%facts", num_facts)
    code.do(f"call void {code.of('legal', 'ptr')}(ptr {work})")
    legal = code.at("%facts", num_facts)
    code.copy(legal, code.at(work, code.of("outputs")), code.calc("add", num_actions, 1))
    stuck = code.line(f"call {VECTOR} @tell_acting(ptr %r, ptr %facts, ptr {legal}, i64 {lane})")
    ended, stuck = code.op("and", code.get(legal, num_actions), "%moved"), code.op("and", stuck, "%moved")
    goals = code.at(code.of("goals", "ptr"), code.calc("mul", lane, roles), "i32")
    code.clear(goals, code.calc("mul", roles, LANES * 4))
    with code.when(code.any(ended)):
        code.do(f"call void @settle(ptr %r, {VECTOR} {ended}, ptr {goals})")
    over = code.at(code.of("over", "ptr"), "%block")
    code.put(code.op("or", code.get(over), code.op("or", ended, stuck)), over)
    for name, plane in (("ended", ended), ("stuck", stuck)):
        code.do(f"call void @write_lanes({VECTOR} {plane}, ptr {code.at(code.of(name, 'ptr'), lane, 'i8')})")
    mask = code.at(code.of("mask", "ptr"), code.calc("mul", lane, num_actions), "i8")
    code.do(f"call void @write_rows(ptr {legal}, i64 {num_actions}, ptr {scratch}, ptr {mask})")
    view, number = code.of("view", "ptr"), code.of("num_observed")
    with code.loop(number) as bit:
        code.put(code.get("%facts", code.get(code.of("index", "ptr"), bit, NUMBER)), view, bit)
    observed = code.at(code.of("observed", "ptr"), code.calc("mul", lane, number), "i8")
    code.do(f"call void @write_rows(ptr {view}, i64 {number}, ptr {scratch}, ptr {observed})")
    return code.text()


def _step() -> str:
    """`step(r)`: make a ply in all lanes; see the docstring of the module."""
    code = _LanesCode("void @step(ptr %r)")
    work, num_facts, roles = code.of("work", "ptr"), code.of("num_facts"), code.of("num_roles")
    actions, outputs = code.at(work, code.of("actions")), code.at(work, code.of("outputs"))
    with code.loop(code.of("num_blocks")) as block:
        facts = code.at(code.of("states", "ptr"), code.calc("mul", block, code.of("stride")))
        first_lane, over = code.calc("mul", block, LANES), code.of("over", "ptr")
        fresh = code.get(code.of("fresh", "ptr"), block)
        ended = code.without(code.get(over, block), fresh)
        waiting = code.op("or", ended, code.without(code.get(code.of("held", "ptr"), block), fresh))
        active = code.negated(code.op("or", fresh, waiting))
        code.copy(work, facts, num_facts)
        code.clear(actions, code.calc("shl", code.of("num_actions"), 6))
        joint = code.at(code.of("joint", "ptr"), code.calc("mul", first_lane, roles), "i32")
        code.do(f"call void @mark(ptr %r, ptr {joint})")
        illegal = code.line(f"call {VECTOR} @fill(ptr %r, ptr {code.at(facts, num_facts)}, {VECTOR} {active})")
        with code.each_lane(illegal) as lane:
            number = code.calc("add", code.calc("add", first_lane, lane), 1)
            code.set_field("%r", LanesRecord, "illegal", number)
        code.do(f"call void {code.of('next', 'ptr')}(ptr {work})")
        with code.loop(num_facts) as fact:
            first = code.all_lanes(code.get(code.of("initial", "ptr"), fact, NUMBER))
            later = code.chosen(waiting, code.get(facts, fact), code.get(outputs, fact))
            code.put(code.chosen(fresh, first, later), facts, fact)
        code.put(ended, over, block)
        changed = code.op("or", active, fresh)  # also the first state may be an end
        code.do(f"call void @look(ptr %r, i64 {block}, ptr {facts}, {VECTOR} {changed})")
    return code.text()


class BatchLanes:
    """Matches of a compiled game, one in each lane.

    Results are arrays that every step overwrites; see LanesRecord. In all of them the number of lanes is `num_lanes`, a
    multiple of 512, which is at least the number asked for.

    address_of: a function that returns the address of a function of the loaded code. It also keeps the code in memory.
    num_planes: number of planes that the functions need. num: number of lanes. observed: for each bit of an observation
        the number of a fact, or NOWHERE. controls: for each role the fact that gives it the turn, or NOWHERE. idle: the
        actions of roles that wait.
    """

    def __init__(
        self,
        address_of: Callable[[str], int],
        num_planes: int,
        circuit: Circuit,
        num: int,
        observed: Sequence[int],
        controls: Sequence[int],
        idle: Collection[int],
        seed: int,
    ) -> None:
        self._circuit = circuit
        num_blocks, num_roles, num_actions = -(-num // LANES), len(circuit.actions), circuit.num_actions
        self.num_lanes = num_lanes = num_blocks * LANES
        layout, stride = PlaneLayout(circuit.num_facts, num_actions, 0), circuit.num_facts + num_actions + 2
        zeros = stride - 1
        index = np.array([zeros if fact == NOWHERE else fact for fact in observed], np.int64)
        self._arrays: dict[str, NDArray[Any]] = {
            **{"work": zero_planes(num_planes), "states": zero_planes(num_blocks * stride + 64)},
            **{"random": zero_planes(STATE * num_blocks), "scratch": zero_planes(64)},
            **{name: zero_planes(num_blocks) for name in ("fresh", "held", "over")},
            **{"drawn": zero_planes(num_actions + 8), "view": zero_planes(-(-len(index) // 64) * 64)},
            "index": index,
            "initial": np.where(circuit.initial, FULL, np.uint64(0)),
            "num_values": np.array([len(values) for values in circuit.goals], np.int64),
            "values": np.array([value for values in circuit.goals for value in values], np.float32),
            "controls": np.array(controls, np.int64),
            "busy": np.array([action not in idle for action in range(num_actions)], np.int64),
            "joint": np.full((num_lanes, num_roles), NO_MOVE, np.int32),
            "goals": np.zeros((num_lanes, num_roles), np.float32),
            **{name: np.zeros(num_lanes, np.uint8) for name in ("ended", "stuck")},
            "acting": np.zeros(num_roles * num_lanes, np.uint8),
            "mask": np.zeros(num_lanes * num_actions + 64, np.uint8),
            "observed": np.zeros(num_lanes * len(index) + 64, np.uint8),
        }
        self._kernel = compiled_kernel(lanes_code())
        self._new_seats()
        self._record = LanesRecord(
            **{name: address_of(name) for name in ("legal", "goal", "next")},
            **{name: array.ctypes.data for name, array in self._arrays.items()},
            **{"num_facts": circuit.num_facts, "num_actions": num_actions, "num_roles": num_roles},
            **{"actions": layout.actions, "outputs": layout.outputs, "seats": addressof(self._seats)},
            **{"num_blocks": num_blocks, "stride": stride, "num_observed": len(index)},
        )
        self._address_of = address_of
        self._step = CFUNCTYPE(None, c_void_p)(self._kernel.address("step"))
        self._sample = CFUNCTYPE(None, c_void_p)(self._kernel.address("sample"))
        flags = {name: self._arrays[name].view(np.bool_) for name in ("ended", "stuck", "acting", "mask")}
        self.joint: NDArray[np.int32] = self._arrays["joint"]
        self.goals: NDArray[np.float32] = self._arrays["goals"]
        self.ended: NDArray[np.bool_] = flags["ended"]
        self.stuck: NDArray[np.bool_] = flags["stuck"]
        self.acting: NDArray[np.bool_] = flags["acting"].reshape(num_roles, num_lanes).T
        self.mask: NDArray[np.bool_] = flags["mask"][: num_lanes * num_actions].reshape(num_lanes, num_actions)
        bits = self._arrays["observed"][: num_lanes * len(index)]
        self.observed: NDArray[np.uint8] = bits.reshape(num_lanes, len(index))
        self.seed(seed)
        self.refresh()

    def _new_seats(self) -> None:
        """Make the records of the roles, and the memory that they point to."""
        actions = self._circuit.actions
        self._draws = [compiled_kernel(draw_code(num_digits(len(moves)))) for moves in actions]
        self._sums = zero_planes(max(map(len, actions), default=0) // 2)
        self._used = [np.zeros(len(moves) // 8, np.uint8) for moves in actions]
        self._seats, first = (RoleDraw * len(actions))(), 0
        for seat, draw, moves, used in zip(self._seats, self._draws, actions, self._used, strict=True):
            seat.draw, seat.num_moves, seat.first_output = draw.address("draw"), len(moves), first
            seat.used, seat.sums = used.ctypes.data, self._sums.ctypes.data
            first += len(moves)

    @property
    def over(self) -> NDArray[np.bool_]:
        """bool[lanes]: the lanes whose match is over and has not been refreshed; a copy."""
        return np.unpackbits(self._arrays["over"].view(np.uint8).ravel(), bitorder="little").astype(np.bool_)

    @property
    def states(self) -> NDArray[np.uint64]:
        """uint64[lanes, words]: the states of all lanes as the engine packs them; a copy."""
        return self.states_of(np.arange(self.num_lanes))

    def states_of(self, lanes: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the states of some lanes as the engine packs them, uint64[n, words]."""
        facts, num_blocks = self._circuit.num_facts, self.num_lanes // LANES
        planes = self._arrays["states"][: num_blocks * self._record.stride].reshape(num_blocks, -1, 8)
        block, lane = np.divmod(lanes, LANES)
        held = planes[block, :facts, lane // 64] >> (lane % 64).astype(np.uint64)[:, None] & np.uint64(1)
        padded = np.zeros((len(lanes), 64 * words(facts)), np.uint8)
        padded[:, :facts] = held
        return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)

    def memory(self) -> dict[str, NDArray[Any]]:
        """Return copies of all that the next steps depend on, for `remember`."""
        return {name: self._arrays[name].copy() for name in ("states", "random", "over")}

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Go on where other lanes of the same kind were."""
        for name, array in memory.items():
            self._arrays[name][:] = array
        self.step(held=np.ones(self.num_lanes, np.bool_))

    def seed(self, seed: int) -> None:
        """Begin the random numbers of `sample` again."""
        planes = self._arrays["random"]
        planes[:] = np.random.SeedSequence(seed).generate_state(planes.size, np.uint64).reshape(planes.shape)

    def sample(self) -> NDArray[np.int32]:
        """Draw a legal move of each role in each lane, and return `joint`, which has them."""
        self._sample(addressof(self._record))
        return self.joint

    def step(self, fresh: NDArray[np.bool_] | None = None, held: NDArray[np.bool_] | None = None) -> int:
        """Make the moves `joint` in all lanes but those whose match is over.

        fresh: bool[lanes], lanes that begin a new match instead. held: bool[lanes], lanes that stay as they are.

        Returns the number of a lane with an illegal move, or -1. The lanes are useless after an illegal move.
        """
        for name, lanes in (("fresh", fresh), ("held", held)):
            self._set(name, lanes)
        self._record.illegal = 0
        self._step(addressof(self._record))
        return int(self._record.illegal) - 1

    def _set(self, name: str, lanes: NDArray[np.bool_] | None) -> None:
        planes = self._arrays[name].view(np.uint8).reshape(-1)
        planes[:] = 0 if lanes is None else np.packbits(lanes, bitorder="little")

    def refresh(self, lanes: NDArray[np.bool_] | None = None) -> None:
        """Begin a new match in these lanes, bool[lanes], or in all. The other lanes stay as they are."""
        lanes = np.ones(self.num_lanes, np.bool_) if lanes is None else lanes
        self.step(lanes, ~lanes)

    def stop(self, lanes: NDArray[np.bool_]) -> None:
        """End the matches in these lanes, bool[lanes]: they wait until they are refreshed."""
        self._arrays["over"].view(np.uint8).reshape(-1)[:] |= np.packbits(lanes, bitorder="little")
