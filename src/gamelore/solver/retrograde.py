"""Retrograde analysis: values and distances of all positions, computed backward from the ends, in linear time.

Positions are rows of a graph. In each position one role chooses. The first role wants a high value, the second role a
low value, and the value of an endless match is `middle`.

For each value above `middle`, the highest first, the algorithm finds the set of positions from which the first role can
force this value (the attractor of the value). The set begins with the terminal positions of this value. A position
joins it if the first role chooses and one successor is in the set, or if the second role chooses and all successors are
settled. For each value below `middle`, the lowest first, it does the same for the second role. All other positions have
the value `middle`. (Thompson 1986, "Retrograde analysis of certain endgames", ICCA Journal 9(3), for chess. With
several goals, these are attractors of reachability games, one after the other.)

The search of each attractor is breadth first, one ply at a time. So distances are numbers of plies if the forcing role
takes the fastest way and the forced role takes the slowest way, each among its moves that keep the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..players.kernel import I8, I16, I32, I64, kernel_without_gil

OPEN = -1  # in `ends`: not terminal; as a distance: no role can force an end with this value
_AT_ONCE = 1 << 16  # rows whose parents are looked at between two calls of `progress`


@dataclass(slots=True)
class Moves:
    """Successors of all rows, and the data of the rows.

    chooser       int8[rows], the role that chooses; 0 or 1
    num_children  int32[rows], number of successors; 0 in terminal rows
    children      successors of row 0, then of row 1, and so on, as int32[any] in any number of parts; `values` empties
                  this list to save memory
    ends          int16[rows], the first role's goal in terminal rows, OPEN elsewhere
    """

    chooser: NDArray[np.int8]
    num_children: NDArray[np.int32]
    children: list[NDArray[np.int32]]
    ends: NDArray[np.int16]


def values(
    moves: Moves, middle: float, progress: Callable[[int, int], None]
) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """Return (goals int16[rows] of the first role, distances int32[rows]).

    A goal is OPEN where the value is `middle`. A distance is the number of plies to the end, or OPEN. `progress` is
    called every few milliseconds with the number of settled rows and the number of all rows.
    """
    num_rows, settled = len(moves.ends), int(np.count_nonzero(moves.ends != OPEN))
    start, parents = _reversed(moves, partial(progress, settled, num_rows))
    goals = np.full(num_rows, OPEN, np.int16)
    distances = np.full(num_rows, OPEN, np.int32)
    missing = moves.num_children.copy()
    queue = np.empty(num_rows, np.int32)
    arrays = moves.chooser, missing, start, parents, goals, distances, queue
    # each value with the role that wants it; for each role, its best value first
    levels: list[int] = np.unique(moves.ends[moves.ends != OPEN]).tolist()
    for level, role in [(n, 0) for n in reversed(levels) if n > middle] + [(n, 1) for n in levels if n < middle]:
        head, tail = 0, _settle_ends(level, moves.ends, goals, distances, queue)
        settled -= tail  # the ends, which count from the beginning
        while head < tail:
            head, tail = _attract(level, role, *arrays, head, tail, _AT_ONCE)
            progress(settled + tail, num_rows)
        settled += tail
    distances[(moves.ends != OPEN) & (distances == OPEN)] = 0
    return goals, distances


def _reversed(moves: Moves, pause: Callable[[], None]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return (start int64[rows + 1], parents int32[any]). Row i has the parents `parents[start[i] : start[i + 1]]`.

    `pause` is called after each part of the children.
    """
    num_rows = len(moves.ends)
    start = np.zeros(num_rows + 2, np.int64)
    for part in moves.children:
        _count(part, start[2:])
        pause()
    np.cumsum(start, out=start)
    parents = np.empty(start[-1], np.int32)
    row, child = 0, 0
    moves.children.reverse()
    while moves.children:
        row, child = _fill(moves.children.pop(), moves.num_children, row, child, start[1:], parents)
        pause()
    return start[:-1], parents


@kernel_without_gil
def _count(children: I32, counts: I64) -> None:
    """Add the number of parents of each child to `counts`."""
    for child in children:
        counts[child] += 1


@kernel_without_gil
def _fill(children: I32, num_children: I32, row: int, child: int, slot: I64, parents: I32) -> tuple[int, int]:
    """Enter the parents of these successors. The first of them is successor number `child` of `row`.

    Return (row, child) for the next part.
    """
    for i in range(children.size):
        while child == num_children[row]:
            row += 1
            child = 0
        parents[slot[children[i]]] = row
        slot[children[i]] += 1
        child += 1
    return row, child


@kernel_without_gil
def _settle_ends(level: int, ends: I16, goals: I16, distances: I32, queue: I32) -> int:
    """Settle the terminal rows with this value, and write them into the queue. Return their number."""
    tail = 0
    for row in range(ends.size):
        if ends[row] == level:
            goals[row], distances[row] = level, 0
            queue[tail] = row
            tail += 1
    return tail


@kernel_without_gil
def _attract(
    level: int,
    role: int,
    chooser: I8,
    missing: I32,
    start: I64,
    parents: I32,
    goals: I16,
    distances: I32,
    queue: I32,
    head: int,
    tail: int,
    at_once: int,
) -> tuple[int, int]:
    """Settle rows from which `role` can force `level`. Better levels must be settled before.

    The settled rows are in the queue, up to `tail`. Look at `at_once` of them, from `head` on, and return the new
    (head, tail).

    `missing` is the number of unsettled successors of each row in which the other role chooses. At 0, all its moves
    lead to settled rows.
    """
    end = head + at_once
    while head < min(tail, end):
        row = queue[head]
        head += 1
        for parent in parents[start[row] : start[row + 1]]:
            if distances[parent] != OPEN:
                continue
            if chooser[parent] != role:
                missing[parent] -= 1
                if missing[parent] > 0:
                    continue
            goals[parent], distances[parent] = level, distances[row] + 1
            queue[tail] = parent
            tail += 1
    return head, tail
