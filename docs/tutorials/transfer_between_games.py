# %% [markdown]
# # Transfer between games
#
# A learner of values plays tic-tac-toe, and takes what it learned into Connect3, whose board and moves are different.
# What the games share are features of game trees (Banerjee & Stone 2007): whether a position wins, is lost, or lets
# the other role win within two plies.

# %%
import gamelore

learned = gamelore.learn("tictactoe", matches=300, seed=1)
print(learned)

# %%
learned.plot_features()

# %% [markdown]
# Each tree is a pattern of outcomes below an afterstate, with the mean of the learned values of all afterstates that
# have it. In the next game, a new afterstate starts with the value of its pattern instead of zero.

# %%
carried = gamelore.learn("connect3", "transfer", sources=[learned], matches=300, seed=1)
alone = gamelore.learn("connect3", matches=300, seed=1)
print(f"first 50 matches: with transfer {carried.rewards[:50].mean():.1f}, without {alone.rewards[:50].mean():.1f}")

# %% [markdown]
# One series says little. An experiment repeats both and gives intervals; it also runs a learner that looks ahead
# two plies and knows nothing, without which a gain could be taken for knowledge when it only comes from the
# lookahead. Its opponent is the one that the paper's figures imply: where it has no decisive move it keeps to an
# order of moves that is drawn once for each run, while `egreedy` above plays at random there, and is harder to
# learn against.

# %%
tested = gamelore.transfer("tictactoe", ["connect3"], runs=5, matches=300, seed=1)
print(tested)

# %% [markdown]
# The gain is a mean difference of rewards, in points from 0 to 100. *Early* are the first tenth of the matches, of
# which the curve below shows more; the headline tells the rest, *late*. `tested.rows` has both, and the levels.

# %%
tested.plot("connect3")

# %% [markdown]
# A learner can keep its knowledge in a store, a file. Sources are then named by their games, and a second call
# continues where the first one ended.

# %%
store = gamelore.Knowledge("knowledge.db")
gamelore.learn("tictactoe", matches=300, store=store)
print(gamelore.learn("losetictactoe", "transfer", sources=["tictactoe"], matches=300, store=store))
for row in store.rows:
    print(row)
