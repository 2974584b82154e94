"""serve: a player that game managers can reach over the network."""

from __future__ import annotations

import logging
import re
import signal
from typing import Annotated

import typer

from .console import Json, KnowledgeFile, Seed, command, usage

LEARNING_OPTIONS = "What it learns"
HTTP_OPTIONS = "Who may call"
LIMIT_OPTIONS = "What a match may cost"
UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}  # powers of two


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "serve",
        "serve",
        "serve --player transfer --knowledge knowledge.db --opponent egreedy",
        "serve --player uct:seconds=4 --port 9148 --matches-at-once 10",
        "serve --player baseline --search 3 --quota 500M",
        "serve --player my_player.py:MyPlayer --name mine",
        "serve --address 0.0.0.0 --allow-host player.example.org --no-learn",
        kept="what was learned is in the knowledge store",
    )(serve)


def size(text: str) -> int:
    """Bytes, as in 500M or 4G. Raises typer.BadParameter for what is none."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise typer.BadParameter(f"expected a size such as 500M or 4G, got '{text}'")
    return int(float(found[1]) * 2 ** UNITS[found[2].upper()])


def serve(
    player: Annotated[
        str,
        typer.Option(
            "--player",
            metavar="PLAYER",
            help="Who plays: see `gamelore players`, with :option=value,..; or FILE.py:CLASS.",
        ),
    ] = "transfer",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0 for a free one.")] = 9147,
    name: Annotated[str, typer.Option("--name", help="What it calls itself.")] = "gamelore",
    matches: Annotated[
        int, typer.Option("--matches-at-once", min=1, help="More than so many are answered with busy.")
    ] = 1,
    margin: Annotated[
        float, typer.Option("--margin", min=0, help="Seconds of every clock that are left to the network.")
    ] = 0.5,
    search: Annotated[
        float | None,
        typer.Option("--search", min=0, metavar="SECONDS", help="A learner also searches, so long for a move at most."),
    ] = None,
    knowledge: KnowledgeFile = None,
    opponent: Annotated[
        str | None,
        typer.Option(
            "--opponent",
            metavar="NAME",
            help="Against whom it plays, which no message tells: what it learns counts against this one.",
            show_default="unknown",
            rich_help_panel=LEARNING_OPTIONS,
        ),
    ] = None,
    no_learn: Annotated[
        bool,
        typer.Option("--no-learn", help="Use what was learned, learn nothing.", rich_help_panel=LEARNING_OPTIONS),
    ] = False,
    quota: Annotated[
        int,
        typer.Option(
            "--quota",
            parser=size,
            metavar="SIZE",
            help="Learn nothing more where the store is as large as this.",
            rich_help_panel=LEARNING_OPTIONS,
        ),
    ] = "4G",  # type: ignore[assignment]  # the parser reads it
    address: Annotated[
        str, typer.Option("--address", help="Of this machine; 0.0.0.0 for all.", rich_help_panel=HTTP_OPTIONS)
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name of this machine that messages may give as Host.",
            rich_help_panel=HTTP_OPTIONS,
        ),
    ] = None,
    cors: Annotated[
        bool, typer.Option("--cors", help="Let web pages send messages.", rich_help_panel=HTTP_OPTIONS)
    ] = False,
    get: Annotated[
        bool,
        typer.Option(
            "--get",
            help="Take messages by GET, too; some browsers let any web page send those.",
            rich_help_panel=HTTP_OPTIONS,
        ),
    ] = False,
    patience: Annotated[
        float,
        typer.Option(
            "--patience", min=0.1, help="Seconds for a message to arrive as a whole.", rich_help_panel=HTTP_OPTIONS
        ),
    ] = 15.0,
    memory: Annotated[
        int,
        typer.Option(
            "--memory",
            parser=size,
            metavar="SIZE",
            help="For each process that plays.",
            rich_help_panel=LIMIT_OPTIONS,
        ),
    ] = "4G",  # type: ignore[assignment]  # the parser reads it
    prepare_seconds: Annotated[
        float,
        typer.Option(
            "--prepare-seconds",
            min=0.1,
            help="In which rules must be ready to play, whatever the clocks say.",
            rich_help_panel=LIMIT_OPTIONS,
        ),
    ] = 60.0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell of lost connections, too.")] = False,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Play over the network: answer game managers that speak the GGP protocol, until Ctrl-C.

    Every move is there in time, the first legal one where the player has none. Learners put what they learn into the
    knowledge store after every match, recognise a game whatever it is called, and begin with what other games taught.

    Nobody but programs on this machine can call it, unless told otherwise. Rules that come in are read and played in
    processes of their own, with limits on their memory and time. With --json, one line tells where it listens.
    """
    from ..net.serving import log_to_stderr
    from ..net.serving import serve as serve_until_told
    from ..net.web import WebLimits

    log_to_stderr(logging.DEBUG if verbose else logging.INFO)
    with usage():
        _check(name)
    told = serve_until_told(
        player,
        port=port,
        address=address,
        name=name,
        knowledge=knowledge,
        opponent=opponent,
        seed=seed,
        learn=not no_learn,
        quota=quota,
        search=search,
        matches_at_once=matches,
        margin=margin,
        memory=memory,
        prepare_seconds=prepare_seconds,
        limits=WebLimits(seconds=patience, hosts=tuple(allow_host or ()), is_get_allowed=get, is_cors_allowed=cors),
        on_ready=lambda url: _show(url, name, player, json),
    )
    if told == signal.SIGINT:
        raise KeyboardInterrupt


def _check(name: str) -> None:
    """Raises GameloreError for a name that is not one word."""
    from ..net.messages import PlayerInfo, show_info

    show_info(PlayerInfo(name, "available", "gamelore"))


def _show(url: str, name: str, player: str, json: bool) -> None:
    if json:
        from json import dumps

        typer.echo(dumps({"url": url, "name": name, "player": player}))
    else:
        typer.echo(f"{name} ({player}) plays at {url}; Ctrl-C ends it")
