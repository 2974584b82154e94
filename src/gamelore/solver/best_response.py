"""Best response: exact expected goals of a role against opponents whose move probabilities are known.

Against such opponents the role has a Markov decision problem. The value of a position is its expected goal:

    terminal     the role's goal; 0 for a missing goal
    stuck        0, because the match ends without a goal
    other        the values of the role's own moves, where each value is the mean over the moves of the opponents. The
                 role makes a random move with probability epsilon, and a move with the highest value otherwise

With epsilon = 0 the values are those of the optimal policy (Q*, Bellman 1957). With the epsilon of a learner they are
the highest that this learner can reach. A match that never ends counts 0. A limit on the number of plies of a match is
not modelled, nor is a discount.

Positions are swept backward until no value changes. In a game without cycles, one sweep suffices if the rows of the
graph are numbered breadth first, and a second sweep confirms the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..players.kernel import F64, I32, I64, Bool, I16x2, I32x2, I64x2, kernel
from ..players.position_graph import MIB, joint_stride, memory_cap

if TYPE_CHECKING:
    from ..players.player import Memoryless
    from ..players.position_graph import PositionGraph

CAP_VARIABLE = "GAMELORE_ORACLE_MIB"
CAP_MIB = 1024
_AT_ONCE = 1 << 16  # rows expanded between two checks of the memory
_TOLERANCE = 1e-9  # in points


class BestResponse:
    """Values of all positions for one role against one kind of opponent, which plays all other roles.

    graph     its positions are expanded, all of them
    opponent  gives the probabilities of the moves of the other roles
    epsilon   probability of a random move of the role itself
    values    float32[rows], expected goal of the role by row

    The values are computed by `solve`, or when they are asked for. Each of these raises GameloreError if the positions
    of the game need more memory than the cap.
    """

    def __init__(self, graph: PositionGraph, role: int, opponent: Memoryless, epsilon: float = 0.0) -> None:
        self.graph = graph
        self.role = role
        self.opponent = opponent
        self.epsilon = epsilon
        self.values = np.zeros(0, np.float32)
        self._moves = np.zeros(0)  # values of the role's moves, parallel to `graph.move_actions`

    def values_of(self, afterstates: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the expected goals of afterstates, float64[n]; see learning/td/afterstates.py for their numbers."""
        if not len(self.values) or (len(afterstates) and afterstates.max() >= len(self.values)):
            self.solve()
        out = np.empty(len(afterstates))
        rows = afterstates >= 0
        out[rows] = self.values[afterstates[rows]]
        if not rows.all():
            out[~rows] = self._of_pairs(~afterstates[~rows].astype(np.int64))
        return out

    @property
    def expected(self) -> float:
        """The expected goal of a match: the value of the initial position."""
        return float(self.values_of(np.array([self.graph.start], np.int32))[0])

    def solve(self) -> None:
        """Compute the value of every position. Raise GameloreError if they need more memory than the cap."""
        graph = self.graph
        expand_all(graph)
        _check_tables(graph)
        shares, values = self._shares(), np.zeros(graph.num_rows)
        positions = graph.terminal, graph.goals, graph.num_moves, graph.move_start
        joint = graph.num_joint, graph.succ_start, graph.successors
        tables = *positions, *joint, shares, values
        while _sweep(self.role, self.epsilon, *tables) > _TOLERANCE:
            pass
        self.values, self._moves = values.astype(np.float32), np.zeros(0)

    def _of_pairs(self, moves: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the values of moves of the role, given as indices into `graph.move_actions`."""
        if not len(self._moves):
            graph, role = self.graph, self.role
            joint = graph.num_joint, graph.succ_start, graph.successors
            tables = (graph.num_moves, graph.move_start, *joint, self._shares(), self.values.astype(np.float64))
            self._moves = np.full(len(graph.move_actions), np.nan)
            _value_moves(role, graph.expanded, *tables, self._moves)
        return self._moves[moves]

    def _shares(self) -> NDArray[np.float64]:
        """Return the probability of every move of the other roles, parallel to `graph.move_actions`."""
        graph = self.graph
        shares = np.ones(len(graph.move_actions))
        for role in range(graph.game.num_roles):
            if role != self.role:
                rows = np.flatnonzero(graph.num_moves[:, role] > 1).astype(np.int32)
                own = self.opponent.distribution(graph, rows, role)
                _spread(own, graph.move_start[rows, role], graph.num_moves[rows, role], shares)
        return shares


def expand_all(graph: PositionGraph) -> None:
    """Expand all positions of a graph and all positions below them.

    Raise GameloreError if they need more memory than the cap.
    """
    cap = memory_cap(CAP_VARIABLE, CAP_MIB)
    closed = np.flatnonzero(~graph.expanded & ~graph.terminal).astype(np.int32)
    while closed.size:
        before = graph.num_rows
        for begin in range(0, len(closed), _AT_ONCE):
            graph.expand(closed[begin : begin + _AT_ONCE])
            if 2 * graph.num_bytes > cap:
                raise GameloreError(
                    f"expected all positions of {graph.game.name} to need at most {cap // MIB} MiB, got "
                    f"{graph.num_rows:,} positions and more to come; choose a smaller game, another learner "
                    "(lookahead or transfer), or allow more memory with the environment variable "
                    f"{CAP_VARIABLE}"
                )
        fresh = np.arange(before, graph.num_rows, dtype=np.int32)
        closed = fresh[~graph.terminal[fresh]]


class _TableCount:
    """The number of tables of values that were computed on a graph."""

    def __init__(self, graph: PositionGraph) -> None:
        self.num_tables = 0


def _check_tables(graph: PositionGraph) -> None:
    """Count one more table of values. Raise GameloreError if the graph and its tables need more memory than the cap."""
    count = graph.memo(_TableCount)
    num_tables = count.num_tables + 1
    num_bytes = graph.num_bytes + 4 * graph.num_rows * num_tables
    cap = memory_cap(CAP_VARIABLE, CAP_MIB)
    if num_bytes > cap:
        raise GameloreError(
            f"expected the exact values of {graph.game.name} to need at most {cap // MIB} MiB, got "
            f"{num_bytes // MIB} MiB for {num_tables} different opponents; play fewer series at once, use one "
            f"opponent (filler=random) in all, or allow more memory with the environment variable {CAP_VARIABLE}"
        )
    count.num_tables = num_tables


@kernel
def _spread(own: F64, starts: I64, counts: I32, shares: F64) -> None:
    """Copy probabilities of moves, one row after the other, to the places of these moves."""
    at = 0
    for i in range(starts.size):
        for move in range(counts[i]):
            shares[starts[i] + move] = own[at]
            at += 1


@kernel
def _value_of(
    row: int,
    role: int,
    move: int,
    num_moves: I32x2,
    move_start: I64x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    shares: F64,
    values: F64,
) -> float:
    """Return the value of a move of the role: the mean over the moves of the others, by their probabilities."""
    stride, own, total = joint_stride(row, role, num_moves), num_moves[row, role], 0.0
    for joint in range(num_joint[row]):
        if joint // stride % own != move:
            continue
        share, rest = 1.0, joint
        for other in range(num_moves.shape[1] - 1, -1, -1):
            choice = rest % num_moves[row, other]
            rest //= num_moves[row, other]
            if other != role and num_moves[row, other] > 1:
                share *= shares[move_start[row, other] + choice]
        total += share * values[successors[succ_start[row] + joint]]
    return total


@kernel
def _sweep(
    role: int,
    epsilon: float,
    terminal: Bool,
    goals: I16x2,
    num_moves: I32x2,
    move_start: I64x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    shares: F64,
    values: F64,
) -> float:
    """Compute the value of every row from those of its successors, the last row first. Return the largest change."""
    change = 0.0
    for row in range(terminal.size - 1, -1, -1):
        value = 0.0
        if terminal[row]:
            value = float(max(goals[row, role], 0))
        elif num_joint[row] > 0:
            best, total, own = 0.0, 0.0, num_moves[row, role]
            for move in range(own):
                worth = _value_of(
                    row, role, move, num_moves, move_start, num_joint, succ_start, successors, shares, values
                )
                best, total = max(best, worth), total + worth
            value = (1.0 - epsilon) * best + epsilon * total / own
        change = max(change, abs(value - values[row]))
        values[row] = value
    return change


@kernel
def _value_moves(
    role: int,
    expanded: Bool,
    num_moves: I32x2,
    move_start: I64x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    shares: F64,
    values: F64,
    out: F64,
) -> None:
    """Fill in the values of all moves of the role; see `_value_of`."""
    for row in range(expanded.size):
        for move in range(num_moves[row, role]):
            out[move_start[row, role] + move] = _value_of(
                row, role, move, num_moves, move_start, num_joint, succ_start, successors, shares, values
            )
