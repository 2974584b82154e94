"""The play loop: many matches of one game side by side.

Every lane plays one match after the other; a lane whose match ended starts its next one at once, so lanes drift
apart and every round asks each player about many positions at once. What happens in a lane depends on its key
only, never on the lanes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError
from . import roster
from .graph import Graph
from .kernel import kernel
from .match import MAX_PLIES, MatchRecord, match_records
from .player import CAP, STUCK, TERMINAL, Finished, MatchLog, Player, Started, Turn
from .statetable import longer
from .streams import mix, stream

if TYPE_CHECKING:
    from ..rules.game import Game

EXPAND_UP_TO = 512  # joint moves of a position; with more, only the successors really played are worked out
STAGE = "play"  # of the random streams of `play_matches`
_FIRST_WIDTH = 64
_SIDE_BY_SIDE = 256
_TOO_MANY_ROWS = 2_000_000  # a graph beyond this is dropped between two batches; results do not depend on it


def run_lockstep(
    graph: Graph,
    seats: Sequence[Player],
    keys: ArrayLike,
    num_matches: ArrayLike,
    *,
    first_match: ArrayLike = 0,
    max_plies: int = MAX_PLIES,
    on_end: Callable[[Finished], None] | None = None,
) -> None:
    """Plays exactly `num_matches` matches in every lane.

    seats        one player for each role; it serves all lanes, and may sit in several seats
    keys         uint64[lanes], the key of each lane: `stream(seed, run, stage)`. The player of a role draws from
                 the stream `extend(extend(key, match), role)` with the ply as counter
    num_matches  of each lane, or of all
    first_match  the number of the first match of each lane, or of all; more than 0 to go on with a stopped run
    max_plies    a match that reaches so many plies ends as CAP
    on_end       is told of every match that ended, after the players

    Raises GameloreError where a player's choice is none of its legal moves.
    """
    if len(seats) != graph.game.num_roles:
        raise GameloreError(
            f"expected {graph.game.num_roles} players, one for each of {', '.join(graph.game.roles)}, got {len(seats)}"
        )
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
    if started.lanes.size:
        for role, player in enumerate(seats):
            player.begin(role, started)


def play_matches(
    game: Game,
    players: Sequence[str],
    num_matches: int,
    seed: int = 0,
    *,
    max_plies: int = MAX_PLIES,
    on_end: Callable[[Finished], None] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> list[MatchRecord]:
    """Records of matches between players given by name (roster.py), one for each role.

    Match i has the streams (seed, 0, "play", i, role): it is the same however many are played. `on_end` is told of
    matches as they end, `on_progress` how many are over. Raises GameloreError for an unknown player or a wrong number
    of players.
    """
    seats = [roster.player(spec) for spec in players]
    prefix = stream(seed, 0, STAGE)
    graph = Graph(game)
    records: list[MatchRecord] = []
    for begin in range(0, num_matches, _SIDE_BY_SIDE):
        numbers = np.arange(begin, min(begin + _SIDE_BY_SIDE, num_matches))
        ended: list[Finished] = []
        keys = np.full(len(numbers), prefix)
        run_lockstep(graph, seats, keys, 1, first_match=numbers, max_plies=max_plies, on_end=ended.append)
        batch = [record for finished in ended for record in _records(finished, players, seed)]
        records += sorted(batch, key=lambda record: int(record.key[-1]))
        if on_end is not None:
            for finished in ended:
                on_end(finished)
        if on_progress is not None:
            on_progress(len(records))
        if graph.num_rows > _TOO_MANY_ROWS:
            graph = Graph(game)
    return records


def _records(finished: Finished, players: Sequence[str], seed: int) -> list[MatchRecord]:
    return match_records(finished, players, [(seed, 0, STAGE, match) for match in finished.matches.tolist()])


class Lanes:
    """The matches that are being played; `active` are the lanes that have not played all of theirs."""

    def __init__(
        self, graph: Graph, keys: ArrayLike, num_matches: ArrayLike, first_match: ArrayLike, max_plies: int
    ) -> None:
        self.graph = graph
        self.max_plies = max_plies
        self._lane_keys = np.array(keys, np.uint64).ravel()
        lanes, roles = len(self._lane_keys), graph.game.num_roles
        self.matches = np.broadcast_to(np.asarray(first_match, np.int64), lanes).copy()
        self._limits = self.matches + np.asarray(num_matches, np.int64)
        self.active = np.flatnonzero(self.matches < self._limits)
        self._keys = np.empty((lanes, roles), np.uint64)
        self._rows = np.empty(lanes, np.int32)
        self._plies = np.empty(lanes, np.int32)
        self._joint = np.zeros((lanes, roles), np.int32)
        self._row_log = np.empty((lanes, _FIRST_WIDTH + 1), np.int32)
        self._choice_log = np.empty((lanes, _FIRST_WIDTH, roles), np.int32)
        self._ends = np.empty(lanes, np.uint8)
        self._start(self.active)

    def ended(self) -> NDArray[np.int64]:
        """The lanes whose match is over; makes known whatever the next ply of the others needs."""
        ended, fresh = self._scan()
        if fresh.size:
            self.graph.list_moves(fresh)
            self.graph.expand(fresh[self.graph.num_joint[fresh] <= EXPAND_UP_TO])
            ended, _ = self._scan()
        return ended

    def finished(self, ended: NDArray[np.int64]) -> Finished:
        """What there is to say about the matches that are over."""
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
        """The event for the players that matches began in these lanes."""
        return Started(self.graph, lanes, self.matches[lanes])

    def restart(self, ended: NDArray[np.int64]) -> Started:
        """Starts the next match of these lanes, where there is one."""
        self.matches[ended] += 1
        going_on = self.matches[ended] < self._limits[ended]
        if not going_on.all():
            self.active = np.flatnonzero(self.matches < self._limits)
            ended = ended[going_on]
        self._start(ended)
        return self.started(ended)

    def turn(self, role: int) -> Turn:
        """The lanes in which the role is to be asked."""
        graph = self.graph
        lanes, rows, keys, plies = _ask(
            self.active, self._rows, self._keys, self._plies, role, graph.acting, graph.num_moves
        )
        return Turn(graph, role, lanes, rows, keys, plies, MatchLog(self._row_log, self._choice_log))

    def submit(self, role: int, lanes: NDArray[np.int64], choices: NDArray[np.int32]) -> None:
        """Takes the role's choices; where it is not asked its choice is 0, its only move."""
        self._joint[lanes, role] = choices

    def move_on(self) -> None:
        """Makes the joint moves."""
        try:
            found = self.graph.successor(self._rows[self.active], self._joint[self.active])
        except IndexError as error:
            raise GameloreError(f"a player chose no legal move: {error}; mend its choose()") from None
        longest = _log(self.active, found, self._rows, self._plies, self._joint, self._row_log, self._choice_log)
        if longest == self._choice_log.shape[1]:
            self._row_log = _wider(self._row_log, 2 * longest + 1)
            self._choice_log = _wider(self._choice_log, 2 * longest)

    def _scan(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        graph = self.graph
        return _scan(
            self.active,
            self._rows,
            self._plies,
            self._ends,
            self.max_plies,
            graph.terminal,
            graph.listed,
            graph.expanded,
            graph.stuck,
        )

    def _start(self, lanes: NDArray[np.int64]) -> None:
        _restart(
            lanes,
            self.graph.start,
            self.matches,
            self._lane_keys,
            self._keys,
            self._rows,
            self._plies,
            self._row_log,
        )


def _wider(log: NDArray[np.int32], width: int) -> NDArray[np.int32]:
    """A copy with a longer second axis."""
    return np.ascontiguousarray(longer(log.swapaxes(0, 1), width).swapaxes(0, 1))


@kernel(
    "Tuple((int64[::1], int32[::1]))(int64[::1], int32[::1], int32[::1], uint8[::1], int64,"
    " boolean[::1], boolean[::1], boolean[::1], boolean[::1])"
)
def _scan(
    active: NDArray[np.int64],
    rows: NDArray[np.int32],
    plies: NDArray[np.int32],
    ends: NDArray[np.uint8],
    max_plies: int,
    terminal: NDArray[np.bool_],
    listed: NDArray[np.bool_],
    expanded: NDArray[np.bool_],
    stuck: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(lanes whose match is over, how being put into `ends`; rows to go on from that are not expanded)."""
    ended = np.empty(active.size, np.int64)
    fresh = np.empty(active.size, np.int32)
    num_ended, num_fresh = 0, 0
    for lane in active:
        row = rows[lane]
        if terminal[row]:
            ends[lane] = TERMINAL
        elif stuck[row]:
            ends[lane] = STUCK
        elif plies[lane] >= max_plies and listed[row]:
            ends[lane] = CAP
        else:
            if not expanded[row]:
                fresh[num_fresh] = row
                num_fresh += 1
            continue
        ended[num_ended] = lane
        num_ended += 1
    return ended[:num_ended], fresh[:num_fresh]


@kernel(
    "Tuple((int64[::1], int32[::1], uint64[::1], int32[::1]))(int64[::1], int32[::1], uint64[:, ::1],"
    " int32[::1], int64, boolean[:, ::1], int32[:, ::1])"
)
def _ask(
    active: NDArray[np.int64],
    rows: NDArray[np.int32],
    keys: NDArray[np.uint64],
    plies: NDArray[np.int32],
    role: int,
    acting: NDArray[np.bool_],
    num_moves: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32]]:
    """(lanes, rows, stream keys, plies) of a role's turn."""
    out_lanes = np.empty(active.size, np.int64)
    out_rows = np.empty(active.size, np.int32)
    out_keys = np.empty(active.size, np.uint64)
    out_plies = np.empty(active.size, np.int32)
    size = 0
    for lane in active:
        row = rows[lane]
        if acting[row, role] or num_moves[row, role] > 1:
            out_lanes[size] = lane
            out_rows[size] = row
            out_keys[size] = keys[lane, role]
            out_plies[size] = plies[lane]
            size += 1
    return out_lanes[:size], out_rows[:size], out_keys[:size], out_plies[:size]


@kernel("int64(int64[::1], int32[::1], int32[::1], int32[::1], int32[:, ::1], int32[:, ::1], int32[:, :, ::1])")
def _log(
    active: NDArray[np.int64],
    found: NDArray[np.int32],
    rows: NDArray[np.int32],
    plies: NDArray[np.int32],
    joint: NDArray[np.int32],
    row_log: NDArray[np.int32],
    choice_log: NDArray[np.int32],
) -> int:
    """Writes down what was played and where it led; the largest number of plies of any match."""
    longest = 0
    for i in range(active.size):
        lane = active[i]
        choice_log[lane, plies[lane]] = joint[lane]
        joint[lane] = 0
        plies[lane] += 1
        rows[lane] = found[i]
        row_log[lane, plies[lane]] = found[i]
        longest = max(longest, int(plies[lane]))
    return longest


@kernel("void(int64[::1], int64, int64[::1], uint64[::1], uint64[:, ::1], int32[::1], int32[::1], int32[:, ::1])")
def _restart(
    lanes: NDArray[np.int64],
    start: int,
    matches: NDArray[np.int64],
    lane_keys: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    plies: NDArray[np.int32],
    row_log: NDArray[np.int32],
) -> None:
    """Puts lanes to the start of their match, with its streams."""
    for lane in lanes:
        match_key = mix(lane_keys[lane], np.uint64(matches[lane]))
        for role in range(keys.shape[1]):
            keys[lane, role] = mix(match_key, np.uint64(role))
        rows[lane] = start
        plies[lane] = 0
        row_log[lane, 0] = start
