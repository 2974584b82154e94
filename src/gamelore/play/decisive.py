"""Which moves decide a match within one full turn: the mover's own ply and the replies to it.

"It looks ahead one full turn and seeks terminal nodes" (Banerjee & Stone 2007, section 4). A full turn is the
role's own move and up to `num_roles - 1` further plies, until everybody has had one (readings.md, B&S 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .graph import joint_stride
from .kernel import kernel
from .statetable import longer

if TYPE_CHECKING:
    from .graph import Graph

WIN, LOSS, GIVES, NEUTRAL = 0, 1, 2, 3


class MoveClasses:
    """The class of every legal move, by position and role, worked out once: `graph.memo(MoveClasses)`.

    WIN      ends the match with the role's best goal value, whatever the others do at the same time
    LOSS     ends it with the role's worst, for something that the others may do at the same time
    GIVES    does not end it so, but within the replies the others can: some line of up to `num_roles - 1`
             further plies ends with the role's worst goal value. Positions where only the role itself is to
             act are not followed: what it does there is no reply. Where it acts together with others any
             of the joint moves counts.
    NEUTRAL  none of these

    The first that applies counts. Best and worst are those of `game.goal_values`; a missing goal counts 0.

    known    bool[rows, roles], grows behind the graph's rows
    classes  int8[any], parallel to `graph.move_actions`
    """

    def __init__(self, graph: Graph) -> None:
        self.known = np.zeros((graph.num_rows, graph.game.num_roles), np.bool_)
        self.classes = np.zeros(len(graph.move_actions), np.int8)
        self._graph = graph

    def classify(self, rows: NDArray[np.int32], role: int) -> None:
        """Makes the classes of the role's moves in these rows known."""
        graph = self._graph
        frontier = rows
        for _ in range(graph.game.num_roles):
            frontier = graph.children(frontier)
            frontier = frontier[_others_act(graph.acting[frontier], role)]
        self._make_room()
        values = graph.game.goal_values[role] or (-1, -1)  # a role without goals never wins or loses
        _classify(
            rows,
            role,
            values[0],
            values[-1],
            graph.terminal,
            graph.goals,
            graph.acting,
            graph.num_moves,
            graph.move_start,
            graph.num_joint,
            graph.succ_start,
            graph.successors,
            self.classes,
        )
        self.known[rows, role] = True

    def _make_room(self) -> None:
        if len(self.known) < self._graph.num_rows:
            self.known = longer(self.known, 2 * self._graph.num_rows)
        if len(self.classes) < len(self._graph.move_actions):
            self.classes = longer(self.classes, 2 * len(self._graph.move_actions))


def _others_act(acting: NDArray[np.bool_], role: int) -> NDArray[np.bool_]:
    """Where some role but this one is to act, bool[n], from bool[n, roles]."""
    return np.asarray(acting.sum(axis=1) > acting[:, role])


@kernel("boolean(int64, int64, boolean[:, ::1])")
def _is_reply(row: int, role: int, acting: NDArray[np.bool_]) -> bool:
    """Whether some role but this one is to act."""
    others = False
    for other in range(acting.shape[1]):
        others |= bool(other != role and acting[row, other])
    return others


@kernel(
    "boolean(int64, int64, int64, int64, boolean[::1], int16[:, ::1], boolean[:, ::1],"
    " int64[::1], int64[::1], int32[::1])"
)
def _can_fall(
    first: int,
    role: int,
    worst: int,
    plies: int,
    terminal: NDArray[np.bool_],
    goals: NDArray[np.int16],
    acting: NDArray[np.bool_],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
) -> bool:
    """Whether a line of up to `plies` replies from `first` on ends with the role's worst goal value."""
    # depth first with its own stack: numba cannot load a recursive function from its cache
    path = np.empty(plies + 1, np.int32)
    tried = np.zeros(plies + 1, np.int64)
    path[0] = first
    depth = 0
    while depth >= 0:
        row = path[depth]
        if terminal[row] and max(goals[row, role], 0) == worst:
            return True
        closed = terminal[row] or depth == plies or not _is_reply(row, role, acting)
        if closed or tried[depth] == num_joint[row]:
            depth -= 1
        else:
            child = successors[succ_start[row] + tried[depth]]
            tried[depth] += 1
            depth += 1
            path[depth] = child
            tried[depth] = 0
    return False


@kernel(
    "void(int32[::1], int64, int64, int64, boolean[::1], int16[:, ::1], boolean[:, ::1], int32[:, ::1],"
    " int64[:, ::1], int64[::1], int64[::1], int32[::1], int8[::1])"
)
def _classify(
    rows: NDArray[np.int32],
    role: int,
    worst: int,
    best: int,
    terminal: NDArray[np.bool_],
    goals: NDArray[np.int16],
    acting: NDArray[np.bool_],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    num_joint: NDArray[np.int64],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
    classes: NDArray[np.int8],
) -> None:
    """Fills the classes of the role's moves in the rows; see `MoveClasses`."""
    roles = num_moves.shape[1]
    for row in rows:
        stride = joint_stride(row, role, num_moves)
        moves = num_moves[row, role]
        for move in range(moves):
            wins, loses, gives = True, False, False
            for joint in range(num_joint[row]):
                if joint // stride % moves == move:
                    child = successors[succ_start[row] + joint]
                    goal = max(goals[child, role], 0)
                    wins &= terminal[child] and goal == best
                    loses |= terminal[child] and goal == worst
                    gives |= not terminal[child] and _can_fall(
                        child,
                        role,
                        worst,
                        roles - 1,
                        terminal,
                        goals,
                        acting,
                        num_joint,
                        succ_start,
                        successors,
                    )
            at = move_start[row, role] + move
            classes[at] = WIN if wins else LOSS if loses else GIVES if gives else NEUTRAL
