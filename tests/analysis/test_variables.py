"""Variables, and how close they are, by hand: what outputs need together, however gates share and factor it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from evaluators import native_game
from gamelore.analysis.locality import Vicinity
from gamelore.analysis.variables import Variables
from gamelore.game.game import Game
from gamelore.gdl import syntax
from gamelore.rulesheets import load

LAMPS = """
(role r) (<= (base (lit ?x)) (lamp ?x)) (<= (input r (press ?x)) (lamp ?x)) (<= (legal r (press ?x)) (lamp ?x))
(lamp 0) (lamp 1) (lamp 2) (lamp 3) (lamp 4) (lamp 5) (goal r 50)
(<= (next (lit ?x)) (does r (press ?x))) (<= (next (lit ?x)) (true (lit ?x)))
"""
"""A pressed lamp is lit for good."""


def lamps(text: str) -> tuple[Game, Variables, list[int]]:
    """Return a game with six lamps, its variables, and the variable of each lamp."""
    rules = native_game(syntax.parse(LAMPS + text))
    variables = Variables.of(rules)
    by_fact = {rules.fact_text(bit): number for bit, number in enumerate(variables.numbers.tolist())}
    return rules, variables, [by_fact[f"(lit {lamp})"] for lamp in range(6)]


def close(text: str) -> dict[tuple[int, int], float]:
    """Return the closeness of each two lamps, where it is above 0."""
    _, variables, numbers = lamps(text)
    assert np.array_equal(variables.closeness, variables.closeness.T)
    assert not variables.closeness.diagonal().any()
    pairs = {pair: float(variables.closeness[numbers[pair[0]], numbers[pair[1]]]) for pair in combinations(range(6), 2)}
    return {pair: closeness for pair, closeness in pairs.items() if closeness}


def rule(*literals: str) -> str:
    return f"(<= terminal {' '.join(literals)})"


def lit(*numbers: int) -> list[str]:
    return [f"(true (lit {number}))" for number in numbers]


def test_variables_of_small_sets_are_closer():
    assert close(rule(*lit(0, 1, 2)) + rule(*lit(0, 3))) == {(0, 1): 0.5, (0, 2): 0.5, (1, 2): 0.5, (0, 3): 1.0}


def test_sets_add_up():
    assert close(rule(*lit(0, 1, 2)) + rule(*lit(1, 2, 3)))[1, 2] == 1.0


def test_a_part_that_gates_share_is_no_set_of_its_own():
    """The circuit has a gate for lamps 1 and 2, which all three lines share."""
    expected = {(1, 2): 1.5} | {(near, other): 0.5 for near in (1, 2) for other in (3, 4, 5)}
    assert close("".join(rule(*lit(1, 2, other)) for other in (3, 4, 5))) == expected


def test_the_negation_of_a_line_makes_nothing_close():
    line = "(<= line (true (lit 0)) (true (lit 1)) (true (lit 2)))"
    assert close(line + rule("(not line)")) == {}
    assert set(close(line + rule("(not line)", *lit(3, 4)))) == {(3, 4)}


def test_a_negated_condition_counts():
    assert close(rule("(not (true (lit 0)))", *lit(1))) == {(0, 1): 1.0}


def test_alternatives_are_told_apart():
    either = "(<= some (true (lit 0))) (<= some (true (lit 1)))"
    assert close(either + rule("some", *lit(2))) == {(0, 2): 1.0, (1, 2): 1.0}


def test_of_many_alternatives_each_counts_for_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gamelore.analysis.variables._MOST_WAYS", 2)
    lines = "".join(f"(<= some {' '.join(lit(*own))})" for own in ((0, 1), (1, 2), (2, 3)))
    assert close(lines + rule("some", *lit(5))) == {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0}


def test_clocks_and_what_never_changes_are_close_to_nothing():
    steps = "".join(f"(<= (next (step {(step + 1) % 3})) (true (step {step})))" for step in range(3))
    text = f"(init (step 0)) {steps} (init idle) (<= (next idle) (true idle))" + rule(*lit(0, 1), "(true (step 2))")
    rules, variables, numbers = lamps(text + rule(*lit(2, 3), "(true idle)"))
    assert close(text + rule(*lit(2, 3), "(true idle)")) == {(0, 1): 1.0, (2, 3): 1.0}
    alone = [own for own in range(len(variables.settled)) if own not in numbers]
    assert not variables.closeness[alone].any()
    names = {rules.fact_text(int(np.flatnonzero(variables.numbers == own)[0])).split()[0] for own in alone}
    assert names == {"(step", "idle"}
    assert variables.settled[alone].all(), "there is always one step"
    assert not variables.settled[numbers].any(), "a lamp is lit or not"


@pytest.mark.parametrize("name", ["connect3", "breakthrough", "tictactoe"])
def test_what_the_rules_need_together_is_close(name: str):
    """Neighbours by the rules as written are close by the circuit, and closer than others."""
    vicinity, variables = Vicinity.of(load(name)), Variables.of(load(name))
    assert np.array_equal(vicinity.variables, variables.numbers)
    near = vicinity.neighbours & ~np.eye(len(vicinity.neighbours), dtype=np.bool_)
    assert (variables.closeness[near] > 0).all()
    assert variables.closeness[near].mean() > 4 * variables.closeness[~near].mean()


def test_a_game_without_facts_has_no_variables():
    variables = Variables.of(native_game(syntax.parse("(role r) (legal r a) terminal (goal r 50)")))
    assert variables.closeness.shape == (0, 0)
