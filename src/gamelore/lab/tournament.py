"""Tournaments: matches of all players with each other in all roles, as an experiment that resumes; Elo ratings.

The ratings are those of maximum likelihood with draws and the advantages of roles (Davidson 1970; Davidson & Beaver
1977). The strength of a player is that of the player itself plus that of its role. If x is the difference of two
strengths, the results of a match have these probabilities, where nu is the same for all matches:

    first wins  exp(x/2) / d      draw  nu / d      second wins  exp(-x/2) / d      d = exp(x/2) + exp(-x/2) + nu

The players' strengths have the sum 0, and so have those of the roles. An Elo point is ln(10) / 400 of a strength. In a
game for more than two roles a match is a comparison of each pair of its players. Each of these has the weight
1 / (roles - 1), so that a match counts once for each player. The comparisons of a match are not independent, so the
intervals are approximate then.

A player or a role that wins every match has no finite maximum. Therefore each player, and each role, has `prior`
further matches, half won and half lost, against a strength of 0. The intervals are those of the profile likelihood.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import combinations, groupby, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from ..catalogue import play_matches, player
from ..errors import ExperimentError
from ..game.game import EngineName, Game, make
from ..gdl.limits import Limits
from ..gdl.syntax import parse
from ..matches.match import MAX_PLIES, MatchRecord
from ..players.player import Player
from ..workers.processes import Report
from .experiment import SettingGrid, Tell, code_version, run_grid
from .results import Outcome, ResultStore, Setting, Trial

IN_ALL_ORDERS = 3  # roles up to which players sit in all orders; with more, each of them has each role once
BLOCK = 10  # matches of a job; a killed process loses at most as many for each worker
POINTS = 400 / float(np.log(10))  # Elo points of a strength of 1
PRIOR = 1.0
_DROP = 1.9207294103470619  # of the logarithm of the likelihood at the ends of a 95 % interval: half of chi2(1) = 3.84
_FARTHEST = 30.0  # strength, 5,200 Elo points; an interval that reaches beyond has no end
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class MatchUp(Setting):
    """Matches of some players, one in each role. A run is one match.

    rules    the rules of the game in GDL; `game` is its name
    players  the name of the player of each role
    specs    for each of them the text that makes it, which may have another name in the tournament
    """

    rules: str
    players: tuple[str, ...]
    specs: tuple[str, ...]
    max_plies: int = MAX_PLIES

    @property
    def size(self) -> int:
        """See `Setting.size`."""
        return 1


def match_ups(
    game: Game, players: Mapping[str, str], matches: int, seed: int, max_plies: int = MAX_PLIES
) -> list[MatchUp]:
    """Return the match-ups of a tournament, with `matches` matches each.

    The seed of a match-up depends on its players only, so its matches are the same with more players.

    players: name of a player -> the text that makes it
    """
    if game.num_roles < 2:
        raise ExperimentError(f"expected a game for two or more roles, got {game.name}, a puzzle; choose another game")
    if len(players) < game.num_roles:
        raise ExperimentError(
            f"expected at least {game.num_roles} players for a tournament of {game.name}, got {len(players)}; add some"
        )
    rules = str(game.rulesheet)
    return [
        MatchUp(
            " | ".join(seated), game.name, _seed(seed, seated), matches, rules, seated,
            tuple(players[name] for name in seated), max_plies,
        )
        for seated in seatings(list(players), game.num_roles)
    ]  # fmt: skip


def seatings(names: Sequence[str], num_roles: int) -> Iterator[tuple[str, ...]]:
    """Yield all choices of players with a role for each: all orders, or each player once in each role if too many."""
    for chosen in combinations(names, num_roles):
        orders = list(permutations(chosen)) if num_roles <= IN_ALL_ORDERS else []
        yield from orders or [chosen[shift:] + chosen[:shift] for shift in range(num_roles)]


def _seed(seed: int, players: Sequence[str]) -> int:
    """Return the seed of a match-up."""
    return int.from_bytes(blake2b(repr((seed, tuple(players))).encode(), digest_size=4).digest(), "little")


def play_tournament(
    settings: Sequence[MatchUp],
    store: ResultStore,
    own: Mapping[str, Player] | None = None,
    *,
    engine: EngineName = "auto",
    limits: Limits | None = None,
    workers: int = 1,
    cluster: str | None = None,
    progress: bool | Tell = True,
) -> None:
    """Play the matches that the store does not have yet.

    own: players that are objects, by the names that they have in the match-ups
    engine, limits: how the processes load the game
    """
    play = partial(play_block, own=dict(own or {}), engine=engine, limits=limits or Limits())
    version = code_version("lab.tournament")
    grid = SettingGrid.of(settings)
    run_grid(grid, store, workers=workers, cluster=cluster, progress=progress, jobs=blocks, play=play, version=version)


def blocks(trials: Iterable[Trial[MatchUp]], store: ResultStore, workers: int) -> Iterator[list[Trial[MatchUp]]]:
    """Group trials into jobs of at most BLOCK matches of a match-up whose numbers follow each other."""
    for _, group in groupby(enumerate(trials), lambda item: (item[1].setting.id, item[1].run - item[0])):
        block = [trial for _, trial in group]
        yield from (block[i : i + BLOCK] for i in range(0, len(block), BLOCK))


def play_block(
    trials: Sequence[Trial[MatchUp]], report: Report, own: Mapping[str, Player], engine: EngineName, limits: Limits
) -> list[Outcome]:
    """Play the matches of one match-up with these numbers, which follow each other."""
    begin, setting = time.process_time(), trials[0].setting
    game = _game(setting.rules, setting.game, engine, limits)
    seats = [own[name] if name in own else player(name, seed=setting.seed) for name in setting.players]
    told = 0

    def tell(done: int) -> None:
        nonlocal told
        report(done - told)
        told = done

    records = play_matches(
        game,
        setting.players,
        len(trials),
        setting.seed,
        seats=seats,
        first_match=trials[0].run,
        max_plies=setting.max_plies,
        with_states=False,
        on_progress=tell,
    )
    seconds = (time.process_time() - begin) / len(trials)
    return [
        Outcome(
            trial, rules_hash=game.rules_hash, engine=game.engine, seconds=seconds, result=json.loads(record.to_json())
        )
        for trial, record in zip(trials, records, strict=True)
    ]


@lru_cache(maxsize=2)
def _game(rules: str, name: str, engine: EngineName, limits: Limits) -> Game:
    return make(parse(rules), name, engine, limits)


def records_of(setting: MatchUp, store: ResultStore) -> list[MatchRecord]:
    """Return the matches of a match-up, without states. Raise ExperimentError if one is missing."""
    return [MatchRecord.from_json(json.dumps(result)) for result in store.results(setting.id, setting.runs)]


# ---- ratings ----


@dataclass(frozen=True)
class Comparison:
    """Results of two players in two roles: `wins` of the first player, `draws`, and `losses`. Numbers count from 0."""

    first: int
    first_role: int
    second: int
    second_role: int
    wins: float
    draws: float
    losses: float


def comparisons(names: Sequence[str], seated: Mapping[tuple[str, ...], Any]) -> list[Comparison]:
    """Compare each two players of each match-up by their goals. A missing goal counts as 0.

    seated: players by role -> goals, float64[matches, roles]
    """
    number = {name: i for i, name in enumerate(names)}
    return [
        Comparison(
            number[players[a]], a, number[players[b]], b,
            float((goals[:, a] > goals[:, b]).sum()),
            float((goals[:, a] == goals[:, b]).sum()),
            float((goals[:, a] < goals[:, b]).sum()),
        )
        for players, goals in seated.items()
        for a, b in combinations(range(len(players)), 2)
    ]  # fmt: skip


@dataclass(frozen=True)
class Rating:
    """Elo points of a player with a 95 % interval; the mean over all players is 0. An end may be infinite."""

    elo: float
    low: float
    high: float


@dataclass(frozen=True)
class Ratings:
    """Ratings of players, Elo points of the roles (NaN if a role has no comparison), and the share of draws."""

    players: tuple[Rating, ...]
    roles: tuple[float, ...]
    draws: float


def ratings(num_players: int, num_roles: int, comparisons: Sequence[Comparison], prior: float = PRIOR) -> Ratings:
    """Return the ratings that explain the comparisons best.

    prior: number of further matches of each player, half won and half lost, against a player of strength 0

    Raise ExperimentError without a prior if there is no finite maximum.
    """
    if num_players < 2:
        raise ExperimentError(f"expected at least two players, got {num_players}; add players")
    if not prior and not (_is_connected(num_players, comparisons) and _are_mixed(num_roles, comparisons)):
        raise ExperimentError(
            "expected every group of players, and every role, to win and to lose points against the others, got one "
            "that did not, so its rating has no limit; play more matches, or leave the default prior"
        )
    model = _Model(num_players, num_roles, comparisons, prior)
    best = model.maximum(np.zeros(num_players), _zero_sum(num_players))
    strengths, roles = best.strengths[:num_players].tolist(), best.strengths[num_players:]
    players = [
        Rating(POINTS * strengths[i], *(POINTS * model.end(i, strengths[i], best.value, side) for side in (-1, 1)))
        for i in range(num_players)
    ]
    total = sum(each.wins + each.draws + each.losses for each in comparisons)
    draws = sum(each.draws for each in comparisons) / total if total else float("nan")
    return Ratings(tuple(players), tuple((POINTS * roles).tolist()), draws)


@dataclass(frozen=True)
class _Maximum:
    """The largest logarithm of the likelihood, the strengths of players and roles there, and what was free."""

    value: float
    strengths: Matrix
    x: Matrix


class _Model:
    """The likelihood of the comparisons as a function of the strengths of players and roles, and of log(nu).

    differences: float64[comparisons, players + roles], 1 for the first player and its role, -1 for the second
    counts: float64[comparisons, 3], wins, draws and losses
    """

    def __init__(self, num_players: int, num_roles: int, comparisons: Sequence[Comparison], prior: float) -> None:
        self.num_players = num_players
        self.num_roles = num_roles
        self.prior = prior
        self.differences = np.zeros((len(comparisons), num_players + num_roles))
        for row, each in zip(self.differences, comparisons, strict=True):
            for number, role, sign in ((each.first, each.first_role, 1), (each.second, each.second_role, -1)):
                row[number] += sign
                row[num_players + role] += sign
        weight = 1 / max(1, num_roles - 1)
        self.counts = weight * np.array([(each.wins, each.draws, each.losses) for each in comparisons]).reshape(-1, 3)
        self.has_draws = bool(self.counts[:, 1].any())

    def maximum(self, fixed: Matrix, free: Matrix, begin: Matrix | None = None) -> _Maximum:
        """Return the maximum over all strengths of the players `fixed + free @ x`.

        fixed: float64[players]; free: float64[players, any]; begin: the `x` of a maximum nearby
        """
        num, roles = free.shape[1], _zero_sum(self.num_roles)
        spread = np.zeros((self.num_players + self.num_roles + 1, num + roles.shape[1] + self.has_draws))
        spread[: self.num_players, :num] = free
        spread[self.num_players : -1, num : num + roles.shape[1]] = roles
        spread[-1, -1:] = self.has_draws
        base = np.concatenate([fixed, np.zeros(self.num_roles + 1)])

        def loss(x: Matrix) -> float:
            return -self._derivatives(base + spread @ x)[0]

        def slope(x: Matrix) -> Matrix:
            return -self._derivatives(base + spread @ x)[1] @ spread

        def curvature(x: Matrix) -> Matrix:
            return -spread.T @ self._derivatives(base + spread @ x)[2] @ spread

        begin = np.zeros(spread.shape[1]) if begin is None else begin
        if not begin.size:
            return _Maximum(-loss(begin), base[:-1], begin)
        best = optimize.minimize(loss, begin, jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-7})
        return _Maximum(-float(best.fun), (base + spread @ best.x)[:-1], best.x)

    def _derivatives(self, strengths: Matrix) -> tuple[float, Matrix, Matrix]:
        """Return the logarithm of the likelihood, its slope and its curvature, at strengths and log(nu), the last one.

        The logarithm is concave, because its terms are those of a multinomial logit. `side` is 1, 0 or -1 for a win, a
        draw or a loss of the first player, and its expected value and variance give the derivatives.
        """
        half = self.differences @ strengths[:-1] / 2
        draw = np.full_like(half, strengths[-1] if self.has_draws else -np.inf)
        terms = np.stack([half, draw, -half], axis=1)
        top = terms.max(axis=1)
        log_d = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
        win, tie, loss = np.exp(terms - log_d[:, None]).T
        wins, draws, losses = self.counts.T
        totals, side = self.counts.sum(axis=1), win - loss
        value = float(((wins - losses) * half).sum() + (draws.sum() * strengths[-1]) - totals @ log_d)
        slope = np.append((wins - losses - totals * side) / 2 @ self.differences, (draws - totals * tie).sum())
        curvature = np.zeros((len(slope), len(slope)))
        curvature[:-1, :-1] = -(self.differences.T * (totals * (win + loss - side**2) / 4)) @ self.differences
        curvature[:-1, -1] = curvature[-1, :-1] = (totals * tie * side / 2) @ self.differences
        curvature[-1, -1] = -(totals * tie * (1 - tie)).sum()
        own, each = strengths[:-1] / 2, np.arange(len(strengths) - 1)
        value -= self.prior * float(np.logaddexp(own, -own).sum())
        slope[each] -= self.prior * np.tanh(own) / 2
        curvature[each, each] -= self.prior / np.cosh(own) ** 2 / 4
        return value, slope, curvature

    def end(self, player: int, strength: float, highest: float, side: int) -> float:
        """Return the end of the interval of a player's strength, below (side -1) or above it (1)."""
        others = np.arange(self.num_players) != player
        free = np.zeros((self.num_players, self.num_players - 2))
        free[others] = _zero_sum(self.num_players - 1)

        nearby: Matrix | None = None

        def above(distance: float) -> float:
            nonlocal nearby
            fixed = np.full(self.num_players, -(strength + side * distance) / (self.num_players - 1))
            fixed[player] = strength + side * distance
            best = self.maximum(fixed, free, nearby)
            nearby = best.x
            return best.value - (highest - _DROP)

        if above(_FARTHEST) > 0:
            return side * float("inf")
        return strength + side * float(optimize.brentq(above, 0.0, _FARTHEST, xtol=1e-4))


def _zero_sum(num: int) -> Matrix:
    """Return a basis of all vectors with the sum 0: float64[num, num - 1]."""
    return np.linalg.qr(np.eye(num)[:, :-1] - 1 / num)[0] if num > 1 else np.zeros((num, 0))


def _is_connected(num_players: int, comparisons: Sequence[Comparison]) -> bool:
    """Return whether all players are connected to all others by wins or draws, in both directions (Ford 1957)."""
    from scipy.sparse.csgraph import connected_components

    beats = np.zeros((num_players, num_players))
    for each in comparisons:
        beats[each.first, each.second] += each.wins + each.draws
        beats[each.second, each.first] += each.losses + each.draws
    return int(connected_components(beats, connection="strong", return_labels=False)) == 1


def _are_mixed(num_roles: int, comparisons: Sequence[Comparison]) -> bool:
    """Return whether every role that was compared has won and lost, or drawn."""
    won, lost, compared = np.zeros(num_roles), np.zeros(num_roles), np.zeros(num_roles, np.bool_)
    for each in comparisons:
        for role, wins, losses in (
            (each.first_role, each.wins, each.losses),
            (each.second_role, each.losses, each.wins),
        ):
            won[role] += wins + each.draws
            lost[role] += losses + each.draws
            compared[role] = True
    return bool(((won > 0) & (lost > 0))[compared].all())
