"""Rivals: the players without memory against which a lesson is tried, and the searches that play the trial matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..players.random_streams import extend
from ..search.rounds import Openings, Rounds, Side, SideEffort, in_equal_time, rehearsed, side_of
from ..search.settings import ChampionSettings, GrowthSettings, TeachingSettings
from ..search.startclock import Pupil
from ..search.teaching import Teacher
from ..search.value import LinearValue
from .advice import rival_name
from .lesson import restored_value, stored_value

if TYPE_CHECKING:
    from ..game.game import Game
    from ..learning.store.lesson_rows import Lessons
    from ..learning.store.taught_rows import StoredValue

DEFAULT_GROWTH = ChampionSettings().growth
"""The parameters of all searches here: what is tested holds for these only."""
TRIAL_SECONDS = 0.003
"""Time for each move of a trial match, at most."""
_NUM_RIVALS = {1: 4, 10: 2, 60: 1}  # for each startclock, because a single one may have learned well or badly by luck
_BETWEEN_RIVALS = 2  # another one learns whenever rounds have taken so many times its startclock


class SearchPlan(NamedTuple):
    """What a side of a trial plays with."""

    value: LinearValue | None
    growth: GrowthSettings
    openings: Openings | None = None


class Rivals:
    """The sides of trial matches in a game.

    Args:
        game: game that can be taught
        lessons: store, which keeps what rivals have learned
        key: key of the random numbers

    Attributes:
        seconds: time for each move of a trial match; more if a side would have fewer than 64 walks
    """

    def __init__(self, game: Game, lessons: Lessons, key: np.uint64) -> None:
        self._game, self._lessons, self._key = game, lessons, key
        self._fresh = np.random.default_rng()  # for keys that no other process has
        self._pupils: dict[int, Pupil] = {}  # by startclock
        self._efforts: dict[tuple[bool, bool, GrowthSettings], SideEffort] = {}  # see _kind
        self._num_rounds, self._round_seconds = 0, 0.0  # of all contests so far
        self.seconds = TRIAL_SECONDS

    def new_key(self) -> np.uint64:
        """Return a key of random numbers that was not used before."""
        return np.uint64(extend(self._key, self._fresh.integers(1 << 62, dtype=np.uint64)))

    def contest(self, own: SearchPlan, other: SearchPlan, random_plies: Sequence[int]) -> Rounds:
        """Return matches between two sides that have the same time for a move."""
        sides = [side_of(self._game, *plan) for plan in (own, other)]
        speeds = [self._speed(side) for side in sides]
        return Rounds(self._game, self.new_key(), in_equal_time(sides, speeds, self.seconds), random_plies)

    def note(self, rounds: Rounds) -> None:
        """Count the walks of a contest, and the time that they took: the next one has the same time more exactly."""
        for side, effort in zip(rounds.sides, rounds.efforts, strict=True):
            so_far = self._efforts[_kind(side)]
            so_far.walks, so_far.seconds = so_far.walks + effort.walks, so_far.seconds + effort.seconds
            self._round_seconds += effort.seconds
        self._num_rounds += len(rounds.scores)

    def seconds_of(self, num_rounds: int) -> float:
        """Return about how many CPU seconds so many rounds take; 0 before the first contest."""
        return num_rounds * self._round_seconds / max(self._num_rounds, 1)

    def _speed(self, side: Side) -> float:
        """Return the walks per CPU second of a search: those of all contests so far, or of a rehearsal."""
        key = _kind(side)
        if key not in self._efforts:
            self._efforts[key] = rehearsed(self._game, side)
        return self._efforts[key].speed

    def by_lot(self, startclock: int, num_rounds: int, deadline: float) -> SearchPlan | None:
        """Return a rival with a startclock by lot, where so many rounds have been played against such rivals.

        A new one is wanted whenever the rounds have taken twice as long as its startclock, until there are enough. It
        learns until the deadline, and None is returned if its startclock has not ended then. But where there are others
        to play against, learning takes no longer than matches, because a process may end before a new rival is ready.
        """
        name = rival_name(startclock)
        num, most = self._lessons.pupils(self._game.rules_hash).get(name, 0), _NUM_RIVALS.get(startclock, 1)
        is_wanted = num < min(most, 1 + int(self.seconds_of(num_rounds) / (_BETWEEN_RIVALS * startclock)))
        if is_wanted and (num == 0 or self._has_time_for(startclock)):
            rival = self._new_rival(startclock, deadline)
        else:
            rival = self._lessons.value(self._game.rules_hash, name, int(self._fresh.integers(num)))
        return None if rival is None else SearchPlan(restored_value(self._game, rival), with_decision(rival.informed))

    def is_ready(self, startclock: int) -> bool:
        """Return whether there is a rival with a startclock, or time to let one learn."""
        pupils = self._lessons.pupils
        return self._has_time_for(startclock) or rival_name(startclock) in pupils(self._game.rules_hash)

    def _has_time_for(self, startclock: int) -> bool:
        """Return whether the new rival with a startclock has learned for no longer than all matches have taken."""
        pupil = self._pupils.get(startclock)
        return pupil is None or pupil.seconds <= self._round_seconds

    def _new_rival(self, startclock: int, deadline: float) -> StoredValue | None:
        """Let a rival learn until the deadline; store and return what it has learned if its startclock has ended."""
        if startclock not in self._pupils:
            self._pupils[startclock] = Pupil(self._game, self.new_key(), DEFAULT_GROWTH, TeachingSettings())
            self._pupils[startclock].plan(startclock)
        pupil = self._pupils[startclock]
        pupil.teach(deadline)
        if pupil.seconds < startclock and not pupil.is_done:
            return None
        del self._pupils[startclock]
        return self.store(pupil, startclock, pupil.seconds)

    def store(self, learner: Pupil | Teacher, startclock: int, seconds: float) -> StoredValue:
        """Store what was learned in a startclock, which began with nothing, as a rival, and return it."""
        rival = stored_value(self._game, learner.value, learner.growth.informed)
        self._lessons.add_rival(self._game, rival_name(startclock), learner.simulations, seconds, rival)
        return rival


def with_decision(informed: float | None) -> GrowthSettings:
    """Return the parameters of the searches with a decision about informed playouts; None for none."""
    return replace(DEFAULT_GROWTH, informed=informed)


def _kind(side: Side) -> tuple[bool, bool, GrowthSettings]:
    """Return what the speed of a search depends on: whether it has a value, and whether this is a network."""
    prior = side.grower.prior
    return prior.visits > 0, len(prior.network.offsets) > 0, side.growth
