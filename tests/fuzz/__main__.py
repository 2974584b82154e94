"""`make fuzz` and `make hostile`: every fuzzer for some minutes. What is found is cut down and stored for the tests.

Examples are drawn from seeds that follow each other: `make fuzz FUZZERS=programs SEED=123` begins with that one again.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fuzz.fuzzers import EVERY, FUZZERS
from fuzz.hostile import HOSTILE
from fuzz.running import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("fuzzers", nargs="*", metavar="FUZZER", help=f"of {', '.join(EVERY)}")
    parser.add_argument("--hostile", action="store_true", help="the hostile ones, unless others are named")
    parser.add_argument("--minutes", type=float, default=10, help="for each fuzzer (10)")
    parser.add_argument("--seed", type=int, help="the first one; drawn unless given")
    parser.add_argument("--jobs", type=int, default=1, help="fuzzers that run at the same time (1)")
    options = parser.parse_args()
    unknown = set(options.fuzzers) - EVERY.keys()
    if unknown:
        parser.error(f"expected fuzzers of {', '.join(EVERY)}, got {', '.join(sorted(unknown))}")
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    names = options.fuzzers or (HOSTILE if options.hostile else FUZZERS)
    with ThreadPoolExecutor(options.jobs) as pool:
        quiet = list(pool.map(partial(run, minutes=options.minutes, seed=seed), names))
    sys.exit(not all(quiet))


if __name__ == "__main__":
    main()
