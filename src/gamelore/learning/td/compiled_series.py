"""Matches of a learner against an opponent in a compiled loop, which returns only for what must be computed in Python.

`run_lockstep` asks each player once in each round, which has a fixed cost of microseconds for each player. Here one
compiled call plays many matches, and the learner learns inside it. A lane waits when something is missing, such as the
successors of a position. When all lanes wait, or after MOST_PLIES, the call returns. `compute_missing` then computes
what is missing, for all lanes together, and the lanes try again from the position in which they stopped. They make the
same choices again, because random numbers depend only on the key of the match and on the ply.

The kernels for a choice, a ply and a match are those of `run_lockstep`, `Learner` and `Opponent`. So the results are
equal to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from ...matches.lockstep import EXPAND_UP_TO, GOING_ON, LaneArrays, Lanes, begin_match, end_of, log_ply
from ...matches.opponents import Opponent, OpponentArrays
from ...matches.opponents import choose_in_lane as opponent_choice
from ...players.kernel import F64, I32, I64, Bool, F32x2, I16x2, inlined, kernel_without_refcounts
from ...players.lookahead import MoveClasses
from ...players.player import CAP, STUCK, TERMINAL
from ...players.position_graph import GraphArrays, joint_number, must_choose
from .afterstates import UNMET, moves_alone, own_afterstate, write_trail
from .initial_values import Initial
from .learner import Learner
from .update import (
    NUM_UNEXPANDED,
    NUM_UNKNOWN,
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

# of all lanes in one compiled call, which takes about a tenth of a second: so Ctrl-C is answered soon
MOST_PLIES = 1 << 17
_ROOM = 1 << 12  # for what is missing of each kind; what finds no room is found again by the next call
_FIRST_MOVES = 64
_TIMED = 16  # the time is taken in every 16th match, because to read the clock takes as long as to choose some moves
_CLOCK = getattr(time, "CLOCK_MONOTONIC", -1)

# further indices of `Missing.counts`, and of `Clock.spent`
_FRESH, _UNCLASSIFIED, _SUCCESSORS, _ENTRIES, _WIDTH, _MOVES, _ENDED, _COUNTS = range(NUM_UNKNOWN + 1, NUM_UNKNOWN + 9)
_ALL, _CHOOSING, _LEARNING = range(3)


class Results(NamedTuple):
    """Results of the matches by lane; `learning.td.series.Series` has the same arrays.

    rewards  float32[lanes, matches]
    lengths  int16[lanes, matches]
    stuck    int64[lanes], number of matches that ended because a role had no legal move
    capped   int64[lanes], number of matches that were cut off at the maximum number of plies
    missing  int64[lanes], number of matches that ended with no goal or several goals for the learner
    """

    rewards: F32x2
    lengths: I16x2
    stuck: I64
    capped: I64
    missing: I64


class _MissingInGraph(NamedTuple):
    """What is missing for players and positions other than the learner, see `Missing`.

    fresh       rows whose moves must be listed, and that must be expanded if they have few joint moves
    rows        rows in which the moves of a role must be classified
    roles       the role for each of these rows
    jumps       lanes whose joint move has no successor in the graph
    successors  int32[lanes], the successor for each of these lanes once it is computed; -1 in all other lanes
    """

    fresh: I32
    rows: I32
    roles: I32
    jumps: I32
    successors: I32


class _Memory(NamedTuple):
    """The number of entries in the table, and working memory of the kernels for one lane."""

    entries: I64
    values: F64
    trail: I32
    turns: I32
    slots: I64


class _Clock(NamedTuple):
    """Nanoseconds that timed matches spent: in all, on choices of the learner, and on learning."""

    reading: I64
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
    rest: _MissingInGraph
    memory: _Memory
    clock: _Clock


class CompiledSeries:
    """The matches of all lanes between a learner and an opponent, which has all other roles.

    The lanes must begin with match 0, because `results` has a column for each match number.
    """

    def __init__(self, learner: Learner, opponent: Opponent, lanes: Lanes, results: Results) -> None:
        self._learner = learner
        self._opponent = opponent
        self._lanes = lanes
        self._results = results
        self._classes = lanes.graph.memo(MoveClasses)
        room = max(_ROOM, len(lanes.matches))
        unexpanded, unmet, spaces, unknown = np.empty((4, room), np.int32)
        self._missing = Missing(np.zeros(_COUNTS, np.int64), unexpanded, unmet, spaces, unknown)
        fresh, rows, roles, jumps = np.empty((4, room), np.int32)
        self._rest = _MissingInGraph(fresh, rows, roles, jumps, np.full(len(lanes.matches), -1, np.int32))
        self._values = np.empty(_FIRST_MOVES)
        self._clock = _Clock(np.zeros(2, np.int64), np.zeros(3, np.int64))
        self._seconds = 0.0  # of all compiled calls

    def play(self, on_ended: Callable[[int], None]) -> None:
        """Play all matches. Call `on_ended` with the number of matches that ended since its last call, if any did."""
        lanes, counts = self._lanes, self._missing.counts
        try:
            while lanes.active.size:
                self._call()
                lanes.refresh()
                ended = int(counts[_ENDED])
                self.compute_missing()
                if ended:
                    on_ended(ended)
        finally:
            self._divide_time()

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
        counts, missing, rest = self._missing.counts, self._missing, self._rest
        sizes = counts.tolist()
        counts[:] = 0
        self._open(rest.fresh[: sizes[_FRESH]])
        self._classify(rest.rows[: sizes[_UNCLASSIFIED]], rest.roles[: sizes[_UNCLASSIFIED]])
        self._compute_successors(rest.jumps[: sizes[_SUCCESSORS]])
        if sizes[_WIDTH]:
            self._lanes.widen()
        if sizes[_MOVES]:
            self._values = np.empty(2 * sizes[_MOVES])
        self._prepare(
            missing.unexpanded[: sizes[NUM_UNEXPANDED]],
            missing.unmet[: sizes[NUM_UNMET]],
            missing.spaces[: sizes[NUM_UNKNOWN]],
            missing.unknown[: sizes[NUM_UNKNOWN]],
        )
        if sizes[_ENTRIES]:
            begin = perf_counter()
            self._learner.table.reserve(sizes[_ENTRIES])
            self._learner.seconds_learning += perf_counter() - begin

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
            self._rest.successors[lanes] = self._lanes.graph.successor(running.rows[lanes], running.joint[lanes])

    def _prepare(
        self,
        unexpanded: NDArray[np.int32],
        unmet: NDArray[np.int32],
        spaces: NDArray[np.int32],
        unknown: NDArray[np.int32],
    ) -> None:
        """Prepare the learner's choices and entries, see `Missing`."""
        learner = self._learner
        begin, looking = perf_counter(), learner.initial.seconds
        learner.graph.expand(unexpanded)
        if unmet.size:
            learner.representatives.meet(learner.role, unmet)
        learner.initial.look_into(spaces, unknown)
        learner.seconds_choosing += perf_counter() - begin - (learner.initial.seconds - looking)

    def _task(self) -> _Task:
        learner, lanes = self._learner, self._lanes.arrays
        width = lanes.row_log.shape[1]
        entries = np.array([learner.table.size], np.int64)
        trail, turns = np.empty((2, width), np.int32)
        memory = _Memory(entries, self._values, trail, turns, np.empty(width, np.int64))
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
            self._rest,
            memory,
            self._clock,
        )

    def _divide_time(self) -> None:
        """Add the time of the compiled calls to that of the learner, in the proportions of the timed matches."""
        spent = self._clock.spent / max(1, self._clock.spent[_ALL])
        self._learner.seconds_choosing += float(spent[_CHOOSING]) * self._seconds
        self._learner.seconds_learning += float(spent[_LEARNING]) * self._seconds


_INT32, _ADDRESS = numba.types.int32, numba.types.uintp
_read_clock: Any = numba.types.ExternalFunction("clock_gettime", _INT32(_INT32, _ADDRESS))


@inlined
def _now(reading: I64) -> int:
    """Return the time in nanoseconds; 0 on systems without a POSIX clock."""
    if _CLOCK < 0:
        return 0
    _read_clock(_CLOCK, reading.ctypes.data)
    return int(reading[0] * 1_000_000_000 + reading[1])


@inlined
def _learner_choice(role: int, lane: int, row: int, is_timed: bool, task: _Task) -> int:
    """Return the learner's choice, or -1 after noting what is missing."""
    graph, lanes, clock, moves = task.graph, task.lanes, task.clock, task.graph.num_moves[row, role]
    if moves > task.memory.values.size:
        task.missing.counts[_MOVES] = max(task.missing.counts[_MOVES], moves)
        return -1
    begin = _now(clock.reading) if is_timed else 0
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
    if is_timed:
        clock.spent[_CHOOSING] += _now(clock.reading) - begin
    return choice


@inlined
def _opponent_choice(role: int, lane: int, row: int, task: _Task) -> int:
    """Return the opponent's choice, or -1 after noting that the moves must be classified."""
    graph, lanes, counts, rest = task.graph, task.lanes, task.missing.counts, task.rest
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
    if choice < 0 and counts[_UNCLASSIFIED] < rest.roles.size:
        rest.roles[counts[_UNCLASSIFIED]] = role
        note(row, _UNCLASSIFIED, rest.rows, counts)
    return choice


@inlined
def _choose_all(learner: int, lane: int, row: int, is_timed: bool, task: _Task) -> bool:
    """Choose for all roles. Return whether nothing is missing."""
    lanes = task.lanes
    for role in range(lanes.joint.shape[1]):
        if not must_choose(row, role, task.graph.acting, task.graph.num_moves):
            continue
        if role == learner:
            choice = _learner_choice(role, lane, row, is_timed, task)
        else:
            choice = _opponent_choice(role, lane, row, task)
        if choice < 0:
            return False
        lanes.joint[lane, role] = choice
    return True


@inlined
def _play_ply(learner: int, lane: int, is_timed: bool, task: _Task) -> bool:
    """Make the next joint move of a lane. Return whether nothing is missing."""
    graph, lanes, counts, rest = task.graph, task.lanes, task.missing.counts, task.rest
    row = lanes.rows[lane]
    if not graph.expanded[row] and (not graph.listed[row] or graph.num_joint[row] <= EXPAND_UP_TO):
        note(row, _FRESH, rest.fresh, counts)
        return False
    if lanes.plies[lane] == lanes.choice_log.shape[1]:
        counts[_WIDTH] = 1
        return False
    if not _choose_all(learner, lane, row, is_timed, task):
        return False
    after = rest.successors[lane]
    if graph.expanded[row]:
        after = graph.successors[graph.succ_start[row] + joint_number(row, lane, lanes.joint, graph.num_moves)]
    elif after < 0:
        note(lane, _SUCCESSORS, rest.jumps, counts)
        return False
    rest.successors[lane] = -1
    log_ply(lane, after, lanes.rows, lanes.plies, lanes.joint, lanes.row_log, lanes.choice_log)
    return True


@inlined
def _enter_one(lane: int, afterstate: np.int32, task: _Task) -> bool:
    """Make the entry of an afterstate that the lane uses. Return whether nothing is missing."""
    lookup = task.lookup
    fresh, space = enter(lane, afterstate, lookup.groups, lookup.numbers, task.initial, lookup.keys, lookup.q)
    task.memory.entries[0] += fresh
    if space >= 0:
        note_unknown(space, afterstate, task.missing)
    return space < 0


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
        task.missing.counts[_ENTRIES] += needed
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
def _learn(role: int, lane: int, reward: float, is_timed: bool, task: _Task) -> bool:
    """Learn from the match of a lane. Return whether nothing was missing; otherwise nothing was learned."""
    graph, lanes, lookup, memory, clock = task.graph, task.lanes, task.lookup, task.memory, task.clock
    begin = _now(clock.reading) if is_timed else 0
    moves = (graph.terminal, graph.acting, graph.num_moves, graph.move_start)
    size = write_trail(
        lane, lanes.plies[lane], lanes.row_log, lanes.choice_log, role, *moves, 0, memory.trail, memory.turns
    )
    is_complete = _enter_all(role, lane, size, task)
    if is_complete:
        entries = (lookup.numbers, lookup.keys, lookup.q, task.visits)
        learn_in_lane(lane, 0, size, memory.trail, reward, *entries, memory.slots)
    if is_timed:
        clock.spent[_LEARNING] += _now(clock.reading) - begin
    return is_complete


@inlined
def _end_match(role: int, lane: int, end: int, start: int, is_timed: bool, task: _Task) -> bool:
    """Learn from the match of a lane, and begin the next. Return whether nothing is missing."""
    lanes, results = task.lanes, task.results
    match, goal = lanes.matches[lane], task.graph.goals[lanes.rows[lane], role]
    reward = max(goal, 0) if end == TERMINAL else 0
    if not _learn(role, lane, float(reward), is_timed, task):
        return False
    results.rewards[lane, match] = reward
    results.lengths[lane, match] = lanes.plies[lane]
    results.stuck[lane] += end == STUCK
    results.capped[lane] += end == CAP
    results.missing[lane] += end == TERMINAL and goal < 0
    task.missing.counts[_ENDED] += 1
    lanes.matches[lane] += 1
    if lanes.matches[lane] < lanes.limits[lane]:
        begin_match(lane, start, lanes.matches, lanes.lane_keys, lanes.keys, lanes.rows, lanes.plies, lanes.row_log)
    return True


@kernel_without_refcounts
def _play(role: int, start: int, max_plies: int, most: int, active: I64, task: _Task) -> None:
    """Play on in the lanes, one after the other, until each waits or has ended, or for `most` plies."""
    graph, lanes, clock = task.graph, task.lanes, task.clock
    for lane in active:
        goes_on = True
        while goes_on and most > 0 and lanes.matches[lane] < lanes.limits[lane]:
            most -= 1
            is_timed = lanes.matches[lane] % _TIMED == 0
            begin = _now(clock.reading) if is_timed else 0
            end = end_of(lanes.rows[lane], lanes.plies[lane], max_plies, graph.terminal, graph.listed, graph.stuck)
            if end == GOING_ON:
                goes_on = _play_ply(role, lane, is_timed, task)
            else:
                goes_on = _end_match(role, lane, end, start, is_timed, task)
            if is_timed:
                clock.spent[_ALL] += _now(clock.reading) - begin
