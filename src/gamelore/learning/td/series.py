"""Series of matches of learners against opponents, with many runs in parallel and a cap on their memory.

"To measure learning performance, our learner plays a series of matches of the same game against a given opponent"
(Banerjee & Stone 2007, section 2.2). A lane is one such series. Any game can be the source or the target of a
transfer, because feature values can be extracted from the values of any learner.

A learner that looks ahead below every candidate move fills the graph of positions quickly. The memory for the graph is
estimated before a series, and limited by a cap while the series runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import GameloreError
from ...matches.lockstep import Lanes, run_lockstep
from ...matches.match import MAX_PLIES
from ...matches.opponents import Opponent, OpponentSettings
from ...players.player import Player
from ...players.position_graph import MIB, PositionGraph, memory_cap
from ...players.random_streams import extend, stream
from ..store.features import FeatureValues
from .afterstates import pair_origins, role_number
from .compiled_series import CompiledSeries, Results
from .discovery import FIRST_SET, feature_space
from .initial_values import LearnerSettings
from .learner import Learner

if TYPE_CHECKING:
    from ...game.game import Game

CAP_VARIABLE = "GAMELORE_LOOKAHEAD_MIB"
CAP_MIB = 1024  # enough for all positions of Connect3 on 5x5 (782 MiB) or of Breakthrough (718 MiB), as for oracles
PROBE_MATCHES = 16
FORESEEN = 100  # matches of one lane for which the estimate holds; further on, `check_growth` guards the series
# maximum number of positions in the graph of the probe. It limits the cost of the estimate. One match of Breakthrough
# with turns=2 has 219,000 positions, and the growth can only be measured over several matches
PROBE_ROWS = 1 << 20


@dataclass(frozen=True)
class Growth:
    """Growth of a graph in the first matches of a lane.

    rows       number of positions in the graph after each match; the last number is a lower bound if the graph of the
               probe was full before that match ended
    row_bytes  memory for one position, in bytes
    """

    rows: tuple[int, ...]
    row_bytes: float

    def expected_rows(self, lanes: int, matches: int) -> int:
        """Return the expected number of positions after `matches` matches in each lane.

        Within a lane, the number of positions grows by a power law (Heaps 1978, Information Retrieval): later matches
        add fewer new positions. After a single match, the estimate assumes that every match adds as many. It also
        assumes that lanes share no positions.
        """
        last = len(self.rows)
        if matches <= last:
            return lanes * self.rows[matches - 1]
        exponent = math.log(self.rows[-1] / self.rows[0]) / math.log(last) if last > 1 else 1.0
        return int(lanes * self.rows[-1] * (matches / last) ** min(exponent, 1.0))


def looks_ahead(settings: LearnerSettings) -> bool:
    """Return whether the learner expands the tree below every candidate move, or several turns below an afterstate."""
    searches = settings.kind == "lookahead" or (settings.kind == "transfer" and settings.control != "terminal")
    return (searches and settings.depth > 0 and settings.initialisation != "lazy") or settings.turns > 0


def check_estimate(
    game: Game,
    role: int,
    lanes: Sequence[tuple[LearnerSettings, FeatureValues | None, OpponentSettings]],
    num_matches: int,
) -> None:
    """Raise GameloreError if the estimated memory of a series with these lanes is above the cap.

    The estimate is for the first matches of one lane of each kind only, and the largest counts. Lanes share positions,
    and in a small game later matches reach hardly any new positions, so an estimate for all matches of all lanes would
    refuse series that fit.
    """
    ahead = [lane for lane in lanes if looks_ahead(lane[0])]
    if not ahead or not num_matches:
        return
    cap = memory_cap(CAP_VARIABLE, CAP_MIB)
    for settings, values, opponent in {_growth_key(game, role, lane[0], lane[2]): lane for lane in ahead}.values():
        growth = _growth(game, role, settings, values, opponent)
        rows = growth.expected_rows(1, min(num_matches, FORESEEN))
        if 2 * rows * growth.row_bytes > cap:
            raise GameloreError(
                f"expected {_what(settings)} to need at most {_words(cap)}, got an estimate of "
                f"{_words(2 * rows * growth.row_bytes)} ({rows:,} positions) for {len(ahead)} x {num_matches} matches "
                f"of {game.name}; {_REMEDY}"
            )


def check_growth(graph: PositionGraph) -> None:
    """Raise GameloreError if the memory of the graph is above the cap."""
    cap = memory_cap(CAP_VARIABLE, CAP_MIB)
    if 2 * graph.num_bytes > cap:
        raise GameloreError(
            f"expected eager or siblings initialisation, or turns, to need at most {_words(cap)}, got "
            f"{graph.num_rows:,} positions of {graph.game.name}, which need {_words(2 * graph.num_bytes)}; {_REMEDY}"
        )


_REMEDY = (
    "choose lazy initialisation, look ahead less far (depth, turns), play fewer matches, or allow more memory with the "
    f"environment variable {CAP_VARIABLE}"
)


def _what(settings: LearnerSettings) -> str:
    return f"{settings.initialisation} initialisation" + (f" with turns={settings.turns}" if settings.turns else "")


_growths: dict[Hashable, Growth] = {}


def _growth(
    game: Game, role: int, settings: LearnerSettings, values: FeatureValues | None, opponent: OpponentSettings
) -> Growth:
    """Measure the growth in a few matches on a separate graph, and return it.

    It is measured only once per process for the same role, kind, depth, initialisation and kind of opponent.
    """
    key = _growth_key(game, role, settings, opponent)
    if key not in _growths:
        _growths[key] = _probed(PositionGraph(game, PROBE_ROWS), role, settings, values, opponent)
    return _growths[key]


def _growth_key(game: Game, role: int, settings: LearnerSettings, opponent: OpponentSettings) -> Hashable:
    lookahead = settings.depth, settings.turns, settings.control
    return game.rules_hash, role, settings.kind, *lookahead, settings.initialisation, opponent.kind


def _probed(
    graph: PositionGraph, role: int, settings: LearnerSettings, values: FeatureValues | None, opponent: OpponentSettings
) -> Growth:
    learner = Learner(graph, role, [settings], [values])
    seats: list[Player] = [Opponent(opponent)] * graph.game.num_roles
    seats[role] = learner
    rows: list[int] = []
    try:
        run_lockstep(graph, seats, [stream(0, "growth")], PROBE_MATCHES, on_end=lambda _: rows.append(graph.num_rows))
    except GameloreError:  # the graph is full
        rows.append(graph.num_rows)
    return Growth(tuple(rows), graph.num_bytes / graph.num_rows)


def _words(num_bytes: float) -> str:
    return f"{num_bytes / MIB:,.0f} MiB"


@dataclass(frozen=True)
class Seconds:
    """Time that the parts of a series took, in seconds.

    `choosing` and `learning` are estimates from every 16th match of a lane, beginning with its second match. On systems
    without a POSIX clock, nearly all of this time is counted as `playing`.

    playing       time of the rules, the opponents and the loop
    choosing      time to read values and to choose moves
    learning      time to apply Equation 2
    initialising  time to expand trees, to match features and to search, by space, such as "features of depth 2"

    A baseline learner has no `initialising`. So this is the additional cost of transfer or lookahead.
    """

    playing: float
    choosing: float
    learning: float
    initialising: dict[str, float]


@dataclass(frozen=True)
class Series:
    """Results of a series. For rewards, lengths and the three numbers see `Results`."""

    game: Game
    role: int
    graph: PositionGraph
    learner: Learner
    rewards: NDArray[np.float32]
    lengths: NDArray[np.int16]
    num_stuck: NDArray[np.int64]
    num_capped: NDArray[np.int64]
    num_missing: NDArray[np.int64]
    seconds: Seconds


Watch: TypeAlias = Callable[[int, NDArray[np.float32]], int]
"""A function that is called while a series runs, with (number of matches that every lane has finished, rewards), where
rewards is float32[lanes, matches] with those of all finished matches. It returns the number of matches up to which all
lanes play before the next call."""


def play_series(
    game: Game,
    role: int | str,
    learners: Sequence[LearnerSettings],
    values: Sequence[FeatureValues | None] | None,
    opponents: Sequence[OpponentSettings],
    num_matches: int,
    seeds: Sequence[tuple[int, int, int | str]],
    *,
    graph: PositionGraph | None = None,
    progress: Callable[[int], None] | None = None,
    max_plies: int = MAX_PLIES,
    replies: bool = False,
    watch: Watch | None = None,
) -> Series:
    """Play `num_matches` matches in every lane. The learner learns from each match before the next match begins.

    learners     settings of the learner of each lane; only one role learns
    values       feature values of each lane; transfer learners need them, other lanes have None
    opponents    settings of the opponents of each lane; they play all other roles
    seeds        (seed, run, stage) of each lane, the key of its random numbers; lanes with equal keys have equal random
                 numbers
    graph        graph of an earlier series of the same game, to reuse its positions
    progress     called from time to time with the number of matches that ended since the last call
    max_plies    maximum number of plies; a match of this length is cut off
    replies      whether the opponents' replies are counted, for learners of other games (see replies.py)
    watch        see `Watch`; the last call is after the last match. It does not change the results

    Raises GameloreError for lists of different lengths, for settings that contradict each other or the game, and for
    lookahead that would take more memory than the cap.
    """
    graph = graph or PositionGraph(game)
    number = role_number(game, role)
    lengths = [len(lanes) for lanes in (learners, values, opponents, seeds) if lanes is not None]
    if min(lengths) != max(lengths) or not lengths[0]:
        raise GameloreError(
            f"expected learners, values, opponents and seeds for each lane, got {lengths} of them; give lists of "
            "the same length, at least 1"
        )
    values = values or [None] * len(learners)
    check_estimate(game, number, list(zip(learners, values, opponents, strict=True)), num_matches)
    is_ahead = any(map(looks_ahead, learners))
    learner = Learner(graph, number, learners, values, [(seed, run) for seed, run, _ in seeds], opponents)
    shape = (len(learners), num_matches)
    counts = np.zeros((3, len(learners)), np.int64)
    results = Results(np.zeros(shape, np.float32), np.zeros(shape, np.int16), *counts)

    def on_ended(ended: int) -> None:
        if is_ahead:
            check_growth(graph)
        if progress is not None:
            progress(ended)

    begin = perf_counter()
    opponent, keys = Opponent(list(opponents)), [stream(*seed) for seed in seeds]
    for first, part in _parts(num_matches, results.rewards, watch):
        lanes = Lanes(graph, keys, part, first, max_plies)
        CompiledSeries(learner, opponent, lanes, results, replies=replies).play(on_ended)
    seconds = _seconds(learner, perf_counter() - begin)
    return Series(game, number, graph, learner, **results._asdict(), seconds=seconds)


def _parts(num_matches: int, rewards: NDArray[np.float32], watch: Watch | None) -> Iterator[tuple[int, int]]:
    """Yield the parts of a series as (number of the first match, number of matches). The watch says where they end."""
    if watch is None:
        yield 0, num_matches
        return
    done = 0
    while done < num_matches:
        until = min(max(watch(done, rewards), done + 1), num_matches)
        yield done, until - done
        done = until
    watch(done, rewards)


def extract(series: Series, lane: int, depth: int = 2) -> FeatureValues:
    """Return the feature values of a lane. See `learned_features`."""
    return learned_features(series.learner, lane, depth)


def learned_features(learner: Learner, lane: int, depth: int = 2) -> FeatureValues:
    """Return the feature values of a lane's learner, which another learner can start from (section 3).

    The learner may be of any kind.

    The opponents' replies are those that `Learner.count` has counted.

    The value of a feature is the weighted mean of Q over the visited afterstates that match the feature. The weights
    are the numbers of visits.
    """
    graph, role = learner.graph, learner.role
    afterstates, q, visits = learner.table.lane(lane)
    seen = visits > 0
    # the order does not depend on other lanes; so the sums are always equal to the last bit
    order = np.argsort(_stable_keys(graph, role, afterstates[seen]), kind="stable")
    afterstates, q, visits = afterstates[seen][order], q[seen][order], visits[seen][order]
    space = feature_space(graph, role, depth)
    ids = space.ids(afterstates)
    sums = np.bincount(ids, q * visits, minlength=FIRST_SET)
    weights = np.bincount(ids, visits, minlength=FIRST_SET)
    features = ((space.feature(number), number) for number in np.unique(ids).tolist())
    values = {text: (sums[number] / weights[number], int(weights[number])) for text, number in features if text}
    return FeatureValues(values, graph.game.goal_values[role], depth, learner.replies[lane])


def _stable_keys(graph: PositionGraph, role: int, afterstates: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return a sort key for each afterstate, uint64[n]. The keys are the same in every batch."""
    keys = graph.keys[np.maximum(afterstates, 0)]
    pairs = np.flatnonzero(afterstates < 0)
    if pairs.size:
        rows, choices = pair_origins(graph, role, afterstates[pairs])
        keys[pairs] = extend(graph.keys[rows], choices)
    return keys


def _seconds(learner: Learner, total: float) -> Seconds:
    """Divide the `total` seconds of a series among its parts."""
    initialising: dict[str, float] = defaultdict(float)
    for space in learner.initial.uses:
        initialising[space.label] += space.seconds
    choosing, learning = learner.seconds_choosing, learner.seconds_learning
    playing = total - choosing - learning - learner.initial.seconds
    return Seconds(playing, choosing, learning, dict(initialising))
