"""Texts that are nearly rulesheets: tokens of a text deleted, doubled, swapped, replaced; and texts that never were."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import TypeAlias

from gamelore.gdl import syntax

TOKEN = re.compile(r";[^\r\n]*|[()]|[^\s();]+|\s+")
WORDS = sorted(syntax.FORM)
SCRAPS = (
    *("(", ")", "?", "?x", "?X", ";", "; a comment ) (", "\n", "\r\n", "\r", " ", "\t", "\f", "\v", "\x85", "\u2028"),
    *("a", "1", "()", "(p)", "((", "))", "\ufeff", "\0", "\x1f", "é", "İ", "ß", "٣", '"', "'", "\\", "%", "#", "|"),
    *("(f " * 50, ")" * 50, "(not " * 50, "(<= p", "(or)", "(and)", "(not)", "9" * 50, "-1", "101", "1e2"),
)


def tokens(text: str) -> list[str]:
    """Parentheses, words, comments and the space between them; joined they are the text."""
    return TOKEN.findall(text)


def mutated(text: str, random: Random, most: int = 6) -> str:
    """The text with a few changes to its tokens."""
    parts = tokens(text)
    for _ in range(random.randint(1, most)):
        if parts:
            random.choice(CHANGES)(parts, random)
    return "".join(parts)


def _place(parts: list[str], random: Random) -> int:
    return random.randrange(len(parts))


def _piece(parts: list[str], random: Random) -> slice:
    """A few tokens in a row."""
    start = _place(parts, random)
    return slice(start, start + random.choice((1, 1, 1, 2, 5, 20)))


def _delete(parts: list[str], random: Random) -> None:
    del parts[_piece(parts, random)]


def _copy(parts: list[str], random: Random) -> None:
    piece = parts[_piece(parts, random)]
    place = _place(parts, random)
    parts[place:place] = piece


def _double(parts: list[str], random: Random) -> None:
    piece = _piece(parts, random)
    parts[piece] = 2 * parts[piece]


def _swap(parts: list[str], random: Random) -> None:
    one, other = _place(parts, random), _place(parts, random)
    parts[one], parts[other] = parts[other], parts[one]


def _replace(parts: list[str], random: Random) -> None:
    parts[_place(parts, random)] = random.choice(parts)


def _insert(parts: list[str], random: Random) -> None:
    parts.insert(_place(parts, random), random.choice((*SCRAPS, *WORDS)))


def _capitalise(parts: list[str], random: Random) -> None:
    place = _place(parts, random)
    parts[place] = parts[place].upper()


CHANGES: tuple[Callable[[list[str], Random], None], ...] = (
    *(_delete, _copy, _double, _swap, _replace, _insert, _capitalise),
)


Expression: TypeAlias = "str | list[Expression]"
Place: TypeAlias = tuple[list[Expression], int]
"""A list and an index in it."""


def altered(text: str, random: Random, most: int = 2) -> str:
    """The rulesheet with a few changes that leave its parentheses matched; most stay rulesheets."""
    rules = expressions(text)
    for _ in range(random.randint(1, most)):
        if places := list(_places(rules, inside_only=True)):
            random.choice(ALTERATIONS)(places, random)
    return "\n".join(map(printed, rules))


def expressions(text: str) -> list[Expression]:
    """Nested lists of the words of a text in which parentheses match."""
    inside: list[list[Expression]] = [[]]
    for token in re.findall(r"[()]|[^\s();]+", re.sub(r";[^\r\n]*", "", text)):
        if token == "(":
            inside.append([])
        elif token == ")":
            done = inside.pop()
            inside[-1].append(done)
        else:
            inside[-1].append(token)
    return inside[0]


def printed(expression: Expression) -> str:
    """The text of an expression."""
    return expression if isinstance(expression, str) else f"({' '.join(map(printed, expression))})"


def _places(expressions: list[Expression], *, inside_only: bool = False) -> Iterator[Place]:
    for index, expression in enumerate(expressions):
        if not inside_only:
            yield expressions, index
        if isinstance(expression, list):
            yield from _places(expression)


def _kind(place: Place) -> str:
    """What may stand in the place of an expression without spoiling the rule."""
    parent, index = place
    expression = parent[index]
    if isinstance(expression, list):
        return "list of " + str(len(expression))
    return "variable" if expression.startswith("?") else "first word" if index == 0 else "word"


def _of_one_kind(places: list[Place], random: Random) -> tuple[Place, Place]:
    one = random.choice(places)
    near = [place for place in places if _kind(place) == _kind(one)]
    return one, random.choice(near)


def _put_another(places: list[Place], random: Random) -> None:
    (parent, index), (other, place) = _of_one_kind(places, random)
    parent[index] = deepcopy(other[place])


def _exchange(places: list[Place], random: Random) -> None:
    (parent, index), (other, place) = _of_one_kind(places, random)
    parent[index], other[place] = deepcopy(other[place]), deepcopy(parent[index])


def _conditions(places: list[Place]) -> list[Place]:
    return [(parent, index) for parent, index in places if parent[0] == "<=" and index > 1]


def _drop_condition(places: list[Place], random: Random) -> None:
    for parent, index in random.sample(_conditions(places), min(1, len(_conditions(places)))):
        del parent[index]


def _negate_condition(places: list[Place], random: Random) -> None:
    for parent, index in random.sample(_conditions(places), min(1, len(_conditions(places)))):
        parent[index] = ["not", parent[index]]


def _move_condition(places: list[Place], random: Random) -> None:
    conditions = _conditions(places)
    if conditions:
        parent, index = random.choice(conditions)
        random.choice(conditions)[0].append(deepcopy(parent[index]))


def _rename_variable(places: list[Place], random: Random) -> None:
    parent, _ = random.choice(places)
    variables = [item for item in parent if isinstance(item, str) and item.startswith("?")]
    if variables:
        parent[parent.index(variables[0])] = variables[-1]


ALTERATIONS: tuple[Callable[[list[Place], Random], None], ...] = (
    *(_put_another, _put_another, _exchange, _drop_condition, _negate_condition, _move_condition, _rename_variable),
)


def noise(random: Random) -> str:
    """Bytes, or scraps of the language, or both; decoded as files are."""
    kind = random.randrange(3)
    if kind == 0:
        return random.randbytes(random.randint(0, 60)).decode("utf-8", errors="replace")
    pieces = [random.choice((*SCRAPS, *WORDS, *map("({} ".format, WORDS))) for _ in range(random.randint(0, 40))]
    if kind == 1:
        return "".join(pieces)
    return " ".join(random.choice((piece, chr(random.randrange(0xD800)))) for piece in pieces)
