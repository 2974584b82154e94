"""Pairs and positions as pictures: small boards with their moves on them, and the moves in words; see pairs.py.

Hatching says that anything may lie in a place. What else is on a board is told in marks.py, and in the legend.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING

from ..rules.board import UNBROKEN
from .drawing import FAINT, INK, MARGIN, PAGE_WIDTH, RULE, save
from .layout import Board, Spot
from .marks import (
    COLOURS,
    PAPER,
    Canvas,
    Style,
    draw_badge,
    draw_board,
    draw_cross,
    draw_disc,
    draw_moves,
    draw_unknown,
    drawn,
    label_spot,
    role_styles,
)
from .pairs import MAYBE, DrawnPair, Scene, Stage, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..rules.game import Game

PANEL_WIDTH = 2.0  # of a board, where that leaves its places a good size
LARGEST, SMALLEST = 0.44, 0.24  # side of a place
BETWEEN = 0.3  # panels
LINE_STEP = 0.15
TITLE_ROOM = 0.26
MOST_MOVES = 12  # that are listed below a board
LETTER = 0.044  # wide, about, in the size of the lists


def draw_pairs(
    game: Game, pairs: Sequence[DrawnPair], path: str | Path, title: str = "", *, matrix: bool = False
) -> list[Path]:
    """Draws pairs or positions of a game and returns the files written.

    The suffix of `path` says PNG, SVG or another format of matplotlib's; without one, a PNG and an SVG. matrix: the
    first coordinate goes downwards, the second to the right. Raises GameloreError for a suffix that is no format.
    """
    return save(pairs_figure(game, pairs, title, matrix=matrix), path)


def pairs_figure(game: Game, pairs: Sequence[DrawnPair], title: str = "", *, matrix: bool = False) -> Figure:
    """The picture: rows of boards as wide as a page, or as its widest board."""
    import matplotlib
    from matplotlib.figure import Figure

    stage = Stage(game, matrix=matrix)
    styles = role_styles(game.roles)
    panels = [Panel.of(stage.scene(pair), styles) for pair in pairs]
    rows = _rows(panels)
    first = MARGIN + (0.35 if title else 0.0)
    width = max([PAGE_WIDTH, *(panel.width + 2 * MARGIN for panel in panels)])
    height = first + sum(max(panel.height for panel in row) + BETWEEN for row in rows) + 0.35
    with matplotlib.rc_context({"hatch.linewidth": 0.7}):
        figure = Figure(figsize=(width, height), facecolor=PAPER)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))  # y grows downwards
        axes.set_axis_off()
        axes.text(MARGIN, MARGIN + 0.05, title, size=11, weight="bold", color=INK, va="center")
        _draw_rows(axes, rows, first)
        _draw_legend(axes, panels, styles, width, height - 0.2)
    return figure


# ---- panels -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """One pair with its size in inches; `left` and `high` are the edges of its boards, in places."""

    scene: Scene
    styles: Mapping[str, Style]
    side: float
    left: float
    high: float
    board_size: tuple[float, float]
    words: tuple[str, ...]

    @classmethod
    def of(cls, scene: Scene, styles: Mapping[str, Style]) -> Panel:
        """Measures a pair."""
        xs, ys = zip(*_extent(scene.laid.boards), strict=True) if scene.laid.boards else ((0.0, 0.0), (0.0, 0.0))
        wide, high = max(xs) - min(xs), max(ys) - min(ys)
        side = min(LARGEST, max(SMALLEST, PANEL_WIDTH / max(wide, 1.0)))
        across = max(PANEL_WIDTH, wide * side)
        facts = " ".join(fact.replace(" ", UNBROKEN) for fact in scene.laid.others)
        words = textwrap.wrap(facts, int(across / LETTER), break_long_words=False)
        return cls(scene, styles, side, min(xs), max(ys), (wide * side, high * side), tuple(words))

    @property
    def width(self) -> float:
        lines = [LETTER * (len(step.role) + len(step.move) + 1) + self.indent(step) for step in self.listed]
        return max([PANEL_WIDTH, self.board_size[0], *lines])

    @property
    def listed(self) -> tuple[Step, ...]:
        """The moves that are listed below the board: all, or the first ones and a line about the rest."""
        steps = self.scene.steps
        return steps if len(steps) <= MOST_MOVES + 1 else steps[:MOST_MOVES]

    def indent(self, step: Step) -> float:
        """Where a move is written, in a tree by what is above it."""
        return 0.26 + (0.12 * step.depth if self.scene.is_tree else 0.0)

    @property
    def notes(self) -> Iterator[str]:
        """The lines below the list."""
        steps, on_board = self.scene.steps, drawn(self.scene.steps)
        if len(steps) > len(self.listed):
            yield f".. and {len(steps) - len(self.listed)} more moves"
        if len(steps) > len(on_board):
            last = max(on_board, key=lambda step: step.depth).number.rstrip(ascii_lowercase)
            yield f"on the board: {'moves 1 to ' if last != '1' else 'move '}{last}"
        yield from self.words

    @property
    def height(self) -> float:
        num_lines = len(self.listed) + len(list(self.notes))
        return TITLE_ROOM + self.board_size[1] + 0.1 + num_lines * LINE_STEP


def _extent(boards: Iterable[Board]) -> Iterator[Spot]:
    """Corners of all that is drawn of boards, in places."""
    for board in boards:
        for x, y in board.spots.values():
            yield from ((x - 0.5, y - 0.5), (x + 0.5, y + 0.5))
        yield from map(label_spot, board.labels)


def _rows(panels: Sequence[Panel]) -> list[list[Panel]]:
    """The panels in their order, as many to a row as the page takes."""
    rows: list[list[Panel]] = []
    room = 0.0
    for panel in panels:
        if panel.width > room + 1e-9:
            rows.append([])
            room = PAGE_WIDTH - 2 * MARGIN
        rows[-1].append(panel)
        room -= panel.width + BETWEEN
    return rows


def _draw_rows(axes: Axes, rows: Sequence[Sequence[Panel]], top: float) -> None:
    for row in rows:
        left = MARGIN
        for panel in row:
            _draw_panel(axes, panel, left, top)
            left += panel.width + BETWEEN
        top += max(panel.height for panel in row) + BETWEEN


def _draw_panel(axes: Axes, panel: Panel, left: float, top: float) -> None:
    axes.text(left, top + 0.06, panel.scene.pair.title, size=8, weight="bold", color=INK, va="center")
    origin = left - panel.left * panel.side, top + TITLE_ROOM + panel.high * panel.side
    canvas = Canvas(axes, panel.scene, panel.styles, panel.side, origin)
    for board in panel.scene.laid.boards:
        draw_board(canvas, board)
    draw_moves(canvas)
    _draw_list(axes, panel, left, top + TITLE_ROOM + panel.board_size[1] + 0.14)


def _draw_list(axes: Axes, panel: Panel, left: float, y: float) -> None:
    """The moves with their numbers, then what is left to say, and the facts that lie nowhere."""
    for step in panel.listed:
        style, x = panel.styles[step.role], left + panel.indent(step)
        draw_badge(axes, (x - 0.17, y), 0.065, step.number, style)
        axes.text(x - 0.05, y, f"{step.role} {step.move}", size=6.5, color=INK, va="center")
        y += LINE_STEP
    for words in panel.notes:
        axes.text(left, y, words, size=6.5, color=FAINT, va="center")
        y += LINE_STEP


def _draw_legend(axes: Axes, panels: Sequence[Panel], styles: Mapping[str, Style], width: float, y: float) -> None:
    """The colours of the roles, and what the other signs say, as far as they are there."""
    steps = [step for panel in panels for step in panel.scene.steps]
    x = MARGIN + 0.08
    for role in dict.fromkeys(step.role for step in steps):
        draw_badge(axes, (x, y), 0.075, "1", styles[role])
        x = _legend_words(axes, x, y, f"move of {role}")
    if any(step.effect.guess for step in steps):
        draw_badge(axes, (x, y), 0.075, MAYBE, styles[steps[0].role], is_sure=False)
        x = _legend_words(axes, x, y, "one of its places")
    if any(step.effect.taken for step in steps):
        draw_cross(axes, (x, y), 0.06)
        x = _legend_words(axes, x, y, "taken")
    if any(step.effect.turned for step in steps):
        draw_disc(axes, (x, y), 0.05, COLOURS["black"], zorder=4)
        x = _legend_words(axes, x, y, "turned")
    if any(panel.scene.has_unknown for panel in panels):
        draw_unknown(axes, (x - 0.075, y - 0.075), 0.15)
        x = _legend_words(axes, x, y, "anything")
    if x > MARGIN + 0.08:
        axes.plot([MARGIN, width - MARGIN], [y - 0.17, y - 0.17], color=RULE, linewidth=0.8)


def _legend_words(axes: Axes, x: float, y: float, words: str) -> float:
    """Writes what a sign says; returns where the next one goes."""
    axes.text(x + 0.13, y, words, size=7, color=FAINT, va="center")
    return x + 0.36 + 0.058 * len(words)
