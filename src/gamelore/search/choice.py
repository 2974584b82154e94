"""Choice of a move: what a tree, or several trees, know about the moves of a role, and which move is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, nan, sqrt

import numpy as np

from ..game.engines import HIGHEST_GOAL
from ..players.random_streams import WHICH, extend, uniform
from .settings import GrowthSettings
from .tree import LISTED, MOVER, NOBODY, PROVED, STAGE, VISITS, Tree
from .value import Prior, upper_bound

_MANY_PLIES = 1 << 20
_RARE = 0.1  # of the share of the most frequent move; rarer moves are not made


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What a search knows about a move of the position at its root.

    visits     number of walks through the move
    mean       mean value of these walks and of the virtual visits of the prior, 0 to 100; nan without walks. Values
               are goals; but with three and more roles, an end at which nobody gets anything counts 5, see proofs.py
    low, high  proved bounds on the goal that the move leads to
    plies      number of plies to the end if the values of all roles are proved, else None
    is_closed  whether the search has shown that another move is at least as good
    weight     weight in the mean strategy, where several roles choose at the same time
    value      weighted mean of `mean` and of the minimax value, 0 to 100: what walks maximise, without the exploration;
               nan without walks
    expected   the same, but also before the first walk if there are virtual visits
    """

    index: int
    visits: int
    mean: float
    low: int
    high: int
    plies: int | None
    is_closed: bool
    weight: float = 0.0
    value: float = nan
    expected: float = nan

    @property
    def is_proved(self) -> bool:
        return self.low == self.high


def reports_of(tree: Tree, node: int, role: int, minimax: float = 0.0) -> list[MoveReport]:
    """Return what a tree knows about the moves of a role in a node.

    `minimax` is the weight of minimax values. There are none where several roles choose.
    """
    arrays = tree.arrays
    minimax = 0.0 if arrays.nodes[node, MOVER] == NOBODY else minimax
    first, count = tree.span(node, role)
    counted = int(arrays.visits[first : first + count].sum())  # none for a role without a choice
    virtual = max(counted - int(arrays.nodes[node, VISITS]), 0) // max(count, 1)  # of each move, see value.py
    reports = []
    for index, move in enumerate(range(first, first + count)):
        child = int(arrays.child[move])
        low, high = 0, int(tree.tops[role])
        if child >= 0:
            low, high = int(arrays.low[child, role]), int(arrays.high[child, role])
        visits = int(arrays.visits[move]) - virtual
        mean = HIGHEST_GOAL * float(arrays.sums[move] / arrays.visits[move]) if arrays.visits[move] else nan
        expected = (1 - minimax) * mean + minimax * HIGHEST_GOAL * float(arrays.guesses[move])
        mean, value = (mean, expected) if visits else (nan, nan)
        is_decided = child >= 0 and arrays.nodes[child, STAGE] == PROVED
        plies = int(arrays.plies[child]) + 1 if is_decided else None
        is_closed, weight = bool(arrays.closed[move]), float(arrays.weights[move])
        reports.append(MoveReport(index, visits, mean, low, high, plies, is_closed, weight, value, expected))
    return reports


def together(reports: Sequence[Sequence[MoveReport]]) -> list[MoveReport]:
    """Add up what several trees know about the moves of a role."""
    moves = [_sum(own) for own in zip(*reports, strict=True)]
    assured = max(move.low for move in moves)
    keepers = [move for move in moves if move.low == assured]
    if all(move.is_closed for move in keepers):  # each tree kept another one open
        keeper = max(keepers, key=lambda move: (move.high, move.visits))
        moves[keeper.index] = replace(keeper, is_closed=False)
    return moves


def _sum(reports: Sequence[MoveReport]) -> MoveReport:
    """Add up what several trees know about a move."""
    visits = sum(report.visits for report in reports)
    plies = [report.plies for report in reports if report.plies is not None]
    return replace(
        reports[0],
        visits=visits,
        mean=sum(report.visits * report.mean for report in reports if report.visits) / visits if visits else nan,
        low=max(report.low for report in reports),
        high=min(report.high for report in reports),
        plies=min(plies, default=None),
        is_closed=any(report.is_closed for report in reports),
        weight=sum(report.weight for report in reports),
        value=sum(report.visits * report.value for report in reports if report.visits) / visits if visits else nan,
        expected=sum(report.expected for report in reports) / len(reports),
    )


def best_of(moves: list[MoveReport], noise: np.uint64, width: float | None = None) -> int:
    """Return the index of the best of the moves of a role; see `rank` for `width`.

    If the value of the best move is proved, this is the move that reaches it fastest, or, if the role gets half of the
    highest goal or less, the move that takes longest, in which the others may err. Otherwise it is the move with the
    highest rank among those that are not closed, and whose value, or proved bound, reaches what another move gets for
    sure. Among equal moves, `noise` decides.
    """
    assured = max(move.low for move in moves)
    drawn = extend(noise, np.arange(len(moves)))
    if all(move.high <= assured for move in moves):
        return max(moves, key=lambda move: (move.low == assured, *_pace(move, assured), drawn[move.index])).index
    rivals = [move for move in moves if not move.is_closed and (move.low == assured or not move.value <= assured)]
    walks = sum(move.visits for move in moves)
    best = max(rivals or moves, key=lambda move: (not move.is_closed, rank(move, walks, width), drawn[move.index]))
    return best.index


def rank(move: MoveReport, walks: int, width: float | None) -> float:
    """Return by what a move that is not proved to be the best is compared, in a position with so many walks.

    This is a lower bound of its value: value - width * sqrt(ln walks / visits), or what is proved. Without a width, it
    is the number of visits. A move that had the best value for a long time, before the search saw an answer to it,
    still has the most visits when its value is worse than that of another move. The lower bounds of bad moves are below
    0, which says something about the order of the moves, unlike the proved bound 0 that every move has.
    """
    if width is None:
        return float(move.visits)
    bound = move.value - HIGHEST_GOAL * width * sqrt(log(walks) / move.visits) if move.visits else -inf
    return max(float(move.low), bound) if move.low else bound


def strategy_of(moves: Sequence[MoveReport], mixing: float) -> list[float]:
    """Return the mixed strategy of a role in a position where several roles choose: a probability for each move.

    This is the mean strategy of the walks without the share `mixing` of uniformly random moves. Rare moves are left
    out, whose share is mostly due to the beginning of the search (thresholding; Ganzfried, Sandholm & Waugh 2012).
    """
    uniform_weight = mixing * sum(move.weight for move in moves) / len(moves)
    shares = np.array([max(0.0, move.weight - uniform_weight) for move in moves])
    if not shares.any():
        shares = np.ones(len(moves))
    shares[shares < _RARE * shares.max()] = 0.0
    return list((shares / shares.sum()).tolist())


def choose(
    tree: Tree,
    node: int,
    moves: list[MoveReport],
    settings: GrowthSettings,
    noise: np.uint64,
    width: float | None = None,
) -> int:
    """Return the index of the best move of a role in a node of a tree, see `best_of`.

    Where several roles choose at the same time, it is the move with the most visits, or drawn from `strategy_of`.
    """
    if mixes(tree, node, settings):
        return _drawn(strategy_of(moves, settings.mixing), noise)
    return best_of(moves, noise, width)


def chosen(tree: Tree, root: int, role: int, growth: GrowthSettings, prior: Prior, noise: np.uint64) -> int:
    """Return the index of the move of a role that the player gamelore makes after a search below a root of a tree."""
    bound = upper_bound(growth, prior, tree.assumption)
    moves = reports_of(tree, root, role, bound.minimax)
    return choose(tree, root, moves, growth, noise, width_in(tree, root, growth, bound.exploration))


def width_in(tree: Tree, node: int, settings: GrowthSettings, exploration: float) -> float | None:
    """Return the width of the lower bounds by which a player chooses among the moves of a node, see `rank`."""
    is_joint = tree.arrays.nodes[node, MOVER] == NOBODY
    return None if is_joint or not settings.caution else settings.caution * exploration


def mixes(tree: Tree, node: int, settings: GrowthSettings) -> bool:
    """Return whether moves in a node are drawn from a mixed strategy: several roles choose, and nothing is proved."""
    row = tree.arrays.nodes[node]
    return bool(settings.joint != "uct" and row[STAGE] == LISTED and row[MOVER] == NOBODY)


def _drawn(strategy: Sequence[float], noise: np.uint64) -> int:
    """Draw the index of a move from a mixed strategy; `noise` decides."""
    index = int(np.searchsorted(np.cumsum(strategy), uniform(noise, 0, WHICH), side="right"))
    return index if index < len(strategy) else max(range(len(strategy)), key=lambda move: strategy[move])


def _pace(move: MoveReport, assured: int) -> tuple[int, int]:
    """Return how fast a proved move reaches its end, the better the higher; slow is better for half a win or less."""
    if 2 * assured <= HIGHEST_GOAL:
        return (move.plies or 0, move.visits)
    return (-move.plies if move.plies is not None else -_MANY_PLIES, move.visits)
