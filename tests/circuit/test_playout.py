"""Random playouts and rollouts: exactly as many as asked for, the same on any number of threads, and fair."""

import gc
import weakref
from threading import get_ident

import numpy as np
import pytest

import gamelore
from gamelore import rulesheets
from gamelore.circuit.native import compiled_kernel
from gamelore.circuit.sampling import draw_code, num_digits
from gamelore.game import engines as engines

ENGINES = ["native", "reasoner"]
SIZES = [1, 2, 63, 64, 65, 130]

COUNTDOWN = """
; from the lobby a enters at n, and the match takes n steps more and ends with goal n; or something is wrong with it
(role a) (role b) (init lobby)
(before n1 n0) (before n2 n1) (before n3 n2) (before n4 n3) (before n5 n4) (before n6 n5) (before n7 n6)
(is n0 0) (is n1 1) (is n2 2) (is n3 3) (is n4 4) (is n5 5) (is n6 6) (is n7 7)
(kind plain) (kind blocked) (kind unclear) (kind endless)
(<= (legal a (enter ?n ?kind)) (true lobby) (is ?n ?v) (kind ?kind))
(<= (legal a go) (not (true lobby)))
(<= (legal b wait) (not (true (of blocked))))
(<= (next (left ?n)) (does a (enter ?n ?kind)))
(<= (next (began ?n)) (does a (enter ?n ?kind)))
(<= (next (of ?kind)) (does a (enter ?n ?kind)))
(<= (next (left ?m)) (true (left ?n)) (before ?n ?m) (not (true (of endless))))
(<= (next (left ?n)) (true (left ?n)) (true (of endless)))
(<= (next (began ?n)) (true (began ?n)))
(<= (next (of ?kind)) (true (of ?kind)))
(<= terminal (true (left n0)) (not (true (of endless))))
(<= (goal a ?v) (true (began ?n)) (is ?n ?v))
(<= (goal b 10) (true (left n0)))
(<= (goal b 20) (true (of unclear)))
"""


def choice(num_moves):
    """One move among so many, whose number is the goal."""
    moves = " ".join(f"(move {i})" for i in range(num_moves))
    return f"""
    (role a) {moves} (<= (legal a ?x) (move ?x)) (init begin)
    (<= (next (chose ?x)) (does a ?x)) (<= terminal (not (true begin))) (<= (goal a ?x) (true (chose ?x)))
    """


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("num_moves", SIZES)
def test_any_number_of_moves_and_each_as_likely(engine, num_moves):
    n = 100 * num_moves + 13
    played = gamelore.load(choice(num_moves), engine=engine).playouts(n, seed=num_moves)
    counts = np.array([played.goals[0].get(i, 0) for i in range(num_moves)])
    assert counts.sum() == played.num_steps == n
    degrees = num_moves - 1
    assert ((counts - n / num_moves) ** 2).sum() / (n / num_moves) <= degrees + 5 * (2 * degrees) ** 0.5


def test_a_game_keeps_the_machine_code_that_it_calls():
    """Otherwise a game crashes that is played after the cache of shared code was emptied."""
    game = gamelore.load(choice(2_000), engine="native")
    before = game.playouts(100, seed=1)
    draw = weakref.ref(compiled_kernel(draw_code(num_digits(2_000))))
    compiled_kernel.cache_clear()
    gc.collect()
    assert draw() is not None
    assert game.playouts(100, seed=1) == before


def test_playouts_are_the_same_on_any_number_of_threads_and_again():
    game = gamelore.load("connect3", engine="native")
    for n in (1, 63, 64, 65, 513, 20_001):
        played = [game.playouts(n, seed=5, threads=threads) for threads in (1, 2, 3, None, 1)]
        assert all(one == played[0] for one in played)
        assert [sum(goals.values()) for goals in played[0].goals] == [n, n]
    assert game.playouts(1000, seed=5) != game.playouts(1000, seed=6)


def test_a_first_state_that_is_terminal():
    game = gamelore.load("(role a) (init over) (legal a go) (<= terminal (true over)) (goal a 30)", engine="native")
    played = game.playouts(1000)
    assert (played.num_steps, played.num_stuck, played.goals) == (0, 0, ({30: 1000},))


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_is_told_and_may_stop(threads):
    game = gamelore.load("connect3", engine="native")
    told = []
    game.playouts(20_000, threads=threads, progress=told.append)
    assert max(told) == 20_000

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        game.playouts(20_000, threads=threads, progress=stop)
    assert game.playouts(20_000, threads=threads) == game.playouts(20_000)


ENDLESS = "(role a) (init x) (legal a go) (<= (next x) (true x)) (<= terminal (not (true x))) (goal a 0)"


def test_progress_never_falls_and_any_thread_may_stop_all(monkeypatch):
    game, told, threads = gamelore.load("connect3", engine="native"), [], []
    monkeypatch.setattr(game._engine.playout_runner, "_steps_per_call", 1)
    game.playouts(20_000, threads=4, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 20_000
    assert len(told) > 40

    def stop_another(_):
        threads.append(get_ident())
        if threads[-1] != threads[0]:
            raise InterruptedError

    with pytest.raises(InterruptedError):  # though the first thread, whose result is waited for, would never end
        gamelore.load(ENDLESS, engine="native").playouts(10_000, threads=2, progress=stop_another)


def test_the_reasoner_forgets_answers_not_states(monkeypatch):
    game = gamelore.load("tictactoe", engine="reasoner")
    expected = game.playouts(20, seed=4)
    monkeypatch.setattr(engines, "MOST_ANSWERS", 10)
    again = gamelore.load("tictactoe", engine="reasoner")
    assert again.playouts(20, seed=4) == expected
    assert len(again._engine._known) < len(game._engine._known)
    assert again.facts(again.initial) == game.facts(game.initial)


@pytest.mark.parametrize("engine", ENGINES)
def test_rollouts_from_states_of_known_outcome(engine):
    """Each row has its own length and goals, though lanes are filled again and again, and rows wait for their goals."""
    game = gamelore.load(COUNTDOWN, engine=engine)
    rng = np.random.default_rng(1)
    n = 9000 if engine == "native" else 60
    left, kind = rng.integers(0, 8, n), rng.integers(0, 4, n)
    kinds = ["plain", "blocked", "unclear", "endless"]
    table = np.array(
        [[game.state([f"(left n{i})", f"(began n{i})", f"(of {name})"]) for name in kinds] for i in range(8)]
    )
    played = game.rollouts(table[left, kind], seed=3, max_steps=11)
    plain, blocked, unclear, endless = (kind == k for k in range(4))
    np.testing.assert_array_equal(played.steps[plain | unclear], left[plain | unclear])
    np.testing.assert_array_equal(played.goals[plain], np.stack([left, np.full(n, 10)], axis=1)[plain])
    np.testing.assert_array_equal(played.goals[unclear], np.stack([left, np.full(n, -1)], axis=1)[unclear])
    stuck = blocked & (left > 0)
    assert (played.steps[stuck] == 0).all()
    assert (played.goals[stuck] == -1).all()
    assert (played.goals[blocked & ~stuck, 0] == 0).all()
    assert (played.steps[endless] == 11).all()
    assert (played.goals[endless] == -1).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_rollouts_of_nothing_and_of_one(engine):
    game = gamelore.load("tictactoe", engine=engine)
    none = game.rollouts(np.zeros((0, game.num_words), np.uint64))
    assert (none.goals.shape, none.steps.shape) == ((0, 2), (0,))
    one = game.rollouts(game.initial[None])
    assert sorted(one.goals[0].tolist()) in ([0, 100], [50, 50])
    assert 5 <= one.steps[0] <= 9


def test_rollouts_are_the_same_on_any_number_of_threads_and_again():
    game = gamelore.load("connect3", engine="native")
    for n in (1, 7, 64, 600, 9000):
        states = np.repeat(game.initial[None], n, axis=0)
        played = [game.rollouts(states, seed=2, threads=threads) for threads in (1, 2, 3, None, 1)]
        for one in played:
            np.testing.assert_array_equal(one.goals, played[0].goals)
            np.testing.assert_array_equal(one.steps, played[0].steps)
    assert (game.rollouts(states, seed=2).steps != game.rollouts(states, seed=3).steps).any()


def test_rollouts_leave_the_states_as_they_were():
    game = gamelore.load("tictactoe", engine="native")
    states = np.repeat(game.initial[None], 700, axis=0)
    game.rollouts(states)
    np.testing.assert_array_equal(states, np.repeat(game.initial[None], 700, axis=0))


@pytest.mark.parametrize("engine", ENGINES)
def test_rollouts_from_the_middle_have_the_law_of_random_play(engine):
    """x to move: the square on the left wins, the one below gives both players one more, the corner loses at once.

    x o x
    . o o
    x . .
    """
    game = gamelore.load("tictactoe", engine=engine)
    rows = ["xox", "boo", "xbb"]
    facts = [f"(cell {i + 1} {j + 1} {mark})" for i, row in enumerate(rows) for j, mark in enumerate(row)]
    n = 30_000 if engine == "native" else 1500
    state = game.state([*facts, "(control xplayer)"])
    played = game.rollouts(np.repeat(state[None], n, axis=0), seed=9)
    wins, steps = played.goals[:, 0] == 100, played.steps
    assert set(played.goals.sum(axis=1).tolist()) == {100}
    for happened, probability in [
        (wins & (steps == 1), 1 / 3),
        (~wins & (steps == 2), 1 / 2),
        (wins & (steps == 3), 1 / 6),
    ]:
        assert abs(happened.mean() - probability) < 4.5 * (probability * (1 - probability) / n) ** 0.5


@pytest.mark.parametrize("name", rulesheets.names())
def test_rollouts_and_playouts_agree(name):
    """Means within five standard errors of each other, from the same first state."""
    game = gamelore.load(name, engine="native")
    n = 4000
    played, rolled = game.playouts(n, seed=1), game.rollouts(np.repeat(game.initial[None], n, axis=0), seed=2)
    for role in range(game.num_roles):
        ours = rolled.goals[rolled.goals[:, role] >= 0, role]
        assert abs(played.mean(role) - ours.mean()) <= 5 * ours.std() * (2 / n) ** 0.5
    assert abs(played.num_steps / n - rolled.steps.mean()) <= 5 * rolled.steps.std() * (2 / n) ** 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda game: game.playouts(-1), "number of playouts of at least 0, got -1"),
        (lambda game: game.playouts(1, threads=0), "one thread, got 0"),
        (lambda game: game.rollouts(game.initial[None], threads=-1), "one thread, got -1"),
        (lambda game: game.rollouts(game.initial[None], max_steps=0), "max_steps of at least 1, got 0"),
    ],
)
def test_what_cannot_be_asked_for(call, words):
    with pytest.raises(gamelore.GameloreError, match=words):
        call(gamelore.load("tictactoe", engine="native"))


def test_rollouts_take_only_states_of_the_game():
    game = gamelore.load("tictactoe", engine="native")
    with pytest.raises(ValueError, match="state\\[None\\]"):
        game.rollouts(game.initial)
