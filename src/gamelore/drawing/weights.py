"""Learned weights of facts, drawn: a board for each role and piece, whose places have the colours of the weights.

A weight is what a fact adds to the value of a position for a role, in points. Blue is good for the role, red is bad;
the strongest colour is that of the largest weight of all. Weights of facts that are on no board are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .board import EDGE, FAINT, INK, Arguments, Board, Boards, Spot, extent, label_spot
from .position import LINE, MARGIN, drawn_text, svg, wrapped

GOOD, BAD = (29, 95, 168), (178, 58, 46)  # red, green and blue of the strongest colours
_SIDE = 30  # pixels of a place
_GAP = 24  # pixels between boards
_LETTER = 7  # pixels of a character of a list
_STRONG = 0.55  # share of the largest weight from which the number is white
_MOST_LISTED = 12  # facts on no board


class _Panel(NamedTuple):
    """One board with the weights of one piece."""

    content: str
    board: Board
    weights: Mapping[Arguments, float]


def weights_svg(boards: Boards, weights: Mapping[str, Mapping[str, float]]) -> str:
    """Draw weights as SVG text.

    Args:
        boards: boards of the game
        weights: role -> fact -> weight in points
    """
    largest = max((abs(weight) for own in weights.values() for weight in own.values()), default=0.0) or 1.0
    shapes, top, right = list[str](), float(MARGIN), 0.0
    for role, own in weights.items():
        shapes.append(drawn_text((MARGIN, top + LINE / 2), f"after a move of {role}", 14, INK, "start", "bold"))
        top += 1.5 * LINE
        left, bottom = float(MARGIN), top
        for panel in _panels(boards, own):
            drawn, (wide, high) = _drawn(panel, largest, (left, top))
            shapes += drawn
            left, bottom = left + wide + _GAP, max(bottom, top + high)
        right, top = max(right, left), bottom + LINE / 2
        for line in wrapped(_listed(boards, own), max(40, int(right / _LETTER)), "  "):
            shapes.append(drawn_text((MARGIN, top + LINE / 2), line, 12, FAINT, "start"))
            top += LINE
        top += _GAP / 2
    return svg((max(right, 360.0), top + MARGIN), shapes)


def _panels(boards: Boards, weights: Mapping[str, float]) -> Iterator[_Panel]:
    """Yield the boards of a role, one for each piece that has a weight."""
    own: dict[tuple[int, str], dict[Arguments, float]] = {}
    numbers = {board.function: number for number, board in enumerate(boards.boards)}
    for fact, weight in weights.items():
        lying = boards.place_of(fact)
        if lying is not None:
            place, content = lying
            own.setdefault((numbers[place.function], content), {})[place.at] = weight
    for (number, content), at in sorted(own.items(), key=lambda item: item[0]):
        yield _Panel(content, boards.boards[number], at)


def _drawn(panel: _Panel, largest: float, corner: Spot) -> tuple[list[str], Spot]:
    """Return the shapes of a board, and its width and height in pixels."""
    xs, ys = zip(*extent([panel.board]), strict=True)

    def at(spot: Spot) -> Spot:
        return corner[0] + (spot[0] - min(xs)) * _SIDE, corner[1] + LINE + (max(ys) - spot[1]) * _SIDE

    title = panel.content or panel.board.name
    shapes = [drawn_text((corner[0], corner[1] + LINE / 2), title, 12, INK, "start")]
    for label in panel.board.labels:
        shapes.append(drawn_text(at(label_spot(label)), label.text, 10, FAINT, "end" if label.is_beside else "middle"))
    for place, spot in panel.board.spots.items():
        shapes += _place(at(spot), panel.weights.get(place), largest)
    return shapes, ((max(xs) - min(xs)) * _SIDE, LINE + (max(ys) - min(ys)) * _SIDE)


def _place(spot: Spot, weight: float | None, largest: float) -> Iterator[str]:
    """Yield the shapes of a place with a weight in points; None for a place without one."""
    x, y = spot[0] - _SIDE / 2, spot[1] - _SIDE / 2
    share = abs(weight or 0.0) / largest
    colour = "#{:02x}{:02x}{:02x}".format(
        *(round(255 - share * (255 - part)) for part in (GOOD if (weight or 0.0) >= 0 else BAD))
    )
    yield f'<rect x="{x:g}" y="{y:g}" width="{_SIDE}" height="{_SIDE}" fill="{colour}" stroke="{EDGE}"/>'
    if weight is not None and round(weight):
        yield drawn_text(spot, f"{weight:+.0f}", 10, "#ffffff" if share > _STRONG else INK)


def _listed(boards: Boards, weights: Mapping[str, float]) -> list[str]:
    """Return the largest weights of facts that are on no board, as texts."""
    others = [(fact, weight) for fact, weight in weights.items() if boards.place_of(fact) is None and round(weight)]
    others.sort(key=lambda item: -abs(item[1]))
    return [f"{fact} {weight:+.0f}" for fact, weight in others[:_MOST_LISTED]]
