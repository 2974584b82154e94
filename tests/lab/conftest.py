"""What the lab's tests share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from gamelore.lab import figures
from gamelore.lab.results import ResultStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultStore]:
    """An empty store of trials."""
    with ResultStore(tmp_path / "results.db") as opened:
        yield opened


@pytest.fixture
def draw_only(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Leave pictures empty or as they are, but for those whose file name contains a word."""
    write = figures._write

    def draw(word: str) -> None:
        def write_some(figure: Figure, path: Path, dpi: Any) -> None:
            return write(figure, path, dpi) if word in path.name else path.touch()

        monkeypatch.setattr(figures, "_write", write_some)

    return draw
