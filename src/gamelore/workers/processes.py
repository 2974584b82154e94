"""A pool of worker processes of this machine, which do jobs.

Workers are new processes (start method "spawn", because numba's threads do not survive a fork). They do not import the
calling script, so the script needs no `if __name__ == "__main__":`. A notebook and `python - < script` work too. The
exception is a `play` that is defined in the calling script itself; see `pool` for what the script must then contain.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing import current_process, get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import ExperimentError

PROGRESS_SECONDS = 0.2  # time between two messages of a worker about its progress
MAX_WORKERS_ON_WINDOWS = 30  # it waits for at most 63 objects at a time; each worker is two

Report: TypeAlias = Callable[[int], None]
"""A function that is called with the number of steps (matches) done since its last call."""
Play: TypeAlias = Callable[[Any, Report], Any]
"""A function that does one job. With several workers, it must be defined in a module or in a script. Such a script must
start its own work under `if __name__ == "__main__":`, because the workers import it. A cluster takes any function."""


@dataclass(frozen=True)
class Pool:
    """Workers that do jobs.

    size  number of jobs that they do at a time
    do    function of (jobs, report) that yields the result of a job as soon as the job is done, so the order may vary
    """

    size: int
    do: Callable[[Sequence[Any], Report], Iterator[Any]]


@contextmanager
def pool(workers: int, play: Play) -> Iterator[Pool]:
    """Open a pool that does jobs in `workers` processes, or in the calling process if `workers` is 1.

    If `play` is defined in the calling script, the workers import this script, so its own work must be under
    `if __name__ == "__main__":`. Raise ExperimentError if a worker dies or cannot import the script.
    """
    if getattr(current_process(), "_inheriting", False):  # in a worker, during the import of the script
        raise SystemExit(1)
    if workers <= 1:
        yield Pool(1, lambda todo, report: (play(job, report) for job in todo))
        return
    if sys.platform == "win32":
        workers = min(workers, MAX_WORKERS_ON_WINDOWS)
    script = _script_of(play)
    context = get_context("spawn")
    lifeline, our_end = context.Pipe(duplex=False)
    team = _Team(script)
    try:
        with nullcontext() if script else _main_hidden(), _interrupts_wait():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                team.add(context.Process(target=_work, args=(play, theirs, lifeline)), ours)
                theirs.close()
        yield Pool(workers, team.do)
    except BaseException:
        our_end.close()  # ends workers that are in the middle of a job
        raise
    finally:
        team.dismiss()
        our_end.close()
        lifeline.close()


class _Team:
    """Worker processes, each with a pipe of its own.

    `ProcessPoolExecutor` has named semaphores. If something kills the process of Python that keeps the list of their
    names, a traceback for each name is printed; and a worker that is killed may hold a semaphore for ever.
    """

    def __init__(self, script: str | None) -> None:
        self._script, self._has_started = script, False
        self._processes: list[BaseProcess] = []
        self._connections: list[Connection] = []
        self._free: list[Connection] = []

    def add(self, process: BaseProcess, connection: Connection) -> None:
        """Start a worker."""
        self._connections.append(connection)
        process.start()
        self._processes.append(process)

    def do(self, todo: Sequence[Any], report: Report) -> Iterator[Any]:
        """See `Pool`."""
        jobs, num_left = deque(todo), len(todo)
        while num_left:
            errors = []
            for connection, message in self._messages(jobs):
                if isinstance(message, int):
                    report(message)
                elif isinstance(message, Exception):
                    errors.append(message)
                else:
                    self._has_started = True
                    self._free.append(connection)
                    if message is not None:
                        num_left -= 1
                        yield message
            if errors:  # only now, so that no finished job is lost
                raise errors[0]

    def dismiss(self) -> None:
        """Let all workers end, and wait for them."""
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join()

    def _messages(self, jobs: deque[Any]) -> list[tuple[Connection, Any]]:
        """Give jobs to free workers. Return the next messages of workers, see `_work`; an error for a dead worker."""
        messages: list[tuple[Connection, Any]] = []
        while self._free and jobs:
            with suppress(ConnectionError):  # the worker is dead, which `recv` tells
                self._free.pop().send(jobs.popleft())
        # On Windows, a connection whose worker dies while it starts has no end.
        ready = wait([*self._connections, *(process.sentinel for process in self._processes)])
        for process, connection in zip(self._processes, self._connections, strict=True):
            try:
                if connection in ready or (process.sentinel in ready and connection.poll()):
                    messages.append((connection, connection.recv()))
                elif process.sentinel in ready:
                    raise EOFError
            except (EOFError, OSError):
                messages.append((connection, _explained(None if self._has_started else self._script)))
        return messages


def _explained(script: str | None) -> ExperimentError:
    """Return the error for a pool with a dead worker.

    The worker could not import the script `script`. If `script` is None, the worker died for another reason.
    """
    if script is None:
        return ExperimentError(
            "expected all workers to finish, but one died, perhaps because it had too little memory; run the command "
            "again with fewer --workers, it continues after the finished trials"
        )
    return ExperimentError(
        f"expected workers that can import {script} with the function `play`, but a worker ended during the import; "
        'put the code that the script runs under `if __name__ == "__main__":`, or move `play` to another module'
    )


def _script_of(play: Play) -> str | None:
    """Return the script that workers must import because it defines `play`.

    Return None if `play` is defined in an imported module. A module that is run with `python -m` counts as a script.
    Raise ExperimentError if `play` is defined in a notebook or on standard input, since workers cannot import these.
    """
    if b"__main__" not in pickle.dumps(play):
        return None
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is None and not (file and Path(file).is_file()):
        raise ExperimentError(
            "expected a function that workers can import, got a function of a notebook or of standard input; "
            "move it to a file and import it from there, or use one worker"
        )
    return str(file or spec)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Prevent processes that start within this context from importing the calling script."""
    main = vars(sys.modules["__main__"])
    hidden: dict[str, object] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay Ctrl-C until the end of this context, and block it in processes that start within the context.

    Without this, each of these processes would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # else the first process starts it, which ends the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(play: Play, connection: Connection, lifeline: Connection) -> None:
    """Do jobs that come over the connection until it is closed.

    Messages to the caller: first None; then a number of steps, the result of a job, or the error of a job.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # needed on Windows, where `_interrupts_wait` does nothing
    threading.Thread(target=_end_with_the_caller, args=(lifeline,), daemon=True).start()
    steps = Steps(connection.send)
    with suppress(EOFError, ConnectionError):
        connection.send(None)
        while True:
            answer = result_or_error(play, connection.recv(), steps)
            steps.tell()
            connection.send_bytes(answer)


def result_or_error(play: Play, job: Any, report: Report) -> bytes:
    """Do a job. Return the pickled result, or the pickled error."""
    try:
        return pickle.dumps(play(job, report))
    except Exception as error:
        text = traceback.format_exc()
        error.add_note(f"in a worker process:\n{text}")
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # an error whose arguments are not those of its class pickles, but does not come back
            return pickled
        except Exception:
            return pickle.dumps(ExperimentError(f"expected a job without errors, got in a worker process:\n{text}"))


class Steps:
    """The steps of a job. They are sent to the caller at most every PROGRESS_SECONDS, except for the last ones."""

    def __init__(self, send: Callable[[int], object]) -> None:
        self._send, self._untold, self._told = send, 0, 0.0

    def __call__(self, steps: int) -> None:
        self._untold += steps
        if time.monotonic() - self._told >= PROGRESS_SECONDS:
            self.tell()

    def tell(self) -> None:
        """Send the number of steps since the last time."""
        self._send(self._untold)
        self._untold, self._told = 0, time.monotonic()


def _end_with_the_caller(lifeline: Connection) -> None:
    """End the worker when the caller's end of the pipe closes.

    This happens when the caller is done, is interrupted, or is killed. Without this function, the workers of a killed
    caller would wait for ever.
    """
    with suppress(OSError):
        lifeline.poll(None)
    os._exit(1)
