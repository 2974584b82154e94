"""The command for what the rules do not tell apart."""

from __future__ import annotations

from pathlib import Path

from commands import run, run_json

LAMPS = """
(role r) (lamp 0) (lamp 1) (lamp 2) (lamp 3) (lamp 4)
(<= (legal r (press ?x)) (lamp ?x))
(<= (next (lit ?x)) (does r (press ?x)))
(<= (next (lit ?x)) (true (lit ?x)))
(<= terminal (true (lit ?x)) (true (lit ?y)) (distinct ?x ?y))
(goal r 100)
"""


def test_symmetries_as_cycles() -> None:
    lines = run("symmetries", "connectfour").stdout.splitlines()
    assert lines[0] == "connectfour: 2 symmetries, including the identity"
    assert lines[1].split() == ["order", "facts", "moves", "cycles"]
    assert lines[2].split()[:4] == ["1", "2", "108", "12"]
    assert lines[2].split("  ")[-1].startswith("((cell 1 1 b) (cell 7 1 b))((cell 1 2 b) (cell 7 2 b))")
    assert lines[2].endswith(" ...")
    assert lines[3:] == ["no step counter"]


def test_one_alone_and_a_counter() -> None:
    assert run("symmetries", "goofspiel").stdout == "goofspiel: 1 symmetry, including the identity\nno step counter\n"
    assert (
        run("symmetries", "fivemensmorris").stdout.splitlines()[-1]
        == "step counter: from (step 0) to (step 100), 100 plies later, where the match ends"
    )


def test_as_json() -> None:
    told = run_json("symmetries", "connectfour")
    assert (told["game"], told["num"], told["why"], told["step_counter"]) == ("connectfour", 2, "", None)
    identity, reflection = told["symmetries"]
    assert identity == {"facts": {}, "moves": {"red": {}, "yellow": {}}}
    assert reflection["facts"]["(cell 1 6 red)"] == "(cell 7 6 red)"
    assert reflection["moves"]["yellow"] == {f"(drop {x})": f"(drop {8 - x})" for x in (1, 2, 3, 5, 6, 7)}
    counter = run_json("symmetries", "fivemensmorris")["step_counter"]
    assert counter.pop("facts") == [f"(step {n})" for n in range(101)]
    assert counter == {"first": ["(step 0)"], "last": ["(step 100)"], "plies": 100, "ends_the_match": True}


def test_many(tmp_path: Path) -> None:
    path = tmp_path / "lamps.kif"
    path.write_text(LAMPS)
    lines = run("symmetries", path).stdout.splitlines()
    assert lines[0] == "lamps: 120 symmetries, including the identity"
    assert lines[-2:] == ["... 72 more (--all shows all symmetries)", "no step counter"]
    assert len(lines) == 1 + 1 + 47 + 2
    assert len(run("symmetries", path, "--all").stdout.splitlines()) == 1 + 1 + 119 + 1
    path.write_text(LAMPS + " ".join(f"(lamp {n})" for n in range(5, 9)))
    assert "there may be more: there are more than 1000; those shown leave some facts" in run("symmetries", path).stderr
    assert run_json("symmetries", path)["num"] == 720


def test_no_such_game() -> None:
    assert "did you mean tictactoe" in run("symmetries", "tictactoo", code=2).stderr
