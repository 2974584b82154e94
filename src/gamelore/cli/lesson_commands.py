"""study; lessons list, show, ledger, export, import, delete: teach the player gamelore, manage what it has learned."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ..api.game_lessons import GameLesson, LessonSummary, suitable
from ..api.game_lessons import study as study_game
from ..api.memory import Knowledge
from ..api.progress import progress_bars
from ..errors import counted
from . import console
from .console import Engine, Force, GameName, Json, KnowledgeFile

Draw = Annotated[
    Path | None,
    Option(
        "--svg",
        metavar="FILE",
        callback=console.svg_name,
        help="Draw the weights on boards into an SVG file, one for each game.",
    ),
]

app = typer.Typer()
lessons_app = typer.Typer(
    help="List, show, copy and delete what the player gamelore has learned from searches.", no_args_is_help=True
)
app.add_typer(lessons_app, name="lessons")


@console.command(
    app,
    "study",
    "study breakthrough --seconds 60",
    "study tictactoe connect3 --seconds 20 --json",
    kept="what it had learned is in the knowledge store; run the same command again to go on",
    loads="games",
)
def study(
    games: Annotated[list[str], typer.Argument(metavar="GAME..", help=console.GAME_HELP)],
    seconds: Annotated[float, Option(min=0.1, help="Time for each game.")] = 600.0,
    draw: Draw = None,
    knowledge: KnowledgeFile = None,
    engine: Engine = "auto",
    seed: Annotated[
        int, Option("--seed", min=0, help="Seed of the random numbers of teaching; results also depend on time.")
    ] = 0,
    json: Json = False,
) -> None:
    """Learn about games from searches, in the background, so that the player gamelore plays them better.

    More than half of the time is teaching: the search plays against itself, and a value is fitted to what it finds. A
    tenth is long searches of openings. In three tenths, both are tried in matches against the same player without them,
    and so are parameters of the search. The player uses what has passed these tests: `gamelore serve --player gamelore
    --knowledge FILE`. As long as the value of a similar game is tried, nearly all time is for that. With ten seconds or
    more, up to a tenth of the time is used first to solve a small game. Then nothing more is to be studied: under a
    clock, or with solve=yes, the player uses the solution.

    Everything is stored at once. The same command again goes on where the last one stopped, also after an interruption.
    """
    lessons = []
    for rules in [suitable(console.load_game(name, engine)) for name in games]:  # all, before a long time is spent
        with progress_bars() as tell:
            lessons.append(study_game(rules, seconds=seconds, store=knowledge, seed=seed, progress=tell))
        if not json:
            typer.echo(str(lessons[-1]))
        if draw is not None:
            _draw(lessons[-1], draw.with_stem(f"{draw.stem}-{rules.name}") if len(games) > 1 else draw)
    if json:
        console.emit([lesson.as_json() for lesson in lessons])


def _draw(lesson: GameLesson, file: Path) -> None:
    """Write the picture of a lesson, and say so."""
    lesson.save(file)
    console.say(f"wrote the picture {file}")


@console.command(lessons_app, "list", "lessons list", "lessons list --knowledge other.db --json")
def list_(knowledge: KnowledgeFile = None, json: Json = False) -> None:
    """List the lessons in the store, one on each line.

    "seconds" is the CPU time of teaching, and "explains" the share of the results of searches that the value explains.
    "variant of" is the game whose lesson was the start. "used for" says in which matches tests have shown that the
    lesson is better than what the startclock itself teaches; "-" is for none.
    """
    store = Knowledge(knowledge)
    lessons = store.lessons()
    if json:
        console.emit([asdict(lesson) for lesson in lessons])
    elif lessons:
        columns = ("game", "seconds", "generations", "explains", "variant of", "openings", "matches", "used for")
        console.show_table(columns, map(_line, lessons), numbers=[1, 2, 3, 5, 6])
        for damage in (lesson.damage for lesson in lessons if lesson.damage):
            console.say(damage)
    else:
        console.say(f"{store.path} has no lesson; gamelore study teaches one")


def _line(lesson: LessonSummary) -> tuple[object, ...]:
    from ..memory.advice import STARTCLOCKS

    if lesson.damage:
        return (lesson.game, *"------", "damaged")
    used = f"startclocks up to {lesson.taken_for} s" if lesson.taken_for is not None else "-"
    used = "all startclocks" if lesson.taken_for is not None and lesson.taken_for >= STARTCLOCKS[-1] else used
    taught = f"{lesson.seconds:.0f}", lesson.generations, f"{lesson.determination:.0%}"
    return (lesson.game, *taught, lesson.variant or "-", lesson.openings, lesson.matches, used)


@console.command(
    lessons_app, "show", "lessons show breakthrough", "lessons show breakthrough --svg weights.svg", loads="games"
)
def show(
    game: GameName,
    draw: Draw = None,
    strength: Annotated[
        Path | None,
        Option(metavar="FILE", help="Draw the scores of its states in tests, by teaching, into a .png or .svg file."),
    ] = None,
    knowledge: KnowledgeFile = None,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Show a lesson: how it grew, which facts are good for whom, and what tests have said about it."""
    lesson = Knowledge(knowledge).lesson(console.load_game(game, engine))
    if draw is not None:
        _draw(lesson, draw)
    if strength is not None:
        from ..lab.figures import save

        for file in save(lesson.plot(), strength):
            console.say(f"wrote the picture {file}")
    if json:
        console.emit(lesson.as_json())
        return
    typer.echo(str(lesson))
    if lesson.generations:
        rows = (
            (
                row.number,
                f"{row.walks:,}",
                f"{row.seconds:.0f}",
                "-" if row.is_network else f"{row.determination:.0%}",
                "network" if row.is_network else "linear",
            )
            for row in lesson.generations
        )
        console.show_table(("generation", "simulations", "seconds", "explains", "value"), rows, numbers=[0, 1, 2, 3])


@console.command(lessons_app, "ledger", "lessons ledger", "lessons ledger --knowledge other.db --json")
def ledger(knowledge: KnowledgeFile = None, json: Json = False) -> None:
    """Show which advice won or lost in which games, in tests against the same player without it.

    The advice is a lesson, the value of a variant, a book of openings, or a parameter of the search. The parameters
    that won in games that are alike are tried first in another game.
    """
    rows = Knowledge(knowledge).ledger()
    if json:
        console.emit(rows)
    elif rows:
        table = ((*list(row.values())[:4], f"{row['score']:.0f}%") for row in rows)
        console.show_table(("game", "advice", "against", "rounds", "score"), table, numbers=[3, 4])
    else:
        console.say("no advice has been tried yet; gamelore study tries it")


@console.command(
    lessons_app,
    "export",
    "lessons export lessons.json",
    "lessons export some.json breakthrough tictactoe --force",
    loads="games",
)
def export(
    file: Annotated[Path, Argument(metavar="FILE", help="The JSON file to write.")],
    games: Annotated[list[str] | None, Argument(metavar="GAME..", help="Only lessons about these games.")] = None,
    force: Force = False,
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Write lessons to a JSON file, as a backup or for use on another machine."""
    console.refuse_existing(file, force)
    chosen = [console.load_game(name, "auto") for name in games] if games else None
    count = Knowledge(knowledge).export_lessons(file, chosen)
    told = f"wrote {counted(count, 'lesson')} to {file}"
    console.emit({"file": str(file), "lessons": count}) if json else console.say(told)


@console.command(
    lessons_app, "import", "lessons import lessons.json", "lessons import lessons.json --knowledge other.db"
)
def import_(
    file: Annotated[Path, Argument(metavar="FILE", help="A JSON file that `gamelore lessons export` wrote.")],
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Add the lessons in an exported file to the store. A second import of the same file changes nothing."""
    store = Knowledge(knowledge)
    count = store.add_lessons(file)
    told = f"imported {counted(count, 'lesson')} that {store.path} did not have, or had after less teaching"
    console.emit({"knowledge": str(store.path), "lessons": count}) if json else console.say(told)


@console.command(
    lessons_app, "delete", "lessons delete breakthrough", "lessons delete breakthrough --json", loads="games"
)
def delete(game: GameName, knowledge: KnowledgeFile = None, engine: Engine = "auto", json: Json = False) -> None:
    """Delete the lesson about a game, with its openings, tests and matches. Only an export brings it back."""
    store, rules = Knowledge(knowledge), console.load_game(game, engine)
    if not store.delete_lesson(rules):
        console.fail(f"expected a lesson about {rules.name} in {store.path}, got none; gamelore lessons list shows all")
    told = {"knowledge": str(store.path), "deleted": rules.name}
    console.emit(told) if json else console.say(f"deleted the lesson about {rules.name}")
