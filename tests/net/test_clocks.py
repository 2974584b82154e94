"""What a clock leaves."""

from __future__ import annotations

import time

import pytest

from gamelore.net.clocks import LEAST, answer_time, left, thinking_time


@pytest.mark.parametrize(
    ("clock", "margin", "thinking", "answering"),
    [
        (10, 0.5, 9.5, 9.75),
        (10, 0, 10 - LEAST / 2, 10),
        (1, 0.5, 0.5, 0.75),
        (1, 2, 0.5, 0.75),
        (0, 0.5, LEAST / 2, LEAST),
    ],
)
def test_what_a_clock_leaves(clock: float, margin: float, thinking: float, answering: float):
    assert thinking_time(clock, margin) == thinking
    assert answer_time(clock, margin) == answering


def test_a_deadline_that_is_over_leaves_nothing():
    assert left(time.monotonic() - 1) == 0
    assert 0 < left(time.monotonic() + 100) <= 100
