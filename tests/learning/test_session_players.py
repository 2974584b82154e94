"""Learners as players: what they learn is in the store whatever is killed when, and equals what `study` learns."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from numpy.typing import NDArray

import gamelore
from gamelore.errors import GameloreError, KnowledgeError
from gamelore.learning import session
from gamelore.learning.session import (
    STAGE,
    UNKNOWN,
    LastingLearner,
    StoredValuePlayer,
    each_match,
    full_opponent,
)
from gamelore.learning.sources import ANYONE, Sources, other_games, taught
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import LESSON_TABLES, StoredLearner
from gamelore.learning.study import study
from gamelore.learning.td import learner as searching
from gamelore.learning.td import series
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.learner import Learner, pooled, search_on
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.match import MatchState
from gamelore.matches.opponents import Opponent, OpponentSettings, opponent_text
from gamelore.players.player import CAP, Finished, Player, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import EXPLORE, extend, stream, uniform
from gamelore.players.uct import Searched, SearchSettings
from learning.small_games import ASTRAY, PENNIES_TWICE, SIDES

GREEDY = OpponentSettings("egreedy", "first", 0.1)
AGAINST = opponent_text(GREEDY)


@cache
def game_of(name: str, engine: str = "auto") -> gamelore.Game:
    return gamelore.load(name, engine)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.db"


def learner(path: Path, kind: str = "baseline", opponent: str = AGAINST, **options: object) -> LastingLearner:
    return LastingLearner(kind, knowledge=path, opponent=opponent, **options)  # type: ignore[arg-type]


def one_match(
    seats: Sequence[Player], graph: PositionGraph, number: int, seed: int = 0, max_plies: int = 1000
) -> MatchState:
    """A match as a host plays it, from its beginning till it is over; the players are not told of its end."""
    match = MatchState(graph, max_plies=max_plies)
    for role, seat in enumerate(seats):
        seat.begin(role, match.started(number))
    while match.end is None:
        for role in match.pending():
            turn = match.turn(role, stream(seed, 0, STAGE, number, role))
            match.submit(role, int(seats[role].choose(turn)[0]) if match.has_choice(role) else 0)
    return match


def played(
    player: LastingLearner,
    graph: PositionGraph,
    num_matches: int,
    role: int = 0,
    *,
    seed: int = 0,
    against: OpponentSettings = GREEDY,
    keep: bool = True,
) -> None:
    """So many matches, one after the other; each is kept, then learned from."""
    seats: list[Player] = [Opponent(against)] * graph.game.num_roles
    seats[role] = player
    for _ in range(num_matches):
        number = player.num_matches(graph, role)
        finished = one_match(seats, graph, number, seed).finished(number)
        if keep:
            player.keep(role, finished, f"match {number}")
        player.end(role, finished)


def everything(path: Path) -> list[tuple[object, ...]]:
    """All learners of a store, but for what `study` works out at its end."""
    with KnowledgeStore(path, create=False, writable=False) as knowledge:
        return [
            (
                *(one.game, one.role, one.opponent, one.settings, one.seed, one.num_matches),
                knowledge.matches(one),
                sorted((sorted(after.facts), after.q, after.visits) for after in knowledge.afterstates(one)),
                dict(knowledge.inherited(one) or {}),
                knowledge.trajectories(one),
            )
            for one in knowledge.learners()
        ]


def only(path: Path) -> StoredLearner:
    with KnowledgeStore(path, create=False) as knowledge:
        (found,) = knowledge.learners()
        return found


KINDS = [
    ("tictactoe", 0, "baseline", {}),
    ("tictactoe", 1, "baseline", {"initialisation": "siblings", "epsilon": 0.3, "symmetry": "all"}),
    ("connect3", 0, "lookahead", {"initialisation": "eager", "heuristic": "avgmax"}),
    (PENNIES_TWICE, 1, "baseline", {"ties": "first", "alpha": 0.5, "gamma": 0.9, "lam": 0.1}),
    (ASTRAY, 0, "baseline", {"depth": 1}),
]


@pytest.mark.parametrize(("name", "role", "kind", "options"), KINDS)
def test_match_by_match_it_learns_what_study_learns(
    path: Path, tmp_path: Path, name: str, role: int, kind: str, options: dict[str, object]
) -> None:
    game, settings = game_of(name), LearnerSettings(kind, **options)  # type: ignore[arg-type]
    with KnowledgeStore(tmp_path / "studied.db") as knowledge:
        study(knowledge, game, game.roles[role], settings, GREEDY, 30, seed=5)
    played(learner(path, kind, seed=5, **options), PositionGraph(game), 30, role, seed=5)
    assert everything(path) == everything(tmp_path / "studied.db")
    assert only(path).num_matches == 30


def taught_by_tictactoe(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        study(knowledge, game_of("tictactoe"), "xplayer", LearnerSettings(), GREEDY, 30)


@pytest.mark.parametrize("options", [{}, {"control": "shuffled"}])
def test_transfer_with_a_source_is_that_of_study(path: Path, tmp_path: Path, options: dict[str, object]) -> None:
    options = {"initialisation": "eager", **options}
    game, settings = game_of("connect3"), LearnerSettings("transfer", **options)  # type: ignore[arg-type]
    for place in (path, tmp_path / "studied.db"):
        taught_by_tictactoe(place)
    with KnowledgeStore(tmp_path / "studied.db") as knowledge:
        study(knowledge, game, "red", settings, GREEDY, 20, seed=5, sources=Sources(("tictactoe",)))
    played(learner(path, "transfer", source="tictactoe", seed=5, **options), PositionGraph(game), 20, seed=5)
    assert everything(path) == everything(tmp_path / "studied.db")
    assert everything(path)[1][8], "it began with values"


def test_the_two_go_on_with_each_others_learner(path: Path, tmp_path: Path) -> None:
    game = game_of("tictactoe")
    with KnowledgeStore(tmp_path / "studied.db") as knowledge:
        study(knowledge, game, "oplayer", LearnerSettings(), GREEDY, 30)
    played(learner(path), PositionGraph(game), 8, role=1)
    with KnowledgeStore(path) as knowledge:
        study(knowledge, game, "oplayer", LearnerSettings(), GREEDY, 20)
    played(learner(path), PositionGraph(game), 10, role=1)
    assert everything(path) == everything(tmp_path / "studied.db")


def test_in_lockstep_one_lane_learns_what_study_learns(path: Path, tmp_path: Path) -> None:
    game = game_of("connect3")
    with KnowledgeStore(tmp_path / "studied.db") as knowledge:
        study(knowledge, game, "red", LearnerSettings(), GREEDY, 25)
    run_lockstep(PositionGraph(game), [learner(path), Opponent(GREEDY)], [stream(0, 0, STAGE)], 25)
    assert everything(path) == everything(tmp_path / "studied.db")


def test_lanes_share_one_learner_and_learn_in_the_order_of_ending(path: Path, tmp_path: Path) -> None:
    game = game_of("tictactoe")
    graph, ended = PositionGraph(game), []
    seats = [learner(path, epsilon=0.5), Opponent(GREEDY)]
    run_lockstep(graph, seats, np.full(7, stream(3)), 1, first_match=np.arange(7), on_end=ended.append)
    again = learner(tmp_path / "again.db", epsilon=0.5)
    for finished in ended:
        for one in each_match(finished):
            again.end(0, one)
    assert everything(path) == everything(tmp_path / "again.db")
    assert only(path).num_matches == 7


def test_one_learner_for_each_game_and_role(path: Path) -> None:
    player = learner(path)
    games = [game_of("tictactoe"), game_of(PENNIES_TWICE)]
    graphs = [PositionGraph(game) for game in games]
    for _ in range(3):
        for graph in graphs:
            played(player, graph, 1)
            match = one_match([player, player], graph, 0)
            for role in (0, 1):
                player.end(role, match.finished())
    assert [(one[1], one[5]) for one in everything(path)] == [("xplayer", 6), ("oplayer", 3), ("red", 6), ("blue", 3)]
    assert [player.num_matches(graph, role) for graph in graphs for role in (0, 1)] == [6, 3, 6, 3]


# kills


def test_whenever_it_dies_no_match_is_lost_or_learned_from_twice(path: Path, tmp_path: Path) -> None:
    """A process dies after every step of some match; what comes after has only the store."""
    game = game_of("tictactoe")
    played(learner(tmp_path / "whole.db"), PositionGraph(game), 12)
    graph, player = PositionGraph(game), learner(path)
    for number in range(12):
        died = number % 4
        assert player.num_matches(graph, 0) == number
        finished = one_match([player, Opponent(GREEDY)], graph, number).finished(number)
        if died == 1:  # before anything was kept: the host has its STOP still to send
            graph, player = PositionGraph(game), learner(path)
            finished = one_match([player, Opponent(GREEDY)], graph, number).finished(number)
        player.keep(0, finished, f"match {number}")
        assert player.num_matches(graph, 0) == number + 1
        if died == 2:  # before the answer went out: whoever comes next plays the match again and keeps it again
            for _ in range(2):
                graph, player = PositionGraph(game), learner(path)
                finished = one_match([player, Opponent(GREEDY)], graph, number).finished(number)
                player.keep(0, finished, f"match {number}")
                assert player.num_matches(graph, 0) == number + 1
        if died == 3:  # after the answer: nobody comes back to it
            graph, player = PositionGraph(game), learner(path)
        else:
            player.end(0, finished)
        assert player.num_matches(graph, 0) == number + 1
    assert everything(path) == everything(tmp_path / "whole.db")


def test_what_was_kept_is_learned_from_in_its_order(path: Path, tmp_path: Path) -> None:
    game = game_of("tictactoe")
    for place in (path, tmp_path / "other.db"):
        graph, player = PositionGraph(game), learner(place, epsilon=0.5)
        ended = [one_match([player, Opponent(GREEDY)], graph, number).finished(number) for number in range(6)]
        for number, finished in enumerate(ended):
            player.keep(0, finished, str(number))
        if place == path:
            player.num_matches(PositionGraph(game), 0)  # another graph alone takes nothing out
            assert only(path).num_matches == 0
            learner(path, epsilon=0.5).num_matches(PositionGraph(game), 0)
        else:
            for finished in ended:
                player.end(0, finished)
    assert everything(path) == everything(tmp_path / "other.db")
    assert only(path).num_matches == 6


@pytest.mark.parametrize("more", [0, 4])
def test_study_learns_first_from_what_a_player_kept(path: Path, tmp_path: Path, more: int) -> None:
    game = game_of("tictactoe")
    graph, killed = PositionGraph(game), learner(path)
    played(killed, graph, 5)
    killed.keep(0, one_match([killed, Opponent(GREEDY)], graph, 5).finished(5), "kept")
    played(learner(tmp_path / "whole.db"), PositionGraph(game), 6 + more)
    with KnowledgeStore(path) as knowledge:
        assert study(knowledge, game, "xplayer", LearnerSettings(), GREEDY, 6 + more).num_matches == 6 + more
        assert only(path).features_at == 6 + more
    assert everything(path) == everything(tmp_path / "whole.db")


def test_between_keep_and_end_the_graph_may_be_another(path: Path, tmp_path: Path) -> None:
    game = game_of("tictactoe")
    played(learner(tmp_path / "one.db"), PositionGraph(game), 10)
    player = learner(path)
    for number in range(10):
        graph = PositionGraph(game)
        finished = one_match([player, Opponent(GREEDY)], graph, number).finished(number)
        player.keep(0, finished, str(number))
        if number % 2:
            player.num_matches(PositionGraph(game), 0)
        player.end(0, finished)
    assert everything(path) == everything(tmp_path / "one.db")


def test_a_match_that_was_cut_off_is_kept_as_such(path: Path) -> None:
    graph, player = PositionGraph(game_of(SIDES)), learner(path)
    match = one_match([player], graph, 0, max_plies=7)
    assert match.end == "cap"
    player.keep(0, match.finished(), "m")
    assert learner(path).num_matches(graph, 0) == 1
    with KnowledgeStore(path) as knowledge:
        assert knowledge.matches(only(path)) == [(0.0, 7)]


def test_a_trajectory_that_cannot_be_played_is_left_out_and_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    played(learner(path), graph, 1)
    with KnowledgeStore(path) as knowledge:
        stored = only(path)
        with pytest.raises(KnowledgeError, match="expected the id of a match in UTF-8, without control characters"):
            knowledge.keep_match(stored, "bad\nname", [("(mark 9 9)", "noop")], "terminal")
        knowledge.keep_match(stored, "bad", [("(mark 9 9)", "noop")], "terminal")
        knowledge.keep_match(stored, "short", [("(mark 1 1)", "noop")], "terminal")
    assert learner(path).num_matches(graph, 0) == 1
    assert [line.partition(":")[0] for line in caplog.messages] == [
        "match 'bad' is left out and learner 1 does not learn from it",
        "match 'short' is left out and learner 1 does not learn from it",
    ]
    assert everything(path)[0][-1] == []


PLAY = """
import sys
from test_session_players import *
player, graph, number = learner(Path(sys.argv[1])), PositionGraph(game_of("tictactoe")), 0
seats = [player, Opponent(GREEDY)]
while True:
    number = player.num_matches(graph, 0)
    finished = one_match(seats, graph, number).finished(number)
    player.keep(0, finished, f"match {number}")
    print(number, flush=True)
    player.end(0, finished)
"""


def test_a_killed_process_loses_no_match_that_it_told_of(path: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PLAY, str(path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(40)]
    os.kill(process.pid, signal.SIGKILL)
    told += [int(line) for line in process.communicate()[0].splitlines()]
    graph = PositionGraph(game_of("tictactoe"))
    kept = learner(path).num_matches(graph, 0)
    assert kept in (len(told), len(told) + 1)  # the last may be on disk and not told of
    played(learner(tmp_path / "whole.db"), graph, kept)
    assert everything(path) == everything(tmp_path / "whole.db")


# two at once


def test_of_two_on_one_learner_the_second_is_told_and_nothing_is_spoilt(path: Path, tmp_path: Path) -> None:
    game = game_of("tictactoe")
    one, other = learner(path, epsilon=0.5), learner(path, epsilon=0.5)
    graphs = PositionGraph(game), PositionGraph(game)
    ended = [
        one_match([player, Opponent(GREEDY)], graph, number).finished()
        for number, (player, graph) in enumerate(zip((one, other), graphs, strict=True))
    ]
    one.end(0, ended[0])
    with pytest.raises(
        KnowledgeError, match="expected learner 1 after 0 matches, got 1, because another process continues"
    ):
        other.end(0, ended[1])
    with KnowledgeStore(path) as knowledge:
        assert len(knowledge.matches(only(path))) == 1
    other.end(0, ended[1])  # it has read again what there is now
    alone = learner(tmp_path / "alone.db", epsilon=0.5)
    for finished in ended:
        alone.end(0, finished)
    assert everything(path) == everything(tmp_path / "alone.db")


def test_what_another_process_learned_from_is_not_learned_from_again(path: Path) -> None:
    graph, one = PositionGraph(game_of("tictactoe")), learner(path)
    finished = one_match([one, Opponent(GREEDY)], graph, 0).finished()
    one.keep(0, finished, "m")
    assert learner(path).num_matches(graph, 0) == 1
    with pytest.raises(KnowledgeError, match="another process"):
        one.end(0, finished)
    one.end(0, finished)
    assert one.num_matches(graph, 0) == only(path).num_matches == 1
    second = one_match([one, Opponent(GREEDY)], graph, 1).finished()
    learner(path).end(0, second)
    one.keep(0, second, "n")
    with pytest.raises(KnowledgeError, match="expected learner 1 after 1 matches, got 2"):
        one.end(0, second)
    one.end(0, second)  # it has read again what there is now
    assert one.num_matches(graph, 0) == only(path).num_matches == 3


def test_a_number_that_comes_again_is_that_of_another_match(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    first, second = learner(path), learner(path)
    one = one_match([first, Opponent(GREEDY)], graph, 0).finished()
    other = one_match([first, Opponent(OpponentSettings("random"))], graph, 0).finished()
    assert not np.array_equal(one.choices, other.choices)
    first.keep(0, one, "one")
    with monkeypatch.context() as patched:
        patched.setattr(Learner, "end", out_of_memory)
        assert second.num_matches(graph, 0) == 0  # the match of the first is left out
    second.keep(0, other, "other")
    with pytest.raises(KnowledgeError, match="expected trajectory 0 of learner 1, got none"):
        first.end(0, one)
    assert first.num_matches(graph, 0) == 1  # it reads the learner again, and learns from the other match
    first.end(0, one)
    with KnowledgeStore(path) as knowledge:
        (stored,) = knowledge.learners()
        assert (stored.num_matches, knowledge.trajectories(stored)) == (1, [])
        assert knowledge.keep_match(stored, "other", [], "stuck") is None
        assert knowledge.keep_match(stored, "one", [], "stuck") is not None


def test_players_of_one_store_and_other_learners_do_not_meet(path: Path) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    players = [learner(path, seed=1), learner(path, seed=2), learner(path, opponent="alice", seed=1)]
    for _ in range(5):
        for player in players:
            played(player, graph, 1, seed=player.seed)
    assert [one[5] for one in everything(path)] == [5, 5, 5]


# quota, learn=no


def test_over_the_quota_nothing_is_stored_and_that_is_said_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    played(learner(path), graph, 3)
    with KnowledgeStore(path) as knowledge:
        quota = knowledge.size
    before = everything(path)
    player = learner(path, quota=quota)
    played(player, graph, 4)
    played(player, PositionGraph(game_of("connect3")), 2)
    assert everything(path) == before
    assert player.num_matches(graph, 0) == 7
    (message,) = caplog.messages
    assert message.endswith(f"knowledge.db: the quota of {quota} bytes is used up; the learner does not learn any more")
    played(learner(path, quota=10 * quota), graph, 1)
    assert only(path).num_matches == 4


def test_what_is_kept_when_the_quota_is_used_up_is_learned_from_later(path: Path) -> None:
    graph, player = PositionGraph(game_of("tictactoe")), learner(path)
    finished = one_match([player, Opponent(GREEDY)], graph, 0).finished()
    assert player.keep(0, finished, "m")
    player.quota = 1
    assert not player.keep(0, finished, "another")
    player.end(0, finished)
    assert (player.num_matches(graph, 0), only(path).num_matches) == (1, 0)
    assert learner(path, quota=1).num_matches(graph, 0) == 0
    assert learner(path).num_matches(graph, 0) == only(path).num_matches == 1


def test_without_learning_nothing_at_all_is_written(path: Path) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    writer = learner(path)
    played(writer, graph, 20)
    finished = one_match([writer, Opponent(GREEDY)], graph, 20).finished()
    writer.keep(0, finished, "kept and not learned from")
    writer.close()
    before, files = path.read_bytes(), sorted(path.parent.iterdir())
    reader = learner(path, learn=False)
    played(reader, graph, 5)
    played(reader, PositionGraph(game_of("connect3")), 2)
    assert (reader.num_matches(graph, 0), reader.num_matches(graph, 1)) == (25, 0)
    for source in (None, "tictactoe"):  # what that taught is worked out, as it is not in the store
        transfer = learner(path, "transfer", learn=False, source=source)
        played(transfer, PositionGraph(game_of("connect3")), 2)
        transfer.close()
    reader.close()
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == files


def test_without_learning_an_older_store_stays_of_its_format(path: Path) -> None:
    graph, writer = PositionGraph(game_of("tictactoe")), learner(path)
    played(writer, graph, 5)
    writer.close()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("trajectory", "reply", *LESSON_TABLES):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DROP INDEX match_id")
        connection.execute("ALTER TABLE match DROP COLUMN id")
        connection.execute("PRAGMA user_version = 2")
    before, reader = path.read_bytes(), learner(path, learn=False)
    played(reader, graph, 2)
    assert reader.num_matches(graph, 0) == 7
    reader.close()
    assert path.read_bytes() == before


def test_without_learning_it_plays_by_what_it_knows_and_does_not_explore(path: Path) -> None:
    game = game_of("tictactoe")
    graph = PositionGraph(game)
    played(learner(path, epsilon=1.0), graph, 30)
    reader = learner(path, epsilon=1.0, learn=False)
    match = MatchState(graph)
    known = Learner(graph, 0, [LearnerSettings(epsilon=0.0)])
    with KnowledgeStore(path) as knowledge:
        known.load(0, knowledge.afterstates(only(path)))
    for number in range(20):
        turn = match.turn(0, stream(number))
        assert reader.choose(turn) == known.choose(turn)


def test_without_exploring_initial_values_are_those_of_a_learner_that_explores(path: Path) -> None:
    """An oracle's initial values count with its random moves. All moves that it never made have such values."""
    game, own = game_of("tictactoe"), {"epsilon": 0.3, "initialisation": "eager"}
    graph = PositionGraph(game)
    played(learner(path, "oracle", "random", **own), graph, 30)
    with KnowledgeStore(path) as knowledge:
        exploring = Learner(graph, 0, [LearnerSettings("oracle", **own)], opponents=[OpponentSettings("random")])  # type: ignore[arg-type]
        exploring.load(0, knowledge.afterstates(only(path)))
        greedy = StoredValuePlayer(knowledge, only(path), game).on(graph)
    rows = np.array([graph.start], np.int32)
    graph.list_moves(rows)
    values = exploring.estimates(0, rows)[1]
    assert np.array_equal(greedy.estimates(0, rows)[1], values)
    best = set(np.flatnonzero(values == values.max()).tolist())
    match = MatchState(graph)
    assert {int(greedy.choose(match.turn(0, stream(number)))[0]) for number in range(20)} <= best


def test_a_transfer_learner_that_began_without_sources_plays_on(path: Path) -> None:
    game = game_of("tictactoe")
    graph = PositionGraph(game)
    played(learner(path, "transfer"), graph, 10)
    played(learner(path.with_name("baseline.db")), graph, 10)
    rows = np.array([graph.start], np.int32)
    told = []
    for file in (path, path.with_name("baseline.db")):
        with KnowledgeStore(file) as knowledge:
            told.append(StoredValuePlayer(knowledge, only(file), game).on(graph).estimates(0, rows)[1].tolist())
    assert told[0] == told[1]
    again = gamelore.learn("tictactoe", "transfer", opponent=AGAINST, store=path, matches=12)
    assert len(again.rewards) == 12


def test_without_learning_and_without_a_store_it_plays(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    played(learner(path, "transfer", learn=False), PositionGraph(game_of("tictactoe")), 2)
    assert list(path.parent.iterdir()) == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "this file does not exist and will not be created" in caplog.text


# transfer without a source


def test_transfer_without_sources_begins_as_baseline_and_the_next_game_begins_with_it(
    path: Path, tmp_path: Path
) -> None:
    graphs = PositionGraph(game_of("tictactoe")), PositionGraph(game_of("connect3"))
    played(learner(path, "transfer"), graphs[0], 15)
    played(learner(tmp_path / "baseline.db"), graphs[0], 25)
    played(learner(path, "transfer"), graphs[1], 5)
    played(learner(path, "transfer"), graphs[0], 10)  # goes on as it began, although there is a source now
    first, second = everything(path)
    assert first[6:] == everything(tmp_path / "baseline.db")[0][6:]
    assert (first[3]["kind"], first[3]["sources"]["games"]) == ("transfer", [])  # type: ignore[index]
    assert second[3]["sources"] == {"games": ["tictactoe"], "opponent": None, "role": None, "rule": "visits"}  # type: ignore[index]
    with KnowledgeStore(path) as knowledge:
        stored = knowledge.learners()
        assert knowledge.inherited(stored[0]) is None
        assert [(one["game"], one["num_matches"]) for one in stored[1].sources] == [("tictactoe", 15)]
        assert second[8]
        study(
            knowledge,
            game_of("connect3"),
            "red",
            LearnerSettings("transfer"),
            GREEDY,
            8,
            sources=Sources(("tictactoe",)),
        )
    assert [one[5] for one in everything(path)] == [25, 8]


@pytest.mark.parametrize("control", [None, "minimax"])
def test_transfer_with_turns_begins_as_baseline_without_sources(path: Path, tmp_path: Path, control: str) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    played(learner(path, "transfer", turns=2, control=control), graph, 5)
    played(learner(tmp_path / "baseline.db"), graph, 5)
    assert everything(path)[0][6:] == everything(tmp_path / "baseline.db")[0][6:]


def test_sources_without_replies_are_left_out_with_turns_unless_they_were_named(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Players of single matches do not count replies; `study` does."""
    graph = PositionGraph(game_of("connect3"))
    played(learner(path), PositionGraph(game_of("tictactoe")), 40)
    played(learner(path, "transfer", turns=1), graph, 2)
    assert "tictactoe is left out as a source: expected the replies of its opponents, got none; learn" in caplog.text
    with pytest.raises(KnowledgeError, match=r"got none in .* with `gamelore learn`, which counts replies"):
        learner(path, "transfer", turns=1, source="tictactoe", seed=1).num_matches(graph, 0)
    played(learner(path, "transfer", turns=1, control="minimax"), graph, 2)
    with KnowledgeStore(path) as knowledge:
        study(knowledge, game_of("tictactoe"), "xplayer", LearnerSettings(), GREEDY, 80)
    played(learner(path, "transfer", turns=1, seed=2), graph, 2)
    with KnowledgeStore(path) as knowledge:
        assert [[source["game"] for source in one.sources] for one in knowledge.learners(source="connect3")] == [
            [], ["tictactoe"], ["tictactoe"],
        ]  # fmt: skip


def test_sources_are_those_against_this_opponent_or_else_against_any(path: Path) -> None:
    target, weak = game_of("connect3"), OpponentSettings("weak")
    with KnowledgeStore(path) as knowledge:
        study(knowledge, game_of(PENNIES_TWICE), "red", LearnerSettings(), weak, 3)
        assert other_games(knowledge, target, AGAINST, 2) == Sources(("unnamed",), ANYONE)
        assert other_games(knowledge, target, opponent_text(weak), 2) == Sources(("unnamed",))
        study(knowledge, game_of("tictactoe"), "xplayer", LearnerSettings(), GREEDY, 30)
        study(knowledge, target, "red", LearnerSettings(), GREEDY, 3)
        assert other_games(knowledge, target, AGAINST, 2) == Sources(("tictactoe",))
        assert other_games(knowledge, target, AGAINST, 3) is None
        study(knowledge, game_of(SIDES), "walker", LearnerSettings(), weak, 1)
        hashes = tuple(game_of(text).rules_hash for text in (PENNIES_TWICE, SIDES))
        assert other_games(knowledge, target, opponent_text(weak), 2) == Sources(hashes)
    player = learner(path, "transfer", opponent="alice")
    played(player, PositionGraph(target), 1)
    with KnowledgeStore(path) as knowledge:
        (stored,) = knowledge.learners(opponent="alice")
        assert stored.settings["sources"]["opponent"] == ANYONE
        assert {one["game"] for one in stored.sources} == {"tictactoe", "unnamed"}


def test_sources_that_teach_nothing_are_as_none_unless_they_were_named(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        study(knowledge, game_of(SIDES), "walker", LearnerSettings(), GREEDY, 1, seed=1)  # cut off: no feature
    graph = PositionGraph(game_of("tictactoe"))
    with pytest.raises(KnowledgeError, match="expected feature values from unnamed, got none"):
        learner(path, "transfer", source="unnamed").num_matches(graph, 0)
    with pytest.raises(KnowledgeError, match=r"expected knowledge of chess against egreedy.* got none"):
        learner(path, "transfer", source="unnamed+chess").num_matches(graph, 0)
    played(learner(path, "transfer"), graph, 2)
    assert everything(path)[1][3]["sources"]["games"] == []  # type: ignore[index]
    learner(path, opponent="alice").num_matches(graph, 1)  # and no match so far
    with pytest.raises(
        KnowledgeError,
        match=r"expected knowledge of tictactoe against alice, .* \(opponents "
        r"there: egreedy",
    ):
        learner(path, "transfer", source="tictactoe", source_opponent="alice").num_matches(
            PositionGraph(game_of(SIDES)), 0
        )


@pytest.mark.parametrize("trouble", ["rules that cannot be read", "memory", "time"])
def test_what_cannot_be_looked_into_is_left_out_as_a_source_unless_it_was_named(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    taught_by_tictactoe(path)
    played(learner(path), PositionGraph(game_of(PENNIES_TWICE)), 3)  # what that taught is not worked out yet
    if trouble == "rules that cannot be read":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE game SET rules = '(role' WHERE name = 'unnamed'")
    elif trouble == "memory":
        monkeypatch.setattr(series, "learned_features", out_of_memory)
    else:
        monkeypatch.setattr(session, "SOURCE_SECONDS", 0.0)
    graph = PositionGraph(game_of("connect3"))
    if trouble != "time":
        with pytest.raises((GameloreError, MemoryError)):
            learner(path, "transfer", source="tictactoe+unnamed").num_matches(graph, 0)
    played(learner(path, "transfer"), graph, 2)
    with KnowledgeStore(path) as knowledge:
        stored = knowledge.learners()[-1]
        assert [one["game"] for one in stored.sources] == ["tictactoe"]
        assert knowledge.inherited(stored) == knowledge.feature_values(knowledge.learners()[0])
    assert [line.partition(":")[0] for line in caplog.messages] == ["unnamed is left out as a source"]


def test_what_is_looked_into_against_a_clock_is_the_same(path: Path) -> None:
    played(learner(path), PositionGraph(game_of("tictactoe")), 40)
    with KnowledgeStore(path) as knowledge:
        how = Sources(("tictactoe",)), AGAINST, 2
        (one,), values = taught(knowledge, *how, keep=False, seconds=1000.0)
        assert one.features_at == 0
        assert values == taught(knowledge, *how)[1] != {}


def out_of_memory(*_: object) -> None:
    raise MemoryError


def test_a_match_that_takes_too_much_memory_costs_itself_only(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    graph, player = PositionGraph(game_of("tictactoe")), learner(path)
    played(player, graph, 3)
    finished = one_match([player, Opponent(GREEDY)], graph, 3).finished()
    player.keep(0, finished, "large")
    with monkeypatch.context() as patched:
        patched.setattr(Learner, "end", out_of_memory)
        with pytest.raises(MemoryError):
            player.end(0, finished)  # so its process dies
        assert learner(path).num_matches(graph, 0) == 3
    assert caplog.messages == [
        "match 'large' is left out and learner 1 does not learn from it: there is not enough memory"
    ]
    played(learner(path), graph, 2)
    played(learner(tmp_path / "whole.db"), graph, 5)
    assert everything(path) == everything(tmp_path / "whole.db")


def test_a_start_that_fails_leaves_no_learner(path: Path) -> None:
    graph, oracle = PositionGraph(game_of("tictactoe")), learner(path, "oracle", symmetry="all")
    with pytest.raises(GameloreError, match='filler=random for an oracle with symmetry "all"'):
        oracle.begin(0, MatchState(graph).started())
    assert everything(path) == []


def test_a_match_that_takes_too_much_memory_to_replay_is_left_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, player = PositionGraph(game_of("tictactoe")), learner(path)
    player.keep(0, one_match([player, Opponent(GREEDY)], graph, 0).finished(), "large")
    with monkeypatch.context() as patched:
        patched.setattr(session, "replayed", out_of_memory)
        assert learner(path).num_matches(graph, 0) == 0
    assert [trajectories for *_, trajectories in everything(path)] == [[]]


def test_nothing_stays_of_a_match_that_was_learned_only_in_part(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, player, whole = PositionGraph(game_of("tictactoe")), learner(path), learner(tmp_path / "whole.db")
    for each in (player, whole):
        played(each, graph, 3)
    large = one_match([player, Opponent(OpponentSettings("random"))], graph, 3).finished()
    small = one_match([player, Opponent(GREEDY)], graph, 3).finished()
    player.keep(0, large, "large")
    for each in (player, whole):
        each.keep(0, small, "small")
    own_end, errors = Learner.end, [MemoryError()]

    def end(self: Learner, role: int, finished: Finished) -> None:
        own_end(self, role, finished)
        if errors:
            raise errors.pop()

    with monkeypatch.context() as patched:
        patched.setattr(Learner, "end", end)
        assert learner(path).num_matches(graph, 0) == 4
    whole.end(0, small)
    played(learner(path), graph, 20)
    played(whole, graph, 20)
    assert everything(path) == everything(tmp_path / "whole.db")


@pytest.mark.parametrize("control", ["terminal", "shuffled", "features"])
def test_controls_of_transfer(path: Path, control: str) -> None:
    taught_by_tictactoe(path)
    played(learner(path, "transfer", control=control, initialisation="eager"), PositionGraph(game_of("connect3")), 3)
    found = everything(path)[1]
    assert (found[3]["control"], found[5]) == (control, 3)  # type: ignore[index]
    assert ("sources" in found[3], bool(found[8])) == ((control != "terminal"),) * 2  # type: ignore[operator]


# searching


def turn_of(graph: PositionGraph, role: int = 0, seed: int = 0, deadline: float | None = None) -> Turn:
    return replace(MatchState(graph).turn(role, stream(seed)), deadline=deadline)


def test_what_was_learned_and_what_was_searched_are_pooled() -> None:
    q, visits = np.array([90.0, 40.0, 70.0, 60.0]), np.array([3, 0, 5, 0], np.int32)
    means, tries = np.array([50.0, 80.0, np.nan, np.nan]), np.array([1, 10, 0, 0], np.int32)
    assert pooled(q, visits, means, tries).tolist() == [80.0, 80.0, 70.0, 60.0]


def found_out(graph: PositionGraph, visits: list[int], means: list[float]) -> Searched:
    """What a search of the start position says about the first role's moves."""
    counts = graph.num_moves[graph.start]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rest = int(offsets[-1]) - len(visits)
    return Searched(offsets, np.array(visits + [0] * rest, np.int32), np.array(means + [np.nan] * rest))


@pytest.mark.parametrize(("visits", "means", "expected"), [([1] * 9, [50.0] * 8 + [100.0], 8), ([0] * 9, [0.0] * 9, 4)])
def test_the_best_of_the_pool_is_chosen(
    monkeypatch: pytest.MonkeyPatch, visits: list[int], means: list[float], expected: int
) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    known = Learner(graph, 0, [LearnerSettings(epsilon=0.0)])
    turn = turn_of(graph)
    _, q, counts = known.estimates(0, turn.rows)
    assert (q.tolist(), counts.tolist()) == ([50.0] * 9, [0] * 9)
    known.table.load(0, graph.successors[graph.succ_start[graph.start] :][4:5], [60.0], [7])
    monkeypatch.setattr(searching, "search", lambda *_: found_out(graph, visits, means))
    assert search_on(known, turn, known.choose(turn), 1.0).tolist() == [expected]


def test_estimates_are_what_choosing_goes_by(path: Path) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    for settings in (
        LearnerSettings("lookahead", initialisation="eager", symmetry="all", ties="first", epsilon=0.0),
        LearnerSettings(epsilon=0.0, ties="first"),
    ):
        known = Learner(graph, 0, [settings])
        run_lockstep(graph, [known, Opponent(GREEDY)], [stream(1)], 20)
        rows = np.array([graph.start], np.int32)
        for _ in range(4):
            rows = graph.children(rows)[::3].copy()
        graph.list_moves(rows)
        keys = extend(stream(2), np.arange(len(rows)))
        turn = Turn(graph, 0, np.zeros(len(rows), np.int64), rows, keys, np.zeros(len(rows), np.int32))
        offsets, q, visits = known.estimates(0, rows)
        assert bool(np.any(q[visits == 0] != 50.0)) == (settings.initialisation == "eager")
        best = [int(q[begin:end].argmax()) for begin, end in pairwise(offsets.tolist())]
        assert known.choose(turn).tolist() == best


def test_where_it_explores_it_does_not_search(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    monkeypatch.delattr(searching, "search")
    player, alike = learner(path, search=5.0, epsilon=1.0), learner(path, epsilon=1.0)
    for seed in range(5):
        assert player.choose(turn_of(graph, seed=seed)) == alike.choose(turn_of(graph, seed=seed))
    assert player.choose(turn_of(graph, role=1)).tolist() == [0]


def test_each_lane_has_a_search_of_its_own_unless_it_explores(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    known, keys = Learner(graph, 0, [LearnerSettings(epsilon=0.5)]), extend(stream(4), np.arange(8))
    explores = uniform(keys, np.zeros(8, np.int32), EXPLORE) < 0.5
    assert 2 < explores.sum() < 6
    lanes, rows = np.zeros(8, np.int64), np.full(8, graph.start, np.int32)
    turn = Turn(graph, 0, lanes, rows, keys, np.zeros(8, np.int32))

    def search(_: object, states: NDArray[np.uint64], *others: object) -> Searched:
        """Of tree i, one role after the other: the first role's move 2 + i is the best one."""
        means = [[100.0 * (move == 2 + tree) for move in range(9)] + [50.0] for tree in range(len(states))]
        offsets = np.concatenate([[0], np.cumsum([9, 1] * len(states))])
        return Searched(offsets, np.ones(10 * len(states), np.int32), np.array(means).ravel())

    graph.list_moves(rows)
    monkeypatch.setattr(searching, "search", search)
    chosen = known.choose(turn)
    expected = chosen.copy()
    expected[~explores] = 2 + np.arange((~explores).sum())
    assert search_on(known, turn, chosen, 1.0).tolist() == expected.tolist()


def test_the_search_has_its_seconds_and_the_deadline(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    graph, asked = PositionGraph(game_of("tictactoe")), []

    def search(
        game: object, states: object, keys: object, settings: SearchSettings, deadline: float | None
    ) -> Searched:
        asked.append((settings.seconds, deadline))
        return found_out(graph, [1] * 9, [0.0] * 8 + [100.0])

    monkeypatch.setattr(searching, "search", search)
    player = learner(path, search=2.5, epsilon=0.0)
    assert player.choose(turn_of(graph, deadline=17.0)).tolist() == [8]
    assert asked == [(2.5, 17.0)]
    assert learner(path, epsilon=0.0).choose(turn_of(graph, deadline=17.0)).tolist() != []
    assert len(asked) == 1


def test_a_deadline_that_is_near_or_past_is_kept(path: Path) -> None:
    graph, player = PositionGraph(game_of("connectfour")), learner(path, search=1000.0, epsilon=0.0)
    player.begin(0, MatchState(graph).started())
    alike = learner(path, epsilon=0.0)
    late = turn_of(graph, deadline=monotonic() - 1)
    assert player.choose(late) == alike.choose(late)
    begin = monotonic()
    player.choose(turn_of(graph, deadline=begin + 0.2))
    assert monotonic() - begin < 20  # and not 1000


def test_a_search_sees_a_win_that_nothing_was_learned_of(path: Path) -> None:
    graph = PositionGraph(game_of("tictactoe"))
    match = MatchState(graph)
    for move in ["(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 2 2)"]:
        mover = next(role for role in (0, 1) if len(match.legal(role)) > 1)
        match.submit(mover, move)
        match.submit(1 - mover, "noop")
    player = learner(path, search=0.2, epsilon=0.0)
    turn = match.turn(0, stream(1))
    assert match.legal(0)[int(player.choose(turn)[0])] == "(mark 1 3)"


# words


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("unknown", "unknown"),
        ("", UNKNOWN),
        (" alice ", "alice"),
        ("random", "random"),
        ("egreedy", "egreedy:filler=random,epsilon=0.01"),
        ("egreedy:filler=first+epsilon=0.1", AGAINST),
        ("egreedy:epsilon=0.1,filler=first", AGAINST),
        ("uct:simulations=10", "uct:simulations=10"),
    ],
)
def test_opponents_are_written_out(text: str, full: str) -> None:
    assert full_opponent(text) == full


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opponent": "egreedy:fill=first"}, "got 'fill'; did you mean filler"),
        ({"search": -1.0}, "expected a search time of at least 0 seconds, got -1.0"),
        ({"quota": -1}, "expected a quota of at least 0 bytes, got -1"),
        ({"search": float("nan")}, "expected a search time of at least 0 seconds, got nan"),
        ({"alpha": 2.0}, "expected alpha from 0 to 1"),
        ({"control": "terminal"}, "only for the transfer learner"),
        ({"source_opponent": "weak"}, "expected a source together with source_opponent=weak, got none"),
        ({"source": "tictactoe"}, "expected sources only for the transfer learner, got sources for baseline"),
    ],
)
def test_what_is_wrong_is_named(path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(GameloreError) as caught:
        learner(path, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert not path.exists()


def test_a_closed_learner_goes_on(path: Path, tmp_path: Path) -> None:
    graph, player = PositionGraph(game_of("tictactoe")), learner(path)
    played(learner(tmp_path / "other.db"), graph, 6)
    played(player, graph, 3)
    finished = one_match([player, Opponent(GREEDY)], graph, 3).finished()
    player.keep(0, finished, "m")
    player.close()
    player.close()
    player.end(0, finished)
    played(player, graph, 2)
    assert everything(path) == everything(tmp_path / "other.db")


def test_several_matches_of_one_call_are_told_apart() -> None:
    ended: list[Finished] = []
    graph = PositionGraph(game_of(SIDES))
    seats = [Opponent(OpponentSettings("random"))]
    run_lockstep(graph, seats, [stream(1), stream(2)], 1, max_plies=4, on_end=ended.append)
    (both,) = ended
    for i, one in enumerate(each_match(both)):
        assert one.rows.tolist() == [both.rows[i].tolist()]
        assert (one.lanes.tolist(), one.plies.tolist(), one.ends.tolist()) == ([0], [4], [CAP])
