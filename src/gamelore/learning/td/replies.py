"""A model of the opponents' replies, learned from the matches of a source and used in other games.

The opponents of a source game teach more than values: how they choose. What is the same in every game is the class of a
move (`MoveClasses`: WIN, LOSS, GIVES or NEUTRAL). The model has one weight for each class. A role chooses a move with a
probability proportional to the weight of its class (Luce 1959, Individual Choice Behavior). For example, an opponent
that takes every win has a high weight for WIN, and random moves have equal weights.

The matches are kept as counts: how often a role had so many moves of each class, and chose a move of this class. The
weights are fitted to the counts by maximum likelihood with the algorithm of Hunter (2004, MM algorithms for generalized
Bradley-Terry models).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...players.kernel import I8, I32, I64, I32x2, I32x3, I64x2, kernel
from ...players.lookahead import GIVES, LOSS, NEUTRAL, MoveClasses
from ..store.features import Replies, reply_rows

if TYPE_CHECKING:
    from ...players.player import Finished
    from ...players.position_graph import PositionGraph

NUM_CLASSES = 4
PRIOR = 1.0  # imagined choices of each class in favour of NEUTRAL, and as many against it
_TOLERANCE = 1e-9
_MAX_STEPS = 10_000


def count_replies(finished: Finished, role: int) -> list[Counter[tuple[int, ...]]]:
    """Count the decisions of the other roles in each match, see `Replies`. This classifies their moves."""
    graph, counts = finished.graph, [Counter[tuple[int, ...]]() for _ in finished.lanes]
    for other in range(graph.game.num_roles):
        if other == role:
            continue
        was_played = np.arange(finished.rows.shape[1]) < finished.plies[:, None]
        classes = classified(graph, finished.rows[was_played], other)
        moves = graph.num_moves, graph.move_start, classes.classes
        matches, met = _decisions(finished.rows, finished.choices, finished.plies, other, *moves)
        for match, key in zip(matches.tolist(), map(tuple, met.tolist()), strict=True):
            counts[match][key] += 1
    return counts


def classified(graph: PositionGraph, rows: NDArray[np.int32], role: int) -> MoveClasses:
    """Return the classes of moves, with those of the role in these rows computed where it has several moves."""
    classes = graph.memo(MoveClasses)
    graph.list_moves(rows)
    several = graph.distinct(rows[graph.num_moves[rows, role] > 1])
    inside = several < len(classes.is_classified)
    unknown = ~inside
    unknown[inside] = ~classes.is_classified[several[inside], role]
    if unknown.any():
        classes.classify(several[unknown], role)
    return classes


def fit(replies: Replies) -> NDArray[np.float64]:
    """Return the weight of each class of moves, float64[4], in units of the weight of NEUTRAL.

    The weights are those of highest likelihood, with PRIOR imagined choices between NEUTRAL and each other class, and
    as many with the other result. If a source never offered a LOSS (in tic-tac-toe, nobody can lose by their own move),
    LOSS has the weight of GIVES, and the other way round.
    """
    rows = np.array(reply_rows(replies), np.float64).reshape(-1, NUM_CLASSES + 2)
    offered, chosen, times = rows[:, :NUM_CLASSES], rows[:, NUM_CLASSES].astype(np.int64), rows[:, -1]
    wins = np.bincount(chosen, times, minlength=NUM_CLASSES)
    others = np.arange(NUM_CLASSES) != NEUTRAL
    wins = wins + np.where(others, PRIOR, PRIOR * others.sum())
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
    met = times @ offered > 0
    for one, other in ((LOSS, GIVES), (GIVES, LOSS)):
        if met[other] and not met[one]:
            weights[one] = weights[other]
    return weights


@kernel
def _decisions(
    rows: I32x2, choices: I32x3, plies: I32, role: int, num_moves: I32x2, move_start: I64x2, classes: I8
) -> tuple[I64, I64x2]:
    """Return the matches and the keys (see `Replies`) of all decisions of a role between several moves."""
    matches = np.empty(plies.sum(), np.int64)
    met = np.zeros((matches.size, 5), np.int64)
    size = 0
    for i in range(plies.size):
        for ply in range(plies[i]):
            row = rows[i, ply]
            if num_moves[row, role] > 1:
                begin = move_start[row, role]
                for move in range(num_moves[row, role]):
                    met[size, classes[begin + move]] += 1
                met[size, 4] = classes[begin + choices[i, ply, role]]
                matches[size] = i
                size += 1
    return matches[:size], met[:size]
