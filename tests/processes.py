"""Children, memory, open files and delays of processes, as the folder /proc of Linux shows them."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import pytest

OPEN = ("01", "03", "08")  # established, not yet accepted, closed by the other side
GONE = (FileNotFoundError, ProcessLookupError)


class Process(NamedTuple):
    """A process; its start, in ticks since the machine started, tells it from a later one with the same id."""

    pid: int
    start: int

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; one that has ended but was not waited for does not."""
        state, start = _state_and_start(self.pid)
        return start == self.start and state not in "ZX"


def _state_and_start(pid: int) -> tuple[str, int]:
    """Return the state of a process, one letter, and its start; X and 0 if there is no such process."""
    with suppress(*GONE):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], int(fields[19])
    return "X", 0


def children(pid: int) -> list[int]:
    """Return the ids of the children of a process."""
    if not Path("/proc").exists():
        pytest.skip("no /proc: the processes are looked up there")
    pids: list[int] = []
    with suppress(*GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*GONE):  # a thread that has ended meanwhile
                pids += map(int, (task / "children").read_text().split())
    return pids


def descendants(pid: int) -> list[Process]:
    """Return the children of a process, their children and so on."""
    pids = children(pid)
    for child in pids:
        pids += children(child)
    return [Process(child, _state_and_start(child)[1]) for child in pids]


def command_of(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def name_of(pid: int) -> str:
    """Return the name of a process, at most 15 characters; empty if it has ended.

    A child of a fork server has the name of its module.
    """
    with suppress(*GONE):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def descendants_named(pid: int, *names: str) -> list[int]:
    """Return the ids of the descendants of a process that have one of these names, see `name_of`."""
    return [child.pid for child in descendants(pid) if name_of(child.pid) in {name[:15] for name in names}]


def resident(pid: int) -> int:
    """Return the bytes of memory that a process has; 0 if it has ended."""
    with suppress(*GONE):
        kilobytes = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(kilobytes[0]) << 10 if kilobytes else 0
    return 0


def num_open_files(pid: int) -> int:
    """Return the number of open file descriptors of a process; 0 if it has ended."""
    with suppress(*GONE):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def num_connections(port: int) -> int:
    """Return the number of connections to a port of this machine that its listener has not closed yet."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(local.endswith(f":{port:04X}") and state in OPEN for _, local, _, state, *_ in rows)


def waited(pid: int) -> float:
    """Return the seconds for which the first thread of a process could have run, but had no processor; 0 if unknown."""
    with suppress(*GONE):
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class Delays:
    """How long this process was held up: a thread sleeps for short times, and adds up by how much it wakes too late.

    What holds it up may be other processes, other threads of this one, or other virtual machines.
    """

    TICK = 0.05  # seconds

    def __init__(self) -> None:
        self._total, self._woken = 0.0, time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """The sum so far, with the sleep that goes on."""
        return self._total + max(0.0, time.monotonic() - self._woken - self.TICK)

    def _tick(self) -> None:
        self._woken = time.monotonic()
        while not self._over.wait(self.TICK):
            self._total, self._woken = self.seconds, time.monotonic()


def wait_until(holds: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until something holds; fail with `expected {what}` if it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"expected {what} within {seconds:g} s"
        time.sleep(0.02)
