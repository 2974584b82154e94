"""PettingZoo: its own checks on shipped games and on 20 public sheets, and what the agents see and get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test

import gamelore
from gamelore import GameloreError, IllegalMoveError
from gamelore.envs import GameAECEnv, GameParallelEnv, aec_env, parallel_env
from public_sheets import PUBLIC

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")  # recommendations, such as names `player_0`


def check(source: str | Path, cycles: int = 60) -> None:
    """Run all checks of PettingZoo."""
    game = gamelore.load(source)
    api_test(aec_env(game), num_cycles=cycles)
    parallel_api_test(parallel_env(game), num_cycles=cycles)
    seed_test(lambda: aec_env(game), num_cycles=cycles)
    parallel_seed_test(lambda: parallel_env(game), num_cycles=cycles)
    render_test(lambda **options: aec_env(game, **options))


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "tictactoe3p", "pegsolitaire"])
def test_pettingzoo_checks_a_shipped_game(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", PUBLIC)
def test_pettingzoo_checks_a_public_game(shared: Path, name: str) -> None:
    check(shared / "games" / f"{name}.kif", 20)


def test_agents_take_turns_and_get_their_goals() -> None:
    env = GameAECEnv("tictactoe")
    env.reset()
    asked = []
    for action in (0, 3, 1, 4, 2):
        asked.append(env.agent_selection)
        assert env.observe(env.agent_selection)["action_mask"][action]
        waiting = next(agent for agent in env.agents if agent != env.agent_selection)
        assert not env.observe(waiting)["action_mask"].any()
        env.step(action)
    assert asked == ["xplayer", "oplayer", "xplayer", "oplayer", "xplayer"]
    assert env.rewards == {"xplayer": 1.0, "oplayer": 0.0}
    assert env.terminations == {"xplayer": True, "oplayer": True}
    assert env.position.goals == {"xplayer": 100, "oplayer": 0}


def test_roles_that_choose_at_the_same_time_do_not_see_each_other() -> None:
    env = GameAECEnv("goofspiel")
    env.reset()
    before = env.observe("red")["observation"]
    env.step(int(np.argmax(env.observe("red")["action_mask"])))
    assert env.agent_selection == "blue"
    assert (env.observe("blue")["observation"] == before).all()
    env.step(int(np.argmax(env.observe("blue")["action_mask"])))
    assert (env.observe("red")["observation"] != before).any()


def test_both_kinds_of_environments_play_the_same_matches() -> None:
    rng = np.random.default_rng(0)
    aec, parallel = GameAECEnv("goofspiel"), GameParallelEnv("goofspiel")
    aec.reset()
    observed, _ = parallel.reset()
    rewards: dict[str, float] = {}
    while parallel.agents:
        actions = {agent: int(rng.choice(np.flatnonzero(own["action_mask"]))) for agent, own in observed.items()}
        observed, rewards, *_ = parallel.step(actions)
        for agent in aec.possible_agents:
            aec.step(actions[agent])
        for agent in aec.possible_agents:
            assert (aec.observe(agent)["observation"] == observed[agent]["observation"]).all()
    assert aec.rewards == rewards


def test_steps_need_a_match() -> None:
    for env in (GameAECEnv("tictactoe"), GameParallelEnv("tictactoe")):
        with pytest.raises(GameloreError, match="expected `reset` before the first `step` and after"):
            env.step({"xplayer": 0, "oplayer": 9} if isinstance(env, GameParallelEnv) else 0)


def test_illegal_and_wrong_actions() -> None:
    env = GameAECEnv("tictactoe")
    env.reset()
    env.step(0)
    with pytest.raises(IllegalMoveError, match="expected a legal move of oplayer, got action 0"):
        env.step(0)
    for action in (-1, 10, 1.0, "1"):
        with pytest.raises(GameloreError, match="expected an action of oplayer from 0 to 9"):
            env.step(action)
    wrapped: Any = aec_env("tictactoe")
    wrapped.reset()
    wrapped.step(0)
    wrapped.step(0)
    assert wrapped.rewards == {"xplayer": 0, "oplayer": -1.0}
    both = GameParallelEnv("tictactoe")
    both.reset()
    both.step({"xplayer": 0, "oplayer": 9})
    _, rewards, terminated, _, infos = both.step({"xplayer": 9, "oplayer": 0})
    assert rewards == {"xplayer": 0.0, "oplayer": 0.0}
    assert terminated == {"xplayer": True, "oplayer": True}
    assert infos == {"xplayer": {}, "oplayer": {"illegal_action": "(mark 1 1)"}}
    strict = GameParallelEnv("tictactoe", illegal="raise")
    strict.reset()
    strict.step({"xplayer": 0, "oplayer": 9})
    with pytest.raises(GameloreError, match="expected actions of all agents, got none of oplayer; add them"):
        strict.step({"xplayer": 9})
    with pytest.raises(IllegalMoveError, match="expected a legal move of oplayer"):
        strict.step({"xplayer": 9, "oplayer": 0})
    assert strict.agents == ["xplayer", "oplayer"]
