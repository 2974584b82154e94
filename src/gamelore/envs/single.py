"""GameEnv: one role of any game as a Gymnasium environment, the other roles played by any players."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..api.playing import AnyPlayer, others_of, player_of
from ..errors import GameloreError, check_seed, check_word, one_of
from ..game.game import Game, Position
from ..matches.match import MAX_PLIES
from ..players.player import Player
from ..players.random_streams import extend, stream
from .agent_match import AgentMatch
from .observation import ObservationKind

STAGE = "env"
"""The stage in the keys of the random streams of environments."""
IllegalRule: TypeAlias = Literal["end", "raise"]


def opponents_of(game: Game, role: int, given: AnyPlayer | Mapping[str, AnyPlayer]) -> list[Player]:
    """Return a player for each role; that of the agent's role is not asked.

    Raises:
        GameloreError: a role or a player is unknown.
    """
    own = game.roles[role]
    others = others_of(game, own, given) if isinstance(given, Mapping) else dict.fromkeys(game.roles, given)
    return [player_of("random" if name == own else others[name]) for name in game.roles]


class GameEnv(gymnasium.Env[Any, Any]):
    """One role of a game as an environment with a single agent.

    An action is the number of a move of the role, see `moves`. `info["action_mask"]` tells the legal ones, and
    `action_masks()` does for sb3-contrib. The reward is 0 until the match ends, and then the goal / 100. Plies in which
    the role has to wait are played by the environment. An observation is an array of 0 and 1; `observation.describe()`
    tells what it means.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        game: Game | str,
        role: str | None = None,
        opponent: AnyPlayer | Mapping[str, AnyPlayer] = "random",
        *,
        observation: ObservationKind = "auto",
        max_plies: int = MAX_PLIES,
        illegal: IllegalRule = "end",
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            game: a game, or what `load` takes; it must be compiled as a whole.
            role: the role of the agent; the first one if it is None.
            opponent: the player of all other roles: a name, a `Player` or a function of a position; or a mapping
                role -> player.
            observation: "facts", "planes" or "auto", see `Observation.of`.
            max_plies: number of plies after which an episode is truncated.
            illegal: what an illegal action does: "end" ends the episode with the reward 0 and
                `info["illegal_action"]`, "raise" raises IllegalMoveError.
            render_mode: "ansi" for text, "human" to print it after each step.

        Raises:
            GameloreError: the game is not compiled as a whole, or a role, player or word is unknown.
        """
        check_word("illegal", illegal, ("end", "raise"))
        check_word("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._match = AgentMatch(game, observation, max_plies)
        self.game, self.observation = self._match.game, self._match.observation
        self.role = self.game.roles.index(one_of(role or self.game.roles[0], self.game.roles, "a role"))
        self.render_mode = render_mode
        self.observation_space = self._match.observed_space
        self.action_space = self._match.action_spaces[self.role]
        self._players = opponents_of(self.game, self.role, opponent)
        self._illegal = illegal
        self._key, self._episode = stream(0, 0, STAGE), -1
        self._has_begun = self._has_ended = False

    @property
    def moves(self) -> list[str]:
        """The texts of all actions."""
        return self._match.moves(self.role)

    @property
    def position(self) -> Position:
        """The present position."""
        return self._match.position

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the legal actions, bool[actions]; none if the episode is over."""
        return self._match.mask(self.role).astype(np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin an episode; see `gymnasium.Env.reset`.

        Args:
            seed: seed of all random numbers of the opponents. Without one they go on; at first they have any seed.
            options: not used.
        """
        if seed is not None:
            check_seed(seed)
        super().reset(seed=seed)
        if seed is not None or not self._has_begun:
            self._key, self._episode = stream(int(seed if seed is not None else self.np_random_seed), 0, STAGE), -1
        self._has_begun, self._has_ended = True, False
        self._episode += 1
        self._match.begin()
        for role, opponent in enumerate(self._players):
            if role != self.role:
                opponent.begin(role, self._match.state.started(self._episode))
        self._pass()
        self._show()
        return self._match.observed(), self._info()

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Make a move, and the moves of the others until the role has to choose again; see `gymnasium.Env.step`.

        After the end of an episode nothing happens any more, and the reward is 0.

        Raises:
            GameloreError: the action is not a number from 0 to the number of actions - 1.
            IllegalMoveError: the move is illegal, and the environment was made with illegal="raise".
        """
        if not self._has_begun:
            raise GameloreError("expected `reset` before the first `step`; call it first")
        match, number, more = self._match, self._match.checked(self.role, action), {}
        was_over = match.is_over and self._has_ended
        if not match.is_over:
            if match.mask(self.role)[number]:
                match.play({self.role: number}, self._choices())
                self._pass()
            elif self._illegal == "raise":
                raise match.illegal(self.role, number)
            else:
                match.stop()
                more = {"illegal_action": match.move(self.role, number)}
        self._has_ended = match.is_over
        self._show()
        reward = 0.0 if was_over else match.rewards[self.role]
        return match.observed(), reward, *match.ends, self._info() | more

    def render(self) -> str | None:
        """Return the position as text in the mode "ansi"; print it in the mode "human"."""
        return self._match.render(self.render_mode)

    def _pass(self) -> None:
        """Play until the agent has to choose, or the match is over."""
        match = self._match
        while not match.is_over and self.role not in match.choosing():
            match.play({}, self._choices())
        if match.is_over:
            for role, opponent in enumerate(self._players):
                if role != self.role:
                    opponent.end(role, match.state.finished(self._episode))

    def _choices(self) -> dict[int, int]:
        """Return the choices of all other roles that have to choose."""
        choices, key = {}, extend(self._key, self._episode)
        for role in self._match.choosing():
            if role != self.role:
                turn = self._match.state.turn(role, np.uint64(extend(key, role)))
                choices[role] = int(self._players[role].choose(turn)[0])
        return choices

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._match.mask(self.role)}

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()
