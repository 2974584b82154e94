"""Groundings in a process that can be ended: each way in which it comes to an end."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from gamelore.gdl.limits import GIB, Limits, spend, within
from gamelore.gdl.syntax import parse
from gamelore.ground import clingo, rehearsal
from gamelore.ground.clingo import Grounding, control, ground_within
from gamelore.ground.rehearsal import rehearse

EDGES = " ".join(f"e({i},{j})." for i in range(60) for j in range(60) if i % 6 != j % 6)
CLIQUE = ",".join(f"e(A{i},A{j})" for j in range(7) for i in range(j))
HELD = f"{EDGES} won :- {CLIQUE}."  # no row, so no ground rule, for hours
NUMBERS = "n(0..999)."
ENDLESS = f"{NUMBERS} p(X,Y,Z) :- n(X), n(Y), n(Z)."
BASE = ("base", ())
(RULE,) = parse("(<= won (e ?a ?b))").rules


def rehearsed(program: str, seconds: float = 0.3, memory: int = GIB, literals: int = 10**9) -> tuple[bool, float]:
    return rehearse([("base", (), program)], [BASE], seconds, memory, literals)


def test_what_ends_can_be_ground() -> None:
    is_held, seconds = rehearsed(NUMBERS, seconds=5)
    assert not is_held
    assert 0 < seconds < 5


def test_a_join_without_a_ground_rule_uses_up_the_time() -> None:
    assert rehearsed(HELD) == (True, 0.3)


def test_what_gives_ground_rules_can_be_stopped_later() -> None:
    assert rehearsed(ENDLESS)[0] is False
    assert rehearsed(ENDLESS, seconds=60, literals=1000)[0] is False


def test_what_uses_up_the_memory_can_be_stopped_later() -> None:
    is_held, seconds = rehearsed(ENDLESS, seconds=60, memory=100 << 20)
    assert not is_held
    assert 0 <= seconds < 30


def test_parts_are_ground_with_their_values() -> None:
    texts = [("base", (), "n(1)."), ("more", ["k"], f"{EDGES} won :- n(k), {CLIQUE}.")]
    for value, expected in ((1, True), (2, False)):
        assert rehearse(texts, [BASE, ("more", [value])], 0.3, GIB, 10**9)[0] is expected


def test_a_mistake_in_the_program_is_left_to_the_grounding() -> None:
    assert rehearsed("won :- .", seconds=5)[0] is False


def test_without_another_process_there_is_no_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal.sys, "executable", "/no/such/python")
    assert rehearsed(HELD) == (False, 0.0)


def test_without_a_timer_of_the_system_the_wall_clock_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "HAS_TIMER", False)
    monkeypatch.setattr(rehearsal, "MOST_SECONDS", 0.3)
    assert rehearsed(HELD, seconds=60) == (True, 0.3)


def test_a_rehearsal_has_half_of_what_is_left_and_its_time_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def pretended(texts: Any, parts: Any, seconds: float, memory: int, literals: int) -> tuple[bool, float]:
        given.append(seconds)
        return False, seconds

    monkeypatch.setattr(clingo, "rehearse", pretended)
    with within(Limits(seconds=1000)):
        grounding = Grounding(Limits(seconds=1000), {RULE: 1e12})
        made = control(NUMBERS, grounding)
        assert all(ground_within(made, grounding) for _ in range(3))
    assert given == pytest.approx([500, 250, 125], abs=10)


def test_programs_without_long_joins_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    grounding = Grounding(Limits())
    assert ground_within(control(NUMBERS, grounding), grounding)


def test_time_of_other_processes_belongs_to_the_thread_that_waited() -> None:
    with within(Limits(seconds=100)) as budget:
        spend(60)
        assert 30 < budget.left().seconds <= 40
        spend(-60)
