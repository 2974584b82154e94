"""Rules to ground rules over integer atoms, by clingo's grounder.

The rules become an answer-set program in which the facts of a state and the actions of the roles are choices:
`{true(F)} :- init(F).`, `{true(F)} :- next(F).`, `{does(R,M)} :- legal(R,M), role(R).` Grounding that program
instantiates every rule that any reachable state could need (and perhaps more: reachability is relaxed).
Names are escaped here and nowhere else: constant and function number n becomes `c<n>`, relation number n `r<n>`.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import GDLSemanticError, GroundingError
from .gdl import (
    KEYWORD_ARITY,
    And,
    Atom,
    Condition,
    Distinct,
    Function,
    Not,
    Or,
    Rule,
    Rulesheet,
    Term,
    Variable,
)

MAX_CONJUNCTIONS = 4096  # of one rule whose `or`s are multiplied out
MAX_GOAL = 32767  # goals above 100 are a finding of the check, but play; they are kept in 16 bits

GroundTerm: TypeAlias = tuple[int, tuple["GroundTerm", ...]]
"""A ground term: the number of its name, its arguments. Python's order on these tuples is the order of actions."""


class Literal(NamedTuple):
    """An atom or a comparison of two terms, perhaps negated."""

    positive: bool
    sentence: Atom | Distinct


class Names:
    """Numbers for constants and functions, by first appearance in the sheet, and their first spelling."""

    def __init__(self, sheet: Rulesheet) -> None:
        self.numbers: dict[str, int] = {}
        self.spellings: list[str] = []
        self.relations: dict[str, int] = {}
        self.relation_spellings: list[str] = []
        self.declared_roles: dict[int, int] = {}
        for rule in sheet.rules:
            for atom in _atoms((rule.head, *rule.body)):
                self._number_relation(atom)
                for term in atom.args:
                    self._number_term(term)
            if rule.head.name == "role" and not rule.body and not isinstance(rule.head.args[0], Variable):
                self.declared_roles.setdefault(self.numbers[rule.head.args[0].name], len(self.declared_roles))

    def _number_relation(self, atom: Atom | Distinct | _Pair) -> None:
        if isinstance(atom, Atom) and atom.name not in self.relations:
            self.relations[atom.name] = len(self.relation_spellings)
            self.relation_spellings.append(atom.spelling)

    def _number_term(self, term: Term) -> None:
        if isinstance(term, Variable):
            return
        if term.name not in self.numbers:
            self.numbers[term.name] = len(self.spellings)
            self.spellings.append(term.spelling)
        if isinstance(term, Function):
            for argument in term.args:
                self._number_term(argument)

    def intern(self, name: str, spelling: str) -> int:
        """The number of a name, a new one if the sheet does not have it (facts that a caller brings along)."""
        if name not in self.numbers:
            self.numbers[name] = len(self.spellings)
            self.spellings.append(spelling)
        return self.numbers[name]

    def ground_term(self, term: Term) -> GroundTerm:
        """The numbered form of a term. Raises GDLSemanticError for one with variables."""
        if isinstance(term, Variable):
            raise GDLSemanticError(
                f"expected a fact or a move without variables, got {term}",
                line=term.location.line,
                column=term.location.column,
                remedy=f"put a term in the place of {term}",
            )
        number = self.intern(term.name, term.spelling)
        arguments = term.args if isinstance(term, Function) else ()
        return number, tuple(self.ground_term(argument) for argument in arguments)

    def place_of_role(self, role: GroundTerm) -> tuple[int, GroundTerm]:
        """Sorts roles by the order in which the sheet declares them; roles that a rule derives come last."""
        return self.declared_roles.get(role[0], len(self.declared_roles)), role

    def goal_value(self, term: GroundTerm) -> int | None:
        """The value of a term as a goal; None where it is no whole number from 0 to MAX_GOAL."""
        return goal_value(self.text(term))

    def text(self, term: GroundTerm) -> str:
        """Canonical text in the sheet's spelling: `(cell 1 1 b)`."""
        number, arguments = term
        if not arguments:
            return self.spellings[number]
        return f"({self.spellings[number]} {' '.join(map(self.text, arguments))})"


def goal_value(text: str) -> int | None:
    """The goal that a text writes; None where it is no whole number from 0 to MAX_GOAL."""
    digits = text.lstrip("0") or text[-1:]
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MAX_GOAL))
    return value if fits and (value := int(digits)) <= MAX_GOAL else None


class _Pair(NamedTuple):
    """The two sides of a `distinct`, seen as something that has arguments."""

    args: tuple[Term, ...]


def _atoms(conditions: Sequence[Condition]) -> Iterator[Atom | _Pair]:
    for condition in conditions:
        match condition:
            case Atom():
                yield condition
            case Distinct(left, right):
                yield _Pair((left, right))
            case Not(inner):
                yield from _atoms((inner,))
            case Or(parts) | And(parts):
                yield from _atoms(parts)


def conjunctions(rule: Rule, path: Path | None = None) -> list[tuple[Literal, ...]]:
    """The body of a rule in disjunctive normal form; several `or`s are multiplied out.

    Raises GDLSemanticError where that gives more than MAX_CONJUNCTIONS.
    """
    body = And(rule.body, rule.location)
    if _num_alternatives(body, positive=True) > MAX_CONJUNCTIONS:
        raise GDLSemanticError(
            f"the `or`s of this rule multiply out to more than {MAX_CONJUNCTIONS} conjunctions",
            path=path,
            line=rule.location.line,
            column=rule.location.column,
            rule=str(rule),
            remedy="give each `or` a relation of its own and use that in the body",
        )
    return _alternatives(body, positive=True)


def _num_alternatives(condition: Condition, positive: bool) -> int:
    """How many conjunctions `_alternatives` would give, without making them."""
    match condition:
        case Atom() | Distinct():
            return 1
        case Not(inner):
            return _num_alternatives(inner, not positive)
        case Or(parts) | And(parts):
            numbers = [_num_alternatives(part, positive) for part in parts]
            return sum(numbers) if isinstance(condition, Or) == positive else prod(numbers)


def _alternatives(condition: Condition, positive: bool) -> list[tuple[Literal, ...]]:
    """A condition, or its negation, as a disjunction of conjunctions of literals."""
    match condition:
        case Atom() | Distinct():
            return [(Literal(positive, condition),)]
        case Not(inner):
            return _alternatives(inner, not positive)
        case Or(parts) | And(parts):
            choices = [_alternatives(part, positive) for part in parts]
            if isinstance(condition, Or) == positive:
                return [alternative for choice in choices for alternative in choice]
            return [tuple(chain(*combination)) for combination in product(*choices)]


def _variable(name: str) -> str:
    return "V" + "".join(
        character if character.isalnum() and character.isascii() else f"_{ord(character)}_" for character in name
    )


class Translator:
    """Rules to the text of an answer-set program, and clingo's symbols back to terms."""

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
            head = self.atom(rule.head)
            for body in conjunctions(rule, sheet.path):
                yield f"{head} :- {', '.join(map(self.literal, body))}." if body else f"{head}."

    def term_of(self, symbol: Any) -> GroundTerm:
        """A clingo symbol as a numbered term."""
        return int(symbol.name[1:]), tuple(self.term_of(argument) for argument in symbol.arguments)

    def relation_spelling(self, name: str) -> str:
        return name if name in KEYWORD_ARITY else self.names.relation_spellings[int(name[1:])]


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of grounding: wall-clock seconds, and literals of ground rules (about 100 bytes each)."""

    seconds: float = 25.0
    literals: int = 4_000_000

    def times(self, number: int) -> Limits:
        """Budgets for so many states at once."""
        return Limits(self.seconds * number, self.literals * number)


@dataclass(slots=True)
class GroundProgram:
    """Ground rules over atoms, which are numbers from 1; a body literal is an atom or minus an atom.

    Rule i derives atom `heads[i]` from `literals[offsets[i]:offsets[i + 1]]`: int32[rules], int64[rules + 1],
    int32[literals].
    `init`, `true`, `next` (fact -> atom), `does`, `legal` ((role, move) -> atom), `goal` ((role, value) -> atom) and
    `terminal` (0 where nothing derives it) say which atom stands for what; `texts` gives any atom's text. Atoms that
    no rule derives are false. Whether an atom holds is for its rules to say: the grounder lists what may hold.
    """

    names: Names
    heads: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    offsets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    literals: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    roles: list[GroundTerm] = field(default_factory=list)
    init: dict[GroundTerm, int] = field(default_factory=dict)
    true: dict[GroundTerm, int] = field(default_factory=dict)
    next: dict[GroundTerm, int] = field(default_factory=dict)
    does: dict[tuple[GroundTerm, GroundTerm], int] = field(default_factory=dict)
    legal: dict[tuple[GroundTerm, GroundTerm], int] = field(default_factory=dict)
    goal: dict[tuple[GroundTerm, GroundTerm], int] = field(default_factory=dict)
    terminal: int = 0
    texts: dict[int, str] = field(default_factory=dict)


CHOICES = """
{true(F)} :- init(F).
{true(F)} :- next(F).
{does(R,M)} :- legal(R,M), role(R).
"""


class Budget:
    """Counts the ground rules that clingo tells it of; raising here is what stops a grounding that goes on for ever."""

    def __init__(self, limits: Limits) -> None:
        self.literals_left = limits.literals
        self.limits = limits
        self.deadline = time.monotonic() + limits.seconds
        self.num_rules = 0
        self.exceeded = ""

    def rule(self, choice: bool, head: Sequence[int], body: Sequence[int]) -> None:
        """Called by clingo for every ground rule."""
        self.literals_left -= len(body) + 1
        if self.literals_left < 0:
            self.stop(f"{self.limits.literals} literals")
        self.num_rules += 1
        if not self.num_rules & 63 and time.monotonic() > self.deadline:
            self.stop(f"{self.limits.seconds:g} s")

    def stop(self, limit: str) -> None:
        """Stops the grounding and keeps which limit it was."""
        self.exceeded = limit
        raise RuntimeError(limit)


class _Recorder(Budget):
    """Keeps the rules."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.heads, self.lengths, self.literals = array("i"), array("i"), array("i")

    def rule(self, choice: bool, head: Sequence[int], body: Sequence[int]) -> None:
        super().rule(choice, head, body)
        if not choice:
            self.heads.append(head[0])
            self.lengths.append(len(body))
            self.literals.extend(body)

    def write_to(self, program: GroundProgram) -> None:
        """Hands the rules over."""
        program.heads = np.array(self.heads, np.int32)
        program.offsets = np.concatenate([[0], np.cumsum(np.array(self.lengths, np.int64))])
        program.literals = np.array(self.literals, np.int32)


def ground_within(control: Any, budget: Budget) -> bool:
    """Lets clingo ground; False where the budget stopped it."""
    control.register_observer(budget)
    try:
        control.ground([("base", [])])
    except RuntimeError:
        if not budget.exceeded:
            raise
    return not budget.exceeded


def ground(sheet: Rulesheet, limits: Limits | None = None) -> GroundProgram:
    """Grounds a rulesheet. Raises GroundingError over a limit, GDLSemanticError where `or`s explode."""
    import clingo

    names = Names(sheet)
    translator = Translator(names)
    program = GroundProgram(names)
    recorder = _Recorder(limits or Limits())
    control = clingo.Control(["--warn=none"], message_limit=0)
    control.add("base", [], "\n".join(translator.rules(sheet)) + CHOICES)
    if not ground_within(control, recorder):
        raise GroundingError(_too_large(recorder.exceeded, control, translator))
    recorder.write_to(program)
    _read_atoms(control, translator, program)
    return program


def _too_large(limit: str, control: Any, translator: Translator) -> str:
    sizes: dict[str, int] = {}
    for atom in control.symbolic_atoms:
        name = atom.symbol.name
        sizes[name] = sizes.get(name, 0) + 1
    largest = max(sizes, key=sizes.__getitem__, default="")
    relation = (
        f"; the largest relation is `{translator.relation_spelling(largest)}` with {sizes[largest]} atoms so far"
        if largest
        else ""
    )
    return (
        f"expected the rules to ground within {limit}, but they go on{relation}. "
        'Remedy: bound that relation, raise the limit, or use engine="reasoner", which grounds one state at a time'
    )


def _read_atoms(control: Any, translator: Translator, program: GroundProgram) -> None:
    """Sorts clingo's atoms into the words of GDL."""
    unary = {"init": program.init, "true": program.true, "next": program.next}
    binary = {"does": program.does, "legal": program.legal, "goal": program.goal}
    term = translator.term_of
    for atom in control.symbolic_atoms:
        symbol, number = atom.symbol, atom.literal
        name, arguments = symbol.name, symbol.arguments
        if name in unary:
            unary[name][term(arguments[0])] = number
        elif name in binary:
            binary[name][term(arguments[0]), term(arguments[1])] = number
        elif name == "terminal":
            program.terminal = number
        elif name == "role":
            program.roles.append(term(arguments[0]))
    program.roles.sort(key=program.names.place_of_role)
    program.texts = _LazyTexts(control, translator)


class _LazyTexts(dict[int, str]):
    """Atom number to text, made when an error message asks for it."""

    def __init__(self, control: Any, translator: Translator) -> None:
        super().__init__()
        self.control, self.translator = control, translator

    def __missing__(self, number: int) -> str:
        for atom in self.control.symbolic_atoms:
            if atom.literal == number:
                arguments = [self.translator.names.text(self.translator.term_of(a)) for a in atom.symbol.arguments]
                return f"({' '.join([self.translator.relation_spelling(atom.symbol.name), *arguments])})"
        return f"atom {number}"
