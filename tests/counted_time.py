"""A clock for budgets that counts function calls, so that a test of them does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from gamelore.gdl import limits
from gamelore.ground import clingo

CALLS = 1_000_000  # function calls of Python in a second of this clock


@contextmanager
def counted_time() -> Iterator[Callable[[], float]]:
    """Let the clock of budgets count function calls of this thread; give this clock."""
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
    ):
        sys.setprofile(count)
        try:
            yield now
        finally:
            sys.setprofile(None)
