"""Elo ratings against numbers computed by hand, and against simulated players of known strength."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gamelore.errors import ExperimentError
from gamelore.lab.tournament import POINTS, Comparison, ratings


def even(wins: float, draws: float, losses: float) -> list[Comparison]:
    """Results of two players, half of them in each order of roles."""
    half = [x / 2 for x in (wins, draws, losses)]
    return [Comparison(0, 0, 1, 1, *half), Comparison(1, 0, 0, 1, *half[::-1])]


def test_the_difference_of_two_players_without_draws() -> None:
    """75 of 100 points are 400 log10(3) = 190.85 Elo points."""
    rated = ratings(2, 2, even(75, 0, 25), prior=0)
    first, second = rated.players
    assert first.elo - second.elo == pytest.approx(400 * math.log10(3), abs=0.01)
    assert first.elo == pytest.approx(-second.elo, abs=1e-6)
    assert rated.roles == pytest.approx((0, 0), abs=1e-4)
    assert rated.draws == 0


def test_the_interval_is_that_of_the_likelihood_ratio() -> None:
    """The log likelihood of both ends is 1.92 below the maximum; a share p is a difference of 400 log10(p/(1-p))."""

    def log_likelihood(share: float) -> float:
        return 75 * math.log(share) + 25 * math.log(1 - share)

    first = ratings(2, 2, even(75, 0, 25), prior=0).players[0]
    for end in (first.low, first.high):
        share = 1 / (1 + 10 ** (-2 * end / 400))
        assert log_likelihood(0.75) - log_likelihood(share) == pytest.approx(stats.chi2.ppf(0.95, 1) / 2, abs=1e-3)


def test_draws_do_not_change_the_difference_of_two_players() -> None:
    """Davidson's model fits two players exactly: the ratio of wins to losses is exp(x), whatever the draws are."""
    rated = ratings(2, 2, even(60, 40, 20), prior=0)
    assert rated.players[0].elo - rated.players[1].elo == pytest.approx(400 * math.log10(3), abs=0.02)
    assert rated.draws == pytest.approx(1 / 3)


def test_the_advantage_of_a_role() -> None:
    """Equal players, the first role wins 3 of 4: it is 190.85 Elo points better, half of it above the mean."""
    rated = ratings(2, 2, [Comparison(0, 0, 1, 1, 30, 0, 10), Comparison(1, 0, 0, 1, 30, 0, 10)], prior=0)
    assert rated.roles == pytest.approx((95.42, -95.42), abs=0.02)
    assert rated.players[0].elo == pytest.approx(0, abs=1e-3)


def test_a_player_that_wins_all_has_a_finite_rating_with_the_prior_only() -> None:
    """One match, half won, against strength 0: 10 log s(2t) + 0.5 log s(t) + 0.5 log s(-t) has its maximum at t."""
    best = max(
        np.linspace(0, 10, 100_001), key=lambda t: -10 * np.log1p(np.exp(-2 * t)) - np.logaddexp(t / 2, -t / 2) * 2
    )
    first, second = ratings(2, 2, even(10, 0, 0)).players
    assert first.elo == pytest.approx(POINTS * best, abs=0.1)
    assert first.low > 0 > second.high
    with pytest.raises(ExperimentError, match="so its rating has no limit; play more matches, or leave the default"):
        ratings(2, 2, even(10, 0, 0), prior=0)


def test_a_role_that_always_wins_has_a_finite_advantage_with_the_prior_only() -> None:
    first_wins = [Comparison(0, 0, 1, 1, 10, 0, 0), Comparison(1, 0, 0, 1, 10, 0, 0)]
    rated = ratings(2, 2, first_wins)
    assert 100 < rated.roles[0] < 1000
    assert rated.players[0].elo == pytest.approx(0, abs=1e-3)
    with pytest.raises(ExperimentError, match="and every role, to win and to lose points"):
        ratings(2, 2, first_wins, prior=0)


def test_intervals_hold_the_true_strengths_as_often_as_they_say() -> None:
    """Four players, 120 matches each, 15 tournaments: 60 intervals, which hold 95 % +- 3 standard errors."""
    random = np.random.default_rng(7)
    strengths, role, nu = np.array([0.6, 0.2, -0.1, -0.7]), 0.3, 0.8
    held = 0
    for _ in range(15):
        compared = []
        for a in range(4):
            for b in range(4):
                if a != b:
                    x = strengths[a] - strengths[b] + 2 * role
                    shares = np.array([math.exp(x / 2), nu, math.exp(-x / 2)])
                    compared.append(Comparison(a, 0, b, 1, *random.multinomial(20, shares / shares.sum())))
        rated = ratings(4, 2, compared, prior=0)
        held += sum(each.low <= POINTS * s <= each.high for each, s in zip(rated.players, strengths, strict=True))
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / 60) <= held / 60 <= 1


def test_a_match_of_three_counts_once_for_each_player() -> None:
    """In each of 40 matches the first is better than both others, which are equal: two comparisons of weight 1/2."""
    one = [Comparison(0, 0, 1, 1, 30, 0, 10), Comparison(0, 0, 2, 2, 30, 0, 10), Comparison(1, 1, 2, 2, 20, 0, 20)]
    shifted = [
        Comparison(*(each.first, (each.first_role + s) % 3, each.second, (each.second_role + s) % 3), 30, 0, 10)
        if each.first == 0
        else Comparison(1, (1 + s) % 3, 2, (2 + s) % 3, 20, 0, 20)
        for s in (1, 2)
        for each in one
    ]
    rated = ratings(3, 3, one + shifted, prior=0)
    assert rated.players[0].elo - rated.players[1].elo == pytest.approx(400 * math.log10(3), abs=0.1)
    half = ratings(2, 2, even(90, 0, 30), prior=0).players[0]
    assert rated.players[0].high - rated.players[0].low > 0.5 * (half.high - half.low)


def test_one_player_is_no_tournament() -> None:
    with pytest.raises(ExperimentError, match="expected at least two players, got 1; add players"):
        ratings(1, 2, [])
