"""Random playouts and rollouts: random legal moves and whole matches in 512 lanes at once, on all cores.

*Playing* (`block_code`). This code is the same for all games. A *block* is 512 lanes. Each step finds the legal moves,
draws a move for each role, and applies the moves. If the match of a lane is over, the lane plays no move in this step;
its next match starts instead. The final state waits in the same lane of a second buffer until another final state needs
this lane. So goals are evaluated for hundreds of matches at once.

*Counting*. Exactly n playouts are started, and all of them are played to the end. (To stop after the first n playouts
that end would favour short matches.) Each group of 64 lanes has its own quota and its own random stream. So the result
does not depend on the width of registers or on the number of threads.

*Informed playouts* (`informed_playouts`). In games for two roles who take turns, a playout can know a little: a role
that can win with its move does so, and otherwise it answers if the other role would win were it to move (decisive and
anti-decisive moves; Teytaud & Teytaud 2010). An *answer* is the own move of the same name: where roles put pieces on a
board, it takes the place that the other role needs. All this is composed from the rules into the conditions of `legal`,
so it costs gates, but no code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ctypes import CFUNCTYPE, Array, Structure, addressof, c_int64, c_void_p
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..ground.clingo import GroundTerm
from .aig import FALSE, TRUE, Builder, Circuit, GateLiteral, drop_dead, needed_nodes
from .native import NUMBER, ZERO, Code, IRVariable, OwnRecord, compiled_kernel, number_fields
from .sampling import STATE, draw_code, num_digits
from .tape import LANES, ONES, VECTOR, PlaneLayout, zero_planes

SHARED_DIGITS = 10  # number of digits up to which `load_shared_code` loads `draw`


class RoleDraw(Structure):
    """Record of a role for `draw`: the function, the first planes, the number of moves, and two more arguments.

    `first_output` and `first_action` are the indices of the first plane of legal moves and of played moves.
    """

    _fields_ = number_fields("draw first_output first_action num_moves used sums")


class Block(Structure):
    """Record for `begin` and `play`, which consists of numbers and addresses.

    `legal`, `goal`, `next`: the functions of the circuit. `planes`: their buffer; `terminal` and `outputs` are indices
    of planes in it. `waiting`: a second buffer, for final states. `seats`: a RoleDraw for each role. `num_values`:
    int64[roles], the number of goal values of each role. `initial`: a word for each fact, with all bits set if the fact
    holds in the first state. `lanes`: the planes RANDOM to NUM_STUCK, and from COUNTERS on a counter for each goal
    value. `now`: the number of the step, -1 before `begin`.

    The other fields are used only for rollouts, in which `initial` contains zeros. `states`: rows of `state_words`
    words, the states from which matches start. `next_rows`: int64[8], the next row for each group of 64 lanes. `rows`:
    int64[512], the row whose match is played in each lane. `starts`: int64[512], the step in which this match began.
    `waiting_rows`: int64[512], the row whose final state waits in each lane. `values`: the goal values, int16. `goals`,
    int16[rows, roles], and `lengths`, int32[rows], are the results: the goals and the numbers of steps. A match is cut
    after `max_steps` steps; 0 means no limit.
    """

    _fields_ = number_fields(
        "legal goal next planes num_facts outputs terminal waiting num_roles seats num_values initial lanes "
        "states state_words next_rows rows starts waiting_rows values goals lengths max_steps now"
    )


# Indices of the planes of `lanes`. RANDOM: the state of the generators. ACTIVE: the lanes whose match goes on. WAITING:
# the lanes whose final state waits for its goals. The other planes are counters, one for each word: REMAINING matches
# to start, steps, matches that got stuck, and from COUNTERS on one counter for each goal value.
RANDOM, ACTIVE, WAITING, REMAINING, NUM_STEPS, NUM_STUCK, COUNTERS = 0, *range(STATE, STATE + 6)


class _BlockCode(Code):
    """Writer of a function whose first argument, `%b`, is the address of a Block."""

    def __init__(self, signature: str) -> None:
        super().__init__(signature)
        self.lanes = self.block_field("lanes", "ptr")

    def block_field(self, name: str, kind: str = NUMBER) -> str:
        """Load a field of the block."""
        return self.field("%b", Block, name, kind)

    def count(self, index: str | int, plane: str) -> None:
        """Add the number of set lanes in each word of a plane to the counter of this word."""
        self.put(self.op("add", self.get(self.lanes, index), self.popcount(plane)), self.lanes, index)

    def call(self, function: str, *arguments: str) -> None:
        self.do(f"call void @{function}({', '.join(['ptr %b', *arguments])})")

    def call_circuit(self, function: str, planes: str) -> None:
        self.do(f"call void {self.block_field(function, 'ptr')}(ptr {planes})")

    def in_rollouts(self) -> str:
        return self.compare("ne", self.block_field("states"), 0)


def block_code() -> str:
    """Return the IR of `begin(block)` and `play(block, steps)`; `play` returns 1 as long as matches are left."""
    parts = [_refill, _load, _tally, _flush, _settle, _expired, _draw_all, _follow, _step, _begin, _play]
    return "\n".join(part() for part in parts)


def _refill() -> str:
    """`refill(b, free)`: start matches in free lanes, the lowest of each word first; return these lanes."""
    code = _BlockCode(f"internal {VECTOR} @refill(ptr %b, {VECTOR} %free)")
    remaining = code.get(code.lanes, REMAINING)
    enough = code.line(f"icmp ule {VECTOR} {code.popcount('%free')}, {remaining}")
    fresh = code.plane(code.line(f"select <8 x i1> {enough}, {VECTOR} %free, {VECTOR} {ZERO}"))
    with code.when(code.any(code.op("xor", "%free", fresh.get()))):
        _refill_few(code, fresh)
    code.put(code.op("sub", remaining, code.popcount(fresh.get())), code.lanes, REMAINING)
    return code.text(f"{VECTOR} {fresh.get()}")


def _refill_few(code: _BlockCode, fresh: IRVariable) -> None:
    """Choose lanes one by one in the words with fewer remaining matches than free lanes."""
    taken = code.reserve(VECTOR)
    code.put(fresh.get(), taken)
    left = code.reserve(VECTOR)
    code.put(code.get(code.lanes, REMAINING), left)
    with code.each_lane(code.op("xor", "%free", fresh.get())) as lane:
        word = code.calc("lshr", lane, 6)
        number = code.get(left, word, NUMBER)
        with code.when(code.compare("ne", number, 0)):
            code.put(code.calc("sub", number, 1), left, word, NUMBER)
            bits = code.get(taken, word, NUMBER)
            code.put(code.calc("or", bits, _bit(code, lane)), taken, word, NUMBER)
    fresh.set(code.get(taken))


def _bit(code: Code, lane: str) -> str:
    """Return the bit of a lane in its word."""
    return code.calc("shl", 1, code.calc("and", lane, 63))


def _load() -> str:
    """`load(b, fresh)`: load the next states into these lanes. No fact may hold in these lanes before."""
    code = _BlockCode(f"internal void @load(ptr %b, {VECTOR} %fresh)")
    names = ("planes", "states", "next_rows", "rows", "starts")
    planes, states, next_rows, rows, starts = (code.block_field(name, "ptr") for name in names)
    width, start = code.block_field("state_words"), code.calc("add", code.block_field("now"), 1)
    with code.each_lane("%fresh") as lane:
        word = code.calc("lshr", lane, 6)
        row = code.get(next_rows, word, NUMBER)
        code.put(code.calc("add", row, 1), next_rows, word, NUMBER)
        code.put(row, rows, lane, NUMBER)
        code.put(start, starts, lane, NUMBER)
        state = code.at(states, code.calc("mul", row, width), NUMBER)
        with code.loop(width) as index, code.each_bit(code.get(state, index, NUMBER)) as bit:
            fact = code.at(planes, code.calc("or", code.calc("shl", index, 6), bit))
            code.put(code.calc("or", code.get(fact, word, NUMBER), _bit(code, lane)), fact, word, NUMBER)
    return code.text()


def _tally() -> str:
    """`tally(b, lanes)`: count the goals of the states that wait in these lanes; in rollouts, record the goals."""
    code = _BlockCode(f"internal void @tally(ptr %b, {VECTOR} %lanes)")
    outputs, first = code.at(code.block_field("waiting", "ptr"), code.block_field("outputs")), code.number()
    with code.loop(code.block_field("num_roles")) as role:
        number = code.get(code.block_field("num_values", "ptr"), role, NUMBER)
        begin = first.get()
        end = code.calc("add", begin, number)
        exact = _exactly_one(code, outputs, begin, end)
        with code.loop(end, begin) as value:
            hit = code.op("and", code.get(outputs, value), exact)
            with code.choice(code.in_rollouts()) as otherwise:
                _record(code, role, value, hit)
                otherwise()
                code.count(code.calc("add", value, COUNTERS), hit)
        first.set(end)
    return code.text()


def _exactly_one(code: Code, outputs: str, begin: str, end: str) -> str:
    """Return the lanes of `%lanes` in which exactly one of the planes from `begin` to `end` is set."""
    seen, twice = code.plane(), code.plane()
    with code.loop(end, begin) as value:
        plane = code.get(outputs, value)
        twice.set(code.op("or", twice.get(), code.op("and", seen.get(), plane)))
        seen.set(code.op("or", seen.get(), plane))
    return code.op("and", "%lanes", code.without(seen.get(), twice.get()))


def _record(code: _BlockCode, role: str, value: str, lanes: str) -> None:
    """Store a goal value of a role in the results for the states of these lanes."""
    goal, rows = code.get(code.block_field("values", "ptr"), value, "i16"), code.block_field("waiting_rows", "ptr")
    with code.each_lane(lanes) as lane:
        row = code.calc("mul", code.get(rows, lane, NUMBER), code.block_field("num_roles"))
        code.put(goal, code.block_field("goals", "ptr"), code.calc("add", row, role), "i16")


def _flush() -> str:
    """`flush(b)`: evaluate and count the goals of all waiting states."""
    code = _BlockCode("internal void @flush(ptr %b)")
    lanes = code.get(code.lanes, WAITING)
    with code.when(code.any(lanes)):
        code.call_circuit("goal", code.block_field("waiting", "ptr"))
        code.call("tally", f"{VECTOR} {lanes}")
        code.put(ZERO, code.lanes, WAITING)
    return code.text()


def _settle() -> str:
    """`settle(b, over, ended)`: move terminal states to the second buffer; in rollouts, record lengths of matches."""
    code = _BlockCode(f"internal void @settle(ptr %b, {VECTOR} %over, {VECTOR} %ended)")
    planes, waiting = code.block_field("planes", "ptr"), code.block_field("waiting", "ptr")
    with code.when(code.any(code.op("and", "%ended", code.get(code.lanes, WAITING)))):
        code.call("flush")
    with code.loop(code.block_field("num_facts")) as fact:
        code.put(code.chosen("%ended", code.get(planes, fact), code.get(waiting, fact)), waiting, fact)
    code.put(code.op("or", "%ended", code.get(code.lanes, WAITING)), code.lanes, WAITING)
    with code.when(code.in_rollouts()):
        now, names = code.block_field("now"), ("rows", "starts", "waiting_rows", "lengths")
        rows, starts, waiting_rows, lengths = (code.block_field(name, "ptr") for name in names)
        with code.each_lane("%over") as lane:
            row = code.get(rows, lane, NUMBER)
            steps = code.calc("sub", now, code.get(starts, lane, NUMBER))
            code.put(code.line(f"trunc i64 {steps} to i32"), lengths, row, "i32")
        with code.each_lane("%ended") as lane:
            code.put(code.get(rows, lane, NUMBER), waiting_rows, lane, NUMBER)
    return code.text()


def _expired() -> str:
    """`expired(b)`: return the lanes whose match began `max_steps` steps ago."""
    code = _BlockCode(f"internal {VECTOR} @expired(ptr %b)")
    bytes_ = code.reserve(VECTOR)
    code.put(ZERO, bytes_)
    limit = code.block_field("max_steps")
    with code.when(code.compare("ne", limit, 0)):
        latest = code.all_lanes(code.calc("sub", code.block_field("now"), limit))
        starts = code.block_field("starts", "ptr")
        with code.loop(64) as index:
            old = code.line(f"icmp sle {VECTOR} {code.get(starts, index)}, {latest}")
            code.put(code.line(f"bitcast <8 x i1> {old} to i8"), bytes_, index, "i8")
    return code.text(f"{VECTOR} {code.get(bytes_)}")


def _draw_all() -> str:
    """`draw_all(b, lanes)`: draw a move for each role in these lanes; return the lanes in which a role is stuck."""
    code = _BlockCode(f"internal {VECTOR} @draw_all(ptr %b, {VECTOR} %lanes)")
    planes, stuck = code.block_field("planes", "ptr"), code.plane()
    with code.loop(code.block_field("num_roles")) as role:
        seat = code.at(code.block_field("seats", "ptr"), role, f"[{len(RoleDraw._fields_)} x i64]")
        legal, moves = (code.at(planes, code.field(seat, RoleDraw, name)) for name in ("first_output", "first_action"))
        number, draw = code.field(seat, RoleDraw, "num_moves"), code.field(seat, RoleDraw, "draw", "ptr")
        notes = ", ".join(f"ptr {code.field(seat, RoleDraw, name, 'ptr')}" for name in ("used", "sums"))
        arguments = f"ptr {legal}, i64 {number}, ptr {moves}, {notes}, ptr {code.lanes}, {VECTOR} %lanes"
        none = code.line(f"call {VECTOR} {draw}({arguments})")
        stuck.set(code.op("or", stuck.get(), none))
    return code.text(f"{VECTOR} {stuck.get()}")


def _follow() -> str:
    """`follow(b, fresh)`: copy the outputs of `next` to the facts; fresh lanes get the first state."""
    code = _BlockCode(f"internal void @follow(ptr %b, {VECTOR} %fresh)")
    planes, facts = code.block_field("planes", "ptr"), code.block_field("num_facts")
    outputs, initial = code.at(planes, code.block_field("outputs")), code.block_field("initial", "ptr")
    with code.choice(code.any("%fresh")) as otherwise:
        with code.loop(facts) as fact:
            first = code.all_lanes(code.get(initial, fact, NUMBER))
            code.put(code.chosen("%fresh", first, code.get(outputs, fact)), planes, fact)
        with code.when(code.in_rollouts()):
            code.call("load", f"{VECTOR} %fresh")
        otherwise()
        size = code.calc("shl", facts, 6)
        code.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {planes}, ptr {outputs}, i64 {size}, i1 false)")
    return code.text()


def _step() -> str:
    """`step(b)`: play one step in all lanes; return whether any match is left."""
    code = _BlockCode("internal i1 @step(ptr %b)")
    planes, active = code.block_field("planes", "ptr"), code.get(code.lanes, ACTIVE)
    code.call_circuit("legal", planes)
    ended = code.op("and", active, code.get(planes, code.block_field("terminal")))
    going = code.without(active, code.op("or", ended, code.line(f"call {VECTOR} @expired(ptr %b)")))
    stuck = code.line(f"call {VECTOR} @draw_all(ptr %b, {VECTOR} {going})")
    stepping = code.without(going, stuck)
    code.count(NUM_STEPS, stepping)
    over, fresh = code.op("xor", active, stepping), code.plane()
    with code.when(code.any(over)):
        code.count(NUM_STUCK, stuck)
        code.call("settle", f"{VECTOR} {over}", f"{VECTOR} {ended}")
        fresh.set(code.line(f"call {VECTOR} @refill(ptr %b, {VECTOR} {over})"))
        code.put(code.op("or", stepping, fresh.get()), code.lanes, ACTIVE)
    any_left = code.any(code.get(code.lanes, ACTIVE))
    with code.when(any_left):
        code.call_circuit("next", planes)
        code.call("follow", f"{VECTOR} {fresh.get()}")
        code.set_field("%b", Block, "now", code.calc("add", code.block_field("now"), 1))
    return code.text(f"i1 {any_left}")


def _begin() -> str:
    """`begin(b)`: start the first matches."""
    code = _BlockCode("void @begin(ptr %b)")
    planes, initial = code.block_field("planes", "ptr"), code.block_field("initial", "ptr")
    fresh = code.line(f"call {VECTOR} @refill(ptr %b, {VECTOR} {ONES})")
    code.put(fresh, code.lanes, ACTIVE)
    with code.loop(code.block_field("num_facts")) as fact:
        code.put(code.all_lanes(code.get(initial, fact, NUMBER)), planes, fact)
    with code.when(code.in_rollouts()):
        code.call("load", f"{VECTOR} {fresh}")
    code.set_field("%b", Block, "now", "0")
    return code.text()


def _play() -> str:
    """`play(b, steps)`: play at most `steps` steps; return 1 if matches are left, else 0."""
    code = _BlockCode("i64 @play(ptr %b, i64 %steps)")
    done, more = code.number(), code.number("1")

    def unfinished() -> str:
        few = code.compare("ult", done.get(), "%steps")
        return code.line(f"and i1 {few}, {code.compare('ne', more.get(), 0)}")

    with code.repeat(unfinished):
        going = code.line("call i1 @step(ptr %b)")
        more.set(code.line(f"zext i1 {going} to i64"))
        done.set(code.calc("add", done.get(), 1))
    with code.when(code.compare("eq", more.get(), 0)):
        code.call("flush")
    return code.text(f"i64 {more.get()}")


GROUPS = 8  # number of groups of 64 lanes in a block
PLAYED_PER_BLOCK = 8 * LANES  # fewest matches per block; with fewer, too many lanes would be empty towards the end
MOST_BLOCKS = 64  # largest number of blocks for playouts
GATES_PER_CALL = 200_000_000  # work of one call, about 0.1 s; between calls, progress is reported and playing can stop
FULL = np.uint64(2**64 - 1)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Playouts:
    """Totals of random playouts.

    num_playouts: the number of playouts.
    num_steps: the number of joint moves in all playouts together.
    num_stuck: the number of playouts that ended because a role had no legal move.
    goals: for each role, the number of playouts with each goal value, 0 to 100. The key None counts the playouts in
    which the role had no goal or several goals, and the playouts that got stuck.
    """

    num_playouts: int
    num_steps: int
    num_stuck: int
    goals: tuple[dict[int | None, int], ...]

    def mean(self, role: int) -> float:
        """Return the mean goal of a role (its index), 0 to 100, over the playouts in which it has a goal value.

        Return nan if there are none.
        """
        counts = {value: count for value, count in self.goals[role].items() if value is not None}
        total = sum(counts.values())
        return sum(value * count for value, count in counts.items()) / total if total else float("nan")


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Outcomes of one random match from each of some states.

    goals: int16[states, roles]; -1 if the rules give no goal or several goals, and if the match got stuck or was cut.
    steps: int32[states], the number of joint moves of each match.
    """

    goals: NDArray[np.int16]
    steps: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Shares:
    """The share of each group of lanes: the number of its matches, and the state of its random generator.

    quotas: int64[blocks, GROUPS], the numbers of matches. streams: uint64[blocks, STATE, GROUPS], the states.
    """

    quotas: NDArray[np.int64]
    streams: NDArray[np.uint64]

    @classmethod
    def deal(cls, n: int, num_blocks: int, seed: int) -> _Shares:
        """Distribute n matches evenly over the groups of lanes."""
        groups = num_blocks * GROUPS
        quotas = np.full(groups, n // groups, np.int64)
        quotas[: n % groups] += 1
        drawn = np.random.SeedSequence(seed).generate_state(STATE * groups, np.uint64).astype(np.uint64)
        streams = drawn.reshape(num_blocks, GROUPS, STATE).transpose(0, 2, 1)
        return cls(quotas.reshape(num_blocks, GROUPS), streams)


class _Memory:
    """Memory to play one block at a time, and the record `block`, which points to this memory.

    functions: the addresses of the functions of the circuit. draws: the address of `draw` for each role.
    """

    def __init__(self, circuit: Circuit, num_planes: int, functions: dict[str, int], draws: Sequence[int]) -> None:
        layout = PlaneLayout(circuit.num_facts, circuit.num_actions, 0)
        self.lanes = zero_planes(COUNTERS + sum(map(len, circuit.goals)))
        self.next_rows = np.zeros(GROUPS, np.int64)
        self._memory: dict[str, NDArray[Any]] = {
            "planes": zero_planes(num_planes),
            "waiting": zero_planes(num_planes),
            "num_values": np.array([len(values) for values in circuit.goals], np.int64),
            "values": np.array([value for values in circuit.goals for value in values], np.int16),
            "lanes": self.lanes,
            "next_rows": self.next_rows,
            **{name: zero_planes(LANES // 8) for name in ("rows", "starts", "waiting_rows")},
        }
        self._seats = self._new_seats(circuit, layout, draws)
        self.block = Block(
            num_facts=circuit.num_facts,
            outputs=layout.outputs,
            terminal=layout.outputs + circuit.num_actions,
            num_roles=len(circuit.actions),
            seats=addressof(self._seats),
            **{name: array.ctypes.data for name, array in self._memory.items()},
            **functions,
        )

    def _new_seats(self, circuit: Circuit, layout: PlaneLayout, draws: Sequence[int]) -> Array[RoleDraw]:
        """Return the records of the roles, and allocate the memory that they point to."""
        self._sums = zero_planes(max(map(len, circuit.actions), default=0) // 2)
        self._used = [np.zeros(len(moves) // 8, np.uint8) for moves in circuit.actions]
        seats, first = (RoleDraw * len(circuit.actions))(), 0
        for seat, draw, moves, used in zip(seats, draws, circuit.actions, self._used, strict=True):
            seat.draw, seat.num_moves, seat.used, seat.sums = draw, len(moves), used.ctypes.data, self._sums.ctypes.data
            seat.first_output, seat.first_action = layout.outputs + first, layout.actions + first
            first += len(moves)
        return seats

    def unfinished(self) -> int:
        """Return the number of matches that are being played or have not begun."""
        return int(self.lanes[REMAINING].sum()) + sum(map(int.bit_count, self.lanes[ACTIVE].tolist()))


def load_shared_code() -> None:
    """Load the machine code of playouts that all games share, with `draw` for up to 1,023 moves of a role.

    Without this call, the first playout loads what it needs.
    """
    compiled_kernel(block_code())
    for digits in range(1, SHARED_DIGITS + 1):
        compiled_kernel(draw_code(digits))


class PlayoutRunner:
    """Player of random matches for a compiled circuit.

    address_of: a function that returns the address of a function of the loaded code. It also keeps the code in memory.
    code: `begin` and `play`.
    """

    def __init__(self, address_of: Callable[[str], int], circuit: Circuit, num_planes: int) -> None:
        self._address_of, self._circuit = address_of, circuit
        self.code = code = compiled_kernel(block_code())
        self._begin = CFUNCTYPE(None, c_void_p)(code.address("begin"))
        self._play = CFUNCTYPE(c_int64, c_void_p, c_int64)(code.address("play"))
        functions = {name: address_of(name) for name in ("legal", "goal", "next")}
        self._draws = [compiled_kernel(draw_code(num_digits(len(moves)))) for moves in circuit.actions]
        draws = [draw.address("draw") for draw in self._draws]
        self._new_memory = partial(_Memory, circuit, num_planes, functions, draws)
        self._steps_per_call = max(1, GATES_PER_CALL // (LANES + circuit.num_gates))
        self._initial = np.where(circuit.initial, FULL, np.uint64(0))
        self._no_facts = np.zeros_like(self._initial)
        self._free: list[_Memory] = []

    def playouts(
        self, n: int, seed: int, threads: int | None = None, progress: Callable[[int], None] | None = None
    ) -> Playouts:
        """Play exactly n uniformly random matches from the first state.

        `progress` is called from time to time with the number of finished matches, by only one thread at a time. If it
        raises an error, or if the caller is interrupted, all threads stop.
        """
        shares = _Shares.deal(n, min(MOST_BLOCKS, max(1, n // PLAYED_PER_BLOCK)), seed)
        left, telling = shares.quotas.sum(axis=1), Lock()

        def play(index: int, stopped: Event) -> NDArray[np.int64]:
            with self._lend_memory() as memory:
                memory.block.states, memory.block.max_steps = 0, 0
                memory.block.initial = self._initial.ctypes.data
                for unfinished in self._played(memory, shares, index, stopped):
                    with telling:
                        left[index] = unfinished
                        if progress and not stopped.is_set():
                            progress(n - int(left.sum()))
                counted: NDArray[np.int64] = memory.lanes.view(np.int64).sum(axis=1)
                return counted

        return self._counted(n, np.sum(_in_threads(play, len(left), threads), axis=0))

    def rollouts(
        self, states: NDArray[np.uint64], seed: int, threads: int | None = None, max_steps: int = 0
    ) -> Rollouts:
        """Play one uniformly random match from each of the states, uint64[n, words].

        A match is cut after `max_steps` steps; 0 means no limit.
        """
        states = np.ascontiguousarray(states)
        shares = _Shares.deal(len(states), max(1, len(states) // PLAYED_PER_BLOCK), seed)
        first_rows = (np.cumsum(shares.quotas) - shares.quotas.ravel()).reshape(-1, GROUPS)
        goals = np.full((len(states), len(self._circuit.actions)), -1, np.int16)
        steps = np.zeros(len(states), np.int32)

        def play(index: int, stopped: Event) -> None:
            with self._lend_memory() as memory:
                memory.next_rows[:] = first_rows[index]
                self._aim(memory.block, states, goals, steps)
                memory.block.max_steps = max_steps
                for _ in self._played(memory, shares, index, stopped):
                    pass

        _in_threads(play, len(first_rows), threads)
        return Rollouts(goals, steps)

    def rollout_block(
        self, states: NDArray[np.uint64], goals: NDArray[np.int16], steps: NDArray[np.int32]
    ) -> OwnRecord:
        """Return a Block for machine code that calls `begin` and `play` itself, to play from up to 512 states.

        See `rollouts` for the arrays, which stay those of the caller. Before it calls `begin`, it sets the arrays
        `next_rows` and `lanes`, as `_played` does, and the fields `now` and `max_steps`.
        """
        memory = self._new_memory()
        self._aim(memory.block, states, goals, steps)
        arrays = {"lanes": memory.lanes, "next_rows": memory.next_rows}
        return OwnRecord(memory.block, arrays, (memory, states, goals, steps, self))

    def _aim(
        self, block: Block, states: NDArray[np.uint64], goals: NDArray[np.int16], steps: NDArray[np.int32]
    ) -> None:
        """Let a block play rollouts from these states into these arrays."""
        block.states, block.state_words = states.ctypes.data, states.shape[1]
        block.goals, block.lengths = goals.ctypes.data, steps.ctypes.data
        block.initial = self._no_facts.ctypes.data

    def _played(self, memory: _Memory, shares: _Shares, index: int, stopped: Event) -> Iterator[int]:
        """Play the matches of a block until all are finished or `stopped` is set.

        Yield the number of unfinished matches from time to time, and at the end.
        """
        memory.lanes[:] = 0
        memory.lanes[RANDOM : RANDOM + STATE] = shares.streams[index]
        memory.lanes[REMAINING] = shares.quotas[index]
        memory.block.now = -1
        address = addressof(memory.block)
        self._begin(address)
        going = True
        while going and not stopped.is_set():
            going = bool(self._play(address, self._steps_per_call))
            yield memory.unfinished()

    @contextmanager
    def _lend_memory(self) -> Iterator[_Memory]:
        """Lend memory to one thread. After an error, this memory is not used again."""
        try:
            memory = self._free.pop()  # to check the length first would be a race between threads
        except IndexError:
            memory = self._new_memory()
        yield memory
        self._free.append(memory)

    def _counted(self, n: int, numbers: NDArray[np.int64]) -> Playouts:
        """Return the totals from the sums of the planes `lanes`."""
        goals, counters = [], iter(numbers[COUNTERS:].tolist())
        for values in self._circuit.goals:
            counts: dict[int | None, int] = dict(zip(values, counters, strict=False))
            counts[None] = n - sum(counts.values())
            goals.append({value: count for value, count in counts.items() if count})
        return Playouts(n, int(numbers[NUM_STEPS]), int(numbers[NUM_STUCK]), tuple(goals))


MOST_WORK = 1_000_000  # actions times gates of a circuit; composing so many takes about half a second
MOST_INFORMED = 20_000  # largest number of gates of informed playouts
INFORMED = (-1, ())  # the fact that marks the lanes of informed playouts; names are numbered from 0


def informed_playouts(circuit: Circuit, turns: Sequence[int], idle: Sequence[int]) -> Circuit | None:
    """Return a circuit with one more fact, after the others, in whose lanes the playouts are informed; see the module.

    The fact never changes, so playouts of both kinds can be mixed. In all lanes, some legal moves of each role stay
    legal, whatever `turns` and `idle` are.

    Args:
        circuit: circuit of a game for two roles
        turns: for each role, the index of the fact that gives it the turn
        idle: for each role, the index of its action when it is not its turn

    Returns:
        None if the circuit has loops or is too large, or if no role can ever win with a single move of its own.
    """
    if circuit.loops or circuit.num_actions * circuit.num_gates > MOST_WORK:
        return None
    informed = _Informed(circuit, turns, idle).circuit()
    return informed if informed is not None and informed.num_gates <= MOST_INFORMED else None


class _Informed:
    """Builder of the circuit of informed playouts."""

    def __init__(self, circuit: Circuit, turns: Sequence[int], idle: Sequence[int]) -> None:
        self._old, self._turns, self._idle = circuit, turns, idle
        self._new = Circuit([*circuit.facts, INFORMED], circuit.actions, circuit.goals, [*circuit.initial, False])
        self._builder = Builder(self._new)
        self._facts = {1 + fact: 2 * (1 + fact) for fact in range(circuit.num_facts)}
        self._mark = 2 * (1 + circuit.num_facts)
        self._no_actions = dict.fromkeys(range(1 + circuit.num_facts, 1 + circuit.num_inputs), FALSE)

    def circuit(self) -> Circuit | None:
        """Return the circuit; None if no move ever wins."""
        old, new, builder = self._old, self._new, self._builder
        first, ends = builder.first_action, np.cumsum([len(moves) for moves in old.actions])
        roles = [range(end - len(moves), end) for end, moves in zip(ends.tolist(), old.actions, strict=True)]
        actions = {1 + old.num_facts + action: first + 2 * action for action in range(old.num_actions)}
        value = builder.compose(old, self._facts | actions)
        new.outputs = {group: [value(literal) for literal in literals] for group, literals in old.outputs.items()}
        new.outputs["next"].append(self._mark)
        wins = [dict(zip(old.actions[role], self._wins(role, own), strict=True)) for role, own in enumerate(roles)]
        if all(win == FALSE for own in wins for win in own.values()):
            return None
        legal = new.outputs["legal"]
        new.outputs["legal"] = [
            literal
            for role, own in enumerate(roles)
            for literal in self._informed(legal[own.start : own.stop], wins[role], wins[1 - role])
        ]
        drop_dead(new)
        return new

    def _wins(self, role: int, actions: range) -> list[GateLiteral]:
        """Return for each action of a role when it would be legal and win, were it the turn of the role.

        A role with fewer than two goal values has nothing to win.
        """
        old, builder = self._old, self._builder
        if len(old.goals[role]) < 2:
            return [FALSE] * len(actions)
        facts = self._facts | {1 + self._turns[role]: TRUE, 1 + self._turns[1 - role]: FALSE}
        legal, after = old.outputs["legal"][actions.start : actions.stop], old.outputs["next"]
        best = sum(map(len, old.goals[: role + 1])) - 1  # goal values ascend
        end = [old.outputs["terminal"][0], old.outputs["goal"][best]]
        below_legal, below_after, below_end = (
            np.flatnonzero(needed_nodes(old, outputs)).tolist() for outputs in (legal, after, end)
        )
        may = builder.compose(old, facts | self._no_actions, below_legal)
        wins = []
        for action, literal in zip(actions, legal, strict=True):
            if action == self._idle[role] or may(literal) == FALSE:
                wins.append(FALSE)
                continue
            moves = {1 + old.num_facts + move: TRUE for move in (action, self._idle[1 - role])}
            then = builder.compose(old, facts | self._no_actions | moves, below_after)
            states = {1 + fact: then(following) for fact, following in enumerate(after)}
            is_so = builder.compose(old, states | self._no_actions, below_end)
            wins.append(builder.all_of([may(literal), *map(is_so, end)]))
        return wins

    def _informed(
        self, legal: Sequence[GateLiteral], wins: dict[GroundTerm, GateLiteral], threats: dict[GroundTerm, GateLiteral]
    ) -> list[GateLiteral]:
        """Return the legal moves of a role, restricted to wins or else to answers in informed lanes."""
        builder = self._builder
        winning = [builder.conjunction(*pair) for pair in zip(legal, wins.values(), strict=True)]
        answering = [builder.conjunction(may, threats.get(move, FALSE)) for may, move in zip(legal, wins, strict=True)]
        wins_now, answers_now = builder.any_of(winning), builder.any_of(answering)
        return [
            builder.conjunction(
                may,
                builder.any_of(
                    [
                        win,
                        builder.conjunction(wins_now ^ 1, builder.disjunction(answer, answers_now ^ 1)),
                        self._mark ^ 1,
                    ]
                ),
            )
            for may, win, answer in zip(legal, winning, answering, strict=True)
        ]


def _in_threads(play: Callable[[int, Event], Result], count: int, threads: int | None) -> list[Result]:
    """Call `play` for the indices 0 to count - 1 in several threads, and return the results.

    `play` also gets an event, which is set if a thread raises an error or if the caller is interrupted. Then each
    thread must stop.
    """
    stopped = Event()

    def stopping(index: int) -> Result:
        try:
            return play(index, stopped)
        except BaseException:
            stopped.set()  # now, because the caller gets the error only after all earlier results
            raise

    threads = min(count, threads or num_cores())
    if threads == 1:
        return [play(index, stopped) for index in range(count)]
    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(stopping, range(count)))
        finally:
            stopped.set()


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
