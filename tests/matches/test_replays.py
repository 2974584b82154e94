"""`matches.replays`: records beside rules, and rules that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gamelore
from gamelore.matches import replays as module
from gamelore.matches.match import RULES
from gamelore.matches.replays import record_files, replays


def records(folder: Path) -> list[dict[str, Any]]:
    """Two records of connect3."""
    gamelore.play("connect3", "random", matches=2).save(folder / "m.jsonl")
    return [json.loads(line) for line in (folder / "m.jsonl").read_text().splitlines()]


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n\n" for line in lines))
    return path


def test_rules_are_loaded_once_whatever_names_records_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph is new after each record here, so that no position is kept."""
    loads = []
    monkeypatch.setattr(module, "RECORDS_PER_GRAPH", 1)
    load = gamelore.load
    monkeypatch.setattr(module, "load", lambda *given, **named: loads.append(given) or load(*given, **named))
    first, second = records(tmp_path)
    (tmp_path / RULES).write_text(gamelore.load("connect3").rulesheet.text)
    file = written(tmp_path / "m.jsonl", [first, second | {"gamelore": {**second["gamelore"], "game": "other"}}])
    one, two = replays([file])
    assert one.match is not None
    assert two.match is not None
    assert (one.line, two.line) == (1, 3)
    assert one.match.graph is not two.match.graph
    assert {each.match.graph.game.name for each in (one, two)} == {"connect3"}
    assert len(loads) == 1


def test_rules_that_cannot_be_loaded_are_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    load = gamelore.load
    monkeypatch.setattr(module, "load", lambda *given, **named: loads.append(given) or load(*given, **named))
    file = written(tmp_path / "m.jsonl", records(tmp_path))
    (tmp_path / RULES).write_text("(role")
    assert ["this '(' is never closed" in replay.why for replay in replays([file])] == [True, True]
    assert len(loads) == 1


def test_a_name_that_no_file_can_have_ends_one_replay_only(tmp_path: Path) -> None:
    first, second = records(tmp_path)
    file = written(
        tmp_path / "m.jsonl", [first | {"gamelore": {**first["gamelore"], "game": "a" * 300 + ":x=1"}}, second]
    )
    wrong, right = replays([file])
    assert "expected the rules of the game, got no rules.kif" in wrong.why
    assert (right.why, right.line) == ("", 3)


def test_a_folder_without_records_is_told(tmp_path: Path) -> None:
    with pytest.raises(gamelore.GameloreError, match=r"expected match records in .*, got no \.json or \.jsonl file"):
        record_files([tmp_path])
