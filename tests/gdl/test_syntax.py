"""The parser: what it reads, where it says that things stand, and that it fails only as it promises."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gamelore.errors import GDLError, GDLSyntaxError
from gamelore.gdl import syntax
from gamelore.gdl.lint import lint
from gamelore.gdl.syntax import And, Atom, Constant, Distinct, Function, Location, Not, Or, Rule, Variable, parse

NOWHERE = Location(1, 1)
WORDS = syntax.LOGICAL_WORDS | syntax.KEYWORD_ARITY.keys()

# ---- rulesheets made up by hypothesis ---------------------------------------------------------------------------

letters = st.text("abcXYZ019_+-'<=>.é", min_size=1, max_size=4)
names = st.one_of(letters, st.sampled_from(sorted(WORDS)))
constants = names.map(lambda name: Constant(name.lower(), name, NOWHERE))
variables = letters.map(lambda name: Variable(name.lower(), NOWHERE))


def functions(arguments):
    return st.builds(
        lambda name, args: Function(name.lower(), tuple(args), name, NOWHERE),
        names,
        st.lists(arguments, min_size=1, max_size=3),
    )


terms = st.recursive(st.one_of(constants, variables), functions, max_leaves=6)


@st.composite
def atoms(draw):
    word = draw(st.one_of(letters.filter(lambda name: name.lower() not in WORDS), st.sampled_from(sorted(syntax.FORM))))
    word = "p" if word in syntax.LOGICAL_WORDS else word
    arity = syntax.KEYWORD_ARITY.get(word, draw(st.integers(0, 3)))
    return Atom(word.lower(), tuple(draw(terms) for _ in range(arity)), word, NOWHERE)


def connectives(conditions):
    several = st.lists(conditions, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Not, conditions, st.just(NOWHERE)),
        st.builds(Or, several, st.just(NOWHERE)),
        st.builds(And, several, st.just(NOWHERE)),
    )


conditions = st.recursive(
    st.one_of(atoms(), st.builds(Distinct, terms, terms, st.just(NOWHERE))), connectives, max_leaves=5
)
rules = st.one_of(
    st.builds(Rule, atoms(), st.lists(conditions, max_size=3).map(tuple), st.just(NOWHERE)),
    st.builds(Rule, atoms(), st.just(()), st.just(NOWHERE), st.just(False)),
)
sheets = st.lists(rules, max_size=4).map(tuple)
gaps = st.sampled_from([" ", "\t", "\n", "\r\n", "\r", "  ; a comment ) ( <= ?\n", ";\r\n", ";;; \r"])


@given(sheets)
def test_print_and_parse_again(made):
    text = "\n".join(map(str, made))
    parsed = parse(text)
    assert parsed.rules == made
    assert [rule.arrow for rule in parsed.rules] == [rule.arrow for rule in made]
    assert str(parsed) == text
    assert parse(str(parsed)) == parse(text)


@given(sheets, st.lists(gaps, min_size=1, max_size=20))
def test_layout_does_not_matter(made, between):
    """Other space, line ends and comments between the tokens: the same rules, and every place is where it says."""
    tokens = re.findall(r"[()]|[^\s()]+", "\n".join(map(str, made)))
    text = "".join(token + between[number % len(between)] for number, token in enumerate(tokens))
    parsed = parse(text)
    assert parsed.rules == made
    lines = syntax.lines(text)
    for thing in everything(parsed.rules):
        begin = thing.spelling if isinstance(thing, Constant) else str(thing)[0]
        here = lines[thing.location.line - 1][thing.location.column - 1 :]
        assert here.startswith(begin) or here.startswith("(")


def everything(things):
    """All rules, conditions and terms."""
    for thing in things:
        yield thing
        match thing:
            case Rule(head, body):
                yield from everything((head, *body))
            case Distinct(left, right):
                yield from everything((left, right))
            case Not(inner):
                yield from everything((inner,))
            case Or(parts) | And(parts) | Atom(_, parts) | Function(_, parts):
                yield from everything(parts)


# ---- arbitrary text ---------------------------------------------------------------------------------------------

scraps = st.sampled_from(
    ["(", ")", "?", "?x", ";", "\n", "\r\n", "\r", " ", "a", "1", "()", "\ufeff", "(p)", "é", "\0"]
)
words = st.sampled_from(sorted(WORDS))
wild_text = st.one_of(st.text(), st.lists(st.one_of(scraps, words, words.map("({} ".format))).map("".join))


def outcome(read, text):
    """What a parser makes of a text, or its error; any other exception fails the test."""
    try:
        return read(text)
    except GDLSyntaxError as error:
        return error


@given(wild_text)
@example("")
@example("\ufeff)")
@example("(a\r\n(b\r(")
def test_any_text_parses_or_fails_at_a_place_inside(text):
    result = outcome(parse, text)
    if isinstance(result, GDLSyntaxError):
        lines = syntax.lines(text)
        assert 1 <= result.line <= len(lines)
        assert 1 <= result.column <= len(lines[result.line - 1])
        assert result.message
        assert result.remedy
    else:
        assert parse(str(result)).rules == result.rules


@given(wild_text)
def test_whatever_parses_can_be_checked(text):
    result = outcome(parse, text)
    if not isinstance(result, GDLSyntaxError):
        places = [(finding.line, finding.column) for finding in lint(result)]
        assert places == sorted(places)
        assert all(1 <= line <= len(syntax.lines(text)) and column >= 1 for line, column in places)


@given(wild_text)
def test_any_text_is_a_term_or_fails(text):
    result = outcome(syntax.parse_term, text)
    assert result.remedy if isinstance(result, GDLSyntaxError) else syntax.parse_term(str(result)) == result


# ---- the language, one habit of real rulesheets after the other ---------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end):
    sheet = parse(end.join(["; first", "(role white) ; (role black)", "", "  (init (cell 1 b))"]))
    assert str(sheet) == "(role white)\n(init (cell 1 b))"
    role, init = sheet.rules
    assert role.location == Location(2, 1)
    assert init.location == Location(4, 3)
    assert init.head.args[0].location == Location(4, 9)
    assert init.head.args[0].args[1].location == Location(4, 17)


def test_a_comment_ends_a_name_and_may_end_the_text():
    assert str(parse("(role white;black\n)(role red) ; no line end")) == "(role white)\n(role red)"


def test_case_is_folded_and_spelling_kept():
    first, second = parse("(Role XPlayer) (ROLE xplayer)").rules
    assert first == second
    assert hash(first) == hash(second)
    assert first.head.name == "role"
    assert first.head.args[0].name == "xplayer"
    assert str(first) == "(Role XPlayer)"
    (rule,) = parse("(<= P (Or (Not Q) (DISTINCT ?X ?x)))").rules
    assert isinstance(rule.body[0], Or)
    assert isinstance(rule.body[0].branches[0], Not)
    assert rule.body[0].branches[1] == Distinct(Variable("x", NOWHERE), Variable("x", NOWHERE), NOWHERE)


def test_parentheses_around_a_name_mean_nothing():
    assert parse("(<= (p) (q) (not (r)))").rules == parse("(<= p q (not r))").rules
    assert parse("(init (a))").rules == parse("(init a)").rules
    assert syntax.parse_term("(noop)") == syntax.parse_term(" noop ; a pass\n")


def test_nested_or_and_and():
    (rule,) = parse("(<= p (or q (or r (and s (or)) (not (distinct a b)))))").rules
    assert str(rule) == "(<= p (or q (or r (and s (or)) (not (distinct a b)))))"
    inner = rule.body[0].branches[1]
    assert isinstance(inner, Or)
    assert inner.branches[1].parts[1] == Or((), NOWHERE)
    assert inner.branches[1].parts[1].location == Location(1, 26)


def test_a_rule_with_an_empty_body_is_no_other_fact():
    with_arrow, fact = parse("(<= (goal you 100)) (goal you 100)").rules
    assert with_arrow == fact
    assert with_arrow.arrow
    assert not fact.arrow
    assert str(with_arrow) == "(<= (goal you 100))"


@pytest.mark.parametrize("name", ["+", "1st", "-", "don't", "<", "a.b", "=>", "¬é", '"x"', "a?b"])
def test_names_hold_almost_any_character(name):
    (rule,) = parse(f"({name} {name})").rules
    assert (rule.head.name, rule.head.args[0].name) == (name, name)


def test_a_byte_order_mark_is_not_part_of_the_text():
    (rule,) = parse("\ufeff(role white)").rules
    assert rule.head.name == "role"
    assert rule.location == Location(1, 1)


def test_nesting_to_the_limit():
    deep = "(f " * (syntax.MAX_NESTING - 1) + "x" + ")" * (syntax.MAX_NESTING - 1)
    sheet = parse(f"(init {deep})")
    assert str(sheet) == f"(init {deep})"
    assert sheet.rules == parse(str(sheet)).rules
    assert hash(sheet.rules[0]) == hash(parse(str(sheet)).rules[0])
    assert lint(sheet)[0].code == "missing"
    with pytest.raises(GDLSyntaxError, match="1:604: expected at most 200 levels of parentheses, got more"):
        parse(f"(init (f {deep}))")
    deep_body = "(not " * (syntax.MAX_NESTING - 1) + "p" + ")" * (syntax.MAX_NESTING - 1)
    assert str(parse(f"(<= q {deep_body})")) == f"(<= q {deep_body})"


def test_many_closed_parentheses_are_not_deep():
    assert len(parse("(p a)" * 5000).rules) == 5000


def test_an_error_says_where_what_and_how(tmp_path):
    path = tmp_path / "game.kif"
    with pytest.raises(GDLError) as caught:
        parse("(role white)\n(<= (next x)\n    (does white))", path)
    assert str(caught.value) == (
        f"{path}:3:5: expected 2 arguments for 'does', got 1\n"
        "  in (<= (next x) (does white))\n"
        "  remedy: write (does role move)"
    )
    assert isinstance(caught.value, ValueError)


def test_terms():
    assert str(syntax.parse_term("(mark 2 ( f a) )")) == "(mark 2 (f a))"
    assert syntax.parse_term("?Row") == Variable("row", NOWHERE)
    for text, number in (("", 0), ("a b", 2)):
        with pytest.raises(GDLSyntaxError, match=f"expected one term, got {number}"):
            syntax.parse_term(text)


def test_public_rulesheets_survive_printing(shared):
    paths = sorted((shared / "games").rglob("*.kif"))
    assert len(paths) >= 183
    for path in paths:
        sheet = parse(path.read_text(encoding="utf-8"), path)
        assert parse(str(sheet)).rules == sheet.rules, path


def test_natural_order():
    assert sorted(["(c 10 a)", "(c 9 b)", "c", "(c 9 a)"], key=syntax.natural_order) == [
        "(c 9 a)",
        "(c 9 b)",
        "(c 10 a)",
        "c",
    ]
