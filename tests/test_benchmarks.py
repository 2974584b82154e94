"""The benchmarks that need nothing beside gamelore still run. Their figures are not looked at."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import gamelore

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(gamelore.__file__).parents[1])}  # absolute: the folder is another


def test_network(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    options = ["--matches", "2", "--repeats", "1", "--csv", str(table)]
    subprocess.run([sys.executable, BENCHMARKS / "network.py", *options], check=True, capture_output=True, cwd=tmp_path)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["way"] for row in rows] == ["in process", "two local", "over HTTP", "50 at once"]
    assert all(int(row["turns"]) >= 2 * 5 and row["errors"] == "0" for row in rows)


def test_puzzles(tmp_path: Path) -> None:
    sheets, table = Path(gamelore.__file__).parent / "rulesheets", tmp_path / "rows.csv"
    command = [sys.executable, BENCHMARKS / "puzzles.py", sheets, "--seconds", "30", "--csv", table]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["sheet"], row["goal"], row["proved"]) for row in rows] == [("pegsolitaire", "100", "True")]
    again = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True)
    assert "| pegsolitaire |" not in again.stdout, "it is in the table already"


def test_proofs(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "proofs.py", "--positions", "20", "--games", "tictactoe,capturego3"]
    done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, text=True, env=ENVIRONMENT)
    assert "20 positions of 2 games, 0 contradictions" in done.stdout
