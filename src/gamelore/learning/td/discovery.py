"""Feature discovery: game trees below afterstates, as integers; count of all features of a game (B&S 2007, 3).

Feature discovery has the three steps of Figure 1 of the paper:

    expand     Follow every move for a fixed number of plies ("up to two further moves").
    classify   Mark each node as terminal or open. A terminal node has the learner's goal value.
    coalesce   Merge equal siblings, from the lowest level up. So a node is the set of its children.

Every node has an integer id:

    0                   an open position
    1 + outcome         a terminal position
    FIRST_SET + number  an expanded position: the number of the set of its children's ids

Sets of all depths have one common numbering, in the order in which they are met. The id of a position is computed once
for each depth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import GameloreError
from ...game.engines import HIGHEST_GOAL
from ...matches.lockstep import run_lockstep
from ...matches.opponents import Opponent, OpponentSettings
from ...players.kernel import I32, I64, Bool, I16x2, I32x2, kernel
from ...players.player import Finished
from ...players.position_graph import PositionGraph, joint_stride
from ...players.random_streams import extend, mix, stream
from ..store.features import OPEN, Equivalence, Tree, check_depth, outcomes_of, to_text
from .afterstates import Afterstates, grown, own_afterstates, pair_origins, role_number

if TYPE_CHECKING:
    from ...game.game import Game

Ids = NDArray[np.int32]

OPEN_ID = 0
FIRST_SET = 102  # the first id after the ids of terminal positions, which are 1 + goal values of 0 .. 100
UNKNOWN = -1
NO_ROOM, BAD_GOAL = -1, -2


class Sets:
    """Sets of ids. Set number s is pool[starts[s] : starts[s + 1]], ascending; `slots` is a hash table of the sets."""

    def __init__(self) -> None:
        self.counts = np.zeros(1, np.int64)  # [number of sets]; an array, so that the kernel can change it
        self.starts = np.zeros(65, np.int64)
        self.pool = np.empty(1024, np.int32)
        self.slots = np.full(128, UNKNOWN, np.int32)

    @property
    def num_sets(self) -> int:
        return int(self.counts[0])

    def members(self, number: int) -> Ids:
        """Return the ids in the set with this id."""
        begin, end = self.starts[number - FIRST_SET : number - FIRST_SET + 2]
        return self.pool[begin:end]

    def grow(self, largest: int) -> None:
        """Double the room for sets, and make room for at least one more set of `largest` members."""
        self.starts = np.concatenate([self.starts, np.zeros(len(self.starts), np.int64)])
        self.pool = np.concatenate([self.pool, np.empty(len(self.pool) + largest, np.int32)])
        self.slots = np.full(2 * len(self.slots), UNKNOWN, np.int32)
        _refill(self.num_sets, self.slots, self.starts, self.pool)


@kernel
def _find(members: I32, slots: I32, starts: I64, pool: I32) -> int:
    """Return the slot of a set. For an unknown set, return the empty slot where it belongs."""
    value = np.uint64(members.size)
    for member in members:
        value = mix(value, np.uint64(member))
    mask = slots.size - 1
    slot = np.int64(value) & mask
    while slots[slot] != UNKNOWN:
        begin, end = starts[slots[slot]], starts[slots[slot] + 1]
        same = end - begin == members.size
        for i in range(members.size):
            same = same and pool[begin + i] == members[i]
        if same:
            break
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def _refill(num_sets: int, slots: I32, starts: I64, pool: I32) -> None:
    for number in range(num_sets):
        slots[_find(pool[starts[number] : starts[number + 1]], slots, starts, pool)] = number


@kernel
def _add(members: I32, size: int, member: np.int32) -> int:
    """Insert a member into the ascending members[:size] unless it is there, and return the new size."""
    at = size
    while at > 0 and members[at - 1] > member:
        at -= 1
    if at > 0 and members[at - 1] == member:
        return size
    for i in range(size, at, -1):
        members[i] = members[i - 1]
    members[at] = member
    return size + 1


@kernel
def coalesce(
    first: int,
    rows: I32,
    choices: I32,
    role: int,
    lower: I32,
    leaves: I32,
    terminal: Bool,
    goals: I16x2,
    num_moves: I32x2,
    num_joint: I64,
    succ_start: I64,
    successors: I32,
    slots: I32,
    starts: I64,
    pool: I32,
    counts: I64,
    out: I32,
) -> tuple[int, int]:
    """Compute the set of the children's ids for each of rows[first:], and write its id to `out`.

    choices  int32[n], by row: -1 to include all children; else the index of a move of the role, to include only the
             children after that move
    lower    ids of positions one level below, by row; empty on the lowest level, where every open position has the id 0

    Returns (number of rows done, status); the status is 0, NO_ROOM or BAD_GOAL.
    """
    largest = 1
    for row in rows[first:]:
        largest = max(largest, num_joint[row])
    members = np.empty(largest, np.int32)
    for i in range(first, rows.size):
        row = rows[i]
        stride = joint_stride(row, role, num_moves)
        size = 0
        for joint in range(num_joint[row]):
            if choices[i] >= 0 and joint // stride % num_moves[row, role] != choices[i]:
                continue
            child = successors[succ_start[row] + joint]
            node = np.int32(OPEN_ID)
            if terminal[child]:
                goal = max(goals[child, role], np.int16(0))
                if goal >= leaves.size or leaves[goal] < 0:
                    return i, BAD_GOAL
                node = leaves[goal]
            elif lower.size:
                node = lower[child]
            size = _add(members, size, node)
        slot = _find(members[:size], slots, starts, pool)
        if slots[slot] == UNKNOWN:
            number, begin = counts[0], starts[counts[0]]
            if number + 2 > starts.size or begin + size > pool.size or 2 * number + 2 > slots.size:
                return i, NO_ROOM
            pool[begin : begin + size] = members[:size]
            starts[number + 1] = begin + size
            slots[slot] = number
            counts[0] = number + 1
        out[i] = FIRST_SET + slots[slot]
    return rows.size, 0


MAX_POSITIONS = 100_000
NUM_MATCHES = 1000


class FeatureSpace:
    """The trees below afterstates of one role, `depth` plies deep, as integers.

    `equivalence` replaces the outcomes of terminal positions inside a tree; None replaces nothing. Depth 0
    distinguishes only terminal afterstates and open afterstates. Where other roles move at the same time as the role,
    their moves are the first ply.
    """

    def __init__(self, graph: PositionGraph, role: int, depth: int = 2, equivalence: Equivalence | None = None) -> None:
        check_depth(depth)
        check_goals(graph.game, role, graph.game.goal_values[role])
        self.graph = graph
        self.role = role
        self.depth = depth
        self._leaves = _leaf_ids(equivalence)
        self._levels = [np.empty(0, np.int32) for _ in range(depth + 1)]  # level 0 stays empty
        self._sets = Sets()
        self._trees: dict[int, Tree] = {}

    @property
    def num_ids(self) -> int:
        """Upper bound of the ids; all ids are smaller."""
        return FIRST_SET + self._sets.num_sets

    def ids(self, afterstates: ArrayLike) -> Ids:
        """Return the id of the tree below each afterstate, int32[n]. A terminal afterstate has the id 1 + its goal."""
        wanted = np.ascontiguousarray(afterstates, np.int32)
        ids = np.empty(len(wanted), np.int32)
        rows = wanted >= 0
        ids[rows] = self._of_rows(wanted[rows])
        if not rows.all():
            ids[~rows] = self._of_pairs(wanted[~rows])
        return ids

    def tree(self, number: int) -> Tree:
        """Return the tree with this id."""
        if number < FIRST_SET:
            return number - 1 if number else OPEN
        if number not in self._trees:
            self._trees[number] = tuple(self.tree(member) for member in self._sets.members(number).tolist())
        return self._trees[number]

    def feature(self, number: int) -> str | None:
        """Return the feature with this id; None for a terminal afterstate or a tree without a terminal node."""
        tree = self.tree(number)
        return to_text(tree) if isinstance(tree, tuple) and outcomes_of(tree) else None

    def _of_rows(self, rows: Ids) -> Ids:
        if self.depth:
            self._fill(rows, self.depth)
        goals = np.maximum(self.graph.goals[rows, self.role], 0)
        check_goals(self.graph.game, self.role, goals)
        open_ids = self._levels[-1][rows] if self.depth else np.full(len(rows), OPEN_ID, np.int32)
        return np.where(self.graph.terminal[rows], 1 + goals, open_ids).astype(np.int32)

    def _of_pairs(self, pairs: Afterstates) -> Ids:
        if not self.depth:
            return np.full(len(pairs), OPEN_ID, np.int32)
        rows, choices = pair_origins(self.graph, self.role, pairs)
        self._fill(self.graph.children(rows), self.depth - 1)
        return self._coalesce(rows, choices, self.depth)

    def _fill(self, rows: Ids, depth: int) -> None:
        """Compute the ids of these rows at a level. Compute the ids of their children one level below first."""
        if depth == 0:
            return
        fresh = self.graph.distinct(rows[(self._level(depth)[rows] == UNKNOWN) & ~self.graph.terminal[rows]])
        if fresh.size:
            self._fill(self.graph.children(fresh), depth - 1)
            self._level(depth)[fresh] = self._coalesce(fresh, np.full(len(fresh), -1, np.int32), depth)

    def _level(self, depth: int) -> Ids:
        """Return the ids of a level by row, int32[rows or more]; empty for level 0. Missing ids are UNKNOWN."""
        if depth:
            self._levels[depth] = grown(self._levels[depth], self.graph.num_rows, UNKNOWN)
        return self._levels[depth]

    def _coalesce(self, rows: Ids, choices: Ids, depth: int) -> Ids:
        """Return the ids of the sets below positions or pairs, see `coalesce`."""
        graph, sets, ids, done = self.graph, self._sets, np.empty(len(rows), np.int32), 0
        below = (self._level(depth - 1), self._leaves, graph.terminal, graph.goals)
        moves = (graph.num_moves, graph.num_joint, graph.succ_start, graph.successors)
        while done < len(rows):
            kept = (sets.slots, sets.starts, sets.pool, sets.counts)
            done, status = coalesce(done, rows, choices, self.role, *below, *moves, *kept, ids)
            if status == BAD_GOAL:
                raise _bad_goal(self)
            if status == NO_ROOM:
                sets.grow(int(graph.num_joint.max()))
        return ids


def feature_space(
    graph: PositionGraph, role: int, depth: int = 2, equivalence: Equivalence | None = None
) -> FeatureSpace:
    """Return the feature space with these parameters. It is made once for each graph, and stored with the graph."""
    spaces = graph.memo(_Spaces).spaces
    pairs = None if equivalence is None or equivalence.is_identity else equivalence
    key = (role, depth, pairs)
    if key not in spaces:
        spaces[key] = FeatureSpace(graph, role, depth, pairs)
    return spaces[key]


class _Spaces:
    def __init__(self, graph: PositionGraph) -> None:
        self.spaces: dict[tuple[int, int, Equivalence | None], FeatureSpace] = {}


@dataclass(frozen=True)
class FeatureCensus:
    """The features of a game for one role, each with the number of afterstates that match it.

    num_positions    number of examined positions; terminal positions do not count
    num_afterstates  number of the role's distinct afterstates in these positions
    complete         whether all reachable positions were examined
    method           description of the examined positions in words
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
    graph: PositionGraph | None = None,
) -> FeatureCensus:
    """Count the features of all reachable positions, or of a sample of positions.

    The sample is used if a game has more than `limit` reachable positions. It contains the positions of random matches.

    graph: an existing graph of the game, to reuse its positions. Only positions that are reachable from the start are
    counted.
    """
    graph = graph or PositionGraph(game)
    number = role_number(game, role)
    rows, complete, method = _reachable(graph, limit), True, "all reachable positions"
    if rows is None:
        rows, complete = _met(graph, num_matches, seed), False
        method = f"the positions of {num_matches} random matches"
    graph.expand(rows)
    turns = rows[graph.acting[rows, number] | (graph.num_moves[rows, number] > 1)]
    own = np.unique(
        own_afterstates(turns, number, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
    )
    space = feature_space(graph, number, depth)
    named = ((space.feature(tree), count) for tree, count in Counter(space.ids(own).tolist()).items())
    features = dict(sorted((text, count) for text, count in named if text))
    return FeatureCensus(features, len(rows), len(own), complete, method)


def _reachable(graph: PositionGraph, limit: int) -> Ids | None:
    """Return all reachable positions that are not terminal, int32[n]; None for more than `limit` positions."""
    seen = np.zeros(1024, np.bool_)
    frontier = np.array([graph.start], np.int32)
    levels = [frontier]
    total = 1
    while frontier.size:
        frontier = graph.children(frontier)
        if len(seen) < graph.num_rows:
            seen = np.concatenate([seen, np.zeros(graph.num_rows, np.bool_)])
        frontier = frontier[~seen[frontier]]
        seen[frontier] = True
        levels.append(frontier)
        total += len(frontier)
        if total > limit:
            return None
    return np.concatenate(levels)


def _met(graph: PositionGraph, num_matches: int, seed: int) -> Ids:
    """Return the positions of random matches that are not terminal, int32[n], ascending."""
    rows: set[int] = set()

    def note(finished: Finished) -> None:
        for line, plies in zip(finished.rows, finished.plies, strict=True):
            rows.update(line[: plies + 1].tolist())

    keys = extend(stream(seed, "features"), np.arange(num_matches))
    seats = [Opponent(OpponentSettings("random"))] * graph.game.num_roles
    run_lockstep(graph, seats, keys, 1, on_end=note)
    met = np.array(sorted(rows), np.int32)
    return met[~graph.terminal[met]]


def _leaf_ids(equivalence: Equivalence | None) -> Ids:
    """Return the id of each goal value, int32[101]; UNKNOWN for values outside the equivalence.

    A missing goal counts 0. It has the id of the worst outcome.
    """
    if equivalence is None:
        return np.arange(1, FIRST_SET, dtype=np.int32)
    leaves = np.full(101, UNKNOWN, np.int32)
    for target, source in equivalence.pairs:
        leaves[target] = 1 + source
    if 0 not in dict(equivalence.pairs) and equivalence.pairs:
        leaves[0] = 1 + equivalence.pairs[0][1]
    return leaves


def check_goals(game: Game, role: int, goals: ArrayLike) -> None:
    """Raise GameloreError if one of these goals is above 100. No feature and no class of afterstates stands for it."""
    highest = np.max(goals, initial=0)
    if highest > HIGHEST_GOAL:
        raise GameloreError(
            f"expected goals from 0 to {HIGHEST_GOAL} for {game.roles[role]} in {game.name}, got {highest}; scale the "
            f"goals of all roles to the range from 0 to {HIGHEST_GOAL}"
        )


def _bad_goal(space: FeatureSpace) -> GameloreError:
    goals = [goal for goal in range(101) if space._leaves[goal] >= 0]
    return GameloreError(
        f"expected one of {len(goals)} goal values from {goals[0]} to {goals[-1]} for "
        f"{space.graph.game.roles[space.role]} in {space.graph.game.name}, got another; give an equivalence for it, or "
        f"scale the goals of all roles to the range from 0 to {HIGHEST_GOAL}"
    )
