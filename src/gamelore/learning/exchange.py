"""Exchange of knowledge: export and import of learners as JSON, and the check of a store.

The JSON has the knowledge of learners for other machines, for archives and for other programs:

    {"format": "gamelore-knowledge", "version": 4, "gamelore": "0.1.0",
     "games": [{"rules_hash", "name", "roles", "rules", "facts": [text ..]} ..],
     "learners": [{"game": rules_hash, "role", "opponent", "settings": {..}, "seed", "gamelore", "created",
                   "sources": [..], "outcomes": [goal value ..], "inherited": [[feature, value, visits] ..],
                   "matches": [[reward, length] ..], "match_ids": [[number of a match, its id] ..],
                   "trajectories": [[match id, [[move of each role] ..], end] ..],
                   "afterstates": [[[fact ..], q, visits] ..],       fact: an index into the game's facts
                   "features": [[feature, value, visits] ..], "features_at": matches,
                   "replies": [[inherited, wins, losses, gives, neutrals, chosen, times] ..],
                   "sequences": [[role, kind, [move ..], [fact ..], encounters, several] ..],     move: an index, too
                   "pairs": [[role, [fact ..], [[kind, [move ..]] ..], comments, agreements, tries, successes]
                             ..]} ..]}

Versions 1, 2 and 3 can still be read. Version 2 added sequences and pairs, version 3 trajectories, version 4 replies. A
file without replies leaves those of a stored learner as they are. The first files of version 4 have no match_ids.

The structs of this module and the row types of store/schema.py are the schema of the file. A whole file is checked
against it, and against the rules of its games, before anything is stored. What is exported is checked in the same way
before the file is written, and `problems` checks all learners of a store so.

If an imported learner has the same game, role, opponent, settings and seed as a learner of the store, the learner with
more matches is kept. The trajectories of the store stay, but for those of matches from which the learner of the file
has learned; a file without match_ids replaces them. If the two differ in a match that both played, or in what they
began with, KnowledgeError is raised and nothing is imported.
"""

from __future__ import annotations

import math
import sqlite3
import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import GameloreError, GDLError, KnowledgeError, counted, in_a_line, shortened
from ..files import write_whole
from ..gdl.syntax import parse, parse_term, variables_of
from .sequences.seqlearner import Curriculum, SequenceSettings
from .sources import Sources
from .store.features import canonical_text, checked_reply
from .store.knowledge import (
    FactNumbers,
    KnowledgeStore,
    add_learner,
    check_folder,
    find_learner,
    get_learner,
    put_features,
    put_game,
    put_matches,
    put_sequences,
    put_trajectory,
    replace_rows,
    value_table,
)
from .store.schema import (
    AFTERSTATES,
    ALL_ROLES,
    DEPTH,
    FEATURES,
    INHERITED,
    INHERITED_VALUES,
    LESSON_TABLES,
    MATCHES,
    MOST_STAKE,
    REPLIES,
    SEQUENCES,
    AfterstateCells,
    Count,
    End,
    Goal,
    Hash,
    Indices,
    Integer,
    JointMove,
    Line,
    MatchRow,
    Origin,
    PairCells,
    ReplyRow,
    RowQuery,
    Rules,
    SequenceCells,
    Small,
    StoredLearner,
    ValueRow,
    fits_sqlite,
    from_json,
    get_pairs,
    get_trajectories,
    packed,
    typed,
    unpacked,
)
from .td.initial_values import LearnerSettings, Symmetric

if TYPE_CHECKING:
    from .store.lesson_rows import Lessons, TrialRow

FORMAT_NAME = "gamelore-knowledge"
VERSION = 4
MOST_BYTES = 2**28
"""Maximum size of a file. Checking a file can need about twenty times its size of memory."""
MOST_RULES = 2**20
"""Maximum number of characters in the rules of a game: as many as a START message may have bytes."""
MOST_SETTING_LEVELS = 8
"""Maximum depth of the settings of a learner."""


class MatchId(NamedTuple):
    """The number and the id of a match that was a trajectory before."""

    number: Small
    id: Line


MATCH_IDS = RowQuery("SELECT number, id FROM match WHERE learner = ? AND id IS NOT NULL ORDER BY number", MatchId)


class _Game(Struct):
    rules_hash: Hash
    name: Line
    roles: list[Line]
    rules: Rules
    facts: list[Line]


class _Learner(Struct):
    game: Hash
    role: Line
    opponent: Line
    settings: dict[str, Any]
    seed: Integer
    gamelore: Line
    created: Line
    sources: list[Origin]
    outcomes: list[Goal]
    inherited: list[ValueRow]
    matches: list[MatchRow]
    afterstates: list[AfterstateCells[Indices]]
    features: list[ValueRow]
    features_at: Small
    match_ids: list[MatchId] | None = None
    trajectories: list[tuple[Line, tuple[JointMove, ...], End]] = []
    replies: list[ReplyRow] | None = None
    sequences: list[SequenceCells[Indices, Indices]] = []
    pairs: list[PairCells[Indices, Indices]] = []


class _Header(Struct, kw_only=True):
    format: str = ""
    version: Integer = 0


class _Content(_Header, kw_only=True):
    gamelore: Line = ""
    games: list[_Game]
    learners: list[_Learner]


@dataclass
class _OtherValueSettings:
    """Settings of a learner of values that LearnerSettings does not have, see `Enrolment.about`."""

    kind: str
    symmetries: Count = 1
    sources: Sources | None = None


@dataclass
class _OtherSequenceSettings:
    """Settings of a learner of sequences that SequenceSettings does not have, see `study_sequences`."""

    kind: Literal["sequences"]
    symmetry: Symmetric = "none"
    symmetries: Count = 1
    curriculum: Curriculum | None = None


# export


def export_learners(knowledge: KnowledgeStore, path: Path, ids: Sequence[int] | None = None) -> int:
    """Write these learners (None: all) to `path` in one read transaction, and return their number.

    Raises KnowledgeError if an import would refuse the file, if it would be larger than MOST_BYTES, or if it cannot be
    written.
    """
    with knowledge.reading() as connection:
        learners = knowledge.learners() if ids is None else [knowledge.find(number) for number in ids]
        games: dict[str, _Game] = {}
        exported = []
        for learner in learners:
            with _naming(f"{knowledge.path}: learner {learner.id} ({learner.game})"):
                if learner.rules_hash not in games:
                    games[learner.rules_hash] = _sound_game(connection, learner.rules_hash)
                exported.append(_sound_learner(connection, learner, games))
    for game in games.values():
        with _naming(str(knowledge.path), "export only learners of other games, or copy the store itself"):
            _check_size(game)
    content = _Content(
        format=FORMAT_NAME,
        version=VERSION,
        gamelore=version("gamelore"),
        games=[games[rules_hash] for rules_hash in sorted(games)],
        learners=exported,
    )
    write_export(path, msgspec.json.encode(content), knowledge)
    return len(learners)


def write_export(path: Path, data: bytes, knowledge: KnowledgeStore) -> None:
    """Write an exported file. Raise KnowledgeError if it is too large, or cannot be written."""
    if len(data) > MOST_BYTES:
        raise KnowledgeError(
            f"{path}: expected knowledge of at most {_mib(MOST_BYTES)}, got {_mib(len(data))}; export fewer learners "
            f"or lessons into each file, or copy the store itself, {knowledge.path}"
        )
    check_folder(path)
    try:
        write_whole(path, data)
    except OSError as error:
        raise KnowledgeError(f"{path}: expected a file that can be written, got: {error}; name another file") from error


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def _exported_game(connection: sqlite3.Connection, rules_hash: str) -> _Game:
    """Return a game in the form in which it is exported. Raise one of _UNSOUND if its rows are wrong."""
    query = "SELECT id, name, roles, rules FROM game WHERE rules_hash = ?"
    game, name, roles, rules = connection.execute(query, [rules_hash]).fetchone()
    facts = connection.execute("SELECT text FROM fact WHERE game = ? ORDER BY number", [game]).fetchall()
    texts = [text for (text,) in facts]
    about = {"rules_hash": rules_hash, "name": name, "roles": from_json(roles), "rules": rules, "facts": texts}
    return msgspec.convert(about, _Game)


def _exported_learner(connection: sqlite3.Connection, learner: StoredLearner) -> _Learner:
    """Return a learner in the form in which it is exported. Raise one of _UNSOUND if its rows are wrong."""
    same = ("role", "opponent", "settings", "seed", "created", "sources", "outcomes", "features_at")
    return _Learner(
        game=learner.rules_hash,
        gamelore=learner.version,
        **{key: getattr(learner, key) for key in same},
        inherited=INHERITED_VALUES.of(connection, learner.id),
        matches=MATCHES.of(connection, learner.id),
        match_ids=_match_ids(connection, learner.id),
        afterstates=[
            AfterstateCells(_indices(facts), q, visits) for facts, q, visits in AFTERSTATES.of(connection, learner.id)
        ],
        features=FEATURES.of(connection, learner.id),
        trajectories=[(kept.match, kept.moves, kept.end) for kept in get_trajectories(connection, learner.id)],
        replies=REPLIES.of(connection, learner.id),
        sequences=[
            SequenceCells(role, kind, _indices(moves), _indices(context), *counts)
            for role, kind, moves, context, *counts in SEQUENCES.of(connection, learner.id)
        ],
        pairs=[
            PairCells(role, _indices(context), tuple((kind, _indices(moves)) for kind, moves in branches), *record)
            for role, context, branches, *record in get_pairs(connection, learner.id)
        ],
    )


def _match_ids(connection: sqlite3.Connection, learner: int) -> list[MatchId]:
    """Return the ids of the matches of a learner; none in a store of format 1 or 2, which is only read."""
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    return MATCH_IDS.of(connection, learner) if number > 2 else []


def _indices(cell: bytes) -> Indices:
    """Return the numbers of facts or moves in a cell of the store as a list for the file."""
    return list(unpacked(cell))


# import


def import_learners(knowledge: KnowledgeStore, path: Path) -> int:
    """Import a file that `export_learners` wrote. If there is an error, nothing is imported.

    Return the number of learners that were new or had more matches than in the store.
    """
    content = _read(path)
    try:
        _check_content(content)
        with knowledge.writing() as connection:
            games = {game.rules_hash: _ImportedGame(connection, game) for game in content.games}
            return sum(_take(connection, games[learner.game], learner) for learner in content.learners)
    except _WRONG as error:
        raise _damaged(path, error) from error


_WRONG = (GDLError, msgspec.MsgspecError, ValueError)
"""Errors of the checks of a file."""


def _damaged(path: Path, error: object) -> KnowledgeError:
    return KnowledgeError(
        f"{path}: expected knowledge that gamelore exported, got a file with this error: {error}; export the knowledge "
        "again (nothing was imported)"
    )


def _read(path: Path) -> _Content:
    """Return the content of an exported file. Raise KnowledgeError if the file does not have the schema."""
    data = read_export(path)
    try:
        content = _content_of(path, data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise KnowledgeError(
            f"{path}: expected JSON, got: {error}; import a file that `gamelore knowledge export` wrote"
        ) from error
    _check_header(path, content)
    return content


def read_export(path: Path) -> bytes:
    """Return the bytes of an exported file. Raise KnowledgeError if it is too large, or cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise KnowledgeError(f"{path}: expected a file that can be read, got: {error}; name another file") from error
    if len(data) > MOST_BYTES:
        raise KnowledgeError(
            f"{path}: expected a file of at most {_mib(MOST_BYTES)}, got a larger one; export fewer learners or "
            "lessons into each file, or copy the store itself"
        )
    return data


def _content_of(path: Path, data: bytes) -> _Content:
    """Return the content of an exported file.

    Raise KnowledgeError for JSON of another kind, and an error of `msgspec.json.decode` for another text.
    """
    try:
        return msgspec.json.decode(data, type=_Content)
    except msgspec.ValidationError as error:
        _check_header(path, _header(data))
        raise _damaged(path, error) from error


def _header(data: bytes) -> _Header:
    """Return the format and version in JSON; an empty header if it has none."""
    try:
        return msgspec.json.decode(data, type=_Header)
    except msgspec.ValidationError:
        return _Header()


_OWN = "a file that `gamelore knowledge export` wrote"


def refuse_learners(path: Path, data: bytes) -> None:
    """Raise KnowledgeError if a file with these bytes has exported learners, and no lessons."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # which the import tells
        if _header(data).format == FORMAT_NAME:
            raise KnowledgeError(
                f"{path}: expected lessons, got learners; import this one with `gamelore knowledge import`"
            )


def _check_header(path: Path, header: _Header) -> None:
    """Raise KnowledgeError if JSON is not from an exported file, or is newer than this version of gamelore."""
    if header.format != FORMAT_NAME:
        are_lessons = header.format == "gamelore-lessons"
        got, which = ("lessons", "this one with `gamelore lessons import`") if are_lessons else ("something else", _OWN)
        raise KnowledgeError(f'{path}: expected JSON with "format": "{FORMAT_NAME}", got {got}; import {which}')
    if not 1 <= header.version <= VERSION:
        raise KnowledgeError(
            f"{path}: expected version {VERSION} or an older one, got {header.version}; use the version of gamelore "
            "that wrote the file"
        )


class _ImportedGame:
    """A game of an imported file, with its number in this store.

    In the file, facts and moves are indices into the game's list of facts.
    """

    def __init__(self, connection: sqlite3.Connection, game: _Game) -> None:
        self.id = put_game(connection, game.rules_hash, game.name, game.roles, game.rules)
        self._numbers = FactNumbers().of(connection, self.id, game.facts)

    def moves(self, indices: Sequence[int]) -> bytes:
        """Return the cell of moves in their order."""
        return packed([self._numbers[index] for index in indices])

    def facts(self, indices: Sequence[int]) -> bytes:
        """Return the cell of a set of facts."""
        return packed(sorted(self._numbers[index] for index in indices))


def _take(connection: sqlite3.Connection, game: _ImportedGame, learner: _Learner) -> bool:
    """Store one learner of a file. Return False if the store already has all of its matches and trajectories."""
    identity = {"game": game.id, **{key: getattr(learner, key) for key in ("role", "opponent", "settings", "seed")}}
    number = find_learner(connection, identity)
    if number is None:
        made = {"version": learner.gamelore, "created": learner.created, "sources": learner.sources}
        about = made | {"outcomes": learner.outcomes}
        number = add_learner(connection, identity, about, value_table(learner.inherited))
    elif not _goes_on(connection, number, learner):
        return False
    num_matches = len(MATCHES.of(connection, number))
    put_matches(connection, number, num_matches, learner.matches[num_matches:])
    _put_trajectories(connection, number, learner)
    afterstates = [(game.facts(row.facts), row.q, row.visits) for row in learner.afterstates]
    replace_rows(connection, "afterstate", number, afterstates)
    put_features(connection, number, value_table(learner.features), learner.features_at)
    if learner.replies is not None:
        replace_rows(connection, "reply", number, learner.replies)
    put_sequences(connection, number, learner.sequences, learner.pairs, game.moves, game.facts)
    return True


def _put_trajectories(connection: sqlite3.Connection, number: int, learner: _Learner) -> None:
    """Store the ids of the matches of a file, and its trajectories before those of the store.

    A trajectory of the store is dropped if the learner of the file has learned from it, or if the file has no ids, so
    that this is unknown.
    """
    waiting = [] if learner.match_ids is None else get_trajectories(connection, number)
    update = "UPDATE match SET id = ? WHERE learner = ? AND number = ?"
    connection.executemany(update, [(match, number, index) for index, match in learner.match_ids or ()])
    replace_rows(connection, "trajectory", number, [])
    for kept in (*learner.trajectories, *((own.match, own.moves, own.end) for own in waiting)):
        put_trajectory(connection, number, *kept)


def _goes_on(connection: sqlite3.Connection, number: int, learner: _Learner) -> bool:
    """Return whether the file's learner is ahead of the stored learner.

    It is ahead if it has more matches, or equally many matches and more trajectories. Raises KnowledgeError if the two
    differ in a match that both played, or in the feature values or the replies with which they began.
    """
    stored, matches = MATCHES.of(connection, number), learner.matches
    shared = min(len(stored), len(matches))
    inherited, replies = INHERITED_VALUES.of(connection, number), REPLIES.of(connection, number)
    both = replies, replies if learner.replies is None else learner.replies
    models = [sorted(row for row in rows if row.inherited == INHERITED) for rows in both]
    begins_alike = sorted(inherited) == sorted(learner.inherited) and models[0] == models[1]
    ids = {*_match_ids(connection, number), *(learner.match_ids or ())}
    is_one_match = len(ids) == len({index for index, _ in ids}) == len({match for _, match in ids})
    if stored[:shared] != matches[:shared] or not is_one_match or not begins_alike:
        raise KnowledgeError(
            f"expected the learner {learner.role} against {learner.opponent} (seed {learner.seed}) to be the "
            "same in the file and in this store, got different matches or initial values; import into a new store"
        )
    waiting = len(get_trajectories(connection, number))
    return (len(matches), len(learner.trajectories)) > (len(stored), waiting)


# checks of what the schema does not say


def _check_content(content: _Content) -> None:
    """Raise ValueError if a game or a learner of a file is wrong, although it has the schema."""
    games = {game.rules_hash: game for game in content.games}
    if len(games) < len(content.games):
        raise ValueError("two games have the same rules_hash")
    for number, game in enumerate(content.games):
        try:
            _check_size(game)
            _check_game(game)
        except _WRONG as error:
            raise ValueError(f"games[{number}]: {in_a_line(error)}") from error
    for number, learner in enumerate(content.learners):
        try:
            if learner.game not in games:
                raise ValueError(f"its game {learner.game[:12]} is missing")
            _check_learner(games[learner.game], learner)
        except _WRONG as error:
            raise ValueError(f"learners[{number}]: {error}") from error
    if idle := games.keys() - {learner.game for learner in content.learners}:
        raise ValueError(f"the game {games[min(idle)].name} has no learner")


def _check_size(game: _Game) -> None:
    """Raise ValueError for rules that are too long: the store's rules are read whenever a server meets a new game."""
    if len(game.rules) > MOST_RULES:
        raise ValueError(f"the rules of {game.name} have {len(game.rules)} characters, more than {MOST_RULES}")


def _check_game(game: _Game) -> None:
    """Raise GDLError or ValueError if the rules of a game do not fit its hash or its roles, or a fact is no term."""
    sheet = parse(game.rules)
    if sheet.rules_hash != game.rules_hash:
        raise ValueError(f"the rules of {game.name} have the hash {sheet.rules_hash[:12]}, not {game.rules_hash[:12]}")
    if not game.roles or not set(sheet.roles) >= set(_lower(game.roles)):
        raise ValueError(
            f"the roles of {game.name} are {shortened(', '.join(sheet.roles))}, not {shortened(', '.join(game.roles))}"
        )
    _refuse_repeated("a role of the game", _lower(game.roles))
    _refuse_repeated("a fact of the game", game.facts)
    for fact in game.facts:
        check_fact(fact)


def check_fact(text: str) -> None:
    """Raise ValueError if a fact or a move is not a term without variables."""
    try:
        names = variables_of(parse_term(text))
    except GDLError as error:
        raise ValueError(f"expected a fact, got {shortened(text)}: {error.message}") from error
    if names:
        raise ValueError(f"expected a fact, got {shortened(text)}: it has variables")


def _lower(names: Iterable[str]) -> list[str]:
    """Return names in lower case. Two rulesheets that differ only in case are one game."""
    return [name.lower() for name in names]


def _refuse_repeated(what: str, keys: Iterable[Hashable]) -> None:
    """Raise ValueError if two keys are equal."""
    keys = list(keys)
    if len(set(keys)) < len(keys):
        raise ValueError(f"{what} occurs twice")


def _check_learner(game: _Game, learner: _Learner) -> None:
    """Raise ValueError if a learner does not fit its game, or if its parts do not fit together."""
    if learner.role != ALL_ROLES and learner.role.lower() not in _lower(game.roles):
        raise ValueError(f"{learner.role} is no role of {game.name}")
    for role in {row.role for rows in (learner.sequences, learner.pairs) for row in rows}:
        if role.lower() not in _lower(game.roles):
            raise ValueError(f"{role} is no role of {game.name}")
    of_values = ("inherited", "afterstates", "features", "replies")
    for part in of_values if learner.role == ALL_ROLES else ("sequences", "pairs"):
        if getattr(learner, part):
            raise ValueError(f"expected no {part} of a learner of {learner.role}")
    _check_settings(learner.settings, learner.role)
    for source in learner.sources:
        _check_settings(source["settings"], source["role"])
    for outcomes in (learner.outcomes, *(source["outcomes"] for source in learner.sources)):
        if outcomes != sorted(set(outcomes)):
            raise ValueError(f"outcomes that are not in ascending order, or not different: {outcomes}")
    for cell in _index_lists(learner):
        if cell and max(cell) >= len(game.facts):
            raise ValueError(f"{max(cell)} is no index of the {len(game.facts)} facts of {game.name}")
    if any(len(set(facts)) < len(facts) for facts in _fact_lists(learner)):
        raise ValueError("a state or a context has a fact twice")
    _refuse_repeated("an afterstate", (tuple(sorted(row.facts)) for row in learner.afterstates))
    depth = learner.settings.get("depth", DEPTH)
    for values in (learner.inherited, learner.features):
        _refuse_repeated("a feature", [_canonical(row.feature, depth) for row in values])
    _refuse_repeated("a reply", [checked_reply(row)[:-1] for row in learner.replies or ()])
    _refuse_repeated("the id of a trajectory", [match for match, _, _ in learner.trajectories])
    _refuse_repeated("a number of match_ids", [number for number, _ in learner.match_ids or ()])
    ids = [*(match for _, match in learner.match_ids or ()), *(match for match, _, _ in learner.trajectories)]
    _refuse_repeated("the id of a match", ids)
    if any(number >= len(learner.matches) for number, _ in learner.match_ids or ()):
        raise ValueError(f"the id of a match that is none of {len(learner.matches)}")
    if learner.features_at > len(learner.matches):
        raise ValueError(f"features after {learner.features_at} of {len(learner.matches)} matches")
    if any(len(joint) != len(game.roles) for _, moves, _ in learner.trajectories for joint in moves):
        raise ValueError(f"a ply of a trajectory does not have {len(game.roles)} moves")
    _check_lengths(learner)


def _check_lengths(learner: _Learner) -> None:
    """Raise ValueError if a sequence is longer than the sequences that the learner looks for, or empty."""
    moves = [row.moves for row in learner.sequences] + [moves for row in learner.pairs for _, moves in row.branches]
    longest = msgspec.convert(learner.settings, SequenceSettings).lengths[-1] if moves else 0
    if any(len(sequence) > longest for sequence in moves):
        raise ValueError(f"a sequence has more than {longest} moves")
    if not all(moves):
        raise ValueError("a sequence has no moves")


def _fact_lists(learner: _Learner) -> Iterator[list[int]]:
    """Yield the sets of facts of a learner, as lists of indices."""
    yield from (row.facts for row in learner.afterstates)
    yield from (row.context for row in learner.sequences)
    yield from (row.context for row in learner.pairs)


def _index_lists(learner: _Learner) -> Iterator[list[int]]:
    """Yield all lists of indices of a learner: its sets of facts, and its sequences of moves."""
    yield from _fact_lists(learner)
    yield from (row.moves for row in learner.sequences)
    yield from (moves for row in learner.pairs for _, moves in row.branches)


def _canonical(text: str, depth: int) -> str:
    """Return the canonical text of a feature. Raise ValueError for another text, and for a deeper feature."""
    try:
        canonical = canonical_text(text)
    except GameloreError as error:
        raise ValueError(str(error)) from error
    levels = 1 + max(accumulate((letter == "{") - (letter == "}") for letter in canonical), default=0)
    if levels > depth:
        raise ValueError(f"{shortened(canonical)}: a feature of depth {levels}, instead of at most {depth}")
    return canonical


def _check_settings(settings: Mapping[str, Any], role: str) -> None:
    """Raise ValueError if these are not the settings of a learner of this role, or of a learner of sequences."""
    _check_json(settings, MOST_SETTING_LEVELS)
    types = (SequenceSettings, _OtherSequenceSettings) if role == ALL_ROLES else (LearnerSettings, _OtherValueSettings)
    names = {field.name for part in types for field in fields(part)}
    if unknown := sorted(settings.keys() - names):
        raise ValueError(f"{', '.join(unknown)}: no such setting of a learner")
    try:
        for part in types:
            msgspec.convert(settings, part)
    except GameloreError as error:
        raise ValueError(str(error)) from error


def _check_json(value: object, levels: int) -> None:
    """Raise ValueError if a JSON value has more levels than this, or an integer of more than 64 bits."""
    if not levels:
        raise ValueError(f"settings with more than {MOST_SETTING_LEVELS} levels")
    if isinstance(value, int) and not fits_sqlite(value):
        raise ValueError("a setting of more than 64 bits")
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_json(member, levels - 1)


# the check of a store


def problems(knowledge: KnowledgeStore) -> Iterator[str]:
    """Yield what is wrong in a store, in a line for each damaged page, game, learner or lesson.

    A game, a learner or a lesson is wrong if an import would refuse it, or if its rows do not fit together. Rules that
    are too long for an exported file (MOST_RULES) are no problem in a store.
    """
    with knowledge.reading() as connection:
        try:
            yield from _damages(connection)
            games = {}
            for (rules_hash,) in connection.execute("SELECT rules_hash FROM game ORDER BY id").fetchall():
                try:
                    games[rules_hash] = _sound_game(connection, rules_hash)
                except _UNSOUND as error:
                    yield f"game {rules_hash}: {in_a_line(error)}"
            for (number,) in connection.execute("SELECT id FROM learner ORDER BY id").fetchall():
                try:
                    _sound_learner(connection, get_learner(connection, number), games)
                except _UNSOUND as error:
                    yield f"learner {number}: {in_a_line(error)}"
            yield from _lesson_problems(knowledge, connection)
        except sqlite3.Error as error:
            yield f"the file is damaged: {error}"


_UNSOUND = (GameloreError, msgspec.MsgspecError, ValueError, TypeError, struct.error, RecursionError, sqlite3.Error)
"""Errors in the reading of damaged rows."""


def _damages(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the damages of the file, its references and its ids: all that concerns no single game or learner."""
    for (finding,) in connection.execute("PRAGMA integrity_check(10)"):
        if finding != "ok":
            yield f"the file is damaged: {in_a_line(finding)}"
    (newest,) = connection.execute("SELECT coalesce(max(id), 0) FROM game").fetchone()
    if not fits_sqlite(newest + 1):
        yield f"no game can be added, because a game has the largest possible id, {newest}"
    orphans = Counter(table for table, *_ in connection.execute("PRAGMA main.foreign_key_check"))
    for table, number in orphans.items():
        yield f"{number} rows of the table {table} have no learner or no game"


def _sound_game(connection: sqlite3.Connection, rules_hash: str) -> _Game:
    """Return a game of a store. Raise one of _UNSOUND if it is wrong."""
    game = _exported_game(connection, rules_hash)
    _check_game(game)
    query = "SELECT count(*), coalesce(max(number), -1) FROM fact JOIN game ON game.id = fact.game WHERE rules_hash = ?"
    count, last = connection.execute(query, [rules_hash]).fetchone()
    if count != last + 1:
        raise ValueError(f"{count} facts with numbers up to {last}")
    return game


def _sound_learner(connection: sqlite3.Connection, stored: StoredLearner, games: Mapping[str, _Game]) -> _Learner:
    """Return a learner of a store. Raise one of _UNSOUND if it is wrong."""
    learner = _exported_learner(connection, stored)
    if len(learner.matches) != stored.num_matches:
        raise ValueError(f"{len(learner.matches)} matches instead of {stored.num_matches}")
    if stored.rules_hash not in games:
        raise ValueError(f"its game {stored.game} is wrong")
    _check_learner(games[stored.rules_hash], learner)
    return learner


def _lesson_problems(knowledge: KnowledgeStore, connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong with the lessons of a store, a line for each."""
    from .store.lesson_rows import Lessons

    games = " UNION ".join(f"SELECT game FROM {table}" for table in LESSON_TABLES)
    query = f"SELECT rules_hash, name FROM game WHERE id IN ({games}) ORDER BY id"
    for rules_hash, name in connection.execute(query).fetchall():
        try:
            check_lesson(Lessons(knowledge), rules_hash, name)
        except KnowledgeError as error:
            yield str(error).removeprefix(f"{knowledge.path}: ")


def check_lesson(lessons: Lessons, rules_hash: str, name: str) -> None:
    """Raise DamagedLessonError if something of a lesson is damaged."""
    from .store.lesson_rows import naming_lesson

    with lessons.knowledge.reading() as connection, naming_lesson(lessons.knowledge, name):
        _check_lesson(lessons, connection, rules_hash)


def _check_lesson(lessons: Lessons, connection: sqlite3.Connection, rules_hash: str) -> None:
    """Raise ValueError or an error of msgspec if the rows of a lesson are wrong, or do not fit its game."""
    from .store.lesson_rows import TrialRow

    lessons.find(rules_hash)
    num_roles, texts = len(lessons.roles(rules_hash)), set[str]()
    for pupil in lessons.pupils(rules_hash):
        texts.update(fact for own in lessons.taught(rules_hash, pupil) for fact in own.value.weights)
    roles = [match.role for match in lessons.matches(rules_hash)]
    for facts, moves in lessons.openings(rules_hash).items():
        texts.update(facts, (move.move for move in moves))
        roles += (move.role for move in moves)
    if max(roles, default=-1) >= num_roles:
        raise ValueError(f"{max(roles)} is no number of one of {num_roles} roles")
    for text in texts:
        check_fact(text)
    lessons.fits(rules_hash, 0)
    of_game = "JOIN game ON game.id = game WHERE rules_hash = ?"
    typed(connection.execute(f"SELECT shapes FROM lesson {of_game}", [rules_hash]), tuple[bytes])
    query = f"SELECT {', '.join(TrialRow._fields)} FROM trial {of_game}"
    for trial in typed(connection.execute(query, [rules_hash]), TrialRow):
        check_trial(trial)


def check_trial(trial: TrialRow) -> None:
    """Raise ValueError if no rounds give this evidence."""
    capital = math.log1p(MOST_STAKE / 2) * trial.num  # its logarithm, if all bets are as high as possible and won
    most = {"total": trial.num, "squares": trial.num, "better": capital, "worse": capital}
    for name, bound in most.items():
        if not getattr(trial, name) <= bound + 1e-6:
            raise ValueError(
                f"evidence about {trial.advice} {trial.number} against {trial.against}: expected {name} of at most "
                f"{bound:.4g} after {counted(trial.num, 'round')}, got {getattr(trial, name):g}"
            )


_REMEDY = "gamelore knowledge check tells what is wrong in this store, gamelore knowledge delete removes a learner"


@contextmanager
def _naming(what: str, remedy: str = _REMEDY) -> Iterator[None]:
    """Turn one of _UNSOUND into a KnowledgeError that names `what`, such as the learner, and the remedy."""
    try:
        yield
    except _UNSOUND as error:
        raise KnowledgeError(
            f"{what}: expected what an import would take, got: {in_a_line(error)}; {remedy}"
        ) from error
