"""Positions as patterns: sets of facts as bits, without what counts steps, and their images under the symmetries.

A state and a context are one thing here: a context holds in a state where none of its bits is missing.

A *move number* says who moves, too: action * num_roles + role, since the reasoner's action numbers alone do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import KnowledgeError
from ..play.kernel import kernel
from ..rules.automorphisms import Bounds
from ..rules.counter import step_counter
from ..rules.symmetry import Symmetries, symmetries

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..rules.game import Game

Bits = NDArray[np.uint64]

MOST_TABLES = 1 << 28  # bytes of byte_tables


class Patterns:
    """How the positions of one game become patterns, uint64[n, words].

    Natively compiled games keep the bits of their states. Where the reasoner plays facts get bits as they are met, so
    that the patterns grow wider; there are no symmetries and no step counter then.

    symmetries    those under which sequences and contexts count as one; None: all that the rules have, or a subgroup
                  where the tables that find images would take too much memory
    """

    def __init__(self, game: Game, chosen: Symmetries | None = None) -> None:
        self.game = game
        self.symmetries = _affordable(game) if chosen is None else chosen
        self._is_native = game.circuit is not None and not game.is_bounded
        counter = step_counter(game)
        self._kept = ~counter.mask if counter is not None else ~np.zeros(game.num_words, np.uint64)
        self._facts: list[str] = self._native_facts() if self._is_native else []
        self._bits = {fact: bit for bit, fact in enumerate(self._facts)}
        self._known: dict[bytes, list[int]] = {}

    @property
    def num_words(self) -> int:
        return -(-len(self._facts) // 64) or 1

    def _native_facts(self) -> list[str]:
        assert self.game.circuit is not None
        return [self.game.fact_text(fact) for fact in range(self.game.circuit.num_facts)]

    def of(self, graph: Graph, rows: NDArray[np.int32]) -> Bits:
        """The patterns of rows of a graph of the game."""
        states = graph.states[rows]
        return np.asarray(states & self._kept) if self._is_native else self._reasoned(states)

    def _reasoned(self, states: Bits) -> Bits:
        held = [self._bits_of(state) for state in states]
        return _packed(held, self.num_words)

    def _bits_of(self, state: Bits) -> list[int]:
        key = state.tobytes()
        if key not in self._known:
            self._known[key] = [self._bit(fact) for fact in sorted(self.game.facts(state))]
        return self._known[key]

    def _bit(self, fact: str) -> int:
        bit = self._bits.setdefault(fact, len(self._facts))
        if bit == len(self._facts):
            self._facts.append(fact)
        return bit

    def facts(self, pattern: Bits) -> frozenset[str]:
        """The facts of one pattern, uint64[words]."""
        bits = np.unpackbits(np.ascontiguousarray(pattern).view(np.uint8), bitorder="little")
        return frozenset(self._facts[bit] for bit in np.flatnonzero(bits))

    def pack(self, facts: Iterable[str]) -> Bits:
        """The pattern of some facts, uint64[words], without what counts steps.

        Raises KnowledgeError for a fact that the game does not have.
        """
        facts = list(facts)
        unknown = sorted(set(facts) - self._bits.keys()) if self._is_native else []
        if unknown:
            raise KnowledgeError(
                f"expected facts of {self.game.name}, got {unknown[0]}; was this learned with other rules?"
            )
        held = [self._bit(fact) for fact in facts]
        pattern = _packed([held], self.num_words)[0]
        return np.asarray(pattern & self._kept if self._is_native else pattern)

    def move_text(self, number: int) -> tuple[int, str]:
        """(role, move) of a move number."""
        action, role = divmod(number, self.game.num_roles)
        return role, self.game.move_text(role, action)

    def move_number(self, role: int, move: str) -> int:
        """The number of a role's move, given as text. Raises IllegalMoveError for one that is never legal."""
        return self.game.action(role, move) * self.game.num_roles + role

    def move_images(self, numbers: NDArray[np.int32], graph: Graph | None = None) -> NDArray[np.int32]:
        """int32[num, any]: what the symmetries make of each move number, of these and of those of a graph at least."""
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
        """See `Symmetries.byte_tables`; empty where there is the identity alone."""
        if self.symmetries.num == 1:
            return np.zeros((1, 0, 256, 0), np.uint64)
        return self.symmetries.byte_tables


def _affordable(game: Game) -> Symmetries:
    """All symmetries of the rules, or so many of them that their byte tables fit into MOST_TABLES."""
    found = symmetries(game)
    most = MOST_TABLES // (8 * 256 * 8 * game.num_words**2) or 1
    return found if found.num <= most else symmetries(game, Bounds(most=most))


def _packed(held: list[list[int]], num_words: int) -> Bits:
    patterns = np.zeros((len(held), num_words), np.uint64)
    for pattern, bits in zip(patterns, held, strict=True):
        for bit in bits:
            pattern[bit >> 6] |= np.uint64(1 << (bit & 63))
    return patterns


def widened(patterns: Bits, num_words: int) -> Bits:
    """The same patterns, uint64[n, at most as many], with so many words."""
    if patterns.shape[1] == num_words:
        return patterns
    wide = np.zeros((len(patterns), num_words), np.uint64)
    wide[:, : patterns.shape[1]] = patterns
    return wide


@kernel("void(uint64[::1], int64, uint64[:, :, :, ::1], uint64[::1])")
def image(pattern: Bits, symmetry: int, byte_tables: NDArray[np.uint64], out: Bits) -> None:
    """Writes the image of one pattern; for use inside kernels. Without tables there is the identity alone."""
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


@kernel("boolean(uint64[::1], uint64[::1])")
def comes_before(left: Bits, right: Bits) -> bool:
    """Whether the first of two patterns is the smaller one; for use inside kernels."""
    for word in range(left.size):
        if left[word] != right[word]:
            return bool(left[word] < right[word])
    return False
