"""Host (game manager) of one match: remote and local players, clocks, checks of replies, replacement moves.

A *seat* gives the host the same methods for every player, whether the player is on the network or in this process.
Seats return replies as text, and the host checks them. A seat uses the game's own names for moves and roles, even if
the player knows the game under scrambled names.

In each phase, the host asks all roles in parallel. The phase ends with the last reply, or when the clock ends. A late,
missing or illegal reply becomes an event of the match, and a legal move replaces it. The kinds of events are

    TO           The reply did not arrive in time.
    CE           There was no connection, or the connection broke.
    IL <reply>   The reply was not a legal move. In the START phase: the reply was not `ready`.

The events of the START phase have ply -1, and the events of the first PLAY phase have ply 0. In the common record
format, the errors of the START phase are row 0, and the errors of the first PLAY phase are row 1.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, get_args

from ..catalogue import player as of_catalogue
from ..errors import GameloreError, ProtocolError, check_word
from ..game.game import make
from ..gdl.syntax import printable
from ..learning.session import LastingLearner
from ..matches.match import ILLEGAL, LATE, MAX_PLIES, UNREACHABLE, Event, MatchRecord, MatchState, check_seats
from ..players.player import Player
from ..players.position_graph import PositionGraph
from ..players.random_streams import WHICH, stream, uniform
from . import messages
from .belief import SLICE, LastingPlayer, PlayerMatches
from .messages import Abort, Info, Message, Play, PlayerInfo, Start, Stop, parse_reply, parse_status, show

if TYPE_CHECKING:
    from ..analysis.isomorphism import Renaming
    from ..game.game import Game
    from .http import Client

STAGE = "host"  # part of the random stream keys of replacement moves
AT_START = -1  # ply of the events in the START phase
ABORT_SECONDS = 2.0  # maximum time for the replies to ABORT
AGAIN = 0.25  # seconds between two attempts to connect to a player at START

Moves = Sequence[str] | None
Replace = Literal["random", "first"]
log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Settings of hosted matches.

    startclock, playclock  clocks that are sent to the players, in whole seconds
    extra                  seconds that the host waits after the end of a clock, as other managers do
    replace                replacement for an illegal or missing move: a random move, or the first move in action order
    seed                   seed of the random replacements and of local players
    max_plies              maximum number of plies; a match of this length ends as "cap"

    Raises GameloreError for values out of range.
    """

    startclock: int = 10
    playclock: int = 5
    extra: float = 1.0
    replace: Replace = "random"
    seed: int = 0
    max_plies: int = MAX_PLIES

    def __post_init__(self) -> None:
        for name in ("startclock", "playclock", "extra"):
            if getattr(self, name) < 0:
                raise GameloreError(
                    f"expected a {name} of at least 0 seconds, got {getattr(self, name)}; choose a larger one"
                )
        check_word("replace", self.replace, get_args(Replace))
        if self.max_plies < 1:
            raise GameloreError(f"expected max_plies of at least 1, got {self.max_plies}; choose a larger one")


class Seat(Protocol):
    """A player in one role of any number of parallel matches.

    In all methods, `seconds` is the time that the host waits for the reply. The methods return the reply. They may be
    cancelled at any time. They raise

    TimeoutError     if the reply is late
    ConnectionError  if there is no connection, or if the connection breaks before the end of the reply
    ProtocolError    if the reply is unreadable
    """

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """Begin a match, which has the number `number` in its series."""

    async def play(self, match: str, moves: Moves, seconds: float) -> str:
        """Return the player's next move.

        moves: the last joint move, in the order of roles; None before the first joint move
        """

    async def stop(self, match: str, moves: Moves, seconds: float) -> str:
        """End the match. `moves` is its last joint move."""

    async def abort(self, match: str, seconds: float) -> str:
        """Cancel the match; it does not count as a result."""


@dataclass(frozen=True, slots=True)
class Disguise:
    """Scrambled rules for a remote player, and the translation between their names and the game's names."""

    rules: str
    renaming: Renaming


@dataclass(eq=False)
class RemoteSeat:
    """A player that answers GGP messages at `url`.

    receiver  name of the player, for the header of the messages
    disguise  scrambled names for the player; None for the game's own names
    suffix    text after the match ids; it distinguishes the roles of a player with several roles in one match
    """

    url: str
    client: Client
    receiver: str = ""
    disguise: Disguise | None = None
    suffix: str = ""

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """See `Seat.start`. If the player refuses the connection or is busy, try again until the clock ends.

        A player may still be busy because it writes its last match to disk, or plays for another host.
        """
        role, rules = start.role, start.rules
        if self.disguise is not None:
            role, rules = self.disguise.renaming.theirs(role), self.disguise.rules
        message = Start(start.match + self.suffix, role, rules, start.startclock, start.playclock)
        deadline, reply = time.monotonic() + seconds, ""
        while True:
            try:
                reply = await self._post(message, seconds)
                if not is_busy(reply) or deadline - time.monotonic() <= 2 * AGAIN:
                    return reply
            except ConnectionRefusedError:
                if deadline - time.monotonic() <= 2 * AGAIN:
                    raise
            except TimeoutError:
                if reply:  # to an earlier attempt: busy
                    return reply
                raise
            await asyncio.sleep(AGAIN)
            seconds = deadline - time.monotonic() - AGAIN  # ends before the caller gives up

    async def play(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.play`."""
        return self._ours(await self._post(Play(match + self.suffix, self._theirs(moves)), seconds))

    async def stop(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.stop`."""
        return await self._post(Stop(match + self.suffix, self._theirs(moves)), seconds)

    async def abort(self, match: str, seconds: float) -> str:
        """See `Seat.abort`."""
        return await self._post(Abort(match + self.suffix), seconds)

    async def info(self, seconds: float) -> PlayerInfo:
        """Return the player's reply to INFO. Raise the same errors as the methods of `Seat`."""
        return parse_status(await self._post(Info(), seconds))

    async def _post(self, message: Message, seconds: float) -> str:
        return await self.client.post(self.url, show(message), seconds, self.receiver)

    def _theirs(self, moves: Moves) -> tuple[str, ...] | None:
        if moves is None:
            return None
        return tuple(map(self.disguise.renaming.theirs, moves) if self.disguise else moves)

    def _ours(self, reply: str) -> str:
        """Return a reply with the game's own names. A reply that is no term is returned unchanged."""
        with suppress(GameloreError, ValueError):
            return self.disguise.renaming.ours(parse_reply(reply)) if self.disguise else reply
        return reply


class LocalSeat:
    """A player of this process, in its own thread, so that a slow player does not delay other players.

    The player may think until the playclock ends; matches that run side by side share it. If the host stops waiting for
    a call, the call still runs to its end, so that the player knows the state of all its matches. A LocalSeat is an
    asynchronous context manager.
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
        options = {"seed": seed} if opponent is None else {"seed": seed, "opponent": opponent}
        self.name = player if isinstance(player, str) else type(player).__name__
        self.player = of_catalogue(player, **options) if isinstance(player, str) else player
        self._matches = PlayerMatches(_for_thread(game), self.player, seed=seed, max_plies=max_plies)
        self._playclocks: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(1, f"seat of {self.name}")
        self._failure: Exception | None = None

    async def __aenter__(self) -> LocalSeat:
        return self

    @property
    def may_learn(self) -> bool:
        """Whether the player uses the results of finished matches."""
        return type(self.player).end is not Player.end

    async def __aexit__(self, *_: object) -> None:
        """Wait for the player's calls, let the player learn from finished matches, and close it."""
        try:
            await self._do(self._learn)
            await self._do(self._check)
            if isinstance(self.player, LastingLearner):
                await self._do(self.player.close)
        finally:
            await asyncio.to_thread(self._thread.shutdown)

    async def start(self, start: Start, number: int, seconds: float) -> str:
        """See `Seat.start`. The rules in the message are ignored. Errors of the player are raised."""
        self._playclocks[start.match] = start.playclock
        # a lasting player numbers its matches itself, and counts matches of earlier series too
        numbered = None if isinstance(self.player, LastingPlayer) else number
        deadline = time.monotonic() + start.startclock
        await self._do(lambda: self._begin(start, numbered, deadline))
        await self._use_startclock(start.match, deadline)
        return messages.READY

    async def play(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.play`. Raise GameloreError for an illegal move. Errors of the player are raised too."""
        deadline = time.monotonic() + self._playclocks[match]
        return await self._do(lambda: self._move(match, moves, deadline))

    async def stop(self, match: str, moves: Moves, seconds: float) -> str:
        """See `Seat.stop`. The player learns after the reply. For an unknown match, the reply is `busy`."""
        if self._playclocks.pop(match, None) is None:
            return messages.BUSY
        await self._do(lambda: self._matches.stop(match, moves))
        self._thread.submit(self._learn)
        return messages.DONE

    async def abort(self, match: str, seconds: float) -> str:
        """See `Seat.abort`."""
        self._playclocks.pop(match, None)
        await self._do(lambda: self._matches.abort(match))
        return messages.ABORTED

    async def recall(self, match: str, role: str, moves: Sequence[Sequence[str]]) -> None:
        """Replay a match that an earlier process has played, if the player is a `LastingPlayer`.

        The player learns from the match, unless it has already learned from it.
        """
        if isinstance(self.player, LastingPlayer):
            await self._do(lambda: self._again(match, role, moves))

    def _begin(self, start: Start, number: int | None, deadline: float) -> None:
        self._check()
        self._matches.start(start.match, start.role, number, startclock=start.startclock, deadline=deadline)

    async def _use_startclock(self, match: str, deadline: float) -> None:
        """Let the player think as long as it wants to; a match may end between two slices."""
        while match in self._playclocks and (now := time.monotonic()) < deadline:
            if not await self._do(partial(self._matches.ponder, match, min(deadline, now + SLICE))):
                break

    def _learn(self) -> None:
        """Let the player learn. An error is stored, and `_check` raises it later."""
        try:
            self._matches.learn()
        except Exception as error:
            self._failure = error

    def _check(self) -> None:
        """Raise the error that occurred while the player learned, if there was an error."""
        if self._failure is not None:
            raise self._failure

    def _move(self, match: str, moves: Moves, deadline: float) -> str:
        """Return the player's move. The other matches may wait for this call, so it takes a share of the playclock."""
        self._matches.advance(match, moves)
        share = self._playclocks[match] / len(self._playclocks) if match in self._playclocks else 0.0
        return self._matches.choose(match, min(deadline, time.monotonic() + share))

    def _again(self, match: str, role: str, moves: Sequence[Sequence[str]]) -> None:
        self._matches.start(match, role, 0)  # any number: no moves are chosen
        for joint in moves[:-1]:
            self._matches.advance(match, joint)
        self._matches.stop(match, moves[-1] if moves else None)
        self._matches.learn()

    async def _do(self, work: Callable[[], _T]) -> _T:
        """Return the result of work in the thread. Errors of the player must not look like those of a connection."""

        def guarded() -> _T:
            try:
                return work()
            except (OSError, ProtocolError) as error:
                raise GameloreError(f"the player failed with {type(error).__name__}: {error}") from error

        return await asyncio.shield(asyncio.wrap_future(self._thread.submit(guarded)))


def _for_thread(game: Game) -> Game:
    """Return the game for use in another thread.

    If the game uses clingo, return a copy, because two threads must not call the same clingo program.
    """
    if not game.uses_reasoner:
        return game
    return make(game.rulesheet, game.name, "reasoner" if game.engine == "reasoner" else "auto", game.limits)


async def run_match(
    game: Game,
    seats: Sequence[Seat],
    settings: HostSettings | None = None,
    number: int = 0,
    *,
    match: str = "",
    graph: PositionGraph | None = None,
    on_over: Callable[[MatchRecord], None] | None = None,
    abort_if_busy: bool = False,
    opening: Sequence[Sequence[str]] = (),
) -> MatchRecord:
    """Lead a match from START to STOP, and return its record.

    Faults of remote players do not stop the match. If the call is cancelled, or if a local player or `on_over` raises
    an error, ABORT is sent to all players before the error is raised.

    Args:
        seats: one seat for each role
        number: number of the match in its series, for the random streams of replacements and of local players
        match: id of the match in the messages; "" for a random id
        graph: position graph that several matches share
        on_over: called with the record at the end of the match, before STOP or ABORT is sent
        abort_if_busy: whether to abort a match if a player is still `busy` when the startclock ends; the record then
            has no moves, and its `end` is None. Otherwise the player is asked for moves all the same
        opening: the first joint moves of the match, each as texts in the order of roles. The players are asked for
            moves as always, but their answers are ignored, also late, missing and illegal ones

    Raises:
        GameloreError: for a wrong number of seats
        IllegalMoveError: for a move of the opening that is not legal
    """
    check_seats(game, seats)
    settings = settings or HostSettings()
    state = MatchState(graph or PositionGraph(game), max_plies=settings.max_plies)
    leading = _Leading(seats, settings, number, match or f"match.{secrets.token_hex(8)}", state, opening)
    try:
        await leading.start()
        is_refused = abort_if_busy and bool(busy_roles(state.events))
        while state.end is None and not is_refused:
            await leading.turn()
        record = leading.record(is_aborted=is_refused)
        if on_over is not None:
            on_over(record)
    except BaseException:
        await send_abort(seats, leading.match)
        raise
    await (send_abort(seats, leading.match) if is_refused else leading.stop())
    return record


def busy_roles(events: Iterable[Event]) -> frozenset[str]:
    """Return the roles whose players were still `busy` when the startclock ended."""
    return frozenset(event.role for event in events if event.ply == AT_START and is_busy(event.text))


def is_busy(reply: str) -> bool:
    """Return whether a reply says that the player is busy."""
    try:
        return parse_reply(reply).lower() == messages.BUSY
    except ProtocolError:
        return False


async def send_stop(
    seats: Sequence[Seat], match: str, moves: Sequence[str] | None, seconds: float
) -> tuple[Answer, ...]:
    """Send STOP to all players, and return their answers."""
    return await _ask_all([partial(seat.stop, match, moves, seconds) for seat in seats], seconds)


async def send_abort(seats: Sequence[Seat], match: str) -> None:
    """Send ABORT to all players, and wait at most ABORT_SECONDS for their replies."""
    asked = [_ask(partial(seat.abort, match, ABORT_SECONDS), ABORT_SECONDS) for seat in seats]
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, BaseException):  # a local player failed; only log this
            log.info("match %s, ABORT: %s", match, answer)


class Answer(NamedTuple):
    """The answer of a player: a reply, or an event in place of a missing reply.

    reply  text of the reply; empty for an event
    kind   kind of the event; empty for a reply
    text   description of the event; empty for a reply
    """

    reply: str
    kind: str = ""
    text: str = ""


async def together(calls: Iterable[Coroutine[Any, Any, _T]]) -> tuple[_T, ...]:
    """Return the results of all calls. If one call raises an error, cancel the other calls and raise the error."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _ask_all(calls: Iterable[Callable[[], Awaitable[str]]], seconds: float) -> tuple[Answer, ...]:
    return await together([_ask(call, seconds) for call in calls])


async def _ask(call: Callable[[], Awaitable[str]], seconds: float) -> Answer:
    """Return the answer of one player, after at most `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return Answer(await call())
    except TimeoutError:
        return Answer("", LATE)
    except OSError as error:
        log.info("%s", printable(str(error)))
        return Answer("", UNREACHABLE)
    except ProtocolError as error:
        return Answer("", ILLEGAL, printable(str(error)))


@dataclass(eq=False)
class _Leading:
    """A match in progress; see `run_match`."""

    seats: Sequence[Seat]
    settings: HostSettings
    number: int
    match: str
    state: MatchState
    opening: Sequence[Sequence[str]] = ()
    _moves: tuple[str, ...] | None = None
    _times: list[int] = field(default_factory=lambda: [_now()])

    def __post_init__(self) -> None:
        self._game = self.state.graph.game
        self._play_seconds = self.settings.playclock + self.settings.extra

    async def start(self) -> None:
        """Do the START phase. Players that are not ready are still asked for moves later, as other managers do."""
        rules, clocks = str(self._game.rulesheet), (self.settings.startclock, self.settings.playclock)
        seconds = self.settings.startclock + self.settings.extra
        answers = await _ask_all(
            [
                partial(seat.start, Start(self.match, role, rules, *clocks), self.number, seconds)
                for role, seat in zip(self._game.roles, self.seats, strict=True)
            ],
            seconds,
        )
        for role, answer in enumerate(answers):
            self._place(AT_START, role, answer, (messages.READY,))

    async def turn(self) -> None:
        """Do one PLAY phase, and make the joint move: that of the opening, or that of the players."""
        seconds, ply = self._play_seconds, self.state.ply
        answers = await _ask_all([partial(seat.play, self.match, self._moves, seconds) for seat in self.seats], seconds)
        moves = tuple(self.opening[ply]) if ply < len(self.opening) else self._chosen(answers)
        for role, move in enumerate(moves):
            self.state.submit(role, move)
        self._moves = moves
        self._times.append(_now())

    def _chosen(self, answers: Iterable[Answer]) -> tuple[str, ...]:
        """Return the joint move of the players, with replacements where their answers are no legal moves."""
        moves = []
        for role, answer in enumerate(answers):
            legal = self.state.legal(role)
            choice = self._place(self.state.ply, role, answer, legal)
            moves.append(legal[self._replacement(role, len(legal)) if choice is None else choice])
        return tuple(moves)

    async def stop(self) -> None:
        """Do the STOP phase. Failures are only logged, because the match is already over."""
        answers = await send_stop(self.seats, self.match, self._moves, self._play_seconds)
        for role, answer in enumerate(answers):
            if answer.kind:
                log.info("match %s, STOP: %s %s %s", self.match, self._game.roles[role], answer.kind, answer.text)

    def record(self, *, is_aborted: bool = False) -> MatchRecord:
        """Return the record of the match, without the names of its players."""
        return self.state.record(
            self.match,
            (),
            start_time=self._times[0],
            state_times=tuple(self._times),
            start_clock=self.settings.startclock,
            play_clock=self.settings.playclock,
            is_aborted=is_aborted,
            errors=self._errors(),
            settings=asdict(self.settings),
        )

    def _place(self, ply: int, role: int, answer: Answer, awaited: Sequence[str]) -> int | None:
        """Return the index of an answer in `awaited`. If it is not in `awaited`, note an event and return None."""
        if not answer.kind:
            try:
                return _position(answer.reply, awaited)
            except (ValueError, ProtocolError):
                answer = Answer("", ILLEGAL, printable(answer.reply))
        self.state.events.append(Event(ply, self._game.roles[role], answer.kind, answer.text))
        phase = "START" if ply == AT_START else f"ply {ply}"
        log.info("match %s, %s: %s %s %s", self.match, phase, self._game.roles[role], answer.kind, answer.text)
        return None

    def _replacement(self, role: int, num_moves: int) -> int:
        if self.settings.replace == "first":
            return 0
        key = stream(self.settings.seed, 0, STAGE, self.number, role)
        return int(uniform(key, self.state.ply, WHICH) * num_moves)

    def _errors(self) -> tuple[tuple[str, ...], ...]:
        """Return the events in the form of the common record: one text for each position and role, "" for no event."""
        rows = [[""] * self._game.num_roles for _ in self._times]
        for event in self.state.events:
            rows[event.ply + 1][self._game.roles.index(event.role)] = f"{event.kind} {event.text}".strip()
        return tuple(map(tuple, rows))


def _position(reply: str, awaited: Sequence[str]) -> int:
    """Return the index of a reply in `awaited`.

    Replies are compared as text. The game does not parse them, because it would keep every new term in memory.

    Raise ProtocolError if the reply is no term. Raise ValueError if the reply is not in `awaited`.
    """
    if reply in awaited:
        return awaited.index(reply)
    return list(map(str.lower, awaited)).index(parse_reply(reply).lower())


def _now() -> int:
    """Return the present time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
