"""`GameBatch`: what its arrays say, its limits, and its errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gamelore
from gamelore import Game, GameloreError, IllegalMoveError
from gamelore.envs import GameBatch, Observation

STUCK = """
(role a) (init (n 0)) (succ 0 1) (succ 1 2)
(<= (legal a up) (true (n ?n)) (succ ?n ?m)) (<= (next (n ?m)) (true (n ?n)) (succ ?n ?m))
(<= terminal (true (n 3))) (<= (goal a 100) (true (n 3)))
"""


def test_the_first_legal_move_is_made_where_none_is_given() -> None:
    batch = GameBatch("tictactoe", 3)
    batch.step(None)
    assert all("(cell 1 1 x)" in batch.game.facts(state) for state in batch.states)
    assert batch.acting.tolist() == [[False, True]] * 3


def test_matches_are_stopped_after_the_most_plies() -> None:
    batch = GameBatch("connectfour", 5, max_plies=2)
    batch.step(None)
    assert not batch.truncated.any()
    batch.step(None)
    assert batch.truncated.all()
    assert batch.is_over.all()
    before = batch.states
    batch.step(batch.sample())
    assert (batch.states == before).all()
    assert not batch.truncated.any()
    batch.step(None, fresh=np.array([True, False, False, False, True]))
    assert batch.is_over.tolist() == [False, True, True, True, False]
    assert batch.plies.tolist() == [0, 2, 2, 2, 0]


def test_a_role_without_a_move_truncates_the_match() -> None:
    batch = GameBatch(STUCK, 2)
    batch.step(None)
    assert not batch.truncated.any()
    batch.step(None)
    assert batch.truncated.all()
    assert not batch.terminated.any()


def test_lanes_are_reset_and_held() -> None:
    batch = GameBatch("tictactoe", 4)
    batch.step(None, held=np.array([True, False, False, False]))
    assert batch.plies.tolist() == [0, 1, 1, 1]
    batch.reset(np.array([False, True, False, False]))
    assert batch.plies.tolist() == [0, 0, 1, 1]
    first = batch.game.initial
    assert [(state == first).all() for state in batch.states] == [True, True, False, False]
    batch.reset()
    assert (batch.states == first).all()


def test_mistakes_are_told() -> None:
    batch = GameBatch("tictactoe", 3)
    moves = np.array([[0, 10], [1, 10], [9, 10]])
    with pytest.raises(IllegalMoveError, match=r"expected legal moves, got .* for xplayer, oplayer in lane 2"):
        batch.step(moves)
    with pytest.raises(GameloreError, match=r"expected moves as int\[3, 2\], got float64\[3\]"):
        batch.step(np.zeros(3))
    with pytest.raises(GameloreError, match="expected a whole number of lanes from 1, got 0"):
        GameBatch("tictactoe", 0)
    with pytest.raises(GameloreError, match="expected a game that is compiled as a whole, got unnamed on the reasoner"):
        GameBatch(gamelore.load(STUCK, "reasoner"), 1)


def test_sampled_moves_are_changed_in_a_copy_which_is_checked() -> None:
    batch = GameBatch("tictactoe", 3)
    drawn = batch.sample()
    with pytest.raises(ValueError, match="read-only"):
        drawn[:, 0] = 19
    changed = drawn.copy()
    changed[:, 0] = 19  # a move of the other role
    with pytest.raises(GameloreError, match="expected moves of xplayer from 0 to 9"):
        batch.step(changed)
    changed[:, 0] = 4
    batch.step(changed)
    assert batch.plies.tolist() == [1, 1, 1]


@pytest.mark.parametrize("wrong", [[9999, 10], [-7, 10], [19, 10], [0, 0], [2**32 + 3, 10]])
def test_numbers_of_other_actions_are_refused(wrong: list[int]) -> None:
    """The actions of xplayer have the numbers 0 to 9, those of oplayer 10 to 19."""
    batch = GameBatch("tictactoe", 2)
    with pytest.raises(GameloreError, match=r"expected moves of \w+ from \d+ to \d+, or -1, got"):
        batch.step([[0, 19], wrong])
    assert batch.plies.tolist() == [0, 0]


@pytest.mark.parametrize("flags", [[1, 0], [True], np.ones(3, np.bool_), 2.5])
def test_flags_of_another_shape_or_type_are_refused(flags: object) -> None:
    with pytest.raises(GameloreError, match=r"expected fresh as bool\[2\]"):
        GameBatch("tictactoe", 2).step(None, fresh=flags)  # type: ignore[arg-type]


def test_a_copy_goes_on_like_the_original() -> None:
    batch = GameBatch("connectfour", 700, seed=4, max_plies=30)
    for _ in range(12):
        batch.step(batch.sample(), fresh=batch.is_over)
    for other in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        assert (other.mask == batch.mask).all()
        assert (other.observations == batch.observations).all()
        assert (other.acting == batch.acting).all()
        assert (other.is_over == batch.is_over).all()
    for _ in range(20):
        other.step(other.sample(), fresh=other.is_over)
        batch.step(batch.sample(), fresh=batch.is_over)
        assert (other.states == batch.states).all()
        assert (other.goals == batch.goals).all()
        assert (other.truncated == batch.truncated).all()


@pytest.mark.parametrize("start", ["(init (n 2))", "(init (n 3))"])
def test_a_first_state_may_be_an_end(start: str) -> None:
    """With n = 2 no move is legal, with n = 3 the match is over."""
    batch = GameBatch(STUCK.replace("(init (n 0))", start), 2)
    assert batch.is_over.all()
    batch.step(None)
    assert batch.plies.tolist() == [0, 0]
    batch.step(None, fresh=np.ones(2, np.bool_))
    assert batch.is_over.all()
    assert (batch.terminated | batch.truncated).all()


def test_planes_show_the_board_as_it_is_drawn() -> None:
    game = gamelore.load("connectfour")
    observation = Observation.of(game)
    assert (observation.kind, observation.shape) == ("planes", (5, 6, 7))
    assert observation.meanings == (
        "(cell .. b)",
        "(cell .. red)",
        "(cell .. yellow)",
        "(control red)",
        "(control yellow)",
    )
    position = game.start().play(["(drop 3)", "noop"]).play(["noop", "(drop 3)"])
    seen = observation.observe(position.state[None])[0]
    assert np.argwhere(seen[1]).tolist() == [[5, 2]]
    assert np.argwhere(seen[2]).tolist() == [[4, 2]]
    assert (seen[:3].sum(axis=0) == 1).all()
    assert (seen[3] == 1).all()
    assert (seen[4] == 0).all()
    assert "   3  (control red)" in observation.describe()


def test_facts_are_observed_where_there_is_no_board() -> None:
    game = gamelore.load("fivemensmorris")
    observation = Observation.of(game)
    assert observation.kind == "facts"
    seen = observation.observe(game.initial[None])[0]
    facts = {observation.meanings[number] for number in np.flatnonzero(seen)}
    assert facts == set(game.start().facts)
    with pytest.raises(GameloreError, match="expected a game with a board of squares for planes, got fivemensmorris"):
        Observation.of(game, "planes")
    with pytest.raises(GameloreError, match="expected the setting observation to be auto, facts or planes"):
        Observation.of(game, "pictures")  # type: ignore[arg-type]


def test_a_pickle_is_of_one_numbering(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pickle.dumps(GameBatch("tictactoe", 2))
    monkeypatch.setattr(Game, "numbering", "another")
    with pytest.raises(GameloreError, match="expected a pickle of this version of gamelore and of tictactoe"):
        pickle.loads(whole)


def test_the_texts_of_moves_are_made_when_they_are_asked_for():
    batch = GameBatch("tictactoe", 2)
    batch.step(batch.sample())
    assert "moves" not in vars(batch)
    assert [len(own) for own in batch.moves] == [len(own) for own in batch.actions]
