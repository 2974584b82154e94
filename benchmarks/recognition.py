"""Measure how well opponents are recognised: `python benchmarks/recognition.py FOLDER --out FILE.csv`.

FOLDER has rulesheets as NAME.kif. In ten of them, drawn by lot from those of benchmarks/memory.py, or in those given
with `--game`, players play series of five matches against `uct:simulations=200`, in each role in turn. The players are
those that are known (`gamelore.catalogue.KNOWN_OPPONENTS`), and some that are not. The file gets a row for each series
and number of matches. A run that was interrupted goes on.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import gamelore
from gamelore.catalogue import KNOWN_OPPONENTS, known_opponents, player
from gamelore.matches.match import MatchState
from gamelore.memory.recogniser import SAME_OPPONENT, UNKNOWN, Policies, fits, new_moves, posterior
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream

SEED = "0f846e8"  # as in benchmarks/memory.py
NUM_GAMES, SERIES = 10, 2
UNSEEN = ("avgmax:depth=2", "lookahead", "uct:simulations=1000,exploration=0.3")
OTHER = "uct:simulations=200"
MOST_PLIES = 200
COLUMNS = ("game", "player", "series", "matches", "named", "probability", "unknown")


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


def table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
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
        rng = np.random.default_rng([ord(letter) for letter in SEED + "recognition"])
        names = sorted(rng.permutation(sorted(json.loads(games.read_text()))).tolist()[:NUM_GAMES])
    rows = list(csv.DictReader(out.open(newline="", encoding="utf-8"))) if out.exists() else []
    done = {(row["game"], row["player"], row["series"]) for row in rows if int(row["matches"]) == SAME_OPPONENT}
    with out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not rows:
            writer.writeheader()
        for name in names:
            rules = gamelore.load(folder / f"{name}.kif")
            for spec in (*KNOWN_OPPONENTS, *UNSEEN):
                for number in range(num):
                    if (name, spec, str(number)) in done:
                        continue
                    graph = PositionGraph(rules)
                    policies = Policies(graph, known_opponents(), runs)
                    about = {"game": name, "player": spec, "series": str(number)}
                    new = [about | row for row in series(policies, graph, spec, number)]
                    writer.writerows(new)
                    file.flush()
                    print(name, spec, number, [row["named"] for row in new], flush=True)
    print(*table(list(csv.DictReader(out.open(newline="", encoding="utf-8")))), sep="\n")


if __name__ == "__main__":
    typer.run(main)
