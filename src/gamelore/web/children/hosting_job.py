"""The child process that leads a series of matches for the page "Network": `net.hosted_series`, watched turn by turn.

The series runs in a thread of this process, so requests are answered at once. Its folder has the records of the
finished matches; the same series in the same folder continues after an interruption.

What a user enters as the address of a player reaches the network only as messages of the GGP protocol, which are POST
requests over http:// (`net.http.Client`), and replies come back only as moves and short error messages. A foreign web
page cannot use this to call addresses that the machine of the user can reach: the guard (guard.py) refuses its requests
and websockets by Host, Origin and Sec-Fetch-Site, so only the pages of this server can begin a series.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from ...catalogue import named_player
from ...errors import GameloreError, ProtocolError
from ...files import write_whole
from ...game.game import Game, make
from ...gdl.limits import Limits
from ...gdl.lint import refuse
from ...gdl.syntax import parse, printable
from ...lab.stats import mean_interval, t_quantile
from ...learning.td.series import CAP_VARIABLE
from ...matches.match import ILLEGAL, LATE, UNREACHABLE, MatchRecord
from ...net.host import HostSettings, Seat
from ...net.hosted_series import INFO_SECONDS, HostedSeries, Standing, moving_mean
from ...net.messages import READY, PlayerInfo, Start, parse_reply
from ...net.requests import answer_requests, limits_within, processor_time
from ...players.player import Player
from ...players.uct import FOREST_VARIABLE
from .long_job import JobPlan

EXTRA = 1.0  # seconds after each clock in which an answer still counts
GIVE_UP = 3  # matches in a row without a reply, or with a busy player, after which the series ends
MOST_POINTS = 300  # of a learning curve
LEAST_MEAN, MOST_MEAN = 5, 50  # matches in each mean of the learning curve
FOREST = 1 / 2  # share of the memory for search trees
LOOKAHEAD = 1 / 4  # share of the memory for the positions of learners that look ahead

SeriesState: TypeAlias = Literal["running", "stopped", "failed", "done"]


class HostedPlayer(Struct, frozen=True, forbid_unknown_fields=True):
    """A player of a series.

    spec   http://ADDRESS:PORT, or the name of a player with options
    store  knowledge store of a player with a name; None: it remembers nothing
    """

    spec: str
    store: str | None = None


class HostingPlan(JobPlan, frozen=True, forbid_unknown_fields=True):
    """What is played, by whom and how often; see `net.host.HostSettings`.

    rules, name  text of the rulesheet, and name of the game
    players      a player for each role
    scramble     whether players on the network see the rules with other names in every match
    pause        seconds before each question to the players, so that one can follow
    seed         seed of the moves of players by name, and of those that replace illegal ones
    """

    rules: str
    name: str
    players: tuple[HostedPlayer, ...]
    matches: int
    startclock: int
    playclock: int
    scramble: bool = False
    pause: float = 0.0
    seed: int = 0

    def series(self, folder: Path, limits: Limits, on_change: Callable[[], None]) -> WatchedSeries:
        """Load the game, and return the series. Raise GameloreError for rules that cannot be played."""
        sheet = parse(self.rules)
        refuse(sheet)
        game = make(sheet, self.name, limits=limits)
        # the host counts the pause as a part of the time in which an answer must come
        settings = HostSettings(self.startclock, self.playclock, EXTRA + self.pause, seed=self.seed)
        return WatchedSeries(game, self, settings, folder, on_change)


# ---- a match that is watched ------------------------------------------------------------------------------------


FaultRow: TypeAlias = tuple[str, str, str]
"""A late, missing or illegal answer: its role, kind and text, as in `matches.match.Event`."""


@dataclass(eq=False)
class LiveMatch:
    """A match in progress, as its seats see it. Phase 0 is START, phase k is ply k - 1.

    moves    joint moves so far
    begins   times at which the phases began (monotonic)
    ends     times of the last answers in the phases (monotonic)
    faults   faults by phase
    waiting  roles that have not answered yet
    """

    number: int
    roles: Sequence[str]
    on_change: Callable[[], None]
    moves: list[tuple[str, ...]] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    faults: list[list[FaultRow]] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    _replies: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def ask(self, phase: int, role: str, moves: Sequence[str] | None) -> None:
        """Note that a role is asked in a phase, with the joint move of the phase before."""
        with self._lock:
            if phase == len(self.begins):
                if moves is not None:
                    self._compare(moves)
                    self.moves.append(tuple(moves))
                self.begins.append(time.monotonic())
                self.ends.append(self.begins[-1])
                self.faults.append([])
                self._replies.clear()
            self.waiting.add(role)
        self.on_change()

    def answer(self, role: str, reply: str) -> None:
        """Note an answer, which may be illegal."""
        with self._lock:
            self._note_end(role)
            self._replies[role] = reply
        self.on_change()

    def fail(self, role: str, kind: str, text: str = "") -> None:
        """Note that there is no answer, or none that can be read."""
        with self._lock:
            self._note_end(role)
            self.faults[-1].append((role, kind, printable(text)))
        self.on_change()

    def as_json(self) -> dict[str, Any]:
        """Return the match, with the seconds of each joint move; the faults are those of START and of each ply."""
        with self._lock:
            return {
                "number": self.number,
                "moves": list(self.moves),
                "seconds": self._seconds(),
                "faults": [list(faults) for faults in self.faults],
                "waiting": [role for role in self.roles if role in self.waiting],
            }

    @property
    def seconds(self) -> list[float]:
        """For each joint move the seconds until the last answer."""
        with self._lock:
            return self._seconds()

    def _seconds(self) -> list[float]:
        times = zip(self.begins[1:], self.ends[1:], strict=True)
        return [round(end - begin, 2) for begin, end in times][: len(self.moves)]

    def _note_end(self, role: str) -> None:
        self.waiting.discard(role)
        self.ends[-1] = time.monotonic()

    def _compare(self, moves: Sequence[str]) -> None:
        """Note the answers that are not the move that was made: they were illegal, and replaced."""
        for role, move in zip(self.roles, moves, strict=True):
            reply = self._replies.get(role)
            if reply is not None and not _is_move(reply, move):
                self.faults[-1].append((role, ILLEGAL, printable(reply)))


def _is_move(reply: str, move: str) -> bool:
    try:
        return reply == move or parse_reply(reply).lower() == move.lower()
    except ProtocolError:
        return False


@dataclass(eq=False)
class WatchedSeat:
    """A seat in one match; it passes the questions of the host on after a pause, and notes them and the answers."""

    seat: Seat
    role: str
    live: LiveMatch
    pause: float
    _phase: int = -1

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """See `Seat.start`."""
        await asyncio.sleep(self.pause)
        with self._noted(None):
            reply = await self.seat.start(start, number, seconds - self.pause)
        if not _is_move(reply, READY):
            self.live.fail(self.role, ILLEGAL, reply)
        else:
            self.live.answer(self.role, reply)
        return reply

    async def play(self, match: str, moves: Sequence[str] | None, seconds: float) -> str:
        """See `Seat.play`."""
        await asyncio.sleep(self.pause)
        with self._noted(moves):
            reply = await self.seat.play(match, moves, seconds - self.pause)
        self.live.answer(self.role, reply)
        return reply

    async def stop(self, match: str, moves: Sequence[str] | None, seconds: float) -> str:
        """See `Seat.stop`. Of a match of an earlier process, nothing is noted."""
        if self._phase < 0:
            return await self.seat.stop(match, moves, seconds)
        with self._noted(moves):
            reply = await self.seat.stop(match, moves, seconds)
        self.live.answer(self.role, reply)
        return reply

    async def abort(self, match: str, seconds: float) -> str:
        """See `Seat.abort`."""
        return await self.seat.abort(match, seconds)

    @contextmanager
    def _noted(self, moves: Sequence[str] | None) -> Iterator[None]:
        """Note a question, and that it has no answer if an error is raised."""
        self._phase += 1
        self.live.ask(self._phase, self.role, moves)
        try:
            yield
        except (TimeoutError, asyncio.CancelledError):  # the host cancels a question whose clock has run out
            self.live.fail(self.role, LATE)
            raise
        except OSError:
            self.live.fail(self.role, UNREACHABLE)
            raise
        except ProtocolError as error:
            self.live.fail(self.role, ILLEGAL, str(error))
            raise


class WatchedSeries(HostedSeries):
    """A series whose present match is watched, and whose players by name have the knowledge store of the page.

    live  the present match; None before the first one
    """

    def __init__(
        self, game: Game, plan: HostingPlan, settings: HostSettings, folder: Path, on_change: Callable[[], None]
    ) -> None:
        super().__init__(
            game,
            [player.spec for player in plan.players],
            settings,
            scramble=plan.scramble,
            folder=folder,
            make_player=self._make,
            take_seats=self._watch,
        )
        self.live: LiveMatch | None = None
        self._stores = [player.store for player in plan.players]
        self._pause = plan.pause
        self._on_change = on_change

    def _watch(self, number: int, seats: list[Seat]) -> list[Seat]:
        """Return seats that note what is asked and answered in a match."""
        live = self.live = LiveMatch(number, self.game.roles, self._on_change)
        return [WatchedSeat(seat, role, live, self._pause) for seat, role in zip(seats, self.game.roles, strict=True)]

    def _make(self, role: int, opponent: str | None) -> Player:
        """Make a player with the knowledge store of the page.

        A learner of another seed is another learner, so that the seed of the series would make a new one each time.
        """
        return named_player(self.players[role], seed=0, opponent=opponent, knowledge=self._stores[role])


# ---- the series -------------------------------------------------------------------------------------------------


class _Results(NamedTuple):
    """The results so far; they are replaced as a whole, because a thread writes while another one reads.

    finished  for each finished match its number, number of plies, goals, number of faults, and whether it was aborted
    """

    finished: Sequence[tuple[int, int, tuple[int | None, ...], int, bool]] = ()
    standings: Sequence[Mapping[str, Any]] = ()
    curves: Sequence[Mapping[str, Any]] = ()


class _Hosting:
    """A series in its own thread.

    version  number of changes
    """

    def __init__(self, plan: HostingPlan, folder: Path, limits: Limits, prepare_seconds: float) -> None:
        self.version = 0
        self._plan, self._folder = plan, folder
        self._limits, self._prepare_seconds = limits, prepare_seconds
        self._state: SeriesState = "running"
        self._stage = "loading the game"
        self._error = ""
        self._notes: list[str] = []
        self._results = _Results()
        self._series: WatchedSeries | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leading: asyncio.Task[None] | None = None
        self._is_stopped = False
        Thread(target=self._run, name="series", daemon=True).start()

    def stop(self) -> None:
        """End the series. The present match is aborted."""
        self._is_stopped = True
        if self._loop is not None and self._leading is not None and self._state == "running":
            self._loop.call_soon_threadsafe(self._leading.cancel)

    def as_json(self) -> dict[str, Any]:
        """See `HostingJob.progress`."""
        series, results = self._series, self._results
        live = series.live if series is not None and self._state == "running" else None
        return {
            "version": self.version,
            "state": self._state,
            "stage": self._stage,
            "error": self._error,
            "notes": list(self._notes),
            "live": live.as_json() if live is not None and live.begins else None,
            "finished": results.finished,
            "standings": results.standings,
            "curves": results.curves,
        }

    def _change(self) -> None:
        self.version += 1

    def _tell(self, stage: str) -> None:
        self._stage = stage
        self._change()

    def _run(self) -> None:
        try:
            self._state = asyncio.run(self._lead())
        except GameloreError as error:
            self._error, self._state = str(error), "failed"
        except MemoryError:
            self._error = "expected a series that fits into the memory of its process, got a larger one; choose others"
            self._state = "failed"
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            self._error = f"expected the series to go on, got {type(error).__name__}: {error}; go on with it again"
            self._state = "failed"
        self._tell("ended")

    async def _lead(self) -> SeriesState:
        """Load the game, and play the series; return how it ended."""
        t_quantile(1)  # imports scipy, for which no match shall wait
        with processor_time(self._prepare_seconds):
            series = self._plan.series(self._folder, self._limits, self._change)
        self._loop, self._leading = asyncio.get_running_loop(), asyncio.ensure_future(self._play(series))
        if self._is_stopped:
            self._leading.cancel()
        try:
            await self._leading
        except asyncio.CancelledError:
            return "stopped"
        return "done"

    async def _play(self, series: WatchedSeries) -> None:
        self._tell("getting the players ready")
        async with series:
            self._publish(series)
            if len(series.played) < self._plan.matches:
                self._tell("asking the players who they are")
                self._notes += _notes(await series.ask_who())
                self._series = series
                self._tell("playing")
                on_match = partial(self._note_match, series)
                await series.run(self._plan.matches, on_match=on_match, give_up=GIVE_UP)
            self._tell("the players learn from the last match")

    def _note_match(self, series: WatchedSeries, number: int, _: MatchRecord) -> None:
        """Keep the times of a finished match, which its record has not, and tell the results."""
        if series.live is not None:
            write_whole(self._folder / f"seconds-{number:06}.json", json.dumps(series.live.seconds))
        self._publish(series)

    def _publish(self, series: WatchedSeries) -> None:
        aborted = frozenset(series.aborted())
        standings = series.standings()
        finished = [_finished(number, series.played[number], number in aborted) for number in sorted(series.played)]
        rows = [_row(standing, name) for standing, name in zip(standings, series.names, strict=True)]
        self._results = _Results(finished, rows, _curves(standings, self._plan.matches))
        self._change()


def _notes(answers: Mapping[str, PlayerInfo | Exception]) -> Iterator[str]:
    """Yield a line for each player that answers INFO unusually. Raise GameloreError if one cannot be reached."""
    for url, answer in answers.items():
        if isinstance(answer, ConnectionError):
            cause = printable(str(answer.__cause__ or answer))
            raise GameloreError(
                f"expected a player at {url}, got no connection ({cause}); start the player, or correct the address"
            )
        if isinstance(answer, TimeoutError):
            yield f"{url} has not said who it is within {INFO_SECONDS:g} s; the series begins all the same"
        elif not isinstance(answer, PlayerInfo):
            yield f"{url} does not answer like a player ({printable(str(answer))}); the series begins all the same"
        elif answer.status and not answer.is_free:
            yield f"{url} says that it is {answer.status}; the series begins all the same"


def _finished(number: int, record: MatchRecord, is_aborted: bool) -> tuple[int, int, tuple[int | None, ...], int, bool]:
    return number, len(record.moves), record.goals, len(record.events), is_aborted


def _row(standing: Standing, name: str) -> dict[str, Any]:
    """Return the results of a player: its mean goal with the 95 % interval, None for too few matches."""
    goals = [goal or 0 for goal in standing.counted]
    interval = mean_interval(goals)
    is_shown = bool(goals) and not interval.too_few
    return {
        "role": standing.role,
        "name": name,
        "matches": len(goals),
        "mean": round(interval.mean, 1) if goals else None,
        "low": round(max(0.0, interval.low), 1) if is_shown else None,
        "high": round(min(100.0, interval.high), 1) if is_shown else None,
        "errors": dict(standing.errors),
    }


def _curves(standings: Sequence[Standing], matches: int) -> list[dict[str, Any]]:
    """Return the learning curves of the players that may learn, else of all: points of (match, mean goal)."""
    window = max(LEAST_MEAN, min(MOST_MEAN, matches // 5))
    learners = [standing for standing in standings if standing.may_learn] or standings
    return [
        {"role": standing.role, "window": window, "points": _points(moving_mean(standing.counted, window))}
        for standing in learners
        if standing.counted
    ]


def _points(means: Sequence[float]) -> list[tuple[int, float]]:
    kept = np.unique(np.linspace(0, len(means) - 1, MOST_POINTS).astype(int)).tolist()
    return [(number + 1, round(means[number], 1)) for number in kept]


class HostingJob:
    """The requests of the page to a series. `begin` comes first, and once.

    Args:
        memory: bytes for the process
        prepare_seconds: processor time to load the game
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits, self._prepare_seconds = limits_within(memory, prepare_seconds), prepare_seconds
        self._hosting: _Hosting | None = None

    def idle(self) -> bool:
        """Do nothing between requests."""
        return False

    def begin(self, plan: Mapping[str, Any], folder: str) -> None:
        """Begin a series, or continue the one in the folder. Raise GameloreError for a plan that cannot be one."""
        self._hosting = _Hosting(HostingPlan.of(plan), Path(folder), self._limits, self._prepare_seconds)

    def progress(self, seen: int = -1) -> dict[str, Any]:
        """Return how far the series is.

        Args:
            seen: the version that the page has

        Returns:
            `version`; and unless it is the same, `state` ("running", "stopped", "failed" or "done"), `stage` (words),
            `error`, `notes` (unusual answers of players), `live` (see `LiveMatch.as_json`, or None), `finished` (see
            `_Results`), `standings` (see `_row`) and `curves` (see `_curves`).
        """
        hosting = self._begun()
        return {"version": seen} if hosting.version == seen else hosting.as_json()

    def stop(self) -> None:
        """End the series; `progress` tells when it has ended."""
        self._begun().stop()

    def _begun(self) -> _Hosting:
        if self._hosting is None:
            raise GameloreError("expected a series, got none; begin one first")
        return self._hosting


def _created(memory: int, **given: Any) -> HostingJob:
    """Return the object that answers the requests of this process."""
    os.environ.setdefault(CAP_VARIABLE, str(int(LOOKAHEAD * memory) >> 20))
    os.environ.setdefault(FOREST_VARIABLE, str(int(FOREST * memory) >> 20))
    return HostingJob(memory=memory, **given)


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(_created)


if __name__ == "__main__":
    main()
