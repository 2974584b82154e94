"""Rewriting the rules: what becomes of them, by hand; that they mean the same is for test_engines and the fuzzers."""

from math import inf
from pathlib import Path

import pytest

import gamelore
from clocks import short_rehearsals
from gamelore.gdl.clauses import Dependencies, clauses
from gamelore.gdl.limits import Limits, within
from gamelore.gdl.syntax import bound, parse, term_variables
from gamelore.ground import optimize
from gamelore.ground.clingo import Names
from gamelore.ground.domains import GIVEN, PARTIAL_ROWS, WHOLE_ROWS, Domains, Estimate, Statics, statics
from gamelore.ground.optimize import Demand, rewrite, rewrite_for_a_state
from gamelore.ground.program import ground

SHARED = Path(__file__).parents[3] / "shared" / "games"
GAME = """
(role robot) (init (at 1 1)) (init (step 1)) (legal robot stay)
(<= (next (step ?n)) (true (step ?m)) (succ ?m ?n)) (<= terminal (true (step 3))) (goal robot 100)
"""


def numbers(name, last):
    return " ".join(f"({name} {i})" for i in range(1, last + 1))


def successors(last):
    return " ".join(f"(succ {i} {i + 1})" for i in range(1, last))


def rules_for(relation, sheet):
    return [str(rule) for rule in sheet.rules if rule.head.name == relation]


def domains_of(text):
    rules = clauses(parse(text))
    return Domains(rules, statics(rules))


FRAME = f"""
(role red) {numbers("index", 6)}
(<= (init (cell ?x ?y b)) (index ?x) (index ?y))
(<= (legal red (move ?u ?v ?x ?y)) (index ?u) (index ?v) (index ?x) (index ?y))
(<= (next (cell ?x ?y r)) (does red (move ?u ?v ?x ?y)))
(<= (next (cell ?x ?y ?c)) (true (cell ?x ?y ?c)) (does ?p (move ?u ?v ?i ?j)) (distinct ?x ?i))
(<= (next (cell ?x ?y ?c)) (true (cell ?x ?y ?c)) (does ?p (move ?u ?v ?i ?j)) (distinct ?y ?j))
(<= terminal (true (cell 1 1 r))) (goal red 100)
"""


def test_what_only_the_move_decides_becomes_a_relation_of_its_own():
    sheet = rewrite(parse(FRAME))
    frames = [rule for rule in rules_for("next", sheet) if "true" in rule]
    assert frames == [
        "(<= (next (cell ?x ?y ?c)) (part:1 ?i) (true (cell ?x ?y ?c)) (distinct ?x ?i))",
        "(<= (next (cell ?x ?y ?c)) (part:2 ?j) (true (cell ?x ?y ?c)) (distinct ?y ?j))",
    ]
    assert rules_for("part:1", sheet) == ["(<= (part:1 ?i) (does ?p (move ?u ?v ?i ?j)))"]
    plain, smaller = ground(parse(FRAME)), ground(sheet, None, Names(parse(FRAME)))
    assert 10 * len(smaller.literals) < len(plain.literals)


def guesses(number):
    """A game in which players guess numbers, and a rule adds them up one by one."""
    players = "".join(f"(role p{i})" for i in range(number))
    sums = " ".join(f"(true (guessed p{i} ?n{i})) (sum ?s{i - 1} ?n{i} ?s{i})" for i in range(2, number))
    return f"""{players} {numbers("number", 40)} {successors(40 * number)}
    (<= (any ?x) (succ ?x ?y))
    (<= (sum ?x 1 ?y) (succ ?x ?y)) (<= (sum ?x ?y ?z) (succ ?y0 ?y) (sum ?x ?y0 ?z0) (succ ?z0 ?z))
    (<= (legal ?p (guess ?n)) (role ?p) (number ?n))
    (<= (next (guessed ?p ?n)) (does ?p (guess ?n)))
    (<= (total ?s{number - 1}) (true (guessed p0 ?n0)) (true (guessed p1 ?n1)) (sum ?n0 ?n1 ?s1) {sums})
    (<= (next (was ?n)) (total ?n)) (<= terminal (true (was ?n))) (<= (goal ?p 1) (role ?p))"""


def test_what_a_relation_computes_is_kept_without_what_it_is_computed_from(monkeypatch):
    """Each part then has one sum. A part with two would join three guesses."""
    rules = parse(guesses(5))

    def sums(sheet):
        joins = [rule for rule in sheet.rules if rule.head.name == "total" or rule.head.name.startswith("part")]
        return max(sum(part.name == "sum" for part in rule.body) for rule in joins)

    assert sums(rewrite(rules)) == 2
    monkeypatch.setattr(optimize, "HUGE_JOIN", 10_000)
    assert sums(rewrite(rules)) == 1


def test_parts_that_keep_other_variables_are_two_relations():
    """Both have the same conditions; hallway.kif has such rules."""
    sheet = rewrite(parse(FRAME + "(<= (next (was ?x ?y ?c)) (true (cell ?x ?y ?c)) (does ?p (move ?u ?v ?i ?j)))"))
    (was,) = [rule for rule in rules_for("next", sheet) if "was" in rule]
    assert was == "(<= (next (was ?x ?y ?c)) part:3 (true (cell ?x ?y ?c)))"
    assert rules_for("part:3", sheet) == ["(<= part:3 (does ?p (move ?u ?v ?i ?j)))"]


COUNTER = f"""
{GAME} {numbers("number", 60)} {successors(60)}
(<= (sum ?x 1 ?z) (succ ?x ?z))
(<= (sum ?x ?y ?z) (succ ?y0 ?y) (sum ?x ?y0 ?z0) (succ ?z0 ?z) (true (on ?z)))
(<= (next (on ?z)) (true (at ?x ?y)) (sum ?x ?y ?z))
(<= (next (at ?x ?y)) (true (at ?x ?y)))
(<= (next (at ?x 1)) (true (on ?x)))
"""


def test_a_large_relation_is_derived_where_it_is_asked_for():
    sheet = rewrite(parse(COUNTER))
    assert "(<= (sum ?x 1 ?z) (wanted:sum ?x 1) (succ ?x ?z))" in rules_for("sum", sheet)
    assert rules_for("wanted:sum", sheet) == [
        "(<= (wanted:sum ?x ?y0) (wanted:sum ?x ?y) (succ ?y0 ?y))",
        "(<= (wanted:sum ?x ?y) (true (at ?x ?y)))",
    ]


def test_ground_rules_hold_no_guards():
    sheet, names = parse(COUNTER), Names(parse(COUNTER))
    program = ground(rewrite(sheet), None, names)
    derived = set(program.heads.tolist())
    given = {*program.true.values(), *program.does.values()}
    assert {abs(literal) for literal in program.literals.tolist()} <= derived | given
    assert not any("wanted" in program.texts[atom] for atom in derived)


def test_guards_bring_no_negation_into_a_cycle():
    """`big` is asked for where `small` holds, which depends on the negation of `big`."""
    text = f"""
    {GAME} {numbers("number", 40)} {successors(40)}
    (<= (big ?x ?y ?z) (number ?x) (number ?y) (number ?z) (not (true (at ?x ?y))))
    (<= (small ?x) (number ?x) (true (at ?x ?y)) (not (big ?x ?x ?x)))
    (<= (next (at ?x ?y)) (small ?x) (succ ?x ?y) (big ?x ?y ?y))
    """
    for rewritten in (rewrite(parse(text)), rewrite_for_a_state(parse(text))):
        assert not Dependencies(clauses(rewritten)).negative_cycles()
    assert rewrite(parse(text)).guards == {"wanted:big"}


def test_guards_that_bring_negation_into_a_cycle_are_given_up():
    """To ask `plus` where `safe` holds would be to ask it by what its own guard decides; `elem` is never derived."""
    text = f"""
    {GAME} (num 0) (succ 0 1)
    (<= (plus 0 ?x ?x) (num ?x))
    (<= (plus ?y ?z ?w) (succ ?x ?y) (plus ?x ?z ?v) (succ ?v ?w))
    (<= (safe ?y) (succ ?x ?y) (not (safe ?x)))
    (<= (asked ?x ?c) (plus ?x 3 ?z) (safe ?z) (elem ?c) (true (at ?z ?z)))
    (<= (goal robot 50) (true (at ?x ?c)) (asked ?y ?c) (plus 3 ?x 3))
    """
    rules = clauses(parse(text))
    dependencies = Dependencies(rules)
    demand = Demand(rules, Domains(rules, statics(rules)), "wanted:", large=1, must_pay=False)
    changed = [*demand.guarded(), *demand.guards()]
    assert demand.doubted == set(dependencies.uses)
    assert Dependencies(changed).negative_cycles() <= dependencies.negative_cycles()


REACH = f"""
{GAME} {numbers("number", 120)} {successors(120)}
(<= (reach king ?x ?y) (succ ?x ?y))
(<= (reach rook ?x ?y) (number ?x) (number ?y))
(<= (next (at ?y ?z)) (true (at ?x ?z)) (reach king ?x ?y))
(<= (next (at ?x ?y)) (does robot stay) (number ?x) (number ?y))
"""


def test_a_definition_takes_the_place_of_a_relation_where_that_is_smaller():
    assert "(<= (next (at ?y ?z)) (true (at ?x ?z)) (succ ?x ?y))" in rules_for("next", rewrite(parse(REACH)))


def test_names_that_somebody_has_taken():
    text = (
        COUNTER
        + "(wanted:sum 3 4) (wanted:: 1) (part:1 2) (always:at 7)"
        + "(<= (next (on ?x)) (part:1 ?x) (wanted:: ?y) (wanted:sum 3 ?z))"
    )
    sheet = rewrite(parse(text))
    assert sheet.guards == {"wanted:::sum"}
    assert rules_for("wanted:sum", sheet) == ["(wanted:sum 3 4)"]
    assert "(on 2)" in gamelore.load(text, engine="native").start().play("stay").facts


def test_names_that_somebody_asks_about_without_a_rule():
    text = WALLS + OPEN + "(<= (next odd) (not (always:wall 1)) (not (part:1 1)))"
    assert rules_for("always::wall", rewrite(parse(text))) == ["(always::wall 1)", "(always::wall 2)"]
    assert "odd" in gamelore.load(text, engine="native").start().play("stay").facts


def test_demand_builds_no_terms():
    """From below these clauses take terms apart; asked from above they would build them, and never end."""
    text = f"""
    {GAME} {numbers("number", 40)}
    (<= (made (f (f ?x)) ?y) (number ?x) (number ?y))
    (<= (made ?x ?y) (made (f ?x) ?y) (number ?y))
    (<= (next (at ?x ?y)) (true (at ?x ?y)) (made ?x ?y))
    """
    assert rules_for("wanted:made", rewrite_for_a_state(parse(text))) == ["(<= (wanted:made ?y) (true (at ?x ?y)))"]
    shrinking = text.replace("(made (f ?x) ?y)", "(made ?z ?y) (number ?z) (number ?x)")
    assert "(wanted:made ?x ?y)" in " ".join(rules_for("wanted:made", rewrite_for_a_state(parse(shrinking))))


def test_what_the_game_does_not_depend_on_is_left_out():
    sheet = rewrite(parse(GAME + "(base (at 1 1)) (idle 1) (<= (busy ?x) (idle ?x) (true (at ?x ?x)))"))
    assert not [rule for name in ("base", "idle", "busy") for rule in rules_for(name, sheet)]


WALLS = GAME + "(init (wall 1)) (init (wall 2)) (<= (next (wall ?x)) (true (wall ?x)))"
OPEN = "(<= (next (at ?y ?y)) (true (at ?x ?x)) (succ ?x ?y) (not (true (wall ?y))))" + successors(5)


def test_facts_that_never_change_are_read_from_the_first_state():
    sheet = rewrite(parse(WALLS + OPEN))
    assert rules_for("always:wall", sheet) == ["(always:wall 1)", "(always:wall 2)"]
    assert "(<= (next (at ?y ?y)) (true (at ?x ?x)) (succ ?x ?y) (not (always:wall ?y)))" in rules_for("next", sheet)
    assert "(<= (next (wall ?x)) (true (wall ?x)))" in rules_for("next", sheet)


def test_what_stays_only_where_something_never_changes():
    stays = "(<= (next ?f) (true ?f) (true (wall 2)))"
    assert "(<= (next ?f) (true ?f) (always:wall 2))" in rules_for("next", rewrite(parse(WALLS + stays)))


@pytest.mark.parametrize(
    "change",
    [
        "(<= (next (wall 3)) (does robot stay))",
        "(<= (next (wall ?x)) (true (at ?x ?x)))",
        "(<= (next ?f) (true (kept ?f)))",
    ],
)
def test_facts_that_may_change_are_not(change):
    assert not rules_for("always:wall", rewrite(parse(WALLS + OPEN + change)))


def test_a_made_up_state_must_keep_what_never_changes():
    game = gamelore.load(WALLS + OPEN, engine="native")
    facts = game.start().facts
    assert game.position(facts).facts == facts
    with pytest.raises(gamelore.GDLSemanticError, match=r"never change .* a difference in \(wall 1\)"):
        game.position(facts - {"(wall 1)"})
    reasoner = gamelore.load(WALLS + OPEN, engine="reasoner")
    assert reasoner.position(facts - {"(wall 1)"}).facts == facts - {"(wall 1)"}


def test_comparisons_are_put_in():
    (clause,) = clauses(parse("(<= (p ?x ?y) (q ?x) (r ?y) (not (distinct ?x ?y)) (distinct a b))"))
    assert str(clause) == "(<= (p ?x ?x) (q ?x) (r ?x))"
    assert not clauses(parse("(<= (p ?x) (q ?x) (distinct ?x ?x))"))
    assert [str(clause) for clause in clauses(parse("(<= p (or q (distinct a a)))"))] == ["(<= p q)"]


def test_domains_follow_the_rules():
    domains = domains_of(GAME + successors(4) + "(<= (next (at ?y ?x)) (true (at ?x ?y)) (succ ?x ?z))")
    (facts,) = domains.of["true", 1]
    assert {name: [sorted(part.constants) for part in parts] for (name, _), parts in facts.functions.items()} == {
        "at": [["1"], ["1"]],
        "step": [["1", "2", "3", "4"]],
    }
    assert domains.size(("succ", 2)) == 3
    assert domains.size(("nothing", 1)) == 0


def test_terms_that_nest_ever_deeper_may_be_any():
    domains = domains_of(GAME + "(init (count z)) (<= (next (count (s ?x))) (true (count ?x)))")
    assert domains.product(("true", 1)) == inf
    assert domains.product(("role", 1)) == 1


def test_relations_too_large_to_derive_are_left_out(monkeypatch):
    text = f"""
    {numbers("number", 20)} (<= (pair ?x ?y) (number ?x) (number ?y)) (<= (same ?x) (pair ?x ?x))
    (<= (low ?x) (number ?x) (not (same ?x))) (<= (few ?x) (number ?x) (distinct ?x 1))
    (<= (often ?x) (number ?x) (true (at ?x ?x)))
    """
    rules = clauses(parse(text))
    assert statics(rules).sizes.keys() == {("number", 1), ("pair", 2), ("same", 1), ("low", 1), ("few", 1)}
    monkeypatch.setattr("gamelore.ground.domains.LIMITS", Limits(60, 200))
    assert statics(rules).sizes == {("number", 1): 20, ("few", 1): 19}
    monkeypatch.setattr("gamelore.ground.domains.LIMITS", Limits(60, 10))
    monkeypatch.setattr("gamelore.ground.domains.ATTEMPTS", 1)
    assert statics(rules) == Statics()


EDGES = f"{numbers('n', 30)} (<= (e ?a ?b) (n ?a) (n ?b) (distinct ?a ?b))"
STAR = " ".join(f"(s hub {i}) (s {i} hub)" for i in range(100))
BEFORE, WHOLE = 870 * 29 * 29 / PARTIAL_ROWS, 870 * 29**3 / WHOLE_ROWS  # 870 edges, 29 from each node
OF_STATE = 870 * 29 * 29 * 30 / WHOLE_ROWS  # a fact of the state may hold for each of 30 nodes
SOME = "(true (f ?a ?b)) (e ?b ?c) (e ?c ?d) (e ?d ?g)"
LONG = {
    "all in the ground rule": ("(next (p ?a ?b ?c ?d ?g))", SOME, BEFORE),
    "some in no ground rule": ("(next (p ?a ?b ?c ?d))", SOME, BEFORE + OF_STATE),
    "a condition that rejects rows": ("(next (p ?a ?b ?c ?d ?g))", f"{SOME} (distinct ?a ?g)", BEFORE + OF_STATE),
    "facts that may be there already": (
        "(p ?a ?b ?c ?d ?g)",
        SOME.replace("(true (f ?a ?b))", "(e ?a ?b)"),
        BEFORE + WHOLE,
    ),
    "few": ("(p ?a)", "(e ?a ?b) (e ?b ?c)", 0),
    "a function": (
        "(p ?a)",
        " ".join(f"(next_to ?v{i} ?v{i + 1})" for i in range(9)) + " (n ?a)",
        30 / PARTIAL_ROWS + 30 * 30 / WHOLE_ROWS,
    ),
    "a star": ("(p ?a)", "(s ?a ?b) (s ?b ?c) (s ?c ?d)", 200 * 100 / PARTIAL_ROWS + 200 * 100 * 100 / WHOLE_ROWS),
}


@pytest.mark.parametrize(("head", "body", "seconds"), LONG.values(), ids=LONG)
def test_joins_that_may_hold_clingo(head: str, body: str, seconds: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gamelore.ground.domains.LONG_JOIN", 500_000)
    monkeypatch.setattr("gamelore.ground.domains.ORDERING", 0.0)
    ones = " ".join(f"(next_to {i} {i + 1})" for i in range(30))
    facts = "(<= (init (f ?a ?b)) (e ?a ?b)) (<= (next (f ?a ?b)) (true (f ?a ?b)))"
    rules = clauses(parse(f"{EDGES} {STAR} {ones} {facts} (<= {head} {body})"))
    long = Domains(rules, statics(rules[:-1])).long_joins(rules, GIVEN)
    assert list(long.values()) == ([pytest.approx(seconds)] if seconds else [])


def test_many_conditions_may_hold_clingo_without_a_join():
    conditions = " ".join(f"(true (f {i}))" for i in range(100))
    rules = clauses(parse(f"(init (f 1)) (<= (next won) {conditions}) (<= (next (f ?a)) (true (f ?a)) (true (f 1)))"))
    (long,) = Domains(rules, statics(rules)).long_joins(rules, GIVEN).items()
    assert long == (rules[1].rule, pytest.approx(0.3))


def test_a_relation_that_once_needs_no_state_counts_as_facts():
    always = "(<= (init (f ?a ?b)) (e ?a ?b)) (<= (p ?a ?b) (true (f ?a ?b))) (<= (q ?a ?b) (p ?a ?b))"
    join = "(<= (next (won)) (q ?a ?b) (q ?b ?c) (q ?c ?d))".replace("(won)", "(won ?a ?b ?c ?d)")
    lengths = []
    for more in ("", "(<= (p ?a ?b) (e ?a ?b))"):
        rules = clauses(parse(f"{EDGES} {always} {more} {join}"))
        lengths += Domains(rules, statics(rules)).long_joins(rules, GIVEN).values()
    assert lengths[0] < 0.01 < lengths[1]


def test_a_long_join_of_relations_that_never_change_is_stopped(monkeypatch: pytest.MonkeyPatch):
    short_rehearsals(monkeypatch)
    clique = " ".join(f"(e ?v{i} ?v{j})" for j in range(7) for i in range(j))
    edges = " ".join(f"(e {i} {j})" for i in range(60) for j in range(60) if i % 6 != j % 6)
    reason = r"within 60 s, .* the longest join is that of the rule at line 1, which may take more than an hour"
    with pytest.raises(gamelore.GroundingError, match=reason), within(Limits(seconds=60)):
        statics(clauses(parse(f"{edges} (<= won {clique})")))


def test_estimates_of_a_join():
    rules = clauses(parse(numbers("a", 10) + numbers("b", 4) + "(<= (p ?x ?y) (a ?x) (a ?y) (b ?x))"))
    domains = Domains(rules, statics(rules))
    rule = rules[-1]
    estimate = Estimate(domains, rule.positive)
    assert estimate.join(rule.positive) == 4 * 10  # ?x one of four, ?y one of ten
    assert estimate.instances(rule.head, rule.positive) == 40


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/games beside the project")
@pytest.mark.parametrize("path", sorted(SHARED.glob("[a-l]*.kif"))[1::3], ids=lambda path: path.stem)
def test_rewritten_public_sheets_are_safe_and_as_stratified_as_before(path):
    sheet = parse(path.read_text(errors="replace"))
    before = Dependencies(clauses(sheet)).negative_cycles()
    for rewritten in (rewrite(sheet), rewrite_for_a_state(sheet)):
        assert Dependencies(clauses(rewritten)).negative_cycles() <= before
        for rule in rewritten.rules:
            assert {variable.name for variable in term_variables(rule.head)} <= bound(rule), str(rule)


def test_rules_that_an_unfolding_would_nest_too_deeply_are_not_unfolded():
    """The terms of `w` and `v` have 101 and 102 levels; one within the other would be too deep to write."""

    def deep(levels, term):
        return "(s " * levels + term + ")" * levels

    sheet = parse(f"""
        (role r) (init (f a)) (init (g n0)) {" ".join(f"(d n{i})" for i in range(60))}
        (<= (legal r (go ?x)) (d ?x))
        (<= (next (f b)) (does r (go ?x)))
        (<= (next (g ?x)) (does r (go ?x)))
        (<= (w {deep(100, "?z")}) (v ?z))
        (v {deep(101, "n0")})
        (<= (big ?a ?z) (true (g ?a)) (v ?z) (w {deep(100, "?z")}))
        (<= (hit ?a ?e ?i) (big ?a {deep(101, "?c")}) (d ?e) (d ?i) (d ?c) (true (g ?e)) (true (g ?i)))
        (<= terminal (true (f b)))
        (<= (goal r 100) (true (g ?x)) (hit ?x ?x ?x))
        (<= (goal r 50) (true (g ?x)) (not (hit ?x ?x ?x)))
    """)
    assert [rule for rule in rules_for("hit", rewrite(sheet)) if "big" in rule]


def test_facts_whose_proof_would_take_too_large_terms_are_not_proved_unique():
    """`(true ?f)` may be (w a a ..), whose 200 arguments come 600 times into one atom."""
    sheet = parse(f"""
        (role p0) (legal p0 m) (goal p0 50) (<= terminal (true stop))
        {" ".join(f"(n {i})" for i in range(40))}
        (<= (legal p0 (go ?x)) (n ?x))
        (<= (big ?x ?y ?z) (n ?x) (n ?y) (n ?z) (true (d ?x)))
        (init (c 1)) (<= (next (c ?y)) (does p0 (go ?y)))
        (init (d 2)) (<= (next (d ?x)) (true (c ?x)))
        (<= (next stop) (true (c ?x)) (n ?y) (n ?z) (not (big ?x ?y ?z)))
        (init (w {"a " * 200}))
        (<= (q {"?f " * 600}) (true ?f))
        (<= (next ?f) (true ?f) (q {"?f " * 600}) (true (w {"a " * 200})) (does p0 m))
        (<= (next (w {"a " * 200})) (does p0 m))
    """)
    assert rules_for("next", rewrite(sheet))
