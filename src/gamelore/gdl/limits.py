"""Limits of loading a game, and the budget of processor time and memory that all steps of one loading share.

`within` opens a budget. Every loop in a step of loading calls `check`, which raises GroundingError as soon as the
budget is used up. A budget inside another one has at most what is left of the outer one. Without a budget, `check` does
nothing. `working_on` names the present step, so that the error can name the step, or the rule, that took the most time.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache

from ..errors import GroundingError

GIB = 1 << 30
BETWEEN_LOOKS = 0.003  # seconds; a look costs a microsecond, and a check without a look a fifth of that
LOOKS_AT_MEMORY = 4  # each of these looks is also one at the memory, which costs 30 microseconds


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of loading a game.

    seconds   processor time of the thread that loads
    literals  number of literals in ground rules, about 100 bytes each
    memory    bytes by which the memory of the process may grow
    """

    seconds: float = 60.0
    literals: int = 16_000_000
    memory: int = 4 * GIB

    def times(self, number: int) -> Limits:
        """Return the limits for this number of states, which share the memory."""
        return replace(self, seconds=self.seconds * number, literals=self.literals * number)

    def share(self, part: float) -> Limits:
        """Return limits with a part of the time and of the memory."""
        return replace(self, seconds=part * self.seconds, memory=int(part * self.memory))


class _Steps:
    """Seconds of processor time of each step of one loading; whether it has run out of memory."""

    def __init__(self) -> None:
        self.are_out_of_memory = False
        self._step, self._since = "reading the rules", time.thread_time()
        self._spent: defaultdict[str, float] = defaultdict(float)

    def begin(self, step: str) -> None:
        now = time.thread_time()
        self._spent[self._step] += now - self._since
        self._step, self._since = step, now

    def longest(self) -> tuple[str, float]:
        """Return the step that has taken the most time so far, and its seconds."""
        self.begin(self._step)
        return max(self._spent.items(), key=lambda spent: spent[1])


class Budget:
    """What is left of the limits from now on.

    exceeded: the limit that is used up, as text; "" if none is. Inside another budget, this is the limit of the
        outermost one, of which the inner ones get parts.
    """

    def __init__(self, limits: Limits) -> None:
        outer, now = _budget.get(), time.thread_time()
        self._deadline, self._ceiling = now + limits.seconds, resident_memory() + limits.memory
        self._whole, self.steps = limits, _Steps()
        if outer is not None:
            self._deadline, self._ceiling = min(self._deadline, outer._deadline), min(self._ceiling, outer._ceiling)
            self._whole, self.steps = outer._whole, outer.steps
        self._next_look, self._num_looks = 0.0, 0
        self.exceeded = ""

    def check(self) -> None:
        """Raise GroundingError if the time or the memory is used up. Look at them some hundred times a second."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + BETWEEN_LOOKS
        self._num_looks += 1
        if time.thread_time() > self._deadline:
            self.exceeded = f"{self._whole.seconds:g} s"
        elif not self._num_looks % LOOKS_AT_MEMORY and resident_memory() > self._ceiling:
            self.exceeded = f"{self._whole.memory / GIB:.2g} GiB of memory"
            self.steps.are_out_of_memory = True
        if self.exceeded:
            step, seconds = self.steps.longest()
            raise GroundingError(
                f"expected the game to load within {self.exceeded}, but it did not; {step} took the most time, "
                f"{seconds:.3g} s. Remedy: simplify this part, or raise the limit"
            )


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(limits: Limits) -> Iterator[Budget]:
    """Open a budget for the `with` block."""
    budget = Budget(limits)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def check() -> None:
    """Raise GroundingError if the present budget is used up."""
    budget = _budget.get()
    if budget is not None:
        budget.check()


def working_on(step: str) -> None:
    """Name the present step of loading, for the message of `check`."""
    budget = _budget.get()
    if budget is not None:
        budget.steps.begin(step)


@cache
def _page() -> int:
    import resource

    return resource.getpagesize()


def resident_memory() -> int:
    """Return the memory of this process in bytes; where the system does not tell, its largest memory so far."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _page()
    except OSError:
        import resource
        import sys

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's collector of cyclic garbage in the `with` block, or during a decorated function.

    A rulesheet may have millions of terms, and terms form no cycles. The collector would visit all of them each time
    their number has grown by a quarter: reading 100,000 rules would take twice the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
