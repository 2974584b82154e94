"""A tournament in PettingZoo: policies that see arrays only, all against all in Connect3. Some seconds.

pip install "gamelore[envs]"
python examples/pettingzoo_tournament.py
"""

from collections.abc import Callable
from itertools import permutations

import numpy as np

from gamelore.envs import aec_env

MATCHES = 40
Policy = Callable[[dict[str, np.ndarray], np.random.Generator], int]


def uniform(seen: dict[str, np.ndarray], generator: np.random.Generator) -> int:
    return int(generator.choice(np.flatnonzero(seen["action_mask"])))


def leftmost(seen: dict[str, np.ndarray], generator: np.random.Generator) -> int:
    return int(np.flatnonzero(seen["action_mask"])[0])


def central(seen: dict[str, np.ndarray], generator: np.random.Generator) -> int:
    legal = np.flatnonzero(seen["action_mask"])
    return int(legal[np.argmin(abs(legal - legal.mean()))])


POLICIES: dict[str, Policy] = {"uniform": uniform, "leftmost": leftmost, "central": central}


def main() -> None:
    env, generator = aec_env("connect3"), np.random.default_rng(1)
    points = dict.fromkeys(POLICIES, 0.0)
    for seats in permutations(POLICIES, 2):
        for _ in range(MATCHES):
            env.reset()
            seat_of = dict(zip(env.possible_agents, seats, strict=True))
            for agent in env.agent_iter():
                seen, reward, terminated, truncated, _ = env.last()
                if terminated or truncated:
                    points[seat_of[agent]] += reward
                    env.step(None)
                else:
                    env.step(POLICIES[seat_of[agent]](seen, generator))
    for name, total in sorted(points.items(), key=lambda item: -item[1]):
        print(f"{name:10} mean reward {total / (4 * MATCHES):+.2f}")


if __name__ == "__main__":
    main()
