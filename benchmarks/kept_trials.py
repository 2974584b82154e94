"""Keep finished trials in a file that can be committed: `python benchmarks/kept_trials.py DIR FILE.jsonl.gz`.

DIR is the `--out` of a measurement that takes days, such as `memory.py`, `transfer_map.py` or `growth.py`. Trials that
only its store has are added to FILE, and those that only FILE has are added to the store, so the measurement goes on
where another machine stopped. Teachings, notes and failures of DIR do not travel: where they are missing, the
measurement makes them anew, so contests of two machines may be about different teachings of the same game. FILE has a
JSON object for each trial, with the columns of gamelore.lab.results as keys, sorted by id and run. A trial that differs
between the two is an error, and nothing is written.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from gamelore.files import whole_file
from gamelore.lab.results import ResultStore, store_path

Row: TypeAlias = dict[str, Any]
BLOBS = "rewards", "lengths"  # as hexadecimal digits


def stored(store: Path) -> list[Row]:
    """Return the trials of a store, made if it is missing, sorted by id and run."""
    with ResultStore(store):
        pass
    with closing(sqlite3.connect(store)) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM trial ORDER BY id, run")]
    return [row | {name: row[name] and row[name].hex() for name in BLOBS} for row in rows]


def kept(file: Path) -> list[Row]:
    """Return the trials in a file; none if there is no file."""
    if not file.exists():
        return []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def keep(file: Path, rows: Iterable[Row]) -> None:
    """Write trials to a file. Equal trials make equal files: no time of day is written."""
    text = "".join(f"{json.dumps(row, sort_keys=True)}\n" for row in rows)
    with whole_file(file) as whole:
        whole.write_bytes(gzip.compress(text.encode(), mtime=0))


def add(store: Path, rows: Iterable[Row]) -> None:
    """Add trials to a store."""
    rows = [row | {name: row[name] and bytes.fromhex(row[name]) for name in BLOBS} for row in rows]
    with closing(sqlite3.connect(store, timeout=30)) as connection, connection:
        for row in rows:
            marks = ", ".join(f":{name}" for name in row)
            connection.execute(f"INSERT INTO trial ({', '.join(row)}) VALUES ({marks})", row)


def by_key(rows: Iterable[Row]) -> dict[tuple[str, int], Row]:
    return {(row["id"], row["run"]): row for row in rows}


def main(
    out: Annotated[Path, typer.Argument(help="folder of a measurement")],
    file: Annotated[Path, typer.Argument(help="file of trials, FILE.jsonl.gz")],
) -> None:
    """Add the trials of a store to a file, and those of the file to the store."""
    store = store_path(out)
    mine, others = by_key(stored(store)), by_key(kept(file))
    if different := [key for key in mine.keys() & others.keys() if mine[key] != others[key]]:
        name, run = min(different)
        raise SystemExit(
            f"expected equal trials in {store} and {file}, got others in run {run} of {name}; name a new FILE"
        )
    add(store, (others[key] for key in sorted(others.keys() - mine.keys())))
    both = mine | others
    keep(file, (both[key] for key in sorted(both)))
    print(f"{len(both)} trials: {len(both) - len(others)} new in {file}, {len(both) - len(mine)} new in {store}")


if __name__ == "__main__":
    typer.run(main)
