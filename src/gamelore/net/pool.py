"""The pool that starts child processes (worker.py, follower.py), shares them among matches, limits and replaces them.

Rules from the network may be too large, and a player may hang or crash. Then only its worker process is lost. The pool
keeps all reports that a match received, so that another process can continue the match. Learned knowledge is in the
knowledge store. A player that keeps its knowledge between matches has only one process for each game, so that only one
process writes this knowledge. Other players may have several processes for a game. One spare process is always ready,
with all modules imported. It recognises new rules, becomes the process of a game, or replaces a process that died.

A process handles one request at a time. The pool kills it if it exceeds the time limit of a request. A caller may stop
waiting for an answer, because a turn is over. The process still finishes the request, so that both sides keep the same
state and nothing that it has prepared is lost; it then hears of the moves that it missed. Only a process that is late
by more than `patience` seconds is killed: it probably hangs. If the match is over, it has OVER_SECONDS.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import signal
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, count
from math import inf
from typing import Any, Self, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from ..errors import GameloreError
from ..gdl.syntax import printable
from .fork_server import kill_group, start_child
from .requests import MAX_LINE, OUT_OF_MEMORY, Advanced, Ended, error_of

# The process that listens does not import these modules: they import all players, see fork_server.py.
WORKER, FOLLOWER = f"{__package__}.worker", f"{__package__}.follower"
MIN_MEMORY = 1 << 30  # bytes; Python with clingo, LLVM and numba uses half of them before it loads any game
HELLO_SECONDS = 1800.0  # time limit for a process to start; it may have to compile all kernels, on a busy machine
LOOK_SECONDS = 20.0  # time limit to recognise the game of some rules
QUICK_LOOK = 0.5  # seconds in which most games are recognised; after it, another spare process is started
LEARN_SECONDS = 300.0  # time limit for learning between matches
CLOSE_SECONDS = 10.0  # time limit for learning before the process ends
OVER_SECONDS = 2.0  # time limit to finish a choice for a match that is over
BUSY_MACHINE = 4  # factor from the time limit to prepare a game to its limit of elapsed time: others use the processor
END_SECONDS = 3.0  # time limit for a process to end by itself after its input is closed
TRIES = 2  # a running match is given up when a request of it has killed this many processes
START_TRIES = 3  # number of processes that may die one after the other while they start
ALL_TRIES = 6  # as TRIES, but counting also processes that another match may have killed
IDLE = 3  # number of processes to keep that have no match
GAMES = 100  # number of games to remember
TEXTS = 500  # number of texts of rules for which the game is remembered
LATE = "the process needed more than its {:g} s for the request {}"
NEW_TEXT = 1_000_000  # maximum total characters of the rules of new games that are sent to a process

Opening: TypeAlias = Callable[[tuple[str, ...]], None]
T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerSettings:
    """Settings of worker processes.

    player, options  arguments for `catalogue.player`; options are knowledge, opponent, seed, learn, quota, search ..
    memory           bytes for a process, at least 1 GiB
    prepare_seconds  limit of processor time to get a game ready; the limit of elapsed time is BUSY_MACHINE times this;
                     limit of elapsed time to process a report
    processes        maximum number of processes for each game, if the player keeps no knowledge; None for the number of
                     cores
    patience         seconds for a process to finish a request when nobody waits for its answer any more
    module           name of the module that the processes run

    Raise GameloreError for values outside these bounds.
    """

    player: str
    options: Mapping[str, Any] = field(default_factory=dict)
    memory: int = 4 << 30
    prepare_seconds: float = 60.0
    processes: int | None = None
    patience: float = 60.0
    module: str = WORKER

    def __post_init__(self) -> None:
        if self.memory < MIN_MEMORY:
            raise GameloreError(f"expected at least {MIN_MEMORY} bytes of memory, got {self.memory}; allow more")
        if not (self.prepare_seconds > 0 and self.patience > 0):
            raise GameloreError("expected prepare_seconds and patience above 0, got a smaller value; allow more time")
        if self.processes is not None and self.processes < 1:
            raise GameloreError(
                f"expected at least 1 process, got {self.processes}; leave it out for one process on each core"
            )


class WorkerDied(GameloreError):
    """Error: the process has ended.

    is_mine         whether no other match ever used the process, so that this request must be the cause
    is_over_limit   whether the process was ended because it exceeded a limit, as the next one would
    """

    def __init__(self, why: str, is_mine: bool, is_over_limit: bool = False) -> None:
        super().__init__(f"expected an answer from a worker process, got none: {why}")
        self.is_mine, self.is_over_limit = is_mine, is_over_limit


@dataclass(eq=False, slots=True)
class Request:
    """A request to a process. The process has `seconds` from the time when it begins to handle the request.

    match  key of the match; empty for a request that belongs to no match
    """

    do: str
    match: str
    line: bytes
    seconds: float
    reply: asyncio.Future[Any]

    def fail(self, why: str, is_mine: bool = False, is_over_limit: bool = False) -> None:
        """Make the reply fail with `WorkerDied`, unless it is done."""
        if not self.reply.done():
            self.reply.set_exception(WorkerDied(why, is_mine, is_over_limit))


class WorkerProcess(asyncio.SubprocessProtocol):
    """A child process of the pool. The constructor starts it; requests wait in a queue until it runs.

    hello         the first request. Its answer is `Worker.is_lasting`: whether the player keeps its knowledge. If it
                  fails, the process is killed
    num_matches   number of matches that are in this process now
    num_seated    number of matches that ever were in this process
    left_at       time when the last match left the process, in seconds of `time.monotonic`
    is_alive      whether the process takes requests
    is_over_limit whether the process was ended because it exceeded a limit of time or memory
    gone          future that is done when the process has ended
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self.num_matches = self.num_seated = 0
        self.left_at = 0.0
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._working: Request | None = None
        self._waiting: deque[Request] = deque()
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self.is_alive, self.is_over_limit = True, False
        self._ever_learns = False
        self._has_to_learn = False
        options = {name: value for name, value in settings.options.items() if value is not None}
        given = {"player": settings.player, "options": options, "memory": settings.memory}
        self.hello = self.post("hello", HELLO_SECONDS, **given, prepare_seconds=settings.prepare_seconds)
        self.hello.reply.add_done_callback(self._greeted)
        self._spawning = asyncio.create_task(self._spawn())
        self._spawning.add_done_callback(self._spawned)

    @property
    def is_idle(self) -> bool:
        """Whether the process has no match and no request."""
        return not (self.num_matches or self._working or self._waiting or self._has_to_learn)

    async def ask(self, do: str, seconds: float, /, **given: Any) -> Any:
        """Send a request and return its answer.

        Raise the error that the request raised in the process, or `WorkerDied`.
        """
        return await self.answer(self.post(do, seconds, **given))

    async def answer(self, request: Request) -> Any:
        """Return the answer to a request of `post`, when it has come. Raise as `ask` does."""
        try:
            return await request.reply
        except asyncio.CancelledError:
            self._give_up(request)
            raise

    def post(self, do: str, seconds: float, /, **given: Any) -> Request:
        """Queue a request and return it, without waiting for its answer."""
        line = json.dumps({"do": do, **given}, default=os.fspath).encode() + b"\n"
        request = Request(do, given.get("match", ""), line, seconds, self._loop.create_future())
        request.reply.add_done_callback(_retrieve_error)
        if not self.is_alive:
            request.fail("the process has ended")
        elif len(line) > MAX_LINE:
            request.reply.set_exception(
                GameloreError(f"expected a request of at most {MAX_LINE} bytes, got {len(line)}")
            )
        else:
            self._waiting.append(request)
            self._go_on()
        return request

    def learn_soon(self) -> None:
        """Let the player learn as soon as the process has no other request."""
        self._ever_learns = self._has_to_learn = True
        self._go_on()

    def hasten(self, match: str) -> None:
        """Give a choice in progress for this match only OVER_SECONDS more, because the match is over."""
        if self._working is not None and (self._working.do, self._working.match) == ("choose", match):
            self._shorten(min(self._settings.patience, OVER_SECONDS))

    def kill(self, why: str) -> None:
        """Kill the process at once, with all its child processes. All its requests fail for the reason `why`."""
        self.is_alive = False
        self._fail(why)
        if self._transport is None:
            self._spawning.cancel()
        elif self._transport.get_returncode() is None:
            kill_group(self._transport)

    def end(self) -> None:
        """Let the process end by itself. Kill it if it still runs after END_SECONDS."""
        if not self.is_alive:
            return
        requests = self._transport and self._transport.get_pipe_transport(0)
        if requests is None:
            self.kill("the process was told to end")
        else:
            self.is_alive = False
            self._fail("the process was told to end")
            requests.close()
            self._timer = self._loop.call_later(END_SECONDS, self.kill, "the process did not end in time")

    async def close(self, learns: bool) -> None:
        """End the process, and wait until it has ended.

        learns: let the player first learn from finished matches for at most CLOSE_SECONDS.
        """
        self._fail_waiting("the player server ends")
        if learns and self.is_alive and self._ever_learns:
            await asyncio.wait({self.post("learn", CLOSE_SECONDS).reply}, timeout=CLOSE_SECONDS)
        if self._working is not None:
            self.kill("the player server ends")
        self.end()
        await self.gone

    async def _spawn(self) -> None:
        """Start the process, within the time limit of its first request."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                await start_child(lambda: self, self._settings.module)
        except (TimeoutError, ConnectionResetError) as error:
            self.is_alive, self.is_over_limit = False, isinstance(error, TimeoutError)
            self._fail(LATE.format(HELLO_SECONDS, "hello") if self.is_over_limit else str(error))
            self.connection_lost(error)
        except OSError as error:
            if not self.hello.reply.done():
                refused = GameloreError(f"expected to start a new process, got {error}; end other processes first")
                self.hello.reply.set_exception(refused)
            self.connection_lost(error)

    def _spawned(self, spawning: asyncio.Task[None]) -> None:
        if spawning.cancelled():
            self.connection_lost(None)

    def _greeted(self, hello: asyncio.Future[Any]) -> None:
        if hello.cancelled() or hello.exception() is not None:
            self.kill("the process did not start correctly")

    # callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.SubprocessProtocol`."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        if not self.is_alive:
            kill_group(transport)
        self._go_on()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self._received += data
        if b"\n" in data:
            *lines, self._received = self._received.split(b"\n")
            for line in lines:
                self._answered(bytes(line))
        elif len(self._received) > MAX_LINE:
            self.kill("the answer of the process was too long")

    def process_exited(self) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self.is_alive = False
        assert self._transport is not None
        code = self._transport.get_returncode()
        self.is_over_limit |= code in {OUT_OF_MEMORY, -signal.SIGXCPU}
        self._fail(self._end_text(code))
        kill_group(self._transport)  # its child processes may keep the pipe to this process open
        self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self._set_timer(None)
        if not self.gone.done():
            self.gone.set_result(None)

    def _go_on(self) -> None:
        """Send the next request, if there is one and the process is free."""
        if self._working is not None or self._transport is None or not self.is_alive:
            return
        if not self._waiting and self._has_to_learn:
            self._has_to_learn = False
            self.post("learn", LEARN_SECONDS).reply.add_done_callback(_log_failure)
        elif self._waiting:
            self._working = self._waiting.popleft()
            self._set_timer(self._loop.time() + self._working.seconds)
            requests = self._transport.get_pipe_transport(0)
            assert isinstance(requests, asyncio.WriteTransport)
            requests.write(self._working.line)

    def _give_up(self, request: Request) -> None:
        """Limit the time of a request for which nobody waits any more."""
        if request is self._working:
            self._shorten(self._settings.patience)
        elif request.do == "choose":  # may be dropped; all other requests change the state in the process
            with suppress(ValueError):
                self._waiting.remove(request)

    def _answered(self, line: bytes) -> None:
        request, self._working = self._working, None
        if request is None:
            self.kill("the process sent an answer without a request")
            return
        self._set_timer(None)
        if not request.reply.done():
            answer = json.loads(line)
            if "error" in answer:
                request.reply.set_exception(error_of(**answer))
            else:
                request.reply.set_result(answer["ok"])
        self._go_on()

    def _shorten(self, seconds: float) -> None:
        """Leave the request in progress at most so many more seconds."""
        assert self._timer is not None
        self._set_timer(min(self._timer.when(), self._loop.time() + seconds))

    def _set_timer(self, when: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if when is None else self._loop.call_at(when, self._overdue)

    def _overdue(self) -> None:
        assert self._working is not None
        do, seconds, self.is_over_limit = self._working.do, self._working.seconds, True
        self.kill(LATE.format(seconds, do))

    def _fail(self, why: str) -> None:
        """Make all requests of the process fail."""
        self._set_timer(None)
        self._fail_waiting(why)
        if self._working is not None:
            self._working.fail(why, self.num_seated <= 1, self.is_over_limit)
            self._working = None

    def _fail_waiting(self, why: str) -> None:
        while self._waiting:
            self._waiting.popleft().fail(why)

    def _end_text(self, code: int | None) -> str:
        memory, seconds = self._settings.memory, self._settings.prepare_seconds
        limits = {OUT_OF_MEMORY: (f"{memory / 1e9:.1f} GB of memory", "memory")}
        limits[-signal.SIGXCPU] = (f"{seconds:g} s of processor time", "time")
        if code in limits:
            limit, what = limits[code]
            return f"the process needed more than its {limit}; allow more {what} if you want to play this game"
        return f"the process died (exit code {code}); its error message, if any, is on standard error"


def _retrieve_error(reply: asyncio.Future[Any]) -> None:
    """Mark the error of a future as retrieved, so that the event loop does not log it."""
    if not reply.cancelled():
        reply.exception()


def _log_failure(reply: asyncio.Future[Any]) -> None:
    if error := None if reply.cancelled() else reply.exception():
        log.warning("the player has not learned from its last matches yet: %s", printable(str(error)))


@dataclass
class GameSeats:
    """A game, its processes, and an iterator over the numbers of its matches.

    `new_games` is what other workers need to recognise the game: a list with (name, hash of the rules, rules), empty if
    the game is not new.
    """

    name: str
    new_games: Sequence[Sequence[str]]
    processes: list[WorkerProcess] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    numbers: Iterator[int] = field(default_factory=count)

    def alive(self) -> list[WorkerProcess]:
        """Return the processes that take requests."""
        return [process for process in self.processes if process.is_alive]


class Workers:
    """All worker processes of one player. Use `async with Workers(settings) as workers`.

    Entering this context raises GameloreError if the player cannot be created.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        self.is_lasting = False
        self._spare: WorkerProcess | None = None
        self._looking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by the hash of the text
        self._games: OrderedDict[str, GameSeats] = OrderedDict()
        self._keys: OrderedDict[str, str] = OrderedDict()  # hash of a text of rules -> key of its game
        self._processes: set[WorkerProcess] = set()
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        try:
            self._give_back(await self._take_spare())
        except BaseException:
            await self.close(learns=False)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self.close(learns=kind is None)

    async def prepare(self, rules: str) -> str:
        """Get a game and the player ready to play, and return the name of the game. Raise as `start` does."""
        game, process = await self.seat(rules)
        try:
            await process.ask("prepare_player", LEARN_SECONDS, rules=rules)
        finally:
            self.leave(process)
        return game.name

    async def start(
        self, match: str, role: str, rules: str, on_opening: Opening | None = None, **clock: float
    ) -> RunningMatch:
        """Begin a match; `clock`: see `RunningMatch`. `on_opening` receives the role's first legal moves soon.

        Raise GDLError for rules that cannot be played, any other GameloreError that the worker process raises, and
        GameloreError if this process dies or exceeds its limits.
        """
        running = RunningMatch(self, match, {"role": role, "rules": rules}, on_opening)
        running.clock = clock
        try:
            await running.begin()
        except BaseException:
            await running.abort()
            raise
        return running

    async def close(self, learns: bool = True) -> None:
        """End all processes. `learns`: let them first learn from finished matches for at most CLOSE_SECONDS."""
        self._is_open = False
        await asyncio.gather(*(process.close(learns) for process in list(self._processes)))

    # for RunningMatch

    async def seat(self, rules: str) -> tuple[GameSeats, WorkerProcess]:
        """Return the game of these rules, and a process in which the game is ready.

        The process counts one more match until the call of `leave`.
        """
        game = await self._recognised(rules)
        async with game.lock:
            process = await self._process_for(game)
            process.num_matches += 1
            process.num_seated += 1
            try:
                seconds = BUSY_MACHINE * self.settings.prepare_seconds
                await process.ask("prepare", seconds, rules=rules, new_games=game.new_games)
            except BaseException:
                self.leave(process)
                if process.num_seated == 1:  # else it knows the game, and what it was taught
                    process.kill("the match of the process was given up")
                raise
            finally:
                self._refill()
        return game, process

    def leave(self, process: WorkerProcess) -> None:
        """Count one match less in a process. End idle processes until at most IDLE of them are left.

        Those that had a match most recently are kept.
        """
        process.num_matches -= 1
        process.left_at = time.monotonic()
        idle = [process for game in self._games.values() for process in game.alive() if process.is_idle]
        for process in sorted(idle, key=lambda process: process.left_at)[:-IDLE]:
            process.end()

    async def _recognised(self, rules: str) -> GameSeats:
        """Return the game of these rules.

        Each new text is examined by a process of its own, so that none waits for others. Texts that differ only in
        upper and lower case are the same game, and need not wait until a spare process is ready to examine them.
        """
        digest = hashlib.sha256(rules.lower().encode()).hexdigest()
        if self._keys.get(digest) not in self._games:
            async with self._looking.setdefault(digest, asyncio.Lock()):
                if self._keys.get(digest) not in self._games:
                    self._keys[digest], game = await self._compared(rules)
                    self._games.setdefault(self._keys[digest], game)
        key = self._keys[digest]
        self._keys.move_to_end(digest)
        self._games.move_to_end(key)
        game = self._games[key]
        self._forget()
        return game

    async def _compared(self, rules: str) -> tuple[str, GameSeats]:
        """Let the spare process recognise the game of these rules. Return (key of the game, its seats).

        Another text of the same new game may be recognised in the meantime. The name of a new game is a hash that does
        not depend on names and order in the rules. So only if a new game has the same name, another look is needed.
        """
        while True:
            process = await self._take_spare()
            seen = set(self._games)
            try:
                key, game = await self._look(process, rules)
                others = (self._games[other] for other in self._games.keys() - seen)
                if not (game.new_games and any(other.new_games and other.name == game.name for other in others)):
                    return key, game
                process.kill("the process takes the game for a new one from now on")
            finally:
                self._give_back(process)

    async def _look(self, process: WorkerProcess, rules: str) -> tuple[str, GameSeats]:
        """Let a process recognise the game of these rules. Return (key of the game, a `GameSeats` without processes).

        If this takes long, start another spare process for the texts that come in the meantime.
        """
        seconds = min(LOOK_SECONDS, self.settings.prepare_seconds)
        looking = process.post("recognise", seconds, rules=rules, new_games=self._new_games())
        await asyncio.wait({looking.reply}, timeout=QUICK_LOOK)
        if not looking.reply.done():
            self._refill()
        recognised = await process.answer(looking)
        key, name = recognised["key"], recognised["name"]
        return key, GameSeats(name, [(name, key, rules)] if recognised["is_new"] else [])

    def _new_games(self) -> list[Sequence[str]]:
        """Return the new games, which other processes may not know: latest first, with at most NEW_TEXT characters."""
        entries = [entry for game in reversed(self._games.values()) for entry in game.new_games]
        sizes = accumulate(len(text) for _, _, text in entries)
        return [entry for entry, size in zip(entries, sizes, strict=True) if size <= NEW_TEXT]

    def _forget(self) -> None:
        """Forget the oldest text beyond TEXTS texts, and the oldest unused games beyond GAMES games."""
        if len(self._keys) > TEXTS:
            self._keys.popitem(last=False)
        unused = [key for key, game in self._games.items() if not game.alive() and not game.lock.locked()]
        for key in unused[: max(0, len(self._games) - GAMES)]:
            del self._games[key]

    async def _process_for(self, game: GameSeats) -> WorkerProcess:
        """Return the process for one more match of a game: a process of this game, or the spare process."""
        alive = sorted(game.alive(), key=lambda process: process.num_matches)
        most = 1 if self.is_lasting else self.settings.processes or os.cpu_count() or 1
        if alive and (not alive[0].num_matches or len(alive) >= most):
            return alive[0]
        await asyncio.gather(*(process.gone for process in game.processes if not process.is_alive))
        process = await self._take_spare()
        game.processes = [*game.alive(), process]
        return process

    async def _take_spare(self) -> WorkerProcess:
        """Remove the spare process from the pool and return it, as soon as it has created the player.

        Start another process if it dies before, but not more than START_TRIES in all, and none after a process that
        was too slow.
        """
        num_dead = 0
        while True:
            self._refill()
            process, self._spare = self._spare, None
            if process is None:
                raise GameloreError("expected open workers, got closed workers; use workers only within `async with`")
            try:
                self.is_lasting = await process.answer(process.hello)
                return process
            except WorkerDied as died:
                num_dead += 1
                if num_dead == START_TRIES or process.is_over_limit:
                    raise
                log.warning("a process died while it started, so another one is started: %s", died)

    def _give_back(self, process: WorkerProcess) -> None:
        """Make an idle process the spare process again.

        End it if it is busy or if there is another spare process. A dead process leaves the spare process as it is.
        """
        if process.is_alive:
            self._keep_or_end(process)
        self._refill()

    def _keep_or_end(self, process: WorkerProcess) -> None:
        if not process.is_idle:
            process.kill("nobody waits for the answer of the process")
        elif self._spare is not None and self._spare.hello.reply.done():
            process.end()
        else:
            starting, self._spare = self._spare, process
            if starting is not None:
                starting.end()

    def _refill(self) -> None:
        """Start a spare process if there is none and the pool is open."""
        if self._spare is not None and not self._spare.is_alive:
            self._spare = None
        if self._is_open and self._spare is None:
            process = self._spare = WorkerProcess(self.settings)
            self._processes.add(process)
            process.gone.add_done_callback(lambda _: self._processes.discard(process))


class RunningMatch:
    """A match that runs in a process. If the process dies, the match continues in another process.

    Calls are answered in their order. The match keeps all reports of the host, even those of cancelled calls. All
    methods raise GameloreError if the match is over, or if it was given up because it killed several processes.

    id      id of the match, as the host wrote it
    game    name of the game; "game-" and some digits for an unknown game
    number  number of the match for its random streams; see `PlayerMatches.start`
    clock   `deadline` and `startclock` for `Worker.start`; {} if they are not known
    """

    def __init__(self, workers: Workers, id: str, about: dict[str, Any], on_opening: Opening | None) -> None:
        self.id, self.game = id, ""
        self.number: int | None = None
        self.clock: Mapping[str, float] = {}
        self._workers, self._about, self._seconds = workers, about, workers.settings.prepare_seconds
        self._key = f"{id}#{secrets.token_hex(8)}"  # the store notes it after learning
        self._history: list[Sequence[str] | None] = []
        self._num_told = 0  # number of reports in the history that the present process knows
        self._state: Advanced | None = None
        self._on_opening = on_opening
        self._process: WorkerProcess | None = None
        self._seating: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[Ended] | None = None
        self._is_over = False

    async def begin(self) -> None:
        """Start the match. Only `Workers.start` calls this, once."""
        await self._do(self._tell)

    async def advance(self, moves: Sequence[str] | None) -> Advanced:
        """See `PlayerMatches.advance`."""
        self._history.append(moves)
        return await self._do(self._tell)

    async def thinks(self) -> bool:
        """Return whether the player uses the time in which nobody asks it; see `Worker.ponder`."""
        return await self._do(lambda process: process.ask("ponder", self._seconds, match=self._key))

    async def choose(self, seconds: float) -> str:
        """Return the player's move, with a thinking time of `seconds`; see `PlayerMatches.choose`.

        The matches of a process share the thinking time. Raise GameloreError if the process dies, or if it exceeds the
        thinking time by `patience` seconds.
        """
        until = time.monotonic() + seconds

        async def choose(process: WorkerProcess) -> Any:
            self._post_history(process)
            limit = max(0.0, until - time.monotonic()) + self._workers.settings.patience
            share = seconds / max(1, process.num_matches)
            return await process.ask("choose", limit, match=self._key, deadline=until, share=share)

        return str(await self._do(choose, until))

    async def stop(self, moves: Sequence[str] | None) -> Ended:
        """See `PlayerMatches.stop`. The player learns from the match as soon as its process has no other request."""
        if self._stopping is None:
            if self._process is not None:
                self._process.hasten(self._key)
            self._stopping = asyncio.create_task(self._do(lambda process: self._stop(process, moves)))
            self._stopping.add_done_callback(_retrieve_error)
        return await asyncio.shield(self._stopping)

    async def abort(self) -> None:
        """Give up the match, unless `stop` was called before. The player does not learn from the match.

        A choice in progress has OVER_SECONDS to come to its end.
        """
        if self._is_over or self._stopping is not None:
            return
        self._is_over = True
        if self._seating is not None:
            self._seating.cancel()
        elif self._process is not None:
            self._abandon(self._process)

    async def _stop(self, process: WorkerProcess, moves: Sequence[str] | None) -> Ended:
        self._post_history(process)
        try:
            end, goals, *others = await process.ask("stop", self._seconds, match=self._key, moves=moves)
        except WorkerDied:
            raise
        except GameloreError:  # an error of the store or the player; the match has ended nevertheless
            self._is_over = True
            self._abandon(process)
            raise
        process.learn_soon()
        self._workers.leave(process)
        self._is_over = True
        return Ended(end, tuple(goals), *others)

    async def _tell(self, process: WorkerProcess) -> Advanced:
        last = self._post_history(process)
        if last is not None:
            self._state = _advanced(await process.answer(last))
        assert self._state is not None
        return self._state

    def _post_history(self, process: WorkerProcess) -> Request | None:
        """Post the reports that the process does not know. Return the last of these requests, or None."""
        last = None
        for moves in self._history[self._num_told :]:
            last = process.post("advance", self._seconds, match=self._key, moves=moves)
        self._num_told = len(self._history)
        return last

    async def _do(self, ask: Callable[[WorkerProcess], Awaitable[T]], until: float = inf) -> T:
        """Return the answer of a process. If it dies before `until` (monotonic seconds), ask another process.

        A match that has not begun is given up at once if the process exceeded a limit: another one would, too.
        """
        ours = deaths = 0
        while True:
            try:
                return await ask(await self._seated())
            except WorkerDied as died:
                ours, deaths = ours + died.is_mine, deaths + 1
                is_enough = ours >= TRIES or deaths >= ALL_TRIES or (self._state is None and died.is_over_limit)
                self._is_over |= is_enough and until == inf
                if is_enough or time.monotonic() >= until:
                    raise
                text, about = "match %s continues in another process: %s", {"match": self.id.lower()}
                log.warning(text, printable(self.id), died, extra=about)  # see `player_server.Sparing`

    async def _seated(self) -> WorkerProcess:
        """Return the process in which the match runs. If it has died, start the match in another process."""
        if self._is_over:
            raise GameloreError(f"expected a running match, got {printable(self.id)}, which is over; start another")
        if self._process is None or not self._process.is_alive:
            if self._seating is None:
                self._seating = asyncio.create_task(self._take_seat())
                self._seating.add_done_callback(_retrieve_error)
            await asyncio.shield(self._seating)
        assert self._process is not None
        return self._process

    async def _take_seat(self) -> None:
        """Start the match in a process, and send it the whole history."""
        try:
            game, process = await self._workers.seat(self._about["rules"])
            try:
                await self._start(game, process)
            except BaseException:
                self._abandon(process)
                raise
            self.game, self._process = game.name, process
        finally:
            self._seating = None

    async def _start(self, game: GameSeats, process: WorkerProcess) -> None:
        """Start the match in the process.

        Before that, report the legal moves of the first turn, once, because the player may begin slowly.
        """
        if self._on_opening is not None:
            self._on_opening(tuple(await process.ask("opening", self._seconds, **self._about)))
            self._on_opening = None
        if self.number is None and not self._workers.is_lasting:
            self.number = next(game.numbers)
        history, seconds = list(self._history), self._seconds + LEARN_SECONDS
        given = {**self._about, "match": self._key, "number": self.number, **self.clock}
        self.number, state = await process.ask("start", seconds, history=history, **given)
        self._state, self._num_told = _advanced(state), len(history)

    def _abandon(self, process: WorkerProcess) -> None:
        process.hasten(self._key)
        process.post("abort", self._seconds, match=self._key)
        self._workers.leave(process)


def _advanced(values: Sequence[Any]) -> Advanced:
    return Advanced(tuple(values[0]), *values[1:])
