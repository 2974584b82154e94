"""Move sequences with their contexts as text (Lock & Epstein 2004, Figures 2 and 3), and effects of moves on boards.

A pair consists of a context and of one sequence of moves or a tree of sequences. The context is a set of facts; the
pair applies in states in which all of these facts hold. The drawing of a pair has three parts:

- a board with the facts of the context; `#` marks a place that may contain anything
- a board with the number of each move at its destination
- the list of the moves

A duet has the moves of all roles, numbered 1, 2, 3. A solo has only the moves of one role, numbered 1, 3, 5 if two
roles take turns. Alternative moves at the same depth of a tree have letters: 2a, 2b. A position is drawn in the same
way, but a place without a fact is empty.

The effects of a move (pieces placed, moved, taken) are found by playing it. A context is only a part of a state.
Therefore the context is inserted into the first state and into states of random matches: its facts replace the facts
about the same places. The move is played in each of these states in which it is legal, together with random moves of
the other roles.

- A change that is the same in all states is an effect.
- If the states have no change in common, the place that changes most often is a guess. An example is a stone that falls
  into a column with unknown contents.
- If the move is legal in none of the states, its arguments are interpreted. If they name one place, a piece is put
  there. If they name more, a piece moves from the first place to the second, and pieces in further places are taken.
  But if the first place is known to be blank, a piece is put there, and pieces in all further places are taken.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..drawing.board import POINT, Arguments, Board, Boards, Laid, Place
from ..drawing.position import beside, in_the_plane, points_text, wrapped
from ..errors import GameloreError
from ..learning.sequences.extraction import KIND_NAMES, NO_MOVE
from ..players.random_streams import stream
from .feature_trees import labels

if TYPE_CHECKING:
    from ..game.game import Game, Position
    from ..learning.sequences.contexts import ContextPairs

Branch: TypeAlias = tuple[tuple[str, str], ...]
"""A sequence of moves, each as (role, move)."""
Change: TypeAlias = tuple[str | None, str]
"""Contents of a place (before a move, after it); "" for an empty place, None if several states differ in it."""

NUM_MATCHES = 6  # number of random matches; contexts are inserted into their states
NUM_STATES = 48  # approximate number of states of these matches that are used, at equal distances
MAX_PLIES = 40  # largest length of such a match
ENOUGH = 16  # largest number of states for one context
# A whole position is played on TRIES times, with different random moves of the other roles. Between two moves of a
# solo, random replies are tried at most TRIES * ENOUGH times, with each of the states in turn.
TRIES = 3


class Effect(NamedTuple):
    """The places that a move affects.

    placed  places where a piece is put
    moved   (origin, destination) of each piece that moves
    taken   places whose piece is taken
    turned  places where a piece becomes another piece
    guess   one of the possible destinations, if the destination is not known
    """

    placed: tuple[Place, ...] = ()
    moved: tuple[tuple[Place, Place], ...] = ()
    taken: tuple[Place, ...] = ()
    turned: tuple[Place, ...] = ()
    guess: Place | None = None

    def blanks(self, before: set[Place]) -> set[Place]:
        """Return the places that are known to be blank after the move; `before` contains those before the move."""
        left, reached = {origin for origin, _ in self.moved}, {place for _, place in self.moved}
        return (before | left | set(self.taken)) - reached - {*self.placed, *self.turned, self.guess}


class Effects:
    """The effects of moves in one game."""

    def __init__(self, game: Game, boards: Boards) -> None:
        self.game = game
        self.boards = boards
        self._lies_in = cache(boards.place_of)

    def of(self, facts: Iterable[str], branch: Branch, *, solo: bool = False, whole: bool = False) -> list[Effect]:
        """Return the effect of each move of a sequence that begins in states with these facts.

        solo   the sequence has only the moves of one role; between two of them the other roles make random moves
        whole  the facts are a whole position, so no other facts hold
        """
        facts = frozenset(facts)
        blank = {place for place, content in self.boards.lay(facts).contents.items() if self._is_blank(place, content)}
        states = [self.game.position(facts)] * TRIES if whole else list(self._completed(facts, branch[:1]))
        effects = []
        for number, (role, move) in enumerate(branch):
            if solo and number:
                states = list(self._all_replied(states, role, move, number))
            states = [state for state in states if _is_legal(state, role, move)]
            if states and not self.game.acting(states[0].state[None])[0, self.game.roles.index(role)]:
                effects.append(Effect())  # the role does not act in this state, so its only legal move has no effect
                continue
            after = [self._at_random(state, number, attempt, but={role: move}) for attempt, state in enumerate(states)]
            effect = self._seen(states, after, move) if states else self._named(move, blank)
            blank = effect.blanks(blank)
            effects.append(effect)
            states = after
        return effects

    # ---- states in which a context holds --------------------------------------------------------------------------

    @cached_property
    def _states(self) -> list[frozenset[str]]:
        """The facts of the first state, and of some states of random matches."""
        states = [state for match in range(NUM_MATCHES) for state in self._match(match)]
        return [self.game.start().facts, *states[:: -(-len(states) // NUM_STATES) or 1]]

    def _match(self, match: int) -> Iterator[frozenset[str]]:
        position = self.game.start()
        for ply in range(MAX_PLIES):
            if not _goes_on(position):
                return
            position = self._at_random(position, match, ply)
            yield position.facts

    def _at_random(self, position: Position, *key: int, but: Mapping[str, str] | None = None) -> Position:
        """Return the position after a joint move: `but` gives the moves of some roles, the others are random."""
        legal = position.legal.items()
        moves = {role: moves[int(stream(0, role, *key)) % len(moves)] for role, moves in legal}
        return position.play(moves | dict(but or {}))

    def _completed(self, context: frozenset[str], first: Branch) -> Iterator[Position]:
        """Yield at most ENOUGH states in which the facts of a context hold and the first move is legal."""
        completed = filter(None, (self._completing(context, state) for state in self._states))
        return islice((p for p in completed if all(_is_legal(p, role, move) for role, move in first)), ENOUGH)

    def _completing(self, context: frozenset[str], state: frozenset[str]) -> Position | None:
        """Insert a context into a state: its facts replace the facts that they exclude.

        Return None if the game has no position with the resulting facts.
        """
        slots = set(map(self._slot, context))
        try:
            return self.game.position(context.union(fact for fact in state if self._slot(fact) not in slots))
        except GameloreError:
            return None

    def _slot(self, fact: str) -> object:
        """Return a key that is equal for facts that exclude each other.

        Examples are two contents of one place, two numbers of pieces in hand, and the turns of two roles.
        """
        lies = self._lies_in(fact)
        return lies[0] if lies is not None else fact.rpartition(" ")[0] or fact

    def _all_replied(self, states: Sequence[Position], role: str, move: str, number: int) -> Iterator[Position]:
        """Yield at most ENOUGH positions in which the move of a role is legal, after random moves of other roles.

        number  index of the move in its sequence, part of the key of the random numbers
        """
        tries = TRIES * ENOUGH if states else 0
        tried = enumerate(islice(cycle(states), tries))
        return islice(filter(None, (self._replied(state, role, move, number, i) for i, state in tried)), ENOUGH)

    def _replied(self, position: Position, role: str, move: str, *key: int) -> Position | None:
        """Return the first position in which the move of a role is legal, after random moves of other roles.

        Return None if there is none, or if it is the role's turn earlier and the move is not legal.
        """
        for ply in range(self.game.num_roles):
            if _is_legal(position, role, move):
                return position
            if not _goes_on(position) or len(position.legal[role]) > 1:
                return None  # the role must make another move
            position = self._at_random(position, *key, ply)
        return None

    # ---- what changes ---------------------------------------------------------------------------------------------

    def _seen(self, before: Sequence[Position], after: Sequence[Position], move: str) -> Effect:
        changes = [self._changes(old.facts, new.facts) for old, new in zip(before, after, strict=True)]
        common = _common(changes)
        if common:
            return _effect(common, self.boards.named_in(move))
        places = Counter(place for change in changes for place, (_, after) in change.items() if after)
        return Effect(guess=max(places, key=places.__getitem__, default=None))

    def _changes(self, before: frozenset[str], after: frozenset[str]) -> dict[Place, Change]:
        gone, come = self._things(before - after), self._things(after - before)
        changes = {place: (gone.get(place, ""), come.get(place, "")) for place in sorted({*gone, *come})}
        return {place: (was, now) for place, (was, now) in changes.items() if was != now}

    def _things(self, facts: Iterable[str]) -> dict[Place, str]:
        """Return the contents of the places that these facts describe, "" for a blank place."""
        lying = filter(None, map(self._lies_in, sorted(facts)))
        return {place: "" if self._is_blank(place, content) else content or "mark" for place, content in lying}

    def _is_blank(self, place: Place, content: str) -> bool:
        return self.boards.board(place).is_blank(content)

    def _named(self, move: str, blank: set[Place]) -> Effect:
        """Return the effect that the places in the arguments of a move suggest; see the top of the module."""
        named = self.boards.named_in(move)
        if len(named) < 2 or named[0] in blank:
            return Effect(placed=named[:1], taken=named[1:])
        return Effect(moved=((named[0], named[1]),), taken=named[2:])


def _goes_on(position: Position) -> bool:
    return not position.is_terminal and all(position.legal.values())


def _is_legal(position: Position, role: str, move: str) -> bool:
    return _goes_on(position) and move in position.legal[role]


def _common(changes: Sequence[Mapping[Place, Change]]) -> dict[Place, Change]:
    """Return the changes that all states have in common: the same place has the same contents after the move.

    The contents before the move are None if the states differ in them.
    """
    first, *others = changes
    common: dict[Place, Change] = {}
    for place, (before, after) in first.items():
        if all(place in other and other[place][1] == after for other in others):
            same = all(other[place][0] == before for other in others)
            common[place] = (before if same else None, after)
    return common


def _effect(changes: Mapping[Place, Change], named: Sequence[Place]) -> Effect:
    """Return the effect with these changes.

    A piece that disappeared from one place and appeared in another has moved. If several places are possible, the place
    that comes first in `named` is chosen.
    """
    in_order = sorted(changes, key=lambda place: named.index(place) if place in named else len(named))
    come = [place for place in in_order if changes[place][1]]
    gone = [place for place in in_order if not changes[place][1]]
    moved = []
    for place in list(come):
        origin = next((other for other in gone if changes[other][0] == changes[place][1]), None)
        if origin is not None:
            moved.append((origin, place))
            gone.remove(origin)
            come.remove(place)
    # a piece that moved and became another piece
    if len(come) == len(gone) == 1 and [*gone, *come] == list(named[:2]):
        moved, come, gone = [(gone[0], come[0])], [], []
    turned = [place for place in come if changes[place][0]] if len(come) > 1 else []
    placed = [place for place in come if place not in turned]
    return Effect(tuple(placed), tuple(moved), tuple(gone), tuple(turned))


ANYTHING, STONE, UNTOUCHED, TAKEN, MAYBE, MORE = "#", "*", "·", "\N{MULTIPLICATION SIGN}", "?", "+"
GAP = 5  # number of spaces between two boards
ROOM = 5  # largest number of characters for the numbers of moves in one place, so that a board keeps its shape


@dataclass(frozen=True)
class DrawnPair:
    """A pair or a position to draw.

    label      the title of a position, or a short name of a pair such as "a"
    weight     weight of the pair, in [0, 1]; None: it is not shown
    facts      the facts of the context, or all facts of the position
    sequences  the sequences of moves, which are the branches of a tree; empty for a position without moves
    kind       duet: the sequences have the moves of all roles; solo: the moves of one role; position: the facts are
               a whole position, in which the sequences begin
    """

    label: str
    weight: float | None
    facts: frozenset[str]
    sequences: tuple[Branch, ...] = ()
    kind: Literal["duet", "solo", "position"] = "duet"

    @property
    def title(self) -> str:
        """A title such as "(a) duet, weight 0.97". The title of a position is its label."""
        if self.kind == "position":
            return self.label
        title = self.kind if self.weight is None else f"{self.kind}, weight {self.weight:.2f}"
        return f"({self.label}) {title}" if self.label else title


class DrawnMove(NamedTuple):
    """A move in a tree, with its number such as "1" or "2b", its depth (0: a first move), its role and its effect."""

    number: str
    depth: int
    role: str
    move: str
    effect: Effect


@dataclass(frozen=True)
class Scene:
    """A pair with its facts on the boards of the game, and the moves of its tree in depth-first order."""

    pair: DrawnPair
    laid: Laid
    steps: tuple[DrawnMove, ...]

    @property
    def is_tree(self) -> bool:
        """Whether some moves are alternatives."""
        return len({step.depth for step in self.steps}) < len(self.steps)

    @cached_property
    def texts(self) -> dict[Place, str]:
        """The short text for the contents of each place.

        For a place without a fact this is `#` (anything) in a context, and a point (empty) in a position.
        """
        nothing = POINT if self.pair.kind == "position" else ANYTHING
        texts = {Place(board.function, at): nothing for board in self.laid.boards for at in board.spots}
        for board in self.laid.boards:
            lying = {Place(board.function, at): content for at, content in self.laid.on(board).items()}
            texts |= {
                place: board.form(content) if content else STONE for place, content in lying.items() if place in texts
            }
        return texts


class Scenes:
    """Factory of the scenes of a game.

    matrix  the first coordinate goes downwards, the second to the right
    """

    def __init__(self, game: Game, *, matrix: bool = False) -> None:
        self.game = game
        self.boards = Boards.of(game, matrix=matrix)
        self._effects = Effects(game, self.boards)

    def scene(self, pair: DrawnPair) -> Scene:
        """Return the scene of a pair, with numbered moves and their effects."""
        return Scene(pair, self.boards.lay(pair.facts), tuple(self._moves(pair)))

    def _moves(self, pair: DrawnPair) -> Iterator[DrawnMove]:
        per_move = self.game.num_roles if pair.kind == "solo" else 1
        effects = self._effects_in(pair)
        prefixes = _tree(pair.sequences)
        alternatives = Counter(map(len, prefixes))
        letters = {length: labels() for length in alternatives}
        for prefix in prefixes:
            length = len(prefix)
            letter = next(letters[length]) if alternatives[length] > 1 else ""
            yield DrawnMove(f"{1 + (length - 1) * per_move}{letter}", length - 1, *prefix[-1], effects[prefix])

    def _effects_in(self, pair: DrawnPair) -> dict[Branch, Effect]:
        """Return the effect of every move of a pair. The key of a move is its sequence up to and including the move."""
        effects: dict[Branch, Effect] = {}
        for branch in pair.sequences:
            in_turn = self._effects.of(pair.facts, branch, solo=pair.kind == "solo", whole=pair.kind == "position")
            for length, effect in enumerate(in_turn, start=1):
                effects.setdefault(branch[:length], effect)
        return effects


def _tree(sequences: Iterable[Branch]) -> list[Branch]:
    """Return all different prefixes of the sequences. They are the nodes of a tree, in depth-first order."""
    places: dict[Branch, tuple[int, ...]] = {}
    for sequence in sequences:
        place: tuple[int, ...] = ()
        for length in range(1, len(sequence) + 1):
            place = places.setdefault(sequence[:length], (*place, len(places)))
    return sorted(places, key=places.__getitem__)


def pairs_text(game: Game, pairs: Sequence[DrawnPair], width: int = 80, *, matrix: bool = False) -> str:
    """Return drawings of the pairs as text, one below the other, with a legend at the end."""
    scenes = list(map(Scenes(game, matrix=matrix).scene, pairs))
    blocks = ["\n".join(_scene_lines(scene, width)) for scene in scenes]
    return "\n\n".join(filter(None, [*blocks, "\n".join(_key(scenes, width))]))


def _scene_lines(scene: Scene, width: int) -> Iterator[str]:
    """Yield the lines of a scene: the title, the drawings, and the facts that are on no board.

    The drawings are the board before the moves, the board with the numbers of the moves, and the list of moves.
    """
    yield scene.pair.title
    drawings = [_drawing(scene.laid.boards, scene.texts, POINT, width)]
    numbers = _numbers(scene.steps)
    drawings += [_drawing(scene.laid.boards, numbers, UNTOUCHED, width)] if numbers else []
    drawings.append(list(_move_lines(scene)))
    yield from _in_rows([drawing for drawing in drawings if drawing], width)
    yield from wrapped(scene.laid.others, width, " ")


def _numbers(steps: Sequence[DrawnMove]) -> dict[Place, str]:
    """Return the text of each place: the numbers of the moves that end there, or a cross if a piece is taken."""
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
    """Join the numbers that fit into ROOM characters, at least one. Add the sign MORE if some are left out."""
    shown = next(num for num in range(len(numbers), 0, -1) if num == 1 or len(",".join(numbers[:num])) <= ROOM)
    return ",".join(numbers[:shown]) + (MORE if shown < len(numbers) else "")


def _move_lines(scene: Scene) -> Iterator[str]:
    """Yield a line for each move with its number. The moves of a tree have lines as branches."""
    steps = scene.steps
    widest = max((len(step.number) for step in steps), default=0)
    for place, step in enumerate(steps):
        before = "".join(_branch(steps, place, depth) for depth in range(1, step.depth + 1)) if scene.is_tree else ""
        yield f"{before}{step.number if scene.is_tree else step.number.rjust(widest)}  {step.role} {step.move}"


def _branch(steps: Sequence[DrawnMove], place: int, depth: int) -> str:
    """Return the two characters at this depth in the line of a move.

    They are a branch to this move, a vertical line to a later move, or spaces.
    """
    later = next((step.depth for step in steps[place + 1 :] if step.depth <= depth), 0)
    if steps[place].depth == depth:
        return "├ " if later == depth else "└ "
    return "│ " if later == depth else "  "


def _key(scenes: Sequence[Scene], width: int) -> Iterator[str]:
    """Yield the lines of the legend: the meaning of the short texts, and the names of points."""
    boards = {board.function: board for scene in scenes for board in scene.laid.boards}
    shown = {text for scene in scenes for text in scene.texts.values()}
    every = [(form, content) for board in boards.values() for content, form in board.symbols.items()]
    forms = {form: content for form, content in every if content and form != content} | {
        ANYTHING: "anything",
        POINT: "blank",
    }
    words = [f"{form} = {forms[form]}" for form in sorted(forms.keys() & shown)]
    if any(text.endswith(MORE) for scene in scenes for text in _numbers(scene.steps).values()):
        words.append(f"1{MORE} = 1 and others")
    yield from textwrap.wrap(", ".join(words), width)
    for board in boards.values():
        if board.kind == "points":
            yield ""
            yield from points_text(board)


# ---- boards as lines of text ------------------------------------------------------------------------------------


def _drawing(boards: Sequence[Board], texts: Mapping[Place, str], nothing: str, width: int) -> list[str]:
    """Return the lines of boards with these texts in their places. Boards that fit into the width are side by side."""
    drawings = []
    for board in boards:
        inside = {at: texts.get(Place(board.function, at), nothing) for at in board.spots}
        if board.kind == "squares":
            drawings.append(_squares(board, inside))
        else:
            drawings.append(points_text(board, inside) if board.kind == "points" else list(_rows(inside, width)))
    return list(_in_rows(drawings, width))


def _squares(board: Board, texts: Mapping[Arguments, str]) -> list[str]:
    size = max(map(len, (*(value for order in board.order for value in order), *texts.values())))
    contents = [(board.spots[at], 0, text) for at, text in texts.items()]
    around = [(label.spot, -max(0, len(label.text) - size) - label.is_beside, label.text) for label in board.labels]
    return in_the_plane(contents + around, size + 1, 1)


def _rows(texts: Mapping[Arguments, str], width: int) -> Iterator[str]:
    """Yield lines with the texts of points in rows, and below each text the name of its point."""
    columns = [[text, at[0]] for at, text in texts.items()]
    size = max(len(text) for column in columns for text in column)
    fitting = max(1, (width + 2) // (size + 2))
    for start in range(0, len(columns), fitting):
        yield from beside([[text.ljust(size) for text in column] for column in columns[start : start + fitting]], 2)


def _in_rows(drawings: Sequence[list[str]], width: int) -> Iterator[str]:
    """Yield the lines of drawings in rows; each row has as many drawings side by side as fit into the width."""
    row: list[list[str]] = []
    for drawing in drawings:
        if row and max(map(len, beside([*row, drawing], GAP))) > width:
            yield from beside(row, GAP)
            row = []
        row.append(drawing)
    yield from beside(row, GAP)


# ---- learned pairs ----------------------------------------------------------------------------------------------


class LearnedPair(NamedTuple):
    """A learned pair as text.

    role      the role that the pair advises
    context   the facts of its context
    branches  its sequences, each as (kind, moves)
    weight    its weight in [0, 1]

    The other attributes are the counts of its advice, see `Record`.
    """

    role: str
    context: frozenset[str]
    branches: tuple[tuple[str, Branch], ...]
    weight: float
    comments: float
    agreements: float
    tries: float
    successes: float

    def drawn(self, label: str) -> Iterator[DrawnPair]:
        """Yield a pair to draw with its duets, and another one with its solos."""
        for name in KIND_NAMES:
            moves = tuple(branch for kind, branch in self.branches if kind == name)
            if moves:
                yield DrawnPair(label, self.weight, self.context, moves, name)

    def as_json(self) -> dict[str, Any]:
        """Return the pair as data that can be written as JSON, with sorted facts."""
        branches = [{"kind": kind, "moves": [list(move) for move in moves]} for kind, moves in self.branches]
        return {**self._asdict(), "context": sorted(self.context), "branches": branches}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LearnedPair:
        """Return the pair from the data that `as_json` returned."""
        branches = tuple(
            (part["kind"], tuple((role, move) for role, move in part["moves"])) for part in data["branches"]
        )
        return cls(**{**data, "context": frozenset(data["context"]), "branches": branches})


def learned(pairs: ContextPairs, pair: int) -> LearnedPair:
    """Return the pair with this index as text."""
    patterns, record = pairs.patterns, pairs.record
    numbers = range(int(pairs.starts[pair]), int(pairs.starts[pair + 1]))
    return LearnedPair(
        patterns.game.roles[pairs.roles[pair]],
        patterns.facts(pairs.contexts[pair]),
        tuple((KIND_NAMES[pairs.kinds[i]], _moves_of(pairs, i)) for i in numbers),
        float(pairs.weights[pair]),
        *(float(column[pair]) for column in (record.comments, record.agreements, record.tries, record.successes)),
    )


def _moves_of(pairs: ContextPairs, number: int) -> Branch:
    moves = (pairs.patterns.move_text(move) for move in pairs.moves[number].tolist() if move != NO_MOVE)
    return tuple((pairs.patterns.game.roles[role], move) for role, move in moves)


def best(pairs: ContextPairs, num: int, *, role: str | None = None, min_weight: float = 0.0) -> list[LearnedPair]:
    """Return at most `num` pairs with a weight of at least `min_weight`, those with the highest weight first.

    Among equal weights, pairs with more comments come first.

    role: only pairs that advise this role, in any case of letters; None: all pairs
    """
    order = np.lexsort((-pairs.record.comments, -pairs.weights))
    chosen = pairs.weights[order] >= min_weight
    if role is not None:
        roles = [name.lower() for name in pairs.patterns.game.roles]
        chosen &= pairs.roles[order] == (roles.index(role.lower()) if role.lower() in roles else -1)
    return [learned(pairs, pair) for pair in order[chosen][:num].tolist()]
