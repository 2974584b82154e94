"""Statistics of experiments: confidence intervals, p-values, Holm's correction, learning curves, and verdicts.

Rewards are arrays [runs, matches] in points from 0 to 100. Matches are numbered from 1. A window (first, last) is a
range of matches that includes the first and the last match.

Intervals are 95 % t-intervals over runs, unless a function says otherwise. The runs are the independent samples: every
run has its own random numbers, its own source and its own order of the opponent's moves. Learners that are compared
use the same random streams in the same run, so differences are computed run by run.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Window = tuple[int, int]
Match = TypeVar("Match")
Verdict = Literal["reproduced", "contradicted", "equivalent", "undecided"]

LEVEL = 0.95
ALPHA = 0.05
# smallest number of runs for an interval in a report: with 3 runs, the t-quantile is already 4.3 instead of 2.0
FEWEST_SHOWN = 5
# smallest number of equal samples that is enough for a verdict: with fewer, p of the sign test is above ALPHA
FEWEST_AGREEING = 6


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    num  number of samples; 0 for an exact number, which was not sampled
    """

    mean: float
    low: float
    high: float
    num: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def too_few(self) -> bool:
        """Whether there are too few samples to show the interval or to decide a claim. The mean may still be shown."""
        return 0 < self.num < FEWEST_SHOWN

    @property
    def few_that_agree(self) -> bool:
        """Whether all samples are equal, but there are too few of them to conclude anything from this."""
        return 0 < self.num < FEWEST_AGREEING and self.half_width == 0

    def inside(self, low: float, high: float) -> bool:
        return low <= self.low and self.high <= high

    def outside(self, low: float, high: float) -> bool:
        return self.high < low or self.low > high


@dataclass(frozen=True)
class Curve:
    """A mean curve with its confidence band.

    matches          int64[points], the numbers of the matches
    mean, low, high  float64[points], the mean and the limits of the band at these matches
    """

    matches: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array


UNKNOWN = Interval(math.nan, -math.inf, math.inf, 0)
"""The interval of a quantity that has no sample."""


def with_intervals(runs: int, words: str = "95 % intervals") -> str:
    """Return the words of a caption: `words` with enough runs for intervals, else "too few for intervals"."""
    return words if runs >= FEWEST_SHOWN else "too few for intervals"


def exact(value: float) -> Interval:
    """Return the interval of a number that was counted, not sampled."""
    return Interval(value, value, value, 0)


def mean_interval(samples: ArrayLike, level: float = LEVEL) -> Interval:
    """Return the t-interval of the mean. It is unbounded for one sample, and UNKNOWN without samples."""
    values = np.asarray(samples, np.float64)
    if not values.size:
        return UNKNOWN
    mean, half = float(values.mean()), float(_half_width(values[:, None], level)[0])
    return Interval(mean, mean - half, mean + half, values.size)


def clustered_interval(samples: ArrayLike, clusters: Sequence[Hashable], level: float = LEVEL) -> Interval:
    """Return the interval of the mean of samples of which those of a cluster are alike, such as games of a family.

    The variance is that of the jackknife that leaves out one cluster at a time (CR3 of Bell & McCaffrey 2002). Clusters
    of different sizes count as fewer than they are: the t-distribution has N^2 / sum(n^2) - 1 degrees of freedom, for N
    samples in clusters of n. Unbounded for one cluster.
    """
    values = np.asarray(samples, np.float64)
    if not values.size:
        return UNKNOWN
    mean, numbers = float(values.mean()), {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    of, num = [numbers[cluster] for cluster in clusters], len(numbers)
    if num < 2:
        return Interval(mean, -math.inf, math.inf, values.size)
    sizes, residuals = np.bincount(of), np.bincount(of, values - mean)
    error = math.sqrt((num - 1) / num * float(np.sum((residuals / (values.size - sizes)) ** 2)))
    half = t_quantile(values.size**2 / float(np.sum(sizes**2)) - 1, level) * error
    return Interval(mean, mean - half, mean + half, values.size)


def share_interval(hits: int, num: int) -> Interval:
    """Return the exact (Clopper-Pearson) interval of the share hits / num, within 0 to 1."""
    from scipy import stats

    bounds = stats.binomtest(hits, num).proportion_ci(LEVEL, "exact")
    return Interval(hits / num, float(bounds.low), float(bounds.high), num)


def complete_rounds(
    matches: Iterable[Match], round_of: Callable[[Match], Hashable], size: int = 2
) -> list[list[Match]]:
    """Group matches by round; leave out the rounds that lack some of their `size` matches.

    The matches of a round differ only in the seats of the players: two of them are a pair with sides swapped. A round
    is one sample, because the luck of its opening is the same in all of its matches.
    """
    rounds: dict[Hashable, list[Match]] = {}
    for match in matches:
        rounds.setdefault(round_of(match), []).append(match)
    return [own for own in rounds.values() if len(own) == size]


def score_interval(scores: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Interval:
    """Return the interval of the mean of scores from 0 to 1, also where all are equal, so that they do not scatter.

    If all are 0 or all are 1, it is the exact interval of a share of the clusters (of the scores, without clusters).
    Fewer than FEWEST_AGREEING other scores that are equal leave it unbounded. Otherwise see `clustered_interval`.
    """
    num = len(scores if clusters is None else set(clusters))
    if len(set(scores)) != 1:
        return mean_interval(scores) if clusters is None else clustered_interval(scores, clusters)
    if scores[0] in (0, 1):
        return replace(share_interval(int(num * scores[0]), num), num=len(scores))
    width = math.inf if num < FEWEST_AGREEING else 0.0
    return Interval(scores[0], scores[0] - width, scores[0] + width, len(scores))


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Return the t-quantile of a two-sided interval."""
    from scipy.special import stdtrit  # what scipy.stats calls, which is 50 times slower

    return float(stdtrit(freedom, (1 + level) / 2))


def _two_sided_p(t: float, freedom: float) -> float:
    from scipy import stats

    return float(2 * stats.t.sf(abs(t), freedom))


def _half_width(values: Array, level: float = LEVEL) -> Array:
    """Return the half-widths [columns] of t-intervals: one for the mean of each column of values [runs, columns]."""
    runs = len(values)
    if runs < 2:
        return np.full(values.shape[1], np.inf)
    return np.asarray(t_quantile(runs - 1, level) * _deviation(values) / math.sqrt(runs))


def _deviation(values: Array) -> Array:
    """Return the standard deviation over runs. It is exactly 0 for equal numbers, where `std` rounds."""
    return np.where(np.ptp(values, axis=0) == 0, 0.0, values.std(axis=0, ddof=1))


def p_value(samples: ArrayLike, null: float = 0.0) -> float:
    """Return the two-sided p of the one-sample t-test.

    p is 1 for a single sample. If all samples are equal, p is that of the sign test (`_sign_test`).
    """
    values = np.asarray(samples, np.float64) - null
    if values.size < 2:
        return 1.0
    error = float(_deviation(values)) / math.sqrt(values.size)
    if error == 0:
        return _sign_test(float(values[0]), values.size)
    return _two_sided_p(float(values.mean()) / error, values.size - 1)


def _sign_test(distance: float, num: int) -> float:
    """Return the two-sided p of the sign test for equal samples; `distance` is their difference from the null.

    The t-test would give p = 0 even for two equal samples, since their variance is 0.
    """
    return 1.0 if distance == 0 else float(0.5 ** (num - 1))


def share_p_value(hits: int, num: int, null: float = 0.5) -> float:
    """Return the two-sided p of the exact binomial test."""
    from scipy import stats

    return float(stats.binomtest(hits, num, null).pvalue)


def interval_p_value(interval: Interval, null: float) -> float:
    """Return the two-sided p of the t-test on the samples of a t-interval."""
    distance = interval.mean - null
    if interval.num < 2:
        return 1.0
    if interval.half_width == 0:
        return _sign_test(distance, interval.num)
    return _two_sided_p(distance * math.sqrt(interval.num) / spread(interval), interval.num - 1)


def welch(left: ArrayLike, right: ArrayLike) -> tuple[Interval, float]:
    """Return (interval of mean(left) - mean(right), two-sided p) for independent samples with unequal variances.

    Welch (1947), Biometrika 34:28. `num` of the interval is the size of the smaller sample. If a sample has only one
    number, the interval is unbounded and p is 1. If both samples have variance 0 and their means differ, p is the
    smallest p that a permutation test can give.
    """
    a, b = (np.asarray(samples, np.float64) for samples in (left, right))
    difference, num = float(a.mean() - b.mean()), min(a.size, b.size)
    if num < 2:
        return Interval(difference, -math.inf, math.inf, num), 1.0
    parts = [float(samples.var(ddof=1)) / samples.size if np.ptp(samples) else 0.0 for samples in (a, b)]
    error = math.sqrt(sum(parts))
    if error == 0:
        p = min(1.0, 2.0 / math.comb(a.size + b.size, a.size)) if difference else 1.0
        return Interval(difference, difference, difference, num), p
    freedom = sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, (a.size, b.size), strict=True))
    half = t_quantile(freedom) * error
    return Interval(difference, difference - half, difference + half, num), _two_sided_p(difference / error, freedom)


def jackknife(values: Array, estimate: Callable[[Array], float]) -> Interval:
    """Return the jackknife interval (Tukey) of an estimate from values [runs, ..]. Each step leaves out one run."""
    runs, whole = len(values), estimate(values)
    if runs < 2:
        return Interval(whole, -math.inf, math.inf, runs)
    left_out = np.array([estimate(np.delete(values, i, axis=0)) for i in range(runs)])
    error = math.sqrt((runs - 1) / runs * float(np.sum((left_out - left_out.mean()) ** 2)))
    half = t_quantile(runs - 1) * error
    return Interval(whole, whole - half, whole + half, runs)


def holm(p_values: ArrayLike) -> Array:
    """Return the adjusted p-values of a family (Holm 1979), which control the family-wise error rate."""
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return adjusted


def cumulative(rewards: ArrayLike, first: int = 1) -> Array:
    """Return cumulative averages [runs, matches - first + 1]: entry m is the mean of matches first to first + m.

    `first=301` is the literal reading of "the cumulative average reward from last 2700 of 3000 matches". `first=1`
    averages over all matches (readings.md, B&S 7).
    """
    kept = np.asarray(rewards, np.float64)[:, first - 1 :]
    return np.asarray(np.cumsum(kept, axis=1) / np.arange(1, kept.shape[1] + 1))


def mean_curve(rewards: ArrayLike, first: int = 1, shown_from: int | None = None) -> Curve:
    """Return the cumulative average from match `first` on, averaged over runs, with its confidence band.

    The first point of the curve is match `shown_from`, or match `first` if `shown_from` is None.
    """
    start = shown_from or first
    averages = cumulative(rewards, first)[:, start - first :]
    mean, half = averages.mean(axis=0), _half_width(averages)
    return Curve(np.arange(averages.shape[1], dtype=np.int64) + start, mean, mean - half, mean + half)


def scaled(window: Window, matches: int) -> Window:
    """Convert a window of a series of 3000 matches to a series of `matches` matches, in proportion."""
    first = (window[0] - 1) * matches // 3000 + 1
    return first, max(first, window[1] * matches // 3000)


def window_means(rewards: ArrayLike, window: Window) -> Array:
    """Return the mean reward of each run in the window, [runs]."""
    return np.asarray(np.asarray(rewards, np.float64)[:, window[0] - 1 : window[1]].mean(axis=1))


def paired(left: ArrayLike, right: ArrayLike, window: Window) -> Array:
    """Return the mean of left - right in the window for each run, [runs].

    Row i of both arrays is run i. If one array has more runs, its additional runs are left out.
    """
    a, b = window_means(left, window), window_means(right, window)
    runs = min(a.size, b.size)
    return a[:runs] - b[:runs]


def matches_until(rewards: ArrayLike, level: float = 95.0, trailing: int = 20) -> Array:
    """Return for each run the first match at which the mean of the last `trailing` matches is at least `level`.

    The number is inf for a run that never reaches the level.
    """
    values = np.asarray(rewards, np.float64)
    if values.shape[1] < trailing:
        return np.full(len(values), np.inf)
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    reached = sums[:, trailing:] - sums[:, :-trailing] >= level * trailing - 1e-9
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + float(trailing), np.inf)


def slopes(rewards: ArrayLike, window: Window) -> Array:
    """Return the least-squares slope of the rewards in the window for each run, in points per 1000 matches, [runs]."""
    values = np.asarray(rewards, np.float64)[:, window[0] - 1 : window[1]]
    x = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    return np.asarray(1000.0 * (values @ x) / float(x @ x))


def spread(interval: Interval) -> float:
    """Return the standard deviation over runs, computed from a t-interval; 0 with fewer than two samples."""
    if interval.num < 2:
        return 0.0
    return interval.half_width * math.sqrt(interval.num) / t_quantile(interval.num - 1)


def cautious_spread(interval: Interval) -> float:
    """Return an upper limit, with confidence 0.8, of the standard deviation over runs.

    The standard deviation of a few runs is often too small. If the number of further runs is computed from it, the
    interval is wider than wanted in about half of the cases (Browne 1995, Statistics in Medicine 14:1933).
    """
    from scipy import stats

    if interval.num < 2:
        return 0.0
    freedom = interval.num - 1
    return spread(interval) * math.sqrt(freedom / float(stats.chi2.ppf(0.2, freedom)))


def runs_for(deviation: float, half_width: float) -> int:
    """Return the number of runs, at least 2, that gives this half-width at this standard deviation over runs."""

    def enough(runs: int) -> bool:
        return t_quantile(runs - 1) * deviation / math.sqrt(runs) <= half_width

    candidates = range(2, 1 << 60)
    return candidates[bisect_left(candidates, True, key=enough)]


def judge_side(interval: Interval, p: float, sign: int, threshold: float = 0.0, margin: float = 0.0) -> Verdict:
    """Judge the claim that a number lies above (sign 1) or below (sign -1) a threshold.

    p is two-sided and already corrected for multiple tests. The verdicts are

    equivalent     the whole interval lies within `margin` of the threshold, so that the difference does not matter
    reproduced     the mean lies on the claimed side, p < 0.05
    contradicted   the mean lies on the other side, p < 0.05
    undecided      in all other cases, and with too few runs
    """
    if interval.too_few:
        return "undecided"
    if margin > 0 and interval.inside(threshold - margin, threshold + margin):
        return "equivalent"
    if interval.num == 0 or p < ALPHA:
        return "reproduced" if sign * (interval.mean - threshold) > 0 else "contradicted"
    return "undecided"


def judge_within(interval: Interval, low: float, high: float) -> Verdict:
    """Judge the claim that a number lies in [low, high].

    The verdict is "undecided" if the interval lies partly inside and partly outside, or if there are too few runs.
    """
    if interval.too_few:
        return "undecided"
    if interval.inside(low, high):
        return "reproduced"
    return "contradicted" if interval.outside(low, high) else "undecided"
