"""The rulesheets that the pages offer: shipped ones, those in folders of the user, and those written on the pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ...errors import GameloreError, one_of
from ...files import write_whole
from ...rulesheets import names, path, with_choices
from .rule_processes import Rules

Origin: TypeAlias = Literal["shipped", "folder", "own"]
MOST_ABOUT = 200  # letters
MOST_TEXT = 2_000_000  # characters of a rulesheet
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,60}")


@dataclass(frozen=True, slots=True)
class ListedSheet:
    """A rulesheet that can be chosen.

    key      what chooses it: "shipped/tictactoe"
    name     name of the game
    origin   where it comes from
    path     its file
    """

    key: str
    name: str
    origin: Origin
    path: Path

    @property
    def label(self) -> str:
        """What a list of games shows: the name, and where it comes from if it is not shipped."""
        return self.name if self.origin == "shipped" else f"{self.name} ({self.origin})"

    @property
    def about(self) -> str:
        """The first line of the file if it is a comment in words; empty otherwise."""
        with suppress(OSError), self.path.open(encoding="utf-8", errors="replace") as lines:
            first = lines.readline(MOST_ABOUT).strip()
            return first.lstrip("; ") if first.startswith(";") and any(map(str.isalpha, first)) else ""
        return ""


class SheetLibrary:
    """All rulesheets of the pages.

    Args:
        own: folder of the rulesheets that are written on the pages
        folders: folders of the user, which are only read
    """

    def __init__(self, own: Path, folders: Sequence[Path] = ()) -> None:
        self._own, self._folders = own, tuple(folders)
        for folder in folders:
            if not folder.is_dir():
                raise GameloreError(f"expected a folder of rulesheets, got {folder}; name a folder with .kif files")

    def sheets(self) -> list[ListedSheet]:
        """Return all rulesheets: own ones, shipped ones, and those of the folders, each in alphabetical order."""
        own = [ListedSheet(own_key(file.stem), file.stem, "own", file) for file in _kif_files(self._own)]
        shipped = [ListedSheet(f"shipped/{name}", name, "shipped", path(name)) for name in names()]
        others = [
            ListedSheet(f"folder{number}/{file.stem}", file.stem, "folder", file)
            for number, folder in enumerate(self._folders)
            for file in _kif_files(folder)
        ]
        return own + shipped + others

    def labels(self) -> dict[str, str]:
        """Return what a list of games shows, by key."""
        return {sheet.key: sheet.label for sheet in self.sheets()}

    def sheet(self, key: str) -> ListedSheet:
        """Return the rulesheet with a key. Raise GameloreError if there is none."""
        sheets = {sheet.key: sheet for sheet in self.sheets()}
        return sheets[one_of(key, sheets, "a rulesheet")]

    def rules(self, key: str, choices: dict[str, str] | None = None) -> Rules:
        """Return the rules of a sheet, with the chosen values of its options.

        Raises:
            GameloreError: there is no such sheet or option, or the file is too long or cannot be read.
        """
        sheet = self.sheet(key)
        text = self.text(key)
        if choices and sheet.origin == "shipped":
            text, values = with_choices(text, choices, sheet.name)
            return Rules(text, f"{sheet.name}:{','.join(f'{name}={value}' for name, value in values.items())}")
        return Rules(text, sheet.name)

    def text(self, key: str) -> str:
        """Return the text of a sheet."""
        file = self.sheet(key).path
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise GameloreError(
                f"expected to read {file}, got {error.strerror or error}; choose another sheet"
            ) from None
        return checked_text(text)

    def save(self, name: str, text: str) -> ListedSheet:
        """Keep a rulesheet under a name. Raise GameloreError for a name that is no file name."""
        checked_text(text)
        check_name(name)
        write_whole(self._own / f"{name}.kif", text)
        return self.sheet(own_key(name))

    def delete(self, key: str) -> None:
        """Delete a rulesheet that was written on the pages. Raise GameloreError for any other."""
        sheet = self.sheet(key)
        if sheet.origin != "own":
            raise GameloreError(f"expected a sheet that was written here, got {key}; only those can be deleted")
        sheet.path.unlink(missing_ok=True)


def own_key(name: str) -> str:
    """Return the key of a rulesheet that is written on the pages."""
    return f"own/{name}"


def check_name(name: str) -> None:
    """Raise GameloreError unless a rulesheet can be kept under this name."""
    if not _NAME.fullmatch(name):
        raise GameloreError(
            f"expected a name of letters, digits, '-', '_' and '.', got {name[:60]!r}; choose another name"
        )


def checked_text(text: str) -> str:
    """Return the text of a rulesheet. Raise GameloreError if it is too long."""
    if len(text) > MOST_TEXT:
        raise GameloreError(f"expected a rulesheet of at most {MOST_TEXT:,} characters, got {len(text):,}; shorten it")
    return text


def _kif_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kif"), key=lambda file: file.stem.lower()) if folder.is_dir() else []
