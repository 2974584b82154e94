"""Choosing a random legal move in 512 lanes at once: the code of the function `draw`.

The code adds up the planes of legal moves. The sum is the number of legal moves in each lane. It is a list of *digits*,
which are planes, the least significant digit first. Then the code draws a random number below this sum in each lane. It
draws as many random bits as the number sum - 1 has in binary, and repeats this until the result is below the sum. Next,
it passes through the moves once more, eight at a time, and subtracts the number of legal moves among the eight from the
random number. In lanes in which this underflows, the move is one of these eight. The code is a loop over the moves, and
takes less than 2 ns for each move. The alternative is to transpose the legal planes and to select a move in the words
of each lane. The transposition alone takes 1.4 ns for each move, so the alternative is never faster.
"""

from __future__ import annotations

from collections.abc import Sequence

from .native import ZERO, Code, IRVariable
from .tape import ONES, VECTOR, splat

EIGHT = 8  # number of moves that are handled together
STATE = 4  # number of planes for the state of the random generators
DIGITS_OF_EIGHT = 4  # number of digits for the number of legal moves among eight moves


def num_digits(num_moves: int) -> int:
    """Return the number of digits that are needed to count the legal moves of a role with `num_moves` moves."""
    return max(1, num_moves.bit_length())


def draw_code(digits: int) -> str:
    """Return the IR of `draw(legal, count, moves, used, sums, random, lanes)` for less than 2^digits moves.

    The function chooses one legal move at random in each of the lanes, and sets it in `moves`. It returns the lanes
    without a legal move.

    legal, moves: addresses of `count` planes each. used: count // 8 bytes; each byte says whether eight planes of
    `moves` may contain set lanes. sums: count // 2 planes for intermediate results. random: STATE planes, the state of
    the random generators; the generator of a word advances if one of the lanes of the word needs a number.
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


def _count(code: Code, digits: int, eights: str, rest: str) -> list[IRVariable]:
    """Return the number of legal moves as digits; store the numbers for each eight moves in `%sums`."""
    total = [code.plane() for _ in range(digits)]
    if digits >= DIGITS_OF_EIGHT:
        with code.loop(eights) as index:
            number = _sum_of_eight(code, _eight(code, "%legal", index))
            _add(code, total, number)
            for k, digit in enumerate(number):
                code.put(digit, _sums(code, index), k)
    with code.loop("%count", rest) as index:
        _add(code, total, [code.get("%legal", index)])
    return total


def _eight(code: Code, planes: str, index: str) -> list[str]:
    first = code.at(planes, code.calc("shl", index, 3))
    return [code.get(first, k) for k in range(EIGHT)]


def _sums(code: Code, index: str) -> str:
    return code.at("%sums", code.calc("mul", index, DIGITS_OF_EIGHT))


def _half_adder(code: Code, a: str, b: str) -> tuple[str, str]:
    """Return sum and carry."""
    return code.op("xor", a, b), code.op("and", a, b)


def _full_adder(code: Code, a: str, b: str, c: str) -> tuple[str, str]:
    """Return sum and carry."""
    differ = code.op("xor", a, b)
    return code.op("xor", differ, c), code.op("or", code.op("and", a, b), code.op("and", differ, c))


def _sum_of_eight(code: Code, x: Sequence[str]) -> list[str]:
    """Return the number of planes among eight that are set in each lane, as four digits."""
    (a, carry_a), (b, carry_b) = _full_adder(code, *x[:3]), _full_adder(code, *x[3:6])
    c, carry_c = _full_adder(code, a, b, x[6])
    ones, carry_d = _half_adder(code, c, x[7])
    e, carry_e = _full_adder(code, carry_a, carry_b, carry_c)
    twos, carry_f = _half_adder(code, e, carry_d)
    return [ones, twos, *_half_adder(code, carry_e, carry_f)]


def _add(code: Code, total: Sequence[IRVariable], number: Sequence[str]) -> None:
    """Add a number to the total."""
    carry = ZERO
    for digit, added in zip(total, [*number, *[ZERO] * len(total)], strict=False):
        value, carry = _full_adder(code, digit.get(), added, carry)
        digit.set(value)


def _take_off(code: Code, number: Sequence[IRVariable], less: Sequence[str]) -> str:
    """Subtract `less` from `number`; return the lanes that underflow, in which the number is then meaningless."""
    borrow = ZERO
    for digit, taken in zip(number, [*less, *[ZERO] * len(number)], strict=False):
        old = digit.get()
        differ = code.op("xor", old, taken)
        digit.set(code.op("xor", differ, borrow))
        borrow = code.op("or", code.without(taken, old), code.without(borrow, differ))
    return borrow


def _number_below(code: Code, total: Sequence[str], lanes: str) -> list[IRVariable]:
    """Return a uniform random number, as digits, below the total in each of these lanes."""
    most = [code.plane(digit) for digit in total]
    _take_off(code, most, [ONES])
    largest = [digit.get() for digit in most]
    masks = [code.any_of(largest[k:]) for k in range(len(largest))]
    state = [code.plane(code.get("%random", k)) for k in range(STATE)]
    number = [code.plane() for _ in total]
    needed = code.plane(code.op("and", lanes, masks[0]))
    with code.repeat(lambda: code.any(needed.get())):
        need = needed.get()
        drawn = _random_digits(code, state, need, masks)
        for digit, new in zip(number, drawn, strict=True):
            digit.set(code.chosen(need, new, digit.get()))
        compared = [code.plane(digit) for digit in largest]
        needed.set(code.op("and", need, _take_off(code, compared, drawn)))
    for k, variable in enumerate(state):
        code.put(variable.get(), "%random", k)
    return number


def _random_digits(code: Code, state: Sequence[IRVariable], need: str, masks: Sequence[str]) -> list[str]:
    """Return one random plane for each mask, ANDed with the mask.

    The generator of a word advances only if one of the lanes of the word is in `need`.
    """
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
    """Return a random plane and the next state; each word has its own xoshiro256++ (Blackman & Vigna 2021)."""
    plane = code.op("add", _rotated(code, code.op("add", s0, s3), 23), s0)
    shifted = code.op("shl", s1, splat(17))
    s2, s3 = code.op("xor", s2, s0), code.op("xor", s3, s1)
    s1, s0 = code.op("xor", s1, s2), code.op("xor", s0, s3)
    return plane, [s0, s1, code.op("xor", s2, shifted), _rotated(code, s3, 45)]


def _rotated(code: Code, plane: str, distance: int) -> str:
    return code.line(f"call {VECTOR} @llvm.fshl.v8i64({VECTOR} {plane}, {VECTOR} {plane}, {VECTOR} {splat(distance)})")


def _walk_eight(code: Code, index: str, number: Sequence[IRVariable], pending: IRVariable) -> None:
    """Handle eight moves: set the move in the lanes that choose one of them, and subtract in the other lanes."""
    moves = code.at("%moves", code.calc("shl", index, 3))
    used = code.line(f"icmp ne i8 {code.get('%used', index, 'i8')}, 0")
    sums = _sums(code, index)
    less = [code.get(sums, k) for k in range(DIGITS_OF_EIGHT)]
    before = [digit.get() for digit in number[: DIGITS_OF_EIGHT - 1]]
    here = code.plane()
    with code.when(code.any(code.any_of(less))):
        here.set(code.op("and", pending.get(), _take_off(code, number, less)))
    with code.choice(code.any(here.get())) as otherwise:
        pending.set(code.op("xor", pending.get(), here.get()))
        for k, hit in enumerate(_chosen_of_eight(code, _eight(code, "%legal", index), here.get(), before)):
            code.put(hit, moves, k)
        code.put("1", "%used", index, "i8")
        otherwise()
        with code.when(used):
            for k in range(EIGHT):
                code.put(ZERO, moves, k)
            code.put("0", "%used", index, "i8")


def _chosen_of_eight(code: Code, legal: Sequence[str], lanes: str, number: list[str]) -> list[str]:
    """Return eight planes, one for each move. In each of these lanes, the legal move with index `number` is set."""
    hits = []
    for left in range(EIGHT - 1, -1, -1):
        number = number[: left.bit_length()]  # fewer digits are needed for fewer planes
        open_ = code.op("and", legal[EIGHT - 1 - left], lanes)
        hit = code.without(open_, code.any_of(number)) if number else open_
        hits.append(hit)
        lanes = code.op("xor", lanes, hit)
        number = _less_one(code, number, open_)
    return hits


def _less_one(code: Code, number: Sequence[str], borrow: str) -> list[str]:
    """Return the number, reduced by one in the lanes of `borrow`."""
    result = []
    for digit in number:
        result.append(code.op("xor", digit, borrow))
        borrow = code.without(borrow, digit)
    return result
