"""Stores and exports that gamelore wrote before its stores, learners and sessions were put together anew.

`stores/` has a store of format 3 with a baseline learner, a transfer learner and a learner of sequences, and one match
that waits to be learned from; its export; and the export after the old code had gone on, to 20 and to 9 matches.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gamelore import load
from gamelore.learning.exchange import export_learners, import_learners
from gamelore.learning.session import load_learner
from gamelore.learning.sources import Sources
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import FORMAT
from gamelore.learning.study import study
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import OpponentSettings

STORES = Path(__file__).parent / "stores"
GREEDY = OpponentSettings("egreedy", "first", 0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(STORES / "format3.db", tmp_path / "k.db"))


def imported(name: str, tmp_path: Path) -> list[tuple[Any, ...]]:
    with KnowledgeStore(tmp_path / f"{name}.db") as knowledge:
        assert import_learners(knowledge, STORES / f"{name}.json") == 3
        return everything(knowledge)


def everything(knowledge: KnowledgeStore) -> list[tuple[Any, ...]]:
    return [
        (
            one.origin,
            (one.version, one.created, one.sources, one.features_at),
            knowledge.matches(one),
            knowledge.trajectories(one),
            set(knowledge.afterstates(one)),
            knowledge.sequences(one),
            knowledge.pairs(one),
            dict(knowledge.inherited(one) or {}),
            dict(knowledge.feature_values(one)),
        )
        for one in knowledge.learners()
    ]


def test_a_store_of_before_opens_unchanged(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    with KnowledgeStore(path, create=False, writable=False) as knowledge:
        found = everything(knowledge)
        assert [(one[0]["game"], one[0]["num_matches"], len(one[3])) for one in found] == [
            ("tictactoe", 12, 1),
            ("connect3", 6, 0),
            ("losetictactoe", 10, 0),
        ]
        assert found == imported("format3", tmp_path)
        sequences = load_learner(knowledge, knowledge.find(3), load("losetictactoe"))
        assert (len(sequences.table), len(sequences.pairs)) == (50, 1)
    assert path.read_bytes() == before


def test_learners_of_before_go_on_as_they_would_have(path: Path, tmp_path: Path) -> None:
    transfer, sources = LearnerSettings("transfer", initialisation="eager"), Sources(("tictactoe",))
    with KnowledgeStore(path) as knowledge:
        study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), GREEDY, 20, seed=5)
        study(knowledge, load("connect3"), "red", transfer, GREEDY, 9, seed=5, sources=sources)
        assert everything(knowledge) == imported("format3_later", tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert connection.execute("SELECT id FROM match WHERE id IS NOT NULL").fetchall() == [("kept",)]


def test_what_is_exported_is_what_was_exported_before(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        assert export_learners(knowledge, tmp_path / "k.json") == 3
    exported = json.loads((tmp_path / "k.json").read_text())
    assert [learner.pop("replies") for learner in exported["learners"]] == [[]] * 3  # not counted before format 4
    assert [learner.pop("match_ids") for learner in exported["learners"]] == [
        []
    ] * 3  # of matches over the network only
    assert exported == json.loads((STORES / "format3.json").read_text()) | {"version": 4}
