"""What is measured of a game adds up; that it is fast is no matter of tests."""

from types import SimpleNamespace

import pytest

import gamelore
from gamelore.cli import bench_command
from gamelore.cli.bench_command import PlayoutSpeed, circuit_size, playout_speed, started
from gamelore.errors import GameloreError

ENDLESS = """
    (role r) (init (at a)) (base (at a)) (base (at b)) (input r go)
    (<= (legal r go) (true (at ?x)))
    (<= (next (at b)) (true (at a))) (<= (next (at a)) (true (at b)))
    (<= terminal (true (at a)) (true (at b))) (goal r 100)
"""


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_playouts_and_steps_add_up(engine):
    measured = playout_speed(gamelore.load("tictactoe", engine=engine), 0.5, seed=3)
    assert measured.num_playouts >= 1
    assert measured.mean_steps == measured.num_steps / measured.num_playouts
    assert 5 <= measured.mean_steps <= 9
    assert measured.playouts_per_s * measured.cpu_s == pytest.approx(measured.num_playouts)
    assert measured.steps_per_s * measured.cpu_s == pytest.approx(measured.num_steps)
    assert (measured.compile_s > 0) == (engine == "native")


def test_trials_grow_until_one_takes_half_of_the_time(monkeypatch):
    asked = []

    def timed(game, n, seconds, seed, compile_s=0.0):
        asked.append(n)
        return PlayoutSpeed(n, 10 * n, n * 1e-4, n * 2e-4, compile_s)

    monkeypatch.setattr(bench_command, "_timed", timed)
    measured = playout_speed(gamelore.load("tictactoe", engine="native"), 1.0)
    assert asked == [1, 512, 2048, 8192]
    assert (measured.num_playouts, measured.playouts_per_s) == (8192, pytest.approx(10_000))


def test_one_thread_plays():
    class Recorded:
        engine = "native"

        def playouts(self, n, seed, threads, progress):
            assert threads == 1
            return SimpleNamespace(num_playouts=n, num_steps=n)

    assert bench_command._timed(Recorded(), 7, 1.0, 0).num_playouts == 7


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_pause_of_the_machine_ends_no_playouts(engine, monkeypatch):
    """The clock of a process goes on when its virtual machine stands still."""
    seconds = iter([0.0, 0.1, 1000.0, 1000.1, 1000.2])

    class Paused:
        def playouts(self, n, seed, threads, progress):
            for done in (1, 2, n):
                progress(done)
            return SimpleNamespace(num_playouts=n, num_steps=n)

    monkeypatch.setattr(bench_command.time, "process_time", lambda: next(seconds))
    game = Paused()
    game.engine = engine
    assert bench_command._timed(game, 7, 1.0, 0).num_playouts == 7


def test_of_a_match_that_does_not_end_the_reasoner_tells_the_steps():
    measured = playout_speed(gamelore.load(ENDLESS, engine="reasoner"), 0.02)
    assert measured.num_playouts == 0
    assert measured.playouts_per_s is None
    assert measured.mean_steps is None
    assert measured.num_steps >= 1
    assert measured.steps_per_s > 0


def test_of_one_that_does_not_end_the_native_engine_tells_so():
    with pytest.raises(GameloreError, match=r"expected random playouts of unnamed to end, but 1 of them did not end"):
        playout_speed(gamelore.load(ENDLESS, engine="native"), 0.01)


def test_a_start_has_its_legal_moves():
    game, seconds = started(lambda: gamelore.load("connect3"))
    assert seconds > 0
    assert game.name == "connect3"


def test_the_size_of_a_compiled_game():
    compiled = circuit_size(gamelore.load("tictactoe", engine="native"))
    assert compiled["num_actions"] == 20
    assert compiled["num_facts"] == 29
    assert compiled["num_gates"] > 50
    assert set(circuit_size(gamelore.load("tictactoe", engine="reasoner")).values()) == {None}
