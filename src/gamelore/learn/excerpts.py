"""The sequences of moves that stand in finished matches (Lock & Epstein 2004, section 1.1).

A sequence belongs to one role, the *contestant*, and begins with a move of its own, at the sequence's origin state:

    duet   the moves that follow each other from there on, whoever made them; at least one is another role's
    solo   the contestant's own moves from there on, whatever the others do in between

Its length counts the moves in it. Moves made at the same time are put with the contestant's own first, then in the
order of roles. A role moves where it is its turn or where it has several moves; else it waits, which is no move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..play.kernel import kernel

if TYPE_CHECKING:
    from ..play.player import Finished

DUET, SOLO = 0, 1
KIND_NAMES = ("duet", "solo")
NO_MOVE = -1


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Sequences as they stand in matches, one after the other.

    roles    int8[n], the contestants
    kinds    int8[n], DUET or SOLO
    rows     int32[n], the origin states in the graph
    moves    int32[n, longest], move numbers (patterns.py), NO_MOVE behind the end
    """

    roles: NDArray[np.int8]
    kinds: NDArray[np.int8]
    rows: NDArray[np.int32]
    moves: NDArray[np.int32]

    def chosen(self, which: NDArray[np.bool_]) -> Excerpts:
        """Those for which it is true."""
        return Excerpts(self.roles[which], self.kinds[which], self.rows[which], self.moves[which])


@dataclass(frozen=True, slots=True)
class Turns:
    """The moves made in matches, one after the other.

    matches  int64[n], the place of the match among those finished
    rows     int32[n], where; roles: int8[n], by whom; moves: int32[n], what, as move numbers (patterns.py)
    """

    matches: NDArray[np.int64]
    rows: NDArray[np.int32]
    roles: NDArray[np.int8]
    moves: NDArray[np.int32]


def turns(finished: Finished) -> Turns:
    """All moves of the matches, in their order."""
    graph = finished.graph
    played = np.arange(finished.choices.shape[1]) < finished.plies[:, None]
    matches, plies = np.nonzero(played)
    rows = finished.rows[matches, plies]
    place, roles = np.nonzero(graph.acting[rows] | (graph.num_moves[rows] > 1))
    rows, choices = rows[place], finished.choices[matches[place], plies[place], roles]
    actions = graph.move_actions[graph.move_start[rows, roles] + choices]
    moves = actions * graph.game.num_roles + roles
    return Turns(matches[place], rows, roles.astype(np.int8), moves.astype(np.int32))


def excerpts(finished: Finished, learned_from: NDArray[np.bool_], lengths: Sequence[int]) -> Excerpts:
    """All sequences of these lengths in the matches; learned_from, bool[n, roles], says whose."""
    graph = finished.graph
    parts = _excerpts(
        finished.rows,
        finished.choices,
        finished.plies,
        learned_from,
        np.array(sorted(lengths), np.int32),
        graph.acting,
        graph.num_moves,
        graph.move_start,
        graph.move_actions,
    )
    return Excerpts(*parts)


@kernel(
    "int64(int32[::1], int32[:, ::1], int64, int64, boolean[:, ::1], int32[:, ::1], int64[:, ::1], int32[::1],"
    " int32[::1], int8[::1], int32[::1])"
)
def listed_moves(
    rows: NDArray[np.int32],
    choices: NDArray[np.int32],
    plies: int,
    own: int,
    acting: NDArray[np.bool_],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    move_actions: NDArray[np.int32],
    numbers: NDArray[np.int32],
    by: NDArray[np.int8],
    where: NDArray[np.int32],
) -> int:
    """Lists the moves of one match, `own` first where several roles move: what, by whom, in which row. Their number.

    For use inside kernels; numbers, by and where must have room for every role in every ply.
    """
    size = 0
    roles = num_moves.shape[1]
    for ply in range(plies):
        row = rows[ply]
        for i in range(-1, roles):
            role = own if i < 0 else i
            if (i == own) or not (acting[row, role] or num_moves[row, role] > 1):
                continue
            numbers[size] = move_actions[move_start[row, role] + choices[ply, role]] * roles + role
            by[size] = role
            where[size] = row
            size += 1
    return size


@kernel(
    "Tuple((int8[::1], int8[::1], int32[::1], int32[:, ::1]))(int32[:, ::1], int32[:, :, ::1], int32[::1],"
    " boolean[:, ::1], int32[::1], boolean[:, ::1], int32[:, ::1], int64[:, ::1], int32[::1])"
)
def _excerpts(
    rows: NDArray[np.int32],
    choices: NDArray[np.int32],
    plies: NDArray[np.int32],
    learned_from: NDArray[np.bool_],
    lengths: NDArray[np.int32],
    acting: NDArray[np.bool_],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    move_actions: NDArray[np.int32],
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int32], NDArray[np.int32]]:
    """See `excerpts`; lengths ascending."""
    roles = num_moves.shape[1]
    room = 0
    for i in range(plies.size):
        room += plies[i] * roles * 2 * lengths.size
    out_roles, out_kinds = np.empty(room, np.int8), np.empty(room, np.int8)
    out_rows = np.empty(room, np.int32)
    out_moves = np.full((room, lengths[-1]), NO_MOVE, np.int32)
    most = plies.max() * roles if plies.size else 0
    numbers, by, where = np.empty(most, np.int32), np.empty(most, np.int8), np.empty(most, np.int32)
    size = 0
    for i in range(plies.size):
        for own in range(roles):
            if not learned_from[i, own]:
                continue
            num = listed_moves(
                rows[i], choices[i], plies[i], own, acting, num_moves, move_start, move_actions, numbers, by, where
            )
            for start in range(num):
                if by[start] != own:
                    continue
                for length in lengths:
                    others = 0
                    if start + length <= num:
                        for j in range(length):
                            out_moves[size, j] = numbers[start + j]
                            others += by[start + j] != own
                    if others:
                        out_roles[size], out_kinds[size], out_rows[size] = own, DUET, where[start]
                        size += 1
                    out_moves[size] = NO_MOVE
                    found, j = 0, start
                    while found < length and j < num:
                        if by[j] == own:
                            out_moves[size, found] = numbers[j]
                            found += 1
                        j += 1
                    if found == length:
                        out_roles[size], out_kinds[size], out_rows[size] = own, SOLO, where[start]
                        size += 1
                    else:
                        out_moves[size] = NO_MOVE
    return out_roles[:size], out_kinds[:size], out_rows[:size], out_moves[:size]
