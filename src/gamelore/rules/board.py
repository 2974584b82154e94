"""A state as text that can be read: boards for facts such as `(cell 1 1 b)`, and the other facts as they are.

A *board* shows the facts of one function. The first two arguments are coordinates, `x` to the right and `y` upwards
(or, as in a matrix, `row` downwards and `column` to the right); the others, together, are what lies there: `(cell a 1
wr)`, `(cell a 1 white rook)`; where there are no others, the fact is a mark. With three or four coordinates there are
several boards, one for each value of the other one or two, the *layers*.

Coordinates are numbers, single letters, numbers behind the same letters (`c1`, `c2`), or names that facts of the sheet
such as `(next one two)` put in a row; other names only where the first state has exactly one fact for every pair. Which
values there are follows from the rules (see domains.py), so a board has its size while it is still empty. What lies
there is shortened where it is long; a blank is a point, and a place that has not even a blank is empty.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product, takewhile
from math import prod
from typing import NamedTuple, TypeAlias

from .clauses import Signature, clauses
from .domains import Domains, Terms
from .gdl import Constant, Function, Rulesheet, parse_term
from .relations import named_terms
from .statics import Statics

LONGEST = 2  # characters of what lies on a board and is not shortened
MAX_SIDE = 40  # values of a coordinate
MAX_LAYERS = 27
MAX_IN_ONE_PLACE = 2
MAX_ADDED = 2  # letters of a short form besides the first ones
MAX_CONTENTS = 500  # things that can lie on one board and are given short forms
BLANKS = frozenset({"blank", "empty", "none"})  # and `b`; see `_is_blank`
MARK, POINT, GAP, UNBROKEN = "#", ".", "   ", "\xa0"

Arguments: TypeAlias = tuple[str, ...]
"""The arguments of a fact, as text."""
Values: TypeAlias = tuple[str, ...]
"""The values of a coordinate, in order."""


class Drawing(NamedTuple):
    """The boards, each several lines with title and legend; and the facts that are on none, in natural order."""

    boards: list[str]
    others: list[str]


class Boards:
    """How the states of a game are drawn; made of its rulesheet and the facts of its first state.

    `grids`: the boards, by function; `values`: the constants that each argument of a function can be, none where it
    can be other terms; `first`: the arguments of its facts in the first state; `names`: how the sheet writes names.
    """

    def __init__(self, sheet: Rulesheet, initial: Iterable[str]) -> None:
        self.names = Spellings(sheet)
        self.first = {function: list(facts.values()) for function, facts in by_function(initial).items()}
        self.values = self._values(sheet)
        grids = ((function, self._grid(function)) for function in self.values)
        self.grids = {function: grid for function, grid in grids if grid is not None}

    def _values(self, sheet: Rulesheet) -> dict[Signature, list[set[str]]]:
        """Which constants each argument of a function can be; none where it can be something else."""
        known = Domains(clauses(sheet), Statics()).of
        possible, declared = (known.get((word, 1), [Terms()])[0].functions for word in ("true", "base"))
        both = {function: zip(sets, declared.get(function, sets), strict=True) for function, sets in possible.items()}
        return {
            function: [self.names.spelled(terms.common(others)) for terms, others in pairs]
            for function, pairs in both.items()
        }

    def _grid(self, function: Signature) -> Grid | None:
        return _grid(function, self.values[function], self.first.get(function, []), self.names)

    def draw(self, facts: Iterable[str], *, matrix: bool = False, width: int = 100) -> Drawing:
        """The boards of a state, its facts as the game writes them; layers beside each other as `width` allows.

        A function whose facts do not fit its board in this state, as with three things in one place, has none.
        """
        functions = by_function(facts)
        boards = []
        for function, grid in self.grids.items():
            group = list(functions.get(function, {}).values())
            if grid.can_show(group):
                boards.append(_board(grid, group, matrix, width))
                functions.pop(function, None)
        others = [fact for group in functions.values() for fact in group]
        return Drawing(boards, sorted(others, key=natural_order))


def natural_order(text: str) -> list[tuple[str, int]]:
    """A sort key under which c2 comes before c10."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"([^0-9]*)([0-9]*)", text)]


def by_function(facts: Iterable[str]) -> dict[Signature, dict[str, Arguments]]:
    """Facts by their function, in natural order, each with its arguments."""
    functions: dict[Signature, dict[str, Arguments]] = {}
    for fact in sorted(facts, key=natural_order):
        term = parse_term(fact)
        arguments = tuple(map(str, term.args)) if isinstance(term, Function) else ()
        functions.setdefault((str(term.name), len(arguments)), {})[fact] = arguments
    return functions


class Spellings:
    """The names of a sheet: how they are written, in which order they appear, and which facts put them in a row."""

    def __init__(self, sheet: Rulesheet) -> None:
        self.spelling: dict[str, str] = {}
        for rule in sheet.rules:
            for term in named_terms(rule):
                self.spelling.setdefault(term.name, term.spelling)
        self._place = {spelling: place for place, spelling in enumerate(self.spelling.values())}
        self._next: dict[str, list[tuple[str, str]]] = {}
        for rule in sheet.rules:
            match rule.head.args:
                case (Constant(left), Constant(right)) if not rule.body:
                    pair = self.spelling[left], self.spelling[right]
                    self._next.setdefault(rule.head.name, []).append(pair)

    def spelled(self, terms: Terms) -> set[str]:
        """The constants among terms; none where there are functions, too."""
        return set() if terms.any or terms.functions else {self.spelling[name] for name in terms.constants}

    def in_appearance(self, values: set[str]) -> Values:
        """Values in the order in which the sheet first has them; terms with arguments behind."""
        return tuple(sorted(values, key=lambda value: (self._place.get(value, len(self._place)), natural_order(value))))

    def scale(self, values: set[str]) -> Values:
        """Values in the order that they have by themselves or that facts give them; none where there is no such."""
        numbered = [re.fullmatch(r"([^0-9]*)([0-9]+)", value) for value in values]
        if len({match and match[1] for match in numbered}) == 1 and all(numbered):
            return tuple(sorted(values, key=natural_order))
        if all(len(value) == 1 and value.isalpha() for value in values):
            return tuple(sorted(values))
        return next(filter(None, (_chain(pairs, values) for pairs in self._next.values())), ())


def _chain(pairs: Iterable[tuple[str, str]], values: set[str]) -> Values:
    """The values in the one row in which pairs put them; none where they do not."""
    inside = [pair for pair in pairs if values.issuperset(pair)]
    following = dict(inside)
    starts = values - set(following.values())
    if len(inside) != len(values) - 1 or len(following) != len(inside) or len(starts) != 1:
        return ()
    row = [starts.pop()]
    while row[-1] in following:
        row.append(following[row[-1]])
    return tuple(row) if len(row) == len(values) else ()


@dataclass(frozen=True, slots=True)
class Grid:
    """How the facts of a function lie on boards.

    The coordinates are the first arguments, `order` has the values of each; `x` and `y` are two of them, by their
    places among the arguments, the others are layers. `symbols`: what is drawn for each thing that can lie there.
    `is_full`: the first state has a fact for every place.
    """

    name: str
    arity: int
    order: tuple[Values, ...]
    x: int
    y: int
    symbols: Mapping[str, str]
    is_full: bool

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(place for place in range(len(self.order)) if place not in (self.x, self.y))

    def can_show(self, facts: Sequence[Arguments]) -> bool:
        """Whether every fact has a place, with few in each; marks that map x to y, or y to x, are no board."""
        places = [fact[: len(self.order)] for fact in facts]
        if any(value not in values for place in places for value, values in zip(place, self.order, strict=True)):
            return False
        if self.arity == len(self.order):
            return self.is_full or all(_most_often(fact[place] for fact in facts) > 1 for place in (self.x, self.y))
        return _most_often(places) <= MAX_IN_ONE_PLACE


def _most_often(values: Iterable[object]) -> int:
    """How often the value that is there most is there."""
    return max(Counter(values).values(), default=0)


def _grid(function: Signature, sets: Sequence[set[str]], first: Sequence[Arguments], names: Spellings) -> Grid | None:
    """The board of a function whose arguments are in these sets, where it has one."""
    name, arity = function
    full = _full(first, names)
    order = tuple(takewhile(bool, (names.scale(values) for values in sets[: max(2, arity - 1)])))
    if full:
        order = order[:2] if len(order) >= 2 and not _blanks(sets[2:], first) else full
    if not 2 <= len(order) <= 4 or not all(2 <= len(values) <= MAX_SIDE for values in order):
        return None
    contents = sets[len(order) :]
    x, y = _plane(order)
    num_layers = prod(len(values) for place, values in enumerate(order) if place not in (x, y))
    if num_layers > MAX_LAYERS or (num_layers > 1 and any(set(values) in contents for values in order)):
        return None  # no layers but (line 1 1 1 2), from one place to another
    return Grid(names.spelling[name], arity, order, x, y, symbols(contents, first), bool(full))


def _full(facts: Sequence[Arguments], names: Spellings) -> tuple[Values, ...]:
    """The values of the first two arguments, where there is exactly one fact for every pair of them."""
    pairs = {fact[:2] for fact in facts}
    columns = [set(column) for column in zip(*pairs, strict=True)]
    is_full = len(facts) == len(pairs) == prod(map(len, columns))
    if not is_full or len(columns) < 2 or min(map(len, columns)) < 2:
        return ()
    return tuple(names.scale(column) or names.in_appearance(column) for column in columns)


def _plane(order: Sequence[Values]) -> tuple[int, int]:
    """Which coordinates are x and y: the last two of four; of three the two that are alike, or the two longest."""
    if len(order) != 3:
        return len(order) - 2, len(order) - 1
    for x, y in ((1, 2), (0, 1), (0, 2)):
        if order[x] == order[y]:
            return x, y
    shortest = min(range(3), key=lambda place: len(order[place]))
    x, y = (place for place in range(3) if place != shortest)
    return x, y


def symbols(sets: Sequence[set[str]], first: Sequence[Arguments]) -> dict[str, str]:
    """What is drawn for each thing that can lie on a board: its parts are in these sets, `first` lie there first."""
    if not sets:
        return {"": MARK}
    if not all(sets) or prod(map(len, sets)) > MAX_CONTENTS:
        sets = [set(column) for column in zip(*(fact[-len(sets) :] for fact in first), strict=True)]
    blanks = _blanks(sets, first)
    forms = [short_forms(parts - blanks) | dict.fromkeys(blanks, POINT) for parts in sets]
    things = list(product(*sets))
    drawn = ["".join(form[part] for form, part in zip(forms, thing, strict=True)) for thing in things]
    names = [" ".join(thing) for thing in things]
    return dict(zip(names, names if _most_often(drawn) > 1 else drawn, strict=True))


def _lying(facts: Iterable[Arguments], num_parts: int) -> Counter[str]:
    """What lies on how many places; the last arguments say it."""
    return Counter(" ".join(fact[-num_parts:]) for fact in facts)


def _blanks(sets: Sequence[set[str]], first: Sequence[Arguments]) -> set[str]:
    """What is drawn as a point, of things with one part."""
    if len(sets) != 1:
        return set()
    lying = _lying(first, 1)
    return {thing for thing in sets[0] if thing.lower() in BLANKS or _is_blank(thing, sets[0], lying)}


def _is_blank(thing: str, things: set[str], lying: Mapping[str, int]) -> bool:
    """Whether a `b` is a blank: nothing lies on more places first, or it is no letter among others, as with `w`."""
    is_most = lying.get(thing, 0) == max(lying.values(), default=-1)
    is_alone = thing in lying and all(len(other) > 1 for other in things - {thing})
    return thing.lower() == "b" and (is_most or is_alone)


def short_forms(texts: set[str]) -> dict[str, str]:
    """Different forms for texts: themselves up to LONGEST characters, else some of their letters, as few as will do."""
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
    """bK, bKn, bKi, .. bln, .. for blackKnight: all numbers, the first letter of each word, and a few others."""
    words = [match.span() for match in re.finditer(r"\d+|[A-Z]*[^\W\d_A-Z]+|[A-Z]+", text)]
    kept = {place for start, end in words for place in range(start, end if text[start].isdigit() else start + 1)}
    others = [place for start, end in (words[-1:] + words[:-1]) for place in range(start, end) if place not in kept]
    for number in range(MAX_ADDED + 1):
        for added in combinations(others, number):
            yield "".join(text[place] for place in sorted(kept.union(added))) or text


def _board(grid: Grid, facts: Iterable[Arguments], matrix: bool, width: int) -> str:
    """All layers of a board, and what its short forms stand for."""
    drawn: dict[Arguments, str] = {}
    meanings: dict[str, str] = {}
    for fact in facts:
        place, thing = fact[: len(grid.order)], " ".join(fact[len(grid.order) :])
        form = grid.symbols.get(thing, thing)
        drawn[place] = f"{drawn[place]}+{form}" if place in drawn else form
        if form not in (thing.replace(" ", ""), MARK):
            meanings[form] = thing
    rows = _rows_of_layers([grid.order[place] for place in grid.layers], matrix)
    blocks = [line for row in rows for line in _beside([_layer(grid, drawn, values, matrix) for values in row], width)]
    legend = ", ".join(f"{form} = {meanings[form]}".replace(" ", UNBROKEN) for form in sorted(meanings))
    return "\n".join([*blocks, *(line.replace(UNBROKEN, " ") for line in textwrap.wrap(legend, width))])


def _rows_of_layers(layers: Sequence[Values], matrix: bool) -> list[list[Arguments]]:
    """Where layers are drawn: one or none in one row, two as coordinates, in the directions of x and y."""
    match layers:
        case (xs, ys) if matrix:
            return [[(x, y) for y in ys] for x in xs]
        case (xs, ys):
            return [[(x, y) for x in xs] for y in reversed(ys)]
    return [list(product(*layers))]


def _layer(grid: Grid, drawn: Mapping[Arguments, str], values: Arguments, matrix: bool) -> list[str]:
    """The lines of one layer: a title, which shows where its arguments are, and the places with the coordinates."""
    across, along = (grid.y, grid.x) if matrix else (grid.x, grid.y)
    fixed = dict(zip(grid.layers, values, strict=True))
    columns, rows = grid.order[across], grid.order[along] if matrix else grid.order[along][::-1]
    nothing = " " if POINT in grid.symbols.values() else POINT
    size = max(len(text) for text in (*columns, *grid.symbols.values(), *drawn.values()))
    margin = max(map(len, rows))

    def line(texts: Iterable[str]) -> str:
        return " ".join(text.ljust(size) for text in texts).rstrip()

    def place(column: str, row: str) -> Arguments:
        at = fixed | {across: column, along: row}
        return tuple(at[argument] for argument in range(len(grid.order)))

    lines = [f"{row:>{margin}} | {line(drawn.get(place(column, row), nothing) for column in columns)}" for row in rows]
    edge = [f"{'':{margin}} +{'-' * ((size + 1) * len(columns))}", f"{'':{margin}}   {line(columns)}"]
    words = fixed | ({grid.x: "row", grid.y: "column"} if matrix else {grid.x: "x", grid.y: "y"})
    title = [grid.name, *(words.get(argument, "*") for argument in range(grid.arity))]
    return [f"({' '.join(title)})", *(edge[::-1] + lines if matrix else lines + edge)]


def _beside(blocks: Sequence[list[str]], width: int) -> Iterator[str]:
    """Blocks of lines beside each other, as many as fit; an empty line between rows of them."""
    sizes = [max(map(len, block)) for block in blocks]
    fitting = max(1, (width + len(GAP)) // (max(sizes) + len(GAP)))
    for start in range(0, len(blocks), fitting):
        if start:
            yield ""
        part = blocks[start : start + fitting]
        for lines in zip(*part, strict=True):
            yield GAP.join(line.ljust(max(sizes)) for line in lines).rstrip()
