"""What the child processes of long jobs share: plans, and a thread that computes while the process answers the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, Self

import msgspec
from msgspec import Struct

from ...errors import GameloreError
from ...net.requests import answer


class JobPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """A plan that a page sends to a long job."""

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Self:
        """Return the plan of these values. Raise GameloreError for values that no plan has."""
        try:
            return msgspec.convert(plan, cls)
        except msgspec.ValidationError as error:
            raise GameloreError(f"expected the plan of a job, got another value: {error}; correct it") from None


class Stopped(BaseException):
    """Raised in the thread of a computation to end it without an outcome."""


class Computation:
    """A thread that computes something. It tells an outcome however it ends, unless it is stopped.

    outcome     None while it goes on; then {"ok": result}, or an error as `requests.answer` returns it
    is_stopped  whether it has ended by `Stopped`

    Args:
        compute: computes the result
        name: name of the thread
        too_large: sentence for a computation that needs more memory than its process has
    """

    def __init__(self, compute: Callable[[], Any], name: str, too_large: str) -> None:
        self.outcome: dict[str, Any] | None = None
        self.is_stopped = False
        self._compute, self._too_large = compute, too_large
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait for the end of the thread, at most so many seconds."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self.outcome = answer(self._compute, {})
        except Stopped:
            self.is_stopped = True
        except MemoryError:
            self.outcome = {"error": "GameloreError", "message": self._too_large}
        except BaseException as error:
            message = f"expected a result, got {type(error).__name__}: {error}; begin it again"
            self.outcome = {"error": "GameloreError", "message": message}
