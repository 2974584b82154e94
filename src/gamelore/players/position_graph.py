"""Positions with row numbers: a hash table of states, and the graph of positions with their moves and successors.

A `PositionGraph` gives a row number to each position that occurs. It evaluates the rules once for each row, in large
batches, and keeps the results in flat arrays. A match is then a walk along these arrays. A row has two stages:

    listed      the legal moves are known       legal move i of role r is move_actions[move_start[row, r] + i]
    expanded    the successors are known, too   the successor after joint move j is successors[succ_start[row] + j];
                                                j counts the joint moves, and the move of the last role changes fastest

Row numbers depend on the order in which positions first occur. So results that must be repeatable must not depend on
row numbers. Use `keys` instead: they are the same on both engines and in every process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError
from .kernel import I32, I64, U64, Bool, Boolx2, I16x2, I32x2, I64x2, U64x2, inlined, kernel, kernel_without_gil
from .random_streams import mix

if TYPE_CHECKING:
    from ..game.game import Game

_FIRST_CAPACITY = 1024
_LARGEST = (1 << 63) - 1


MIB = 1 << 20


def memory_cap(variable: str, default_mib: int) -> int:
    """Return the cap on memory, in bytes, that an environment variable sets in MiB.

    Raise GameloreError if its value is not a number.
    """
    chosen = os.environ.get(variable) or str(default_mib)
    if not chosen.isdecimal():
        raise GameloreError(
            f"expected a number of MiB in {variable}, got {chosen!r}; write a number, for example {default_mib}"
        )
    return int(chosen) * MIB


class StateTable:
    """Hash table that gives row numbers to at most `max_rows` states uint64[words], from 0 on, in order of insertion.

    `slots` is int32[a power of two]: the row of the state with this hash (open addressing), or -1 in an empty slot; see
    `find_rows`.
    """

    def __init__(self, num_words: int, max_rows: int) -> None:
        self.max_rows = max_rows
        self.num_rows = 0
        self._states = np.zeros((min(_FIRST_CAPACITY, max_rows), num_words), np.uint64)
        self.slots = _empty_slots(_FIRST_CAPACITY)

    @property
    def capacity(self) -> int:
        """The number of rows that fit before the table grows."""
        return len(self._states)

    @property
    def states(self) -> NDArray[np.uint64]:
        """The states by row, uint64[rows, words]."""
        return self._states[: self.num_rows]

    def intern(self, states: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the rows int32[n] of states uint64[n, words], and add new states to the table.

        If the table becomes full, return only the rows of the states before the first state that does not fit.
        """
        rows = np.empty(len(states), np.int32)
        done = 0
        while True:
            self.num_rows, done = _intern(states, self.slots, self._states, self.num_rows, done, rows)
            if done == len(states) or self.capacity == self.max_rows:
                return rows[:done]
            self._states = longer(self._states, min(2 * self.capacity, self.max_rows))
            self.slots = _empty_slots(self.capacity)
            _refill(self._states, self.num_rows, self.slots)


def find_rows(states: NDArray[np.uint64], slots: NDArray[np.int32], stored: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the rows int32[n] of states uint64[n, words] in a table with these slots and states.

    The row of a state that is not in the table is -1.
    """
    return _find_rows(np.ascontiguousarray(states), slots, stored)


def longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a copy with `length` entries on the first axis. New entries are 0."""
    # np.zeros instead of np.resize, because unused pages of np.zeros take no memory
    copy = np.zeros((length, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


def as_rows(rows: ArrayLike) -> NDArray[np.int32]:
    """Return row numbers as a contiguous int32 array."""
    return np.ascontiguousarray(rows, np.int32)


def _empty_slots(rows: int) -> NDArray[np.int32]:
    """Return empty slots for a table of `rows` rows. Their number is a power of two; at most half are ever used."""
    return np.full(1 << (2 * rows - 1).bit_length(), -1, np.int32)


@kernel
def hash_state(states: U64x2, i: int) -> np.uint64:
    """Return a hash of the words of state i; for use inside kernels."""
    value = np.uint64(0)
    for word in range(states.shape[1]):
        value = mix(value, states[i, word])
    return value


@kernel
def _find_slot(states: U64x2, i: int, slots: I32, stored: U64x2) -> int:
    """Return the slot of state i, or the empty slot where it belongs (linear probing)."""
    slot = np.int64(hash_state(states, i) & np.uint64(slots.size - 1))
    while slots[slot] >= 0:
        row = slots[slot]
        same = True
        for word in range(states.shape[1]):
            same &= states[i, word] == stored[row, word]
        if same:
            break
        slot = (slot + 1) & (slots.size - 1)
    return int(slot)


@kernel_without_gil
def _intern(states: U64x2, slots: I32, stored: U64x2, num_rows: int, done: int, out: I32) -> tuple[int, int]:
    """Find or add the states from number `done` on, until the table is full. Return the new (num_rows, done)."""
    for i in range(done, states.shape[0]):
        slot = _find_slot(states, i, slots, stored)
        if slots[slot] < 0:
            if num_rows == stored.shape[0]:
                return num_rows, i
            stored[num_rows] = states[i]
            slots[slot] = num_rows
            num_rows += 1
        out[i] = slots[slot]
    return num_rows, states.shape[0]


@kernel_without_gil
def _refill(stored: U64x2, num_rows: int, slots: I32) -> None:
    """Enter all rows into slots that are still empty."""
    for row in range(num_rows):
        slots[_find_slot(stored, row, slots, stored)] = row


@kernel
def _find_rows(states: U64x2, slots: I32, stored: U64x2) -> I32:
    """See `find_rows`."""
    rows = np.empty(states.shape[0], np.int32)
    for i in range(states.shape[0]):
        rows[i] = slots[_find_slot(states, i, slots, stored)]
    return rows


class GraphArrays(NamedTuple):
    """The arrays of a `PositionGraph` that kernels read. A graph that grows replaces them."""

    terminal: Bool
    goals: I16x2
    keys: U64
    acting: Boolx2
    listed: Bool
    expanded: Bool
    stuck: Bool
    num_moves: I32x2
    move_start: I64x2
    succ_start: I64
    num_joint: I64
    successors: I32


_T = TypeVar("_T")

MAX_ROWS = 20_000_000
MAX_JOINT_MOVES = 100_000  # in one position
_BATCH = 1 << 16  # successors computed at once; this limits the working memory


class PositionGraph:
    """Positions of one game by row, with their moves and successors.

    `start` is the row of the initial position. The following arrays have one entry for each row. Every method that adds
    rows or moves may replace them by larger arrays, so read the attributes again after such a call:

    states      uint64[rows, words]
    terminal    bool[rows]
    goals       int16[rows, roles], -1 where the rules give no goal or several goals
    keys        uint64[rows], hash of the facts, the same in every process
    acting      bool[rows, roles], True for the roles whose turn it is
    listed      bool[rows], True if the legal moves are known
    expanded    bool[rows], True if the successors are known
    stuck       bool[rows], True if not terminal and some role has no move; False until listed
    num_moves   int32[rows, roles], 0 until listed and in terminal rows
    move_start  int64[rows, roles], indices into `move_actions`, int32[any]
    succ_start  int64[rows], indices into `successors`, int32[any]; 0 until expanded
    num_joint   int64[rows], number of joint moves; 0 until listed, in terminal and in stuck rows

    A call that would need more than `max_rows` rows raises GameloreError.
    """

    def __init__(self, game: Game, max_rows: int = MAX_ROWS, max_joint_moves: int = MAX_JOINT_MOVES) -> None:
        self.game = game
        self.max_rows = max_rows
        self.max_joint_moves = max_joint_moves
        self.num_rows = 0
        self._table = StateTable(game.num_words, max_rows)
        self._columns = _columns(self._table.capacity, game.num_roles)
        self._actions = _Pool()
        self._successors = _Pool()
        self._memos: dict[Hashable, Any] = {}
        self._show()
        self.start = int(self.intern(game.initial[None, :])[0])

    def memo(self, make: Callable[..., _T], *arguments: Hashable) -> _T:
        """Return `make(graph, *arguments)`. Compute it once, and keep the result as long as the graph exists."""
        key = make, *arguments
        if key not in self._memos:
            self._memos[key] = make(self, *arguments)
        return self._memos[key]  # type: ignore[no-any-return]

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that the arrays use. While the arrays grow, they need about twice as much."""
        per_row = sum(column.nbytes // len(column) for column in self._columns.values())
        pools = self.move_actions.nbytes + self.successors.nbytes
        return self.num_rows * per_row + self.states.nbytes + self._table.slots.nbytes + pools

    def intern(self, states: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the rows int32[n] of states uint64[n, words]. Add new states to the graph and evaluate them."""
        rows = self._table.intern(np.ascontiguousarray(states, np.uint64))
        self._evaluate()
        if len(rows) < len(states):
            raise GameloreError(
                f"expected at most {self.max_rows} positions of {self.game.name}, got more; raise max_rows, look "
                "ahead less far, or play fewer matches on one graph"
            )
        return rows

    def list_moves(self, rows: ArrayLike) -> None:
        """List the legal moves of these rows."""
        fresh = _unmarked(as_rows(rows), self.listed)
        if not fresh.size:
            return
        legal = self.game.legal(self.states[fresh])
        starts, counts = legal.by_role(self.game.num_roles)
        self.num_moves[fresh] = counts
        self.move_start[fresh] = self._actions.append(legal.actions) + starts
        joint = legal.num_joint(self.game.num_roles)
        self.num_joint[fresh] = joint
        self.stuck[fresh] = (joint == 0) & ~self.terminal[fresh]
        self.listed[fresh] = True
        self._show()

    def expand(self, rows: ArrayLike) -> None:
        """List the legal moves and all successors of these rows.

        Raise GameloreError if a position has more than `max_joint_moves` joint moves.
        """
        fresh = _unmarked(as_rows(rows), self.expanded)
        if not fresh.size:
            return
        self.list_moves(fresh)
        counts = self.num_joint[fresh]
        worst = fresh[np.argmax(counts)]
        if self.num_joint[worst] > self.max_joint_moves:
            moves = " x ".join(map(str, self.num_moves[worst]))
            raise GameloreError(
                f"expected at most {self.max_joint_moves} joint moves in a position, got {moves} in "
                f"{self.game.name}; allow more with max_joint_moves, or use players that do not look ahead"
            )
        # the joint moves of a part fit into a batch, unless a single position has more joint moves
        for part in np.split(fresh, np.flatnonzero(np.diff(np.cumsum(counts) // _BATCH)) + 1):
            parents, joint = _joint_moves(part, self.num_joint, self.num_moves, self.move_start, self.move_actions)
            after = self.intern(self.game.next(self.states[parents], joint)) if len(parents) else parents
            counts = self.num_joint[part]
            begin = self._successors.append(after)
            self._show()  # before a row of the part counts as expanded: the next part may fail
            self.succ_start[part] = begin + np.cumsum(counts) - counts
            self.expanded[part] = True

    def successor(self, rows: ArrayLike, choices: ArrayLike) -> NDArray[np.int32]:
        """Return the rows int32[n] after joint moves int32[n, roles], each an index into the role's legal moves.

        For expanded rows, look up the successors. For all other rows, compute the successors after these joint moves
        only. Raise IndexError if a choice is out of range.
        """
        rows = as_rows(rows)
        choices = np.ascontiguousarray(choices, np.int32).reshape(len(rows), self.game.num_roles)
        self.list_moves(rows)
        moves = self.num_moves, self.move_start, self.move_actions
        after, actions, missing = _walk(rows, choices, *moves, self.expanded, self.succ_start, self.successors)
        if missing < 0:
            raise IndexError("expected choices that are indices of legal moves, got another number")
        if missing:
            unknown = after < 0
            after[unknown] = self.intern(self.game.next(self.states[rows[unknown]], actions[unknown]))
        return after

    def successors_of(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Expand these rows. Return all their successors int32[any], one row after the other."""
        rows = as_rows(rows)
        self.expand(rows)
        return _successors(rows, self.num_joint, self.succ_start, self.successors)

    def children(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Expand these rows. Return their distinct non-terminal successors int32[any]."""
        after = self.successors_of(rows)
        return self.distinct(after[~self.terminal[after]])

    def distinct(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the distinct rows, in the order of their first appearance."""
        return _unmarked(as_rows(rows), self._columns["marks"])

    def legal(self, row: int, role: int) -> NDArray[np.int32]:
        """Return the role's legal actions int32[moves] in this row, in action order."""
        self.list_moves([row])
        begin = self.move_start[row, role]
        return self.move_actions[begin : begin + self.num_moves[row, role]]

    def facts(self, row: int) -> frozenset[str]:
        """Return the facts of this row."""
        return self.game.facts(self.states[row])

    @property
    def arrays(self) -> GraphArrays:
        """The present arrays, for kernels."""
        return GraphArrays._make(getattr(self, name) for name in GraphArrays._fields)

    def _evaluate(self) -> None:
        """Evaluate the rows added since the last call: terminal, goals, keys and acting roles."""
        for begin in range(self.num_rows, self._table.num_rows, _BATCH):
            part = slice(begin, min(begin + _BATCH, self._table.num_rows))
            if part.stop > len(self._columns["keys"]):
                for name, column in self._columns.items():
                    self._columns[name] = longer(column, self._table.capacity)
            states = self._table.states[part]
            self._columns["terminal"][part], self._columns["goals"][part] = self.game.evaluate(states)
            self._columns["keys"][part] = self.game.state_keys(states)
            self._columns["acting"][part] = self.game.acting(states)
            self.num_rows = part.stop
            self._show()

    def _show(self) -> None:
        """Make the public arrays views of the used part of the columns."""
        rows, columns = self.num_rows, self._columns
        self.states: NDArray[np.uint64] = self._table.states[:rows]
        self.terminal: NDArray[np.bool_] = columns["terminal"][:rows]
        self.goals: NDArray[np.int16] = columns["goals"][:rows]
        self.keys: NDArray[np.uint64] = columns["keys"][:rows]
        self.acting: NDArray[np.bool_] = columns["acting"][:rows]
        self.listed: NDArray[np.bool_] = columns["listed"][:rows]
        self.expanded: NDArray[np.bool_] = columns["expanded"][:rows]
        self.stuck: NDArray[np.bool_] = columns["stuck"][:rows]
        self.num_moves: NDArray[np.int32] = columns["num_moves"][:rows]
        self.move_start: NDArray[np.int64] = columns["move_start"][:rows]
        self.num_joint: NDArray[np.int64] = columns["num_joint"][:rows]
        self.succ_start: NDArray[np.int64] = columns["succ_start"][:rows]
        self.move_actions: NDArray[np.int32] = self._actions.used
        self.successors: NDArray[np.int32] = self._successors.used


class _Pool:
    """An int32 array that grows at its end."""

    def __init__(self) -> None:
        self._array = np.empty(1024, np.int32)
        self._size = 0

    @property
    def used(self) -> NDArray[np.int32]:
        """The values appended so far."""
        return self._array[: self._size]

    def append(self, values: NDArray[np.int32]) -> int:
        """Append values and return the index of the first."""
        begin, self._size = self._size, self._size + len(values)
        if self._size > len(self._array):
            self._array = longer(self._array, max(self._size, 2 * len(self._array)))
        self._array[begin : self._size] = values
        return begin


def _columns(rows: int, roles: int) -> dict[str, NDArray[Any]]:
    """Return arrays of zeros for `rows` rows. `marks` is working memory of `_unmarked`, False between its calls."""
    flags = dict.fromkeys(("terminal", "listed", "expanded", "stuck", "marks"), np.bool_)
    by_row = {**flags, "keys": np.uint64, "num_joint": np.int64, "succ_start": np.int64}
    by_role = {"goals": np.int16, "acting": np.bool_, "num_moves": np.int32, "move_start": np.int64}
    columns: dict[str, NDArray[Any]] = {name: np.zeros(rows, dtype) for name, dtype in by_row.items()}
    return columns | {name: np.zeros((rows, roles), dtype) for name, dtype in by_role.items()}


@kernel
def _unmarked(rows: I32, marked: Bool) -> I32:
    """Return the distinct rows without a mark, in the order of their first appearance."""
    out = np.empty(rows.size, np.int32)
    size = 0
    for row in rows:
        if not marked[row]:
            marked[row] = True
            out[size] = row
            size += 1
    for i in range(size):
        marked[out[i]] = False
    return out[:size]


@kernel
def _successors(rows: I32, num_joint: I64, succ_start: I64, successors: I32) -> I32:
    """Return all successors of expanded rows, one row after the other."""
    total = 0
    for row in rows:
        total += num_joint[row]
    out = np.empty(total, np.int32)
    at = 0
    for row in rows:
        for child in successors[succ_start[row] : succ_start[row] + num_joint[row]]:
            out[at] = child
            at += 1
    return out


@inlined
def joint_stride(row: int, role: int, num_moves: I32x2) -> int:
    """Return by how much the number of a joint move grows if only the role's choice in it grows by 1.

    For use inside kernels.
    """
    stride = 1
    for other in range(role + 1, num_moves.shape[1]):
        stride *= num_moves[row, other]
    return stride


@kernel
def _joint_moves(
    rows: I32, num_joint: I64, num_moves: I32x2, move_start: I64x2, move_actions: I32
) -> tuple[I32, I32x2]:
    """Return all joint moves of the rows: (rows [total], actions [total, roles]). The last role changes fastest."""
    total = 0
    for row in rows:
        total += num_joint[row]
    roles = num_moves.shape[1]
    parents = np.empty(total, np.int32)
    joint = np.empty((total, roles), np.int32)
    at = 0
    for row in rows:
        for number in range(num_joint[row]):
            rest = number
            for role in range(roles - 1, -1, -1):
                joint[at, role] = move_actions[move_start[row, role] + rest % num_moves[row, role]]
                rest //= num_moves[row, role]
            parents[at] = row
            at += 1
    return parents, joint


@inlined
def joint_number(row: int, i: int, choices: I32x2, num_moves: I32x2) -> int:
    """Return the number of the joint move choices[i] in a row, or -1 if a choice is out of range.

    It is any number from 0 on in rows with more than 2^63 joint moves, which are never expanded. For use inside
    kernels.
    """
    number = 0
    for role in range(num_moves.shape[1]):
        choice = choices[i, role]
        if choice < 0 or choice >= num_moves[row, role]:
            return -1
        number = (number * num_moves[row, role] + choice) & _LARGEST
    return number


@inlined
def must_choose(row: int, role: int, acting: Boolx2, num_moves: I32x2) -> bool:
    """Return whether the role's player is asked for a move in this row; for use inside kernels."""
    return bool(acting[row, role] or num_moves[row, role] > 1)


@kernel
def _walk(
    rows: I32,
    choices: I32x2,
    num_moves: I32x2,
    move_start: I64x2,
    move_actions: I32,
    expanded: Bool,
    succ_start: I64,
    successors: I32,
) -> tuple[I32, I32x2, int]:
    """Return (successor rows, chosen actions, number of unknown successors).

    An unknown successor is -1. The number of unknown successors is -1 if a choice is out of range.
    """
    after = np.full(rows.size, -1, np.int32)
    actions = np.empty(choices.shape, np.int32)
    missing = 0
    for i in range(rows.size):
        row = rows[i]
        number = joint_number(row, i, choices, num_moves)
        if number < 0:
            return after, actions, -1
        for role in range(num_moves.shape[1]):
            actions[i, role] = move_actions[move_start[row, role] + choices[i, role]]
        if expanded[row]:
            after[i] = successors[succ_start[row] + number]
        else:
            missing += 1
    return after, actions, missing
