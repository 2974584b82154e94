"""Learning into the store: nothing is lost by a stop, and what one game taught reaches the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gamelore import load
from gamelore.catalogue import player
from gamelore.errors import GameloreError, KnowledgeError
from gamelore.learning.sources import Sources, computed_features, enrol
from gamelore.learning.store.features import combine
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import StoredLearner
from gamelore.learning.study import SELF, Opposition, study, study_self
from gamelore.learning.td.initial_values import Kind, LearnerSettings
from gamelore.matches.opponents import Opponent, OpponentSettings, opponent_text
from learning.small_games import COINS

GREEDY = OpponentSettings("egreedy", "first")
TRANSFER = LearnerSettings("transfer", initialisation="eager")


def everything(knowledge: KnowledgeStore, learner: StoredLearner) -> tuple[object, ...]:
    return knowledge.matches(learner), set(knowledge.afterstates(learner)), dict(knowledge.feature_values(learner))


@pytest.mark.parametrize("settings", [LearnerSettings(), LearnerSettings(initialisation="siblings", epsilon=0.3)])
def test_a_stopped_learner_becomes_what_it_would_have_become(tmp_path: Path, settings: LearnerSettings) -> None:
    game = load("tictactoe")
    with KnowledgeStore(tmp_path / "whole.db") as whole, KnowledgeStore(tmp_path / "parts.db") as parts:
        one = study(whole, game, "xplayer", settings, GREEDY, 60, seed=5)
        for num_matches in (0, 1, 25, 60, 40):
            other = study(parts, game, "xplayer", settings, GREEDY, num_matches, seed=5)
        assert one.num_matches == other.num_matches == 60
        assert everything(whole, one) == everything(parts, other)
        assert len(whole.feature_values(one)) > 3
        assert one.features_at == 60


class Stop(Exception):
    pass


def test_an_interrupt_loses_no_finished_match(tmp_path: Path) -> None:
    game = load("tictactoe")

    def stop(num_matches: int) -> None:
        if num_matches == 17:
            raise Stop

    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        with pytest.raises(Stop):
            study(knowledge, game, "oplayer", LearnerSettings(), GREEDY, 60, progress=stop)
        (stopped,) = knowledge.learners()
        assert (stopped.num_matches, stopped.features_at) == (17, 0)
        told: list[int] = []
        study(knowledge, game, "oplayer", LearnerSettings(), GREEDY, 20, progress=told.append)
        assert told == [17, 18, 19, 20]


LEARN = """
import sys
from gamelore import load
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.study import SELF, Opposition, study, study_self
from gamelore.matches.opponents import OpponentSettings
with KnowledgeStore(sys.argv[1]) as knowledge:
    against = OpponentSettings("egreedy", "first")
    told = lambda number: print(number, flush=True)
    study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), against, 100_000, progress=told)
"""


def test_a_killed_learner_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEARN, str(tmp_path / "killed.db")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(30)][-1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    game = load("tictactoe")
    with KnowledgeStore(tmp_path / "killed.db") as killed, KnowledgeStore(tmp_path / "whole.db") as whole:
        (stored,) = killed.learners()
        assert stored.num_matches >= told
        goal = stored.num_matches + 10
        here = study(killed, game, "xplayer", LearnerSettings(), GREEDY, goal)
        there = study(whole, game, "xplayer", LearnerSettings(), GREEDY, goal)
        assert everything(killed, here) == everything(whole, there)


def test_both_engines_learn_the_same(tmp_path: Path) -> None:
    found = []
    for engine in ("native", "reasoner"):
        with KnowledgeStore(tmp_path / engine) as knowledge:
            game = load("tictactoe", "native" if engine == "native" else "reasoner")
            found.append(everything(knowledge, study(knowledge, game, "xplayer", TRANSFER_FREE, GREEDY, 4)))
    assert found[0] == found[1]


TRANSFER_FREE = LearnerSettings("lookahead")


def test_a_transfer_learner_begins_with_its_sources_and_keeps_that(tmp_path: Path) -> None:
    source, target = load("tictactoe"), load("connect3")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        teachers = [study(knowledge, source, role, LearnerSettings(), GREEDY, 40) for role in source.roles]
        study(knowledge, source, "xplayer", LearnerSettings(), OpponentSettings("random"), 30)
        sources = Sources(("tictactoe",))
        learner = study(knowledge, target, "red", TRANSFER, GREEDY, 5, sources=sources)
        expected = combine([knowledge.feature_values(teacher) for teacher in teachers], "visits")
        begun = knowledge.inherited(learner)
        assert begun is not None
        assert dict(begun) == dict(expected)
        assert [(one["game"], one["role"], one["num_matches"]) for one in learner.sources] == [
            ("tictactoe", "xplayer", 40),
            ("tictactoe", "oplayer", 40),
        ]
        study(knowledge, source, "xplayer", LearnerSettings(), GREEDY, 80)
        again = study(knowledge, target, "red", TRANSFER, GREEDY, 8, sources=sources)
        assert again.id == learner.id
        assert dict(knowledge.inherited(again) or {}) == dict(expected)
        assert (
            enrol(knowledge, target, "red", TRANSFER, GREEDY, sources=Sources(("tictactoe",), "random")).id > again.id
        )


def test_sources_that_teach_nothing_are_told(tmp_path: Path) -> None:
    source, target = load("tictactoe"), load("connect3")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        study(knowledge, source, "xplayer", LearnerSettings(), OpponentSettings("weak"), 3)
        message = (
            r"expected knowledge of tictactoe against random, got none .* \(opponents there: "
            r"weak:filler=random,epsilon=0.01"
        )
        with pytest.raises(KnowledgeError, match=message):
            study(
                knowledge,
                target,
                "red",
                TRANSFER,
                OpponentSettings("random"),
                3,
                sources=Sources(("tictactoe",)),
            )
        assert len(knowledge.learners()) == 1


def test_a_transfer_learner_without_anything_to_begin_with_is_not_enrolled(tmp_path: Path) -> None:
    source, target = load("tictactoe"), load("connect3")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        with pytest.raises(KnowledgeError, match="expected source games for a transfer learner, got none; name games"):
            study(knowledge, target, "red", TRANSFER, GREEDY, 3)
        study(knowledge, source, "xplayer", LearnerSettings(depth=0), GREEDY, 3)
        nothing = replace(TRANSFER, depth=0)  # features need a ply at least
        with pytest.raises(KnowledgeError, match=r"feature values from tictactoe, got none .*; learn more matches"):
            study(knowledge, target, "red", nothing, GREEDY, 3, sources=Sources(("tictactoe",)))
        assert [learner.game for learner in knowledge.learners()] == ["tictactoe"]


@pytest.mark.parametrize("kind", ["baseline", "lookahead", "oracle"])
def test_a_study_of_goals_above_100_is_refused_before_the_first_match(tmp_path: Path, kind: Kind) -> None:
    game = load(COINS.replace("(leaf end60 60)", "(leaf end60 150)"))
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        with pytest.raises(GameloreError, match="expected goals from 0 to 100 for walker in unnamed, got 150; scale"):
            study(knowledge, game, "walker", LearnerSettings(kind), GREEDY, 3)
        assert knowledge.learners() == []


def test_a_start_that_fails_leaves_no_learner(tmp_path: Path) -> None:
    game, settings = load("tictactoe"), LearnerSettings("oracle", symmetry="all")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        with pytest.raises(GameloreError, match='filler=random for an oracle with symmetry "all"'):
            study(knowledge, game, "xplayer", settings, GREEDY, 3)
        with pytest.raises(GameloreError, match="expected the opponent of an oracle"):
            study_self(knowledge, game, LearnerSettings("oracle"), 3)
        assert knowledge.learners() == []
        before = enrol(knowledge, game, "xplayer", settings, GREEDY)
        study(knowledge, game, "oplayer", LearnerSettings(), Opposition(SELF, [Opponent(GREEDY)] * 2), 3)
        for failing in (
            lambda: study(knowledge, game, "xplayer", settings, GREEDY, 3),
            lambda: study_self(knowledge, game, LearnerSettings(), 3),
        ):
            with pytest.raises(GameloreError):
                failing()
            assert [(learner.id, learner.num_matches) for learner in knowledge.learners()] == [(before.id, 0), (2, 3)]


def test_features_can_be_worked_out_from_the_store_alone(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        learner = study(knowledge, load("tictactoe"), "xplayer", LearnerSettings(), GREEDY, 50)
        before = dict(knowledge.feature_values(learner))
        knowledge.store_features(learner, type(knowledge.feature_values(learner))({}))
        knowledge.store_features(learner, computed_features(knowledge, knowledge.find(learner.id)))
        assert dict(knowledge.feature_values(learner)) == before != {}


@pytest.mark.parametrize(
    "settings",
    [
        OpponentSettings("random"),
        OpponentSettings("egreedy", "first", 0.05),
        OpponentSettings("egreedy", "random", 0.12345678901),
        OpponentSettings("weak", "first", 1e-7),
        OpponentSettings("weak", "hashed", 0.0, 12345678901234567890),
    ],
)
def test_an_opponents_text_reads_back(settings: OpponentSettings) -> None:
    read = player(opponent_text(settings))
    assert isinstance(read, Opponent)
    assert read.settings == (settings,)
