"""The budget of loading: parts of it, what its error says, and that every loop of loading looks at it."""

from __future__ import annotations

from typing import Any

import pytest

from counted_time import counted_time
from explosions import BEGIN, EXPLOSIONS, explosion
from gamelore import GameloreError, GroundingError, load
from gamelore.gdl import limits
from gamelore.gdl.limits import GIB, Limits, check, resident_memory, within, working_on

SECONDS = 0.2  # of the clock that counts calls


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that tests set."""
    made = Clock()
    monkeypatch.setattr(limits.time, "thread_time", made)
    monkeypatch.setattr(limits.time, "monotonic", made)
    return made


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_a_budget_nothing_is_checked(clock: Clock) -> None:
    clock.now += 1e9
    check()


def test_the_error_names_the_limit_and_the_longest_step(clock: Clock) -> None:
    with within(Limits(seconds=10)):
        clock.now += 1
        working_on("the rule at line 3")
        clock.now += 5
        working_on("the rule at line 7")
        clock.now += 2
        working_on("the rule at line 3")
        check()
        clock.now += 3
        with pytest.raises(
            GroundingError, match="within 10 s, but it did not; the rule at line 3 took the most time, 8 s"
        ):
            check()
    check()


def test_a_part_ends_before_the_whole_and_names_the_limit_of_the_whole(clock: Clock) -> None:
    whole = Limits(seconds=10)
    with within(whole):
        with within(whole.share(0.5)):
            clock.now += 6
            with pytest.raises(GroundingError, match="within 10 s"):
                check()
        check()
        with within(Limits(seconds=100)) as budget:
            clock.now += 5
            with pytest.raises(GroundingError, match="within 10 s"):
                check()
            assert budget.exceeded == "10 s"


def test_memory_is_counted_from_the_beginning_of_the_budget(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    used = 7 * GIB
    monkeypatch.setattr(limits, "resident_memory", lambda: used)
    with within(Limits(memory=2 * GIB)):
        used = 8 * GIB
        clock.now += 1
        check()
        used = 9 * GIB + 1
        clock.now += 1
        with pytest.raises(GroundingError, match="within 2 GiB of memory"):
            check()


def test_the_memory_of_the_process_is_measured() -> None:
    before = resident_memory()
    filled = bytearray(b"x") * (1 << 27)
    assert resident_memory() - before > len(filled) / 2


def test_limits_of_states_and_parts() -> None:
    limits = Limits(seconds=2, literals=30, memory=400)
    assert limits.times(3) == Limits(2, 90, 400)
    assert limits.share(0.5) == Limits(1, 30, 200)


@pytest.mark.parametrize("name", EXPLOSIONS)
@pytest.mark.parametrize("engine", ["auto", "reasoner"])
def test_every_loop_looks_at_the_budget(name: str, engine: Any) -> None:
    """Without checks, the loops of these rulesheets call up to a thousand times as many functions, or never end."""
    text = explosion(name)
    with counted_time() as now:
        try:
            load(text, engine, Limits(seconds=SECONDS))
        except GameloreError as error:
            end, message = now(), str(error)
        else:
            end, message = now(), ""
    assert end < 1.5 * SECONDS
    assert message == "" or "Remedy: " in message or "remedy: " in message


def test_loading_has_one_budget_for_all_attempts() -> None:
    """The rules below are too large as a whole, within their bounds, and for one state."""
    bounds = "(<= (base (f ?a ?b)) (n ?a) (n ?b)) (input x (go a))"
    text = explosion("closure") + bounds
    with counted_time() as now, pytest.raises(GroundingError, match=f"within {SECONDS:g} s"):
        load(text, limits=Limits(seconds=SECONDS))
    assert now() < 1.5 * SECONDS


def test_the_error_names_the_rule_that_costs_most() -> None:
    text = BEGIN + EXPLOSIONS["clique"][0](24)
    line = BEGIN.count("\n") + 1
    with pytest.raises(GroundingError, match=f"rewriting the rule at line {line} took the most time"):
        load(text, limits=Limits(seconds=1))


def test_a_long_join_in_clingo_is_stopped() -> None:
    """It has no ground rule, so only the conditions that clingo evaluates can stop it."""
    with pytest.raises(GroundingError, match="the longest join is that of the rule at line 3, with"):
        load(BEGIN + EXPLOSIONS["clique"][0](7), "native", Limits(seconds=1))


def test_a_long_join_of_facts_in_clingo_is_stopped() -> None:
    with pytest.raises(GroundingError, match="the longest join is that of the rule at line 3, with"):
        load(explosion("clique in play"), "native", Limits(seconds=1))


@pytest.mark.parametrize(
    ("name", "engine", "relation", "line"),
    [("lists", "auto", "walk", 5), ("orders", "reasoner", "order", 4), ("joined lists", "auto", "list", 3)],
)
def test_what_computes_with_lists_is_refused_with_the_relation_and_the_reason(
    name: str, engine: Any, relation: str, line: int
) -> None:
    reason = rf"the largest relation is `{relation}`, with .*; line {line}: this recursion may never end: \({relation} "
    with pytest.raises(GroundingError, match=reason):
        load(explosion(name), engine, Limits(literals=20_000))


def test_the_reasoner_refuses_what_it_cannot_play_for_one_ply() -> None:
    """The first state is known at once. Only its successor needs the lists."""
    rules = explosion("orders")
    load(rules.replace("(next (best", "(unused (best"), "reasoner", Limits(literals=20_000))
    with pytest.raises(GroundingError, match="to be evaluated in a state within 20000 literals, but they were not"):
        load(rules, "reasoner", Limits(literals=20_000))
