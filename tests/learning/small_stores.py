"""A store of a game that is never played, and everything in a store, to compare two of them."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gamelore.gdl.syntax import parse
from gamelore.learning.store import schema
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import (
    ALL_ROLES,
    Afterstate,
    LearnedRows,
    MatchRow,
    PairRow,
    SequenceRow,
    StoredLearner,
)

SETTINGS = {"kind": "baseline", "alpha": 0.3}


@dataclass
class Rules:
    """As much of a game as the store looks at."""

    name: str = "coins"
    roles: tuple[str, ...] = ("red", "blue")
    goal_values: tuple[tuple[int, ...], ...] = ((0, 30, 100), (0, 100))
    rulesheet: str = "(role red)\n(role blue)"
    rules_hash: str = parse("(role red)\n(role blue)").rules_hash


def record_match(
    knowledge: KnowledgeStore,
    learner: StoredLearner,
    reward: float,
    length: int,
    afterstates: list[Afterstate],
    *,
    trajectory: int | None = None,
) -> None:
    knowledge.record(learner, [MatchRow(reward, length)], LearnedRows(afterstates), trajectory=trajectory)


def state(*facts: str) -> frozenset[str]:
    return frozenset(facts)


def learner(knowledge: KnowledgeStore, seed: int = 7, opponent: str = "egreedy:filler=first") -> StoredLearner:
    return knowledge.learner(Rules(), "red", opponent=opponent, settings=SETTINGS, seed=seed)


MOVES = [("(put 1)", "noop"), ("noop", "(put 2)")]


def fill(knowledge: KnowledgeStore, num_matches: int = 3) -> StoredLearner:
    one = knowledge.learner(
        Rules(), "red", opponent="weak", settings=SETTINGS, seed=7, inherited=FeatureValues({"L": (0.1 + 0.2, 3)})
    )
    for number in range(one.num_matches, num_matches):
        after = Afterstate(state("(cell 1 1 é)", f"(step {number})"), number / 3, number + 1)
        record_match(knowledge, one, 100, number, [after])
    knowledge.store_features(one, FeatureValues({"L,{n,W}": (1 / 3, 2)}))
    return one


def fill_all(knowledge: KnowledgeStore) -> None:
    """Store a learner of values and one of sequences, with at least one row in every table."""
    source = fill(knowledge)
    inherited = FeatureValues({"L": (40.0, 3)}, replies={(1, 0, 0, 2, 3): 4})
    heir = knowledge.learner(
        Rules(), "blue", opponent="weak", settings=SETTINGS, seed=1, inherited=inherited, sources=[source]
    )
    record_match(knowledge, heir, 100, 2, [Afterstate(state("(step 1)"), 50.5, 2)])
    knowledge.store_features(heir, FeatureValues({"L,{n,W}": (1 / 3, 2)}))
    knowledge.keep_match(heir, "kept", MOVES, "terminal")
    settings = {"kind": "sequences", "lengths": [3], "curriculum": {"expert": "random", "opponents": ["random"]}}
    watching = knowledge.learner(Rules(), ALL_ROLES, opponent="watched", settings=settings, seed=0)
    moves = ("(does red (put 1))", "(does blue noop)")
    sequence = SequenceRow("red", "solo", moves, state("(step 1)"), 2, False)
    pair = PairRow("red", state("(step 1)"), (("solo", moves),), 3.0, 2.0, 1.0, 1.0)
    knowledge.record(watching, [MatchRow(100, 5)], LearnedRows((), [sequence], [pair]))


def content(knowledge: KnowledgeStore) -> list[dict[str, object]]:
    """Everything in the store but its own numbers."""
    return [
        {
            **one.origin,
            "made": (one.version, one.created, one.sources, one.features_at),
            "inherited": dict(knowledge.inherited(one) or {}),
            "outcomes": one.outcomes,
            "matches": knowledge.matches(one),
            "afterstates": set(knowledge.afterstates(one)),
            "rules": knowledge.rules(one),
            "features": [row[1:] for row in knowledge.features(ids=[one.id])],
        }
        for one in knowledge.learners()
    ]


def make_older(path: Path, version: int) -> None:
    """Takes out of a store what came after the format `version`."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = (
            ("sequence", "pair", "branch"),
            ("trajectory",),
            ("reply",),
            schema.LESSON_TABLES[:5],
            schema.LESSON_TABLES[5:7],
            schema.LESSON_TABLES[7:],
        )
        for table in chain(*tables[version - 1 :]):
            connection.execute(f"DROP TABLE {table}")
        if version < 3:
            connection.execute("DROP INDEX match_id")
            connection.execute("ALTER TABLE match DROP COLUMN id")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
