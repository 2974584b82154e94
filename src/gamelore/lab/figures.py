"""Pictures, each with the rows it was drawn from: `stem`.png, `stem`.svg and `stem`.csv."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .stats import Curve, Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, RULE = "#22262b", "#7a828b", "#dfe3e7"
COLOURS = {
    "transfer": "#1f6fb4",
    "baseline": "#8a6d3b",
    "lookahead": "#c9403a",
    "maxmax": "#3a9d5d",
    "avgmax": "#3a9d5d",
}
VERDICT_COLOURS = {
    "reproduced": "#2c8a4b",
    "contradicted": "#c9403a",
    "equivalent": "#5b6fb0",
    "undecided": "#8d949b",
}
LABELS = {"transfer": "with transfer", "baseline": "without transfer", "lookahead": "with lookahead"}
"""The paper's legend."""
DRAWN_POINTS = 400  # of a curve; its rows are complete


@dataclass(frozen=True)
class Picture:
    """One figure of a report: where its files are, and what they show."""

    name: str
    caption: str
    png: Path
    svg: Path
    csv: Path


@dataclass(frozen=True)
class CurvePlan:
    """What a learning figure looks like: the paper's axis is (low, high) in points, or none."""

    name: str
    title: str
    caption: str
    axis: tuple[float, float] | None
    averaged_from: int
    other_from: int  # of the curves that go into the rows only
    runs: int


def learning_figure(plan: CurvePlan, curves: dict[str, Curve], folder: Path, extra: dict[str, Curve]) -> Picture:
    """The learners' cumulative averages in the paper's layout, with 95 % bands and the paper's axis marked.

    `extra` are curves averaged from another match: they go into the rows only.
    """
    figure, (axes,) = _canvas(7.2, 4.0)
    bottom, top = _limits(curves, plan.axis)
    if plan.axis is not None:
        _paper_axis(axes, plan.axis)
    for learner, curve in curves.items():
        _curve(axes, learner, curve)
    _end_labels(axes, curves, (top - bottom) * 0.05)
    last = max(int(curve.matches[-1]) for curve in curves.values())
    axes.set(xlim=(0, last), ylim=(bottom, top), xlabel="Matches played")
    axes.set_ylabel(f"Mean cumulative average\nperformance over {plan.runs} runs")
    axes.set_title(plan.title, loc="left", fontsize=10.5, color=INK, weight="bold")
    rows = [
        (averaged, learner, *point)
        for averaged, some in ((plan.averaged_from, curves), (plan.other_from, extra))
        for learner, curve in some.items()
        for point in zip(*(a.tolist() for a in (curve.matches, curve.mean, curve.low, curve.high)), strict=True)
    ]
    header = ("averaged_from", "learner", "match", "mean", "low", "high")
    return _save(figure, folder / plan.name, plan.caption, header, rows)


def _curve(axes: Axes, learner: str, curve: Curve) -> None:
    kept = np.unique(np.linspace(0, len(curve.matches) - 1, DRAWN_POINTS).astype(int))
    x, colour = curve.matches[kept], COLOURS.get(learner, FAINT)
    dashes = {"baseline": (5, 2), "lookahead": (1.5, 1.5)}.get(learner)
    axes.fill_between(x, curve.low[kept], curve.high[kept], color=colour, alpha=0.13, linewidth=0)
    (line,) = axes.plot(x, curve.mean[kept], color=colour, linewidth=1.7)
    if dashes:
        line.set_dashes(dashes)


def _limits(curves: dict[str, Curve], axis: tuple[float, float] | None) -> tuple[float, float]:
    """Room for the curves once they have settled (the first hundred points of an average jump) and the paper's axis."""
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
    """What each curve is, and its last value, at its end."""
    shown: list[float] = []
    for value, learner in sorted((float(curve.mean[-1]), learner) for learner, curve in curves.items()):
        shown.append(max([value, *(other + apart for other in shown[-1:])]))
        style: dict[str, Any] = {"fontsize": 8, "color": COLOURS.get(learner, FAINT), "va": "center"}
        words = f"{value:.2f} {LABELS.get(learner, f'with {learner}')}"
        axes.annotate(words, (1.01, shown[-1]), xycoords=("axes fraction", "data"), annotation_clip=False, **style)


@dataclass(frozen=True)
class Dot:
    """A labelled interval of a dot chart; `paper` is the printed number beside it."""

    label: str
    interval: Interval
    colour: str = INK
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
) -> Picture:
    """Panels side by side, one row per dot: mean, 95 % interval, and the paper's number as a diamond.

    `symlog`: linear between -1 and 1, logarithmic beyond.
    """
    longest = max(len(dots) for _, dots in panels)
    widest = max(len(dot.label) for _, dots in panels for dot in dots) * 0.062
    width = widest + 0.5 + 2.1 * len(panels) + (0 if share_labels else widest * (len(panels) - 1))
    figure, grid = _canvas(max(6.6, width), 0.62 + 0.23 * longest + 0.35, len(panels), share_labels, same_x)
    for axes, (title, dots) in zip(grid, panels, strict=True):
        _dots(axes, dots)
        axes.set_title(title, loc="left", fontsize=9, color=INK, weight="bold")
        axes.set_xlabel(xlabel, fontsize=8)
        if symlog:
            _logarithmic_beyond_one(axes)
        if zero is not None:
            axes.axvline(zero, color=FAINT, linewidth=0.8, zorder=0)
    rows = [
        (title, dot.label, dot.interval.mean, dot.interval.low, dot.interval.high, dot.interval.num, dot.paper)
        for title, dots in panels
        for dot in dots
    ]
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
        one = dot.interval
        if np.isfinite(one.half_width):
            axes.plot([one.low, one.high], [y, y], color=dot.colour, linewidth=2.2, alpha=0.45, solid_capstyle="butt")
        axes.plot(one.mean, y, "o", color=dot.colour, markersize=4)
        if dot.paper is not None:
            axes.plot(dot.paper, y, "D", markersize=4.4, markerfacecolor="white", markeredgecolor=INK, zorder=3)
    axes.set_yticks(range(len(dots)), [dot.label for dot in dots], fontsize=8)
    axes.set_ylim(len(dots) - 0.4, -0.6)
    axes.grid(axis="y", color=RULE, linewidth=0.6)


@dataclass(frozen=True)
class Bars:
    """One bar in each group of a bar chart; `hatched`: somebody else's numbers."""

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
) -> Picture:
    """Panels side by side, groups of bars from 0 to 100 with their intervals."""
    figure, grid = _canvas(3.9 * len(panels) + 0.6, 3.5, len(panels))
    for axes, (title, bars) in zip(grid, panels, strict=True):
        for number, one in enumerate(bars):
            _bars(axes, one, number, len(bars))
        axes.set_xticks(range(len(groups)), groups, fontsize=8.5)
        axes.set_ylim(0, 100)
        axes.set_title(title, loc="left", fontsize=9.5, color=INK, weight="bold")
        axes.grid(axis="y", color=RULE, linewidth=0.6)
        axes.set_axisbelow(True)
    grid[0].set_ylabel(ylabel, fontsize=8.5)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    rows = [
        (title, one.label, group, interval.mean, interval.low, interval.high, interval.num)
        for title, bars in panels
        for one in bars
        for group, interval in zip(groups, one.intervals, strict=True)
    ]
    return _save(figure, folder / name, caption, ("panel", "bars", "group", "mean", "low", "high", "runs"), rows)


def _bars(axes: Axes, one: Bars, number: int, num: int) -> None:
    width = 0.84 / num
    for group, interval in enumerate(one.intervals):
        x = group + (number - (num - 1) / 2) * width
        look: dict[str, Any] = {"facecolor": "white" if one.hatched else one.colour, "edgecolor": one.colour}
        label = one.label if group == 0 else None
        axes.bar(
            x, interval.mean, 0.9 * width, hatch="/////" if one.hatched else None, label=label, linewidth=0.8, **look
        )
        if np.isfinite(interval.half_width):
            low, high = max(interval.low, 0.0), min(interval.high, 100.0)
            axes.plot([x, x], [low, high], color=INK, linewidth=1.0)


def sweep_figure(
    name: str, caption: str, panels: dict[str, dict[str, list[tuple[int, Interval]]]], folder: Path, ylabel: str
) -> Picture:
    """Panels of lines over a logarithmic x; {panel: {line: [(x, interval), ..]}}."""
    figure, grid = _canvas(7.6, 3.1, len(panels), True)
    colours = ("#1f6fb4", "#c9403a", "#3a9d5d", "#8a6d3b")
    for axes, (title, lines) in zip(grid, panels.items(), strict=True):
        for (label, points), colour in zip(lines.items(), colours, strict=False):
            x = [at for at, _ in points]
            axes.plot(
                x, [one.mean for _, one in points], "o-", color=colour, markersize=3.5, linewidth=1.5, label=label
            )
            axes.fill_between(x, [one.low for _, one in points], [one.high for _, one in points],
                              color=colour, alpha=0.13, linewidth=0)  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks(x, [str(at) for at in x], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_title(title, loc="left", fontsize=9, color=INK, weight="bold")
        axes.set_xlabel("matches of the source run", fontsize=8)
    every = [one.mean for lines in panels.values() for points in lines.values() for _, one in points]
    grid[0].set_ylim(0, 1.08 * max(every))
    grid[0].set_ylabel(ylabel, fontsize=8.5)
    grid[0].legend(frameon=False, fontsize=8)
    rows = [
        (title, label, at, one.mean, one.low, one.high, one.num)
        for title, lines in panels.items()
        for label, points in lines.items()
        for at, one in points
    ]
    return _save(figure, folder / name, caption, ("panel", "line", "matches", "mean", "low", "high", "runs"), rows)


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """A CSV file; floats with six decimals."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row] for row in rows)
    return path


def _canvas(
    width: float, height: float, panels: int = 1, same_y: bool = True, same_x: bool = False
) -> tuple[Figure, Any]:
    """A figure and the axes of its panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    grid = figure.subplots(1, panels, sharey=same_y, sharex=same_x, squeeze=False)[0]
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color("#aab1b8")
        axes.tick_params(colors=INK, labelsize=8, color="#aab1b8")
        axes.xaxis.label.set_color(INK)
        axes.yaxis.label.set_color(INK)
    return figure, grid


def _save(figure: Figure, stem: Path, caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Picture:
    import matplotlib

    stem.parent.mkdir(parents=True, exist_ok=True)
    # with_suffix would cut names that have a dot
    png, svg, table = (stem.parent / f"{stem.name}.{suffix}" for suffix in ("png", "svg", "csv"))
    with matplotlib.rc_context({"svg.hashsalt": "gamelore"}):  # the same rows, the same bytes
        figure.savefig(png, dpi=170)
        figure.savefig(svg, metadata={"Date": None})
    return Picture(stem.name, caption, png, svg, write_rows(table, header, rows))
