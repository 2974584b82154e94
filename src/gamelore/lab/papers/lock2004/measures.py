"""Measures of Lock & Epstein 2004: numbers computed from the results of runs, and the claims about these numbers.

The claims are the entries of claims.toml and the cells of the paper's tables. A cell claims that the true mean lies in
the paper's 95 % interval. This interval is computed from the printed mean and the printed standard deviation. The
standard deviation is taken over ten runs, or for baselines over 20 blocks of 50 matches. A bold cell of Table 1 also
claims an improvement over the row above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, product, starmap
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import stats
from ...claims import Claim, ClaimFinding, Samples, judge, read_claims
from ...sequence_text import LearnedPair
from ...stats import Array, Interval
from . import plan as paper
from .plan import Column, Experiment, Plan
from .runs import RunResult

Results: TypeAlias = Mapping[str, Sequence[RunResult]]
"""Experiment id -> results of its runs."""


@dataclass(frozen=True)
class Compared:
    """A comparison of a cell of Table 1 with the cell above it.

    difference  the cell minus the cell above it, in points, with its interval
    p           the p-value
    adjusted    the p-value after Holm's correction
    """

    game: str
    row: str
    column: Column
    difference: Interval
    p: float
    adjusted: float

    @property
    def improved(self) -> bool:
        """Whether the cell is a statistically significant improvement over the cell above it."""
        return self.adjusted < stats.ALPHA and self.difference.mean > 0

    @property
    def worse(self) -> bool:
        return self.adjusted < stats.ALPHA and self.difference.mean < 0


@dataclass(frozen=True)
class Study:
    """The results of all runs, and the numbers of the part "core" or "verdicts" of one reading computed from them."""

    plan: Plan
    part: str
    results: Results

    @property
    def games(self) -> tuple[str, ...]:
        return self.plan.games

    def of(self, game: str, kind: str) -> Sequence[RunResult]:
        """Return the results of all runs of the "learner" or the "baseline" of a game."""
        return self.results[f"{self.plan.reading.prefix}{self.part}/{game}/{kind}"]

    def learned(self, game: str) -> Sequence[RunResult]:
        """Return the results of all runs of the learner of a game."""
        return self.of(game, "learner")

    def samples(self, game: str, row: str, opponent: str, what: str) -> Array:
        """Return the values of a cell of Table 1 in per cent: one per run, or for the baseline one per block."""
        kind, test = ("baseline", paper.RANDOM) if row == "baseline" else ("learner", row)
        results = self.of(game, kind)
        return per_cent([result["scores"][test][opponent] for result in results], what)

    def cells_within(self, game: str, row: str) -> int:
        """Return how many cells of a row of Table 1 lie within the printed standard deviation."""
        printed = paper.TABLE_1[game][row]
        return sum(within_deviation(self.level(game, row, column).mean, cell) for column, cell in printed.items())

    def level(self, game: str, row: str, column: Column) -> Interval:
        return stats.mean_interval(self.samples(game, row, *column))

    def over(self, game: str, row: str, opponent: str, what: str) -> tuple[Interval, float]:
        """Return a cell of Table 1 minus the cell above it, with its interval, and the p-value of Welch's test."""
        above = paper.ROWS[paper.ROWS.index(row) - 1]
        return stats.welch(self.samples(game, row, opponent, what), self.samples(game, above, opponent, what))

    @cached_property
    def compared(self) -> list[Compared]:
        """The comparison of every cell with the cell above it. Holm's correction is made over both games together."""
        cells: list[tuple[str, str, Column]] = list(product(self.games, paper.ROWS[1:], paper.COLUMNS))
        tests = [self.over(game, row, *column) for game, row, column in cells]
        adjusted = stats.holm([p for _, p in tests]).tolist()
        return [Compared(*cell, *test, corrected) for cell, test, corrected in zip(cells, tests, adjusted, strict=True)]

    def contrast(self, game: str) -> tuple[Interval, float]:
        """Return the difference of two gains of version 1 over the baseline, with its interval, and its p-value.

        It is the gain in matches against the perfect player minus the gain in matches against the random player.
        """

        def gain(row: str) -> Array:
            perfect, random = (self.samples(game, row, name, "reliability") for name in ("perfect", "random"))
            return perfect - random

        return stats.welch(gain("version 1"), gain("baseline"))

    def count(self, game: str, what: str) -> Array:
        """Return a count for each run: "sequences", "twice", "origins", "pairs" or "strong pairs".

        Strong pairs are pairs with a weight of at least .55. runs.py explains the other counts.
        """
        if what == "strong pairs":
            return np.asarray(self.classes(game).sum(axis=1))
        return np.array([result[what] for result in self.learned(game)], np.float64)

    def classes(self, game: str, formula: str = paper.PAPER.weighting) -> Array:
        """Return the number of pairs in each weight class under a formula for weights, float64[runs, classes]."""
        return np.array([result["classes"][formula] for result in self.learned(game)], np.float64)

    def class_size(self, game: str, number: int) -> Array:
        return self.classes(game)[:, number]

    def ahead(self, game: str, left: list[int], right: list[int]) -> Array:
        """Return for each run the number of pairs in the weight classes `left` minus the number in `right`."""
        sizes = self.classes(game)
        return np.asarray(sizes[:, left].sum(axis=1) - sizes[:, right].sum(axis=1))

    def times(self, game: str) -> list[dict[str, float]]:
        """Return for each timed run the median time of a decision by each version, in microseconds."""
        return [result["microseconds"] for result in self.results[f"{self.plan.reading.prefix}speed/{game}"]]

    def faster(self, game: str) -> Array:
        """Return for each timed run the time that version 2 saves, in per cent of the time of version 1."""
        times = self.times(game)
        return np.array([100 * (1 - median["version 2"] / median["version 1"]) for median in times])

    def shown(self, game: str, strategy: str, what: str = "strong") -> Array:
        """Return for each run the number of pairs that show a strategy.

        With "strong", only pairs with a weight of at least `runs.STRONG` count. With "num", all pairs count.
        """
        return np.array([result["strategies"][strategy][what] for result in self.learned(game)], np.float64)

    def strong(self, game: str, strategy: str) -> NDArray[np.bool_]:
        """Return for each run whether a pair with a weight of at least `runs.STRONG` shows a strategy."""
        return self.shown(game, strategy) > 0

    def best_shown(self, game: str, strategy: str) -> LearnedPair | None:
        """Return the best pair of all runs that shows a strategy; None if no pair shows it."""
        shown = [result["strategies"][strategy]["best"] for result in self.learned(game)]
        return max((LearnedPair.from_json(pair) for pair in shown if pair), key=_rank, default=None)

    def best(self, game: str, num: int) -> list[LearnedPair]:
        """Return the `num` best pairs of all runs, at most one for each role and context."""
        pairs = [LearnedPair.from_json(pair) for result in self.learned(game) for pair in result["best"]]
        best: dict[tuple[str, frozenset[str]], LearnedPair] = {}
        for pair in sorted(pairs, key=_rank, reverse=True):
            best.setdefault((pair.role, pair.context), pair)
        return list(best.values())[:num]

    def advice(self, game: str) -> dict[str, Array]:
        """Return the tallies of each source of advice, float64[runs, 3].

        The columns are the number of states with advice, the number of advised moves that lose nothing, and the
        expected number of random moves that lose nothing in these states.
        """
        results = [result["advice"] for result in self.learned(game)]
        return {source: np.array([advice[source] for advice in results], np.float64) for source in results[0]}


def _rank(pair: LearnedPair) -> tuple[float, float]:
    return pair.weight, pair.comments


def per_cent(scores: Sequence[Sequence[int]], what: str) -> Array:
    """Return reliability or power in per cent, computed from rows [matches, wins, draws]."""
    matches, wins, draws = np.array(scores, np.float64).T
    return np.asarray(100 * (wins + draws * (what == "reliability")) / matches)


@dataclass(frozen=True)
class Tried:
    """The result of a variant against the perfect player.

    reliability  the reliability of the variant, in per cent
    difference   the paired difference from the default variant; None for the default variant itself
    """

    name: str
    reliability: Interval
    difference: Interval | None


def tried(experiments: Sequence[Experiment], results: Results, game: str) -> list[Tried]:
    """Return the results of all variants of a game, in the order of the plan."""
    samples = {
        test.name: per_cent(
            [result["scores"][test.name]["perfect"] for result in results[experiment.id]], "reliability"
        )
        for experiment in experiments
        if experiment.sheet == game
        for test in experiment.tests
    }
    level, default = stats.mean_interval, samples[paper.DEFAULT]
    return [Tried(x, level(s), None if x == paper.DEFAULT else level(s - default)) for x, s in samples.items()]


def within_deviation(mean: float, cell: paper.Cell) -> bool:
    """Return whether a mean lies within one printed standard deviation of the printed mean."""
    return abs(mean - cell.mean) <= cell.deviation


FARTHEST = 3.0
"""Largest distance of a cell that `distance` returns. So a few cells far off do not hide the others."""


def distance(mean: float, cell: paper.Cell) -> float:
    """Return the distance of a mean from the printed mean in printed standard deviations, at most FARTHEST."""
    return min(abs(mean - cell.mean) / cell.deviation, FARTHEST)


@dataclass(frozen=True)
class ArmResult:
    """The result of an arm in one game.

    distance   sum of the distances of all cells of both versions
    cells      number of cells of Table 1 within the printed standard deviation, of version 1 and of version 2
    perfect    reliability of version 1 and of version 2 against the perfect player, in per cent
    power      power of version 1 and of version 2 against the random player, in per cent
    sequences  number of sequences in SeqTable
    pairs      number of pairs with a weight of at least .55
    """

    name: str
    distance: float
    cells: tuple[int, int]
    perfect: tuple[Interval, Interval]
    power: tuple[Interval, Interval]
    sequences: Interval
    pairs: Interval


def arm_results(experiments: Sequence[Experiment], results: Results, game: str) -> list[ArmResult]:
    """Return the results of the arms in one game, in the order of the plan."""
    made = {
        test.name: (test, results[experiment.id])
        for experiment in experiments
        if experiment.sheet == game
        for test in experiment.tests
    }
    return [
        _arm_result(arm.name, game, *(made[paper.arm_test(arm.name, version)] for version in (1, 2)))
        for arm in paper.arms(game)
    ]


def _arm_result(name: str, game: str, *made: tuple[paper.Test, Sequence[RunResult]]) -> ArmResult:
    def samples(version: int, column: Column) -> Array:
        test, runs = made[version - 1]
        return per_cent([result["scores"][test.name][column.opponent] for result in runs], column.what)

    def interval(version: int, *column: str) -> Interval:
        return stats.mean_interval(samples(version, Column(*column)))

    def compared(version: int) -> list[tuple[float, paper.Cell]]:
        printed = paper.TABLE_1[game][f"version {version}"]
        return [(float(samples(version, column).mean()), cell) for column, cell in printed.items()]

    def cells(version: int) -> int:
        return sum(starmap(within_deviation, compared(version)))

    test, runs = made[0]
    return ArmResult(
        name,
        sum(starmap(distance, compared(1) + compared(2))),
        (cells(1), cells(2)),
        (interval(1, "perfect", "reliability"), interval(2, "perfect", "reliability")),
        (interval(1, "random", "power"), interval(2, "random", "power")),
        stats.mean_interval(np.array([result["sequences"] for result in runs], np.float64)),
        stats.mean_interval(np.array([sum(result["classes"][test.weighting]) for result in runs], np.float64)),
    )


@dataclass(frozen=True)
class Raised:
    """Reliability in a game that is not in the paper, in per cent.

    baseline     reliability of the random player
    reliability  reliability of SeqPlayer
    difference   SeqPlayer minus random player
    """

    game: str
    test: str
    opponent: str
    baseline: Interval
    reliability: Interval
    difference: Interval


def raised(experiments: Sequence[Experiment], results: Results) -> list[Raised]:
    """Compare the reliability in every test, against each opponent, with that of the baseline of the same game."""
    rows = []
    for experiment in (x for x in experiments if x.learner is not None):
        baseline = results[experiment.id.replace("/learner", "/baseline")]
        for test, opponent in [(x, opponent) for x in experiment.tests for opponent in x.opponents]:
            ours, before = (
                per_cent([result["scores"][name][opponent] for result in runs], "reliability")
                for name, runs in ((test.name, results[experiment.id]), (paper.RANDOM, baseline))
            )
            levels = stats.mean_interval(before), stats.mean_interval(ours)
            rows.append(Raised(experiment.game, test.name, opponent, *levels, stats.welch(ours, before)[0]))
    return rows


# ---- the claims ----

MARGIN = 2.0
"""Smallest change that matters, in points. It is one match of a tournament of 50 matches."""
PATH = Path(__file__).with_name("claims.toml")
_SHORT = {"losetictactoe": "lttt", "fivemensmorris": "morris"}
_BOLD = "Statistically improved performance over the previous experiment is highlighted in bold"


@cache
def claims() -> tuple[Claim, ...]:
    """Return all claims: those of claims.toml, and those of the cells of Tables 1 and 2."""
    return (*read_claims(PATH).values(), *_improvements(), *_levels(), *_sizes())


def _improvements() -> Iterator[Claim]:
    for game, (above, row), column in product(paper.GAMES, pairwise(paper.ROWS), paper.COLUMNS):
        cell = paper.TABLE_1[game][row][column]
        if cell.bold:
            name, of = _cell(game, row, column)
            change = f"{cell.mean - paper.TABLE_1[game][above][column].mean:+.1f}"
            yield Claim(f"{name}-rises", "Table 1", _BOLD, "over", of, "above", (0.0,), margin=MARGIN, paper=change)


def _levels() -> Iterator[Claim]:
    for game, row, column in product(paper.GAMES, paper.ROWS, paper.COLUMNS):
        cell = paper.TABLE_1[game][row][column]
        words = f"{paper.TITLES[game]}, {row}, {column.opponent}, {column.what}: {cell.mean:.2f}"
        name, of = _cell(game, row, column)
        interval = printed_interval(cell.mean, cell.deviation, paper.BLOCKS if row == "baseline" else paper.RUNS)
        yield Claim(f"{name}-level", "Table 1", words, "level", of, "within", interval, paper=f"{cell.mean:.1f}")


def _sizes() -> Iterator[Claim]:
    for game in paper.GAMES:
        for number, cell in enumerate(paper.TABLE_2[game]):
            words = f"{paper.TITLES[game]}, class from {paper.CLASSES[number]:g}: {cell.mean:.2f}"
            name, of = f"{_SHORT[game]}.class{number + 1}-size", {"game": game, "number": number}
            interval = printed_interval(cell.mean, cell.deviation, paper.RUNS)
            yield Claim(name, "Table 2", words, "class_size", of, "within", interval, paper=f"{cell.mean:g}")


def _cell(game: str, row: str, column: Column) -> tuple[str, dict[str, Any]]:
    """Return the name of a cell of Table 1, and the parameters of the measures for this cell."""
    name = f"{_SHORT[game]}.{row.replace(' ', '')}.{column.opponent}-{column.what}"
    return name, {"game": game, "row": row, "opponent": column.opponent, "what": column.what}


def printed_interval(mean: float, deviation: float, num: int) -> tuple[float, float]:
    """Return the 95 % interval of a printed mean. It is computed from the standard deviation over `num` samples."""
    half = stats.t_quantile(num - 1) * deviation / num**0.5
    return mean - half, mean + half


MEASURES: dict[str, Callable[..., Samples]] = {
    "over": Study.over, "level": Study.samples, "contrast": Study.contrast, "ahead": Study.ahead,
    "class_size": Study.class_size, "count": Study.count, "faster": Study.faster, "strategy": Study.strong,
}  # fmt: skip
"""Name of a measure in claims.toml -> function."""


def judge_claims(study: Study) -> list[ClaimFinding]:
    """Judge all claims about the games of the study."""
    return judge([claim for claim in claims() if claim.of["game"] in study.games], MEASURES, study, set())
