"""The benchmark of proofs: its exhaustive search by hand and against the solver, and a small run of it."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamelore import load
from gamelore.solver.solution import solve

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
GIVE = """
(role a) (role b) (role c) (init (control a))
(<= (legal a give) (true (control a))) (<= (legal a take) (true (control a)))
(<= (legal a noop) (not (true (control a))))
(<= (legal b up) (true (control b))) (<= (legal b down) (true (control b)))
(<= (legal b noop) (not (true (control b)))) (legal c noop)
(<= (next (control b)) (does a give)) (<= (next (at taken)) (does a take))
(<= (next (at high)) (does b up)) (<= (next (at low)) (does b down))
(<= terminal (true (at ?x)))
(<= (goal a 60) (true (at taken))) (<= (goal a 80) (true (at high))) (<= (goal a {a_low}) (true (at low)))
(<= (goal b 10) (true (at taken))) (<= (goal b 50) (true (at high))) (<= (goal b 50) (true (at low)))
(<= (goal c 20) (true (at taken))) (<= (goal c 100) (true (at high))) (<= (goal c 0) (true (at low)))
"""


@pytest.fixture(scope="module")
def proofs() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield runpy.run_path(str(BENCHMARKS / "proofs.py"))


@pytest.fixture(scope="module")
def exhaustive() -> dict[str, Any]:
    return runpy.run_path(str(BENCHMARKS / "exhaustive.py"))


@pytest.mark.parametrize(
    ("a_low", "low", "high"),
    [
        (80, (80, 50, 0), (80, 50, 100)),  # a gives; b may then give c anything
        (70, (70, 50, 0), (80, 50, 100)),  # a gives, since b's worse choice is better for a than taking
        (50, (60, 10, 20), (80, 50, 100)),  # a takes, or gives if it knows that b goes up; it never gets 50
    ],
)
def test_results_after_ties_by_hand(exhaustive: dict[str, Any], a_low: int, low: Any, high: Any) -> None:
    """a is sure of 60 by `take`; after `give`, b is indifferent between 80 and `a_low` for a."""
    game = load(GIVE.format(a_low=a_low))
    outcomes = exhaustive["Outcomes"](game, game.initial[None], 10)
    assert len(outcomes) == 5
    least, most = outcomes.bounds(game.initial[None])
    assert (tuple(least[0].tolist()), tuple(most[0].tolist())) == (low, high)


def test_results_equal_the_solved_values(exhaustive: dict[str, Any]) -> None:
    for name in ("tictactoe", "capturego3"):
        game = load(name)
        outcomes = exhaustive["Outcomes"](game, game.initial[None], 10_000)
        states = np.array([np.frombuffer(state, np.uint64) for state in outcomes._rows])
        values = solve(game).look_up(states)[0]
        assert len(outcomes) == solve(game).num_positions
        for bounds in outcomes.bounds(states):
            assert (bounds == values).all()


def test_late_positions_are_exact(exhaustive: dict[str, Any]) -> None:
    """Ends of matches of three roles, too many positions for a list of all."""
    game = load("tictactoe3p")
    assert exhaustive["values_of_all"](game, 500) is None
    with pytest.raises(exhaustive["UnsettledError"], match="more than 500"):
        exhaustive["Outcomes"](game, game.initial[None], 500)
    states, joints = exhaustive["random_match"](game, np.random.default_rng(3))
    values, late = exhaustive["values_of_end"](game, states, 500)
    assert 3 < len(late) < len(states)
    assert (late[-1] == states[-1]).all()
    assert (exhaustive["after"](game, states[0], joints[0]) == states[1]).all()
    low, high = values.bounds(late)
    assert (low <= high).all()


@pytest.mark.parametrize("name", ["tictactoe", "connect3", "tictactoe3p"])
def test_all_bounds_of_searches_hold(proofs: dict[str, Any], name: str) -> None:
    tally = proofs["examined"](load(name), 25, 1000, 7)
    assert tally.contradictions == []
    assert tally.positions == 25
    assert tally.trees > 50
    assert tally.inner > 50


def test_a_wrong_proof_is_noticed(proofs: dict[str, Any]) -> None:
    """Values that are those of the other role contradict bounds."""
    game = load("tictactoe")
    values = next(proofs["chapters"](game, 10, 0))[0]

    class Exchanged:
        def bounds(self, states: Any) -> Any:
            low, high = values.bounds(states)
            return low[:, ::-1], high[:, ::-1]

    examiner = proofs["Examiner"](game, 1)
    position = game.start()
    for moves in (["(mark 1 1)", "noop"], ["noop", "(mark 3 2)"], ["(mark 1 2)", "noop"]):
        position = position.play(moves)
    examiner.examine(position.state, values)
    assert examiner.tally.contradictions == []
    examiner.examine(position.state, Exchanged())
    assert examiner.tally.contradictions
