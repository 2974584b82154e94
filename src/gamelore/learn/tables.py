"""The tables of a knowledge store, and how rows get in and out.

Every function works inside its caller's transaction. `knowledge` tells what the tables mean. Whatever changes
here raises `storefile.FORMAT`.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..errors import KnowledgeError

SCHEMA = """
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

FeatureTable: TypeAlias = Mapping[str, tuple[float, int]]
"""Feature text -> (value in units of reward, visits)."""


class Afterstate(NamedTuple):
    """What a learner's own move leads to: the state as facts, its value in units of reward, its visits."""

    facts: frozenset[str]
    q: float
    visits: int


class FactNumbers:
    """Facts as numbers, game by game: 0, 1, .. in the order in which the store first met them."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, int]] = {}

    def forget(self) -> None:
        """After a transaction that came to nothing: the numbers given in it are void."""
        self._known.clear()

    def encode(self, connection: sqlite3.Connection, game: int, facts: frozenset[str]) -> bytes:
        """The sorted numbers of these facts, <u4 each; facts new to the store get the next numbers."""
        known = self._known.setdefault(game, {})
        if not known.keys() >= facts:
            self._learn(connection, game, facts)
        numbers = sorted(known[fact] for fact in facts)
        return struct.pack(f"<{len(numbers)}I", *numbers)

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
    names = dict(connection.execute("SELECT number, text FROM fact WHERE game = ?", [game]).fetchall())
    query = "SELECT state, q, visits FROM afterstate WHERE learner = ? ORDER BY state"
    return [
        Afterstate(frozenset(names[number] for number in fact_numbers(state)), q, visits)
        for state, q, visits in connection.execute(query, [learner])
    ]


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
    connection.executemany("INSERT INTO match VALUES (?, ?, ?, ?)", numbered)
    connection.execute("UPDATE learner SET num_matches = ? WHERE id = ?", (first + len(rows), learner))


def get_matches(connection: sqlite3.Connection, learner: int) -> list[tuple[float, int]]:
    """(reward, length) of all finished matches, in their order."""
    query = "SELECT reward, length FROM match WHERE learner = ? ORDER BY number"
    return connection.execute(query, [learner]).fetchall()


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
