"""Recognising a game by its rules, even where every name in them is another, and nothing stands where it stood.

Who plays what is recognised plays the rules that are known and translates names at the border (`rules.renaming`), so
that one game has one learner, whatever it is called. The shipped games are always known.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import NamedTuple

from .. import games
from ..errors import GDLError
from ..rules.gdl import Rulesheet, parse
from ..rules.renaming import Renaming, find_renaming
from ..rules.sheetgraph import shape_hash

_log = logging.getLogger(__name__)


class KnownRules(NamedTuple):
    """A game, the hash of its rules (`rules_hash`, as `Game` has it), and their text."""

    name: str
    rules_hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a sheet was recognised as: the sheet to play, and how theirs names what it does.

    is_new: nothing known is the same game; then `sheet` is theirs, and the renaming the identity.
    """

    name: str
    sheet: Rulesheet
    renaming: Renaming
    is_new: bool


def rules_hash(sheet: Rulesheet) -> str:
    """The `rules_hash` of the game of this sheet, without making the game."""
    return hashlib.sha256(str(sheet).lower().encode()).hexdigest()


class Recognition:
    """The games that are known. What it finds out about them is kept, so the first question takes longest.

    known: they go before the shipped ones, and the first before the others, where one game is known in several words.
    seconds: for comparing one sheet with all that look like it; a game that would take longer is a new one.
    """

    def __init__(self, known: Iterable[KnownRules] = (), seconds: float = 2.0) -> None:
        self.seconds = seconds
        self._known: dict[str, _Known] = {}
        for rules in chain(known, _shipped()):
            self.add(rules)

    def add(self, known: KnownRules) -> None:
        """One more game; nothing happens where its rules are known."""
        self._known.setdefault(known.rules_hash, _Known(known))

    def recognise(self, sheet: Rulesheet) -> Recognised:
        """The known game that a sheet is, or a new one, called "game-" and the first eight digits of its shape.

        The same rules are recognised at once, other words in the time of `shape_hash`, and at most `seconds` more.
        """
        exact = self._known.get(rules_hash(sheet))
        found = exact and exact.recognised(sheet, self.seconds)
        if found:
            return found
        shape = shape_hash(sheet)
        end = time.monotonic() + self.seconds
        for known in self._of_shape(shape, len(sheet.rules)):
            found = known.recognised(sheet, end - time.monotonic())
            if found:
                return found
        return Recognised(f"game-{shape[:8]}", sheet, Renaming.identity(sheet), is_new=True)

    def _of_shape(self, shape: str, num_rules: int) -> Iterator[_Known]:
        alike = (known for known in self._known.values() if len(known.sheet.rules) == num_rules)
        return (known for known in alike if known.shape == shape)


class _Known:
    """A known game, of which parts are worked out when they are asked for."""

    def __init__(self, rules: KnownRules) -> None:
        self.name, self._text = rules.name, rules.text

    @cached_property
    def sheet(self) -> Rulesheet:
        """Without rules where the text is none, as in a damaged store: then nothing is recognised as this game."""
        try:
            return parse(self._text)
        except GDLError as error:
            _log.warning("the rules of %s cannot be read, so it is not recognised: %s", self.name, error)
            return Rulesheet((), "")

    @cached_property
    def shape(self) -> str:
        return shape_hash(self.sheet)

    def recognised(self, sheet: Rulesheet, seconds: float) -> Recognised | None:
        renaming = find_renaming(self.sheet, sheet, seconds)
        return None if renaming is None else Recognised(self.name, self.sheet, renaming, is_new=False)


@cache
def _shipped() -> tuple[KnownRules, ...]:
    texts = ((name, games.path(name).read_text(encoding="utf-8")) for name in games.names())
    return tuple(KnownRules(name, rules_hash(parse(text)), text) for name, text in texts)
