"""Solutions of small games: computed in slices while the clock runs, and the moves that they advise.

`Solving` computes a solution in a thread that works only while `run` is called, up to the end of a step, so that it
hardly takes time from the choice of a move. Steps are long where circuits are large, so such games are left out. It
gives up as soon as the game turns out to be too large, or not solvable: roles that choose at the same time, three
roles, or goals without a constant sum.

Perfect players lose no points, but not all of their moves are equally good against an opponent who errs. `advised`
gives the fastest move of a won position. In a drawn or lost position it gives the moves that keep the value, with a
measure of what an opponent who errs may give away.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..solver.solution import Solution, solve, stored
from ..solver.statespace import is_native

if TYPE_CHECKING:
    from ..game.game import Game

NUM_ROLES = 2
_MOST_GATES = 10_000
_CHANCE = "random"  # a role that draws its moves in GDL-II; best play does not value them


def may_be_solved(game: Game) -> bool:
    """Return whether a game has the form that the solver needs, as far as this shows without play."""
    is_small = game.circuit is not None and game.circuit.num_gates <= _MOST_GATES
    return is_small and game.num_roles == NUM_ROLES and is_native(game) and _CHANCE not in game.roles


class _GivenUp(Exception):
    """The solution is not wanted any more."""


class Solving:
    """Solution of a game that is computed in slices.

    solution  the solution; None before it is known, and if the game turned out to be too large or not solvable
    is_done   whether nothing is left to compute

    Args:
        game: game of the form that `may_be_solved` checks
        memory: limit on the memory in bytes. A solution that an earlier `gamelore solve` has stored is used in any case
    """

    def __init__(self, game: Game, memory: int) -> None:
        self.game = game
        self.solution: Solution | None = None
        self.is_done = False
        self._memory = memory
        self._until = 0.0  # end of the present slice
        self._changes = threading.Condition()  # of what follows
        self._rests = False
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._is_wanted = True

    def run(self, deadline: float | None = None) -> None:
        """Go on until the solution is known or given up, or until the deadline, in seconds of `time.monotonic`.

        At the deadline, the thread may be within a step, which it finishes.
        """
        if self.is_done:
            return
        with self._changes:
            self._until, self._rests = inf if deadline is None else deadline, self._failure is not None
            self._changes.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._solve, name="solver", daemon=True)
                self._thread.start()
            self._changes.wait_for(lambda: self._rests, None if deadline is None else max(0.0, deadline - monotonic()))
        if self._failure is not None:
            self.is_done = True
            raise self._failure

    def close(self) -> None:
        """Give up."""
        with self._changes:
            self._is_wanted = False
            self._changes.notify_all()

    def _solve(self) -> None:
        """Compute the solution, or give up. This is the thread."""
        try:
            self.solution = stored(self.game) or solve(
                self.game, memory=self._memory, cache=False, patience=0.0, progress=self._rest
            )
        except (GameloreError, MemoryError, _GivenUp):
            pass
        except BaseException as error:  # `run` raises it, the next call if this one is over
            self._failure = error
        finally:
            with self._changes:
                self.is_done, self._rests = self._failure is None, True
                self._changes.notify_all()

    def _rest(self, stage: str, done: int, of: int) -> None:
        """Wait for the next slice if the present one is over. Each slice has a step at least, however short it is."""
        with self._changes:
            if self._is_wanted and monotonic() >= self._until:
                self._rests = True
                self._changes.notify_all()
                self._changes.wait_for(lambda: not self._rests or not self._is_wanted)
        if not self._is_wanted:
            raise _GivenUp


@dataclass(frozen=True, slots=True)
class SolvedChoice:
    """Moves of a role that keep the value of a position, as indices into its legal moves.

    moves   int64[n]
    is_won  whether the role can force more than an endless match gives
    slips   float64[n], the mean goal that the role gets after a random reply to each move and best play from then on
    plies   int64[n], number of plies to the end if the value is forced, else ENDLESS
    """

    moves: NDArray[np.int64]
    is_won: bool
    slips: NDArray[np.float64]
    plies: NDArray[np.int64]


def advised(solution: Solution, game: Game, state: NDArray[np.uint64], role: int) -> SolvedChoice | None:
    """Return what a solution says about the moves of a role, which is the only one that has a choice in a state.

    Return None for a state that is not reachable from the first state of the game.
    """
    after = _successors(game, state[None], role)
    try:
        goals, distances = solution.look_up(after)
    except GameloreError:
        return None
    values, assumed = goals[:, role], (solution.total or 0) / 2
    best = values.max()
    kept = np.flatnonzero(values == best)
    slips = np.array([_mean_reply(solution, game, after[move], role, best) for move in kept])
    return SolvedChoice(kept, bool(best > assumed), slips, distances[kept].astype(np.int64))


def _mean_reply(solution: Solution, game: Game, state: NDArray[np.uint64], role: int, value: int) -> float:
    """Return the mean value of the successors of a state for a role; `value` if the other role does not choose."""
    legal = game.legal(state[None])
    if legal.terminal[0] or legal.by_role(game.num_roles)[1][0, 1 - role] == 1:
        return float(value)
    return float(solution.look_up(_successors(game, state[None], 1 - role))[0][:, role].mean())


def _successors(game: Game, state: NDArray[np.uint64], role: int) -> NDArray[np.uint64]:
    """Return the states after all moves of a role in a state uint64[1, words]; other roles make their first moves."""
    joint = game.legal(state).joint_moves(role, game.num_roles)
    return game.next(np.repeat(state, len(joint), axis=0), joint)
