"""Measure what the lesson of each game is worth in each other: `python benchmarks/transfer_map.py FOLDER --out DIR`.

FOLDER has rulesheets as NAME.kif. The games, and the stores of their teachings, are those of benchmarks/memory.py, in
the folders `--memory` and `--teachings`. The stages, each of which goes on where it was interrupted, and begins with
those before:

    maps       the score of the map and the share of the weight that it carries, for all pairs
    contests   matches of all pairs with a share of at least LEAST_SHARE, and of OTHERS other pairs by lot
    replay     NUM_FINDINGS findings again, with fresh matches: gains and harms that are farthest from 50 %, in turn
    report     DIR/transfer-map.csv, DIR/transfer-map.png, DIR/findings.png, and tables of findings, and of the best and
               worst pairs

A finding is a pair whose carried value beats a taught one (a gain), or loses against a search without a value (a harm).
The teachings are the samples. Findings are significant in one-sided tests by Benjamini & Hochberg at 5 %, over both
tests of all pairs. For the replay, only the best finding counts of each family of sources and family of targets. Pairs
whose carried value has no effect on the search, with the first teaching, have no contests, and no part in the lot; nor
have targets that are too large for self-play, see `memory.contestants`. With further teachings, a value without effect
plays as a search without a value; a pair is tested if at least FEWEST teachings have an effect (column `effective`).
`taken` and `refused` are the numbers of teachings about which the player's own test (memory/evidence.py, at the level
TAKEN_AT) would have decided within these rounds against the taught value.

With `--sealed`, the games of the sealed families are added, once they are opened and taught: what was played before
stays, and OTHERS of the new pairs are further controls. Results belong to a version of the code, as those of
benchmarks/memory.py; `--version NAME` goes on with those of an earlier one.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import typer

import long_runs
from gamelore.errors import ExperimentError, counted
from gamelore.lab.duel import families
from gamelore.lab.experiment import SettingGrid, code_version, run_grid
from gamelore.lab.figures import graph_figure, map_figure, save
from gamelore.lab.results import ResultStore, Trial, store_path
from gamelore.lab.stats import mean_interval
from gamelore.lab.studies.map_study import (
    RIVALS,
    MapJob,
    MapSetting,
    affordable_walks,
    map_jobs,
    mapped,
    num_effective,
    p_of_teachings,
    play_map_job,
    significant,
    source_lesson,
    teaching_scores,
    verdicts,
)
from gamelore.lab.studies.memory_study import store_of_teaching
from gamelore.rulesheets import load

SEED, FRESH_SEED = 1, 2
STUDY, TEACHINGS = 120.0, 5  # CPU seconds of each teaching, and teachings for each source
TAUGHT, ROUNDS = 500_000, 16  # walks of the rival's teaching; rounds of each teaching against each rival
PAIR_SECONDS = 60.0  # CPU seconds of the contests of a pair, of which the number of walks for each move follows
LEAST_SHARE, OTHERS = 0.2, 300
NUM_FINDINGS, FRESH_ROUNDS = 10, 80  # 800 matches against each rival: 5 teachings, 2 matches in a round
LEVEL, FEWEST = 0.05, 3  # teachings whose carried value has an effect
PARTS = ("mean", "low", "high")
COLUMNS = (
    "source",
    "target",
    "score",
    "share",
    "has_effect",
    "kind",
    "effective",
    "taken",
    "refused",
    *(f"{name}_{x}" for name in RIVALS for x in PARTS),
)

Stage = Literal["maps", "contests", "replay", "report"]


@dataclass(frozen=True)
class Pair:
    """A source and a target, with what `Mapped` says of the first teaching."""

    source: str
    target: str
    score: float
    share: float
    has_effect: bool

    @property
    def name(self) -> str:
        """The id of its contests."""
        return f"{self.source}/{self.target}"


def check_teachings(store: ResultStore, used: dict[str, object]) -> None:
    """Raise ExperimentError if the maps and contests in a store are those of other teachings, or of other code."""
    noted = store.noted("teachings")
    if noted not in (None, used):
        raise ExperimentError(f"expected the teachings {noted}, got {used}; choose another folder with --out")
    store.note("teachings", used)


def listed(file: Path) -> list[str]:
    """Return the names of games in a file of benchmarks/memory.py."""
    return list(json.loads(file.read_text()))


def check_stores(names: Iterable[str], knowledge: Path, study: float) -> None:
    """Raise ExperimentError if the store of a teaching is missing."""
    stores = [store_of_teaching(knowledge, name, run, study) for name in names for run in range(TEACHINGS)]
    if missing := [store.name for store in stores if not store.exists()]:
        raise ExperimentError(
            f"expected {counted(len(stores), 'store')} in {knowledge}, {len(missing)} are missing, such as {missing[0]}"
            "; make them by memory.py --stage study --startclock 10, with --sealed for sealed games"
        )


def map_all(names: Sequence[str], folder: Path, knowledge: Path, study: float, store: ResultStore) -> list[Pair]:
    """Map the pairs that are missing in the store, target by target; return all."""
    lessons = {name: source_lesson(knowledge, str(folder / f"{name}.kif"), 0, study) for name in names}
    pairs = []
    for target in names:
        rows = store.noted(f"pairs/{target}") or {}
        others = {name: lesson for name, lesson in lessons.items() if lesson is not None and name != target}
        if new := others.keys() - rows.keys():
            game = load(folder / f"{target}.kif")
            rows |= {source: mapped(others[source], game)[0] for source in sorted(new)}
            store.note(f"pairs/{target}", rows)
        pairs += [Pair(source, target, *rows[source]) for source in others]
    return pairs


def chosen_pairs(pairs: Iterable[Pair], large: Collection[str], added: Collection[str] = ()) -> list[Pair]:
    """Return the pairs with contests: all that carry enough, and others by lot.

    Args:
        pairs: all pairs
        large: targets without contests
        added: games whose pairs have a lot of their own, so that they leave the lot of all others as it is
    """
    ordered = sorted(pairs, key=lambda pair: (pair.target, pair.source))
    ordered = [pair for pair in ordered if pair.has_effect and pair.target not in large]
    chosen = [pair for pair in ordered if pair.share >= LEAST_SHARE]
    for is_new in (False, True):
        own = (pair for pair in ordered if (pair.source in added or pair.target in added) == is_new)
        others = [pair for pair in own if pair.share < LEAST_SHARE]
        drawn = np.random.default_rng(SEED).permutation(len(others))[:OTHERS].tolist()
        chosen += [others[number] for number in sorted(drawn)]
    return chosen


def walks_of(targets: Iterable[str], folder: Path, store: ResultStore, measures: bool) -> dict[str, int]:
    """Return the number of walks for a move in each target, as the store keeps it.

    Those that are missing are measured, or left out if `measures` is False.
    """
    walks = {}
    for target in dict.fromkeys(targets):
        kept = store.noted(f"walks/{target}")
        if kept is None and measures:
            seconds = PAIR_SECONDS / (TEACHINGS * len(RIVALS))
            kept = affordable_walks(load(folder / f"{target}.kif"), ROUNDS, seconds)
            store.note(f"walks/{target}", kept)
        if kept is not None:
            walks[target] = int(kept)
    return walks


def setting_of(pair: Pair, folder: Path, study: float, walks: int) -> MapSetting:
    """Return the contests of a pair."""
    paths = [str(folder / f"{name}.kif") for name in (pair.target, pair.source)]
    return MapSetting(pair.name, paths[0], SEED, TEACHINGS, paths[1], study, TAUGHT, walks, ROUNDS)


class Finding(NamedTuple):
    """A pair of games by its id, and the rival: "taught" for a gain, "none" for a harm."""

    name: str
    rival: str


def tested(settings: Iterable[str], store: ResultStore, rival: str) -> dict[str, list[float]]:
    """Return the scores of teachings by pair, of those pairs with at least FEWEST that have an effect.

    A pair whose matches never end has fewer scores.
    """
    scores = {name: teaching_scores(store, name, rival) for name in settings if num_effective(store, name) >= FEWEST}
    return {name: own for name, own in scores.items() if len(own) >= FEWEST}


def findings(settings: Iterable[str], store: ResultStore) -> list[Finding]:
    """Return all findings: gains and harms in turn, each with scores farthest from 50 % first.

    All tests are one-sided. Two-sided ones would fill the list with values that beat none, as nearly every one does,
    and so let more false findings through.
    """
    names, values = list(settings), dict[Finding, float]()
    for rival, sign in (("taught", 1), ("none", -1)):
        samples = tested(names, store, rival)
        values |= {Finding(name, rival): p for name, p in p_of_teachings(samples, ROUNDS, sign).items()}
    ordered = sorted(
        significant(values, LEVEL), key=lambda test: -abs(float(np.mean(teaching_scores(store, *test))) - 0.5)
    )
    kinds = ([test for test in ordered if test.rival == rival] for rival in ("taught", "none"))
    return [test for both in zip_longest(*kinds) for test in both if test is not None]


def of_different_families(ordered: Sequence[Finding]) -> list[Finding]:
    """Return the first finding of each family of sources and family of targets."""
    firsts: dict[tuple[int | str, ...], Finding] = {}
    for finding in ordered:
        firsts.setdefault(tuple(families().get(game, game) for game in finding.name.split("/")), finding)
    return list(firsts.values())


def extremes(settings: Iterable[str], store: ResultStore) -> Iterator[str]:
    """Yield the rows of a table of the pairs with the highest and the lowest scores against a taught value."""
    scores = tested(settings, store, "taught")
    ordered = sorted(scores, key=lambda name: -float(np.mean(scores[name])))
    yield "| source | target | against a taught value | against none |"
    yield "|---|---|---|---|"
    for name in dict.fromkeys([*ordered[:NUM_FINDINGS], *ordered[-NUM_FINDINGS:]]):
        cells = (interval_cells(teaching_scores(store, name, rival)) for rival in ("taught", "none"))
        texts = (f"{mean} [{low}, {high}]" for mean, low, high in cells)
        yield f"| {' | '.join([*name.split('/'), *texts])} |"


def rows(pairs: Iterable[Pair], settings: dict[str, MapSetting], store: ResultStore) -> Iterator[list[object]]:
    """Yield the rows of the CSV file: scores in % with their 95 % intervals."""
    for pair in pairs:
        name = pair.name
        scores = {rival: teaching_scores(store, name, rival) if name in settings else [] for rival in RIVALS}
        kind = ("carries" if pair.share >= LEAST_SHARE else "control") if name in settings else ""
        effective = num_effective(store, name) if name in settings else 0
        numbers = f"{pair.score:.3f}", f"{pair.share:.3f}", "yes" if pair.has_effect else "no"
        about = pair.source, pair.target, *numbers, kind, effective
        decisions = verdicts(store, name) if name in settings else []
        counts = [decisions.count(verdict) for verdict in ("taken", "refused")]
        yield [*about, *counts, *(cell for own in scores.values() for cell in interval_cells(own))]


def interval_cells(scores: Sequence[float]) -> list[str]:
    """Return the mean of some scores and the ends of its interval, in %; empty texts for fewer than two scores."""
    if len(scores) < 2:
        return [""] * len(PARTS)
    interval = mean_interval([100 * score for score in scores])
    return [f"{part:.1f}" for part in (interval.mean, interval.low, interval.high)]


def table(found: Iterable[Finding], store: ResultStore, fresh: ResultStore) -> Iterator[str]:
    """Yield the rows of a table of findings."""
    yield "| source | target | finding | against a taught value | against none | fresh matches |"
    yield "|---|---|---|---|---|---|"
    for name, rival in found:
        taught, none = (teaching_scores(store, name, rival) for rival in ("taught", "none"))
        mean, low, high = interval_cells(teaching_scores(fresh, name, rival))
        again = f"{mean} [{low}, {high}]" if mean else ""
        scores = f"{100 * np.mean(taught):.0f} | {100 * np.mean(none):.0f}"
        yield f"| {' | '.join(name.split('/'))} | {'gain' if rival == 'taught' else 'harm'} | {scores} | {again} |"


def jobs(folder: Path, trials: Iterable[Trial[MapSetting]], *_: object) -> list[MapJob]:
    """Return the jobs of some trials."""
    return map_jobs(folder, trials)


def play(
    settings: Iterable[MapSetting], store: ResultStore, knowledge: Path, failures: Path, workers: int, version: str
) -> None:
    """Play the contests that are missing."""
    grid, tolerant = SettingGrid.of(settings), long_runs.Tolerant(play_map_job, failures)
    about = {"workers": workers, "progress": long_runs.Progress(), "version": version}
    run_grid(grid, store, jobs=partial(jobs, knowledge), play=tolerant, **about)


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    memory: Annotated[Path, typer.Option(help="folder of benchmarks/memory.py, with games.json")],
    teachings: Annotated[Path, typer.Option(help="folder in there with the teachings of a version")],
    out: Annotated[Path, typer.Option(help="folder of the results")],
    stage: Annotated[Stage, typer.Option(help="what to do")] = "contests",
    workers: Annotated[int, typer.Option(help="number of processes")] = 1,
    study: Annotated[float, typer.Option(help="CPU seconds of each teaching")] = STUDY,
    sealed: Annotated[bool, typer.Option(help="add the games of sealed-games.json")] = False,
    version: Annotated[str, typer.Option(help="version of the code whose results go on")] = "",
) -> None:
    """Map all pairs, play contests, replay findings, or write the report."""
    long_runs.check_gamelore()
    folder, teachings = folder.resolve(), teachings.resolve()
    failures, fresh_failures = out / "failures", out / "replay" / "failures"
    version = version or code_version("lab.studies.map_study")
    names, large = (listed(memory / f"{file}.json") for file in ("games", "large"))
    added = listed(memory / "sealed-games.json") if sealed else []
    large += listed(memory / "sealed-large.json") if sealed else []
    check_stores([*names, *added], teachings, study)
    with ResultStore(store_path(out)) as store, ResultStore(store_path(out / "replay")) as fresh:
        check_teachings(store, {"folder": str(teachings), "study": study, "version": version})
        pairs = map_all([*names, *added], folder, teachings, study, store)
        paired = chosen_pairs(pairs, large, added)
        carrying = [pair.has_effect for pair in pairs if pair.share >= LEAST_SHARE and pair.target not in large]
        print(
            f"{counted(len(pairs), 'pair')}, {len(carrying)} of them carry at least {LEAST_SHARE:.0%}, of these"
            f" {carrying.count(False)} without effect; contests of {counted(len(paired), 'pair')}"
        )
        if stage == "maps":
            raise typer.Exit
        walks = walks_of((pair.target for pair in paired), folder, store, stage != "report")
        played = [pair for pair in paired if pair.target in walks]
        settings = {pair.name: setting_of(pair, folder, study, walks[pair.target]) for pair in played}
        if stage in ("contests", "replay"):
            play(settings.values(), store, teachings, failures, workers, version)
        best = findings(settings, store)
        chosen = of_different_families(best)[:NUM_FINDINGS]
        if stage == "replay":
            names_again = dict.fromkeys(finding.name for finding in chosen)
            again = [replace(settings[name], seed=FRESH_SEED, rounds=FRESH_ROUNDS) for name in names_again]
            play(again, fresh, teachings, fresh_failures, workers, version)
        if stage == "report":
            with (out / "transfer-map.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([COLUMNS, *rows(pairs, settings, store)])
            draw([*names, *added], pairs, store, out)
            draw_findings(best, store, out)
            print(f"{counted(len(best), 'finding')}", *table(chosen, store, fresh), sep="\n")
            print("", *extremes(settings, store), sep="\n")
        parts = {failures: store, fresh_failures: fresh}
        failed = sum(long_runs.told_failures(file, results.finished()) for file, results in parts.items())
    raise typer.Exit(1 if failed else 0)


def draw(names: Sequence[str], pairs: Iterable[Pair], store: ResultStore, out: Path) -> None:
    """Draw the map."""
    place = {name: number for number, name in enumerate(names)}
    maps, scores = np.zeros((len(names), len(names))), np.full((len(names), len(names)), np.nan)
    for pair in pairs:
        spot = place[pair.source], place[pair.target]
        maps[spot] = pair.share
        own = teaching_scores(store, pair.name, "taught")
        if own:
            scores[spot] = np.mean(own)
    save(map_figure(names, maps, scores), out / "transfer-map.png")


def draw_findings(best: Sequence[Finding], store: ResultStore, out: Path) -> None:
    """Draw the findings as a graph, the games of a family side by side. Where a pair has both, its gain is drawn."""
    arrows = dict[tuple[str, str], float]()
    for finding in sorted(best, key=lambda finding: finding.rival == "taught"):
        source, target = finding.name.split("/")
        arrows[source, target] = 100 * float(np.mean(teaching_scores(store, *finding)))
    names = sorted({game for pair in arrows for game in pair}, key=family_key)
    save(graph_figure(names, arrows), out / "findings.png")


def family_key(game: str) -> tuple[int, str]:
    """Return a key that sorts games by their families."""
    return families().get(game, -1), game


if __name__ == "__main__":
    typer.run(main)
