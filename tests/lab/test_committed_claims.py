"""The committed claims of both papers, reproduced to the byte: all of `reproduce --verdicts`, which takes minutes.

Two things follow wall time: the claims whose measure is a time, and Holm's correction, which is over all claims of a
reading together. Lines of the former are left out. The latter is worked out here from the p-values of this run and,
for the claims of wall time, from the committed ones.
"""

import csv
from pathlib import Path

import pytest

from gamelore.lab import stats
from gamelore.lab.papers import banerjee2007, lock2004

DOCS = Path(__file__).parents[2] / "docs"
TIMED = {"cost", "faster"}  # measures of wall time

pytestmark = pytest.mark.long

Row = dict[str, str]


def expect_reproduced(ours: Path, committed: Path) -> None:
    assert ours.read_text(encoding="utf-8").splitlines()[0] == committed.read_text(encoding="utf-8").splitlines()[0]
    rows, expected = read(ours), read(committed)
    assert [row["claim"] for row, _ in rows] == [row["claim"] for row, _ in expected]
    for (row, line), (wanted, wanted_line) in zip(rows, expected, strict=True):
        if row["measure"] not in TIMED:
            corrected, holm = (f",{row['p']},{p_holm},{row['verdict']}" for p_holm in (row["p_holm"], wanted["p_holm"]))
            assert line.replace(corrected, holm) == wanted_line
    readings = {row.get("reading", "") for row, _ in rows}
    for reading in readings:
        expect_holm(*([row for row, _ in table if row.get("reading", "") == reading] for table in (rows, expected)))


def read(path: Path) -> list[tuple[Row, str]]:
    """The rows of a claims.csv, each with its line. No text of the file breaks a line."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    with path.open(encoding="utf-8", newline="") as file:
        return list(zip(csv.DictReader(file), lines, strict=True))


def expect_holm(ours: list[Row], committed: list[Row]) -> None:
    """Values of p are written with three digits, so that products of them may be off by a half of the last digit."""
    pairs = [(mine, wanted) for mine, wanted in zip(ours, committed, strict=True) if wanted["p"]]
    family = [float((wanted if wanted["measure"] in TIMED else mine)["p"]) for mine, wanted in pairs]
    for p_holm, (_, wanted) in zip(stats.holm(family), pairs, strict=True):
        assert float(p_holm) == pytest.approx(float(wanted["p_holm"]), rel=0.01)


def test_banerjee2007(tmp_path: Path) -> None:
    banerjee2007.reproduce(tmp_path, "both", verdicts=True, progress=False)
    expect_reproduced(tmp_path / "claims.csv", DOCS / "banerjee2007" / "claims.csv")


def test_lock2004(tmp_path: Path) -> None:
    lock2004.reproduce(tmp_path, "both", fresh=200, verdicts=True, progress=False)
    expect_reproduced(tmp_path / "claims.csv", DOCS / "lock2004" / "claims.csv")
