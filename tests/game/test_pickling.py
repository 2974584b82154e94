"""Games and positions in pickles, copies and other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from operator import attrgetter, methodcaller
from pathlib import Path

import numpy as np
import pytest

import gamelore
from bounded_sheets import COUNTER, LEAVING_BASE
from gamelore.game.game import Position, make
from gamelore.gdl.limits import Limits
from gamelore.gdl.syntax import parse


def again(value):
    """A value out of its pickle."""
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("way", [again, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("engine", ["native", "reasoner"])
@pytest.mark.parametrize("source", ["tictactoe", "breakthrough:width=3,rows=1", "goofspiel"])
def test_a_game_is_carried_with_its_rules_its_name_and_its_engine(way, engine, source) -> None:
    game = gamelore.load(source, engine=engine)
    game.playouts(2)  # whatever a game works out is not carried
    game.acting(game.initial[None])
    other = way(game)
    assert other is not game
    assert (other.name, other.rules_hash, other.engine) == (game.name, game.rules_hash, game.engine)
    assert (other.engine_reason, other.roles, other.rulesheet) == (game.engine_reason, game.roles, game.rulesheet)
    assert other.playouts(2, seed=3) == game.playouts(2, seed=3)
    assert again(other).start() == game.start()


@pytest.mark.parametrize("way", [again, copy.deepcopy])
def test_a_game_that_was_too_large_stays_on_the_reasoner(way) -> None:
    limits = Limits(literals=100)
    game = gamelore.load("tictactoe", limits=limits)
    assert game.engine == "reasoner"
    other = way(way(game))
    assert (other.engine, other.engine_reason) == ("reasoner", game.engine_reason)
    assert other._engine.reasoner.limits == limits


def test_a_compiled_game_is_compiled_on_a_machine_that_takes_longer(monkeypatch, tmp_path) -> None:
    data = pickle.dumps(gamelore.load("tictactoe", limits=Limits(seconds=2.5)))
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path))
    monkeypatch.setattr("gamelore.gdl.limits.time.thread_time", iter(range(0, 10**6, 10)).__next__)
    with pytest.raises(gamelore.GroundingError, match=r"within 2\.5 s"):  # on that machine
        gamelore.load("tictactoe", limits=Limits(seconds=2.5))
    game = pickle.loads(data)
    assert game.engine == "native"
    assert len(game.start().legal["xplayer"]) == 9


def test_rules_taken_as_they_are_written_stay_so() -> None:
    game = gamelore.load("connect3", rewrite=False)
    other = again(game)
    assert np.array_equal(other.initial, game.initial)
    assert other.circuit.num_gates == game.circuit.num_gates


@pytest.mark.parametrize("text", [COUNTER, LEAVING_BASE])
def test_a_game_within_its_bounds_stays_there(text: str) -> None:
    game = make(parse(text), "bounded", limits=Limits(seconds=5, literals=20_000))
    assert game.is_bounded
    other = again(game)
    assert (other.is_bounded, other.engine_reason) == (True, game.engine_reason)
    position = game.start()
    while not position.is_terminal:  # on either side of its bounds
        carried = again(position)
        assert (carried.facts, carried.legal, carried.game.is_bounded) == (position.facts, position.legal, True)
        position = position.play([moves[0] for moves in position.legal.values()])
    assert again(position).goals == position.goals


@pytest.mark.parametrize("way", [again, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_position_is_carried_with_its_game_and_its_facts(way, engine) -> None:
    position = gamelore.load("tictactoe", engine=engine).start().play(["(mark 2 2)", "noop"])
    other = way(position)
    assert other.game.engine == engine
    assert (other.facts, other.legal, other.is_terminal) == (position.facts, position.legal, False)
    assert (other, hash(other)) == (position, hash(position))
    assert other != position.game.start()
    assert other.play(["noop", "(mark 1 1)"]) == position.play(["noop", "(mark 1 1)"])


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_positions_are_equal_however_a_sheet_spells_them(engine) -> None:
    rules = "(role a) (init (Cell 1)) (legal a m) (<= terminal (true t)) (<= (next t) (does a m)) (goal a 1)"
    upper, lower = gamelore.load(rules).start(), gamelore.load(rules.lower(), engine=engine).start()
    assert (upper == lower, hash(upper) == hash(lower), upper == lower.play("m")) == (True, True, False)
    assert {upper, lower} == {upper}


def test_positions_of_other_rules_differ() -> None:
    one, two = (gamelore.load(name).start() for name in ("tictactoe", "losetictactoe"))
    assert one.facts == two.facts
    assert again(one) != two
    assert one != "tictactoe"


@pytest.mark.parametrize("way", [again, copy.deepcopy])
def test_positions_that_are_carried_together_share_their_game(way) -> None:
    start = gamelore.load("tictactoe").start()
    game, first, second = way((start.game, start, start.play(["(mark 2 2)", "noop"])))
    assert first.game is second.game is game
    assert start.game is not game


def test_a_position_that_play_does_not_reach_is_carried() -> None:
    """One that `Game.state` refuses, but raw moves lead to."""
    game = gamelore.load("tictactoe")
    raw = Position(game, game.next(game.initial[None], np.array([[0, 0]], np.int32))[0])
    assert again(raw).facts == raw.facts


def test_processes_carry_games_and_positions(tmp_path: Path) -> None:
    place = tmp_path / "mine.kif"
    place.write_text(gamelore.load("tictactoe").rulesheet.text, encoding="utf-8")
    starts = [gamelore.load(place).start(), gamelore.load("fivemensmorris:cap=80", engine="reasoner").start()]
    place.unlink()  # the rules are in the pickle, not where they came from
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        assert list(executor.map(attrgetter("legal"), starts)) == [start.legal for start in starts]
        moved = list(executor.map(methodcaller("play", ["(mark 2 2)", "noop"]), starts[:1]))
    assert moved == [starts[0].play(["(mark 2 2)", "noop"])]
