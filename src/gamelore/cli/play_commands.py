"""play, players, tournament, replay and recognise: play matches, list and rate players, replay and compare records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..drawing.position import state_text, text_boards
from ..errors import GameloreError, counted
from ..gdl.syntax import printable
from . import console
from .console import Cluster, Engine, GameName, Json, Seed, Workers
from .position_commands import without_counter

if TYPE_CHECKING:
    from ..api.playing import ListedPlayer, Matches
    from ..drawing.position import PositionText
    from ..matches.match import MatchRecord, MatchState
    from ..matches.replays import Replay

app = typer.Typer()


@console.command(
    app,
    "play",
    "play tictactoe egreedy random",
    "play othello4 minimax:depth=4 egreedy:filler=first,epsilon=0.05 --matches 1000 --seed 7",
    "play connectfour uct:simulations=5000 egreedy",
    "play connectfour uct:seconds=0.5 uct:simulations=1000,leaves=8",
    "play connect3 weak random --matches 100 --records matches.jsonl --json",
    "play losetictactoe expert random --matches 1000 --regret",
    "play losetictactoe seqplayer perfect --matches 100",
    "play connectfour human",
    "play connect3 baseline egreedy --matches 500",
    kept="no record was written",  # learners still store their knowledge after every finished match
    loads="games",
)
def play(
    game: GameName,
    given: Annotated[
        list[str] | None,
        Argument(
            metavar="PLAYER",
            help="The player of each role, such as uct:simulations=500; see `gamelore players`.",
            show_default="gamelore",
        ),
    ] = None,
    matches: Annotated[int, Option(min=1, help="Number of matches; a single match is shown move by move.")] = 1,
    records: Annotated[
        Path | None,
        Option(
            metavar="FILE|DIR",
            help="Write GGP match records into the lines of FILE, or into files of an existing folder DIR.",
        ),
    ] = None,
    regret: Annotated[
        bool, Option("--regret", help="Show how many points each player loses per move, compared with best play.")
    ] = False,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Play matches between players, and count their goals.

    The strongest player is gamelore; it plays every role for which no player is named. By default it makes 10,000
    simulations for each move. To change this, write for example gamelore:simulations=50000, or gamelore:seconds=0.5 for
    a time limit. Several matches are played at the same time and share this limit: one move in every match takes 0.5
    seconds in total. The player uct is the plain search of textbooks.

    The players perfect, xreasonable, expert and novice need the solution of the game, and so does --regret. It is
    computed first (see `gamelore solve`). If the solution leaves out a step counter, these players ignore the counter.

    The player human is you. The board is drawn, and you type the number of a move, the move, or a part of it.

    The players baseline, transfer and lookahead learn from every match, and store their knowledge in your knowledge
    store. `gamelore learn` with the same seed and opponent continues with the same knowledge, and vice versa.
    """
    from ..api.playing import STRONGEST, check_free, play_seats, players_by_role, seats_of
    from ..api.progress import progress_bars
    from .human import Human, play_here

    rules = console.load_game(game, engine)
    players = [*(given or ()), *[STRONGEST] * (rules.num_roles - len(given or ()))]
    with console.usage():
        if records is not None:
            check_free(records)
            if records.suffix.lower() == ".csv" and not records.is_dir():
                raise GameloreError(f"expected a file for match records, got {records}, a table; choose another name")
        seats = seats_of(players_by_role(rules, players), seed)
    has_human = any(isinstance(seat, Human) for seat in seats)
    if has_human:
        played = play_here(rules, seats, players, matches, seed, regret, err=json)
    else:
        with progress_bars(transient=True) as tell:
            played = play_seats(rules, players, seats, matches, seed, regret=regret, tell=tell)
    if not played:  # the input ended during the first match
        return console.emit({"game": rules.name, "matches": 0}) if json else None
    if records is not None:
        played.save(records)
    summary = _summary(played)
    if json:
        console.emit(summary)
    else:
        _show(summary, played.records[0] if matches == 1 and not has_human else None)


def _summary(played: Matches) -> dict[str, Any]:
    """Return the result of `play` as JSON fields."""
    results = [
        result_of(name, player, [record.goals[role] for record in played.records])
        for role, (name, player) in enumerate(zip(played.game.roles, played.players, strict=True))
    ]
    for role, lost in played.regret.items():
        results[played.game.roles.index(role)]["regret"] = lost
    left_out = {"left_out": list(played.left_out)} if played.left_out else {}
    return {
        **console.identity(played.game),
        "seed": played.seed,
        **match_counts(played.records),
        "players": results,
        **left_out,
    }


def match_counts(played: Sequence[MatchRecord]) -> dict[str, Any]:
    """Return the number of matches, the number for each kind of end, and the lengths in plies."""
    lengths = [len(record.moves) for record in played]
    return {
        "matches": len(played),
        "ends": dict(Counter(record.end for record in played)),
        "plies": {"least": min(lengths), "mean": sum(lengths) / len(lengths), "most": max(lengths)},
    }


def counts_text(summary: dict[str, Any]) -> str:
    """Return the result of `match_counts` in words."""
    plies, ends = summary["plies"], ", ".join(f"{count} {end}" for end, count in summary["ends"].items())
    matches = counted(summary["matches"], "match", "matches")
    return f"{matches} ({ends}) of {plies['least']} to {plies['most']} plies, {plies['mean']:.1f} on average"


def result_of(role: str, player: str, goals: Sequence[int | None]) -> dict[str, Any]:
    """Return the goals of one player. A goal that the rules do not define counts as 0, and is listed as missing."""
    counts = Counter(goals)
    return {
        "role": role,
        "player": player,
        "mean_goal": sum(goal or 0 for goal in goals) / len(goals),
        "goals": {str(goal): counts[goal] for goal in sorted((g for g in counts if g is not None), reverse=True)},
        "missing": counts[None],
    }


def goals_text(result: dict[str, Any]) -> str:
    """Return a text that gives the number of matches for each goal."""
    counts = [*result["goals"].items(), ("none", result["missing"])]
    return "  ".join(f"{goal}: {count}" for goal, count in counts if count)


def _show(summary: dict[str, Any], match: MatchRecord | None) -> None:
    """Print the goals of all players and, if `match` is given, the moves of this match."""
    if match is not None:
        console.show_table(
            ("ply", *match.roles), [(ply, *moves) for ply, moves in enumerate(match.moves, 1)], numbers=[0]
        )
        typer.echo()
    results = summary["players"]
    means = {"mean_goal": "mean goal"} | ({"regret": "regret per move"} if "regret" in results[0] else {})
    rows = [
        (result["role"], result["player"], *(f"{result[mean]:.2f}" for mean in means), goals_text(result))
        for result in results
    ]
    console.show_table(("role", "player", *means.values(), "goals"), rows, numbers=range(2, 2 + len(means)))
    typer.echo(f"\n{counts_text(summary)}; {summary['engine']} engine, seed {summary['seed']}")
    if "left_out" in summary:
        typer.echo(f"best play and regret are computed for the game {without_counter(summary['left_out'])}")


@console.command(
    app,
    "tournament",
    "tournament connect3 egreedy random uct:simulations=100 --matches 20",
    "tournament connectfour gamelore:simulations=2000 uct:simulations=2000 minimax:depth=4 --workers 2 --out four",
    "tournament tictactoe3p egreedy random maxmax --json",
    kept="finished matches are in the folder of --out; run the same command again to continue",
    loads="games",
)
def tournament(
    game: GameName,
    players: Annotated[
        list[str], Argument(metavar="PLAYER", help="The players, such as uct:simulations=500; see `gamelore players`.")
    ],
    matches: Annotated[int, Option(min=1, help="Number of matches of each group of players in each order.")] = 10,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Folder for the matches; those that are already there are used.")
    ] = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    draw: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Also draw a picture into a .png or .svg file, or into both if FILE has no suffix."
        ),
    ] = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Let all players play against each other in all roles; show Elo ratings and the cross table.

    Ratings are those of maximum likelihood with 95 % intervals; draws and the advantages of roles are parts of the
    model. Each player has a further match against the mean, half won and half lost, so that no rating is infinite.

    With --out, the same command continues after an interruption, and adds players or matches.
    """
    from ..api.competition import tournament as play_tournament
    from ..api.playing import player
    from ..api.progress import progress_bars

    rules = console.load_game(game, engine)
    with console.usage():
        for name in players:
            player(name)
    with progress_bars(transient=True) as tell:
        played = play_tournament(
            rules, players, matches=matches, seed=seed, out=out, workers=workers, cluster=cluster, progress=tell
        )
    if draw is not None:
        from ..lab.figures import save

        for file in save(played.plot(), draw):
            console.say(f"wrote the picture {file}")
    if json:
        table = [[None if score != score else score for score in row] for row in played.cross_table.tolist()]
        cross = {"players": list(played.players), "table": table}
        identity = {**console.identity(rules), "seed": seed, "matches": matches}
        console.emit({**identity, "players": played.rows, "roles": played.advantages, "cross_table": cross})
    else:
        typer.echo(played)


@console.command(app, "players", "players", "players uct", "players --json")
def players(
    name: Annotated[
        str | None, Argument(metavar="PLAYER", help="Show the options of this player, with their default values.")
    ] = None,
    json: Json = False,
) -> None:
    """List the players for `gamelore play`, and their options. Write name:option=value,option=value."""
    from ..api.playing import list_players
    from . import human  # noqa: F401  # this import adds the player human

    listed = list_players()
    if name is not None:
        console.known(name, [player.name for player in listed], "a player")
        listed = [player for player in listed if player.name == name]
    if name is not None and not json:
        typer.echo("\n".join(_options(listed[0])))
    elif json:
        console.emit([{**asdict(player), "options": list(player.options)} for player in listed])
    else:
        rows = [(player.name, player.about, ", ".join(player.options)) for player in listed]
        console.show_table(("player", "about", "options"), rows)


def _options(player: ListedPlayer) -> list[str]:
    """Return what a player is, and what each of its options means, as lines."""
    from textwrap import wrap

    width, lines = console.show_width(), [f"{player.name}: {player.about}"]
    for option in player.options:
        lines += [
            "",
            option,
            *wrap(player.meanings.get(option, ""), width, initial_indent="    ", subsequent_indent="    "),
        ]
    return lines


@console.command(
    app,
    "replay",
    "replay series",
    "replay matches.jsonl",
    "replay match-000000.json --show",
    "replay downloaded.json --game tictactoe --json",
    loads="games",
)
def replay(
    files: Annotated[list[Path], Argument(metavar="FILE", help="Match records, or folders with match records.")],
    game: Annotated[
        str | None,
        Option(
            metavar="GAME",
            help="The game of the records.",
            show_default="rules.kif in the folder of a record, or the shipped game that the record names",
        ),
    ] = None,
    show: Annotated[bool, Option("--show", help="Draw every position.")] = False,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Replay matches from their GGP records, and check that every recorded state is correct.

    The exit code is 1 if a record contradicts the rules of the game, or if a file is not a match record. For records
    from another game manager, give the game with --game.
    """
    from ..matches.replays import record_files, replays

    with console.usage():
        records = record_files(files)
    given = console.load_game(game, engine) if game is not None else None
    with console.status() as doing:
        doing("0 records are done")
        rows, drawn = [], []  # instead of the matches, whose positions take more memory
        for replay in replays(records, given, engine, console.LOADING.get()):
            rows.append((replay.name, _described(replay, show and json)))
            drawn += _drawn(replay) if show and not json else []
            doing(f"{len(rows)} records are done, the last is {replay.name}")
    if json:
        console.emit([row for _, row in rows])
    else:
        _show_replays(rows, drawn)
    if not all(row["as_recorded"] for _, row in rows):
        raise typer.Exit(console.FAILED)


@console.command(
    app,
    "recognise",
    "recognise matches.jsonl --role white",
    "recognise series --role oplayer --known egreedy --known uct:simulations=1000 --csv posterior.csv",
    loads="games",
)
def recognise(
    records: Annotated[Path, Argument(metavar="FILE|DIR", help="Match records of one game, of the same opponent.")],
    role: Annotated[str, Option(help="The role of the opponent.")],
    known: Annotated[
        list[str] | None,
        Option(metavar="PLAYER", help="A known player. Repeatable.", show_default="eight players of this program"),
    ] = None,
    game: Annotated[
        str | None, Option(metavar="GAME", help="The game of the records.", show_default="what the records tell")
    ] = None,
    csv: Annotated[Path | None, Option(metavar="FILE", help="Also write all probabilities into a CSV file.")] = None,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Find out which of the known players an opponent is, from its moves in recorded matches.

    The names of the players in the records are not looked at. If no known player fits, the opponent is unknown.
    """
    from ..api.playing import replay as read
    from ..api.recognition import recognise as compare

    if not records.exists():
        console.fail(
            f"{records}: expected a file or folder of match records, got none; name one that gamelore play --records "
            "wrote"
        )
    if csv is not None and csv.suffix.lower() != ".csv":
        console.fail(f"expected a file that ends in .csv, got {csv}; choose another name", console.USAGE)
    given = console.load_game(game, engine) if game is not None else None
    matches = read(records, given, engine=engine, limits=console.LOADING.get())
    with console.usage():
        result = compare(matches, role, known or None)
    if csv is not None:
        result.save(csv)
    if json:
        console.emit({"game": result.game.name, "role": role, "matches": list(map(dict, result.posteriors))})
    else:
        typer.echo(str(result))


def _show_replays(rows: Sequence[tuple[str, Mapping[str, Any]]], drawn: Sequence[str]) -> None:
    """Print the drawn positions, then a table of all records, and their errors."""
    for line in drawn:
        typer.echo(line)
    columns = ("record", "game", "plies", "end", "goals", "errors", "")
    console.show_table(columns, [_row(name, row) for name, row in rows], numbers=[2])
    differing = [(name, row["why"]) for name, row in rows if row["why"]]
    for name, why in differing:
        typer.echo(f"\n{name}: {why}")
    verdict = f"{len(differing)} of them could not be replayed as recorded" if differing else "all are as recorded"
    typer.echo(f"\n{counted(len(rows), 'record')}, {verdict}")


def _row(name: str, row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the row of the table for a record, from its name and its JSON fields."""
    goals = " ".join("none" if goal is None else str(goal) for goal in row.get("goals", ()))
    errors = ", ".join(f"{count} {kind}" for kind, count in row.get("errors", {}).items())
    match = (row.get(field, "") for field in ("game", "plies", "end"))
    return name, *match, goals, errors, "differs" if row["why"] else ""


def _described(replay: Replay, show: bool) -> dict[str, Any]:
    """Return a replayed record as JSON fields. With `show`, include all positions."""
    from ..matches.match import BROKEN_OFF

    described: dict[str, Any] = {"file": str(replay.path)} | ({"line": replay.line} if replay.line else {})
    described |= {"as_recorded": not replay.why, "why": replay.why}
    record, match = replay.record, replay.match
    if record is None or match is None:
        return described
    kinds = (error.split()[0] for errors in record.errors for error in errors if error.strip())
    described |= {
        "match": record.match_id,
        "game": printable(record.game) or match.graph.game.name,
        "plies": match.ply,
        "end": match.end or BROKEN_OFF,
        "goals": list(match.goals) if match.end else [],
        "errors": Counter(printable(kind, 20) for kind in kinds),
    }
    if show:
        positions = zip(((), *record.moves), _positions(match), strict=True)
        described["positions"] = [{"moves": moves, **text._asdict()} for moves, text in positions]
    return described


def _positions(match: MatchState) -> list[PositionText]:
    """Return every position of a match as text."""
    boards, width = text_boards(match.graph.game), console.show_width()
    return [state_text(boards, match.graph.facts(row), width) for row in match.rows]


def _drawn(replay: Replay) -> list[str]:
    """Return all positions of a replayed match as lines of text; none if the replay failed."""
    from .human import told_moves

    if (match := replay.match) is None:
        return []
    first, *others = (position.lines(console.show_width()) for position in _positions(match))
    lines = [replay.name, "", *first]
    for ply, after in enumerate(others):
        lines += ["", f"{ply + 1}. {told_moves(match.graph, match.rows[ply], match.choices[ply])}", "", *after]
    return [*lines, ""]
