"""Measure the strength and speed of UCT: `python benchmarks/uct.py`, on one thread, in process CPU time; 1-2 minutes.

Strength: matches against the egreedy opponent of Banerjee & Stone, half in each role, and against itself; with the
default number of playouts per leaf, and with one, as in textbooks. Intervals of shares are exact, at 95 %
(Clopper-Pearson).

Speed: simulations per second from the first position of connect four, beside OpenSpiel's MCTS in C++ if that is
installed (with its default of one playout per simulation, on a board of 7 x 6; ours is 8 x 6).
"""

from __future__ import annotations

import time
from collections import Counter
from importlib.util import find_spec

import numpy as np
import typer

import gamelore
from gamelore.catalogue import play_matches
from gamelore.lab.stats import share_interval
from gamelore.players.random_streams import extend, stream
from gamelore.players.uct import SearchSettings, search

MATCHES = 200
SIMULATIONS = 1000


def results(name: str, players: list[str], matches: int, seat: int) -> Counter[str]:
    """Play matches, and count wins, draws and losses of the player of a seat."""
    words = {100: "wins", 50: "draws", 0: "losses"}
    played = play_matches(gamelore.load(name), players, matches)
    return Counter(words[record.goals[seat] or 0] for record in played)


def show(title: str, counts: Counter[str], of: str, start: float) -> None:
    matches = counts.total()
    share = share_interval(counts[of], matches)
    results = ", ".join(f"{counts[word]} {word}" for word in ("wins", "draws", "losses"))
    interval = f"{of} {share.mean:.1%} [{share.low:.1%}, {share.high:.1%}]"
    print(f"{title:64} {matches} matches: {results}; {interval}; {time.process_time() - start:.1f} s", flush=True)


def against_egreedy(name: str, uct: str) -> None:
    start, half = time.process_time(), MATCHES // 2
    counts = results(name, [uct, "egreedy"], half, 0) + results(name, ["egreedy", uct], MATCHES - half, 1)
    show(f"{name}: {uct} against egreedy", counts, "wins", start)


def against_itself(name: str, uct: str) -> None:
    start = time.process_time()
    show(f"{name}: {uct} against itself", results(name, [uct, uct], MATCHES, 0), "draws", start)


def our_speed(name: str, lanes: int, playouts: int) -> None:
    game = gamelore.load(name, engine="native")
    states, keys = np.tile(game.initial, (lanes, 1)), extend(stream(1), np.arange(lanes))
    search(game, states, keys, SearchSettings(simulations=16))  # compiles what is needed
    start = time.process_time()
    search(game, states, keys, SearchSettings(simulations=SIMULATIONS, playouts=playouts))
    rate = lanes * SIMULATIONS / (time.process_time() - start)
    title = f"{name}: {_number(lanes, 'tree')} at once, {_number(playouts, 'playout')} a simulation"
    print(f"{title:64} {rate:,.0f} simulations/s, {playouts * rate:,.0f} playouts/s", flush=True)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def their_speed(name: str) -> None:
    import pyspiel

    game, simulations = pyspiel.load_game(name), 20 * SIMULATIONS
    bot = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(1, 1), 2.0, simulations, 1000, False, 1, False)
    start = time.process_time()
    bot.mcts_search(game.new_initial_state())
    rate = simulations / (time.process_time() - start)
    print(f"{'OpenSpiel ' + name + ': 1 tree, 1 playout a simulation':64} {rate:,.0f} simulations/s", flush=True)


def main() -> None:
    """Measure the strength and speed of UCT, for one to two minutes."""
    for uct in (f"uct:simulations={SIMULATIONS}", f"uct:simulations={SIMULATIONS},playouts=1"):
        against_egreedy("connectfour", uct)
        against_itself("tictactoe", uct)
    for lanes, playouts in ((1, 4), (200, 4), (1, 1), (200, 1)):
        our_speed("connectfour", lanes, playouts)
    if find_spec("pyspiel") is not None:
        their_speed("connect_four")


if __name__ == "__main__":
    typer.run(main)
