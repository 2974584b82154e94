"""Schema of the knowledge store: the tables of each format, the row types, and the SQLite file.

Several processes can use one file. SQLite runs in WAL mode with synchronous=NORMAL: if a process is killed, all
committed transactions remain. A power cut may lose the last transactions, but does not damage the file.

The `application_id` identifies a knowledge store. The `user_version` is its format. Nothing is written to other files,
or to stores of a newer format. When a store of an older format is opened, the missing tables are added, and all rows
remain. knowledge.py explains the meaning of the tables.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypedDict, TypeVar, cast

import msgspec
from msgspec import Meta

from ...errors import SHORT, KnowledgeError
from ...gdl.syntax import printable
from ...ground.clingo import MAX_GOAL

APPLICATION_ID = 0x676C6F72  # "glor" in ASCII; SQLite stores it in bytes 68-71 of the file
FORMAT = 7  # the user_version; a version of gamelore that adds tables increases it
BUSY_SECONDS = 30.0  # maximum time that a writer waits for other writers
MAX_COPIES = 5  # of a store that other processes change while it is copied

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

_REPLIES = """
CREATE TABLE reply (
    learner INTEGER NOT NULL REFERENCES learner, inherited INTEGER NOT NULL, wins INTEGER NOT NULL,
    losses INTEGER NOT NULL, gives INTEGER NOT NULL, neutrals INTEGER NOT NULL, chosen INTEGER NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (learner, inherited, wins, losses, gives, neutrals, chosen)) WITHOUT ROWID;
"""

_LESSONS = """
CREATE TABLE lesson (
    game INTEGER PRIMARY KEY REFERENCES game, id TEXT NOT NULL, version TEXT NOT NULL, created TEXT NOT NULL,
    updated TEXT NOT NULL, generation INTEGER NOT NULL, rounds INTEGER NOT NULL, walks INTEGER NOT NULL,
    seconds REAL NOT NULL, informed REAL NOT NULL, origin TEXT NOT NULL, likeness REAL NOT NULL,
    shapes BLOB NOT NULL, progress BLOB NOT NULL);
CREATE TABLE taught (
    game INTEGER NOT NULL REFERENCES game, pupil TEXT NOT NULL, number INTEGER NOT NULL, walks INTEGER NOT NULL,
    seconds REAL NOT NULL, determination REAL NOT NULL, foresight REAL NOT NULL, informed REAL NOT NULL,
    constants TEXT NOT NULL, weights TEXT NOT NULL, PRIMARY KEY (game, pupil, number)) WITHOUT ROWID;
CREATE TABLE opening (
    game INTEGER NOT NULL REFERENCES game, state BLOB NOT NULL, role INTEGER NOT NULL, move INTEGER NOT NULL,
    visits INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (game, state, move)) WITHOUT ROWID;
CREATE TABLE played (
    game INTEGER NOT NULL REFERENCES game, number INTEGER NOT NULL, id TEXT NOT NULL, role INTEGER NOT NULL,
    startclock INTEGER NOT NULL, moves TEXT NOT NULL, goals TEXT NOT NULL, created TEXT NOT NULL,
    PRIMARY KEY (game, number), UNIQUE (game, role, id)) WITHOUT ROWID;
CREATE TABLE trial (
    game INTEGER NOT NULL REFERENCES game, lesson TEXT NOT NULL, advice TEXT NOT NULL, number INTEGER NOT NULL,
    against TEXT NOT NULL, num INTEGER NOT NULL, total REAL NOT NULL, squares REAL NOT NULL, better REAL NOT NULL,
    worse REAL NOT NULL, PRIMARY KEY (game, lesson, advice, number, against)) WITHOUT ROWID;
"""

_OPPONENTS_AND_DESCRIPTORS = """
CREATE TABLE fit (
    game INTEGER NOT NULL REFERENCES game, number INTEGER NOT NULL, role INTEGER NOT NULL, player TEXT NOT NULL,
    log REAL NOT NULL, mean REAL NOT NULL, variance REAL NOT NULL, PRIMARY KEY (game, number, role, player))
    WITHOUT ROWID;
CREATE TABLE described (
    game INTEGER PRIMARY KEY REFERENCES game, descriptors TEXT NOT NULL);
"""

_NETWORKS = """
CREATE TABLE network (
    game INTEGER NOT NULL REFERENCES game, pupil TEXT NOT NULL, number INTEGER NOT NULL, facts TEXT NOT NULL,
    packed BLOB NOT NULL, PRIMARY KEY (game, pupil, number)) WITHOUT ROWID;
"""

SCHEMAS = (_AFTERSTATES, _SEQUENCES, _TRAJECTORIES, _REPLIES, _LESSONS, _OPPONENTS_AND_DESCRIPTORS, _NETWORKS)
"""SQL statements that add the tables of each format; the first entry belongs to format 1."""

LEARNER_TABLES = ("inherited", "match", "trajectory", "afterstate", "feature", "reply", "sequence", "pair", "branch")
"""The tables whose rows belong to a learner."""

LESSON_TABLES = ("lesson", "taught", "opening", "played", "trial", "fit", "described", "network")
"""The tables whose rows belong to a lesson about a game, see lesson_rows.py."""

IN_USE = " UNION ".join(f"SELECT game FROM {table}" for table in ("learner", *LESSON_TABLES))
"""SQL for the games that have a learner, or something that belongs to a lesson."""

DEPTH = 2  # default depth of features, for learners whose settings have no depth (B&S 2007, section 3)
ALL_ROLES = "all roles"  # stored as the role of a learner of sequences; the name of a GDL role contains no space


OWN, INHERITED = 0, 1  # values of the column `inherited`


def packed(numbers: Sequence[int]) -> bytes:
    """Return numbers of facts or moves as a cell, <u4 each."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpacked(numbers: bytes) -> tuple[int, ...]:
    """Return the numbers in a cell."""
    return struct.unpack(f"<{len(numbers) // 4}I", numbers)


def fits_sqlite(number: int) -> bool:
    """Return whether SQLite can store a number: whether it is a signed 64-bit number."""
    return LEAST_INTEGER <= number <= MOST_INTEGER


# bounds of the numbers and texts in a store and in an exported file

LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**63 - 1  # of SQLite
MOST_SMALL, MOST_COUNT, MOST_REAL = 2**31 - 1, 2**53, 1e9  # numbers that grow with learning stay at these
MOST_STAKE = 1.5  # of a gambler on the score of a trial, see memory/evidence.py

Index: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_COUNT)]
Integer: TypeAlias = Annotated[int, Meta(ge=LEAST_INTEGER, le=MOST_INTEGER)]
Small: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_SMALL)]
Flag: TypeAlias = Annotated[int, Meta(ge=0, le=1)]
Goal: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_GOAL)]
Real: TypeAlias = Annotated[float, Meta(ge=-MOST_REAL, le=MOST_REAL)]
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=MOST_REAL)]
Line: TypeAlias = Annotated[str, Meta(max_length=100_000, pattern=r"\A[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*\Z")]
"""A text without line breaks and other control characters, and without bytes that are not UTF-8."""
Rules: TypeAlias = Annotated[
    str, Meta(max_length=10_000_000, pattern=r"\A[^\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]*\Z")
]
Hash: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
JointMove: TypeAlias = Annotated[tuple[Line, ...], Meta(min_length=1)]
End: TypeAlias = Literal["terminal", "stuck", "cap"]
SequenceKind: TypeAlias = Literal["duet", "solo"]
Indices: TypeAlias = list[Index]
R = TypeVar("R")
Moves = TypeVar("Moves")
Facts = TypeVar("Facts")
"""Moves and facts are texts in memory. In an exported file they are indices into the list of facts of their game."""


class MatchRow(NamedTuple):
    """A finished match: its reward and its length.

    reward  reward of the learner; for a learner of sequences, the reward of the expert that it watched
    length  number of joint moves
    """

    reward: Real
    length: Small


class GameRow(NamedTuple):
    """A game of the store; `rules` is GDL text."""

    name: Line
    rules_hash: Hash
    rules: Rules


class FeatureRow(NamedTuple):
    """The value of one feature for one learner (a cell of Table 1), with the learner's identity."""

    learner: int
    game: Line
    role: Line
    opponent: Line
    feature: Line
    value: Real
    visits: Count


class ValueRow(NamedTuple):
    """The value of one feature."""

    feature: Line
    value: Real
    visits: Count


class ReplyRow(NamedTuple):
    """A decision of the opponents: how many moves of each class they had, which class they chose, how many times.

    inherited: OWN, or INHERITED for the decisions in other games with which the learner began; see td/replies.py
    """

    inherited: Flag
    wins: Small
    losses: Small
    gives: Small
    neutrals: Small
    chosen: Annotated[int, Meta(ge=0, le=3)]
    times: Annotated[int, Meta(ge=1, le=MOST_SMALL)]


class Origin(TypedDict):
    """The identity of a learner and its number of matches, independent of the store."""

    game: Line
    rules_hash: Hash
    role: Line
    opponent: Line
    settings: dict[str, Any]
    seed: Integer
    outcomes: list[Goal]
    num_matches: Small


@dataclass
class StoredLearner:
    """A learner of the store. Only `record` and `store_features` change it: its `num_matches` and `features_at`.

    role      ALL_ROLES for a learner of sequences
    sources   the `origin` of every learner whose features this learner received at its start
    outcomes  all possible goal values of this role, ascending
    """

    id: int
    game: Line
    rules_hash: Hash
    role: Line
    opponent: Line
    settings: dict[str, Any]
    seed: Integer
    version: Line
    created: Line
    sources: list[Origin]
    outcomes: list[Goal]
    num_matches: Small
    features_at: Small

    @property
    def origin(self) -> Origin:
        """See `Origin`."""
        return cast(Origin, {key: getattr(self, key) for key in Origin.__annotations__})

    @property
    def has_sequences(self) -> bool:
        """Whether the learner learns sequences instead of values."""
        return self.role == ALL_ROLES

    @property
    def depth(self) -> int:
        """Depth of the learner's features, in plies below an afterstate."""
        return int(self.settings.get("depth", DEPTH))


class AfterstateCells(NamedTuple, Generic[Facts]):
    """The state after a learner's own move, with its learned value.

    facts   the facts of the state
    q       value in units of reward
    visits  number of visits
    """

    facts: Facts
    q: Real
    visits: Small


class Trajectory(NamedTuple):
    """A finished match from which the learner has not learned yet.

    number  position of the match in the order of learning
    match   id of the match, unique among the matches of the learner
    moves   for each ply the moves of all roles, as text, in the order of roles
    end     "terminal", "stuck" or "cap", see `matches.match`
    """

    number: Small
    match: Line
    moves: tuple[JointMove, ...]
    end: End


class SequenceCells(NamedTuple, Generic[Moves, Facts]):
    """A sequence of a SeqTable.

    kind        "duet" or "solo"
    moves       moves in order, each as a term (does ROLE MOVE)
    context     common facts of the origin states of the sequence
    encounters  number of times that the sequence was met
    several     1 if the sequence was met in different origin states, else 0
    """

    role: Line
    kind: SequenceKind
    moves: Moves
    context: Facts
    encounters: Small
    several: Flag


class PairCells(NamedTuple, Generic[Moves, Facts]):
    """A context pair with the counts of its advice, see `contexts.Record`.

    branches: the sequences of the pair, each as (kind, moves); see `SequenceCells` for both.
    """

    role: Line
    context: Facts
    branches: Annotated[tuple[tuple[SequenceKind, Moves], ...], Meta(min_length=1)]
    comments: Weight
    agreements: Weight
    tries: Weight
    successes: Weight


Afterstate: TypeAlias = AfterstateCells[frozenset[str]]
SequenceRow: TypeAlias = SequenceCells[tuple[str, ...], frozenset[str]]
PairRow: TypeAlias = PairCells[tuple[str, ...], frozenset[str]]


class LearnedRows(NamedTuple):
    """Knowledge of a learner as rows: afterstates and replies for a learner of values, else sequences and pairs.

    replies  counted replies of the opponents, as items of `features.Replies`: all of them when they are read, only the
             new ones when they are stored
    """

    afterstates: Iterable[Afterstate] = ()
    sequences: Iterable[SequenceRow] = ()
    pairs: Iterable[PairRow] = ()
    replies: Iterable[tuple[tuple[int, ...], int]] = ()


_LAYOUT = """
    SELECT tables.name, 'column', columns.name, columns.type, columns."notnull", columns.pk, columns.hidden
        FROM main.sqlite_master AS tables, pragma_table_xinfo(tables.name, 'main') AS columns
    UNION ALL SELECT tables.name, 'index', columns.name, indices.origin, indices."unique", columns.seqno, 0
        FROM main.sqlite_master AS tables, pragma_index_list(tables.name, 'main') AS indices,
        pragma_index_info(indices.name, 'main') AS columns
    UNION ALL SELECT tables.name, 'reference', keys."from", keys."table", keys.on_update, keys.on_delete, 0
        FROM main.sqlite_master AS tables, pragma_foreign_key_list(tables.name, 'main') AS keys
"""


@cache
def _layout(version: int) -> frozenset[tuple[Any, ...]]:
    """Return the columns, indices and references of all tables of a format, as rows of _LAYOUT."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for schema in SCHEMAS[:version]:
            connection.executescript(schema)
        return frozenset(connection.execute(_LAYOUT))


IN_MEMORY = Path(":memory:")
"""The path of a store that is only in memory."""


class StoreFile:
    """An open SQLite file with the tables of SCHEMAS; a context manager that closes the file.

    path      the file, or IN_MEMORY
    create    whether to create a missing file; if False, the file must exist
    writable  whether the file may be changed; if False, an older format is not updated either

    The attribute `is_writable` tells whether the store can be changed: it is `writable`, and True after `detach`.
    Raises KnowledgeError if the file is missing, damaged or not writable, or is not a store of a known format.
    """

    def __init__(self, path: Path, *, create: bool = True, writable: bool = True) -> None:
        self.path = path
        self.is_writable = writable
        if path == IN_MEMORY:
            self._connection = _connected(str(path))
            self._prepare(self._connection)
            return
        if not ((create and writable) or path.exists()):
            raise self._missing()
        try:
            if create and writable:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connected(path.absolute().as_uri())
        except (OSError, sqlite3.Error) as error:
            raise self._unwritable(error) from error
        try:
            with self.reported() as connection:
                if writable or _is_readable(connection):
                    self._prepare(connection)
                else:
                    self._read_copy()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def detach(self) -> None:
        """Go on with a copy of the store in memory, which can be changed. The file remains as it is."""
        with self.reported() as file:
            with closing(file), _transaction(file, "DEFERRED"):
                file.execute("SELECT * FROM sqlite_master LIMIT 1")  # `backup` waits for ever for a lock
                self._connection = _connected(":memory:")
                file.backup(self._connection)
            self.is_writable = True
            self._prepare(self._connection)

    def as_bytes(self) -> bytes:
        """Return the whole store, for `fill`."""
        with self.reported() as connection:
            return connection.serialize()

    def fill(self, data: bytes) -> None:
        """Replace a store in memory by the one with these bytes."""
        assert self.path == IN_MEMORY
        with self.reported() as connection:
            connection.deserialize(data)

    def _read_copy(self) -> None:
        """Copy the store into memory.

        To read a file in WAL mode, SQLite needs two other files beside it. In a folder that cannot be written, they
        exist only while another process has the store open. The option `immutable` of SQLite does without them, but it
        reads nonsense if such a process comes later. So this method copies the file and its log.
        """
        files = [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-journal")]
        for _ in range(MAX_COPIES):
            with self._temporary_folder() as folder:
                try:
                    before = list(map(_version, files))
                    for file in files:
                        with suppress(FileNotFoundError):
                            shutil.copyfile(file, Path(folder, file.name))
                    is_whole = before == list(map(_version, files))
                except OSError as error:
                    raise self._unwritable(error) from error
                if is_whole:
                    self._connection.close()
                    self._connection = _connected(Path(folder, self.path.name).as_uri())
                    self.detach()
                    self._connection.execute("PRAGMA query_only = ON")
                    self.is_writable = False
                    return
        raise KnowledgeError(f"{self.path}: another process changes the store; wait until it ends, and try again")

    def _temporary_folder(self) -> TemporaryDirectory[str]:
        try:
            return TemporaryDirectory()
        except OSError as error:
            raise KnowledgeError(
                f"{self.path}: expected a temporary folder for a copy of the store, which cannot be read in its own "
                f"folder, got: {error}; set TMPDIR to a folder that can be written"
            ) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check the format, set the pragmas, and add the missing tables."""
        connection.execute("PRAGMA cell_size_check = ON")  # SQLite then reports a damaged page and does not decode it
        version = self._format(connection)
        if not self.is_writable:
            if not version:
                raise self._missing()
            self._add_empty_tables(connection, version)
            connection.execute("PRAGMA query_only = ON")
            return
        switch_to_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if version < FORMAT:
            self._make_tables(connection)

    def _format(self, connection: sqlite3.Connection) -> int:
        """Return the format of the store: 1 .. FORMAT, or 0 for an empty file.

        Raise KnowledgeError for any other file.
        """
        application, version, tables = connection.execute(
            "SELECT * FROM pragma_application_id, pragma_user_version, (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if application == version == tables == 0:
            return 0
        if application != APPLICATION_ID:
            raise KnowledgeError(
                f"{self.path}: expected a gamelore knowledge store, got an SQLite file of another "
                f"application (application_id {application:#x}); name another file"
            )
        if not 1 <= version <= FORMAT:
            reason = "no version of gamelore writes; name another file"
            if version > FORMAT:
                reason = "a newer version of gamelore wrote; update gamelore (pip install -U gamelore)"
            raise KnowledgeError(
                f"{self.path}: expected knowledge of format {FORMAT} or older, got format {version}, which {reason}"
            )
        for (sql,) in connection.execute("SELECT sql FROM sqlite_master"):
            # a trigger or a view could change or invent rows; SQLite goes by `sql`, whatever the column `type` says
            if sql is not None and not sql.upper().startswith(("CREATE TABLE", "CREATE UNIQUE INDEX")):
                raise KnowledgeError(
                    f"{self.path}: expected only tables of knowledge, got {printable(sql, SHORT)}, which no version "
                    "of gamelore writes; name another file"
                )
        own = _layout(version)
        tables = {table for table, *_ in own}  # a reference from another table would prevent a deletion
        layout = {row for row in connection.execute(_LAYOUT) if row[0] in tables or row[1] == "reference"}
        if others := own ^ layout:
            table, kind, name, *_ = min(others, key=repr)
            raise KnowledgeError(
                f"{self.path}: expected the tables of knowledge, got another {kind} {printable(name)} in "
                f"{printable(table)}, which no version of gamelore writes; name another file"
            )
        return int(version)

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Add the tables of all formats that are newer than the format of the file."""
        with _transaction(connection, "IMMEDIATE"):
            version = self._format(connection)  # read again, because another process may have added the tables
            for schema in SCHEMAS[version:]:
                for statement in schema.split(";\n"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _add_empty_tables(self, connection: sqlite3.Connection, version: int) -> None:
        """Add the tables that a file of an older format lacks as temporary tables, which do not change the file."""
        connection.execute("PRAGMA temp_store = MEMORY")
        for schema in SCHEMAS[version:]:
            for statement in schema.split(";\n"):
                if statement.lstrip().startswith("CREATE TABLE"):
                    connection.execute(statement.replace("CREATE TABLE", "CREATE TEMPORARY TABLE", 1))

    def _missing(self) -> KnowledgeError:
        return KnowledgeError(
            f"{self.path}: expected a knowledge store, got {'an empty' if self.path.exists() else 'no such'} file; "
            "learn a game first (gamelore learn, gamelore study), or name another file"
        )

    def _unwritable(self, error: Exception) -> KnowledgeError:
        return KnowledgeError(
            f"{self.path}: expected a file that can be opened and written, got: {error}; name another file "
            "(--knowledge, or the environment variable GAMELORE_KNOWLEDGE)"
        )

    @contextmanager
    def reported(self) -> Iterator[sqlite3.Connection]:
        """Turn errors of SQLite, and errors in the decoding of rows, into KnowledgeErrors that name a remedy."""
        try:
            yield self._connection
        except msgspec.ValidationError as error:
            raise KnowledgeError(
                f"{self.path}: expected rows as gamelore stores them, got: {error}; gamelore knowledge check tells "
                "what is wrong in this store"
            ) from error
        except (sqlite3.Error, msgspec.DecodeError, struct.error, RecursionError) as error:
            if _code(error) in _LOCKED:
                raise KnowledgeError(
                    f"{self.path}: another process has locked the store; wait until it ends, and try again"
                ) from error
            if _code(error) in _UNWRITABLE:
                raise self._unwritable(error) from error
            raise KnowledgeError(
                f"{self.path}: expected a readable knowledge store, got: {error}; name another file, or "
                "restore the knowledge from an export (gamelore knowledge import, or gamelore lessons import)"
            ) from error

    @contextmanager
    def patience(self, seconds: float) -> Iterator[None]:
        """Let writers wait for other writers only so long inside the context, in place of BUSY_SECONDS."""
        self._connection.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
        try:
            yield
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS:.0f}")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction: either all changes inside the context are stored, or none of them."""
        with self.reported(), _transaction(self._connection, "IMMEDIATE"):
            yield self._connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a read transaction: all reads inside the context see the store as it was at its beginning."""
        with self.reported(), _transaction(self._connection, "DEFERRED"):
            yield self._connection


def _connected(uri: str) -> sqlite3.Connection:
    """Open an SQLite file. The owner may use the connection in another thread, which SQLite allows.

    Bytes that are not UTF-8 become surrogates, so that the type `Line` refuses the text that has them.
    """
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    connection.create_function("lower_case", 1, lower_case, deterministic=True)  # lower() knows only letters of ASCII
    return connection


def lower_case(text: bytes) -> bytes:
    """Return a text in lower case. Bytes that are not UTF-8 stay as they are."""
    return text.decode(errors="surrogateescape").lower().encode(errors="surrogateescape")


_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNOPENED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_UNWRITABLE = (*_UNOPENED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)


def _code(error: Exception) -> int:
    """Return the primary error code of SQLite; SQLITE_ERROR for an error that is not from SQLite."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def _is_readable(connection: sqlite3.Connection) -> bool:
    """Whether SQLite can open the file, and the files beside it."""
    try:
        connection.execute("SELECT * FROM sqlite_master LIMIT 1")
    except sqlite3.OperationalError as error:
        return _code(error) not in _UNOPENED
    return True


def _version(file: Path) -> tuple[int, int] | None:
    """Return what changes with each change of a file; None for no file."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Open a transaction, unless one is open; commit it at the end of the context, or roll it back after an error.

    kind: "IMMEDIATE" takes the write lock first, so writers wait for each other there; "DEFERRED" takes no lock then.
    """
    if connection.in_transaction:
        yield
        return
    try:
        connection.execute(f"BEGIN {kind}")
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL mode permanently, so that readers do not wait for a writer.

    SQLite does not wait for locks in this statement, so this function repeats the statement while the file is locked.
    It raises sqlite3.OperationalError after BUSY_SECONDS.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) not in _LOCKED or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def from_json(text: object) -> Any:
    """Return the value of JSON in a cell. Raise msgspec.DecodeError for a cell without JSON in UTF-8."""
    try:
        return msgspec.json.decode(str(text))
    except UnicodeEncodeError as error:
        raise msgspec.ValidationError("Expected a text in UTF-8") from error


def to_json(value: Any) -> str:
    """Return canonical JSON, so that equal settings have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


# queries of the rows of a learner


def typed(rows: Iterable[Any], kind: type[R]) -> list[R]:
    """Return rows as objects of this type. Raise msgspec.ValidationError for a cell that does not fit the type."""
    try:
        return msgspec.convert(list(rows), list[kind], builtin_types=(bytes,))  # type: ignore[valid-type]
    except UnicodeEncodeError as error:  # msgspec looks up a text of bytes that are not UTF-8 among those of a Literal
        raise msgspec.ValidationError("Expected a text in UTF-8") from error


def typed_by_game(rows: Iterable[Any], kind: type[R]) -> list[R]:
    """Return rows whose first cell names a game, see `typed`, without those of games that have a damaged row."""
    games = defaultdict[Any, list[Any]](list)
    for row in rows:
        games[row[0]].append(row)
    sound: list[R] = []
    for own in games.values():
        with suppress(msgspec.ValidationError):
            sound += typed(own, kind)
    return sound


@dataclass(frozen=True)
class RowQuery(Generic[R]):
    """The SQL query for rows of a learner, and their type."""

    sql: str
    kind: type[R]

    def of(self, connection: sqlite3.Connection, learner: int) -> list[R]:
        """Return all rows of a learner, see `typed`."""
        return typed(connection.execute(self.sql, [learner]), self.kind)


INHERITED_VALUES = RowQuery("SELECT feature, value, visits FROM inherited WHERE learner = ? ORDER BY feature", ValueRow)
MATCHES = RowQuery("SELECT reward, length FROM match WHERE learner = ? ORDER BY number", MatchRow)
AFTERSTATES = RowQuery(
    "SELECT state, q, visits FROM afterstate WHERE learner = ? ORDER BY state", AfterstateCells[bytes]
)
FEATURES = RowQuery("SELECT feature, value, visits FROM feature WHERE learner = ? ORDER BY feature", ValueRow)
REPLIES = RowQuery(
    "SELECT inherited, wins, losses, gives, neutrals, chosen, times FROM reply WHERE learner = ? "
    "ORDER BY inherited, wins, losses, gives, neutrals, chosen",
    ReplyRow,
)
SEQUENCES = RowQuery(
    "SELECT role, kind, moves, context, encounters, several FROM sequence WHERE learner = ? ORDER BY number",
    SequenceCells[bytes, bytes],
)


def get_trajectories(connection: sqlite3.Connection, learner: int) -> list[Trajectory]:
    """Return all trajectories of a learner, in the order of their numbers."""
    query = "SELECT number, match, moves, end FROM trajectory WHERE learner = ? ORDER BY number"
    rows = connection.execute(query, [learner]).fetchall()
    return typed([(number, match, from_json(moves), end) for number, match, moves, end in rows], Trajectory)


def get_pairs(connection: sqlite3.Connection, learner: int) -> list[PairCells[bytes, bytes]]:
    """Return all pairs of a learner, in the order of their numbers."""
    branches: dict[int, list[tuple[str, bytes]]] = defaultdict(list)
    query = "SELECT pair, kind, moves FROM branch WHERE learner = ? ORDER BY pair, number"
    for pair, kind, moves in typed(connection.execute(query, [learner]), tuple[int, SequenceKind, bytes]):
        branches[pair].append((kind, moves))
    columns = "number, role, context, comments, agreements, tries, successes"
    rows = connection.execute(f"SELECT {columns} FROM pair WHERE learner = ? ORDER BY number", [learner]).fetchall()
    cells = ((role, context, branches[pair], *record) for pair, role, context, *record in rows)
    return typed(cells, PairCells[bytes, bytes])
