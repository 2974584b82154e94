"""bench: how fast games are, each measured in a process of its own."""

from __future__ import annotations

import json as json_text
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from ..errors import GameloreError
from ..games import title
from .console import FAILED, INTERRUPTED, Engine, Json, Seed, command, emit, rulesheet_path, say, status, usage

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
WIDTH = 10  # of a column
CHILD = "from gamelore.cli.bench import measure_here; measure_here()"


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(app, "bench", "bench tictactoe connectfour", "bench games/*.kif --seconds 5 --json")(bench)


def bench(
    games: Annotated[list[str], typer.Argument(metavar="GAME", help="Shipped games or paths of rulesheets.")],
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, help="CPU time of playouts for each.")] = 2.0,
    limit: Annotated[
        float, typer.Option("--limit", min=1, help="Give a game up after so many seconds on the clock.")
    ] = 300.0,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure how fast games are, in CPU time on one thread; every game in a process of its own.

    A step is one joint move of a uniformly random playout, and 'steps' says how many one has. 'start' is from the
    rulesheet to the first legal moves with an empty cache, 'cached' the same again, 'compile' the first playout, and
    'peak' the most memory that was in use.

    The exit code is 1 where a game could not be measured; that stops no other. Where there is no such game, it is 2 and
    nothing is measured.
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
        say(f"interrupted; measured {len(rows)} of {len(games)}")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if json:
            emit(rows)
    if any(row["error"] for row in rows):
        raise typer.Exit(FAILED)


def _measured(name: str, engine: str, seconds: float, seed: int, limit: float) -> dict[str, Any]:
    """Everything about one game: in a fresh process with an empty cache, then its start in another one."""
    request = {"game": name, "engine": engine, "seconds": seconds, "seed": seed}
    with TemporaryDirectory(prefix="gamelore-") as cache:
        row = _in_fresh_process(request, cache, limit)
        if not row["error"]:
            again = _in_fresh_process({**request, "seconds": 0}, cache, limit)
            row |= {"cached_start_s": again.get("start_s"), "error": again["error"]}
    return row


def _in_fresh_process(request: dict[str, Any], cache: str, limit: float) -> dict[str, Any]:
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
        answer = {"error": f"expected it to be measured within {limit:g} s; raise --limit, or lower --seconds"}
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        answer = {"error": f"expected an answer of its process, got exit code {done.returncode} and: {last}"}
    return {"game": request["game"], "error": None, **answer}


def measure_here() -> None:
    """What the process of one game does: prints its figures, or its error, as JSON."""
    from ..games import load
    from ..rules.speed import playout_speed, size, started

    request = json_text.loads(sys.argv[1])
    try:
        game, start_s = started(lambda: load(request["game"], request["engine"]))
        answer: dict[str, Any] = {"engine": game.engine, "reason": game.engine_reason, **size(game), "start_s": start_s}
        if request["seconds"]:
            speed = playout_speed(game, request["seconds"], request["seed"])
            answer |= asdict(speed) | {name: getattr(speed, name) for name in RATES} | {"peak_mb": _peak_mb()}
    except (GameloreError, OSError, MemoryError) as error:
        answer = {"error": str(error) or type(error).__name__}
    print(json_text.dumps(answer))


def _peak_mb() -> float | None:
    """The most memory that this process had, in units of 10^6 bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def _show(row: dict[str, Any], size: int, json: bool) -> None:
    if row["error"]:
        at = "" if row["error"].startswith(row["game"]) else f"{row['game']}: "
        say(f"error: {at}{row['error']}")
    elif not json:
        typer.echo(_line(title(row["game"]), [_cell(row[column]) for column in COLUMNS], size))
        if row.get("reason"):
            how = "natively" if row["engine"] == "native" else "on the reasoner, because"
            say(f"{row['game']} plays {how} {row['reason']}")


def _line(name: str, cells: Sequence[str], size: int) -> str:
    return f"{name:<{size}} " + " ".join(f"{cell:>{WIDTH}}" for cell in cells)


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None else f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
