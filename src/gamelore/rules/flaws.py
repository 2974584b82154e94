"""What can be wrong with a rulesheet: one function for each kind of flaw, `check` has the table of them; those of names
alone are in `spelling`.

Each takes a `Sheet` and yields a `Flaw` for every place (or the first place of every name), in the order of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

from . import relations
from .gdl import (
    KEYWORD_ARITY,
    And,
    Atom,
    Constant,
    Distinct,
    Function,
    Location,
    Not,
    Or,
    Rule,
    Rulesheet,
    Term,
    Variable,
    lines,
)

NEEDED = {
    "role": "(role xplayer)",
    "legal": "(<= (legal ?r noop) (role ?r))",
    "goal": "(<= (goal ?r 50) (role ?r))",
    "terminal": "(<= terminal (true done))",
}
GDL_II_WORDS = frozenset({"sees", "random"})
GOAL = re.compile(r"0*(100|[0-9]{1,2})")


class Flaw(NamedTuple):
    """What is wrong at a place, and what to do about it."""

    location: Location
    message: str
    remedy: str
    rule: Rule | None = None


class Sheet:
    """A rulesheet with what several checks ask of it."""

    def __init__(self, rulesheet: Rulesheet) -> None:
        self.rules = rulesheet.rules
        self.text = rulesheet.text
        self.heads = {rule.head.name for rule in rulesheet.rules}
        self.used = {atom.name for rule in rulesheet.rules for atom in relations.body_atoms(rule)}
        self.dependencies = relations.Dependencies(rulesheet)

    @cached_property
    def lines(self) -> list[str]:
        return lines(self.text)

    def at(self, location: Location) -> str:
        """The rest of the line from a place on; empty where the rulesheet was not parsed from its text."""
        return self.lines[location.line - 1][location.column - 1 :] if location.line <= len(self.lines) else ""

    def opens(self, location: Location) -> bool:
        """Whether a parenthesis stands at a place."""
        return self.at(location).startswith("(")

    def written(self, variable: Variable) -> str:
        """A variable as it is spelled, with its question mark."""
        spelling = self.at(variable.location)[: len(str(variable))]
        return spelling if spelling.lower() == str(variable) else str(variable)

    def atoms(self) -> Iterator[tuple[Rule, Atom]]:
        """Every atom, heads included, with its rule."""
        for rule in self.rules:
            for sentence in relations.sentences(rule):
                if isinstance(sentence, Atom):
                    yield rule, sentence

    def names(self) -> Iterator[tuple[Rule, Constant | Function]]:
        """Every constant and function with its rule."""
        for rule in self.rules:
            for term in relations.named_terms(rule):
                yield rule, term


def missing(sheet: Sheet) -> Iterator[Flaw]:
    for word, example in NEEDED.items():
        if word not in sheet.heads:
            message = f"expected at least one rule for '{word}', got none"
            yield Flaw(Location(1, 1), message, f"a match cannot be played without; add one, as in {example}")


def given_in_head(sheet: Sheet) -> Iterator[Flaw]:
    instead = {"true": "next' or 'init", "does": "legal"}
    for rule in sheet.rules:
        head = rule.head
        if head.name in instead:
            message = f"'{head.name}' in a head, but it is given by the match and never derived"
            yield Flaw(head.location, message, f"use '{instead[head.name]}' in the head", rule)
        elif head.name == "role" and rule.body:
            yield Flaw(
                head.location,
                "'role' in the head of a rule with a body, but roles are given by facts",
                "write one fact for each role, as in (role xplayer)",
                rule,
            )


def output_in_body(sheet: Sheet) -> Iterator[Flaw]:
    remedies = {
        "next": "move what this relation says to one of its own, and use that here and in a rule for 'next'",
        "init": "use a relation of your own, and derive 'init' from it",
        "base": "use a relation of your own, and derive 'base' from it",
        "input": "use 'legal', or a relation of your own from which 'input' is derived",
    }
    for rule in sheet.rules:
        for atom in relations.body_atoms(rule):
            if atom.name in remedies:
                yield Flaw(atom.location, f"'{atom.name}' in a body", remedies[atom.name], rule)


def _depends(sheet: Sheet, heads: frozenset[str], given: str, remedy: str) -> Iterator[Flaw]:
    """Every condition through which a rule for one of `heads` depends on `given`."""
    dependent = sheet.dependencies.toward(given).keys() | {given}
    for rule in sheet.rules:
        for atom in relations.body_atoms(rule):
            if rule.head.name in heads and atom.name in dependent:
                way = " -> ".join((rule.head.name, *sheet.dependencies.path(atom.name, given)))
                yield Flaw(atom.location, f"'{rule.head.name}' depends on '{given}': {way}", remedy, rule)


def fixed_depends_on_state(sheet: Sheet) -> Iterator[Flaw]:
    fixed = frozenset({"init", "base", "input"})
    for given in ("true", "does"):
        yield from _depends(sheet, fixed, given, f"it is the same in every state: derive it without '{given}'")


def state_depends_on_moves(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "it is asked before anybody moves: keep what was done in a fact by 'next', and use 'true' here"
    yield from _depends(sheet, frozenset({"terminal", "legal", "goal"}), "does", remedy)


def not_a_sentence(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "give what is inside a relation of its own, and negate that"
    for rule in sheet.rules:
        for condition in relations.conditions(rule.body):
            match condition:
                case Not(Or() | And() | Not() as inner):
                    word = type(inner).__name__.lower()
                    yield Flaw(inner.location, f"expected a sentence after 'not', got ({word} ..)", remedy, rule)


def unsafe(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        reported: set[str] = set()
        for variable, where in _unbound(rule):
            if variable.name not in reported:
                reported.add(variable.name)
                message = f"the variable {variable} in {where} stands in no positive condition"
                remedy = f"add a condition that {variable} ranges over, as in (some_relation {variable})"
                if any(isinstance(part, Or) for part in relations.conditions(rule.body)):
                    remedy += "; of an 'or', every branch needs one"
                yield Flaw(variable.location, message, remedy, rule)


def _unbound(rule: Rule) -> Iterator[tuple[Variable, str]]:
    """The variables of a rule that nothing gives a value, and where they stand."""
    bound = relations.bound(rule)
    if rule.body:
        yield from ((variable, "the head") for variable in relations.variables(rule.head) if variable.name not in bound)
    for sentence, positive, bound_here in relations.in_context(rule):
        if not positive or isinstance(sentence, Distinct):
            where = "a 'not'" if not positive else "a 'distinct'"
            for variable in relations.variables(sentence):
                if variable.name not in bound_here:
                    yield variable, where


def variable_in_fact(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        variable = None if rule.body else next(relations.variables(rule.head), None)
        if variable:
            remedy = f"write (<= {rule.head} (some_relation {variable})), or a fact for each value"
            yield Flaw(variable.location, f"the variable {variable} in a fact", remedy, rule)


def unlimited_recursion(sheet: Sheet) -> Iterator[Flaw]:
    """The recursion restriction of the specification: it keeps what is derived finite."""
    for rule in sheet.rules:
        recursive = partial(sheet.dependencies.recursive, rule.head)
        if any(map(recursive, relations.body_atoms(rule))):
            yield from _unlimited_terms(rule, recursive)


def _unlimited_terms(rule: Rule, recursive: Callable[[Atom], bool]) -> Iterator[Flaw]:
    for sentence, positive, bound in relations.in_context(rule, binds=lambda atom: not recursive(atom)):
        if positive and isinstance(sentence, Atom) and recursive(sentence):
            for term in sentence.args:
                if term not in rule.head.args and not relations.variables_of(term) <= bound:
                    yield _unlimited(rule, sentence, term)


def _unlimited(rule: Rule, condition: Atom, term: Term) -> Flaw:
    return Flaw(
        term.location,
        f"recursion without limit: {term} of {condition}, which is in a cycle with the head, is not ground, "
        "no argument of the head, and in no positive condition outside the cycle",
        "add a condition outside the cycle that says what it ranges over",
        rule,
    )


def goal_out_of_range(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        if rule.head.name == "goal" and not _may_be_goal(value := rule.head.args[1]):
            message = f"expected a goal that is a whole number from 0 to 100, got {value}"
            yield Flaw(value.location, message, "scale the goals of all roles to 0..100", rule)


def _may_be_goal(value: Term) -> bool:
    return isinstance(value, Variable) or bool(isinstance(value, Constant) and GOAL.fullmatch(value.name))


def unknown_role(sheet: Sheet) -> Iterator[Flaw]:
    declared = [rule.head.args[0] for rule in sheet.rules if rule.head.name == "role"]
    if not declared or any(relations.variables_of(role) for role in declared):
        return
    known = ", ".join(dict.fromkeys(map(str, declared)))
    for rule, atom in sheet.atoms():
        if atom.name in ("legal", "goal", "does", "input"):
            role = atom.args[0]
            if not relations.variables_of(role) and role not in declared:
                message = f"'{atom.name}' of {role}, which is no role"
                yield Flaw(role.location, message, f"the roles are {known}: use one of them, or declare it", rule)


def negation_in_cycle(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        for sentence, positive, _ in relations.in_context(rule):
            if isinstance(sentence, Atom) and not positive and sheet.dependencies.recursive(rule.head, sentence):
                way = " -> ".join(sheet.dependencies.path(sentence.name, rule.head.name))
                yield Flaw(
                    sentence.location,
                    f"negation inside a cycle of relations: {rule.head.name} -> not {way}",
                    "write the rule without what it defines; it has a meaning only where no atom denies itself",
                    rule,
                )


def used_but_never_derived(sheet: Sheet) -> Iterator[Flaw]:
    seen = sheet.heads | relations.GIVEN
    for rule in sheet.rules:
        for atom in relations.body_atoms(rule):
            if atom.name not in seen:
                seen.add(atom.name)
                remedy = "add a rule or a fact for it, or correct its name; as it stands it is always false"
                yield Flaw(atom.location, f"the relation '{atom.name}' is used but never derived", remedy, rule)


def derived_but_never_used(sheet: Sheet) -> Iterator[Flaw]:
    """Relations that no other relation asks for: what only its own recursion uses is not used."""
    groups = sheet.dependencies.groups
    asked = {
        groups[use] for head, uses in sheet.dependencies.bodies.items() for use in uses if groups[use] != groups[head]
    }
    seen = KEYWORD_ARITY.keys() | GDL_II_WORDS
    kept = {groups[word] for word in seen if word in groups}
    for rule in sheet.rules:
        name = rule.head.name
        if name not in seen and groups[name] not in asked | kept:
            seen.add(name)
            message = f"the relation '{name}' is derived but never used"
            yield Flaw(rule.head.location, message, "remove its rules, or correct its name", rule)


def few_branches(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        for condition in relations.conditions(rule.body):
            if isinstance(condition, Or) and len(condition.branches) < 2:
                one = len(condition.branches) == 1
                message = "an 'or' with " + ("one branch" if one else "no branch, which never holds")
                remedy = "write the branch without the 'or', or add the others" if one else "add branches, or remove it"
                yield Flaw(condition.location, message, remedy, rule)


def and_word(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        for condition in relations.conditions(rule.body):
            if isinstance(condition, And):
                remedy = "conditions of a body all hold: write them side by side, or inside an 'or' as a relation"
                yield Flaw(condition.location, "'and' is not in the definition of GDL", remedy, rule)


def not_distinct(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        for condition in relations.conditions(rule.body):
            if isinstance(condition, Not) and isinstance(condition.condition, Distinct):
                remedy = "gamelore reads it as equality, others may not: write the same term in both places"
                yield Flaw(condition.location, "'not' before a 'distinct'", remedy, rule)


def empty_body(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        if rule.arrow and not rule.body:
            yield Flaw(rule.location, "a rule with an empty body", f"write the fact {rule.head}", rule)
