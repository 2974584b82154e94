"""A model of the opponents' replies, learned from the matches of a source and used in other games.

The opponents of a source game teach more than values: how they choose. What is the same in every game is the class of a
move (`MoveClasses`: WIN, LOSS, GIVES or NEUTRAL). The model has one weight for each class. A role chooses a move with a
probability proportional to the weight of its class (Luce 1959, Individual Choice Behavior). For example, an opponent
that takes every win has a high weight for WIN, and random moves have equal weights.

The matches are kept as counts: how often a role had so many moves of each class, and chose a move of this class. The
weights are fitted to the counts by maximum likelihood with the algorithm of Hunter (2004, MM algorithms for generalized
Bradley-Terry models). Where it is slow, because the opponents never chose some class, Newton's method goes on.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import GameloreError
from ...players.kernel import I8, I32, I32x2, I64x2, kernel
from ...players.lookahead import GIVES, LOSS, NEUTRAL, MoveClasses
from ..store.features import Replies, reply_rows

if TYPE_CHECKING:
    from ...players.player import Finished
    from ...players.position_graph import PositionGraph

NUM_CLASSES = 4
PRIOR = 1.0  # imagined choices of each class in favour of NEUTRAL, and as many against it
_TOLERANCE = 1e-9
_MAX_STEPS = 10_000  # of Hunter's algorithm; Newton's method then needs a few steps
_MAX_NEWTON_STEPS = 1_000


def count_replies(finished: Finished, role: int) -> list[Counter[tuple[int, ...]]]:
    """Count the decisions of the other roles in each match, see `Replies`. This classifies their moves."""
    graph, counts = finished.graph, [Counter[tuple[int, ...]]() for _ in finished.lanes]
    matches, plies = np.nonzero(np.arange(finished.choices.shape[1]) < finished.plies[:, None])
    rows = finished.rows[matches, plies]
    graph.list_moves(rows)
    for other in range(graph.game.num_roles):
        several = graph.num_moves[rows, other] > 1
        if other != role and several.any():
            choices = finished.choices[matches[several], plies[several], other]
            add_decisions(decisions(graph, other, matches[several], rows[several], choices), counts)
    return counts


def decisions(
    graph: PositionGraph, role: int, numbers: NDArray[np.int64], rows: NDArray[np.int32], choices: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return decisions of a role between several moves, int64[any, 7]: a number, a key (see `Replies`), and the times.

    The role chose choices[i] in rows[i]; numbers[i] says in which match or lane.
    """
    classes = classified(graph, rows, role).classes
    keys = _keys(rows, choices, role, graph.num_moves, graph.move_start, classes)
    distinct, times = np.unique(np.column_stack((numbers, keys)), axis=0, return_counts=True)
    return np.column_stack((distinct, times))


def add_decisions(counted: NDArray[np.int64], counts: list[Counter[tuple[int, ...]]]) -> None:
    """Add the result of `decisions` to the replies of each number."""
    for number, *key, times in counted.tolist():
        counts[number][tuple(key)] += times


def classified(graph: PositionGraph, rows: NDArray[np.int32], role: int) -> MoveClasses:
    """Return the classes of moves, with those of the role in these rows computed where it has several moves."""
    classes = graph.memo(MoveClasses)
    graph.list_moves(rows)
    classes.complete(rows[graph.num_moves[rows, role] > 1], role)
    return classes


def fit(replies: Replies) -> NDArray[np.float64]:
    """Return the weight of each class of moves, float64[4], in units of the weight of NEUTRAL.

    The weights are those of highest likelihood, with PRIOR imagined choices between NEUTRAL and each other class, and
    as many with the other result. If a source never offered a LOSS (in tic-tac-toe, nobody can lose by their own move),
    LOSS has the weight of GIVES, and the other way round.
    """
    rows = np.array(reply_rows(replies), np.float64).reshape(-1, NUM_CLASSES + 2)
    offered, chosen, times = rows[:, :NUM_CLASSES], rows[:, NUM_CLASSES].astype(np.int64), rows[:, -1]
    others = np.arange(NUM_CLASSES) != NEUTRAL
    imagined_wins = np.where(others, PRIOR, PRIOR * others.sum())
    wins = np.asarray(np.bincount(chosen, times, minlength=NUM_CLASSES) + imagined_wins, np.float64)
    weights = np.ones(NUM_CLASSES)
    for _ in range(_MAX_STEPS):
        expected = (times / (offered @ weights)) @ offered
        imagined = np.where(others, 2 * PRIOR / (weights + weights[NEUTRAL]), 0.0)
        imagined[NEUTRAL] = imagined.sum()
        after = wins / (expected + imagined)
        after /= after[NEUTRAL]
        change = np.abs(np.log(after / weights)).max()
        weights = after
        if change < _TOLERANCE:
            break
    else:
        weights = _by_newton(offered, times, wins, weights)
    is_offered = times @ offered > 0
    for missing, similar in ((LOSS, GIVES), (GIVES, LOSS)):
        if is_offered[similar] and not is_offered[missing]:
            weights[missing] = weights[similar]
    return weights


def _by_newton(
    offered: NDArray[np.float64], times: NDArray[np.float64], wins: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weights of highest likelihood, beginning with these weights.

    The likelihood is concave in the logarithms of the weights. That of NEUTRAL remains 0.
    """
    free = np.flatnonzero(np.arange(NUM_CLASSES) != NEUTRAL)
    logs = np.log(weights)
    for _ in range(_MAX_NEWTON_STEPS):
        shares = offered * np.exp(logs)
        shares /= shares.sum(axis=1, keepdims=True)
        imagined = 1.0 / (1.0 + np.exp(-logs[free]))
        gradient = wins[free] - times @ shares[:, free] - 2 * PRIOR * imagined
        curvature = np.diag(times @ shares[:, free] + 2 * PRIOR * imagined * (1.0 - imagined))
        curvature -= (shares[:, free].T * times) @ shares[:, free]
        step = np.linalg.solve(curvature, gradient)
        logs[free] += step / max(1.0, np.abs(step).max())  # a longer step may lead away
        if np.abs(step).max() < _TOLERANCE:
            return np.exp(logs)
    raise GameloreError(
        f"expected the weights of the replies to converge in {_MAX_NEWTON_STEPS} steps, got a change of "
        f"{np.abs(step).max():g} in the last one; learn the source with other settings, or set control to minimax"
    )


@kernel
def _keys(rows: I32, choices: I32, role: int, num_moves: I32x2, move_start: I64x2, classes: I8) -> I64x2:
    """Return the key (see `Replies`) of each decision of a role."""
    keys = np.zeros((rows.size, NUM_CLASSES + 1), np.int64)
    for i in range(rows.size):
        begin = move_start[rows[i], role]
        for move in range(num_moves[rows[i], role]):
            keys[i, classes[begin + move]] += 1
        keys[i, NUM_CLASSES] = classes[begin + choices[i]]
    return keys
