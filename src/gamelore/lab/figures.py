"""Draw pages of small pictures, and charts (curves, dots, bars, sweeps), as PNG and SVG files with data as CSV.

matplotlib is imported when it is first used. A chart has three files with the same stem: .png, .svg and .csv.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..drawing.board import INK, PAPER
from ..drawing.position import printed
from ..errors import GameloreError
from ..files import whole_file
from .stats import FEWEST_SHOWN, Curve, Interval, mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2  # inches
MARGIN = 0.25
TITLE = 0.35
RULE = "#e3e6e9"
MISSING = "#d0d4d8"  # matches without a goal
DPI = 200
LONGEST_SIDE = 50  # inches; a larger picture has fewer pixels per inch
TRAILING = 100  # matches in the mean of the last ones
_LINE_COLOURS = ("#1f6fb4", "#c1572b", "#4f8a3c", "#7b5aa6")
_Z95 = 1.96
_NAMED_SHARES = 4  # in the legend
FORMULA = "formula"  # the label of a text in matplotlib's notation of formulas
Spot = tuple[float, float]
Item = TypeVar("Item")


def in_rows(items: Iterable[Item], width: Callable[[Item], float], between: float = 0.0) -> list[list[Item]]:
    """Divide items into rows, without changing their order. A full row is as wide as a page. Widths are in inches."""
    rows: list[list[Item]] = []
    room = 0.0
    for item in items:
        if width(item) > room + 1e-9:
            rows.append([])
            room = WIDTH - 2 * MARGIN
        rows[-1].append(item)
        room -= width(item) + between
    return rows


def first_row(title: str) -> float:
    """Return the y coordinate of the first row, in inches from the top of the page."""
    return MARGIN + (TITLE if title else 0.0)


def new_figure(width: float, height: float, **look: Any) -> Figure:
    """Return an empty figure, which also draws itself in notebooks.

    IPython learns to draw figures only where `matplotlib.pyplot` is imported, so the figure has a method for IPython.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), **look)
    vars(figure)["_repr_png_"] = partial(_png, figure)
    return figure


def _png(figure: Figure) -> bytes:
    """Return a picture as PNG, with 100 pixels per inch."""
    with BytesIO() as file:
        _print(figure, file, 100, "png")
        return file.getvalue()


def page(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    """Return an empty page, and its axes. Coordinates are in inches, and y grows downwards."""
    figure = new_figure(width, height, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    axes.text(MARGIN, MARGIN + 0.05, title, size=11, weight="bold", color=INK, va="center")
    return figure, axes


def circle(axes: Axes, spot: Spot, radius: float, **look: Any) -> None:
    """Draw a circle around a spot."""
    from matplotlib.patches import Circle

    axes.add_patch(Circle(spot, radius, **look))


def square(axes: Axes, spot: Spot, side: float, **look: Any) -> None:
    """Draw a square around a spot."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((spot[0] - side / 2, spot[1] - side / 2), side, side, **look))


def cross(axes: Axes, spot: Spot, half: float, **look: Any) -> None:
    """Draw two crossed strokes with their centre on a spot."""
    x, y = spot
    for slope in (-half, half):
        axes.plot([x - half, x + half], [y - slope, y + slope], **look)


def rule(axes: Axes, width: float, y: float) -> None:
    """Draw the horizontal line above the legend, at height `y`."""
    axes.plot([MARGIN, width - MARGIN], [y, y], color=RULE, linewidth=0.8)


LONGEST_NAME = 100  # characters of a file name, without its suffix and a hash


def file_name(*names: str) -> str:
    """Return a file name, without a suffix, for a thing with these names, such as a game and a role.

    Names come from rules and from other people's files, and can contain any characters. The file name has letters,
    digits, `-` and `_` only. If other names could have the same file name, it ends with a part of a hash.
    """
    plain = "-".join(re.sub(r"[^A-Za-z0-9_]", "_", name) for name in names)
    is_clear = all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in names) and not re.search("_[0-9a-f]{8}$", plain)
    if is_clear and len(plain) <= LONGEST_NAME:
        return plain
    return f"{plain[:LONGEST_NAME]}_{hashlib.sha256(repr(names).encode()).hexdigest()[:8]}"


def check_format(path: Path) -> None:
    """Raise GameloreError if the path has a suffix that is not a format of matplotlib."""
    from matplotlib.figure import Figure

    formats = Figure().canvas.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in formats:
        raise GameloreError(
            f"expected a picture format ({', '.join(sorted(formats))}), got '{path.suffix}'; choose one of these, "
            "or leave out the suffix"
        )


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write a picture and return the files written.

    The suffix of `path` selects the format. Without a suffix, the function writes a PNG file and an SVG file.
    Raise GameloreError for a suffix that is not a format of matplotlib.
    """
    chosen = Path(path)
    check_format(chosen)
    files = [chosen] if chosen.suffix else [chosen.with_suffix(".png"), chosen.with_suffix(".svg")]
    dpi = DPI * min(1.0, LONGEST_SIDE / max(figure.get_size_inches()))
    for file in files:
        _write(figure, file, dpi)
    return files


def svg_text(figure: Figure) -> str:
    """Return a picture as SVG."""
    with StringIO() as file:
        _print(figure, file, "figure", "svg")
        return file.getvalue()


def _write(figure: Figure, path: Path, dpi: float | Literal["figure"]) -> None:
    """Write a picture to a file in the format of its suffix."""
    with whole_file(path) as file:
        _print(figure, file, dpi, path.suffix[1:])


def _print(figure: Figure, file: Path | StringIO | BytesIO, dpi: float | Literal["figure"], form: str) -> None:
    """Write a picture in a format of matplotlib. The files of equal pictures have equal bytes.

    Names in rules can contain `$`, so a text is read as a formula only if its label is FORMULA. They can also contain
    characters that no SVG file may have.
    """
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(text.get_label() == FORMULA)
        text.set_text(printed(text.get_text()))
    with matplotlib.rc_context({"svg.hashsalt": "gamelore"}):
        figure.savefig(file, dpi=dpi, metadata={"Date": None} if form == "svg" else None, format=form)


CHART_INK, CHART_FAINT, CHART_RULE = "#22262b", "#7a828b", "#dfe3e7"
COLOURS = {
    "transfer": "#1f6fb4",
    "baseline": "#8a6d3b",
    "lookahead": "#c9403a",
    "maxmax": "#3a9d5d",
    "avgmax": "#3a9d5d",
    "oracle": "#2c8a4b",
    "turns": "#8a5bb0",
}
VERDICT_COLOURS = {"reproduced": "#2c8a4b", "contradicted": "#c9403a", "equivalent": "#5b6fb0", "undecided": "#8d949b"}
LABELS = {"transfer": "with transfer", "baseline": "without transfer", "lookahead": "with lookahead"}
"""Learner -> its name in the legend of the paper."""
DRAWN_POINTS = 400  # number of points drawn of a curve; the CSV file has all points


@dataclass(frozen=True)
class ReportPicture:
    """One figure of a report: its caption and its files."""

    name: str
    caption: str
    png: Path
    svg: Path
    csv: Path


@dataclass(frozen=True)
class CurvePlan:
    """Layout of a learning figure.

    axis           range of the y axis in the paper, (low, high) in points; None for no such range
    averaged_from  number of the first match in the averages that are drawn
    other_from     number of the first match in the averages that are only in the CSV file
    """

    name: str
    title: str
    caption: str
    axis: tuple[float, float] | None
    averaged_from: int
    other_from: int
    runs: int


def curves_figure(title: str, curves: dict[str, Curve], runs: int, axis: tuple[float, float] | None = None) -> Figure:
    """Draw the learners' cumulative averages over `runs` runs with 95 % bands in the layout of the paper.

    axis: the range of the y axis in the paper, which is marked; None for no such range
    """
    figure, (axes,) = _canvas(7.2, 4.0)
    bottom, top = _limits(curves, axis)
    if axis is not None:
        _paper_axis(axes, axis)
    for learner, curve in curves.items():
        _curve(axes, learner, curve, runs >= FEWEST_SHOWN)
    _end_labels(axes, curves, (top - bottom) * 0.05)
    last = max(int(curve.matches[-1]) for curve in curves.values())
    axes.set(xlim=(0, last), ylim=(bottom, top), xlabel="Matches played")
    axes.set_ylabel(f"Mean cumulative average\nperformance over {runs} runs")
    axes.set_title(title, loc="left", fontsize=10.5, color=CHART_INK, weight="bold")
    return figure


def learning_figure(plan: CurvePlan, curves: dict[str, Curve], folder: Path, extra: dict[str, Curve]) -> ReportPicture:
    """Draw and save the learners' curves, see `curves_figure`.

    The averages `extra` begin at another match, `plan.other_from`. They are only in the CSV file.
    """
    figure = curves_figure(plan.title, curves, plan.runs, plan.axis)
    rows = [
        (averaged, learner, *point)
        for averaged, some in ((plan.averaged_from, curves), (plan.other_from, extra))
        for learner, curve in some.items()
        for point in zip(*(a.tolist() for a in (curve.matches, curve.mean, curve.low, curve.high)), strict=True)
    ]
    header = ("averaged_from", "learner", "match", "mean", "low", "high")
    return _save(figure, folder / plan.name, plan.caption, header, rows)


def _curve(axes: Axes, learner: str, curve: Curve, with_band: bool) -> None:
    kept = np.unique(np.linspace(0, len(curve.matches) - 1, DRAWN_POINTS).astype(int))
    x, colour = curve.matches[kept], COLOURS.get(learner, CHART_FAINT)
    dashes = {"baseline": (5, 2), "lookahead": (1.5, 1.5)}.get(learner)
    if with_band:
        axes.fill_between(x, curve.low[kept], curve.high[kept], color=colour, alpha=0.13, linewidth=0)
    (line,) = axes.plot(x, curve.mean[kept], color=colour, linewidth=1.7)
    if dashes:
        line.set_dashes(dashes)


def _limits(curves: dict[str, Curve], axis: tuple[float, float] | None) -> tuple[float, float]:
    """Return limits of the y axis that contain the paper's axis and all curves without their first points.

    In the first 100 points, the averages still jump.
    """
    settled = np.concatenate([curve.mean[min(100, len(curve.mean) // 4) :] for curve in curves.values()])
    low, high = float(settled.min()), float(settled.max())
    if axis is not None:
        low, high = min(axis[0], low), max(axis[1], high)
    pad = 0.06 * max(high - low, 0.1)
    return low - pad, min(high + pad, 100 + pad)


def _paper_axis(axes: Axes, axis: tuple[float, float]) -> None:
    axes.axhspan(*axis, color="#f7f5ef", zorder=0)
    for value in axis:
        axes.axhline(value, color="#c9c3b0", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.5)
    style: dict[str, Any] = {"fontsize": 7, "color": "#8f8869", "ha": "right", "va": "top"}
    where = ("axes fraction", "data")
    words = f"shaded: the paper's axis, {axis[0]:g} to {axis[1]:g}"
    axes.annotate(words, (0.995, axis[0]), xycoords=where, xytext=(0, -2), textcoords="offset points", **style)


def _end_labels(axes: Axes, curves: dict[str, Curve], apart: float) -> None:
    """Write the name and the last value of each curve at its right end.

    apart: the minimum vertical distance between two texts, on the scale of the y axis.
    """
    shown: list[float] = []
    for value, learner in sorted((float(curve.mean[-1]), learner) for learner, curve in curves.items()):
        shown.append(max([value, *(other + apart for other in shown[-1:])]))
        style: dict[str, Any] = {"fontsize": 8, "color": COLOURS.get(learner, CHART_FAINT), "va": "center"}
        words = f"{value:.2f} {LABELS.get(learner, f'with {learner}')}"
        axes.annotate(words, (1.01, shown[-1]), xycoords=("axes fraction", "data"), annotation_clip=False, **style)


@dataclass(frozen=True)
class Dot:
    """A dot of a dot chart: a label, an interval, and the number printed in the paper (`paper`)."""

    label: str
    interval: Interval
    colour: str = CHART_INK
    paper: float | None = None


def dot_figure(
    name: str,
    caption: str,
    panels: Sequence[tuple[str, Sequence[Dot]]],
    folder: Path,
    *,
    xlabel: str,
    zero: float | None = None,
    symlog: bool = False,
    same_x: bool = False,
    share_labels: bool = True,
) -> ReportPicture:
    """Draw panels side by side, with one row for each dot: mean, 95 % interval, and the paper's number as a diamond.

    With `symlog`, the x axis is linear between -1 and 1, and logarithmic outside this range.
    """
    longest = max(len(dots) for _, dots in panels)
    widest = max(len(dot.label) for _, dots in panels for dot in dots) * 0.062
    width = widest + 0.5 + 2.1 * len(panels) + (0 if share_labels else widest * (len(panels) - 1))
    figure, grid = _canvas(max(6.6, width), 0.62 + 0.23 * longest + 0.35, len(panels), share_labels, same_x)
    for axes, (title, dots) in zip(grid, panels, strict=True):
        _dots(axes, dots)
        axes.set_title(title, loc="left", fontsize=9, color=CHART_INK, weight="bold")
        axes.set_xlabel(xlabel, fontsize=8)
        if symlog:
            _logarithmic_beyond_one(axes)
        if zero is not None:
            axes.axvline(zero, color=CHART_FAINT, linewidth=0.8, zorder=0)
    rows = [(title, dot.label, *astuple(dot.interval), dot.paper) for title, dots in panels for dot in dots]
    header = ("panel", "row", "mean", "low", "high", "runs", "paper")
    return _save(figure, folder / name, caption, header, rows)


def _logarithmic_beyond_one(axes: Axes) -> None:
    axes.set_xscale("symlog", linthresh=1.0)
    low, high = axes.get_xlim()
    ticks = [x for x in (-30, -10, -3, -1, -0.5, 0, 0.5, 1, 3, 10, 30) if low <= x <= high]
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.set_xticks([], minor=True)


def _dots(axes: Axes, dots: Sequence[Dot]) -> None:
    for y, dot in enumerate(dots):
        mean = dot.interval
        if not mean.too_few and np.isfinite(mean.half_width):
            axes.plot([mean.low, mean.high], [y, y], color=dot.colour, linewidth=2.2, alpha=0.45, solid_capstyle="butt")
        axes.plot(mean.mean, y, "o", color=dot.colour, markersize=4)
        if dot.paper is not None:
            axes.plot(dot.paper, y, "D", markersize=4.4, markerfacecolor="white", markeredgecolor=CHART_INK, zorder=3)
    axes.set_yticks(range(len(dots)), [dot.label for dot in dots], fontsize=8)
    axes.set_ylim(len(dots) - 0.4, -0.6)
    axes.grid(axis="y", color=CHART_RULE, linewidth=0.6)


@dataclass(frozen=True)
class Bars:
    """A series of a bar chart: one bar in each group. Bars with numbers of the paper are `hatched`."""

    label: str
    intervals: Sequence[Interval]
    colour: str
    hatched: bool = False


def bar_figure(
    name: str,
    caption: str,
    groups: Sequence[str],
    panels: Sequence[tuple[str, Sequence[Bars]]],
    folder: Path,
    ylabel: str,
) -> ReportPicture:
    """Draw panels side by side, with groups of bars and their intervals. The y axis goes from 0 to 100."""
    figure, grid = _canvas(3.9 * len(panels) + 0.6, 3.5, len(panels))
    for axes, (title, bars) in zip(grid, panels, strict=True):
        for number, series in enumerate(bars):
            _bars(axes, series, number, len(bars))
        axes.set_xticks(range(len(groups)), groups, fontsize=8.5)
        axes.set_ylim(0, 100)
        axes.set_title(title, loc="left", fontsize=9.5, color=CHART_INK, weight="bold")
        axes.grid(axis="y", color=CHART_RULE, linewidth=0.6)
        axes.set_axisbelow(True)
    grid[0].set_ylabel(ylabel, fontsize=8.5)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    rows = [
        (title, series.label, group, *astuple(interval))
        for title, bars in panels
        for series in bars
        for group, interval in zip(groups, series.intervals, strict=True)
    ]
    return _save(figure, folder / name, caption, ("panel", "bars", "group", "mean", "low", "high", "runs"), rows)


def _bars(axes: Axes, bars: Bars, number: int, num: int) -> None:
    """Draw the bars of series `number` (of `num` series) in all groups."""
    width = 0.84 / num
    look: dict[str, Any] = {"facecolor": "white", "hatch": "/////"} if bars.hatched else {"facecolor": bars.colour}
    look |= {"edgecolor": bars.colour, "linewidth": 0.8}
    for group, interval in enumerate(bars.intervals):
        x = group + (number - (num - 1) / 2) * width
        axes.bar(x, interval.mean, 0.9 * width, label=None if group else bars.label, **look)
        if not interval.too_few and np.isfinite(interval.half_width):
            low, high = max(interval.low, 0.0), min(interval.high, 100.0)
            axes.plot([x, x], [low, high], color=CHART_INK, linewidth=1.0)


def results_figure(labels: Sequence[str], goals: NDArray[np.float64]) -> Figure:
    """Draw the results of matches: for each role a bar with the shares of its goals, and the mean with its interval.

    labels  for each role, the text beside its bar
    goals   float64[matches, roles]; NaN for a missing goal, which counts as 0 in the mean
    """
    figure, (axes,) = _canvas(WIDTH, 0.9 + 0.55 * len(labels))
    _draw_results(axes, dict(zip(labels, goals.T, strict=True)))
    axes.set_xlabel(f"share of {len(goals)} matches by goal, in %; on the right the mean goal", fontsize=8.5)
    return figure


def _draw_results(axes: Axes, results: Mapping[str, NDArray[np.float64]]) -> None:
    """Draw a bar for each label, from its goals, float64[matches]; see `results_figure`."""
    for y, goals in enumerate(results.values()):
        begin, mean = 0.0, mean_interval(np.nan_to_num(goals))
        counts = Counter(None if np.isnan(goal) else goal for goal in goals.tolist())
        for goal in sorted(counts, key=lambda goal: 1.0 if goal is None else -goal):
            share = 100 * counts[goal] / len(goals)
            colour = MISSING if goal is None else _spectrum(goal)
            axes.barh(y, share, left=begin, height=0.62, color=colour, edgecolor="white")
            told = "none" if goal is None else f"{goal:g}"
            axes.text(begin + share / 2, y, told if share > 4 else "", ha="center", va="center", fontsize=8)
            begin += share
        interval = "" if mean.too_few else f" ± {mean.half_width:.1f}"
        axes.text(102, y, f"{mean.mean:.1f}{interval}", va="center", fontsize=8.5)
    axes.set_yticks(range(len(results)), [printed(label) for label in results], fontsize=8.5, parse_math=False)
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.set_xlim(0, 100)


def inventor_figure(
    results: Mapping[str, NDArray[np.float64]], lengths: Mapping[str, NDArray[np.int64]], choices: NDArray[np.float64]
) -> Figure:
    """Draw a game: the results of each kind of players and role, the lengths of matches, and the choices by ply.

    results  label -> goals, float64[matches]
    lengths  kind of players -> plies, int64[matches]
    choices  float64[plies], mean number of moves
    """
    figure = new_figure(WIDTH + 1.5, 3.0 + 0.42 * len(results), facecolor="white", layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[0.42 * len(results), 2.2])
    top, left, right = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    _draw_results(top, results)
    top.set_xlabel("share of the matches by goal, in %; on the right the mean goal", fontsize=8.5)
    longest = max(int(plies.max(initial=1)) for plies in lengths.values())
    bins = np.linspace(0, longest + 1, min(longest + 2, 40)).tolist()
    for (kind, plies), colour in zip(lengths.items(), ("#8fb0cf", "#1f6fb4"), strict=False):
        left.hist(plies, bins, color=colour, alpha=0.7, label=kind)
    left.set_xlabel("plies of a match", fontsize=8.5)
    left.set_ylabel("matches", fontsize=8.5)
    left.legend(frameon=False, fontsize=8)
    right.plot(np.arange(1, len(choices) + 1), choices, color="#1f6fb4", linewidth=1.6)
    right.set_ylim(bottom=0)
    right.set_xlabel("ply", fontsize=8.5)
    right.set_ylabel("moves of a role that chooses", fontsize=8.5)
    for axes in (top, left, right):
        _plain_axes(axes)
    return figure


def tournament_figure(rated: Sequence[tuple[str, float, float, float]], table: NDArray[np.float64]) -> Figure:
    """Draw ratings with their intervals, the best on top, and beside them the cross table as colours with numbers.

    rated  name, Elo points, and both ends of the interval of each player
    table  float64[players, players], mean scores, 0 to 1; NaN for players that did not meet
    """
    num = len(rated)
    figure, (left, right) = _canvas(WIDTH + 0.3 * num, 1.0 + 0.42 * num, 2, same_y=False)
    ends = [end for _, elo, low, high in rated for end in (elo, low, high) if np.isfinite(end)]
    least, most = min(ends) - 20, max(ends) + 20
    for y, (_, elo, low, high) in enumerate(rated):
        left.plot([max(low, least), min(high, most)], [y, y], color="#8fb0cf", linewidth=3, solid_capstyle="butt")
        left.plot(elo, y, "o", color="#1f6fb4", markersize=5)
    for y, row in enumerate(table):
        for x, score in enumerate(row):
            if not np.isnan(score):
                colour = _spectrum(100 * score)
                right.add_patch(_rectangle((x - 0.5, y - 0.5), colour))
                right.text(x, y, f"{100 * score:.0f}", ha="center", va="center", fontsize=8)
    names = [printed(name) for name, *_ in rated]
    for axes in (left, right):
        axes.set_ylim(num - 0.5, -0.5)
    left.set_yticks(range(num), names, fontsize=8.5, parse_math=False)
    left.axvline(0, color="#dfe3e7", zorder=0)
    left.set_xlim(least, most)
    left.set_xlabel("Elo points with 95 % intervals", fontsize=8.5)
    right.set_xlim(-0.5, num - 0.5)
    right.set_yticks([])
    right.set_xticks(range(num), range(1, num + 1), fontsize=8)
    right.set_xlabel("score in % against player 1, 2, .. from the top", fontsize=8.5)
    return figure


def growth_figure(grown: Mapping[str, Mapping[str, Mapping[int, Sequence[float]]]]) -> Figure:
    """Draw scores in % of players, on a logarithmic axis of the number of startclocks: runs, mean and 95 % interval.

    There is a row of panels for each rival, with a panel for each player.

    grown  the scores of all runs by rival, name and number of startclocks
    """
    columns = max((len(players) for players in grown.values()), default=1)
    figure, panels = _canvas(0.6 + 1.9 * columns, 0.3 + 2.3 * len(grown), columns, rows=len(grown))
    for row, (rival, players) in enumerate(grown.items()):
        panels[row * columns].set_ylabel(f"against {printed(rival)} in %", fontsize=8.5, parse_math=False)
        for axes, (name, scores) in zip(panels[row * columns :], players.items(), strict=False):
            _draw_growth(axes, scores)
            axes.set_title(printed(name), fontsize=8.5, parse_math=False)
    return figure


def _draw_growth(axes: Axes, scores: Mapping[int, Sequence[float]]) -> None:
    numbers = sorted(scores)
    places, runs = np.log10(np.array(numbers) + 1.0), [scores[number] for number in numbers]
    axes.plot(
        np.repeat(places, list(map(len, runs))), [x for own in runs for x in own], ".", color="#9fb9d3", markersize=3
    )
    intervals = [mean_interval(own) for own in runs]
    low, high = ([max(0.0, min(100.0, getattr(own, end))) for own in intervals] for end in ("low", "high"))
    axes.fill_between(places, low, high, color="#dfe9f3")
    axes.plot(places, [own.mean for own in intervals], color="#1f6fb4", marker="o", markersize=3)
    axes.axhline(50, color="#dfe3e7", zorder=0)
    axes.set_xticks(places, [str(number) for number in numbers])
    axes.set_xlabel("startclocks", fontsize=8.5)
    axes.set_ylim(0, 102)


def strength_figure(title: str, lines: Mapping[str, Sequence[tuple[float, float, float, bool]]]) -> Figure:
    """Draw how strong a pupil was after some teaching, against several rivals.

    Args:
        title: of the figure
        lines: by rival: CPU seconds of teaching, score in %, its standard error, and whether to fill the dot
    """
    figure, (axes,) = _canvas(7.2, 4.0)
    ordered = sorted(lines, key=lambda rival: [int(part) if part.isdigit() else part for part in rival.split("=")])
    for colour, rival in zip(_LINE_COLOURS * len(ordered), ordered, strict=False):
        seconds, scores, errors, filled = (np.array(column) for column in zip(*sorted(lines[rival]), strict=True))
        places = np.log10(1 + seconds)
        axes.errorbar(places, scores, yerr=_Z95 * errors, color=colour, linewidth=1.2, capsize=2, label=rival)
        axes.scatter(places, scores, s=28, facecolors=np.where(filled, colour, "white"), edgecolors=colour, zorder=3)
    axes.axhline(50, color="#dfe3e7", zorder=0)
    ticks = [0, 1, 3, 10, 20, 60, 120, 300, 600, 1800, 3600, 36_000]
    axes.set_xticks(np.log10(1 + np.array(ticks)), [str(tick) for tick in ticks])
    last = max((point[0] for points in lines.values() for point in points), default=10.0)
    axes.set(xlim=(-0.05, np.log10(1 + last) + 0.1), ylim=(-2, 102))
    axes.set_ylabel("score in the tests in %", fontsize=8.5)
    axes.set_xlabel("CPU seconds of teaching before the state that was tried", fontsize=8.5)
    axes.set_title(printed(title), loc="left", fontsize=10.5, color=CHART_INK, weight="bold", parse_math=False)
    if ordered:
        axes.legend(title="rivals (full dots: passed)", fontsize=8, title_fontsize=8, frameon=False, loc="lower left")
    return figure


def map_figure(
    names: Sequence[str],
    maps: NDArray[np.float64],
    scores: NDArray[np.float64],
    label: str = "score of the carried value in %",
) -> Figure:
    """Draw a table of pairs of games: grey by how well a source is mapped, and coloured by score where it is known.

    names   of the games
    maps    float64[sources, targets], the shares of the weight that a map carries, 0 to 1
    scores  float64[sources, targets], 0 to 1; NaN where there were no contests
    label   what the scores are
    """
    num = len(names)
    figure, (axes,) = _canvas(2.6 + 0.13 * num, 2.4 + 0.13 * num)
    axes.imshow(maps, cmap="Greys", vmin=0.0, vmax=2.5, interpolation="nearest")
    image = axes.imshow(np.ma.masked_invalid(100.0 * scores), cmap="RdYlGn", vmin=0, vmax=100, interpolation="nearest")
    labels = [printed(name) for name in names]
    axes.set_xticks(range(num), labels, fontsize=5, rotation=90, parse_math=False)
    axes.set_yticks(range(num), labels, fontsize=5, parse_math=False)
    axes.set_xlabel("target", fontsize=8.5)
    axes.set_ylabel("source of the lesson", fontsize=8.5)
    bar = figure.colorbar(image, ax=axes, shrink=0.5, pad=0.02)
    bar.set_label(label, fontsize=8.5)
    return figure


def graph_figure(names: Sequence[str], arrows: Mapping[tuple[str, str], float]) -> Figure:
    """Draw pairs of games as arrows between names on a circle, from source to target.

    The farther a score is from 50 %, the thicker is its arrow; above, it is green, and below red.

    names   of the games, in the order of the circle
    arrows  scores in % by source and target
    """
    figure, (axes,) = _canvas(7.5, 7.5)
    angles = {name: 2 * np.pi * number / max(len(names), 1) for number, name in enumerate(names)}
    spots = {name: (float(np.cos(angle)), float(np.sin(angle))) for name, angle in angles.items()}
    for (source, target), score in sorted(arrows.items(), key=lambda item: abs(item[1] - 50)):
        axes.annotate(
            "", spots[target], spots[source],
            arrowprops={
                "arrowstyle": "-|>", "connectionstyle": "arc3,rad=0.15", "shrinkA": 2, "shrinkB": 2,
                "color": "#2c8a4b" if score > 50 else "#c9403a", "linewidth": 0.4 + abs(score - 50) / 25, "alpha": 0.7,
            },
        )  # fmt: skip
    for name, (x, y) in spots.items():
        degrees = np.degrees(angles[name])
        is_left = 90 < degrees < 270
        axes.text(
            1.03 * x, 1.03 * y, printed(name), fontsize=6.5, color=CHART_INK, parse_math=False, va="center",
            ha="right" if is_left else "left", rotation=degrees - 180 if is_left else degrees, rotation_mode="anchor",
        )  # fmt: skip
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    axes.axis("off")
    return figure


def _spectrum(goal: float) -> Any:
    """Return the colour of a goal, 0 to 100: from red to green."""
    from matplotlib import colormaps

    return colormaps["RdYlGn"](0.15 + 0.7 * goal / 100)


def _rectangle(corner: Spot, colour: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white")


def rewards_figure(rewards: NDArray[np.float64]) -> Figure:
    """Draw the rewards of one series: the mean of all matches so far, and the mean of the last TRAILING matches.

    rewards  float64[matches]
    """
    figure, (axes,) = _canvas(4.6, 2.9)
    matches = np.arange(1, len(rewards) + 1)
    sums = np.concatenate([[0.0], np.cumsum(rewards)])
    first = np.maximum(matches - TRAILING, 0)
    axes.plot(matches, (sums[matches] - sums[first]) / (matches - first), color="#c3d5e6", label=f"last {TRAILING}")
    axes.plot(matches, sums[1:] / matches, color="#1f6fb4", linewidth=1.6, label="all so far")
    axes.set_ylim(0, 102)
    axes.set_xlabel("matches", fontsize=8.5)
    axes.set_ylabel("mean reward", fontsize=8.5)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def shares_figure(shares: Mapping[str, Sequence[float]], xlabel: str) -> Figure:
    """Draw shares that add up to 1, over numbers from 1 on; the largest at the end are named.

    shares  by name, of equal length
    """
    figure, (axes,) = _canvas(4.6, 2.9)
    largest = sorted(shares, key=lambda name: -shares[name][-1])[:_NAMED_SHARES]
    for name, own in shares.items():
        look: Mapping[str, Any] = {"linewidth": 1.6, "label": name} if name in largest else {"color": "#d5dade"}
        axes.plot(range(1, len(own) + 1), own, marker="o", markersize=3, **look)
    axes.set_ylim(-0.02, 1.02)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(xlabel, fontsize=8.5)
    axes.set_ylabel("probability", fontsize=8.5)
    axes.legend(frameon=False, fontsize=8)
    return figure


def sweep_figure(
    name: str, caption: str, panels: dict[str, dict[str, list[tuple[int, Interval]]]], folder: Path, ylabel: str
) -> ReportPicture:
    """Draw panels of lines over a logarithmic x axis. `panels` is {panel: {line: [(x, interval), ..]}}."""
    figure, grid = _canvas(7.6, 3.1, len(panels), True)
    colours = ("#1f6fb4", "#c9403a", "#3a9d5d", "#8a6d3b")
    for axes, (title, lines) in zip(grid, panels.items(), strict=True):
        for (label, points), colour in zip(lines.items(), colours, strict=False):
            x = [at for at, _ in points]
            mean, low, high, _ = zip(*(astuple(interval) for _, interval in points), strict=True)
            axes.plot(x, mean, "o-", color=colour, markersize=3.5, linewidth=1.5, label=label)
            if not any(interval.too_few for _, interval in points):
                axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
        axes.set_xscale("log")
        axes.set_xticks(x, [str(at) for at in x], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_title(title, loc="left", fontsize=9, color=CHART_INK, weight="bold")
        axes.set_xlabel("matches of the source run", fontsize=8)
    rows = [
        (title, label, at, *astuple(interval))
        for title, lines in panels.items()
        for label, points in lines.items()
        for at, interval in points
    ]
    grid[0].set_ylim(0, 1.08 * max(mean for _, _, _, mean, *_ in rows))
    grid[0].set_ylabel(ylabel, fontsize=8.5)
    grid[0].legend(frameon=False, fontsize=8)
    return _save(figure, folder / name, caption, ("panel", "line", "matches", "mean", "low", "high", "runs"), rows)


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a CSV file and return its path. Floats have six decimals."""
    with whole_file(path) as whole, whole.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row] for row in rows)
    return path


def _canvas(
    width: float, height: float, panels: int = 1, same_y: bool = True, same_x: bool = False, rows: int = 1
) -> tuple[Figure, Any]:
    """Return a figure and the axes of its panels, row after row; `panels` is the number of those in a row."""
    figure = new_figure(width, height, facecolor="white", layout="constrained")
    grid = figure.subplots(rows, panels, sharey=same_y, sharex=same_x, squeeze=False).flatten()
    for axes in grid:
        _plain_axes(axes)
    return figure, grid


def _plain_axes(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#aab1b8")
    axes.tick_params(colors=CHART_INK, labelsize=8, color="#aab1b8")
    axes.xaxis.label.set_color(CHART_INK)
    axes.yaxis.label.set_color(CHART_INK)


def _save(
    figure: Figure, stem: Path, caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> ReportPicture:
    """Write a chart as PNG and SVG, and its rows as CSV. `stem` is the path of the files without a suffix."""
    png, svg, table = (stem.parent / f"{stem.name}.{suffix}" for suffix in ("png", "svg", "csv"))
    _write(figure, png, 170)
    _write(figure, svg, "figure")
    return ReportPicture(stem.name, caption, png, svg, write_rows(table, header, rows))
