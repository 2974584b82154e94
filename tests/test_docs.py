"""The pages of the site: their code runs, and every public name has a place in the reference."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

import gamelore
import gamelore.envs

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "index.md", DOCS / "ten_tasks.md"]
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
BLOCKS = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL), 1)
]


@pytest.mark.slow
@pytest.mark.parametrize("code", BLOCKS)
def test_the_code_of_a_page_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "page", "exec"), {"__name__": "page"})


@pytest.mark.slow
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(tutorial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(tutorial))


def test_every_tutorial_is_on_the_site() -> None:
    with (DOCS.parent / "zensical.toml").open("rb") as file:
        listed = {page for entry in tomllib.load(file)["project"]["nav"] for page in pages_of(entry)}
    assert {f"tutorials/{path.stem}.md" for path in TUTORIALS} <= listed
    assert {path.name for path in DOCS.glob("*.md")} <= listed


def pages_of(entry: str | list[Any] | dict[str, Any]) -> list[str]:
    """Return the pages below an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    return [page for below in (entry.values() if isinstance(entry, dict) else entry) for page in pages_of(below)]


def test_the_ten_tasks_are_ten_and_short() -> None:
    text = (DOCS / "ten_tasks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 10
    for code in blocks:
        assert len([line for line in code.splitlines() if line.strip()]) <= 10
        assert set(re.findall(r"(?:import|from) (gamelore[\w.]*)", code)) <= {"gamelore", "gamelore.envs"}


def test_every_public_name_has_a_place_in_the_reference() -> None:
    told = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    names = set(re.findall(r"^::: gamelore\.(?:\w+\.)*(\w+)$", told, re.MULTILINE))
    assert names == (set(gamelore.__all__) | set(gamelore.envs.__all__)) - {"__version__"}
