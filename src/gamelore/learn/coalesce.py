"""Game trees as integers: equal siblings become one, from the lowest level up (B&S 2007, section 3, Figure 1).

A node is 0 where it is open, 1 + outcome where it is terminal, and FIRST_SET + number where it is the set of its
children's integers. Sets are numbered as they are met, whatever their depth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..play.graph import joint_stride
from ..play.kernel import kernel
from ..play.streams import mix

Ids = NDArray[np.int32]

OPEN_ID = 0
FIRST_SET = 102  # behind 1 + the goal values 0 .. 100
UNKNOWN = -1
NO_ROOM, BAD_GOAL = -1, -2


class Sets:
    """Sets of ids by number: set s is pool[starts[s] : starts[s + 1]], ascending; `slots` is its hash table."""

    def __init__(self) -> None:
        self.counts = np.zeros(1, np.int64)  # [sets], changed by the kernel
        self.starts = np.zeros(65, np.int64)
        self.pool = np.empty(1024, np.int32)
        self.slots = np.full(128, UNKNOWN, np.int32)

    @property
    def num_sets(self) -> int:
        return int(self.counts[0])

    def members(self, number: int) -> Ids:
        """The ids in the set with this id."""
        begin, end = self.starts[number - FIRST_SET : number - FIRST_SET + 2]
        return self.pool[begin:end]

    def grow(self, largest: int) -> None:
        """Makes room for as many sets again, and for one with so many members."""
        self.starts = np.concatenate([self.starts, np.zeros(len(self.starts), np.int64)])
        self.pool = np.concatenate([self.pool, np.empty(len(self.pool) + largest, np.int32)])
        self.slots = np.full(2 * len(self.slots), UNKNOWN, np.int32)
        _refill(self.num_sets, self.slots, self.starts, self.pool)


@kernel("int64(int32[::1], int32[::1], int64[::1], int32[::1])")
def _find(members: Ids, slots: Ids, starts: NDArray[np.int64], pool: Ids) -> int:
    """The slot of a set, or the empty one where it belongs."""
    value = np.uint64(members.size)
    for member in members:
        value = mix(value, np.uint64(member))
    mask = slots.size - 1
    slot = np.int64(value) & mask
    while slots[slot] != UNKNOWN:
        begin, end = starts[slots[slot]], starts[slots[slot] + 1]
        same = end - begin == members.size
        for i in range(members.size):
            same = same and pool[begin + i] == members[i]
        if same:
            break
        slot = (slot + 1) & mask
    return int(slot)


@kernel("void(int64, int32[::1], int64[::1], int32[::1])")
def _refill(num_sets: int, slots: Ids, starts: NDArray[np.int64], pool: Ids) -> None:
    for number in range(num_sets):
        slots[_find(pool[starts[number] : starts[number + 1]], slots, starts, pool)] = number


@kernel("int64(int32[::1], int64, int32)")
def _add(members: Ids, size: int, member: np.int32) -> int:
    """Puts a member into the ascending members[:size], unless it is there; the new size."""
    at = size
    while at > 0 and members[at - 1] > member:
        at -= 1
    if at > 0 and members[at - 1] == member:
        return size
    for i in range(size, at, -1):
        members[i] = members[i - 1]
    members[at] = member
    return size + 1


@kernel(
    "UniTuple(int64, 2)(int64, int32[::1], int32[::1], int64, int32[::1], int32[::1], boolean[::1], int16[:, ::1],"
    " int32[:, ::1], int64[::1], int64[::1], int32[::1], int32[::1], int64[::1], int32[::1], int64[::1], int32[::1])"
)
def coalesce(
    first: int,
    rows: Ids,
    choices: Ids,
    role: int,
    lower: Ids,
    leaves: Ids,
    terminal: NDArray[np.bool_],
    goals: NDArray[np.int16],
    num_moves: NDArray[np.int32],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
    slots: Ids,
    starts: NDArray[np.int64],
    pool: Ids,
    counts: NDArray[np.int64],
    out: Ids,
) -> tuple[int, int]:
    """The ids of the sets below rows[first:], from their children's ids one level down, into `out`.

    choices  -1: below the position; else below the pair of position and this own move
    lower    ids of the level below, empty on the lowest, where an open position is just that
    Returns (how many rows are done, 0 or NO_ROOM or BAD_GOAL).
    """
    largest = 1
    for row in rows[first:]:
        largest = max(largest, num_joint[row])
    members = np.empty(largest, np.int32)
    for i in range(first, rows.size):
        row = rows[i]
        stride = joint_stride(row, role, num_moves)
        size = 0
        for joint in range(num_joint[row]):
            if choices[i] >= 0 and joint // stride % num_moves[row, role] != choices[i]:
                continue
            child = successors[succ_start[row] + joint]
            node = np.int32(OPEN_ID)
            if terminal[child]:
                goal = max(goals[child, role], np.int16(0))
                if goal >= leaves.size or leaves[goal] < 0:
                    return i, BAD_GOAL
                node = leaves[goal]
            elif lower.size:
                node = lower[child]
            size = _add(members, size, node)
        slot = _find(members[:size], slots, starts, pool)
        if slots[slot] == UNKNOWN:
            number, begin = counts[0], starts[counts[0]]
            if number + 2 > starts.size or begin + size > pool.size or 2 * number + 2 > slots.size:
                return i, NO_ROOM
            pool[begin : begin + size] = members[:size]
            starts[number + 1] = begin + size
            slots[slot] = number
            counts[0] = number + 1
        out[i] = FIRST_SET + slots[slot]
    return rows.size, 0
