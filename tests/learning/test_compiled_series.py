"""The compiled loop plays, learns and counts as the loop that asks each player in each round, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gamelore import load
from gamelore.errors import GameloreError
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.schema import Afterstate
from gamelore.learning.td import compiled_series, series
from gamelore.learning.td.compiled_series import CompiledSeries, Results
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.learner import Learner
from gamelore.learning.td.series import CAP_VARIABLE, Series, play_series
from gamelore.matches.lockstep import EXPAND_UP_TO, Lanes, run_lockstep
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.player import CAP, STUCK, TERMINAL, Finished, Player
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from learning.small_games import SIDES, WAITING

VALUES = FeatureValues({"L": (39.0, 5), "{W}": (70.0, 5), "{n,W}": (68.0, 5), "L,{n,W}": (44.0, 5)})
LEARNERS = [
    LearnerSettings(),
    LearnerSettings(ties="first", epsilon=0.3),
    LearnerSettings(initialisation="siblings", symmetry="all", lam=0.4, gamma=0.9),
    LearnerSettings("transfer"),
    LearnerSettings("transfer", initialisation="siblings"),
    LearnerSettings("transfer", initialisation="eager", symmetry="all"),
    LearnerSettings("transfer", initialisation="eager", control="terminal"),
    LearnerSettings("lookahead", "avgmax", initialisation="siblings", symmetry="all"),
    LearnerSettings("lookahead", "maxmax", initialisation="eager"),
    LearnerSettings("lookahead", depth=1),
]
OPPONENTS = [
    OpponentSettings("egreedy"),
    OpponentSettings("random"),
    OpponentSettings("weak", "hashed", hash_key=5),
    OpponentSettings("egreedy", "first", epsilon=0.2),
]
LANES = [
    (learner, OPPONENTS[(shift + number) % len(OPPONENTS)])
    for shift in range(2)
    for number, learner in enumerate(LEARNERS)
]

# both roles choose one of 70 numbers at once; the higher number wins, and two equal numbers leave both without a move
NUMBERS = """
(role red) (role blue)
(init (round 1))
{digits}
(<= (legal ?r ?n) (role ?r) (true (round ?k)) (number ?n))
(<= (next (chose ?r ?n)) (does ?r ?n))
(<= (next equal) (does red ?n) (does blue ?n))
(<= (above ?r ?s) (true (chose ?r ?n)) (true (chose ?s ?m)) (less ?m ?n))
(<= (less ?m ?n) (succ ?m ?n))
(<= (less ?m ?n) (succ ?m ?k) (less ?k ?n))
(<= over (above ?r ?s))
(<= terminal over)
(<= (goal ?r 100) (role ?r) (above ?r ?s))
(<= (goal ?r 0) (role ?r) (above ?s ?r))
""".format(digits="\n".join([f"(number n{i})" for i in range(70)] + [f"(succ n{i} n{i + 1})" for i in range(69)]))


def seeds(lanes: int) -> list[tuple[int, int, str]]:
    return [(7, lane, "target") for lane in range(lanes)]


def values(lanes: list[tuple[LearnerSettings, OpponentSettings]]) -> list[FeatureValues | None]:
    return [VALUES if learner.needs_values else None for learner, _ in lanes]


def compiled(text: str, role: int, lanes: list[Any], num_matches: int, **options: Any) -> Series:
    learners, opponents = zip(*lanes, strict=True)
    return play_series(load(text), role, learners, values(lanes), opponents, num_matches, seeds(len(lanes)), **options)


def asked(text: str, role: int, lanes: list[Any], num_matches: int, max_plies: int = 1000) -> tuple[Learner, Results]:
    """Play the same series in the loop that asks the players."""
    graph, (learners, opponents) = PositionGraph(load(text)), zip(*lanes, strict=True)
    learner = Learner(graph, role, learners, values(lanes), [seed[:2] for seed in seeds(len(lanes))])
    results = empty(len(lanes), num_matches)

    def note(finished: Finished) -> None:
        lanes, goals = finished.lanes, finished.goals[:, role]
        results.rewards[lanes, finished.matches] = np.maximum(goals, 0)
        results.lengths[lanes, finished.matches] = finished.plies
        results.stuck[lanes] += finished.ends == STUCK
        results.capped[lanes] += finished.ends == CAP
        results.missing[lanes] += (finished.ends == TERMINAL) & (goals < 0)

    seats: list[Player] = [Opponent(opponents)] * graph.game.num_roles
    seats[role] = learner
    keys = [stream(*seed) for seed in seeds(len(lanes))]
    run_lockstep(graph, seats, keys, num_matches, max_plies=max_plies, on_end=note)
    return learner, results


def empty(lanes: int, num_matches: int) -> Results:
    counts = np.zeros((3, lanes), np.int64)
    return Results(np.zeros((lanes, num_matches), np.float32), np.zeros((lanes, num_matches), np.int16), *counts)


def entries(learner: Learner, lane: int) -> set[Afterstate]:
    return set(learner.afterstates(lane))


def assert_same(played: Series, learner: Learner, results: Results) -> None:
    assert played.rewards.tolist() == results.rewards.tolist()
    assert played.lengths.tolist() == results.lengths.tolist()
    assert played.num_stuck.tolist() == results.stuck.tolist()
    assert played.num_capped.tolist() == results.capped.tolist()
    assert played.num_missing.tolist() == results.missing.tolist()
    assert played.learner.table.size == learner.table.size == (learner.table.keys >= 0).sum()
    for lane in range(len(results.stuck)):
        assert entries(played.learner, lane) == entries(learner, lane)


GAMES = [("tictactoe", 0, 40), ("tictactoe", 1, 40), ("connect3", 0, 25), ("capturego3", 1, 20), ("goofspiel", 1, 10)]


@pytest.mark.parametrize(("name", "role", "num_matches"), GAMES)
def test_both_loops_play_the_same_matches(name: str, role: int, num_matches: int) -> None:
    played = compiled(name, role, LANES, num_matches)
    assert_same(played, *asked(name, role, LANES, num_matches))
    assert played.learner.table.size > len(LANES) * num_matches


@pytest.mark.parametrize(("name", "role"), [("othello4", 0), ("tictactoe3p", 2)])
def test_both_loops_play_the_same_matches_in_larger_games(name: str, role: int) -> None:
    """Other roles pass in one of these games, and there are two of them in the other. Matches are cut off."""
    lanes = [lane for lane in LANES if lane[0].kind != "lookahead"]
    played = compiled(name, role, lanes, 4, max_plies=8)
    assert_same(played, *asked(name, role, lanes, 4, max_plies=8))
    assert played.num_capped.sum() > 0


@pytest.mark.parametrize("lane", range(0, len(LANES), 3))
def test_one_lane_plays_the_same_matches(lane: int) -> None:
    assert_same(
        compiled("tictactoe", 0, LANES[lane : lane + 1], 80), *asked("tictactoe", 0, LANES[lane : lane + 1], 80)
    )


def test_positions_that_are_not_expanded_and_roles_without_a_move() -> None:
    graph = PositionGraph(load(NUMBERS))
    graph.list_moves([graph.start])
    assert graph.num_joint[graph.start] == 70 * 70 > EXPAND_UP_TO
    lanes = [(LearnerSettings(epsilon=0.2), OPPONENTS[1]), (LearnerSettings(initialisation="siblings"), OPPONENTS[0])]
    played = compiled(NUMBERS, 1, lanes, 150)
    assert_same(played, *asked(NUMBERS, 1, lanes, 150))
    assert played.num_stuck.sum() > 0


@pytest.mark.parametrize("text", [SIDES, WAITING])
def test_matches_longer_than_the_log(text: str) -> None:
    opponent = OpponentSettings("weak", "first", epsilon=0.001)
    lanes = [(LearnerSettings(epsilon=0.3), opponent), (LearnerSettings(initialisation="eager"), opponent)]
    played = compiled(text, 0, lanes, 3, max_plies=150)
    assert_same(played, *asked(text, 0, lanes, 3, max_plies=150))
    assert played.lengths.max() == 150


def test_the_table_grows() -> None:
    lanes = [LANES[0]] * 60
    played = compiled("connect3", 0, lanes, 40)
    assert_same(played, *asked("connect3", 0, lanes, 40))
    assert len(played.learner.table.keys) > 1 << 12


@pytest.mark.parametrize("most", [1, 7, 200])
def test_the_length_of_a_call_changes_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_series, "MOST_PLIES", most)
    monkeypatch.setattr(compiled_series, "_ROOM", 1)
    told: list[int] = []
    played = compiled("tictactoe", 1, LANES[:9], 6, progress=told.append)
    assert_same(played, *asked("tictactoe", 1, LANES[:9], 6))
    assert sum(told) == 6 * 9
    assert max(told) <= most


@pytest.mark.parametrize("moment", [1, 5, 12])
def test_an_interrupted_series_goes_on(moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_series, "MOST_PLIES", 50)
    graph, lanes = PositionGraph(load("tictactoe")), LANES[4:8]
    learners, opponents = zip(*lanes, strict=True)
    learner = Learner(graph, 0, learners, values(lanes), [seed[:2] for seed in seeds(4)])
    results, calls = empty(4, 15), list[int]()
    play = CompiledSeries(
        learner, Opponent(opponents), Lanes(graph, [stream(*seed) for seed in seeds(4)], 15, 0, 1000), results
    )

    def interrupt(ended: int) -> None:
        calls.append(ended)
        if len(calls) == moment:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play.play(interrupt)
    assert 0 < sum(calls) < 4 * 15
    play.play(calls.append)
    assert sum(calls) == 4 * 15
    expected_learner, expected = asked("tictactoe", 0, lanes, 15)
    assert [column.tolist() for column in results] == [column.tolist() for column in expected]
    assert all(entries(learner, lane) == entries(expected_learner, lane) for lane in range(4))


def test_a_series_ends_when_the_graph_grows_beyond_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(series, "check_estimate", lambda *_: None)
    monkeypatch.setenv(CAP_VARIABLE, "1")
    lanes = [(LearnerSettings("lookahead", initialisation="eager"), OPPONENTS[0])]
    with pytest.raises(GameloreError, match=r"at most 1 MiB, got [\d,]+ positions of connect3"):
        compiled("connect3", 0, lanes, 50, progress=told.append)
    assert 0 < sum(told) < 50


def test_a_full_graph_is_told() -> None:
    with pytest.raises(GameloreError, match="expected at most 50 positions of tictactoe, got more"):
        compiled("tictactoe", 0, LANES[:1], 5, graph=PositionGraph(load("tictactoe"), 50))


def test_the_parts_of_the_time_are_measured() -> None:
    played = compiled("tictactoe", 0, LANES[:1], 300)
    again = compiled("tictactoe", 0, LANES[:1], 300, graph=played.graph)
    for seconds in (played.seconds, again.seconds):
        assert min(seconds.playing, seconds.choosing, seconds.learning) > 0
        assert seconds.initialising == {}


def test_learned_values_are_kept_in_a_second_series() -> None:
    """A learner with entries from elsewhere starts from these in both loops."""
    graph, learner = PositionGraph(load("tictactoe")), replace(LEARNERS[2], epsilon=0.0)
    stored = compiled("tictactoe", 0, [(learner, OPPONENTS[0])], 20).learner.afterstates(0)
    first, second = (Learner(graph, 0, [learner]) for _ in range(2))
    first.load(0, stored)
    second.load(0, stored)
    keys, opponent = [stream(3)], Opponent(OPPONENTS[0])
    CompiledSeries(first, opponent, Lanes(graph, keys, 10, 0, 1000), empty(1, 10)).play(lambda _: None)
    run_lockstep(graph, [second, opponent], keys, 10)
    assert entries(first, 0) == entries(second, 0)
    assert entries(first, 0) != set(stored)
