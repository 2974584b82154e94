"""Lookahead of fixed depth: decisive moves within one full turn, and minimax, maxmax and avgmax values.

Decisive moves: "It looks ahead one full turn and seeks terminal nodes" (Banerjee & Stone 2007, section 4). A full turn
is the role's own move and up to `num_roles - 1` further plies, until every role has moved (readings.md, B&S 4).

Values: the value of a terminal position is the role's goal (0 where the rules give no goal). At the last level of the
search, all other positions have a default value; so have stuck positions at any level. The value of any other position
is the highest value of the role's own moves. The value of a move depends on the simultaneous moves of the other roles:

    minimax   the minimum over the joint moves of the others: they choose what is worst for the role
    maxmax    the maximum over the joint moves of the others: they choose what is best for the role
    avgmax    the mean over the joint moves of the others: they choose at random

Where the role only waits, the value of the position is the minimum (maximum, mean) over the moves of the acting roles.
B&S 2007, section 4, use minimax two plies below an afterstate and mention maxmax and avgmax.

Lookahead by simulations (UCT) is in uct.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError, check_word
from .kernel import F64, I8, I32, I64, U64, Bool, Boolx2, I16x2, I32x2, I64x2, inlined, kernel
from .player import Player, Turn
from .position_graph import as_rows, joint_stride, longer
from .random_streams import WHICH, below

if TYPE_CHECKING:
    from .position_graph import PositionGraph

WIN, LOSS, GIVES, NEUTRAL = 0, 1, 2, 3


class MoveClasses:
    """Classes of the legal moves, by position and role. Use `graph.memo(MoveClasses)`, so that each is computed once.

    WIN      The move ends the match with the role's best goal value, whatever the others do at the same time.
    LOSS     For some simultaneous moves of the others, the move ends the match with the role's worst goal value.
    GIVES    After the move, replies of the others can end the match with the role's worst goal value, within at most
             `num_roles - 1` further plies. The plies are not followed beyond a position where only the role itself
             acts, because its own moves are not replies. Where the role acts together with others, all joint moves
             are followed.
    NEUTRAL  None of the other classes applies.

    A move has the first class that applies. The best and the worst goal value are the last and the first of
    `game.goal_values`; a missing goal counts as 0.

    is_classified  bool[rows, roles], True where classes are computed; may be longer or shorter than the arrays of the
                   graph
    classes        int8[any], parallel to `graph.move_actions`
    """

    def __init__(self, graph: PositionGraph) -> None:
        self.is_classified = np.zeros((graph.num_rows, graph.game.num_roles), np.bool_)
        self.classes = np.zeros(len(graph.move_actions), np.int8)
        self._graph = graph

    def classify(self, rows: NDArray[np.int32], role: int) -> None:
        """Compute the classes of the role's moves in these rows."""
        graph = self._graph
        frontier = rows
        for _ in range(graph.game.num_roles):
            frontier = graph.children(frontier)
            acting = graph.acting[frontier]
            frontier = frontier[acting.sum(axis=1) > acting[:, role]]
        if len(self.is_classified) < graph.num_rows:
            self.is_classified = longer(self.is_classified, 2 * graph.num_rows)
        if len(self.classes) < len(graph.move_actions):
            self.classes = longer(self.classes, 2 * len(graph.move_actions))
        values = graph.game.goal_values[role] or (-1, -1)  # a role without goals never wins or loses
        moves = graph.acting, graph.num_moves, graph.move_start, graph.num_joint, graph.succ_start, graph.successors
        _classify(rows, role, values[0], values[-1], graph.terminal, graph.goals, *moves, self.classes)
        self.is_classified[rows, role] = True

    def complete(self, rows: NDArray[np.int32], role: int) -> None:
        """Compute the classes of the role's moves in those of these rows where they are missing; rows may be equal."""
        inside = rows < len(self.is_classified)
        missing = ~inside
        missing[inside] = ~self.is_classified[rows[inside], role]
        if missing.any():
            self.classify(self._graph.distinct(rows[missing]), role)


@inlined
def is_reply(row: int, role: int, acting: Boolx2) -> bool:
    """Return whether another role acts in this row; for use inside kernels."""
    others = False
    for other in range(acting.shape[1]):
        others |= bool(other != role and acting[row, other])
    return others


@kernel
def _can_fall(
    first: int,
    role: int,
    worst: int,
    plies: int,
    terminal: Bool,
    goals: I16x2,
    acting: Boolx2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
) -> bool:
    """Return whether a line of at most `plies` replies, from row `first` on, ends with the role's worst goal value."""
    # depth first, with an explicit stack, because numba cannot load a recursive function from its cache
    path = np.empty(plies + 1, np.int32)
    tried = np.zeros(plies + 1, np.int64)
    path[0] = first
    depth = 0
    while depth >= 0:
        row = path[depth]
        if terminal[row] and max(goals[row, role], 0) == worst:
            return True
        closed = terminal[row] or depth == plies or not is_reply(row, role, acting)
        if closed or tried[depth] == num_joint[row]:
            depth -= 1
        else:
            child = successors[succ_start[row] + tried[depth]]
            tried[depth] += 1
            depth += 1
            path[depth] = child
            tried[depth] = 0
    return False


@kernel
def _classify(
    rows: I32,
    role: int,
    worst: int,
    best: int,
    terminal: Bool,
    goals: I16x2,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    classes: I8,
) -> None:
    """Fill in the classes of the role's moves in the rows; see `MoveClasses`."""
    roles = num_moves.shape[1]
    for row in rows:
        stride = joint_stride(row, role, num_moves)
        moves = num_moves[row, role]
        for move in range(moves):
            wins, loses, gives = True, False, False
            for joint in range(num_joint[row]):
                if joint // stride % moves == move:
                    child = successors[succ_start[row] + joint]
                    goal = max(goals[child, role], 0)
                    wins &= terminal[child] and goal == best
                    loses |= terminal[child] and goal == worst
                    gives |= not terminal[child] and _can_fall(
                        child, role, worst, roles - 1, terminal, goals, acting, num_joint, succ_start, successors
                    )
            at = move_start[row, role] + move
            classes[at] = WIN if wins else LOSS if loses else GIVES if gives else NEUTRAL


Heuristic = Literal["minimax", "maxmax", "avgmax"]

HEURISTICS: tuple[Heuristic, ...] = get_args(Heuristic)
DEFAULT_VALUE = 50.0  # B&S 2007, footnote 2: the average of the win and loss rewards


def lookahead(
    graph: PositionGraph,
    role: int,
    rows: ArrayLike,
    depth: int,
    heuristic: Heuristic = "minimax",
    default: float = DEFAULT_VALUE,
) -> NDArray[np.float64]:
    """Return the values float64[n] of positions (afterstates, for example), searched `depth` plies deep.

    With depth 0, a terminal position has its goal and every other position the default value. Values are computed once
    for each position, depth, role, heuristic and default; the graph is expanded as needed. Raise GameloreError for an
    unknown heuristic or a depth below 0.
    """
    _check(depth, 0, heuristic)
    return graph.memo(LookaheadValues, role, heuristic, default).values(as_rows(rows), depth)


def choice_values(
    graph: PositionGraph,
    role: int,
    rows: ArrayLike,
    depth: int,
    heuristic: Heuristic = "minimax",
    default: float = DEFAULT_VALUE,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the value of each legal move of the role. `depth` includes the role's own ply and is at least 1.

    The result is (offsets int64[n + 1], values float64[total]). The moves of rows[i] have the values
    `values[offsets[i] : offsets[i + 1]]`. Raise GameloreError for an unknown heuristic or a depth below 1.
    """
    _check(depth, 1, heuristic)
    return graph.memo(LookaheadValues, role, heuristic, default).choice_values(as_rows(rows), depth)


class LookaheadValues:
    """Table of the lookahead values computed so far, by depth and row.

    Use `graph.memo(LookaheadValues, role, heuristic, default)`.
    """

    def __init__(self, graph: PositionGraph, role: int, heuristic: Heuristic, default: float) -> None:
        self._graph = graph
        self._role = role
        self._heuristic = HEURISTICS.index(heuristic)
        self._default = default
        self._tables: dict[int, NDArray[np.float64]] = {}

    def values(self, rows: NDArray[np.int32], depth: int) -> NDArray[np.float64]:
        """See `lookahead`."""
        self._fill(rows, depth)
        return _read(rows, self._role, self._default, self._table(depth), self._graph.terminal, self._graph.goals)

    def choice_values(self, rows: NDArray[np.int32], depth: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """See the function `choice_values`."""
        self._fill(rows, depth)  # also fills the level `depth - 1`, which `_choices` reads
        return self._choices(rows, depth)

    def _choices(self, rows: NDArray[np.int32], depth: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return `choice_values`, computed from the values of the level `depth - 1`."""
        graph = self._graph
        offsets = np.append(0, np.cumsum(graph.num_moves[rows, self._role], dtype=np.int64))
        values = np.empty(offsets[-1])
        settings = self._role, self._heuristic, self._default, self._table(depth - 1)
        joint_moves = graph.num_joint, graph.succ_start, graph.successors
        _value_choices(rows, *settings, graph.terminal, graph.goals, graph.num_moves, *joint_moves, values)
        return offsets, values

    def _fill(self, rows: NDArray[np.int32], depth: int) -> None:
        """Compute the values of these rows, after those of their successors at the level `depth - 1`."""
        if depth == 0:
            return
        graph = self._graph
        unknown = np.isnan(self._table(depth)[rows])
        fresh = graph.distinct(rows[unknown & ~graph.terminal[rows]])
        if not fresh.size:
            return
        self._fill(graph.children(fresh), depth - 1)
        table = self._table(depth)
        table[fresh] = self._default  # stuck positions keep this value
        playable = fresh[graph.num_joint[fresh] > 0]
        if playable.size:
            offsets, values = self._choices(playable, depth)
            table[playable] = np.maximum.reduceat(values, offsets[:-1])

    def _table(self, depth: int) -> NDArray[np.float64]:
        """Return the values float64[rows or more] of a level; NaN if unknown. The table of level 0 is empty."""
        table = self._tables.get(depth, np.empty(0))
        if depth and len(table) < self._graph.num_rows:
            size = len(table)
            table = self._tables[depth] = longer(table, 2 * self._graph.num_rows)
            table[size:] = np.nan
        return table


class Lookahead(Player):
    """Player that makes the move with the highest lookahead value. Among equal moves it chooses at random.

    heuristic  assumed behaviour of the other roles
    depth      number of plies to look ahead
    default    value of positions at the last level that are not terminal. If the goals of a game are not from 0 to 100,
               use the middle of its goal values
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
    """Raise GameloreError for a depth below `least` or an unknown heuristic."""
    if depth < least:
        raise GameloreError(f"expected a depth of at least {least}, got {depth}; the depth is a number of plies")
    check_word("heuristic", heuristic, HEURISTICS)


_TOLERANCE = 1e-9  # the mean of the same numbers in another order may differ in the last bits
_MINIMAX, _MAXMAX = 0, 1
_WHICH = np.uint64(WHICH)


@inlined
def _value(row: int, role: int, default: float, table: F64, terminal: Bool, goals: I16x2) -> float:
    """Return the value of one row from the table of its level. The table of level 0 is empty."""
    if terminal[row]:
        return float(max(goals[row, role], 0))
    return table[row] if table.size else default


@kernel
def _read(rows: I32, role: int, default: float, table: F64, terminal: Bool, goals: I16x2) -> F64:
    """Return the values of rows; see `_value`."""
    out = np.empty(rows.size)
    for i in range(rows.size):
        out[i] = _value(rows[i], role, default, table, terminal, goals)
    return out


@kernel
def _value_choices(
    rows: I32,
    role: int,
    heuristic: int,
    default: float,
    table: F64,
    terminal: Bool,
    goals: I16x2,
    num_moves: I32x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    out: F64,
) -> None:
    """Fill in the values of all moves of the rows: the minimum, maximum or mean over the joint moves of the others."""
    at = 0
    for row in rows:
        stride = joint_stride(row, role, num_moves)
        period = max(1, stride * num_moves[row, role])  # without max: 0 if another role has no move
        end = succ_start[row] + num_joint[row]
        for move in range(num_moves[row, role]):
            least, most, total, count = np.inf, -np.inf, 0.0, 0
            for begin in range(succ_start[row] + move * stride, end, period):
                for child in successors[begin : begin + stride]:
                    value = _value(child, role, default, table, terminal, goals)
                    least, most, total, count = min(least, value), max(most, value), total + value, count + 1
            if count == 0:
                out[at] = default
            elif heuristic == _MINIMAX:
                out[at] = least
            else:
                out[at] = most if heuristic == _MAXMAX else total / count
            at += 1


@inlined
def first_best(values: F64) -> int:
    """Return the index of the first highest value; for use inside kernels."""
    best = 0
    for i in range(values.size):
        if values[i] > values[best]:
            best = i
    return best


@inlined
def draw_best(values: F64, tolerance: float, key: np.uint64, counter: np.uint64) -> int:
    """Return the index of a random value among those at most `tolerance` below the highest; for use inside kernels."""
    least = values[first_best(values)] - tolerance
    ties = 0
    for value in values:
        ties += value >= least
    which = below(key, counter, _WHICH, ties)
    index = 0
    while values[index] < least or which > 0:
        which -= values[index] >= least
        index += 1
    return index


@kernel
def draw_each(offsets: I64, values: F64, keys: U64, plies: I32) -> I32:
    """Return for each i the index of a random best value in `values[offsets[i] : offsets[i + 1]]`."""
    out = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        out[i] = draw_best(values[offsets[i] : offsets[i + 1]], _TOLERANCE, keys[i], np.uint64(plies[i]))
    return out
