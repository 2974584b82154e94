"""Everything gamelore raises on purpose.

    GameloreError
    ├── GDLError (ValueError)        a rulesheet is wrong; carries path, line, column, rule and remedy
    │   ├── GDLSyntaxError           the text is not GDL
    │   └── GDLSemanticError         the text is GDL but has no perfect model, cannot be played, or is no fact of a game
    ├── GroundingError               the rules are too large to ground within the limits
    ├── IllegalMoveError (ValueError)
    ├── ProtocolError                a message on the wire is not of the GGP protocol
    ├── KnowledgeError               a store is unreadable, or of a format this version does not know
    └── ExperimentError              a grid cannot run, or would overwrite a finished result

A caller's mistake raises. A remote opponent's mistake is an event in the match record. Messages are lower case, say
what was expected and what was found, and end with the remedy.
"""

from __future__ import annotations

from pathlib import Path


class GameloreError(Exception):
    """Root of the tree above."""


class GDLError(GameloreError, ValueError):
    """A rulesheet is wrong at a place: `path` (None for text), `line` and `column` (from 1), `rule` (its text)."""

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
        lines = [f"{self.path or '<text>'}:{self.line}:{self.column}: {self.message}"]
        if self.rule:
            lines.append(f"  in {self.rule}")
        if self.remedy:
            lines.append(f"  remedy: {self.remedy}")
        return "\n".join(lines)


class GDLSyntaxError(GDLError):
    """The text is not GDL: parentheses, arities of the logical words, stray characters."""


class GDLSemanticError(GDLError):
    """The text parses, but has no perfect model, cannot be played at all, or names a fact that a game does not have."""


class GroundingError(GameloreError):
    """Grounding went over a limit; the message names the limit and the largest relation."""


class IllegalMoveError(GameloreError, ValueError):
    """A move that the rules do not allow in this position; the message names the legal ones."""


class ProtocolError(GameloreError):
    """A message that is not of the GGP protocol."""


class KnowledgeError(GameloreError):
    """A knowledge store that cannot be read or written by this version."""


class ExperimentError(GameloreError):
    """An experiment that cannot run as asked, or whose result already exists with other settings."""
