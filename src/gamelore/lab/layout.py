"""Where the facts of a game lie: its boards as places in a plane, whatever kind of board it is.

    squares    facts such as `(cell 1 1 b)`, found and ordered as in rules/board.py: x to the right, y upwards (in a
               matrix x downwards, y to the right); layers beside each other
    points     facts such as `(cell 7 black)` about points of which the rules themselves say where they are, in a
               relation such as `(location 7 1 3)` that never changes: one row of two numbers for each point. The
               points, in their order, go from the top to the bottom, whichever way the numbers run
    a graph    points that have no such places but neighbours: a symmetric relation that never changes; rustworkx finds
               places for them (Kamada & Kawai 1989, "An algorithm for drawing general undirected graphs")
    a row      points that have neither, each with exactly one fact in the first state

Lines join neighbours; these are the symmetric relation with the fewest pairs that connects the points and is not simply
all pairs. Facts that lie nowhere (whose turn it is, pieces in hand) are told in words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import dist
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from ..rules.board import MARK, POINT, Arguments, Boards, Grid, by_function, natural_order, symbols
from ..rules.clauses import Signature, clauses
from ..rules.statics import Row, statics

if TYPE_CHECKING:
    from ..rules.game import Game

Spot: TypeAlias = tuple[float, float]
"""x to the right and y upwards, in sides of a square, or such that the nearest points are 1 apart."""
Kind: TypeAlias = Literal["squares", "points", "graph", "row"]

FEWEST_POINTS = 3
MOST_POINTS = 100
APART = 1.5  # between boards, and between layers
STONE = "*"  # instead of MARK, which says here that anything may lie in a place


class Place(NamedTuple):
    """A place on a board: the function of the facts that lie there, and the arguments that say where."""

    function: Signature
    at: Arguments


class Label(NamedTuple):
    """Words around a board: the value of a coordinate, or the title of a layer. `is_beside` a row: they end there."""

    text: str
    spot: Spot
    is_beside: bool = False


@dataclass(frozen=True)
class Board:
    """The places of the facts of one function, whose first arguments say where and whose others say what.

    `order`: the values of each coordinate; `symbols`: the short form of each thing that can lie there; `lines` join
    neighbours; `labels`: what stands beside the board.
    """

    function: Signature
    kind: Kind
    spots: Mapping[Arguments, Spot]
    symbols: Mapping[str, str]
    lines: tuple[tuple[Arguments, Arguments], ...] = ()
    labels: tuple[Label, ...] = ()
    grid: Grid | None = None

    @property
    def num_coordinates(self) -> int:
        return len(next(iter(self.spots)))

    def can_show(self, facts: Sequence[Arguments]) -> bool:
        """Whether these facts lie on the board; see rules/board.py for marks that do not look like one."""
        return self.grid is None or self.grid.can_show(facts)

    def is_blank(self, thing: str) -> bool:
        """Whether a thing is that nothing lies there."""
        return self.symbols.get(thing) == POINT

    def form(self, thing: str) -> str:
        """The short form of what lies in a place, of several things with `+` between them."""
        return self.symbols.get(thing) or "+".join(self.symbols.get(part, part) for part in thing.split("+"))

    def moved(self, right: float, up: float) -> Board:
        """The same board elsewhere in the plane."""
        spots = {at: (x + right, y + up) for at, (x, y) in self.spots.items()}
        labels = tuple(label._replace(spot=(label.spot[0] + right, label.spot[1] + up)) for label in self.labels)
        return Board(self.function, self.kind, spots, self.symbols, self.lines, labels, self.grid)


@dataclass(frozen=True)
class Laid:
    """Facts on the boards: what lies in which place (with `+` between several), and the facts that lie nowhere."""

    boards: tuple[Board, ...]
    things: Mapping[Place, str]
    others: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """The boards of a game, beside each other."""

    boards: tuple[Board, ...]

    @classmethod
    def of(cls, game: Game, *, matrix: bool = False) -> Layout:
        """Finds the boards of a game; `matrix`: the first coordinate goes downwards, the second to the right."""
        known = Boards(game.rulesheet, game.start().facts)
        found: list[Board] = []
        right = 0.0
        for board in _boards(known, _Relations(game, known), matrix):
            found.append(board.moved(right, 0.0))
            right = max(x for x, _ in found[-1].spots.values()) + 2 * APART
        return cls(tuple(found))

    def lay(self, facts: Iterable[str]) -> Laid:
        """Facts on their boards. A board that cannot show its facts, as rules/board.py says, is left out."""
        functions = by_function(facts)
        shown = tuple(b for b in self.boards if b.can_show(list(functions.get(b.function, {}).values())))
        things: dict[Place, str] = {}
        for board in shown:
            for arguments in functions.pop(board.function, {}).values():
                place = Place(board.function, arguments[: board.num_coordinates])
                thing = " ".join(arguments[board.num_coordinates :])
                things[place] = f"{things[place]}+{thing}" if place in things else thing
        others = (fact for group in functions.values() for fact in group)
        return Laid(shown, things, tuple(sorted(others, key=natural_order)))

    def board(self, place: Place) -> Board:
        """The board of a place."""
        return next(board for board in self.boards if board.function == place.function)

    def place_of(self, function: Signature, arguments: Arguments) -> tuple[Place, str] | None:
        """Where a fact of a function lies, and what it puts there; None for a fact that lies nowhere."""
        for board in self.boards:
            at, things = arguments[: board.num_coordinates], arguments[board.num_coordinates :]
            if board.function == function and at in board.spots:
                return Place(function, at), " ".join(things)
        return None

    def named_in(self, move: str) -> tuple[Place, ...]:
        """The places that the arguments of a move name, in order, on the board of which they name most."""
        words = re.findall(r"[^\s()]+", move)[1:]
        named = [tuple(_named(board, words)) for board in self.boards]
        return max(named, key=len, default=())


def _named(board: Board, words: Sequence[str]) -> Iterator[Place]:
    start, step = 0, board.num_coordinates
    while start + step <= len(words):
        at = tuple(words[start : start + step])
        if at in board.spots:
            yield Place(board.function, at)
        start += step if at in board.spots else 1


def _boards(known: Boards, relations: _Relations, matrix: bool) -> Iterator[Board]:
    for function in known.values:
        grid = known.grids.get(function)
        is_surely = grid is not None and (grid.arity > len(grid.order) or grid.is_full)
        board = None if is_surely else _points(function, known, relations)
        if board is not None:
            yield board
        elif grid is not None:
            yield _squares(function, grid, known.first.get(function, []), matrix)


# ---- squares ----------------------------------------------------------------------------------------------------


def _squares(function: Signature, grid: Grid, first: Sequence[Arguments], matrix: bool) -> Board:
    """The places of all layers; where blanks are facts, only those that have one, or another, in the first state."""
    across, down = (grid.y, grid.x) if matrix else (grid.x, grid.y)
    columns, rows = grid.order[across], grid.order[down]
    spots: dict[Arguments, Spot] = {}
    labels: list[Label] = []
    for values, right, up in _layers(grid, len(columns), len(rows), matrix):
        fixed = dict(zip(grid.layers, values, strict=True))
        for (x, column), (y, row) in product(enumerate(columns), enumerate(rows)):
            at = fixed | {across: column, down: row}
            height = len(rows) - 1 - y if matrix else y
            spots[tuple(at[argument] for argument in range(len(grid.order)))] = (right + x, up + height)
        heights = enumerate(rows[::-1] if matrix else rows)
        labels += [Label(row, (right - 1.0, up + height), is_beside=True) for height, row in heights]
        edge = len(rows) if matrix else -1
        labels += [Label(column, (right + x, up + edge)) for x, column in enumerate(columns)]
        if values:
            top = up + len(rows) + (1 if matrix else 0)
            labels.append(Label(" ".join(values), (right + (len(columns) - 1) / 2, top)))
    there = {fact[: len(grid.order)] for fact in first} if POINT in grid.symbols.values() else set()
    spots = {at: spot for at, spot in spots.items() if at in there} or spots
    return Board(function, "squares", spots, _stones(grid.symbols), (), tuple(labels), grid)


def _stones(forms: Mapping[str, str]) -> dict[str, str]:
    return {thing: STONE if form == MARK else form for thing, form in forms.items()}


def _layers(grid: Grid, width: int, height: int, matrix: bool) -> Iterator[tuple[Arguments, float, float]]:
    """The arguments of each layer, and how far it is to the right and upwards: one row, or a row for each value."""
    orders = [grid.order[place] for place in grid.layers]
    wide, high = width + APART + 1, height + APART + 2
    for values in product(*orders):
        steps = [order.index(value) for order, value in zip(orders, values, strict=True)]
        match steps:
            case [one, other] if matrix:
                yield values, other * wide, -one * high
            case [one, other]:
                yield values, one * wide, other * high
            case _:
                yield values, sum(steps) * wide, 0.0


# ---- points -----------------------------------------------------------------------------------------------------


class _Relations:
    """The relations of a game that never change, derived once they are asked for; names as the sheet spells them."""

    def __init__(self, game: Game, known: Boards) -> None:
        self._sheet = game.rulesheet
        self._spelling = known.names.spelling
        self._rows: dict[Signature, list[Row]] | None = None

    def of(self, arity: int) -> Iterator[list[Arguments]]:
        """The rows of each relation with so many arguments, all of them constants."""
        if self._rows is None:
            self._rows = statics(clauses(self._sheet)).rows
        for (_, length), rows in self._rows.items():
            if length == arity and rows and all(None not in row for row in rows):
                yield [tuple(self._spelling[str(name)] for name in row) for row in rows]

    def places(self, points: Collection[str]) -> dict[str, Spot]:
        """Where points are, in the one relation that gives each of them two numbers of its own; else nowhere."""
        for rows in self.of(3):
            inside = [row for row in rows if row[0] in points]
            found = {point: (float(x), float(y)) for point, x, y in inside if x.isdecimal() and y.isdecimal()}
            if len(found) == len(points) == len(inside) == len(set(found.values())):
                return found
        return {}

    def neighbours(self, points: Collection[str]) -> tuple[tuple[str, str], ...]:
        """The pairs of neighbours, each once, in the order of the points; see the top of the module."""
        complete = len(points) * (len(points) - 1) // 2
        candidates = [pairs for rows in self.of(2) if 0 < len(pairs := _both_ways(rows, points)) < complete]
        fewest = min(candidates, key=len, default=set())
        return tuple(pair for pair in combinations(sorted(points, key=natural_order), 2) if frozenset(pair) in fewest)


def _both_ways(rows: Sequence[Arguments], points: Collection[str]) -> set[frozenset[str]]:
    """The pairs of a symmetric relation that connects these points and no others; none where it is no such."""
    pairs = set(rows)
    ends = {end for row in rows for end in row}
    if ends != set(points) or any(one == other or (other, one) not in pairs for one, other in pairs):
        return set()
    return {frozenset(pair) for pair in pairs} if _connected(pairs) else set()


def _connected(pairs: Collection[Arguments]) -> bool:
    """Whether one can come from any end of symmetric pairs to any other."""
    reached = set(next(iter(pairs)))
    while further := {end for one, end in pairs if one in reached} - reached:
        reached |= further
    return reached == {end for end, _ in pairs}


def _points(function: Signature, known: Boards, relations: _Relations) -> Board | None:
    """The board of a function whose first argument is a point, where it has one."""
    sets = known.values[function]
    points = sets[0] if sets else set()
    if not FEWEST_POINTS <= len(points) <= MOST_POINTS or not all(sets):
        return None
    places = relations.places(points)
    pairs = relations.neighbours(points)
    first = known.first.get(function, [])
    spots, kind = _spots(places, pairs, points) if places or pairs else (_in_a_row(points, first), "row")
    if not spots:
        return None
    forms = _stones(symbols(sets[1:], first))
    lines = tuple(((one,), (other,)) for one, other in pairs)
    return Board(function, kind, {(point,): spot for point, spot in spots.items()}, forms, lines)


def _spots(places: dict[str, Spot], pairs: Sequence[tuple[str, str]], points: set[str]) -> tuple[dict[str, Spot], Kind]:
    """Points where the rules say they are, the first at the top; else where their neighbours put them."""
    found = places or _by_neighbours(pairs, points)
    ordered = sorted(points, key=natural_order)
    downwards = places and places[ordered[0]][1] < places[ordered[-1]][1]
    if downwards:
        found = {point: (x, -y) for point, (x, y) in found.items()}
    return _to_the_corner(found), "points" if places else "graph"


def _by_neighbours(pairs: Sequence[tuple[str, str]], points: set[str]) -> dict[str, Spot]:
    import rustworkx

    ordered = sorted(points, key=natural_order)
    graph = rustworkx.PyGraph()
    number = dict(zip(ordered, graph.add_nodes_from(ordered), strict=True))
    graph.add_edges_from_no_data([(number[one], number[other]) for one, other in pairs])
    circle = dict(rustworkx.circular_layout(graph))  # where it begins, so that it ends in the same places each time
    found = rustworkx.kamada_kawai_layout(graph, pos={node: (x, y) for node, (x, y) in circle.items()})
    return {point: (float(x), float(y)) for point, (x, y) in ((point, found[number[point]]) for point in ordered)}


def _to_the_corner(spots: dict[str, Spot]) -> dict[str, Spot]:
    """The same places in such a size that the two nearest are 1 apart, and from 0 on."""
    left, low = (min(spot[axis] for spot in spots.values()) for axis in (0, 1))
    nearest = min(dist(one, other) for one, other in combinations(spots.values(), 2)) or 1.0
    return {point: ((x - left) / nearest, (y - low) / nearest) for point, (x, y) in spots.items()}


def _in_a_row(points: set[str], first: Sequence[Arguments]) -> dict[str, Spot]:
    """Points of which each has exactly one fact with two arguments in the first state; else none."""
    if sorted(fact[0] for fact in first if len(fact) == 2) != sorted(points):
        return {}
    return {point: (float(x), 0.0) for x, point in enumerate(sorted(points, key=natural_order))}
