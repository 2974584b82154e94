"""What the player does in a startclock: teach itself a value of the game, and solve it if it is small.

A `Pupil` learns a linear value (teaching.py). A network (networks/self_play.py) needs more time, and is then better in
most games. So in a startclock of half a minute or more, a network follows, and a few matches between both decide, see
`_Contest`. In one of 12 s, with the network in half of it, it was no better than a linear value of the whole time.

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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from time import monotonic, process_time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..analysis.symmetry import course_of, step_counter
from ..errors import GameloreError
from ..networks.network import Network
from ..networks.self_play import SelfPlay
from ..players.random_streams import extend
from ..solver.solution import ENDLESS, Solution, solve, stored
from ..solver.statespace import is_native
from .rounds import SIDE_BY_SIDE, Openings, Rounds, in_equal_time, rehearsed, side_of
from .settings import GrowthSettings, TeachingSettings
from .teaching import Teacher
from .value import LinearValue

if TYPE_CHECKING:
    from ..game.game import Game

LEAST_STARTCLOCK = 30.0
"""Seconds of a startclock in which a network is taught."""
_LINEAR_SHARE, _LEARNED_SHARE, _CONTEST_SHARE = 0.2, 0.7, 0.1  # of a startclock: first part, end of learning, contest
_MOST_NETWORK_NODES = 200_000  # self-play in larger games is too slow to learn anything
_SELF_PLAY_KEY, _CONTEST_KEY = 3, 4  # extend the key; see teaching.py for the first ones
_PIECE = 0.05  # seconds of learning until the next look at the clock
_RANDOM_PLIES = 2  # at the beginning of the matches of the contest
_MOST_GATES = 10_000
_CHANCE = "random"  # a role that draws its moves in GDL-II; best play does not value them


def has_network(game: Game) -> bool:
    """Return whether a network can be taught. The circuit of a bounded game does not know all of its positions."""
    circuit = None if game.is_bounded else game.circuit
    return circuit is not None and circuit.num_facts > 0 and len(circuit.left) <= _MOST_NETWORK_NODES


class Pupil:
    """What a player learns in startclocks, see `champion.Schooling` and `champion.Prepared`.

    Its time is the CPU time that it has learned, or the time since a match began, whichever is longer: on a busy
    machine, there may be no time for a network.

    Args:
        game: game that can be taught
        key: key of the random numbers
        growth: parameters of the searches
        settings: parameters of the lessons of its teacher

    Attributes:
        teacher: teacher of the linear value
        linear_seconds: CPU seconds of this teacher
    """

    openings: Openings | None = None

    def __init__(self, game: Game, key: np.uint64, growth: GrowthSettings, settings: TeachingSettings) -> None:
        self.game, self._key = game, key
        self.teacher = Teacher(game, key, growth, settings)
        self.linear_seconds = 0.0
        self._startclock, self._spent, self._began = 0.0, 0.0, inf
        self._self_play: SelfPlay | None = None
        self._contest: _Contest | None = None
        self._network: Network | None = None  # that has won

    def plan(self, startclock: float) -> None:
        """Begin a startclock of so many CPU seconds."""
        self._startclock, self._spent, self._began, self._contest = startclock, 0.0, inf, None

    def begin(self, startclock: float | None) -> Pupil:
        """Begin the startclock of a match, in seconds of the clock; see `champion.Schooling`."""
        self.plan(startclock or 0.0)
        self._began = monotonic()
        return self

    def end(self) -> None:
        """Do nothing; see `champion.Prepared`."""

    @property
    def seconds(self) -> float:
        """CPU seconds of learning in this startclock."""
        return self._spent

    @property
    def value(self) -> LinearValue | None:
        """The value to play with."""
        linear = self.teacher.value
        return linear if self._network is None else _with_network(self.game, linear, self._network)

    @property
    def growth(self) -> GrowthSettings:
        """The parameters to play with."""
        return self.teacher.growth

    @property
    def assumption(self) -> int:
        """What is known of the goals of all roles together, see `tree.Tree`."""
        return self.teacher.assumption

    @property
    def simulations(self) -> int:
        """Number of walks of searches, and of positions of self-play, so far."""
        return self.teacher.simulations + (self._self_play.positions if self._self_play is not None else 0)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to learn in this startclock."""
        if self._contest is not None:
            return self._contest.is_done
        if self._self_play is None or not self._is_long:
            return self.teacher.is_done and not self._has_network
        return self._self_play.is_barren

    @property
    def is_deciding(self) -> bool:
        """Whether matches between the network and the linear value are under way."""
        return self._contest is not None and not self._contest.is_done

    @property
    def _has_network(self) -> bool:
        """Whether this startclock is long enough for a network, and not too far on to begin one."""
        return self._is_long and self._progress < _LEARNED_SHARE and has_network(self.game)

    @property
    def _is_long(self) -> bool:
        """Whether this startclock is long enough for a network. A shorter one teaches the linear value only."""
        return self._startclock >= LEAST_STARTCLOCK

    @property
    def _progress(self) -> float:
        """The share of the startclock that is over."""
        return max(self._spent, monotonic() - self._began) / self._startclock if self._startclock else 0.0

    def teach(self, deadline: float | None = None) -> None:
        """Go on with learning until it is done, or until the deadline, in seconds of `time.monotonic`."""
        while not self.is_done and (deadline is None or monotonic() < deadline):
            begin = process_time()
            self._step(inf if deadline is None else deadline)
            self._spent += process_time() - begin

    def _step(self, deadline: float) -> None:
        """Learn until the deadline, or until something else comes next."""
        if self._contest is not None:
            self._contest.advance()
            if self._contest.is_won:
                self._network = self._contest.network
        elif self._self_play is None or not self._is_long:
            self._teach(deadline)
        elif self._progress < _LEARNED_SHARE or not self._self_play.matches:
            self._self_play.play(min(deadline, monotonic() + _PIECE))
        else:
            self._contest = _Contest(self, self._self_play, _CONTEST_SHARE * self._startclock)

    def _teach(self, deadline: float) -> None:
        """Teach the linear value, or begin with the network."""
        teacher = self.teacher
        has_value = teacher.generation > 0 and not teacher.is_in_trial and self._progress >= _LINEAR_SHARE
        if self._has_network and (teacher.is_done or has_value):
            self._self_play = SelfPlay(self.game, np.uint64(extend(self._key, _SELF_PLAY_KEY)))
            return
        begin = process_time()
        teacher.teach(min(deadline, monotonic() + _PIECE))
        self.linear_seconds += process_time() - begin


def _with_network(game: Game, linear: LinearValue | None, network: Network) -> LinearValue:
    """Return a value with a network in the place of a linear value, which stays beside it."""
    return replace(linear or LinearValue.zero(game), network=network)


class _Contest:
    """A round or more of matches between the search with the network of a pupil and the one with its linear value.

    Both have the same time for a move: so much that a first pass of matches takes as long as planned.

    Attributes:
        network: the network
        is_done: whether the matches are over
    """

    def __init__(self, pupil: Pupil, self_play: SelfPlay, seconds: float) -> None:
        game, growth, linear = pupil.game, replace(pupil.growth, caution=0.0), pupil.teacher.value
        self.network = replace(self_play.network, entries=self_play.network.entries.copy())
        values = _with_network(game, linear, self.network), linear
        sides = [side_of(game, value, growth) for value in values]
        speeds = [rehearsed(game, side).speed for side in sides]
        plies = self_play.positions / max(self_play.matches, 1)
        both = in_equal_time(sides, speeds, seconds / (SIDE_BY_SIDE * max(plies, 1.0)))
        self._rounds = Rounds(game, np.uint64(extend(pupil._key, _CONTEST_KEY)), both, [_RANDOM_PLIES])

    def advance(self) -> None:
        """Grow the trees by a batch, or make moves."""
        self._rounds.advance()

    @property
    def is_done(self) -> bool:
        return len(self._rounds.scores) > 0

    @property
    def is_won(self) -> bool:
        """Whether the network has won more than half."""
        scores = self._rounds.scores
        return 2 * sum(scores) > len(scores)


def may_be_solved(game: Game) -> bool:
    """Return whether a game has the form that the solver needs, as far as this shows without play."""
    is_small = game.circuit is not None and game.circuit.num_gates <= _MOST_GATES
    return is_small and game.num_roles == 2 and is_native(game) and _CHANCE not in game.roles


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
        self._limits: Mapping[bytes, int] = {}
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
        with self._changes:
            if self.is_done:
                return
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
            solution = stored(self.game) or solve(
                self.game, memory=self._memory, cache=False, patience=0.0, progress=self._rest
            )
            self._limits = _limits(self.game) if solution.left_out else {}
            self.solution = solution
        except (GameloreError, MemoryError, _GivenUp):
            pass
        except BaseException as error:  # `run` raises it, the next call if this one is over
            self._failure = error
        finally:
            with self._changes:
                self.is_done, self._rests = self._failure is None, True
                self._changes.notify_all()

    def plies_left(self, state: NDArray[np.uint64]) -> int | None:
        """Return how many plies are left until the step counter that the solution leaves out; None if there is none."""
        if self.solution is None or not self._limits:
            return None
        return self._limits.get((state & self.solution.canonical.counter_mask).tobytes(), 0)

    def _rest(self, stage: str, done: int, of: int) -> None:
        """Wait for the next slice if the present one is over. Each slice has a step at least, however short it is."""
        with self._changes:
            if self._is_wanted and monotonic() >= self._until:
                self._rests = True
                self._changes.notify_all()
                self._changes.wait_for(lambda: not self._rests or not self._is_wanted)
        if not self._is_wanted:
            raise _GivenUp


def _limits(game: Game) -> dict[bytes, int]:
    """Return how many plies a match lasts at most, by the value of the step counter, as the bytes of a state.

    {} if the counter does not end every match.
    """
    counter = step_counter(game)
    if counter is None or not counter.ends:
        return {}
    values = course_of(game, counter.facts)[0]
    return {value.tobytes(): counter.length - number for number, value in enumerate(values)}


@dataclass(frozen=True, slots=True)
class SolvedChoice:
    """Moves of a role that keep the value of a position, as indices into its legal moves.

    moves   int64[n]
    is_won  whether the role can force more than an endless match gives
    slips   float64[n], the mean goal that the role gets after a random reply to each move and best play from then on
    plies   int64[n], number of plies to the end if the value is forced, else ENDLESS

    An end that comes after the step counter has ended the match counts as an endless match. (A goal between that of an
    endless match and the best one might come sooner, but a solution does not tell.)
    """

    moves: NDArray[np.int64]
    is_won: bool
    slips: NDArray[np.float64]
    plies: NDArray[np.int64]


def advised(
    solution: Solution, game: Game, state: NDArray[np.uint64], role: int, plies_left: int | None = None
) -> SolvedChoice | None:
    """Return what a solution says about the moves of a role, which is the only one that has a choice in a state.

    Args:
        solution: of the game
        game: game
        state: uint64[words]
        role: number of the role
        plies_left: see `Solving.plies_left`

    Returns:
        None for a state that is not reachable from the first state of the game.
    """
    after = _successors(game, state[None], role)
    left = inf if plies_left is None else plies_left - 1
    try:
        values, distances = _values(solution, after, role, left)
    except GameloreError:
        return None
    best = float(values.max())
    kept = np.flatnonzero(values == best)
    slips = np.array([_mean_reply(solution, game, after[move], role, best, left - 1) for move in kept])
    return SolvedChoice(kept, best > _assumed(solution), slips, distances[kept].astype(np.int64))


def _assumed(solution: Solution) -> float:
    """Return the goal that an endless match gives to each of two roles."""
    return (solution.total or 0) / 2


def _values(
    solution: Solution, states: NDArray[np.uint64], role: int, plies_left: float
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the values of states for a role, and their distances, if matches go on for at most so many plies."""
    goals, distances = solution.look_up(states)
    is_late = distances > plies_left
    return np.where(is_late, _assumed(solution), goals[:, role]), np.where(is_late, np.int32(ENDLESS), distances)


def _mean_reply(
    solution: Solution, game: Game, state: NDArray[np.uint64], role: int, value: float, plies_left: float
) -> float:
    """Return the mean value of the successors of a state for a role; `value` if the other role does not choose.

    plies_left: for how many plies a match goes on after these successors, at most
    """
    legal = game.legal(state[None])
    if legal.terminal[0] or legal.by_role(game.num_roles)[1][0, 1 - role] == 1:
        return value
    return float(_values(solution, _successors(game, state[None], 1 - role), role, plies_left)[0].mean())


def _successors(game: Game, state: NDArray[np.uint64], role: int) -> NDArray[np.uint64]:
    """Return the states after all moves of a role in a state uint64[1, words]; other roles make their first moves."""
    joint = game.legal(state).joint_moves(role, game.num_roles)
    return game.next(np.repeat(state, len(joint), axis=0), joint)
