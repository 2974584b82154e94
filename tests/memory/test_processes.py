"""Several processes that study a game in one store, and one that is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gamelore import Game, load
from gamelore.learning.exchange import problems
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import Lessons, StoredLesson
from gamelore.memory.course import Course


@pytest.fixture
def game() -> Game:
    """A game that is not solved."""
    return load("connectfour")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "k.db"


def studying(store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gamelore", "study", "connectfour", "--seconds", "600"]
    return subprocess.Popen(
        [*command, "--knowledge", str(store)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def lesson_in(store: Path, game: Game, is_wanted: Callable[[Lessons, StoredLesson], bool]) -> StoredLesson:
    """Return the lesson of a game as soon as a condition holds in the store."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if store.exists():
            with KnowledgeStore(store) as knowledge:
                lessons = Lessons(knowledge)
                lesson = lessons.find(game.rules_hash)
                if lesson is not None and is_wanted(lessons, lesson):
                    return lesson
        time.sleep(0.05)
    pytest.fail(f"expected a lesson in {store} within two minutes")


def test_a_killed_study_keeps_what_it_has_stored(store: Path, game: Game) -> None:
    process = studying(store)
    try:
        seen = lesson_in(store, game, lambda lessons, _: len(lessons.generations(game.rules_hash)) > 1)
    finally:
        process.kill()
        process.communicate()
    with KnowledgeStore(store) as knowledge:
        lessons = Lessons(knowledge)
        assert list(problems(knowledge)) == []
        lesson = lessons.find(game.rules_hash)
        assert lesson is not None
        assert lesson.walks >= seen.walks > 0
        course = Course(game, lessons)
        assert course.tuition.walks == lesson.walks
        while course.tuition.walks == lesson.walks:
            course.go_on(time.monotonic() + 0.2, parts=["teaching"])
        assert course.store_lesson() is not None


def test_two_studies_and_an_import_at_once(store: Path, game: Game) -> None:
    """The lesson that was taught longer stays, and the studies go on from it without an error."""
    processes = [studying(store) for _ in range(2)]
    try:
        lesson_in(store, game, lambda lessons, _: len(lessons.generations(game.rules_hash)) > 0)
        with KnowledgeStore(store) as knowledge:
            kept = Lessons(knowledge).kept(game.rules_hash)
            assert kept is not None
            longer = replace(kept.lesson, walks=kept.lesson.walks + 10_000_000, id="imported")
            Lessons(knowledge).add([(game, kept._replace(lesson=longer, trials=()))])
        lesson_in(store, game, lambda _, lesson: lesson.id == "imported" and lesson.walks > longer.walks)
        assert [process.poll() for process in processes] == [None, None]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    with KnowledgeStore(store) as knowledge:
        assert list(problems(knowledge)) == []
