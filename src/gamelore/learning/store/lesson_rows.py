"""Lessons in a knowledge store: what the player gamelore has learned about a game, generation by generation.

The tables with their columns. Facts and moves have the numbers that the store gives them:

    lesson   game, id, version, created,        the present state of teaching, see search/teaching.py. id: random digits
             updated, generation, rounds,       that stay as long as the lesson goes on; informed: the decision of the
             walks, seconds, informed,          trial of playouts, or -1; origin: rules hash of the variant whose lesson
             origin, likeness, shapes,          was the start, or "", and likeness: the score of the map; shapes: see
             progress                           `analysis.variants.rule_shapes`, uint64; progress: what the next round
                                                needs beside the value, in the form of memory/lesson.py
    taught   game, pupil, number, walks,        values, with the playouts that go with them. pupil: LESSON, with the
             seconds, determination,            number of the generation, from 1 on, and the value of a variant as 0; or
             foresight, informed, constants,    a rival, see memory/advice.py, numbered 0, 1, ..; constants: JSON, a
             weights                            number for each role; weights: JSON, fact -> a weight for each role
    opening  game, state, role, move, visits,   positions that were searched long: the moves of the role that has a
             value                              choice there, with their visits and values, 0 to 100
    played   game, number, id, role,            matches against others: id and role of the player are unique; moves:
             startclock, moves, goals, created  JSON, the joint moves; goals: JSON, those of all roles
    trial    game, lesson, advice, number,      evidence for or against advice, see memory/evidence.py. lesson: the id
             against, num, total, squares,      of the present lesson at that time and the version of gamelore, so that
             better, worse                      tests of others do not count; number: the state of the advice that was
                                                tried; against: its rival
    fit      game, number, role, player,        how well the policy of a known player fits the moves of the opponent
             log, mean, variance                with this role in the match of this number, see `PolicyFit`
    described  game, descriptors                descriptors: JSON, numbers by name, see memory/descriptors.py

A lesson is stored in one transaction with all that the next round needs. Several processes can teach the same game. One
that has taught less finds that another was faster, and goes on from there.
"""

from __future__ import annotations

import secrets
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from ...analysis.variants import rule_shapes
from ...errors import DamagedLessonError, in_a_line
from ...gdl.syntax import Rulesheet, printable
from ...ground.clingo import MAX_GOAL
from ...ground.program import Words
from .knowledge import FactNumbers, KnowledgeStore, drop_unused_games, put_game
from .schema import (
    LESSON_TABLES,
    Count,
    GameRow,
    Index,
    JointMove,
    Line,
    Real,
    Small,
    Weight,
    from_json,
    to_json,
    typed,
    typed_by_game,
    unpacked,
)
from .taught_rows import (
    NOTHING,
    UNDECIDED,
    GenerationRow,
    Share,
    StoredValue,
    Taught,
    decided,
    delete_values,
    generations_of,
    put_rows,
    put_values,
    values_of,
)

if TYPE_CHECKING:
    from ...game.game import Game

Role = Annotated[int, Meta(ge=0, le=1000)]
LESSON = "lesson"
"""The pupil that is the lesson itself."""
OPENINGS = "openings"
"""The advice that is the book of openings."""
VARIANT = "variant"
"""The advice in the ledger that is the value of a variant."""
WITHOUT = "without"
"""The rival of advice that no startclock can give: the same player without it."""

Stored: TypeAlias = Literal["stored", "same", "behind"]
"""What became of a lesson: "same" if the store has it already, "behind" if the store has one that was taught longer, or
not any more the lesson that it would replace."""


def _state_number(generation: int, decision: float | None) -> int:
    """Return the number of the value of a lesson in this generation, see `StoredLesson.snapshot`."""
    return generation + (decision is not None)


def new_id() -> str:
    """Return an id that no other lesson has."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class StoredLesson:
    """A lesson as the store has it.

    generation  number of the present generation
    rounds      number of rounds of moves so far
    walks       number of walks so far
    seconds     CPU seconds of teaching so far
    value       what the last generation has taught; in the first one, the value of a variant, or NOTHING
    progress    what the next round needs beside the value; b"" to begin the generation anew
    origin      rules hash of the variant whose lesson was the start, see memory/retrieval.py; "" for none
    likeness    score of the map from this variant, 0 to 1
    id          stays as long as the lesson goes on; "" for that of the lesson before, or a new one
    """

    generation: int
    rounds: int
    walks: int
    seconds: float
    value: StoredValue
    progress: bytes = b""
    origin: str = ""
    likeness: float = 0.0
    id: str = ""
    version: str = ""
    created: str = ""
    updated: str = ""

    @property
    def snapshot(self) -> int:
        """Number of the value among all values of the lesson; -1 if there is no value.

        It is 0 for that of a variant, and else the number of generations that have ended, plus 1 after a decision about
        playouts.
        """
        return _state_number(self.generation, self.decision) if self.value.constants else -1

    @property
    def decision(self) -> float | None:
        """What the trial of the lesson has decided about informed playouts; None if it has not."""
        return self.value.informed if self.generation else None


class KeptLesson(NamedTuple):
    """All that a store has about a game from searches.

    taught       values by pupil
    openings     by the facts of their positions
    descriptors  of the game, by name; {} for none
    """

    lesson: StoredLesson
    taught: Mapping[str, Sequence[Taught]]
    openings: Mapping[frozenset[str], Sequence[OpeningMove]]
    matches: Sequence[PlayedMatch]
    trials: Sequence[TrialRow]
    descriptors: Mapping[str, float]


class RememberedGame(Protocol):
    """What a store needs to know of a game; a `Game` has it."""

    @property
    def rules_hash(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def roles(self) -> Sequence[str]: ...
    @property
    def rulesheet(self) -> Rulesheet: ...


class PolicyFit(NamedTuple):
    """How well the policy of a known player fits moves, see memory/recogniser.py.

    log             sum of the logarithms of the probabilities of the moves
    mean, variance  of this sum, if the player had made the moves
    """

    player: Line
    log: Real
    mean: Real
    variance: Weight


class LedgerRow(NamedTuple):
    """Scores of a kind of advice in a game, over all of its states.

    advice   as in `TrialRow`; VARIANT for the value of a variant, which is the state 0 of a lesson
    num      number of rounds
    total    sum of their scores, each from 0 to 1
    """

    rules_hash: Line
    name: Line
    advice: Line
    against: Line
    num: Count
    total: Weight


class _LessonCells(NamedTuple):
    id: Line
    version: Line
    created: Line
    updated: Line
    generation: Small
    rounds: Count
    walks: Count
    seconds: Weight
    informed: Real
    origin: str
    likeness: Share
    progress: bytes


class OpeningMove(NamedTuple):
    """What a long search of a position has found about a move: its visits, and its value for the role, 0 to 100."""

    role: Role
    move: Line
    visits: Count
    value: Annotated[float, Meta(ge=0, le=100)]


class _OpeningCells(NamedTuple):
    state: bytes
    role: Role
    move: Index
    visits: Count
    value: Annotated[float, Meta(ge=0, le=100)]


class PlayedMatch(NamedTuple):
    """A match against others.

    id          unique among the matches of a role
    role        number of the role of the player
    startclock  in seconds
    moves       the joint moves as texts
    goals       of all roles, -1 for none
    """

    id: Line
    role: Role
    startclock: Small
    moves: tuple[JointMove, ...]
    goals: tuple[Annotated[int, Meta(ge=-1, le=MAX_GOAL)], ...]


class _PlayedCells(NamedTuple):
    number: Small
    id: Line
    role: Role
    startclock: Small
    moves: str
    goals: str


class _FitCells(NamedTuple):
    number: Small
    role: Role
    player: Line
    log: Real
    mean: Real
    variance: Weight


class TrialRow(NamedTuple):
    """Evidence about the state `number` of some advice against a rival, see `memory.evidence.BettingTest`."""

    advice: Line
    number: Small
    against: Line
    num: Count = 0
    total: Weight = 0.0
    squares: Weight = 0.0
    better: Real = 0.0
    worse: Real = 0.0


_version = cache(version)  # which takes a millisecond
_LESSON = (
    "SELECT id, version, created, updated, generation, rounds, walks, seconds, informed, origin, likeness, progress "
    "FROM lesson WHERE game = ?"
)
_WALKS = (
    f"SELECT walks, informed, EXISTS (SELECT 1 FROM taught WHERE game = lesson.game AND pupil = '{LESSON}'), "
    "created, id FROM lesson WHERE game = ?"
)
_OPENINGS = "SELECT state, role, move, visits, value FROM opening WHERE game = ? ORDER BY state, move"
_PLAYED_CELLS = "SELECT number, id, role, startclock, moves, goals FROM played WHERE game = ?"
_PLAYED = f"{_PLAYED_CELLS} ORDER BY number DESC LIMIT ?"
_FIRST_GOAL = "CASE WHEN json_valid(goals) THEN json_extract(goals, '$[0]') END"
_BEST = f"{_PLAYED_CELLS} AND {_FIRST_GOAL} > 0 ORDER BY {_FIRST_GOAL} DESC, number LIMIT ?"
_TRIALS = f"SELECT {', '.join(TrialRow._fields)} FROM trial WHERE game = ? AND lesson = ?"


class Lessons:
    """The lessons in an open store. Games are named by `Game.rules_hash`.

    Args:
        knowledge: store
        quota: maximum size of the store in bytes; None for no maximum
    """

    def __init__(self, knowledge: KnowledgeStore, quota: int | None = None) -> None:
        self.knowledge, self._quota = knowledge, quota
        self._numbers = FactNumbers()

    @property
    def is_full(self) -> bool:
        """Whether the store has reached its maximum size."""
        return self._quota is not None and self.knowledge.size > self._quota

    # lessons

    def find(self, rules_hash: str) -> StoredLesson | None:
        """Return the lesson of a game; None if the store has none."""
        with self._reading(rules_hash) as (connection, game):
            row = connection.execute(_LESSON, [game]).fetchone()
            if row is None:
                return None
            (cells,) = typed([row], _LessonCells)
            number = _state_number(cells.generation, decided(cells.informed) if cells.generation else None)
            # another process that was ahead for a time may have stored newer states
            values = values_of(connection, game, LESSON, number) or values_of(connection, game, LESSON, "newest")
            value = values[0].value if values else NOTHING
            taught = cells.generation, cells.rounds, cells.walks, cells.seconds
            value = value._replace(informed=decided(cells.informed)) if cells.generation else value
            return StoredLesson(*taught, value, cells.progress, cells.origin, cells.likeness, *cells[:4])

    def state(self, rules_hash: str) -> tuple[str, int] | None:
        """Return the id of the lesson of a game and the number of its walks; None if the store has no lesson."""
        with self._reading(rules_hash) as (connection, game):
            rows = connection.execute("SELECT id, walks FROM lesson WHERE game = ?", [game])
            return next(iter(typed(rows, tuple[Line, Count])), None)

    def put(self, game: Game, lesson: StoredLesson, replaces: str | None = None) -> Stored:
        """Store a lesson in place of the one before, unless that has more walks, or as many and the same decision.

        A lesson without a value makes way for any with one. The values of the generations before stay if the lesson
        before has the same id.

        Args:
            game: game of the lesson
            lesson: the lesson
            replaces: id of the lesson that it may replace, or "" if the store must have none; None: a lesson with an id
                replaces only itself, and one without an id any

        Returns:
            "behind" also where the store has another lesson than the one to replace, or none because it was deleted.
        """
        replaced = replaces if replaces is not None else lesson.id or None
        shapes = rule_shapes(game.rulesheet).tobytes()
        with self._writing(game) as (connection, number):
            before = connection.execute(_WALKS, [number]).fetchone()
            informed = UNDECIDED if lesson.decision is None else lesson.decision
            if replaced is not None and replaced != (before[-1] if before is not None else ""):
                return "behind"
            if before is not None and before[0] >= lesson.walks and (before[2] or lesson.snapshot < 0):
                if before[0] > lesson.walks:
                    return "behind"
                if before[1] == informed:
                    return "same"
            self._put(connection, number, shapes, lesson, before)
        return "stored"

    def _put(
        self,
        connection: sqlite3.Connection,
        number: int,
        shapes: bytes,
        lesson: StoredLesson,
        before: tuple[int, float, bool, str, str] | None,
    ) -> None:
        """Write the rows of a lesson. `before`: those cells of the lesson before that `_WALKS` reads."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        created, former = before[3:] if before is not None else (now, new_id())
        made = lesson.version or version("gamelore"), lesson.created or created, lesson.updated or now
        own = lesson.id or former
        if own != former:
            delete_values(connection, number, LESSON)
        taught = lesson.generation, lesson.rounds, lesson.walks, lesson.seconds
        informed = UNDECIDED if lesson.decision is None else lesson.decision
        variant = lesson.origin, lesson.likeness, shapes
        row = (number, own, *made, *taught, informed, *variant, lesson.progress)
        put_rows(connection, "lesson", [row])
        if lesson.snapshot >= 0:
            added = Taught(lesson.snapshot, lesson.walks, lesson.seconds, lesson.value)
            put_values(connection, number, LESSON, [added], "IGNORE")

    def games(self) -> list[GameRow]:
        """Return all games that have a lesson, oldest first."""
        query = "SELECT name, rules_hash, rules FROM game WHERE id IN (SELECT game FROM lesson) ORDER BY id"
        with self.knowledge.reading() as connection:
            return typed(connection.execute(query), GameRow)

    def game(self, rules_hash: str) -> GameRow | None:
        """Return the name and the rules of a game; None if the store lacks it."""
        query = "SELECT name, rules_hash, rules FROM game WHERE rules_hash = ?"
        with naming_lesson(self.knowledge, rules_hash), self.knowledge.reading() as connection:
            return next(iter(typed(connection.execute(query, [rules_hash]), GameRow)), None)

    def roles(self, rules_hash: str) -> list[str]:
        """Return the roles of a game; [] if the store lacks it."""
        with self._reading(rules_hash) as (connection, game):
            row = connection.execute("SELECT roles FROM game WHERE id = ?", [game]).fetchone()
            return msgspec.convert(from_json(row[0]), list[Line]) if row is not None else []

    def shapes(self) -> dict[str, Words]:
        """Return the shapes of the rules of all games whose lesson has a value, by hash; damaged ones are left out."""
        query = (
            "SELECT rules_hash, shapes FROM lesson JOIN game ON game.id = lesson.game "
            "WHERE lesson.game IN (SELECT game FROM taught WHERE pupil = ?)"
        )
        with self.knowledge.reading() as connection:
            rows = typed_by_game(connection.execute(query, [LESSON]), tuple[Line, bytes])
        return {rules_hash: np.frombuffer(shapes[: len(shapes) // 8 * 8], np.uint64) for rules_hash, shapes in rows}

    def delete(self, rules_hash: str) -> bool:
        """Delete the lesson about a game, with its openings, tests and matches; return whether there was one."""
        self._numbers.forget()
        with self.knowledge.writing() as connection:
            row = connection.execute("SELECT id FROM game WHERE rules_hash = ?", [rules_hash]).fetchone()
            if row is None:
                return False
            num = 0
            for table in LESSON_TABLES:
                num += connection.execute(f"DELETE FROM {table} WHERE game = ?", row).rowcount
            drop_unused_games(connection)
        return num > 0

    def kept(self, rules_hash: str) -> KeptLesson | None:
        """Return all that the store has about a game; None if it has no lesson."""
        with self.knowledge.reading():  # all of it as it was at one moment
            lesson = self.find(rules_hash)
            if lesson is None:
                return None
            taught = {pupil: self.taught(rules_hash, pupil) for pupil in self.pupils(rules_hash)}
            openings, matches, trials = self.openings(rules_hash), self.matches(rules_hash), self.trials(rules_hash)
            with self._reading(rules_hash) as (connection, game):
                texts = connection.execute("SELECT descriptors FROM described WHERE game = ?", [game]).fetchall()
        return KeptLesson(lesson, taught, openings, matches, trials, _descriptors(*texts[0]) if texts else {})

    def add(self, items: Iterable[tuple[RememberedGame, KeptLesson]]) -> int:
        """Add all that other stores had about games, in one transaction; return how many lessons are new or longer.

        A lesson that was taught longer takes the place of the one before, with its tests. Rivals, openings and matches
        are added. Tests of openings are deleted if others come to them.
        """
        try:
            with self.knowledge.writing() as connection:
                return sum(self._add(connection, game, kept) for game, kept in items)
        except BaseException:
            self._numbers.forget()
            raise

    def _add(self, connection: sqlite3.Connection, game: RememberedGame, kept: KeptLesson) -> bool:
        number = put_game(connection, game.rules_hash, game.name, game.roles, str(game.rulesheet))
        row = connection.execute(_WALKS, [number]).fetchone()
        is_longer = row is None or row[0] < kept.lesson.walks
        if is_longer:
            connection.execute("DELETE FROM trial WHERE game = ?", [number])
            delete_values(connection, number, LESSON)
            self._put(connection, number, rule_shapes(game.rulesheet).tobytes(), kept.lesson, row)
            put_rows(connection, "trial", ((number, _tested(kept.lesson.id), *trial) for trial in kept.trials))
        for pupil, values in kept.taught.items():
            if pupil != LESSON:
                put_values(connection, number, _row_of(pupil), values, "IGNORE")
            elif is_longer:  # the walks and seconds of the newest state are not those of today
                put_values(connection, number, pupil, values)
        had_book = connection.execute("SELECT count(*) FROM opening WHERE game = ?", [number]).fetchone()[0] > 0
        has_put = [self._put_opening(connection, number, facts, moves) for facts, moves in kept.openings.items()]
        if had_book and (is_longer or any(has_put)):  # no test was of these openings together
            connection.execute("DELETE FROM trial WHERE game = ? AND advice = ?", [number, OPENINGS])
        for match in kept.matches:
            _put_match(connection, number, match)
        if kept.descriptors:
            put_rows(connection, "described", [(number, to_json(dict(kept.descriptors)))], "IGNORE")
        return is_longer

    # values

    def generations(self, rules_hash: str) -> list[GenerationRow]:
        """Return the generations of a lesson that have ended, in their order."""
        with self._reading(rules_hash) as (connection, game):
            return generations_of(connection, game, LESSON)

    def taught(self, rules_hash: str, pupil: str, number: int | None = None) -> list[Taught]:
        """Return the values of a pupil in their order: those of the generations of a lesson, or of rivals of a kind.

        number: of the only one that is wanted; None for all
        """
        with self._reading(rules_hash) as (connection, game):
            return values_of(connection, game, _row_of(pupil), "all" if number is None else number)

    def value(self, rules_hash: str, pupil: str, number: int) -> StoredValue | None:
        """Return one of the values of a pupil; None if the store lacks it."""
        return next((taught.value for taught in self.taught(rules_hash, pupil, number)), None)

    def pupils(self, rules_hash: str) -> dict[str, int]:
        """Return the pupils of a game, with the number of their values: the lesson, and the rivals of this version."""
        query = "SELECT pupil, count(*) FROM taught WHERE game = ? GROUP BY pupil"
        with self._reading(rules_hash) as (connection, game):
            nums = dict(typed(connection.execute(query, [game]), tuple[Line, Count]))
        ending = _row_of("")
        own = {pupil: num for pupil, num in nums.items() if pupil == LESSON or pupil.endswith(ending)}
        return {pupil.removesuffix(ending): num for pupil, num in own.items()}

    def add_rival(self, game: Game, rival: str, walks: int, seconds: float, value: StoredValue) -> None:
        """Add what a player without memory has learned; those rivals that other versions taught are deleted."""
        with self._writing(game) as (connection, number):
            old = "SELECT DISTINCT pupil FROM taught WHERE game = ? AND pupil != ? AND pupil NOT LIKE ?"
            for (pupil,) in connection.execute(old, (number, LESSON, _row_of("%"))).fetchall():
                delete_values(connection, number, pupil)
            query = "SELECT count(*) FROM taught WHERE game = ? AND pupil = ?"
            (num,) = connection.execute(query, (number, _row_of(rival))).fetchone()
            put_values(connection, number, _row_of(rival), [Taught(num, walks, seconds, value)])

    # openings

    def openings(self, rules_hash: str) -> dict[frozenset[str], list[OpeningMove]]:
        """Return the positions of a game that were searched long, by their facts."""
        with self._reading(rules_hash) as (connection, game):
            rows = typed(connection.execute(_OPENINGS, [game]), _OpeningCells)
            texts, moves = _texts(connection, game) if rows else {}, dict[bytes, list[OpeningMove]]()
            for row in rows:
                moves.setdefault(row.state, []).append(OpeningMove(row.role, texts[row.move], row.visits, row.value))
            return {frozenset(map(texts.__getitem__, unpacked(state))): own for state, own in moves.items()}

    def num_openings(self, rules_hash: str) -> int:
        """Return the number of positions of a game that were searched long."""
        with self._reading(rules_hash) as (connection, game):
            query = "SELECT count(DISTINCT state) FROM opening WHERE game = ?"
            return int(connection.execute(query, [game]).fetchone()[0])

    def put_opening(self, game: Game, facts: frozenset[str], moves: Sequence[OpeningMove]) -> bool:
        """Store the moves of a position that was searched long.

        Return False, and store nothing, if the position has been searched by as many walks before.
        """
        with self._writing(game) as (connection, number):
            return self._put_opening(connection, number, facts, moves)

    def _put_opening(
        self, connection: sqlite3.Connection, game: int, facts: frozenset[str], moves: Sequence[OpeningMove]
    ) -> bool:
        """Write the moves of a position, unless it has been searched by as many walks before."""
        key = game, self._numbers.facts(connection, game, facts)
        (before,) = connection.execute("SELECT sum(visits) FROM opening WHERE game = ? AND state = ?", key).fetchone()
        if before is not None and before >= sum(move.visits for move in moves):
            return False
        connection.execute("DELETE FROM opening WHERE game = ? AND state = ?", key)
        numbers = self._numbers.of(connection, game, [move.move for move in moves])
        rows = ((*key, own.role, move, own.visits, own.value) for own, move in zip(moves, numbers, strict=True))
        put_rows(connection, "opening", rows)
        return True

    # matches

    def matches(self, rules_hash: str) -> list[PlayedMatch]:
        """Return the matches of a game against others, in the order in which they ended."""
        return list(self.last_matches(rules_hash).values())

    def last_matches(self, rules_hash: str, most: int = -1) -> dict[int, PlayedMatch]:
        """Return the last matches of a game against others by number, in their order; -1 for all."""
        with self._reading(rules_hash) as (connection, game):
            rows = typed(connection.execute(_PLAYED, (game, most)), _PlayedCells)
            return {row.number: _played(row) for row in reversed(rows)}

    def best_matches(self, rules_hash: str, most: int) -> list[PlayedMatch]:
        """Return so many matches with the highest goals of the first role, the best one first, of equal ones the older.

        Matches that gave this role nothing are left out.
        """
        with self._reading(rules_hash) as (connection, game):
            return [*map(_played, typed(connection.execute(_BEST, (game, most)), _PlayedCells))]

    def num_matches(self, rules_hash: str, role: int) -> int:
        """Return the number of matches of a game in which the player had a role."""
        with self._reading(rules_hash) as (connection, game):
            query = "SELECT count(*) FROM played WHERE game = ? AND role = ?"
            return int(connection.execute(query, (game, role)).fetchone()[0])

    def add_match(self, game: Game, match: PlayedMatch) -> bool:
        """Store a match; return False if it is in the store already."""
        with self._writing(game) as (connection, number):
            return _put_match(connection, number, match)

    # evidence

    def trials(self, rules_hash: str) -> list[TrialRow]:
        """Return all evidence about the present lesson and openings of a game."""
        with self._reading(rules_hash) as (connection, game):
            query = f"{_TRIALS} ORDER BY advice, number, against"
            return typed(connection.execute(query, (game, _tested(_lesson_id(connection, game)))), TrialRow)

    def add_evidence(
        self, game: Game, trial: TrialRow, add: Callable[[TrialRow], TrialRow], lesson: str | None = None
    ) -> TrialRow | None:
        """Replace the evidence of a trial by what `add` makes of it, in one transaction; return the new evidence.

        Args:
            game: game
            trial: names the advice, its state, and the rival; its numbers are those without evidence so far
            add: function from the evidence so far to the new evidence
            lesson: id of the lesson that was tried. If the store has another one by now, the evidence is of no use, and
                None is returned. None for the lesson that the store has
        """
        with self._writing(game) as (connection, number):
            present = _lesson_id(connection, number)
            if lesson not in (None, present):
                return None
            query = f"{_TRIALS} AND advice = ? AND number = ? AND against = ?"
            rows = typed(connection.execute(query, (number, _tested(present), *trial[:3])), TrialRow)
            row = add(rows[0] if rows else trial)
            put_rows(connection, "trial", [(number, _tested(present), *row)])
        return row

    # the ledger, and opponents

    def ledger(self) -> list[LedgerRow]:
        """Return the scores of all advice in all games; games with damaged evidence are left out."""
        query = (
            "SELECT rules_hash, name, CASE WHEN advice = ? AND number = 0 THEN ? ELSE advice END AS kind, against, "
            "num, total FROM trial JOIN game ON game.id = trial.game ORDER BY game.id, kind, against"
        )
        with self.knowledge.reading() as connection:
            rows = typed_by_game(connection.execute(query, [LESSON, VARIANT]), LedgerRow)
        groups = groupby((row for row in rows if row.num), lambda row: row[:4])
        return [LedgerRow(*key, *map(sum, zip(*(row[4:] for row in own), strict=True))) for key, own in groups]

    def described(self) -> dict[str, dict[str, float]]:
        """Return the descriptors of all games that have them, by the hash of the rules; damaged ones are left out."""
        query = "SELECT rules_hash, descriptors FROM described JOIN game ON game.id = described.game"
        with self.knowledge.reading() as connection:
            return {key: own for key, text in connection.execute(query) if (own := _descriptors(text))}

    def describe(self, game: Game, descriptors: Mapping[str, float]) -> None:
        """Store the descriptors of a game."""
        with self._writing(game) as (connection, number):
            put_rows(connection, "described", [(number, to_json(dict(descriptors)))])

    def fits(self, rules_hash: str, first: int) -> dict[tuple[int, int], list[PolicyFit]]:
        """Return how well policies fit the moves of opponents, by the number of the match and the role.

        first: number of the first match that is wanted
        """
        query = "SELECT number, role, player, log, mean, variance FROM fit WHERE game = ? AND number >= ?"
        by_match: dict[tuple[int, int], list[PolicyFit]] = {}
        with self._reading(rules_hash) as (connection, game):
            for cells in typed(connection.execute(query, (game, first)), _FitCells):
                by_match.setdefault(cells[:2], []).append(PolicyFit(*cells[2:]))
        return by_match

    def add_fits(self, game: Game, number: int, role: int, fits: Iterable[PolicyFit]) -> None:
        """Store how well policies fit the moves of an opponent with a role in the match of this number."""
        with self._writing(game) as (connection, own):
            put_rows(connection, "fit", ((own, number, role, *fit) for fit in fits))

    @contextmanager
    def _reading(self, rules_hash: str) -> Iterator[tuple[sqlite3.Connection, int | None]]:
        """Open a read transaction; yield the connection and the number of a game, None if the store lacks it."""
        with self.knowledge.reading() as connection:
            row = connection.execute("SELECT id, name FROM game WHERE rules_hash = ?", [rules_hash]).fetchone()
            number, name = row or (None, rules_hash)
            with naming_lesson(self.knowledge, str(name)):
                yield connection, number

    @contextmanager
    def _writing(self, game: Game) -> Iterator[tuple[sqlite3.Connection, int]]:
        """Open a write transaction; yield the connection and the number of a game, which is added if it is new."""
        rules = str(game.rulesheet)  # before others have to wait
        try:
            with self.knowledge.writing() as connection:
                yield connection, put_game(connection, game.rules_hash, game.name, game.roles, rules)
        except BaseException:
            self._numbers.forget()
            raise


@contextmanager
def naming_lesson(knowledge: KnowledgeStore, name: str) -> Iterator[None]:
    """Turn an error about the rows of a lesson into a DamagedLessonError, which names its game."""
    try:
        yield
    except (msgspec.MsgspecError, ValueError, TypeError, LookupError, struct.error, RecursionError) as error:
        name = name if name.isprintable() else printable(name)
        raise DamagedLessonError(
            f"{knowledge.path}: lesson about {name}: expected what an import would take, got: {in_a_line(error)}; "
            f"gamelore lessons delete {name} removes it"
        ) from error


def _played(row: _PlayedCells) -> PlayedMatch:
    """Return the match in a row."""
    moves = msgspec.convert(from_json(row.moves), tuple[JointMove, ...])
    goals = msgspec.convert(from_json(row.goals), tuple[int, ...])
    return PlayedMatch(row.id, row.role, row.startclock, moves, goals)


def _descriptors(text: object) -> dict[str, float]:
    """Return the descriptors in a cell; {} if they are damaged."""
    try:
        return msgspec.convert(from_json(str(text)), dict[Line, Real])
    except msgspec.MsgspecError:
        return {}


def _put_match(connection: sqlite3.Connection, game: int, match: PlayedMatch) -> bool:
    """Write a match, unless it is in the store already."""
    equal = "SELECT 1 FROM played WHERE game = ? AND role = ? AND id = ?"
    if connection.execute(equal, (game, match.role, match.id)).fetchone() is not None:
        return False
    (num,) = connection.execute("SELECT coalesce(max(number) + 1, 0) FROM played WHERE game = ?", [game]).fetchone()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    texts = to_json([list(joint) for joint in match.moves]), to_json(list(match.goals))
    put_rows(connection, "played", [(game, num, match.id, match.role, match.startclock, *texts, now)])
    return True


def _lesson_id(connection: sqlite3.Connection, game: int | None) -> str:
    """Return the id of the present lesson of a game; "" if it has none."""
    row = connection.execute("SELECT id FROM lesson WHERE game = ?", [game]).fetchone()
    return "" if row is None else str(row[0])


def _tested(lesson: str) -> str:
    """Return what names the tests of a lesson with this id by this version: another one searches otherwise."""
    return f"{lesson} {_version('gamelore')}"


def _row_of(pupil: str) -> str:
    """Return what names a pupil in the table. A rival has learned as players without memory of its version do."""
    return pupil if pupil == LESSON else f"{pupil} {_version('gamelore')}"


def _texts(connection: sqlite3.Connection, game: int | None) -> dict[int, str]:
    """Return the texts of the facts and moves of a game, by number."""
    rows = connection.execute("SELECT number, text FROM fact WHERE game = ?", [game])
    return dict(typed(rows, tuple[Index, Line]))
