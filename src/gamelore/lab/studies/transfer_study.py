"""Transfer between any games: learn a source game, then target games with and without its values; report the gains."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import ExperimentError
from ...gdl.limits import Limits
from ...learning.td.initial_values import LearnerSettings
from ...matches.opponents import OpponentSettings
from ...rulesheets import title
from .. import report, stats
from ..experiment import BatchWatch, SeriesSetting, SettingGrid, Tell, code_version, run_grid
from ..figures import CurvePlan, ReportPicture, file_name, learning_figure, write_rows
from ..report import Block, Heading, Pictures, ReportPaths, TableBlock, Text, provenance_table, span, write_report
from ..results import ResultStore, store_path
from ..stats import Interval

FOUR_GAMES = ("tictactoe", "connect3", "othello4", "capturego3")
LEARNERS = ("baseline", "transfer", "lookahead")
SEED = 2007


@dataclass(frozen=True)
class TransferPlan:
    """A plan with one source game, several target games and one kind of opponent.

    The source is "" if no learner transfers. Then the learners are compared by their levels only.

    Roles are numbers, in the order of the rulesheet. In the source game the learner makes a random move with
    probability `source_epsilon`. Its default and that of `source_matches` follow from the paper's Table 1, which
    implies short source runs with much exploration (readings.md, B&S 8).
    """

    source: str
    targets: tuple[str, ...]
    opponent: OpponentSettings = field(default_factory=lambda: OpponentSettings(filler="hashed"))
    learner: LearnerSettings = field(default_factory=lambda: LearnerSettings("transfer", initialisation="eager"))
    learners: tuple[str, ...] = LEARNERS
    source_role: int = 0
    target_role: int = 0
    source_matches: int = 100
    source_epsilon: float = 1.0
    runs: int = 10
    matches: int = 3000
    seed: int = SEED

    def source_setting(self) -> SeriesSetting:
        """Return the setting of the source runs."""
        learner = replace(self.learner, kind="baseline", epsilon=self.source_epsilon, equivalence=None, control=None)
        name = f"{self.source_place}/{self.opponent.kind}/source"
        return SeriesSetting(
            name, self.source, self.seed, self.runs, self.source_role, self.source_matches, learner, self.opponent,
            "source", extract=True,
        )  # fmt: skip

    def setting(self, target: str, learner: str) -> SeriesSetting:
        """Return the setting of a learner in a target game. The id of a transfer learner also names the source."""
        source = self.source_setting() if learner == "transfer" else None
        other = replace(self.learner, kind=learner, equivalence=None, control=None)  # type: ignore[arg-type]
        tag = f"transfer-from-{self.source_place}" if source else learner
        return SeriesSetting(
            f"{self.target_place(target)}/{self.opponent.kind}/{tag}", target, self.seed, self.runs,
            self.target_role, self.matches, self.learner if source else other, self.opponent, source=source,
        )  # fmt: skip

    @property
    def source_place(self) -> str:
        """Name of the source game, with the role unless it is the first role."""
        return _place(self.source, self.source_role)

    def target_place(self, target: str) -> str:
        """Return the name of a target game, with the role unless it is the first role."""
        return _place(target, self.target_role)

    def settings(self) -> Iterator[SeriesSetting]:
        """Yield the setting of each learner in each target game."""
        yield from (self.setting(*pair) for pair in product(self.targets, self.learners))


def every_pair(**options: Any) -> list[TransferPlan]:
    """Return plans for all sources and targets among FOUR_GAMES, with all pairs of their roles.

    There are 16 plans with 4 targets each, 64 pairs in all. The roles of source and target are chosen independently.
    """
    return [
        TransferPlan(source, FOUR_GAMES, source_role=source_role, target_role=target_role, **options)
        for source, source_role, target_role in product(FOUR_GAMES, (0, 1), (0, 1))
    ]


@dataclass(frozen=True)
class Gain:
    """Result of one source and one target; all numbers are in points.

    levels  mean reward of each learner after the first tenth of the matches
    early   difference transfer - learner, run by run, in the first tenth of the matches
    late    the same difference in the matches after it
    """

    source: str
    target: str
    levels: dict[str, Interval]
    early: dict[str, Interval]
    late: dict[str, Interval]

    def as_json(self) -> dict[str, Any]:
        """Return the gain as data that can be written as JSON."""
        return asdict(self)


Rewards: TypeAlias = dict[str, NDArray[np.float32]]
"""Rewards of each learner: learner -> float32[runs, matches]."""


@dataclass(frozen=True)
class TransferResult:
    """The gains of all pairs, the rewards by (source, target), the report, and a figure for each pair."""

    gains: list[Gain]
    rewards: dict[tuple[str, str], Rewards]
    report: ReportPaths
    pictures: list[ReportPicture]


def transfer(
    plans: TransferPlan | Sequence[TransferPlan],
    out: Path | str,
    *,
    workers: int = 2,
    cluster: str | None = None,
    progress: bool | Tell = True,
    limits: Limits | None = None,
    watch: BatchWatch | None = None,
) -> TransferResult:
    """Run the trials that are not yet in `out`/results.db, and write a report with figures and CSV files.

    Each process loads the games within `limits`. `cluster`: see `cluster_pool`. `watch`: see `run_grid`.

    Raise ExperimentError if `out` contains results of other settings, or of other games, learners or runs, whose report
    would be replaced; or if a plan has no target, a target twice, or a transfer learner without a source.
    """
    begin, folder = time.perf_counter(), Path(out)
    plans = [plans] if isinstance(plans, TransferPlan) else list(plans)
    for plan in plans:
        _check(plan)
    with ResultStore(store_path(folder)) as store:
        grid = SettingGrid.of(setting for plan in plans for setting in plan.settings())
        store.check_trials(grid.trials())
        run_grid(grid, store, workers=workers, cluster=cluster, progress=progress, limits=limits, watch=watch)
        pairs = [
            (plan, target, {x: store.rewards(plan.setting(target, x).id, plan.runs) for x in plan.learners})
            for plan in plans
            for target in plan.targets
        ]
        gains = [gain_of(*pair) for pair in pairs]
        pictures = [_picture(*pair, folder) for pair in pairs]
        blocks: list[Block] = [
            Text(_about_the_table(plans)),
            _gains_table(gains, plans[0].matches),
            Heading("Curves"),
            Pictures(pictures, 2),
            Heading("Where the numbers come from"),
            _provenance(plans[0], store, time.perf_counter() - begin),
        ]
        _write_gains(folder / "gains.csv", gains)
    rewards = {(plan.source_place, plan.target_place(target)): of_pair for plan, target, of_pair in pairs}
    paths = write_report(_title(plans), _headline(plans, gains), blocks, folder)
    return TransferResult(gains, rewards, paths, pictures)


def _check(plan: TransferPlan) -> None:
    """Raise ExperimentError for the mistakes in a plan that `transfer` names."""
    if not plan.targets or len(set(plan.targets)) < len(plan.targets):
        raise ExperimentError(
            f"expected every target once, got {', '.join(plan.targets) or 'no targets'}; correct the list"
        )
    if "transfer" in plan.learners and not plan.source:
        raise ExperimentError("expected a source for the transfer learner, got none; name a game that it learns first")
    for game in (plan.source, *plan.targets):
        if not game.isprintable():  # the store of results keeps the path
            raise ExperimentError(f"expected a path without control characters, in UTF-8, got {game!r}; rename it")


def windows(matches: int) -> tuple[stats.Window, stats.Window]:
    """Return two windows: the first tenth of the matches, and all later matches.

    In the paper's series these are matches 1 to 300 and 301 to 3000.
    """
    cut = max(1, matches // 10)
    return (1, cut), (min(cut + 1, matches), matches)


def gain_of(plan: TransferPlan, target: str, rewards: Rewards) -> Gain:
    """Return the gain of transfer in a target game."""
    both = windows(plan.matches)
    others = [x for x in plan.learners if x != "transfer" and "transfer" in rewards]
    early, late = (
        {x: stats.mean_interval(stats.paired(rewards["transfer"], rewards[x], window)) for x in others}
        for window in both
    )
    levels = {x: stats.mean_interval(stats.window_means(matches, both[1])) for x, matches in rewards.items()}
    return Gain(plan.source_place, plan.target_place(target), levels, early, late)


def _picture(plan: TransferPlan, target: str, rewards: Rewards, folder: Path) -> ReportPicture:
    (_, cut), _ = windows(plan.matches)
    shown = averages(rewards, plan.matches)
    extra = {x: stats.mean_curve(matches, min(cut + 1, plan.matches)) for x, matches in rewards.items()}
    source, place = plan.source_place, plan.target_place(target)
    heading = f"{place}, {f'after {source}, ' if source else ''}against {plan.opponent.kind}"
    runs = f"{plan.runs} runs, {stats.with_intervals(plan.runs, '95 % bands')}"
    caption = f"{report.literal(heading)}: cumulative average from match 1, {runs}."
    name = f"{source}.to.{place}" if source else place
    figure = CurvePlan(file_name(*name.split(".")), heading, caption, None, 1, cut + 1, plan.runs)
    return learning_figure(figure, shown, folder, extra)


def averages(rewards: Rewards, matches: int) -> dict[str, stats.Curve]:
    """Return the cumulative average of each learner from match 1, shown without the first hundredth of the matches."""
    (_, cut), _ = windows(matches)
    shown_from = min(max(1, cut // 10), matches)
    return {learner: stats.mean_curve(of_learner, 1, shown_from) for learner, of_learner in rewards.items()}


def _gains_table(gains: Sequence[Gain], matches: int) -> TableBlock:
    """Return a table with a row for each learner in each target. It names the source only if there are several.

    The gains are left out if there is no source.
    """
    (first, cut), (late, last) = windows(matches)
    rows = []
    for gain in gains:
        for learner, level in gain.levels.items():
            differences = (span(part.get(learner), sign=True) for part in (gain.early, gain.late))
            rows.append((report.literal(gain.source), report.literal(gain.target), learner, span(level), *differences))
    header = ("source", "target", "learner", f"matches {late}-{last}", f"gain, {first}-{cut}", f"gain, {late}-{last}")
    skip = int(len({gain.source for gain in gains}) == 1)
    end = 6 if any(gain.source for gain in gains) else 4
    return TableBlock(header[skip:end], [row[skip:end] for row in rows], tuple(range(3 - skip, end - skip)))


def _about_the_table(plans: Sequence[TransferPlan]) -> str:
    runs = f"{plans[0].runs} runs, {stats.with_intervals(plans[0].runs, '95 % t-intervals')}"
    gain = " Gain: transfer minus this learner, computed run by run." if plans[0].source else ""
    return f"Mean reward per match (0 to 100) over {runs}.{gain}"


def _provenance(plan: TransferPlan, store: ResultStore, seconds: float) -> TableBlock:
    totals, opponent, learner = store.totals(), plan.opponent, plan.learner
    numbers = f"learning rate {learner.alpha:g}, discount {learner.gamma:g}, lambda {learner.lam:g}"
    source = f"{plan.source_matches} matches; the learner explores with probability {plan.source_epsilon:g}"
    rows = {
        "settings": f"seed {plan.seed}, {plan.runs} runs of {plan.matches} matches",
        "source": source if plan.source else "none",
        "opponent": f"{opponent.kind}, filler {opponent.filler}, explores with probability {opponent.epsilon:g}",
        "learners": (
            f"initialisation {learner.initialisation}, depth {learner.depth}, {numbers}, exploration with probability "
            f"{learner.epsilon:g}; heuristic of the lookahead {learner.heuristic}"
        ),
        "trials": f"{totals['trials']} with {totals['matches']} matches, in `{store.path.name}`",
        "wall time": f"{seconds:.1f} s",
    }
    return provenance_table(code_version(), rows, store.rules())


def _headline(plans: Sequence[TransferPlan], gains: Sequence[Gain]) -> str:
    """Return a sentence with the results.

    For at most four pairs it contains their differences. For more pairs it contains the numbers of differences that
    are above and below 0 after Holm's correction. Without pairs of transfer and baseline it contains the levels.
    """
    plan, (_, (late, last)) = plans[0], windows(plans[0].matches)
    certainty = stats.with_intervals(plan.runs)
    compared = [gain for gain in gains if "baseline" in gain.late]
    if not compared:
        levels = (
            f"{x} {span(level)} in {report.literal(gain.target)}" for gain in gains for x, level in gain.levels.items()
        )
        return (
            f"Mean reward of matches {late} to {last} against the {plan.opponent.kind} opponent ({plan.runs} runs, "
            f"{certainty}): {'; '.join(levels)}."
        )
    words = [
        f"{span(gain.late['baseline'], sign=True)} from {report.literal(gain.source)} to {report.literal(gain.target)}"
        for gain in compared
    ]
    if len(compared) > 4:
        differences = [gain.late["baseline"] for gain in compared]
        adjusted = stats.holm([stats.interval_p_value(difference, 0.0) for difference in differences])
        sure = [x.mean for x, p in zip(differences, adjusted, strict=True) if p < stats.ALPHA and not x.too_few]
        above, below = sum(mean > 0 for mean in sure), sum(mean < 0 for mean in sure)
        words = [f"above 0 in {above} of {len(compared)} pairs and below in {below}"]
        certainty = "p < 0.05 after Holm's correction over the pairs"
    return (
        f"Transfer minus baseline, mean reward of matches {late} to {last} against the {plan.opponent.kind} "
        f"opponent ({plan.runs} runs, {certainty}): {'; '.join(words)}."
    )


def _write_gains(path: Path, gains: Sequence[Gain]) -> None:
    rows = []
    for gain in gains:
        for name, part in (("level", gain.levels), ("early difference", gain.early), ("late difference", gain.late)):
            rows += [(gain.source, gain.target, name, x, *astuple(interval)) for x, interval in part.items()]
    write_rows(path, ("source", "target", "quantity", "learner", "mean", "low", "high", "runs"), rows)


def _place(game: str, role: int) -> str:
    """Return the title of a game, with the role unless it is the first role. For a path, use the name of the file."""
    name = title(game)
    return name if role == 0 else f"{name}.role{role + 1}"


def _title(plans: Sequence[TransferPlan]) -> str:
    targets = _names(title(target) for plan in plans for target in plan.targets)
    sources = _names(title(plan.source) for plan in plans if plan.source)
    return f"Transfer from {sources} to {targets}" if sources else f"Learning {targets}"


def _names(games: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(map(report.literal, games)))
