"""Knowledge store in SQLite: learners, matches, values, features and sequences.

The tables with their columns:

    game        rules_hash, name, roles, rules         games with equal rules are one game, even with different names
    fact        game, number, text                     facts and moves, numbered 0, 1, .. in this file
    learner     game, role, opponent, settings, seed   these five columns identify a learner
    inherited   learner, feature, value, visits        feature values with which the learner began, from other games
    match       learner, number, reward, length, id    matches that were learned from, numbered 0, 1, ..; a match that
                                                       was a trajectory before has an id
    trajectory  learner, number, match, plies, moves,  finished matches that were not learned from yet; match: an id;
                end                                    moves: JSON, for each ply a list with a move of each role
    afterstate  learner, state, q, visits              state: the sorted numbers of its facts, <u4 each
    feature     learner, feature, value, visits        Table 1 of B&S 2007, computed after `features_at` matches
    reply       learner, inherited, wins, losses,      decisions of the opponents, see td/replies.py; inherited: 1 for
                gives, neutrals, chosen, times         those of other games, with which the learner began
    sequence    learner, number, role, kind, moves,    the SeqTable of L&E 2004, in the order of first encounters;
                context, encounters, several           moves, context: numbers of moves and of facts, <u4 each
    pair        learner, number, role, context,        context pairs, with the counts of their advice
                comments, agreements, tries, successes
    branch      learner, pair, number, kind, moves     the sequences of the context pairs

One short transaction stores what was learned from a match, or from a tournament of a learner of sequences. The same
transaction removes the trajectory of the match. Therefore no match is learned from twice, and no match is lost. The
rows do not depend on an engine: a learner that began on machine code can continue on the reasoner. A learner of
sequences learns for all roles; its role is ALL_ROLES.

learning/exchange.py exports learners as JSON, imports them, and checks a store.
"""

from __future__ import annotations

import math
import os
import sqlite3
import struct
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, Unpack, get_args

import msgspec

from ...errors import GameloreError, KnowledgeError
from ...gdl.syntax import printable
from .features import STANDARD, FeatureValues, Replies, check_depth, checked_reply, reply_rows
from .schema import (
    AFTERSTATES,
    ALL_ROLES,
    DEPTH,
    FEATURES,
    IN_USE,
    INHERITED,
    INHERITED_VALUES,
    LEARNER_TABLES,
    MATCHES,
    MOST_COUNT,
    MOST_REAL,
    MOST_SMALL,
    OWN,
    REPLIES,
    SEQUENCES,
    Afterstate,
    Facts,
    FeatureRow,
    GameRow,
    Index,
    LearnedRows,
    Line,
    MatchRow,
    Moves,
    PairCells,
    PairRow,
    Rules,
    SequenceCells,
    SequenceRow,
    StoredLearner,
    StoreFile,
    Trajectory,
    ValueRow,
    fits_sqlite,
    from_json,
    get_pairs,
    get_trajectories,
    lower_case,
    packed,
    to_json,
    typed,
    unpacked,
)

if TYPE_CHECKING:
    from ...game.game import Game

FeatureTable: TypeAlias = Mapping[str, tuple[float, int]]
"""Feature values: feature text -> (value in units of reward, visits)."""
FactTexts: TypeAlias = Callable[[bytes], tuple[str, ...]]
"""A function that returns the texts of the facts or moves whose numbers are in a cell."""


class Selection(TypedDict, total=False):
    """Conditions for the selection of learners. A value of None means no condition.

    source    the name of their game, or the hash of its rules
    role      the role for which they learn: their own, in any case of letters. A learner of sequences learns for all
              roles
    opponent  the full text of their opponent ("egreedy:filler=first"), or its kind ("egreedy")
    ids       their numbers in this file
    """

    source: str | None
    role: str | None
    opponent: str | None
    ids: Sequence[int] | None


def default_path() -> Path:
    """Return the path of the user's store.

    This is `$GAMELORE_KNOWLEDGE` if it is set, else knowledge.db in the user data folder.
    """
    if chosen := os.environ.get("GAMELORE_KNOWLEDGE"):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_data_dir("gamelore", appauthor=False)) / "knowledge.db"


class DeletedLearner(NamedTuple):
    """A learner as it was when it was deleted; its fields are not checked."""

    number: int
    game: str
    role: str
    opponent: str
    seed: int
    num_matches: int


_LEARNERS = (
    "SELECT learner.id, game.name, rules_hash, role, opponent, settings, seed, version, created, sources, outcomes, "
    "num_matches, features_at FROM learner JOIN game ON game.id = learner.game"
)
_DELETED = (
    "SELECT learner.id, game.name, role, opponent, seed, num_matches FROM learner "
    "LEFT JOIN game ON game.id = learner.game WHERE learner.id = ?"
)


def check_folder(file: Path, option: str = "") -> None:
    """Raise KnowledgeError if a file is in no folder. `option` tells how another file is named."""
    if not os.path.exists(file.parent):
        raise KnowledgeError(
            f"{file}: expected a file in an existing folder, got none of the name {file.parent}; make the folder, or "
            f"name another file{option}"
        )


class KnowledgeStore(StoreFile):
    """An open store, for one thread at a time. Several processes may have the same file open.

    create    False: the file must exist
    writable  False: the file must exist and is not changed; a file of an older format is not converted

    Every method raises KnowledgeError if the file cannot be read or written, or is not a knowledge store.
    """

    def __init__(self, path: str | Path | None = None, *, create: bool = True, writable: bool = True) -> None:
        file = Path(path) if path is not None else default_path()
        if create and writable and file.parent != default_path().parent:
            check_folder(file, " (--knowledge)")
        super().__init__(file, create=create, writable=writable)
        self._numbers = FactNumbers()

    @property
    def size(self) -> int:
        """Size in bytes, without the pages that deletions have left for new rows: the file itself never shrinks."""
        with self.reading() as connection:
            names = ("page_count", "freelist_count", "page_size")
            pages, free, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        return int((pages - free) * page)

    def games(self) -> list[GameRow]:
        """Return all games of the store that have a learner or a lesson, oldest first."""
        query = f"SELECT name, rules_hash, rules FROM game WHERE id IN ({IN_USE}) ORDER BY id"
        with self.reported() as connection:
            return typed(connection.execute(query), GameRow)

    # learners

    def learner(
        self,
        game: Game,
        role: str,
        *,
        opponent: str,
        settings: Mapping[str, Any],
        seed: int,
        inherited: FeatureValues | None = None,
        sources: Sequence[StoredLearner] = (),
    ) -> StoredLearner:
        """Return the learner with this identity. If the store does not contain it, add it.

        role       a role of the game, or ALL_ROLES
        inherited  feature values with which a new learner begins. They are stored and never change, even if the
                   sources learn more later. The method `inherited` reads them
        sources    the learners from which these values come
        """
        if role not in (*game.roles, ALL_ROLES):
            raise KnowledgeError(f"expected a role of {game.name} ({', '.join(game.roles)}), got {role}")
        if not fits_sqlite(seed):
            raise KnowledgeError(f"expected a seed that is a signed 64-bit number, got {seed}; choose a smaller seed")
        rules = str(game.rulesheet)
        for what, text in (
            ("the name of the game", game.name),
            ("the opponent", opponent),
            *(("a role", name) for name in game.roles),
        ):
            check_text(what, text)
        check_text("the rules", rules, Rules)
        values = zip(game.roles, game.goal_values, strict=True)
        outcomes = sorted({goal for own, goals in values if role in (own, ALL_ROLES) for goal in goals})
        made = {
            "version": version("gamelore"),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "sources": [source.origin for source in sources],
            "outcomes": outcomes,
        }
        with self.writing() as connection:
            game_id = put_game(connection, game.rules_hash, game.name, game.roles, rules)
            identity = {"game": game_id, "role": role, "opponent": opponent, "settings": settings, "seed": seed}
            number = find_learner(connection, identity)
            if number is None:
                number = add_learner(connection, identity, made, inherited or {})
                add_replies(connection, number, INHERITED, inherited.replies if inherited else {})
        return self.find(number)

    def find(self, learner_id: int) -> StoredLearner:
        """Return the learner with this number in this file."""
        with self.reported() as connection:
            if not self.numbers(ids=[learner_id]):
                raise self._no_learner(learner_id, connection)
            with self._naming(learner_id):
                return get_learner(connection, learner_id)

    def _no_learner(self, number: int, connection: sqlite3.Connection) -> KnowledgeError:
        have = ", ".join(str(row[0]) for row in connection.execute("SELECT id FROM learner ORDER BY id")) or "none"
        return KnowledgeError(f"{self.path}: expected the number of a learner in this store ({have}), got {number}")

    def learners(self, **selection: Unpack[Selection]) -> list[StoredLearner]:
        """Return all learners that fulfil the conditions of the selection, oldest first."""
        where, values = _where(selection)
        with self.reported() as connection:
            return list(map(self._learner, connection.execute(f"{_LEARNERS}{where} ORDER BY learner.id", values)))

    def numbers(self, **selection: Unpack[Selection]) -> list[int]:
        """Return the numbers of all learners that fulfil the conditions, even of those with damaged rows.

        A learner whose game is missing has no source.
        """
        where, values = _where(selection)
        game = " JOIN game ON game.id = learner.game" if selection.get("source") is not None else ""
        with self.reported() as connection:
            rows = connection.execute(f"SELECT learner.id FROM learner{game}{where} ORDER BY learner.id", values)
            return [number for (number,) in rows]

    def _learner(self, row: Sequence[Any]) -> StoredLearner:
        with self._naming(row[0]):
            return _as_learner(row)

    @contextmanager
    def _naming(self, number: int) -> Iterator[None]:
        """Turn the errors of `get_learner` into KnowledgeErrors that name the learner and a remedy."""
        try:
            yield
        except (GameloreError, msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise KnowledgeError(
                f"{self.path}: expected learner {number} as gamelore stores it, got: {error}; remove it (gamelore "
                f"knowledge delete {number})"
            ) from error

    def rules(self, learner: StoredLearner) -> str:
        """Return the rulesheet of the learner's game as GDL text."""
        query = "SELECT rules FROM game WHERE rules_hash = ?"
        with self.reported() as connection:
            ((rules,),) = typed(connection.execute(query, [learner.rules_hash]), tuple[Rules])
        return rules

    def delete(self, ids: Sequence[int]) -> list[DeletedLearner]:
        """Delete these learners with all that they learned, even if their rows are damaged.

        Games that have no learner and no lesson any more are deleted, too. Raises KnowledgeError, and deletes nothing,
        if the store does not have one of the learners.
        """
        deleted = []
        self._numbers.forget()
        with self.writing() as connection:
            for number in dict.fromkeys(ids):
                row = connection.execute(_DELETED, [number]).fetchone() if fits_sqlite(number) else None
                if row is None:
                    raise self._no_learner(number, connection)
                for table in LEARNER_TABLES:
                    connection.execute(f"DELETE FROM {table} WHERE learner = ?", [number])
                connection.execute("DELETE FROM learner WHERE id = ?", [number])
                deleted.append(DeletedLearner(*row))
            drop_unused_games(connection)
        return deleted

    # matches

    def record(
        self,
        learner: StoredLearner,
        matches: Sequence[MatchRow],
        learned: LearnedRows,
        *,
        trajectory: int | None = None,
        match: str | None = None,
    ) -> None:
        """Store the learner's next matches, and the rows that it learned from them.

        learned     for a learner of values: the afterstates whose value or visits changed, with their new value and
                    total visits, and the new replies, which are added to the stored replies; for a learner of
                    sequences: its whole knowledge, which replaces the stored knowledge
        trajectory  number of the trajectory of the match; the trajectory is removed
        match       id of the trajectory; None: any

        Raises KnowledgeError if another process has stored matches of the same learner in the meantime.
        """
        with self._going_on(learner, matches) as (connection, game):
            if learner.has_sequences:
                facts, moves = (
                    partial(number, connection, game) for number in (self._numbers.facts, self._numbers.moves)
                )
                put_sequences(connection, learner.id, learned.sequences, learned.pairs, moves, facts)
            self._put_afterstates(connection, game, learner.id, learned.afterstates)
            add_replies(connection, learner.id, OWN, dict(learned.replies))
            if trajectory is not None:
                self._take_id(connection, learner, trajectory, match)

    def _put_afterstates(
        self, connection: sqlite3.Connection, game: int, learner: int, afterstates: Iterable[Afterstate]
    ) -> None:
        rows = [
            (learner, self._numbers.facts(connection, game, after.facts), _bounded(learner, after.q), int(after.visits))
            for after in afterstates
        ]
        connection.executemany("INSERT OR REPLACE INTO afterstate VALUES (?, ?, ?, ?)", rows)

    def _take_id(self, connection: sqlite3.Connection, learner: StoredLearner, number: int, match: str | None) -> None:
        """Remove a trajectory, and give its id to the match that was just learned from."""
        match = _drop_trajectory(connection, learner.id, number, match)
        if match is None:
            raise KnowledgeError(
                f"{self.path}: expected trajectory {number} of learner {learner.id}, got none, because another "
                "process learned from it; let only one process continue a learner"
            )
        update = "UPDATE match SET id = ? WHERE learner = ? AND number = ?"
        connection.execute(update, (match, learner.id, learner.num_matches))

    def keep_match(self, learner: StoredLearner, match: str, moves: Sequence[Sequence[str]], end: str) -> int | None:
        """Store a finished match to learn from later, and return its number among the learner's trajectories.

        match  an id that is unique among the learner's matches. If a match with this id was stored before, nothing is
               stored and None is returned
        moves  for each ply, a move of every role
        end    "terminal", "stuck" or "cap"

        Another process may continue the learner at the same time, so that no match is lost.
        """
        check_text("the id of a match", match)
        with self.writing() as connection:
            _progress(connection, learner)
            return put_trajectory(connection, learner.id, match, moves, end)

    def trajectories(self, learner: StoredLearner) -> list[Trajectory]:
        """Return the finished matches that were not learned from yet, in their order."""
        with self.reported() as connection:
            return get_trajectories(connection, learner.id)

    def forget_trajectory(self, learner: StoredLearner, number: int, match: str | None = None) -> None:
        """Remove the trajectory of a match from which the learner cannot learn. `match`: its id; None: any."""
        with self.writing() as connection:
            _progress(connection, learner)
            _drop_trajectory(connection, learner.id, number, match)

    @contextmanager
    def _going_on(
        self, learner: StoredLearner, matches: Sequence[MatchRow]
    ) -> Iterator[tuple[sqlite3.Connection, int]]:
        """Open a transaction, store the learner's next matches in it, and yield (connection, game id).

        The caller can write more in the same transaction. Raises KnowledgeError if the store has more or fewer matches
        of the learner than expected.
        """
        try:
            with self.writing() as connection:
                game_id, stored = _progress(connection, learner)
                if stored != learner.num_matches:
                    raise KnowledgeError(
                        f"{self.path}: expected learner {learner.id} after {learner.num_matches} matches, got "
                        f"{stored}, because another process continues this learner; wait until it ends, or "
                        "learn with another seed"
                    )
                put_matches(connection, learner.id, stored, matches)
                yield connection, game_id
        except BaseException:
            self._numbers.forget()
            raise
        learner.num_matches = stored + len(matches)

    # knowledge of a learner

    def matches(self, learner: StoredLearner) -> list[MatchRow]:
        """Return all matches that were learned from, in their order."""
        with self.reported() as connection:
            return MATCHES.of(connection, learner.id)

    def learned(self, learner: StoredLearner) -> LearnedRows:
        """Return the whole knowledge of the learner."""
        replies = tuple(self._replies(learner, OWN).items())
        return LearnedRows(self.afterstates(learner), self.sequences(learner), self.pairs(learner), replies)

    def restore(self, learner: StoredLearner, restore: Callable[[LearnedRows, int], None]) -> None:
        """Call `restore` of a learner in memory. Its KnowledgeErrors then name the stored learner and a remedy."""
        learned = self.learned(learner)
        try:
            restore(learned, learner.num_matches)
        except KnowledgeError as error:
            raise KnowledgeError(
                f"{self.path}: learner {learner.id} of {learner.game}: {error}; remove it (gamelore knowledge delete "
                f"{learner.id})"
            ) from error

    def afterstates(self, learner: StoredLearner) -> list[Afterstate]:
        """Return every afterstate that has a value, in the order of the encoded states in the file."""
        with self._texts(learner) as (connection, texts):
            rows = AFTERSTATES.of(connection, learner.id)
            return [Afterstate(frozenset(texts(facts)), q, visits) for facts, q, visits in rows]

    def sequences(self, learner: StoredLearner) -> list[SequenceRow]:
        """Return the SeqTable of a learner of sequences, in the order of first encounters."""
        with self._texts(learner) as (connection, texts):
            return [
                SequenceRow(role, kind, texts(moves), frozenset(texts(context)), *counts)
                for role, kind, moves, context, *counts in SEQUENCES.of(connection, learner.id)
            ]

    def pairs(self, learner: StoredLearner) -> list[PairRow]:
        """Return the context pairs of a learner of sequences."""
        with self._texts(learner) as (connection, texts):
            return [
                PairRow(role, frozenset(texts(context)), tuple((kind, texts(moves)) for kind, moves in own), *record)
                for role, context, own, *record in get_pairs(connection, learner.id)
            ]

    @contextmanager
    def _texts(self, learner: StoredLearner) -> Iterator[tuple[sqlite3.Connection, FactTexts]]:
        """Open a read transaction, and yield the connection and a function.

        The function returns the texts of the facts or moves whose numbers are in a cell.
        """
        with self.reading() as connection:
            game, _ = _progress(connection, learner)
            query = "SELECT number, text FROM fact WHERE game = ?"
            names = dict(typed(connection.execute(query, [game]), tuple[Index, Line]))

            def texts(cell: bytes) -> tuple[str, ...]:
                try:
                    return tuple(map(names.__getitem__, unpacked(cell)))
                except (KeyError, struct.error) as error:
                    raise KnowledgeError(
                        f"{self.path}: expected numbers of facts of {learner.game} in learner {learner.id}, got "
                        f"{error}; gamelore knowledge check tells what is wrong in this store"
                    ) from error

            yield connection, texts

    # features

    def store_features(self, learner: StoredLearner, values: FeatureValues) -> None:
        """Replace the learner's feature values. They were computed after its current number of matches."""
        with self.writing() as connection:
            _progress(connection, learner)
            put_features(connection, learner.id, values, learner.num_matches)
        learner.features_at = learner.num_matches

    def features(self, **selection: Unpack[Selection]) -> list[FeatureRow]:
        """Return the feature values of the selected learners, sorted by learner and by the feature's text."""
        where, values = _where(selection)
        query = (
            "SELECT learner.id, game.name, role, opponent, feature, value, visits FROM feature "
            "JOIN learner ON learner.id = feature.learner JOIN game ON game.id = learner.game"
            f"{where} ORDER BY learner.id, feature"
        )
        with self.reported() as connection:
            return typed(connection.execute(query, values), FeatureRow)

    def feature_values(self, learner: StoredLearner) -> FeatureValues:
        """Return the learner's stored feature values. They were computed after `features_at` matches."""
        with self.reported() as connection:
            values = FEATURES.of(connection, learner.id)
        return self._feature_values(values, learner.outcomes, learner, OWN)

    def inherited(self, learner: StoredLearner) -> FeatureValues | None:
        """Return the feature values with which the learner began, or None if it began without any."""
        with self.reported() as connection:
            values = INHERITED_VALUES.of(connection, learner.id)
        outcomes = {outcome for source in learner.sources for outcome in source["outcomes"]}
        return self._feature_values(values, sorted(outcomes) or STANDARD, learner, INHERITED) if values else None

    def _feature_values(
        self, rows: Sequence[ValueRow], outcomes: Sequence[int], learner: StoredLearner, inherited: int
    ) -> FeatureValues:
        """Return feature values with their replies. Raise KnowledgeError for a text that is not a feature."""
        replies = self._replies(learner, inherited)
        try:
            return FeatureValues(value_table(rows), outcomes, learner.depth, replies)
        except GameloreError as error:
            raise KnowledgeError(f"{self.path}: learner {learner.id}: {error}") from error

    def _replies(self, learner: StoredLearner, inherited: int) -> Replies:
        """Return the replies that the learner has counted (OWN), or those with which it began (INHERITED)."""
        with self.reported() as connection:
            rows = REPLIES.of(connection, learner.id)
        try:
            return {checked_reply(row)[1:-1]: row.times for row in rows if row.inherited == inherited}
        except ValueError as error:
            raise KnowledgeError(f"{self.path}: learner {learner.id}: {error}") from error


# functions that read and write rows in the caller's transaction


def drop_unused_games(connection: sqlite3.Connection) -> None:
    """Delete the games that have no learner and no lesson, with their facts."""
    connection.execute(f"DELETE FROM fact WHERE game NOT IN ({IN_USE})")
    connection.execute(f"DELETE FROM game WHERE id NOT IN ({IN_USE})")


class FactNumbers:
    """The numbers of the facts and moves of each game: 0, 1, .. in the order in which they were added to the store."""

    def __init__(self) -> None:
        self._numbers: dict[int, dict[str, int]] = {}

    def forget(self) -> None:
        """Forget all numbers. This is necessary after a transaction that assigned new numbers was rolled back."""
        self._numbers.clear()

    def facts(self, connection: sqlite3.Connection, game: int, facts: Collection[str]) -> bytes:
        """Return the cell of a set of facts."""
        return packed(sorted(self.of(connection, game, facts)))

    def moves(self, connection: sqlite3.Connection, game: int, moves: Collection[str]) -> bytes:
        """Return the cell of moves in their order."""
        return packed(self.of(connection, game, moves))

    def of(self, connection: sqlite3.Connection, game: int, texts: Collection[str]) -> list[int]:
        """Return the numbers of facts or moves. Texts that are new to the store get the next numbers."""
        numbers = self._numbers.setdefault(game, {})
        if not numbers.keys() >= set(texts):
            query = "SELECT text, number FROM fact WHERE game = ? AND number >= ?"
            # another process may have added some of them
            numbers.update(connection.execute(query, (game, len(numbers))).fetchall())
            for text in sorted(set(texts) - numbers.keys()):
                check_text("a fact or a move", text)
                connection.execute("INSERT INTO fact VALUES (?, ?, ?)", (game, len(numbers), text))
                numbers[text] = len(numbers)
        return [numbers[text] for text in texts]


def check_text(what: str, text: str, kind: Any = Line) -> None:
    """Raise KnowledgeError for a text that an import would refuse. `kind`: its type in the schema, Line or Rules."""
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError as error:
        most = get_args(kind)[1].max_length
        raise KnowledgeError(
            f"expected {what} in UTF-8, without control characters, of at most {most:,} characters, got "
            f"{printable(text, 60)!r} ({len(text):,} characters); choose another text"
        ) from error


def put_game(connection: sqlite3.Connection, rules_hash: str, name: str, roles: Sequence[str], rules: str) -> int:
    """Return the id of the game with these rules. If the game is new, add it. A known game keeps its name.

    The id of a deleted game should not come again, since other processes may know the numbers of its facts. So the id
    is the present time in nanoseconds, or one more than the id of the newest game. The id of a deleted game could come
    again only in the same nanosecond of a clock that was set back.
    """
    insert = (
        "INSERT INTO game (id, rules_hash, name, roles, rules) SELECT max(coalesce(max(id) + 1, 0), ?), ?, ?, ?, ? "
        "FROM game WHERE true ON CONFLICT DO NOTHING"
    )
    connection.execute(insert, (time.time_ns(), rules_hash, name, to_json(list(roles)), rules))
    return int(connection.execute("SELECT id FROM game WHERE rules_hash = ?", [rules_hash]).fetchone()[0])


def find_learner(connection: sqlite3.Connection, identity: Mapping[str, Any]) -> int | None:
    """Return the id of the learner with this game (an id), role, opponent, settings and seed; None without one."""
    query = "SELECT id FROM learner WHERE (game, role, opponent, settings, seed) = (?, ?, ?, ?, ?)"
    row = connection.execute(query, _cells(identity)).fetchone()
    return None if row is None else int(row[0])


def add_learner(
    connection: sqlite3.Connection, identity: Mapping[str, Any], made: Mapping[str, Any], inherited: FeatureTable
) -> int:
    """Add a learner and return its id.

    identity   the columns that identify the learner: game (an id), role, opponent, settings, seed
    made       its other columns: version, created, sources, outcomes
    inherited  the feature values with which it begins
    """
    columns = {**identity, **made}
    marks = ", ".join("?" * len(columns))
    cursor = connection.execute(f"INSERT INTO learner ({', '.join(columns)}) VALUES ({marks})", _cells(columns))
    assert cursor.lastrowid is not None
    replace_rows(connection, "inherited", cursor.lastrowid, _value_rows(cursor.lastrowid, inherited))
    return cursor.lastrowid


def get_learner(connection: sqlite3.Connection, number: int) -> StoredLearner:
    """Return a learner. Raise an error of `_as_learner` if its row is damaged, ValueError if its game is missing."""
    row = connection.execute(f"{_LEARNERS} WHERE learner.id = ?", [number]).fetchone()
    if row is None:
        raise ValueError("its game is missing")
    return _as_learner(row)


def _as_learner(row: Sequence[Any]) -> StoredLearner:
    """Return a row as a learner.

    Raise GameloreError, MsgspecError, RecursionError or ValueError for a cell of another type.
    """
    values = dict(zip((column.name for column in fields(StoredLearner)), row, strict=True))
    decoded = {key: from_json(values[key]) for key in ("settings", "sources", "outcomes")}
    learner = msgspec.convert(values | decoded, StoredLearner)
    check_depth(msgspec.convert(learner.settings.get("depth", DEPTH), int))
    return learner


def _cells(columns: Mapping[str, Any]) -> list[str | int]:
    return [value if isinstance(value, str | int) else to_json(value) for value in columns.values()]


def _progress(connection: sqlite3.Connection, learner: StoredLearner) -> tuple[int, int]:
    """Return (game id, number of matches) of a learner. Raise KnowledgeError if it is not in the store.

    SQLite may give the number of a deleted learner to a new one, so the whole identity is compared.
    """
    identity = [learner.rules_hash, learner.role, learner.opponent, to_json(learner.settings), learner.seed]
    query = (
        "SELECT game, num_matches FROM learner JOIN game ON game.id = learner.game WHERE learner.id = ? AND "
        "(rules_hash, role, opponent, settings, seed) = (?, ?, ?, ?, ?)"
    )
    row = connection.execute(query, [learner.id, *identity]).fetchone()
    if row is None:
        raise KnowledgeError(
            f"expected learner {learner.id} of {learner.game}, {learner.role}, in this store, got none or another one; "
            "it was deleted, or the file was replaced: learn again from the start"
        )
    return int(row[0]), int(row[1])


def put_matches(connection: sqlite3.Connection, learner: int, first: int, rows: Sequence[tuple[float, int]]) -> None:
    """Append finished matches (reward, length), numbered from `first`."""
    numbered = [(learner, first + index, reward, length) for index, (reward, length) in enumerate(rows)]
    connection.executemany("INSERT INTO match (learner, number, reward, length) VALUES (?, ?, ?, ?)", numbered)
    connection.execute("UPDATE learner SET num_matches = ? WHERE id = ?", (first + len(rows), learner))


def put_trajectory(
    connection: sqlite3.Connection, learner: int, match: str, moves: Sequence[Sequence[str]], end: str
) -> int | None:
    """Append a trajectory and return its number, or None if the learner has a match or a trajectory with this id.

    The number may come again if this trajectory is forgotten, so who holds a number must compare the id, too.
    """
    query = (
        "SELECT EXISTS (SELECT * FROM match WHERE learner = :learner AND id = :match) OR "
        "EXISTS (SELECT * FROM trajectory WHERE learner = :learner AND match = :match), "
        "(SELECT num_matches FROM learner WHERE id = :learner) "
        "+ (SELECT count(*) FROM trajectory WHERE learner = :learner), "
        "(SELECT coalesce(max(number) + 1, 0) FROM trajectory WHERE learner = :learner)"
    )
    exists, num_kept, after_last = connection.execute(query, {"learner": learner, "match": match}).fetchone()
    if exists:
        return None
    number = max(int(num_kept), int(after_last))
    row = (learner, number, match, len(moves), to_json(moves), end)
    connection.execute("INSERT INTO trajectory VALUES (?, ?, ?, ?, ?, ?)", row)
    return number


def _drop_trajectory(connection: sqlite3.Connection, learner: int, number: int, match: str | None) -> str | None:
    """Delete a trajectory and return its id, or None if there is none with this number and id (None: any id)."""
    where = "FROM trajectory WHERE learner = ? AND number = ? AND match = coalesce(?, match)"
    key = learner, number, match
    row = connection.execute(f"SELECT match {where}", key).fetchone()
    connection.execute(f"DELETE {where}", key)
    return None if row is None else str(row[0])


def put_sequences(
    connection: sqlite3.Connection,
    learner: int,
    sequences: Iterable[SequenceCells[Moves, Facts]],
    pairs: Iterable[PairCells[Moves, Facts]],
    moves: Callable[[Moves], bytes],
    facts: Callable[[Facts], bytes],
) -> None:
    """Replace all sequences and pairs of a learner. `moves` and `facts` return the cells of their moves and facts."""
    rows = [(i, row.role, row.kind, moves(row.moves), facts(row.context), *row[4:]) for i, row in enumerate(sequences)]
    replace_rows(connection, "sequence", learner, rows)
    pairs = list(pairs)
    heads = [
        (number, row.role, facts(row.context), *(_bounded(learner, count) for count in row[3:]))
        for number, row in enumerate(pairs)
    ]
    replace_rows(connection, "pair", learner, heads)
    branches = [
        (pair, number, kind, moves(branch))
        for pair, row in enumerate(pairs)
        for number, (kind, branch) in enumerate(row.branches)
    ]
    replace_rows(connection, "branch", learner, branches)


def put_features(connection: sqlite3.Connection, learner: int, values: FeatureTable, num_matches: int) -> None:
    """Replace the stored feature values of a learner. The new values were computed after `num_matches` matches."""
    replace_rows(connection, "feature", learner, _value_rows(learner, values))
    connection.execute("UPDATE learner SET features_at = ? WHERE id = ?", (num_matches, learner))


def _value_rows(learner: int, values: FeatureTable) -> list[tuple[str, float, int]]:
    return [
        (feature, _bounded(learner, value), min(int(visits), MOST_COUNT)) for feature, (value, visits) in values.items()
    ]


def _bounded(learner: int, value: float) -> float:
    """Return a number of the learner within the bounds of the schema, so that what it learns can be read again."""
    if math.isnan(value):
        raise KnowledgeError(
            f"expected numbers as the values of learner {learner}, got {value}, so nothing was stored; learn with "
            "other settings"
        )
    return min(max(float(value), -MOST_REAL), MOST_REAL)


def add_replies(connection: sqlite3.Connection, learner: int, inherited: int, replies: Replies) -> None:
    """Add replies to those of a learner: OWN, or INHERITED."""
    connection.executemany(
        "INSERT INTO reply VALUES (?, ?, ?, ?, ?, ?, ?, min(?, ?)) ON CONFLICT DO UPDATE "
        f"SET times = min(times + excluded.times, {MOST_SMALL})",
        [(learner, inherited, *row, MOST_SMALL) for row in reply_rows(replies)],
    )


def replace_rows(connection: sqlite3.Connection, table: str, learner: int, rows: Sequence[tuple[Any, ...]]) -> None:
    """Replace all rows of a learner in a table. The new rows do not contain the learner's number."""
    connection.execute(f"DELETE FROM {table} WHERE learner = ?", [learner])
    if rows:
        marks = ", ?" * len(rows[0])
        connection.executemany(f"INSERT INTO {table} VALUES (?{marks})", [(learner, *row) for row in rows])


def _where(selection: Selection) -> tuple[str, list[object]]:
    """Return the SQL condition of a selection, and the values of its parameters.

    Raise KnowledgeError for a text that no store has. A learner with a number that no store has does not exist.
    """
    for what, text in selection.items():
        if isinstance(text, str):
            check_text(f"the {what}", text)
    parts: dict[str, list[object]] = {}
    if (source := selection.get("source")) is not None:
        parts["? IN (game.name, rules_hash)"] = [source]
    if (role := selection.get("role")) is not None:
        parts["lower_case(CAST(role AS BLOB)) IN (?, ?)"] = [lower_case(name.encode()) for name in (role, ALL_ROLES)]
    if (opponent := selection.get("opponent")) is not None:
        kind = f"{opponent}:"
        parts["(opponent = ? OR substr(opponent, 1, ?) = ?)"] = [opponent, len(kind), kind]
    if (ids := selection.get("ids")) is not None:
        known = [number for number in ids if fits_sqlite(number)]
        parts[f"learner.id IN ({', '.join('?' * len(known))})"] = list(known)
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    return where, [value for values in parts.values() for value in values]


def value_table(rows: Sequence[ValueRow]) -> FeatureTable:
    """Return the feature values in these rows as a table."""
    return {feature: (value, visits) for feature, value, visits in rows}
