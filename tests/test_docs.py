"""The pages of the site: their code runs, and every public name has a place in the reference."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import gamelore
import gamelore.envs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*DOCS.glob("*.md"), *DOCS.glob("how_to/*.md"), *DOCS.glob("search/*.md"), *DOCS.glob("memory/*.md")]
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
PORT = "9147"  # of `gamelore serve`
SERVERS = ("gamelore serve", "gamelore web")  # commands that run until they are ended
COMMANDS = Path(sys.executable).parent  # where `gamelore` is installed
SMALLER = {
    "study breakthrough --seconds 30": "study breakthrough --seconds 5",
    "--matches 4 --records": "--matches 1 --records",
}
"""What takes long in commands of the pages, and less of the same."""


def blocks(language: str, pages: list[Path]) -> list[Any]:
    """Return the blocks of code in a language as parameters. Those that say that they take minutes are long."""
    texts = ((page, page.read_text(encoding="utf-8")) for page in sorted(pages))
    return [
        pytest.param(code, id=f"{page.stem}-{number}", marks=[pytest.mark.long] if "minute" in code else [])
        for page, text in texts
        for number, code in enumerate(re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL), 1)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python", PAGES))
def test_the_code_of_a_page_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "page", "exec"), {"__name__": "page"})


def commands(block: str) -> list[str]:
    """Return the commands of gamelore in a block. Others, which install and build, are what `.ci/run` itself does.

    Those that take long have smaller numbers.
    """
    lines = re.sub("|".join(SMALLER), lambda long: SMALLER[long[0]], re.sub(r"\\\n *", "", block)).splitlines()
    return [line.partition(" #")[0].strip() for line in lines if line.startswith("gamelore ")]


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks("sh", [*PAGES, ROOT / "README.md"]))
def test_the_commands_of_a_page_run(block: str, tmp_path: Path) -> None:
    """A player server runs beside the commands after it; a person at the board always enters 1."""
    if "java" in block:
        pytest.skip("needs a program of others")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(gamelore.rulesheets.path("connect3"), tmp_path / "my-game.kif")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(COMMANDS), os.environ["PATH"]]),
        "GAMELORE_KNOWLEDGE": str(tmp_path / "known.db"),
    }
    given: dict[str, Any] = {"shell": True, "cwd": tmp_path, "env": environment, "text": True}
    port = free_port()
    with ExitStack() as stack:
        for command in (line.replace(PORT, port) for line in commands(block)):
            if command.startswith(SERVERS):
                options = f"--port {port}" if command.startswith("gamelore serve") else "--port 0 --no-browser"
                server = stack.enter_context(
                    subprocess.Popen(f"exec {command} {options}", stdout=subprocess.PIPE, **given)
                )
                stack.callback(server.terminate)
                assert " at http://127.0.0.1:" in server.stdout.readline()
            else:
                ran = subprocess.run(command, input="1\n" * 20, capture_output=True, timeout=900, **given)
                assert ran.returncode == 0, f"{command}: {ran.stderr}"


def free_port() -> str:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return str(opened.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(tutorial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(COMMANDS), os.environ["PATH"]]))
    runpy.run_path(str(tutorial))


def test_every_tutorial_is_on_the_site() -> None:
    with (DOCS.parent / "zensical.toml").open("rb") as file:
        listed = {page for entry in tomllib.load(file)["project"]["nav"] for page in pages_of(entry)}
    assert {f"tutorials/{path.stem}.md" for path in TUTORIALS} <= listed
    assert {path.relative_to(DOCS).as_posix() for path in PAGES} <= listed


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


def test_the_gallery_shows_what_its_data_say() -> None:
    drawing = runpy.run_path(str(DOCS / "draw_gallery.py"))
    games, text = json.loads(drawing["DATA"].read_text(encoding="utf-8")), drawing["PAGE"].read_text(encoding="utf-8")
    assert drawing["page"](games, text) == text
    pictures = {path.stem for path in drawing["BOARDS"].glob("*.svg")}
    assert pictures == {name for name, row in games.items() if "failed" not in row}
    assert set(gamelore.rulesheets.names()) <= pictures
