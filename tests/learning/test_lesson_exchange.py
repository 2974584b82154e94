"""Lessons as JSON: what comes back, which lesson is kept, and what is refused without a change of the store."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gamelore import KnowledgeError, load
from gamelore.learning import exchange, lesson_exchange
from gamelore.learning.lesson_exchange import export_lessons, import_lessons
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import LESSON, Lessons, OpeningMove, PlayedMatch, StoredLesson, TrialRow
from gamelore.learning.store.taught_rows import NOTHING, StoredValue

VALUE = StoredValue(0.5, 0.75, None, (0.5, 0.25), {"(cell 1 1 x)": (0.125, 0.1), "(control xplayer)": (-0.5, 0.25)})
STORED = StoredLesson(2, 40, 1_750_000, 4.5, VALUE, b"\x00progress\xff", "a hash", 0.5)
FIRST = frozenset({"(cell 1 1 b)", "(control xplayer)"})


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Lessons]:
    with KnowledgeStore(tmp_path / "other.db") as knowledge:
        yield Lessons(knowledge)


@pytest.fixture
def file(lessons: Lessons, tmp_path: Path) -> Path:
    """A file with all that a store can have about a game."""
    game = load("tictactoe")
    lessons.put(game, replace(STORED, generation=1, walks=1000))
    lessons.put(game, STORED)
    lessons.add_rival(game, "startclock=1", 1000, 0.5, VALUE)
    lessons.add_rival(game, "startclock=1", 2000, 0.75, NOTHING)
    lessons.put_opening(game, FIRST, [OpeningMove(0, "(mark 1 1)", 60, 60.0), OpeningMove(0, "(mark 2 2)", 40, 50.0)])
    lessons.add_match(game, PlayedMatch("m1", 0, 10, (("(mark 1 1)", "noop"),), (100, -1)))
    lessons.add_evidence(game, TrialRow(LESSON, 2, "startclock=1"), lambda row: row._replace(num=3, better=1.5))
    assert export_lessons(lessons, tmp_path / "lessons.json") == 1
    return tmp_path / "lessons.json"


def test_all_comes_back(lessons: Lessons, other: Lessons, file: Path) -> None:
    rules = load("tictactoe").rules_hash
    assert import_lessons(other, file) == 1
    before, after = lessons.kept(rules), other.kept(rules)
    assert before is not None
    assert after is not None
    assert after.lesson == before.lesson
    assert before.taught.keys() == {LESSON, "startclock=1"}
    assert after.taught == {LESSON: before.taught[LESSON]}, "rivals are learned anew"
    assert after[2:] == before[2:]
    assert other.shapes().keys() == lessons.shapes().keys()
    assert import_lessons(other, file) == 0
    assert other.kept(rules) == after, "a second import changes nothing"


def changed(file: Path, change: Callable[[Any], object]) -> Path:
    """Change the lesson in a file."""
    content = json.loads(file.read_text())
    change(content["lessons"][0])
    file.write_text(json.dumps(content))
    return file


def test_an_imported_lesson_tells_who_made_it_and_when(other: Lessons, file: Path) -> None:
    rules, made = load("tictactoe").rules_hash, {"created": "long ago", "updated": "since then"}
    import_lessons(other, changed(file, lambda lesson: lesson.update(gamelore="0.0.9", **made)))
    lesson = other.find(rules)
    assert lesson is not None
    assert (lesson.version, lesson.created, lesson.updated) == ("0.0.9", *made.values())
    other.put(load("tictactoe"), replace(STORED, walks=STORED.walks + 1))
    lesson = other.find(rules)
    assert lesson is not None
    assert lesson.version == version("gamelore"), "it goes on here"
    assert lesson.updated != made["updated"]
    assert lesson.created == made["created"]


def test_rivals_of_older_files_are_left_out(other: Lessons, file: Path) -> None:
    """A player without a tested lesson plays with its rival, so it must have learned that itself."""
    add = lambda lesson: lesson["taught"].update({"startclock=10": lesson["taught"][LESSON]})  # noqa: E731
    assert import_lessons(other, changed(file, add)) == 1
    assert other.pupils(load("tictactoe").rules_hash) == {LESSON: 2}


def first_value(lesson: Any) -> dict[str, Any]:
    value: dict[str, Any] = lesson["taught"][LESSON][0]
    return value


@pytest.mark.parametrize(
    "change",
    [
        lambda lesson: first_value(lesson)["constants"].__setitem__(0, 0.75),
        lambda lesson: lesson["openings"][0][1][0].__setitem__(3, 99.0),
        lambda lesson: lesson["trials"][0].__setitem__(6, 1.25),
        lambda lesson: lesson.pop("checksum"),
    ],
    ids=["value", "opening", "test", "older file"],
)
def test_tests_of_something_else_do_not_count(other: Lessons, file: Path, change: Callable[[Any], object]) -> None:
    assert import_lessons(other, changed(file, change)) == 1
    assert other.trials(load("tictactoe").rules_hash) == []


def test_tests_by_another_version_do_not_count(other: Lessons, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_exchange, "version", lambda package: "another")
    assert import_lessons(other, file) == 1
    assert other.trials(load("tictactoe").rules_hash) == []


def test_openings_of_two_stores_are_tested_together(lessons: Lessons, other: Lessons, file: Path) -> None:
    """Those of the longer lesson, too. A second import brings nothing, so the tests stay."""
    game, test = load("tictactoe"), TrialRow("openings", 1, "without")
    lessons.add_evidence(game, test, lambda row: row._replace(num=3, better=1.5))
    export_lessons(lessons, file)
    longer = replace(STORED, walks=9_000_000)
    other.put(game, longer)
    other.put_opening(game, frozenset({"(cell 1 1 x)"}), [OpeningMove(1, "(mark 2 2)", 50, 40.0)])
    for is_longer in (False, True):
        other.add_evidence(game, test, lambda row: row._replace(num=3, better=1.5))
        assert import_lessons(other, file) == is_longer
        assert all(row.advice != "openings" for row in other.trials(game.rules_hash))
        other.add_evidence(game, test, lambda row: row._replace(num=3, better=1.5))
        assert import_lessons(other, file) == 0
        assert any(row.advice == "openings" for row in other.trials(game.rules_hash))
        lessons.put(game, replace(longer, walks=10_000_000))
        export_lessons(lessons, file)


def test_the_tests_of_openings_come_with_them(lessons: Lessons, other: Lessons, file: Path) -> None:
    game = load("tictactoe")
    lessons.add_evidence(game, TrialRow("openings", 1, "without"), lambda row: row._replace(num=3, better=1.5))
    export_lessons(lessons, file)
    import_lessons(other, file)
    assert other.trials(game.rules_hash) == lessons.trials(game.rules_hash)


def test_a_lesson_before_its_first_generation_comes_back(lessons: Lessons, other: Lessons, tmp_path: Path) -> None:
    game = load("tictactoe")
    for first in (
        replace(STORED, generation=0, walks=10, value=NOTHING, origin=""),
        replace(STORED, generation=0, walks=20, value=VALUE._replace(informed=0.5)),
    ):
        lessons.put(game, first)
        export_lessons(lessons, tmp_path / "first.json")
        assert import_lessons(other, tmp_path / "first.json") == 1
        back, before = other.find(game.rules_hash), lessons.find(game.rules_hash)
        assert back is not None
        assert before is not None
        assert (back.value, back.walks, back.id) == (before.value, before.walks, before.id)


def test_the_longer_lesson_is_kept_with_its_tests(other: Lessons, file: Path) -> None:
    game = load("tictactoe")
    mine = replace(STORED, generation=1, walks=10, value=VALUE._replace(constants=(0.0, 0.0)))
    other.put(game, mine)
    other.add_evidence(game, TrialRow(LESSON, 1, "startclock=10"), lambda row: row._replace(num=9))
    other.add_match(game, PlayedMatch("m0", 1, 10, (), (0, 100)))
    assert import_lessons(other, file) == 1
    back = other.find(game.rules_hash)
    assert back is not None
    assert (back.walks, back.value) == (STORED.walks, VALUE)
    assert [row[:3] for row in other.trials(game.rules_hash)] == [(LESSON, 2, "startclock=1")]
    assert [taught.number for taught in other.taught(game.rules_hash, LESSON)] == [1, 2]
    assert [match.id for match in other.matches(game.rules_hash)] == ["m0", "m1"]
    longer = replace(STORED, generation=5, walks=9_000_000, value=VALUE._replace(constants=(0.0, 0.0)), id="mine")
    other.put(game, longer, replaces=back.id)
    assert import_lessons(other, file) == 0
    back = other.find(game.rules_hash)
    assert back is not None
    assert (back.walks, back.id) == (longer.walks, "mine")


def test_chosen_lessons_only(lessons: Lessons, file: Path, tmp_path: Path) -> None:
    game = load("connect3")
    lessons.put(game, replace(STORED, value=NOTHING, generation=0))
    assert export_lessons(lessons, tmp_path / "some.json", [game.rules_hash]) == 1
    (exported,) = json.loads((tmp_path / "some.json").read_text())["lessons"]
    assert exported["name"] == "connect3"
    with pytest.raises(KnowledgeError, match=r"expected a lesson about the game .*, got none; gamelore lessons list"):
        export_lessons(lessons, tmp_path / "some.json", [load("goofspiel").rules_hash])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.update(format="x"), "expected lessons of format gamelore-lessons, version 1, got x"),
        (lambda file: file.update(version=2), "got gamelore-lessons, version 2"),
        (lambda file: file["lessons"][0].pop("walks"), "missing required field `walks`"),
        (lambda file: file["lessons"][0].update(rules="(role"), r"lessons\[0\]: "),
        (lambda file: file["lessons"][0].update(roles=["nobody"]), "the roles are xplayer, oplayer, not nobody"),
        (lambda file: file["lessons"][0].update(rules=" " * 2**21), "characters, more than 1048576"),
        (lambda file: file["lessons"][0]["taught"]["lesson"][0].update(constants=[1.0]), "1 constants for 2 roles"),
        (
            lambda file: file["lessons"][0]["taught"]["lesson"][0]["weights"].update({"(cell 1 1 o)": [1.0]}),
            "a fact does not have 2 weights",
        ),
        (
            lambda file: file["lessons"][0]["taught"]["lesson"][0]["weights"].update({"(cell ?x 1 o)": [1.0, 1.0]}),
            "it has variables",
        ),
        (lambda file: file["lessons"][0]["taught"]["lesson"][0].update(determination=1.5), "<= 1"),
        (lambda file: file["lessons"][0]["taught"]["lesson"][0].update(constants=[1e300, 0.0]), "<= 1e"),
        (lambda file: first_value(file["lessons"][0])["weights"].update({"(cell 1 1 o)": [0.0, -1e39]}), ">= -1e"),
        (lambda file: file["lessons"][0]["openings"][0][1][0].__setitem__(0, 7), "7 is no number of one of 2 roles"),
        (lambda file: file["lessons"][0]["matches"][0].__setitem__(3, [["noop"]]), "a ply of a match does not have 2"),
        (lambda file: file["lessons"][0].update(progress="?"), "base64"),
        (
            lambda file: file["lessons"][0]["trials"][0].__setitem__(4, 500.0),
            "evidence about lesson 2 against startclock=1: expected total of at most 3 after 3 rounds, got 500",
        ),
        (lambda file: file["lessons"][0]["roles"].append("xplayer"), "not xplayer, oplayer, xplayer"),
        (lambda file: file["lessons"][0]["roles"].reverse(), "the roles are xplayer, oplayer, not oplayer, xplayer"),
        (lambda file: file.update(format="gamelore-knowledge"), "got learners; import this one with `gamelore know"),
    ],
)
def test_a_wrong_file_changes_nothing(
    file: Path, other: Lessons, change: Callable[[Any], object], message: str
) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(KnowledgeError, match=message):
        import_lessons(other, file)
    assert other.games() == []


def test_files_that_are_too_large(
    lessons: Lessons, other: Lessons, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MOST_BYTES", 100)
    with pytest.raises(KnowledgeError, match=r"at most 0 MiB, .* export fewer learners or lessons"):
        export_lessons(lessons, file)
    with pytest.raises(KnowledgeError, match="expected a file of at most 0 MiB"):
        import_lessons(other, file)
    with pytest.raises(KnowledgeError, match="expected a file that can be read"):
        import_lessons(other, file.with_name("none.json"))
