"""The processes that play (worker.py): shared among matches, killed and replaced.

Rules from the network may explode, a player may hang or crash: it costs the process in which it happens. All that a
match was told is kept on this side, so another process can take it up, and what was learned is in the knowledge store.
A player whose learning lasts has one process for each game, so that nobody else writes what it learns; others may have
several. One process is always in reserve, with everything imported: it looks at rules that nobody has seen yet, and it
becomes the process of a game, or takes the place of one that died.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Any, Self

from ..errors import GameloreError
from .process import Process, seen
from .running import RunningMatch as RunningMatch

MIN_MEMORY = 1 << 30  # bytes: Python with clingo, LLVM and numba takes half of it before anything is played
HELLO_SECONDS = 60.0  # for a process to start
LOOK_SECONDS = 20.0  # for finding out which game some rules are
IDLE = 3  # processes without a match that are kept
GAMES = 100  # that are remembered
NEW_TEXT = 1_000_000  # characters of rules of games that are new, which others are told
CLOSED = "expected open workers, got closed ones; use them within `async with`"
TEXTS = 500  # rules as they came in, of which it is remembered which game they are


@dataclass(frozen=True)
class WorkerSettings:
    """player and options are those of `learn.players.player`: knowledge, opponent, seed, learn, quota, search ..

    memory           bytes for a process, 1 GB or more
    prepare_seconds  for a game to be ready, of processor time and of the clock; and for what was played to be taken in
    processes        for each game at most, where learning does not last; None for one on each core
    patience         seconds that a process may go on with what nobody waits for any more

    Raises GameloreError for values outside these bounds.
    """

    player: str
    options: Mapping[str, Any] = field(default_factory=dict)
    memory: int = 4 << 30
    prepare_seconds: float = 60.0
    processes: int | None = None
    patience: float = 2.0

    def __post_init__(self) -> None:
        if self.memory < MIN_MEMORY:
            raise GameloreError(f"expected at least {MIN_MEMORY} bytes of memory, got {self.memory}; give more")
        if not (self.prepare_seconds > 0 and self.patience > 0):
            raise GameloreError("expected prepare_seconds and patience above 0, got less; give more")
        if self.processes is not None and self.processes < 1:
            raise GameloreError(f"expected at least 1 process, got {self.processes}; leave it out for one on each core")


@dataclass
class GameSeats:
    """A game that came in: who plays it, the numbers of its matches, and what others need to recognise it, if new."""

    name: str
    known: Sequence[Sequence[str]]
    processes: list[Process] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    numbers: Iterator[int] = field(default_factory=count)

    def alive(self) -> list[Process]:
        """The processes that take requests."""
        return [process for process in self.processes if process.is_alive]


class Workers:
    """All processes of one player; `async with Workers(settings) as workers`.

    Raises GameloreError on entering where the player cannot be made.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        self.is_lasting = False
        self._spare: asyncio.Task[Process] | None = None
        self._looking = asyncio.Lock()
        self._games: OrderedDict[str, GameSeats] = OrderedDict()
        self._keys: OrderedDict[str, str] = OrderedDict()
        self._processes: set[Process] = set()
        self._starting: set[asyncio.Task[Process]] = set()
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        try:
            self._give_back(await self._take_spare())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def prepare(self, rules: str) -> str:
        """Makes a game ready to be started; its name. Raises as `start` does."""
        game, process = await self.seat(rules)
        self.leave(process)
        return game.name

    async def start(
        self, match: str, role: str, rules: str, on_opening: Callable[[tuple[str, ...]], None] | None = None
    ) -> RunningMatch:
        """Begins a match. `on_opening` is told the role's first legal moves as soon as the game is ready.

        Raises GDLError for rules that cannot be played, GroundingError and other GameloreErrors as they come from the
        process that looks at them, and GameloreError where that dies or goes over its limits.
        """
        running = RunningMatch(self, match, role, rules)
        try:
            await running.begin(on_opening)
        except BaseException:
            running.let_go()
            raise
        return running

    async def close(self) -> None:
        """Lets learners learn what is left, for some seconds, and ends all processes. Nothing is started any more."""
        self._is_open = False
        for starting in self._starting:
            starting.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(*(process.close() for process in list(self._processes)))

    # for RunningMatch

    async def seat(self, rules: str) -> tuple[GameSeats, Process]:
        """A process that has the game of these rules ready; it has one match more, until that leaves."""
        game = await self._recognised(rules)
        async with game.lock:
            process = self._choose(game) or await self._engage(game)
            process.num_matches += 1
            process.num_seated += 1
            try:
                await process.ask("prepare", self.settings.prepare_seconds, rules=rules, known=game.known)
            except BaseException:
                self.leave(process)
                if not process.num_matches:
                    process.kill("its game was given up")
                raise
            finally:
                self._refill()
        return game, process

    def leave(self, process: Process) -> None:
        """One match less. Of the processes without any, those that had one last are kept."""
        process.num_matches -= 1
        process.left_at = time.monotonic()
        idle = [one for game in self._games.values() for one in game.alive() if one.is_idle]
        for one in sorted(idle, key=lambda one: one.left_at)[:-IDLE]:
            one.end()

    async def _recognised(self, rules: str) -> GameSeats:
        """The game of these rules. One text after the other is looked at, for the next may be the same game."""
        digest = hashlib.sha256(rules.encode()).hexdigest()
        if self._keys.get(digest) not in self._games:
            async with self._looking:
                if self._keys.get(digest) not in self._games:
                    self._keys[digest], game = await self._look(rules)
                    self._games.setdefault(self._keys[digest], game)
        key = self._keys[digest]
        self._keys.move_to_end(digest)
        self._games.move_to_end(key)
        game = self._games[key]
        self._forget()
        return game

    async def _look(self, rules: str) -> tuple[str, GameSeats]:
        """Lets the spare process look at rules: the key of their game, and the game as a new one here."""
        known = self._new_games()
        seconds = min(LOOK_SECONDS, self.settings.prepare_seconds)
        process = await self._take_spare()
        try:
            told = await process.ask("recognise", seconds, rules=rules, known=known)
        finally:
            self._give_back(process)
        key, name = told["key"], told["name"]
        return key, GameSeats(name, [(name, key, rules)] if told["is_new"] else [])

    def _new_games(self) -> list[Sequence[str]]:
        """Those that no other process may know yet, the last ones first, so far as they are not too much to look at."""
        known = [one for game in reversed(self._games.values()) for one in game.known]
        sizes = accumulate(len(text) for _, _, text in known)
        return [one for one, size in zip(known, sizes, strict=True) if size <= NEW_TEXT]

    def _forget(self) -> None:
        """Bounds what is remembered of games that nobody plays."""
        if len(self._keys) > TEXTS:
            self._keys.popitem(last=False)
        for key in [key for key, game in self._games.items() if not game.alive() and not game.lock.locked()]:
            if len(self._games) <= GAMES:
                break
            del self._games[key]

    def _choose(self, game: GameSeats) -> Process | None:
        """The process for one more match of a game; None for a fresh one."""
        alive = sorted(game.alive(), key=lambda process: process.num_matches)
        most = 1 if self.is_lasting else self.settings.processes or os.cpu_count() or 1
        return alive[0] if alive and (not alive[0].num_matches or len(alive) >= most) else None

    async def _engage(self, game: GameSeats) -> Process:
        """The spare process is one of this game from now on; those that ended are really gone then."""
        await asyncio.gather(*(one.gone for one in game.processes if not one.is_alive))
        process = await self._take_spare()
        game.processes = [*game.alive(), process]
        return process

    async def _take_spare(self) -> Process:
        """A process that nobody else has."""
        spare, self._spare = self._spare, None
        if spare is None or not _is_promising(spare):
            spare = self._begin_fresh()
        try:
            return await spare
        except asyncio.CancelledError:
            if self._is_open:
                raise
            raise GameloreError(CLOSED) from None

    def _give_back(self, process: Process) -> None:
        """It is the spare one again, if it can be."""
        if not process.is_idle:
            process.kill("nobody waits for it")
        elif self._spare is not None:
            process.end()
        if process.is_alive:
            self._spare = asyncio.create_task(_done(process))
        self._refill()

    def _refill(self) -> None:
        """Sees to it that there will be a spare process."""
        if self._is_open and (self._spare is None or not _is_promising(self._spare)):
            self._spare = self._begin_fresh()

    def _begin_fresh(self) -> asyncio.Task[Process]:
        begun = asyncio.create_task(self._fresh())
        self._starting.add(begun)
        begun.add_done_callback(self._starting.discard)
        begun.add_done_callback(seen)
        return begun

    async def _fresh(self) -> Process:
        """A process with this player, and without a game."""
        if not self._is_open:
            raise GameloreError(CLOSED)
        settings = self.settings
        process = Process(settings.patience, settings.memory, settings.prepare_seconds)
        self._processes.add(process)
        process.gone.add_done_callback(lambda _: self._processes.discard(process))
        await process.spawn()
        options = {name: value for name, value in settings.options.items() if value is not None}
        given: dict[str, Any] = {
            "player": settings.player,
            "options": options,
            "memory": settings.memory,
            "prepare_seconds": settings.prepare_seconds,
        }
        try:
            self.is_lasting = await process.ask("hello", HELLO_SECONDS, **given)
        except BaseException:
            process.kill("it is not needed")
            raise
        return process


async def _done(process: Process) -> Process:
    return process


def _is_promising(spare: asyncio.Task[Process]) -> bool:
    """Whether it is a process that works, or may become one."""
    if not spare.done():
        return True
    return not spare.cancelled() and spare.exception() is None and spare.result().is_alive
