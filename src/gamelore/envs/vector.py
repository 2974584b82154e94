"""GameVectorEnv: thousands of `GameEnv` in one circuit, as a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ..api.playing import AnyPlayer, name_of
from ..circuit.lanes import NO_MOVE
from ..drawing.position import position_text
from ..errors import GameloreError, check_seed, check_word, one_of
from ..game.game import Game, Position
from ..learning.session import LastingLearner, StoredSeqPlayer
from ..matches.match import MAX_PLIES
from ..matches.opponents import Opponent
from ..players.kernel import I32, I64, U64, Boolx2, I32x2, kernel
from ..players.player import Player, Started, Turn
from ..players.position_graph import PositionGraph
from ..players.random_streams import WHICH, below, extend, stream
from ..rulesheets import loaded
from .batch import GameBatch, array_of
from .observation import ObservationKind
from .single import STAGE, opponents_of

_WHICH = np.uint64(WHICH)
_LARGEST_GRAPH = 200_000_000  # bytes


class GameVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """Many environments of one role of a game, which make their steps together in machine code.

    Environment i is equal to a `GameEnv` with the seed `seed + i`: the same actions give the same observations, rewards
    and masks. This holds for opponents whose moves depend on the position and on random streams only, as those of all
    names but the learners, seqplayer and gamelore do. Opponents with the name "random" are fast; other players are
    asked for many lanes at a time. `infos["action_mask"]` has the legal actions of all environments.

    Attributes:
        batch: the matches themselves.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        game: Game | str,
        num_envs: int = 1,
        role: str | None = None,
        opponent: AnyPlayer | Mapping[str, AnyPlayer] = "random",
        *,
        observation: ObservationKind = "auto",
        max_plies: int = MAX_PLIES,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Make the environments.

        Args:
            game: a game, or what `load` takes; it must be compiled as a whole.
            num_envs: number of environments.
            role: the role of the agents; the first one if it is None.
            opponent: the player of all other roles, or a mapping role -> player, see `GameEnv`. A player is one object
                for all lanes, and gets positions without the moves before, so learners and seqplayer are refused.
            observation: "facts", "planes" or "auto", see `Observation.of`.
            max_plies: number of plies after which an episode is truncated.
            autoreset_mode: when an environment begins a new episode: in the next step after the end (NEXT_STEP), in the
                same step (SAME_STEP; the last observation is in `infos["final_obs"]`), or when `reset` says so
                (DISABLED, with `options={"reset_mask": ..}`).
            copy: whether observations and masks are copies; False is faster, but the next step overwrites them.
            render_mode: "ansi" for text.

        Raises:
            GameloreError: the game is not compiled as a whole, or a role, player or word is unknown.
        """
        self.game = loaded(game)
        self.role = self.game.roles.index(one_of(role or self.game.roles[0], self.game.roles, "a role"))
        check_word("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.render_mode = render_mode
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.batch = GameBatch(self.game, num_envs, observation=observation, max_plies=max_plies)
        self.num_envs = num_envs
        self.observation = self.batch.observation
        self.single_observation_space = spaces.Box(0, 1, self.observation.shape, np.uint8)
        self.single_action_space = spaces.Discrete(len(self.batch.actions[self.role]))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._opponents = _Opponents(self.game, self.role, opponent)
        self._own = self.batch.actions[self.role]
        self._copy = copy
        self._keys = np.zeros(num_envs, np.uint64)
        self._episodes = np.full(num_envs, -1, np.int64)
        self._done = np.ones(num_envs, np.bool_)
        self._illegal = np.zeros(num_envs, np.bool_)
        self._last = np.zeros((2, num_envs), np.bool_)  # whether the last episode was terminated, and truncated
        self._has_begun = False

    @property
    def moves(self) -> list[str]:
        """The texts of all actions."""
        return self.batch.moves[self.role]

    @property
    def action_mask(self) -> NDArray[np.bool_]:
        """The legal actions, bool[num_envs, actions]; a view."""
        return self.batch.mask[:, self._own.start : self._own.stop]

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the legal actions, bool[num_envs, actions]; none where the episode is over."""
        return self.action_mask & ~(self.batch.is_over | self._illegal)[:, None]

    def sample(self) -> NDArray[np.int64]:
        """Return a random legal action for each environment, int64[num_envs], drawn in machine code.

        Where the episode is over, it is any action.
        """
        drawn = self.batch.sample()[:, self.role].astype(np.int64) - self._own.start
        return np.where(self.batch.is_over, 0, drawn)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin episodes; see `VectorEnv.reset`.

        Args:
            seed: environment i has the seed `seed + i`, or `seed[i]`.
            options: `{"reset_mask": bool[num_envs]}` resets some environments.
        """
        for own in np.atleast_1d(np.array(seed, object)):
            if own is not None:
                check_seed(own)
        super().reset(seed=seed if isinstance(seed, int) else None)
        lanes: NDArray[np.bool_] = np.ones(self.num_envs, np.bool_)
        if options and "reset_mask" in options:
            lanes = self.batch.flags("reset_mask", options["reset_mask"])
        self._seed(seed, lanes)
        ended, stopped = self._restart(lanes)
        self._last = np.where(lanes, [ended, stopped], self._last)
        return self._observed(), self._infos()

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Make a step in all environments; see `VectorEnv.step`."""
        if not self._has_begun:
            raise GameloreError("expected `reset` before the first `step`; call it first")
        chosen = self._checked(actions)
        resets = self.autoreset_mode == AutoresetMode.NEXT_STEP
        fresh = self._done if resets else np.zeros(self.num_envs, np.bool_)
        plays = ~self._done
        wrong = plays & ~self.batch.is_over & ~self.action_mask[np.arange(self.num_envs), chosen]
        joint = np.full((self.num_envs, self.game.num_roles), NO_MOVE, np.int32)
        moving = plays & ~wrong & ~self.batch.is_over
        joint[:, self.role] = np.where(moving, chosen + self._own.start, NO_MOVE)
        self._opponents.fill(self.batch, joint, moving, self._keys, self._episodes)
        self.batch.step(joint, fresh=fresh, held=~(moving | fresh))
        if fresh.any():
            self._begin(fresh)
        rewards, ended, stopped = self._zeros()
        self._add(rewards, ended, stopped)
        self._pass(moving | fresh, rewards, ended, stopped)
        self._illegal = np.where(fresh, False, self._illegal) | wrong
        ended |= wrong
        waiting = ~(plays | fresh)  # episodes that are over, and stay so
        ended, stopped = np.where(waiting, self._last, [ended, stopped])
        self._last = np.array([ended, stopped])
        over = ended | stopped
        self._done = over if self.autoreset_mode != AutoresetMode.DISABLED else over | self._done
        if self.autoreset_mode == AutoresetMode.SAME_STEP and over.any():
            return self._reset_at_once(over, rewards, ended, stopped, self._illegal_infos(wrong, chosen))
        return self._observed(), rewards, ended, stopped, self._infos() | self._illegal_infos(wrong, chosen)

    def render(self) -> tuple[str, ...] | None:
        """Return the positions as text in the mode "ansi"."""
        if self.render_mode is None:
            return None
        return tuple(position_text(Position(self.game, state)) for state in self.batch.states)

    def _reset_at_once(
        self,
        over: NDArray[np.bool_],
        rewards: NDArray[np.float64],
        ended: NDArray[np.bool_],
        stopped: NDArray[np.bool_],
        wrong: dict[str, Any],
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Begin the next episodes of environments in the step in which the last ones ended."""
        final = np.full(self.num_envs, None, object)
        for lane in np.flatnonzero(over).tolist():
            final[lane] = self.batch.observations[lane].copy()
        masks = np.where(over[:, None], self.action_masks(), False).astype(np.int8)
        last = {"action_mask": masks, "_action_mask": over.copy(), **wrong}
        self._restart(over)
        infos = self._infos()
        infos |= {"final_obs": final, "_final_obs": over.copy(), "final_info": last, "_final_info": over.copy()}
        return self._observed(), rewards, ended, stopped, infos

    def _seed(self, seed: int | Sequence[int | None] | None, lanes: NDArray[np.bool_]) -> None:
        """Set the keys of the random streams of these lanes, where they have a seed, or of all at first."""
        if not self._has_begun:
            first = int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
            self._keys[:] = [stream(first + lane, 0, STAGE) for lane in range(self.num_envs)]
            self.batch.seed(first)
        self._has_begun = True
        if seed is None:
            return
        seeds = [seed + lane for lane in range(self.num_envs)] if isinstance(seed, int | np.integer) else list(seed)
        if len(seeds) != self.num_envs:
            raise GameloreError(f"expected {self.num_envs} seeds, got {len(seeds)}; give one for each environment")
        if lanes.all() and seeds[0] is not None:
            self.batch.seed(int(seeds[0]))
        for lane, own in enumerate(seeds):
            if own is not None and lanes[lane]:
                self._keys[lane] = stream(int(own), 0, STAGE)
                self._episodes[lane] = -1

    def _begin(self, lanes: NDArray[np.bool_]) -> None:
        """Count the episodes that begin in these lanes, and tell the others."""
        self._episodes += lanes
        self._opponents.begin(np.flatnonzero(lanes), self._episodes)

    def _restart(self, lanes: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Begin episodes in these lanes, and let the others play; return which are terminated or truncated at once."""
        self.batch.reset(lanes)
        self._begin(lanes)
        self._illegal &= ~lanes
        rewards, ended, stopped = self._zeros()
        self._add(rewards, ended, stopped)
        self._pass(lanes, rewards, ended, stopped)
        self._done = np.where(lanes, ended | stopped, self._done)
        return ended, stopped

    def _pass(
        self,
        lanes: NDArray[np.bool_],
        rewards: NDArray[np.float64],
        ended: NDArray[np.bool_],
        stopped: NDArray[np.bool_],
    ) -> None:
        """Let the others play in these lanes until the agent has to choose, or the match is over."""
        batch = self.batch
        while (waiting := lanes & ~batch.is_over & ~batch.acting[:, self.role]).any():
            joint = np.full((self.num_envs, self.game.num_roles), NO_MOVE, np.int32)
            self._opponents.fill(batch, joint, waiting, self._keys, self._episodes)
            batch.step(joint, held=~waiting)
            self._add(rewards, ended, stopped)

    def _add(self, rewards: NDArray[np.float64], ended: NDArray[np.bool_], stopped: NDArray[np.bool_]) -> None:
        """Add what the last step of the batch has brought."""
        rewards += self.batch.goals[:, self.role].astype(np.float64) / 100
        ended |= self.batch.terminated
        stopped |= self.batch.truncated

    def _zeros(self) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        return np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)

    def _observed(self) -> NDArray[np.uint8]:
        return self.batch.observations.copy() if self._copy else self.batch.observations

    def _infos(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().view(np.int8), "_action_mask": np.ones(self.num_envs, np.bool_)}

    def _illegal_infos(self, wrong: NDArray[np.bool_], chosen: NDArray[np.int64]) -> dict[str, Any]:
        """Return the texts of illegal actions, as `GameEnv` tells them."""
        if not wrong.any():
            return {}
        texts, first = np.full(self.num_envs, None, object), self._own.start
        texts[wrong] = [self.game.move_text(self.role, first + action) for action in chosen[wrong].tolist()]
        return {"illegal_action": texts, "_illegal_action": wrong.copy()}

    def _checked(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Return the actions as an array. Raise GameloreError for another shape, type or range."""
        chosen, num = array_of(actions), len(self._own)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise GameloreError(
                f"expected actions as int[{self.num_envs}], got {chosen.dtype}{list(chosen.shape)}; give one action "
                "for each environment"
            )
        if chosen.min() < 0 or chosen.max() >= num:
            raise GameloreError(
                f"expected actions from 0 to {num - 1}, got {chosen.min()} to {chosen.max()}; take them from the "
                "action space"
            )
        return chosen.astype(np.int64)


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return a mode by its name or its value."""
    modes = {str(name): each for each in AutoresetMode for name in (each.name, each.value)}
    return mode if isinstance(mode, AutoresetMode) else modes[one_of(mode, modes, "an autoreset mode")]


class _Opponents:
    """The players of all roles but the agent's, for many lanes."""

    def __init__(self, game: Game, role: int, given: AnyPlayer | Mapping[str, AnyPlayer]) -> None:
        self._game = game
        self._players = opponents_of(game, role, given)
        self._others = [other for other in range(game.num_roles) if other != role]
        for other in self._others:
            if isinstance(self._players[other], LastingLearner | StoredSeqPlayer):
                name = name_of(given) if not isinstance(given, Mapping) else game.roles[other]
                raise GameloreError(
                    f"expected players that need only a position, got {name}, which needs whole matches; use GameEnv, "
                    "or another player"
                )
        self._graph = PositionGraph(game)

    def begin(self, lanes: NDArray[np.int64], episodes: NDArray[np.int64]) -> None:
        """Tell the players that matches begin in these lanes."""
        if lanes.size:
            for role in self._others:
                self._players[role].begin(role, Started(self._graph, lanes, episodes[lanes]))

    def fill(
        self,
        batch: GameBatch,
        joint: NDArray[np.int32],
        lanes: NDArray[np.bool_],
        keys: NDArray[np.uint64],
        episodes: NDArray[np.int64],
    ) -> None:
        """Put the moves of the others into `joint`, int32[lanes, roles], for these lanes."""
        for role in self._others:
            own = batch.actions[role]
            asked = np.flatnonzero(lanes & batch.acting[:, role])
            if not asked.size:
                continue
            streams = extend(extend(keys[asked], episodes[asked]), role)
            if _is_random(self._players[role]):
                _draw(asked, batch.mask, streams, batch.plies[asked], own.start, own.stop, role, joint)
            else:
                joint[asked, role] = self._chosen(role, batch, asked, streams)

    def _chosen(
        self, role: int, batch: GameBatch, lanes: NDArray[np.int64], keys: NDArray[np.uint64]
    ) -> NDArray[np.int32]:
        """Return the actions that a player chooses in these lanes, int32[n]."""
        if self._graph.num_bytes > _LARGEST_GRAPH:
            self._graph = PositionGraph(self._game)
        graph = self._graph
        rows = graph.intern(batch.states_of(lanes))
        graph.list_moves(rows)
        choices = self._players[role].choose(Turn(graph, role, lanes, rows, keys, batch.plies[lanes]))
        actions: NDArray[np.int32] = graph.move_actions[graph.move_start[rows, role] + choices]
        return actions


def _is_random(opponent: Player) -> bool:
    return isinstance(opponent, Opponent) and {each.kind for each in opponent.settings} == {"random"}


@kernel
def _draw(lanes: I64, mask: Boolx2, keys: U64, plies: I32, first: int, end: int, role: int, joint: I32x2) -> None:
    """Draw a legal action for each lane, as `Opponent` does; `mask`: bool[all lanes, actions of all roles]."""
    for i in range(lanes.size):
        lane, count = lanes[i], 0
        for action in range(first, end):
            count += mask[lane, action]
        which = below(keys[i], np.uint64(plies[i]), _WHICH, count)
        for action in range(first, end):
            if mask[lane, action]:
                if which == 0:
                    joint[lane, role] = action
                    break
                which -= 1
