"""A game as the solver sees it: batches of canonical positions, in each of which one role chooses, and their goals.

Solved are games of one role, and of two roles that take turns and whose goals add up to the same in every terminal
position. Whether a game is of this kind is looked at in every position that it is asked about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .canonical import Canonical
from .kernel import kernel
from .retrograde import OPEN

if TYPE_CHECKING:
    from ..rules.counter import StepCounter
    from ..rules.engine import Legal
    from ..rules.game import Game

_SEVERAL_CHOOSE, _STUCK = -1, -2


def is_native(game: Game) -> bool:
    """Whether the states are bits of facts in every position; else the engine numbers them as they come."""
    return game.circuit is not None and not game.is_bounded


class CounterMattersError(Exception):
    """More hangs on the step counter than a match that ends with half of the points for each: it cannot be left out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the rules say of a batch of n positions.

    legal      the moves of every role
    chooser    int8[n], the role that has several moves; where none has, it does not matter which
    num_moves  int32[n], joint moves; 0 in terminal positions
    ends       int16[n], the first role's goal in terminal positions, OPEN elsewhere
    """

    legal: Legal
    chooser: NDArray[np.int8]
    num_moves: NDArray[np.int32]
    ends: NDArray[np.int16]


class TurnGame:
    """The game, asked about canonical states uint64[n, words].

    `total`: what the two goals add up to, None until a terminal position was seen, and for one role. `counter`: what
    `canonical` leaves out; the rules are asked what its end makes of every position.

    Raises GameloreError for a game that is not of the kind described above, from any call that shows it, and
    CounterMattersError where the counter was left out and must not be.
    """

    def __init__(self, game: Game, canonical: Canonical, counter: StepCounter | None = None) -> None:
        if game.num_roles > 2:
            raise GameloreError(
                f"expected a game of one or two roles to solve, got {game.num_roles} in {game.name}: "
                f"{', '.join(game.roles)}; with more there is no one value of a position. Use a search, such as uct"
            )
        self.game = game
        self.canonical = canonical
        self.counter = counter
        self.total: int | None = None

    @property
    def start(self) -> NDArray[np.uint64]:
        """The canonical initial state, uint64[1, words]."""
        return self.canonical.of(self.game.initial[None])

    def ask(self, states: NDArray[np.uint64]) -> Asked:
        """Who chooses among how many moves, and the goals where the match is over."""
        playable = self.canonical.playable(states)
        legal = self.game.legal(playable)
        chooser, num_moves = np.zeros(len(states), np.int8), np.zeros(len(states), np.int32)
        fault = _choosers(legal.offsets, legal.terminal, self.game.num_roles, chooser, num_moves)
        if fault >= 0:
            self._refuse(playable[fault], int(chooser[fault]))
        ends = np.full(len(states), OPEN, np.int16)
        if legal.terminal.any():
            goals = self._goals(playable[legal.terminal])
            self._check_total(goals, playable[legal.terminal])
            ends[legal.terminal] = goals[:, 0]
        if self.counter is not None:
            self._check_counter(states | self.counter.last, legal.terminal, ends)
        return Asked(legal, chooser, num_moves, ends)

    def successors(self, states: NDArray[np.uint64], asked: Asked) -> NDArray[np.uint64]:
        """The canonical states after all joint moves of the positions, one position after the other."""
        return self._after(states, asked, np.zeros(len(states), np.int32), asked.num_moves)

    def successor(self, states: NDArray[np.uint64], asked: Asked, move: NDArray[np.int32]) -> NDArray[np.uint64]:
        """The canonical states after one joint move of each position that is not terminal, number `move` int32[n]."""
        return self._after(states, asked, move, np.minimum(asked.num_moves, 1))

    def _after(
        self, states: NDArray[np.uint64], asked: Asked, first: NDArray[np.int32], counts: NDArray[np.int32]
    ) -> NDArray[np.uint64]:
        """After `counts` joint moves of each position from number `first` on."""
        legal = asked.legal
        joint = _joint_moves(legal.offsets, legal.actions, asked.chooser, first, counts, self.game.num_roles)
        return self.canonical.of(self.game.next(np.repeat(self.canonical.playable(states), counts, axis=0), joint))

    def _goals(self, playable: NDArray[np.uint64]) -> NDArray[np.int16]:
        """int16[n, roles]; a goal that the rules do not give counts 0."""
        return np.maximum(self.game.evaluate(playable)[1], 0)

    def _check_total(self, goals: NDArray[np.int16], states: NDArray[np.uint64]) -> None:
        if self.game.num_roles == 1:
            return
        sums = goals.sum(axis=1)
        if self.total is None:
            self.total = int(sums[0])
        if (sums != self.total).any():
            i = int(np.argmax(sums != self.total))
            raise GameloreError(
                f"expected goals that add up to the same in every terminal position of {self.game.name}, got "
                f"{self.total} in one and {goals[i, 0]} + {goals[i, 1]} in {_told(self.game, states[i])}; "
                "only zero-sum games have one value for both roles. Use a search, such as uct"
            )

    def _check_counter(self, at_last: NDArray[np.uint64], terminal: NDArray[np.bool_], ends: NDArray[np.int16]) -> None:
        """The last count may end a match, with the same goal for both; it may change nothing of how others end."""
        over, goals = self.game.evaluate(at_last)
        goals = np.maximum(goals, 0)
        by_count = over & ~terminal
        if by_count.any():
            self._check_total(goals[by_count], at_last[by_count])
        is_draw = goals[:, 0] == goals[:, -1]
        if not np.where(terminal, over & (goals[:, 0] == ends), ~over | is_draw).all():
            raise CounterMattersError

    def _refuse(self, state: NDArray[np.uint64], why: int) -> None:
        name, place = self.game.name, _told(self.game, state)
        if why == _SEVERAL_CHOOSE:
            raise GameloreError(
                f"expected one role at a time to have a choice in {name}, got several moves of both "
                f"{' and '.join(self.game.roles)} in {place}; a game with moves at the same time has no value in pure "
                "play. Use a search, such as uct"
            )
        raise GameloreError(
            f"expected a legal move of every role until the match is over, got none in {name}, in {place}; "
            "see `gamelore check --play` for what is wrong with the rules"
        )


def _told(game: Game, state: NDArray[np.uint64]) -> str:
    return f"the position {' '.join(sorted(game.facts(state)))}"


# filled in, not returned: see `_smallest` of canonical.py
@kernel("int64(int64[::1], boolean[::1], int64, int8[::1], int32[::1])")
def _choosers(
    offsets: NDArray[np.int64],
    terminal: NDArray[np.bool_],
    num_roles: int,
    chooser: NDArray[np.int8],
    num_moves: NDArray[np.int32],
) -> int:
    """Fills in what `Asked` says of these, all 0 before; the first position that is not as it should be, or -1.

    There the chooser is _SEVERAL_CHOOSE or _STUCK.
    """
    for i in range(terminal.size):
        if terminal[i]:
            continue
        num_moves[i] = 1
        for role in range(num_roles):
            count = offsets[i * num_roles + role + 1] - offsets[i * num_roles + role]
            if count == 0 or (count > 1 and num_moves[i] > 1):
                chooser[i] = _STUCK if count == 0 else _SEVERAL_CHOOSE
                return i
            if count > 1:
                chooser[i], num_moves[i] = role, count
    return -1


@kernel("int32[:, ::1](int64[::1], int32[::1], int8[::1], int32[::1], int32[::1], int64)")
def _joint_moves(
    offsets: NDArray[np.int64],
    actions: NDArray[np.int32],
    chooser: NDArray[np.int8],
    first: NDArray[np.int32],
    counts: NDArray[np.int32],
    num_roles: int,
) -> NDArray[np.int32]:
    """int32[total, roles]: in each position `counts` of the chooser's moves from number `first` on."""
    joint = np.empty((counts.sum(), num_roles), np.int32)
    at = 0
    for i in range(counts.size):
        for move in range(first[i], first[i] + counts[i]):
            for role in range(num_roles):
                joint[at, role] = actions[offsets[i * num_roles + role] + (move if role == chooser[i] else 0)]
            at += 1
    return joint
