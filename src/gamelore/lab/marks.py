"""What is drawn on a board: pieces, and the moves.

Things that are named as a colour or as a role are discs in its colour, others letters. A move that puts something in a
place is its number there, in the colour of its role; one that moves a piece is an arrow with its number on it; a piece
that is taken is crossed out, one that becomes another has a dot. A number in a broken ring with a question mark is in
one of the places that the move can go to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, Any, NamedTuple

from ..rules.board import POINT
from .drawing import FAINT, INK
from .layout import Board, Label, Place, Spot
from .pairs import ANYTHING, MAYBE, MORE, Scene, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PIECE, BADGE, DOT = 0.37, 0.30, 0.12  # radii, in sides of a place
MOST_NUMBERS = 4  # in one place
MOST_DRAWN = 12  # moves of a tree
PAPER, UNKNOWN, HATCHING, EDGE = "white", "#f3f4f6", "#cfd5db", "#9aa3ad"


class Style(NamedTuple):
    """How a role or a piece is coloured: inside, its edge and its arrows, what is written on it."""

    face: str
    line: str
    text: str


COLOURS = {
    "black": Style("#2b2f36", "#2b2f36", "white"),
    "white": Style("white", "#59616b", INK),
    "red": Style("#cf4340", "#9d2b29", "white"),
    "yellow": Style("#f2c53d", "#a88312", INK),
    "blue": Style("#2f74b8", "#1d5086", "white"),
    "green": Style("#3a9d5d", "#26703f", "white"),
    "orange": Style("#e08a33", "#a65f15", "white"),
    "purple": Style("#8257a8", "#5c3a7c", "white"),
    "brown": Style("#8a6d3b", "#5f4a26", "white"),
    "pink": Style("#e48fb4", "#a85277", INK),
    "teal": Style("#2a9a9a", "#1a6c6c", "white"),
}
LETTERS = {name[0]: style for name, style in list(COLOURS.items())[:5]}
ROLES = ("blue", "red", "green", "orange", "purple", "brown")  # of roles that are named as no colour


def role_styles(roles: Sequence[str]) -> dict[str, Style]:
    """Each role's colour: the one that it is named as, or one that is free."""
    free = (name for name in ROLES if name not in map(str.lower, roles))
    return {role: COLOURS[role.lower() if role.lower() in COLOURS else next(free, "black")] for role in roles}


# ---- boards -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Canvas:
    """A page with one pair on it: the place (0, 0) of its boards is at `origin`, in inches, y downwards."""

    axes: Axes
    scene: Scene
    styles: Mapping[str, Style]
    side: float
    origin: Spot

    def at(self, spot: Spot) -> Spot:
        """A spot on a board as one on the page."""
        (left, top), (x, y) = self.origin, spot
        return left + x * self.side, top - y * self.side

    def place(self, place: Place) -> Spot:
        """A place as a spot on the page."""
        return self.at(self.board(place).spots[place.at])

    def board(self, place: Place) -> Board:
        """The board of a place."""
        return next(board for board in self.scene.laid.boards if board.function == place.function)

    def has(self, place: Place) -> bool:
        """Whether the board of a place is drawn."""
        return any(board.function == place.function for board in self.scene.laid.boards)

    def size(self, share: float) -> float:
        """The size of letters that take so much of a side, in points."""
        return 72 * self.side * share


def label_spot(label: Label) -> Spot:
    """Labels stand nearer to the board than a place."""
    x, y = label.spot
    return (x + 0.35, y) if label.is_beside else (x, y + (0.2 if y < 0 else -0.2))


def draw_board(canvas: Canvas, board: Board) -> None:
    axes, size = canvas.axes, min(6.5, canvas.size(0.3))
    for one, other in board.lines:
        (x1, y1), (x2, y2) = canvas.at(board.spots[one]), canvas.at(board.spots[other])
        axes.plot([x1, x2], [y1, y2], color=EDGE, linewidth=1.1, zorder=1)
    for label in board.labels:
        x, y = canvas.at(label_spot(label))
        axes.text(x, y, label.text, size=size, color=FAINT, ha="right" if label.is_beside else "center", va="center")
    discs = _discs(board, canvas.styles)
    for at, spot in board.spots.items():
        x, y = canvas.at(spot)
        (_draw_square if board.kind == "squares" else _draw_point)(canvas, (x, y), canvas.scene.text_of(board, at))
        thing = canvas.scene.laid.things.get(Place(board.function, at))
        if thing is not None and not board.is_blank(thing):
            _draw_piece(canvas, (x, y), discs.get(thing), board.form(thing))
        if board.kind != "squares":
            away = 0.33 * canvas.side
            axes.text(x + away, y - away, at[0], size=size * 0.85, color=FAINT, va="center")


def _draw_square(canvas: Canvas, spot: Spot, text: str) -> None:
    from matplotlib.patches import Rectangle

    x, y = spot
    corner, side = (x - canvas.side / 2, y - canvas.side / 2), canvas.side
    if text == ANYTHING:
        draw_unknown(canvas.axes, corner, side)
    canvas.axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=EDGE, linewidth=0.7, zorder=2))


def draw_unknown(axes: Axes, corner: Spot, side: float) -> None:
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"facecolor": UNKNOWN, "edgecolor": HATCHING, "hatch": "/////", "linewidth": 0}
    axes.add_patch(Rectangle(corner, side, side, zorder=1, **look))


def _draw_point(canvas: Canvas, spot: Spot, text: str) -> None:
    from matplotlib.patches import Circle

    if text == ANYTHING:
        style: dict[str, Any] = {"facecolor": UNKNOWN, "edgecolor": EDGE, "hatch": "///////", "linewidth": 0.5}
        canvas.axes.add_patch(Circle(spot, 0.2 * canvas.side, zorder=2, **style))
    elif text == POINT:
        circle = Circle(spot, 0.14 * canvas.side, facecolor=PAPER, edgecolor=EDGE, linewidth=1.0, zorder=2)
        canvas.axes.add_patch(circle)


def _discs(board: Board, roles: Mapping[str, Style]) -> dict[str, Style]:
    """The things of a board that are drawn as discs: named as roles or colours, or as letters of several colours."""
    things = [thing for thing in board.symbols if not board.is_blank(thing)]
    letters = {thing: LETTERS[thing.lower()] for thing in things if thing.lower() in LETTERS}
    named = {thing: COLOURS[thing.lower()] for thing in things if thing.lower() in COLOURS}
    of_roles = {thing: style for thing, style in roles.items() if thing in things}
    return of_roles | named | (letters if len(letters) > 1 else {})


def _draw_piece(canvas: Canvas, spot: Spot, disc: Style | None, form: str) -> None:
    if disc is not None:
        draw_disc(canvas.axes, spot, PIECE * canvas.side, disc, zorder=3)
        return
    size = canvas.size(0.62 if len(form) == 1 else 0.95 / max(2, len(form)))
    canvas.axes.text(*spot, form, size=size, ha="center", va="center_baseline", weight="bold", color=INK, zorder=3)


def draw_disc(axes: Axes, spot: Spot, radius: float, style: Style, zorder: int) -> None:
    from matplotlib.patches import Circle

    look: dict[str, Any] = {"facecolor": style.face, "edgecolor": style.line, "linewidth": 1.0}
    axes.add_patch(Circle(spot, radius, zorder=zorder, **look))


# ---- moves ------------------------------------------------------------------------------------------------------


def drawn(steps: Sequence[Step]) -> list[Step]:
    """The moves that are drawn on a board: of a large tree those near its root, as many levels as there is room for."""
    deepest = max((step.depth for step in steps), default=0)
    levels = [[step for step in steps if step.depth <= depth] for depth in range(deepest, -1, -1)]
    return next((level for level in levels if len(level) <= MOST_DRAWN), levels[-1])


def draw_moves(canvas: Canvas) -> None:
    numbers: dict[Place, list[Step]] = {}
    arrows: dict[tuple[Place, Place], list[Step]] = {}
    crosses: dict[Place, list[Step]] = {}
    for step in drawn(canvas.scene.steps):
        effect = step.effect
        for place in filter(canvas.has, (*effect.placed, *([effect.guess] if effect.guess else []))):
            numbers.setdefault(place, []).append(step)
        for ends in effect.moved:
            if all(map(canvas.has, ends)):
                arrows.setdefault(ends, []).append(step)
        for place in filter(canvas.has, effect.taken):
            crosses.setdefault(place, []).append(step)
        for place in filter(canvas.has, effect.turned):
            draw_disc(canvas.axes, canvas.place(place), DOT * canvas.side, canvas.styles[step.role], zorder=4)
    for place, steps in crosses.items():
        _draw_crossed(canvas, place, steps)
    for ends, steps in arrows.items():
        _draw_arrow(canvas, ends, steps, is_bent=ends[::-1] in arrows)
    for place, steps in numbers.items():
        _draw_numbers(canvas, place, steps)


def _draw_numbers(canvas: Canvas, place: Place, steps: Sequence[Step]) -> None:
    """The numbers of the moves that go to a place: one in the middle of it, several around it."""
    x, y = canvas.place(place)
    shown = _shown(steps, MOST_NUMBERS)
    is_taken = canvas.scene.text_of(canvas.board(place), place.at) not in (ANYTHING, POINT)
    radius = BADGE * canvas.side * (1.0 if len(shown) == 1 else 0.72 if len(shown) == 2 else 0.55)
    away = canvas.side * (0.24 if len(shown) > 1 else 0.2 if is_taken else 0.0)
    for turn, (step, number) in enumerate(shown):
        angle = pi - 2 * pi * turn / len(shown) if len(shown) > 1 else pi / 4
        spot = x + away * cos(angle), y - away * sin(angle)
        is_sure = step.effect.guess != place
        text = number if is_sure or number == MORE else number + MAYBE
        draw_badge(canvas.axes, spot, radius, text, canvas.styles[step.role], is_sure)


def _shown(steps: Sequence[Step], most: int) -> list[tuple[Step, str]]:
    """Moves with their numbers, of more than `most` the first of them and a sign that there are more."""
    found = [(step, step.number) for step in sorted(steps, key=lambda step: step.depth)]
    return found if len(found) <= most else [*found[: most - 1], (found[most - 1][0], MORE)]


def draw_badge(axes: Axes, spot: Spot, radius: float, text: str, style: Style, is_sure: bool = True) -> None:
    """A number in a disc; in a broken ring where the place is not sure."""
    from matplotlib.patches import Circle

    look: dict[str, Any] = {"facecolor": style.face, "edgecolor": style.line, "linewidth": 0.8}
    if not is_sure:
        look = {"facecolor": PAPER, "edgecolor": style.line, "linewidth": 1.0, "linestyle": (0, (2, 1.2))}
    axes.add_patch(Circle(spot, radius, zorder=6, path_effects=_halo(), **look))
    size = 72 * radius * (1.15 if len(text) == 1 else 1.7 / len(text))
    colour = style.text if is_sure else INK
    axes.text(*spot, text, size=size, color=colour, ha="center", va="center_baseline", weight="bold", zorder=7)


def _halo() -> list[Any]:
    """A light rim that parts what is dark from what lies below it."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.2, foreground=PAPER)]


def _draw_arrow(canvas: Canvas, ends: tuple[Place, Place], steps: Sequence[Step], is_bent: bool) -> None:
    """An arrow from place to place, bent where another goes back, with the numbers of its moves in the middle."""
    from matplotlib.patches import FancyArrowPatch

    style = canvas.styles[steps[0].role]
    (x1, y1), (x2, y2) = map(canvas.place, ends)
    length = hypot(x2 - x1, y2 - y1) or 1.0
    radius = BADGE * canvas.side * 0.56
    bend = max(0.3, 2.8 * radius / length) if is_bent else 0.0  # so far that the numbers of both ways lie apart
    tip = canvas.size(0.3)
    arrow = FancyArrowPatch(
        (x1, y1),
        (x2, y2),
        arrowstyle=f"simple,head_width={tip},head_length={tip},tail_width={tip / 3.2}",
        connectionstyle=f"arc3,rad={bend}",
        shrinkA=canvas.size(0.28),
        shrinkB=canvas.size(0.12),
        mutation_scale=1,
        facecolor=style.face,
        edgecolor=style.line,
        linewidth=0.7,
        path_effects=_halo(),
        zorder=5,
    )
    canvas.axes.add_patch(arrow)
    way = 0.5 if bend else 0.33  # of the whole: behind the head, and off a piece that is jumped over
    shown = _shown(steps, max(2, int(length / (2 * radius)) - 1))
    for turn, (step, number) in enumerate(shown):
        along = way + (turn - (len(shown) - 1) / 2) * 2 * radius / length
        aside = 2 * bend * way * (1 - way)  # of an arc with one control point, as matplotlib's arc3 is
        spot = x1 + along * (x2 - x1) - aside * (y2 - y1), y1 + along * (y2 - y1) + aside * (x2 - x1)
        draw_badge(canvas.axes, spot, radius, number, canvas.styles[step.role])


def _draw_crossed(canvas: Canvas, place: Place, steps: Sequence[Step]) -> None:
    """A cross over what is taken, and which moves take it."""
    x, y = canvas.place(place)
    draw_cross(canvas.axes, (x, y), 0.3 * canvas.side)
    for turn, (step, number) in enumerate(_shown(steps, 3)):
        spot = x + (0.36 - 0.36 * turn) * canvas.side, y + 0.34 * canvas.side
        draw_badge(canvas.axes, spot, 0.17 * canvas.side, number, canvas.styles[step.role])


def draw_cross(axes: Axes, spot: Spot, half: float) -> None:
    x, y = spot
    for slope in (-half, half):
        axes.plot([x - half, x + half], [y - slope, y + slope], color=COLOURS["red"].face, linewidth=2.0, zorder=4)
