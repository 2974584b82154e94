"""Shared parts of all commands: help with examples, tables, JSON, progress bars, error messages and exit codes.

Results go to standard output, as a table or, with --json, as JSON. Progress, warnings and errors go to standard error.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

import typer
from typer import Argument, Option

from ..errors import GameloreError, KnowledgeError, one_of, player_bug
from ..game.game import EngineName, Game
from ..gdl.limits import GIB, Limits, within

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130  # exit codes; FAILED is also used for findings

UNITS = {"": 30, "K": 10, "M": 20, "G": 30, "T": 40}  # letter of a size -> power of two


def num_bytes(text: str) -> int:
    """Return the number of bytes in a text such as 500M or 4G; without a unit, it is a number of GiB.

    Raises:
        typer.BadParameter: the text is no size, or the size is 0
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", text.strip(), re.IGNORECASE)
    size = int(float(match[1]) * 2 ** UNITS[match[2].upper()]) if match else 0
    if not size:
        raise typer.BadParameter(f"expected a size above 0 such as 500M or 4G, got '{text}'")
    return size


GAME_HELP = "A shipped game (see `gamelore games`) or the path of a rulesheet; options: NAME:option=value,option=value."
GameName = Annotated[str, Argument(metavar="GAME", help=GAME_HELP)]
Json = Annotated[bool, Option("--json", help="Print the result as JSON, for programs.")]
Seed = Annotated[int, Option("--seed", min=0, help="Seed of all random numbers: the same seed gives the same result.")]
Force = Annotated[bool, Option("--force", help="Overwrite an existing file.")]
KnowledgeFile = Annotated[
    Path | None,
    Option(
        "--knowledge",
        metavar="FILE",
        help="The knowledge store.",
        show_default="$GAMELORE_KNOWLEDGE, or a file in the user data folder",
    ),
]
Workers = Annotated[int, Option("--workers", min=1, help="Number of processes that play matches.")]
Cluster = Annotated[
    str | None,
    Option(
        "--cluster",
        metavar="ADDRESS",
        help="Play on all cores of a Ray cluster: HOST:PORT of its head, or ray for the one that RAY_ADDRESS names, or "
        "else a new one of this machine with --workers cores. Needs pip install 'gamelore\\[ray]' on all machines.",
    ),
]
Engine = Annotated[
    EngineName,
    Option("--engine", help="native: fast, compiled rules. reasoner: slow, for all rules. auto: native if possible."),
]
LIMITS = Limits()
of_loading = functools.partial(Option, min=0, rich_help_panel="Limits of loading a game")
LOAD_SECONDS_HELP = "CPU time in seconds; a step on the reasoner gets 30 %."
LoadSeconds = Annotated[float, of_loading("--load-seconds", help=LOAD_SECONDS_HELP)]
LOADING_MEMORY: Any = f"{LIMITS.memory / GIB:g}G"  # a default that `num_bytes` reads
_of_memory = functools.partial(of_loading, "--memory", parser=num_bytes, metavar="SIZE", min=None)
GROWTH_HELP = "Growth of memory; a step on the reasoner gets 30 %."
Memory = Annotated[int, _of_memory(help=GROWTH_HELP)]
MemoryOfLoading = Annotated[
    int | None,
    _of_memory(
        help=f"{GROWTH_HELP} learn, show and perft stay within it, too, if it is given.",
        show_default=f"{LOADING_MEMORY} for loading",
    ),
]
Loads: TypeAlias = Literal["no", "games", "within memory"]
LOADING: ContextVar[Limits] = ContextVar("loading", default=LIMITS)
"""The limits of loading of the present command."""


def limits_of(load_seconds: float, memory: int | None, literals: int = LIMITS.literals) -> Limits:
    """Return the limits of loading for these options; `memory` is in bytes, None for the default."""
    if not 0 <= load_seconds < math.inf:
        fail(f"expected --load-seconds of a number from 0, got {load_seconds}; name a finite number", USAGE)
    return Limits(load_seconds, literals, LIMITS.memory if memory is None else memory)


@contextmanager
def whole_command(memory: int, name: str) -> Iterator[None]:
    """Keep what a command does in the `with` block within this memory, in bytes."""
    with within(Limits(math.inf, memory=memory), f"gamelore {name} to run"):
        yield


def command(
    app: typer.Typer, name: str, *examples: str, kept: str = "nothing was written", loads: Loads = "no"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command of `app`. Its help consists of the docstring and the examples.

    After Ctrl-C the message is "interrupted; " and `kept`.
    loads: whether the command loads games by `load_game`; then it has the options --load-seconds and, unless it has one
        of its own, --memory. Some commands stay within a memory that is given after loading, too.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> None:
            limiting = {key: options[key] for key in options if key not in own}
            with reported(kept), _limited(name, loads, limiting):
                function(*args, **{key: options[key] for key in options if key in own})

        own = inspect.signature(function).parameters
        if loads != "no":
            run.__signature__ = _with_limits(function)  # type: ignore[attr-defined]  # typer reads it
        app.command(name, help=_help(function.__doc__ or "", examples))(run)
        return function

    return register


@contextmanager
def _limited(name: str, loads: Loads, options: Mapping[str, Any]) -> Iterator[None]:
    """Set the limits of a command with these options: of `load_game` and, for some commands, of the whole command."""
    if loads == "no":
        yield
        return
    memory = options.get("memory")
    limits = limits_of(options["load_seconds"], memory)
    token = LOADING.set(limits)
    try:
        is_limited = loads == "within memory" and memory is not None
        with whole_command(limits.memory, name) if is_limited else nullcontext():
            yield
    finally:
        LOADING.reset(token)


def _with_limits(function: Callable[..., None]) -> inspect.Signature:
    """Return the signature of a command with the options that limit loading added to its own options."""
    own = inspect.signature(function, eval_str=True)
    options = {"load_seconds": (LoadSeconds, LIMITS.seconds), "memory": (MemoryOfLoading, None)}
    added = (
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
        if name not in own.parameters
    )
    return own.replace(parameters=[*own.parameters.values(), *added])


def _help(doc: str, examples: Sequence[str]) -> str:
    """Return a help text: each paragraph of a docstring on one line (typer wraps lines), then one line per example."""
    from inspect import cleandoc

    paragraphs = [" ".join(paragraph.split()) for paragraph in cleandoc(doc).split("\n\n")]
    lines = "\n".join(f"  $ gamelore {example}" for example in examples)
    return "\n\n".join([*paragraphs, f"\b\nExamples:\n{lines}"]).replace("[", r"\[")


@contextmanager
def reported(kept: str) -> Iterator[None]:
    """Turn expected errors and Ctrl-C into a message and an exit code. Errors from bugs in gamelore pass through."""
    with _watched_ctrl_c() as ctrl_c:
        try:
            yield
        except (BrokenPipeError, typer.Exit):  # typer handles them; the first says that the reader of a pipe has left
            raise
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) or (ctrl_c.is_pressed and not isinstance(error, GameloreError)):
                say(f"interrupted; {kept}")
                raise typer.Exit(INTERRUPTED) from None
            if bug := player_bug(error):
                fail(bug)
            if isinstance(error, OSError):
                fail(f"expected a file or folder that can be used, got: {error}; name another file or folder")
            if isinstance(error, GameloreError):
                fail(str(error))
            raise


class _CtrlC:
    """A signal handler that raises KeyboardInterrupt and remembers that it did.

    The exception alone is not enough: numpy and numba can replace it by a TypeError or a SystemError.
    """

    is_pressed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.is_pressed = True
        signal.default_int_handler(number, frame)


@contextmanager
def _watched_ctrl_c() -> Iterator[_CtrlC]:
    """Install a _CtrlC as handler and yield it; nested contexts share it. Handlers set by a caller stay in place."""
    current = signal.getsignal(signal.SIGINT)
    if isinstance(current, _CtrlC):
        yield current
        return
    handler = _CtrlC()
    is_main = threading.current_thread() is threading.main_thread()  # no other thread gets signals
    is_replaced = is_main and current is signal.default_int_handler
    if is_replaced:
        signal.signal(signal.SIGINT, handler)
    try:
        yield handler
    finally:
        if is_replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def fail(message: str, code: int = FAILED) -> NoReturn:
    """Print an error and exit."""
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(message, err=True)
    raise typer.Exit(code)


def say(message: str) -> None:
    """Print a message on standard error."""
    typer.echo(message, err=True)


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a status line on a terminal. A new text replaces the old one; clear it at the end."""

    def show(text: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r{text}\033[K", err=True, nl=False)

    try:
        yield show
    finally:
        show("")


@contextmanager
def usage() -> Iterator[None]:
    """Exit with code 2 on a GameloreError in the block, since it is a mistake of the user.

    Errors of a knowledge store, and from bugs in the user's own player, pass through.
    """
    try:
        yield
    except GameloreError as error:
        if isinstance(error, KnowledgeError) or player_bug(error):
            raise
        fail(str(error), USAGE)


def known(name: str, names: Iterable[str], what: str) -> str:
    """Return `name` if it is one of `names`; otherwise exit with code 2 and suggest the most similar names."""
    with usage():
        return one_of(name, list(names), what)


def svg_name(file: Path | None) -> Path | None:
    """Return the name of an SVG file, and refuse other pictures before any work; an option's callback."""
    if file is None or file.suffix.lower() == ".svg":
        return file
    if file.suffix or file.name in ("", ".."):
        example = file.with_suffix(".svg") if file.suffix else file / "picture.svg"
        raise typer.BadParameter(f"expected the name of an .svg file, got {file}; write {example}")
    return file.with_suffix(".svg")


def refuse_existing(file: Path, force: bool) -> None:
    """Exit if the file exists, unless `force`."""
    if file.exists() and not force:
        fail(f"{file}: expected a new file, got one that exists; name another file, or overwrite this one with --force")


def emit(value: Any) -> None:
    """Print a result as JSON on standard output."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    typer.echo(text.encode("utf-8", "backslashreplace"))  # a surrogate becomes an escape of JSON


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()) -> None:
    """Print a result as a table on standard output. `numbers`: the indices of columns to align right."""
    from rich.console import Console
    from rich.table import Table

    right = set(numbers)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 1000  # do not wrap lines if the output is a pipe or file
    with console.capture() as capture:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def identity(game: Game) -> dict[str, Any]:
    """Return the JSON fields that identify a loaded game."""
    return {"game": game.name, "rules_hash": game.rules_hash, "engine": game.engine}


def rulesheet_path(name: str, shipped: bool = True) -> Path:
    """Return the path of a rulesheet. `shipped`: also accept the name of a shipped game, and options after a colon.

    Raises GameloreError if there is no such rulesheet or option; the error suggests the most similar names.
    """
    from .. import rulesheets

    path = rulesheets.place(rulesheets.split(name)[0] if shipped else name, shipped)
    if shipped:
        rulesheets.sheet(name)  # checks the options and the text
    return path


def load_game(name: str, engine: EngineName = "auto") -> Game:
    """Load a game by name or path. Print a message if it will be slow; exit with code 2 if the game does not exist."""
    from ..rulesheets import load

    with usage():
        rulesheet_path(name)
    with status() as doing:
        doing(f"loading {name}")
        game = load(name, engine, LOADING.get())
    if engine == "auto" and game.engine == "reasoner":
        say(f"{name} plays on the reasoner, which is slow: {game.engine_reason}")
    return game


def show_width() -> int:
    """Return the number of characters in a line of standard output."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 100


def in_columns(texts: Sequence[str], indent: int = 0, gap: int = 2) -> list[str]:
    """Arrange texts row by row in as many columns as fit on a line, with at least `gap` blanks between columns."""
    if not texts:
        return []
    size = max(map(len, texts)) + gap
    number = max(1, (show_width() - indent + gap) // size)
    rows = (texts[start : start + number] for start in range(0, len(texts), number))
    return [" " * indent + "".join(text.ljust(size) for text in row).rstrip() for row in rows]
