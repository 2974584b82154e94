"""Duels: many matches between two contenders at equal CPU time, stored match by match, and the report about them.

Matches come in rounds. All matches of a round begin with the same opening, random plies that depend on the seed, the
rules and the number of the round only. In each match of a round the first contender, A, plays another role, and the
second, B, plays all other roles. With two roles a round is a pair with sides swapped. The streams of random numbers
belong to the round and the role, too, so that two equal contenders play the same match twice and share its points.

Players of gamelore among themselves begin in the position after the opening. If a contender is another program, all
players get the rulesheet as it is, and the host overrules them in the plies of the opening: it asks for moves as
always, ignores the answers, and makes the moves of the opening. The time for these answers does not count. With
`rewritten_sheet`, the program gets a rulesheet whose `init` facts are those of the position after the opening.

The score of a match is A's goal / 100; a missing goal counts 0. A match that was broken off, because it had too many
plies or a role had no move, has no goals: it counts as an equal share, 1 / number of roles, and is told apart. Rounds
are the independent samples of a game.

Where the goals of a match do not add up to 100, the score of equal players is not that of an equal share. So a game has
a share, too: the goals of A in all matches, divided by the goals of all roles. A match that was broken off counts there
as an equal share with the weight of a mean match. The share is the score where goals add up to 100. The result over all
games is the mean of the games' shares. Its interval takes the games as samples, since matches of one game resemble each
other, and games of a family of rules as a cluster.

The folder of a duel has a `ResultStore`. Each match is a trial, which is stored when the match ends; its setting has
the id "GAME/ATTEMPT", and its run is the number of the match. Run the same duel again to play the missing matches. If
a match fails, the other matches of its game are left out, and the duel goes on with other games. With
`replay_faulty`, a match in which another program, and nobody else, was late, could not be reached or sent an illegal
move is played again as the next attempt, and counts apart. Of two programs, this is the second one, the rival.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import GameloreError
from ..game.game import Game
from ..gdl.syntax import natural_order
from ..matches.match import MAX_PLIES, MatchRecord
from ..matches.openings import Opening, draw_opening, sheet_from
from ..net.host import AT_START, HostSettings, run_match, together
from ..net.http import Client
from ..net.messages import thinking_time
from ..players.position_graph import PositionGraph
from ..players.random_streams import stream
from .figures import file_name
from .results import Outcome, ResultStore, Setting, Trial, store_path
from .seats import Beginning, Contender, DuelSeat, ProcessSeat, ProgramSeat, check_platform, is_program
from .stats import UNKNOWN, Array, Interval, complete_rounds, jackknife, score_interval

STAGE = "duel"  # part of the keys of random streams
OPENING = "opening"
LOGS = "logs"  # folder of what players with faults have printed
NO_CLOCK = 3600  # seconds to wait for a move of a duel without clocks
ATTEMPTS = 5  # maximum number of times that a faulty match is played
LEAST_RATIO, MOST_RATIO = 0.95, 1.05  # of CPU times that count as equal
ROUNDING = 1e-9  # half-width of an interval of equal samples
FAMILIES = Path(__file__).with_name("families.toml")
A, B = 0, 1


@dataclass(frozen=True)
class DuelSettings:
    """Settings of a duel.

    opening_plies          number of random joint moves with which a round begins
    half_from_start        whether every second round begins with the first position of the game
    startclock, playclock  clocks in whole seconds; None for no clocks, which other programs need
    extra, margin          seconds that the host waits after a clock, and that a gamelore player leaves of it
    shares_core            whether all seats of a match share one core, and think one after the other; only for players
                           that do not think in the time of others
    max_plies              maximum number of plies after the opening
    replay_faulty          whether matches with faults of another program are played again, see above
    ponders                whether players of gamelore use the startclock, and think while others do, as over the
                           network
    rewritten_sheet        whether another program gets a rulesheet that begins after the opening. Otherwise the host
                           overrules the players in these plies

    Raises GameloreError for values out of range.
    """

    seed: int = 0
    opening_plies: int = 2
    half_from_start: bool = False
    startclock: int | None = None
    playclock: int | None = None
    extra: float = 1.0
    margin: float = 0.2
    shares_core: bool = False
    max_plies: int = MAX_PLIES
    replay_faulty: bool = False
    rewritten_sheet: bool = False
    ponders: bool = False

    def __post_init__(self) -> None:
        for name, least in (("opening_plies", 0), ("extra", 0), ("margin", 0), ("max_plies", 1)):
            if getattr(self, name) < least:
                raise GameloreError(f"expected {name} of at least {least}, got {getattr(self, name)}; choose more")
        if (self.startclock is None) != (self.playclock is None):
            raise GameloreError("expected a startclock and a playclock, or none of them, got one; give both")
        if self.ponders and (self.playclock is None or self.shares_core):
            raise GameloreError(
                "expected clocks, and a core for each player, for those that think while others do, got "
                f"{'a shared core' if self.shares_core else 'no clocks'}; give them, or let no player ponder"
            )

    @property
    def think(self) -> float | None:
        """Seconds that a gamelore player may think about a move; None without clocks."""
        return None if self.playclock is None else thinking_time(self.playclock, self.margin)

    @property
    def start_think(self) -> float | None:
        """Seconds that a gamelore player may think in START; None if it does not."""
        return thinking_time(self.startclock, self.margin) if self.ponders and self.startclock is not None else None

    def host(self, num_roles: int, num_overruled: int = 0) -> HostSettings:
        """Return the settings of the host, which overrules the players in some plies."""
        max_plies = self.max_plies + num_overruled
        if self.startclock is None or self.playclock is None:
            return HostSettings(NO_CLOCK, NO_CLOCK, self.extra, seed=self.seed, max_plies=max_plies)
        waiting = (num_roles - 1) * self.playclock if self.shares_core else 0
        clocks = self.startclock, self.playclock, self.extra + waiting
        return HostSettings(*clocks, seed=self.seed, max_plies=max_plies)


@dataclass(frozen=True)
class DuelSetting(Setting):
    """All matches of one game of a duel, or those that are played once more: attempt 1, 2, .."""

    contenders: tuple[str, ...]
    settings: DuelSettings

    @property
    def size(self) -> int:
        """See `Setting.size`."""
        return 1

    def describe(self) -> dict[str, Any]:
        """See `Setting.describe`. What only decides how many matches are played is left out.

        So is what does not change these matches, so that the folders of earlier duels are continued.
        """
        described = super().describe()
        del described["settings"]["replay_faulty"], described["settings"]["rewritten_sheet"]
        if not self.settings.ponders:
            del described["settings"]["ponders"]
        if any(map(is_program, self.contenders)) and not self.settings.rewritten_sheet:
            described["settings"]["overruled"] = True
        return described


@dataclass(frozen=True, slots=True)
class DuelMatch:
    """A match of a duel: in `round`, contender A plays the role with index `seat`."""

    game: Game
    round: int
    seat: int
    attempt: int = 0

    @property
    def number(self) -> int:
        """The number of the match among those of its game."""
        return self.round * self.game.num_roles + self.seat


@cache
def sealed_games() -> Mapping[str, str]:
    """Return the names of the sealed games by the hashes of their rules; see benchmarks/sealed.py."""
    return {rules: name for name, rules in tomllib.loads(FAMILIES.read_text(encoding="ascii"))["sealed"].items()}


@cache
def families() -> Mapping[str, int]:
    """Return the number of the family of each game of the public repository, by its name; see benchmarks/sealed.py."""
    rows = tomllib.loads(FAMILIES.read_text(encoding="ascii"))["family"]
    return {name: number for number, family in enumerate(rows) for name in family["games"]}


@dataclass(eq=False)
class Duel:
    """A duel in a folder.

    games        each with at least two roles
    contenders   A and B
    num_matches  number of matches of each game, rounded up to whole rounds
    cores        processor cores that the seats may use: one for A and one for B, also where several roles are B's
    at_once      number of matches that are played in parallel; None for as many as the cores allow
    failures     the first error in each game that failed in the last run, by its name

    Raises GameloreError for settings that do not fit, and for sealed games unless `open_sealed`.
    """

    games: Sequence[Game]
    contenders: tuple[Contender, Contender]
    settings: DuelSettings
    folder: Path
    num_matches: int
    cores: Sequence[int] = field(default_factory=lambda: sorted(os.sched_getaffinity(0)))
    at_once: int | None = None
    open_sealed: bool = False
    failures: dict[str, GameloreError] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check_platform()
        for game in self.games:
            self._check_game(game)
        if len({game.name for game in self.games}) < len(self.games):
            raise GameloreError("expected games with different names, got a name twice; leave one out")
        if any(contender.is_outside for contender in self.contenders):
            self._check_clocks()
        needed = 1 if self.settings.shares_core else 2
        possible = len(self.cores) // needed
        if not 1 <= (possible if self.at_once is None else self.at_once) <= possible:
            raise GameloreError(
                f"expected {needed * (self.at_once or 1)} cores for {self.at_once or 1} matches at once, got "
                f"{len(self.cores)}; play fewer matches at once, or let the seats of a match share a core"
            )
        self.at_once = self.at_once or possible

    def _check_game(self, game: Game) -> None:
        if game.num_roles < 2:
            raise GameloreError(f"expected a game with two or more roles, got {game.name}; leave it out")
        if game.rules_hash in sealed_games() and not self.open_sealed:
            raise GameloreError(
                f"expected a game that is not sealed, got {sealed_games()[game.rules_hash]}; its family measures "
                "strength once, at the end (see benchmarks/sealed.py): leave it out, or open it with --open-sealed"
            )

    def _check_clocks(self) -> None:
        if self.settings.playclock is None:
            raise GameloreError("expected clocks for a player over the GGP protocol, got none; give both clocks")
        if self.settings.shares_core:
            raise GameloreError(
                "expected a core for each player, since one over the GGP protocol may think at any time, got a shared "
                "core; give each player a core"
            )

    @property
    def overrules(self) -> bool:
        """Whether the host overrules the players in the plies of the opening."""
        return any(contender.is_outside for contender in self.contenders) and not self.settings.rewritten_sheet

    @property
    def version(self) -> str:
        """What else determines the results: the Python files of both source trees, and the versions of programs."""
        return " and ".join(contender.code or "another program" for contender in self.contenders)

    def num_rounds(self, game: Game) -> int:
        """Return the number of rounds of a game."""
        return -(-self.num_matches // game.num_roles)

    def setting(self, game: Game, attempt: int = 0) -> DuelSetting:
        """Return the setting of a game's matches."""
        texts = tuple(contender.text for contender in self.contenders)
        runs = self.num_rounds(game) * game.num_roles
        return DuelSetting(f"{game.name}/{attempt}", game.name, self.settings.seed, runs, texts, self.settings)

    async def run(self, on_match: Callable[[int, int], None] | None = None) -> list[GameScore]:
        """Play the matches that are missing, and return the scores of the games.

        A game fails if a gamelore player fails, another program does not start, or no opening is found. It is added to
        `failures`, and the next run tries it again.

        Args:
            on_match: called with the number of finished matches and the number of all matches, at first and after each

        Raises:
            ExperimentError: if the folder has the results of another duel
        """
        self.failures.clear()
        with ResultStore(store_path(self.folder)) as store:
            self._check_store(store)
            queue = iter(missing := self._missing(store))
            total = sum(self.num_rounds(game) * game.num_roles for game in self.games)
            left = len(missing)
            tell = on_match or (lambda done, total: None)
            tell(total - left, total)

            async def play_on(cores: Sequence[int]) -> None:
                nonlocal left
                async with Client() as client:
                    table = _Table(self, cores, client)
                    try:
                        for match in queue:
                            if await self._play_until_valid(table, match, store):
                                left -= 1
                                tell(total - left, total)
                    finally:
                        table.close()
                        await asyncio.sleep(0)  # the connections to the seats close now

            await together([play_on(cores) for cores in self._groups()])
            return self.scores(store)

    def _check_store(self, store: ResultStore) -> None:
        """Raise ExperimentError if the folder has the results of another duel."""
        store.check_rules({game.name: game.rules_hash for game in self.games})
        attempts = range(ATTEMPTS if self.settings.replay_faulty else 1)
        settings = [self.setting(game, attempt) for game in self.games for attempt in attempts]
        store.check({setting.id: setting for setting in settings}, self.version)

    def _groups(self) -> list[Sequence[int]]:
        """Return the cores of each match that is played in parallel."""
        size = 1 if self.settings.shares_core else 2
        return [self.cores[size * i : size * (i + 1)] for i in range(self.at_once or 1)]

    def _missing(self, store: ResultStore) -> list[DuelMatch]:
        """Return the matches to play, each as the attempt to make next."""
        missing = []
        for game in self.games:
            rows = self._rows(store, game)
            for round_number in range(self.num_rounds(game)):
                for seat in range(game.num_roles):
                    first = DuelMatch(game, round_number, seat)
                    attempts = rows.get(first.number, [])
                    if not attempts or self._is_replayed(attempts):
                        missing.append(DuelMatch(game, round_number, seat, len(attempts)))
        return missing

    def _is_replayed(self, attempts: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether a match must be played once more after these attempts."""
        return self.settings.replay_faulty and attempts[-1]["is_faulty"] and len(attempts) < ATTEMPTS

    def _rows(self, store: ResultStore, game: Game) -> dict[int, list[dict[str, Any]]]:
        """Return the results of each match of a game, attempt by attempt."""
        rows: dict[int, list[dict[str, Any]]] = {}
        for attempt in range(ATTEMPTS):
            for number, result in store.by_run(self.setting(game, attempt).id).items():
                rows.setdefault(number, []).append(result)
        return rows

    async def _play_until_valid(self, table: _Table, match: DuelMatch, store: ResultStore) -> bool:
        """Play a match, and store it; return whether this was possible."""
        while match.game.name not in self.failures:
            begin = time.monotonic()
            try:
                result = await table.play(match)
            except GameloreError as error:
                self.failures.setdefault(match.game.name, error)
                table.close()
                break
            trial = Trial(self.setting(match.game, match.attempt), match.number)
            seconds = time.monotonic() - begin
            outcome = Outcome(
                trial, rules_hash=match.game.rules_hash, engine=match.game.engine, seconds=seconds, result=result
            )
            store.add([outcome], self.version)
            if not self._is_replayed([result] * (match.attempt + 1)):
                return True
            match = DuelMatch(match.game, match.round, match.seat, match.attempt + 1)
        return False

    def scores(self, store: ResultStore) -> list[GameScore]:
        """Return the score of each game, from the matches that are stored."""
        return [self._score(game, self._rows(store, game)) for game in self.games]

    def _score(self, game: Game, rows: Mapping[int, Sequence[Mapping[str, Any]]]) -> GameScore:
        size = self.num_rounds(game) * game.num_roles
        counted = {
            number: next((row for row in attempts if not row["is_faulty"]), attempts[-1])
            if self.settings.replay_faulty
            else attempts[0]
            for number, attempts in rows.items()
            if number < size
        }
        replaced = sum(len(attempts) - 1 for number, attempts in rows.items() if number < size)
        return GameScore(game.name, game.num_roles, counted, replaced if self.settings.replay_faulty else 0)


class _Table:
    """The seats of the matches that are played on one group of cores, one match after the other."""

    def __init__(self, duel: Duel, cores: Sequence[int], client: Client) -> None:
        self._duel = duel
        self._cores = cores
        self._client = client
        self._game: Game | None = None
        self._seats: dict[tuple[int, int], DuelSeat] = {}

    async def play(self, match: DuelMatch) -> dict[str, Any]:
        """Play a match, and return its result as JSON values."""
        if self._game is not match.game:
            self.close()
            self._game = match.game
        settings, game = self._duel.settings, match.game
        opening = self._opening(match)
        players = [A if role == match.seat else B for role in range(game.num_roles)]
        copies: Counter[int] = Counter()
        seats: list[DuelSeat] = []
        for player in players:
            seats.append(self._seat(player, copies[player]))
            copies[player] += 1
        turn = asyncio.Lock()
        for seat in seats:
            seat.turn = turn if settings.shares_core else asyncio.Lock()
        overruled = opening.moves if self._duel.overrules else ()
        beginnings = [self._beginning(match, opening, role) for role in range(game.num_roles)]
        cores = [self._cores_of(player, match) for player in players]
        await together(map(lambda seat, *how: seat.open(*how), seats, beginnings, cores))
        graph = PositionGraph(game)
        if not overruled:
            graph.start = int(graph.intern(game.state(opening.facts)[None])[0])

        def on_over(record: MatchRecord) -> None:
            faulty = {event.role for event in record.events}
            for role, seat in zip(game.roles, seats, strict=True):
                seat.is_over(self._log_path(match, role) if role in faulty else None)

        host = settings.host(game.num_roles, len(overruled))
        record = await run_match(game, seats, host, match.number, graph=graph, on_over=on_over, opening=overruled)
        return self._result(match, opening, players, seats, _without(record, len(overruled)))

    def _log_path(self, match: DuelMatch, role: str) -> Path:
        """Return the file for the output of a seat with a fault."""
        name = f"{match.number}-{match.attempt}-{match.game.roles.index(role)}.log"
        return self._duel.folder / LOGS / file_name(match.game.name) / name

    def close(self) -> None:
        """End the processes of all seats."""
        for seat in self._seats.values():
            seat.close()
        self._seats.clear()

    def _seat(self, player: int, copy: int) -> ProcessSeat | ProgramSeat:
        """Return the seat of a contender, or of a further copy of it; a new one if there is none."""
        contender, settings = self._duel.contenders[player], self._duel.settings
        assert self._game is not None
        if (player, copy) not in self._seats:
            self._seats[player, copy] = (
                ProgramSeat(contender, self._client)
                if contender.is_outside
                else ProcessSeat(
                    contender,
                    self._game.rulesheet.text,
                    settings.seed,
                    settings.think,
                    settings.start_think,
                    self._game.limits,
                    # an older source tree may not compile what this one compiles
                    "reasoner" if self._game.engine == "reasoner" else "auto",
                )
            )
        return self._seats[player, copy]  # type: ignore[return-value]

    def _opening(self, match: DuelMatch) -> Opening:
        settings = self._duel.settings
        from_start = settings.half_from_start and match.round % 2 == 0
        key = stream(settings.seed, OPENING, match.game.rules_hash, match.round)
        return draw_opening(match.game, 0 if from_start else settings.opening_plies, key)

    def _beginning(self, match: DuelMatch, opening: Opening, role: int) -> Beginning:
        game, settings = match.game, self._duel.settings
        key = int(stream(settings.seed, STAGE, game.rules_hash, match.round, role))
        if self._duel.overrules:
            plies, facts = len(opening.moves), tuple(sorted(game.start().facts, key=natural_order))
            return Beginning(role, facts, str(game.rulesheet), key, settings.max_plies + plies, plies)
        rules = sheet_from(game.rulesheet, opening.facts) if opening.moves else str(game.rulesheet)
        return Beginning(role, opening.facts, rules, key, settings.max_plies)

    def _cores_of(self, player: int, match: DuelMatch) -> frozenset[int]:
        """Return the core of a contender; A and B change their cores, since one may be busier with other work."""
        return frozenset({self._cores[(player + match.round + match.seat) % len(self._cores)]})

    def _result(
        self, match: DuelMatch, opening: Opening, players: Sequence[int], seats: Sequence[DuelSeat], record: MatchRecord
    ) -> dict[str, Any]:
        game, contenders = match.game, self._duel.contenders
        rival = max((player for player in (A, B) if contenders[player].is_outside), default=None)
        at_fault = {players[game.roles.index(event.role)] for event in record.events}
        return {
            "round": match.round,
            "seat": match.seat,
            "goals": record.goals,
            "plies": len(record.moves),
            "end": record.end,
            "opening": opening.moves,
            "moves": record.moves,
            "events": [asdict(event) for event in record.events],
            "is_faulty": at_fault == {rival},
            "seats": [
                {
                    "role": role,
                    "contender": "AB"[player],
                    "version": seat.contender.version,
                    "start_cpu": seat.start_cpu,
                    "opening_cpu": seat.opening_cpu,
                    "play_cpu": seat.play_cpu,
                    "cpu": [round(value, 9) for value in seat.cpu],
                    "seconds": [round(value, 6) for value in seat.seconds],
                    "log": None if seat.log is None else str(seat.log.relative_to(self._duel.folder)),
                }
                for role, player, seat in zip(game.roles, players, seats, strict=True)
            ],
        }


def _without(record: MatchRecord, plies: int) -> MatchRecord:
    """Return a record without its first plies, in which the host overruled the players, so that there are no events."""
    events = [event if event.ply == AT_START else replace(event, ply=event.ply - plies) for event in record.events]
    return replace(record, moves=record.moves[plies:], events=tuple(events))


# the report


@dataclass(frozen=True)
class GameScore:
    """The results of a duel in one game.

    matches   the results of the matches that count, by number
    replaced  number of further attempts at matches with faults
    """

    game: str
    num_roles: int
    matches: Mapping[int, Mapping[str, Any]]
    replaced: int = 0

    @cached_property
    def _rounds(self) -> list[list[Mapping[str, Any]]]:
        return complete_rounds(self.matches.values(), itemgetter("round"), self.num_roles)

    @cached_property
    def score(self) -> Interval:
        """Mean score of A with its 95 % interval. The samples are the rounds of which all matches are there."""
        return score_interval([float(np.mean([self._score_of(row) for row in rows])) for rows in self._rounds])

    def _score_of(self, row: Mapping[str, Any]) -> float:
        return (row["goals"][row["seat"]] or 0) / 100 if row["end"] == "terminal" else 1 / self.num_roles

    @cached_property
    def adds_up(self) -> bool:
        """Whether the goals of each match add up to 100, so that the share is the score."""
        return all(self._goals_of(row)[1] == 100 for row in self.matches.values() if row["end"] == "terminal")

    @cached_property
    def share(self) -> Interval:
        """A's share of the goals with its 95 % jackknife interval over the same rounds; see the head of this module."""
        if self.adds_up or not self._rounds:
            return self.score
        goals = np.array([np.sum([self._goals_of(row) for row in rows], axis=0) for rows in self._rounds])
        share = jackknife(goals, self._share_of)
        if share.half_width > ROUNDING:
            return share
        return score_interval([round(share.mean, 9)] * share.num)  # rounds that agree are not certain

    def _goals_of(self, row: Mapping[str, Any]) -> tuple[float, float, int]:
        """Return the goals of A, those of all roles, and 1 for a match that was broken off, which has no goals."""
        goals = [goal or 0 for goal in row["goals"]]
        return (goals[row["seat"]], sum(goals), 0) if row["end"] == "terminal" else (0, 0, 1)

    def _share_of(self, goals: Array) -> float:
        """Return A's share in rounds with these sums of `_goals_of`, [rounds, 3]."""
        own, of_all, broken_off = goals.sum(axis=0)
        num, equal = len(goals) * self.num_roles, 1 / self.num_roles
        finished = own / of_all if of_all else equal
        return float(((num - broken_off) * finished + broken_off * equal) / num)

    @property
    def broken_off(self) -> int:
        """The number of matches without an end of the game."""
        return sum(row["end"] != "terminal" for row in self.matches.values())

    def cpu(self, contender: int, part: str = "play_cpu") -> float:
        """Return the CPU seconds of a contender per match and seat."""
        seats = [seat for row in self.matches.values() for seat in row["seats"] if seat["contender"] == "AB"[contender]]
        return sum(seat[part] for seat in seats) / len(seats) if seats else math.nan

    @property
    def ratio(self) -> float:
        """The CPU time of A per match and seat, divided by that of B; nan if it is unknown."""
        with suppress(ZeroDivisionError):
            return self.cpu(A) / self.cpu(B)
        return math.nan

    @property
    def has_equal_cpu(self) -> bool:
        """Whether both contenders used the same CPU time, up to 5 %."""
        return LEAST_RATIO <= self.ratio <= MOST_RATIO

    @property
    def mean_plies(self) -> float:
        """The mean number of plies after the opening."""
        return float(np.mean([row["plies"] for row in self.matches.values()])) if self.matches else math.nan

    def faults(self, contender: int) -> int:
        """Return the number of matches in which a contender was late, illegal or could not be reached."""
        return sum(
            any(event["role"] in self._roles_of(row, contender) for event in row["events"])
            for row in self.matches.values()
        )

    def _roles_of(self, row: Mapping[str, Any], contender: int) -> set[str]:
        return {seat["role"] for seat in row["seats"] if seat["contender"] == "AB"[contender]}

    def as_json(self) -> dict[str, Any]:
        """Return the row of the report."""
        return {
            "game": self.game,
            "matches": len(self.matches),
            **interval_json(self.score),
            "share": None if self.adds_up else interval_json(self.share, "mean"),
            "rounds": self.score.num,
            "plies": _number(self.mean_plies),
            "broken_off": self.broken_off,
            "cpu": [_number(self.cpu(contender)) for contender in (A, B)],
            "start_cpu": [_number(self.cpu(contender, "start_cpu")) for contender in (A, B)],
            "cpu_ratio": _number(self.ratio),
            "has_equal_cpu": self.has_equal_cpu,
            "faults": [self.faults(A), self.faults(B)],
            "replaced": self.replaced,
        }


def interval_json(interval: Interval, name: str = "score") -> dict[str, float | None]:
    """Return a score, None if there is none, and the limits of its interval, which lie within 0 to 1."""
    return {name: _number(interval.mean), "low": max(0.0, interval.low), "high": min(1.0, interval.high)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def overall(scores: Sequence[GameScore]) -> Interval:
    """Return the mean share over games. Its interval takes families of games as samples; with one game, its rounds."""
    played = [score for score in scores if score.score.num]
    if len(played) < 2:
        return played[0].share if played else UNKNOWN
    return score_interval(
        [each.share.mean for each in played], [families().get(each.game, each.game) for each in played]
    )
