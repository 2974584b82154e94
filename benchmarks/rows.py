"""Tables of benchmarks: a CSV file to which each result is added at once, so that an interrupted run goes on."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path


def read(path: Path | None) -> list[dict[str, str]]:
    """Return the rows of a file; none if there is no file."""
    if path is None or not path.exists():
        return []
    with path.open(encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path | None, row: Mapping[str, str]) -> None:
    """Add a row to a file, which gets a first line with the columns when it is new."""
    if path is None:
        return
    before = read(path)
    if before and list(before[0]) != list(row):
        raise SystemExit(
            f"expected the columns {', '.join(row)} in {path}, got {', '.join(before[0])}; name another file"
        )
    is_new = not path.exists() or not path.stat().st_size
    with path.open("a", encoding="ascii", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if is_new:
            writer.writeheader()
        writer.writerow(row)
