"""Sequences of moves with their contexts in a terminal, like Figures 2 and 3 of L&E 2004; `boards` makes pictures.

A pair is a context, the facts that hold where it applies, and what to do there: one sequence of moves, or a tree of
them where several share the context. The context is drawn as a board in which `#` stands where anything may lie; beside
it are the places that the moves go to, numbered in their order, and the moves. Of a duet every move is known, 1, 2, 3;
of a solo only one role's, 1, 3, 5 where two take turns. Where a tree has several moves after so many, letters tell
them apart: 2a, 2b. A whole position is drawn in the same way: there a place without a fact is empty.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from ..rules.board import POINT, UNBROKEN, Arguments
from .effects import Branch, Effect, Effects
from .layout import Board, Laid, Layout, Place
from .trees import labels

if TYPE_CHECKING:
    from ..rules.game import Game

ANYTHING, UNTOUCHED, TAKEN, MAYBE, MORE = "#", "·", "\N{MULTIPLICATION SIGN}", "?", "+"
FALLING, RISING = (
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER LEFT TO LOWER RIGHT}",
    "\N{BOX DRAWINGS LIGHT DIAGONAL UPPER RIGHT TO LOWER LEFT}",
)
GAP = "     "
ROOM = 5  # letters in one place for the numbers of moves, so that a board keeps its shape
Texts: TypeAlias = Mapping[Place, str]


@dataclass(frozen=True)
class DrawnPair:
    """What is drawn: a pair with its label ("a") and weight in [0, 1], or a position.

    facts      the context, or all facts of a position
    sequences  the branches of its tree, each (role, move), (role, move), ..; none for a position alone
    kind       duet: the moves of all roles; solo: those of one role; position: moves from exactly these facts on
    """

    label: str
    weight: float | None
    facts: frozenset[str]
    sequences: tuple[Branch, ...] = ()
    kind: Literal["duet", "solo", "position"] = "duet"

    @property
    def title(self) -> str:
        """(a) duet, weight 0.97; of a position just its label."""
        if self.kind == "position":
            return self.label
        known = "" if self.weight is None else f", weight {self.weight:.2f}"
        return f"({self.label}) {self.kind}{known}" if self.label else f"{self.kind}{known}"


class Step(NamedTuple):
    """A move in a tree: its number ("1", "2b"), how many moves are before it, who makes it, and what it does."""

    number: str
    depth: int
    role: str
    move: str
    effect: Effect


@dataclass(frozen=True)
class Scene:
    """A pair on the boards of its game: what lies where and what nowhere, and the tree of moves from its root down."""

    pair: DrawnPair
    laid: Laid
    steps: tuple[Step, ...]

    @property
    def is_tree(self) -> bool:
        """Whether some moves are alternatives."""
        return len({step.depth for step in self.steps}) < len(self.steps)

    @property
    def has_unknown(self) -> bool:
        """Whether there is a place where anything may lie."""
        return any(self.text_of(board, at) == ANYTHING for board in self.laid.boards for at in board.spots)

    def text_of(self, board: Board, at: Arguments) -> str:
        """The short form of what lies in a place: `#` for anything, and of a whole position a point for nothing."""
        thing = self.laid.things.get(Place(board.function, at))
        if thing is None:
            return POINT if self.pair.kind == "position" else ANYTHING
        return board.form(thing)


class Stage:
    """Where the pairs of a game are drawn; `matrix`: the first coordinate goes downwards, the second to the right."""

    def __init__(self, game: Game, *, matrix: bool = False) -> None:
        self.game = game
        self.layout = Layout.of(game, matrix=matrix)
        self._effects = Effects(game, self.layout)

    def scene(self, pair: DrawnPair) -> Scene:
        """A pair with its moves numbered and their effects found."""
        return Scene(pair, self.layout.lay(pair.facts), tuple(self._steps(pair)))

    def _steps(self, pair: DrawnPair) -> Iterator[Step]:
        per_move = self.game.num_roles if pair.kind == "solo" else 1
        levels: dict[int, dict[Branch, str]] = {}
        prefixes = _tree(pair.sequences)
        for prefix in prefixes:
            levels.setdefault(len(prefix), {})[prefix] = ""
        for length, level in levels.items():
            letters = islice(labels(), len(level)) if len(level) > 1 else iter([""])
            level |= {
                prefix: f"{1 + (length - 1) * per_move}{letter}" for prefix, letter in zip(level, letters, strict=False)
            }
        for prefix, effect in self._with_effects(pair, prefixes):
            yield Step(levels[len(prefix)][prefix], len(prefix) - 1, *prefix[-1], effect)

    def _with_effects(self, pair: DrawnPair, prefixes: Sequence[Branch]) -> Iterator[tuple[Branch, Effect]]:
        solo, whole = pair.kind == "solo", pair.kind == "position"
        effects: dict[Branch, Effect] = {}
        for branch in pair.sequences:
            found = self._effects.of(pair.facts, branch, solo=solo, whole=whole)
            for length, effect in enumerate(found, start=1):
                effects.setdefault(branch[:length], effect)
        return ((prefix, effects[prefix]) for prefix in prefixes)


def _tree(sequences: Iterable[Branch]) -> list[Branch]:
    """The beginnings of sequences, each once, from the root down and branch by branch."""
    places: dict[Branch, tuple[int, ...]] = {}
    for sequence in sequences:
        place: tuple[int, ...] = ()
        for length in range(1, len(sequence) + 1):
            place = places.setdefault(sequence[:length], (*place, len(places)))
    return sorted(places, key=places.__getitem__)


def pair_text(game: Game, pair: DrawnPair, width: int = 80, *, matrix: bool = False) -> str:
    """One pair for a terminal of this width."""
    return pairs_text(game, [pair], width, matrix=matrix)


def pairs_text(game: Game, pairs: Sequence[DrawnPair], width: int = 80, *, matrix: bool = False) -> str:
    """Pairs one below the other, with a key to what the boards do not tell themselves."""
    stage = Stage(game, matrix=matrix)
    scenes = [stage.scene(pair) for pair in pairs]
    blocks = ["\n".join(_scene_lines(scene, width)) for scene in scenes]
    return "\n\n".join(filter(None, [*blocks, "\n".join(_key(scenes, width))]))


def _scene_lines(scene: Scene, width: int) -> Iterator[str]:
    """Title; the board before, the board with the numbers, and the moves; then the facts that lie nowhere."""
    yield scene.pair.title
    before = {Place(b.function, at): scene.text_of(b, at) for b in scene.laid.boards for at in b.spots}
    numbers = _numbers(scene.steps)
    drawings = [_drawing(scene.laid.boards, before, POINT, width)]
    drawings += [_drawing(scene.laid.boards, numbers, UNTOUCHED, width)] if numbers else []
    drawings.append(list(_move_lines(scene)))
    yield from _beside([drawing for drawing in drawings if drawing], width)
    facts = " ".join(fact.replace(" ", UNBROKEN) for fact in scene.laid.others)
    yield from (line.replace(UNBROKEN, " ") for line in textwrap.wrap(facts, width, break_long_words=False))


def _numbers(steps: Sequence[Step]) -> dict[Place, str]:
    """The numbers of the moves in the places that they go to, and a cross where a piece is taken."""
    numbers: dict[Place, list[str]] = {}
    for step in sorted(steps, key=lambda step: step.depth):
        effect = step.effect
        for place in (*effect.placed, *(place for _, place in effect.moved)):
            numbers.setdefault(place, []).append(step.number)
        if effect.guess is not None:
            numbers.setdefault(effect.guess, []).append(step.number + MAYBE)
    for place in (place for step in steps for place in step.effect.taken):
        numbers.setdefault(place, [TAKEN])
    return {place: _fitting(texts) for place, texts in numbers.items()}


def _fitting(numbers: Sequence[str]) -> str:
    """As many numbers as there is room for, the first at least, and a sign where there are more."""
    shown = next(num for num in range(len(numbers), 0, -1) if num == 1 or len(",".join(numbers[:num])) <= ROOM)
    return ",".join(numbers[:shown]) + (MORE if shown < len(numbers) else "")


def _move_lines(scene: Scene) -> Iterator[str]:
    """The moves with their numbers; a sequence straight down, a tree with its branches."""
    steps = scene.steps
    widest = max((len(step.number) for step in steps), default=0)
    for place, step in enumerate(steps):
        before = "".join(_branch(steps, place, depth) for depth in range(1, step.depth + 1)) if scene.is_tree else ""
        yield f"{before}{step.number if scene.is_tree else step.number.rjust(widest)}  {step.role} {step.move}"


def _branch(steps: Sequence[Step], place: int, depth: int) -> str:
    """What stands below the move `depth - 1` above a move: a branch to it, or past it to later ones, or nothing."""
    later = next((step.depth for step in steps[place + 1 :] if step.depth <= depth), 0)
    if steps[place].depth == depth:
        return "├ " if later == depth else "└ "
    return "│ " if later == depth else "  "


def _key(scenes: Sequence[Scene], width: int) -> Iterator[str]:
    """What the short forms stand for, and where the points are that the moves name."""
    boards = {board.function: board for scene in scenes for board in scene.laid.boards}
    shown = {scene.text_of(board, at) for scene in scenes for board in scene.laid.boards for at in board.spots}
    every = [(form, thing) for board in boards.values() for thing, form in board.symbols.items()]
    forms = {form: thing for form, thing in every if thing and form != thing} | {ANYTHING: "anything", POINT: "blank"}
    words = [f"{form} = {forms[form]}" for form in sorted(forms.keys() & shown)]
    if any(text.endswith(MORE) for scene in scenes for text in _numbers(scene.steps).values()):
        words.append(f"1{MORE} = 1 and more")
    yield from textwrap.wrap(", ".join(words), width)
    for board in boards.values():
        if board.kind == "points":
            yield ""
            yield from _points(board, {at: at[0] for at in board.spots})


# ---- boards as lines of text ------------------------------------------------------------------------------------


def _drawing(boards: Sequence[Board], texts: Texts, nothing: str, width: int) -> list[str]:
    """Boards with texts in their places, beside each other as far as they fit."""
    drawings = []
    for board in boards:
        inside = {at: texts.get(Place(board.function, at), nothing) for at in board.spots}
        match board.kind:
            case "squares":
                drawings.append(_squares(board, inside))
            case "points":
                drawings.append(_points(board, inside))
            case _:
                drawings.append(list(_rows(inside, width)))
    return list(_beside(drawings, width))


def _squares(board: Board, texts: Mapping[Arguments, str]) -> list[str]:
    columns = [value for order in (board.grid.order if board.grid else ()) for value in order]
    size = max(map(len, (*columns, *texts.values())))
    found = [(_spot(board.spots[at], size + 1, 1), text) for at, text in texts.items()]
    for label in board.labels:
        row, column = _spot(label.spot, size + 1, 1)
        start = column - max(0, len(label.text) - size) - label.is_beside
        found.append(((row, start), label.text))
    return _canvas(found)


def _points(board: Board, texts: Mapping[Arguments, str]) -> list[str]:
    """Points in as few rows and columns as there are heights and sides, with the lines between them."""
    xs, ys = (sorted({spot[axis] for spot in board.spots.values()}) for axis in (0, 1))
    step = max(map(len, texts.values())) + 3
    spots = {at: _spot((xs.index(x), ys.index(y)), step, 2) for at, (x, y) in board.spots.items()}
    found = [piece for one, other in board.lines for piece in _line(spots[one], spots[other], step)]
    return _canvas([*found, *((spots[at], text) for at, text in texts.items())])


def _line(one: tuple[int, int], other: tuple[int, int], step: int) -> Iterator[tuple[tuple[int, int], str]]:
    """A line across, down or diagonal as (row, column), characters; others cannot be drawn with letters."""
    (top, left), (bottom, right) = sorted([one, other])
    if top == bottom:
        yield (top, left), "─" * (right - left)
    elif left == right:
        yield from (((row, left), "│") for row in range(top, bottom))
    elif (bottom - top) // 2 == abs(right - left) // step:
        slope = 1 if right > left else -1
        for row in range(top + 1, bottom, 2):
            yield (row, left + slope * (row - top) * step // 2), FALLING if slope > 0 else RISING


def _rows(texts: Mapping[Arguments, str], width: int) -> Iterator[str]:
    """Points in rows, their names below them."""
    size = max(len(text) for at, thing in texts.items() for text in (at[0], thing))
    fitting = max(1, (width + 2) // (size + 2))
    pairs = [(thing, at[0]) for at, thing in texts.items()]
    for start in range(0, len(pairs), fitting):
        for row in zip(*pairs[start : start + fitting], strict=True):
            yield "  ".join(text.ljust(size) for text in row).rstrip()


def _spot(spot: tuple[float, float], wide: int, high: int) -> tuple[int, int]:
    """(row, column) of a place in a plane."""
    x, y = spot
    return -floor(y * high + 0.5), floor(x * wide + 0.5)


def _canvas(found: Iterable[tuple[tuple[int, int], str]]) -> list[str]:
    """Texts at their (row, column), the later over the earlier, as lines."""
    letters = {(row, column + i): letter for (row, column), text in found for i, letter in enumerate(text)}
    rows, columns = ([spot[axis] for spot in letters] for axis in (0, 1))
    across = range(min(columns), max(columns) + 1)
    lines = ("".join(letters.get((row, c), " ") for c in across) for row in range(min(rows), max(rows) + 1))
    return [line.rstrip() for line in lines]


def _beside(drawings: Sequence[list[str]], width: int) -> Iterator[str]:
    """Drawings beside each other as far as they fit, else one below the other."""
    row: list[list[str]] = []
    for drawing in drawings:
        if row and max(map(len, _joined([*row, drawing]))) > width:
            yield from _joined(row)
            row = []
        row.append(drawing)
    yield from _joined(row)


def _joined(drawings: Sequence[list[str]]) -> list[str]:
    """Drawings beside each other."""
    height = max(map(len, drawings), default=0)
    sizes = [max(map(len, drawing), default=0) for drawing in drawings]
    padded = [
        [line.ljust(size) for line in (*drawing, *[""] * (height - len(drawing)))]
        for drawing, size in zip(drawings, sizes, strict=True)
    ]
    return [GAP.join(lines).rstrip() for lines in zip(*padded, strict=True)]
