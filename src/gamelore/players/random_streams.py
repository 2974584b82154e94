"""Stateless random numbers: each number is a pure function of a stream key, a counter and a purpose (`draw`).

By convention, the key of a stream is `stream(seed, run, stage, match, role)` and the counter is the ply of the match.
The parameter `draw` is an integer for the purpose of the number: EXPLORE decides whether to explore, WHICH selects one
of several moves. So a run has the same results alone or in a batch, without or with an interruption, on both engines,
and over the network.

The mixing function is the finaliser of splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
generators", with Stafford's variant 13 of the multipliers), applied to both arguments.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .kernel import F64, U64, kernel

EXPLORE = 0
WHICH = 1

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_U_GOLDEN, _U_FIRST, _U_SECOND = np.uint64(_GOLDEN), np.uint64(_FIRST), np.uint64(_SECOND)
_U11, _U27, _U30, _U31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


def stream(seed: int, *key: int | str) -> np.uint64:
    """Return the key of a stream. Integers are taken modulo 2**64. The hash of a text is the same in every process.

    `stream(seed, a, b)` equals `extend(stream(seed, a), b)`, which also takes arrays of keys and parts.
    """
    value = 0
    for part in (seed, *key):
        if isinstance(part, str):
            part = int.from_bytes(blake2b(part.encode(), digest_size=8).digest(), "little")
        value = _finalise(value ^ _finalise((part + _GOLDEN) & _MASK))
    return np.uint64(value)


def extend(keys: ArrayLike, part: ArrayLike) -> NDArray[np.uint64]:
    """Return the keys of the streams with one more integer part. The shapes of the arguments are broadcast."""
    left, right = _flat_pair(keys, part)
    return _mix_arrays(left.ravel(), right.ravel()).reshape(left.shape)


def uniform(keys: ArrayLike, counter: ArrayLike, draw: int) -> NDArray[np.float64]:
    """Return one number in [0, 1) for each key and counter. The shapes of the arguments are broadcast."""
    left, right = _flat_pair(keys, counter)
    return _uniform_arrays(left.ravel(), right.ravel(), np.uint64(draw)).reshape(left.shape)


@kernel
def finalise(value: np.uint64) -> np.uint64:
    """Apply the finaliser of splitmix64, a bijection of 64-bit words; for use inside kernels."""
    value = (value ^ (value >> _U30)) * _U_FIRST
    value = (value ^ (value >> _U27)) * _U_SECOND
    return value ^ (value >> _U31)


@kernel
def mix(key: np.uint64, part: np.uint64) -> np.uint64:
    """Combine a key with one more part. The function is bijective in each argument; for use inside kernels."""
    return finalise(key ^ finalise(part + _U_GOLDEN))


@kernel
def unit(key: np.uint64, counter: np.uint64, draw: np.uint64) -> float:
    """Return a number in [0, 1) with 53 random bits; for use inside kernels."""
    return (mix(mix(key, counter), draw) >> _U11) * (1.0 / 9007199254740992.0)


@kernel
def below(key: np.uint64, counter: np.uint64, draw: np.uint64, bound: int) -> int:
    """Return an integer in [0, bound), with a bias of at most bound / 2**53; for use inside kernels."""
    return int(unit(key, counter, draw) * bound)


@kernel
def _mix_arrays(keys: U64, parts: U64) -> U64:
    out = np.empty_like(keys)
    for i in range(keys.size):
        out[i] = mix(keys[i], parts[i])
    return out


@kernel
def _uniform_arrays(keys: U64, counters: U64, draw: np.uint64) -> F64:
    out = np.empty(keys.size)
    for i in range(keys.size):
        out[i] = unit(keys[i], counters[i], draw)
    return out


def _flat_pair(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return both arguments as contiguous unsigned arrays, broadcast to their common shape."""
    pair = np.broadcast_arrays(_unsigned(left), _unsigned(right))
    return np.array(pair[0], order="C"), np.array(pair[1], order="C")


def _unsigned(values: ArrayLike) -> NDArray[np.uint64]:
    """Return the integers as uint64, modulo 2**64."""
    return np.array(values & _MASK if isinstance(values, int) else values).astype(np.uint64)


def _finalise(value: int) -> int:
    """Return `finalise` of a Python integer."""
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)
