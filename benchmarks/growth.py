"""Measure how the player that remembers grows: `python benchmarks/growth.py FOLDER --out DIR`.

FOLDER has rulesheets as NAME.kif. In each of GAMES, three memories begin empty and grow over 1,000 startclocks of a
second. After 0, 1, 10, 100 and 1,000 of them, 20 pairs of matches at 20 ms a move are played against the player
without memory, which is taught anew for every five pairs, against uct:seconds=0.02, and against minimax:depth=2. A run
that was interrupted goes on; `--report` only prints the tables and draws DIR/growth.png. All times are CPU times.
Results and memories belong to a version of the code; `--version NAME` goes on with those of an earlier one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import cpu_clock  # noqa: F401 - before gamelore
import long_runs
from gamelore.lab.experiment import SettingGrid, code_version, run_grid
from gamelore.lab.figures import growth_figure, save
from gamelore.lab.results import Outcome, ResultStore, Trial, store_path
from gamelore.lab.stats import mean_interval
from gamelore.lab.studies.growth_study import (
    WITHOUT,
    GrowthJob,
    GrowthSetting,
    growth_jobs,
    growth_of,
    play_growth_job,
)
from gamelore.lab.studies.memory_study import PARTS, has_used
from gamelore.workers.processes import Report
from long_runs import shown

GAMES = (
    *("breakthroughSmall", "connectFour", "knightThrough", "reversi", "pentago", "englishDraughts", "checkers"),
    "ttcc4_2player",
)
SEED, RUNS = 1, 3
STARTCLOCK, CHECKPOINTS, MILLISECONDS, PAIRS = 1.0, "0,1,10,100,1000", 20.0, 20
RIVALS = (WITHOUT, "uct:seconds=0.02", "minimax:depth=2")


def jobs(folder: Path, trials: Iterable[Trial[GrowthSetting]], *_: object) -> list[GrowthJob]:
    """Return the jobs of some trials."""
    return growth_jobs(folder, trials)


def play(job: GrowthJob, report: Report) -> list[Outcome]:
    """Let a memory grow; a function of this script, so that processes import it, and with it the CPU clock."""
    assert time.monotonic is time.process_time
    return play_growth_job(job, report)


def table(settings: Sequence[GrowthSetting], store: ResultStore) -> Iterator[str]:
    """Yield the rows of a table: scores in % with 95 % intervals, by game over runs, then over the means of games."""
    checkpoints = settings[0].checkpoints
    yield "| game | against | " + " | ".join(f"after {number}" for number in checkpoints) + " |"
    yield "|---|---|" + "---|" * len(checkpoints)
    for rival in RIVALS:
        games = {setting.id: growth_of(store, setting.id, rival) for setting in settings}
        means: dict[int, list[float]] = {}
        for name, grown in games.items():
            for checkpoint, runs in grown.items():
                means.setdefault(checkpoint, []).append(sum(runs) / len(runs))
            yield from row(name, rival, grown)
        yield from row("all games", rival, means)


def row(name: str, rival: str, grown: Mapping[int, Sequence[float]]) -> Iterator[str]:
    """Yield a row of the table; none without results."""
    if grown:
        yield f"| {name} | {rival} | {' | '.join(shown(mean_interval(scores)) for scores in grown.values())} |"


def checks(settings: Sequence[GrowthSetting], store: ResultStore) -> Iterator[str]:
    """Yield the rows of a table: how many runs of a game used which part of their memory, and what times it took."""
    yield "| game | after | runs | lesson | openings | knob | CPU ratio of moves, by rival | seconds of startclocks |"
    yield "|---|---|---|---|---|---|---|---|"
    for setting in settings:
        runs = [*store.by_run(setting.id).values()]
        for number in map(str, setting.checkpoints if runs else ()):
            used = [result["used"][number] for result in runs]
            parts = [str(sum(has_used(own, part) for own in used)) for part in PARTS]
            ratios = []
            for rival in setting.rivals:
                own, other = (sum(result["cpu"][number][rival][side] for result in runs) for side in (0, 1))
                ratios.append(f"{rival} {own / other:.2f}" if other else rival)
            clocks = (
                f"{min(x['startclock'][number] for x in runs):.2f} to {max(x['startclock'][number] for x in runs):.2f}"
            )
            cells = setting.id, number, str(len(runs)), *parts, ", ".join(ratios), clocks
            yield f"| {' | '.join(cells)} |"


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    out: Annotated[Path, typer.Option(help="folder of the memories and results")],
    game: Annotated[list[str] | None, typer.Option(help="names in place of GAMES")] = None,
    startclock: Annotated[float, typer.Option(help="CPU seconds of a startclock")] = STARTCLOCK,
    checkpoints: Annotated[str, typer.Option(help="numbers of startclocks, joined by commas")] = CHECKPOINTS,
    pairs: Annotated[int, typer.Option(help="pairs of matches against each rival at each checkpoint")] = PAIRS,
    runs: Annotated[int, typer.Option(help="number of memories for each game")] = RUNS,
    workers: Annotated[int, typer.Option(help="number of processes")] = 1,
    report: Annotated[bool, typer.Option("--report", help="only print the tables and draw the picture")] = False,
    version: Annotated[str, typer.Option(help="version of the code whose results go on")] = "",
) -> None:
    """Let memories grow, and print and draw how strong they are."""
    long_runs.check_gamelore()
    folder = folder.resolve()  # paths are parts of the settings
    version = version or code_version("lab.studies.growth_study", "lab.studies.memory_study")
    memories = out / "memories" / long_runs.provenance(version)
    failures, progress = memories.with_name(f"{memories.name}-failures"), long_runs.Progress(100)
    numbers = tuple(sorted(map(int, checkpoints.split(","))))
    settings = [
        GrowthSetting(name, str(folder / f"{name}.kif"), SEED, runs, startclock, numbers, RIVALS, MILLISECONDS, pairs)
        for name in game or GAMES
    ]
    with ResultStore(store_path(out)) as store:
        grid = SettingGrid.of(settings)
        store.check(grid.settings, version)
        if not report:
            tolerant = long_runs.Tolerant(play, failures)
            about = {"workers": workers, "progress": progress, "version": version}
            run_grid(grid, store, jobs=partial(jobs, memories), play=tolerant, **about)
        print(*table(settings, store), "", *checks(settings, store), sep="\n")
        grown = {
            "no memory" if rival == WITHOUT else rival: {x.id: growth_of(store, x.id, rival) for x in settings}
            for rival in RIVALS
        }
        save(growth_figure(grown), out / "growth.png")
        failed = long_runs.told_failures(failures, store.finished())
    raise typer.Exit(1 if failed else 0)


if __name__ == "__main__":
    typer.run(main)
