"""The interface `Player` for batches of matches, its events, and `PositionPlayer` for one position at a time.

A player plays any number of matches at once, one match in each lane of a batch. The match loop calls `begin` and `end`
when matches begin and end, and `choose` for moves. A match against the clock also calls `prepare` before it begins.
Moves are indices into the role's legal moves (in action order). The simplest way to write a player is a subclass of
`PositionPlayer`: it gets one position and returns a move as text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..errors import IllegalMoveError

if TYPE_CHECKING:
    from ..game.game import Game, Position
    from .position_graph import PositionGraph

TERMINAL, STUCK, CAP = 0, 1, 2  # reasons for the end of a match
END_NAMES = ("terminal", "stuck", "cap")


@dataclass(frozen=True, slots=True)
class MatchLog:
    """Positions and moves of the running matches, by lane.

    At ply p, the match in lane i has gone through the rows `rows[i, : p + 1]`, with the joint moves `choices[i, :p]`.

    rows     int32[lanes, any], rows of the position graph
    choices  int32[lanes, any, roles], indices into the legal moves of each role
    """

    rows: NDArray[np.int32]
    choices: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Turn:
    """Request for moves of one role in some lanes.

    The rows are listed, but not always expanded (see position_graph.py). The arrays are valid only during the call. A
    role gets a request in each position in which it acts or has several moves. `log` holds the moves played before; it
    is None for positions outside a match. `deadline` is the latest time for the answer, in seconds of `time.monotonic`;
    None for no limit.
    """

    graph: PositionGraph
    role: int
    lanes: NDArray[np.int64]  # [n], ascending
    rows: NDArray[np.int32]  # [n]
    keys: NDArray[np.uint64]  # [n], keys of the random streams (seed, run, stage, match, role)
    plies: NDArray[np.int32]  # [n], counters for the random streams
    log: MatchLog | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """Event: matches begin in these lanes.

    `startclock` is the time until the first move, in seconds; None if there is no clock, or if it is not known.
    """

    graph: PositionGraph
    lanes: NDArray[np.int64]  # [n], ascending
    matches: NDArray[np.int64]  # [n], number of the match within its lane
    startclock: float | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """Event: matches ended in these lanes. Match i went through `rows[i, : plies[i] + 1]`.

    A goal is -1 where the rules give no goal or several goals. All goals of a match are -1 if its last position is not
    terminal. The receiver may keep and change the arrays.
    """

    graph: PositionGraph
    lanes: NDArray[np.int64]  # [n], ascending
    matches: NDArray[np.int64]  # [n], number of the match within its lane
    plies: NDArray[np.int32]  # [n]
    rows: NDArray[np.int32]  # [n, longest + 1]
    choices: NDArray[np.int32]  # [n, longest, roles], indices into the legal moves
    goals: NDArray[np.int16]  # [n, roles]
    ends: NDArray[np.uint8]  # [n], TERMINAL, STUCK or CAP


class Player(Protocol):
    """Interface of players. Subclasses must define `choose`. A player that learns does so in `end`.

    spec  the text from which the catalogue made it; empty for others
    """

    spec: str = ""

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """Return for each lane of the turn the index of a move among the role's legal moves, int32[n]."""
        ...

    def ponder(self, turn: Turn) -> bool:
        """Think until the deadline of the turn, without an answer: in the startclock, or while other roles think.

        The turn is the present position of one match. The player may have chosen its move in it already. Return False
        if there is nothing to think about; most players never think without being asked.
        """
        return False

    def prepare(self, game: Game, role: int) -> None:
        """Compile and load everything that the first move in this game needs.

        Matches against the clock call this method in the startclock, before `begin`. The match loop of the lab does not
        call it, so it tells a player that there is a clock. It must not change what the player knows about the game.
        """
        return None

    def begin(self, role: int, started: Started) -> None:
        """Handle the begin of matches in which this player has the role `role`."""
        return None

    def end(self, role: int, finished: Finished) -> None:
        """Handle the end of matches in which this player had the role `role`.

        The match loop calls `end` before it calls `begin` for the next matches in the same lanes.
        """
        return None


@runtime_checkable
class Memoryless(Protocol):
    """Player with known move probabilities, such as `Perfect`, `Reasonable`, `Opponent` or `Uniform` (random)."""

    def distribution(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """Return the probabilities of the role's moves, float64[total], one row after the other."""
        ...


class PositionPlayer(Player):
    """Player with a method `move` that chooses for one position at a time.

    Such a player is easy to write, but slower than a player that chooses for a batch of positions.
    """

    @property
    def name(self) -> str:
        """Its name in error messages."""
        return type(self).__name__

    @abstractmethod
    def move(self, position: Position, role: str) -> str:
        """Return one of `position.legal[role]`."""

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. Raise IllegalMoveError if `move` returns an illegal move."""
        return np.array([self._choice(turn, row) for row in turn.rows.tolist()], np.int32)

    def _choice(self, turn: Turn, row: int) -> int:
        from ..game.game import Position

        game = turn.graph.game
        position = Position(game, turn.graph.states[row])
        role = game.roles[turn.role]
        legal = tuple(position.legal[role])  # `move` may reorder the list
        move = self.move(position, role)
        if move not in legal:
            raise IllegalMoveError(
                f"expected a legal move of {role} from {self.name}, got {move}; legal moves: {', '.join(legal)}"
            )
        return legal.index(move)


class FunctionPlayer(PositionPlayer):
    """Player that calls a function of a position, or of a position and the name of the role, for each move."""

    def __init__(self, function: Callable[..., str]) -> None:
        self._function = function
        self._role = _role_parameter(function)

    @property
    def name(self) -> str:
        """See `PositionPlayer.name`."""
        return getattr(self._function, "__name__", type(self._function).__name__)

    def move(self, position: Position, role: str) -> str:
        """See `PositionPlayer.move`."""
        if self._role == "keyword":
            return self._function(position, role=role)
        return self._function(position, role) if self._role else self._function(position)


def _role_parameter(function: Callable[..., object]) -> Literal["", "second", "keyword"]:
    """Return how a function takes the role: as its second argument, by its name only, or not at all.

    The second argument is one without default, one named `role`, or one of any number.
    """
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):
        return ""
    if "role" in parameters and parameters["role"].kind == Parameter.KEYWORD_ONLY:
        return "keyword"
    kinds = [each.kind for each in parameters.values()]
    positional = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    needed = sum(each.kind in positional and each.default is Parameter.empty for each in parameters.values())
    is_second = needed > 1 or Parameter.VAR_POSITIONAL in kinds or list(parameters)[1:2] == ["role"]
    return "second" if is_second else ""
