"""How a solved game goes under best play: what each first move is worth, and one line of best moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from .perfect import SolvedMoves

if TYPE_CHECKING:
    from .graph import Graph

MOST_PLIES = 100  # of a line that need not end


@dataclass(frozen=True, slots=True)
class MoveValue:
    """A legal move: the values by role of the position after it, its distance as `Solution.look_up` has it, and whether
    it is best."""

    role: str
    move: str
    goals: tuple[int, ...]
    distance: int
    best: bool


@dataclass(frozen=True, slots=True)
class BestLine:
    """Joint moves from the first position on, each role's best; of equals the first in action order.

    end: "terminal", "repetition" of an earlier position of the line (a counter that is left out does not tell them
    apart), or "cut" after MOST_PLIES.
    """

    moves: tuple[tuple[str, ...], ...]
    end: Literal["terminal", "repetition", "cut"]


def first_moves(solved: SolvedMoves) -> list[MoveValue]:
    """The first position's legal moves, of the role that chooses there (of all, where none has a choice)."""
    graph, row = solved.graph, solved.graph.start
    solved.look(np.array([row], np.int32))
    counts = graph.num_moves[row].tolist()
    return [
        _move_value(solved, row, role, choice)
        for role, count in enumerate(counts)
        if count == max(counts)
        for choice in range(count)
    ]


def _move_value(solved: SolvedMoves, row: int, role: int, choice: int) -> MoveValue:
    graph = solved.graph
    joint = np.zeros((1, graph.game.num_roles), np.int32)
    joint[0, role] = choice
    goals, distances = solved.position_values(graph.successor([row], joint))
    best = bool(solved.best[graph.move_start[row, role] + choice])
    return MoveValue(
        graph.game.roles[role], _move_text(graph, row, role, choice), tuple(goals[0].tolist()), int(distances[0]), best
    )


def best_line(solved: SolvedMoves, most_plies: int = MOST_PLIES) -> BestLine:
    """See `BestLine`. A line that gains something goes to its end."""
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
    """For each role its first best move, as a position within its legal ones."""
    solved.look(np.array([row], np.int32))
    places = zip(solved.graph.move_start[row].tolist(), solved.graph.num_moves[row].tolist(), strict=True)
    return [int(np.argmax(solved.best[begin : begin + count])) for begin, count in places]


def _move_text(graph: Graph, row: int, role: int, choice: int) -> str:
    return graph.game.move_text(role, int(graph.legal(row, role)[choice]))
