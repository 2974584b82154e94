"""Measure the search of the player gamelore: `python benchmarks/search.py`, on one thread, in process CPU time.

Completed simulations per CPU-second with the player's own settings, over the first CPU-second of a new tree: from the
first state (the median of five trees), and from ten positions in the middle of random matches (their median and range).
The search uses the value that teaching has found before, and informed playouts where its trial has decided for them
(see docs/search.md); the first state is also measured without a value. Beside it the size of the tree, and OpenSpiel's
MCTS in C++ from the first state, if that is installed (one playout a simulation; connect four on a board of 7 x 6, ours
is 8 x 6). All code is loaded before.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

import gamelore
from gamelore.game.game import Game
from gamelore.players.random_streams import stream
from gamelore.search.settings import ChampionSettings, GrowthSettings, TeachingSettings
from gamelore.search.teaching import Teacher
from gamelore.search.thinking import Search
from gamelore.search.value import LinearValue

GAMES = {  # sheet -> game of OpenSpiel, and the wanted simulations per CPU-second
    "connectFour": ("connect_four", 500_000),
    "breakthrough": ("breakthrough", 400_000),
    "reversi": ("othello", 400_000),
    "checkers": ("checkers", 180_000),
    "chess": ("chess", None),
}
POSITIONS, TREES = 10, 5
PRACTICE = 2000  # walks that load all code
SECOND = 1.0
LESSON = 24_000_000  # simulations, enough for a trial of informed playouts, if there is one


def middle(game: Game, number: int) -> NDArray[np.uint64]:
    """Return a position half way through a random match, uint64[words]."""
    rng = np.random.default_rng(number)
    states = [game.start()]
    while not states[-1].is_terminal:
        moves = [str(rng.choice(legal)) for legal in states[-1].legal.values()]
        states.append(states[-1].play(moves))
    return states[len(states) // 2].state


def taught(game: Game, simulations: int) -> tuple[LinearValue | None, GrowthSettings]:
    """Return what the player learns about a game with so many simulations, and how it searches then."""
    teacher = Teacher(game, stream(1), ChampionSettings().growth, TeachingSettings(simulations=simulations))
    teacher.teach()
    return teacher.value, teacher.growth


def first_rate(search: Search, value: LinearValue | None) -> tuple[float, int]:
    """Return (median of simulations per CPU-second from the first state, nodes of the last tree)."""
    for _ in range(2):
        search.begin(search.game.initial, stream(0), value)
        search.run(PRACTICE)
    readings = [rate(search, search.game.initial, number, value) for number in range(TREES)]
    return float(np.median([each for each, _ in readings])), readings[-1][1]


def rate(search: Search, state: NDArray[np.uint64], number: int, value: LinearValue | None) -> tuple[float, int]:
    """Return (simulations per CPU-second, nodes) of the first CPU-second, or until the root is proved."""
    search.begin(state, stream(number), value)
    start, done = time.process_time(), 0
    while (spent := time.process_time() - start) < SECOND and not search.is_proved:
        done += search.run(deadline=time.monotonic() + SECOND - spent)
    return done / max(spent, 1e-9), search.num_nodes


def theirs(name: str) -> float:
    """Return OpenSpiel's simulations per CPU-second."""
    import pyspiel

    game, simulations = pyspiel.load_game(name), 2000
    while True:
        bot = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(1, 1), 2.0, simulations, 1000, False, 1, False)
        start = time.process_time()
        bot.mcts_search(game.new_initial_state())
        spent = time.process_time() - start
        if spent >= SECOND / 2:
            return simulations / spent
        simulations = int(simulations * max(2.0, SECOND / max(spent, 1e-3)))


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"names of sheets: {', '.join(GAMES)}; all by default")
    ] = None,
    sheets: Annotated[Path, typer.Option(help="folder of the public rulesheets")] = Path("../shared/games"),
    teaching: Annotated[
        int, typer.Option(min=1, help="simulations of teaching; chess needs hours for the default")
    ] = LESSON,
) -> None:
    """Measure simulations per CPU-second of the player gamelore, beside OpenSpiel."""
    for name in names or []:
        if name not in GAMES:
            raise typer.BadParameter(f"expected one of {', '.join(GAMES)}, got {name!r}")
    settings = ChampionSettings()
    print(f"settings: {settings.growth}")
    print(
        f"{'game':14} {'first state':>12} {'nodes':>9} {'ten positions':>28} {'informed':>8} {'no value':>12} "
        f"{'wanted':>9} {'OpenSpiel':>10}"
    )
    for name in names or list(GAMES):
        peer, wanted = GAMES[name]
        game = gamelore.load(sheets / f"{name}.kif")
        without, _ = first_rate(Search(game, settings.growth), None)
        value, growth = taught(game, teaching)
        search = Search(game, growth)
        first, nodes = first_rate(search, value)
        rates = sorted(rate(search, middle(game, number), number, value)[0] for number in range(POSITIONS))
        median = f"{np.median(rates):,.0f} [{rates[0]:,.0f}, {rates[-1]:,.0f}]"
        peers = f"{theirs(peer):,.0f}" if find_spec("pyspiel") else "-"
        print(
            f"{name:14} {first:12,.0f} {nodes:9,} {median:>28} {growth.informed or 0:8.0%} {without:12,.0f} "
            f"{wanted or '-':>9} {peers:>10}",
            flush=True,
        )


if __name__ == "__main__":
    typer.run(main)
