"""Ledger of advice: which kinds of advice won or lost in which games, and which knobs to try first in a game.

A *knob* is a parameter of the search with another value than by default. Which one wins depends on the game, and to
find out takes dozens of matches. So the ledger forecasts the score of each: its mean score in other games, weighted by
how alike they are by their descriptors (descriptors.py), and by the number of rounds. Without such games, the forecast
is 1/2.

Forecasts order the trials, and no more: a knob is used only after its own test in this game has passed (advice.py), and
only with a state of the lesson that has passed, as in its test. Its evidence is kept when the lesson has a new state,
because no state is played with for long enough to decide about a knob. The order is drawn (Thompson sampling): the more
alike games have tried a knob, the less its place depends on chance. So each knob is tried in some games at first, and
later in the games where it wins. A knob is given up as soon as the forecast and the scores together say that it hardly
gains anything.

The ledger is a view of the trials in the store, so a game whose lesson is deleted leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp, sqrt
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import DamagedLessonError
from ..learning.store.lesson_rows import WITHOUT, TrialRow
from ..search.settings import GrowthSettings
from .advice import KNOB_STATE, evidence_of, verdict
from .descriptors import DESCRIPTORS, describing
from .evidence import MIDDLE

if TYPE_CHECKING:
    from ..game.game import Game
    from ..learning.store.lesson_rows import LedgerRow, Lessons
    from ..search.value import LinearValue

KNOBS: Mapping[str, Mapping[str, float | int]] = {
    "exploration=0.25": {"exploration": 0.25},
    "exploration=1": {"exploration": 1.0},
    "playouts=1": {"playouts": 1},
    "prior_visits=4": {"prior_visits": 4},
    "prior_visits=64": {"prior_visits": 64},
}
"""The knobs by name, with the parameters that they change, see `search.settings.GrowthSettings`."""

_DOUBT = 0.1  # standard deviation of the score of a knob in a game around its forecast
PAIR_DEVIATION = 0.35
"""Standard deviation of the score of a pair of matches, from 0 to 1, about."""
_UNKNOWN_ROUNDS = 16.0  # a game with so many rounds counts as half
_UNKNOWN_GAMES = 1.0  # alike games that a score of 1/2 counts as
_NEAR = 0.5  # mean squared difference of standardised descriptors at which a game counts as exp(-1/2)
_LEAST_GAIN, _HOPE = 0.02, 0.8  # a knob is given up if its score is below 1/2 + the first by so many deviations


class Forecast(NamedTuple):
    """Forecast of the score of a knob in a game, from 0 to 1, and the standard deviation of that score around it."""

    score: float
    deviation: float

    def after(self, num: int, mean: float) -> Forecast:
        """Return the forecast after `num` rounds with this mean score: the normal posterior."""
        if not num:
            return self
        precision, own = self.deviation**-2, num / PAIR_DEVIATION**2
        return Forecast((precision * self.score + own * mean) / (precision + own), (precision + own) ** -0.5)

    @property
    def is_hopeless(self) -> bool:
        """Whether a gain that is worth trying for is improbable."""
        return self.score + _HOPE * self.deviation < MIDDLE + _LEAST_GAIN


def with_knob(growth: GrowthSettings, knob: str | None) -> GrowthSettings:
    """Return parameters of a search with a knob; None for no knob."""
    return growth if knob is None else replace(growth, **KNOBS[knob])  # type: ignore[arg-type]


class Ledger:
    """The ledger for the trials of knobs in one game.

    Args:
        game: game with a circuit
        lessons: store
        key: key of the random numbers that draw the order
    """

    def __init__(self, game: Game, lessons: Lessons, key: np.uint64) -> None:
        self._game, self._lessons, self._key = game, lessons, key
        self._forecasts: dict[str, Forecast] = {}
        self._own: Mapping[str, float] | None = None  # descriptors of the game; {} for none; None until they are read
        self._steps: Iterator[dict[str, float] | None] | None = None  # of the description under way

    def trials(self, rows: Sequence[TrialRow], value: LinearValue | None, growth: GrowthSettings) -> Iterator[TrialRow]:
        """Yield the trials of knobs that promise a gain, with their evidence, in the order of the forecasts.

        There are none before the game is described, and once a knob has passed.

        Args:
            rows: all evidence for the game
            value: that of the state of the lesson with which knobs are tried
            growth: the parameters of the search with it
        """
        if taken_knob(rows) is not None:
            return
        stored_rows = {row.advice: row for row in rows if row[1:3] == (KNOB_STATE, WITHOUT)}
        for knob, forecast in self.forecasts.items():
            row = stored_rows.get(knob, TrialRow(knob, KNOB_STATE, WITHOUT))
            evidence = evidence_of(row)
            if not forecast.after(evidence.num, evidence.score).is_hopeless and has_effect(knob, value, growth):
                yield row

    @property
    def is_described(self) -> bool:
        """Whether the game has descriptors. A store that lacks them gets them by `describe`."""
        return self._descriptors.keys() == set(DESCRIPTORS)

    @property
    def _descriptors(self) -> Mapping[str, float]:
        """The descriptors of the game; {} for none."""
        if self._own is None:
            self._own = self._lessons.described().get(self._game.rules_hash, {})
        return self._own

    def describe(self, deadline: float) -> None:
        """Go on with the description of the game until the deadline, in seconds of `time.monotonic`; then store it."""
        if self._steps is None:
            self._steps = describing(self._game)
        for described in self._steps:
            if described is not None:
                self._own = described
                self._lessons.describe(self._game, described)
            if monotonic() >= deadline:
                break

    @property
    def forecasts(self) -> Mapping[str, Forecast]:
        """The forecasts for the knobs; {} as long as the game is not described."""
        if not self._forecasts and self.is_described:
            described = self._lessons.described()
            described.pop(self._game.rules_hash, None)
            self._forecasts = forecasts(
                self._others(), described, self._descriptors, np.random.default_rng(int(self._key))
            )
        return self._forecasts

    def _others(self) -> list[LedgerRow]:
        """Return the scores in other games. The copy of a lesson (retrieval.py) has its tests, and is no other game."""
        rows, firsts = self._lessons.ledger(), dict[str, str]()
        for rules_hash in dict.fromkeys([self._game.rules_hash, *(row.rules_hash for row in rows)]):
            firsts.setdefault(self._lesson_of(rules_hash), rules_hash)
        others = {*firsts.values()} - {self._game.rules_hash}
        return [row for row in rows if row.rules_hash in others]

    def _lesson_of(self, rules_hash: str) -> str:
        """Return the id of the lesson of a game; the hash if the store has none, or a damaged one."""
        try:
            state = self._lessons.state(rules_hash)
        except DamagedLessonError:
            state = None
        return rules_hash if state is None else state[0]


def has_effect(knob: str, value: LinearValue | None, growth: GrowthSettings) -> bool:
    """Return whether a search with a knob differs from one with these parameters and this value."""
    changed = with_knob(growth, knob)
    if changed.prior_visits != growth.prior_visits:
        return value is not None and value.virtual_visits(changed) != value.virtual_visits(growth)
    return changed != growth


def taken_knob(rows: Sequence[TrialRow]) -> str | None:
    """Return the knob that has passed its test, by all evidence for the game; None for none."""
    knobs = (row.advice for row in rows if row.advice in KNOBS and row.number == KNOB_STATE)
    return next((knob for knob in knobs if verdict(rows, knob, KNOB_STATE, 0) == "taken"), None)


def forecasts(
    rows: Iterable[LedgerRow],
    described: Mapping[str, Mapping[str, float]],
    own: Mapping[str, float],
    rng: np.random.Generator,
) -> dict[str, Forecast]:
    """Return the forecast for each knob in a game, in the order of their trials.

    Args:
        rows: scores in other games
        described: descriptors of games by the hash of their rules
        own: descriptors of the game
        rng: draws the order
    """
    weights = similarities(described, own)
    sums = {knob: [_UNKNOWN_GAMES * MIDDLE, _UNKNOWN_GAMES] for knob in KNOBS}
    for row in rows:
        if row.advice in sums and row.against == WITHOUT and row.num:
            weight = weights.get(row.rules_hash, 0.0) * row.num / (row.num + _UNKNOWN_ROUNDS)
            sums[row.advice][0] += weight * row.total / row.num
            sums[row.advice][1] += weight
    expected = {knob: Forecast(total / weight, _DOUBT) for knob, (total, weight) in sums.items()}
    drawn = {knob: rng.normal(forecast.score, _DOUBT / sqrt(sums[knob][1])) for knob, forecast in expected.items()}
    return {knob: expected[knob] for knob in sorted(drawn, key=lambda knob: -drawn[knob])}


def similarities(described: Mapping[str, Mapping[str, float]], own: Mapping[str, float]) -> dict[str, float]:
    """Return how alike other games are to a game, 0 to 1. Descriptors are standardised over all games."""
    names, hashes = list(own), [key for key, values in described.items() if values.keys() == own.keys()]
    if not hashes:
        return {}
    table = np.array([[described[key][name] for name in names] for key in hashes])
    here = np.array([own[name] for name in names])
    spread = np.vstack([table, here]).std(axis=0)
    differs = spread > 0
    if not differs.any():
        return dict.fromkeys(hashes, 1.0)
    squares = (((table - here)[:, differs] / spread[differs]) ** 2).mean(axis=1)
    return {key: exp(-square / (2 * _NEAR)) for key, square in zip(hashes, squares.tolist(), strict=True)}
