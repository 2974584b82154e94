"""Text to terms and rules, and back. Every term and rule knows the line and column it came from.

A rulesheet is a list of rules; a rule is a head atom and a body of conditions. Terms and atoms print in canonical
form, one space between arguments: `(cell 1 1 b)`. Names are compared in lower case and shown as first written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeAlias

from ..errors import GDLSyntaxError

FORM = {
    "role": "(role name)",
    "init": "(init fact)",
    "true": "(true fact)",
    "next": "(next fact)",
    "legal": "(legal role move)",
    "does": "(does role move)",
    "goal": "(goal role number)",
    "terminal": "terminal",
    "base": "(base fact)",
    "input": "(input role move)",
    "<=": "(<= head condition ..)",
    "not": "(not condition)",
    "or": "(or condition condition ..)",
    "and": "(and condition condition ..)",
    "distinct": "(distinct term term)",
}
LOGICAL_WORDS = frozenset({"<=", "not", "or", "and", "distinct"})
KEYWORD_ARITY = {word: form.count(" ") for word, form in FORM.items() if word not in LOGICAL_WORDS}
MAX_NESTING = 200  # parentheses inside parentheses; Python's own stack is the limit that this keeps away from


class Location(NamedTuple):
    """A place in the text, both numbers from 1."""

    line: int
    column: int


NOWHERE = Location(0, 0)
"""Of what no text has, but a program made."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A name without arguments; `name` is lower case, `spelling` as written here."""

    name: str
    spelling: str = field(compare=False)
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True, slots=True)
class Variable:
    """`?name`; `name` is lower case and without the question mark."""

    name: str
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Function:
    """A name with at least one argument."""

    name: str
    args: tuple[Term, ...]
    spelling: str = field(compare=False)
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.spelling} {' '.join(map(str, self.args))})"


Term: TypeAlias = Constant | Variable | Function


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation applied to terms; `p` and `(p)` are the same atom."""

    name: str
    args: tuple[Term, ...]
    spelling: str = field(compare=False)
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.spelling} {' '.join(map(str, self.args))})" if self.args else self.spelling


@dataclass(frozen=True, slots=True)
class Distinct:
    """`(distinct left right)`: the two terms differ."""

    left: Term
    right: Term
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"(distinct {self.left} {self.right})"


@dataclass(frozen=True, slots=True)
class Not:
    """`(not condition)`."""

    condition: Condition
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"(not {self.condition})"


@dataclass(frozen=True, slots=True)
class Or:
    """`(or branch ..)`: at least one branch holds; no branch at all is false."""

    branches: tuple[Condition, ...]
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"({' '.join(map(str, ('or', *self.branches)))})"


@dataclass(frozen=True, slots=True)
class And:
    """`(and part ..)`: all parts hold. Not in the language definition, but some sheets use it."""

    parts: tuple[Condition, ...]
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"({' '.join(map(str, ('and', *self.parts)))})"


Condition: TypeAlias = Atom | Distinct | Not | Or | And


@dataclass(frozen=True, slots=True)
class Rule:
    """`(<= head body ..)`; a fact is a rule with an empty body and `arrow` false where written without `<=`."""

    head: Atom
    body: tuple[Condition, ...]
    location: Location = field(compare=False, repr=False)
    arrow: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return f"(<= {' '.join(map(str, (self.head, *self.body)))})" if self.arrow else str(self.head)


@dataclass(frozen=True, slots=True)
class Rulesheet:
    """A parsed text: its rules in their order, and where they came from."""

    rules: tuple[Rule, ...]
    text: str = field(repr=False)
    path: Path | None = None

    def __str__(self) -> str:
        return "\n".join(map(str, self.rules))


class Token(NamedTuple):
    """A parenthesis, a word, or a comment, which begins with `;` and goes to the end of its line."""

    text: str
    location: Location

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _List:
    items: tuple[_Expression, ...]
    location: Location

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.items))})"


_Expression: TypeAlias = Token | _List
_OpenList: TypeAlias = tuple[Location, list[_Expression]]

_TOKEN = re.compile(r"[()]|[^\s\ufeff();]+")  # a byte order mark in joined files is space
_LINE_END = re.compile(r"\r\n|\r|\n")
_BYTE_ORDER_MARK = "\ufeff"


def lines(text: str) -> list[str]:
    """The lines of a text as locations count them; a byte order mark at the beginning is none of its characters."""
    return _LINE_END.split(text.removeprefix(_BYTE_ORDER_MARK))


def parse(text: str, path: Path | None = None) -> Rulesheet:
    """Parses a rulesheet. Raises GDLSyntaxError with line, column and remedy."""
    return Rulesheet(_Parser(path).rules(text), text, path)


def parse_around_errors(text: str, path: Path | None = None) -> tuple[Rulesheet, list[GDLSyntaxError]]:
    """The rules that parse, and the first error of every other one, in the order of the text.

    Where parentheses do not match, nothing behind them can be told apart, and that error is the last.
    """
    parser = _Parser(path)
    rules: list[Rule] = []
    errors: list[GDLSyntaxError] = []
    try:
        for expression in parser.expressions(text):
            try:
                rules.append(parser.rule(expression))
            except GDLSyntaxError as error:
                errors.append(error)
    except GDLSyntaxError as error:
        errors.append(error)
    return Rulesheet(tuple(rules), text, path), errors


def parse_term(text: str) -> Term:
    """Parses one term, `noop` or `(mark 2 2)`. Raises GDLSyntaxError."""
    parser = _Parser(None)
    expressions = list(parser.expressions(text))
    if len(expressions) != 1:
        parser.fail(
            f"expected one term, got {len(expressions)}", Location(1, 1), remedy="write it as (mark 2 2) or noop"
        )
    return parser.term(expressions[0])


def tokens(text: str, *, comments: bool = False) -> Iterator[Token]:
    """The tokens of a text in their order, the comments among them where asked for."""
    for number, line in enumerate(lines(text), start=1):
        code, mark, comment = line.partition(";")
        for match in _TOKEN.finditer(code):
            yield Token(match.group(), Location(number, match.start() + 1))
        if mark and comments:
            yield Token(mark + comment, Location(number, len(code) + 1))


class _Parser:
    """Tokens to nested lists to rules; holds only the path, for its errors."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def fail(self, message: str, location: Location, *, rule: str = "", remedy: str) -> NoReturn:
        raise GDLSyntaxError(
            message, path=self.path, line=location.line, column=location.column, rule=rule, remedy=remedy
        )

    def expressions(self, text: str) -> Iterator[_Expression]:
        """Yields the top-level expressions; parentheses are matched here."""
        open_lists: list[_OpenList] = []
        for token in tokens(text):
            if token.text == "(":
                self.nesting(len(open_lists), token.location)
                open_lists.append((token.location, []))
                continue
            expression = self.closed(open_lists, token.location) if token.text == ")" else token
            if open_lists:
                open_lists[-1][1].append(expression)
            else:
                yield expression
        if open_lists:
            self.unclosed(*open_lists[-1])

    def nesting(self, depth: int, location: Location) -> None:
        if depth >= MAX_NESTING:
            self.fail(
                f"more than {MAX_NESTING} nested parentheses",
                location,
                remedy="flatten the term; gamelore does not take deeper ones",
            )

    def closed(self, open_lists: list[_OpenList], location: Location) -> _List:
        if not open_lists:
            self.fail("a ')' that closes nothing", location, remedy="remove it, or add the missing '(' before")
        begin, items = open_lists.pop()
        return _List(tuple(items), begin)

    def unclosed(self, location: Location, items: list[_Expression]) -> NoReturn:
        next_rule = next((item for item in items if _begins_with(item, "<=")), None)
        where = (
            f" before line {next_rule.location.line}, where the next rule begins"
            if next_rule
            else "; of those open at the end, the place named is the innermost"
        )
        self.fail("a '(' that is never closed", location, remedy=f"add the missing ')'{where}")

    def rules(self, text: str) -> tuple[Rule, ...]:
        return tuple(self.rule(expression) for expression in self.expressions(text))

    def rule(self, expression: _Expression) -> Rule:
        if not _begins_with(expression, "<="):
            return Rule(self.atom(expression, str(expression)), (), expression.location, arrow=False)
        assert isinstance(expression, _List)
        context = str(expression)
        if len(expression.items) < 2:
            self.fail(
                "expected a head after '<=', got none",
                expression.location,
                rule=context,
                remedy="write (<= head condition ..)",
            )
        head = self.atom(expression.items[1], context)
        return Rule(head, tuple(self.condition(item, context) for item in expression.items[2:]), expression.location)

    def condition(self, expression: _Expression, context: str) -> Condition:
        word = _first_word(expression)
        if not isinstance(expression, _List) or word not in LOGICAL_WORDS:
            return self.atom(expression, context)
        arguments = expression.items[1:]
        if word == "distinct":
            left, right = self.arguments(expression, 2, context)
            return Distinct(self.term(left, context), self.term(right, context), expression.location)
        if word == "not":
            (inner,) = self.arguments(expression, 1, context)
            return Not(self.condition(inner, context), expression.location)
        if word in ("or", "and"):
            parts = tuple(self.condition(item, context) for item in arguments)
            return (Or if word == "or" else And)(parts, expression.location)
        self.fail(
            "a rule inside a rule",
            expression.location,
            rule=context,
            remedy="close the rule before; '<=' stands only at the beginning of a rule",
        )

    def arguments(self, expression: _List, number: int, context: str) -> tuple[_Expression, ...]:
        word = _first_word(expression)
        found = len(expression.items) - 1
        if found != number:
            self.wrong_number(word, number, found, expression.location, context)
        return expression.items[1:]

    def wrong_number(self, word: str, expected: int, found: int, location: Location, context: str) -> NoReturn:
        message = f"expected {expected} argument{'s' * (expected != 1)} for '{word}', got {found}"
        self.fail(message, location, rule=context, remedy=f"write {FORM[word]}")

    def atom(self, expression: _Expression, context: str) -> Atom:
        name, arguments = self.application(expression, "a relation", context)
        word = name.text.lower()
        if word in LOGICAL_WORDS:
            where = "with its parentheses" if word == "<=" else "and only in the body of a rule"
            remedy = f"write {FORM[word]}, {where}"
            self.fail(f"expected a relation, got '{word}'", name.location, rule=context, remedy=remedy)
        terms = tuple(self.term(item, context) for item in arguments)
        expected = KEYWORD_ARITY.get(word, len(terms))
        if len(terms) != expected:
            self.wrong_number(word, expected, len(terms), expression.location, context)
        return Atom(word, terms, name.text, expression.location)

    def term(self, expression: _Expression, context: str = "") -> Term:
        if isinstance(expression, Token):
            if expression.text.startswith("?"):
                return self.variable(expression, context)
            return Constant(expression.text.lower(), expression.text, expression.location)
        name, arguments = self.application(expression, "a function", context)
        if not arguments:
            return Constant(name.text.lower(), name.text, expression.location)
        terms = tuple(self.term(item, context) for item in arguments)
        return Function(name.text.lower(), terms, name.text, expression.location)

    def variable(self, token: Token, context: str) -> Variable:
        if token.text == "?":
            self.fail(
                "expected the name of a variable after '?', got none",
                token.location,
                rule=context,
                remedy="write it as ?x",
            )
        return Variable(token.text[1:].lower(), token.location)

    def application(self, expression: _Expression, what: str, context: str) -> tuple[Token, tuple[_Expression, ...]]:
        """Splits `name` or `(name argument ..)`."""
        if isinstance(expression, Token):
            items: tuple[_Expression, ...] = (expression,)
        else:
            items = expression.items
        if not items:
            self.fail(
                f"expected {what}, got empty parentheses",
                expression.location,
                rule=context,
                remedy="remove them, or write (name argument ..)",
            )
        name = items[0]
        if isinstance(name, _List):
            self.fail(
                f"expected the name of {what}, got a parenthesis",
                name.location,
                rule=context,
                remedy="write (name argument ..); there is one parenthesis too many",
            )
        if name.text.startswith("?"):
            self.fail(
                f"expected {what}, got the variable {name.text}",
                name.location,
                rule=context,
                remedy="put a name in its place: GDL is first order, variables stand for terms only",
            )
        return name, items[1:]


def _first_word(expression: _Expression) -> str:
    if isinstance(expression, _List):
        first = expression.items[0] if expression.items else None
        return first.text.lower() if isinstance(first, Token) else ""
    return expression.text.lower()


def _begins_with(expression: _Expression, word: str) -> bool:
    return isinstance(expression, _List) and _first_word(expression) == word
