"""Limits of loading a game, and the budget of processor time and memory that all steps of one loading share.

`within` opens a budget. Every loop in a step of loading calls `check`, which raises GroundingError as soon as the
budget is used up. A budget inside another one has at most what is left of the outer one. Without a budget, `check` does
nothing. `working_on` names the present step, so that the error can name the step, or the rule, that took the most time.

`enforced` opens a budget, too, and ends its work also where a loop does not call `check`. This is for rulesheets that
are made to explode, and that find such a loop.

Play has budgets, too: one for each call of the reasoner, and one for the whole of `gamelore check --play`.
"""

from __future__ import annotations

import ctypes
import gc
import math
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple, NoReturn, TypeVar

from ..errors import GroundingError

Result = TypeVar("Result")

GIB = 1 << 30
BETWEEN_LOOKS = 0.003  # seconds; a look costs a microsecond, and a check without a look a fifth of that
BETWEEN_LOOKS_AT_MEMORY = 0.012  # seconds; a look at the memory costs 30 microseconds


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of loading a game.

    Rules with joins that may be long must be ground within a part of what is left, see `ground.clingo.REHEARSED`.

    seconds   processor time of the thread that loads, with that of the processes for which it waits
    literals  number of literals in ground rules, about 100 bytes each
    memory    bytes by which the memory of the process may grow
    rehearses  whether long joins are tried in another process; a waste in a process that others end when it is late
    """

    seconds: float = 120.0
    literals: int = 16_000_000
    memory: int = 4 * GIB
    rehearses: bool = True

    def times(self, number: int) -> Limits:
        """Return the limits for this number of states, which share the time and the memory."""
        return replace(self, literals=self.literals * number)

    def share(self, part: float) -> Limits:
        """Return limits with a part of the time and of the memory."""
        return replace(self, seconds=part * self.seconds, memory=int(part * self.memory))


class _OfThread(threading.local):
    """State of a thread.

    seconds: processor time that other processes have used for it.
    watch: the watch over the thread, in a call of `enforced`.
    """

    seconds = 0.0
    watch: _Watch | None = None


_here = _OfThread()


def processor_time() -> float:
    """Return the processor time of this thread and of the processes for which it waited, in seconds."""
    return time.thread_time() + _here.seconds


def spend(seconds: float) -> None:
    """Count the processor time of another process as time of this thread."""
    _here.seconds += seconds
    if _here.watch:
        _here.watch.bring_forward(seconds)


class _Steps:
    """Seconds of processor time of each step of one loading.

    are_out_of_memory, are_nested_too_deeply: whether it ended so. What other threads use of the memory, and calls
    around this one use of the nesting, may be free the next time.
    """

    def __init__(self, first: str) -> None:
        self.are_out_of_memory = self.are_nested_too_deeply = False
        self._step, self._since = first, processor_time()
        self._spent: defaultdict[str, float] = defaultdict(float)

    def begin(self, step: str) -> None:
        now = processor_time()
        self._spent[self._step] += now - self._since
        self._step, self._since = step, now

    def longest(self) -> tuple[str, float]:
        """Return the step that has taken the most time so far, and its seconds."""
        self.begin(self._step)
        return max(self._spent.items(), key=lambda spent: spent[1])


LOADING = "the game to load"  # the usual task of a budget


class _End(NamedTuple):
    """End of a budget: processor time or bytes, the limit as text, and the task that must end within the limit."""

    at: float
    limit: str
    task: str

    def inside(self, outer: _End, is_part: bool) -> _End:
        """Return the end inside an outer budget: the nearer end. A part of the outer budget has its limit and task."""
        own = self if not is_part or outer.at == math.inf else outer._replace(at=self.at)
        return min(own, outer)


class Budget:
    """What is left of the limits from now on.

    task: what must end within the limits; "", or the task of the budget around it, for a part of that budget.
    exceeded: the limit that is used up, as text; "" if none is. In a part of a budget, this is the limit of the whole.
    is_cut: whether less than these limits was left of the outer budget.
    """

    def __init__(self, limits: Limits, task: str = "") -> None:
        outer, name = _budget.get(), task or LOADING
        self._time = _End(processor_time() + limits.seconds, f"{limits.seconds:g} s", name)
        self._memory = _End(resident_memory() + limits.memory, f"{limits.memory / GIB:.2g} GiB of memory", name)
        is_part = outer is not None and task in ("", outer.task())
        self.steps: _Steps = (
            outer.steps if outer and is_part else _Steps("reading the rules" if name == LOADING else "")
        )
        self._rehearses: bool = limits.rehearses and (outer is None or outer._rehearses)
        self.is_cut = outer is not None and (outer._time.at < self._time.at or outer._memory.at < self._memory.at)
        if outer is not None:
            self._time = self._time.inside(outer._time, is_part)
            self._memory = self._memory.inside(outer._memory, is_part)
        self._next_look = self._next_look_at_memory = 0.0
        self.exceeded = ""

    def check(self) -> None:
        """Raise GroundingError if the time or the memory is used up. Look at them some hundred times a second."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + BETWEEN_LOOKS
        if processor_time() > self._time.at:
            self.fail("time")
        if now < self._next_look_at_memory:
            return
        self._next_look_at_memory = now + BETWEEN_LOOKS_AT_MEMORY
        if resident_memory() > self._memory.at:
            self.fail("memory")

    def exceeds(self) -> Literal["", "time", "memory"]:
        """Return what is used up now."""
        if processor_time() > self._time.at:
            return "time"
        return "memory" if resident_memory() > self._memory.at else ""

    def task(self) -> str:
        """Return what must end within the limits."""
        return self._time.task

    def left(self) -> Limits:
        """Return what is left of the time and of the memory."""
        seconds, memory = self._time.at - processor_time(), self._memory.at - resident_memory()
        return Limits(max(0.0, seconds), memory=max(0, int(memory)), rehearses=self._rehearses)

    def fail(self, what: Literal["time", "memory"], cause: BaseException | None = None) -> NoReturn:
        """Raise the error that the time or the memory is used up."""
        end = self._time if what == "time" else self._memory
        self.steps.are_out_of_memory |= what == "memory"
        self.exceeded = end.limit
        step, seconds = self.steps.longest()
        longest = f"; {step} took the most time, {seconds:.3g} s" if step else ""
        remedy = "simplify this part, or raise the limit" if step else "raise the limit"
        raise GroundingError(f"expected {end.task} within {end.limit}, but it did not{longest}", remedy) from cause


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(limits: Limits, task: str = "") -> Iterator[Budget]:
    """Open a budget for the `with` block; see Budget.

    Raises GroundingError instead of RecursionError and MemoryError, because only rules that are nested too deeply, or
    that are too large, lead to these.
    """
    budget = Budget(limits, task)
    token = _budget.set(budget)
    try:
        yield budget
    except RecursionError as error:
        budget.steps.are_nested_too_deeply = True
        raise GroundingError(
            f"expected {budget.task()} with at most {sys.getrecursionlimit()} nested calls, but it needs more",
            "write rules with less nesting, and shorter chains of relations that depend on each other",
        ) from error
    except MemoryError as error:
        budget.fail("memory", error)
    finally:
        _budget.reset(token)


class _Overdue(BaseException):
    """Raised in a thread by its watch."""


class _Unreported:
    """A hook by which Python reports no _Overdue that it ignores, as in the callback of a weak reference."""

    def __init__(self) -> None:
        self._before = sys.unraisablehook
        sys.unraisablehook = self

    def __call__(self, ignored: sys.UnraisableHookArgs, /) -> None:
        if not issubclass(ignored.exc_type, _Overdue):
            self._before(ignored)

    def end(self) -> None:
        """Give the hook back, unless another one has taken its place."""
        if sys.unraisablehook is self:
            sys.unraisablehook = self._before


OVERTIME = 0.2  # part of the limits by which work may exceed them until the watch ends it
BETWEEN_WATCHES = 0.02  # seconds


class _Watch:
    """Watch over this thread: another thread, which raises _Overdue in this one if its limits are exceeded.

    The exception is raised between two instructions of Python, so it does not end a long call of other code. It is
    raised again until the watch ends, because some code, as that of `__del__`, ignores exceptions. Python would report
    each ignored one on standard error; `_Unreported` prevents this. Where the system does not tell the processor time
    of another thread, as on Windows and macOS, only the memory is watched.

    The exception may also come right after the call that takes a lock, so that code to give it back never runs; a
    `threading.Event` then stays locked. Therefore `end` keeps a reentrant lock for ever, and gives another one back
    only when no exception can come any more.

    left: what is left of the limits.
    """

    def __init__(self, left: Limits) -> None:
        self._thread = threading.get_ident()
        self._raising, self._sleeping = threading.RLock(), threading.Lock()
        self._sleeping.acquire()
        has_clock = hasattr(time, "pthread_getcpuclockid")
        self._clock = time.pthread_getcpuclockid(self._thread) if has_clock else None
        self._seconds = self._now() + (1 + OVERTIME) * left.seconds
        self._memory = resident_memory() + (1 + OVERTIME) * left.memory
        self.exceeded: Literal["", "time", "memory"] = ""
        self._unreported: _Unreported | None = None

    def begin(self) -> None:
        threading.Thread(target=self._run, name="limits", daemon=True).start()

    def bring_forward(self, seconds: float) -> None:
        """End the work earlier, because another process has used so much of its processor time."""
        self._seconds -= seconds

    def _now(self) -> float:
        return 0.0 if self._clock is None else time.clock_gettime(self._clock)

    def _run(self) -> None:
        while not self._sleeping.acquire(timeout=BETWEEN_WATCHES):
            if not self._raising.acquire(blocking=False):
                return
            try:
                self._look()
            except (MemoryError, OSError):  # nothing is left for a look at the memory; the next one may succeed
                pass
            finally:
                self._raising.release()

    def _look(self) -> None:
        """Raise _Overdue in the watched thread if its limits are exceeded."""
        if self._now() > self._seconds:
            self.exceeded = "time"
        elif resident_memory() > self._memory:
            self.exceeded = "memory"
        if self.exceeded:
            self._unreported = self._unreported or _Unreported()
            thread = ctypes.c_ulong(self._thread)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_Overdue))

    def end(self) -> None:
        """End the watch. No exception is raised after this call."""
        while True:
            try:
                self._raising.acquire()  # from now on, the watch raises nothing
                for _ in range(2):  # Python raises exceptions of other threads at the end of a turn of a loop
                    pass
                if self._sleeping.locked():
                    self._sleeping.release()
                if self._unreported is not None:
                    self._unreported.end()
                return
            except _Overdue:
                continue


def enforced(work: Callable[[], Result], limits: Limits, task: str = "") -> Result:
    """Call a function within a budget, and end it even if it does not look at the budget.

    Args:
        work: a function without arguments. Long calls of other languages than Python are not ended.
        limits: the limits. The function is ended at the latest when what was left of them is exceeded by a fifth; in a
            call of `enforced` within another one, when the limits of the outer one are.
        task: see Budget.

    Returns:
        What the function returns.

    Raises:
        GroundingError: the limits are exceeded.
    """
    with within(limits, task) as budget:
        if _here.watch:
            return work()
        _here.watch = watch = _Watch(budget.left())
        try:
            try:
                watch.begin()
                return work()
            finally:
                watch.end()
        except _Overdue:
            watch.end()  # again: the exception may have come at its beginning
            budget.fail(watch.exceeded or "time")
        finally:
            _here.watch = None


def check() -> None:
    """Raise GroundingError if the present budget is used up."""
    budget = _budget.get()
    if budget is not None:
        budget.check()


BETWEEN_CHECKS = 64  # items of a list; a look at the budget for each would take a tenth of the time of reading it

Item = TypeVar("Item")


def checked(items: Iterable[Item]) -> Iterator[Item]:
    """Return the items one by one, with looks at the budget."""
    for place, item in enumerate(items):
        if not place % BETWEEN_CHECKS:
            check()
        yield item


def checked_if_long(items: Sequence[Item]) -> Iterable[Item]:
    """Return the items, with looks at the budget if there are many. A short sequence is faster to read as it is."""
    return items if len(items) <= BETWEEN_CHECKS else checked(items)


def exceeds() -> Literal["", "time", "memory"]:
    """Return what is used up of the present budget."""
    budget = _budget.get()
    return "" if budget is None else budget.exceeds()


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
    """Return the memory of this process in bytes; its largest memory so far on macOS, and 0 on Windows."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _page()
    except OSError:
        try:
            import resource
        except ImportError:
            return 0
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
