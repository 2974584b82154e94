"""Finding features: the game tree below an afterstate, expanded, classified, coalesced (B&S 2007, section 3, Figure 1).

    expand     every move, a fixed number of plies down ("up to two further moves")
    classify   each node as terminal, with the learner's goal value, or not
    coalesce   from the lowest level up, equal siblings become one; so a node is the set of its children

Sets are numbered as they are met, whatever their depth, and a node is then one integer: 0 for an open position,
1 + outcome for a terminal one, FIRST_SET + number for a set. Every level of every position is worked out once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..errors import GameloreError
from .afterstates import Afterstates, own_afterstates, pair_origins, role_number
from .coalesce import BAD_GOAL, FIRST_SET, NO_ROOM, OPEN_ID, UNKNOWN, Ids, Sets, coalesce
from .features import OPEN, Equivalence, Tree, outcomes_of, to_text

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..rules.game import Game

MAX_POSITIONS = 100_000
NUM_MATCHES = 1000


class FeatureSpace:
    """The trees below afterstates of one role, `depth` plies deep, as integers.

    `equivalence` says which outcome a terminal position inside a tree counts as; None: as itself. Depth 0 tells
    terminal afterstates from others. Where others move at the same time as the role, their answer is the first ply.
    """

    def __init__(self, graph: Graph, role: int, depth: int = 2, equivalence: Equivalence | None = None) -> None:
        if depth < 0:
            raise GameloreError(f"expected a depth of at least 0, got {depth}; depth counts plies")
        self.graph = graph
        self.role = role
        self.depth = depth
        self._leaves = _leaf_ids(equivalence)
        self._levels = [np.empty(0, np.int32) for _ in range(depth + 1)]  # level 0 stays empty: nothing to keep
        self._sets = Sets()
        self._trees: dict[int, Tree] = {}

    @property
    def num_ids(self) -> int:
        """Ids are smaller than this."""
        return FIRST_SET + self._sets.num_sets

    def ids(self, afterstates: ArrayLike) -> Ids:
        """int32[n]: the tree below each afterstate. A terminal one is 1 + its own goal, whatever it counts as."""
        wanted = np.ascontiguousarray(afterstates, np.int32)
        ids = np.empty(len(wanted), np.int32)
        rows = wanted >= 0
        ids[rows] = self._of_rows(wanted[rows])
        if not rows.all():
            ids[~rows] = self._of_pairs(wanted[~rows])
        return ids

    def tree(self, number: int) -> Tree:
        """The tree with this id."""
        if number < FIRST_SET:
            return number - 1 if number else OPEN
        if number not in self._trees:
            self._trees[number] = tuple(self.tree(member) for member in self._sets.members(number).tolist())
        return self._trees[number]

    def feature(self, number: int) -> str | None:
        """The feature with this id; None for a terminal afterstate and for a tree without a terminal node."""
        tree = self.tree(number)
        return to_text(tree) if isinstance(tree, tuple) and outcomes_of(tree) else None

    def _of_rows(self, rows: Ids) -> Ids:
        if self.depth:
            self._fill(rows, self.depth)
        goals = np.maximum(self.graph.goals[rows, self.role], 0)
        if goals.size and goals.max() > 100:
            raise _bad_goal(self)
        open_ids = self._levels[-1][rows] if self.depth else np.full(len(rows), OPEN_ID, np.int32)
        return np.where(self.graph.terminal[rows], 1 + goals, open_ids).astype(np.int32)

    def _of_pairs(self, pairs: Afterstates) -> Ids:
        if not self.depth:
            return np.full(len(pairs), OPEN_ID, np.int32)
        rows, choices = pair_origins(self.graph, self.role, pairs)
        self._fill(self.graph.children(rows), self.depth - 1)
        return self._coalesce(rows, choices, self.depth)

    def _fill(self, rows: Ids, depth: int) -> None:
        """Makes the ids of these rows known at a level, after those of their children one level down."""
        if depth == 0:
            return
        fresh = self.graph.distinct(rows[(self._level(depth)[rows] == UNKNOWN) & ~self.graph.terminal[rows]])
        if fresh.size:
            self._fill(self.graph.children(fresh), depth - 1)
            every = np.full(len(fresh), -1, np.int32)
            found = self._coalesce(fresh, every, depth)
            self._level(depth)[fresh] = found

    def _level(self, depth: int) -> Ids:
        """int32[rows or more], -1 where not known."""
        level = self._levels[depth]
        if depth and len(level) < self.graph.num_rows:
            longer = np.full(2 * self.graph.num_rows, UNKNOWN, np.int32)
            longer[: len(level)] = level
            self._levels[depth] = longer
        return self._levels[depth]

    def _coalesce(self, rows: Ids, choices: Ids, depth: int) -> Ids:
        graph, found, done = self.graph, np.empty(len(rows), np.int32), 0
        while done < len(rows):
            done, status = coalesce(
                done,
                rows,
                choices,
                self.role,
                self._level(depth - 1),
                self._leaves,
                graph.terminal,
                graph.goals,
                graph.num_moves,
                graph.num_joint,
                graph.succ_start,
                graph.successors,
                self._sets.slots,
                self._sets.starts,
                self._sets.pool,
                self._sets.counts,
                found,
            )
            if status == BAD_GOAL:
                raise _bad_goal(self)
            if status == NO_ROOM:
                self._sets.grow(int(graph.num_joint.max()))
        return found


def feature_space(graph: Graph, role: int, depth: int = 2, equivalence: Equivalence | None = None) -> FeatureSpace:
    """The space of this graph that has these parameters; it lives as long as the graph does."""
    spaces = graph.memo(_Spaces).spaces
    pairs = None if equivalence is None or equivalence.is_identity else equivalence
    key = (role, depth, pairs)
    if key not in spaces:
        spaces[key] = FeatureSpace(graph, role, depth, pairs)
    return spaces[key]


class _Spaces:
    def __init__(self, graph: Graph) -> None:
        self.spaces: dict[tuple[int, int, Equivalence | None], FeatureSpace] = {}


@dataclass(frozen=True)
class FeatureCensus:
    """The features of a game for one role, each with the number of afterstates that match it.

    `method` says which positions were looked at; `complete` is True where these are all that can be reached.
    `num_positions` counts those that are not terminal, `num_afterstates` the role's different afterstates in them.
    """

    features: dict[str, int]
    num_positions: int
    num_afterstates: int
    complete: bool
    method: str


def reachable_features(
    game: Game,
    role: int | str,
    *,
    depth: int = 2,
    limit: int = MAX_POSITIONS,
    num_matches: int = NUM_MATCHES,
    seed: int = 0,
    graph: Graph | None = None,
) -> FeatureCensus:
    """The features over all reachable positions; with more than `limit`, over those of random matches.

    `graph` may bring positions that are worked out already; it counts only what can be reached from the start.
    """
    from ..play.graph import Graph

    graph = graph or Graph(game)
    number = role_number(game, role)
    reached = _reachable(graph, limit)
    complete = reached is not None
    rows = reached if reached is not None else _met(graph, num_matches, seed)
    own = _own_afterstates(graph, number, rows)
    space = feature_space(graph, number, depth)
    counts = Counter(space.ids(own).tolist())
    named = ((space.feature(found), count) for found, count in counts.items())
    features = {text: count for text, count in sorted((text, count) for text, count in named if text)}
    method = "all reachable positions" if complete else f"the positions of {num_matches} random matches"
    return FeatureCensus(features, len(rows), len(own), complete, method)


def _reachable(graph: Graph, limit: int) -> Ids | None:
    """Every position that can be reached, terminal ones excepted; None where there are more than `limit`."""
    seen = np.zeros(1024, np.bool_)
    frontier = np.array([graph.start], np.int32)
    found = [frontier]
    total = 1
    while frontier.size:
        frontier = graph.children(frontier)
        if len(seen) < graph.num_rows:
            seen = np.concatenate([seen, np.zeros(graph.num_rows, np.bool_)])
        frontier = frontier[~seen[frontier]]
        seen[frontier] = True
        found.append(frontier)
        total += len(frontier)
        if total > limit:
            return None
    return np.concatenate(found)


def _met(graph: Graph, num_matches: int, seed: int) -> Ids:
    """The positions, terminal ones excepted, of random matches."""
    from ..play.lockstep import run_lockstep
    from ..play.player import Finished, Opponent, OpponentSettings
    from ..play.streams import extend, stream

    rows: set[int] = set()

    def note(finished: Finished) -> None:
        for line, plies in zip(finished.rows, finished.plies, strict=True):
            rows.update(line[: plies + 1].tolist())

    keys = extend(stream(seed, "features"), np.arange(num_matches))
    seats = [Opponent(OpponentSettings("random"))] * graph.game.num_roles
    run_lockstep(graph, seats, keys, 1, on_end=note)
    met = np.array(sorted(rows), np.int32)
    return met[~graph.terminal[met]]


def _own_afterstates(graph: Graph, role: int, rows: Ids) -> Afterstates:
    """Every distinct afterstate of the role's turns in these rows, ascending."""
    graph.expand(rows)
    turns = rows[graph.acting[rows, role] | (graph.num_moves[rows, role] > 1)]
    found = own_afterstates(turns, role, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
    return np.unique(found)


def _leaf_ids(equivalence: Equivalence | None) -> Ids:
    """int32[101]: goal value -> id; -1 where the equivalence says nothing. A missing goal, which counts 0, is as bad
    as the worst."""
    if equivalence is None:
        return np.arange(1, FIRST_SET, dtype=np.int32)
    leaves = np.full(101, UNKNOWN, np.int32)
    for target, source in equivalence.pairs:
        leaves[target] = 1 + source
    if 0 not in dict(equivalence.pairs) and equivalence.pairs:
        leaves[0] = 1 + equivalence.pairs[0][1]
    return leaves


def _bad_goal(space: FeatureSpace) -> GameloreError:
    known = [goal for goal in range(101) if space._leaves[goal] >= 0]
    return GameloreError(
        f"expected goal values among {known[0]} .. {known[-1]} ({len(known)} values) for "
        f"{space.graph.game.roles[space.role]} in {space.graph.game.name}, got another; give an equivalence for it"
    )
