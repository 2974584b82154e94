"""Rules as the text of an answer-set program, and clingo at work on it within limits.

Names are escaped here and nowhere else: constant and function number n becomes `c<n>`, relation number n `r<n>`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .clauses import Literal, conjunctions
from .gdl import KEYWORD_ARITY, Atom, Distinct, Function, Rule, Rulesheet, Term, Variable
from .names import GroundTerm, Names

TOKEN = re.compile(r"\d+|[()]")
RULES_BETWEEN_CHECKS = 64


def _variable(name: str) -> str:
    return "V" + "".join(
        character if character.isalnum() and character.isascii() else f"_{ord(character)}_" for character in name
    )


class Translator:
    """Rules to the text of an answer-set program."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def term(self, term: Term) -> str:
        if isinstance(term, Variable):
            return _variable(term.name)
        number = self.names.numbers[term.name]
        if isinstance(term, Function):
            return f"c{number}({','.join(map(self.term, term.args))})"
        return f"c{number}"

    def ground(self, term: GroundTerm) -> str:
        number, arguments = term
        return f"c{number}({','.join(map(self.ground, arguments))})" if arguments else f"c{number}"

    def relation(self, name: str) -> str:
        return name if name in KEYWORD_ARITY else f"r{self.names.relations[name]}"

    def atom(self, atom: Atom) -> str:
        name = self.relation(atom.name)
        return f"{name}({','.join(map(self.term, atom.args))})" if atom.args else name

    def literal(self, literal: Literal) -> str:
        match literal.sentence:
            case Distinct(left, right):
                return f"{self.term(left)}{'!=' if literal.positive else '='}{self.term(right)}"
            case atom:
                return ("" if literal.positive else "not ") + self.atom(atom)

    def rules(self, sheet: Rulesheet) -> Iterator[str]:
        for rule in sheet.rules:
            yield from self.of_rule(rule, sheet.path)

    def of_rule(self, rule: Rule, path: Path | None) -> Iterator[str]:
        """The rule; with an `or`, one rule for each way to hold."""
        head = self.atom(rule.head)
        for body in conjunctions(rule, path):
            conditions = self.conditions(rule, body)
            yield f"{head} :- {', '.join(conditions)}." if conditions else f"{head}."

    def conditions(self, rule: Rule, body: Iterable[Literal]) -> list[str]:
        """The conditions of one such way."""
        return list(map(self.literal, body))

    def relation_spelling(self, name: str) -> str:
        return name if name in KEYWORD_ARITY else self.names.relation_spellings[int(name[1:])]


def terms_of(symbol: Any) -> tuple[GroundTerm, ...]:
    """The arguments of one of clingo's atoms as numbered terms; a number is a term of that number.

    By the atom's text, for each part of a symbol that one asks clingo for costs more than all of this.
    """
    text = str(symbol)
    begin = text.find("(")
    if begin < 0:
        return ()
    open_: list[list[GroundTerm]] = [[]]
    for token in TOKEN.findall(text, begin):
        if token == "(":
            open_.append([])
        elif token == ")":
            arguments, outer = tuple(open_.pop()), open_[-1]
            if not outer:
                return arguments
            outer[-1] = outer[-1][0], arguments
        else:
            open_[-1].append((int(token), ()))
    raise AssertionError(f"expected an atom, got {text}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of grounding: seconds of processor time, and literals of ground rules (about 100 bytes each)."""

    seconds: float = 25.0
    literals: int = 16_000_000

    def times(self, number: int) -> Limits:
        """Budgets for so many states at once."""
        return Limits(self.seconds * number, self.literals * number)


class Budget:
    """Counts the ground rules that clingo tells it of; raising here is what stops a grounding that goes on for ever."""

    def __init__(self, limits: Limits) -> None:
        self.renew(limits)

    def renew(self, limits: Limits) -> None:
        """Begins to count anew."""
        self.limits, self.num_rules, self.num_literals = limits, 0, 0
        self.deadline = time.thread_time() + limits.seconds
        self.exceeded = ""

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        """Called by clingo for every ground rule."""
        self.num_literals += len(body) + 1
        self.num_rules += 1
        if not self.num_rules % RULES_BETWEEN_CHECKS:
            self.check(self.num_literals)

    def check(self, num_literals: int) -> None:
        """Stops where this is too much, or the time is over."""
        if num_literals > self.limits.literals:
            self.stop(f"{self.limits.literals} literals")
        if time.thread_time() > self.deadline:
            self.stop(f"{self.limits.seconds:g} s")

    def stop(self, limit: str) -> None:
        """Stops the grounding and keeps which limit it was."""
        self.exceeded = limit
        raise RuntimeError(limit)


def control(program: str, budget: Budget, *options: str, solves: bool = False) -> Any:
    """A clingo control with a program, which tells the budget of every ground rule; its solver too, if it `solves`."""
    import clingo

    made: Any = clingo.Control(["--warn=none", *options], message_limit=0)
    made.add("base", [], program)
    made.register_observer(budget, replace=not solves)
    return made


def ground_within(control: Any, budget: Budget, parts: Sequence[tuple[str, Sequence[Any]]] = (("base", ()),)) -> bool:
    """Lets clingo ground; False where the budget stopped it."""
    try:
        control.ground(parts)
    except RuntimeError:
        if not budget.exceeded:
            raise
    return not budget.exceeded
