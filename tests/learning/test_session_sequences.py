"""Sequences into the store and out of it: nothing is lost by a stop, and no engine's numbers are in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import gamelore
from gamelore import load
from gamelore.analysis.symmetry import step_counter
from gamelore.catalogue import play_matches, player
from gamelore.errors import GameloreError, KnowledgeError
from gamelore.learning import study
from gamelore.learning.exchange import export_learners, import_learners
from gamelore.learning.sequences.patterns import Patterns
from gamelore.learning.sequences.seqlearner import (
    Curriculum,
    SeqLearner,
    SequenceSettings,
    Tournaments,
    pair_rows,
    score,
    sequence_rows,
    train,
    watch,
)
from gamelore.learning.sequences.seqplayer import SeqPlayer, SeqPlayerSettings
from gamelore.learning.session import StoredSeqPlayer, load_learner, newest, patterns_of
from gamelore.learning.sources import Sources
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import ALL_ROLES, LearnedRows, PairRow, SequenceRow, StoredLearner
from gamelore.players.position_graph import PositionGraph
from learning.plain_sequences import EIGHT

SHORT = Curriculum(opponents=("random", "expert"), cycles=2, matches=12)
WITHOUT_SOLUTION = Curriculum("uct:simulations=8", ("random",), 1, 4)


study_sequences = partial(study.study_sequences, player=player)


def restored(
    patterns: Patterns,
    settings: SequenceSettings,
    num_matches: int,
    sequences: list[SequenceRow],
    pairs: list[PairRow],
) -> SeqLearner:
    learner = SeqLearner(patterns, settings)
    learner.restore(LearnedRows((), sequences, pairs), num_matches)
    return learner


@cache
def game_of(name: str) -> gamelore.Game:
    return load(name)


def rows_of(learner: SeqLearner) -> tuple[list[SequenceRow], list[PairRow]]:
    return list(sequence_rows(learner)), list(pair_rows(learner))


def branches(learner: SeqLearner) -> set[tuple[object, ...]]:
    """Every branch of every pair as text, with all that is known of the pair."""
    pairs, patterns = learner.pairs, learner.patterns
    pair_of = np.repeat(np.arange(len(pairs)), np.diff(pairs.starts)).tolist()
    return {
        (
            int(pairs.roles[pair]),
            patterns.facts(pairs.contexts[pair]),
            int(pairs.kinds[branch]),
            tuple(patterns.move_text(move) for move in pairs.moves[branch].tolist() if move >= 0),
            float(pairs.weights[pair]),
            float(pairs.record.comments[pair]),
            float(pairs.record.successes[pair]),
        )
        for branch, pair in enumerate(pair_of)
    }


@cache
def watched(settings: SequenceSettings | None = None) -> SeqLearner:
    """A learner of lose tic-tac-toe that no store has seen."""
    game = game_of("losetictactoe")
    learner = SeqLearner(Patterns(game), settings)
    train(learner, Tournaments(PositionGraph(game), (5, 0), player), SHORT)
    return learner


# ---- a stop


OTHER = SequenceSettings(
    lengths=(2, 3), weighting="laplace", repeated="origins", trees="first", draws="lose", locality="both"
)
EACH = SequenceSettings(repeated="once", contexts="each")
GROWN = SequenceSettings(contexts="grown")


@pytest.mark.parametrize("settings", [SequenceSettings(), OTHER, EACH, GROWN], ids=["paper", "other", "each", "grown"])
def test_what_is_stored_is_what_was_learned(tmp_path: Path, settings: SequenceSettings) -> None:
    plain, game = watched(settings), game_of("losetictactoe")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        stored = study_sequences(knowledge, game, settings, SHORT, seed=5)
        found = load_learner(knowledge, stored, game)
        assert stored.num_matches == found.num_matches == len(knowledge.matches(stored)) == 48
        assert (knowledge.sequences(stored), knowledge.pairs(stored)) == rows_of(plain)
    assert rows_of(found) == rows_of(plain)
    assert len(found.pairs) > 3
    np.testing.assert_array_equal(found.pairs.keys, plain.pairs.keys)
    np.testing.assert_array_equal(found.pairs.weights, plain.pairs.weights)


class Stop(Exception):
    pass


@pytest.mark.parametrize("settings", [SequenceSettings(), OTHER, EACH, GROWN], ids=["paper", "other", "each", "grown"])
def test_a_stopped_learner_becomes_what_it_would_have_become(tmp_path: Path, settings: SequenceSettings) -> None:
    game, told = game_of("losetictactoe"), list[int]()

    def stop(number: int) -> None:
        told.append(number)
        if told in ([0, 1], [0, 1, 1, 2, 3]):
            raise Stop

    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        for _ in range(2):
            with pytest.raises(Stop):
                study_sequences(knowledge, game, settings, SHORT, seed=5, progress=stop)
        stored = study_sequences(knowledge, game, settings, SHORT, seed=5, progress=stop)
        assert told == [0, 1, 1, 2, 3, 3, 4]
        assert [one.id for one in knowledge.learners()] == [stored.id]
        assert (knowledge.sequences(stored), knowledge.pairs(stored)) == rows_of(watched(settings))
        assert study_sequences(knowledge, game, settings, SHORT, seed=5, progress=stop) == stored
        assert told[-1:] == [4]


LEARN = """
import sys
from gamelore import load
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.catalogue import player
from gamelore.learning.study import study_sequences
from gamelore.learning.sequences.seqlearner import Curriculum
with KnowledgeStore(sys.argv[1]) as knowledge:
    told = lambda number: print(number, flush=True)
    curriculum = Curriculum(matches=12, cycles=10_000)
    study_sequences(knowledge, load("losetictactoe"), None, curriculum, player=player, progress=told)
"""


def test_a_killed_learner_loses_no_finished_tournament(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEARN, str(tmp_path / "k.db")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(8)][-1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    game = game_of("losetictactoe")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        (stored,) = knowledge.learners()
        assert stored.num_matches >= 12 * told
        known = rows_of(load_learner(knowledge, stored, game))
    finished = stored.num_matches // 12
    whole, tournaments = SeqLearner(Patterns(game)), Tournaments(PositionGraph(game), (0, 0), player)
    for number in range(finished):
        watch(whole, tournaments, Curriculum(matches=12, cycles=finished), number)
    assert known == rows_of(whole)


def test_two_that_go_on_with_the_same_learner_are_told(tmp_path: Path) -> None:
    game = game_of("losetictactoe")
    with KnowledgeStore(tmp_path / "k.db") as here, KnowledgeStore(tmp_path / "k.db") as there:

        def meanwhile(number: int) -> None:
            if number == 0:
                study_sequences(there, game, None, SHORT)

        with pytest.raises(
            KnowledgeError, match="after 0 matches, got 48, because another process continues this learner"
        ):
            study_sequences(here, game, None, SHORT, progress=meanwhile)


def test_a_learner_of_sequences_is_its_settings_curriculum_and_symmetries(tmp_path: Path) -> None:
    game = game_of("losetictactoe")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        made = [
            study_sequences(knowledge, game, None, WITHOUT_SOLUTION),
            study_sequences(knowledge, game, SequenceSettings(draws="lose"), WITHOUT_SOLUTION),
            study_sequences(knowledge, game, None, WITHOUT_SOLUTION, symmetry="none"),
            study_sequences(knowledge, game, None, Curriculum("uct:simulations=8", ("random",), 1, 5)),
            study_sequences(knowledge, game, None, WITHOUT_SOLUTION, seed=1),
        ]
        assert [one.id for one in knowledge.learners(role=ALL_ROLES)] == [one.id for one in made] == [1, 2, 3, 4, 5]
        first = made[0]
        assert (first.opponent, first.outcomes) == (
            "1 x 4 matches each of uct:simulations=8 with random",
            [0, 50, 100],
        )
        assert (first.settings["kind"], first.settings["symmetries"]) == ("sequences", 8)
        assert load_learner(knowledge, made[2], game).patterns.symmetries.num == 1
        with pytest.raises(GameloreError, match=r"expected the setting symmetry to be all or none, got 'some'"):
            patterns_of(game, "some")  # type: ignore[arg-type]


# ---- any game


@pytest.mark.parametrize(
    ("name", "matches"), [("pegsolitaire", 16), ("tictactoe3p", 4), ("goofspiel", 4), ("connectfour", 4)]
)
def test_sequences_of_any_game(tmp_path: Path, name: str, matches: int) -> None:
    curriculum = Curriculum("uct:simulations=40", ("random",), 1, matches)
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        stored = study_sequences(knowledge, game_of(name), None, curriculum)
        learner = load_learner(knowledge, stored, game_of(name))
        assert len(learner.table) > 4
        assert stored.num_matches == matches
        assert all(reward >= 0 and length > 0 for reward, length in knowledge.matches(stored))


def test_a_game_that_cannot_be_solved_is_told_before_anything_is_stored(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        with pytest.raises(GameloreError, match=r"perfect cannot play goofspiel: .* --expert uct:simulations=200"):
            study_sequences(knowledge, game_of("goofspiel"))
        mixed = Curriculum("random", ("uct:simulations=5", "novice"))
        with pytest.raises(GameloreError, match="novice cannot play goofspiel"):
            study_sequences(knowledge, game_of("goofspiel"), None, mixed)
        assert knowledge.learners() == []


# ---- engines, and other numbers


def test_what_was_learned_natively_loads_on_the_reasoner(tmp_path: Path) -> None:
    native, reasoned = game_of("losetictactoe"), load("losetictactoe", "reasoner")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        stored = study_sequences(knowledge, native, None, SHORT, seed=5)
        found = load_learner(knowledge, stored, reasoned)
    assert sorted(sequence_rows(found), key=str) == sorted(sequence_rows(watched()), key=str)
    assert branches(found) == branches(watched())
    tournaments = Tournaments(PositionGraph(reasoned), (1,), player)
    assert score(tournaments.play(SeqPlayer(found.pairs), tournaments.named("random"), 4, "test")).matches == 4


def test_what_was_learned_on_the_reasoner_loads_natively(tmp_path: Path) -> None:
    native, reasoned = game_of("tictactoe"), load("tictactoe", "reasoner")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        moves = SequenceSettings((1,))
        stored = study_sequences(knowledge, reasoned, moves, Curriculum("random", ("random",), 1, 6))
        here, there = load_learner(knowledge, stored, reasoned), load_learner(knowledge, stored, native)
    assert stored.settings["symmetries"] == 1
    assert len(there.table) < len(here.table)  # images are one
    assert there.table.entries.encounters.sum() == here.table.entries.encounters.sum()


def turned(row: SequenceRow, number: int) -> SequenceRow:
    """An image, as an engine that numbers facts and moves in another way might keep it."""
    place = EIGHT[number % 8]
    return row._replace(moves=tuple(map(place, row.moves)), context=frozenset(map(place, row.context)))


def turned_pair(row: PairRow, number: int) -> PairRow:
    place = EIGHT[number % 8]
    branches = tuple((kind, tuple(map(place, moves))) for kind, moves in row.branches)
    return row._replace(branches=branches, context=frozenset(map(place, row.context)))


@pytest.mark.parametrize("settings", [SequenceSettings(), OTHER, EACH, GROWN], ids=["paper", "other", "each", "grown"])
def test_what_is_canonical_elsewhere_is_made_canonical_here(settings: SequenceSettings) -> None:
    plain = watched(settings)
    sequences, pairs = rows_of(plain)
    others = [turned(row, number) for number, row in enumerate(sequences)]
    known = [turned_pair(row, 3 * number) for number, row in enumerate(pairs)]
    found = restored(plain.patterns, plain.settings, 48, others, known)
    assert [row.moves for row in sequence_rows(found)] == [row.moves for row in sequences]
    assert len(found.pairs) == len(plain.pairs) > 3
    assert branches(found) == branches(plain)
    found.extract()
    assert branches(found) == branches(plain)


def test_what_counts_steps_is_left_out() -> None:
    game = game_of("fivemensmorris")
    counter = step_counter(game)
    assert counter is not None
    step, cell = game.fact_text(counter.facts[3]), next(fact for fact in facts_of(game) if "cell" in fact)
    move = f"(does {game.roles[0]} {game.move_text(0, 0)})"
    row = SequenceRow(game.roles[0], "solo", (move,), frozenset({step, cell}), 2, True)
    (found,) = sequence_rows(restored(patterns_of(game, "none"), SequenceSettings((1,)), 1, [row], []))
    assert found.context == {cell}


def facts_of(game: gamelore.Game) -> list[str]:
    assert game.circuit is not None
    return list(game.fact_texts)


GOOD = SequenceRow("xplayer", "solo", ("(does xplayer (mark 1 1))",), frozenset({"(cell 1 1 b)"}), 2, True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (GOOD._replace(role="white"), r"expected a role of losetictactoe \(xplayer, oplayer\), got white; this"),
        (GOOD._replace(moves=("(does white (mark 1 1))",)), "expected a role of losetictactoe"),
        (GOOD._replace(moves=("(does xplayer (mark 4 1))",)), r"expected moves of losetictactoe, got \(does xplayer"),
        (GOOD._replace(moves=("(does xplayer (mark",)), "expected moves of losetictactoe"),
        (GOOD._replace(moves=GOOD.moves * 4), "expected at most 3 moves, got 4"),
        (GOOD._replace(context=frozenset({"(cell 9 1 b)"})), r"expected facts of losetictactoe, got \(cell 9 1 b\)"),
        (GOOD._replace(kind="trio"), "expected duet or solo, got 'trio'"),
    ],
)
def test_what_the_game_does_not_have_is_told(row: SequenceRow, message: str) -> None:
    patterns = Patterns(game_of("losetictactoe"))
    assert len(restored(patterns, SequenceSettings(), 1, [GOOD], []).table) == 1
    with pytest.raises(KnowledgeError, match=message):
        restored(patterns, SequenceSettings(), 1, [row], [])


# ---- the player


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with lose tic-tac-toe as learner 1, and as 2 the same with another seed."""
    path = tmp_path / "k.db"
    with KnowledgeStore(path) as knowledge:
        for seed in (5, 6):
            study_sequences(knowledge, game_of("losetictactoe"), None, SHORT, seed=seed)
    return path


def test_a_player_by_name_plays_what_is_in_the_store(store: Path) -> None:
    game = game_of("losetictactoe")
    records = play_matches(game, [f"seqplayer:knowledge={store},learner=1,version=1", "random"], 20, seed=4)
    graph = PositionGraph(game)
    tournaments = Tournaments(graph, (1,), player)
    named = player(f"seqplayer:knowledge={store},learner=1,version=1,nearest=1,verify=2,fallback=verified")
    assert isinstance(named, StoredSeqPlayer)
    assert named.settings == SeqPlayerSettings(1, nearest=1, verify=2, fallback="verified")
    assert len(records) == 20
    assert branches_of(named.of(graph)) <= {row[:4] for row in branches(watched())}
    assert score(tournaments.play(named, tournaments.named("random"), 10, "test")).matches == 10
    assert sum(named.of(graph).sources.values()) > 10


def branches_of(seqplayer: SeqPlayer) -> set[tuple[object, ...]]:
    learner = SeqLearner(seqplayer.pairs.patterns)
    learner.pairs = seqplayer.pairs
    return {row[:4] for row in branches(learner)}


def test_unless_told_it_takes_the_newest_of_the_game(store: Path) -> None:
    with KnowledgeStore(store) as knowledge:
        assert newest(knowledge, game_of("losetictactoe")).id == 2
        knowledge.learner(game_of("losetictactoe"), ALL_ROLES, opponent="nobody yet", settings={}, seed=0)
        assert newest(knowledge, game_of("losetictactoe")).id == 2
    named = StoredSeqPlayer(str(store))
    graph = PositionGraph(game_of("losetictactoe"))
    assert named.of(graph) is named.of(graph)
    with pytest.raises(KnowledgeError, match=r"expected learned sequences of tictactoe, got none; .* --learner seq"):
        named.of(PositionGraph(game_of("tictactoe")))


def test_a_learner_that_is_named_may_be_one_of_another_game_with_the_same_moves(store: Path) -> None:
    records = play_matches(game_of("tictactoe"), [f"seqplayer:knowledge={store},learner=1", "random"], 4)
    assert {record.end for record in records} == {"terminal"}
    with pytest.raises(KnowledgeError, match="expected a role of connect3"):
        play_matches(game_of("connect3"), [f"seqplayer:knowledge={store},learner=1", "random"], 4)


def test_a_store_without_sequences_is_told_when_the_first_match_begins(store: Path, tmp_path: Path) -> None:
    game = game_of("losetictactoe")
    with pytest.raises(KnowledgeError, match="expected a knowledge store, got no such file"):
        play_matches(game, [f"seqplayer:knowledge={tmp_path / 'none.db'}", "random"], 4)
    with pytest.raises(KnowledgeError, match=r"expected the number of a learner in this store \(1, 2\), got 9"):
        play_matches(game, [f"seqplayer:knowledge={store},learner=9", "random"], 4)
    with KnowledgeStore(store) as knowledge:
        values = values_of(knowledge)
        assert values.id == 3
    with pytest.raises(KnowledgeError, match=r"expected a learner of sequences, got learner 3 \(baseline\)"):
        play_matches(game, [f"seqplayer:knowledge={store},learner=3", "random"], 4)
    with pytest.raises(GameloreError, match="expected version 1 or 2"):
        player("seqplayer:version=3")


def values_of(knowledge: KnowledgeStore) -> StoredLearner:
    """A learner of feature values in the same store."""
    from gamelore.learning.td.initial_values import LearnerSettings
    from gamelore.matches.opponents import OpponentSettings

    return study.study(knowledge, game_of("losetictactoe"), "xplayer", LearnerSettings(), OpponentSettings("random"), 5)


def test_sequences_are_no_source_of_features(store: Path) -> None:
    from gamelore.learning.td.initial_values import LearnerSettings
    from gamelore.matches.opponents import OpponentSettings

    transfer, opponent = LearnerSettings("transfer"), OpponentSettings("random")
    with KnowledgeStore(store) as knowledge:
        against = knowledge.find(1).opponent
        sources = Sources(("losetictactoe",), against)
        with pytest.raises(KnowledgeError, match=r"expected knowledge of losetictactoe .* \(opponents there: none\)"):
            study.study(knowledge, game_of("tictactoe"), "xplayer", transfer, opponent, 3, sources=sources)


# ---- files


def test_an_export_comes_back_whole(store: Path, tmp_path: Path) -> None:
    with KnowledgeStore(store) as here, KnowledgeStore(tmp_path / "other.db") as there:
        values_of(here)
        study_sequences(there, game_of("tictactoe"), None, WITHOUT_SOLUTION)  # numbers facts in another order
        assert export_learners(here, tmp_path / "k.json") == 3
        assert import_learners(there, tmp_path / "k.json") == 3
        assert import_learners(there, tmp_path / "k.json") == 0
        for mine, theirs in zip(here.learners(), there.learners()[1:], strict=True):
            assert mine.origin == theirs.origin
            assert here.sequences(mine) == there.sequences(theirs)
            assert here.pairs(mine) == there.pairs(theirs)
            assert here.matches(mine) == there.matches(theirs)
        again = study_sequences(there, game_of("losetictactoe"), None, SHORT, seed=5)
        assert again.id == 2


def test_of_two_ages_of_a_learner_the_older_one_stays(store: Path, tmp_path: Path) -> None:
    game = game_of("losetictactoe")

    def stop(number: int) -> None:
        if number == 2:
            raise Stop

    with KnowledgeStore(store) as here, KnowledgeStore(tmp_path / "other.db") as there:
        with pytest.raises(Stop):
            study_sequences(there, game, None, SHORT, seed=5, progress=stop)
        export_learners(there, tmp_path / "young.json")
        export_learners(here, tmp_path / "old.json", [1])
        assert import_learners(here, tmp_path / "young.json") == 0
        assert import_learners(there, tmp_path / "old.json") == 1
        assert (there.sequences(there.find(1)), there.pairs(there.find(1))) == rows_of(watched())


def test_an_export_of_the_first_version_is_read(store: Path, tmp_path: Path) -> None:
    with KnowledgeStore(store) as here, KnowledgeStore(tmp_path / "other.db") as there:
        values = values_of(here)
        export_learners(here, tmp_path / "k.json", [values.id])
        content = json.loads((tmp_path / "k.json").read_text())
        assert content["version"] == 4
        content["version"] = 1
        for learner in content["learners"]:
            assert learner.pop("sequences") == learner.pop("pairs") == learner.pop("trajectories") == []
            assert learner.pop("replies")
        (tmp_path / "k.json").write_text(json.dumps(content))
        assert import_learners(there, tmp_path / "k.json") == 1
        (found,) = there.learners()
        assert set(there.afterstates(found)) == set(here.afterstates(values))


def test_half_an_export_leaves_nothing_behind(store: Path, tmp_path: Path) -> None:
    with KnowledgeStore(store) as here, KnowledgeStore(tmp_path / "other.db") as there:
        export_learners(here, tmp_path / "k.json")
        content = json.loads((tmp_path / "k.json").read_text())
        content["learners"][1]["sequences"][5][2] = [9999]
        (tmp_path / "k.json").write_text(json.dumps(content))
        with pytest.raises(KnowledgeError, match="9999 is no index of"):
            import_learners(there, tmp_path / "k.json")
        assert there.learners() == []
