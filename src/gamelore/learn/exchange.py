"""Knowledge as JSON: to carry it to another machine, to keep it for good, to read it with anything.

    {"format": "gamelore-knowledge", "version": 3, "gamelore": "0.1.0",
     "games": [{"rules_hash", "name", "roles", "rules", "facts": [text ..]} ..],
     "learners": [{"game": rules_hash, "role", "opponent", "settings": {..}, "seed", "gamelore", "created",
                   "sources": [..], "outcomes": [goal value ..], "inherited": [[feature, value, visits] ..],
                   "matches": [[reward, length] ..],
                   "trajectories": [[match id, [[move of each role] ..], end] ..],       not learned from yet
                   "afterstates": [[[fact ..], q, visits] ..],       fact: an index into the game's facts
                   "features": [[feature, value, visits] ..], "features_at": matches,
                   "sequences": [[role, kind, [move ..], [fact ..], encounters, several] ..],     move: one, too
                   "pairs": [[role, [fact ..], [[kind, [move ..]] ..], comments, agreements, tries, successes]
                             ..]} ..]}

Version 1 had no sequences and pairs, version 2 no trajectories; they are read as well.

A learner is the same in every store by its identity (game, role, opponent, settings, seed). Importing it
where it is already known keeps whichever of the two has played on; two that differ in a match they both
played are a KnowledgeError, and nothing is imported.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import KnowledgeError
from . import tables
from .knowledge import Knowledge, StoredLearner
from .storerows import Afterstate, PairRow, SequenceRow
from .tables import FeatureTable

NAME = "gamelore-knowledge"
VERSION = 3


def export_learners(knowledge: Knowledge, path: Path, ids: Sequence[int] | None = None) -> int:
    """Write these learners (None: all), as of one moment, over what was in `path`; returns their number."""
    with knowledge.reading() as connection:
        learners = knowledge.learners() if ids is None else [knowledge.find(number) for number in ids]
        hashes = sorted({learner.rules_hash for learner in learners})
        content = {
            "format": NAME,
            "version": VERSION,
            "gamelore": version("gamelore"),
            "games": [_game(connection, rules_hash) for rules_hash in hashes],
            "learners": [_learner(connection, learner) for learner in learners],
        }
    _replace(path, json.dumps(content, separators=(",", ":")))
    return len(learners)


def _game(connection: sqlite3.Connection, rules_hash: str) -> dict[str, Any]:
    query = "SELECT id, name, roles, rules FROM game WHERE rules_hash = ?"
    game, name, roles, rules = connection.execute(query, [rules_hash]).fetchone()
    facts = connection.execute("SELECT text FROM fact WHERE game = ? ORDER BY number", [game]).fetchall()
    about = {"rules_hash": rules_hash, "name": name, "roles": json.loads(roles), "rules": rules}
    return {**about, "facts": [text for (text,) in facts]}


def _learner(connection: sqlite3.Connection, learner: StoredLearner) -> dict[str, Any]:
    about = {
        key: getattr(learner, key) for key in ("role", "opponent", "settings", "seed", "created", "sources", "outcomes")
    }
    query = "SELECT state, q, visits FROM afterstate WHERE learner = ? ORDER BY state"
    afterstates = connection.execute(query, [learner.id]).fetchall()
    sequences, pairs, branches = (_terms(connection, table, learner) for table in ("sequence", "pair", "branch"))
    branches_of: dict[int, list[list[Any]]] = {}
    for pair, _, *branch in branches:
        branches_of.setdefault(pair, []).append(branch)
    return {
        "game": learner.rules_hash,
        **about,
        "gamelore": learner.version,
        "inherited": _rows(tables.get_values(connection, "inherited", learner.id)),
        "matches": tables.get_matches(connection, learner.id),
        "trajectories": [row[1:] for row in tables.get_trajectories(connection, learner.id)],
        "afterstates": [[tables.fact_numbers(state), q, visits] for state, q, visits in afterstates],
        "features": _rows(tables.get_values(connection, "feature", learner.id)),
        "features_at": learner.features_at,
        "sequences": [row for _, *row in sequences],
        "pairs": [[role, context, branches_of.get(pair, []), *record] for pair, role, context, *record in pairs],
    }


def _terms(connection: sqlite3.Connection, table: str, learner: StoredLearner) -> list[list[Any]]:
    """The rows of a table of sequences but for the learner, with facts and moves as lists of numbers."""
    query = f"SELECT * FROM {table} WHERE learner = ?"  # they lie in the order of their numbers
    rows = connection.execute(query, [learner.id])
    return [[tables.fact_numbers(cell) if isinstance(cell, bytes) else cell for cell in row[1:]] for row in rows]


def _rows(values: FeatureTable) -> list[tuple[str, float, int]]:
    return [(feature, value, visits) for feature, (value, visits) in values.items()]


def _replace(path: Path, text: str) -> None:
    # written beside and moved, so that a reader never meets half a file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(prefix=path.name, dir=path.parent)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError as error:
        raise KnowledgeError(f"{path}: expected a place to write, got: {error}; name another file") from error


def import_learners(knowledge: Knowledge, path: Path) -> int:
    """Take in a file of `export_learners`, all or nothing; returns how many were new or had played on."""
    content = _read(path)
    numbers = tables.FactNumbers()
    with knowledge.writing() as connection:
        try:
            games = {game["rules_hash"]: _Game(connection, game) for game in content["games"]}
            return sum(_take(connection, numbers, games[learner["game"]], learner) for learner in content["learners"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, sqlite3.IntegrityError) as error:
            raise KnowledgeError(
                f"{path}: expected knowledge as gamelore exports it, got something else at: "
                f"{type(error).__name__} {error}; export it again"
            ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KnowledgeError(f"{path}: expected a file to read, got: {error}") from error
    except ValueError as error:
        raise KnowledgeError(f"{path}: expected JSON, got: {error}; import what `export` wrote") from error
    if not isinstance(content, dict) or content.get("format") != NAME:
        raise KnowledgeError(f'{path}: expected JSON with "format": "{NAME}"; import what `export` wrote')
    found = content.get("version")
    if found not in range(1, VERSION + 1):
        wanted = f"version {VERSION} or before"
        raise KnowledgeError(f"{path}: expected {wanted}, got {found}; use the gamelore that wrote it")
    return content


class _Game:
    """A game of the file as this store knows it."""

    def __init__(self, connection: sqlite3.Connection, game: dict[str, Any]) -> None:
        about = (game["rules_hash"], game["name"], game["roles"], game["rules"])
        self.id = tables.put_game(connection, *about)
        self.facts: list[str] = game["facts"]

    def afterstate(self, row: tuple[list[int], float, int]) -> Afterstate:
        facts, q, visits = row
        return Afterstate(frozenset(self._texts(facts)), q, visits)

    def sequence(self, row: tuple[str, str, list[int], list[int], int, bool]) -> SequenceRow:
        role, kind, moves, context, encounters, several = row
        return SequenceRow(role, kind, self._texts(moves), frozenset(self._texts(context)), encounters, bool(several))

    def pair(self, row: tuple[str, list[int], list[tuple[str, list[int]]], float, float, float, float]) -> PairRow:
        role, context, branches, *record = row
        known = tuple((kind, self._texts(moves)) for kind, moves in branches)
        return PairRow(role, frozenset(self._texts(context)), known, *record)

    def _texts(self, numbers: list[int]) -> tuple[str, ...]:
        return tuple(self.facts[number] for number in numbers)


def _take(connection: sqlite3.Connection, numbers: tables.FactNumbers, game: _Game, learner: dict[str, Any]) -> bool:
    """Store one learner; False where the store already has as much of it."""
    about = (
        game.id,
        learner["role"],
        learner["opponent"],
        tables.to_json(learner["settings"]),
        learner["seed"],
    )
    found = tables.find_learner(connection, *about)
    matches = [(reward, length) for reward, length in learner["matches"]]
    if found is None:
        made = (
            learner["gamelore"],
            learner["created"],
            tables.to_json(learner["sources"]),
            tables.to_json(learner["outcomes"]),
        )
        found = tables.add_learner(connection, *about, *made)
        tables.put_values(connection, "inherited", found, _values(learner["inherited"]))
    elif not _goes_on(connection, found, learner, matches):
        return False
    known = len(tables.get_matches(connection, found))
    tables.put_matches(connection, found, known, matches[known:])
    for table in ("afterstate", "trajectory"):
        connection.execute(f"DELETE FROM {table} WHERE learner = ?", [found])
    for trajectory in learner.get("trajectories", []):
        tables.put_trajectory(connection, found, *trajectory)
    numbers.put(connection, game.id, found, map(game.afterstate, learner["afterstates"]))
    tables.put_features(connection, found, _values(learner["features"]), learner["features_at"])
    sequences, pairs = map(game.sequence, learner.get("sequences", [])), map(game.pair, learner.get("pairs", []))
    tables.put_sequences(connection, numbers, game.id, found, sequences, pairs)
    return True


def _goes_on(
    connection: sqlite3.Connection, found: int, learner: dict[str, Any], matches: list[tuple[float, int]]
) -> bool:
    """True where the file's learner has played all matches of the stored one and more, else False.

    Of two that learned from as many, it is the one that has more to learn from yet.
    """
    known = tables.get_matches(connection, found)
    shared = min(len(known), len(matches))
    inherited = tables.get_values(connection, "inherited", found)
    if known[:shared] != matches[:shared] or inherited != _values(learner["inherited"]):
        raise KnowledgeError(
            f"expected the learner {learner['role']} against {learner['opponent']} (seed {learner['seed']}) "
            "as this store has it, got another one of the same name; import into a new file"
        )
    waiting = len(tables.get_trajectories(connection, found))
    return (len(matches), len(learner.get("trajectories", []))) > (len(known), waiting)


def _values(rows: list[tuple[str, float, int]]) -> dict[str, tuple[float, int]]:
    return {feature: (value, visits) for feature, value, visits in rows}
