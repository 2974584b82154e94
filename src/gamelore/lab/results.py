"""The results of experiments: settings, trials, outcomes, their storage in SQLite, and the export as CSV.

Run i of a `Setting` is a `Trial`. A finished trial has an `Outcome`, which is stored in the `ResultStore`. The store is
one SQLite file with one row for each finished trial. A row is stored completely or not at all, and is never
overwritten:

    trial(id, run, settings, version, game, rules_hash, engine, finished, seconds, rewards, lengths, feature_values,
          result)
    note(name, value)

The columns of a trial have these contents:

settings        `Setting.text`
rewards         little-endian float32 (<f4), one number per match of a series; null for other experiments
lengths         little-endian int16 (<i2), one number per match of a series; null for other experiments
feature_values  JSON {"depth": .., "outcomes": [..], "values": {text: [value, visits]}, "replies": [..]}, or null
result          other results, as JSON
seconds         the time of the job that played the trial, divided by the number of trials of this job

A note is other data under a name, as JSON. A file of format 1 is converted to format 2 when it is opened.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ExperimentError
from ..files import whole_file
from ..learning.store.features import FeatureValues, reply_rows
from ..learning.store.schema import switch_to_wal


@dataclass(frozen=True)
class Setting(ABC):
    """The setting of an experiment, such as one curve of a figure or one row of a table. It is repeated `runs` times.

    id      a readable and unique name, such as "figures/connect3/egreedy/transfer"
    source  run i of this other setting provides the initial values of run i; None for no source
    """

    id: str
    game: str
    seed: int
    runs: int
    source: Setting | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of matches of a run."""

    def describe(self) -> dict[str, Any]:
        """Return everything that determines the outcomes of the runs, as a dictionary that can be written as JSON.

        The number of runs is not included.
        """
        described = asdict(replace(self, source=None))
        del described["runs"], described["source"]
        return described

    @property
    def text(self) -> str:
        """The description as JSON text. Equal settings have equal texts."""
        return json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))


SettingT = TypeVar("SettingT", bound=Setting, covariant=True)


@dataclass(frozen=True)
class Trial(Generic[SettingT]):
    """A run of a setting. Runs are numbered from 0."""

    setting: SettingT
    run: int

    @property
    def key(self) -> tuple[str, int]:
        return self.setting.id, self.run


@dataclass(frozen=True)
class Outcome:
    """The outcome of a finished trial.

    rewards  float32[matches], the reward of each match of a series, in points; None for other experiments
    lengths  int16[matches], the length of each match of a series, in plies; None for other experiments
    values   the feature values that the run has learned; None if they are not kept
    result   other results, as a dictionary that can be written as JSON
    """

    trial: Trial[Setting]
    rewards: NDArray[np.float32] | None = None
    lengths: NDArray[np.int16] | None = None
    values: FeatureValues | None = None
    rules_hash: str = ""
    engine: str = ""
    seconds: float = 0.0
    result: Mapping[str, Any] = field(default_factory=dict)


FORMAT = 2
STORE = "results.db"  # name of the file in the folder of an experiment
_TABLES = (
    "CREATE TABLE trial (id TEXT NOT NULL, run INTEGER NOT NULL, settings TEXT NOT NULL, version TEXT NOT NULL, "
    "game TEXT NOT NULL, rules_hash TEXT NOT NULL, engine TEXT NOT NULL, finished TEXT NOT NULL, "
    "seconds REAL NOT NULL, rewards BLOB, lengths BLOB, feature_values TEXT, result TEXT NOT NULL, "
    "PRIMARY KEY (id, run))",
    "CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"PRAGMA user_version = {FORMAT}",
)
_STATEMENTS = {
    "none": _TABLES,
    "series": (  # format 1 of results.db (gamelore 0.1), for series of matches
        "ALTER TABLE trial RENAME TO trial_1",
        *_TABLES,
        "INSERT INTO trial SELECT id, run, settings, version, json_extract(settings, '$.game'), rules_hash, engine, "
        "finished, seconds, rewards, lengths, feature_values, "
        "json_object('num_stuck', num_stuck, 'num_missing', num_missing) FROM trial_1",
        "DROP TABLE trial_1",
    ),
    "runs": (  # format 1 of runs.db, for Lock & Epstein 2004
        *_TABLES,
        "INSERT INTO trial SELECT experiment, run, settings, version, game, rules_hash, '', finished, seconds, "
        "NULL, NULL, NULL, result FROM run",
        "DROP TABLE run",
    ),
    "current": (),
}
"""Contents of a file -> SQL statements that convert the file to the current format."""
_EXPORTED = (
    "experiment", "run", "match", "reward", "length", "game", "role", "opponent", "filler", "opponent_epsilon",
    "learner", "heuristic", "initialisation", "control", "alpha", "gamma", "lambda", "epsilon", "depth", "source",
    "stage", "seed", "rules_hash", "engine", "version",
)  # fmt: skip


def store_path(folder: Path) -> Path:
    """Return the path of the store in the folder of an experiment: `runs.db` if this older name exists, else STORE."""
    former = folder / "runs.db"
    return former if former.is_file() else folder / STORE


class ResultStore:
    """The stored trials of one experiment. Use the store as a context manager. Only one process may write at a time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=30)
        except (OSError, sqlite3.OperationalError) as error:
            raise ExperimentError(
                f"expected a folder that can be written at {self.path.parent}, got: {error}; name another "
                "folder with --out"
            ) from error
        try:
            self._prepare()
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise self._unfit(f"a store of trials at {self.path}", str(error)) from error
            raise

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()

    def _prepare(self) -> None:
        if self._contents() == "current":
            return
        switch_to_wal(self._connection)
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")  # because another process may create the tables now
            for statement in _STATEMENTS[self._contents()]:
                self._connection.execute(statement)

    def _contents(self) -> str:
        """Return the kind of contents of the file, a key of _STATEMENTS. Raise ExperimentError for any other file."""
        query = "SELECT user_version, (SELECT GROUP_CONCAT(name) FROM sqlite_master) FROM pragma_user_version"
        with closing(self._connection.execute(query)) as cursor:
            version, names = cursor.fetchone()
        tables = set((names or "").split(","))
        if names is None:
            return "none"
        if version == FORMAT and tables >= {"trial", "note"}:
            return "current"
        if version == 1 and tables & {"trial", "run"}:
            return "series" if "trial" in tables else "runs"
        other = f"the tables {', '.join(sorted(tables))}" if version in (1, FORMAT) else f"format {version}"
        raise self._unfit(f"trials of format {FORMAT} at {self.path}", other)

    def check(self, settings: Mapping[str, Setting], version: str) -> None:
        """Raise ExperimentError if a stored trial has other settings under the same id, or has another version."""
        query = "SELECT id, settings, version FROM trial GROUP BY id, settings, version"
        for name, text, other_version in self._connection.execute(query).fetchall():
            if name not in settings:
                continue
            if difference := _difference(json.loads(text), json.loads(settings[name].text)):
                raise self._unfit(
                    f"the settings of the trials in {self.path}", f"other settings in {name}: {difference}"
                )
            if other_version != version:
                raise self._unfit(f"results of gamelore {version}", f"results of {other_version} in {self.path}")

    def check_trials(self, trials: Iterable[Trial[Setting]]) -> None:
        """Raise ExperimentError if a stored trial is none of these: their report would replace one about it."""
        if others := self.finished() - {trial.key for trial in trials}:
            name, run = min(others)
            got = f"run {run} of {name}, too, which a new report would leave out"
            raise self._unfit(f"only trials of this experiment in {self.path}", got)

    def check_rules(self, rules: Mapping[str, str]) -> None:
        """Raise ExperimentError if stored trials of a game have other rules. `rules` maps games to hashes."""
        stored = self.rules()
        for game, rules_hash in rules.items():
            if stored.get(game, rules_hash) != rules_hash:
                raise self._unfit(f"the rules of {game} with which {self.path} was made", "other rules")

    def finished(self) -> set[tuple[str, int]]:
        """Return the key (id, run) of every stored trial."""
        return set(self._connection.execute("SELECT id, run FROM trial").fetchall())

    def add(self, outcomes: Iterable[Outcome], version: str) -> None:
        """Store all of these finished trials. If one is already stored, store none and raise ExperimentError."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        outcomes = list(outcomes)
        self.check_rules({outcome.trial.setting.game: outcome.rules_hash for outcome in outcomes})
        rows = [_row(outcome, version, now) for outcome in outcomes]
        try:
            with self._connection:
                self._connection.executemany(f"INSERT INTO trial VALUES ({', '.join('?' * 13)})", rows)
        except sqlite3.IntegrityError as error:
            raise ExperimentError(
                f"expected a run that is not yet in {self.path}, got a run that is there: {error}; check whether "
                "another process writes to this file"
            ) from error
        except sqlite3.OperationalError as error:
            raise ExperimentError(
                f"expected to store finished trials in {self.path}, got: {error}; correct this and run the "
                "command again, it continues"
            ) from error

    def rewards(self, name: str, runs: int | None = None) -> NDArray[np.float32]:
        """Return the rewards of a setting, float32[runs, matches]. Raise ExperimentError if a run is missing."""
        blobs = self._column("rewards", name, runs)
        return np.stack([np.frombuffer(blob, "<f4") for blob in blobs]).astype(np.float32)

    def values(self, name: str, runs: int | None = None) -> list[FeatureValues]:
        """Return the feature values that each run of a setting has learned. The setting must keep them."""
        return [FeatureValues(**json.loads(text)) for text in self._column("feature_values", name, runs)]

    def results(self, name: str, runs: int | None = None) -> list[dict[str, Any]]:
        """Return the `Outcome.result` of each run of a setting."""
        return [json.loads(text) for text in self._column("result", name, runs)]

    def by_run(self, name: str) -> dict[int, dict[str, Any]]:
        """Return the `Outcome.result` of each stored run of a setting, by the number of the run."""
        rows = self._connection.execute("SELECT run, result FROM trial WHERE id = ? ORDER BY run", [name])
        return {run: json.loads(text) for run, text in rows.fetchall()}

    def note(self, name: str, value: Any) -> None:
        """Store a value under a name, as JSON. It replaces an earlier value of this name."""
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, json.dumps(value)))

    def noted(self, name: str) -> Any:
        """Return the value stored under this name, or None."""
        row = self._connection.execute("SELECT value FROM note WHERE name = ?", [name]).fetchone()
        return None if row is None else json.loads(row[0])

    def totals(self) -> dict[str, int]:
        """Return the numbers of trials, matches, stuck matches and missing goals in the whole store."""
        query = (
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(rewards) / 4), 0), "
            "COALESCE(SUM(json_extract(result, '$.num_stuck')), 0), "
            "COALESCE(SUM(json_extract(result, '$.num_missing')), 0) FROM trial"
        )
        names = ("trials", "matches", "stuck", "missing")
        return dict(zip(names, self._connection.execute(query).fetchone(), strict=True))

    def seconds(self, part: str) -> float:
        """Return the sum of the seconds of all trials of a part, such as "core"."""
        query = "SELECT COALESCE(SUM(seconds), 0) FROM trial WHERE id LIKE ? || '/%'"
        return float(self._connection.execute(query, [part]).fetchone()[0])

    def rules(self) -> dict[str, str]:
        """Return for each game the hash of the rules of its trials."""
        query = "SELECT DISTINCT game, rules_hash FROM trial ORDER BY 1"
        return dict(self._connection.execute(query).fetchall())

    def matches(self) -> Iterator[tuple[Any, ...]]:
        """Yield every match of every series as a row with the columns _EXPORTED."""
        query = (
            "SELECT id, run, rewards, lengths, settings, rules_hash, engine, version FROM trial "
            "WHERE rewards IS NOT NULL ORDER BY id, run"
        )
        for name, run, rewards, lengths, settings, *made in self._connection.execute(query):
            described = _described(json.loads(settings))
            pairs = zip(np.frombuffer(rewards, "<f4"), np.frombuffer(lengths, "<i2"), strict=True)
            for number, (reward, length) in enumerate(pairs, 1):
                yield (name, run, number, float(reward), int(length), *described, *made)

    def export_matches(self, path: Path) -> int:
        """Write every match as a row of a CSV file, and return the number of matches."""
        count = 0
        with whole_file(path) as whole, whole.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_EXPORTED)
            for count, row in enumerate(self.matches(), 1):  # noqa: B007
                writer.writerow(row)
        return count

    def _column(self, column: str, name: str, runs: int | None) -> list[Any]:
        query = f"SELECT run, {column} FROM trial WHERE id = ? ORDER BY run"
        rows = self._connection.execute(query, [name]).fetchall()[:runs]
        wanted = max(1, len(rows)) if runs is None else runs
        if [run for run, _ in rows] != list(range(wanted)):
            raise ExperimentError(
                f"expected {wanted} finished runs of {name} in {self.path}, got {len(rows)}; run the command again, "
                "it continues"
            )
        return [value for _, value in rows]

    def _unfit(self, expected: str, got: str) -> ExperimentError:
        return ExperimentError(f"expected {expected}, got {got}; choose another folder with --out")


def _row(outcome: Outcome, version: str, now: str) -> tuple[Any, ...]:
    setting, values = outcome.trial.setting, outcome.values
    return (
        *outcome.trial.key, setting.text, version, setting.game, outcome.rules_hash, outcome.engine, now,
        outcome.seconds, _bytes(outcome.rewards, "<f4"), _bytes(outcome.lengths, "<i2"),
        None if values is None else _values_text(values), json.dumps(outcome.result),
    )  # fmt: skip


def _values_text(values: FeatureValues) -> str:
    described: dict[str, Any] = {"values": dict(values), "outcomes": values.outcomes, "depth": values.depth}
    return json.dumps(described | ({"replies": reply_rows(values.replies)} if values.replies else {}))


def _bytes(array: NDArray[Any] | None, kind: str) -> bytes | None:
    return None if array is None else array.astype(kind).tobytes()


def _described(settings: dict[str, Any]) -> tuple[Any, ...]:
    learner, opponent = settings["learner"], settings["opponent"]
    source = settings["source"]["id"] if settings["source"] else "printed" if settings["printed"] else ""
    return (
        settings["game"], settings["role"], opponent["kind"], opponent["filler"], opponent["epsilon"],
        learner["kind"], learner["heuristic"], learner["initialisation"], learner["control"] or "",
        *(learner[name] for name in ("alpha", "gamma", "lam", "epsilon", "depth")),
        source, settings["stage"], settings["seed"],
    )  # fmt: skip


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the first difference of two descriptions as text. The text is empty if they are equal."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before != after and isinstance(before, dict) and isinstance(after, dict):
            return f"{name}.{_difference(before, after)}"
        if before != after:
            return f"{name} was {before!r}, is {after!r}"
    return ""
