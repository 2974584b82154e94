"""Equation 2 of Banerjee & Stone (2007) on numbers worked out by hand, and the table that it works on."""

from __future__ import annotations

import numpy as np
import pytest

from gamelore.errors import GameloreError
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.update import ValueTable, lane_numbers, learn, td_update


def updated(q: list[float], slots: list[int], reward: float, alpha: float, gamma: float, lam: float) -> list[float]:
    values = np.array(q)
    td_update(values, np.array(slots, np.int64), reward, alpha, gamma, lam)
    return values.tolist()


def test_a_single_afterstate_moves_towards_the_reward() -> None:
    # t = 1 = k: delta = 100 + 0 - 50 = 50; Q += 0.3 * 50
    assert updated([50.0], [0], 100.0, 0.3, 1.0, 0.7) == pytest.approx([65.0])


def test_three_afterstates_from_default_with_the_papers_settings() -> None:
    # t = 1: delta = 50 - 50 = 0; t = 2: delta = 0
    # t = 3: delta = 0 - 50 = -50: p = 1: 0.3 * 0.49 * -50 = -7.35; p = 2: 0.3 * 0.7 * -50 = -10.5; p = 3: -15
    assert updated([50.0] * 3, [0, 1, 2], 0.0, 0.3, 1.0, 0.7) == pytest.approx([42.65, 39.5, 35.0])


def test_each_step_reads_what_the_steps_before_wrote() -> None:
    # Q = 40, 60, 80, reward 100, alpha 0.5, gamma 0.5, lam 0.5
    # t = 1: delta = 0.5 * 60 - 40 = -10;       Q1 = 40 - 0.5 * 10 = 35
    # t = 2: delta = 0.5 * 80 - 60 = -20;       Q1 = 35 - 0.25 * 20 = 30;   Q2 = 60 - 0.5 * 20 = 50
    # t = 3: delta = 100 - 80 = 20;             Q1 = 30 + 0.125 * 20 = 32.5; Q2 = 50 + 0.25 * 20 = 55; Q3 = 90
    assert updated([40.0, 60.0, 80.0], [0, 1, 2], 100.0, 0.5, 0.5, 0.5) == pytest.approx([32.5, 55.0, 90.0])


def test_an_afterstate_that_comes_twice() -> None:
    # A noop game: sigma = A, B, A. Q(A) = 40, Q(B) = 60, reward 100, alpha 0.5, gamma 1, lam 0.5
    # t = 1: delta = Q(B) - Q(A) = 20:          A = 40 + 0.5 * 20 = 50
    # t = 2: delta = Q(A) - Q(B) = 50 - 60:     A = 50 - 0.25 * 10 = 47.5;  B = 60 - 0.5 * 10 = 55
    # t = 3: delta = 100 - Q(A) = 52.5:         A = 47.5 + 0.125 * 52.5 = 54.0625;  B = 55 + 0.25 * 52.5 = 68.125;
    #                                           A = 54.0625 + 0.5 * 52.5 = 80.3125
    assert updated([40.0, 60.0], [0, 1, 0], 100.0, 0.5, 1.0, 0.5) == pytest.approx([80.3125, 68.125])


def test_with_lambda_0_only_the_afterstate_itself_moves() -> None:
    # t = 1: delta = 70 - 50; t = 2: delta = 100 - 70
    assert updated([50.0, 70.0], [0, 1], 100.0, 0.5, 1.0, 0.0) == pytest.approx([60.0, 85.0])


def test_entries_are_kept_apart_by_lane_and_survive_growth() -> None:
    table = ValueTable()
    numbers = np.arange(20_000, dtype=np.int32)
    for lane in (0, 3):
        table.load(lane, numbers, numbers * 0.5 + lane, numbers + lane)
    table.load(3, [-1, -(2**31)], [1.5, 2.5], [7, 8])
    assert table.size == 40_002
    assert len(table.keys) >= 2 * table.size
    q, visits = table.get(0, [0, 19_999, -1])
    np.testing.assert_array_equal(q, [0.0, 9_999.5, np.nan])
    assert visits.tolist() == [0, 19_999, 0]
    found, q, visits = table.lane(3)
    order = np.argsort(found)
    assert found[order][:3].tolist() == [-(2**31), -1, 0]
    assert q[order][:4].tolist() == [2.5, 1.5, 3.0, 3.5]
    assert visits[order][-1] == 20_002
    assert table.lane(1)[0].size == 0


def test_loading_again_overwrites() -> None:
    table = ValueTable()
    table.load(0, [5, 6], [10.0, 20.0], [1, 2])
    table.load(0, [6], [30.0], [3])
    assert table.size == 2
    assert table.get(0, [5, 6])[0].tolist() == [10.0, 30.0]


def test_visits_that_are_full_stay() -> None:
    most = 2**31 - 1
    table = ValueTable()
    table.load(0, [4, 5, 6], [50.0] * 3, [0, most - 1, most])
    for _ in range(2):
        afterstates, offsets = np.array([4, 5, 6, 6], np.int32), np.array([0, 4])
        learn(
            *(np.zeros(1, np.int64), offsets, afterstates, np.array([100.0])),
            *(lane_numbers([LearnerSettings()]), table.keys, table.q, table.visits),
        )
    q, visits = table.get(0, [4, 5, 6])
    assert visits.tolist() == [2, most, most]
    assert (q > 50).all()


def test_lengths_must_fit() -> None:
    with pytest.raises(GameloreError, match="for each of 2 afterstates, got 1 and 2"):
        ValueTable().load(0, [5, 6], [10.0], [1, 2])
