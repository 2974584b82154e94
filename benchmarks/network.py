"""Measure the cost of the network for tic-tac-toe between egreedy players: `python benchmarks/network.py`.

    in process   only matches.match.MatchState and the two players
    two local    the host with both players in its process: clocks, threads and the record
    over HTTP    the host, with xplayer a `gamelore serve` in another process, over loopback
    50 at once   the same, with fifty matches side by side

All four play the same number of matches; a turn is one joint move. `--csv FILE` writes the rows.
"""

from __future__ import annotations

import asyncio
import csv
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

import gamelore
from gamelore.catalogue import player
from gamelore.learning.session import STAGE
from gamelore.matches.match import MatchState
from gamelore.net.host import HostSettings
from gamelore.net.hosted_series import HostedSeries
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from serving import serving

PLAYER = "egreedy"
CLOCKS = HostSettings(startclock=10, playclock=10)


def in_process(num_matches: int) -> tuple[float, int, Counter[str]]:
    """Play matches in a plain loop; return seconds, turns and errors."""
    graph = PositionGraph(gamelore.load("tictactoe"))
    seats = [player(PLAYER), player(PLAYER)]
    turns, begin = 0, time.perf_counter()
    for number in range(num_matches):
        match = MatchState(graph)
        while match.end is None:
            for role in match.pending():
                asked = match.turn(role, stream(0, 0, STAGE, number, role))
                match.submit(role, int(seats[role].choose(asked)[0]) if match.has_choice(role) else 0)
        turns += match.ply
    return time.perf_counter() - begin, turns, Counter()


def hosted(players: Sequence[str], num_matches: int, at_once: int = 1) -> tuple[float, int, Counter[str]]:
    """Play matches led by a host; return seconds, turns and errors."""

    async def run() -> tuple[float, int, Counter[str]]:
        async with HostedSeries(gamelore.load("tictactoe"), players, CLOCKS) as series:
            await series.run(at_once, at_once)  # workers and code are warm
            begin = time.perf_counter()
            before = sum(len(record.moves) for record in series.played.values())
            await series.run(at_once + num_matches, at_once)
            seconds = time.perf_counter() - begin
            turns = sum(len(record.moves) for record in series.played.values()) - before
            return seconds, turns, Counter(event.kind for record in series.played.values() for event in record.events)

    return asyncio.run(run())


def main(
    matches: Annotated[int, typer.Option(help="Matches of each of the four.")] = 1000,
    repeats: Annotated[int, typer.Option(help="Repetitions, in turn; medians are shown.")] = 3,
    table: Annotated[Path | None, typer.Option("--csv", help="Write every row as CSV.")] = None,
) -> None:
    rows: list[dict[str, Any]] = []
    in_process(10)
    quiet: dict[str, Any] = {"errors": subprocess.DEVNULL, "has_cache": True}
    at_once = "--matches-at-once"
    with serving(PLAYER, at_once, "1", **quiet) as single, serving(PLAYER, at_once, "50", **quiet) as many:
        ways = {
            "in process": lambda: in_process(matches),
            "two local": lambda: hosted([PLAYER, PLAYER], matches),
            "over HTTP": lambda: hosted([single, PLAYER], matches),
            "50 at once": lambda: hosted([many, PLAYER], matches, 50),
        }
        for _ in range(repeats):
            for name, way in ways.items():
                seconds, turns, errors = way()
                rows.append({"way": name, "seconds": seconds, "turns": turns, "errors": sum(errors.values())})
    plain = median(row["seconds"] / row["turns"] for row in rows if row["way"] == "in process")
    for name in ways:
        own = [row for row in rows if row["way"] == name]
        turn = median(row["seconds"] / row["turns"] for row in own)
        errors = sum(row["errors"] for row in own)
        print(
            f"{name:11} {1e3 * turn:6.3f} ms a turn, {1e3 * (turn - plain):6.3f} above in process, "
            f"{matches} matches in {median(row['seconds'] for row in own):.1f} s, {errors} errors"
        )
    if table is not None:
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    typer.run(main)
