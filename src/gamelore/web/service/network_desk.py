"""The player servers and series that the pages have started: each in a child process, watched by any number of pages.

What the pages have started goes on while any page is open, also without a connection for a while. GRACE after the
last one has closed, all of it is stopped. Series are kept on disk: their plan, their records, and how far they came.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import shutil
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from operator import call
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

from ...errors import GameloreError
from ...files import time_of_change, write_whole
from ...net.http import parse_url
from ...net.pool import WorkerProcess
from .archive import KEPT_ID, Archive
from .rule_processes import OPEN_SECONDS, RuleProcesses, Rules, TooBusy
from .shared_match import MOST_PLIES, SharedMatch, View
from .watchers import Watchers

SERVING, HOSTING = "gamelore.web.children.serving_job", "gamelore.web.children.hosting_job"
POLL_SECONDS = 0.25
ASK_SECONDS = 30.0  # limit for a request to a job, which answers at once
STOP_SECONDS = 20.0  # for a job to end by itself; players may learn from their last match
MOST_CLOCK, MOST_PAUSE, MOST_MATCHES, MOST_AT_ONCE = 600, 10, 1000, 10
MOST_PORT = (1 << 16) - 1
MOST_SERIES = 200  # on disk; the oldest are removed
MOST_OPEN = 20  # series in memory beside those that go on or that a page shows
MOST_VIEWS, MOST_TURNS = 200, 50  # pictures, and matches with their turns, of a series that are kept in memory
PLAN, PROGRESS, ALL_RECORDS = "plan.json", "progress.json", "records.jsonl"  # files in the folder of a series
log = logging.getLogger(__name__)


def checked_address(text: str) -> str:
    """Return the address of a player on the network. Raise ProtocolError unless it is http://ADDRESS:PORT."""
    return parse_url(text.strip()).geturl()


@dataclass(frozen=True, slots=True)
class SeatPlan:
    """A player.

    spec   its address, http://ADDRESS:PORT, or its name with options
    title  what the pages call it
    store  path of the knowledge store of a player with a name; None: it remembers nothing
    """

    spec: str
    title: str
    store: str | None = None


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """A player server.

    player   the player, by name
    port     0 for any free port
    at_once  maximum number of running matches
    """

    player: SeatPlan
    port: int = 0
    at_once: int = 2

    def __post_init__(self) -> None:
        _check_range("a port", self.port, 0, MOST_PORT)
        _check_range("a number of matches at once", self.at_once, 1, MOST_AT_ONCE)

    @property
    def name(self) -> str:
        """What the server calls itself."""
        return self.player.spec.partition(":")[0]


@dataclass(frozen=True, slots=True)
class SeriesPlan:
    """A series of matches of a game; clocks are in seconds. See `hosting_job.HostingPlan`."""

    rules: Rules
    roles: tuple[str, ...]
    seats: tuple[SeatPlan, ...]
    matches: int = 10
    startclock: int = 10
    playclock: int = 5
    scramble: bool = False
    pause: float = 0.5
    seed: int = field(default_factory=lambda: secrets.randbelow(1 << 31))

    def __post_init__(self) -> None:
        _check_range("a number of matches", self.matches, 1, MOST_MATCHES)
        _check_range("a startclock in seconds", self.startclock, 1, MOST_CLOCK)
        _check_range("a playclock in seconds", self.playclock, 1, MOST_CLOCK)
        _check_range("a pause in seconds", self.pause, 0, MOST_PAUSE)

    def for_job(self) -> dict[str, Any]:
        """Return the plan for `HostingJob.begin`."""
        given = {
            name: getattr(self, name) for name in ("matches", "startclock", "playclock", "scramble", "pause", "seed")
        }
        players = [{"spec": seat.spec, "store": seat.store} for seat in self.seats]
        return {"rules": self.rules.text, "name": self.rules.name, "players": players, **given}

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> SeriesPlan:
        """Return a plan from a file. Raise KeyError, TypeError or ValueError for anything else."""
        seats = tuple(SeatPlan(**seat) for seat in kept["seats"])
        return cls(**{**kept, "rules": Rules(**kept["rules"]), "roles": tuple(kept["roles"]), "seats": seats})


def _check_range(what: str, number: float, least: int, most: int) -> None:
    if not least <= number <= most:
        raise GameloreError(f"expected {what} from {least} to {most}, got {number:g}; choose another number")


# ---- jobs -------------------------------------------------------------------------------------------------------


class WatchedJob(ABC):
    """A job in a child process, and how far it is.

    progress   the last answer to `progress`; empty before the first one
    error      why the job has ended, if it failed
    """

    module: ClassVar[str]
    going: ClassVar[tuple[str, ...]]  # states of `progress` while the job goes on

    def __init__(self, processes: RuleProcesses, tell: Callable[[], None]) -> None:
        self.progress: Mapping[str, Any] = {}
        self.error = ""
        self._processes, self._tell = processes, tell
        self._job: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def is_on(self) -> bool:
        """Whether the job has not ended."""
        return self._job is not None and not self._job.done()

    @property
    def is_stopping(self) -> bool:
        """Whether the job was told to end, and has not ended yet."""
        return self.is_on and self._is_stopping

    def start(self) -> None:
        """Begin the job, or continue it, unless it goes on."""
        if not self.is_on:
            self.error, self._is_stopping = "", False
            self._job = asyncio.get_running_loop().create_task(self._work())
            self._job.add_done_callback(lambda _: self._tell())
            self._tell()

    def stop(self) -> None:
        """Let the job end soon; after STOP_SECONDS its process is killed."""
        self._is_stopping = True
        self._tell()

    async def ended(self) -> None:
        """Wait until the job has ended."""
        if self._job is not None:
            await asyncio.wait({self._job})

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the request `begin`."""

    def take(self, process: WorkerProcess) -> None:  # noqa: B027
        """Use a new progress. A job that needs only `progress` does nothing here."""

    async def _work(self) -> None:
        try:
            async with self._processes.job(self.module) as process:
                await process.ask("begin", ASK_SECONDS, **self.arguments())
                await self._follow(process)
            self.error = self.progress["error"]
        except GameloreError as error:  # such as WorkerDied
            self.error = str(error)
        except Exception as error:
            log.exception("a job failed")
            self.error = f"expected the job to go on, got {type(error).__name__}: {error}; start it again"

    async def _follow(self, process: WorkerProcess) -> None:
        """Ask for the progress until the job has ended, or must be killed."""
        version, deadline = -1, None
        while deadline is None or monotonic() < deadline:
            progress = await process.ask("progress", ASK_SECONDS, seen=version)
            if progress["version"] != version:
                version, self.progress = progress["version"], progress
                self.take(process)
                self._tell()
            if self.progress["state"] not in self.going:
                return
            if self._is_stopping and deadline is None:
                deadline = monotonic() + STOP_SECONDS
                await process.ask("stop", ASK_SECONDS)
            await asyncio.sleep(POLL_SECONDS)


class ServerRun(WatchedJob):
    """A player server.

    position   what the page shows of its oldest running match, else of its last one; None: nothing
    """

    module = SERVING
    going = ("starting", "ready", "stopping")

    def __init__(self, plan: ServerPlan, processes: RuleProcesses, tell: Callable[[], None]) -> None:
        super().__init__(processes, tell)
        self.plan = plan
        self.id = secrets.token_urlsafe(9)
        self.position: ServedPosition | None = None
        self._drawing: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address of the server; empty if it does not listen."""
        is_ready = self.is_on and self.progress.get("state") == "ready"
        return str(self.progress["url"]) if is_ready else ""

    def start(self) -> None:
        """See `WatchedJob`. The server begins anew."""
        if not self.is_on:
            self.progress, self.position = {}, None
        super().start()

    def arguments(self) -> dict[str, Any]:
        """See `WatchedJob`."""
        options = {"knowledge": self.plan.player.store}
        given = {"player": self.plan.player.spec, "name": self.plan.name, "port": self.plan.port}
        return {**given, "at_once": self.plan.at_once, "options": options}

    def take(self, process: WorkerProcess) -> None:
        """Draw the position of a match, unless a position is being drawn."""
        self._choose_match()
        if self._is_behind and (self._drawing is None or self._drawing.done()):
            self._drawing = asyncio.get_running_loop().create_task(self._draw(process))

    def _choose_match(self) -> None:
        """Let `position` be that of the match that is shown."""
        matches = self.progress["matches"]
        running = [match for match in matches if match["stage"] == "playing"]
        match = next(iter(running or matches), None)
        if match is None:
            self.position = None
            return
        if self.position is None or self.position.key != match["key"]:
            self.position = ServedPosition(match["key"])
        self.position.num_plies = match["num_plies"]

    @property
    def _is_behind(self) -> bool:
        return self.is_on and self.position is not None and self.position.is_behind

    async def _draw(self, process: WorkerProcess) -> None:
        """Draw the position until the picture is that of the last ply."""
        while self._is_behind:
            assert self.position is not None
            with suppress(GameloreError):  # the server has ended, or forgotten the match
                await self.position.go_on(process, self._processes)
                self._tell()
            await asyncio.sleep(POLL_SECONDS)


@dataclass(eq=False)
class ServedPosition:
    """The position of a match of a player server. A process of its own draws it, since rules of others are hostile.

    num_plies  number of plies of the match
    view       what `RuleWorker.view` returns; None if there is no picture
    error      why there is no picture
    """

    key: str
    num_plies: int = 0
    view: View | None = None
    error: str = ""
    _rules: Rules | None = None
    _plies: list[list[str]] = field(default_factory=list)
    _num_drawn: int = 0  # plies before the position of the view

    @property
    def is_behind(self) -> bool:
        """Whether the view is not that of the last ply. A position that cannot be drawn stays as it is."""
        return not self.error and (self.view is None or self._num_drawn < self.num_plies <= MOST_PLIES)

    async def go_on(self, server: WorkerProcess, processes: RuleProcesses) -> None:
        """Draw the present position. Raise GameloreError if the server does not know the match any more."""
        told = await server.ask("told", ASK_SECONDS, key=self.key, ply=len(self._plies) if self._rules else 0)
        self._rules = self._rules or Rules(told["rules"], "the game of this match")
        self._plies += told["plies"]
        try:
            self.view = await processes.ask(self._rules, "view", time_limit=OPEN_SECONDS, plies=self._plies)
        except TooBusy:  # a moment later, there may be a free process
            return
        except GameloreError as error:
            self.error = str(error)
        self._num_drawn = len(self._plies)


class Fault(NamedTuple):
    """A late, missing or illegal answer: "TO", "CE", or "IL" with the answer."""

    role: str
    kind: str
    text: str


class MatchTurn(NamedTuple):
    """A ply of a match of a series; the ply -1, START, has no moves."""

    moves: Sequence[str]
    seconds: float | None
    faults: Sequence[Fault]


class SeriesRun(WatchedJob):
    """A series of hosted matches, with its folder.

    Args:
        id: name of the folder
        folder: its path
        plan: what is played
    """

    module = HOSTING
    going = ("running",)

    def __init__(
        self, id: str, folder: Path, plan: SeriesPlan, processes: RuleProcesses, tell: Callable[[], None]
    ) -> None:
        super().__init__(processes, tell)
        self.id, self.folder, self.plan = id, folder, plan
        self._num_kept = -1  # finished matches in the kept progress
        self._turns: OrderedDict[int, list[MatchTurn]] = OrderedDict()
        self._views: OrderedDict[tuple[tuple[str, ...], ...], View] = OrderedDict()

    @classmethod
    def read(cls, folder: Path, processes: RuleProcesses, tell: Callable[[], None]) -> SeriesRun:
        """Return a series that was kept. Raise GameloreError for anything else."""
        try:
            plan = SeriesPlan.of_json(_read_json(folder / PLAN))
            series = cls(folder.name, folder, plan, processes, tell)
            if (folder / PROGRESS).is_file():
                series.progress = _read_json(folder / PROGRESS)
                series.error = series.progress["error"]
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise GameloreError(f"expected a series in {folder}, got something else ({error}); delete it") from None
        return series

    @property
    def finished(self) -> Sequence[Sequence[Any]]:
        """For each finished match its number, number of plies, goals, number of faults, and whether it was aborted."""
        finished: Sequence[Sequence[Any]] = self.progress.get("finished", ())
        return finished

    @property
    def is_done(self) -> bool:
        """Whether all matches are finished."""
        return len(self.finished) >= self.plan.matches

    @property
    def live(self) -> Mapping[str, Any] | None:
        """The present match, see `hosting_job.LiveMatch`; None if there is none."""
        live: Mapping[str, Any] | None = self.progress.get("live")
        return live if self.is_on else None

    def keep(self) -> None:
        """Write the plan to the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / PLAN, json.dumps(asdict(self.plan)))

    def arguments(self) -> dict[str, Any]:
        """See `WatchedJob`."""
        return {"plan": self.plan.for_job(), "folder": str(self.folder)}

    def take(self, process: WorkerProcess) -> None:
        """Keep the progress after each match and at the end."""
        if len(self.finished) != self._num_kept or self.progress["state"] not in self.going:
            self._num_kept = len(self.finished)
            with suppress(OSError):  # the series goes on; its records are in the folder
                write_whole(self.folder / PROGRESS, json.dumps({**self.progress, "live": None}))

    async def turns(self, number: int) -> Sequence[MatchTurn]:
        """Return the turns of a match, START first, from its record or while it is played.

        Raise GameloreError if there is no such match.
        """
        if number not in self._turns and any(number == finished[0] for finished in self.finished):
            self._turns[number] = await asyncio.to_thread(self._recorded_turns, number)
            while len(self._turns) > MOST_TURNS:
                self._turns.popitem(last=False)
        if number in self._turns:
            return self._turns[number]
        if (live := self.live) is not None and live["number"] == number:
            return _live_turns(live)
        raise GameloreError(f"expected a match of this series, got number {number + 1}; choose another match")

    def _recorded_turns(self, number: int) -> list[MatchTurn]:
        """Return the turns of a finished match, from its record and the file of its times."""
        path, times = self.record_path(number), self.folder / f"seconds-{number:06}.json"
        try:
            record = _read_json(path)
            faults, moves = _recorded_faults(record, self.plan.roles), record["moves"]
            seconds = _read_json(times) if times.is_file() else [None] * len(moves)
            turns = [MatchTurn(*turn) for turn in zip(moves, seconds, faults[1:], strict=True)]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise GameloreError(f"expected a match record in {path}, got something else ({error}); delete it") from None
        return [MatchTurn((), None, faults[0]), *turns]

    async def view_at(self, plies: Sequence[Sequence[str]]) -> View:
        """Return the position after joint moves, see `RuleWorker.view`."""
        key = tuple(map(tuple, plies))
        if key not in self._views:
            rules = self.plan.rules
            self._views[key] = await self._processes.ask(rules, "view", time_limit=OPEN_SECONDS, plies=plies)
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(key)
        return self._views[key]

    async def branch(self, plies: Sequence[Sequence[str]], archive: Archive) -> SharedMatch:
        """Return a match of people that begins with these joint moves."""
        match = archive.new(rules=self.plan.rules)
        match.plies, match.choosers = [list(joint) for joint in plies], [[] for _ in plies]
        await match.open()
        match.keep(match)
        return match

    def record_path(self, number: int) -> Path:
        """Return the path of the record of a finished match."""
        return self.folder / f"match-{number:06}.json"

    def all_records(self) -> Path:
        """Write all records to one file, one a line, and return its path."""
        paths = [self.record_path(finished[0]) for finished in self.finished]
        write_whole(
            self.folder / ALL_RECORDS, "".join(f"{path.read_text(encoding='utf-8').strip()}\n" for path in paths)
        )
        return self.folder / ALL_RECORDS


def _recorded_faults(record: Mapping[str, Any], roles: Sequence[str]) -> list[list[Fault]]:
    """Return the faults of START and of each ply of a record in the common format."""
    rows = record.get("errors") or [[""] * len(roles)] * (len(record["moves"]) + 1)
    return [
        [Fault(role, *_kind_and_text(error)) for role, error in zip(roles, row, strict=True) if error] for row in rows
    ]


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _live_turns(live: Mapping[str, Any]) -> list[MatchTurn]:
    """Return the turns of a match that goes on; the last one may have no moves yet."""
    turns = []
    for phase, faults in enumerate(live["faults"]):
        moves = live["moves"][phase - 1] if 0 < phase <= len(live["moves"]) else ()
        seconds = live["seconds"][phase - 1] if 0 < phase <= len(live["seconds"]) else None
        if phase == 0 or moves or faults:
            turns.append(MatchTurn(moves, seconds, [Fault(*fault) for fault in faults]))
    return turns


def _kind_and_text(error: str) -> tuple[str, str]:
    kind, _, text = error.partition(" ")
    return kind, text


# ---- all of it --------------------------------------------------------------------------------------------------


class NetworkDesk:
    """All player servers and series of the pages.

    Args:
        folder: folder of the series
        processes: the processes that know rules
    """

    def __init__(self, folder: Path, processes: RuleProcesses) -> None:
        self._folder, self._processes = folder, processes
        self.servers: dict[str, ServerRun] = {}
        self._series: WeakValueDictionary[str, SeriesRun] = WeakValueDictionary()  # pages hold those that they show
        self._open: OrderedDict[str, SeriesRun] = OrderedDict()  # the last ones, and those that go on
        self._watchers: Watchers[Callable[[], None]] = Watchers(self.stop)
        kept = _by_age(folder)
        for path in kept[MOST_SERIES:]:
            shutil.rmtree(path, ignore_errors=True)
        self._kept = [path.name for path in kept[:MOST_SERIES]]  # ids, the last begun first

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call a function after each change, until the returned function is called.

        GRACE after the last watcher has left, all servers and series are stopped.
        """
        return self._watchers.add(on_change)

    def stop(self) -> None:
        """Stop all servers and series."""
        for job in (*self.servers.values(), *self._series.values()):
            if job.is_on:
                job.stop()

    def serve(self, plan: ServerPlan) -> ServerRun:
        """Start a player server."""
        server = ServerRun(plan, self._processes, self._tell)
        self.servers[server.id] = server
        server.start()
        self._watchers.end_unless_watched()  # the page may have closed meanwhile
        return server

    def forget(self, server: ServerRun) -> None:
        """Remove a server that has ended."""
        if not server.is_on:
            self.servers.pop(server.id, None)
            self._tell()

    def host(self, plan: SeriesPlan) -> SeriesRun:
        """Begin a series. Raise GameloreError if the disk refuses it."""
        id = secrets.token_urlsafe(9)
        series = SeriesRun(id, self._folder / id, plan, self._processes, self._tell)
        try:
            series.keep()
        except OSError as error:
            raise GameloreError(f"expected to write to {series.folder}, got {error}; make room there") from None
        self._kept.insert(0, id)
        self._hold(series)
        series.start()
        self._drop_oldest()
        self._watchers.end_unless_watched()
        return series

    def series(self, id: str) -> SeriesRun:
        """Return the series with an id. Raise GameloreError if there is none."""
        series = self._series.get(id)
        if series is None:
            folder = self._folder / id
            if not KEPT_ID.fullmatch(id) or not folder.is_dir():
                raise GameloreError("expected the address of a series, got one that is not kept here; begin a new one")
            series = SeriesRun.read(folder, self._processes, self._tell)
        return self._hold(series)

    def _hold(self, series: SeriesRun) -> SeriesRun:
        """Keep a series in memory until MOST_OPEN others were asked for; return it."""
        self._series[series.id] = self._open[series.id] = series
        self._open.move_to_end(series.id)
        for old in [old for old in list(self._open.values())[:-MOST_OPEN] if not old.is_on]:
            del self._open[old.id]
        return series

    def _drop_oldest(self) -> None:
        """Remove the oldest series, with their records, while there are more than MOST_SERIES."""
        for id in self._kept[MOST_SERIES:]:
            if (series := self._series.get(id)) is None or not series.is_on:
                self._remove(id)

    def _remove(self, id: str) -> None:
        self._series.pop(id, None)
        self._open.pop(id, None)
        self._kept.remove(id)
        shutil.rmtree(self._folder / id, ignore_errors=True)

    def kept(self, most: int) -> Iterator[SeriesRun]:
        """Yield the series that began last, at most so many."""
        for id in self._kept[:most]:
            try:
                yield self.series(id)
            except GameloreError as error:
                log.warning("%s", error)
                self._kept.remove(id)

    def delete(self, series: SeriesRun) -> None:
        """Remove a series that does not go on, with its records."""
        if not series.is_on and series.id in self._kept:
            self._remove(series.id)
            self._tell()

    def _tell(self) -> None:
        self._watchers.tell(call)


def _by_age(folder: Path) -> list[Path]:
    """Return the folders of all series, the one that began last first."""
    plans = [(time_of_change(path), path.parent) for path in folder.glob(f"*/{PLAN}")]
    return [path for _, path in sorted(plans, reverse=True)]
