"""What a player that remembers plays with in a match, and what the startclock of the match is used for.

A player plays with a remembered lesson only if matches have shown that it is better than what a startclock of the
present length teaches (advice.py). It takes the newest state of the lesson that has passed. Otherwise it plays with
what it learns in the startclock, as a player without memory does, or with what it learned once before in a startclock
of this length: that is just as good, and leaves the present startclock for the lesson and for its tests. So a player
gets its first lesson in its first match of a game, tests it in the next ones, and plays with it as soon as it is sure.
`gamelore study` does the same without matches.

If the store has no lesson about the game, but one about a variant (retrieval.py), the lesson begins with that. What was
learned in the first startclock becomes its rival, and the following ones are used for the trials. A startclock of half
a minute or more has room for trials at once: its last part tries the lesson against what was learned in the rest, if it
was never tried against such a rival, and after the matches that decide about the network of this startclock. A lesson
that has no rival of this startclock yet is tried in the same way. What was learned makes a rival, or has trials against
it, only if it had most of the startclock in CPU time: matches share a process, and a machine may be busy.

A knob (ledger.py) that has passed its test is used with a lesson that has passed.

What a match is played with is decided with each test in the startclock, and does not change after the first move.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import replace
from math import ceil
from time import monotonic, process_time
from typing import TYPE_CHECKING

import numpy as np

from ..errors import KnowledgeError
from ..learning.store.lesson_rows import LESSON, OPENINGS, TrialRow, new_id
from .advice import Verdict, passed, reason, rival_name, verdict
from .course import Course, Snapshot, Told, new_pupil
from .ledger import taken_knob, with_knob
from .lesson import stored
from .retrieval import readable
from .rivals import DEFAULT_GROWTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..game.game import Game
    from ..learning.store.lesson_rows import Lessons
    from ..search.rounds import Openings
    from ..search.settings import GrowthSettings
    from ..search.startclock import Pupil
    from ..search.value import LinearValue

_WHOLE = 0.8  # share of a startclock in CPU time, which makes a rival, and after which trials begin in a long one
_LONG = 30  # seconds of a long startclock
_LONGEST = 600  # seconds of a startclock of which rivals are kept
_PATIENCE = 0.2  # seconds for which a player waits for another process that writes to the store, before a move
_OTHER_SEED = 1 << 20  # added to the seed of what is learned beside a lesson
_log = logging.getLogger(__name__)


class GameMemory:
    """The schooling of a player in a game that it remembers, see `search.champion.Schooling`.

    Args:
        game: game that can be taught
        lessons: store
        seed: seed of the random numbers
        learns: whether the startclock serves the lesson, too; otherwise nothing is stored
    """

    def __init__(self, game: Game, lessons: Lessons, seed: int, *, learns: bool = True) -> None:
        may_adopt = learns and not lessons.is_full
        with lessons.knowledge.patience(_PATIENCE):
            self.lessons = lessons if may_adopt else readable(game, lessons)
        self.game, self.seed, self.learns = game, seed, learns
        with self.in_time():
            self.course = Course(game, self.lessons, seed, may_adopt=may_adopt)

    def in_time(self) -> AbstractContextManager[None]:
        """Let the store fail rather than keep a match waiting, inside the context."""
        return self.lessons.knowledge.patience(_PATIENCE)

    def begin(self, startclock: float | None) -> MatchMemory:
        """See `search.champion.Schooling`. Decide what to play with in a match."""
        with self.in_time():
            return MatchMemory(self, startclock)


class MatchMemory:
    """What a player knows and learns in a match, see `search.champion.Prepared`.

    Attributes:
        startclock: length of the startclock in seconds, rounded up
        solved: CPU seconds of the startclock that the solver took
        verdicts: what was decided about the newest state of each kind of advice
        snapshot: number of the state of the lesson that is used; None if none is
        openings: the openings that are used; None if none are
        knob: the knob that is used; None if none is
    """

    def __init__(self, memory: GameMemory, startclock: float | None) -> None:
        self._memory, self._game, self.startclock = memory, memory.game, ceil(startclock or 0.0)
        self._seconds, self.solved = 0.0, 0.0  # CPU seconds of learning, and of the solver
        self._learns, self._num_generations = memory.learns, 0
        self._fixed: tuple[LinearValue | None, GrowthSettings] | None = None  # stored, and used in this match
        self._used: Snapshot | None = None  # kept, so that the next decision does not read it again
        self.verdicts: Mapping[str, Verdict] = {LESSON: "open", OPENINGS: "open"}
        self.snapshot: int | None = None
        self.openings: Openings | None = None
        self.knob: str | None = None
        self._reasons = "the store failed"
        self._rival = rival_name(self.startclock), 0  # which of them, by lot
        self._has_time = False  # whether the lesson is tried in the last part of this startclock
        self._was_tried = False  # whether trials had a part of the startclock
        try:
            self._learns &= not memory.lessons.is_full
            memory.course.refresh()
            memory.course.prepare_for(self.startclock)
            num = memory.lessons.pupils(memory.game.rules_hash).get(self._rival[0], 0)
            self._rival = self._rival[0], int(np.random.default_rng().integers(max(num, 1)))
            self._has_time = self.startclock >= _LONG and not self._was_tried_before()
            self._decide()
        except KnowledgeError as error:
            self._stop_storing(error)
        course = memory.course
        is_new = self._fixed is None and course.snapshot is None and not course.tuition.walks
        self._is_first, self._lesson_id = self._learns and is_new, ""
        self._fresh: Pupil | None = None if self._fixed is not None else self._new_pupil()

    def _was_tried_before(self) -> bool:
        """Return whether the lesson was tried against rivals of this startclock in an earlier match."""
        rows = self._memory.lessons.trials(self._game.rules_hash)
        return any((row.advice, row.against) == (LESSON, self._rival[0]) for row in rows)

    def _decide(self) -> None:
        """Choose the newest state of the lesson that has passed its tests, a rival, or nothing yet."""
        course, lessons, rules = self._memory.course, self._memory.lessons, self._game.rules_hash
        rows, newest = lessons.trials(rules), course.snapshot.number if course.snapshot is not None else -1
        states = {LESSON: newest, OPENINGS: course.book_state}
        self.verdicts = {advice: verdict(rows, advice, state, self.startclock) for advice, state in states.items()}
        self.openings = course.book.copy() if self.verdicts[OPENINGS] == "taken" else None
        self.snapshot = passed(rows, [self.startclock])
        self.knob = taken_knob(rows) if self.snapshot is not None else None
        pupil, number = self._rival if self.snapshot is None else (LESSON, self.snapshot)
        self._use(pupil, number)
        reasons = [reason(rows, advice, states[advice], said) for advice, said in self.verdicts.items()]
        if self.snapshot not in (None, newest):
            reasons[0] = f"{reason(rows, LESSON, self.snapshot, 'taken')}; state {newest} of the {reasons[0]}"
        self._reasons = "; ".join(reasons)

    def _use(self, pupil: str, number: int) -> None:
        """Use a value, if the store has it. It is made at once, because a move has no time for it."""
        snapshot = self._memory.course.stored_snapshot(pupil, number)
        if snapshot is not None:
            self._used = snapshot
            self._fixed = snapshot.value, with_knob(snapshot.growth, self.knob)

    @property
    def about(self) -> str:
        """What the match is played with, and why, as text."""
        used = f"state {self.snapshot} of the lesson" if self.snapshot is not None else "a value without memory"
        others = f"{f' and {self.knob}' if self.knob else ''}{' and openings' if self.openings is not None else ''}"
        return f"{used}{others} ({self._reasons})"

    def _new_pupil(self) -> Pupil:
        """Return a pupil that knows nothing; where a lesson exists already, with other random numbers."""
        seed = self._memory.seed + (0 if self._is_first else _OTHER_SEED)
        return new_pupil(self._game, seed).begin(self.startclock)

    def teach(self, deadline: float | None = None) -> None:
        """See `search.champion.Prepared`."""
        deadline, begin = monotonic() + _LONGEST if deadline is None else deadline, process_time()
        try:
            with self._memory.in_time():
                self._teach(deadline)
        except KnowledgeError as error:
            self._stop_storing(error)
        self._seconds += process_time() - begin

    def _teach(self, deadline: float) -> None:
        """Go on with the lesson, with its tests, or with what this startclock teaches."""
        if self._fresh is None:
            if self._learns:
                self._memory.course.go_on(deadline, self._hear)
        elif self._has_candidate and self._is_whole and not self._fresh.is_deciding:
            self._try_against(self._fresh, deadline)
        else:
            self._fresh.teach(deadline)
            if self._learns and self._is_first and self._fresh.teacher.generation > self._num_generations:
                self._store_first(self._fresh)

    def _hear(self, told: Told) -> None:
        """Decide again after a test."""
        if isinstance(told, TrialRow):
            self._decide()

    @property
    def _has_candidate(self) -> bool:
        """Whether there is a lesson that matches may still speak for or against, and time for them."""
        has_lesson = self._memory.course.snapshot is not None
        return self._learns and has_lesson and self._has_time and self.verdicts[LESSON] == "open"

    @property
    def _is_whole(self) -> bool:
        """Whether so much was learned as in a startclock that has a core for itself, or all that there is to learn.

        The solver takes a part of the startclock.
        """
        is_done = self._fresh is not None and self._fresh.is_done
        return is_done or self._seconds + self.solved >= _WHOLE * self.startclock

    def _try_against(self, fresh: Pupil, deadline: float) -> None:
        """Try the lesson against what was learned in this startclock; use it if it is better."""
        self._was_tried = True
        self._memory.course.try_against(fresh, self.startclock, deadline)
        self._decide()
        if self.snapshot is not None:
            self._fresh = None

    def _stop_storing(self, error: KnowledgeError) -> None:
        """Store nothing more in this match, because the store failed. What the match is played with stays."""
        _log.warning("the store failed, and gets nothing more of this match: %s", error)
        self._learns = False

    def end(self) -> None:
        """Store what the startclock has taught."""
        learns, self._learns = self._learns, False  # the end of a match may be told twice
        try:
            if learns:
                with self._memory.in_time():  # the next match may have begun
                    self._store()
        except KnowledgeError as error:
            self._stop_storing(error)

    def _store(self) -> None:
        """Store the lesson, or what was learned beside it as a rival."""
        if self._fresh is None:
            self._memory.course.store_lesson()
        elif self._fresh.simulations:
            if self._is_first:
                self._store_first(self._fresh)
            # after the lesson, because a pause may renew the value
            if 0 < self.startclock <= _LONGEST and self._is_whole and not self._was_tried:
                self._memory.course.store_rival(self._fresh, self.startclock, self._seconds)

    def _store_first(self, fresh: Pupil) -> None:
        """Store the linear value that was learned in the first match of a game as the lesson.

        If another process has stored one in the meantime, or this one was deleted, nothing more of it is stored.
        """
        lessons, self._num_generations = self._memory.lessons, fresh.teacher.generation
        lesson = stored(self._game, fresh.teacher.pause(), fresh.linear_seconds, fresh.teacher.informed)
        former, self._lesson_id = self._lesson_id, self._lesson_id or new_id()
        became = lessons.put(self._game, replace(lesson, id=self._lesson_id), former)
        self._is_first = became != "behind"

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to learn."""
        if self._fresh is not None:
            return self._fresh.is_done and not self._has_candidate
        try:
            return not self._learns or self._memory.course.is_done
        except KnowledgeError as error:
            self._stop_storing(error)
            return True

    @property
    def value(self) -> LinearValue | None:
        """The value to play with."""
        if self._fresh is not None:
            return self._fresh.value
        return self._fixed[0] if self._fixed is not None else None

    @property
    def growth(self) -> GrowthSettings:
        """The parameters to play with."""
        if self._fresh is not None:
            return self._fresh.growth
        return self._fixed[1] if self._fixed is not None else DEFAULT_GROWTH

    @property
    def assumption(self) -> int:
        """See `search.champion.Prepared`."""
        return (self._fresh or self._memory.course.tuition).assumption
