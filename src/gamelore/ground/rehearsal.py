"""Rehearsal: grounding in a process of its own, to find out how far clingo comes within the limits.

Nothing stops clingo while it joins conditions without a new ground rule. But a process can be ended. `rehearse` runs
this file as a program, `python -P rehearsal.py`, which reads one JSON object from standard input:

    texts     the parts of a clingo program: names, parameters and rules
    parts     the parts to ground after the part `base`, with the values of their parameters
    seconds   processor time; the system ends the process after it
    memory    bytes by which the process may grow, where the system can limit it
    literals  number of literals in ground rules

It writes how it ended, its number of ground rules, and its seconds of processor time, see `Rehearsed`.

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
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

Text: TypeAlias = tuple[str, Sequence[str], str]
"""Part of a clingo program: its name, the names of its parameters, and its rules."""
End: TypeAlias = Literal["ended", "time", "memory", "literals", "held"]
NEARLY = 0.9  # part of the time after which the next ground rule ends the process
RULES_BETWEEN_LOOKS = 64
LEAST_SECONDS, MOST_SECONDS = 0.01, 1e6  # what a timer of the system takes
HAS_TIMER = hasattr(signal, "setitimer")  # not on Windows, where wall-clock time counts instead


class Rehearsed(NamedTuple):
    """Outcome of a rehearsal.

    end: "ended" if clingo came to an end; "held" if it joined without a new ground rule when the time was over; else
        the limit that was used up when it reported a ground rule.
    num_rules: number of ground rules until then, without those of the part `base` if other parts were ground.
    seconds: processor time.
    """

    end: End
    num_rules: int
    seconds: float


def rehearse(
    texts: Sequence[Text], parts: Sequence[tuple[str, Sequence[int]]], seconds: float, memory: int, literals: int
) -> Rehearsed:
    """Ground parts of a program in another process.

    A process that cannot be started, or that meets a mistake in the program, counts as ended: the grounding itself
    tells what is wrong.

    Args:
        texts: the program.
        parts: the names of the parts to ground, and the values of their parameters.
        seconds: limit of processor time.
        memory: limit of memory in bytes.
        literals: limit of literals in ground rules.

    Returns:
        How clingo ended, and when.
    """
    seconds = min(max(seconds, LEAST_SECONDS), MOST_SECONDS)
    asked = {"texts": texts, "parts": parts, "seconds": seconds, "memory": memory, "literals": literals}
    if not sys.executable:  # Python is a part of another program
        return Rehearsed("ended", 0, 0.0)
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
        return Rehearsed("held", 0, seconds)
    except OSError:
        return Rehearsed("ended", 0, 0.0)
    *_, last = "", *done.stdout.splitlines()
    end, *numbers = last.split() or [""]
    if end in get_args(End):
        return Rehearsed(cast(End, end), int(numbers[0]), float(numbers[1]))
    return Rehearsed("held" if done.returncode < 0 else "ended", 0, seconds)  # ended by a signal, or by a mistake


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


class _Observer:
    """Observer that ends the process as soon as clingo reports a ground rule beyond a limit."""

    def __init__(self, seconds: float, literals: int) -> None:
        self.until = time.process_time() + seconds
        self.literals, self.num_rules = literals, 0

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        """Count a ground rule, as `clingo.Grounding` does. clingo calls this method for every ground rule."""
        if not choice:
            self.literals -= len(body) + 1
        self.num_rules += 1
        if self.literals < 0:
            self.end("literals")
        if not self.num_rules % RULES_BETWEEN_LOOKS and time.process_time() > self.until:
            self.end("time")

    def end(self, end: End) -> None:
        """Tell the outcome, and end without freeing the ground program, which may be large."""
        sys.stdout.write(f"\n{end} {self.num_rules} {time.process_time()}")
        sys.stdout.flush()
        os._exit(0)


def _ground(asked: dict[str, Any]) -> None:
    import clingo

    _limit(asked["seconds"], asked["memory"])
    made = clingo.Control(["--warn=none"], message_limit=0)
    observer: Any = _Observer(NEARLY * asked["seconds"], asked["literals"])
    made.register_observer(observer, replace=True)
    try:
        for name, parameters, rules in asked["texts"]:
            made.add(name, parameters, rules)
        made.ground([("base", ())])
        if asked["parts"] != [["base", []]]:
            observer.num_rules = 0
            made.ground([(name, [clingo.Number(value) for value in values]) for name, values in asked["parts"]])
    except MemoryError:
        observer.end("memory")
    observer.end("ended")


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):
        _ground(json.load(sys.stdin.buffer))
