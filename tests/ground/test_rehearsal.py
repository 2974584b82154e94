"""Groundings in a process that can be ended: each way in which it comes to an end."""

from __future__ import annotations

import subprocess
from typing import Any

import clingo as clingo_package
import pytest

from gamelore.gdl.limits import GIB, Limits, spend, within
from gamelore.gdl.syntax import parse
from gamelore.ground import clingo
from gamelore.ground.clingo import BASE, Grounding, control, ground_within

EDGES = " ".join(f"e({i},{j})." for i in range(60) for j in range(60) if i % 6 != j % 6)
CLIQUE = ",".join(f"e(A{i},A{j})" for j in range(7) for i in range(j))
HELD = f"{EDGES} won :- {CLIQUE}."  # no row, so no ground rule, for hours
NUMBERS = "n(0..999)."
ENDLESS = f"{NUMBERS} p(X,Y,Z) :- n(X), n(Y), n(Z)."
(RULE,) = parse("(<= won (e ?a ?b))").rules


def rehearsed(program: str, seconds: float = 0.3, memory: int = GIB, literals: int = 10**9) -> str:
    return clingo._rehearsed([("base", (), program)], BASE, Limits(seconds, memory=memory), literals)[0]


def test_what_ends_can_be_ground() -> None:
    used_up, seconds = clingo._rehearsed([("base", (), NUMBERS)], BASE, Limits(5), 10**9)
    assert used_up == ""
    assert 0 < seconds < 5


def test_a_join_without_a_ground_rule_uses_up_the_time() -> None:
    used_up, seconds = clingo._rehearsed([("base", (), HELD)], BASE, Limits(0.3), 10**9)
    assert (used_up, seconds) == ("time", 0.3)


def test_what_gives_ground_rules_can_be_stopped_later() -> None:
    assert rehearsed(ENDLESS) == ""
    assert rehearsed(ENDLESS, seconds=60, literals=1000) == ""


def test_the_memory_is_limited() -> None:
    assert rehearsed(ENDLESS, seconds=60, memory=100 << 20) == "memory"


def test_parts_are_ground_with_their_values() -> None:
    texts = [("base", (), "n(1)."), ("more", ["k"], f"{EDGES} won :- n(k), {CLIQUE}.")]
    for value, expected in ((1, "time"), (2, "")):
        parts = [*BASE, ("more", [clingo_package.Number(value)])]
        assert clingo._rehearsed(texts, parts, Limits(0.3), 10**9)[0] == expected


def test_a_rehearsal_has_half_of_what_is_left_and_its_time_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []

    def pretended(texts: Any, parts: Any, limits: Limits, literals: int) -> tuple[str, float]:
        seconds.append(limits.seconds)
        return "", limits.seconds

    monkeypatch.setattr(clingo, "_rehearsed", pretended)
    with within(Limits(seconds=1000)):
        grounding = Grounding(Limits(seconds=1000), {RULE: 1e12})
        made = control(NUMBERS, grounding)
        assert all(ground_within(made, grounding) for _ in range(3))
    assert seconds == pytest.approx([500, 250, 125], abs=10)


def test_programs_without_long_joins_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    grounding = Grounding(Limits())
    assert ground_within(control(NUMBERS, grounding), grounding)


def test_time_of_other_processes_belongs_to_the_thread_that_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    with within(Limits(seconds=100)) as budget:
        spend(60)
        assert 30 < budget.left().seconds <= 40
        spend(-60)
