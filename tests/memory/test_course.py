"""Courses: what is stored, how a course goes on, against whom lessons are tried, and what two processes do."""

from collections.abc import Callable
from itertools import pairwise
from time import monotonic

import pytest

from gamelore import Game, load
from gamelore.learning.store.lesson_rows import LESSON, NOTHING, Lessons, Stored, StoredLesson, StoredValue, TrialRow
from gamelore.memory import course as course_module
from gamelore.memory import lesson as lesson_module
from gamelore.memory.advice import OPENINGS, WITHOUT, rival_name
from gamelore.memory.course import Course, Told
from gamelore.search.settings import TeachingSettings

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything happen within a second or two."""
    monkeypatch.setattr(course_module, "TeachingSettings", lambda simulations=1 << 60: QUICK)
    for name, value in (
        ("_OPENING_SECONDS", 0.01),
        ("_OPENINGS_FROM", 0.05),
        ("_LONGER", 0.1),
        ("_FEWEST_OPENINGS", 1),
        ("_TRIAL_SECONDS", 0.0001),
        ("_REHEARSAL", 0.01),
        ("_BETWEEN", 0.1),
        ("_OPENING_MIB", 16),
    ):
        monkeypatch.setattr(course_module, name, value)


@pytest.fixture
def game() -> Game:
    return load("breakthrough")


def ignorant(self: Course, startclock: int, deadline: float) -> StoredValue:
    """Take the place of `Course._new_rival`: store a rival that has learned nothing."""
    self._lessons.add_rival(self.game, rival_name(startclock), 0, 0.0, NOTHING)
    return NOTHING


def studied(
    game: Game, lessons: Lessons, seconds: float = 1.0, until: Callable[[list[Told]], bool] = lambda told: True
) -> tuple[Course, list[Told]]:
    """Study for some seconds, and then until a condition holds, however busy the machine is."""
    course, told = Course(game, lessons), list[Told]()
    course.startclocks = [1]
    course.go_on(monotonic() + seconds, told.append)
    end = monotonic() + 60.0
    while not until(told) and monotonic() < end:
        course.go_on(monotonic() + 0.5, told.append)
    course.store_lesson()
    return course, told


def num_rounds(lessons: Lessons, game: Game) -> int:
    return sum(row.num for row in lessons.trials(game.rules_hash) if row.advice == LESSON)


def test_a_course_teaches_searches_openings_and_tries_both(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Course, "_new_rival", ignorant)
    tried = {(LESSON, rival_name(1)), (OPENINGS, WITHOUT)}
    course, told = studied(
        game,
        lessons,
        until=lambda told: tried <= {(row.advice, row.against) for row in lessons.trials(game.rules_hash)},
    )
    kinds = {type(entry) for entry in told}
    assert kinds == {StoredLesson, TrialRow, int}
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert (lesson.walks, lesson.seconds) == (course.teacher.pause().walks, pytest.approx(course.seconds))
    assert len(lessons.openings(game.rules_hash)) == len(course.book) > 0
    assert {(row.advice, row.against) for row in lessons.trials(game.rules_hash)} == tried
    assert rival_name(1) in lessons.pupils(game.rules_hash)
    assert lessons.generations(game.rules_hash)


def test_the_parts_get_their_shares_of_the_time(game: Game, lessons: Lessons) -> None:
    course, _ = studied(game, lessons, 3.0)
    spent = course._spent
    assert spent["teaching"] > max(spent["openings"], spent["trials"])
    assert spent["openings"] > 0
    assert spent["trials"] > 0


def test_a_course_goes_on_where_another_one_stopped(game: Game, lessons: Lessons) -> None:
    first, _ = studied(game, lessons)
    state = first.teacher.pause()
    second = Course(game, lessons)
    again = second.teacher.pause()
    assert (again.generation, again.rounds, again.walks) == (state.generation, state.rounds, state.walks)
    assert second.seconds == first.seconds
    assert len(second.book) == len(first.book)


def test_the_slower_of_two_processes_goes_on_from_the_other(game: Game, lessons: Lessons) -> None:
    slower, faster = Course(game, lessons), Course(game, lessons)
    slower.go_on(monotonic() + 0.1)
    faster.go_on(monotonic() + 1.0)
    faster.store_lesson()
    assert slower.teacher.simulations < faster.teacher.simulations
    slower.go_on(monotonic() + 0.5, parts=["teaching"])
    slower.store_lesson()
    assert slower.teacher.simulations >= faster.teacher.simulations
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert lesson.walks >= faster.teacher.simulations


def test_there_are_three_rivals_with_a_startclock_of_a_second(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here another one comes after four rounds; later ones are drawn by lot."""
    monkeypatch.setattr(Course, "_new_rival", ignorant)
    monkeypatch.setattr(course_module, "_EACH_RIVAL", 4)
    num = lambda: lessons.pupils(game.rules_hash).get(rival_name(1), 0)  # noqa: E731
    studied(game, lessons, until=lambda told: num() >= 3)
    before = num_rounds(lessons, game)
    studied(game, lessons, until=lambda told: num_rounds(lessons, game) >= before + 16)
    assert num() == 3


def test_a_rival_learns_for_its_startclock_in_small_pieces(game: Game, lessons: Lessons) -> None:
    course, seconds = Course(game, lessons), [0.0]
    while (rival := course._new_rival(1, monotonic() + 0.02)) is None:
        assert course._pupil is not None
        seconds.append(course._pupil.seconds)
    assert all(before < after < before + 0.5 for before, after in pairwise(seconds))
    assert 0.5 < seconds[-1] < 1.0
    assert rival.constants
    assert [taught.value for taught in lessons.taught(game.rules_hash, rival_name(1))] == [rival]


def test_a_lesson_beats_rivals_without_a_value(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Course, "_new_rival", ignorant)
    monkeypatch.setattr(course_module, "_TRIAL_SECONDS", 0.001)
    studied(
        game,
        lessons,
        until=lambda told: any(row.better > 3 for row in lessons.trials(game.rules_hash) if row.advice == LESSON),
    )
    rows = [row for row in lessons.trials(game.rules_hash) if row.advice == LESSON]
    assert sum(row.total for row in rows) > 0.5 * sum(row.num for row in rows)
    assert any(row.better > 3 for row in rows)
    assert not any(row.worse > 3 for row in rows)


def test_evidence_belongs_to_the_state_that_was_tried(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Course, "_new_rival", ignorant)
    course, _ = studied(game, lessons, until=lambda told: num_rounds(lessons, game) > 0)
    candidate = course._candidate
    assert candidate is not None
    (row,) = (row for row in lessons.trials(game.rules_hash) if row[:2] == (LESSON, candidate.number))
    assert row.num > 0
    value = lessons.value(game.rules_hash, LESSON, candidate.number)
    assert value is not None
    assert candidate.value is not None
    assert value.constants == tuple(candidate.value.constants.tolist())


def test_a_state_is_tried_until_it_is_outdated(game: Game, lessons: Lessons) -> None:
    """Another process goes on with the same state."""
    course, _ = studied(game, lessons)
    newest = course.snapshot
    assert newest is not None
    first, second, third = (
        newest._replace(number=number, walks=walks) for number, walks in ((90, 1), (91, 3_999_999), (92, 4_000_000))
    )
    course._candidate = None
    for snapshot, expected in ((first, first), (second, first), (third, third)):
        course.snapshot = snapshot
        course._choose_candidate([])
        assert course._candidate is expected
    row = TrialRow(LESSON, newest.number - 1, rival_name(1), 3, 1.5)
    lessons.add_evidence(game, row, lambda _: row)
    again = Course(game, lessons)
    again.startclocks = [1]
    again._choose_candidate(lessons.trials(game.rules_hash))
    assert again._candidate is not None
    assert again._candidate.number == newest.number - 1


def test_two_courses_play_other_matches(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the same matches would count twice."""
    keys = {int(Course(game, lessons)._new_key()) for _ in range(10)}
    assert len(keys) == 10


def test_a_course_goes_on_from_what_another_process_has_stored(game: Game, lessons: Lessons) -> None:
    waiting = Course(game, lessons)
    course, _ = studied(game, lessons)
    assert waiting.teacher.simulations == len(waiting.book) == 0
    waiting.refresh()
    assert waiting.teacher.simulations == course.teacher.simulations
    assert len(waiting.book) == len(course.book) > 0
    assert waiting.snapshot is not None
    assert course.snapshot is not None
    assert waiting.snapshot.number == course.snapshot.number
    teacher = waiting.teacher
    waiting.refresh()
    assert waiting.teacher is teacher, "nothing is new"


def test_the_trial_of_playouts_is_not_begun_anew(game: Game, lessons: Lessons) -> None:
    """While a trial runs, the walks of the lesson stand still; nothing new is stored, and nothing is lost."""
    course, _ = studied(game, lessons)
    course._stored_at = -1.0
    teacher = course.teacher
    assert course.store_lesson() is None
    assert course.teacher is teacher


def test_generations_of_large_games_are_stored(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_module, "MOST_BYTES", 1000)
    course, _ = studied(game, lessons)
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert lesson.generation == course.teacher.generation > 1
    assert lesson.progress == b""
    again = Course(game, lessons)
    assert again.teacher.generation == lesson.generation
    assert again.teacher.simulations == lesson.walks


def test_a_position_is_searched_over_many_slices(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a startclock, a course gets slices of some milliseconds."""
    monkeypatch.setattr(course_module, "_OPENING_SECONDS", 0.1)
    course = Course(game, lessons)
    calls = 0
    while not len(course.book):
        assert course._explore(monotonic() + 0.005) in (None, 1)
        calls += 1
    assert calls > 5
    assert len(lessons.openings(game.rules_hash)) == 1


def test_a_course_in_slices_does_not_store_after_each(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, put = [], Lessons.put

    def counting(self: Lessons, game: Game, lesson: StoredLesson) -> Stored:
        stored.append(lesson)
        return put(self, game, lesson)

    monkeypatch.setattr(Lessons, "put", counting)
    monkeypatch.setattr(course_module, "_BETWEEN", 10.0)
    course = Course(game, lessons)
    for _ in range(50):
        course.go_on(monotonic() + 0.005)
    num_generations = course.teacher.generation
    assert len(stored) <= num_generations
    course.store_lesson()
    assert len(stored) <= num_generations + 1
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert lesson.walks == course.teacher.simulations
