"""Measure how the player that remembers grows: `python benchmarks/growth.py FOLDER --out DIR`.

FOLDER has rulesheets as NAME.kif. In each of GAMES, three memories begin empty and grow over 1,000 startclocks of a
second. After 0, 1, 10, 100 and 1,000 of them, 20 pairs of matches at 20 ms a move are played against the player
without memory, which is taught anew for every five pairs, and against uct:seconds=0.02. A run that was interrupted goes
on; `--report` only prints the table and draws DIR/growth.png. All times are CPU times. Results and memories belong to a
version of the code.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import cpu_clock  # noqa: F401 - before gamelore
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
from gamelore.workers.processes import Report
from memory import provenance, say, shown

GAMES = (
    *("breakthroughSmall", "connectFour", "knightThrough", "reversi", "pentago", "englishDraughts", "checkers"),
    "ttcc4_2player",
)
SEED, RUNS = 1, 3
STARTCLOCK, CHECKPOINTS, MILLISECONDS, PAIRS = 1.0, (0, 1, 10, 100, 1000), 20.0, 20
RIVALS = (WITHOUT, "uct:seconds=0.02")


def jobs(folder: Path, trials: Iterable[Trial[GrowthSetting]], *_: object) -> list[GrowthJob]:
    """Return the jobs of some trials."""
    return list(growth_jobs(folder, trials))


def play(job: GrowthJob, report: Report) -> list[Outcome]:
    """Let a memory grow; a function of this script, so that processes import it, and with it the CPU clock."""
    assert time.monotonic is time.process_time
    return play_growth_job(job, report)


def table(settings: Sequence[GrowthSetting], store: ResultStore) -> Iterator[str]:
    """Yield the rows of a table: scores in % with 95 % intervals, by game over runs, then over the means of games."""
    yield "| game | against | " + " | ".join(f"after {number}" for number in CHECKPOINTS) + " |"
    yield "|---|---|" + "---|" * len(CHECKPOINTS)
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


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    out: Annotated[Path, typer.Option(help="folder of the memories and results")],
    game: Annotated[list[str] | None, typer.Option(help="names in place of GAMES")] = None,
    startclocks: Annotated[int, typer.Option(help="number of startclocks, at most")] = CHECKPOINTS[-1],
    pairs: Annotated[int, typer.Option(help="pairs of matches against each rival at each checkpoint")] = PAIRS,
    runs: Annotated[int, typer.Option(help="number of memories for each game")] = RUNS,
    workers: Annotated[int, typer.Option(help="number of processes")] = 1,
    report: Annotated[bool, typer.Option("--report", help="only print the table and draw the picture")] = False,
) -> None:
    """Let memories grow, and print and draw how strong they are."""
    checkpoints = tuple(number for number in CHECKPOINTS if number <= startclocks)
    settings = [
        GrowthSetting(
            name, str(folder / f"{name}.kif"), SEED, runs, STARTCLOCK, checkpoints, RIVALS, MILLISECONDS, pairs
        )
        for name in game or GAMES
    ]
    with ResultStore(store_path(out)) as store:
        if not report:
            version = code_version("lab.studies.growth_study", "lab.studies.memory_study")
            grid, own_jobs = SettingGrid.of(settings), partial(jobs, out / "memories" / provenance(version))
            run_grid(grid, store, workers=workers, progress=say, jobs=own_jobs, play=play, version=version)
        print(*table(settings, store), sep="\n")
        grown = {setting.id: growth_of(store, setting.id, WITHOUT) for setting in settings}
        save(growth_figure({name: own for name, own in grown.items() if own}), out / "growth.png")


if __name__ == "__main__":
    typer.run(main)
