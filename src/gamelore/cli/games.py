"""games: which rulesheets there are."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from .console import Json, command, emit, show_table


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(app, "games", "games", "games --json")(games)


def games(json: Json = False) -> None:
    """List the games that gamelore ships, and the options that some of them have."""
    from .. import games as shipped

    rows = [_about(shipped.path(name)) for name in shipped.names()]
    if json:
        emit(rows)
    else:
        show_table(("game", "roles", "about"), [(row["name"], ", ".join(row["roles"]), row["about"]) for row in rows])
        typer.echo("\nSome have options, chosen as in fivemensmorris:cap=80,flying=yes\n")
        show_table(("game", "option", "default", "values"), [line for row in rows for line in _options(row)])


def _options(row: dict[str, Any]) -> list[tuple[str, ...]]:
    """The options of a game for the table."""
    return [(row["name"], option["name"], option["value"], ", ".join(option["choices"])) for option in row["options"]]


def _about(path: Path) -> dict[str, Any]:
    """A shipped game's name, roles, title (the first line of its comment), options and place."""
    from ..rules.gdl import parse
    from ..rules.options import options

    text = path.read_text(encoding="utf-8")
    rules = parse(text, path).rules
    return {
        "name": path.stem,
        "roles": [str(rule.head.args[0]) for rule in rules if rule.head.name == "role"],
        "about": text.splitlines()[0].lstrip("; "),
        "options": [asdict(option) for option in options(rules).values()],
        "path": str(path),
    }
