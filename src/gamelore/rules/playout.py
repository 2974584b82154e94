"""Random playouts in planes: 512 matches at a time, from the first state to the end, without leaving machine code.

Each step asks for terminal and goals, counts the finished lanes' goals, starts the next playouts in them, asks for
legal moves, draws one uniformly for each role, and applies them. Exactly n playouts are started and all finish:
stopping at the first n that finish would favour short ones. Every 64 lanes have their own quota and their own random
stream, so the result depends neither on the width of a plane nor on the number of threads.

A draw, for one role and all lanes at once: the legal planes are added up bit by bit (d = number of legal moves - 1);
a random number is drawn under the mask of d's highest bit, again where it is larger than d; then the legal moves are
walked through, counting the number down, and the one at zero is taken.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from .circuit import Circuit
from .planes import LANES, ONES, VECTOR, Instructions, Layout, zero_planes

ZERO = "zeroinitializer"
GROUPS_PER_BLOCK = 8  # of 64 lanes
STEPS_PER_CALL = 4096
MAX_BLOCKS = 64

# The context that a block carries from call to call, in planes before the goal counters.
RANDOM, REMAINING, ACTIVE, STUCK, STEPS, STUCK_COUNT, COUNTERS = 0, 4, 5, 6, 7, 8, 9


@dataclass(frozen=True, slots=True)
class Playouts:
    """Outcome of random playouts: for each role goal value -> how often; None counts stuck ones and unclear goals."""

    num_playouts: int
    num_steps: int
    num_stuck: int
    goals: tuple[dict[int | None, int], ...]

    def mean(self, role: int) -> float:
        """The mean goal of a role over the playouts that gave it one; nan if none did."""
        counts = {value: count for value, count in self.goals[role].items() if value is not None}
        total = sum(counts.values())
        return sum(value * count for value, count in counts.items()) / total if total else float("nan")


class _Writer(Instructions):
    """Adds the context, at `%c`, and random planes."""

    def context(self, index: int) -> str:
        return self.line(f"load {VECTOR}, ptr {self._context_address(index)}, align 64")

    def set_context(self, index: int, value: str) -> None:
        self.lines.append(f"  store {VECTOR} {value}, ptr {self._context_address(index)}, align 64")

    def _context_address(self, index: int) -> str:
        return self.line(f"getelementptr {VECTOR}, ptr %c, i64 {index}")

    def count_into(self, index: int, plane: str) -> None:
        """Adds the number of set bits, for each 64 lanes, to a counter."""
        bits = self.line(f"call {VECTOR} @llvm.ctpop.v8i64({VECTOR} {plane})")
        self.set_context(index, self.op("add", self.context(index), bits))

    def without(self, plane: str, removed: str) -> str:
        return self.op("and", plane, self.negated(removed))

    def chosen(self, mask: str, yes: str, no: str) -> str:
        """Bitwise: yes where the mask is set, else no."""
        difference = self.op("xor", yes, no)
        return self.op("xor", no, self.op("and", difference, mask))

    def rotated(self, value: str, distance: int) -> str:
        amount = "<" + ", ".join([f"i64 {distance}"] * 8) + ">"
        return self.line(f"call {VECTOR} @llvm.fshl.v8i64({VECTOR} {value}, {VECTOR} {value}, {VECTOR} {amount})")

    def function(self, signature: str, last: str) -> str:
        return "\n".join([f"define {signature} #0 {{", "entry:", *self.lines, last, "}", ""])


def _random_function() -> str:
    """One random plane (xoshiro256++, Blackman & Vigna 2021); words that `%need` does not mention do not advance."""
    write = _Writer()
    s0, s1, s2, s3 = (write.context(RANDOM + i) for i in range(4))
    result = write.op("add", write.rotated(write.op("add", s0, s3), 23), s0)
    shift = "<" + ", ".join(["i64 17"] * 8) + ">"
    t = write.op("shl", s1, shift)
    s2 = write.op("xor", s2, s0)
    s3 = write.op("xor", s3, s1)
    s1 = write.op("xor", s1, s2)
    s0 = write.op("xor", s0, s3)
    s2 = write.op("xor", s2, t)
    s3 = write.rotated(s3, 45)
    needed = write.line(f"icmp ne {VECTOR} %need, {ZERO}")
    for index, value in enumerate((s0, s1, s2, s3)):
        old = write.context(RANDOM + index)
        write.set_context(RANDOM + index, write.line(f"select <8 x i1> {needed}, {VECTOR} {value}, {VECTOR} {old}"))
    return write.function(f"internal {VECTOR} @random_plane(ptr %c, {VECTOR} %need)", f"  ret {VECTOR} {result}")


def _draw_function(role: int, first_output: int, first_action: int, num_actions: int) -> str:
    """`draw<role>(p, c, active)`: sets the role's action planes; gives the lanes in which it has no move."""
    write = _Writer()
    signature = f"internal {VECTOR} @draw{role}(ptr %p, ptr %c, {VECTOR} %active)"
    if not num_actions:
        return write.function(signature, f"  ret {VECTOR} %active")
    legal = [write.load(first_output + i) for i in range(num_actions)]
    count: list[str] = []
    for number, plane in enumerate(legal, start=1):
        carry = plane
        for i, digit in enumerate(count):
            count[i] = write.op("xor", digit, carry)
            carry = write.op("and", digit, carry)
        if number.bit_length() > len(count):
            count.append(carry)
    some = count[0]
    for digit in count[1:]:
        some = write.op("or", some, digit)
    none = write.without("%active", some)
    rest = _minus(write, count, some)
    bits = (num_actions - 1).bit_length()
    number_drawn = _draw_number(write, rest[:bits], write.op("and", "%active", some)) if bits else []
    # One more digit keeps a number that was counted down past zero from coming back to it.
    number_drawn.append(ZERO)
    for index, plane in enumerate(legal):
        hit = write.negated(number_drawn[0])
        for digit in number_drawn[1:]:
            hit = write.without(hit, digit)
        write.store(first_action + index, write.op("and", plane, hit))
        number_drawn = _minus(write, number_drawn, plane)
    return write.function(signature, f"  ret {VECTOR} {none}")


def _minus(write: _Writer, digits: Sequence[str], borrow: str) -> list[str]:
    """A number in planes, least digit first, less one where `borrow` is set."""
    result = []
    for digit in digits:
        result.append(write.op("xor", digit, borrow))
        borrow = write.without(borrow, digit)
    return result


def _draw_number(write: _Writer, most: Sequence[str], lanes: str) -> list[str]:
    """A uniform number 0 .. most in each of the lanes, by rejection; anything below 2^digits in the others."""
    masks = list(most)
    for i in reversed(range(len(masks) - 1)):
        masks[i] = write.op("or", masks[i], masks[i + 1])
    write.lines += ["  br label %try", "try:"]
    width = len(most)
    need = write.line(f"phi {VECTOR} [ {lanes}, %entry ], [ %rejected, %try ]")
    old = [write.line(f"phi {VECTOR} [ {ZERO}, %entry ], [ %kept{i}, %try ]") for i in range(width)]
    drawn = []
    for i in range(width):
        plane = write.line(f"call {VECTOR} @random_plane(ptr %c, {VECTOR} {need})")
        drawn.append(write.op("and", plane, masks[i]))
    greater, equal = ZERO, ONES
    for i in reversed(range(width)):
        above = write.without(drawn[i], most[i])
        greater = write.op("or", greater, write.op("and", equal, above))
        equal = write.without(equal, write.op("xor", drawn[i], most[i]))
    for i in range(width):
        kept = write.chosen(need, drawn[i], old[i])
        write.lines.append(f"  %kept{i} = or {VECTOR} {kept}, {ZERO}")
    write.lines.append(f"  %rejected = and {VECTOR} {need}, {greater}")
    again = write.any("%rejected")
    write.lines += [f"  br i1 {again}, label %try, label %taken", "taken:"]
    return [f"%kept{i}" for i in range(width)]


def _finish_function(circuit: Circuit, layout: Layout) -> str:
    """`finish(p, c)`: counts finished lanes' goals, starts new playouts there; true while a lane is active."""
    write = _Writer()
    active, stuck = write.context(ACTIVE), write.context(STUCK)
    ended = write.op("and", active, write.op("or", write.load(layout.outputs), stuck))
    going = write.any(active)
    write.lines += [f"  br i1 {write.any(ended)}, label %some, label %none", "none:"]
    write.lines += [f"  ret i1 {going}", "some:"]
    write.count_into(STUCK_COUNT, write.op("and", ended, stuck))
    clear = write.without(ended, stuck)
    plane, counter = layout.outputs + 1, COUNTERS
    for values in circuit.goals:
        goals = [write.load(plane + i) for i in range(len(values))]
        exact = write.op("and", clear, _exactly_one(write, goals))
        for goal in goals:
            write.count_into(counter, write.op("and", goal, exact))
            counter += 1
        plane += len(values)
    fresh = write.line(f"call {VECTOR} @refill(ptr %c, {VECTOR} {ended})")
    now_active = write.op("or", write.without(active, ended), fresh)
    write.set_context(ACTIVE, now_active)
    for fact, holds in enumerate(circuit.initial):
        value = write.load(fact)
        write.store(fact, write.op("or", value, fresh) if holds else write.without(value, fresh))
    return write.function("internal i1 @finish(ptr %p, ptr %c)", f"  ret i1 {write.any(now_active)}")


def _exactly_one(write: _Writer, planes: Sequence[str]) -> str:
    seen, twice = ZERO, ZERO
    for plane in planes:
        twice = write.op("or", twice, write.op("and", seen, plane))
        seen = write.op("or", seen, plane)
    return write.without(seen, twice)


_REFILL = f"""
define internal {VECTOR} @refill(ptr %c, {VECTOR} %ended) #0 {{
entry:
  %place = getelementptr {VECTOR}, ptr %c, i64 {REMAINING}
  %remaining = load {VECTOR}, ptr %place, align 64
  %count = call {VECTOR} @llvm.ctpop.v8i64({VECTOR} %ended)
  %enough = icmp ule {VECTOR} %count, %remaining
  %mask = bitcast <8 x i1> %enough to i8
  %all = icmp eq i8 %mask, -1
  br i1 %all, label %simple, label %word
simple:
  %left = sub {VECTOR} %remaining, %count
  store {VECTOR} %left, ptr %place, align 64
  ret {VECTOR} %ended
word:
  %w = phi i64 [ 0, %entry ], [ %w1, %next ]
  %fresh = phi {VECTOR} [ zeroinitializer, %entry ], [ %fresh1, %next ]
  %counts = phi {VECTOR} [ %remaining, %entry ], [ %counts1, %next ]
  %bits0 = extractelement {VECTOR} %ended, i64 %w
  %quota0 = extractelement {VECTOR} %counts, i64 %w
  br label %bit
bit:
  %bits = phi i64 [ %bits0, %word ], [ %bits1, %take ]
  %quota = phi i64 [ %quota0, %word ], [ %quota1, %take ]
  %kept = phi i64 [ 0, %word ], [ %kept1, %take ]
  %b = icmp ne i64 %bits, 0
  %q = icmp ne i64 %quota, 0
  %more = and i1 %b, %q
  br i1 %more, label %take, label %next
take:
  %minus = sub i64 0, %bits
  %lowest = and i64 %bits, %minus
  %bits1 = xor i64 %bits, %lowest
  %kept1 = or i64 %kept, %lowest
  %quota1 = sub i64 %quota, 1
  br label %bit
next:
  %fresh1 = insertelement {VECTOR} %fresh, i64 %kept, i64 %w
  %counts1 = insertelement {VECTOR} %counts, i64 %quota, i64 %w
  %w1 = add i64 %w, 1
  %again = icmp ult i64 %w1, 8
  br i1 %again, label %word, label %done
done:
  store {VECTOR} %counts1, ptr %place, align 64
  ret {VECTOR} %fresh1
}}
"""


def _move_function(circuit: Circuit, layout: Layout) -> str:
    """`move(p, c)`: draws and applies a joint move in the active lanes."""
    write = _Writer()
    active = write.context(ACTIVE)
    write.lines.append("  call void @legal(ptr %p)")
    stuck = ZERO
    for role in range(len(circuit.actions)):
        none = write.line(f"call {VECTOR} @draw{role}(ptr %p, ptr %c, {VECTOR} {active})")
        stuck = write.op("or", stuck, none)
    write.set_context(STUCK, stuck)
    write.count_into(STEPS, write.without(active, stuck))
    write.lines.append("  call void @next(ptr %p)")
    for fact in range(circuit.num_facts):
        write.store(fact, write.load(layout.outputs + fact))
    return write.function("internal void @move(ptr %p, ptr %c)", "  ret void")


_DRIVER = """
define i64 @playouts(ptr %p, ptr %c, i64 %steps) #0 {
entry:
  br label %step
step:
  %i = phi i64 [ 0, %entry ], [ %i1, %go ]
  call void @evaluate(ptr %p)
  %on = call i1 @finish(ptr %p, ptr %c)
  br i1 %on, label %go, label %over
go:
  call void @move(ptr %p, ptr %c)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %steps
  br i1 %more, label %step, label %pause
pause:
  ret i64 1
over:
  ret i64 0
}
"""


def playout_code(circuit: Circuit, layout: Layout) -> str:
    """IR of `playouts(planes, context, steps)`; calls the functions of the three groups."""
    draws = []
    first_output, first_action = layout.outputs, layout.actions
    for role, actions in enumerate(circuit.actions):
        draws.append(_draw_function(role, first_output, first_action, len(actions)))
        first_output += len(actions)
        first_action += len(actions)
    steps = [_finish_function(circuit, layout), _move_function(circuit, layout)]
    return "\n".join([_random_function(), *draws, _REFILL, *steps, _DRIVER])


class PlayoutRunner:
    """Runs compiled playouts, block by block, on several threads.

    `address_of` gives the address of a function of the loaded code. It is kept, and with it the code.
    """

    def __init__(self, address_of: Callable[[str], int], circuit: Circuit, num_planes: int) -> None:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._address_of = address_of
        self._function = prototype(address_of("playouts"))
        self._circuit, self._num_planes = circuit, num_planes

    def run(self, n: int, seed: int, threads: int = 1, progress: Callable[[int], None] | None = None) -> Playouts:
        """Exactly n uniformly random playouts, from a first state that is not terminal.

        `progress` is told the number of finished ones now and then, in the thread that finished them; where it
        raises, or the caller is interrupted, the other threads stop too.
        """
        num_blocks = min(MAX_BLOCKS, max(1, n // (8 * LANES)))
        quotas = np.full(num_blocks * GROUPS_PER_BLOCK, n // (num_blocks * GROUPS_PER_BLOCK), np.int64)
        quotas[: n - quotas.sum()] += 1
        words = np.random.SeedSequence(seed).generate_state(4 * len(quotas), np.uint64)
        streams = words.astype(np.uint64).reshape(len(quotas), 4)
        left = quotas.reshape(num_blocks, GROUPS_PER_BLOCK).sum(axis=1)
        stopped = Event()

        def block(index: int) -> NDArray[np.int64]:
            part = slice(index * GROUPS_PER_BLOCK, (index + 1) * GROUPS_PER_BLOCK)
            for context in self._block(quotas[part], streams[part]):
                left[index] = _unfinished(context)
                if progress:
                    progress(n - int(left.sum()))
                if stopped.is_set():
                    break
            counters: NDArray[np.int64] = context.view(np.int64).sum(axis=1)
            return counters

        with ThreadPoolExecutor(threads) as pool:
            try:
                counters = sum(pool.map(block, range(num_blocks)), np.zeros(1, np.int64))
            except BaseException:
                stopped.set()
                raise
        return self._result(n, counters)

    def _block(self, quotas: NDArray[np.int64], streams: NDArray[np.uint64]) -> Iterator[NDArray[np.uint64]]:
        """Yields the context, uint64[planes, 8], after every call until all lanes are done."""
        planes = zero_planes(self._num_planes)
        context = zero_planes(COUNTERS + sum(map(len, self._circuit.goals)))
        context[RANDOM : RANDOM + 4] = streams.T
        started = np.minimum(quotas, 64)
        context[REMAINING] = quotas - started
        full = np.uint64(2**64 - 1)
        context[ACTIVE] = [full >> np.uint64(64 - lanes) if lanes else 0 for lanes in started.tolist()]
        planes[: self._circuit.num_facts] = np.where(self._circuit.initial, full, np.uint64(0))[:, None]
        while self._function(planes.ctypes.data, context.ctypes.data, STEPS_PER_CALL):
            yield context
        yield context

    def _result(self, n: int, counters: NDArray[np.int64]) -> Playouts:
        goals = []
        place = COUNTERS
        for values in self._circuit.goals:
            counts: dict[int | None, int] = {
                value: int(count) for value, count in zip(values, counters[place : place + len(values)], strict=True)
            }
            counts[None] = n - sum(counts.values())
            goals.append({value: count for value, count in counts.items() if count})
            place += len(values)
        return Playouts(n, int(counters[STEPS]), int(counters[STUCK_COUNT]), tuple(goals))


def _unfinished(context: NDArray[np.uint64]) -> int:
    """The playouts of a block that are going on or not yet started."""
    active: list[int] = context[ACTIVE].tolist()
    return int(context[REMAINING].sum()) + sum(map(int.bit_count, active))
