"""Players that are asked about one position at a time."""

from __future__ import annotations

import pytest

import gamelore
from gamelore.errors import IllegalMoveError
from gamelore.game.game import Position
from gamelore.matches.match import MatchState
from gamelore.players.player import PositionPlayer
from gamelore.players.position_graph import PositionGraph


class Last(PositionPlayer):
    def move(self, position: Position, role: str) -> str:
        return position.legal[role][-1]


class Wrong(PositionPlayer):
    def move(self, position: Position, role: str) -> str:
        return "(mark 9 9)"


def test_it_answers_for_its_role_and_position() -> None:
    match = MatchState(PositionGraph(gamelore.load("tictactoe")))
    assert Last().choose(match.turn(0, 0)).tolist() == [8]
    assert Last().choose(match.turn(1, 0)).tolist() == [0]  # noop is all it has


def test_an_illegal_answer_is_named() -> None:
    match = MatchState(PositionGraph(gamelore.load("tictactoe")))
    with pytest.raises(IllegalMoveError, match=r"xplayer from Wrong, got \(mark 9 9\)"):
        Wrong().choose(match.turn(0, 0))
