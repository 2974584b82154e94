"""Values of afterstates in one hash table for all lanes; kernels that choose, initialise and learn (Equation 2).

An afterstate is an int32: the row of a position, or a negative number for a pair of a position and a move
(afterstates.py). The key of an afterstate in the table is lane << 32 | afterstate.

One call of a kernel serves all lanes of a batch. If an afterstate has an entry in the table, the entry is its value. If
it has no entry, its value is the initial value in eager lanes, and the default in all other lanes. The other lanes make
their entries after the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import GameloreError
from ...players.kernel import F64, I32, I64, U64, Bool, F64x2, I32x2, I64x2, Int32, inlined, kernel
from ...players.lookahead import draw_best, first_best
from ...players.random_streams import EXPLORE, WHICH, below, finalise, unit
from .afterstates import UNMET, moves_alone, own_afterstate, representative
from .discovery import UNKNOWN
from .initial_values import Initial, LearnerSettings, class_of

Keys = NDArray[np.int64]
Values = NDArray[np.float64]

_EMPTY = -1
_FIRST_CAPACITY = 1 << 12  # a power of two; at most half of the slots are used
_LOW = np.int64(0xFFFFFFFF)
_MOST_VISITS = np.int32(2**31 - 1)  # an entry with so many visits keeps them: one more would be a negative number


class ValueTable:
    """Hash table of Q and visits, by lane and afterstate.

    The arrays have one element for each slot, in no order. They are replaced when the table grows.

    keys    int64[capacity], key of the entry; -1 for an empty slot
    q       float64[capacity], value in units of reward
    visits  int32[capacity], number of visits; 0 for an afterstate that has an initial value but no visit
    """

    def __init__(self) -> None:
        self.size = 0
        self._make(_FIRST_CAPACITY)

    def _make(self, capacity: int) -> None:
        self.keys = np.full(capacity, _EMPTY, np.int64)
        self.q = np.zeros(capacity)
        self.visits = np.zeros(capacity, np.int32)

    def reserve(self, extra: int) -> None:
        """Make room for `extra` more entries."""
        needed = 2 * (self.size + extra)
        if needed > len(self.keys):
            old = self.keys, self.q, self.visits
            self._make(1 << (needed - 1).bit_length())
            _refill(*old, self.keys, self.q, self.visits)

    def load(self, lane: int | NDArray[np.int64], afterstates: ArrayLike, q: ArrayLike, visits: ArrayLike) -> None:
        """Write entries of one lane, or of a lane for each entry, and replace existing entries.

        Raise GameloreError for arrays of different lengths.
        """
        wanted = _keys(lane, afterstates)
        values, counts = np.ascontiguousarray(q, np.float64), np.ascontiguousarray(visits, np.int32)
        if not len(wanted) == len(values) == len(counts):
            raise GameloreError(
                f"expected one q and one count of visits for each of {len(wanted)} afterstates, got {len(values)} "
                f"and {len(counts)}; give arrays of the same length"
            )
        self.reserve(len(wanted))
        self.size += _put(wanted, values, counts, self.keys, self.q, self.visits)

    def get(self, lane: int, afterstates: ArrayLike) -> tuple[Values, NDArray[np.int32]]:
        """Return (q, visits) of afterstates. An afterstate without an entry has NaN and 0."""
        return _get(_keys(lane, afterstates), self.keys, self.q, self.visits)

    def lane(self, lane: int) -> tuple[NDArray[np.int32], Values, NDArray[np.int32]]:
        """Return (afterstates, q, visits) of one lane, in no order."""
        slots = np.flatnonzero(self.keys >> 32 == lane)
        return (self.keys[slots] & _LOW).astype(np.int32), self.q[slots], self.visits[slots]


def _keys(lane: int | NDArray[np.int64], afterstates: ArrayLike) -> Keys:
    return (lane << 32) | (np.ascontiguousarray(afterstates, np.int32) & _LOW)


@inlined
def entry_key(lane: int, afterstate: Int32) -> int:
    """Return the key of an entry; for use inside kernels."""
    return int((lane << 32) | (np.int64(afterstate) & _LOW))


@inlined
def find_slot(keys: I64, key: int) -> int:
    """Return the slot of a key, or the empty slot where the key belongs; for use inside kernels."""
    mask = keys.size - 1
    slot = np.int64(finalise(np.uint64(key))) & mask
    while keys[slot] != key and keys[slot] != _EMPTY:
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def _refill(old_keys: I64, old_q: F64, old_visits: I32, keys: I64, q: F64, visits: I32) -> None:
    for i in range(old_keys.size):
        if old_keys[i] != _EMPTY:
            slot = find_slot(keys, old_keys[i])
            keys[slot], q[slot], visits[slot] = old_keys[i], old_q[i], old_visits[i]


@kernel
def _put(wanted: I64, new_q: F64, new_visits: I32, keys: I64, q: F64, visits: I32) -> int:
    """Write entries and return the number of new ones."""
    fresh = 0
    for i in range(wanted.size):
        slot = find_slot(keys, wanted[i])
        fresh += keys[slot] == _EMPTY
        keys[slot], q[slot], visits[slot] = wanted[i], new_q[i], new_visits[i]
    return fresh


@kernel
def _get(wanted: I64, keys: I64, q: F64, visits: I32) -> tuple[F64, I32]:
    values, counts = np.full(wanted.size, np.nan), np.zeros(wanted.size, np.int32)
    for i in range(wanted.size):
        slot = find_slot(keys, wanted[i])
        if keys[slot] != _EMPTY:
            values[i], counts[i] = q[slot], visits[slot]
    return values, counts


@kernel
def td_update(q: F64, slots: I64, reward: float, alpha: float, gamma: float, lam: float) -> None:
    """Apply Equation 2 of Banerjee & Stone (2007) to one match, in the order of the equation.

    q       float64[any], changed in place; Q(sigma_t) is the present value of q[slots[t - 1]]
    slots   int64[k], slots of the afterstates sigma_1 .. sigma_k; sigma_k is terminal. In games with noop moves an
            afterstate may occur twice.
    reward  r_{k+1}; all other rewards are zero, and Q(sigma_{k+1}) = 0

    For t = 1 .. k:  delta = r_{t+1} + gamma Q(sigma_{t+1}) - Q(sigma_t),
    and for p = 1 .. t:  Q(sigma_p) += alpha lam^(t-p) delta.
    """
    last = slots.size - 1
    for t in range(slots.size):
        ahead = reward if t == last else gamma * q[slots[t + 1]]
        delta = ahead - q[slots[t]]
        for p in range(t + 1):
            q[slots[p]] += alpha * lam ** (t - p) * delta


_EXPLORE, _WHICH = np.uint64(EXPLORE), np.uint64(WHICH)
_ALPHA, _GAMMA, _LAM, EPSILON, _DEFAULT = range(5)  # columns of the array from `lane_numbers`


def lane_numbers(settings: Sequence[LearnerSettings]) -> NDArray[np.float64]:
    """Return the numeric settings of each lane for the kernels, float64[lanes, 5].

    The columns are alpha, gamma, lambda, epsilon and the default value.
    """
    return np.array([(lane.alpha, lane.gamma, lane.lam, lane.epsilon, lane.default) for lane in settings])


class Lookup(NamedTuple):
    """Arrays that give the value of an afterstate in the table, and settings of each lane; for kernels."""

    merging: Bool
    row_representatives: I32
    move_representatives: I32
    keys: I64
    q: F64
    groups: I32
    eager: Bool
    first: Bool
    numbers: F64x2


class Missing(NamedTuple):
    """What must be computed before kernels can go on.

    counts      int64[3], number of rows in `unexpanded`, of afterstates in `unmet`, and of those in `unknown`
    unexpanded  rows that must be expanded
    unmet       afterstates whose representatives must be computed
    asking      lanes of the unknown afterstates
    unknown     afterstates whose initial values for these lanes must be determined

    What finds no room in the arrays is left out. A later try finds it again.
    """

    counts: I64
    unexpanded: I32
    unmet: I32
    asking: I64
    unknown: I32


NUM_UNEXPANDED, NUM_UNMET, NUM_UNKNOWN = range(3)  # indices of `Missing.counts`


@inlined
def note(value: Int32, kind: int, values: I32, counts: I64) -> None:
    """Append a value to the missing ones of a kind, if there is room; for use inside kernels."""
    if counts[kind] < values.size:
        values[counts[kind]] = value
        counts[kind] += 1


@inlined
def note_unknown(lane: int, afterstate: Int32, missing: Missing) -> None:
    """Note an afterstate whose initial value in a lane is not known, if there is room; for use inside kernels."""
    size = missing.counts[NUM_UNKNOWN]
    if size < missing.unknown.size:
        missing.asking[size] = lane
        missing.unknown[size] = afterstate
        missing.counts[NUM_UNKNOWN] = size + 1


@inlined
def merged(lane: int, afterstate: np.int32, table: Lookup) -> np.int32:
    """Return the afterstate whose entry a lane uses: its representative (or UNMET) if the lane merges afterstates.

    For use inside kernels.
    """
    if not table.merging[lane]:
        return afterstate
    return np.int32(representative(afterstate, table.row_representatives, table.move_representatives))


@inlined
def _score(
    lane: int,
    afterstate: np.int32,
    group: Int32,
    eager: bool,
    default: float,
    keys: I64,
    q: F64,
    initial: Initial,
) -> tuple[float, bool]:
    """Return (value, is_known) of an afterstate for the learner of a lane.

    If the value is not known, the initial value of the afterstate in this group must be determined first.
    """
    slot = find_slot(keys, entry_key(lane, afterstate))
    if keys[slot] >= 0:
        return q[slot], True
    if not eager or group < 0:
        return default, True
    number = class_of(initial.group_space[group], afterstate, initial.classes, initial.pair_classes)
    if number == UNKNOWN:
        return default, False
    return initial.worth[group, number], True


@inlined
def choose_in_lane(
    role: int,
    lane: int,
    row: int,
    key: np.uint64,
    counter: int,
    num_moves: I32x2,
    move_start: I64x2,
    expanded: Bool,
    succ_start: I64,
    successors: I32,
    table: Lookup,
    initial: Initial,
    values: F64,
    missing: Missing,
) -> int:
    """Return the choice of the learner in one lane, or -1 after noting in `missing` what must be done first.

    `values` is working memory, with room for the moves of the row. For use inside kernels.
    """
    ply, moves, default = np.uint64(counter), int(num_moves[row, role]), table.numbers[lane, _DEFAULT]
    if unit(key, ply, _EXPLORE) < table.numbers[lane, EPSILON]:
        return below(key, ply, _WHICH, moves)
    alone = moves_alone(row, role, num_moves)
    if alone and not expanded[row]:
        note(row, NUM_UNEXPANDED, missing.unexpanded, missing.counts)
        return -1
    is_complete = True
    for move in range(moves):
        own = own_afterstate(row, move, role, alone, move_start, succ_start, successors)
        afterstate = merged(lane, own, table)
        if afterstate == UNMET:
            note(own, NUM_UNMET, missing.unmet, missing.counts)
            is_complete = False
            continue
        values[move], is_known = _score(
            lane, afterstate, table.groups[lane], table.eager[lane], default, table.keys, table.q, initial
        )
        if not is_known:
            note_unknown(lane, afterstate, missing)
            is_complete = False
    if not is_complete:
        return -1
    scores = values[:moves]
    return first_best(scores) if table.first[lane] else draw_best(scores, 0.0, key, ply)


@inlined
def _choose_each(
    role: int,
    lanes: I64,
    rows: I32,
    keys: U64,
    plies: I32,
    num_moves: I32x2,
    move_start: I64x2,
    expanded: Bool,
    succ_start: I64,
    successors: I32,
    table: Lookup,
    initial: Initial,
    values: F64,
    missing: Missing,
    choices: I32,
) -> None:
    moves = (num_moves, move_start, expanded, succ_start, successors)
    for i in range(rows.size):
        choices[i] = choose_in_lane(role, lanes[i], rows[i], keys[i], plies[i], *moves, table, initial, values, missing)


@kernel
def choose(
    role: int,
    lanes: I64,
    rows: I32,
    stream_keys: U64,
    plies: I32,
    num_moves: I32x2,
    move_start: I64x2,
    expanded: Bool,
    succ_start: I64,
    successors: I32,
    merging: Bool,
    row_representatives: I32,
    move_representatives: I32,
    keys: I64,
    q: F64,
    groups: I32,
    eager: Bool,
    first: Bool,
    numbers: F64x2,
    group_space: I32,
    classes: I32x2,
    pair_classes: I32x2,
    worth: F64x2,
) -> tuple[I32, I32, I32, I64, I32]:
    """Choose the learners' moves: a random move with probability epsilon, else a move to a best afterstate.

    Returns a tuple of five arrays. The choices are valid only if the other four arrays are empty. Otherwise, the caller
    must do the missing work and call again.

    choices     indices of the chosen moves
    unexpanded  rows that must be expanded
    unmet       afterstates whose representatives must be computed
    asking      lanes of the unknown afterstates
    unknown     afterstates whose initial values for these lanes must be determined
    """
    total, most = 0, 0
    for row in rows:
        total += num_moves[row, role]
        most = max(most, num_moves[row, role])
    choices = np.empty(rows.size, np.int32)
    values = np.empty(most)
    # put together here, because numba needs more time for a call with a tuple than for one with its arrays
    table = Lookup(merging, row_representatives, move_representatives, keys, q, groups, eager, first, numbers)
    initial = Initial(group_space, classes, pair_classes, worth)
    missing = Missing(
        np.zeros(3, np.int64),
        np.empty(rows.size, np.int32),
        np.empty(total, np.int32),
        np.empty(total, np.int64),
        np.empty(total, np.int32),
    )
    moves = (num_moves, move_start, expanded, succ_start, successors)
    _choose_each(role, lanes, rows, stream_keys, plies, *moves, table, initial, values, missing, choices)
    rows, unmet, size = missing.counts
    return choices, missing.unexpanded[:rows], missing.unmet[:unmet], missing.asking[:size], missing.unknown[:size]


@inlined
def enter(
    lane: int, afterstate: np.int32, groups: I32, numbers: F64x2, initial: Initial, keys: I64, q: F64
) -> tuple[int, bool]:
    """Make the entry of an afterstate if it is missing. Return (number of new entries, is_known).

    If the initial value is not known, it must be determined first. For use inside kernels.
    """
    value, is_known = _score(lane, afterstate, groups[lane], True, numbers[lane, _DEFAULT], keys, q, initial)
    if not is_known:
        return 0, False
    key = entry_key(lane, afterstate)
    slot = find_slot(keys, key)
    fresh = int(keys[slot] < 0)
    keys[slot], q[slot] = key, value
    return fresh, True


@kernel
def initialise(
    lanes: I64,
    offsets: I64,
    afterstates: I32,
    groups: I32,
    numbers: F64x2,
    group_space: I32,
    classes: I32x2,
    pair_classes: I32x2,
    worth: F64x2,
    keys: I64,
    q: F64,
) -> tuple[int, I64, I32]:
    """Make the missing entries of the afterstates, as far as their initial values are known.

    Returns (number of new entries, lanes, afterstates). The initial values of these afterstates for these lanes must be
    determined before a further call can make the remaining entries.
    """
    asking = np.empty(afterstates.size, np.int64)
    unknown = np.empty(afterstates.size, np.int32)
    initial = Initial(group_space, classes, pair_classes, worth)
    total, num_unknown = 0, 0
    for i in range(lanes.size):
        for afterstate in afterstates[offsets[i] : offsets[i + 1]]:
            fresh, is_known = enter(lanes[i], afterstate, groups, numbers, initial, keys, q)
            total += fresh
            if not is_known:
                asking[num_unknown], unknown[num_unknown] = lanes[i], afterstate
                num_unknown += 1
    return total, asking[:num_unknown], unknown[:num_unknown]


@inlined
def learn_in_lane(
    lane: int,
    begin: int,
    end: int,
    afterstates: I32,
    reward: float,
    numbers: F64x2,
    keys: I64,
    q: F64,
    visits: I32,
    slots: I64,
) -> None:
    """Learn from the match with afterstates[begin : end], see `learn`; for use inside kernels.

    `slots` is working memory, with room for the afterstates.
    """
    for t in range(end - begin):
        slots[t] = find_slot(keys, entry_key(lane, afterstates[begin + t]))
        if visits[slots[t]] < _MOST_VISITS:
            visits[slots[t]] += 1
    td_update(q, slots[: end - begin], reward, numbers[lane, _ALPHA], numbers[lane, _GAMMA], numbers[lane, _LAM])


@kernel
def learn(
    lanes: I64, offsets: I64, afterstates: I32, rewards: F64, numbers: F64x2, keys: I64, q: F64, visits: I32
) -> None:
    """Apply Equation 2 to matches and count the visits. All afterstates of the matches must have an entry."""
    slots = np.empty(afterstates.size, np.int64)
    for i in range(lanes.size):
        learn_in_lane(lanes[i], offsets[i], offsets[i + 1], afterstates, rewards[i], numbers, keys, q, visits, slots)
