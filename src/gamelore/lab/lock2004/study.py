"""The results of one part, as the tables, pictures and claims look at them: numbers by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from .. import stats
from ..learned import LearnedPair
from ..stats import Array, Interval
from .plan import DEFAULT, PAPER, RANDOM, Experiment, Plan
from .printed import COLUMNS, ROWS, TABLE_1, Column
from .runs import Result

Results: TypeAlias = Mapping[str, Sequence[Result]]
"""Experiment -> the results of its runs."""


@dataclass(frozen=True)
class Compared:
    """A cell of Table 1 against the one above it: the difference with its interval, p, and p after Holm."""

    game: str
    row: str
    column: Column
    difference: Interval
    p: float
    adjusted: float

    @property
    def improved(self) -> bool:
        """Whether it is statistically improved."""
        return self.adjusted < stats.ALPHA and self.difference.mean > 0

    @property
    def worse(self) -> bool:
        return self.adjusted < stats.ALPHA and self.difference.mean < 0


@dataclass(frozen=True)
class Study:
    """Tables 1 and 2 of one part, "core" or "verdicts", and what else its runs have seen."""

    plan: Plan
    part: str
    results: Results

    @property
    def games(self) -> tuple[str, ...]:
        return self.plan.games

    def learned(self, game: str) -> Sequence[Result]:
        """The results of the learner's runs."""
        return self.results[f"{self.part}/{game}/learner"]

    def samples(self, game: str, row: str, column: Column) -> Array:
        """A cell of Table 1, by run (of the baseline by block), in per cent."""
        kind, test = ("baseline", RANDOM) if row == "baseline" else ("learner", row)
        found = self.results[f"{self.part}/{game}/{kind}"]
        return per_cent([result["scores"][test][column.opponent] for result in found], column.what)

    def level(self, game: str, row: str, column: Column) -> Interval:
        return stats.mean_interval(self.samples(game, row, column))

    def over(self, game: str, row: str, column: Column) -> tuple[Interval, float]:
        """A cell minus the one above it, by Welch's test."""
        above = ROWS[ROWS.index(row) - 1]
        return stats.welch(self.samples(game, row, column), self.samples(game, above, column))

    @cached_property
    def compared(self) -> list[Compared]:
        """Every cell against the one above; all of them, of both games, are one family for Holm's correction."""
        cells = [(game, row, column) for game in self.games for _, row in pairwise(ROWS) for column in COLUMNS]
        found = [self.over(*cell) for cell in cells]
        adjusted = stats.holm([p for _, p in found])
        return [
            Compared(*cell, difference, p, float(corrected))
            for cell, (difference, p), corrected in zip(cells, found, adjusted, strict=True)
        ]

    def gain(self, game: str, opponent: str, row: str = "version 1") -> Array:
        """Reliability against an opponent minus that against the random player, by run."""
        one, other = (self.samples(game, row, Column(name, "reliability")) for name in (opponent, "random"))
        return one - other

    def count(self, game: str, what: str) -> Array:
        """A count of each run: "sequences", "twice", "origins" or "pairs"."""
        return np.array([result[what] for result in self.learned(game)], np.float64)

    def classes(self, game: str, formula: str = PAPER.weighting) -> Array:
        """float64[runs, classes]: pairs in each weight class."""
        return np.array([result["classes"][formula] for result in self.learned(game)], np.float64)

    def faster(self, game: str) -> Array:
        """By how many per cent version 2 decides faster than version 1, by timed run."""
        times = [result["microseconds"] for result in self.results[f"speed/{game}"]]
        return np.array([100 * (1 - one["version 2"] / one["version 1"]) for one in times])

    def shown(self, game: str, strategy: str, what: str = "strong") -> Array:
        """How many pairs show a strategy, by run: "strong" ones, or "num" for any."""
        return np.array([result["strategies"][strategy][what] for result in self.learned(game)], np.float64)

    def best_shown(self, game: str, strategy: str) -> LearnedPair | None:
        """The best pair of all runs that shows a strategy."""
        found = [result["strategies"][strategy]["best"] for result in self.learned(game)]
        pairs = [LearnedPair.from_json(one) for one in found if one]
        return max(pairs, key=lambda one: (one.weight, one.comments), default=None)

    def best(self, game: str, num: int) -> list[LearnedPair]:
        """The best pairs of all runs, each once."""
        pairs: dict[tuple[str, frozenset[str]], LearnedPair] = {}
        for result in self.learned(game):
            for found in result["best"]:
                one = LearnedPair.from_json(found)
                key = one.role, one.context
                pairs[key] = max(pairs.get(key, one), one, key=_rank)
        return sorted(pairs.values(), key=_rank, reverse=True)[:num]

    def advice(self, game: str) -> dict[str, Array]:
        """Source -> float64[runs, 3]: states, moves without regret, the same expected of a random move."""
        found = [result["advice"] for result in self.learned(game)]
        return {source: np.array([one[source] for one in found], np.float64) for source in found[0]}


def _rank(pair: LearnedPair) -> tuple[float, float]:
    return pair.weight, pair.comments


def per_cent(scores: Sequence[Sequence[int]], what: str) -> Array:
    """Reliability or power of [matches, wins, draws]."""
    matches, wins, draws = np.array(scores, np.float64).T
    return np.asarray(100 * (wins + draws * (what == "reliability")) / matches)


@dataclass(frozen=True)
class Tried:
    """A variant against the perfect player: reliability, and its paired difference from the default."""

    name: str
    reliability: Interval
    difference: Interval | None


def tried(experiments: Sequence[Experiment], results: Results, game: str) -> list[Tried]:
    """The variants of a game, in the order of the plan."""
    samples = {
        test.name: per_cent([one["scores"][test.name]["perfect"] for one in results[experiment.id]], "reliability")
        for experiment in experiments
        if experiment.sheet == game
        for test in experiment.tests
    }
    default = samples[DEFAULT]
    return [
        Tried(
            name,
            stats.mean_interval(found),
            None if name == DEFAULT else stats.mean_interval(found - default),
        )
        for name, found in samples.items()
    ]


@dataclass(frozen=True)
class Raised:
    """Reliability in a game that the authors never saw: the random player's, SeqPlayer's, and the difference."""

    game: str
    test: str
    opponent: str
    baseline: Interval
    reliability: Interval
    difference: Interval


def raised(experiments: Sequence[Experiment], results: Results) -> list[Raised]:
    """Every test of the learners against each of its opponents, beside the baseline of the same game."""
    found = []
    for experiment in (one for one in experiments if one.learner is not None):
        baseline = results[experiment.id.replace("/learner", "/baseline")]
        for test in experiment.tests:
            for opponent in test.opponents:
                ours = [one["scores"][test.name][opponent] for one in results[experiment.id]]
                random = [one["scores"][RANDOM][opponent] for one in baseline]
                samples, before = per_cent(ours, "reliability"), per_cent(random, "reliability")
                levels = stats.mean_interval(before), stats.mean_interval(samples)
                found.append(Raised(experiment.game, test.name, opponent, *levels, stats.welch(samples, before)[0]))
    return found


def printed_interval(mean: float, deviation: float, num: int) -> tuple[float, float]:
    """The paper's own 95 % interval of a mean, from its standard deviation over so many samples."""
    from scipy import stats as scipy_stats

    half = float(scipy_stats.t.ppf((1 + stats.LEVEL) / 2, num - 1)) * deviation / num**0.5
    return mean - half, mean + half


def printed_cell(game: str, row: str, column: Column) -> str:
    """`66.0 (21.0)`, bold where the paper has it so."""
    cell = TABLE_1[game][row][column]
    text = f"{cell.mean:.1f} ({cell.deviation:.1f})"
    return f"**{text}**" if cell.bold else text
