"""replay: matches from their records, checked and shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import GameloreError
from ..games import load, names, split
from .console import (
    FAILED,
    USAGE,
    Engine,
    Json,
    command,
    counted,
    emit,
    fail,
    load_game,
    show_table,
    status,
)

if TYPE_CHECKING:
    from ..net.records import GGPRecord
    from ..play.graph import Graph
    from ..play.match import MatchState
    from ..rules.game import EngineName, Game


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "replay",
        "replay series",
        "replay match-000000.json --show",
        "replay downloaded.json --game tictactoe --json",
    )(replay)


def replay(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE..", help="Match records; a folder stands for those in it.")
    ],
    game: Annotated[
        str | None,
        typer.Option(
            "--game",
            metavar="GAME",
            help="What they play.",
            show_default="the rules.kif beside a record, or the shipped game that it names",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Draw every position.")] = False,
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Play matches again from their GGP records, and see that every state is as recorded.

    Leaves with exit code 1 where a file differs from what the rules say, or is no match record. The records may be
    those of another game manager: then say with --game what they play.
    """
    judge = _Judge(load_game(game, engine) if game is not None else None, engine)
    with status() as doing:
        judged: list[_Judged] = []
        for path in _records(files):
            doing(f"{len(judged)} done, now {path}")
            judged.append(judge.judged(path))
    if json:
        emit([_described(one, show) for one in judged])
    else:
        _show(judged, show)
    if any(one.why for one in judged):
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A file, and the match that was played again from it; or why that is not what it says."""

    path: Path
    record: GGPRecord | None = None
    match: MatchState | None = None
    why: str = ""


class _Judge:
    """Plays records again, of one game or of those that they name; every game is loaded once."""

    def __init__(self, game: Game | None, engine: EngineName) -> None:
        self._game = game
        self._engine = engine
        self._graphs: dict[str, Graph] = {}

    def judged(self, path: Path) -> _Judged:
        from ..net.records import read, replay

        record = None
        try:
            record = read(path)
            graph = self._graph(path, record)
            return _Judged(path, record, replay(record, graph.game, graph))
        except GameloreError as error:
            return _Judged(path, record, why=str(error).removeprefix(f"{path}: "))
        except OSError as error:
            return _Judged(path, record, why=f"expected a file that can be read, got: {error.strerror}")

    def _graph(self, path: Path, record: GGPRecord) -> Graph:
        from ..play.graph import Graph

        source = self._source(path, record)
        if source not in self._graphs:
            self._graphs[source] = Graph(self._game or load(source, self._engine))
        return self._graphs[source]

    def _source(self, path: Path, record: GGPRecord) -> str:
        """Where the rules of a record are. Raises GameloreError where nothing says it."""
        from ..net.seriesfolder import RULES

        beside = path.parent / RULES
        named = record.details.game if record.details else ""
        if self._game is not None:
            return self._game.name
        if beside.is_file():
            return str(beside)
        if split(named)[0] in names():  # no path: a name that comes from a file leads to no other file
            return named
        raise GameloreError(f"expected to know what is played, got no {RULES} beside the record; say it with --game")


def _records(files: Sequence[Path]) -> Iterator[Path]:
    """The files, those of a folder in their order; what FOLDER/*.json has besides is left out."""
    from ..net.seriesfolder import SERIES

    for path in [file for file in files if file.name != SERIES] or files:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(file for file in path.glob("*.json") if file.name != SERIES)
        if not inside:
            fail(f"expected match records in {path}, got no .json file; name the records", USAGE)
        yield from inside


def _show(judged: Sequence[_Judged], show: bool) -> None:
    for one in judged:
        if show and one.match is not None:
            typer.echo("\n".join(_drawn(one.path, one.match)))
            typer.echo()
    columns = ("record", "game", "plies", "end", "goals", "errors", "")
    show_table(columns, map(_row, judged), numbers=[2])
    differing = [one for one in judged if one.why]
    for one in differing:
        typer.echo(f"\n{one.path}: {one.why}")
    verdict = f"{len(differing)} of them not as recorded" if differing else "all as recorded"
    typer.echo(f"\n{counted(len(judged), 'match', 'matches')}, {verdict}")


def _row(one: _Judged) -> tuple[object, ...]:
    told = _told(one)
    goals = " ".join("none" if goal is None else str(goal) for goal in told["goals"])
    errors = ", ".join(f"{count} {kind}" for kind, count in told["errors"].items())
    return one.path, told["game"], told["plies"], told["end"], goals, errors, "differs" if one.why else ""


def _told(one: _Judged) -> dict[str, Any]:
    """What there is to say of a match; empty where it could not be played again."""
    from ..net.messages import printable

    if one.match is None or one.record is None:
        return {"game": "", "plies": "", "end": "", "goals": [], "errors": {}}
    details = one.record.details
    kinds = (error.split()[0] for errors in one.record.errors for error in errors if error.strip())
    return {
        "game": printable(details.game) if details else one.match.graph.game.name,
        "plies": one.match.ply,
        "end": one.match.end or "broken off",
        "goals": list(one.match.goals) if one.match.end else [],
        "errors": Counter(printable(kind, 20) for kind in kinds),
    }


def _described(one: _Judged, show: bool) -> dict[str, Any]:
    described: dict[str, Any] = {"file": str(one.path), "as_recorded": not one.why, "why": one.why}
    if one.match is None or one.record is None:
        return described
    described |= {"match": one.record.match_id, **_told(one)}
    return described | ({"positions": _positions(one.record, one.match)} if show else {})


def _positions(record: GGPRecord, match: MatchState) -> list[dict[str, Any]]:
    """Every position: the joint move that led to it, its boards, its other facts."""
    from ..net.records import trajectory
    from .human import Picture

    picture = Picture(match.graph.game)
    drawn = [picture.drawn(match.graph.facts(row)) for row in trajectory(match)[0]]
    moves = ((), *record.moves)
    return [{"moves": moves[ply], "boards": boards, "others": others} for ply, (boards, others) in enumerate(drawn)]


def _drawn(path: Path, match: MatchState) -> list[str]:
    """A match position by position, as lines of text."""
    from ..net.records import trajectory
    from .human import Picture, told_moves

    graph, (rows, choices) = match.graph, trajectory(match)
    picture = Picture(graph.game)
    lines = [f"{path}", "", *picture.lines(graph.facts(rows[0]))]
    for ply, (row, after) in enumerate(pairwise(rows)):
        lines += ["", f"{ply + 1}. {told_moves(graph, row, choices[ply])}", "", *picture.lines(graph.facts(after))]
    return lines
