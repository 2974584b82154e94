"""A player for people: it is asked about one position at a time, and answers with a move as text."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import IllegalMoveError
from .player import Player, Turn

if TYPE_CHECKING:
    from ..rules.game import Position


class PositionPlayer(Player):
    """Subclasses say in `move` what to play; slow beside players that take all lanes at once, and quick to write."""

    @abstractmethod
    def move(self, position: Position, role: str) -> str:
        """One of `position.legal[role]`."""

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. Raises IllegalMoveError where `move` gives none of the legal ones."""
        return np.array([self._choice(turn, row) for row in turn.rows.tolist()], np.int32)

    def _choice(self, turn: Turn, row: int) -> int:
        from ..rules.game import Position

        game = turn.graph.game
        position = Position(game, turn.graph.states[row])
        role = game.roles[turn.role]
        move, legal = self.move(position, role), position.legal[role]
        if move not in legal:
            name = type(self).__name__
            raise IllegalMoveError(
                f"expected a legal move of {role} from {name}, got {move}; legal: {', '.join(legal)}"
            )
        return legal.index(move)
