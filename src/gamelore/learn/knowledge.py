"""What was learned, from which game, against whom: kept in one SQLite file, safe to share and to kill.

    game        rules_hash, name, roles, rules         a game is its rules: two names of one hash are one game
    fact        game, number, text                     facts and moves, numbered 0, 1, .. in this file
    learner     game, role, opponent, settings, seed   these five are a learner's identity
    inherited   learner, feature, value, visits        what it brought from other games when it began
    match       learner, number, reward, length, id    every match learned from; numbered from 0, without a gap; its id
                                                       where it was a trajectory before
    trajectory  learner, number, match, plies, moves,  matches that are over but not learned from yet; match: an id,
                end                                    moves: as JSON, per ply of every role
    afterstate  learner, state, q, visits              state: the sorted numbers of its facts, <u4 each
    feature     learner, feature, value, visits        Table 1 of B&S 2007, as of `features_at` matches
    sequence    learner, number, role, kind, moves,    the SeqTable of L&E 2004 in the order of first encounters;
                context, encounters, several           moves, context: numbers of moves and of facts, <u4 each
    pair        learner, number, role, context,        its context pairs, and what is known of their advice
                comments, agreements, tries, successes
    branch      learner, pair, number, kind, moves     the sequences that the pairs call for

A match that is learned from, or a tournament of a learner of sequences, is one short transaction: all that it changed,
or nothing of it; where the match was a trajectory, that goes in the same transaction, so that no match is learned from
twice, and none is lost. Nothing here depends on an engine: what one process learned with machine code, another takes up
with the plain reasoner. A learner of sequences watches all roles; in the place of a role it has ALL_ROLES.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import KnowledgeError
from . import tables
from .features import STANDARD, FeatureValues
from .storefile import StoreFile
from .storerows import ALL_ROLES as ALL_ROLES
from .storerows import Afterstate as Afterstate
from .storerows import FeatureRow as FeatureRow
from .storerows import GameRow, KnownGame
from .storerows import MatchRow as MatchRow
from .storerows import PairRow as PairRow
from .storerows import SequenceRow as SequenceRow
from .storerows import StoredLearner as StoredLearner
from .storerows import Trajectory as Trajectory


def default_path() -> Path:
    """The user's own store: `$GAMELORE_KNOWLEDGE`, else knowledge.db in the platform's user data folder."""
    if chosen := os.environ.get("GAMELORE_KNOWLEDGE"):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_data_dir("gamelore", appauthor=False)) / "knowledge.db"


class Knowledge:
    """An open store; a context manager, for one thread at a time. Several processes may have the same file open.

    create    False: there must be one
    writable  False: there must be one, and nothing in it is changed; an older format stays as it is

    Every method raises KnowledgeError where the file cannot be read or written, or is no such store.
    """

    def __init__(self, path: str | Path | None = None, *, create: bool = True, writable: bool = True) -> None:
        self.path = Path(path) if path is not None else default_path()
        self._file = StoreFile(self.path, tables.SCHEMAS, create=create, writable=writable)
        self._numbers = tables.FactNumbers()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Everything read inside belongs to one moment, whatever other processes write meanwhile."""
        return self._file.reading()

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Everything written inside is stored together, or not at all."""
        return self._file.writing()

    @property
    def size(self) -> int:
        """Bytes that the store takes on the disk, with what SQLite has not moved into its file yet."""
        beside = self.path.with_name(f"{self.path.name}-wal")
        return sum(file.stat().st_size for file in (self.path, beside) if file.exists())

    def games(self) -> list[GameRow]:
        """Every game that the store knows, oldest first."""
        with self._file.reported() as connection:
            return [GameRow(*row) for row in connection.execute("SELECT name, rules_hash, rules FROM game ORDER BY id")]

    # learners

    def learner(
        self,
        game: KnownGame,
        role: str,
        *,
        opponent: str,
        settings: Mapping[str, Any],
        seed: int,
        inherited: FeatureValues | None = None,
        sources: Sequence[StoredLearner] = (),
    ) -> StoredLearner:
        """The learner of this identity, made where it is new; one that exists goes on where it stopped.

        `role` is one of the game's, or ALL_ROLES. `inherited` and the `sources` it came from are kept when the learner
        is made and do not change after, so that it goes on as it began, whatever its sources have learned since;
        `inherited()` reads them.
        """
        if role not in (*game.roles, ALL_ROLES):
            raise KnowledgeError(f"expected a role of {game.name} ({', '.join(game.roles)}), got {role}")
        if not -(2**63) <= seed < 2**63:
            raise KnowledgeError(f"expected a seed of 64 bits with sign, got {seed}; choose a smaller one")
        about = (role, opponent, tables.to_json(settings), seed)
        values = zip(game.roles, game.goal_values, strict=True)
        outcomes = sorted({goal for own, goals in values if role in (own, ALL_ROLES) for goal in goals})
        lists = (tables.to_json([source.origin for source in sources]), tables.to_json(outcomes))
        made = (version("gamelore"), _now(), *lists)
        with self.writing() as connection:
            game_id = tables.put_game(connection, game.rules_hash, game.name, game.roles, str(game.rulesheet))
            found = tables.find_learner(connection, game_id, *about)
            if found is None:
                found = tables.add_learner(connection, game_id, *about, *made)
                tables.put_values(connection, "inherited", found, inherited or {})
        return self.find(found)

    def find(self, learner_id: int) -> StoredLearner:
        """The learner with this number in this file."""
        if found := self.learners(ids=[learner_id]):
            return found[0]
        have = ", ".join(str(learner.id) for learner in self.learners()) or "none"
        raise KnowledgeError(f"{self.path}: expected the number of a learner (there are: {have}), got {learner_id}")

    def learners(
        self,
        *,
        source: str | None = None,
        role: str | None = None,
        opponent: str | None = None,
        ids: Sequence[int] | None = None,
    ) -> list[StoredLearner]:
        """All learners, or those of one source game (its name or hash), role, opponent; oldest first.

        `opponent` is either whole ("egreedy:filler=first") or just the kind ("egreedy").
        """
        where, values = _selection(source, role, opponent, ids)
        query = (
            "SELECT learner.id, game.name, rules_hash, role, opponent, settings, seed, version, created, "
            "sources, outcomes, num_matches, features_at FROM learner JOIN game ON game.id = learner.game"
            f"{where} ORDER BY learner.id"
        )
        with self._file.reported() as connection:
            return [_learner(row) for row in connection.execute(query, values)]

    def rules(self, learner: StoredLearner) -> str:
        """The rulesheet that this learner played, as GDL text: enough to load its game anywhere."""
        query = "SELECT rules FROM game WHERE rules_hash = ?"
        with self._file.reported() as connection:
            return str(connection.execute(query, [learner.rules_hash]).fetchone()[0])

    # matches

    def record_match(
        self,
        learner: StoredLearner,
        reward: float,
        length: int,
        afterstates: Iterable[Afterstate],
        *,
        trajectory: int | None = None,
    ) -> None:
        """Store the learner's next match, and the afterstates whose value or visits it changed (new totals).

        The trajectory of this number is what was learned from; it is over with that.
        Raises KnowledgeError where another process has gone on with the same learner meanwhile.
        """
        with self._going_on(learner, [MatchRow(reward, length)]) as (connection, game_id):
            self._numbers.put(connection, game_id, learner.id, afterstates)
            if trajectory is not None:
                match = tables.drop_trajectory(connection, learner.id, trajectory)
                if match is None:
                    raise KnowledgeError(
                        f"{self.path}: expected trajectory {trajectory} of learner {learner.id}, got none: another "
                        "process learned from it; let only one go on with a learner"
                    )
                tables.name_match(connection, learner.id, learner.num_matches, match)

    def keep_match(self, learner: StoredLearner, match: str, moves: Sequence[Sequence[str]], end: str) -> int | None:
        """Store a match that is over, to be learned from later; its number among the learner's trajectories.

        match  tells it from all other matches of the learner. None, and nothing is stored, where one of the same id
               was kept before, whether it was learned from meanwhile or not
        moves  per ply a move of every role
        end    "terminal", "stuck" or "cap"

        Raises KnowledgeError as `record_match` does.
        """
        with self._going_on(learner, []) as (connection, _):
            return tables.put_trajectory(connection, learner.id, match, moves, end)

    def trajectories(self, learner: StoredLearner) -> list[Trajectory]:
        """The matches that are to be learned from, in their order."""
        with self._file.reported() as connection:
            return tables.get_trajectories(connection, learner.id)

    def forget_trajectory(self, learner: StoredLearner, number: int) -> None:
        """Leave a match out that cannot be learned from."""
        with self.writing() as connection:
            tables.drop_trajectory(connection, learner.id, number)

    def record_tournament(
        self,
        learner: StoredLearner,
        matches: Sequence[MatchRow],
        sequences: Iterable[SequenceRow],
        pairs: Iterable[PairRow],
    ) -> None:
        """Store the next matches of a learner of sequences, and all that it knows now in the place of what it knew.

        Raises KnowledgeError as `record_match` does.
        """
        with self._going_on(learner, matches) as (connection, game_id):
            tables.put_sequences(connection, self._numbers, game_id, learner.id, sequences, pairs)

    @contextmanager
    def _going_on(
        self, learner: StoredLearner, matches: Sequence[MatchRow]
    ) -> Iterator[tuple[sqlite3.Connection, int]]:
        """One transaction of a learner's next matches and what is written inside: the connection and the game's id."""
        try:
            with self.writing() as connection:
                game_id, stored = tables.progress(connection, learner.id)
                if stored != learner.num_matches:
                    raise KnowledgeError(self._taken(learner, stored))
                tables.put_matches(connection, learner.id, stored, matches)
                yield connection, game_id
        except BaseException:
            self._numbers.forget()
            raise
        learner.num_matches = stored + len(matches)

    def _taken(self, learner: StoredLearner, stored: int) -> str:
        return (
            f"{self.path}: expected learner {learner.id} after {learner.num_matches} matches, got {stored}: "
            "another process goes on with it; wait for that one, or learn with another seed"
        )

    def matches(self, learner: StoredLearner) -> list[MatchRow]:
        """All finished matches, in their order."""
        with self._file.reported() as connection:
            return [MatchRow(*row) for row in tables.get_matches(connection, learner.id)]

    def afterstates(self, learner: StoredLearner) -> list[Afterstate]:
        """Every afterstate that the learner has a value for, in the order of the file."""
        with self.reading() as connection:
            game_id, _ = tables.progress(connection, learner.id)
            return tables.get_afterstates(connection, game_id, learner.id)

    def sequences(self, learner: StoredLearner) -> list[SequenceRow]:
        """What a learner of sequences has met, in that order."""
        with self.reading() as connection:
            game_id, _ = tables.progress(connection, learner.id)
            return tables.get_sequences(connection, game_id, learner.id)

    def pairs(self, learner: StoredLearner) -> list[PairRow]:
        """The context pairs of a learner of sequences."""
        with self.reading() as connection:
            game_id, _ = tables.progress(connection, learner.id)
            return tables.get_pairs(connection, game_id, learner.id)

    # features

    def store_features(self, learner: StoredLearner, values: FeatureValues) -> None:
        """Put these in the place of the learner's feature values, as of the matches it has now."""
        with self.writing() as connection:
            tables.put_features(connection, learner.id, values, learner.num_matches)
        learner.features_at = learner.num_matches

    def features(
        self,
        *,
        source: str | None = None,
        role: str | None = None,
        opponent: str | None = None,
        ids: Sequence[int] | None = None,
    ) -> list[FeatureRow]:
        """The feature values of those learners (see `learners`), by learner, then by the feature's text."""
        where, values = _selection(source, role, opponent, ids)
        query = (
            "SELECT learner.id, game.name, role, opponent, feature, value, visits FROM feature "
            "JOIN learner ON learner.id = feature.learner JOIN game ON game.id = learner.game"
            f"{where} ORDER BY learner.id, feature"
        )
        with self._file.reported() as connection:
            return [FeatureRow(*row) for row in connection.execute(query, values)]

    def feature_values(self, learner: StoredLearner) -> FeatureValues:
        """What this learner can teach, as of `features_at` matches."""
        with self._file.reported() as connection:
            values = tables.get_values(connection, "feature", learner.id)
        return FeatureValues(values, learner.outcomes, learner.depth)

    def inherited(self, learner: StoredLearner) -> FeatureValues | None:
        """What this learner began with; None where it began with nothing."""
        with self._file.reported() as connection:
            values = tables.get_values(connection, "inherited", learner.id)
        outcomes = {outcome for source in learner.sources for outcome in source["outcomes"]}
        return FeatureValues(values, sorted(outcomes) or STANDARD, learner.depth) if values else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _learner(row: Sequence[Any]) -> StoredLearner:
    values = dict(zip((column.name for column in fields(StoredLearner)), row, strict=True))
    return StoredLearner(**{**values, **{key: json.loads(values[key]) for key in ("settings", "sources", "outcomes")}})


def _selection(
    source: str | None, role: str | None, opponent: str | None, ids: Sequence[int] | None
) -> tuple[str, list[object]]:
    parts: list[tuple[str, list[object]]] = []
    if source is not None:
        parts.append(("? IN (game.name, rules_hash)", [source]))
    if role is not None:
        parts.append(("role = ?", [role]))
    if opponent is not None:
        kind = f"{opponent}:"
        parts.append(("(opponent = ? OR substr(opponent, 1, ?) = ?)", [opponent, len(kind), kind]))
    if ids is not None:
        parts.append((f"learner.id IN ({', '.join('?' * len(ids))})", list(ids)))
    text = " AND ".join(condition for condition, _ in parts)
    return (f" WHERE {text}" if text else ""), [value for _, values in parts for value in values]
