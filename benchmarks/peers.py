"""Compare random playouts per second from plain GDL with other systems on the same games: `make bench-peers`.

Measured on one thread in process CPU time; each figure is the median of REPEATS. OpenSpiel's rollouts in C++ run in the
same process, ours and theirs in turn; the ratio is the median of the pairs. Systems that no package registry has are
quoted, not run: see PEERS. The reasoner plays a game that is too large to compile; its row says so.

The rulesheets are those of the public repository of GGP games, which is not part of this project:

    git clone https://github.com/ggp-org/ggp-repository ../ggp-repository
    python benchmarks/peers.py --sheets ../ggp-repository/war/root/games      # all games, a few minutes
    python benchmarks/peers.py reversi hex --sheets ../ggp-repository/war/root/games --seconds 0.5 --json out/peers.json

FOLDER of `--sheets` has NAME.kif or, as that repository, NAME/NAME.kif, with an older version in NAME/v1. Of checkers
and speedChess the older version is measured, as for README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import gamelore
from gamelore.cli.bench_command import SIDE_BY_SIDE, playout_speed
from gamelore.errors import GameloreError
from sidebyside import Work, cpu_rate, in_turn, lasting, their_playouts

REPEATS = 3
SECONDS = 2.0
REASONED = 10  # times the seconds for a game on the reasoner, which is stopped after three times that
ROLLOUTS = 4  # the smallest number of OpenSpiel's rollouts in a call
FIRST = 16 * SIDE_BY_SIDE  # our first playouts, which give the mean number of steps
WHERE = "war/root/games of a clone of https://github.com/ggp-org/ggp-repository"


@dataclass(frozen=True, slots=True)
class Quoted:
    """The rate of another system in playouts per CPU-second; `note` says how its game differs."""

    rate: float
    system: str
    note: str = ""

    def __str__(self) -> str:
        return f"{shown(self.rate)} ({', '.join(filter(None, (self.system, self.note)))})"


@dataclass(frozen=True, slots=True)
class Peers:
    """A rulesheet, the rate it must reach, and other systems that play the game.

    `reader`: the fastest system that reads GDL. `fastest`: the fastest in any language, including hand-written ones;
    None if only GDL readers play it. `openspiel`: OpenSpiel's name of the game, if possible with the same board.
    """

    sheet: str
    at_least: float
    reader: Quoted
    fastest: Quoted | None
    openspiel: str | None = None
    difference: str = ""

    @property
    def best(self) -> Quoted:
        return max(filter(None, (self.reader, self.fastest)), key=lambda quoted: quoted.rate)


QUOTED_FROM = "Xeon 2.80 GHz with AVX-512, one thread"

# Quoted rates are published ones; of a range, the upper end.
PEERS = (
    Peers("ticTacToe", 10e6, Quoted(386e3, "ggplib"), Quoted(2.2e6, "RBG"), "tic_tac_toe"),
    Peers("connectFour", 4e6, Quoted(107e3, "ggplib"), Quoted(0.84e6, "RBG", "7x6"), "connect_four(rows=6,columns=8)"),
    Peers("breakthrough", 200e3, Quoted(23.5e3, "ggplib"), Quoted(29.9e3, "RBG"), "breakthrough(rows=8,columns=8)"),
    Peers("reversi", 120e3, Quoted(1.6e3, "ggplib"), Quoted(16.5e3, "RBG"), "othello"),
    Peers("hex", 10e3, Quoted(1.1e3, "Sancho"), Quoted(64e3, "RBG"), "hex(board_size=9)"),
    Peers("englishDraughts", 60e3, Quoted(8.1e3, "ggplib"), Quoted(49e3, "RBG"), "checkers"),
    Peers(
        "checkers",
        5e3,
        Quoted(2.4, "ggp-base"),
        Quoted(5.1e3, "OpenSpiel", "other rules"),
        "checkers",
        "other rules",
    ),
    Peers("speedChess", 15e3, Quoted(5.5e3, "ggplib"), None),
    Peers(
        "amazons_8x8",
        15e3,
        Quoted(5.7e3, "ggplib"),
        Quoted(12.6e3, "OpenSpiel", "10x10, other move count"),
        "amazons(board_size=8)",
        "other move count",
    ),
    Peers(
        "merrills",
        10e3,
        Quoted(3.6, "ggp-base"),
        Quoted(32e3, "RBG", "other rules"),
        "nine_mens_morris",
        "other rules",
    ),
    Peers("chess", 200, Quoted(0.09, "ggp-base"), Quoted(0.84e3, "RBG"), "chess"),
)


@dataclass(slots=True)
class Row:
    """The measurements of one rulesheet: rates in playouts per CPU-second, None if not measured.

    `unended_s`: CPU-seconds of the only playout, if it did not end. `ratio`: our rate to OpenSpiel's, the median of the
    pairs.
    """

    peers: Peers
    engine: str
    why: str
    num_gates: int | None
    rate: float | None = None
    steps_per_s: float = 0.0
    mean_steps: float | None = None
    unended_s: float | None = None
    openspiel: float | None = None
    ratio: float | None = None

    @property
    def met(self) -> bool:
        return self.rate is not None and self.rate >= self.peers.at_least

    def as_data(self) -> dict[str, object]:
        return asdict(self) | {"met": self.met}


def sheet_in(folder: Path, name: str) -> Path | None:
    """Return the rulesheet of a game in a folder, or None. The older of two versions counts."""
    places = (folder / f"{name}.kif", folder / name / "v1" / f"{name}.kif", folder / name / f"{name}.kif")
    return next(filter(Path.is_file, places), None)


def measured(peers: Peers, sheet: Path, seconds: float) -> Row:
    """Measure a rulesheet, and OpenSpiel if it has the game. Raises GameloreError if the sheet cannot be played."""
    game = gamelore.load(sheet)
    row = Row(peers, game.engine, game.engine_reason, game.circuit.num_gates if game.circuit else None)
    theirs = their_work(peers, seconds)
    if game.engine == "native":
        measure_compiled(row, game, theirs, seconds)
    else:
        measure_reasoned(row, game, theirs, seconds)
    return row


def measure_compiled(row: Row, game: gamelore.Game, theirs: Work | None, seconds: float) -> None:
    """Measure a compiled game, in pairs with OpenSpiel; fill the row."""

    def ours_of(n: int) -> Work:
        return lambda: game.playouts(n, seed=1, threads=1).num_playouts

    first = game.playouts(FIRST, threads=1)  # compiles, too
    ours = lasting(ours_of, seconds, SIDE_BY_SIDE)
    if theirs is None:
        rates = [cpu_rate(ours) for _ in range(REPEATS)]
    else:
        pairs = in_turn(ours, theirs, REPEATS)
        rates = [mine for mine, _ in pairs]
        row.openspiel = statistics.median(other for _, other in pairs)
        row.ratio = statistics.median(mine / other for mine, other in pairs)
    row.rate = statistics.median(rates)
    row.mean_steps = first.num_steps / first.num_playouts
    row.steps_per_s = row.rate * row.mean_steps


def measure_reasoned(row: Row, game: gamelore.Game, theirs: Work | None, seconds: float) -> None:
    """Measure one call on the reasoner, which takes long and may not end, and OpenSpiel; fill the row."""
    speed = playout_speed(game, REASONED * seconds)
    row.rate, row.steps_per_s, row.mean_steps = speed.playouts_per_s, speed.steps_per_s, speed.mean_steps
    row.unended_s = None if speed.num_playouts else speed.cpu_s
    if theirs is not None:
        row.openspiel = statistics.median(cpu_rate(theirs) for _ in range(REPEATS))
        row.ratio = row.rate / row.openspiel if row.rate else None


def their_work(peers: Peers, seconds: float) -> Work | None:
    """Return about so many seconds of OpenSpiel's playouts; None if it is not installed or lacks the game."""
    name = peers.openspiel
    if name is None or find_spec("pyspiel") is None:
        return None
    import pyspiel

    try:
        return lasting(lambda n: their_playouts(name, n), seconds, ROLLOUTS)
    except pyspiel.SpielError as error:
        print(f"OpenSpiel does not play {name}: {str(error).splitlines()[0]}", flush=True)
        return None


def shown(rate: float | None) -> str:
    """Return a rate with three digits: 12.3 M, 45.6 k, 7.89; "-" for None."""
    if rate is None:
        return "-"
    for unit, sign in ((1e6, " M"), (1e3, " k")):
        if rate >= 0.9995 * unit:
            return f"{_three_digits(rate / unit)}{sign}"
    return _three_digits(rate)


def _three_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.3g}"


HEAD = """\
| game | gamelore | at least | met | OpenSpiel here | ratio | best that reads GDL | best in any language | ratio to the best |
|---|---|---|---|---|---|---|---|---|"""  # noqa: E501


def line(row: Row) -> str:
    """Return the row of a Markdown table."""
    peers = row.peers
    ours = f"under {shown(1 / row.unended_s)}" if row.unended_s else shown(row.rate)
    beside = f"{shown(row.openspiel)} ({peers.difference})" if row.openspiel and peers.difference else None
    cells = (
        peers.sheet,
        ours if row.engine == "native" else f"{ours} (reasoner)",
        shown(peers.at_least),
        "yes" if row.met else "**no**",
        beside or shown(row.openspiel),
        times(row.ratio),
        str(peers.reader),
        str(peers.fastest or "-"),
        times(row.rate / peers.best.rate if row.rate else None),
    )
    return f"| {' | '.join(cells)} |"


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{_three_digits(ratio)} x"


def notes(rows: list[Row]) -> Iterator[str]:
    """Explain each row that misses its rate."""
    for row in rows:
        if not row.met:
            yield f"{row.peers.sheet} falls short of {shown(row.peers.at_least)} playouts/s: {limit(row)}"


def limit(row: Row) -> str:
    """Return the figures that explain the rate of a row."""
    if row.unended_s:
        length = f"no playout ended in {row.unended_s:.0f} s"
    else:
        length = f"{shown(row.rate)} playouts/s of {row.mean_steps:.0f} steps"
    if row.num_gates is None:
        return f"on the reasoner, {shown(row.steps_per_s)} states/s, {length}; {row.why}"
    step_ns = SIDE_BY_SIDE * 1e9 / row.steps_per_s
    return (
        f"{length}; {row.num_gates:,} gates, {SIDE_BY_SIDE} positions a step take {step_ns / 1e3:.1f} us, "
        f"{step_ns / max(1, row.num_gates):.2f} ns a gate"
    )


def measured_all(wanted: list[Peers], folder: Path, seconds: float) -> list[Row]:
    """Measure the rulesheets in the folder; print each result at once, and a line for each that is skipped."""
    rows = []
    for peers in wanted:
        sheet = sheet_in(folder, peers.sheet)
        if sheet is None:
            print(f"skipped {peers.sheet}: {folder} has no {peers.sheet}.kif", flush=True)
            continue
        try:
            rows.append(measured(peers, sheet, seconds))
        except GameloreError as error:
            print(f"skipped {peers.sheet}: {error}", flush=True)
            continue
        row = rows[-1]
        print(f"{peers.sheet}: {shown(row.rate)}, OpenSpiel {shown(row.openspiel)}", flush=True)
    return rows


def machine() -> dict[str, object]:
    """Describe processor, load and versions."""
    from importlib.metadata import PackageNotFoundError, version

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "open_spiel": installed("open_spiel"),
        "gamelore": installed("gamelore"),
    }


def processor() -> str:
    """Return the name of the processor, on Linux its model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [text.split(":", 1)[1].strip() for text in lines if text.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare random playouts per second from plain GDL with other systems."
    )
    names = [peers.sheet for peers in PEERS]
    parser.add_argument(
        "games", nargs="*", metavar="GAME", help=f"games to measure, by default all: {', '.join(names)}"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of each measurement")
    parser.add_argument(
        "--sheets", type=Path, metavar="FOLDER", help=f"folder of the rulesheets, such as {WHERE}; required"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args()
    for name in given.games:
        if name not in names:
            parser.error(f"expected one of {', '.join(names)}, got {name}")
    if given.seconds <= 0:
        parser.error(f"expected a positive number of seconds, got {given.seconds:g}")
    given.peers = [peers for peers in PEERS if peers.sheet in (given.games or names)]
    if given.sheets is None or not any(sheet_in(given.sheets, peers.sheet) for peers in given.peers):
        got = given.sheets or "none"
        parser.error(
            f"expected --sheets with a folder of rulesheets, NAME.kif or NAME/NAME.kif, got {got}; take {WHERE}"
        )
    return given


def main() -> None:
    given = arguments()
    here = machine()
    print(f"{here['processor']}, {here['cores']} cores, load average {here['load_average']}; one thread, CPU time")
    print(f"quoted rates were measured on another machine: {QUOTED_FROM}")
    if find_spec("pyspiel") is None:
        print("OpenSpiel is not installed, so only ours is measured: make bench-peers installs it")
    rows = measured_all(given.peers, given.sheets, given.seconds)
    print("", HEAD, *map(line, rows), sep="\n")
    print("", *notes(rows), sep="\n")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "machine": here,
            "quoted_from": QUOTED_FROM,
            "seconds": given.seconds,
            "repeats": REPEATS,
            "rows": [row.as_data() for row in rows],
        }
        given.json.write_text(json.dumps(data, indent=1))
        print(f"written to {given.json}")


if __name__ == "__main__":
    main()
