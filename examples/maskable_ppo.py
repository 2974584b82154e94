"""MaskablePPO of sb3-contrib learns Connect3 against the egreedy opponent of Banerjee & Stone. About a minute.

pip install torch --index-url https://download.pytorch.org/whl/cpu      # first: the build without CUDA
pip install sb3-contrib "gamelore[envs]"
python examples/maskable_ppo.py
"""

import gymnasium
from sb3_contrib import MaskablePPO

import gamelore.envs

STEPS = 30_000


def mean_reward(model: MaskablePPO, env: gamelore.envs.GameEnv, episodes: int = 200) -> float:
    """Return the mean reward of the model's best actions, from 0 (all lost) to 1 (all won)."""
    total = 0.0
    for episode in range(episodes):
        observation, info = env.reset(seed=episode)
        is_over = False
        while not is_over:
            action, _ = model.predict(observation, action_masks=info["action_mask"] == 1, deterministic=True)
            observation, reward, terminated, truncated, info = env.step(int(action))
            is_over = terminated or truncated
        total += float(reward)
    return total / episodes


def main() -> None:
    env = gymnasium.make("gamelore/connect3-v0", opponent="egreedy").unwrapped
    model = MaskablePPO("MlpPolicy", env, seed=1, n_steps=1024, batch_size=256)
    before = mean_reward(model, env)
    model.learn(STEPS)
    print(f"mean reward before {before:.2f}, after {STEPS} steps {mean_reward(model, env):.2f}")


if __name__ == "__main__":
    main()
