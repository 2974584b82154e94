"""States to row numbers: an open-addressing hash table over the words of a state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernel import kernel
from .streams import mix

_FIRST_CAPACITY = 1024


class StateTable:
    """Numbers states uint64[words] from 0 on, in the order in which they come; at most `max_rows` of them.

    `slots`: int32[a power of two], the rows by the hash of their state, -1 where there is none; see `find_rows`.
    """

    def __init__(self, num_words: int, max_rows: int) -> None:
        self.max_rows = max_rows
        self.num_rows = 0
        self._states = np.zeros((min(_FIRST_CAPACITY, max_rows), num_words), np.uint64)
        self.slots = _empty_slots(_FIRST_CAPACITY)

    @property
    def capacity(self) -> int:
        """Rows that there is room for now."""
        return len(self._states)

    @property
    def states(self) -> NDArray[np.uint64]:
        """The states by row, uint64[rows, words]."""
        return self._states[: self.num_rows]

    def intern(self, states: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Rows int32[n] of states uint64[n, words]; fewer than n where one more would not fit."""
        rows = np.empty(len(states), np.int32)
        done = self._fill(states, 0, rows)
        while done < len(states) and self.capacity < self.max_rows:
            self._widen(min(2 * self.capacity, self.max_rows))
            done = self._fill(states, done, rows)
        return rows[:done]

    def _fill(self, states: NDArray[np.uint64], done: int, rows: NDArray[np.int32]) -> int:
        self.num_rows, done = _intern(states, self.slots, self._states, self.num_rows, done, rows)
        return done

    def _widen(self, capacity: int) -> None:
        self._states = longer(self._states, capacity)
        self.slots = _empty_slots(capacity)
        _refill(self._states, self.num_rows, self.slots)


def find_rows(states: NDArray[np.uint64], slots: NDArray[np.int32], known: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Rows int32[n] of states uint64[n, words] in a table with these slots and states; -1 for one it does not hold."""
    return _find_rows(np.ascontiguousarray(states), slots, known)


def longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """A copy with more entries on the first axis, the new ones 0."""
    # zeros, not resize: untouched pages cost no memory until they are used
    copy = np.zeros((length, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


def _empty_slots(rows: int) -> NDArray[np.int32]:
    """Slots for so many rows: a power of two, at most half of them ever used."""
    return np.full(1 << (2 * rows - 1).bit_length(), -1, np.int32)


@kernel("uint64(uint64[:, ::1], int64)")
def hash_state(states: NDArray[np.uint64], i: int) -> np.uint64:
    """A hash of the words of state i; for use inside kernels."""
    value = np.uint64(0)
    for word in range(states.shape[1]):
        value = mix(value, states[i, word])
    return value


@kernel("int64(uint64[:, ::1], int64, int32[::1], uint64[:, ::1])")
def _find_slot(states: NDArray[np.uint64], i: int, slots: NDArray[np.int32], known: NDArray[np.uint64]) -> int:
    """The slot of this state, or the empty one where it belongs (linear probing)."""
    slot = np.int64(hash_state(states, i) & np.uint64(slots.size - 1))
    while slots[slot] >= 0:
        row = slots[slot]
        same = True
        for word in range(states.shape[1]):
            same &= states[i, word] == known[row, word]
        if same:
            break
        slot = (slot + 1) & (slots.size - 1)
    return int(slot)


@kernel("UniTuple(int64, 2)(uint64[:, ::1], int32[::1], uint64[:, ::1], int64, int64, int32[::1])")
def _intern(
    states: NDArray[np.uint64],
    slots: NDArray[np.int32],
    known: NDArray[np.uint64],
    num_rows: int,
    done: int,
    out: NDArray[np.int32],
) -> tuple[int, int]:
    """Finds or adds states from number `done` on, until one more would not fit; the new (num_rows, done)."""
    for i in range(done, states.shape[0]):
        slot = _find_slot(states, i, slots, known)
        if slots[slot] < 0:
            if num_rows == known.shape[0]:
                return num_rows, i
            known[num_rows] = states[i]
            slots[slot] = num_rows
            num_rows += 1
        out[i] = slots[slot]
    return num_rows, states.shape[0]


@kernel("void(uint64[:, ::1], int64, int32[::1])")
def _refill(known: NDArray[np.uint64], num_rows: int, slots: NDArray[np.int32]) -> None:
    for row in range(num_rows):
        slots[_find_slot(known, row, slots, known)] = row


@kernel("int32[::1](uint64[:, ::1], int32[::1], uint64[:, ::1])")
def _find_rows(states: NDArray[np.uint64], slots: NDArray[np.int32], known: NDArray[np.uint64]) -> NDArray[np.int32]:
    rows = np.empty(states.shape[0], np.int32)
    for i in range(states.shape[0]):
        rows[i] = slots[_find_slot(states, i, slots, known)]
    return rows
