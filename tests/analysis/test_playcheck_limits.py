"""The limits of `check --play`: what it tells when they end, and that time, memory and text stay within them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clocks import clock_to_set, counted_time, short_rehearsals
from explosions import BEGIN, EXPLOSIONS, explosion
from gamelore import GroundingError
from gamelore.analysis import playcheck
from gamelore.analysis.explore import Effort, try_out
from gamelore.analysis.playcheck import MORE_REMARKS, MOST_REMARKS, CheckedSheet, PlayReport, check_sheet, play_check
from gamelore.errors import SHORT
from gamelore.game.engines import NativeEngine, ReasonerEngine
from gamelore.game.game import make
from gamelore.gdl import limits
from gamelore.gdl.limits import Limits
from gamelore.gdl.lint import MOST_FINDINGS, Finding
from gamelore.gdl.syntax import parse
from gamelore.ground import clingo
from parsing import num_calls

LONG = "x" * 10 * SHORT
SECONDS = 0.2  # of the clock that counts calls
ENDING = "(init (step 1)) (succ 1 2) (<= (next (step ?m)) (true (step ?n)) (succ ?n ?m)) (<= terminal (true (step 2)))"


def played(text: str, seconds: float | None = None, **effort: Any) -> PlayReport:
    return play_check(parse(text), "sheet", Effort(seconds, **{"matches": 4, **effort}))


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def roles(number: int, rules: str) -> str:
    """A game with many roles, and these rules for each."""
    return ENDING + "".join(f"(role r{i}) {rules.format(i)}\n" for i in range(number))


MOVES_AND_GOALS = "(legal r{0} go) (goal r{0} 1)"
NO_GOALS = "(legal r{0} go) (<= (goal r{0} 1) (true (step 1)))"
NO_MOVES = "(<= (legal r{0} go) (true (step 2))) (goal r{0} 1)"


@pytest.mark.parametrize("slow", [3.0, 30.0])
@pytest.mark.parametrize("question", ["evaluate", "legal", "next"])
def test_a_slow_step_of_the_native_engine_is_told(slow: float, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """This engine does not look at the budget, so the answer comes, but too late."""
    clock, answered = clock_to_set(monkeypatch), getattr(NativeEngine, question)

    def late(*arguments: Any) -> Any:
        clock.now += slow
        return answered(*arguments)

    sheet = parse(roles(2, MOVES_AND_GOALS))
    game = make(sheet, "sheet", "native")
    monkeypatch.setattr(NativeEngine, question, late)
    monkeypatch.setattr(playcheck, "make", lambda *_: game)
    (finding,) = play_check(sheet, "sheet", Effort(5.0, 4)).findings
    assert (finding.severity, finding.code) == ("warning", "too-large")
    assert finding.message == "expected a step of play to end within 2.5 s, half of the time of play, but it did not"
    assert finding.witness == ((("go", "go"),) if question == "next" else ())
    monkeypatch.setattr(NativeEngine, question, answered)
    assert play_check(sheet, "sheet", Effort(5.0, 4)).findings == []


def test_many_states_that_take_long_together_are_no_slow_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answered, num_states = clock_to_set(monkeypatch), ReasonerEngine.evaluate, [0]

    def late(engine: ReasonerEngine, states: Any) -> Any:
        clock.now += 0.3 * len(states)
        num_states.append(len(states))
        return answered(engine, states)

    sheet = parse(roles(4, "(legal r{0} go) (legal r{0} stay) (<= (next (went r{0})) (does r{0} go)) (goal r{0} 1)"))
    game = make(sheet, "sheet", "reasoner")
    monkeypatch.setattr(ReasonerEngine, "evaluate", late)
    monkeypatch.setattr(playcheck, "make", lambda *_: game)
    assert play_check(sheet, "sheet", Effort(8.0, 4)).findings == []
    assert 0.3 * max(num_states) > 8.0 / 2


def test_goals_that_are_not_computed_are_not_called_no_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    several = roles(2, MOVES_AND_GOALS + "(goal r{0} 2)")
    assert codes(played(several).findings) == ["several-goals"] * 2

    def refuse(*_: Any, **__: Any) -> Any:
        raise GroundingError("too large")

    monkeypatch.setattr(clingo, "state_sentences", refuse)
    for text in (several, roles(2, NO_GOALS)):
        report = played(text)
        assert codes(report.findings) == ["unclear-goal"] * 2
        assert report.findings[0].message.startswith("r0 has no goal or several goals at the end, not exactly one")
        assert report.findings[0].remedy.startswith("raise the limits to see which")
        assert report.remarks[-1] == "goal could not be computed in a state: too large"


def test_goals_after_the_time_for_questions_are_not_called_no_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answered = clock_to_set(monkeypatch), clingo.state_sentences

    def late(*arguments: Any, **options: Any) -> Any:
        clock.now += playcheck.FOR_QUESTIONS - 2
        return answered(*arguments, **options)

    monkeypatch.setattr(clingo, "state_sentences", late)
    report = played(roles(4, NO_GOALS))
    assert sorted(codes(report.findings)) == ["no-goal"] + ["unclear-goal"] * 3, "one question fits into the time"
    assert "goal could not be computed in some states within the limits" in report.remarks


def test_remarks_are_few_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refuse(*_: Any, **__: Any) -> Any:
        asked.append(0)
        raise GroundingError(f"{len(asked)} {LONG}")

    monkeypatch.setattr(clingo, "state_sentences", refuse)
    remarks = played(roles(2 * MOST_REMARKS, NO_GOALS)).remarks
    assert len(asked) > 2 * MOST_REMARKS
    assert len(remarks) == MOST_REMARKS + 1
    assert remarks[-1] == MORE_REMARKS
    assert max(map(len, remarks)) <= SHORT


def test_a_goal_with_very_many_values_is_told_with_a_few() -> None:
    values = " ".join(f"(goal r0 {i})" for i in range(90))
    (finding,) = played(roles(1, f"(legal r0 go) {values}")).findings
    goals = ("1", "2", "0", "3", "4", "5", "6", "7", "82 more at the end, not exactly one goal; this")
    assert finding.message.startswith(f"r0 has the goals {' and '.join(goals)} happens")


@pytest.mark.parametrize("rules", [NO_MOVES, NO_GOALS + "(<= (goal ?who 5) (true (step 2)) (lost ?who)) (lost nobody)"])
def test_the_findings_take_time_in_proportion_to_the_rules(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each role has a finding and a rule of its own."""
    monkeypatch.setattr(clingo, "state_sentences", lambda *_, **__: {"goal": [], "legal": []})

    def findings_of(number: int) -> tuple[int, list[Finding]]:
        sheet = parse(roles(number, rules))
        game = make(sheet, "sheet", "native")
        made = playcheck._Findings(game, try_out(game, Effort(None, 4)), playcheck._Remarks())
        findings: list[Finding] = []
        return num_calls(lambda _: findings.extend(made.all()), ""), findings

    (some, findings), (twice, more) = findings_of(150), findings_of(300)
    assert twice <= 2.2 * some
    assert len(findings) == len(more) == MOST_FINDINGS + 1


def test_rules_are_not_looked_up_after_the_time_for_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, compared, num_compared = clock_to_set(monkeypatch), playcheck._may_be, 0

    def slow(*arguments: Any) -> bool:
        nonlocal num_compared
        num_compared += 1
        clock.now += playcheck.FOR_QUESTIONS / 4
        return compared(*arguments)

    monkeypatch.setattr(playcheck, "_may_be", slow)
    report = played(roles(20, NO_MOVES))
    assert codes(report.findings) == ["no-legal-move"] * 20
    assert num_compared <= 6
    assert [bool(finding.rule) for finding in report.findings].count(True) <= 6
    assert report.remarks == ["the rules of some findings were not looked up within the limits"]


@pytest.mark.parametrize("name", ["board", "roles", "counter", "pairs in play", "closure", "moves"])
def test_loading_play_and_questions_stay_within_their_seconds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of these sheets cannot be loaded in the time."""
    with counted_time() as now:
        check_sheet(Path("a.kif"), explosion(name), "a", Effort(SECONDS), limits=Limits(SECONDS))
        assert now() <= 1.5 * 2 * SECONDS


@pytest.mark.parametrize(
    ("name", "size", "engine"),
    [("board", 14, "reasoner"), ("board", 30, "native"), ("roles", 60, "reasoner"), ("pairs in play", 1, "reasoner")],
)
def test_play_and_its_questions_stay_within_their_seconds(
    name: str, size: int, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game that is loaded: the walk, the matches, single steps, and the questions before and after them."""
    sheet = parse(BEGIN + EXPLOSIONS[name][0](size))
    game = make(sheet, name, engine, Limits(literals=1_000_000))
    monkeypatch.setattr(playcheck, "make", lambda *_: game)
    with counted_time() as now:
        report = play_check(sheet, name, Effort(SECONDS), engine, Limits(SECONDS))
        assert now() <= 1.5 * 2 * SECONDS
    assert report.num_states > 0


def test_a_text_that_takes_too_long_keeps_its_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    text = BEGIN + "(q ?x) (unused 1)" + EXPLOSIONS["rules"][0](300)

    def checked(seconds: float) -> CheckedSheet:
        with counted_time():
            return check_sheet(Path("a.kif"), text, "a", Effort(SECONDS), limits=Limits(seconds))

    found_at_last = set(codes(checked(60).findings))
    assert {"variable-in-fact", "never-used"} <= found_at_last
    partly = next(sheet for sheet in map(checked, _growing()) if "variable-in-fact" in codes(sheet.findings))
    assert codes(partly.findings).count("too-large") == 1
    assert set(codes(partly.findings)) - {"too-large"} < found_at_last
    assert partly.not_played == "its text cannot be checked within the limits"


def _growing() -> Iterator[float]:
    seconds = 0.005
    while True:
        yield seconds
        seconds *= 1.2


def test_play_stays_within_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state has 3,600 moves, so that 512 states in one query, with their moves, take 16 MiB."""
    game = make(parse(BEGIN + EXPLOSIONS["board"][0](60)), "board", "native")
    memory = 8 << 20
    tracemalloc.start()
    try:
        monkeypatch.setattr(limits, "resident_memory", lambda: tracemalloc.get_traced_memory()[0])
        before = tracemalloc.get_traced_memory()[0]
        result = try_out(game, Effort(None, 600, max_steps=8, max_states=4000, memory=memory))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (result.tally.num_matches, result.cut) == (600, "")
    assert most - before <= memory


def test_questions_about_rules_that_the_game_does_not_need_have_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No engine needs `base` here; its join would hold clingo for hours.

    On a slow machine, the time for questions may end before the question to clingo.
    """
    short_rehearsals(monkeypatch)
    base = EXPLOSIONS["clique"][0](7).replace("(next won) (true (step 0))", "(base won)")
    checked = check_sheet(tmp_path, BEGIN + base, "sheet", Effort(None, 1), "native")
    assert checked.report is not None
    (remark,) = [remark for remark in checked.report.remarks if "not compared with base" in remark]
    assert "expected an answer within 5 s" in remark or "to be answered within 5 s" in remark
