"""Any source to any targets: learn one game, then play others with and without what was learned."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import ExperimentError
from ..games import title
from ..learn.transfer import LearnerSettings
from ..play.player import OpponentSettings
from . import stats
from .figures import CurvePlan, Picture, learning_figure, write_rows
from .grid import Grid, Setting
from .report import Block, Heading, Pictures, ReportPaths, Table, Text, machine, peak_memory, span, write_report
from .runner import run_grid, version
from .stats import Interval
from .trials import STORE, TrialStore

FOUR_GAMES = ("tictactoe", "connect3", "othello4", "capturego3")
LEARNERS = ("baseline", "transfer", "lookahead")
SEED = 2007


@dataclass(frozen=True)
class TransferPlan:
    """One source, several targets, one kind of opponent.

    Roles are numbers, in the order of the rulesheet. The source's learner explores with probability `source_epsilon`:
    short, exploring source runs are what the paper's Table 1 implies (readings.md, B&S 8).
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

    def source_setting(self) -> Setting:
        """The source run."""
        learner = replace(self.learner, kind="baseline", epsilon=self.source_epsilon, equivalence=None, control=None)
        name = f"{self.source_place}/{self.opponent.kind}/source"
        return Setting(
            name, self.source, self.source_role, learner, self.opponent, self.runs, self.source_matches, self.seed,
            stage="source", extract=True,
        )  # fmt: skip

    def setting(self, target: str, learner: str) -> Setting:
        """A learner in a target; the name of a transfer learner names its source, too."""
        settings, source = self.learner, None
        if learner == "transfer":
            source = self.source_setting()
        else:
            settings = replace(settings, kind=learner, equivalence=None, control=None)  # type: ignore[arg-type]
        tag = f"transfer-from-{self.source_place}" if source else learner
        return Setting(
            f"{self.target_place(target)}/{self.opponent.kind}/{tag}", target, self.target_role, settings,
            self.opponent, self.runs, self.matches, self.seed, source=source,
        )  # fmt: skip

    @property
    def source_place(self) -> str:
        """The source's name, with its role where that is not the first."""
        return _place(self.source, self.source_role)

    def target_place(self, target: str) -> str:
        """A target's name, in the same way."""
        return _place(target, self.target_role)

    def settings(self) -> Iterator[Setting]:
        """Everything that has to run."""
        for target, learner in product(self.targets, self.learners):
            yield self.setting(target, learner)


def every_pair(**options: Any) -> list[TransferPlan]:
    """Every source to every target of the four games, from both roles to both roles: 64 pairs in 16 plans."""
    return [
        TransferPlan(source, FOUR_GAMES, source_role=source_role, target_role=target_role, **options)
        for source, source_role, target_role in product(FOUR_GAMES, (0, 1), (0, 1))
    ]


@dataclass(frozen=True)
class Gain:
    """One source, one target: levels by learner, and the paired differences transfer - learner, in points."""

    source: str
    target: str
    levels: dict[str, Interval]
    early: dict[str, Interval]
    late: dict[str, Interval]

    def as_json(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


@dataclass(frozen=True)
class TransferResult:
    """What came out, and where the report is."""

    gains: list[Gain]
    report: ReportPaths


def transfer(
    plans: TransferPlan | Sequence[TransferPlan], out: Path | str, *, workers: int = 2, progress: bool = True
) -> TransferResult:
    """Runs what is not yet in `out`/results.db, and writes a report with figures and rows.

    Raises ExperimentError where `out` holds results of other settings, or a game is named twice.
    """
    begin, folder = time.perf_counter(), Path(out)
    plans = [plans] if isinstance(plans, TransferPlan) else list(plans)
    for plan in plans:
        if not plan.targets or len(set(plan.targets)) < len(plan.targets):
            raise ExperimentError(f"expected every target once, got {', '.join(plan.targets) or 'none'}; mend the list")
    with TrialStore(folder / STORE) as store:
        grid = Grid.of(setting for plan in plans for setting in plan.settings())
        run_grid(grid, store, workers=workers, progress=progress)
        gains = [_gain(plan, target, store) for plan in plans for target in plan.targets]
        pictures = [_picture(plan, target, store, folder) for plan in plans for target in plan.targets]
        blocks = _blocks(plans, gains, pictures, store, time.perf_counter() - begin)
        write_rows(folder / "gains.csv", *_gain_rows(gains))
    targets = _names(target for plan in plans for target in plan.targets)
    title = f"What is learned in {_names(plan.source for plan in plans)}, carried to {targets}"
    return TransferResult(gains, write_report(title, _headline(plans, gains), blocks, folder))


def windows(matches: int) -> tuple[stats.Window, stats.Window]:
    """The first tenth of the matches, and the rest: 1 to 300 and 301 to 3000 in the paper's series."""
    cut = max(1, matches // 10)
    return (1, cut), (min(cut + 1, matches), matches)


def _gain(plan: TransferPlan, target: str, store: TrialStore) -> Gain:
    early, late = windows(plan.matches)
    rewards = {x: store.rewards(plan.setting(target, x).id, plan.runs) for x in plan.learners}
    others = [x for x in plan.learners if x != "transfer" and "transfer" in rewards]

    def differences(window: stats.Window) -> dict[str, Interval]:
        return {x: stats.mean_interval(stats.paired(rewards["transfer"], rewards[x], window)) for x in others}

    levels = {x: stats.mean_interval(stats.window_means(one, late)) for x, one in rewards.items()}
    return Gain(plan.source_place, plan.target_place(target), levels, differences(early), differences(late))


def _picture(plan: TransferPlan, target: str, store: TrialStore, folder: Path) -> Picture:
    rewards = {x: store.rewards(plan.setting(target, x).id, plan.runs) for x in plan.learners}
    (_, cut), _ = windows(plan.matches)
    shown_from = min(max(1, cut // 10), plan.matches)
    shown = {x: stats.mean_curve(one, 1, shown_from) for x, one in rewards.items()}
    extra = {x: stats.mean_curve(one, min(cut + 1, plan.matches)) for x, one in rewards.items()}
    source, place = plan.source_place, plan.target_place(target)
    title = f"{place}, after {source}, against {plan.opponent.kind}"
    caption = f"{title}: cumulative average from match 1, {plan.runs} runs with 95 % bands."
    figure = CurvePlan(f"{source}-to-{place}", title, caption, None, 1, cut + 1, plan.runs)
    return learning_figure(figure, shown, folder, extra)


def _blocks(
    plans: Sequence[TransferPlan], gains: Sequence[Gain], pictures: Sequence[Picture], store: TrialStore, seconds: float
) -> list[Block]:
    return [
        Text("Mean reward per match (0 to 100), with 95 % t-intervals over runs; differences are taken run by run."),
        _gains_table(gains, plans[0].matches),
        Heading("Curves"),
        Pictures(list(pictures), 2),
        Heading("Where the numbers come from"),
        _provenance(plans[0], store, seconds),
    ]


def _gains_table(gains: Sequence[Gain], matches: int) -> Table:
    (first, cut), (late, last) = windows(matches)
    others = [x for x in LEARNERS if x != "transfer"]
    spans = (f"{first}-{cut}", f"{late}-{last}")
    over = [f"transfer - {x}, matches {window}" for x in others for window in spans]
    rows = []
    for gain in gains:
        levels = [span(gain.levels[x]) if x in gain.levels else "" for x in LEARNERS]
        parts = [part.get(x) for x in others for part in (gain.early, gain.late)]
        rows.append((gain.source, gain.target, *levels, *(span(part, sign=True) if part else "" for part in parts)))
    header = ("source", "target", *(f"{x}, matches {late}-{last}" for x in LEARNERS), *over)
    return Table(header, rows, tuple(range(2, 9)))


def _provenance(plan: TransferPlan, store: TrialStore, seconds: float) -> Table:
    totals, opponent, learner = store.totals(), plan.opponent, plan.learner
    rows = [
        ("gamelore", version()),
        ("settings", f"seed {plan.seed}, {plan.runs} runs of {plan.matches} matches"),
        ("source", f"{plan.source_matches} matches, the learner explores with probability {plan.source_epsilon:g}"),
        ("opponent", f"{opponent.kind}, filler {opponent.filler}, explores with probability {opponent.epsilon:g}"),
        (
            "learners",
            f"initialised {learner.initialisation}, depth {learner.depth}, learning rate {learner.alpha:g}, discount "
            f"{learner.gamma:g}, lambda {learner.lam:g}, explore with probability {learner.epsilon:g}; lookahead by "
            f"{learner.heuristic}",
        ),
        ("trials", f"{totals['trials']} with {totals['matches']} matches, in `{STORE}`"),
        ("wall time", f"{seconds:.1f} s; peak memory {peak_memory()}"),
        ("machine", machine()),
        ("rules", ", ".join(f"{game} `{rules[:12]}`" for game, rules in store.rules().items())),
    ]
    return Table(("", ""), rows)


def _headline(plans: Sequence[TransferPlan], gains: Sequence[Gain]) -> str:
    """The differences of up to four pairs, else how many of them lie on which side after Holm's correction."""
    plan, (_, (late, last)) = plans[0], windows(plans[0].matches)
    found = [gain for gain in gains if "baseline" in gain.late]
    words = [f"{span(gain.late['baseline'], sign=True)} from {gain.source} to {gain.target}" for gain in found]
    if len(found) > 4:
        above, below = _sides([gain.late["baseline"] for gain in found])
        words = [f"above 0 in {above} of {len(found)} pairs and below in {below}"]
    sure = "95 % intervals" if len(found) <= 4 else "p < 0.05 after Holm's correction over the pairs"
    return (
        f"Transfer minus baseline, mean reward of matches {late} to {last} against the {plan.opponent.kind} "
        f"opponent ({plan.runs} runs, {sure}): {'; '.join(words)}."
    )


def _sides(differences: Sequence[Interval]) -> tuple[int, int]:
    """How many differences lie above 0, and how many below, by p after Holm's correction."""
    adjusted = stats.holm([stats.interval_p_value(one, 0.0) for one in differences])
    sure = [one.mean for one, p in zip(differences, adjusted, strict=True) if p < stats.ALPHA]
    return sum(mean > 0 for mean in sure), sum(mean < 0 for mean in sure)


def _gain_rows(gains: Sequence[Gain]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    header = ("source", "target", "quantity", "learner", "mean", "low", "high", "runs")
    rows: list[tuple[object, ...]] = []
    for gain in gains:
        for name, part in (("level", gain.levels), ("early difference", gain.early), ("late difference", gain.late)):
            rows += [(gain.source, gain.target, name, x, i.mean, i.low, i.high, i.num) for x, i in part.items()]
    return header, rows


def _place(game: str, role: int) -> str:
    """A game, and the role where it is not the first: a path is named by its file."""
    name = title(game)
    return name if role == 0 else f"{name}.role{role + 1}"


def _names(games: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(games))
