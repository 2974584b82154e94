"""Matches between players of any kind: `play`, the results `Matches` and `Match`, and the players by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from ..drawing.position import position_svg, position_text
from ..drawing.steps import shown_steps, steps_html
from ..drawing.thought import telling
from ..errors import GameloreError, check_count, check_seed, one_of
from ..game.game import EngineName, Game, Position
from ..gdl.limits import Limits
from ..players.player import Finished, FunctionPlayer, Player
from ..rulesheets import loaded
from .progress import Progress, displayed, in_notebook
from .rows import save_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..lab.stats import Interval
    from ..matches.match import MatchRecord, MatchState
    from ..players.position_graph import PositionGraph
    from ..solver.solution import Solution

AnyPlayer: TypeAlias = str | Player | Callable[..., str]
"""A player: its name, an object, or a function of a position, which may take the name of its role, too."""
STRONGEST = "gamelore"


@dataclass(frozen=True)
class ListedPlayer:
    """A player of the catalogue.

    Attributes:
        name: its name in `play` and on the command line.
        options: the names of its options, as in "uct:simulations=400".
        about: what it does.
        meanings: what each option means, with its default value; options that nothing is written about are left out.
    """

    name: str
    options: tuple[str, ...]
    about: str
    meanings: Mapping[str, str] = field(default_factory=dict)


def list_players() -> list[ListedPlayer]:
    """Return all players and learners that `player` makes by name."""
    from ..catalogue import all_names

    return [_listed(name) for name in all_names()]


def _listed(name: str) -> ListedPlayer:
    """Return a player of the list; of a plug-in that cannot be imported, the reason."""
    from ..catalogue import kind_of

    try:
        kind = kind_of(name)
    except GameloreError as error:
        return ListedPlayer(name, (), f"cannot be used: {error}")
    return ListedPlayer(name, tuple(kind.options), kind.about, kind.meanings)


def player(spec: str) -> Player:
    """Make a player from its name and options.

    Args:
        spec: a name, as in `list_players`, with options: "uct:simulations=400,leaves=8"; or "FILE.py:CLASS" for a
            player of your own, a subclass of `gamelore.Player` or `gamelore.PositionPlayer`.

    Returns:
        The player. It can play any number of matches, in any role.

    Raises:
        GameloreError: there is no such player or option; the message suggests the nearest name.
    """
    from ..catalogue import player as of_catalogue

    made = of_catalogue(spec)
    made.spec = spec
    return made


class Match(Sequence[Position]):
    """A match: its positions as a sequence, the first one at 0.

    `print` draws its last position, `show` all of them. In notebooks it is a picture in which the arrow keys go from
    position to position.

    Attributes:
        game: the game.
        record: the moves, goals and players, in the format of GGP game managers.
    """

    def __init__(self, game: Game, record: MatchRecord) -> None:
        self.game = game
        self.record = record

    @cached_property
    def positions(self) -> list[Position]:
        """All positions, the first and the last included."""
        positions = [self.game.start()]
        for joint in self.record.moves:
            positions.append(positions[-1].play(joint))
        return positions

    @property
    def moves(self) -> list[dict[str, str]]:
        """For each ply the moves of all roles: role -> move."""
        return [dict(zip(self.game.roles, joint, strict=True)) for joint in self.record.moves]

    @property
    def goals(self) -> dict[str, int | None]:
        """Role -> its goal; None where the match did not end, or the rules give no goal."""
        return dict(zip(self.game.roles, self.record.goals, strict=True))

    @property
    def players(self) -> dict[str, str]:
        """Role -> its player."""
        return dict(zip(self.game.roles, self.record.players, strict=True))

    @property
    def end(self) -> str:
        """Why it ended: "terminal", "stuck" (a role had no legal move), "cap" (it reached the maximum of plies).

        "broken off" is a match that was read from a record, and that no rule ended.
        """
        return self.record.ending

    def show(self) -> None:
        """Print every position with the moves that lead to it; in a notebook, show the picture."""
        if in_notebook():
            from IPython.display import display

            display(self)
            return
        for position, caption in zip(self.positions, self._captions(), strict=True):
            print(f"{caption}\n\n{position_text(position)}\n")

    def _captions(self) -> list[str]:
        """Return a text for each position: the ply, and the moves that lead to it."""
        captions = ["the first position"]
        for ply, joint in enumerate(self.moves, 1):
            moves = telling(list(joint.values()))
            captions.append(f"{ply}. {', '.join(f'{role} {move}' for role, move in joint.items() if move in moves)}")
        captions[-1] += f": {self._result()}"
        return captions

    def _result(self) -> str:
        """Return how the match ended, as text."""
        goals = ", ".join(f"{role} {'none' if goal is None else goal}" for role, goal in self.goals.items())
        return goals if self.end == "terminal" else self.end

    @overload
    def __getitem__(self, ply: int) -> Position: ...
    @overload
    def __getitem__(self, ply: slice) -> list[Position]: ...
    def __getitem__(self, ply: int | slice) -> Position | list[Position]:
        return self.positions[ply]

    def __len__(self) -> int:
        return len(self.record.moves) + 1

    def __repr__(self) -> str:
        return f"<Match of {self.game.name}: {len(self.record.moves)} plies, {self._result()}>"

    def __str__(self) -> str:
        return f"{position_text(self.positions[-1])}\n\n{self._captions()[-1]}"

    def _repr_html_(self) -> str:
        shown, captions = shown_steps(len(self)), self._captions()
        return steps_html([position_svg(self.positions[ply]) for ply in shown], [captions[ply] for ply in shown])


@dataclass(frozen=True, eq=False, repr=False)
class Matches(Sequence[Match]):
    """Matches that were played, as a sequence, and their results.

    Attributes:
        game: the game.
        players: the players by role, as text.
        seed: the seed of all random numbers; None if they were read from records that do not tell.
        records: the moves, goals and players of each match, in the format of GGP game managers.
        regret: role -> lost points per move compared with best play; empty if it was not asked for, and in slices.
        left_out: the facts that best play ignores, because they only count steps; see `regret` and the player perfect.
    """

    game: Game
    players: tuple[str, ...]
    seed: int | None
    records: tuple[MatchRecord, ...]
    regret: Mapping[str, float] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @cached_property
    def goals(self) -> NDArray[np.float64]:
        """Goals, float64[matches, roles], 0 to 100; NaN for a goal that the rules do not give."""
        goals = [[np.nan if goal is None else goal for goal in record.goals] for record in self.records]
        return np.array(goals, np.float64).reshape(len(self.records), self.game.num_roles)

    @cached_property
    def plies(self) -> NDArray[np.int64]:
        """Lengths in plies, int64[matches]."""
        return np.array([len(record.moves) for record in self.records], np.int64)

    @property
    def ends(self) -> dict[str, int]:
        """Kind of end -> number of matches; see `Match.end`."""
        return dict(Counter(record.ending for record in self.records))

    @property
    def mean_goals(self) -> dict[str, float]:
        """Role -> its mean goal. A missing goal counts as 0."""
        means = np.nan_to_num(self.goals).mean(axis=0).tolist() if self.records else [np.nan] * self.game.num_roles
        return dict(zip(self.game.roles, means, strict=True))

    @property
    def intervals(self) -> dict[str, Interval]:
        """Role -> the 95 % interval of its mean goal (of Student's t; `mean`, `low`, `high`)."""
        from ..lab.stats import mean_interval

        goals = np.nan_to_num(self.goals)
        return {role: mean_interval(goals[:, i]) for i, role in enumerate(self.game.roles)}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each match: its number, end, length, and the goal of each role."""
        return [
            {
                "match": number,
                "end": record.ending,
                "plies": len(record.moves),
                **{f"goal_{role}": goal for role, goal in zip(self.game.roles, record.goals, strict=True)},
            }
            for number, record in enumerate(self.records)
        ]

    def save(self, path: str | Path) -> None:
        """Write the matches into a file.

        Args:
            path: an existing folder gets a file for each match record, and the rules. A file that ends in .csv gets
                `rows`. Any other file, also one that ends in .json, gets a record in each line. `replay` reads records.

        Raises:
            GameloreError: the folder has match records of its own.
        """
        path = Path(path)
        if path.suffix.lower() == ".csv" and not path.is_dir():
            return save_rows(path, self.rows)
        from ..matches.match import write_records
        from ..matches.replays import RECORDS_PER_GRAPH
        from ..players.position_graph import PositionGraph

        check_free(path)
        records: list[MatchRecord] = []
        for begin in range(0, len(self), RECORDS_PER_GRAPH):
            graph = PositionGraph(self.game)
            records += [_with_states(record, graph) for record in self.records[begin : begin + RECORDS_PER_GRAPH]]
        write_records(path, records, self.game.rulesheet.text)

    def plot(self) -> Figure:
        """Return a matplotlib figure: the mean goal of each role with its 95 % interval, and the results."""
        from ..lab.figures import results_figure

        labels = [f"{role}: {player}" for role, player in zip(self.game.roles, self.players, strict=True)]
        return results_figure(labels, self.goals)

    @overload
    def __getitem__(self, number: int) -> Match: ...
    @overload
    def __getitem__(self, number: slice) -> Matches: ...
    def __getitem__(self, number: int | slice) -> Match | Matches:
        if isinstance(number, slice):
            return replace(self, records=self.records[number], regret={})
        return self._matches[number]

    @cached_property
    def _matches(self) -> list[Match]:
        return [Match(self.game, record) for record in self.records]

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        results = ", ".join(
            f"{role} ({player}) {mean:.1f}"
            for (role, mean), player in zip(self.mean_goals.items(), self.players, strict=True)
        )
        return f"<{len(self)} {'match' if len(self) == 1 else 'matches'} of {self.game.name}: {results}>"


def play(
    game: Game | str | Path,
    players: AnyPlayer | Sequence[AnyPlayer] | Mapping[str, AnyPlayer] = STRONGEST,
    *,
    matches: int = 1,
    seed: int = 0,
    max_plies: int | None = None,
    regret: bool = False,
    one_by_one: bool = False,
    progress: Progress | bool | None = None,
) -> Matches:
    """Play matches between players, and return their results.

    Args:
        game: a game, or what `load` takes: the name of a shipped game, a path, or GDL text.
        players: the player of each role, as a mapping role -> player, in which a missing role is played by "gamelore";
            as a list in the order of roles; or one player for all roles. A player is a name with options, such as
            "uct:simulations=400" (`list_players` has the names), a `Player`, or a function that gets a `Position`, and
            the name of its role if it takes two arguments, and returns a legal move as text. A `Player` that is given
            for several roles must keep them apart; a name makes a player for each role. A learner such as "baseline"
            stores what it learns in the knowledge store, so give it the option `knowledge` for a store of its own.
        matches: number of matches.
        seed: seed of all random numbers but those of your own functions. Match i does not depend on the number of
            matches, unless a player learns.
        max_plies: number of plies after which a match is stopped; 1,000 if it is None.
        regret: whether to count the points that each player loses per move, compared with best play. The game is solved
            first, so it must be small.
        one_by_one: whether one match is over before the next begins, for a `Player` of your own that learns. Otherwise
            many matches are played side by side. Learners that have a name always play one match after the other.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        The results. They are a sequence of matches.

    Raises:
        GameloreError: a player or a role is unknown, or the number of players is wrong.
        IllegalMoveError: a player returned an illegal move.
    """
    check_count("matches", matches)
    check_seed(seed)
    if max_plies is not None:
        check_count("max_plies", max_plies)
    rules = loaded(game)
    by_role = players_by_role(rules, players)
    seats = seats_of(by_role, seed)
    with displayed(progress) as tell:
        return play_seats(
            rules,
            list(map(name_of, by_role)),
            seats,
            matches,
            seed,
            max_plies=max_plies,
            regret=regret,
            one_by_one=one_by_one,
            tell=tell,
        )


def replay(
    path: str | Path,
    game: Game | str | Path | None = None,
    *,
    engine: EngineName = "auto",
    limits: Limits | None = None,
) -> Matches:
    """Read match records, make their moves again, and check every recorded position.

    Args:
        path: a file of `Matches.save`, `gamelore play` or `gamelore host`, or a folder of records; also a GGP match
            record of another program.
        game: the game, or what `load` takes; needed for records that have no rules beside them and name no shipped
            game.
        engine: the engine of a game that the records name or bring along; see `load`.
        limits: the limits of loading it.

    Returns:
        The matches.

    Raises:
        GameloreError: a file cannot be read, a record contradicts the rules, or the records are of different games. The
            message names the file and the line.
    """
    from ..matches.replays import record_files, replays

    records: list[MatchRecord] = []
    rules = None if game is None else loaded(game)
    for replayed in replays(record_files([Path(path)]), rules, engine, limits):
        if replayed.match is None or replayed.record is None:
            raise GameloreError(f"{replayed.name}: {replayed.why}")
        rules = rules or replayed.match.graph.game
        if replayed.match.graph.game.rules_hash != rules.rules_hash:
            raise GameloreError(
                f"{replayed.name}: expected a match of {rules.name}, got one of {replayed.match.graph.game.name}; "
                "replay the records of one game at a time"
            )
        records.append(_as_made(replayed.record, replayed.match))
    assert rules is not None, "record_files returns at least one file, and each has at least one record"
    players = (" or ".join(dict.fromkeys(names)) for names in zip(*(record.players for record in records), strict=True))
    return Matches(rules, tuple(players), _seed_of(records), tuple(records))


def _as_made(record: MatchRecord, match: MatchState) -> MatchRecord:
    """Return a record with what its moves lead to, in the words of gamelore, also if it is of another program."""
    players = record.players or record.player_names or match.graph.game.roles
    made = match.record(record.match_id, players, is_aborted=record.is_aborted and match.end is None)
    told = ("states", "moves", "rules_hash", "roles", "players", "goals", "goal_values", "end")
    made_again = {name: getattr(made, name) for name in (*told, "is_completed", "is_aborted")}
    return replace(record, game=record.game or made.game, **made_again)


def _seed_of(records: Sequence[MatchRecord]) -> int | None:
    """Return the seed with which all records were made; None if they do not tell, or have different ones."""
    seeds = {record.key[0] if record.key else None for record in records}
    seed = seeds.pop() if len(seeds) == 1 else None
    return seed if isinstance(seed, int) else None


def play_seats(
    game: Game,
    names: Sequence[str],
    seats: Sequence[Player],
    matches: int,
    seed: int,
    *,
    max_plies: int | None = None,
    regret: bool = False,
    one_by_one: bool = False,
    ends_with_input: bool = False,
    on_end: Callable[[Finished], None] = lambda finished: None,
    tell: Progress = lambda stage, done, total: None,
) -> Matches:
    """Play matches between players that have been made; see `play`.

    Args:
        names: the names of the players in the records.
        ends_with_input: whether an EOFError of a player ends the series, instead of being raised.
        on_end: called with each group of matches that ended.
        tell: called with (stage, done, total).
    """
    from ..catalogue import play_matches
    from ..learning.session import LastingLearner
    from ..matches.match import MAX_PLIES
    from ..solver.perfect import RegretCount

    losses = RegretCount(game.num_roles) if regret else None
    solution = needed_solution(game, seats, regret, tell)

    def end(finished: Finished) -> None:
        if losses:
            losses.add(finished)
        on_end(finished)

    tell("matches", 0, matches)
    records = play_matches(
        game,
        names,
        matches,
        seed,
        seats=seats,
        one_by_one=one_by_one or any(isinstance(seat, LastingLearner) for seat in seats),
        ends_with_input=ends_with_input,
        max_plies=MAX_PLIES if max_plies is None else max_plies,
        with_states=False,
        on_end=end,
        on_progress=lambda done: tell("matches", done, matches),
    )
    lost = dict(zip(game.roles, losses.per_move, strict=True)) if losses else {}
    return Matches(game, tuple(names), seed, tuple(records), lost, tuple(solution.left_out) if solution else ())


def needed_solution(game: Game, seats: Sequence[Player], regret: bool, tell: Progress) -> Solution | None:
    """Solve the game if a player or the regret needs it. Players share it while there is a reference to it."""
    from ..matches.opponents import XReasonable
    from ..solver.perfect import Perfect
    from ..solver.solution import solve

    is_needed = regret or any(isinstance(seat, Perfect | XReasonable) for seat in seats)
    return solve(game, progress=tell) if is_needed else None


def players_by_role(game: Game, players: AnyPlayer | Sequence[AnyPlayer] | Mapping[str, AnyPlayer]) -> list[AnyPlayer]:
    """Return one player for each role. Raise GameloreError for unknown roles, or a wrong number of players."""
    from ..matches.match import check_seats

    if isinstance(players, Mapping):
        by_role: dict[str, AnyPlayer] = {
            one_of(str(role), game.roles, f"a role of {game.name}"): players[role] for role in players
        }
        return [by_role.get(role, STRONGEST) for role in game.roles]
    if isinstance(players, str) or not isinstance(players, Sequence):
        return [players] * game.num_roles
    check_seats(game, players)
    return list(players)


def seats_of(by_role: Sequence[AnyPlayer], seed: int) -> list[Player]:
    """Return the players themselves. In a game for two, learners get the name of the other player as their opponent."""
    others = list(map(name_of, by_role))[::-1] if len(by_role) == 2 else [None] * len(by_role)
    return [player_of(given, seed=seed, opponent=other) for given, other in zip(by_role, others, strict=True)]


def others_of(game: Game, role: str, given: Mapping[str, AnyPlayer]) -> dict[str, AnyPlayer]:
    """Return the players of all roles but one. Raise GameloreError unless the mapping names just these roles."""
    for name in given:
        one_of(name, game.roles, f"a role of {game.name}")
    others = [name for name in game.roles if name != role]
    if set(given) != set(others):
        raise GameloreError(
            f"expected opponents for {', '.join(others) or 'no role'}, got some for {', '.join(given) or 'none'}; name "
            "each role but the own one"
        )
    return {name: given[name] for name in others}


def player_of(given: AnyPlayer, **options: Any) -> Player:
    """Return a player: from its name with options that its name does not set, or the object or function itself."""
    from ..catalogue import player as of_catalogue

    return of_catalogue(given, **options) if isinstance(given, str) else as_player(given)


def as_player(given: Player | Callable[..., str]) -> Player:
    """Return a player, or the player that calls a function. Raise GameloreError for anything else."""
    if Player in type(given).__mro__:
        return given  # type: ignore[return-value]
    if callable(given) and not isinstance(given, type):
        return FunctionPlayer(given)
    raise GameloreError(
        f"expected a player, got {given!r}; give a name of list_players(), an object of a subclass of Player or "
        "PositionPlayer, or a function that gets a position and returns a move"
    )


def name_of(given: AnyPlayer) -> str:
    """Return the name of a player for records: its text, or the name of its function or class."""
    if isinstance(given, str):
        return given
    return getattr(given, "spec", "") or getattr(given, "__name__", type(given).__name__)


def check_free(path: Path) -> None:
    """Raise GameloreError if a folder already has match records, so that no match is overwritten."""
    from ..matches.match import RECORDS, RULES

    if path.is_dir() and (others := [*path.glob(RULES), *path.glob(RECORDS)]):
        raise GameloreError(
            f"expected a folder without matches, got {path}, which has {others[0].name}; choose another folder"
        )


def _with_states(record: MatchRecord, graph: PositionGraph) -> MatchRecord:
    """Return a record with the states that its moves lead to."""
    from ..matches.match import MatchState, state_text

    match = MatchState.after(graph, record.moves, max_plies=len(record.moves) + 1)
    return replace(record, states=tuple(state_text(graph.facts(row)) for row in match.rows))
