"""Growth of a tree in one compiled loop, which calls the machine code of a game by its address."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..circuit.playout import GROUPS, RANDOM, REMAINING, Block, PlayoutRunner
from ..circuit.sampling import STATE
from ..circuit.tape import LANES, words
from ..circuit.transpose import RowJob
from ..players.kernel import (
    I32,
    I64,
    U8,
    Bool,
    I16x2,
    I32x2,
    I64x2,
    U64x2,
    acquire,
    call_address,
    has_time,
    inlined,
    kernel,
    kernel_without_gil,
    new_clock,
    read_clock,
    release,
)
from ..players.random_streams import extend, mix
from .growth import EngineGrower, Grower, Grown, as_assumed, batch_of, in_threads, release_room, reserve
from .settings import GrowthSettings
from .simultaneous import JointRule, joint_rule
from .tree import NUM_ROOTS, PROVES, VISITS, Tree, TreeArrays, copy_state
from .value import Prior, UpperBound, no_prior, upper_bound
from .walks import (
    Scouts,
    WalkBatch,
    add_ends,
    add_priors,
    attach,
    back_up,
    begin,
    childless,
    descend,
    end_listing,
    fetch_slots,
    fetch_steps,
    is_fresh,
    list_moves,
    next_children,
    note_values,
    open_ends,
    scouts,
    unlisted,
)

if TYPE_CHECKING:
    from ..game.game import Game

_NO_GOAL, _SEVERAL_GOALS = -1, -2


def grower(game: Game, settings: GrowthSettings, threads: int = 1) -> Grower:
    """Return the fastest way to grow trees of a game, with several threads in a tree where that is possible.

    The reasoner plays one playout at a time, because it gains nothing from batches, and a batch could take minutes. It
    gains nothing from threads either.
    """
    if game.native:
        may_share = threads > 1 and settings.shares_trees
        return SharedGrower(game, settings, threads) if may_share else NativeGrower(game, settings)
    single = replace(settings, least=1, leaves=1, playouts=1, scout=False) if game.uses_reasoner else settings
    return EngineGrower(game, single)


class _Code(NamedTuple):
    """Machine code of a game, with the memory that it works on, for `_grow`.

    addresses  int64[11]: the functions run, list_moves, begin and play; the records next, legal, ended, goal and block;
               the first action of each role, see `list_moves`; and the largest number of moves of all roles in a
               position
    next_job, legal_job, ended_job, goal_job, block   int64[fields], the fields of the records
    lanes, next_rows             see Block
    states     uint64[512, words], input of next and legal
    starts     uint64[512, words], input of the playouts; one word more if the mark of informed playouts needs it
    marks      uint64[512, words], of the same size: the bits that mark informed playouts
    joint      int32[512, roles], input of next
    next_states  uint64[512, words], output of next, input of ended
    legal      uint64[512, words of actions], output of legal
    offsets, actions, terminal   output of list_moves
    ended      uint64[512, 1], output of ended: whether the match is over
    end_rows   int64[512], the rows in which it is
    end_states uint64[512, words], input of goal
    goal_bits  uint64[512, words of goals], output of goal: a bit for each value of each role
    goal_values  int64[goals, 2], the role and the value of each of these bits
    goals      int16[512, roles], output of the playouts
    steps      int32[512], the same
    clock      int64[3], see `read_clock`
    """

    addresses: I64
    next_job: I64
    legal_job: I64
    ended_job: I64
    goal_job: I64
    block: I64
    lanes: U64x2
    next_rows: I64
    states: U64x2
    starts: U64x2
    marks: U64x2
    joint: I32x2
    next_states: U64x2
    legal: U64x2
    offsets: I64
    actions: I32
    terminal: Bool
    ended: U64x2
    end_rows: I64
    end_states: U64x2
    goal_bits: U64x2
    goal_values: I64x2
    goals: I16x2
    steps: I32
    clock: I64


class _Batching(NamedTuple):
    """How batches are made; see `GrowthSettings`, and `Grower` for `least`. `threads` is how many share the tree."""

    least: int
    share: int
    leaves: int
    playouts: int
    transpositions: bool
    scout: bool
    threads: int


_RUN, _LIST, _BEGIN, _PLAY = range(4)
_NEXT_JOB, _LEGAL_JOB, _ENDED_JOB, _GOAL_JOB, _BLOCK, _STARTS, _MOST_MOVES = range(4, 11)
_NUM_ROWS = [name for name, *_ in RowJob._fields_].index("num_rows")
_NOW, _MAX_STEPS = ([name for name, *_ in Block._fields_].index(name) for name in ("now", "max_steps"))
_STEPS_PER_CALL = 1 << 20
_SECOND, _NO_TIME_LIMIT = 10**9, 1 << 62  # in nanoseconds


class NativeGrower:
    """Growth in one compiled loop, for games of the native engine.

    Args:
        game: game of the trees
        settings: parameters of the growth
        threads: number of growers that grow the same tree at the same time, each in a thread of its own
    """

    def __init__(self, game: Game, settings: GrowthSettings, threads: int = 1) -> None:
        assert game.native is not None
        self._threads = threads
        self._game, self._settings, self._engine = game, settings, game.native
        self._batch, self._scouts, self.prior = batch_of(game.num_roles), scouts(), no_prior(game)
        self._code, self._rule, self.least = self._new_code(), joint_rule(settings), settings.least

    def _new_code(self) -> _Code:
        """Return the machine code of the game with new memory; `_kept` keeps alive what the code points to."""
        engine, circuit, rows = self._engine, self._engine.circuit, self._engine.rows
        roles, player, marks = len(engine.roles), *self._playouts()
        states, next_states, end_states = np.zeros((3, LANES, engine.num_words), np.uint64)
        starts = np.zeros_like(marks)
        joint, goals, steps = (
            np.zeros((LANES, roles), np.int32),
            np.zeros((LANES, roles), np.int16),
            np.zeros(LANES, np.int32),
        )
        goal_values = np.array([(role, value) for role, own in enumerate(circuit.goals) for value in own], np.int64)
        legal, ended, goal_bits = (
            np.zeros((LANES, words(outputs)), np.uint64) for outputs in (circuit.num_actions + 1, 1, len(goal_values))
        )
        records = [
            rows.job("next", states, next_states, joint),
            rows.job("legal", states, legal),
            rows.job("terminal", next_states, ended),
            rows.job("goal", end_states, goal_bits),
            player.rollout_block(starts, goals, steps),
        ]
        block = records[-1]
        block.numbers[_MAX_STEPS] = self._settings.max_plies
        functions = [rows.code.address(name) for name in ("run", "list_moves")]
        functions += [player.code.address(name) for name in ("begin", "play")]
        addresses = [*functions, *(record.address for record in records)]
        addresses += [rows.starts.ctypes.data, circuit.num_actions]
        self._kept = records
        next_job, legal_job, ended_job, goal_job = (record.numbers for record in records[:-1])
        return _Code(
            np.array(addresses, np.int64), next_job, legal_job, ended_job, goal_job, block.numbers,
            block.arrays["lanes"], block.arrays["next_rows"], states, starts, marks, joint, next_states,
            legal, np.zeros(LANES * roles + 1, np.int64), np.zeros(LANES * circuit.num_actions, np.int32),
            np.zeros(LANES, np.bool_), ended, np.zeros(LANES, np.int64), end_states, goal_bits,
            goal_values.reshape(-1, 2), goals, steps, new_clock(),
        )  # fmt: skip

    def _playouts(self) -> tuple[PlayoutRunner, U64x2]:
        """Return the player of playouts, and the bits that mark the states of informed ones, spread evenly."""
        share, mark = self._settings.informed, self._engine.circuit.num_facts
        informed = self._game.informed_runner if share else None
        if informed is None or share is None:
            return self._engine.playout_runner, np.zeros((LANES, self._engine.num_words), np.uint64)
        marks = np.zeros((LANES, words(mark + 1)), np.uint64)
        marks[np.diff(np.floor(share * np.arange(LANES + 1))) > 0, mark // 64] = np.uint64(1 << mark % 64)
        return informed, marks

    def grow(
        self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int], seconds: float | None = None
    ) -> Grown:
        """See `Grower.grow`."""
        settings = self._settings
        tree.arrays.size[PROVES] = settings.proofs
        limits = self.least, settings.share, settings.leaves, settings.playouts
        batching = _Batching(*limits, settings.transpositions, settings.scout, self._threads)
        tools = self._batch, self._scouts, self._code, self.prior, self._rule
        task = tree.arrays, *tools, upper_bound(settings, self.prior, tree.assumption), batching
        nanoseconds = _NO_TIME_LIMIT if seconds is None else int(_SECOND * seconds)
        if seconds is not None and not has_time(self._code.clock):
            batches = batches[0], min(batches[0] + 1, batches[1])
        return Grown(*_grow(*task, key, walks, *batches, nanoseconds, tree.tops, tree.assumption))


@inlined
def _lock(tree: TreeArrays, is_shared: bool) -> None:
    """Begin to change a tree; `is_shared` tells whether other threads work in it, too."""
    if is_shared:
        acquire(tree.lock)


@inlined
def _unlock(tree: TreeArrays, is_shared: bool) -> None:
    """End a change of a tree."""
    if is_shared:
        release(tree.lock)


@kernel
def _list(tree: TreeArrays, batch: WalkBatch, code: _Code, count: int) -> None:
    """Compute the moves of the first `count` nodes in `batch.order`."""
    for i in range(count):
        copy_state(code.states, i, tree.states, int(batch.order[i]))
    code.legal_job[_NUM_ROWS] = count
    call_address(code.addresses[_RUN], (code.addresses[_LEGAL_JOB],))
    arguments = (
        code.legal.ctypes.data,
        count,
        code.joint.shape[1],
        code.addresses[_STARTS],
        code.offsets.ctypes.data,
        code.actions.ctypes.data,
        code.terminal.ctypes.data,
    )
    call_address(code.addresses[_LIST], arguments)


@kernel
def _ends(code: _Code, size: int) -> int:
    """Write the rows of `next_states` in which the match is over, and their goals; return their number."""
    code.ended_job[_NUM_ROWS] = size
    call_address(code.addresses[_RUN], (code.addresses[_ENDED_JOB],))
    count = 0
    for row in range(size):
        if code.ended[row, 0] & np.uint64(1):
            copy_state(code.end_states, count, code.next_states, row)
            code.end_rows[count] = row
            count += 1
    if count:
        code.goal_job[_NUM_ROWS] = count
        call_address(code.addresses[_RUN], (code.addresses[_GOAL_JOB],))
    code.goals[:count] = _NO_GOAL
    for end in range(count):
        for bit in range(code.goal_values.shape[0]):
            if (code.goal_bits[end, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1):
                role = code.goal_values[bit, 0]
                is_first = code.goals[end, role] == _NO_GOAL
                code.goals[end, role] = code.goal_values[bit, 1] if is_first else _SEVERAL_GOALS
    return count


@kernel
def _scout(
    tree: TreeArrays,
    batch: WalkBatch,
    rows: Scouts,
    code: _Code,
    prior: Prior,
    count: int,
    tops: U8,
    assumption: int,
    is_shared: bool,
) -> bool:
    """Look at the children of the first `count` nodes in the batch; return `as_assumed` of the ends among them."""
    holds = True
    rows.cursor[:] = 0
    while True:
        size = next_children(tree, batch, count, rows, code.states, code.joint)
        if size == 0:
            break
        code.next_job[_NUM_ROWS] = size
        call_address(code.addresses[_RUN], (code.addresses[_NEXT_JOB],))
        if prior.visits:
            note_values(tree, rows, size, code.next_states, prior)
        ends = _ends(code, size)
        if ends:
            _lock(tree, is_shared)
            add_ends(tree, rows, code.next_states, code.end_rows[:ends], code.goals[:ends], tops)
            _unlock(tree, is_shared)
        code.steps[:ends] = 0
        holds = as_assumed(code.goals[:ends], code.steps[:ends], code.block[_MAX_STEPS], assumption) and holds
    return holds


@kernel
def _play(code: _Code, count: int, key: np.uint64) -> None:
    """Play one random match from each of the first `count` states; write goals, -1 for none, and steps."""
    if count == 0:
        return
    for row in range(count):
        for word in range(code.marks.shape[1]):
            code.starts[row, word] |= code.marks[row, word]
    code.goals[:count] = -1
    code.lanes[:] = 0
    row = 0
    for group in range(GROUPS):
        for i in range(STATE):
            code.lanes[RANDOM + i, group] = mix(key, np.uint64(STATE * group + i + 1))
        quota = count // GROUPS + (1 if group < count % GROUPS else 0)
        code.lanes[REMAINING, group] = quota
        code.next_rows[group] = row
        row += quota
    code.block[_NOW] = -1
    call_address(code.addresses[_BEGIN], (code.addresses[_BLOCK],))
    while call_address(code.addresses[_PLAY], (code.addresses[_BLOCK], _STEPS_PER_CALL)) != 0:
        pass


@kernel_without_gil
def _grow(
    tree: TreeArrays,
    batch: WalkBatch,
    rows: Scouts,
    code: _Code,
    prior: Prior,
    rule: JointRule,
    upper: UpperBound,
    batching: _Batching,
    key: np.uint64,
    walks: int,
    first_batch: int,
    last_batch: int,
    nanoseconds: int,
    tops: U8,
    assumption: int,
) -> tuple[int, int, bool, bool]:
    """Grow a tree, and return the fields of `Grown`; see `Grower.grow`, and walks.py for trees that threads share.

    Walks, playouts and all machine code of the rules need no lock. A tree without walks has one thread only.
    """
    done, holds, number, is_shared, size = 0, True, first_batch, batching.threads > 1, 0
    start = now = read_clock(code.clock)
    while number < last_batch and holds:
        limits = batching.least, batching.share * batching.threads, batching.leaves
        _lock(tree, is_shared)
        size = reserve(tree, code.addresses[_MOST_MOVES], walks - done, *limits)
        _unlock(tree, is_shared)
        if size <= 0:
            break
        batch_key = mix(key, np.uint64(number))
        if batching.scout and is_fresh(tree, batch):
            count = int(tree.size[NUM_ROOTS])
            holds = _scout(tree, batch, rows, code, prior, count, tops, assumption, is_shared)
            add_priors(tree, batch, count, prior)
            end_listing(tree, batch, count, prior, tops, assumption)
        begin(tree, batch, size)
        descend(tree, batch, size, upper, rule, batch_key, is_shared)
        _lock(tree, is_shared)
        count = unlisted(tree, batch, size)
        _unlock(tree, is_shared)
        if count:
            _list(tree, batch, code, count)
            _lock(tree, is_shared)
            list_moves(tree, batch, count, code.offsets, code.actions)
            _unlock(tree, is_shared)
            if batching.scout:
                holds = _scout(tree, batch, rows, code, prior, count, tops, assumption, is_shared) and holds
            add_priors(tree, batch, count, prior)
            _lock(tree, is_shared)
            end_listing(tree, batch, count, prior, tops, assumption)
            _unlock(tree, is_shared)
            descend(tree, batch, size, upper, rule, batch_key, is_shared)
        new = childless(tree, batch, size, code.states, code.joint)
        if new:
            code.next_job[_NUM_ROWS] = new
            call_address(code.addresses[_RUN], (code.addresses[_NEXT_JOB],))
            if batching.transpositions:
                fetch_slots(tree, batch, new, code.next_states)
        _lock(tree, is_shared)
        attach(tree, batch, new, code.next_states, rule, batching.transpositions, tops)
        release_room(tree, size)
        _unlock(tree, is_shared)
        playouts = min(batching.playouts, code.states.shape[0] // size)
        count = open_ends(tree, batch, size, playouts, code.starts)
        _play(code, count, batch_key)
        if is_shared:
            fetch_steps(tree, batch)
        _lock(tree, is_shared)
        back_up(tree, batch, size, playouts, prior, rule, code.goals[:count], code.steps[:count], tops, assumption)
        _unlock(tree, is_shared)
        holds = as_assumed(code.goals[:count], code.steps[:count], code.block[_MAX_STEPS], assumption) and holds
        done += size
        number += 1
        before, now = now, read_clock(code.clock)
        if 2 * now - before - start > nanoseconds:
            break
    return done, number - first_batch, holds, size < 0


class SharedGrower:
    """Growth of one tree by several threads at the same time, for games of the native engine.

    Their walks see each other's virtual losses, so they take other ways. The result depends on how the threads run, so
    it differs from call to call.

    Args:
        game: game of the trees
        settings: parameters of the growth; see `grower` for those that are allowed
        threads: number of threads, from 2 on
    """

    def __init__(self, game: Game, settings: GrowthSettings, threads: int) -> None:
        self._growers = [NativeGrower(game, settings, threads) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads - 1)

    @property
    def prior(self) -> Prior:
        """See `Grower`."""
        return self._growers[0].prior

    @prior.setter
    def prior(self, prior: Prior) -> None:
        for grower in self._growers:
            grower.prior = prior

    @property
    def least(self) -> int:
        """See `Grower`."""
        return self._growers[0].least

    @least.setter
    def least(self, least: int) -> None:
        for grower in self._growers:
            grower.least = least

    def grow(
        self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int], seconds: float | None = None
    ) -> Grown:
        """See `Grower.grow`. One thread grows the first batch, which looks at the moves of the roots."""
        if tree.arrays.nodes[: tree.arrays.size[NUM_ROOTS], VISITS].any():
            return self._grow_together(tree, walks, key, batches, seconds)
        begin, (first, last) = monotonic(), batches
        start = self._growers[0].grow(tree, walks, key, (first, min(first + 1, last)), seconds)
        left = None if seconds is None else seconds - (monotonic() - begin)
        if not start.walks or not start.as_assumed or (left is not None and left <= 0):
            return start
        rest = self._grow_together(tree, walks - start.walks, key, (first + 1, last), left)
        return rest._replace(walks=start.walks + rest.walks, batches=start.batches + rest.batches)

    def _grow_together(
        self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int], seconds: float | None
    ) -> Grown:
        """Grow a tree with all threads. Batches are counted in the thread that grows the most."""
        num = len(self._growers)
        tasks = [
            partial(grower.grow, tree, (walks + i) // num, np.uint64(extend(key, i)), batches, seconds)
            for i, grower in enumerate(self._growers)
        ]
        grown = in_threads(self._pool, tasks)
        most = max(each.batches for each in grown)
        as_assumed, is_full = all(each.as_assumed for each in grown), any(each.is_full for each in grown)
        return Grown(sum(each.walks for each in grown), most, as_assumed, is_full)
