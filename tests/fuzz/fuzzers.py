"""The fuzzers of rules and circuits: how each draws an example, what must hold of it, and how it is cut down."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import mutants
import parsing
import random_circuits
import scrambling
from agreement import assert_agreement, assert_possible_matches
from evaluators import EVALUATORS, Unfit, within_limits
from fuzz.fuzzer import Example, Fuzzer, not_reduced
from fuzz.hostile import HOSTILE
from gamelore import rulesheets
from gamelore.errors import GDLError
from gamelore.gdl import syntax
from gamelore.gdl.lint import lint
from proofs import assert_proofs_hold
from random_circuits import Recipe
from random_programs import rulesheet
from reducing import reduced, reduced_recipe, reduced_sheet

SHARED = Path(__file__).resolve().parents[3] / "shared" / "games"
LONGEST = 4000  # characters of a rulesheet whose mutants are played


@cache
def texts(longest: int) -> list[str]:
    """Rulesheets that are not too long: those shipped, and where they are there, those beside the project."""
    paths = [*map(rulesheets.path, rulesheets.names()), *sorted(SHARED.glob("*.kif"))]
    read = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    return [text for text in read if len(text) <= longest]


# ---- rules -------------------------------------------------------------------------------------------------------


def _mutant(random: Random) -> str:
    return mutants.altered(random.choice(texts(LONGEST)), random)


def _assert_mutant_agrees(text: str) -> None:
    """Of what is no rulesheet, has no perfect model or may go on for ever, nothing is asked.

    Rewriting every rule of a real game eagerly takes minutes; that is for random rulesheets.
    """
    try:
        found = {finding.code for finding in lint(syntax.parse(text)) if finding.severity == "error"}
    except GDLError as error:
        raise Unfit(str(error)) from error
    if found - {"goal-out-of-range", "unknown-role", "several-spellings", "keyword-as-name", "output-in-body"}:
        raise Unfit("an error of the rulesheet")
    if any(finding.code == "negation-in-cycle" for finding in lint(syntax.parse(text))):
        raise Unfit("perhaps no perfect model")
    assert_agreement(text, {name: make for name, make in EVALUATORS.items() if "eagerly" not in name})


def _reduced_text(text: str, fails: Callable[[str], bool]) -> str:
    return "".join(reduced(mutants.tokens(text), lambda tokens: fails("".join(tokens))))


# ---- the parser --------------------------------------------------------------------------------------------------


def _wild_text(random: Random) -> str:
    kind = random.randrange(4)
    if kind == 0:
        return mutants.noise(random)
    return mutants.mutated(rulesheet(random) if kind == 1 else random.choice(texts(20_000)), random)


# ---- the same in other words -------------------------------------------------------------------------------------


def _any_rulesheet(random: Random) -> str:
    return rulesheet(random) if random.random() < 0.7 else random.choice(texts(LONGEST))


def _renamed(random: Random) -> Example:
    text = _any_rulesheet(random)
    return {"text": text, **asdict(scrambling.scrambled(text, random))}


def _assert_renamed_alike(example: dict[str, Any]) -> None:
    text, *names = example.values()
    with within_limits():
        scrambling.assert_names_do_not_matter(text, scrambling.Names(*names))


def _shuffled(random: Random) -> Example:
    text = _any_rulesheet(random)
    return {"text": text, "other": scrambling.shuffled(text, random)}


def _assert_shuffled_alike(example: dict[str, Any]) -> None:
    with within_limits():
        scrambling.assert_order_does_not_matter(example["text"], example["other"])


def _reduced_renamed(example: dict[str, Any], fails: Callable[[Any], bool]) -> Example:
    text = reduced_sheet(example["text"], lambda text: fails({**example, "text": text}))
    words = set(re.findall(r"[^\s()?]+", text.lower()))
    names = {
        kind: {old: new for old, new in example[kind].items() if old in words} for kind in example if kind != "text"
    }
    return {"text": text, **names}


# ---- circuits ----------------------------------------------------------------------------------------------------


def _recipe(random: Random) -> Example:
    return random_circuits.recipe(random).to_json()


def _assert_recipe_means(example: dict[str, Any]) -> None:
    random_circuits.assert_meaning(Recipe.from_json(example))


def _reduced_recipe(example: dict[str, Any], fails: Callable[[Any], bool]) -> Example:
    return reduced_recipe(Recipe.from_json(example), lambda recipe: fails(recipe.to_json())).to_json()


FUZZERS = {
    "programs": Fuzzer(rulesheet, assert_agreement, reduced_sheet),
    "mutants": Fuzzer(_mutant, _assert_mutant_agrees, reduced_sheet),
    "matches": Fuzzer(rulesheet, assert_possible_matches, reduced_sheet),
    "proofs": Fuzzer(rulesheet, assert_proofs_hold, reduced_sheet),
    "circuits": Fuzzer(_recipe, _assert_recipe_means, _reduced_recipe),
    "parser": Fuzzer(_wild_text, parsing.assert_sound, _reduced_text),
    "names": Fuzzer(_renamed, _assert_renamed_alike, _reduced_renamed),
    "order": Fuzzer(_shuffled, _assert_shuffled_alike, not_reduced),
}
EVERY = FUZZERS | HOSTILE
"""All fuzzers, the hostile ones among them."""
