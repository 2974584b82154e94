"""Many parallel matches of one game in lockstep, series of matches, and exact expected results.

Each lane plays one match after the other. It starts its next match as soon as a match ends, so different lanes are at
different plies. Every round of the loop asks each player about many positions at once. The matches of a lane depend
only on its key, never on other lanes.

`expected` computes exact results without sampling, for players whose moves depend only on the position. It computes the
probability of each position ply by ply, and merges equal positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError
from ..players.kernel import F64, I32, I64, U8, U64, Bool, Boolx2, I32x2, I32x3, Int32, U64x2, inlined, kernel
from ..players.player import CAP, STUCK, TERMINAL, Finished, MatchLog, Memoryless, Player, Started, Turn
from ..players.position_graph import PositionGraph, joint_stride, longer, must_choose
from ..players.random_streams import mix, stream
from .match import MAX_PLIES, MatchRecord, check_seats, match_records

if TYPE_CHECKING:
    from ..game.game import Game

EXPAND_UP_TO = 512  # joint moves; for positions with more of them, only the successors of chosen moves are computed
STAGE = "play"  # part of the random stream keys of `play_matches`
_FIRST_WIDTH = 64
_SIDE_BY_SIDE = 256
# bytes; a larger graph is replaced between two batches of matches, which does not change results. This is less than
# the default cap at which learners that look ahead refuse to begin a match (`learning.td.series`)
_MAX_GRAPH = 200_000_000


def run_lockstep(
    graph: PositionGraph,
    seats: Sequence[Player],
    keys: ArrayLike,
    num_matches: ArrayLike,
    *,
    first_match: ArrayLike = 0,
    max_plies: int = MAX_PLIES,
    on_end: Callable[[Finished], None] | None = None,
) -> None:
    """Play exactly `num_matches` matches in every lane.

    seats        one player for each role. A player serves all lanes, and one player may have several roles.
    keys         uint64[lanes], the key of each lane: `stream(seed, run, stage)`. The player of a role takes its random
                 numbers from the stream `extend(extend(key, match), role)`, with the ply as counter.
    num_matches  number of matches in each lane, or one number for all lanes
    first_match  number of the first match in each lane, or one number for all lanes. A number above 0 resumes a stopped
                 run.
    max_plies    maximum number of plies; a match of this length ends as CAP
    on_end       called with the matches that ended, after `end` of all players

    Raise GameloreError if a player chooses an illegal move.
    """
    check_seats(graph.game, seats)
    lanes = Lanes(graph, keys, num_matches, first_match, max_plies)
    _begin(seats, lanes.started(lanes.active))
    while lanes.active.size:
        while (ended := lanes.ended()).size:
            finished = lanes.finished(ended)
            for role, player in enumerate(seats):
                player.end(role, finished)
            if on_end is not None:
                on_end(finished)
            _begin(seats, lanes.restart(ended))
        for role, player in enumerate(seats):
            turn = lanes.turn(role)
            if turn.lanes.size:
                lanes.submit(role, turn.lanes, player.choose(turn))
        lanes.move_on()


def _begin(seats: Sequence[Player], started: Started) -> None:
    """Call `begin` of all players for matches that begin."""
    if started.lanes.size:
        for role, player in enumerate(seats):
            player.begin(role, started)


def play_matches(
    game: Game,
    players: Sequence[str],
    num_matches: int,
    seed: int = 0,
    *,
    player: Callable[[str], Player],
    seats: Sequence[Player] = (),
    one_by_one: bool = False,
    ends_with_input: bool = False,
    first_match: int = 0,
    max_plies: int = MAX_PLIES,
    with_states: bool = True,
    on_end: Callable[[Finished], None] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> list[MatchRecord]:
    """Play matches between players given by name, one for each role, and return the records.

    Match i uses the random streams (seed, 0, "play", i, role), so it does not depend on the number of matches.

    player       function that makes a player from its name
    seats        the players themselves, if they exist already
    one_by_one   whether the matches are played one after the other, for players that learn from each match
    ends_with_input
                 whether an EOFError of a player ends the series; the matches before this one are returned
    first_match  number of the first match
    with_states  see `match_records`
    on_end       called with each group of matches that ended
    on_progress  called with the number of finished matches

    Raise GameloreError for a wrong number of players. Errors of `player` are raised too.
    """
    at_once = 1 if one_by_one else _SIDE_BY_SIDE
    seats = seats or [player(spec) for spec in players]
    prefix = stream(seed, 0, STAGE)
    graph = PositionGraph(game)
    records: list[MatchRecord] = []
    ended: list[Finished] = []

    def end(finished: Finished) -> None:
        ended.append(finished)
        if on_progress is not None:
            on_progress(len(records) + sum(len(each.lanes) for each in ended))

    last = first_match + num_matches
    for begin in range(first_match, last, at_once):
        numbers = np.arange(begin, min(begin + at_once, last))
        ended.clear()
        keys = np.full(len(numbers), prefix)
        try:
            run_lockstep(graph, seats, keys, 1, first_match=numbers, max_plies=max_plies, on_end=end)
        except EOFError:
            if not ends_with_input:
                raise
            break
        batch = [
            record
            for finished in ended
            for record in match_records(finished, players, (seed, 0, STAGE), with_states=with_states)
        ]
        records += sorted(batch, key=lambda record: int(record.key[-1]))
        if on_end is not None:
            for finished in ended:
                on_end(finished)
        if graph.num_bytes > _MAX_GRAPH:
            graph = PositionGraph(game)
    return records


class LaneArrays(NamedTuple):
    """The arrays of `Lanes`, for kernels: keys, match numbers and limits of all lanes, and the running matches."""

    lane_keys: U64
    matches: I64
    limits: I64
    keys: U64x2
    rows: I32
    plies: I32
    joint: I32x2
    row_log: I32x2
    choice_log: I32x3


class Lanes:
    """The running matches of all lanes; `active` are the lanes whose last match is not finished."""

    def __init__(
        self, graph: PositionGraph, keys: ArrayLike, num_matches: ArrayLike, first_match: ArrayLike, max_plies: int
    ) -> None:
        self.graph = graph
        self.max_plies = max_plies
        self._lane_keys = np.array(keys, np.uint64).ravel()
        lanes, roles = len(self._lane_keys), graph.game.num_roles
        self.matches = np.broadcast_to(np.asarray(first_match, np.int64), lanes).copy()
        self._limits = self.matches + np.asarray(num_matches, np.int64)
        self.refresh()
        self._keys = np.empty((lanes, roles), np.uint64)
        self._rows = np.empty(lanes, np.int32)
        self._plies = np.empty(lanes, np.int32)
        self._joint = np.zeros((lanes, roles), np.int32)
        self._row_log = np.empty((lanes, _FIRST_WIDTH + 1), np.int32)
        self._choice_log = np.empty((lanes, _FIRST_WIDTH, roles), np.int32)
        self._ends = np.empty(lanes, np.uint8)
        self._start(self.active)

    def ended(self) -> NDArray[np.int64]:
        """Return the lanes whose match is over. In the other lanes, list the moves of the positions and expand them."""
        ended, fresh = self._scan()
        if fresh.size:
            self.graph.list_moves(fresh)
            self.graph.expand(fresh[self.graph.num_joint[fresh] <= EXPAND_UP_TO])
            ended, _ = self._scan()
        return ended

    def finished(self, ended: NDArray[np.int64]) -> Finished:
        """Return the event that tells the players that these matches ended."""
        plies, ends = self._plies[ended], self._ends[ended]
        longest = int(plies.max())
        goals = self.graph.goals[self._rows[ended]]
        goals[ends != TERMINAL] = -1
        return Finished(
            graph=self.graph,
            lanes=ended,
            matches=self.matches[ended],
            plies=plies,
            rows=self._row_log[ended, : longest + 1],
            choices=self._choice_log[ended, :longest],
            goals=goals,
            ends=ends,
        )

    def started(self, lanes: NDArray[np.int64]) -> Started:
        """Return the event that tells the players that matches began in these lanes."""
        return Started(self.graph, lanes, self.matches[lanes])

    def restart(self, ended: NDArray[np.int64]) -> Started:
        """Start the next match of each of these lanes that has a match left to play."""
        self.matches[ended] += 1
        going_on = self.matches[ended] < self._limits[ended]
        if not going_on.all():
            self.refresh()
            ended = ended[going_on]
        self._start(ended)
        return self.started(ended)

    def refresh(self) -> None:
        """Determine the active lanes."""
        self.active = np.flatnonzero(self.matches < self._limits)

    def turn(self, role: int) -> Turn:
        """Return the request for the role's moves, in all lanes in which the role's player must choose."""
        graph = self.graph
        asked = _ask(self.active, self._rows, self._keys, self._plies, role, graph.acting, graph.num_moves)
        return Turn(graph, role, *asked, MatchLog(self._row_log, self._choice_log))

    def submit(self, role: int, lanes: NDArray[np.int64], choices: NDArray[np.int32]) -> None:
        """Take the role's choices. In all other lanes, the choice is 0, the only move of the role."""
        self._joint[lanes, role] = choices

    def move_on(self) -> None:
        """Make the joint moves of all active lanes."""
        try:
            after = self.graph.successor(self._rows[self.active], self._joint[self.active])
        except IndexError as error:
            raise GameloreError(
                f"a player did not choose a legal move: {error}; correct the method choose() of this player"
            ) from None
        longest = _log(self.active, after, self._rows, self._plies, self._joint, self._row_log, self._choice_log)
        if longest == self._choice_log.shape[1]:
            self.widen()

    def widen(self) -> None:
        """Make room for matches of twice the length."""
        width = 2 * self._choice_log.shape[1]
        self._row_log = _wider(self._row_log, width + 1)
        self._choice_log = _wider(self._choice_log, width)

    @property
    def arrays(self) -> LaneArrays:
        """The present arrays, for kernels."""
        running = self._keys, self._rows, self._plies, self._joint, self._row_log, self._choice_log
        return LaneArrays(self._lane_keys, self.matches, self._limits, *running)

    def _scan(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        graph = self.graph
        lanes = self.active, self._rows, self._plies, self._ends
        return _scan(*lanes, self.max_plies, graph.terminal, graph.listed, graph.expanded, graph.stuck)

    def _start(self, lanes: NDArray[np.int64]) -> None:
        arrays = self.matches, self._lane_keys, self._keys, self._rows, self._plies, self._row_log
        _restart(lanes, self.graph.start, *arrays)


def _wider(log: NDArray[np.int32], width: int) -> NDArray[np.int32]:
    """Return a copy of a log with `width` entries on its second axis."""
    return np.ascontiguousarray(longer(log.swapaxes(0, 1), width).swapaxes(0, 1))


GOING_ON = -1


@inlined
def end_of(row: int, ply: int, max_plies: int, terminal: Bool, listed: Bool, stuck: Bool) -> int:
    """Return the reason for the end of a match in this row, or GOING_ON; for use inside kernels."""
    if terminal[row]:
        return TERMINAL
    if stuck[row]:
        return STUCK
    return CAP if ply >= max_plies and listed[row] else GOING_ON


@kernel
def _scan(
    active: I64,
    rows: I32,
    plies: I32,
    ends: U8,
    max_plies: int,
    terminal: Bool,
    listed: Bool,
    expanded: Bool,
    stuck: Bool,
) -> tuple[I64, I32]:
    """Return (lanes whose match is over, unexpanded rows of the other lanes), and set `ends` of the former."""
    ended = np.empty(active.size, np.int64)
    fresh = np.empty(active.size, np.int32)
    num_ended, num_fresh = 0, 0
    for lane in active:
        row = rows[lane]
        end = end_of(row, plies[lane], max_plies, terminal, listed, stuck)
        if end != GOING_ON:
            ends[lane] = end
            ended[num_ended] = lane
            num_ended += 1
        elif not expanded[row]:
            fresh[num_fresh] = row
            num_fresh += 1
    return ended[:num_ended], fresh[:num_fresh]


@kernel
def _ask(
    active: I64, rows: I32, keys: U64x2, plies: I32, role: int, acting: Boolx2, num_moves: I32x2
) -> tuple[I64, I32, U64, I32]:
    """Return (lanes, rows, stream keys, plies) of the lanes in which a role must choose."""
    out_lanes = np.empty(active.size, np.int64)
    out_rows = np.empty(active.size, np.int32)
    out_keys = np.empty(active.size, np.uint64)
    out_plies = np.empty(active.size, np.int32)
    size = 0
    for lane in active:
        row = rows[lane]
        if must_choose(row, role, acting, num_moves):
            out_lanes[size] = lane
            out_rows[size] = row
            out_keys[size] = keys[lane, role]
            out_plies[size] = plies[lane]
            size += 1
    return out_lanes[:size], out_rows[:size], out_keys[:size], out_plies[:size]


@inlined
def log_ply(lane: int, after: Int32, rows: I32, plies: I32, joint: I32x2, row_log: I32x2, choice_log: I32x3) -> None:
    """Log the joint move of a lane and the position after it; for use inside kernels."""
    ply = plies[lane]
    for role in range(joint.shape[1]):
        choice_log[lane, ply, role] = joint[lane, role]
        joint[lane, role] = 0
    plies[lane] = ply + 1
    rows[lane] = after
    row_log[lane, ply + 1] = after


@kernel
def _log(active: I64, after: I32, rows: I32, plies: I32, joint: I32x2, row_log: I32x2, choice_log: I32x3) -> int:
    """Log the joint moves and the positions after them. Return the length of the longest match, in plies."""
    longest = 0
    for i in range(active.size):
        log_ply(active[i], after[i], rows, plies, joint, row_log, choice_log)
        longest = max(longest, int(plies[active[i]]))
    return longest


@inlined
def begin_match(
    lane: int, start: int, matches: I64, lane_keys: U64, keys: U64x2, rows: I32, plies: I32, row_log: I32x2
) -> None:
    """Reset a lane to the initial position, and set the stream keys for its match; for use inside kernels."""
    match_key = mix(lane_keys[lane], np.uint64(matches[lane]))
    for role in range(keys.shape[1]):
        keys[lane, role] = mix(match_key, np.uint64(role))
    rows[lane] = start
    plies[lane] = 0
    row_log[lane, 0] = start


@kernel
def _restart(
    lanes: I64, start: int, matches: I64, lane_keys: U64, keys: U64x2, rows: I32, plies: I32, row_log: I32x2
) -> None:
    """Reset lanes to the initial position, and set the stream keys for their matches."""
    for lane in lanes:
        begin_match(lane, start, matches, lane_keys, keys, rows, plies, row_log)


class Uniform:
    """Move probabilities of the random player."""

    def distribution(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """See `Memoryless`."""
        graph.list_moves(rows)
        counts = graph.num_moves[rows, role]
        return np.repeat(1.0 / np.maximum(counts, 1), counts)


@dataclass(frozen=True, slots=True)
class Expected:
    """Probabilities of the results of one match.

    goals       probability of each result; a result is the tuple of the goals by role, with None for a missing goal
    unfinished  probability that the match is cut off at the maximum number of plies, or that a role has no legal move
    plies       mean length of a match in plies
    """

    goals: dict[tuple[int | None, ...], float]
    unfinished: float
    plies: float

    def better(self, role: int) -> float:
        """Return the probability that the role gets more than every other role ("power" of the role's player)."""
        return sum(p for goals, p in self.goals.items() if _rank(goals, role) > 0)

    def not_worse(self, role: int) -> float:
        """Return the probability that no other role gets more than this role ("reliability" of its player)."""
        return sum(p for goals, p in self.goals.items() if _rank(goals, role) >= 0)

    def mean(self, role: int) -> float:
        """Return the mean goal of the role. A missing goal counts 0."""
        return sum(p * (goals[role] or 0) for goals, p in self.goals.items())


def _rank(goals: Sequence[int | None], role: int) -> int:
    """Return the role's goal minus the highest goal of the other roles. A missing goal counts 0."""
    return (goals[role] or 0) - max((goal or 0 for other, goal in enumerate(goals) if other != role), default=0)


def expected(graph: PositionGraph, seats: Sequence[Memoryless], max_plies: int = MAX_PLIES) -> Expected:
    """Return the expected results of a match between these players, one for each role, from the initial position.

    Visit every position that these players can reach, ply by ply. Raise GameloreError for a wrong number of players.
    """
    check_seats(graph.game, seats)
    goals: defaultdict[tuple[int | None, ...], float] = defaultdict(float)
    rows, mass = np.array([graph.start], np.int32), np.ones(1)
    unfinished = plies = 0.0
    for ply in range(max_plies + 1):
        over = graph.terminal[rows]
        for row, probability in zip(rows[over], mass[over].tolist(), strict=True):
            goals[tuple(goal if goal >= 0 else None for goal in graph.goals[row].tolist())] += probability
        graph.expand(rows)
        going = graph.num_joint[rows] > 0
        unfinished += float(mass[~going & ~over].sum())
        rows, mass = rows[going], mass[going]
        if ply == max_plies or not len(rows):
            break
        plies += float(mass.sum())
        rows, mass = _next_ply(graph, seats, rows, mass)
    return Expected(dict(goals), unfinished + float(mass.sum()), plies)


def _next_ply(
    graph: PositionGraph, seats: Sequence[Memoryless], rows: NDArray[np.int32], mass: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (distinct positions after these rows, their probabilities)."""
    shares = mass.repeat(graph.num_joint[rows])
    for role, seat in enumerate(seats):
        own = seat.distribution(graph, rows, role)
        _multiply(rows, role, graph.num_moves, graph.num_joint, own, shares)
    after, index = np.unique(graph.successors_of(rows), return_inverse=True)
    reached = np.zeros(len(after))
    np.add.at(reached, index.ravel(), shares)
    return after[reached > 0], reached[reached > 0]


@kernel
def _multiply(rows: I32, role: int, num_moves: I32x2, num_joint: I64, own: F64, shares: F64) -> None:
    """Multiply the probability of each joint move by the probability of the role's own move in it."""
    at, move_at = 0, 0
    for row in rows:
        stride = joint_stride(row, role, num_moves)
        for joint in range(num_joint[row]):
            shares[at] *= own[move_at + joint // stride % num_moves[row, role]]
            at += 1
        move_at += num_moves[row, role]
