"""Runs the command line inside this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from gamelore.cli import app


def run(*arguments: object, code: int = 0, input: str | bytes | None = None) -> Any:
    """What a command that leaves with this exit code printed: a result with stdout and stderr."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


def run_json(*arguments: object, code: int = 0) -> Any:
    """The same command with --json: the value that it printed."""
    return json.loads(run(*arguments, "--json", code=code).stdout)
