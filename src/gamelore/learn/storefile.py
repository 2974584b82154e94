"""A knowledge store as a file: opened, told from other files, written by several, and what goes wrong.

SQLite in WAL mode with synchronous=NORMAL: a process that is killed loses no transaction that was committed;
a power cut may cost the last ones, never the file. A file that is not ours is told by its `application_id`,
one of a newer format by its `user_version`, and neither is ever written to. One of an older format gets the tables that
came after it when it is opened; what is in it stays as it is.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import KnowledgeError

APPLICATION_ID = 0x676C6F72  # "glor"; SQLite keeps it in bytes 68-71 of the file
FORMAT = 3  # user_version; raised whenever there are more tables
BUSY_SECONDS = 30.0  # how long a writer waits for the others


class StoreFile:
    """An open file with the tables of `schemas`, made where there is none (unless `create` is False).

    schemas   by format, from 1 on: the statements that make the tables which came with it
    writable  False: nothing in the file is changed, not even its format

    Raises KnowledgeError where the file is no store of these formats, is damaged, missing or not writable.
    """

    def __init__(self, path: Path, schemas: Sequence[str], *, create: bool, writable: bool = True) -> None:
        assert len(schemas) == FORMAT
        self.path = path
        self._schemas = schemas
        self._writable = writable
        if create and writable:
            self._make_folder()
        elif not path.exists():
            raise self._missing()
        try:
            # whoever has it may pass it on to another thread; SQLite itself has no objection
            self.connection = sqlite3.connect(
                path.absolute(), timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._unwritable(error) from error
        try:
            with self.reported() as connection:
                self._prepare(connection)
        except BaseException:
            self.close()
            raise

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA cell_size_check = ON")  # a damaged page is reported, not decoded
        found = self._format(connection)
        if not self._writable:
            if not found:
                raise self._missing()
            connection.execute("PRAGMA query_only = ON")
            return
        switch_to_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if found < FORMAT:
            self._make_tables(connection)

    def _format(self, connection: sqlite3.Connection) -> int:
        """Of a store, 1 .. FORMAT; 0 for an empty file. Raises for anything else."""
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
            raise KnowledgeError(self._other_format(version))
        return int(version)

    def _other_format(self, version: int) -> str:
        found = f"{self.path}: expected knowledge of format {FORMAT} or before, got format {version}"
        if version > FORMAT:
            return f"{found}, which a newer gamelore wrote; update gamelore (pip install -U gamelore)"
        return f"{found}, which no gamelore wrote; name another file"

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection, "IMMEDIATE"):
            found = self._format(connection)  # asked again: another process may have been first
            for schema in self._schemas[found:]:
                for statement in schema.split(";\n"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _missing(self) -> KnowledgeError:
        return KnowledgeError(
            f"{self.path}: no knowledge there yet; learn a game first (gamelore learn), or name another file"
        )

    def _unwritable(self, error: Exception) -> KnowledgeError:
        return KnowledgeError(
            f"{self.path}: expected a file that can be opened and written, got: {error}; name another one "
            "(--knowledge, or the environment variable GAMELORE_KNOWLEDGE)"
        )

    @contextmanager
    def reported(self) -> Iterator[sqlite3.Connection]:
        """What SQLite and the decoding of its rows raise, as KnowledgeErrors with a remedy."""
        try:
            yield self.connection
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise self._unwritable(error) from error
            held = f"{self.path}: another process has kept the store for {BUSY_SECONDS:.0f} s"
            raise KnowledgeError(f"{held}; let it finish and try again") from error
        except (sqlite3.Error, json.JSONDecodeError, struct.error) as error:
            raise KnowledgeError(
                f"{self.path}: expected a readable knowledge store, got: {error}; name another file, or "
                "bring the knowledge back from an export (gamelore knowledge import)"
            ) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is stored, or nothing."""
        with self.reported(), _transaction(self.connection, "IMMEDIATE"):
            yield self.connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Everything read inside belongs to one moment, whatever others write meanwhile."""
        with self.reported(), _transaction(self.connection, "DEFERRED"):
            yield self.connection

    def close(self) -> None:
        self.connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    # IMMEDIATE takes the write lock at once, so that writers wait for each other and never fail half-way.
    try:
        connection.execute(f"BEGIN {kind}")
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """Readers need not wait for a writer then; for good.

    SQLite does not wait for a lock in this one statement, and each process that opens a new file runs it, so it is
    waited for here. Raises sqlite3.OperationalError after BUSY_SECONDS.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
