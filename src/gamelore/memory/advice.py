"""Advice for a game, and whether matches speak for it or against it.

*Advice* is what memory offers to a player: the value and the playouts of a lesson ("lesson"), and moves for positions
that were searched long ("openings"). None of it is used untested. It is tried in matches of the same player with the
advice and without it, in the same time. A lesson is tried against *rivals*, which are players without memory that have
learned in a startclock of some seconds.

Advice changes: a lesson with each generation, a book with each position. So its states are numbered, and each state
that is tried has tests of its own. The level LEVEL is divided over all tests that a game will ever have. So the
probability that any advice is taken which is worse than the rival, in matches like those of the tests, is at most LEVEL
for a game. These matches have short thinking times (see course.py); nothing is said about other ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from ..learning.store.lesson_rows import TrialRow
from .evidence import BettingTest

OPENINGS = "openings"
LEVEL = 0.1
STARTCLOCKS = (1, 10, 60)
"""Startclocks of the rivals in tests, in seconds."""
WITHOUT = "without"
"""The rival of advice that no startclock can give: the same player without it."""

Verdict: TypeAlias = Literal["taken", "refused", "open"]


def level_of(rows: Iterable[TrialRow], trial: TrialRow) -> float:
    """Return the level of a test of some advice, where `rows` is all evidence for the game.

    The n-th state that is tried, from 0 on, gets the share 1 / ((n + 1) (n + 2)), which adds up to 1. A state has a
    test for each of STARTCLOCKS, one without a startclock, and the tests for other startclocks, which share one level
    in the same way.
    """
    own = [row for row in rows if row.advice == trial.advice]
    level = _share(LEVEL, {row.number for row in own}, trial.number) / (len(STARTCLOCKS) + 2)
    startclock = startclock_of(trial.against)
    if startclock is None or startclock in STARTCLOCKS:
        return level
    others = {startclock_of(row.against) for row in own if row.number == trial.number} - {None, *STARTCLOCKS}
    return _share(level, {other for other in others if other is not None}, startclock)


def _share(level: float, members: Iterable[int], member: int) -> float:
    """Return the share of a member in a level; in their order, the members get 1/2, 1/6, 1/12, .. of it."""
    rank = sum(other < member for other in members)
    return level / ((rank + 1) * (rank + 2))


def evidence_of(row: TrialRow) -> BettingTest:
    """Return the evidence in a row of the store."""
    return BettingTest(row.num, row.total, row.squares, row.better, row.worse)


def with_scores(row: TrialRow, scores: Iterable[float]) -> TrialRow:
    """Return a row with the scores of further rounds, each from 0 to 1."""
    evidence = evidence_of(row).after_all(scores)
    counts = evidence.num, evidence.total, evidence.squares
    return TrialRow(*row[:3], *counts, evidence.better, evidence.worse)


def rival_name(startclock: int) -> str:
    """Return the name of the rivals with this startclock in seconds."""
    return f"startclock={startclock}"


def startclock_of(rival: str) -> int | None:
    """Return the startclock of a rival by its name; None for a name of another kind."""
    match = re.fullmatch(r"startclock=(\d{1,6})", rival)
    return int(match[1]) if match else None


def is_decided(rows: Sequence[TrialRow], trial: TrialRow) -> bool:
    """Return whether the evidence of a trial speaks for the advice or against it, so that no more is needed."""
    evidence, level = evidence_of(trial), level_of(rows, trial)
    return evidence.shows_better(level) or evidence.shows_worse(level)


def verdict(rows: Sequence[TrialRow], advice: str, number: int, startclock: float) -> Verdict:
    """Return whether a state of some advice is taken where the startclock has this length, in seconds.

    It is taken if it is better than a rival with a startclock at least as long, or as long as the longest of the tests.
    It is refused if it is worse than a rival whose startclock is at most as long. For `WITHOUT`, the startclock is of
    no importance.

    Args:
        rows: all evidence about advice for the game
        advice: kind of advice
        number: its state
        startclock: of the match
    """
    worse, better = False, False
    for row in rows:
        seconds = startclock if row.against == WITHOUT else startclock_of(row.against)
        if (row.advice, row.number) == (advice, number) and seconds is not None:
            level = level_of(rows, row)
            worse |= seconds <= startclock and evidence_of(row).shows_worse(level)
            better |= seconds >= min(startclock, STARTCLOCKS[-1]) and evidence_of(row).shows_better(level)
    return "refused" if worse else "taken" if better else "open"
