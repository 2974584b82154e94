"""`gamelore serve` with a store, killed and started again at the same port; and what a kill may cost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, NamedTuple

from processes import Process, descendants, descendants_named, wait_until
from scripted_manager import Match
from wire import PATIENCE, port_of, say, start_server

LAG = 0.01  # seconds by which a kill may seem to come too early: times in records are in milliseconds


class Kill(NamedTuple):
    """What was killed, and the times before and after it, in seconds since 1970."""

    victim: str
    begin: float
    end: float


class RestartedServer:
    """A server that learns as the player baseline."""

    def __init__(self, store: Path, log: IO[str], *options: object) -> None:
        self._options = ("--player", "baseline", "--knowledge", store, *options)
        self._port, self._log = 0, log
        self._process: subprocess.Popen[str] | None = None
        self._left: list[Process] = []

    def start(self, *, loses_a_worker: bool = False) -> None:
        """Start the server, and wait until it listens. Kill its first worker as soon as it has one, if told so."""
        process = self.launch()
        if loses_a_worker:
            wait_until(lambda: bool(self.workers()), "a first worker", PATIENCE)
            os.kill(self.workers()[0], signal.SIGKILL)
        self._port = port_of(process)

    def launch(self) -> subprocess.Popen[str]:
        """Start the server, and do not wait until it listens."""
        self._process = start_server(*self._options, port=self._port, log=self._log)
        return self._process

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.poll() is None, f"expected the server to live, it ended: {self._process.returncode}"
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def send(self, message: str) -> str:
        """Return the reply to a message; empty if there is none."""
        try:
            return say(self._port, message)
        except (OSError, ValueError, AssertionError):  # no connection, or a reply that was cut off
            return ""

    def workers(self) -> list[int]:
        return descendants_named(self.pid, "worker")

    def followers(self) -> list[int]:
        return descendants_named(self.pid, "follower")

    def kill(self) -> Kill:
        """Kill the server. What it leaves behind must end by itself, see `assert_alone`."""
        begin = time.time()
        self.end(signal.SIGKILL)
        return Kill("server", begin, time.time())

    def end(self, how: signal.Signals) -> None:
        """Send a signal that ends the server."""
        assert self._process is not None
        process = self._process
        self._left += descendants(self.pid)
        process.send_signal(how)
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()
        self._process = None

    def assert_alone(self) -> None:
        """Assert that no process is left of servers that have ended."""
        wait_until(lambda: not any(child.is_alive for child in self._left), "no process to be left", PATIENCE)
        self._left.clear()


def is_cut_off(match: Match, kills: list[Kill]) -> bool:
    """Whether the server may not know the end of a match, because it was killed before it answered STOP."""
    return not match.is_finished and any(
        match.last - LAG <= kill.end and kill.begin <= match.over + LAG for kill in kills if kill.victim == "server"
    )
