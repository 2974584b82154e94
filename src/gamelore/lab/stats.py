"""From rewards to intervals and verdicts. Rewards are arrays [runs, matches] in points, 0 to 100; matches count from 1.

A window (first, last) names matches, both included. Intervals are 95 % t-intervals over runs unless said otherwise:
a run (its random numbers, its source, its opponent's order of moves) is the unit that is repeated. Learners that are
compared share the keys of their random numbers, so differences are taken run by run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Window = tuple[int, int]
Verdict = Literal["reproduced", "contradicted", "equivalent", "undecided"]

LEVEL = 0.95
ALPHA = 0.05
FEWEST_AGREEING = 6  # samples, all alike, that a verdict may rest on: the sign test gives fewer p > ALPHA


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval; `num` is how many runs it rests on (0: exact, nothing was sampled)."""

    mean: float
    low: float
    high: float
    num: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def few_that_agree(self) -> bool:
        """Whether it rests on so few samples, all alike, that their lack of scatter says nothing."""
        return 0 < self.num < FEWEST_AGREEING and self.half_width == 0

    def inside(self, low: float, high: float) -> bool:
        return low <= self.low and self.high <= high

    def outside(self, low: float, high: float) -> bool:
        return self.high < low or self.low > high


@dataclass(frozen=True)
class Curve:
    """A mean curve with its band; all arrays float64[points], `matches` int64[points]."""

    matches: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array


UNKNOWN = Interval(math.nan, -math.inf, math.inf, 0)
"""Of something that no run has met."""


def exact(value: float) -> Interval:
    """A number that was counted, not sampled."""
    return Interval(value, value, value, 0)


def mean_interval(samples: ArrayLike, level: float = LEVEL) -> Interval:
    """The t-interval of the mean; unbounded with a single sample, UNKNOWN with none."""
    values = np.asarray(samples, np.float64)
    if not values.size:
        return UNKNOWN
    mean = float(values.mean())
    half = float(_half_width(values[:, None], level)[0])
    return Interval(mean, mean - half, mean + half, values.size)


def share_interval(hits: int, num: int, level: float = LEVEL) -> Interval:
    """The exact (Clopper-Pearson) interval of a share, 0 to 1."""
    from scipy import stats

    found = stats.binomtest(hits, num).proportion_ci(level, "exact")
    return Interval(hits / num, float(found.low), float(found.high), num)


def _half_width(values: Array, level: float) -> Array:
    """Half-widths [columns] of the t-intervals of the column means of [runs, columns]."""
    from scipy import stats

    runs = len(values)
    if runs < 2:
        return np.full(values.shape[1], np.inf)
    quantile = float(stats.t.ppf((1 + level) / 2, runs - 1))
    return np.asarray(quantile * values.std(axis=0, ddof=1) / math.sqrt(runs))


def p_value(samples: ArrayLike, null: float = 0.0) -> float:
    """Two-sided p of the one-sample t-test; 1 with a single sample. Samples that all agree: see `_agreeing`."""
    from scipy import stats

    values = np.asarray(samples, np.float64) - null
    if values.size < 2:
        return 1.0
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    if error == 0:
        return _agreeing(float(values[0]), values.size)
    return float(2 * stats.t.sf(abs(values.mean()) / error, values.size - 1))


def _agreeing(distance: float, num: int) -> float:
    """Two-sided p of the sign test for samples that all lie at one distance from the null. The t-test would say 0,
    since they do not scatter, even of two."""
    return 1.0 if distance == 0 else float(0.5 ** (num - 1))


def share_p_value(hits: int, num: int, null: float = 0.5) -> float:
    """Two-sided p of the exact binomial test."""
    from scipy import stats

    return float(stats.binomtest(hits, num, null).pvalue)


def interval_p_value(interval: Interval, null: float) -> float:
    """Two-sided p of the t-test that belongs to a t-interval."""
    from scipy import stats

    if interval.num < 2:
        return 1.0
    if interval.half_width == 0:
        return _agreeing(interval.mean - null, interval.num)
    quantile = float(stats.t.ppf((1 + LEVEL) / 2, interval.num - 1))
    return float(2 * stats.t.sf(abs(interval.mean - null) * quantile / interval.half_width, interval.num - 1))


def welch(left: ArrayLike, right: ArrayLike, level: float = LEVEL) -> tuple[Interval, float]:
    """(interval of mean(left) - mean(right), two-sided p), of independent samples with variances of their own.

    Welch (1947), Biometrika 34:28. `num` is the size of the smaller sample. Unbounded and 1 where one of them is a
    single number; where neither scatters, p is the smallest that a permutation test can have.
    """
    from scipy import stats

    a, b = (np.asarray(samples, np.float64) for samples in (left, right))
    difference, num = float(a.mean() - b.mean()), min(a.size, b.size)
    if num < 2:
        return Interval(difference, -math.inf, math.inf, num), 1.0
    parts = [float(samples.var(ddof=1)) / samples.size for samples in (a, b)]
    error = math.sqrt(sum(parts))
    if error == 0:
        p = min(1.0, 2.0 / math.comb(a.size + b.size, a.size)) if difference else 1.0
        return Interval(difference, difference, difference, num), p
    freedom = sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, (a.size, b.size), strict=True))
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    p = float(2 * stats.t.sf(abs(difference) / error, freedom))
    return Interval(difference, difference - half, difference + half, num), p


def jackknife(values: Array, estimate: Callable[[Array], float], level: float = LEVEL) -> Interval:
    """Interval of an estimate from values [runs, ..], by leaving out one run at a time (Quenouille, Tukey)."""
    from scipy import stats

    runs = len(values)
    whole = estimate(values)
    if runs < 2:
        return Interval(whole, -math.inf, math.inf, runs)
    left_out = np.array([estimate(np.delete(values, i, axis=0)) for i in range(runs)])
    error = math.sqrt((runs - 1) / runs * float(np.sum((left_out - left_out.mean()) ** 2)))
    half = float(stats.t.ppf((1 + level) / 2, runs - 1)) * error
    return Interval(whole, whole - half, whole + half, runs)


def holm(p_values: ArrayLike) -> Array:
    """Adjusted p of a family (Holm 1979): the family-wise error stays below the level each is compared with."""
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return adjusted


def cumulative(rewards: ArrayLike, first: int = 1) -> Array:
    """Cumulative averages [runs, matches - first + 1]: entry m is the mean of matches first to first + m.

    `first=301` is "the cumulative average reward from last 2700 of 3000 matches" taken literally; `first=1` averages
    over everything (readings.md, B&S 7).
    """
    kept = np.asarray(rewards, np.float64)[:, first - 1 :]
    return np.asarray(np.cumsum(kept, axis=1) / np.arange(1, kept.shape[1] + 1))


def mean_curve(rewards: ArrayLike, first: int = 1, shown_from: int | None = None, level: float = LEVEL) -> Curve:
    """The cumulative average, averaged over runs, with its band; points from match `shown_from` (default `first`)."""
    averages = cumulative(rewards, first)
    skip = (shown_from or first) - first
    averages = averages[:, skip:]
    mean, half = averages.mean(axis=0), _half_width(averages, level)
    matches = np.arange(averages.shape[1], dtype=np.int64) + first + skip
    return Curve(matches, mean, mean - half, mean + half)


def scaled(window: Window, matches: int, planned: int = 3000) -> Window:
    """The window of a series of `planned` matches in one of `matches`: its borders at the same shares of it."""
    if matches == planned:
        return window
    first = (window[0] - 1) * matches // planned + 1
    return first, max(first, window[1] * matches // planned)


def window_means(rewards: ArrayLike, window: Window) -> Array:
    """Mean reward per match of each run in the window, [runs]."""
    return np.asarray(np.asarray(rewards, np.float64)[:, window[0] - 1 : window[1]].mean(axis=1))


def paired(left: ArrayLike, right: ArrayLike, window: Window) -> Array:
    """left - right per run, [runs]: the area between the two reward curves divided by the window's length.

    Runs beyond the shorter of the two are left out; row i of both is run i.
    """
    a, b = window_means(left, window), window_means(right, window)
    runs = min(a.size, b.size)
    return a[:runs] - b[:runs]


def matches_until(rewards: ArrayLike, level: float = 95.0, trailing: int = 20) -> Array:
    """The first match, per run, at which the mean of the last `trailing` matches is at least `level`; inf: never."""
    values = np.asarray(rewards, np.float64)
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    reached = sums[:, trailing:] - sums[:, :-trailing] >= level * trailing - 1e-9
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + float(trailing), np.inf)


def slopes(rewards: ArrayLike, window: Window) -> Array:
    """Least-squares slope of reward per match in the window, in points per 1000 matches, [runs]."""
    values = np.asarray(rewards, np.float64)[:, window[0] - 1 : window[1]]
    x = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    return np.asarray(1000.0 * (values @ x) / float(x @ x))


def spread(interval: Interval) -> float:
    """The standard deviation over runs that a t-interval stands for; 0 where nothing was sampled."""
    from scipy import stats

    if interval.num < 2:
        return 0.0
    quantile = float(stats.t.ppf((1 + LEVEL) / 2, interval.num - 1))
    return interval.half_width * math.sqrt(interval.num) / quantile


def cautious_spread(interval: Interval, level: float = 0.8) -> float:
    """An upper limit of the standard deviation over runs, at this confidence: few runs often scatter too little.

    Plans made with the estimate itself miss their half-width about every other time (Browne 1995, Statistics in
    Medicine 14:1933).
    """
    from scipy import stats

    if interval.num < 2:
        return 0.0
    freedom = interval.num - 1
    return spread(interval) * math.sqrt(freedom / float(stats.chi2.ppf(1 - level, freedom)))


def runs_for(deviation: float, half_width: float, level: float = LEVEL) -> int:
    """How many runs give the wanted half-width, with this standard deviation over runs; at least 2."""
    from scipy import stats

    def half(runs: int) -> float:
        return float(stats.t.ppf((1 + level) / 2, runs - 1)) * deviation / math.sqrt(runs)

    high = 2
    while half(high) > half_width:
        high *= 2
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if half(middle) <= half_width else (middle + 1, high)
    return high


def judge_side(interval: Interval, p: float, sign: int, threshold: float = 0.0, margin: float = 0.0) -> Verdict:
    """A claim that a number lies above (sign 1) or below (-1) a threshold; p is two-sided and already corrected.

    equivalent     the whole interval lies within `margin` of the threshold: no difference that would matter
    reproduced     on the claimed side, p < 0.05
    contradicted   on the other side, p < 0.05
    undecided      else
    """
    if margin > 0 and interval.inside(threshold - margin, threshold + margin):
        return "equivalent"
    if interval.num == 0 or p < ALPHA:
        return "reproduced" if sign * (interval.mean - threshold) > 0 else "contradicted"
    return "undecided"


def judge_within(interval: Interval, low: float, high: float) -> Verdict:
    """A claim that a number lies in [low, high]: the interval lies inside, outside, or across an end."""
    if interval.inside(low, high):
        return "reproduced"
    return "contradicted" if interval.outside(low, high) else "undecided"
