"""Canonical layout: nothing but space changes, every comment stays at its place, and doing it twice changes no more."""

from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gamelore import rulesheets
from gamelore.errors import GDLSyntaxError
from gamelore.gdl.syntax import WIDTH, formatted, parse, tokens


def words(text):
    return [token.text for token in tokens(text)]


def split(text):
    """The words of a text, and how often it has each comment."""
    found = [token.text for token in tokens(text, comments=True)]
    comments = Counter(token.rstrip() for token in found if token.startswith(";"))
    return [token for token in found if not token.startswith(";")], comments


def check_kept(text):
    """The formatted text, after a look at what must hold of every one. The same words are the same rules."""
    after = formatted(text)
    assert split(after) == split(text)
    assert formatted(after) == after
    return after


LONG = (
    "(<= (legal ?player (move ?x1 ?y1 ?x2 ?y2)) (true (control ?player)) (true (cell ?x1 ?y1 ?player)) (open ?x2 ?y2))"
)
HABITS = {
    "a rule that fits": (
        "(<=  terminal\n\t(line x)\n\n   )",
        "(<= terminal (line x))",
    ),
    "one condition a line": (
        LONG,
        """
        (<= (legal ?player (move ?x1 ?y1 ?x2 ?y2))
            (true (control ?player))
            (true (cell ?x1 ?y1 ?player))
            (open ?x2 ?y2))
        """,
    ),
    "a long `or` inside": (
        "(<= p (not (or (true (control ?player)) (and (a_condition ?x1 ?y1) (another_condition ?x1 ?y1)) (or))) q)",
        """
        (<= p
            (not (or (true (control ?player))
                     (and (a_condition ?x1 ?y1) (another_condition ?x1 ?y1))
                     (or)))
            q)
        """,
    ),
    "facts keep their groups": (
        "\n\n(succ 1 2) (succ\n2 3)\n(role  x)\n\n\n\n(role o)  (<= p q) (<= p r)\n\n",
        """
        (succ 1 2) (succ 2 3)
        (role x)

        (role o)
        (<= p q)
        (<= p r)
        """,
    ),
    "comments on lines of their own": (
        "  ; one  \n;two\n(p)\n\n  ;;; three\n\n\n\n; four\n(<= q ; head\n ; own\n r\n; last\n)",
        """
        ; one
        ;two
        (p)

        ;;; three

        ; four
        (<= q  ; head
            ; own
            r
            ; last
            )
        """,
    ),
    "comments behind code, in one column": (
        "(step 1 2);x\n(go 1);y\n(<= p\n q;behind q\n (r 1 2)) ; behind it all\n(s); z",
        """
        (step 1 2)  ;x
        (go 1)      ;y
        (<= p
            q         ;behind q
            (r 1 2))  ; behind it all
        (s)           ; z
        """,
    ),
    "a comment before the last parentheses": (
        "(<= p\n (not (q a ; why\n ) ; and\n ))\n",
        """
        (<= p
            (not (q a)  ; why
                 ; and
                 ))
        """,
    ),
    "comments in odd places": (
        "( ; in front\n<= ; behind\n (p ; name\n a ; first\n b))",
        """
        ; in front
        (<=       ; behind
            (p    ; name
               a  ; first
               b))
        """,
    ),
    "words as they were": ("(ROLE White) (<= (Q) (AND (p) (r ?X)))", "(ROLE White)\n(<= (Q) (AND (p) (r ?X)))"),
}


@pytest.mark.parametrize("habit", HABITS)
def test_habits(habit):
    before, after = HABITS[habit]
    assert check_kept(before) == dedent(after).strip() + "\n"


def test_the_width_is_that_of_the_code():
    rule = f"(<= {'h' * (WIDTH - 9)} (q))"
    assert check_kept(f"{rule} ; and a comment beyond") == f"{rule}  ; and a comment beyond\n"
    assert check_kept(rule.replace("q", "qq")) == f"{rule[:-5]}\n    (qq))\n"
    fact = f"(p {'a' * WIDTH})"
    assert check_kept(f"(p)   {fact}") == f"(p)\n{fact}\n"
    assert check_kept("(p a) " * 40).splitlines() == [" ".join(["(p a)"] * 16)] * 2 + [" ".join(["(p a)"] * 8)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_are_kept(end):
    text = end.join(["; first ", "(role white)", "", "", "(role   black)"])
    assert check_kept(text) == end.join(["; first", "(role white)", "", "(role black)", ""])


def test_a_byte_order_mark_and_lone_carriage_returns_go():
    assert check_kept("\ufeff; one\r(p)\r\ufeff(q a)") == "; one\n(p)\n(q a)\n"


@pytest.mark.parametrize("text", ["", "\n\n", " \t", "\ufeff"])
def test_nothing_stays_nothing(text):
    assert formatted(text) == ""


def test_a_text_that_is_no_rulesheet_is_refused_at_its_place():
    with pytest.raises(GDLSyntaxError, match=r"bad\.kif:2:1: this '\(' is never closed"):
        formatted("(role white)\n(p (q)", Path("bad.kif"))


# ---- made-up sheets ---------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "?x", "12", "succ", "a_long_name_that_fills_the_line"])
terms = st.recursive(names, lambda parts: st.lists(parts, max_size=3).map(lambda args: f"(f {' '.join(args)})"))
atoms = st.one_of(
    st.sampled_from(["terminal", "(p)", "open"]), st.lists(terms).map(lambda args: f"(p {' '.join(args)})")
)
conditions = st.recursive(
    st.one_of(atoms, st.tuples(terms, terms).map("(distinct {0[0]} {0[1]})".format)),
    lambda parts: st.one_of(
        parts.map("(not {})".format),
        st.tuples(st.sampled_from(["or", "and", "OR"]), st.lists(parts, max_size=4)).map(
            lambda made: f"({' '.join([made[0], *made[1]])})"
        ),
    ),
)
rules = st.tuples(atoms, st.lists(conditions, max_size=5)).map(lambda made: f"(<= {' '.join([made[0], *made[1]])})")
sheets = st.lists(st.one_of(rules, atoms), max_size=6).map("\n".join)
gaps = st.sampled_from(
    [
        " ",
        " ",
        "\t",
        "\n",
        "\n\n",
        "\n \n\n",
        "\r\n",
        "\r",
        "\ufeff ",
        ";\n",
        " ; behind ) (\n",
        "\n; own \n",
        "\n\n;; far ;\r\n\r\n",
    ]
)


@settings(deadline=None, max_examples=200)
@given(sheets, st.lists(gaps, min_size=1, max_size=30))
@example("(<= p (q a))", ["; 1\n", "; 2\n", "; 3\n", "\n; 4\n", "; 5\n", "; 6\n", "; 7\n", "; 8\n"])
def test_any_sheet_keeps_its_words_rules_and_comments(sheet, between):
    parts = words(sheet)
    text = "".join(part + between[number % len(between)] for number, part in enumerate(parts))
    after = check_kept(between[-1] + text)
    assert parse(after).rules == parse(text).rules
    lines = after.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert all(line or lines[number - 1] for number, line in enumerate(lines))


# ---- real sheets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", rulesheets.names())
def test_shipped_rulesheets_keep_what_they_say(name):
    text = rulesheets.path(name).read_text(encoding="utf-8")
    assert check_kept(text).splitlines()[0] == text.splitlines()[0]


@pytest.mark.parametrize("part", range(4))
def test_public_rulesheets_keep_what_they_say(shared, part):
    paths = sorted((shared / "games").rglob("*.kif"))
    assert len(paths) >= 183
    for path in paths[part::4]:
        check_kept(path.read_bytes().decode("utf-8"))
