"""`gamelore.solve` and the values of positions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gamelore
from gamelore import Game, GameloreError, Solved

SMALL = "(role me) (init start) (legal me go) (<= (next end) (does me go)) (<= terminal (true end)) (goal me 70)"


@pytest.fixture(scope="module")
def tictactoe() -> Solved:
    return gamelore.solve("tictactoe")


def test_values_of_the_game(tictactoe: Solved) -> None:
    assert tictactoe.values == {"xplayer": 50, "oplayer": 50}
    assert tictactoe.num_positions == 5478
    assert repr(tictactoe) == "<Solved tictactoe: xplayer 50, oplayer 50; 5,478 positions>"
    assert repr(gamelore.solve("pegsolitaire")).startswith("<Solved pegsolitaire: player 100 in 13 plies; ")


def test_values_of_a_position(tictactoe: Solved) -> None:
    """xplayer has two ways to win, and oplayer can close one of them."""
    game = tictactoe.game
    marks = ("(mark 1 1)", "(mark 1 2)", "(mark 2 2)", "(mark 3 3)", "(mark 2 1)")
    position = game.start()
    for ply, mark in enumerate(marks):
        position = position.play(["noop", mark] if ply % 2 else [mark, "noop"])
    assert tictactoe.value(position) == {"xplayer": 100, "oplayer": 0}
    assert {move["role"] for move in tictactoe.moves(position)} == {"oplayer"}
    assert {move["goal_xplayer"] for move in tictactoe.moves(position)} == {100}


def test_moves_of_the_first_position_as_rows() -> None:
    rows = gamelore.solve("losetictactoe").rows
    assert [row["move"] for row in rows if row["best"]] == ["(mark 2 2)"]
    assert rows[4] == {
        "role": "xplayer",
        "move": "(mark 2 2)",
        "goal_xplayer": 50,
        "goal_oplayer": 50,
        "plies": None,
        "best": True,
    }


def test_a_position_of_a_game_that_was_loaded_again(tictactoe: Solved) -> None:
    again = pickle.loads(pickle.dumps(gamelore.load("tictactoe").start()))
    assert tictactoe.value(again) == tictactoe.values


def test_positions_that_have_no_value(tictactoe: Solved) -> None:
    with pytest.raises(GameloreError, match="expected a position of tictactoe, got one of connect3"):
        tictactoe.value(gamelore.load("connect3").start())
    unreachable = tictactoe.game.position(["(cell 1 1 x)", "(control xplayer)"])
    with pytest.raises(GameloreError, match="expected positions that are reachable"):
        tictactoe.moves(unreachable)


def test_best_play_to_its_end(tictactoe: Solved) -> None:
    position = tictactoe.game.start()
    for joint in tictactoe.best_line.moves:
        assert tictactoe.value(position) == tictactoe.values
        position = position.play(joint)
    assert (position.is_terminal, tictactoe.best_line.end) == (True, "terminal")
    assert tictactoe.moves(position) == []


def test_games_that_cannot_be_solved_are_told() -> None:
    with pytest.raises(GameloreError, match="expected only one role at a time to have a choice in goofspiel"):
        gamelore.solve("goofspiel")


def test_a_memory_that_is_none_is_told() -> None:
    with pytest.raises(GameloreError, match="expected a memory above 0, got -1; give a number of GiB"):
        gamelore.solve("tictactoe", memory=-1)


def test_a_damaged_pickle_of_a_solution_is_refused(tictactoe: Solved) -> None:
    whole = pickle.dumps(tictactoe.solution)
    assert np.array_equal(pickle.loads(whole).states, tictactoe.solution.states)
    states = tictactoe.solution.states.tobytes()
    assert states in whole
    with pytest.raises(GameloreError, match="expected a pickle of a solution as it was written, got a damaged one"):
        pickle.loads(whole.replace(states, states[::-1]))


def test_a_pickle_of_a_solution_is_of_one_numbering(tictactoe: Solved, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of gamelore may number the facts in another order, and states would mean others."""
    whole = pickle.dumps(tictactoe.solution)
    monkeypatch.setattr(Game, "numbering", "another")
    with pytest.raises(GameloreError, match="got a damaged one or one of another version; solve the game again"):
        pickle.loads(whole)


def test_a_solution_on_the_reasoner_is_not_pickled() -> None:
    """The reasoner numbers states in the order in which a process meets them."""
    solved = gamelore.solve(gamelore.load(SMALL, "reasoner"))
    assert solved.values == {"me": 70}
    with pytest.raises(GameloreError, match="expected a game that is compiled as a whole, got unnamed"):
        pickle.dumps(solved)
