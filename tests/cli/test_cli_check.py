"""`gamelore check`: findings of the text and of playing, as text and JSON, exit codes, many files, Ctrl-C."""

from __future__ import annotations

import json
import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import commands
from gamelore.analysis import playcheck
from gamelore.analysis.explore import Watch
from gamelore.gdl.limits import Limits

STUCK = """(role white) (init (n 0)) (succ 0 1) (succ 1 2)
(<= (legal white up) (true (n 0)))
(<= (legal white down) (true (n 0)))
(<= (next (n ?m)) (does white up) (true (n ?n)) (succ ?n ?m))
(<= terminal (true (n 2)))
(<= (goal white 7) (true (n 2)))
"""
PUZZLE = """(role white) (init off)
(<= (legal white press) (not terminal))
(<= (legal white wait) (not terminal))
(<= (next on) (does white press)) (<= (next off) (does white wait))
(<= terminal (true on)) (<= (goal white 80) (true on))
"""


run = partial(commands.run, "check")
run_json = partial(commands.run_json, "check")


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    path = tmp_path / "stuck.kif"
    path.write_text(STUCK)
    return path


@pytest.fixture
def puzzle(tmp_path: Path) -> Path:
    path = tmp_path / "puzzle.kif"
    path.write_text(PUZZLE)
    return path


def test_the_text_alone_shows_nothing_wrong(stuck: Path) -> None:
    assert run_json(stuck) == []
    assert run(stuck).stdout == "0 errors and 0 warnings in 1 rulesheet\n"


def test_play_finds_what_the_text_hides(stuck: Path) -> None:
    shown = re.sub(r"made in \S+ s: \d+ facts, 2 actions, \d+ gates", "made", run(stuck, "--play", code=1).stdout)
    assert shown == (
        f"{stuck}:2:1: error: white has no legal move in a state that is not terminal; this happens in 2 of all 3 "
        "reachable states [no-legal-move]\n"
        "  in (<= (legal white up) (true (n 0)))\n"
        "  after 1 move: --play up\n"
        "  remedy: add a rule such as (<= (legal white noop) ...) that holds in this state, or make the state "
        "terminal\n"
        f"{stuck}: native engine, made\n"
        "  visited all 3 reachable states, played 1023 random matches (1023 stuck)\n"
        "  every match ends within 1 move\n"
        "1 error and 0 warnings in 1 rulesheet\n"
    )


def test_json_has_the_witness_and_the_figures(stuck: Path) -> None:
    result = run_json(stuck, "--play", "--matches", 10, code=1)
    (finding,) = result["findings"]
    assert (finding["code"], finding["line"], finding["column"]) == ("no-legal-move", 2, 1)
    assert finding["witness"] == [["up"]]
    (played,) = result["played"]
    assert played.pop("make_seconds") > 0
    assert played.pop("play_seconds") > 0
    size = played.pop("size")
    assert size.pop("num_actions") == 2
    assert size.keys() == {"num_facts", "num_gates"}
    assert played == {
        "path": str(stuck),
        "game": "stuck",
        "engine": "native",
        "reason": "",
        "num_states": 3,
        "all_states": True,
        "longest_match": 1,
        "num_matches": 10,
        "num_steps": 10,
        "num_ended": 0,
        "num_stuck": 10,
        "num_cut": 0,
        "mean_length": None,
        "mean_goals": {"white": None},
        "remarks": [],
        "interrupted": False,
    }


def test_the_moves_can_be_given_to_show(puzzle: Path) -> None:
    shown = run(puzzle, "--play", "--matches", 3).stdout
    moves = next(line for line in shown.splitlines() if line.startswith("  after "))
    arguments = shlex.split(moves.partition(": ")[2])
    assert arguments == ["--play", "wait"]
    assert commands.run_json("show", puzzle, *arguments)["facts"] == ["off"]


def test_many_moves_are_not_all_told(puzzle: Path) -> None:
    puzzle.write_text(PUZZLE.replace("(<= (legal white press) (not terminal))", "(<= (legal white press) never)"))
    text = run(puzzle, "--play", "--matches", 1, "--max-states", 0, "--max-steps", 30).stdout
    assert (
        "a match may never end: after 1 move the state is the same as at the start; 1 of 1 random matches had not"
        in text
    )
    counter = PUZZLE.replace("(init off)", "(init (n 0))").replace(
        "(<= (next on)", "(<= (next (n (s ?x))) (true (n ?x)))\n(<= (next on) (true never)"
    )
    puzzle.write_text(counter)
    text = run(puzzle, "--play", "--matches", 1, "--max-steps", 30, "--engine", "reasoner", "--max-states", 0).stdout
    assert re.search(r"after 30 moves:( --play (press|wait)){4} \.\.\. 22 more \.\.\.( --play (press|wait)){4}\n", text)


def test_a_warning_is_a_failure_where_asked(puzzle: Path) -> None:
    (finding,) = run_json(puzzle, "--play")["findings"]
    assert (finding["severity"], finding["code"]) == ("warning", "no-end")
    run(puzzle, "--play", "--strict", code=1)


def test_the_engine_and_its_limits(puzzle: Path) -> None:
    options = ("--play", "--matches", 2, "--json")
    (native,) = json.loads(run(puzzle, *options).stdout)["played"]
    assert (native["engine"], native["reason"]) == ("native", "")
    (small,) = json.loads(run("tictactoe", *options, "--ground-literals", 50).stdout)["played"]
    assert small["engine"] == "reasoner"
    assert "within 50 literals" in small["reason"]
    assert "the largest relation is" in small["reason"]
    text = run("tictactoe", *options[:-1], "--ground-literals", 50).stdout
    assert "tictactoe.kif: reasoner engine: expected grounding to end within 50 literals" in text
    refused = run_json("tictactoe", "--play", "--engine", "native", "--ground-literals", 50, code=1)
    assert [finding["code"] for finding in refused["findings"]] == ["unplayable"]
    assert refused["played"][0]["reason"] == "not played, because it cannot be loaded"
    asked = run_json(puzzle, "--play", "--matches", 2, "--engine", "reasoner")["played"][0]
    assert (asked["engine"], asked["reason"], asked["size"]) == ("reasoner", "the engine reasoner was chosen", None)


def test_a_file_that_cannot_be_played_does_not_stop_the_others(tmp_path: Path, stuck: Path) -> None:
    (tmp_path / "bad.kif").write_text("(role a)\n(<= (next (p ?x)) (true (q ?y)))\n(init")
    files = (tmp_path / "bad.kif", tmp_path / "none.kif", stuck)
    result = run(*files, "--play", "--json", code=2)
    data = json.loads(result.stdout)
    assert [finding["code"] for finding in data["findings"]] == ["unsafe-variable", "syntax", "no-legal-move"]
    assert [(Path(one["path"]).stem, one["engine"]) for one in data["played"]] == [("bad", None), ("stuck", "native")]
    assert data["played"][0]["reason"] == "not played, because it has errors that must be corrected first"
    assert result.stderr == (
        f"error: expected a shipped game or the path of a rulesheet, got {str(files[1])!r}; "
        f"there is no such file in {tmp_path}\n"
    )


def test_what_is_not_there_is_told_with_what_may_have_been_meant(tmp_path: Path, stuck: Path) -> None:
    assert "got 'tictacto'; did you mean tictactoe or " in run("tictacto", code=2).stderr
    assert f"did you mean {stuck}?" in run(tmp_path / "stuk.kif", code=2).stderr
    assert f"this is a folder: name the files in it, for example {tmp_path / '*.kif'}" in run(tmp_path, code=2).stderr
    assert "the shipped games are breakthrough, " in run("zzz", code=2).stderr


@pytest.mark.parametrize(
    "content", [b"\x7fELF\x02\x01\x01\x00\x00", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", bytes(range(256))]
)
@pytest.mark.parametrize("command", ["check", "fmt", "show", "play", "solve"])
def test_a_binary_file_is_told_in_one_line(tmp_path: Path, command: str, content: bytes) -> None:
    file = tmp_path / "game.kif"
    file.write_bytes(b"(role a)\n" + content * 100)
    result = commands.run(command, file, *(["random"] if command == "play" else []), code=2)
    assert result.stderr.count("\n") == 1
    expected = f"error: expected a rulesheet, which is text in UTF-8, got a binary file: {file} has the character"
    assert result.stderr.startswith(expected)
    assert "rulesheet" not in result.stdout
    assert file.read_bytes() == b"(role a)\n" + content * 100


def test_a_binary_file_stops_no_other(tmp_path: Path, stuck: Path) -> None:
    (tmp_path / "game.kif").write_bytes(b"\0" * 100)
    result = run(tmp_path / "game.kif", stuck, code=2)
    assert "0 errors and 0 warnings in 1 rulesheet" in result.stdout
    assert "error: expected a rulesheet" in commands.run("fmt", "-", code=2, input=b"(role a)\0").stderr


def test_text_of_another_encoding_is_no_binary_file(tmp_path: Path, stuck: Path) -> None:
    text = stuck.read_bytes() + "; caf\u00e9 \u0085\r\n\f\x1a".encode("latin-1")
    (tmp_path / "old.kif").write_bytes(text)
    run(tmp_path / "old.kif")


def test_without_play_nothing_is_said_of_playing(tmp_path: Path) -> None:
    (tmp_path / "bad.kif").write_text("(role a")
    assert "not played" not in run(tmp_path / "bad.kif", code=1).stdout
    assert "not played, because it has errors" in run(tmp_path / "bad.kif", "--play", code=1).stdout


def test_the_limits_are_those_of_the_library() -> None:
    told = " ".join(commands.run("check", "--help").stdout.replace("│", " ").split())
    assert f"[default: {Limits().seconds}]" in told
    assert f"[default: {Limits().literals}]" in told


def test_options_of_playing_need_play(stuck: Path) -> None:
    message = run(stuck, "--matches", 5, "--max-steps", 7, code=2).stderr
    assert "expected --play together with --matches, --max-steps; add it" in message


def test_the_same_seed_gives_the_same_result() -> None:
    def played(*options: object) -> Any:
        (one,) = run_json("connect3", "--play", "--matches", 40, "--max-states", 0, *options)["played"]
        return one["num_steps"], one["mean_goals"]

    assert played("--seed", 5) == played("--seed", 5) != played("--seed", 6)


def test_an_interrupt_keeps_what_was_found(stuck: Path, puzzle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Watch.look

    def look(self: Watch, *arguments: Any) -> Any:
        if self.phase == "matches":
            raise KeyboardInterrupt
        return looked(self, *arguments)

    monkeypatch.setattr(Watch, "look", look)
    result = run(stuck, puzzle, "--play", "--json", code=130)
    data = json.loads(result.stdout)
    assert [finding["code"] for finding in data["findings"]] == ["no-legal-move"]
    assert [one["interrupted"] for one in data["played"]] == [True]
    assert f"interrupted at {stuck}; the findings so far are shown" in result.stderr


def test_an_interrupt_while_a_game_is_made_keeps_the_findings_of_its_text(
    stuck: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(*_: Any) -> Any:
        raise KeyboardInterrupt

    stuck.write_text(STUCK + "(unused 1)")
    monkeypatch.setattr(playcheck, "make", make)
    result = run(stuck, "--play", code=130)
    assert "'unused' is derived but never used" in result.stdout
    assert f"{stuck}: not played, because the check was interrupted" in result.stdout
