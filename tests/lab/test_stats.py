"""Statistics against numbers worked out by hand."""

import math

import numpy as np
import pytest

from gamelore.lab import stats
from gamelore.lab.stats import Interval


def test_the_interval_of_clustered_samples_by_hand() -> None:
    """The mean is 60. The residuals add up to 20 and -20, so the variance of the mean is 2 / 1 * 800 / 16 = 10 * 10."""
    scores = [80.0, 60.0, 50.0, 50.0]
    found = stats.clustered_interval(scores, ["a", "a", "b", "b"])
    half = 10 * 12.706205  # t(0.975, 1)
    assert (found.mean, found.num) == (60.0, 4)
    assert [found.low, found.high] == pytest.approx([60 - half, 60 + half], abs=1e-5)
    alone, own = stats.mean_interval(scores), stats.clustered_interval(scores, range(4))
    assert [own.low, own.high] == pytest.approx([alone.low, alone.high]), "each one a cluster: the t-interval"
    # residuals of 20 and -20, left out of 3 - 2 and 3 - 1 samples; 9 / 5 - 1 = 0.8 degrees of freedom
    larger, half = stats.clustered_interval([80.0, 60.0, 40.0], ["a", "a", "b"]), 23.327936 * math.sqrt(250)
    assert [larger.low, larger.high] == pytest.approx([60 - half, 60 + half], abs=1e-3)
    assert stats.clustered_interval([80.0, 60.0], ["a", "a"]) == Interval(70.0, -math.inf, math.inf, 2)
    assert math.isnan(stats.clustered_interval([], []).mean)


def test_scores_that_are_all_equal_are_not_certain() -> None:
    assert stats.score_interval([0.5, 1.0]) == stats.mean_interval([0.5, 1.0])
    scores = [0.8, 0.6, 0.5, 0.5]
    assert stats.score_interval(scores, "aabb") == stats.clustered_interval(scores, "aabb")
    won = stats.score_interval([1.0] * 10)
    assert (won.mean, won.low, won.num) == (1.0, pytest.approx(0.025 ** (1 / 10)), 10)
    lost = stats.score_interval([0.0] * 4, "aabb")
    assert (lost.high, lost.num) == (pytest.approx(1 - 0.025 ** (1 / 2)), 4), "two clusters"
    assert stats.score_interval([0.5] * 5) == Interval(0.5, -math.inf, math.inf, 5)
    assert stats.score_interval([0.5] * 6) == Interval(0.5, 0.5, 0.5, 6)
    assert stats.score_interval([0.5] * 6, "aabbcc") == Interval(0.5, -math.inf, math.inf, 6)
    assert math.isnan(stats.score_interval([]).mean)


def test_t_interval() -> None:
    # mean 2, standard deviation 1, t(0.975, 2) = 4.302653
    found = stats.mean_interval([1.0, 2.0, 3.0])
    half = 4.302653 / math.sqrt(3)
    assert (found.mean, found.num) == (2.0, 3)
    assert found.low == pytest.approx(2 - half, abs=1e-5)
    assert found.high == pytest.approx(2 + half, abs=1e-5)


def test_intervals_of_one_sample_and_of_none() -> None:
    assert stats.mean_interval([5.0]) == Interval(5.0, -math.inf, math.inf, 1)
    assert math.isnan(stats.mean_interval([]).mean)


def test_exact_interval_of_a_share() -> None:
    found = stats.share_interval(10, 10)
    assert found.low == pytest.approx(0.025 ** (1 / 10))  # Clopper-Pearson where all are hits
    assert (found.mean, found.high) == (1.0, 1.0)


def test_p_values() -> None:
    # t = 2 / (1 / sqrt 3) = 3.4641 with 2 degrees of freedom
    assert stats.p_value([1.0, 2.0, 3.0]) == pytest.approx(0.074180, abs=1e-6)
    assert stats.p_value([1.0, 2.0, 3.0], null=2.0) == pytest.approx(1.0)
    assert stats.p_value([4.0]) == 1.0
    assert stats.p_value([3.0, 3.0], null=3.0) == 1.0
    assert stats.share_p_value(10, 10) == pytest.approx(2 / 2**10)


def test_samples_that_all_agree_are_judged_by_their_signs() -> None:
    for num, wanted in ((2, 1 / 2), (5, 1 / 16), (6, 1 / 32)):  # 2 / 2 ** num: all on one side of the null
        samples = [3.0] * num
        assert stats.p_value(samples) == wanted
        assert stats.interval_p_value(stats.mean_interval(samples), 0.0) == wanted
    assert [stats.mean_interval([3.0] * num).few_that_agree for num in (1, 5, 6)] == [False, True, False]
    assert not stats.exact(3.0).few_that_agree


@pytest.mark.parametrize("value", [0.1, 50.3, 100 / 3])
def test_equal_samples_agree_though_their_mean_is_rounded(value: float) -> None:
    for num in range(2, 40):
        samples = [value] * num
        assert stats.mean_interval(samples).half_width == 0
        assert stats.p_value(samples) == stats.interval_p_value(stats.mean_interval(samples), 0.0) == 0.5 ** (num - 1)
        assert stats.welch(samples, [0.0] * num)[1] == pytest.approx(2 / math.comb(2 * num, num))


def test_p_of_an_interval_is_that_of_its_samples() -> None:
    samples = [1.0, 2.0, 4.0, 7.0]
    assert stats.interval_p_value(stats.mean_interval(samples), 1.5) == pytest.approx(stats.p_value(samples, 1.5))
    assert stats.interval_p_value(Interval(1.0, 1.0, 1.0, 5), 1.0) == 1.0
    assert stats.interval_p_value(Interval(1.0, -math.inf, math.inf, 1), 0.0) == 1.0


def test_holm() -> None:
    # sorted 0.01, 0.03, 0.04 times 3, 2, 1, never falling
    assert stats.holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.6, 0.9]).tolist() == [1.0, 1.0]


def test_jackknife_of_a_mean_is_its_t_interval() -> None:
    values = np.array([[1.0], [2.0], [4.0], [7.0]])
    found = stats.jackknife(values, lambda part: float(part.mean()))
    wanted = stats.mean_interval(values[:, 0])
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_cumulative_average_from_the_first_match_and_later() -> None:
    rewards = [[100, 0, 50, 50], [0, 0, 0, 100]]
    assert stats.cumulative(rewards).tolist() == [[100, 50, 50, 50], [0, 0, 0, 25]]
    assert stats.cumulative(rewards, first=3).tolist() == [[50, 50], [0, 50]]


def test_mean_curve() -> None:
    rewards = [[100, 0, 50, 50], [0, 0, 0, 100]]
    curve = stats.mean_curve(rewards, first=1, shown_from=3)
    assert curve.matches.tolist() == [3, 4]
    assert curve.mean.tolist() == [25.0, 37.5]
    half = 12.706205 * (50 / math.sqrt(2)) / math.sqrt(2)  # t(0.975, 1), deviation of 50 and 0
    assert curve.high[0] - curve.mean[0] == pytest.approx(half, rel=1e-6)


def test_paired_differences_use_the_runs_that_both_have() -> None:
    left, right = [[0, 100, 100], [0, 0, 0], [1, 1, 1]], [[0, 50, 0], [50, 50, 0]]
    assert stats.paired(left, right, (2, 3)).tolist() == [75.0, -25.0]


def test_matches_until_a_trailing_mean() -> None:
    rewards = [[0, 100, 100, 100], [0, 0, 0, 0], [100, 100, 0, 0]]
    assert stats.matches_until(rewards, level=95, trailing=2).tolist() == [3.0, math.inf, 2.0]
    assert stats.matches_until(rewards, level=0, trailing=9).tolist() == [math.inf] * 3, "too few matches for a mean"


def test_slope_in_points_per_thousand_matches() -> None:
    assert stats.slopes([[9, 0, 1, 2, 3], [9, 5, 5, 5, 5]], (2, 5)).tolist() == pytest.approx([1000.0, 0.0])


def test_windows_scale_with_the_series() -> None:
    assert stats.scaled((301, 3000), 3000) == (301, 3000)
    assert stats.scaled((301, 3000), 400) == (41, 400)
    assert stats.scaled((2701, 3000), 10) == (10, 10)


def test_spread_and_needed_runs() -> None:
    samples = [1.0, 2.0, 3.0, 6.0]
    assert stats.spread(stats.mean_interval(samples)) == pytest.approx(np.std(samples, ddof=1))
    assert stats.spread(stats.exact(3.0)) == 0.0
    # 3 degrees of freedom: the chi-square quantile at 0.2 is 1.00517
    assert stats.cautious_spread(stats.mean_interval(samples)) == pytest.approx(
        np.std(samples, ddof=1) * math.sqrt(3 / 1.00517), rel=1e-4
    )
    assert stats.runs_for(1.0, 0.1) == 387  # 1.9661 / sqrt(387) < 0.1 < 1.9661 / sqrt(386)
    assert stats.runs_for(0.0, 0.1) == 2


@pytest.mark.parametrize(
    ("interval", "p", "sign", "wanted"),
    [
        (Interval(0.5, 0.3, 0.7, 10), 0.001, 1, "reproduced"),
        (Interval(0.5, 0.3, 0.7, 10), 0.2, 1, "undecided"),  # the correction took it away
        (Interval(0.5, 0.3, 0.7, 10), 0.001, -1, "contradicted"),
        (Interval(0.05, 0.02, 0.08, 10), 0.001, 1, "equivalent"),  # above 0, but not by anything that matters
        (Interval(-0.02, -0.2, 0.16, 10), 0.8, 1, "undecided"),
        (Interval(3, 3, 3, 0), 1.0, 1, "reproduced"),  # counted
        (Interval(0, 0, 0, 0), 1.0, 1, "contradicted"),
    ],
)
def test_judging_a_side(interval: Interval, p: float, sign: int, wanted: str) -> None:
    margin = 0.0 if interval.num == 0 else 0.1
    assert stats.judge_side(interval, p, sign, margin=margin) == wanted


@pytest.mark.parametrize(
    ("interval", "wanted"),
    [
        (Interval(99, 98.5, 99.5, 10), "reproduced"),
        (Interval(97, 96.5, 97.5, 10), "contradicted"),
        (Interval(98.2, 97.9, 98.5, 10), "undecided"),
    ],
)
def test_judging_a_range(interval: Interval, wanted: str) -> None:
    assert stats.judge_within(interval, 98.2, 100) == wanted


def test_welch() -> None:
    # variances 1 / 3 and 4 / 4: standard error sqrt(4 / 3), (4/3)^2 / (1/18 + 1/3) = 4.5714 degrees of freedom
    found, p = stats.welch([1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 4.0])
    assert (found.mean, found.num) == (1.0, 3)
    assert found.half_width == pytest.approx(2.6444 * math.sqrt(4 / 3), rel=1e-3)
    assert p == pytest.approx(0.4290, abs=1e-3)


def test_welch_of_samples_that_do_not_scatter() -> None:
    assert stats.welch([1.0, 1.0, 1.0], [1.0, 1.0]) == (Interval(0.0, 0.0, 0.0, 2), 1.0)
    assert stats.welch([2.0, 2.0, 2.0], [1.0, 1.0])[1] == 2 / 10, "of 10 ways to deal five numbers"
    assert stats.welch([2.0], [1.0, 1.5]) == (Interval(0.75, -math.inf, math.inf, 1), 1.0)


def test_too_few_runs_decide_nothing() -> None:
    few = Interval(5.0, 4.9, 5.1, stats.FEWEST_SHOWN - 1)
    assert stats.judge_side(few, 0.0001, 1) == "undecided"
    assert stats.judge_within(few, 4.0, 6.0) == "undecided"
    assert stats.judge_within(few, 8.0, 9.0) == "undecided"
    enough = Interval(5.0, 4.9, 5.1, stats.FEWEST_SHOWN)
    assert (few.too_few, enough.too_few, stats.exact(3.0).too_few) == (True, False, False)
    assert stats.judge_within(enough, 4.0, 6.0) == "reproduced"
    assert stats.with_intervals(4) == "too few for intervals"
    assert stats.with_intervals(5, "95 % bands") == "95 % bands"


def test_rounds_that_lack_a_match_are_left_out():
    rows = [("a", 1), ("a", 0), ("b", 0), ("a", 2), ("b", 1), ("a", 4), ("a", 5)]
    pairs = stats.complete_rounds(rows, lambda row: (row[0], row[1] // 2))
    assert pairs == [[("a", 1), ("a", 0)], [("b", 0), ("b", 1)], [("a", 4), ("a", 5)]]
    assert stats.complete_rounds(rows, lambda row: row[0], 5) == [[("a", 1), ("a", 0), ("a", 2), ("a", 4), ("a", 5)]]
    assert stats.complete_rounds([], str) == []
