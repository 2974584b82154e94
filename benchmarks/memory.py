"""Measure what the memory of the player gamelore is worth: `python benchmarks/memory.py FOLDER --out DIR`.

FOLDER has rulesheets as NAME.kif. The games are those for two roles in which never both have a choice, in 64 random
matches, and that can be studied; those of sealed families (lab/families.toml) are left out. What is played, and how, is
the protocol in docs/memory.md; `plan` is the same in code. All lots are drawn with the seed SEED.

`--stage study` makes the teachings only, `--stage contests` plays the contests, and `--stage report` prints the tables.
A run that was interrupted goes on.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import typer

import gamelore
from gamelore.errors import GameloreError
from gamelore.lab.duel import FAMILIES, sealed_games
from gamelore.lab.experiment import SettingGrid, run_grid
from gamelore.lab.results import ResultStore, Trial, store_path
from gamelore.lab.stats import Interval, mean_interval
from gamelore.lab.studies.memory_study import Arm, MemoryJob, MemorySetting, memory_jobs, play_memory_job, teachings
from gamelore.search.teaching import can_be_taught

SEED = "0f846e8"  # commit of main before the protocol
VERSION = "memory-1"  # of the results; another one when the player changes
TEACHINGS, STUDY = 5, 120.0  # for each game, and CPU seconds of each
SESSIONS = {1.0: (5, 4), 10.0: (2, 10), 60.0: (1, 20)}  # startclock in seconds: sessions, and pairs in each
FAST, SLOW = 2.0, 40.0  # milliseconds for a move
FOLDS, NUM_OTHERS, NUM_LONG, NUM_SLOW = 5, 12, 15, 30
RANDOM_MATCHES, MOST_PLIES = 64, 150

Stage = Literal["study", "contests", "report"]


@dataclass(frozen=True)
class Sheet:
    """A game of the protocol, with the number of its family and the fold of that."""

    path: str
    name: str
    family: int
    fold: int


def takes_turns(game: gamelore.Game) -> bool:
    """Return whether at most one role has a choice in all positions of some random matches."""
    rng, states = np.random.default_rng(0), np.repeat(game.initial[None], RANDOM_MATCHES, axis=0)
    for _ in range(MOST_PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        going = counts.all(axis=1)
        if ((counts > 1).sum(axis=1) > 1).any():
            return False
        if not going.any():
            break
        drawn = starts + (rng.random(counts.shape) * counts).astype(np.int64)
        states = game.next(states[going], legal.actions[drawn[going]])
    return True


def eligible(folder: Path, out: Path) -> list[Sheet]:
    """Return the games of the protocol; a file in `out` keeps them."""
    kept = out / "games.json"
    if not kept.exists():
        names = [path.stem for path in sorted(folder.glob("*.kif")) if _is_eligible(path)]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(names))
    families = tomllib.loads(FAMILIES.read_text(encoding="ascii"))["family"]
    family_of = {name: number for number, family in enumerate(families) for name in family["games"]}
    names = json.loads(kept.read_text())
    own = {name: family_of.get(name, -number - 1) for number, name in enumerate(names)}
    order = _rng("folds").permutation(sorted(set(own.values()))).tolist()
    return [Sheet(str(folder / f"{name}.kif"), name, own[name], order.index(own[name]) % FOLDS) for name in names]


def _is_eligible(path: Path) -> bool:
    try:
        game = gamelore.load(path)
    except GameloreError:
        return False
    is_open = game.rules_hash not in sealed_games()
    return is_open and game.num_roles == 2 and can_be_taught(game) and takes_turns(game)


def _rng(lot: str) -> np.random.Generator:
    """Return the random numbers of a lot."""
    return np.random.default_rng([ord(letter) for letter in SEED + lot])


def drawn(lot: str, names: Sequence[str], num: int) -> list[str]:
    """Return so many of the names by lot."""
    return sorted(_rng(lot).permutation(sorted(names)).tolist()[:num])


def plan(sheets: Sequence[Sheet], study: float = STUDY, num: int = TEACHINGS) -> list[MemorySetting]:
    """Return all contests of the protocol, with so many teachings of so many seconds for each game."""
    long = drawn("60 s", [sheet.name for sheet in sheets], NUM_LONG)
    slow = drawn("slow", [sheet.name for sheet in sheets], NUM_SLOW)
    settings = []
    for sheet in sheets:
        others = _others(sheet, sheets)
        for arm in get_args(Arm):
            if arm in ("known", "empty") or others[arm]:
                settings += [_setting(sheet, arm, others, startclock, FAST) for startclock in (1.0, 10.0)]
        if sheet.name in long:
            settings.append(_setting(sheet, "known", others, 60.0, FAST))
        if sheet.name in slow:
            settings += [
                _setting(sheet, arm, others, 1.0, SLOW) for arm in ("known", "variant") if others.get(arm, True)
            ]
    return [replace(setting, study=study, runs=num) for setting in settings]


def _others(sheet: Sheet, sheets: Sequence[Sheet]) -> dict[Arm, tuple[str, ...]]:
    """Return the games whose lessons the side with memory has in each arm."""
    path_of = {other.name: other.path for other in sheets}
    family = [other.name for other in sheets if other.family == sheet.family and other is not sheet]
    strangers = [other.name for other in sheets if other.fold != sheet.fold]
    unrelated, shuffled = (drawn(f"{arm} {sheet.name}", strangers, num) for arm, num in (("u", NUM_OTHERS), ("s", 1)))
    chosen: Mapping[Arm, list[str]] = {"variant": family, "unrelated": unrelated, "shuffled": shuffled}
    return {arm: tuple(path_of[name] for name in names) for arm, names in chosen.items()}


def _setting(
    sheet: Sheet, arm: Arm, others: Mapping[Arm, tuple[str, ...]], startclock: float, milliseconds: float
) -> MemorySetting:
    name = f"{sheet.name}/{arm}/{startclock:g}s/{milliseconds:g}ms"
    sessions, pairs = SESSIONS[startclock]
    about = arm, others.get(arm, ()), STUDY, startclock, milliseconds, sessions, pairs
    return MemorySetting(name, sheet.path, 1, TEACHINGS, *about)


def one_by_one(folder: Path, trials: Iterable[Trial[MemorySetting]], *_: object) -> list[MemoryJob]:
    """Return a job for each contest, so that each is stored as soon as it is over."""
    return [replace(job, trials=(trial,)) for job in memory_jobs(folder, trials) for trial in job.trials]


def table(settings: Sequence[MemorySetting], store: ResultStore) -> Iterator[str]:
    """Yield a row for each arm, startclock and time for a move: mean over the games of the mean over the teachings."""
    kinds = dict.fromkeys((setting.arm, setting.startclock, setting.milliseconds) for setting in settings)
    yield "| arm | startclock | ms a move | games | score | between games | between teachings | between pairs |"
    yield "|---|---|---|---|---|---|---|---|"
    for arm, startclock, milliseconds in kinds:
        own = [x for x in settings if (x.arm, x.startclock, x.milliseconds) == (arm, startclock, milliseconds)]
        scores = [list(teachings(store, setting.id).values()) for setting in own]
        scores = [teaching for teaching in scores if teaching]
        if scores:
            means = [float(np.mean([np.mean(pairs) for pairs in teaching])) for teaching in scores]
            yield f"| {arm} | {startclock:g} | {milliseconds:g} | {len(scores)} | {shown(mean_interval(means))} | " + (
                " | ".join(f"{part:.1f}" for part in deviations(scores)) + " |"
            )


def deviations(scores: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float, float]:
    """Return the standard deviations between games, between teachings of a game, and between pairs of a teaching."""
    pairs = float(np.mean([np.var(own, ddof=1) for teaching in scores for own in teaching if len(own) > 1] or [0.0]))
    num_pairs = float(np.mean([len(own) for teaching in scores for own in teaching]))
    means = [[float(np.mean(own)) for own in teaching] for teaching in scores]
    within = float(np.mean([np.var(own, ddof=1) for own in means if len(own) > 1] or [0.0]))
    num = float(np.mean([len(own) for own in means]))
    between = float(np.var([np.mean(own) for own in means], ddof=1)) if len(means) > 1 else 0.0
    parts = between - within / num, within - pairs / num_pairs, pairs
    return tuple(max(part, 0.0) ** 0.5 for part in parts)  # type: ignore[return-value]


def shown(interval: Interval) -> str:
    """Return a mean with its 95 % interval as text."""
    return f"{interval.mean:.1f} [{interval.low:.1f}, {interval.high:.1f}]"


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    out: Annotated[Path, typer.Option(help="folder of the teachings and results")],
    stage: Annotated[Stage, typer.Option(help="what to do")] = "contests",
    workers: Annotated[int, typer.Option(help="number of processes")] = 1,
    study: Annotated[float, typer.Option(help="CPU seconds of each study")] = STUDY,
    num: Annotated[int, typer.Option("--teachings", help="number of teachings for each game")] = TEACHINGS,
) -> None:
    """Make teachings, play the contests that are missing, or print the tables."""
    settings, knowledge = plan(eligible(folder, out), study, num), out / "teachings"
    with ResultStore(store_path(out)) as store:
        if stage == "study":
            teaching = {x.game: replace(x, id=f"{x.game}/study", sessions=0) for x in settings if x.arm == "known"}
            settings = list(teaching.values())
        if stage != "report":
            grid = SettingGrid.of(settings)
            jobs = partial(one_by_one, knowledge)
            run_grid(grid, store, workers=workers, jobs=jobs, play=partial(play_memory_job), version=VERSION)
        if stage != "study":
            print(*table(settings, store), sep="\n")
    print(f"{len(list(knowledge.glob('*.db')))} teachings")


if __name__ == "__main__":
    typer.run(main)
