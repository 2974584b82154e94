# %% [markdown]
# # Games and players by name
#
# `load`, `play`, `learn` and all commands take these names. This page is written by the library itself, each time that
# the site is built.
#
# ## Shipped games
#
# Every role has its name, and they are listed in the order in which lists of players and of moves are read. A colon
# gives options, as in `fivemensmorris:cap=80,flying=yes`. Any other rulesheet is loaded by its path.

# %%
import gamelore

for game in gamelore.list_games():
    print(f"{game.name}: {game.about}\n    roles: {', '.join(game.roles)}")
    moves = [move for several in gamelore.load(game.name).start().legal.values() for move in several]
    print(f"    moves: {', '.join(moves[:2])} ..")
    for option in game.options:
        others = ", ".join(choice for choice in option.choices if choice != option.value)
        print(f"    option {option.name}={option.value} (or {others})")

# %% [markdown]
# ## Players
#
# A colon gives options here, too: `uct:simulations=400`, `egreedy:epsilon=0.05`. `gamelore players` also lists `human`,
# who plays on the command line; `gamelore learn --help` explains the settings of learners.

# %%
for player in gamelore.list_players():
    print(f"{player.name}: {player.about}")
    if player.options:
        print(f"    options: {', '.join(player.options)}")
