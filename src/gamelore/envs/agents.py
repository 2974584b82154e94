"""GameAECEnv and GameParallelEnv: all roles of any game as agents of PettingZoo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from ..errors import GameloreError, check_word
from ..game.game import Game, Position
from ..matches.match import MAX_PLIES
from .agent_match import AgentMatch
from .observation import ObservationKind
from .single import IllegalRule

RENDER_MODES = ["human", "ansi"]


class _Agents:
    """What both kinds of environments have in common: their agents are the roles, and they observe the same match."""

    def __init__(self, game: Game | str, observation: ObservationKind, max_plies: int, render_mode: str | None) -> None:
        check_word("render_mode", render_mode, (None, *RENDER_MODES))
        self.render_mode = render_mode
        self.match = AgentMatch(game, observation, max_plies)
        self.game, self.observation = self.match.game, self.match.observation
        self.metadata = {"render_modes": list(RENDER_MODES), "name": f"{self.game.name}_v0", "render_fps": 1}
        self.possible_agents = list(self.game.roles)
        self.agents: list[str] = []
        self._roles = {agent: role for role, agent in enumerate(self.possible_agents)}
        self.action_spaces = dict(zip(self.possible_agents, self.match.action_spaces, strict=True))
        self.observation_spaces = {agent: self._observation_space(agent) for agent in self.possible_agents}

    def _observation_space(self, agent: str) -> spaces.Dict:
        mask = spaces.Box(0, 1, (int(self.action_spaces[agent].n),), np.int8)
        return spaces.Dict({"observation": self.match.observed_space, "action_mask": mask})

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the space of an agent's actions."""
        return self.action_spaces[agent]

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what an agent observes: the facts, and its legal actions, none if it is not to move."""
        role = self._roles[agent]
        return {"observation": self.match.observed(), "action_mask": self.match.mask(role)}

    @property
    def position(self) -> Position:
        """The present position."""
        return self.match.position

    def moves(self, agent: str) -> list[str]:
        """Return the texts of all actions of an agent."""
        return self.match.moves(self._roles[agent])

    def render(self) -> str | None:
        """Return the position as text in the mode "ansi"; print it in the mode "human"."""
        return self.match.render(self.render_mode)

    def close(self) -> None:
        """Do nothing; there is nothing to close."""


class GameAECEnv(_Agents, AECEnv[str, Any, Any]):  # type: ignore[misc]
    """All roles of a game as agents that choose one after the other.

    Roles that choose at the same time are asked in their order, and none sees what the others have chosen. Roles that
    wait are not asked. Observations are dictionaries of `observation` and `action_mask`. Rewards are goals / 100
    at the end, and 0 before. `aec_env` adds the wrappers that PettingZoo's own games have.
    """

    def __init__(
        self,
        game: Game | str,
        *,
        observation: ObservationKind = "auto",
        max_plies: int = MAX_PLIES,
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            game: a game, or what `load` takes; it must be compiled as a whole.
            observation: "facts", "planes" or "auto", see `Observation.of`.
            max_plies: number of plies after which a match is truncated.
            render_mode: "ansi" for text, "human" to print it.

        Raises:
            GameloreError: the game is not compiled as a whole, or a word is unknown.
        """
        _Agents.__init__(self, game, observation, max_plies, render_mode)
        self.metadata["is_parallelizable"] = False
        self._chosen: dict[int, int] = {}
        self._waiting: list[int] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a match; see `AECEnv.reset`. Nothing is random, so the seed has no effect."""
        self.match.begin()
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self._go_on()

    def observe(self, agent: str) -> dict[str, Any]:
        """See `_Agents.observe`; an agent that is not asked now has no legal action."""
        observed = super().observe(agent)
        if agent != self.agent_selection:
            observed["action_mask"] = np.zeros_like(observed["action_mask"])
        return observed

    def step(self, action: Any) -> None:
        """Take the action of the selected agent; see `AECEnv.step`.

        Raises:
            GameloreError: the action is not in the agent's action space.
            IllegalMoveError: the move is illegal.
        """
        if not self.agents:
            raise GameloreError("expected `reset` before the first `step` and after the end of a match; call it first")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        role = self._roles[agent]
        number = self.match.checked(role, action)
        if not self.match.mask(role)[number]:
            raise self.match.illegal(role, number)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._chosen[role] = number
        self._waiting.remove(role)
        if self._waiting:
            self.agent_selection = self.possible_agents[self._waiting[0]]
        else:
            self.match.play(self._chosen)
            self._go_on()
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def _go_on(self) -> None:
        """Find who is to choose next, and play plies in which nobody has to."""
        self._chosen = {}
        while not self.match.is_over and not self.match.choosing():
            self.match.play({})
        self._waiting = self.match.choosing()
        if self._waiting:
            self.agent_selection = self.possible_agents[self._waiting[0]]
            return
        terminated, truncated = self.match.ends
        self.terminations = dict.fromkeys(self.agents, terminated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self.rewards = dict(zip(self.possible_agents, self.match.rewards, strict=True))
        after = self.possible_agents.index(self.agent_selection) + 1
        self.agent_selection = self.possible_agents[after % len(self.possible_agents)]


class GameParallelEnv(_Agents, ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """All roles of a game as agents that act in every ply, those that have to wait with their only move.

    Observations are dictionaries of `observation` and `action_mask`. Rewards are goals / 100 at the end, and 0 before.
    """

    def __init__(
        self,
        game: Game | str,
        *,
        observation: ObservationKind = "auto",
        max_plies: int = MAX_PLIES,
        illegal: IllegalRule = "end",
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            game: a game, or what `load` takes; it must be compiled as a whole.
            observation: "facts", "planes" or "auto", see `Observation.of`.
            max_plies: number of plies after which a match is truncated.
            illegal: what an illegal action of an agent that has to choose does: "end" ends the match with rewards of 0
                for all, and names it in the agent's info as `illegal_action`; "raise" raises IllegalMoveError. The
                action of an agent that has to wait does not matter.
            render_mode: "ansi" for text, "human" to print it.

        Raises:
            GameloreError: the game is not compiled as a whole, or a word is unknown.
        """
        check_word("illegal", illegal, ("end", "raise"))
        _Agents.__init__(self, game, observation, max_plies, render_mode)
        self._illegal = illegal

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin a match; see `ParallelEnv.reset`. Nothing is random, so the seed has no effect."""
        self.match.begin()
        self.agents = self.possible_agents[:]
        return {agent: self.observe(agent) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Make a ply; see `ParallelEnv.step`.

        Raises:
            GameloreError: an agent has no action, or one that is not in its action space.
            IllegalMoveError: a move is illegal, and the environment was made with illegal="raise".
        """
        agents = self.agents
        if not agents:
            raise GameloreError("expected `reset` before the first `step` and after the end of a match; call it first")
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        if not isinstance(actions, Mapping):
            raise GameloreError(
                f"expected a mapping agent -> action, got {type(actions).__name__}; give one for each agent"
            )
        if missing := [agent for agent in agents if agent not in actions]:
            raise GameloreError(f"expected actions of all agents, got none of {', '.join(missing)}; add them")
        chosen = {role: self.match.checked(role, actions[self.possible_agents[role]]) for role in self.match.choosing()}
        wrong = {role: action for role, action in chosen.items() if not self.match.mask(role)[action]}
        for role, action in wrong.items():
            if self._illegal == "raise":
                raise self.match.illegal(role, action)
            infos[self.possible_agents[role]]["illegal_action"] = self.match.move(role, action)
        self.match.stop() if wrong else self.match.play(chosen)
        terminated, truncated = self.match.ends
        self.agents = [] if terminated or truncated else agents
        if self.render_mode == "human":
            self.render()
        return (
            {agent: self.observe(agent) for agent in agents},
            dict(zip(agents, self.match.rewards, strict=True)),
            dict.fromkeys(agents, terminated),
            dict.fromkeys(agents, truncated),
            infos,
        )


def aec_env(game: Game | str, *, illegal_reward: float = -1.0, **options: Any) -> AECEnv[str, Any, Any]:
    """Return a GameAECEnv with PettingZoo's wrappers: an illegal move ends the match, and wrong calls raise errors.

    Args:
        game: a game, or what `load` takes; it must be compiled as a whole.
        illegal_reward: the reward of an agent that makes an illegal move; the others get 0.
        options: those of GameAECEnv.
    """
    raw = GameAECEnv(game, **options)
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(TerminateIllegalWrapper(raw, illegal_reward)))


def parallel_env(game: Game | str, **options: Any) -> GameParallelEnv:
    """Return a GameParallelEnv; see there."""
    return GameParallelEnv(game, **options)
