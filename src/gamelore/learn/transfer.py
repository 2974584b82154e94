"""Series of matches: learners against opponents, many runs side by side; and what a source game taught.

"To measure learning performance, our learner plays a series of matches of the same game against a given opponent"
(Banerjee & Stone 2007, section 2.2). A lane is one such series. A game is target and source at once: any learner's
values give feature values afterwards, whatever it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..play.graph import Graph
from ..play.lockstep import run_lockstep
from ..play.match import MAX_PLIES
from ..play.player import CAP, STUCK, Finished, Opponent, OpponentSettings, Player
from ..play.streams import extend, stream
from .afterstates import pair_origins, role_number
from .coalesce import FIRST_SET
from .features import FeatureValues
from .learner import Learner as Learner
from .learner import missing_goals
from .settings import LearnerSettings as LearnerSettings
from .tables import Afterstate
from .trees import feature_space

if TYPE_CHECKING:
    from ..rules.game import Game


_N = TypeVar("_N", int, float)


@dataclass(frozen=True)
class FinishedMatch:
    """One match of a lane, learned from.

    reward       the learner's goal, 0 where the rules gave none
    length       in joint moves
    afterstates  every afterstate whose value or visits the match changed, with what they are now; with the
                 initialisation "siblings" also those that it made known without visiting them
    """

    lane: int
    match: int
    reward: float
    length: int
    afterstates: list[Afterstate]


@dataclass(frozen=True)
class Seconds:
    """Where the time of a series went. `initialising` is the transfer's own cost, the rest is what all learners pay.

    playing       the rules, the opponents and the loop
    choosing      the learners' look-ups and draws
    learning      Equation 2
    initialising  expanding trees, matching features, searching: by space, such as "features of depth 2"
    initialised   the number of afterstates so looked into, by space; learners of one batch share them
    """

    playing: float
    choosing: float
    learning: float
    initialising: dict[str, float]
    initialised: dict[str, int]

    @property
    def total(self) -> float:
        return self.playing + self.choosing + self.learning + sum(self.initialising.values())


@dataclass(frozen=True)
class Series:
    """What came out: match m of lane i paid rewards[i, m] and took lengths[i, m] joint moves.

    rewards      float32[lanes, matches], 0 to 100
    lengths      int16[lanes, matches]
    num_stuck    int64[lanes], matches that ended because a role had no move
    num_capped   int64[lanes], matches that were cut off
    num_missing  int64[lanes], matches that ended without a goal for the learner, or with several
    """

    game: Game
    role: int
    graph: Graph
    learner: Learner
    rewards: NDArray[np.float32]
    lengths: NDArray[np.int16]
    num_stuck: NDArray[np.int64]
    num_capped: NDArray[np.int64]
    num_missing: NDArray[np.int64]
    seconds: Seconds


def play_series(
    game: Game,
    role: int | str,
    learners: Sequence[LearnerSettings],
    values: Sequence[FeatureValues | None] | None,
    opponents: Sequence[OpponentSettings],
    num_matches: int,
    seeds: Sequence[tuple[int, int, int | str]],
    *,
    graph: Graph | None = None,
    progress: Callable[[int], None] | None = None,
    on_match: Callable[[FinishedMatch], None] | None = None,
    first_match: int | Sequence[int] = 0,
    stored: Sequence[Iterable[Afterstate] | None] | None = None,
    max_plies: int = MAX_PLIES,
) -> Series:
    """Plays `num_matches` matches in every lane, and learns from each before the next begins.

    learners     settings per lane, for the one role that learns
    values       feature values per lane, or None; transfer learners need them
    opponents    settings per lane, for all other roles
    seeds        (seed, run, stage) per lane: key the random numbers. Lanes with the same ones meet the same numbers
    graph        positions of an earlier series of the same game, to be used again
    progress     told from time to time how many more matches have ended
    on_match     told of every match, in order, as soon as it was learned from: store it there, and a process
                 that is killed loses no finished match
    first_match, stored   how many matches each lane has behind it, and what it knew then: the lane goes on as
                 if it had never stopped

    Raises GameloreError for lists of different lengths and settings that do not fit.
    """
    graph = graph or Graph(game)
    number = role_number(game, role)
    _check_lengths(learners, values, opponents, seeds, stored)
    learner = Learner(graph, number, learners, values, [(seed, run) for seed, run, _ in seeds])
    for lane, known in enumerate(stored or ()):
        learner.load(lane, known or ())
    first = np.broadcast_to(np.asarray(first_match, np.int64), len(learners))
    log = _Log(number, first, num_matches)

    def on_end(finished: Finished) -> None:
        log.write(finished)
        if on_match is not None:
            for one in finished_matches(learner, finished):
                on_match(one)
        if progress is not None:
            progress(len(finished.lanes))

    seats: list[Player] = [Opponent(list(opponents))] * game.num_roles
    seats[number] = learner
    keys = np.array([stream(*seed) for seed in seeds], np.uint64)
    begin = perf_counter()
    run_lockstep(graph, seats, keys, num_matches, first_match=first, max_plies=max_plies, on_end=on_end)
    seconds = _seconds(learner, perf_counter() - begin)
    stuck, capped, missing = log.counts
    return Series(game, number, graph, learner, log.rewards, log.lengths, stuck, capped, missing, seconds)


def extract(series: Series, lane: int, depth: int = 2) -> FeatureValues:
    """What a lane's learner can teach: for every feature the mean of Q over the visited afterstates that match it,
    weighted by visits (section 3). It may come from any game, either role and any learner."""
    return learned_features(series.learner, lane, depth)


def learned_features(learner: Learner, lane: int, depth: int = 2) -> FeatureValues:
    """See `extract`; for a learner that did not play in a series."""
    graph, role = learner.graph, learner.role
    afterstates, q, visits = learner.table.lane(lane)
    seen = visits > 0
    # in an order that does not depend on the lanes beside it, so that sums come out the same to the last bit
    order = np.argsort(_stable_keys(graph, role, afterstates[seen]), kind="stable")
    afterstates, q, visits = afterstates[seen][order], q[seen][order], visits[seen][order]
    space = feature_space(graph, role, depth)
    ids = space.ids(afterstates)
    sums = np.bincount(ids, q * visits, minlength=FIRST_SET)
    weights = np.bincount(ids, visits, minlength=FIRST_SET)
    found = ((space.feature(number), number) for number in np.unique(ids).tolist())
    values = {text: (sums[number] / weights[number], int(weights[number])) for text, number in found if text}
    return FeatureValues(values, graph.game.goal_values[role], depth)


def _stable_keys(graph: Graph, role: int, afterstates: NDArray[np.int32]) -> NDArray[np.uint64]:
    """One number per afterstate, the same in every batch."""
    keys = graph.keys[np.maximum(afterstates, 0)]
    pairs = np.flatnonzero(afterstates < 0)
    if pairs.size:
        rows, choices = pair_origins(graph, role, afterstates[pairs])
        keys[pairs] = extend(graph.keys[rows], choices)
    return keys


class _Log:
    """The rows of a series as they come in."""

    def __init__(self, role: int, first: NDArray[np.int64], num_matches: int) -> None:
        self._role = role
        self._first = first
        self.rewards = np.zeros((len(first), num_matches), np.float32)
        self.lengths = np.zeros((len(first), num_matches), np.int16)
        self.counts = tuple(np.zeros(len(first), np.int64) for _ in range(3))

    def write(self, finished: Finished) -> None:
        lanes, ends = finished.lanes, finished.ends
        matches = finished.matches - self._first[lanes]
        self.rewards[lanes, matches] = np.maximum(finished.goals[:, self._role], 0)
        self.lengths[lanes, matches] = finished.plies
        for count, happened in zip(
            self.counts, (ends == STUCK, ends == CAP, missing_goals(finished, self._role)), strict=True
        ):
            count[lanes] += happened


def finished_matches(learner: Learner, finished: Finished) -> Iterable[FinishedMatch]:
    """What a learner made of matches that it has just learned from."""
    changed = learner.changed
    rewards = np.maximum(finished.goals[:, learner.role], 0).tolist()
    for i, lane in enumerate(finished.lanes.tolist()):
        numbers = dict.fromkeys(changed.afterstates[changed.offsets[i] : changed.offsets[i + 1]].tolist())
        match, length = int(finished.matches[i]), int(finished.plies[i])
        yield FinishedMatch(lane, match, float(rewards[i]), length, learner.afterstates(lane, numbers))


def _seconds(learner: Learner, total: float) -> Seconds:
    spaces = learner.initial.spaces
    return Seconds(
        total - learner.seconds_choosing - learner.seconds_learning - learner.seconds_initialising,
        learner.seconds_choosing,
        learner.seconds_learning,
        _by_label((use.label, use.seconds) for use in spaces),
        _by_label((use.label, use.num_afterstates) for use in spaces),
    )


def _by_label(pairs: Iterable[tuple[str, _N]]) -> dict[str, _N]:
    total: dict[str, _N] = {}
    for label, number in pairs:
        total[label] = total[label] + number if label in total else number
    return total


def _check_lengths(learners: Sequence[object], *others: Sequence[object] | None) -> None:
    lengths = [len(learners), *(len(other) for other in others if other is not None)]
    if min(lengths) != max(lengths) or not lengths[0]:
        raise GameloreError(
            f"expected learners, values, opponents and seeds for each lane, got {lengths} of them; give lists of "
            "one length, at least 1"
        )
