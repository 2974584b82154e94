"""Measure how the player that remembers grows: `python benchmarks/growth.py FOLDER --out DIR`.

FOLDER has rulesheets as NAME.kif. In each of GAMES, three memories begin empty and grow over 1,000 startclocks of a
second. After 0, 1, 10, 100 and 1,000 of them, 20 pairs of matches at 20 ms a move are played against the player
without memory and against uct:seconds=0.02. A run that was interrupted goes on; `--report` only prints the table and
draws DIR/growth.png. All times are CPU times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import cpu_clock  # noqa: F401 - before gamelore
from gamelore.lab.experiment import SettingGrid, run_grid
from gamelore.lab.figures import growth_figure, save
from gamelore.lab.results import ResultStore, Trial, store_path
from gamelore.lab.stats import mean_interval
from gamelore.lab.studies.growth_study import (
    WITHOUT,
    GrowthJob,
    GrowthSetting,
    growth_jobs,
    growth_of,
    play_growth_job,
)

GAMES = (
    *("breakthroughSmall", "connectFour", "knightThrough", "reversi", "pentago", "englishDraughts", "checkers"),
    "ttcc4_2player",
)
SEED, RUNS = 1, 3
VERSION = "growth-2"  # of the results; another one when the player changes
STARTCLOCK, CHECKPOINTS, MILLISECONDS, PAIRS = 1.0, (0, 1, 10, 100, 1000), 20.0, 20
RIVALS = (WITHOUT, "uct:seconds=0.02")


def jobs(folder: Path, trials: Iterable[Trial[GrowthSetting]], *_: object) -> list[GrowthJob]:
    """Return the jobs of some trials."""
    return list(growth_jobs(folder, trials))


def table(settings: Iterable[GrowthSetting], store: ResultStore) -> Iterator[str]:
    """Yield a row for each game and rival: the mean of the runs with its 95 % interval over runs, in %."""
    yield "| game | against | " + " | ".join(f"after {number}" for number in CHECKPOINTS) + " |"
    yield "|---|---|" + "---|" * len(CHECKPOINTS)
    for setting in settings:
        for rival in setting.rivals:
            cells = []
            for means in growth_of(store, setting.id, rival).values():
                interval = mean_interval(means)
                cells.append(f"{interval.mean:.0f} [{interval.low:.0f}, {interval.high:.0f}]")
            if cells:
                yield f"| {setting.id} | {rival} | {' | '.join(cells)} |"


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
            play = partial(play_growth_job)
            own_jobs = partial(jobs, out / "memories")
            run_grid(SettingGrid.of(settings), store, workers=workers, jobs=own_jobs, play=play, version=VERSION)
        print(*table(settings, store), sep="\n")
        grown = {setting.id: growth_of(store, setting.id, WITHOUT) for setting in settings}
        save(growth_figure({name: own for name, own in grown.items() if own}), out / "growth.png")


if __name__ == "__main__":
    typer.run(main)
