# %% [markdown]
# # Train a neural agent
#
# A small network learns tic-tac-toe by policy gradient (REINFORCE, Williams 1992), in numpy alone. The matches are
# played by `GameVectorEnv`: 256 of them make a step in one call, in machine code, and each begins anew as soon as it
# is over. Any other game of `gamelore games`, or a rulesheet of your own, takes its place in the first line.

# %%
import matplotlib.pyplot as plt
import numpy as np

import gamelore
from gamelore.envs import GameVectorEnv

env = GameVectorEnv("tictactoe", 256, opponent="random", observation="facts", autoreset_mode="SAME_STEP")
print(env.observation.describe().splitlines()[0])
print(env.observation.meanings[:4], "..")
print(env.moves)

# %% [markdown]
# An observation is a row of facts that hold (1) or do not (0). An action is the number of a move, and
# `info["action_mask"]` tells the legal ones. The network has one hidden layer; illegal moves get probability 0.

# %%
generator = np.random.default_rng(1)
num_facts, num_moves, num_hidden = len(env.observation.meanings), len(env.moves), 64
first = generator.normal(0, num_facts**-0.5, (num_facts, num_hidden))
second = np.zeros((num_hidden, num_moves))


def policy(facts, mask):
    hidden = np.tanh(facts @ first)
    weights = np.where(mask, np.exp(hidden @ second), 0)
    return hidden, weights / weights.sum(axis=1, keepdims=True)


# %% [markdown]
# An update plays 16 steps of all matches. Each choice is credited with the result of its match, compared with the
# mean result. Choices of matches that are not over yet do not count.

# %%
STEPS, RATE = 16, 5.0


def played(facts, info):
    """Return the steps, and the observation and info after them."""
    steps = []
    for _ in range(STEPS):
        hidden, chances = policy(facts, info["action_mask"] == 1)
        actions = (chances.cumsum(axis=1) > generator.random((len(chances), 1))).argmax(axis=1)
        following, rewards, ended, truncated, info = env.step(actions)
        steps.append((facts, hidden, chances, actions, rewards, ended | truncated))
        facts = following
    return [np.array(part) for part in zip(*steps, strict=True)], facts, info


def credited(rewards, is_over):
    """Return the result of the match of each step, and whether it is over within these steps."""
    results, is_known = np.zeros_like(rewards), np.zeros_like(is_over)
    result, known = np.zeros(env.num_envs), np.zeros(env.num_envs, bool)
    for step in reversed(range(STEPS)):
        result, known = np.where(is_over[step], rewards[step], result), known | is_over[step]
        results[step], is_known[step] = result, known
    return results, is_known


facts, info = env.reset(seed=1)
curve = []
for _ in range(150):
    (seen, hidden, chances, actions, rewards, is_over), facts, info = played(facts, info)
    results, counts = credited(rewards, is_over)
    advantages = np.where(counts, results - results[counts].mean(), 0)[..., None] / counts.sum()
    slopes = (np.eye(num_moves)[actions] - chances) * advantages  # of the logarithms of the chances
    changes = (
        np.einsum("slh,slm->hm", hidden, slopes),
        np.einsum("slf,slh->fh", seen, (slopes @ second.T) * (1 - hidden**2)),
    )
    second += RATE * changes[0]
    first += RATE * changes[1]
    curve.append(rewards[is_over].mean())

figure, axes = plt.subplots(figsize=(7, 3))
axes.plot(curve)
axes.set(xlabel="update", ylabel="mean result", title=f"against random, {len(curve) * STEPS * env.num_envs:,} steps")
figure

# %% [markdown]
# The network becomes a player as any function of a position does. `observe` makes the same row of facts of it.

# %%


def network(position, role):
    row = env.observation.observe(position.state[None])
    mask = np.array([[move in position.legal[role] for move in env.moves]])
    return env.moves[policy(row, mask)[1].argmax()]


for opponent in ("random", "egreedy", "perfect"):
    print(opponent, gamelore.play("tictactoe", [network, opponent], matches=200, seed=1).mean_goals)

# %% [markdown]
# It has learned to beat the opponent that it met, and not to defend itself against one that does not err. `opponent=`
# takes any player, also a function such as `network`, and so it can play against earlier versions of itself.
#
# Libraries take the rest off your hands: [MaskablePPO of sb3-contrib](https://sb3-contrib.readthedocs.io) and
# [TorchRL](https://docs.pytorch.org/rl) learn Connect3 in a minute, see `examples/maskable_ppo.py` and
# `examples/torchrl_ppo.py`.
