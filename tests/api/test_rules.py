"""`gamelore.check` and `gamelore.symmetries`."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import gamelore
from commands import run
from gamelore import GameloreError

NO_END = """
(role a) (init s) (<= (legal a m) (true s)) (<= (next s) (true s)) (<= (goal a 100) (true s)) (<= terminal (true e))
"""


def test_a_sheet_without_mistakes() -> None:
    checked = gamelore.check("tictactoe")
    assert (checked.findings, checked.errors, checked.warnings, checked.rows) == ((), [], [], [])
    assert repr(checked).endswith("tictactoe.kif: 0 errors, 0 warnings>")
    assert str(checked).endswith("tictactoe.kif: nothing is wrong")


def test_mistakes_of_a_text_have_a_place_and_a_remedy() -> None:
    checked = gamelore.check("(role a)\n(<= (next ?x) (true (cell ?y)))")
    assert checked.path is None
    assert any(finding.line == 2 for finding in checked.errors)
    assert all(finding.remedy for finding in checked.errors)
    assert {row["code"] for row in checked.rows} == {finding.code for finding in checked.findings}
    assert "<" not in checked._repr_html_().removeprefix("<pre>").removesuffix("</pre>")


def test_play_finds_what_the_text_does_not_show() -> None:
    checked = gamelore.check(NO_END, play=True, matches=3, max_steps=20)
    assert "no-end" in {finding.code for finding in checked.warnings}
    assert checked.played is not None
    assert checked.played.num_matches >= 1
    assert "unnamed: native engine" in str(checked)


def test_the_command_prints_what_the_function_returns(tmp_path: Path) -> None:
    sheet = tmp_path / "endless.kif"
    sheet.write_text(NO_END)
    checked = gamelore.check(sheet, play=True, matches=3, max_steps=20)
    findings = [line for line in str(checked).splitlines() if "no-end" in line]
    printed = run("check", sheet, "--play", "--matches", 3, "--max-steps", 20).stdout
    assert findings
    assert all(line in printed for line in findings)


def test_options_of_play_need_play() -> None:
    with pytest.raises(GameloreError, match="expected play=True together with seconds, matches; add it"):
        gamelore.check("tictactoe", seconds=1, matches=2)


def test_symmetries_of_a_game() -> None:
    group = gamelore.symmetries("tictactoe")
    assert repr(group) == "<8 symmetries, including the identity, of tictactoe>"
    assert (len(group), group.facts.shape[0], group.why) == (8, 8, "")
    assert sorted(row["order"] for row in group.rows) == [1, 2, 2, 2, 2, 2, 4, 4]
    assert group.rows[0]["cycles"] == []
    assert len(pickle.loads(pickle.dumps(group))) == 8


def test_a_symmetry_maps_facts_and_moves() -> None:
    group = gamelore.symmetries(gamelore.load("tictactoe"))
    for s in range(len(group)):
        mapping = group.mapping(s)
        for fact, image in mapping["facts"].items():
            if fact.startswith("(cell") and fact.endswith("b)"):
                place, to = fact.split()[1:3], image.split()[1:3]
                assert mapping["moves"]["xplayer"][f"(mark {' '.join(place)})"] == f"(mark {' '.join(to)})"


def test_step_counter_of_a_game() -> None:
    counter = gamelore.symmetries("fivemensmorris").step_counter
    assert counter is not None
    assert counter.length == 100
    assert gamelore.symmetries("tictactoe").step_counter is None
