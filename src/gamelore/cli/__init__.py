"""The command line, thin over the library: every command is a few calls that a program could make as well.

    console.py    what all commands share
    games.py      games
    check.py      check
    fmt.py        fmt
    inspect.py    show, perft, symmetries
    bench.py      bench
    solve.py      solve
    human.py      the player at this terminal
    play.py       play, players
    replay.py     replay
    serve.py      serve
    host.py       host
    features.py   features
    sequences.py  learn --learner sequences
    learn.py      learn
    pairs.py      knowledge show, of learners of sequences
    knowledge.py  knowledge list | show | export | import
    lab.py        transfer, reproduce, demo, matches

Exit codes: 0 done, 1 findings or failed, 2 a mistake in the command, 130 interrupted.
"""

from __future__ import annotations

from typing import Annotated

import typer

from . import bench, check, features, fmt, games, host, inspect, knowledge, lab, learn, play, replay, serve, solve

app = typer.Typer(
    name="gamelore",
    help="A general game player that remembers: it learns one game from its rules and plays the next one better.",
    epilog="Start with: gamelore demo --out demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (games, check, fmt, inspect, bench, solve, play, replay, serve, host, features, learn):
    group.register(app)
app.add_typer(knowledge.app, name="knowledge")
lab.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"gamelore {version('gamelore')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point of the console script."""
    app(prog_name="gamelore")
