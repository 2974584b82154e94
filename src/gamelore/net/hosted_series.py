"""A series of hosted matches between the same players, with its results; it can be resumed after a crash.

A series with a folder can be resumed by another process. The folder belongs to one series and contains

    series.json        the players, the game and the settings
    rules.kif          the rules
    match-000000.json  the record of match 0; each further match has its own file
    journal.jsonl      the ids of the matches that were started, stopped and aborted

A match counts as soon as its record is written. This happens before its players receive STOP. A "started" line is
written to the journal before the first message of a match, and a "stopped" or "aborted" line after its last message. If
the process is killed, the next process therefore knows which players may still wait for messages. It does the following
for each match that has a "started" line and no later line:

    without a record   It sends ABORT to the players, and plays the match again under another id.
    with a record      It sends STOP. The players may have received STOP before; a second STOP does no harm.

If a player is still `busy` at the end of the startclock, the match is aborted. It has a record without moves and
without an end, which notes the reply. It does not count for any player, and is not played again.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.isomorphism import scramble
from ..errors import GameloreError, ProtocolError
from ..files import write_whole
from ..learning.session import STAGE
from ..matches.match import JOURNAL, RECORDS, RULES, SERIES, MatchRecord, check_seats, record_path
from ..players.position_graph import PositionGraph
from ..players.random_streams import stream
from .host import (
    Disguise,
    HostSettings,
    LocalSeat,
    RemoteSeat,
    Seat,
    busy_roles,
    run_match,
    send_abort,
    send_stop,
    together,
)
from .http import Client
from .messages import PlayerInfo

if sys.platform != "win32":
    import fcntl
if TYPE_CHECKING:
    from ..game.game import Game
    from ..players.player import Player

SERIES_FORMAT = 1
STARTED, STOPPED, ABORTED = "started", "stopped", "aborted"  # kinds of lines in the journal
INFO_SECONDS = 5.0  # maximum time for the replies to INFO
MAX_ROWS = 1_000_000  # maximum number of positions in the graph that matches share; a larger graph is replaced


class SeriesFolder:
    """The folder of a series, as a context manager that locks the folder against other hosts.

    about  identity of the series, as JSON values
    token  random text that identifies the series in all of its records

    Entering the context raises GameloreError if the folder belongs to another series, has other contents, or is in use.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], rules: str) -> None:
        self.path = path
        self.token = ""
        self._about = {"format": SERIES_FORMAT, **about}
        self._rules = rules
        self._num_started: Counter[int] = Counter()
        self._open: dict[str, int] = {}

    def __enter__(self) -> SeriesFolder:
        self._refuse_others()
        self.path.mkdir(parents=True, exist_ok=True)
        self._journal = (self.path / JOURNAL).open("a+b", buffering=0)
        try:
            self._lock()
            self.token = self._same_series()
            write_whole(self.path / RULES, self._rules)
            self._read_journal()
        except BaseException:
            self._journal.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    def note(self, what: str, number: int, match: str) -> None:
        """Write to the journal that match `number`, with id `match`, was started, stopped or aborted.

        Raise OSError if the line cannot be written. The journal then contains no part of the line.
        """
        self._append(f"{json.dumps({'is': what, 'number': number, 'match': match})}\n".encode())
        self._take(what, number, match)

    def _append(self, line: bytes) -> None:
        """Write to the journal; an OSError names it."""
        begin = self._journal.seek(0, os.SEEK_END)
        try:
            if self._journal.write(line) < len(line):
                self._journal.truncate(begin)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path / JOURNAL)) from error

    def num_started(self, number: int) -> int:
        """Return the number of times that a match was started."""
        return self._num_started[number]

    def open_matches(self) -> list[tuple[int, str]]:
        """Return (number, id) of each match that was started and neither stopped nor aborted."""
        return [(number, match) for match, number in self._open.items()]

    def records(self) -> Iterator[tuple[int, MatchRecord]]:
        """Yield (number, record) of all matches, in the order of numbers.

        Raise GameloreError for a record of another series.
        """
        # this pattern excludes copies of records, such as "match-000000 (1).json"
        names = (re.fullmatch(r"match-(\d{6,})\.json", path.name) for path in self.path.glob(RECORDS))
        for number in sorted(int(name[1]) for name in names if name):
            path = record_path(self.path, number)
            record = MatchRecord.read(path)
            if record.random_token != self.token or (record.end is None and not _is_aborted(record)):
                raise GameloreError(
                    f"expected match {number} of this series in {path}, got another match; move this file away"
                )
            yield number, record

    def _refuse_others(self) -> None:
        """Raise GameloreError if the folder contains rules or records, but no file of a series."""
        others = [*self.path.glob(RULES), *self.path.glob(RECORDS)]
        if others and not (self.path / SERIES).exists():
            contents = f"{self.path}, which has {others[0].name} and no {SERIES}"
            raise GameloreError(f"expected a folder of a series, or a new one, got {contents}; choose another folder")

    def _lock(self) -> None:
        if sys.platform == "win32":
            return  # gamelore does not lock folders on Windows
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = (
                f"expected a free folder, got {self.path}, which another host uses; wait until it ends, or stop it"
            )
            raise GameloreError(message) from None

    def _same_series(self) -> str:
        """Return the token of the series. For a new folder, make a token and write series.json.

        Raise GameloreError if the folder belongs to another series.
        """
        path = self.path / SERIES
        if not path.exists():
            token = f"gamelore.{secrets.token_hex(6)}"
            write_whole(path, f"{json.dumps({**self._about, 'token': token}, indent=2)}\n")
            return token
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            token = str(stored["token"])
        except (ValueError, TypeError, KeyError) as error:
            message = f"expected the data of a series in {path}, got other data ({error}); choose another folder"
            raise GameloreError(message) from None
        for name, value in self._about.items():
            if stored.get(name) != value:
                expected, got = json.dumps(stored.get(name)), json.dumps(value)
                series = f"{name} to be {expected} as in the series in {self.path}"
                raise GameloreError(f"expected {series}, got {got}; choose another folder for another series")
        return token

    def _read_journal(self) -> None:
        self._journal.seek(0)
        text = self._journal.read()
        if text and not text.endswith(b"\n"):  # the machine stopped while it wrote a line
            self._append(b"\n")
        for line in text.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                self._take(entry["is"], entry["number"], entry["match"])

    def _take(self, what: str, number: int, match: str) -> None:
        if what == STARTED:
            self._num_started[number] += 1
            self._open[match] = number
        else:
            self._open.pop(match, None)


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of one player up to now.

    goals           goal of each match, in the order of match numbers; None for a missing goal
    counted         the same without the matches that were aborted because a player was busy at START
    mean            mean of the counted goals, in which a missing goal counts 0; nan if there are no matches
    standard_error  standard error of the mean; nan for fewer than two matches
    errors          numbers of late replies (TO), failed connections (CE) and illegal moves (IL)
    may_learn       whether the player may change from match to match. This is true for remote players, and for players
                    that use the results of matches.
    """

    role: str
    player: str
    goals: tuple[int | None, ...]
    counted: tuple[int | None, ...]
    mean: float
    standard_error: float
    errors: Mapping[str, int]
    may_learn: bool


@dataclass(eq=False)
class HostedSeries:
    """A series of matches of one game between the same players; an asynchronous context manager.

    players      URL or name of a player for each role
    settings     see HostSettings
    scramble     whether remote players see scrambled names instead of the game's own names. The scrambled names are new
                 in each match.
    folder       folder of the series; None for a series that is not stored
    make_player  makes the player of a role that has a name, from the number of the role and the name of its only
                 opponent (None if that has a URL); None for the players of the catalogue
    take_seats   returns the seats in which a match is played, from its number and the seats of the players
    played       records of the finished matches by match number, without states

    Entering the context raises GameloreError for an unknown player, and for a folder that is in use or belongs to
    another series.
    """

    game: Game
    players: Sequence[str]
    settings: HostSettings = field(default_factory=HostSettings)
    _: KW_ONLY
    scramble: bool = False
    folder: Path | None = None
    make_player: Callable[[int, str | None], Player] | None = None
    take_seats: Callable[[int, list[Seat]], list[Seat]] = lambda _, seats: seats

    def __post_init__(self) -> None:
        check_seats(self.game, self.players)
        self.players = tuple(self.players)
        self.played: dict[int, MatchRecord] = {}
        self.names = [""] * self.game.num_roles
        self._folder = SeriesFolder(self.folder, self._about(), self.game.rulesheet.text) if self.folder else None
        self._token = f"gamelore.{secrets.token_hex(6)}"
        self._seats: list[LocalSeat | None] = [None] * self.game.num_roles
        self._graph = PositionGraph(self.game)

    async def __aenter__(self) -> HostedSeries:
        async with AsyncExitStack() as stack:
            if self._folder is not None:
                self._token = stack.enter_context(self._folder).token
                self.played = {number: replace(record, states=()) for number, record in self._folder.records()}
            self._client = await stack.enter_async_context(Client())
            for role, player in enumerate(self.players):
                if not is_url(player):
                    self._seats[role] = await stack.enter_async_context(self._local_seat(role))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._stack.__aexit__(*raised)

    async def ask_who(self, seconds: float = INFO_SECONDS) -> dict[str, PlayerInfo | Exception]:
        """Ask the player at each URL for INFO. Return the replies by URL, or the errors of `RemoteSeat.info`."""
        urls = list(dict.fromkeys(filter(is_url, self.players)))
        answers = dict(zip(urls, await together([self._who(url, seconds) for url in urls]), strict=True))
        self.names = [
            answer.name if isinstance(answer := answers.get(player), PlayerInfo) else "" for player in self.players
        ]
        return answers

    async def run(
        self,
        num_matches: int,
        at_once: int = 1,
        on_match: Callable[[int, MatchRecord], None] | None = None,
        *,
        give_up: int | None = None,
    ) -> tuple[Standing, ...]:
        """Play the matches from 0 to `num_matches` - 1 that have no record yet, and return the standings.

        Args:
            at_once: number of parallel matches
            on_match: called with the number and the record of each new match
            give_up: number of consecutive matches without any reply of a player, or to whose START it was busy, after
                which the series ends; None for no such limit

        Raises:
            GameloreError: if a player did not reply, or was busy, in `give_up` consecutive matches
            OSError: if a record cannot be written

        Errors of local players are raised too. After any error, the running matches are aborted.
        """
        await self._settle()
        missing = iter([number for number in range(num_matches) if number not in self.played])
        absent: Counter[str] = Counter()  # role -> consecutive matches without a reply, in the order of their ends

        async def play_on() -> None:
            nonlocal absent
            for number in missing:
                await self._play(number)
                if on_match is not None:
                    on_match(number, self.played[number])
                record = self.played[number]
                roles = busy_roles(record.events) if _is_aborted(record) else record.absent
                absent = Counter({role: absent[role] + 1 for role in roles})
                if give_up is not None and absent and max(absent.values()) >= give_up:
                    raise self._gone(absent, _is_aborted(record))

        await together([play_on() for _ in range(at_once)])
        return self.standings()

    def standings(self) -> tuple[Standing, ...]:
        """Return the results of all players by role."""
        return tuple(map(self._standing, range(self.game.num_roles)))

    def _standing(self, role: int) -> Standing:
        played = [self.played[number] for number in sorted(self.played)]
        goals = tuple(record.goals[role] for record in played)
        counted = tuple(record.goals[role] for record in played if not _is_aborted(record))
        values = np.array([goal or 0 for goal in counted], np.float64)
        name, seat = self.game.roles[role], self._seats[role]
        errors = Counter(event.kind for record in played for event in record.events if event.role == name)
        mean = float(values.mean()) if counted else math.nan
        standard_error = float(values.std(ddof=1)) / math.sqrt(len(counted)) if len(counted) > 1 else math.nan
        may_learn = seat is None or seat.may_learn
        ordered = dict(sorted(errors.items()))
        return Standing(name, self.players[role], goals, counted, mean, standard_error, ordered, may_learn)

    def _gone(self, absent: Counter[str], is_busy: bool) -> GameloreError:
        role, times = absent.most_common(1)[0]
        player = self.players[self.game.roles.index(role)]
        if is_busy:
            return GameloreError(
                f"expected a player that is free at {player}, got `busy` to the last {times} STARTs; wait until its "
                "other matches are over before you continue"
            )
        return GameloreError(
            f"expected replies from {player}, got none in the last {times} matches; start the player again "
            "before you continue"
        )

    def aborted(self) -> tuple[int, ...]:
        """Return the numbers of the matches that were aborted because a player was busy at START."""
        return tuple(number for number in sorted(self.played) if _is_aborted(self.played[number]))

    async def _who(self, url: str, seconds: float) -> PlayerInfo | Exception:
        try:
            return await RemoteSeat(url, self._client).info(seconds)
        except (OSError, ProtocolError) as error:
            return error

    async def _settle(self) -> None:
        """Stop or abort the matches that an earlier process left open."""
        if self._folder is None:
            return
        for number, match in self._folder.open_matches():
            record = self.played.get(number)
            if record is not None and record.match_id == match and not _is_aborted(record):
                await self._stop_again(number, record)
                self._note(STOPPED, number, match)
            else:
                await send_abort(self._seats_of(number), match)
                self._note(ABORTED, number, match)

    async def _stop_again(self, number: int, record: MatchRecord) -> None:
        """Send STOP again for a match with a record, because its players may not have received it."""
        for role, seat in zip(self.game.roles, self._seats, strict=True):
            if seat is not None:
                await seat.recall(record.match_id, role, record.moves)
        moves = record.moves[-1] if record.moves else None
        seconds = self.settings.playclock + self.settings.extra
        await send_stop(self._seats_of(number), record.match_id, moves, seconds)

    async def _play(self, number: int) -> None:
        match = self._match_id(number)
        self._note(STARTED, number, match)
        if self._graph.num_rows > MAX_ROWS:
            self._graph = PositionGraph(self.game)
        try:
            seats, count = self._seats_of(number), partial(self._count, number)
            more: dict[str, Any] = {"graph": self._graph, "on_over": count, "abort_if_busy": True}
            record = await run_match(self.game, seats, self.settings, number, match=match, **more)
        except BaseException:
            if number not in self.played:
                self._note(ABORTED, number, match)
            raise
        self._note(ABORTED if _is_aborted(record) else STOPPED, number, match)

    def _count(self, number: int, record: MatchRecord) -> None:
        record = replace(
            record,
            players=tuple(self.players),
            player_names=tuple(self.names) if any(self.names) else (),
            random_token=self._token,
            scrambled=self.scramble,
            key=(self.settings.seed, 0, STAGE, number),
        )
        if self._folder is not None:
            record.write(record_path(self._folder.path, number))
        self.played[number] = replace(record, states=())

    def _match_id(self, number: int) -> str:
        """Return a new match id, which no player has seen before."""
        attempt = self._folder.num_started(number) if self._folder is not None else 0
        return f"{self._token}.{number}.{attempt}" if attempt else f"{self._token}.{number}"

    def _note(self, what: str, number: int, match: str) -> None:
        if self._folder is not None:
            self._folder.note(what, number, match)

    def _seats_of(self, number: int) -> list[Seat]:
        """Return the seats of a match. Repeated calls for the same match use the same scrambled names."""
        disguise = None
        if self.scramble:
            key = int(stream(self.settings.seed, 0, "scramble", number))
            sheet, renaming = scramble(self.game.rulesheet, np.random.default_rng(key))
            disguise = Disguise(str(sheet), renaming)
        seats: list[Seat] = []
        for role, (player, name) in enumerate(zip(self.players, self.names, strict=True)):
            suffix = "" if self.players.index(player) == role else f".{role}"  # distinct ids for each role of a player
            seats.append(self._seats[role] or RemoteSeat(player, self._client, name, disguise, suffix))
        return self.take_seats(number, seats)

    def _local_seat(self, role: int) -> LocalSeat:
        settings = self.settings
        others = [*self.players[:role], *self.players[role + 1 :]]
        opponent = others[0] if len(others) == 1 and not is_url(others[0]) else None
        player = self.make_player(role, opponent) if self.make_player is not None else self.players[role]
        return LocalSeat(player, self.game, settings.seed, max_plies=settings.max_plies, opponent=opponent)

    def _about(self) -> dict[str, Any]:
        """Return the identity of the series, without the numbers of its matches and of its parallel matches."""
        return {
            "game": self.game.name,
            "rules_hash": self.game.rules_hash,
            "roles": list(self.game.roles),
            "players": list(self.players),
            **asdict(self.settings),
            "scramble": self.scramble,
        }


def _is_aborted(record: MatchRecord) -> bool:
    """Return whether the match of a record was aborted because a player was busy at START."""
    return record.end is None and record.is_aborted


def is_url(player: str) -> bool:
    """Return whether a player is given by its URL instead of its name."""
    return player.startswith(("http://", "https://"))


def moving_mean(goals: Sequence[int | None], window: int) -> list[float]:
    """Return the mean of the last `window` goals after each match. A missing goal, None, counts 0.

    The first means are of all goals up to the match, because there are fewer than `window` goals.
    """
    sums = np.concatenate(([0.0], np.cumsum([goal or 0 for goal in goals])))
    ends = np.arange(1, len(goals) + 1)
    begins = np.maximum(0, ends - window)
    means: list[float] = ((sums[ends] - sums[begins]) / (ends - begins)).tolist()
    return means
