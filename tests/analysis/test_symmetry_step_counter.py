"""Step counters: which sheets have one, and that nothing but the end depends on it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from clocks import counted_time
from evaluators import native_game
from gamelore import GroundingError, rulesheets
from gamelore.analysis import symmetry
from gamelore.analysis.symmetry import StepCounter, step_counter
from gamelore.game.game import Game
from gamelore.gdl import syntax
from gamelore.gdl.limits import Limits, within
from symmetric import drawn, legal_sets, stuck


def of_text(text: str) -> tuple[Game, StepCounter | None]:
    game = native_game(syntax.parse(text))
    return game, step_counter(game)


def in_words(game: Game, counter: StepCounter) -> tuple[list[str], set[str], set[str], int, bool]:
    """Its facts in order, the first and the last, the plies between these, and whether the match ends then."""
    facts = list(map(game.fact_text, counter.facts))
    assert game.facts(counter.mask) == set(facts)
    return facts, set(game.facts(counter.first)), set(game.facts(counter.last)), counter.length, counter.ends


def assert_only_the_end_depends(game: Game, counter: StepCounter) -> None:
    """Along random matches: with the counter set to its first value, all but the end is the same."""
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], 8, axis=0)
    for _ in range(counter.length):
        states = states[~game.evaluate(states)[0]]
        states = states[~stuck(game, states)]
        if not len(states):
            return
        without = states & ~counter.mask | counter.first
        assert not (states & counter.mask == counter.last).all(axis=1).any() or not counter.ends
        assert legal_sets(game, without) == legal_sets(game, states)
        for told, expected in zip(game.evaluate(without), game.evaluate(states), strict=True):
            np.testing.assert_array_equal(told, expected)
        joint = drawn(game, states, rng)
        following = game.next(states, joint)
        np.testing.assert_array_equal(game.next(without, joint) & ~counter.mask, following & ~counter.mask)
        states = following
    assert not counter.ends or game.evaluate(states)[0].all()


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "othello4", "capturego3", "goofspiel"])
def test_most_shipped_games_have_none(name):
    assert step_counter(rulesheets.load(name)) is None


def test_pegs_that_are_left_count_for_the_goal():
    assert step_counter(rulesheets.load("pegsolitaire")) is None


def test_five_mens_morris_has_one():
    game = rulesheets.load("fivemensmorris")
    counter = step_counter(game)
    steps = [f"(step {n})" for n in range(101)]
    assert in_words(game, counter) == (steps, {"(step 0)"}, {"(step 100)"}, 100, True)
    assert_only_the_end_depends(game, counter)


def test_the_reasoner_tells_none():
    assert step_counter(rulesheets.load("fivemensmorris", "reasoner")) is None


# ---- small sheets: a token that goes round three places, and a cap --------------------------------------------------

ROUND = """
(role r) (init (at 0)) (next_to 0 1) (next_to 1 2) (next_to 2 0)
(<= (legal r (go ?y)) (true (at ?x)) (next_to ?x ?y)) (<= (legal r stay) (true (at ?x)))
(<= (next (at ?y)) (does r (go ?y))) (<= (next (at ?x)) (true (at ?x)) (does r stay))
(<= (goal r 100) (true (at 2))) (<= (goal r 0) (not (true (at 2))))
(init (step 1)) (succ 1 2) (succ 2 3) (succ 3 4) (succ 4 5)
"""
COUNTS = "(<= (next (step ?m)) (true (step ?n)) (succ ?n ?m))"
CAP = COUNTS + "(<= terminal (true (step 5)))"
STEPS = [f"(step {n})" for n in range(1, 6)]


@pytest.mark.parametrize(
    "more",
    [
        CAP,
        CAP + "(<= terminal (true (at 2)))",
        # Where the match has not ended, this says nothing.
        CAP + "(<= (legal r (jump 2)) (not terminal)) (<= (next (at ?y)) (does r (jump ?y)) (not terminal))",
        CAP + "(<= (goal r 50) (true (step 5)) (not (true (at 2))))",
        COUNTS + "(<= (next (parity odd)) (not (true (parity odd)))) (<= terminal (true (step 5)))",
    ],
)
def test_it_is_found(more):
    game, counter = of_text(ROUND + more)
    assert in_words(game, counter) == (STEPS, {"(step 1)"}, {"(step 5)"}, 4, True)
    assert_only_the_end_depends(game, counter)


@pytest.mark.parametrize(
    "more",
    [
        CAP + "(<= (legal r (jump 2)) (true (step 3)))",
        CAP + "(<= (next late) (true (step 3))) (<= (goal r 30) (true late))",
        CAP + "(<= (next (at 2)) (true (step 3)))",
        CAP + "(<= (goal r 30) (true (step 3)))",
        CAP + "(<= terminal (true (step 3)) (true (at 2)))",
        "(<= (next (step ?m)) (true (step ?n)) (succ ?n ?m) (does r stay)) (<= terminal (true (step 5)))",
        "(<= (next (step ?m)) (true (step ?n)) (succ ?n ?m) (true (at 1))) (<= terminal (true (step 5)))",
        "(<= (next (step 2)) (true (step 1))) (<= terminal (true (step 2)) (true (at 2)))",  # once is not to count
    ],
)
def test_what_more_depends_on_is_none(more):
    assert of_text(ROUND + more)[1] is None


def test_what_only_the_last_state_says_counts_along():
    """`late` holds when the match is over, and not before: it is a part of the counter."""
    game, counter = of_text(ROUND + CAP + "(<= (next late) (true (step 4))) (<= (goal r 30) (true late))")
    assert in_words(game, counter) == ([*STEPS, "late"], {"(step 1)"}, {"(step 5)", "late"}, 4, True)
    assert_only_the_end_depends(game, counter)


def test_one_that_ends_nothing():
    game, counter = of_text(ROUND + COUNTS + "(<= (next (step 5)) (true (step 5))) (<= terminal (true (at 2)))")
    assert counter is not None
    assert in_words(game, counter) == (STEPS, {"(step 1)"}, {"(step 5)"}, 4, False)
    assert_only_the_end_depends(game, counter)


def test_two_digits():
    """Ones and tens to the base of three, which go on from 22 to 00: the match ends before that."""
    game, counter = of_text(
        "(role r) (legal r a) (legal r b) (<= (next seen) (does r a)) (<= (next seen) (true seen))"
        "(init (ones 0)) (init (tens 0)) (turn 0 1) (turn 1 2) (turn 2 0)"
        "(<= (next (ones ?m)) (true (ones ?n)) (turn ?n ?m))"
        "(<= (next (tens ?n)) (true (tens ?n)) (not (true (ones 2))))"
        "(<= (next (tens ?m)) (true (tens ?n)) (true (ones 2)) (turn ?n ?m))"
        "(<= terminal (true (tens 2)) (true (ones 1))) (<= (goal r 100) (true seen)) (<= (goal r 0) (not (true seen)))"
    )
    assert counter is not None
    facts, first, last, length, ends = in_words(game, counter)
    assert facts == ["(ones 0)", "(tens 0)", "(ones 1)", "(ones 2)", "(tens 1)", "(tens 2)"]
    assert (first, last, length, ends) == ({"(ones 0)", "(tens 0)"}, {"(ones 1)", "(tens 2)"}, 7, True)
    assert_only_the_end_depends(game, counter)


def test_two_that_go_round_are_one():
    """A symmetry exchanges them, and would not know which of them is left out."""
    game, counter = of_text(
        "(role r) (legal r a) (legal r b) (<= (next seen) (does r a)) (<= (next seen) (true seen))"
        "(hand small) (hand large) (turn 0 1) (turn 1 2) (turn 2 0) (<= (init (at ?h 0)) (hand ?h))"
        "(<= (next (at ?h ?m)) (true (at ?h ?n)) (turn ?n ?m)) (<= terminal (true (at ?h 2)))"
        "(<= (goal r 100) (true seen)) (<= (goal r 0) (not (true seen)))"
    )
    assert counter is not None
    _, *described = in_words(game, counter)
    assert described == [{"(at small 0)", "(at large 0)"}, {"(at small 2)", "(at large 2)"}, 2, True]
    assert_only_the_end_depends(game, counter)


@pytest.mark.parametrize(
    "beside",
    [
        "(init (age 1)) (<= (next (age ?m)) (true (age ?n)) (succ ?n ?m)) (<= (next (age 5)) (true (age 5)))"
        "(<= (goal r 30) (true (age 3)) (true (at 2)))",
        "(init (day 1)) (<= (next (day ?m)) (true (day ?n)) (succ ?n ?m)) (<= (next (day 1)) (true (day 5)))"
        "(<= (goal r 30) (true (day 3)) (true (at 2)))",
    ],
)
def test_beside_one_that_goals_depend_on(beside):
    game, counter = of_text(ROUND + CAP + beside)
    assert counter is not None
    assert in_words(game, counter) == (STEPS, {"(step 1)"}, {"(step 5)"}, 4, True)
    assert_only_the_end_depends(game, counter)


# ---- public sheets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "first", "last", "length"),
    [
        ("lightsOn", ["(step 0)"], ["(step 20)"], 20),
        ("buttons", ["(step 1)"], ["(step 7)"], 6),
        ("hanoi", ["(step s0)"], ["(step s31)"], 31),
        ("colonelBlotto", ["(rounds 0)"], ["(rounds 5)"], 5),  # beside a fact that never changes
        ("factoringMutuallyAssuredDestruction", ["(counter 1)"], ["(counter 21)"], 20),
        ("chinook", ["(evenstep 1)", "(oddstep 1)"], ["(evenstep 41)", "(oddstep 41)"], 40),  # two at once
    ],
)
def test_public_sheets(shared, name, first, last, length):
    game = rulesheets.load(shared / "games" / f"{name}.kif")
    counter = step_counter(game)
    assert counter is not None
    _, *described = in_words(game, counter)
    assert described == [set(first), set(last), length, True]
    assert_only_the_end_depends(game, counter)


@pytest.mark.parametrize("name", ["eightPuzzle", "knightmove", "ticTacToe"])
def test_public_sheets_without(shared, name):
    assert step_counter(rulesheets.load(shared / "games" / f"{name}.kif")) is None


def beside_facts_that_stay(number: int, plies: int) -> Game:
    """A counter of so many plies, beside so many facts that never change."""
    walls = " ".join(f"(init (wall {n}))" for n in range(number))
    order = " ".join(f"(succ {n} {n + 1})" for n in range(5, plies))
    stay = "(<= (next (wall ?n)) (true (wall ?n)))"
    return native_game(syntax.parse(f"{ROUND} {COUNTS} {order} {walls} {stay} (<= terminal (true (step {plies})))"))


def test_facts_that_stay_take_no_room_in_the_course_of_a_counter() -> None:
    game = beside_facts_that_stay(1000, 150)
    step_counter(beside_facts_that_stay(1, 5))  # imports and caches
    tracemalloc.start()
    try:
        counter = step_counter(game)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counter is not None
    assert (len(counter.facts), counter.length) == (150, 149)
    assert most < 2_000_000


def test_a_search_for_counters_looks_at_the_budget() -> None:
    game = beside_facts_that_stay(5000, 10)
    with counted_time(), within(Limits(seconds=0.01)), pytest.raises(GroundingError, match=r"within 0\.01 s"):
        step_counter(game)


def test_a_counter_that_takes_too_long_to_follow_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    game = rulesheets.load("fivemensmorris:cap=20")
    assert getattr(step_counter(game), "length", 0) == 20
    monkeypatch.setattr(symmetry, "MOST_VALUES", 10)
    assert step_counter(game) is None
