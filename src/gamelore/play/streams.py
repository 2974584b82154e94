"""Random numbers without state: a number is a pure function of its key, a counter and a draw.

Convention: the key of a stream is `stream(seed, run, stage, match, role)`, the counter is the ply of the
match, and the draw says what the number is for (EXPLORE: whether to explore, WHICH: which of several moves).
So a run is the same alone, among a hundred, resumed, on either engine and over the wire: nobody draws from
anybody else's sequence.

The mixing function is the finaliser of splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom
number generators", with Stafford's variant 13 of the multipliers), applied to both arguments.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .kernel import kernel

EXPLORE = 0
WHICH = 1

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_U_GOLDEN, _U_FIRST, _U_SECOND = np.uint64(_GOLDEN), np.uint64(_FIRST), np.uint64(_SECOND)
_U11, _U27, _U30, _U31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


def stream(seed: int, *key: int | str) -> np.uint64:
    """The key of a stream. Integers count modulo 2**64; texts are hashed the same way in every process.

    `stream(seed, a, b)` equals `extend(stream(seed, a), b)`: the keys of a batch can be finished in one call.
    """
    value = 0
    for part in (seed, *key):
        number = _text_number(part) if isinstance(part, str) else part & _MASK
        value = _scramble(value ^ _scramble((number + _GOLDEN) & _MASK))
    return np.uint64(value)


def extend(keys: ArrayLike, part: ArrayLike) -> NDArray[np.uint64]:
    """Appends one integer part to every key; shapes broadcast."""
    left, right = _flat_pair(keys, part)
    return _mix_arrays(left.ravel(), right.ravel()).reshape(left.shape)


def uniform(keys: ArrayLike, counter: ArrayLike, draw: int) -> NDArray[np.float64]:
    """Numbers in [0, 1), one for each key and counter; shapes broadcast."""
    left, right = _flat_pair(keys, counter)
    return _uniform_arrays(left.ravel(), right.ravel(), np.uint64(draw)).reshape(left.shape)


@kernel("uint64(uint64)")
def scramble(value: np.uint64) -> np.uint64:
    """The finaliser of splitmix64, a bijection of 64-bit words; for use inside kernels."""
    value = (value ^ (value >> _U30)) * _U_FIRST
    value = (value ^ (value >> _U27)) * _U_SECOND
    return value ^ (value >> _U31)


@kernel("uint64(uint64, uint64)")
def mix(key: np.uint64, part: np.uint64) -> np.uint64:
    """Key and one further part to a key; for use inside kernels. A bijection in either argument."""
    return scramble(key ^ scramble(part + _U_GOLDEN))


@kernel("float64(uint64, uint64, uint64)")
def unit(key: np.uint64, counter: np.uint64, draw: np.uint64) -> float:
    """A number in [0, 1) with 53 random bits; for use inside kernels."""
    return (mix(mix(key, counter), draw) >> _U11) * (1.0 / 9007199254740992.0)


@kernel("int64(uint64, uint64, uint64, int64)")
def below(key: np.uint64, counter: np.uint64, draw: np.uint64, bound: int) -> int:
    """An integer in [0, bound), with a bias of at most bound / 2**53; for use inside kernels."""
    return int(unit(key, counter, draw) * bound)


@kernel("uint64[::1](uint64[::1], uint64[::1])")
def _mix_arrays(keys: NDArray[np.uint64], parts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    out = np.empty_like(keys)
    for i in range(keys.size):
        out[i] = mix(keys[i], parts[i])
    return out


@kernel("float64[::1](uint64[::1], uint64[::1], uint64)")
def _uniform_arrays(keys: NDArray[np.uint64], counters: NDArray[np.uint64], draw: np.uint64) -> NDArray[np.float64]:
    out = np.empty(keys.size)
    for i in range(keys.size):
        out[i] = unit(keys[i], counters[i], draw)
    return out


def _flat_pair(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    pair = np.broadcast_arrays(_unsigned(left), _unsigned(right))
    return np.array(pair[0], order="C"), np.array(pair[1], order="C")


def _unsigned(values: ArrayLike) -> NDArray[np.uint64]:
    return np.array(values & _MASK if isinstance(values, int) else values).astype(np.uint64)


def _text_number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _scramble(value: int) -> int:
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)
