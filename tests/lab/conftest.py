"""What the lab's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gamelore.lab.results import ResultStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultStore]:
    """An empty store of trials."""
    with ResultStore(tmp_path / "results.db") as opened:
        yield opened
