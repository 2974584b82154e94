"""The checker: every malformed sheet gets its findings, and no sheet that plays is refused."""

import re
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import floods
from clocks import clock_to_set
from gamelore import load, rulesheets
from gamelore.errors import SHORT, GDLSemanticError, GDLSyntaxError, GroundingError, shortened
from gamelore.game.compile import rulesheet_findings
from gamelore.gdl.limits import Limits
from gamelore.gdl.lint import CHECKS, MORE, MOST_FINDINGS, findings_of, lint, lint_text, refuse
from gamelore.gdl.syntax import Rulesheet, _Parser, parse
from parsing import num_calls

MALFORMED = Path(__file__).parent / "malformed"
EXPECTED = tomllib.loads((MALFORMED / "expected.toml").read_text(encoding="utf-8"))

# games/edge/VERDICTS.md: accept is no error, warn no error but a warning, reject at least one error. That validator
# rejects test_clean_not_distinct, where gamelore may accept with a warning.
VERDICTS = {
    "simpleMutex": "accept",
    "test_case_1a": "warn",
    "test_case_2a": "accept",
    "test_case_2b": "accept",
    "test_case_3a": "warn",
    "test_case_3b": "reject",
    "test_case_3c": "accept",
    "test_case_3d": "accept",
    "test_case_3e": "reject",
    "test_case_4a": "accept",
    "test_case_5a": "accept",
    "test_case_5b": "accept",
    "test_case_5c": "accept",
    "test_clean_not_distinct": "warn",
    "test_invalid_function_arities_differ": "warn",
    "test_invalid_sentence_arities_differ": "warn",
}

PLAYABLE = """
(role white) (role black) (init (step 1)) (succ 1 2) (succ 2 3)
(<= (legal ?r wait) (role ?r))
(<= (next (step ?m)) (true (step ?n)) (succ ?n ?m))
(<= terminal (true (step 3)))
(<= (goal ?r 100) (role ?r) (true (step 3)))
"""


def codes(rules):
    """The codes of what is wrong with the playable sheet once some rules are added."""
    return [finding.code for finding in lint_text(PLAYABLE + rules)]


def read(name):
    return (MALFORMED / f"{name}.kif").read_text(encoding="utf-8")


def test_the_table_names_every_sheet():
    assert EXPECTED.keys() == {path.stem for path in MALFORMED.glob("*.kif")}
    assert len(EXPECTED) >= 30


def test_every_check_has_a_sheet():
    found = {finding["code"] for sheet in EXPECTED.values() for finding in sheet["findings"]}
    assert found == {check.code for check in CHECKS} | {"syntax"}


@pytest.mark.parametrize("name", EXPECTED)
def test_malformed(name):
    found = [
        {
            "place": f"{finding.line}:{finding.column}",
            "severity": finding.severity,
            "code": finding.code,
            "message": finding.message,
            "remedy": finding.remedy,
        }
        for finding in lint_text(read(name))
    ]
    assert found == EXPECTED[name]["findings"]
    assert found != []


@pytest.mark.parametrize("name", [name for name, sheet in EXPECTED.items() if not sheet["loads"]])
def test_loading_refuses(name):
    path = MALFORMED / f"{name}.kif"
    expected = EXPECTED[name]["findings"][0]
    syntax = expected["code"] == "syntax"
    with pytest.raises(GDLSyntaxError if syntax else GDLSemanticError) as caught:
        refuse(parse(read(name), path))
    error = caught.value
    assert (f"{error.line}:{error.column}", error.message) == (expected["place"], expected["message"])
    assert error.remedy == expected["remedy"]
    assert error.path == path
    assert str(error).startswith(f"{path}:{expected['place']}: {expected['message']}")


@pytest.mark.parametrize("name", [name for name, sheet in EXPECTED.items() if sheet["loads"]])
def test_loading_takes(name):
    assert refuse(parse(read(name))) is None


@pytest.mark.parametrize("name", EXPECTED)
def test_line_ends_move_nothing(name):
    other_ends = read(name).replace("\n", "\r\n")
    assert lint_text(other_ends) == lint_text(read(name))


def test_a_finding_says_where_what_and_how():
    path = MALFORMED / "goal_above_100.kif"
    (finding,) = lint(parse(path.read_text(encoding="utf-8"), path))
    assert str(finding) == (
        f"{path}:5:17: error: expected a goal that is a whole number from 0 to 100, got 150 [goal-out-of-range]\n"
        "  in (<= (goal white 150) (true (step 2)))\n"
        "  remedy: scale the goals of all roles to the range from 0 to 100"
    )


def test_the_playable_sheet_has_no_flaw():
    assert codes("") == []


@pytest.mark.parametrize(
    "rule",
    [
        "(<= (next (s ?x)) (or (succ ?x 1) (and (succ 1 ?x) (distinct ?x 2))))",
        "(<= (next (s ?x)) (succ ?x ?y) (or (not (succ ?y ?x)) (distinct ?x ?y)))",
        "(<= (next (s ?x)) (and (succ ?x ?y) (true (step ?y))))",
        "(<= (next (s ?x)) (not (succ ?x ?x)) (succ 1 ?x))",
    ],
)
def test_safe_variables(rule):
    assert "unsafe-variable" not in codes(rule)


@pytest.mark.parametrize(
    "rule",
    [
        "(<= (next (s ?x)) (or (succ ?x 1) (and (true (step 1)) (distinct ?x 2))))",
        "(<= (next s) (or (succ ?x 1) (true (step 2))) (distinct ?x 2))",
        "(<= (next s) (or (succ ?x 1) (not (succ ?x 2))))",
        "(<= (next s) (not (and (succ ?x 1) (succ ?x 2))))",
        "(<= (next (s ?x)) (distinct ?x 1))",
        "(<= (next (s ?x)) (not (distinct ?x 1)))",
    ],
)
def test_unsafe_variables(rule):
    assert "unsafe-variable" in codes(rule)
    with pytest.raises(GDLSemanticError, match=r"the variable \?x .* is in no positive condition"):
        refuse(parse(PLAYABLE + rule))


def test_a_variable_is_reported_once_in_a_rule():
    assert codes("(<= (next (s ?x ?y ?x)) (not (succ ?x ?y)))").count("unsafe-variable") == 2


@pytest.mark.parametrize(
    ("rules", "limited"),
    [
        ("(<= (reach ?x ?z) (reach ?x ?y) (succ ?y ?z))", True),  # ?x in the head, ?y outside the cycle
        ("(<= (reach ?x ?y) (reach ?y ?x))", True),
        ("(<= (reach 1 2) (reach 2 (f a)))", True),
        ("(<= (reach (f ?x) 1) (reach ?x 1))", False),
        ("(<= (reach (f ?x) 1) (reach ?x 1) (succ ?x 2))", True),
        ("(<= (reach ?x (f ?x)) (reach ?y ?x) (succ ?y 2))", True),
        ("(<= (reach ?x (f ?y)) (reach ?x ?y) (not (succ ?y 2)))", False),
        ("(<= (reach ?x (f ?y)) (reach ?x ?y) (or (succ ?y 2) (succ 2 ?y)))", True),
        ("(<= (reach ?x (f ?y)) (reach ?x ?y) (or (succ ?y 2) (succ 2 ?x)))", False),
    ],
)
def test_recursion_restriction(rules, limited):
    found = codes(f"(<= (next (r ?x)) (reach ?x ?x)) {rules}")
    assert ("unlimited-recursion" not in found) == limited


def test_a_cycle_names_its_way():
    rules = "(<= (next s) a) (<= a b (not c)) (<= b (true (step 1))) (<= c d) (<= d a)"
    (finding,) = lint_text(PLAYABLE + rules)
    assert finding.message == "a cycle of relations has a negation in it: a -> not c -> d -> a"


def test_negation_along_a_recursion_but_not_in_it():
    assert codes("(<= (next s) a) (<= a b (not e)) (<= b a) (<= e (true (step 1)))") == []


def test_legal_and_goal_may_ask_for_each_other():
    assert codes("(<= terminal (not anybody)) (<= anybody (legal ?r ?m)) (<= (goal ?r 0) (role ?r) terminal)") == []


def test_one_name_with_several_arities_is_several_relations():
    """Neither `legal` depends on `does` here, nor p on its own negation."""
    best = "(best x y) (<= (legal ?r ?m) (role ?r) (best ?m ?n)) (<= (best ?m) (does ?r ?m)) (<= (next b) (best x))"
    assert codes(best) == ["several-arities"]
    assert load(PLAYABLE + best).start().legal == {"white": ["wait", "x"], "black": ["wait", "x"]}
    assert codes("(p 2 2) (<= (p ?x) (succ ?x ?y) (not (p ?x ?x))) (<= (next p) (p 1))") == ["several-arities"]


def test_roles_may_be_variables_or_terms():
    sheet = PLAYABLE + "(role (red 1)) (<= (legal (red 1) rest) (true (step 1))) (<= (goal (red 2) 0) (true (step 1)))"
    (finding,) = lint_text(sheet)
    assert finding.message == "'goal' has (red 2) as its role, but (red 2) is not declared as a role"
    assert finding.remedy == "use one of the roles white, black, (red 1), or add (role (red 2))"


@pytest.mark.parametrize("value", ["0", "7", "050", "100"])
def test_goals_in_range(value):
    assert codes(f"(<= (goal white {value}) (true (step 2)))") == []


@pytest.mark.parametrize("value", ["101", "1e2", "50.0", "(half 100)", "9" * 5000])
def test_goals_out_of_range(value):
    assert codes(f"(<= (goal white {value}) (true (step 2)))") == ["goal-out-of-range"]


def test_no_role_is_reported_once_not_with_every_rule():
    assert [finding.code for finding in lint_text("(legal a b) (goal a 1) terminal")] == ["missing"]


def test_words_of_incomplete_information_are_known():
    assert codes("(<= (sees white (step ?n)) (true (step ?n)))") == []


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(shared, name):
    sheet = parse((shared / "games" / "edge" / f"{name}.kif").read_text(encoding="utf-8"))
    severities = {finding.severity for finding in lint(sheet)}
    verdict = VERDICTS[name]
    assert ("error" in severities) == (verdict == "reject")
    assert "warning" in severities or verdict != "warn"
    if verdict == "reject":
        with pytest.raises(GDLSemanticError):
            refuse(sheet)
    else:
        refuse(sheet)


def test_there_is_a_verdict_on_every_edge_sheet(shared):
    assert VERDICTS.keys() == {path.stem for path in (shared / "games" / "edge").glob("*.kif")}


def test_public_rulesheets_load(shared):
    """Everybody plays them, so none is refused; the only errors are goals of a role that one of them forgot."""
    errors = {}
    paths = sorted((shared / "games").glob("*.kif"))
    assert len(paths) >= 183
    for path in paths:
        sheet = parse(path.read_text(encoding="utf-8"), path)
        refuse(sheet)
        for finding in lint(sheet):
            if finding.severity == "error":
                errors.setdefault(path.stem, []).append((finding.line, finding.code))
    assert errors == {"mummymaze1p": [(360, "unknown-role"), (363, "unknown-role"), (366, "unknown-role")]}


@pytest.mark.parametrize("name", rulesheets.names())
def test_shipped_rulesheets_have_no_flaw(name):
    path = rulesheets.path(name)
    assert lint(parse(path.read_text(encoding="utf-8"), path)) == []


def test_negation_in_a_cycle_is_an_error_only_where_the_ground_atoms_are_in_one():
    cycle = read("negation_in_cycle")
    (finding,) = [finding for finding in rulesheet_findings(cycle) if finding.severity == "error"]
    assert finding.code == "no-perfect-model"
    with pytest.raises(GDLSemanticError) as caught:
        load(cycle, engine="native")
    assert (caught.value.line, caught.value.column) == (finding.line, finding.column) != (1, 1)
    assert caught.value.rule == finding.rule != ""
    harmless = PLAYABLE + "(n 0) (n 1) (next_to 0 1) (<= (even 0) (n 0)) (<= (even ?y) (next_to ?x ?y) (not (even ?x)))"
    assert [finding.code for finding in rulesheet_findings(harmless) if "cycle" in finding.code] == [
        "negation-in-cycle"
    ]
    assert not [finding for finding in rulesheet_findings(harmless) if finding.severity == "error"]


def test_a_missing_perfect_model_is_told_at_its_own_cycle():
    """A harmless cycle of relations comes before it, and the rules of one relation are in both."""
    text = PLAYABLE + "(<= (goal white 0) (not (goal white 100)))\n(<= (p 1) (q 1) (not (p 2)))\n"
    text += "(<= (p ?x) (true (step ?x)) (not (q ?x)))\n(<= (q ?x) (true (step ?x)) (not (p ?x)))\n(<= (next s) (p 1))"
    findings = [finding for finding in rulesheet_findings(text) if "cycle" in finding.code or "model" in finding.code]
    assert [(finding.line, finding.code) for finding in findings] == [
        (7, "negation-in-cycle"),
        (8, "negation-in-cycle"),
        (9, "no-perfect-model"),
        (10, "negation-in-cycle"),
    ]
    with pytest.raises(GDLSemanticError, match=r"\(p .\) depends on not \(q .\)") as caught:
        load(text, engine="native")
    assert (caught.value.line, caught.value.rule) == (9, findings[2].rule)


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_recursion_without_end_stops_at_the_limits(engine):
    def play_once():
        position = load(read("endless_recursion"), engine=engine, limits=Limits(literals=20_000)).start()
        position.play([moves[0] for moves in position.legal.values()])

    with pytest.raises(GroundingError, match="20000 literals"):
        play_once()


def test_rules_without_their_text_are_checked_too():
    text = PLAYABLE + "(<= (legal ?R wait) (role ?r) (true (step (3)))) (unused)"
    assert [finding.code for finding in lint(parse(text))] == [
        "several-spellings",
        "parenthesised",
        "never-used",
        "parenthesised",
    ]
    assert [finding.code for finding in lint(Rulesheet(parse(text).rules, ""))] == ["never-used"]


def test_variables_may_be_spelled_otherwise_in_another_rule():
    assert codes("(<= (next (s ?X)) (succ ?X 2)) (<= (next (s ?x)) (succ ?x 3))") == []
    assert codes("(<= (next (s ?Xy)) (succ ?xY 2) (succ ?xy 3))") == ["several-spellings"] * 2


def test_a_relation_that_only_its_own_cycle_uses_is_not_used():
    assert codes("(<= (a ?x) (b ?x)) (<= (b ?x) (a ?x)) (<= (b ?x) (succ ?x 1))") == ["never-used"] * 2
    assert codes("(<= (a ?x) (b ?x)) (<= (b ?x) (a ?x)) (<= (b ?x) (succ ?x 1)) (<= (next n) (a 1))") == []
    assert codes("(<= (c ?x) (d ?x)) (d 1)") == ["never-used"]  # d is used, by c


def test_a_rule_that_does_not_parse_hides_no_other_finding():
    text = PLAYABLE + "(goal white)\n(<= (p ?x) (not (q ?x)))\n(<= (not a))\n(goal white 200)\n(q"
    assert [finding.code for finding in lint_text(text)] == [
        "syntax",
        "unsafe-variable",
        "syntax",
        "goal-out-of-range",
        "syntax",
    ]
    assert "never-used" in [finding.code for finding in lint_text(PLAYABLE + "(q 1)")]


MANY = 2000
KINDS = {
    "syntax": "empty parentheses",
    "unsafe-variable": "unsafe",
    "unlimited-recursion": "recursion with terms",
    "negation-in-cycle": "cycle with not",
}
FLOODS = {
    **{code: floods.FLOODS[kind](MANY, " ") for code, kind in KINDS.items()},
    "unknown-role": " ".join(f"(<= (legal r{i} noop) (true a))" for i in range(MANY)),
    "never-derived": f"(<= (p ?x) {' '.join(f'(q{i} ?x)' for i in range(MANY))})",
    "several-arities": " ".join(f"(p{' a' * i})" for i in range(1, 100)),
    "state-depends-on-moves": f"(<= p (does r noop)) {'(<= terminal p) ' * MANY}",
}


@pytest.mark.parametrize("code", FLOODS)
def test_a_flood_of_findings_is_cut_and_each_is_short(code):
    findings = [finding for finding in lint_text(f"{FLOODS[code]} {PLAYABLE}") if finding.code == code]
    assert len(findings) == MOST_FINDINGS + 1
    assert [finding.message for finding in findings].count(MORE) == 1
    assert findings[-1].message == MORE
    assert all(len(str(finding)) < 1600 for finding in findings)


def test_a_long_rule_is_shortened_in_the_middle():
    rule = f"(<= (p ?x) {' '.join(f'(true (f {i}))' for i in range(500))})"
    shown = lint_text(rule)[-1].rule
    assert shown.startswith("(<= (p ?x) (true (f 0))")
    assert "more characters" in shown
    assert shown.endswith("(true (f 499)))")
    with pytest.raises(GDLSemanticError, match="more characters") as caught:
        refuse(parse(f"{rule} {PLAYABLE}"))
    assert len(str(caught.value)) < 1600


def test_a_refusal_is_a_real_finding_in_any_order_of_the_text():
    text = "(<= (init x) (does r noop)) " + " ".join(f"(<= (init x{i}) (true a))" for i in range(MANY))
    with pytest.raises(GDLSemanticError, match="'init' depends on"):
        refuse(parse(f"{text} {PLAYABLE}"))


def test_a_shortened_text_tells_how_much_is_left_out_and_stays_as_it_is():
    text = "".join(map(str, range(3000)))
    short = shortened(text)
    assert len(short) <= SHORT
    beginning, number, end = re.fullmatch(r"(.*) \.\.\. (\d+) more characters \.\.\. (.*)", short).groups()
    assert (len(beginning) + int(number) + len(end), text.startswith(beginning), text.endswith(end)) == (
        len(text),
        1,
        1,
    )
    assert shortened(short) == short
    assert shortened("x" * SHORT) == "x" * SHORT


@pytest.mark.parametrize("begin", ["(<= ", "(or ", "("])
def test_a_long_comment_is_read_in_one_way_only(begin: str) -> None:
    """A check that tries all ways to read the comment would never end."""
    text = f"{begin}{';' * 60} a comment of words {'and spaces ' * 30}\n (next a) (true b))"
    assert lint_text(text) != []


def test_findings_are_kept_where_a_budget_ends_in_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, read = clock_to_set(monkeypatch), _Parser.rule

    def slow(*arguments: Any) -> Any:
        clock.now += 1
        return read(*arguments)

    monkeypatch.setattr(_Parser, "rule", slow)
    findings = lint_text("(role x) (legal x)\n" + "(q 1)" * 30, allowed=Limits(seconds=10))
    assert [(finding.severity, finding.code, finding.line) for finding in findings] == [
        ("error", "too-large", 1),
        ("error", "syntax", 1),
    ]
    assert findings[0].message == "expected the check of the rulesheet to end within 10 s, but it did not"
    assert findings[0].remedy == "raise the limit"


def test_what_reaches_a_relation_is_searched_once_for_all_flaws() -> None:
    chain = " ".join(f"(<= p{i} p{i + 1})" for i in range(1000))
    sheet = parse(f"{PLAYABLE} {chain} (<= p1000 (does ?r ?m)) {'(<= terminal p0) ' * 60}")
    one = parse(f"{PLAYABLE} {chain} (<= p1000 (does ?r ?m)) (<= terminal p0)")
    found = partial(findings_of, code="state-depends-on-moves")
    assert num_calls(found, sheet) < num_calls(found, one) + 4 * 1000 * (MOST_FINDINGS + 1)
    assert found(one)[0].message == (
        "'terminal' depends on 'does': terminal -> p0 -> p1 -> p2 -> p3 -> ... 993 more ... -> p997 -> p998 -> p999 -> "
        "p1000 -> does"
    )


def test_comments_around_a_word_in_parentheses() -> None:
    assert codes("(<= (next s) ( ; (a\n succ\n ;)\n 1 2)) (<= (next t) (true (step ( ; (b\n 1 ; )\n))))") == [
        "parenthesised"
    ]
