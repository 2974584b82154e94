"""Perfect play from a solution: values of moves, the player `Perfect`, best lines, and the regret of matches.

Regret is the number of points that a move loses against best play.

If a solution leaves out a step counter, the player `perfect` plays as if the game had no counter. It wins as fast as
possible in that game, even if in the real match the counter ends the match before the win. A match that the counter
ends gives half of the points to each role, and so does an endless match in the game without the counter. So values are
valid where the distance is not larger than the number of plies that are left. The cap on plies of the match loop is not
part of the rules: a match cut by this cap has no goals.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..analysis.symmetry import Symmetries, step_counter
from ..errors import check_word
from ..players.kernel import F64, I8, I16, I32, I64, U64, Bool, Boolx2, I16x2, I32x2, I32x3, I64x2, Int8, kernel
from ..players.lookahead import GIVES, LOSS, NEUTRAL, WIN, is_reply
from ..players.player import Finished, Player, Started, Turn
from ..players.position_graph import joint_stride, longer
from ..players.preferences import most_wanted, nth_wanted
from ..players.random_streams import WHICH, below, mix
from .solution import Solution, solve
from .statespace import Canonical, affordable_symmetries

if TYPE_CHECKING:
    from ..players.position_graph import PositionGraph

Best = Literal["fastest", "value"]
Choice = Literal["drawn", "fixed", "symmetric"]
Grades = tuple[NDArray[np.int8], NDArray[np.int8]]


class SolvedMoves:
    """Values of legal moves. `graph.memo(SolvedMoves)` loads the solution of the graph's game, or solves the game.

    known      bool[rows], True if the values of the moves of the row are computed; may be longer or shorter than the
               arrays of the graph
    values     int16[any], parallel to `graph.move_actions`: the goal of the move's role if all play best after the move
    optimal    bool[any], True if no other move of the role has a higher value
    best       bool[any], True for those optimal moves that gain points fastest, or lose points slowest
    classes    int8[any], WIN, LOSS, GIVES or NEUTRAL as in `MoveClasses`, for the role that chooses

    A waiting role has one move. This move has the value of the position, and it is optimal and best. Raise
    GameloreError as `solve` does.
    """

    def __init__(self, graph: PositionGraph, solution: Solution | None = None) -> None:
        self.solution = solve(graph.game) if solution is None else solution
        self.graph = graph
        self._worst_and_best = np.array(
            [(goals[0], goals[-1]) if goals else (-1, -1) for goals in graph.game.goal_values]
        )
        self.is_classified, self._seen = np.zeros(0, np.bool_), np.zeros(0, np.bool_)
        self._goals, self._distances = np.zeros((0, graph.game.num_roles), np.int16), np.zeros(0, np.int32)
        self.values, self.classes = np.zeros(0, np.int16), np.zeros(0, np.int8)
        self.optimal, self.best = np.zeros(0, np.bool_), np.zeros(0, np.bool_)

    def look(self, rows: NDArray[np.int32]) -> None:
        """Expand these rows and compute the values of their moves."""
        graph = self.graph
        self._make_room()
        fresh = graph.distinct(rows[~self.is_classified[rows]])
        if fresh.size:
            after = graph.successors_of(fresh)
            self.position_values(np.concatenate([fresh, after]))
            positions = self._worst_and_best, graph.terminal, graph.acting, graph.goals
            moves = graph.num_moves, graph.move_start, graph.num_joint, graph.succ_start, graph.successors
            solved = self._goals, self._distances, self.values, self.optimal, self.best, self.classes
            arrays = *positions, *moves, *solved
            _weigh(fresh, *arrays)
            self.is_classified[fresh] = True

    def position_values(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
        """Return the goals int16[n, roles] and distances int32[n] of rows; see `Solution.look_up`."""
        self._make_room()
        fresh = self.graph.distinct(rows[~self._seen[rows]])
        if fresh.size:
            self._goals[fresh], self._distances[fresh] = self.solution.look_up(self.graph.states[fresh])
            self._seen[fresh] = True
        return self._goals[rows], self._distances[rows]

    def _make_room(self) -> None:
        """Lengthen the arrays so that they have an entry for each row or move of the graph."""
        rows, moves = self.graph.num_rows, len(self.graph.move_actions)
        by_row, by_move = ("is_classified", "_seen", "_goals", "_distances"), ("values", "classes", "optimal", "best")
        for names, size in (by_row, rows), (by_move, moves):
            if len(getattr(self, names[0])) < size:
                for name in names:
                    setattr(self, name, longer(getattr(self, name), 2 * size))


class Graded(Player):
    """Player that grades its moves and makes a choice among the moves of the most preferred grade.

    choice    "drawn": a new random choice each time. "fixed": the same choice whenever the same moves are preferred in
              the same position, whatever a step counter shows; it is the move to the position with the smallest hash.
              "symmetric": the same with equal hashes for symmetric positions, so choices in symmetric positions lead to
              symmetric positions (readings.md, L&E 14)
    hash_key  key of the hash; each key gives other choices

    If roles move at the same time, the position after a move is that in which the others make their first legal moves.
    The reasoner knows neither symmetries nor step counters. There, "symmetric" means the same as "fixed", and a
    position with another count is another position.

    Raise GameloreError for any other word.
    """

    def __init__(self, choice: Choice = "drawn", hash_key: int = 0) -> None:
        check_word("choice", choice, get_args(Choice))
        self.choice: Choice = choice
        self.hash_key = np.uint64(hash_key & _ALL_BITS)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        graph = turn.graph
        graded = self.grades(graph, turn.rows, turn.role)
        if self.choice != "drawn":
            return self._fixed(graph, turn.rows, turn.role, graded)
        return _draw(turn.role, turn.rows, turn.keys, turn.plies, graph.num_moves, graph.move_start, *graded)

    def _fixed(self, graph: PositionGraph, rows: NDArray[np.int32], role: int, graded: Grades) -> NDArray[np.int32]:
        """Return the choice int32[n] in each row, if choices are not drawn."""
        keys = graph.memo(PositionKeys, self.choice == "symmetric").of(graph.successors_of(rows))
        after = graph.num_moves, graph.move_start, graph.succ_start, graph.successors
        return _smallest(role, rows, *after, *graded, keys, self.hash_key)

    def distribution(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """Return the probabilities float64[total] of the role's moves, one row after the other."""
        graded = self.grades(graph, rows, role)
        if self.choice == "drawn":
            return _shares(role, rows, graph.num_moves, graph.move_start, *graded)
        counts = graph.num_moves[rows, role]
        shares = np.zeros(counts.sum())
        chosen = np.cumsum(counts) - counts + self._fixed(graph, rows, role, graded)
        shares[chosen[counts > 0]] = 1.0
        return shares

    @abstractmethod
    def grades(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> Grades:
        """Return (grade of each move, preference for each grade).

        The grades int8[any] are parallel to `graph.move_actions` and valid only for the moves of these rows. The
        preferences are int8[grades]; the highest is the most preferred.
        """


class PositionKeys:
    """Hashes of the positions of a graph without their step counter; they are the same in every process.

    is_symmetric  whether symmetric positions have the same hash
    """

    def __init__(self, graph: PositionGraph, is_symmetric: bool) -> None:
        self.graph = graph
        group = affordable_symmetries(graph.game) if is_symmetric else Symmetries.trivial(graph.game)
        self._canonical = Canonical.leaving_out(step_counter(graph.game), group)
        self._keys, self._is_hashed = np.zeros(0, np.uint64), np.zeros(0, np.bool_)

    def of(self, rows: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return an array of hashes that is parallel to the rows of the graph and valid for these rows."""
        graph = self.graph
        if len(self._keys) < graph.num_rows:
            self._keys, self._is_hashed = (longer(part, 2 * graph.num_rows) for part in (self._keys, self._is_hashed))
        fresh = graph.distinct(rows[~self._is_hashed[rows]])
        if fresh.size:
            self._keys[fresh] = graph.game.state_keys(self._canonical.of(graph.states[fresh]))
            self._is_hashed[fresh] = True
        return self._keys


class Perfect(Graded):
    """Player that makes a choice among its best moves in a solved game (readings.md, L&E 4 and 14).

    best      "fastest" for the moves that gain points as fast, or lose points as slowly, as possible; "value" for all
              moves that lose no points against best play
    choice    choice among equally good moves, see `Graded`
    hash_key  see `Graded`

    Raise GameloreError for any other word.
    """

    def __init__(self, best: Best = "fastest", choice: Choice = "drawn", hash_key: int = 0) -> None:
        super().__init__(choice, hash_key)
        check_word("best", best, get_args(Best))
        self.best = best

    def begin(self, role: int, started: Started) -> None:
        """Solve the game, once for each graph. Raise GameloreError if the game cannot be solved."""
        started.graph.memo(SolvedMoves)

    def grades(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> Grades:
        """See `Graded.grades`."""
        solved = graph.memo(SolvedMoves)
        solved.look(rows)
        chosen = solved.best if self.best == "fastest" else solved.optimal
        return chosen.view(np.int8), _CHOSEN


_CHOSEN = np.array([0, 1], np.int8)
_WHICH = np.uint64(WHICH)
_ALL_BITS = 0xFFFFFFFFFFFFFFFF


@kernel
def _class(
    row: int,
    child: int,
    role: int,
    worst_and_best: I64x2,
    terminal: Bool,
    acting: Boolx2,
    ends: I16x2,
    goals: I16x2,
    distances: I32,
) -> Int8:
    """Return the class of a move; see `MoveClasses`.

    The class is GIVES if another role acts after the move and can end the match at the next ply with the worst goal
    value of the moving role.
    """
    worst, best = worst_and_best[role]
    if terminal[child]:
        goal = max(ends[child, role], 0)
        return WIN if goal == best else LOSS if goal == worst else NEUTRAL
    gives = distances[child] == 1 and goals[child, role] == worst and is_reply(child, role, acting)
    return GIVES if gives else NEUTRAL


@kernel
def _weigh(
    rows: I32,
    worst_and_best: I64x2,
    terminal: Bool,
    acting: Boolx2,
    ends: I16x2,
    num_moves: I32x2,
    move_start: I64x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    goals: I16x2,
    distances: I32,
    values: I16,
    optimal: Bool,
    best: Bool,
    classes: I8,
) -> None:
    """Fill in values, optimal, best and classes of the moves of the rows; see `SolvedMoves`."""
    for row in rows:
        for role in range(num_moves.shape[1]):
            at = move_start[row, role]
            if num_moves[row, role] < num_joint[row]:  # another role chooses
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


@kernel
def _draw(
    role: int, rows: I32, keys: U64, plies: I32, num_moves: I32x2, move_start: I64x2, grades: I8, wants: I8
) -> I32:
    """Return for each row the index of a random move among those with the highest preference."""
    out = np.empty(rows.size, np.int32)
    for i in range(rows.size):
        begin = move_start[rows[i], role]
        most, count = most_wanted(begin, num_moves[rows[i], role], grades, wants)
        out[i] = nth_wanted(begin, grades, wants, most, below(keys[i], np.uint64(plies[i]), _WHICH, count))
    return out


@kernel
def _smallest(
    role: int,
    rows: I32,
    num_moves: I32x2,
    move_start: I64x2,
    succ_start: I64,
    successors: I32,
    grades: I8,
    wants: I8,
    keys: U64,
    hash_key: np.uint64,
) -> I32:
    """Return for each row, of the moves with the highest preference, the one to the position with the smallest hash.

    The other roles make their first moves. Of moves with the same hash, the first in action order is returned.
    """
    out = np.zeros(rows.size, np.int32)
    for i in range(rows.size):
        row = rows[i]
        begin, stride = move_start[row, role], joint_stride(row, role, num_moves)
        most, _ = most_wanted(begin, num_moves[row, role], grades, wants)
        smallest, is_first = np.uint64(0), True
        for move in range(num_moves[row, role]):
            if wants[grades[begin + move]] == most:
                hashed = mix(keys[successors[succ_start[row] + move * stride]], hash_key)
                if is_first or hashed < smallest:
                    out[i], smallest, is_first = move, hashed, False
    return out


@kernel
def _shares(role: int, rows: I32, num_moves: I32x2, move_start: I64x2, grades: I8, wants: I8) -> F64:
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


MOST_PLIES = 100  # maximum length of a best line if no role can force an end


@dataclass(frozen=True, slots=True)
class MoveValue:
    """A legal move, with the goals by role and the distance of the position after it, as in `Solution.look_up`."""

    role: str
    move: str
    goals: tuple[int, ...]
    distance: int
    best: bool


@dataclass(frozen=True, slots=True)
class BestLine:
    """Line of best joint moves from the initial position. Of several best moves, it has the first in action order.

    `end` says why the line ends: "terminal" for the end of the match, "repetition" if a position of the line occurs
    again (ignoring a left-out counter), "cut" if the line reaches its maximum length.
    """

    moves: tuple[tuple[str, ...], ...]
    end: Literal["terminal", "repetition", "cut"]


def moves_in(solved: SolvedMoves, row: int) -> list[MoveValue]:
    """Return the moves in a row of the graph; none if the match is over.

    These are the moves of the role that chooses there, or of all roles if no role has several moves.
    """
    graph = solved.graph
    solved.look(np.array([row], np.int32))
    counts = graph.num_moves[row].tolist()
    return [
        _move_value(solved, row, role, choice)
        for role, count in enumerate(counts)
        if count == max(counts)
        for choice in range(count)
    ]


def _move_value(solved: SolvedMoves, row: int, role: int, choice: int) -> MoveValue:
    """Return the value of one move of a role; all other roles make their first legal moves."""
    graph = solved.graph
    joint = np.zeros((1, graph.game.num_roles), np.int32)
    joint[0, role] = choice
    goals, distances = solved.position_values(graph.successor([row], joint))
    best = bool(solved.best[graph.move_start[row, role] + choice])
    move = _move_text(graph, row, role, choice)
    return MoveValue(graph.game.roles[role], move, tuple(goals[0].tolist()), int(distances[0]), best)


def best_line(solved: SolvedMoves, most_plies: int = MOST_PLIES) -> BestLine:
    """Return the best line. The line is never cut if a role can force an end."""
    graph, canonical, row = solved.graph, solved.solution.canonical, solved.graph.start
    moves: list[tuple[str, ...]] = []
    seen: set[bytes] = set()
    while not graph.terminal[row]:
        position = canonical.without_counter(graph.states[row]).tobytes()
        if position in seen:
            return BestLine(tuple(moves), "repetition")
        if len(moves) == most_plies and solved.solution.distance < 0:
            return BestLine(tuple(moves), "cut")
        seen.add(position)
        choices = _first_best(solved, row)
        moves.append(tuple(_move_text(graph, row, role, choice) for role, choice in enumerate(choices)))
        row = int(graph.successor([row], [choices])[0])
    return BestLine(tuple(moves), "terminal")


def _first_best(solved: SolvedMoves, row: int) -> list[int]:
    """Return for each role the index of its first best move."""
    solved.look(np.array([row], np.int32))
    starts, counts = solved.graph.move_start[row], solved.graph.num_moves[row]
    return [int(np.argmax(solved.best[i : i + count])) for i, count in zip(starts, counts, strict=True)]


def _move_text(graph: PositionGraph, row: int, role: int, choice: int) -> str:
    return graph.game.move_text(role, int(graph.legal(row, role)[choice]))


def regret(finished: Finished) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (lost points int64[n, roles], turns int64[n, roles]): the regret of each role in each finished match.

    A turn is a position in which the role is asked for a move. The loss of a turn is the value of the position for the
    role minus the value of its move, in goal points; it is 0 for an optimal move. Values ignore a step counter that the
    solution leaves out. Raise GameloreError as `solve` does.
    """
    graph = finished.graph
    solved = graph.memo(SolvedMoves)
    played = np.arange(finished.choices.shape[1]) < finished.plies[:, None]
    solved.look(graph.distinct(finished.rows[:, :-1][played]))
    lost = np.zeros((len(finished.plies), graph.game.num_roles), np.int64)
    turns = np.zeros_like(lost)
    moves = graph.acting, graph.num_moves, graph.move_start, solved.values
    _add_up(finished.rows, finished.choices, finished.plies, *moves, lost, turns)
    return lost, turns


class RegretCount:
    """Sum of the regret of all finished matches, for each role. Use it as `on_end=RegretCount(..).add`.

    lost   int64[roles], lost points
    turns  int64[roles], number of turns
    """

    def __init__(self, num_roles: int) -> None:
        self.lost = np.zeros(num_roles, np.int64)
        self.turns = np.zeros(num_roles, np.int64)

    def add(self, finished: Finished) -> None:
        """Add the regret of finished matches."""
        lost, turns = regret(finished)
        self.lost += lost.sum(axis=0)
        self.turns += turns.sum(axis=0)

    @property
    def per_move(self) -> list[float]:
        """The mean regret of a move, for each role, in goal points; 0 for a role that was never asked for a move."""
        means: list[float] = (self.lost / np.maximum(self.turns, 1)).tolist()
        return means


@kernel
def _add_up(
    rows: I32x2,
    choices: I32x3,
    plies: I32,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
    values: I16,
    lost: I64x2,
    turns: I64x2,
) -> None:
    """See `regret`."""
    for i in range(plies.size):
        for ply in range(plies[i]):
            row = rows[i, ply]
            for role in range(num_moves.shape[1]):
                if acting[row, role] or num_moves[row, role] > 1:
                    begin = move_start[row, role]
                    value = best = values[begin + choices[i, ply, role]]
                    for move in range(num_moves[row, role]):
                        best = max(best, values[begin + move])
                    lost[i, role] += best - value
                    turns[i, role] += 1
