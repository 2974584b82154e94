"""Rules held within `base` and `input`, for games that do not ground without: a counter that nothing else bounds.

    (<= (next (count (s ?n))) (true (count ?n)))

becomes, with a relation B of the facts that `base` declares or the first state holds, and a fact that no sheet has,

    (<= (next (count (s ?n))) (true (count ?n)) (B (count (s ?n))))
    (<= (next outside) (true (count ?n)) (not (B (count (s ?n)))))

The rules for `legal` are held back by `input` likewise. A state is *outside* if it has that fact, or a move that was
held back is legal in it; then it is terminal, and every role has the goal `goal_outside` and no other. In all other
states the rules answer as they did without bounds: what they hold there is a stable model of the rules as they were,
none of which was held back, and those have no other stable model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from .clauses import Signature
from .gdl import (
    NOWHERE,
    And,
    Atom,
    Condition,
    Constant,
    Distinct,
    Function,
    Not,
    Or,
    Rule,
    Rulesheet,
    Term,
    Variable,
)
from .names import MAX_GOAL, goal_value
from .relations import Dependencies, body_atoms, named_terms

Shapes: TypeAlias = set[Signature | None]
"""Names of facts or moves with the number of their arguments; None for a variable, which may be any."""

BOUNDS = {"next": "base", "legal": "input"}
# No name of a sheet has a space.
WITHIN = {"base": "within base", "init": "within base", "input": "within input"}
AS_WRITTEN = {"terminal": "terminal as written", "goal": "goal as written"}
OUTSIDE_FACT = Constant("outside of base", "outside of base", NOWHERE)
OUTSIDE = Atom("is outside", (), "is outside", NOWHERE)


def within_bounds(sheet: Rulesheet) -> Rulesheet | None:
    """The sheet held within its bounds; None where it declares none that could be held.

    Names are met in the same order as in the sheet, so terms have the same numbers; the new ones come last.
    """
    rules = list(map(_written, sheet.rules))
    bounded = {name: _bounded(name, rules) for name in BOUNDS}
    held_back = [rule for rule in rules if _is_bounded(rule, bounded)]
    reading = Dependencies(sheet).toward("legal").keys()
    if not held_back or _reads_next(sheet) or not reading.isdisjoint(WITHIN):
        return None
    everywhere = not reading.isdisjoint({"terminal", "goal", "next"})
    inside = (_inside(rule) if _is_bounded(rule, bounded) else rule for rule in rules)
    new = (*_definitions(sheet), *(_outside(rule, everywhere) for rule in held_back), *_ends(goal_outside(sheet)))
    return Rulesheet((*inside, *new), sheet.text, sheet.path)


def goal_outside(sheet: Rulesheet) -> int:
    """The goal of all roles in states that are outside: one that the sheet does not have."""
    taken = {goal_value(term.name) for rule in sheet.rules for term in named_terms(rule)}
    return next(value for value in range(MAX_GOAL, -1, -1) if value not in taken)


def _reads_next(sheet: Rulesheet) -> bool:
    """Whether a state depends on the next one, of which something may be held back."""
    return any(atom.name == "next" for rule in sheet.rules for atom in body_atoms(rule))


def _bounded(name: str, rules: Sequence[Rule]) -> Shapes:
    """What is held back of `next` or `legal`: what something is declared for; all, where a rule may derive any."""
    declared = {_shape(rule.head) for rule in rules if rule.head.name == BOUNDS[name]}
    derives_any = any(rule.head.name == name and _shape(rule.head) is None and not _keeps(rule) for rule in rules)
    return declared | {None} if declared and derives_any else declared


def _shape(head: Atom) -> Signature | None:
    """The name of a head's fact or move and the number of its arguments; None for a variable."""
    term = head.args[-1]
    return None if isinstance(term, Variable) else (term.name, len(term.args) if isinstance(term, Function) else 0)


def _is_bounded(rule: Rule, bounded: Mapping[str, Shapes]) -> bool:
    """Whether what a rule derives is held back."""
    if rule.head.name not in bounded or _keeps(rule):
        return False
    shapes = bounded[rule.head.name]
    return None in shapes or _shape(rule.head) in shapes


def _keeps(rule: Rule) -> bool:
    """Whether a rule makes no fact hold that does not hold already."""
    return rule.head.name == "next" and any(
        isinstance(condition, Atom) and condition.name == "true" and condition.args == rule.head.args
        for condition in rule.body
    )


def _written(rule: Rule) -> Rule:
    """The rule with names of their own for the end and the goals that the sheet gives."""
    return Rule(_renamed(rule.head), tuple(map(_under_other_names, rule.body)), rule.location, rule.arrow)


def _renamed(atom: Atom) -> Atom:
    return Atom(AS_WRITTEN.get(atom.name, atom.name), atom.args, atom.spelling, atom.location)


def _under_other_names(condition: Condition) -> Condition:
    match condition:
        case Atom():
            return _renamed(condition)
        case Distinct():
            return condition
        case Not(inner, location):
            return Not(_under_other_names(inner), location)
        case Or(parts, location) | And(parts, location):
            return type(condition)(tuple(map(_under_other_names, parts)), location)


def _declaration(head: Atom) -> Atom:
    """That what a rule derives is within its bounds."""
    word = BOUNDS[head.name]
    return Atom(WITHIN[word], head.args, word, head.location)


def _inside(rule: Rule) -> Rule:
    return Rule(rule.head, (*rule.body, _declaration(rule.head)), rule.location)


def _outside(rule: Rule, everywhere: bool) -> Rule:
    """Where a rule is held back, there this one holds.

    everywhere: at the end of a match, too, where nobody asks for moves unless other answers depend on them.
    """
    held_back = (*rule.body, Not(_declaration(rule.head), rule.location))
    if rule.head.name == "next":
        return Rule(Atom("next", (OUTSIDE_FACT,), "next", rule.location), held_back, rule.location)
    if everywhere:
        return Rule(OUTSIDE, held_back, rule.location)
    end = Atom(AS_WRITTEN["terminal"], (), "terminal", rule.location)
    return Rule(OUTSIDE, (*held_back, Not(end, rule.location)), rule.location)


def _definitions(sheet: Rulesheet) -> Iterator[Rule]:
    """What is within the bounds: what is declared, and the first state."""
    for rule in sheet.rules:
        head = rule.head
        if head.name in WITHIN:
            yield Rule(Atom(WITHIN[head.name], head.args, head.spelling, head.location), rule.body, rule.location)


def _ends(outside: int) -> Iterator[Rule]:
    """The end and the goals: outside those that say so, else those of the sheet."""
    role, value = Variable("role", NOWHERE), Variable("value", NOWHERE)

    def atom(name: str, *args: Term) -> Atom:
        return Atom(AS_WRITTEN.get(name, name), args, name, NOWHERE)

    def rule(name: str, args: tuple[Term, ...], *body: Condition) -> Rule:
        return Rule(Atom(name, args, name, NOWHERE), body, NOWHERE)

    yield rule(OUTSIDE.name, (), Atom("true", (OUTSIDE_FACT,), "true", NOWHERE))
    yield rule("terminal", (), atom("terminal"))
    yield rule("terminal", (), OUTSIDE)
    yield rule("goal", (role, value), atom("goal", role, value), Not(OUTSIDE, NOWHERE))
    yield rule("goal", (role, Constant(str(outside), str(outside), NOWHERE)), atom("role", role), OUTSIDE)
