"""Clocks for budgets, in place of those of the machine: one that tests set, and one that counts function calls."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from gamelore.gdl import limits
from gamelore.ground import clingo, rehearsal

CALLS = 1_000_000  # function calls of Python in a second of the clock that counts them


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def clock_to_set(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replace the clocks of budgets and of play by one that the test sets. No watch ends what is late by it."""
    clock = Clock()
    monkeypatch.setattr(limits, "OVERTIME", math.inf)
    monkeypatch.setattr(limits.time, "thread_time", clock)
    monkeypatch.setattr(limits.time, "monotonic", clock)
    return clock


def short_rehearsals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rehearsals of groundings end soon, in budgets that no machine is too slow for."""
    monkeypatch.setattr(rehearsal, "MOST_SECONDS", 0.1)


@contextmanager
def counted_time() -> Iterator[Callable[[], float]]:
    """Let the clock of budgets count function calls of this thread; give this clock.

    No watch ends what is late by it, so only code that looks at its budget ends.
    """
    number = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    def now() -> float:
        return number / CALLS

    with (
        patch.object(limits.time, "thread_time", now),
        patch.object(limits.time, "monotonic", now),
        patch.object(clingo, "COUNTED", 100),
        patch.object(limits, "OVERTIME", math.inf),
    ):
        sys.setprofile(count)
        try:
            yield now
        finally:
            sys.setprofile(None)
