"""The processes that load and play rules for the pages.

Each game has one for positions, one for players and one for advice, so that a click is answered while a player thinks.
A spare process is always ready. A process that died is replaced, and its request is repeated once, unless the request
itself was too much for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal, Self, TypeAlias

from ...errors import GameloreError
from ...net.pool import WorkerDied, WorkerProcess, WorkerSettings

MODULE = "gamelore.web.children.rule_worker"
OPEN_SECONDS = 120.0  # limit of elapsed time for loading a game
POSITION_SECONDS = 20.0  # limit for a position and its picture
LEARN_SECONDS = 120.0  # limit for learning from a match
PATIENCE = 30.0  # seconds for a player that nobody waits for any more
WARM_UP_SECONDS = 600.0  # limit for loading the player gamelore, which compiles it in a new installation
IDLE_SECONDS = 60.0  # after the last request, until a shared process ends
log = logging.getLogger(__name__)

Lane: TypeAlias = Literal["positions", "players", "advice"]
"""What a process is asked for."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a game: their text, and the name of the game."""

    text: str
    name: str

    @property
    def key(self) -> str:
        """A key of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of the processes.

    memory   bytes for each process, at least 1 GiB
    seconds  processor time to load a game
    most     number of processes; the one that was not used for the longest time is ended for a new one
    jobs     number of long jobs, such as learning runs, at a time
    """

    memory: int = 3 << 30
    seconds: float = 90.0
    most: int = 10
    jobs: int = 8


class TooBusy(GameloreError):
    """Error: all processes are in use."""


class SharedProcess:
    """A process that all pages share. It begins with the first request, and ends when nobody has asked for some time.

    Args:
        start: starts the process
    """

    def __init__(self, start: Callable[[], WorkerProcess]) -> None:
        self._start = start
        self._process: WorkerProcess | None = None
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, do: str, time_limit: float, /, **given: Any) -> Any:
        """Return the answer to a request. Raise its error, or WorkerDied if the request was too much for the process.

        Args:
            do: name of a method of the process
            time_limit: seconds for the request, from the time when the process begins it
            given: arguments of the method
        """
        try:
            return await _ask_twice(self._alive, do, time_limit, given)
        finally:
            self._end_later()

    def _alive(self) -> WorkerProcess:
        if self._process is None or not self._process.is_alive:
            self._process = self._start()
        return self._process

    def _end_later(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if self._process is not None and self._process.is_idle:  # otherwise the last request calls `_end_later`
            self._process.end()


async def _ask_twice(process: Callable[[], WorkerProcess], do: str, time_limit: float, given: Mapping[str, Any]) -> Any:
    """Ask a process, and once more if it died of another request."""
    try:
        return await process().ask(do, time_limit, **given)
    except WorkerDied as death:
        if death.is_mine:
            raise
        log.info("a process died, and its request is repeated: %s", death)
    return await process().ask(do, time_limit, **given)


class RuleProcesses:
    """All processes of the server of the pages. Use `async with RuleProcesses() as processes`."""

    def __init__(self, limits: ProcessLimits | None = None) -> None:
        self.limits = limits or ProcessLimits()
        self._processes: dict[tuple[Lane, str], WorkerProcess] = {}
        self._used: dict[WorkerProcess, float] = {}  # time of the last request
        self._all: set[WorkerProcess] = set()
        self._spares: dict[str, WorkerProcess] = {}
        self._shared: dict[str, SharedProcess] = {}
        self._first: WorkerProcess | None = None
        self._jobs = 0
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        self._refill(MODULE)
        self._first = self._spares[MODULE]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._is_open = False
        await asyncio.gather(*(process.close(learns=False) for process in self._all), return_exceptions=True)

    async def ask(
        self, rules: Rules | None, do: str, *, lane: Lane = "positions", time_limit: float, **given: Any
    ) -> Any:
        """Ask a process of a game, and return the answer.

        Args:
            rules: the game; None for a request about no game
            do: name of a method of `RuleWorker`
            lane: which process of the game
            time_limit: seconds for the request, from the time when the process begins it
            given: further arguments of the method

        Raises:
            GameloreError: what the method raised, or `WorkerDied` if the request was too much for its process
        """
        await self._prepared()
        if rules is not None:
            given |= {"rules": rules.text, "name": rules.name}
        return await _ask_twice(lambda: self._process(lane, rules), do, time_limit, given)

    async def warm_up(self) -> None:
        """Load the player gamelore once, in a process that answers no requests of the pages about players."""
        await self.ask(None, "warm_up", lane="advice", time_limit=WARM_UP_SECONDS)

    def shared(self, module: str) -> SharedProcess:
        """Return the process of a module that all pages share, such as the one that reads the knowledge store."""
        if module not in self._shared:
            self._shared[module] = SharedProcess(lambda: self._taken(module))
        return self._shared[module]

    def has(self, rules: Rules, lane: Lane) -> bool:
        """Return whether a process of a game runs."""
        process = self._processes.get((lane, rules.key))
        return process is not None and process.is_alive

    @asynccontextmanager
    async def job(self, module: str = MODULE, *, is_long: bool = True) -> AsyncIterator[WorkerProcess]:
        """Yield a process of its own, which ends with the `with` block.

        Args:
            module: what the process runs
            is_long: whether it is a long job, such as a learning run, of which there are only `ProcessLimits.jobs`

        Raises:
            TooBusy: there are too many long jobs.
        """
        await self._prepared()
        if is_long and self._jobs >= self.limits.jobs:
            raise TooBusy(f"expected at most {self.limits.jobs} jobs at a time, got one more; end another job first")
        self._jobs += is_long
        process = self._taken(module)
        try:
            yield process
        finally:
            self._jobs -= is_long
            process.kill("the job has ended")

    @property
    def is_prepared(self) -> bool:
        """Whether a process has loaded the code of gamelore."""
        return self._first is None or self._first.hello.reply.done()

    async def _prepared(self) -> None:
        """Wait for the first process. In a new installation it compiles kernels, and others would compile them too."""
        if self._first is not None and not self.is_prepared:
            await asyncio.wait({self._first.hello.reply})

    def _process(self, lane: Lane, rules: Rules | None) -> WorkerProcess:
        key = lane, rules.key if rules else ""
        process = self._processes.get(key)
        if process is None or not process.is_alive:
            self._make_room()
            process = self._processes[key] = self._taken(MODULE)
        self._used[process] = monotonic()
        return process

    def _make_room(self) -> None:
        """End the idle process that was not used for the longest time, if there are too many."""
        self._processes = {key: process for key, process in self._processes.items() if process.is_alive}
        if len(self._processes) < self.limits.most:
            return
        idle = [process for process in self._processes.values() if process.is_idle]
        if not idle:
            raise TooBusy("expected a free process, got none, because all think; try again in a moment")
        oldest = min(idle, key=lambda process: self._used.get(process, 0.0))
        oldest.end()

    def _taken(self, module: str) -> WorkerProcess:
        """Return the spare process of a module, and start the next one."""
        spare = self._spares.pop(module, None)
        process = spare if spare is not None and spare.is_alive else self._started(module)
        self._refill(module)
        return process

    def _refill(self, module: str) -> None:
        if self._is_open and module == MODULE:
            self._spares[module] = self._started(module)

    def _started(self, module: str) -> WorkerProcess:
        limits = self.limits
        settings = WorkerSettings(
            player="", memory=limits.memory, prepare_seconds=limits.seconds, patience=PATIENCE, module=module
        )
        process = WorkerProcess(settings)
        self._all.add(process)
        process.gone.add_done_callback(lambda _: self._forget(process))
        return process

    def _forget(self, process: WorkerProcess) -> None:
        self._all.discard(process)
        self._used.pop(process, None)
