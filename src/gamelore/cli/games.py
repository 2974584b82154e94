"""games: which rulesheets there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from .console import Json, command, emit, show_table


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(app, "games", "games", "games --json")(games)


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
