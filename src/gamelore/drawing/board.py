"""Boards and pieces of a game: places of facts in a plane, short forms of contents, colours and glyphs.

A *board* shows the facts of one function. The first arguments of the function are coordinates. The other arguments are
the contents, as in `(cell a 1 wr)` and `(cell a 1 white rook)`. A fact without contents is a *mark*. There are four
kinds of boards:

    squares    facts with two to four coordinates. Two of them are x and y: x increases to the right and y upwards. In a
               matrix, x increases downwards and y to the right. If there are three or four coordinates, the board has
               several *layers*: one for each value, or pair of values, of the coordinates that are not x or y
    points     facts such as `(cell 7 black)` about named points. A relation of the rules gives each point two numbers
               as its position, as in `(location 7 1 3)`. The first point in natural order is drawn above the last one.
               Without such a relation, all points are named by a letter and a number, as in `(cell c4 red)`
    a graph    points without given positions, but with neighbours. rustworkx computes the positions (Kamada & Kawai
               1989, "An algorithm for drawing general undirected graphs")
    a row      points without given positions and without neighbours. The first state has exactly one fact for each.
               Many points are in several rows of equal length

Lines between points join neighbours. Neighbours are the pairs of a symmetric relation that never changes and connects
all points, but does not contain all pairs. If there are several such relations, the one with the fewest pairs is taken.
Facts that are on no board, such as the player to move or pieces in hand, are shown as text.

The values of a coordinate of squares are numbers, single letters, or numbers after the same letters (`c1`, `c2`). They
can also be names in an order that the sheet defines by facts such as `(next one two)`. Other names are coordinates only
if the first state has exactly one fact for every pair of values. The possible values are computed from the rules (see
ground/domains.py), so that a board has its full size even if it is empty.

Contents have short forms: long names are abbreviated, a blank is `.`, and a mark is `#`. In a picture, a piece that
is named after a colour or a role is a disc of this colour. Chess pieces are drawn as chess glyphs. Other pieces of two
colours are discs with a letter. All other pieces are drawn as their short forms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product, takewhile
from math import dist, prod
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args
from weakref import WeakKeyDictionary

from ..gdl.clauses import Signature, clauses
from ..gdl.syntax import Constant, Function, Rulesheet, named_terms, natural_order, parse_term
from ..ground.domains import Domains, Statics, Terms, statics

if TYPE_CHECKING:
    from ..game.game import Game

LONGEST = 2  # maximum number of characters of a name that is not abbreviated
MAX_ADDED = 2  # maximum number of letters in a short form that are not first letters of words
MAX_CONTENTS = 500  # if a board has more possible contents, only contents of the first state have short forms
BLANKS = frozenset({"blank", "empty", "none"})  # names of blanks, in addition to `b` (see `_is_blank`)
MARK, POINT = "#", "."
MOST_IN_A_ROW = 10  # points

LONGEST_ROW = 26.0  # places that boards beside each other may take; others are drawn below them
NAME_WIDTH = 0.14  # of a letter in the name of a point, in places
WIDEST = 4.0  # width of a row of layers by its height; a longer row is drawn as several rows

Arguments: TypeAlias = tuple[str, ...]
"""The arguments of a fact, as text."""
Layer: TypeAlias = dict[int, str]
"""Number of a coordinate -> its fixed value."""


# ---- short forms ------------------------------------------------------------------------------------------------


def symbols(sets: Sequence[set[str]], first: Sequence[Arguments]) -> dict[str, str]:
    """Return the short forms of all possible contents of a board.

    sets: the possible values of each argument of the contents. first: the arguments of the facts in the first state.
    """
    if not sets:
        return {"": MARK}
    if not all(sets) or prod(map(len, sets)) > MAX_CONTENTS:
        sets = [set(column) for column in zip(*(fact[-len(sets) :] for fact in first), strict=True)]
    blank = blanks(sets, first)
    forms = [short_forms(parts - blank) | dict.fromkeys(blank, POINT) for parts in sets]
    contents = list(product(*sets))
    drawn = ["".join(form[part] for form, part in zip(forms, content, strict=True)) for content in contents]
    names = [" ".join(content) for content in contents]
    return dict(zip(names, names if len(set(drawn)) < len(drawn) else drawn, strict=True))


def blanks(sets: Sequence[set[str]], first: Sequence[Arguments]) -> set[str]:
    """Return the contents that mean an empty place. There are none if the contents have several arguments."""
    if len(sets) != 1:
        return set()
    lying = Counter(fact[-1] for fact in first)
    return {content for content in sets[0] if content.lower() in BLANKS or _is_blank(content, sets[0], lying)}


def _is_blank(content: str, contents: set[str], lying: Mapping[str, int]) -> bool:
    """Return whether a content is `b` and means a blank.

    `b` is a blank if it is the most common content in the first state. It is also a blank if it occurs there and no
    other content is a single letter; beside `w`, for example, `b` is a black piece.
    """
    is_most = lying.get(content, 0) == max(lying.values(), default=-1)
    is_alone = content in lying and all(len(other) > 1 for other in contents - {content})
    return content.lower() == "b" and (is_most or is_alone)


def short_forms(texts: set[str]) -> dict[str, str]:
    """Return distinct short forms of texts. A text of at most LONGEST characters is not shortened."""
    forms = {text: text for text in texts if len(text) <= LONGEST}
    waiting = {text: _forms(text) for text in texts - forms.keys()}
    while waiting:
        proposed = {text: next(candidates, text) for text, candidates in waiting.items()}
        taken = Counter([*forms.values(), *proposed.values(), *texts, MARK, POINT])
        for text, form in proposed.items():
            if taken[form] == 1 + (form == text):
                forms[text] = form
                del waiting[text]
    return forms


def _forms(text: str) -> Iterator[str]:
    """Yield possible short forms: bK, bKn, bKi, .. bln, .. for blackKnight.

    Each form has all digits, the first letter of each word, and at most MAX_ADDED other letters.
    """
    words = [match.span() for match in re.finditer(r"\d+|[A-Z]*[^\W\d_A-Z]+|[A-Z]+", text)]
    kept = {place for start, end in words for place in range(start, end if text[start].isdigit() else start + 1)}
    others = [place for start, end in (words[-1:] + words[:-1]) for place in range(start, end) if place not in kept]
    for number in range(MAX_ADDED + 1):
        for added in combinations(others, number):
            yield "".join(text[place] for place in sorted(kept.union(added))) or text


# ---- colours and glyphs -----------------------------------------------------------------------------------------

INK, FAINT, EDGE, PAPER = "#22262b", "#5f6770", "#9aa3ad", "white"


class Style(NamedTuple):
    """Colours of a role or a piece: `face` fills it, `line` is for its edge and arrows, `text` is for text on it."""

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
LETTERS = {"w": "white", "r": "red", "y": "yellow", "b": "blue"}
ROLES = ("blue", "red", "green", "orange", "purple", "brown")  # colours of roles whose names are not colours
CHESS = dict(zip("kqrbnp", "\u265a\u265b\u265c\u265d\u265e\u265f", strict=True))
COLOUR_AND_KIND = re.compile(r"(black|white|red|yellow|[bwry])[ _]?(king|queen|rook|bishop|knight|pawn|[a-z])")
FEWEST_OF_CHESS = 5  # smallest number of kinds of pieces in a chess set; checkers has fewer kinds


def role_styles(roles: Sequence[str]) -> dict[str, Style]:
    """Return the colours of each role. A role whose name is no colour gets a colour of ROLES that no role has."""
    free = (name for name in ROLES if name not in map(str.lower, roles))
    return {role: COLOURS[role.lower() if role.lower() in COLOURS else next(free, "black")] for role in roles}


class Piece(NamedTuple):
    """A piece in a picture: a text (letters or a glyph) or a disc, with or without a text on it.

    `style`: the colours of the text or the disc; None for a text in INK.
    """

    text: str
    style: Style | None = None
    is_disc: bool = False


def pieces(forms: Mapping[str, str], roles: Mapping[str, Style]) -> dict[str, Piece]:
    """Return the piece for each content that is not a blank. `forms`: content -> short form."""
    contents = [content for content, form in forms.items() if form != POINT]
    discs = {content: style for content, style in roles.items() if content in contents}
    discs |= {content: COLOURS[content.lower()] for content in contents if content.lower() in COLOURS}
    letters = {content: _letter_style(content, contents) for content in contents if content.lower() in LETTERS}
    discs |= letters if len(letters) > 1 else {}
    discs |= {"": COLOURS["black"]} if "" in contents else {}
    plain = {content: Piece(forms[content]) for content in contents}
    return plain | _coloured(contents) | {content: Piece("", style, True) for content, style in discs.items()}


def _coloured(contents: Sequence[str]) -> dict[str, Piece]:
    """Return pieces for contents such as wk or white_king: chess glyphs, or discs with a letter.

    Returns nothing unless all contents have a colour and a kind, and there are at least two colours.
    """
    parts = {content: match for content in contents if (match := COLOUR_AND_KIND.fullmatch(content.lower()))}
    kinds = {content: "n" if match[2] == "knight" else match[2][0] for content, match in parts.items()}
    colours = [match[1][0] for match in parts.values()]
    if len(parts) < len(contents) or len(set(colours)) < 2:
        return {}
    styles = {content: _letter_style(match[1][0], colours) for content, match in parts.items()}
    if len(set(kinds.values())) >= FEWEST_OF_CHESS and CHESS.keys() >= set(kinds.values()):
        return {content: Piece(CHESS[kinds[content]], style) for content, style in styles.items()}
    letters = {content: "" if kind == "p" else kind.upper() for content, kind in kinds.items()}
    return {content: Piece(letters[content], style, True) for content, style in styles.items()}


def _letter_style(letter: str, others: Collection[str]) -> Style:
    """Return the colours for a letter. `b` means black if `w` is among `others`, otherwise blue."""
    is_black = letter.lower() == "b" and not {"w", "W"}.isdisjoint(others)
    return COLOURS["black" if is_black else LETTERS[letter.lower()]]


MAX_SIDE = 40  # most values of a coordinate
MAX_LAYERS = 27
MAX_IN_ONE_PLACE = 2
FEWEST_POINTS, MOST_POINTS = 3, 100
APART = 1.5  # size of the space between boards and between layers, in squares

Values: TypeAlias = tuple[str, ...]
"""The values of a coordinate, in order."""
Spot: TypeAlias = tuple[float, float]
"""A position in a drawing: x to the right and y upwards. Unit: a square, or the distance of the nearest points."""
Kind: TypeAlias = Literal["squares", "points", "graph", "row"]


class Place(NamedTuple):
    """A place on a board: the function of the board, and the coordinates of the place."""

    function: Signature
    at: Arguments


Side: TypeAlias = Literal["left", "above", "below"]
CLOSER: Mapping[Side, Spot] = {"left": (0.35, 0.0), "above": (0.0, -0.2), "below": (0.0, 0.2)}


class Label(NamedTuple):
    """A text beside a board, or below a square: the value of a coordinate, or a title."""

    text: str
    spot: Spot
    side: Side

    @property
    def is_beside(self) -> bool:
        """Whether it is to the left of a row of the board; such a text is right-aligned."""
        return self.side == "left"


@dataclass(frozen=True)
class Board:
    """The board of one function.

    order: the values of each coordinate
    symbols: content -> short form, for all possible contents
    spots: coordinates of a place -> its position in the drawing
    lines: pairs of neighbours
    labels: texts beside the board
    across, down: number of the coordinate that varies in a row, and in a column; the other coordinates select a layer
    matrix: whether the values of `down` increase downwards
    is_full: whether the first state has exactly one fact for every place
    """

    function: Signature
    name: str
    kind: Kind
    order: tuple[Values, ...]
    symbols: Mapping[str, str]
    spots: Mapping[Arguments, Spot]
    lines: tuple[tuple[Arguments, Arguments], ...] = ()
    labels: tuple[Label, ...] = ()
    across: int = 0
    down: int = 0
    matrix: bool = False
    is_full: bool = False

    def can_show(self, facts: Sequence[Arguments]) -> bool:
        """Return whether the board can show these facts, given by their arguments.

        Every fact must have a place, and no place may have more than MAX_IN_ONE_PLACE facts with contents. Marks can be
        shown if the board is full. Otherwise two of them must have the same x, and two of them must have the same y.
        """
        if self.kind != "squares":
            return True
        places = [fact[: len(self.order)] for fact in facts]
        if any(value not in values for place in places for value, values in zip(place, self.order, strict=True)):
            return False
        if "" not in self.symbols:
            return _most_often(places) <= MAX_IN_ONE_PLACE
        return self.is_full or all(_most_often(place[i] for place in places) > 1 for i in (self.across, self.down))

    def is_blank(self, content: str) -> bool:
        """Return whether the contents mean an empty place."""
        return self.symbols.get(content) == POINT

    def parts(self, content: str) -> list[str]:
        """Return the separate contents of a place, which are joined by `+` in `content`."""
        return [content] if content in self.symbols else content.split("+")

    def form(self, content: str) -> str:
        """Return the short form of the contents of a place. Several contents are joined by `+`."""
        return "+".join(self.symbols.get(part, part) for part in self.parts(content))

    @property
    def columns(self) -> Values:
        """The values of the coordinate `across`, from left to right."""
        return self.order[self.across]

    @property
    def rows(self) -> Values:
        """The values of the coordinate `down`, from top to bottom."""
        return self.order[self.down] if self.matrix else self.order[self.down][::-1]

    @property
    def layers(self) -> list[list[Layer]]:
        """The layers, in rows from top to bottom. Each layer is given as: number of a coordinate -> its fixed value.

        If one coordinate is fixed, there is one row of layers. If two are fixed, they are the x and y of the layers.
        """
        numbers = [number for number in range(len(self.order)) if number not in (self.across, self.down)]
        orders = [self.order[number] for number in numbers]
        values: list[list[Arguments]]
        match orders:
            case (firsts, seconds) if self.matrix:
                values = [[(first, second) for second in seconds] for first in firsts]
            case (firsts, seconds):
                values = [[(first, second) for first in firsts] for second in reversed(seconds)]
            case _:
                values = [[*product(*orders)]]
        return [[dict(zip(numbers, fixed, strict=True)) for fixed in row] for row in values]

    def at(self, layer: Mapping[int, str], column: str, row: str) -> Arguments:
        """Return all coordinates of a place, given its layer, column and row."""
        values = {**layer, self.across: column, self.down: row}
        return tuple(values[number] for number in range(len(self.order)))

    def moved(self, right: float, up: float) -> Board:
        """Return a copy of the board, shifted by `right` units to the right and `up` units upwards."""
        spots = {at: (x + right, y + up) for at, (x, y) in self.spots.items()}
        labels = tuple(label._replace(spot=(label.spot[0] + right, label.spot[1] + up)) for label in self.labels)
        return replace(self, spots=spots, labels=labels)


def _most_often(values: Iterable[object]) -> int:
    """Return how often the most common value occurs; 0 if there are no values."""
    return max(Counter(values).values(), default=0)


@dataclass(frozen=True)
class Laid:
    """Facts placed on boards. contents: what lies in each place, joined by `+`. others: the facts on no board."""

    boards: tuple[Board, ...]
    contents: Mapping[Place, str]
    others: tuple[str, ...]

    def on(self, board: Board) -> dict[Arguments, str]:
        """Return the contents on one board: coordinates of a place -> contents."""
        return {place.at: content for place, content in self.contents.items() if place.function == board.function}


class Boards:
    """The boards of a game, placed side by side. They follow from the rulesheet and the facts of the first state."""

    def __init__(
        self,
        sheet: Rulesheet,
        initial: Iterable[str],
        *,
        matrix: bool = False,
        kinds: Collection[Kind] = get_args(Kind),
    ) -> None:
        self.boards: tuple[Board, ...] = ()
        self.finder = Finder(sheet, initial, matrix, kinds)
        for board in self.finder.boards():
            self.boards += (beside(self.boards, board),)

    @classmethod
    def of(cls, game: Game, *, matrix: bool = False, kinds: Collection[Kind] = get_args(Kind)) -> Boards:
        """Return the boards of a game. `matrix`: the first coordinate increases downwards, the second to the right.

        They are computed once for a game.
        """
        computed = _COMPUTED.setdefault(game, {})
        key = matrix, frozenset(kinds)
        if key not in computed:
            computed[key] = cls(game.rulesheet, game.facts(game.initial), matrix=matrix, kinds=kinds)
        return computed[key]

    def lay(self, facts: Iterable[str]) -> Laid:
        """Place facts on their boards. If a board cannot show its facts, leave it out; its facts are then on no board.

        For example, a board cannot show three facts in one place.
        """
        functions = by_function(facts)
        shown = tuple(b for b in self.boards if b.can_show(list(functions.get(b.function, {}).values())))
        contents: dict[Place, str] = {}
        for board in shown:
            for arguments in functions.pop(board.function, {}).values():
                place, content = _split(board, arguments)
                contents[place] = f"{contents[place]}+{content}" if place in contents else content
        others = (fact for group in functions.values() for fact in group)
        return Laid(shown, contents, tuple(sorted(others, key=natural_order)))

    def board(self, place: Place) -> Board:
        """Return the board of a place."""
        return next(board for board in self.boards if board.function == place.function)

    def is_empty(self, laid: Laid, place: Place) -> bool:
        """Return whether nothing lies in a place, or what means an empty place."""
        content = laid.contents.get(place)
        return content is None or self.board(place).is_blank(content)

    def place_of(self, fact: str) -> tuple[Place, str] | None:
        """Return the place and the contents of a fact; None if the fact is on no board."""
        ((function, group),) = by_function([fact]).items()
        lying = ((board, *_split(board, group[fact])) for board in self.boards if board.function == function)
        return next(((place, content) for board, place, content in lying if place.at in board.spots), None)

    def named_in(self, move: str) -> tuple[Place, ...]:
        """Return the places that the arguments of a move name, in order.

        If the move names places on several boards, return those on the board with the largest number of named places.
        """
        words = re.findall(r"[^\s()]+", move)[1:]
        named = [tuple(_named(board, words)) for board in self.boards]
        return max(named, key=len, default=())


_COMPUTED: WeakKeyDictionary[Game, dict[tuple[bool, frozenset[Kind]], Boards]] = WeakKeyDictionary()


def _split(board: Board, arguments: Arguments) -> tuple[Place, str]:
    """Return the place and the contents of a fact with these arguments."""
    number = len(board.order)
    return Place(board.function, arguments[:number]), " ".join(arguments[number:])


def _named(board: Board, words: Sequence[str]) -> Iterator[Place]:
    start, step = 0, len(board.order)
    while start + step <= len(words):
        at = tuple(words[start : start + step])
        if at in board.spots:
            yield Place(board.function, at)
        start += step if at in board.spots else 1


def label_spot(label: Label) -> Spot:
    """Return the position of a label in a picture. It is closer to the board than `label.spot`."""
    (x, y), (right, up) = label.spot, CLOSER[label.side]
    return x + right, y + up


def beside(boards: Sequence[Board], board: Board) -> Board:
    """Return a board moved to the right of others, or below them if it would be too far to the right there."""
    if not boards:
        return board
    spots = [spot for other in boards for spot in other.spots.values()]
    left, low = max(x for x, _ in spots) + 2 * APART, min(y for _, y in spots)
    xs, ys = zip(*board.spots.values(), strict=True)
    if low < min(y for _, y in boards[0].spots.values()) or left + max(xs) - min(xs) > LONGEST_ROW:
        return board.moved(-min(xs), low - max(ys) - APART - 2)
    return board.moved(left, 0.0)


def extent(boards: Iterable[Board]) -> Iterator[Spot]:
    """Yield points whose bounding box contains the drawings of these boards: corners of places, positions of labels."""
    for board in boards:
        for x, y in board.spots.values():
            yield from ((x - 0.5, y - 0.5), (x + 0.5, y + 0.5))
        yield from map(label_spot, board.labels)
        if board.kind != "squares":
            yield from ((x + 0.3 + NAME_WIDTH * len(at[0]), y) for at, (x, y) in board.spots.items())


def by_function(facts: Iterable[str]) -> dict[Signature, dict[str, Arguments]]:
    """Group facts by function, in natural order: function -> fact -> arguments of the fact."""
    functions: dict[Signature, dict[str, Arguments]] = {}
    for fact in sorted(facts, key=natural_order):
        term = parse_term(fact)
        arguments = tuple(map(str, term.args)) if isinstance(term, Function) else ()
        functions.setdefault((str(term.name), len(arguments)), {})[fact] = arguments
    return functions


# ---- finding the boards -----------------------------------------------------------------------------------------


class Finder:
    """Finder of the boards of a game in its rules.

    values: function -> possible constants of each argument; empty for an argument that can also be a compound term
    first: function -> arguments of its facts in the first state
    spelling: name -> name as the sheet spells it, in order of first appearance
    """

    def __init__(self, sheet: Rulesheet, initial: Iterable[str], matrix: bool, kinds: Collection[Kind]) -> None:
        self.matrix = matrix
        self.kinds = kinds
        self.first = {function: list(facts.values()) for function, facts in by_function(initial).items()}
        self.spelling: dict[str, str] = {}
        for term in (term for rule in sheet.rules for term in named_terms(rule)):
            self.spelling.setdefault(term.name, term.spelling)
        self._rows = self._given(sheet)
        self.clauses = clauses(sheet)
        self._domains = Domains(self.clauses, Statics()).of
        self.values = self._values()

    def _given(self, sheet: Rulesheet) -> dict[Signature, list[Arguments]]:
        """Return the facts of the sheet whose arguments are all constants: relation -> rows of arguments."""
        rows: dict[Signature, list[Arguments]] = {}
        for head in (rule.head for rule in sheet.rules if not rule.body):
            names = [self.spelling[term.name] for term in head.args if isinstance(term, Constant)]
            if len(names) == len(head.args):
                rows.setdefault((head.name, len(names)), []).append(tuple(names))
        return rows

    def _values(self) -> dict[Signature, list[set[str]]]:
        possible, declared = (self._domains.get((word, 1), [Terms()])[0].functions for word in ("true", "base"))
        return {
            function: [
                self._constants(terms.common(others))
                for terms, others in zip(sets, declared.get(function, sets), strict=True)
            ]
            for function, sets in possible.items()
        }

    def moves(self) -> dict[Signature, list[set[str]]]:
        """Return the possible constants of each argument of moves; empty for one that can be a compound term."""
        terms = self._domains.get(("legal", 2), [Terms(), Terms()])[1]
        return {move: [self._constants(values) for values in sets] for move, sets in terms.functions.items()}

    def _constants(self, terms: Terms) -> set[str]:
        """Return the constants of a set of terms; an empty set if it also contains compound terms."""
        return set() if terms.any or terms.functions else {self.spelling[name] for name in terms.constants}

    def boards(self) -> Iterator[Board]:
        """Yield the boards of all functions that have one.

        Squares are preferred to points. But marks that do not fill the board in the first state are drawn as points if
        that is possible, and as squares otherwise.
        """
        for function in self.values:
            squares = self.squares(function, self.values[function])
            is_surely = squares is not None and ("" not in squares.symbols or squares.is_full)
            board = squares if is_surely else self.points(function) or squares
            if board is not None:
                yield board

    # ---- squares ------------------------------------------------------------------------------------------------

    def squares(self, function: Signature, sets: Sequence[set[str]]) -> Board | None:
        """Return a board of squares for a function; None if the function has no suitable coordinates.

        sets: the possible values of each argument.
        """
        first = self.first.get(function, [])
        full = self._full(first)
        order = tuple(takewhile(bool, map(self.scale, sets[: max(2, function[1] - 1)])))
        if full:
            order = order[:2] if len(order) >= 2 and not blanks(sets[2:], first) else full
        if not 2 <= len(order) <= 4 or not all(2 <= len(values) <= MAX_SIDE for values in order):
            return None
        contents = list(sets[len(order) :])
        x, y = _plane(order)
        num_layers = prod(len(values) for number, values in enumerate(order) if number not in (x, y))
        if num_layers > MAX_LAYERS or (num_layers > 1 and any(set(values) in contents for values in order)):
            return None  # such a fact has no layers: (line 1 1 1 2) means a line between two places
        across, down = (y, x) if self.matrix else (x, y)
        forms = symbols(contents, first)
        name = self.spelling[function[0]]
        bare = Board(function, name, "squares", order, forms, {}, (), (), across, down, self.matrix, bool(full))
        spots, labels = plan(bare)
        there = {fact[: len(order)] for fact in first} if POINT in forms.values() else set()
        # If empty squares are facts, too, only coordinates with a fact in the first state are squares of the board.
        real = {at: spot for at, spot in spots.items() if at in there}
        return replace(bare, spots=real or spots, labels=tuple(labels))

    def _full(self, facts: Sequence[Arguments]) -> tuple[Values, ...]:
        """Return the values of the first two arguments. Return nothing unless each pair of values has one fact."""
        pairs = {fact[:2] for fact in facts}
        columns = [set(column) for column in zip(*pairs, strict=True)]
        is_full = len(facts) == len(pairs) == prod(map(len, columns))
        if not is_full or len(columns) < 2 or min(map(len, columns)) < 2:
            return ()
        return tuple(self.scale(column) or self.in_appearance(column) for column in columns)

    def in_appearance(self, values: set[str]) -> Values:
        """Sort values by their first appearance in the sheet, with compound terms at the end."""
        number = {name: number for number, name in enumerate(self.spelling.values())}
        return tuple(sorted(values, key=lambda value: (number.get(value, len(number)), natural_order(value))))

    def scale(self, values: set[str]) -> Values:
        """Sort values by number, by letter or by the facts of a relation. Return nothing if none of these applies."""
        numbered = [re.fullmatch(r"([^0-9]*)([0-9]+)", value) for value in values]
        if len({match and match[1] for match in numbered}) == 1 and all(numbered):
            return tuple(sorted(values, key=natural_order))
        if all(len(value) == 1 and value.isalpha() for value in values):
            return tuple(sorted(values))
        return next(filter(None, (_chain(rows, values) for (_, arity), rows in self._rows.items() if arity == 2)), ())

    # ---- points -------------------------------------------------------------------------------------------------

    def points(self, function: Signature, number: int = 0) -> Board | None:
        """Return a board of points for a function; None if its argument with this number is not a point."""
        values, first = self.values[function], self.first.get(function, [])
        sets = [*values[number : number + 1], *values[:number], *values[number + 1 :]]
        if not sets or not FEWEST_POINTS <= len(sets[0]) <= MOST_POINTS or not all(sets):
            return None
        points = sorted(sets[0], key=natural_order)
        places = self._places(points)
        if places and places[points[0]][1] < places[points[-1]][1]:
            places = {point: (x, -y) for point, (x, y) in places.items()}
        places = places or _by_names(points)
        pairs = self._neighbours(points) if places or "graph" in self.kinds else ()
        kind: Kind = "points" if places else "graph" if pairs else "row"
        spots = places or (_by_neighbours(pairs, points) if pairs else _side_by_side(points, first))
        if not spots or kind not in self.kinds or not (pairs or sets[1:]):
            return None
        at: dict[Arguments, Spot] = {(point,): spot for point, spot in _to_the_corner(spots).items()}
        lines = tuple(((start,), (end,)) for start, end in pairs)
        name = self.spelling[function[0]]
        return Board(function, name, kind, (tuple(points),), symbols(sets[1:], first), at, lines)

    def _places(self, points: Collection[str]) -> dict[str, Spot]:
        """Return the positions of points from a relation that gives each point two numbers; empty if there is none.

        No two points may have the same position.
        """
        for rows in (rows for (_, arity), rows in self._rows.items() if arity == 3):
            inside = [row for row in rows if row[0] in points]
            spots = {point: (float(x), float(y)) for point, x, y in inside if x.isdecimal() and y.isdecimal()}
            if len(spots) == len(points) == len(inside) == len(set(spots.values())):
                return spots
        return {}

    def _neighbours(self, points: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of neighbours (see the module docstring), each pair once, in the order of the points."""
        complete = len(points) * (len(points) - 1) // 2
        possible = [[self._constants(terms) for terms in sets] for (_, n), sets in self._domains.items() if n == 2]
        if not any(ones.issuperset(points) and others.issuperset(points) for ones, others in possible):
            return ()  # in this case no relation needs to be derived from the rules
        candidates = (_both_ways(rows, points) for rows in self._relations)
        fewest = min((pairs for pairs in candidates if 0 < len(pairs) < complete), key=len, default=set())
        return tuple(pair for pair in combinations(points, 2) if frozenset(pair) in fewest)

    @cached_property
    def _relations(self) -> list[list[Arguments]]:
        """The rows of each relation that never changes and has two constants as arguments."""
        binary = (rows for (_, arity), rows in statics(self.clauses).rows.items() if arity == 2)
        named = [rows for rows in binary if rows and all(None not in row for row in rows)]
        return [[tuple(self.spelling[str(name)] for name in row) for row in rows] for rows in named]


def _chain(pairs: Iterable[Arguments], values: set[str]) -> Values:
    """Return all values in the order that the pairs (value, next value) define; empty if there is no single order."""
    inside = [(value, following) for value, following in pairs if values.issuperset((value, following))]
    following = dict(inside)
    starts = values - set(following.values())
    if len(inside) != len(values) - 1 or len(following) != len(inside) or len(starts) != 1:
        return ()
    row = [starts.pop()]
    while row[-1] in following:
        row.append(following[row[-1]])
    return tuple(row) if len(row) == len(values) else ()


def _plane(order: Sequence[Values]) -> tuple[int, int]:
    """Return the numbers of the coordinates that are x and y, given the values of each coordinate.

    Of four coordinates, the last two are x and y. Of three, x and y are two coordinates with equal values or, if there
    are none, the two coordinates with the most values.
    """
    if len(order) != 3:
        return len(order) - 2, len(order) - 1

    def fitness(plane: tuple[int, int]) -> tuple[bool, int]:
        x, y = plane
        return order[x] == order[y], len(order[x]) + len(order[y])

    return max(((1, 2), (0, 2), (0, 1)), key=fitness)


def plan(board: Board) -> tuple[dict[Arguments, Spot], list[Label]]:
    """Return the positions of the places in all layers of squares, and the labels around these layers."""
    columns, rows, layers = board.columns, board.rows, board.layers
    if len(layers) == 1:
        layers = _in_rows(layers[0], (len(columns) + APART + 1) / (len(rows) + APART + 2))
    spots: dict[Arguments, Spot] = {}
    labels: list[Label] = []
    for i, j, layer in ((i, j, layer) for i, row in enumerate(layers) for j, layer in enumerate(row)):
        right, top = j * (len(columns) + APART + 1), (len(layers) - 1 - i) * (len(rows) + APART + 2) + len(rows) - 1
        for (x, column), (y, row) in product(enumerate(columns), enumerate(rows)):
            spots[board.at(layer, column, row)] = (right + x, top - y)
        labels += [Label(row, (right - 1.0, top - y), "left") for y, row in enumerate(rows)]
        side: Side = "above" if board.matrix else "below"
        edge = top + 1 if board.matrix else top - len(rows)
        labels += [Label(column, (right + x, edge), side) for x, column in enumerate(columns)]
        if layer:
            above = top + (2 if board.matrix else 1)
            labels.append(Label(" ".join(layer.values()), (right + (len(columns) - 1) / 2, above), "above"))
    return spots, labels


def _in_rows(layers: Sequence[Layer], shape: float) -> list[list[Layer]]:
    """Return a row of layers in several rows if it is much wider than high. `shape`: width of a layer by its height."""
    if len(layers) * shape <= WIDEST:
        return [[*layers]]
    length = max(1, round((len(layers) / shape) ** 0.5))  # about as wide as high
    return [[*layers[start : start + length]] for start in range(0, len(layers), length)]


def _both_ways(rows: Sequence[Arguments], points: Collection[str]) -> set[frozenset[str]]:
    """Return the pairs of a symmetric relation that connects exactly these points; empty for any other relation."""
    pairs = set(rows)
    ends = {end for row in rows for end in row}
    if ends != set(points) or any(start == end or (end, start) not in pairs for start, end in pairs):
        return set()
    reached = {rows[0][0]}
    while further := {end for start, end in pairs if start in reached} - reached:
        reached |= further
    return {frozenset(pair) for pair in pairs} if reached == ends else set()


def _by_names(points: Collection[str]) -> dict[str, Spot]:
    """Return the positions of points whose names are a letter and a number; empty unless all are and both vary."""
    names = {point: re.fullmatch(r"([^\W\d_])([0-9]+)", point) for point in points}
    spots = {point: (float(ord(name[1].lower())), float(name[2])) for point, name in names.items() if name}
    if len(spots) < len(points) or any(len(set(values)) < 2 for values in zip(*spots.values(), strict=True)):
        return {}
    return spots


def _by_neighbours(pairs: Sequence[tuple[str, str]], points: Sequence[str]) -> dict[str, Spot]:
    import rustworkx

    graph = rustworkx.PyGraph()
    number = dict(zip(points, graph.add_nodes_from(points), strict=True))
    graph.add_edges_from_no_data([(number[start], number[end]) for start, end in pairs])
    circle = dict(rustworkx.circular_layout(graph))  # a fixed start gives the same layout each time
    layout = rustworkx.kamada_kawai_layout(graph, pos={node: (x, y) for node, (x, y) in circle.items()})
    return {point: (float(layout[node][0]), float(layout[node][1])) for point, node in number.items()}


def _side_by_side(points: Sequence[str], first: Sequence[Arguments]) -> dict[str, Spot]:
    """Return positions of points in rows. Return nothing unless each has exactly one fact in the first state.

    Only facts with two arguments count.
    """
    if sorted(fact[0] for fact in first if len(fact) == 2) != sorted(points):
        return {}
    length = -(-len(points) // -(-len(points) // MOST_IN_A_ROW))
    return {point: (float(i % length), float(-(i // length))) for i, point in enumerate(points)}


def _to_the_corner(spots: Mapping[str, Spot]) -> dict[str, Spot]:
    """Scale positions so that the smallest distance is 1, and shift them so that the smallest x and y are 0."""
    left, low = (min(spot[axis] for spot in spots.values()) for axis in (0, 1))
    nearest = min(dist(*pair) for pair in combinations(spots.values(), 2)) or 1.0
    return {point: ((x - left) / nearest, (y - low) / nearest) for point, (x, y) in spots.items()}
