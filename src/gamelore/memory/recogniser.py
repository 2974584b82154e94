"""Recognition of opponents from their moves, across matches and without their names.

The policy of a known player in a position is computed exactly where the player draws from a distribution, or takes one
of the moves with the highest value. Searches are run several times with other random numbers; their policy is the
share of each move, smoothed towards the mean policy of all searches, because a few runs do not show every move.

The posterior probability of a player is proportional to the likelihood of all moves seen so far. Players that would
have moved alike cannot be told apart, and share it. An opponent is *unknown* if no policy fits: under the right policy,
the sum of the logarithms of the probabilities of the moves has a known mean and variance, so it is rarely some standard
deviations away from the mean. The evidence for an unknown player is half of the square of this distance, as if its
moves were drawn from a policy for which the sum lies where it does, less the logarithm of `_ODDS`.

The known players draw their moves anew in each match, so all matches count alike, also those that repeat earlier moves.
Positions cost seconds in large games, so at most `MOST_MOVES` moves of a match count.

Such sums can be added up over matches, so the store keeps them (learning/store/lesson_rows.py). The opponents of the
last few matches are taken for the same player.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..learning.store.lesson_rows import PolicyFit
from ..matches.match import MatchState
from ..matches.opponents import Opponent
from ..players.lookahead import Lookahead, choice_values
from ..players.player import Memoryless, Player, Started, Turn
from ..players.position_graph import PositionGraph
from ..players.random_streams import extend, stream

if TYPE_CHECKING:
    from ..game.game import Game
    from ..learning.store.lesson_rows import Lessons, PlayedMatch

UNKNOWN = "unknown"
_ODDS = 100.0  # of known players against an unknown one, before the fit is looked at
_NOISE = 0.01  # share of random moves in every policy
_SMOOTHING = 3.0  # runs that the mean policy of all searches counts as
_FLAT = 0.2  # share of random moves in this mean policy
_RUNS, _LANES = 64, 4  # runs of a search in a position, and how many of them side by side
MOST_MOVES = 16
"""Number of moves of a match that count, at most."""
_RECOGNITION = "recognition"  # stage of the random numbers
SAME_OPPONENT = 5
"""Number of matches whose opponents are taken for the same player."""
_MOST_POSITIONS = 1 << 21  # in memory, about 200 MB
_MOST_AHEAD = 100_000  # positions two plies after the first one, with which players that look ahead are compared
_log = logging.getLogger(__name__)


class SeenMove(NamedTuple):
    """A move of an opponent: the row of the position in the graph, the role, and the index among its legal moves."""

    row: int
    role: int
    choice: int


def seen_moves(match: MatchState, role: int) -> list[SeenMove]:
    """Return the moves of a role in a match, without those that were its only legal move; at most MOST_MOVES of them.

    They are spread evenly over the match. A move that comes again in the same position counts once, because a player
    may draw only one in each position of a match.
    """
    num_moves = match.graph.num_moves
    each = (
        SeenMove(row, role, joint[role])
        for row, joint in zip(match.rows[:-1], match.choices, strict=True)
        if num_moves[row, role] > 1
    )
    moves = list(dict.fromkeys(each))
    if len(moves) <= MOST_MOVES:
        return moves
    return [moves[int(place)] for place in np.linspace(0, len(moves) - 1, MOST_MOVES)]


class Policies:
    """The policies of known players in positions of a game.

    Args:
        graph: positions
        players: by name
        runs: number of runs of a search in a position
    """

    def __init__(self, graph: PositionGraph, players: Mapping[str, Player], runs: int = _RUNS) -> None:
        self._graph, self._players, self._runs = graph, dict(players), runs
        self._kept: dict[tuple[int, int], NDArray[np.float64]] = {}

    @property
    def names(self) -> list[str]:
        """The names of the players, in the order of the policies."""
        return list(self._players)

    def of(self, row: int, role: int) -> NDArray[np.float64]:
        """Return the probabilities of the moves of a role, float64[players, moves]."""
        for _ in self.steps(row, role):
            pass
        return self._kept[row, role]

    def steps(self, row: int, role: int) -> Iterator[None]:
        """Compute the policies in a position in small steps; do nothing if they are there already."""
        if (row, role) in self._kept:
            return
        rows, policies, sampled = np.array([row], np.int32), dict[str, NDArray[np.float64]](), list[str]()
        self._graph.list_moves(rows)
        for name, player in self._players.items():
            policy = self._exact(player, rows, role)
            if policy is None:
                sampled.append(name)
            else:
                policies[name] = policy
            yield
        counts = {name: np.zeros(self._num_moves(row, role)) for name in sampled}
        for name in sampled:
            for first in range(0, self._runs, _LANES):
                counts[name] += self._sampled(self._players[name], rows, role, first)
                yield
        policies |= self._smoothed(counts, self._num_moves(row, role))
        ordered = np.array([policies[name] for name in self._players])
        self._kept[row, role] = (1.0 - _NOISE) * ordered + _NOISE / ordered.shape[1]

    def _num_moves(self, row: int, role: int) -> int:
        return int(self._graph.num_moves[row, role])

    def _exact(self, player: Player, rows: NDArray[np.int32], role: int) -> NDArray[np.float64] | None:
        """Return the policy of a player in one position; None if it can only be sampled."""
        if isinstance(player, Lookahead):
            values = choice_values(self._graph, role, rows, player.depth, player.heuristic, player.default)[1]
            is_best = values >= values.max() - 1e-9
            return np.asarray(is_best / is_best.sum())
        if isinstance(player, Memoryless):
            return player.distribution(self._graph, rows, role)
        return None

    def _sampled(self, player: Player, rows: NDArray[np.int32], role: int, first: int) -> NDArray[np.float64]:
        """Return how often a player makes each move in one position, in runs that know nothing of each other."""
        lanes = np.arange(min(_LANES, self._runs - first))
        player.begin(role, Started(self._graph, lanes, lanes))
        keys = extend(stream(0, _RECOGNITION), first + lanes)
        turn = Turn(self._graph, role, lanes, np.repeat(rows, len(lanes)), keys, np.zeros(len(lanes), np.int32))
        return np.bincount(player.choose(turn), minlength=self._num_moves(int(rows[0]), role)).astype(np.float64)

    def _smoothed(self, counts: Mapping[str, NDArray[np.float64]], num_moves: int) -> dict[str, NDArray[np.float64]]:
        """Return the policies of searches from the numbers of their moves."""
        mean = sum(counts.values()) / (self._runs * max(len(counts), 1))
        mean = (1.0 - _FLAT) * mean + _FLAT / num_moves
        return {name: (own + _SMOOTHING * mean) / (self._runs + _SMOOTHING) for name, own in counts.items()}


def fits(policies: Policies, moves: Sequence[SeenMove]) -> Iterator[Sequence[PolicyFit]]:
    """Compare the moves of an opponent with those of known players in small steps.

    Yields:
        How well each policy fits the moves up to here; the last one counts. A forced move says nothing.
    """
    sums = np.zeros((3, len(policies.names)))  # log-likelihoods, their means, their variances
    for move in moves:
        for _ in policies.steps(move.row, move.role):
            yield _fits_of(policies.names, sums)
        probabilities = policies.of(move.row, move.role)
        logs = np.log(probabilities)
        means = (probabilities * logs).sum(axis=1)
        sums += [logs[:, move.choice], means, (probabilities * (logs - means[:, None]) ** 2).sum(axis=1)]
    yield _fits_of(policies.names, sums)


def _fits_of(names: Sequence[str], sums: NDArray[np.float64]) -> list[PolicyFit]:
    return [PolicyFit(name, *own) for name, own in zip(names, sums.T.tolist(), strict=True)]


def posterior(matches: Sequence[Iterable[PolicyFit]]) -> dict[str, float]:
    """Return the probability of each known player, and of an unknown one, after matches with the same opponent.

    Args:
        matches: how well the policies fit each of them. Players that are missing in one of them are left out.

    Returns:
        Probabilities by name, the most probable player first; they add up to 1. Empty without a match.
    """
    by_match = [{fit.player: fit for fit in own} for own in matches]
    names = [name for name in by_match[0] if all(name in own for own in by_match)] if by_match else []
    if not names:
        return {}
    sums = [[own[name][1:] for name in names] for own in by_match]
    likelihoods, means, variances = np.array(sums).sum(axis=0).T
    best = int(likelihoods.argmax())
    distance = (likelihoods[best] - means[best]) ** 2 / max(float(variances[best]), 1e-9)
    logs = np.append(likelihoods, likelihoods[best] + distance / 2.0 - log(_ODDS))
    shares = np.exp(logs - logs.max())
    named = zip([*names, UNKNOWN], (shares / shares.sum()).tolist(), strict=True)
    return dict(sorted(named, key=lambda item: -item[1]))


class Encounters:
    """Comparison of the opponents in the last matches of a game with known players.

    Players that look ahead are left out where this takes too many positions. A match that needs too many positions all
    the same says nothing.

    Args:
        game: game
        lessons: store
        players: known players by name
    """

    def __init__(self, game: Game, lessons: Lessons, players: Mapping[str, Player]) -> None:
        self._game, self._lessons, self._players = game, lessons, players
        last = lessons.last_matches(game.rules_hash, SAME_OPPONENT)
        stored = lessons.fits(game.rules_hash, min(last, default=0))
        self._waiting = [  # number of the match, role of the opponent
            (number, role, match)
            for number, match in last.items()
            for role in range(game.num_roles)
            if role != match.role and (number, role) not in stored
        ]
        self._graph: PositionGraph | None = None  # until it is needed
        self._num_since = 0  # matches since the graph was made
        self._steps: Iterator[Sequence[PolicyFit]] | None = None
        self._fits: Sequence[PolicyFit] = ()

    @property
    def is_done(self) -> bool:
        """Whether all these matches have been compared."""
        return not self._waiting

    def go_on(self, deadline: float) -> None:
        """Compare moves until the deadline, in seconds of `time.monotonic`; store the fits of each match at its end.

        A step is the policy of a player in a position, which may take seconds in large games.
        """
        while self._waiting and monotonic() < deadline:
            number, role, match = self._waiting[0]
            try:
                is_over = self._advance(match, role)
            except GameloreError as error:
                is_over = self._give_up(match, error)
            if is_over:
                self._lessons.add_fits(self._game, number, role, self._fits)
                self._waiting.pop(0)
                self._steps = None
        if not self._waiting:
            self._graph = None  # it may be large

    def _advance(self, match: PlayedMatch, role: int) -> bool:
        """Go on with the first match that waits; return whether it is over."""
        if self._graph is None:
            self._begin()
        if not self._policies.names:
            self._waiting.clear()
            return False
        if self._steps is None:
            self._num_since += 1
            self._steps = fits(self._policies, self._moves(match, role))
        last = next(self._steps, None)
        if last is not None:
            self._fits = last
        return last is None

    def _begin(self) -> None:
        """Begin with an empty graph."""
        self._graph, self._num_since = PositionGraph(self._game, _MOST_POSITIONS), 0
        self._policies = Policies(self._graph, affordable(self._graph, self._players))

    def _give_up(self, match: PlayedMatch, error: GameloreError) -> bool:
        """Give up a match that needs too many positions; return False if it may have the graph for itself first."""
        self._graph, self._steps = None, None
        if self._num_since > 1:
            return False
        self._fits = next(fits(self._policies, ()))
        _log.warning("cannot compare the moves of match %s: %s", match.id, error)
        return True

    def _moves(self, played: PlayedMatch, role: int) -> list[SeenMove]:
        """Return the moves of a role; none if the match contradicts the rules."""
        assert self._graph is not None
        try:
            match = MatchState.after(self._graph, played.moves, max_plies=len(played.moves) + 1)
        except (GameloreError, IndexError) as error:
            if isinstance(error, GameloreError) and self._graph.num_rows == self._graph.max_rows:
                raise
            _log.warning("cannot compare the moves of match %s: %s", played.id, error)
            return []
        return seen_moves(match, role)


def affordable(graph: PositionGraph, players: Mapping[str, Player]) -> dict[str, Player]:
    """Return the players whose policies need no more than `_MOST_AHEAD` positions two plies after the first one."""
    try:
        children = graph.children([graph.start])
        graph.list_moves(children)
        num = int(graph.num_joint[children].sum())
    except GameloreError:  # already the first position has too many joint moves
        num = _MOST_AHEAD + 1
    return {name: own for name, own in players.items() if num <= _MOST_AHEAD or not _looks_ahead(own)}


def _looks_ahead(player: Player) -> bool:
    """Return whether the policy of a player needs positions after its moves."""
    if isinstance(player, Opponent):
        return any(own.kind != "random" for own in player.settings)
    return isinstance(player, Lookahead)


def recognised(lessons: Lessons, rules_hash: str, role: int, num_roles: int) -> dict[str, float]:
    """Return the posterior probabilities of the opponent with a role in the last matches, see `posterior`.

    In a game with two roles, the opponents with either role are the same player.
    """
    last = lessons.last_matches(rules_hash, SAME_OPPONENT)
    compared = lessons.fits(rules_hash, min(last, default=0))
    return posterior([own for (_, other), own in sorted(compared.items()) if other == role or num_roles == 2])
