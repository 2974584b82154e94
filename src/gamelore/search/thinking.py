"""Search of a match: trees that follow the match, grow within a budget, and answer which move is best."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..circuit.tape import LANES
from ..players.position_graph import MIB
from ..players.random_streams import extend
from .choice import MoveReport, best_of, choose, mixes, rank, reports_of, strategy_of, together, width_in
from .growth import Grower, Grown, in_threads
from .native_growth import grower
from .proofs import first_assumption
from .settings import MEMORY_MIB, GrowthSettings
from .tree import PROVED, STAGE, VISITS, Tree, child_of, room_in
from .value import LinearValue, Prior, UpperBound, no_prior, upper_bound

if TYPE_CHECKING:
    from ..game.game import Game

SLICE = 0.05  # seconds of one call of compiled code: threads wait for each other after it, and Ctrl-C until then
MOST_BATCHES = 64  # of one call without a deadline
T = TypeVar("T")
_NO_LIMIT = 1 << 60  # walks, or batches
_FORGETTING = 0.8  # factor of the estimated time of a batch if not even one fits into a search
_DROP_SECONDS = 3e-7  # of a node when nodes are dropped, until it has been measured
_LONGEST_PAUSE = 0.25  # seconds for which a full tree may make room when a move may be asked for at any time
_MOST_VISITS = 1 << 30  # of a root, because trees count visits with 32 bits
_MOST_FIRST = 4  # number of walks of the first batches, as a multiple of `GrowthSettings.least`


class Growers:
    """Growers and threads for searches of a game that run one after another, which share them."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._growers: dict[tuple[int, GrowthSettings, int], Grower] = {}
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def of_tree(self, number: int, settings: GrowthSettings, threads: int) -> Grower:
        """Return the grower of the tree with this number in a search; trees of other numbers grow at the same time."""
        key = number, settings, threads
        if key not in self._growers:
            self._growers[key] = grower(self.game, settings, threads)
        return self._growers[key]

    def pool(self, trees: int) -> ThreadPoolExecutor | None:
        """Return the threads for the trees of a search but the first; None for a single tree."""
        if trees > 1 and trees not in self._pools:
            self._pools[trees] = ThreadPoolExecutor(trees - 1)
        return self._pools.get(trees)


class Stem:
    """A tree that follows a match, and what grows it: one or more threads, which may grow other trees in between."""

    def __init__(self, game: Game, settings: GrowthSettings, memory: float, given: Grower | None = None) -> None:
        self._settings, self.grower = settings, given or grower(game, settings)
        self.tree = Tree(game, *room_in(game, int(memory * MIB)))
        self._key, self._prior = np.uint64(0), no_prior(game)
        self._num_batches, self._drop_seconds = 0, _DROP_SECONDS

    def begin(self, state: NDArray[np.uint64], key: np.uint64, prior: Prior, assumption: int) -> None:
        """Begin a new tree below a state, uint64[words]; for `assumption` see `Tree`."""
        self._prior, self.tree.assumption, self._key, self._num_batches = prior, assumption, key, 0
        self.tree.start(state)

    def follow(self, choices: NDArray[np.int32], deadline: float | None = None) -> None:
        """Go to the position after a joint move, int32[roles] as indices into the legal moves; keep its subtree.

        If dropping the other nodes is expected to take longer than until the deadline, all of them are dropped, which
        takes no time.
        """
        fits = deadline is None or self._time_to_drop <= deadline - monotonic()
        if not fits or not self.tree.advance(choices):
            game, state = self.tree.game, self.tree.state[None]
            legal = game.legal(state)
            joint = legal.actions[legal.by_role(game.num_roles)[0][0] + choices]
            self.tree.start(game.next(state, joint[None])[0])

    @property
    def upper_bound(self) -> UpperBound:
        """Parameters of the upper bound by which walks choose moves."""
        return upper_bound(self._settings, self._prior, self.tree.assumption)

    def reports(self, node: int, role: int) -> list[MoveReport]:
        """Return what the tree knows about the moves of a role in a node."""
        return reports_of(self.tree, node, role, self.upper_bound.minimax)

    def width(self, node: int) -> float | None:
        """Return the width of the lower bounds by which moves in a node are chosen, see `choice.rank`."""
        return width_in(self.tree, node, self._settings, self.upper_bound.exploration)

    @property
    def is_proved(self) -> bool:
        return bool(self.tree.arrays.nodes[0, STAGE] == PROVED)

    @property
    def visits(self) -> int:
        return int(self.tree.arrays.nodes[0, VISITS])

    def grow(self, walks: int, batches: int, seconds: float | None = None, room: float | None = None) -> Grown:
        """Grow the tree by some batches, see `Grower.grow`, and make room if it is full.

        Making room in a tree of a GiB takes half a second or more, so this is done only if `room` seconds are enough.
        """
        # a walk that swerves counts twice, so there may be more visits already
        first, walks = self._num_batches, max(0, min(walks, _MOST_VISITS - self.visits))
        self.grower.prior = self._prior
        try:
            grown = self.grower.grow(self.tree, walks, self._key, (first, first + batches), seconds)
        except BaseException:  # also Ctrl-C: the tree may be incomplete
            self.tree.start(self.tree.state.copy())
            raise
        self._num_batches += grown.batches
        if grown.is_full and not grown.walks:
            self._make_room(room)
        return grown

    def _make_room(self, seconds: float | None) -> None:
        """Drop nodes if this is not expected to take longer."""
        begin, num_nodes = monotonic(), self.tree.num_nodes
        if seconds is None or self._time_to_drop <= seconds:
            self.tree.prune()
            self._drop_seconds = (monotonic() - begin) / max(num_nodes, 1)

    @property
    def _time_to_drop(self) -> float:
        """Seconds that it is expected to take to drop nodes from the tree."""
        return self.tree.num_nodes * self._drop_seconds


class Search:
    """The trees that follow a match: one that all threads share, or one for each thread.

    If each thread has a tree and random numbers of its own, they do not wait for each other: the results of their trees
    are added up when a move is chosen (root parallelisation; Chaslot, Winands & van den Herik 2008). So the result is a
    function of state, key and settings. In a shared tree, the result depends on how the threads run; it is better than
    that of several trees, which find the same things.

    Args:
        game: game of the match
        settings: parameters of the growth
        memory: limit on the memory of the trees in MiB. If a tree is full, its nodes with the fewest visits are dropped
        threads: number of threads; a game whose states the reasoner plays has one, because the reasoner keeps the
            states that it sees in tables without a lock
        shared: whether the threads share a tree; they do not where several roles choose at the same time by another
            method than decoupled UCT
        growers: growers that searches share which run one after another; by default, the search has its own
    """

    def __init__(
        self,
        game: Game,
        settings: GrowthSettings | None = None,
        memory: float = MEMORY_MIB,
        threads: int = 1,
        shared: bool = False,
        growers: Growers | None = None,
    ) -> None:
        self.game = game
        self.settings = settings or GrowthSettings()
        self.num_walks, self._seconds = 0, 0.0  # of all searches
        threads = 1 if game.uses_reasoner else threads
        trees = 1 if shared and self.settings.shares_trees else threads
        growers, each = growers or Growers(game), threads if trees == 1 else 1
        self._stems = [
            Stem(game, self.settings, memory / trees, growers.of_tree(number, self.settings, each))
            for number in range(trees)
        ]
        self._assumption = first_assumption(game, self.settings.max_plies)
        self._each = 0.0  # seconds of a batch
        self._slice = SLICE if not game.uses_reasoner else inf  # whose playouts take longer, and are in Python
        self.key = np.uint64(0)
        self._has_begun = False
        self._pool = growers.pool(trees)

    def begin(
        self, state: NDArray[np.uint64], key: np.uint64, value: LinearValue | None = None, assumption: int | None = None
    ) -> None:
        """Begin new trees below a state.

        Args:
            state: uint64[words]
            key: key of the random numbers
            value: a learned value
            assumption: see `Tree`; None for what random playouts say
        """
        prior = value.prior(self.settings) if value else no_prior(self.game)
        assumption = self._assumption if assumption is None else assumption
        self.key, self._has_begun = key, True
        for number, stem in enumerate(self._stems):
            stem.begin(state, np.uint64(extend(key, number)) if number else key, prior, assumption)

    def follow(self, choices: NDArray[np.int32], deadline: float | None = None) -> None:
        """Go to the position after a joint move, int32[roles] as indices into the legal moves; keep what is below.

        See `Stem.follow` for the deadline, in seconds of `time.monotonic`.
        """
        self._in_threads(lambda stem, _: stem.follow(choices, deadline))

    def is_at(self, state: NDArray[np.uint64]) -> bool:
        """Return whether the root is the position with this state, uint64[words]."""
        return self._has_begun and bool(np.array_equal(self.state, state))

    @property
    def state(self) -> NDArray[np.uint64]:
        """The state at the root, uint64[words]."""
        return self._stems[0].tree.state

    @property
    def assumption(self) -> int:
        """The assumption of the trees, see `Tree`; UNRELATED as soon as a search has shown that it is wrong."""
        return self._stems[0].tree.assumption

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
        """Number of walks from the roots that the trees remember; one that leaves a proved move counts twice."""
        return sum(stem.visits for stem in self._stems)

    def run(self, simulations: int | None = None, deadline: float | None = None, chooser: int | None = None) -> int:
        """Grow the trees until a budget is used up or the position is proved.

        Args:
            simulations: number of walks in all trees; None for no limit
            deadline: end of the search in seconds of `time.monotonic`; None for no limit
            chooser: role for whose move it is. The search ends early if its choice can hardly change before the
                deadline

        Returns:
            The number of walks. Where trees begin anew because an assumption is wrong, so does the budget, and the
            walks before do not count
        """
        # with a budget of simulations, the size of batches must not depend on how long others took
        seconds = None if deadline is None or simulations is not None else deadline - monotonic()
        for stem in self._stems:
            stem.grower.least = self._least(seconds)
        return self._run(simulations if simulations is not None else _NO_LIMIT, deadline, chooser)

    def ponder(self, deadline: float | None) -> int:
        """Grow the trees until the deadline of a slice of time, by a batch at least; return the number of walks.

        A batch can take longer than the slice. A full tree grows no further if it takes `_LONGEST_PAUSE` to make room,
        because a move that is asked for meanwhile would have to wait.
        """
        for stem in self._stems:
            stem.grower.least = self.settings.least
        return self._run(_NO_LIMIT, deadline) or self._run(_NO_LIMIT, None, pause=_LONGEST_PAUSE)

    def _run(self, limit: int, deadline: float | None, chooser: int | None = None, pause: float | None = None) -> int:
        """See `run`.

        limit: number of walks in all trees
        pause: None, or for a single batch without a deadline, the seconds that a full tree may take to make room
        """
        trees = len(self._stems)
        shares = [(limit + number) // trees for number in range(trees)]
        left, batches, stalled, done = shares, 1, 0, 0  # of the next call; number of calls without a walk; all walks
        start = first = monotonic()  # of the search; of these trees
        seconds: float | None = None
        is_anew = False  # whether the trees have begun anew, so that they need a batch even if time is over
        while any(left) and stalled < 2 and not self.is_proved:
            begin = monotonic()
            if deadline is not None:
                if not self._fits(deadline - begin) and not (is_anew and self.visits == 0):
                    if not done:  # the estimate may be too long, and then nothing would ever fit
                        self._each *= _FORGETTING
                    break
                seconds = deadline - begin
                if limit == _NO_LIMIT:
                    batches, seconds = _NO_LIMIT, min(self._slice, seconds)
            room = pause if deadline is None else deadline - begin
            if self.visits == 0:  # where nothing has been searched yet, there is no move to make without room
                room = None
            grown = self._grow(left, batches, seconds, room)
            done += sum(each.walks for each in grown)
            if all(each.as_assumed for each in grown):
                left = [walks - each.walks for walks, each in zip(left, grown, strict=True)]
            else:
                for stem in self._stems:
                    stem.tree.drop_assumption()
                left, is_anew, first = shares, True, monotonic()
            # a full tree makes room in a call without a walk
            stalled = 0 if any(each.walks for each in grown) else stalled + 1
            self._note_time(monotonic() - begin, grown[0].batches)
            if pause is not None and sum(left) < limit:
                break
            if limit < _NO_LIMIT:  # by number: a proof ends the search of all threads after a call
                batches = min(MOST_BATCHES, 2 * batches)
            if chooser is not None and deadline is not None:
                now = monotonic()
                rate = (limit - sum(left)) / max(now - first, 1e-6)
                if self._is_settled(chooser, rate * max(deadline - now, 0.0)):  # a call may end after the deadline
                    break
        self.num_walks += done
        self._seconds += monotonic() - start
        return limit - sum(left)

    @property
    def rate(self) -> float:
        """Walks per second so far; 0 before the first."""
        return self.num_walks / self._seconds if self._seconds else 0.0

    def _is_settled(self, role: int, walks: float) -> bool:
        """Return whether so many walks can hardly change the choice.

        It has more visits than any other open move can have after these walks, and it would still be chosen if another
        move got all of them at its present value, that of its prior before its first walk. So only a proof or a new
        value could change it.
        """
        if mixes(self._stems[0].tree, 0, self.settings):
            return False  # the move will be drawn
        first, count = self._stems[0].tree.span(0, role)
        moves = slice(first, first + count)
        visits = np.array([stem.tree.arrays.visits[moves] for stem in self._stems]).sum(axis=0, dtype=np.int64)
        is_closed = np.any([stem.tree.arrays.closed[moves] for stem in self._stems], axis=0)
        rivals = np.sort(visits[~is_closed])
        if len(rivals) < 2 or rivals[-1] - rivals[-2] <= walks:
            return len(rivals) == 1
        reports = [move for move in self.moves(role) if not move.is_closed]
        if any(move.is_proved for move in reports):
            return False  # its exact value decides
        best = max(reports, key=lambda move: move.visits)
        width, total = self._stems[0].width(0), int(visits.sum())
        others = [
            replace(move, visits=move.visits + int(walks), value=move.value if move.visits else move.expected)
            for move in reports
            if move is not best
        ]
        return all(rank(best, total, width) > rank(move, total, width) for move in others)

    def _least(self, seconds: float | None) -> int:
        """Return the number of walks of the first batches: more than usual if only few batches fit into this time."""
        least, leaves = self.settings.least, self.settings.leaves
        wanted = LANES * self._each / seconds if seconds is not None and seconds > 0 else 0.0
        return min(leaves, max(least, int(min(wanted, _MOST_FIRST * least))))

    def _note_time(self, seconds: float, batches: int) -> None:
        """Note how long a call took. A call that another process interrupts at most doubles the estimate."""
        if batches:
            self._each = max(1e-6, min(seconds / batches, 2 * self._each or seconds))

    def _fits(self, seconds: float) -> bool:
        """Return whether a batch fits into this time, or nothing is known of the root's moves."""
        return seconds > 0 and (self._each <= seconds or self.visits == 0)

    def _grow(self, walks: list[int], batches: int, seconds: float | None, room: float | None) -> list[Grown]:
        """Grow each tree by some batches, at most by its number of walks; see `Stem.grow`."""
        return self._in_threads(lambda stem, number: stem.grow(walks[number], batches, seconds, room))

    def _in_threads(self, work: Callable[[Stem, int], T]) -> list[T]:
        """Return the results of work with each tree and its number, at the same time."""
        return in_threads(self._pool, [partial(work, stem, number) for number, stem in enumerate(self._stems)])

    def moves(self, role: int) -> list[MoveReport]:
        """Return what the search knows about the legal moves of a role, in their order."""
        reports = [stem.reports(0, role) for stem in self._stems]
        return reports[0] if len(reports) == 1 else together(reports)

    def choice(self, role: int, noise: np.uint64) -> int:
        """Return the index of the best move of a role, see `choice.choose`. Among equal moves, `noise` decides."""
        stem = self._stems[0]
        return choose(stem.tree, 0, self.moves(role), self.settings, noise, stem.width(0))

    def strategy(self, role: int) -> list[float] | None:
        """Return the probabilities of the legal moves from which `choice` draws; None where it does not draw."""
        is_mixed = mixes(self._stems[0].tree, 0, self.settings)
        return strategy_of(self.moves(role), self.settings.mixing) if is_mixed else None

    def line(self, most: int = 20) -> list[tuple[int, ...]]:
        """Return the best joint moves from the root on, see `choice`, as indices into the legal moves of each role."""
        node, joint, roles = 0, list[tuple[int, ...]](), range(self.game.num_roles)
        stem = next((stem for stem in self._stems if stem.is_proved), self._stems[0])
        arrays = stem.tree.arrays
        while len(joint) < most and arrays.counts[node].all():
            reports = [stem.reports(node, role) if node else self.moves(role) for role in roles]
            choices = np.array([best_of(own, self.key, stem.width(node)) for own in reports], np.int32)
            node = child_of(arrays, node, choices)
            if node < 0:
                break
            joint.append(tuple(choices.tolist()))
        return joint
