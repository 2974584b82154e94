"""Retrograde analysis: from the ends of a game back to what every position is worth, in linear time.

Positions are rows of a graph, in each of which one role chooses. The first role wants a high value, the second a low
one, and a match that never ends is worth `middle`. Each value above it, the highest first, draws in what the first role
can force to it: a position with one successor inside where the first role chooses, with all successors inside where the
second does. Each value below it, the lowest first, does the same for the second role. Nobody can force anything in what
is left: it is worth `middle`. (Thompson 1986, "Retrograde analysis of certain endgames", ICCA Journal 9(3), for chess;
attractors of reachability games, one after the other, for several goals.)

A position is drawn in one ply after the one that settles it, breadth first. So distances are those of play in which
who forces takes the fastest way and who is forced the slowest, each among the moves that keep the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .kernel import kernel

OPEN = -1  # of `ends`: not terminal; of a distance: a match from here need not end


@dataclass(slots=True)
class Moves:
    """What leads where. Row i has `num_children[i]` successors, which stand one row after the other in `children`.

    chooser       int8[rows], the role that chooses; 0 or 1
    num_children  int32[rows], 0 in terminal rows
    children      int32[any] in any number of parts; `values` empties the list, to have them in memory once only
    ends          int16[rows], the first role's goal in terminal rows, OPEN elsewhere
    """

    chooser: NDArray[np.int8]
    num_children: NDArray[np.int32]
    children: list[NDArray[np.int32]]
    ends: NDArray[np.int16]


def values(
    moves: Moves, middle: float, progress: Callable[[int, int], None]
) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """(the first role's goal int16[rows], OPEN where it is `middle`; plies to the end int32[rows], or OPEN).

    `progress` is told how many of how many rows are settled.
    """
    num_rows = len(moves.ends)
    start, parents = _reversed(moves)
    goals = np.full(num_rows, OPEN, np.int16)
    distances = np.full(num_rows, OPEN, np.int32)
    missing = moves.num_children.copy()
    queue = np.empty(num_rows, np.int32)
    settled = 0
    for level, role in _levels(moves.ends, middle):
        settled += _attract(level, role, moves.ends, moves.chooser, missing, start, parents, goals, distances, queue)
        progress(settled, num_rows)
    distances[(moves.ends != OPEN) & (distances == OPEN)] = 0
    return goals, distances


def _levels(ends: NDArray[np.int16], middle: float) -> Sequence[tuple[int, int]]:
    """(value, the role that wants it), best first for each role."""
    found: list[int] = np.unique(ends[ends != OPEN]).tolist()
    above = [(level, 0) for level in reversed(found) if level > middle]
    return above + [(level, 1) for level in found if level < middle]


def _reversed(moves: Moves) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(start int64[rows + 1], parents int32[any]): the parents of row i are `parents[start[i] : start[i + 1]]`."""
    num_rows = len(moves.ends)
    start = np.zeros(num_rows + 2, np.int64)
    for part in moves.children:
        _count(part, start[2:])
    np.cumsum(start, out=start)
    parents = np.empty(start[-1], np.int32)
    row, child = 0, 0
    moves.children.reverse()
    while moves.children:
        row, child = _fill(moves.children.pop(), moves.num_children, row, child, start[1:], parents)
    return start[:-1], parents


@kernel("void(int32[::1], int64[::1])")
def _count(children: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    for child in children:
        counts[child] += 1


@kernel("UniTuple(int64, 2)(int32[::1], int32[::1], int64, int64, int64[::1], int32[::1])")
def _fill(
    children: NDArray[np.int32],
    num_children: NDArray[np.int32],
    row: int,
    child: int,
    place: NDArray[np.int64],
    parents: NDArray[np.int32],
) -> tuple[int, int]:
    """Enters the parents of these successors, the first of which is number `child` of `row`; the next (row, child)."""
    for i in range(children.size):
        while child == num_children[row]:
            row += 1
            child = 0
        parents[place[children[i]]] = row
        place[children[i]] += 1
        child += 1
    return row, child


@kernel(
    "int64(int64, int64, int16[::1], int8[::1], int32[::1], int64[::1], int32[::1], int16[::1], int32[::1], int32[::1])"
)
def _attract(
    level: int,
    role: int,
    ends: NDArray[np.int16],
    chooser: NDArray[np.int8],
    missing: NDArray[np.int32],
    start: NDArray[np.int64],
    parents: NDArray[np.int32],
    goals: NDArray[np.int16],
    distances: NDArray[np.int32],
    queue: NDArray[np.int32],
) -> int:
    """Settles what `role` can force to `level`, where better is settled; how many rows.

    missing: successors that are not settled for the other role; where they are none, it has lost its choice.
    """
    head, tail = 0, 0
    for row in range(ends.size):
        if ends[row] == level:
            goals[row], distances[row] = level, 0
            queue[tail] = row
            tail += 1
    while head < tail:
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
    return tail
