"""The command line: solve, and the players and figures that come from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run, run_json
from gamelore.solver import solution as solving
from gamelore.solver.statespace import fewest_positions
from walks import Walk, drawn_walk

RING = Walk({0: [1, 3], 1: [2], 2: [0]}, {0: 0, 1: 1, 2: 0}, {3: 30})


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No test sees the solutions of another one, and a game that is too large is refused as soon as that is known."""
    monkeypatch.setattr(solving, "folder", lambda: tmp_path / "compiled")
    monkeypatch.setattr(solving, "fewest_positions", lambda turns, fits, patience: fewest_positions(turns, fits, 0.0))
    return tmp_path / "solved"


def test_solve_tells_everything_as_json() -> None:
    report = run_json("solve", "losetictactoe")
    assert report["values"] == {"xplayer": 50, "oplayer": 50}
    assert (report["positions"], report["classes"], report["symmetries"]) == (5478, 765, 8)
    assert [move["move"] for move in report["first_moves"] if move["best"]] == ["(mark 2 2)"]
    assert report["best_line"]["end"] == "terminal"
    assert len(report["best_line"]["moves"]) == 9
    assert (report["distance"], report["left_out"]) == (-1, [])


def test_solve_tells_it_in_words() -> None:
    shown = run("solve", "othello4").stdout
    assert "white wins under best play, in 12 plies." in shown
    assert "best play, to the end of the match:" in shown
    assert "62,789 positions" in shown
    assert "counter" not in shown
    assert "A draw under best play." in run("solve", "tictactoe").stdout
    assert "player can get 100, in 13 plies." in run("solve", "pegsolitaire").stdout


def test_solve_tells_goals_between_a_win_and_a_draw(tmp_path: Path) -> None:
    sheet = tmp_path / "walk.kif"
    sheet.write_text(Walk({0: [1, 2]}, {0: 0}, {1: 30, 2: 80}).text)
    assert "white gets 80 and black gets 20 under best play, in 1 ply." in run("solve", sheet).stdout


def test_solve_says_what_was_left_out(tmp_path: Path) -> None:
    sheet = tmp_path / "ring.kif"
    sheet.write_text(RING.counted(40))
    shown = run("solve", sheet).stdout
    assert (
        "This is the value of the game without its step counter, (step 0) to (step 40). Without the counter, a match "
        "may be endless" in shown
    )
    assert "best play, until a position occurs again:" in shown
    assert len(run_json("solve", sheet)["left_out"]) == 41


def test_a_second_call_is_answered_from_the_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    first = run_json("solve", "tictactoe")
    monkeypatch.setattr(solving, "expand", None)
    assert run_json("solve", "tictactoe") == first
    assert len(list(folder.iterdir())) == 1


def test_without_symmetry_the_same_values() -> None:
    folded, plain = run_json("solve", "tictactoe"), run_json("solve", "tictactoe", "--no-symmetry")
    assert plain["classes"] == plain["positions"] == folded["positions"]
    assert plain["first_moves"] == folded["first_moves"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("connectfour", "--memory", "0.5"), 1, "0.5 GiB, got connectfour"),
        (("goofspiel",), 1, "one role at a time"),
        (("tictactoe3p",), 1, "one or two roles"),
        (("tictactoe", "--memory", "0"), 2, "expected a size above 0"),
        (("tictactoe", "--memory", "inf"), 2, "expected a size above 0"),
        (("tictactoe", "--memory", "nan"), 2, "expected a size above 0"),
        (("tictactow",), 2, "did you mean tictactoe"),
    ],
)
def test_solve_refuses(arguments: tuple[str, ...], code: int, message: str, folder: Path) -> None:
    result = run("solve", *arguments, code=code)
    assert message in result.stderr
    assert result.stdout == ""
    assert not folder.exists()


def test_play_shows_regret() -> None:
    arguments = ("play", "losetictactoe", "perfect", "random", "--matches", "50", "--regret")
    result = run_json(*arguments)
    assert result["players"][0]["regret"] == 0
    assert result["players"][1]["regret"] > 0
    shown = run(*arguments).stdout
    assert "regret per move" in shown
    assert "regret" not in run_json("play", "tictactoe", "random", "random")["players"][0]


def test_players_from_the_solution_are_listed_and_play(tmp_path: Path) -> None:
    listed = {player["name"]: player for player in run_json("players")}
    assert listed["xreasonable"]["options"] == ["x", "own", "best", "choice", "hash_key"]
    assert {"perfect", "reasonable", "expert", "novice"} <= set(listed)
    sheet = tmp_path / "walk.kif"
    sheet.write_text(drawn_walk(3).counted(30))
    result = run_json("play", sheet, "expert", "novice:own=avoid", "--matches", "20")
    assert result["ends"] == {"terminal": 20}
    assert result["left_out"][-1] == "(step 30)"
    assert (
        "best play and regret are computed for the game without its step counter"
        in run("play", sheet, "perfect", "random").stdout
    )


def test_regret_in_a_game_that_cannot_be_solved() -> None:
    result = run("play", "goofspiel", "random", "random", "--regret", code=1)
    assert "one role at a time" in result.stderr
