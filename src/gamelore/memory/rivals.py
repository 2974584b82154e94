"""Rivals: the players without memory against which a lesson is tried, and the searches that play the trial matches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

from ..circuit.tape import LANES
from ..players.position_graph import MIB
from ..players.random_streams import extend
from ..search.native_growth import grower
from ..search.rounds import Openings, Side
from ..search.settings import GrowthSettings, TeachingSettings
from ..search.teaching import Teacher
from ..search.tree import Tree, room_in, total_of_goals
from ..search.value import LinearValue, no_prior
from .advice import rival_name
from .lesson import restored_value, stored_value

if TYPE_CHECKING:
    from ..game.game import Game
    from ..learning.store.lesson_rows import Lessons, StoredValue

TRIAL_SECONDS = 0.003
"""Time for each move of a trial match, at most."""
_LEAST_WALKS = 64
_NUM_RIVALS = {1: 3, 10: 2, 60: 1}  # for each startclock, because a single one may have learned well or badly by luck
_EACH_RIVAL = 32  # rounds, after which another rival is taught
_MEMORY_MIB, _REHEARSAL, _MANY = 32, 0.02, 1 << 40  # of the tree that shows how fast a search is; seconds; walks


@dataclass
class _Pupil:
    """A rival that is learning, and the CPU seconds that it has learned so far."""

    teacher: Teacher
    startclock: int
    seconds: float = 0.0


class Rivals:
    """The sides of trial matches in a game.

    Args:
        game: game that can be taught
        lessons: store, which keeps what rivals have learned
        plain: parameters of the search of a player without memory
        key: key of the random numbers

    Attributes:
        seconds: time for each move of a trial match
    """

    def __init__(self, game: Game, lessons: Lessons, plain: GrowthSettings, key: np.uint64) -> None:
        self._game, self._lessons, self._plain, self._key = game, lessons, plain, key
        self._fresh = np.random.default_rng()  # for keys that no other process has
        self._pupil: _Pupil | None = None
        self._speeds: dict[tuple[bool, GrowthSettings], float] = {}  # with a value or not, walks per CPU second
        self.seconds = TRIAL_SECONDS

    def new_key(self) -> np.uint64:
        """Return a key of random numbers that was not used before."""
        return np.uint64(extend(self._key, self._fresh.integers(1 << 62, dtype=np.uint64)))

    def side(self, value: LinearValue | None, growth: GrowthSettings, openings: Openings | None = None) -> Side:
        """Return a search with a value, and with as many walks for a move as fit into `seconds`."""
        side = Side(grower(self._game, growth), 1, growth, openings)
        side.grower.prior = value.prior(growth) if value is not None else no_prior(self._game)
        key = side.grower.prior.visits > 0, growth
        if key not in self._speeds:
            self._speeds[key] = speed(self._game, side)
        return side._replace(walks=max(_LEAST_WALKS, int(self.seconds * self._speeds[key])))

    def by_lot(self, startclock: int, num_rounds: int, deadline: float) -> Side | None:
        """Return the side of a rival with a startclock by lot.

        After `_EACH_RIVAL` rounds for each of them, a new one learns until the deadline, as long as there are not
        enough. Return None if its startclock has not ended then.
        """
        name = rival_name(startclock)
        num, wanted = self._lessons.pupils(self._game.rules_hash).get(name, 0), _NUM_RIVALS.get(startclock, 1)
        if num < min(wanted, 1 + num_rounds // _EACH_RIVAL):
            rival = self._new_rival(startclock, deadline)
        else:
            rival = self._lessons.value(self._game.rules_hash, name, int(self._fresh.integers(num)))
        if rival is None:
            return None
        return self.side(restored_value(self._game, rival), with_decision(self._plain, rival.informed))

    def _new_rival(self, startclock: int, deadline: float) -> StoredValue | None:
        """Let a rival learn until the deadline; store and return what it has learned if its startclock has ended."""
        if self._pupil is None or self._pupil.startclock != startclock:
            teacher = Teacher(self._game, self.new_key(), self._plain, TeachingSettings())
            self._pupil = _Pupil(teacher, startclock)
        pupil, begin = self._pupil, process_time()
        pupil.teacher.teach(deadline)
        pupil.seconds += process_time() - begin
        if pupil.seconds < startclock and not pupil.teacher.is_done:
            return None
        self._pupil = None
        rival = stored_value(self._game, pupil.teacher.value, pupil.teacher.informed)
        self._lessons.add_rival(self._game, rival_name(startclock), pupil.teacher.simulations, pupil.seconds, rival)
        return rival


def with_decision(plain: GrowthSettings, informed: float | None) -> GrowthSettings:
    """Return the parameters of the searches with a decision about informed playouts, unless they are given."""
    return plain if plain.informed is not None or informed is None else replace(plain, informed=informed)


def speed(game: Game, side: Side) -> float:
    """Return the walks per CPU second of a search from the first position on."""
    tree = Tree(game, *room_in(game, _MEMORY_MIB * MIB), 2 * LANES)
    tree.total = total_of_goals(game, side.growth.max_plies)
    tree.start(game.initial)
    begin, walks, batches = process_time(), 0, 0
    while process_time() - begin < _REHEARSAL:
        grown = side.grower.grow(tree, _MANY, np.uint64(0), (batches, batches + 1))
        walks, batches = walks + grown.walks, batches + 1
        if not grown.walks:
            break
    return walks / max(process_time() - begin, 1e-6)
