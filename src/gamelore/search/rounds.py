"""Rounds of matches between two ways to search, for trials that decide which way is better.

A *side* is a way to search. In a *round*, one side has each role in turn, and the other side has all other roles. All
matches of a round begin with the same random plies. With two roles, a round is a pair of matches with the roles
exchanged. The score of a match is 1/2 plus half of what the role of the first side gets more than the others on
average, so equal sides score 1/2 in each round on average, also where one role has an advantage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..circuit.tape import LANES
from ..game.engines import HIGHEST_GOAL, random_moves
from ..players.position_graph import MIB
from .choice import chosen
from .growth import Grower, walks_left
from .native_growth import grower
from .proofs import first_assumption
from .settings import GrowthSettings
from .tree import Tree, room_in
from .value import LinearValue, no_prior

if TYPE_CHECKING:
    from ..game.game import Game

SIDE_BY_SIDE = 8  # matches
_LEAST_WALKS = 64  # for a move; where a side has fewer, both get more time
_MEMORY_MIB = 32  # of SIDE_BY_SIDE matches
_REHEARSAL, _MANY = 0.02, 1 << 40  # seconds of a rehearsal; walks


class Openings(Protocol):
    """Moves of positions that were searched long."""

    def choice(self, state: NDArray[np.uint64], role: int, walks: int) -> int | None:
        """Return the best action of a role in a position; None if a search by so many walks knows more."""


class Side(NamedTuple):
    """A way to search.

    grower    what grows trees
    walks     number of walks for each move
    growth    parameters of the search
    openings  moves that need no search
    """

    grower: Grower
    walks: int
    growth: GrowthSettings
    openings: Openings | None = None


Sides: TypeAlias = tuple[Side, Side]


@dataclass
class SideEffort:
    """Walks of a side, and the CPU seconds that they took."""

    walks: int = 0
    seconds: float = 0.0

    @property
    def speed(self) -> float:
        """Walks per CPU second."""
        return max(self.walks, 1) / max(self.seconds, 1e-6)


def side_of(
    game: Game, value: LinearValue | None, growth: GrowthSettings, openings: Openings | None = None, walks: int = 0
) -> Side:
    """Return a way to search with a value, or without one."""
    side = Side(grower(game, growth), walks, growth, openings)
    side.grower.prior = value.prior(growth) if value is not None else no_prior(game)
    return side


def rehearsed(game: Game, side: Side) -> SideEffort:
    """Return the walks of a search from the first position on in some milliseconds, and the CPU seconds they took."""
    tree = Tree(game, *room_in(game, _MEMORY_MIB * MIB), 2 * LANES)
    tree.assumption = first_assumption(game, side.growth.max_plies)
    tree.start(game.initial)
    begin, effort, batches = process_time(), SideEffort(), 0
    while effort.seconds < _REHEARSAL:
        grown = side.grower.grow(tree, _MANY, np.uint64(0), (batches, batches + 1))
        effort, batches = SideEffort(effort.walks + grown.walks, process_time() - begin), batches + 1
        if not grown.walks:
            break
    return effort


def in_equal_time(sides: Sequence[Side], speeds: Sequence[float], seconds: float) -> Sides:
    """Return two sides with as many walks for a move as they make in the same time: so long, or longer for 64 walks.

    Args:
        sides: both sides
        speeds: walks per CPU second of each
        seconds: time for a move
    """
    each = max(seconds, _LEAST_WALKS / min(speeds))
    own, other = (side._replace(walks=round(each * speed)) for side, speed in zip(sides, speeds, strict=True))
    return own, other


class Rounds:
    """Matches between two sides.

    Args:
        game: game that the native engine plays
        key: key of the random numbers
        sides: the side whose score counts, and the other one
        openings: numbers of random plies at the beginning, of one round after the other
        num: number of matches that run at once
    """

    def __init__(
        self, game: Game, key: np.uint64, sides: Sides, openings: Sequence[int], num: int = SIDE_BY_SIDE
    ) -> None:
        self._matches = _Matches(game, key, sides, openings, num)
        self._steps = self._matches.play()

    @property
    def scores(self) -> list[float]:
        """Scores of the finished rounds in which all matches came to an end, 0 to 1."""
        return self._matches.scores

    @property
    def walks(self) -> int:
        """Number of walks so far."""
        return sum(effort.walks for effort in self.efforts)

    @property
    def efforts(self) -> tuple[SideEffort, SideEffort]:
        """The walks of both sides so far, and the time that they took."""
        return self._matches.efforts

    @property
    def sides(self) -> Sides:
        """The sides."""
        return self._matches.sides

    def advance(self) -> None:
        """Grow the trees by a batch, or make moves."""
        next(self._steps)


class _Matches:
    """The matches of `Rounds`.

    They are an object of their own, because their generator refers to them: an object that keeps such a generator of
    its own stays in memory, with its tree, until Python looks for cycles.
    """

    def __init__(self, game: Game, key: np.uint64, sides: Sides, openings: Sequence[int], num: int) -> None:
        self._game, self.sides, self._openings, self._num = game, sides, openings, num
        self._most_plies = sides[0].growth.max_plies
        self._tree = Tree(game, *room_in(game, max(1, num // SIDE_BY_SIDE) * _MEMORY_MIB * MIB), 2 * LANES)
        self._tree.assumption = first_assumption(game, self._most_plies)
        self._key, self._rng, self._batch = key, np.random.default_rng(int(key)), 0
        self.scores: list[float] = []
        self.efforts = SideEffort(), SideEffort()

    def play(self) -> Iterator[None]:
        """Play rounds; yield after each batch, and at the end of each round."""
        roles = self._game.num_roles
        num = max(1, self._num // roles)
        own = np.tile(np.arange(roles), num)  # the role of the first side in each match
        while True:
            states = np.repeat(self._opened(num), roles, axis=0)
            for _ in range(self._most_plies):
                # a stuck match goes no further, and its round does not count
                running = np.flatnonzero(self._game.legal(states).num_joint(roles))
                if not len(running):
                    break
                yield from self._ply(states, running, own)
            terminal, goals = self._game.evaluate(states)
            mine = np.maximum(goals, 0)[np.arange(len(states)), own]
            others = (np.maximum(goals, 0).sum(axis=1) - mine) / (roles - 1)
            scores = 0.5 + (mine - others) / (2 * HIGHEST_GOAL)
            whole = terminal.reshape(num, roles).all(axis=1)
            self.scores += scores.reshape(num, roles).mean(axis=1)[whole].tolist()
            yield

    def _opened(self, num: int) -> NDArray[np.uint64]:
        """Return positions after random plies, uint64[num, words]."""
        states = np.repeat(self._game.initial[None], num, axis=0)
        plies = np.array([self._openings[number % len(self._openings)] for number in range(num)])
        for ply in range(plies.max()):
            legal = self._game.legal(states)
            starts, counts = legal.by_role(self._game.num_roles)
            drawn = random_moves(starts, counts, self._rng)
            going = counts.all(axis=1) & (ply < plies)
            states[going] = self._game.next(states[going], legal.actions[drawn[going]])
        return states

    def _ply(self, states: NDArray[np.uint64], running: NDArray[np.intp], own: NDArray[np.intp]) -> Iterator[None]:
        """Let each side choose for its roles in the running matches, and make the moves."""
        roles = self._game.num_roles
        legal = self._game.legal(states[running])
        starts, counts = legal.by_role(roles)
        joint = legal.actions[starts]
        is_own = np.arange(roles) == own[running][:, None]
        for number, chooses in enumerate((is_own, ~is_own)):
            side = self.sides[number]
            chooses = chooses & (counts > 1)
            if side.openings is not None:
                self._open(states[running], joint, chooses, side)
            lanes = np.flatnonzero(chooses.any(axis=1))
            if len(lanes):
                yield from self._search(states[running[lanes]], side, self.efforts[number])
                for root, lane in enumerate(lanes.tolist()):
                    for role in np.flatnonzero(chooses[lane]).tolist():
                        joint[lane, role] = self._action(root, role, side)
        states[running] = self._game.next(states[running], joint.astype(np.int32))

    def _open(
        self, states: NDArray[np.uint64], joint: NDArray[np.int32], chooses: NDArray[np.bool_], side: Side
    ) -> None:
        """Let a side choose by its openings where it can: set the actions in `joint`, and clear these in `chooses`."""
        assert side.openings is not None
        for lane, role in np.argwhere(chooses).tolist():
            action = side.openings.choice(states[lane], role, side.walks)
            if action is not None:
                joint[lane, role], chooses[lane, role] = action, False

    def _search(self, states: NDArray[np.uint64], side: Side, effort: SideEffort) -> Iterator[None]:
        """Grow a tree below each of some positions."""
        self._tree.plant(states)
        left = len(states) * side.walks
        while left > 0:
            begin = process_time()
            grown = side.grower.grow(self._tree, left, self._key, (self._batch, self._batch + 1))
            self._batch += 1
            effort.walks += grown.walks
            effort.seconds += process_time() - begin
            left = walks_left(self._tree, grown, left, len(states) * side.walks)
            yield

    def _action(self, root: int, role: int, side: Side) -> int:
        """Return the action of a role in the position of a root that the player gamelore would choose."""
        noise = self._rng.integers(1 << 62, dtype=np.uint64)
        index = chosen(self._tree, root, role, side.growth, side.grower.prior, noise)
        return int(self._tree.arrays.actions[self._tree.span(root, role)[0] + index])
