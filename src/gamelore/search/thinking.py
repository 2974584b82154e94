"""Search of a match: one tree that follows the match, grows within a budget, and answers which move is best."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..players.position_graph import MIB
from ..players.random_streams import extend
from .native_growth import grower
from .settings import MEMORY_MIB, GrowthSettings
from .tree import HIGHEST_GOAL, PROVED, STAGE, UNRELATED, VISITS, Tree, child_of, room_in, total_of_goals
from .value import LinearValue, no_prior

if TYPE_CHECKING:
    from ..game.game import Game

SLICE = 0.004  # seconds of one call of compiled code; Ctrl-C and messages are answered between calls
MOST_BATCHES = 1 << 12  # of one call
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


class Search:
    """A tree that follows a match.

    Args:
        game: game of the match
        settings: parameters of the growth
        memory: limit on the memory of the tree in MiB. If it is full, the nodes with the fewest visits are dropped
    """

    def __init__(self, game: Game, settings: GrowthSettings | None = None, memory: float = MEMORY_MIB) -> None:
        self.game = game
        self.settings = settings or GrowthSettings()
        self.num_walks = 0
        self._grower = grower(game, self.settings)
        self._tree = Tree(game, *room_in(game, int(memory * MIB)))
        self._total = total_of_goals(game, self.settings.max_plies)
        self._each = 0.0  # seconds of a batch
        self.key = np.uint64(0)
        self._num_batches = 0
        self._has_begun = False

    def begin(self, state: NDArray[np.uint64], key: np.uint64, value: LinearValue | None = None) -> None:
        """Begin a new tree below a state, uint64[words], with the random numbers of a key and a learned value."""
        self._grower.prior = value.prior(self.settings) if value else no_prior(self.game)
        self._tree.total = self._total
        self._tree.start(state)
        self.key = key
        self._num_batches = 0
        self._has_begun = True

    def follow(self, choices: NDArray[np.int32]) -> None:
        """Go to the position after a joint move, int32[roles] as indices into the legal moves; keep its subtree."""
        if not self._tree.advance(choices):
            legal = self.game.legal(self.state[None])
            joint = legal.actions[legal.by_role(self.game.num_roles)[0][0] + choices]
            self._tree.start(self.game.next(self.state[None], joint[None])[0])

    def is_at(self, state: NDArray[np.uint64]) -> bool:
        """Return whether the root is the position with this state, uint64[words]."""
        return self._has_begun and bool(np.array_equal(self.state, state))

    @property
    def state(self) -> NDArray[np.uint64]:
        """The state at the root, uint64[words]."""
        return self._tree.state

    @property
    def is_proved(self) -> bool:
        """Whether the values of the position at the root are proved."""
        return bool(self._tree.arrays.nodes[0, STAGE] == PROVED)

    @property
    def num_nodes(self) -> int:
        return self._tree.num_nodes

    @property
    def visits(self) -> int:
        """Number of walks from the root that the tree remembers."""
        return int(self._tree.arrays.nodes[0, VISITS])

    def run(self, simulations: int | None = None, deadline: float | None = None) -> int:
        """Grow the tree until a budget is used up or the root is proved.

        Args:
            simulations: number of walks; None for no limit
            deadline: end of the search in seconds of `time.monotonic`; None for no limit

        Returns:
            The number of walks.
        """
        done, limit = 0, simulations if simulations is not None else 1 << 60
        batches = 1  # of the next call
        while done < limit and not self.is_proved:
            begin = monotonic()
            if deadline is not None:
                batches = min(batches, self._fitting(deadline - begin))
            if batches < 1:
                break
            grown = self._grow(limit - done, batches)
            done += grown
            if not grown and not self.is_proved and not self._tree.prune():
                break
            self._each = max((monotonic() - begin) / batches, 1e-6)
            batches = min(MOST_BATCHES, max(1, int(SLICE / self._each)), 2 * batches)
        self.num_walks += done
        return done

    def _fitting(self, seconds: float) -> int:
        """Return the number of batches that fit into this time; at least 1 if nothing is known of the root's moves."""
        if seconds <= 0:
            return 0
        return max(int(seconds / self._each) if self._each else 1, int(self.visits == 0))

    def _grow(self, walks: int, batches: int) -> int:
        """Grow the tree by some batches and return the number of walks."""
        first = self._num_batches
        try:
            grown = self._grower.grow(self._tree, walks, self.key, (first, first + batches))
        except BaseException:  # also Ctrl-C: the tree may be incomplete
            self._tree.start(self.state.copy())
            raise
        self._num_batches += grown.batches
        if not grown.adds_up:
            self._tree.total = UNRELATED
            self._tree.start(self.state.copy())  # its bounds may be wrong
        return grown.walks

    def moves(self, role: int) -> list[MoveReport]:
        """Return what the search knows about the legal moves of a role, in their order."""
        return self._moves(0, role)

    def _moves(self, node: int, role: int) -> list[MoveReport]:
        arrays = self._tree.arrays
        first, count = self._tree.span(node, role)
        walks = int(arrays.nodes[node, VISITS])
        counted = int(arrays.visits[first : first + count].sum())  # none for a role without a choice
        virtual = max(counted - walks, 0) // max(count, 1)  # of each move, see value.py
        reports = []
        for index, move in enumerate(range(first, first + count)):
            child = int(arrays.child[move])
            low, high = 0, int(self._tree.tops[role])
            if child >= 0:
                low, high = int(arrays.low[child, role]), int(arrays.high[child, role])
            visits = int(arrays.visits[move]) - virtual
            mean = HIGHEST_GOAL * float(arrays.sums[move] / arrays.visits[move]) if visits else float("nan")
            is_proved = child >= 0 and arrays.nodes[child, STAGE] == PROVED
            plies = int(arrays.plies[child]) + 1 if is_proved else None
            reports.append(MoveReport(index, visits, mean, low, high, plies, bool(arrays.closed[move])))
        return reports

    def choice(self, role: int, noise: np.uint64) -> int:
        """Return the index of the best move of a role. Among equal moves, `noise` decides.

        If the value of the best move is proved, this is the move that reaches it fastest, or, if the role gets nothing,
        the move that takes longest. Otherwise it is the move with the most visits that may still be the best.
        """
        return _best(self.moves(role), noise)

    def line(self, most: int = 20) -> list[tuple[int, ...]]:
        """Return the best joint moves from the root on, see `choice`, as indices into the legal moves of each role."""
        node, joint = 0, list[tuple[int, ...]]()
        while len(joint) < most and self._tree.arrays.counts[node].all():
            roles = range(self.game.num_roles)
            choices = np.array([_best(self._moves(node, role), self.key) for role in roles], np.int32)
            node = child_of(self._tree.arrays, node, choices)
            if node < 0:
                break
            joint.append(tuple(choices.tolist()))
        return joint


def _best(moves: list[MoveReport], noise: np.uint64) -> int:
    """Return the index of the best of the moves of a role; see `Search.choice`."""
    least = max(move.low for move in moves)
    drawn = extend(noise, np.arange(len(moves)))
    if all(move.high <= least for move in moves):
        return max(moves, key=lambda move: (move.low == least, *_pace(move, least), drawn[move.index])).index
    return max(moves, key=lambda move: (not move.is_closed, move.high > least, move.visits, drawn[move.index])).index


def _pace(move: MoveReport, least: int) -> tuple[int, int]:
    """Return how fast a proved move reaches its end, the better the higher; slow is better if the role gets nothing."""
    if least == 0:
        return (move.plies or 0, move.visits)
    return (-move.plies if move.plies is not None else -_MANY_PLIES, move.visits)
