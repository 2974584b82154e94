"""Gymnasium: its own checks, and the vector environment against single ones, lane by lane."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

import gamelore
import gamelore.envs
from gamelore import GameloreError, IllegalMoveError, Position
from gamelore.envs import GameEnv, GameVectorEnv
from public_sheets import PUBLIC

GAMES = ["connectfour", "tictactoe3p", "goofspiel", "pegsolitaire", "othello4"]


def last(position: Position, role: str) -> str:
    return position.legal[role][-1]


@pytest.mark.parametrize("name", PUBLIC)
def test_gymnasium_checks_a_public_game(shared: Path, name: str) -> None:
    game = gamelore.load(shared / "games" / f"{name}.kif")
    check_env(GameEnv(game, max_plies=50), skip_render_check=True)
    envs = GameVectorEnv(game, 4, max_plies=50)
    observed, _ = envs.reset(seed=1)
    for _ in range(20):
        assert envs.observation_space.contains(observed)
        observed, _, _, _, infos = envs.step(envs.sample())
        assert "illegal_action" not in infos


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "pegsolitaire"])
def test_gymnasium_checks_a_shipped_game(name: str, recwarn: pytest.WarningsRecorder) -> None:
    check_env(gymnasium.make(f"gamelore/{name}-v0").unwrapped)
    assert [str(warning.message) for warning in recwarn] == []


def test_an_environment_is_made_without_an_import() -> None:
    code = 'import gymnasium; print(gymnasium.make("gamelore.envs:gamelore/connectfour-v0").unwrapped.game.name)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("connectfour\n", "")


def test_a_sheet_of_ones_own_is_an_environment() -> None:
    path = str(gamelore.rulesheets.path("connect3"))
    env = gymnasium.make("gamelore/Game-v0", game=path, role="yellow", opponent="egreedy")
    _, info = env.reset(seed=1)
    assert env.unwrapped.role == 1
    assert info["action_mask"].sum() == 5


def played(env: GameEnv, seed: int) -> tuple[float, list[int]]:
    """Play an episode with the first legal actions; return the reward and the actions."""
    _, info = env.reset(seed=seed)
    actions, reward, is_over = [], 0.0, False
    while not is_over:
        actions.append(int(np.flatnonzero(info["action_mask"])[0]))
        _, reward, terminated, truncated, info = env.step(actions[-1])
        is_over = terminated or truncated
    return reward, actions


def test_an_episode_is_a_match_against_the_opponent() -> None:
    env = GameEnv("tictactoe", opponent=last)
    reward, actions = played(env, 0)
    assert [env.moves[action] for action in actions] == ["(mark 1 1)", "(mark 1 2)", "(mark 1 3)"]
    assert reward == 1.0
    assert played(env, 1) == (reward, actions)
    assert env.position.goals == {"xplayer": 100, "oplayer": 0}
    assert not env.action_masks().any()


def test_seeds_repeat_random_opponents() -> None:
    env = GameEnv("connectfour", "yellow")
    assert played(env, 5) == played(env, 5)
    ends = set()
    for seed in range(6):
        played(env, seed)
        ends.add(frozenset(env.position.facts))
    assert len(ends) > 1


@pytest.mark.parametrize(
    ("mode", "opponent"), [*((mode, "random") for mode in AutoresetMode), (AutoresetMode.SAME_STEP, "egreedy")]
)
@pytest.mark.parametrize("game", GAMES)
def test_lanes_are_equal_to_single_environments(game: str, mode: AutoresetMode, opponent: str) -> None:
    """Some actions are illegal. Without autoreset, some environments that are done are reset from time to time."""
    num = 20 if opponent == "random" else 8
    rng, done = np.random.default_rng(1), np.zeros(num, np.bool_)
    how: dict[str, Any] = {"opponent": opponent, "max_plies": 12}
    many, single = GameVectorEnv(game, num, autoreset_mode=mode, **how), [GameEnv(game, **how) for _ in range(num)]
    assert many.moves == single[0].moves
    observed, infos = many.reset(seed=5)
    assert many.np_random_seed == 5
    assert (observed == np.array([env.reset(seed=5 + i)[0] for i, env in enumerate(single)])).all()
    for _ in range(30):
        masks = many.action_masks()
        wild = rng.random(num) < 0.03
        actions = np.array(
            [
                rng.integers(len(m)) if wild[i] or not m.any() else rng.choice(np.flatnonzero(m))
                for i, m in enumerate(masks)
            ]
        )
        observed, rewards, terminated, truncated, infos = many.step(actions)
        for i, env in enumerate(single):
            if mode == AutoresetMode.DISABLED and done[i]:
                continue
            reward, ends = 0.0, (False, False)
            if mode == AutoresetMode.NEXT_STEP and done[i]:
                own, info = env.reset()
            else:
                own, reward, *ends, info = env.step(actions[i])
            assert (rewards[i], terminated[i], truncated[i]) == (reward, *ends)
            told = infos["final_info"] if mode == AutoresetMode.SAME_STEP and any(ends) else infos
            is_illegal = "_illegal_action" in told and told["_illegal_action"][i]
            assert (told["illegal_action"][i] if is_illegal else None) == info.get("illegal_action")
            if mode == AutoresetMode.SAME_STEP and any(ends):
                assert (infos["final_obs"][i] == own).all()
                assert (infos["final_info"]["action_mask"][i] == info["action_mask"]).all()
                own, info = env.reset()
            assert (observed[i] == own).all()
            assert (infos["action_mask"][i] == info["action_mask"]).all()
            done[i] = any(ends)
        if mode == AutoresetMode.DISABLED:
            fresh = done & (rng.random(num) < 0.4)
            observed, _ = many.reset(options={"reset_mask": fresh})
            for i in np.flatnonzero(fresh).tolist():
                assert (observed[i] == single[i].reset()[0]).all()
            done &= ~fresh


def test_a_function_is_an_opponent_in_all_lanes() -> None:
    envs = GameVectorEnv("tictactoe", 700, opponent=last, copy=False)
    envs.reset(seed=1)
    for _ in range(3):
        envs.step(np.argmax(envs.action_masks(), axis=1))
    assert envs.batch.terminated.sum() == 700


class Counts(gamelore.PositionPlayer):
    """Chooses the last move, after it was told that the match begins."""

    def begin(self, role: int, started: object) -> None:
        self.has_begun = True

    def move(self, position: Position, role: str) -> str:
        assert self.has_begun
        return position.legal[role][-1]


@pytest.mark.parametrize("opponent", [Counts(), "perfect", "uct:simulations=20", "minimax:depth=2"])
def test_other_players_are_equal_in_lanes(opponent: Any) -> None:
    many, single = (
        GameVectorEnv("tictactoe", 3, opponent=opponent),
        [GameEnv("tictactoe", opponent=opponent) for _ in range(3)],
    )
    observed, infos = many.reset(seed=2)
    for i, env in enumerate(single):
        env.reset(seed=2 + i)
    for _ in range(3):
        actions = [int(np.flatnonzero(mask)[-1]) for mask in infos["action_mask"]]
        observed, rewards, terminated, _, infos = many.step(actions)
        for i, env in enumerate(single):
            own, reward, ended, *_ = env.step(actions[i])
            assert ((observed[i] == own).all(), rewards[i], terminated[i]) == (True, reward, ended)
        if terminated.any():
            break


def test_nothing_happens_after_the_end() -> None:
    env = GameEnv("tictactoe", opponent=last)
    envs = GameVectorEnv("tictactoe", 2, opponent=last, autoreset_mode="DISABLED")
    env.reset(seed=0)
    envs.reset(seed=0)
    for action in (0, 1, 2):
        ended, many = env.step(action), envs.step([action, action])
    assert (ended[1], many[1].tolist()) == (1.0, [1.0, 1.0])
    ended, many = env.step(0), envs.step([0, 0])
    assert ended[1:4] == (0.0, True, False)
    assert [array.tolist() for array in many[1:4]] == [[0.0, 0.0], [True, True], [False, False]]


def test_seeds_are_one_for_each_environment() -> None:
    envs = GameVectorEnv("connectfour", 3, "yellow")
    several, _ = envs.reset(seed=[7, 8, 9])
    assert (envs.reset(seed=7)[0] == several).all()
    assert (envs.reset(seed=np.array([7, 8, 9]))[0] == several).all()
    with pytest.raises(GameloreError, match="expected 3 seeds, got 2; give one for each environment"):
        envs.reset(seed=[1, 2])


def test_autoreset_modes_have_their_names() -> None:
    assert GameVectorEnv("tictactoe", 2, autoreset_mode="SAME_STEP").autoreset_mode == AutoresetMode.SAME_STEP
    assert GameVectorEnv("tictactoe", 2, autoreset_mode="SameStep").autoreset_mode == AutoresetMode.SAME_STEP
    with pytest.raises(GameloreError, match="expected an autoreset mode"):
        GameVectorEnv("tictactoe", 2, autoreset_mode="AT_ONCE")


def test_wrappers_of_gymnasium_accept_the_vector_environment() -> None:
    envs: Any = gymnasium.make_vec("gamelore/connectfour-v0", num_envs=8)
    for wrapper in (wrappers.RecordEpisodeStatistics, wrappers.FlattenObservation, wrappers.NormalizeReward):
        envs = wrapper(envs)
    envs = wrappers.TransformObservation(envs, lambda observed: observed.astype(np.uint8))
    observed, _ = envs.reset(seed=2)
    assert observed.shape == (8, 210)
    ended = 0
    for _ in range(60):
        observed, _, terminated, truncated, infos = envs.step(envs.unwrapped.sample())
        ended += int((terminated | truncated).sum())
        if terminated.any():
            assert infos["episode"]["l"][terminated].min() >= 4
    assert ended > 8


def test_native_samples_are_legal() -> None:
    envs = GameVectorEnv("othello4", 600, "white", opponent="egreedy")
    envs.reset(seed=3)
    for _ in range(20):
        actions = envs.sample()
        masks = envs.action_masks()
        live = masks.any(axis=1)
        assert masks[np.arange(600), actions][live].all()
        *_, infos = envs.step(actions)
        assert "illegal_action" not in infos


def test_illegal_actions_end_an_episode_or_raise() -> None:
    env = GameEnv("tictactoe", opponent=last)
    env.reset(seed=0)
    env.step(0)
    _, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated, info["illegal_action"]) == (0.0, True, False, "(mark 1 1)")
    strict = GameEnv("tictactoe", opponent=last, illegal="raise")
    strict.reset(seed=0)
    strict.step(0)
    with pytest.raises(IllegalMoveError, match=r"expected a legal move of xplayer, got action 0, \(mark 1 1\); legal"):
        strict.step(0)


@pytest.mark.parametrize("action", [-1, 10, 2.0, "0", None, [1], np.array([1, 2])])
def test_wrong_actions_are_told(action: object) -> None:
    env, envs = GameEnv("tictactoe"), GameVectorEnv("tictactoe", 3)
    with pytest.raises(GameloreError, match="expected `reset` before the first `step`"):
        env.step(0)
    with pytest.raises(GameloreError, match="expected `reset` before the first `step`"):
        envs.step([0, 0, 0])
    env.reset()
    envs.reset()
    with pytest.raises(GameloreError, match="expected an action of xplayer from 0 to 9, got"):
        env.step(action)
    with pytest.raises(GameloreError, match="expected actions"):
        envs.step([action, 0, 0] if isinstance(action, int) else action)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"role": "xplayr"}, "did you mean xplayer"),
        ({"opponent": "egredy"}, "did you mean egreedy"),
        ({"opponent": {"oplayr": "random"}}, "did you mean oplayer"),
        ({"render_mode": "film"}, "expected the setting render_mode to be"),
        ({"observation": "pixels"}, "expected the setting observation to be"),
    ],
)
def test_mistakes_are_told(options: dict[str, Any], message: str) -> None:
    for make in (GameEnv, GameVectorEnv):
        with pytest.raises(GameloreError, match=message):
            make("tictactoe", **options)


def test_learners_need_whole_matches() -> None:
    with pytest.raises(GameloreError, match="expected players that need only a position, got baseline"):
        GameVectorEnv("tictactoe", 2, opponent="baseline")


def test_positions_are_rendered_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    env = GameEnv("tictactoe", render_mode="human")
    env.reset(seed=0)
    assert "(control xplayer)" in capsys.readouterr().out
    envs = GameVectorEnv("tictactoe", 2, render_mode="ansi")
    envs.reset(seed=0)
    texts = envs.render()
    assert texts is not None
    assert len(texts) == 2
