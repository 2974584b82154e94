"""Advice for a game, and whether matches speak for it or against it.

*Advice* is what memory offers to a player: the value and the playouts of a lesson ("lesson"), moves for positions that
were searched long ("openings"), and parameters of the search (knobs, see ledger.py). None of it is used untested. It is
tried in matches of the same player with the advice and without it, in the same time. A lesson is tried against
*rivals*, which are players without memory that have learned in a startclock of some seconds.

Advice changes: a lesson with each generation, a book with each position. So its states are numbered, and each state
that is tried has tests of its own. A knob is tried with the newest state of the lesson that has passed, and so are
openings; if there is none, with what a startclock has taught. The level LEVEL is divided over all tests that a lesson
will ever have by a version of gamelore. So the probability that any advice is taken which beats none of its rivals, in
matches like those of the tests, is at most LEVEL for a lesson and a version. These matches have short thinking times
(see course.py); nothing is said about other ones.

The rival of a contest is drawn by lot, and a contest has several rounds. If some rivals are weaker than the advice and
others stronger, the first round tells which one was drawn, and later bets of the contest may profit by it. So advice
that is as good as its rivals on average is taken more often than the level says: in simulations of 100 contests at a
level of 0.33 %, 1.8 % of such states with scores of 80 % against one rival and 40 % against three others, and 2.7 %
with 70 % against one and 30 % against another; 26 % where one rival always loses and another always wins. Against a
single rival, advice that beats it passes, whatever it scores against others of the same startclock. A rival for each
round would be exact, and make trials three times slower, because fewer matches would be searched together; one bet for
each contest would be exact and need up to three times as many contests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from ..learning.store.lesson_rows import LESSON, OPENINGS, WITHOUT, TrialRow
from .evidence import BettingTest

KNOB_STATE = 0
"""The only state of a knob."""
LEVEL = 0.1
STARTCLOCKS = (1, 10, 60)
"""Startclocks of the rivals in tests, in seconds."""

MOST_KNOBS = 8
"""Number of knobs that share the level of one test; at least as many as there will ever be."""
_NUM_EQUAL = 4  # states that share the level alike: the later ones are better, but need time for their trials, too
_NUM_TESTS = len(STARTCLOCKS) + 3  # for each state: those of a lesson, other startclocks, openings, knobs
_COMMON = (5, 15, 20, 30, 45, 90, 120, 180, 300, 600)  # other startclocks that share half of the level of one test

Verdict: TypeAlias = Literal["taken", "refused", "open"]


def level_of(rows: Iterable[TrialRow], trial: TrialRow) -> float:
    """Return the level of a test of some advice, where `rows` is all evidence for the game.

    Each of these gets the same part of LEVEL: a lesson against each of STARTCLOCKS, a lesson against all other
    startclocks, openings, and all knobs. A part is divided over the states of the advice, by the order in which they
    are tried against a rival: the first four get a fifth each, and the n-th one after these, from 0 on, gets
    1 / ((n + 1) (n + 2)) of the last fifth. The shares add up to 1. Knobs have one state.
    """
    if trial.advice not in (LESSON, OPENINGS):
        return LEVEL / _NUM_TESTS / MOST_KNOBS
    kind = trial.advice, trial.against
    earlier = {row.number for row in rows if (row.advice, row.against) == kind and row.number < trial.number}
    level = LEVEL / _NUM_TESTS * _share_of_state(len(earlier))
    startclock = startclock_of(trial.against)
    return level if startclock is None or startclock in STARTCLOCKS else level * _share_of(startclock)


def _share_of_state(number: int) -> float:
    """Return the share of a state in the level of a test, where so many were tried before it."""
    later = max(0, number - _NUM_EQUAL)
    return 1.0 / (_NUM_EQUAL + 1) / (1.0 if number < _NUM_EQUAL else (later + 1) * (later + 2))


def _share_of(startclock: int) -> float:
    """Return the share of a startclock in the level of all that are not in STARTCLOCKS; the shares add up to 1.

    It does not depend on which others are tried, because their order is not known.
    """
    if startclock in _COMMON:
        return 0.5 / len(_COMMON)
    return 0.5 / ((startclock + 1) * (startclock + 2))


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


def is_in_order(rows: Iterable[TrialRow], trial: TrialRow) -> bool:
    """Return whether a trial has begun, or no newer state of its advice was tried against the same rival.

    Levels rest on this order: an older state that comes later would take the level of one that has spent it.
    """
    kind = trial.advice, trial.against
    return trial.num > 0 or all(row.number <= trial.number for row in rows if (row.advice, row.against) == kind)


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


def reason(rows: Sequence[TrialRow], advice: str, number: int, said: Verdict) -> str:
    """Return a verdict about a state of some advice with the scores that it comes from, as text."""
    own = [row for row in rows if (row.advice, row.number) == (advice, number) and row.num]
    scores = ", ".join(f"{row.total / row.num:.0%} of {row.num} rounds against {row.against}" for row in own)
    return f"{advice} {said}: {scores or 'not tried'}"


def passed(rows: Sequence[TrialRow], startclocks: Iterable[float]) -> int | None:
    """Return the number of the newest state of the lesson that is taken for one of these startclocks; None for none."""
    startclocks, numbers = list(startclocks), {row.number for row in rows if row.advice == LESSON}
    return next(
        (
            number
            for number in sorted(numbers, reverse=True)
            if any(verdict(rows, LESSON, number, startclock) == "taken" for startclock in startclocks)
        ),
        None,
    )
