"""What a solution says of the moves of a position, and the player that is made from it.

A solution that leaves a step counter out knows nothing of the end of the count: `perfect` then plays to win the game in
which nobody counts, as fast as that can be done, also where the count will end the match before. No value is lost by
it: such an end is worth half of the points, and so is a match without end. The match loop's own cap on plies is in no
rules; a match that it cuts has no goals at all.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .decisive import GIVES, LOSS, NEUTRAL, WIN
from .graph import joint_stride
from .kernel import kernel
from .player import Player, Started, Turn, most_wanted, nth_wanted
from .solve import Solution, solve
from .statetable import longer
from .streams import WHICH, below

if TYPE_CHECKING:
    from .graph import Graph

Best = Literal["fastest", "value"]
Grades = tuple[NDArray[np.int8], NDArray[np.int8]]


class SolvedMoves:
    """What legal moves are worth: `graph.memo(SolvedMoves)` loads the solution of the graph's game, or solves it.

    known      bool[rows], grows behind the graph's rows: the moves of these rows were looked at
    values     int16[any], parallel to `graph.move_actions`: the goal of the move's role, under best play from there on
    optimal    bool[any], no other move is worth more
    best       bool[any], optimal and the fastest way to gain or the slowest to lose
    classes    int8[any], WIN, LOSS, GIVES or NEUTRAL as `MoveClasses` has it, for the role that chooses

    A role that waits has one move, which is worth what the position is, and best. Raises GameloreError as `solve` does.
    """

    def __init__(self, graph: Graph, solution: Solution | None = None) -> None:
        self.solution = solve(graph.game) if solution is None else solution
        self.graph = graph
        self._worst_and_best = np.array(
            [(goals[0], goals[-1]) if goals else (-1, -1) for goals in graph.game.goal_values]
        )
        self.known, self._seen = np.zeros(0, np.bool_), np.zeros(0, np.bool_)
        self._goals, self._distances = np.zeros((0, graph.game.num_roles), np.int16), np.zeros(0, np.int32)
        self.values, self.classes = np.zeros(0, np.int16), np.zeros(0, np.int8)
        self.optimal, self.best = np.zeros(0, np.bool_), np.zeros(0, np.bool_)

    def look(self, rows: NDArray[np.int32]) -> None:
        """Makes known what the moves of these rows are worth; expands them."""
        self._make_room()
        fresh = self.graph.distinct(rows[~self.known[rows]])
        if fresh.size:
            self.graph.expand(fresh)
            self._make_room()
            self._see(fresh)
            self._see(_successors(fresh, self.graph.num_joint, self.graph.succ_start, self.graph.successors))
            self._weigh(fresh)
            self.known[fresh] = True

    def position_values(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
        """What `Solution.look_up` says of rows: goals int16[n, roles], distances int32[n]."""
        self._make_room()
        self._see(rows)
        return self._goals[rows], self._distances[rows]

    def _see(self, rows: NDArray[np.int32]) -> None:
        """Looks up the rows that were not yet."""
        fresh = self.graph.distinct(rows[~self._seen[rows]])
        if fresh.size:
            self._goals[fresh], self._distances[fresh] = self.solution.look_up(self.graph.states[fresh])
            self._seen[fresh] = True

    def _weigh(self, fresh: NDArray[np.int32]) -> None:
        graph = self.graph
        _weigh(
            fresh,
            self._worst_and_best,
            graph.terminal,
            graph.acting,
            graph.goals,
            graph.num_moves,
            graph.move_start,
            graph.num_joint,
            graph.succ_start,
            graph.successors,
            self._goals,
            self._distances,
            self.values,
            self.optimal,
            self.best,
            self.classes,
        )

    def _make_room(self) -> None:
        rows, moves = self.graph.num_rows, len(self.graph.move_actions)
        if len(self.known) < rows:
            self.known, self._seen = longer(self.known, 2 * rows), longer(self._seen, 2 * rows)
            self._goals, self._distances = longer(self._goals, 2 * rows), longer(self._distances, 2 * rows)
        if len(self.values) < moves:
            self.values, self.classes = longer(self.values, 2 * moves), longer(self.classes, 2 * moves)
            self.optimal, self.best = longer(self.optimal, 2 * moves), longer(self.best, 2 * moves)


class Graded(Player):
    """A player that grades its moves, and draws among those of the grade that it wants most."""

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        graph = turn.graph
        grades, wants = self.grades(graph, turn.rows, turn.role)
        return _draw(turn.role, turn.rows, turn.keys, turn.plies, graph.num_moves, graph.move_start, grades, wants)

    def distribution(self, graph: Graph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """float64[total]: the probabilities of the role's moves, one of the rows after the other."""
        grades, wants = self.grades(graph, rows, role)
        return _shares(role, rows, graph.num_moves, graph.move_start, grades, wants)

    @abstractmethod
    def grades(self, graph: Graph, rows: NDArray[np.int32], role: int) -> Grades:
        """(grades int8[any], parallel to `graph.move_actions`, right in these rows; how much each grade is wanted)."""


class Perfect(Graded):
    """Never loses anything, and draws among its best moves (readings.md, L&E 4).

    best: "fastest" for those that gain as fast and lose as slowly as can be, "value" for all that lose nothing.
    Raises GameloreError for another word.
    """

    def __init__(self, best: Best = "fastest") -> None:
        if best not in get_args(Best):
            raise GameloreError(f"expected best {' | '.join(get_args(Best))}, got {best!r}; choose one of these")
        self.best = best

    def begin(self, role: int, started: Started) -> None:
        """Solves the game, once for a graph. Raises GameloreError where that cannot be done."""
        started.graph.memo(SolvedMoves)

    def grades(self, graph: Graph, rows: NDArray[np.int32], role: int) -> Grades:
        """See `Graded.grades`."""
        solved = graph.memo(SolvedMoves)
        solved.look(rows)
        chosen = solved.best if self.best == "fastest" else solved.optimal
        return chosen.view(np.int8), _CHOSEN


_CHOSEN = np.array([0, 1], np.int8)
_WHICH = np.uint64(WHICH)


@kernel("int32[::1](int32[::1], int64[::1], int64[::1], int32[::1])")
def _successors(
    rows: NDArray[np.int32],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
) -> NDArray[np.int32]:
    """All successors of the rows, one row after the other."""
    total = 0
    for row in rows:
        total += num_joint[row]
    out = np.empty(total, np.int32)
    at = 0
    for row in rows:
        for child in successors[succ_start[row] : succ_start[row] + num_joint[row]]:
            out[at] = child
            at += 1
    return out


@kernel(
    "int8(int64, int64, int64, int64[:, ::1], boolean[::1], boolean[:, ::1], int16[:, ::1], int16[:, ::1], int32[::1])"
)
def _class(
    row: int,
    child: int,
    role: int,
    worst_and_best: NDArray[np.int64],
    terminal: NDArray[np.bool_],
    acting: NDArray[np.bool_],
    ends: NDArray[np.int16],
    goals: NDArray[np.int16],
    distances: NDArray[np.int32],
) -> int:
    """See `MoveClasses`; that a reply makes the role lose is its worst value, one ply away, where another acts."""
    worst, best = worst_and_best[role]
    if terminal[child]:
        goal = max(ends[child, role], 0)
        return WIN if goal == best else LOSS if goal == worst else NEUTRAL
    replies = False
    for other in range(acting.shape[1]):
        replies |= other != role and acting[child, other]
    return GIVES if replies and distances[child] == 1 and goals[child, role] == worst else NEUTRAL


@kernel(
    "void(int32[::1], int64[:, ::1], boolean[::1], boolean[:, ::1], int16[:, ::1], int32[:, ::1], int64[:, ::1],"
    " int64[::1], int64[::1], int32[::1], int16[:, ::1], int32[::1], int16[::1], boolean[::1], boolean[::1], int8[::1])"
)
def _weigh(
    rows: NDArray[np.int32],
    worst_and_best: NDArray[np.int64],
    terminal: NDArray[np.bool_],
    acting: NDArray[np.bool_],
    ends: NDArray[np.int16],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
    goals: NDArray[np.int16],
    distances: NDArray[np.int32],
    values: NDArray[np.int16],
    optimal: NDArray[np.bool_],
    best: NDArray[np.bool_],
    classes: NDArray[np.int8],
) -> None:
    """Fills in what the moves of the rows are worth; see `SolvedMoves`."""
    for row in rows:
        for role in range(num_moves.shape[1]):
            at = move_start[row, role]
            if num_moves[row, role] < num_joint[row]:  # another one chooses
                values[at], optimal[at], best[at], classes[at] = goals[row, role], True, True, NEUTRAL
                continue
            stride = joint_stride(row, role, num_moves)
            for move in range(num_moves[row, role]):
                child = successors[succ_start[row] + move * stride]
                values[at + move] = goals[child, role]
                optimal[at + move] = goals[child, role] == goals[row, role]
                in_time = distances[row] < 0 or distances[child] == distances[row] - 1
                best[at + move] = optimal[at + move] and in_time
                classes[at + move] = _class(row, child, role, worst_and_best, terminal, acting, ends, goals, distances)


@kernel("int32[::1](int64, int32[::1], uint64[::1], int32[::1], int32[:, ::1], int64[:, ::1], int8[::1], int8[::1])")
def _draw(
    role: int,
    rows: NDArray[np.int32],
    keys: NDArray[np.uint64],
    plies: NDArray[np.int32],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    grades: NDArray[np.int8],
    wants: NDArray[np.int8],
) -> NDArray[np.int32]:
    """In each row one of the moves that are wanted most."""
    out = np.empty(rows.size, np.int32)
    for i in range(rows.size):
        begin = move_start[rows[i], role]
        most, count = most_wanted(begin, num_moves[rows[i], role], grades, wants)
        out[i] = nth_wanted(begin, grades, wants, most, below(keys[i], np.uint64(plies[i]), _WHICH, count))
    return out


@kernel("float64[::1](int64, int32[::1], int32[:, ::1], int64[:, ::1], int8[::1], int8[::1])")
def _shares(
    role: int,
    rows: NDArray[np.int32],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    grades: NDArray[np.int8],
    wants: NDArray[np.int8],
) -> NDArray[np.float64]:
    """See `Graded.distribution`."""
    total = 0
    for row in rows:
        total += num_moves[row, role]
    out = np.zeros(total)
    at = 0
    for row in rows:
        begin = move_start[row, role]
        most, count = most_wanted(begin, num_moves[row, role], grades, wants)
        for i in range(begin, begin + num_moves[row, role]):
            if wants[grades[i]] == most:
                out[at] = 1.0 / count
            at += 1
    return out
