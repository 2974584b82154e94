"""Pictures of move sequences with their contexts, and of positions: small boards with the moves on them.

The signs on the boards:

    hatching                a place that may contain anything
    number                  a move that puts a piece in this place, in the colour of its role
    arrow with a number     a move of a piece from one place to another
    cross                   a piece that is taken
    dot                     a piece that becomes another piece
    broken ring with ?      a move whose destination is not known; this place is one of the possible destinations

The moves are listed below the board.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from ..drawing import board as drawing
from ..drawing.board import EDGE, FAINT, INK, PAPER, POINT, Board, Piece, Place, Spot, Style
from ..drawing.position import wrapped
from .figures import MARGIN, WIDTH, circle, cross, first_row, in_rows, page, rule, save, square
from .sequence_text import ANYTHING, MAYBE, MORE, DrawnMove, DrawnPair, Scene, Scenes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..game.game import Game

# all lengths are in inches unless said otherwise
PANEL_WIDTH = 2.0  # preferred width of a board; a wider board is drawn if its places would become smaller than SMALLEST
LARGEST, SMALLEST = 0.44, 0.24  # limits for the side of a place
BETWEEN = 0.3  # distance between two panels
LINE_STEP = 0.15
TITLE_ROOM = 0.26
MOST_LISTED = 12  # largest number of moves in the list below a board
LETTER = 0.044  # approximate width of a letter in the list of moves
PIECE, BADGE, DOT = 0.37, 0.30, 0.12  # radii, as shares of the side of a place
MOST_NUMBERS = 4  # largest number of move numbers in one place
MOST_DRAWN = 12  # largest number of moves of a tree on one board
UNKNOWN, HATCHING = "#f3f4f6", "#cfd5db"


def draw_pairs(
    game: Game, pairs: Sequence[DrawnPair], path: str | Path, title: str = "", *, matrix: bool = False
) -> list[Path]:
    """Draw pairs or positions of a game in picture files, and return the paths of the files.

    path    the suffix selects PNG, SVG or another format of matplotlib; without a suffix, a PNG and an SVG are written
    matrix  the first coordinate goes downwards, the second to the right

    Raise GameloreError for a suffix that is not the name of a format.
    """
    return save(pairs_figure(game, pairs, title, matrix=matrix), path)


def pairs_figure(game: Game, pairs: Sequence[DrawnPair], title: str = "", *, matrix: bool = False) -> Figure:
    """Return a figure with rows of boards. It is as wide as a page, or as the widest board if this is wider."""
    import matplotlib

    styles = drawing.role_styles(game.roles)
    panels = [Panel.of(scene, styles) for scene in map(Scenes(game, matrix=matrix).scene, pairs)]
    rows = in_rows(panels, lambda panel: panel.width, BETWEEN)
    width = max([WIDTH, *(panel.width + 2 * MARGIN for panel in panels)])
    height = first_row(title) + sum(max(panel.height for panel in row) + BETWEEN for row in rows) + 0.35
    with matplotlib.rc_context({"hatch.linewidth": 0.7}):
        figure, axes = page(width, height, title)
        _draw_rows(axes, rows, first_row(title))
        _draw_legend(axes, panels, styles, width, height - 0.2)
    return figure


# ---- panels -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """A pair, and the size of its drawing.

    side        side of a place, in inches
    left, high  left and upper edge of the boards, in the coordinates of the boards (unit: the side of a place)
    board_size  (width, height) of all boards together, in inches
    words       lines of text with the facts that are on no board
    """

    scene: Scene
    styles: Mapping[str, Style]
    side: float
    left: float
    high: float
    board_size: tuple[float, float]
    words: tuple[str, ...]

    @classmethod
    def of(cls, scene: Scene, styles: Mapping[str, Style]) -> Panel:
        """Return the panel of a scene, with the sizes that its boards need."""
        xs, ys = zip(*drawing.extent(scene.laid.boards), strict=True) if scene.laid.boards else ((0.0, 0.0), (0.0, 0.0))
        wide, high = max(xs) - min(xs), max(ys) - min(ys)
        side = min(LARGEST, max(SMALLEST, PANEL_WIDTH / max(wide, 1.0)))
        across = max(PANEL_WIDTH, wide * side)
        words = wrapped(scene.laid.others, int(across / LETTER), " ")
        return cls(scene, styles, side, min(xs), max(ys), (wide * side, high * side), tuple(words))

    @property
    def width(self) -> float:
        lines = [LETTER * (len(step.role) + len(step.move) + 1) + self.indent(step) for step in self.listed]
        return max([PANEL_WIDTH, self.board_size[0], *lines])

    @property
    def listed(self) -> tuple[DrawnMove, ...]:
        """The moves in the list below the board: all moves, or the first MOST_LISTED if there are too many."""
        steps = self.scene.steps
        return steps if len(steps) <= MOST_LISTED + 1 else steps[:MOST_LISTED]

    def indent(self, step: DrawnMove) -> float:
        """Return the indentation of a move in the list. In a tree, deeper moves are indented further."""
        return 0.26 + (0.12 * step.depth if self.scene.is_tree else 0.0)

    @property
    def notes(self) -> Iterator[str]:
        """The lines of text below the list of moves."""
        steps, on_board = self.scene.steps, drawn(self.scene.steps)
        if len(steps) > len(self.listed):
            yield f"... and {len(steps) - len(self.listed)} more moves"
        if len(steps) > len(on_board):
            last = max(on_board, key=lambda step: step.depth).number.rstrip(ascii_lowercase)
            yield f"on the board: {'moves 1 to ' if last != '1' else 'move '}{last}"
        yield from self.words

    @property
    def height(self) -> float:
        num_lines = len(self.listed) + len(list(self.notes))
        return TITLE_ROOM + self.board_size[1] + 0.1 + num_lines * LINE_STEP


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
        _draw_board(canvas, board)
    _draw_moves(canvas)
    _draw_list(axes, panel, left, top + TITLE_ROOM + panel.board_size[1] + 0.14)


def _draw_list(axes: Axes, panel: Panel, left: float, y: float) -> None:
    """Draw the list of the moves with their numbers, and the notes below it."""
    for step in panel.listed:
        style, x = panel.styles[step.role], left + panel.indent(step)
        _draw_badge(axes, (x - 0.17, y), 0.065, step.number, style)
        axes.text(x - 0.05, y, f"{step.role} {step.move}", size=6.5, color=INK, va="center")
        y += LINE_STEP
    for words in panel.notes:
        axes.text(left, y, words, size=6.5, color=FAINT, va="center")
        y += LINE_STEP


def _draw_legend(axes: Axes, panels: Sequence[Panel], styles: Mapping[str, Style], width: float, y: float) -> None:
    """Draw the legend. It explains the colours of the roles, and each sign that occurs in the picture."""
    steps = [step for panel in panels for step in panel.scene.steps]
    x = begin = MARGIN + 0.08

    def explain(words: str, draw: Callable[..., None], *how: Any, **look: Any) -> None:
        nonlocal x
        draw(axes, (x, y), *how, **look)
        axes.text(x + 0.13, y, words, size=7, color=FAINT, va="center")
        x += 0.36 + 0.058 * len(words)

    for role in dict.fromkeys(step.role for step in steps):
        explain(f"move of {role}", _draw_badge, 0.075, "1", styles[role])
    if any(step.effect.guess for step in steps):
        explain("one of its places", _draw_badge, 0.075, MAYBE, styles[steps[0].role], is_sure=False)
    if any(step.effect.taken for step in steps):
        explain("taken", _draw_cross, 0.06)
    if any(step.effect.turned for step in steps):
        explain("turned", _draw_disc, 0.05, drawing.COLOURS["black"], zorder=4)
    if any(ANYTHING in panel.scene.texts.values() for panel in panels):
        explain("anything", square, 0.15, **HATCHED)
    if x > begin:
        rule(axes, width, y - 0.17)


# ---- boards -----------------------------------------------------------------------------------------------------

HATCHED: dict[str, Any] = {"facecolor": UNKNOWN, "edgecolor": HATCHING, "hatch": "/////", "linewidth": 0, "zorder": 1}


@dataclass(frozen=True)
class Canvas:
    """The part of a page on which one pair is drawn.

    side    side of a place, in inches
    origin  the point of the page for the point (0, 0) of the boards, in inches; y grows downwards
    """

    axes: Axes
    scene: Scene
    styles: Mapping[str, Style]
    side: float
    origin: Spot

    def at(self, spot: Spot) -> Spot:
        """Convert a point of a board to a point of the page."""
        (left, top), (x, y) = self.origin, spot
        return left + x * self.side, top - y * self.side

    def place(self, place: Place) -> Spot:
        """Return the point of the page at which a place lies."""
        return self.at(next(b.spots[place.at] for b in self.scene.laid.boards if b.function == place.function))

    def size(self, share: float) -> float:
        """Return the font size in points for letters whose height is this share of the side of a place."""
        return 72 * self.side * share


def _draw_board(canvas: Canvas, board: Board) -> None:
    axes, size = canvas.axes, min(6.5, canvas.size(0.3))
    for ends in board.lines:
        xs, ys = zip(*(canvas.at(board.spots[end]) for end in ends), strict=True)
        axes.plot(xs, ys, color=EDGE, linewidth=1.1, zorder=1)
    for label in board.labels:
        x, y = canvas.at(drawing.label_spot(label))
        axes.text(x, y, label.text, size=size, color=FAINT, ha="right" if label.is_beside else "center", va="center")
    looks = drawing.pieces(board.symbols, canvas.styles)
    for at, spot in board.spots.items():
        place, (x, y) = Place(board.function, at), canvas.at(spot)
        text = canvas.scene.texts[place]
        (_draw_square if board.kind == "squares" else _draw_point)(canvas, (x, y), text)
        if text not in (ANYTHING, POINT):
            _draw_piece(canvas, (x, y), looks.get(canvas.scene.laid.contents[place], Piece(text)))
        if board.kind != "squares":
            away = 0.33 * canvas.side
            axes.text(x + away, y - away, at[0], size=size * 0.85, color=FAINT, va="center")


def _draw_square(canvas: Canvas, spot: Spot, text: str) -> None:
    if text == ANYTHING:
        square(canvas.axes, spot, canvas.side, **HATCHED)
    square(canvas.axes, spot, canvas.side, fill=False, edgecolor=EDGE, linewidth=0.7, zorder=2)


def _draw_point(canvas: Canvas, spot: Spot, text: str) -> None:
    if text == ANYTHING:
        look = HATCHED | {"edgecolor": EDGE, "hatch": "///////", "linewidth": 0.5, "zorder": 2}
        circle(canvas.axes, spot, 0.2 * canvas.side, **look)
    elif text == POINT:
        circle(canvas.axes, spot, 0.14 * canvas.side, facecolor=PAPER, edgecolor=EDGE, linewidth=1.0, zorder=2)


def _draw_piece(canvas: Canvas, spot: Spot, piece: Piece) -> None:
    size = 0.62 if len(piece.text) == 1 else 0.95 / max(2, len(piece.text))
    look: dict[str, Any] = {"color": INK, "weight": "bold"}
    if piece.style is not None and piece.is_disc:
        _draw_disc(canvas.axes, spot, PIECE * canvas.side, piece.style, zorder=3)
        size, look = 0.4, look | {"color": piece.style.text}
    elif piece.style is not None:
        size, look = 0.8, {"color": piece.style.face, "path_effects": _rim(piece.style.line, 1.0)}
    if not piece.text:
        return
    look |= {"size": canvas.size(size), "ha": "center", "va": "center_baseline"}
    canvas.axes.text(*spot, piece.text, zorder=3, **look)


def _draw_disc(axes: Axes, spot: Spot, radius: float, style: Style, zorder: int) -> None:
    circle(axes, spot, radius, facecolor=style.face, edgecolor=style.line, linewidth=1.0, zorder=zorder)


# ---- moves ------------------------------------------------------------------------------------------------------


def drawn(steps: Sequence[DrawnMove]) -> list[DrawnMove]:
    """Return the moves to draw on a board.

    A tree with more than MOST_DRAWN moves is cut: only its first levels are drawn, as many as have at most MOST_DRAWN
    moves together, and at least one level.
    """
    deepest = max((step.depth for step in steps), default=0)
    levels = [[step for step in steps if step.depth <= depth] for depth in range(deepest, -1, -1)]
    return next((level for level in levels if len(level) <= MOST_DRAWN), levels[-1])


def _draw_moves(canvas: Canvas) -> None:
    numbers: dict[Place, list[DrawnMove]] = {}
    arrows: dict[tuple[Place, Place], list[DrawnMove]] = {}
    crosses: dict[Place, list[DrawnMove]] = {}
    there = canvas.scene.texts
    for step in drawn(canvas.scene.steps):
        effect = step.effect
        for place in (place for place in (*effect.placed, effect.guess) if place and place in there):
            numbers.setdefault(place, []).append(step)
        for ends in (ends for ends in effect.moved if there.keys() >= set(ends)):
            arrows.setdefault(ends, []).append(step)
        for place in filter(there.__contains__, effect.taken):
            crosses.setdefault(place, []).append(step)
        for place in filter(there.__contains__, effect.turned):
            _draw_disc(canvas.axes, canvas.place(place), DOT * canvas.side, canvas.styles[step.role], zorder=4)
    for place, steps in crosses.items():
        _draw_crossed(canvas, place, steps)
    for ends, steps in arrows.items():
        _draw_arrow(canvas, ends, steps, is_bent=ends[::-1] in arrows)
    for place, steps in numbers.items():
        _draw_numbers(canvas, place, steps)


def _draw_numbers(canvas: Canvas, place: Place, steps: Sequence[DrawnMove]) -> None:
    """Draw the numbers of all moves to a place. Several numbers are drawn in a circle around its centre."""
    x, y = canvas.place(place)
    shown = _shown(steps, MOST_NUMBERS)
    is_taken = canvas.scene.texts[place] not in (ANYTHING, POINT)
    radius = BADGE * canvas.side * (1.0 if len(shown) == 1 else 0.72 if len(shown) == 2 else 0.55)
    away = canvas.side * (0.24 if len(shown) > 1 else 0.2 if is_taken else 0.0)
    for turn, (step, number) in enumerate(shown):
        angle = pi - 2 * pi * turn / len(shown) if len(shown) > 1 else pi / 4
        spot = x + away * cos(angle), y - away * sin(angle)
        is_sure = step.effect.guess != place
        text = number if is_sure or number == MORE else number + MAYBE
        _draw_badge(canvas.axes, spot, radius, text, canvas.styles[step.role], is_sure)


def _shown(steps: Sequence[DrawnMove], most: int) -> list[tuple[DrawnMove, str]]:
    """Return the moves, by depth, with the texts to draw for them.

    If there are more than `most` moves, the list ends after `most` entries, and the text of the last entry is MORE.
    """
    numbered = [(step, step.number) for step in sorted(steps, key=lambda step: step.depth)]
    return numbered if len(numbered) <= most else [*numbered[: most - 1], (numbered[most - 1][0], MORE)]


def _draw_badge(axes: Axes, spot: Spot, radius: float, text: str, style: Style, is_sure: bool = True) -> None:
    """Draw a number in a disc, or in a broken ring if the place is only a guess."""
    look: dict[str, Any] = {"facecolor": style.face, "edgecolor": style.line, "linewidth": 0.8}
    if not is_sure:
        look = {"facecolor": PAPER, "edgecolor": style.line, "linewidth": 1.0, "linestyle": (0, (2, 1.2))}
    circle(axes, spot, radius, zorder=6, path_effects=_rim(), **look)
    size = 72 * radius * (1.15 if len(text) == 1 else 1.7 / len(text))
    colour = style.text if is_sure else INK
    axes.text(*spot, text, size=size, color=colour, ha="center", va="center_baseline", weight="bold", zorder=7)


def _rim(colour: str = PAPER, width: float = 2.2) -> list[Any]:
    """Return path effects that draw a rim around a shape."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground=colour)]


def _draw_arrow(canvas: Canvas, ends: tuple[Place, Place], steps: Sequence[DrawnMove], is_bent: bool) -> None:
    """Draw an arrow between two places with the numbers of its moves. Bend it if another arrow leads back."""
    from matplotlib.patches import FancyArrowPatch

    style = canvas.styles[steps[0].role]
    (x1, y1), (x2, y2) = map(canvas.place, ends)
    length = hypot(x2 - x1, y2 - y1) or 1.0
    radius = BADGE * canvas.side * 0.56
    # the bend is so large that the numbers of the two opposite arrows do not overlap
    bend = max(0.3, 2.8 * radius / length) if is_bent else 0.0
    tip = canvas.size(0.3)
    arrow: dict[str, Any] = {"arrowstyle": f"simple,head_width={tip},head_length={tip},tail_width={tip / 3.2}"}
    way: dict[str, Any] = {
        "connectionstyle": f"arc3,rad={bend}",
        "shrinkA": canvas.size(0.28),
        "shrinkB": canvas.size(0.12),
    }
    look: dict[str, Any] = {"facecolor": style.face, "edgecolor": style.line, "linewidth": 0.7, "zorder": 5}
    canvas.axes.add_patch(FancyArrowPatch((x1, y1), (x2, y2), path_effects=_rim(), **arrow, **way, **look))
    # the middle of the numbers, as a share of the length; it avoids the arrowhead and a piece that is jumped over
    middle = 0.5 if bend else 0.33
    shown = _shown(steps, max(2, int(length / (2 * radius)) - 1))
    for turn, (step, number) in enumerate(shown):
        along = middle + (turn - (len(shown) - 1) / 2) * 2 * radius / length
        # the distance from the chord: matplotlib's style arc3 draws a quadratic Bezier curve with one control point
        aside = 2 * bend * middle * (1 - middle)
        spot = x1 + along * (x2 - x1) - aside * (y2 - y1), y1 + along * (y2 - y1) + aside * (x2 - x1)
        _draw_badge(canvas.axes, spot, radius, number, canvas.styles[step.role])


def _draw_crossed(canvas: Canvas, place: Place, steps: Sequence[DrawnMove]) -> None:
    """Draw a cross over a piece that is taken, and the numbers of the moves that take it."""
    x, y = canvas.place(place)
    _draw_cross(canvas.axes, (x, y), 0.3 * canvas.side)
    for turn, (step, number) in enumerate(_shown(steps, 3)):
        spot = x + (0.36 - 0.36 * turn) * canvas.side, y + 0.34 * canvas.side
        _draw_badge(canvas.axes, spot, 0.17 * canvas.side, number, canvas.styles[step.role])


def _draw_cross(axes: Axes, spot: Spot, half: float) -> None:
    cross(axes, spot, half, color=drawing.COLOURS["red"].face, linewidth=2.0, zorder=4)
