"""Growth of a tree, batch by batch: the walks, their evaluation by machine code, and the way back.

A batch has up to 512 playouts, because the machine code plays 512 matches in hardly more time than one. All its walks
end before the first of them is backed up, so a large batch in a small tree explores too much. Its number of walks is
therefore limited to a share of the visits of the root, and free lanes go to further playouts from the same leaves.

`EngineGrower` does this step by step, with any engine. native_growth.py does the same in one compiled loop. The result
of a given number of walks is a function of the tree, the key, the settings, the prior and the size of first batches.

A tree can have several roots, which are its first nodes. The walks then begin at each of them in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..circuit.tape import LANES
from ..game.engines import HIGHEST_GOAL
from ..players.kernel import I32, I16x2, kernel, lazy_zeros
from ..players.random_streams import mix
from ..players.uct import playout_goals
from .settings import GrowthSettings
from .simultaneous import joint_rule
from .tree import (
    NUM_MOVES,
    NUM_NODES,
    NUM_ROOTS,
    PROVED,
    PROVES,
    RESERVED,
    SOLE_WINNER,
    STAGE,
    UNRELATED,
    VISITS,
    Tree,
    TreeArrays,
)
from .value import Prior, no_prior, upper_bound
from .walks import (
    WalkBatch,
    add_ends,
    add_priors,
    attach,
    back_up,
    begin,
    childless,
    descend,
    end_listing,
    is_fresh,
    list_moves,
    next_children,
    note_values,
    open_ends,
    scouts,
    unlisted,
    withdraw,
)

if TYPE_CHECKING:
    from ..game.game import Game


T = TypeVar("T")
_STEPS_OF_WALK = 1024  # of a walk of the largest batch, on average; walks end where there is no room for steps


class Grown(NamedTuple):
    """Result of a call of `Grower.grow`.

    walks       number of walks
    batches     number of batches
    as_assumed  False if the goals of a playout were not as `Tree.assumption` says
    is_full     whether it ended because the tree has no room for another batch
    """

    walks: int
    batches: int
    as_assumed: bool
    is_full: bool = False


class Grower(Protocol):
    """Way to grow trees of one game.

    prior  the prior of new moves
    least  number of walks of the first batches; at first the one of the settings
    """

    prior: Prior
    least: int

    def grow(
        self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int], seconds: float | None = None
    ) -> Grown:
        """Grow a tree by at most `walks` walks.

        Stop early if the tree is full, its root is proved or time runs out. Without a limit on time, a call for the
        batches (0, 5) and then one for (5, 9) have the same result as a call for (0, 9).

        Args:
            key: key of the random numbers
            batches: number of the first batch, and of the batch before which to stop
            seconds: limit on the time. The first batch is always grown. Another one begins only if it would end in
                time, were it as long as the one before. On the reasoner, where one playout can take seconds, a batch
                whose playout is under way when time runs out is withdrawn
        """
        ...


def in_threads(pool: ThreadPoolExecutor | None, tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of tasks that run at the same time: the first one in this thread, the others in the pool.

    All have ended when this returns, however often it is interrupted: they change trees.
    """
    others = list[Future[T]]()
    try:
        for task in tasks[1:]:
            assert pool is not None
            others.append(pool.submit(task))
        first = tasks[0]()
    finally:
        _wait_for(others)
    return [first, *(other.result() for other in others)]


def _wait_for(others: Sequence[Future[T]]) -> None:
    """Wait until all are done; an interruption is raised only then."""
    try:
        wait(others)
    except KeyboardInterrupt:
        _wait_for(others)
        raise


def batch_of(game_roles: int) -> WalkBatch:
    """Return arrays for the largest batch."""
    ends, lasts, order = np.zeros((3, LANES), np.int32)
    steps, num_steps = lazy_zeros((_STEPS_OF_WALK * LANES, 4), np.int32), np.zeros(1, np.int64)
    choices, values = np.zeros((LANES, game_roles), np.int32), np.zeros((LANES, game_roles))
    return WalkBatch(ends, lasts, steps, num_steps, choices, order, values)


@kernel
def reserve(tree: TreeArrays, most_moves: int, left: int, least: int, share: int, leaves: int) -> int:
    """Return the number of walks of the next batch, and reserve the room that it needs; `release_room` gives it back.

    It is 0 if all roots are proved or no walk is left, and -1 if the tree is full: if it has no room for the nodes of a
    first batch with `most_moves` moves each.
    """
    open_roots, visits = 0, 0
    for root in range(tree.size[NUM_ROOTS]):
        open_roots += tree.nodes[root, STAGE] != PROVED
        visits += tree.nodes[root, VISITS]
    if open_roots == 0 or left <= 0:
        return 0
    least = min(leaves, least * tree.size[NUM_ROOTS])
    size = min(leaves, max(least, visits // share), left)
    room = min(tree.nodes.shape[0] - tree.size[NUM_NODES], (tree.actions.size - tree.size[NUM_MOVES]) // most_moves)
    room -= tree.size[RESERVED]
    if room < min(size, least):
        return -1
    size = min(size, room)
    tree.size[RESERVED] += size
    return int(size)


@kernel
def release_room(tree: TreeArrays, walks: int) -> None:
    """Give back the room for a batch with so many walks, whose nodes and moves are in the tree."""
    tree.size[RESERVED] -= walks


@kernel
def as_assumed(goals: I16x2, steps: I32, max_plies: int, assumption: int) -> bool:
    """Return whether the goals in every row are as `assumption` says; True for UNRELATED.

    A missing goal counts as 0, as in the bounds of a node in which the match is over. A playout that was cut says
    nothing.

    Args:
        goals: int16[n, roles], -1 for a missing goal
        steps: int32[n], lengths of the playouts, 0 at the end of a match
        max_plies: length at which a playout is cut
        assumption: see `Tree`
    """
    for row in range(goals.shape[0] if assumption != UNRELATED else 0):
        own, highest = 0, 0
        for role in range(goals.shape[1]):
            own += max(goals[row, role], 0)
            highest = max(highest, goals[row, role])
        wanted = HIGHEST_GOAL if assumption == SOLE_WINNER else assumption
        says_something = assumption != SOLE_WINNER or highest >= HIGHEST_GOAL
        if steps[row] < max_plies and says_something and own != wanted:
            return False
    return True


def walks_left(tree: Tree, grown: Grown, left: int, whole: int) -> int:
    """Return how many of the `left` walks below the roots of a tree are left after a batch.

    After a batch without a walk none are: all positions are proved, or the tree is full. Where goals were not as
    assumed, the trees begin anew, with all walks of the round.
    """
    if not grown.as_assumed:
        tree.drop_assumption()
        return whole
    return left - grown.walks if grown.walks else 0


class EngineGrower:
    """Growth with the methods of a game, one call for each step of a batch."""

    def __init__(self, game: Game, settings: GrowthSettings) -> None:
        self._game = game
        self._settings = settings
        self._batch, self._scouts, self._rule = batch_of(game.num_roles), scouts(), joint_rule(settings)
        self.prior, self.least = no_prior(game), settings.least

    def grow(
        self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int], seconds: float | None = None
    ) -> Grown:
        """See `Grower.grow`."""
        done, holds, settings = 0, True, self._settings
        tree.arrays.size[PROVES] = settings.proofs
        now = monotonic()
        end = inf if seconds is None else now + seconds
        for number in range(*batches):
            limits = self.least, settings.share, settings.leaves
            size = reserve(tree.arrays, tree.most_actions, walks - done, *limits)
            batch_holds = self._grow_batch(tree, size, mix(key, np.uint64(number)), end) if size > 0 else None
            if batch_holds is None:
                return Grown(done, number - batches[0], holds, size < 0)
            holds &= batch_holds
            done += size
            before, now = now, monotonic()
            # where goals do not add up, stop at once, so that the result does not depend on the batches of a call
            if not holds or 2 * now - before > end:
                return Grown(done, number - batches[0] + 1, holds)
        return Grown(done, batches[1] - batches[0], holds)

    def _grow_batch(self, tree: Tree, size: int, key: np.uint64, end: float) -> bool | None:
        """Grow the tree by one batch; return `as_assumed` of its playouts, None if it was withdrawn."""
        game, arrays, batch, settings = self._game, tree.arrays, self._batch, self._settings
        holds = True
        states, joint = np.empty((LANES, game.num_words), np.uint64), np.empty((LANES, game.num_roles), np.int32)
        if settings.scout and is_fresh(arrays, batch):
            num_roots = int(arrays.size[NUM_ROOTS])
            holds &= self._scout(tree, num_roots, states, joint)
            self._end_listing(tree, num_roots)
        choosing = upper_bound(settings, self.prior, tree.assumption), self._rule, key, False
        begin(arrays, batch, size)
        descend(arrays, batch, size, *choosing)
        count = unlisted(arrays, batch, size)
        if count:
            legal = game.legal(arrays.states[batch.order[:count]])
            tree.check_room(len(legal.actions))
            list_moves(arrays, batch, count, legal.offsets, legal.actions)
            if settings.scout:
                holds &= self._scout(tree, count, states, joint)
            self._end_listing(tree, count)
            descend(arrays, batch, size, *choosing)
        new = childless(arrays, batch, size, states, joint)
        if new:
            children = game.next(states[:new], joint[:new])
            attach(arrays, batch, new, children, self._rule, settings.transpositions, tree.tops)
        release_room(arrays, size)
        playouts = min(settings.playouts, LANES // size)
        count = open_ends(arrays, batch, size, playouts, states)
        played = self._played(states[:count], key, end)
        if played is None:
            withdraw(arrays, batch, size, self._rule)
            return None
        back_up(arrays, batch, size, playouts, self.prior, self._rule, *played, tree.tops, tree.assumption)
        return holds and as_assumed(*played, settings.max_plies, tree.assumption)

    def _end_listing(self, tree: Tree, count: int) -> None:
        """Let walks go on from the first `count` nodes in the batch, whose moves are listed now."""
        add_priors(tree.arrays, self._batch, count, self.prior)
        end_listing(tree.arrays, self._batch, count, self.prior, tree.tops, tree.assumption)

    def _played(self, states: NDArray[np.uint64], key: np.uint64, end: float) -> tuple[I16x2, I32] | None:
        """Return goals and lengths of random playouts (on the reasoner, 0 or 1); None if time ran out there.

        The length is 0 where a match is over: in a terminal state, and where a role has no move.
        """
        game, most = self._game, self._settings.max_plies
        if not game.uses_reasoner:
            played = game.rollouts(states, int(key), threads=1, max_steps=most)
            return played.goals, played.steps
        goals = playout_goals(game, states[None], np.array([key]), max_plies=most, deadline=end)
        if goals is None:
            return None
        return goals[0], (game.legal(states).num_joint(game.num_roles) > 0).astype(np.int32)

    def _scout(self, tree: Tree, count: int, states: NDArray[np.uint64], joint: NDArray[np.int32]) -> bool:
        """Look at the children of the first `count` nodes in the batch; return `as_assumed` of the ends among them."""
        game, arrays, rows, holds = self._game, tree.arrays, self._scouts, True
        rows.cursor[:] = 0
        while size := next_children(arrays, self._batch, count, rows, states, joint):
            children = game.next(states[:size], joint[:size])
            if self.prior.visits:
                note_values(arrays, rows, size, children, self.prior)
            terminal, goals = game.evaluate(children)
            ended = np.flatnonzero(terminal)
            add_ends(arrays, rows, children, ended, goals[ended], tree.tops)
            holds &= as_assumed(goals[ended], np.zeros(len(ended), np.int32), self._settings.max_plies, tree.assumption)
        return holds
