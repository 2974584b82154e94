"""The tables of a knowledge store, and how rows get in and out.

Every function works inside its caller's transaction. `knowledge` tells what the tables mean. New tables make a new
schema, and raise `storefile.FORMAT`.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import KnowledgeError
from .storerows import Afterstate as Afterstate
from .storerows import PairRow as PairRow
from .storerows import SequenceRow as SequenceRow
from .storerows import Trajectory

_AFTERSTATES = """
CREATE TABLE game (
    id INTEGER PRIMARY KEY, rules_hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL, roles TEXT NOT NULL,
    rules TEXT NOT NULL);
CREATE TABLE fact (
    game INTEGER NOT NULL REFERENCES game, number INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (game, number), UNIQUE (game, text)) WITHOUT ROWID;
CREATE TABLE learner (
    id INTEGER PRIMARY KEY, game INTEGER NOT NULL REFERENCES game, role TEXT NOT NULL, opponent TEXT NOT NULL,
    settings TEXT NOT NULL, seed INTEGER NOT NULL, version TEXT NOT NULL, created TEXT NOT NULL,
    sources TEXT NOT NULL, outcomes TEXT NOT NULL,
    num_matches INTEGER NOT NULL DEFAULT 0, features_at INTEGER NOT NULL DEFAULT 0,
    UNIQUE (game, role, opponent, settings, seed));
CREATE TABLE inherited (
    learner INTEGER NOT NULL REFERENCES learner, feature TEXT NOT NULL, value REAL NOT NULL,
    visits INTEGER NOT NULL, PRIMARY KEY (learner, feature)) WITHOUT ROWID;
CREATE TABLE match (
    learner INTEGER NOT NULL REFERENCES learner, number INTEGER NOT NULL, reward REAL NOT NULL,
    length INTEGER NOT NULL, PRIMARY KEY (learner, number)) WITHOUT ROWID;
CREATE TABLE afterstate (
    learner INTEGER NOT NULL REFERENCES learner, state BLOB NOT NULL, q REAL NOT NULL,
    visits INTEGER NOT NULL, PRIMARY KEY (learner, state)) WITHOUT ROWID;
CREATE TABLE feature (
    learner INTEGER NOT NULL REFERENCES learner, feature TEXT NOT NULL, value REAL NOT NULL,
    visits INTEGER NOT NULL, PRIMARY KEY (learner, feature)) WITHOUT ROWID;
"""

_SEQUENCES = """
CREATE TABLE sequence (
    learner INTEGER NOT NULL REFERENCES learner, number INTEGER NOT NULL, role TEXT NOT NULL, kind TEXT NOT NULL,
    moves BLOB NOT NULL, context BLOB NOT NULL, encounters INTEGER NOT NULL, several INTEGER NOT NULL,
    PRIMARY KEY (learner, number)) WITHOUT ROWID;
CREATE TABLE pair (
    learner INTEGER NOT NULL REFERENCES learner, number INTEGER NOT NULL, role TEXT NOT NULL, context BLOB NOT NULL,
    comments REAL NOT NULL, agreements REAL NOT NULL, tries REAL NOT NULL, successes REAL NOT NULL,
    PRIMARY KEY (learner, number)) WITHOUT ROWID;
CREATE TABLE branch (
    learner INTEGER NOT NULL REFERENCES learner, pair INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL,
    moves BLOB NOT NULL, PRIMARY KEY (learner, pair, number)) WITHOUT ROWID;
"""

_TRAJECTORIES = """
CREATE TABLE trajectory (
    learner INTEGER NOT NULL REFERENCES learner, number INTEGER NOT NULL, match TEXT NOT NULL,
    plies INTEGER NOT NULL, moves TEXT NOT NULL, end TEXT NOT NULL, PRIMARY KEY (learner, number)) WITHOUT ROWID;
ALTER TABLE match ADD COLUMN id TEXT;
CREATE UNIQUE INDEX match_id ON match (learner, id) WHERE id IS NOT NULL;
"""

SCHEMAS = (_AFTERSTATES, _SEQUENCES, _TRAJECTORIES)
"""By format, from 1 on: the tables that came with it."""

FeatureTable: TypeAlias = Mapping[str, tuple[float, int]]
"""Feature text -> (value in units of reward, visits)."""


class FactNumbers:
    """Facts and moves as numbers, game by game: 0, 1, .. in the order in which the store first met them."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, int]] = {}

    def forget(self) -> None:
        """After a transaction that came to nothing: the numbers given in it are void."""
        self._known.clear()

    def encode(self, connection: sqlite3.Connection, game: int, facts: frozenset[str]) -> bytes:
        """The sorted numbers of these facts, <u4 each; facts new to the store get the next numbers."""
        return _packed(sorted(self._numbers(connection, game, facts)))

    def encode_moves(self, connection: sqlite3.Connection, game: int, moves: Sequence[str]) -> bytes:
        """The same for moves, in their order."""
        return _packed(self._numbers(connection, game, moves))

    def _numbers(self, connection: sqlite3.Connection, game: int, texts: Collection[str]) -> list[int]:
        known = self._known.setdefault(game, {})
        if any(text not in known for text in texts):
            self._learn(connection, game, frozenset(texts))
        return [known[text] for text in texts]

    def _learn(self, connection: sqlite3.Connection, game: int, facts: frozenset[str]) -> None:
        known = self._known[game]
        query = "SELECT text, number FROM fact WHERE game = ? AND number >= ?"
        known.update(connection.execute(query, (game, len(known))).fetchall())  # perhaps from another process
        for fact in sorted(facts - known.keys()):
            connection.execute("INSERT INTO fact VALUES (?, ?, ?)", (game, len(known), fact))
            known[fact] = len(known)

    def put(self, connection: sqlite3.Connection, game: int, learner: int, afterstates: Iterable[Afterstate]) -> None:
        """Insert afterstates, or replace what is stored of them."""
        rows = [
            (
                learner,
                self.encode(connection, game, frozenset(after.facts)),
                float(after.q),
                int(after.visits),
            )
            for after in afterstates
        ]
        connection.executemany("INSERT OR REPLACE INTO afterstate VALUES (?, ?, ?, ?)", rows)


def get_afterstates(connection: sqlite3.Connection, game: int, learner: int) -> list[Afterstate]:
    """All of a learner's, in the order of the file."""
    names = _names(connection, game)
    query = "SELECT state, q, visits FROM afterstate WHERE learner = ? ORDER BY state"
    return [
        Afterstate(frozenset(names[number] for number in fact_numbers(state)), q, visits)
        for state, q, visits in connection.execute(query, [learner])
    ]


def put_sequences(
    connection: sqlite3.Connection,
    numbers: FactNumbers,
    game: int,
    learner: int,
    sequences: Iterable[SequenceRow],
    pairs: Iterable[PairRow],
) -> None:
    """Put these in the place of all sequences and pairs that are stored of a learner."""
    for table in ("sequence", "pair", "branch"):
        connection.execute(f"DELETE FROM {table} WHERE learner = ?", [learner])

    def facts(context: frozenset[str]) -> bytes:
        return numbers.encode(connection, game, context)

    def moves(texts: tuple[str, ...]) -> bytes:
        return numbers.encode_moves(connection, game, texts)

    met = [
        (learner, number, row.role, row.kind, moves(row.moves), facts(row.context), row.encounters, row.several)
        for number, row in enumerate(sequences)
    ]
    connection.executemany("INSERT INTO sequence VALUES (?, ?, ?, ?, ?, ?, ?, ?)", met)
    rows = list(pairs)
    known = [(learner, number, row.role, facts(row.context), *row[3:]) for number, row in enumerate(rows)]
    connection.executemany("INSERT INTO pair VALUES (?, ?, ?, ?, ?, ?, ?, ?)", known)
    branches = [
        (learner, pair, number, kind, moves(texts))
        for pair, row in enumerate(rows)
        for number, (kind, texts) in enumerate(row.branches)
    ]
    connection.executemany("INSERT INTO branch VALUES (?, ?, ?, ?, ?)", branches)


def get_sequences(connection: sqlite3.Connection, game: int, learner: int) -> list[SequenceRow]:
    """All of a learner's, in the order in which it met them."""
    names = _names(connection, game)
    query = "SELECT role, kind, moves, context, encounters, several FROM sequence WHERE learner = ? ORDER BY number"
    return [
        SequenceRow(role, kind, _texts(names, moves), frozenset(_texts(names, context)), encounters, bool(several))
        for role, kind, moves, context, encounters, several in connection.execute(query, [learner])
    ]


def get_pairs(connection: sqlite3.Connection, game: int, learner: int) -> list[PairRow]:
    """All of a learner's, in their order."""
    names = _names(connection, game)
    query = "SELECT pair, kind, moves FROM branch WHERE learner = ? ORDER BY pair, number"
    branches: dict[int, list[tuple[str, tuple[str, ...]]]] = {}
    for pair, kind, moves in connection.execute(query, [learner]):
        branches.setdefault(pair, []).append((kind, _texts(names, moves)))
    columns = "number, role, context, comments, agreements, tries, successes"
    query = f"SELECT {columns} FROM pair WHERE learner = ? ORDER BY number"
    return [
        PairRow(role, frozenset(_texts(names, context)), tuple(branches.get(pair, ())), *record)
        for pair, role, context, *record in connection.execute(query, [learner])
    ]


def _names(connection: sqlite3.Connection, game: int) -> dict[int, str]:
    return dict(connection.execute("SELECT number, text FROM fact WHERE game = ?", [game]).fetchall())


def _texts(names: Mapping[int, str], numbers: bytes) -> tuple[str, ...]:
    return tuple(names[number] for number in fact_numbers(numbers))


def _packed(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def fact_numbers(state: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(state) // 4}I", state)


def to_json(value: Any) -> str:
    """One text for one value, so that equal settings are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def put_game(connection: sqlite3.Connection, rules_hash: str, name: str, roles: Sequence[str], rules: str) -> int:
    """The id of the game with these rules, added where it is new (the first name that it came with stays)."""
    insert = "INSERT INTO game (rules_hash, name, roles, rules) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    connection.execute(insert, (rules_hash, name, to_json(list(roles)), rules))
    return int(connection.execute("SELECT id FROM game WHERE rules_hash = ?", [rules_hash]).fetchone()[0])


def find_learner(connection: sqlite3.Connection, *identity: object) -> int | None:
    """The id of a learner by (game id, role, opponent, settings, seed)."""
    query = "SELECT id FROM learner WHERE (game, role, opponent, settings, seed) = (?, ?, ?, ?, ?)"
    row = connection.execute(query, identity).fetchone()
    return None if row is None else int(row[0])


def add_learner(connection: sqlite3.Connection, *values: object) -> int:
    """The id of a new learner of (identity.., version, created, sources, outcomes)."""
    columns = "game, role, opponent, settings, seed, version, created, sources, outcomes"
    cursor = connection.execute(f"INSERT INTO learner ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def progress(connection: sqlite3.Connection, learner: int) -> tuple[int, int]:
    """(game id, number of matches) of a learner."""
    row = connection.execute("SELECT game, num_matches FROM learner WHERE id = ?", [learner]).fetchone()
    if row is None:
        raise KnowledgeError(f"expected a learner of this store, got number {learner}; was the file replaced?")
    return int(row[0]), int(row[1])


def put_matches(connection: sqlite3.Connection, learner: int, first: int, rows: Sequence[tuple[float, int]]) -> None:
    """Append finished matches (reward, length), numbered from `first`."""
    numbered = [(learner, first + index, reward, length) for index, (reward, length) in enumerate(rows)]
    connection.executemany("INSERT INTO match (learner, number, reward, length) VALUES (?, ?, ?, ?)", numbered)
    connection.execute("UPDATE learner SET num_matches = ? WHERE id = ?", (first + len(rows), learner))


def get_matches(connection: sqlite3.Connection, learner: int) -> list[tuple[float, int]]:
    """(reward, length) of all finished matches, in their order."""
    query = "SELECT reward, length FROM match WHERE learner = ? ORDER BY number"
    return connection.execute(query, [learner]).fetchall()


def put_trajectory(
    connection: sqlite3.Connection, learner: int, match: str, moves: Sequence[Sequence[str]], end: str
) -> int | None:
    """Append a match that is over; its number, or None where the learner has, or had, a match of this id."""
    query = (
        "SELECT EXISTS (SELECT * FROM match WHERE learner = :learner AND id = :match) OR "
        "EXISTS (SELECT * FROM trajectory WHERE learner = :learner AND match = :match), "
        "(SELECT num_matches FROM learner WHERE id = :learner), "
        "(SELECT coalesce(max(number) + 1, 0) FROM trajectory WHERE learner = :learner)"
    )
    known, learned, kept = connection.execute(query, {"learner": learner, "match": match}).fetchone()
    if known:
        return None
    number = max(int(learned), int(kept))
    row = (learner, number, match, len(moves), to_json(moves), end)
    connection.execute("INSERT INTO trajectory VALUES (?, ?, ?, ?, ?, ?)", row)
    return number


def get_trajectories(connection: sqlite3.Connection, learner: int) -> list[Trajectory]:
    """All of a learner's, in their order."""
    query = "SELECT number, match, moves, end FROM trajectory WHERE learner = ? ORDER BY number"
    return [
        Trajectory(number, match, tuple(map(tuple, json.loads(moves))), end)
        for number, match, moves, end in connection.execute(query, [learner])
    ]


def drop_trajectory(connection: sqlite3.Connection, learner: int, number: int) -> str | None:
    """Delete one; the match's id, or None where it is not there."""
    where = "FROM trajectory WHERE learner = ? AND number = ?"
    found = connection.execute(f"SELECT match {where}", (learner, number)).fetchone()
    connection.execute(f"DELETE {where}", (learner, number))
    return None if found is None else str(found[0])


def name_match(connection: sqlite3.Connection, learner: int, number: int, match: str) -> None:
    """Note the id that a finished match had."""
    connection.execute("UPDATE match SET id = ? WHERE learner = ? AND number = ?", (match, learner, number))


def put_features(connection: sqlite3.Connection, learner: int, values: FeatureTable, num_matches: int) -> None:
    """Put feature values, as of so many matches, in the place of those stored."""
    connection.execute("DELETE FROM feature WHERE learner = ?", [learner])
    put_values(connection, "feature", learner, values)
    connection.execute("UPDATE learner SET features_at = ? WHERE id = ?", (num_matches, learner))


def put_values(connection: sqlite3.Connection, table: str, learner: int, values: FeatureTable) -> None:
    """Insert into `feature` or `inherited`."""
    rows = [(learner, feature, float(value), int(visits)) for feature, (value, visits) in values.items()]
    connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)


def get_values(connection: sqlite3.Connection, table: str, learner: int) -> dict[str, tuple[float, int]]:
    """All of a learner's from `feature` or `inherited`, by text."""
    query = f"SELECT feature, value, visits FROM {table} WHERE learner = ? ORDER BY feature"
    return {feature: (value, visits) for feature, value, visits in connection.execute(query, [learner])}
