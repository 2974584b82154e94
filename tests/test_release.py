"""The wheel and the source distribution: built, installed in an empty environment without extras, and imported."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EVERYTHING = """
import importlib, pkgutil, gamelore
extras = {f"gamelore.envs.{name}" for name in ("agent_match", "agents", "single", "vector", "spiel")}
for module in pkgutil.walk_packages(gamelore.__path__, "gamelore."):
    if module.name not in extras:
        importlib.import_module(module.name)
for name in gamelore.__all__:
    getattr(gamelore, name)
from gamelore.envs import GameBatch
batch = GameBatch("tictactoe", 4)
batch.step(batch.sample())
try:
    gamelore.envs.GameEnv
except ImportError as error:
    print(error)
print(gamelore.play("tictactoe", "random", matches=3, progress=False).plies.shape)
"""


def python(*arguments: object, program: Path | str = sys.executable, cwd: Path | None = None) -> str:
    """Run Python, and return what it prints."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.long
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    python("-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("gamelore-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "gamelore/py.typed" in names
    assert "gamelore/rulesheets/tictactoe.kif" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]
    venv.create(tmp_path / "empty", with_pip=True)
    program = tmp_path / "empty" / "bin" / "python"
    python("-m", "pip", "install", "--quiet", wheel, program=program)
    told = python("-c", EVERYTHING, program=program, cwd=tmp_path)
    assert told == "expected gymnasium for gamelore.envs.GameEnv, got none; pip install 'gamelore[envs]'\n(3,)\n"
    help_text = subprocess.run([program.with_name("gamelore"), "--help"], capture_output=True, text=True, check=True)
    assert "Usage" in help_text.stdout


@pytest.mark.long
def test_the_source_distribution_has_what_a_build_needs(tmp_path: Path) -> None:
    venv.create(tmp_path / "tools", with_pip=True)
    program = tmp_path / "tools" / "bin" / "python"
    python("-m", "pip", "install", "--quiet", "build", program=program)
    python("-m", "build", "--sdist", "--outdir", tmp_path, ROOT, program=program)
    (source,) = tmp_path.glob("gamelore-*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/gamelore/__init__.py", "src/gamelore/py.typed"} <= names
