"""Anytime-valid evidence about a mean score, by betting (Waudby-Smith & Ramdas 2024, Estimating means by betting).

A gambler begins with a capital of 1 and bets on the score of each pair of matches that the mean is above 1/2. If it is
not, the bets are fair or worse, so the capital ever reaches 1 / alpha with a probability of at most alpha (Ville's
inequality). A second gambler bets that the mean is below 1/2. So a test can stop at any time, go on later, in the next
match or in another process, and its level stays what it is.

The scores are means of two matches with sides swapped, from 0 to 1. They must not depend on the bets. The stake, as a
share of the capital, is the mean less 1/2, divided by the variance plus the square of that difference, for the mean and
the variance of the scores so far (aGRAPA, section B.3 there). It is at most MOST_STAKE, three quarters of the
share at which a score of 0 would ruin the gambler. One imagined score of 1/2 with variance 1/4 comes before the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log, log1p, sqrt

from ..learning.store.schema import MOST_STAKE

MIDDLE = 0.5  # score of a player against itself
_IMAGINED_VARIANCE = 0.25


@dataclass(frozen=True, slots=True)
class BettingTest:
    """Scores of pairs of matches so far, and the capitals of the two gamblers.

    num      number of pairs
    total    sum of their scores, each from 0 to 1
    squares  sum of the squared differences between a score and the mean after it
    better   logarithm of the capital of the gambler who bets on a mean above 1/2
    worse    the same for a mean below 1/2
    """

    num: int = 0
    total: float = 0.0
    squares: float = 0.0
    better: float = 0.0
    worse: float = 0.0

    @property
    def score(self) -> float:
        """Mean score; 1/2 without a pair."""
        return self.total / self.num if self.num else MIDDLE

    @property
    def error(self) -> float:
        """Standard error of the mean score, by the variance on which the stake rests."""
        return sqrt(self._variance / max(self.num, 1))

    @property
    def _variance(self) -> float:
        return (_IMAGINED_VARIANCE + self.squares) / (1 + self.num)

    def after(self, score: float) -> BettingTest:
        """Return the evidence after one more pair with this score, from 0 to 1."""
        stake, gain = self._stake, score - MIDDLE
        num, total = self.num + 1, self.total + score
        mean = (MIDDLE + total) / (1 + num)
        return BettingTest(
            num,
            total,
            self.squares + (score - mean) ** 2,
            self.better + log1p(max(stake, 0.0) * gain),
            self.worse + log1p(min(stake, 0.0) * gain),
        )

    def after_all(self, scores: Iterable[float]) -> BettingTest:
        """Return the evidence after more pairs, in their order."""
        evidence = self
        for score in scores:
            evidence = evidence.after(score)
        return evidence

    def shows_better(self, level: float) -> bool:
        """Return whether the mean is above 1/2, with an error probability of at most `level`, at any time."""
        return self.better >= -log(level)

    def shows_worse(self, level: float) -> bool:
        """Return whether the mean is below 1/2, with an error probability of at most `level`, at any time."""
        return self.worse >= -log(level)

    @property
    def _stake(self) -> float:
        """Share of the capital to bet on the next score, in units of its difference from 1/2; negative: against it."""
        ahead = (MIDDLE + self.total) / (1 + self.num) - MIDDLE
        stake = ahead / (self._variance + ahead * ahead)
        return max(-MOST_STAKE, min(MOST_STAKE, stake))
