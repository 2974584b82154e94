"""show, perft and symmetries: one position of a game, how many there are, and what its rules do not tell apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import (
    GAME_HELP,
    INTERRUPTED,
    USAGE,
    Engine,
    Json,
    Seed,
    command,
    counted,
    emit,
    fail,
    in_columns,
    load_game,
    say,
    show_table,
    show_width,
    status,
    usage,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..rules.board import Drawing
    from ..rules.counter import StepCounter
    from ..rules.game import Game, Position
    from ..rules.symmetry import Symmetries

MOVE_LINES = 6  # of one role's legal moves, unless all are asked for
WIDTH = 18  # of a column of counts
SHORTEST = 1e-4  # seconds of which a rate is worth telling
SYMMETRY_LINES = 48  # of a list of symmetries, unless all are asked for


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    command(
        app,
        "show",
        "show connectfour",
        'show tictactoe --state --play "(mark 2 2)" --play "(mark 1 1)"',
        "show othello4 --random 6 --seed 3 --matrix",
        'show tictactoe --facts "(cell 1 1 x) (cell 2 2 b) (control oplayer)"',
    )(show)
    command(app, "perft", "perft connectfour --depth 7", "perft tictactoe --json")(perft)
    command(app, "symmetries", "symmetries tictactoe", "symmetries fivemensmorris --json")(symmetries)


def show(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    state: Annotated[bool, typer.Option("--state", help="The state alone, no moves and goals.")] = False,
    facts: Annotated[
        str | None,
        typer.Option("--facts", metavar="FACTS", help="Begin at these facts.", show_default="the first state"),
    ] = None,
    play: Annotated[
        list[str] | None,
        typer.Option(
            "--play",
            metavar="MOVES",
            help="Then play a move of every role, or of every one that has a choice; once for each ply.",
        ),
    ] = None,
    random: Annotated[int, typer.Option("--random", metavar="N", min=0, help="Then play N random plies.")] = 0,
    matrix: Annotated[bool, typer.Option("--matrix", help="Draw x as rows downwards, y as columns.")] = False,
    all_moves: Annotated[bool, typer.Option("--all", help="All legal moves, however many there are.")] = False,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Show a position of a game: its board, its other facts, and the legal moves of every role.

    A board is drawn of facts with two coordinates such as (cell 1 1 b): the first to the right, the second upwards.
    """
    rules = load_game(game, engine)
    with usage():
        position, plies = _reached(rules, facts, play or [])
    position, random_plies = _at_random(position, random, seed)
    plies += random_plies
    drawing = _drawn(position, matrix)
    if json:
        emit(_described(position, plies, drawing))
    else:
        typer.echo("\n".join(_lines(position, plies, drawing, state, all_moves)))


def _reached(game: Game, facts: str | None, plies: Sequence[str]) -> tuple[Position, list[list[str]]]:
    """The position after the plies from these facts or the first state, and the moves of every role in each."""
    position = game.start() if facts is None else game.position(_terms(facts, "facts"))
    played = []
    for ply in plies:
        moves = _joint_move(position, _terms(ply, "moves"))
        position = position.play(moves)
        played.append(moves)
    return position, played


def _terms(text: str, what: str) -> list[str]:
    """The terms that stand in a text; `(true fact)` is the fact."""
    from ..rules.gdl import parse

    heads = [rule.head for rule in parse(text).rules if not rule.arrow]
    if len(heads) != len(parse(text).rules):
        fail(f"expected {what}, got a rule in {text!r}; write them one behind the other, such as (a 1) (b 2)", USAGE)
    return [str(head.args[0]) if head.name == "true" else str(head) for head in heads]


def _joint_move(position: Position, moves: list[str]) -> list[str]:
    """One move of every role, as the game writes it; that of a role that has no choice may be left out."""
    choosing = [role for role, legal in position.legal.items() if len(legal) != 1]
    if len(moves) == len(choosing):
        chosen = dict(zip(choosing, moves, strict=True))
        moves = [chosen.get(role) or legal[0] for role, legal in position.legal.items()]
    spelling = {move.lower(): move for legal in position.legal.values() for move in legal}
    return [spelling.get(move.lower(), move) for move in moves]


def _at_random(position: Position, num_plies: int, seed: int) -> tuple[Position, list[list[str]]]:
    """Plays so many random plies, or as many as there are until the match ends or is stuck."""
    import numpy as np

    rng = np.random.default_rng(seed)
    played: list[list[str]] = []
    while len(played) < num_plies and not position.is_terminal and all(position.legal.values()):
        moves = [legal[rng.integers(len(legal))] for legal in position.legal.values()]
        position = position.play(moves)
        played.append(moves)
    return position, played


def _drawn(position: Position, matrix: bool) -> Drawing:
    from ..rules.board import Boards

    boards = Boards(position.game.rulesheet, position.game.start().facts)
    return boards.draw(position.facts, matrix=matrix, width=show_width())


def _described(position: Position, plies: list[list[str]], drawing: Drawing) -> dict[str, Any]:
    return {
        "game": position.game.name,
        "rules_hash": position.game.rules_hash,
        "engine": position.game.engine,
        "roles": position.game.roles,
        "plies": plies,
        "facts": sorted(position.facts),
        "boards": drawing.boards,
        "terminal": position.is_terminal,
        "goals": position.goals,
        "legal": position.legal,
    }


def _lines(position: Position, plies: list[list[str]], drawing: Drawing, state: bool, all_moves: bool) -> list[str]:
    game = position.game
    title = f"{game.name}: {', '.join(game.roles)}; {game.engine} engine"
    if plies:
        title += f"; after {counted(len(plies), 'ply', 'plies')}, the last {' '.join(plies[-1])}"
    parts = [[title], *(board.split("\n") for board in drawing.boards), in_columns(drawing.others)]
    if not state:
        parts += [_moves(role, legal, all_moves) for role, legal in position.legal.items() if legal]
        parts.append([_verdict(position)])
    return [line for part in parts if part for line in ("", *part)][1:]


def _moves(role: str, legal: Sequence[str], all_moves: bool) -> list[str]:
    """A role's legal moves, the first of them where there are many."""
    if len(legal) == 1:
        return [f"{role} can only play {legal[0]}"]
    lines = in_columns(legal, indent=2)
    if len(lines) > MOVE_LINES and not all_moves:
        lines = [*lines[: MOVE_LINES - 1], "  .. (--all shows them all)"]
    return [f"{role} has {len(legal)} legal moves:", *lines]


def _verdict(position: Position) -> str:
    goals = ", ".join(f"{role} {'none' if goal is None else goal}" for role, goal in position.goals.items())
    if position.is_terminal:
        return f"The match is over; goals: {goals}"
    stuck = [role for role, legal in position.legal.items() if not legal]
    return f"The match is {f'stuck, {stuck[0]} has no legal move' if stuck else 'not over'}; goals here: {goals}"


def perft(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    depth: Annotated[
        int | None,
        typer.Option("--depth", metavar="N", min=0, help="How deep.", show_default="until all matches have ended"),
    ] = None,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Count the sequences of joint moves from the start, depth by depth, and those of them that end a match.

    Equal positions, also counted, are followed once. A depth is shown as soon as it is done; the seconds are CPU time.
    """
    rules = load_game(game, engine)
    rows: list[dict[str, Any]] = []
    if not json:
        typer.echo(
            f"depth{'sequences':>{WIDTH}}{'complete':>{WIDTH}}{'positions':>{WIDTH}}{'CPU s':>12}{'sequences/s':>16}"
        )
    try:
        _count(rules, depth, rows, quiet=json)
    except KeyboardInterrupt:
        say(f"interrupted; counted to depth {len(rows) - 1}" if rows else "interrupted; nothing was counted")
        raise typer.Exit(INTERRUPTED) from None
    except MemoryError:
        fail(f"expected memory for the positions of depth {len(rows)}, got none; lower --depth")
    finally:
        if json:
            emit({"game": rules.name, "rules_hash": rules.rules_hash, "engine": rules.engine, "depths": rows})
    if not json:
        ended = sum(row["complete"] for row in rows)
        if rows[-1]["sequences"] == rows[-1]["complete"]:
            typer.echo(f"all matches have ended: {ended:,}")
        elif depth is None or len(rows) <= depth:
            typer.echo(f"no match goes on: {ended:,} have ended, the others are stuck (see `gamelore check --play`)")


def _count(game: Game, depth: int | None, rows: list[dict[str, Any]], quiet: bool) -> None:
    """Adds a row for each depth, and shows it unless `quiet`."""
    from ..rules.perft import levels

    with status() as doing:
        begin = time.process_time()
        counting = levels(game, lambda done, total: doing(f"depth {len(rows)}: {done:,} of {total:,} moves"))
        for level in islice(counting, None if depth is None else depth + 1):
            seconds, begin = time.process_time() - begin, time.process_time()
            rows.append({**asdict(level), "seconds": seconds})
            doing("")
            if not quiet:
                typer.echo(_row(rows[-1]))


def _row(counted: dict[str, Any]) -> str:
    numbers = "".join(f"{counted[column]:>{WIDTH},}" for column in ("sequences", "complete", "positions"))
    seconds = counted["seconds"]
    rate = f"{counted['sequences'] / seconds:,.0f}" if seconds > SHORTEST else ""
    return f"{counted['depth']:>5}{numbers}{seconds:>12.3f}{rate:>16}".rstrip()


def symmetries(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    show_all: Annotated[bool, typer.Option("--all", help="All symmetries, however many there are.")] = False,
    json: Json = False,
) -> None:
    """Show the symmetries of a game, and its step counter if it has one.

    A symmetry changes facts and moves such that the rules stay as they are, with all roles, goals and the first
    state. It is written as cycles: in (a b c), a becomes b, b becomes c, and c becomes a. Here they are those of facts,
    the ones that hold at first before others.

    A step counter counts the plies, and nothing but the end depends on it.
    """
    from ..rules.counter import step_counter
    from ..rules.symmetry import symmetries as symmetries_of

    rules = load_game(game)
    found, counter = symmetries_of(rules), step_counter(rules)
    if json:
        emit(
            {
                "game": rules.name,
                "rules_hash": rules.rules_hash,
                "num": found.num,
                "why": found.why,
                "symmetries": [_images(found, s) for s in range(found.num)],
                "step_counter": _count_described(rules, counter),
            }
        )
        return
    typer.echo(f"{rules.name}: {counted(found.num, 'symmetry', 'symmetries')}, the identity included")
    if found.why:
        say(f"there may be more: {found.why}")
    shown = found.num if show_all else SYMMETRY_LINES
    if found.num > 1:
        show_table(
            ["", "order", "facts", "moves", "cycles"],
            (_symmetry_row(found, s) for s in range(1, min(shown, found.num))),
            numbers=range(4),
        )
    if found.num > shown:
        typer.echo(f".. {found.num - shown} more (--all shows them)")
    typer.echo(_count_line(rules, counter))


def _images(found: Symmetries, s: int) -> dict[str, Any]:
    """What a symmetry moves: from -> to."""
    game, actions = found.game, found.actions[s].tolist()
    moves = {
        role: {game.move_text(number, a): game.move_text(number, actions[a]) for a in own if actions[a] != a}
        for number, (role, own) in enumerate(zip(game.roles, _actions_by_role(game), strict=True))
    }
    facts = {game.fact_text(f): game.fact_text(to) for f, to in enumerate(found.facts[s].tolist()) if f != to}
    return {"facts": facts, "moves": moves}


def _actions_by_role(game: Game) -> list[range]:
    """The actions of each role; none where the game is not compiled."""
    ranges, first = [], 0
    for moves in game.circuit.actions if game.circuit else [[]] * game.num_roles:
        ranges.append(range(first, first + len(moves)))
        first += len(moves)
    return ranges


def _symmetry_row(found: Symmetries, s: int) -> list[object]:
    """Number, order, how many facts and moves it moves, and as many of its cycles as fit on a line."""
    from math import lcm

    facts, actions = _cycles(found.facts[s]), _cycles(found.actions[s])
    order = lcm(*(len(cycle) for cycle in (*facts, *actions)))
    initial = found.game.circuit.initial if found.game.circuit else []
    facts.sort(key=lambda cycle: not initial[cycle[0]])
    texts = [f"({' '.join(map(found.game.fact_text, cycle))})" for cycle in facts]
    return [s, order, sum(map(len, facts)), sum(map(len, actions)), _as_fits(texts, show_width() - 30)]


def _cycles(permutation: NDArray[Any]) -> list[list[int]]:
    """The cycles of a permutation, each from its smallest number on, without those of one."""
    images = permutation.tolist()
    cycles, seen = [], set()
    for first in range(len(images)):
        cycle = [first]
        while first not in seen and images[cycle[-1]] != first:
            cycle.append(images[cycle[-1]])
        if len(cycle) > 1:
            cycles.append(cycle)
        seen.update(cycle)
    return cycles


def _as_fits(texts: Sequence[str], width: int) -> str:
    """The first texts, as many as fit, at least one, and dots for the others."""
    line = "".join(texts[:1])
    for text in texts[1:]:
        if len(line) + len(text) + len(" ..") > width:
            return f"{line} .."
        line += text
    return line


def _count_described(game: Game, counter: StepCounter | None) -> dict[str, Any] | None:
    if counter is None:
        return None
    return {
        "facts": list(map(game.fact_text, counter.facts)),
        "first": sorted(game.facts(counter.first)),
        "last": sorted(game.facts(counter.last)),
        "plies": counter.length,
        "ends_the_match": counter.ends,
    }


def _count_line(game: Game, counter: StepCounter | None) -> str:
    if counter is None:
        return "no step counter"
    first, last = (" ".join(sorted(game.facts(bits))) or "none" for bits in (counter.first, counter.last))
    end = "where the match ends" if counter.ends else "where it stands still"
    return f"step counter: from {first} to {last}, {counted(counter.length, 'ply', 'plies')} later, {end}"
