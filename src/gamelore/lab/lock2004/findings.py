"""Every claim measured on the runs of a part, and judged; the measures are told of in claims.toml."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .. import stats
from ..claims import Claim
from ..stats import Interval, Verdict
from .claims import claims
from .printed import Column
from .study import Study

Measured: TypeAlias = tuple[Interval, float | None]
"""An endpoint and, where it may be compared with a threshold, its two-sided p."""
_HALF = 50.0  # per cent: the one threshold that a level is compared with


def _over(study: Study, game: str, row: str, opponent: str, what: str) -> Measured:
    return study.over(game, row, Column(opponent, what))


def _level(study: Study, game: str, row: str, opponent: str, what: str) -> Measured:
    samples = study.samples(game, row, Column(opponent, what))
    return stats.mean_interval(samples), stats.p_value(samples, _HALF)


def _contrast(study: Study, game: str) -> Measured:
    return stats.welch(study.gain(game, "perfect", "version 1"), study.gain(game, "perfect", "baseline"))


def _ahead(study: Study, game: str, left: list[int], right: list[int]) -> Measured:
    sizes = study.classes(game)
    samples = sizes[:, left].sum(axis=1) - sizes[:, right].sum(axis=1)
    return stats.mean_interval(samples), stats.p_value(samples)


def _class_size(study: Study, game: str, number: int) -> Measured:
    return stats.mean_interval(study.classes(game)[:, number]), None


def _number(study: Study, game: str, what: str) -> Measured:
    samples = study.classes(game).sum(axis=1) if what == "strong pairs" else study.count(game, what)
    return stats.mean_interval(samples), None


def _faster(study: Study, game: str) -> Measured:
    samples = study.faster(game)
    return stats.mean_interval(samples), stats.p_value(samples)


def _strategy(study: Study, game: str, strategy: str) -> Measured:
    found = study.shown(game, strategy) > 0
    hits = int(np.count_nonzero(found))
    return stats.share_interval(hits, len(found)), stats.share_p_value(hits, len(found))


MEASURES: dict[str, Callable[..., Measured]] = {
    "over": _over, "level": _level, "contrast": _contrast, "ahead": _ahead, "class_size": _class_size,
    "count": _number, "faster": _faster, "strategy": _strategy,
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A claim's number and verdict; `adjusted` is p after Holm's correction, None where no p belongs to the test."""

    claim: Claim
    interval: Interval
    p: float | None
    adjusted: float | None
    verdict: Verdict


def findings(study: Study) -> list[Finding]:
    """Every claim about the study's games, judged; those of a side are one family for Holm's correction."""
    chosen = [claim for claim in claims() if claim.of["game"] in study.games]
    measured = [MEASURES[claim.measure](study, **claim.of) for claim in chosen]
    family = [i for i, claim in enumerate(chosen) if claim.directional]
    p_values = [measured[i][1] for i in family]
    corrected = dict(zip(family, stats.holm([1.0 if p is None else p for p in p_values]).tolist(), strict=True))
    return [
        _finding(claim, interval, p, corrected.get(i))
        for i, (claim, (interval, p)) in enumerate(zip(chosen, measured, strict=True))
    ]


def _finding(claim: Claim, interval: Interval, p: float | None, adjusted: float | None) -> Finding:
    return Finding(claim, interval, p if claim.directional else None, adjusted, _judge(claim, interval, adjusted))


def _judge(claim: Claim, interval: Interval, adjusted: float | None) -> Verdict:
    if interval.few_that_agree:
        return "undecided"
    if adjusted is None:
        return stats.judge_within(interval, claim.target[0], claim.target[1])
    return stats.judge_side(interval, adjusted, 1 if claim.test == "above" else -1, claim.target[0], claim.margin)
