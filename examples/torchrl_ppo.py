"""A PPO loop of TorchRL learns Connect3 against the egreedy opponent of Banerjee & Stone. About a minute.

pip install torch --index-url https://download.pytorch.org/whl/cpu      # first: the build without CUDA
pip install torchrl "gamelore[envs]"
python examples/torchrl_ppo.py
"""

import gymnasium
import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.envs import GymWrapper
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import gamelore.envs  # noqa: F401  # registers the games

UPDATES, STEPS, EPOCHS = 30, 1024, 4


class Flat(nn.Module):
    """A network with one hidden layer on all facts of a position."""

    def __init__(self, facts: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(facts, 128), nn.Tanh(), nn.Linear(128, outputs))

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.layers(observation.float())


def mean_reward(env: GymWrapper, actor: ProbabilisticActor, episodes: int = 200) -> float:
    """Return the mean reward of the actor's moves, from 0 (all lost) to 1 (all won)."""
    with torch.no_grad():
        played = [env.rollout(100, actor) for _ in range(episodes)]
    return sum(float(episode["next", "reward"].sum()) for episode in played) / episodes


def collected(env: GymWrapper, actor: ProbabilisticActor) -> TensorDictBase:
    """Return STEPS steps of the actor, over as many episodes as that takes."""
    with torch.no_grad():
        return env.rollout(STEPS, actor, break_when_any_done=False)


def main() -> None:
    torch.manual_seed(1)
    game = gymnasium.make("gamelore/connect3-v0", opponent="egreedy", observation="facts").unwrapped
    env = GymWrapper(game, categorical_action_encoding=True)
    env.auto_register_info_dict()  # "action_mask" comes with every step
    env.set_seed(1)
    facts, moves = game.observation_space.shape[0], int(game.action_space.n)
    logits = TensorDictModule(Flat(facts, moves), in_keys=["observation"], out_keys=["logits"])
    mask = TensorDictModule(lambda mask: mask.bool(), in_keys=["action_mask"], out_keys=["mask"])
    actor = ProbabilisticActor(
        TensorDictSequential(logits, mask), in_keys=["logits", "mask"], out_keys=["action"],
        distribution_class=MaskedCategorical, return_log_prob=True,
    )  # fmt: skip
    critic = ValueOperator(Flat(facts, 1), in_keys=["observation"])
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    advantage = GAE(gamma=1.0, lmbda=0.95, value_network=critic)
    optimiser = torch.optim.Adam(loss.parameters(), lr=1e-3)
    before = mean_reward(env, actor)
    for _ in range(UPDATES):
        steps = collected(env, actor)
        for _ in range(EPOCHS):
            advantage(steps)
            for part in steps.reshape(-1)[torch.randperm(STEPS)].split(256):
                losses = loss(part)
                optimiser.zero_grad()
                sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
                optimiser.step()
    print(f"mean reward before {before:.2f}, after {UPDATES * STEPS} steps {mean_reward(env, actor):.2f}")


if __name__ == "__main__":
    main()
