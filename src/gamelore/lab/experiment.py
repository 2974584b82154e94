"""Run experiments: make trials of a grid of settings, group trials into jobs, and do jobs in worker processes.

All random numbers of a trial are derived from the key (seed, run, stage, match, role), see `players.random_streams`.
The stage is "source" or "target". Settings that are compared have the same seed and stage. So run i of one setting
uses the same random numbers as run i of the other.

A job is the work that one worker does at a time. By default it is a `Batch` of series that advance in lockstep. Other
experiments pass `jobs`, a function that makes jobs of trials, and `play`, a function that does a job.

Only the calling process writes to the store. It stores the outcomes of a job as soon as the job is done. If the process
is killed, a second call plays only the trials that are missing.

Workers are processes of this machine, or of the machines of a Ray cluster, see `workers`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import metadata
from itertools import groupby
from typing import Any, Generic, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..circuit.cache import source_hash
from ..errors import ExperimentError
from ..gdl.limits import Limits
from ..learning.store.features import FeatureValues
from ..learning.td.initial_values import LearnerSettings, best_response
from ..learning.td.series import Series, extract, play_series
from ..matches.opponents import OpponentSettings
from ..players.position_graph import PositionGraph
from ..players.random_streams import stream
from ..rulesheets import load, sheet_or_text
from ..workers.cluster import cluster_pool
from ..workers.processes import Play, Pool, Report, pool
from .results import Outcome, ResultStore, Setting, SettingT, Trial

Stage = Literal["source", "target"]
MEASURING = (
    *(
        "gdl",
        "ground",
        "circuit",
        "game",
        "analysis",
        "rulesheets",
        "players",
        "solver",
        "puzzles",
        "networks",
        "search",
        "matches",
    ),
    *("learning", "memory", "catalogue", "lab.results", "lab.experiment"),
)
"""The packages and modules that determine the result of a trial."""
MAX_LANES = 768  # largest number of lanes of a batch; larger batches are faster, but a killed process loses more work
MAX_ORACLES = 24  # the same for oracles, each of which needs a table of all positions
MAX_DEEP = 96  # the same for learners that look several turns ahead, each of which has a value for many positions


# ---- settings ----


@dataclass(frozen=True)
class PrintedValues:
    """A column of feature values that is printed in a paper, with the name of the column."""

    name: str
    values: FeatureValues


@dataclass(frozen=True)
class SeriesSetting(Setting):
    """A learner in one role of a game, against one opponent, for `runs` runs of `matches` matches each.

    keyed      whether an opponent with the filler "hashed" (see `OpponentSettings`) chooses differently among equally
               good moves in every run, so that the scatter over runs also shows the influence of these choices
    source     run i of this other setting provides the initial feature values of run i; None for no source
    printed    initial feature values printed in a paper, used in place of a source; None for no such values
    extract    whether the feature values that a run has learned are stored
    """

    role: int
    matches: int
    learner: LearnerSettings
    opponent: OpponentSettings
    stage: Stage = "target"
    keyed: bool = True
    source: SeriesSetting | None = field(default=None, kw_only=True)
    printed: PrintedValues | None = None
    extract: bool = False

    def __post_init__(self) -> None:
        if self.runs < 1 or self.matches < 1:
            raise ExperimentError(
                f"expected at least one run and one match in {self.id}, got {self.runs} runs of {self.matches} matches"
            )
        if self.source is not None and not self.source.extract:
            raise ExperimentError(
                f"expected a source that keeps its feature values, got {self.source.id}; set extract in this source"
            )

    @property
    def size(self) -> int:
        return self.matches

    def opponent_of(self, run: int) -> OpponentSettings:
        """Return the settings of the opponent in run number `run`."""
        if self.keyed and self.opponent.filler == "hashed":
            return replace(self.opponent, hash_key=int(stream(self.seed, run, "order")))
        return self.opponent

    def describe(self) -> dict[str, Any]:
        """See `Setting.describe`."""
        return super().describe() | {
            "learner": self.learner.described(),
            "source": self.source.describe() if self.source else None,
            "printed": self.printed.name if self.printed else None,
        }


@dataclass(frozen=True)
class SettingGrid(Generic[SettingT]):
    """Settings by id, including the sources of all settings. An id belongs to only one setting."""

    settings: dict[str, SettingT] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Iterable[SettingT]) -> SettingGrid[SettingT]:
        """Return the grid of these settings. A setting that is given twice gets the larger number of runs.

        Raise ExperimentError if two different settings share an id.
        """
        grid = cls()
        for setting in settings:
            grid._add(setting)
        return grid

    def _add(self, setting: Any) -> None:
        if setting.source is not None:
            self._add(replace(setting.source, runs=max(setting.runs, setting.source.runs)))
        same = self.settings.setdefault(setting.id, setting)
        if same.text != setting.text:
            raise ExperimentError(f"expected one setting with the name {setting.id}, got two; rename one of them")
        self.settings[setting.id] = max(same, setting, key=lambda setting: setting.runs)

    def trials(self) -> Iterator[Trial[SettingT]]:
        """Yield the trials of all settings."""
        yield from (Trial(setting, run) for setting in self.settings.values() for run in range(setting.runs))

    def stages(self) -> list[list[SettingT]]:
        """Return the settings in stages, to be run one after the other.

        A source is in an earlier stage than the settings that use it. All settings that are no source are in the last
        stage.
        """
        settings = self.settings.values()
        sources = {setting.source.id for setting in settings if setting.source}
        last = max(map(_depth, settings), default=0)
        stages = {setting.id: _depth(setting) if setting.id in sources else last for setting in settings}
        return [[setting for setting in settings if stages[setting.id] == stage] for stage in range(last + 1)]


def _depth(setting: Setting) -> int:
    return 0 if setting.source is None else 1 + _depth(setting.source)


# ---- batches of series ----


@dataclass(frozen=True)
class Lane:
    """One trial of a batch, with its initial feature values (None for no initial values)."""

    trial: Trial[SeriesSetting]
    values: FeatureValues | None


@dataclass(frozen=True)
class Batch:
    """Trials that advance in lockstep. All have the same game, role, number of matches and stage."""

    game: str
    role: int
    matches: int
    stage: Stage
    lanes: tuple[Lane, ...]

    @property
    def size(self) -> int:
        return self.matches * len(self.lanes)

    @property
    def expands_all(self) -> bool:
        """Whether the learners expand all positions of the game. The graph is then not kept for other batches."""
        return any(lane.trial.setting.learner.kind == "oracle" for lane in self.lanes)


BatchWatch: TypeAlias = Callable[[Batch, int, NDArray[np.float32]], int]
"""A `Watch` of a series (learning/td/series.py) whose first argument is the batch that is played."""


def batches(
    trials: Iterable[Trial[SeriesSetting]], store: ResultStore, workers: int = 2, *, together: bool = False
) -> Iterator[Batch]:
    """Group trials into batches, the longest batches first. The sources of the trials must be finished.

    Oracles are in batches of their own, and so are learners that look several turns ahead, unless all learners of a
    game are to advance `together`.
    """

    def kind(trial: Trial[SeriesSetting]) -> tuple[str, int, int, Stage, int]:
        setting, learner = trial.setting, trial.setting.learner
        most = MAX_ORACLES if learner.kind == "oracle" else MAX_DEEP if learner.turns else MAX_LANES
        most = MAX_LANES if together else most
        return setting.game, setting.role, setting.matches, setting.stage, most

    source_values = lru_cache(maxsize=None)(store.values)

    def lane(trial: Trial[SeriesSetting]) -> Lane:
        source, printed = trial.setting.source, trial.setting.printed
        if printed:
            return Lane(trial, printed.values)
        return Lane(trial, source_values(source.id)[trial.run] if source else None)

    groups = [(key, list(group)) for key, group in groupby(sorted(trials, key=kind), kind)]
    for key, group in sorted(groups, key=lambda item: -len(item[1]) * item[0][2]):
        lanes = [lane(trial) for trial in sorted(group, key=lambda trial: trial.run)]
        game, role, matches, stage, most = key
        parts = min(len(lanes), max(workers, -(-len(lanes) // most)))
        for i in range(parts):
            yield Batch(
                game, role, matches, stage, tuple(lanes[i * len(lanes) // parts : (i + 1) * len(lanes) // parts])
            )


def play_batch(
    batch: Batch,
    report: Report,
    limits: Limits | None = None,
    rules: Mapping[str, str] | None = None,
    watch: BatchWatch | None = None,
) -> list[Outcome]:
    """Play one batch in this process and return the outcomes of its trials.

    limits  limits of loading the game
    rules   texts of rulesheets by the names that batches have for their games, where this machine lacks the files
    watch   see `play_lanes`
    """
    begin, limits = time.perf_counter(), limits or Limits()
    source = (rules or {}).get(batch.game, batch.game)
    graph = PositionGraph(load(source, limits=limits)) if batch.expands_all else _graph(source, limits)
    series, game = play_lanes(batch, graph, report, watch), graph.game
    seconds = (time.perf_counter() - begin) / len(batch.lanes)
    outcomes = []
    for i, trial in enumerate(lane.trial for lane in batch.lanes):
        values = extract(series, i) if trial.setting.extract else None
        counts = {"num_stuck": int(series.num_stuck[i]), "num_missing": int(series.num_missing[i])} | _exact(series, i)
        rewards, lengths = series.rewards[i], series.lengths[i]
        outcomes.append(Outcome(trial, rewards, lengths, values, game.rules_hash, game.engine, seconds, counts))
    return outcomes


def _exact(series: Series, lane: int) -> dict[str, float]:
    """Return the exact expected reward of an oracle's best play; nothing for another learner."""
    settings, opponent = series.learner.settings[lane], series.learner.opponents[lane]
    if settings.kind != "oracle" or opponent is None:
        return {}
    exact = series.graph.memo(best_response, series.role, opponent.effective(), settings.epsilon)
    return {"expected": exact.expected}


def play_lanes(
    batch: Batch, graph: PositionGraph, report: Report | None = None, watch: BatchWatch | None = None
) -> Series:
    """Play the series of all lanes of a batch. The positions of the game are kept in `graph`.

    watch: called while the lanes advance, and says how far; it does not change the results
    """
    trials = [lane.trial for lane in batch.lanes]
    learners = [trial.setting.learner for trial in trials]
    opponents = [trial.setting.opponent_of(trial.run) for trial in trials]
    keys = [(trial.setting.seed, trial.run, batch.stage) for trial in trials]
    values = [lane.values for lane in batch.lanes]
    return play_series(
        graph.game, batch.role, learners, values, opponents, batch.matches, keys, graph=graph, progress=report,
        replies=any(trial.setting.extract for trial in trials), watch=watch and partial(watch, batch),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _graph(game: str, limits: Limits) -> PositionGraph:
    """Return a graph of the game. The last graph is kept, so the next batch of the game finds its positions."""
    return PositionGraph(load(game, limits=limits))


# ---- running ----

Tell: TypeAlias = Callable[[str, int, int], None]
"""A function that is called with (label, number of steps done, number of all steps)."""
Jobs: TypeAlias = Callable[[list[Any], ResultStore, int], Iterable[Any]]
"""A function of (trials, store, number of workers) that groups the trials into jobs."""


@dataclass(frozen=True)
class RunSummary:
    """Result of `run_grid`: the number of trials played, the number of trials found in the store, and the seconds."""

    label: str
    played: int
    stored: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.label} {self.seconds:.1f} s ({self.played} trials played, {self.stored} already finished)"


def run_grid(
    grid: SettingGrid[Setting],
    store: ResultStore,
    *,
    workers: int = 2,
    cluster: str | None = None,
    progress: bool | Tell = True,
    label: str = "matches",
    jobs: Jobs = batches,
    play: Play | None = None,
    version: str | None = None,
    limits: Limits | None = None,
    watch: BatchWatch | None = None,
) -> RunSummary:
    """Play every trial of the grid that the store does not have yet.

    If `jobs` and `play` are not given, the trials are series of matches, and each process loads their games within
    `limits`. With `cluster`, the workers are those of a Ray cluster, see `cluster_pool`; the store stays in this
    process. A `watch` sees all learners of a game advance together, and says how far; it needs a single worker, which
    is this process. Raise ExperimentError if the store holds results of other settings, or if a worker dies.
    """
    begin, version = time.perf_counter(), version or code_version()
    if watch is not None:
        _check_watched(workers, cluster)
        jobs = partial(batches, together=True)
    store.check(grid.settings, version)
    if play is None:
        games = {setting.game for setting in grid.settings.values()}
        store.check_rules({game: load(game, limits=limits).rules_hash for game in games & store.rules().keys()})
        rules = {game: sheet_or_text(game)[1] for game in games} if cluster is not None else {}
        play = partial(play_batch, limits=limits, rules=rules, watch=watch)
    finished = store.finished()
    todo = [trial for trial in grid.trials() if trial.key not in finished]
    total = sum(trial.setting.size for trial in todo)
    opened = _opened(cluster if todo else None, min(workers, len(todo)), play)
    with bar(label, total, progress if todo else False) as report, opened as team:
        for settings in grid.stages():
            trials = [trial for trial in todo if trial.setting in settings]
            for outcomes in team.do(list(jobs(trials, store, team.size)), report):
                store.add(outcomes, version)
    num_found = sum(1 for _ in grid.trials()) - len(todo)
    return RunSummary(label, len(todo), num_found, time.perf_counter() - begin)


def _check_watched(workers: int, cluster: str | None) -> None:
    """Raise ExperimentError if the trials would be played in other processes, where nobody can watch them."""
    if workers != 1 or cluster is not None:
        got = f"{workers} workers" if cluster is None else f"the cluster {cluster}"
        raise ExperimentError(f"expected 1 worker for trials that are watched, got {got}; set workers to 1")


def _opened(cluster: str | None, workers: int, play: Play) -> AbstractContextManager[Pool]:
    """Open the pool of a cluster, or one of this machine."""
    return pool(workers, play) if cluster is None else cluster_pool(cluster, workers, play)


def code_version(*more: str) -> str:
    """Return the version of gamelore and a hash of the code that determines a result, such as `0.1.0+3f2a91bc`.

    The hash covers the packages and modules of MEASURING and `more`.
    """
    return f"{metadata.version('gamelore')}+{source_hash(*MEASURING, *more)[:8]}"


# ---- progress ----


@contextmanager
def bar(label: str, total: int, shown: bool | Tell) -> Iterator[Report]:
    """Yield a function to advance a progress bar with the remaining time on standard error.

    shown: False shows no bar; a function is called instead, with (label, done, total)
    """
    if callable(shown):
        steps = _Counted(label, total, shown)
        steps(0)
        yield steps
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("left:"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as shown_bar:
        task = shown_bar.add_task(label, total=total)
        yield lambda steps: shown_bar.advance(task, steps)


class _Counted:
    """A function that adds up steps, and tells their sum."""

    def __init__(self, label: str, total: int, tell: Tell) -> None:
        self._label, self._total, self._tell, self._done = label, total, tell, 0

    def __call__(self, steps: int) -> None:
        self._done += steps
        self._tell(self._label, self._done, self._total)
