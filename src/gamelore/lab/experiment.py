"""Run experiments: make trials of a grid of settings, group trials into jobs, and do jobs in worker processes.

All random numbers of a trial are derived from the key (seed, run, stage, match, role), see `players.random_streams`.
The stage is "source" or "target". Settings that are compared have the same seed and stage. So run i of one setting
uses the same random numbers as run i of the other.

A job is the work that one worker does at a time. By default it is a `Batch` of series that advance in lockstep. Other
experiments pass `jobs`, a function that makes jobs of trials, and `play`, a function that does a job.

Only the calling process writes to the store. It stores the outcomes of a job as soon as the job is done. If the process
is killed, a second call plays only the trials that are missing.

Workers are new processes (start method "spawn", because numba's threads do not survive a fork). They do not import the
calling script, so the script needs no `if __name__ == "__main__":`. A notebook and `python - < script` work too. The
exception is a `play` that is defined in the calling script itself; see `pool` for what the script must then contain.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import metadata
from itertools import groupby
from multiprocessing import current_process, get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias

from ..circuit.cache import source_hash
from ..errors import ExperimentError
from ..gdl.limits import Limits
from ..learning.store.features import FeatureValues
from ..learning.td.initial_values import LearnerSettings, best_response
from ..learning.td.series import Series, extract, play_series
from ..matches.opponents import OpponentSettings
from ..players.position_graph import PositionGraph
from ..players.random_streams import stream
from ..rulesheets import load
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
        "search",
        "matches",
    ),
    *("learning", "catalogue", "lab.results", "lab.experiment"),
)
"""The packages and modules that determine the result of a trial."""
MAX_LANES = 768  # largest number of lanes of a batch; larger batches are faster, but a killed process loses more work
MAX_ORACLES = 24  # the same for oracles, each of which needs a table of all positions
PROGRESS_SECONDS = 0.2  # time between two messages of a worker about its progress
MAX_DEEP = 96  # the same for learners that look several turns ahead, each of which has a value for many positions
MAX_WORKERS_ON_WINDOWS = 30  # it waits for at most 63 objects at a time; each worker is two


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
        return self.lanes[0].trial.setting.learner.kind == "oracle"


def batches(trials: Iterable[Trial[SeriesSetting]], store: ResultStore, workers: int = 2) -> Iterator[Batch]:
    """Group trials into batches, the longest batches first. The sources of the trials must be finished.

    Oracles are in batches of their own, and so are learners that look several turns ahead.
    """

    def kind(trial: Trial[SeriesSetting]) -> tuple[str, int, int, Stage, int]:
        setting, learner = trial.setting, trial.setting.learner
        most = MAX_ORACLES if learner.kind == "oracle" else MAX_DEEP if learner.turns else MAX_LANES
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


def play_batch(batch: Batch, report: Report, limits: Limits | None = None) -> list[Outcome]:
    """Play one batch in this process and return the outcomes of its trials. `limits`: of loading the game."""
    begin, limits = time.perf_counter(), limits or Limits()
    graph = PositionGraph(load(batch.game, limits=limits)) if batch.expands_all else _graph(batch.game, limits)
    series, game = play_lanes(batch, graph, report), graph.game
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


def play_lanes(batch: Batch, graph: PositionGraph, report: Report | None = None) -> Series:
    """Play the series of all lanes of a batch. The positions of the game are kept in `graph`."""
    trials = [lane.trial for lane in batch.lanes]
    learners = [trial.setting.learner for trial in trials]
    opponents = [trial.setting.opponent_of(trial.run) for trial in trials]
    keys = [(trial.setting.seed, trial.run, batch.stage) for trial in trials]
    values = [lane.values for lane in batch.lanes]
    return play_series(
        graph.game, batch.role, learners, values, opponents, batch.matches, keys, graph=graph, progress=report,
        replies=any(trial.setting.extract for trial in trials),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _graph(game: str, limits: Limits) -> PositionGraph:
    """Return a graph of the game. The last graph is kept, so the next batch of the game finds its positions."""
    return PositionGraph(load(game, limits=limits))


# ---- running ----

Report: TypeAlias = Callable[[int], None]
"""A function that is called with the number of steps (matches) done since its last call."""
Tell: TypeAlias = Callable[[str, int, int], None]
"""A function that is called with (label, number of steps done, number of all steps)."""
Play: TypeAlias = Callable[[Any, Report], list[Outcome]]
"""A function that does one job. With several workers, it must be defined in a module or in a script. Such a script must
start its own work under `if __name__ == "__main__":`, because the workers import it."""
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
    progress: bool | Tell = True,
    label: str = "matches",
    jobs: Jobs = batches,
    play: Play | None = None,
    version: str | None = None,
    limits: Limits | None = None,
) -> RunSummary:
    """Play every trial of the grid that the store does not have yet.

    If `jobs` and `play` are not given, the trials are series of matches, and each process loads their games within
    `limits`. Raise ExperimentError if the store holds results of other settings, or if a worker dies.
    """
    begin, version = time.perf_counter(), version or code_version()
    store.check(grid.settings, version)
    if play is None:
        games = {setting.game for setting in grid.settings.values()} & store.rules().keys()
        store.check_rules({game: load(game, limits=limits).rules_hash for game in games})
    finished = store.finished()
    todo = [trial for trial in grid.trials() if trial.key not in finished]
    total = sum(trial.setting.size for trial in todo)
    processes = min(workers, len(todo))
    play = play or partial(play_batch, limits=limits)
    with bar(label, total, progress if todo else False) as report, pool(processes, play) as do:
        for settings in grid.stages():
            trials = [trial for trial in todo if trial.setting in settings]
            for outcomes in do(list(jobs(trials, store, workers)), report):
                store.add(outcomes, version)
    num_found = sum(1 for _ in grid.trials()) - len(todo)
    return RunSummary(label, len(todo), num_found, time.perf_counter() - begin)


def code_version(*more: str) -> str:
    """Return the version of gamelore and a hash of the code that determines a result, such as `0.1.0+3f2a91bc`.

    The hash covers the packages and modules of MEASURING and `more`.
    """
    return f"{metadata.version('gamelore')}+{source_hash(*MEASURING, *more)[:8]}"


# ---- worker processes ----

Pool: TypeAlias = Callable[[Sequence[Any], Report], Iterator[list[Outcome]]]
"""A function that does jobs. It yields the outcomes of a job as soon as the job is done, so the order may vary."""


@contextmanager
def pool(workers: int, play: Play) -> Iterator[Pool]:
    """Open a pool that does jobs in `workers` processes, or in the calling process if `workers` is 1.

    If `play` is defined in the calling script, the workers import this script, so its own work must be under
    `if __name__ == "__main__":`. Raise ExperimentError if a worker dies or cannot import the script.
    """
    if getattr(current_process(), "_inheriting", False):  # in a worker, during the import of the script
        raise SystemExit(1)
    if workers <= 1:
        yield lambda todo, report: (play(job, report) for job in todo)
        return
    if sys.platform == "win32":
        workers = min(workers, MAX_WORKERS_ON_WINDOWS)
    script = _script_of(play)
    context = get_context("spawn")
    lifeline, our_end = context.Pipe(duplex=False)
    team = _Team(script)
    try:
        with nullcontext() if script else _main_hidden(), _interrupts_wait():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                team.add(context.Process(target=_work, args=(play, theirs, lifeline)), ours)
                theirs.close()
        yield team.do
    except BaseException:
        our_end.close()  # ends workers that are in the middle of a job
        raise
    finally:
        team.dismiss()
        our_end.close()
        lifeline.close()


class _Team:
    """Worker processes, each with a pipe of its own.

    `ProcessPoolExecutor` has named semaphores. If something kills the process of Python that keeps the list of their
    names, a traceback for each name is printed; and a worker that is killed may hold a semaphore for ever.
    """

    def __init__(self, script: str | None) -> None:
        self._script, self._has_started = script, False
        self._processes: list[BaseProcess] = []
        self._connections: list[Connection] = []
        self._free: list[Connection] = []

    def add(self, process: BaseProcess, connection: Connection) -> None:
        """Start a worker."""
        self._connections.append(connection)
        process.start()
        self._processes.append(process)

    def do(self, todo: Sequence[Any], report: Report) -> Iterator[list[Outcome]]:
        """See `Pool`."""
        jobs, num_left = deque(todo), len(todo)
        while num_left:
            errors = []
            for connection, message in self._messages(jobs):
                if isinstance(message, int):
                    report(message)
                elif isinstance(message, Exception):
                    errors.append(message)
                else:
                    self._has_started = True
                    self._free.append(connection)
                    if message is not None:
                        num_left -= 1
                        yield message
            if errors:  # only now, so that no finished job is lost
                raise errors[0]

    def dismiss(self) -> None:
        """Let all workers end, and wait for them."""
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join()

    def _messages(self, jobs: deque[Any]) -> list[tuple[Connection, Any]]:
        """Give jobs to free workers. Return the next messages of workers, see `_work`; an error for a dead worker."""
        messages: list[tuple[Connection, Any]] = []
        while self._free and jobs:
            with suppress(ConnectionError):  # the worker is dead, which `recv` tells
                self._free.pop().send(jobs.popleft())
        # On Windows, a connection whose worker dies while it starts has no end.
        ready = wait([*self._connections, *(process.sentinel for process in self._processes)])
        for process, connection in zip(self._processes, self._connections, strict=True):
            try:
                if connection in ready or (process.sentinel in ready and connection.poll()):
                    messages.append((connection, connection.recv()))
                elif process.sentinel in ready:
                    raise EOFError
            except (EOFError, OSError):
                messages.append((connection, _explained(None if self._has_started else self._script)))
        return messages


def _explained(script: str | None) -> ExperimentError:
    """Return the error for a pool with a dead worker.

    The worker could not import the script `script`. If `script` is None, the worker died for another reason.
    """
    if script is None:
        return ExperimentError(
            "expected all workers to finish, but one died, perhaps because it had too little memory; run the command "
            "again with fewer --workers, it continues after the finished trials"
        )
    return ExperimentError(
        f"expected workers that can import {script} with the function `play`, but a worker ended during the import; "
        'put the code that the script runs under `if __name__ == "__main__":`, or move `play` to another module'
    )


def _script_of(play: Play) -> str | None:
    """Return the script that workers must import because it defines `play`.

    Return None if `play` is defined in an imported module. A module that is run with `python -m` counts as a script.
    Raise ExperimentError if `play` is defined in a notebook or on standard input, since workers cannot import these.
    """
    if b"__main__" not in pickle.dumps(play):
        return None
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is None and not (file and Path(file).is_file()):
        raise ExperimentError(
            "expected a function that workers can import, got a function of a notebook or of standard input; "
            "move it to a file and import it from there, or use one worker"
        )
    return str(file or spec)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Prevent processes that start within this context from importing the calling script."""
    main = vars(sys.modules["__main__"])
    hidden: dict[str, object] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay Ctrl-C until the end of this context, and block it in processes that start within the context.

    Without this, each of these processes would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # else the first process starts it, which ends the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(play: Play, connection: Connection, lifeline: Connection) -> None:
    """Do jobs that come over the connection until it is closed.

    Messages to the caller: first None; then a number of steps, the outcomes of a job, or the error of a job.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # needed on Windows, where `_interrupts_wait` does nothing
    threading.Thread(target=_end_with_the_caller, args=(lifeline,), daemon=True).start()
    steps = _Steps(connection)
    with suppress(EOFError, ConnectionError):
        connection.send(None)
        while True:
            answer = _outcomes_or_error(play, connection.recv(), steps)
            steps.tell()
            connection.send_bytes(answer)


def _outcomes_or_error(play: Play, job: Any, report: Report) -> bytes:
    """Do a job. Return the pickled outcomes, or the pickled error."""
    try:
        return pickle.dumps(play(job, report))
    except Exception as error:
        text = traceback.format_exc()
        error.add_note(f"in a worker process:\n{text}")
        try:
            return pickle.dumps(error)
        except Exception:
            return pickle.dumps(ExperimentError(f"expected a job without errors, got in a worker process:\n{text}"))


class _Steps:
    """The steps of a job. They are sent to the caller at most every PROGRESS_SECONDS."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._untold, self._told = connection, 0, 0.0

    def __call__(self, steps: int) -> None:
        self._untold += steps
        if time.monotonic() - self._told >= PROGRESS_SECONDS:
            self.tell()

    def tell(self) -> None:
        """Send the number of steps since the last time."""
        self._connection.send(self._untold)
        self._untold, self._told = 0, time.monotonic()


def _end_with_the_caller(lifeline: Connection) -> None:
    """End the worker when the caller's end of the pipe closes.

    This happens when the caller is done, is interrupted, or is killed. Without this function, the workers of a killed
    caller would wait for ever.
    """
    with suppress(OSError):
        lifeline.poll(None)
    os._exit(1)


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
