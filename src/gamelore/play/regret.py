"""Regret: the points that a move loses against best play, by the solution of the game."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kernel import kernel
from .perfect import SolvedMoves
from .player import Finished


def regret(finished: Finished) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(points lost int64[n, roles], turns int64[n, roles]) in matches that ended, by role.

    A turn is a position in which the role is asked for a move. What its move loses is the value of the position for the
    role minus that of the move, in goal points, 0 for an optimal move. Where the solution leaves a step counter out,
    so do these values. Raises GameloreError as `solve` does.
    """
    graph = finished.graph
    solved = graph.memo(SolvedMoves)
    played = np.arange(finished.choices.shape[1]) < finished.plies[:, None]
    solved.look(graph.distinct(finished.rows[:, :-1][played]))
    lost = np.zeros((len(finished.plies), graph.game.num_roles), np.int64)
    turns = np.zeros_like(lost)
    _add_up(
        finished.rows,
        finished.choices,
        finished.plies,
        graph.acting,
        graph.num_moves,
        graph.move_start,
        solved.values,
        lost,
        turns,
    )
    return lost, turns


class RegretCount:
    """Adds up the regret of matches by role, as they end: `on_end=RegretCount(..).add`.

    lost: int64[roles], points; turns: int64[roles].
    """

    def __init__(self, num_roles: int) -> None:
        self.lost = np.zeros(num_roles, np.int64)
        self.turns = np.zeros(num_roles, np.int64)

    def add(self, finished: Finished) -> None:
        """Matches ended."""
        lost, turns = regret(finished)
        self.lost += lost.sum(axis=0)
        self.turns += turns.sum(axis=0)

    @property
    def per_move(self) -> list[float]:
        """By role the mean regret of a move, in goal points; 0 where it made none."""
        means: list[float] = (self.lost / np.maximum(self.turns, 1)).tolist()
        return means


@kernel(
    "void(int32[:, ::1], int32[:, :, ::1], int32[::1], boolean[:, ::1], int32[:, ::1], int64[:, ::1], int16[::1],"
    " int64[:, ::1], int64[:, ::1])"
)
def _add_up(
    rows: NDArray[np.int32],
    choices: NDArray[np.int32],
    plies: NDArray[np.int32],
    acting: NDArray[np.bool_],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    values: NDArray[np.int16],
    lost: NDArray[np.int64],
    turns: NDArray[np.int64],
) -> None:
    """See `regret`."""
    for i in range(plies.size):
        for ply in range(plies[i]):
            row = rows[i, ply]
            for role in range(num_moves.shape[1]):
                if acting[row, role] or num_moves[row, role] > 1:
                    begin = move_start[row, role]
                    value = values[begin + choices[i, ply, role]]
                    lost[i, role] += values[begin : begin + num_moves[row, role]].max() - value
                    turns[i, role] += 1
