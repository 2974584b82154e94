"""What afterstates are worth: one hash table for all lanes of a batch, and Equation 2 of Banerjee & Stone (2007).

An afterstate is an int32: the row of a position in the graph, or, where others move at the same time, the negative
number of the role's own move (afterstates.py). The table's key is lane << 32 | afterstate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError
from ..play.kernel import kernel
from ..play.streams import scramble

Keys = NDArray[np.int64]
Values = NDArray[np.float64]

_EMPTY = -1
_FIRST_CAPACITY = 1 << 12  # a power of two; at most half of it is ever used
_LOW = np.int64(0xFFFFFFFF)


class ValueTable:
    """Q and visits by lane and afterstate; an entry is there once it was initialised.

    Arrays over slots, in no order, replaced as the table grows:

    keys    int64[capacity], -1 where empty
    q       float64[capacity], in units of reward
    visits  int32[capacity], 0 for an afterstate that was initialised but not visited
    """

    def __init__(self) -> None:
        self.size = 0
        self._make(_FIRST_CAPACITY)

    def _make(self, capacity: int) -> None:
        self.keys = np.full(capacity, _EMPTY, np.int64)
        self.q = np.zeros(capacity)
        self.visits = np.zeros(capacity, np.int32)

    def reserve(self, extra: int) -> None:
        """Makes room for so many more entries."""
        needed = 2 * (self.size + extra)
        if needed > len(self.keys):
            old = self.keys, self.q, self.visits
            self._make(1 << (needed - 1).bit_length())
            _refill(*old, self.keys, self.q, self.visits)

    def load(self, lane: int, afterstates: ArrayLike, q: ArrayLike, visits: ArrayLike) -> None:
        """Puts entries in, over those that are there; arrays of one length."""
        wanted = _keys(lane, afterstates)
        values, counts = np.ascontiguousarray(q, np.float64), np.ascontiguousarray(visits, np.int32)
        if not len(wanted) == len(values) == len(counts):
            raise GameloreError(
                f"expected one q and one count of visits for each of {len(wanted)} afterstates, got {len(values)} "
                f"and {len(counts)}; give arrays of one length"
            )
        self.reserve(len(wanted))
        self.size += _put(wanted, values, counts, self.keys, self.q, self.visits)

    def get(self, lane: int, afterstates: ArrayLike) -> tuple[Values, NDArray[np.int32]]:
        """(q, visits) of afterstates; NaN and 0 where there is no entry."""
        return _get(_keys(lane, afterstates), self.keys, self.q, self.visits)

    def lane(self, lane: int) -> tuple[NDArray[np.int32], Values, NDArray[np.int32]]:
        """(afterstates, q, visits) of one lane, in no order."""
        slots = np.flatnonzero(self.keys >> 32 == lane)
        return (self.keys[slots] & _LOW).astype(np.int32), self.q[slots], self.visits[slots]


def _keys(lane: int, afterstates: ArrayLike) -> Keys:
    return (lane << 32) | (np.ascontiguousarray(afterstates, np.int32) & _LOW)


@kernel("int64(int64, int32)")
def entry_key(lane: int, afterstate: int | np.int32) -> int:
    """The table's key; for use inside kernels."""
    return int((lane << 32) | (np.int64(afterstate) & _LOW))


@kernel("int64(int64[::1], int64)")
def find_slot(keys: Keys, key: int) -> int:
    """The slot of a key, or the empty one where it belongs; for use inside kernels."""
    mask = keys.size - 1
    slot = np.int64(scramble(np.uint64(key))) & mask
    while keys[slot] != key and keys[slot] != _EMPTY:
        slot = (slot + 1) & mask
    return int(slot)


@kernel("void(int64[::1], float64[::1], int32[::1], int64[::1], float64[::1], int32[::1])")
def _refill(
    old_keys: Keys, old_q: Values, old_visits: NDArray[np.int32], keys: Keys, q: Values, visits: NDArray[np.int32]
) -> None:
    for i in range(old_keys.size):
        if old_keys[i] != _EMPTY:
            slot = find_slot(keys, old_keys[i])
            keys[slot], q[slot], visits[slot] = old_keys[i], old_q[i], old_visits[i]


@kernel("int64(int64[::1], float64[::1], int32[::1], int64[::1], float64[::1], int32[::1])")
def _put(
    wanted: Keys, new_q: Values, new_visits: NDArray[np.int32], keys: Keys, q: Values, visits: NDArray[np.int32]
) -> int:
    """Writes entries; how many are new."""
    fresh = 0
    for i in range(wanted.size):
        slot = find_slot(keys, wanted[i])
        fresh += keys[slot] == _EMPTY
        keys[slot], q[slot], visits[slot] = wanted[i], new_q[i], new_visits[i]
    return fresh


@kernel("Tuple((float64[::1], int32[::1]))(int64[::1], int64[::1], float64[::1], int32[::1])")
def _get(wanted: Keys, keys: Keys, q: Values, visits: NDArray[np.int32]) -> tuple[Values, NDArray[np.int32]]:
    found, counts = np.full(wanted.size, np.nan), np.zeros(wanted.size, np.int32)
    for i in range(wanted.size):
        slot = find_slot(keys, wanted[i])
        if keys[slot] != _EMPTY:
            found[i], counts[i] = q[slot], visits[slot]
    return found, counts


@kernel("void(float64[::1], int64[::1], float64, float64, float64, float64)")
def td_update(q: Values, slots: NDArray[np.int64], reward: float, alpha: float, gamma: float, lam: float) -> None:
    """Equation 2 of Banerjee & Stone (2007), literally and in its order, on one match.

    q      float64[any], changed in place; Q(sigma_t) is q[slots[t - 1]] at the moment when it is read
    slots  int64[k], of the afterstates sigma_1 .. sigma_k, sigma_k being terminal; one may come twice (noop games)
    reward r_{k+1}, the only one that is not zero; Q(sigma_{k+1}) = 0

    For t = 1 .. k:  delta = r_{t+1} + gamma Q(sigma_{t+1}) - Q(sigma_t),
    and for p = 1 .. t:  Q(sigma_p) += alpha lam^(t-p) delta.
    """
    last = slots.size - 1
    for t in range(slots.size):
        ahead = reward if t == last else gamma * q[slots[t + 1]]
        delta = ahead - q[slots[t]]
        for p in range(t + 1):
            q[slots[p]] += alpha * lam ** (t - p) * delta
