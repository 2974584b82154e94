"""What lasts of a series of matches, in a folder of its own:

    series.json        who plays what and how; a folder belongs to one series
    rules.kif          the rules
    match-000000.json  match 0 as GGP record, and so on
    journal.jsonl      which matches were started, stopped and aborted, by their ids

The journal has a line before the first message of a match goes out and one after the last, so a host that was killed
knows which players may still wait for it. Records are there whole or not at all.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import GameloreError
from .records import GGPRecord, read

if sys.platform != "win32":
    import fcntl

FORMAT = 1
SERIES, RULES, JOURNAL, RECORDS = "series.json", "rules.kif", "journal.jsonl", "match-*.json"
STARTED, STOPPED, ABORTED = "started", "stopped", "aborted"  # in the journal


class SeriesFolder:
    """The folder, as a context manager: while it is open no other host has it.

    about  all that makes this series another one than any other, as JSON has it
    token  of the series, random; every record has it

    Entering it raises GameloreError for a folder of another series or of something else, and for one in use.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], rules: str) -> None:
        self.path = path
        self.token = ""
        self._about = {"format": FORMAT, **about}
        self._rules = rules
        self._num_started: Counter[int] = Counter()
        self._open: dict[str, int] = {}

    def __enter__(self) -> SeriesFolder:
        self._refuse_others()
        self.path.mkdir(parents=True, exist_ok=True)
        self._journal = (self.path / JOURNAL).open("a+b", buffering=0)
        try:
            self._lock()
            self.token = self._same_series()
            self._write_whole(RULES, self._rules)
            self._read_journal()
        except BaseException:
            self._journal.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    def note(self, what: str, number: int, match: str) -> None:
        """Puts into the journal what became of match `number`, whose id on the wire is `match`.

        Raises OSError where it cannot; then no part of the line is there.
        """
        line = f"{json.dumps({'is': what, 'number': number, 'match': match})}\n".encode()
        begin = self._journal.seek(0, os.SEEK_END)
        if self._journal.write(line) < len(line):
            self._journal.truncate(begin)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path / JOURNAL))
        self._take(what, number, match)

    def num_started(self, number: int) -> int:
        """How many times a match was started."""
        return self._num_started[number]

    def open_matches(self) -> list[tuple[int, str]]:
        """Number and id of the matches that were started, and neither stopped nor aborted."""
        return [(number, match) for match, number in self._open.items()]

    def record(self, number: int) -> GGPRecord:
        """The record of a match. Raises GameloreError where it is none of this series."""
        path = self._path(number)
        record = read(path)
        if record.random_token != self.token or record.details is None or record.details.end is None:
            raise GameloreError(f"expected match {number} of this series in {path}, got another; move it elsewhere")
        return record

    def records(self) -> Iterator[tuple[int, GGPRecord]]:
        """All matches that have one, by their numbers."""
        found = (re.fullmatch(r"match-(\d{6,})\.json", path.name) for path in self.path.glob(RECORDS))  # and no copies
        for number in sorted(int(name[1]) for name in found if name):
            yield number, self.record(number)

    def write(self, number: int, record: GGPRecord) -> None:
        """Keeps a match."""
        record.write(self._path(number))

    def _path(self, number: int) -> Path:
        return self.path / RECORDS.replace("*", f"{number:06}")

    def _refuse_others(self) -> None:
        """Nothing is written over that somebody else put there."""
        others = [] if (self.path / SERIES).exists() else [*self.path.glob(RULES), *self.path.glob(RECORDS)]
        if others:
            raise GameloreError(
                f"expected a folder of a series, or a new one, got {self.path}, which has {others[0].name} and no "
                f"{SERIES}; choose another folder"
            )

    def _lock(self) -> None:
        if sys.platform == "win32":
            return  # nobody keeps a second host away there
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise GameloreError(
                f"expected a folder that nobody uses, got {self.path}, where a host is at work; wait for it or stop it"
            ) from None

    def _same_series(self) -> str:
        """The token of the series; a new one where there was none."""
        if not (self.path / SERIES).exists():
            token = f"gamelore.{secrets.token_hex(6)}"
            self._write_whole(SERIES, f"{json.dumps({**self._about, 'token': token}, indent=2)}\n")
            return token
        stored = self._stored()
        for name, value in self._about.items():
            if stored.get(name) != value:
                raise GameloreError(
                    f"expected the series in {self.path} to go on, with {name} {json.dumps(stored.get(name))}, "
                    f"got {json.dumps(value)}; choose another folder for another series"
                )
        return str(stored["token"])

    def _stored(self) -> dict[str, Any]:
        path = self.path / SERIES
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return {"token": stored["token"], **stored}
        except (ValueError, TypeError, KeyError) as error:
            raise GameloreError(
                f"expected what a series is in {path}, got something else ({error}); choose another folder"
            ) from None

    def _read_journal(self) -> None:
        self._journal.seek(0)
        text = self._journal.read()
        if text and not text.endswith(b"\n"):  # the machine went down in the middle of a line
            self._journal.write(b"\n")
        for line in text.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                self._take(entry["is"], entry["number"], entry["match"])

    def _take(self, what: str, number: int, match: str) -> None:
        if what == STARTED:
            self._num_started[number] += 1
            self._open[match] = number
        else:
            self._open.pop(match, None)

    def _write_whole(self, name: str, text: str) -> None:
        """Writes a file that is there whole or not at all."""
        temporary = self.path / f".{name}.tmp"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, self.path / name)
