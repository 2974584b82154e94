from __future__ import annotations

import numpy as np
import pytest

from gamelore.players.random_streams import extend, stream
from gamelore.players.uct import playout_goals

ENGINES = ["native", "reasoner"]


def keys_of(trees: int, seed: int = 1) -> np.ndarray:
    return extend(stream(seed), np.arange(trees))


def from_start(game, trees: int, each: int) -> np.ndarray:
    return np.tile(game.initial, (trees, each, 1))


def after(game, *moves: str) -> np.ndarray:
    position = game.start()
    for move in moves:
        position = position.play(move)
    return position.state


@pytest.mark.parametrize("engine", ENGINES)
def test_goals_are_as_frequent_as_the_odds_say(load, engine) -> None:
    # ONE_SHOT: of row's four moves a wins, b wins or loses by column's two, d draws, c leads to the same choice again:
    # won = 1/4 + 1/8 + won/4, lost = 1/8 + lost/4, drawn = 1/4 + drawn/4
    game, trees, each = load("one_shot", engine), 40, 100
    goals = playout_goals(game, from_start(game, trees, each), keys_of(trees)).reshape(-1, 2)
    shares = [np.mean(goals[:, 0] == goal) for goal in (100, 0, 50)]
    assert shares == pytest.approx([1 / 2, 1 / 6, 1 / 3], abs=4 * np.sqrt(0.25 / (trees * each)))
    # column gets the opposite, and no goal at all where row drew
    assert np.array_equal(goals[:, 1], np.choose(goals[:, 0] // 50, [100, -1, 0]))


@pytest.mark.parametrize("engine", ENGINES)
def test_places_without_moves_are_ends(load, engine) -> None:
    game = load("walk", engine)
    states = np.stack([after(game, "trap"), after(game, "leave")])
    assert playout_goals(game, states[None], keys_of(1)).tolist() == [[[-1], [-1]]]  # stuck; terminal without a goal
    game = load("tictactoe", engine)
    won = game.state(["(cell 1 1 x)", "(cell 1 2 x)", "(cell 1 3 x)", "(control oplayer)"])
    assert playout_goals(game, won[None, None], keys_of(1)).tolist() == [[[100, 0]]]


@pytest.mark.parametrize("engine", ENGINES)
def test_playouts_are_cut_off(load, engine) -> None:
    game = load("tictactoe", engine)
    goals = playout_goals(game, from_start(game, 1, 200), keys_of(1), max_plies=5)[0]
    assert set(map(tuple, goals.tolist())) == {(100, 0), (-1, -1)}  # five plies: x has won, or nobody yet


@pytest.mark.parametrize("engine", ENGINES)
def test_the_playouts_of_a_tree_depend_on_its_states_and_key_only(load, engine) -> None:
    game, trees = load("tictactoe", engine), 5
    states, keys = from_start(game, trees, 12), keys_of(trees)
    whole = playout_goals(game, states, keys)
    alone = [playout_goals(game, states[i : i + 1], keys[i : i + 1])[0] for i in range(trees)]
    assert np.array_equal(whole, alone)
    assert not np.array_equal(whole[0], whole[1])


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_known_when_the_time_is_up(load, engine) -> None:
    game = load("tictactoe", engine)
    states = from_start(game, 2, 3)
    assert playout_goals(game, states, keys_of(2), deadline=0.0) is None
    assert playout_goals(game, states, keys_of(2), deadline=np.inf).shape == (2, 3, 2)
