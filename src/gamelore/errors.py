"""Exceptions of gamelore, messages about bugs in players' files, and checks that a name or value is allowed.

    GameloreError
    ├── GDLError (ValueError)        an error in a rulesheet, with path, line, column, rule, remedy
    │   ├── GDLSyntaxError           the text is not GDL
    │   └── GDLSemanticError         valid GDL without a perfect model or not playable; an unknown fact
    ├── GroundingError               the rules are too large to ground within the limits
    ├── IllegalMoveError (ValueError)
    ├── ProtocolError                a message does not follow the GGP protocol
    ├── KnowledgeError               a store cannot be read, or this version does not know its format
    │   └── DamagedLessonError       the rows of a lesson are not as gamelore stores them
    └── ExperimentError              an experiment cannot run, or would overwrite results

A mistake of the caller raises an exception. A mistake of a remote player is an event in the match record. Messages
begin with a lower-case letter. They name the expected value and the given value, and end with the remedy.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceback import TracebackException
    from types import FrameType


SHORT = 400  # maximum number of characters of a part of a message
SHORT_BEGINNING, SHORT_END = 260, 100


def shortened(text: str) -> str:
    """Return a text of at most SHORT characters. Of a longer text, keep the beginning and the end."""
    if len(text) <= SHORT:
        return text
    left_out = len(text) - SHORT_BEGINNING - SHORT_END
    return f"{text[:SHORT_BEGINNING]} ... {left_out} more characters ... {text[-SHORT_END:]}"


class GameloreError(Exception):
    """Base class of all exceptions that gamelore raises for expected errors."""


class GDLError(GameloreError, ValueError):
    """An error in a rulesheet, at `path` (None for a text), `line` and `column` (from 1). `rule`: text of the rule."""

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        line: int = 1,
        column: int = 1,
        rule: str = "",
        remedy: str = "",
    ) -> None:
        self.message = message
        self.path = path
        self.line = line
        self.column = column
        self.rule = rule
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [f"{self.path or '<text>'}:{self.line}:{self.column}: {shortened(self.message)}"]
        if self.rule:
            lines.append(f"  in {shortened(self.rule)}")
        if self.remedy:
            lines.append(f"  remedy: {shortened(self.remedy)}")
        return "\n".join(lines)


class GDLSyntaxError(GDLError):
    """The text is not GDL: wrong parentheses, wrong number of arguments of a GDL keyword, or unexpected characters."""


class GDLSemanticError(GDLError):
    """The text is GDL, but has no perfect model, cannot be played, or contains a fact that is not in the game."""


class GroundingError(GameloreError):
    """Loading or grounding has exceeded a limit. The message names the limit, and the rule or the relation."""

    def __init__(self, message: str, remedy: str = "") -> None:
        self.message, self.remedy = message, remedy
        super().__init__(message, remedy)

    def __str__(self) -> str:
        return f"{self.message}. Remedy: {self.remedy}" if self.remedy else self.message


class IllegalMoveError(GameloreError, ValueError):
    """A move that the rules do not allow in this position. The message names the legal moves."""


class ProtocolError(GameloreError):
    """A message that does not follow the GGP protocol."""


class KnowledgeError(GameloreError):
    """A knowledge store that this version of gamelore cannot read or write."""


class DamagedLessonError(KnowledgeError):
    """A lesson whose rows are not as gamelore stores them. The message names its game, and how to delete it."""


class ExperimentError(GameloreError):
    """An experiment that cannot run with these settings, or whose folder has results with other settings."""


PLAYER_MODULES = "gamelore_player_"
"""Prefix of the names of modules that are loaded from players' own files."""


def player_bug(error: BaseException | None) -> str | None:
    """Describe a bug in a player's own file: the error, its place, and the traceback without library code.

    An error is not such a bug if its traceback has no code from such a file, or if it is a GameloreError from a `raise`
    statement in such a file. Then its cause is examined instead. Returns None if no bug is found.
    """
    from traceback import TracebackException, walk_tb

    while error is not None:
        frames = list(walk_tb(error.__traceback__))
        own = [(frame.f_code, line) for frame, line in frames if _is_players(frame)]
        if own and not (isinstance(error, GameloreError) and _is_players(frames[-1][0])):
            code, line = own[-1]
            shown = TracebackException.from_exception(error)
            _keep_players_frames(shown, own[0][0].co_filename)
            message, _, _ = f"{type(error).__name__}: {error}".partition("\n")
            heading = f"a bug in the player of {code.co_filename}, line {line}, in {code.co_name}: {message}"
            return f"{heading}\n{''.join(shown.format()).rstrip()}"
        error = error.__cause__
    return None


def _is_players(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(PLAYER_MODULES)


def _keep_players_frames(shown: TracebackException | None, file: str) -> None:
    """Remove the frames before the first frame of the player's file, and all frames of gamelore and libraries.

    The tracebacks of the causes are shortened in the same way.
    """
    from sysconfig import get_path

    if shown is None:
        return
    folders = (Path(__file__).parent, *map(get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
    libraries = tuple(f"{folder}{os.sep}" for folder in folders)
    names = [frame.filename for frame in shown.stack]
    first = names.index(file) if file in names else 0
    frames = shown.stack[first:]
    shown.stack[:] = [f for f in frames if f.filename == file or not f.filename.startswith(("<", *libraries))]
    for cause in (shown.__cause__, shown.__context__, *(getattr(shown, "exceptions", None) or ())):
        _keep_players_frames(cause, file)


def one_of(name: str, names: Collection[str], what: str) -> str:
    """Return the name if it is one of `names`; otherwise raise GameloreError and suggest similar names."""
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        remedy = f"did you mean {' or '.join(near)}?" if near else "choose one of these"
        raise GameloreError(f"expected {what} ({', '.join(names) or 'there is none'}), got {name!r}; {remedy}")
    return name


def check_word(name: str, word: object, words: Iterable[object]) -> None:
    """Raise GameloreError if the value `word` of the setting `name` is not one of `words`."""
    words = list(words)
    if word not in words:
        *others, last = map(str, words)
        expected = f"{', '.join(others)} or {last}" if others else last
        raise GameloreError(f"expected the setting {name} to be {expected}, got {word!r}; choose one of these")


def check_count(name: str, number: object) -> None:
    """Raise GameloreError if a number of things is not a whole number from 1."""
    if not _is_whole(number, 1):
        raise GameloreError(f"expected a whole number of {name} from 1, got {number!r}; choose another number")


def check_seed(seed: object) -> None:
    """Raise GameloreError if a seed of random numbers is not a whole number from 0."""
    if not _is_whole(seed, 0):
        raise GameloreError(f"expected a seed that is a whole number from 0, got {seed!r}; choose another number")


def _is_whole(number: object, least: int) -> bool:
    """Return whether something is a whole number from a least one on."""
    try:
        return index(number) >= least  # type: ignore[arg-type]  # which raises TypeError
    except TypeError:
        return False


def in_a_line(error: object) -> str:
    """Return the text of an error, which may have several lines, as one line."""
    return "; ".join(map(str.strip, str(error).splitlines()))


def counted(count: int, what: str, several: str = "") -> str:
    """Return a count with its noun, as in 1 match, 2 matches. `several` is the plural; by default an s is added."""
    return f"{count} {what if count == 1 else several or f'{what}s'}"
