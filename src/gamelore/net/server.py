"""A player that hosts talk to: every message gets its answer in time, whatever its match is doing.

What is slow is done in worker processes. Here a match is a chain of tasks, one for each message, that take their turns
at its worker. The answer to a message is not bound to its task: it waits for the task until its clock runs out, and is
then what there is (the first of the legal moves, where they are known), while the task goes on, for the match does. So
a worker may hang, die or be replaced, and messages may come twice, too early or at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..errors import GameloreError
from ..learn.storefile import BUSY_SECONDS
from .clocks import MARGIN, answer_time, left, thinking_time
from .messages import (
    ABORTED,
    AVAILABLE,
    BUSY,
    DONE,
    NIL,
    READY,
    Abort,
    Info,
    Play,
    PlayerInfo,
    Preview,
    Start,
    Stop,
    parse,
    printable,
    show_info,
)

if TYPE_CHECKING:
    from .workers import RunningMatch, Workers

STOP_SECONDS = BUSY_SECONDS + 5.0  # for a match to be on disk, or not to be; STOP has no clock of its own
STALE_CLOCKS = 10  # a match is given up after so many of its clocks without a message
STALE_LEAST = 60.0  # seconds, at least
MOST_ENDED = 1000  # matches that are over, of which it is remembered that they were
MOST_WAITING = 8  # messages of a match at once that wait for the same thing
MOST_TOLD = 10_000_000  # characters of joint moves, all of which are kept until a match is over, and
EACH_TOLD = 500  # for each of them, however short it is

T = TypeVar("T")
log = logging.getLogger(__name__)


class PlayerServer:
    """The matches of a player, by their ids, in any case; an asynchronous context, at whose end all are let go.

    workers       where the matches are played
    name          of the player, one word of ASCII, else ProtocolError
    most_matches  that run at a time
    margin        seconds that are left of every clock
    """

    def __init__(self, workers: Workers, name: str, *, most_matches: int = 1, margin: float = MARGIN) -> None:
        self.name = name
        self.most_matches = most_matches
        self.margin = margin
        self._workers = workers
        self._sessions: dict[str, _Session] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._num_previews = 0
        self._info()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def answer(self, text: str) -> str:
        """The reply to a message, within its clock. Raises ProtocolError for a text that is none."""
        arrived = time.monotonic()
        message = parse(text)
        try:
            match message:
                case Info():
                    return self._info()
                case Preview():
                    return await self._preview(message, arrived)
                case Start():
                    return await self._start(message, arrived)
                case Play():
                    return await self._play(message, arrived)
                case Stop():
                    return await self._stop(message, arrived)
                case Abort():
                    return self._abort(message)
        except Exception:
            log.exception("no answer to %s", printable(text, 80))
            return NIL

    def _info(self) -> str:
        status = AVAILABLE if len(self._running()) < self.most_matches else BUSY
        return show_info(PlayerInfo(self.name, status, "gamelore"))

    def _running(self) -> dict[str, _Session]:
        """The matches that run, without those whose hosts have gone."""
        for key, session in list(self._sessions.items()):
            if session.is_stale():
                log.warning("match %s: no message for long, it is given up", session.name)
                self._forget(key)
        return self._sessions

    async def _preview(self, preview: Preview, arrived: float) -> str:
        if len(self._running()) + self._num_previews >= self.most_matches:
            return BUSY
        self._num_previews += 1
        looking = self._spawn(self._look(preview.rules))
        await asyncio.wait({looking}, timeout=left(arrived + answer_time(preview.clock, self.margin)))
        return READY if not looking.done() or _result(looking) else NIL

    async def _look(self, rules: str) -> bool:
        try:
            await self._workers.prepare(rules)
            return True
        except Exception as error:
            _report("preview", error)
            return False
        finally:
            self._num_previews -= 1

    async def _start(self, start: Start, arrived: float) -> str:
        key = start.match.lower()
        deadline = arrived + answer_time(start.startclock, self.margin)
        while (session := self._running().get(key)) is None and len(self._sessions) >= self.most_matches:
            ending = [(one, one.stopping) for one in self._sessions.values() if one.stopping and not one.is_crowded]
            if not ending or not left(deadline):
                return BUSY
            await ending[0][0].wait(ending[0][1], deadline)  # some hosts go on before STOP is answered
        if session is None:
            session = self._sessions[key] = _Session(start)
            session.begun = self._spawn(self._begin(key, session))
            self._ended.pop(key, None)
        elif not session.is_same(start) or session.is_crowded:
            return BUSY
        session.heard = arrived
        await session.wait(session.begun, deadline)
        return READY if not session.begun.done() or _result(session.begun) is not None else NIL

    async def _begin(self, key: str, session: _Session) -> RunningMatch | None:
        """The match at its worker; None where it cannot be played, and then it is forgotten."""
        start = session.start
        try:
            running = await self._workers.start(start.match, start.role, start.rules, session.open)
        except Exception as error:
            _report(f"match {session.name}: not played", error)
            self._let_go(key, session)
            return None
        role, clocks = printable(start.role), (start.startclock, start.playclock)
        log.info("match %s: begins, as %s, with clocks of %d and %d s", session.name, role, *clocks)
        return running

    async def _play(self, play: Play, arrived: float) -> str:
        key = play.match.lower()
        session = self._sessions.get(key)
        if session is None or session.stopping is not None:
            return BUSY
        session.heard = arrived
        clock = session.start.playclock
        turn = session.turn
        if turn is None or turn.reply.done() or turn.moves != play.moves:
            if not session.takes(play.moves):
                log.warning("match %s: more turns than any match has, it is given up", session.name)
                self._forget(key)
                return BUSY
            turn = session.ask(play.moves)
            self._spawn(session.play(turn, arrived + thinking_time(clock, self.margin)))
        elif session.is_crowded:
            return BUSY
        await session.wait(turn.reply, arrived + answer_time(clock, self.margin))
        if not turn.reply.done():
            log.warning("match %s: late, the answer is %s", session.name, printable(turn.decide()))
        return turn.decide()

    async def _stop(self, stop: Stop, arrived: float) -> str:
        key = stop.match.lower()
        session = self._sessions.get(key)
        if session is None:
            return DONE if key in self._ended else BUSY
        session.heard = arrived
        session.decide()
        if session.stopping is None:
            session.stopping = self._spawn(self._end(key, session, stop.moves))
        elif session.is_crowded:
            return BUSY
        await session.wait(session.stopping, arrived + STOP_SECONDS)
        if not session.stopping.done():
            return BUSY  # it is not on disk yet: a host that cares asks again
        return DONE if _result(session.stopping) else NIL

    async def _end(self, key: str, session: _Session, moves: tuple[str, ...] | None) -> bool:
        try:
            is_over = await session.stop(moves)
        finally:
            self._let_go(key, session)
        if is_over:
            self._remember(key)
        return is_over

    def _abort(self, abort: Abort) -> str:
        key = abort.match.lower()
        if key not in self._sessions:
            return ABORTED if key in self._ended else BUSY
        log.info("match %s: aborted", self._sessions[key].name)
        self._forget(key)
        return ABORTED

    def _forget(self, key: str) -> None:
        """Aborts a match that runs; where it is being stopped, that goes on, unless it has not even begun."""
        session = self._sessions.pop(key)
        session.decide()
        self._remember(key)
        session.begun.cancel()
        if session.stopping is None:
            self._spawn(session.abort())

    def _let_go(self, key: str, session: _Session) -> None:
        if self._sessions.get(key) is session:
            del self._sessions[key]

    def _remember(self, key: str) -> None:
        self._ended[key] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _result(task: asyncio.Task[T]) -> T | None:
    """What came of a task that is over; None where it was cancelled."""
    return None if task.cancelled() else task.result()


def _report(what: str, error: Exception) -> None:
    """A line in the log; with its traceback where it is a mistake of ours."""
    log.warning("%s: %s", what, printable(str(error)), exc_info=None if isinstance(error, GameloreError) else error)


class _Turn:
    """A question of the host, and the one answer that it gets, which every repetition of it gets as well."""

    def __init__(self, moves: tuple[str, ...] | None) -> None:
        self.moves = moves
        self.legal: tuple[str, ...] = ()
        self.reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def decide(self, move: str = "") -> str:
        """The answer: what it was, where there was one, else this move, else the first that is legal, else `nil`."""
        if not self.reply.done():
            self.reply.set_result(move or next(iter(self.legal), NIL))
        return self.reply.result()


class _Session:
    """A match that runs. What it is told is worked through in order, by one task at a time."""

    begun: asyncio.Task[RunningMatch | None]  # None where it cannot be played

    def __init__(self, start: Start) -> None:
        self.start = start
        self.name = printable(start.match)
        self.heard = time.monotonic()
        self.turn: _Turn | None = None  # the last one that was asked for
        self.stopping: asyncio.Task[bool] | None = None
        self._opening: tuple[str, ...] = ()
        self._num_waiting = 0
        self._told = 0
        self._answered = (-1, NIL)  # the last turn that was answered: at which ply, and what
        self._order = asyncio.Lock()

    def open(self, legal: tuple[str, ...]) -> None:
        """The first legal moves are known, while the player may still be getting ready."""
        self._opening = legal
        if self.turn is not None and self.turn.moves is None:
            self.turn.legal = legal

    def is_stale(self) -> bool:
        """Whether its host has been silent for so long that it must have gone."""
        clock = max(self.start.startclock, self.start.playclock)
        return left(self.heard + max(STALE_LEAST, STALE_CLOCKS * clock)) == 0

    def is_same(self, start: Start) -> bool:
        """Whether this START is the one of this match again. One player has one role in a match."""
        return self.stopping is None and self.start.role.lower() == start.role.lower()

    @property
    def is_crowded(self) -> bool:
        """Whether so many messages wait already that no repetition may join them: each holds a connection."""
        return self._num_waiting >= MOST_WAITING

    async def wait(self, what: asyncio.Future[Any], deadline: float) -> None:
        """Waits for something of this match, until a deadline."""
        self._num_waiting += 1
        try:
            await asyncio.wait({what}, timeout=left(deadline))
        finally:
            self._num_waiting -= 1

    def takes(self, moves: tuple[str, ...] | None) -> bool:
        """Notes how much it is told, all of which is kept; False where that is too much."""
        self._told += EACH_TOLD + sum(map(len, moves or ()))
        return self._told <= MOST_TOLD

    def ask(self, moves: tuple[str, ...] | None) -> _Turn:
        """A new turn. One that may be the last again has its answer, unless the worker knows better."""
        self.decide()  # a question that is still open is an older one
        last, turn = self.turn, _Turn(moves)
        if last is not None and last.moves == moves:
            turn.legal = (last.reply.result(),)
        elif moves is None:
            turn.legal = self._opening
        self.turn = turn
        return turn

    def decide(self) -> None:
        """A question that is still open gets an answer now."""
        if self.turn is not None:
            self.turn.decide()

    async def play(self, turn: _Turn, until: float) -> None:
        """Finds the answer to a turn, thinking until then; it may be decided in the meantime."""
        async with self._order:
            try:
                running = await asyncio.shield(self.begun)
                if running is not None:
                    await self._play(running, turn, until)
            except Exception as error:
                _report(f"match {self.name}: no move", error)
            finally:
                turn.decide()

    async def _play(self, running: RunningMatch, turn: _Turn, until: float) -> None:
        advanced = await running.advance(turn.moves)
        if advanced.ply == self._answered[0]:
            turn.decide(self._answered[1])
            return
        turn.legal = advanced.legal
        try:
            if len(turn.legal) > 1 and not turn.reply.done():
                await self._choose(running, turn, until)
        finally:
            self._answered = (advanced.ply, turn.decide())

    async def _choose(self, running: RunningMatch, turn: _Turn, until: float) -> None:
        """Lets the player choose, until it has or the turn is decided without it."""
        choosing = asyncio.ensure_future(running.choose(left(until)))
        try:
            await asyncio.wait({choosing, turn.reply}, return_when=asyncio.FIRST_COMPLETED)
            if not turn.reply.done():
                turn.decide(choosing.result())
        finally:
            choosing.cancel()
            await asyncio.gather(choosing, return_exceptions=True)

    async def stop(self, moves: tuple[str, ...] | None) -> bool:
        """Ends the match, which is on disk then; False where that failed."""
        async with self._order:
            try:
                running = await asyncio.shield(self.begun)
                if running is None:
                    return False
                ended = await running.stop(moves)
            except Exception as error:
                _report(f"match {self.name}: lost at its end", error)
                return False
        goals = " ".join("?" if goal is None else str(goal) for goal in ended.goals)
        missed = ", a turn was missed" if ended.is_desynchronised else ""
        learned = ", learned from" if ended.is_learned else ""
        log.info("match %s: over (%s), goals %s%s%s", self.name, ended.end or "stopped", goals, missed, learned)
        return True

    async def abort(self) -> None:
        """Lets the match go at its worker."""
        async with self._order:
            await asyncio.wait({self.begun})
            try:
                if (running := _result(self.begun)) is not None:
                    await running.abort()
            except Exception as error:
                _report(f"match {self.name}: not aborted", error)
