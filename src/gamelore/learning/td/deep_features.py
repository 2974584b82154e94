"""Initial values from features several turns below an afterstate, weighted by a model of the opponents' replies.

Banerjee & Stone (2007) match the tree directly below an afterstate with a feature. A tree that is deeper by two plies
matches hardly ever, and they propose to build deeper features from those below (section 6). This module does so: the
value of an afterstate is computed from the values of the role's next afterstates, which are computed in the same way,
down to afterstates `turns` turns below, whose values are those of their features. A turn consists of the replies of the
other roles and of the role's next move:

    replies    the mean over the replies, with the probabilities of the model (replies.py); or the minimum over them, if
               there is no model
    own move   the maximum over the role's moves; with the probability of the learner's random moves, the mean. Without
               these, many moves would seem to be equally good, although a random move after them is dangerous
    terminal   the role's goal, at any level
    stuck      the default

In a position in which roles move at the same time, the mean is over the moves of the other roles, for each move of the
role. If the others make several moves in a row, they are followed for as many plies as the game has roles; below, the
value is the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...players.kernel import F64, I8, I32, I64, Bool, Boolx2, F64x2, I16x2, I32x2, I64x2, kernel
from ...players.lookahead import MoveClasses
from ...players.position_graph import joint_stride, longer
from .afterstates import Afterstates, grown, moves_alone, own_afterstates, pair_origins
from .discovery import UNKNOWN, FeatureSpace
from .replies import NUM_CLASSES, classified

if TYPE_CHECKING:
    from ...players.position_graph import PositionGraph


class DeepFeatures:
    """Values of afterstates by the features `turns` turns below them, for several learners of one role.

    space  the features at the leaves; with a space of depth 0, every leaf has the default value
    model  whether the replies are weighted by a model; False for the minimum over the replies

    The graph is expanded, and the features of leaves are determined, only as far as values are asked for, and once for
    all learners. The values themselves are computed anew in every call of `of`.
    """

    def __init__(self, graph: PositionGraph, role: int, turns: int, space: FeatureSpace, model: bool) -> None:
        self._graph = graph
        self._role = role
        self._turns = turns
        self._space = space
        self._model = model
        self._translated: list[Mapping[str, float]] = []
        self._defaults, self._epsilons = np.empty(0), np.empty(0)
        self._weights = np.empty((0, NUM_CLASSES))
        self._worth = np.empty((0, 0))  # by learner and id of the space
        self._features: list[str] = []  # by id of the space
        self._row_ids = np.empty(0, np.int32)
        self._pair_ids = np.empty(0, np.int32)
        self._seen: dict[tuple[int, int], NDArray[np.bool_]] = {}

    def add(self, translated: Mapping[str, float], default: float, epsilon: float, weights: NDArray[np.float64]) -> int:
        """Add a learner and return its number.

        translated  value of each feature, in rewards of this game
        default     value of a leaf without a known feature
        epsilon     probability of the learner's random moves
        weights     weights of the classes of replies, float64[4], see `replies.fit`
        """
        self._translated.append(translated)
        self._defaults, self._epsilons = np.append(self._defaults, default), np.append(self._epsilons, epsilon)
        self._weights = np.vstack([self._weights, weights])
        self._worth = np.empty((len(self._translated), 0))  # filled anew by `_fill_worth`
        return len(self._translated) - 1

    def of(self, learners: NDArray[np.int32], afterstates: Afterstates) -> NDArray[np.float64]:
        """Return the value of afterstates[i] for the learner learners[i], float64[n]."""
        graph, role, turns = self._graph, self._role, self._turns
        rows, choices = afterstates.copy(), np.full(len(afterstates), -1, np.int32)
        pairs = afterstates < 0
        if pairs.any():
            rows[pairs], choices[pairs] = pair_origins(graph, role, afterstates[pairs])
            self._follow(rows[pairs], turns, graph.game.num_roles)
        self._prepare(rows[~pairs], turns, graph.game.num_roles)
        self._fill_worth()
        self._row_ids = grown(self._row_ids, graph.num_rows, UNKNOWN)
        self._pair_ids = grown(self._pair_ids, len(graph.move_actions), UNKNOWN)
        learned = self._defaults, self._epsilons, self._weights, self._worth, self._row_ids, self._pair_ids
        positions = graph.terminal, graph.goals, graph.acting, graph.num_moves, graph.move_start
        joint = graph.num_joint, graph.succ_start, graph.successors
        classes = graph.memo(MoveClasses).classes
        return _search(learners, rows, choices, role, turns, self._model, *learned, *positions, *joint, classes)

    def _prepare(self, rows: NDArray[np.int32], turns: int, plies: int) -> None:
        """Expand the positions below these rows as far as their values depend on them.

        turns  number of own moves to the leaves
        plies  maximum number of plies of the others before the next of these moves
        """
        graph, role = self._graph, self._role
        seen = self._seen_at(turns, plies)
        fresh = graph.distinct(rows[~seen[rows] & ~graph.terminal[rows]])
        if not fresh.size:
            return
        graph.list_moves(fresh)
        own = graph.acting[fresh, role] | (graph.num_moves[fresh, role] > 1)
        if plies:
            self._follow(fresh[~own], turns, plies - 1)
        if turns > 1:
            self._follow(fresh[own], turns - 1, graph.game.num_roles)
        else:
            self._name_leaves(fresh[own])
        self._seen_at(turns, plies)[fresh] = True  # only now, because an interruption may come before

    def _follow(self, rows: NDArray[np.int32], turns: int, plies: int) -> None:
        """Prepare the positions after all moves in these rows."""
        if not rows.size:
            return
        if self._model:
            for other in range(self._graph.game.num_roles):
                if other != self._role:
                    classified(self._graph, rows, other)
        self._prepare(self._graph.children(rows), turns, plies)

    def _name_leaves(self, positions: NDArray[np.int32]) -> None:
        """Determine the features of the afterstates of all own moves in these positions, unless they are stuck."""
        graph, role = self._graph, self._role
        positions = positions[graph.num_joint[positions] > 0]
        graph.expand(positions[graph.num_joint[positions] == graph.num_moves[positions, role]])
        own = own_afterstates(positions, role, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
        rows, pairs = np.unique(own[own >= 0]), own[own < 0]
        self._row_ids = grown(self._row_ids, graph.num_rows, UNKNOWN)
        rows = rows[~graph.terminal[rows] & (self._row_ids[rows] == UNKNOWN)]
        ids = self._space.ids(rows)
        self._row_ids = grown(self._row_ids, graph.num_rows, UNKNOWN)
        self._row_ids[rows] = ids
        if pairs.size:
            ids = self._space.ids(pairs)
            self._pair_ids = grown(self._pair_ids, len(graph.move_actions), UNKNOWN)
            self._pair_ids[~pairs] = ids

    def _seen_at(self, turns: int, plies: int) -> NDArray[np.bool_]:
        """Return which rows are prepared, bool[rows or more]."""
        seen = self._seen.get((turns, plies), np.zeros(0, np.bool_))
        if len(seen) < self._graph.num_rows:
            seen = self._seen[turns, plies] = longer(seen, 2 * self._graph.num_rows)
        return seen

    def _fill_worth(self) -> None:
        """Compute the values of the ids that are new since the last call."""
        num_done, num_ids = self._worth.shape[1], self._space.num_ids
        self._features += [self._space.feature(number) or "" for number in range(len(self._features), num_ids)]
        if num_done < num_ids:
            fresh = self._features[num_done:]
            added = [
                [translated.get(feature, default) for feature in fresh]
                for translated, default in zip(self._translated, self._defaults.tolist(), strict=True)
            ]
            self._worth = np.ascontiguousarray(np.hstack([self._worth, np.array(added)]))


_NOT_YET = np.nan  # marks a value that depends on positions further below


@kernel
def _value_at_once(
    row: int,
    role: int,
    learner: int,
    turns: int,
    plies: int,
    defaults: F64,
    epsilons: F64,
    worth: F64x2,
    row_ids: I32,
    pair_ids: I32,
    terminal: Bool,
    goals: I16x2,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
) -> float:
    """Return the value of a position that has no positions below it, or only leaves. Return _NOT_YET for others."""
    if terminal[row]:
        return float(max(goals[row, role], 0))
    if num_joint[row] == 0:
        return float(defaults[learner])
    if not (acting[row, role] or num_moves[row, role] > 1):
        return _NOT_YET if plies > 0 else float(defaults[learner])
    if turns > 1:
        return _NOT_YET
    best, total, alone = -np.inf, 0.0, moves_alone(row, role, num_moves)
    for move in range(num_moves[row, role]):
        if not alone:
            value = worth[learner, pair_ids[move_start[row, role] + move]]
        else:
            leaf = successors[succ_start[row] + move]
            value = float(max(goals[leaf, role], 0)) if terminal[leaf] else worth[learner, row_ids[leaf]]
        best, total = max(best, value), total + value
    return float((1.0 - epsilons[learner]) * best + epsilons[learner] * total / num_moves[row, role])


@kernel
def _joint_of(row: int, role: int, number: int, num_moves: I32x2, num_joint: I64) -> int:
    """Return the joint move with this number, where the role's moves change slowest."""
    own, stride = int(num_moves[row, role]), joint_stride(row, role, num_moves)
    others = num_joint[row] // own
    move, rest = number // others, number % others
    return int(rest // stride * stride * own + move * stride + rest % stride)


@kernel
def _weight_of(
    row: int, role: int, joint: int, learner: int, num_moves: I32x2, move_start: I64x2, classes: I8, weights: F64x2
) -> float:
    """Return the product of the weights of the moves of the other roles in a joint move."""
    weight, rest = 1.0, joint
    for other in range(num_moves.shape[1] - 1, -1, -1):
        choice = rest % num_moves[row, other]
        rest //= num_moves[row, other]
        if other != role and num_moves[row, other] > 1:
            weight *= weights[learner, classes[move_start[row, other] + choice]]
    return weight


@kernel
def _search(
    learners: I32,
    rows: I32,
    choices: I32,
    role: int,
    turns: int,
    model: bool,
    defaults: F64,
    epsilons: F64,
    weights: F64x2,
    worth: F64x2,
    row_ids: I32,
    pair_ids: I32,
    terminal: Bool,
    goals: I16x2,
    acting: Boolx2,
    num_moves: I32x2,
    move_start: I64x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    classes: I8,
) -> F64:
    """Return the values of rows[i], or of the pairs rows[i] and choices[i], for the learners learners[i].

    Depth first with an explicit stack, because numba cannot load a recursive function from its cache. A frame is a
    position with the moves that follow: numbers from `at` to `end` of joint moves, see `_joint_of`.
    """
    roles = num_moves.shape[1]
    size = turns * (roles + 1) + 2
    path, left, plies = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    at, end = np.empty(size, np.int64), np.empty(size, np.int64)
    best, everything, total, mass = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    out = np.empty(rows.size)
    for i in range(rows.size):
        learner, depth = int(learners[i]), -1
        row, turns_left, plies_left, choice = int(rows[i]), turns, roles, int(choices[i])
        while True:
            value = _NOT_YET
            if choice < 0:
                value = _value_at_once(
                    row, role, learner, turns_left, plies_left, defaults, epsilons, worth, row_ids, pair_ids,
                    terminal, goals, acting, num_moves, move_start, num_joint, succ_start, successors,
                )  # fmt: skip
            if np.isnan(value):  # descend
                depth += 1
                own_turn = acting[row, role] or num_moves[row, role] > 1
                path[depth], at[depth], end[depth] = row, 0, num_joint[row]
                left[depth], plies[depth] = turns_left, plies_left - 1
                if own_turn:
                    left[depth], plies[depth] = turns_left - 1, roles
                if choice >= 0:  # only the moves of the others are free
                    others = num_joint[row] // num_moves[row, role]
                    at[depth], end[depth] = choice * others, (choice + 1) * others
                    left[depth], choice = turns_left, -1
                best[depth], everything[depth], total[depth], mass[depth] = -np.inf, 0.0, 0.0, 0.0
            else:  # take the value into account in the positions above, as far as it completes them
                while depth >= 0:
                    above = path[depth]
                    joint = _joint_of(above, role, at[depth], num_moves, num_joint)
                    if model:
                        weight = _weight_of(above, role, joint, learner, num_moves, move_start, classes, weights)
                        total[depth] += weight * value
                        mass[depth] += weight
                    elif mass[depth] == 0.0 or value < total[depth]:
                        total[depth], mass[depth] = value, 1.0
                    at[depth] += 1
                    others = num_joint[above] // num_moves[above, role]
                    if at[depth] % others == 0:  # that was the last reply to an own move
                        reached = total[depth] / mass[depth]
                        best[depth], everything[depth] = max(best[depth], reached), everything[depth] + reached
                        total[depth], mass[depth] = 0.0, 0.0
                    if at[depth] < end[depth]:
                        break
                    num_own = num_moves[above, role]
                    if depth == 0 and choices[i] >= 0:
                        num_own = 1
                    value = (1.0 - epsilons[learner]) * best[depth] + epsilons[learner] * everything[depth] / num_own
                    depth -= 1
                if depth < 0:
                    out[i] = value
                    break
            joint = _joint_of(path[depth], role, at[depth], num_moves, num_joint)
            row, turns_left, plies_left = successors[succ_start[path[depth]] + joint], left[depth], plies[depth]
    return out
