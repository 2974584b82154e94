"""Retrieval: for a game without a lesson, the lesson of the variant whose rules agree most, carried to its facts.

The shapes of the rules bound the score of a map from above (see analysis/variants.py). They are compared with those of
all games in the store, which takes a fraction of a millisecond for each. Only the best few games are mapped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..analysis.variants import NameMap, map_facts, map_names, rule_shapes, shape_similarity
from ..gdl.syntax import Rulesheet, parse
from ..learning.store.lesson_rows import LESSON
from ..search.value import LinearValue
from .lesson import fact_texts, stored_value

if TYPE_CHECKING:
    from ..game.game import Game
    from ..learning.store.lesson_rows import Lessons, StoredValue

LEAST_LIKENESS = 0.15
"""Score of the map between two games, from 0 to 1, below which they are no variants of each other."""
_MOST_MAPS = 3


class CarriedValue(NamedTuple):
    """The value of a variant, carried to a game.

    rules_hash  of the variant
    name        of the variant
    likeness    score of the map, 0 to 1
    value       the value, which trusts itself as far as in the variant; this says nothing about the game
    """

    rules_hash: str
    name: str
    likeness: float
    value: StoredValue


def nearest_variant(game: Game, lessons: Lessons) -> CarriedValue | None:
    """Return the variant with the highest score of its map; None if no game is similar enough, or has a value."""
    shapes = rule_shapes(game.rulesheet)
    bounds = {other: shape_similarity(shapes, own) for other, own in lessons.shapes().items()}
    bounds.pop(game.rules_hash, None)
    best: tuple[str, str, Rulesheet, NameMap] | None = None
    least = LEAST_LIKENESS
    for rules_hash in sorted(bounds, key=lambda other: -bounds[other])[:_MOST_MAPS]:
        if bounds[rules_hash] <= least and (best or bounds[rules_hash] < least):
            break
        row = lessons.game(rules_hash)
        if row is not None:
            source = parse(row.rules)
            names = map_names(source, game.rulesheet)
            if names.score > least or (best is None and names.score == least):
                best, least = (rules_hash, row.name, source, names), names.score
    if best is None:
        return None
    rules_hash, name, source, names = best
    taught = lessons.taught(rules_hash, LESSON)
    value = carried(taught[-1].value, names, source, game) if taught else None
    return None if value is None else CarriedValue(rules_hash, name, names.score, value)


def carried(stored: StoredValue, names: NameMap, source: Rulesheet, game: Game) -> StoredValue | None:
    """Return the value of another game for a game; None if it says nothing there.

    Args:
        stored: value of the other game
        names: map from the other game
        source: rules of the other game
    """
    theirs, own = source.roles, [names.source(("role", 0), role) for role in game.roles]
    if not stored.constants or any(role not in theirs for role in own):
        return None
    roles = [theirs.index(str(role)) for role in own]
    facts, texts = list(stored.weights), fact_texts(game)
    weights = np.array(list(stored.weights.values()), np.float32).reshape(len(facts), len(stored.constants)).T
    moved = map_facts(names, source, game.rulesheet, facts, texts).carried(weights[roles], len(texts))
    if not moved.any() and not stored.informed:
        return None
    value = LinearValue.zero(game)
    value.weights[:, : len(texts)] = moved
    value.constants[:] = np.array(stored.constants)[roles]
    trusting = replace(value, determination=stored.determination, foresight=stored.foresight)
    return stored_value(game, trusting, stored.informed)
