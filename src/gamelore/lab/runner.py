"""Grid to trials. All lanes of a game advance together (lockstep); batches are shared among worker processes.

A worker keeps the positions of the last game it played (`Graph`), so that its next batch finds them worked out. Only
the calling process writes to the store, at once when a batch is done; a run that was killed goes on where it stopped.
A script that calls `run_grid` with more than one worker needs the usual `if __name__ == "__main__":` (workers.py).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..learn.features import FeatureValues
from ..learn.table1 import printed_values
from . import workers as processes
from .grid import Grid, Setting, Stage, Trial
from .trials import Outcome, TrialStore
from .workers import Report

if TYPE_CHECKING:
    from ..play.graph import Graph

MAX_LANES = 768  # of one batch: what is lost at most when a run is killed; more side by side is faster


@dataclass(frozen=True)
class Lane:
    """One trial of a batch, with the feature values that it starts from."""

    trial: Trial
    values: FeatureValues | None


@dataclass(frozen=True)
class Batch:
    """Trials that advance together: one game, one role, one number of matches."""

    game: str
    role: int
    matches: int
    stage: Stage
    lanes: tuple[Lane, ...]

    @property
    def size(self) -> int:
        return self.matches * len(self.lanes)


Play: TypeAlias = processes.Play[Batch, list[Outcome]]


@dataclass(frozen=True)
class RunSummary:
    """How a run of the grid went: trials played now and found finished, wall seconds."""

    played: int
    found: int
    seconds: float


def run_grid(
    grid: Grid,
    store: TrialStore,
    *,
    workers: int = 2,
    progress: bool = True,
    label: str = "matches",
    play: Play | None = None,
) -> RunSummary:
    """Plays every trial of the grid that the store does not have yet.

    `play` plays one batch (default `play_batch`); with several workers it must be a function of a module. Raises
    ExperimentError where the store holds results of other settings, or a worker died.
    """
    begin = time.perf_counter()
    store.check(grid, version())
    if play is None:
        store.check_rules(_rules(grid, store))
    todo = [trial for trial in grid.trials() if trial.key not in store.finished()]
    total = sum(trial.setting.matches for trial in todo)
    shown = progress and bool(todo)
    with processes.bar(label, total, shown) as report, processes.pool(workers, play or play_batch) as pool:
        for settings in grid.stages():
            names = {setting.id for setting in settings}
            trials = [trial for trial in todo if trial.setting.id in names]
            for outcomes in pool(list(batches(trials, store, workers)), report):
                store.add(outcomes, version())
    total_found = sum(1 for _ in grid.trials()) - len(todo)
    return RunSummary(len(todo), total_found, time.perf_counter() - begin)


def _rules(grid: Grid, store: TrialStore) -> dict[str, str]:
    """Game -> hash of its rules as they are now, for the games of the grid that the store knows."""
    from ..games import load

    games = {setting.game for setting in grid.settings.values()} & store.rules().keys()
    return {game: load(game).rules_hash for game in games}


def batches(trials: Iterable[Trial], store: TrialStore, workers: int = 2) -> Iterator[Batch]:
    """Groups trials into batches of about equal size, the longest games' first; sources must be finished."""

    def kind(trial: Trial) -> tuple[str, int, int, Stage]:
        setting = trial.setting
        return setting.game, setting.role, setting.matches, setting.stage

    lookup = _SourceValues(store)
    groups = [(key, list(group)) for key, group in groupby(sorted(trials, key=kind), kind)]
    for key, group in sorted(groups, key=lambda item: -len(item[1]) * item[0][2]):
        lanes = [Lane(trial, lookup(trial)) for trial in sorted(group, key=lambda trial: trial.run)]
        for part in _shares(lanes, workers):
            yield Batch(*key, tuple(part))


def _shares(lanes: list[Lane], workers: int) -> Iterator[list[Lane]]:
    """As few parts as MAX_LANES allows, but one for each worker; sizes differ by one at most."""
    parts = min(len(lanes), max(workers, -(-len(lanes) // MAX_LANES)))
    for i in range(parts):
        yield lanes[i * len(lanes) // parts : (i + 1) * len(lanes) // parts]


class _SourceValues:
    """The feature values a trial starts from, read once per setting."""

    def __init__(self, store: TrialStore) -> None:
        self._store = store
        self._read: dict[str, list[FeatureValues]] = {}

    def __call__(self, trial: Trial) -> FeatureValues | None:
        setting = trial.setting
        if setting.printed:
            return printed_values(setting.printed)
        if setting.source is None:
            return None
        return self._of(setting.source)[trial.run]

    def _of(self, source: Setting) -> list[FeatureValues]:
        if source.id not in self._read:
            self._read[source.id] = self._store.values(source.id)
        return self._read[source.id]


def play_batch(batch: Batch, report: Report) -> list[Outcome]:
    """Plays one batch in this process."""
    from ..learn.transfer import extract, play_series

    begin = time.perf_counter()
    graph = _graph(batch.game)
    lanes = batch.lanes
    series = play_series(
        graph.game,
        batch.role,
        [lane.trial.setting.learner for lane in lanes],
        [lane.values for lane in lanes],
        [lane.trial.setting.opponent_of(lane.trial.run) for lane in lanes],
        batch.matches,
        [(lane.trial.setting.seed, lane.trial.run, batch.stage) for lane in lanes],
        graph=graph,
        progress=report,
    )
    seconds = (time.perf_counter() - begin) / len(lanes)
    return [
        Outcome(
            lane.trial,
            series.rewards[i],
            series.lengths[i],
            extract(series, i) if lane.trial.setting.extract else None,
            graph.game.rules_hash,
            graph.game.engine,
            seconds,
            int(series.num_stuck[i]),
            int(series.num_missing[i]),
        )
        for i, lane in enumerate(lanes)
    ]


@lru_cache(maxsize=1)
def _graph(game: str) -> Graph:
    from ..games import load
    from ..play.graph import Graph

    return Graph(load(game))


@lru_cache
def version() -> str:
    """Of this gamelore, and of the code that a result depends on: `0.1.0+` and a hash of three rooms' sources."""
    package = Path(__file__).parents[1]
    code = hashlib.sha256()
    for path in sorted(path for room in ("rules", "play", "learn") for path in (package / room).glob("*.py")):
        code.update(path.read_bytes())
    return f"{metadata.version('gamelore')}+{code.hexdigest()[:8]}"
