"""Running a fuzzer, in a process of its own, until its time is over or an example fails.

An example that fails is stored at once, and cut down later. If the process ends badly, which machine code, a limit of
processor time or the end of a session may cause, its last example is stored.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import traceback
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from evaluators import Unfit
from fuzz.fuzzer import Check, Fuzzer, load, store, write
from fuzz.fuzzers import EVERY

TOLD_EVERY = 30  # seconds
START = "spawn"  # how the process of a fuzzer starts: numba's threads do not survive a fork


def fuzz(name: str, minutes: float, seed: int, present: Path) -> None:
    """Draw and check examples until the time is over or one fails; end the process with status 1 then.

    The folder `present` has the present example in a file seedN. It is empty after a good end.
    """
    fuzzer, failed = EVERY[name], None
    try:
        with fuzzer.checking() as check:
            failed = first_failed(name, fuzzer, check, minutes, seed, present)
    except Exception:
        if failed is None:
            raise
        traceback.print_exc()
    if failed is not None:
        cut_down(name, failed)
    empty(present)
    sys.exit(failed is not None)


def first_failed(name: str, fuzzer: Fuzzer, check: Check, minutes: float, seed: int, present: Path) -> int | None:
    """Store the first example that fails; return its seed. Return None if the time, or the parent, is over before."""
    begin = told = time.monotonic()
    failed, unfit = None, 0
    for number in count():
        now = time.monotonic()
        is_over = failed is not None or now - begin > 60 * minutes or is_orphan()
        if is_over or now - told > TOLD_EVERY:
            told = now
            tell(name, seed, number, unfit, now - begin, getattr(check, "figures", ""))
        if is_over:
            break
        try:
            check(drawn(fuzzer, seed + number, present))
        except Unfit:
            unfit += 1
        except Exception as error:
            failed = seed + number
            keep(name, present, f"{type(error).__name__}: {str(error)[:500]}")
    return failed


def is_orphan() -> bool:
    """Return whether the process that started this one has ended, as after a SIGTERM."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def drawn(fuzzer: Fuzzer, seed: int, present: Path) -> Any:
    """Draw an example, and write it into the folder. Before, only its seed is written: drawing may end the process."""
    empty(present)
    (present / f"seed{seed}").touch()
    example = fuzzer.draw(Random(seed))
    write(example, present / f"seed{seed}")
    return example


def empty(present: Path) -> None:
    for path in present.iterdir():
        path.unlink()


def keep(name: str, present: Path, what: str) -> bool:
    """Say what came of the present example, and store it. Return False if there is none."""
    paths = sorted(present.iterdir(), key=lambda path: path.suffix)
    if not paths:
        return False
    print(f"{name:9} {paths[0].stem}: {what}", flush=True)
    if paths[-1].suffix:
        print(f"{name:9} found: {store(name, load(paths[-1]), paths[-1].stem)}", flush=True)
    empty(present)
    return True


def tell(name: str, seed: int, number: int, unfit: int, seconds: float, figures: object) -> None:
    rate = f"{number} examples, {number / max(seconds, 1e-9):.1f}/s, {unfit} unfit"
    print(f"{name:9} seeds {seed} to {seed + number - 1}: {rate}; {figures}".rstrip("; "), flush=True)


def cut_down(name: str, seed: int) -> None:
    """Store a smaller example that fails, too, in place of the one of this seed."""
    print(f"{name:9} cutting it down ..", flush=True)
    fuzzer = EVERY[name]
    store(name, fuzzer.reduced(fuzzer.draw(Random(seed))), f"seed{seed}")


def run(name: str, minutes: float, seed: int) -> bool:
    """Run a fuzzer in a process of its own; return whether it found nothing."""
    with TemporaryDirectory(prefix=f"gamelore-fuzz-{name}-") as folder:
        present = Path(folder)
        print(f"{name:9} from seed {seed}; the present example is in {present}", flush=True)
        process = multiprocessing.get_context(START).Process(target=fuzz, args=(name, minutes, seed, present))
        process.start()
        process.join()
        code = process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return not keep(name, present, f"the process ended with {how}") and not code
