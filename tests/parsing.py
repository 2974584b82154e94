"""What must hold of the parser, the checker and the layout on any text whatever."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from gamelore.errors import GDLSyntaxError
from gamelore.gdl import syntax
from gamelore.gdl.lint import lint, lint_text
from gamelore.gdl.syntax import formatted


def assert_sound(text: str) -> None:
    """A text is a rulesheet or an error at a place inside it; printed it is the same; checking finds places inside."""
    around, errors = syntax.parse_around_errors(text)
    if errors:
        with pytest.raises(GDLSyntaxError) as caught:
            syntax.parse(text)
        assert str(caught.value) in map(str, errors)
    else:
        assert syntax.parse(text).rules == around.rules
        assert_layout_keeps_everything(text)
    assert_fixpoint(around)
    for error in errors:
        assert_inside(text, error.line, error.column)
        assert error.message
        assert error.remedy
    findings = lint_text(text)
    for finding in findings:
        assert_inside(text, finding.line, finding.column)
    assert [(f.line, f.column) for f in findings] == sorted((f.line, f.column) for f in findings)
    assert len([finding for finding in findings if finding.code == "syntax"]) == len(errors)
    assert_work_grows_with_size(text)


def assert_inside(text: str, line: int, column: int) -> None:
    """A place is in the text, or at the very beginning of an empty one."""
    lines = syntax.lines(text)
    assert (line, column) == (1, 1) or (1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1])), (line, column)


def assert_fixpoint(sheet: syntax.Rulesheet) -> None:
    """What is printed is read as the same, and printed again as the same."""
    again = syntax.parse(str(sheet))
    assert again.rules == sheet.rules
    assert [rule.arrow for rule in again.rules] == [rule.arrow for rule in sheet.rules]
    assert str(again) == str(sheet)
    assert _flaws(again) == _flaws(sheet)


def assert_layout_keeps_everything(text: str) -> None:
    """Laid out, the text has the same words and comments, and is not changed by doing it again."""
    after = formatted(text)
    assert _words_and_comments(after) == _words_and_comments(text)
    assert formatted(after) == after


def _words_and_comments(text: str) -> tuple[list[str], list[str]]:
    found = [token.text.rstrip() for token in syntax.tokens(text, comments=True)]
    return [word for word in found if word[0] != ";"], sorted(word for word in found if word[0] == ";")


def _flaws(sheet: syntax.Rulesheet) -> list[tuple[str, str]]:
    """What is found wrong, wherever it stands, but for what printing makes uniform: `(p)`, and `?X` beside `?x`."""
    findings = [found for found in lint(sheet) if found.code not in ("parenthesised", "several-spellings")]
    return sorted((found.code, found.message.lower()) for found in findings)


def assert_work_grows_with_size(text: str) -> None:
    """Twice the text takes about twice the calls: nothing in the parser goes over the text again and again."""
    some, twice = text[:300] * 4, text[:300] * 8
    assert num_calls(syntax.parse_around_errors, twice) <= 2.2 * num_calls(syntax.parse_around_errors, some) + 500


def num_calls(read: Callable[[str], object], text: str) -> int:
    """How many functions are called to read a text."""
    number = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return number
