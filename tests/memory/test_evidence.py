"""Betting on a mean score: bets computed by hand, and the error probability over many tests that never stop."""

from math import isclose, log

import numpy as np
import pytest

from gamelore.learning.exchange import check_trial
from gamelore.learning.store.lesson_rows import TrialRow
from gamelore.memory.evidence import BettingTest

LEVEL = 0.05


def test_bets_by_hand() -> None:
    """The first bet is 0. After a score of 1, the mean is 0.75 and the variance (1/4 + 1/16) / 2 = 0.15625.

    So the stake is 0.25 / (0.15625 + 0.0625) = 8/7, and a second score of 1 multiplies the capital by 11/7. Then the
    mean is 5/6 and the variance (1/4 + 1/16 + 1/36) / 3 = 0.11343, and the stake (1/3) / (0.11343 + 1/9) = 1.48. A
    score of 1/4 multiplies the capital by 1 - 1.48 / 4. After three scores of 1, the stake is cut to 1.5.
    """
    evidence = BettingTest().after(1.0)
    assert evidence == BettingTest(1, 1.0, 0.0625, 0.0, 0.0)
    evidence = evidence.after(1.0)
    assert isclose(evidence.better, log(11 / 7))
    assert isclose(evidence.squares, 1 / 16 + 1 / 36)
    variance = (1 / 4 + 1 / 16 + 1 / 36) / 3
    evidence = evidence.after(0.25)
    assert isclose(evidence.better, log(11 / 7 * (1 - (1 / 3) / (variance + 1 / 9) / 4)))
    assert evidence.worse == 0.0
    assert (evidence.num, evidence.score) == (3, 0.75)
    won = BettingTest().after_all([1.0] * 3)
    assert isclose(won.after(1.0).better - won.better, log(1.75))
    assert isclose(BettingTest().after_all([1.0] * 2).error, (variance / 2) ** 0.5)
    assert BettingTest().error == 0.5


@pytest.mark.parametrize("scores", [[1.0] * 50, [0.0] * 50, [0.0, 1.0] * 25])
def test_no_evidence_is_refused_by_an_import(scores: list[float]) -> None:
    evidence = BettingTest().after_all(scores)
    numbers = evidence.num, evidence.total, evidence.squares, evidence.better, evidence.worse
    check_trial(TrialRow("lesson", 1, "without", *numbers))
    if evidence.better > 1.0:
        with pytest.raises(ValueError, match=r"expected better of at most 27\.98 after 50 rounds, got 28\.5"):
            check_trial(TrialRow("lesson", 1, "without", *numbers[:3], 28.5))


def test_a_small_stake_by_hand() -> None:
    """After a score of 3/4, the mean is 0.625 and the variance (1/4 + 1/64) / 2 = 17/128.

    The stake is 0.125 / (17/128 + 1/64) = 16/19, so a score of 0 leaves 1 - 8/19 of the capital.
    """
    evidence = BettingTest().after_all([0.75, 0.0])
    assert isclose(evidence.better, log(11 / 19))


def test_both_sides_are_alike() -> None:
    scores = np.random.default_rng(1).integers(0, 5, 40) / 4
    evidence, mirrored = BettingTest().after_all(scores), BettingTest().after_all(1.0 - scores)
    assert isclose(evidence.better, mirrored.worse)
    assert isclose(evidence.worse, mirrored.better)


@pytest.mark.parametrize("chances", [(0.5, 0.0, 0.5), (0.1, 0.8, 0.1), (0.35, 0.4, 0.25), (0.0, 1.0, 0.0)])
def test_a_player_that_is_not_better_is_seldom_shown_to_be(chances: tuple[float, float, float]) -> None:
    """400 tests of 300 pairs that look after each pair: at most 5 % err, which 33 exceed with probability 0.003."""
    rng = np.random.default_rng(2)
    wrong = 0
    for scores in rng.choice([0.0, 0.5, 1.0], size=(400, 300), p=chances):
        evidence = BettingTest()
        for score in scores.tolist():
            evidence = evidence.after(score)
            if evidence.shows_better(LEVEL):
                wrong += 1
                break
    assert wrong <= 33


@pytest.mark.parametrize(("chance", "most"), [(0.9, 12), (0.75, 40), (0.6, 250)])
def test_a_better_player_is_shown_soon(chance: float, most: int) -> None:
    """Half of 100 tests end within so many pairs."""
    rng, needed = np.random.default_rng(3), []
    for scores in (rng.random((100, 400)) < chance).astype(float):
        evidence, num = BettingTest(), 0
        while num < len(scores) and not evidence.shows_better(LEVEL):
            evidence = evidence.after(float(scores[num]))
            num += 1
        needed.append(num)
    assert np.median(needed) <= most


def test_it_goes_on_where_it_stopped() -> None:
    scores = np.random.default_rng(4).random(50).tolist()
    assert BettingTest().after_all(scores[:20]).after_all(scores[20:]) == BettingTest().after_all(scores)


def test_a_worse_player_is_shown_to_be_worse() -> None:
    evidence = BettingTest().after_all([0.25] * 20)
    assert evidence.shows_worse(LEVEL)
    assert not evidence.shows_better(LEVEL)
