"""Fixtures of the whole suite."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of test material beside the project: public rulesheets and recorded play, not ours to ship."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: the public rulesheets and traces lie beside the project, and only there")
    return SHARED
