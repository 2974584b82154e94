"""Speed of environments, beside PettingZoo's, pgx's and OpenSpiel's: `python benchmarks/environments.py`.

    python benchmarks/environments.py --repeats 3 --json
    python benchmarks/environments.py --pgx ~/pgx/bin/python     # an environment with pgx and jax, if this one has none

Every program runs on one core with one thread, and its CPU time counts. A step is a ply. Each side draws a random legal
move its fastest way, has fresh legal moves and observations at every step, and begins a new match when one is over:

- gamelore: `GameBatch`, moves from `sample()`, observations as planes; also with moves that numpy draws from the masks;
  and `GameVectorEnv` against a random opponent, where a step is that of the agent (two plies in a game of turns).
- PettingZoo: `raw_env()` of tictactoe and connect_four with `last()`, moves drawn from the mask by the action space.
- pgx: a compiled loop (`jax.lax.scan`) that draws from the mask by `jax.random.categorical`, with `auto_reset`.
- OpenSpiel: microseconds for `legal_actions` and `apply_action` of gamelore's games, and of `python_tic_tac_toe`.

Boards have equal sizes: connect four has 7 columns and 6 rows everywhere. Programs that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

BATCHES = (512, 4096)
GAMES = {"tictactoe": ("tictactoe_v3", "tic_tac_toe"), "connectfour": ("connect_four_v3", "connect_four")}
"""Game -> its names in PettingZoo and in pgx."""
PGX = """
import os, sys, time
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import jax, jax.numpy as jnp, pgx
from pgx.experimental import auto_reset
name, num, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
env = pgx.make(name)
step = jax.vmap(auto_reset(env.step, env.init))
def one(carry, key):
    state, total = carry
    action = jax.random.categorical(key, jnp.where(state.legal_action_mask, 0.0, -jnp.inf), axis=-1)
    state = step(state, action, jax.random.split(key, num))
    return (state, total + state.observation.sum() + state.legal_action_mask.sum() + state.rewards.sum()), None
@jax.jit
def run(carry, keys):
    return jax.lax.scan(one, carry, keys)[0]
state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(0), num))
keys = jax.random.split(jax.random.PRNGKey(1), 64)
carry = jax.block_until_ready(run((state, jnp.float32(0)), keys))
steps, begin = 0, time.process_time()
while time.process_time() - begin < seconds:
    carry = jax.block_until_ready(run(carry, keys))
    steps += 64 * num
print(steps / (time.process_time() - begin))
"""


def rate(step: Callable[[], int], seconds: float) -> float:
    """Return the number of steps in a CPU-second; `step` makes some, and returns how many."""
    for _ in range(20):
        step()
    steps, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < seconds:
        steps += step()
    return steps / spent


def batch(game: str, num: int, *, native: bool) -> Callable[[], int]:
    """Return a function that makes a ply in all lanes."""
    from gamelore.envs import GameBatch

    lanes, rng = GameBatch(game, num), np.random.default_rng(0)

    def drawn() -> Any:
        """Draw the moves of both roles by numpy: the best of random numbers for the legal ones."""
        wish = (1 - rng.random(lanes.mask.shape, np.float32)) * lanes.mask  # above 0 for legal moves
        return np.stack([own.start + wish[:, own.start : own.stop].argmax(axis=1) for own in lanes.actions], axis=1)

    def step() -> int:
        lanes.step(lanes.sample() if native else drawn(), fresh=lanes.is_over)
        return num

    return step


def vector(game: str, num: int) -> Callable[[], int]:
    """Return a function that makes a step of agents against random opponents."""
    from gamelore.envs import GameVectorEnv

    envs = GameVectorEnv(game, num, copy=False)
    envs.reset(seed=0)

    def step() -> int:
        envs.step(envs.sample())
        return num

    return step


def pettingzoo(name: str) -> Callable[[], int]:
    """Return a function that plays a match in PettingZoo's environment."""
    env = import_module(f"pettingzoo.classic.{name}").raw_env()

    def step() -> int:
        env.reset()
        steps = 0
        for agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                return steps
            env.step(env.action_space(agent).sample(observation["action_mask"]))
            steps += 1
        return steps

    return step


def pgx(python: str, name: str, num: int, seconds: float) -> float:
    """Return the steps a second of pgx, in a process of its own on the same core."""
    done = subprocess.run([python, "-c", PGX, name, str(num), str(seconds)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def spiel_matches(game: Any) -> Callable[[], int]:
    """Return a function that plays a match in OpenSpiel."""
    rng = random.Random(1)

    def step() -> int:
        state, steps = game.new_initial_state(), 0
        while not state.is_terminal():
            state.apply_action(rng.choice(state.legal_actions()))
            steps += 1
        return steps

    return step


def measured(game: str, python: str, seconds: float) -> dict[str, float]:
    """Return steps a second by program and batch."""
    in_zoo, in_pgx = GAMES[game]
    rates: dict[str, float] = {}
    for num in BATCHES:
        rates[f"gamelore GameBatch, {num}"] = rate(batch(game, num, native=True), seconds)
        rates[f"gamelore GameBatch, {num}, moves by numpy"] = rate(batch(game, num, native=False), seconds)
        rates[f"gamelore GameVectorEnv, {num}"] = rate(vector(game, num), seconds)
        if python:
            rates[f"pgx, {num}"] = pgx(python, in_pgx, num, seconds)
    if find_spec("pettingzoo") and find_spec("pygame"):  # its classic games draw with pygame
        rates["PettingZoo raw_env()"] = rate(pettingzoo(in_zoo), seconds)
    return rates


def spiel_times(seconds: float) -> dict[str, float]:
    """Return microseconds for a move in OpenSpiel by game."""
    if not find_spec("pyspiel"):
        return {}
    import_module("open_spiel.python.games.tic_tac_toe")  # registers the game
    import pyspiel

    from gamelore.envs import open_spiel_game

    games = {f"gamelore {name}": open_spiel_game(name) for name in GAMES}
    games |= {name: pyspiel.load_game(name) for name in ("python_tic_tac_toe", "tic_tac_toe", "connect_four")}
    return {name: 1e6 / rate(spiel_matches(game), seconds) for name, game in games.items()}


def main() -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time of each measurement (default: 1)")
    parser.add_argument("--repeats", type=int, default=3, help="measurements, of which the median counts (default: 3)")
    parser.add_argument("--pgx", default=sys.executable if find_spec("pgx") else "", help="a Python that has pgx")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rounds = [
        {**{game: measured(game, given.pgx, given.seconds) for game in GAMES}, "spiel": spiel_times(given.seconds)}
        for _ in range(given.repeats)
    ]
    report = {
        part: {name: statistics.median(each[part][name] for each in rounds) for name in rounds[0][part]}
        for part in rounds[0]
    }
    if given.json:
        print(json.dumps(report, indent=2))
        return
    for game in GAMES:
        print(f"\n{game}: thousand steps in a CPU-second")
        for name, steps in sorted(report[game].items(), key=lambda item: -item[1]):
            print(f"  {name:44} {steps / 1000:12,.1f}")
    print("\nOpenSpiel: microseconds for legal_actions and apply_action")
    for name, microseconds in report["spiel"].items():
        print(f"  {name:44} {microseconds:12.1f}")


if __name__ == "__main__":
    main()
