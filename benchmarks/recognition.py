"""Measure how well opponents are recognised: `python benchmarks/recognition.py FOLDER --out FILE.csv`.

FOLDER has rulesheets as NAME.kif. In ten of them, drawn by lot from those of benchmarks/memory.py, or in those given
with `--game`, players play series of five matches against `uct:simulations=200`, in each role in turn. The players are
those that are known (`gamelore.catalogue.KNOWN_OPPONENTS`), and some that are not. The file gets a row for each series
and number of matches. A run that was interrupted goes on.

The policies of a game are computed in up to 1,760 positions. So a game in which those of the first position take more
than MOST_SECONDS leaves its place to the next one of the lot. FILE.json keeps these times. Fast games come first.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import gamelore
from gamelore.catalogue import KNOWN_OPPONENTS, known_opponents, player
from gamelore.files import whole_file, write_whole
from gamelore.matches.match import MatchState
from gamelore.memory.recogniser import SAME_OPPONENT, UNKNOWN, Policies, fits, new_moves, posterior
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream

SEED = "0f846e8"  # as in benchmarks/memory.py
NUM_GAMES, SERIES = 10, 2
UNSEEN = ("avgmax:depth=2", "lookahead", "uct:simulations=1000,exploration=0.3")
OTHER = "uct:simulations=200"
MOST_PLIES = 200
MOST_SECONDS = 4.0  # CPU seconds of the policies in the first position: two hours in 1,760 positions
MOST_ROWS = 3_000_000  # positions of a graph that gets further series
COLUMNS = ("game", "player", "series", "matches", "named", "probability", "unknown")

Row = Mapping[str, Any]


def games_by_lot(names: Sequence[str], folder: Path, runs: int, file: Path) -> list[str]:
    """Return the games of the lot, the fastest ones first; a file keeps the seconds of all that were measured."""
    if not file.exists():
        rng, seconds = np.random.default_rng([ord(letter) for letter in SEED + "recognition"]), dict[str, float]()
        for name in rng.permutation(sorted(names)).tolist():
            if sum(own <= MOST_SECONDS for own in seconds.values()) < NUM_GAMES:
                seconds[name] = position_seconds(gamelore.load(folder / f"{name}.kif"), runs)
        write_whole(file, json.dumps(seconds))
    seconds = json.loads(file.read_text())
    return sorted((name for name in seconds if seconds[name] <= MOST_SECONDS), key=lambda name: seconds[name])


def position_seconds(rules: gamelore.Game, runs: int) -> float:
    """Return the CPU seconds of the policies in the first position, when all code is compiled."""
    for number in (1, runs):
        begin, graph = time.process_time(), PositionGraph(rules)
        row = MatchState(graph).row
        Policies(graph, known_opponents(), number).of(row, int(graph.num_moves[row].argmax()))
    return time.process_time() - begin


def series(policies: Policies, graph: PositionGraph, spec: str, number: int) -> Iterator[dict[str, object]]:
    """Play a series; yield after each match who the opponent is."""
    compared, seen = [], set()
    for index in range(SAME_OPPONENT):
        role = (number + index) % 2
        players = [player(spec if role == own else OTHER) for own in (0, 1)]
        match = MatchState(graph, max_plies=MOST_PLIES)
        for own, each in enumerate(players):
            each.begin(own, match.started(index))
        while match.end is None:
            for own in match.pending():
                turn = match.turn(own, stream(number, index, own))
                match.submit(own, int(players[own].choose(turn)[0]) if match.has_choice(own) else 0)
        compared.append(list(fits(policies, new_moves(match, role, seen)))[-1])
        shares = posterior(compared)
        named = next(iter(shares))
        yield {"matches": index + 1, "named": named, "probability": shares[named], "unknown": shares[UNKNOWN]}


def all_series(rules: gamelore.Game, name: str, num: int, runs: int, done: Set[tuple[str, ...]]) -> Iterator[list[Row]]:
    """Play the series of a game that are missing, and yield their rows; they share the policies of a position."""
    graph = None
    for spec in (*KNOWN_OPPONENTS, *UNSEEN):
        for number in range(num):
            about = {"game": name, "player": spec, "series": str(number)}
            if tuple(about.values()) not in done:
                if graph is None or graph.num_rows > MOST_ROWS:
                    graph = PositionGraph(rules)
                    policies = Policies(graph, known_opponents(), runs)
                yield [about | row for row in series(policies, graph, spec, number)]


def write(rows: Iterable[Row], out: Path) -> None:
    """Write the file in one step, so that a kill leaves no part of a series."""
    with whole_file(out) as whole, whole.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how often players were named right, and called unknown, after each number of matches."""
    yield "| matches | known players named right | known players called unknown | others called unknown |"
    yield "|---|---|---|---|"
    for number in range(1, SAME_OPPONENT + 1):
        own = [row for row in rows if int(row["matches"]) == number]
        known = [row for row in own if row["player"] in KNOWN_OPPONENTS]
        others = [row for row in own if row["player"] in UNSEEN]
        shares = (
            [row["named"] == row["player"] for row in known],
            [row["named"] == UNKNOWN for row in known],
            [row["named"] == UNKNOWN for row in others],
        )
        cells = (f"{np.mean(share):.0%} of {len(share)}" if share else "" for share in shares)
        yield f"| {number} | " + " | ".join(cells) + " |"


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    out: Annotated[Path, typer.Option(help="CSV file of the results")],
    games: Annotated[Path | None, typer.Option(help="JSON file with the names from which the lot draws")] = None,
    game: Annotated[list[str] | None, typer.Option(help="names in place of the lot")] = None,
    num: Annotated[int, typer.Option("--series", help="number of series for each player and game")] = SERIES,
    runs: Annotated[int, typer.Option(help="runs of each known search in a position")] = 64,
) -> None:
    """Play the series that are missing, and print the table."""
    names = game or []
    if games is not None and not names:
        names = games_by_lot(json.loads(games.read_text()), folder, runs, out.with_suffix(".json"))
    rows: list[Row] = list(csv.DictReader(out.open(newline="", encoding="utf-8"))) if out.exists() else []
    done = {(row["game"], row["player"], row["series"]) for row in rows}
    for name in names:
        for new in all_series(gamelore.load(folder / f"{name}.kif"), name, num, runs, done):
            rows += new
            write(rows, out)
            print(name, new[0]["player"], new[0]["series"], [row["named"] for row in new], flush=True)
    print(*table(rows), sep="\n")


if __name__ == "__main__":
    typer.run(main)
