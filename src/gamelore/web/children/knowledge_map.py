"""Who taught whom, and what the pupils gained: what the page "Knowledge" shows as a map of games.

A gain is what a learner that was taught by other games earns more than a learner that was not, in the same role of the
same game, against the same opponent and with the same settings. Learners that differ only in the seed are the runs of
one learner. The runs are the samples, as in the lab, so a gain has an interval from FEWEST_SHOWN runs on.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...api.game_lessons import LessonSummary
from ...errors import GameloreError, counted
from ...files import time_of_change
from ...lab import stats
from ...lab.results import STORE, ResultStore
from ...learning.store.lesson_rows import VARIANT, WITHOUT, Lessons
from ...learning.store.schema import Origin, StoredLearner, to_json
from ...memory.advice import startclock_of
from ...rulesheets import title

Runs: TypeAlias = Mapping[int, NDArray[np.float64]]
"""Rewards of learners that differ only in the seed: seed -> float64[matches]."""
Rewards: TypeAlias = Callable[[StoredLearner], NDArray[np.float64]]
"""A function that returns the rewards of a learner, float64[matches]."""

MOST_COMPARED = 300  # first matches in a gain: the tenth of the paper's series in which transfer shows
MOST_LINKED, MOST_ALONE = 30, 6  # games on the map, with and without arrows
MOST_EXPERIMENTS = 50
ONLY_OF_A_KIND = ("kind", "sources", "heuristic", "control", "equivalence", "turns")
"""Settings in which a learner may differ from the baseline with which it is compared."""
_EXPERIMENT = re.compile(r"(?P<target>[^/]+)/(?P<opponent>[^/]+)/transfer-from-(?P<source>[^/]+)")
_ROLE = re.compile(r"\.role(\d+)$")


# ---- gains ------------------------------------------------------------------------------------------------------


def gain(ours: Runs, theirs: Runs) -> dict[str, Any]:
    """Return by how much the mean reward of the first matches is higher, in points.

    Runs with the same seed are compared with each other. If no two have the same seed, they are independent samples.

    Args:
        ours: runs of the learner
        theirs: runs of the learner with which it is compared; both with at least one run, and runs with a match

    Returns:
        `mean`, `low` and `high` (the 95 % interval; None for too few runs), `runs`, `matches` (how many of each run),
        `short` and `text` (the same in words).
    """
    shared = sorted(ours.keys() & theirs.keys())
    left, right = ([own[seed] for seed in shared or sorted(own)] for own in (ours, theirs))
    num = min(MOST_COMPARED, *map(len, (*left, *right)))
    means = [np.array([run[:num].mean() for run in runs]) for runs in (left, right)]
    interval = stats.mean_interval(means[0] - means[1]) if shared else stats.welch(*means)[0]
    has_interval = interval.num >= stats.FEWEST_SHOWN
    return {
        "mean": interval.mean,
        "low": interval.low if has_interval else None,
        "high": interval.high if has_interval else None,
        "runs": interval.num,
        "matches": num,
        "short": _short(interval, has_interval),
        "text": f"{interval.mean:+.1f} points in the first {counted(num, 'match', 'matches')}; {_certainty(interval)}",
    }


def _short(interval: stats.Interval, has_interval: bool) -> str:
    if has_interval:
        return f"{interval.mean:+.1f} ± {interval.half_width:.1f}"
    return f"{interval.mean:+.1f} ({counted(interval.num, 'run')})"


def _certainty(interval: stats.Interval) -> str:
    """Return the interval in words, or why there is none."""
    if interval.num >= stats.FEWEST_SHOWN:
        return f"95 % interval {interval.low:+.1f} to {interval.high:+.1f} over {interval.num} runs"
    if interval.num == 1:
        return "one run: no interval"
    return f"{interval.num} runs: too few for an interval, {stats.FEWEST_SHOWN} are needed"


def kind_of(stored: StoredLearner) -> str:
    """Return the kind of a learner, such as "transfer"."""
    return str(stored.settings.get("kind", "?"))


def family(stored: StoredLearner) -> tuple[str, ...]:
    """Return what is equal for all runs of a learner: all but the seed."""
    return stored.rules_hash, stored.role, stored.opponent, to_json(stored.settings)


def _contest(stored: StoredLearner) -> tuple[str, ...]:
    """Return what is equal for a learner and for the baseline with which it is compared."""
    settings = {name: value for name, value in stored.settings.items() if name not in ONLY_OF_A_KIND}
    return stored.rules_hash, stored.role, stored.opponent, to_json(settings)


def has_identity(stored: StoredLearner, origin: Origin) -> bool:
    """Return whether a learner has the identity of an origin."""
    wanted = origin["rules_hash"], origin["role"], origin["opponent"], to_json(origin["settings"]), origin["seed"]
    return (*family(stored), stored.seed) == wanted


class Teaching(NamedTuple):
    """An arrow of the map: a game taught another one.

    teacher, pupil  hashes of the rules of the games, or their names where the hash is not known
    names           of both games
    what            what was carried over: "features", "lesson", or "experiment" for features in an experiment
    about           role, opponent and learners, in words
    gain            see `gain`; None if it cannot be computed
    text            the gain in words, or why there is none
    """

    teacher: str
    pupil: str
    names: tuple[str, str]
    what: str
    about: str
    gain: dict[str, Any] | None
    text: str


def learner_teachings(learners: Sequence[StoredLearner], rewards: Rewards) -> Iterator[Teaching]:
    """Yield who taught the learners of a store. Learners that differ only in the seed are together."""
    families = _grouped(family, (learner for learner in learners if learner.sources))
    baselines = _grouped(_contest, (learner for learner in learners if kind_of(learner) == "baseline"))
    for pupils in families.values():
        ours, theirs = (
            {own.seed: rewards(own) for own in group if own.num_matches}
            for group in (pupils, baselines.get(_contest(pupils[0]), []))
        )
        yield from _taught(pupils, gain(ours, theirs) if ours and theirs else None)


def _grouped(
    key: Callable[[StoredLearner], tuple[str, ...]], learners: Iterable[StoredLearner]
) -> dict[tuple[str, ...], list[StoredLearner]]:
    groups: dict[tuple[str, ...], list[StoredLearner]] = {}
    for learner in learners:
        groups.setdefault(key(learner), []).append(learner)
    return groups


def _taught(pupils: Sequence[StoredLearner], own: dict[str, Any] | None) -> Iterator[Teaching]:
    """Yield a teaching for each game that taught learners that differ only in the seed. `own`: their gain."""
    teachers = {source["rules_hash"]: source["game"] for pupil in pupils for source in pupil.sources}
    first, numbers = pupils[0], ", ".join(str(pupil.id) for pupil in pupils)
    about = f"{first.role} against {first.opponent}: {'learner' if len(pupils) == 1 else 'learners'} {numbers}"
    text = own["text"] if own else _NO_BASELINE
    for teacher, name in teachers.items():
        others = ", ".join(other for key, other in teachers.items() if key != teacher)
        told = f"{about}, together with {others}" if others else about
        yield Teaching(teacher, first.rules_hash, (name, first.game), "features", told, own, text)


_NO_BASELINE = "not known: no baseline learner of the same game, role, opponent and settings is in the store"


def rival(against: str) -> str:
    """Return whom some advice was tried against, in words."""
    startclock = startclock_of(against)
    if against == WITHOUT:
        return "without it"
    return against if startclock is None else f"that had only {startclock} s before the match"


def lesson_teachings(lessons: Lessons, summaries: Iterable[LessonSummary]) -> Iterator[Teaching]:
    """Yield which lessons began with the lesson of another game, and what tests have said about it."""
    scores = {(row.rules_hash, row.against): row for row in lessons.ledger() if row.advice == VARIANT}
    for summary in summaries:
        stored = lessons.find(summary.rules_hash) if summary.variant else None
        if stored is None or summary.variant is None:
            continue
        tests = [
            f"{100 * row.total / row.num:.0f} % of {counted(row.num, 'round')} against the same player "
            f"{rival(row.against)}"
            for (rules_hash, _), row in scores.items()
            if rules_hash == summary.rules_hash
        ]
        text = f"score {'; '.join(tests)}" if tests else "not known: no match has tried it yet"
        names = summary.variant, summary.game
        about = f"the lesson began with that of {summary.variant} (likeness {stored.likeness:.0%})"
        yield Teaching(stored.origin, summary.rules_hash, names, "lesson", about, None, text)


def experiment_teachings(folder: Path) -> Iterator[Teaching]:
    """Yield the transfers in the results of experiments below a folder, the newest first."""
    paths = [*folder.glob(f"*/{STORE}"), *folder.glob(f"*/*/{STORE}")]
    for path in sorted(paths, key=time_of_change, reverse=True)[:MOST_EXPERIMENTS]:
        with suppress(GameloreError, sqlite3.Error, OSError), ResultStore(path) as results:
            yield from _of_experiment(results, path.parent.name)


def _of_experiment(results: ResultStore, name: str) -> Iterator[Teaching]:
    """Yield a teaching for each learner of an experiment that was taught by another game."""
    hashes = {title(game): rules_hash for game, rules_hash in results.rules().items()}
    for setting in sorted({setting for setting, _ in results.finished()}):
        match = _EXPERIMENT.fullmatch(setting)
        if match is None:
            continue
        names = _ROLE.sub("", match["source"]), _ROLE.sub("", match["target"])
        role = f", role {number[1]}" if (number := _ROLE.search(match["target"])) else ""
        about = f"experiment {name}{role}, against {match['opponent']}"
        own = _gain_in(results, setting, f"{match['target']}/{match['opponent']}/baseline")
        text = own["text"] if own else "not known: the experiment has no finished baseline"
        teacher, pupil = (hashes.get(game, game) for game in names)
        yield Teaching(teacher, pupil, names, "experiment", about, own, text)


def _gain_in(results: ResultStore, setting: str, baseline: str) -> dict[str, Any] | None:
    """Return the gain of a setting over another one in an experiment; None if one of them has not finished."""
    try:
        ours, theirs = (dict(enumerate(results.rewards(each).astype(float))) for each in (setting, baseline))
    except GameloreError:
        return None
    return gain(ours, theirs)


def rows_of_map(games: Sequence[str], arrows: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return games in rows: pupils below their teachers, as far as there are no circles; games without arrows last.

    Args:
        games: keys of all games, those first that are to be shown if there are more than the map has room for
        arrows: (teacher, pupil)
    """
    ends = {end for arrow in arrows for end in arrow}
    depths = {game: 0 for game in games if game in ends}
    for _ in depths:
        for teacher, pupil in arrows:
            if teacher != pupil and depths[pupil] <= depths[teacher] < len(depths) - 1:
                depths[pupil] = depths[teacher] + 1
    linked = list(depths)[:MOST_LINKED]
    rows = [[game for game in linked if depths[game] == depth] for depth in sorted(set(depths.values()))]
    alone = [game for game in games if game not in ends][:MOST_ALONE]
    return [row for row in (*rows, alone) if row]
