"""Program of a process that grounds rules only to find out whether clingo comes to an end: `python -P rehearsal.py`.

Nothing can stop clingo while it joins conditions without a new ground rule. A process can be ended, so `clingo.py` lets
one ground what may join for long. The process reads one JSON object from standard input:

    texts     the program: names, parameters and rules of its parts
    parts     the parts to ground, in this order, with the values of their parameters: whole numbers
    seconds   processor time; the system ends the process after it
    memory    bytes by which the process may grow, where the system can limit it
    literals  number of literals in ground rules

It writes its seconds of processor time, and exits with 0, if clingo ends, or if it gives ground rules, at which it can
be stopped, when the literals or nearly all of the time is used up. It exits with OUT_OF_MEMORY if it needs more memory.

This module imports nothing of gamelore, so that the process starts in some hundredths of a second.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

OUT_OF_MEMORY = 3
NEARLY = 0.9  # part of the time after which the next ground rule ends the process
BETWEEN_LOOKS = 64  # ground rules


def _limit(seconds: float, memory: int) -> None:
    """Let the system end this process after its time, and refuse memory beyond its limit. Windows does neither."""
    try:
        import resource
        import signal
    except ImportError:
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with open("/proc/self/statm", "rb") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + memory
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _end(code: int) -> None:
    """End without freeing the ground program, which may be large."""
    sys.stdout.write(f"{time.process_time()}")
    sys.stdout.flush()
    os._exit(code)


class _Observer:
    """Observer that ends the process as soon as clingo gives a ground rule beyond a limit."""

    def __init__(self, seconds: float, literals: int) -> None:
        self.seconds, self.literals, self.num_rules = seconds, literals, 0

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        """Count a ground rule. clingo calls this method for every ground rule."""
        self.literals -= len(body) + 1
        self.num_rules += 1
        late = not self.num_rules % BETWEEN_LOOKS and time.process_time() > self.seconds
        if late or self.literals < 0:
            _end(0)


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
    try:
        _ground(json.load(sys.stdin.buffer))
    except MemoryError:
        _end(OUT_OF_MEMORY)
    _end(0)
