"""Measure how well opponents are recognised: `python benchmarks/recognition.py FOLDER --out FILE.csv`.

FOLDER has rulesheets as NAME.kif. In ten of them, drawn by lot from those of benchmarks/memory.py, or in those given
with `--game`, players play series of five matches against `uct:simulations=200`, in each role in turn. The players are
those that are known (`gamelore.catalogue.KNOWN_OPPONENTS`), and some that are not, among them the lookahead learner of
Banerjee & Stone as it is before its first match (with lazy initial values, it would draw all moves at random). The file
gets a row for each series and number of matches. An interrupted run goes on; a game that fails is left out of this run.
Rows belong to a version of the code; `--version NAME` goes on with those of an earlier one.

The policies of a game are computed in up to 1,760 positions. So a game in which those of the first position take more
than MOST_SECONDS leaves its place to the next one of the lot. FILE.json keeps these times. Fast games come first.
"""

from __future__ import annotations

import csv
import json
import os
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import gamelore
import long_runs
from gamelore.catalogue import KNOWN_OPPONENTS, known_opponents, player
from gamelore.errors import ExperimentError
from gamelore.files import whole_file, write_whole
from gamelore.lab.experiment import code_version
from gamelore.lab.stats import clustered_interval, share_interval
from gamelore.matches.match import MatchState
from gamelore.memory.recogniser import SAME_OPPONENT, UNKNOWN, Policies, fits, posterior, seen_moves
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream

SEED = "0f846e8"  # as in benchmarks/memory.py
NUM_GAMES, SERIES = 10, 2
UNSEEN = ("avgmax:depth=2", "lookahead:initialisation=eager,learn=no", "uct:simulations=1000,exploration=0.3")
OTHER = "uct:simulations=200"
MOST_PLIES = 200
MOST_SECONDS = 4.0  # CPU seconds of the policies in the first position: two hours in 1,760 positions
MOST_ROWS = 3_000_000  # positions of a graph that gets further series
COLUMNS = ("game", "player", "series", "matches", "named", "probability", "unknown", "version")

Row = dict[str, Any]


def games_by_lot(names: Sequence[str], folder: Path, runs: int, file: Path) -> list[str]:
    """Return the games of the lot, the fastest ones first; a file keeps the seconds of all that were measured."""
    if not file.exists():
        rng, seconds = np.random.default_rng([ord(letter) for letter in SEED + "recognition"]), dict[str, float]()
        for name in rng.permutation(sorted(names)).tolist():
            if sum(own <= MOST_SECONDS for own in seconds.values()) < NUM_GAMES:
                seconds[name] = position_seconds(gamelore.load(folder / f"{name}.kif"), runs)
        write_whole(file, json.dumps({"names": sorted(names), "runs": runs, "seconds": seconds}))
    lot = json.loads(file.read_text())
    if (lot["names"], lot["runs"]) != (sorted(names), runs):
        raise ExperimentError(f"expected the games and the runs of the lot in {file}, got others; choose another file")
    seconds = lot["seconds"]
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
    compared = []
    for index in range(SAME_OPPONENT):
        role = (number + index) % 2
        players = [player(spec if role == own else OTHER) for own in (0, 1)]
        match = MatchState(graph, max_plies=MOST_PLIES)
        for own, each in enumerate(players):
            each.begin(own, match.started(index))
        while match.end is None:
            for own in match.pending():
                turn = match.turn(
                    own, stream(number, index, own, graph.game.rules_hash, spec if own == role else OTHER)
                )
                match.submit(own, int(players[own].choose(turn)[0]) if match.has_choice(own) else 0)
        compared.append(list(fits(policies, seen_moves(match, role)))[-1])
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
            share_text(known, [row["player"] for row in known]),
            share_text(known, [UNKNOWN] * len(known)),
            share_text(others, [UNKNOWN] * len(others)),
        )
        yield f"| {number} | {' | '.join(shares)} |"


def share_text(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Return the share of the series in which the opponent was given a name, with its 95 % interval, as text.

    The interval takes the series of a game for a cluster, and where all are equal, for a single one.
    """
    if not rows:
        return ""
    hits = [row["named"] == name for row, name in zip(rows, names, strict=True)]
    games = [row["game"] for row in rows]
    equal = len(set(hits)) == 1  # their scatter would say that the share is certain
    share = share_interval(len(set(games)) * hits[0], len(set(games))) if equal else clustered_interval(hits, games)
    low, high = max(share.low, 0.0), min(share.high, 1.0)
    return f"{share.mean:.0%} [{low:.0%}, {high:.0%}] of {len(hits)}"


def named_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield for whom each player was taken after all matches, and in which games one was not recognised."""
    yield "| player | taken for | not recognised in |"
    yield "|---|---|---|"
    for spec in (*KNOWN_OPPONENTS, *UNSEEN):
        own = [row for row in rows if int(row["matches"]) == SAME_OPPONENT and row["player"] == spec]
        named = Counter(row["named"] for row in own).most_common()
        right = spec if spec in KNOWN_OPPONENTS else UNKNOWN
        missed = dict.fromkeys(row["game"] for row in own if row["named"] != right)
        if own:
            yield f"| {spec} | {', '.join(f'{name} {num}' for name, num in named)} | {', '.join(missed)} |"


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    out: Annotated[Path, typer.Option(help="CSV file of the results")],
    games: Annotated[Path | None, typer.Option(help="JSON file with the names from which the lot draws")] = None,
    game: Annotated[list[str] | None, typer.Option(help="names in place of the lot")] = None,
    num: Annotated[int, typer.Option("--series", help="number of series for each player and game")] = SERIES,
    runs: Annotated[int, typer.Option(help="runs of each known search in a position")] = 64,
    version: Annotated[str, typer.Option(help="version of the code whose results go on")] = "",
) -> None:
    """Play the series that are missing, and print the tables."""
    long_runs.check_gamelore()
    about = f", {runs} runs"
    version = (version or code_version("memory.recogniser")).removesuffix(about) + about
    os.environ["GAMELORE_KNOWLEDGE"] = str(out.with_suffix(".missing"))  # learners know nothing, and keep nothing
    names = game or []
    if games is None and not names and not out.exists():
        raise typer.BadParameter("expected games, got none; name some with --game, or a list for the lot with --games")
    if games is not None and not names:
        names = games_by_lot(json.loads(games.read_text()), folder, runs, out.with_suffix(".json"))
    rows: list[Row] = []
    if out.exists():
        with out.open(newline="", encoding="utf-8") as file:
            rows += csv.DictReader(file)
    if others := {str(row.get("version")) for row in rows} - {version}:
        raise ExperimentError(f"expected rows of {version}, got {', '.join(others)} in {out}; choose another file")
    failures = 0
    done = {(row["game"], row["player"], row["series"]) for row in rows}
    for name in names:
        try:
            for new in all_series(gamelore.load(folder / f"{name}.kif"), name, num, runs, done):
                rows += [row | {"version": version} for row in new]
                write(rows, out)
                print(name, new[0]["player"], new[0]["series"], [row["named"] for row in new], flush=True)
        except Exception:
            traceback.print_exc()
            failures += 1
    print(*table(rows), "", *named_table(rows), sep="\n")
    raise typer.Exit(1 if failures else 0)


if __name__ == "__main__":
    typer.run(main)
