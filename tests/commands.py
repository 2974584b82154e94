"""Runs the command line inside this process."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gamelore.cli import app
from gamelore.learning.store.knowledge import KnowledgeStore


def run(*arguments: object, code: int = 0, input: str | bytes | None = None) -> Any:
    """What a command that leaves with this exit code printed: a result with stdout and stderr."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


def run_json(*arguments: object, code: int = 0) -> Any:
    """The same command with --json: the value that it printed."""
    return json.loads(run(*arguments, "--json", code=code).stdout)


def wait_for_matches(store: Path, num_matches: int) -> None:
    """Until a learner in the store has so many behind it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if store.exists():
            with KnowledgeStore(store) as knowledge:
                if any(learner.num_matches >= num_matches for learner in knowledge.learners()):
                    return
        time.sleep(0.05)
    pytest.fail(f"expected {num_matches} matches in {store} within a minute")


def stored_matches(store: Path) -> Counter[str]:
    """How often each match, by the id that its manager gave it, is in a store: learned from, or to be learned from.

    Each number is that of the learner which has the match most often.
    """
    connection = sqlite3.connect(store)
    try:
        rows = connection.execute("SELECT learner, id FROM match UNION ALL SELECT learner, match FROM trajectory")
        times = Counter((learner, match.partition("#")[0]) for learner, match in rows if match is not None)
    finally:
        connection.close()
    most: Counter[str] = Counter()
    for (_, match), number in times.items():
        most[match] = max(most[match], number)
    return most
