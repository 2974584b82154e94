"""The positions met so far, each worked out once.

A `Graph` gives every position that occurs a row number. What the rules say about a row is asked once, in
large batches, and kept in flat arrays; playing then is a walk along them. Two stages of knowledge:

    listed      the legal moves are known       legal move i of role r is move_actions[move_start[row, r] + i]
    expanded    every successor is known too    successor j is successors[succ_start[row] + j], j counting the
                                                joint moves in mixed radix, the last role fastest

Row numbers depend on the order in which positions are met; nothing that has to be repeatable may be drawn
from them. `keys` are the same on both engines and in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import GameloreError
from .kernel import kernel
from .statetable import StateTable, longer

if TYPE_CHECKING:
    from ..rules.game import Game

_T = TypeVar("_T")

MAX_ROWS = 20_000_000
MAX_JOINT_MOVES = 100_000  # of one position; beyond, its successors are worked out one by one
_BATCH = 1 << 16  # successors worked out at once: bounds the working memory


class Graph:
    """Rows of positions of one game; `start` is the row of the initial position.

    Arrays, all with one entry per row (new array objects replace them as the graph grows, so fetch them anew
    after `intern`, `list_moves`, `expand` or `successor`):

    terminal    bool[rows]
    goals       int16[rows, roles], -1 where the rules give none or several
    keys        uint64[rows], the same for the same facts everywhere
    acting      bool[rows, roles], whose turn it is
    listed      bool[rows], the legal moves are known
    expanded    bool[rows], the successors are known
    stuck       bool[rows], not terminal and some role has no move; False until listed
    num_moves   int32[rows, roles], 0 until listed and in terminal rows
    move_start  int64[rows, roles], into `move_actions`, int32[any]
    succ_start  int64[rows], into `successors`, int32[any]; 0 until expanded
    num_joint   int64[rows], joint moves; 0 until listed, in terminal and in stuck rows

    Raises GameloreError from any call that would need more than `max_rows` rows.
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
        self._memos: dict[Callable[[Graph], Any], Any] = {}
        self._show()
        self.start = int(self.intern(game.initial[None, :])[0])

    def memo(self, make: Callable[[Graph], _T]) -> _T:
        """What `make(graph)` returned when first asked: derived tables live and die with their graph."""
        if make not in self._memos:
            self._memos[make] = make(self)
        return self._memos[make]  # type: ignore[no-any-return]

    def intern(self, states: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Rows int32[n] of states uint64[n, words]; new ones are evaluated."""
        rows = self._table.intern(np.ascontiguousarray(states, np.uint64))
        self._evaluate()
        if len(rows) < len(states):
            raise GameloreError(
                f"expected at most {self.max_rows} positions of {self.game.name}, got more; allow more with "
                "max_rows, look less far ahead, or play fewer matches on one graph"
            )
        return rows

    def list_moves(self, rows: ArrayLike) -> None:
        """Makes the legal moves of these rows known."""
        fresh = _unmarked(_as_rows(rows), self.listed)
        if fresh.size:
            self._list(fresh)
            self._show()

    def expand(self, rows: ArrayLike) -> None:
        """Makes the legal moves and every successor of these rows known.

        Raises GameloreError where a position has more than `max_joint_moves` joint moves.
        """
        fresh = _unmarked(_as_rows(rows), self.expanded)
        if fresh.size:
            self.list_moves(fresh)
            self._check_joint(fresh)
            self._expand(fresh)
            self._show()

    def successor(self, rows: ArrayLike, choices: ArrayLike) -> NDArray[np.int32]:
        """Rows int32[n] after the joint moves int32[n, roles]: positions within each role's legal moves.

        Expanded rows are looked up; for others the rules are asked, for these joint moves only. Raises
        IndexError where a choice is outside the list.
        """
        rows = _as_rows(rows)
        choices = np.ascontiguousarray(choices, np.int32).reshape(len(rows), self.game.num_roles)
        self.list_moves(rows)
        found, actions, missing = _walk(
            rows,
            choices,
            self.num_moves,
            self.move_start,
            self.move_actions,
            self.expanded,
            self.succ_start,
            self.successors,
        )
        if missing < 0:
            raise IndexError("expected choices within the legal moves of each role, got one outside")
        if missing:
            open_rows = found < 0
            found[open_rows] = self.intern(self.game.next(self.states[rows[open_rows]], actions[open_rows]))
        return found

    def children(self, rows: ArrayLike) -> NDArray[np.int32]:
        """The non-terminal positions right below these rows (it expands them), each once, int32[any]."""
        rows = _as_rows(rows)
        self.expand(rows)
        marks = self._columns["marks"]
        return _open_successors(rows, self.num_joint, self.succ_start, self.successors, self.terminal, marks)

    def distinct(self, rows: ArrayLike) -> NDArray[np.int32]:
        """These rows, each once, in the order of their first appearance."""
        return _unmarked(_as_rows(rows), self._columns["marks"])

    def legal(self, row: int, role: int) -> NDArray[np.int32]:
        """The role's legal actions int32[moves] in this row, in action order."""
        self.list_moves([row])
        begin = self.move_start[row, role]
        return self.move_actions[begin : begin + self.num_moves[row, role]]

    def facts(self, row: int) -> frozenset[str]:
        """The facts of this row."""
        return self.game.facts(self.states[row])

    def _evaluate(self) -> None:
        """Asks the rules about the rows that came in since the last time."""
        for begin in range(self.num_rows, self._table.num_rows, _BATCH):
            part = slice(begin, min(begin + _BATCH, self._table.num_rows))
            self._widen(part.stop)
            states = self._table.states[part]
            self._columns["terminal"][part], self._columns["goals"][part] = self.game.evaluate(states)
            self._columns["keys"][part] = self.game.state_keys(states)
            self._columns["acting"][part] = self.game.acting(states)
            self.num_rows = part.stop
            self._show()

    def _widen(self, rows: int) -> None:
        if rows > len(self._columns["keys"]):
            for name, column in self._columns.items():
                self._columns[name] = longer(column, self._table.capacity)

    def _list(self, fresh: NDArray[np.int32]) -> None:
        legal = self.game.legal(self.states[fresh])
        starts, counts = legal.by_role(self.game.num_roles)
        begin = self._actions.append(legal.actions)
        self.num_moves[fresh] = counts
        self.move_start[fresh] = begin + starts
        joint = np.prod(counts.astype(np.float64), axis=1)
        self.num_joint[fresh] = np.minimum(joint, 1e18).astype(np.int64)
        self.stuck[fresh] = (joint == 0) & ~self.terminal[fresh]
        self.listed[fresh] = True

    def _check_joint(self, fresh: NDArray[np.int32]) -> None:
        worst = fresh[np.argmax(self.num_joint[fresh])]
        if self.num_joint[worst] > self.max_joint_moves:
            moves = " x ".join(map(str, self.num_moves[worst]))
            raise GameloreError(
                f"expected at most {self.max_joint_moves} joint moves in a position, got {moves} in "
                f"{self.game.name}; allow more with max_joint_moves, or use players that do not look ahead"
            )

    def _expand(self, fresh: NDArray[np.int32]) -> None:
        for part in _parts(fresh, self.num_joint[fresh]):
            parents, joint = _joint_moves(part, self.num_joint, self.num_moves, self.move_start, self.move_actions)
            found = self.intern(self.game.next(self.states[parents], joint)) if len(parents) else parents
            begin = self._successors.append(found)
            counts = self.num_joint[part]
            self.succ_start[part] = begin + np.cumsum(counts) - counts
            self.expanded[part] = True

    def _show(self) -> None:
        """Points the public arrays at the used part of the columns."""
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
        return self._array[: self._size]

    def append(self, values: NDArray[np.int32]) -> int:
        """Where the values begin."""
        begin, self._size = self._size, self._size + len(values)
        if self._size > len(self._array):
            self._array = longer(self._array, max(self._size, 2 * len(self._array)))
        self._array[begin : self._size] = values
        return begin


def _columns(rows: int, roles: int) -> dict[str, NDArray[Any]]:
    """The arrays of `rows` rows; what was not asked yet is 0 or False."""
    return {
        "keys": np.zeros(rows, np.uint64),
        "terminal": np.zeros(rows, np.bool_),
        "goals": np.zeros((rows, roles), np.int16),
        "acting": np.zeros((rows, roles), np.bool_),
        "listed": np.zeros(rows, np.bool_),
        "expanded": np.zeros(rows, np.bool_),
        "stuck": np.zeros(rows, np.bool_),
        "marks": np.zeros(rows, np.bool_),  # scratch, False between calls
        "num_moves": np.zeros((rows, roles), np.int32),
        "move_start": np.zeros((rows, roles), np.int64),
        "num_joint": np.zeros(rows, np.int64),
        "succ_start": np.zeros(rows, np.int64),
    }


def _as_rows(rows: ArrayLike) -> NDArray[np.int32]:
    return np.ascontiguousarray(rows, np.int32)


def _parts(rows: NDArray[np.int32], counts: NDArray[np.int64]) -> list[NDArray[np.int32]]:
    """Splits rows so that the joint moves of a part fit a batch, a single position's excepted."""
    cuts = np.flatnonzero(np.diff(np.cumsum(counts) // _BATCH)) + 1
    return np.split(rows, cuts)


@kernel("int32[::1](int32[::1], boolean[::1])")
def _unmarked(rows: NDArray[np.int32], marked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The rows without a mark, each once, in the order of their first appearance."""
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


@kernel("int32[::1](int32[::1], int64[::1], int64[::1], int32[::1], boolean[::1], boolean[::1])")
def _open_successors(
    rows: NDArray[np.int32],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
    terminal: NDArray[np.bool_],
    marks: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Distinct non-terminal successors, in the order of their first appearance."""
    total = 0
    for row in rows:
        total += num_joint[row]
    out = np.empty(total, np.int32)
    size = 0
    for row in rows:
        for child in successors[succ_start[row] : succ_start[row] + num_joint[row]]:
            if not terminal[child] and not marks[child]:
                marks[child] = True
                out[size] = child
                size += 1
    for i in range(size):
        marks[out[i]] = False
    return out[:size]


@kernel("int64(int64, int64, int32[:, ::1])")
def joint_stride(row: int, role: int, num_moves: NDArray[np.int32]) -> int:
    """How far apart a position's joint moves lie that differ by one in the role's choice; for use inside kernels."""
    stride = 1
    for other in range(role + 1, num_moves.shape[1]):
        stride *= num_moves[row, other]
    return stride


@kernel("Tuple((int32[::1], int32[:, ::1]))(int32[::1], int64[::1], int32[:, ::1], int64[:, ::1], int32[::1])")
def _joint_moves(
    rows: NDArray[np.int32],
    num_joint: NDArray[np.int64],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    move_actions: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Every joint move of the rows: (its row, its actions [total, roles]), the last role fastest."""
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


@kernel(
    "Tuple((int32[::1], int32[:, ::1], int64))"
    "(int32[::1], int32[:, ::1], int32[:, ::1], int64[:, ::1], int32[::1],"
    " boolean[::1], int64[::1], int32[::1])"
)
def _walk(
    rows: NDArray[np.int32],
    choices: NDArray[np.int32],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    move_actions: NDArray[np.int32],
    expanded: NDArray[np.bool_],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """(successor rows, -1 where unknown; the actions chosen; how many are unknown, -1 on a bad choice)."""
    found = np.full(rows.size, -1, np.int32)
    actions = np.empty(choices.shape, np.int32)
    missing = 0
    for i in range(rows.size):
        row = rows[i]
        number = 0
        for role in range(num_moves.shape[1]):
            choice = choices[i, role]
            if choice < 0 or choice >= num_moves[row, role]:
                return found, actions, -1
            actions[i, role] = move_actions[move_start[row, role] + choice]
            number = number * num_moves[row, role] + choice
        if expanded[row]:
            found[i] = successors[succ_start[row] + number]
        else:
            missing += 1
    return found, actions, missing
