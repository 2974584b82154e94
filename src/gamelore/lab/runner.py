"""Grid to trials. All lanes of a game advance together (lockstep); batches are shared among worker processes.

A worker keeps the positions of the last game it played (`Graph`), so that its next batch finds them worked out. Only
the calling process writes to the store, at once when a batch is done; a run that was killed goes on where it stopped.

With more than one worker, new processes start by importing the calling script anew ("spawn"): a script that calls
`run_grid` needs the usual `if __name__ == "__main__":`.
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from itertools import groupby
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ExperimentError
from ..learn.features import FeatureValues
from ..learn.table1 import printed_values
from .grid import Grid, Setting, Stage, Trial
from .trials import Outcome, TrialStore

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


Report = Callable[[int], None]
"""Told how many more matches have been played."""
Play = Callable[[Batch, Report], list[Outcome]]


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
    with _bar(label, total, progress and bool(todo)) as report, _pool(workers, play or play_batch) as pool:
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


_Done = Iterator[list[Outcome]]


@contextmanager
def _pool(workers: int, play: Play) -> Iterator[Callable[[Sequence[Batch], Report], _Done]]:
    """Something that plays batches and yields their outcomes as they are done."""
    if workers <= 1:
        yield lambda todo, report: (play(batch, report) for batch in todo)
        return
    context = get_context("spawn")
    counter = context.Value("q", 0)
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _start_worker, (counter, theirs))
    try:
        yield lambda todo, report: _collect(pool, play, todo, report, counter)
    except BaseException:
        ours.close()  # ends workers amidst a batch
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()
        theirs.close()


def _collect(pool: ProcessPoolExecutor, play: Play, todo: Sequence[Batch], report: Report, counter: Any) -> _Done:
    with _interrupts_wait():
        pending: set[Future[list[Outcome]]] = {pool.submit(_play_in_worker, play, batch) for batch in todo}
    try:
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            report(_take(counter))
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise ExperimentError(
            "expected the workers to finish, got one that died, perhaps for want of memory; "
            "run again with fewer --workers, finished trials are kept"
        ) from error


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C is heard afterwards; and never by the processes that start inside, which would each complain of it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_counter: Any = None  # of this worker process, shared with the caller


def _start_worker(counter: Any, lifeline: Connection) -> None:
    global _counter
    _counter = counter
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # see _interrupts_wait; for Windows
    threading.Thread(target=_end_with_the_caller, args=(lifeline,), daemon=True).start()


def _end_with_the_caller(lifeline: Connection) -> None:
    """Ends the worker when the caller's end of the pipe is closed: it is done, was interrupted, or was killed and so
    cannot end its workers, which would wait for it for ever."""
    with suppress(OSError):
        lifeline.poll(None)
    os._exit(1)


def _play_in_worker(play: Play, batch: Batch) -> list[Outcome]:
    return play(batch, _count)


def _count(matches: int) -> None:
    with _counter.get_lock():
        _counter.value += matches


def _take(counter: Any) -> int:
    with counter.get_lock():
        taken, counter.value = counter.value, 0
    return int(taken)


@contextmanager
def _bar(label: str, total: int, shown: bool) -> Iterator[Report]:
    """A progress bar with the remaining time, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("left:"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task(label, total=total)
        yield lambda matches: bar.advance(task, matches)


@lru_cache
def version() -> str:
    """Of this gamelore, and of the code that a result depends on: `0.1.0+` and a hash of three rooms' sources."""
    package = Path(__file__).parents[1]
    code = hashlib.sha256()
    for path in sorted(path for room in ("rules", "play", "learn") for path in (package / room).glob("*.py")):
        code.update(path.read_bytes())
    return f"{metadata.version('gamelore')}+{code.hexdigest()[:8]}"
