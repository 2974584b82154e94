"""The side of a child process of the pool: answer requests, and limit memory and processor time.

A child process reads requests from standard input. Each request is one line with a JSON object, {"do": name, ..}. The
process answers each request with one line, {"ok": value} or {"error": kind, ..}. The first request creates an object;
all later requests call its methods. Rules from the network are untrusted, so the process sets limits on its own memory
and processor time. When it exceeds the memory, it exits with OUT_OF_MEMORY. When it exceeds the processor time, the
system kills it (SIGXCPU). The pool kills the process when a request takes too long for any other reason.

The pipes of standard input and standard output carry only requests and answers. So the output of a player goes to
standard error, and the player's standard input is empty.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple, Protocol

from .. import errors
from ..errors import GameloreError, GDLError, player_bug
from ..gdl.limits import Limits

OUT_OF_MEMORY = 70  # exit code
PIPE_BYTES = 1 << 16  # bytes that are read at once
MAX_LINE = 16_000_000  # maximum bytes of a request or an answer
LITERAL = 250  # approximate bytes for a ground literal and all data derived from it
LOADING = 0.4  # share of the preparation time, and of the memory, for loading; then kernels and players are prepared


class Advanced(NamedTuple):
    """The present state of a match for its player.

    legal               the role's legal moves in action order; empty if the match is over, or if no position fits the
                        reports
    ply                 number of joint moves so far, including missed ones
    end                 None while the match runs, else "terminal", "stuck" or "cap"; the host may go on after "cap"
    is_desynchronised   whether a turn was missed
    """

    legal: tuple[str, ...]
    ply: int
    end: str | None
    is_desynchronised: bool


class Ended(NamedTuple):
    """The end of a match.

    end                as in `Advanced`; None if the host stopped the match before its end
    goals              goals by role; None for no goal
    is_desynchronised  whether a turn was missed
    is_learned         whether a lasting player has stored the match on disk, to learn from it. False if the host
                       stopped the match before its end, if the match is desynchronised, or if the player does not
                       learn at present.
    about              what a player that remembers has played with, and why
    """

    end: str | None
    goals: tuple[int | None, ...]
    is_desynchronised: bool
    is_learned: bool
    about: str = ""


class Answering(Protocol):
    """An object whose methods are called by requests. `is_lasting` is the answer to the first request."""

    is_lasting: bool

    def idle(self) -> bool:
        """Use a moment between two requests; return False if there is nothing to do until the next request."""
        ...


def limits_within(memory: int, prepare_seconds: float, rehearses: bool = True) -> Limits:
    """Return the limits of loading for a process with this memory in bytes and this time to prepare a game."""
    usual = Limits()
    seconds, literals = min(usual.seconds, LOADING * prepare_seconds), min(usual.literals, memory // LITERAL)
    return Limits(seconds, literals, min(usual.memory, int(LOADING * memory)), rehearses)


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Let the system kill the process if the `with` block uses more processor time than `seconds`."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft, hard = _lowered(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


def answer_requests(create: Callable[..., Answering]) -> None:
    """Answer requests until the input ends. The first request has the arguments of `create`, among them `memory`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_the_parent()
    requests, answers = _pipes()
    created: Answering | None = None

    def ask(do: str, **given: Any) -> Any:
        nonlocal created
        if created is not None:
            return getattr(created, do)(**given)
        _limit(given["memory"])
        created = create(**given)
        return created.is_lasting

    try:
        for line in _lines(requests, lambda: created is not None and created.idle()):
            answers.write(_line(answer(ask, json.loads(line))) + "\n")
            answers.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:  # the process of the pool has ended
        os._exit(1)


def answer(ask: Callable[..., Any], request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request. Turn every error except MemoryError into an answer."""
    try:
        return {"ok": ask(**request)}
    except MemoryError:
        raise
    except GDLError as error:
        place = {name: getattr(error, name) for name in ("message", "line", "column", "rule", "remedy")}
        return {"error": type(error).__name__, **place}
    except GameloreError as error:
        if bug := player_bug(error):
            _print(bug)
        return {"error": type(error).__name__, "message": str(error)}
    except Exception as error:  # most likely an error in the code of the player
        _print(player_bug(error) or traceback.format_exc())
        return {"error": "GameloreError", "message": f"the player failed with {type(error).__name__}: {error}"}


def error_of(error: str, message: str, **place: Any) -> GameloreError:
    """Return the error in an answer. An error of an unknown kind becomes a GameloreError."""
    kind: type[GameloreError] = getattr(errors, error, GameloreError)
    return kind(message, **place) if issubclass(kind, GDLError) else kind(message)


def _limit(memory: int) -> None:
    """Limit the address space to `memory` bytes, and disable core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most, _ = _lowered(resource.RLIMIT_AS, memory)
    refusals = () if sys.platform == "linux" else (ValueError, OSError)  # macOS may refuse the limit
    with suppress(*refusals):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _lowered(limit: int, most: int) -> tuple[int, int]:
    """Return a soft value for a system limit, at most `most`, and the present hard value."""
    _, hard = resource.getrlimit(limit)
    return most if hard == resource.RLIM_INFINITY else min(most, hard), hard


def end_with_the_parent() -> None:
    """Let Linux kill this process when its parent ends; on other systems it ends when it next reads a request."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def set_process_name(name: str) -> None:
    """Set the name of this process on Linux, for programs that list processes. Only 15 characters are kept."""
    if sys.platform == "linux":
        set_name = 15
        ctypes.CDLL(None).prctl(set_name, name.encode())


def _lines(pipe: int, idle: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the lines from a pipe. While there is no line, call `idle` until it returns False."""
    received = b""
    while True:
        line, end, received = received.partition(b"\n")
        if end:
            yield line
            continue
        while not select.select([pipe], [], [], 0)[0] and idle():
            pass
        part = os.read(pipe, PIPE_BYTES)
        if not part:
            return
        received = line + part


def _pipes() -> tuple[int, IO[str]]:
    """Move requests and answers to new file descriptors. Return (descriptor of the requests, stream for the answers).

    A player then has an empty standard input, and its output goes to standard error.
    """
    requests, answers = os.dup(0), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def _print(text: str) -> None:
    """Print a text on standard error, without control characters."""
    print("".join(mark if mark.isprintable() or mark == "\n" else "?" for mark in text), file=sys.stderr, flush=True)


def _line(answer: dict[str, Any]) -> str:
    line = json.dumps(answer)
    if len(line) < MAX_LINE:
        return line
    message = f"expected an answer of at most {MAX_LINE} bytes, got {len(line)}; the position has too many moves"
    return json.dumps({"error": "GameloreError", "message": message})
