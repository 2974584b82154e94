"""Parser, syntax tree and formatter of GDL; iteration over conditions and terms.

A rulesheet is a list of rules. A rule is a head atom and a body of conditions. Every term and rule stores its line and
column. Terms and atoms are printed in canonical form, with one space between arguments: `(cell 1 1 b)`. Names are
compared in lower case and shown as first written.

A *sentence* is the smallest condition: an atom or a `distinct`.

`formatted` changes only the white space of a rulesheet:

- A rule that fits into WIDTH columns is written on one line. A longer rule has its head on the first line, and one
  condition on each following line. A long `or`, `and` or `not` is broken in the same way; all its parts are indented
  like its first part. Atoms are never broken.
- Every rule begins a new line. Every fact begins a new line, too, except if it follows another fact on the same line
  in the text: such facts stay on one line if they fit.
- Several blank lines between rules or comments become one blank line. Blank lines inside a rule are removed.
- A comment on its own line stays on its own line, indented like the next line. A comment after code stays after this
  code, on the last line of the code. The code after the comment begins a new line. Comments after code on consecutive
  lines begin in the same column.

Formatting a formatted text does not change it. All line ends are like the first line end of the text, or `\\n`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeAlias

from ..errors import GameloreError, GDLSyntaxError
from .limits import BETWEEN_CHECKS, check, checked, checked_if_long, collector_paused

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
    "<=": "(<= head condition ...)",
    "not": "(not condition)",
    "or": "(or condition condition ...)",
    "and": "(and condition condition ...)",
    "distinct": "(distinct term term)",
}
LOGICAL_WORDS = frozenset({"<=", "not", "or", "and", "distinct"})
KEYWORD_ARITY = {word: form.count(" ") for word, form in FORM.items() if word not in LOGICAL_WORDS}
MAX_NESTING = 200  # maximum depth of nested parentheses; more could exceed the recursion limit of Python


class Location(NamedTuple):
    """A place in the text. Lines and columns are counted from 1."""

    line: int
    column: int


NOWHERE = Location(0, 0)
"""Location of generated terms and rules."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A name without arguments. `name` is in lower case; `spelling` is the name as written in the text."""

    name: str
    spelling: str = field(compare=False)
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable `?name`. `name` is in lower case and does not contain the question mark."""

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
    """A relation applied to terms. `p` and `(p)` are the same atom."""

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
    """`(or branch ..)`: at least one branch holds. An `or` without branches is false."""

    branches: tuple[Condition, ...]
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"({' '.join(map(str, ('or', *self.branches)))})"


@dataclass(frozen=True, slots=True)
class And:
    """`(and part ..)`: all parts hold. It is not in the definition of GDL, but some sheets use it."""

    parts: tuple[Condition, ...]
    location: Location = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"({' '.join(map(str, ('and', *self.parts)))})"


Condition: TypeAlias = Atom | Distinct | Not | Or | And


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule `(<= head body ..)`, or a fact.

    A fact has an empty body. `arrow` is False if the fact is written without `<=`.
    """

    head: Atom
    body: tuple[Condition, ...]
    location: Location = field(compare=False, repr=False)
    arrow: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return f"(<= {' '.join(map(str, (self.head, *self.body)))})" if self.arrow else str(self.head)


@dataclass(frozen=True, slots=True)
class Rulesheet:
    """A parsed text: its rules in order, the text, and the path of its file. The path is None if there is no file."""

    rules: tuple[Rule, ...]
    text: str = field(repr=False)
    path: Path | None = None

    def __str__(self) -> str:
        return "\n".join(map(str, self.rules))

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of the roles in lower case, in their order."""
        names = (str(rule.head.args[0]).lower() for rule in self.rules if rule.head.name == "role")
        return tuple(dict.fromkeys(names))

    @property
    def rules_hash(self) -> str:
        """SHA-256 of the rules in canonical form, in hexadecimal. Comments and white space do not change it."""
        return hashlib.sha256(str(self).lower().encode()).hexdigest()


class Token(NamedTuple):
    """A parenthesis, a word, or a comment from `;` to the end of its line."""

    text: str
    location: Location

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class _List:
    items: tuple[_Expression, ...]
    location: Location

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.items))})"


_Expression: TypeAlias = Token | _List

_WORD = re.compile(r"[^\s\ufeff();]+")  # a byte order mark inside the text, as in joined files, is white space
_TOKEN = re.compile(rf"[()]|{_WORD.pattern}")
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNPRINTABLE = re.compile(r"[^ -~]")
_BYTE_ORDER_MARK = "\ufeff"
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x19\x7f]")  # control characters that do not occur in text files


def lines(text: str) -> list[str]:
    """Split a text into lines, as locations count them. A byte order mark at the beginning of the text is removed."""
    return _LINE_END.split(text.removeprefix(_BYTE_ORDER_MARK))


def refuse_binary(text: str, source: Path | str) -> None:
    """Raise GameloreError if a text that was read from the file `source` is binary. The message has one line."""
    control_character = _NOT_TEXT.search(text)
    if control_character is not None:
        line = len(lines(text[: control_character.start()]))
        raise GameloreError(
            f"expected a rulesheet, which is text in UTF-8, got a binary file: {source} has the character "
            f"{control_character.group()!r} in line {line}; name another file"
        )


@collector_paused()
def parse(text: str, path: Path | None = None) -> Rulesheet:
    """Parse a rulesheet. Raises GDLSyntaxError with line, column and remedy."""
    parser = _Parser(path)
    return Rulesheet(tuple(map(parser.rule, parser.expressions(text))), text, path)


@collector_paused()
def parse_around_errors(text: str, path: Path | None = None) -> tuple[Rulesheet, list[GDLSyntaxError]]:
    """Return the rules that parse, and the first error of each rule that does not parse, in the order of the text.

    Parsing stops at an unmatched parenthesis, because the rules after it cannot be separated.
    """
    parts = list(rules_and_errors(text, path))
    rules = tuple(part for part in parts if isinstance(part, Rule))
    return Rulesheet(rules, text, path), [part for part in parts if not isinstance(part, Rule)]


def rules_and_errors(text: str, path: Path | None = None) -> Iterator[Rule | GDLSyntaxError]:
    """Yield the rules and the errors of `parse_around_errors`, as they are read."""
    parser = _Parser(path)
    try:
        for expression in parser.expressions(text):
            try:
                yield parser.rule(expression)
            except GDLSyntaxError as error:
                yield error
    except GDLSyntaxError as error:
        yield error


def parse_term(text: str) -> Term:
    """Parse one term, such as `noop` or `(mark 2 2)`. Raises GDLSyntaxError."""
    parser = _Parser(None)
    expressions = list(parser.expressions(text))
    if len(expressions) != 1:
        remedy = "write the term like (mark 2 2) or noop"
        parser.fail(f"expected one term, got {len(expressions)}", Location(1, 1), remedy)
    return parser.term(expressions[0])


def printable(text: str, most: int = 200) -> str:
    """Return untrusted text as one line of at most `most` printable ASCII characters, for messages and logs."""
    line = _UNPRINTABLE.sub("?", " ".join(text[: 4 * most].split()))
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: max(most - 3, 0)]}..."[:most]


def natural_order(text: str) -> list[tuple[str, int]]:
    """Return a sort key for texts that sorts numbers by value, so that c2 comes before c10."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"([^0-9]*)([0-9]*)", text)]


def tokens(text: str, *, comments: bool = False) -> Iterator[Token]:
    """Return the tokens of a text in order. Comments are included if `comments` is true."""
    return (Token(token, Location(line, column)) for token, line, column in _placed_tokens(text, comments))


def num_names(text: str) -> int:
    """Return how many names and variables a rulesheet has, in a tenth of the time of `parse`.

    Texts of the same rules have equally many, and so have games that differ only in names and in order. `<=`, `and` and
    `or` are not counted, because they may stand alone or around a single part.
    """
    words = [word for line in lines(text.lower()) for word in _WORD.findall(line.partition(";")[0])]
    return len(words) - sum(map(words.count, ("<=", "and", "or")))


def _placed_tokens(text: str, comments: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield the text, the line and the column of each token. Tuples take a third of the time of `Token`."""
    for number, line in checked(enumerate(lines(text), start=1)):
        code, mark, comment = line.partition(";")
        matches = _TOKEN.finditer(code)
        for match in matches if len(code) <= WIDTH * BETWEEN_CHECKS else checked(matches):
            yield match[0], number, match.start() + 1
        if mark and comments:
            yield mark + comment, number, len(code) + 1


class _Parser:
    """Parser that turns tokens into nested lists, and nested lists into rules."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.expression: _Expression | None = None  # the current top-level expression, for error messages
        self.shared, self.lower = cache(str), cache(str.lower)  # equal words are one text, which saves memory

    def fail(self, message: str, location: Location, remedy: str) -> NoReturn:
        rule = "" if self.expression is None else str(self.expression)
        raise GDLSyntaxError(message, path=self.path, **location._asdict(), rule=rule, remedy=remedy)

    def expressions(self, text: str) -> Iterator[_Expression]:
        """Yield the top-level expressions. Raises GDLSyntaxError for unmatched parentheses."""
        open_lists: list[tuple[Location, list[_Expression]]] = []
        for token, line, column in _placed_tokens(text):
            if token == "(":
                location = Location(line, column)
                if len(open_lists) >= MAX_NESTING:
                    remedy = "write the term with fewer levels; gamelore does not read deeper nesting"
                    self.fail(f"expected at most {MAX_NESTING} levels of parentheses, got more", location, remedy)
                open_lists.append((location, []))
                continue
            if token != ")":
                expression: _Expression = Token(self.shared(token), Location(line, column))
            elif open_lists:
                begin, items = open_lists.pop()
                expression = _List(tuple(items), begin)
            else:
                remedy = "remove it, or add the missing '(' before it"
                self.fail("this ')' has no matching '('", Location(line, column), remedy)
            if open_lists:
                open_lists[-1][1].append(expression)
            else:
                self.expression = expression
                yield expression
                self.expression = None
        if open_lists:
            self.unclosed(*open_lists[-1])

    def unclosed(self, location: Location, items: list[_Expression]) -> NoReturn:
        next_rule = next((item for item in items if _begins_with(item, "<=")), None)
        innermost = "; if several '(' are never closed, this one is the innermost"
        where = f" before line {next_rule.location.line}, where the next rule begins" if next_rule else innermost
        self.fail("this '(' is never closed", location, f"add the missing ')'{where}")

    def rule(self, expression: _Expression) -> Rule:
        check()
        if not isinstance(expression, _List) or not _begins_with(expression, "<="):
            return Rule(self.atom(expression), (), expression.location, arrow=False)
        if len(expression.items) < 2:
            self.fail("expected a head after '<=', got none", expression.location, f"write {FORM['<=']}")
        head = self.atom(expression.items[1])
        body = tuple(map(self.condition, checked_if_long(expression.items[2:])))
        return Rule(head, body, expression.location)

    def condition(self, expression: _Expression) -> Condition:
        word = _first_word(expression)
        if not isinstance(expression, _List) or word not in LOGICAL_WORDS:
            return self.atom(expression)
        arguments, location = expression.items[1:], expression.location
        if word == "distinct":
            self.check_number(word, 2, arguments, location)
            left, right = map(self.term, arguments)
            return Distinct(left, right, location)
        if word == "not":
            self.check_number(word, 1, arguments, location)
            return Not(self.condition(arguments[0]), location)
        if word == "<=":
            remedy = "close the rule before this one; '<=' is allowed only at the beginning of a rule"
            self.fail("this rule begins inside another rule", location, remedy)
        return (Or if word == "or" else And)(tuple(map(self.condition, checked_if_long(arguments))), location)

    def check_number(self, word: str, expected: int, arguments: Sequence[object], location: Location) -> None:
        """Raise GDLSyntaxError if a keyword of GDL does not have the expected number of arguments."""
        if len(arguments) != expected:
            message = f"expected {expected} argument{'s' * (expected != 1)} for '{word}', got {len(arguments)}"
            self.fail(message, location, f"write {FORM[word]}")

    def atom(self, expression: _Expression) -> Atom:
        name, arguments = self.application(expression, "a relation")
        word = self.lower(name.text)
        if word in LOGICAL_WORDS:
            where = "with parentheses" if word == "<=" else "and only in the body of a rule"
            self.fail(f"expected a relation, got '{word}'", name.location, f"write {FORM[word]}, {where}")
        terms = tuple(map(self.term, checked_if_long(arguments)))
        if word in KEYWORD_ARITY:
            self.check_number(word, KEYWORD_ARITY[word], terms, expression.location)
        return Atom(word, terms, name.text, expression.location)

    def term(self, expression: _Expression) -> Term:
        if isinstance(expression, Token) and expression.text.startswith("?"):
            if expression.text == "?":
                message = "expected the name of a variable after '?', got none"
                self.fail(message, expression.location, "write it as ?x")
            return Variable(self.lower(expression.text[1:]), expression.location)
        name, arguments = self.application(expression, "a function")
        if not arguments:
            return Constant(self.lower(name.text), name.text, expression.location)
        terms = tuple(map(self.term, checked_if_long(arguments)))
        return Function(self.lower(name.text), terms, name.text, expression.location)

    def application(self, expression: _Expression, what: str) -> tuple[Token, tuple[_Expression, ...]]:
        """Split `name` or `(name argument ...)` into the name and the arguments."""
        items = expression.items if isinstance(expression, _List) else (expression,)
        if not items:
            remedy = "remove the parentheses, or write (name argument ...)"
            self.fail(f"expected {what}, got empty parentheses", expression.location, remedy)
        name = items[0]
        if isinstance(name, _List):
            remedy = "write (name argument ...), with one parenthesis less"
            self.fail(f"expected the name of {what}, got a parenthesis", name.location, remedy)
        if name.text.startswith("?"):
            remedy = "write a name here: in GDL, a variable stands for a term, never for a relation or a function"
            self.fail(f"expected {what}, got the variable {name.text}", name.location, remedy)
        return name, items[1:]


def _first_word(expression: _Expression) -> str:
    """Return the word, or the first word of the list, in lower case; an empty text if the list has no first word."""
    first = expression.items[0] if isinstance(expression, _List) and expression.items else expression
    return first.text.lower() if isinstance(first, Token) else ""


def _begins_with(expression: _Expression, word: str) -> bool:
    return isinstance(expression, _List) and _first_word(expression) == word


Sentence: TypeAlias = Atom | Distinct
GIVEN_RELATIONS = frozenset({"true", "does"})  # the state and the players give these atoms; no rule derives them


def conditions(body: Iterable[Condition]) -> Iterator[Condition]:
    """Yield every condition of a body and every condition inside it, in the order of the text."""
    waiting = [*body][::-1]
    while waiting:
        condition = waiting.pop()
        yield condition
        match condition:
            case Not(inner):
                waiting.append(inner)
            case Or(parts) | And(parts):
                waiting += parts[::-1]


def terms(sentence: Sentence) -> Iterator[Term]:
    """Yield every term of a sentence and every term inside it, in the order of the text."""
    yield from _inside(arguments(sentence))


def arguments(sentence: Sentence) -> tuple[Term, ...]:
    """Return the arguments of an atom, or the two terms of a `distinct`."""
    return (sentence.left, sentence.right) if isinstance(sentence, Distinct) else sentence.args


def _inside(arguments: Iterable[Term]) -> Iterator[Term]:
    waiting = [*arguments][::-1]
    while waiting:
        term = waiting.pop()
        yield term
        if isinstance(term, Function):
            waiting += term.args[::-1]


def term_variables(*sentences: Sentence) -> Iterator[Variable]:
    """Yield all occurrences of variables in sentences."""
    for sentence in sentences:
        for term in arguments(sentence):
            if isinstance(term, Variable):  # most arguments are variables or constants: loading is faster by a tenth
                yield term
            elif isinstance(term, Function):
                yield from (inner for inner in _inside(term.args) if isinstance(inner, Variable))


def variables_of(term: Term) -> set[str]:
    """Return the names of the variables in a term."""
    if isinstance(term, Function):
        return {inner.name for inner in _inside(term.args) if isinstance(inner, Variable)}
    return {term.name} if isinstance(term, Variable) else set()


def sentences(rule: Rule) -> Iterator[Sentence]:
    """Yield the head and every sentence of the body."""
    yield rule.head
    yield from (condition for condition in conditions(rule.body) if isinstance(condition, Atom | Distinct))


def body_atoms(rule: Rule) -> Iterator[Atom]:
    """Return the atoms of the body, negated or not."""
    return (condition for condition in conditions(rule.body) if isinstance(condition, Atom))


def named_terms(rule: Rule) -> Iterator[Constant | Function]:
    """Return all occurrences of constants and functions in a rule."""
    return (term for sentence in sentences(rule) for term in terms(sentence) if not isinstance(term, Variable))


@dataclass(frozen=True, slots=True)
class Scope:
    """Names of variables that are bound in a part of a body: `names`, and those of the scope around it."""

    names: frozenset[str]
    around: Scope | None = None

    def __contains__(self, name: object) -> bool:
        return name in self.names or (self.around is not None and name in self.around)


class InContext(NamedTuple):
    """A sentence of a body with its context.

    positive: whether the sentence is not negated.
    bound: the names of the variables that positive conditions around the sentence bind.
    """

    sentence: Sentence
    positive: bool
    bound: Scope


def in_context(rule: Rule, binds: Callable[[Atom], bool] = lambda atom: True) -> Iterator[InContext]:
    """Return the sentences of a body with their bound variables. Only atoms accepted by `binds` can bind variables."""
    binding = _Binding(rule, binds)
    return _in_context(rule.body, Scope(binding.by_all(rule.body)), binding)


def bound(rule: Rule) -> frozenset[str]:
    """Return the names of the variables that the body binds, by a positive atom or in every branch of an `or`."""
    return _Binding(rule, lambda atom: True).by_all(rule.body)


class _Binding:
    """Variables bound by conditions of a rule. An `or` without branches is false, and so binds all variables."""

    def __init__(self, rule: Rule, binds: Callable[[Atom], bool]) -> None:
        self.rule = rule
        self.binds = binds
        self.by_branch: dict[int, frozenset[str]] = {}  # identity of a branch of an `or` -> variables that it binds
        self.everything: frozenset[str] | None = None  # what an `or` without branches binds

    def by_all(self, parts: Sequence[Condition]) -> frozenset[str]:
        bound = list(map(self.by, checked_if_long(parts)))
        if self.everything is not None and any(names is self.everything for names in bound):
            return self.everything
        return frozenset[str]().union(*bound)

    def by(self, condition: Condition) -> frozenset[str]:
        match condition:
            case Atom() if self.binds(condition):
                return frozenset(variable.name for variable in term_variables(condition))
            case And(parts):
                return self.by_all(parts)
            case Or([]):
                if self.everything is None:
                    self.everything = frozenset(variable.name for variable in term_variables(*sentences(self.rule)))
                return self.everything
            case Or([branch]):
                return self.by(branch)
            case Or(branches):
                self.by_branch.update((id(branch), self.by(branch)) for branch in checked(branches))
                bound = [self.by_branch[id(branch)] for branch in branches]
                some = [names for names in bound if names is not self.everything]
                return frozenset.intersection(*some) if some else bound[0]
        return frozenset()


def _in_context(parts: Sequence[Condition], here: Scope, binding: _Binding) -> Iterator[InContext]:
    """Yield the sentences of these parts. What an `and`, or the only branch of an `or`, binds is bound around it."""
    for part in checked_if_long(parts):
        match part:
            case Atom() | Distinct():
                yield InContext(part, True, here)
            case Not(inner):
                negated = (sentence for sentence in conditions((inner,)) if isinstance(sentence, Atom | Distinct))
                yield from (InContext(sentence, False, here) for sentence in negated)
            case And(inner_parts) | Or([_] as inner_parts):
                yield from _in_context(inner_parts, here, binding)
            case Or(branches):
                for branch in checked(branches):
                    inside = Scope(binding.by_branch[id(branch)], here)
                    yield from _in_context((branch,), inside, binding)


WIDTH = 100  # maximum number of columns of a line, without its comment


def formatted(text: str, path: Path | None = None) -> str:
    """Return the text in canonical layout. Raises GDLSyntaxError, with the path, if the text is not a rulesheet."""
    parse(text, path)
    end = "\r\n" if re.match(r"[^\r\n]*\r\n", text) else "\n"
    return "".join(f"{line}{end}" for line in _joined(_sheet(_tree(text))))


@dataclass(slots=True)
class _Node:
    """Node of the tree for formatting: a word, a comment on its own line, or a list.

    items: the items of a list. The first item is a word.
    note: the comment after the node on the same line.
    first, last: the first and the last line of the node in the text, counted from 1.
    """

    first: int
    last: int
    text: str = ""
    items: list[_Node] = field(default_factory=list)
    note: str = ""

    @property
    def is_comment(self) -> bool:
        return self.text.startswith(";")

    @property
    def is_plain(self) -> bool:
        """Whether the node has no comment inside, so that it can be written on one line."""
        return not self.is_comment and all(item.is_plain and not item.note for item in self.items)

    @property
    def is_broken_where_long(self) -> bool:
        return bool(self.items) and self.items[0].text.lower() in LOGICAL_WORDS

    @property
    def is_rule(self) -> bool:
        return bool(self.items) and self.items[0].text == "<="

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.items))})" if self.items else self.text


def _tree(text: str) -> list[_Node]:
    """Return the top-level nodes of a text that parses. The nodes contain the comments."""
    sheet = _Node(0, 0)
    open_nodes = [sheet]
    previous = 0
    for token in tokens(text, comments=True):
        line = token.location.line
        if token.text == ")":
            _close(open_nodes.pop(), line)
        elif token.text.startswith(";"):
            _place(token, open_nodes, line == previous)
        elif token.text == "(":
            node = _Node(line, line)
            open_nodes[-1].items.append(node)
            open_nodes.append(node)
        else:
            open_nodes[-1].items.append(_Node(line, line, token.text))
        previous = line
    return sheet.items


def _close(node: _Node, line: int) -> None:
    """Set the last line of a list. Move the comment after its last item to after its closing parenthesis."""
    node.last = line
    node.note, node.items[-1].note = node.items[-1].note, ""


def _place(token: Token, open_nodes: Sequence[_Node], behind_code: bool) -> None:
    """Attach a comment to the code before it on its line. If there is no such code, add the comment as a node."""
    inner = open_nodes[-1]
    comment = _Node(token.location.line, token.location.line, token.text.rstrip())
    if not inner.items and len(open_nodes) > 1:  # between a parenthesis and its word: move it before the parenthesis
        comment.first = comment.last = inner.first
        open_nodes[-2].items.insert(-1, comment)
    elif behind_code and not inner.items[-1].note:
        inner.items[-1].note = comment.text
    else:
        inner.items.append(comment)


class _Line(NamedTuple):
    """A line of output: code and a comment. If the line has only a comment, `code` is its indentation."""

    code: str
    note: str = ""


def _block(node: _Node, room: int) -> list[_Line]:
    """Return the lines of a node for a width of `room` columns. The first line has no indentation."""
    if node.is_comment:
        return [_Line("", node.text)]
    if node.is_plain and (len(str(node)) <= room or not node.is_broken_where_long):
        return [_Line(str(node), node.note)]
    word, *items = node.items
    indent = len(word.text) + 2
    lines = [_Line(" " * indent + code, note) for item in items for code, note in _block(item, room - indent - 1)]
    if word.note or items[0].is_comment:
        lines.insert(0, _Line(f"({word.text}", word.note))
    else:
        lines[0] = _Line(f"({word.text} {lines[0].code[indent:]}", lines[0].note)
    if items[-1].is_comment:
        return [*lines, _Line(" " * indent + ")", node.note)]
    return [*lines[:-1], _Line(f"{lines[-1].code})", node.note)]


def _sheet(items: Sequence[_Node]) -> list[_Line]:
    lines: list[_Line] = []
    for index, item in enumerate(items):
        previous = items[index - 1] if index else None
        if previous and item.first > previous.last + 1:
            lines.append(_Line(""))
        block = _block(item, WIDTH)
        if previous and _share_a_line(previous, item) and len(lines[-1].code) + len(block[0].code) < WIDTH:
            lines[-1] = _Line(f"{lines[-1].code} {block[0].code}", block[0].note)
        else:
            lines += block
    return lines


def _share_a_line(left: _Node, right: _Node) -> bool:
    plain_facts = all(node.is_plain and not node.is_rule for node in (left, right))
    return plain_facts and not left.note and left.last == right.first


def _joined(lines: Sequence[_Line]) -> Iterator[str]:
    """Yield the lines as text. The comments after code on consecutive lines begin in the same column."""
    start = 0
    while start < len(lines):
        end = start + 1
        if lines[start].code.strip() and lines[start].note:
            while end < len(lines) and lines[end].code.strip() and lines[end].note:
                end += 1
            width = max(len(line.code) for line in lines[start:end])
            yield from (f"{line.code.ljust(width)}  {line.note}" for line in lines[start:end])
        else:
            yield lines[start].code + lines[start].note
        start = end
