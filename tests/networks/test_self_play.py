"""Self-play: corrections computed by hand, reproducible matches, and what a network learns in games that are solved."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from time import monotonic

import numpy as np
import pytest

from evaluators import native_game
from gamelore import load
from gamelore.gdl import syntax
from gamelore.networks import self_play as self_play_module
from gamelore.networks.network import NetworkArrays
from gamelore.networks.self_play import SelfPlay, SelfPlaySettings, SelfPlayState, _find_best, _History, _learn
from gamelore.players.random_streams import stream

FEW = SelfPlaySettings(matches=16)


def squashed(total: float) -> float:
    return float(1 / (1 + np.exp(-total)))


def arrays(entries: list[list[float]]) -> NetworkArrays:
    """Return a network with a single tuple, whose entries are named by two facts."""
    strides, offsets = np.array([[1], [2]], np.int32), np.zeros(1, np.int32)
    return NetworkArrays(strides, offsets, np.array(entries, np.float32))


def history(rows: list[tuple[int, int, float, bool]]) -> _History:
    """Return the history of one match: state, mover, value of the best move, whether a worse one was made."""
    past = _History.empty(1, 4, 1)
    for row, (state, mover, best, explored) in enumerate(rows):
        past.states[row], past.movers[row], past.bests[row], past.explored[row] = state, mover, best, explored
    past.lengths[0] = len(rows)
    return past


def learn(network, past, goals, *, rate=0.5, trace=0.25, sums=None, changes=None):
    sums = np.zeros_like(network.entries) if sums is None else sums
    changes = np.zeros_like(network.entries) if changes is None else changes
    _learn(network, sums, changes, past, np.array([0]), np.array([goals]), rate, trace)
    return sums, changes


def test_the_last_position_of_each_role_is_drawn_to_its_goal():
    network = arrays([[0, 0, 0, 0], [0, 0, 0, 0]])
    sums, changes = learn(network, history([(1, 0, 0.9, False), (3, 1, 0.2, False)]), [1.0, 0.25])
    assert network.entries[0].tolist() == [0, 0.25, 0, 0], "the error is 1 - 1/2, the rate 1/2"
    assert network.entries[1].tolist() == [0, 0, 0, -0.125]
    assert sums.tolist() == [[0, 0.5, 0, 0], [0, 0, 0, -0.25]]
    assert changes.tolist() == [[0, 0.5, 0, 0], [0, 0, 0, 0.25]]


def test_earlier_positions_are_drawn_to_the_best_move_and_to_what_came_later():
    network = arrays([[0, 0, 0, 0]])
    learn(network, history([(1, 0, 0.5, False), (2, 0, 0.8, False)]), [0.0])
    target = 0.75 * 0.8 + 0.25 * 0.0
    assert network.entries[0] == pytest.approx([0, 0.5 * (target - 0.5), -0.25, 0])


def test_what_came_after_a_worse_move_says_nothing():
    network = arrays([[0, 0, 0, 0]])
    learn(network, history([(1, 0, 0.5, False), (2, 0, 0.8, True)]), [0.0])
    assert network.entries[0] == pytest.approx([0, 0.5 * (0.8 - 0.5), -0.25, 0])


def test_step_sizes_are_smaller_where_errors_differ_in_sign():
    network, past = arrays([[0, 0, 0, 0]]), history([(1, 0, 0.5, False)])
    sums, changes = learn(network, past, [1.0])
    first = float(network.entries[0, 1])
    learn(network, past, [0.0], sums=sums, changes=changes)
    second = float(network.entries[0, 1])
    error = -squashed(first)
    assert second == pytest.approx(first + 0.5 * error), "so far, all errors had the same sign"
    learn(network, past, [0.0], sums=sums, changes=changes)
    share = abs(0.5 + error) / (0.5 - error)
    assert network.entries[0, 1] == pytest.approx(second - 0.5 * share * squashed(second), abs=1e-6)


def test_a_history_grows():
    past = history([(1, 0, 0.5, False), (2, 1, 0.25, True)])
    larger = past.with_room()
    assert larger.longest == 8
    for own, theirs in zip(larger[:-1], past[:-1], strict=True):
        assert np.array_equal(own[:4], theirs)
    assert larger.lengths.tolist() == [2]


def played(name: str, seed: int, matches: int, begin: SelfPlayState | None = None) -> SelfPlay:
    self_play = SelfPlay(load(name), stream(seed), FEW, begin)
    self_play.play(inf, matches)
    return self_play


def test_matches_depend_on_the_key_only():
    one, same, other = (played("connect3", seed, 100).network.entries for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert one.shape != other.shape or not np.array_equal(one, other)


def test_another_self_play_goes_on():
    state = played("connect3", 0, 100).state
    before = state.network.entries.copy()
    begun = SelfPlay(load("connect3"), stream(0), FEW, state).state
    assert state.sums.any()
    assert np.array_equal(begun.sums, state.sums)
    assert np.array_equal(begun.changes, state.changes)
    on = played("connect3", 0, 200, state)
    assert on.matches >= 200
    assert not np.array_equal(on.network.entries, before)
    assert np.array_equal(state.network.entries, before), "the state is not changed"
    assert np.array_equal(on.network.strides, state.network.strides)


def test_positions_are_counted():
    """Each move of a role that has a choice leads to one; in connect3, all moves but those in a last column."""
    one = played("connect3", 0, 100)
    assert 3 * one.matches < one.positions < 16 * one.matches
    assert one.state.positions == one.positions
    on = played("connect3", 0, 200, one.state)
    assert on.positions > one.positions
    assert not on.is_barren


def test_the_best_of_each_group_is_found():
    best = np.empty(3, np.int64)
    _find_best(np.array([0.5, 0.25, 0.0, 1.0, 0.75, -1.0]), np.array([0, 2, 5]), best)
    assert best.tolist() == [0, 3, 5]


def test_a_match_is_given_up_where_the_rules_leave_a_role_without_a_move():
    """There is no action to make, and machine code would read others."""
    rules = """
    (role a) (role b) (init (at 0)) (next_to 0 1) (next_to 0 2) (next_to 1 3)
    (<= (base (at ?x)) (place ?x)) (place 0) (place 1) (place 2) (place 3)
    (<= (input a (go ?x)) (place ?x)) (input b wait)
    (<= (legal a (go ?y)) (true (at ?x)) (next_to ?x ?y)) (legal b wait)
    (<= (next (at ?y)) (does a (go ?y))) (<= terminal (true (at 3)))
    (<= (goal a 100) (true (at 3))) (<= (goal b 0) (true (at 3)))
    """
    game = native_game(syntax.parse(rules))
    self_play = SelfPlay(game, stream(0), replace(FEW, opening=0))
    self_play.play(inf, 200)
    assert self_play.matches >= 200
    moves = game.legal(game.initial[None]).joint_moves(0, 2)
    after = game.next(np.repeat(game.initial[None], 2, axis=0), moves)
    values = self_play.network(after, np.zeros(2, np.int64))
    assert values.max() > 0.75, "by way of 1, the match ends"
    assert values.min() == 0.5, "by way of 2, it does not"


def test_matches_without_end_are_given_up(monkeypatch):
    rules = """
    (role a) (role b) (base x) (base y) (init x) (next x) (input a l) (input a r) (input b w)
    (legal a l) (legal a r) (legal b w) (goal a 50) (goal b 50) (<= terminal (true y))
    """
    self_play = SelfPlay(native_game(syntax.parse(rules)), stream(0), FEW)
    monkeypatch.setattr(self_play_module, "_MOST_PLIES", 5)
    self_play.play(inf, 300)
    assert self_play.matches >= 300
    assert not self_play.network.entries.any()


def test_self_play_without_a_position_to_learn_from_is_barren():
    self_play = played("connect3", 0, 20)
    assert not self_play.is_barren
    self_play.positions = 0
    assert not self_play.is_barren, "20 matches are too few to say"
    self_play.matches = 256
    assert self_play.is_barren
    assert self_play.state.is_barren


def test_sums_are_halved_before_they_become_inexact():
    network, past = arrays([[0, 0, 0, 0]]), history([(1, 0, 0.5, False)])
    sums, changes = np.full((1, 4), 60_000, np.float32), np.full((1, 4), 120_000, np.float32)
    learn(network, past, [1.0], sums=sums, changes=changes)
    assert network.entries[0, 1] == pytest.approx(0.5 * 0.5 * 0.5), "the share is the same"
    assert (sums[0, 1], changes[0, 1]) == (30_000.5, 60_000.5)


def test_goals_are_learned_from_0_to_1(monkeypatch):
    learned = []
    monkeypatch.setattr(self_play_module, "_learn", lambda *arguments: learned.append(arguments[5]))
    played("connect3", 0, 100)
    goals = np.concatenate(learned)
    assert set(goals.ravel().tolist()) <= {0.0, 0.5, 1.0}
    assert goals.sum(axis=1).tolist() == [1.0] * len(goals)
    assert goals.max() == 1.0


def test_no_match_begins_after_the_deadline():
    self_play = SelfPlay(load("tictactoe"), stream(0), FEW)
    self_play.play(monotonic() - 1)
    assert (self_play.matches, self_play.positions) == (0, 0)
