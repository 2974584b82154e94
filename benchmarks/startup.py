"""How long games take to start, and in how much memory: `python benchmarks/startup.py ../shared/games`.

Each rulesheet is loaded twice, each time by a new process, with a cache folder that is empty at first. Counted is
the clock from the text to the first legal moves: with what gamelore imports on the way, without `import gamelore` and
the start of Python. Memory is the peak of the process. `--csv FILE` writes every row.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import track


def measured(sheet: Path) -> dict[str, Any]:
    """One start, here."""
    import gamelore

    start = time.perf_counter()
    game = gamelore.load(sheet)
    legal = game.start().legal
    seconds = time.perf_counter() - start
    assert legal.keys() == set(game.roles)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gates = game.circuit.num_gates if game.circuit else None
    return {"engine": game.engine, "reason": game.engine_reason, "gates": gates, "seconds": seconds, "megabytes": peak}


def started(sheet: Path, cache: Path) -> dict[str, Any]:
    """One start in a new process."""
    environment = {**os.environ, "GAMELORE_CACHE": str(cache)}
    command = [sys.executable, __file__, "--one", str(sheet)]
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    row: dict[str, Any] = json.loads(told.stdout)
    return row


def show(title: str, rows: list[dict[str, Any]]) -> None:
    seconds = np.array([row["seconds"] for row in rows])
    slowest = sorted(rows, key=lambda row: -row["seconds"])[:6]
    median, most, peak = np.median(seconds), np.quantile(seconds, 0.95), max(row["megabytes"] for row in rows)
    print(f"{title}: median {median:.3f} s, 95 % within {most:.2f} s, peak {peak:.0f} MB; the slowest:")
    print("   ", ", ".join(f"{row['sheet']} {row['seconds']:.1f} s" for row in slowest))


def main(
    folder: Annotated[Path, typer.Argument(exists=True, help="Rulesheets, *.kif, or one of them.")],
    table: Annotated[Path | None, typer.Option("--csv", help="Every row, as a table.")] = None,
    one: Annotated[bool, typer.Option("--one", hidden=True)] = False,
) -> None:
    """How long games take to start, cold and from the cache, and in how much memory."""
    if one:
        print(json.dumps(measured(folder)))
        return
    sheets = sorted(folder.glob("*.kif")) if folder.is_dir() else [folder]
    rows: dict[str, list[dict[str, Any]]] = {"cold": [], "cached": []}
    for sheet in track(sheets, "starting games"):
        with TemporaryDirectory() as cache:
            for start, found in rows.items():
                found.append({"sheet": sheet.stem, "start": start, **started(sheet, Path(cache))})
    reasoned = [row for row in rows["cold"] if row["engine"] != "native"]
    print(f"{len(sheets)} sheets, {len(sheets) - len(reasoned)} native; on the reasoner:")
    for row in reasoned:
        print(f"    {row['sheet']}: {row['reason']}")
    for start, found in rows.items():
        show(start, found)
    if table:
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows["cold"][0]))
            writer.writeheader()
            writer.writerows(rows["cold"] + rows["cached"])


if __name__ == "__main__":
    typer.run(main)
