# %% [markdown]
# # A match over the network
#
# Programs for general game playing speak a common protocol (GGP): a *game manager* sends the rules of a game, then
# the moves that were made, and a *player* answers with its move. `gamelore serve` is such a player, `gamelore host`
# such a manager, and both play with the programs of others. Usually each has a terminal of its own; here a script
# starts them.

# %%
import subprocess

PORT = "19147"  # any free one
player = subprocess.Popen(
    ["gamelore", "serve", "--player", "gamelore", "--port", PORT, "--no-learn"],
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
)  # fmt: skip
print(player.stdout.readline().strip())

# %% [markdown]
# The player listens on this machine only, and has compiled the code that all games share before it says so. Now the
# manager: four matches of tic-tac-toe against a player of its own, with five seconds to prepare and two for each
# move.

# %%
host = [
    "gamelore", "host", "tictactoe",
    "--player", f"xplayer=http://127.0.0.1:{PORT}", "--player", "oplayer=uct:simulations=100",
    "--startclock", "5", "--playclock", "2", "--matches", "4", "--record", "series",
]  # fmt: skip
ran = subprocess.run(host, capture_output=True, text=True)
print(ran.stdout)

# %% [markdown]
# The player needs no rulesheet: it got the rules in the first message, solved the game in the startclock, and cannot
# lose any more. Each match is a file in the folder `series`. `gamelore replay` plays the records again and compares
# every position:

# %%
print(subprocess.run(["gamelore", "replay", "series"], capture_output=True, text=True).stdout)

# %% [markdown]
# Nothing is lost if the manager is interrupted: the same command continues the series. The player ends with Ctrl-C:

# %%
player.terminate()
print(player.communicate(timeout=30)[0])

# %% [markdown]
# [Matches over the network](../network.md) tells the rest: learners that remember from match to match, players of
# your own, clocks, safety, and how programs of others are compared at equal time.
