"""A host's view of a player: a seat, at the other end of a wire or in this process, asked the same things either way.

Seats give replies as text, whatever the player said; to judge it is for the host (host.py). Moves and roles are in the
host's own words, also where the player knows the game under scrambled names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..errors import GameloreError
from ..learn.lasting import LastingLearner
from ..learn.players import player as of_roster
from ..play.match import MAX_PLIES
from ..play.player import Player
from ..rules.game import make
from .messages import (
    ABORTED,
    AVAILABLE,
    BUSY,
    DONE,
    READY,
    Abort,
    Info,
    Message,
    Play,
    PlayerInfo,
    Start,
    Stop,
    parse_reply,
    parse_status,
    show,
)
from .table import LastingPlayer, Table

if TYPE_CHECKING:
    from ..rules.game import Game
    from ..rules.renaming import Renaming
    from .client import Client

AGAIN = 0.25  # seconds until a player that could not be reached at START is tried once more
Moves = Sequence[str] | None
_T = TypeVar("_T")


class Seat(Protocol):
    """Who is asked for the moves of one role, in any number of matches at once.

    `seconds` are how long the host waits for the reply. Calls raise TimeoutError for a player that is late,
    ConnectionError for one that cannot be reached, or not to the end of its reply, and ProtocolError for a reply that
    nobody can read. They may be cancelled at any time.
    """

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """Begins match `number` of a series; its id, its role, its rules and its clocks are in `start`."""
        ...

    async def play(self, match: str, moves: Moves, seconds: float) -> str:
        """The player's move after this joint move, in the order of roles; None at first."""
        ...

    async def stop(self, match: str, moves: Moves, seconds: float) -> str:
        """The match is over, with this last joint move."""
        ...

    async def abort(self, match: str, seconds: float) -> str:
        """The match counts for nothing."""
        ...

    async def info(self, seconds: float) -> PlayerInfo:
        """Who is there, and whether it is free."""
        ...


@dataclass(frozen=True, slots=True)
class Disguise:
    """What a player behind a wire sees in place of the game's own names: the rules with others, and how they differ."""

    rules: str
    renaming: Renaming


class RemoteSeat:
    """A player that answers GGP messages at `url`.

    receiver  its name, for the head of the messages
    disguise  the names that it is to see, None for the game's own
    suffix    what is put behind the ids of matches, where one player has several roles of a match
    """

    def __init__(
        self, url: str, client: Client, *, receiver: str = "", disguise: Disguise | None = None, suffix: str = ""
    ) -> None:
        self.url = url
        self._client = client
        self._receiver = receiver
        self._disguise = disguise
        self._suffix = suffix

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """See `Seat.start`. A player that is not there yet, or being started again, has until the clock ends."""
        role, rules = start.role, start.rules
        if self._disguise is not None:
            role, rules = self._disguise.renaming.theirs(role), self._disguise.rules
        message = Start(start.match + self._suffix, role, rules, start.startclock, start.playclock)
        deadline = time.monotonic() + seconds
        while True:
            try:
                return await self._post(message, seconds)
            except ConnectionRefusedError:
                seconds = deadline - time.monotonic() - AGAIN
                if seconds <= 0:
                    raise
            await asyncio.sleep(AGAIN)

    async def play(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.play`."""
        return self._ours(await self._post(Play(match + self._suffix, self._theirs(moves)), seconds))

    async def stop(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.stop`."""
        return await self._post(Stop(match + self._suffix, self._theirs(moves)), seconds)

    async def abort(self, match: str, seconds: float) -> str:
        """See `Seat.abort`."""
        return await self._post(Abort(match + self._suffix), seconds)

    async def info(self, seconds: float) -> PlayerInfo:
        """See `Seat.info`."""
        return parse_status(await self._post(Info(), seconds))

    async def _post(self, message: Message, seconds: float) -> str:
        return await self._client.post(self.url, show(message), seconds, self._receiver)

    def _theirs(self, moves: Moves) -> tuple[str, ...] | None:
        if moves is None or self._disguise is None:
            return moves if moves is None else tuple(moves)
        return tuple(map(self._disguise.renaming.theirs, moves))

    def _ours(self, reply: str) -> str:
        """A reply with the names put right; one that is no term stays as it is, for the host to see."""
        if self._disguise is None:
            return reply
        try:
            return self._disguise.renaming.ours(parse_reply(reply))
        except (GameloreError, ValueError):
            return reply


class LocalSeat:
    """A player of this process, at a table and in a thread of its own, so that a slow one holds up nobody else.

    Its player may think until the playclock ends. A call that the host no longer waits for is done all the same, so
    that the table goes along with its matches. Use it as an asynchronous context manager, or `close` it.
    """

    def __init__(
        self,
        player: str | Player,
        game: Game,
        seed: int = 0,
        *,
        max_plies: int = MAX_PLIES,
        opponent: str | None = None,
    ) -> None:
        given = {"seed": seed} if opponent is None else {"seed": seed, "opponent": opponent}
        self.name = player if isinstance(player, str) else type(player).__name__
        self.player = of_roster(player, **given) if isinstance(player, str) else player
        self._table = Table(_of_its_own(game), self.player, seed=seed, max_plies=max_plies)
        self._playclocks: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(1, f"seat of {self.name}")
        self._failure: Exception | None = None

    async def __aenter__(self) -> LocalSeat:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def may_learn(self) -> bool:
        """Whether the player listens to how matches end."""
        return type(self.player).end is not Player.end

    async def close(self) -> None:
        """Waits for what the player is doing, lets it learn from what has ended, and lets go of it."""
        try:
            await self._do(self._learn)
            self._check()
            if isinstance(self.player, LastingLearner):
                await self._do(self.player.close)
        finally:
            await asyncio.to_thread(self._thread.shutdown)

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """See `Seat.start`. The game is known, `rules` are not looked at. Raises what the player raises."""
        self._playclocks[start.match] = start.playclock
        # a player whose learning lasts counts its matches itself, those of earlier series among them
        numbered = None if isinstance(self.player, LastingPlayer) else number
        await self._do(lambda: self._begin(start, numbered))
        return READY

    async def play(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.play`. Raises what the player raises, and GameloreError where it gives no legal move."""
        deadline = time.monotonic() + self._playclocks[match]
        return await self._do(lambda: self._move(match, moves, deadline))

    async def stop(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.stop`. The player learns behind the reply; a match that does not run here is BUSY."""
        if self._playclocks.pop(match, None) is None:
            return BUSY
        await self._do(lambda: self._table.stop(match, moves))
        self._thread.submit(self._learn)
        return DONE

    async def abort(self, match: str, seconds: float) -> str:
        """See `Seat.abort`."""
        self._playclocks.pop(match, None)
        await self._do(lambda: self._table.abort(match))
        return ABORTED

    async def info(self, seconds: float) -> PlayerInfo:
        """See `Seat.info`."""
        return PlayerInfo(self.name, AVAILABLE)

    async def recall(self, match: str, role: str, moves: Sequence[Sequence[str]]) -> None:
        """Goes through a whole match of an earlier process, so that a player whose learning lasts learns from it.

        One that it has learned from already it knows by its id.
        """
        if isinstance(self.player, LastingPlayer):
            await self._do(lambda: self._again(match, role, moves))

    def _begin(self, start: Start, number: int | None) -> None:
        self._check()
        self._table.start(start.match, start.role, number)

    def _learn(self) -> None:
        """Lets the player learn when nobody waits for it; what it raises is for who comes next."""
        try:
            self._table.learn()
        except Exception as error:
            self._failure = error

    def _check(self) -> None:
        """Raises what learning raised."""
        if self._failure is not None:
            raise self._failure

    def _move(self, match: str, moves: Moves, deadline: float) -> str:
        self._table.advance(match, moves)
        return self._table.choose(match, deadline)

    def _again(self, match: str, role: str, moves: Sequence[Sequence[str]]) -> None:
        self._table.start(match, role, 0)  # of no random stream: nobody is asked for moves
        for joint in moves[:-1]:
            self._table.advance(match, joint)
        self._table.stop(match, moves[-1] if moves else None)
        self._table.learn()

    async def _do(self, work: Callable[[], _T]) -> _T:
        return await asyncio.shield(asyncio.wrap_future(self._thread.submit(work)))


def _of_its_own(game: Game) -> Game:
    """The game, or a second one of the same rules where it must not be asked from two threads: clingo's."""
    if game.engine == "native" and not game.is_bounded:
        return game
    return make(game.rulesheet, game.name, "reasoner" if game.engine == "reasoner" else "auto")
