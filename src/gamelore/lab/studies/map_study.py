"""Transfer map: what the lesson of each game is worth in each other game, when its names are mapped.

The score of the map (analysis/variants.py) and the share of the lesson's weight that it carries are computed for all
pairs of games. Contests are played for some pairs: the search with the carried value against the search without a
value, and against the search with a value that was taught in the target, by a number of walks. Both sides make the same
number of walks for a move, as many as a time for all contests of a pair allows.

A carried value that changes nothing is the search without a value. So its score against this is 1/2, and against a
taught value it is the score of the search without one, which all sources share.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...analysis.variants import NameMap, map_facts, map_names
from ...gdl.syntax import Rulesheet, parse
from ...learning.store.knowledge import KnowledgeStore
from ...learning.store.lesson_rows import LESSON, Lessons, TrialRow
from ...learning.store.taught_rows import StoredValue
from ...memory.advice import level_of, rival_name
from ...memory.evidence import BettingTest
from ...memory.ledger import PAIR_DEVIATION
from ...memory.lesson import restored_value
from ...memory.retrieval import carried
from ...players.random_streams import extend, stream
from ...rulesheets import load
from ...search.rounds import Rounds, side_of
from ...search.settings import ChampionSettings, TeachingSettings
from ...search.teaching import Teacher
from ...search.value import LinearValue
from ...workers.processes import Report
from ..results import Outcome, ResultStore, Setting, Trial
from .memory_study import store_of_teaching

if TYPE_CHECKING:
    from ...game.game import Game

MAP = "map"  # stage of the random numbers
RIVALS = ("none", "taught")
RANDOM_PLIES = [2]
TAKEN_AT = level_of([], TrialRow(LESSON, 0, rival_name(1)))
"""Level of the player's test of the first state of a lesson."""
WALKS = 100, 200, 400, 800  # for each move, of which `affordable_walks` chooses
_SIDE_BY_SIDE = 32  # matches; with fewer, batches have few walks, and take as long
_MOST_MOVES = 1000  # of a round, on average


class SourceLesson(NamedTuple):
    """What one teaching of a game has given: its rules, and the value of the last generation."""

    sheet: Rulesheet
    value: StoredValue


class Mapped(NamedTuple):
    """A map between two games.

    score       its score, 0 to 1
    share       the share of the source's weight that it carries
    has_effect  whether the carried value has an effect on a search: the roles are mapped, and it trusts itself
    """

    score: float
    share: float
    has_effect: bool


@dataclass(frozen=True)
class MapSetting(Setting):
    """Contests between a carried value and what a player without memory has; each run has a teaching of its own.

    game      the target
    origin    the source
    study     CPU seconds of the teachings of the source
    taught    number of walks of the teaching of the rival
    walks     number of walks for each move
    rounds    number of rounds against each of RIVALS
    """

    origin: str
    study: float
    taught: int
    walks: int
    rounds: int

    @property
    def size(self) -> int:
        """See `Setting.size`."""
        return 2 * len(RIVALS) * self.rounds


@dataclass(frozen=True)
class MapJob:
    """The contests of a pair with one teaching. `folder` has the stores of all teachings."""

    trial: Trial[MapSetting]
    folder: Path

    @property
    def size(self) -> int:
        """Number of matches."""
        return self.trial.setting.size


def map_jobs(folder: Path, trials: Iterable[Trial[MapSetting]]) -> list[MapJob]:
    """Return a job for each trial, those with the same rival one after the other, so that it is taught once a process.

    The first teachings of all targets come first, so a part of a run is a sample of all. The store gets the result of
    each trial, so a kill costs one of them and a teaching.
    """
    return [MapJob(trial, folder) for trial in sorted(trials, key=lambda trial: (trial.run, trial.setting.game))]


def source_lesson(folder: Path, game: str, run: int, study: float) -> SourceLesson | None:
    """Return the lesson of a teaching, see `memory_study.studied`; None if that has not ended a generation."""
    with KnowledgeStore(
        store_of_teaching(folder, Path(game).stem, run, study), create=False, writable=False
    ) as knowledge:
        lessons = Lessons(knowledge)
        (row,) = lessons.games()
        taught = lessons.taught(row.rules_hash, LESSON)
    return SourceLesson(parse(row.rules), taught[-1].value) if taught else None


def mapped(source: SourceLesson | None, game: Game) -> tuple[Mapped, LinearValue | None]:
    """Return how a source is mapped to a game, and the value that it carries; None if it has no effect.

    It is linear. In misère play, what was good for a role is bad for it. (A player tries it as it was, too.)
    """
    if source is None:
        return Mapped(0.0, 0.0, False), None
    names = map_names(source.sheet, game.rulesheet)
    linear = source.value._replace(network=None)
    stored = carried(linear, names, source.sheet, game, is_turned=names.is_misere)
    value = restored_value(game, stored) if stored is not None else None
    if value is not None and not value.virtual_visits(ChampionSettings().growth):
        value = None
    return Mapped(names.score, carried_share(source, names, game), value is not None), value


def carried_share(source: SourceLesson, names: NameMap, game: Game) -> float:
    """Return the share of the absolute weights of a lesson on facts to which facts of a game correspond."""
    facts = list(source.value.weights)
    weights = np.array([np.abs(own).sum() for own in source.value.weights.values()])
    if not weights.sum():
        return 0.0
    columns = np.unique(map_facts(names, source.sheet, game.rulesheet, facts, game.fact_texts).columns)
    return float(weights[columns].sum() / weights.sum())


def play_map_job(job: MapJob, report: Report) -> list[Outcome]:
    """Play the contests of a pair with one teaching."""
    begin, trial = time.perf_counter(), job.trial
    result, game = _contests(trial, job.folder)
    report(trial.setting.size)
    seconds = time.perf_counter() - begin
    return [Outcome(trial, rules_hash=game.rules_hash, engine=game.engine, seconds=seconds, result=result)]


@lru_cache(maxsize=1)
def _target(name: str, seed: int, run: int, walks: int) -> tuple[Game, LinearValue | None]:
    """Return a game, and what a player without memory learns by so many walks; both are kept for the next source."""
    game = load(name)
    key = stream(seed, run, MAP, game.rules_hash)
    teacher = Teacher(game, key, ChampionSettings().growth, TeachingSettings(simulations=walks))
    teacher.teach()
    return game, teacher.value


def _contests(trial: Trial[MapSetting], folder: Path) -> tuple[dict[str, Any], Game]:
    """Return the map, and the scores of the carried value against each of RIVALS, 0 to 1; and the target."""
    setting, run = trial.setting, trial.run
    source = source_lesson(folder, setting.origin, run, setting.study)
    game, rival = _target(setting.game, setting.seed, run, setting.taught)
    about, value = mapped(source, game)
    if source is None or value is None:
        idle = _idle_scores(setting.game, setting.seed, run, setting.taught, setting.walks, setting.rounds)
        return about._asdict() | {"none": [0.5] * setting.rounds, "taught": idle}, game
    key = stream(setting.seed, run, MAP, game.rules_hash, source.sheet.rules_hash)
    scores = {
        name: _scores(game, (value, other), setting.walks, setting.rounds, np.uint64(extend(key, number)))
        for number, (name, other) in enumerate(zip(RIVALS, (None, rival), strict=True))
    }
    return about._asdict() | scores, game


@lru_cache(maxsize=1)
def _idle_scores(name: str, seed: int, run: int, taught: int, walks: int, rounds: int) -> list[float]:
    """Return the scores of a search without a value against one with the value of `_target`."""
    game, rival = _target(name, seed, run, taught)
    return _scores(game, (None, rival), walks, rounds, stream(seed, run, MAP, game.rules_hash, "idle"))


def _scores(
    game: Game, values: tuple[LinearValue | None, LinearValue | None], walks: int, num: int, key: np.uint64
) -> list[float]:
    """Return the scores of the first of two values in a number of rounds of matches."""
    growth = ChampionSettings().growth
    own, other = (side_of(game, value, growth, walks=walks) for value in values)
    rounds = Rounds(game, key, (own, other), RANDOM_PLIES, _SIDE_BY_SIDE)
    most = _MOST_MOVES * max(num, _SIDE_BY_SIDE // 2) * walks  # matches that never end give no scores
    while len(rounds.scores) < num and rounds.walks < most:
        rounds.advance()
    return rounds.scores[:num]


def affordable_walks(game: Game, rounds: int, seconds: float) -> int:
    """Return the largest number of WALKS with which so many rounds take no more CPU seconds; the smallest one anyway.

    They are measured in such rounds, between equal sides without a value.
    """
    _scores(game, (None, None), WALKS[0], 1, np.uint64(0))  # compiles
    for number, walks in enumerate(WALKS):
        begin = time.process_time()
        _scores(game, (None, None), walks, rounds, np.uint64(number))
        if time.process_time() - begin > seconds:
            return WALKS[max(number - 1, 0)]
    return WALKS[-1]


# ---- results ----


def teaching_scores(store: ResultStore, name: str, rival: str) -> list[float]:
    """Return the mean score of each teaching of a setting against a rival, 0 to 1.

    The teachings are the independent samples: the rounds of a teaching share what was learned on both sides.
    """
    return [float(np.mean(result[rival])) for result in store.by_run(name).values() if result[rival]]


def num_effective(store: ResultStore, name: str) -> int:
    """Return the number of teachings of a setting whose carried value had an effect."""
    return sum(result["has_effect"] for result in store.by_run(name).values())


def verdicts(store: ResultStore, name: str) -> list[str]:
    """Return what the player's test decides in the rounds of each teaching: "taken", "refused" or "open".

    There is nothing to decide about a value without effect.
    """
    return [_verdict(result["taught"]) for result in store.by_run(name).values() if result["has_effect"]]


def _verdict(scores: Iterable[float]) -> str:
    """Return the first decision of a test at the level TAKEN_AT, which looks at the evidence after each round."""
    test = BettingTest()
    for score in scores:
        test = test.after(score)
        if test.shows_better(TAKEN_AT) or test.shows_worse(TAKEN_AT):
            return "taken" if test.shows_better(TAKEN_AT) else "refused"
    return "open"


def p_of_teachings(samples: Mapping[str, Sequence[float]], rounds: int, sign: int) -> dict[str, float]:
    """Return p-values by pair of games: t-tests of 1/2 against more (sign 1) or less (sign -1).

    The teachings of all pairs are assumed to scatter alike, so the variance between them is pooled; the few teachings
    of one pair give too few degrees of freedom for thousands of tests. Pairs that scatter more than most seem too
    certain, those near 0 or 1 not certain enough. The deviation counts as at least that of the means of so many rounds,
    PAIR_DEVIATION each.

    Args:
        samples: mean scores of the teachings of each pair against one rival, 0 to 1; at least two of them
    """
    from scipy import stats

    degrees = sum(len(own) - 1 for own in samples.values())
    squares = sum(len(own) * float(np.var(own)) for own in samples.values())
    deviation = max(sqrt(squares / max(degrees, 1)), PAIR_DEVIATION / sqrt(rounds))
    errors = {name: deviation / sqrt(len(own)) for name, own in samples.items()}
    return {
        name: float(stats.t.sf(sign * (np.mean(own) - 0.5) / errors[name], degrees)) for name, own in samples.items()
    }


def significant(values: Mapping[str, float], level: float) -> list[str]:
    """Return the names whose p-values are significant by Benjamini & Hochberg (1995) at a level."""
    from scipy.stats import false_discovery_control

    names = list(values)
    if not names:
        return []
    adjusted = false_discovery_control([values[name] for name in names])
    return [name for name, q in zip(names, adjusted.tolist(), strict=True) if q <= level]
