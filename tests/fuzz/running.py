"""Running a fuzzer, in a process of its own, until its time is over or an example fails."""

from __future__ import annotations

import multiprocessing
import sys
import time
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from evaluators import Unfit
from fuzz.fuzzer import Check, Fuzzer, store
from fuzz.fuzzers import EVERY

TOLD_EVERY = 30  # seconds


def fuzz(name: str, minutes: float, seed: int, beside: Path) -> None:
    """Draws and checks examples until the time is over or one fails; ends the process with status 1 then."""
    fuzzer = EVERY[name]
    with fuzzer.checking() as check:
        failed = first_failed(name, fuzzer, check, minutes, seed, beside)
    if failed is not None:
        report(name, *failed)


def first_failed(
    name: str, fuzzer: Fuzzer, check: Check, minutes: float, seed: int, beside: Path
) -> tuple[int, Exception] | None:
    """The seed of the first example that fails, and its error; None if the time is over before."""
    begin = told = time.monotonic()
    failed, unfit = None, 0
    for number in count():
        now = time.monotonic()
        is_over = failed is not None or now - begin > 60 * minutes
        if is_over or now - told > TOLD_EVERY:
            told = now
            tell(name, seed, number, unfit, now - begin, getattr(check, "figures", ""))
        if is_over:
            break
        beside.write_text(str(seed + number))
        try:
            check(fuzzer.draw(Random(seed + number)))
        except Unfit:
            unfit += 1
        except Exception as error:
            failed = seed + number, error
    return failed


def tell(name: str, seed: int, number: int, unfit: int, seconds: float, figures: object) -> None:
    rate = f"{number} examples, {number / max(seconds, 1e-9):.1f}/s, {unfit} unfit"
    print(f"{name:9} seeds {seed} to {seed + number - 1}: {rate}; {figures}".rstrip("; "), flush=True)


def report(name: str, seed: int, error: Exception) -> None:
    """Says what was found, cuts it down, stores it and ends."""
    print(f"{name:9} seed {seed}: {type(error).__name__}: {str(error)[:500]}\n{name:9} cutting it down ..", flush=True)
    fuzzer = EVERY[name]
    place = store(name, fuzzer.reduced(fuzzer.draw(Random(seed))), f"seed{seed}")
    print(f"{name:9} found: {place}", flush=True)
    sys.exit(1)


def run(name: str, minutes: float, seed: int) -> bool:
    """Runs a fuzzer in a process of its own, which machine code may bring down; whether it found nothing."""
    with TemporaryDirectory() as folder:
        beside = Path(folder) / "seed"
        process = multiprocessing.get_context("spawn").Process(target=fuzz, args=(name, minutes, seed, beside))
        process.start()
        process.join()
        if process.exitcode is not None and process.exitcode < 0:
            last = int(beside.read_text())
            place = store(name, EVERY[name].draw(Random(last)), f"seed{last}")
            print(f"{name:9} seed {last} ends the process with signal {-process.exitcode}: {place}", flush=True)
    return process.exitcode == 0
