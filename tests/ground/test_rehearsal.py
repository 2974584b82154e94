"""Groundings in a process that can be ended: each way in which it comes to an end."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from gamelore.gdl.limits import GIB, Limits, spend, within
from gamelore.gdl.syntax import parse
from gamelore.ground import clingo, rehearsal
from gamelore.ground.clingo import Grounding, control, ground_within
from gamelore.ground.rehearsal import Rehearsed, rehearse

EDGES = " ".join(f"e({i},{j})." for i in range(60) for j in range(60) if i % 6 != j % 6)
CLIQUE = ",".join(f"e(A{i},A{j})" for j in range(7) for i in range(j))
HELD = f"{EDGES} won :- {CLIQUE}."  # no row, so no ground rule, for hours
NUMBERS = "n(0..999)."
ENDLESS = f"{NUMBERS} p(X,Y,Z) :- n(X), n(Y), n(Z)."
BASE = ("base", ())
RULE, OTHER = parse("(<= won (e ?a ?b)) (<= lost (e ?a ?b))").rules


def rehearsed(program: str, seconds: float = 0.3, memory: int = GIB, literals: int = 10**9) -> Rehearsed:
    return rehearse([("base", (), program)], [BASE], seconds, memory, literals)


def test_what_ends_tells_its_number_of_ground_rules() -> None:
    ended = rehearsed("n(0..999). p(X) :- n(X).", seconds=5)
    assert (ended.end, ended.num_rules) == ("ended", 2000)
    assert 0 < ended.seconds < 5


def test_a_join_without_a_ground_rule_uses_up_the_time() -> None:
    assert rehearsed(HELD) == ("held", 0, 0.3)


def test_without_any_time_left_the_process_still_ends() -> None:
    assert rehearsed(HELD, seconds=0).end in ("held", "time")


def test_ground_rules_end_a_rehearsal_at_each_limit() -> None:
    assert rehearsed(ENDLESS).end == "time"
    assert rehearsed(ENDLESS, seconds=60, memory=100 << 20).end == "memory"
    last = rehearsed(ENDLESS, seconds=60, literals=1500)
    assert (last.end, last.num_rules) == ("literals", 1501)


def test_parts_are_ground_with_their_values() -> None:
    texts = [("base", (), "n(1)."), ("more", ["k"], f"{EDGES} won :- n(k), {CLIQUE}.")]
    assert rehearse(texts, [("more", [1])], 0.3, GIB, 10**9).end == "held"
    ended = rehearse(texts, [("more", [2])], 0.3, GIB, 10**9)
    assert (ended.end, ended.num_rules) == ("ended", 3000)


def test_a_mistake_in_the_program_is_left_to_the_grounding() -> None:
    assert rehearsed("won :- .", seconds=5).end == "ended"


@pytest.mark.parametrize("python", ["", "/no/such/python"])
def test_without_another_process_there_is_no_rehearsal(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal.sys, "executable", python)
    assert rehearsed(HELD) == ("ended", 0, 0.0)


def test_without_a_timer_of_the_system_the_wall_clock_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "HAS_TIMER", False)
    monkeypatch.setattr(rehearsal, "MOST_SECONDS", 0.3)
    assert rehearsed(HELD, seconds=60) == ("held", 0, 0.3)


def test_a_rehearsal_has_a_part_of_what_is_left_and_its_time_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def pretended(texts: Any, parts: Any, seconds: float, memory: int, literals: int) -> Rehearsed:
        given.append(seconds)
        return Rehearsed("ended", 0, seconds)

    monkeypatch.setattr(clingo, "rehearse", pretended)
    try:
        with within(Limits(seconds=1000)):
            grounding = Grounding(Limits(seconds=1000), {RULE: 600.0, OTHER: 600.0})
            made = control(NUMBERS, grounding)
            assert all(ground_within(made, grounding) for _ in range(3))
    finally:
        spend(-sum(given))
    assert given == pytest.approx([300, 210, 147], abs=10)


def test_many_joins_are_as_long_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clingo, "rehearse", lambda *_: Rehearsed("held", 0, 0.0))
    for joins, is_ground in (({RULE: 20.0}, True), ({RULE: 20.0, OTHER: 20.0}, False)):
        grounding = Grounding(Limits(seconds=100), joins)
        assert ground_within(control(NUMBERS, grounding), grounding) == is_ground


@pytest.mark.parametrize("end", ["time", "memory", "literals"])
def test_a_grounding_stops_where_its_rehearsal_did(end: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows the last ground rule may be a join that nothing stops."""
    monkeypatch.setattr(clingo, "rehearse", lambda *_: Rehearsed(end, 70, 0.0))
    grounding = Grounding(Limits(seconds=100), {RULE: 1000.0})
    made = control(f"{NUMBERS} {HELD}", grounding)
    assert not ground_within(made, grounding)
    assert grounding.exceeded == {"time": "100 s", "memory": "4 GiB of memory", "literals": "16000000 literals"}[end]
    assert grounding.num_literals == 70


def test_programs_without_long_joins_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    grounding = Grounding(Limits())
    assert ground_within(control(NUMBERS, grounding), grounding)


def test_a_process_that_others_end_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clingo, "rehearse", None)
    with within(Limits(rehearses=False)):  # and what is loaded inside has no other limits
        for limits in (Limits(), Limits(rehearses=False).share(0.5)):
            grounding = Grounding(limits, {RULE: 1e6})
            assert ground_within(control(NUMBERS, grounding), grounding)


def test_time_of_other_processes_belongs_to_the_thread_that_waited() -> None:
    with within(Limits(seconds=100)) as budget:
        spend(60)
        try:
            assert 30 < budget.left().seconds <= 40
        finally:
            spend(-60)
