"""Match records read from files and folders, and replayed: each with its match, or with the reason why it differs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import GameloreError
from ..gdl.limits import Limits
from ..gdl.syntax import printable
from ..players.position_graph import PositionGraph
from ..rulesheets import load, names, split
from .match import JOURNAL, RULES, SERIES, MatchRecord, MatchState, text_of

if TYPE_CHECKING:
    from ..game.game import EngineName, Game

RECORDS_PER_GRAPH = 256  # a graph keeps all positions of its matches


@dataclass(frozen=True, slots=True)
class Replay:
    """A record and its replayed match, or the reason why the replay failed.

    Attributes:
        path: the file.
        line: the number of its line from 1; 0 if the file is a single record.
        record: the record; None if it could not be read.
        match: the match with all moves made again; None if the replay failed.
        why: the reason why the replay failed, or "".
    """

    path: Path
    line: int
    record: MatchRecord | None = None
    match: MatchState | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """The path of the file, followed by the line if the file contains several records."""
        return f"{self.path}:{self.line}" if self.line else str(self.path)


def record_files(paths: Sequence[Path]) -> list[Path]:
    """Return the given files, and in place of each folder its match records, sorted by name.

    The files SERIES and JOURNAL of a recorded series are not match records. They are left out, because a shell pattern
    such as FOLDER/*.json may include them.

    Raises:
        GameloreError: a folder has no match records.
    """
    given = [path for path in paths if path.name not in (SERIES, JOURNAL)] or paths
    return [file for path in given for file in (_in_folder(path) if path.is_dir() else [path])]


def _in_folder(folder: Path) -> list[Path]:
    """Return the match records in a folder. Raise GameloreError if it has none."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise GameloreError(f"expected a folder that can be read, got {folder}: {error.strerror}") from None
    files = [
        file
        for file in inside
        if file.suffix in (".json", ".jsonl") and not file.name.startswith(".") and file.name not in (SERIES, JOURNAL)
    ]
    if not files:
        raise GameloreError(
            f"expected match records in {folder}, got no .json or .jsonl file; name the files of the records"
        )
    return files


def replays(
    files: Iterable[Path], game: Game | None = None, engine: EngineName = "auto", limits: Limits | None = None
) -> Iterator[Replay]:
    """Replay every record in some files. A record or file that is wrong ends nothing but its own replay.

    Args:
        files: files with one record, or with a record in each line.
        game: the game of all records. None: the rules beside the file of a record, or the shipped game that it names.
        engine: the engine of the games that are loaded.
        limits: the limits of loading.

    Yields:
        The records with their matches, in order.
    """
    games = _Games(game, engine, limits)
    for path in files:
        try:
            texts = _texts(path)
        except OSError as error:
            yield Replay(path, 0, why=f"expected a file that can be read, got: {error.strerror}")
            continue
        for line, text in texts.items():
            yield _replay(path, line if len(texts) > 1 else 0, text, games)


def _texts(path: Path) -> dict[int, str]:
    """Return the text of each record in a file by the number of its line.

    If the first line is a record, each line is a record. Otherwise, the whole file is one record.
    """
    text = text_of(path)
    lines = {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    try:
        return lines if isinstance(json.loads(next(iter(lines.values()), "")), dict) else {1: text}
    except (ValueError, RecursionError):
        return {1: text}


def _replay(path: Path, line: int, text: str, games: _Games) -> Replay:
    record = None
    try:
        record = MatchRecord.from_json(text)
        graph = games.graph(path, record)
        return Replay(path, line, record, record.replay(graph.game, graph))
    except GameloreError as error:
        return Replay(path, line, record, why=str(error))
    except OSError as error:
        return Replay(path, line, record, why=f"expected rules that can be read, got: {error.strerror}")


class _Games:
    """The games of records, each of which is loaded once, also if that fails. See `replays` for the arguments."""

    def __init__(self, game: Game | None, engine: EngineName, limits: Limits | None) -> None:
        self._given, self._engine, self._limits = game, engine, limits
        self._games: dict[str | Path, Game | GameloreError | OSError] = {}
        self._graphs: dict[Game, PositionGraph] = {}
        self._num_records = 0

    def graph(self, path: Path, record: MatchRecord) -> PositionGraph:
        """Return a position graph of the game of a record. Raise GameloreError if the game is unknown."""
        if self._num_records % RECORDS_PER_GRAPH == 0:
            self._graphs.clear()
        self._num_records += 1
        game = self._given or self._game(_source_of_rules(path, record), record)
        if game not in self._graphs:
            self._graphs[game] = PositionGraph(game)
        return self._graphs[game]

    def _game(self, source: str | Path, record: MatchRecord) -> Game:
        """Return the game of a source. Rules in a file get the name that the first of their records tells."""
        if source not in self._games:
            name = printable(record.game) if isinstance(source, Path) else ""
            try:
                self._games[source] = load(source, self._engine, self._limits, name=name or None)
            except (GameloreError, OSError) as error:
                self._games[source] = error
        game = self._games[source]
        if isinstance(game, GameloreError | OSError):
            raise game.with_traceback(None)  # else it collects the frames, and so the records, of all its raises
        return game


def _source_of_rules(path: Path, record: MatchRecord) -> str | Path:
    """Return what `load` takes for the game of a record: the file of rules beside it, or the name of a shipped game.

    A record does not make us open any other file.

    Raises:
        GameloreError: there is neither.
    """
    if (beside := path.parent / RULES).is_file():
        return beside
    with suppress(OSError):  # of a name that is too long for a file
        if split(record.game)[0] in names():
            return record.game
    raise GameloreError(
        f"expected the rules of the game, got no {RULES} in the folder of the record; name the game, in a shell with "
        "--game"
    )
