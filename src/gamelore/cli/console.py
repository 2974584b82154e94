"""What all commands share: help with examples, JSON, one clear message for an error, exit codes, names put right.

Results go to standard output (a table, or JSON with --json); progress, warnings and errors go to standard error.
"""

from __future__ import annotations

import difflib
import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from ..errors import GameloreError

if TYPE_CHECKING:
    from ..play.player import OpponentSettings
    from ..rules.game import Game

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130  # exit codes; FAILED also for findings

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides every random number: same seed, same result.")]
KnowledgeFile = Annotated[
    Path | None,
    typer.Option(
        "--knowledge",
        metavar="FILE",
        help="The knowledge store.",
        show_default="$GAMELORE_KNOWLEDGE, or knowledge.db in the user's data folder",
    ),
]
Engine = Annotated[
    Literal["auto", "native", "reasoner"],
    typer.Option("--engine", help="Compile the rules, ask them each time, or whichever works."),
]
GAME_HELP = "A shipped game (see `gamelore games`) or the path of a rulesheet; :option=value,.. behind either."


def command(
    app: typer.Typer, name: str, *examples: str, kept: str = "nothing was written"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a command: its docstring and these examples are the help; `kept` is the word after Ctrl-C."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> None:
            with _reported(kept):
                function(*args, **options)

        app.command(name, help=_help(function.__doc__ or "", examples))(run)
        return function

    return register


def _help(doc: str, examples: Sequence[str]) -> str:
    """The paragraphs of a docstring, each on one line for whoever folds it, and the examples as they are."""
    from inspect import cleandoc

    paragraphs = [" ".join(paragraph.split()) for paragraph in cleandoc(doc).split("\n\n")]
    lines = "\n".join(f"  $ gamelore {example}" for example in examples)
    return "\n\n".join([*paragraphs, f"\b\nExamples:\n{lines}"]).replace("[", r"\[")


@contextmanager
def _reported(kept: str) -> Iterator[None]:
    try:
        yield
    except GameloreError as error:
        fail(str(error))
    except BrokenPipeError:  # the reader of a pipe has gone: typer's to handle
        raise
    except OSError as error:
        fail(f"expected a file or folder that can be used, got: {error}; name another one")
    except (KeyboardInterrupt, SystemError) as error:
        if not _is_interrupt(error):
            raise
        say(f"interrupted; {kept}")
        raise typer.Exit(INTERRUPTED) from None


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C; a numba kernel that returns arrays turns that into a SystemError."""
    return isinstance(error, KeyboardInterrupt) or (error is not None and _is_interrupt(error.__cause__))


def fail(message: str, code: int = FAILED) -> NoReturn:
    """One message on standard error, and out."""
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(message, err=True)
    raise typer.Exit(code)


def say(message: str) -> None:
    """A remark on standard error."""
    typer.echo(message, err=True)


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """Shows lines on standard error, where that is a terminal, each in the place of the last; gone at the end."""

    def show(text: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r{text}\033[K", err=True, nl=False)

    try:
        yield show
    finally:
        show("")


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, with the remaining time; told how many there are."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("left:"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda completed: bar.update(task, completed=completed)


@contextmanager
def usage() -> Iterator[None]:
    """Mistakes found inside are the caller's: exit code 2."""
    try:
        yield
    except GameloreError as error:
        fail(str(error), USAGE)


def known(name: str, names: Iterable[str], what: str) -> str:
    """The name where it is one of `names`; else out, with the nearest ones."""
    names = list(names)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else "choose one of these"
    fail(f"expected {what}: {', '.join(names) or 'none'}; got {name!r}; {remedy}", USAGE)


def counted(count: int, what: str, several: str = "") -> str:
    """1 match, 2 matches; an s makes several unless told otherwise."""
    return f"{count} {what if count == 1 else several or f'{what}s'}"


def emit(value: Any) -> None:
    """A result as JSON on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()) -> None:
    """A result as a table on standard output; the columns `numbers` are set to the right."""
    from rich.table import Table

    right = set(numbers)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 1000  # a pipe has no edge
    with console.capture() as capture:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def rulesheet_path(name: str, shipped: bool = True) -> Path:
    """The rulesheet of a shipped game (unless these and options do not count), or at a path.

    Raises GameloreError, with the nearest right names, where there is none, or no such option.
    """
    from .. import games

    base, settings = games.split(name) if shipped else (name, "")
    names = games.names() if shipped else ()
    path = games.path(base) if base in names else Path(base)
    if path.exists() and not path.is_dir():
        if settings:
            games.sheet(name)  # which looks at them
        return path
    what = "a shipped game or the path of a rulesheet" if shipped else "the path of a rulesheet"
    raise GameloreError(f"expected {what}, got {base!r}; {_instead(path, names)}")


def _instead(path: Path, names: Sequence[str]) -> str:
    """What may have been meant by a path where there is no file."""
    if path.is_dir():
        return f"that is a folder: name its files, as in {path / '*.kif'}"
    names = names if path.name == str(path) else ()  # a shipped game is in no folder
    files = {place.stem: str(place) for place in path.parent.glob("*.kif")}
    near = difflib.get_close_matches(path.stem, names, n=3, cutoff=0.5)
    near += [files[stem] for stem in difflib.get_close_matches(path.stem, files)]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"shipped are {', '.join(names)}" if names else "there is no such file"


def load_game(name: str, engine: Literal["auto", "native", "reasoner"] = "auto") -> Game:
    """A game by its name or path, with a remark where it will be slow; out where there is none, naming the nearest."""
    from ..games import load

    with usage():
        rulesheet_path(name)
    with status() as doing:
        doing(f"loading {name}")
        game = load(name, engine)
    if engine == "auto" and game.engine == "reasoner":
        say(f"{name} plays on the reasoner, which is slow, because {game.engine_reason}")
    return game


def opponent_settings(spec: str) -> OpponentSettings:
    """An opponent such as "weak:filler=first". Raises GameloreError for one that is none."""
    from ..play.player import Opponent
    from ..play.roster import player

    chosen = player(spec)
    if not isinstance(chosen, Opponent):
        raise GameloreError(f"expected an opponent (egreedy, random or weak), got {spec!r}; choose one of these")
    return chosen.settings[0]


def show_width() -> int:
    """The characters of a line on standard output."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 100


def in_columns(texts: Sequence[str], indent: int = 0, gap: int = 2) -> list[str]:
    """Texts in columns, row by row, as many as fit a line; `gap` blanks at least between them."""
    if not texts:
        return []
    size = max(map(len, texts)) + gap
    number = max(1, (show_width() - indent + gap) // size)
    rows = (texts[start : start + number] for start in range(0, len(texts), number))
    return [" " * indent + "".join(text.ljust(size) for text in row).rstrip() for row in rows]
