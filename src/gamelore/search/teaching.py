"""Teaching: a linear value for a game from what searches find in matches against themselves.

Several matches run side by side, with a tree for each, and all trees grow together in batches of 512. The moves in all
nodes of the trees become samples: the facts of the position that a move leads to, and its value in the search. Values
of searches teach more than results of matches, because a search corrects the mistakes of its playouts. The value is the
one by which walks choose: the mean result of the walks, mixed with the minimax value of the positions that they have
reached. So each generation sees some plies farther than the one before (compare Veness, Silver, Uther & Blair 2009,
Bootstrapping from Game Tree Search). Moves with few visits count, too, because most of them are bad: a value that is
fitted to good moves only does not know what is bad. The moves that are played are the best ones, or random ones, so
that the samples contain positions after mistakes.

The weights are fitted by ridge regression. Facts that a symmetry of the rules maps to each other share a weight.
Teaching goes on in *generations*: the searches of the next generation use the value that the last one has taught, and
the next weights are drawn towards the last ones. Each generation is twice as long as the one before. It counts from a
quarter of its length on, so teaching can be stopped at any time. The value of the first generation is not used, because
nothing says how good it is. Teaching values by search, and search by values, is the idea of expert iteration (Anthony,
Tian & Barber 2017).

Teaching can begin with a value that was learned before, in a variant of the game. In the first generation, such a value
leads the searches as far as it correlates with their results, apart from scale, and the first weights are drawn
towards it, so facts that are rare in the samples keep what it says.

How far a value can be trusted depends on the game: in some games hardly anything is linear in the facts. The measure is
the coefficient of determination of a value as a forecast of the mean results of the next generation, which it has not
seen. It is the least weight of the next value in the search, see value.py. These means contain virtual visits, which
are forecasts of the value itself; so the measure is higher than the share of real results that the value explains. This
is on purpose: with that share as its weight the value is trusted too little, see docs/search/trials.md.

In some games random playouts say hardly anything about the end of a match between players who search, and the learned
value says more. This shows in the matches of teaching: `_Forecasts` mixes the mean result and the minimax value that
positions had, so that the mixture forecasts the results best. If minimax values have a higher weight in it than the
determination, they get a higher weight in the search.

Where values explain hardly anything, a *trial* finds out whether the search is better with informed playouts, see
circuit/playout.py: matches in pairs, with the same random plies at first and sides swapped. Nothing cheaper tells: what
playouts forecast, in results of matches or in values of long searches, says other things than matches do, and matches
with short searches as well. See docs/search/trials.md.
"""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import sqrt
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from ..analysis.symmetry import quick_symmetries
from ..circuit.tape import LANES
from ..game.engines import HIGHEST_GOAL, unpack_bits
from ..players.position_graph import MIB
from ..players.random_streams import extend, stream
from .choice import choose, reports_of
from .growth import walks_left
from .native_growth import grower
from .proofs import first_assumption
from .rounds import Openings, Rounds, side_of
from .settings import GrowthSettings, TeachingSettings
from .tree import (
    COUNT,
    EDGE,
    LISTED,
    MOVER,
    NOBODY,
    NUM_NODES,
    PARENT,
    STAGE,
    UNRELATED,
    Tree,
    are_opposed,
    room_in,
)
from .value import LinearValue, upper_bound

if TYPE_CHECKING:
    from ..game.game import Game

_TEACHING = "teaching"  # stage of the random numbers
_MEMORY_MIB = 32
_MOST_BARREN = 50  # rounds without a sample after which teaching is given up
_MOST_FACTS = 2000  # of a game for two roles: a regression with more would take seconds
_MOST_SUMS = 2 * _MOST_FACTS**2  # of the regressions of all roles: 61 MiB
_ENOUGH, _FEWEST_VISITS = 1_500_000, 3  # walks after which a value with fewer virtual visits is not worth more lessons
_FEWEST_MATCHES = 64  # after which forecasts of results can be compared
INFORMED_SHARE = 0.5  # of informed playouts, if any; all of them were worse in some games, and nowhere better
_TRIAL_KEY, _ROUND_KEY = 1, 2  # extend the key
_OPENING = 2  # random plies at the beginning of a match of the trial
_LEAST_COEFFICIENT = 1e-6  # above the errors of rounding
_FEWEST_ROWS, _MOST_OPERATIONS = 16, 1 << 27  # rows of a part of the samples, and operations for it


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which products of matrices use one thread, so that the number of cores changes no result.

    These products are small. The threads of OpenBLAS wait for each other in a loop, which took half of the CPU time on
    an idle machine with two cores, and three quarters on a busy one.
    """
    return _blas().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


class Sums(NamedTuple):
    """Sums of a ridge regression for each role: `x` are the features of a position, with a 1 at the end; `y` its value.

    num      number of samples
    moments  float64[roles, features + 1, features + 1], sum of weight * x x'
    targets  float64[roles, features + 1], sum of weight * x y
    squares  float64[4], about the value of the last generation as a forecast of mean results, sums over the roles: the
             squared error, the squared deviation of the results from their mean, the product of this deviation with
             that of the forecasts, and the squared deviation of the forecasts
    """

    num: int
    moments: NDArray[np.float64]
    targets: NDArray[np.float64]
    squares: NDArray[np.float64]


class ForecastSums(NamedTuple):
    """Sums of a regression of the results of matches on forecasts of them.

    moments  float64[3, 3], sum of x x' over the positions of all generations, where x is the mean result, the minimax
             value and 1
    results  float64[3], sum of x y, where y is the goal of the mover at the end of the match, from 0 to 1
    num      number of matches that have ended
    notes    float64[n, 4], the positions of the matches under way: match, mover, mean result and minimax value
    """

    moments: NDArray[np.float64]
    results: NDArray[np.float64]
    num: int
    notes: NDArray[np.float64]


class Running(NamedTuple):
    """Matches under way.

    states    uint64[matches, words], their present positions
    plies     int32[matches], the number of plies of each match so far
    openings  int32[matches], the number of random plies at its beginning
    """

    states: NDArray[np.uint64]
    plies: NDArray[np.int32]
    openings: NDArray[np.int32]

    def copy(self) -> Running:
        """Return a copy of the arrays."""
        return Running(self.states.copy(), self.plies.copy(), self.openings.copy())


@dataclass(frozen=True)
class TeachingState:
    """What a teacher has at the end of a round of moves. Another teacher can go on from there, with the same results.

    generation  number of the present generation, from 0 on
    rounds      number of rounds so far
    walks       number of walks so far
    value       what the last generation has taught; in the first generation, a value to begin with, or None
    progress    sums over the present generation, forecasts, and matches under way; None to begin these anew
    begins      number of walks before the present generation; a teacher that goes on does not need it
    as_assumed  False if goals were different from those of random playouts, see `growth.as_assumed`
    """

    generation: int
    rounds: int
    walks: int
    value: LinearValue | None
    progress: tuple[Sums, ForecastSums, Running] | None
    begins: int = 0
    as_assumed: bool = True


def can_be_taught(game: Game) -> bool:
    """Return whether a teacher helps in a game: it has opponents, a circuit for all states, and not too many facts."""
    num_facts = 64 * game.num_words
    is_small = num_facts <= _MOST_FACTS and game.num_roles * num_facts**2 <= _MOST_SUMS
    return game.num_roles > 1 and not game.uses_reasoner and is_small


def teaching_key(seed: int, game: Game) -> np.uint64:
    """Return the key of the random numbers by which a game is taught."""
    return stream(seed, _TEACHING, game.rules_hash)


class Teacher:
    """The matches, the samples and the value of a game, and the trial of its playouts.

    Args:
        game: game that the native engine plays
        key: key of the random numbers
        growth: parameters of the searches
        settings: parameters of the lessons
        begin: the state of a teacher of the same game to go on from. Its walks are part of the budget

    `assumption` is what the searches know of the goals of all roles together, see `Tree`.

    `value` is what the last generation has taught, or the present one if it has at least half the length of the one
    before; None before the first has ended. Its lessons end when the budget is used up, when the searches give no
    samples, as in a game without positions in which one role moves alone, or when values explain hardly anything. Then
    the trial gets what is left of the budget.
    """

    openings: Openings | None = None

    def __init__(
        self,
        game: Game,
        key: np.uint64,
        growth: GrowthSettings,
        settings: TeachingSettings,
        begin: TeachingState | None = None,
    ) -> None:
        self.game, self.settings, self._growth, self._key = game, settings, growth, key
        self.value: LinearValue | None = None
        self._has_taught = settings.simulations == 0
        self._trial: _Trial | None = None
        self._final: TeachingState | None = None  # as soon as the lessons have ended
        self._grower = grower(game, growth)
        self._tree = Tree(game, *room_in(game, _MEMORY_MIB * MIB), 2 * LANES)
        self.assumption = self._tree.assumption = first_assumption(game, growth.max_plies)
        self._samples = Samples(game)
        self._forecasts = _Forecasts(settings.matches)
        self._last: LinearValue | None = None  # value of the last finished generation
        self._generation, self._rounds, self._lesson_walks = 0, 0, 0
        self._generation_begins, self._generation_ends = 0, min(settings.first, settings.simulations)
        self._half, self._next_look, self._barren = 0, 0, 0
        self._left, self._begins_round, self._round_ends = 0, True, False
        self._draw_from_here()
        self._matches = self._new_matches()
        if begin is not None:
            with _one_blas_thread():
                self._resume(begin)
        if self._has_taught and begin is not None:
            self._end_lessons()
        else:
            self._plant()

    def _draw_from_here(self) -> None:
        """Begin the random numbers of the present round, which depend on nothing before it."""
        self._stream = np.uint64(extend(extend(self._key, _ROUND_KEY), self._rounds))
        self._rng, self._batch = np.random.default_rng(int(self._stream)), 0

    def _new_matches(self) -> Running:
        """Return matches in the first position."""
        num = self.settings.matches
        states = np.repeat(self.game.initial[None], num, axis=0)
        return Running(states, np.zeros(num, np.int32), self._drawn_openings(num))

    def _resume(self, state: TeachingState) -> None:
        """Go on after the round of a state."""
        self._rounds, self._lesson_walks = state.rounds, state.walks
        if not state.as_assumed:
            self.assumption = self._tree.assumption = UNRELATED
        for _ in range(state.generation):
            self._begin_generation(state.value)
        if not state.generation and state.value is not None:
            self._last = state.value
            self._half = self._next_look = self._generation_ends // 2
        self._has_taught |= state.walks >= self.settings.simulations
        self._draw_from_here()
        if state.progress is not None:
            sums, forecasts, matches = state.progress
            self._samples.restore(sums)
            self._forecasts.restore(forecasts)
            self._matches = matches.copy()
        self._renew_value()

    def begin(self, startclock: float | None) -> Teacher:
        """Return this teacher; see `champion.Schooling`."""
        return self

    def end(self) -> None:
        """Do nothing; see `champion.Prepared`."""

    def teach(self, deadline: float | None = None) -> None:
        """Go on with teaching until it is done, or until the deadline, in seconds of `time.monotonic`."""
        with _one_blas_thread():
            while not self.is_done and (deadline is None or monotonic() < deadline):
                self._step()

    def _step(self) -> None:
        """Do the next piece of work: some milliseconds; longer when a value is fitted to more than a thousand facts."""
        if self._trial is not None:
            self._trial.advance()
        elif self._left:
            self._grow()
        elif not self._round_ends:
            prior = self._grower.prior
            minimax = upper_bound(self._growth, prior, self._tree.assumption).minimax
            self._samples.add(self._tree, self.settings.least, prior.visits, minimax, self._last)
            self._round_ends = True
        elif not self._samples.absorb():
            self._end_round()

    def pause(self) -> TeachingState:
        """Finish the present round of moves, which takes some tens of milliseconds, and return the state after it."""
        with _one_blas_thread():
            while self._final is None and not self._begins_round:
                self._step()
        return self._final or self._state()

    def _state(self) -> TeachingState:
        """Return the state at the end of a round."""
        progress = self._samples.sums(), self._forecasts.sums(), self._matches.copy()
        spent = self._generation, self._rounds, self._lesson_walks
        as_assumed = self.assumption == first_assumption(self.game, self._growth.max_plies)
        return TeachingState(*spent, self._last, progress, self._generation_begins, as_assumed)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to find out, or the budget is used up."""
        return self._has_taught and (self._trial is None or self._trial.is_done)

    @property
    def is_in_trial(self) -> bool:
        """Whether the trial of informed playouts has begun, and not ended."""
        return self._trial is not None and not self._trial.is_done

    @property
    def simulations(self) -> int:
        """Number of all walks so far."""
        return self._lesson_walks + (self._trial.walks if self._trial is not None else 0)

    @property
    def generation(self) -> int:
        """Number of the present generation, from 0 on."""
        return self._generation

    @property
    def last(self) -> LinearValue | None:
        """What the last finished generation has taught; in the first generation, the value to begin with, or None."""
        return self._last

    @property
    def informed(self) -> float | None:
        """Share of informed playouts that the trial has decided for; the given one, or None, without a decision."""
        if self._trial is None or not self._trial.is_done:
            return self._growth.informed
        return INFORMED_SHARE if self._trial.is_won else 0.0

    @property
    def growth(self) -> GrowthSettings:
        """Parameters of the searches, with informed playouts if the trial says so, also before it has decided."""
        is_won = self._trial is not None and self._trial.is_won
        return replace(self._growth, informed=INFORMED_SHARE) if is_won else self._growth

    def _end_round(self) -> None:
        """Make a move in each match, and end the generation if it has been long enough."""
        self._round_ends = False
        self._move()
        self._rounds += 1
        self._barren = 0 if self._samples.num else self._barren + 1
        if self.simulations >= self._generation_ends or self._barren == _MOST_BARREN:
            self._end_generation()
        else:
            self._renew_value()
        self._draw_from_here()
        if self._has_taught:
            self._end_lessons()
        else:
            self._plant()

    def _renew_value(self) -> None:
        """Learn from the samples of the present generation so far, if there is a value to learn from."""
        if self._last is not None and self._samples.num:
            if not self._generation:
                self._measure(self._last)
            if self.simulations >= self._next_look:
                self._look()

    def _measure(self, first: LinearValue) -> None:
        """Let the value to begin with lead the searches as far as it correlates with the samples so far."""
        first = replace(first, determination=self._samples.correlation)
        self._grower.prior = first.prior(self._growth)
        if self.simulations < self._half:
            self.value = first

    def _look(self) -> None:
        """Fit the value to what the present generation has seen so far."""
        self.value = self._fitted()
        halves = (self._lesson_walks - self._generation_begins) // max(self._half, 1)
        self._next_look = self._generation_begins + (halves + 1) * self._half

    def _end_lessons(self) -> None:
        """Give back the trees, and begin the trial if it is of use and fits into the budget.

        The sums of the regression, up to 32 MiB a role, are a part of the last state.
        """
        explains = self._grower.prior.visits >= _FEWEST_VISITS
        self._final = self._state()
        del self._tree, self._samples, self._grower
        left = self.settings.simulations - self.simulations
        if left > 0 and not explains and self._growth.informed is None and self.game.informed_runner is not None:
            key = np.uint64(extend(self._key, _TRIAL_KEY))
            self._trial = _Trial(self.game, key, self._growth, self.settings, self.value, left)

    def _plant(self) -> None:
        """Begin the searches of the present positions, which have walked nowhere yet."""
        self._tree.plant(self._matches.states)
        self._left, self._begins_round = self._walks_of_round, True

    @property
    def _walks_of_round(self) -> int:
        return len(self._matches.states) * self.settings.walks

    def _grow(self) -> None:
        """Grow the trees by one batch."""
        self._begins_round = False
        grown = self._grower.grow(self._tree, self._left, self._stream, (self._batch, self._batch + 1))
        self._batch += 1
        self._lesson_walks += grown.walks
        self._left = walks_left(self._tree, grown, self._left, self._walks_of_round)
        if not grown.as_assumed:
            self.assumption = UNRELATED
            self._draw_from_here()
            self._begins_round = True

    def _end_generation(self) -> None:
        """Fit the next value to the samples, and forget them."""
        self._has_taught = self.simulations >= self.settings.simulations or self._barren == _MOST_BARREN
        if not self._samples.num:
            return
        value = self._fitted()
        self._samples.clear()
        self._begin_generation(value)

    def _begin_generation(self, value: LinearValue | None) -> None:
        """Begin the next generation with the value of the last one."""
        self.value = self._last = value
        if value is not None:
            self._grower.prior = value.prior(self._growth)
        self._half = (self._generation_ends - self._generation_begins) // 2
        self._generation_begins, self._next_look = self._generation_ends, self._generation_ends + self._half
        self._generation_ends = self._next_end()
        self._generation += 1
        self._has_taught |= self._generation_begins >= _ENOUGH and self._grower.prior.visits < _FEWEST_VISITS

    def _fitted(self) -> LinearValue:
        """Return the value that the samples of the present generation teach."""
        fitted = self._samples.fit(self._last, self.settings.ridge)
        # a value to begin with may be right apart from its scale, which the fit mends
        explained = self._samples.determination if self._generation else self._samples.correlation
        return replace(fitted, determination=explained, foresight=self._forecasts.weight)

    def _next_end(self) -> int:
        """Return the number of walks at which the present generation ends. The last one takes all that is left."""
        first, end = self.settings.first, 2 * self._generation_ends + self.settings.first
        return end if 2 * end + first <= self.settings.simulations else self.settings.simulations

    def _drawn_openings(self, num: int) -> NDArray[np.int32]:
        """Return the number of random plies at the beginning of some matches."""
        return self._rng.integers(0, self.settings.opening + 1, num, dtype=np.int32)

    def _move(self) -> None:
        """Make a move in each match; begin a new match where one is over."""
        states, plies, openings = self._matches
        running = np.flatnonzero(self._tree.arrays.counts[: len(states)].all(axis=1))
        joint = np.array([self._joint(lane) for lane in running.tolist()], np.int32)
        if self._grower.prior.visits and are_opposed(self._tree.assumption):
            for lane in running.tolist():
                self._forecasts.note(self._tree, lane)
        if len(running):
            states[running] = self.game.next(states[running], joint)
        plies += 1
        counts = self.game.legal(states).by_role(self.game.num_roles)[1]
        over = ~counts.all(axis=1) | (plies > self._growth.max_plies)
        self._forecasts.end(np.flatnonzero(over).tolist(), *self.game.evaluate(states[over]))
        states[over], plies[over] = self.game.initial, 0
        openings[over] = self._drawn_openings(int(over.sum()))

    def _joint(self, lane: int) -> list[int]:
        """Return the actions of all roles in a match: the best moves, see `choose`, or random ones."""
        has_opened = self._matches.plies[lane] >= self._matches.openings[lane]
        if has_opened and self._rng.random() >= self.settings.random:
            return best_actions(self._tree, lane, self._growth, self._rng)
        spans = [self._tree.span(lane, role) for role in range(self.game.num_roles)]
        drawn = [first + int(self._rng.integers(1 << 62, dtype=np.uint64)) % count for first, count in spans]
        return [int(self._tree.arrays.actions[place]) for place in drawn]


class _Trial:
    """Matches between the search with informed playouts and the search without, see `rounds.Rounds`."""

    def __init__(
        self,
        game: Game,
        key: np.uint64,
        growth: GrowthSettings,
        settings: TeachingSettings,
        value: LinearValue | None,
        budget: int,
    ) -> None:
        self._settings, self._budget = settings, budget
        growth = replace(growth, caution=0.0)  # the moves with the most visits are made, as in the measurements
        informed, plain = (
            side_of(game, value, replace(growth, informed=share), walks=settings.trial_walks)
            for share in (INFORMED_SHARE, 0.0)
        )
        self._rounds = Rounds(game, key, (informed, plain), [_OPENING])
        self.is_done = False

    @property
    def walks(self) -> int:
        """Number of walks so far."""
        return self._rounds.walks

    @property
    def scores(self) -> list[float]:
        """Scores of informed playouts in the pairs of matches so far, 0 to 1."""
        return self._rounds.scores

    @property
    def is_won(self) -> bool:
        """Whether informed playouts are ahead by the standard deviation of as many matches between equals."""
        num = 2 * len(self.scores)
        ahead = 2 * sum(self.scores) - num / 2
        return num >= self._settings.trial / 4 and ahead >= sqrt(num) / 2

    def advance(self) -> None:
        """Grow the trees by a batch, or make moves."""
        self._rounds.advance()
        self.is_done = 2 * len(self.scores) >= self._settings.trial or self.walks >= self._budget


def best_actions(tree: Tree, root: int, growth: GrowthSettings, rng: np.random.Generator) -> list[int]:
    """Return the action of each role with the most visits in the position of a root, or a proved one; see `choose`."""
    actions = []
    for role in range(tree.game.num_roles):
        noise = rng.integers(1 << 62, dtype=np.uint64)
        index = choose(tree, root, reports_of(tree, root, role), growth, noise)
        actions.append(int(tree.arrays.actions[tree.span(root, role)[0] + index]))
    return actions


class _Forecasts:
    """Forecasts of results of matches: the mean result of the favourite move, and the minimax value of the position.

    See `ForecastSums` for the attributes.
    """

    def __init__(self, matches: int) -> None:
        self.moments, self.results, self.num = np.zeros((3, 3)), np.zeros(3), 0
        self._noted: list[list[tuple[int, float, float]]] = [[] for _ in range(matches)]  # (mover, mean, minimax value)

    def sums(self) -> ForecastSums:
        """Return a copy of the sums and notes."""
        notes = [(lane, *note) for lane, noted in enumerate(self._noted) for note in noted]
        return ForecastSums(
            self.moments.copy(), self.results.copy(), self.num, np.array(notes, np.float64).reshape(-1, 4)
        )

    def restore(self, sums: ForecastSums) -> None:
        """Replace all by a copy of these sums and notes."""
        self.moments, self.results, self.num = sums.moments.copy(), sums.results.copy(), sums.num
        for noted in self._noted:
            noted.clear()
        for lane, mover, mean, guess in sums.notes.tolist():
            self._noted[int(lane)].append((int(mover), mean, guess))

    def note(self, tree: Tree, lane: int) -> None:
        """Note the forecasts for the present position of a match, unless its move is forced or its value is proved.

        The minimax value of a proved position is exact. It would only show that proofs are right.
        """
        arrays, mover = tree.arrays, int(tree.arrays.nodes[lane, MOVER])
        if mover == NOBODY or arrays.nodes[lane, STAGE] != LISTED:
            return
        first, count = tree.span(lane, mover)
        moves = slice(first, first + count)
        favourite = first + int(np.where(arrays.closed[moves], -1, arrays.visits[moves]).argmax())
        if count > 1 and arrays.visits[favourite]:
            mean = float(arrays.sums[favourite] / arrays.visits[favourite])
            self._noted[lane].append((mover, mean, float(arrays.guesses[moves].max())))

    def end(self, lanes: list[int], terminal: NDArray[np.bool_], goals: NDArray[np.int16]) -> None:
        """Hold the forecasts against the results of matches, and forget those of matches that were broken off."""
        for lane, is_over, row in zip(lanes, terminal.tolist(), goals.tolist(), strict=True):
            noted, self._noted[lane] = self._noted[lane], []
            if not is_over or not noted:
                continue
            x = np.array([(mean, guess, 1.0) for _, mean, guess in noted])
            y = np.array([max(row[mover], 0) / HIGHEST_GOAL for mover, _, _ in noted])
            self.moments += x.T @ x
            self.results += x.T @ y
            self.num += 1

    @property
    def weight(self) -> float:
        """Weight of minimax values in their mixture with mean results that forecasts best, from 0 to 1.

        It comes from a linear regression. Negative coefficients count as 0. It is 0 as long as too few matches have
        ended, and where neither forecasts anything.
        """
        if self.num < _FEWEST_MATCHES:
            return 0.0
        mean, guess = np.maximum(np.linalg.lstsq(self.moments, self.results, rcond=None)[0][:2], 0.0).tolist()
        return guess / (mean + guess) if mean + guess > _LEAST_COEFFICIENT else 0.0


class Samples:
    """Sums of a ridge regression for each role, and samples that are not in them yet. See `Sums` for the attributes."""

    def __init__(self, game: Game) -> None:
        self._num_facts = 64 * game.num_words
        self._class_of = fact_classes(game)
        self._num_classes = int(self._class_of.max()) + 1
        self.num = 0
        size = self._num_classes + 1
        self.moments, self.targets = np.zeros((game.num_roles, size, size)), np.zeros((game.num_roles, size))
        self.squares = np.zeros(4)
        # (role, states, targets, weights) of samples that are not in the sums yet
        self._parts: deque[tuple[int, NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]] = deque()

    def sums(self) -> Sums:
        """Return a copy of the sums."""
        return Sums(self.num, self.moments.copy(), self.targets.copy(), self.squares.copy())

    def restore(self, sums: Sums) -> None:
        """Replace the sums by a copy of these."""
        self.num, self.moments, self.targets, self.squares = sums.num, *(array.copy() for array in sums[1:])

    def clear(self) -> None:
        self.num = 0
        self.moments[:] = 0.0
        self.targets[:] = 0.0
        self.squares[:] = 0.0

    def add(self, tree: Tree, least: int, virtual: int, minimax: float, before: LinearValue | None) -> None:
        """Take the moves of all nodes of a tree that have at least `least` visits without the virtual ones.

        Forced moves are left out. `minimax` is the weight of minimax values, and `before` the value of the last
        generation, which has not seen these samples. `absorb` adds them to the sums.
        """
        arrays = tree.arrays
        nodes = np.arange(int(arrays.size[NUM_NODES]))
        nodes = nodes[arrays.nodes[nodes, EDGE] >= 0]
        parents, edges = arrays.nodes[nodes, PARENT], arrays.nodes[nodes, EDGE]
        visits = arrays.visits[edges] - virtual
        keep = (visits >= least) & (arrays.nodes[parents, COUNT] > 1)
        nodes, edges, movers = nodes[keep], edges[keep], arrays.nodes[parents[keep], MOVER]
        means, weights = arrays.sums[edges] / arrays.visits[edges], np.sqrt(visits[keep])
        values = (1.0 - minimax) * means + minimax * arrays.guesses[edges]
        for role in np.unique(movers).tolist():
            own = movers == role
            states, targets, shares = arrays.states[nodes[own]], values[own], weights[own]
            if before is not None:
                self.measure(before, role, states, means[own], shares)
            self.add_positions(role, states, targets, shares)
        self.num += len(nodes)

    def measure(
        self,
        value: LinearValue,
        role: int,
        states: NDArray[np.uint64],
        results: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> None:
        """Add squares of the errors of a value in positions after moves of a role to those of `determination`."""
        self.squares += _squares(value(states, role), results, weights)

    def add_positions(
        self,
        role: int,
        states: NDArray[np.uint64],
        targets: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> None:
        """Take positions after moves of a role, with their values and weights, float64[n] each."""
        rows = max(_FEWEST_ROWS, _MOST_OPERATIONS // self.moments.shape[1] ** 2)
        for first in range(0, len(states), rows):
            part = slice(first, first + rows)
            self._parts.append((role, states[part], targets[part], weights[part]))

    def absorb(self) -> bool:
        """Add a part of the samples to the sums, which takes some milliseconds; return False if none are left."""
        if not self._parts:
            return False
        role, states, targets, weights = self._parts.popleft()
        features = self._features(states)
        weighted = features * weights[:, None]
        self.moments[role] += weighted.T @ features
        self.targets[role] += weighted.T @ targets
        return True

    def _features(self, states: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the number of facts of each class that hold, then 1: float64[n, classes + 1]."""
        facts = unpack_bits(states, self._num_facts)
        features = np.ones((len(states), self._num_classes + 1))
        features[:, :-1] = facts if self._num_classes == self._num_facts else facts @ self._tied
        return features

    @cached_property
    def _tied(self) -> NDArray[np.float32]:
        """float32[facts, classes], 1 where a fact belongs to a class."""
        return np.eye(self._num_classes, dtype=np.float32)[self._class_of]

    def fit(self, before: LinearValue | None, ridge: float) -> LinearValue:
        """Return the value with the least squared error plus `ridge` times the squared distance from the value before.

        `ridge` is per sample, as a share of the weight of all samples.
        """
        roles = len(self.targets)
        weights, constants = np.zeros((roles, self._num_facts), np.float32), np.zeros(roles)
        firsts = np.unique(self._class_of, return_index=True)[1]
        for role in range(roles):
            total = self.moments[role, -1, -1]
            if not total:
                constants[role] = 0.5 if before is None else before.constants[role]
                weights[role] = 0.0 if before is None else before.weights[role]
                continue
            centre = np.zeros(self._num_classes + 1)
            if before is not None:
                centre[:-1], centre[-1] = before.weights[role, firsts], before.constants[role]
            penalty = np.full(self._num_classes + 1, ridge * total)
            penalty[-1] = 1e-9 * total
            upper = np.triu(self.moments[role])  # the lower half differs by rounding, and is not stored
            moments = upper + np.triu(upper, 1).T + np.diag(penalty)
            solved = np.linalg.solve(moments, self.targets[role] + penalty * centre)
            weights[role], constants[role] = solved[:-1][self._class_of], solved[-1]
        return LinearValue(weights, constants)

    @property
    def determination(self) -> float:
        """Share of the variance of the samples that the value of the last generation explains; 0 without a value."""
        error, variance = self.squares[:2].tolist()
        return max(0.0, 1.0 - error / variance) if variance else 0.0

    @property
    def correlation(self) -> float:
        """Squared correlation of the value of the last generation with the samples; 0 if it is negative."""
        variance, product, own = self.squares[1:].tolist()
        return product * max(0.0, product) / (variance * own) if variance * own else 0.0


def _squares(
    forecasts: NDArray[np.float64], results: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weighted sums of `Sums.squares` for forecasts of results, float64[n] each."""
    ours, theirs = (values - np.average(values, weights=weights) for values in (forecasts, results))
    products = (results - forecasts) ** 2, theirs**2, ours * theirs, ours**2
    return np.array([float((weights * product).sum()) for product in products])


_FACT_CLASSES: WeakKeyDictionary[Game, NDArray[np.int64]] = WeakKeyDictionary()


def fact_classes(game: Game) -> NDArray[np.int64]:
    """Return the class of each bit of a state, int64[64 * words], from 0 on; symmetries map each class onto itself.

    In a large game, each fact is a class of its own. The result is computed once for a game, because to find symmetries
    may take a second or two. It is read-only.
    """
    if game not in _FACT_CLASSES:
        classes = np.arange(64 * game.num_words)
        if game.circuit is not None:
            # the elements are a group, so the least image is the same for all facts of an orbit
            classes[: game.circuit.num_facts] = quick_symmetries(game).facts.min(axis=0)
        own = _FACT_CLASSES[game] = np.unique(classes, return_inverse=True)[1]
        own.flags.writeable = False
    return _FACT_CLASSES[game]
