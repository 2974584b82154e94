"""A match that runs in a worker process, whichever that is at the moment.

All that the match was told is kept here, so that it goes on in another process when its own one dies.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import GameloreError
from .messages import printable
from .process import LEARN_SECONDS, Died, Process, Request, seen
from .table import Advanced, Ended

if TYPE_CHECKING:
    from .workers import GameSeats, Workers

TRIES = 2  # processes that may die over one request of a match that runs, before it is given up
ALL_TRIES = 6  # with those that may have died of something else

_T = TypeVar("_T")

log = logging.getLogger(__name__)


class RunningMatch:
    """A match that runs in some process, and goes on in another where that dies. Calls are answered in their order.

    A call that is cancelled has still told the match what it told. All raise GameloreError where the match is over, or
    was given up because process after process died over it.

    id      of the match, as the host has it
    game    the name of the game; for one that nobody knows it is "game-" and some digits
    number  of its random streams, see `Table.start`
    """

    def __init__(self, workers: Workers, id: str, role: str, rules: str) -> None:
        self.id = id
        self.game = ""
        self.number: int | None = None
        self._workers = workers
        self._settings = workers.settings
        self._about: dict[str, Any] = {"role": role, "rules": rules}
        self._key = f"{id}#{secrets.token_hex(8)}"  # the store knows by it whether the match was learned from
        self._history: list[Sequence[str] | None] = []
        self._num_told = 0  # of the history, to the present process
        self._at: Advanced | None = None
        self._on_opening: Callable[[tuple[str, ...]], None] | None = None
        self._process: Process | None = None
        self._seating: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[Ended] | None = None
        self._is_over = False

    async def begin(self, on_opening: Callable[[tuple[str, ...]], None] | None) -> None:
        """Starts the match, once; `Workers.start` does it."""
        self._on_opening = on_opening
        await self._do(_nothing)

    async def advance(self, moves: Sequence[str] | None) -> Advanced:
        """See `Table.advance`."""
        self._history.append(moves)
        return await self._do(self._tell)

    async def choose(self, seconds: float) -> str:
        """The player's move, for which it has so many seconds; see `Table.choose`.

        Raises GameloreError where the process dies over it, or is killed because it takes `patience` seconds more.
        """
        until = time.monotonic() + seconds

        async def choose(process: Process) -> str:
            self._post_history(process)
            limit = max(0.0, until - time.monotonic()) + self._settings.patience
            move: str = await process.ask("choose", limit, is_optional=True, match=self._key, deadline=until)
            return move

        return await self._do(choose, until)

    async def stop(self, moves: Sequence[str] | None) -> Ended:
        """See `Table.stop`. The player learns from it afterwards, as soon as its process has nothing else to do."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(moves))
            self._stopping.add_done_callback(seen)
        return await asyncio.shield(self._stopping)

    async def abort(self) -> None:
        """Lets the match go, at once; nobody learns from it. A choice that is under way is still made."""
        self.let_go()

    def let_go(self) -> None:
        """Ends it on this side, unless it is being stopped."""
        if self._is_over or self._stopping is not None:
            return
        self._is_over = True
        if self._seating is not None:
            self._seating.cancel()
        elif self._process is not None:
            self._abandon(self._process)

    async def _stop(self, moves: Sequence[str] | None) -> Ended:
        async def stop(process: Process) -> Ended:
            self._post_history(process)
            try:
                told = await process.ask("stop", self._settings.prepare_seconds, match=self._key, moves=moves)
            except GameloreError as error:
                if not isinstance(error, Died):  # the store failed, or the player: the match is over all the same
                    self._is_over = True
                    self._abandon(process)
                raise
            process.learn_soon()
            self._workers.leave(process)
            self._is_over = True
            return Ended(told["end"], tuple(told["goals"]), told["is_desynchronised"], told["is_learned"])

        return await self._do(stop)

    async def _tell(self, process: Process) -> Advanced:
        last = self._post_history(process)
        if last is not None:
            self._at = _advanced(await process.answer(last))
        assert self._at is not None
        return self._at

    def _post_history(self, process: Process) -> Request | None:
        """Tells the process what it was not told yet; the last of these requests."""
        last = None
        for moves in self._history[self._num_told :]:
            last = process.post("advance", self._settings.prepare_seconds, match=self._key, moves=moves)
        self._num_told = len(self._history)
        return last

    async def _do(self, ask: Callable[[Process], Awaitable[_T]], until: float = inf) -> _T:
        """What a process answers; where it dies, another one, if it is not too late (monotonic seconds)."""
        tries, ours, deaths = TRIES if self._at is not None else 1, 0, 0
        while True:
            try:
                return await ask(await self._seated())
            except Died as died:
                ours, deaths = ours + died.is_mine, deaths + 1
                is_enough = ours >= tries or deaths >= ALL_TRIES
                self._is_over |= is_enough and until == inf
                if is_enough or time.monotonic() >= until:
                    raise
                log.warning("match %s goes on elsewhere: %s", printable(self.id), died)

    async def _seated(self) -> Process:
        """The process in which the match runs."""
        if self._is_over:
            raise GameloreError(f"expected a match that runs, got {printable(self.id)}, which is over; start another")
        if self._process is None or not self._process.is_alive:
            if self._seating is None:
                self._seating = asyncio.create_task(self._take_seat())
                self._seating.add_done_callback(seen)
            await asyncio.shield(self._seating)
        assert self._process is not None
        return self._process

    async def _take_seat(self) -> None:
        """Starts the match in a process, and tells it all that was played."""
        try:
            game, process = await self._workers.seat(self._about["rules"])
            try:
                await self._open(process)
                self._at = _advanced(await self._start(game, process))
            except BaseException:
                self._abandon(process)
                raise
            self.game, self._process = game.name, process
        finally:
            self._seating = None

    async def _open(self, process: Process) -> None:
        """Tells of the first legal moves, once: a player may take its time to begin."""
        if self._on_opening is not None:
            self._on_opening(tuple(await process.ask("opening", self._settings.prepare_seconds, **self._about)))
            self._on_opening = None

    async def _start(self, game: GameSeats, process: Process) -> dict[str, Any]:
        """Where the match is when it has been started there."""
        if self.number is None and not self._workers.is_lasting:
            self.number = next(game.numbers)
        history = list(self._history)
        seconds = self._settings.prepare_seconds + LEARN_SECONDS
        told = await process.ask("start", seconds, match=self._key, number=self.number, history=history, **self._about)
        self.number, self._num_told = told["number"], len(history)
        at: dict[str, Any] = told["at"]
        return at

    def _abandon(self, process: Process) -> None:
        process.post("abort", self._settings.prepare_seconds, match=self._key)
        self._workers.leave(process)


async def _nothing(process: Process) -> None:
    """Asks nothing of a process."""


def _advanced(told: dict[str, Any]) -> Advanced:
    return Advanced(tuple(told["legal"]), told["ply"], told["end"], told["is_desynchronised"])
