"""Symmetries of a game: permutations of its facts and moves that its rules do not notice.

They are automorphisms of the ground rules (see rulegraph.py), so what is found holds in every reachable state: the
image of a state has the images of its legal moves and successors, the same goals, and is terminal where it is. The
same game in other words may show more symmetries, or fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, GroundingError
from . import cache
from .asp import Limits
from .automorphisms import Bounds, automorphisms
from .engine import pack_bits, unpack_bits
from .game import Game
from .gdl import Rulesheet
from .ground import GroundProgram, ground
from .names import Names
from .rewrite import rewrite
from .rulegraph import rule_graph

AFFORDABLE = Limits(seconds=3.0, literals=2_000_000)  # to ground, once as written and once rewritten


@dataclass(frozen=True, eq=False)
class Symmetries:
    """A group of symmetries: s makes fact i fact `facts[s, i]` and action a action `actions[s, a]`; 0 is the identity.

    facts: int32[num, num_facts], bit numbers of the native engine's states; actions: int32[num, num_actions]. No two
    elements are equal, and each composition of two is one. `why` says what may be missing, empty where nothing is.
    """

    game: Game
    facts: NDArray[np.int32]
    actions: NDArray[np.int32]
    why: str = ""

    @classmethod
    def trivial(cls, game: Game, why: str = "") -> Symmetries:
        """The identity alone."""
        circuit = game.circuit
        num_facts, num_actions = (0, 0) if circuit is None else (circuit.num_facts, circuit.num_actions)
        facts, actions = (np.arange(count, dtype=np.int32)[None] for count in (num_facts, num_actions))
        return cls(game, facts, actions, why)

    @property
    def num(self) -> int:
        return len(self.facts)

    @cached_property
    def inverse(self) -> NDArray[np.int32]:
        """int32[num]: the element that undoes each."""
        number = {row.tobytes(): s for s, row in enumerate(np.hstack([self.facts, self.actions]))}
        undone = np.hstack([np.argsort(self.facts, axis=1), np.argsort(self.actions, axis=1)]).astype(np.int32)
        return np.array([number[row.tobytes()] for row in undone], np.int32)

    @cached_property
    def byte_tables(self) -> NDArray[np.uint64]:
        """uint64[num, 8 * words, 256, words]: the image of a state is OR, over its bytes, of what stands here."""
        words = self.game.num_words
        tables = np.zeros((self.num, 8 * words, 256, words), np.uint64)
        elements = np.arange(self.num)[:, None]
        for i, image in enumerate(self.facts.T[:, :, None]):
            held = np.flatnonzero(np.arange(256) >> (i & 7) & 1)
            tables[elements, i >> 3, held, image >> 6] |= np.uint64(1) << (image & 63).astype(np.uint64)
        return tables

    def images(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """uint64[n, num, words]: all images of the states uint64[n, words]."""
        images = np.empty((len(states), self.num, states.shape[1]), np.uint64)
        held = unpack_bits(states, self.facts.shape[1]).astype(np.bool_)
        for s in range(self.num):
            bits = np.empty_like(held)
            bits[:, self.facts[s]] = held
            images[:, s] = pack_bits(bits, states.shape[1])
        return images

    def keeping(self, facts: Iterable[str]) -> Symmetries:
        """The subgroup whose elements map this set of facts onto itself.

        Raises GameloreError for what is no fact of the game.
        """
        numbers = {self.game.fact_text(bit).lower(): bit for bit in range(self.facts.shape[1])}
        wanted = np.zeros(self.facts.shape[1], np.bool_)
        for fact in facts:
            if fact.lower() not in numbers:
                raise GameloreError(
                    f"expected facts that {self.game.name} can reach, got {fact}; "
                    "see game.facts(state) for how they are written"
                )
            wanted[numbers[fact.lower()]] = True
        kept = (wanted[self.facts] == wanted).all(axis=1)
        return replace(self, facts=self.facts[kept], actions=self.actions[kept])


def symmetries(game: Game, bounds: Bounds | None = None) -> Symmetries:
    """The symmetries of a game that keep its roles, goals and first state; on disk after the first time.

    The identity alone where the game is not compiled as a whole or its rules are too large to ground here, and a
    subgroup over the bounds; `why` says so.
    """
    if game.circuit is None or game.is_bounded:
        return find(game, bounds)
    key = cache.key_of(str(game.rulesheet), game.circuit.facts, game.circuit.actions, bounds or Bounds())
    known = cache.load_arrays(key)
    if known is not None:
        return Symmetries(game, known["facts"], known["actions"], str(known["why"]))
    found = find(game, bounds)
    cache.store_arrays(key, {"facts": found.facts, "actions": found.actions, "why": np.array(found.why)})
    return found


def find(game: Game, bounds: Bounds | None = None) -> Symmetries:
    """What `symmetries` gives, without a look at the disk. The elements are sorted."""
    circuit = game.circuit
    if circuit is None or game.is_bounded:
        return Symmetries.trivial(game, f"{game.name} is not compiled as a whole: {game.engine_reason}")
    try:
        program = affordable(game.rulesheet, Names(game.rulesheet))
    except GroundingError as error:
        return Symmetries.trivial(game, str(error))
    drawn = rule_graph(program, circuit)
    elements, why = automorphisms(drawn.graph, drawn.colours, drawn.live, bounds or Bounds())
    if len(elements) > 1:
        elements = elements[np.lexsort(elements.T[::-1])]
    return Symmetries(game, elements[:, : circuit.num_facts], elements[:, circuit.num_facts :] - circuit.num_facts, why)


def affordable(sheet: Rulesheet, names: Names) -> GroundProgram:
    """The ground rules, as they are written where that is not too large: rewriting may treat equals differently.

    Raises GroundingError where both are too large.
    """
    try:
        return ground(sheet, AFFORDABLE, names)
    except GroundingError:
        return ground(rewrite(sheet), AFFORDABLE, names)
