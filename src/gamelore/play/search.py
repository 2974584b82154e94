"""Lookahead of any depth over a graph: what a position is worth to a role some plies ahead.

A terminal position is worth the role's goal at any level (0 where the rules give none); positions at the
last level that are not terminal, and stuck ones, are worth a default. In between a position is worth the
maximum over the role's own moves of what the others' simultaneous moves make of it:

    minimax   the minimum: the others do their worst
    maxmax    the maximum: the others help
    avgmax    the mean over the others' joint moves: the others draw at random

Where the role only waits this is the minimum (maximum, mean) over the moves of whoever acts. B&S 2007,
section 4, use minimax two plies below an afterstate and name the other two.

Lookahead by simulations, UCT, is in uct.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError
from .graph import joint_stride
from .kernel import kernel
from .player import Player, Turn
from .statetable import longer
from .streams import WHICH, below

if TYPE_CHECKING:
    from .graph import Graph

Heuristic = Literal["minimax", "maxmax", "avgmax"]

HEURISTICS: tuple[Heuristic, ...] = get_args(Heuristic)
DEFAULT_VALUE = 50.0  # B&S 2007, footnote 2: the average of the win and loss rewards


def lookahead(
    graph: Graph,
    role: int,
    rows: ArrayLike,
    depth: int,
    heuristic: Heuristic = "minimax",
    default: float = DEFAULT_VALUE,
) -> NDArray[np.float64]:
    """Values float64[n] of positions (afterstates, say), `depth` plies below each of them looked at.

    Depth 0 tells terminal positions from others. Worked out once per position, depth, role and heuristic;
    expands the graph as far as it must look. Raises GameloreError for an unknown heuristic or a depth below 0.
    """
    return graph.memo(LookaheadValues).values(role, _as_rows(rows), depth, heuristic, default)


def choice_values(
    graph: Graph,
    role: int,
    rows: ArrayLike,
    depth: int,
    heuristic: Heuristic = "minimax",
    default: float = DEFAULT_VALUE,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The value of each legal move of the role, its own ply counted in `depth`, which is at least 1.

    Returns (offsets int64[n + 1], values float64[total]); the moves of rows[i] are at offsets[i : i + 2].
    """
    return graph.memo(LookaheadValues).choice_values(role, _as_rows(rows), depth, heuristic, default)


class LookaheadValues:
    """The values already known, by role, heuristic, default and depth: `graph.memo(LookaheadValues)`."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tables: dict[tuple[int, Heuristic, float, int], NDArray[np.float64]] = {}

    def values(
        self, role: int, rows: NDArray[np.int32], depth: int, heuristic: Heuristic, default: float
    ) -> NDArray[np.float64]:
        """See `lookahead`."""
        _check(depth, 0, heuristic)
        self._fill(role, rows, depth, heuristic, default)
        graph = self._graph
        table = self._table(role, depth, heuristic, default)
        return _read(rows, role, default, table, graph.terminal, graph.goals)

    def choice_values(
        self, role: int, rows: NDArray[np.int32], depth: int, heuristic: Heuristic, default: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """See the function of this name."""
        _check(depth, 1, heuristic)
        self._fill(role, rows, depth, heuristic, default)  # and with it the level below, which is what counts here
        return self._choices(role, rows, depth, heuristic, default)

    def _choices(
        self, role: int, rows: NDArray[np.int32], depth: int, heuristic: Heuristic, default: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """`choice_values`, where the level below is known."""
        graph = self._graph
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(graph.num_moves[rows, role], out=offsets[1:])
        values = np.empty(offsets[-1])
        _value_choices(
            rows,
            role,
            HEURISTICS.index(heuristic),
            default,
            self._table(role, depth - 1, heuristic, default),
            graph.terminal,
            graph.goals,
            graph.num_moves,
            graph.num_joint,
            graph.succ_start,
            graph.successors,
            values,
        )
        return offsets, values

    def _fill(self, role: int, rows: NDArray[np.int32], depth: int, heuristic: Heuristic, default: float) -> None:
        """Makes the values of these rows known, level by level from below."""
        if depth == 0:
            return
        graph = self._graph
        unknown = np.isnan(self._table(role, depth, heuristic, default)[rows])
        fresh = graph.distinct(rows[unknown & ~graph.terminal[rows]])
        if not fresh.size:
            return
        self._fill(role, graph.children(fresh), depth - 1, heuristic, default)
        table = self._table(role, depth, heuristic, default)
        table[fresh] = default  # and stays so where a position is stuck
        going_on = fresh[graph.num_joint[fresh] > 0]
        if going_on.size:
            offsets, values = self._choices(role, going_on, depth, heuristic, default)
            table[going_on] = np.maximum.reduceat(values, offsets[:-1])

    def _table(self, role: int, depth: int, heuristic: Heuristic, default: float) -> NDArray[np.float64]:
        """float64[rows or more], NaN where not known; empty at depth 0, where nothing needs to be kept."""
        if depth == 0:
            return np.empty(0)
        key = (role, heuristic, default, depth)
        table = self._tables.get(key, np.empty(0))
        if len(table) < self._graph.num_rows:
            known = len(table)
            table = longer(table, 2 * self._graph.num_rows)
            table[known:] = np.nan
            self._tables[key] = table
        return table


class Lookahead(Player):
    """Makes the move with the best value `depth` plies ahead; ties are drawn.

    `default` is what an open position counts; use the middle of the goal values where they are not 0 to 100.
    """

    def __init__(self, heuristic: Heuristic = "minimax", depth: int = 2, default: float = DEFAULT_VALUE) -> None:
        _check(depth, 1, heuristic)
        self.heuristic = heuristic
        self.depth = depth
        self.default = default

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        offsets, values = choice_values(turn.graph, turn.role, turn.rows, self.depth, self.heuristic, self.default)
        return draw_each(offsets, values, turn.keys, turn.plies)


def _check(depth: int, least: int, heuristic: str) -> None:
    if depth < least:
        raise GameloreError(f"expected a depth of at least {least}, got {depth}; depth counts plies")
    if heuristic not in HEURISTICS:
        raise GameloreError(f"expected heuristic {' | '.join(HEURISTICS)}, got {heuristic!r}; choose one of these")


def _as_rows(rows: ArrayLike) -> NDArray[np.int32]:
    return np.ascontiguousarray(rows, np.int32)


_TOLERANCE = 1e-9  # means of the same numbers in another order may differ in the last bits
_MINIMAX, _MAXMAX = 0, 1
_WHICH = np.uint64(WHICH)


@kernel("float64(int64, int64, float64, float64[::1], boolean[::1], int16[:, ::1])")
def _value(
    row: int,
    role: int,
    default: float,
    table: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    goals: NDArray[np.int16],
) -> float:
    """The value of one row by the table of its level; the table is empty on the last level."""
    if terminal[row]:
        return float(max(goals[row, role], 0))
    return table[row] if table.size else default


@kernel("float64[::1](int32[::1], int64, float64, float64[::1], boolean[::1], int16[:, ::1])")
def _read(
    rows: NDArray[np.int32],
    role: int,
    default: float,
    table: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    goals: NDArray[np.int16],
) -> NDArray[np.float64]:
    out = np.empty(rows.size)
    for i in range(rows.size):
        out[i] = _value(rows[i], role, default, table, terminal, goals)
    return out


@kernel(
    "float64(int64, int64, int64, int64, float64, float64[::1], boolean[::1], int16[:, ::1],"
    " int32[:, ::1], int64[::1], int64[::1], int32[::1])"
)
def _choice_value(
    row: int,
    role: int,
    move: int,
    heuristic: int,
    default: float,
    table: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    goals: NDArray[np.int16],
    num_moves: NDArray[np.int32],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
) -> float:
    """One own move: the minimum, maximum or mean over the others' joint moves."""
    if num_joint[row] == 0:
        return default
    stride = joint_stride(row, role, num_moves)
    period = stride * num_moves[row, role]
    least, most, total, count = np.inf, -np.inf, 0.0, 0
    for begin in range(succ_start[row] + move * stride, succ_start[row] + num_joint[row], period):
        for child in successors[begin : begin + stride]:
            value = _value(child, role, default, table, terminal, goals)
            least, most, total, count = min(least, value), max(most, value), total + value, count + 1
    if heuristic == _MINIMAX:
        return least
    return most if heuristic == _MAXMAX else total / count


@kernel(
    "void(int32[::1], int64, int64, float64, float64[::1], boolean[::1], int16[:, ::1],"
    " int32[:, ::1], int64[::1], int64[::1], int32[::1], float64[::1])"
)
def _value_choices(
    rows: NDArray[np.int32],
    role: int,
    heuristic: int,
    default: float,
    table: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    goals: NDArray[np.int16],
    num_moves: NDArray[np.int32],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """The values of all moves of the rows, one row after the other."""
    at = 0
    for row in rows:
        for move in range(num_moves[row, role]):
            out[at] = _choice_value(
                row,
                role,
                move,
                heuristic,
                default,
                table,
                terminal,
                goals,
                num_moves,
                num_joint,
                succ_start,
                successors,
            )
            at += 1


@kernel("int64(float64[::1], float64, uint64, uint64)")
def draw_best(values: NDArray[np.float64], tolerance: float, key: np.uint64, counter: np.uint64) -> int:
    """The place of a value at most `tolerance` below the best, drawn among them; for use inside kernels."""
    least = values.max() - tolerance
    ties = 0
    for value in values:
        ties += value >= least
    which = below(key, counter, _WHICH, ties)
    place = 0
    while values[place] < least or which > 0:
        which -= values[place] >= least
        place += 1
    return place


@kernel("int32[::1](int64[::1], float64[::1], uint64[::1], int32[::1])")
def draw_each(
    offsets: NDArray[np.int64],
    values: NDArray[np.float64],
    keys: NDArray[np.uint64],
    plies: NDArray[np.int32],
) -> NDArray[np.int32]:
    """For each i the place of a best value within `values[offsets[i] : offsets[i + 1]]`, drawn among equals."""
    out = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        out[i] = draw_best(values[offsets[i] : offsets[i + 1]], _TOLERANCE, keys[i], np.uint64(plies[i]))
    return out
