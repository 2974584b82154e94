"""One reading's results, as the pictures and tables look at them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import stats
from ..endpoints import Evidence, Finding
from ..stats import Interval
from .plan import CONTROLS, Plan

EARLY, LATE, WHOLE, LAST = (1, 300), (301, 3000), (1, 3000), (2701, 3000)
CONTROL_NAMES = {
    "baseline": "nothing (baseline)",
    "terminal": "terminal check only",
    "features": "feature values, no terminal check",
    "shuffled": "shuffled feature values",
    "printed": "Table 1's printed values",
    "from-random": "values learned against Random",
    "from-weak": "values learned against Weak",
    "transfer": "values learned against ε-greedy (transfer)",
    "lookahead": "minimax (lookahead)",
}
CONTROLLED = [*((kind, f"transfer~{kind}") for kind in CONTROLS), ("transfer", "transfer"), ("lookahead", "lookahead")]
"""(name, last part of the setting's id), from the least to the most that a learner brings along."""


@dataclass(frozen=True)
class Study:
    """One reading: `evidence` are the runs that draw the figures, `findings` judge the claims (perhaps by others)."""

    plan: Plan
    evidence: Evidence
    findings: list[Finding]
    folder: Path
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.plan.reading.name

    def rewards(self, game: str, opponent: str, learner: str) -> NDArray[np.float32]:
        """float32[runs, matches]."""
        return self.evidence.rewards(game, opponent, learner)

    def window(self, window: stats.Window) -> stats.Window:
        """The window of a series of 3000 matches, in one as long as this one's."""
        return stats.scaled(window, self.plan.matches)

    def matches(self, window: stats.Window) -> str:
        """Which matches these are here, in words."""
        return "matches {}-{}".format(*self.window(window))

    def level(self, game: str, opponent: str, learner: str, window: stats.Window = LATE) -> Interval:
        """Mean reward per match."""
        means = stats.window_means(self.rewards(game, opponent, learner), self.window(window))
        return stats.mean_interval(means)

    def difference(self, game: str, opponent: str, left: str, right: str, window: stats.Window = LATE) -> Interval:
        """Paired difference of mean reward per match, left - right."""
        a, b = (self.rewards(game, opponent, learner) for learner in (left, right))
        return stats.mean_interval(stats.paired(a, b, self.window(window)))

    def feature(self, opponent: str, letter: str) -> Interval:
        """A feature's value over the runs that met it."""
        return stats.mean_interval(self.evidence.feature(opponent, letter))
