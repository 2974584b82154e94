"""The machine code that plays random matches in 512 lanes, a *block*; the same for every game.

Each step asks for the legal moves, draws one for each role, and applies them. A lane whose match is over takes no part
in that step, in which its next match is put there. The finished state waits for its goals in planes of its own, in the
same lane, until another would have to wait where one does already; so goals are evaluated for hundreds at once.
"""

from __future__ import annotations

from ctypes import Structure, c_int64

from .draw import STATE
from .ir import NUMBER, ZERO, Code, Variable
from .planes import ONES, VECTOR


def _numbers(names: str) -> list[tuple[str, type[c_int64]]]:
    return [(name, c_int64) for name in names.split()]


class Seat(Structure):
    """What a draw for one role is told: the function, its moves' first planes and number, and what it notes where."""

    _fields_ = _numbers("draw first_output first_action num_moves used sums")


class Block(Structure):
    """What `begin` and `play` are told; numbers and addresses.

    The circuit's functions; the buffer `planes`, and where in it terminal and the outputs lie; `waiting`, another such
    buffer for finished states. `seats`: a Seat for each role. `num_values`: int64 for each role, the number of
    its goal values. `initial`: a word for each fact, all ones where it holds at first. `lanes`: the planes numbered
    below, the last of which is followed by others, one for each goal value.

    Rollouts have `states`, rows of `state_words`, and no initial facts. `next_rows`: int64[8], the row with which each
    64 lanes go on; `rows`, `starts`, `waiting_rows`: int64[512], which row plays or waits in a lane, and the step in
    which it began. `values`: the goal values, int16; they are put into `goals`, int16[rows, roles], and the numbers of
    steps into `lengths`, int32[rows]. A match is cut after `max_steps`, unless that is 0.

    `now` numbers the steps, from -1 before `begin`.
    """

    _fields_ = _numbers(
        "legal goal next planes num_facts outputs terminal waiting num_roles seats num_values initial lanes "
        "states state_words next_rows rows starts waiting_rows values goals lengths max_steps now"
    )


# The planes `lanes`: the generators' state; where a match goes on; where a finished state waits for its goals; and
# planes whose words count: matches to be started, steps, matches that were stuck, and each goal value.
RANDOM, ACTIVE, WAITING, REMAINING, NUM_STEPS, NUM_STUCK, COUNTERS = 0, *range(STATE, STATE + 6)


class _BlockCode(Code):
    """A function whose first argument, `%b`, is the address of a Block."""

    def __init__(self, signature: str) -> None:
        super().__init__(signature)
        self.lanes = self.told("lanes", "ptr")

    def told(self, name: str, kind: str = NUMBER) -> str:
        return self.field("%b", Block, name, kind)

    def lane_plane(self, index: int) -> str:
        return self.get(self.lanes, index)

    def set_lane_plane(self, index: int, plane: str) -> None:
        self.put(plane, self.lanes, index)

    def count(self, index: str | int, plane: str) -> None:
        """Adds the number of set lanes, word by word."""
        self.put(self.op("add", self.get(self.lanes, index), self.popcount(plane)), self.lanes, index)

    def call(self, function: str, *arguments: str) -> None:
        self.do(f"call void @{function}({', '.join(['ptr %b', *arguments])})")

    def call_circuit(self, function: str, planes: str) -> None:
        self.do(f"call void {self.told(function, 'ptr')}(ptr {planes})")

    def in_rollouts(self) -> str:
        return self.compare("ne", self.told("states"), 0)


def block_code() -> str:
    """IR of `begin(block)` and `play(block, steps)`, which tells whether there is more to do."""
    parts = [_refill, _load, _tally, _flush, _settle, _expired, _draw_all, _follow, _step, _begin, _play]
    return "\n".join(part() for part in parts)


def _refill() -> str:
    """`refill(b, free)`: the lanes of `free` in which the next matches start; in each word from the lowest on."""
    code = _BlockCode(f"internal {VECTOR} @refill(ptr %b, {VECTOR} %free)")
    remaining = code.lane_plane(REMAINING)
    enough = code.line(f"icmp ule {VECTOR} {code.popcount('%free')}, {remaining}")
    fresh = code.plane(code.line(f"select <8 x i1> {enough}, {VECTOR} %free, {VECTOR} {ZERO}"))
    with code.when(code.any(code.op("xor", "%free", fresh.get()))):
        _refill_few(code, fresh)
    code.set_lane_plane(REMAINING, code.op("sub", remaining, code.popcount(fresh.get())))
    return code.text(f"{VECTOR} {fresh.get()}")


def _refill_few(code: _BlockCode, fresh: Variable) -> None:
    """Where fewer matches remain to be started than lanes are free: one lane after the other."""
    taken = code.reserve(VECTOR)
    code.put(fresh.get(), taken)
    left = code.reserve(VECTOR)
    code.put(code.lane_plane(REMAINING), left)
    with code.each_lane(code.op("xor", "%free", fresh.get())) as lane:
        word = code.calc("lshr", lane, 6)
        number = code.get(left, word, NUMBER)
        with code.when(code.compare("ne", number, 0)):
            code.put(code.calc("sub", number, 1), left, word, NUMBER)
            bits = code.get(taken, word, NUMBER)
            code.put(code.calc("or", bits, _bit(code, lane)), taken, word, NUMBER)
    fresh.set(code.get(taken))


def _bit(code: Code, lane: str) -> str:
    """A lane's bit in its word."""
    return code.calc("shl", 1, code.calc("and", lane, 63))


def _load() -> str:
    """`load(b, fresh)`: puts the next rows into these lanes, of which no fact holds so far."""
    code = _BlockCode(f"internal void @load(ptr %b, {VECTOR} %fresh)")
    names = ("planes", "states", "next_rows", "rows", "starts")
    planes, states, next_rows, rows, starts = (code.told(name, "ptr") for name in names)
    width, start = code.told("state_words"), code.calc("add", code.told("now"), 1)
    with code.each_lane("%fresh") as lane:
        word = code.calc("lshr", lane, 6)
        row = code.get(next_rows, word, NUMBER)
        code.put(code.calc("add", row, 1), next_rows, word, NUMBER)
        code.put(row, rows, lane, NUMBER)
        code.put(start, starts, lane, NUMBER)
        state = code.at(states, code.calc("mul", row, width), NUMBER)
        with code.loop(width) as index, code.each_bit(code.get(state, index, NUMBER)) as place:
            fact = code.at(planes, code.calc("or", code.calc("shl", index, 6), place))
            code.put(code.calc("or", code.get(fact, word, NUMBER), _bit(code, lane)), fact, word, NUMBER)
    return code.text()


def _tally() -> str:
    """`tally(b, lanes)`: counts, or records, the goals of what waits in these lanes; they have been evaluated."""
    code = _BlockCode(f"internal void @tally(ptr %b, {VECTOR} %lanes)")
    outputs, first = code.at(code.told("waiting", "ptr"), code.told("outputs")), code.number()
    with code.loop(code.told("num_roles")) as role:
        number = code.get(code.told("num_values", "ptr"), role, NUMBER)
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
    """Which of `%lanes` have exactly one of these planes set."""
    seen, twice = code.plane(), code.plane()
    with code.loop(end, begin) as value:
        plane = code.get(outputs, value)
        twice.set(code.op("or", twice.get(), code.op("and", seen.get(), plane)))
        seen.set(code.op("or", seen.get(), plane))
    return code.op("and", "%lanes", code.without(seen.get(), twice.get()))


def _record(code: _BlockCode, role: str, value: str, lanes: str) -> None:
    goal, rows = code.get(code.told("values", "ptr"), value, "i16"), code.told("waiting_rows", "ptr")
    with code.each_lane(lanes) as lane:
        row = code.calc("mul", code.get(rows, lane, NUMBER), code.told("num_roles"))
        code.put(goal, code.told("goals", "ptr"), code.calc("add", row, role), "i16")


def _flush() -> str:
    """`flush(b)`: the goals of all that wait."""
    code = _BlockCode("internal void @flush(ptr %b)")
    lanes = code.lane_plane(WAITING)
    with code.when(code.any(lanes)):
        code.call_circuit("goal", code.told("waiting", "ptr"))
        code.call("tally", f"{VECTOR} {lanes}")
        code.set_lane_plane(WAITING, ZERO)
    return code.text()


def _settle() -> str:
    """`settle(b, over, ended)`: notes the lengths of the matches that are over; those that ended wait for goals."""
    code = _BlockCode(f"internal void @settle(ptr %b, {VECTOR} %over, {VECTOR} %ended)")
    planes, waiting = code.told("planes", "ptr"), code.told("waiting", "ptr")
    with code.when(code.any(code.op("and", "%ended", code.lane_plane(WAITING)))):
        code.call("flush")
    with code.loop(code.told("num_facts")) as fact:
        code.put(code.chosen("%ended", code.get(planes, fact), code.get(waiting, fact)), waiting, fact)
    code.set_lane_plane(WAITING, code.op("or", "%ended", code.lane_plane(WAITING)))
    with code.when(code.in_rollouts()):
        now, names = code.told("now"), ("rows", "starts", "waiting_rows", "lengths")
        rows, starts, waiting_rows, lengths = (code.told(name, "ptr") for name in names)
        with code.each_lane("%over") as lane:
            row = code.get(rows, lane, NUMBER)
            steps = code.calc("sub", now, code.get(starts, lane, NUMBER))
            code.put(code.line(f"trunc i64 {steps} to i32"), lengths, row, "i32")
        with code.each_lane("%ended") as lane:
            code.put(code.get(rows, lane, NUMBER), waiting_rows, lane, NUMBER)
    return code.text()


def _expired() -> str:
    """`expired(b)`: the lanes whose match began `max_steps` ago."""
    code = _BlockCode(f"internal {VECTOR} @expired(ptr %b)")
    bytes_ = code.reserve(VECTOR)
    code.put(ZERO, bytes_)
    limit = code.told("max_steps")
    with code.when(code.compare("ne", limit, 0)):
        latest = code.all_lanes(code.calc("sub", code.told("now"), limit))
        starts = code.told("starts", "ptr")
        with code.loop(64) as index:
            old = code.line(f"icmp sle {VECTOR} {code.get(starts, index)}, {latest}")
            code.put(code.line(f"bitcast <8 x i1> {old} to i8"), bytes_, index, "i8")
    return code.text(f"{VECTOR} {code.get(bytes_)}")


def _draw_all() -> str:
    """`draw_all(b, lanes)`: a move for each role in these lanes; gives those in which some role has none."""
    code = _BlockCode(f"internal {VECTOR} @draw_all(ptr %b, {VECTOR} %lanes)")
    planes, stuck = code.told("planes", "ptr"), code.plane()
    with code.loop(code.told("num_roles")) as role:
        seat = code.at(code.told("seats", "ptr"), role, f"[{len(Seat._fields_)} x i64]")
        legal, moves = (code.at(planes, code.field(seat, Seat, name)) for name in ("first_output", "first_action"))
        number, draw = code.field(seat, Seat, "num_moves"), code.field(seat, Seat, "draw", "ptr")
        notes = ", ".join(f"ptr {code.field(seat, Seat, name, 'ptr')}" for name in ("used", "sums"))
        arguments = f"ptr {legal}, i64 {number}, ptr {moves}, {notes}, ptr {code.lanes}, {VECTOR} %lanes"
        none = code.line(f"call {VECTOR} {draw}({arguments})")
        stuck.set(code.op("or", stuck.get(), none))
    return code.text(f"{VECTOR} {stuck.get()}")


def _follow() -> str:
    """`follow(b, fresh)`: the outputs of `next` become the facts; in fresh lanes the first facts do."""
    code = _BlockCode(f"internal void @follow(ptr %b, {VECTOR} %fresh)")
    planes, facts = code.told("planes", "ptr"), code.told("num_facts")
    outputs, initial = code.at(planes, code.told("outputs")), code.told("initial", "ptr")
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
    """`step(b)`: one step in all lanes; whether any is left with a match."""
    code = _BlockCode("internal i1 @step(ptr %b)")
    planes, active = code.told("planes", "ptr"), code.lane_plane(ACTIVE)
    code.call_circuit("legal", planes)
    ended = code.op("and", active, code.get(planes, code.told("terminal")))
    going = code.without(active, code.op("or", ended, code.line(f"call {VECTOR} @expired(ptr %b)")))
    stuck = code.line(f"call {VECTOR} @draw_all(ptr %b, {VECTOR} {going})")
    stepping = code.without(going, stuck)
    code.count(NUM_STEPS, stepping)
    over, fresh = code.op("xor", active, stepping), code.plane()
    with code.when(code.any(over)):
        code.count(NUM_STUCK, stuck)
        code.call("settle", f"{VECTOR} {over}", f"{VECTOR} {ended}")
        fresh.set(code.line(f"call {VECTOR} @refill(ptr %b, {VECTOR} {over})"))
        code.set_lane_plane(ACTIVE, code.op("or", stepping, fresh.get()))
    any_left = code.any(code.lane_plane(ACTIVE))
    with code.when(any_left):
        code.call_circuit("next", planes)
        code.call("follow", f"{VECTOR} {fresh.get()}")
        code.set_field("%b", Block, "now", code.calc("add", code.told("now"), 1))
    return code.text(f"i1 {any_left}")


def _begin() -> str:
    """`begin(b)`: starts the first matches."""
    code = _BlockCode("void @begin(ptr %b)")
    planes, initial = code.told("planes", "ptr"), code.told("initial", "ptr")
    fresh = code.line(f"call {VECTOR} @refill(ptr %b, {VECTOR} {ONES})")
    code.set_lane_plane(ACTIVE, fresh)
    with code.loop(code.told("num_facts")) as fact:
        code.put(code.all_lanes(code.get(initial, fact, NUMBER)), planes, fact)
    with code.when(code.in_rollouts()):
        code.call("load", f"{VECTOR} {fresh}")
    code.set_field("%b", Block, "now", "0")
    return code.text()


def _play() -> str:
    """`play(b, steps)`: at most so many steps; 1 if there is more to do."""
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
