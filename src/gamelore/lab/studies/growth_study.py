"""Growth of the player that remembers: its strength after 0, 1, 10, .. matches of a game.

Nothing is learned from the moves of a match; what counts are the startclocks. So these are used one after the other,
each with as much CPU time as a startclock has, and matches are played at the *checkpoints* only, after the next
startclock, against each rival:

    without  the player itself without memory, after a startclock of the same length: RIVAL_TEACHINGS of them, each
             for an equal part of the pairs
    another  the name of a player, such as "uct:seconds=0.02"

A store and a file with the number of startclocks so far are kept for each run, so a run that is interrupted goes on.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ...catalogue import player
from ...errors import ExperimentError
from ...files import write_whole
from ...learning.store.knowledge import KnowledgeStore
from ...learning.store.lesson_rows import Lessons
from ...memory.course import new_pupil
from ...memory.schooling import GameMemory
from ...players.player import Player
from ...players.random_streams import extend, stream
from ...rulesheets import title
from ...search.champion import Prepared
from ...search.settings import ChampionSettings
from ...workers.processes import Report
from ..results import Outcome, ResultStore, Setting, Trial
from .memory_study import OTHER_SEED, Frozen, MoveTimes, learned, pair_score, playing, ready, used_by

if TYPE_CHECKING:
    from ...game.game import Game

GROWTH = "growth"  # stage of the random numbers
WITHOUT = "without"
RIVAL_TEACHINGS = 4
"""Teachings of a rival at a checkpoint: what one teaching has learned is one sample, in however many pairs."""


@dataclass(frozen=True)
class GrowthSetting(Setting):
    """The growth of a player in a game; each run has a memory of its own.

    startclock    CPU seconds of each startclock
    checkpoints   numbers of startclocks after which matches are played, ascending
    rivals        see the module
    milliseconds  time for each move
    pairs         number of pairs of matches against each rival at each checkpoint
    """

    startclock: float
    checkpoints: tuple[int, ...]
    rivals: tuple[str, ...]
    milliseconds: float
    pairs: int

    @property
    def size(self) -> int:
        """See `Setting.size`."""
        return 2 * self.pairs * len(self.rivals) * len(self.checkpoints)


@dataclass(frozen=True)
class GrowthJob:
    """A run of a setting. `folder` has the memories."""

    trial: Trial[GrowthSetting]
    folder: Path

    @property
    def size(self) -> int:
        """Number of matches."""
        return self.trial.setting.size


def growth_jobs(folder: Path, trials: Iterable[Trial[GrowthSetting]]) -> list[GrowthJob]:
    """Return a job for each run."""
    return [GrowthJob(trial, folder) for trial in trials]


def play_growth_job(job: GrowthJob, report: Report) -> list[Outcome]:
    """Let a memory grow, and play matches at the checkpoints; go on where an earlier call stopped."""
    begin, trial, game = time.perf_counter(), job.trial, ready(job.trial.setting.game)
    result = _Growth(game, trial, job.folder).result(report)
    seconds = time.perf_counter() - begin
    return [Outcome(trial, rules_hash=game.rules_hash, engine=game.engine, seconds=seconds, result=result)]


class _Growth:
    """A run: its memory in a store, and in a file beside it the number of startclocks and the result so far."""

    def __init__(self, game: Game, trial: Trial[GrowthSetting], folder: Path) -> None:
        self._game, self._trial, self._setting = game, trial, trial.setting
        self._champion = ChampionSettings(seconds=trial.setting.milliseconds / 1000, threads=1, solve=False)
        self._key = stream(trial.setting.seed, trial.run, GROWTH, game.rules_hash)
        folder.mkdir(parents=True, exist_ok=True)
        self._store = folder / f"{title(game.name)}-{trial.run}.db"
        self._file = self._store.with_suffix(".json")
        self._num, self._result = 0, dict[str, dict[str, Any]](scores={}, cpu={}, used={}, startclock={})
        if self._file.exists():
            told = json.loads(self._file.read_text())
            if (other := told.pop("settings")) != self._setting.text:
                raise ExperimentError(
                    f"expected a memory of {self._setting.text}, got {other} in {self._file}; choose another --out"
                )
            self._num = told.pop("startclocks")
            self._result |= told

    def result(self, report: Report) -> dict[str, dict[str, Any]]:
        """Return what was measured, each by checkpoint.

        scores      the scores of all pairs by rival, 0 to 100
        cpu         the CPU seconds of the moves of both sides by rival
        used        what of the memory was used, see `used_by`
        startclock  the CPU seconds of the startclock before these matches
        """
        for checkpoint in self._setting.checkpoints:
            with KnowledgeStore(self._store) as knowledge:
                prepare = partial(self._memory(knowledge).begin, self._setting.startclock)
                while self._num < checkpoint:
                    self._learned(prepare)
                    self._num += 1
                    self._keep()
            if str(checkpoint) not in self._result["scores"]:
                for name, value in self._checked().items():
                    self._result[name][str(checkpoint)] = value
                self._keep()
            report(2 * self._setting.pairs * len(self._setting.rivals))
        return self._result

    def _memory(self, knowledge: KnowledgeStore) -> GameMemory:
        return GameMemory(self._game, Lessons(knowledge), self._trial.run)

    def _checked(self) -> dict[str, Any]:
        """Play matches after one more startclock, on a copy of the memory, which stays as it is; see `result`."""
        with TemporaryDirectory() as temporary, KnowledgeStore(shutil.copy(self._store, temporary)) as knowledge:
            own, match, seconds = self._learned(lambda: self._memory(knowledge).begin(self._setting.startclock))
            about = {"startclock": seconds, "used": used_by(match)}
        return about | self._play(own)

    def _learned(self, prepare: Callable[[], Prepared]) -> tuple[Frozen, Prepared, float]:
        """Let a side learn in a startclock, of which preparing it is a part.

        Returns:
            What the side knows, how it has learned that, and the CPU seconds that it took. What is stored at the end
            is no part of the startclock.
        """
        begin = time.process_time()
        learning = prepare()
        frozen = learned(self._game, learning, self._setting.startclock - (time.process_time() - begin))
        seconds = time.process_time() - begin
        learning.end()
        return frozen, learning, seconds

    def _keep(self) -> None:
        write_whole(self._file, json.dumps({"settings": self._setting.text, "startclocks": self._num, **self._result}))

    def _play(self, own: Frozen) -> dict[str, Any]:
        """Return the scores of all pairs of matches against each rival, and the CPU seconds of both sides."""
        scores, cpu, ours = dict[str, list[float]](), dict[str, list[float]](), playing(self._champion, own)
        each = -(-self._setting.pairs // RIVAL_TEACHINGS)
        for number, rival in enumerate(self._setting.rivals):
            key, scores[rival], times = extend(self._key, number), [], [MoveTimes(), MoveTimes()]
            for pair in range(self._setting.pairs):
                if pair % each == 0:
                    sides = [ours, self._rival(rival, pair // each)]
                scores[rival].append(pair_score(self._game, sides, np.uint64(extend(key, pair)), times))
            cpu[rival] = [side.seconds for side in times]
        return {"scores": scores, "cpu": cpu}

    def _rival(self, name: str, teaching: int) -> Player:
        if name != WITHOUT:
            return player(name)
        seed = OTHER_SEED**2 * (self._trial.run + 1) + RIVAL_TEACHINGS * self._num + teaching  # another one each time
        return playing(
            self._champion, self._learned(lambda: new_pupil(self._game, seed).begin(self._setting.startclock))[0]
        )


def growth_of(store: ResultStore, name: str, rival: str) -> dict[int, list[float]]:
    """Return the mean score of each run against a rival, 0 to 100, by checkpoint."""
    runs = [result["scores"] for result in store.by_run(name).values()]
    checkpoints = sorted({int(checkpoint) for scores in runs for checkpoint in scores})
    return {
        own: [float(np.mean(scores[str(own)][rival])) for scores in runs if scores.get(str(own))] for own in checkpoints
    }
