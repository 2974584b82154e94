"""Search of a match: one tree that follows the match, grows within a budget, and answers which move is best."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..players.position_graph import MIB
from ..players.random_streams import extend
from .native_growth import grower
from .settings import MEMORY_MIB, GrowthSettings
from .tree import HIGHEST_GOAL, PROVED, STAGE, UNRELATED, VISITS, Tree, child_of, room_in, total_of_goals
from .value import LinearValue, Prior, no_prior

if TYPE_CHECKING:
    from ..game.game import Game

SLICE = 0.004  # seconds of one call of compiled code; Ctrl-C and messages are answered between calls
MOST_BATCHES = 64  # of one call without a deadline
_NO_LIMIT = 1 << 60  # walks
_MANY_PLIES = 1 << 20


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What a search knows about a move of the position at its root.

    visits     number of walks through the move
    mean       mean goal of these walks and of the virtual visits of the prior, 0 to 100; nan without walks
    low, high  proved bounds on the goal that the move leads to
    plies      number of plies to the end if the value is proved, else None
    is_closed  whether the search has shown that another move is at least as good
    """

    index: int
    visits: int
    mean: float
    low: int
    high: int
    plies: int | None
    is_closed: bool

    @property
    def is_proved(self) -> bool:
        return self.low == self.high


class Stem:
    """A tree that follows a match, and what grows it. The threads of a search have a stem each."""

    def __init__(self, game: Game, settings: GrowthSettings, memory: float) -> None:
        self.grower = grower(game, settings)
        self.tree = Tree(game, *room_in(game, int(memory * MIB)))
        self._key = np.uint64(0)
        self._num_batches = 0

    def begin(self, state: NDArray[np.uint64], key: np.uint64, prior: Prior, total: int) -> None:
        """Begin a new tree below a state, uint64[words]; for `total` see `Tree`."""
        self.grower.prior, self.tree.total, self._key, self._num_batches = prior, total, key, 0
        self.tree.start(state)

    def follow(self, choices: NDArray[np.int32]) -> None:
        """Go to the position after a joint move, int32[roles] as indices into the legal moves; keep its subtree."""
        if not self.tree.advance(choices):
            game, state = self.tree.game, self.tree.state[None]
            legal = game.legal(state)
            joint = legal.actions[legal.by_role(game.num_roles)[0][0] + choices]
            self.tree.start(game.next(state, joint[None])[0])

    @property
    def is_proved(self) -> bool:
        return bool(self.tree.arrays.nodes[0, STAGE] == PROVED)

    @property
    def visits(self) -> int:
        return int(self.tree.arrays.nodes[0, VISITS])

    def grow(self, walks: int, batches: int) -> int:
        """Grow the tree by some batches, make room if it is full, and return the number of walks."""
        first = self._num_batches
        try:
            grown = self.grower.grow(self.tree, walks, self._key, (first, first + batches))
        except BaseException:  # also Ctrl-C: the tree may be incomplete
            self.tree.start(self.tree.state.copy())
            raise
        self._num_batches += grown.batches
        if not grown.adds_up:
            self.tree.total = UNRELATED
            self.tree.start(self.tree.state.copy())  # its bounds may be wrong
        if not grown.walks and walks and not self.is_proved:
            self.tree.prune()
        return grown.walks


class Search:
    """The trees that follow a match: one for each thread, with random numbers of its own.

    The threads do not wait for each other: the results of their trees are added up when a move is chosen (root
    parallelisation; Chaslot, Winands & van den Herik 2008). So the result is a function of state, key and settings.

    Args:
        game: game of the match
        settings: parameters of the growth
        memory: limit on the memory of the trees in MiB. If a tree is full, its nodes with the fewest visits are dropped
        threads: number of trees
    """

    def __init__(
        self, game: Game, settings: GrowthSettings | None = None, memory: float = MEMORY_MIB, threads: int = 1
    ) -> None:
        self.game = game
        self.settings = settings or GrowthSettings()
        self.num_walks = 0
        self._stems = [Stem(game, self.settings, memory / threads) for _ in range(threads)]
        self._total = total_of_goals(game, self.settings.max_plies)
        self._each = 0.0  # seconds of a batch
        self.key = np.uint64(0)
        self._has_begun = False
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def begin(self, state: NDArray[np.uint64], key: np.uint64, value: LinearValue | None = None) -> None:
        """Begin new trees below a state, uint64[words], with the random numbers of a key and a learned value."""
        prior = value.prior(self.settings) if value else no_prior(self.game)
        self.key, self._has_begun = key, True
        for number, stem in enumerate(self._stems):
            stem.begin(state, np.uint64(extend(key, number)) if number else key, prior, self._total)

    def follow(self, choices: NDArray[np.int32]) -> None:
        """Go to the position after a joint move, int32[roles] as indices into the legal moves; keep what is below."""
        for stem in self._stems:
            stem.follow(choices)

    def is_at(self, state: NDArray[np.uint64]) -> bool:
        """Return whether the root is the position with this state, uint64[words]."""
        return self._has_begun and bool(np.array_equal(self.state, state))

    @property
    def state(self) -> NDArray[np.uint64]:
        """The state at the root, uint64[words]."""
        return self._stems[0].tree.state

    @property
    def is_proved(self) -> bool:
        """Whether the values of the position at the root are proved."""
        return any(stem.is_proved for stem in self._stems)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all trees."""
        return sum(stem.tree.num_nodes for stem in self._stems)

    @property
    def visits(self) -> int:
        """Number of walks from the roots that the trees remember."""
        return sum(stem.visits for stem in self._stems)

    def run(self, simulations: int | None = None, deadline: float | None = None) -> int:
        """Grow the trees until a budget is used up or the position is proved.

        Args:
            simulations: number of walks in all trees; None for no limit
            deadline: end of the search in seconds of `time.monotonic`; None for no limit

        Returns:
            The number of walks.
        """
        limit, threads = simulations if simulations is not None else _NO_LIMIT, len(self._stems)
        left = [(limit + number) // threads for number in range(threads)]
        batches, stalled = 1, 0  # of the next call; number of calls without a walk
        while any(left) and stalled < 2 and not self.is_proved:
            begin = monotonic()
            if deadline is not None:
                batches = min(batches, self._fitting(deadline - begin))
            if batches < 1:
                break
            grown = self._grow(left, batches)
            left = [walks - done for walks, done in zip(left, grown, strict=True)]
            stalled = 0 if any(grown) else stalled + 1  # a full tree makes room in a call without a walk
            self._each = max((monotonic() - begin) / batches, 1e-6)
            # without a deadline by number, because a proof ends the search of all threads after a call
            most = MOST_BATCHES if deadline is None else max(1, int(SLICE / self._each))
            batches = min(most, 2 * batches)
        done = limit - sum(left)
        self.num_walks += done
        return done

    def _fitting(self, seconds: float) -> int:
        """Return the number of batches that fit into this time; at least 1 if nothing is known of the root's moves."""
        if seconds <= 0:
            return 0
        return max(int(seconds / self._each) if self._each else 1, int(self.visits == 0))

    def _grow(self, walks: list[int], batches: int) -> list[int]:
        """Grow each tree by some batches, at most by its number of walks; return the numbers of walks."""
        others = [] if self._pool is None else list(zip(self._stems[1:], walks[1:], strict=True))
        running = [self._pool.submit(stem.grow, most, batches) for stem, most in others] if self._pool else []
        try:
            first = self._stems[0].grow(walks[0], batches)
        finally:
            wait(running)
        return [first, *(thread.result() for thread in running)]

    def moves(self, role: int) -> list[MoveReport]:
        """Return what the search knows about the legal moves of a role, in their order."""
        reports = [_reports(stem.tree, 0, role) for stem in self._stems]
        return reports[0] if len(reports) == 1 else _together(reports)

    def choice(self, role: int, noise: np.uint64) -> int:
        """Return the index of the best move of a role. Among equal moves, `noise` decides.

        If the value of the best move is proved, this is the move that reaches it fastest, or, if the role gets nothing,
        the move that takes longest. Otherwise it is the move with the most visits among those that are not closed.
        """
        return _best(self.moves(role), noise)

    def line(self, most: int = 20) -> list[tuple[int, ...]]:
        """Return the best joint moves from the root on, see `choice`, as indices into the legal moves of each role."""
        node, joint, roles = 0, list[tuple[int, ...]](), range(self.game.num_roles)
        tree = next((stem for stem in self._stems if stem.is_proved), self._stems[0]).tree
        while len(joint) < most and tree.arrays.counts[node].all():
            known = [_reports(tree, node, role) if node else self.moves(role) for role in roles]
            choices = np.array([_best(reports, self.key) for reports in known], np.int32)
            node = child_of(tree.arrays, node, choices)
            if node < 0:
                break
            joint.append(tuple(choices.tolist()))
        return joint


def _reports(tree: Tree, node: int, role: int) -> list[MoveReport]:
    """Return what a tree knows about the moves of a role in a node."""
    arrays = tree.arrays
    first, count = tree.span(node, role)
    counted = int(arrays.visits[first : first + count].sum())  # none for a role without a choice
    virtual = max(counted - int(arrays.nodes[node, VISITS]), 0) // max(count, 1)  # of each move, see value.py
    reports = []
    for index, move in enumerate(range(first, first + count)):
        child = int(arrays.child[move])
        low, high = 0, int(tree.tops[role])
        if child >= 0:
            low, high = int(arrays.low[child, role]), int(arrays.high[child, role])
        visits = int(arrays.visits[move]) - virtual
        mean = HIGHEST_GOAL * float(arrays.sums[move] / arrays.visits[move]) if visits else float("nan")
        is_proved = child >= 0 and arrays.nodes[child, STAGE] == PROVED
        plies = int(arrays.plies[child]) + 1 if is_proved else None
        reports.append(MoveReport(index, visits, mean, low, high, plies, bool(arrays.closed[move])))
    return reports


def _together(reports: Sequence[Sequence[MoveReport]]) -> list[MoveReport]:
    """Add up what several trees know about the moves of a role."""
    moves = [_sum(own) for own in zip(*reports, strict=True)]
    least = max(move.low for move in moves)
    keepers = [move for move in moves if move.low == least]
    if all(move.is_closed for move in keepers):  # each tree kept another one open
        keeper = max(keepers, key=lambda move: (move.high, move.visits))
        moves[keeper.index] = replace(keeper, is_closed=False)
    return moves


def _sum(reports: Sequence[MoveReport]) -> MoveReport:
    """Add up what several trees know about a move."""
    visits = sum(report.visits for report in reports)
    total = sum(report.visits * report.mean for report in reports if report.visits)
    plies = [report.plies for report in reports if report.plies is not None]
    return replace(
        reports[0],
        visits=visits,
        mean=total / visits if visits else float("nan"),
        low=max(report.low for report in reports),
        high=min(report.high for report in reports),
        plies=min(plies, default=None),
        is_closed=any(report.is_closed for report in reports),
    )


def _best(moves: list[MoveReport], noise: np.uint64) -> int:
    """Return the index of the best of the moves of a role; see `Search.choice`."""
    least = max(move.low for move in moves)
    drawn = extend(noise, np.arange(len(moves)))
    if all(move.high <= least for move in moves):
        return max(moves, key=lambda move: (move.low == least, *_pace(move, least), drawn[move.index])).index
    return max(moves, key=lambda move: (not move.is_closed, move.visits, drawn[move.index])).index


def _pace(move: MoveReport, least: int) -> tuple[int, int]:
    """Return how fast a proved move reaches its end, the better the higher; slow is better if the role gets nothing."""
    if least == 0:
        return (move.plies or 0, move.visits)
    return (-move.plies if move.plies is not None else -_MANY_PLIES, move.visits)
