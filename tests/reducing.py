"""The smallest example that still fails: what a fuzzer found, cut down until every part of it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import random_circuits
from gamelore.gdl import syntax
from gamelore.gdl.lint import lint
from random_circuits import Recipe

Part = TypeVar("Part")
NEEDLESS = frozenset({"missing", "given-in-head"})  # findings that a reduced sheet may have


def reduced(parts: Sequence[Part], fails: Callable[[Sequence[Part]], bool]) -> Sequence[Part]:
    """Parts none of which can be left out: halves are tried first, then quarters, at last single ones."""
    size = max(1, len(parts) // 2)
    while True:
        before = len(parts)
        for start in range((before - 1) // size * size, -1, -size):
            fewer = [*parts[:start], *parts[start + size :]]
            if fails(fewer):
                parts = fewer
        if size == 1 and len(parts) == before:
            return parts
        size = max(1, size // 2)


def reduced_sheet(text: str, fails: Callable[[str], bool]) -> str:
    """A rulesheet of which neither a rule nor a condition can be left out."""
    rules = reduced(syntax.parse(text).rules, lambda rules: _fails(rules, fails))
    shorter = True
    while shorter:
        shorter = False
        for place, rule in enumerate(rules):
            for smaller in _smaller(rule):
                fewer = [*rules[:place], smaller, *rules[place + 1 :]]
                if _fails(fewer, fails):
                    rules, shorter = fewer, True
                    break
    rules = reduced(rules, lambda rules: _fails(rules, fails))
    return "\n".join(map(str, rules))


def _fails(rules: Sequence[syntax.Rule], fails: Callable[[str], bool]) -> bool:
    """Whether these rules are still a sheet that must be understood, and are not."""
    text = "\n".join(map(str, rules))
    refused = {"unsafe-variable", "variable-in-fact"}
    return refused.isdisjoint(finding.code for finding in lint(syntax.parse(text))) and fails(text)


def _smaller(rule: syntax.Rule) -> Iterator[syntax.Rule]:
    """The rule with a condition less, or with a part of one in its place."""
    for place, condition in enumerate(rule.body):
        for instead in [[], *([part] for part in _parts(condition))]:
            body = (*rule.body[:place], *instead, *rule.body[place + 1 :])
            yield syntax.Rule(rule.head, body, rule.location, bool(body))


def _parts(condition: syntax.Condition) -> Iterator[syntax.Condition]:
    match condition:
        case syntax.Not(syntax.Not(inner)):
            yield inner
        case syntax.Not(syntax.Or(parts) | syntax.And(parts)):
            yield from (syntax.Not(part, condition.location) for part in parts)
        case syntax.Or(parts) | syntax.And(parts):
            yield from parts
            for place in range(len(parts) if len(parts) > 1 else 0):
                yield type(condition)((*parts[:place], *parts[place + 1 :]), condition.location)


def reduced_recipe(recipe: Recipe, fails: Callable[[Recipe], bool]) -> Recipe:
    """A recipe that no single change makes smaller."""
    steps = reduced(recipe.steps, lambda steps: fails(replace(recipe, steps=tuple(steps))))
    recipe = replace(recipe, steps=tuple(steps))
    while True:
        smaller = next(filter(fails, random_circuits.smaller(recipe)), None)
        if smaller is None:
            return recipe
        recipe = smaller
