"""Values of n-tuple networks, held against a sum by hand."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from gamelore import load
from gamelore.game.engines import unpack_bits
from gamelore.networks.network import Network
from gamelore.networks.tuples import Tuples, draw_tuples


def random_network(name: str) -> Network:
    game, rng = load(name), np.random.default_rng(3)
    network = Network.zero(draw_tuples(game, rng, 30), game.num_roles)
    return Network(network.strides, network.offsets, rng.normal(size=network.entries.shape).astype(np.float32))


def some_states(name: str) -> np.ndarray:
    """Return positions of random matches, uint64[n, words]."""
    game, rng = load(name), np.random.default_rng(5)
    states, some = np.repeat(game.initial[None], 20, axis=0), []
    for _ in range(6):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        states = game.next(states, legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)])
        states = states[~game.evaluate(states)[0]]
        some.append(states)
    return np.concatenate(some)


def test_a_network_without_entries_values_everything_at_one_half():
    game = load("tictactoe")
    network = Network.zero(draw_tuples(game, np.random.default_rng(0), 5), 2)
    assert network(game.initial[None], np.zeros(1, np.int64)).tolist() == [0.5]


def test_the_value_by_hand():
    # facts 0 and 2 hold: the first tuple has entry 0 + 1 + 3, the second one 6 + 1
    tuples = Tuples(np.array([[1, 0], [2, 1], [3, 1]], np.int32), np.array([0, 6], np.int32), 8)
    entries = np.zeros((2, 8), np.float32)
    entries[1, [4, 7]] = 0.25, 0.5
    network = Network(tuples.strides, tuples.offsets, entries)
    values = network(np.array([[0b101], [0b101]], np.uint64), np.array([0, 1]))
    assert values.tolist() == pytest.approx([0.5, 1 / (1 + exp(-0.75))])


@pytest.mark.parametrize("name", ["tictactoe", "breakthrough", "connectfour"])
def test_the_value_is_the_squashed_sum_of_one_entry_for_each_tuple(name):
    network, states = random_network(name), some_states(name)
    facts = unpack_bits(states, len(network.strides)).astype(np.int64)
    for role in range(2):
        indices = network.offsets + facts @ network.strides
        totals = network.entries[role][indices].sum(axis=1)
        values = network(states, np.full(len(states), role))
        assert values == pytest.approx(1 / (1 + np.exp(-totals.astype(np.float64))), abs=1e-5)


@pytest.mark.parametrize("name", ["tictactoe", "breakthrough"])
def test_values_by_way_of_parents_are_the_same(name):
    network, states = random_network(name), some_states(name)
    roles, rows = np.arange(len(states)) % 2, np.arange(len(states)) // 3
    parents = np.ascontiguousarray(states[::-1][: rows.max() + 1])
    assert network(states, roles, parents, rows).tolist() == network(states, roles).tolist()
