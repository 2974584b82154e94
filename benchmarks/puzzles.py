"""Solve puzzles, the games with one role, against the clock: `python benchmarks/puzzles.py FOLDER --seconds 60`.

FOLDER has files NAME.kif or folders NAME with such files; it can also be one sheet. Each sheet is searched in a new
process, on one thread, until the value is proved or the time is over; loading and compiling count. A row is printed as
soon as a sheet is done: the highest goal of the sheet and the goal that was reached, when and by which method, the
number of moves, and whether the goal is proved to be the best. `--methods` searches with some of the methods only.

With `--csv FILE`, each sheet is also a row of a file. Sheets that are there already with the same limit, methods, seed
and version of the code are not searched again, except those that failed; `--version NAME` goes on with the rows of an
earlier version.

The sheets that `src/gamelore/lab/families.toml` calls sealed are left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gamelore.errors import GameloreError
from gamelore.gdl.syntax import parse
from gamelore.lab.duel import sealed_games
from gamelore.lab.experiment import code_version
from rows import append, read

SLICE = 0.05  # seconds; the time of a solution is known to so much
COLUMNS = ("sheet", "engine", "highest", "goal", "seconds", "method", "moves", "proved", "loading", "simulations")
FAILED = "failed"  # in place of an engine
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def solved(sheet: Path, seconds: float, methods: str, seed: int) -> dict[str, Any]:
    """Search a puzzle in this process; return a row."""
    import gamelore
    from gamelore.players.random_streams import stream
    from gamelore.puzzles.portfolio import METHODS, PuzzleSearch

    start = time.monotonic()
    game = gamelore.load(sheet)
    search = PuzzleSearch(game, methods=tuple(methods.split(",")) if methods else tuple(METHODS))
    search.begin(game.initial, stream(seed))
    loading, solution, at, simulations = time.monotonic() - start, None, 0.0, 0
    while not search.is_proved and time.monotonic() < start + seconds and search.is_running:
        simulations += search.run(deadline=time.monotonic() + SLICE, least_steps=1)
        if search.solution is not solution:
            solution, at = search.solution, time.monotonic() - start
    return {
        "sheet": sheet.stem,
        "engine": game.engine,
        "highest": search.top,
        "goal": solution.goal if solution else None,
        "seconds": round(at, 2),
        "method": solution.method if solution else None,
        "moves": len(solution.actions) if solution else None,
        "proved": search.is_proved,
        "loading": round(loading, 2),
        "simulations": simulations,
    }


def puzzles(folder: Path) -> list[Path]:
    """Return the sheets with one role."""
    sheets = []
    for path in sorted([*folder.glob("*.kif")] or folder.glob("*/*.kif")) if folder.is_dir() else [folder]:
        try:
            sheet = parse(path.read_text(encoding="utf-8", errors="replace"), path)
        except GameloreError:
            continue
        if len({str(rule.head) for rule in sheet.rules if rule.head.name == "role"}) != 1:
            continue
        if sheet.rules_hash in sealed_games():
            print(f"left out {path.stem}: it is sealed", flush=True)
            continue
        sheets.append(path)
    return sheets


def in_new_process(sheet: Path, *options: str) -> dict[str, Any]:
    """Return the row of a sheet; it says FAILED if the process ends with an error."""
    done = subprocess.run([sys.executable, __file__, str(sheet), "--one", *options], capture_output=True, text=True)
    if done.returncode:
        print(*done.stderr.splitlines()[-1:], file=sys.stderr)
        return dict.fromkeys(COLUMNS) | {"sheet": sheet.stem, "engine": FAILED}
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def settings_of(seconds: float, methods: str, seed: int, version: str) -> dict[str, str]:
    """Return the columns that tell how a sheet was searched."""
    return {"limit": f"{seconds:g}", "methods": methods or "all", "seed": str(seed), "version": version}


def kept(row: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the row of a sheet for the file."""
    return {**settings, **{column: "" if row[column] is None else str(row[column]) for column in COLUMNS}}


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets")],
    seconds: Annotated[float, typer.Option(help="time for each sheet")] = 60.0,
    methods: Annotated[str, typer.Option(help="names of methods with commas; all by default")] = "",
    seed: Annotated[int, typer.Option(help="seed of the random numbers")] = 0,
    only: Annotated[str, typer.Option(help="names of sheets with commas; all by default")] = "",
    csv_file: Annotated[Path | None, typer.Option("--csv", help="file for the rows; those in it are kept")] = None,
    version: Annotated[str, typer.Option(help="version of the code whose rows go on")] = "",
    one: Annotated[bool, typer.Option("--one", hidden=True)] = False,
) -> None:
    """Solve all puzzles of a folder, each in a new process."""
    if one:
        for sheet in puzzles(folder):
            print(json.dumps(solved(sheet, seconds, methods, seed)))
        return
    settings = settings_of(seconds, methods, seed, version or code_version())
    rows = {row["sheet"]: row for row in read(csv_file) if settings.items() <= row.items()}
    wanted = set(only.split(",")) if only else None
    sheets = [sheet for sheet in puzzles(folder) if wanted is None or sheet.stem in wanted]
    options = ["--seconds", str(seconds), "--methods", methods, "--seed", str(seed)]
    print(HEAD)
    for sheet in sheets:
        if sheet.stem in rows and rows[sheet.stem]["engine"] != FAILED:
            continue
        row = in_new_process(sheet, *options)
        print(f"| {' | '.join(str(row[column]) for column in COLUMNS)} |", flush=True)
        rows[sheet.stem] = kept(row, settings)
        append(csv_file, rows[sheet.stem])
    full = sum(rows[sheet.stem]["goal"] == "100" for sheet in sheets)
    print(f"\n{full} of {len(sheets)} sheets solved to 100 within {seconds:g} s")


if __name__ == "__main__":
    typer.run(main)
