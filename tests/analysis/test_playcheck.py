"""What `check --play` finds: every kind of finding on a sheet of its own, its place and the moves that lead there."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from gamelore import load, rulesheets
from gamelore.analysis import explore as tryout_module
from gamelore.analysis.explore import Effort, Watch, try_out
from gamelore.analysis.playcheck import check_sheet, play_check, unplayable
from gamelore.errors import GDLSemanticError, GroundingError
from gamelore.gdl.limits import Limits
from gamelore.gdl.lint import lint
from gamelore.gdl.syntax import parse
from gamelore.ground.clingo import state_sentences

# Two roles move in turn, three moves in all; each either goes left or right. In line 5 begins what a test adds.
THREE_MOVES = """(role white) (role black) (init (step 0)) (succ 0 1) (succ 1 2) (succ 2 3)
(<= (turn white) (not (true (step 1)))) (<= (turn black) (true (step 1))) (side left) (side right)
(<= (legal ?r (go ?s)) (turn ?r) (side ?s)) (<= (legal ?r wait) (role ?r) (not (turn ?r)))
(<= (next (step ?m)) (true (step ?n)) (succ ?n ?m)) (<= (next (went ?r ?s)) (does ?r (go ?s)))
"""
TERMINAL = "(<= terminal (true (step 3)))\n"
GOALS = "(<= (goal ?r 50) (role ?r))\n"

NO_MOVE = THREE_MOVES.replace("(turn ?r) (side ?s))", "(turn ?r) (side ?s) (not (blocked ?r)))") + TERMINAL + GOALS
NO_MOVE += "(<= (blocked black) (true (went white right)))"
NO_GOAL = THREE_MOVES + TERMINAL + "(<= (goal white 50) (true (went white left)))\n(<= (goal black 50) terminal)"
TWO_GOALS = THREE_MOVES + TERMINAL + "(goal white 10)\n(<= (goal white 90) (true (step 3)) (true (went white right)))\n"
TWO_GOALS += "(<= (goal black 50) terminal)"
LARGE_GOAL = THREE_MOVES + TERMINAL + "(value left 30) (value right 130)\n"
LARGE_GOAL += "(<= (goal white ?v) (true (went white ?s)) (value ?s ?v)) (<= (goal black 0) terminal)"
NO_NUMBER = LARGE_GOAL.replace("130", "many")
NEGATIVE = LARGE_GOAL.replace("130", "-1")
BASE = "(<= (base (step ?n)) (succ ?m ?n)) (base (step 0))\n(<= (base (went ?r left)) (role ?r))\n"
OUTSIDE_BASE = THREE_MOVES + TERMINAL + GOALS + BASE
OUTSIDE_INPUT = THREE_MOVES + TERMINAL + GOALS + "(<= (input ?r wait) (role ?r)) (input white (go right))\n"
OUTSIDE_INPUT += "(<= (input black (go ?s)) (side ?s))"
UNKNOWN_ROLE = (
    THREE_MOVES + TERMINAL + "(player white) (player black) (player red)\n(<= (goal ?p 5) (player ?p) terminal)"
)
ROUND = "(role white) (init (at a)) (arc a b) (arc b c) (arc c b) (arc c end)\n"
ROUND += "(<= (legal white (to ?y)) (true (at ?x)) (arc ?x ?y)) (<= (next (at ?y)) (does white (to ?y)))\n"
ROUND += "(<= terminal (true (at end))) (<= (goal white 9) (true (at end)))"
COUNTED = "(role white) (init (n 0)) (<= (legal white go) (true (n ?x))) (<= (next (n (s ?x))) (true (n ?x)))\n"
COUNTED += "(<= terminal (true (n (s (s (s (s (s 0)))))))) (goal white 1)"
PARADOX = THREE_MOVES + TERMINAL + GOALS + "(<= odd (true (went black right)) (not even))\n(<= even (not odd))\n"
PARADOX += "(<= (next seen) (true (went black right)) odd) (<= terminal (true seen))"


def report(text, engine="native", limits=None, **effort):
    options = {"seconds": None, "matches": 64, **effort}
    return play_check(parse(text), "sheet", Effort(**options), engine, limits)


def told(findings):
    return [(f"{found.line}:{found.column}", found.severity, found.code, found.message) for found in findings]


def replayed(text, witness, engine="native"):
    """The position after the moves of a witness."""
    position = load(text, engine=engine).start()
    for moves in witness:
        position = position.play(moves)
    return position


ENGINES = pytest.mark.parametrize("engine", ["native", "reasoner"])


@ENGINES
def test_a_sheet_without_flaw(engine):
    played = report(THREE_MOVES + TERMINAL + GOALS, engine)
    assert told(played.findings) == []
    assert (played.num_states, played.all_states, played.longest_match) == (7, True, 3)
    assert (played.num_matches, played.num_ended, played.num_steps) == (64, 64, 192)
    assert (played.mean_length, played.mean_goals) == (3.0, {"white": 50.0, "black": 50.0})
    assert played.engine == engine
    assert (played.size is None) == (engine == "reasoner") == bool(played.reason)


@ENGINES
def test_a_role_without_a_legal_move(engine):
    (found,) = report(NO_MOVE, engine).findings
    message = "black has no legal move in a state that is not terminal; this happens in 1 of all 7 reachable states"
    assert told([found]) == [("3:1", "error", "no-legal-move", message)]
    assert found.rule == "(<= (legal ?r (go ?s)) (turn ?r) (side ?s) (not (blocked ?r)))"
    assert (
        found.remedy
        == "add a rule such as (<= (legal black noop) ...) that holds in this state, or make the state terminal"
    )
    assert found.witness == (("(go right)", "wait"),)
    assert replayed(NO_MOVE, found.witness, engine).legal == {"white": ["wait"], "black": []}


@ENGINES
def test_no_goal_at_the_end(engine):
    (found,) = report(NO_GOAL, engine).findings
    message = "white has no goal at the end, not exactly one goal; this happens in 1 of all 2 reachable terminal states"
    assert told([found]) == [("6:1", "error", "no-goal", message)]
    end = replayed(NO_GOAL, found.witness, engine)
    assert end.is_terminal
    assert end.goals == {"white": None, "black": 50}


@ENGINES
def test_several_goals_at_the_end(engine):
    (found,) = report(TWO_GOALS, engine).findings
    message = (
        "white has the goals 10 and 90 at the end, not exactly one goal; this happens in 1 of all 2 reachable "
        "terminal states"
    )
    assert told([found]) == [("6:1", "error", "several-goals", message)]
    assert found.remedy == "make only one of these goals hold in this state: see the rules in lines 6 and 7"
    assert "(went white right)" in replayed(TWO_GOALS, found.witness, engine).facts


def test_none_and_several_goals_are_two_findings():
    sheet = NO_GOAL + "(<= (goal white 60) (true (went white left)))"
    assert {found.code for found in report(sheet).findings} == {"no-goal", "several-goals"}


@ENGINES
@pytest.mark.parametrize(("sheet", "value"), [(LARGE_GOAL, "130"), (NO_NUMBER, "many"), (NEGATIVE, "-1")])
def test_a_goal_out_of_range_that_a_variable_brings(engine, sheet, value):
    (found,) = report(sheet, engine).findings
    message = f"expected a goal of white that is a whole number from 0 to 100, got {value}"
    assert told([found]) == [("7:1", "error", "goal-out-of-range", message)]
    assert "(went white right)" in replayed(sheet, found.witness, engine).facts
    assert lint(parse(sheet)) == []


def test_a_goal_out_of_range_that_the_text_shows_is_found_once():
    sheet = THREE_MOVES + TERMINAL + "(<= (goal ?r 150) (role ?r))"
    assert [found.code for found in lint(parse(sheet))] == ["goal-out-of-range"]
    assert report(sheet).findings == []


@ENGINES
def test_facts_outside_base(engine):
    (found,) = report(OUTSIDE_BASE, engine).findings
    message = "the fact (went white right) is not in 'base', and the same is true of one more with the name 'went'"
    assert told([found]) == [("8:1", "error", "outside-base", message)]
    assert found.remedy == "add (base (went white right)), or correct the rule in line 4"
    assert found.witness == (("(go right)", "wait"),)
    assert "(went white right)" in replayed(OUTSIDE_BASE, found.witness, engine).facts


def test_a_first_fact_outside_base_is_there_at_the_start():
    sheet = (
        OUTSIDE_BASE.replace(" (base (step 0))", "")
        .replace("went ?r left", "went ?r ?s")
        .replace("(role ?r))\n", "(role ?r) (side ?s))\n")
    )
    (found,) = [found for found in report(sheet).findings if found.code == "outside-base"]
    assert (found.message, found.witness) == ("the fact (step 0) is not in 'base'", ())
    assert found.remedy == "add (base (step 0)), or correct the rule in line 1"
    assert "\n  at the start\n" in str(found)


@ENGINES
def test_moves_outside_input(engine):
    (found,) = report(OUTSIDE_INPUT, engine).findings
    message = "the legal move (go left) of white is not in 'input'"
    assert told([found]) == [("7:32", "error", "outside-input", message)]
    assert found.remedy == "add (input white (go left)), or correct the rule in line 3"
    assert found.witness == ()


def test_base_that_is_not_there_names_nothing_wrong():
    assert report(OUTSIDE_INPUT.replace("input", "allowed")).findings == []


@ENGINES
def test_a_goal_of_somebody_who_is_no_role(engine):
    (found,) = report(UNKNOWN_ROLE, engine).findings
    assert told([found]) == [
        ("7:1", "error", "unknown-role", "'goal' holds for red, but red is not declared as a role")
    ]
    assert found.remedy == "add (role red), or add the condition (role ?p) to this rule"
    assert replayed(UNKNOWN_ROLE, found.witness, engine).is_terminal


@ENGINES
def test_a_match_that_comes_back(engine):
    played = report(ROUND, engine)
    message = "a match may never end: after 3 moves the state is the same as after 1 move"
    assert told(played.findings) == [("3:1", "warning", "no-end", message)]
    witness = played.findings[0].witness
    assert witness == (("(to b)",), ("(to c)",), ("(to b)",))
    assert replayed(ROUND, witness, engine).facts == replayed(ROUND, witness[:1], engine).facts
    assert played.longest_match is None


def test_a_state_that_is_its_own_successor():
    sheet = "(role white) (init a) (legal white stay) (<= (next a) (true a)) (<= terminal (true b)) (goal white 1)"
    (found,) = report(sheet).findings
    assert found.message.startswith(
        "a match may never end: after 1 move the state is the same as at the start; 64 of 64 random"
    )
    assert found.witness == (("stay",),)


@ENGINES
def test_a_match_that_comes_back_is_seen_in_random_matches_too(engine):
    (found,) = report(ROUND, engine, max_states=0).findings
    assert found.message == "a match may never end: after 3 moves the state is the same as after 1 move"


def test_matches_that_are_too_long_are_cut():
    sheet = COUNTED.replace("(s (s (s (s (s 0)))))", "end")
    played = report(sheet, "reasoner", matches=3, max_steps=4, max_states=0)
    message = "3 of 3 random matches had not ended after 4 moves"
    assert told(played.findings) == [("2:1", "warning", "no-end", message)]
    assert played.findings[0].witness == (("go",),) * 4
    assert played.num_cut == 3
    assert report(COUNTED, "reasoner", matches=3, max_steps=5, max_states=0).findings == []


def test_no_perfect_model_in_a_state():
    (found,) = report(PARADOX, "reasoner").findings
    message = "no perfect model: a relation depends on its own negation in this state"
    assert told([found]) == [("7:1", "error", "no-perfect-model", message)]
    assert found.remedy == "remove the negation from the cycle; one of the rules in lines 7 and 8 has it"
    before = replayed(PARADOX, found.witness[:-1], "reasoner")
    with pytest.raises(GDLSemanticError, match="no perfect model"):
        before.play(found.witness[-1])


def test_the_compiler_refuses_a_state_without_a_perfect_model():
    with pytest.raises(GDLSemanticError, match="no perfect model"):
        report(PARADOX, "native")


def test_a_state_that_is_too_large():
    sheet = COUNTED + "(<= (goal white 2) (big ?x))"
    sheet += "(<= (big 0) (true (n (s (s 0))))) (<= (big (s ?x)) (big ?x))"
    played = play_check(parse(sheet), "sheet", Effort(None, 4), "reasoner", Limits(literals=5000))
    (found,) = played.findings
    assert found.code == "too-large"
    assert found.severity == "warning"
    assert found.witness[:2] == (("go",), ("go",))
    assert played.num_states == 2


def test_what_cannot_be_loaded_is_a_finding():
    sheet = parse("(role white)")
    with pytest.raises(GDLSemanticError) as caught:
        play_check(sheet, "sheet", Effort())
    found = unplayable(caught.value, None)
    assert (found.code, found.severity, found.message) == (
        "unplayable",
        "error",
        "expected at least one rule for 'legal', got none",
    )
    with pytest.raises(GroundingError) as too_large:
        report(COUNTED.replace("(s (s (s (s (s 0)))))", "end"), "native", limits=Limits(literals=5000))
    assert unplayable(too_large.value, None).message.startswith("expected grounding to end within 5000 literals")


def test_the_reasoner_plays_what_is_too_large_to_compile_and_the_report_says_why():
    played = report(COUNTED, "auto", limits=Limits(literals=5000))
    assert (played.engine, played.size) == ("reasoner", None)
    assert "5000 literals" in played.reason
    assert "the largest relation is" in played.reason
    assert played.longest_match == 5


@pytest.mark.parametrize("sheet", [NO_MOVE, NO_GOAL, TWO_GOALS, LARGE_GOAL, OUTSIDE_BASE, OUTSIDE_INPUT])
def test_random_matches_find_the_same_as_all_states(sheet):
    walked, played = report(sheet).findings, report(sheet, max_states=0, matches=200).findings
    assert [(found.code, found.line, found.column) for found in played] == [
        (found.code, found.line, found.column) for found in walked
    ]
    assert all("reachable" not in found.message for found in played)
    assert [len(found.witness) for found in played] == [len(found.witness) for found in walked]


def test_random_matches_say_in_how_many_it_was():
    played = report(NO_MOVE, max_states=0, matches=200)
    assert played.findings[0].message.endswith(f"in {played.num_stuck} of 200 random matches")
    assert played.num_stuck + played.num_ended == 200
    assert 60 < played.num_stuck < 140  # one half: white goes left or right
    (partly,) = report(NO_MOVE, max_states=4, matches=200).findings
    assert "in 1 of the 3 states nearest the start and in " in partly.message


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "pegsolitaire"])
def test_the_walk_meets_every_position_once(name):
    counts = rulesheets.counts(name)
    result = try_out(load(name), Effort(None, 0, max_states=counts.reachable))
    assert result.complete
    assert result.num_states == counts.reachable
    assert result.longest == max(depth for depth, number in counts.sequences.items() if number)
    fewer = try_out(load(name), Effort(None, 0, max_states=counts.reachable - 1))
    assert not fewer.complete
    assert fewer.num_states < counts.reachable


def test_a_number_of_matches_gives_the_same_result_again_and_on_both_engines():
    def played(engine, seed):
        tally = try_out(load("tictactoe", engine), Effort(None, 40, max_states=0, seed=seed)).tally
        return tally.lengths, np.array(tally.goals).tolist()

    assert played("native", 3) == played("native", 3) != played("native", 4)
    assert sorted(played("native", 3)[0][:15]) == sorted(played("reasoner", 3)[0][:15])  # rounds of 1, 2, 4, 8 on both


def test_matches_agree_with_counts_of_every_match():
    tally = try_out(load("tictactoe"), Effort(None, 4000, seed=1)).tally
    playouts = load("tictactoe").playouts(100_000, seed=1)
    assert tally.num_ended == 4000
    assert tally.mean_length() == pytest.approx(playouts.num_steps / 100_000, abs=0.1)
    assert tally.mean_goals(2)[0] == pytest.approx(playouts.mean(0), abs=3)


def test_time_that_is_up_ends_it():
    result = try_out(load("connectfour"), Effort(seconds=0))
    assert (result.num_states, result.tally.num_matches) == (0, 0)


def test_a_round_that_time_cut_short_counts_for_no_mean(monkeypatch):
    clock = map(float, range(1000))
    ticking = SimpleNamespace(monotonic=lambda: next(clock), thread_time=time.thread_time)
    monkeypatch.setattr(tryout_module, "time", ticking)
    result = try_out(load("connectfour"), Effort(seconds=60, max_states=0))
    tally = result.tally
    assert tally.num_matches > tally.num_ended
    assert len(tally.lengths) < tally.num_ended or not tally.lengths
    assert len(tally.lengths) in {1, 3, 7, 15}


def test_an_interrupt_keeps_what_was_found(monkeypatch):
    looked = Watch.look

    def look(self, states, depth, path):
        if self.phase == "matches":
            raise KeyboardInterrupt
        return looked(self, states, depth, path)

    monkeypatch.setattr(Watch, "look", look)
    played = report(NO_MOVE, matches=None)
    assert played.interrupted
    assert [found.code for found in played.findings] == ["no-legal-move"]


def test_a_question_about_a_state_in_the_rules_own_words():
    sheet = parse(TWO_GOALS)
    end = ("(step 3)", "(went white right)")
    assert state_sentences(sheet, ["goal", "terminal"], end) == {
        "goal": [("white", "10"), ("white", "90"), ("black", "50")],
        "terminal": [()],
    }
    assert state_sentences(sheet, ["base", "init"]) == {"base": [], "init": [("(step 0)",)]}
    endless = parse("(role r) (p 0) (<= (p (s ?x)) (p ?x)) (<= (legal r ?x) (p ?x))")
    with pytest.raises(GroundingError, match="within 1000 literals"):
        state_sentences(endless, ["legal"], limits=Limits(literals=1000))
    with pytest.raises(GDLSemanticError, match="no perfect model"):
        state_sentences(parse(PARADOX), ["next"], ["(went black right)"])


def test_a_sheet_is_checked_in_its_text_and_then_in_play(tmp_path):
    path, text = tmp_path / "a.kif", str(rulesheets.load("tictactoe").rulesheet)
    plain = check_sheet(path, text, "a")
    assert (plain.findings, plain.report, plain.not_played) == ([], None, "")
    played = check_sheet(path, text, "a:b=c", Effort(seconds=None, matches=3))
    assert played.report is not None
    assert (played.findings, played.report.all_states, played.title) == ([], True, f"{path}:b=c")
    flawed = check_sheet(path, f"{text}\n(<= (next ?x) (true (cell ?y)))", "a", Effort())
    assert "unsafe-variable" in {finding.code for finding in flawed.findings}
    assert (flawed.report, flawed.not_played) == (None, "it has errors that must be corrected first")
