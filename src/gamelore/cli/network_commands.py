"""serve and host: play for a GGP game manager, or be the game manager; options, progress and learning curves."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import cycle
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from ..errors import GameloreError, counted, one_of
from . import console
from .console import GAME_HELP, Engine, Json, Seed, command, load_game, num_bytes, say, show_table, usage
from .play_commands import counts_text, goals_text, match_counts, result_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from ..game.game import Game
    from ..matches.match import MatchRecord
    from ..net.hosted_series import HostedSeries, Standing

app = typer.Typer()
WINDOW = 50  # default number of matches in a mean of the learning curve
GIVE_UP = 5  # default number of successive matches without a reply after which a series stops
BLOCKS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 60  # characters
REDRAWN = 0.2  # shortest time in seconds between two drawings of the curves
LINES = 10  # approximate number of progress lines in a series if there is no terminal
PLAYED = {
    "random": "random legal moves",
    "first": "the first legal moves",
}  # value of the option `--replace` -> words for the moves that replace missing and illegal moves
COLOURS = ("#1f6fb4", "#c9403a", "#3a9d5d", "#8a6d3b")

_learning = partial(Option, rich_help_panel="Learning")
_http = partial(Option, rich_help_panel="Access from the network")
_limit = partial(Option, rich_help_panel="Limits for each match")


@command(
    app,
    "serve",
    "serve",
    "serve --player transfer --knowledge knowledge.db --opponent egreedy",
    "serve --player gamelore:ponder=no --memory 8G",
    "serve --player uct:seconds=4 --port 9148 --matches-at-once 10",
    "serve --player baseline --search 3 --quota 500M",
    "serve --player my_player.py:MyPlayer --name mine",
    "serve --address 0.0.0.0 --allow-host player.example.org --no-learn",
    kept="what it had learned is in the knowledge store",
)
def serve(
    player: Annotated[
        str, Option(metavar="PLAYER", help="A player from `gamelore players`, or FILE.py:CLASS.")
    ] = "gamelore",
    port: Annotated[int, Option(min=0, max=65535, help="Port of the player; 0 for any free port.")] = 9147,
    name: Annotated[str, Option(help="Name of the player in its answers to INFO; one word.")] = "gamelore",
    matches_at_once: Annotated[
        int, Option(min=1, help="Maximum number of matches at the same time; any further START gets the reply `busy`.")
    ] = 1,
    margin: Annotated[float, Option(min=0, help="Seconds of every clock that are reserved for the network.")] = 0.5,
    search: Annotated[
        float | None, Option(min=0, metavar="SECONDS", help="Seconds per move for an additional search by a learner.")
    ] = None,
    knowledge: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Knowledge store; by default that of the user for learners, and none for gamelore."
        ),
    ] = None,
    opponent: Annotated[
        str | None,
        _learning(metavar="NAME", help="The opponent under whose name knowledge is stored.", show_default="unknown"),
    ] = None,
    no_learn: Annotated[bool, _learning("--no-learn", help="Use stored knowledge, but do not learn.")] = False,
    quota: Annotated[
        int, _learning(parser=num_bytes, metavar="SIZE", help="Stop learning if the store has this size.")
    ] = "4G",  # type: ignore[assignment]  # the parser reads it
    address: Annotated[
        str, _http(help="Address of this machine at which to listen; 0.0.0.0 for all its addresses.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        _http(
            metavar="NAME",
            help="Another name by which managers may call this machine, for example that of its reverse DNS, which "
            "ggp-base sends; repeatable.",
        ),
    ] = None,
    cors: Annotated[bool, _http("--cors", help="Accept messages from web pages.")] = False,
    get: Annotated[
        bool, _http("--get", help="Accept GET; in some browsers, any web page can send such messages.")
    ] = False,
    patience: Annotated[float, _http(min=0.1, help="Seconds within which a whole message must arrive.")] = 15.0,
    memory: Annotated[int, _limit(parser=num_bytes, metavar="SIZE", help="Memory of each worker process.")] = "4G",  # type: ignore[assignment]  # the parser reads it
    prepare_seconds: Annotated[
        float,
        _limit(min=0.1, help="Seconds for the preparation of a game; the clocks of a match do not change this limit."),
    ] = 60.0,
    verbose: Annotated[bool, Option("--verbose", help="Also log lost connections.")] = False,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Play over the network: answer game managers that speak the GGP protocol, until Ctrl-C.

    Every move is sent in time. If the player has not found a move in time, the first legal move is sent. The players
    `gamelore` and `uct` search until shortly before the playclock ends, unless they have a budget; `gamelore` also
    searches in the startclock and while the others think. Learners, such as --player transfer, store their knowledge
    after every match. They recognise a game if its names are changed, and start a new game with knowledge from others.

    By default, only programs on this machine can connect. Rules from the network are read and played in separate
    processes with limits on memory and time. With --json, one line of JSON gives the address of the player.
    """
    from ..net import player_server
    from ..net.http import WebLimits
    from ..net.messages import PlayerInfo, show_info

    def on_ready(url: str) -> None:
        if json:
            typer.echo(dumps({"url": url, "name": name, "player": player}))
        else:
            typer.echo(f"{name} ({player}) plays at {url}; Ctrl-C stops it")

    player_server.log_to_stderr(logging.DEBUG if verbose else logging.INFO)
    with usage():
        show_info(PlayerInfo(name))  # raises an error unless the name is one word
    limits = WebLimits(seconds=patience, hosts=tuple(allow_host or ()), is_get_allowed=get, is_cors_allowed=cors)
    learning = {"knowledge": knowledge, "opponent": opponent, "learn": not no_learn, "quota": quota, "search": search}
    web = {"address": address, "port": port, "limits": limits, "on_ready": on_ready}
    costs = {"matches_at_once": matches_at_once, "memory": memory, "prepare_seconds": prepare_seconds}
    options: dict[str, Any] = {**learning, **web, **costs}
    received = player_server.serve(player, name=name, margin=margin, seed=seed, **options)
    if received == signal.SIGINT:
        raise KeyboardInterrupt


@command(
    app,
    "host",
    "host tictactoe --player xplayer=http://127.0.0.1:9147 --player oplayer=egreedy",
    "host connect3 --player red=http://127.0.0.1:9147 --player yellow=egreedy --matches 500 --record series",
    "host tictactoe --player xplayer=http://127.0.0.1:9147 --player oplayer=http://127.0.0.1:9148 --startclock 30",
    "host othello4 --player black=baseline --player white=weak --matches 300 --figure curve.png",
    "host connectfour --player red=http://127.0.0.1:9147 --player yellow=uct --scramble --at-once 10 --matches 100",
    kept="finished matches count; with --record, run the same command again to continue",
    loads="games",
)
def host(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    player: Annotated[
        list[str],
        Option(
            metavar="ROLE=PLAYER",
            help="The player of each role: http://ADDRESS:PORT, or a player from `gamelore players`.",
        ),
    ],
    startclock: Annotated[int, Option(min=0, help="Seconds to prepare before the first move.")] = 10,
    playclock: Annotated[int, Option(min=0, help="Seconds for each move.")] = 5,
    extra: Annotated[
        float, Option(min=0, help="Additional seconds after each clock in which a reply still counts.")
    ] = 1.0,
    matches: Annotated[int, Option(min=1, help="Total number of matches, including earlier matches in --record.")] = 1,
    at_once: Annotated[int, Option(min=1, help="Number of matches played in parallel.")] = 1,
    record: Annotated[
        Path | None, Option(metavar="DIR", help="Folder for the GGP match records; a series in it is continued.")
    ] = None,
    replace: Annotated[
        Literal["random", "first"], Option(help="Legal move that is played if a reply is missing or illegal.")
    ] = "random",
    scramble: Annotated[
        bool, Option("--scramble", help="In each match, send the rules to remote players with new random names.")
    ] = False,
    window: Annotated[int, Option(min=1, help="Number of matches in each mean of the learning curve.")] = WINDOW,
    figure: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Draw the learning curve into a .png or .svg file, or into both if FILE has no suffix."
        ),
    ] = None,
    give_up: Annotated[
        int,
        Option(min=0, help="Stop after this many matches in a row without a reply or with a busy player; 0: never."),
    ] = GIVE_UP,
    engine: Engine = "auto",
    seed: Seed = 0,
    verbose: Annotated[bool, Option("--verbose", help="Log every missing or illegal reply.")] = False,
    json: Json = False,
) -> None:
    """Run matches as a game manager, with players over the GGP protocol, and show their learning curves.

    If a player is late (TO), cannot be reached (CE) or sends an illegal move (IL), a legal move is played in its place.
    The match continues and counts. At the START of every match, the manager tries to reach each missing or busy player
    again until the startclock ends. If a player is still busy then, the match is aborted and does not count.

    With --record, every finished match is written to a file. `gamelore replay` checks these files. To continue an
    interrupted series, run the same command again.

    Name a learner in place of an address to let it learn in this process. It uses the knowledge store of the user. For
    another store, write --player "xplayer=baseline:knowledge=FILE".
    """
    from ..net.host import HostSettings
    from ..net.hosted_series import HostedSeries

    rules = load_game(game, engine)
    with usage():
        settings = HostSettings(startclock, playclock, extra, replace, seed)
        players = _players(rules, player)
        if figure is not None:
            from ..lab.figures import check_format

            check_format(figure)
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr, force=True)
    series = HostedSeries(rules, players, settings, scramble=scramble, folder=record)
    try:
        asyncio.run(_lead(series, matches, at_once, window, give_up or None))
    except asyncio.CancelledError:  # a signal has ended the process
        raise KeyboardInterrupt from None
    finally:  # always report the finished matches
        if len(series.played) > len(series.aborted()):
            _report(series, window, figure, json)


def _report(series: HostedSeries, window: int, figure: Path | None, json: bool) -> None:
    summary = _summary(series, window)
    console.emit(summary) if json else _show(series, summary)
    if figure is not None:
        from ..lab.figures import save

        for file in save(_figure(series, window), figure):
            say(f"wrote the picture {file}")


def _players(game: Game, options: Sequence[str]) -> list[str]:
    """Return the players in the order of the roles. Raise GameloreError if an option is not ROLE=PLAYER."""
    from ..catalogue import player
    from ..net.hosted_series import is_url
    from ..net.http import parse_url

    by_role: dict[str, str] = {}
    for option in options:
        role, equals, spec = (part.strip() for part in option.partition("="))
        if not equals:
            raise GameloreError(f"expected --player ROLE=PLAYER, got '{option}'; the roles are {', '.join(game.roles)}")
        one_of(role, game.roles, f"a role of {game.name}")
        if role in by_role:
            raise GameloreError(f"expected one player for {role}, got {by_role[role]} and {spec}; leave one out")
        if re.fullmatch(r"(https?:/*)?(\[[0-9a-f:]+\]|[\w.-]+):\d+/?", spec) and not is_url(spec):
            raise GameloreError(
                f"expected a player, got '{spec}'; write http://ADDRESS:PORT for a player on the network"
            )
        parse_url(spec) if is_url(spec) else player(spec)
        by_role[role] = spec
    if missing := [role for role in game.roles if role not in by_role]:
        names = ", ".join(missing)
        raise GameloreError(f"expected a player for every role, got none for {names}; add --player {missing[0]}=PLAYER")
    return [by_role[role] for role in game.roles]


async def _lead(series: HostedSeries, matches: int, at_once: int, window: int, give_up: int | None) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with series:
        if series.played:
            say(f"continuing the series in {series.folder} after {counted(len(series.played), 'match', 'matches')}")
        if any(number not in series.played for number in range(matches)):
            await _greet(series)
        with _progress(series, matches, window) as on_match:
            await series.run(matches, at_once, on_match, give_up=give_up)


async def _greet(series: HostedSeries) -> None:
    """Send INFO to all remote players, and report unusual answers. Raise GameloreError if one cannot be reached."""
    from ..net.messages import PlayerInfo

    for url, answer in (await series.ask_who()).items():
        if isinstance(answer, ConnectionError):
            why = answer.__cause__ or answer
            raise GameloreError(f"expected a player at {url}, got no connection ({why}); start the player first")
        if not isinstance(answer, PlayerInfo):
            say(f"{url} does not answer INFO like a player ({answer}); the series starts anyway")
        elif answer.status and not answer.is_free:
            say(f"{url} answers that it is {answer.status}; the series starts anyway")


@contextmanager
def _progress(series: HostedSeries, matches: int, window: int) -> Iterator[Callable[[int, MatchRecord], None]]:
    """Show the learning curves while the series runs, and yield the function to call after every match.

    On a terminal the curves are drawn again and again. Otherwise about LINES lines of progress are printed.
    """
    from rich.console import Console
    from rich.live import Live

    terminal = Console(stderr=True, highlight=False, markup=False)
    absent: frozenset[str] = frozenset()
    drawn = 0.0
    with Live(console=terminal, auto_refresh=False, transient=True) if terminal.is_terminal else nullcontext() as live:

        def on_match(number: int, record: MatchRecord) -> None:
            nonlocal absent, drawn
            for line in (*_changed_presence(series, number, record, absent), *_refusals(series, number, record)):
                terminal.print(line) if live else say(line)
            absent = record.absent
            if not live:
                _say_progress(series, matches, window)
            elif time.monotonic() - drawn > REDRAWN and len(series.played) > len(series.aborted()):
                live.update(_picture(series, matches, window), refresh=True)
                drawn = time.monotonic()

        yield on_match


def _changed_presence(series: HostedSeries, number: int, record: MatchRecord, before: frozenset[str]) -> Iterator[str]:
    """Yield a line for each player that stopped or started to reply since the previous match."""
    settings, url = series.settings, dict(zip(series.game.roles, series.players, strict=True))
    for role in sorted(record.absent - before):
        yield (
            f"match {number}: no reply from {url[role]}, so {role} plays {PLAYED[settings.replace]}; at every START "
            f"the host waits up to {settings.startclock + settings.extra:g} s for this player"
        )
    for role in sorted(before - record.absent):
        yield f"match {number}: {role} at {url[role]} replies again"


def _refusals(series: HostedSeries, number: int, record: MatchRecord) -> Iterator[str]:
    """Yield a line for each player that was still busy at the end of the startclock."""
    from ..net.host import busy_roles

    url = dict(zip(series.game.roles, series.players, strict=True))
    for role in sorted(busy_roles(record.events)):
        yield f"match {number}: aborted, because {role} at {url[role]} is busy; it does not count"


def _say_progress(series: HostedSeries, matches: int, window: int) -> None:
    """Print a progress line if it is time for one; there are about LINES such lines in a series."""
    over = len(series.played)
    if matches == 1 or over % max(1, matches // LINES) or over == len(series.aborted()):
        return
    standings = series.standings()
    means = ", ".join(f"{standing.role} {_curve(standing, window)[-1]:.1f}" for standing in standings)
    say(f"{over} of {matches} matches; mean goals of the last {min(window, over)}: {means}{_errors_text(standings)}")


def _picture(series: HostedSeries, matches: int, window: int) -> Table:
    """Return a table of the learners with their curves, drawn with block characters."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for learner, means in _learning_curves(series, window):
        table.add_row(learner.role, curve_text(means), f"{means[-1]:.1f}")
    table.add_row("", f"{len(series.played)} of {matches} matches{_errors_text(series.standings())}", "")
    return table


def curve_text(means: Sequence[float], width: int = CURVE_WIDTH) -> str:
    """Return a curve of goals (0 to 100) as a text of at most `width` block characters."""
    import numpy as np

    parts = np.array_split(np.array(means), max(1, min(width, len(means))))
    return "".join(BLOCKS[min(7, int(part.mean() * 8 / 100))] for part in parts if part.size)


def _learning_curves(series: HostedSeries, window: int) -> list[tuple[Standing, list[float]]]:
    """Return the players that may learn, each with its curve. If no player may learn, return all players."""
    standings = series.standings()
    learners = [standing for standing in standings if standing.may_learn] or standings
    return [(learner, _curve(learner, window)) for learner in learners]


def _curve(standing: Standing, window: int) -> list[float]:
    from ..net.hosted_series import moving_mean

    return moving_mean(standing.counted, window)


def _errors_text(standings: Sequence[Standing]) -> str:
    errors = [f"{standing.role} {kind} {count}" for standing in standings for kind, count in standing.errors.items()]
    return f"; errors: {', '.join(errors)}" if errors else ""


def _summary(series: HostedSeries, window: int) -> dict[str, Any]:
    aborted = series.aborted()
    played = [series.played[number] for number in sorted(series.played) if number not in aborted]
    standings = series.standings()
    return {
        "game": series.game.name,
        "rules_hash": series.game.rules_hash,
        "seed": series.settings.seed,
        **match_counts(played),
        "faulty": sum(bool(record.events) for record in played),
        "aborted": len(aborted),
        "window": window,
        "players": [_result(standing, name, window) for standing, name in zip(standings, series.names, strict=True)],
        "errors": {standing.role: dict(standing.errors) for standing in standings},
        "record": None if series.folder is None else str(series.folder),
    }


def _result(standing: Standing, name: str, window: int) -> dict[str, Any]:
    """Return the result of one player as JSON fields. Its curve has one mean for every match."""
    return result_of(standing.role, standing.player, standing.counted) | {
        "name": name,
        "standard_error": None if math.isnan(standing.standard_error) else standing.standard_error,
        "errors": dict(standing.errors),
        "curve": _curve(standing, window),
    }


def _show(series: HostedSeries, summary: dict[str, Any]) -> None:
    show_table(
        ("role", "player", "mean goal", "std. error", "errors", "goals"), map(_row, summary["players"]), numbers=[2, 3]
    )
    typer.echo(f"\n{counts_text(summary)}; seed {summary['seed']}")
    if summary["faulty"]:
        moves = f"{PLAYED[series.settings.replace]} in place of missing or illegal moves"
        typer.echo(f"{summary['faulty']} of these matches have errors; they count, with {moves}")
    if summary["aborted"]:
        matches = counted(summary["aborted"], "more match was", "more matches were")
        typer.echo(f"{matches} aborted at START, because a player was busy; they do not count")
    if summary["matches"] >= LINES:
        typer.echo(f"\nmean goal of the last {summary['window']} matches, 0 to 100:")
        for learner, means in _learning_curves(series, summary["window"]):
            typer.echo(f"{learner.role}  {curve_text(means)}  {means[-1]:.1f}")
    if summary["record"]:
        typer.echo(f"\nrecorded in {summary['record']}; gamelore replay {summary['record']} checks the records")


def _row(result: dict[str, Any]) -> tuple[str, ...]:
    """Return the table row of a player."""
    error = result["standard_error"]
    return (
        result["role"],
        f"{result['player']} ({result['name']})" if result["name"] else result["player"],
        f"{result['mean_goal']:.2f}",
        "" if error is None else f"{error:.2f}",
        "  ".join(f"{kind}: {count}" for kind, count in result["errors"].items()) or "none",
        goals_text(result),
    )


def _figure(series: HostedSeries, window: int) -> Figure:
    """Return a picture of the learning curves."""
    from ..lab.figures import CHART_INK, CHART_RULE, new_figure

    figure = new_figure(7.2, 4.0, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for colour, (learner, means) in zip(cycle(COLOURS), _learning_curves(series, window), strict=False):
        label = f"{learner.role}: {learner.player}"
        axes.plot(range(1, len(means) + 1), means, color=colour, linewidth=1.6, label=label)
    axes.set(ylim=(-2, 102), xlabel="Matches played", ylabel=f"Mean goal of the last {window} matches")
    axes.set_title(series.game.name, loc="left", fontsize=10.5, color=CHART_INK, weight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=CHART_RULE, linewidth=0.6)
    axes.legend(frameon=False, fontsize=8)
    return figure
