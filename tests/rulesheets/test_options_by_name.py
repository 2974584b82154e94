"""Games with options, by the names that `load` and the commands take."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gamelore
from gamelore import rulesheets
from gamelore.cli import app
from gamelore.errors import GameloreError
from gamelore.gdl.syntax import parse
from gamelore.rulesheets import options

SHEET = rulesheets.path("breakthrough")


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result.stdout if code == 0 else result.stderr


def test_a_name_with_options_is_a_game_of_its_own() -> None:
    game = gamelore.load("breakthrough:rows=2,WIDTH=3")
    assert game.name == "breakthrough:width=3,rows=2"
    assert "(cell 3 2 white)" in game.start().facts
    assert "(cell 4 1 white)" not in game.start().facts


def test_the_name_of_a_game_loads_it_again() -> None:
    game = gamelore.load("breakthrough: rows = 2 , width = 3")
    again = gamelore.load(game.name)
    assert (again.name, again.rules_hash) == (game.name, game.rules_hash)


def test_the_hash_follows_from_the_rules() -> None:
    plain = gamelore.load("breakthrough")
    assert gamelore.load("breakthrough:rows=1").rules_hash == plain.rules_hash
    assert gamelore.load("breakthrough:rows=1").name == "breakthrough:rows=1"
    assert gamelore.load("breakthrough:rows=2").rules_hash != plain.rules_hash
    assert gamelore.load("breakthrough:").name == "breakthrough"


def test_options_behind_a_path(tmp_path: Path) -> None:
    place = tmp_path / "my(1).kif"
    place.write_text(SHEET.read_text(encoding="utf-8"), encoding="utf-8")
    game = gamelore.load(f"{place}:height=4")
    assert game.name == "my(1):height=4"
    assert game.rules_hash == gamelore.load("breakthrough:height=4").rules_hash


def test_a_file_with_such_a_name_is_a_file(tmp_path: Path) -> None:
    place = tmp_path / "b.kif:width=3"
    place.write_text(SHEET.read_text(encoding="utf-8"), encoding="utf-8")
    assert gamelore.load(str(place)).rules_hash == gamelore.load("breakthrough").rules_hash


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("breakthrow:rows=2", "expected the name of a shipped game, got 'breakthrow'; did you mean breakthrough?"),
        (
            "breakthrough:row=2",
            "expected an option of breakthrough (width, height, rows), got 'row'; did you mean rows?",
        ),
        ("breakthrough:rows=3", "expected one of 1, 2 for the option rows, got '3'; the nearest is 2"),
        (
            "breakthrough:rows",
            "expected option=value, got 'rows' in 'breakthrough:rows'; write name:option=value,option=value",
        ),
        ("breakthrough:rows=1,rows=2", "expected the option rows once"),
        ("connect3:width=4", "expected no options, because connect3 has none, got 'width'; leave it out"),
    ],
)
def test_mistakes_are_told_before_anything_is_done(source: str, message: str) -> None:
    with pytest.raises(GameloreError) as caught:
        gamelore.load(source)
    assert str(caught.value).startswith(message)
    for command in (["show"], ["perft", "--depth", "1"], ["check"], ["bench"], ["features"]):
        assert "error: " in run(command[0], source, *command[1:], code=2)


@pytest.mark.parametrize(
    ("source", "parts", "title"),
    [
        ("connect3", ("connect3", ""), "connect3"),
        ("a/b.kif", ("a/b.kif", ""), "b"),
        ("a/b.kif:c=d,e=f", ("a/b.kif", "c=d,e=f"), "b:c=d,e=f"),
        ("breakthrough:rows=2", ("breakthrough", "rows=2"), "breakthrough:rows=2"),
        ("breakthrough:rows", ("breakthrough", "rows"), "breakthrough:rows"),
        ("C:\\a=b\\c.kif", ("C:\\a=b\\c.kif", ""), "c"),
        ("http://x/a=b.kif", ("http://x/a=b.kif", ""), "a=b"),
    ],
)
def test_splitting(source: str, parts: tuple[str, str], title: str) -> None:
    assert rulesheets.split(source) == parts
    if "\\" not in source:  # a folder on another system
        assert rulesheets.title(source) == title


# ---- commands ----

SMALL = "breakthrough:width=3,height=4"


def test_commands_take_options() -> None:
    assert "(move 1 1 1 2)" in run("show", SMALL)
    assert f"{SMALL}: white, black; native engine" in run("show", f"{SHEET}:height=4,width=3")
    assert json.loads(run("perft", SMALL, "--depth", "1", "--json"))["depths"][1]["sequences"] == 7
    assert json.loads(run("play", SMALL, "random", "random", "--matches", "5", "--json"))["game"] == SMALL


def test_check_takes_options() -> None:
    assert "0 errors and 0 warnings" in run("check", SMALL)
    played = json.loads(run("check", SMALL, f"{SHEET}:rows=2", "--play", "--matches", "5", "--json"))["played"]
    assert [row["game"] for row in played] == [SMALL, "breakthrough:rows=2"]
    assert [row["path"] for row in played] == [str(SHEET)] * 2
    assert f"{SHEET}:width=3,height=4: native engine" in run("check", SMALL, "--play", "--matches", "5")


def test_bench_takes_options() -> None:
    assert run("bench", f"{SHEET}:width=3", "--seconds", "0.01").splitlines()[1].startswith("breakthrough:width=3 ")


def test_fmt_formats_files(tmp_path: Path) -> None:
    place = tmp_path / "b.kif"
    place.write_text("(option a b)")
    message = run("fmt", f"{place}:a=c", code=2)
    missing = f"there is no such file in {tmp_path}"
    assert f"expected the path of a rulesheet, got '{place}:a=c'; {missing}; did you mean {place}?" in message


def test_learned_of_a_game_with_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", str(tmp_path / "knowledge.db"))
    run("learn", SMALL, "--matches", "3")
    learned = json.loads(run("knowledge", "list", "--json"))
    assert [row["game"] for row in learned] == [SMALL]


def test_games_lists_options() -> None:
    rows = {row["name"]: row["options"] for row in json.loads(run("games", "--json"))}
    assert rows["connect3"] == []
    assert {"name": "rows", "value": "1", "choices": ["1", "2"]} in rows["breakthrough"]
    lines = [line.split() for line in run("games").splitlines()]
    assert ["breakthrough", "rows", "1", "1,", "2"] in lines
    assert ["fivemensmorris", "flying", "no", "no,", "yes"] in lines


WITH_OPTIONS = [
    (name, option.name, value)
    for name in rulesheets.names()
    for option in options(parse(rulesheets.path(name).read_text(encoding="utf-8")).rules).values()
    for value in option.choices
]


@pytest.mark.parametrize(("name", "option", "value"), WITH_OPTIONS)
def test_every_choice_that_a_sheet_names_can_be_loaded(name: str, option: str, value: str) -> None:
    game = gamelore.load(f"{name}:{option}={value}", engine="reasoner")
    assert game.name == f"{name}:{option}={value}"
    assert not game.start().is_terminal


def test_a_file_name_that_is_not_utf_8_gives_a_name_that_is(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"a\xff.kif")
    file.write_text(rulesheets.path("tictactoe").read_text(encoding="utf-8"), encoding="utf-8")
    assert (rulesheets.title(file), rulesheets.sheet(file)[2]) == ("a?", "a?")
