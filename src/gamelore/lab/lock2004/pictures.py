"""The figures of the report on Lock & Epstein 2004."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...games import load
from ..boards import draw_pairs
from ..figures import VERDICT_COLOURS, Bars, Dot, Picture, bar_figure, dot_figure, write_rows
from ..learned import LearnedPair
from ..stats import Interval
from .findings import Finding
from .plan import DEFAULT, TITLES
from .printed import BLOCKS, OPPONENTS, ROWS, RUNS, TABLE_1, Column
from .strategies import STRATEGIES
from .study import Study, Tried, printed_interval

COLOURS = {"baseline": "#8a929b", "version 1": "#8a6d3b", "version 2": "#1f6fb4"}
NUM_DRAWN = 6


def reliability_picture(study: Study, folder: Path) -> Picture:
    """Table 1's reliability as bars, ours beside the paper's."""
    panels = [(TITLES[game], [bars for row in ROWS for bars in _bars(study, game, row)]) for game in study.games]
    caption = (
        "Reliability: per cent of matches won or drawn against four opponents, ours (full) beside the paper's "
        "(hatched), with 95 % intervals over runs; the paper's follow from its standard deviations."
    )
    return bar_figure("reliability", caption, OPPONENTS, panels, folder, "won or drawn, %")


def _bars(study: Study, game: str, row: str) -> tuple[Bars, Bars]:
    columns = [Column(opponent, "reliability") for opponent in OPPONENTS]
    ours = [study.level(game, row, column) for column in columns]
    return (
        Bars(f"{row}, ours", ours, COLOURS[row]),
        Bars(f"{row}, paper", [_printed(game, row, column) for column in columns], COLOURS[row], hatched=True),
    )


def _printed(game: str, row: str, column: Column) -> Interval:
    cell, num = TABLE_1[game][row][column], BLOCKS if row == "baseline" else RUNS
    return Interval(cell.mean, *printed_interval(cell.mean, cell.deviation, num), num)


def tried_picture(name: str, caption: str, found: Mapping[str, Sequence[Tried]], folder: Path) -> Picture:
    """Variants against the perfect player; the paper's number beside the default."""
    panels = []
    for game, variants in found.items():
        paper = TABLE_1[game]["version 2"][Column("perfect", "reliability")].mean
        dots = [
            Dot(one.name, one.reliability, _colour(one), paper if one.name == DEFAULT else None) for one in variants
        ]
        panels.append((TITLES[game], dots))
    return dot_figure(name, caption, panels, folder, xlabel="won or drawn against perfect, %", share_labels=False)


def _colour(one: Tried) -> str:
    """Green and red where the paired interval leaves out no difference."""
    if one.difference is None or one.difference.low <= 0 <= one.difference.high:
        return "#5d6670"
    return VERDICT_COLOURS["reproduced" if one.difference.low > 0 else "contradicted"]


def changes_picture(findings: Sequence[Finding], folder: Path) -> Picture:
    """Every claimed change of a cell of Table 1, the paper's number beside it."""
    found = [one for one in findings if one.claim.measure == "over"]
    dots = [Dot(one.claim.id, one.interval, VERDICT_COLOURS[one.verdict], float(one.claim.paper)) for one in found]
    caption = (
        "Every change between two rows of Table 1 that the paper claims, in points with 95 % intervals (Welch); "
        "diamonds: the paper's. Green: reproduced, red: contradicted, grey: undecided."
    )
    return dot_figure("changes", caption, [("", dots)], folder, xlabel="points", zero=0)


def strategies_picture(study: Study, game: str, folder: Path) -> Picture | None:
    """The best pair of all runs for each strategy that the paper draws of a game; None where none was learned."""
    found = {name: study.best_shown(game, name) for name, where in STRATEGIES.items() if where == game}
    pairs = {name: pair for name, pair in found.items() if pair is not None}
    caption = f"{TITLES[game]}: of each strategy that the paper draws the pair of the highest weight that shows it."
    return _pairs_picture(f"strategies-{game}", caption, game, pairs, folder) if pairs else None


def best_picture(study: Study, game: str, folder: Path) -> Picture:
    """The best pairs of all runs."""
    caption = (
        f"{TITLES[game]}: the {NUM_DRAWN} pairs of the highest weight, those with more comments first, of "
        f"{study.plan.runs} runs."
    )
    pairs = dict(zip("abcdefghijkl", study.best(game, NUM_DRAWN), strict=False))
    return _pairs_picture(f"best-{game}", caption, game, pairs, folder)


def _pairs_picture(name: str, caption: str, game: str, pairs: Mapping[str, LearnedPair], folder: Path) -> Picture:
    """Pairs drawn on boards by their labels, with their rows."""
    drawn = [next(one.drawn(label)) for label, one in pairs.items()]  # the duets of a pair that has some
    png, svg = draw_pairs(load(game), drawn, folder / name, matrix=game == "losetictactoe")
    rows = [
        (
            label,
            one.role,
            one.weight,
            one.comments,
            " ".join(sorted(one.context)),
            kind,
            " ".join(" ".join(move) for move in moves),
        )
        for label, one in pairs.items()
        for kind, moves in one.branches
    ]
    header = ("pair", "role", "weight", "comments", "context", "kind", "moves")
    return Picture(name, caption, png, svg, write_rows(folder / f"{name}.csv", header, rows))
