"""A human at the terminal: what is drawn, what is understood, how it ends."""

import json
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import run
from gamelore import rulesheets
from gamelore.catalogue import play_matches, player
from gamelore.cli.human import Menu

FIRST_BOARD = """\
(cell x y *)
3 | . . .
2 | . . .
1 | . . .
  +------
    1 2 3
. = b

(control xplayer)

  1: (mark 1 1)   2: (mark 1 2)   3: (mark 1 3)   4: (mark 2 1)   5: (mark 2 2)
  6: (mark 2 3)   7: (mark 3 1)   8: (mark 3 2)   9: (mark 3 3)
move of xplayer (? for help): """


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """A terminal of 80 characters, whatever the tests run in."""
    monkeypatch.setattr("gamelore.cli.console.show_width", lambda: 80)


def test_the_board_is_drawn_and_the_moves_of_others_are_told():
    text = run("play", "tictactoe", "human", "egreedy:filler=first", input="2 2\n1\n").stdout
    assert text.startswith(
        f"xplayer is human, oplayer is egreedy:filler=first\n\n{FIRST_BOARD}2 2\n1. xplayer (mark 2 2)"
    )
    assert "\n2. oplayer (mark 1 1)\n\n(cell x y *)\n3 | . . .\n2 | . x .\n1 | o . .\n" in text
    assert "move of xplayer (? for help): 1\n3. xplayer (mark 1 2)\n4. oplayer (mark 3 2)\n" in text
    assert "noop" not in text


def test_a_match_to_its_end():
    text = run("play", "tictactoe", "human", "human", input="1 1\n2 1\n1 2\n2 2\n1 3\n").stdout
    assert text.count("(cell x y *)") == 6
    assert "3 | x . .\n2 | x o .\n1 | x o .\n" in text
    assert text.count("The match is over: xplayer 100, oplayer 0\n") == 1
    assert text.count("1. xplayer (mark 1 1)\n") == 1
    assert "1 match (1 terminal) of 5 to 5 plies" in text


def test_simultaneous_moves():
    text = run("play", "goofspiel", "human", "human", input="5\n1\n3\n(bid 2)\n").stdout
    assert "1. red (bid 5), blue (bid 1)\n" in text
    assert "\n2. red (bid 3), blue (bid 2)\n" in text
    assert "  1: (bid 1)   2: (bid 2)   4: (bid 4)\nmove of red" in text
    assert "  3: (bid 3)   4: (bid 4)   5: (bid 5)\n" in text


def test_a_player_without_a_choice_is_not_asked():
    text = run("play", "othello4", "random", "human", "--seed", 5, input="1\n" * 5).stdout
    assert "white can only play (place 4 4)\n12. white (place 4 4)\n" in text
    assert "The match is over: black 50, white 50" in text
    assert text.count("move of white") == 5


@pytest.mark.parametrize("text", ["", "\n\n", "1 1", "1 1\n"])
def test_input_that_ends(text):
    shown = run("play", "tictactoe", "human", "egreedy", input=text).stdout
    assert shown.endswith("\nthe input has ended, so the match ends, too\n")
    assert "mean goal" not in shown


def test_matches_that_were_over_when_the_input_ended_count(tmp_path):
    file = tmp_path / "records.jsonl"
    moves = "1 1\n2 1\n1 2\n2 2\n1 3\n1 1\n"
    text = run("play", "tictactoe", "human", "human", "--matches", 3, "--records", file, input=moves).stdout
    assert text.count("\nmatch 2 of 3\n") == 1
    assert "\n1 match (1 terminal) of 5 to 5 plies" in text
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["gamelore"]["players"] == ["human", "human"]


def test_a_match_without_an_end_leaves_older_records(tmp_path):
    file = tmp_path / "records.jsonl"
    file.write_text("older")
    run("play", "tictactoe", "human", "human", "--records", file, input="1 1\n")
    assert file.read_text() == "older"
    (folder := tmp_path / "folder").mkdir()
    run("play", "tictactoe", "human", "human", "--records", folder, input="1 1\n")
    assert not [*folder.iterdir()]
    told = run("play", "tictactoe", "random", "random", "--records", tmp_path / "table.csv", code=2).stderr
    assert "expected a file for match records" in told


def test_with_json_the_conversation_is_on_standard_error():
    result = run("play", "tictactoe", "human", "human", "--json", input="1 1\n2 1\n1 2\n2 2\n1 3\n")
    assert json.loads(result.stdout)["players"][0]["goals"] == {"100": 1}
    assert FIRST_BOARD in result.stderr
    result = run("play", "tictactoe", "human", "human", "--json", input="")
    assert json.loads(result.stdout) == {"game": "tictactoe", "matches": 0}


def test_what_is_no_move_is_asked_again():
    garbage = b"9 9\n\xff\x00\x1b[31m\n\n99\n(((\n" + b"x" * 100_000 + b"\nmark\n?\n5\n"
    text = run("play", "tictactoe", "human", "human", input=garbage).stdout
    assert "this is not a legal move: '9 9'\n" in text
    assert r"this is not a legal move: '\ufffd\x00\x1b[31m'" in text
    assert f"this is not a legal move: '{'x' * 40}'\n" in text
    assert "this is not a legal move: '99'\n" in text
    assert "this can mean several moves:\n  1: (mark 1 1)" in text
    assert "Type the number of a move, the move, or a part of the move" in text
    assert "\n1. xplayer (mark 2 2)\n" in text
    assert not set(text) - {"\n"} - set(map(chr, range(32, 127)))


def test_others_play_as_in_any_series_of_the_seed():
    """The human repeats what the random player of the same seed does, match after match."""
    records = play_matches(rulesheets.load("connect3"), ["random", "egreedy"], 3, seed=4)
    typed = "".join(f"{moves[0]}\n" for record in records for moves in record.moves if moves[0] != "noop")
    result = run("play", "connect3", "human", "egreedy", "--matches", 3, "--seed", 4, "--json", input=typed)
    counts = json.loads(result.stdout)["players"][0]["goals"]
    goals = [record.goals[0] for record in records]
    assert counts == {str(goal): goals.count(goal) for goal in goals}
    assert [line for line in result.stderr.splitlines() if line.startswith("match ")] == [
        "match 2 of 3",
        "match 3 of 3",
    ]


def test_an_interrupt_is_polite():
    code = "from gamelore.cli import main; main()"
    command = [sys.executable, "-c", code, "play", "tictactoe", "human", "egreedy"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        shown = b""
        while b"for help" not in shown:
            shown += (more := process.stdout.read1())
            assert more, "it has left by itself"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"interrupted; no record was written\n")


def test_a_closed_standard_input_is_the_end_of_it():
    code = "import sys; sys.stdin = None; from gamelore.cli import main; main()"
    command = [sys.executable, "-c", code, "play", "tictactoe", "human", "egreedy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("the input has ended, so the match ends, too\n")


def test_human_is_one_of_the_players():
    assert "human" in run("players").stdout
    assert run("play", "tictactoe", "humn", "random", code=2).stderr.endswith("did you mean human?\n")
    assert type(player("human")).__name__ == "Human"


MARKS = [f"(mark {x} {y})" for x in (1, 2, 3) for y in (1, 2, 3)]


@pytest.mark.parametrize(
    ("moves", "text", "found"),
    [
        (MARKS, "5", ["(mark 2 2)"]),
        (MARKS, "(MARK 2  2)", ["(mark 2 2)"]),
        (MARKS, "mark 2 2", ["(mark 2 2)"]),
        (MARKS, "2 2", ["(mark 2 2)"]),
        (MARKS, "rk 3 3", ["(mark 3 3)"]),
        (MARKS, "2 3)", ["(mark 2 3)"]),
        (MARKS, "10", []),
        (MARKS, "noop", []),
        (["(drop 2)", "(drop 4)", "swap"], "4", ["(drop 4)"]),
        (["(drop 2)", "(drop 4)", "swap"], "1", []),
        (["(drop 2)", "(drop 4)", "swap"], "sw", ["swap"]),
        (["(drop 12)", "(drop 1)"], "1", ["(drop 1)"]),
        (["7", "3"], "7", ["7"]),
        (["(f a)", "(g (f a))"], "(f a)", ["(f a)"]),
        (["(f a)", "(g (f a))"], "g", ["(g (f a))"]),
        (["(f a)", "(f (a))"], "f a", ["(f a)", "(f (a))"]),
        (["passage", "pass"], "pass", ["pass"]),
        (["passage", "pass"], "PAS", ["passage", "pass"]),
        (["(move e2 e4)", "(move e2 e3)"], "e4", ["(move e2 e4)"]),
        (["(move c1 c2)"], "1", ["(move c1 c2)"]),
        (["+", "()"], "()", []),
    ],
)
def test_what_a_text_means(moves, text, found):
    menu = Menu(moves)
    assert [menu.moves[place] for place in menu.find(text)] == found


def test_a_long_menu_is_cut():
    menu = Menu([f"(move {x} {y})" for x in range(40) for y in range(40)])
    assert len(menu.lines()) == 12
    assert menu.lines()[-1] == "  ... (1600 moves; type ? to see all of them)"
    assert sum(line.count("move") for line in menu.lines(most=1600)) == 1600


@settings(deadline=None)
@given(st.text())
def test_any_text_means_moves_of_the_menu(text):
    assert set(Menu(MARKS).find(text)) <= set(range(9))
