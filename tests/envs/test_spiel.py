"""OpenSpiel: its own checks, its algorithms on games in GDL, against known values, and its bots as players."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gamelore
from gamelore import GameloreError

pyspiel = pytest.importorskip("pyspiel", reason="no OpenSpiel: it has no packages for this platform")

from open_spiel.python import rl_environment  # noqa: E402
from open_spiel.python.algorithms import cfr, expected_game_score, exploitability, minimax, tabular_qlearner  # noqa: E402

from gamelore.envs import open_spiel_game  # noqa: E402
from gamelore.envs.spiel import SpielState  # noqa: E402
from public_sheets import PUBLIC  # noqa: E402


def matrix_game(goals: list[list[int]]) -> str:
    """The rules of a game in which `row` and `column` choose once, at the same time; `goals` are those of `row`."""
    rules = ["(role row) (role column) (init s) (<= terminal (true e)) (<= (next e) (true s))"]
    rules += [f"(<= (legal row r{i}) (true s))" for i in range(len(goals))]
    rules += [f"(<= (legal column c{j}) (true s))" for j in range(len(goals[0]))]
    for i, own in enumerate(goals):
        for j, goal in enumerate(own):
            rules.append(f"(<= (next (end {goal})) (does row r{i}) (does column c{j}))")
    values = sorted({goal for own in goals for goal in own})
    rules += [
        f"(<= (goal row {goal}) (true (end {goal}))) (<= (goal column {100 - goal}) (true (end {goal})))"
        for goal in values
    ]
    return "\n".join(rules)


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "tictactoe3p", "pegsolitaire", "othello4", "connectfour"])
def test_openspiel_checks_a_shipped_game(name: str) -> None:
    pyspiel.random_sim_test(open_spiel_game(name), num_sims=2, serialize=True, verbose=False)


@pytest.mark.parametrize("name", PUBLIC)
def test_openspiel_checks_a_public_game(shared: Path, name: str) -> None:
    game = open_spiel_game(shared / "games" / f"{name}.kif", max_plies=100)
    pyspiel.random_sim_test(game, num_sims=2, serialize=True, verbose=False)


def test_a_game_is_loaded_by_its_name() -> None:
    game = pyspiel.load_game("gamelore(game=connect3,max_plies=9)")
    assert (str(game), game.max_game_length()) == ("gamelore(game=connect3,max_plies=9)", 9)
    again = pyspiel.load_game(str(open_spiel_game("fivemensmorris:flying=yes,cap=80")))
    assert again.table.game.name == "fivemensmorris:flying=yes,cap=80"


def test_states_show_what_the_game_says() -> None:
    state: Any = open_spiel_game("tictactoe").new_initial_state()
    state.apply_action(4)
    position = gamelore.load("tictactoe").start().play({"xplayer": "(mark 2 2)", "oplayer": "noop"})
    assert str(state) == str(position)
    assert state.position.facts == position.facts
    assert state.current_player() == 1
    assert [state.action_to_string(1, action) for action in state.legal_actions()] == position.legal["oplayer"]
    observation = gamelore.envs.Observation.of(state.position.game)
    assert (np.array(state.observation_tensor()) == observation.observe(state.position.state[None]).ravel()).all()
    assert state.information_state_string(0) == "0: 4"
    assert pickle.loads(pickle.dumps(state)).history() == [4]


def test_returns_of_opposed_roles_have_the_sum_0() -> None:
    game = open_spiel_game("tictactoe")
    assert game.get_type().utility == pyspiel.GameType.Utility.ZERO_SUM
    state = game.new_initial_state()
    for action in (0, 3, 1, 4, 2):
        state.apply_action(action)
    assert state.returns() == [1.0, -1.0]
    third: Any = open_spiel_game("tictactoe3p")
    assert third.get_type().utility == pyspiel.GameType.Utility.GENERAL_SUM
    cut = open_spiel_game("tictactoe", max_plies=3).new_initial_state()
    for action in (0, 3, 1):
        cut.apply_action(action)
    assert (cut.is_terminal(), cut.returns()) == (True, [0.0, 0.0])


@pytest.mark.parametrize("name", ["tictactoe", "losetictactoe", "capturego3"])
def test_minimax_of_openspiel_and_our_solver_agree(name: str) -> None:
    """Positions after some plies, because the search has no memory of positions."""
    solved, game, rng = gamelore.solve(name), open_spiel_game(name), np.random.default_rng(0)
    first, values = solved.game.roles[0], set()
    for _ in range(8):
        state: Any = game.new_initial_state()
        while len(state.history()) < 4 and not state.is_terminal():
            state.apply_action(int(rng.choice(state.legal_actions())))
        if not state.is_terminal():
            value, _ = minimax.alpha_beta_search(game, state=state, maximum_depth=40, maximizing_player_id=0)
            assert 50 + 50 * value == solved.value(state.position)[first]
            values.add(value)
    assert len(values) > 1


@pytest.mark.parametrize(
    ("goals", "value"),
    [
        ([[100, 0], [0, 100]], 50),  # matching pennies
        ([[50, 0, 100], [100, 50, 0], [0, 100, 50]], 50),  # rock, paper, scissors
        ([[100, 20], [40, 80]], 60),  # (100 * 80 - 20 * 40) / (100 + 80 - 20 - 40)
        (
            [[70, 10, 90], [30, 50, 40]],
            40,
        ),  # without column 3: (70 * 50 - 10 * 30) / 80
    ],
)
def test_cfr_finds_the_value_of_a_simultaneous_game(goals: list[list[int]], value: float) -> None:
    game = open_spiel_game(matrix_game(goals))
    assert game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
    turns = pyspiel.convert_to_turn_based(game)
    solver = cfr.CFRPlusSolver(turns)
    for _ in range(400):
        solver.evaluate_and_update_policy()
    policy = solver.average_policy()
    assert exploitability.exploitability(turns, policy) < 0.01
    returns = expected_game_score.policy_value(turns.new_initial_state(), [policy, policy])
    assert 50 + 50 * returns[0] == pytest.approx(value, abs=0.5)


def test_q_learning_of_openspiel_learns_a_game() -> None:
    """It plays tic-tac-toe against a random player, and gets more points at the end than at the begin."""
    game = open_spiel_game("tictactoe")
    environment = rl_environment.Environment(game)
    learner = tabular_qlearner.QLearner(0, game.num_distinct_actions())
    rng, rewards = np.random.default_rng(0), []
    np.random.seed(0)  # noqa: NPY002 - OpenSpiel's learner uses the global generator
    for _ in range(400):
        step = environment.reset()
        while not step.last():
            player = step.observations["current_player"]
            if player == 0:
                action = learner.step(step).action
            else:
                action = rng.choice(step.observations["legal_actions"][player])
            step = environment.step([action])
        learner.step(step)
        rewards.append(step.rewards[0])
    assert np.mean(rewards[-100:]) > np.mean(rewards[:100])


def test_mcts_of_openspiel_is_a_player() -> None:
    matches = gamelore.play("tictactoe", ["openspiel:mcts,simulations=60", "random"], matches=10, seed=2)
    assert matches.mean_goals["xplayer"] > 80
    again = gamelore.play("tictactoe", ["openspiel:mcts,simulations=60", "random"], matches=10, seed=2)
    assert [match.moves for match in again] == [match.moves for match in matches]
    assert gamelore.play("connect3", "openspiel:bot=uniform_random", matches=2).plies.min() >= 5
    assert "openspiel" in {listed.name for listed in gamelore.list_players()}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("openspiel:mtcs", "did you mean mcts"),
        ("openspiel:simulations=0", "expected at least one simulation, got 0"),
        ("openspiel:mcts,simulation=5", "did you mean simulations"),
        ("openspeil:mcts", "did you mean openspiel"),
    ],
)
def test_mistakes_are_told(spec: str, message: str) -> None:
    with pytest.raises(GameloreError, match=message):
        gamelore.player(spec)


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamelore.envs.bots.find_spec", lambda name: None)
    with pytest.raises(
        GameloreError, match="expected OpenSpiel for the player openspiel, got none; pip install open_spiel"
    ):
        gamelore.player("openspiel:mcts")
    monkeypatch.setattr("gamelore.envs.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r"expected gymnasium for gamelore.envs.GameEnv, got none; pip install 'gamelore"
    ):
        gamelore.envs.GameEnv  # noqa: B018


RARE = """
(role a) (role b) (init (n 0)) (<= (legal a ?x) (true (n ?i)) (choice ?x)) (<= (legal b noop) (true (n ?i)))
(choice l) (choice r) (<= (next (n ?j)) (true (n ?i)) (succ ?i ?j) (does a l)) (<= (next (n 0)) (does a r))
(<= terminal (true (n 25))) (<= (goal ?r 100) (role ?r) (true (n 25)))
""" + "".join(f"(succ {i} {i + 1})" for i in range(25))


def test_goals_that_random_matches_never_reach_are_not_taken_for_opposed() -> None:
    """Both roles get 100 after 25 times the left move; hardly any random match ends at all."""
    game = open_spiel_game(RARE)
    assert game.get_type().utility == pyspiel.GameType.Utility.GENERAL_SUM
    state = game.new_initial_state()
    for _ in range(25):
        state.apply_action(0)
    assert state.returns() == [1.0, 1.0]


def test_illegal_actions_are_refused() -> None:
    state = open_spiel_game("tictactoe").new_initial_state()
    state.apply_action(0)
    with pytest.raises(
        gamelore.IllegalMoveError, match=r"expected one of \[1, 2, 3, 4, 5, 6, 7, 8\] for oplayer, got 0"
    ):
        state.apply_action(0)


def test_a_sheet_that_has_changed_is_another_game(tmp_path: Path) -> None:
    path = tmp_path / "mine.kif"
    for goals in ([[100, 0], [0, 100]], [[100, 0, 50], [0, 100, 50]]):
        path.write_text(matrix_game(goals))
        assert open_spiel_game(path).num_distinct_actions() == len(goals[0])


def test_bots_are_seeded_and_need_turns() -> None:
    def moves() -> list[Any]:
        return [match.moves for match in gamelore.play("tictactoe", "openspiel:uniform_random", matches=3, seed=1)]

    assert moves() == moves()
    with pytest.raises(GameloreError, match="expected a game of turns for openspiel:mcts, got goofspiel"):
        gamelore.play("goofspiel", "openspiel:mcts")


def test_a_state_can_be_any_position() -> None:
    game = open_spiel_game("tictactoe")
    position = gamelore.load("tictactoe").start().play(["(mark 1 1)", "noop"])
    state = game.new_initial_state()
    assert isinstance(state, SpielState)
    assert state.at(position).legal_actions() == list(range(1, 9))


@pytest.mark.parametrize("actions", [[-1, 0], [0], [99, 0]])
def test_wrong_actions_of_roles_that_choose_at_once_are_refused(actions: list[int]) -> None:
    state = open_spiel_game("goofspiel").new_initial_state()
    with pytest.raises(gamelore.IllegalMoveError, match="expected "):
        state.apply_actions(actions)
    assert state.history() == []
