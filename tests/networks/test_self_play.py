"""Self-play: corrections computed by hand, reproducible matches, and what a network learns in games that are solved."""

from __future__ import annotations

from math import inf
from time import monotonic

import numpy as np
import pytest

from gamelore import load
from gamelore.networks import self_play as self_play_module
from gamelore.networks.network import NetworkArrays
from gamelore.networks.self_play import SelfPlay, SelfPlaySettings, SelfPlayState, _History, _learn
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
    on = played("connect3", 0, 200, state)
    assert on.matches >= 200
    assert not np.array_equal(on.network.entries, before)
    assert np.array_equal(state.network.entries, before), "the state is not changed"
    assert np.array_equal(on.network.strides, state.network.strides)


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
    assert self_play.matches == 0
