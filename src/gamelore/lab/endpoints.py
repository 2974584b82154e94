"""Trials to the numbers that claims are about. Every `measure` of a file of claims is a function here.

A measure takes the evidence and the claim's parameters and returns samples (one per run), shares (booleans, one per
run), or an interval that was worked out otherwise. Evidence remembers which settings were looked at, so that every
number can be traced to its trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ExperimentError
from ..learn.features import FeatureValues
from . import stats, structure
from .claims import Claim, PrintedTable
from .costs import Cost
from .stats import Array, Interval, Verdict
from .trials import TrialStore

Samples: TypeAlias = "Array | NDArray[np.bool_] | Interval"
Parameters: TypeAlias = dict[str, Any]


@dataclass
class Evidence:
    """The trials of one reading: settings named "{prefix}/{game}/{opponent}/{learner}".

    runs   how many runs count (None: all that are stored, the smaller number where two settings are compared)
    costs  game -> times of transfer and baseline
    """

    store: TrialStore
    prefix: str
    source: str
    table: PrintedTable
    runs: int | None = None
    costs: dict[str, Cost] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def rewards(self, game: str, opponent: str, learner: str) -> NDArray[np.float32]:
        """float32[runs, matches]."""
        return self.store.rewards(self._touch(f"{self.prefix}/{game}/{opponent}/{learner}"), self.runs)

    def learned(self, opponent: str) -> list[FeatureValues]:
        """The feature values of the source's runs against this opponent."""
        return self.store.values(self._touch(f"{self.prefix}/{self.source}/{opponent}/source"), self.runs)

    def feature(self, opponent: str, letter: str) -> Array:
        """One feature's value in the runs that met it; [runs at most]."""
        text = self.table.features[letter]
        return np.array([values[text][0] for values in self.learned(opponent) if text in values])

    def _touch(self, name: str) -> str:
        self.touched.add(name)
        return name


@dataclass(frozen=True)
class Finding:
    """A claim's number and verdict; `adjusted` is p after Holm's correction (None where no p belongs to the test)."""

    claim: Claim
    interval: Interval
    p: float | None
    adjusted: float | None
    verdict: Verdict
    settings: tuple[str, ...]
    wanted: int  # runs that the wanted half-width asks for, cautiously; 0 where nothing is sampled


def evaluate(claims: Iterable[Claim], evidence: Evidence) -> list[Finding]:
    """Every claim measured and judged; the directional ones are one family for Holm's correction."""
    measured = [_measured(claim, evidence) for claim in claims]
    family = [i for i, (claim, _, interval, _) in enumerate(measured) if claim.directional and interval.num]
    p_values = {i: _p(measured[i][0], measured[i][1]) for i in family}
    adjusted = dict(zip(family, stats.holm(list(p_values.values())), strict=True))
    return [
        _finding(*one, p_values.get(i), float(adjusted[i]) if i in adjusted else None) for i, one in enumerate(measured)
    ]


_Measured: TypeAlias = tuple[Claim, Samples, Interval, tuple[str, ...]]


def _measured(claim: Claim, evidence: Evidence) -> _Measured:
    if claim.measure not in MEASURES:
        raise ExperimentError(
            f"expected one of the measures {', '.join(MEASURES)}, got {claim.measure!r} in {claim.id}"
        )
    evidence.touched = set()
    samples = MEASURES[claim.measure](evidence, **claim.of)
    return claim, samples, _interval(samples), tuple(sorted(evidence.touched))


def _interval(samples: Samples) -> Interval:
    if isinstance(samples, Interval):
        return samples
    if samples.dtype == np.bool_:
        return stats.share_interval(int(samples.sum()), samples.size)
    return stats.mean_interval(samples)


def _p(claim: Claim, samples: Samples) -> float:
    threshold = claim.target[0]
    if isinstance(samples, Interval):
        return stats.interval_p_value(samples, threshold)
    if samples.dtype == np.bool_:
        return stats.share_p_value(int(samples.sum()), samples.size, threshold)
    return stats.p_value(samples, threshold)


def _finding(
    claim: Claim, samples: Samples, interval: Interval, settings: tuple[str, ...], p: float | None,
    adjusted: float | None,
) -> Finding:  # fmt: skip
    wanted = 0
    if claim.max_runs and claim.half_width:
        wanted = stats.runs_for(stats.cautious_spread(interval), claim.half_width)
    return Finding(claim, interval, p, adjusted, _judge(claim, interval, adjusted), settings, wanted)


def _judge(claim: Claim, interval: Interval, adjusted: float | None) -> Verdict:
    if np.isnan(interval.mean) or interval.few_that_agree:
        return "undecided"
    if claim.test == "within":
        return stats.judge_within(interval, *claim.target)
    if claim.test == "equals":
        return "reproduced" if interval.inside(claim.target[0], claim.target[0]) else "contradicted"
    sign = 1 if claim.test == "above" else -1
    return stats.judge_side(interval, adjusted or 0.0, sign, claim.target[0], claim.margin)


# ---- rewards ----


def difference(evidence: Evidence, game: str, opponent: str, left: str, right: str, window: Sequence[int]) -> Array:
    """Paired difference of mean reward per match, left - right."""
    a, b = (evidence.rewards(game, opponent, learner) for learner in (left, right))
    return stats.paired(a, b, _window(window, a))


def level(evidence: Evidence, game: str, opponent: str, learner: str, window: Sequence[int]) -> Array:
    """Mean reward per match in the window: where a cumulative average over the window ends."""
    rewards = evidence.rewards(game, opponent, learner)
    return stats.window_means(rewards, _window(window, rewards))


def reaches(
    evidence: Evidence, game: str, opponent: str, learner: str, level: float, trailing: int, before: int
) -> NDArray[np.bool_]:
    """Whether the mean of the last `trailing` matches reaches `level` before match `before`."""
    reached = stats.matches_until(evidence.rewards(game, opponent, learner), level, trailing)
    return np.asarray(reached < before)


def slope(evidence: Evidence, game: str, opponent: str, learner: str, window: Sequence[int]) -> Array:
    """Trend of the reward, points per 1000 matches."""
    rewards = evidence.rewards(game, opponent, learner)
    return stats.slopes(rewards, _window(window, rewards))


def gap(evidence: Evidence, learner: str, left: str, right: str, window: Sequence[int]) -> Array:
    """The same learner in two situations "game/opponent": difference of mean reward, run by run."""
    (game, opponent), (other_game, other_opponent) = left.split("/"), right.split("/")
    a, b = evidence.rewards(game, opponent, learner), evidence.rewards(other_game, other_opponent, learner)
    return stats.paired(a, b, _window(window, a))


def _window(window: Sequence[int], rewards: NDArray[np.float32]) -> stats.Window:
    """Claims name matches of series of 3000; shorter series have the same shares of theirs."""
    return stats.scaled((window[0], window[1]), rewards.shape[1])


# ---- Table 1 ----


def table1_value(evidence: Evidence, feature: str, opponent: str) -> Array:
    """A feature's value after the source runs."""
    return evidence.feature(opponent, feature)


def table1_difference(evidence: Evidence, feature: str, left: str, right: str) -> Array:
    """A feature's value against one opponent minus that against another, run by run where both met it."""
    text = evidence.table.features[feature]
    pairs = zip(evidence.learned(left), evidence.learned(right), strict=False)
    return np.array([a[text][0] - b[text][0] for a, b in pairs if text in a and text in b])


def table1_rmse(evidence: Evidence, opponent: str) -> Interval:
    """Root mean square distance of the mean values from the printed column; jackknife interval over runs."""
    return column_rmse(evidence.learned(opponent), evidence.table.printed(opponent))


def column_rmse(runs: Sequence[FeatureValues], printed: Mapping[str, float]) -> Interval:
    """See `table1_rmse`; a feature that no run met is left out."""
    target = np.array(list(printed.values()))
    return stats.jackknife(_matrix(runs, printed), lambda values: _rmse(values, target))


def rmse(runs: Sequence[FeatureValues], printed: Mapping[str, float]) -> float:
    """The same without an interval."""
    return _rmse(_matrix(runs, printed), np.array(list(printed.values())))


def _matrix(runs: Sequence[FeatureValues], texts: Iterable[str]) -> Array:
    """float64[runs, features], NaN where a run did not meet a feature."""
    names = list(texts)
    return np.array([[run[text][0] if text in run else np.nan for text in names] for run in runs])


def _rmse(values: Array, target: Array) -> float:
    met = ~np.isnan(values)
    count = met.sum(axis=0)
    means = np.where(met, values, 0.0).sum(axis=0)[count > 0] / count[count > 0]
    return float(np.sqrt(np.mean((means - target[count > 0]) ** 2)))


# ---- what it costs ----


def cost(evidence: Evidence, game: str, opponent: str, left: str, right: str) -> Samples:
    """Ratio of wall times, measured apart from the trials (costs.py)."""
    if game not in evidence.costs:
        raise ExperimentError(f"expected the times of {left} and {right} in {game} against {opponent}, got none")
    return np.array(evidence.costs[game].ratios)


# ---- the games themselves: no trials needed ----


def _counted(function: Callable[..., float]) -> Callable[..., Interval]:
    return lambda evidence, **parameters: stats.exact(float(function(**parameters)))


MEASURES: dict[str, Callable[..., Samples]] = {
    "difference": difference,
    "level": level,
    "reaches": reaches,
    "slope": slope,
    "gap": gap,
    "table1_value": table1_value,
    "table1_difference": table1_difference,
    "table1_rmse": table1_rmse,
    "cost": cost,
    "feature_count": _counted(structure.feature_count),
    "features_with": _counted(structure.features_with),
    "features_shared": _counted(structure.features_shared),
    "lookahead_values_else": _counted(structure.lookahead_values_else),
    "other_rewards": _counted(structure.other_rewards),
    "moves_share": _counted(structure.moves_share),
    "afterstates_per_pair": _counted(structure.afterstates_per_pair),
    "repeated_afterstates": _counted(structure.repeated_afterstates),
}
