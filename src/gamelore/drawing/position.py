"""Drawings of positions as text and as SVG: boards with coordinates, titles and legends; other facts as words.

This module needs no library.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import floor, hypot
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import GameloreError
from ..files import write_whole
from . import board as model
from .board import EDGE, FAINT, INK, MARK, POINT, Arguments, Board, Boards, Kind, Laid, Piece, Place, Spot, Style

if TYPE_CHECKING:
    from ..game.game import Game, Position

GAP = 3  # number of blanks between layers of a board
TEXT_KINDS: tuple[Kind, ...] = ("squares", "points")
UNBROKEN = "\xa0"
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FALLING, RISING = (
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER LEFT TO LOWER RIGHT}",
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER RIGHT TO LOWER LEFT}",
)


class PositionText(NamedTuple):
    """A position as text: the boards with titles and legends, and the facts that are on no board, in natural order."""

    boards: list[str]
    others: list[str]

    def lines(self, width: int) -> list[str]:
        """Return the boards and the other facts as lines of text."""
        parts = [*self.boards, "\n".join(wrapped(self.others, width, "  "))]
        return "\n\n".join(filter(None, parts)).split("\n")


def position_text(position: Position, *, matrix: bool = False, width: int = 100) -> str:
    """Draw a position as text. `matrix`: the first coordinate increases downwards, the second to the right."""
    return "\n".join(state_text(text_boards(position.game, matrix=matrix), position.facts, width).lines(width))


def save_drawing(path: Path, text: Callable[[], str], svg: Callable[[], str]) -> None:
    """Draw a text (.txt) or a picture (.svg) into a file. Raise GameloreError for any other suffix."""
    drawings = {".txt": lambda: f"{text()}\n", ".svg": svg}
    if path.suffix.lower() not in drawings:
        raise GameloreError(f"expected a file that ends in .svg or .txt, got {path}; choose one of these")
    write_whole(path, drawings[path.suffix.lower()]())


def text_boards(game: Game, *, matrix: bool = False) -> Boards:
    """Return the boards of a game that can be drawn as text."""
    return Boards.of(game, matrix=matrix, kinds=TEXT_KINDS)


def state_text(
    boards: Boards, facts: Iterable[str], width: int = 100, marks: Mapping[Place, str] | None = None
) -> PositionText:
    """Draw a state as text. Layers of a board are placed side by side if the line has at most `width` characters.

    `facts` are texts, spelled as in the game. Facts that their board cannot show are listed as texts. `marks` are texts
    that stand in some places instead of their contents.
    """
    laid = boards.lay(facts)
    contents = {**laid.contents, **(marks or {})}
    marked = Laid(laid.boards, contents, laid.others)
    return PositionText(["\n".join(_lines(board, marked.on(board), width)) for board in laid.boards], list(laid.others))


def wrapped(texts: Iterable[str], width: int, between: str) -> list[str]:
    """Join texts into lines of at most `width` characters, with `between` as separator; break no text."""
    whole = between.join(text.replace(" ", UNBROKEN) for text in texts)
    return [
        line.replace(UNBROKEN, " ")
        for line in textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    ]


def _lines(board: Board, contents: Mapping[Arguments, str], width: int) -> Iterator[str]:
    """Yield the lines of all layers of a board, and of a legend that explains its short forms."""
    texts = {at: board.form(content) for at, content in contents.items()}
    if board.kind == "squares":
        yield from _layers(board, texts, width)
    else:
        yield f"({' '.join([board.name, 'point', *'*' * (board.function[1] - 1)])})"
        drawn = points_text(board, {at: texts.get(at, " ") for at in board.spots})
        yield from beside([drawn, points_text(board)], 2 * GAP)
    parts = {part for content in contents.values() for part in board.parts(content)}
    meanings = {board.form(part): part for part in sorted(parts)}
    shortened = (form for form in sorted(meanings) if form not in (meanings[form].replace(" ", ""), MARK))
    yield from wrapped((f"{form} = {meanings[form]}" for form in shortened), width, ", ")


# ---- squares ----------------------------------------------------------------------------------------------------


def _layers(board: Board, texts: Mapping[Arguments, str], width: int) -> Iterator[str]:
    size = max(map(len, (*board.columns, *board.symbols.values(), *texts.values())))
    for row in board.layers:
        blocks = [_layer(board, layer, texts, size) for layer in row]
        widest = max(len(line) for block in blocks for line in block)
        fitting = max(1, (width + GAP) // (widest + GAP))
        for start in range(0, len(blocks), fitting):
            if start:
                yield ""
            yield from beside(blocks[start : start + fitting], GAP)


def _layer(board: Board, layer: Mapping[int, str], texts: Mapping[Arguments, str], size: int) -> list[str]:
    """Return the lines of one layer: a title with the order of the arguments, then the places with coordinates."""
    nothing = " " if POINT in board.symbols.values() else POINT
    margin = max(map(len, board.rows))

    def line(texts: Iterable[str]) -> str:
        return " ".join(text.ljust(size) for text in texts).rstrip()

    places = [[board.at(layer, column, row) for column in board.columns] for row in board.rows]
    lines = [
        f"{row:>{margin}} | {line(texts.get(at, nothing) for at in ats)}"
        for row, ats in zip(board.rows, places, strict=True)
    ]
    edge = [f"{'':{margin}} +{'-' * ((size + 1) * len(board.columns))}", f"{'':{margin}}   {line(board.columns)}"]
    across, down = ("column", "row") if board.matrix else ("x", "y")
    words = {**layer, board.across: across, board.down: down}
    title = f"({' '.join([board.name, *(words.get(number, '*') for number in range(board.function[1]))])})"
    return [title, *(edge[::-1] + lines if board.matrix else lines + edge)]


# ---- lines of text in a plane -----------------------------------------------------------------------------------


def points_text(board: Board, texts: Mapping[Arguments, str] | None = None) -> list[str]:
    """Draw points and the lines between them, with a row of text for each y and a column for each x.

    `texts`: the text at each point; by default its name.
    """
    texts = texts or {at: at[0] for at in board.spots}
    xs, ys = (sorted({spot[axis] for spot in board.spots.values()}) for axis in (0, 1))
    step = max(map(len, texts.values())) + 3
    spots = {at: (xs.index(x), ys.index(y)) for at, (x, y) in board.spots.items()}
    lines = [letter for start, end in board.lines for letter in _line(spots[start], spots[end], step)]
    return in_the_plane([*lines, *((spots[at], 0, text) for at, text in texts.items())], step, 2)


def _line(start: tuple[int, int], end: tuple[int, int], step: int) -> Iterator[tuple[Spot, int, str]]:
    """Yield a horizontal, vertical or diagonal line as texts in the plane. Yield nothing for a line of other slope."""
    (left, low), (right, high) = sorted([start, end])
    if low == high:
        yield (left, low), 0, "─" * ((right - left) * step)
    elif left == right:
        yield from (((left, y / 2), 0, "│") for y in range(2 * low, 2 * high))
    elif right - left == abs(high - low):
        slope = 1 if high > low else -1
        for turn in range(right - left):
            spot = left + turn, low + slope * (turn + 0.5)
            yield spot, step // 2, RISING if slope > 0 else FALLING


def in_the_plane(texts: Iterable[tuple[Spot, int, str]], wide: int, high: int) -> list[str]:
    """Return lines of text with each text at its place; later texts cover earlier texts.

    Each text is given as ((x, y), number of characters by which to shift it to the right, text). `wide` and `high` are
    the characters and the lines per unit of x and y.
    """
    letters = {
        (-floor(y * high + 0.5), floor(x * wide + 0.5) + right + i): letter
        for (x, y), right, text in texts
        for i, letter in enumerate(text)
    }
    rows, columns = ([spot[axis] for spot in letters] for axis in (0, 1))
    across = range(min(columns), max(columns) + 1)
    lines = ("".join(letters.get((row, c), " ") for c in across) for row in range(min(rows), max(rows) + 1))
    return [line.rstrip() for line in lines]


def beside(blocks: Sequence[Sequence[str]], gap: int) -> list[str]:
    """Join blocks of lines side by side, with `gap` blanks between them."""
    sizes = [max(map(len, block), default=0) for block in blocks]
    rows = zip_longest(*blocks, fillvalue="")
    return [(" " * gap).join(map(str.ljust, row, sizes)).rstrip() for row in rows]


SIDE = 44  # pixels, width and height of a place
MARGIN = 10
LINE, LETTER = 18, 6.6  # pixels: height of a line of text, width of a letter
NARROWEST = 4  # smallest width of a picture in places, so that there is room for the other facts
SQUARE, DARK = "#fbfaf7", "#ece7dc"
PIECE = 0.38  # radius of a disc, in places
BEST, OTHER, PALE = "#1d5fa8", "#5b6b7d", "#ffffff"  # colours of marks, and of the texts in them
FAINTEST, STRONGEST = 0.06, 0.55  # opacity of shades of places


def position_svg(position: Position, *, matrix: bool = False) -> str:
    """Draw a position as SVG text. `matrix`: the first coordinate increases downwards, the second to the right."""
    return state_svg(Boards.of(position.game, matrix=matrix), position.facts, position.game.roles)


class Mark(NamedTuple):
    """A sign at a place of a board: a ring, an arrow from another place, and a badge with up to two lines of text.

    strength   from 0, invisible, to 1
    is_best    whether the sign stands out
    is_beside  whether the badge is at the lower edge of the place, so that its contents can be seen
    is_plain   whether the texts stand in the place without a badge
    """

    target: Place
    source: Place | None
    texts: tuple[str, ...]
    strength: float
    is_best: bool = False
    is_beside: bool = False
    is_plain: bool = False


def state_svg(
    boards: Boards,
    facts: Iterable[str],
    roles: Sequence[str],
    marks: Sequence[Mark] = (),
    handles: Mapping[Place, int] | None = None,
    heat: Mapping[Place, float] | None = None,
) -> str:
    """Draw a state as SVG text, with marks on its boards.

    `facts` are texts, spelled as in the game; `roles` are needed for their colours. `handles` numbers the places that a
    page makes clickable: each gets a transparent square of the class `place`, with its number in `data-place`, and with
    its name and contents as its label. `heat` shades places in blue, from 0, hardly, to 1, strongly.
    """
    laid = boards.lay(facts)
    xs, ys = zip(*model.extent(laid.boards), strict=True) if laid.boards else ((0.0,), (0.0,))
    edge = max((len(label.text) for board in laid.boards[:1] for label in board.labels if label.is_beside), default=0)
    left, top = MARGIN + LETTER * edge - min(xs) * SIDE, MARGIN + max(ys) * SIDE
    width, height = left + max(max(xs), NARROWEST) * SIDE, top - min(ys) * SIDE + MARGIN
    words = wrapped(laid.others, int((width - MARGIN) / LETTER), "  ")
    drawn = [shape for board in laid.boards for shape in _board(board, laid, model.role_styles(roles), (left, top))]
    spots = {Place(board.function, at): spot for board in laid.boards for at, spot in board.spots.items()}
    seen = [mark for mark in marks if mark.target in spots and (mark.source is None or mark.source in spots)]
    points = {board.function for board in laid.boards if board.kind != "squares"}
    drawn += [
        _shade(share, spots[place], (left, top), place.function in points)
        for place, share in (heat or {}).items()
        if place in spots
    ]
    drawn += [shape for mark in seen for shape in _mark(mark, spots, (left, top))]
    drawn += [_handle(place, number, laid, spots[place], (left, top)) for place, number in (handles or {}).items()]
    for number, line in enumerate(words):
        drawn.append(drawn_text((MARGIN, height + LINE * (number + 0.5)), line, 12, FAINT, "start"))
    return svg((width + MARGIN, height + LINE * len(words) + MARGIN), filter(None, drawn))


def _handle(place: Place, number: int, laid: Laid, spot: Spot, origin: Spot) -> str:
    """Return the transparent square of a place, for a page that answers to clicks."""
    content = laid.contents.get(place, "").replace("+", ", ")
    label = escaped(" ".join(place.at) + (f": {content}" if content else ""))
    x, y = origin[0] + (spot[0] - 0.5) * SIDE, origin[1] - (spot[1] + 0.5) * SIDE
    corner = f'x="{x:g}" y="{y:g}" width="{SIDE}" height="{SIDE}"'
    return f'<rect class="place" data-place="{number}" {corner} fill="transparent" aria-label="{label}"/>'


def _shade(share: float, spot: Spot, origin: Spot, is_round: bool) -> str:
    """Return the translucent square or disc that shades a place."""
    x, y = origin[0] + (spot[0] - 0.5) * SIDE, origin[1] - (spot[1] + 0.5) * SIDE
    opacity = FAINTEST + share * (STRONGEST - FAINTEST)
    corners = f' rx="{SIDE / 2:g}"' if is_round else ""
    frame = f'x="{x:g}" y="{y:g}" width="{SIDE}" height="{SIDE}"{corners}'
    return f'<rect {frame} fill="{BEST}" fill-opacity="{opacity:.2f}"/>'


def svg(size: tuple[float, float], shapes: Iterable[str]) -> str:
    """Return an SVG picture of this width and height in pixels."""
    wide, high = f"{size[0]:.0f}", f"{size[1]:.0f}"
    frame = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="Helvetica, Arial, sans-serif">'
    return "\n".join([head, *shapes, "</svg>\n"])


def _mark(mark: Mark, spots: Mapping[Place, Spot], origin: Spot) -> Iterator[str]:
    """Yield the shapes of a mark."""

    def at(place: Place) -> Spot:
        return origin[0] + spots[place][0] * SIDE, origin[1] - spots[place][1] * SIDE

    colour, (x, y) = BEST if mark.is_best else OTHER, at(mark.target)
    yield f'<g opacity="{mark.strength:.2f}">'
    if mark.source is not None:
        yield _arrow(at(mark.source), (x, y), colour, 4 if mark.is_best else 2)
    if not mark.texts:
        ring = f'cx="{x:g}" cy="{y:g}" r="{PIECE * SIDE + 3:g}"'
        yield f'<circle {ring} fill="none" stroke="{colour}" stroke-width="3"/>' if mark.is_best else ""
    yield "</g>"
    yield from _badge(mark, (x, y), colour) if mark.texts else ()  # not faded: small letters must be read


def _badge(mark: Mark, spot: Spot, colour: str) -> Iterator[str]:
    """Yield the texts of a mark, and the rounded rectangle in which they stand."""
    (x, y), side, high = spot, 0.84 * SIDE, 13 * len(mark.texts) + 4
    top = y + SIDE / 2 - high if mark.is_beside else y - high / 2
    if not mark.is_plain:
        yield f'<rect x="{x - side / 2:g}" y="{top:g}" width="{side:g}" height="{high}" rx="5" fill="{colour}"/>'
    for number, text in enumerate(mark.texts):
        size = 11 if number or len(text) > 3 else 13
        ink = INK if mark.is_plain else PALE
        yield drawn_text((x, top + 8.5 + 13 * number), text, size, ink, weight="" if number else "bold")


def _arrow(start: Spot, end: Spot, colour: str, width: int) -> str:
    """Return an arrow whose head ends at the rim of the place at its end."""
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    ahead = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    tip, neck = (tuple(end[i] - (back * SIDE) * ahead[i] for i in (0, 1)) for back in (0.3, 0.52))
    half = 0.09 * SIDE + width
    corners = [tip, (neck[0] - half * ahead[1], neck[1] + half * ahead[0])]
    corners.append((neck[0] + half * ahead[1], neck[1] - half * ahead[0]))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    line = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{neck[0]:.1f}" y2="{neck[1]:.1f}"'
    return f'<line {line} stroke="{colour}" stroke-width="{width}"/><polygon points="{points}" fill="{colour}"/>'


def _board(board: Board, laid: Laid, styles: Mapping[str, Style], origin: Spot) -> Iterator[str]:
    def at(spot: Spot) -> Spot:
        return origin[0] + spot[0] * SIDE, origin[1] - spot[1] * SIDE

    spots = {place: at(spot) for place, spot in board.spots.items()}
    looks = model.pieces(board.symbols, styles)
    ends = "".join("M{:g} {:g}L{:g} {:g}".format(*spots[start], *spots[end]) for start, end in board.lines)
    yield f'<path d="{ends}" stroke="{EDGE}" stroke-width="1.5"/>' if ends else ""
    if board.kind == "squares":
        yield from _squares(board, spots, any(piece.style and not piece.is_disc for piece in looks.values()))
    for label in board.labels:
        yield drawn_text(at(model.label_spot(label)), label.text, 12, FAINT, "end" if label.is_beside else "middle")
    for place, (x, y) in spots.items():
        content = laid.contents.get(Place(board.function, place))
        piece = None if content is None or board.is_blank(content) else looks.get(content) or Piece(board.form(content))
        if board.kind != "squares":
            yield _disc((x, y), 0.1, EDGE, EDGE) if piece is None else _disc((x, y), PIECE, SQUARE, EDGE)
            size = min(10, round(1.5 * SIDE / len(place[0])))  # so that it ends before the next name
            yield drawn_text((x + 0.3 * SIDE, y - 0.4 * SIDE), place[0], size, FAINT, "start")
        if piece is not None:
            yield from _piece(piece, (x, y))


def _squares(board: Board, spots: Mapping[Arguments, Spot], is_shaded: bool) -> Iterator[str]:
    """Yield the squares as one SVG path, or as two paths if light and dark squares alternate (`is_shaded`)."""
    shades: dict[str, list[Spot]] = {SQUARE: [], DARK: []}
    for at, spot in spots.items():
        column, row = board.order[board.across].index(at[board.across]), board.order[board.down].index(at[board.down])
        shades[DARK if is_shaded and not (column + row) % 2 else SQUARE].append(spot)
    for shade, centres in shades.items():
        path = "".join(f"M{x - SIDE / 2:g} {y - SIDE / 2:g}h{SIDE}v{SIDE}h-{SIDE}z" for x, y in centres)
        yield f'<path d="{path}" fill="{shade}" stroke="{EDGE}"/>' if path else ""


def _piece(piece: Piece, spot: Spot) -> Iterator[str]:
    style = piece.style
    if style is None:
        yield drawn_text(
            spot, piece.text, 26 if len(piece.text) == 1 else max(9, 44 // len(piece.text)), INK, weight="bold"
        )
    elif piece.is_disc:
        yield _disc(spot, PIECE, style.face, style.line)
        yield drawn_text(spot, piece.text, 17, style.text, weight="bold") if piece.text else ""
    else:
        rim = f' stroke="{style.line}" stroke-width="1.2" paint-order="stroke"'
        yield drawn_text(spot, piece.text, 34, style.face, more=rim)


def _disc(spot: Spot, radius: float, face: str, line: str) -> str:
    x, y = spot
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius * SIDE:g}" fill="{face}" stroke="{line}" stroke-width="1.5"/>'


def printed(text: str) -> str:
    """Return a text in which a question mark stands for each character that XML does not allow, such as Escape."""
    return _NO_XML.sub("?", text)


def escaped(text: str) -> str:
    """Return a text for the inside of SVG and HTML elements and of quoted attributes. It is shown as it is."""
    return html.escape(printed(text))


def drawn_text(
    spot: Spot, text: str, size: int, colour: str, anchor: str = "middle", weight: str = "", more: str = ""
) -> str:
    x, y = spot
    more += f' font-weight="{weight}"' if weight else ""
    place = f'x="{x:g}" y="{y + 0.36 * size:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{colour}"{more}>{escaped(text)}</text>'
