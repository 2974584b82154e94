"""The naive evaluator: the corner cases of GDL on small sheets, and agreement with the recorded traces."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from naive import Naive

SHARED = Path(__file__).resolve().parents[3] / "shared"
# Small games that between them have one to four roles, turns and simultaneous moves, recursion within a state
# (groups in Go, paths in Hex), `or`, `goal` by `not goal`, and names with capitals.
TRACED = """
    4pffa atariGo_7x7 blocksWorldParallel buttons chomp connectFourSimultaneous eightPuzzle futoshiki4 hanoi
    hex nim1 nineBoardTicTacToePie queens12ug roshambo2 smallest_4player ticTacToe tictactoe_3player tron_10x10
"""

FRAME = "(role robot) (init here) (legal robot wait) (next here) (goal robot 100)"


def derived(rules: str, relation: str = "terminal", state: frozenset[str] = frozenset({"here"})) -> Any:
    """What the rules, on top of a minimal game, say about a state."""
    game = Naive(f"{FRAME} {rules}")
    return game.terminal(state) if relation == "terminal" else game.goals(state)


def lowered(texts: list[str]) -> list[str]:
    return sorted(text.lower() for text in texts)


@pytest.mark.parametrize("name", TRACED.split())
def test_agrees_with_recorded_play(name: str) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is absent: the recorded traces are not part of the project")
    game = Naive((SHARED / "games" / f"{name}.kif").read_text())
    with gzip.open(SHARED / "traces" / f"{name}.jsonl.gz", "rt") as lines:
        matches = [json.loads(line) for line in lines]
    assert matches
    for match in matches:
        replay(game, match)


def replay(game: Naive, match: dict[str, Any]) -> None:
    state = game.initial
    assert game.roles == [role.lower() for role in match["roles"]]
    for step in match["steps"]:
        assert sorted(state) == lowered(step["state"])
        assert game.terminal(state) == step["terminal"]
        if step["terminal"]:
            assert list(game.goals(state).values()) == step["goals"]
        else:
            assert list(game.legal(state).values()) == [lowered(moves) for moves in step["legal"]]
        if "moves" in step:
            state = game.next(state, dict(zip(game.roles, map(str.lower, step["moves"]), strict=True)))


def test_a_game_of_one_step() -> None:
    game = Naive("""
        (role Left) (role right)
        (init (light off))
        (<= (legal ?who (press ?b)) (role ?who) (button ?b))
        (button A) (button B)
        (<= (next (light on)) (does left (press ?b)) (does right (press ?b)))
        (<= (next (light off)) (does left (press ?a)) (does right (press ?b)) (distinct ?a ?b))
        (<= terminal (true (light on)))
        (<= (goal ?who 100) (role ?who) (true (light on)))
        (base (light on)) (input left (press a))
    """)
    assert game.roles == ["left", "right"]
    assert game.initial == {"(light off)"}
    assert game.legal(game.initial) == {role: ["(press a)", "(press b)"] for role in game.roles}
    assert game.next(game.initial, {"left": "(press a)", "right": "(press b)"}) == {"(light off)"}
    end = game.next(game.initial, {"left": "(press a)", "right": "(press a)"})
    assert end == {"(light on)"}
    assert (game.terminal(game.initial), game.terminal(end)) == (False, True)
    assert game.goals(game.initial) == {"left": None, "right": None}
    assert game.goals(end) == {"left": 100, "right": 100}


def test_two_goal_values_at_once_are_none() -> None:
    assert derived("(<= (goal robot 50) (true here))", "goal") == {"robot": None}


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("(or (true there) (true here))", True),
        ("(or (true there) (and (true here) (not (true here))))", False),
        ("(or)", False),
        ("(and)", True),
        ("(not (or (true here) (true there)))", False),
        ("(not (and (true here) (true there)))", True),
        ("(not (not (true here)))", True),
        ("(pair ?a ?b) (distinct ?a ?b)", True),
        ("(pair ?a ?b) (distinct ?a ?b) (pair ?b ?a)", False),
        ("(not (distinct ?a ?b)) (pair ?a ?b)", True),
        ("(not (distinct ?a ?b)) (pair ?a ?b) (pair ?b 1)", False),
        ("(distinct ?a 3) (pair ?a 3)", False),
        ("(pair ?a (f ?a))", True),
        ("(pair (f ?a) ?a)", False),
        ("(never ?a)", False),
        ("(not (never 1))", True),
        ("(flag)", True),
        ("flag", True),
        ("(TRUE HERE)", True),
    ],
)
def test_conditions(body: str, holds: bool) -> None:
    facts = "(pair 1 2) (pair 3 3) (pair 4 (f 4)) flag"
    assert derived(f"{facts} (<= terminal {body})") is holds


@pytest.mark.parametrize(("goal", "holds"), [("4", True), ("5", False)])
def test_recursion_takes_the_least_fixpoint(goal: str, holds: bool) -> None:
    """1 -> 2 -> 3 -> 1 is a cycle with an exit to 4; 5 only reaches itself."""
    rules = """
        (edge 1 2) (edge 2 3) (edge 3 1) (edge 3 4) (edge 5 5)
        (<= (reached 1) (true here))
        (<= (reached ?b) (reached ?a) (edge ?a ?b))
    """
    assert derived(f"{rules} (<= terminal (reached {goal}))") is holds


def test_mutual_recursion_with_an_index_that_grows() -> None:
    rules = """
        (next_to 0 1) (next_to 1 2) (next_to 2 3) (next_to 3 4)
        (even 0) (<= (even ?b) (next_to ?a ?b) (odd ?a)) (<= (odd ?b) (next_to ?a ?b) (even ?a))
    """
    assert derived(f"{rules} (<= terminal (even 4) (odd 3) (not (even 3)) (not (odd 4)))")


def test_negation_in_a_cycle_of_predicates_has_a_perfect_model() -> None:
    """A position is won when some step leads to one that is not: 3 lost, 2 won, 1 lost, 0 won."""
    rules = "(step 0 1) (step 1 2) (step 2 3) (<= (won ?a) (step ?a ?b) (not (won ?b)))"
    assert derived(f"{rules} (<= terminal (won 0) (not (won 1)) (won 2) (not (won 3)))")


def test_negation_in_a_cycle_of_atoms_has_none() -> None:
    with pytest.raises(AssertionError, match="no perfect model"):
        derived("(<= p (not q)) (<= q (not p)) (<= terminal p)")


def test_an_unsafe_variable_is_refused() -> None:
    with pytest.raises(AssertionError, match="unsafe"):
        Naive(f"{FRAME} (<= terminal (not (true ?f)))")


def test_roles_may_be_compound() -> None:
    game = Naive(
        """(role (player 1)) (role (player 2)) (init (at 0)) (<= (legal ?r go) (role ?r)) (legal (player 2) stay)
        (<= (next (at ?n)) (does (player ?n) go)) (<= terminal (true (at 2))) (<= (goal (player ?n) 100) (true (at ?n)))
        """
    )
    assert game.roles == ["(player 1)", "(player 2)"]
    assert game.legal(game.initial) == {"(player 1)": ["go"], "(player 2)": ["go", "stay"]}
    state = game.next(game.initial, {"(player 1)": "go", "(player 2)": "stay"})
    assert state == {"(at 1)"}
    assert game.goals(state) == {"(player 1)": 100, "(player 2)": None}
    assert game.next(state, {"(player 1)": "go", "(player 2)": "go"}) == {"(at 1)", "(at 2)"}
