"""Tournaments of players: `tournament` and its result `Tournament`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, check_count, check_seed
from ..game.game import Game
from ..rulesheets import loaded
from .playing import AnyPlayer, Matches, name_of, player_of
from .progress import Progress, displayed
from .rows import save_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..lab.tournament import Rating, Ratings


@dataclass(frozen=True, eq=False, repr=False)
class Tournament:
    """The results of a tournament. `print` shows the ratings and the cross table.

    Attributes:
        game: the game.
        players: the names of the players.
        seed: the seed of all random numbers.
        match_ups: names of the players by role -> their matches.
        prior: see `tournament`.
    """

    game: Game
    players: tuple[str, ...]
    seed: int
    match_ups: Mapping[tuple[str, ...], Matches]
    prior: float

    @cached_property
    def _ratings(self) -> Ratings:
        from ..lab.tournament import comparisons, ratings

        goals = {seated: np.nan_to_num(matches.goals) for seated, matches in self.match_ups.items()}
        compared = comparisons(self.players, goals)
        return ratings(len(self.players), self.game.num_roles, compared, self.prior)

    @property
    def ratings(self) -> dict[str, Rating]:
        """Player -> its Elo points with the 95 % interval (`elo`, `low`, `high`), the best first. The mean is 0."""
        rated = zip(self.players, self._ratings.players, strict=True)
        return dict(sorted(rated, key=lambda item: -item[1].elo))

    @property
    def advantages(self) -> dict[str, float]:
        """Role -> Elo points of playing this role. The mean is 0."""
        return dict(zip(self.game.roles, self._ratings.roles, strict=True))

    @property
    def draws(self) -> float:
        """Share of the comparisons of two players that are draws, 0 to 1."""
        return self._ratings.draws

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """int64[players, players, 3]: wins, draws and losses of each player against each other one."""
        number = {name: i for i, name in enumerate(self.players)}
        counts = np.zeros((len(self.players), len(self.players), 3), np.int64)
        for seated, matches in self.match_ups.items():
            goals = np.nan_to_num(matches.goals)
            for a, first in enumerate(seated):
                for b, second in enumerate(seated):
                    if a != b:
                        better = np.sign(goals[:, a] - goals[:, b])
                        counts[number[first], number[second]] += [int((better == sign).sum()) for sign in (1, 0, -1)]
        return counts

    @property
    def cross_table(self) -> NDArray[np.float64]:
        """float64[players, players]: mean score of each player against each other one, 0 to 1; NaN on the diagonal."""
        total = self.counts.sum(axis=2)
        scores = self.counts[:, :, 0] + self.counts[:, :, 1] / 2
        shares: NDArray[np.float64] = np.divide(scores, total, out=np.full(total.shape, np.nan), where=total > 0)
        return shares

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each player, the best first: its rating, interval, score, and numbers of results."""
        rows = []
        for name, rating in self.ratings.items():
            wins, draws, losses = self.counts[self.players.index(name)].sum(axis=0).tolist()
            score = (wins + draws / 2) / max(1, wins + draws + losses)
            results = {"score": score, "wins": wins, "draws": draws, "losses": losses}
            rows.append({"player": name, "elo": rating.elo, "low": rating.low, "high": rating.high, **results})
        return rows

    def save(self, path: str | Path) -> None:
        """Write the rows into a file that ends in .csv or .json."""
        save_rows(path, self.rows)

    def plot(self) -> Figure:
        """Return a matplotlib figure: the ratings with their intervals, and the cross table."""
        from ..lab.figures import tournament_figure

        order = [self.players.index(name) for name in self.ratings]
        rated = [(name, rating.elo, rating.low, rating.high) for name, rating in self.ratings.items()]
        return tournament_figure(rated, self.cross_table[np.ix_(order, order)])

    def __repr__(self) -> str:
        best = ", ".join(f"{name} {rating.elo:+.0f}" for name, rating in self.ratings.items())
        num = sum(map(len, self.match_ups.values()))
        return f"<Tournament of {self.game.name}, {num} matches: {best}>"

    def __str__(self) -> str:
        names = list(self.ratings)
        order = [self.players.index(name) for name in names]
        table = self.cross_table[np.ix_(order, order)]
        width = max(map(len, names))
        head = f"{'':{width}}    Elo  95 % interval  " + "".join(f"{number:>5}" for number in range(1, len(names) + 1))
        lines = [
            f"{name:{width}} {rating.elo:+6.0f}  {rating.low:+6.0f} {rating.high:+6.0f}   "
            + "".join("    -" if np.isnan(score) else f"{100 * score:5.0f}" for score in row)
            for (name, rating), row in zip(self.ratings.items(), table, strict=True)
        ]
        roles = ", ".join(f"{role} {points:+.0f}" for role, points in self.advantages.items())
        words = f"score in % against each player, in the order of the rows; Elo points of the roles: {roles}"
        return "\n".join([head, *lines, "", words])

    def _repr_html_(self) -> str:
        from ..lab.figures import svg_text

        return f"<p>{escape(repr(self))}</p>{svg_text(self.plot())}"


def tournament(
    game: Game | str | Path,
    players: Sequence[AnyPlayer] | Mapping[str, AnyPlayer],
    *,
    matches: int = 10,
    seed: int = 0,
    max_plies: int | None = None,
    prior: float = 1.0,
    out: str | Path | None = None,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | bool | None = None,
) -> Tournament:
    """Let all players play against each other in all roles, and rate them.

    In a game for two, each pair plays in both orders. In a game for three, each three players play in all orders; in
    larger games, each player of a group has each role once.

    Args:
        game: a game for two or more roles, or what `load` takes.
        players: names, `Player` objects or functions, as for `play`; a mapping gives them other names.
        matches: number of matches of each group of players in each order.
        seed: seed of all random numbers but those of your own functions. Matches do not depend on the other players.
        max_plies: number of plies after which a match is stopped; 1,000 if it is None.
        prior: for finite ratings, the number of further matches of each player, half won and half lost, against a
            player with the rating 0.
        out: a folder for the matches. The same call again plays only the missing matches, also with more players or
            matches. It knows functions and objects by their names only.
        workers: number of processes. With several, functions and classes must be defined in a module, unless a
            cluster plays.
        cluster: in place of processes of this machine, the cores of a Ray cluster: the address HOST:PORT of its head,
            or "ray" for the one that RAY_ADDRESS names, or else a new one of this machine with `workers` cores.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        The results, with Elo ratings by maximum likelihood: draws and the advantages of roles are parts of the model
        (Davidson & Beaver 1977), and the intervals are those of the profile likelihood.

    Raises:
        GameloreError: a player is unknown, there are too few, or the game is a puzzle.
        ExperimentError: the folder has matches of other rules or of another version, or a machine of the cluster has
            another version of gamelore.
    """
    from ..lab.results import ResultStore, store_path
    from ..lab.tournament import match_ups, play_tournament, records_of
    from ..learning.session import LastingLearner
    from ..matches.match import MAX_PLIES

    check_count("matches", matches)
    check_count("max_plies", MAX_PLIES if max_plies is None else max_plies)
    check_seed(seed)
    if not 0 <= prior < inf:
        raise GameloreError(f"expected a prior from 0, got {prior}; choose a finite number")
    if isinstance(players, str):
        raise GameloreError(f"expected a list of players, got {players!r}; give at least two")
    rules = loaded(game)
    named = dict(players) if isinstance(players, Mapping) else {name_of(each): each for each in players}
    if len(named) < len(players):
        raise GameloreError(
            "expected players with different names, got two with the same; give a mapping of names to players"
        )
    made = {name: player_of(each, seed=seed) for name, each in named.items()}
    if learning := [name for name, each in made.items() if isinstance(each, LastingLearner) and each.learns]:
        raise GameloreError(
            f"expected players that do not learn during a tournament, got {', '.join(learning)}; add their option "
            "learn=no"
        )
    own = {name: each for name, each in made.items() if named[name] != name}  # processes make the others
    specs = {name: name_of(each) for name, each in named.items()}
    settings = match_ups(rules, specs, matches, seed, max_plies or MAX_PLIES)
    with TemporaryDirectory() as folder, ResultStore(store_path(Path(out or folder))) as store:
        with displayed(progress) as tell:
            play_tournament(
                settings,
                store,
                own,
                engine=rules.engine,
                limits=rules.limits,
                workers=workers,
                cluster=cluster,
                progress=tell,
            )
        played = {
            setting.players: Matches(rules, setting.players, setting.seed, tuple(records_of(setting, store)))
            for setting in settings
        }
    told = Tournament(rules, tuple(named), seed, played, prior)
    told.advantages  # noqa: B018 - computes the ratings now, so that their errors come now
    return told
