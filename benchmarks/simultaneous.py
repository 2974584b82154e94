"""Measure how far the search can be exploited: `python benchmarks/simultaneous.py goofspiel --cards 4`.

In every position of the game in which several roles choose, the search of the player `gamelore` is asked for its mixed
strategy, in a tree of its own, with `--simulations` walks. Against these strategies of one role, the exact best
response of the other role is computed (solver/best_response.py). The exploitability is the mean over both roles of the
best response's goal, minus half of the sum of the goals, in points of 100. It is 0 for an equilibrium.

`--cards N` plays goofspiel with N cards (prizes in rising order) instead of the five of the shipped sheet. A row is
printed for each rule of `GrowthSettings.joint` and each number of simulations: mean, least and largest of the seeds.
"""

from __future__ import annotations

import re
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

import gamelore
from gamelore.game.game import Game
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.rulesheets import path
from gamelore.search.settings import GrowthSettings, Joint
from gamelore.search.thinking import Search
from gamelore.solver.best_response import BestResponse, expand_all

HEAD = "| rule | simulations | exploitability | least | largest |\n|---|---|---|---|---|"
MEMORY_MIB = 64


class Searched:
    """The strategies of the search in all positions, as a `Memoryless` player."""

    def __init__(self, graph: PositionGraph, settings: GrowthSettings, simulations: int, seed: int) -> None:
        self._strategies: dict[tuple[int, int], list[float]] = {}
        search = Search(graph.game, settings, MEMORY_MIB)
        for row in np.flatnonzero((graph.num_moves > 1).any(axis=1)).tolist():
            key = stream(seed, row)
            search.begin(graph.states[row], key)
            search.run(simulations)
            for role in range(graph.game.num_roles):
                self._strategies[row, role] = played(search, role, key)

    def distribution(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        """See `Memoryless.distribution`."""
        return np.concatenate([np.zeros(0), *(self._strategies[row, role] for row in rows.tolist())])


def played(search: Search, role: int, key: np.uint64) -> list[float]:
    """Return the probabilities with which a search makes the moves of a role."""
    strategy = search.strategy(role)
    if strategy is None:
        strategy = [0.0] * len(search.moves(role))
        strategy[search.choice(role, key)] = 1.0
    return strategy


def exploitability(graph: PositionGraph, settings: GrowthSettings, simulations: int, seed: int) -> float:
    """Return the exploitability of the search in a game of two roles whose goals have the sum 100."""
    searched = Searched(graph, settings, simulations, seed)
    return float(np.mean([BestResponse(graph, role, searched).expected for role in range(2)]) - 50.0)


def goofspiel(num_cards: int) -> Game:
    """Return the shipped goofspiel with another number of cards."""
    text = path("goofspiel").read_text(encoding="utf-8")
    points = num_cards * (num_cards + 1) // 2
    for name, last in (("card", num_cards), ("number", points)):
        text = re.sub(rf"\({name} \d+\)\n", "", text) + "".join(
            f"({name} {i})\n" for i in range(name == "card", last + 1)
        )
    text = re.sub(r"\(count_up \d+ \d+\)\n", "", text)
    return gamelore.load(text + "".join(f"(count_up {i} {i + 1})\n" for i in range(points)))


def main(
    sheet: Annotated[str, typer.Argument(help="Name or file of a game for two roles, goals with the sum 100.")],
    cards: Annotated[int, typer.Option(min=2, help="Number of cards, for goofspiel.")] = 5,
    simulations: Annotated[str, typer.Option(help="Numbers of walks in each position.")] = "100,1000,10000",
    rules: Annotated[str, typer.Option(help="Rules of GrowthSettings.joint.")] = "uct,regret,exp3",
    mixing: Annotated[float, typer.Option(help="GrowthSettings.mixing.")] = GrowthSettings().mixing,
    optimism: Annotated[float, typer.Option(help="GrowthSettings.optimism.")] = GrowthSettings().optimism,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 3,
) -> None:
    """Print a row for each rule and each number of simulations."""
    game = goofspiel(cards) if sheet == "goofspiel" else gamelore.load(sheet)
    graph = PositionGraph(game)
    expand_all(graph)
    print(f"{game.name}: {graph.num_rows:,} positions\n\n{HEAD}", flush=True)
    names: list[Joint] = rules.split(",")  # type: ignore[assignment]
    for rule in names:
        settings = GrowthSettings(joint=rule, mixing=mixing, optimism=optimism)
        for number in map(int, simulations.split(",")):
            points = [exploitability(graph, settings, number, seed) for seed in range(seeds)]
            numbers = " | ".join(f"{value:.2f}" for value in (np.mean(points), min(points), max(points)))
            print(f"| {rule} | {number:,} | {numbers} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
