"""games and check: which rulesheets there are, and what is wrong with one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import FAILED, USAGE, Json, command, emit, fail, show_table

if TYPE_CHECKING:
    from ..rules.check import Finding


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    command(app, "games", "games", "games --json")(games)
    command(app, "check", "check mygame.kif", "check games/*.kif --json")(check)


def games(json: Json = False) -> None:
    """List the games that gamelore ships."""
    from .. import games as shipped

    rows = [_about(shipped.path(name)) for name in shipped.names()]
    if json:
        emit(rows)
    else:
        show_table(("game", "roles", "about"), [(row["name"], ", ".join(row["roles"]), row["about"]) for row in rows])


def _about(path: Path) -> dict[str, Any]:
    """A shipped game's name, roles, title (the first line of its comment) and place."""
    from ..rules.gdl import parse

    text = path.read_text(encoding="utf-8")
    roles = [str(rule.head.args[0]) for rule in parse(text, path).rules if rule.head.name == "role"]
    return {"name": path.stem, "roles": roles, "about": text.splitlines()[0].lstrip("; "), "path": str(path)}


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Rulesheets, or names of shipped games.")],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings, too, make the exit code 1.")] = False,
    json: Json = False,
) -> None:
    """Say what is wrong with rulesheets: every finding with its line, column and remedy.

    The exit code is 1 where there is an error, 0 otherwise.
    """
    from ..rules.game import findings

    texts = [_read(name) for name in files]
    found = [finding for path, text in texts for finding in findings(text, path)]
    if json:
        emit([asdict(finding) for finding in found])
    else:
        typer.echo("\n".join([*map(str, found), _total(found, len(files))]))
    if any(finding.severity == "error" or strict for finding in found):
        raise typer.Exit(FAILED)


def _read(name: str) -> tuple[Path, str]:
    from .. import games as shipped

    path = shipped.path(name) if name in shipped.names() else Path(name)
    try:
        return path, path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        fail(f"expected a rulesheet to read, got: {error}", USAGE)


def _total(findings: Sequence[Finding], num_files: int) -> str:
    counts = Counter(finding.severity for finding in findings)
    errors, warnings = _number(counts["error"], "error"), _number(counts["warning"], "warning")
    return f"{errors} and {warnings} in {_number(num_files, 'rulesheet')}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
