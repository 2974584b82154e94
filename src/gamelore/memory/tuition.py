"""Tuition: what teaches a lesson, first a linear value by searches, then an n-tuple network by self-play.

A linear value is learned within seconds, and hardly gets better after ten of them. A network needs longer, but goes on
learning (docs/memory/trials.md): it is what a startclock cannot buy. So the first states of a lesson are those of a
teacher (search/teaching.py), and the later ones are networks (networks/self_play.py), each taught for half as long
again as the one before. The linear value stays beside the network: it can be shown on a board, and carried to variants
of the game. A lesson that began with the network of a variant goes on with self-play at once.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from time import monotonic, process_time
from typing import TYPE_CHECKING

from ..networks.self_play import SelfPlay
from ..search.proofs import first_assumption
from ..search.settings import TeachingSettings
from ..search.startclock import has_network
from ..search.teaching import Teacher
from ..search.tree import UNRELATED
from .lesson import (
    FIRST_STATE_SECONDS,
    NEXT_STATE,
    PlayProgress,
    is_as_assumed,
    packed_play,
    restored,
    restored_play,
    stored,
    stored_network,
)
from .rivals import DEFAULT_GROWTH, with_decision

if TYPE_CHECKING:
    import numpy as np

    from ..game.game import Game
    from ..learning.store.lesson_rows import StoredLesson

LINEAR_SECONDS = 10.0
"""CPU seconds for which a linear value is taught; more until a generation has ended, and while playouts are tried."""
_TRIAL_SECONDS = 45.0  # after which the trial of informed playouts is given up
_ENDLESS = 1 << 60  # walks


class Tuition:
    """The teaching of a game, which goes on from a lesson.

    Args:
        game: game with opponents and a circuit
        key: key of the random numbers
        lesson: the lesson so far; None to begin with nothing
    """

    def __init__(self, game: Game, key: np.uint64, lesson: StoredLesson | None) -> None:
        self._game, self._key, self._lesson = game, key, lesson
        self._before, self._taught = lesson.seconds if lesson else 0.0, 0.0  # CPU seconds
        self._present: _LinearStage | _NetworkStage | None = None

    @property
    def _stage(self) -> _LinearStage | _NetworkStage:
        """The present stage, made when it is first needed: to read self-play takes some tens of milliseconds."""
        if self._present is None:
            game, lesson = self._game, self._lesson
            progress = restored_play(game, lesson) if lesson is not None else None
            if lesson is not None and progress is not None:
                self._present = _NetworkStage(game, self._key, lesson, progress)
            else:
                self._present = _LinearStage(game, self._key, lesson)
            self._lesson = None
        return self._present

    @property
    def seconds(self) -> float:
        """CPU seconds of teaching so far, those before the lesson was stored included."""
        return self._before + self._taught

    @property
    def teacher(self) -> Teacher | None:
        """The teacher of the linear value; None after its end."""
        return self._stage.teacher if isinstance(self._stage, _LinearStage) else None

    @property
    def generation(self) -> int:
        """Number of the present generation, from 0 on; each state of the network ends a generation, too."""
        return self._stage.generation

    @property
    def walks(self) -> int:
        """Number of walks of searches, and of positions of self-play, so far."""
        if self._present is None:
            return self._lesson.walks if self._lesson is not None else 0
        return self._present.walks

    @property
    def assumption(self) -> int:
        """What is known of the goals of all roles together, see `search.tree.Tree`."""
        return self._begun_with if self._present is None else self._present.assumption

    @cached_property
    def _begun_with(self) -> int:
        """The assumption of the lesson so far. A move has no time for the present stage."""
        return _assumption(self._game, as_assumed=self._lesson is None or is_as_assumed(self._lesson))

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to learn."""
        return self._stage.is_done

    def teach(self, deadline: float) -> None:
        """Teach until the deadline, in seconds of `time.monotonic`."""
        stage, begin = self._stage, process_time()
        if isinstance(stage, _LinearStage):
            stage = self._present = stage.followed_by(self.seconds) or stage
        stage.teach(deadline)
        self._taught += process_time() - begin
        if isinstance(stage, _NetworkStage):
            stage.end_generation(self.seconds)
            if stage.is_done and stage.begun.value.network is not None and not stage.generation:
                # the network of a variant, in which roles moved alone
                value = stage.begun.value._replace(network=None)
                self._present = _LinearStage(self._game, self._key, replace(stage.begun, value=value))

    def lesson(self) -> StoredLesson:
        """Return what was taught so far, for the store; without an id, and without the variant that it began with."""
        return self._stage.lesson(self.seconds)


class _LinearStage:
    """The teaching of a linear value."""

    def __init__(self, game: Game, key: np.uint64, lesson: StoredLesson | None) -> None:
        self._game, self._key = game, key
        self._carried_decision = lesson.value.informed if lesson is not None else None  # of a variant
        growth = with_decision(lesson.decision) if lesson is not None else DEFAULT_GROWTH
        begin = restored(game, lesson) if lesson is not None else None
        self.teacher = Teacher(game, key, growth, TeachingSettings(simulations=_ENDLESS), begin)
        self._begun: Future[SelfPlay] | None = None  # the self-play that follows

    @property
    def generation(self) -> int:
        return self.teacher.generation

    @property
    def walks(self) -> int:
        return self.teacher.simulations

    @property
    def assumption(self) -> int:
        return self.teacher.assumption

    @property
    def is_done(self) -> bool:
        return self.teacher.is_done and not has_network(self._game)

    def teach(self, deadline: float) -> None:
        if not self.teacher.is_done:
            self.teacher.teach(deadline)
        elif self._begun is not None:
            wait([self._begun], max(0.0, deadline - monotonic()))

    def lesson(self, seconds: float) -> StoredLesson:
        """Return the lesson after so many CPU seconds."""
        state = self.teacher.pause()
        informed = self.teacher.informed if state.generation else self._carried_decision
        return stored(self._game, state, seconds, informed)

    def followed_by(self, seconds: float) -> _NetworkStage | None:
        """Return the teaching of a network if it begins after so many CPU seconds; None if it does not.

        To choose its tuples takes some tenths of a second. So a thread does it, and nothing is late.
        """
        if self._begun is None and self._is_enough(seconds):
            threads = ThreadPoolExecutor(1, "tuition")
            self._begun = threads.submit(SelfPlay, self._game, self._key)
            threads.shutdown(wait=False)
        if self._begun is None or not self._begun.done():
            return None
        self_play, due = self._begun.result(), seconds + FIRST_STATE_SECONDS
        progress = PlayProgress(self_play.state, due, self.teacher.pause().as_assumed)
        return _NetworkStage(self._game, self._key, self.lesson(seconds), progress, self_play)

    def _is_enough(self, seconds: float) -> bool:
        """Return whether the linear value was taught for long enough."""
        enough = _TRIAL_SECONDS if self.teacher.is_in_trial else LINEAR_SECONDS
        is_taught = seconds >= enough and self.teacher.generation > 0
        return has_network(self._game) and (self.teacher.is_done or is_taught)


class _NetworkStage:
    """The teaching of a network. Self-play begins with the first piece of work, because not all lessons go on.

    Args:
        game: game
        key: key of the random numbers
        lesson: the lesson so far
        progress: the self-play so far
        self_play: the same, if it has begun

    Attributes:
        progress: the self-play so far
        begun: the lesson before it
        assumption: see `Tuition.assumption`
    """

    def __init__(
        self,
        game: Game,
        key: np.uint64,
        lesson: StoredLesson,
        progress: PlayProgress,
        self_play: SelfPlay | None = None,
    ) -> None:
        self._game, self._key, self._lesson, self.progress = game, key, lesson, progress
        self.begun = lesson
        self._self_play = self_play
        self._before = progress.state.positions  # that the walks of the lesson contain
        self._walks_of_state = lesson.walks  # of the last state; without more, the next one would be the same
        self.assumption = _assumption(game, as_assumed=progress.as_assumed)

    @property
    def generation(self) -> int:
        return self._lesson.generation

    @property
    def walks(self) -> int:
        return self._lesson.walks + self.progress.state.positions - self._before

    @property
    def is_done(self) -> bool:
        return self.progress.state.is_barren

    def teach(self, deadline: float) -> None:
        if self._self_play is None:
            self._self_play = SelfPlay(self._game, self._key, begin=self.progress.state)
        self._self_play.play(deadline)
        self.progress = self.progress._replace(state=self._self_play.state)

    def end_generation(self, seconds: float) -> None:
        """Make the present network a state of the lesson if it is due after so many CPU seconds."""
        if seconds < self.progress.due or self.walks == self._walks_of_state:
            return
        before = self._lesson.value
        value = before._replace(
            constants=before.constants or (0.0,) * self._game.num_roles,
            network=stored_network(self._game, self.progress.state.network),
        )
        self._lesson = replace(self._lesson, generation=self.generation + 1, value=value)
        self.progress = self.progress._replace(due=NEXT_STATE * seconds)
        self._walks_of_state = self.walks

    def lesson(self, seconds: float) -> StoredLesson:
        """Return the lesson after so many CPU seconds."""
        packed = packed_play(self._game, self.progress)
        return replace(self._lesson, walks=self.walks, seconds=seconds, progress=packed)


def _assumption(game: Game, *, as_assumed: bool) -> int:
    """Return what is known of the goals of all roles together; `as_assumed`: see `PlayProgress`."""
    return first_assumption(game, DEFAULT_GROWTH.max_plies) if as_assumed else UNRELATED
