"""The compiled loop plays, learns and counts as the loop that asks each player in each round, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from gamelore import load
from gamelore.errors import GameloreError
from gamelore.game.game import EngineName
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.schema import Afterstate
from gamelore.learning.td import compiled_series, series
from gamelore.learning.td.compiled_series import CompiledSeries, Results
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.learner import Learner
from gamelore.learning.td.series import CAP_VARIABLE, Series, play_series
from gamelore.matches.lockstep import EXPAND_UP_TO, Lanes, run_lockstep
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.lookahead import MoveClasses
from gamelore.players.player import CAP, STUCK, TERMINAL, Finished, Player
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from learning.small_games import ASTRAY, COINS, SIDES, WAITING

REPLIES = {(1, 0, 0, 4, 0): 20, (0, 0, 2, 3, 3): 30, (0, 0, 2, 3, 2): 2, (0, 1, 1, 2, 1): 1}
VALUES = FeatureValues({"L": (39.0, 5), "{W}": (70.0, 5), "{n,W}": (68.0, 5), "L,{n,W}": (44.0, 5)}, replies=REPLIES)
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

# learners whose initial values are kept in the table
VALUED = [
    LearnerSettings("oracle", initialisation="eager"),
    LearnerSettings("oracle", initialisation="siblings", symmetry="all", control="optimal"),
    LearnerSettings("oracle"),
    LearnerSettings("transfer", initialisation="eager", turns=1),
    LearnerSettings("transfer", initialisation="eager", symmetry="all", turns=1, control="replies"),
    LearnerSettings("transfer", initialisation="siblings", turns=2, control="minimax"),
    LearnerSettings("transfer", turns=1),
]
VALUED_LANES = [(learner, OPPONENTS[number % len(OPPONENTS)]) for number, learner in enumerate(VALUED + VALUED[::2])]

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


# the roles take one to three of seven stones in turn; who takes the last one wins
STONES = """
(role red) (role blue)
(init (stones n7)) (init (turn red))
(after n7 one n6) (after n7 two n5) (after n7 three n4) (after n6 one n5) (after n6 two n4) (after n6 three n3)
(after n5 one n4) (after n5 two n3) (after n5 three n2) (after n4 one n3) (after n4 two n2) (after n4 three n1)
(after n3 one n2) (after n3 two n1) (after n3 three n0) (after n2 one n1) (after n2 two n0) (after n1 one n0)
(other red blue) (other blue red)
(<= (legal ?r ?n) (true (turn ?r)) (true (stones ?s)) (after ?s ?n ?t))
(<= (legal ?r noop) (true (turn ?o)) (other ?o ?r))
(<= (next (stones ?t)) (true (stones ?s)) (true (turn ?r)) (does ?r ?n) (after ?s ?n ?t))
(<= (next (turn ?r)) (true (turn ?o)) (other ?o ?r))
(<= terminal (true (stones n0)))
(<= (goal ?r 100) (true (stones n0)) (true (turn ?o)) (other ?o ?r))
(<= (goal ?r 0) (true (stones n0)) (true (turn ?r)))
"""


def seeds(lanes: int) -> list[tuple[int, int, str]]:
    return [(7, lane, "target") for lane in range(lanes)]


def values(lanes: list[tuple[LearnerSettings, OpponentSettings]]) -> list[FeatureValues | None]:
    return [VALUES if learner.needs_values else None for learner, _ in lanes]


def compiled(
    text: str, role: int, lanes: list[Any], num_matches: int, engine: EngineName = "auto", **options: Any
) -> Series:
    learners, opponents = zip(*lanes, strict=True)
    game = load(text, engine=engine)
    return play_series(game, role, learners, values(lanes), opponents, num_matches, seeds(len(lanes)), **options)


def asked(
    text: str,
    role: int,
    lanes: list[Any],
    num_matches: int,
    max_plies: int = 1000,
    engine: EngineName = "auto",
    *,
    replies: bool = False,
) -> tuple[Learner, Results]:
    """Play the same series in the loop that asks the players."""
    graph, (learners, opponents) = PositionGraph(load(text, engine=engine)), zip(*lanes, strict=True)
    learner = Learner(graph, role, learners, values(lanes), [seed[:2] for seed in seeds(len(lanes))], opponents)
    results = empty(len(lanes), num_matches)

    def note(finished: Finished) -> None:
        lanes, goals = finished.lanes, finished.goals[:, role]
        results.rewards[lanes, finished.matches] = np.maximum(goals, 0)
        results.lengths[lanes, finished.matches] = finished.plies
        results.num_stuck[lanes] += finished.ends == STUCK
        results.num_capped[lanes] += finished.ends == CAP
        results.num_missing[lanes] += (finished.ends == TERMINAL) & (goals < 0)
        if replies:
            learner.count(finished)

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
    assert played.num_stuck.tolist() == results.num_stuck.tolist()
    assert played.num_capped.tolist() == results.num_capped.tolist()
    assert played.num_missing.tolist() == results.num_missing.tolist()
    assert played.learner.table.size == learner.table.size == (learner.table.keys >= 0).sum()
    assert played.learner.replies == learner.replies
    for lane in range(len(results.num_stuck)):
        assert entries(played.learner, lane) == entries(learner, lane)


GAMES = [("tictactoe", 0, 20), ("tictactoe", 1, 20), ("connect3", 0, 10), ("capturego3", 1, 10), ("goofspiel", 1, 5)]


@pytest.mark.parametrize(("name", "role", "num_matches"), GAMES)
def test_both_loops_play_the_same_matches(name: str, role: int, num_matches: int) -> None:
    played = compiled(name, role, LANES, num_matches)
    assert_same(played, *asked(name, role, LANES, num_matches))
    assert played.learner.table.size > len(LANES) * num_matches


@pytest.mark.parametrize(("name", "role"), [("tictactoe", 0), ("tictactoe", 1), ("goofspiel", 0)])
def test_both_loops_play_the_same_matches_with_values_in_the_table(name: str, role: int) -> None:
    lanes = [*VALUED_LANES, *LANES[:4]]
    played = compiled(name, role, lanes, 60)
    assert_same(played, *asked(name, role, lanes, 60))
    assert len(played.learner.table.keys) > 1 << 12


def test_values_in_the_table_make_it_grow() -> None:
    """No match ends before the first table is full of initial values."""
    lanes = [(LearnerSettings("transfer", initialisation="eager", turns=1), OPPONENTS[1])] * 300
    played = compiled("connect3", 0, lanes, 1)
    assert_same(played, *asked("connect3", 0, lanes, 1))
    assert len(played.learner.table.keys) > 1 << 13


@pytest.mark.parametrize(("name", "role"), [("tictactoe", 0), ("goofspiel", 1), ("tictactoe3p", 2)])
def test_both_loops_count_the_same_replies(name: str, role: int) -> None:
    played = compiled(name, role, LANES[:5], 6, max_plies=8, replies=True)
    assert_same(played, *asked(name, role, LANES[:5], 6, max_plies=8, replies=True))
    assert all(sum(replies.values()) > 6 for replies in played.learner.replies)
    assert series.extract(played, 0).replies == played.learner.replies[0]


def test_replies_of_matches_longer_than_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_series, "MOST_PLIES", 30)
    opponent = OpponentSettings("weak", "first", epsilon=0.001)
    lanes = [(LearnerSettings(epsilon=0.3), opponent), (LearnerSettings(), opponent)]
    played = compiled(SIDES, 0, lanes, 3, max_plies=150, replies=True)
    assert_same(played, *asked(SIDES, 0, lanes, 3, max_plies=150, replies=True))
    assert played.lengths.max() == 150


@pytest.mark.parametrize(("name", "role"), [("othello4", 0), ("tictactoe3p", 2)])
def test_both_loops_play_the_same_matches_in_larger_games(name: str, role: int) -> None:
    """Other roles pass in one of these games, and there are two of them in the other. Matches are cut off."""
    lanes = [lane for lane in LANES if lane[0].kind != "lookahead" or lane[0].depth == 1]
    played = compiled(name, role, lanes, 4, max_plies=8)
    assert_same(played, *asked(name, role, lanes, 4, max_plies=8))
    assert played.num_capped.sum() > 0


@pytest.mark.parametrize("text", [COINS, ASTRAY])
def test_both_loops_play_the_same_matches_in_games_with_one_role(text: str) -> None:
    played = compiled(text, 0, LANES, 12, max_plies=10)
    assert_same(played, *asked(text, 0, LANES, 12, max_plies=10))
    ends = played.num_stuck.sum(), played.num_capped.sum(), played.num_missing.sum()
    assert [end > 0 for end in ends] == [text == ASTRAY, text == ASTRAY, True]


@pytest.mark.parametrize(
    ("text", "lanes", "num_matches"),
    [
        (STONES, LANES, 20),
        ("tictactoe", LANES[:2], 2),
        pytest.param("tictactoe", LANES, 5, marks=pytest.mark.long),
    ],
)
def test_both_loops_play_the_same_matches_on_the_reasoner(text: str, lanes: list[Any], num_matches: int) -> None:
    """Which takes milliseconds for a position: all learners in a small game, and at first two in a larger one."""
    played = compiled(text, 1, lanes, num_matches, "reasoner")
    assert_same(played, *asked(text, 1, lanes, num_matches, engine="reasoner"))
    assert played.learner.table.size > len(lanes)


def test_a_series_without_matches() -> None:
    played = compiled("tictactoe", 0, LANES[:3], 0)
    assert played.rewards.shape == played.lengths.shape == (3, 0)
    assert played.learner.table.size == 0
    assert played.learner.changes().afterstates == []


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
    played = compiled("connect3", 0, lanes, 25)
    assert_same(played, *asked("connect3", 0, lanes, 25))
    assert len(played.learner.table.keys) > 1 << 12


@pytest.mark.parametrize("most", [1, 7, 200])
def test_the_length_of_a_call_changes_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_series, "MOST_PLIES", most)
    monkeypatch.setattr(compiled_series, "_ROOM", 1)
    told: list[int] = []
    lanes = [*LANES[:9], *VALUED_LANES[2:6]]
    played = compiled("tictactoe", 1, lanes, 6, progress=told.append, replies=True)
    assert_same(played, *asked("tictactoe", 1, lanes, 6, replies=True))
    assert sum(told) == 6 * len(lanes)
    assert max(told) <= most


class Interrupted:
    """A series of 15 matches in 6 lanes, interrupted in one of many calls of a method."""

    def __init__(self) -> None:
        self.graph, self.lanes = PositionGraph(load("tictactoe")), LANES[4:8] + VALUED_LANES[3:5]
        learners, opponents = zip(*self.lanes, strict=True)
        self.learner = Learner(self.graph, 0, learners, values(self.lanes), [seed[:2] for seed in seeds(6)])
        self.running = Lanes(self.graph, [stream(*seed) for seed in seeds(6)], 15, 0, 1000)
        self.results, self.told = empty(6, 15), list[int]()
        self.series = CompiledSeries(self.learner, Opponent(opponents), self.running, self.results, replies=True)
        self.num_calls = 0

    def interrupt(self, holder: object, method: str, moment: int, *, is_done: bool) -> None:
        """Raise KeyboardInterrupt in a call of a method, before or after the method itself."""
        original = getattr(holder, method)

        def interrupted(*arguments: Any) -> None:
            self.num_calls += 1
            if self.num_calls == moment and not is_done:
                raise KeyboardInterrupt
            original(*arguments)
            if self.num_calls == moment:
                raise KeyboardInterrupt

        setattr(holder, method, interrupted)

    def play(self) -> None:
        """Play until the interruption, and then the remaining matches."""
        begin = perf_counter()
        with pytest.raises(KeyboardInterrupt):
            self.series.play(self.tell)
        assert sum(self.told) < 6 * 15
        self.series.play(self.tell)
        spent = self.learner.seconds_choosing, self.learner.seconds_learning
        assert 0 < sum(spent) + self.learner.initial.seconds < perf_counter() - begin
        self.series.play(self.tell)  # nothing is left to play, and nothing is counted twice
        assert spent == (self.learner.seconds_choosing, self.learner.seconds_learning)
        assert sum(self.told) == 6 * 15
        expected_learner, expected = asked("tictactoe", 0, self.lanes, 15, replies=True)
        assert [column.tolist() for column in self.results] == [column.tolist() for column in expected]
        assert all(entries(self.learner, lane) == entries(expected_learner, lane) for lane in range(6))
        assert self.learner.table.size == expected_learner.table.size
        assert self.learner.replies == expected_learner.replies

    def tell(self, ended: int) -> None:
        self.told.append(ended)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(
    ("part", "method", "moment"),
    [
        ("series", "_call", 3),
        ("series", "_call", 40),
        ("series", "compute_missing", 20),
        ("running", "refresh", 15),
        ("graph", "expand", 1),
        ("graph", "expand", 9),
        ("classes", "classify", 5),
        ("representatives", "meet", 4),
        ("initial", "look_into", 8),
        ("table", "load", 3),
        ("series", "_count_replies", 10),
    ],
)
def test_an_interrupted_series_goes_on(
    part: str, method: str, moment: int, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_series, "MOST_PLIES", 20)
    played = Interrupted()
    holders = {"classes": played.graph.memo(MoveClasses), **vars(played.learner), **vars(played)}
    played.interrupt(holders[part], method, moment, is_done=is_done)
    played.play()


@pytest.mark.parametrize("moment", [1, 5, 12])
def test_a_series_interrupted_by_its_caller_goes_on(moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_series, "MOST_PLIES", 50)
    played = Interrupted()
    played.interrupt(played, "tell", moment, is_done=True)
    played.play()


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


def test_compiled_calls_are_divided_as_the_timed_matches_and_only_once() -> None:
    played = Interrupted()
    played.series._timing.spent[:] = 1000, 300, 200
    played.series._seconds = 2.0
    for _ in range(2):
        played.series._divide_time()
        assert (played.learner.seconds_choosing, played.learner.seconds_learning) == pytest.approx((0.6, 0.4))


def test_sizes_that_do_not_fit_are_told() -> None:
    graph = PositionGraph(load("tictactoe"))
    learner, opponent = Learner(graph, 0, LEARNERS[:2]), Opponent(OPPONENTS[:2])
    two, three = (Lanes(graph, [stream(seed) for seed in range(lanes)], 5, 0, 1000) for lanes in (2, 3))
    CompiledSeries(learner, opponent, two, empty(2, 5))
    with pytest.raises(GameloreError, match="expected a learner and results for 3 lanes and 5 matches, got 2 settings"):
        CompiledSeries(learner, opponent, three, empty(3, 5))
    for results in (empty(2, 4), empty(1, 5), empty(2, 5)._replace(num_stuck=np.zeros(1, np.int64))):
        with pytest.raises(GameloreError, match="expected a learner and results for 2 lanes and 5 matches"):
            CompiledSeries(learner, opponent, two, results)
    with pytest.raises(GameloreError, match="for 2 lanes and 12 matches"):
        CompiledSeries(learner, opponent, Lanes(graph, [stream(1), stream(2)], 5, 7, 1000), empty(2, 5))
    with pytest.raises(GameloreError, match="expected settings for 3 lanes, got 2"):
        CompiledSeries(Learner(graph, 0, LEARNERS[:3]), opponent, three, empty(3, 5))


def test_a_series_changes_no_afterstates_one_by_one() -> None:
    assert compiled("tictactoe", 0, LANES[:1], 3).learner.changes().afterstates == []


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
