"""Moves by clicking: for each legal move the places of the tabletop to click, step by step.

A *path* is a sequence of steps; a step is a set of places, of which any one is clicked. The path of a move follows

1. from the places that its words name: `(move 1 2 1 3)` is a click on 1 2 and then one on 1 3. Words name a place if
   they are its coordinates and, in most moves of the same kind, the move changes that place. So `(place 3 9 6)` names 9
   6 and not 3 9 if the piece 3 is put there. Numbers that the rules link with other arguments of facts name no place;
2. from the words that are some coordinates of all places that the move fills: `(drop 3)` is a click anywhere in column
   3, `(rotate 1 clockwise)` one anywhere in layer 1. If the moves fill no places, the links of the rules count;
3. from the places that the move empties, and then those that it fills, without what all moves of the role change:
   `moveLeft` of a snake is a click to the left of its head;
4. from the squares of trays that its words name: `(select p0110)`;
5. from the squares of trays where it changes something. This and all other changes on trays count only if no other role
   has a choice, because facts such as a score may follow from the moves of others.

A move that alone changes nothing is a click on the place that all other moves empty, since what stands there stays; or
a click on a tray where all moves change the same: on the role whose turn is next, or on the next number of a counter.

Moves with the same path get further steps: squares that their words name, places of boards that only some of them
change, the squares of what they put there, and places on trays. Moves that then have the same path are told apart by a
menu, unless they lead to the same state: then one of them has the path. A move without a path is made from a list.

A click means the same for all moves that begin with the same steps. A place that belongs to the steps of several moves
is left to the smallest step, and a path with which other paths begin is confirmed by a second click on its last place.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..gdl.clauses import Signature
from ..gdl.limits import check
from .board import Board, Place, by_function
from .tabletop import Slot, Tabletop

if TYPE_CHECKING:
    from ..game.game import Game, Position

Step: TypeAlias = frozenset[Place]
"""Places of which any one is clicked."""
ClickPath: TypeAlias = tuple[Step, ...]
"""The clicks that make a move; empty if no clicks make it."""
MoveKind: TypeAlias = tuple[str, int]
"""The name of a move, and the number of its words."""
Anchor: TypeAlias = tuple[int, int]
"""The number of a board, and the number of the first word of a move that is a coordinate of a place on it."""
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

ROUNDS = 2  # of further steps
MOST_TRIED = 48  # moves of a position that are tried where the reasoner plays, which takes milliseconds for each
LEAST_USE = 0.005  # a tray is left out if it serves a smaller part of these moves
MOST_CONTENTS = 3  # arguments of facts that trays show
NO_SQUARES = (-1,) * MOST_CONTENTS
TRIALS = 6  # random matches that show which trays moves need
PLIES, MOST_MOVES = 40, 6000  # of each of these matches, and of all together
WORD = re.compile(r"[^\s()]+")


def clickable(paths: Sequence[ClickPath]) -> list[bool]:
    """Return for each path of a position whether clicks on its steps mean this move and no other.

    Args:
        paths: the paths of all legal moves of a role, from `ClickMap.paths`.
    """
    are_unique = [False] * len(paths)
    _mark_unique(paths, [number for number, path in enumerate(paths) if path], 0, are_unique)
    return are_unique


def _mark_unique(paths: Sequence[ClickPath], moves: Sequence[int], depth: int, are_unique: list[bool]) -> None:
    """Mark the moves that clicks can tell from the others, all of which begin with the same clicks."""
    if any(len(paths[move]) == depth for move in moves):
        if len(moves) == 1:
            are_unique[moves[0]] = True
        return
    sharing: dict[Place, list[int]] = defaultdict(list)
    for move in moves:
        for place in paths[move][depth]:
            sharing[place].append(move)
    for group in set(map(tuple, sharing.values())):
        _mark_unique(paths, group, depth + 1, are_unique)


# ---- what moves change ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Differences:
    """Pairs of a move and a fact that it changes, as columns; `held` are the facts before the moves."""

    moves: Numbers
    facts: Numbers
    held: Numbers


class Change(NamedTuple):
    """The change of a place by a move.

    place: number of the place
    is_filled: whether something lies there after the move; otherwise the move empties the place
    key: equal for equal changes
    contents: numbers of the squares of trays that show what the move puts there; -1 for none
    """

    place: int
    is_filled: bool
    key: int
    contents: Sequence[int]


@dataclass(frozen=True)
class Changes:
    """The places that moves change, as columns: an entry for each pair of a move and a place; see `Change`.

    num_moves: number of the moves
    """

    moves: Numbers
    places: Numbers
    is_filled: Flags
    keys: NDArray[np.uint64]
    contents: Numbers  # [pairs, MOST_CONTENTS]
    num_moves: int

    @classmethod
    def none(cls) -> Changes:
        """Return the changes of no moves."""
        numbers = np.zeros(0, np.int64)
        return cls(numbers, numbers, np.zeros(0, np.bool_), np.zeros(0, np.uint64), numbers.reshape(0, 1), 0)

    @cached_property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """The pairs (move, place)."""
        return frozenset(zip(self.moves.tolist(), self.places.tolist(), strict=True))

    @cached_property
    def own(self) -> dict[int, list[Change]]:
        """The changes of each move, without those that all moves have in common; an only move has none."""
        columns = (self.moves, self.places, self.is_filled, self.keys)
        own: dict[int, list[Change]] = defaultdict(list)
        contents = [
            [square for square in squares if square >= 0] for squares in self.contents[~self._are_common].tolist()
        ]
        rows = zip(*(column[~self._are_common].tolist() for column in columns), contents, strict=True)
        for move, *change in rows:
            own[move].append(Change(*change))
        return own

    @cached_property
    def filled_by_all(self) -> set[int]:
        """The places that all moves fill in the same way."""
        return set(self.places[self._are_common & self.is_filled].tolist())

    @cached_property
    def _are_common(self) -> Flags:
        _, kinds, times = np.unique(self.keys ^ self.places.astype(np.uint64), return_inverse=True, return_counts=True)
        common: Flags = times[kinds] == self.num_moves
        return common


# ---- the paths of a position ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choices:
    """The clicks that make the legal moves of a role.

    Attributes:
        paths: for each move its steps, each a set of places of which any one is clicked. A path is empty if no clicks
            make the move. No path is the beginning of another. Several moves have the same path if clicks cannot tell
            them apart.
        twins: for each move the number of the move whose path makes it. This is another move only if both lead to the
            same state and no other role has a choice.
    """

    paths: list[ClickPath]
    twins: list[int]

    @property
    def are_clickable(self) -> list[bool]:
        """Whether each move, or its twin, can be made by clicks that mean no other move."""
        are_unique = clickable(self.paths)
        return [are_unique[twin] for twin in self.twins]


class ReadMove(NamedTuple):
    """A move as words after its name.

    places: the places that words name, by board and number of the first word
    squares: number of a word -> the square of a tray that it names, or the places of a board that have it as coordinate
    lines: the coordinates of boards with which the rules link each word
    """

    kind: MoveKind
    words: tuple[str, ...]
    places: Mapping[Anchor, int]
    squares: Mapping[int, Step]
    lines: Sequence[Sequence[Slot]]


@dataclass(frozen=True)
class _Layout:
    """The places of a tabletop, in order: those of the boards, and then the squares of trays.

    num_on_boards: number of the places of boards
    roles: numbers of the squares of a tray of the roles
    """

    places: Sequence[Place]
    boards: Sequence[Board]
    num_on_boards: int
    roles: frozenset[int]

    @cached_property
    def single(self) -> list[Step]:
        """The step with each place alone."""
        return [frozenset((place,)) for place in self.places]

    def step(self, places: Iterable[int]) -> Step:
        """Return a step with places that are given by their numbers."""
        return frozenset(self.places[place] for place in places)


class _Decision:
    """The legal moves of a role in a position, with what they change.

    paths: the path of each move, as far as it is known
    is_alone: whether no other role has a choice; otherwise what lies on trays may follow from the others' moves, too
    may_pass: whether a move that changes nothing of its own may be a click on a tray
    """

    def __init__(
        self,
        layout: _Layout,
        readings: Sequence[ReadMove],
        changes: Changes,
        is_alone: bool = False,
        may_pass: bool = False,
    ) -> None:
        self.layout, self.readings, self.changes, self.is_alone = layout, readings, changes, is_alone
        self.paths: list[ClickPath] = [()] * len(readings)
        kinds: dict[MoveKind, list[int]] = defaultdict(list)
        for move, reading in enumerate(readings):
            kinds[reading.kind].append(move)
        for moves in kinds.values():
            self._name_places(moves)
            if not any(self.paths[move] for move in moves):
                self._name_lines(moves)
        self._follow_changes(range(layout.num_on_boards))
        for moves in kinds.values():
            if not any(self.paths[move] for move in moves):
                self._add_squares(moves, range(self.readings[moves[0]].kind[1]))
        if is_alone:
            self._follow_changes(range(layout.num_on_boards, len(layout.places)))
        self._stay(may_pass)
        self._split(kinds.values())
        _settle(self.paths, range(len(self.paths)), 0)

    # ---- places that moves name ---------------------------------------------------------------------------------

    def _name_places(self, moves: Sequence[int]) -> None:
        """Give moves of one kind a step for each place that their words name."""
        anchors = self._anchors(moves)
        for move in moves:
            places = self.readings[move].places
            self.paths[move] = tuple(self.layout.single[places[anchor]] for anchor in anchors if anchor in places)

    def _anchors(self, moves: Sequence[int]) -> list[Anchor]:
        """Return the words that name places in moves of one kind, in order.

        Words that name places that most of the moves change are preferred. No word belongs to two places.
        """
        named, changed = Counter[Anchor](), Counter[Anchor]()
        for move in moves:
            for anchor, place in self.readings[move].places.items():
                named[anchor] += 1
                changed[anchor] += (move, place) in self.changes.pairs
        chosen: list[Anchor] = []
        taken: set[int] = set()
        for anchor in sorted(named, key=lambda anchor: (-changed[anchor], -named[anchor], *anchor)):
            words = range(anchor[1], anchor[1] + len(self.layout.boards[anchor[0]].order))
            is_sure = named[anchor] == len(moves) or 2 * changed[anchor] >= len(moves)
            if is_sure and taken.isdisjoint(words):
                chosen.append(anchor)
                taken.update(words)
        return sorted(chosen, key=lambda anchor: anchor[1])

    def _name_lines(self, moves: Sequence[int]) -> None:
        """Give moves of one kind a step with all places whose coordinates their words name in part."""
        for board in self.layout.boards:
            words = self._coordinates(board, moves)
            for move in moves if words else ():
                spoken = self.readings[move].words
                line = (at for at in board.spots if all(at[axis] == spoken[word] for axis, word in words.items()))
                step = frozenset(Place(board.function, at) for at in line)
                self.paths[move] = (step,) if step else ()
            if words:
                return

    def _coordinates(self, board: Board, moves: Sequence[int]) -> dict[int, int]:
        """Return the words that are coordinates of all places that moves of one kind fill: coordinate -> word.

        If they fill none, the words count that the rules link with coordinates.
        """
        filled = {move: self._filled(move, board) for move in moves}
        pairs = [(place.at, self.readings[move].words) for move, places in filled.items() for place in places]
        axes = sorted(range(len(board.order)), key=lambda axis: (axis == board.down, axis == board.across))
        chosen: dict[int, int] = {}
        for word in range(self.readings[moves[0]].kind[1]):
            linked = {slot.number for slot in self.readings[moves[0]].lines[word] if slot.function == board.function}
            fitting = (axis for axis in axes if all(at[axis] == words[word] for at, words in pairs))
            axis = next((axis for axis in fitting if axis not in chosen and (pairs or axis in linked)), None)
            if axis is not None:
                chosen[axis] = word
        return chosen

    def _filled(self, move: int, board: Board) -> list[Place]:
        """Return the places of a board that a move fills, or else those that it changes."""
        own = [(self.layout.places[change.place], change.is_filled) for change in self.changes.own.get(move, ())]
        on_board = [(place, is_filled) for place, is_filled in own if place.function == board.function]
        return [place for place, is_filled in on_board if is_filled] or [place for place, _ in on_board]

    def _add_squares(self, moves: Sequence[int], words: Iterable[int]) -> None:
        """Give moves a step for each of these words that names squares."""
        for word in words:
            for move in moves:
                if word in self.readings[move].squares:
                    self.paths[move] += (self.readings[move].squares[word],)

    # ---- places that moves change -------------------------------------------------------------------------------

    def _follow_changes(self, places: range) -> None:
        """Give moves without a path a step with the places that they empty, and one with those that they fill.

        Only the first board on which a move changes some of the given places counts. The first of the two steps is left
        out if it is the same for all moves.
        """
        moves = [move for move, path in enumerate(self.paths) if not path]
        own = {move: changes for move in moves if (changes := self._on_first_board(move, places))}
        emptied = {move: self.layout.step(c.place for c in changes if not c.is_filled) for move, changes in own.items()}
        filled = {move: self.layout.step(c.place for c in changes if c.is_filled) for move, changes in own.items()}
        is_same = len(set(emptied.values())) == 1 and all(filled.values())
        steps = {move: (filled[move],) if is_same else (emptied[move], filled[move]) for move in own}
        if len(set(steps.values())) > 1 or not any(self.readings[move].squares for move in own):
            for move in own:
                self.paths[move] = tuple(filter(None, steps[move]))

    def _on_first_board(self, move: int, places: range) -> list[Change]:
        """Return the changes of a move among the given places, on the first board that has some."""
        own = [change for change in self.changes.own.get(move, ()) if change.place in places]
        boards = [self.layout.places[change.place].function for change in own]
        return [change for change, board in zip(own, boards, strict=True) if board == boards[0]]

    def _stay(self, may_pass: bool) -> None:
        """Give the only move that changes nothing a step where the others begin, or to the role whose turn is next."""
        moves = [move for move, path in enumerate(self.paths) if not path]
        if len(moves) != 1 or self.changes.num_moves < len(self.paths) or len(self.paths) == 1:
            return
        others = [self.changes.own.get(move, ()) for move in range(len(self.paths)) if move != moves[0]]
        left = set.intersection(*({change.place for change in own if not change.is_filled} for own in others))
        trays = range(self.layout.num_on_boards, len(self.layout.places) if may_pass else 0)
        passed = self.changes.filled_by_all.intersection(trays)
        step = self.layout.step(left or passed & self.layout.roles or sorted(passed)[:1])
        self.paths[moves[0]] = (step,) if step else ()

    # ---- moves with the same path -------------------------------------------------------------------------------

    def _split(self, kinds: Iterable[Sequence[int]]) -> None:
        """Give moves with the same path further steps."""
        for moves in kinds:
            groups = self._same(moves)
            if groups:
                words = sorted(set().union(*(self._telling_words(group) for group in groups)))
                self._add_squares([move for move in moves if self.paths[move]], words)
        moves = list(range(len(self.paths)))
        on_boards = range(self.layout.num_on_boards)
        for _ in range(ROUNDS):
            moves = self._add_steps(moves, lambda c: (c.place,) if c.is_filled and c.place in on_boards else ())
            moves = self._add_steps(moves, lambda c: (c.place,) if not c.is_filled and c.place in on_boards else ())
        moves = self._add_steps(moves, lambda change: change.contents if change.place in on_boards else ())
        if self.is_alone:
            moves = self._add_steps(moves, lambda change: (change.place,) if change.is_filled else ())
            moves = self._add_steps(moves, lambda change: () if change.is_filled else (change.place,))
            self._add_steps(moves, lambda change: change.contents)

    def _telling_words(self, moves: Sequence[int]) -> set[int]:
        """Return the words that name different squares in these moves."""
        named = {word for move in moves for word in self.readings[move].squares}
        return {word for word in named if len({self.readings[move].squares.get(word) for move in moves}) > 1}

    def _add_steps(self, among: Sequence[int], targets: Callable[[Change], Iterable[int]]) -> list[int]:
        """Give moves with the same path a step with the targets of changes that only some of them make.

        among: the moves. targets: the numbers of the places to click for a change.

        Returns:
            The moves that had the path of another move.
        """
        groups = self._same(among)
        for moves in groups:
            sharing: dict[int, list[int]] = defaultdict(list)
            own = {move: {p for change in self.changes.own.get(move, ()) for p in targets(change)} for move in moves}
            for move in moves:
                for place in own[move]:
                    sharing[place].append(move)
            for move in moves:
                shared = [sharing[place] for place in own[move] if len(sharing[place]) < len(moves)]
                if shared:
                    fewest = min(shared, key=lambda others: (len(others), others))
                    self.paths[move] += (self._on_one_board(p for p in own[move] if sharing[p] == fewest),)
        return [move for moves in groups for move in moves]

    def _same(self, moves: Iterable[int]) -> list[list[int]]:
        """Return the groups of moves with the same path."""
        groups: dict[ClickPath, list[int]] = defaultdict(list)
        for move in moves:
            if self.paths[move]:
                groups[self.paths[move]].append(move)
        return [group for group in groups.values() if len(group) > 1]

    def _on_one_board(self, places: Iterable[int]) -> Step:
        """Return a step with those of the places that lie on the first of their boards."""
        step = sorted(places)
        board = self.layout.places[step[0]].function
        return self.layout.step(place for place in step if self.layout.places[place].function == board)


def _settle(paths: list[ClickPath], moves: Sequence[int], depth: int) -> None:
    """Change the paths of moves that begin with the same clicks so that no click is ambiguous; see the module."""
    going = [move for move in moves if len(paths[move]) > depth]
    ending = [move for move in moves if len(paths[move]) == depth > 0]
    if not going:
        return
    for move in ending:
        paths[move] += paths[move][-1:]
    going += ending
    _separate(paths, going, depth)
    groups: dict[Step, list[int]] = defaultdict(list)
    for move in going:
        groups[paths[move][depth]].append(move)
    for group in groups.values():
        if len(group) > 1:
            _settle(paths, group, depth + 1)


def _separate(paths: list[ClickPath], moves: Sequence[int], depth: int) -> None:
    """Leave each place to the smallest of the steps to which it belongs.

    A step of which nothing is left becomes a smaller one that is a part of it.
    """
    steps = {paths[move][depth] for move in moves}
    if sum(map(len, steps)) == len(frozenset[Place]().union(*steps)):
        return
    taken: set[Place] = set()
    left: dict[Step, Step] = {}
    for step in sorted(steps, key=lambda step: (len(step), sorted(step))):
        left[step] = step - taken or next((part for part in left.values() if part < step), step)
        taken |= step
    for move in moves:
        paths[move] = (*paths[move][:depth], left[paths[move][depth]], *paths[move][depth + 1 :])


# ---- the clicks of a game ---------------------------------------------------------------------------------------


class ClickMap:
    """The clicks that make the moves of a game.

    Attributes:
        tabletop: the boards and trays on which the places of steps lie.
    """

    def __init__(self, game: Game, tabletop: Tabletop) -> None:
        self.tabletop = tabletop
        self._is_compiled, self._is_bounded = game.circuit is not None, game.is_bounded
        self._num_boards = len(tabletop.boards) - len(tabletop.trays)
        places = [Place(board.function, at) for board in tabletop.boards for at in board.spots]
        boards = tabletop.boards[: self._num_boards]
        turns = (tray for tray in tabletop.trays if set(tray.board.order[0]) == set(game.roles))
        self._numbers = {place: number for number, place in enumerate(places)}
        roles = frozenset(self._numbers[Place(tray.board.function, at)] for tray in turns for at in tray.board.spots)
        self._layout = _Layout(places, boards, sum(len(board.spots) for board in boards), roles)
        self._readings: dict[str, ReadMove] = {}
        self._lines: dict[tuple[Slot, str], Step] = {}
        self._fact_numbers: dict[str, int] = {}
        self._facts: list[tuple[int, bool, Sequence[int]]] = []
        for fact in game.fact_texts if game.circuit else ():
            check()
            self._fact_number(fact)
        self._learn_facts()

    @classmethod
    def of(cls, game: Game) -> ClickMap:
        """Return the click map of a game. It is computed once for a game.

        Random matches show which trays moves need; the tabletop has no others.
        """
        if game not in _COMPUTED:
            tabletop = Tabletop.of_all(game)
            if tabletop.trays:
                tabletop = tabletop.with_trays(_needed(game, cls(game, tabletop)))
            _COMPUTED[game] = cls(game, tabletop)
        return _COMPUTED[game]

    def paths(self, position: Position, role: str) -> list[ClickPath]:
        """Return the clicks that make each move of a role; see `choices`."""
        return self.choices(position, role).paths

    def choices(self, position: Position, role: str) -> Choices:
        """Return the clicks that make each move of a role.

        Args:
            position: a position of this game.
            role: the name of a role.

        Returns:
            The paths of the moves, parallel to `position.legal[role]`.
        """
        choices, others = self._choices(position, role), set(position.game.roles) - {role}

        def own(step: Step) -> Step:
            """Leave out places that belong to other roles, if some belong to this one."""
            return frozenset(at for at in step if others.isdisjoint(at.at)) or step

        return replace(choices, paths=[tuple(map(own, path)) for path in choices.paths])

    def _choices(self, position: Position, role: str) -> Choices:
        """Return the choices, whose clicks may also be on places of other roles."""
        readings = [self._reading(move) for move in position.legal[role]]
        itself = list(range(len(readings)))
        if not all(position.legal.values()):
            return Choices(_Decision(self._layout, readings, Changes.none()).paths, itself)
        if self._has_bits(position.state):
            return self._choices_by_bits(position, role, readings)
        paths = _Decision(self._layout, readings, Changes.none()).paths
        unclear = [move for move, is_clear in enumerate(clickable(paths)) if not is_clear][:MOST_TRIED]
        if len(readings) == 1 or not unclear:
            return Choices(paths, itself)
        changes = self._summed(self._differences(position, role, unclear), len(unclear))
        return Choices(_Decision(self._layout, readings, changes, _is_alone(position, role)).paths, itself)

    def _choices_by_bits(self, position: Position, role: str, readings: Sequence[ReadMove]) -> Choices:
        """Return the choices in a state of a compiled game."""
        differences, is_alone = self._differences(position, role, range(len(readings))), _is_alone(position, role)
        changes = self._summed(differences, len(readings))
        choices = Choices(_Decision(self._layout, readings, changes, is_alone).paths, list(range(len(readings))))
        if all(choices.are_clickable):
            return choices
        twins = self._twins(differences, readings, choices.are_clickable) if is_alone else choices.twins
        kept = sorted(set(twins))
        number = np.full(len(readings), -1)
        number[kept] = np.arange(len(kept))
        is_kept = number[differences.moves] >= 0
        single = replace(differences, moves=number[differences.moves[is_kept]], facts=differences.facts[is_kept])
        own = [readings[move] for move in kept]
        decision = _Decision(self._layout, own, self._summed(single, len(own)), is_alone, may_pass=True)
        paths: list[ClickPath] = [()] * len(readings)
        for move, path in zip(kept, decision.paths, strict=True):
            paths[move] = path
        return Choices(paths, twins)

    def _twins(
        self, differences: _Differences, readings: Sequence[ReadMove], are_clickable: Sequence[bool]
    ) -> list[int]:
        """Return for each move that cannot be made by clicks the best one that leads to the same state; see `Choices`.

        Moves are better if they can be made by clicks, or else if their words name more places.
        """
        twins = list(range(len(readings)))
        keys = np.zeros(len(readings), np.uint64)
        np.add.at(keys, differences.moves, self._keys[differences.facts])
        best: dict[int, int] = {}
        order = sorted(twins, key=lambda move: (not are_clickable[move], -len(readings[move].places), move))
        for move in order:
            best.setdefault(int(keys[move]), move)
        return [move if are_clickable[move] else best[int(keys[move])] for move in twins]

    def _has_bits(self, state: NDArray[np.uint64]) -> bool:
        """Return whether the bits of a state are facts."""
        return self._is_compiled and not (self._is_bounded and state[-1])

    def _reading(self, move: str) -> ReadMove:
        """Read a move; each move is read once."""
        if move not in self._readings:
            name, *words = WORD.findall(move)
            slots = [Slot("move", (name.lower(), len(words)), word) for word in range(len(words))]
            places: dict[Anchor, int] = {}
            for number, board in enumerate(self._layout.boards):
                for start in range(len(words) - len(board.order) + 1):
                    at = tuple(words[start : start + len(board.order)])
                    if at in board.spots and self._are_coordinates(board, slots[start : start + len(board.order)]):
                        places[number, start] = self._numbers[Place(board.function, at)]
            squares = {slot.number: self._squares(slot, words[slot.number]) for slot in slots}
            named = {word: step for word, step in squares.items() if step}
            lines = [self.tabletop.lines.get(slot, ()) for slot in slots]
            self._readings[move] = ReadMove((name, len(words)), tuple(words), places, named, lines)
        return self._readings[move]

    def _are_coordinates(self, board: Board, slots: Sequence[Slot]) -> bool:
        """Return whether words of moves may be the coordinates of a place, because of the rules that link them."""
        axes = (Slot("fact", board.function, axis) for axis in range(len(board.order)))
        return all(axis in self.tabletop.lines.get(slot, [axis]) for slot, axis in zip(slots, axes, strict=True))

    def _squares(self, slot: Slot, value: str) -> Step:
        """Return the square of a tray that a word of moves names, or the places of a board in a line; perhaps none."""
        for tray in self.tabletop.trays:
            if slot in tray.words and (square := tray.place(value)):
                return frozenset((square,))
        linked = self.tabletop.lines.get(slot, ())
        return self._line(linked[0], value) if linked else frozenset()

    def _line(self, axis: Slot, value: str) -> Step:
        """Return the places of a board that have a value as one of their coordinates."""
        if (axis, value) not in self._lines:
            board = next(board for board in self._layout.boards if board.function == axis.function)
            line = frozenset(Place(board.function, at) for at in board.spots if at[axis.number] == value)
            self._lines[axis, value] = line
        return self._lines[axis, value]

    # ---- facts --------------------------------------------------------------------------------------------------

    def _fact_number(self, text: str) -> int:
        """Return the number of a fact: its bit in states, if the game is compiled."""
        if text not in self._fact_numbers:
            self._fact_numbers[text] = len(self._facts)
            self._facts.append(self._read_fact(text))
        return self._fact_numbers[text]

    def _read_fact(self, text: str) -> tuple[int, bool, Sequence[int]]:
        """Return the place of a fact, whether something lies there, and the squares that show what; -1 for none."""
        lying = self.tabletop.place_of(text)
        if lying is None:
            return -1, False, NO_SQUARES
        place, content = lying
        ((function, group),) = by_function([text]).items()
        shown = ((tray, tray.shows) for tray in self.tabletop.trays if tray.shows and tray.shows.function == function)
        named = (tray.place(group[text][slot.number]) for tray, slot in shown)
        squares = [self._numbers[square] for square in named if square]
        filled = (*squares, *NO_SQUARES)[:MOST_CONTENTS]
        return self._numbers[place], not self.tabletop.board(place).is_blank(content), filled

    def _learn_facts(self) -> None:
        """Keep the facts as arrays, with a random key of each."""
        self._fact_places = np.array([place for place, _, _ in self._facts], np.int64)
        self._are_contents = np.array([is_content for _, is_content, _ in self._facts], np.bool_)
        self._fact_squares = np.array([squares for _, _, squares in self._facts], np.int64).reshape(-1, MOST_CONTENTS)
        self._keys = np.random.default_rng(0).integers(2**63, size=len(self._facts), dtype=np.uint64)

    def _bits(self, states: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return uint8[states, facts]: the facts of states of a compiled game."""
        as_bytes = np.ascontiguousarray(states).view(np.uint8)
        return np.unpackbits(as_bytes, axis=1, count=len(self._facts), bitorder="little")

    # ---- changes ------------------------------------------------------------------------------------------------

    def _differences(self, position: Position, role: str, tried: Sequence[int]) -> _Differences:
        """Return the facts that moves of a role change if the other roles make their first moves.

        tried: the numbers of the moves.
        """
        game = position.game
        joint = game.legal(position.state[None]).joint_moves(game.roles.index(role), game.num_roles)[list(tried)]
        after = game.next(np.repeat(position.state[None], len(joint), axis=0), joint)
        if self._has_bits(position.state):
            if self._is_bounded:
                after = np.where(after[:, -1:] > 0, position.state, after)  # outside the bounds, nothing is compared
            moves, facts = np.nonzero(self._bits(after ^ position.state))
            return _Differences(moves, facts, np.flatnonzero(self._bits(position.state[None])[0]))
        changed = [position.game.facts(state) ^ position.facts for state in after]
        pairs = [(move, self._fact_number(text)) for move, texts in zip(tried, changed, strict=True) for text in texts]
        held = np.array([self._fact_number(fact) for fact in position.facts], np.int64)
        self._learn_facts()
        columns = np.array(pairs, np.int64).reshape(-1, 2)
        return _Differences(columns[:, 0], columns[:, 1], held)

    def _summed(self, differences: _Differences, num_moves: int) -> Changes:
        """Sum the changed facts of each move and place."""
        is_seen = self._fact_places[differences.facts] >= 0
        moves, facts, held = differences.moves[is_seen], differences.facts[is_seen], differences.held
        num_places = max(1, len(self._layout.places))
        lying = held[self._are_contents[held] & (self._fact_places[held] >= 0)]
        before = np.bincount(self._fact_places[lying], minlength=num_places)
        pairs, which = np.unique(moves * num_places + self._fact_places[facts], return_inverse=True)
        is_new = ~np.isin(facts, held)
        moves, places = pairs // num_places, pairs % num_places
        more = np.bincount(which, np.where(is_new, 1, -1) * self._are_contents[facts], len(pairs))
        after = before[places] + more.astype(np.int64)
        keys, contents = np.zeros(len(pairs), np.uint64), np.full((len(pairs), MOST_CONTENTS), -1)
        np.add.at(keys, which, self._keys[facts])
        np.maximum.at(contents, which[is_new], self._fact_squares[facts[is_new]])
        kept = (before[places] > 0) | (after > 0)
        return Changes(moves[kept], places[kept], after[kept] > 0, keys[kept], contents[kept], num_moves)


def _is_alone(position: Position, role: str) -> bool:
    """Return whether no other role has a choice."""
    return all(len(moves) == 1 for name, moves in position.legal.items() if name != role)


def _needed(game: Game, clicks: ClickMap) -> set[Signature]:
    """Return the trays that moves need in random matches; with the reasoner, those that their words name.

    A tray tells moves apart if they lead to different squares of it; a counter that each move advances does not. Whose
    turn is next is a square for passes.
    """
    if game.native is None:
        return {tray.board.function for tray in clicks.tabletop.trays if tray.words}
    used, num_moves = Counter[Signature](), 0
    telling = {tray.board.function for tray in clicks.tabletop.trays if set(tray.values) & set(game.roles)}
    for position, role in _decisions_at_random(game):
        choices = clicks.choices(position, role)
        num_moves += len(choices.paths)
        for path, is_clear in zip(choices.paths, choices.are_clickable, strict=True):
            used.update({place.function for step in path for place in step} if is_clear else ())
        squares = {place for path in choices.paths for step in path for place in step}
        telling |= {function for function, number in Counter(at.function for at in squares).items() if number > 1}
        if num_moves > MOST_MOVES:
            break
    needed = {function for function in telling if used[function] >= LEAST_USE * num_moves}
    trays = (tray for tray in clicks.tabletop.trays if tray.board.function in needed and not tray.words)
    return needed | {tray.shows.function for tray in trays if tray.shows}  # their facts must lie somewhere


def _decisions_at_random(game: Game) -> Iterator[tuple[Position, str]]:
    """Yield the positions of random matches, ply by ply, with each role that has several moves."""
    rng = np.random.default_rng(0)
    playing = [game.start()] * TRIALS
    for _ in range(PLIES):
        playing = [position for position in playing if all(position.legal.values())]
        for position in playing:
            yield from ((position, role) for role, moves in position.legal.items() if len(moves) > 1)
        playing = [p.play([moves[rng.integers(len(moves))] for moves in p.legal.values()]) for p in playing]


_COMPUTED: WeakKeyDictionary[Game, ClickMap] = WeakKeyDictionary()
