"""Measure what Banerjee & Stone's learner carries from each small game into each other one.

`python benchmarks/feature_map.py FOLDER --memory DIR --out OUT`

It stands beside benchmarks/transfer_map.py, which does this for the lessons of the player gamelore. FOLDER has
rulesheets as NAME.kif. The games are NUM_GAMES by lot of those of benchmarks/memory.py, in DIR/games.json, with at most
MOST_GATES gates in their circuits and MOST_MOVES first moves of a role. In each source, the learner learns
SOURCE_MATCHES matches; then it learns each target with these values of features and without, in RUNS runs of MATCHES
matches against OPPONENT. Pairs whose game trees take too much memory are told, and left out.

It writes OUT/feature-map.csv, with the differences of the mean rewards in the first tenth of the matches and after it,
and their 95 % intervals, and OUT/feature-map.png. A run that was interrupted goes on.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import gamelore
from gamelore.errors import ExperimentError, GameloreError
from gamelore.lab.figures import map_figure, save
from gamelore.lab.studies.transfer_study import Gain

SEED = 1
NUM_GAMES, MOST_GATES, MOST_MOVES = 20, 4000, 12
SOURCE_MATCHES, MATCHES, RUNS = 100, 300, 10
OPPONENT = "egreedy:filler=hashed"
LEARNER = "baseline"  # without knowledge of another game
COLUMNS = ("source", "target", "early", "early_low", "early_high", "late", "late_low", "late_high")


def small_games(names: Sequence[str], folder: Path, num: int) -> list[str]:
    """Return the names of small games by lot."""
    small = [name for name in names if _is_small(folder / f"{name}.kif")]
    return sorted(np.random.default_rng(SEED).permutation(small)[:num].tolist())


def _is_small(path: Path) -> bool:
    game = gamelore.load(path)
    most = max(len(moves) for moves in game.start().legal.values())
    return game.circuit is not None and game.circuit.num_gates <= MOST_GATES and most <= MOST_MOVES


def gains(names: Sequence[str], folder: Path, out: Path, **options: int) -> Iterator[Gain]:
    """Yield the gains of all pairs, source by source."""
    for number, source in enumerate(names):
        for target in names:
            if target != source:
                yield from gains_of(folder / f"{source}.kif", folder / f"{target}.kif", out / source / target, options)
        print(f"{number + 1} of {len(names)} sources", file=sys.stderr, flush=True)


def gains_of(source: Path, target: Path, out: Path, options: Mapping[str, int]) -> Sequence[Gain]:
    """Return the gain of a pair; none if its game trees are too large."""
    given: dict[str, Any] = {"source_matches": SOURCE_MATCHES, "opponent": OPPONENT, "seed": SEED, **options}
    try:
        return gamelore.transfer(source, target, out=out, progress=False, **given).gains
    except ExperimentError:  # results of other code, or of other settings
        raise
    except GameloreError as error:
        print(f"{source.stem} to {target.stem}: {error}", file=sys.stderr, flush=True)
        return ()


def cells(gain: Gain) -> list[str]:
    """Return the row of a pair for the CSV file."""
    intervals = gain.early[LEARNER], gain.late[LEARNER]
    numbers = [f"{value:.2f}" for own in intervals for value in (own.mean, own.low, own.high)]
    return [Path(gain.source).stem, Path(gain.target).stem, *numbers]


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    memory: Annotated[Path, typer.Option(help="folder of benchmarks/memory.py, with games.json")],
    out: Annotated[Path, typer.Option(help="folder of the results")],
    num: Annotated[int, typer.Option("--games", help="number of games")] = NUM_GAMES,
    matches: Annotated[int, typer.Option(help="matches of each run in a target")] = MATCHES,
    runs: Annotated[int, typer.Option(help="runs of each pair")] = RUNS,
    workers: Annotated[int, typer.Option(help="number of processes")] = 2,
) -> None:
    """Learn all games, each after each other one, and write the table and the picture."""
    names = small_games(json.loads((memory / "games.json").read_text()), folder, num)
    all_gains = list(gains(names, folder, out, matches=matches, runs=runs, workers=workers))
    with (out / "feature-map.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *map(cells, all_gains)])
    place = {name: number for number, name in enumerate(names)}
    scores = np.full((len(names), len(names)), np.nan)
    for gain in all_gains:
        scores[place[Path(gain.source).stem], place[Path(gain.target).stem]] = gain.early[LEARNER].mean
    label = "50 + early gain of transferred features, in points"
    save(map_figure(names, np.zeros_like(scores), (50.0 + scores) / 100.0, label), out / "feature-map.png")


if __name__ == "__main__":
    typer.run(main)
