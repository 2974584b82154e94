"""duel: compare two players in many matches at equal CPU time, also with programs over the GGP protocol."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..api.progress import progress_bars
from . import console
from .console import Engine, Json, Seed

if TYPE_CHECKING:
    from ..lab.duel import Duel, GameScore

app = typer.Typer()


@console.command(
    app,
    "duel",
    "duel uct:simulations=200 uct:simulations=100 --game tictactoe --game connect3 --matches 20 --out duel",
    "duel uct:seconds=0.02 uct:seconds=0.02@/old/src --game connectfour --matches 200 --out old --equal-cpu",
    "duel uct:seconds=1.5 'ggp:java -jar player.jar {port}' --game reversi.kif --startclock 15 --playclock 2 --out ggp",
    kept="finished matches are stored; run the same command again to continue",
    loads="games",
)
def duel(
    a: Annotated[str, Argument(metavar="PLAYER", help="The player whose score is reported, A.")],
    b: Annotated[str, Argument(metavar="OPPONENT", help="Its opponent, B, in all other roles.")],
    game: Annotated[list[str], Option(metavar="GAME", help=console.GAME_HELP)],
    out: Annotated[Path, Option(metavar="DIR", help="Folder of the results; a duel in it is continued.")],
    matches: Annotated[
        int, Option(min=1, help="Matches of each game, rounded up so that A plays each role equally often.")
    ] = 20,
    opening_plies: Annotated[int, Option(min=0, help="Random plies before the players begin.")] = 2,
    half_from_start: Annotated[
        bool, Option("--half-from-start", help="Begin every second pair of matches in the first position.")
    ] = False,
    startclock: Annotated[
        int | None, Option(min=0, help="Seconds before the first move; other programs need clocks.")
    ] = None,
    playclock: Annotated[int | None, Option(min=0, help="Seconds for each move.")] = None,
    extra: Annotated[
        float, Option(min=0, help="Additional seconds after each clock in which a reply still counts.")
    ] = 1.0,
    margin: Annotated[float, Option(min=0, help="Seconds of every clock that gamelore's players leave unused.")] = 0.2,
    cores: Annotated[
        str | None,
        Option(metavar="N,N,..", help="Processor cores for the players.", show_default="all that are allowed"),
    ] = None,
    share_core: Annotated[
        bool,
        Option("--share-core", help="One core for both players of a match; not for players that think all the time."),
    ] = False,
    at_once: Annotated[
        int | None, Option(min=1, help="Matches in parallel.", show_default="as many as the cores allow")
    ] = None,
    data: Annotated[
        Path | None,
        Option(metavar="DIR", help="Data of a GGP program; each match gets a fresh copy, named {dir} in its command."),
    ] = None,
    data_a: Annotated[Path | None, Option(metavar="DIR", help="Data of PLAYER only, in place of --data.")] = None,
    data_b: Annotated[Path | None, Option(metavar="DIR", help="Data of OPPONENT only, in place of --data.")] = None,
    version_a: Annotated[
        str,
        Option(
            metavar="TEXT",
            show_default=False,
            help="Version of PLAYER, if it is a GGP program: a duel is not continued with another one. For a command "
            "that begins with gamelore, it is found out.",
        ),
    ] = "",
    version_b: Annotated[str, Option(metavar="TEXT", show_default=False, help="Version of OPPONENT, likewise.")] = "",
    ponder: Annotated[
        bool, Option("--ponder", help="Let players of gamelore use the startclock, and think while others do.")
    ] = False,
    rewritten_sheet: Annotated[
        bool,
        Option(
            "--rewritten-sheet",
            help="Send a GGP program rules that begin after the random plies, for one that cannot bear to be overruled "
            "in these plies.",
        ),
    ] = False,
    replay_faulty: Annotated[
        bool,
        Option(
            "--replay-faulty",
            help="Play a match again if a GGP program, and nobody else, was at fault; of two, the second.",
        ),
    ] = False,
    equal_cpu: Annotated[
        bool, Option("--equal-cpu", help="Exit with code 1 unless the CPU times differ by at most 5 % in each game.")
    ] = False,
    open_sealed: Annotated[
        bool,
        Option(
            "--open-sealed",
            help="Allow games of sealed families: those on which nothing is tried before the last measurement.",
        ),
    ] = False,
    max_plies: Annotated[int, Option(min=1, help="Maximum length of a match after its opening.")] = 1000,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare two players in many matches, each player in a process of its own on a processor core of its own.

    Matches come in pairs with the same opening and sides swapped. In a game for more roles, the first player plays each
    role in turn, against copies of the second, which share a core. The score is the mean goal of the first player,
    divided by 100, with its 95 % interval. Where the goals of a match do not add up to 100, the share of the first
    player in the goals of all roles is shown, too, and counts in the mean over all games. CPU times are those of the
    processes of a player, per match, without the time before the first move.

    A player is one of `gamelore players`. PLAYER@FOLDER takes it from another source tree (FOLDER contains the folder
    gamelore). ggp:COMMAND is another program that plays over the GGP protocol. COMMAND is a shell command in which
    {port} is the port at which the program must listen. It gets the rulesheet as it is. In the random plies, both
    players are asked for moves and then overruled: their answers and their time do not count.

    Every finished match is stored at once. After an interruption, run the same command again to continue. A game in
    which a match fails is left out, and told at the end with exit code 1; the same command tries it again.
    """
    settings: dict[str, Any] = {
        "seed": seed,
        "opening_plies": opening_plies,
        "half_from_start": half_from_start,
        "startclock": startclock,
        "playclock": playclock,
        "extra": extra,
        "margin": margin,
        "shares_core": share_core,
        "max_plies": max_plies,
        "replay_faulty": replay_faulty,
        "rewritten_sheet": rewritten_sheet,
        "ponders": ponder,
    }
    games = [console.load_game(name, engine) for name in game]
    with console.usage():
        only: dict[str, tuple[object, tuple[str, ...]]] = {"--data": (data, (a, b))}
        only |= {"--data-a": (data_a, (a,)), "--data-b": (data_b, (b,))}
        only |= {"--version-a": (version_a, (a,)), "--version-b": (version_b, (b,))}
        only |= {"--rewritten-sheet": (rewritten_sheet, (a, b)), "--replay-faulty": (replay_faulty, (a, b))}
        _check_programs(only)
        folders, versions = (data_a or data, data_b or data), (version_a, version_b)
        others: dict[str, Any] = {"at_once": at_once, "open_sealed": open_sealed}
        plan = _duel((a, b), games, out, matches, folders, cores, settings, versions, **others)
    with progress_bars() as tell:
        try:
            scores = asyncio.run(_lead(plan, tell))
        except asyncio.CancelledError:  # a signal has ended the process
            raise KeyboardInterrupt from None
    console.emit(_summary(plan, scores)) if json else _show(plan, scores)
    if plan.failures:
        errors = (f"{name}: {error}" for name, error in plan.failures.items())
        console.fail(
            "\n".join(["expected matches of all games, got failures; correct this and run the command again", *errors])
        )
    if equal_cpu and not all(score.has_equal_cpu for score in scores):
        console.fail("expected CPU times that differ by at most 5 %, got more in a game; its score is void")


def _check_programs(only: Mapping[str, tuple[object, tuple[str, ...]]]) -> None:
    """Raise GameloreError for an option with a value that concerns other programs only, where the players are none."""
    from ..errors import GameloreError
    from ..lab.seats import is_program

    for name, (value, players) in only.items():
        if value and not any(map(is_program, players)):
            raise GameloreError(f"expected ggp:COMMAND with {name}, got {' and '.join(players)}; leave {name} out")


def _duel(
    players: tuple[str, str],
    games: list[Any],
    out: Path,
    matches: int,
    data: tuple[Path | None, Path | None],
    cores: str | None,
    settings: dict[str, Any],
    versions: tuple[str, str] = ("", ""),
    **options: Any,
) -> Duel:
    """Return the duel that the options describe."""
    from ..catalogue import player
    from ..errors import GameloreError
    from ..lab.duel import Duel, DuelSettings
    from ..lab.seats import TREE, Contender

    for folder in data:
        if folder is not None and not folder.is_dir():
            raise GameloreError(f"expected a folder of data, got {folder}; name an existing folder")
    first, second = (Contender.parse(*given) for given in zip(players, data, versions, strict=True))
    for contender in (first, second):
        if contender.tree == TREE and not contender.is_outside:
            player(contender.spec)  # raises an error for an unknown player
    if cores is not None:
        options["cores"] = _cores(cores)
    return Duel(games, (first, second), DuelSettings(**settings), out, matches, **options)


def _cores(text: str) -> list[int]:
    """Return the processor cores in a text such as 0,1. Raise GameloreError for cores that are not allowed."""
    import os

    from ..errors import GameloreError

    allowed = sorted(os.sched_getaffinity(0))
    chosen = [int(part) for part in text.split(",") if part.strip().isdecimal()]
    if not chosen or len(chosen) < len(text.split(",")) or not set(chosen) <= set(allowed):
        raise GameloreError(f"expected some of the cores {','.join(map(str, allowed))}, got {text!r}; choose of these")
    if len(set(chosen)) < len(chosen):
        raise GameloreError(
            f"expected different cores, got {text}: players on one core would take time from each other; "
            "name each once, and let the players of a match think one after the other with --share-core"
        )
    return chosen


async def _lead(plan: Duel, tell: Any) -> list[GameScore]:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await plan.run(lambda done, total: tell("matches", done, total))


def _summary(plan: Duel, scores: list[GameScore]) -> dict[str, Any]:
    from ..lab.duel import interval_json, overall

    return {
        "players": [{"player": contender.text, "version": contender.version} for contender in plan.contenders],
        "seed": plan.settings.seed,
        "folder": str(plan.folder),
        "games": [score.as_json() for score in scores],
        "overall": interval_json(overall(scores)),
        "failures": {name: str(error) for name, error in plan.failures.items()},
    }


def _show(plan: Duel, scores: list[GameScore]) -> None:
    from ..errors import counted
    from ..lab.duel import overall

    shares = [] if all(score.adds_up for score in scores) else ["share %"]
    others = ("CPU s A", "CPU s B", "A / B", "plies", "faults A, B", "replaced")
    columns = ("game", "matches", "score %", "95 %", *shares, *others)
    console.show_table(columns, (_row(score, bool(shares)) for score in scores), numbers=range(1, len(columns)))
    mean = overall(scores)
    typer.echo(f"\nover all games: {100 * mean.mean:.1f} % {_limits(mean)}; seed {plan.settings.seed}")
    if shares:
        typer.echo(
            "share: goals of A, divided by those of all roles, where these do not add up to 100; it is part of the mean"
        )
    if broken_off := sum(score.broken_off for score in scores):
        typer.echo(
            f"{counted(broken_off, 'match', 'matches')} without an end of the game: an equal share for each role"
        )
    if not all(score.has_equal_cpu for score in scores):
        typer.echo("*: the CPU times differ by more than 5 %")
    for name, contender in zip("AB", plan.contenders, strict=True):
        typer.echo(f"{name}: {contender.text}" + (f" ({contender.version})" if contender.version else ""))


def _row(score: GameScore, has_share: bool) -> tuple[str, ...]:
    note = "" if score.has_equal_cpu else " *"
    return (
        score.game,
        str(len(score.matches)),
        f"{100 * score.score.mean:.1f}",
        _limits(score.score),
        *(["" if score.adds_up else f"{100 * score.share.mean:.1f} {_limits(score.share)}"] if has_share else []),
        f"{score.cpu(0):.3f}",
        f"{score.cpu(1):.3f}",
        f"{score.ratio:.2f}{note}",
        f"{score.mean_plies:.1f}",
        f"{score.faults(0)}, {score.faults(1)}",
        str(score.replaced),
    )


def _limits(interval: Any) -> str:
    return f"[{100 * max(0.0, interval.low):.1f}, {100 * min(1.0, interval.high):.1f}]"
