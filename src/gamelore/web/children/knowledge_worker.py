"""The child process behind the page "Knowledge": it reads a knowledge store, and makes the changes that a person wants.

Each request names the store, and is complete in itself. Nothing is kept between requests except loaded games.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...api.game_lessons import AdviceTest, LessonSummary, lesson_of, readable_summary_of, summary_of
from ...errors import GameloreError, KnowledgeError, counted
from ...game.game import Game, make
from ...gdl.syntax import parse
from ...lab import stats
from ...lab.feature_trees import drawable, feature_text, features_figure, labelled, left_out
from ...lab.figures import TRAILING, svg_text
from ...learning.store.features import FeatureValues
from ...learning.store.knowledge import KnowledgeStore
from ...learning.store.lesson_rows import LESSON, OPENINGS, Lessons, TrialRow
from ...learning.store.schema import GameRow, Origin, StoredLearner, to_json
from ...memory.advice import evidence_of, level_of
from ...net.requests import answer_requests, limits_within, processor_time
from .knowledge_map import (
    Rewards,
    Teaching,
    experiment_teachings,
    family,
    gain,
    has_identity,
    kind_of,
    learner_teachings,
    lesson_teachings,
    rival,
    rows_of_map,
)

if TYPE_CHECKING:
    from ...lab.sequence_text import LearnedPair
    from ...learning.sequences.contexts import ContextPairs

MOST_POINTS = 300  # of a curve
MOST_TREES = 24  # features in a picture
MOST_ROWS = 200  # features or pairs in a table
MOST_LISTED = 20  # weights of a role in a table
MOST_GAMES = 4  # that stay loaded
MOST_SVG = 4_000_000  # characters of a picture


# ---- learners ---------------------------------------------------------------------------------------------------


def _about(stored: StoredLearner) -> dict[str, Any]:
    """Return a learner in a row of a table."""
    return {
        "number": stored.id,
        "game": stored.game,
        "hash": stored.rules_hash,
        "role": stored.role,
        "kind": kind_of(stored),
        "opponent": stored.opponent,
        "sources": ", ".join(dict.fromkeys(source["game"] for source in stored.sources)),
        "matches": stored.num_matches,
        "seed": stored.seed,
        "created": stored.created,
        "version": stored.version,
        "has_sequences": stored.has_sequences,
    }


def _readable(store: KnowledgeStore) -> tuple[list[StoredLearner], list[dict[str, Any]]]:
    """Return the learners of a store, and for each damaged one its `number` and an `error`."""
    with suppress(KnowledgeError):
        return store.learners(), []
    learners, damaged = [], []
    for number in store.numbers():
        try:
            learners.append(store.find(number))
        except KnowledgeError as error:
            damaged.append({"number": number, "error": str(error)})
    return learners, damaged


def _rewards(store: KnowledgeStore, stored: StoredLearner) -> NDArray[np.float64]:
    """Return the rewards of a learner, float64[matches]."""
    return np.array([match.reward for match in store.matches(stored)], np.float64)


def _settings(stored: StoredLearner) -> dict[str, str]:
    """Return the settings of a learner as texts; those within others have names such as "sources.rule"."""
    return dict(_flat("", stored.settings))


def _flat(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(f"{place}.{name}" if place else name, part)
    elif value is not None:
        is_list = isinstance(value, list) and not any(isinstance(part, list | dict) for part in value)
        text = ", ".join(map(str, value)) if is_list else to_json(value)
        yield place, value if isinstance(value, str) else text


def _curve(store: KnowledgeStore, stored: StoredLearner, learners: Sequence[StoredLearner]) -> dict[str, Any]:
    """Return the curve of a learner, with that of all its runs if they are enough for an interval.

    Returns:
        `points` ([match, mean so far, mean of the last `trailing`]), `trailing`, `runs` (learners that differ only in
        the seed), and `band` ([match, mean of all runs, low, high]; empty for too few runs).
    """
    rewards = _rewards(store, stored)
    alike = [other for other in learners if family(other) == family(stored) and other.num_matches]
    trailing = max(1, min(TRAILING, len(rewards) // 5))
    band: list[list[float]] = []
    if len(alike) >= stats.FEWEST_SHOWN:
        num = min(other.num_matches for other in alike)
        curve = stats.mean_curve(np.stack([_rewards(store, other)[:num] for other in alike]))
        band = _thinned(curve.matches, curve.mean, curve.low, curve.high)
    return {
        "points": _points(rewards, trailing) if len(rewards) else [],
        "trailing": trailing,
        "runs": len(alike),
        "band": band,
    }


def _points(rewards: NDArray[np.float64], trailing: int) -> list[list[float]]:
    matches = np.arange(1, len(rewards) + 1)
    sums = np.concatenate([[0.0], np.cumsum(rewards)])
    first = np.maximum(matches - trailing, 0)
    return _thinned(matches, sums[1:] / matches, (sums[matches] - sums[first]) / (matches - first))


def _thinned(matches: NDArray[np.int64], *columns: NDArray[np.float64]) -> list[list[float]]:
    """Return at most MOST_POINTS rows of columns, the first one with the number of the match."""
    kept = np.unique(np.linspace(0, len(matches) - 1, MOST_POINTS).astype(int))
    rows = zip(*(column[kept].round(2).tolist() for column in columns), strict=True)
    return [[match, *row] for match, row in zip(matches[kept].tolist(), rows, strict=True)]


# ---- lessons ----------------------------------------------------------------------------------------------------


def _advice(test: AdviceTest) -> str:
    """Return what was tried, in words."""
    if test.advice == LESSON:
        return f"the values of generation {test.state}" if test.state else "the values carried over from the variant"
    if test.advice == OPENINGS:
        return f"the openings, with {counted(test.state, 'position')}"
    return f"the parameter {test.advice} of the search"


def _why(rows: Sequence[TrialRow], row: TrialRow, verdict: str) -> str:
    """Return in words why matches have led to a verdict about some advice."""
    evidence, needed = evidence_of(row), 1 / level_of(rows, row)
    odds = {"taken": exp(min(evidence.better, 50.0)), "refused": exp(min(evidence.worse, 50.0))}
    if verdict == "open":
        most = max(odds.values())
        return f"too few matches to tell: the evidence is {most:,.1f} to 1, and {needed:,.0f} to 1 is needed"
    word = "better" if verdict == "taken" else "worse"
    if odds[verdict] < needed:
        return f"another test of the same advice has shown that it is {word}"
    return (
        f"the matches show that it is {word}: the evidence is {odds[verdict]:,.0f} to 1, {needed:,.0f} to 1 is needed"
    )


def _lesson_row(lessons: Lessons, key: str) -> GameRow:
    """Return the game with a lesson whose hash begins with a key, or whose name it is."""
    rows = lessons.games()
    for row in rows:
        if key in (row.name, row.rules_hash) or (len(key) >= 8 and row.rules_hash.startswith(key)):
            return row
    names = ", ".join(row.name for row in rows) or "none"
    raise KnowledgeError(f"expected a game with a lesson ({names}), got {key!r}; choose one of these")


# ---- requests ---------------------------------------------------------------------------------------------------


class KnowledgeWorker:
    """The requests of the page. All results are values that JSON can hold.

    memory           bytes for the process
    prepare_seconds  processor time to load a game
    """

    is_lasting = False

    def __init__(self, memory: int, prepare_seconds: float, **_: object) -> None:
        self._limits = limits_within(memory, prepare_seconds)
        self._prepare_seconds = prepare_seconds
        self._games: OrderedDict[str, Game] = OrderedDict()

    def idle(self) -> bool:
        """Do nothing between requests."""
        return False

    # reading

    def overview(self, store: str, folder: str) -> dict[str, Any]:
        """Return what a store holds.

        Args:
            store: path of the store; the file need not exist
            folder: folder of the pages, below which experiments have their results

        Returns:
            `path`, `size` in bytes, `learners` (see `_about`), `lessons` (see `LessonSummary`), `damaged` (texts, each
            with the `number` of a learner), `games` (`key`, `name`, `learners`, `lessons`, in rows as on the map),
            `num_games`, and `teachings` (see `Teaching`).
        """
        learners, summaries, damaged, size = list[StoredLearner](), list[LessonSummary](), list[dict[str, Any]](), 0
        teachings = list(experiment_teachings(Path(folder)))
        if Path(store).exists():
            with _opened(store) as opened:
                size = opened.size
                learners, damaged = _readable(opened)
                lessons = Lessons(opened)
                told = [readable_summary_of(lessons, row) for row in lessons.games()]
                summaries = [summary for summary in told if not summary.damage]
                damaged += [{"number": None, "error": summary.damage} for summary in told if summary.damage]
                taught = learner_teachings(learners, partial(_rewards, opened))
                teachings = [*taught, *lesson_teachings(lessons, summaries), *teachings]
        names = _names(learners, summaries, teachings)
        rows = rows_of_map(list(names), [(teaching.teacher, teaching.pupil) for teaching in teachings])
        return {
            "path": store,
            "size": size,
            "learners": list(map(_about, learners)),
            "lessons": list(map(asdict, summaries)),
            "damaged": damaged,
            "games": [[_node(key, names[key], learners, summaries) for key in row] for row in rows],
            "num_games": len(names),
            "teachings": [teaching._asdict() for teaching in teachings],
        }

    def learner(self, store: str, number: int) -> dict[str, Any]:
        """Return a learner.

        Returns:
            What `_about` has, `settings`, `curve`, the `mean` reward and the mean number of `plies` of a match (None
            without a match), `teachers`, `pupils`, and `siblings` (learners that differ only in the seed).
        """
        with _opened(store) as opened:
            stored, (learners, _) = opened.find(number), _readable(opened)
            matches = opened.matches(stored)
            return {
                **_about(stored),
                "settings": _settings(stored),
                "curve": _curve(opened, stored, learners),
                "mean": float(np.mean([match.reward for match in matches])) if matches else None,
                "plies": float(np.mean([match.length for match in matches])) if matches else None,
                "teachers": [_teacher(source, learners) for source in stored.sources],
                "pupils": [
                    _about(other) for other in learners if any(has_identity(stored, own) for own in other.sources)
                ],
                "siblings": [
                    _about(other) for other in learners if family(other) == family(stored) and other.id != stored.id
                ],
            }

    def features(self, store: str, number: int) -> dict[str, Any]:
        """Return the features of a learner of values, those with most visits first.

        Returns:
            `columns` (a learner for each opponent, see `_about`; the first is this one), `rows` (`label`, `feature`,
            `tree` in box characters or None, `visits`, and `value0`, `value1` .. of the columns, None if unknown),
            `num` (of all features) and `left_out` (why some have no tree, or "").
        """
        columns, values = self._compared_features(store, number)
        own = sorted(values[0], key=lambda text: (-values[0][text][1], text))
        rows = labelled((text, {}) for text in own)
        trees = {feature.text for feature in drawable(rows)[:MOST_ROWS]}
        return {
            "columns": list(map(_about, columns)),
            "rows": [
                {
                    "label": row.label,
                    "feature": row.text,
                    "tree": feature_text(row.text) if row.text in trees else None,
                    "visits": values[0][row.text][1],
                    **{f"value{i}": _value(table, row.text) for i, table in enumerate(values)},
                }
                for row in rows[:MOST_ROWS]
            ],
            "num": len(own),
            "left_out": left_out(len(own) - len(trees), len(own)) if len(trees) < len(own) else "",
        }

    def feature_picture(self, store: str, number: int) -> str:
        """Return a picture of the most visited features of a learner with their values; "" for no feature."""
        columns, values = self._compared_features(store, number)
        own = sorted(values[0], key=lambda text: (-values[0][text][1], text))
        names = _opponents(columns)
        features = labelled(
            (text, {name: table[text][0] for name, table in zip(names, values, strict=True) if text in table})
            for text in own
        )
        drawn = drawable(features)[:MOST_TREES]
        title = f"{columns[0].game}, {columns[0].role}"
        return _bounded(svg_text(features_figure(drawn, title=title))) if drawn else ""

    def sequences(self, store: str, number: int, role: str | None = None, top: int = 6) -> dict[str, Any]:
        """Return what a learner of sequences has learned.

        Args:
            store: path of the store
            number: of the learner
            role: only pairs that advise this role; None for all
            top: number of pairs that are drawn

        Returns:
            `num_sequences`, `num_pairs`, `classes` ([lowest weight, number of pairs]), `roles`, `pairs` (the best ones
            in rows of a table) and `svg` (the first `top` of them on boards).
        """
        from ...lab.sequence_pictures import pairs_figure
        from ...lab.sequence_text import best
        from ...learning.sequences.seqplayer import weight_classes

        with _opened(store) as opened:
            stored = opened.find(number)
            game, pairs = self._pairs(opened, stored)
            with opened.reported() as connection:
                query = "SELECT count(*) FROM sequence WHERE learner = ?"
                (num_sequences,) = connection.execute(query, [number]).fetchone()
        chosen = best(pairs, MOST_ROWS, role=role)
        drawn = [part for label, pair in enumerate(chosen[:top], 1) for part in pair.drawn(str(label))]
        return {
            "num_sequences": num_sequences,
            "num_pairs": len(pairs),
            "classes": weight_classes(pairs.weights),
            "roles": list(game.roles),
            "pairs": [_pair_row(label, pair) for label, pair in enumerate(chosen, 1)],
            "svg": _bounded(svg_text(pairs_figure(game, drawn))) if drawn else "",
        }

    def lesson(self, store: str, key: str) -> dict[str, Any]:
        """Return a lesson about a game.

        Args:
            store: path of the store
            key: hash of the rules, the beginning of one, or the name of the game

        Returns:
            The fields of `LessonSummary`, and `roles`, `simulations`, `informed`, `likeness`, `generations`,
            `fidelity`, `tests` (`what`, `against`, `rounds`, `score`, `verdict`, `why`), `opponents`, `weights` (the
            largest ones of each role) and `svg` (the weights on boards; "" for none).
        """
        with _opened(store) as opened:
            lessons = Lessons(opened)
            row = _lesson_row(lessons, key)
            summary, rows = summary_of(lessons, row), lessons.trials(row.rules_hash)
            game = self._game(row.name, row.rules, row.rules_hash)
            lesson = lesson_of(game, lessons)
        return {
            **asdict(summary),
            "roles": list(game.roles),
            "simulations": lesson.simulations,
            "informed": lesson.informed,
            "has_own_value": lesson.has_own_value,
            "likeness": lesson.variant[1] if lesson.variant else None,
            "fidelity": lesson.fidelity,
            "generations": [generation._asdict() for generation in lesson.generations],
            "tests": list(_tests(rows, lesson.tests)),
            "opponents": {role: dict(posterior) for role, posterior in lesson.opponents.items()},
            "weights": list(_largest(lesson.weights)),
            "svg": _bounded(lesson.svg) if any(lesson.weights.values()) else "",
        }

    def compare(self, store: str, left: int, right: int) -> dict[str, Any]:
        """Return two learners side by side.

        Returns:
            `learners` (see `_about`), `settings` ([name, left, right] of those that differ), `num_equal` (settings),
            `curves`, `difference` (in words), and `features` and `pairs` (rows; None if they cannot be compared).
        """
        with _opened(store) as opened:
            both, (learners, _) = [opened.find(number) for number in (left, right)], _readable(opened)
            settings = [_settings(stored) | _identity(stored) for stored in both]
            names = list(dict.fromkeys(name for own in settings for name in own))
            differing = [name for name in names if settings[0].get(name) != settings[1].get(name)]
            are_values = not any(stored.has_sequences for stored in both)
            are_sequences = all(stored.has_sequences for stored in both) and both[0].rules_hash == both[1].rules_hash
            return {
                "learners": list(map(_about, both)),
                "settings": [[name, *(own.get(name, "-") for own in settings)] for name in differing],
                "num_equal": len(names) - len(differing),
                "curves": [_curve(opened, stored, learners) for stored in both],
                "difference": _difference(both, learners, partial(_rewards, opened)),
                "features": _side_by_side(*(self._values(opened, own) for own in both)) if are_values else None,
                "pairs": self._common_pairs(opened, both) if are_sequences else None,
            }

    def check(self, store: str) -> list[str]:
        """Return what is wrong with a store, a text for each problem."""
        from ...learning.exchange import problems

        with _opened(store) as opened:
            return list(problems(opened))

    # export, import, deletion

    def export(self, store: str, most_bytes: int, numbers: Sequence[int] = (), lessons: Sequence[str] = ()) -> str:
        """Return learners or lessons as the text of an exported file.

        Args:
            store: path of the store
            most_bytes: largest size of the file
            numbers: of the learners
            lessons: hashes of the rules of the games, if no learners are wanted

        Raises:
            KnowledgeError: the file would be larger, or something in it is wrong.
        """
        from ...learning.exchange import export_learners
        from ...learning.lesson_exchange import export_lessons

        with _opened(store) as opened, TemporaryDirectory() as folder:
            file = Path(folder, "export.json")
            if numbers:
                export_learners(opened, file, numbers)
            else:
                export_lessons(Lessons(opened), file, lessons)
            if (size := file.stat().st_size) > most_bytes:
                which = " ".join(map(str, numbers)) if len(numbers) <= 5 else "NUMBER .."
                command = f"knowledge export FILE {which}" if numbers else "lessons export FILE"
                raise KnowledgeError(
                    f"expected an export of at most {_megabytes(most_bytes)}, got {_megabytes(size)}; choose fewer, or "
                    f"use the command: gamelore {command} --knowledge {store}"
                )
            return file.read_text(encoding="utf-8")

    def add(self, store: str, text: str, name: str) -> dict[str, Any]:
        """Add what an exported file has to a store, which is created if there is none.

        Args:
            store: path of the store
            text: text of the file
            name: name of the file in messages

        Returns:
            `what` ("learners" or "lessons"), `num` (in the file), and in words `new`, `longer` and `same`: those that
            the store did not have, that replaced what was learned less, and that changed nothing.
        """
        from ...learning.exchange import import_learners
        from ...learning.lesson_exchange import import_lessons

        with KnowledgeStore(store) as opened, TemporaryDirectory() as folder:
            file = Path(folder, "import.json")
            file.write_text(text, encoding="utf-8")
            are_lessons, num = _kind_of_file(text)
            before = _contents(opened, are_lessons)
            try:
                import_lessons(Lessons(opened), file) if are_lessons else import_learners(opened, file)
            except GameloreError as error:
                raise KnowledgeError(f"{name}: {str(error).removeprefix(f'{file}: ')}") from error
            after = _contents(opened, are_lessons)
        new = [after[key][1] for key in after.keys() - before.keys()]
        longer = [after[key][1] for key in after.keys() & before.keys() if after[key][0] > before[key][0]]
        same = num - len(new) - len(longer)
        what = "lessons" if are_lessons else "learners"
        return {"what": what, "num": num, "new": sorted(new), "longer": sorted(longer), "same": max(0, same)}

    def delete(self, store: str, learners: Mapping[str, str], lessons: Sequence[str] = ()) -> str:
        """Delete learners, and lessons about games; return in words what was deleted.

        Args:
            store: path of the store
            learners: number -> `created`, so that no other learner that has the number now is deleted; "" if unknown
            lessons: hashes of the rules of the games

        Raises:
            KnowledgeError: the store has other learners; nothing is deleted then.
        """
        with KnowledgeStore(store, create=False) as opened:
            for number, created in learners.items():
                if created and opened.find(int(number)).created != created:
                    raise KnowledgeError(
                        f"expected learner {number} as the page shows it, got another one; read the store again"
                    )
            deleted = opened.delete([int(number) for number in learners]) if learners else []
            num_lessons = sum(Lessons(opened).delete(rules_hash) for rules_hash in lessons)
        parts = [counted(len(deleted), "learner")] * bool(learners) + [counted(num_lessons, "lesson")] * bool(lessons)
        return f"deleted {' and '.join(parts)}"

    # parts of the requests

    def _game(self, name: str, rules: str, rules_hash: str) -> Game:
        """Return a game, loaded within the limits."""
        if rules_hash not in self._games:
            with processor_time(self._prepare_seconds):
                self._games[rules_hash] = make(parse(rules), name, limits=self._limits)
            while len(self._games) > MOST_GAMES:
                self._games.popitem(last=False)
        return self._games[rules_hash]

    def _values(self, opened: KnowledgeStore, stored: StoredLearner) -> FeatureValues:
        """Return the feature values of a learner, computed now if it was interrupted before it computed them."""
        if stored.features_at == stored.num_matches:
            return opened.feature_values(stored)
        from ...learning.sources import computed_features

        return computed_features(opened, stored, limits=self._limits)

    def _compared_features(self, store: str, number: int) -> tuple[list[StoredLearner], list[FeatureValues]]:
        """Return a learner and those of its game and role against other opponents, with their feature values."""
        with _opened(store) as opened:
            stored, (learners, _) = opened.find(number), _readable(opened)
            columns = [stored, *_of_other_opponents(stored, learners)]
            values = [self._values(opened, stored), *(opened.feature_values(other) for other in columns[1:])]
        return columns, values

    def _pairs(self, opened: KnowledgeStore, stored: StoredLearner) -> tuple[Game, ContextPairs]:
        """Return the game and the pairs of a learner of sequences."""
        from ...learning.session import load_learner

        game = self._game(stored.game, opened.rules(stored), stored.rules_hash)
        return game, load_learner(opened, stored, game, only_pairs=True).pairs

    def _common_pairs(self, opened: KnowledgeStore, both: Sequence[StoredLearner]) -> dict[str, Any]:
        """Return the pairs that two learners of a game have both, those whose weights differ most first."""
        from ...lab.sequence_text import best

        each = [self._pairs(opened, stored)[1] for stored in both]
        left, right = ({pair[:3]: pair for pair in best(pairs, len(pairs))} for pairs in each)
        shared = sorted(left.keys() & right.keys(), key=lambda key: -abs(left[key].weight - right[key].weight))
        return {
            "only": [len(left) - len(shared), len(right) - len(shared)],
            "both": len(shared),
            "rows": [
                {**_pair_row(number, left[key]), "left": left[key].weight, "right": right[key].weight}
                for number, key in enumerate(shared[:MOST_LISTED], 1)
            ],
        }


@contextmanager
def _opened(store: str) -> Iterator[KnowledgeStore]:
    """Open a store to read it, in one transaction."""
    with KnowledgeStore(store, create=False, writable=False) as opened, opened.reading():
        yield opened


def _names(
    learners: Iterable[StoredLearner], lessons: Iterable[LessonSummary], teachings: Iterable[Teaching]
) -> dict[str, str]:
    """Return the names of all games by their keys, those of the store first."""
    names = {learner.rules_hash: learner.game for learner in learners}
    names |= {lesson.rules_hash: lesson.game for lesson in lessons}
    for teaching in teachings:
        for key, name in zip((teaching.teacher, teaching.pupil), teaching.names, strict=True):
            names.setdefault(key, name)
    return names


def _node(key: str, name: str, learners: Sequence[StoredLearner], lessons: Sequence[LessonSummary]) -> dict[str, Any]:
    """Return a game of the map."""
    num_learners = sum(learner.rules_hash == key for learner in learners)
    num_lessons = sum(lesson.rules_hash == key for lesson in lessons)
    return {"key": key, "name": name, "learners": num_learners, "lessons": num_lessons}


def _teacher(source: Origin, learners: Sequence[StoredLearner]) -> dict[str, Any]:
    """Return a learner from which another one had knowledge; `number` is None if it is not in the store any more."""
    number = next((learner.id for learner in learners if has_identity(learner, source)), None)
    about = {name: source[name] for name in ("game", "role", "opponent", "seed")}
    return {**about, "number": number, "matches": source["num_matches"]}


def _of_other_opponents(stored: StoredLearner, learners: Sequence[StoredLearner]) -> list[StoredLearner]:
    """Return for each other opponent in the same role of the game the learner with most matches."""
    others: dict[str, StoredLearner] = {}
    for learner in sorted(learners, key=lambda learner: learner.num_matches):
        is_alike = (learner.rules_hash, learner.role, learner.depth) == (stored.rules_hash, stored.role, stored.depth)
        if is_alike and learner.opponent != stored.opponent and learner.features_at:
            others[learner.opponent] = learner
    return list(others.values())


def _opponents(columns: Sequence[StoredLearner]) -> list[str]:
    """Return a short name of the opponent of each learner, different ones."""
    kinds = [learner.opponent.partition(":")[0] for learner in columns]
    return [
        kind if kinds.count(kind) == 1 else f"{kind} ({learner.id})"
        for kind, learner in zip(kinds, columns, strict=True)
    ]


def _value(table: FeatureValues, feature: str) -> float | None:
    return table[feature][0] if feature in table else None


def _side_by_side(left: FeatureValues, right: FeatureValues) -> list[dict[str, Any]]:
    """Return the features of two learners with both values; those that both have come first."""
    visits = {text: sum(own[text][1] for own in (left, right) if text in own) for text in (*left, *right)}
    order = sorted(visits, key=lambda text: (not (text in left and text in right), -visits[text], text))
    trees = {feature.text for feature in drawable(labelled((text, {}) for text in order))}
    return [
        {
            "feature": text,
            "tree": feature_text(text) if text in trees else None,
            "left": _value(left, text),
            "right": _value(right, text),
            "difference": right[text][0] - left[text][0] if text in left and text in right else None,
        }
        for text in order[:MOST_ROWS]
    ]


def _difference(both: Sequence[StoredLearner], learners: Sequence[StoredLearner], rewards: Rewards) -> str:
    """Return in words by how much the second learner earns more than the first one."""
    left, right = both
    if left.has_sequences or right.has_sequences:
        return "learners of sequences watch matches of others, so their rewards are not their own"
    if (left.rules_hash, left.role) != (right.rules_hash, right.role):
        return "they learned different games or roles, so their rewards cannot be compared"
    is_family = family(left) == family(right)
    groups = [[own] if is_family else [other for other in learners if family(other) == family(own)] for own in both]
    ours, theirs = (
        {0 if is_family else own.seed: rewards(own) for own in group if own.num_matches} for group in groups
    )
    if not ours or not theirs:
        return "one of them has no match yet"
    return str(gain(theirs, ours)["text"])


def _identity(stored: StoredLearner) -> dict[str, str]:
    """Return what identifies a learner besides its settings."""
    return {
        "game": stored.game,
        "role": stored.role,
        "opponent": stored.opponent,
        "seed": str(stored.seed),
        "matches": str(stored.num_matches),
    }


def _pair_row(label: int, pair: LearnedPair) -> dict[str, Any]:
    """Return a pair as a row of a table."""
    return {
        "label": label,
        "role": pair.role,
        "weight": round(pair.weight, 3),
        "agreed": f"{pair.agreements:.0f} of {pair.comments:.0f}",
        "succeeded": f"{pair.successes:g} of {pair.tries:.0f}",
        "context": " ".join(sorted(pair.context)),
        "moves": "; ".join(", ".join(f"{role} {move}" for role, move in moves) for _, moves in pair.branches),
    }


def _tests(rows: Sequence[TrialRow], tests: Iterable[AdviceTest]) -> Iterator[dict[str, Any]]:
    """Yield the tests of advice in words."""
    by_name = {row[:3]: row for row in rows}
    for test in tests:
        row = by_name[test.advice, test.state, test.against]
        yield {
            "what": _advice(test),
            "against": f"the same player {rival(test.against)}",
            "rounds": test.rounds,
            "score": test.score,
            "verdict": test.verdict,
            "why": _why(rows, row, test.verdict),
        }


def _largest(weights: Mapping[str, Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    """Yield the largest weights of each role."""
    for role, own in weights.items():
        for fact, weight in sorted(own.items(), key=lambda item: -abs(item[1]))[:MOST_LISTED]:
            yield {"role": role, "fact": fact, "weight": round(weight, 1)}


def _bounded(svg: str) -> str:
    """Return a picture, or a GameloreError for one that a browser cannot show in good time."""
    if len(svg) > MOST_SVG:
        raise GameloreError(
            f"expected a picture of at most {MOST_SVG:,} characters, got {len(svg):,}; gamelore knowledge show --draw "
            "FILE and gamelore lessons show --svg FILE draw large ones"
        )
    return svg


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


class _FileHead(msgspec.Struct):
    """What tells the kind of an exported file, and how much it has."""

    format: str = ""
    learners: list[msgspec.Raw] = []
    lessons: list[msgspec.Raw] = []


def _kind_of_file(text: str) -> tuple[bool, int]:
    """Return whether a file has lessons, and how many lessons or learners; the import refuses other files."""
    from ...learning.lesson_exchange import FORMAT_NAME

    try:
        head = msgspec.json.decode(text, type=_FileHead)
    except (msgspec.MsgspecError, RecursionError):
        return False, 0
    are_lessons = head.format == FORMAT_NAME
    return are_lessons, len(head.lessons if are_lessons else head.learners)


def _contents(store: KnowledgeStore, are_lessons: bool) -> dict[Any, tuple[float, str]]:
    """Return the lessons or learners of a store: identity -> (how much was learned, name)."""
    if not are_lessons:
        return {
            (*family(own), own.seed): (own.num_matches, f"learner {own.id} ({own.game}, {own.role})")
            for own in _readable(store)[0]
        }
    lessons = Lessons(store)
    states = {row.rules_hash: (lessons.state(row.rules_hash), row.name) for row in lessons.games()}
    return {key: (state[1], name) for key, (state, name) in states.items() if state is not None}


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(KnowledgeWorker)


if __name__ == "__main__":
    main()
