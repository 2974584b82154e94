"""Run commands on rulesheets that explode, and measure how far they exceed their limits.

`tests/explosions.py` makes the rulesheets. Each command runs in a process of its own with an empty cache of compiled
games. From its processor time and its largest memory, those of the same command on tictactoe are subtracted: the start
of Python, the imports and what else any game needs. The program exits with 1 if a command takes more than 1.5 times its
limit of time or memory, ends with a traceback, or fails without one clear error.

    python benchmarks/explosions.py --seconds 2 --memory 0.5
    python benchmarks/explosions.py --commands show,learn --explosions counter,board --json
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import gamelore
from explosions import EXPLOSIONS, explosion

GAMELORE = (sys.executable, "-c", "from gamelore.cli import main; main()")
LOAD = """
import sys
import gamelore
from gamelore.gdl.limits import Limits
from pathlib import Path
try:
    gamelore.load(Path(sys.argv[1]), limits=Limits(float(sys.argv[2]), memory=int(sys.argv[3])))
except gamelore.GameloreError as error:
    sys.exit(f"error: {error}")
"""
GIB = 1 << 30
MOST = 1.5  # times a limit
BENCH_SECONDS, PATIENCE = 0.1, 30  # of playouts; `bench` gives up after so many times these seconds
PER_LIMIT, AT_LEAST = 30, 120  # wall-clock seconds: a process is killed after PER_LIMIT times its limit, or AT_LEAST
NAMED = 5  # rows of the table for each command


class Command(NamedTuple):
    """A command line, and its limit in seconds of processor time."""

    line: Sequence[str]
    seconds: float


def _commands(sheet: str, seconds: float, memory: float, folder: str) -> dict[str, Command]:
    """Return the commands for a rulesheet; `memory` is in GiB."""
    limits = ["--load-seconds", f"{seconds}", "--memory", f"{memory}"]
    load = [sys.executable, "-c", LOAD, sheet, f"{seconds}", f"{int(memory * GIB)}"]
    learn = ["learn", sheet, "--matches", "1", "--knowledge", f"{folder}/knowledge.db"]
    lines = {
        "check": (["check", sheet], seconds),
        "check --play": (["check", sheet, "--play", "--seconds", f"{seconds}"], 2 * seconds),
        "show": (["show", sheet], seconds),
        "bench": (["bench", sheet, "--seconds", f"{BENCH_SECONDS}"], 2 * seconds + PATIENCE * BENCH_SECONDS),
        "learn": (learn, seconds),
    }
    commands = {name: Command([*GAMELORE, *line, *limits], limit) for name, (line, limit) in lines.items()}
    return {"load": Command(load, seconds)} | commands


@dataclass(frozen=True, slots=True)
class Run:
    """A command that has ended: exit code, seconds of processor time and wall clock, bytes, and its output."""

    code: int
    cpu: float
    wall: float
    memory: float
    output: str


def _run(command: Command, folder: str) -> Run:
    """Run a command with an empty cache. Kill its processes if it does not end."""
    environment = {
        **os.environ,
        "GAMELORE_CACHE": f"{folder}/cache",
        "PYTHONPATH": str(Path(gamelore.__file__).parents[1]),
        "COLUMNS": "200",
    }
    start, patience = time.monotonic(), max(AT_LEAST, PER_LIMIT * command.seconds)
    with open(f"{folder}/output", "w+b") as output:
        process = subprocess.Popen(
            command.line, stdout=output, stderr=output, env=environment, start_new_session=True, cwd=folder
        )
        killer = threading.Timer(patience, os.killpg, (process.pid, signal.SIGKILL))
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        killer.cancel()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    cpu, wall = usage.ru_utime + usage.ru_stime, time.monotonic() - start
    return Run(process.returncode, cpu, wall, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), text)


@dataclass(frozen=True, slots=True)
class Row:
    """A command on a rulesheet: what it took beyond tictactoe, as parts of its limits, and what is wrong with it."""

    explosion: str
    command: str
    cpu_s: float
    of_time: float
    wall_s: float
    memory_mib: float
    of_memory: float
    code: int
    faults: list[str]
    message: str

    @property
    def worst(self) -> float:
        """The larger part of a limit."""
        return max(self.of_time, self.of_memory)


def _row(name: str, command: str, seconds: float, memory: float, run: Run, usual: Run) -> Row:
    cpu, more = run.cpu - usual.cpu, run.memory - usual.memory
    of_time, of_memory = cpu / seconds, more / (memory * GIB)
    faults = [*_faults(run), *(["time"] if of_time > MOST else []), *(["memory"] if of_memory > MOST else [])]
    return Row(name, command, cpu, of_time, run.wall, more / 2**20, of_memory, run.code, faults, _message(run))


def _faults(run: Run) -> list[str]:
    """Return what is wrong with the end of a command."""
    faults = []
    if "Traceback (most recent call last)" in run.output:
        faults.append("traceback")
    if run.code not in (0, 1):
        faults.append(f"exit code {run.code}")
    if run.code == 1 and not re.search(r"(^|: )error: ", run.output, re.MULTILINE):
        faults.append("no error")
    if len(re.findall(r"^error: ", run.output, re.MULTILINE)) > 1:
        faults.append("several errors")
    return faults


def _message(run: Run) -> str:
    """Return the line with the error or the finding, or else the last line."""
    lines = [line for line in run.output.splitlines() if line.strip()] or [""]
    telling = [line for line in lines if "error: " in line or "[too-large]" in line]
    return (telling or lines[-1:])[-1]


def _measured(
    names: Sequence[str], chosen: Sequence[str], seconds: float, memory: float, tell: Callable[[str], None]
) -> list[Row]:
    """Run the chosen commands on the named rulesheets."""
    rows, usual = [], {}
    with TemporaryDirectory() as sheets:
        for name in ("", "", *names):  # tictactoe twice: the first time, numba may compile kernels
            sheet = "tictactoe"
            if name:
                sheet = f"{sheets}/{name.replace(' ', '_')}.kif"
                Path(sheet).write_text(explosion(name), encoding="utf-8")
            for command in chosen:
                tell(f"{command} on {name or sheet}")
                with TemporaryDirectory() as folder:
                    line = _commands(sheet, seconds, memory, folder)[command]
                    run = _run(line, folder)
                if not name:
                    usual[command] = run
                    continue
                rows.append(_row(name, command, line.seconds, memory, run, usual[command]))
                row = rows[-1]
                tell(f"  {row.of_time:.2f} of the time, {row.of_memory:.2f} of the memory {row.faults}: {row.message}")
    return rows


def _table(rows: Sequence[Row]) -> str:
    """Return the worst rows of each command, and all rows with faults, as a table in Markdown."""
    worst: list[Row] = []
    for command in dict.fromkeys(row.command for row in rows):
        own = sorted((row for row in rows if row.command == command), key=lambda row: -row.worst)
        worst += [row for number, row in enumerate(own) if number < NAMED or row.faults]
    lines = [
        "| command | explosion | CPU s | of limit | MiB | of limit | exit | faults | message |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in worst:
        figures = f"{row.cpu_s:.1f} | {row.of_time:.2f} | {row.memory_mib:.0f} | {row.of_memory:.2f} | {row.code}"
        lines.append(f"| {row.command} | {row.explosion} | {figures} | {', '.join(row.faults)} | {row.message[:120]} |")
    return "\n".join(lines)


def main(
    seconds: Annotated[float, typer.Option(help="Limit of loading, and of play, in seconds of processor time.")] = 2.0,
    memory: Annotated[float, typer.Option(help="Limit of memory in GiB.")] = 0.5,
    commands: Annotated[str, typer.Option(help="Names of commands, separated by commas.", show_default="all")] = "",
    explosions: Annotated[str, typer.Option(help="Names of rulesheets.", show_default="all")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print every row as JSON.")] = False,
) -> None:
    """Measure how far commands exceed their limits on rulesheets that explode."""
    names = explosions.split(",") if explosions else list(EXPLOSIONS)
    chosen = commands.split(",") if commands else [*_commands("", seconds, memory, "")]

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    rows = _measured(names, chosen, seconds, memory, tell)
    print(json.dumps([asdict(row) for row in rows], indent=2) if as_json else _table(rows))
    if any(row.faults for row in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
