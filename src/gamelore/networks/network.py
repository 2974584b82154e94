"""N-tuple networks: the value of a position is the sum of one entry for each tuple, squashed to 0 to 1.

A network has the same tuples for all roles, and entries of its own for each role. As a linear value (search/value.py),
it values the positions after a move of a role, for this role.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..players.kernel import F64, I32, I64, F32x2, I32x2, U64x2, inlined, kernel, lowest_bit
from .tuples import Tuples

MOST_TUPLES = 4096
"""Largest number of tuples of a network, images and single variables included."""
_BITS = 64  # of a word


class NetworkArrays(NamedTuple):
    """A network in the form that kernels read.

    strides, offsets  see `Tuples`
    entries  float32[roles, entries]
    """

    strides: I32x2
    offsets: I32
    entries: F32x2


@dataclass(frozen=True)
class Network:
    """An n-tuple network of a game.

    strides, offsets  see `Tuples`
    entries  float32[roles, room], see `Tuples.room`
    """

    strides: NDArray[np.int32]
    offsets: NDArray[np.int32]
    entries: NDArray[np.float32]

    @classmethod
    def zero(cls, tuples: Tuples, num_roles: int) -> Network:
        """Return the network that values every position at 1/2."""
        return cls(tuples.strides, tuples.offsets, np.zeros((num_roles, tuples.room), np.float32))

    @property
    def arrays(self) -> NetworkArrays:
        """The arrays for kernels."""
        return NetworkArrays(self.strides, self.offsets, self.entries)

    def __call__(
        self,
        states: NDArray[np.uint64],
        roles: NDArray[np.int64],
        parents: NDArray[np.uint64] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the value of each state for the role that has just moved, float64[n].

        This is faster where states differ in few facts from others: their parents.

        Args:
            states: uint64[n, words]
            roles: int64[n], the role that has just moved
            parents: uint64[m, words]; the states themselves if it is None
            rows: int64[n], the row of the parent of each state, ascending
        """
        values = np.empty(len(states))
        if parents is None or rows is None:
            parents, rows = states, np.arange(len(states))
        _values(self.arrays, parents, rows, states, roles, values)
        return values


NO_NETWORK = NetworkArrays(np.zeros((0, 0), np.int32), np.zeros(0, np.int32), np.zeros((0, 0), np.float32))


@inlined
def look_up(network: NetworkArrays, states: U64x2, row: int, indices: I32) -> None:
    """Write the index of the entry of each tuple in a state; for use inside kernels."""
    num = network.offsets.shape[0]
    for number in range(num):
        indices[number] = network.offsets[number]
    for word in range(states.shape[1]):
        bits = states[row, word]
        while bits:
            fact = _BITS * word + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            for number in range(num):
                indices[number] += network.strides[fact, number]


@inlined
def look_up_child(
    network: NetworkArrays, parents: U64x2, parent: int, before: I32, states: U64x2, row: int, indices: I32
) -> None:
    """Write the indices of `look_up` for a state that differs in few facts from its parent; `before`: those of this."""
    num = network.offsets.shape[0]
    for number in range(num):
        indices[number] = before[number]
    for word in range(states.shape[1]):
        bits = states[row, word] ^ parents[parent, word]
        while bits:
            bit = lowest_bit(bits)
            fact, sign = (
                _BITS * word + bit,
                np.int32(2 * ((states[row, word] >> np.uint64(bit)) & np.uint64(1))) - np.int32(1),
            )
            bits &= bits - np.uint64(1)
            for number in range(num):
                indices[number] += sign * network.strides[fact, number]


@inlined
def network_value(network: NetworkArrays, role: int, indices: I32) -> float:
    """Return the value for a role, from 0 to 1, of the state with these indices, after a move of the role."""
    total = np.float32(0.0)
    for number in range(network.offsets.shape[0]):
        total += network.entries[role, indices[number]]
    return 1.0 / (1.0 + exp(-float(total)))


@kernel
def _values(network: NetworkArrays, parents: U64x2, rows: I64, states: U64x2, roles: I64, values: F64) -> None:
    """Compute the values of states, each from the indices of its parent."""
    before, indices = np.empty_like(network.offsets), np.empty_like(network.offsets)
    for row in range(states.shape[0]):
        if row == 0 or rows[row] != rows[row - 1]:
            look_up(network, parents, rows[row], before)
        look_up_child(network, parents, rows[row], before, states, row, indices)
        values[row] = network_value(network, int(roles[row]), indices)
