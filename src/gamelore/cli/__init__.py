"""The command line, a thin layer over the library: each command makes a few calls of public functions.

    console.py              shared parts of all commands
    rulesheet_commands.py   games, check, report, fmt
    position_commands.py    show, think, perft, symmetries, solve
    bench_command.py        bench
    play_commands.py        play, players, tournament, replay, recognise
    human.py                the player `human`: a person at this terminal
    network_commands.py     serve, host
    duel_command.py         duel
    learn_commands.py       learn
    lesson_commands.py      study; lessons list | show | ledger | export | import | delete
    knowledge_commands.py   features; knowledge list | show | check | export | import | delete
    experiment_commands.py  transfer, reproduce, demo, matches
    web_command.py          web

Exit codes: 0 success, 1 findings or failure, 2 mistake in the command line, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

from typing import Annotated

import typer

from . import (
    bench_command,
    duel_command,
    experiment_commands,
    knowledge_commands,
    learn_commands,
    lesson_commands,
    network_commands,
    play_commands,
    position_commands,
    rulesheet_commands,
    web_command,
)

app = typer.Typer(
    name="gamelore",
    help="A general game player that remembers: it learns one game from its rules and plays the next one better.",
    epilog="Start with: gamelore demo --out demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (
    rulesheet_commands,
    position_commands,
    bench_command,
    play_commands,
    network_commands,
    duel_command,
    learn_commands,
    lesson_commands,
    knowledge_commands,
    experiment_commands,
    web_command,
):
    app.add_typer(group.app)


def _version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"gamelore {version('gamelore')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. This is the entry point of the console script."""
    app(prog_name="gamelore")
