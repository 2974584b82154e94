"""Retrieval: for a game without a lesson, that of the same game under other names, or that of a variant.

A *variant* is a game with most of the same rules. Its value is carried to the facts that correspond. In misère play, it
is carried twice: what was good for a role is mostly bad for it there, but in some games still good, and matches tell.
The lesson of the same game under other names is copied as a whole, with its tests; into a store in memory if the
store must stay as it is.

A network is carried, too, where nearly each of its facts corresponds to a single one, which corresponds to no other: on
a board of the same size.

The shapes of the rules bound the score of a map from above (see analysis/variants.py). They are compared with those of
all games in the store at once. Only games with the same shapes are compared in full, and only the best few are mapped.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

import numpy as np

from ..analysis.isomorphism import Renaming, find_renaming
from ..analysis.variants import NameMap, map_facts, map_names, rule_shapes, shape_similarities
from ..errors import KnowledgeError
from ..gdl.limits import processor_time
from ..gdl.syntax import Rulesheet, parse
from ..learning.store.knowledge import KnowledgeStore
from ..learning.store.lesson_rows import LESSON, Lessons, naming_lesson
from ..learning.store.schema import IN_MEMORY
from ..search.startclock import has_network
from ..search.value import LinearValue
from .lesson import begun_anew, carried_network, stored_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..game.game import Game
    from ..learning.store.lesson_rows import KeptLesson
    from ..learning.store.schema import GameRow
    from ..learning.store.taught_rows import StoredNetwork, StoredValue

LEAST_LIKENESS = 0.15
"""Score of the map between two games, from 0 to 1, below which they are no variants of each other."""
_LEAST_ALIKE = 0.9  # share of the facts of a network, and of those they correspond to, that are pairs of one and one
_MOST_MAPS, _AS_NEAR = 3, 0.9  # games that are mapped; share of the best score that is as good
_RENAMING_SECONDS = 1.0  # of the comparisons with games whose rules have the same shapes
_MAPPING_SECONDS = 0.5  # of a map
_log = logging.getLogger(__name__)


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


class Relatives:
    """The games in a store whose rules resemble those of a game, which has no lesson yet.

    Args:
        game: game that can be taught
        lessons: store; what others add to it later does not count
    """

    def __init__(self, game: Game, lessons: Lessons) -> None:
        self._game, self._lessons = game, lessons
        stored = lessons.shapes()
        stored.pop(game.rules_hash, None)
        bounds = shape_similarities(rule_shapes(game.rulesheet), list(stored.values()))
        self._bounds = dict(zip(stored, bounds.tolist(), strict=True))  # of the scores of maps, by hash
        nearest = sorted(self._bounds, key=lambda other: -self._bounds[other])[:_MOST_MAPS]
        self._candidates = [other for other in nearest if self._bounds[other] >= LEAST_LIKENESS]
        self._carried: dict[str, list[CarriedValue]] = {}
        self._read: dict[str, tuple[GameRow, Rulesheet] | None] = {}

    def _game_of(self, rules_hash: str) -> tuple[GameRow, Rulesheet] | None:
        """Return a game with its rules; None if the store does not have it any more, or it is damaged."""
        if rules_hash not in self._read:
            self._read[rules_hash] = None
            with _leaving_out(self._lessons, rules_hash):
                row = self._lessons.game(rules_hash)
                self._read[rules_hash] = None if row is None else (row, parse(row.rules))
        return self._read[rules_hash]

    def first_variant(self) -> CarriedValue | None:
        """Return the variant whose rules resemble those of the game most; None if there is none.

        The others, which `variants` has, too, are not read.
        """
        return next(chain.from_iterable(map(self._carried_from, self._candidates)), None)

    def variants(self) -> list[CarriedValue]:
        """Return the variants with the highest scores of their maps, the most promising one first.

        Those with nearly the highest score come first. Among them, the order is by how much a value explains in its own
        game.
        """
        values = [*chain.from_iterable(map(self._carried_from, self._candidates))]
        near = _AS_NEAR * max((own.likeness for own in values), default=0.0)
        rank = lambda own: (own.likeness >= near, own.value.determination if own.likeness >= near else own.likeness)  # noqa: E731
        return sorted(values, key=rank, reverse=True)

    @property
    def has_several(self) -> bool:
        """Whether there may be more than one variant, or more than one value, as far as games were read."""
        return len(self._candidates) > 1 or any(len(values) > 1 for values in self._carried.values())

    def _carried_from(self, rules_hash: str) -> list[CarriedValue]:
        """Return the value of a game, carried to the one here; two of them in misère play, [] if it is no variant."""
        if rules_hash not in self._carried:
            other = self._game_of(rules_hash)
            self._carried[rules_hash] = [] if other is None else _carried_values(self._game, *other, self._lessons)
        return self._carried[rules_hash]

    def adopt(self) -> None:
        """Copy all that the store has about the same game under other names, if there is such a game, see `copy`.

        From then on, each of the two games has a lesson of its own.
        """
        copy = self.copy()
        if copy is not None:
            self._lessons.add([(self._game, copy)])

    def copy(self) -> KeptLesson | None:
        """Return all that the store has about the same game under other names, in those of this game; None for none.

        The tests of its lesson hold for the copy, because it is the same game.
        """
        end = monotonic() + _RENAMING_SECONDS
        equal = (rules_hash for rules_hash, bound in self._bounds.items() if bound == 1.0)
        for row, sheet in filter(None, map(self._game_of, equal)):
            if monotonic() > end:
                _log.warning("not enough time to compare the rules with those of %s and others", row.name)
                break
            renaming = find_renaming(sheet, self._game.rulesheet, end - monotonic())
            if renaming is None:
                continue
            with _leaving_out(self._lessons, row.name):
                kept = self._lessons.kept(row.rules_hash)
                if kept is not None:
                    return _renamed(kept, renaming)
        return None


def readable(game: Game, lessons: Lessons) -> Lessons:
    """Return lessons among which is that about a game, if the store has one under any names. The store does not change.

    They are those of the store, or a copy of the lesson of the same game under other names in a store in memory, which
    takes no others.
    """
    if lessons.find(game.rules_hash) is not None:
        return lessons
    copy = Relatives(game, lessons).copy()
    if copy is None:
        return lessons
    borrowed = Lessons(KnowledgeStore(IN_MEMORY), quota=0)
    finalize(borrowed, borrowed.knowledge.close)
    borrowed.add([(game, copy)])
    return borrowed


def _carried_values(game: Game, row: GameRow, source: Rulesheet, lessons: Lessons) -> list[CarriedValue]:
    """Return the value of a game, carried to another; in misère play turned, and as it is.

    There are none if the game is no variant, says nothing there, or is damaged.
    """
    begin = processor_time()
    names = map_names(source, game.rulesheet, _MAPPING_SECONDS)
    if processor_time() - begin > _MAPPING_SECONDS:
        _log.warning("not enough time to compare the rules with those of %s", row.name)
    moved: list[StoredValue | None] = []
    with _leaving_out(lessons, row.name):
        value = _newest_value(row.rules_hash, lessons) if names.score >= LEAST_LIKENESS else None
        if value is not None:
            ways = [True, False] if names.is_misere else [False]
            moved = [carried(value, names, source, game, is_turned=is_turned) for is_turned in ways]
    return [CarriedValue(row.rules_hash, row.name, names.score, own) for own in moved if own is not None]


@contextmanager
def _leaving_out(lessons: Lessons, name: str) -> Iterator[None]:
    """End the context where the lesson about a game cannot be read, and tell so: the others are of use without it."""
    try:
        with naming_lesson(lessons.knowledge, name):
            yield
    except KnowledgeError as error:
        _log.warning("the lesson about %s is left out: %s", name, error)


def _newest_value(rules_hash: str, lessons: Lessons) -> StoredValue | None:
    """Return the newest value of a lesson. Its tests say nothing about another game, so they do not count."""
    number = max((row.number for row in lessons.generations(rules_hash)), default=-1)
    return lessons.value(rules_hash, LESSON, number)


def _renamed(kept: KeptLesson, renaming: Renaming) -> KeptLesson:
    """Return what a store has about a game under the other names of a renaming."""

    def value(own: StoredValue) -> StoredValue:
        weights = {renaming.theirs(fact): weights for fact, weights in own.weights.items()}
        network = own.network
        if network is not None:
            network = network._replace(facts=tuple(map(renaming.theirs, network.facts)))
        return own._replace(weights=weights, network=network)

    # the sums of the generation under way belong to the order of the old facts
    lesson = replace(begun_anew(kept.lesson), value=value(kept.lesson.value))
    taught = {pupil: [row._replace(value=value(row.value)) for row in rows] for pupil, rows in kept.taught.items()}
    openings = {
        frozenset(map(renaming.theirs, facts)): [move._replace(move=renaming.theirs(move.move)) for move in moves]
        for facts, moves in kept.openings.items()
    }
    matches = [
        match._replace(moves=tuple(tuple(map(renaming.theirs, joint)) for joint in match.moves))
        for match in kept.matches
    ]
    return kept._replace(lesson=lesson, taught=taught, openings=openings, matches=matches)


def carried(
    stored: StoredValue, names: NameMap, source: Rulesheet, game: Game, *, is_turned: bool = False
) -> StoredValue | None:
    """Return the value of another game for a game; None if it says nothing there.

    Args:
        stored: value of the other game
        names: map from the other game
        source: rules of the other game
        is_turned: whether what was good for a role is bad for it here
    """
    theirs, own = source.roles, [names.source(("role", 0), role) for role in game.roles]
    if not stored.constants or any(role not in theirs for role in own):
        return None
    roles = [theirs.index(str(role)) for role in own]
    facts, texts = list(stored.weights), game.fact_texts
    weights = np.array(list(stored.weights.values()), np.float32).reshape(len(facts), len(stored.constants)).T
    moved = map_facts(names, source, game.rulesheet, facts, texts).carried(weights[roles], len(texts))
    network = None
    if stored.network is not None and has_network(game):
        network = _carried_network(stored.network, names, source, game, roles, is_turned=is_turned)
    # with a network, a lesson never tries informed playouts
    informed = stored.informed if network is None else None
    if not moved.any() and not informed and network is None:
        return None
    value = LinearValue.zero(game)
    constants = np.array(stored.constants)[roles]
    value.weights[:, : len(texts)] = -moved if is_turned else moved
    value.constants[:] = 1.0 - constants if is_turned else constants
    trusting = replace(value, determination=stored.determination, foresight=stored.foresight)
    return stored_value(game, trusting, informed)._replace(network=network)


def _carried_network(
    stored: StoredNetwork, names: NameMap, source: Rulesheet, game: Game, roles: Sequence[int], *, is_turned: bool
) -> StoredNetwork | None:
    """Return the network of another game for a game; None if too few facts correspond to a single one, on either side.

    The facts of the game that correspond to none do not count: the network need not know them.

    Args:
        stored: network of the other game
        names, source, is_turned: see `carried`
        roles: the role of the other game that each role corresponds to
    """
    texts = game.fact_texts
    fact_map = map_facts(names, source, game.rulesheet, stored.facts, texts)
    rows = fact_map.one_to_one()
    own = [texts[rows[column]] if column in rows else None for column in range(len(stored.facts))]
    most = max(len(own), len(np.unique(fact_map.rows)))
    if not rows or len(rows) < _LEAST_ALIKE * most:
        return None
    return carried_network(stored, own, roles, is_turned=is_turned)
