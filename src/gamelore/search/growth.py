"""Growth of a tree, batch by batch: the walks, their evaluation by machine code, and the way back.

A batch has up to 512 playouts, because the machine code plays 512 matches in hardly more time than one. All its walks
end before the first of them is backed up, so a large batch in a small tree explores too much. Its number of walks is
therefore limited to a share of the visits of the root, and free lanes go to further playouts from the same leaves.

`NativeGrower` runs whole batches in one compiled loop (`_grow`), which calls the machine code of the game by its
address. `EngineGrower` does the same step by step for games that the native engine cannot play alone. The result of a
given number of walks is a function of the tree, the key and the settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..circuit.playout import GROUPS, RANDOM, REMAINING, Block
from ..circuit.sampling import STATE
from ..circuit.tape import LANES, words
from ..circuit.transpose import RowJob
from ..players.kernel import I32, I64, U8, Bool, I16x2, I32x2, U64x2, kernel
from ..players.random_streams import mix
from .settings import GrowthSettings
from .tree import NUM_MOVES, NUM_NODES, PROVED, STAGE, UNRELATED, VISITS, Tree, TreeArrays
from .walks import WalkBatch, back_up, descend, joint_actions, list_moves, open_ends, unlisted

if TYPE_CHECKING:
    from ..game.engines import NativeEngine
    from ..game.game import Game


class Grown(NamedTuple):
    """Result of a call of `Grower.grow`.

    walks       number of walks
    batches     number of batches
    adds_up     False if the goals of a playout did not have the sum `Tree.total`
    """

    walks: int
    batches: int
    adds_up: bool


class Grower(Protocol):
    """Way to grow trees of one game."""

    def grow(self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int]) -> Grown:
        """Grow a tree by at most `walks` walks.

        Stop early if the tree is full or its root is proved. A call for the batches (0, 5) and then one for (5, 9) have
        the same result as a call for (0, 9).

        Args:
            key: key of the random numbers
            batches: number of the first batch, and of the batch before which to stop
        """
        ...


def grower(game: Game, settings: GrowthSettings) -> Grower:
    """Return the fastest way to grow trees of a game.

    The reasoner plays one playout at a time, because it gains nothing from batches, and a batch could take minutes.
    """
    if game.native:
        return NativeGrower(game.native, settings)
    single = replace(settings, least=1, leaves=1, playouts=1) if game.engine == "reasoner" else settings
    return EngineGrower(game, single)


def batch_of(game_roles: int) -> WalkBatch:
    """Return arrays for the largest batch."""
    ends, order = np.zeros((2, LANES), np.int32)
    return WalkBatch(ends, np.zeros((1, game_roles), np.int32), order, np.zeros((LANES, game_roles)))


@kernel
def batch_size(tree: TreeArrays, most_moves: int, left: int, least: int, share: int, leaves: int) -> int:
    """Return the number of walks of the next batch; 0 if the root is proved or the tree is full.

    The tree is full if it has no room for the nodes of a first batch with `most_moves` moves each.
    """
    if tree.nodes[0, STAGE] == PROVED:
        return 0
    size = min(leaves, max(least, tree.nodes[0, VISITS] // share), left)
    room = min(tree.nodes.shape[0] - tree.size[NUM_NODES], (tree.actions.size - tree.size[NUM_MOVES]) // most_moves)
    return min(size, room) if room >= min(size, least) else 0


@kernel
def adds_up(goals: I16x2, total: int) -> bool:
    """Return whether the goals of two roles have this sum in every row with goals for both; True for UNRELATED."""
    for row in range(goals.shape[0] if total != UNRELATED else 0):
        if goals[row, 0] >= 0 and goals[row, 1] >= 0 and goals[row, 0] + goals[row, 1] != total:
            return False
    return True


# ---- step by step, for every engine ----


class EngineGrower:
    """Growth with the methods of a game, one call for each step of a batch."""

    def __init__(self, game: Game, settings: GrowthSettings) -> None:
        self._game = game
        self._settings = settings
        self._batch = batch_of(game.num_roles)

    def grow(self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int]) -> Grown:
        """See `Grower.grow`."""
        done, fits, settings = 0, True, self._settings
        for number in range(*batches):
            limits = settings.least, settings.share, settings.leaves
            size = batch_size(tree.arrays, tree.most_actions, walks - done, *limits)
            if not size:
                return Grown(done, number - batches[0], fits)
            fits &= self._grow_batch(tree, size, mix(key, np.uint64(number)))
            done += size
            if not fits:  # at once, so that the result does not depend on the number of batches of a call
                return Grown(done, number - batches[0] + 1, fits)
        return Grown(done, batches[1] - batches[0], fits)

    def _grow_batch(self, tree: Tree, size: int, key: np.uint64) -> bool:
        """Grow the tree by one batch; return `adds_up` of its playouts."""
        game, arrays, batch, settings = self._game, tree.arrays, self._batch, self._settings
        first_new = int(arrays.size[NUM_NODES])
        batch.ends[:size] = 0
        descend(arrays, batch, size, settings.exploration, key, tree.tops)
        count = unlisted(arrays, batch, size, first_new)
        if count:
            legal = game.legal(arrays.states[batch.order[:count]])
            tree.check_room(len(legal.actions))
            list_moves(arrays, batch, count, legal.offsets, legal.actions)
            descend(arrays, batch, size, settings.exploration, key, tree.tops)
        states, joint = np.empty((LANES, game.num_words), np.uint64), np.empty((LANES, game.num_roles), np.int32)
        new = joint_actions(arrays, first_new, states, joint)
        if new:
            arrays.states[first_new : first_new + new] = game.next(states[:new], joint[:new])
        playouts = min(settings.playouts, LANES // size)
        count = open_ends(arrays, batch, size, playouts, states)
        played = game.rollouts(states[:count], int(key), threads=1, max_steps=settings.max_plies)
        back_up(arrays, batch, size, playouts, played.goals, played.steps, tree.tops, tree.total)
        return adds_up(played.goals, tree.total)


# ---- by machine code ----


@intrinsic
def _call_address(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call machine code at an address with integers as arguments; return an integer. For use inside kernels."""
    signature = types.int64(address, arguments)
    count = arguments.count

    def write_call(_: Any, builder: Any, signature: Any, values: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(number, [number] * count).as_pointer()
        given = [builder.extract_value(values[1], i) for i in range(count)]
        return builder.call(builder.inttoptr(values[0], function), given)

    return signature, write_call


call_address: Any = _call_address  # type checkers do not know that numba passes the context


class _Code(NamedTuple):
    """Machine code of a game, with the memory that it works on, for `_grow`.

    addresses  int64[9]: the functions run, list_moves, begin and play; the records next, legal and block; the first
               action of each role, see `list_moves`; and the largest number of moves of all roles in a position
    next_job, legal_job, block   int64[fields], the fields of the records
    lanes, next_rows             see Block
    states     uint64[512, words], input of the records
    joint      int32[512, roles], input of next
    next_states  uint64[512, words], output of next
    legal      uint64[512, words of actions], output of legal
    offsets, actions, terminal   output of list_moves
    goals      int16[512, roles], output of the playouts
    steps      int32[512], the same
    """

    addresses: I64
    next_job: I64
    legal_job: I64
    block: I64
    lanes: U64x2
    next_rows: I64
    states: U64x2
    joint: I32x2
    next_states: U64x2
    legal: U64x2
    offsets: I64
    actions: I32
    terminal: Bool
    goals: I16x2
    steps: I32


_RUN, _LIST, _BEGIN, _PLAY, _NEXT_JOB, _LEGAL_JOB, _BLOCK, _STARTS, _MOST_MOVES = range(9)
_NUM_ROWS = [name for name, *_ in RowJob._fields_].index("num_rows")
_NOW, _MAX_STEPS = ([name for name, *_ in Block._fields_].index(name) for name in ("now", "max_steps"))
_STEPS_PER_CALL = 1 << 20


class NativeGrower:
    """Growth in one compiled loop, for games of the native engine."""

    def __init__(self, engine: NativeEngine, settings: GrowthSettings) -> None:
        self._settings = settings
        roles, circuit = len(engine.roles), engine.circuit
        self._batch = batch_of(roles)
        states, next_states = np.zeros((2, LANES, engine.num_words), np.uint64)
        joint, steps = np.zeros((LANES, roles), np.int32), np.zeros(LANES, np.int32)
        legal = np.zeros((LANES, words(circuit.num_actions + 1)), np.uint64)
        goals = np.zeros((LANES, roles), np.int16)
        next_job, legal_job = (
            engine.rows.job("next", states, next_states, joint),
            engine.rows.job("legal", states, legal),
        )
        block = engine.playout_runner.rollout_block(states, goals, steps)
        block.numbers[_MAX_STEPS] = settings.max_plies
        rows, player = engine.rows.code, engine.playout_runner.code
        functions = rows.address("run"), rows.address("list_moves"), player.address("begin"), player.address("play")
        records = [record.address for record in (next_job, legal_job, block)]
        numbers = [*functions, *records, engine.rows.starts.ctypes.data, circuit.num_actions]
        self._kept = engine, next_job, legal_job, block
        self._code = _Code(
            np.array(numbers, np.int64), next_job.numbers, legal_job.numbers, block.numbers,
            block.arrays["lanes"], block.arrays["next_rows"], states, joint, next_states, legal,
            np.zeros(LANES * roles + 1, np.int64), np.zeros(LANES * circuit.num_actions, np.int32),
            np.zeros(LANES, np.bool_), goals, steps,
        )  # fmt: skip

    def grow(self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int]) -> Grown:
        """See `Grower.grow`."""
        settings = self._settings
        limits = settings.least, settings.share, settings.leaves, settings.playouts
        task = tree.arrays, self._batch, self._code, settings.exploration, *limits, key, walks, *batches
        return Grown(*_grow(*task, tree.tops, tree.total))


@kernel
def _list(tree: TreeArrays, batch: WalkBatch, code: _Code, count: int) -> None:
    """List the moves of the first `count` nodes in `batch.order`."""
    for i in range(count):
        code.states[i] = tree.states[batch.order[i]]
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
    list_moves(tree, batch, count, code.offsets, code.actions)


@kernel
def _play(code: _Code, count: int, key: np.uint64) -> None:
    """Play one random match from each of the first `count` states; write goals, -1 for none, and steps."""
    if count == 0:
        return
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


@kernel
def _grow(
    tree: TreeArrays,
    batch: WalkBatch,
    code: _Code,
    exploration: float,
    least: int,
    share: int,
    leaves: int,
    most_playouts: int,
    key: np.uint64,
    walks: int,
    first_batch: int,
    last_batch: int,
    tops: U8,
    total: int,
) -> tuple[int, int, bool]:
    """Grow a tree; see `Grower.grow`."""
    done, fits, number = 0, True, first_batch
    while number < last_batch:
        size = batch_size(tree, code.addresses[_MOST_MOVES], walks - done, least, share, leaves)
        if size == 0:
            break
        batch_key = mix(key, np.uint64(number))
        first_new = tree.size[NUM_NODES]
        batch.ends[:size] = 0
        descend(tree, batch, size, exploration, batch_key, tops)
        count = unlisted(tree, batch, size, first_new)
        if count:
            _list(tree, batch, code, count)
            descend(tree, batch, size, exploration, batch_key, tops)
        new = joint_actions(tree, first_new, code.states, code.joint)
        if new:
            code.next_job[_NUM_ROWS] = new
            call_address(code.addresses[_RUN], (code.addresses[_NEXT_JOB],))
            tree.states[first_new : first_new + new] = code.next_states[:new]
        playouts = min(most_playouts, code.states.shape[0] // size)
        count = open_ends(tree, batch, size, playouts, code.states)
        _play(code, count, batch_key)
        back_up(tree, batch, size, playouts, code.goals[:count], code.steps[:count], tops, total)
        fits = fits and adds_up(code.goals[:count], total)
        done += size
        number += 1
        if not fits:
            break
    return done, number - first_batch, fits
