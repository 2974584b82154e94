"""Options of a rulesheet: facts that whoever loads it may choose, so that one sheet holds the variants of a game.

    (option cap 100)                 ; the value it has unless another is chosen
    (choice cap 80) (choice cap 100) ; the values that make sense; without any, every word does
    (<= (chosen ?name ?value) (option ?name ?value) (choice ?name ?value))

The last rule is the sheet's own, and its other rules ask for `chosen`, as in `(chosen cap ?n)`. To choose is to write
another value into the text, so that everything behind (findings, hash, cache) sees an ordinary sheet. Grounding leaves
nothing of an option: it depends on no state.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..errors import GameloreError
from .gdl import Constant, Rule, lines, parse_around_errors

_WORD = re.compile(r"[^\s();?][^\s();]*")


@dataclass(frozen=True, slots=True)
class Option:
    """An option by its name: the value that the sheet gives it, and those that it allows, none where all are."""

    name: str
    value: str
    choices: tuple[str, ...]

    def allowed(self, value: str) -> str:
        """The value as the sheet writes it. Raises GameloreError, naming the nearest, for one that is not allowed."""
        spelled = {choice.lower(): choice for choice in self.choices}
        if value.lower() in spelled:
            return spelled[value.lower()]
        if self.choices or not _WORD.fullmatch(value):
            expected = f"one of {', '.join(self.choices)}" if self.choices else "a word"
            raise GameloreError(f"expected {expected} for the option {self.name}, got {value!r}; {self._near(value)}")
        return value

    def _near(self, value: str) -> str:
        numbers = [choice for choice in self.choices if choice.isdecimal()]
        if value.isdecimal() and numbers:
            return f"the nearest is {min(numbers, key=lambda number: abs(int(number) - int(value)))}"
        near = difflib.get_close_matches(value, self.choices, n=2, cutoff=0.5)
        return f"did you mean {' or '.join(near)}?" if near else f"leave it out for {self.value}"


def options(rules: Iterable[Rule]) -> dict[str, Option]:
    """The options of a rulesheet by their names, in its order."""
    rules = list(rules)
    choices: dict[str, list[str]] = {}
    for name, value in _facts("choice", rules):
        choices.setdefault(name.name, []).append(str(value))
    facts = _facts("option", rules)
    return {name.name: Option(name.name, str(value), tuple(choices.get(name.name, ()))) for name, value in facts}


def choose(text: str, chosen: Mapping[str, str], game: str) -> tuple[str, dict[str, str]]:
    """The text of a rulesheet with these values of its options; and the values in the order and spelling of the sheet.

    What else is wrong with the text stays in it. Raises GameloreError for an option that the sheet does not have,
    naming the nearest, and for a value that it does not allow. `game` is its name for that.
    """
    rules = parse_around_errors(text)[0].rules
    known = options(rules)
    for wanted in chosen:
        if wanted not in known:
            raise GameloreError(_unknown(wanted, known, game))
    values = {option.name: option.allowed(chosen[option.name]) for option in known.values() if option.name in chosen}
    rows = lines(text)
    for name, old in reversed(list(_facts("option", rules))):  # from behind, so that no place moves
        if name.name in values:
            row, start = old.location.line - 1, old.location.column - 1
            rows[row] = rows[row][:start] + values[name.name] + rows[row][start + len(old.spelling) :]
    return "\n".join(rows), values


def _unknown(name: str, known: Mapping[str, Option], game: str) -> str:
    if not known:
        return f"expected {game} as it is, for it has no options, got {name!r}; leave it out"
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else "choose one of these"
    return f"expected an option of {game}: {', '.join(known)}; got {name!r}; {remedy}"


def _facts(relation: str, rules: Iterable[Rule]) -> Iterator[tuple[Constant, Constant]]:
    """The two constants of every fact of a relation."""
    for rule in rules:
        match rule.head.args:
            case (Constant() as name, Constant() as value) if rule.head.name == relation and not rule.body:
                yield name, value
