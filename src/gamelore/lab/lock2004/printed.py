"""The numbers that Lock & Epstein (2004) print: Table 1, Table 2, and the counts in the text below them."""

from __future__ import annotations

from typing import NamedTuple

GAMES = ("losetictactoe", "fivemensmorris")
OPPONENTS = ("perfect", "expert", "novice", "random")
ROWS = ("baseline", "version 1", "version 2")
"""The rows of Table 1: the baseline, and Experiments 1 and 2 with versions 1 and 2 of SeqPlayer."""
WHAT = ("reliability", "power")
RUNS, BLOCKS = 10, 20
"""What its standard deviations are taken over: ten runs; of the baseline probably blocks of 50 (readings.md, L&E 6)."""
CLASSES = (0.9, 0.8, 0.7, 0.55)
"""The lowest weight of each class of pairs in Table 2, half-open (readings.md, L&E 11): three subclasses, tier 3."""


class Cell(NamedTuple):
    """A mean in per cent with its standard deviation; `bold`: statistically improved over the row above."""

    mean: float
    deviation: float
    bold: bool = False


class Column(NamedTuple):
    """One column of Table 1."""

    opponent: str
    what: str


COLUMNS = tuple(
    Column(opponent, what) for opponent in OPPONENTS for what in WHAT if (opponent, what) != ("perfect", "power")
)
"""Power against the perfect player is not shown: nobody wins a draw game against it."""


def _row(*numbers: tuple[float, float] | tuple[float, float, bool]) -> dict[Column, Cell]:
    return {column: Cell(*found) for column, found in zip(COLUMNS, numbers, strict=True)}


TABLE_1: dict[str, dict[str, dict[Column, Cell]]] = {
    "losetictactoe": {
        "baseline": _row(
            (20.5, 4.14), (25.8, 5.33), (9.0, 4.12), (49.2, 7.57), (37.7, 6.67), (58.4, 7.28), (46.1, 7.84)
        ),
        "version 1": _row(
            (66.0, 20.96, True), (70.8, 16.22, True), (12.8, 4.71, True), (83.5, 6.38, True), (42.7, 8.08, True),
            (85.3, 4.79, True), (55.4, 5.52, True),
        ),
        "version 2": _row(
            (82.0, 13.24, True), (83.8, 9.73, True), (12.1, 4.22), (85.1, 5.08), (46.7, 7.08), (87.0, 4.17),
            (57.4, 7.02),
        ),
    },
    "fivemensmorris": {
        "baseline": _row(
            (0.2, 0.6), (1.6, 1.2), (1.2, 0.98), (22.4, 4.27), (14.2, 5.9), (54.0, 7.27), (36.0, 6.81)
        ),
        "version 1": _row(
            (39.6, 13.11, True), (34.2, 11.29, True), (1.0, 1.34), (28.8, 4.66, True), (9.2, 2.23), (54.2, 7.18),
            (17.4, 6.39),
        ),
        "version 2": _row(
            (57.8, 13.22, True), (45.0, 10.05, True), (0.8, 1.33), (45.0, 4.58, True), (29.0, 5.81, True),
            (73.0, 8.35, True), (51.2, 7.44, True),
        ),
    },
}  # fmt: skip
TABLE_2: dict[str, tuple[Cell, Cell, Cell, Cell]] = {
    "losetictactoe": (Cell(17.8, 2.79), Cell(3.8, 1.54), Cell(6.65, 1.84), Cell(3.2, 1.44)),
    "fivemensmorris": (Cell(575.5, 48.79), Cell(210.4, 8.44), Cell(277.9, 20.97), Cell(496.3, 20.79)),
}
"""How many pairs are in each of the CLASSES."""
SEQUENCES = {"losetictactoe": 78.2, "fivemensmorris": 12234.0}
PAIRS = {"losetictactoe": 31.45, "fivemensmorris": 1560.1}
"""Pairs with weights above .55."""
FASTER = 21.0
"""Per cent by which version 2 runs faster than version 1 in five men's morris."""
