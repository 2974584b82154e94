"""The main job with fewer runs: tic-tac-toe learned, three games played better (or not), and a report. `make demo`."""

from __future__ import annotations

import time
from pathlib import Path

from .banerjee2007 import SEED, reproduce
from .report import ReportPaths

RUNS = 5
PARTS = ("core", "controls", "sweep")


def demo(
    out: Path | str = "report", *, runs: int = RUNS, matches: int = 3000, seed: int = SEED, workers: int = 2,
    progress: bool = True,
) -> ReportPaths:  # fmt: skip
    """`reproduce` in the reading "figures" with `runs` runs and without the sensitivity rows."""
    return reproduce(
        out, "figures", runs=runs, matches=matches, seed=seed, workers=workers, progress=progress, parts=PARTS
    )


def main() -> None:
    """Runs the demo and says where its report is."""
    begin = time.perf_counter()
    report = demo()
    print(f"\n{report.headline}\n\nreport: {report.html} (and {report.markdown}), {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
