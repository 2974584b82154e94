"""Positions that count as one: states brought to a canonical form under symmetries and without their step counter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..rules.symmetry import Symmetries
from .kernel import kernel

if TYPE_CHECKING:
    from ..rules.game import Game


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
        return _smallest(np.ascontiguousarray(states), self._kept, self._images)

    def without_counter(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """States with no bit of the counter set, else as they are; any shape that ends in words."""
        return states & self._kept

    def playable(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Canonical states as states of the game, at the beginning of the count; for those uint64[n, words]."""
        return states | self._first

    def orbit_sizes(self, states: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many states each canonical one stands for, counter apart: int64[n]."""
        if self.symmetries.num == 1:
            return np.ones(len(states), np.int64)
        return self.symmetries.num // _num_fixing(np.ascontiguousarray(states), self._images)


def _by_byte(symmetries: Symmetries) -> NDArray[np.uint64]:
    """uint64[8 * words, 256, num * words]: all images of a byte of a state side by side, one read for each byte."""
    if symmetries.num == 1:
        return np.zeros((0, 256, symmetries.game.num_words), np.uint64)
    tables = symmetries.byte_tables
    num, num_bytes, _, num_words = tables.shape
    return np.ascontiguousarray(tables.transpose(1, 2, 0, 3)).reshape(num_bytes, 256, num * num_words)


@kernel("void(uint64[:, ::1], int64, uint64[::1], uint64[:, :, ::1], uint64[::1])")
def _image(
    states: NDArray[np.uint64],
    i: int,
    kept: NDArray[np.uint64],
    images: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> None:
    """All images of one state, one after the other."""
    out[:] = np.uint64(0)
    for word in range(states.shape[1]):
        bits = states[i, word] & kept[word]
        byte = 8 * word
        while bits:
            value = bits & np.uint64(255)
            if value:
                for k in range(out.size):
                    out[k] |= images[byte, value, k]
            bits >>= np.uint64(8)
            byte += 1


@kernel("uint64[:, ::1](uint64[:, ::1], uint64[::1], uint64[:, :, ::1])")
def _smallest(states: NDArray[np.uint64], kept: NDArray[np.uint64], images: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """See `Canonical.of`."""
    num_words = states.shape[1]
    found = np.empty(images.shape[2], np.uint64)
    out = np.empty_like(states)
    for i in range(states.shape[0]):
        _image(states, i, kept, images, found)
        best = 0
        for other in range(num_words, found.size, num_words):
            word = 0
            while word < num_words - 1 and found[other + word] == found[best + word]:
                word += 1
            if found[other + word] < found[best + word]:
                best = other
        for word in range(num_words):
            out[i, word] = found[best + word]
    return out


@kernel("int64[::1](uint64[:, ::1], uint64[:, :, ::1])")
def _num_fixing(states: NDArray[np.uint64], images: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many symmetries leave each state as it is."""
    num_words = states.shape[1]
    kept = np.full(num_words, np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64)
    found = np.empty(images.shape[2], np.uint64)
    out = np.zeros(states.shape[0], np.int64)
    for i in range(states.shape[0]):
        _image(states, i, kept, images, found)
        for other in range(0, found.size, num_words):
            same = True
            for word in range(num_words):
                same &= found[other + word] == states[i, word]
            out[i] += same
    return out
