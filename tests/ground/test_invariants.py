"""Facts of which at most one holds: refuting conditions, proving groups, and rules that rely on them; all by hand."""

from contextlib import suppress
from random import Random

import pytest

import gamelore
from evaluators import Unfit
from gamelore.gdl.clauses import clauses
from gamelore.gdl.syntax import parse
from gamelore.ground import invariants as uniqueness
from gamelore.ground.domains import Domains, statics
from gamelore.ground.invariants import Chase, Group, unique
from gamelore.ground.optimize import rewrite
from proofs import assert_proofs_hold
from random_programs import rulesheet

KING, ROOK, KINGS = Group(("at", 2), ((1, "king"),)), Group(("at", 2), ((1, "rook"),)), Group(("at", 2))
TURN = Group(("turn", 1))
WALK = """
(role red) (role blue) (init (at 1 king)) (init (at 4 rook)) (init (turn red))
(next_to 1 2) (next_to 2 3) (next_to 3 4) (next_to 4 5) (owns red king) (owns blue rook)
(<= (step ?x ?y) (next_to ?x ?y)) (<= (step ?x ?y) (next_to ?y ?x))
(<= (legal ?r (move ?p ?x ?y)) (true (turn ?r)) (owns ?r ?p) (true (at ?x ?p)) (step ?x ?y))
(<= (legal red wait) (true (turn blue))) (<= (legal blue wait) (true (turn red)))
(<= (next (at ?y ?p)) (does ?r (move ?p ?x ?y)))
(<= (next (at ?x ?p)) (true (at ?x ?p)) (does ?r (move ?q ?y ?z)) (distinct ?x ?y))
(<= (next (turn red)) (true (turn blue))) (<= (next (turn blue)) (true (turn red)))
(<= (walks ?x ?y) (true (at ?x ?p)) (step ?x ?y)) (<= (walks ?x ?y) (true (at ?y ?p)) (step ?y ?x))
(<= terminal (true (at ?x king)) (true (at ?x rook))) (goal red 50) (goal blue 50)
"""


def chase(text, *groups):
    rules = clauses(parse(text))
    return Chase(rules, statics(rules), groups)


def refuted(text, conditions, *groups):
    (question,) = clauses(parse(f"(<= (question) {conditions})"))
    return chase(text, *groups).refutes(question.body)


@pytest.mark.parametrize(
    "conditions",
    [
        "(does ?r (move king ?x ?y)) (does ?r wait)",  # a role plays one move
        "(does red (move ?p ?x ?y)) (does red (move ?q ?u ?v)) (distinct ?x ?u)",
        "(does red (move rook ?x ?y))",  # no clause makes that legal
        "(does green wait)",
        "(owns ?r king) (owns ?r rook)",  # one row fits both
        "(owns blue ?p) (distinct ?p rook)",
        "(true (at 1 king)) (not (true (at 1 king)))",
        "(true (at 1 king)) (not (next_to 1 2))",
        "(next_to ?x ?y) (next_to ?x ?z) (distinct ?y ?z)",  # rows that agree in ?x
        "(step ?x ?x)",
        "(walks ?x ?x)",  # in either of the two ways
        "(flies ?x)",
    ],
)
def test_what_never_holds_is_refuted(conditions):
    assert refuted(WALK, conditions)


@pytest.mark.parametrize(
    "conditions",
    [
        "(does ?r (move king ?x ?y)) (does ?s wait)",
        "(owns ?r ?p) (distinct ?p rook)",
        "(step ?x ?y) (step ?x ?z) (distinct ?y ?z)",
        "(true (at ?x king)) (true (at ?y king)) (distinct ?x ?y)",  # not without an induction
        "(not (true (at ?x king))) (true (at ?y king))",
    ],
)
def test_what_may_hold_is_not(conditions):
    assert not refuted(WALK, conditions)


def test_of_a_group_one_fact_holds():
    two = "(true (at ?x king)) (true (at ?y king)) (distinct ?x ?y)"
    assert refuted(WALK, two, KING)
    assert not refuted(WALK, two.replace("king", "rook"), KING)
    assert not refuted(WALK, two.replace("king", "?p"), KING)


def test_a_chase_that_has_no_cases_left_refutes_nothing():
    (question,) = clauses(parse("(<= (question) (walks ?x ?x))"))
    rules = clauses(parse(WALK))
    assert Chase(rules, statics(rules), cases=5).refutes(question.body)
    assert not Chase(rules, statics(rules), cases=4).refutes(question.body)


@pytest.mark.parametrize("certain", [True, False])
def test_what_waits_for_a_solver_is_not_taken_for_certain(certain):
    """`won` is possible everywhere for all that grounding knows; it holds of 2, where the way ends, and not of 1."""
    won = "(<= (won ?x) (next_to ?x ?y) (not (won ?y)))"
    table = "(won 2) (won 4)"
    assert refuted(WALK + (table if certain else won), "(not (won 2))") == certain


@pytest.mark.parametrize("seed", range(20))
def test_random_rules_bear_out_what_is_proved_of_them(seed):
    with suppress(Unfit):
        assert_proofs_hold(rulesheet(Random(seed)))


@pytest.mark.parametrize("method", ["_same_row", "_always", "refutes"])
def test_a_false_proof_is_noticed(monkeypatch, method):
    monkeypatch.setattr(Chase, method, lambda self, *_: True)
    with pytest.raises(AssertionError, match=r"^\("):
        assert_proofs_hold(WALK)


def test_a_group_of_two_is_noticed(monkeypatch):
    monkeypatch.setattr("proofs.unique", lambda rules, known, groups: groups)
    monkeypatch.setattr("proofs._questions", lambda rules, random: [])
    with pytest.raises(AssertionError, match=r"\(at .* in "):
        assert_proofs_hold(WALK)


def proofs(text, *candidates):
    rules = clauses(parse(text))
    return unique(rules, statics(rules), candidates)


def proved(text, *candidates):
    return set(proofs(text, *candidates))


def changed_rules(text):
    rules = clauses(parse(text))
    known = statics(rules)
    return uniqueness.Unique(rules, known, Domains(rules, known), "some:")


def test_the_king_is_one_and_whose_turn_it_is_one_role():
    assert proved(WALK, KING, KINGS, TURN, ROOK) == {KING, TURN, ROOK}


def test_a_proof_says_what_it_relies_on():
    assert proofs(WALK, KING, TURN) == {KING: {KING, TURN}, TURN: {TURN}}


def test_without_the_turn_it_cannot_be_proved():
    """Both could move then, as far as the proof sees, and the king stay where the rook does not stand."""
    assert proved(WALK, KING) == set()


@pytest.mark.parametrize(
    "more",
    [
        "(init (at 2 king))",
        "(<= (next (at 3 king)) (true (at 4 rook)))",
        "(<= (next (at ?x king)) (does blue (move rook ?x ?y)))",
        "(<= (next (at ?x king)) (true (at ?x rook)))",
        "(<= (next ?f) (true ?f) (true (at 3 rook)))",
        "(<= (next (at ?1' ?0')) (does blue wait) (step 1 ?1') (owns red ?0'))",  # as a proof might name variables
        "(<= (next ?at) (does blue wait) (after ?at)) (after (at 3 king))",
        "(<= (next (at 3 ?p)) (or (true (at 4 ?p)) (owns red ?p)))",
    ],
)
def test_a_second_king_is_not_overlooked(more):
    assert KING not in proved(WALK + more, KING, TURN)


THREAT = """
(<= (threatened ?x ?y) (true (at ?z rook)) (step ?x ?z) (step ?z ?y))
(<= (threatened ?x ?y) (true (at ?y rook)) (next_to ?x ?z))
(<= (next (safe ?y)) (true (at ?x king)) (next_to ?y ?z) (not (threatened ?x ?y)))
"""


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(uniqueness, "LARGE", 1)
    monkeypatch.setattr(uniqueness, "GAIN", 2)


def test_a_relation_is_asked_about_the_one_king(everything_is_large):
    changed = changed_rules(WALK + THREAT)
    texts = [str(rule) for rule in changed.rules]
    assert changed.groups == {KING, TURN}
    assert "(<= (next (safe ?y)) (true (at ?x king)) (next_to ?y ?z) (not (some:1 ?y)))" in texts
    assert [text for text in texts if text.startswith("(<= (some:1")] == [
        "(<= (some:1 ?y) (true (at ?x king)) (true (at ?z'0 rook)) (step ?x ?z'0) (step ?z'0 ?y))",
        "(<= (some:1 ?y) (true (at ?x king)) (true (at ?y rook)) (next_to ?x ?z'0))",
    ]


def test_the_same_question_has_one_relation(everything_is_large):
    again = "(<= (next (free ?y)) (true (at ?z king)) (next_to ?y ?u) (not (threatened ?z ?y)) (true (at ?y rook)))"
    texts = [str(rule) for rule in changed_rules(WALK + THREAT + again).rules]
    assert "(<= (next (free ?y)) (true (at ?z king)) (next_to ?y ?u) (not (some:1 ?y)) (true (at ?y rook)))" in texts


def test_the_question_keeps_what_tells_which_fact_is_meant(everything_is_large):
    meant = THREAT.replace("(next_to ?y ?z) (not", "(next_to ?y ?x) (not")
    some = "(true (at ?x king)) (next_to ?y ?x) (true (at ?y rook)) (next_to ?x ?z'0)"
    texts = [str(rule) for rule in changed_rules(WALK + meant).rules]
    assert f"(<= (some:1 ?y) {some})" in texts


def test_the_groups_of_a_fact_are_those_of_every_constant_that_it_may_have(everything_is_large):
    whoever = THREAT.replace("(true (at ?x king))", "(true (at ?x ?p))")
    changed = changed_rules(WALK + whoever)
    assert changed.groups == {KING, ROOK, TURN}
    assert "(<= (next (safe ?y)) (true (at ?x ?p)) (next_to ?y ?z) (not (some:1 ?p ?y)))" in map(str, changed.rules)


@pytest.mark.parametrize(
    "clause",
    [
        "(<= (next (safe ?y)) (true ?f) (next_to ?y ?z) (not (bad ?f ?y)))",  # of whatever shape
        "(<= (next (safe ?y)) (true (at ?x ?y)) (next_to ?y ?z) (not (far ?x ?z)))",  # ?y is a number, or king or rook
        "(<= (next (safe ?x)) (true (seen (of ?x king))) (not (far ?x ?x)))",  # not an argument by itself
        "(<= (next (safe ?x)) (true (seen (of ?x ?y))) (true (at ?y ?p)) (not (far ?y ?p)))",
    ],
)
def test_other_facts_are_asked_about_one_by_one(everything_is_large, clause):
    more = """
    (<= (bad ?f ?y) (true ?f) (next_to ?y ?z) (true (at ?y king)))
    (<= (far ?x ?y) (true (at ?x king)) (next_to ?y ?z)) (<= (far ?x king) (true (at ?x rook)))
    (<= (next (seen (of ?x ?p))) (true (at ?x ?p)))
    """
    assert not changed_rules(WALK + more + clause).groups


def test_it_means_the_same(everything_is_large):
    assert rewrite(parse(WALK + THREAT)).unique == {KING, TURN}
    native = gamelore.load(WALK + THREAT, engine="native")
    plain = gamelore.load(WALK + THREAT, engine="reasoner", rewrite=False)
    mine, theirs = native.start(), plain.start()
    for moves in (["(move king 1 2)", "wait"], ["wait", "(move rook 4 5)"], ["(move king 2 3)", "wait"]):
        mine, theirs = mine.play(moves), theirs.play(moves)
        assert mine.facts == theirs.facts
        assert mine.legal == theirs.legal
    assert any(fact.startswith("(safe") for fact in mine.facts)


def test_a_made_up_state_has_one_king(everything_is_large):
    game = gamelore.load(WALK + THREAT, engine="native")
    facts = game.start().facts
    assert game.position(facts - {"(at 1 king)"}).facts == facts - {"(at 1 king)"}
    with pytest.raises(gamelore.GDLSemanticError, match=r"at most one .* got \(at 1 king\) and \(at 2 king\)"):
        game.position(facts | {"(at 2 king)"})


def test_a_made_up_state_is_nobodys_turn_twice(everything_is_large):
    """Both would move then, and the king might be two of the next state."""
    game = gamelore.load(WALK + THREAT, engine="native")
    with pytest.raises(gamelore.GDLSemanticError, match=r"at most one .* got \(turn red\) and \(turn blue\)"):
        game.position(game.start().facts | {"(turn blue)"})


def test_small_relations_are_left_alone():
    changed = changed_rules(WALK + THREAT)
    assert list(map(str, changed.rules)) == list(map(str, clauses(parse(WALK + THREAT))))
    assert not changed.groups
