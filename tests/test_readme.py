"""The README's lines of Python run as printed, and print what their comments say."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


EIGHT_LINES, MATCHES, LEARNING, ENVIRONMENTS = re.findall(r"```python\n(.*?)```", README, flags=re.S)


def test_the_eight_lines(capsys):
    code = EIGHT_LINES
    assert len([line for line in code.splitlines() if line.strip()]) == 8
    exec(compile(code, "README.md", "exec"), {})
    moves, goals, mean = capsys.readouterr().out.splitlines()
    assert f"# {moves}" in code
    assert f"# {goals}" in code
    assert 60 < float(mean) < 70


def test_the_matches(capsys):
    exec(compile(MATCHES, "README.md", "exec"), {})
    results, *drawn = capsys.readouterr().out.splitlines()
    assert f"# {results}" in MATCHES
    assert drawn[0] == "(cell x y *)"


def test_learning_and_the_tournament(capsys):
    exec(compile(LEARNING, "README.md", "exec"), {})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("<Learned connect3: red against egreedy")
    assert "Elo points of the roles" in last


def test_the_environments():
    names = {}
    exec(compile(ENVIRONMENTS, "README.md", "exec"), names)
    assert names["info"]["action_mask"].sum() == 7
    assert names["batch"].plies.tolist() == [1] * 4096


def test_the_commands_exist():
    from typer.main import get_command

    from gamelore.cli import app

    commands = get_command(app).commands
    used = set(re.findall(r"^gamelore ([a-z]+)", README, flags=re.M))
    assert {"games", "check", "play", "features", "learn", "knowledge", "transfer"} <= used
    assert used <= set(commands)
