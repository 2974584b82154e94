"""Series: what lanes owe each other (nothing), going on after a stop, learning, and what is taught afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gamelore import load
from gamelore.errors import GameloreError
from gamelore.learning.store.features import FeatureValues, combine
from gamelore.learning.store.schema import Afterstate
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.learning.td.learner import Learner
from gamelore.learning.td.series import Series, extract, play_series
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.player import Finished
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream

VALUES = FeatureValues({"L": (39.0, 5), "{W}": (70.0, 5), "{n,W}": (68.0, 5), "L,{n,W}": (44.0, 5)})
MIXED = [
    LearnerSettings(),
    LearnerSettings("transfer"),
    LearnerSettings("lookahead"),
    LearnerSettings("transfer", initialisation="siblings"),
    LearnerSettings("lookahead", "avgmax", initialisation="siblings"),
    LearnerSettings("transfer", initialisation="eager"),
    LearnerSettings("lookahead", "maxmax", initialisation="eager"),
    LearnerSettings("transfer", initialisation="eager", control="shuffled"),
    LearnerSettings("transfer", initialisation="eager", control="terminal"),
    LearnerSettings(ties="first", epsilon=0.3),
]
THREE = [OpponentSettings("egreedy", "first"), OpponentSettings("random"), OpponentSettings("weak", "hashed")]
AGAINST = [THREE[i % 3] for i in range(10)]
SEEDS = [(7, run, "target") for run in range(10)]


def values_of(learners: list[LearnerSettings]) -> list[FeatureValues | None]:
    return [VALUES if one.kind == "transfer" else None for one in learners]


def ten(game: str = "tictactoe", num_matches: int = 30, **others: Any) -> Series:
    return play_series(load(game), 0, MIXED, values_of(MIXED), AGAINST, num_matches, SEEDS, **others)


def one(lane: int, num_matches: int = 30, game: str = "tictactoe", **others: Any) -> Series:
    chosen = slice(lane, lane + 1)
    return play_series(
        load(game), 0, MIXED[chosen], values_of(MIXED)[chosen], AGAINST[chosen], num_matches, SEEDS[chosen], **others
    )


def all_known(series: Series, lane: int) -> set[Afterstate]:
    return set(series.learner.afterstates(lane))


@pytest.mark.parametrize("lane", range(10))
def test_a_run_is_the_same_alone_and_among_ten(lane: int, among: Series) -> None:
    alone = one(lane)
    assert alone.rewards[0].tolist() == among.rewards[lane].tolist()
    assert alone.lengths[0].tolist() == among.lengths[lane].tolist()
    assert all_known(alone, 0) == all_known(among, lane)
    assert dict(extract(alone, 0)) == dict(extract(among, lane))


@pytest.fixture(scope="module", name="among")
def _among() -> Series:
    return ten()


def test_a_watch_sees_all_lanes_advance_together_and_changes_nothing() -> None:
    seen: list[tuple[int, list[list[float]]]] = []

    def watch(done: int, rewards: NDArray[np.float32]) -> int:
        seen.append((done, rewards[:, :done].tolist()))
        return 0 if done < 2 else 2 * done  # a watch that asks for nothing gets one match

    plain, watched = ten(replies=True), ten(replies=True, watch=watch)
    assert [done for done, _ in seen] == [0, 1, 2, 4, 8, 16, 30]
    assert all(rewards == plain.rewards[:, :done].tolist() for done, rewards in seen)
    assert watched.lengths.tolist() == plain.lengths.tolist()
    assert watched.learner.replies == plain.learner.replies
    for lane in range(10):
        assert all_known(watched, lane) == all_known(plain, lane)


def test_compared_learners_meet_the_same_numbers() -> None:
    """A transfer learner that knows no value and no terminal position is a baseline learner, match by match."""
    learners = [
        LearnerSettings(epsilon=0.2),
        LearnerSettings("transfer", epsilon=0.2, control="features", initialisation="eager"),
        LearnerSettings("lookahead", depth=0, epsilon=0.2),
        LearnerSettings("transfer", epsilon=0.2, control="terminal"),
    ]
    against = [OpponentSettings("random")] * 4
    values = [None, FeatureValues({}), None, None]
    series = play_series(load("tictactoe"), 1, learners, values, against, 50, [(3, 4, "target")] * 4)
    assert series.rewards[0].tolist() == series.rewards[1].tolist()
    assert all_known(series, 0) == all_known(series, 1)
    assert series.rewards[2].tolist() == series.rewards[3].tolist()
    assert all_known(series, 2) == all_known(series, 3)
    assert all_known(series, 0) != all_known(series, 2)


def test_a_used_graph_changes_nothing() -> None:
    graph = PositionGraph(load("tictactoe"))
    play_series(graph.game, 1, [LearnerSettings("lookahead")], None, AGAINST[1:2], 20, [(9, 9, "x")], graph=graph)
    again = play_series(graph.game, 0, MIXED, values_of(MIXED), AGAINST, 10, SEEDS, graph=graph)
    assert again.rewards.tolist() == ten(num_matches=10).rewards.tolist()


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel"])
def test_both_engines_play_the_same_series(name: str) -> None:
    native, reasoner = (
        play_series(load(name, engine=engine), 0, MIXED[:6], values_of(MIXED)[:6], AGAINST[:6], 4, SEEDS[:6])
        for engine in ("native", "reasoner")
    )
    assert native.rewards.tolist() == reasoner.rewards.tolist()
    for lane in range(6):
        assert all_known(native, lane) == all_known(reasoner, lane)
        assert dict(extract(native, lane)) == dict(extract(reasoner, lane))


@pytest.mark.parametrize("lane", range(10))
def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(lane: int, among: Series) -> None:
    kept: dict[frozenset[str], Afterstate] = {}
    rewards: list[float] = []
    graph = PositionGraph(load("tictactoe"))

    def play(num_matches: int, first_match: int) -> Learner:
        """Play on from what was kept, and keep what each match changed."""
        seed, run, stage = SEEDS[lane]
        learner = Learner(graph, 0, [MIXED[lane]], values_of([MIXED[lane]]), [(seed, run)])
        learner.load(0, kept.values())

        def keep(finished: Finished) -> None:
            assert (finished.lanes.tolist(), finished.matches.tolist()) == ([0], [len(rewards)])
            rewards.append(max(float(finished.goals[0, 0]), 0.0))
            kept.update((after.facts, after) for after in learner.changed_by(0))

        seats = [learner, Opponent(AGAINST[lane])]
        run_lockstep(graph, seats, [stream(seed, run, stage)], num_matches, first_match=first_match, on_end=keep)
        return learner

    play(12, 0)
    assert rewards == among.rewards[lane, :12].tolist()
    rest = play(18, 12)
    assert rewards[12:] == among.rewards[lane, 12:].tolist()
    assert set(rest.afterstates(0)) == set(kept.values()) == all_known(among, lane)


def test_every_match_is_told_once_it_was_learned_from() -> None:
    told: list[tuple[int, int, float, int, list[Afterstate]]] = []
    progress: list[int] = []
    series = ten(num_matches=6, progress=progress.append)
    graph = PositionGraph(load("tictactoe"))
    learner = Learner(graph, 0, MIXED, values_of(MIXED), [(seed, run) for seed, run, _ in SEEDS])

    def tell(finished: Finished) -> None:
        rewards = np.maximum(finished.goals[:, 0], 0).tolist()
        matches = zip(finished.lanes.tolist(), finished.matches.tolist(), rewards, finished.plies.tolist(), strict=True)
        told.extend((*match, learner.changed_by(i)) for i, match in enumerate(matches))

    run_lockstep(graph, [learner, Opponent(AGAINST)], [stream(*seed) for seed in SEEDS], 6, on_end=tell)
    assert sum(progress) == len(told) == 60
    for lane in range(10):
        _, matches, rewards, lengths, changed = zip(*(match for match in told if match[0] == lane), strict=True)
        assert matches == tuple(range(6))
        assert list(rewards) == series.rewards[lane].tolist()
        assert list(lengths) == series.lengths[lane].tolist()
        last = {after.facts: after for afterstates in changed for after in afterstates}
        assert set(last.values()) == all_known(series, lane)


def test_learners_learn() -> None:
    learners = [LearnerSettings()] * 3
    against = [OpponentSettings("random")] * 3
    series = play_series(load("tictactoe"), "xplayer", learners, None, against, 1500, [(1, i, "x") for i in range(3)])
    early, late = series.rewards[:, :150].mean(axis=1), series.rewards[:, -150:].mean(axis=1)
    assert (late > early).all()
    assert (late > 85).all()


def test_any_game_is_a_source_for_any_other() -> None:
    """CaptureGo as second player teaches, tic-tac-toe joins it, and Connect3 starts from both."""
    lanes = [LearnerSettings()] * 2
    against = [OpponentSettings("egreedy", "first")] * 2
    seeds = [(2, i, "source") for i in range(2)]
    go = play_series(load("capturego3"), "white", lanes, None, against, 60, seeds)
    taught = [extract(go, lane) for lane in range(2)]
    assert all(set(one) for one in taught)
    line = [replace(one, kind="transfer") for one in lanes]
    three = play_series(load("tictactoe"), 0, line, list(taught), against, 60, seeds)
    both = combine([taught[0], extract(three, 0)], "visits")
    assert set(both) == set(taught[0]) | set(extract(three, 0))
    learner = LearnerSettings("transfer", initialisation="eager")
    target = play_series(load("connect3"), 0, [learner], [both], against[:1], 20, seeds[:1])
    assert target.rewards.shape == (1, 20)
    assert dict(extract(target, 0))


def test_seconds_are_told_by_what_they_went_into() -> None:
    series = ten(num_matches=3)
    seconds, initial = series.seconds, series.learner.initial
    assert set(seconds.initialising) == {
        "features of depth 2",
        "terminal check",
        "minimax of depth 2",
        "avgmax of depth 2",
        "maxmax of depth 2",
    }
    looked_into = [(classes >= 0).sum() for classes in initial.classes]
    assert all(count > 0 for count in looked_into), "afterstates, by space"
    total = seconds.playing + seconds.choosing + seconds.learning + sum(seconds.initialising.values())
    own = series.learner.seconds_choosing + series.learner.seconds_learning + initial.seconds
    assert total - seconds.playing == pytest.approx(own)
    assert min(seconds.playing, seconds.choosing, seconds.learning, *seconds.initialising.values()) > 0


def test_lists_must_be_of_one_length() -> None:
    game, plain = load("tictactoe"), [LearnerSettings()]
    with pytest.raises(GameloreError, match=r"for each lane, got \[1, 2, 1\]"):
        play_series(game, 0, plain, None, AGAINST[:2], 5, SEEDS[:1])
    with pytest.raises(GameloreError, match=r"got \[0, 0, 0\]"):
        play_series(game, 0, [], None, [], 5, [])


def test_the_role_must_be_one_of_the_game() -> None:
    for role in ("white", 2, -1):
        with pytest.raises(GameloreError, match=r"a role of tictactoe \(xplayer, oplayer\) or its number from 0, got"):
            play_series(load("tictactoe"), role, [LearnerSettings()], None, AGAINST[:1], 5, SEEDS[:1])


def test_rewards_are_goals_and_lengths_are_plies() -> None:
    series = ten(num_matches=20)
    assert (series.rewards.shape, series.rewards.dtype) == ((10, 20), np.float32)
    assert (series.lengths.shape, series.lengths.dtype) == ((10, 20), np.int16)
    assert set(np.unique(series.rewards)) <= {0.0, 50.0, 100.0}
    assert series.lengths.min() >= 5
    assert series.lengths.max() <= 9
    assert [counts.sum() for counts in (series.num_stuck, series.num_capped, series.num_missing)] == [0, 0, 0]
