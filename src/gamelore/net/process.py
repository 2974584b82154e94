"""A worker process as its owner sees it: requests go in one at a time, answers come out, and what is overdue is killed.

Whoever waits for an answer may stop waiting. The request is answered all the same, so that both sides go on knowing the
same; but a process that is still busy with it some seconds (`patience`) later is killed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..errors import GameloreError, GDLError
from .messages import printable
from .worker import MAX_LINE, OUT_OF_MEMORY

LEARN_SECONDS = 300.0  # for what a learner does between matches
CLOSE_SECONDS = 10.0  # of them, where the process is to end
END_SECONDS = 3.0  # for a process to end by itself when it is asked for nothing more

log = logging.getLogger(__name__)


class Died(GameloreError):
    """The process is no more; `is_mine` where that must be for this request: it never did anything else."""

    is_mine = False


@dataclass(eq=False, slots=True)
class Request:
    """What a process is asked; it has `seconds` from when it begins with it. An optional one may be taken back."""

    do: str
    line: bytes
    seconds: float
    is_optional: bool
    reply: asyncio.Future[Any]


class Process(asyncio.SubprocessProtocol):
    """One process of worker.py; `spawn` starts it.

    patience      seconds that it may go on with what nobody waits for any more
    memory        bytes, and
    cpu_seconds   of processor time, which it limits itself to, for what is said when it goes over them
    num_matches   how many sit here,
    num_seated    how many ever did, and
    left_at       when the last one left, for whoever shares the processes out
    """

    def __init__(self, patience: float, memory: int, cpu_seconds: float) -> None:
        self.patience = patience
        self.memory = memory
        self.cpu_seconds = cpu_seconds
        self.num_matches = self.num_seated = 0
        self.left_at = 0.0
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._working: Request | None = None
        self._waiting: deque[Request] = deque()
        self._heard = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._is_ending = False
        self._learns = False  # ever
        self._has_to_learn = False  # now

    async def spawn(self) -> None:
        """Starts it, in a session of its own: no Ctrl-C reaches it. Raises GameloreError where the system refuses."""
        command = (sys.executable, "-P", "-m", f"{__package__}.worker")
        try:
            await self._loop.subprocess_exec(lambda: self, *command, stderr=None, start_new_session=True)
        except OSError as error:
            self._set_gone()
            raise GameloreError(f"expected a new process, got {error}; end others first") from None

    @property
    def is_alive(self) -> bool:
        """Whether it takes requests."""
        return self._transport is not None and not self._is_ending

    @property
    def is_idle(self) -> bool:
        """Whether it has no match, and nothing to do."""
        return not (self.num_matches or self._working or self._waiting or self._has_to_learn)

    async def ask(self, do: str, seconds: float, *, is_optional: bool = False, **given: Any) -> Any:
        """The answer to a request. Raises what it raised there, and `Died`."""
        return await self.answer(self.post(do, seconds, is_optional=is_optional, **given))

    async def answer(self, request: Request) -> Any:
        """Waits for a request that is in the queue; raises as `ask` does."""
        try:
            return await request.reply
        except asyncio.CancelledError:
            self._hasten(request)
            raise

    def post(self, do: str, seconds: float, *, is_optional: bool = False, **given: Any) -> Request:
        """Puts a request into the queue; nobody need wait for its answer."""
        line = json.dumps({"do": do, **given}, default=os.fspath).encode() + b"\n"
        request = Request(do, line, seconds, is_optional, self._loop.create_future())
        request.reply.add_done_callback(seen)
        if not self.is_alive:
            request.reply.set_exception(Died("expected a process that works, got one that has ended"))
        elif len(line) > MAX_LINE:
            request.reply.set_exception(GameloreError(f"expected at most {MAX_LINE} bytes, got {len(line)}"))
        else:
            self._waiting.append(request)
            self._go_on()
        return request

    def learn_soon(self) -> None:
        """Lets the player learn as soon as there is nothing else to do."""
        self._learns = self._has_to_learn = True
        self._go_on()

    def kill(self, why: str) -> None:
        """Ends it at once, with all that it may have started."""
        self._is_ending = True
        self._fail(why)
        if self._transport is not None and self._transport.get_returncode() is None:
            self._kill_group(self._transport)

    def end(self) -> None:
        """Lets it end; it has some seconds for that."""
        if self.is_alive:
            assert self._transport is not None
            self._is_ending = True
            self._fail("it was asked to end")
            requests = self._transport.get_pipe_transport(0)
            if requests is not None:
                requests.close()
            self._timer = self._loop.call_later(END_SECONDS, self.kill, "it did not end")

    async def close(self) -> None:
        """Lets it learn what there is to learn, for some seconds, and end; returns when it has."""
        self._drop(self._waiting, "all ends")
        self._waiting.clear()
        if self.is_alive and self._learns:
            await asyncio.wait({self.post("learn", CLOSE_SECONDS).reply}, timeout=CLOSE_SECONDS)
        if self._working is not None:
            self.kill("all ends")
        self.end()
        if self._transport is not None:
            await self.gone

    # as the event loop sees it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.SubprocessProtocol`."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self._go_on()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self._heard += data
        if b"\n" in data:
            *lines, self._heard = self._heard.split(b"\n")
            for line in lines:
                self._answered(bytes(line))
        elif len(self._heard) > MAX_LINE:
            self.kill("it said more than it may")

    def process_exited(self) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self._is_ending = True
        assert self._transport is not None
        self._fail(self._end_text(self._transport.get_returncode()))
        self._kill_group(self._transport)  # what it started may have our pipe
        self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self._set_gone()

    def _kill_group(self, transport: asyncio.SubprocessTransport) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(transport.get_pid(), signal.SIGKILL)
            else:
                transport.kill()

    def _set_gone(self) -> None:
        self._set_timer(None)
        if not self.gone.done():
            self.gone.set_result(None)

    def _go_on(self) -> None:
        """Begins with what comes next, if there is anything."""
        if self._working is not None or not self.is_alive:
            return
        if not self._waiting and self._has_to_learn:
            self._has_to_learn = False
            self.post("learn", LEARN_SECONDS).reply.add_done_callback(_log_failure)
        elif self._waiting:
            self._working = self._waiting.popleft()
            self._set_timer(self._loop.time() + self._working.seconds)
            assert self._transport is not None
            requests = self._transport.get_pipe_transport(0)
            assert isinstance(requests, asyncio.WriteTransport)
            requests.write(self._working.line)

    def _hasten(self, request: Request) -> None:
        """Nobody waits for this any more."""
        if request is self._working:
            assert self._timer is not None
            self._set_timer(min(self._timer.when(), self._loop.time() + self.patience))
        elif request.is_optional:
            with suppress(ValueError):
                self._waiting.remove(request)

    def _answered(self, line: bytes) -> None:
        request, self._working = self._working, None
        if request is None:
            self.kill("it spoke without being asked")
            return
        self._set_timer(None)
        if not request.reply.done():
            told = json.loads(line)
            if "error" in told:
                request.reply.set_exception(_error(**told))
            else:
                request.reply.set_result(told["ok"])
        self._go_on()

    def _set_timer(self, when: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if when is None else self._loop.call_at(when, self._overdue)

    def _overdue(self) -> None:
        assert self._working is not None
        do, seconds = self._working.do, self._working.seconds
        self.kill(f"it was busy with {do} for too long, and had at most {seconds:g} s")

    def _fail(self, why: str) -> None:
        """Nothing is answered any more."""
        self._set_timer(None)
        working, self._working = self._working, None
        if working is not None:
            self._drop([working], why, is_mine=self.num_seated <= 1)
        self._drop(self._waiting, why)
        self._waiting.clear()

    def _drop(self, requests: Iterable[Request], why: str, is_mine: bool = False) -> None:
        for request in requests:
            if not request.reply.done():
                error = Died(f"expected an answer from a worker process, got none, for {why}")
                error.is_mine = is_mine
                request.reply.set_exception(error)

    def _end_text(self, code: int | None) -> str:
        if code == OUT_OF_MEMORY:
            return f"it went over its {self.memory / 1e9:.1f} GB of memory; allow more, if the game is worth it"
        if code is not None and code == -getattr(signal, "SIGXCPU", 0):
            return f"it was over its {self.cpu_seconds:g} s of processor time; allow more, if the game is worth it"
        return f"it died (exit code {code}); its last words, if any, are on standard error"


def _error(error: str, message: str, **place: Any) -> GameloreError:
    """What was raised there; one that only its own module knows as what all of them are."""
    kind: type[GameloreError] = getattr(errors, error, GameloreError)
    return kind(message, **place) if issubclass(kind, GDLError) else kind(message)


def seen(reply: asyncio.Future[Any]) -> None:
    """Keeps the event loop from complaining of errors that nobody waits for any more."""
    if not reply.cancelled():
        reply.exception()


def _log_failure(reply: asyncio.Future[Any]) -> None:
    error = None if reply.cancelled() else reply.exception()
    if error is not None:
        log.warning("not learned yet: %s", printable(str(error)))
