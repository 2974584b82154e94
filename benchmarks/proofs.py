"""Compare what the search proves with exact values: `python benchmarks/proofs.py --sheets FOLDER`, a minute or two.

Positions of random matches are searched with small budgets, in turn with different settings: as the player does, one
walk at a time, without a look at the children, with a learned value, and with so little memory that nodes are dropped.
After each search the tree follows two moves, and grows again. Then all bounds on the goals of the position and of the
positions in the tree (at most NODES of them, drawn at random) are compared with values that the search has no part in,
see exhaustive.py. A bound that excludes the value is a *contradiction*; each is printed with what repeats it, and then
the exit code is 1.

Two roles with constant sum, with two, three and more goal values, come from the solver. Games with three roles and
games without constant sum are listed exhaustively, as a whole or from late positions on.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

import gamelore
from exhaustive import States, Values, chapters
from gamelore.game.game import Game
from gamelore.players.random_streams import stream
from gamelore.search.proofs import first_assumption
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import Teacher, can_be_taught
from gamelore.search.thinking import Stem
from gamelore.search.tree import PROVED, SOLE_WINNER, STAGE, UNRELATED
from gamelore.search.value import LinearValue, no_prior

GAMES = (  # public sheets
    *("ticTacToe", "nim4", "chomp", "toetictac", "sheepAndWolf", "double_tictactoe_dengji"),  # two roles, constant sum
    *("gt_ultimatum", "2pffa"),  # two roles, other sums
    *("tictactoe_3player", "3pConnectFour"),  # three roles
    *("3pttc", "tttcc4"),  # three roles, and a winner is alone
)
SHIPPED = ("tictactoe", "connect3", "capturego3", "othello4", "tictactoe3p")
SETTINGS = {
    "default": GrowthSettings(),
    "single walks": GrowthSettings(least=1, leaves=1, playouts=1),
    "no scouts": GrowthSettings(scout=False, exploration=1.0),
    "taught": GrowthSettings(least=4),
    "small memory": GrowthSettings(least=8, leaves=16),
}
BUDGETS = (30, 100, 300, 1000, 3000)  # walks of a search
MOST = 4000  # positions below one that are listed exhaustively
NODES = 1000
ASSUMED = {SOLE_WINNER: "a sole winner", UNRELATED: "own goals"}
MIB, SMALL_MIB = 64.0, 0.05
LESSON = TeachingSettings(simulations=100_000, first=50_000)


@dataclass
class Tally:
    """What was compared in a game.

    positions       number of positions that were searched
    proofs          number of them whose value was proved by the end of the first search
    trees           number of trees that were compared, at most three for each position
    nodes, inner    number of compared nodes, and of those that are proved although the match goes on there
    contradictions  what repeats each contradiction
    """

    positions: int = 0
    proofs: int = 0
    trees: int = 0
    nodes: int = 0
    inner: int = 0
    contradictions: list[str] = field(default_factory=list)


class Examiner:
    """The searches of a game with all settings, and what was compared so far."""

    def __init__(self, game: Game, seed: int) -> None:
        self.game, self.tally, self._seed = game, Tally(), seed
        self._assumption = first_assumption(game, GrowthSettings().max_plies)
        self._value = self._taught()
        self._stems = {
            name: Stem(game, settings, SMALL_MIB if name == "small memory" else MIB)
            for name, settings in SETTINGS.items()
        }

    def _taught(self) -> LinearValue | None:
        if not can_be_taught(self.game):
            return None
        teacher = Teacher(self.game, stream(self._seed), GrowthSettings(), LESSON)
        teacher.teach()
        return teacher.value

    def examine(self, state: NDArray[np.uint64], values: Values) -> None:
        """Search a position and the next two, and compare the trees."""
        number = self.tally.positions
        name = list(SETTINGS)[number % len(SETTINGS)]
        walks = BUDGETS[number // len(SETTINGS) % len(BUDGETS)]
        stem, key = self._stems[name], stream(self._seed, number)
        taught = name == "taught" and self._value is not None
        prior = self._value.prior(SETTINGS[name]) if taught and self._value else no_prior(self.game)
        stem.begin(state, key, prior, self._assumption)
        self.tally.positions += 1
        for follows in range(3):
            if follows and not _advance(stem, key):
                break
            _grow(stem, walks)
            self.tally.proofs += stem.is_proved and not follows
            self._compare(stem, values, f"{self.game.name}, position {number}, {name}, {walks} walks, {follows} moves")

    def _compare(self, stem: Stem, values: Values, where: str) -> None:
        """Compare the bounds of nodes with the values."""
        arrays, size = stem.tree.arrays, stem.tree.num_nodes
        rows = np.arange(size)
        if size > NODES:
            rows = np.append(0, np.sort(np.random.default_rng(size).choice(size - 1, NODES - 1, replace=False)) + 1)
        low, high = arrays.low[rows].astype(np.int16), arrays.high[rows].astype(np.int16)
        least, most = values.bounds(arrays.states[rows])
        proved = arrays.nodes[rows, STAGE] == PROVED
        wrong = ((low > least) | (high < most)).any(axis=1) | (proved & (low != high).any(axis=1))
        self.tally.trees += 1
        self.tally.nodes += len(rows)
        self.tally.inner += int((proved & arrays.counts[rows].any(axis=1)).sum())
        for i in np.flatnonzero(wrong)[:1]:
            facts = " ".join(sorted(self.game.facts(arrays.states[rows[i]])))
            assumed = ASSUMED.get(stem.tree.assumption, "opposite interests")
            self.tally.contradictions.append(
                f"{where}, {assumed}, node {rows[i]}: bounds {low[i]} to {high[i]}, values {least[i]} to {most[i]}: "
                f"{facts}"
            )


def _grow(stem: Stem, walks: int) -> None:
    """Grow a tree by so many walks, or until the position is proved or the tree cannot grow."""
    stalled = 0
    while walks and not stem.is_proved and stalled < 2:
        grown = stem.grow(walks, 16)
        walks -= grown.walks
        stalled = 0 if grown.walks else stalled + 1
        if not grown.as_assumed:
            stem.tree.drop_assumption()


def _advance(stem: Stem, key: np.uint64) -> bool:
    """Follow a random joint move; return False at the end of the match."""
    counts = stem.tree.arrays.counts[0]
    if not counts.all():
        return False
    choices = np.random.default_rng([int(key), stem.visits]).integers(counts).astype(np.int32)
    stem.follow(choices)
    return True


def positions(game: Game, most: int, seed: int) -> Iterator[tuple[Values, NDArray[np.uint64]]]:
    """Yield positions of random matches with their values, each once if the game has enough of them."""
    seen: Counter[bytes] = Counter()
    barren = 0
    for values, states in chapters(game, most, seed):
        new: States = states[[seen[state.tobytes()] <= barren // 100 for state in states]]
        barren += not len(new)
        for state in new:
            seen[state.tobytes()] += 1
            yield values, state


def examined(game: Game, count: int, most: int, seed: int) -> Tally:
    """Compare searches of `count` positions of a game."""
    examiner = Examiner(game, seed)
    for values, state in positions(game, most, seed):
        if examiner.tally.positions >= count:
            break
        examiner.examine(state, values)
    return examiner.tally


def main(
    sheets: Annotated[Path | None, typer.Option(help="folder of the public rulesheets; else shipped games")] = None,
    count: Annotated[int, typer.Option("--positions", min=1, help="number of positions of all games")] = 10_000,
    games: Annotated[str, typer.Option(help="names of sheets with commas")] = "",
    seed: Annotated[int, typer.Option(help="seed of positions and searches")] = 0,
) -> None:
    """Compare proofs with exact values; exit with 1 if one is wrong."""
    names = games.split(",") if games else GAMES if sheets else SHIPPED
    print("| game | roles | positions | proved | trees | nodes compared | proved inside | contradictions |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    tallies = []
    for number, name in enumerate(names):
        game = gamelore.load(sheets / f"{name}.kif" if sheets else name)
        tally = examined(game, (count + number) // len(names), MOST, seed)
        tallies.append(tally)
        cells = tally.positions, tally.proofs, tally.trees, tally.nodes, tally.inner, len(tally.contradictions)
        print(f"| {name} | {game.num_roles} | {' | '.join(f'{cell:,}' for cell in cells)} |", flush=True)
        for contradiction in tally.contradictions[:3]:
            print(contradiction, file=sys.stderr, flush=True)
    wrong = sum(len(tally.contradictions) for tally in tallies)
    print(f"\n{sum(tally.positions for tally in tallies):,} positions of {len(tallies)} games, {wrong} contradictions")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    typer.run(main)
