"""Teaching: a linear value for a game from what searches find in matches against themselves.

Several matches run side by side, with a tree for each, and all trees grow together in batches of 512. In each position,
the mean values of all moves in the trees become samples: the facts of the position that a move leads to, and the mean
value of the walks through this move. Values of searches teach more than results of matches, because a search corrects
the mistakes of its playouts. The moves that are played are the best ones, or random ones, so that the
samples contain positions after mistakes.

The weights are fitted by ridge regression. Facts that a symmetry of the rules maps to each other share a weight.
Teaching goes on in *generations*: the searches of the next generation use the value that the last one has taught, and
the next weights are drawn towards the last ones. Each generation is twice as long as the one before, so teaching can be
stopped at any time without loss of more than half of the work. Teaching values by search, and search by values, is the
idea of expert iteration (Anthony, Tian & Barber 2017).
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..analysis.automorphisms import Bounds
from ..analysis.symmetry import symmetries
from ..game.engines import unpack_bits
from ..players.position_graph import MIB
from ..players.random_streams import extend
from .choice import best_of, reports_of
from .native_growth import grower
from .settings import GrowthSettings, TeachingSettings
from .tree import EDGE, MOVER, NUM_NODES, PARENT, UNRELATED, Tree, room_in, total_of_goals
from .value import LinearValue

if TYPE_CHECKING:
    from ..game.game import Game

TEACHING = "teaching"  # stage of the random numbers
_MEMORY_MIB = 32
_ERRORS = 2.0  # standard errors by which a weight must be ahead of the first one
_MOST_POINTS = 2000  # facts and actions of a game whose symmetries are found within a second or two
_SYMMETRY_BOUNDS = Bounds(seconds=1.0)


class _Forest:
    """Searches of some positions side by side, all with a value or all without one.

    lanes  int64[n], the matches in which the positions occur; root i of the tree is the position of match `lanes[i]`
    """

    def __init__(self, game: Game, growth: GrowthSettings, key: np.uint64) -> None:
        self.grower = grower(game, growth)
        self.tree = Tree(game, *room_in(game, _MEMORY_MIB * MIB))
        self.tree.total = total_of_goals(game, growth.max_plies)
        self.lanes = np.zeros(0, np.int64)
        self._key, self._batch, self._left = key, 0, 0

    @property
    def is_done(self) -> bool:
        """Whether the searches of all positions have ended."""
        return self._left == 0

    def plant(self, states: NDArray[np.uint64], lanes: NDArray[np.int64], walks: int) -> None:
        """Begin the searches of the positions of some lanes, with this number of walks for each position."""
        self.lanes, self._left = lanes, len(lanes) * walks
        self.tree.arrays.size[:] = 0
        if len(lanes):
            self.tree.plant(states[lanes])

    def grow(self) -> int:
        """Grow the trees by one batch, and return its number of walks."""
        grown = self.grower.grow(self.tree, self._left, self._key, (self._batch, self._batch + 1))
        self._batch += 1
        self._left -= grown.walks if grown.walks else self._left  # without a walk, all positions are proved
        if not grown.adds_up:
            self.tree.total = UNRELATED
            self._left = 0
        return grown.walks


class Teacher:
    """The matches, the samples and the value of a game.

    In each match, one role searches with the value, the *informed* role, and the others without it. So the matches
    also show what the value is worth, and which weight its minimax values deserve: each informed role tries one of
    `settings.weights`. A value that does harm with every weight is not used.

    Args:
        game: game that the native engine, or another engine with a circuit, plays
        key: key of the random numbers
        growth: parameters of the searches
        settings: parameters of the lessons

    `is_done` says whether the budget is used up, or the searches give no samples, as in a game without positions in
    which one role moves alone. `simulations` is the number of all walks so far. `records` has one record for each
    weight.
    """

    def __init__(self, game: Game, key: np.uint64, growth: GrowthSettings, settings: TeachingSettings) -> None:
        self.game, self.settings = game, settings
        self._growth = replace(growth, least=settings.batch)
        self.simulations = 0
        self.is_done = settings.simulations == 0
        self.weights = settings.weights if growth.minimax is None else (growth.minimax,)
        self.records = [Record(game.num_roles) for _ in self.weights]
        self._taught: LinearValue | None = None
        self._rng = np.random.default_rng(int(key))
        kinds = 1 + len(self.weights)  # of searches: without the value, and with each weight
        self._forests = [_Forest(game, self._growth, np.uint64(extend(key, number))) for number in range(kinds)]
        self._samples = _Samples(game)
        lanes = np.arange(settings.matches)
        self._states = np.repeat(game.initial[None], settings.matches, axis=0)
        self._plies = np.zeros(settings.matches, np.int32)
        self._openings = self._drawn_openings(settings.matches)
        self._roles = lanes % game.num_roles  # that are informed
        self._tried = lanes // game.num_roles % len(self.weights)  # the weight that this role tries
        self._generation_ends = min(settings.first, settings.simulations)
        self._plant()

    @property
    def value(self) -> LinearValue | None:
        """What the last generation has taught, with a weight; None before, and if it did harm with all weights.

        The weight is the first one, unless another is ahead by more than twice the standard error of the difference.
        The matches are those of short searches, and the best weight grows with the length of a search. Harm is a
        disadvantage of more than its standard error.
        """
        if self._taught is None or all(sum(record.advantage) < 0 for record in self.records):
            return None
        (first, error), *others = (record.advantage for record in self.records)
        leads = [(mean - first) - _ERRORS * np.hypot(error, own) for mean, own in others]
        best = int(np.argmax([0.0, *leads]))
        return replace(self._taught, minimax=self.weights[best])

    def teach(self, deadline: float | None = None) -> None:
        """Go on with teaching until it is done, or until the deadline, in seconds of `time.monotonic`."""
        while not self.is_done and (deadline is None or monotonic() < deadline):
            growing = next((forest for forest in self._forests if not forest.is_done), None)
            if growing is not None:
                self.simulations += growing.grow()
                continue
            for forest in self._forests:
                self._samples.add(forest.tree, self.settings.least, forest.grower.prior.visits)
            self._move()
            if self.simulations >= self._generation_ends or not self._samples.num:
                self._end_generation()
            self._plant()
        if self.is_done:
            self._forests.clear()  # they take more memory than all the rest

    def _plant(self) -> None:
        """Begin the searches of the present positions."""
        counts = self.game.legal(self._states).by_role(self.game.num_roles)[1]
        lanes = np.arange(len(self._states))
        is_informed = (counts[lanes, self._roles] > 1) & (self._taught is not None)
        kinds = np.where(is_informed, 1 + self._tried, 0)
        for kind, forest in enumerate(self._forests):
            forest.plant(self._states, lanes[kinds == kind], self.settings.walks)

    def _end_generation(self) -> None:
        """Fit the next value to the samples, and forget them."""
        self.is_done = self.simulations >= self.settings.simulations or not self._samples.num
        if not self._samples.num:
            return
        self._taught = self._samples.fit(self._taught, self.settings.ridge)
        for weight, forest in zip(self.weights, self._forests[1:], strict=True):
            forest.grower.prior = replace(self._taught, minimax=weight).prior(self._growth)
        self._samples.clear()
        self._generation_ends = self._next_end()

    def _next_end(self) -> int:
        """Return the number of walks at which the present generation ends. The last one takes all that is left."""
        first, end = self.settings.first, 2 * self._generation_ends + self.settings.first
        return end if 2 * end + first <= self.settings.simulations else self.settings.simulations

    def _drawn_openings(self, num: int) -> NDArray[np.int32]:
        """Return the number of random plies at the beginning of some matches."""
        return self._rng.integers(0, self.settings.opening + 1, num, dtype=np.int32)

    def _move(self) -> None:
        """Make a move in each match; begin a new match where one is over."""
        self._plies += 1
        for forest in self._forests:
            running = forest.tree.arrays.counts[: len(forest.lanes)].all(axis=1)
            joint = np.array([self._joint(forest, root) for root in np.flatnonzero(running).tolist()], np.int32)
            if len(joint):
                lanes = forest.lanes[running]
                self._states[lanes] = self.game.next(self._states[lanes], joint)
        legal = self.game.legal(self._states).by_role(self.game.num_roles)[1]
        over = np.flatnonzero(~legal.all(axis=1) | (self._plies > self._growth.max_plies))
        if not len(over):
            return
        if self._taught is not None:
            goals = self.game.evaluate(self._states[over])[1]
            for tried, record in enumerate(self.records):
                own = self._tried[over] == tried
                record.add(self._roles[over[own]], goals[own])
        self._states[over] = self.game.initial
        self._plies[over] = 0
        self._openings[over] = self._drawn_openings(len(over))
        self._roles[over] = (self._roles[over] + 1) % self.game.num_roles
        self._tried[over] = (self._tried[over] + (self._roles[over] == 0)) % len(self.weights)

    def _joint(self, forest: _Forest, root: int) -> list[int]:
        """Return the actions of all roles in a match: the best moves, see `best_of`, or random ones."""
        arrays, actions, lane = forest.tree.arrays, [], forest.lanes[root]
        is_random = self._plies[lane] <= self._openings[lane] or self._rng.random() < self.settings.random
        for role in range(self.game.num_roles):
            first, count = forest.tree.span(root, role)
            noise = self._rng.integers(1 << 62, dtype=np.uint64)
            index = int(noise) % count if is_random else best_of(reports_of(forest.tree, root, role), noise)
            actions.append(int(arrays.actions[first + index]))
        return actions


class Record:
    """Matches of each role, [without, with] the value: their number, and the sums of goals and of squared goals."""

    def __init__(self, num_roles: int) -> None:
        self.num, self._goals, self._squares = np.zeros((3, 2, num_roles))

    def add(self, informed: NDArray[np.int64], goals: NDArray[np.int16]) -> None:
        """Add matches: the informed role, int64[n], and the goals of all roles, int16[n, roles]."""
        for role in range(goals.shape[1]):
            for kind, own in enumerate((informed != role, informed == role)):
                reached = np.maximum(goals[own, role], 0).astype(np.float64)
                self._goals[kind, role] += reached.sum()
                self._squares[kind, role] += (reached**2).sum()
                self.num[kind, role] += own.sum()

    @property
    def advantage(self) -> tuple[float, float]:
        """Mean difference of goals with and without the value over all roles, and its standard error.

        Both are 0 if no role has matches of both kinds. The goals of a match depend on each other, so the error is that
        of independent goals times the square root of the number of roles, which it cannot exceed.
        """
        both = (self.num > 0).all(axis=0)
        if not both.any():
            return 0.0, 0.0
        num = self.num[:, both]
        means = self._goals[:, both] / num
        variances = (self._squares[:, both] / num - means**2) / num
        return float((means[1] - means[0]).mean()), float(np.sqrt(self.num.shape[1] * variances.sum()) / both.sum())


class _Samples:
    """Sums of a ridge regression for each role: `x` are the features of a position, with a 1 at the end; `y` its value.

    num      number of samples
    moments  float64[roles, features + 1, features + 1], sum of weight * x x'
    targets  float64[roles, features + 1], sum of weight * x y
    """

    def __init__(self, game: Game) -> None:
        self._num_facts = 64 * game.num_words
        self._class_of = fact_classes(game)
        self._num_classes = int(self._class_of.max()) + 1
        self.num = 0
        size = self._num_classes + 1
        self.moments, self.targets = np.zeros((game.num_roles, size, size)), np.zeros((game.num_roles, size))

    def clear(self) -> None:
        self.num = 0
        self.moments[:] = 0.0
        self.targets[:] = 0.0

    def add(self, tree: Tree, least: int, virtual: int) -> None:
        """Add the moves of all nodes of a tree that have at least `least` visits without the virtual ones."""
        arrays = tree.arrays
        nodes = np.arange(int(arrays.size[NUM_NODES]))
        nodes = nodes[arrays.nodes[nodes, EDGE] >= 0]
        parents, edges = arrays.nodes[nodes, PARENT], arrays.nodes[nodes, EDGE]
        visits = arrays.visits[edges] - virtual
        keep = visits >= least
        nodes, edges, movers = nodes[keep], edges[keep], arrays.nodes[parents[keep], MOVER]
        values, weights = arrays.sums[edges] / arrays.visits[edges], np.sqrt(visits[keep])
        for role in range(len(self.targets)):
            own = movers == role
            features = self._features(arrays.states[nodes[own]])
            weighted = features * weights[own, None]
            self.moments[role] += weighted.T @ features
            self.targets[role] += weighted.T @ values[own]
        self.num += len(nodes)

    def _features(self, states: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the number of facts of each class that hold, then 1: float64[n, classes + 1]."""
        facts = unpack_bits(states, self._num_facts)
        features = np.ones((len(states), self._num_classes + 1))
        features[:, :-1] = facts if self._num_classes == self._num_facts else facts @ self._tied
        return features

    @property
    def _tied(self) -> NDArray[np.float32]:
        tied = np.zeros((self._num_facts, self._num_classes), np.float32)
        tied[np.arange(self._num_facts), self._class_of] = 1
        return tied

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
                continue
            centre = np.zeros(self._num_classes + 1)
            if before is not None:
                centre[:-1], centre[-1] = before.weights[role, firsts], before.constants[role]
            penalty = np.full(self._num_classes + 1, ridge * total)
            penalty[-1] = 1e-9 * total
            solved = np.linalg.solve(self.moments[role] + np.diag(penalty), self.targets[role] + penalty * centre)
            weights[role], constants[role] = solved[:-1][self._class_of], solved[-1]
        return LinearValue(weights, constants)


def fact_classes(game: Game) -> NDArray[np.int64]:
    """Return the class of each bit of a state, int64[64 * words], from 0 on; symmetries map each class onto itself.

    In a large game, each fact is a class of its own.
    """
    classes = np.arange(64 * game.num_words)
    circuit = game.circuit
    if circuit is not None and circuit.num_facts + circuit.num_actions <= _MOST_POINTS:
        group = symmetries(game, _SYMMETRY_BOUNDS)
        classes[: circuit.num_facts] = group.facts.min(
            axis=0
        )  # the elements are a group, so this is the same in an orbit
    return np.unique(classes, return_inverse=True)[1]
