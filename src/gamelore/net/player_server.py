"""The player server: timely replies to game managers, the running matches, and `serve` with its log and signals.

Worker processes do all slow work. In this process, each message of a match has a task. The tasks of a match use its
worker one after the other. The server replies in time even if the task is not done: when the clock runs out, the reply
is the best answer so far (the first legal move, if the legal moves are known), and the task goes on. So a worker may
hang, die or be replaced, and messages may come twice, too early or at the same time.

A second pool of processes, the followers, hears the same messages but does not think. So the legal moves are known even
while a worker gets ready, is late, or is replaced.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import logging
import signal
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from ..errors import GameloreError
from ..gdl.syntax import printable
from ..learning.store.schema import BUSY_SECONDS
from . import messages
from .http import EVERYWHERE, WebLimits, listen
from .messages import ABORTED, BUSY, DONE, MARGIN, NIL, READY, Start, answer_time, left, thinking_time
from .pool import FOLLOWER, WORKER, RunningMatch, Workers, WorkerSettings

if TYPE_CHECKING:
    from ..players.player import Player

PORT = 9147
MEMORY = 4 << 30  # default bytes for each worker process
QUOTA = 4 << 30  # default bytes of the knowledge store
CONNECTIONS = 4  # minimum number of allowed connections for each match
LINES = 20  # maximum number of log lines in a second, about each match and about everything else
LONG_START = 10.0  # seconds, after which the server tells why it is not ready yet
COMPILES = "not ready yet: the first start after an installation compiles what all games share, which takes minutes"
STEADY_SECONDS = 1.0  # age from which a match has a limit of log lines of its own
STOP_SECONDS = BUSY_SECONDS + 5.0  # time to write a match to disk, even if the store is busy; STOP has no clock
# The server gives up a match if no message arrives for STALE_CLOCKS times the longer one of the match's two clocks.
# This time is at least STALE_LEAST seconds, at most STALE_MOST seconds longer than the clock, and at most STALE_DAY.
STALE_CLOCKS = 10
STALE_LEAST = 60.0
STALE_MOST = 600.0
STALE_DAY = 86_400.0
STILL_THINKING = 0.25  # seconds between two questions whether the player uses the rest of the startclock
# A match that was stopped before it began may need minutes to end, because its process is getting the game ready.
ENDING_SECONDS = 10.0  # time from STOP, after which it does not count as a running match any more
MOST_ENDING = 4  # maximum number of such matches
MOST_ENDED = 1000  # maximum number of remembered ids of ended matches
MOST_WAITING = 8  # maximum number of messages of a match that wait for a reply at the same time
MOST_TOLD = 10_000_000  # maximum total size of the joint moves of a match, which are kept until its end
EACH_TOLD = 500  # size of a joint move in addition to its characters

Moves: TypeAlias = tuple[str, ...] | None  # a joint move; None in the first turn
T = TypeVar("T")
log = logging.getLogger(__name__)


class PlayerServer:
    """Server for the running matches of a player. Upper and lower case are equal in the ids of matches.

    The server is an asynchronous context manager; at its exit it cancels all tasks.

    workers       processes that play the matches
    followers     processes that only follow the matches (follower.py); None: the legal moves of a turn are not known
                  before the worker knows them
    name          name of the player, one word of ASCII; any other name raises ProtocolError
    most_matches  maximum number of running matches
    margin        seconds of every clock that the server leaves unused
    """

    def __init__(
        self,
        workers: Workers,
        name: str,
        *,
        followers: Workers | None = None,
        most_matches: int = 1,
        margin: float = MARGIN,
    ) -> None:
        self.name = name
        self.most_matches = most_matches
        self.margin = margin
        self._workers = workers
        self._followers = followers
        self._sessions: dict[str, _Session] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._previews: set[asyncio.Task[Any]] = set()
        self._info()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def answer(self, text: str) -> str:
        """Return the reply to a message before its clock ends. Raise ProtocolError for a text that is not a message."""
        arrived = time.monotonic()
        message = messages.parse(text)
        try:
            match message:
                case messages.Info():
                    return self._info()
                case messages.Preview():
                    return await self._preview(message, arrived)
                case Start():
                    return await self._start(message, arrived)
            key = message.match.lower()
            session = self._sessions.get(key)
            if session is None:
                repeated = {messages.Stop: DONE, messages.Abort: ABORTED} if key in self._ended else {}
                return repeated.get(type(message), BUSY)
            match message:
                case messages.Play(_, moves):
                    return await self._play(session, moves, arrived)
                case messages.Stop(_, moves):
                    return await self._stop(session, moves, arrived)
                case messages.Abort():
                    return self._abort(session)
        except Exception:
            log.exception("an error prevented an answer to %s", printable(text, 80))
            return NIL

    def _info(self) -> str:
        status = BUSY if self._is_full(ENDING_SECONDS) else messages.AVAILABLE
        return messages.show_info(messages.PlayerInfo(self.name, status, "gamelore"))

    def _running(self) -> dict[str, _Session]:
        """Give up the matches whose hosts have gone. Return the running matches."""
        for session in list(self._sessions.values()):
            if session.is_stale():
                session.tell(logging.WARNING, "given up, because no message came for a long time")
                self._forget(session)
        return self._sessions

    def _is_full(self, patience: float) -> bool:
        """Return whether no other match can begin.

        Matches that were stopped more than `patience` seconds ago do not count, up to MOST_ENDING of them.
        """
        running = self._running().values()
        num_slow = sum(session.stopping is not None and not session.ends_soon(patience) for session in running)
        return len(running) - min(num_slow, MOST_ENDING) >= self.most_matches

    async def _preview(self, preview: messages.Preview, arrived: float) -> str:
        if len(self._running()) + len(self._previews) >= self.most_matches:
            return BUSY
        looking = self._spawn(_attempt(log.log, "preview", self._workers.prepare, preview.rules))
        self._previews.add(looking)
        looking.add_done_callback(self._previews.discard)
        await asyncio.wait({looking}, timeout=left(arrived + answer_time(preview.clock, self.margin)))
        return READY if not looking.done() or _result(looking) is not None else NIL

    async def _start(self, start: Start, arrived: float) -> str:
        key = start.match.lower()
        deadline = arrived + answer_time(start.startclock, self.margin)
        session = self._running().get(key)
        if session is not None and session.is_outdated(start):
            session.tell(logging.INFO, "given up, because the host begins it anew")
            await asyncio.wait(self._forget(session), timeout=left(deadline) / 2)
        patience = min(ENDING_SECONDS, 1 + left(deadline) / 2)
        while (session := self._running().get(key)) is None and self._is_full(patience):
            # some hosts start the next match before they get the reply to STOP
            ending = next((other for other in self._sessions.values() if other.ends_soon(patience)), None)
            if ending is None or ending.is_crowded or ending.stopping is None or not left(deadline):
                return BUSY
            await ending.wait(ending.stopping, min(deadline, ending.heard + patience))
        if session is None:
            session = self._sessions[key] = _Session(key, start)
            until = arrived + thinking_time(start.startclock, self.margin)
            session.begun = self._spawn(self._begin(session, until))
            session.ready = self._spawn(_attempt(session.tell, "the player could not get ready", session.use, until))
            if self._followers is not None:
                session.following = self._spawn(self._follow(session, self._followers))
            self._ended.pop(key, None)
        elif not session.is_same(start) or session.is_crowded:
            return BUSY
        session.heard = arrived
        await session.wait(session.ready, deadline)
        can_play = not session.begun.done() or _result(session.begun) is not None
        return READY if can_play or self._sessions.get(key) is session else NIL

    async def _begin(self, session: _Session, deadline: float) -> RunningMatch | None:
        """Start the match in a worker; return None if it cannot be played. If it has no follower either, forget it.

        The startclock ends at the deadline. A match with a follower goes on with the first legal moves.
        """
        start = session.start
        settings = start.match, start.role, start.rules, session.open
        begin = partial(self._workers.start, deadline=deadline, startclock=start.startclock)
        running = await _attempt(session.tell, "it cannot be played", begin, *settings)
        if running is None:
            following = session.following
            if following is not None:
                await asyncio.wait({following})
            if following is None or _result(following) is None:
                self._let_go(session)
            else:
                session.tell(logging.INFO, "goes on without the player, by first legal moves")
        else:
            role, clocks = printable(start.role), (start.startclock, start.playclock)
            session.tell(logging.INFO, "begins, the role is %s, the clocks are %d and %d s", role, *clocks)
        return running

    async def _follow(self, session: _Session, followers: Workers) -> RunningMatch | None:
        """Start the match in a follower; return None if this fails."""
        start = session.start
        settings = start.match, start.role, start.rules, session.open
        return await _attempt(session.tell, "it cannot be followed", followers.start, *settings)

    async def _play(self, session: _Session, moves: Moves, arrived: float) -> str:
        if session.stopping is not None:
            return BUSY
        session.heard = arrived
        clock = session.start.playclock
        turn = session.turn
        if turn is None or turn.reply.done() or turn.moves != moves:
            if not session.takes(moves):
                session.tell(logging.WARNING, "given up, because it has more turns than any match")
                self._forget(session)
                return BUSY
            turn = session.ask(moves)
            if session.following is not None:
                turn.following = self._spawn(
                    _attempt(session.tell, "a turn could not be followed", session.follow, turn)
                )
            until = arrived + thinking_time(clock, self.margin)
            self._spawn(_attempt(session.tell, "the player made no move", session.play, turn, until))
        elif session.is_crowded:
            return BUSY
        await session.wait(turn.reply, arrived + answer_time(clock, self.margin))
        if not turn.reply.done():
            session.tell(logging.WARNING, "the player is late, the server answers %s", printable(turn.decide()))
        return turn.decide()

    async def _stop(self, session: _Session, moves: Moves, arrived: float) -> str:
        session.heard = arrived
        session.decide()
        if session.stopping is None:
            session.stopping = self._spawn(self._end(session, moves))
        elif session.is_crowded:
            return BUSY
        await session.wait(session.stopping, arrived + STOP_SECONDS)
        if not session.stopping.done():
            return BUSY  # the match is not on disk yet; the host may send STOP again
        return DONE if _result(session.stopping) else NIL

    async def _end(self, session: _Session, moves: Moves) -> bool:
        """End a match and write it to disk. Return False if an error prevented this."""
        try:
            is_over = await _attempt(
                session.tell, "it is lost, because an error occurred at its end", session.stop, moves
            )
        finally:
            self._let_go(session)
        if is_over:
            self._remember(session.key)
        return bool(is_over)

    def _abort(self, session: _Session) -> str:
        session.tell(logging.INFO, "aborted")
        self._forget(session)
        return ABORTED

    def _forget(self, session: _Session) -> set[asyncio.Task[None]]:
        """Remove a running match, and abort it in its processes; return the tasks that do so.

        A match that the host has stopped is not aborted: `_end` goes on, unless the match has not begun.
        """
        leaving = self._let_go(session)
        session.decide()
        self._remember(session.key)
        session.begun.cancel()
        session.ready.cancel()
        if session.stopping is None:
            leaving.add(self._spawn(_attempt(session.tell, "it could not be aborted", session.abort)))
        return leaving

    def _let_go(self, session: _Session) -> set[asyncio.Task[None]]:
        """Remove a match, and abort it in its follower; return the task that does so, if there is one."""
        if self._sessions.get(session.key) is session:
            del self._sessions[session.key]
        following, session.following = session.following, None
        return set() if following is None else {self._spawn(session.leave_follower(following))}

    def _remember(self, key: str) -> None:
        self._ended[key] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _result(task: asyncio.Task[T] | asyncio.Task[T | None]) -> T | None:
    """Return the result of a finished task; None if the task was cancelled."""
    return None if task.cancelled() else task.result()


async def _attempt(tell: Callable[..., None], what: str, work: Callable[..., Awaitable[T]], *given: Any) -> T | None:
    """Return the result of `work`. If it raises an error, log the error with `tell` and return None.

    The log has a traceback for every error except GameloreError, because other errors are bugs.
    """
    try:
        return await work(*given)
    except Exception as error:
        trace = None if isinstance(error, GameloreError) else error
        tell(logging.WARNING, "%s: %s", what, printable(str(error)), exc_info=trace)
        return None


class _Turn:
    """A PLAY message and its reply. Repetitions of the message get the same reply.

    move  the reply, if it is a legal move, which may also be called `nil`; otherwise empty
    """

    move = ""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.legal: tuple[str, ...] = ()
        self.reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.following: asyncio.Task[None] | None = None  # sets `legal`, unless the match is not followed

    def decide(self, move: str = "") -> str:
        """Return the reply.

        If there is no reply yet, set it to the given move. Without a given move, set it to the first legal move, or to
        `nil` if the legal moves are not known.
        """
        if not self.reply.done():
            self.move = move or next(iter(self.legal), "")
            self.reply.set_result(self.move or NIL)
        return self.reply.result()

    async def wait_for_legal(self) -> None:
        """Wait until the legal moves are known, if they may become known before the reply is due."""
        if not self.legal and self.following is not None:
            either: set[asyncio.Future[Any]] = {self.following, self.reply}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)


class _Session:
    """A running match. Its messages are processed in order, by one task at a time."""

    begun: asyncio.Task[RunningMatch | None]  # its result is None if the match cannot be played
    ready: asyncio.Task[None]  # done when the player has used the startclock
    following: asyncio.Task[RunningMatch | None] | None = None  # None, also as result, if nobody follows the match

    def __init__(self, key: str, start: Start) -> None:
        self.key = key
        self.start = start
        self.name = printable(start.match)
        self.heard = self._since = time.monotonic()
        self.turn: _Turn | None = None  # the last turn
        self.stopping: asyncio.Task[bool] | None = None
        self._opening: tuple[str, ...] = ()
        self._num_waiting = 0
        self._told = 0
        self._answered = (-1, "")  # ply and move of the last finished turn
        self._order = asyncio.Lock()
        self._followed = -1  # ply of the last turn in the follower
        self._following_order = asyncio.Lock()

    def tell(self, level: int, text: str, *given: object, **options: Any) -> None:
        """Log a line about the match. The line of a match that has just begun may be left out, see `Sparing`."""
        extra = {"match": self.key} if time.monotonic() - self._since >= STEADY_SECONDS else None
        log.log(level, f"match %s: {text}", self.name, *given, extra=extra, **options)

    def open(self, legal: tuple[str, ...]) -> None:
        """Store the legal moves of the first turn, which arrive before the player is ready."""
        self._opening = legal
        if self.turn is not None and self.turn.moves is None:
            self.turn.legal = legal

    async def use(self, until: float) -> None:
        """Wait until the player has nothing to think about in the startclock, which ends at `until`.

        The first turn comes as soon as all players are ready, so a player that is ready early loses time.
        """
        running = await asyncio.shield(self.begun)
        while running is not None and self.turn is None and self.stopping is None and left(until):
            if not await running.thinks():
                break
            await asyncio.sleep(min(STILL_THINKING, left(until)))

    def is_stale(self) -> bool:
        """Return whether the last message is so old that the host has probably gone."""
        clock = max(self.start.startclock, self.start.playclock)
        seconds = max(STALE_LEAST, min(STALE_CLOCKS * clock, clock + STALE_MOST, STALE_DAY))
        return left(self.heard + seconds) == 0

    def is_same(self, start: Start) -> bool:
        """Return whether this START repeats the START of this match. A player has only one role in a match."""
        return self.stopping is None and self.start.role.lower() == start.role.lower()

    def is_outdated(self, start: Start) -> bool:
        """Return whether this START begins another match with the same id, as a host does that was started anew."""
        has_begun = self.turn is not None or start.rules != self.start.rules
        return has_begun and self.stopping is None and start.role.lower() == self.start.role.lower()

    def ends_soon(self, patience: float) -> bool:
        """Return whether the match was stopped, and the last STOP came at most `patience` seconds ago."""
        return self.stopping is not None and left(self.heard + patience) > 0

    @property
    def is_crowded(self) -> bool:
        """Whether so many messages wait that the match may not accept another: each of them keeps a connection open."""
        return self._num_waiting >= MOST_WAITING

    async def wait(self, future: asyncio.Future[Any], deadline: float) -> None:
        """Wait until a future of this match is done, or until the deadline."""
        self._num_waiting += 1
        try:
            await asyncio.wait({future}, timeout=left(deadline))
        finally:
            self._num_waiting -= 1

    def takes(self, moves: Moves) -> bool:
        """Add the size of a joint move to the total size of all kept ones. Return False if the total is too large."""
        self._told += EACH_TOLD + sum(map(len, moves or ()))
        return self._told <= MOST_TOLD

    def ask(self, moves: Moves) -> _Turn:
        """Return a new turn.

        If the message may repeat the PLAY message of the last turn, the preliminary reply of the new turn is the move
        with which the server replied then.
        """
        self.decide()  # a turn without a reply is older than this message
        last, turn = self.turn, _Turn(moves)
        if last is not None and last.moves == moves and last.move:
            turn.legal = (last.move,)
        elif moves is None:
            turn.legal = self._opening
        self.turn = turn
        return turn

    def decide(self) -> None:
        """Set the reply of the last turn now, if it has no reply yet."""
        if self.turn is not None:
            self.turn.decide()

    async def play(self, turn: _Turn, until: float) -> None:
        """Find the reply of a turn; the player may think until `until`. Another task may set the reply before."""
        async with self._order:
            try:
                running = await asyncio.shield(self.begun)
                if running is None:
                    raise GameloreError("it could not begin the match")
                await self._play(running, turn, until)
            finally:
                await turn.wait_for_legal()
                turn.decide()

    async def follow(self, turn: _Turn) -> None:
        """Find the legal moves of a turn in the follower. If there is only one, it is the reply of the turn.

        A repeated message keeps its preliminary reply, see `ask`.
        """
        async with self._following_order:
            if self.following is None or (followed := await asyncio.shield(self.following)) is None:
                return
            advanced = await followed.advance(turn.moves)
        is_repeated, self._followed = advanced.ply == self._followed, advanced.ply
        if advanced.legal and not (is_repeated and turn.legal):
            turn.legal = advanced.legal
            if len(turn.legal) == 1:
                turn.decide()

    async def leave_follower(self, following: asyncio.Task[RunningMatch | None]) -> None:
        """Let the follower forget the match."""
        following.cancel()
        await asyncio.wait({following})
        if (followed := _result(following)) is not None:
            await followed.abort()

    async def _play(self, running: RunningMatch, turn: _Turn, until: float) -> None:
        advanced = await running.advance(turn.moves)
        if advanced.ply == self._answered[0] and self._answered[1]:
            turn.decide(self._answered[1])
            return
        turn.legal = advanced.legal
        try:
            if len(turn.legal) > 1 and not turn.reply.done():
                await self._choose(running, turn, until)
        finally:
            turn.decide()
            self._answered = (advanced.ply, turn.move)

    async def _choose(self, running: RunningMatch, turn: _Turn, until: float) -> None:
        """Let the player choose a move; stop waiting for it as soon as the turn has a reply."""
        choosing = asyncio.ensure_future(running.choose(left(until)))
        try:
            await asyncio.wait({choosing, turn.reply}, return_when=asyncio.FIRST_COMPLETED)
            if not turn.reply.done():
                turn.decide(choosing.result())
        finally:
            choosing.cancel()
            await asyncio.gather(choosing, return_exceptions=True)

    async def stop(self, moves: Moves) -> bool:
        """End the match and write it to disk, unless only a follower knew it. Return False if it never began."""
        async with self._order:
            if (running := await asyncio.shield(self.begun)) is None:
                return self.following is not None
            ended = await running.stop(moves)
        goals = " ".join("?" if goal is None else str(goal) for goal in ended.goals)
        missed = ", at least one turn was missed" if ended.is_desynchronised else ""
        learned = ", the player learned from it" if ended.is_learned else ""
        about = f", played with {printable(ended.about)}" if ended.about else ""
        self.tell(logging.INFO, "over (%s), goals %s%s%s%s", ended.end or "stopped", goals, missed, learned, about)
        return True

    async def abort(self) -> None:
        """Abort the match in its worker."""
        async with self._order:
            await asyncio.wait({self.begun})
            if (running := _result(self.begun)) is not None:
                await running.abort()


# a player server as one call


def serve(
    player: str | type[Player] = "gamelore",
    *,
    port: int = PORT,
    address: str = "127.0.0.1",
    name: str = "gamelore",
    knowledge: Path | str | None = None,
    opponent: str | None = None,
    seed: int = 0,
    learn: bool = True,
    quota: int = QUOTA,
    search: float | None = None,
    matches_at_once: int = 1,
    margin: float = MARGIN,
    memory: int = MEMORY,
    prepare_seconds: float = 60.0,
    limits: WebLimits | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> signal.Signals:
    """Play for game managers until Ctrl-C or SIGTERM, and return the signal. A second signal ends the server at once.

    Args:
        player: a name that `gamelore players` lists, with options, or a class at the top level of a file. The worker
            processes import that file, so call `serve(...)` under `if __name__ == "__main__"`
        port: number of the port; 0 for a free port
        address: address of this machine to listen at; "0.0.0.0" for all its addresses
        name: name of the player, one word
        knowledge, opponent, seed, learn, quota, search: options of the player. Each has an effect only if the player
            has this option and `player` does not set it. `quota` is in bytes, `search` in seconds for a move
        matches_at_once: maximum number of running matches; a host that starts another match gets the reply `busy`
        margin: seconds of every clock that are reserved for the network
        memory: bytes for each worker process
        prepare_seconds: time limit to get rules ready to play
        limits: limits of HTTP messages and of their senders
        on_ready: function to call with http://ADDRESS:PORT when the server listens; None to log this address

    Raises:
        GameloreError: the player is unknown, or the address or port cannot be used
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == WORKER:
        raise GameloreError(
            'expected a call of serve under `if __name__ == "__main__":`, got a call outside; move the call there'
        )
    learning = {"opponent": opponent, "learn": learn, "quota": quota, "search": search}
    options = {"knowledge": knowledge, "seed": seed, "clock": True, **learning}
    settings = WorkerSettings(spec(player), options, memory=memory, prepare_seconds=prepare_seconds)
    following = replace(settings, player="", options={}, module=FOLLOWER)
    limits = limits or WebLimits()
    limits = replace(limits, connections=max(limits.connections, CONNECTIONS * matches_at_once))
    if not logging.root.handlers:
        log_to_stderr()

    async def run() -> signal.Signals:
        received = _first_signal()
        async with AsyncExitStack() as stack:
            notice = asyncio.get_running_loop().call_later(LONG_START, log.info, COMPILES)
            workers = await stack.enter_async_context(Workers(settings))
            followers = await stack.enter_async_context(Workers(following))
            notice.cancel()
            server = PlayerServer(workers, name, followers=followers, most_matches=matches_at_once, margin=margin)
            await stack.enter_async_context(server)
            try:
                actual_port = await stack.enter_async_context(listen(server.answer, address, port, limits))
            except OSError as error:
                raise _unusable(address, port, error) from error
            url = f"http://{_reachable(address)}:{actual_port}"
            on_ready(url) if on_ready else log.info("%s plays at %s; Ctrl-C stops it", name, url)
            return await received

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def log_to_stderr(level: int = logging.INFO) -> None:
    """Log to standard error. The number of lines is limited, see `Sparing`."""
    handler = logging.StreamHandler()
    handler.addFilter(Sparing())
    logging.basicConfig(
        format="%(asctime)s %(left_out)s%(message)s", datefmt="%H:%M:%S", handlers=[handler], force=True
    )
    logging.getLogger("gamelore").setLevel(level)


class Sparing(logging.Filter):
    """Log filter that passes at most `LINES` lines a second about each running match, and about everything else.

    So senders of messages can neither fill a disk nor hide what happens in the matches of others. Lines about a match
    have its key as the attribute `match`; those of `_Session.tell` only from STEADY_SECONDS after its begin, because
    messages can begin and end many matches in a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._second = 0
        self._num_lines: Counter[str] = Counter()
        self._num_left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log this line. The first line after a gap tells in `left_out` how many are missing."""
        second, record.left_out = int(time.monotonic()), ""
        if second != self._second:
            self._second = second
            self._num_lines.clear()
            if self._num_left_out:
                record.left_out = f"({self._num_left_out} lines were left out) "
                self._num_left_out = 0
        match = getattr(record, "match", "")
        self._num_lines[match] += 1
        passes = self._num_lines[match] <= LINES
        self._num_left_out += not passes
        return passes


def spec(player: str | type[Player]) -> str:
    """Return a player as text: its name, or FILE.py:NAME for a class.

    Raise GameloreError if other processes cannot import the class.
    """
    if isinstance(player, str):
        return player
    if not isinstance(player, type):
        raise GameloreError(
            f"expected the class or the name of a player, got {player!r}; leave out the parentheses after the class"
        )
    try:
        path = inspect.getsourcefile(player)
    except (OSError, TypeError):  # the class was defined at a prompt
        path = None
    name = player.__qualname__
    if path is None or not path.endswith(".py") or "." in name:
        raise GameloreError(
            f"expected a player's class at the top level of a Python file, got {name}; move the class to a Python file"
        )
    return f"{Path(path).resolve()}:{name}"


def _reachable(address: str) -> str:
    """Return an address as it stands in a URL. Programs on this machine can reach the server at this address."""
    if address in EVERYWHERE:
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address


def _unusable(address: str, port: int, error: OSError) -> GameloreError:
    if error.errno == errno.EADDRINUSE:
        return GameloreError(f"expected a free port, got {port}, which another program uses; choose another port")
    return GameloreError(f"expected an address and port of this machine, got {address} and {port}: {error.strerror}")


def _first_signal() -> asyncio.Future[signal.Signals]:
    """Return a future for the first Ctrl-C or SIGTERM signal.

    A second signal cancels the current task; the workers then end without learning, wherever the task was on its way
    to their end. The signal handlers are removed with the event loop.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    first: asyncio.Future[signal.Signals] = loop.create_future()

    def on_signal(number: signal.Signals) -> None:
        task.cancel() if first.done() else first.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    return first
