"""GameBatch: many matches of a compiled game in lockstep, whose moves the caller gives."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..circuit.lanes import NO_MOVE, NOWHERE, BatchLanes
from ..errors import GameloreError, IllegalMoveError, check_count, check_seed
from ..game.game import Game
from ..matches.match import MAX_PLIES
from ..rulesheets import loaded
from .observation import Observation, ObservationKind


def array_of(given: object) -> NDArray[Any]:
    """Return what is given as an array; an array of the type object if it is a list of lists of different lengths."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.array(None)


class GameBatch:
    """Matches of a compiled game, one in each lane, that make their plies together in machine code.

        batch = gamelore.envs.GameBatch("connectfour", 4096)
        while True:
            batch.step(batch.sample(), fresh=batch.is_over)

    All arrays are views of memory that the next step overwrites; copy what you keep. Moves are numbers of actions: the
    moves of role r are `batch.actions[r]`, a range, and `batch.moves[r]` has their texts.

    Attributes:
        game: the game.
        num: number of lanes.
        observation: how states are observed.
        max_plies: number of plies after which a match is stopped.
        actions: for each role the range of the numbers of its actions.
        observations: uint8[num, *observation.shape].
        mask: bool[num, actions], the legal actions of all roles.
        acting: bool[num, roles], the roles that have to choose; none where the match is over.
        goals: float32[num, roles], 0 to 100: the goals of matches that ended in the last step, 0 in other lanes, and
            where the rules give none.
        terminated: bool[num], the matches that ended in the last step.
        truncated: bool[num], the matches that were stopped after the last step: after `max_plies` plies, or because a
            role has no legal move.
        plies: int32[num], the numbers of plies made.
    """

    def __init__(
        self,
        game: Game | str,
        num: int,
        *,
        observation: ObservationKind = "auto",
        max_plies: int = MAX_PLIES,
        seed: int = 0,
    ) -> None:
        """Begin a match in each lane.

        Args:
            game: a game, or what `load` takes.
            num: number of lanes. Multiples of 512 take no more time than the numbers just below them.
            observation: "facts", "planes" or "auto", see `Observation.of`.
            max_plies: number of plies after which a match is stopped.
            seed: seed of `sample`.

        Raises:
            GameloreError: the game is not compiled as a whole, or the number of lanes is below 1, or the seed
                is negative.
        """
        check_count("lanes", num)
        check_seed(seed)
        self.game = loaded(game)
        self.num = num
        self.max_plies = max_plies
        self.observation = Observation.of(self.game, observation)
        self._lanes = lanes = _lanes(self.game, num, self.observation, seed)
        self.actions = action_ranges(self.game)
        self.observations = lanes.observed[:num].reshape(num, *self.observation.shape)
        self.mask = lanes.mask[:num]
        self.acting = lanes.acting[:num]
        self.goals = lanes.goals[:num]
        self.terminated = lanes.ended[:num]
        self.truncated = np.zeros(num, np.bool_)
        self.plies = np.zeros(num, np.int32)
        self._first = np.array([own.start for own in self.actions])
        self._end = np.array([own.stop for own in self.actions])
        self._drawn = lanes.joint[:num]
        self._drawn.flags.writeable = False
        self._over = self.terminated | lanes.stuck[:num]
        self._padded = np.zeros((2, lanes.num_lanes), np.bool_)

    @cached_property
    def moves(self) -> list[list[str]]:
        """For each role the texts of its moves, made when they are first asked for: a game may have millions."""
        return [[self.game.move_text(role, action) for action in own] for role, own in enumerate(self.actions)]

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """bool[num]: the lanes whose match is over and did not begin anew; they stay as they are."""
        return self._over

    @property
    def states(self) -> NDArray[np.uint64]:
        """uint64[num, words]: the states as the game packs them; a copy."""
        return self._lanes.states[: self.num]

    def states_of(self, lanes: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the states of some lanes, uint64[n, words]."""
        return self._lanes.states_of(lanes)

    def sample(self) -> NDArray[np.int32]:
        """Return a random legal move of each role in each lane, int32[num, roles], uniformly distributed.

        The array is read-only and is drawn anew by the next call: copy it to change moves, or to keep them. `step` does
        not check it again.
        """
        self._lanes.sample()
        return self._drawn

    def seed(self, seed: int) -> None:
        """Begin the random numbers of `sample` again. Raises GameloreError for a negative seed."""
        check_seed(seed)
        self._lanes.seed(seed)

    def reset(self, lanes: NDArray[np.bool_] | None = None) -> None:
        """Begin new matches in these lanes, bool[num], or in all. The other lanes stay as they are."""
        fresh = np.ones(self.num, np.bool_) if lanes is None else lanes
        self.step(None, fresh=fresh, held=~fresh)

    def step(
        self,
        moves: ArrayLike | None,
        *,
        fresh: ArrayLike | None = None,
        held: ArrayLike | None = None,
    ) -> None:
        """Make a ply in all lanes but those whose match is over.

        Args:
            moves: int[num, roles], numbers of actions; -1 for the first legal move, which is the only one of a role
                that waits; None for -1 everywhere.
            fresh: bool[num], lanes that begin a new match instead.
            held: bool[num], lanes that stay as they are.

        Raises:
            GameloreError: a move is no action of its role, or an array has another shape or type.
            IllegalMoveError: a move is illegal. The batch must be reset then.
        """
        lanes = self._lanes
        fresh = None if fresh is None else self.flags("fresh", fresh)
        held = None if held is None else self.flags("held", held)
        if moves is None:
            lanes.joint[: self.num] = NO_MOVE
        elif moves is not self._drawn:
            lanes.joint[: self.num] = self._checked(moves)
        lanes.joint[self.num :] = NO_MOVE
        moved = ~self._over if held is None else ~(self._over | held)
        if fresh is not None:
            moved &= ~fresh
        wrong = lanes.step(*(self._pad(number, part) for number, part in enumerate((fresh, held))))
        if 0 <= wrong < self.num:
            raise self._illegal(wrong)
        if fresh is not None:
            self.plies[fresh] = 0
            self._over &= ~fresh
        self.plies += moved
        np.greater_equal(self.plies, self.max_plies, out=self.truncated)
        self.truncated &= moved & ~self.terminated
        if self.truncated.any():
            lanes.stop(self._pad(0, self.truncated))  # type: ignore[arg-type]
        self.truncated |= lanes.stuck[: self.num]
        self._over |= self.terminated | self.truncated

    def flags(self, name: str, lanes: ArrayLike) -> NDArray[np.bool_]:
        """Return flags of lanes as an array. Raise GameloreError for another shape or type."""
        flags = array_of(lanes)
        if flags.shape != (self.num,) or flags.dtype != np.bool_:
            raise GameloreError(f"expected {name} as bool[{self.num}], got {flags.dtype}{list(flags.shape)}")
        return flags

    def _checked(self, moves: ArrayLike) -> NDArray[Any]:
        """Return moves as an array. Raise GameloreError for another shape or type, or for numbers of other roles."""
        given = array_of(moves)
        if given.shape != (self.num, self.game.num_roles) or given.dtype.kind not in "iu":
            raise GameloreError(
                f"expected moves as int[{self.num}, {self.game.num_roles}], got {given.dtype}{list(given.shape)}; "
                "give a number of an action for each lane and role"
            )
        wrong = (given != NO_MOVE) & ((given < self._first) | (given >= self._end))
        if wrong.any():
            lane, role = np.argwhere(wrong)[0].tolist()
            raise GameloreError(
                f"expected moves of {self.game.roles[role]} from {self._first[role]} to {self._end[role] - 1}, or -1, "
                f"got {given[lane, role]} in lane {lane}; `actions` has the ranges of all roles"
            )
        return given

    def _pad(self, number: int, lanes: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """Return lanes with those that the machine code has in addition; they are never set."""
        if lanes is None or self.num == self._lanes.num_lanes:
            return lanes
        padded: NDArray[np.bool_] = self._padded[number]
        padded[: self.num] = lanes
        return padded

    def _illegal(self, lane: int) -> IllegalMoveError:
        """Return the error for a lane with an illegal move."""
        moves = self._lanes.joint[lane].tolist()
        return IllegalMoveError(
            f"expected legal moves, got {moves} for {', '.join(self.game.roles)} in lane {lane}; take moves whose "
            "`mask` is True in this lane before the step"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        kind: Any = self.observation.kind
        memory = self._lanes.memory(), self.plies.copy(), self._over.copy()
        return _restored, (self.game, self.game.numbering, self.num, kind, self.max_plies, memory)

    def __repr__(self) -> str:
        return f"<GameBatch of {self.num} matches of {self.game.name}; observations {list(self.observation.shape)}>"


def _restored(
    game: Game, numbering: str, num: int, kind: ObservationKind, max_plies: int, memory: tuple[Any, ...]
) -> GameBatch:
    """Return a batch that was pickled or copied. Its last step has no ends and no goals any more."""
    if numbering != game.numbering:
        raise GameloreError(
            f"expected a pickle of this version of gamelore and of {game.name}, got another one; make the batch again"
        )
    batch = GameBatch(game, num, observation=kind, max_plies=max_plies)
    arrays, batch.plies[:], batch._over[:] = memory
    batch._lanes.remember(arrays)
    return batch


def action_ranges(game: Game) -> list[range]:
    """Return the range of the actions of each role of a compiled game."""
    assert game.circuit is not None
    ends = np.cumsum([len(actions) for actions in game.circuit.actions]).tolist()
    return [range(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def _lanes(game: Game, num: int, observation: Observation, seed: int) -> BatchLanes:
    """Return the lanes of a compiled game."""
    native, turns = game.native, game.turn_order
    assert native is not None
    controls = [NOWHERE] * game.num_roles
    if turns.controls is not None and game.num_roles > 1:
        numbers = map(native.fact_number, turns.controls)
        controls = [NOWHERE if number is None else number for number in numbers]
    idle = {action for _, action in turns.idle}
    code, observed = native.fast_code, observation.index.tolist()
    return BatchLanes(code.address, code.num_planes, native.circuit, num, observed, controls, idle, seed)
