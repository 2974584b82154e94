"""Rehearsal: grounding in a process of its own, only to find out whether clingo can be stopped within the limits.

Nothing stops clingo while it joins conditions without a new ground rule. But a process can be ended. `rehearse` runs
this file as a program, `python -P rehearsal.py`, which reads one JSON object from standard input:

    texts     the parts of a clingo program: names, parameters and rules
    parts     the parts to ground, in this order, with the values of their parameters
    seconds   processor time; the system ends the process after it
    memory    bytes by which the process may grow, where the system can limit it
    literals  number of literals in ground rules

It writes its seconds of processor time if clingo ends, or if it gives ground rules, at which it can be stopped, when
the literals, the memory or nearly all of the time is used up.

This module imports nothing of gamelore, so that the process starts in some hundredths of a second.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

Text: TypeAlias = tuple[str, Sequence[str], str]
"""Part of a clingo program: its name, the names of its parameters, and its rules."""
NEARLY = 0.9  # part of the time after which the next ground rule ends the process
BETWEEN_LOOKS = 64  # ground rules
MOST_SECONDS = 1e6  # what a timer of the system takes
HAS_TIMER = hasattr(signal, "setitimer")  # not on Windows, where wall-clock time counts instead


def rehearse(
    texts: Sequence[Text], parts: Sequence[tuple[str, Sequence[int]]], seconds: float, memory: int, literals: int
) -> tuple[bool, float]:
    """Ground parts of a program in another process.

    Args:
        texts: the program.
        parts: the names of the parts to ground, and the values of their parameters.
        seconds: limit of processor time.
        memory: limit of memory in bytes.
        literals: limit of literals in ground rules.

    Returns:
        Whether a join without a ground rule used up the time, and the seconds of processor time. A process that could
        not do its work does not count: then the grounding itself tells why.
    """
    seconds = min(seconds, MOST_SECONDS)
    asked = {"texts": texts, "parts": parts, "seconds": seconds, "memory": memory, "literals": literals}
    try:
        done = subprocess.run(
            [sys.executable, "-P", __file__],
            input=json.dumps(asked),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            timeout=None if HAS_TIMER else seconds,
        )
    except subprocess.TimeoutExpired:
        return True, seconds
    except OSError:
        return False, 0.0
    if HAS_TIMER and done.returncode == -signal.SIGPROF:
        return True, seconds
    return False, float(done.stdout or 0)


def _limit(seconds: float, memory: int) -> None:
    """Let the system end this process after its time, and refuse memory beyond its limit, where it can."""
    if not HAS_TIMER:
        return
    import resource

    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with open("/proc/self/statm", "rb") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + memory
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _end() -> None:
    """Tell the time, and end without freeing the ground program, which may be large."""
    sys.stdout.write(f"{time.process_time()}")
    sys.stdout.flush()
    os._exit(0)


class _Observer:
    """Observer that ends the process as soon as clingo gives a ground rule beyond a limit."""

    def __init__(self, seconds: float, literals: int) -> None:
        self.seconds, self.literals, self.num_rules = seconds, literals, 0

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        """Count a ground rule. clingo calls this method for every ground rule."""
        self.literals -= len(body) + 1
        self.num_rules += 1
        is_late = not self.num_rules % BETWEEN_LOOKS and time.process_time() > self.seconds
        if is_late or self.literals < 0:
            _end()


def _ground(asked: dict[str, Any]) -> None:
    import clingo

    _limit(asked["seconds"], asked["memory"])
    made = clingo.Control(["--warn=none"], message_limit=0)
    observer: Any = _Observer(NEARLY * asked["seconds"], asked["literals"])
    made.register_observer(observer, replace=True)
    for name, parameters, rules in asked["texts"]:
        made.add(name, parameters, rules)
    made.ground([(name, [clingo.Number(value) for value in values]) for name, values in asked["parts"]])


if __name__ == "__main__":
    with suppress(MemoryError):
        _ground(json.load(sys.stdin.buffer))
    _end()
