"""Afterstates that the symmetries of a game make of each other, and the one of them that stands for all.

Of a position it is the smallest image (play/canonical.py); of a pair of position and own move the smallest image of the
position, and of the moves that go with it the one with the smallest number. So it does not matter which was met first.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..play.canonical import Canonical
from ..play.kernel import kernel
from ..rules.symmetry import Symmetries, symmetries
from .afterstates import Afterstates, pair_number, pair_origins

if TYPE_CHECKING:
    from ..play.graph import Graph

UNMET = np.int32(-(2**31))  # the number of no afterstate: a graph does not list so many moves


class Representatives:
    """What stands for the afterstates met so far, themselves included; a memo of their graph.

    rows   int32[rows or fewer], for each row of the graph
    moves  int32[moves or fewer], for each pair ~move, `move` being a place in `graph.move_actions`

    Both are UNMET where nobody has asked yet, and replaced as they grow.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rows = np.empty(0, np.int32)
        self.moves = np.empty(0, np.int32)

    @cached_property
    def symmetries(self) -> Symmetries:
        """Those of the game, all of them; looked for when first asked."""
        return symmetries(self.graph.game)

    @cached_property
    def _canonical(self) -> Canonical:
        return Canonical(self.symmetries)

    def of(self, role: int, afterstates: ArrayLike) -> Afterstates:
        """The representatives of afterstates of the role, int32[n]; new positions among them come into the graph."""
        wanted = np.ascontiguousarray(afterstates, np.int32)
        found = _look_up(wanted, self.rows, self.moves)
        unmet = found == UNMET
        if unmet.any():
            self.meet(role, wanted[unmet])
            found = _look_up(wanted, self.rows, self.moves)
        return found

    def meet(self, role: int, afterstates: Afterstates) -> None:
        """Makes the representatives of these afterstates known."""
        fresh = np.unique(afterstates)
        self._meet_rows(fresh[fresh >= 0])
        if fresh[0] < 0:
            self._meet_pairs(role, fresh[fresh < 0])

    def _meet_rows(self, rows: NDArray[np.int32]) -> None:
        graph = self.graph
        found = graph.intern(self._canonical.of(graph.states[rows]))
        self.rows = _widened(self.rows, graph.num_rows)
        self.rows[rows] = self.rows[found] = found

    def _meet_pairs(self, role: int, pairs: Afterstates) -> None:
        graph = self.graph
        origins, _ = pair_origins(graph, role, pairs)
        states, actions = self._smallest(graph.states[origins], graph.move_actions[~pairs])
        rows = graph.intern(states)
        graph.list_moves(rows)
        found = [pair_number(graph, role, *pair) for pair in zip(rows.tolist(), actions.tolist(), strict=True)]
        self.moves = _widened(self.moves, len(graph.move_actions))
        self.moves[~pairs] = self.moves[np.invert(found)] = found

    def _smallest(
        self, states: NDArray[np.uint64], actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The smallest images of states uint64[n, words], each with one of a role's actions int32[n]."""
        moved = self.symmetries.actions[:, actions].T.astype(np.uint64)
        images = np.concatenate([self.symmetries.images(states), moved[:, :, None]], axis=2)
        first = np.lexsort(np.moveaxis(images, 2, 0)[::-1])[:, 0]  # its last key counts most
        smallest = images[np.arange(len(images)), first]
        return smallest[:, :-1], smallest[:, -1].astype(np.int32)


def _widened(known: Afterstates, width: int) -> Afterstates:
    """The same, with room for so many and then some."""
    if len(known) >= width:
        return known
    wider = np.full(2 * width, UNMET, np.int32)
    wider[: len(known)] = known
    return wider


@kernel("int32(int32, int32[::1], int32[::1])")
def representative(afterstate: np.int32, rows: Afterstates, moves: Afterstates) -> np.int32:
    """What stands for an afterstate, or UNMET; `rows` and `moves` are those of `Representatives`. For kernels."""
    if afterstate >= 0:
        return rows[afterstate] if afterstate < rows.size else UNMET
    move = ~afterstate
    return moves[move] if move < moves.size else UNMET


@kernel("int32[::1](int32[::1], int32[::1], int32[::1])")
def _look_up(afterstates: Afterstates, rows: Afterstates, moves: Afterstates) -> Afterstates:
    found = np.empty(afterstates.size, np.int32)
    for i in range(afterstates.size):
        found[i] = representative(afterstates[i], rows, moves)
    return found
