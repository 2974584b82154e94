"""host: matches over the network, with players behind a wire, in this process, or of both kinds."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import GameloreError
from .console import (
    GAME_HELP,
    USAGE,
    Engine,
    Json,
    Seed,
    command,
    counted,
    emit,
    fail,
    known,
    load_game,
    say,
    show_table,
    usage,
)
from .play import goals_text, result_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from ..net.series import Played, Series, Standing
    from ..rules.game import Game

WINDOW = 50
GIVE_UP = 5  # matches
BLOCKS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 60  # characters
REDRAWN = 0.2  # seconds between two pictures of the curve
LINES = 10  # about, that tell of a series where there is no terminal
PLAYED = {"random": "drawn", "first": "the first legal ones"}  # in place of those that did not come
COLOURS = ("#1f6fb4", "#c9403a", "#3a9d5d", "#8a6d3b")


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "host",
        "host tictactoe --player xplayer=http://127.0.0.1:9147 --player oplayer=egreedy",
        "host connect3 --player red=http://127.0.0.1:9147 --player yellow=egreedy --matches 500 --record series",
        "host tictactoe --player xplayer=http://127.0.0.1:9147 --player oplayer=http://127.0.0.1:9148 --startclock 30",
        "host othello4 --player black=baseline --player white=weak --matches 300 --figure curve.png",
        "host connectfour --player red=http://127.0.0.1:9147 --player yellow=uct --scramble --at-once 10 --matches 100",
        kept="matches that were over count; with --record the same command goes on from there",
    )(host)


def host(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    player: Annotated[
        list[str],
        typer.Option(
            "--player",
            metavar="ROLE=PLAYER",
            help="One for each role: http://ADDRESS:PORT, or a player of `gamelore players`.",
        ),
    ],
    startclock: Annotated[int, typer.Option("--startclock", min=0, help="Seconds to prepare.")] = 10,
    playclock: Annotated[int, typer.Option("--playclock", min=0, help="Seconds for a move.")] = 5,
    extra: Annotated[float, typer.Option("--extra", min=0, help="Seconds of grace beyond the clocks.")] = 1.0,
    matches: Annotated[
        int, typer.Option("--matches", min=1, help="How many, those of earlier calls in --record included.")
    ] = 1,
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="How many are played side by side.")] = 1,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="DIR", help="Keep every match there, as GGP record; resumed."),
    ] = None,
    replace: Annotated[
        Literal["random", "first"],
        typer.Option("--replace", help="The legal move in place of one that is late, illegal or garbled."),
    ] = "random",
    scramble: Annotated[
        bool, typer.Option("--scramble", help="Other names for everything, in each match, to players behind a wire.")
    ] = False,
    window: Annotated[int, typer.Option("--window", min=1, help="Matches in a mean of the learning curve.")] = WINDOW,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the learning curve, as PNG and SVG or one.")
    ] = None,
    give_up: Annotated[
        int,
        typer.Option("--give-up", min=0, help="Stop after so many matches without a reply in a row; 0: never."),
    ] = GIVE_UP,
    engine: Engine = "auto",
    seed: Seed = 0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell of every reply that was none.")] = False,
    json: Json = False,
) -> None:
    """Lead matches as a game manager does, with players over the GGP protocol, and show what they learn from them.

    Whoever is late (TO), out of reach (CE) or gives no legal move (IL) has a legal one played for it, and the match
    goes on, and counts. A player that is out of reach is tried again at every START until the startclock ends.

    With --record, matches are there as one file each as soon as they are over, `gamelore replay` checks them, and a
    series that was interrupted or killed goes on with the next call.

    A learner in place of an address learns in this process: its knowledge is in the user's own store, or another one,
    as in --player "xplayer=baseline:knowledge=FILE".
    """
    from ..net.host import HostSettings
    from ..net.series import Series

    rules = load_game(game, engine)
    with usage():
        settings = HostSettings(startclock, playclock, extra, replace, seed)
        players = _players(rules, player)
        _check_figure(figure)
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr, force=True)
    series = Series(rules, players, settings, scramble=scramble, folder=record)
    try:
        asyncio.run(_lead(series, matches, at_once, window, give_up or None))
    except asyncio.CancelledError:  # terminated
        raise KeyboardInterrupt from None
    finally:  # what was played is told whatever happened
        if series.played:
            _report(series, window, figure, json)


def _report(series: Series, window: int, figure: Path | None, json: bool) -> None:
    summary = _summary(series, window)
    emit(summary) if json else _show(series, summary)
    if figure is not None:
        from ..lab.drawing import save

        for file in save(_curves(series, window), figure):
            say(f"drawn in {file}")


def _players(game: Game, given: Sequence[str]) -> list[str]:
    """The players in the order of roles. Raises GameloreError for one that is none."""
    from ..learn.players import player
    from ..net.client import parse_url
    from ..net.series import is_url

    by_role: dict[str, str] = {}
    for one in given:
        role, equals, spec = (part.strip() for part in one.partition("="))
        if not equals:
            fail(f"expected --player ROLE=PLAYER, got '{one}'; roles: {', '.join(game.roles)}", USAGE)
        role = known(role, game.roles, f"a role of {game.name}")
        if role in by_role:
            fail(f"expected one player for {role}, got {by_role[role]} and {spec}; leave one out", USAGE)
        if re.fullmatch(r"(https?:/*)?(\[[0-9a-f:]+\]|[\w.-]+):\d+/?", spec) and not is_url(spec):
            fail(f"expected a player, got '{spec}'; write http://ADDRESS:PORT for one on the network", USAGE)
        parse_url(spec) if is_url(spec) else player(spec)
        by_role[role] = spec
    missing = [role for role in game.roles if role not in by_role]
    if missing:
        fail(
            f"expected a player for every role, got none for {', '.join(missing)}; add --player {missing[0]}=..", USAGE
        )
    return [by_role[role] for role in game.roles]


def _check_figure(path: Path | None) -> None:
    """Out before the first match where the picture could not be saved as that."""
    if path is None or not path.suffix:
        return
    from matplotlib.figure import Figure

    formats = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        fail(f"expected a picture as {', '.join(sorted(formats))}; got '{path.suffix}'; choose one of these", USAGE)


async def _lead(series: Series, matches: int, at_once: int, window: int, give_up: int | None) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with series:
        if series.played:
            say(f"going on after {counted(len(series.played), 'match', 'matches')} in {series.folder}")
        if any(number not in series.played for number in range(matches)):
            await _greet(series)
        with _growing(series, matches, window) as tell:
            await series.run(matches, at_once, tell, give_up=give_up)


async def _greet(series: Series) -> None:
    """Asks who is there. Raises GameloreError where nobody listens: no match could be played."""
    from ..net.messages import PlayerInfo

    for url, answer in (await series.ask_who()).items():
        if isinstance(answer, ConnectionError):
            raise GameloreError(
                f"expected a player at {url}, got no connection; start it first ({answer.__cause__ or answer})"
            )
        if not isinstance(answer, PlayerInfo):
            say(f"{url} does not answer INFO as a player does; going on ({answer})")
        elif answer.status and not answer.is_free:
            say(f"{url} says that it is {answer.status}; going on")


@contextmanager
def _growing(series: Series, matches: int, window: int) -> Iterator[Callable[[Played], None]]:
    """Shows the curve while it grows: drawn on a terminal, else as a line now and then. Told of every match."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False, markup=False)
    presence = _Presence(series)
    if not console.is_terminal:

        def tell(played: Played) -> None:
            presence.follow(played, say)
            _tell(series, matches, window)

        yield tell
        return
    last = 0.0
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def redraw(played: Played) -> None:
            nonlocal last
            presence.follow(played, console.print)
            if time.monotonic() - last > REDRAWN:
                live.update(_picture(series, matches, window), refresh=True)
                last = time.monotonic()

        yield redraw


class _Presence:
    """Tells when a player is gone, and when it is there again."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._absent: frozenset[str] = frozenset()

    def follow(self, played: Played, tell: Callable[[str], None]) -> None:
        """Takes notice of a match that is over."""
        settings, url = self._series.settings, dict(zip(self._series.game.roles, self._series.players, strict=True))
        for role in sorted(played.absent - self._absent):
            tell(
                f"match {played.number}: no reply from {url[role]}, {role}'s moves are {PLAYED[settings.replace]}; "
                f"every START waits {settings.startclock + settings.extra:g} s for it to come back"
            )
        for role in sorted(self._absent - played.absent):
            tell(f"match {played.number}: {role} at {url[role]} is back")
        self._absent = played.absent


def _tell(series: Series, matches: int, window: int) -> None:
    """A line, about LINES times in the series."""
    over = len(series.played)
    if matches == 1 or over % max(1, matches // LINES):
        return
    means = ", ".join(f"{one.role} {_moving(one, window)[-1]:.1f}" for one in series.standings())
    say(f"{over} of {matches} matches; the last {min(window, over)}: {means}{_errors_text(series.standings())}")


def _picture(series: Series, matches: int, window: int) -> Table:
    """The curves of those who may learn, as blocks."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    standings = series.standings()
    for one in _learners(standings):
        table.add_row(one.role, curve_text(_moving(one, window)), f"{_moving(one, window)[-1]:.1f}")
    table.add_row("", f"{len(series.played)} of {matches} matches{_errors_text(standings)}", "")
    return table


def curve_text(means: Sequence[float], width: int = CURVE_WIDTH) -> str:
    """A curve of goals, 0 to 100, as at most `width` blocks."""
    import numpy as np

    parts = np.array_split(np.array(means), max(1, min(width, len(means))))
    return "".join(BLOCKS[min(7, int(part.mean() * 8 / 100))] for part in parts if part.size)


def _learners(standings: Sequence[Standing]) -> list[Standing]:
    """Those whose curve may rise: behind a wire, or learning here; all where nobody does."""
    return [one for one in standings if one.may_learn] or list(standings)


def _moving(one: Standing, window: int) -> list[float]:
    from ..net.series import moving_mean

    return moving_mean(one.goals, window)


def _errors_text(standings: Sequence[Standing]) -> str:
    errors = [f"{one.role} {kind} {count}" for one in standings for kind, count in one.errors.items()]
    return f"; errors: {', '.join(errors)}" if errors else ""


def _summary(series: Series, window: int) -> dict[str, Any]:
    played = [series.played[number] for number in sorted(series.played)]
    plies = [one.plies for one in played]
    standings = series.standings()
    return {
        "game": series.game.name,
        "rules_hash": series.game.rules_hash,
        "seed": series.settings.seed,
        "matches": len(played),
        "faulty": sum(bool(one.events) for one in played),
        "ends": dict(Counter(one.end for one in played)),
        "plies": {"least": min(plies), "mean": sum(plies) / len(plies), "most": max(plies)},
        "window": window,
        "players": [_result(one, name, window) for one, name in zip(standings, series.names, strict=True)],
        "errors": {one.role: dict(one.errors) for one in standings},
        "record": None if series.folder is None else str(series.folder),
    }


def _result(one: Standing, name: str, window: int) -> dict[str, Any]:
    """What one player got; its curve has a mean for every match."""
    return result_of(one.role, one.player, one.goals) | {
        "name": name,
        "standard_error": None if math.isnan(one.standard_error) else one.standard_error,
        "errors": dict(one.errors),
        "curve": _moving(one, window),
    }


def _show(series: Series, summary: dict[str, Any]) -> None:
    show_table(
        ("role", "player", "mean goal", "+-", "errors", "goals"),
        [_row(result) for result in summary["players"]],
        numbers=[2, 3],
    )
    plies, ends = summary["plies"], ", ".join(f"{count} {end}" for end, count in summary["ends"].items())
    typer.echo(
        f"\n{counted(summary['matches'], 'match', 'matches')} ({ends}) of {plies['least']} to {plies['most']} plies, "
        f"{plies['mean']:.1f} on average; seed {summary['seed']}"
    )
    if summary["faulty"]:
        typer.echo(
            f"{summary['faulty']} of them with errors; they count, with moves that are "
            f"{PLAYED[series.settings.replace]} in place of those that did not come"
        )
    if summary["matches"] >= LINES:
        typer.echo(f"\nmean goal of the last {summary['window']} matches, 0 to 100:")
        for one in _learners(series.standings()):
            means = _moving(one, summary["window"])
            typer.echo(f"{one.role}  {curve_text(means)}  {means[-1]:.1f}")
    if summary["record"]:
        typer.echo(f"\nrecorded in {summary['record']}; check them with gamelore replay {summary['record']}")


def _row(result: dict[str, Any]) -> tuple[str, ...]:
    """A player's row; +- is the standard error."""
    error = result["standard_error"]
    return (
        result["role"],
        f"{result['player']} ({result['name']})" if result["name"] else result["player"],
        f"{result['mean_goal']:.2f}",
        "" if error is None else f"{error:.2f}",
        "  ".join(f"{kind}: {count}" for kind, count in result["errors"].items()) or "none",
        goals_text(result),
    )


def _curves(series: Series, window: int) -> Figure:
    """The learning curves as a picture."""
    from matplotlib.figure import Figure

    from ..lab.figures import INK, RULE

    figure = Figure(figsize=(7.2, 4.0), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for number, one in enumerate(_learners(series.standings())):
        means = _moving(one, window)
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(range(1, len(means) + 1), means, color=colour, linewidth=1.6, label=f"{one.role}: {one.player}")
    axes.set(ylim=(-2, 102), xlabel="Matches played", ylabel=f"Mean goal of the last {window} matches")
    axes.set_title(series.game.name, loc="left", fontsize=10.5, color=INK, weight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.legend(frameon=False, fontsize=8)
    return figure
