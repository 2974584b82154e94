"""Count late and `nil` answers of a player on a busy machine: `python benchmarks/late.py FOLDER`.

For each sheet of FOLDER, `gamelore serve` plays whole matches as the first role against random players, until it was
asked for `--moves` moves. Its cache of compiled games is empty at the START of the first match, and one process for
each core (`--burners`) does nothing but use the processor.

    late     answers that came after the playclock, or not at all
    nil      answers that were `nil`
    faulty   events of the player in the record of the match: replies that were late, missing, illegal, `busy` or `nil`
    first    answers that the server gave for the player: lines of its log which say that the player is late, or made no
             move because of an error or because its processes died. A turn for which the player was late and failed
             after that has two lines. If a process dies and another one moves in time, this is the player's own move
    slowest  seconds of the slowest answer to PLAY; `-` if none came
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

import gamelore
from gamelore.net.host import HostSettings, LocalSeat, RemoteSeat, run_match
from gamelore.net.http import Client
from gamelore.net.messages import NIL, Start
from serving import serving

SHEETS = "ticTacToe,connectFour,quad,3pttc,reversi"
LATE, FAILED = "the player is late, the server answers ", "the player made no move: "  # in the log of the server
BURN = (sys.executable, "-c", "while True: pass")


@dataclass(eq=False)
class TimedSeat(RemoteSeat):
    """A remote player whose answers are timed. Answers without a move have no time."""

    seconds_to_start: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    num_asked: int = 0
    num_nil: int = 0
    num_faulty: int = 0

    async def start(self, start: Start, number: int, seconds: float) -> str:
        begin = time.monotonic()
        reply = await super().start(start, number, seconds)
        self.seconds_to_start.append(time.monotonic() - begin)
        return reply

    async def play(self, match: str, moves: Sequence[str] | None, seconds: float) -> str:
        self.num_asked += 1
        begin = time.monotonic()
        reply = await super().play(match, moves, seconds)
        self.seconds.append(time.monotonic() - begin)
        self.num_nil += reply.strip().lower() == NIL
        return reply

    def late(self, playclock: int) -> int:
        """Return the number of answers that came after the clock, or not at all."""
        return self.num_asked - sum(seconds <= playclock for seconds in self.seconds)


@contextmanager
def burning(number: int) -> Iterator[None]:
    """Use so many cores."""
    processes = [subprocess.Popen(BURN) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def played(game: gamelore.Game, url: str, settings: HostSettings, moves: int) -> TimedSeat:
    """Play matches until the player at this URL was asked for so many moves."""
    async with AsyncExitStack() as stack:
        seat = TimedSeat(url, await stack.enter_async_context(Client()))
        others = [await stack.enter_async_context(LocalSeat("random", game)) for _ in game.roles[1:]]
        for number in count():
            record = await run_match(game, [seat, *others], settings, number)
            seat.num_faulty += sum(event.role == game.roles[0] for event in record.events)
            if seat.num_asked >= moves:
                break
        return seat


def line(name: str, seat: TimedSeat, log: str, playclock: int) -> str:
    """Return what is printed about a game; `log` is that of the server."""
    first = log.count(LATE) + log.count(FAILED)
    return (
        f"{name:14} {seat.num_asked:3} moves, {seat.late(playclock):3} late, {seat.num_nil:3} nil, "
        f"{seat.num_faulty:3} faulty, {first:3} first, slowest {longest(seat.seconds, 2)}; "
        f"slowest START {longest(seat.seconds_to_start, 1)}"
    )


def longest(seconds: list[float], digits: int) -> str:
    """Return the longest of some times, with so many digits after the point; `-` if there are none."""
    return f"{max(seconds):.{digits}f} s" if seconds else "-"


def main(
    folder: Annotated[Path, typer.Argument(help="Folder with rulesheets as NAME.kif.")],
    sheets: Annotated[str, typer.Option(help="Names of sheets, joined by commas.")] = SHEETS,
    player: Annotated[str, typer.Option(help="The player.")] = "uct",
    moves: Annotated[int, typer.Option(help="Least number of moves in each game.")] = 20,
    startclock: int = 10,
    playclock: int = 1,
    burners: Annotated[int, typer.Option(help="Busy processes beside the player; -1: one for each core.")] = -1,
) -> None:
    settings = HostSettings(startclock, playclock, extra=5.0)
    for name in sheets.split(","):
        game = gamelore.load(str(folder / f"{name}.kif"))
        with TemporaryDirectory() as logs:
            log = Path(logs) / "log"
            busy = os.cpu_count() or 1 if burners < 0 else burners
            with burning(busy), log.open("w") as errors, serving(player, errors=errors, has_cache=False) as url:
                seat = asyncio.run(played(game, url, settings, moves))
            print(line(name, seat, log.read_text(), playclock), flush=True)


if __name__ == "__main__":
    typer.run(main)
