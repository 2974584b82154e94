"""`gamelore.report`, and the rules that never fire."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gamelore
from commands import run, run_json
from gamelore import GameloreError, GameReport

UNFAIR = """
(role a) (role b) (init (step 0)) (succ 0 1) (succ 1 2)
(<= (legal a win) (true (step ?n))) (<= (legal a lose) (true (step ?n)))
(<= (legal b wait) (true (step ?n))) (<= (legal b hope) (true (step 7)))
(<= (next (won)) (does a win)) (<= (next (step ?m)) (true (step ?n)) (succ ?n ?m))
(<= terminal (true (step 2)))
(<= (goal a 100) (true won)) (<= (goal b 0) (true won))
(<= (goal a 0) (not (true won))) (<= (goal b 100) (not (true won)))
"""


@pytest.fixture(scope="module")
def unfair() -> GameReport:
    return gamelore.report(UNFAIR, matches=40, simulations=60)


def test_each_role_that_chooses_counts_the_same() -> None:
    """In the first ply a has three moves and b two, in the second one a has two, and b waits."""
    report = gamelore.report(
        f"{UNFAIR}(<= (legal a pass) (true (step 0))) (<= (legal b hope) (true (step 0)))", matches=5, simulations=10
    )
    assert report.choices.tolist() == [2.5, 2.0]
    assert report.mean_choices == pytest.approx(7 / 3)


def test_the_balance_of_an_unfair_game(unfair: GameReport) -> None:
    """Role a decides alone: it wins in the second of two plies, whatever it did in the first."""
    assert unfair.solved is not None
    assert unfair.solved.values == {"a": 100, "b": 0}
    assert unfair.headline == "unnamed: with best play a 100, b 0"
    random, uct, perfect = unfair.rows
    assert (uct["goal_a"], uct["draws"], uct["decisive"], uct["plies"]) == (100.0, 0.0, 1.0, 2.0)
    assert random["interval_a"][0] < 50 < random["interval_a"][1]
    assert perfect["goal_b"] == 0
    assert unfair.choices.tolist() == [2.0, 2.0]
    assert unfair.mean_choices == 2.0


def test_rules_that_never_fire(unfair: GameReport) -> None:
    assert unfair.dead_rules == ("(<= (legal b hope) (true (step 7)))",)
    assert unfair.num_sampled == 80 + 160
    assert "1 rule of the sheet never fired in 240 positions of these matches:" in str(unfair)


def test_every_rule_of_tictactoe_fires() -> None:
    told = gamelore.report("tictactoe", matches=60, simulations=20)
    assert told.dead_rules == ()
    assert told.headline == "tictactoe: with best play xplayer 50, oplayer 50"
    assert told.choices[0] == 9.0
    assert 0 < told.draws("random") < 0.4


def test_a_game_that_cannot_be_solved_says_so() -> None:
    told = gamelore.report(gamelore.load("goofspiel"), matches=30, simulations=10)
    assert told.solved is None
    assert "expected only one role at a time to have a choice" in told.not_solved
    assert "clear advantage between uct players: red " in told.headline


def test_puzzles_have_a_report() -> None:
    told = gamelore.report("pegsolitaire", matches=20, simulations=20)
    assert told.headline.startswith("pegsolitaire is a puzzle; uct gets ")
    assert told.draws("random") == 0.0


def test_a_sheet_with_errors_is_refused() -> None:
    with pytest.raises(GameloreError, match="expected a sheet that can be played: it has errors that must be"):
        gamelore.report("(role a)\n(<= (next ?x) (true (cell ?y)))")


def test_the_page_is_free_of_names_that_are_elements(tmp_path: Path) -> None:
    evil = UNFAIR.replace(" a ", " <script>x</script> ").replace("role a", "role <script>x</script>")
    told = gamelore.report(evil, matches=4, simulations=5)
    page = tmp_path / "page.html"
    told.save(page)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;x&lt;/script&gt;" in text
    body = text.partition("<body>")[2].rpartition("</body>")[0]
    assert body.count("<svg") == 2
    for picture in body.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + picture.split("</svg>")[0] + "</svg>")


def test_reports_are_pickled_and_saved(unfair: GameReport, tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(unfair)).rows == unfair.rows
    unfair.save(tmp_path / "rows.json")
    assert len(json.loads((tmp_path / "rows.json").read_text())) == 3
    assert unfair._repr_html_().count("<svg") == 1


def test_the_command_tells_the_same(tmp_path: Path) -> None:
    sheet = tmp_path / "unfair.kif"
    sheet.write_text(UNFAIR)
    options = ("report", sheet, "--matches", 10, "--simulations", 20)
    told = run(*options, "--html", tmp_path / "page")
    assert told.stdout.startswith("unfair: with best play a 100, b 0\n")
    assert (tmp_path / "page.html").exists()
    as_json = run_json(*options)
    assert as_json["dead_rules"] == ["(<= (legal b hope) (true (step 7)))"]
    assert "did you mean tictactoe" in run("report", "tictacto", code=2).stderr
