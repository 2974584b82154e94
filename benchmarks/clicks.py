"""Count the moves that clicks on the drawn boards can make: `python benchmarks/clicks.py FOLDER --out clicks.csv`.

FOLDER has rulesheets as NAME.kif. Each is played in a new process, in random matches, until so many matches, plies or
seconds are over. In every position, each role that has several legal moves makes a decision; `moves` are the legal
moves of all decisions, and `share` is the part of them that clicks on places of the boards can make, see
drawing/clicks.py; `no_trays` is the part that needs no clicks on the trays beside the boards, and `twins` the part that
is made by the clicks of another move, which leads to the same state. `forced` are the turns of roles with one legal
move, which need no click. `setup` are the seconds that the click map of the game takes. The last columns have the
median and the longest time of the clicks of a decision in ms, and the most frequent of the other moves by their first
words, with their part of all moves: `no place` if they have no path, `same path` if clicks cannot tell them apart.

`--lot 40 --seed TEXT` measures only 40 of the sheets: the first in the order of SHA-256 of TEXT and the name.
"""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer

import gamelore
from gamelore.drawing.clicks import ClickMap
from gamelore.drawing.tabletop import Tabletop
from gamelore.game.game import Position
from gamelore.gdl.limits import Limits

COLUMNS = (
    "sheet",
    "engine",
    "boards",
    "setup",
    "forced",
    "decisions",
    "moves",
    "share",
    "no_trays",
    "twins",
    "ms",
    "most_ms",
    "others",
)
ENOUGH = 0.95
NAMED = 3  # kinds of other moves of a sheet
PATIENCE = 120  # seconds that a process gets beyond the limits of loading and play


@dataclass
class Tally:
    """Legal moves met in random matches."""

    forced: int = 0
    decisions: int = 0
    moves: int = 0
    without_trays: int = 0
    twins: int = 0
    others: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)

    def see(self, clicks: ClickMap, position: Position) -> None:
        """Count the moves of a position."""
        for role, moves in position.legal.items():
            self.forced += len(moves) == 1
            if len(moves) > 1:
                self._decide(clicks, position, role)

    def _decide(self, clicks: ClickMap, position: Position, role: str) -> None:
        moves = position.legal[role]
        start = time.perf_counter()
        choices = clicks.choices(position, role)
        self.milliseconds.append(1000 * (time.perf_counter() - start))
        self.decisions += 1
        self.moves += len(moves)
        trays = {tray.board.function for tray in clicks.tabletop.trays}
        self.twins += sum(twin != move for move, twin in enumerate(choices.twins))
        for move, twin, is_unique in zip(moves, choices.twins, choices.are_clickable, strict=True):
            path = choices.paths[twin]
            self.without_trays += is_unique and trays.isdisjoint(place.function for step in path for place in step)
            if not is_unique:
                name = move.strip("()").split()[0]
                self.others[f"{name}: {'same path' if path else 'no place'}"] += 1

    def cells(self) -> dict[str, Any]:
        """Return the cells of the table that count moves."""
        others = [f"{name} {number / self.moves:.1%}" for name, number in self.others.most_common(NAMED)]
        return {
            "forced": self.forced,
            "decisions": self.decisions,
            "moves": self.moves,
            "share": round(1 - self.others.total() / self.moves, 4) if self.moves else 1.0,
            "no_trays": round(self.without_trays / self.moves, 4) if self.moves else 1.0,
            "twins": round(self.twins / self.moves, 4) if self.moves else 0.0,
            "ms": round(median(self.milliseconds or [0.0]), 2),
            "most_ms": round(max(self.milliseconds, default=0.0), 1),
            "others": ", ".join(others),
        }


def measured(sheet: Path, matches: int, plies: int, seconds: float, load_seconds: float, seed: int) -> dict[str, Any]:
    """Play random matches in this process; return a row."""
    game = gamelore.load(sheet, limits=Limits(load_seconds))
    rng, tally = np.random.default_rng(seed), Tally()
    start = time.monotonic()
    clicks = ClickMap.of(game)
    end = time.monotonic() + seconds
    setup = round(end - seconds - start, 2)
    for _ in range(matches):
        position = game.start()
        for _ in range(plies):
            if position.is_terminal or not all(position.legal.values()) or time.monotonic() > end:
                break
            tally.see(clicks, position)
            position = position.play([moves[rng.integers(len(moves))] for moves in position.legal.values()])
    return {
        "sheet": sheet.stem,
        "engine": game.engine,
        "boards": _boards(clicks.tabletop),
        "setup": setup,
        **tally.cells(),
    }


def _boards(tabletop: Tabletop) -> str:
    """Return the names and kinds of the boards."""
    kinds: list[str] = [board.kind for board in tabletop.boards]
    kinds[len(kinds) - len(tabletop.trays) :] = ["tray"] * len(tabletop.trays)
    names = [f"{board.name} ({kind})" for board, kind in zip(tabletop.boards, kinds, strict=True)]
    return ", ".join(names) or "none"


def drawn(sheets: list[Path], lot: int, seed: str) -> list[Path]:
    """Return so many of the sheets by lot; all for 0."""
    order = sorted(sheets, key=lambda sheet: hashlib.sha256(f"{seed} {sheet.stem}".encode()).digest())
    return sorted(order[:lot]) if lot else sheets


def in_new_process(sheet: Path, patience: float, *options: str) -> dict[str, Any]:
    """Return the row of a sheet; it says "failed" if the process ends with an error or takes too long."""
    command = [sys.executable, __file__, str(sheet), "--one", *options]
    failed = dict.fromkeys(COLUMNS, "") | {"sheet": sheet.stem, "engine": "failed", "share": 0.0}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return failed | {"others": f"not ready after {patience:g} s"}
    if done.returncode:
        return failed | {"others": " ".join(done.stderr.splitlines()[-1:])}
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    out: Annotated[Path | None, typer.Option(help="CSV file for the rows")] = None,
    lot: Annotated[int, typer.Option(help="number of sheets by lot; 0 for all")] = 0,
    seed: Annotated[str, typer.Option(help="text that decides the lot")] = "",
    only: Annotated[str, typer.Option(help="names of sheets with commas; all by default")] = "",
    matches: Annotated[int, typer.Option(help="random matches of each sheet")] = 20,
    plies: Annotated[int, typer.Option(help="most plies of a match")] = 200,
    seconds: Annotated[float, typer.Option(help="time of the matches of a sheet")] = 20.0,
    load_seconds: Annotated[float, typer.Option(help="limit of loading a sheet")] = 60.0,
    play_seed: Annotated[int, typer.Option(help="seed of the random matches")] = 0,
    one: Annotated[bool, typer.Option("--one", hidden=True)] = False,
) -> None:
    """Count the moves that clicks can make, in all rulesheets of a folder."""
    if one:
        print(json.dumps(measured(folder, matches, plies, seconds, load_seconds, play_seed)))
        return
    wanted = set(only.split(",")) if only else None
    sheets = [sheet for sheet in drawn(sorted(folder.glob("*.kif")), lot, seed) if not wanted or sheet.stem in wanted]
    options = ["--matches", matches, "--plies", plies, "--seconds", seconds, "--load-seconds", load_seconds]
    rows: list[dict[str, Any]] = []
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for sheet in sheets:
        patience = seconds + load_seconds + PATIENCE
        rows.append(in_new_process(sheet, patience, *map(str, [*options, "--play-seed", play_seed])))
        print(f"| {' | '.join(str(rows[-1][column]) for column in COLUMNS)} |", flush=True)
        if out:
            write(out, rows)
    enough = sum(row["share"] >= ENOUGH for row in rows)
    print(f"\n{enough} of {len(rows)} sheets with at least {ENOUGH:.0%} of the legal moves by clicks")


if __name__ == "__main__":
    typer.run(main)
