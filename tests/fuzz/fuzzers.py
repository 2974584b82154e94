"""The fuzzers: how each draws an example, what must hold of it, and how an example on which that fails is cut down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import exports
import floods
import mutants
import parsing
import random_circuits
import scrambling
from agreement import assert_agreement, assert_possible_matches
from evaluators import EVALUATORS, Unfit, within_limits
from gamelore import rulesheets
from gamelore.errors import GDLError
from gamelore.gdl import syntax
from gamelore.gdl.lint import lint
from proofs import assert_proofs_hold
from random_circuits import Recipe
from random_programs import rulesheet
from reducing import reduced, reduced_recipe, reduced_sheet

FOUND = Path(__file__).parent / "found"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "games"
LONGEST = 4000  # characters of a rulesheet whose mutants are played

Example: TypeAlias = str | dict[str, Any]
"""A text, or what JSON can hold."""
Check: TypeAlias = Callable[[Any], None]


@dataclass(frozen=True)
class Fuzzer:
    """`check` raises where an example shows a bug, and Unfit where there is nothing to check.

    `reduce` takes an example and a function that tells whether another one fails, too.
    """

    draw: Callable[[Random], Example]
    check: Check
    reduce: Callable[[Any, Callable[[Any], bool]], Example]

    def fails(self, example: Example) -> str:
        """The kind of failure, without what differs from example to example; empty where there is none."""
        try:
            self.check(example)
        except Unfit:
            return ""
        except Exception as error:
            return f"{type(error).__name__} {re.split(r'[^a-z, ]', str(error))[0]}"
        return ""

    def reduced(self, example: Example) -> Example:
        """A smaller example that fails in the same way."""
        kind = self.fails(example)
        return self.reduce(example, lambda smaller: self.fails(smaller) == kind) if kind else example


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


def _not_reduced(example: Example, fails: Callable[[Any], bool]) -> Example:
    return example


# ---- circuits ----------------------------------------------------------------------------------------------------


def _recipe(random: Random) -> Example:
    return random_circuits.recipe(random).to_json()


def _assert_recipe_means(example: dict[str, Any]) -> None:
    random_circuits.assert_meaning(Recipe.from_json(example))


def _reduced_recipe(example: dict[str, Any], fails: Callable[[Any], bool]) -> Example:
    return reduced_recipe(Recipe.from_json(example), lambda recipe: fails(recipe.to_json())).to_json()


# ---- imported knowledge ------------------------------------------------------------------------------------------


def _assert_import_does_no_harm(example: Any) -> None:
    exports.assert_import_does_no_harm(example)


FUZZERS = {
    "programs": Fuzzer(rulesheet, assert_agreement, reduced_sheet),
    "mutants": Fuzzer(_mutant, _assert_mutant_agrees, reduced_sheet),
    "matches": Fuzzer(rulesheet, assert_possible_matches, reduced_sheet),
    "proofs": Fuzzer(rulesheet, assert_proofs_hold, reduced_sheet),
    "circuits": Fuzzer(_recipe, _assert_recipe_means, _reduced_recipe),
    "parser": Fuzzer(_wild_text, parsing.assert_sound, _reduced_text),
    "names": Fuzzer(_renamed, _assert_renamed_alike, _reduced_renamed),
    "floods": Fuzzer(floods.drawn, floods.assert_in_proportion, _not_reduced),
    "imports": Fuzzer(exports.mutated, _assert_import_does_no_harm, _not_reduced),
    "order": Fuzzer(_shuffled, _assert_shuffled_alike, _not_reduced),
}


# ---- what was found ----------------------------------------------------------------------------------------------


def store(name: str, example: Example, title: str) -> Path:
    """Writes an example to where the tests replay it."""
    place = FOUND / name / f"{title}{'.kif' if isinstance(example, str) else '.json'}"
    place.parent.mkdir(parents=True, exist_ok=True)
    text = example if isinstance(example, str) else json.dumps(example, indent=1, ensure_ascii=False)
    place.write_text(text, encoding="utf-8", newline="")
    return place


def load(path: Path) -> Example:
    """Reads what `store` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    example: Example = json.loads(text) if path.suffix == ".json" else text
    return example
