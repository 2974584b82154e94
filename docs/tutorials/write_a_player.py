# %% [markdown]
# # Write a player
#
# A player is a function of a position and a role, which returns one of the role's legal moves. This one wins at once
# if it can, and otherwise takes the first move.

# %%
import gamelore


def greedy(position, role):
    others = {name: moves[0] for name, moves in position.legal.items()}  # roles that wait have one move, noop

    def goal_after(move):
        following = position.play(others | {role: move})
        return following.goals[role] if following.is_terminal else 50

    return max(position.legal[role], key=goal_after)


matches = gamelore.play("connect3", [greedy, "random"], matches=100, seed=1)
print(matches)

# %% [markdown]
# A match is a sequence of positions, each of which draws itself. The last one of the first match:

# %%
matches[0][-1]

# %% [markdown]
# With state of its own, or with options, a player is a class. `PositionPlayer` asks for the same function as a
# method.

# %%
import numpy as np


class Hesitant(gamelore.PositionPlayer):
    """Plays greedily, but now and then at random."""

    def __init__(self, share: float) -> None:
        self.share, self.generator = share, np.random.default_rng(7)

    def move(self, position, role):
        if self.generator.random() < self.share:
            return str(self.generator.choice(position.legal[role]))
        return greedy(position, role)


rated = gamelore.tournament(
    "connect3", {"greedy": greedy, "hesitant": Hesitant(0.5), "random": "random"}, matches=20, seed=1
)
print(rated)

# %% [markdown]
# To take the first move is no better than to play at random now and then: the intervals of the two overlap. The
# ratings are Elo's, by maximum likelihood, with intervals; the advantage of moving first is a part of the model.

# %%
rated.plot()
