"""bench: the CPU time that a game needs until its first legal moves, and for random playouts on one thread."""

from __future__ import annotations

import json as json_text
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import inf
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ..errors import GameloreError
from ..game.game import Game
from ..gdl.limits import Limits
from ..rulesheets import title
from . import console
from .console import FAILED, INTERRUPTED, Engine, Json, Seed, command, emit, rulesheet_path, say, status, usage

SIDE_BY_SIDE = 512  # matches that the native engine plays at once; fewer matches take as much time
GROWTH = 4  # highest ratio between the numbers of playouts in successive trials
PATIENCE = {"native": 30, "reasoner": 3}  # time limit of a call, as a multiple of the requested seconds
COLUMNS = {
    "engine": "engine",
    "playouts_per_s": "playouts/s",
    "steps_per_s": "steps/s",
    "mean_steps": "steps",
    "num_facts": "facts",
    "num_actions": "actions",
    "num_gates": "gates",
    "start_s": "start s",
    "cached_start_s": "cached s",
    "compile_s": "compile s",
    "peak_mb": "peak MB",
}
RATES = ("playouts_per_s", "steps_per_s", "mean_steps")
WIDTH = 10  # characters of a column
CHILD = "from gamelore.cli.bench_command import measure_here; measure_here()"

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class PlayoutSpeed:
    """Time of random playouts: number of matches, total number of joint moves, CPU and wall-clock seconds.

    `compile_s`: CPU seconds of an earlier call that compiled the code. If the only match did not end, `num_playouts`
    is 0 and `num_steps` is the number of its steps so far.
    """

    num_playouts: int
    num_steps: int
    cpu_s: float
    wall_s: float
    compile_s: float

    @property
    def playouts_per_s(self) -> float | None:
        """Random matches per second; None if no match ended."""
        return self.num_playouts / self.cpu_s if self.num_playouts else None

    @property
    def steps_per_s(self) -> float:
        """Joint moves per second."""
        return self.num_steps / self.cpu_s

    @property
    def mean_steps(self) -> float | None:
        """Joint moves per match; None if no match ended."""
        return self.num_steps / self.num_playouts if self.num_playouts else None


def started(load: Callable[[], Game]) -> tuple[Game, float]:
    """Load a game and compute its first legal moves; return the game and the CPU seconds for both."""
    begin = time.process_time()
    game = load()
    _ = game.start().legal
    return game, time.process_time() - begin


def circuit_size(game: Game) -> dict[str, int | None]:
    """Return the numbers of facts, actions and gates of a game; each number is None if the game has no circuit."""
    names = ("num_facts", "num_actions", "num_gates")
    return {name: getattr(game.circuit, name) if game.circuit else None for name in names}


def playout_speed(game: Game, seconds: float, seed: int = 0) -> PlayoutSpeed:
    """Measure one call of `game.playouts` that takes about `seconds`; earlier, shorter calls find a suitable size.

    Raises GameloreError if the first playouts of the native engine do not end within PATIENCE * `seconds`.
    """
    n, compile_s = 1, 0.0
    if game.engine == "native":
        n, compile_s = SIDE_BY_SIDE, _timed(game, 1, seconds, seed).cpu_s
    while True:
        speed = _timed(game, n, seconds, seed, compile_s)
        if speed.cpu_s >= seconds / 2 or not speed.num_playouts:
            return speed
        n = max(n + 1, min(GROWTH * n, int(n * seconds / max(speed.cpu_s, 1e-6))))


class _OutOfTimeError(Exception):
    pass


def _timed(game: Game, n: int, seconds: float, seed: int, compile_s: float = 0.0) -> PlayoutSpeed:
    """Measure n playouts. If the reasoner does not finish its playout in time, measure the steps that it made."""
    begin, wall = time.process_time(), time.perf_counter()
    num_reports, last, spent, patience = 0, inf, 0.0, PATIENCE[game.engine] * seconds

    def progress(done: int) -> None:
        nonlocal num_reports, last, spent
        now = time.process_time()
        spent += min(max(now - last, 0.0), patience / 3)  # the clock goes on in a pause of the machine
        num_reports, last = num_reports + 1, now
        if spent > patience:
            raise _OutOfTimeError

    try:
        played = game.playouts(n, seed, threads=1, progress=progress)
        num_playouts, num_steps = played.num_playouts, played.num_steps
    except _OutOfTimeError:
        num_playouts, num_steps = 0, n * num_reports  # the reasoner reports after each step
    cpu_s, wall_s = time.process_time() - begin, time.perf_counter() - wall
    if not num_playouts and game.engine == "native":
        raise GameloreError(
            f"expected random playouts of {game.name} to end, but {n} of them did not end in {cpu_s:.0f} s; "
            "allow more --seconds, or let `gamelore check --play` test whether matches must end"
        )
    return PlayoutSpeed(num_playouts, num_steps, cpu_s, wall_s, compile_s)


@command(app, "bench", "bench tictactoe connectfour", "bench games/*.kif --seconds 5 --json", loads="games")
def bench(
    games: Annotated[list[str], Argument(metavar="GAME", help="Shipped games or paths of rulesheets.")],
    seconds: Annotated[float, Option(min=0.01, help="CPU time in seconds for the playouts of each game.")] = 2.0,
    limit: Annotated[
        float, Option(min=1, help="Stop measuring a game after this many seconds of wall-clock time.")
    ] = 300.0,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure the speed of games in CPU time on one thread, each game in a separate process.

    A step is one joint move. In a playout all moves are uniformly random. 'steps' is the mean number of steps in a
    playout. 'start' is the time to read the rulesheet and find the first legal moves with an empty cache; 'cached' is
    this time with a filled cache. 'compile' is the time of the first playout, and 'peak' is the highest memory use.

    A game is loaded twice, within the limits each time; the playouts stay within the same memory.

    If a game cannot be measured, all other games are measured and the exit code is 1. If a game does not exist, no
    game is measured and the exit code is 2.
    """
    with usage():
        for name in games:
            rulesheet_path(name)
    rows: list[dict[str, Any]] = []
    size = max(len(title(name)) for name in games)
    if not json:
        typer.echo(_line("game", list(COLUMNS.values()), size))
    try:
        with status() as doing:
            for number, name in enumerate(games, 1):
                doing(f"{number} of {len(games)}: {name}")
                rows.append(_measured(name, engine, seconds, seed, limit))
                doing("")
                _show(rows[-1], size, json)
    except KeyboardInterrupt:
        say(f"interrupted; {len(rows)} of {len(games)} games were measured")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if json:
            emit(rows)
    if any(row["error"] for row in rows):
        raise typer.Exit(FAILED)


def _measured(name: str, engine: str, seconds: float, seed: int, limit: float) -> dict[str, Any]:
    """Measure one game in a new process with an empty cache, then measure its start again with the filled cache."""
    request = {
        "game": name,
        "engine": engine,
        "seconds": seconds,
        "seed": seed,
        "limits": asdict(console.LOADING.get()),
    }
    with TemporaryDirectory(prefix="gamelore-") as cache:
        row = _in_fresh_process(request, cache, limit)
        if not row["error"]:
            again = _in_fresh_process({**request, "seconds": 0}, cache, limit)
            row |= {"cached_start_s": again.get("start_s"), "error": again["error"]}
    return row


def _in_fresh_process(request: dict[str, Any], cache: str, limit: float) -> dict[str, Any]:
    """Run `measure_here` in a new process; return its answer, or an error if it fails or exceeds `limit` seconds."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json_text.dumps(request)],
            env=os.environ | {"GAMELORE_CACHE": cache},
            capture_output=True,
            text=True,
            timeout=limit,
        )
        answer: dict[str, Any] = json_text.loads(done.stdout)
    except subprocess.TimeoutExpired:
        answer = {
            "error": f"expected to measure the game within {limit:g} s, but it took longer; "
            "raise --limit, or lower --seconds"
        }
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        answer = {
            "error": f"expected an answer from the measuring process, got exit code {done.returncode} and: {last}"
        }
    return {"game": request["game"], "error": None, **answer}


def measure_here() -> None:
    """Measure a game in this process; print the results or the error as JSON. The request is the first argument."""
    from ..rulesheets import load

    request = json_text.loads(sys.argv[1])
    limits = Limits(**request["limits"])
    try:
        with console.whole_command(limits.memory, "bench"):
            game, start_s = started(lambda: load(request["game"], request["engine"], limits))
            answer: dict[str, Any] = {
                "engine": game.engine,
                "reason": game.engine_reason,
                **circuit_size(game),
                "start_s": start_s,
            }
            if request["seconds"]:
                speed = playout_speed(game, request["seconds"], request["seed"])
                answer |= asdict(speed) | {name: getattr(speed, name) for name in RATES} | {"peak_mb": _peak_mb()}
    except (GameloreError, OSError, MemoryError) as error:
        answer = {"error": str(error) or type(error).__name__}
    print(json_text.dumps(answer))


def _peak_mb() -> float | None:
    """Return the peak memory of this process in units of 10^6 bytes; None if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _show(row: dict[str, Any], size: int, json: bool) -> None:
    """Print the table row of a game unless `json`. Print its error, or the reason for its engine, on standard error."""
    if row["error"]:
        prefix = "" if row["error"].startswith(row["game"]) else f"{row['game']}: "
        say(f"error: {prefix}{row['error']}")
    elif not json:
        typer.echo(_line(title(row["game"]), [_cell(row[column]) for column in COLUMNS], size))
        if row.get("reason"):
            how = "on the native engine:" if row["engine"] == "native" else "on the reasoner:"
            say(f"{row['game']} plays {how} {row['reason']}")


def _line(name: str, cells: Sequence[str], size: int) -> str:
    return f"{name:<{size}} " + " ".join(f"{cell:>{WIDTH}}" for cell in cells)


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None else f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
