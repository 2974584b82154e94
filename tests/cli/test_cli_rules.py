"""The commands for rulesheets and positions: fmt, show, perft, bench."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import run, run_json
from gamelore import rulesheets
from gamelore.cli import bench_command
from gamelore.gdl.limits import Limits

UNTIDY = "; a game\n(role   x)\n\n\n(init (p 1)) ; one\n"
TIDY = "; a game\n(role x)\n\n(init (p 1))  ; one\n"
BAD = "(role x)\n(init (p 1)\n"


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "mygame.kif"
    path.write_text(UNTIDY)
    return path


# ---- fmt --------------------------------------------------------------------------------------------------------


def test_fmt_writes_what_changes_and_says_so(sheet: Path) -> None:
    tidy = sheet.with_name("tidy.kif")
    tidy.write_text(TIDY)
    assert run("fmt", sheet, tidy).stdout == f"formatted {sheet}\n1 formatted, 1 already formatted\n"
    assert sheet.read_text() == tidy.read_text() == TIDY
    assert run("fmt", sheet, tidy).stdout == "2 already formatted\n"
    assert sorted(place.name for place in sheet.parent.iterdir()) == ["mygame.kif", "tidy.kif"]


def test_fmt_check_and_diff_write_nothing(sheet: Path) -> None:
    assert run("fmt", sheet, "--check", code=1).stdout == f"would format {sheet}\n1 would change\n"
    difference = run("fmt", sheet, "--diff").stdout
    assert f"--- {sheet}\n+++ {sheet}\n" in difference
    assert "-(role   x)\n" in difference
    assert "+(role x)\n" in difference
    assert run("fmt", sheet, "--check", "--diff", code=1).stdout == difference
    assert run("fmt", sheet, "--stdout").stdout == TIDY
    assert sheet.read_text() == UNTIDY


def test_a_diff_of_a_text_without_its_last_line_end(sheet: Path) -> None:
    sheet.write_text("(role x)")
    assert run("fmt", sheet, "--diff").stdout.splitlines()[-3:] == [
        "-(role x)",
        r"\ No newline at end of file",
        "+(role x)",
    ]


def test_fmt_takes_standard_input() -> None:
    assert run("fmt", "-", input=UNTIDY).stdout == TIDY
    assert run("fmt", "-", "--check", input=TIDY).stdout == ""
    assert run("fmt", "-", "--check", input=UNTIDY, code=1).stdout == "would format -\n"
    assert "<text>:2:1: this '(' is never closed" in run("fmt", "-", input=BAD, code=1).stderr


def test_a_bad_file_is_left_alone_and_stops_no_other(sheet: Path) -> None:
    bad, missing = sheet.with_name("bad.kif"), sheet.with_name("mygaem.kif")
    bad.write_text(BAD)
    result = run("fmt", bad, sheet, code=1)
    assert result.stdout == f"formatted {sheet}\n1 formatted, 1 not formatted\n"
    assert result.stderr.startswith(f"error: {bad}:2:1: this '(' is never closed\n")
    assert (bad.read_text(), sheet.read_text()) == (BAD, TIDY)
    result = run("fmt", missing, sheet.parent, sheet, code=2)
    assert f"did you mean {sheet}?" in result.stderr
    assert f"name the files in it, for example {sheet.parent / '*.kif'}" in result.stderr
    assert result.stdout == "1 already formatted, 2 not formatted\n"


def test_fmt_as_json(sheet: Path) -> None:
    bad = sheet.with_name("bad.kif")
    bad.write_bytes(b"(role x) ; caf\xe9\n(caf\xe9")
    first, second = run_json("fmt", sheet, bad, "--diff", code=1)
    assert (first["path"], first["changed"], first["error"]) == (str(sheet), True, None)
    assert first["diff"] == run("fmt", sheet, "--diff").stdout
    assert (second["changed"], second["diff"]) == (False, None)
    assert second["error"].startswith(f"{bad}:2:1: ")
    assert [described["text"] for described in run_json("fmt", sheet, "--stdout")] == [TIDY]


def test_bytes_modes_and_links_stay_as_they_are(sheet: Path) -> None:
    sheet.write_bytes(b"\xef\xbb\xbf; caf\xe9 \r\n(role   x)\r\n")
    sheet.chmod(0o640)
    link = sheet.with_name("link.kif")
    link.symlink_to(sheet)
    run("fmt", link)
    assert link.is_symlink()
    assert sheet.read_bytes() == b"; caf\xe9\r\n(role x)\r\n"
    assert sheet.stat().st_mode & 0o777 == 0o640
    sheet.write_bytes(b"(role   x) ; caf\xe9")
    assert run("fmt", sheet, "--stdout").stdout_bytes == b"(role x)  ; caf\xe9\n"
    assert run_json("fmt", sheet, "--stdout")[0]["text"] == "(role x)  ; caf\N{REPLACEMENT CHARACTER}\n"


def test_a_file_that_cannot_be_written_is_an_error(sheet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "expected a rulesheet that can be written, got: [Errno 13]" in run("fmt", sheet, code=1).stderr
    assert sheet.read_text() == UNTIDY


# ---- show -------------------------------------------------------------------------------------------------------

EMPTY_BOARD = "(cell x y *)\n3 | . . .\n2 | . . .\n1 | . . .\n  +------\n    1 2 3\n. = b\n"


def test_show_begins_at_the_first_state() -> None:
    text = run("show", "tictactoe").stdout
    assert text.startswith(f"tictactoe: xplayer, oplayer; native engine\n\n{EMPTY_BOARD}\n(control xplayer)\n")
    assert "xplayer has 9 legal moves:\n  (mark 1 1)  (mark 1 2)" in text
    assert "oplayer can only play noop\n" in text
    assert text.endswith("The match is not over; goals here: xplayer 50, oplayer 50\n")


def test_show_the_state_alone() -> None:
    text = run("show", "tictactoe", "--state").stdout
    assert text == f"tictactoe: xplayer, oplayer; native engine\n\n{EMPTY_BOARD}\n(control xplayer)\n"


def test_show_after_moves() -> None:
    moves = ("--play", "(mark 1 1)", "--play", "noop (mark 2 2)", "--play", "(mark 1 2)", "--play", "(mark 2 1)")
    text = run("show", "tictactoe", *moves, "--state", "--matrix").stdout
    assert "; after 4 plies, the last is noop (mark 2 1)\n" in text
    assert "1 | x x .\n2 | o o .\n3 | . . .\n" in text
    shown = run_json("show", "tictactoe", *moves, "--play", "( MARK 1 3 )")
    assert shown["plies"][-1] == ["(mark 1 3)", "noop"]
    assert (shown["terminal"], shown["goals"]) == (True, {"xplayer": 100, "oplayer": 0})
    assert shown["legal"] == {"xplayer": [], "oplayer": []}
    assert "The match is over; goals: xplayer 100" in run("show", "tictactoe", *moves, "--play", "(mark 1 3)").stdout


def test_show_from_facts() -> None:
    facts = "(cell 1 1 x) (true (cell 2 1 o)) (control oplayer)"
    shown = run_json("show", "tictactoe", "--facts", facts, "--engine", "reasoner")
    assert shown["facts"] == ["(cell 1 1 x)", "(cell 2 1 o)", "(control oplayer)"]
    assert "1 | x o\n" in shown["boards"][0]
    assert shown["engine"] == "reasoner"


def test_random_plies_depend_on_the_seed_and_stop_at_the_end() -> None:
    first, again, other = (
        run_json("show", "connectfour", "--random", 8, "--seed", seed)["plies"] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first) == 8
    shown = run_json("show", "tictactoe", "--random", 100)
    assert shown["terminal"]
    assert 5 <= len(shown["plies"]) <= 9


def test_many_moves_are_folded(tmp_path: Path) -> None:
    assert run("show", "tictactoe3p").stdout == run("show", "tictactoe3p", "--all").stdout
    sheet = tmp_path / "many.kif"
    sheet.write_text(
        "".join(f"(init (n {number}))\n" for number in range(100))
        + "(role r) (<= (legal r (take ?n)) (true (n ?n))) (goal r 0) (<= terminal (not (true (n 1))))"
    )
    few, every = run("show", sheet).stdout, run("show", sheet, "--all").stdout
    assert "r has 100 legal moves:\n" in few
    assert "  ... (--all shows all moves)\n" in few
    assert few.count("(take ") < every.count("(take ") == 100


def test_a_stuck_position_is_called_so(tmp_path: Path) -> None:
    stuck = tmp_path / "stuck.kif"
    stuck.write_text("(role r) (init (at a)) (<= (legal r go) (true (at b))) (goal r 5) (<= terminal (true (at c)))")
    text = run("show", stuck, "--engine", "reasoner").stdout
    assert text.endswith("The match is stuck, because r has no legal move; goals here: r 5\n")


def test_show_refuses_what_cannot_be(tmp_path: Path) -> None:
    assert "did you mean tictactoe" in run("show", "tictactow", code=2).stderr
    assert "expected a legal move of xplayer" in run("show", "tictactoe", "--play", "(mark 4 4)", code=2).stderr
    assert "expected 2 moves" in run("show", "tictactoe", "--play", "a b c", code=2).stderr
    assert "got a rule in" in run("show", "tictactoe", "--facts", "(<= a b)", code=2).stderr
    assert "this '(' is never closed" in run("show", "tictactoe", "--facts", "(cell 1", code=2).stderr
    assert "expected facts that tictactoe can reach" in run("show", "tictactoe", "--facts", "(c 1)", code=2).stderr
    empty = tmp_path / "empty.kif"
    empty.touch()
    assert "expected at least one rule for 'role'" in run("show", empty, code=1).stderr


# ---- perft ------------------------------------------------------------------------------------------------------


def test_perft_counts_depth_by_depth() -> None:
    lines = run("perft", "connect3", "--depth", 4).stdout.splitlines()
    assert lines[0].split() == ["depth", "sequences", "complete", "positions", "CPU", "s", "sequences/s"]
    assert [line.split()[:2] for line in lines[1:]] == [["0", "1"], ["1", "5"], ["2", "25"], ["3", "125"], ["4", "625"]]


def test_perft_ends_with_the_matches() -> None:
    assert run("perft", "tictactoe").stdout.splitlines()[-1] == "all matches have ended: 255,168"
    counted = run_json("perft", "tictactoe", "--depth", 20)
    assert [row["depth"] for row in counted["depths"]] == list(range(10))
    assert {row["depth"]: row["sequences"] for row in counted["depths"][1:]} == rulesheets.perft("tictactoe")
    assert sum(row["complete"] for row in counted["depths"]) == rulesheets.counts("tictactoe").complete
    assert counted["engine"] == "native"


def test_perft_tells_matches_that_ended_from_stuck_ones(tmp_path: Path) -> None:
    sheet = tmp_path / "ways.kif"
    sheet.write_text(
        "(role r) (init (at a)) (arc a end) (arc a trap) (<= (legal r (to ?y)) (true (at ?x)) (arc ?x ?y))\n"
        "(<= (next (at ?y)) (does r (to ?y))) (<= terminal (true (at end))) (goal r 1)"
    )
    assert (
        run("perft", sheet)
        .stdout.splitlines()[-1]
        .startswith("no match continues: 1 have ended, in the others a role has no legal move")
    )
    assert run("perft", sheet, "--depth", 1).stdout.splitlines()[-1].split()[:3] == ["1", "2", "1"]


def test_a_game_that_will_be_slow_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rulesheets,
        "load",
        lambda name, engine, limits: rulesheets.make(*rulesheets.read(name), engine, Limits(literals=50)),
    )
    told = run("perft", "tictactoe", "--depth", 1).stderr
    assert told.startswith("tictactoe plays on the reasoner, which is slow: expected grounding to end within 50")
    assert run("perft", "tictactoe", "--depth", 1, "--engine", "reasoner").stderr == ""


def test_perft_on_the_other_engine() -> None:
    counted = run_json("perft", "tictactoe", "--depth", 2, "--engine", "reasoner")
    assert (counted["engine"], [row["sequences"] for row in counted["depths"]]) == ("reasoner", [1, 9, 72])


def test_an_interrupted_perft_says_what_was_counted() -> None:
    process = start("perft", "connectfour")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(7)]
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    depth = int((lines + rest.splitlines())[-1].split()[0])
    assert depth >= 5
    assert errors == f"interrupted; all depths up to {depth} were counted\n"


def start(*arguments: str) -> subprocess.Popen[str]:
    """A command as a process of its own."""
    code = "from gamelore.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_memory_that_is_not_there_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def levels(game: object, progress: object) -> Any:
        yield from ()
        raise MemoryError

    monkeypatch.setattr("gamelore.analysis.perft.levels", levels)
    assert "expected enough memory for the positions of depth 0" in run("perft", "tictactoe", code=1).stderr


# ---- bench ------------------------------------------------------------------------------------------------------


def test_bench_measures_each_and_goes_on_after_a_failure(tmp_path: Path) -> None:
    bad = tmp_path / "bad.kif"
    bad.write_text(BAD)
    result = run("bench", bad, "tictactoe", "--seconds", 0.01, "--json", code=1)
    failed, measured = json.loads(result.stdout)
    assert failed["error"].startswith(f"{bad}:2:1: ")
    assert result.stderr == f"error: {failed['error']}\n"
    assert (measured["game"], measured["engine"], measured["error"]) == ("tictactoe", "native", None)
    assert (measured["num_facts"], measured["num_actions"]) == (29, 20)
    assert measured["playouts_per_s"] == pytest.approx(measured["num_playouts"] / measured["cpu_s"])
    assert all(measured[name] > 0 for name in ("start_s", "cached_start_s", "compile_s", "num_gates", "peak_mb"))


def test_bench_as_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: dict[str, Any], cache: str, limit: float) -> dict[str, Any]:
        figures = dict.fromkeys(bench_command.COLUMNS, 1234.5) | {
            "engine": "native",
            "num_gates": None,
            "start_s": 0.0123,
        }
        return {**request, **figures, "error": "too slow" if request["game"] == "bad" else None}

    monkeypatch.setattr(bench_command, "_in_fresh_process", answer)
    monkeypatch.setattr(bench_command, "rulesheet_path", Path)
    result = run("bench", "games/chess.kif", "bad", "tictactoe", code=1)
    header, first, second = result.stdout.splitlines()
    assert header.split()[:4] == ["game", "engine", "playouts/s", "steps/s"]
    assert first.split() == ["chess", "native", *["1,234"] * 5, "-", "0.0123", "0.0123", "1,234", "1,234"]
    assert len(header) == len(first) == len(second)
    assert result.stderr == "error: bad: too slow\n"


def test_bench_measures_nothing_where_a_game_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(bench_command, "_in_fresh_process")
    result = run("bench", "tictactoe", "conect3", code=2)
    assert result.stdout == ""
    assert "got 'conect3'; did you mean connect3" in result.stderr


def test_bench_gives_up_what_takes_too_long_and_what_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_command, "CHILD", "import time; time.sleep(60)")
    (row,) = run_json("bench", "tictactoe", "--limit", 1, code=1)
    assert row["error"] == (
        "expected to measure the game within 1 s, but it took longer; raise --limit, or lower --seconds"
    )
    monkeypatch.setattr(bench_command, "CHILD", "import sys; sys.exit('out of luck')")
    (row,) = run_json("bench", "tictactoe", code=1)
    assert row["error"] == "expected an answer from the measuring process, got exit code 1 and: out of luck"


def test_an_interrupted_bench_shows_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: dict[str, Any], cache: str, limit: float) -> dict[str, Any]:
        if request["game"] == "connect3":
            raise KeyboardInterrupt
        return {**request, "error": None}

    monkeypatch.setattr(bench_command, "_in_fresh_process", answer)
    result = run("bench", "tictactoe", "connect3", "othello4", "--json", code=130)
    assert [row["game"] for row in json.loads(result.stdout)] == ["tictactoe"]
    assert result.stderr == "interrupted; 1 of 3 games were measured\n"
