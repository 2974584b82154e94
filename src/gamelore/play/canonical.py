"""Positions that count as one: states brought to a canonical form under symmetries and without their step counter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..rules.automorphisms import Bounds
from ..rules.symmetry import Symmetries, symmetries
from .kernel import kernel

if TYPE_CHECKING:
    from ..rules.game import Game


_TABLES = 1 << 25  # bytes that what each byte of a state becomes may take


def affordable(game: Game) -> Symmetries:
    """The symmetries of a game, or a subgroup of so many as canonical states can be had for, quickly and in memory."""
    group = symmetries(game)
    most = max(1, _TABLES // (8 * game.num_words * 256 * game.num_words * 8))
    return group if group.num <= most else symmetries(game, Bounds(most))


class Canonical:
    """Canonical states: the smallest image under the symmetries, word 0 first, with no bit of the counter set.

    Two states have the same canonical state exactly where a symmetry makes one of them the other, counter apart.
    """

    def __init__(self, symmetries: Symmetries, counter_mask: NDArray[np.uint64] | None = None) -> None:
        """counter_mask: uint64[words], the bits of the counter that is left out; None to leave none out."""
        game = symmetries.game
        self.symmetries = symmetries
        self.counter_mask = np.zeros(game.num_words, np.uint64) if counter_mask is None else counter_mask
        self._kept = ~self.counter_mask
        self._first = game.initial & self.counter_mask
        self._images = _by_byte(symmetries)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it was made from but the game, for `from_arrays`."""
        return {
            "symmetric_facts": self.symmetries.facts,
            "symmetric_actions": self.symmetries.actions,
            "counter_mask": self.counter_mask,
        }

    @classmethod
    def from_arrays(cls, game: Game, arrays: Mapping[str, NDArray[Any]]) -> Canonical:
        """What `arrays` is of; nothing is looked for in the rules again."""
        group = Symmetries(game, arrays["symmetric_facts"], arrays["symmetric_actions"])
        return cls(group, arrays["counter_mask"])

    def of(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The canonical states of uint64[n, words]."""
        if self.symmetries.num == 1:
            return np.ascontiguousarray(self.without_counter(states))
        return self._smallest(states)[0]

    def without_counter(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """States with no bit of the counter set, else as they are; any shape that ends in words."""
        return states & self._kept

    def playable(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Canonical states as states of the game, at the beginning of the count; for those uint64[n, words]."""
        return states | self._first

    def orbit_sizes(self, states: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many states, counter apart, have the same canonical state as each of these: int64[n]."""
        if self.symmetries.num == 1:
            return np.ones(len(states), np.int64)
        return self.symmetries.num // self._smallest(states)[1]

    def _smallest(self, states: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """(the smallest image of each state, how many symmetries lead to it)."""
        smallest, ties = np.empty(states.shape, np.uint64), np.empty(len(states), np.int64)
        _smallest(np.ascontiguousarray(states), self._kept, self._images, smallest, ties)
        return smallest, ties


def _by_byte(symmetries: Symmetries) -> NDArray[np.uint64]:
    """uint64[8 * words, 256, words, num]: what each byte of a state puts into each word of all images, side by side."""
    if symmetries.num == 1:
        return np.zeros((0, 256, symmetries.game.num_words, 1), np.uint64)
    return np.ascontiguousarray(symmetries.byte_tables.transpose(1, 2, 3, 0))


@kernel("int64(uint64[:, ::1], int64, uint64[::1], int64[::1])")
def _held_bytes(states: NDArray[np.uint64], i: int, kept: NDArray[np.uint64], out: NDArray[np.int64]) -> int:
    """Puts the bytes of a state that are not 0 into `out`, as 256 * number + value; how many."""
    size = 0
    for word in range(states.shape[1]):
        bits = states[i, word] & kept[word]
        for byte in range(8 * word, 8 * word + 8):
            value = np.int64(bits & np.uint64(255))
            if value:
                out[size] = byte << 8 | value
                size += 1
            bits >>= np.uint64(8)
    return size


@kernel("Tuple((int64, uint64))(int64, int64, int64[::1], uint64[:, :, :, ::1], int64[::1], int64)")
def _least_of(
    word: int,
    num_bytes: int,
    held: NDArray[np.int64],
    images: NDArray[np.uint64],
    left: NDArray[np.int64],
    num_left: int,
) -> tuple[int, np.uint64]:
    """Keeps those of the symmetries that are left whose image has the least such word: (how many, the word)."""
    least, kept = np.uint64(0xFFFFFFFFFFFFFFFF), 0
    for k in range(num_left):
        s = left[k]
        image = np.uint64(0)
        for b in range(num_bytes):
            image |= images[held[b] >> 8, held[b] & 255, word, s]
        if image < least:
            least, kept = image, 0
        if image == least:
            left[kept] = s
            kept += 1
    return kept, least


# nothing is returned: Ctrl-C during a kernel that returns arrays in a tuple comes out of numba as a SystemError
@kernel("void(uint64[:, ::1], uint64[::1], uint64[:, :, :, ::1], uint64[:, ::1], int64[::1])")
def _smallest(
    states: NDArray[np.uint64],
    kept: NDArray[np.uint64],
    images: NDArray[np.uint64],
    out: NDArray[np.uint64],
    ties: NDArray[np.int64],
) -> None:
    """Fills in the smallest image of each state, and how many symmetries lead to it.

    Word by word: of all symmetries for the first one, and of those that gave the smallest word for the next.
    """
    num_words, num = images.shape[2], images.shape[3]
    found = np.empty(num, np.uint64)
    left = np.empty(num, np.int64)
    held = np.empty(8 * num_words, np.int64)
    for i in range(states.shape[0]):
        num_bytes = _held_bytes(states, i, kept, held)
        found[:] = np.uint64(0)
        for k in range(num_bytes):
            byte, value = held[k] >> 8, held[k] & 255
            for s in range(num):
                found[s] |= images[byte, value, 0, s]
        least = found[0]
        for s in range(1, num):
            least = min(least, found[s])
        num_left = 0
        for s in range(num):
            if found[s] == least:
                left[num_left] = s
                num_left += 1
        out[i, 0] = least
        for word in range(1, num_words):
            num_left, out[i, word] = _least_of(word, num_bytes, held, images, left, num_left)
        ties[i] = num_left
