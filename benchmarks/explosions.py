"""Run commands on rulesheets that explode, and measure how far they exceed their limits.

`tests/explosions.py` makes the rulesheets. Each command runs in a process of its own with an empty cache of compiled
games. From its processor time and its largest memory, with those of its children, those of the same command on
tictactoe are subtracted: the start of Python, the imports and what else any game needs. If a rulesheet cannot be
loaded, those of the command that is not allowed to load tictactoe, with a limit of 0 seconds, are subtracted instead.

`serve` gets the rules in a message START. Until its answer, and once more after it, it must answer INFO within a
second. Its player is `random`, which does not think, so that only what the rules need is measured.

The program exits with 1 if a command takes more than 1.5 times its limit of time or memory, ends with a traceback, or
fails without one clear error, or if a server is late. Linux only.

    python benchmarks/explosions.py --seconds 2 --memory 0.5
    python benchmarks/explosions.py --commands show,serve --explosions counter,board --json
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
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import gamelore
from explosions import EXPLOSIONS, explosion
from gamelore import rulesheets
from gamelore.lab.seats import cpu_seconds, descendants

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
PER_LIMIT, AT_LEAST = 30, 180  # wall-clock seconds: a process is killed after PER_LIMIT times its limit, or AT_LEAST
NAMED = 5  # rulesheets of the tables for each command
SAMPLED = 0.02  # seconds between two looks at the memory of all processes
SERVER_MEMORY = 1.0  # GiB, the least for a process of a server
PREPARING = 3  # processes of a server that read the rules, each within the limits: to compare them, to play, to follow
STARTCLOCK, LATE = 10, 3  # seconds; an answer to START may take both together
ANSWER, BETWEEN = 1.0, 0.2  # seconds for an answer to INFO, and until the next question
SERVER = "serve"


class Command(NamedTuple):
    """A command line, and its limits: seconds of processor time, and bytes."""

    line: Sequence[str]
    seconds: float
    memory: float


def _commands(sheet: Path, seconds: float, memory: float, folder: str, load_seconds: float) -> dict[str, Command]:
    """Return the commands for a rulesheet; `memory` is in GiB, `load_seconds` the limit that loading really gets."""
    limits = ["--load-seconds", f"{load_seconds}", "--memory", f"{memory}"]
    store = ["--knowledge", f"{folder}/knowledge.db"]
    load = [sys.executable, "-c", LOAD, f"{sheet}", f"{load_seconds}", f"{int(memory * GIB)}"]
    of_server = max(memory, SERVER_MEMORY)
    serving = ["--port", "0", "--json", "--player", "random", "--memory", f"{of_server}G", "--prepare-seconds"]
    lines = {
        "check": (["check", f"{sheet}", *limits], seconds),
        "check --play": (["check", f"{sheet}", "--play", "--seconds", f"{seconds}", *limits], 2 * seconds),
        "show": (["show", f"{sheet}", *limits], seconds),
        "bench": (
            ["bench", f"{sheet}", "--seconds", f"{BENCH_SECONDS}", *limits],
            2 * seconds + PATIENCE * BENCH_SECONDS,
        ),
        "learn": (["learn", f"{sheet}", "--matches", "1", *store, *limits], seconds),
    }
    commands = {name: Command([*GAMELORE, *line], limit, memory * GIB) for name, (line, limit) in lines.items()}
    serve = [*GAMELORE, SERVER, *serving, f"{seconds}", *store]
    return {
        "load": Command(load, seconds, memory * GIB),
        **commands,
        SERVER: Command(serve, PREPARING * seconds, PREPARING * of_server * GIB),
    }


@dataclass(frozen=True, slots=True)
class Run:
    """A command that has ended: exit code, seconds of processor time and wall clock, bytes, and its output."""

    code: int
    cpu: float
    wall: float
    memory: float
    output: str


def _run(command: Command, folder: str, rules: str = "") -> Run:
    """Run a command with an empty cache. Kill its processes if it does not end. `rules`: for START to a server."""
    environment = {
        **os.environ,
        "GAMELORE_CACHE": f"{folder}/cache",
        "PYTHONPATH": str(Path(gamelore.__file__).parents[1]),
        "COLUMNS": "200",
    }
    start, patience, asked = time.monotonic(), max(AT_LEAST, PER_LIMIT * command.seconds), ""
    output = Path(folder) / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command.line, stdout=file, stderr=file, env=environment, start_new_session=True, cwd=folder
        )
    killer = threading.Timer(patience, os.killpg, (process.pid, signal.SIGKILL))
    killer.start()
    with _Tree(process.pid) as tree:
        if rules:
            asked = _asked(process, output, rules)
            process.send_signal(signal.SIGINT)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    killer.cancel()
    # The system knows the time until the end, but not of children that were not waited for. Its largest memory would
    # be at least that of this process.
    cpu, wall = max(tree.cpu, usage.ru_utime + usage.ru_stime), time.monotonic() - start
    return Run(process.returncode, cpu, wall, tree.memory, output.read_text("utf-8", "replace") + asked)


class _Tree:
    """What a process and its descendants have used so far: seconds of processor time, and bytes at once."""

    def __init__(self, pid: int) -> None:
        self.pid, self.cpu, self.memory = pid, 0.0, 0
        self._is_over = threading.Event()

    def __enter__(self) -> _Tree:
        self._sampler = threading.Thread(target=self._look, daemon=True)
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._sampler.join()

    def _look(self) -> None:
        while not self._is_over.wait(SAMPLED):
            self.cpu = max(self.cpu, cpu_seconds(self.pid))
            pids = descendants(self.pid)
            peaks = (_memory(pid, "VmHWM") for pid in pids)  # of one process, also between two looks
            self.memory = max(self.memory, sum(_memory(pid, "VmRSS") for pid in pids), *peaks)


def _memory(pid: int, what: str) -> int:
    """Return the memory of a process now (VmRSS) or at its peak (VmHWM), in bytes; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) << 10
    return 0


# ---- a server ----


def _asked(process: subprocess.Popen[bytes], output: Path, rules: str) -> str:
    """Send START to the server whose output has its address, and INFO meanwhile; return lines about its answers."""
    while not (address := re.search(r'"url": "(.*?)"', output.read_text("utf-8", "replace"))):
        if not _memory(process.pid, "VmRSS"):
            return "\nthere was no server"
        time.sleep(BETWEEN)
    role = re.search(r"\(role ([^()\s]+)\)", rules)
    start = f"( START match {role[1] if role else 'x'} ( {rules} ) {STARTCLOCK} 5 )"
    told: list[str] = []
    starting = threading.Thread(target=lambda: told.append(_answer(address[1], start, STARTCLOCK + LATE)), daemon=True)
    starting.start()
    answers = []
    while starting.is_alive():
        answers.append(_answer(address[1], "( INFO )", ANSWER))
        starting.join(BETWEEN)
    answers.append(_answer(address[1], "( INFO )", ANSWER))
    late = [answer for answer in answers if "too late" in answer]
    return "\n".join(["", *(late or answers)[-1:], *told])


def _answer(url: str, message: str, seconds: float) -> str:
    """Send a message; return a line with the answer, its time, and whether it came too late."""
    start = time.monotonic()
    request = urllib.request.Request(url, message.encode(), {"Content-Type": "text/acl"})
    try:
        with urllib.request.urlopen(request, timeout=20 * seconds) as answer:
            text = answer.read().decode("utf-8", "replace")
    except OSError as error:
        text = f"{error}"
    took = time.monotonic() - start
    late = ", too late" if took > seconds else ""
    return f"{message.split()[1]} was answered by {text[:40]!r} in {took:.2f} s{late}"


# ---- rows ----


@dataclass(frozen=True, slots=True)
class Row:
    """A command on a rulesheet: what it took beyond any game, as parts of its limits, and what is wrong with it."""

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


def _row(name: str, command: str, limits: Command, run: Run, usual: Run) -> Row:
    cpu, more = max(0.0, run.cpu - usual.cpu), max(0.0, run.memory - usual.memory)
    of_time, of_memory = cpu / limits.seconds, more / limits.memory
    faults = [*_faults(command, run), *(["time"] if of_time > MOST else []), *(["memory"] if of_memory > MOST else [])]
    return Row(name, command, cpu, of_time, run.wall, more / 2**20, of_memory, run.code, faults, _message(run))


def _faults(command: str, run: Run) -> list[str]:
    """Return what is wrong with the end of a command. A server is interrupted, and has no error of its own."""
    faults = []
    if command == SERVER:
        faults += ["late"] if re.search("too late$", run.output, re.MULTILINE) else []
        faults += ["no answer"] if "START was answered" not in run.output else []
    if "Traceback (most recent call last)" in run.output:
        faults.append("traceback")
    if run.code not in ((0, 130) if command == SERVER else (0, 1)):
        faults.append(f"exit code {run.code}")
    if run.code == 1 and not re.search(r"(^|: )error: ", run.output, re.MULTILINE):
        faults.append("no error")
    if len(re.findall(r"^error: ", run.output, re.MULTILINE)) > 1:
        faults.append("several errors")
    return faults


def _message(run: Run) -> str:
    """Return the line with the error or the finding, or else the last line."""
    lines = [line for line in run.output.splitlines() if line.strip()] or [""]
    telling = [line for line in lines if re.search(r"error: |\[too-large\]|was answered by", line)]
    return (telling or lines[-1:])[-1]


class Measurement:
    """Runs of commands, with these limits in seconds and GiB. `tell` shows the progress."""

    def __init__(self, commands: Sequence[str], seconds: float, memory: float, tell: Callable[[str], None]) -> None:
        self.commands, self.seconds, self.memory, self.tell = commands, seconds, memory, tell
        tictactoe = rulesheets.place("tictactoe")
        for command in commands:  # numba may compile kernels when they are first used
            self._measured(command, tictactoe)
        self.loaded = {command: self._measured(command, tictactoe) for command in commands}
        self.refused = {command: self._measured(command, tictactoe, 0.0) for command in commands}

    def rows(self, name: str) -> list[Row]:
        """Run the commands on a rulesheet."""
        with TemporaryDirectory() as folder:
            sheet = Path(folder) / f"{name.replace(' ', '_')}.kif"
            sheet.write_text(explosion(name), encoding="utf-8")
            usual = self.refused if self._measured("load", sheet).code else self.loaded
            return [self._row(name, command, sheet, usual[command]) for command in self.commands]

    def _row(self, name: str, command: str, sheet: Path, usual: Run) -> Row:
        run = self._measured(command, sheet)
        row = _row(name, command, _commands(sheet, self.seconds, self.memory, "", 0.0)[command], run, usual)
        self.tell(f"  {row.of_time:.2f} of the time, {row.of_memory:.2f} of the memory {row.faults}: {row.message}")
        return row

    def _measured(self, command: str, sheet: Path, load_seconds: float | None = None) -> Run:
        self.tell(f"{command} on {sheet.stem}")
        load_seconds = self.seconds if load_seconds is None else load_seconds
        with TemporaryDirectory() as folder:
            line = _commands(sheet, self.seconds, self.memory, folder, load_seconds)[command]
            return _run(line, folder, sheet.read_text(encoding="utf-8") if command == SERVER else "")


def _table(rows: Sequence[Row]) -> str:
    """Return two tables in Markdown: the worst rulesheets of each command, and the rows of these and of all faults."""
    summary = ["| command | worst of the limit of time | worst of the limit of memory |", "|---|---|---|"]
    lines = [
        "| command | explosion | CPU s | of limit | MiB | of limit | wall s | exit | faults | message |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for command in dict.fromkeys(row.command for row in rows):
        own = [row for row in rows if row.command == command]
        by_time = sorted(own, key=lambda row: -row.of_time)[:NAMED]
        by_memory = sorted(own, key=lambda row: -row.of_memory)[:NAMED]
        times = ", ".join(f"{row.explosion} {row.of_time:.2f}" for row in by_time)
        memories = ", ".join(f"{row.explosion} {row.of_memory:.2f}" for row in by_memory)
        summary.append(f"| {command} | {times} | {memories} |")
        lines += [_line(row) for row in own if row in by_time or row in by_memory or row.faults]
    return "\n".join([*summary, "", *lines])


def _line(row: Row) -> str:
    """Return a row as a line of a table in Markdown."""
    figures = f"{row.cpu_s:.1f} | {row.of_time:.2f} | {row.memory_mib:.0f} | {row.of_memory:.2f} | {row.wall_s:.1f}"
    message = row.message[:120].replace("|", "\\|")
    return f"| {row.command} | {row.explosion} | {figures} | {row.code} | {', '.join(row.faults)} | {message} |"


def main(
    seconds: Annotated[float, typer.Option(help="Limit of loading, and of play, in seconds of processor time.")] = 2.0,
    memory: Annotated[float, typer.Option(help="Limit of memory in GiB.")] = 0.5,
    commands: Annotated[str, typer.Option(help="Names of commands, separated by commas.", show_default="all")] = "",
    explosions: Annotated[str, typer.Option(help="Names of rulesheets.", show_default="all")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print every row as JSON.")] = False,
) -> None:
    """Measure how far commands exceed their limits on rulesheets that explode."""
    names = explosions.split(",") if explosions else list(EXPLOSIONS)
    chosen = commands.split(",") if commands else [*_commands(Path(), seconds, memory, "", seconds)]

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    measurement = Measurement(chosen, seconds, memory, tell)
    rows = [row for name in names for row in measurement.rows(name)]
    print(json.dumps([asdict(row) for row in rows], indent=2) if as_json else _table(rows))
    if any(row.faults for row in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
