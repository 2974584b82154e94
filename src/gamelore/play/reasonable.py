"""The opponents of Lock & Epstein (2004) that are weaker than the perfect one: reasonable, and mixtures of both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .decisive import MoveClasses
from .perfect import Best, Graded, Grades, Perfect, SolvedMoves
from .player import Player, Started, Turn
from .streams import EXPLORE, uniform

if TYPE_CHECKING:
    from .graph import Graph

Own = Literal["ignore", "avoid"]
EXPERT, NOVICE = 10.0, 70.0  # per cent of reasonable moves
_PERCENT = 100.0

# how much a move is wanted, by class WIN, LOSS, GIVES, NEUTRAL
_WANTS = {"ignore": np.array([2, 1, 0, 1], np.int8), "avoid": np.array([2, 0, 0, 1], np.int8)}


class Reasonable(Graded):
    """Wins at once where it can, avoids moves after which another can make it lose at once, else draws a move.

    own: whether it also avoids a move that loses by itself. "ignore" is the default reading of the paper, by which it
    is a random player in lose tic-tac-toe; "avoid" makes it egreedy that never explores (readings.md, L&E 5).
    """

    def __init__(self, own: Own = "ignore") -> None:
        if own not in get_args(Own):
            raise GameloreError(f"expected own {' | '.join(get_args(Own))}, got {own!r}; choose one of these")
        self.own = own

    def grades(self, graph: Graph, rows: NDArray[np.int32], role: int) -> Grades:
        """See `Graded.grades`."""
        classes = graph.memo(MoveClasses)
        inside = rows < len(classes.known)
        unknown = ~inside
        unknown[inside] = ~classes.known[rows[inside], role]
        if unknown.any():
            classes.classify(graph.distinct(rows[unknown]), role)
        return classes.classes, _WANTS[self.own]


class _ReasonableBySolution(Reasonable):
    """The same player; it knows the classes from the solution and does not make the graph grow by the replies."""

    def grades(self, graph: Graph, rows: NDArray[np.int32], role: int) -> Grades:
        """See `Graded.grades`."""
        solved = graph.memo(SolvedMoves)
        solved.look(rows)
        return solved.classes, _WANTS[self.own]


class XReasonable(Player):
    """Makes a reasonable move in `x` per cent of its turns and a perfect one in the others: drawn anew for each move.

    The paper's expert has x = 10, its novice x = 70. own: see `Reasonable`; best: see `Perfect`. Raises GameloreError
    for an x that is no percentage, and as `Perfect` does when the first match begins.
    """

    def __init__(self, x: float = EXPERT, own: Own = "ignore", best: Best = "fastest") -> None:
        if not 0.0 <= x <= _PERCENT:
            raise GameloreError(f"expected x from 0 to 100, got {x}; it is the percentage of reasonable moves")
        self.x = x
        self.perfect = Perfect(best)
        self.reasonable = _ReasonableBySolution(own)

    def begin(self, role: int, started: Started) -> None:
        """See `Perfect.begin`."""
        self.perfect.begin(role, started)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        is_reasonable = _PERCENT * uniform(turn.keys, turn.plies, EXPLORE) < self.x
        choices = np.empty(len(turn.rows), np.int32)
        for player, part in ((self.reasonable, is_reasonable), (self.perfect, ~is_reasonable)):
            choices[part] = player.choose(_some_lanes(turn, part))
        return choices

    def distribution(self, graph: Graph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """See `Graded.distribution`."""
        share = self.x / _PERCENT
        reasonable, perfect = (one.distribution(graph, rows, role) for one in (self.reasonable, self.perfect))
        return share * reasonable + (1.0 - share) * perfect


def _some_lanes(turn: Turn, part: NDArray[np.bool_]) -> Turn:
    return replace(turn, lanes=turn.lanes[part], rows=turn.rows[part], keys=turn.keys[part], plies=turn.plies[part])
