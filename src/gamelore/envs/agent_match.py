"""AgentMatch: a match whose roles are played by agents of another library, which see arrays and choose numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..drawing.position import position_text
from ..errors import GameloreError, IllegalMoveError, shortened
from ..game.game import Game, Position
from ..matches.match import MatchState
from ..players.player import END_NAMES, TERMINAL
from ..players.position_graph import PositionGraph
from ..rulesheets import loaded
from .batch import action_ranges, array_of
from .observation import Observation, ObservationKind

ILLEGAL = "illegal"
"""The end of a match in which an agent has chosen an illegal move."""
_LARGEST_GRAPH = 200_000_000  # bytes; a larger graph is replaced between two matches, which does not change results


class AgentMatch:
    """A match of a compiled game, in which the moves of a role are numbered from 0; and the next matches.

    Attributes:
        game: the game.
        observation: how states are observed.
        observed_space: the space of observations.
        action_spaces: for each role the space of its actions.
        state: the match itself.
    """

    def __init__(self, game: Game | str, observation: ObservationKind, max_plies: int) -> None:
        self.game = loaded(game)
        self.observation = Observation.of(self.game, observation)
        self._max_plies = max_plies
        self._actions = action_ranges(self.game)
        self._firsts = [own.start for own in self._actions]
        self.observed_space = spaces.Box(0, 1, self.observation.shape, np.uint8)
        self.action_spaces = [spaces.Discrete(len(own)) for own in self._actions]
        self._graph = PositionGraph(self.game)
        self.begin()

    def begin(self) -> None:
        """Begin the next match."""
        if self._graph.num_bytes > _LARGEST_GRAPH:
            self._graph = PositionGraph(self.game)
        self.state = MatchState(self._graph, max_plies=self._max_plies)

    @property
    def position(self) -> Position:
        """The present position."""
        return Position(self.game, self._graph.states[self.state.row])

    @property
    def is_over(self) -> bool:
        """Whether the match is over."""
        return self.state.end is not None

    @property
    def ends(self) -> tuple[bool, bool]:
        """Whether the match is terminated, and whether it is truncated."""
        end = self.state.end
        return end in (END_NAMES[TERMINAL], ILLEGAL), end in END_NAMES[TERMINAL + 1 :]

    @property
    def rewards(self) -> list[float]:
        """The goals of all roles / 100; 0 where there is none, and before the end."""
        goals = self.state.goals if self.state.end != ILLEGAL else (None,) * self.game.num_roles
        return [(goal or 0) / 100 for goal in goals]

    def moves(self, role: int) -> list[str]:
        """Return the texts of all actions of a role."""
        return [self.game.move_text(role, action) for action in self._actions[role]]

    def move(self, role: int, action: int) -> str:
        """Return the text of an action of a role."""
        return self.game.move_text(role, self._firsts[role] + action)

    def render(self, mode: str | None) -> str | None:
        """Return the position as text in the mode "ansi"; print it in the mode "human"."""
        if mode == "human":
            print(position_text(self.position))
            return None
        return position_text(self.position) if mode else None

    def observed(self) -> NDArray[np.uint8]:
        """Return the observation of the present state, uint8[*shape]."""
        observed: NDArray[np.uint8] = self.observation.observe(self._graph.states[[self.state.row]])[0]
        return observed

    def mask(self, role: int) -> NDArray[np.int8]:
        """Return which actions of a role are legal, int8[actions] of 0 and 1; none if the match is over."""
        mask = np.zeros(int(self.action_spaces[role].n), np.int8)
        if not self.is_over:
            mask[self._graph.legal(self.state.row, role) - self._firsts[role]] = 1
        return mask

    def choosing(self) -> list[int]:
        """Return the roles that have to choose a move; the others have only one."""
        roles = range(self.game.num_roles)
        return [] if self.is_over else [role for role in roles if self.state.has_choice(role)]

    def play(self, actions: Mapping[int, int], choices: Mapping[int, int] | None = None) -> None:
        """Make a joint move. Roles without an action or a choice make their first legal move.

        Args:
            actions: role -> its action, which must be legal.
            choices: role -> the index of its move among its legal moves.
        """
        joint = [(choices or {}).get(role, 0) for role in range(self.game.num_roles)]
        for role, action in actions.items():
            joint[role] = self._graph.legal(self.state.row, role).tolist().index(self._firsts[role] + action)
        self.state.play(joint)

    def stop(self) -> None:
        """End the match because of an illegal move."""
        self.state.end = ILLEGAL

    def checked(self, role: int, action: object) -> int:
        """Return an action as a number. Raise GameloreError if it is not in the action space of the role."""
        array, num = array_of(action), int(self.action_spaces[role].n)
        if array.shape != () or array.dtype.kind not in "iu" or not 0 <= int(array) < num:
            raise GameloreError(
                f"expected an action of {self.game.roles[role]} from 0 to {num - 1}, got {shortened(repr(action))}; "
                "take one of its action space"
            )
        return int(array)

    def illegal(self, role: int, action: int) -> IllegalMoveError:
        """Return the error for an illegal action."""
        return IllegalMoveError(
            f"expected a legal move of {self.game.roles[role]}, got action {action}, {self.move(role, action)}; legal "
            f"moves: {', '.join(self.state.legal(role))}"
        )
