"""Players by name that know a store, and values given from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gamelore.catalogue import PLAYERS, play_matches, player
from gamelore.errors import GameloreError
from gamelore.learning.sequences.seqplayer import SeqPlayerSettings
from gamelore.learning.session import LastingLearner, StoredSeqPlayer
from gamelore.learning.sources import Sources
from gamelore.learning.store.knowledge import KnowledgeStore, default_path
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import options_of


def lasting(spec: str, **given: object) -> LastingLearner:
    found = player(spec, **given)
    assert isinstance(found, LastingLearner)
    return found


def test_a_learner_by_name_has_the_settings_of_learn() -> None:
    found = lasting("baseline")
    assert found.settings == LearnerSettings()
    assert (found.path, found.opponent, found.seed) == (default_path(), "unknown", 0)
    assert (found.sources, found.learns, found.quota, found.search) == (None, True, None, 0.0)


def test_every_option_is_read() -> None:
    found = lasting(
        "transfer:knowledge=my/k.db,opponent=weak:filler=first+epsilon=0.2,seed=7,learn=no,quota=1000,search=0.5,"
        "source=tictactoe+connect3,source_opponent=egreedy,control=shuffled,initialisation=eager,depth=3,alpha=0.1,"
        "gamma=0.9,lam=0.8,epsilon=0.2,symmetry=all,ties=first"
    )
    assert found.settings == LearnerSettings(
        "transfer",
        initialisation="eager",
        alpha=0.1,
        gamma=0.9,
        lam=0.8,
        epsilon=0.2,
        depth=3,
        ties="first",
        control="shuffled",
        symmetry="all",
    )
    assert (found.path, found.opponent, found.seed) == (Path("my/k.db"), "weak:filler=first,epsilon=0.2", 7)
    assert found.sources == Sources(("tictactoe", "connect3"), "egreedy")
    assert (found.learns, found.quota, found.search) == (False, 1000, 0.5)
    assert lasting("lookahead:heuristic=maxmax").settings == LearnerSettings("lookahead", heuristic="maxmax")


@pytest.mark.parametrize(
    ("kind", "fixed"),
    [
        ("baseline", {"heuristic", "control", "source", "source_opponent", "turns"}),
        ("transfer", {"heuristic"}),
        ("lookahead", {"control", "source", "source_opponent", "turns"}),
    ],
)
def test_the_options_of_a_learner_are_its_settings(kind: str, fixed: set[str]) -> None:
    own, settings = options_of(LastingLearner, "kind"), options_of(LearnerSettings, "kind", "default", "equivalence")
    assert PLAYERS[kind].options.keys() == (own.keys() | settings.keys()) - fixed


def test_the_options_of_seqplayer_are_its_settings() -> None:
    assert PLAYERS["seqplayer"].options.keys() == {*options_of(StoredSeqPlayer), *options_of(SeqPlayerSettings)}


def test_given_values_go_where_the_spec_says_nothing() -> None:
    given = {"knowledge": "k.db", "opponent": "alice", "seed": 3, "learn": False, "quota": None, "search": 2.0}
    found = lasting("baseline:opponent=bob,seed=5", **given)
    assert (found.path, found.opponent, found.seed) == (Path("k.db"), "bob", 5)
    assert (found.learns, found.quota, found.search) == (False, None, 2.0)
    sequences = player("seqplayer:version=2", **given)
    assert isinstance(sequences, StoredSeqPlayer)
    assert sequences.knowledge == "k.db"
    assert player("egreedy", **given).__dict__.keys() == player("egreedy").__dict__.keys()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("baseline:learn=perhaps", "expected yes or no, got 'perhaps'"),
        ("baseline:source=tictactoe", "got 'source'; did you mean search"),
        ("baseline:lambda=1", "got 'lambda'; did you mean lam"),
        ("baseline:quota=much", "expected a number for quota, got 'much'"),
        (
            "baseline:initialisation=late",
            "expected the setting initialisation to be lazy, siblings or eager, got 'late'",
        ),
        ("transfers", "got 'transfers'; did you mean transfer"),
    ],
)
def test_what_is_wrong_is_named(spec: str, message: str) -> None:
    with pytest.raises(GameloreError) as caught:
        player(spec)
    assert message in str(caught.value)


def test_learners_play_each_other_by_name_and_keep_what_they_learn(tmp_path: Path) -> None:
    from gamelore import load

    store = tmp_path / "k.db"
    specs = [f"baseline:knowledge={store}", f"lookahead:knowledge={store},opponent=a baseline"]
    records = play_matches(load("tictactoe"), specs, 30)
    with KnowledgeStore(store) as knowledge:
        first, second = knowledge.learners()
        assert (first.role, second.role, second.opponent) == ("xplayer", "oplayer", "a baseline")
        assert [sorted(match.reward for match in knowledge.matches(one)) for one in (first, second)] == [
            sorted(float(record.goals[role] or 0) for record in records) for role in (0, 1)
        ]


def test_naming_players_does_not_load_what_only_learners_need() -> None:
    code = (
        "import sys; from gamelore.catalogue import player; player('random'); "
        "print(*(name for name in sys.modules if name.startswith('gamelore.learn')))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "gamelore.learning.session" not in result.stdout.split()


def test_all_are_told_what_they_are() -> None:
    assert {"baseline", "transfer", "lookahead", "seqplayer", "egreedy"} <= PLAYERS.keys()
    assert all(entry.about for entry in PLAYERS.values())
