"""Experiments on transfer: `transfer` and its result `TransferExperiment`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError, check_count, check_seed, one_of
from ..gdl.limits import Limits
from ..rulesheets import load
from .progress import Progress, displayed
from .rows import save_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..lab.report import ReportPaths
    from ..lab.studies.transfer_study import Gain, TransferPlan

SEED = 2007


@dataclass(frozen=True, eq=False, repr=False)
class TransferExperiment:
    """The results of an experiment on transfer. `print` shows its headline.

    Attributes:
        headline: the result in a sentence.
        gains: for each target its `levels` (learner -> mean reward after the first tenth of the matches), and the
            differences transfer - learner with 95 % intervals, `early` in the first tenth, and `late` after it.
        rewards: (source, target) -> learner -> rewards, float32[runs, matches].
        report: the files of the report; None without a folder.
    """

    headline: str
    gains: Sequence[Gain]
    rewards: Mapping[tuple[str, str], Mapping[str, NDArray[np.float32]]]
    report: ReportPaths | None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each target, quantity and learner, with its mean and the ends of its 95 % interval,
        None for too few runs.
        """
        return [
            {
                "source": gain.source,
                "target": gain.target,
                "quantity": quantity,
                "learner": learner,
                "mean": interval.mean,
                "low": None if interval.too_few else interval.low,
                "high": None if interval.too_few else interval.high,
            }
            for gain in self.gains
            for quantity, part in (("level", gain.levels), ("early gain", gain.early), ("late gain", gain.late))
            for learner, interval in part.items()
        ]

    def save(self, path: str | Path) -> None:
        """Write the rows into a file that ends in .csv or .json."""
        save_rows(path, self.rows)

    def plot(self, target: str | None = None) -> Figure:
        """Return a matplotlib figure: the cumulative averages of all learners in a target, the first if it is None."""
        from ..lab.figures import curves_figure
        from ..lab.studies.transfer_study import averages

        names = [name for _, name in self.rewards]
        name = one_of(target, names, "a target of this experiment") if target else names[0]
        (source, _), rewards = next(item for item in self.rewards.items() if item[0][1] == name)
        runs, matches = next(iter(rewards.values())).shape
        return curves_figure(f"{name}, after {source}", averages(dict(rewards), matches), runs)

    def __repr__(self) -> str:
        return f"<TransferExperiment {', '.join(f'{source} to {target}' for source, target in self.rewards)}>"

    def __str__(self) -> str:
        return self.headline

    def _repr_html_(self) -> str:
        from ..lab.figures import svg_text

        pictures = "".join(svg_text(self.plot(target)) for _, target in self.rewards)
        return f"<p>{escape(self.headline)}</p>{pictures}"


def transfer(
    source: str | Path,
    targets: str | Path | Sequence[str | Path],
    *,
    opponent: str = "egreedy:filler=hashed",
    source_role: str | None = None,
    target_role: str | None = None,
    source_matches: int = 100,
    source_epsilon: float = 1.0,
    initialisation: Literal["lazy", "siblings", "eager"] = "eager",
    heuristic: Literal["minimax", "maxmax", "avgmax"] = "minimax",
    runs: int = 10,
    matches: int = 3000,
    seed: int = SEED,
    workers: int = 2,
    cluster: str | None = None,
    out: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> TransferExperiment:
    """Learn a game, then other games with and without its knowledge, and compare (Banerjee & Stone 2007).

    Args:
        source: the name or the path of the game that is learned first.
        targets: the game, or the games, that are learned after it.
        opponent: "egreedy", "random" or "weak", with options.
        source_role: the learner's role in the source; the first one if it is None.
        target_role: the same in the targets.
        source_matches: number of matches in the source.
        source_epsilon: probability of a random move of the learner in the source.
        initialisation: when afterstates get their initial values, see `gamelore learn --help`.
        heuristic: the search of the learner lookahead, with which transfer is compared, too.
        runs: number of independent runs.
        matches: number of matches of each run in a target.
        seed: seed of all random numbers.
        workers: number of processes.
        cluster: in place of processes of this machine, the cores of a Ray cluster: the address HOST:PORT of its head,
            or "ray" for the one that RAY_ADDRESS names, or else a new one of this machine with `workers` cores.
        out: a folder for the report and all results. The same call again plays only what is missing.
        progress: None shows progress on a terminal and in a notebook, False does not; or a function (stage, done,
            total).

    Returns:
        The rewards of all learners, and the gains of transfer with intervals over the runs.

    Raises:
        GameloreError: a game, a role or an option is unknown.
        ExperimentError: the folder has results of other games or settings, or more runs, whose report would be
            replaced; a target is given twice; or a machine of the cluster has another version of gamelore.
    """
    from ..lab.studies.transfer_study import TransferPlan
    from ..lab.studies.transfer_study import transfer as run
    from ..learning.td.initial_values import LearnerSettings
    from ..matches.opponents import opponent_settings

    check_seed(seed)
    for name, number in (
        ("source_matches", source_matches),
        ("runs", runs),
        ("matches", matches),
        ("workers", workers),
    ):
        check_count(name, number)
    several = [targets] if isinstance(targets, str | Path) else list(targets)
    plan = TransferPlan(
        str(source),
        tuple(map(str, several)),
        opponent_settings(opponent),
        LearnerSettings("transfer", heuristic, initialisation),
        source_matches=source_matches,
        source_epsilon=source_epsilon,
        runs=runs,
        matches=matches,
        seed=seed,
    )
    plan = with_roles(plan, source_role, target_role)
    with TemporaryDirectory() as folder, displayed(progress) as tell:
        result = run(plan, Path(out or folder), workers=workers, cluster=cluster, progress=tell)
    report = None if out is None else result.report
    return TransferExperiment(result.report.headline, tuple(result.gains), result.rewards, report)


def with_roles(
    plan: TransferPlan, source_role: str | None, target_role: str | None, limits: Limits | None = None
) -> TransferPlan:
    """Return the plan with roles as numbers. Load all games, so that errors occur before the first match.

    Raise GameloreError if a game does not have its role, or the targets have it in different places.
    """
    numbers = {_number(target, target_role, limits) for target in plan.targets}
    if len(numbers) > 1:
        raise GameloreError(
            f"expected the role {target_role} to have the same number in all targets, got different numbers; run each "
            "target alone"
        )
    source = _number(plan.source, source_role, limits) if plan.source else 0
    return replace(plan, source_role=source, target_role=min(numbers, default=0))


def _number(source: str, role: str | None, limits: Limits | None) -> int:
    """Return the index of a role in a game; 0 if it is None."""
    game = load(source, limits=limits)
    return game.roles.index(one_of(role, game.roles, f"a role of {game.name}")) if role else 0
