"""Measure start-up time and memory of games: `python benchmarks/startup.py FOLDER`, a folder of rulesheets.

FOLDER has files NAME.kif or, as the public repository of GGP games, folders NAME with such files: `war/root/games` of a
clone of https://github.com/ggp-org/ggp-repository. `src/gamelore/rulesheets` has the shipped games.

Each rulesheet is loaded twice, each time by a new process, with a cache folder that is empty at first. The time is
wall-clock time from the text to the first legal moves. It includes lazy imports of gamelore, but not the start of
Python and `import gamelore`. Memory is the peak of the process. `--csv FILE` writes every row.
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
    """Measure one start in this process."""
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
    """Measure one start in a new process."""
    environment = {**os.environ, "GAMELORE_CACHE": str(cache)}
    command = [sys.executable, __file__, "--one", str(sheet)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def show(title: str, rows: list[dict[str, Any]]) -> None:
    seconds = np.array([row["seconds"] for row in rows])
    slowest = sorted(rows, key=lambda row: -row["seconds"])[:6]
    median, most, peak = np.median(seconds), np.quantile(seconds, 0.95), max(row["megabytes"] for row in rows)
    print(f"{title}: median {median:.3f} s, 95 % within {most:.2f} s, peak {peak:.0f} MB; the slowest:")
    print("   ", ", ".join(f"{row['sheet']} {row['seconds']:.1f} s" for row in slowest))


def main(
    folder: Annotated[
        Path, typer.Argument(exists=True, help="A folder of rulesheets, NAME.kif or NAME/NAME.kif, or one rulesheet.")
    ],
    table: Annotated[Path | None, typer.Option("--csv", help="Write every row as CSV.")] = None,
    one: Annotated[bool, typer.Option("--one", hidden=True)] = False,
) -> None:
    """Measure start-up time, cold and from the cache, and memory of games."""
    if one:
        print(json.dumps(measured(folder)))
        return
    sheets = sorted([*folder.glob("*.kif")] or folder.glob("*/*.kif")) if folder.is_dir() else [folder]
    if not sheets:
        raise typer.BadParameter(f"expected a folder of rulesheets, NAME.kif or NAME/NAME.kif, got none in {folder}")
    rows: dict[str, list[dict[str, Any]]] = {"cold": [], "cached": []}
    for sheet in track(sheets, "starting games"):
        with TemporaryDirectory() as cache:
            for start, measurements in rows.items():
                measurements.append({"sheet": sheet.stem, "start": start, **started(sheet, Path(cache))})
    reasoned = [row for row in rows["cold"] if row["engine"] != "native"]
    print(f"{len(sheets)} sheets, {len(sheets) - len(reasoned)} native; on the reasoner:")
    for row in reasoned:
        print(f"    {row['sheet']}: {row['reason']}")
    for start, measurements in rows.items():
        show(start, measurements)
    if table:
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows["cold"][0]))
            writer.writeheader()
            writer.writerows(rows["cold"] + rows["cached"])


if __name__ == "__main__":
    typer.run(main)
