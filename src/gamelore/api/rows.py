"""Rows of results in files: a list of dictionaries as CSV or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import GameloreError
from ..files import whole_file


def save_rows(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows into a file: as CSV with a line of names, or as a JSON list, by its suffix.

    Raises:
        GameloreError: the suffix is not .csv or .json.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".json"}:
        raise GameloreError(f"expected a file that ends in .csv or .json, got {path}; choose one of these")
    with whole_file(path) as whole, whole.open("w", newline="", encoding="utf-8") as file:
        if suffix == ".json":
            json.dump(list(rows), file, indent=2, ensure_ascii=False)
        else:
            writer = csv.DictWriter(file, list(rows[0]) if rows else [])
            writer.writeheader()
            writer.writerows(rows)
