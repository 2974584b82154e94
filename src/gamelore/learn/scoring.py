"""The loops of the learners: score the afterstates at hand and choose; initialise; learn.

All lanes of a batch are served by one call. A lane's afterstate is worth what the table says; where it says nothing,
its initial value, at once for eager lanes, after the match for others, which take the default meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..play.kernel import kernel
from ..play.search import draw_best
from ..play.streams import EXPLORE, WHICH, below, unit
from .afterstates import Afterstates, moves_alone
from .coalesce import UNKNOWN
from .initial import class_of
from .merging import UNMET, representative
from .settings import LearnerSettings
from .values import entry_key, find_slot, td_update

_EXPLORE, _WHICH = np.uint64(EXPLORE), np.uint64(WHICH)
_ALPHA, _GAMMA, _LAM, _EPSILON, _DEFAULT = range(5)  # columns of `lane_numbers`


def lane_numbers(settings: Sequence[LearnerSettings]) -> NDArray[np.float64]:
    """What the loops need of each lane's settings, float64[lanes, 5]."""
    return np.array([(one.alpha, one.gamma, one.lam, one.epsilon, one.default) for one in settings])


@kernel(
    "Tuple((float64, int64))(int64, int32, int32, boolean, float64, int64[::1], float64[::1], int32[::1],"
    " int32[:, ::1], int32[:, ::1], float64[:, ::1])"
)
def _score(
    lane: int,
    afterstate: np.int32,
    group: int,
    eager: bool,
    default: float,
    keys: NDArray[np.int64],
    q: NDArray[np.float64],
    group_space: NDArray[np.int32],
    classes: NDArray[np.int32],
    pair_classes: NDArray[np.int32],
    worth: NDArray[np.float64],
) -> tuple[float, int]:
    """(what a lane's learner thinks of an afterstate, the space that must look into it first, or -1)."""
    slot = find_slot(keys, entry_key(lane, afterstate))
    if keys[slot] >= 0:
        return q[slot], -1
    if not eager or group < 0:
        return default, -1
    number = class_of(group_space[group], afterstate, classes, pair_classes)
    if number == UNKNOWN:
        return default, group_space[group]
    return worth[group, number], -1


@kernel(
    "Tuple((int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]))(int64, int64[::1], int32[::1], uint64[::1],"
    " int32[::1], int32[:, ::1], int64[:, ::1], boolean[::1], int64[::1], int32[::1], boolean[::1], int32[::1],"
    " int32[::1], int64[::1], float64[::1], int32[::1], boolean[::1], boolean[::1], float64[:, ::1], int32[::1],"
    " int32[:, ::1], int32[:, ::1], float64[:, ::1])"
)
def choose(
    role: int,
    lanes: NDArray[np.int64],
    rows: NDArray[np.int32],
    stream_keys: NDArray[np.uint64],
    plies: NDArray[np.int32],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    expanded: NDArray[np.bool_],
    succ_start: NDArray[np.int64],
    successors: NDArray[np.int32],
    merging: NDArray[np.bool_],
    row_representatives: Afterstates,
    move_representatives: Afterstates,
    keys: NDArray[np.int64],
    q: NDArray[np.float64],
    groups: NDArray[np.int32],
    eager: NDArray[np.bool_],
    first: NDArray[np.bool_],
    numbers: NDArray[np.float64],
    group_space: NDArray[np.int32],
    classes: NDArray[np.int32],
    pair_classes: NDArray[np.int32],
    worth: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.int32], Afterstates, NDArray[np.int32], Afterstates]:
    """The learners' moves: with probability epsilon a random one, else one that leads to a best afterstate.

    Returns (choices, rows that must be expanded first, afterstates whose representatives must be known first, and
    spaces that must first look into which afterstates). Where the last four are not empty the choices are not valid.
    """
    total, most = 0, 0
    for row in rows:
        total += num_moves[row, role]
        most = max(most, num_moves[row, role])
    choices = np.empty(rows.size, np.int32)
    closed = np.empty(rows.size, np.int32)
    unmet = np.empty(total, np.int32)
    spaces = np.empty(total, np.int32)
    unknown = np.empty(total, np.int32)
    values = np.empty(most)
    num_closed, num_unmet, num_unknown = 0, 0, 0
    for i in range(rows.size):
        lane, row, ply, moves = lanes[i], rows[i], np.uint64(plies[i]), int(num_moves[rows[i], role])
        if unit(stream_keys[i], ply, _EXPLORE) < numbers[lane, _EPSILON]:
            choices[i] = below(stream_keys[i], ply, _WHICH, moves)
            continue
        alone = moves_alone(row, role, num_moves)
        if alone and not expanded[row]:
            closed[num_closed] = row
            num_closed += 1
            continue
        for move in range(moves):
            afterstate = successors[succ_start[row] + move] if alone else np.int32(~(move_start[row, role] + move))
            if merging[lane]:
                own = afterstate
                afterstate = representative(own, row_representatives, move_representatives)
                if afterstate == UNMET:
                    values[move] = numbers[lane, _DEFAULT]
                    unmet[num_unmet] = own
                    num_unmet += 1
                    continue
            values[move], space = _score(
                lane,
                afterstate,
                groups[lane],
                eager[lane],
                numbers[lane, _DEFAULT],
                keys,
                q,
                group_space,
                classes,
                pair_classes,
                worth,
            )
            if space >= 0:
                spaces[num_unknown], unknown[num_unknown] = space, afterstate
                num_unknown += 1
        scores = values[:moves]
        choices[i] = scores.argmax() if first[lane] else draw_best(scores, 0.0, stream_keys[i], ply)
    return choices, closed[:num_closed], unmet[:num_unmet], spaces[:num_unknown], unknown[:num_unknown]


@kernel(
    "Tuple((int64, int32[::1], int32[::1]))(int64[::1], int64[::1], int32[::1], int32[::1], float64[:, ::1],"
    " int32[::1], int32[:, ::1], int32[:, ::1], float64[:, ::1], int64[::1], float64[::1])"
)
def initialise(
    lanes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    afterstates: Afterstates,
    groups: NDArray[np.int32],
    numbers: NDArray[np.float64],
    group_space: NDArray[np.int32],
    classes: NDArray[np.int32],
    pair_classes: NDArray[np.int32],
    worth: NDArray[np.float64],
    keys: NDArray[np.int64],
    q: NDArray[np.float64],
) -> tuple[int, NDArray[np.int32], Afterstates]:
    """Makes the entries that are not there. Returns (how many were made, and the spaces that must first look into
    which afterstates before the rest can be)."""
    spaces = np.empty(afterstates.size, np.int32)
    unknown = np.empty(afterstates.size, np.int32)
    fresh, num_unknown = 0, 0
    for i in range(lanes.size):
        lane = lanes[i]
        for afterstate in afterstates[offsets[i] : offsets[i + 1]]:
            value, space = _score(
                lane,
                afterstate,
                groups[lane],
                True,
                numbers[lane, _DEFAULT],
                keys,
                q,
                group_space,
                classes,
                pair_classes,
                worth,
            )
            if space >= 0:
                spaces[num_unknown], unknown[num_unknown] = space, afterstate
                num_unknown += 1
                continue
            key = entry_key(lane, afterstate)
            slot = find_slot(keys, key)
            fresh += keys[slot] < 0
            keys[slot], q[slot] = key, value
    return fresh, spaces[:num_unknown], unknown[:num_unknown]


@kernel("void(int64[::1], int64[::1], int32[::1], float64[::1], float64[:, ::1], int64[::1], float64[::1], int32[::1])")
def learn(
    lanes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    afterstates: Afterstates,
    rewards: NDArray[np.float64],
    numbers: NDArray[np.float64],
    keys: NDArray[np.int64],
    q: NDArray[np.float64],
    visits: NDArray[np.int32],
) -> None:
    """Equation 2 on the matches, all of whose afterstates have an entry; counts the visits."""
    for i in range(lanes.size):
        slots = np.empty(offsets[i + 1] - offsets[i], np.int64)
        for t in range(slots.size):
            slots[t] = find_slot(keys, entry_key(lanes[i], afterstates[offsets[i] + t]))
            visits[slots[t]] += 1
        alpha, gamma, lam = numbers[lanes[i], _ALPHA], numbers[lanes[i], _GAMMA], numbers[lanes[i], _LAM]
        td_update(q, slots, rewards[i], alpha, gamma, lam)
