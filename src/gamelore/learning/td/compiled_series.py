"""Matches of a learner against an opponent in a compiled loop, which returns only for what must be computed in Python.

`run_lockstep` asks each player once in each round, which has a fixed cost of microseconds for each player. Here one
compiled call plays many matches, and the learner learns inside it. A lane waits when something is missing, such as the
successors of a position. When all lanes wait, or after MOST_PLIES, the call returns. `compute_missing` then computes
what is missing, for all lanes together, and the lanes try again from the position in which they stopped. They make the
same choices again, because random numbers depend only on the key of the match and on the ply.

The kernels for a choice, a ply and a match are those of `run_lockstep`, `Learner` and `Opponent`, so the results are
equal to the last bit. Two things are written twice, and a change of one must change the other: the order of steps in
`_play` and `_play_ply` is that of `run_lockstep` and `Lanes`, and the end of a match in `_learn` is that of
`Learner.end`. tests/learning/test_compiled_series.py compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import GameloreError
from ...matches.lockstep import EXPAND_UP_TO, GOING_ON, LaneArrays, Lanes, begin_match, end_of, log_ply
from ...matches.opponents import Opponent, OpponentArrays
from ...matches.opponents import choose_in_lane as opponent_choice
from ...players.kernel import (
    F64,
    I32,
    I64,
    Bool,
    F32x2,
    I16x2,
    inlined,
    kernel_without_refcounts,
    new_clock,
    read_clock,
)
from ...players.lookahead import MoveClasses
from ...players.player import CAP, STUCK, TERMINAL
from ...players.position_graph import GraphArrays, joint_number, must_choose
from .afterstates import UNMET, moves_alone, own_afterstate, write_trail
from .initial_values import Initial
from .learner import Learner
from .replies import add_decisions, decisions
from .update import (
    NUM_UNEXPANDED,
    NUM_UNMET,
    Lookup,
    Missing,
    choose_in_lane,
    enter,
    learn_in_lane,
    merged,
    note,
    note_unknown,
)

# of all lanes in one compiled call. This takes about a hundredth of a second in tic-tac-toe, so Ctrl-C is answered soon
MOST_PLIES = 1 << 17
_ROOM = 1 << 12  # for what is missing of each kind; what finds no room is found again by the next call
_FIRST_MOVES = 64
# the time is taken in every 16th match, because to read the clock takes as long as to choose some moves. It is not
# taken in the first match, which waits most
_TIMED, _FIRST_TIMED = 16, 1
_ALL, _CHOOSING, _LEARNING = range(3)  # indices of `_Timing.spent`


class Results(NamedTuple):
    """Results of the matches of all lanes.

    rewards      float32[lanes, matches], reward of the learner in each match, 0 to 100
    lengths      int16[lanes, matches], number of joint moves of each match
    num_stuck    int64[lanes], number of matches that ended because a role had no legal move
    num_capped   int64[lanes], number of matches that were cut off at the maximum number of plies
    num_missing  int64[lanes], number of matches that ended with no goal or several goals for the learner
    """

    rewards: F32x2
    lengths: I16x2
    num_stuck: I64
    num_capped: I64
    num_missing: I64


class _MissingInGraph(NamedTuple):
    """What must be computed before lanes can go on, besides what the learner needs, see `Missing`.

    counts      int64[6], see the indices below
    unlisted    rows whose moves must be listed, and that must be expanded if they have few joint moves
    rows        rows in which the moves of a role must be classified
    roles       the role for each of these rows
    lanes       lanes whose joint move has no successor in the graph
    successors  int32[lanes], the successor for each of these lanes once it is computed; -1 in all other lanes
    """

    counts: I64
    unlisted: I32
    rows: I32
    roles: I32
    lanes: I32
    successors: I32


# indices of `_MissingInGraph.counts`: the numbers of unlisted rows, of rows to classify, and of lanes without successor
_NUM_UNLISTED, _NUM_UNCLASSIFIED, _NUM_LANES = range(3)
# further indices: 1 if a log is too short; the number of new entries that the table needs room for; the number of moves
# that `_Memory.values` needs room for
_LOG, _ENTRIES, _MOVES = range(3, 6)


class _Replies(NamedTuple):
    """Decisions of the opponents in matches that ended, which are counted after the call, see replies.py.

    The arrays have room for the decisions of a longest match; they are empty if replies are not counted.
    """

    size: I64
    lanes: I64
    rows: I32
    roles: I32
    choices: I32


class _Memory(NamedTuple):
    """Working memory of the kernels for one lane, and two numbers in arrays of length 1.

    entries  number of entries in the table
    ended    number of matches that ended, but were not told to the caller
    """

    entries: I64
    ended: I64
    values: F64
    trail: I32
    turns: I32
    slots: I64


class _Timing(NamedTuple):
    """Time that timed matches spent.

    clock     int64[3], see `read_clock`
    is_timed  bool[1], whether the present match is timed
    spent     int64[3], nanoseconds: in all, on choices of the learner, and on learning
    """

    clock: I64
    is_timed: Bool
    spent: I64


class _Task(NamedTuple):
    """Everything that the kernels read and write."""

    graph: GraphArrays
    lanes: LaneArrays
    lookup: Lookup
    initial: Initial
    visits: I32
    siblings: Bool
    opponent: OpponentArrays
    results: Results
    missing: Missing
    missing_in_graph: _MissingInGraph
    replies: _Replies
    memory: _Memory
    timing: _Timing


class CompiledSeries:
    """The matches of all lanes between a learner and an opponent, which has all other roles.

    `results` has a column for each match number. With `replies`, the learner counts the opponent's replies, as
    `Learner.count` does.

    Raise GameloreError if the learner, the opponent or `results` are for fewer lanes or matches.
    """

    def __init__(
        self, learner: Learner, opponent: Opponent, lanes: Lanes, results: Results, *, replies: bool = False
    ) -> None:
        _check_sizes(learner, lanes, results)
        if lanes.active.size:
            for role in set(range(lanes.graph.game.num_roles)) - {learner.role}:
                opponent.begin(role, lanes.started(lanes.active))
        self._learner = learner
        self._opponent = opponent
        self._lanes = lanes
        self._results = results
        self._classes = lanes.graph.memo(MoveClasses)
        room = max(_ROOM, len(lanes.matches))
        unexpanded, unmet, unknown = np.empty((3, room), np.int32)
        self._missing = Missing(np.zeros(3, np.int64), unexpanded, unmet, np.empty(room, np.int64), unknown)
        unlisted, rows, roles, waiting = np.empty((4, room), np.int32)
        successors = np.full(len(lanes.matches), -1, np.int32)
        self._missing_in_graph = _MissingInGraph(np.zeros(6, np.int64), unlisted, rows, roles, waiting, successors)
        self._counts_replies = replies
        self._replies = _replies(0)
        self._values = np.empty(_FIRST_MOVES)
        self._ended = np.zeros(1, np.int64)
        self._timing = _Timing(new_clock(), np.zeros(1, np.bool_), np.zeros(3, np.int64))
        self._seconds = 0.0  # of compiled calls that are not divided among the parts of the series

    def play(self, on_ended: Callable[[int], None]) -> None:
        """Play all matches. Call `on_ended` with the number of matches that ended since its last call, if any did.

        After an interruption, a second call plays the remaining matches.
        """
        lanes = self._lanes
        try:
            self._count_replies()
            self._tell(on_ended)
            while lanes.active.size:
                self._call()
                lanes.refresh()
                self.compute_missing()
                self._tell(on_ended)
        finally:
            self._divide_time()

    def _tell(self, on_ended: Callable[[int], None]) -> None:
        ended = int(self._ended[0])
        if ended:
            self._ended[0] = 0
            on_ended(ended)

    def _call(self) -> None:
        """Play until all lanes wait or have ended, or for MOST_PLIES."""
        lanes, table = self._lanes, self._learner.table
        begin, task = perf_counter(), self._task()
        try:
            _play(self._learner.role, lanes.graph.start, lanes.max_plies, MOST_PLIES, lanes.active, task)
        finally:  # Ctrl-C may come as soon as the call has returned
            table.size = int(task.memory.entries[0])
            self._seconds += perf_counter() - begin

    def compute_missing(self) -> None:
        """Compute what was found missing."""
        self._count_replies()
        missing, others = self._missing, self._missing_in_graph
        unexpanded, unmet, unknown = missing.counts.tolist()
        unlisted, unclassified, num_lanes, is_log_short, entries, moves = others.counts.tolist()
        missing.counts[:] = others.counts[:] = 0
        self._open(others.unlisted[:unlisted])
        self._classify(others.rows[:unclassified], others.roles[:unclassified])
        self._compute_successors(others.lanes[:num_lanes])
        if is_log_short:
            self._lanes.widen()
        if moves:
            self._values = np.empty(2 * moves)
        self._prepare(
            missing.unexpanded[:unexpanded], missing.unmet[:unmet], missing.asking[:unknown], missing.unknown[:unknown]
        )
        if entries:
            begin = perf_counter()
            self._learner.table.reserve(entries)
            self._learner.seconds_learning += perf_counter() - begin

    def _count_replies(self) -> None:
        """Count the decisions of the opponents in the matches that ended."""
        replies, size = self._replies, int(self._replies.size[0])
        lanes, rows, roles, choices = (column[:size] for column in replies[1:])
        met = []
        for role in np.unique(roles).tolist():
            own = roles == role
            met.append(decisions(self._lanes.graph, role, lanes[own], rows[own], choices[own]))
        replies.size[0] = 0
        for counted in met:
            add_decisions(counted, self._learner.replies)

    def _open(self, rows: NDArray[np.int32]) -> None:
        graph = self._lanes.graph
        if rows.size:
            graph.list_moves(rows)
            graph.expand(rows[graph.num_joint[rows] <= EXPAND_UP_TO])

    def _classify(self, rows: NDArray[np.int32], roles: NDArray[np.int32]) -> None:
        for role in np.unique(roles).tolist():
            self._classes.classify(self._lanes.graph.distinct(rows[roles == role]), role)

    def _compute_successors(self, lanes: NDArray[np.int32]) -> None:
        """Compute successors in positions with so many joint moves that they are not expanded."""
        if lanes.size:
            running = self._lanes.arrays
            successors = self._lanes.graph.successor(running.rows[lanes], running.joint[lanes])
            self._missing_in_graph.successors[lanes] = successors

    def _prepare(
        self,
        unexpanded: NDArray[np.int32],
        unmet: NDArray[np.int32],
        asking: NDArray[np.int64],
        unknown: NDArray[np.int32],
    ) -> None:
        """Prepare the learner's choices and entries, see `Missing`."""
        learner = self._learner
        begin, looking = perf_counter(), learner.initial.seconds
        learner.graph.expand(unexpanded)
        if unmet.size:
            learner.representatives.meet(learner.role, unmet)
        learner.look_into(asking, unknown)
        learner.seconds_choosing += perf_counter() - begin - (learner.initial.seconds - looking)

    def _task(self) -> _Task:
        learner, lanes = self._learner, self._lanes.arrays
        width = lanes.row_log.shape[1]
        entries = np.array([learner.table.size], np.int64)
        longest = (width - 1) * self._lanes.graph.game.num_roles
        if self._counts_replies and self._replies.rows.size < longest:  # it is empty between two calls
            self._replies = _replies(max(longest, MOST_PLIES))
        trail, turns = np.empty((2, width), np.int32)
        memory = _Memory(entries, self._ended, self._values, trail, turns, np.empty(width, np.int64))
        return _Task(
            self._lanes.graph.arrays,
            lanes,
            learner.lookup,
            learner.initial.arrays,
            learner.table.visits,
            learner.siblings,
            self._opponent.arrays(self._classes),
            self._results,
            self._missing,
            self._missing_in_graph,
            self._replies,
            memory,
            self._timing,
        )

    def _divide_time(self) -> None:
        """Add the time of the compiled calls to that of the learner, in the proportions of the timed matches."""
        spent = self._timing.spent / max(1, self._timing.spent[_ALL])
        self._learner.seconds_choosing += float(spent[_CHOOSING]) * self._seconds
        self._learner.seconds_learning += float(spent[_LEARNING]) * self._seconds
        self._timing.spent[:], self._seconds = 0, 0.0


def _replies(room: int) -> _Replies:
    columns = np.empty((3, room), np.int32)
    return _Replies(np.zeros(1, np.int64), np.empty(room, np.int64), *columns)


def _check_sizes(learner: Learner, lanes: Lanes, results: Results) -> None:
    """Raise GameloreError if a kernel would write beyond arrays."""
    size, width = len(lanes.matches), int(lanes.arrays.limits.max(initial=0))
    (rows, columns), *others = (array.shape for array in results)
    is_wide = rows == size and columns >= width and others == [(rows, columns), (size,), (size,), (size,)]
    if len(learner.settings) < size or not is_wide:
        raise GameloreError(
            f"expected a learner and results for {size} lanes and {width} matches, got {len(learner.settings)} "
            f"settings and results of shape {rows} x {columns}; give a setting for each lane, and results of this shape"
        )


@inlined
def _now(timing: _Timing) -> int:
    """Return the time in nanoseconds; 0 in a match that is not timed."""
    return read_clock(timing.clock) if timing.is_timed[0] else 0


@inlined
def _learner_choice(role: int, lane: int, row: int, task: _Task) -> int:
    """Return the learner's choice, or -1 after noting what is missing."""
    graph, lanes, timing, moves = task.graph, task.lanes, task.timing, task.graph.num_moves[row, role]
    if moves > task.memory.values.size:
        counts = task.missing_in_graph.counts
        counts[_MOVES] = max(counts[_MOVES], moves)
        return -1
    begin = _now(timing)
    choice = choose_in_lane(
        role,
        lane,
        row,
        lanes.keys[lane, role],
        lanes.plies[lane],
        graph.num_moves,
        graph.move_start,
        graph.expanded,
        graph.succ_start,
        graph.successors,
        task.lookup,
        task.initial,
        task.memory.values,
        task.missing,
    )
    timing.spent[_CHOOSING] += _now(timing) - begin
    return choice


@inlined
def _opponent_choice(role: int, lane: int, row: int, task: _Task) -> int:
    """Return the opponent's choice, or -1 after noting that the moves must be classified."""
    graph, lanes, missing = task.graph, task.lanes, task.missing_in_graph
    choice = opponent_choice(
        role,
        lane,
        row,
        lanes.keys[lane, role],
        lanes.plies[lane],
        graph.num_moves,
        graph.move_start,
        graph.keys,
        task.opponent,
    )
    if choice < 0 and missing.counts[_NUM_UNCLASSIFIED] < missing.roles.size:
        missing.roles[missing.counts[_NUM_UNCLASSIFIED]] = role
        note(row, _NUM_UNCLASSIFIED, missing.rows, missing.counts)
    return choice


@inlined
def _choose_all(learner: int, lane: int, row: int, task: _Task) -> bool:
    """Choose for all roles. Return whether nothing is missing."""
    lanes = task.lanes
    for role in range(lanes.joint.shape[1]):
        if not must_choose(row, role, task.graph.acting, task.graph.num_moves):
            continue
        choice = _learner_choice(role, lane, row, task) if role == learner else _opponent_choice(role, lane, row, task)
        if choice < 0:
            return False
        lanes.joint[lane, role] = choice
    return True


@inlined
def _play_ply(learner: int, lane: int, task: _Task) -> bool:
    """Make the next joint move of a lane. Return whether nothing is missing."""
    graph, lanes, missing = task.graph, task.lanes, task.missing_in_graph
    row = lanes.rows[lane]
    if not graph.expanded[row] and (not graph.listed[row] or graph.num_joint[row] <= EXPAND_UP_TO):
        note(row, _NUM_UNLISTED, missing.unlisted, missing.counts)
        return False
    if lanes.plies[lane] == lanes.choice_log.shape[1]:
        missing.counts[_LOG] = 1
        return False
    if not _choose_all(learner, lane, row, task):
        return False
    after = missing.successors[lane]
    if graph.expanded[row]:
        after = graph.successors[graph.succ_start[row] + joint_number(row, lane, lanes.joint, graph.num_moves)]
    elif after < 0:
        note(lane, _NUM_LANES, missing.lanes, missing.counts)
        return False
    missing.successors[lane] = -1
    log_ply(lane, after, lanes.rows, lanes.plies, lanes.joint, lanes.row_log, lanes.choice_log)
    return True


@inlined
def _enter_one(lane: int, afterstate: np.int32, task: _Task) -> bool:
    """Make the entry of an afterstate that the lane uses. Return whether nothing is missing."""
    lookup = task.lookup
    fresh, is_known = enter(lane, afterstate, lookup.groups, lookup.numbers, task.initial, lookup.keys, lookup.q)
    task.memory.entries[0] += fresh
    if not is_known:
        note_unknown(lane, afterstate, task.missing)
    return is_known


@inlined
def _enter_merged(lane: int, own: np.int32, task: _Task) -> np.int32:
    """Make the entry that the lane uses for an afterstate, and return the afterstate of the entry.

    Return UNMET after noting what is missing.
    """
    afterstate = merged(lane, own, task.lookup)
    if afterstate == UNMET:
        note(own, NUM_UNMET, task.missing.unmet, task.missing.counts)
    elif not _enter_one(lane, afterstate, task):
        return np.int32(UNMET)
    return afterstate


@inlined
def _enter_siblings(role: int, lane: int, row: int, task: _Task) -> bool:
    """Make the entries of all moves of a turn. Return whether nothing is missing."""
    graph = task.graph
    alone = moves_alone(row, role, graph.num_moves)
    if alone and not graph.expanded[row]:
        note(row, NUM_UNEXPANDED, task.missing.unexpanded, task.missing.counts)
        return False
    is_complete = True
    for move in range(graph.num_moves[row, role]):
        own = own_afterstate(row, move, role, alone, graph.move_start, graph.succ_start, graph.successors)
        is_complete &= _enter_merged(lane, own, task) != UNMET
    return is_complete


@inlined
def _enter_all(role: int, lane: int, size: int, task: _Task) -> bool:
    """Make all entries that learning needs, and merge the afterstates of the trail.

    Return whether nothing is missing.
    """
    trail, turns = task.memory.trail, task.memory.turns
    needed, siblings = size, task.siblings[lane]
    for t in range(size):
        if siblings and turns[t] >= 0:
            needed += task.graph.num_moves[turns[t], role]
    if 2 * (task.memory.entries[0] + needed) > task.lookup.keys.size:
        task.missing_in_graph.counts[_ENTRIES] += needed
        return False
    is_complete = True
    for t in range(size):
        if siblings and turns[t] >= 0:
            is_complete &= _enter_siblings(role, lane, turns[t], task)
    for t in range(size):
        trail[t] = _enter_merged(lane, trail[t], task)
        is_complete &= trail[t] != UNMET
    return is_complete


@inlined
def _learn(role: int, lane: int, reward: float, task: _Task) -> bool:
    """Learn from the match of a lane. Return whether nothing was missing; otherwise nothing was learned."""
    graph, lanes, lookup, memory, timing = task.graph, task.lanes, task.lookup, task.memory, task.timing
    begin = _now(timing)
    moves = (graph.terminal, graph.acting, graph.num_moves, graph.move_start)
    size = write_trail(
        lane, lanes.plies[lane], lanes.row_log, lanes.choice_log, role, *moves, 0, memory.trail, memory.turns
    )
    is_complete = _enter_all(role, lane, size, task)
    if is_complete:
        entries = (lookup.numbers, lookup.keys, lookup.q, task.visits)
        learn_in_lane(lane, 0, size, memory.trail, reward, *entries, memory.slots)
    timing.spent[_LEARNING] += _now(timing) - begin
    return is_complete


@inlined
def _log_replies(learner: int, lane: int, task: _Task) -> None:
    """Log the decisions of the opponents in the match of a lane."""
    lanes, replies = task.lanes, task.replies
    for ply in range(lanes.plies[lane]):
        row = lanes.row_log[lane, ply]
        for role in range(lanes.joint.shape[1]):
            if role != learner and task.graph.num_moves[row, role] > 1:
                at = replies.size[0]
                replies.lanes[at], replies.rows[at], replies.roles[at] = lane, row, role
                replies.choices[at] = lanes.choice_log[lane, ply, role]
                replies.size[0] = at + 1


@inlined
def _end_match(role: int, lane: int, end: int, start: int, task: _Task) -> bool:
    """Learn from the match of a lane, and begin the next. Return whether nothing is missing."""
    lanes, results = task.lanes, task.results
    match, goal = lanes.matches[lane], task.graph.goals[lanes.rows[lane], role]
    reward = max(goal, 0) if end == TERMINAL else 0
    room, counts_replies = task.replies.rows.size, task.replies.rows.size > 0
    if counts_replies and room - task.replies.size[0] < lanes.plies[lane] * lanes.joint.shape[1]:
        return False
    if not _learn(role, lane, float(reward), task):
        return False
    if counts_replies:
        _log_replies(role, lane, task)
    results.rewards[lane, match] = reward
    results.lengths[lane, match] = lanes.plies[lane]
    results.num_stuck[lane] += end == STUCK
    results.num_capped[lane] += end == CAP
    results.num_missing[lane] += end == TERMINAL and goal < 0
    task.memory.ended[0] += 1
    lanes.matches[lane] += 1
    if lanes.matches[lane] < lanes.limits[lane]:
        begin_match(lane, start, lanes.matches, lanes.lane_keys, lanes.keys, lanes.rows, lanes.plies, lanes.row_log)
    return True


@kernel_without_refcounts
def _play(role: int, start: int, max_plies: int, most: int, active: I64, task: _Task) -> None:
    """Play on in the lanes, one after the other, until each waits or has ended, or for `most` plies."""
    graph, lanes, timing = task.graph, task.lanes, task.timing
    for lane in active:
        goes_on = True
        while goes_on and most > 0 and lanes.matches[lane] < lanes.limits[lane]:
            most -= 1
            timing.is_timed[0] = lanes.matches[lane] % _TIMED == _FIRST_TIMED
            begin = _now(timing)
            end = end_of(lanes.rows[lane], lanes.plies[lane], max_plies, graph.terminal, graph.listed, graph.stuck)
            goes_on = _play_ply(role, lane, task) if end == GOING_ON else _end_match(role, lane, end, start, task)
            timing.spent[_ALL] += _now(timing) - begin
