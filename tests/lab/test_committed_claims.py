"""The committed claims of both papers, reproduced to the byte: all of `reproduce --verdicts`, which takes minutes."""

import csv
from pathlib import Path

import pytest

from gamelore.lab.papers import banerjee2007, lock2004

DOCS = Path(__file__).parents[2] / "docs"
TIMED = {"cost", "faster"}  # measures of wall time
FOLLOWS_TIME = {"p_holm"}  # Holm's correction is over all claims, those of wall time among them

pytestmark = pytest.mark.long


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a claims.csv that do not depend on wall time."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: value for key, value in row.items() if key not in FOLLOWS_TIME}
            for row in csv.DictReader(file)
            if row["measure"] not in TIMED
        ]


def test_banerjee2007(tmp_path: Path) -> None:
    banerjee2007.reproduce(tmp_path, "both", verdicts=True, progress=False)
    assert rows(tmp_path / "claims.csv") == rows(DOCS / "banerjee2007" / "claims.csv")


def test_lock2004(tmp_path: Path) -> None:
    lock2004.reproduce(tmp_path, fresh=200, verdicts=True, progress=False)
    assert rows(tmp_path / "claims.csv") == rows(DOCS / "lock2004" / "claims.csv")
