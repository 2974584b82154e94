"""Measure what Banerjee & Stone's learner carries from each small game into each other one.

`python benchmarks/feature_map.py FOLDER --memory DIR --out OUT`

It stands beside benchmarks/transfer_map.py, which does this for the lessons of the player gamelore. FOLDER has
rulesheets as NAME.kif. The games are NUM_GAMES by lot of those of benchmarks/memory.py, in DIR/games.json, with at most
MOST_GATES gates in their circuits and MOST_MOVES first moves of a role. In each source, the learner learns
SOURCE_MATCHES matches; then it learns each target with these values of features and without, in RUNS runs of MATCHES
matches against OPPONENT. Pairs that fail, such as those whose game trees take too much memory, are told, and left out
by later runs, too; those whose process dies are tried again.

It writes OUT/feature-map.csv, with the differences of the mean rewards in the first tenth of the matches and after it,
and their 95 % intervals, and OUT/feature-map.png. A run that was interrupted goes on.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import gamelore
import long_runs
from gamelore.errors import ExperimentError, GameloreError
from gamelore.lab.experiment import SettingGrid, code_version, run_grid
from gamelore.lab.figures import map_figure, save
from gamelore.lab.results import ResultStore, store_path
from gamelore.lab.studies.transfer_study import Gain, TransferPlan, gain_of
from gamelore.matches.opponents import opponent_settings
from gamelore.rulesheets import title

SEED = 1
NUM_GAMES, MOST_GATES, MOST_MOVES = 20, 4000, 12
SOURCE_MATCHES, MATCHES, RUNS = 100, 300, 10
OPPONENT = "egreedy:filler=hashed"
LEARNER = "baseline"  # without knowledge of another game
LEFT_OUT = "left out"  # name of the note about pairs that fail
COLUMNS = ("source", "target", "early", "early_low", "early_high", "late", "late_low", "late_high")


def small_games(names: Sequence[str], folder: Path, num: int) -> list[str]:
    """Return the names of small games by lot."""
    small = [name for name in names if _is_small(folder / f"{name}.kif")]
    return sorted(np.random.default_rng(SEED).permutation(small)[:num].tolist())


def _is_small(path: Path) -> bool:
    game = gamelore.load(path)
    most = max(len(moves) for moves in game.start().legal.values())
    return game.circuit is not None and game.circuit.num_gates <= MOST_GATES and most <= MOST_MOVES


def plan_of(source: str, targets: Sequence[str], folder: Path, runs: int, matches: int) -> TransferPlan:
    """Return the experiment with a source."""
    paths = [str(folder / f"{name}.kif") for name in (source, *targets)]
    return TransferPlan(
        paths[0], tuple(paths[1:]), opponent_settings(OPPONENT), learners=(LEARNER, "transfer"),
        source_matches=SOURCE_MATCHES, runs=runs, matches=matches, seed=SEED,
    )  # fmt: skip


def play(plan: TransferPlan, store: ResultStore, workers: int, version: str) -> int:
    """Play the pairs of a source that are missing; if they fail, pair by pair. Return how many stay missing.

    A note names those that fail alone. One whose worker dies is tried again by the next run. The learning of a target
    without knowledge belongs to all sources, so it is played once.
    """
    left_out = store.noted(LEFT_OUT) or {}
    targets = tuple(target for target in plan.targets if pair_name(plan, target) not in left_out)
    if _error_of(replace(plan, targets=targets), store, workers, version) is None:
        return 0
    missing = 0
    for target in targets:
        error = _error_of(replace(plan, targets=(target,)), store, workers, version)
        if error is not None and not isinstance(error, ExperimentError):
            left_out[pair_name(plan, target)] = str(error)
            store.note(LEFT_OUT, left_out)
        missing += error is not None
    return missing


def _error_of(plan: TransferPlan, store: ResultStore, workers: int, version: str) -> Exception | None:
    """Play an experiment; return the error if it fails."""
    try:
        run_grid(SettingGrid.of(plan.settings()), store, workers=workers, progress=False, version=version)
    except (GameloreError, MemoryError) as error:
        print(f"{', '.join(pair_name(plan, target) for target in plan.targets)}: {error}", file=sys.stderr)
        return error
    return None


def pair_name(plan: TransferPlan, target: str) -> str:
    """Return the name of a pair in the note of those that are left out."""
    return f"{title(plan.source)}/{title(target)}"


def gains(plan: TransferPlan, store: ResultStore) -> Iterator[Gain]:
    """Yield the gains of the pairs of a source that were played."""
    finished = store.finished()
    for target in plan.targets:
        settings = {learner: plan.setting(target, learner) for learner in plan.learners}
        if all((setting.id, run) in finished for setting in settings.values() for run in range(plan.runs)):
            yield gain_of(plan, target, {x: store.rewards(setting.id, plan.runs) for x, setting in settings.items()})


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
    long_runs.check_gamelore()
    names = small_games(json.loads((memory / "games.json").read_text()), folder, num)
    others = {source: [name for name in names if name != source] for source in names}
    plans, version = [plan_of(source, own, folder, runs, matches) for source, own in others.items()], code_version()
    with ResultStore(store_path(out)) as store:
        store.check(SettingGrid.of(chain.from_iterable(plan.settings() for plan in plans)).settings, version)
        store.check_rules({plan.source: gamelore.load(plan.source).rules_hash for plan in plans})
        missing = 0
        for number, plan in enumerate(plans, start=1):
            missing += play(plan, store, workers, version)
            print(f"{number} of {len(names)} sources", file=sys.stderr, flush=True)
        all_gains = [gain for plan in plans for gain in gains(plan, store)]
        for name, error in (store.noted(LEFT_OUT) or {}).items():
            print(f"{name} is left out: {error}", file=sys.stderr)
    with (out / "feature-map.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *map(cells, all_gains)])
    place = {name: number for number, name in enumerate(names)}
    scores = np.full((len(names), len(names)), np.nan)
    for gain in all_gains:
        scores[place[Path(gain.source).stem], place[Path(gain.target).stem]] = gain.early[LEARNER].mean
    label = "50 + early gain of transferred features, in points"
    save(map_figure(names, np.zeros_like(scores), (50.0 + scores) / 100.0, label), out / "feature-map.png")
    raise typer.Exit(1 if missing else 0)


if __name__ == "__main__":
    typer.run(main)
