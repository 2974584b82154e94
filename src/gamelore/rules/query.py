"""Asks the rules, as they are written, what holds in one state: every sentence of some relations, as text.

The engines answer what play needs. A message needs more: which two goals a role has, what `base` says, whom else a
`legal` speaks of. One call of clingo for each question; no cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeAlias

from ..errors import GDLSemanticError, GroundingError
from .asp import Budget, Limits, Translator, control, ground_within, terms_of
from .gdl import KEYWORD_ARITY, Rule, Rulesheet, parse_term
from .names import Names
from .relations import Dependencies

Sentences: TypeAlias = dict[str, list[tuple[str, ...]]]


def sentences(
    sheet: Rulesheet, words: Collection[str], facts: Iterable[str] = (), limits: Limits | None = None
) -> Sentences:
    """For each of some words of GDL the arguments of its sentences that hold in a state, in the order of actions.

    Raises GroundingError over the limits, GDLSemanticError where the state has no perfect model.
    """
    names = Names(sheet)
    translator = Translator(names)
    needed = Rulesheet(tuple(_needed(sheet, words)), sheet.text, sheet.path)
    given = (f"true({translator.ground(names.ground_term(parse_term(fact)))})." for fact in facts)
    shown = (f"#show {word}/{KEYWORD_ARITY[word]}." for word in words)
    program = "\n".join((*translator.rules(needed), *given, "#show.", *shown))
    found: dict[str, list[tuple[Any, ...]]] = {word: [] for word in words}
    for symbol in _only_model(program, limits or Limits()):
        found[symbol.name].append(terms_of(symbol))
    return {word: [tuple(map(names.text, terms)) for terms in sorted(rows)] for word, rows in found.items()}


def _needed(sheet: Rulesheet, words: Collection[str]) -> Iterator[Rule]:
    """The rules that the words depend on."""
    bodies = Dependencies(sheet).bodies
    names = list(dict.fromkeys(words))
    for name in names:
        names += [use for use in bodies.get(name, ()) if use not in names]
    return (rule for rule in sheet.rules if rule.head.name in names)


def _only_model(program: str, limits: Limits) -> list[Any]:
    budget = Budget(limits)
    clingo = control(program, budget, "--models=2", solves=True)
    if not ground_within(clingo, budget):
        raise GroundingError(f"expected an answer within {budget.exceeded}, but the rules go on; raise the limit")
    models: list[list[Any]] = []
    clingo.solve(on_model=lambda model: models.append(list(model.symbols(shown=True))))
    if len(models) != 1:
        raise GDLSemanticError("no perfect model: a relation depends on its own negation", remedy="break the cycle")
    return models[0]
