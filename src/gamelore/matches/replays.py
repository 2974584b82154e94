"""Match records read from files and folders, and replayed: each with its match, or with the reason why it differs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
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
    files = sorted(
        file
        for file in folder.iterdir()
        if file.suffix in (".json", ".jsonl") and not file.name.startswith(".") and file.name not in (SERIES, JOURNAL)
    )
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
        for line, text in enumerate(texts, 1):
            yield _replay(path, line if len(texts) > 1 else 0, text, games)


def _texts(path: Path) -> list[str]:
    """Return the text of each record in a file.

    If the first line is a record, each line is a record. Otherwise, the whole file is one record.
    """
    text = text_of(path)
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return lines if isinstance(json.loads(lines[0]), dict) else [text]
    except (ValueError, IndexError, RecursionError):
        return [text]


def _replay(path: Path, line: int, text: str, games: _Games) -> Replay:
    record = None
    try:
        record = MatchRecord.from_json(text)
        graph = games.graph(path, record)
        return Replay(path, line, record, record.replay(graph.game, graph))
    except GameloreError as error:
        return Replay(path, line, record, why=str(error))


class _Games:
    """The games of records, each of which is loaded once. See `replays` for the arguments."""

    def __init__(self, game: Game | None, engine: EngineName, limits: Limits | None) -> None:
        self._given, self._engine, self._limits = game, engine, limits
        self._games: dict[tuple[str | Path, str], Game] = {}
        self._graphs: dict[Game, PositionGraph] = {}
        self._num_records = 0

    def graph(self, path: Path, record: MatchRecord) -> PositionGraph:
        """Return a position graph of the game of a record. Raise GameloreError if the game is unknown."""
        if self._num_records % RECORDS_PER_GRAPH == 0:
            self._graphs.clear()
        self._num_records += 1
        game = self._given or self._game(*_source_of_rules(path, record))
        if game not in self._graphs:
            self._graphs[game] = PositionGraph(game)
        return self._graphs[game]

    def _game(self, source: str | Path, name: str) -> Game:
        key = source, name
        if key not in self._games:
            self._games[key] = load(source, self._engine, self._limits, name=name or None)
        return self._games[key]


def _source_of_rules(path: Path, record: MatchRecord) -> tuple[str | Path, str]:
    """Return what `load` takes for the game of a record, and the name of the game.

    That is the file of rules beside the file of the record, or the name of a shipped game. A record does not make us
    open any other file.

    Raises:
        GameloreError: there is neither.
    """
    if (beside := path.parent / RULES).is_file():
        return beside, printable(record.game)
    if split(record.game)[0] in names():
        return record.game, ""
    raise GameloreError(
        f"expected the rules of the game, got no {RULES} in the folder of the record; name the game, in a shell with "
        "--game"
    )
