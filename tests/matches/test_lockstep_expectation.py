"""Exact expectations in lose tic-tac-toe, the baselines of Table 1 of Lock & Epstein (2004); readings.md, L&E 5."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import gamelore
from gamelore import GameloreError
from gamelore.catalogue import player as by_name
from gamelore.matches.lockstep import Uniform, expected, run_lockstep
from gamelore.players.player import Finished, Memoryless
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from walks import Walk


def per_cent(graph: PositionGraph, opponent: Memoryless) -> tuple[float, float]:
    """(reliability, power) of random against this opponent in per cent, half of the matches on either side."""
    first, second = expected(graph, [Uniform(), opponent]), expected(graph, [opponent, Uniform()])
    return 50 * (first.not_worse(0) + second.not_worse(1)), 50 * (first.better(0) + second.better(1))


def opponent_of(spec: str) -> Memoryless:
    return Uniform() if spec == "random" else by_name(spec)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("spec", "reliability", "power"),
    [
        ("perfect", 21.07, 0),
        ("perfect:best=value", 21.07, 0),
        ("expert:best=value", 25.69, 7.18),
        ("novice:best=value", 47.45, 35.15),
        ("expert", 24.83, 6.03),
        ("novice", 46.27, 33.62),
        ("expert:best=value,own=avoid", 24.52, 5.85),
        ("novice:best=value,own=avoid", 37.46, 22.72),
        ("reasonable", 56.35, 43.65),
        ("random", 56.35, 43.65),
    ],
)
def test_random_in_lose_tictactoe(
    load: Callable[..., gamelore.Game], spec: str, reliability: float, power: float
) -> None:
    assert per_cent(PositionGraph(load("losetictactoe")), opponent_of(spec)) == pytest.approx(
        (reliability, power), abs=0.006
    )


def leads(graph: PositionGraph, spec: str, side: int) -> NDArray[np.int16]:
    """By how much random is ahead at the end of each of 50,000 matches, in this seat, against this opponent."""
    ended: list[Finished] = []
    keys = [stream(5, spec, lane, side) for lane in range(500)]
    seats = [by_name("random"), by_name(spec)]
    run_lockstep(graph, seats if side == 0 else seats[::-1], keys, 100, on_end=ended.append)
    goals: NDArray[np.int16] = np.concatenate([finished.goals for finished in ended])
    return np.asarray(goals[:, side] - goals[:, 1 - side])


@pytest.mark.parametrize("spec", ["perfect:best=value", "expert:best=value", "novice:best=value", "random"])
def test_100_000_sampled_matches_agree_within_three_standard_errors(
    load: Callable[..., gamelore.Game], spec: str
) -> None:
    graph = PositionGraph(load("losetictactoe"))
    ahead = np.concatenate([leads(graph, spec, side) for side in (0, 1)])
    assert len(ahead) == 100_000
    reliability, power = per_cent(graph, opponent_of(spec))
    for sampled, exact in ((ahead >= 0).mean(), reliability / 100), ((ahead > 0).mean(), power / 100):
        error = np.sqrt(exact * (1 - exact) / len(ahead))
        assert abs(sampled - exact) <= 3 * error + 1e-12


def test_probabilities_add_up(load: Callable[..., gamelore.Game]) -> None:
    found = expected(PositionGraph(load("tictactoe")), [Uniform(), Uniform()])
    assert sum(found.goals.values()) == pytest.approx(1)
    assert found.goals[100, 0] == pytest.approx(0.5849, abs=5e-5)  # known: x wins 58.49 % of random tic-tac-toe
    assert found.goals[0, 100] == pytest.approx(0.2881, abs=5e-5)
    assert found.unfinished == 0
    assert found.mean(0) == pytest.approx(100 * found.goals[100, 0] + 50 * found.goals[50, 50])


def test_moves_at_the_same_time_are_independent(load: Callable[..., gamelore.Game]) -> None:
    found = expected(PositionGraph(load("one_shot")), [Uniform(), Uniform()], max_plies=1)
    assert found.goals == pytest.approx({(100, 0): 3 / 8, (0, 100): 1 / 8, (50, None): 1 / 4})
    assert found.unfinished == pytest.approx(1 / 4)
    assert found.plies == 1


def test_what_does_not_end_is_unfinished() -> None:
    ring = Walk({0: [1, 2], 1: [0]}, {0: 0, 1: 1}, {2: 80})
    found = expected(PositionGraph(gamelore.load(ring.text)), [Uniform(), Uniform()], max_plies=5)
    assert found.goals == pytest.approx({(80, 20): 7 / 8})
    assert found.unfinished == pytest.approx(1 / 8)
    assert found.plies == pytest.approx(1 + 2 * 1 / 2 + 2 * 1 / 4)


def test_a_stuck_match_is_unfinished(load: Callable[..., gamelore.Game]) -> None:
    found = expected(PositionGraph(load("walk")), [Uniform()], max_plies=1)
    assert found.goals == pytest.approx({(None,): 1 / 3})
    assert found.unfinished == pytest.approx(2 / 3)


def test_a_wrong_number_of_players(load: Callable[..., gamelore.Game]) -> None:
    with pytest.raises(GameloreError, match="expected 2 players"):
        expected(PositionGraph(load("tictactoe")), [Uniform()])
