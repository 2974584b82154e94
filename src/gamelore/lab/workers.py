"""Jobs shared among worker processes, and the progress bar above them.

With more than one worker, new processes start by importing the calling script anew ("spawn"): a script that comes to
here needs the usual `if __name__ == "__main__":`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, TypeVar

from ..errors import ExperimentError

Job = TypeVar("Job")
Result = TypeVar("Result")
Report: TypeAlias = Callable[[int], None]
"""Told how many more steps (matches) are done."""
Play: TypeAlias = Callable[[Job, Report], Result]
"""Does one job; with several workers it must be a function of a module."""
Pool: TypeAlias = Callable[[Sequence[Job], Report], Iterator[Result]]
"""Does jobs and yields their results as they are done, in any order."""


@contextmanager
def pool(workers: int, play: Play[Job, Result]) -> Iterator[Pool[Job, Result]]:
    """Something that does jobs in so many processes; with one worker, in this one."""
    if workers <= 1:
        yield lambda todo, report: (play(job, report) for job in todo)
        return
    context = get_context("spawn")
    counter = context.Value("q", 0)
    theirs, ours = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(workers, context, _start_worker, (counter, theirs))
    try:
        yield lambda todo, report: _collect(executor, play, todo, report, counter)
    except BaseException:
        ours.close()  # ends workers amidst a job
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
        ours.close()
        theirs.close()


def _collect(
    executor: ProcessPoolExecutor, play: Play[Job, Result], todo: Sequence[Job], report: Report, counter: Any
) -> Iterator[Result]:
    with _interrupts_wait():
        pending: set[Future[Result]] = {executor.submit(_play_in_worker, play, job) for job in todo}
    try:
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            report(_take(counter))
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise ExperimentError(
            "expected the workers to finish, got one that died, perhaps for want of memory; "
            "run again with fewer --workers, finished trials are kept"
        ) from error


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C is heard afterwards; and never by the processes that start inside, which would each complain of it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_counter: Any = None  # of this worker process, shared with the caller


def _start_worker(counter: Any, lifeline: Connection) -> None:
    global _counter
    _counter = counter
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # see _interrupts_wait; for Windows
    threading.Thread(target=_end_with_the_caller, args=(lifeline,), daemon=True).start()


def _end_with_the_caller(lifeline: Connection) -> None:
    """Ends the worker when the caller's end of the pipe is closed: it is done, was interrupted, or was killed and so
    cannot end its workers, which would wait for it for ever."""
    with suppress(OSError):
        lifeline.poll(None)
    os._exit(1)


def _play_in_worker(play: Play[Job, Result], job: Job) -> Result:
    return play(job, _count)


def _count(steps: int) -> None:
    with _counter.get_lock():
        _counter.value += steps


def _take(counter: Any) -> int:
    with counter.get_lock():
        taken, counter.value = counter.value, 0
    return int(taken)


@contextmanager
def bar(label: str, total: int, shown: bool) -> Iterator[Report]:
    """A progress bar with the remaining time, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("left:"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as shown_bar:
        task = shown_bar.add_task(label, total=total)
        yield lambda steps: shown_bar.advance(task, steps)
