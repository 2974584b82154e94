"""Every finished trial, in one SQLite file. A trial is stored whole or not at all, and never overwritten.

    trial(id, run, settings, version, rules_hash, engine, finished, seconds, num_stuck, num_missing,
          rewards, lengths, feature_values)
    note(name, value)        anything else worth keeping, as JSON

`settings` is `Setting.text`; `rewards` are <f4 and `lengths` <i2, one entry per match; `feature_values` is JSON
{"depth": .., "outcomes": [..], "values": {text: [value, visits]}} or null; `seconds` is the trial's share of the wall
time of its batch.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ExperimentError
from ..learn.features import FeatureValues
from ..learn.storefile import switch_to_wal
from .grid import Grid, Setting, Trial

FORMAT = 1
STORE = "results.db"  # in the folder of an experiment
_SCHEMA = """
CREATE TABLE IF NOT EXISTS trial (
    id TEXT NOT NULL, run INTEGER NOT NULL, settings TEXT NOT NULL, version TEXT NOT NULL,
    rules_hash TEXT NOT NULL, engine TEXT NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    num_stuck INTEGER NOT NULL, num_missing INTEGER NOT NULL, rewards BLOB NOT NULL, lengths BLOB NOT NULL,
    feature_values TEXT, PRIMARY KEY (id, run));
CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_EXPORTED = (
    "experiment", "run", "match", "reward", "length", "game", "role", "opponent", "filler", "opponent_epsilon",
    "learner", "heuristic", "initialisation", "control", "alpha", "gamma", "lambda", "epsilon", "depth", "source",
    "stage", "seed", "rules_hash", "engine", "version",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a finished trial left: rewards float32[matches] in points, lengths int16[matches] in plies, and so on."""

    trial: Trial
    rewards: NDArray[np.float32]
    lengths: NDArray[np.int16]
    values: FeatureValues | None = None
    rules_hash: str = ""
    engine: str = ""
    seconds: float = 0.0
    num_stuck: int = 0
    num_missing: int = 0


class TrialStore:
    """The trials of one experiment; use it as a context manager. Only one process writes at a time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=30)
        except (OSError, sqlite3.OperationalError) as error:
            raise ExperimentError(
                f"expected a folder that can be written at {self.path.parent}, got: {error}; name another with --out"
            ) from error
        try:
            self._check_format()
            switch_to_wal(self._connection)
            self._connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ExperimentError(
                f"expected a store of trials at {self.path}, got: {error}; choose another folder with --out"
            ) from error

    def __enter__(self) -> TrialStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def check(self, grid: Grid, version: str) -> None:
        """Raises ExperimentError where a stored trial of the grid was run with other settings or another version."""
        query = "SELECT id, settings, version FROM trial GROUP BY id, settings, version"
        for name, settings, other_version in self._connection.execute(query).fetchall():
            setting = grid.settings.get(name)
            if setting is not None and setting.text != settings:
                difference = _difference(json.loads(settings), setting.describe())
                raise ExperimentError(
                    f"expected the settings that {self.path} was made with, got others in "
                    f"{name}: {difference}; choose another folder with --out"
                )
            if setting is not None and other_version != version:
                raise ExperimentError(
                    f"expected results of gamelore {version}, got {other_version} in "
                    f"{self.path}; choose another folder with --out"
                )

    def check_rules(self, rules: Mapping[str, str]) -> None:
        """Raises ExperimentError where trials of a game were played with rules of another hash."""
        known = self.rules()
        for game, found in rules.items():
            if known.get(game, found) != found:
                raise ExperimentError(
                    f"expected the rules of {game} that {self.path} was made with, got "
                    "others; choose another folder with --out"
                )

    def finished(self) -> set[tuple[str, int]]:
        """(id, run) of every stored trial."""
        return set(self._connection.execute("SELECT id, run FROM trial").fetchall())

    def add(self, outcomes: Iterable[Outcome], version: str) -> None:
        """Stores finished trials, all or none. Raises ExperimentError where one is already there."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        outcomes = list(outcomes)
        self.check_rules({outcome.trial.setting.game: outcome.rules_hash for outcome in outcomes})
        rows = [_row(outcome, version, now) for outcome in outcomes]
        try:
            with self._connection:
                self._connection.executemany(f"INSERT INTO trial VALUES ({', '.join('?' * 13)})", rows)
        except sqlite3.IntegrityError as error:
            raise ExperimentError(
                f"expected trials that are not yet in {self.path}, got one that is: {error}; "
                "is another process writing there?"
            ) from error
        except sqlite3.OperationalError as error:
            raise ExperimentError(
                f"expected to store finished trials in {self.path}, got: {error}; mend that and run again, it resumes"
            ) from error

    def runs(self, name: str) -> list[int]:
        """The stored runs of a setting, ascending."""
        query = "SELECT run FROM trial WHERE id = ? ORDER BY run"
        return [run for (run,) in self._connection.execute(query, [name])]

    def rewards(self, name: str, runs: int | None = None) -> NDArray[np.float32]:
        """Rewards float32[runs, matches] of a setting, row i run i; raises ExperimentError where one is missing."""
        blobs = self._column("rewards", name, runs)
        return np.stack([np.frombuffer(blob, "<f4") for blob in blobs]).astype(np.float32)

    def lengths(self, name: str, runs: int | None = None) -> NDArray[np.int16]:
        """Plies int16[runs, matches] of a setting."""
        blobs = self._column("lengths", name, runs)
        return np.stack([np.frombuffer(blob, "<i2") for blob in blobs]).astype(np.int16)

    def values(self, name: str, runs: int | None = None) -> list[FeatureValues]:
        """The feature values that the runs of a setting learned, of a setting that keeps them."""
        return [FeatureValues(**json.loads(found)) for found in self._column("feature_values", name, runs)]

    def note(self, name: str, value: Any) -> None:
        """Keeps something that is JSON-able beside the trials, over what had this name."""
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, json.dumps(value)))

    def noted(self, name: str) -> Any:
        """What was kept under this name, else None."""
        found = self._connection.execute("SELECT value FROM note WHERE name = ?", [name]).fetchone()
        return None if found is None else json.loads(found[0])

    def totals(self) -> dict[str, Any]:
        """Trials, matches, plies, seconds, stuck matches and missing goals, over the whole store."""
        query = (
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(rewards) / 4), 0), COALESCE(SUM(seconds), 0), "
            "COALESCE(SUM(num_stuck), 0), COALESCE(SUM(num_missing), 0) FROM trial"
        )
        names = ("trials", "matches", "seconds", "stuck", "missing")
        return dict(zip(names, self._connection.execute(query).fetchone(), strict=True))

    def rules(self) -> dict[str, str]:
        """Game -> hash of the rules that its trials were played with."""
        query = "SELECT DISTINCT json_extract(settings, '$.game'), rules_hash FROM trial ORDER BY 1"
        return dict(self._connection.execute(query).fetchall())

    def matches(self) -> Iterator[tuple[Any, ...]]:
        """Every match as a row, see `export_matches`."""
        query = "SELECT id, run, rewards, lengths, settings, rules_hash, engine, version FROM trial ORDER BY id, run"
        for name, run, rewards, lengths, settings, *made in self._connection.execute(query):
            where = _where(json.loads(settings))
            pairs = zip(np.frombuffer(rewards, "<f4"), np.frombuffer(lengths, "<i2"), strict=True)
            for number, (reward, length) in enumerate(pairs, 1):
                yield (name, run, number, float(reward), int(length), *where, *made)

    def export_matches(self, path: Path) -> int:
        """Writes every match as a row of a CSV file, which is there once it is complete; how many."""
        count = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = path.with_name(f"{path.name}.part")
        with begun.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_EXPORTED)
            for count, row in enumerate(self.matches(), 1):  # noqa: B007
                writer.writerow(row)
        begun.replace(path)
        return count

    def _column(self, column: str, name: str, runs: int | None) -> list[Any]:
        query = f"SELECT run, {column} FROM trial WHERE id = ? ORDER BY run"
        found = self._connection.execute(query, [name]).fetchall()[: runs if runs is not None else None]
        wanted = runs if runs is not None else max(1, len(found))
        if [run for run, _ in found] != list(range(wanted)):
            raise ExperimentError(
                f"expected {wanted} finished runs of {name} in {self.path}, got {len(found)}; "
                "run the experiment again, it resumes"
            )
        return [value for _, value in found]

    def _check_format(self) -> None:
        # in one statement: another process may be making the tables
        query = "SELECT user_version, (SELECT COUNT(*) FROM sqlite_master) FROM pragma_user_version"
        with closing(self._connection.execute(query)) as cursor:
            found, tables = cursor.fetchone()
        if tables and found != FORMAT:
            self._connection.close()
            raise ExperimentError(
                f"expected trials of format {FORMAT} at {self.path}, got format {found}; "
                "choose another folder with --out"
            )
        self._connection.execute(f"PRAGMA user_version = {FORMAT}")


def _row(outcome: Outcome, version: str, now: str) -> tuple[Any, ...]:
    setting: Setting = outcome.trial.setting
    values = None if outcome.values is None else _values_json(outcome.values)
    return (
        setting.id, outcome.trial.run, setting.text, version, outcome.rules_hash, outcome.engine, now,
        outcome.seconds, outcome.num_stuck, outcome.num_missing,
        outcome.rewards.astype("<f4").tobytes(), outcome.lengths.astype("<i2").tobytes(), values,
    )  # fmt: skip


def _values_json(values: FeatureValues) -> str:
    return json.dumps({"values": dict(values), "outcomes": values.outcomes, "depth": values.depth})


def _where(settings: dict[str, Any]) -> tuple[Any, ...]:
    learner, opponent = settings["learner"], settings["opponent"]
    source = settings["source"]["id"] if settings["source"] else "printed" if settings["printed"] else ""
    return (
        settings["game"], settings["role"], opponent["kind"], opponent["filler"], opponent["epsilon"],
        learner["kind"], learner["heuristic"], learner["initialisation"], learner["control"] or "",
        *(learner[name] for name in ("alpha", "gamma", "lam", "epsilon", "depth")),
        source, settings["stage"], settings["seed"],
    )  # fmt: skip


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first place where two descriptions differ."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before != after and isinstance(before, dict) and isinstance(after, dict):
            return f"{name}.{_difference(before, after)}"
        if before != after:
            return f"{name} was {before!r}, is {after!r}"
    return "nothing"
