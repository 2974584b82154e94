"""One match as a host (the game manager) leads it: by clocks, replies and what is done where they fail.

All roles are asked in parallel in each phase, which ends when the last has answered or the clock has. What is late,
out of reach, illegal or garbled becomes an event of the match, and a legal move takes its place:

    TO           no reply in time
    CE           no connection, or one that broke
    IL <reply>   not a legal move; after START: not `ready`

Events of the START phase are at ply -1, those of the first PLAY at ply 0: the common record counts them from 0 and 1.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

from ..errors import GameloreError, ProtocolError
from ..play.graph import Graph
from ..play.match import MAX_PLIES, Event, MatchState
from ..play.streams import WHICH, stream, uniform
from .messages import READY, Start, parse_reply, printable
from .records import ILLEGAL, LATE, UNREACHABLE

if TYPE_CHECKING:
    from ..rules.game import Game
    from .seats import Seat

STAGE = "host"  # of the random streams of moves that replace others
AT_START = -1  # the ply of events before the first PLAY
ABORT_SECONDS = 2.0  # for the players to take leave of a match that is cut short

Replace = Literal["random", "first"]
log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How matches are led.

    startclock, playclock  whole seconds, as the players are told
    extra                  seconds of grace that the host waits beyond a clock, as the field's managers do
    replace                what is played for a player that gave no legal move: drawn, or the first in action order
    seed                   of those draws, and of local players
    max_plies              a match that reaches so many plies ends as "cap"

    Raises GameloreError for anything that makes no sense.
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
                raise GameloreError(f"expected a {name} of 0 seconds or more, got {getattr(self, name)}; choose one")
        if self.replace not in get_args(Replace):
            raise GameloreError(f"expected replace random | first, got {self.replace!r}; choose one of these")
        if self.max_plies < 1:
            raise GameloreError(f"expected max_plies of at least 1, got {self.max_plies}; allow some")


@dataclass(frozen=True, slots=True)
class HostedMatch:
    """A match that is over. `times`: when each position was reached, milliseconds since 1970, one more than moves."""

    match: str
    number: int
    state: MatchState
    times: tuple[int, ...]

    @property
    def goals(self) -> tuple[int | None, ...]:
        """By role; None where the rules give none, and where the match did not reach a terminal position."""
        return self.state.goals

    @property
    def end(self) -> str:
        """ "terminal", "stuck" or "cap"."""
        assert self.state.end is not None
        return self.state.end

    @property
    def plies(self) -> int:
        """How many joint moves were made."""
        return self.state.ply

    @property
    def events(self) -> tuple[Event, ...]:
        """What went wrong before the match was over, by ply and role."""
        return tuple(self.state.events)

    @property
    def errors(self) -> tuple[tuple[str, ...], ...]:
        """The events as the common record has them: per position, per role; "" where nothing went wrong."""
        roles = self.state.graph.game.roles
        rows = [[""] * len(roles) for _ in range(self.plies + 1)]
        for event in self.events:
            rows[event.ply + 1][roles.index(event.role)] = f"{event.kind} {event.text}".strip()
        return tuple(map(tuple, rows))


async def run_match(
    game: Game,
    seats: Sequence[Seat],
    settings: HostSettings | None = None,
    number: int = 0,
    *,
    match: str = "",
    graph: Graph | None = None,
    on_over: Callable[[HostedMatch], None] | None = None,
) -> HostedMatch:
    """Leads a match from START to STOP.

    seats    one for each role
    number   of the match in its series: of the random streams of replacements, and of local players
    match    its id on the wire; a random one unless told
    graph    of positions, where several matches share one
    on_over  is told before STOP goes out: what it writes down is there whatever happens then

    Whatever players behind a wire do, the match comes to its end. Cancelled, or when a local player or `on_over`
    raises, it sends ABORT before that goes on. Raises GameloreError for a wrong number of seats.
    """
    if len(seats) != game.num_roles:
        roles = ", ".join(game.roles)
        raise GameloreError(f"expected {game.num_roles} players, one for each of {roles}, got {len(seats)}")
    state = MatchState(graph or Graph(game), max_plies=(settings or HostSettings()).max_plies)
    leading = _Leading(seats, settings or HostSettings(), number, match or f"match.{secrets.token_hex(8)}", state)
    try:
        await leading.start()
        while state.end is None:
            await leading.turn()
        hosted = leading.hosted()
        if on_over is not None:
            on_over(hosted)
    except BaseException:
        await send_abort(seats, leading.match)
        raise
    await leading.stop()
    return hosted


async def send_stop(
    seats: Sequence[Seat], match: str, moves: Sequence[str] | None, seconds: float
) -> tuple[Answer, ...]:
    """Tells all players that a match is over; how each answered."""
    return await _ask_all([partial(seat.stop, match, moves, seconds) for seat in seats], seconds)


async def send_abort(seats: Sequence[Seat], match: str) -> None:
    """Tells all players that a match is cut short, and does not wait for long."""
    asked = [_ask(partial(seat.abort, match, ABORT_SECONDS), ABORT_SECONDS) for seat in seats]
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, BaseException):  # of a local player; what led to the abort says more
            log.info("match %s, ABORT: %s", match, answer)


class Answer(NamedTuple):
    """A reply, or what came in place of one: the kind of event and its text."""

    reply: str
    kind: str = ""
    text: str = ""


async def together(calls: Iterable[Coroutine[Any, Any, _T]]) -> tuple[_T, ...]:
    """What all the calls return; where one raises, the others are cancelled, and it goes on."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _ask_all(calls: Iterable[Callable[[], Awaitable[str]]], seconds: float) -> tuple[Answer, ...]:
    return await together([_ask(call, seconds) for call in calls])


async def _ask(call: Callable[[], Awaitable[str]], seconds: float) -> Answer:
    """One player's answer, after `seconds` at most."""
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


class _Leading:
    """A match while it is led; see `run_match`."""

    def __init__(
        self, seats: Sequence[Seat], settings: HostSettings, number: int, match: str, state: MatchState
    ) -> None:
        self.seats = seats
        self.settings = settings
        self.number = number
        self.match = match
        self.state = state
        self._game = state.graph.game
        self._moves: tuple[str, ...] | None = None
        self._times = [_now()]

    async def start(self) -> None:
        """The START phase: who is not ready is asked for moves all the same, as the field's managers do."""
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
            if not answer.kind and not _is_ready(answer.reply):
                answer = Answer("", ILLEGAL, printable(answer.reply))
            if answer.kind:
                self._note(AT_START, role, answer.kind, answer.text)

    async def turn(self) -> None:
        """One PLAY phase, and the joint move that comes of it."""
        seconds = self._play_seconds
        answers = await _ask_all([partial(seat.play, self.match, self._moves, seconds) for seat in self.seats], seconds)
        legal = [self.state.legal(role) for role in range(self._game.num_roles)]
        choices = [self._choice(role, answer, legal[role]) for role, answer in enumerate(answers)]
        for role, choice in enumerate(choices):
            self.state.submit(role, choice)
        self._moves = tuple(moves[choice] for moves, choice in zip(legal, choices, strict=True))
        self._times.append(_now())

    async def stop(self) -> None:
        """The STOP phase. What fails here changes nothing any more, and is only logged."""
        answers = await send_stop(self.seats, self.match, self._moves, self._play_seconds)
        for role, answer in enumerate(answers):
            if answer.kind:
                log.info("match %s, STOP: %s %s %s", self.match, self._game.roles[role], answer.kind, answer.text)

    def hosted(self) -> HostedMatch:
        """The match, which is over."""
        return HostedMatch(self.match, self.number, self.state, tuple(self._times))

    @property
    def _play_seconds(self) -> float:
        return self.settings.playclock + self.settings.extra

    def _choice(self, role: int, answer: Answer, legal: Sequence[str]) -> int:
        """The position of the role's move within its legal ones: that of the answer, or one in its place."""
        if answer.kind:
            self._note(self.state.ply, role, answer.kind, answer.text)
            return self._replacement(role, len(legal))
        try:
            return _position(answer.reply, legal)
        except (ValueError, ProtocolError):
            self._note(self.state.ply, role, ILLEGAL, printable(answer.reply))
            return self._replacement(role, len(legal))

    def _replacement(self, role: int, num_moves: int) -> int:
        if self.settings.replace == "first":
            return 0
        key = stream(self.settings.seed, 0, STAGE, self.number, role)
        return int(uniform(key, self.state.ply, WHICH) * num_moves)

    def _note(self, ply: int, role: int, kind: str, text: str) -> None:
        self.state.events.append(Event(ply, self._game.roles[role], kind, text))
        phase = "START" if ply == AT_START else f"ply {ply}"
        log.info("match %s, %s: %s %s %s", self.match, phase, self._game.roles[role], kind, text)


def _position(reply: str, legal: Sequence[str]) -> int:
    """Where a reply stands among legal moves. Raises ValueError where it does not, ProtocolError where it is no term.

    It is looked for by its text, not read as a term of the game: whatever a player sends, nothing is kept of it.
    """
    if reply in legal:
        return legal.index(reply)
    return list(map(str.lower, legal)).index(parse_reply(reply).lower())


def _is_ready(reply: str) -> bool:
    try:
        return parse_reply(reply).lower() == READY
    except ProtocolError:
        return False


def _now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
