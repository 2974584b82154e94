"""Walks the states of a game breadth first: all that are reachable where they are few, else those nearest the start.

A walk that reached all of them knows whether every match ends: it does where no state comes back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .perft import joint_moves
from .watch import Joints, Watch

JOINTS_PER_STATE = 20  # the walk gives up where there are more on average: then random matches see more for their time


@dataclass(frozen=True, slots=True)
class Endless:
    """A match without end: joint moves, after which the state is that after `back_to` of them; None if it was cut."""

    joints: Joints
    back_to: int | None


class Walk:
    """States by their number, in the order of the walk; 0 is the first one. `num_seen` of them were looked at.

    max_states: the walk gives up beyond. at_once: how many are looked at together.
    """

    def __init__(self, watch: Watch, max_states: int, at_once: int) -> None:
        self.watch, self.game = watch, watch.game
        self.max_states, self.at_once = max_states, at_once
        self.complete = False
        self.num_seen = self.num_terminal = self.num_joints = 0
        self._rows: list[NDArray[np.uint64]] = []
        self._numbers: dict[bytes, int] = {}
        self._parents: list[int] = []
        self._joints: list[tuple[int, ...]] = []
        self._edges: list[NDArray[np.int64]] = [np.zeros((2, 0), np.int64)]

    def run(self, deadline: float) -> None:
        """Until all states are seen, or there are too many, or it is later than `deadline` (of time.monotonic)."""
        self._number(self.game.initial, -1, ())
        layer, depth = range(1), 0
        while layer:
            for start in layer[:: self.at_once]:
                part = range(start, min(start + self.at_once, layer.stop))
                if time.monotonic() > deadline or not self._expand(part, depth):
                    return
            layer, depth = range(layer.stop, len(self._rows)), depth + 1
        self.complete = True

    def path(self, number: int) -> Joints:
        """The joint moves that lead to a state, as few as possible."""
        joints = []
        while number:
            joints.append(self._joints[number])
            number = self._parents[number]
        return joints[::-1]

    def _number(self, row: NDArray[np.uint64], parent: int, joint: tuple[int, ...]) -> int:
        number = self._numbers.setdefault(row.tobytes(), len(self._rows))
        if number == len(self._rows):
            self._rows.append(row)
            self._parents.append(parent)
            self._joints.append(joint)
        return number

    def _expand(self, part: range, depth: int) -> bool:
        """Looks at states and numbers their successors; False where that is too much."""
        states = np.array([self._rows[number] for number in part])
        seen = self.watch.look(states, depth, lambda lane: self.path(part[lane]))
        self.num_seen += len(part)
        self.num_terminal += int(seen.terminal.sum())
        self.num_joints += int(min(seen.legal.by_role(self.game.num_roles)[1].prod(axis=1, dtype=float).sum(), 1e18))
        if self.num_joints > JOINTS_PER_STATE * self.max_states:
            return False
        parents, joints = joint_moves(self.game, states)
        if len(parents):
            self._follow(states[parents], joints, parents + part.start)
        return len(self._rows) <= self.max_states

    def _follow(self, states: NDArray[np.uint64], joints: NDArray[np.int32], parents: NDArray[np.int64]) -> None:
        """Numbers the successors of states, one for each joint move."""

        def path(lane: int) -> Joints:
            return [*self.path(int(parents[lane])), tuple(joints[lane].tolist())]

        following = self.watch.ask(self.game.next, (states, joints), path)
        rows, first, which = np.unique(following, axis=0, return_index=True, return_inverse=True)
        numbers = np.zeros(len(rows), np.int64)
        for place in np.argsort(first).tolist():
            lane = int(first[place])
            numbers[place] = self._number(rows[place], int(parents[lane]), tuple(joints[lane].tolist()))
        self._edges.append(np.unique(np.stack([parents, numbers[which.ravel()]]), axis=1))

    def longest(self) -> int | Endless:
        """The steps of the longest match, or one without end; of a complete walk."""
        edges = np.concatenate(self._edges, axis=1)
        loop = _loop(edges, len(self._rows))
        if not loop:
            return _longest(edges, len(self._rows))
        stem = self.path(loop[0])
        return Endless([*stem, *self._along(loop)], len(stem))

    def _along(self, numbers: Sequence[int]) -> Joints:
        """Joint moves that lead from each state to the one after it."""
        joints = []
        for here, there in pairwise(numbers):
            parents, choices = joint_moves(self.game, self._rows[here][None])
            following = self.game.next(self._rows[here][None][parents], choices)
            lane = int((following == self._rows[there]).all(axis=1).argmax())
            joints.append(tuple(choices[lane].tolist()))
        return joints


def _loop(edges: NDArray[np.int64], num_states: int) -> list[int]:
    """States from one to itself again, the nearest to the start that comes back; none if none does. edges: [2, n]."""
    inside = edges[:, _same_component(edges, num_states)]
    if not inside.size:
        return []
    start = int(inside[0].min())
    came_from = dict(_steps_inside(inside, start))
    loop = [start, came_from[start]]
    while loop[-1] != start:
        loop.append(came_from[loop[-1]])
    return loop[::-1]


def _same_component(edges: NDArray[np.int64], num_states: int) -> NDArray[np.bool_]:
    """bool[n]: which edges lie inside a strongly connected component."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(num_states, num_states))
    _, component = connected_components(graph, connection="strong")
    same: NDArray[np.bool_] = component[edges[0]] == component[edges[1]]
    return same


def _steps_inside(edges: NDArray[np.int64], start: int) -> Iterator[tuple[int, int]]:
    """Breadth first from a state, each state once, with the one before it; ends when the start comes back."""
    following: dict[int, list[int]] = {}
    for here, there in edges.T.tolist():
        following.setdefault(here, []).append(there)
    met = set()
    queue = [start]
    for here in queue:
        for there in following[here]:
            if there not in met:
                met.add(there)
                queue.append(there)
                yield there, here
        if start in met:
            return


def _longest(edges: NDArray[np.int64], num_states: int) -> int:
    """The length of a longest way in a graph without loops: every state's own, raised until nothing changes."""
    steps = np.zeros(num_states, np.int64)
    while True:
        more = steps.copy()
        np.maximum.at(more, edges[1], steps[edges[0]] + 1)
        if (more == steps).all():
            return int(steps.max())
        steps = more
