"""fmt: rulesheets in canonical layout."""

from __future__ import annotations

import difflib
import errno
import io
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from ..errors import GameloreError, GDLSyntaxError
from .console import FAILED, OK, USAGE, Json, command, emit, rulesheet_path, say

ENCODING = "utf-8", "surrogateescape"  # bytes that are no UTF-8, in comments of old sheets, stay as they are
STANDARD_INPUT = "-"


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "fmt",
        "fmt mygame.kif",
        "fmt games/*.kif --check",
        "fmt mygame.kif --diff",
        "fmt - < mygame.kif > formatted.kif",
        kept="every file is either done or as it was",
    )(fmt)


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A rulesheet before and after; `after` is None, and `error` and `code` say why, where it cannot be formatted."""

    name: str
    before: str = ""
    after: str | None = None
    error: str | None = None
    code: int = OK

    @property
    def changed(self) -> bool:
        return self.after is not None and self.after != self.before


def fmt(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Rulesheets; - is standard input.")],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; the exit code is 1 where a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; show what would change.")] = False,
    stdout: Annotated[
        bool, typer.Option("--stdout", help="Write nothing; print the formatted text, as for standard input.")
    ] = False,
    json: Json = False,
) -> None:
    """Lay rulesheets out in one way: only space changes, every comment stays.

    A rule that fits stands on one line, a longer one has a line for each condition; facts that share a line go on
    sharing it, several blank lines become one. A file with a syntax error is left alone; the other ones are done.
    """
    sheets = []
    for name in files:
        sheet = _read(name)
        printed = stdout or name == STANDARD_INPUT
        if sheet.changed and not (check or diff or printed):
            sheet = _written(sheet)
        if sheet.error and not json:
            say(f"error: {sheet.error}")
        sheets.append(sheet)
        if not json:
            _show(sheet, printed, check, diff)
    if json:
        emit([_described(sheet, stdout, diff) for sheet in sheets])
    elif STANDARD_INPUT not in files and not (stdout or diff):
        typer.echo(_summary(sheets, check))
    code = max(sheet.code for sheet in sheets)
    if code or (check and any(sheet.changed for sheet in sheets)):
        raise typer.Exit(code or FAILED)


def _read(name: str) -> _Sheet:
    """Reads and formats a file, or standard input."""
    from ..rules.layout import formatted

    try:
        path = None if name == STANDARD_INPUT else rulesheet_path(name, shipped=False)
        text = (path.read_bytes() if path else sys.stdin.buffer.read()).decode(*ENCODING)
        return _Sheet(name, text, formatted(text, path))
    except OSError as error:
        return _Sheet(name, error=f"expected a rulesheet to read, got: {error}", code=USAGE)
    except GDLSyntaxError as error:
        return _Sheet(name, text, error=str(error), code=FAILED)
    except GameloreError as error:
        return _Sheet(name, error=str(error), code=USAGE)


def _written(sheet: _Sheet) -> _Sheet:
    """Puts the formatted text in the place of the file, in one step; a link goes on pointing at it."""
    assert sheet.after is not None
    place = Path(sheet.name).resolve()
    try:
        if not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), sheet.name)
        with TemporaryDirectory(dir=place.parent, prefix=".gamelore-") as beside:
            new = Path(beside) / place.name
            new.write_bytes(sheet.after.encode(*ENCODING))
            shutil.copymode(place, new)
            new.replace(place)
    except OSError as error:
        return _Sheet(sheet.name, error=f"expected a rulesheet that can be written, got: {error}", code=FAILED)
    return sheet


def _show(sheet: _Sheet, printed: bool, check: bool, diff: bool) -> None:
    if sheet.after is None:
        return
    if diff:
        typer.echo(_difference(sheet).encode(*ENCODING), nl=False)
    elif printed and not check:
        typer.echo(sheet.after.encode(*ENCODING), nl=False)
    elif sheet.changed:
        typer.echo(f"{'would format' if check else 'formatted'} {sheet.name}")


def _difference(sheet: _Sheet) -> str:
    """A unified diff, empty where nothing changes."""
    before, after = (list(io.StringIO(text, newline="\n")) for text in (sheet.before, sheet.after))
    lines = difflib.unified_diff(before, after, sheet.name, sheet.name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _described(sheet: _Sheet, stdout: bool, diff: bool) -> dict[str, Any]:
    described: dict[str, Any] = {"path": sheet.name, "changed": sheet.changed, "error": _readable(sheet.error)}
    if stdout or sheet.name == STANDARD_INPUT:
        described["text"] = _readable(sheet.after)
    if diff:
        described["diff"] = sheet.after and _readable(_difference(sheet))
    return described


def _readable(text: str | None) -> str | None:
    """A text in which bytes that are no UTF-8 are replaced: JSON cannot have them."""
    return text and text.encode(*ENCODING).decode("utf-8", "replace")


def _summary(sheets: Sequence[_Sheet], check: bool) -> str:
    changed, failed = sum(sheet.changed for sheet in sheets), sum(sheet.error is not None for sheet in sheets)
    counts = [
        (changed, "would change" if check else "formatted"),
        (len(sheets) - changed - failed, "already formatted"),
        (failed, "not formatted"),
    ]
    return ", ".join(f"{number} {what}" for number, what in counts if number)
