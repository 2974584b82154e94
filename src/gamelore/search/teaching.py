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

How far a value can be trusted depends on the game: in some games hardly anything is linear in the facts. The measure is
the coefficient of determination of a value as a forecast of the mean results of the next generation, which it has not
seen. It is the least weight of the next value in the search, see value.py. These means contain virtual visits, which
are forecasts of the value itself; so the measure is higher than the share of real results that the value explains. This
is on purpose: with that share as its weight the value is trusted too little, see docs/search.md.

In some games random playouts say hardly anything about the end of a match between players who search, and the learned
value says more. This shows in the matches of teaching: `_Forecasts` mixes the mean result and the minimax value that
positions had, so that the mixture forecasts the results best. If minimax values have a higher weight in it than the
determination, they get a higher weight in the search.

Where values explain hardly anything, a *trial* finds out whether the search is better with informed playouts, see
circuit/playout.py: matches in pairs, with the same random plies at first and sides swapped. Nothing cheaper tells: what
playouts forecast, in results of matches or in values of long searches, says other things than matches do, and matches
with short searches as well. See docs/search.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import inf, sqrt
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..analysis.automorphisms import Bounds
from ..analysis.symmetry import symmetries
from ..circuit.tape import LANES
from ..game.engines import unpack_bits
from ..players.position_graph import MIB
from ..players.random_streams import extend
from .choice import choose, reports_of
from .growth import Grower
from .native_growth import grower
from .settings import GrowthSettings, TeachingSettings
from .tree import (
    COUNT,
    EDGE,
    HIGHEST_GOAL,
    LISTED,
    MOVER,
    NOBODY,
    NUM_NODES,
    PARENT,
    STAGE,
    UNRELATED,
    Tree,
    room_in,
    total_of_goals,
)
from .value import LinearValue, no_prior, upper_bound

if TYPE_CHECKING:
    from ..game.game import Game

TEACHING = "teaching"  # stage of the random numbers
_MEMORY_MIB = 32
_MOST_BARREN = 50  # rounds without a sample after which teaching is given up
_MOST_FACTS = 2000  # a regression with more would take seconds
_MOST_POINTS = 2000  # facts and actions of a game whose symmetries are found within a second or two
_SYMMETRY_BOUNDS = Bounds(seconds=inf, work=20_000_000)  # about half a second; the result must not depend on time
_ENOUGH, _FEWEST_VISITS = 1_500_000, 3  # walks after which a value with fewer virtual visits is not worth more lessons
_FEWEST_MATCHES = 64  # after which forecasts of results can be compared
SHARE = 0.5  # of informed playouts, if any; all of them were worse in some games, and nowhere better
_OF_TRIAL = 1  # extends the key
_OPENING = 2  # random plies at the beginning of a match of the trial
_ENDS = object()
_LEAST_COEFFICIENT = 1e-6  # above the errors of rounding
_FEWEST_ROWS, _MOST_OPERATIONS = 16, 1 << 27  # rows of a part of the samples, and operations for it


def can_be_taught(game: Game) -> bool:
    """Return whether a teacher helps in a game: it has opponents and a circuit, and not too many facts."""
    return game.num_roles > 1 and game.engine != "reasoner" and 64 * game.num_words <= _MOST_FACTS


class Teacher:
    """The matches, the samples and the value of a game, and the trial of its playouts.

    Args:
        game: game that the native engine, or another engine with a circuit, plays
        key: key of the random numbers
        growth: parameters of the searches
        settings: parameters of the lessons

    `value` is what the last generation has taught, or the present one if it has at least half the length of the one
    before; None before the first has ended. Its lessons end when the budget is used up, when the searches give no
    samples, as in a game without positions in which one role moves alone, or when values explain hardly anything. Then
    the trial gets what is left of the budget.
    """

    def __init__(self, game: Game, key: np.uint64, growth: GrowthSettings, settings: TeachingSettings) -> None:
        self.game, self.settings, self._growth = game, settings, growth
        self.value: LinearValue | None = None
        self._lesson_walks = 0
        self._has_taught = settings.simulations == 0
        self._trial: _Trial | None = None
        self._key, self._rng = key, np.random.default_rng(int(key))
        self._grower = grower(game, growth)
        self._tree = Tree(game, *room_in(game, _MEMORY_MIB * MIB), 2 * LANES)
        self._tree.total = total_of_goals(game, growth.max_plies)
        self._samples = _Samples(game)
        self._forecasts = _Forecasts(settings.matches)
        self._round_ends = False  # as soon as all samples are added
        self._states = np.repeat(game.initial[None], settings.matches, axis=0)
        self._plies = np.zeros(settings.matches, np.int32)
        self._openings = self._drawn_openings(settings.matches)
        self._generation_ends = min(settings.first, settings.simulations)
        self._last: LinearValue | None = None  # value of the last finished generation
        self._generation_begins, self._half, self._next_look = 0, 0, 0
        self._batch, self._left, self._barren = 0, 0, 0
        self._plant()

    def teach(self, deadline: float | None = None) -> None:
        """Go on with teaching until it is done, or until the deadline, in seconds of `time.monotonic`."""
        while not self.is_done and (deadline is None or monotonic() < deadline):
            if self._trial is not None:
                self._trial.advance()
            elif self._left:
                self._grow()
            elif not self._round_ends:
                prior = self._grower.prior
                minimax = upper_bound(self._growth, prior, self._tree.total).minimax
                self._samples.add(self._tree, self.settings.least, prior.visits, minimax, self._last)
                self._round_ends = True
            elif not self._samples.absorb():
                self._end_round()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to find out, or the budget is used up."""
        return self._has_taught and (self._trial is None or self._trial.is_done)

    @property
    def simulations(self) -> int:
        """Number of all walks so far."""
        return self._lesson_walks + (self._trial.walks if self._trial is not None else 0)

    @property
    def growth(self) -> GrowthSettings:
        """Parameters of the searches, with informed playouts if the trial says so."""
        is_won = self._trial is not None and self._trial.is_won
        return replace(self._growth, informed=SHARE) if is_won else self._growth

    def _end_round(self) -> None:
        """Make a move in each match, and end the generation if it has been long enough."""
        self._round_ends = False
        self._move()
        self._barren = 0 if self._samples.num else self._barren + 1
        if self.simulations >= self._generation_ends or self._barren == _MOST_BARREN:
            self._end_generation()
        elif self._last is not None and self._samples.num and self.simulations >= self._next_look:
            self.value = self._fitted()
            self._next_look += self._half
        if self._has_taught:
            self._end_lessons()
        else:
            self._plant()

    def _end_lessons(self) -> None:
        """Give back what took tens of MiB, and begin the trial if it is of use and fits into the budget."""
        explains = self._grower.prior.visits >= _FEWEST_VISITS
        del self._tree, self._samples, self._grower
        left = self.settings.simulations - self.simulations
        if left > 0 and not explains and self._growth.informed is None and self.game.informed_runner is not None:
            key = np.uint64(extend(self._key, _OF_TRIAL))
            self._trial = _Trial(self.game, key, self._growth, self.settings, self.value, left)

    def _plant(self) -> None:
        """Begin the searches of the present positions."""
        self._tree.plant(self._states)
        self._left = len(self._states) * self.settings.walks

    def _grow(self) -> None:
        """Grow the trees by one batch."""
        grown = self._grower.grow(self._tree, self._left, self._key, (self._batch, self._batch + 1))
        self._batch += 1
        self._lesson_walks += grown.walks
        self._left -= grown.walks or self._left  # without a walk, all positions are proved, or the tree is full
        if not grown.adds_up:
            self._tree.total = UNRELATED
            self._left = 0

    def _end_generation(self) -> None:
        """Fit the next value to the samples, and forget them."""
        self._has_taught = self.simulations >= self.settings.simulations or self._barren == _MOST_BARREN
        if not self._samples.num:
            return
        self.value = self._last = self._fitted()
        self._grower.prior = self._last.prior(self._growth)
        self._has_taught |= self.simulations >= _ENOUGH and self._grower.prior.visits < _FEWEST_VISITS
        self._samples.clear()
        self._half = (self._generation_ends - self._generation_begins) // 2
        self._generation_begins, self._next_look = self._generation_ends, self._generation_ends + self._half
        self._generation_ends = self._next_end()

    def _fitted(self) -> LinearValue:
        """Return the value that the samples of the present generation teach."""
        return replace(self._samples.fit(self._last, self.settings.ridge), foresight=self._forecasts.weight)

    def _next_end(self) -> int:
        """Return the number of walks at which the present generation ends. The last one takes all that is left."""
        first, end = self.settings.first, 2 * self._generation_ends + self.settings.first
        return end if 2 * end + first <= self.settings.simulations else self.settings.simulations

    def _drawn_openings(self, num: int) -> NDArray[np.int32]:
        """Return the number of random plies at the beginning of some matches."""
        return self._rng.integers(0, self.settings.opening + 1, num, dtype=np.int32)

    def _move(self) -> None:
        """Make a move in each match; begin a new match where one is over."""
        running = np.flatnonzero(self._tree.arrays.counts[: len(self._states)].all(axis=1))
        joint = np.array([self._joint(lane) for lane in running.tolist()], np.int32)
        if self._grower.prior.visits and self._tree.total != UNRELATED:
            for lane in running.tolist():
                self._forecasts.note(self._tree, lane)
        if len(running):
            self._states[running] = self.game.next(self._states[running], joint)
        self._plies += 1
        counts = self.game.legal(self._states).by_role(self.game.num_roles)[1]
        over = ~counts.all(axis=1) | (self._plies > self._growth.max_plies)
        self._forecasts.end(np.flatnonzero(over).tolist(), *self.game.evaluate(self._states[over]))
        self._states[over] = self.game.initial
        self._plies[over] = 0
        self._openings[over] = self._drawn_openings(int(over.sum()))

    def _joint(self, lane: int) -> list[int]:
        """Return the actions of all roles in a match: the best moves, see `choose`, or random ones."""
        is_random = self._plies[lane] < self._openings[lane] or self._rng.random() < self.settings.random
        if not is_random:
            return best_actions(self._tree, lane, self._growth, self._rng)
        spans = [self._tree.span(lane, role) for role in range(self.game.num_roles)]
        drawn = [first + int(self._rng.integers(1 << 62, dtype=np.uint64)) % count for first, count in spans]
        return [int(self._tree.arrays.actions[place]) for place in drawn]


class _Trial:
    """Matches between the search with informed playouts and the search without, in rounds of several side by side.

    walks         number of walks so far
    num_matches   number of matches that have ended
    """

    def __init__(
        self,
        game: Game,
        key: np.uint64,
        growth: GrowthSettings,
        settings: TeachingSettings,
        value: LinearValue | None,
        budget: int,
    ) -> None:
        self._game, self._growth, self._settings, self._budget = game, growth, settings, budget
        self._growers = [grower(game, replace(growth, informed=share)) for share in (0.0, SHARE)]
        for way in self._growers:
            way.prior = value.prior(growth) if value is not None else no_prior(game)
        self._tree = Tree(game, *room_in(game, _MEMORY_MIB * MIB), 2 * LANES)
        self._tree.total = total_of_goals(game, growth.max_plies)
        self._key, self._rng, self._batch = key, np.random.default_rng(int(key)), 0
        self.walks, self.num_matches, self._points = 0, 0, 0.0
        self._steps = self._rounds()
        self.is_done = False

    @property
    def is_won(self) -> bool:
        """Whether informed playouts are ahead by the standard deviation of as many matches between equals."""
        ahead = self._points - self.num_matches / 2
        return self.num_matches >= self._settings.trial / 4 and ahead >= sqrt(self.num_matches) / 2

    def advance(self) -> None:
        """Grow the trees by a batch, or make moves."""
        if next(self._steps, _ENDS) is _ENDS or self.walks >= self._budget:
            self.is_done = True
            del self._tree, self._growers

    def _rounds(self) -> Iterator[None]:
        """Play rounds of matches until enough are played; yield after each batch."""
        while self.num_matches < self._settings.trial:
            states = self._opened()
            own = np.arange(len(states)) % 2  # the role that informed playouts advise, in each match
            for _ in range(self._growth.max_plies):
                terminal, goals = self._game.evaluate(states)
                running = np.flatnonzero(~terminal)
                if not len(running):
                    break
                movers = self._game.acting(states[running]).argmax(axis=1)
                for informed in (0, 1):
                    lanes = running[(movers == own[running]) == bool(informed)]
                    if len(lanes):
                        yield from self._move(states, lanes, self._growers[informed])
            terminal, goals = self._game.evaluate(states)
            ahead = goals[np.arange(len(states)), own] - goals[np.arange(len(states)), 1 - own]
            self._points += float((0.5 + ahead[terminal] / (2 * HIGHEST_GOAL)).sum())
            self.num_matches += int(terminal.sum())

    def _opened(self) -> NDArray[np.uint64]:
        """Return the first positions of a round, uint64[matches, words], after random plies; two of each."""
        pairs = max(1, self._settings.matches // 4)
        states = np.repeat(self._game.initial[None], pairs, axis=0)
        for _ in range(_OPENING):
            legal = self._game.legal(states)
            starts, counts = legal.by_role(self._game.num_roles)
            drawn = starts + (self._rng.random(counts.shape) * counts).astype(np.int64)
            going = counts.all(axis=1)
            states[going] = self._game.next(states[going], legal.actions[drawn[going]])
        return np.repeat(states, 2, axis=0)

    def _move(self, states: NDArray[np.uint64], lanes: NDArray[np.intp], way: Grower) -> Iterator[None]:
        """Search in the positions of some matches, and make the best moves."""
        self._tree.plant(states[lanes])
        left = len(lanes) * self._settings.trial_walks
        while left > 0:
            grown = way.grow(self._tree, left, self._key, (self._batch, self._batch + 1))
            self._batch += 1
            self.walks += grown.walks
            left -= grown.walks or left  # without a walk, all positions are proved, or the tree is full
            yield
        joint = [best_actions(self._tree, number, self._growth, self._rng) for number in range(len(lanes))]
        states[lanes] = self._game.next(states[lanes], np.array(joint, np.int32))


def best_actions(tree: Tree, root: int, growth: GrowthSettings, rng: np.random.Generator) -> list[int]:
    """Return the best action of each role in the position of a root, see `choose`."""
    actions = []
    for role in range(tree.game.num_roles):
        noise = rng.integers(1 << 62, dtype=np.uint64)
        index = choose(tree, root, reports_of(tree, root, role), growth, noise)
        actions.append(int(tree.arrays.actions[tree.span(root, role)[0] + index]))
    return actions


class _Forecasts:
    """Forecasts of results of matches: the mean result of the favourite move, and the minimax value of the position.

    moments  float64[3, 3], sum of x x' over the positions of all generations, where x is the mean result, the minimax
             value and 1
    results  float64[3], sum of x y, where y is the goal of the mover at the end of the match, from 0 to 1
    num      number of matches that have ended
    """

    def __init__(self, matches: int) -> None:
        self.moments, self.results, self.num = np.zeros((3, 3)), np.zeros(3), 0
        self._noted: list[list[tuple[int, float, float]]] = [[] for _ in range(matches)]  # (mover, mean, minimax value)

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


class _Samples:
    """Sums of a ridge regression for each role: `x` are the features of a position, with a 1 at the end; `y` its value.

    num      number of samples
    moments  float64[roles, features + 1, features + 1], sum of weight * x x'
    targets  float64[roles, features + 1], sum of weight * x y
    squares  float64[2], sums over the roles of the squared error of the value of the last generation as a forecast of
             mean results, and of the squared distance of these from their mean
    """

    def __init__(self, game: Game) -> None:
        self._num_facts = 64 * game.num_words
        self._class_of = fact_classes(game)
        self._num_classes = int(self._class_of.max()) + 1
        self.num = 0
        size = self._num_classes + 1
        self.moments, self.targets = np.zeros((game.num_roles, size, size)), np.zeros((game.num_roles, size))
        self.squares = np.zeros(2)
        # (role, states, targets, weights) of samples that are not in the sums yet
        self._parts: deque[tuple[int, NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]] = deque()

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
        rows = max(_FEWEST_ROWS, _MOST_OPERATIONS // self.moments.shape[1] ** 2)
        for role in np.unique(movers).tolist():
            own = movers == role
            states, targets, shares = arrays.states[nodes[own]], values[own], weights[own]
            if before is not None:
                errors = means[own] - before(states, role), means[own] - np.average(means[own], weights=shares)
                self.squares += [float((shares * error**2).sum()) for error in errors]
            for first in range(0, len(states), rows):
                part = slice(first, first + rows)
                self._parts.append((role, states[part], targets[part], shares[part]))
        self.num += len(nodes)

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
            solved = np.linalg.solve(self.moments[role] + np.diag(penalty), self.targets[role] + penalty * centre)
            weights[role], constants[role] = solved[:-1][self._class_of], solved[-1]
        return LinearValue(weights, constants, self.determination)

    @property
    def determination(self) -> float:
        """Share of the variance of the samples that the value of the last generation explains; 0 without a value."""
        error, variance = self.squares.tolist()
        return max(0.0, 1.0 - error / variance) if variance else 0.0


def fact_classes(game: Game) -> NDArray[np.int64]:
    """Return the class of each bit of a state, int64[64 * words], from 0 on; symmetries map each class onto itself.

    In a large game, each fact is a class of its own.
    """
    classes = np.arange(64 * game.num_words)
    circuit = game.circuit
    if circuit is not None and circuit.num_facts + circuit.num_actions <= _MOST_POINTS:
        group = symmetries(game, _SYMMETRY_BOUNDS)
        # the elements are a group, so the least image is the same for all facts of an orbit
        classes[: circuit.num_facts] = group.facts.min(axis=0)
    return np.unique(classes, return_inverse=True)[1]
