"""Lanes against the game itself: every array after every step, with lanes that begin, wait or are over."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import gamelore
from gamelore.envs.batch import GameBatch
from gamelore.game.engines import Legal

GAMES = [
    "connectfour",
    "tictactoe",
    "othello4",
    "goofspiel",
    "pegsolitaire",
    "tictactoe3p",
    "capturego3",
    "breakthrough",
]


def masked(legal: Legal, num_actions: int, num_roles: int) -> NDArray[np.bool_]:
    """The legal moves as bool[lanes, actions]."""
    mask = np.zeros((len(legal.terminal), num_actions), np.bool_)
    lanes = np.repeat(np.arange(len(mask)), np.diff(legal.offsets).reshape(-1, num_roles).sum(axis=1))
    mask[lanes, legal.actions] = True
    return mask


@pytest.mark.parametrize("name", GAMES)
def test_lanes_play_as_the_game_does(name: str) -> None:
    game, rng = gamelore.load(name), np.random.default_rng(0)
    batch = GameBatch(game, 600, observation="facts", seed=3)
    roles, lanes = game.num_roles, batch.num
    states = np.repeat(game.initial[None], lanes, axis=0)
    legal, over, num_ended = game.legal(states), np.zeros(lanes, np.bool_), 0
    for _ in range(50):
        moves = batch.sample().copy()
        starts, counts = legal.by_role(roles)
        first = np.where(counts > 0, np.append(legal.actions, -1)[np.where(counts > 0, starts, -1)], -1)
        left_out = rng.random(moves.shape) < 0.2
        fresh, held = over & (rng.random(lanes) < 0.7), rng.random(lanes) < 0.1
        assert (batch.is_over == over).all()
        batch.step(np.where(left_out, -1, moves), fresh=fresh, held=held)
        moved = ~(over | fresh | held)
        states[fresh] = game.initial
        states[moved] = game.next(states[moved], np.where(left_out, first, moves)[moved].astype(np.int32))
        legal = game.legal(states)
        ended = legal.terminal & moved
        over = (over & ~fresh) | ended
        num_ended += int(ended.sum())
        assert (batch.states == states).all()
        bits = np.unpackbits(states.view(np.uint8), axis=1, bitorder="little")
        assert (batch.observations == bits[:, : batch.observations.shape[1]]).all()
        assert (batch.terminated == ended).all()
        going = ~legal.terminal
        assert (batch.mask[going] == masked(legal, batch.mask.shape[1], roles)[going]).all()
        acting = game.acting(states) | (legal.by_role(roles)[1] > 1)
        assert (batch.acting == (acting & going[:, None])).all()
        goals = np.maximum(game.evaluate(states)[1], 0)
        assert (batch.goals == np.where(ended[:, None], goals, 0)).all()
    assert num_ended > 100


def test_samples_are_legal_and_uniform() -> None:
    """4,096 draws of 9 marks: the largest of the nine chi-square terms would exceed 25.7 once in 5,000 times."""
    batch = GameBatch("tictactoe", 4096, seed=1)
    counts = np.bincount(batch.sample()[:, 0], minlength=20)
    assert counts.sum() == 4096
    legal = batch.mask[0, batch.actions[0].start : batch.actions[0].stop]
    assert (counts[: len(legal)][~legal] == 0).all()
    shares = counts[: len(legal)][legal]
    assert len(shares) == 9
    assert ((shares - 4096 / 9) ** 2 / (4096 / 9)).sum() < 30
