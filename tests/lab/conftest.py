"""What the lab's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gamelore.lab.trials import TrialStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TrialStore]:
    """An empty store of trials."""
    with TrialStore(tmp_path / "results.db") as opened:
        yield opened
