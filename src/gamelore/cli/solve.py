"""solve: what a game is worth under best play, and how that goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import (
    GAME_HELP,
    USAGE,
    Engine,
    Json,
    command,
    counted,
    emit,
    fail,
    load_game,
    show_table,
)

if TYPE_CHECKING:
    from ..play.bestline import BestLine, MoveValue
    from ..play.solve import Progress, Solution
    from ..rules.game import Game

GIB = 1 << 30
WIN = 100  # the highest goal of GDL
ENDS = {
    "terminal": "to the end of the match",
    "repetition": "until a position comes back",
    "cut": "the first of a line that goes on",
}


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "solve",
        "solve tictactoe",
        "solve fivemensmorris:flying=yes",
        "solve connect3 --memory 1 --json",
        kept="earlier solutions are as they were",
    )(solve)


def solve(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    memory: Annotated[
        float, typer.Option("--memory", metavar="GIB", help="What it may take; a game that needs more is refused.")
    ] = 4.0,
    symmetry: Annotated[
        bool,
        typer.Option("--symmetry/--no-symmetry", help="Count symmetric positions as one; the values are the same."),
    ] = True,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Solve a game: what every position is worth, and how many plies from its end.

    For two roles that take turns in a zero-sum game, and for one role. The solution is kept in one file of the cache
    folder, so a second call, and the players perfect, expert and novice, have it at once.

    A step counter that only ends matches, with half of the points for each, is left out, and the result says so: values
    and distances are those of the game in which nobody counts.
    """
    if not 0 < memory < inf:
        fail(f"expected --memory above 0, got {memory:g}; it is in GiB, as in --memory 8", USAGE)
    from ..play.bestline import best_line, first_moves
    from ..play.graph import Graph
    from ..play.perfect import SolvedMoves

    rules = load_game(game, engine)
    solution = solved(rules, int(memory * GIB), symmetry)
    moves = SolvedMoves(Graph(rules), solution)
    report = _report(rules, solution, first_moves(moves), best_line(moves))
    emit(report) if json else _show(report)


def solved(game: Game, memory: int = 4 * GIB, symmetry: bool = True) -> Solution:
    """The solution of a game, with a bar on standard error while it is worked out."""
    from ..play.solve import solve

    with _progress() as progress:
        return solve(game, memory=memory, symmetry=symmetry, progress=progress)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Two bars, one after the other, with the remaining time; gone when it is over."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(stage: str, done: int, of: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=of)
            bars.update(tasks[stage], completed=done, total=of)

        yield tell


def _report(game: Game, solution: Solution, moves: list[MoveValue], line: BestLine) -> dict[str, Any]:
    return {
        "game": game.name,
        "rules_hash": game.rules_hash,
        "engine": game.engine,
        "values": dict(zip(game.roles, solution.values, strict=True)),
        "distance": solution.distance,
        "positions": solution.num_positions,
        "classes": solution.num_classes,
        "symmetries": solution.canonical.symmetries.num,
        "moves": solution.num_moves,
        "left_out": list(solution.left_out),
        "first_moves": [
            {
                "role": move.role,
                "move": move.move,
                "values": dict(zip(game.roles, move.goals, strict=True)),
                "distance": move.distance,
                "best": move.best,
            }
            for move in moves
        ],
        "best_line": {"moves": [list(joint) for joint in line.moves], "end": line.end},
        "seconds": solution.seconds,
    }


def _show(report: dict[str, Any]) -> None:
    values: dict[str, int] = report["values"]
    show_table(("role", "value"), list(values.items()), numbers=[1])
    typer.echo(f"\n{_verdict(report)}\n")
    rows = [
        (
            move["role"],
            move["move"],
            *move["values"].values(),
            _distance(move["distance"]),
            "best" if move["best"] else "",
        )
        for move in report["first_moves"]
    ]
    show_table(("first", "move", *values, "plies", ""), rows, numbers=range(2, 3 + len(values)))
    line = report["best_line"]
    typer.echo(f"\nbest play, {ENDS[line['end']]}:\n")
    show_table(("ply", *values), [(ply, *joint) for ply, joint in enumerate(line["moves"], 1)], numbers=[0])
    typer.echo(f"\n{_size(report)}")


def _verdict(report: dict[str, Any]) -> str:
    """In a sentence who wins, and in which game."""
    values: dict[str, int] = report["values"]
    best = max(values, key=lambda role: values[role])
    in_plies = f", in {counted(report['distance'], 'ply', 'plies')}" if report["distance"] >= 0 else ""
    if len(values) == 1:
        text = f"{best} can get {values[best]}{in_plies}."
    elif len(set(values.values())) == 1:
        text = "A draw under best play."
    elif values[best] == WIN:
        text = f"{best} wins under best play{in_plies}."
    else:
        text = f"{' and '.join(f'{role} gets {goal}' for role, goal in values.items())} under best play{in_plies}."
    if report["left_out"]:
        text += (
            f" Solved is the game {without_counter(report['left_out'])}: there a match need not end, and one that does "
            "not is a draw, as it is at the end of the count."
        )
    return text


def without_counter(left_out: Sequence[str]) -> str:
    """Which game was solved, where a step counter was left out."""
    return f"without its step counter, {left_out[0]} .. {left_out[-1]}"


def _size(report: dict[str, Any]) -> str:
    positions, classes = f"{report['positions']:,} positions", f"{report['classes']:,}"
    if report["symmetries"] > 1:
        positions += f", {classes} up to {report['symmetries']} symmetries, which have {report['moves']:,} moves"
    return f"{positions}; worked out in {report['seconds']:.1f} s of processor time, {report['engine']} engine"


def _distance(distance: int) -> str:
    return str(distance) if distance >= 0 else "-"
