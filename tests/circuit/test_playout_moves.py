"""The draw of a random move in planes, called by itself: any number of moves, any lanes, any pattern of legal moves."""

from ctypes import CFUNCTYPE, c_int64, c_void_p

import numpy as np
import pytest

from gamelore.circuit.native import Code, compiled_kernel
from gamelore.circuit.sampling import STATE, draw_code, num_digits
from gamelore.circuit.tape import LANES, VECTOR, zero_planes

SIZES = [0, 1, 2, 3, 7, 8, 9, 15, 16, 63, 64, 65, 130, 1000]


def planes(bits):
    """bool[n, LANES] to planes; lane i is bit i % 64 of word i // 64."""
    memory = zero_planes(len(bits))
    memory[:] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    return memory


def bits(memory):
    return np.unpackbits(memory.view(np.uint8), axis=1, bitorder="little").astype(bool)


class Draw:
    """The machine code for so many moves, with what it keeps from one draw to the next."""

    def __init__(self, num_moves, seed=0):
        self.num_moves = num_moves
        self.moves = zero_planes(num_moves)
        self.used, self.sums = np.zeros(num_moves // 8 + 1, np.uint8), zero_planes(num_moves // 2)
        self.random = zero_planes(STATE)
        self.random[:] = np.random.default_rng(seed).integers(1, 2**64, self.random.shape, np.uint64)
        code = compiled_kernel(draw_code(num_digits(num_moves)) + caller())
        self.function = CFUNCTYPE(None, c_void_p, c_int64, *[c_void_p] * 5)(code.address("caller"))

    def __call__(self, legal, lanes):
        """The moves drawn, bool[moves, LANES], and the lanes that have none, bool[LANES]."""
        given, active = planes(legal), planes(lanes[None])
        places = [array.ctypes.data for array in (self.moves, self.used, self.sums, self.random, active)]
        self.function(given.ctypes.data, self.num_moves, *places)
        return bits(self.moves), bits(active)[0]


def caller():
    """Planes are handed over by their address, for C cannot pass them."""
    code = Code("void @caller(ptr %legal, i64 %count, ptr %moves, ptr %used, ptr %sums, ptr %random, ptr %lanes)")
    arguments = f"ptr %legal, i64 %count, ptr %moves, ptr %used, ptr %sums, ptr %random, {VECTOR} {code.get('%lanes')}"
    code.put(code.line(f"call {VECTOR} @draw({arguments})"), "%lanes")
    return code.text()


@pytest.mark.parametrize("num_moves", SIZES)
def test_one_legal_move_in_each_lane_that_has_one_and_nothing_is_left_from_before(num_moves):
    rng, draw = np.random.default_rng(num_moves), Draw(num_moves)
    for density in (1.0, 0.5, 0.02, 0.0, 0.3):
        legal = rng.random((num_moves, LANES)) < density
        lanes = rng.random(LANES) < 0.9
        drawn, none = draw(legal, lanes)
        assert not (drawn & ~legal).any()
        np.testing.assert_array_equal(drawn.sum(axis=0), lanes & legal.any(axis=0))
        np.testing.assert_array_equal(none, lanes & ~legal.any(axis=0))


def chi_square(counts):
    expected = counts.sum() / len(counts)
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize(
    ("num_moves", "legal"),
    [
        (2, [0, 1]),
        (9, range(9)),
        (9, [0, 8]),
        (64, range(64)),
        (65, [0, 7, 8, 31, 63, 64]),
        (130, range(130)),
        (130, [5, 6, 7, 8, 127, 128, 129]),
        (1000, [0, 500, 999]),
        (1000, range(3, 1000, 10)),
    ],
)
def test_every_legal_move_is_as_likely(num_moves, legal):
    legal = list(legal)
    given = np.zeros((num_moves, LANES), bool)
    given[legal] = True
    draw, counts, pairs = Draw(num_moves, seed=7), np.zeros(len(legal)), np.zeros((len(legal), len(legal)))
    for _ in range(60):
        chosen = draw(given, np.ones(LANES, bool))[0][legal].argmax(axis=0)
        counts += np.bincount(chosen, minlength=len(legal))
        np.add.at(pairs, (chosen[:-1], chosen[1:]), 1)
    degrees = len(legal) - 1
    assert chi_square(counts) < degrees + 5 * (2 * degrees) ** 0.5, "uniform in each lane"
    if len(legal) < 10:
        degrees = len(legal) ** 2 - 1
        assert chi_square(pairs.ravel()) < degrees + 5 * (2 * degrees) ** 0.5, "independent of the lane beside it"


def test_each_lane_draws_among_its_own_moves():
    """Lane i has i % 130 + 1 legal moves, spread over all."""
    num_moves = 130
    rng, draw = np.random.default_rng(3), Draw(num_moves, seed=3)
    ranks = np.stack([rng.permutation(num_moves) for _ in range(LANES)], axis=1)
    numbers = np.arange(LANES) % num_moves + 1
    legal = ranks < numbers
    places = np.cumsum(legal, axis=0) - 1
    drawn = np.array(
        [places[draw(legal, np.ones(LANES, bool))[0].argmax(axis=0), np.arange(LANES)] for _ in range(200)]
    )
    means, expected = drawn.mean(axis=0), (numbers - 1) / 2
    errors = ((numbers**2 - 1) / 12 / len(drawn)) ** 0.5
    assert (np.abs(means - expected) <= 4.5 * errors).all()


def test_64_lanes_draw_the_same_whatever_the_others_do():
    """So neither the width of a plane nor the number of threads changes a result."""
    rng = np.random.default_rng(5)
    together, alone = Draw(20, seed=1), Draw(20, seed=1)
    own = np.arange(LANES) // 64 == 3
    for _ in range(20):
        legal = rng.random((20, LANES)) < 0.4
        of_all = together(legal, np.ones(LANES, bool))[0]
        np.testing.assert_array_equal(alone(legal & own, own)[0][:, own], of_all[:, own])
