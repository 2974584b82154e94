"""Measures of Banerjee & Stone 2007: numbers computed from the trials, and numbers counted in the games.

Every `measure` of claims.toml is a function of this module. `Evidence` records the settings that a measure reads, so
that every number can be traced to its trials.

Claims about the games and their features need no trials. Their features are found in all reachable positions of a game.
In larger games, they are found in the positions of `NUM_MATCHES` random matches with the fixed seed `STRUCTURE_SEED`.
learning/td/discovery.py defines which games are larger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ExperimentError
from ....learning.store.features import FeatureValues
from ....learning.td.discovery import reachable_features
from ....matches.lockstep import run_lockstep
from ....matches.opponents import Opponent, OpponentSettings
from ....players.player import Finished
from ....players.position_graph import PositionGraph
from ....players.random_streams import stream
from ....rulesheets import load
from ... import stats
from ...claims import Claim, ClaimFinding, Samples, judge
from ...experiment import Batch, Lane, SeriesSetting, play_lanes
from ...feature_trees import LEARNER, OPPONENT, Node, feature_tree
from ...results import ResultStore, Trial
from ...stats import Array, Interval
from .plan import CONTROLS, LATE, Claims, Plan, PrintedTable


@dataclass
class Evidence:
    """The trials of one reading. The ids of their settings are "{prefix}/{game}/{opponent}/{learner}".

    runs     number of runs that are used of each setting, the first of them; None for all stored runs. A mapping has
             a number for each id. A comparison of two settings with different numbers of runs uses the smaller number
    costs    game -> times of the transfer learner and of the baseline
    touched  ids of the settings that were read
    """

    store: ResultStore
    prefix: str
    source: str
    table: PrintedTable
    runs: int | Mapping[str, int] | None = None
    costs: dict[str, Cost] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def rewards(self, game: str, opponent: str, learner: str) -> NDArray[np.float32]:
        """Return the rewards of a setting, float32[runs, matches]."""
        return self.store.rewards(*self._runs_of(f"{game}/{opponent}/{learner}"))

    def learned(self, opponent: str) -> list[FeatureValues]:
        """Return the feature values that each run of the source learned against this opponent."""
        return self.store.values(*self._runs_of(f"{self.source}/{opponent}/source"))

    def ceiling(self, game: str, opponent: str) -> Array:
        """Return the exact expected reward of best play in each run of the oracle, with its random moves."""
        results = self.store.results(*self._runs_of(f"{game}/{opponent}/oracle"))
        return np.array([result["expected"] for result in results])

    def feature(self, opponent: str, letter: str) -> Array:
        """Return the value of a feature in each run that met the feature."""
        text = self.table.features[letter]
        return np.array([values[text][0] for values in self.learned(opponent) if text in values])

    def _runs_of(self, tail: str) -> tuple[str, int | None]:
        """Return the id of a setting and the number of its runs that are used. Note that the setting was read."""
        name = f"{self.prefix}/{tail}"
        self.touched.add(name)
        return name, self.runs[name] if isinstance(self.runs, Mapping) else self.runs


def judge_claims(claims: Iterable[Claim], evidence: Evidence) -> list[ClaimFinding]:
    """Measure and judge every claim."""
    return judge(claims, MEASURES, evidence, evidence.touched)


# ---- rewards ----


def difference(evidence: Evidence, game: str, opponent: str, left: str, right: str, window: Sequence[int]) -> Array:
    """Return the paired difference of mean reward per match, left - right."""
    a, b = (evidence.rewards(game, opponent, learner) for learner in (left, right))
    return stats.paired(a, b, _window(window, a))


def level(evidence: Evidence, game: str, opponent: str, learner: str, window: Sequence[int]) -> Array:
    """Return the mean reward per match in the window, by run: the last value of a cumulative average over it."""
    rewards = evidence.rewards(game, opponent, learner)
    return stats.window_means(rewards, _window(window, rewards))


def below_ceiling(evidence: Evidence, game: str, opponent: str, learner: str, window: Sequence[int]) -> Array:
    """Return by run how far the mean reward per match in the window is below the ceiling.

    The ceiling is the exact expected reward of best play against the opponent of the run.
    """
    return evidence.ceiling(game, opponent) - level(evidence, game, opponent, learner, window)


def reaches(
    evidence: Evidence, game: str, opponent: str, learner: str, level: float, trailing: int, before: int
) -> NDArray[np.bool_]:
    """Return by run whether the mean of the last `trailing` matches reaches `level` before match `before`."""
    reached = stats.matches_until(evidence.rewards(game, opponent, learner), level, trailing)
    return np.asarray(reached < before)


def slope(evidence: Evidence, game: str, opponent: str, learner: str, window: Sequence[int]) -> Array:
    """Return the slope of the reward over the window, in points per 1000 matches, by run."""
    rewards = evidence.rewards(game, opponent, learner)
    return stats.slopes(rewards, _window(window, rewards))


def gap(evidence: Evidence, learner: str, left: str, right: str, window: Sequence[int]) -> Array:
    """Return the paired difference of a learner's mean reward per match in two situations, left - right.

    A situation is "game/opponent".
    """
    (game, opponent), (other_game, other_opponent) = left.split("/"), right.split("/")
    a, b = evidence.rewards(game, opponent, learner), evidence.rewards(other_game, other_opponent, learner)
    return stats.paired(a, b, _window(window, a))


def _window(window: Sequence[int], rewards: NDArray[np.float32]) -> stats.Window:
    """Scale a window of a series of 3000 matches to the length of the series with these rewards."""
    return stats.scaled((window[0], window[1]), rewards.shape[1])


# ---- Table 1 ----


def table1_value(evidence: Evidence, feature: str, opponent: str) -> Array:
    """Return the value that each source run has learned for a feature."""
    return evidence.feature(opponent, feature)


def table1_difference(evidence: Evidence, feature: str, left: str, right: str) -> Array:
    """Return the value of a feature learned against opponent `left` minus the value learned against opponent `right`.

    Only pairs of runs in which both met the feature are used.
    """
    text = evidence.table.features[feature]
    pairs = zip(evidence.learned(left), evidence.learned(right), strict=False)
    return np.array([a[text][0] - b[text][0] for a, b in pairs if text in a and text in b])


def table1_rmse(evidence: Evidence, opponent: str) -> Interval:
    """Return the root mean square distance of the mean values from the printed column, with a jackknife interval."""
    return column_rmse(evidence.learned(opponent), evidence.table.printed(opponent))


def column_rmse(runs: Sequence[FeatureValues], printed: Mapping[str, float]) -> Interval:
    """Return the distance of `table1_rmse` for these runs and these printed values (feature text -> value).

    Features that no run met are left out.
    """
    target = np.array(list(printed.values()))
    return stats.jackknife(_matrix(runs, printed), lambda values: _rmse(values, target))


def rmse(runs: Sequence[FeatureValues], printed: Mapping[str, float]) -> float:
    """Return the distance of `column_rmse` without its interval."""
    return _rmse(_matrix(runs, printed), np.array(list(printed.values())))


def _matrix(runs: Sequence[FeatureValues], texts: Iterable[str]) -> Array:
    """Return the values, float64[runs, features]. A value is NaN if the run did not meet the feature."""
    names = list(texts)
    return np.array([[run[text][0] if text in run else np.nan for text in names] for run in runs])


def _rmse(values: Array, target: Array) -> float:
    met = ~np.isnan(values)
    count = met.sum(axis=0)
    means = np.where(met, values, 0.0).sum(axis=0)[count > 0] / count[count > 0]
    return float(np.sqrt(np.mean((means - target[count > 0]) ** 2)))


# ---- what it costs ----


def cost(evidence: Evidence, game: str, opponent: str, left: str, right: str) -> Samples:
    """Return the ratios of wall times, left / right. `compare_costs` has measured them separately from the trials."""
    if game not in evidence.costs:
        raise ExperimentError(
            f"expected the times of {left} and {right} in {game} against {opponent}, got none; run the experiment "
            "with its cost measurements"
        )
    return np.array(evidence.costs[game].ratios)


LANES = 10
MATCHES = 100
REPEATS = 5
COST_PARTS = ("playing", "choosing", "learning", "initialising")


@dataclass(frozen=True)
class Cost:
    """Times of two settings, called left and right.

    ratios   ratios of wall times, left / right, one for each repeat
    left     part -> microseconds per match; the parts are COST_PARTS
    right    part -> microseconds per match
    lanes    number of lanes of every series
    matches  number of matches of every lane
    """

    ratios: list[float]
    left: dict[str, float]
    right: dict[str, float]
    lanes: int = LANES
    matches: int = MATCHES

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON. `Cost(**dictionary)` restores the cost."""
        return asdict(self)


def compare_costs(left: SeriesSetting, right: SeriesSetting, values: Sequence[FeatureValues]) -> Cost:
    """Time both settings alternately, `REPEATS` times. One round before these is not counted.

    `values` has the feature values for each lane of `left`. The number of lanes is the number of values, but at most
    LANES. The number of matches is that of `left`, but at most MATCHES.
    """
    lanes, matches = min(LANES, len(values)), min(MATCHES, left.matches)
    rounds = [
        (_series(left, values, lanes, matches, n), _series(right, [], lanes, matches, n)) for n in range(REPEATS + 1)
    ][1:]
    ratios = [ours[0] / theirs[0] for ours, theirs in rounds]
    ours, theirs = (
        {part: sum(times[part] for _, times in series) / REPEATS for part in COST_PARTS}
        for series in zip(*rounds, strict=True)
    )
    return Cost(ratios, ours, theirs, lanes, matches)


def _series(
    setting: SeriesSetting, values: Sequence[FeatureValues], lanes: int, matches: int, repeat: int
) -> tuple[float, dict[str, float]]:
    """Return (wall seconds, microseconds per match by part) of one series. Each repeat has different random numbers."""
    setting = replace(setting, seed=setting.seed + repeat)
    played = tuple(Lane(Trial(setting, run), values[run] if values else None) for run in range(lanes))
    graph = PositionGraph(load(setting.game))
    begin = time.perf_counter()
    series = play_lanes(Batch(setting.game, setting.role, matches, setting.stage, played), graph)
    wall, spent = time.perf_counter() - begin, series.seconds
    parts = (spent.playing, spent.choosing, spent.learning, sum(spent.initialising.values()))
    return wall, {name: 1e6 * part / (lanes * matches) for name, part in zip(COST_PARTS, parts, strict=True)}


# ---- the games themselves: no trials needed ----

STRUCTURE_SEED = 2007
NUM_MATCHES = 2000
DEFAULT = 50.0  # value that the paper's learners give to an undecided state


@lru_cache
def feature_texts(game: str, role: int) -> tuple[str, ...]:
    """Return the features of a role's afterstates as canonical texts, in their order."""
    return tuple(reachable_features(load(game), role, num_matches=NUM_MATCHES, seed=STRUCTURE_SEED).features)


def feature_count(game: str, role: int) -> int:
    """Return the number of different features of a role's afterstates."""
    return len(feature_texts(game, role))


def features_with(game: str, role: int, what: str) -> int:
    """Return the number of features that have a "win in the middle" or a "loss at the bottom" (`what`).

    A win in the middle is a child of the root: the opponent has made a losing move. A loss at the bottom is one level
    below: the learner has made a losing move.
    """
    node, depth = {"win in the middle": ("W", 1), "loss at the bottom": ("L", 2)}[what]
    return sum(node in _level(text, depth) for text in feature_texts(game, role))


def features_shared(game: str, role: int, source: str) -> int:
    """Return the number of features that a role of a game shares with the first role of the source game."""
    return len(set(feature_texts(game, role)) & set(feature_texts(source, 0)))


def lookahead_values_else(game: str, role: int) -> int:
    """Return the number of features with a minimax value other than 0, 50 and 100. An undecided leaf counts 50."""
    values = [minimax(feature_tree(text)) for text in feature_texts(game, role)]
    return sum(value not in (0.0, 50.0, 100.0) for value in values)


def minimax(node: Node) -> float:
    """Return the minimax value of a node of a feature's tree."""
    if not node.children:
        outcomes = {"L": 0.0, "D": 50.0, "W": 100.0, LEARNER: DEFAULT, OPPONENT: DEFAULT}
        return outcomes[node.kind] if node.kind in outcomes else float(node.kind)
    below = [minimax(child) for child in node.children]
    return max(below) if node.kind == LEARNER else min(below)


def _level(text: str, depth: int) -> set[str]:
    """Return the kinds of the nodes at this depth below the root.

    Depth 1 has the states after a move of the opponent, depth 2 the states after a further move of the learner.
    """
    nodes = [feature_tree(text)]
    for _ in range(depth):
        nodes = [child for node in nodes for child in node.children]
    return {node.kind for node in nodes}


def other_rewards(games: list[str]) -> int:
    """Return the number of goal values other than 0, 50 and 100 of all roles in these games."""
    return sum(value not in (0, 50, 100) for name in games for role in load(name).goal_values for value in role)


def moves_share(game: str, what: str) -> float:
    """Return the share of plies for which `what` holds: "more", "as many" or "no fewer" moves than one ply before.

    At each ply, the legal moves of the mover are counted. The plies are those of random matches.
    """
    graph, matches = _random_matches(game)
    counts = [(graph.num_moves[rows[:-1]] * graph.acting[rows[:-1]]).sum(axis=1) for rows in matches]  # of the mover
    steps = np.concatenate([np.diff(num_moves) for num_moves in counts])
    return float(np.mean({"more": steps > 0, "as many": steps == 0, "no fewer": steps >= 0}[what]))


def repeated_afterstates(game: str, role: int) -> int:
    """Return the number of random matches in which a state occurs twice after a move of this role."""
    graph, matches = _random_matches(game)
    afterstates = [rows[1:][graph.acting[rows[:-1], role]] for rows in matches]
    return sum(len(set(rows.tolist())) < len(rows) for rows in afterstates)


def afterstates_per_pair(game: str, role: int) -> float:
    """Return the number of different afterstates of a role, divided by a number of pairs.

    The pairs are all pairs of a reachable state in which the role is to move, and a legal move in this state.
    """
    graph, num_expanded = PositionGraph(load(game)), 0
    while num_expanded < graph.num_rows:
        new = np.arange(num_expanded, graph.num_rows, dtype=np.int32)
        num_expanded = graph.num_rows
        graph.expand(new)
    rows = np.flatnonzero(graph.acting[:, role] & (graph.num_joint > 0))
    afterstates = [graph.successors[graph.succ_start[row] :][: graph.num_joint[row]] for row in rows]
    return len(np.unique(np.concatenate(afterstates))) / int(graph.num_joint[rows].sum())


@lru_cache
def _random_matches(game: str, num_matches: int = 200) -> tuple[PositionGraph, list[NDArray[np.int32]]]:
    """Play random matches. Return the graph of their positions, and for each match the rows of its positions."""
    graph = PositionGraph(load(game))
    matches: list[NDArray[np.int32]] = []

    def keep(finished: Finished) -> None:
        matches.extend(rows[: plies + 1] for rows, plies in zip(finished.rows, finished.plies, strict=True))

    player = Opponent(OpponentSettings("random"))
    keys = [stream(STRUCTURE_SEED, i, "structure") for i in range(num_matches)]
    run_lockstep(graph, [player] * graph.game.num_roles, keys, 1, on_end=keep)
    return graph, matches


def _counted(function: Callable[..., float]) -> Callable[..., Interval]:
    return lambda evidence, **parameters: stats.exact(float(function(**parameters)))


_SAMPLED: tuple[Callable[..., Samples], ...] = (
    difference, level, below_ceiling, reaches, slope, gap, table1_value, table1_difference, table1_rmse, cost,
)  # fmt: skip
_COUNTED: tuple[Callable[..., float], ...] = (
    feature_count, features_with, features_shared, lookahead_values_else, other_rewards, moves_share,
    afterstates_per_pair, repeated_afterstates,
)  # fmt: skip
MEASURES: dict[str, Callable[..., Samples]] = {
    **{measure.__name__: measure for measure in _SAMPLED},
    **{count.__name__: _counted(count) for count in _COUNTED},
}
"""Name of a measure in claims.toml -> function."""


# ---- one reading's results ----

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
"""(name, last part of the setting's id). Learners that start with less knowledge come first."""


@dataclass(frozen=True)
class Headroom:
    """The trials and the judged endpoints of the part "headroom", in one reading.

    All lists of findings have the same order of cells (game, opponent, window).

    oracle  oracle minus lookahead
    room    ceiling minus lookahead
    turns   right learner -> turns minus this learner. Holm's correction is made over all of them together
    margins  the margins of the endpoints as text
    """

    evidence: Evidence
    oracle: list[ClaimFinding]
    room: list[ClaimFinding]
    turns: dict[str, list[ClaimFinding]]
    margins: str

    @classmethod
    def judged(cls, claims: Claims, evidence: Evidence) -> Headroom:
        """Judge all endpoints."""
        turns: dict[str, list[ClaimFinding]] = {}
        for finding in judge_claims((*claims.turns, *claims.deep), evidence):
            turns.setdefault(finding.claim.of["right"], []).append(finding)
        oracle, room = (judge_claims(family, evidence) for family in (claims.headroom, claims.room))
        return cls(evidence, oracle, room, turns, claims.margin_words)

    @property
    def findings(self) -> list[ClaimFinding]:
        return [*self.oracle, *self.room, *chain.from_iterable(self.turns.values())]

    def level(self, game: str, opponent: str, learner: str, window: Sequence[int]) -> Interval:
        """Return the mean reward per match in the window, with its interval."""
        return stats.mean_interval(level(self.evidence, game, opponent, learner, window))

    def difference(self, game: str, opponent: str, left: str, right: str, window: Sequence[int]) -> Interval:
        """Return the paired difference of mean reward per match, left - right."""
        return stats.mean_interval(difference(self.evidence, game, opponent, left, right, window))

    def ceiling(self, game: str, opponent: str) -> Interval:
        """Return the mean ceiling over runs. A hashed opponent is another one in every run."""
        return stats.mean_interval(self.evidence.ceiling(game, opponent))


@dataclass(frozen=True)
class Study:
    """The results of one reading.

    evidence  the trials that figures and tables show
    findings  the judged claims. With the option `verdicts`, they are measured on separate trials, not on `evidence`
    headroom  the results of the part "headroom"; None if it was not run
    folder    the folder of the report
    parts     the parts of the plan that were run
    """

    plan: Plan
    evidence: Evidence
    findings: list[ClaimFinding]
    folder: Path
    parts: tuple[str, ...]
    headroom: Headroom | None = None

    @property
    def name(self) -> str:
        return self.plan.reading.name

    def window(self, window: stats.Window) -> stats.Window:
        """Scale a window of a series of 3000 matches to the number of matches in this plan."""
        return stats.scaled(window, self.plan.matches)

    def matches(self, window: stats.Window) -> str:
        """Return the scaled window as text, such as `matches 21-200`."""
        return "matches {}-{}".format(*self.window(window))

    def level(self, game: str, opponent: str, learner: str, window: stats.Window = LATE) -> Interval:
        """Return the mean reward per match in the window, with its interval."""
        return stats.mean_interval(level(self.evidence, game, opponent, learner, window))

    def difference(self, game: str, opponent: str, left: str, right: str, window: stats.Window = LATE) -> Interval:
        """Return the paired difference of mean reward per match, left - right."""
        return stats.mean_interval(difference(self.evidence, game, opponent, left, right, window))

    def feature(self, opponent: str, letter: str) -> Interval:
        """Return the mean value of a feature over the runs that met the feature, with its interval."""
        return stats.mean_interval(self.evidence.feature(opponent, letter))
