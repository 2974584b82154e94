"""What a learner costs: the wall time of a series, on positions not worked out before, and where it goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..learn.features import FeatureValues
from .grid import Setting

LANES = 10
MATCHES = 100
REPEATS = 5
PARTS = ("playing", "choosing", "learning", "initialising")


@dataclass(frozen=True)
class Cost:
    """Left over right: `ratios` of wall times, one for each repeat; and microseconds per match by PARTS, of both.

    Every series had `lanes` lanes of `matches` matches.
    """

    ratios: list[float]
    left: dict[str, float]
    right: dict[str, float]
    lanes: int = LANES
    matches: int = MATCHES

    def as_json(self) -> dict[str, Any]:
        """JSON-able; `Cost(**..)` reads it."""
        return asdict(self)


def compare_costs(left: Setting, right: Setting, values: Sequence[FeatureValues]) -> Cost:
    """Both in turns, `REPEATS` times, after one round that does not count.

    `values` are the feature values for the lanes of `left`; there are as many lanes, and as many matches as the
    settings have, up to LANES and MATCHES.
    """
    lanes, matches = min(LANES, len(values)), min(MATCHES, left.matches)
    rounds = [
        (_series(left, values, lanes, matches, n), _series(right, [], lanes, matches, n)) for n in range(REPEATS + 1)
    ][1:]
    ratios = [one[0] / other[0] for one, other in rounds]
    ours, others = (_mean([spent for _, spent in series]) for series in zip(*rounds, strict=True))
    return Cost(ratios, ours, others, lanes, matches)


def _series(
    setting: Setting, values: Sequence[FeatureValues], lanes: int, matches: int, repeat: int
) -> tuple[float, dict[str, float]]:
    """(wall seconds, microseconds per match by part) of one series; every repeat has random numbers of its own."""
    from ..games import load
    from ..learn.transfer import play_series
    from ..play.graph import Graph

    setting = replace(setting, seed=setting.seed + repeat)
    graph = Graph(load(setting.game))
    begin = time.perf_counter()
    series = play_series(
        graph.game,
        setting.role,
        [setting.learner] * lanes,
        [values[i] if values else None for i in range(lanes)],
        [setting.opponent_of(run) for run in range(lanes)],
        matches,
        [(setting.seed, run, setting.stage) for run in range(lanes)],
        graph=graph,
    )
    wall, spent = time.perf_counter() - begin, series.seconds
    parts = (spent.playing, spent.choosing, spent.learning, sum(spent.initialising.values()))
    return wall, {name: 1e6 * part / (lanes * matches) for name, part in zip(PARTS, parts, strict=True)}


def _mean(rounds: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: sum(one[name] for one in rounds) / len(rounds) for name in PARTS}
