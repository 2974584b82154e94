"""Measure what two cores are worth to the player gamelore: `python benchmarks/cores.py FOLDER --csv cores.csv`.

Two threads play against one, with the same wall-clock time for each move and the same value, which was taught before
the first match. Both sides are in this process and think in turn, so nothing else may run on two cores. Matches come in
pairs with the same two random plies and sides swapped. A row is printed for each game: the score of two threads in %,
with the interval over its pairs, and how many times as many simulations they complete.

`--apart` gives each thread a tree of its own, as the player does with a budget of simulations. With `--csv`, each match
is a row, and matches that are there already are not played again. Rows belong to a version of the code; `--version
NAME` goes on with those of an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Annotated

import numpy as np
import typer

import gamelore
from gamelore.game.game import Game, Position
from gamelore.lab.experiment import code_version
from gamelore.lab.stats import complete_rounds, score_interval
from gamelore.players.random_streams import stream
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import Teacher
from gamelore.search.thinking import Search
from rows import append, read

GAMES = "breakthrough,connectFour,pentago,tictactoe_3d_2player,golden_rectangle,zhadu,knightThrough,reversi"
PRACTICE = 1000  # walks that load all code


@dataclass
class Table:
    """Both sides of a game: two threads and one."""

    game: Game
    seconds: float
    teaching: int
    shared: bool
    rates: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._teacher = Teacher(self.game, stream(1), GrowthSettings(), TeachingSettings(simulations=self.teaching))
        self._teacher.teach()
        growth = self._teacher.growth
        self._sides = [Search(self.game, growth, threads=2, shared=self.shared), Search(self.game, growth)]
        for side in self._sides:
            self._begin(side, self.game.start(), 0)
            for _ in range(2):
                side.run(PRACTICE)

    def _begin(self, side: Search, position: Position, number: int) -> None:
        side.begin(position.state, stream(number), self._teacher.value, self._teacher.assumption)

    def opening(self, number: int) -> Position:
        """Return a position after two random plies, the same for both matches of a pair."""
        rng, position = np.random.default_rng([number // 2, 7]), self.game.start()
        for _ in range(2):
            position = position.play([str(rng.choice(moves)) for moves in position.legal.values()])
            if position.is_terminal:
                raise SystemExit(f"expected {self.game.name} to last for three plies, got an end; leave it out")
        return position

    def play(self, number: int) -> float:
        """Play a match, in which two threads have the first role if its number is even; return their score, 0 to 1."""
        position, own = self.opening(number), number % 2
        self.rates = [[], []]
        for index, side in enumerate(self._sides):
            self._begin(side, position, 2 * number + index)
        while not position.is_terminal:
            legal = list(position.legal.values())
            choices = [self._choice(role, role != own) if len(moves) > 1 else 0 for role, moves in enumerate(legal)]
            for side in self._sides:
                side.follow(np.array(choices, np.int32))
            position = position.play([moves[choice] for moves, choice in zip(legal, choices, strict=True)])
        return (position.goals[self.game.roles[own]] or 0) / 100

    def _choice(self, role: int, is_one: bool) -> int:
        side, begin = self._sides[is_one], monotonic()
        walks = side.run(deadline=begin + self.seconds)
        if not side.is_proved:
            self.rates[is_one].append(walks / (monotonic() - begin))
        return side.choice(role, side.key)


def played(table: Table, number: int, settings: Mapping[str, str]) -> dict[str, str]:
    """Play a match; return its row."""
    score = table.play(number)
    rates = [f"{np.mean(own) if own else np.nan:.0f}" for own in table.rates]
    return {
        "game": table.game.name,
        **settings,
        "number": str(number),
        "score": str(score),
        "two": rates[0],
        "one": rates[1],
    }


def settings_of(seconds: float, teaching: int, shared: bool, version: str) -> dict[str, str]:
    """Return the columns that tell how a match was played."""
    trees = "one" if shared else "two"
    return {"seconds": f"{seconds:g}", "teaching": str(teaching), "trees": trees, "version": version}


def report(rows: Sequence[dict[str, str]]) -> None:
    """Print the score and the ratio of simulations of each game, and of all pairs together, a cluster for each game."""
    print("| game | pairs | score of two threads, % | simulations |\n|---|---|---|---|")
    names = sorted({row["game"] for row in rows})
    for name in [*names, "together"]:
        own = (row for row in rows if name in (row["game"], "together"))
        pairs = complete_rounds(own, lambda row: (row["game"], int(row["number"]) // 2))
        scores = [(float(one["score"]) + float(two["score"])) / 2 for one, two in pairs]
        score = score_interval(scores, [one["game"] for one, _ in pairs] if name == "together" else None)
        ratios = [float(row["two"]) / float(row["one"]) for pair in pairs for row in pair]
        result = f"{100 * score.mean:.0f} ± {100 * score.half_width:.0f} | {np.nanmedian(ratios):.2f} times"
        print(f"| {name} | {len(pairs)} | {result} |")


def main(
    sheets: Annotated[Path, typer.Argument(help="folder of the public rulesheets")],
    seconds: Annotated[float, typer.Option(help="wall-clock time of a move")] = 0.2,
    teaching: Annotated[int, typer.Option(help="walks that teach a value before the first match")] = 2_000_000,
    matches: Annotated[int, typer.Option(help="number of matches of each game, an even number")] = 20,
    games: Annotated[str, typer.Option(help="names of sheets with commas")] = GAMES,
    apart: Annotated[bool, typer.Option(help="a tree for each thread")] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="file for the rows; those in it are kept")] = None,
    version: Annotated[str, typer.Option(help="version of the code whose rows go on")] = "",
) -> None:
    """Play two threads against one."""
    wanted = settings_of(seconds, teaching, not apart, version or code_version("search"))
    names = games.split(",")
    rows = [row for row in read(csv_file) if wanted.items() <= row.items() and row["game"] in names]
    done = {(row["game"], int(row["number"])) for row in rows}
    tables = dict[str, Table]()
    for number in range(matches):
        for name in names:
            if (name, number) not in done:
                if name not in tables:
                    tables[name] = Table(gamelore.load(sheets / f"{name}.kif"), seconds, teaching, not apart)
                rows.append(played(tables[name], number, wanted))
                append(csv_file, rows[-1])
    report([row for row in rows if int(row["number"]) < matches])


if __name__ == "__main__":
    typer.run(main)
