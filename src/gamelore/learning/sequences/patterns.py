"""Patterns: sets of facts as bits, without the step counter, and their images under the symmetries of the game.

States and contexts are both patterns. A context holds in a state if the state has all bits of the context.

A *move number* is action * num_roles + role. It includes the role because the action numbers of the reasoner do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...analysis.symmetry import Symmetries, bounded_symmetries, step_counter
from ...errors import KnowledgeError
from ...players.kernel import U64, U64x4, kernel

if TYPE_CHECKING:
    from ...game.game import Game
    from ...players.position_graph import PositionGraph

Bits = NDArray[np.uint64]

MOST_TABLES = 1 << 28  # largest size of byte_tables in bytes


class Patterns:
    """Conversion of the positions of one game to patterns, uint64[n, words].

    For a natively compiled game, the bits of a pattern are the bits of the state. With the reasoner, a fact gets the
    next free bit when it occurs for the first time, so the patterns become wider. With the reasoner there are no
    symmetries, and no step counter is removed.

    chosen  symmetries under which sequences and contexts count as equal; None: all symmetries of the rules, or a
            subgroup if the tables for images would take too much memory
    """

    def __init__(self, game: Game, chosen: Symmetries | None = None) -> None:
        self.game = game
        self.symmetries = bounded_symmetries(game, MOST_TABLES) if chosen is None else chosen
        circuit = None if game.is_bounded else game.circuit
        self._is_native = circuit is not None
        counter = step_counter(game)
        self._kept = ~counter.mask if counter is not None else ~np.zeros(game.num_words, np.uint64)
        self._facts = list(game.fact_texts) if circuit is not None else []
        self._bits = {fact: bit for bit, fact in enumerate(self._facts)}
        self._bits_of_state: dict[bytes, list[int]] = {}

    @property
    def num_words(self) -> int:
        return -(-len(self._facts) // 64) or 1

    def of(self, graph: PositionGraph, rows: NDArray[np.int32]) -> Bits:
        """Return the patterns of the positions in these rows of a graph, uint64[n, words]."""
        states = graph.states[rows]
        if self._is_native:
            return np.asarray(states & self._kept)
        bits = [self._bits_of(state) for state in states]  # may widen the patterns
        return _packed(bits, self.num_words)

    def _bits_of(self, state: Bits) -> list[int]:
        """Return the bits of the facts of a state of the reasoner. New facts get new bits."""
        key = state.tobytes()
        if key not in self._bits_of_state:
            self._bits_of_state[key] = [self._bit(fact) for fact in sorted(self.game.facts(state))]
        return self._bits_of_state[key]

    def _bit(self, fact: str) -> int:
        bit = self._bits.setdefault(fact, len(self._facts))
        if bit == len(self._facts):
            self._facts.append(fact)
        return bit

    def facts(self, pattern: Bits) -> frozenset[str]:
        """Return the facts of one pattern, uint64[words]."""
        bits = np.unpackbits(np.ascontiguousarray(pattern).view(np.uint8), bitorder="little")
        return frozenset(self._facts[bit] for bit in np.flatnonzero(bits))

    def pack(self, facts: Iterable[str]) -> Bits:
        """Return the pattern of these facts without the step counter, uint64[words].

        Raises KnowledgeError for a fact that the game does not have.
        """
        facts = list(facts)
        unknown = sorted(set(facts) - self._bits.keys()) if self._is_native else []
        if unknown:
            raise KnowledgeError(
                f"expected facts of {self.game.name}, got {unknown[0]}; this knowledge may come from other rules"
            )
        bits = [self._bit(fact) for fact in facts]
        pattern = _packed([bits], self.num_words)[0]
        return np.asarray(pattern & self._kept if self._is_native else pattern)

    def move_text(self, number: int) -> tuple[int, str]:
        """Return (role, move as text) of a move number."""
        action, role = divmod(number, self.game.num_roles)
        return role, self.game.move_text(role, action)

    def move_number(self, role: int, move: str) -> int:
        """Return the move number of a role's move, given as text. Raise IllegalMoveError if it is never legal."""
        return self.game.action(role, move) * self.game.num_roles + role

    def move_images(self, numbers: NDArray[np.int32], graph: PositionGraph | None = None) -> NDArray[np.int32]:
        """Return the images of move numbers under the symmetries, int32[symmetries, any].

        Column i belongs to move number i. There are columns for all move numbers in `numbers` and in the graph; there
        may be more columns.
        """
        if self._is_native:
            return self._move_images
        actions = int(graph.move_actions.max(initial=0)) + 1 if graph is not None else 0
        size = max(int(numbers.max(initial=0)) + 1, actions * self.game.num_roles)
        return np.arange(size, dtype=np.int32)[None]

    @cached_property
    def _move_images(self) -> NDArray[np.int32]:
        roles = self.game.num_roles
        images = self.symmetries.actions[:, :, None] * roles + np.arange(roles)
        return np.ascontiguousarray(images.reshape(len(images), -1), np.int32)

    @property
    def byte_tables(self) -> NDArray[np.uint64]:
        """The tables of `Symmetries.byte_tables`; empty if the identity is the only symmetry."""
        if self.symmetries.num == 1:
            return np.zeros((1, 0, 256, 0), np.uint64)
        return self.symmetries.byte_tables


def _packed(bits_of_patterns: list[list[int]], num_words: int) -> Bits:
    """Return patterns with these bits, uint64[n, num_words]."""
    patterns = np.zeros((len(bits_of_patterns), num_words), np.uint64)
    for pattern, bits in zip(patterns, bits_of_patterns, strict=True):
        for bit in bits:
            pattern[bit >> 6] |= np.uint64(1 << (bit & 63))
    return patterns


def padded(patterns: Bits, num_words: int) -> Bits:
    """Return the patterns with `num_words` words each. Added words are 0. The patterns must not have more words."""
    if patterns.shape[1] == num_words:
        return patterns
    return np.pad(patterns, ((0, 0), (0, num_words - patterns.shape[1])))


@kernel
def image(pattern: U64, symmetry: int, byte_tables: U64x4, out: U64) -> None:
    """Write the image of one pattern under a symmetry into `out`. For use inside kernels.

    If the tables are empty, the image is the pattern itself.
    """
    if byte_tables.shape[1] == 0:
        out[:] = pattern
        return
    out[:] = np.uint64(0)
    for word in range(pattern.size):
        rest = pattern[word]
        byte = 8 * word
        while rest:
            part = np.int64(rest & np.uint64(255))
            if part:
                for i in range(out.size):
                    out[i] |= byte_tables[symmetry, byte, part, i]
            rest >>= np.uint64(8)
            byte += 1


@kernel
def comes_before(left: U64, right: U64) -> bool:
    """Return whether the pattern `left` is smaller than the pattern `right`. For use inside kernels."""
    for word in range(left.size):
        if left[word] != right[word]:
            return bool(left[word] < right[word])
    return False
