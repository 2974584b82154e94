"""One random legal move in each of 512 lanes, drawn in planes.

The legal planes are added up bit by bit, which gives each lane its number of legal moves, a number in planes: a list
of *digits*, least first. A number below it is drawn (under the mask of its highest bit, again where it is too large).
Then the moves are walked through once more, eight at a time: the number of legal ones among the eight is taken off the
number drawn, and in the lanes where it does not reach, the move is one of these eight.

The code is a loop over the moves, so it is as long for four moves as for four thousand, and takes less than 2 ns for
each. To transpose the legal planes and to select in the words of each lane would be the other way; the transposition
alone takes 1.4 ns a move, before anything is counted, drawn or set, so no number of moves makes it the faster one.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ir import ZERO, Code, Variable
from .planes import ONES, VECTOR, splat

EIGHT = 8  # moves that are walked through together
DIGITS_OF_EIGHT = 4  # of the number of legal ones among them
STATE = 4  # planes of the random generator's state


def num_digits(num_moves: int) -> int:
    """The digits of the number of legal moves of a role that has so many moves."""
    return max(1, num_moves.bit_length())


def draw_code(digits: int) -> str:
    """IR of `draw(legal, count, moves, used, sums, random, lanes)`, for less than 2^digits moves.

    legal, moves: the addresses of `count` planes; a legal move is set in the second in each of the lanes that has one.
    What is returned is the lanes that have none. used: count // 8 bytes, which say where eight planes of moves are not
    all zero; sums: count // 2 planes that are overwritten. random: the generator's state, STATE planes; a word of it
    goes on if one of its lanes needs a number.
    """
    arguments = f"ptr %legal, i64 %count, ptr %moves, ptr %used, ptr %sums, ptr %random, {VECTOR} %lanes"
    code = Code(f"{VECTOR} @draw({arguments})")
    eights = code.calc("lshr", "%count", 3)
    rest = code.calc("shl", eights, 3)
    total = [digit.get() for digit in _count(code, digits, eights, rest)]
    some = code.any_of(total)
    pending = code.plane(code.op("and", "%lanes", some))
    number = _number_below(code, total, pending.get())
    if digits >= DIGITS_OF_EIGHT:
        with code.loop(eights) as index:
            _walk_eight(code, index, number, pending)
    with code.loop("%count", rest) as index:
        legal = code.op("and", code.get("%legal", index), pending.get())
        hit = code.without(legal, code.any_of([digit.get() for digit in number]))
        code.put(hit, "%moves", index)
        pending.set(code.op("xor", pending.get(), hit))
        _take_off(code, number, [legal])
    return code.text(f"{VECTOR} {code.without('%lanes', some)}")


def _count(code: Code, digits: int, eights: str, rest: str) -> list[Variable]:
    """The number of legal moves; `%sums` keeps that of each eight."""
    total = [code.plane() for _ in range(digits)]
    if digits >= DIGITS_OF_EIGHT:
        with code.loop(eights) as index:
            number = _sum_of_eight(code, _eight(code, "%legal", index))
            _add(code, total, number)
            for place, digit in enumerate(number):
                code.put(digit, _sums(code, index), place)
    with code.loop("%count", rest) as index:
        _add(code, total, [code.get("%legal", index)])
    return total


def _eight(code: Code, planes: str, index: str) -> list[str]:
    first = code.at(planes, code.calc("shl", index, 3))
    return [code.get(first, place) for place in range(EIGHT)]


def _sums(code: Code, index: str) -> str:
    return code.at("%sums", code.calc("mul", index, DIGITS_OF_EIGHT))


def _half_adder(code: Code, a: str, b: str) -> tuple[str, str]:
    """Sum and carry."""
    return code.op("xor", a, b), code.op("and", a, b)


def _full_adder(code: Code, a: str, b: str, c: str) -> tuple[str, str]:
    """Sum and carry."""
    differ = code.op("xor", a, b)
    return code.op("xor", differ, c), code.op("or", code.op("and", a, b), code.op("and", differ, c))


def _sum_of_eight(code: Code, x: Sequence[str]) -> list[str]:
    """How many of eight planes are set, four digits."""
    (a, carry_a), (b, carry_b) = _full_adder(code, *x[:3]), _full_adder(code, *x[3:6])
    c, carry_c = _full_adder(code, a, b, x[6])
    ones, carry_d = _half_adder(code, c, x[7])
    e, carry_e = _full_adder(code, carry_a, carry_b, carry_c)
    twos, carry_f = _half_adder(code, e, carry_d)
    return [ones, twos, *_half_adder(code, carry_e, carry_f)]


def _add(code: Code, total: Sequence[Variable], number: Sequence[str]) -> None:
    carry = ZERO
    for digit, added in zip(total, [*number, *[ZERO] * len(total)], strict=False):
        value, carry = _full_adder(code, digit.get(), added, carry)
        digit.set(value)


def _take_off(code: Code, number: Sequence[Variable], less: Sequence[str]) -> str:
    """Subtracts; gives the lanes in which the number was too small, where it is not a number any more."""
    borrow = ZERO
    for digit, taken in zip(number, [*less, *[ZERO] * len(number)], strict=False):
        old = digit.get()
        differ = code.op("xor", old, taken)
        digit.set(code.op("xor", differ, borrow))
        borrow = code.op("or", code.without(taken, old), code.without(borrow, differ))
    return borrow


def _number_below(code: Code, total: Sequence[str], lanes: str) -> list[Variable]:
    """A uniform number below the total in each of the lanes."""
    most = [code.plane(digit) for digit in total]
    _take_off(code, most, [ONES])
    largest = [digit.get() for digit in most]
    masks = [code.any_of(largest[place:]) for place in range(len(largest))]
    state = [code.plane(code.get("%random", place)) for place in range(STATE)]
    number = [code.plane() for _ in total]
    needed = code.plane(code.op("and", lanes, masks[0]))
    with code.repeat(lambda: code.any(needed.get())):
        need = needed.get()
        drawn = _random_digits(code, state, need, masks)
        for digit, new in zip(number, drawn, strict=True):
            digit.set(code.chosen(need, new, digit.get()))
        compared = [code.plane(digit) for digit in largest]
        needed.set(code.op("and", need, _take_off(code, compared, drawn)))
    for place, variable in enumerate(state):
        code.put(variable.get(), "%random", place)
    return number


def _random_digits(code: Code, state: Sequence[Variable], need: str, masks: Sequence[str]) -> list[str]:
    """A random plane under each mask; words of the state in which no lane needs it stay as they are."""
    old = [variable.get() for variable in state]
    now, digits = old, []
    for mask in masks:
        plane, now = _xoshiro(code, *now)
        digits.append(code.op("and", plane, mask))
    goes_on = code.line(f"icmp ne {VECTOR} {need}, {ZERO}")
    for variable, before, after in zip(state, old, now, strict=True):
        variable.set(code.line(f"select <8 x i1> {goes_on}, {VECTOR} {after}, {VECTOR} {before}"))
    return digits


def _xoshiro(code: Code, s0: str, s1: str, s2: str, s3: str) -> tuple[str, list[str]]:
    """A random plane and the next state: xoshiro256++ (Blackman & Vigna 2021), a generator in each word."""
    plane = code.op("add", _rotated(code, code.op("add", s0, s3), 23), s0)
    shifted = code.op("shl", s1, splat(17))
    s2, s3 = code.op("xor", s2, s0), code.op("xor", s3, s1)
    s1, s0 = code.op("xor", s1, s2), code.op("xor", s0, s3)
    return plane, [s0, s1, code.op("xor", s2, shifted), _rotated(code, s3, 45)]


def _rotated(code: Code, plane: str, distance: int) -> str:
    return code.line(f"call {VECTOR} @llvm.fshl.v8i64({VECTOR} {plane}, {VECTOR} {plane}, {VECTOR} {splat(distance)})")


def _walk_eight(code: Code, index: str, number: Sequence[Variable], pending: Variable) -> None:
    """Takes the move of the lanes that choose among eight; takes their number off the others' numbers."""
    moves = code.at("%moves", code.calc("shl", index, 3))
    used = code.line(f"icmp ne i8 {code.get('%used', index, 'i8')}, 0")
    sums = _sums(code, index)
    less = [code.get(sums, place) for place in range(DIGITS_OF_EIGHT)]
    before = [digit.get() for digit in number[: DIGITS_OF_EIGHT - 1]]
    here = code.plane()
    with code.when(code.any(code.any_of(less))):
        here.set(code.op("and", pending.get(), _take_off(code, number, less)))
    with code.choice(code.any(here.get())) as otherwise:
        pending.set(code.op("xor", pending.get(), here.get()))
        for place, hit in enumerate(_chosen_of_eight(code, _eight(code, "%legal", index), here.get(), before)):
            code.put(hit, moves, place)
        code.put("1", "%used", index, "i8")
        otherwise()
        with code.when(used):
            for place in range(EIGHT):
                code.put(ZERO, moves, place)
            code.put("0", "%used", index, "i8")


def _chosen_of_eight(code: Code, legal: Sequence[str], lanes: str, number: list[str]) -> list[str]:
    """In each of the lanes the legal plane with this number; a number needs fewer digits the fewer planes are left."""
    hits = []
    for left in range(EIGHT - 1, -1, -1):
        number = number[: left.bit_length()]
        open_ = code.op("and", legal[EIGHT - 1 - left], lanes)
        hit = code.without(open_, code.any_of(number)) if number else open_
        hits.append(hit)
        lanes = code.op("xor", lanes, hit)
        number = _less_one(code, number, open_)
    return hits


def _less_one(code: Code, number: Sequence[str], borrow: str) -> list[str]:
    """A number less one in the lanes of `borrow`."""
    result = []
    for digit in number:
        result.append(code.op("xor", digit, borrow))
        borrow = code.without(borrow, digit)
    return result
