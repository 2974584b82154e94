"""What the child process of the page Rulesheets answers: findings, layouts, series of boards, and reports."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gamelore.errors import GDLSyntaxError, IllegalMoveError
from gamelore.gdl.lint import Finding
from gamelore.rulesheets import path
from gamelore.web.children import sheet_worker
from gamelore.web.children.sheet_worker import MOST_BOARDS, SheetWorker
from gamelore.web.service.sheet_draft import TEMPLATE

TEXT = TEMPLATE.read_text(encoding="utf-8")
ENDLESS = path("tictactoe").read_text(encoding="utf-8").replace("(<= terminal (not open))\n", "")
NUMBERS = " ".join(f"(n {number})" for number in range(200))
EXPLODING = f"{TEXT}{NUMBERS}\n(<= (next (boom ?a ?b ?c ?d)) (n ?a) (n ?b) (n ?c) (n ?d))\n"
HOSTILE = "<svg/onload=pwned>"


@pytest.fixture(scope="module")
def worker() -> SheetWorker:
    return SheetWorker(memory=3 << 30, prepare_seconds=60)


def sent(answer: Any) -> Any:
    """An answer after its way through the pipe."""
    return json.loads(json.dumps(answer))


def test_a_new_sheet_is_a_whole_game_in_good_layout(worker: SheetWorker) -> None:
    assert worker.check(TEXT) == {"findings": [], "is_playable": True}
    played = worker.check_by_play(TEXT, "seven", seconds=20, load_seconds=10)
    assert played["findings"] == []
    assert played["played"].startswith("seven: native engine")
    assert "visited all 14 reachable states" in played["played"]
    assert worker.format(TEXT) == TEXT


def test_mistakes_in_a_text_have_a_place_a_rule_and_a_remedy(worker: SheetWorker) -> None:
    answer = sent(worker.check(TEXT + "(<= (legal first (jump ?far)) (true (turn first)))\n(goal first"))
    unsafe, unclosed = answer["findings"]
    lines = TEXT.count("\n")
    assert not answer["is_playable"]
    assert (unsafe["code"], unsafe["severity"]) == ("unsafe-variable", "error")
    assert (unsafe["line"], unsafe["column"]) == (lines + 1, 24)
    assert unsafe["rule"] == "(<= (legal first (jump ?far)) (true (turn first)))"
    assert "such as (some_relation ?far)" in unsafe["remedy"]
    assert (unclosed["code"], unclosed["line"], unclosed["column"]) == ("syntax", lines + 2, 1)
    assert unsafe["witness"] is unsafe["num_moves"] is None


def test_a_text_is_never_the_name_of_a_file(worker: SheetWorker, tmp_path: Path) -> None:
    file = tmp_path / "secret.kif"
    file.write_text(TEXT)
    for answer in (worker.check(str(file)), worker.check_by_play(str(file), "game", 0.1, 5)):
        assert "missing" in {finding["code"] for finding in answer["findings"]}  # the file has all that a game needs


def test_a_sheet_with_errors_is_not_played(worker: SheetWorker) -> None:
    played = worker.check_by_play("(role a)", "game", seconds=1, load_seconds=5)
    assert played["played"] == "game: not played, because it has errors that must be corrected first"


def test_what_explodes_is_a_finding_that_names_the_limit_and_the_relation(worker: SheetWorker, monkeypatch) -> None:
    monkeypatch.setattr(sheet_worker, "PLAY_LIMITS", replace(sheet_worker.PLAY_LIMITS, literals=20_000))
    assert worker.check(EXPLODING)["is_playable"]
    (finding,) = worker.check_by_play(EXPLODING, "boom", seconds=1, load_seconds=2)["findings"]
    assert (finding["severity"], finding["code"]) == ("error", "unplayable")
    assert "the largest relation is `next`" in finding["message"]
    assert finding["remedy"]


def test_the_moves_that_lead_to_a_finding_are_drawn(worker: SheetWorker) -> None:
    findings = sent(worker.check_by_play(ENDLESS, "endless", seconds=20, load_seconds=10))["findings"]
    moves = next(finding["witness"] for finding in findings if finding["code"] == "no-legal-move")
    drawn = sent(worker.series(ENDLESS, "endless", moves))
    assert len(moves) == 9  # all cells are full
    assert len(drawn) == MOST_BOARDS
    assert drawn[0]["caption"] == "start"
    assert [entry["caption"].partition(".")[0] for entry in drawn[1:]] == [str(ply) for ply in range(3, 10)]
    assert drawn[-1]["caption"] == f"9. xplayer {moves[-1][0]}, oplayer {moves[-1][1]}"
    assert all(entry["svg"].startswith("<svg ") for entry in drawn)
    assert drawn[0]["svg"].count("<circle") == 0
    assert drawn[-1]["svg"].count("<circle") == 1  # the last move is marked


def test_a_short_way_is_drawn_whole(worker: SheetWorker) -> None:
    moves = [["(take 3)", "wait"], ["wait", "(take 2)"]]
    captions = [entry["caption"] for entry in worker.series(TEXT, "seven", moves)]
    assert captions == ["start", "1. first (take 3), second wait", "2. first wait, second (take 2)"]
    assert len(worker.series(TEXT, "seven", [])) == 1
    with pytest.raises(IllegalMoveError):
        worker.series(TEXT, "seven", [["(take 4)", "wait"]])


def test_names_are_escaped_in_pictures(worker: SheetWorker) -> None:
    text = TEXT.replace("stones", HOSTILE)
    (drawn,) = worker.series(text, HOSTILE, [])
    assert HOSTILE not in drawn["svg"]
    assert "&lt;svg/onload=pwned&gt;" in drawn["svg"]


def test_long_ways_are_left_out_of_an_answer(monkeypatch) -> None:
    monkeypatch.setattr(sheet_worker, "MOST_WITNESS", 4)
    finding = Finding("warning", "no-end", "a match may never end", None, 1, 1, "", "count the moves")
    ways = [(("a",),) * number for number in (3, 2, 1)]
    rows = sheet_worker._rows([replace(finding, witness=way) for way in ways] + [finding])
    assert [row["witness"] and len(row["witness"]) for row in rows] == [3, None, 1, None]
    assert [row["num_moves"] for row in rows] == [3, 2, 1, None]


def test_formatting_keeps_comments_and_refuses_what_is_no_rulesheet(worker: SheetWorker) -> None:
    assert worker.format("; one\n(role   a)  ; two\n\n\n\n(role b)") == "; one\n(role a)  ; two\n\n(role b)\n"
    with pytest.raises(GDLSyntaxError):
        worker.format("(role a")


def reported(worker: SheetWorker, text: str, name: str) -> dict[str, Any]:
    """The outcome of a report."""
    worker.begin_report(text, name, matches=6, simulations=10)
    while (progress := sent(worker.report_progress()))["outcome"] is None:
        assert progress["stage"]
        time.sleep(0.05)
    return progress["outcome"]


def test_a_report_tells_balance_length_choices_and_dead_rules(worker: SheetWorker) -> None:
    never = "(<= (legal first (take 9)) (true (stones 9)))"
    report = reported(worker, TEXT + never, HOSTILE)["ok"]
    assert report["headline"] == f"{HOSTILE}: with best play first 100, second 0"
    assert report["columns"][:4] == ["players", "matches", "goal of first", "goal of second"]
    assert [row[:2] for row in report["rows"]] == [["random players", "6"], ["UCT players", "6"], ["best play", "-"]]
    assert all(len(row) == len(report["columns"]) for row in report["rows"])
    assert report["rows"][2][2:4] == ["100.0", "0.0"]
    notes = dict(map(tuple, report["notes"]))
    assert notes["Solved"] == "yes: best play ends with first 100, second 0 after 3 plies; 14 positions"
    assert notes["Ends"] == "every match ended"
    assert notes["Rules without effect"].startswith("1 rule never fired in ")
    assert report["dead_rules"] == [never]
    assert report["figure"].lstrip().startswith("<?xml")
    assert report["html"].startswith("<!doctype html>")
    assert HOSTILE not in report["html"]


def test_a_report_on_a_text_with_errors_tells_the_place(worker: SheetWorker) -> None:
    outcome = reported(worker, "(role a)\n(goal a", "game")
    assert outcome["error"] == "GDLSyntaxError"
    assert (outcome["line"], outcome["column"]) == (2, 1)
