"""Every finished run, in one SQLite file. A run is stored whole or not at all, and never overwritten.

    run(experiment, run, settings, version, game, rules_hash, finished, seconds, result)

`settings` is `Experiment.text`, `result` JSON as runs.py tells; `seconds` is processor time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from ...errors import ExperimentError
from .plan import Experiment
from .runs import Done, Result

FORMAT = 1
STORE = "runs.db"  # in the folder of the report
_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    experiment TEXT NOT NULL, run INTEGER NOT NULL, settings TEXT NOT NULL, version TEXT NOT NULL, game TEXT NOT NULL,
    rules_hash TEXT NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL, result TEXT NOT NULL,
    PRIMARY KEY (experiment, run));
"""


class RunStore:
    """The runs of one folder; use it as a context manager. Only one process writes at a time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=30)
            self._check_format()
            self._connection.executescript(_SCHEMA)
        except (OSError, sqlite3.DatabaseError) as error:
            raise ExperimentError(
                f"expected a store of runs, or a folder that can have one, at {self.path.parent}, got: {error}; "
                "choose another folder with --out"
            ) from error

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def check(self, experiments: Iterable[Experiment], version: str) -> None:
        """Raises ExperimentError where a stored run of these was made with other settings or another version."""
        wanted = {one.id: one.text for one in experiments}
        query = "SELECT DISTINCT experiment, settings, version FROM run"
        for name, settings, other in self._connection.execute(query).fetchall():
            if name in wanted and settings != wanted[name]:
                raise ExperimentError(
                    f"expected the settings that {self.path} was made with, got others in {name}: "
                    f"{_difference(settings, wanted[name])}; choose another folder with --out"
                )
            if name in wanted and other != version:
                raise ExperimentError(
                    f"expected results of gamelore {version}, got {other} in {self.path}; "
                    "choose another folder with --out"
                )

    def check_rules(self, game: str, rules_hash: str) -> None:
        """Raises ExperimentError where runs of a game were played with other rules."""
        query = "SELECT COUNT(*) FROM run WHERE game = ? AND rules_hash != ?"
        if self._connection.execute(query, [game, rules_hash]).fetchone()[0]:
            raise ExperimentError(
                f"expected the rules of {game} that {self.path} was made with, got others; "
                "choose another folder with --out"
            )

    def finished(self) -> set[tuple[str, int]]:
        """(experiment, run) of every stored run."""
        return set(self._connection.execute("SELECT experiment, run FROM run").fetchall())

    def add(self, done: Done, version: str) -> None:
        """Stores a run. Raises ExperimentError where it is there, or other rules are."""
        experiment, run = done.job
        self.check_rules(experiment.game, done.rules_hash)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        row = (
            experiment.id, run, experiment.text, version, experiment.game, done.rules_hash, now, done.seconds,
            json.dumps(done.result),
        )  # fmt: skip
        try:
            with self._connection:
                self._connection.execute(f"INSERT INTO run VALUES ({', '.join('?' * len(row))})", row)
        except sqlite3.IntegrityError as error:
            raise ExperimentError(
                f"expected a run that is not yet in {self.path}, got one that is: {error}; "
                "is another process writing there?"
            ) from error
        except sqlite3.OperationalError as error:
            raise ExperimentError(
                f"expected to store a finished run in {self.path}, got: {error}; mend that and run again, it resumes"
            ) from error

    def results(self, name: str, runs: int) -> list[Result]:
        """The results of the first runs of an experiment; raises ExperimentError where one is missing."""
        query = "SELECT result FROM run WHERE experiment = ? AND run < ? ORDER BY run"
        found = [json.loads(result) for (result,) in self._connection.execute(query, [name, runs])]
        if len(found) != runs:
            raise ExperimentError(
                f"expected {runs} finished runs of {name} in {self.path}, got {len(found)}; "
                "run the command again, it resumes"
            )
        return found

    def rules(self) -> dict[str, str]:
        """Game -> hash of its rules."""
        return dict(self._connection.execute("SELECT DISTINCT game, rules_hash FROM run ORDER BY 1").fetchall())

    def seconds(self, part: str) -> float:
        """Processor time of all runs of a part, such as "core"."""
        query = "SELECT COALESCE(SUM(seconds), 0) FROM run WHERE experiment LIKE ? || '/%'"
        return float(self._connection.execute(query, [part]).fetchone()[0])

    def _check_format(self) -> None:
        query = "SELECT user_version, (SELECT COUNT(*) FROM sqlite_master) FROM pragma_user_version"
        found, tables = self._connection.execute(query).fetchone()
        if tables and found != FORMAT:
            self._connection.close()
            raise ExperimentError(
                f"expected runs of format {FORMAT} at {self.path}, got format {found}; choose another folder with --out"
            )
        self._connection.execute(f"PRAGMA user_version = {FORMAT}")


def _difference(old: str, new: str) -> str:
    """The first place where two settings differ."""
    before, after = json.loads(old), json.loads(new)
    name = next(name for name in sorted(before | after) if before.get(name) != after.get(name))
    return f"{name} was {before.get(name)!r}, is {after.get(name)!r}"
