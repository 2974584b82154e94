"""Many matches between the same players: the paper's learning series, over the wire or not.

With a folder (seriesfolder.py) a series is a thing that lasts. A match counts from the moment its record is there, and
that is before its players are told that it is over. So a series that was killed goes on without loss: matches that were
started and have no record are aborted and played anew under another id, those that have one but were not stopped get
their STOP (again, as the case may be, which changes nothing).
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import GameloreError, ProtocolError
from ..learn.study import STAGE
from ..play.graph import Graph
from ..play.match import Event
from ..play.streams import stream
from ..rules.renaming import scramble
from .client import Client
from .host import HostedMatch, HostSettings, run_match, send_abort, send_stop, together
from .messages import PlayerInfo
from .records import LATE, UNREACHABLE, GGPRecord, of_match
from .seats import Disguise, LocalSeat, RemoteSeat, Seat
from .seriesfolder import ABORTED, STARTED, STOPPED, SeriesFolder

if TYPE_CHECKING:
    from ..rules.game import Game

INFO_SECONDS = 5.0  # for players to say who they are
MAX_ROWS = 1_000_000  # of the positions that matches share; beyond, the next ones begin with none


@dataclass(frozen=True, slots=True)
class Played:
    """A match that counts: `goals` by role, None where there is none; `end` "terminal", "stuck" or "cap"."""

    number: int
    goals: tuple[int | None, ...]
    end: str
    plies: int
    events: tuple[Event, ...]

    @property
    def absent(self) -> frozenset[str]:
        """The roles whose players gave no reply at all, from START to the last move."""
        missed = Counter(event.role for event in self.events if event.kind in (UNREACHABLE, LATE))
        return frozenset(role for role, times in missed.items() if times == self.plies + 1)


@dataclass(frozen=True, slots=True)
class Standing:
    """What one player got so far.

    goals           per match, in the order of their numbers; None where the rules give none
    mean            of them, a missing one counted as 0; nan without matches
    standard_error  of the mean; nan with less than two matches
    errors          how many times it was late (TO), out of reach (CE), or gave no legal move (IL)
    may_learn       whether it may change from match to match: it listens to how they end, or is behind a wire
    """

    role: str
    player: str
    goals: tuple[int | None, ...]
    mean: float
    standard_error: float
    errors: Mapping[str, int]
    may_learn: bool


class Series:
    """Matches of one game between the same players, told by URL or by name, one for each role.

    settings  see HostSettings
    scramble  give players behind a wire other names than the game's, new ones in each match
    folder    where the series lasts; None for nowhere

    An asynchronous context manager. Entering it raises GameloreError for a folder of another series, or one in use,
    and for an unknown player.
    """

    def __init__(
        self,
        game: Game,
        players: Sequence[str],
        settings: HostSettings | None = None,
        *,
        scramble: bool = False,
        folder: Path | None = None,
    ) -> None:
        if len(players) != game.num_roles:
            roles = ", ".join(game.roles)
            raise GameloreError(f"expected {game.num_roles} players, one for each of {roles}, got {len(players)}")
        self.game = game
        self.players = tuple(players)
        self.settings = settings or HostSettings()
        self.scramble = scramble
        self.played: dict[int, Played] = {}
        self.names = [""] * game.num_roles
        self.folder = folder
        self._folder = SeriesFolder(folder, self._about(), game.rulesheet.text) if folder is not None else None
        self._token = f"gamelore.{secrets.token_hex(6)}"
        self._seats: list[LocalSeat | None] = [None] * game.num_roles
        self._graph = Graph(game)

    async def __aenter__(self) -> Series:
        async with AsyncExitStack() as stack:
            if self._folder is not None:
                self._token = stack.enter_context(self._folder).token
                self.played = {number: _played(number, record) for number, record in self._folder.records()}
            self._client = await stack.enter_async_context(Client())
            for role, player in enumerate(self.players):
                if not is_url(player):
                    self._seats[role] = await stack.enter_async_context(self._local_seat(role))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def ask_who(self, seconds: float = INFO_SECONDS) -> dict[str, PlayerInfo | Exception]:
        """What the player of each URL says of itself, or why it says nothing: as `Seat` raises."""
        roles = {player: role for role, player in enumerate(self.players) if is_url(player)}
        found = dict(zip(roles, await together([self._who(role, seconds) for role in roles.values()]), strict=True))
        for role, player in enumerate(self.players):
            answer = found.get(player)
            self.names[role] = answer.name if isinstance(answer, PlayerInfo) else ""
        return found

    async def run(
        self,
        num_matches: int,
        at_once: int = 1,
        on_match: Callable[[Played], None] | None = None,
        *,
        give_up: int | None = None,
    ) -> tuple[Standing, ...]:
        """Plays until the matches 0 to `num_matches` - 1 are there, those of earlier runs included.

        at_once   how many side by side, in the order of their numbers
        on_match  is told of each that was played now
        give_up   after so many matches one after the other in which a player gave no reply at all; None: never

        Raises what a local player raises, OSError where a record cannot be written, and GameloreError where it gives
        up; what runs is aborted then.
        """
        await self._settle()
        missing = iter([number for number in range(num_matches) if number not in self.played])

        async def play_on() -> None:
            absent: Counter[str] = Counter()  # role -> matches one after the other
            for number in missing:
                await self._play(number)
                if on_match is not None:
                    on_match(self.played[number])
                absent = Counter({role: absent[role] + 1 for role in self.played[number].absent})
                if give_up is not None and absent and max(absent.values()) >= give_up:
                    raise self._gone(absent)

        await together([play_on() for _ in range(at_once)])
        return self.standings()

    def standings(self) -> tuple[Standing, ...]:
        """By role."""
        return tuple(map(self._standing, range(self.game.num_roles)))

    def _standing(self, role: int) -> Standing:
        played = [self.played[number] for number in sorted(self.played)]
        goals = tuple(one.goals[role] for one in played)
        values = np.array([goal or 0 for goal in goals], np.float64)
        name, seat = self.game.roles[role], self._seats[role]
        errors = Counter(event.kind for one in played for event in one.events if event.role == name)
        return Standing(
            role=name,
            player=self.players[role],
            goals=goals,
            mean=float(values.mean()) if goals else math.nan,
            standard_error=float(values.std(ddof=1)) / math.sqrt(len(goals)) if len(goals) > 1 else math.nan,
            errors=dict(sorted(errors.items())),
            may_learn=seat is None or seat.may_learn,
        )

    def _gone(self, absent: Counter[str]) -> GameloreError:
        role, times = absent.most_common(1)[0]
        player = self.players[self.game.roles.index(role)]
        return GameloreError(
            f"expected {player} to reply, got nothing in the last {times} matches; start it again before you go on"
        )

    async def _who(self, role: int, seconds: float) -> PlayerInfo | Exception:
        try:
            async with asyncio.timeout(seconds):
                return await RemoteSeat(self.players[role], self._client).info(seconds)
        except (OSError, ProtocolError) as error:
            return error

    async def _settle(self) -> None:
        """Puts an end to the matches that an earlier run left open."""
        if self._folder is None:
            return
        for number, match in self._folder.open_matches():
            record = self._folder.record(number) if number in self.played else None
            if record is not None and record.match_id == match:
                await self._stop_again(number, record)
                self._note(STOPPED, number, match)
            else:
                await send_abort(self._seats_of(number), match)
                self._note(ABORTED, number, match)

    async def _stop_again(self, number: int, record: GGPRecord) -> None:
        """Tells the players of a match that is over, of which nobody knows whether they were told."""
        for role, seat in zip(self.game.roles, self._seats, strict=True):
            if seat is not None:
                await seat.recall(record.match_id, role, record.moves)
        moves = record.moves[-1] if record.moves else None
        seconds = self.settings.playclock + self.settings.extra
        await send_stop(self._seats_of(number), record.match_id, moves, seconds)

    async def _play(self, number: int) -> None:
        match = self._match_id(number)
        self._note(STARTED, number, match)
        try:
            seats, graph = self._seats_of(number), self._shared_graph()
            await run_match(self.game, seats, self.settings, number, match=match, graph=graph, on_over=self._count)
        except BaseException:
            if number not in self.played:
                self._note(ABORTED, number, match)
            raise
        self._note(STOPPED, number, match)

    def _count(self, hosted: HostedMatch) -> None:
        if self._folder is not None:
            self._folder.write(hosted.number, self._record(hosted))
        self.played[hosted.number] = Played(hosted.number, hosted.goals, hosted.end, hosted.plies, hosted.events)

    def _record(self, hosted: HostedMatch) -> GGPRecord:
        settings = self.settings
        return of_match(
            hosted.state,
            hosted.match,
            self.players,
            names=self.names if any(self.names) else (),
            random_token=self._token,
            start_time=hosted.times[0],
            state_times=hosted.times,
            clocks=(-1, settings.startclock, settings.playclock),
            scrambled=self.scramble,
            errors=hosted.errors,
            key=(settings.seed, 0, STAGE, hosted.number),
            settings=asdict(settings),
        )

    def _match_id(self, number: int) -> str:
        """A new id: no name from anywhere, and none that a player has heard before."""
        attempt = self._folder.num_started(number) if self._folder is not None else 0
        return f"{self._token}.{number}.{attempt}" if attempt else f"{self._token}.{number}"

    def _note(self, what: str, number: int, match: str) -> None:
        if self._folder is not None:
            self._folder.note(what, number, match)

    def _shared_graph(self) -> Graph:
        if self._graph.num_rows > MAX_ROWS:
            self._graph = Graph(self.game)
        return self._graph

    def _seats_of(self, number: int) -> list[Seat]:
        """The players as they sit at a match; the same names in the same match whenever it is asked for."""
        disguise = self._disguise(number)
        return [
            seat or RemoteSeat(player, self._client, receiver=name, disguise=disguise, suffix=suffix)
            for player, name, seat, suffix in zip(self.players, self.names, self._seats, self._suffixes(), strict=True)
        ]

    def _disguise(self, number: int) -> Disguise | None:
        if not self.scramble:
            return None
        key = int(stream(self.settings.seed, 0, "scramble", number))
        sheet, renaming = scramble(self.game.rulesheet, np.random.default_rng(key))
        return Disguise(str(sheet), renaming)

    def _suffixes(self) -> list[str]:
        """A player that has several roles of a match knows each by an id of its own."""
        return ["" if self.players.index(player) == role else f".{role}" for role, player in enumerate(self.players)]

    def _local_seat(self, role: int) -> LocalSeat:
        settings = self.settings
        others = [player for place, player in enumerate(self.players) if place != role]
        opponent = others[0] if len(others) == 1 and not is_url(others[0]) else None
        return LocalSeat(self.players[role], self.game, settings.seed, max_plies=settings.max_plies, opponent=opponent)

    def _about(self) -> dict[str, Any]:
        """All that makes this series another one than any other; not how long it is or how many matches run at once."""
        return {
            "game": self.game.name,
            "rules_hash": self.game.rules_hash,
            "roles": list(self.game.roles),
            "players": list(self.players),
            **asdict(self.settings),
            "scramble": self.scramble,
        }


def is_url(player: str) -> bool:
    """Whether a player is told by where it listens, not by its name."""
    return player.startswith(("http://", "https://"))


def moving_mean(goals: Sequence[int | None], window: int) -> list[float]:
    """The mean of the last `window` goals after each match, of all before there are so many; missing ones count 0."""
    sums = np.concatenate(([0.0], np.cumsum([goal or 0 for goal in goals])))
    ends = np.arange(1, len(goals) + 1)
    begins = np.maximum(0, ends - window)
    means: list[float] = ((sums[ends] - sums[begins]) / (ends - begins)).tolist()
    return means


def _played(number: int, record: GGPRecord) -> Played:
    details = record.details
    assert details is not None  # the folder takes no others
    assert details.end is not None
    return Played(number, details.goals, details.end, len(record.moves), details.events)
