"""`reproduce`: the whole of Lock & Epstein 2004, from the plan to the report."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ...games import load
from ...play.solve import solve
from .. import workers as processes
from ..report import ReportPaths, Table, machine, peak_memory, write_report
from ..runner import version as gamelore_version
from . import page, tables
from .claims import PATH
from .findings import findings
from .page import Findings
from .plan import FRESH_SEED, SEED, VERDICT_SEED, Experiment, Plan
from .printed import GAMES
from .runs import Done, Job, play_run
from .speed import time_run
from .store import STORE, RunStore
from .study import Results, Study, raised, tried

TITLE = "Learning and Applying Competitive Strategies (Lock & Epstein 2004), reproduced"
MEASURING = ("runs", "observing", "strategies", "speed")
"""The modules that a stored result depends on, beside those of the rooms above."""


@dataclass(frozen=True)
class Stage:
    """A part of the plan; `play` makes one run of it."""

    name: str
    experiments: Sequence[Experiment]
    play: Callable[[Job, processes.Report], Done] = play_run
    alone: bool = False  # in this process, with nothing beside it that would disturb a clock

    @property
    def jobs(self) -> Iterator[Job]:
        return (Job(one, run) for one in self.experiments for run in range(one.runs))


@dataclass(frozen=True)
class Ran:
    """How a stage went: runs made now and found finished, wall seconds."""

    name: str
    made: int
    found: int
    seconds: float


def reproduce(
    out: Path | str,
    *,
    runs: int = 10,
    seed: int = SEED,
    fresh: int = 20,
    core: bool = False,
    verdicts: bool = False,
    workers: int = 2,
    progress: bool = True,
    games: tuple[str, ...] = GAMES,
    share: float = 1.0,
) -> ReportPaths:
    """Makes the runs that are not yet in `out`/runs.db, and writes report.md, report.html, pictures and their rows.

    runs      of every experiment of the paper, and of each variant of the sensitivity part
    fresh     of each improvement and, with `verdicts`, of what the claims are judged by
    core      leaves out sensitivity and improvements
    verdicts  judges the claims by fresh seeds
    share     of the paper's number of matches in every tournament: below 1 for a quick look

    Raises ExperimentError where `out` holds results of other settings, and GameloreError where a game cannot be solved.
    """
    begin, folder, plan = time.perf_counter(), Path(out), Plan(runs, seed, fresh, share, games)
    parts = _stages(plan, core, verdicts)
    with RunStore(folder / STORE) as store:
        store.check((one for stages in parts for stage in stages for one in stage.experiments), version())
        ran: list[Ran] = []
        done: list[Stage] = []
        for number, stages in enumerate(parts, 1):
            ran += _run(stages, store, workers, progress)
            done += stages
            later = [stage for others in parts[number:] for stage in others]
            if not later or any(_todo(stage, store) for stage in later):  # the tables' report is there before the rest
                account = _Account(ran, time.perf_counter() - begin, workers, core, verdicts)
                paths = _write(plan, done, store, folder, account)
    return paths


def _stages(plan: Plan, core: bool, verdicts: bool) -> list[list[Stage]]:
    """What is run before a report is written, and what after it."""
    first = [Stage("core", plan.core()), Stage("speed", plan.speed(), time_run, alone=True)]
    more = [] if core else [Stage("sensitivity", plan.sensitivity()), Stage("improvements", plan.improvements())]
    more += [] if core else [Stage("others", plan.others())]
    more += [Stage("verdicts", plan.verdicts())] if verdicts else []
    return [first, more] if more else [first]


def _run(stages: Iterable[Stage], store: RunStore, workers: int, progress: bool) -> Iterator[Ran]:
    for stage in stages:
        todo = _todo(stage, store)
        _solve({job.experiment.game for job in todo}, store, progress)
        begin = time.perf_counter()
        _play(stage, todo, store, workers, progress)
        found = sum(1 for _ in stage.jobs) - len(todo)
        yield Ran(stage.name, len(todo), found, time.perf_counter() - begin)


def _todo(stage: Stage, store: RunStore) -> list[Job]:
    found = store.finished()
    return [job for job in stage.jobs if (job.experiment.id, job.run) not in found]


def _play(stage: Stage, todo: Sequence[Job], store: RunStore, workers: int, progress: bool) -> None:
    total = sum(job.experiment.size for job in todo)
    num = 1 if stage.alone else min(workers, len(todo))
    longest_first = sorted(todo, key=lambda job: (-job.experiment.runs * job.experiment.size, job.run))
    with (
        processes.bar(f"{stage.name}: matches", total, progress and bool(todo)) as report,
        processes.pool(num, stage.play) as pool,
    ):
        for done in pool(longest_first, report):
            store.add(done, version())


def _solve(games: Iterable[str], store: RunStore, progress: bool) -> None:
    """Solves the games that runs will need, once for all workers; checks that they are those of the stored runs."""
    for name in sorted(games):
        game = load(name)
        store.check_rules(name, game.rules_hash)
        with _solving(name, progress) as told:
            solve(game, progress=told)


@contextmanager
def _solving(name: str, shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not shown, transient=True) as bar:
        task = bar.add_task(f"solving {name}")
        yield lambda what, done, total: bar.update(
            task, description=f"solving {name}: {what}", completed=done, total=total
        )


@dataclass(frozen=True)
class _Account:
    """What the command did so far."""

    ran: Sequence[Ran]
    seconds: float
    workers: int
    core: bool
    verdicts: bool


def _write(plan: Plan, done: Sequence[Stage], store: RunStore, folder: Path, account: _Account) -> ReportPaths:
    results: Results = {one.id: store.results(one.id, one.runs) for stage in done for one in stage.experiments}
    study = Study(plan, "core", results)
    stages = {stage.name: stage.experiments for stage in done}
    judged = Study(replace(plan, runs=plan.fresh), "verdicts", results) if "verdicts" in stages else study
    sensitivity, improvements = (
        {game: tried(stages[name], results, game) for game in plan.games} if name in stages else {}
        for name in ("sensitivity", "improvements")
    )
    others = raised(stages.get("others", ()), results)
    found = Findings(study, judged, findings(judged), sensitivity, improvements, others)
    tables.write_claims(found.findings, folder)
    tables.write_table1(study, folder)
    tables.write_table2(study, folder)
    return write_report(
        TITLE, page.headline(found), page.blocks(found, folder, _provenance(plan, store, account)), folder
    )


def _provenance(plan: Plan, store: RunStore, account: _Account) -> Table:
    wall = ", ".join(f"{one.name} {one.seconds:.1f} s ({one.made} runs made, {one.found} found)" for one in account.ran)
    spent = ", ".join(f"{one.name} {store.seconds(one.name):.1f} s" for one in account.ran)
    options = f"--runs {plan.runs} --fresh {plan.fresh} --seed {plan.seed} --workers {account.workers}"
    flags = (" --core" if account.core else "") + (" --verdicts" if account.verdicts else "")
    rules = ", ".join(f"{game} `{rules_hash[:12]}`" for game, rules_hash in store.rules().items())
    rows = [
        ("gamelore", version()),
        ("command", f"`gamelore reproduce lock2004 {options}{flags}`"),
        (
            "seeds",
            f"{plan.seed}; improvements {plan.seed + FRESH_SEED}; verdicts with fresh seeds {plan.seed + VERDICT_SEED}",
        ),
        ("runs", f"every one in `{STORE}`, with its settings and results"),
        ("wall time of this command", f"{wall}; everything {account.seconds:.1f} s, {account.workers} workers"),
        ("processor time of all runs", spent),
        ("memory", peak_memory()),
        ("machine", machine()),
        ("rules", rules),
        ("written", datetime.now(UTC).isoformat(timespec="seconds")),
        (
            "claims",
            f"`{PATH.name}` of the package; findings in `claims.csv`; Tables 1 and 2 in `table1.csv`, `table2.csv`",
        ),
    ]
    return Table(("", ""), rows)


@cache
def version() -> str:
    """Of gamelore, and of the code that a run's result depends on."""
    code = hashlib.sha256()
    for name in MEASURING:
        code.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return f"{gamelore_version()}.{code.hexdigest()[:6]}"
