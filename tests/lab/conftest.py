"""What the lab's tests share."""

from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path

import pytest

from gamelore.lab import figures
from gamelore.lab.results import ResultStore

BLANK = '<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultStore]:
    """An empty store of trials."""
    with ResultStore(tmp_path / "results.db") as opened:
        yield opened


@pytest.fixture
def blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write pictures without drawing them, for tests that say nothing about them: a report takes seconds to draw."""

    def write(figure: object, file: Path | StringIO | BytesIO, dpi: object, form: str) -> None:
        if isinstance(file, Path):
            file.write_text(BLANK)
        elif isinstance(file, BytesIO):
            file.write(BLANK.encode())
        else:
            file.write(BLANK)

    monkeypatch.setattr(figures, "_print", write)
