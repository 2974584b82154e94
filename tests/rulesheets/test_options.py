"""Options of rulesheets: what a sheet says of them, and its text with others chosen."""

import pytest

from gamelore.errors import GameloreError
from gamelore.gdl.lint import lint_text
from gamelore.gdl.syntax import parse
from gamelore.rulesheets import Option, options, with_choices

SHEET = """; (option size 9) in a comment is none
(role player)
(option size 3) (option wrap no) ; (option wrap yes) neither
(choice size 3) (choice size 10) (choice size Huge)
  (choice wrap no)   (choice wrap yes)
(option title none)
(<= (chosen ?name ?value) (option ?name ?value) (choice ?name ?value))
(<= (option ?name ?value) (legacy ?name ?value))
(init (size 3))
(<= (legal player wait) (chosen size ?n))
(<= (next (size 3)) (does player wait) (chosen wrap yes))
(<= terminal (not (true (size 3))))
(goal player 100)
"""


def test_options_of_a_sheet():
    assert options(parse(SHEET).rules) == {
        "size": Option("size", "3", ("3", "10", "Huge")),
        "wrap": Option("wrap", "no", ("no", "yes")),
        "title": Option("title", "none", ()),
    }
    assert options(parse("(role player)").rules) == {}


def test_choosing_changes_nothing_else_in_the_text():
    text, values = with_choices(SHEET, {"wrap": "yes", "title": "long", "size": "10"}, "it")
    assert list(values.items()) == [("size", "10"), ("wrap", "yes"), ("title", "long")]
    assert text == SHEET.replace("(option size 3) (option wrap no)", "(option size 10) (option wrap yes)").replace(
        "(option title none)", "(option title long)"
    )


def test_case_does_not_matter_and_the_sheet_spells():
    text, values = with_choices(SHEET, {"size": "HUGE"}, "it")
    assert values == {"size": "Huge"}
    assert text == SHEET.replace("(option size 3)", "(option size Huge)")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_byte_order_marks_do_not_move_the_place(end):
    text, _ = with_choices("\ufeff" + SHEET.replace("\n", end), {"wrap": "yes"}, "it")
    assert parse(text).rules == parse(SHEET.replace("(option wrap no)", "(option wrap yes)")).rules


@pytest.mark.parametrize("value", ["(100)", "( 100 )", "(;(80\n100)"])
def test_a_value_in_parentheses_stays_in_them(value):
    text, _ = with_choices(f"(role a)\n(option cap {value}) (option wide no)\n", {"cap": "80", "wide": "yes"}, "it")
    assert text == f"(role a)\n(option cap {value.replace('100', '80')}) (option wide yes)\n"


def test_a_sheet_with_errors_keeps_them():
    text, _ = with_choices("(role)\n(option a b)\n(<= (legal x y)", {"a": "c"}, "it")
    assert text == "(role)\n(option a c)\n(<= (legal x y)"


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"sise": "3"}, "expected an option of it (size, wrap, title), got 'sise'; did you mean size?"),
        ({"xyz": "3"}, "expected an option of it (size, wrap, title), got 'xyz'; choose one of these"),
        ({"size": "8"}, "expected one of 3, 10, Huge for the option size, got '8'; the nearest is 10"),
        ({"size": "hug"}, "expected one of 3, 10, Huge for the option size, got 'hug'; did you mean Huge?"),
        (
            {"wrap": "perhaps"},
            "expected one of no, yes for the option wrap, got 'perhaps'; leave the option out for the default no",
        ),
        (
            {"title": "a b"},
            "expected a word for the option title, got 'a b'; leave the option out for the default none",
        ),
        ({"title": ""}, "expected a word for the option title, got ''; leave the option out for the default none"),
    ],
)
def test_mistakes(chosen, message):
    with pytest.raises(GameloreError) as caught:
        with_choices(SHEET, chosen, "it")
    assert str(caught.value) == message


def test_a_sheet_without_options():
    with pytest.raises(GameloreError, match="expected no options, because it has none, got 'size'; leave it out"):
        with_choices("(role player)", {"size": "3"}, "it")


def test_the_checker_has_nothing_to_say_of_options():
    text = SHEET.replace("(<= (option ?name ?value) (legacy ?name ?value))\n", "")
    assert lint_text(text) == []
