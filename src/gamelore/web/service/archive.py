"""The matches that the pages keep: one file each, so that a lost connection or a stopped server loses nothing."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import GameloreError
from ...files import time_of_change, write_whole
from .rule_processes import RuleProcesses
from .shared_match import SharedMatch

MOST_MATCHES = 500  # on disk; the oldest are removed
MOST_OPEN = 200  # in memory; those that nobody watches are closed first
KEPT_ID = re.compile(r"[\w-]{4,40}")  # of a match, a series, a run or a visit: a part of its address, and of its file
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptMatch:
    """A match on disk, in a line.

    id        name of its file, and part of its address
    game      name of the game
    players   the player of each role
    num_plies how many plies it has
    changed   time of its last change, in seconds since 1970
    result    how it ended; empty if it goes on
    """

    id: str
    game: str
    players: tuple[str, ...]
    num_plies: int
    changed: float
    result: str = ""


class Archive:
    """The matches in a folder, and those that are open.

    Args:
        folder: folder of the files
        processes: the processes that know the rules
        store: path of the knowledge store for seats that remember
    """

    def __init__(self, folder: Path, processes: RuleProcesses, store: str) -> None:
        self._folder, self._processes, self._store = folder, processes, store
        self._open: dict[str, SharedMatch] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("*.json"), key=time_of_change)[:-MOST_MATCHES]:
            path.unlink(missing_ok=True)

    def new(self, **given: Any) -> SharedMatch:
        """Return a new match; it is kept from its first ply on."""
        match = SharedMatch(self._processes, store=self._store, keep=self.keep, **given)
        return self.add(match)

    def add(self, match: SharedMatch) -> SharedMatch:
        """Take a match among the open ones."""
        self._open[match.id] = match
        for other in [other for other in self._open.values() if other is not match and not other.is_watched]:
            if len(self._open) > MOST_OPEN:
                del self._open[other.id]
        return match

    def keep(self, match: SharedMatch) -> None:
        """Write a match to its file."""
        try:
            write_whole(self._folder / f"{match.id}.json", json.dumps(match.as_json()))
        except OSError as error:  # the match goes on without a copy
            log.warning("a match could not be kept: %s", error)

    async def find(self, match_id: str) -> SharedMatch:
        """Return the match with an id; open it if it is on disk only. Raise GameloreError if there is none."""
        if match_id not in self._open:
            self.add(self._read(match_id))
        match = self._open[match_id]
        if match.view is None and not match.roles:
            await match.open()
        return match

    def kept(self) -> Iterator[KeptMatch]:
        """Yield the matches on disk, the last one first."""
        for path in sorted(self._folder.glob("*.json"), key=time_of_change, reverse=True):
            with suppress(ValueError, KeyError, TypeError, AttributeError, OSError):
                kept = json.loads(path.read_text(encoding="utf-8"))
                players = tuple(str(player) for player, _ in kept["seats"].values())
                result = str(kept.get("result", ""))  # matches of earlier versions have none
                yield KeptMatch(path.stem, str(kept["game"]), players, len(kept["plies"]), time_of_change(path), result)

    def delete(self, match_id: str) -> None:
        """Remove a match."""
        if KEPT_ID.fullmatch(match_id):
            (self._folder / f"{match_id}.json").unlink(missing_ok=True)
        if match := self._open.pop(match_id, None):
            match.delete()

    def _read(self, match_id: str) -> SharedMatch:
        path = self._folder / f"{match_id}.json"
        if not KEPT_ID.fullmatch(match_id) or not path.is_file():
            raise GameloreError("expected the address of a match, got one that is not kept here; begin a new match")
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise GameloreError(f"{path}: expected a match in JSON, got {error}; delete the file") from error
        return SharedMatch.of_json(kept, self._processes, self._store, keep=self.keep)
