"""A game, and another one of which the store has a variant only."""

import pytest

from gamelore import Game, load
from gamelore.learning.store.lesson_rows import Lessons, StoredLesson
from gamelore.learning.store.taught_rows import StoredValue
from gamelore.memory import course as course_module
from gamelore.memory.lesson import restored_value, stored
from gamelore.players.random_streams import stream
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import Teacher
from gamelore.search.value import LinearValue


@pytest.fixture(scope="session")
def game() -> Game:
    return load("breakthrough")


@pytest.fixture(scope="session")
def smaller() -> Game:
    return load("breakthrough:width=6,height=6,rows=2")


@pytest.fixture(scope="session")
def source(game: Game) -> StoredLesson:
    """A lesson about breakthrough that was taught for a second or two."""
    teacher = Teacher(game, stream(1), GrowthSettings(), TeachingSettings(simulations=500_000, first=80_000))
    teacher.teach()
    return stored(game, teacher.pause(), 1.0, None)


@pytest.fixture
def variant(game: Game, smaller: Game, lessons: Lessons, source: StoredLesson) -> Game:
    """A game of which the store has a variant only; the value says a lot there."""
    lessons.put(game, source)
    return smaller


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[StoredValue]:
    """The stored values that courses have made so far to play with."""
    values = list[StoredValue]()

    def restored(game: Game, value: StoredValue) -> LinearValue | None:
        values.append(value)
        return restored_value(game, value)

    monkeypatch.setattr(course_module, "restored_value", restored)
    return values
