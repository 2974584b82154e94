"""Whose turn it is, as it is read off random matches: the same on both engines, and cheap on the slow one."""

from __future__ import annotations

from typing import Any

import pytest

from gamelore import load, rulesheets
from gamelore.game.game import ON_THE_REASONER, TurnOrder

# Both choose, but in turns; nobody says whose turn it is. `sleep` is what the other one does.
BY_CHOICE = """(role white) (role black) (init (step 0)) (succ 0 1) (succ 1 2)
(<= (legal white (go ?x)) (true (step 0)) (side ?x)) (<= (legal black sleep) (true (step 0)))
(<= (legal black (go ?x)) (true (step 1)) (side ?x)) (<= (legal white sleep) (true (step 1)))
(side left) (side right) (<= (next (step ?m)) (true (step ?n)) (succ ?n ?m))
(<= terminal (true (step 2))) (goal white 0) (goal black 0)
"""


@pytest.mark.parametrize("source", [*rulesheets.names(), BY_CHOICE])
def test_both_engines_read_off_the_same(source: str) -> None:
    native, reasoner = (load(source, engine=engine) for engine in ("native", "reasoner"))
    assert native.acting(native.initial[None]).tolist() == reasoner.acting(reasoner.initial[None]).tolist()
    one, other = (TurnOrder.observe(game._engine).controls for game in (native, reasoner))
    assert (one is None) == (other is None)


def test_without_a_fact_that_says_it_whoever_waits_is_known_by_the_move() -> None:
    turns = TurnOrder.observe(load(BY_CHOICE)._engine)
    assert turns.controls is None
    assert len(turns.idle) == 2


def test_the_reasoner_is_asked_about_few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = load("connectfour", engine="reasoner")._engine
    legal, asked = engine.legal, []

    def counting(states: Any) -> Any:
        asked.append(len(states))
        return legal(states)

    monkeypatch.setattr(engine, "legal", counting)
    TurnOrder.observe(engine)
    matches, plies = ON_THE_REASONER
    assert len(asked) <= plies
    assert max(asked) <= matches
