"""Interface to clingo: numbers of names, translation of rules, limits of grounding, sentences of a state.

The numbers of names decide the order of actions. This order is the same in all engines. Only this module translates
names for clingo: constant or function number n becomes `c<n>`, and relation number n becomes `r<n>`.

`state_sentences` returns all sentences of some relations that hold in one state, as text. It answers questions that the
engines do not answer, such as several goals of a role, or the facts of `base`. Each call runs clingo once. The results
are not cached.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import GDLSemanticError, GroundingError
from ..gdl import syntax
from ..gdl.clauses import Literal, conjunctions
from ..gdl.syntax import KEYWORD_ARITY, Atom, Distinct, Function, Rule, Rulesheet, Term, Variable

MAX_GOAL = 32767  # goals are stored in 16 bits; lint reports goals above 100, but such games can be played

GroundTerm: TypeAlias = tuple[int, tuple["GroundTerm", ...]]
"""Number of the name, and the arguments. Actions are sorted by Python's order of these tuples."""


class Names:
    """Numbers and spellings of constants, functions and relations.

    The numbers follow the order of first appearance in the sheet. The spelling is that of the first appearance.
    """

    def __init__(self, sheet: Rulesheet) -> None:
        self.numbers: dict[str, int] = {}
        self.spellings: list[str] = []
        self.relations: dict[str, int] = {}
        self.relation_spellings: list[str] = []
        self.declared_roles: dict[int, int] = {}
        self.add_relations(sheet)
        for rule in sheet.rules:
            for term in syntax.named_terms(rule):
                self.intern(term.name, term.spelling)
            if rule.head.name == "role" and not rule.body and not isinstance(rule.head.args[0], Variable):
                self.declared_roles.setdefault(self.numbers[rule.head.args[0].name], len(self.declared_roles))

    def add_relations(self, sheet: Rulesheet) -> None:
        """Number the relations of a sheet by first appearance. New relations of rewritten rules get higher numbers."""
        for rule in sheet.rules:
            for atom in (rule.head, *syntax.body_atoms(rule)):
                if atom.name not in self.relations:
                    self.relations[atom.name] = len(self.relation_spellings)
                    self.relation_spellings.append(atom.spelling)

    def intern(self, name: str, spelling: str) -> int:
        """Return the number of a name. A name that is not in the sheet gets a new number."""
        if name not in self.numbers:
            self.numbers[name] = len(self.spellings)
            self.spellings.append(spelling)
        return self.numbers[name]

    def ground_term(self, term: Term) -> GroundTerm:
        """Return the numbered form of a term. Raises GDLSemanticError for a variable."""
        if isinstance(term, Variable):
            raise GDLSemanticError(
                f"expected a fact or a move without variables, got {term}",
                **term.location._asdict(),
                remedy=f"replace {term} by a term without variables",
            )
        number = self.intern(term.name, term.spelling)
        arguments = term.args if isinstance(term, Function) else ()
        return number, tuple(self.ground_term(argument) for argument in arguments)

    def place_of_role(self, role: GroundTerm) -> tuple[int, GroundTerm]:
        """Return the sort key of a role: roles declared by facts in their order, then roles derived by rules."""
        return self.declared_roles.get(role[0], len(self.declared_roles)), role

    def goal_value(self, term: GroundTerm) -> int | None:
        """Return the goal value of a term; None if it is no whole number from 0 to MAX_GOAL."""
        return goal_value(self.text(term))

    def text(self, term: GroundTerm) -> str:
        """Return the canonical text in the spelling of the sheet: `(cell 1 1 b)`."""
        number, arguments = term
        if not arguments:
            return self.spellings[number]
        return f"({self.spellings[number]} {' '.join(map(self.text, arguments))})"


def goal_value(text: str) -> int | None:
    """Return the goal value that a text denotes; None if it is no whole number from 0 to MAX_GOAL."""
    digits = text.lstrip("0") or text[-1:]
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MAX_GOAL))
    return value if fits and (value := int(digits)) <= MAX_GOAL else None


TOKEN = re.compile(r"\d+|[()]")
RULES_BETWEEN_CHECKS = 64


def _variable(name: str) -> str:
    return "V" + "".join(
        character if character.isalnum() and character.isascii() else f"_{ord(character)}_" for character in name
    )


class Translator:
    """Translator of rules to the text of an answer-set program. Subclasses may override `atom` and `conditions`."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def term(self, term: Term) -> str:
        if isinstance(term, Variable):
            return _variable(term.name)
        arguments = term.args if isinstance(term, Function) else ()
        return _applied(f"c{self.names.numbers[term.name]}", map(self.term, arguments))

    def ground(self, term: GroundTerm) -> str:
        number, arguments = term
        return _applied(f"c{number}", map(self.ground, arguments))

    def relation(self, name: str) -> str:
        return name if name in KEYWORD_ARITY else f"r{self.names.relations[name]}"

    def atom(self, atom: Atom) -> str:
        return _applied(self.relation(atom.name), map(self.term, atom.args))

    def literal(self, literal: Literal) -> str:
        match literal.sentence:
            case Distinct(left, right):
                return f"{self.term(left)}{'!=' if literal.positive else '='}{self.term(right)}"
            case atom:
                return ("" if literal.positive else "not ") + self.atom(atom)

    def rules(self, sheet: Rulesheet) -> Iterator[str]:
        return (text for rule in sheet.rules for text in self.of_rule(rule, sheet.path))

    def of_rule(self, rule: Rule, path: Path | None) -> Iterator[str]:
        """Yield the text of a rule. A rule with an `or` gives one text for each conjunction."""
        head = self.atom(rule.head)
        for body in conjunctions(rule, path):
            conditions = self.conditions(rule, body)
            yield f"{head} :- {', '.join(conditions)}." if conditions else f"{head}."

    def conditions(self, rule: Rule, body: Iterable[Literal]) -> list[str]:
        """Return the texts of the conditions of one conjunction."""
        return list(map(self.literal, body))

    def relation_spelling(self, name: str) -> str:
        return name if name in KEYWORD_ARITY else self.names.relation_spellings[int(name[1:])]


def _applied(name: str, arguments: Iterable[str]) -> str:
    """Return a name with its arguments in parentheses; the name alone if there are none."""
    text = ",".join(arguments)
    return f"{name}({text})" if text else name


def terms_of(symbol: Any) -> tuple[GroundTerm, ...]:
    """Return the arguments of a clingo atom as numbered terms. A number n becomes the term `(n, ())`.

    This function parses the text of the atom, because it is slower to ask clingo for each part of a symbol.
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
    """Limits of grounding: seconds of CPU time, and number of literals in ground rules (about 100 bytes each)."""

    seconds: float = 25.0
    literals: int = 16_000_000

    def times(self, number: int) -> Limits:
        """Return the limits for this number of states."""
        return Limits(self.seconds * number, self.literals * number)


class Budget:
    """Observer of clingo that counts ground rules. An exception stops a grounding that exceeds the limits."""

    def __init__(self, limits: Limits) -> None:
        self.renew(limits)

    def renew(self, limits: Limits) -> None:
        """Restart counting, with new limits."""
        self.limits, self.num_rules, self.num_literals = limits, 0, 0
        self.deadline = time.thread_time() + limits.seconds
        self.exceeded = ""

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        """Count a ground rule. clingo calls this method for every ground rule."""
        self.num_literals += len(body) + 1
        self.num_rules += 1
        if not self.num_rules % RULES_BETWEEN_CHECKS:
            self.check(self.num_literals)

    def check(self, num_literals: int) -> None:
        """Stop the grounding if there are too many literals or no time is left."""
        if num_literals > self.limits.literals:
            self.exceeded = f"{self.limits.literals} literals"
        elif time.thread_time() > self.deadline:
            self.exceeded = f"{self.limits.seconds:g} s"
        if self.exceeded:
            raise RuntimeError(self.exceeded)


def control(program: str, budget: Budget, *options: str, solves: bool = False) -> Any:
    """Return a clingo control with a program and the budget as its observer.

    solves: whether the solver of the control gets the ground rules, too.
    """
    import clingo

    made: Any = clingo.Control(["--warn=none", *options], message_limit=0)
    made.add("base", [], program)
    made.register_observer(budget, replace=not solves)
    return made


def ground_within(control: Any, budget: Budget, parts: Sequence[tuple[str, Sequence[Any]]] = (("base", ()),)) -> bool:
    """Ground with clingo. Return False if the budget stopped the grounding."""
    try:
        control.ground(parts)
    except RuntimeError:
        if not budget.exceeded:
            raise
    return not budget.exceeded


def only_model(control: Any) -> list[Any]:
    """Return the shown atoms of the only model of a ground control that was made with "--models=2".

    Raises GDLSemanticError if there is not exactly one model.
    """
    models: list[list[Any]] = []
    control.solve(on_model=lambda model: models.append(list(model.symbols(shown=True))))
    if len(models) != 1:
        raise GDLSemanticError(
            "no perfect model: a relation depends on its own negation in this state",
            remedy="break the cycle; `gamelore check` names the rule",
        )
    return models[0]


Sentences: TypeAlias = dict[str, list[tuple[str, ...]]]


def state_sentences(
    sheet: Rulesheet, words: Collection[str], facts: Iterable[str] = (), limits: Limits | None = None
) -> Sentences:
    """Return the arguments of all sentences of some GDL keywords that hold in a state.

    They are sorted like actions.

    Raises GroundingError if the limits are exceeded, and GDLSemanticError if the state has no perfect model.
    """
    names = Names(sheet)
    translator = Translator(names)
    needed = Rulesheet(tuple(_needed(sheet, words)), sheet.text, sheet.path)
    given = (f"true({translator.ground(names.ground_term(syntax.parse_term(fact)))})." for fact in facts)
    shown = (f"#show {word}/{KEYWORD_ARITY[word]}." for word in words)
    program = "\n".join((*translator.rules(needed), *given, "#show.", *shown))
    rows: dict[str, list[tuple[Any, ...]]] = {word: [] for word in words}
    budget = Budget(limits or Limits())
    asked = control(program, budget, "--models=2", solves=True)
    if not ground_within(asked, budget):
        raise GroundingError(f"expected an answer within {budget.exceeded}, got none; raise the limit")
    for symbol in only_model(asked):
        rows[symbol.name].append(terms_of(symbol))
    return {word: [tuple(map(names.text, terms)) for terms in sorted(rows[word])] for word in rows}


def _needed(sheet: Rulesheet, words: Collection[str]) -> Iterator[Rule]:
    """Return the rules on which the keywords `words` depend."""
    bodies = syntax.RelationGraph(sheet).bodies
    names = list(dict.fromkeys(words))
    for name in names:
        names += [use for use in bodies.get(name, ()) if use not in names]
    return (rule for rule in sheet.rules if rule.head.name in names)
