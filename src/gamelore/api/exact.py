"""Exact values of every position of a game: `solve` and its result `Solved`."""

from __future__ import annotations

from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import GameloreError
from ..game.game import Game, Position
from ..gdl.limits import GIB
from ..rulesheets import loaded
from .progress import Progress, displayed

if TYPE_CHECKING:
    from ..solver.perfect import BestLine, SolvedMoves
    from ..solver.solution import Solution


class Solved:
    """A solved game: the values of all positions under best play, of their moves, and a line of best play.

    Attributes:
        game: the game.
        solution: the values as arrays, and the numbers of positions and moves.
        values: role -> its goal under best play from the first position.
        plies: number of plies to the end under best play; None if no role can force an end that is good for it.
        left_out: facts that only count steps. If there are any, values are those of the game without them.
    """

    def __init__(self, game: Game, solution: Solution) -> None:
        self.game = game
        self.solution = solution
        self.values = dict(zip(game.roles, solution.values, strict=True))
        self.plies = _plies(solution.distance)
        self.left_out = solution.left_out

    @cached_property
    def _moves(self) -> SolvedMoves:
        from ..players.position_graph import PositionGraph
        from ..solver.perfect import SolvedMoves

        return SolvedMoves(PositionGraph(self.game), self.solution)

    @property
    def num_positions(self) -> int:
        """Number of reachable positions; those that differ only by facts that count steps are one."""
        return self.solution.num_positions

    @cached_property
    def best_line(self) -> BestLine:
        """One line of best play from the first position: `moves`, in the order of roles, and why it ends."""
        from ..solver.perfect import best_line

        return best_line(self._moves)

    def value(self, position: Position) -> dict[str, int]:
        """Return role -> its goal if all play best from a position on.

        Raises:
            GameloreError: the position is not reachable, or is one of another game.
        """
        (goals,), _ = self.solution.look_up(self.game.state_of(position)[None])
        return dict(zip(self.game.roles, goals.tolist(), strict=True))

    def moves(self, position: Position | None = None) -> list[dict[str, Any]]:
        """Return the moves of the role that chooses in a position.

        If no role has several moves, the moves of all roles are returned; none if the match is over.

        Args:
            position: a reachable position; the first one if it is None.

        Returns:
            A dictionary for each move: `role`, `move`; `goal_ROLE` for the goal of each role under best play after it;
            `plies` to the end, None if no role can force an end that is good for it; and `best`: whether it is one of
            the fastest ways to a win, or of the slowest to a loss.

        Raises:
            GameloreError: the position is not reachable, or is one of another game.
        """
        from ..solver.perfect import moves_in

        graph = self._moves.graph
        row = graph.start
        if position is not None:
            states = self.game.state_of(position)[None]
            self.solution.look_up(states)  # refuses what is not reachable
            row = int(graph.intern(states)[0])
        return [
            {
                "role": move.role,
                "move": move.move,
                **{f"goal_{role}": goal for role, goal in zip(self.game.roles, move.goals, strict=True)},
                "plies": _plies(move.distance),
                "best": move.best,
            }
            for move in moves_in(self._moves, row)
        ]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The moves in the first position, see `moves`."""
        return self.moves()

    def __repr__(self) -> str:
        values = ", ".join(f"{role} {value}" for role, value in self.values.items())
        plies = "" if self.plies is None else f" in {self.plies} plies"
        return f"<Solved {self.game.name}: {values}{plies}; {self.num_positions:,} positions>"


def solve(
    game: Game | str | Path, *, memory: float = 4.0, symmetry: bool = True, progress: Progress | bool | None = None
) -> Solved:
    """Solve a game: compute the value of every position.

    This works for zero-sum games of two roles that take turns, and for games of one role. The solution is written to a
    file, which later calls read.

    Args:
        game: a game, or what `load` takes.
        memory: limit in GiB.
        symmetry: whether symmetric positions are treated as one. This does not change the values.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        The values.

    Raises:
        GameloreError: the game has other roles, or its positions do not fit into the memory.
    """
    from ..solver.solution import solve as solution_of

    if not 0 < memory < inf:
        raise GameloreError(f"expected a memory above 0, got {memory:g}; give a number of GiB, for example memory=8")
    rules = loaded(game)
    with displayed(progress) as tell:
        return Solved(rules, solution_of(rules, memory=int(memory * GIB), symmetry=symmetry, progress=tell))


def _plies(distance: int) -> int | None:
    return None if distance < 0 else distance
