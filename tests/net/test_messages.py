"""Every message and every dialect of the protocol; what hostile texts come to; round trips."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelore import rulesheets
from gamelore.errors import ProtocolError
from gamelore.gdl import syntax
from gamelore.gdl.syntax import printable
from gamelore.net.messages import (
    LEAST,
    MAX_CLOCK,
    MAX_MATCH_ID,
    MAX_MOVES,
    MAX_NESTING,
    MAX_TERM,
    Abort,
    Info,
    Play,
    PlayerInfo,
    Preview,
    Start,
    Stop,
    answer_time,
    left,
    match_id,
    parse,
    parse_reply,
    parse_status,
    show,
    show_info,
    term,
    thinking_time,
)

RULES = "(role x) (role o)"
START = Start("m.1", "x", RULES, 10, 5)
JOINT = ("(mark 1 1)", "noop")

EXACT = [
    ("( INFO )", Info()),
    (f"( PREVIEW ( {RULES} ) 10 )", Preview(RULES, 10)),
    (f"( START m.1 x ( {RULES} ) 10 5 )", START),
    (f"( START m.1 x ( {RULES} ) 0 0 )", Start("m.1", "x", RULES, 0, 0)),
    ("( PLAY m.1 NIL )", Play("m.1", None)),
    ("( PLAY m.1 ( (mark 1 1) noop ) )", Play("m.1", JOINT)),
    ("( PLAY m.1 ( noop ) )", Play("m.1", ("noop",))),
    ("( STOP m.1 ( (mark 1 1) noop ) )", Stop("m.1", JOINT)),
    ("( STOP m.1 NIL )", Stop("m.1", None)),
    ("( ABORT m.1 )", Abort("m.1")),
]

DIALECTS = [
    ("(info)", Info()),
    ("INFO", Info()),
    ("( PING )", Info()),
    ("ping", Info()),
    ("\ufeff( Info )\r\n", Info()),
    ("( INFO and more (of that) )", Info()),
    (f"(preview ({RULES}))", Preview(RULES, 0)),
    (f"(PREVIEW ({RULES}) 7 further (arguments))", Preview(RULES, 7)),
    (f"(start m.1 x ({RULES}) 10 5)", START),
    (f"\t(START\r\n m.1\r\n x\r\n ( {RULES} )\r\n 10\r\n 5\r\n)\r\n", START),
    (f"(START m.1 x ({RULES}) 10.0 5.9 and more)", START),
    (f"(START m.1 (x) ({RULES}) 10 5)", START),
    (f"(START M.1 X ({RULES.upper()}) 10 5)", Start("M.1", "X", RULES.upper(), 10, 5)),
    (f"(START m.1 x ({RULES}))", Start("m.1", "x", RULES, 0, 0)),
    (f"(START m.1 x ({RULES}) 9)", Start("m.1", "x", RULES, 9, 0)),
    (f"; from afar )\n(START m.1 ; its (id\n x ({RULES}) 10 5) ; (", START),
    ("(START m.1 x ((role x) ; why ))\n (role o)) 10 5)", Start("m.1", "x", "(role x)         \n (role o)", 10, 5)),
    ("(START m.1 x () 10 5)", Start("m.1", "x", "", 10, 5)),
    ("(play m.1 nil)", Play("m.1", None)),
    ("(PLAY m.1 Nil)", Play("m.1", None)),
    ("(PLAY m.1)", Play("m.1", None)),
    ("(PLAY m.1 ())", Play("m.1", None)),
    ("(PLAY m.1 noop)", Play("m.1", ("noop",))),
    ("(PLAY m.1((mark 1 1)noop))", Play("m.1", JOINT)),
    ("(PLAY M.1 ((MARK 1 1) NOOP))", Play("M.1", ("(MARK 1 1)", "NOOP"))),
    ("( PLAY m.1 ( ( mark\n1\t1 ) ( noop ) ) further )", Play("m.1", JOINT)),
    ("(PLAY m.1 ((f (g a) (b))))", Play("m.1", ("(f (g a) b)",))),
    ("(Stop m.1 ((mark 1 1) noop))", Stop("m.1", JOINT)),
    ("(STOP m.1)", Stop("m.1", None)),
    ("(abort m.1 because (so))", Abort("m.1")),
]

REFUSED = [
    ("", "expected one message, got 0 expressions"),
    (" \r\n ; nothing", "got 0 expressions"),
    ("( INFO ) ( INFO )", "got 2 expressions"),
    ("( INFO", "without a '\\)'"),
    ("( INFO ) )", "without a '\\('"),
    (") INFO (", "without a '\\('"),
    ("()", "got nothing"),
    ("((INFO))", r"got \(INFO\)"),
    ("( DANCE m )", "got DANCE; send one of these"),
    ("( \x1b[31mINFO )", r"got the character '\\x1b' at position 2"),
    ("( INFO\x00 )", r"got the character '\\x00' at position 6"),
    ("( ABORT m\u00fcnchen )", r"got the character '\\xfc' at position 9"),
    ("( ABORT \u200em )", r"got the character '\\u200e'"),
    ("( ABORT )", "expected the id of a match in ABORT, got nothing"),
    ("( ABORT (m 1) )", "expected one word"),
    ("( ABORT () )", "expected one word"),
    (f"( ABORT {'m' * (MAX_MATCH_ID + 1)} )", f"at most {MAX_MATCH_ID} characters"),
    ("( PREVIEW )", "expected rules in parentheses in PREVIEW, got nothing"),
    ("( PREVIEW rules 10 )", "got rules"),
    ("( START m x )", "expected rules in parentheses in START, got nothing"),
    ("( START m )", "expected a role in START, got nothing"),
    ("( START m x rules 10 5 )", "got rules"),
    ("( START m () (rules) 10 5 )", "expected a term"),
    ("( START m x (rules) soon 5 )", "expected a clock from 0 to .* got soon"),
    ("( START m x (rules) (10) 5 )", "expected a clock"),
    ("( START m x (rules) -1 5 )", "got -1"),
    ("( START m x (rules) nan inf )", "got nan"),
    (f"( START m x (rules) {MAX_CLOCK + 1} 5 )", "expected a clock"),
    (f"( START m x (rules) {'9' * 100_000} 5 )", "expected a clock"),
    ("( PLAY )", "expected the id of a match in PLAY, got nothing"),
    ("( PLAY m ( () ) )", "expected a term"),
    ("( PLAY m ( ((mark 1 1)) ) )", "expected a term"),
    (f"( PLAY m ( {'a ' * (MAX_MOVES + 1)} ) )", f"at most {MAX_MOVES} moves"),
    (f"( PLAY m ( {'(a b) ' * (MAX_MOVES + 1)} ) )", f"at most {MAX_MOVES} lists"),
    (f"( PLAY m ( {'a' * (MAX_TERM + 1)} ) )", f"at most {MAX_TERM} characters"),
    (f"( PLAY m {'(' * MAX_NESTING}a{')' * MAX_NESTING} )", f"at most {MAX_NESTING} levels"),
    ("( STOP (m) NIL )", "expected one word"),
]


@pytest.mark.parametrize(("text", "message"), EXACT)
def test_what_is_sent_is_exact_and_read_back(text, message):
    assert show(message) == text
    assert parse(text) == message


@pytest.mark.parametrize(("text", "message"), DIALECTS)
def test_dialects(text, message):
    assert parse(text) == message


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_no_message_is_refused(text, why):
    with pytest.raises(ProtocolError, match=why):
        parse(text)


def test_upper_case_is_the_same_message_in_upper_case():
    for text, message in EXACT:
        assert show(parse(text.upper())) == text.upper() == show(message).upper()


@pytest.mark.parametrize("name", rulesheets.names())
def test_shipped_rules_go_over_the_wire(name):
    text = rulesheets.path(name).read_text(encoding="utf-8")
    message = parse(show(Start("m", "x", text, 1, 1)))
    assert isinstance(message, Start)
    assert "\n" not in message.rules
    assert syntax.parse(message.rules).rules == syntax.parse(text).rules


@pytest.mark.parametrize(
    "message",
    [
        Abort("two words"),
        Abort(""),
        Abort("a;b"),
        Abort("m\u00fcnchen"),
        Start("m", "", RULES, 1, 1),
        Start("m", "x y", RULES, 1, 1),
        Start("m", "x", "(role x", 1, 1),
        Start("m", "x", ") 1 1) (ABORT m", 1, 1),
        Start("m", "x", "(role \u00fc)", 1, 1),
        Start("m", "x", RULES, -1, 1),
        Preview(RULES, MAX_CLOCK + 1),
        Play("m", ("noop", "")),
        Stop("m", ("a) (b",)),
    ],
)
def test_what_cannot_be_said_is_refused(message):
    with pytest.raises(ProtocolError, match="expected"):
        show(message)


def test_comments_may_have_any_characters():
    text = "\ufeff; f\u00fcr zwei (\n( START m x ( (role x) ; \u00fcber\n(role o) ) 1 2 )"
    started = parse(text)
    assert isinstance(started, Start)
    assert started.rules.split() == ["(role", "x)", "(role", "o)"]
    with pytest.raises(ProtocolError, match="printable ASCII"):
        parse("( START m \u00fc ( (role x) ) 1 2 )")


def test_comments_are_not_sent():
    assert show(Preview("(role x) ; \u00fcber\n(role o) ; (\n", 3)) == f"( PREVIEW ( {RULES} ) 3 )"


WORDS = st.text("abcxyzABC019_+-.'?<=", min_size=1, max_size=8).filter(lambda word: word.lower() != "nil")
TERMS = st.recursive(
    WORDS,
    lambda inner: st.builds(
        lambda name, args: f"({' '.join([name, *args])})", WORDS, st.lists(inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)
RULE_TEXTS = st.lists(TERMS, max_size=5).map(" ".join)
CLOCKS = st.integers(0, MAX_CLOCK)
JOINTS = st.none() | st.lists(TERMS, min_size=1, max_size=4).map(tuple)
MESSAGES = st.one_of(
    st.builds(Info),
    st.builds(Preview, RULE_TEXTS, CLOCKS),
    st.builds(Start, WORDS, TERMS, RULE_TEXTS, CLOCKS, CLOCKS),
    st.builds(Play, WORDS, JOINTS),
    st.builds(Stop, WORDS, JOINTS),
    st.builds(Abort, WORDS),
)
SPACES = st.text(" \t\r\n\f\v", min_size=1, max_size=3) | st.just("\n; a ) comment (\n")


@settings(deadline=None)
@given(MESSAGES)
def test_a_message_that_was_shown_is_read_back(message):
    assert parse(show(message)) == message


@settings(deadline=None)
@given(st.one_of(st.builds(Play, WORDS, JOINTS), st.builds(Stop, WORDS, JOINTS)), SPACES, st.booleans())
def test_spaces_do_not_matter(message, space, tight):
    text = show(message)
    spaced = text.replace(" )", ")").replace("( ", "(") if tight else text
    assert parse(spaced.replace(" ", space)) == message


@settings(deadline=None)
@given(TERMS, st.text(max_size=20))
def test_of_a_reply_the_first_expression_counts(move, behind):
    assert parse_reply(f" \r\n{move} {behind}") == parse_reply(move) == term(move) == move


@settings(deadline=None)
@given(TERMS)
def test_canonical_form_stays_as_it_is(move):
    spread = move.replace("(", "( ").replace(")", " )")
    assert term(spread) == term(term(spread)) == move


PIECES = ["(", ")", " ", ";", "\n", "\x00", "\u00e9", "\x1c", "INFO", "START", "PLAY", "STOP", "m", "nil", "10", "-1"]


@settings(deadline=None, max_examples=300)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_is_a_message_or_refused(text):
    for read in (parse, parse_reply, parse_status):
        result = outcome(read, text)
        if isinstance(result, ProtocolError):
            assert str(result).startswith("expected ")
        assert str(result).isprintable() or read is parse  # rules keep their lines


def outcome(read, text):
    """What a text is read as, or the ProtocolError; nothing else may come of it."""
    try:
        return read(text)
    except ProtocolError as error:
        return error


HUGE = [
    "(" * 1_000_000,
    ")" * 1_000_000,
    "()" * 500_000,
    ";" * 1_000_000,
    "\n;" * 500_000,
    "a" * 1_000_000,
    "a " * 500_000,
    f"({'a ' * 500_000})",
    f"( PLAY m ( {'() ' * 300_000} ) )",
    f"( PLAY m {'(' * 500_000}{')' * 500_000} )",
    f"( START m x ( {'(' * 150}{'()' * 400_000}{')' * 150} ) 1 1 )",
    f"( START {'m' * 1_000_000} x ( ) 1 1 )",
    "\x00" * 1_000_000,
    "\u00fc" * 1_000_000,
]


@pytest.mark.parametrize("text", HUGE, ids=lambda text: f"{text[:12]!r}")
def test_huge_texts_are_done_with_at_once(text):
    begin = time.thread_time()
    sum(map(ord, text))
    once = time.thread_time()
    results = [outcome(read, text) for read in (parse, parse_reply, parse_status)]
    seconds = time.thread_time() - once
    assert all(len(str(result)) < 400 for result in results if isinstance(result, ProtocolError))
    assert seconds < 200 * (once - begin)  # at most 25 passes over the text, unless it were not linear


def test_a_megabyte_of_rules_is_cut_out_as_it_is():
    rules = "(<= (next (cell ?x ?y b)) (true (cell ?x ?y b)) (not (does x (mark ?x ?y))))\n" * 14_000
    assert parse(f"( START m x ( {rules} ) 10 5 )") == Start("m", "x", rules.strip(), 10, 5)


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ("noop", "noop"),
        ("NOOP", "NOOP"),
        ("( mark  1\n1 )", "(mark 1 1)"),
        ('(mark 1 1) (explanation "why ) not") (taunt "h\u00e9 ;")', "(mark 1 1)"),
        ("(noop)", "noop"),
        ("noop)", "noop"),
        ("; thought long\n(mark 1 1)", "(mark 1 1)"),
        ("\ufeffready\r\n", "ready"),
        ("nil", "nil"),
    ],
)
def test_replies(reply, move):
    assert parse_reply(reply) == move


@pytest.mark.parametrize(
    "reply",
    ["", " ", ")", "(mark 1 1", "()", "((mark 1 1))", "m\u00e4rk", "(mark \x00)", "a" * (MAX_TERM + 1), "\ufffd\ufffd"],
)
def test_garbled_replies(reply):
    with pytest.raises(ProtocolError, match="expected"):
        parse_reply(reply)


@pytest.mark.parametrize(
    ("reply", "info"),
    [
        ("( ( name X ) ( status available ) ( species alien ) )", PlayerInfo("X", "available", "alien")),
        ("((NAME X)(STATUS BUSY))", PlayerInfo("X", "busy", "")),
        ("( (status ready) (name My Player) (version 2.0) )", PlayerInfo("My Player", "ready", "")),
        ("(name X) (status available)", PlayerInfo("X", "available", "")),
        ("(name X)", PlayerInfo("X", "", "")),
        ("( available )", PlayerInfo("", "available", "")),
        ("available", PlayerInfo("", "available", "")),
        ("READY\r\n", PlayerInfo("", "ready", "")),
        ("busy", PlayerInfo("", "busy", "")),
        ("((name J\u00fcrgen\x1b) (status available))", PlayerInfo("J?rgen?", "available", "")),
    ],
)
def test_info_replies(reply, info):
    assert parse_status(reply) == info
    assert info.is_free == (info.status in ("available", "ready"))


@pytest.mark.parametrize("reply", ["", "()", "(())", "((name))", "((name X)", "((brand X) (colour red))"])
def test_info_replies_that_say_nothing(reply):
    with pytest.raises(ProtocolError, match="expected"):
        parse_status(reply)


@given(st.builds(PlayerInfo, WORDS, st.sampled_from(["available", "busy"]), st.just("") | WORDS))
def test_info_is_read_back(info):
    assert parse_status(show_info(info)) == info


def test_info_is_exact():
    assert show_info(PlayerInfo("X", "busy", "alien")) == "( ( name X ) ( status busy ) ( species alien ) )"
    with pytest.raises(ProtocolError, match="expected one word in ASCII as name, got My Player"):
        show_info(PlayerInfo("My Player", "busy"))


@given(st.text(), st.integers(2, 50))
def test_printable_is_one_short_line(text, most):
    line = printable(text, most)
    assert len(line) <= most
    assert line.isascii()
    assert line.isprintable()


def test_printable_keeps_what_can_be_read():
    assert printable("a\r\n b\x1b[31m\u200e") == "a b?[31m?"
    assert printable("x" * 300) == "x" * 197 + "..."
    assert printable(" " * 10_000 + "x", 20) == "..."


def test_match_ids():
    assert match_id("Match.tictactoe-17_x") == "Match.tictactoe-17_x"
    with pytest.raises(ProtocolError, match=r"got \.\./x y"):
        match_id("../x y")


# what a clock leaves


@pytest.mark.parametrize(
    ("clock", "margin", "thinking", "answering"),
    [
        (10, 0.5, 9.5, 9.75),
        (10, 0, 10 - LEAST / 2, 10),
        (1, 0.5, 0.5, 0.75),
        (1, 2, 0.5, 0.75),
        (0, 0.5, LEAST / 2, LEAST),
    ],
)
def test_what_a_clock_leaves(clock: float, margin: float, thinking: float, answering: float):
    assert thinking_time(clock, margin) == thinking
    assert answer_time(clock, margin) == answering


def test_a_deadline_that_is_over_leaves_nothing():
    assert left(time.monotonic() - 1) == 0
    assert 0 < left(time.monotonic() + 100) <= 100
