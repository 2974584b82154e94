"""show, think, perft, symmetries and solve: draw positions, search, count moves, find symmetries, compute values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from ..api.progress import progress_bars
from ..errors import counted
from ..files import write_whole
from ..gdl.limits import GIB
from . import console
from .console import Engine, GameName, Json, Seed, num_bytes

if TYPE_CHECKING:
    from ..analysis.symmetry import StepCounter
    from ..api.exact import Solved
    from ..drawing.position import PositionText
    from ..drawing.thought import MoveThought, Thought
    from ..game.game import Game, Position

BEST_MOVES = 12  # moves of each role that `think` shows, without --all
MOVE_LINES = 6  # lines of legal moves for each role, without --all
SYMMETRY_LINES = 48  # lines in a list of symmetries, without --all
WIDTH = 18  # characters of a column of counts
SHORTEST = 1e-4  # seconds; if counting took less time, no rate per second is shown
WIN = 100  # the highest goal of GDL
ENDS = {
    "terminal": "to the end of the match",
    "repetition": "until a position occurs again",
    "cut": "the first plies of a longer line",
}
FirstFacts = Annotated[
    str | None, Option(metavar="FACTS", help="Start from these facts.", show_default="the initial state")
]
Plies = Annotated[
    list[str] | None,
    Option(
        metavar="MOVES",
        help="Then play one ply: the moves of all roles, or only of the roles with a choice. Repeatable.",
    ),
]
AllMoves = Annotated[bool, Option("--all", help="Show all legal moves, even if there are many.")]

app = typer.Typer()


@console.command(
    app,
    "show",
    "show connectfour",
    'show tictactoe --state --play "(mark 2 2)" --play "(mark 1 1)"',
    "show othello4 --random 6 --seed 3 --matrix",
    "show checkers.kif --random 20 --svg position.svg",
    'show tictactoe --facts "(cell 1 1 x) (cell 2 2 b) (control oplayer)"',
    loads="within memory",
)
def show(
    game: GameName,
    state: Annotated[bool, Option("--state", help="Show the state only, without moves and goals.")] = False,
    facts: FirstFacts = None,
    play: Plies = None,
    random: Annotated[int, Option(metavar="N", min=0, help="Then play N random plies.")] = 0,
    matrix: Annotated[
        bool, Option("--matrix", help="Draw the first coordinate as rows from the top, the second as columns.")
    ] = False,
    all_moves: AllMoves = False,
    svg: Annotated[
        Path | None,
        Option(
            metavar="FILE", callback=console.svg_name, help="Also write a picture of the position into an SVG file."
        ),
    ] = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Show a position of a game: its board, its other facts, and the legal moves of every role.

    Facts with two coordinates such as (cell 1 1 b) are drawn as a board. The first coordinate increases to the right,
    the second upwards.
    """
    from ..drawing.position import position_svg, state_text, text_boards

    rules = console.load_game(game, engine)
    with console.usage():
        position, plies = _reached(rules, facts, play or [])
    position, random_plies = _at_random(position, random, seed)
    plies += random_plies
    drawing = state_text(text_boards(rules, matrix=matrix), position.facts, console.show_width())
    if json:
        console.emit(_described(position, plies, drawing))
    else:
        typer.echo("\n".join(_lines(position, plies, drawing, state, all_moves)))
    if svg is not None:
        write_whole(svg, position_svg(position, matrix=matrix))
        console.say(f"wrote the picture {svg}")


@console.command(
    app,
    "think",
    "think connectfour",
    'think tictactoe --play "(mark 2 2)" --play "(mark 1 2)" --simulations 2000',
    "think reversi.kif --seconds 5 --teaching 2000000 --threads 2 --json",
    "think breakthrough --svg thought.svg",
    "think goofspiel --joint regret --simulations 20000",
    loads="games",
)
def think(
    game: GameName,
    facts: FirstFacts = None,
    play: Plies = None,
    simulations: Annotated[int | None, Option(min=1, help="Number of simulations.", show_default="no limit")] = None,
    seconds: Annotated[
        float | None, Option(min=0, help="Time for the search.", show_default="1, or no limit with --simulations")
    ] = None,
    teaching: Annotated[
        int, Option(min=0, help="Simulations that teach a value of the game first, as a startclock does.")
    ] = 0,
    threads: Annotated[int, Option(min=1, help="Number of threads.")] = 1,
    joint: Annotated[
        Literal["uct", "regret", "exp3"] | None,
        Option(
            help="Choice where several roles choose at once: decoupled UCT, regret matching or Exp3.",
            show_default="that of the player gamelore",
        ),
    ] = None,
    all_moves: AllMoves = False,
    svg: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            callback=console.svg_name,
            help="Also write a picture with the moves and the best line into an SVG file.",
        ),
    ] = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Show what the player gamelore thinks about a position: values and visits of all moves, proofs, the best line.

    The value of a move is the mean goal of its simulations, 0 to 100; with --teaching, a learned value counts as some
    simulations more, and the choice also depends on its values further down the tree. A value is proved if the search
    has seen every reply that matters; `in N plies` is then the length of the match from here on. On the board, the
    values of the best moves stand in the empty places that they fill, a proved value after `=`. Where several roles
    choose at the same time by --joint regret or exp3, moves are drawn from mixed strategies: the share of a move is its
    probability. The line consists of the best moves, as gamelore would play them, or of the most visited ones; the
    board after them is drawn below. In a puzzle, most of the time goes to a search for solutions: the line is the best
    one so far, and the text says whether a better one may exist. Networks, solved games, the theory of nimbers and what
    is remembered are left out.
    """
    from ..api.opinion import think as search

    rules = console.load_game(game, engine)
    with console.usage():
        position, _ = _reached(rules, facts, play or [])
    if position.is_terminal or not all(position.legal.values()):
        console.fail(f"expected a position in which the match goes on, got this one: {_verdict(position)}")
    budget: dict[str, Any] = {"seconds": seconds, "simulations": simulations, "teaching": teaching, "threads": threads}
    with progress_bars(transient=True) as tell:
        thought = search(
            position, **budget, joint=joint, seed=seed, on_teaching=lambda done, of: tell("teaching", done, of)
        )
    if json:
        console.emit({**console.identity(rules), **thought.as_json()})
    else:
        _show_thought(thought, all_moves)
    if svg is not None:
        write_whole(svg, thought._repr_svg_())
        console.say(f"wrote the picture {svg}")


def _show_thought(thought: Thought, all_moves: bool) -> None:
    """Print what a search thinks about a position."""
    from ..drawing.position import position_text
    from ..drawing.thought import thought_text

    typer.echo(thought_text(thought, width=console.show_width()))
    typer.echo(f"\n{thought.effort}")
    for role, moves in thought.moves.items():
        typer.echo("")
        shown = moves if all_moves else moves[:BEST_MOVES]
        is_mixed = moves[0].share is not None
        columns = (f"{role}'s move", *(["share"] if is_mixed else []), "value", "visits", "proved")
        console.show_table(columns, map(_thought_row, shown), numbers=(1, 2, 3) if is_mixed else (1, 2))
        if len(shown) < len(moves):
            typer.echo(f"... and {counted(len(moves) - len(shown), 'more move', 'more moves')} (--all)")
    if thought.line:
        typer.echo(f"\nbest line: {thought.line_text}")
        typer.echo(position_text(thought.positions[-1]))


def _thought_row(move: MoveThought) -> tuple[str, ...]:
    """Return a move as a row of the table of `think`; with its share, in %, if the role draws its move."""
    proof = f"{move.low} to {move.high}"
    if move.proved:
        proof = f"{move.low}" + (f" in {counted(move.plies, 'ply', 'plies')}" if move.plies else "")
    elif move.low == 0 and move.high == WIN:
        proof = ""
    share = [] if move.share is None else [f"{100 * move.share:.0f} %"]
    return move.move, *share, "-" if move.mean is None else f"{move.mean:.1f}", f"{move.visits:,}", proof


def _reached(game: Game, facts: str | None, plies: Sequence[str]) -> tuple[Position, list[list[str]]]:
    """Play plies from a state (by default the initial state); return the last position and the joint moves."""
    position = game.start() if facts is None else game.position(_terms(facts, "facts"))
    played = []
    for ply in plies:
        moves = _joint_move(position, _terms(ply, "moves"))
        position = position.play(moves)
        played.append(moves)
    return position, played


def _terms(text: str, what: str) -> list[str]:
    """Return the terms in a text; a term `(true fact)` is returned as `fact`. Exit if the text contains a rule.

    `what` is the name of the terms in the error message.
    """
    from ..gdl.syntax import parse

    heads = [rule.head for rule in parse(text).rules if not rule.arrow]
    if len(heads) != len(parse(text).rules):
        console.fail(f"expected {what}, got a rule in {text!r}; write only terms, such as (a 1) (b 2)", console.USAGE)
    return [str(head.args[0]) if head.name == "true" else str(head) for head in heads]


def _joint_move(position: Position, moves: list[str]) -> list[str]:
    """Return a move of every role, spelled as in the game. `moves` may omit roles that have only one legal move."""
    choosing = [role for role, legal in position.legal.items() if len(legal) != 1]
    if len(moves) == len(choosing):
        chosen = dict(zip(choosing, moves, strict=True))
        moves = [chosen.get(role) or legal[0] for role, legal in position.legal.items()]
    spelling = {move.lower(): move for legal in position.legal.values() for move in legal}
    return [spelling.get(move.lower(), move) for move in moves]


def _at_random(position: Position, num_plies: int, seed: int) -> tuple[Position, list[list[str]]]:
    """Play up to `num_plies` random plies; return the last position and the joint moves.

    Stop earlier if the match ends, or if a role has no legal move.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    played: list[list[str]] = []
    while len(played) < num_plies and not position.is_terminal and all(position.legal.values()):
        moves = [legal[rng.integers(len(legal))] for legal in position.legal.values()]
        position = position.play(moves)
        played.append(moves)
    return position, played


def _described(position: Position, plies: list[list[str]], drawing: PositionText) -> dict[str, Any]:
    """Return the result of `show` as JSON fields."""
    return {
        **console.identity(position.game),
        "roles": position.game.roles,
        "plies": plies,
        "facts": sorted(position.facts),
        "boards": drawing.boards,
        "terminal": position.is_terminal,
        "goals": position.goals,
        "legal": position.legal,
    }


def _lines(
    position: Position, plies: list[list[str]], drawing: PositionText, state: bool, all_moves: bool
) -> list[str]:
    """Return the result of `show` as lines of text."""
    game = position.game
    title = f"{game.name}: {', '.join(game.roles)}; {game.engine} engine"
    if plies:
        title += f"; after {counted(len(plies), 'ply', 'plies')}, the last is {' '.join(plies[-1])}"
    parts = [[title], *(board.split("\n") for board in drawing.boards), console.in_columns(drawing.others)]
    if not state:
        parts += [_moves(role, legal, all_moves) for role, legal in position.legal.items() if legal]
        parts.append([_verdict(position)])
    return [line for part in parts if part for line in ("", *part)][1:]


def _moves(role: str, legal: Sequence[str], all_moves: bool) -> list[str]:
    """Return the legal moves of a role as lines. If there are many, return the first MOVE_LINES unless `all_moves`."""
    if len(legal) == 1:
        return [f"{role} can only play {legal[0]}"]
    lines = console.in_columns(legal, indent=2)
    if len(lines) > MOVE_LINES and not all_moves:
        lines = [*lines[: MOVE_LINES - 1], "  ... (--all shows all moves)"]
    return [f"{role} has {len(legal)} legal moves:", *lines]


def _verdict(position: Position) -> str:
    """Return a text that says whether the match is over or stuck, with the goals."""
    goals = ", ".join(f"{role} {'none' if goal is None else goal}" for role, goal in position.goals.items())
    if position.is_terminal:
        return f"The match is over; goals: {goals}"
    stuck = [role for role, legal in position.legal.items() if not legal]
    return (
        f"The match is {f'stuck, because {stuck[0]} has no legal move' if stuck else 'not over'}; goals here: {goals}"
    )


@console.command(app, "perft", "perft connectfour --depth 7", "perft tictactoe --json", loads="within memory")
def perft(
    game: GameName,
    depth: Annotated[
        int | None,
        Option(metavar="N", min=0, help="Count up to this depth.", show_default="until all matches have ended"),
    ] = None,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Count the sequences of joint moves of each length from the initial state, and the sequences that end a match.

    Equal positions are expanded only once. The number of different positions is shown, too. The line of each depth
    appears when the depth is finished. Seconds are CPU time.
    """
    rules = console.load_game(game, engine)
    rows: list[dict[str, Any]] = []
    if not json:
        typer.echo(
            f"depth{'sequences':>{WIDTH}}{'complete':>{WIDTH}}{'positions':>{WIDTH}}{'CPU s':>12}{'sequences/s':>16}"
        )
    try:
        _count(rules, depth, rows, quiet=json)
    except KeyboardInterrupt:
        console.say(
            f"interrupted; all depths up to {len(rows) - 1} were counted"
            if rows
            else "interrupted; nothing was counted"
        )
        raise typer.Exit(console.INTERRUPTED) from None
    except MemoryError:
        console.fail(f"expected enough memory for the positions of depth {len(rows)}, got too little; lower --depth")
    finally:
        if json:
            console.emit({**console.identity(rules), "depths": rows})
    if not json:
        ended = sum(row["complete"] for row in rows)
        if rows[-1]["sequences"] == rows[-1]["complete"]:
            typer.echo(f"all matches have ended: {ended:,}")
        elif depth is None or len(rows) <= depth:
            typer.echo(
                f"no match continues: {ended:,} have ended, in the others a role has no legal move (see "
                "`gamelore check --play`)"
            )


def _count(game: Game, depth: int | None, rows: list[dict[str, Any]], quiet: bool) -> None:
    """Append a row for each depth to `rows`, and print it unless `quiet`."""
    from ..analysis.perft import levels

    with console.status() as doing:
        begin = time.process_time()
        counting = levels(game, lambda done, total: doing(f"depth {len(rows)}: {done:,} of {total:,} moves"))
        for level in islice(counting, None if depth is None else depth + 1):
            seconds, begin = time.process_time() - begin, time.process_time()
            rows.append({**asdict(level), "seconds": seconds})
            doing("")
            if not quiet:
                typer.echo(_row(rows[-1]))


def _row(counts: dict[str, Any]) -> str:
    """Return the table row of one depth."""
    numbers = "".join(f"{counts[column]:>{WIDTH},}" for column in ("sequences", "complete", "positions"))
    seconds = counts["seconds"]
    rate = f"{counts['sequences'] / seconds:,.0f}" if seconds > SHORTEST else ""
    return f"{counts['depth']:>5}{numbers}{seconds:>12.3f}{rate:>16}".rstrip()


@console.command(app, "symmetries", "symmetries tictactoe", "symmetries fivemensmorris --json", loads="games")
def symmetries(
    game: GameName,
    show_all: Annotated[bool, Option("--all", help="Show all symmetries, even if there are many.")] = False,
    json: Json = False,
) -> None:
    """Show the symmetries of a game, and its step counter if it has one.

    A symmetry is a permutation of facts and moves that does not change the rules. It does not change the roles, the
    goals or the initial state, either. It is written as cycles: in (a b c), a becomes b, b becomes c, and c becomes a.
    Only the cycles of facts are shown. Cycles with facts of the initial state come first.

    A step counter is a set of facts that counts the plies. Only the end of the match depends on these facts.
    """
    from ..analysis.symmetry import symmetries as symmetries_of

    rules = console.load_game(game)
    group = symmetries_of(rules)
    counter = group.step_counter
    if json:
        return console.emit(
            {
                "game": rules.name,
                "rules_hash": rules.rules_hash,
                "num": group.num,
                "why": group.why,
                "symmetries": list(map(group.mapping, range(group.num))),
                "step_counter": _count_described(rules, counter),
            }
        )
    typer.echo(f"{rules.name}: {counted(group.num, 'symmetry', 'symmetries')}, including the identity")
    if group.why:
        console.say(f"there may be more: {group.why}")
    shown = group.num if show_all else SYMMETRY_LINES
    if group.num > 1:
        rows = map(group.row, range(1, min(shown, group.num)))
        console.show_table(("", "order", "facts", "moves", "cycles"), map(_symmetry_row, rows), numbers=range(4))
    if group.num > shown:
        typer.echo(f"... {group.num - shown} more (--all shows all symmetries)")
    typer.echo(_count_line(rules, counter))


def _symmetry_row(row: dict[str, Any]) -> list[object]:
    """Return the table row of a symmetry: its number, order, numbers of changed facts and moves, and some cycles."""
    cycles = [f"({' '.join(cycle)})" for cycle in row["cycles"]]
    return [row["symmetry"], row["order"], row["facts"], row["moves"], _as_fits(cycles, console.show_width() - 30)]


def _as_fits(texts: Sequence[str], width: int) -> str:
    """Join as many texts as fit into `width` characters, but at least one; write ... in place of the other texts."""
    number = max(1, sum(end + len(" ...") <= width for end in accumulate(map(len, texts))))
    return "".join(texts[:number]) + (" ..." if number < len(texts) else "")


def _count_described(game: Game, counter: StepCounter | None) -> dict[str, Any] | None:
    """Return the step counter as JSON fields; None if there is none."""
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
    """Describe the step counter in one line."""
    if counter is None:
        return "no step counter"
    first, last = (" ".join(sorted(game.facts(bits))) or "none" for bits in (counter.first, counter.last))
    end = "where the match ends" if counter.ends else "where it stays unchanged"
    return f"step counter: from {first} to {last}, {counted(counter.length, 'ply', 'plies')} later, {end}"


@console.command(
    app,
    "solve",
    "solve tictactoe",
    "solve fivemensmorris:flying=yes",
    "solve connect3 --memory 1G --json",
    kept="earlier solutions are unchanged",
    loads="games",
)
def solve(
    game: GameName,
    memory: Annotated[
        int, Option(parser=num_bytes, metavar="SIZE", help="Memory limit; a game that needs more is refused.")
    ] = "4G",  # type: ignore[assignment]  # the parser reads it
    symmetry: Annotated[bool, Option(help="Treat symmetric positions as one; this does not change the values.")] = True,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Solve a game: compute the value of every position, and its distance from the end in plies.

    This works for zero-sum games of two roles that take turns, and for games of one role. The solution is written to a
    file in the cache folder. Later calls read this file, and so do the players perfect, expert and novice.

    Some games have a step counter that only ends matches, with half of the points for each role. Such a counter is left
    out, and the result says so. The values and distances are then for the game without the counter.
    """
    from ..api.exact import solve as solve_game

    rules = console.load_game(game, engine)
    with progress_bars(transient=True) as tell:
        report = _report(solve_game(rules, memory=memory / GIB, symmetry=symmetry, progress=tell))
    console.emit(report) if json else _show_solution(report)


def _report(solved: Solved) -> dict[str, Any]:
    """Return the result of `solve` as JSON fields."""
    from ..solver.solution import ENDLESS

    solution, line = solved.solution, solved.best_line
    return {
        **console.identity(solved.game),
        "values": solved.values,
        "distance": solution.distance,
        "positions": solved.num_positions,
        "classes": solution.num_classes,
        "symmetries": solution.canonical.symmetries.num,
        "moves": solution.num_moves,
        "left_out": list(solved.left_out),
        "first_moves": [
            {
                "role": move["role"],
                "move": move["move"],
                "values": {role: move[f"goal_{role}"] for role in solved.game.roles},
                "distance": ENDLESS if move["plies"] is None else move["plies"],
                "best": move["best"],
            }
            for move in solved.moves()
        ],
        "best_line": {"moves": [list(joint) for joint in line.moves], "end": line.end},
        "seconds": solution.seconds,
    }


def _show_solution(report: dict[str, Any]) -> None:
    """Print the value of the game, the values of the first moves, and one line of best play."""
    values: dict[str, int] = report["values"]
    console.show_table(("role", "value"), list(values.items()), numbers=[1])
    typer.echo(f"\n{_value_text(report)}\n")
    rows = [
        (move["role"], move["move"], *move["values"].values(), _plies(move["distance"]), "best" if move["best"] else "")
        for move in report["first_moves"]
    ]
    console.show_table(("first", "move", *values, "plies", ""), rows, numbers=range(2, 3 + len(values)))
    line = report["best_line"]
    typer.echo(f"\nbest play, {ENDS[line['end']]}:\n")
    console.show_table(("ply", *values), [(ply, *joint) for ply, joint in enumerate(line["moves"], 1)], numbers=[0])
    typer.echo(f"\n{_size(report)}")


def _value_text(report: dict[str, Any]) -> str:
    """Return a text that says who wins, and whether a step counter was left out."""
    values: dict[str, int] = report["values"]
    best = max(values, key=values.__getitem__)
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
            f" This is the value of the game {without_counter(report['left_out'])}. Without the counter, a match may "
            "be endless. An endless match is a draw, like a match that the counter ends."
        )
    return text


def without_counter(left_out: Sequence[str]) -> str:
    """Describe the game that was solved without its step counter."""
    return f"without its step counter, {left_out[0]} to {left_out[-1]}"


def _size(report: dict[str, Any]) -> str:
    """Return a text with the number of positions and the time for the solution."""
    positions, classes = f"{report['positions']:,} positions", f"{report['classes']:,}"
    if report["symmetries"] > 1:
        positions += (
            f" in {classes} classes under {report['symmetries']} symmetries; the classes have {report['moves']:,} moves"
        )
    return f"{positions}; computed in {report['seconds']:.1f} s of processor time, {report['engine']} engine"


def _plies(distance: int) -> str:
    return str(distance) if distance >= 0 else "-"
