"""What the paper says: claims.toml, and the cells of its tables, each with test and target.

A printed mean is tested against the paper's own 95 % interval of it, from the printed standard deviation over ten runs
(baselines: 20 blocks of 50 matches). A bold cell of Table 1 claims an improvement over the row above.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..claims import Claim, read_claims
from .plan import TITLES
from .printed import BLOCKS, CLASSES, COLUMNS, GAMES, ROWS, RUNS, TABLE_1, TABLE_2, Column
from .study import printed_interval

MARGIN = 2.0
"""Points: a change within one match of a tournament of 50 is none that matters."""
PATH = Path(__file__).with_name("claims.toml")
_SHORT = {"losetictactoe": "lttt", "fivemensmorris": "morris"}
_BOLD = "Statistically improved performance over the previous experiment is highlighted in bold"


@cache
def claims() -> tuple[Claim, ...]:
    """All of them."""
    return (*read_claims(PATH).values(), *_improvements(), *_levels(), *_sizes())


def _improvements() -> Iterator[Claim]:
    for game in GAMES:
        for above, row in pairwise(ROWS):
            for column in COLUMNS:
                cell = TABLE_1[game][row][column]
                if cell.bold:
                    change = cell.mean - TABLE_1[game][above][column].mean
                    name = f"{_name(game, row, column)}-rises"
                    yield Claim(
                        name,
                        "Table 1",
                        _BOLD,
                        "over",
                        _cell(game, row, column),
                        "above",
                        (0.0,),
                        0,
                        MARGIN,
                        paper=f"{change:+.1f}",
                    )


def _levels() -> Iterator[Claim]:
    for game in GAMES:
        for row in ROWS:
            for column in COLUMNS:
                cell = TABLE_1[game][row][column]
                paper = printed_interval(cell.mean, cell.deviation, BLOCKS if row == "baseline" else RUNS)
                words = f"{TITLES[game]}, {row}, {column.opponent}, {column.what}: {cell.mean:.2f}"
                name = f"{_name(game, row, column)}-level"
                yield Claim(
                    name,
                    "Table 1",
                    words,
                    "level",
                    _cell(game, row, column),
                    "within",
                    paper,
                    0,
                    paper=f"{cell.mean:.1f}",
                )


def _sizes() -> Iterator[Claim]:
    for game in GAMES:
        for number, cell in enumerate(TABLE_2[game]):
            words = f"{TITLES[game]}, class from {CLASSES[number]:g}: {cell.mean:.2f}"
            of = {"game": game, "number": number}
            paper = printed_interval(cell.mean, cell.deviation, RUNS)
            name = f"{_SHORT[game]}.class{number + 1}-size"
            yield Claim(name, "Table 2", words, "class_size", of, "within", paper, 0, paper=f"{cell.mean:g}")


def _cell(game: str, row: str, column: Column) -> dict[str, Any]:
    return {"game": game, "row": row, "opponent": column.opponent, "what": column.what}


def _name(game: str, row: str, column: Column) -> str:
    return f"{_SHORT[game]}.{row.replace(' ', '')}.{column.opponent}-{column.what}"
