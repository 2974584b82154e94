"""The tabletop of a game: its boards, and beside them what else moves are about, for pages where moves are clicked.

The boards are those of `Boards`, of which all stay in the picture, whatever facts there are. A board of marks that the
first state does not fill is left out, unless moves name its places. Three things are added:

    boards whose contents come first, as in `(location robot 3 4)` and `(piece dark 3 h2)`
    tokens     facts on a board of another function, as in `(position red 3 4)` beside `(cell 3 4 wall)`
    trays      rows of squares for values that are no coordinates. In a tray of things, such as the pieces of
               `(pool p0110)` or the roles of `(control white)`, the facts lie. A tray of contents shows what can lie on
               a board. A tray of words shows other values of facts that moves name, as the number in `(heap a 5)`

What belongs together follows from the variables of the rules. In

    (<= (next (cell ?x ?y x)) (does x (mark ?x ?y)))

the first word of `mark` is *linked* with the first argument of `cell`. Links go through derived relations, but not
through relations that never change, such as the successor of a number: `(reduce ?heap ?number)` is not linked with what
is left on the heap if the rules subtract.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..gdl.clauses import Clause, Dependencies, Signature, all_atoms, reachable, signature, users_of
from ..gdl.syntax import Atom, Constant, Function, Variable, natural_order
from ..ground.optimize import OUTSIDE_FACT
from .board import (
    BLANKS,
    COLOUR_AND_KIND,
    MAX_SIDE,
    POINT,
    Arguments,
    Board,
    Boards,
    Label,
    Laid,
    Place,
    Spot,
    Values,
    beside,
    by_function,
    plan,
    short_forms,
    symbols,
)

if TYPE_CHECKING:
    from ..game.game import Game

NARROWEST = 10  # squares in a row of a tray at least, if it has so many
MOST_SQUARES = 120  # in a tray
MOST_COUNTED = 60  # numbers in a tray of things that no move names
FITTING = 8  # letters in a square
ROW_OF_NAMES = 1.5  # height of a row of squares with their names below them, in squares
BELOW = 2.5  # space above a tray, in squares
OUTSIDE = str(OUTSIDE_FACT)  # marks states of a compiled game in which the reasoner plays
FEWEST = 3  # values of each coordinate of a board whose contents come first


# ---- links ------------------------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """An argument of a function of facts or moves, or of a derived relation; `number` counts from 0."""

    of: Literal["fact", "move", "relation"]
    function: Signature
    number: int


SLOTS: Mapping[Signature, Literal["fact", "move", "relation"]] = {
    **dict.fromkeys([("true", 1), ("next", 1), ("init", 1)], "fact"),
    **dict.fromkeys([("does", 2), ("legal", 2)], "move"),
}


class Links:
    """The links between words of moves and arguments of facts; see the module."""

    def __init__(self, rules: Sequence[Clause]) -> None:
        changing = reachable(users_of(Dependencies(rules).uses), SLOTS)
        self._near: dict[Slot, set[Slot]] = defaultdict(set)
        self._compared: dict[Slot, set[Slot]] = defaultdict(set)
        self._facts: dict[Slot, frozenset[Slot]] = {}
        for rule in rules:
            atoms = (rule.head, *all_atoms(rule.body))
            shared: dict[str, set[Slot]] = defaultdict(set)
            for slot, name in (pair for atom in atoms if signature(atom) in changing for pair in _slots(atom)):
                shared[name].add(slot)
            self._add(shared)
            for names in (_variables(atom) for atom in atoms if signature(atom) not in changing):
                compared = set[Slot]().union(*(shared.get(name, ()) for name in names))
                for slot in compared:
                    self._compared[slot] |= compared

    def _add(self, shared: Mapping[str, set[Slot]]) -> None:
        """Link the slots of a rule in which the same variable stands, and words of moves with facts of their names."""
        for name, slots in shared.items():
            for slot in slots:
                if name[0] == "?":
                    self._near[slot] |= slots
                elif slot.of == "move":
                    self._near[slot] |= {near for near in slots if near.of == "fact"}

    def facts(self, slot: Slot) -> frozenset[Slot]:
        """Return the arguments of facts that are linked with a slot."""
        if slot not in self._facts:
            self._facts[slot] = frozenset(self._reached(slot))
        return self._facts[slot]

    def _reached(self, slot: Slot) -> set[Slot]:
        reached, waiting, facts = {slot}, [slot], set[Slot]()
        while waiting:
            for near in self._near.get(waiting.pop(), set()) - reached:
                reached.add(near)
                if near.of == "fact":
                    facts.add(near)
                elif near.of == "relation":
                    waiting.append(near)
        return facts

    def compared(self, slot: Slot) -> set[Slot]:
        """Return the arguments of facts that a relation that never changes compares with a slot."""
        return {near for near in self._compared.get(slot, ()) if near.of == "fact"}


def _slots(atom: Atom) -> Iterator[tuple[Slot, str]]:
    """Yield the slots of an atom in which names of variables or constants stand, with these names."""
    of, term = SLOTS.get(signature(atom), "relation"), atom if signature(atom) not in SLOTS else atom.args[-1]
    if isinstance(term, Atom | Function):
        for number, argument in enumerate(term.args):
            if not isinstance(argument, Function):
                yield Slot(of, (term.name, len(term.args)), number), _name(argument)


def _variables(atom: Atom) -> list[str]:
    return [_name(argument) for argument in atom.args if isinstance(argument, Variable)]


def _name(term: Constant | Variable) -> str:
    return f"?{term.name}" if isinstance(term, Variable) else term.name


# ---- the tabletop -----------------------------------------------------------------------------------------------


class Reader(NamedTuple):
    """How the facts of a function lie on a board.

    board: function of the board
    coordinates: numbers of the arguments that are coordinates
    name: the content; "" if the other arguments are the content
    is_token: whether the board is that of another function
    is_thing: whether the content is the coordinate itself
    """

    board: Signature
    coordinates: tuple[int, ...]
    name: str = ""
    is_token: bool = False
    is_thing: bool = False

    def read(self, arguments: Arguments) -> tuple[Place, str]:
        """Return the place and the content of a fact with these arguments."""
        if not arguments:
            return Place(self.board, (self.name,)), self.name
        at = tuple(arguments[number] for number in self.coordinates)
        others = (argument for number, argument in enumerate(arguments) if number not in self.coordinates)
        return Place(self.board, at), self.name or " ".join(at if self.is_thing else others)


@dataclass(frozen=True)
class Tray:
    """A row of squares for values.

    board: its board; the values are its only coordinate
    words: slots of the moves whose words are squares of the tray
    shows: the argument of facts whose values always lie in the squares; None if facts lie there that come and go
    """

    board: Board
    words: frozenset[Slot]
    shows: Slot | None = None

    @property
    def values(self) -> Values:
        return self.board.order[0]

    def place(self, value: str) -> Place | None:
        """Return the square of a value."""
        return Place(self.board.function, (value,)) if (value,) in self.board.spots else None


class Tabletop(Boards):
    """The boards of a game, with tokens on them and trays beside them; see the module.

    Attributes:
        boards: the boards, and then those of the trays.
        trays: the trays.
        lines: word of moves -> coordinates of boards with which it is linked. Other words may be any coordinates.
    """

    def __init__(
        self,
        boards: Sequence[Board],
        trays: Sequence[Tray],
        readers: Mapping[Signature, Reader],
        lines: Mapping[Slot, Sequence[Slot]],
    ) -> None:
        self.lines = lines
        self.trays = tuple(_below(boards, trays))
        self.boards = (*boards, *(tray.board for tray in self.trays))
        shown = {board.function for board in self.boards}
        self._readers = {function: reader for function, reader in readers.items() if reader.board in shown}
        self._board_of = {board.function: board for board in self.boards}
        self._lasting = {
            Place(tray.board.function, at): at[0] for tray in self.trays if tray.shows for at in tray.board.spots
        }

    @classmethod
    def of_all(cls, game: Game) -> Tabletop:
        """Return the tabletop of a game with every tray that moves might be about."""
        setter = _Setter(Boards.of(game), _possible(game), game.roles)
        return cls(setter.boards, setter.trays, setter.readers, setter.lines())

    def with_trays(self, functions: Collection[Signature]) -> Tabletop:
        """Return a copy with some of the trays."""
        trays = [tray for tray in self.trays if tray.board.function in functions]
        boards = self.boards[: len(self.boards) - len(self.trays)]
        return Tabletop(boards, trays, self._readers, self.lines)

    def lay(self, facts: Iterable[str]) -> Laid:
        """Place facts on their boards. A token that is a mark is not shown where a piece lies."""
        contents, others = dict(self._lasting), list[str]()
        lying = [(fact, *read) for fact in sorted(facts, key=natural_order) for read in [self._read(fact)]]
        for fact, place, content, reader in sorted(lying, key=lambda row: row[3] is not None and row[3].is_token):
            if place is None or reader is None:
                others.append(fact)
            elif place not in contents or self._board_of[place.function].is_blank(contents[place]):
                contents[place] = content
            elif reader.is_token and reader.name:
                others.append(fact)
            else:
                contents[place] = f"{contents[place]}+{content}"
        return Laid(self.boards, contents, tuple(sorted(others, key=natural_order)))

    def place_of(self, fact: str) -> tuple[Place, str] | None:
        """Return the place and the content of a fact; None if the fact is on no board."""
        place, content, _ = self._read(fact)
        return None if place is None else (place, content)

    def _read(self, fact: str) -> tuple[Place | None, str, Reader | None]:
        if fact == OUTSIDE:
            return None, "", None
        ((function, group),) = by_function([fact]).items()
        reader = self._readers.get(function)
        if reader is None:
            return None, "", None
        place, content = reader.read(group[fact])
        return (place, content, reader) if place.at in self._board_of[place.function].spots else (None, "", None)


def _possible(game: Game) -> dict[Signature, list[set[str]]]:
    """Return the possible values of each argument of facts: those in states of a compiled game, else those by rules."""
    finder = Boards.of(game).finder
    if game.circuit is None:
        return finder.values
    facts = by_function(text for text in game.fact_texts if text != OUTSIDE)
    possible = {
        function: [set(column) for column in zip(*group.values(), strict=True)] for function, group in facts.items()
    }
    return {
        function: [
            values if wide else set() for values, wide in zip(sets, finder.values.get(function, sets), strict=True)
        ]
        for function, sets in possible.items()
    }


def _below(boards: Sequence[Board], trays: Sequence[Tray]) -> Iterator[Tray]:
    """Yield the trays with the places of their squares: below each other, under the boards."""
    spots = [spot for board in boards for spot in board.spots.values()]
    size = max(NARROWEST, int(max((x for x, _ in spots), default=0)) + 1)
    low = min((y for _, y in spots), default=BELOW)
    for tray in trays:
        top, numbered = low - BELOW, enumerate(tray.values)
        pitch = 1.0 if tray.shows else ROW_OF_NAMES
        places: dict[Arguments, Spot] = {(value,): (i % size, top - i // size * pitch) for i, value in numbered}
        low = min(y for _, y in places.values()) - (pitch - 1)
        labels = [Label(tray.board.name, (min(size, len(tray.values)) / 2 - 0.5, top + 1), "above")]
        if tray.shows is None:
            forms = _readable(tray.values)
            labels += [Label(forms[value], (x, y - 1), "below") for (value,), (x, y) in places.items()]
        yield replace(tray, board=replace(tray.board, spots=places, labels=tuple(labels)))


def _readable(values: Collection[str]) -> dict[str, str]:
    """Return texts that fit into a square: the values, or short forms of the long ones."""
    short = short_forms(set(values))
    return {value: value if len(value) <= FITTING else short[value] for value in values}


class _Setter:
    """Finder of the boards, tokens and trays of a game.

    possible: function -> possible constants of each argument; empty for one that can also be a compound term
    """

    def __init__(self, boards: Boards, possible: Mapping[Signature, Sequence[set[str]]], roles: Sequence[str]) -> None:
        self.finder, self.possible, self.roles = boards.finder, possible, set(roles)
        self.links = Links(self.finder.clauses)
        self.moves = {
            Slot("move", move, number): values
            for move, sets in self.finder.moves().items()
            for number, values in enumerate(sets)
            if values
        }
        self.linked = {slot: self.links.facts(slot) for slot in self.moves}
        self.boards: list[Board] = []
        self.readers: dict[Signature, Reader] = {}
        self._on_boards = {board.function for board in boards.boards}
        marks = [board for board in boards.boards if _is_of_marks(board)]
        for board in boards.boards:
            if board not in marks and board.can_show(self.finder.first.get(board.function, [])):
                self._keep(board, tuple(range(len(board.order))))
        self._plain = tuple(self.boards)  # without tokens
        for function in sorted(self.possible.keys() - self.readers.keys() - {board.function for board in marks}):
            if not self._lay_token(function):
                self._find_board(function)
        for board in marks:
            if not self._lay_token(board.function) and self._is_named(board):
                self._keep(board, tuple(range(len(board.order))))
        self.trays = list(self._trays())

    def _keep(self, board: Board, coordinates: tuple[int, ...]) -> None:
        left, low = (min(spot[axis] for spot in board.spots.values()) for axis in (0, 1))
        self.boards.append(beside(self.boards, board.moved(-left, -low)))
        self.readers[board.function] = Reader(board.function, coordinates)

    def lines(self) -> dict[Slot, list[Slot]]:
        """Return the coordinates with which words of moves are linked; `function` is that of the board.

        Words without links are left out, and names, which mean the same everywhere, unlike numbers.
        """
        lines: dict[Slot, list[Slot]] = {}
        for slot, links in self.linked.items():
            readers = {link: self.readers[link.function] for link in sorted(links) if self._is_on_board(link)}
            own = ((reader.board, reader.coordinates.index(link.number)) for link, reader in readers.items())
            if readers or (not _are_names(self.moves[slot]) and any(link.function in self.readers for link in links)):
                lines[slot] = [Slot("fact", board, axis) for board, axis in own]
        return lines

    def _is_coordinate(self, slot: Slot) -> bool:
        """Return whether an argument of facts is a coordinate of a board."""
        return slot.function in self.readers and slot.number in self.readers[slot.function].coordinates

    def _is_on_board(self, slot: Slot) -> bool:
        """Return whether an argument of facts is a coordinate of a board that is no tray."""
        boards = {board.function for board in self.boards}
        return self._is_coordinate(slot) and self.readers[slot.function].board in boards

    def _is_named(self, board: Board) -> bool:
        """Return whether moves name coordinates of a board of marks, which are neither things nor on another board."""
        if board.can_show(self.finder.first.get(board.function, [])):
            return True
        things = [sets[0] for (_, arity), sets in self.possible.items() if arity == 1]
        if all(set(values) in things for values in board.order):
            return False
        own = {Slot("fact", board.function, number) for number in range(len(board.order))}
        return any(
            linked & own and not any(slot.function in self.readers for slot in linked)
            for linked in self.linked.values()
        )

    # ---- tokens, and boards whose contents come first -----------------------------------------------------------

    def _lay_token(self, function: Signature) -> bool:
        """Let the facts of a function lie on the board with whose coordinates its arguments are linked."""
        for board in sorted(self.boards, key=lambda board: -len(board.spots)):
            for start in range(function[1] - len(board.order) + 1):
                coordinates = tuple(range(start, start + len(board.order)))
                others = [v for number, v in enumerate(self.possible.get(function, ())) if number not in coordinates]
                if self._fits(function, board, coordinates) and self._are_tokens(others, board):
                    name = "" if others else self.finder.spelling[function[0]]
                    self.readers[function] = Reader(board.function, coordinates, name, is_token=True)
                    self._add_forms(board, others[0] if others else {name})
                    return True
        return False

    def _fits(self, function: Signature, board: Board, coordinates: tuple[int, ...]) -> bool:
        if board.kind == "row" and self.roles.issuperset(board.order[0]):
            return False
        pairs = zip(coordinates, board.order, strict=True)
        return all(
            self._values(function, number)
            and self._values(function, number).issubset(values)
            and Slot("fact", board.function, axis) in self.links.facts(Slot("fact", function, number))
            for axis, (number, values) in enumerate(pairs)
        )

    def _values(self, function: Signature, number: int) -> set[str]:
        return self.possible[function][number] if function in self.possible else set()

    def _are_tokens(self, others: Sequence[set[str]], board: Board) -> bool:
        """Return whether the arguments that are no coordinates name things that are not on the board already."""
        if not others:
            return True
        return len(others) == 1 and _are_names(others[0]) and not others[0].issubset(board.symbols)

    def _add_forms(self, board: Board, contents: set[str]) -> None:
        """Add short forms of tokens to a board, unless its pieces have glyphs."""
        if all(COLOUR_AND_KIND.fullmatch(content.lower()) for content in board.symbols):
            return
        forms = short_forms(contents | {content for content in board.symbols if content})
        new = {content: forms[content] for content in contents - board.symbols.keys()}
        self.boards = [replace(own, symbols={**own.symbols, **new}) if own is board else own for own in self.boards]

    def _find_board(self, function: Signature) -> None:
        """Keep a board for a function that has one by its possible values, or if its last arguments are coordinates."""
        sets, arity = self.possible[function], function[1]
        if not 2 <= arity <= 4 or not all(sets) or function not in self.finder.first:
            return
        order = tuple(map(self.finder.scale, sets[-2:]))
        board = self.finder.squares(function, sets)
        if board and not _is_of_marks(board) and board.can_show(self.finder.first[function]):
            self._keep(board, tuple(range(len(board.order))))
        elif arity > 2 and all(FEWEST <= len(values) <= MAX_SIDE for values in order) and self._are_things(sets[:-2]):
            forms = symbols(sets[:-2], [fact[:-2] for fact in self.finder.first[function]])
            name = self.finder.spelling[function[0]]
            bare = Board(function, name, "squares", order, forms, {}, (), (), 0, 1, self.finder.matrix)
            spots, labels = plan(bare)
            self._keep(replace(bare, spots=spots, labels=tuple(labels)), (arity - 2, arity - 1))
        elif self._are_things(sets[:-1]) and not all(map(str.isdecimal, sets[-1])):
            points = self.finder.points(function, arity - 1)
            if points:
                self._keep(points, (arity - 1,))

    def _are_things(self, sets: Sequence[set[str]]) -> bool:
        return len(sets) <= 2 and any(map(_are_names, sets))

    # ---- trays --------------------------------------------------------------------------------------------------

    def _trays(self) -> Iterator[Tray]:
        """Yield the trays of things, then those of other arguments of facts."""
        things = [*self._trays_of_things(), *self._trays_of_pairs(), *self._tray_of_bare_facts()]
        others = [*self._trays_of_arguments()]
        words: dict[Signature, set[Slot]] = defaultdict(set)
        for slot in self.moves:
            tray = self._serving(slot, things, others)
            if tray is not None:
                others += [tray] if tray not in (*things, *others) else []
                words[tray.board.function].add(slot)
        for tray in (*things, *others):
            yield replace(tray, words=frozenset(words[tray.board.function]))

    def _serving(self, slot: Slot, things: Sequence[Tray], others: Sequence[Tray]) -> Tray | None:
        """Return the tray whose values the words of moves are; None if they are coordinates of a board, or anything."""
        links = self.linked[slot] or self.links.compared(slot)
        if any(map(self._is_on_board, links)):
            return None
        boards = {self.readers[link.function].board for link in links if self._is_coordinate(link)}
        linked = [tray for tray in (*things, *others) if tray.shows in links or tray.board.function in boards]
        if len(linked) > 1 and all(tray in things and not _are_names(tray.values) for tray in linked):
            return self._tray_of_numbers(linked)
        alike = [tray for tray in things if _are_names(self.moves[slot]) and self.moves[slot].issubset(tray.values)]
        named = (len(self.moves[slot].intersection(tray.values)) for tray in linked)
        best = max(zip(named, reversed(range(len(linked))), linked, strict=True), default=None, key=lambda row: row[:2])
        return best[2] if best else next(iter(() if links else alike), None)

    def _tray_of_numbers(self, trays: Sequence[Tray]) -> Tray:
        """Return a tray of the numbers of several trays."""
        name = " / ".join(tray.board.name for tray in trays)
        values = self._ordered(set().union(*(tray.values for tray in trays)))
        board = Board((name.lower(), 1), name, "squares", (values,), short_forms(set(values)), {})
        return Tray(board, frozenset(), Slot("fact", (name.lower(), 1), 0))

    def _ordered(self, values: Collection[str]) -> Values:
        return self.finder.scale(set(values)) or self.finder.in_appearance(set(values))

    def _trays_of_arguments(self) -> Iterator[Tray]:
        """Yield a tray for each argument of facts that is no coordinate.

        If facts of two or three arguments are on no board, they lie on the tray of the one with the most values.
        """
        for function, sets in self.possible.items():
            kept = {number: self._ordered(values - self._blanks(function)) for number, values in enumerate(sets)}
            fitting = {number: values for number, values in kept.items() if 2 <= len(values) <= MOST_SQUARES}
            if 2 <= function[1] <= 3 and fitting and function not in self.readers.keys() | self._on_boards:
                number = max(fitting, key=lambda number: len(fitting[number]))
                yield self._tray_of_facts(function, number, fitting[number])
            for number, values in fitting.items() if function[1] > 1 else ():
                if not self._is_coordinate(Slot("fact", function, number)):
                    yield self._tray_of_values(function, number, values)

    def _blanks(self, function: Signature) -> set[str]:
        board = next((board for board in self._plain if board.function == function), None)
        return {content for content, form in board.symbols.items() if form == POINT} if board else set()

    def _tray_of_facts(self, function: Signature, number: int, values: Values) -> Tray:
        self.readers[function] = Reader(function, (number,))
        contents = {value for i, own in enumerate(self.possible[function]) if i != number for value in own}
        board = Board(function, self.finder.spelling[function[0]], "squares", (values,), short_forms(contents), {})
        return Tray(board, frozenset())

    def _tray_of_values(self, function: Signature, number: int, values: Values) -> Tray:
        """Return a tray whose values look as they do on the board."""
        forms = next((board.symbols for board in self._plain if board.function == function), {})
        symbols = {value: forms.get(value, readable) for value, readable in _readable(values).items()}
        own = f"{function[0]} {number + 1}", function[1]
        board = Board(own, self.finder.spelling[function[0]], "squares", (values,), symbols, {})
        return Tray(board, frozenset(), Slot("fact", function, number))

    def _trays_of_things(self) -> Iterator[Tray]:
        """Yield the trays of functions with one argument. Functions with the same things share a tray."""
        alone = [
            (function, sets[0])
            for function, sets in self.possible.items()
            if function[1] == 1 and function not in self.readers and self._are_on_a_tray(function, sets[0])
        ]
        while alone:
            widest = max(alone, key=lambda row: len(row[1]))[1]
            sharing = self._sharing([function for function, values in alone if values <= widest], widest)
            alone = [row for row in alone if row[0] not in sharing]
            names = [self.finder.spelling[function[0]] for function in sharing]
            forms = self._forms_of_things(names, widest)
            board = Board(sharing[0], " / ".join(names), "squares", (self._ordered(widest),), forms, {})
            for function, name in zip(sharing, names, strict=True):
                is_alone = len(sharing) == 1
                self.readers[function] = Reader(sharing[0], (0,), "" if is_alone else name, is_thing=is_alone)
            yield Tray(board, frozenset())

    def _are_on_a_tray(self, function: Signature, values: set[str]) -> bool:
        links = (self.linked[slot] or self.links.compared(slot) for slot in self.moves)
        is_named = any(Slot("fact", function, 0) in own for own in links)
        return 2 <= len(values) <= (MOST_SQUARES if is_named or _are_names(values) else MOST_COUNTED)

    def _trays_of_pairs(self) -> Iterator[Tray]:
        """Yield the trays of functions with two arguments that say one thing of each of several things."""
        pairs = ((function, first) for function, first in self.finder.first.items() if function[1] == 2)
        for function, first in pairs:
            things = {fact[0] for fact in first}
            if function not in self.readers and 2 <= len(things) == len(first) <= MOST_SQUARES:
                forms = short_forms(self._values(function, 1))
                board = Board(
                    function, self.finder.spelling[function[0]], "squares", (self._ordered(things),), forms, {}
                )
                self.readers[function] = Reader(function, (0,))
                yield Tray(board, frozenset())

    def _sharing(self, functions: Sequence[Signature], values: Collection[str]) -> list[Signature]:
        """Return the functions that share a tray: in the first state, none of its values has two facts.

        Numbers are things only if each of them has a fact.
        """
        sharing: list[Signature] = []
        lying: set[str] = set()
        for function in functions:
            own = {fact[0] for fact in self.finder.first.get(function, ())}
            if lying.isdisjoint(own):
                sharing.append(function)
                lying |= own
        if _are_names(values) or lying == values:
            return sharing
        return [function for function in functions if self.possible[function][0] == values][:1]

    def _tray_of_bare_facts(self) -> Iterator[Tray]:
        """Yield a tray of the facts without arguments."""
        bare = [function for function in self.possible if function[1] == 0]
        names = {self.finder.spelling[function[0]] for function in bare}
        if 1 <= len(names) <= MOST_SQUARES:
            values = self._ordered(names)
            for function in bare:
                self.readers[function] = Reader(("", 0), (), self.finder.spelling[function[0]])
            yield Tray(Board(("", 0), "facts", "squares", (values,), _readable(names), {}), frozenset())

    def _forms_of_things(self, names: Sequence[str], values: set[str]) -> dict[str, str]:
        if len(names) == 1:
            return _readable(values)
        blank = {name for name in names if name.lower() in BLANKS}
        return short_forms(set(names) - blank) | dict.fromkeys(blank, POINT)


def _is_of_marks(board: Board) -> bool:
    """Return whether a board has marks, and the first state does not fill it."""
    return board.kind == "squares" and "" in board.symbols and not board.is_full


def _are_names(values: Collection[str]) -> bool:
    """Return whether values are neither numbers nor numbered."""
    return bool(values) and not all(value[-1:].isdigit() for value in values)
