"""Study of the memory: contests between the player gamelore with memory and the same player without, in many games.

The unit is a *teaching*: `gamelore study` of a game with a seed of its own, whose store then serves all contests of
this game and seed. In a contest, each side gets the same startclock, in CPU seconds of one core, and keeps what it has
learned for all matches. Matches come in pairs with exchanged roles, the same two random plies at first, and the same
time for each move. So the scores of the pairs of a teaching scatter by play only, and those of several teachings by
teaching, too.

The arms, all against a player that has learned in the startclock only:

    memory    with the store of the teaching
    shuffled  the same, but the lesson is that of another game: its weights in random order, on the facts of this game.
              It is tried against the same rivals for as long. A gain that remains is no memory
    empty     with an empty store; its score shows whether the contest is fair
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ...learning.store.knowledge import KnowledgeStore
from ...learning.store.lesson_rows import Lessons, StoredLesson
from ...matches.match import MatchState
from ...memory.course import SHARES, Course, Part, new_teacher
from ...memory.lesson import fact_texts
from ...memory.schooling import GameMemory
from ...players.position_graph import PositionGraph
from ...players.random_streams import extend, stream
from ...rulesheets import load, title
from ...search.champion import Gamelore, Prepared, Schooling
from ...search.rounds import Openings
from ...search.settings import ChampionSettings, GrowthSettings
from ...search.value import LinearValue
from ...workers.processes import Report
from ..results import Outcome, ResultStore, Setting, Trial

if TYPE_CHECKING:
    from ...game.game import Game

Arm = Literal["memory", "shuffled", "empty"]
STUDY = "study"  # stage of the random numbers
RANDOM_PLIES = 2
MOST_PLIES = 500  # of a match; a longer one counts as a draw
_SLICE = 0.25  # seconds
_DRAW = 50.0


@dataclass(frozen=True)
class MemorySetting(Setting):
    """A contest in a game; each run has a teaching of its own.

    arm           see the module
    other         game from which the arm "shuffled" takes the lesson
    study         CPU seconds of each study
    startclock    CPU seconds before the first move
    milliseconds  time for each move
    pairs         number of pairs of matches
    """

    arm: Arm
    other: str
    study: float
    startclock: float
    milliseconds: float
    pairs: int

    @property
    def size(self) -> int:
        """See `Setting.size`."""
        return 2 * self.pairs


@dataclass(frozen=True)
class MemoryJob:
    """The contests of one game and teaching. `folder` has the stores of all teachings."""

    game: str
    run: int
    folder: Path
    trials: tuple[Trial[MemorySetting], ...]

    @property
    def size(self) -> int:
        """Number of matches."""
        return sum(trial.setting.size for trial in self.trials)


def memory_jobs(folder: Path, trials: Iterable[Trial[MemorySetting]]) -> Iterator[MemoryJob]:
    """Group contests by game and teaching."""

    def unit(trial: Trial[MemorySetting]) -> tuple[str, int]:
        return trial.setting.game, trial.run

    for (game, run), group in groupby(sorted(trials, key=unit), unit):
        yield MemoryJob(game, run, folder, tuple(group))


def play_memory_job(job: MemoryJob, report: Report) -> list[Outcome]:
    """Teach, unless the store of the teaching is there, and play all contests of a job."""
    game = load(job.game)
    outcomes = []
    for trial in job.trials:
        begin = time.perf_counter()
        result = _contest(game, trial, job)
        report(trial.setting.size)
        seconds = time.perf_counter() - begin
        outcomes.append(Outcome(trial, rules_hash=game.rules_hash, engine=game.engine, seconds=seconds, result=result))
    return outcomes


# ---- teachings ----


def studied(game: Game, run: int, seconds: float, folder: Path) -> Path:
    """Return the store of a teaching of so many CPU seconds; make it if it is missing."""
    path = folder / f"{title(game.name)}-{run}-{seconds:g}.db"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with TemporaryDirectory(dir=folder) as temporary:
            new = Path(temporary, path.name)
            with KnowledgeStore(new) as knowledge:
                _study(Course(game, Lessons(knowledge), run), seconds)
            with suppress(FileExistsError):  # made by another process in the meantime; all contests use the same one
                path.hardlink_to(new)
    return path


def _study(course: Course, seconds: float, parts: Collection[Part] = get_args(Part)) -> None:
    """Study for so many CPU seconds."""
    end = time.process_time() + seconds
    while (left := end - time.process_time()) > 0 and not course.is_done:
        course.go_on(time.monotonic() + min(left, _SLICE), parts=parts)
    course.store_lesson()


def shuffled(game: Game, lesson: StoredLesson, rng: np.random.Generator) -> StoredLesson:
    """Return the lesson of another game with its weights on the facts of a game, in random order."""
    weights = np.array(list(lesson.value.weights.values()), np.float64).reshape(len(lesson.value.weights), -1)
    facts = fact_texts(game)
    rows = rng.permutation(len(facts))[: len(weights)]
    columns = np.arange(game.num_roles) % max(1, weights.shape[1])
    drawn = rng.permutation(len(weights))[: len(rows)]
    own = {facts[row]: tuple(weights[place, columns].tolist()) for row, place in zip(rows, drawn, strict=True)}
    constants = tuple(lesson.value.constants[column] for column in columns) if lesson.value.constants else ()
    return replace(lesson, value=lesson.value._replace(weights=own, constants=constants), progress=b"")


# ---- contests ----


@dataclass(frozen=True)
class _Prepared:
    """What a side has learned before a contest, which does not change any more; see `search.champion.Schooling`."""

    game: Game
    value: LinearValue | None
    growth: GrowthSettings
    openings: Openings | None
    is_done: bool = True

    def begin(self, startclock: float | None) -> Prepared:
        """Return this."""
        return self

    def teach(self, deadline: float | None = None) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


def _given(prepared: _Prepared, game: Game) -> Schooling:
    """Return what was learned, whatever the game."""
    return prepared


def _contest(game: Game, trial: Trial[MemorySetting], job: MemoryJob) -> dict[str, Any]:
    """Play one contest; return the scores of its pairs, what was used, and times."""
    setting, key = trial.setting, stream(trial.setting.seed, trial.run, STUDY)
    champion = ChampionSettings(seconds=setting.milliseconds / 1000, threads=1, solve=False)
    with TemporaryDirectory() as temporary:
        path = _store(game, trial, job, Path(temporary, "knowledge.db"))
        with KnowledgeStore(path) as knowledge:
            memory = GameMemory(game, Lessons(knowledge), trial.run, champion.growth)
            begin = time.process_time()
            match = memory.begin(setting.startclock)
            retrieval = time.process_time() - begin
            own = _prepared(game, match, setting.startclock)
            verdicts = dict(match.verdicts)
    other = _prepared(game, new_teacher(game, 1000 + trial.run, champion.growth), setting.startclock)
    sides = [Gamelore(champion, partial(_given, prepared)) for prepared in (own, other)]
    cpu = [0.0, 0.0]
    scores = [_pair(game, sides, np.uint64(extend(key, number)), cpu) for number in range(setting.pairs)]
    return {"scores": scores, "snapshot": match.snapshot, "verdicts": verdicts, "retrieval": retrieval, "cpu": cpu}


def _store(game: Game, trial: Trial[MemorySetting], job: MemoryJob, path: Path) -> Path:
    """Make the store of the side with memory; return its path."""
    setting = trial.setting
    if setting.arm != "empty":
        shutil.copyfile(studied(game, trial.run, setting.study, job.folder), path)
    if setting.arm == "shuffled":
        other = load(setting.other)
        with KnowledgeStore(studied(other, trial.run, setting.study, job.folder), writable=False) as knowledge:
            lesson = Lessons(knowledge).find(other.rules_hash)
        if lesson is not None:
            with KnowledgeStore(path) as knowledge:
                _exchange(game, Lessons(knowledge), lesson, trial)
    return path


def _exchange(game: Game, lessons: Lessons, lesson: StoredLesson, trial: Trial[MemorySetting]) -> None:
    """Put a shuffled lesson of another game in the place of that of a game, and try it as long as that was tried."""
    before = lessons.find(game.rules_hash)
    if before is None:
        return
    rng = np.random.default_rng(int(stream(trial.setting.seed, trial.run, STUDY)))
    lessons.put(game, replace(shuffled(game, lesson, rng), walks=max(lesson.walks, before.walks + 1)))
    _study(Course(game, lessons, trial.run), SHARES["trials"] * trial.setting.study, ["trials"])


def _prepared(game: Game, learning: Prepared, startclock: float) -> _Prepared:
    """Return what a side has learned after a startclock of so many CPU seconds."""
    end = time.process_time() + startclock
    while not learning.is_done and (left := end - time.process_time()) > 0:
        learning.teach(time.monotonic() + min(left, _SLICE))
    return _Prepared(game, learning.value, learning.growth, learning.openings)


def _pair(game: Game, sides: Sequence[Gamelore], key: np.uint64, cpu: list[float]) -> float:
    """Return the mean score of the first side, 0 to 100, in two matches with exchanged roles; add up CPU seconds."""
    graph, rng = PositionGraph(game), np.random.default_rng(int(key))
    opening = _random_plies(graph, rng)
    scores = []
    for own in (0, 1):
        goals = _match(graph, opening, [sides[int(role != own)] for role in (0, 1)], key, cpu, own)
        scores.append(_DRAW if goals is None else 50.0 + (goals[own] - goals[1 - own]) / 2)
    return sum(scores) / 2


def _random_plies(graph: PositionGraph, rng: np.random.Generator) -> list[list[int]]:
    """Return random joint moves at the beginning of a match, as indices into the legal moves."""
    state = MatchState(graph, max_plies=MOST_PLIES)
    while state.end is None and state.ply < RANDOM_PLIES:
        state.play([int(rng.integers(num)) for num in graph.num_moves[state.row].tolist()])
    return state.choices if state.end is None else []


def _match(
    graph: PositionGraph,
    opening: Sequence[Sequence[int]],
    players: Sequence[Gamelore],
    key: np.uint64,
    cpu: list[float],
    own: int,
) -> tuple[int, ...] | None:
    """Play a match from an opening; return the goals, None if it has none. `own`: the role of the first side."""
    state = MatchState.after(graph, opening, max_plies=MOST_PLIES)
    for role, player in enumerate(players):
        player.begin(role, state.started())
    while state.end is None:
        for role in state.pending():
            choice = 0
            if state.has_choice(role):
                begin = time.process_time()
                choice = int(players[role].choose(state.turn(role, np.uint64(extend(key, role))))[0])
                cpu[int(role != own)] += time.process_time() - begin
            state.submit(role, choice)
    goals = [goal for goal in state.goals if goal is not None]
    return (goals[0], goals[1]) if len(goals) == len(players) else None


# ---- results ----


def teachings(store: ResultStore, name: str) -> dict[int, list[float]]:
    """Return the scores of the pairs of each teaching of a setting."""
    return {run: result["scores"] for run, result in store.by_run(name).items()}
