"""What a search thinks about a position, drawn: its moves with visits and values on the board, and the best line.

A move is drawn where it acts: at the place that it fills, with an arrow from the place that it empties. Both follow
from the facts before and after the move. A move that changes no place of a board stands in the list of moves only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import counted
from .board import FAINT, INK, Boards, Laid, Place, Spot
from .position import (
    LETTER,
    LINE,
    MARGIN,
    Mark,
    drawn_text,
    escaped,
    save_drawing,
    state_svg,
    state_text,
    svg,
    text_boards,
)

if TYPE_CHECKING:
    from ..game.game import Position

WIN = 100
MOST_PLIES = 6  # of the best line that are drawn as small boards
SMALL = 0.5  # size of these boards
MOST_LABELS = 8  # moves with a badge or an arrow on the board
MOST_BADGES = 12  # moves that all have badges, if they have no arrows
MOST_HEATED = 100  # moves whose place is shaded and has a number
_FRAME = re.compile(r'width="(\d+)" height="(\d+)"')


@dataclass(frozen=True, slots=True)
class MoveThought:
    """What a search thinks about a move.

    Attributes:
        index: the number of the move among the legal moves of the role.
        move: the move.
        visits: number of simulations that made the move.
        mean: mean goal of these simulations for the role, 0 to 100, and of the virtual ones by which a learned value
            counts, if there is one; None without simulations. With three and more roles, an end at which nobody gets
            anything counts 5.
        low: the goal to which the move leads at least, as far as that is proved.
        high: the goal to which it leads at most.
        plies: number of plies to the end of the match if the value is proved, else None.
        is_closed: whether the search needs no more simulations of the move.
        share: probability of the move where the role draws it from a mixed strategy, else None.
    """

    index: int
    move: str
    visits: int
    mean: float | None
    low: int
    high: int
    plies: int | None
    is_closed: bool
    share: float | None = None

    @property
    def proved(self) -> bool:
        """Whether the value of the move is proved."""
        return self.low == self.high

    @property
    def value(self) -> str:
        """The proved value with `=`, or the mean goal within what is proved."""
        if self.proved:
            return f"={self.low}"
        return "-" if self.mean is None else f"{min(max(self.mean, self.low), self.high):.0f}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        fields = {**asdict(self), "proved": self.proved}
        if self.share is None:
            del fields["share"]
        return fields


@dataclass(frozen=True)
class Thought:
    """What a search thinks about a position. `print` draws it as text, notebooks as a picture.

    Attributes:
        position: the position.
        moves: role -> its moves, for each role with several: the best move, then the others by visits; or all by
            their shares.
        line: the best joint moves from the position on.
        simulations: number of simulations.
        seconds: wall-clock time of the search.
        nodes: number of positions in memory.
        is_proved: whether the value of the position is proved.
        solution: the goal at the end of the line if this is a solution of a puzzle, else None.
    """

    position: Position
    moves: Mapping[str, Sequence[MoveThought]]
    line: Sequence[Sequence[str]]
    simulations: int
    seconds: float
    nodes: int
    is_proved: bool
    solution: int | None = None

    @cached_property
    def positions(self) -> list[Position]:
        """The positions of the best line, this position first."""
        positions = [self.position]
        for joint in self.line:
            positions.append(positions[-1].play(list(joint)))
        return positions

    @property
    def effort(self) -> str:
        """What the search has cost, as text."""
        rate = f" ({self.simulations / self.seconds:,.0f} a second)" if self.seconds else ""
        proof = "; proved" if self.is_proved else ""
        if self.solution is not None:
            quality = "proved to be the best" if self.is_proved else "not proved to be the best"
            proof = f"; a solution for {self.solution} in {counted(len(self.line), 'move', 'moves')}, {quality}"
        return (
            f"{self.simulations:,} simulations in {self.seconds:.2f} s{rate}, {self.nodes:,} positions in memory{proof}"
        )

    def warmth(self, moves: Sequence[MoveThought]) -> list[float]:
        """Return how strongly the place of each of a role's moves is shaded, 0 to 1: by its share of the visits."""
        most = max((move.visits for move in moves), default=0) or 1
        return [1.0 if number == 0 else move.visits / most for number, move in enumerate(moves)]

    def badge(self, move: MoveThought, total: int) -> tuple[str, ...]:
        """Return what stands on the board about a move: its value, and its share of all visits."""
        return move.value, f"{move.visits / (total or 1):.0%}"

    @property
    def line_text(self) -> str:
        """The best line, without `noop` where another role moves."""
        return " ".join(" ".join(telling(joint)) for joint in self.line)

    def __str__(self) -> str:
        parts = [thought_text(self), "", self.effort, *("", *_listed(self))]
        return "\n".join([*parts, *(["", f"best line: {self.line_text}"] if self.line else [])])

    def save(self, path: str | Path) -> None:
        """Draw the thought into a file.

        Args:
            path: a file that ends in .svg, for a picture, or in .txt, for text.

        Raises:
            GameloreError: the file ends otherwise.
        """
        save_drawing(Path(path), lambda: str(self), lambda: thought_svg(self))

    def as_json(self) -> dict[str, Any]:
        """Return what the search found as JSON values."""
        moves = {role: [move.as_json() for move in thoughts] for role, thoughts in self.moves.items()}
        return {
            "simulations": self.simulations,
            "seconds": self.seconds,
            "nodes": self.nodes,
            "proved": self.is_proved,
            "solution": self.solution,
            "moves": moves,
            "line": [list(joint) for joint in self.line],
            "after": self.positions[-1].facts,
        }

    def _repr_svg_(self) -> str:
        """Return the picture: the position with the best moves, then small boards of the best line."""
        return thought_svg(self)

    def _repr_html_(self) -> str:
        """Return the picture with a table of all moves."""
        rows = [
            f"<tr><td>{escaped(role)}</td><td>{escaped(move.move)}</td><td>{move.value}</td><td>{move.visits:,}</td></tr>"
            for role, moves in self.moves.items()
            for move in moves
        ]
        head = "<tr><th>role</th><th>move</th><th>value</th><th>visits</th></tr>"
        return f"<div>{thought_svg(self)}<table>{head}{''.join(rows)}</table></div>"


def telling(joint: Sequence[str]) -> Sequence[str]:
    """Return the moves of a joint move that say something."""
    return [move for move in joint if move.lower() != "noop"] or joint


class Way(NamedTuple):
    """Where a move acts: the place that it fills, and the place that it empties; None if it empties none."""

    target: Place
    source: Place | None


def way_of(boards: Boards, before: Laid, after: Laid, move: str) -> Way | None:
    """Return where a move acts that leads from one state to another; None if this does not show on the boards.

    If several places are filled or emptied, those count that the move names. If it names a changed place, no other
    board counts: a counter or a turn beside the board changes with any move.
    """
    named = boards.named_in(move)
    changed = [
        place
        for place in dict.fromkeys([*before.contents, *after.contents])
        if before.contents.get(place) != after.contents.get(place)
    ]
    acted_on = {place.function for place in changed if place in named}
    changed = [place for place in changed if place.function in acted_on or not acted_on]
    filled = [place for place in changed if not boards.is_empty(after, place)]
    emptied = [place for place in changed if boards.is_empty(after, place)]
    new = [place for place in filled if boards.is_empty(before, place)]
    target = _one_of(new or filled, named[-1:]) or _one_of(filled, named)
    if target is None:
        return None
    return Way(target, _one_of(emptied, named))


def _one_of(places: Sequence[Place], named: Sequence[Place]) -> Place | None:
    """Return the only place, or else the only one of them that is named."""
    chosen = places if len(places) == 1 else [place for place in places if place in named]
    return chosen[0] if len(chosen) == 1 else None


def thought_svg(thought: Thought) -> str:
    """Draw a position with the best moves of a search on its boards, and the best line as a row of small boards."""
    boards, roles = Boards.of(thought.position.game), thought.position.game.roles
    signs = thought_signs(boards, thought)
    main = state_svg(boards, thought.position.facts, roles, signs.marks, heat=signs.heat)
    parts, (width, height) = [main], _size(main)
    if boards.boards and thought.line:
        row, (wide, high) = _line_of_boards(boards, thought, height)
        parts, width, height = [*parts, *row], max(width, wide), height + high
    words = [thought.effort, *(f"best line: {line}" for line in [thought.line_text] if line), *_listed(thought)]
    for number, text in enumerate(words):
        parts.append(drawn_text((MARGIN, height + LINE * (number + 0.5)), text, 12, INK, "start"))
    letters = max(map(len, words)) * LETTER + 2 * MARGIN
    return svg((max(width, letters), height + LINE * len(words) + MARGIN), parts)


def _line_of_boards(boards: Boards, thought: Thought, top: float) -> tuple[list[str], Spot]:
    """Return the best line as a row of small boards, each below its move, and the (width, height) of the row."""
    parts, x, height = list[str](), float(MARGIN), 0.0
    for ply, joint in enumerate(thought.line[:MOST_PLIES]):
        before, after = thought.positions[ply : ply + 2]
        marks = list(move_marks(boards, before, after, joint))
        picture, caption = state_svg(boards, after.facts, after.game.roles, marks), " ".join(telling(joint))
        wide, high = (SMALL * side for side in _size(picture))
        parts.append(drawn_text((x, top + LINE / 2), caption, 10, FAINT, "start"))
        parts.append(picture.replace("<svg ", f'<svg x="{x:g}" y="{top + LINE:g}" ', 1).replace(*_scaled(picture), 1))
        x, height = x + max(wide, len(caption) * LETTER) + MARGIN, max(height, high)
    return parts, (x, LINE + height + MARGIN)


def _size(picture: str) -> Spot:
    """Return the width and the height of an SVG picture in pixels."""
    wide, high = _FRAME.search(picture).groups()  # type: ignore[union-attr]
    return float(wide), float(high)


def _scaled(picture: str) -> tuple[str, str]:
    """Return the frame of a picture, and the frame of the same picture in SMALL."""
    wide, high = _size(picture)
    return f'width="{wide:.0f}" height="{high:.0f}"', f'width="{SMALL * wide:g}" height="{SMALL * high:g}"'


def _listed(thought: Thought) -> Iterator[str]:
    """Yield a line with the best moves of each role."""
    for role, moves in thought.moves.items():
        told = ", ".join(f"{move.move} {move.value} ({move.visits:,})" for move in moves[:MOST_LABELS])
        more = f", and {len(moves) - MOST_LABELS} more" if len(moves) > MOST_LABELS else ""
        yield f"{role}: {told}{more}"


def thought_text(thought: Thought, *, width: int = 100) -> str:
    """Draw a position as text, with the values of the best moves in the empty places that they fill."""
    boards = text_boards(thought.position.game)
    marks = {
        way.target: move.value
        for role, moves in thought.moves.items()
        for move, way in reversed(list(_ways(boards, thought.position, role, moves[:MOST_LABELS])))
        if boards.is_empty(boards.lay(thought.position.facts), way.target)
    }
    return "\n".join(state_text(boards, thought.position.facts, width, marks).lines(width))


def _ways(
    boards: Boards, position: Position, role: str, moves: Sequence[MoveThought]
) -> Iterator[tuple[MoveThought, Way]]:
    """Yield those moves of a role that show on the boards, with the places where they act."""
    if not boards.boards:
        return
    before, afterwards = boards.lay(position.facts), facts_after(position, role, [move.index for move in moves])
    for move, facts in zip(moves, afterwards, strict=True):
        way = way_of(boards, before, boards.lay(facts), move.move)
        if way is not None:
            yield move, way


def facts_after(position: Position, role: str, choices: Sequence[int]) -> Iterator[frozenset[str]]:
    """Yield the facts after some legal moves of a role, given as indices; other roles make their first moves."""
    game, state = position.game, position.state[None]
    joint = game.legal(state).joint_moves(game.roles.index(role), game.num_roles)[list(choices)]
    yield from map(game.facts, game.next(state.repeat(len(joint), axis=0), joint))


class Signs(NamedTuple):
    """What is drawn on a board about moves: marks, and how strongly places are shaded, from 0 to 1."""

    marks: Sequence[Mark]
    heat: Mapping[Place, float]


def thought_signs(boards: Boards, thought: Thought) -> Signs:
    """Return the marks of the moves, the best one last, so that it covers the others, and the heat of their places.

    The best moves of a role have badges, and arrows. Other moves to empty places have only numbers.
    """
    before, marks, heat = boards.lay(thought.position.facts), list[Mark](), dict[Place, float]()
    for role, moves in thought.moves.items():
        told = [move for move in moves if move.visits or move.mean is not None or move.proved][:MOST_HEATED]
        warmth = dict(zip((move.index for move in moves), thought.warmth(moves), strict=True))
        own = list[Mark]()
        for move, way in _ways(boards, thought.position, role, told):
            is_beside = not boards.is_empty(before, way.target)
            mark = _marked(thought, moves, move, way, is_beside, warmth[move.index])
            if way.target in heat:
                mark = mark._replace(texts=())  # a better move leads there
            if move in told[:MOST_LABELS] or (mark.texts and way.source is None and not is_beside):
                own.append(mark)
            heat[way.target] = max(heat.get(way.target, 0.0), warmth[move.index])
        marks += reversed(own)
    return Signs(marks, heat)


def _marked(
    thought: Thought, moves: Sequence[MoveThought], move: MoveThought, way: Way, is_beside: bool, warmth: float
) -> Mark:
    """Return the mark of one of a role's moves. `is_beside` leaves room for the piece that lies there."""
    is_best = move is moves[0] or _is_as_good(move, moves[0])
    is_plain = not (is_best or move in moves[:MOST_LABELS] or len(moves) <= MOST_BADGES)
    texts = thought.badge(move, sum(other.visits for other in moves))[: 1 if is_beside or is_plain else 2]
    strength = 1.0 if is_plain else 0.6 + 0.4 * warmth
    return Mark(way.target, way.source, texts, strength, is_best, is_beside, is_plain)


def _is_as_good(move: MoveThought, best: MoveThought) -> bool:
    """Return whether the values of two moves are proved, equal, and reached in the same number of plies."""
    return move.proved and best.proved and (move.low, move.plies) == (best.low, best.plies)


def move_marks(boards: Boards, before: Position, after: Position, joint: Sequence[str]) -> Iterator[Mark]:
    """Yield the marks of a joint move from one position to another."""
    for move in telling(joint):
        way = way_of(boards, boards.lay(before.facts), boards.lay(after.facts), move)
        if way is not None:
            yield Mark(way.target, way.source, (), 1.0, is_best=True)
