"""Exchange of lessons: export and import as JSON, for other machines, for archives and for other programs.

    {"format": "gamelore-lessons", "version": 1, "gamelore": "0.1.0",
     "lessons": [{"name", "roles", "rules",
                  "id", "gamelore", "created", "updated", "generation", "rounds", "walks", "seconds", "decision": share
                  of informed playouts or null, "origin", "likeness", "progress": base64,
                  "taught": {"lesson": [{"number", "walks", "seconds", "determination", "foresight", "informed",
                                      "constants": [number of each role ..], "weights": {fact: [of each role ..]},
                                      "network": [[fact ..], base64], or nothing} ..]},
                  "openings": [[[fact ..], [[role, move, visits, value] ..]] ..],
                  "matches": [[id, role, startclock, [[move of each role] ..], [goal ..]] ..],
                  "trials": [[advice, number, against, num, total, squares, better, worse] ..],
                  "descriptors": {name: number}, "checksum": hash, see `_checksum`} ..]}

See store/lesson_rows.py for what these are. A whole file is checked before anything is stored. Of two lessons about the
same game, the one that was taught longer is kept, with its tests; openings and matches are added. Tests are left out if
the checksum says that they are of other values or openings, or of another version of gamelore. Rivals stay behind: they
depend on the machine, are soon learned again, and are played with without a test. Files of older versions have some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec import Struct

from ..errors import GDLError, KnowledgeError, in_a_line, shortened
from ..gdl.syntax import Rulesheet, parse
from .exchange import MOST_RULES, check_fact, check_trial, read_export, refuse_learners, write_export
from .store.lesson_rows import (
    LESSON,
    KeptLesson,
    Lessons,
    OpeningMove,
    PlayedMatch,
    RememberedGame,
    StoredLesson,
    TrialRow,
)
from .store.schema import Count, Integer, Line, Real, Rules, Small, Weight
from .store.taught_rows import NOTHING, Share, Single, StoredNetwork, StoredValue, Taught

FORMAT_NAME = "gamelore-lessons"
VERSION = 1


class _Value(Struct, omit_defaults=True):
    number: Small
    walks: Count
    seconds: Weight
    determination: Share
    foresight: Share
    informed: Share | None
    constants: tuple[Single, ...]
    weights: dict[Line, tuple[Single, ...]]
    network: StoredNetwork | None = None


class _Lesson(Struct):
    name: Line
    roles: list[Line]
    rules: Rules
    id: Line
    gamelore: Line
    created: Line
    updated: Line
    generation: Small
    rounds: Count
    walks: Count
    seconds: Weight
    decision: Share | None
    origin: Line | None
    likeness: Share
    progress: bytes
    taught: dict[Line, list[_Value]]
    openings: list[tuple[list[Line], list[OpeningMove]]]
    matches: list[PlayedMatch]
    trials: list[TrialRow]
    descriptors: dict[Line, Real] = {}
    checksum: str = ""


class _File(Struct):
    format: str
    version: Integer
    gamelore: Line
    lessons: list[_Lesson]


@dataclass(frozen=True)
class LessonGame:
    """The game of a lesson in a file or a store, see `store.lesson_rows.RememberedGame`."""

    rules_hash: str
    name: str
    roles: Sequence[str]
    rulesheet: Rulesheet


def export_lessons(lessons: Lessons, path: Path, games: Iterable[str] | None = None) -> int:
    """Write lessons to a file; return their number.

    Args:
        lessons: store
        path: file
        games: hashes of the rules of their games; None for all

    Raises:
        KnowledgeError: the store lacks a lesson, or the file would be too large, or cannot be written.
    """
    chosen = [row.rules_hash for row in lessons.games()] if games is None else list(games)
    exported = [_exported(lessons, rules_hash) for rules_hash in chosen]
    write_export(
        path, msgspec.json.encode(_File(FORMAT_NAME, VERSION, version("gamelore"), exported)), lessons.knowledge
    )
    return len(exported)


def _exported(lessons: Lessons, rules_hash: str) -> _Lesson:
    """Return a lesson in the form in which it is exported."""
    row, kept = lessons.game(rules_hash), lessons.kept(rules_hash)
    if row is None or kept is None:
        raise KnowledgeError(
            f"{lessons.knowledge.path}: expected a lesson about the game {rules_hash[:12]}, got none; gamelore lessons "
            "list shows all lessons"
        )
    lesson = kept.lesson
    exported = _Lesson(
        row.name,
        lessons.roles(rules_hash),
        row.rules,
        lesson.id,
        lesson.version,
        lesson.created,
        lesson.updated,
        lesson.generation,
        lesson.rounds,
        lesson.walks,
        lesson.seconds,
        lesson.decision,
        lesson.origin or None,
        lesson.likeness,
        lesson.progress,
        {LESSON: [_Value(*taught[:3], **taught.value._asdict()) for taught in kept.taught.get(LESSON, ())]},
        [(sorted(facts), list(moves)) for facts, moves in kept.openings.items()],
        list(kept.matches),
        list(kept.trials),
        dict(kept.descriptors),
    )
    exported.checksum = _checksum(exported)
    return exported


def import_lessons(lessons: Lessons, path: Path) -> int:
    """Add the lessons of a file that `export_lessons` wrote; return how many are new, or longer than in the store.

    Raises:
        KnowledgeError: the file is no export, or something in it is wrong; nothing is added then.
    """
    return lessons.add(read_lessons(path))


def read_lessons(path: Path) -> list[tuple[RememberedGame, KeptLesson]]:
    """Return the lessons of a file that `export_lessons` wrote, with their games.

    Raises:
        KnowledgeError: the file is no export, or something in it is wrong.
    """
    content = _read(path)
    imported: list[tuple[RememberedGame, KeptLesson]] = []
    for number, lesson in enumerate(content.lessons):
        try:
            game = _game_of(lesson)
            _check(game, lesson)
        except (GDLError, ValueError) as error:
            raise _damaged(path, f"lessons[{number}]: {in_a_line(error)}") from error
        imported.append((game, _kept(lesson)))
    return imported


def _damaged(path: Path, error: object) -> KnowledgeError:
    return KnowledgeError(
        f"{path}: expected lessons that gamelore exported, got a file with this error: {error}; export the lessons "
        "again (nothing was imported)"
    )


def _read(path: Path) -> _File:
    """Return the content of a file. Raise KnowledgeError if it does not have the schema."""
    data = read_export(path)
    refuse_learners(path, data)
    try:
        content = msgspec.json.decode(data, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, error) from error
    if content.format != FORMAT_NAME or not 1 <= content.version <= VERSION:
        raise KnowledgeError(
            f"{path}: expected lessons of format {FORMAT_NAME}, version {VERSION}, got {shortened(content.format)}, "
            f"version {content.version}; import a file that `gamelore lessons export` wrote"
        )
    return content


def _game_of(lesson: _Lesson) -> LessonGame:
    """Return the game of a lesson. Raise GDLError or ValueError if its rules do not fit its roles."""
    if len(lesson.rules) > MOST_RULES:
        raise ValueError(f"the rules have {len(lesson.rules)} characters, more than {MOST_RULES}")
    sheet = parse(lesson.rules)
    if not lesson.roles or [role.lower() for role in lesson.roles] != list(sheet.roles):
        raise ValueError(f"the roles are {shortened(', '.join(sheet.roles))}, not {shortened(', '.join(lesson.roles))}")
    return LessonGame(sheet.rules_hash, lesson.name, lesson.roles, sheet)


def _check(game: LessonGame, lesson: _Lesson) -> None:
    """Raise ValueError if the parts of a lesson do not fit its game."""
    num_roles = len(game.roles)
    for pupil, values in lesson.taught.items():
        for value in values:
            if len(value.constants) not in (0, num_roles):
                raise ValueError(f"{shortened(pupil)}: {len(value.constants)} constants for {num_roles} roles")
            if any(len(weights) != len(value.constants) for weights in value.weights.values()):
                raise ValueError(f"{shortened(pupil)}: a fact does not have {len(value.constants)} weights")
    for text in set(_terms(lesson)):
        check_fact(text)
    roles = [move.role for _, moves in lesson.openings for move in moves] + [match.role for match in lesson.matches]
    if any(role >= num_roles for role in roles):
        raise ValueError(f"{max(roles)} is no number of one of {num_roles} roles")
    if any(len(joint) != num_roles for match in lesson.matches for joint in match.moves):
        raise ValueError(f"a ply of a match does not have {num_roles} moves")
    for trial in lesson.trials:
        check_trial(trial)


def _terms(lesson: _Lesson) -> Iterator[str]:
    """Yield the facts and moves of a lesson as texts."""
    for values in lesson.taught.values():
        for value in values:
            yield from value.weights
            yield from value.network.facts if value.network is not None else ()
    for facts, moves in lesson.openings:
        yield from facts
        yield from (move.move for move in moves)


def _kept(lesson: _Lesson) -> KeptLesson:
    """Return a lesson of a file for the store."""
    own = [_taught(value) for value in lesson.taught.get(LESSON, ())]
    value = own[-1].value if own else NOTHING
    if lesson.generation:
        value = value._replace(informed=lesson.decision)
    made = lesson.id, lesson.gamelore, lesson.created, lesson.updated
    spent = lesson.generation, lesson.rounds, lesson.walks, lesson.seconds
    stored = StoredLesson(*spent, value, lesson.progress, lesson.origin or "", lesson.likeness, *made)
    openings = {frozenset(facts): moves for facts, moves in lesson.openings}
    trials = lesson.trials if lesson.checksum == _checksum(lesson) else []
    return KeptLesson(stored, {LESSON: own}, openings, lesson.matches, trials, lesson.descriptors)


def _checksum(lesson: _Lesson) -> str:
    """Return a hash of the tests of a lesson and of what they hold for; it says nothing about who made the file."""
    tested = lesson.rules, lesson.taught.get(LESSON), lesson.openings, lesson.trials
    return hashlib.sha256(msgspec.json.encode((version("gamelore"), *tested))).hexdigest()


def _taught(value: _Value) -> Taught:
    stored = StoredValue(
        value.determination, value.foresight, value.informed, value.constants, value.weights, value.network
    )
    return Taught(value.number, value.walks, value.seconds, stored)
