"""Exact expected results of matches between players whose moves depend on the position alone.

Nothing is sampled: the probability of standing in each position is followed ply by ply, equal positions taken together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .kernel import kernel
from .match import MAX_PLIES

if TYPE_CHECKING:
    from .graph import Graph


class Memoryless(Protocol):
    """Says how it moves: Perfect, Reasonable and XReasonable do, and `Uniform`, the random player."""

    def distribution(self, graph: Graph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """float64[total]: the probabilities of the role's moves, one of the rows after the other."""
        ...


class Uniform:
    """The random player's probabilities."""

    def distribution(self, graph: Graph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """See `Memoryless`."""
        graph.list_moves(rows)
        counts = graph.num_moves[rows, role]
        return np.repeat(1.0 / np.maximum(counts, 1), counts)


@dataclass(frozen=True, slots=True)
class Expected:
    """Probabilities of the results of one match.

    goals       goals by role, None where the rules give none -> how probable
    unfinished  that it is cut off at the cap on plies, or stuck
    plies       the mean length
    """

    goals: dict[tuple[int | None, ...], float]
    unfinished: float
    plies: float

    def better(self, role: int) -> float:
        """The probability that the role gets more than each other one ("power" where it is the one looked at)."""
        return sum(p for goals, p in self.goals.items() if _rank(goals, role) > 0)

    def not_worse(self, role: int) -> float:
        """The probability that the role gets as much as each other one, or more ("reliability")."""
        return sum(p for goals, p in self.goals.items() if _rank(goals, role) >= 0)

    def mean(self, role: int) -> float:
        """The mean goal; one that is missing counts 0."""
        return sum(p * (goals[role] or 0) for goals, p in self.goals.items())


def _rank(goals: Sequence[int | None], role: int) -> int:
    """Above 0 where the role has more than the best other one, 0 for as much."""
    return (goals[role] or 0) - max((goal or 0 for other, goal in enumerate(goals) if other != role), default=0)


def expected(graph: Graph, seats: Sequence[Memoryless], max_plies: int = MAX_PLIES) -> Expected:
    """What comes of a match between these players, one for each role, from the first position.

    Looks at every position that they can come to, ply by ply. Raises GameloreError for a wrong number of players.
    """
    if len(seats) != graph.game.num_roles:
        raise GameloreError(
            f"expected {graph.game.num_roles} players, one for each of {', '.join(graph.game.roles)}, got {len(seats)}"
        )
    goals: defaultdict[tuple[int | None, ...], float] = defaultdict(float)
    rows, mass = np.array([graph.start], np.int32), np.ones(1)
    unfinished = plies = 0.0
    for ply in range(max_plies + 1):
        for row, probability in _ended(graph, rows, mass):
            goals[tuple(goal if goal >= 0 else None for goal in graph.goals[row].tolist())] += probability
        graph.expand(rows)
        going = graph.num_joint[rows] > 0
        unfinished += float(mass[~going & ~graph.terminal[rows]].sum())
        rows, mass = rows[going], mass[going]
        if ply == max_plies or not len(rows):
            break
        plies += float(mass.sum())
        rows, mass = _next_ply(graph, seats, rows, mass)
    return Expected(dict(goals), unfinished + float(mass.sum()), plies)


def _ended(graph: Graph, rows: NDArray[np.int32], mass: NDArray[np.float64]) -> list[tuple[int, float]]:
    over = graph.terminal[rows]
    return list(zip(rows[over].tolist(), mass[over].tolist(), strict=True))


def _next_ply(
    graph: Graph, seats: Sequence[Memoryless], rows: NDArray[np.int32], mass: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """(the positions after these, each once; their probabilities)."""
    shares = mass.repeat(graph.num_joint[rows])
    for role, seat in enumerate(seats):
        own = seat.distribution(graph, rows, role)
        _multiply(rows, role, graph.num_moves, graph.num_joint, own, shares)
    children = np.concatenate([_successors_of(graph, row) for row in rows.tolist()])
    after, place = np.unique(children, return_inverse=True)
    reached = np.zeros(len(after))
    np.add.at(reached, place.ravel(), shares)
    return after[reached > 0], reached[reached > 0]


def _successors_of(graph: Graph, row: int) -> NDArray[np.int32]:
    begin = graph.succ_start[row]
    return graph.successors[begin : begin + graph.num_joint[row]]


@kernel("void(int32[::1], int64, int32[:, ::1], int64[::1], float64[::1], float64[::1])")
def _multiply(
    rows: NDArray[np.int32],
    role: int,
    num_moves: NDArray[np.int32],
    num_joint: NDArray[np.int64],
    own: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> None:
    """Multiplies the share of each joint move by the probability of the role's part in it."""
    at, move_at = 0, 0
    for row in rows:
        stride = 1
        for other in range(role + 1, num_moves.shape[1]):
            stride *= num_moves[row, other]
        for joint in range(num_joint[row]):
            shares[at] *= own[move_at + joint // stride % num_moves[row, role]]
            at += 1
        move_at += num_moves[row, role]
