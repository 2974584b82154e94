"""Courses: what is stored, how a course goes on, against whom lessons are tried, and what two processes do."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, log
from time import monotonic
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.analysis.isomorphism import scramble
from gamelore.catalogue import player
from gamelore.game.game import make
from gamelore.gdl.syntax import Rulesheet, parse
from gamelore.learning.store.lesson_rows import (
    LESSON,
    OPENINGS,
    WITHOUT,
    KeptLesson,
    Lessons,
    PlayedMatch,
    Stored,
    StoredLesson,
    TrialRow,
)
from gamelore.learning.store.taught_rows import NOTHING, StoredValue
from gamelore.matches.match import MatchState
from gamelore.memory import course as course_module
from gamelore.memory import lesson as lesson_module
from gamelore.memory import rivals as rivals_module
from gamelore.memory import tuition as tuition_module
from gamelore.memory.advice import rival_name
from gamelore.memory.course import Course, Snapshot, Told
from gamelore.memory.descriptors import descriptors
from gamelore.memory.ledger import KNOBS
from gamelore.memory.lesson import restored_value
from gamelore.memory.retrieval import Relatives
from gamelore.memory.rivals import SearchPlan
from gamelore.memory.tuition import Tuition
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.search import rounds as rounds_module
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import Teacher
from gamelore.search.value import LinearValue

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything happen within a second or two."""
    for module in (course_module, rivals_module, tuition_module):
        monkeypatch.setattr(module, "TeachingSettings", lambda simulations=1 << 60: QUICK)
    for name, value in (
        ("_OPENING_SECONDS", 0.01),
        ("_OPENINGS_FROM", 0.05),
        ("_LONGER", 0.1),
        ("_FEWEST_OPENINGS", 1),
        ("_BETWEEN", 0.1),
        ("_OPENING_MIB", 16),
        ("_REREAD", 0.0),
    ):
        monkeypatch.setattr(course_module, name, value)
    for module in (course_module, rivals_module):
        monkeypatch.setattr(module, "TRIAL_SECONDS", 0.0001)
    monkeypatch.setattr(rounds_module, "_REHEARSAL", 0.01)


class OtherGame(NamedTuple):
    """A game that is only named in the store."""

    rules_hash: str
    name: str
    roles: Sequence[str]
    rulesheet: Rulesheet


def ignorant(self: rivals_module.Rivals, startclock: int, deadline: float) -> StoredValue:
    """Take the place of `Rivals._new_rival`: store a rival that has learned nothing."""
    self._lessons.add_rival(self._game, rival_name(startclock), 0, 0.0, NOTHING)
    return NOTHING


def studied(
    game: Game, lessons: Lessons, until: Callable[[list[Told]], bool] = lambda told: True
) -> tuple[Course, list[Told]]:
    """Study until there are a generation and an opening, and a condition holds, however busy the machine is."""
    course, told = Course(game, lessons), list[Told]()
    course.startclocks = [1]
    course.go_on(monotonic() + 0.2, told.append)
    end = monotonic() + 60.0
    while not (course.tuition.generation > 1 and course.book and until(told)) and monotonic() < end:
        course.go_on(monotonic() + 0.1, told.append)
    course.store_lesson()
    return course, told


def num_rounds(lessons: Lessons, game: Game) -> int:
    return sum(row.num for row in lessons.trials(game.rules_hash) if row.advice == LESSON)


def test_a_course_teaches_searches_openings_and_tries_both(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
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
    assert (lesson.walks, lesson.seconds) == (course.tuition.lesson().walks, pytest.approx(course.seconds))
    assert len(lessons.openings(game.rules_hash)) == len(course.book) > 0
    assert {(row.advice, row.against) for row in lessons.trials(game.rules_hash) if row.advice not in KNOBS} == tried
    assert rival_name(1) in lessons.pupils(game.rules_hash)
    assert lessons.generations(game.rules_hash)


def test_the_part_that_is_farthest_behind_its_share_is_next(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    course, now, order = Course(game, lessons), [0.0], list[str]()
    monkeypatch.setattr(course_module, "SHARES", {"teaching": 0.5, "openings": 0.2, "trials": 0.3})
    course._spent = {"teaching": 0.0, "openings": 0.0, "trials": 0.0}  # type: ignore[typeddict-item]
    monkeypatch.setattr(course, "_parts", lambda wanted: iter(course_module.SHARES))
    for method, part in (("_teach", "teaching"), ("_explore", "openings"), ("_try", "trials")):

        def work(deadline: float, part: str = part) -> None:
            order.append(part)
            now[0] += 1.0

        monkeypatch.setattr(course, method, work)
    monkeypatch.setattr(course_module, "process_time", lambda: now[0])
    monkeypatch.setattr(course_module, "monotonic", lambda: now[0])
    course.go_on(100.0)
    assert [order.count(part) for part in course_module.SHARES] == [50, 20, 30]
    assert order[:5] == ["teaching", "openings", "trials", "teaching", "trials"]


def test_a_course_goes_on_where_another_one_stopped(game: Game, lessons: Lessons) -> None:
    first, _ = studied(game, lessons)
    state = first.tuition.lesson()
    second = Course(game, lessons)
    again = second.tuition.lesson()
    assert (again.generation, again.rounds, again.walks) == (state.generation, state.rounds, state.walks)
    assert second.seconds == first.seconds
    assert len(second.book) == len(first.book)


def test_the_slower_of_two_processes_goes_on_from_the_other(game: Game, lessons: Lessons) -> None:
    slower, faster = Course(game, lessons), Course(game, lessons)
    slower.go_on(monotonic() + 0.1)
    while faster.tuition.walks <= slower.tuition.walks:  # on a busy machine, this may be short
        faster.go_on(monotonic() + 0.2)
    faster.store_lesson()
    slower.go_on(monotonic() + 0.1, parts=["teaching"])
    slower.store_lesson()
    assert slower.tuition.walks >= faster.tuition.walks
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert lesson.walks >= faster.tuition.walks


def test_there_are_four_rivals_with_a_startclock_of_a_second(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one comes after rounds of two seconds; later ones are drawn by lot."""
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
    monkeypatch.setattr(rivals_module.Rivals, "seconds_of", lambda self, num: 0.5 * num)
    rivals = Course(game, lessons)._rivals
    for num_before in (0, 3, 4, 7, 8, 11, 12, 100):
        rivals.by_lot(1, num_before, 0.0)
        assert lessons.pupils(game.rules_hash)[rival_name(1)] == min(4, 1 + num_before // 4)
    studied(game, lessons, until=lambda told: num_rounds(lessons, game) >= 16)
    assert lessons.pupils(game.rules_hash)[rival_name(1)] == 4


def test_the_youth_of_a_lesson_is_the_first_rival(game: Game, lessons: Lessons) -> None:
    """It is what the teacher knew after a second. Where the lesson began with a variant, it is none."""
    course = Course(game, lessons)
    while course.seconds < 1.0:
        course.go_on(monotonic() + 0.1, parts=["teaching"])
    (youth,) = lessons.taught(game.rules_hash, rival_name(1))
    assert 1.0 <= youth.seconds < 1.5
    assert youth.walks <= course.tuition.walks
    assert rival_name(10) not in lessons.pupils(game.rules_hash)
    course.tuition._before, course._variant = 9.9 - course.tuition._taught, ("variant", 0.5)
    while course.seconds < 10.0:
        course.go_on(monotonic() + 0.1, parts=["teaching"])
    assert rival_name(10) not in lessons.pupils(game.rules_hash)


def test_both_sides_of_a_trial_have_the_same_time(game: Game, lessons: Lessons) -> None:
    """A search with one playout for a leaf makes more walks in this time; the slower one makes 64 at least."""
    course = Course(game, lessons)
    slow, fast = (SearchPlan(None, GrowthSettings(playouts=num)) for num in (512, 1))
    for seconds in (1e-9, 0.01):
        course._rivals.seconds = seconds
        rounds = course._rivals.contest(slow, fast, [2])
        efforts = [course._rivals._efforts[False, False, side.growth] for side in rounds.sides]
        for side, effort in zip(rounds.sides, efforts, strict=True):
            time = max(seconds, 64 / (efforts[0].walks / efforts[0].seconds))
            assert side.walks == pytest.approx(time * effort.walks / effort.seconds, abs=1)
        assert rounds.sides[1].walks > rounds.sides[0].walks >= 64
    before = [replace(effort) for effort in efforts]
    assert course._rivals.seconds_of(10) == 0
    while not rounds.scores:
        rounds.advance()
    course._rivals.note(rounds)
    spent = sum(effort.seconds for effort in rounds.efforts)
    assert course._rivals.seconds_of(2 * len(rounds.scores)) == pytest.approx(2 * spent)
    for old, new, own in zip(before, efforts, rounds.efforts, strict=True):
        assert (new.walks, new.seconds) == (old.walks + own.walks, old.seconds + own.seconds)
        assert own.walks > 0


def test_a_rival_learns_for_its_startclock_in_small_pieces(game: Game, lessons: Lessons) -> None:
    course, seconds = Course(game, lessons), [0.0]
    _ = course.tuition.teacher  # the first one in a process loads what all need
    while (rival := course._rivals._new_rival(1, monotonic() + 0.02)) is None:
        seconds.append(course._rivals._pupils[1].seconds)
    assert all(before < after < before + 0.5 for before, after in pairwise(seconds))
    assert 0.5 < seconds[-1] < 1.0
    assert rival.constants
    assert [taught.value for taught in lessons.taught(game.rules_hash, rival_name(1))] == [rival]


def test_matches_against_other_rivals_go_on_while_a_new_one_learns(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may end before the new one is ready, so learning takes no longer than matches."""
    rivals = Course(game, lessons)._rivals
    monkeypatch.setattr(rivals, "seconds_of", lambda num: 2.0 * num)
    ignorant(rivals, 1, 0.0)
    assert rivals.by_lot(1, 1, monotonic() + 0.2) is None, "another one is wanted"
    assert rivals._pupils[1].seconds > 0
    assert rivals.by_lot(1, 1, monotonic() + 0.02) is not None
    rivals._round_seconds = 60.0
    assert rivals.by_lot(1, 1, monotonic() + 0.02) is None
    assert lessons.pupils(game.rules_hash) == {rival_name(1): 1}


def test_other_trials_go_on_while_a_rival_learns(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    course = Course(game, lessons)
    value = replace(LinearValue.zero(game), determination=0.5)
    course.snapshot = course._candidate = Snapshot(3, 1000.0, GrowthSettings(), lambda: value)
    course.startclocks = [1, 60]

    def rival() -> str:
        trial = course._chosen_trial([])
        assert trial is not None
        return trial.against

    assert rival() == rival_name(60), "what passes against it is taken for shorter startclocks"
    assert course._rivals.by_lot(60, 0, monotonic() + 0.5) is None
    assert rival() == rival_name(1)
    course._rivals._round_seconds = 60.0
    assert rival() == rival_name(60)
    course._rivals._round_seconds, course.startclocks = 0.0, [60]
    assert rival() == rival_name(60), "there is nothing else to do"


def test_a_lesson_beats_rivals_without_a_value(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
    for module in (course_module, rivals_module):
        monkeypatch.setattr(module, "TRIAL_SECONDS", 0.001)
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
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
    course, rows = Course(game, lessons), list[TrialRow]()
    course.startclocks = [1]
    while not rows:
        course.go_on(monotonic() + 0.2)
        candidate = course._candidate
        tried = candidate.number if candidate is not None else -1
        rows = [row for row in lessons.trials(game.rules_hash) if row[:2] == (LESSON, tried)]
    assert candidate is not None
    assert rows[0].num > 0
    value = lessons.value(game.rules_hash, LESSON, candidate.number)
    assert value is not None
    assert candidate.value is not None
    assert value.constants == tuple(candidate.value.constants.tolist())


def test_evidence_about_a_lesson_that_another_process_has_replaced_is_dropped(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
    course, _ = studied(game, lessons, until=lambda told: num_rounds(lessons, game) > 0)
    assert course.snapshot is not None
    key = TrialRow(LESSON, course.snapshot.number, rival_name(1))
    rounds = course._rivals.contest(course.snapshot.plan, SearchPlan(None, GrowthSettings()), [2])
    other = replace(course.tuition.lesson(), walks=1 << 40, id="another")
    lessons.put(game, other, replaces=course._id)
    while not rounds.scores:
        assert course._advance(key, rounds, monotonic() + 0.1) is None
    assert lessons.trials(game.rules_hash) == []
    assert (course._id, course.tuition.walks) == ("another", 1 << 40), "it goes on from the other lesson"


def test_a_state_is_tried_until_it_is_outdated(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process goes on with the same state."""
    monkeypatch.setattr(course_module, "_differs", lambda snapshot: True)
    num = lambda: len(lessons.generations(game.rules_hash))  # noqa: E731
    course, _ = studied(game, lessons, until=lambda told: num() > 1)
    newest = course.snapshot
    assert newest is not None
    first, second, third, fourth, fifth, sixth = (
        replace(newest, number=number, seconds=seconds)
        for number, seconds in ((90, 0.1), (91, 5.9), (92, 6.0), (93, 11.9), (94, 12.0), (95, 24.0))
    )
    for name, value in (("_LONGER", 0.0), ("_SHARE_OF_TEACHING", inf)):  # however fast the machine is
        monkeypatch.setattr(course_module, name, value)
    promising = TrialRow(LESSON, 92, rival_name(1), 12, 9.0, 1.0, 1.5, 0.0)
    halfway, passed = promising._replace(better=2.5), promising._replace(better=20.0)
    course._candidate, course.startclocks = None, [1, 10]
    for snapshot, rows, expected in (
        (first, [], first),
        (second, [], first),
        (third, [], third),
        (fourth, [promising], third),
        (fifth, [halfway], third),
        (fifth, [halfway._replace(against=rival_name(10)), passed], third),
        (sixth, [halfway], sixth),
    ):
        course.snapshot = snapshot
        course._choose_candidate(rows)
        assert course._candidate is expected
    for row in (promising, passed):
        course._candidate, course.snapshot = third, fifth
        course._choose_candidate([row])
        assert course._candidate is fifth, "later states are better"
    before = lessons.taught(game.rules_hash, LESSON)[-2].number  # numbers may be left out
    again = Course(game, lessons)
    again.startclocks = [1]
    again._choose_candidate([TrialRow(LESSON, before, rival_name(1), 3, 1.5)])  # the only evidence, whatever was tried
    assert again._candidate is not None
    assert again._candidate.number == before


def test_the_time_for_trials_is_saved_for_states_that_promise_more(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = Course(game, lessons)
    value = replace(LinearValue.zero(game), determination=0.5)
    young, newest = (Snapshot(n, 10.0 * n, GrowthSettings(), lambda: value) for n in (2, 3))
    course.startclocks = [1]
    monkeypatch.setattr(course._rivals, "seconds_of", lambda num: 0.1 * num)
    row = TrialRow(LESSON, 2, rival_name(1), 100, 50.0, 25.0, 0.9, 0.0)
    assert list(course._due_trials([row], young)) == [], "ten seconds of trials after twenty of teaching"
    assert list(course._due_trials([row._replace(num=99)], young)) == [row._replace(num=99)]
    assert list(course._due_trials([row._replace(better=1.0)], young)) == [row._replace(better=1.0)]
    losing = row._replace(num=9, worse=1.0)
    assert list(course._due_trials([losing], young)) == [], "it seems worse"
    assert list(course._due_trials([losing._replace(worse=0.9)], young)) == [losing._replace(worse=0.9)]
    other = row._replace(against=rival_name(60), num=50)
    assert list(course._due_trials([row._replace(num=50), other], young)) == [], "all rivals count"
    carried = replace(young, seconds=0.0)
    course._variant = "a variant", 0.5
    assert list(course._due_trials([row], carried)) == [row]
    course._candidate, course.snapshot = young, newest
    course._choose_candidate([row])
    assert course._candidate is newest, "it gives way before it is outdated"


def test_a_state_is_tried_only_if_its_teaching_was_longer(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course_module, "_LONGER", 2)
    course = Course(game, lessons)
    value, rows = replace(LinearValue.zero(game), determination=0.5), list[TrialRow]()

    def startclocks(seconds: float) -> list[str]:
        snapshot = Snapshot(3, seconds, GrowthSettings(), lambda: value)
        return [row.against for row in course._lesson_trials(rows, snapshot)]

    assert startclocks(1.9) == []
    assert startclocks(20.0) == [rival_name(1), rival_name(10)]
    rows.append(TrialRow(LESSON, 2, rival_name(1), 400, 300.0, 1.0, 30.0, 0.0))
    monkeypatch.setattr(course, "_seconds_of", {2: 5.5}.__getitem__)
    assert startclocks(20.0) == [rival_name(10)], "another state has passed against the shorter startclock"
    assert startclocks(22.0) == [rival_name(1), rival_name(10)]
    rows.append(rows[0]._replace(against=rival_name(10)))
    assert startclocks(20.0) == []
    rows[:] = [rows[0]._replace(number=3, against=rival_name(10))]
    assert startclocks(1000.0) == [rival_name(60)], "it has passed itself against a longer startclock"
    rows.clear()
    course._variant = "a variant", 0.5
    assert startclocks(0.0) == [rival_name(1), rival_name(10)], "its teaching does not count"
    assert startclocks(120.0) == [rival_name(1), rival_name(10), rival_name(60)], "except against a network"
    carried = Snapshot(0, 0.0, GrowthSettings(), lambda: value)
    assert [row.against for row in course._lesson_trials(rows, carried)] == [rival_name(1)]
    rows.append(TrialRow(LESSON, 0, rival_name(1), 400, 300.0, 1.0, 30.0, 0.0))
    assert [row.against for row in course._lesson_trials(rows, carried)] == [rival_name(10)]


def test_a_longer_startclock_comes_first_as_long_as_it_promises_something(game: Game, lessons: Lessons) -> None:
    course = Course(game, lessons)
    value = replace(LinearValue.zero(game), determination=0.5)
    course.snapshot, course.startclocks = Snapshot(3, 1000.0, GrowthSettings(), lambda: value), [1, 10]
    short, long = (TrialRow(LESSON, 3, rival_name(startclock), 7, 3.5, 1.0, 0.5, 0.5) for startclock in (1, 10))
    for rows, expected in (
        ([], long),
        ([long], long),
        ([long._replace(num=8)], short),
        ([long._replace(num=8, better=1.0)], long),
        ([long._replace(num=9), short._replace(num=10)], long),
        ([long._replace(num=11), short._replace(num=10)], short),
        ([long._replace(num=4, worse=1.0)], short),
    ):
        trial = course._chosen_trial(rows)
        assert trial is not None
        assert trial[:3] == expected[:3]


def test_a_course_adopts_the_lesson_that_another_process_began_at_the_same_time(
    variant: Game, lessons: Lessons
) -> None:
    """Both begin with the value of a variant. The lesson, its values and its evidence stay those of the first one."""
    first, second = Course(variant, lessons), Course(variant, lessons)
    for course in (first, second):
        course.startclocks = [1]
        fresh = Teacher(variant, stream(1), GrowthSettings(), QUICK)
        num = num_rounds(lessons, variant)
        while num_rounds(lessons, variant) == num:
            course.try_against(fresh, 1, monotonic() + 1.0)
    assert first._id == second._id != ""
    while second.store_lesson() is None:
        second.go_on(monotonic() + 0.1, parts=["teaching"])
    assert num_rounds(lessons, variant) > 4
    assert lessons.value(variant.rules_hash, LESSON, 0) is not None


def test_matches_choose_among_several_variants(
    game: Game, variant: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value that explains most in its own game is the worst one here, because it is upside down."""
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
    for module in (course_module, rivals_module):  # with less, the choice is over before the last pass
        monkeypatch.setattr(module, "TRIAL_SECONDS", 0.0005)
    other = load("breakthrough:width=5,height=6,rows=2")
    (right,) = Relatives(other, lessons).variants()
    turned = {fact: tuple(-weight for weight in own) for fact, own in right.value.weights.items()}
    wrong = right.value._replace(weights=turned, determination=0.99)
    lessons.put(other, StoredLesson(2, 10, 1000, 1.0, wrong))
    assert [own.rules_hash for own in Relatives(variant, lessons).variants()] == [other.rules_hash, game.rules_hash]
    course = Course(variant, lessons)
    course.startclocks = [1]
    while course._is_selecting:
        assert course._spent["teaching"] == 0.0, "the teacher does not know with what to begin"
        assert course.go_on(monotonic() + 0.1)
    assert course.variant == game.rules_hash
    assert lessons.trials(variant.rules_hash) == [], "the choice is no test"


def test_of_two_values_of_a_variant_the_first_one_is_the_lesson(variant: Game, lessons: Lessons) -> None:
    """The second process has taught more when it stores, but with another value, which must not go on beside it."""
    first, second = Course(variant, lessons), Course(variant, lessons)
    assert second._variants is not None
    carried = second._variants[0]
    turned = carried.value._replace(constants=tuple(1.0 - constant for constant in carried.value.constants))
    second._variants, second._has_others = [carried._replace(value=turned)], False
    second.tuition = second._resumed()
    first.tuition.teach(monotonic() + 0.05)
    second.tuition.teach(monotonic() + 0.3)
    assert second.tuition.walks > first.tuition.walks
    assert first._store() is not None
    assert second._store() is None
    assert second._id == first._id
    assert first.snapshot is not None
    assert second.snapshot is not None
    assert second.snapshot.number == first.snapshot.number
    assert second.snapshot.value.constants == pytest.approx(first.snapshot.value.constants)


def test_a_lesson_without_a_value_begins_with_that_of_a_variant(game: Game, variant: Game, lessons: Lessons) -> None:
    """A short first match leaves such a lesson, perhaps before the store has a variant."""
    lessons.put(variant, StoredLesson(0, 4, 1000, 0.5, NOTHING))
    state = lessons.state(variant.rules_hash)
    first, second = Course(variant, lessons), Course(variant, lessons)
    assert first.variant == second.variant == game.rules_hash
    tuition = first.tuition
    first.refresh()
    assert first.tuition is tuition, "nothing is new in the store"
    assert first._store() is not None
    lesson = lessons.find(variant.rules_hash)
    assert lesson is not None
    assert state is not None
    assert (lesson.id, lesson.origin, lesson.snapshot) == (state[0], game.rules_hash, 0)
    second.go_on(monotonic() + 0.05, parts=["teaching"])
    second.store_lesson()
    first.refresh()
    assert first.tuition.walks >= 64
    assert first._id == second._id == state[0]


def test_a_lesson_without_a_value_goes_on_if_there_is_no_variant(game: Game, lessons: Lessons) -> None:
    course = Course(game, lessons)
    course.go_on(monotonic() + 0.01, parts=["teaching"])
    lesson = replace(course._present_lesson(), generation=0, value=NOTHING)
    lessons.put(game, lesson)
    again = Course(game, lessons)
    assert not again.variant
    assert again.tuition.walks == lesson.walks


def test_there_is_no_choice_without_trials(variant: Game, lessons: Lessons) -> None:
    course = Course(variant, lessons)
    assert course._variants is not None
    course._variants *= 2
    assert course._is_selecting
    assert course.go_on(monotonic() + 0.1, parts=["teaching"]), "the first variant is taken"
    course.startclocks = []
    assert not course._is_selecting, "without a startclock, there is no rival"


def test_the_choice_among_variants_ends(variant: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """If matches take too long, the first variant is taken."""
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
    monkeypatch.setattr(course_module, "_SELECTION_MOVES", 0)
    course = Course(variant, lessons)
    course.startclocks = [1]
    assert course._variants is not None
    course._variants *= 2
    assert course._is_selecting
    course._select(monotonic() + 0.01)
    assert not course._is_selecting
    assert course.variant


def test_a_choice_that_is_broken_off_is_stored(game: Game, variant: Game, lessons: Lessons) -> None:
    course = Course(variant, lessons)
    assert course._variants is not None
    course._variants *= 2
    assert course.store_lesson() is not None
    assert not course._is_selecting
    lesson = lessons.find(variant.rules_hash)
    assert lesson is not None
    assert (lesson.origin, lesson.walks) == (game.rules_hash, 0)


@pytest.mark.parametrize("is_blank", [False, True], ids=["new", "without a value"])
def test_two_processes_that_chose_other_variants_go_on_with_the_same_one(
    game: Game, variant: Game, lessons: Lessons, is_blank: bool
) -> None:
    other = load("breakthrough:width=5,height=6,rows=2")
    (right,) = Relatives(other, lessons).variants()
    lessons.put(other, StoredLesson(2, 10, 1000, 1.0, right.value))
    if is_blank:
        lessons.put(variant, StoredLesson(0, 4, 1000, 0.5, NOTHING))
    first, second = Course(variant, lessons), Course(variant, lessons)
    first._read_others()
    assert first._variants is not None
    second._variants, second._has_others = first._variants[::-1], False
    for course in (first, second):
        course.store_lesson()
    assert first.variant == second.variant
    assert first._id == second._id != ""


def test_a_choice_begins_anew_with_another_startclock(variant: Game, lessons: Lessons) -> None:
    course = Course(variant, lessons)
    course.prepare_for(10)
    course._selection = course_module._Selection({0: [0.5], 1: []})
    course.prepare_for(10)
    assert course._selection is not None
    course.prepare_for(1)
    assert course._selection is None


def test_the_worst_candidate_is_left_out_after_each_pass() -> None:
    selection = course_module._Selection({0: [], 1: [], 2: []})
    played = []
    for scores in ([0.5, 1.0], [0.75], [0.0, 0.5], [1.0], [0.5, 1.0], [1.0, 0.5]):
        played.append(selection.following)
        selection.rounds = SimpleNamespace(scores=scores)  # type: ignore[assignment]  # no matches are needed here
        selection.end_rounds()
    assert played == [0, 1, 2, 1, 0, 1]
    assert selection.scores == {1: [0.75, 1.0, 1.0, 0.5]}
    assert selection.best == 1
    assert course_module._Selection({0: [], 1: []}).best == 0


def test_the_state_that_is_tried_is_the_stored_one(game: Game, lessons: Lessons) -> None:
    """Another process has stored a generation of the same number before."""
    course = Course(game, lessons)
    course.go_on(monotonic() + 0.1, parts=["teaching"])
    course.store_lesson()
    other = Course(game, lessons)
    while other.tuition.generation <= course.tuition.generation:
        other.go_on(monotonic() + 0.05, parts=["teaching"])
    other.store_lesson()
    stored_before = lessons.find(game.rules_hash)
    assert stored_before is not None
    while course.tuition.walks <= other.tuition.walks:
        course.tuition.teach(monotonic() + 0.05)
    course.tuition._taught += 1.0
    course.store_lesson()
    assert course.snapshot is not None
    value = lessons.value(game.rules_hash, LESSON, course.snapshot.number)
    assert value is not None
    assert course.snapshot.value is not None
    assert tuple(course.snapshot.value.constants.tolist()) == value.constants


def test_the_same_game_under_other_names_has_the_same_lesson(game: Game, lessons: Lessons) -> None:
    course, _ = studied(game, lessons, until=lambda told: bool(lessons.generations(game.rules_hash)))
    assert course.snapshot is not None
    row = TrialRow(LESSON, course.snapshot.number, rival_name(1), 50, 45.0, 1.0, 20.0, -5.0)
    lessons.add_evidence(game, row, lambda _: row)
    sheet, renaming = scramble(game.rulesheet, np.random.default_rng(1))
    other = make(sheet, "other")
    assert other.rules_hash != game.rules_hash
    again = Course(other, lessons)
    assert again.snapshot is not None
    assert (again.snapshot.number, again.variant) == (course.snapshot.number, "")
    assert row in lessons.trials(other.rules_hash)
    assert len(again.book) == len(course.book) > 0
    own, theirs = (lessons.value(key, LESSON, row.number) for key in (game.rules_hash, other.rules_hash))
    assert own is not None
    assert theirs is not None
    assert {renaming.theirs(fact): weights for fact, weights in own.weights.items()} == theirs.weights
    assert lessons.pupils(other.rules_hash) == lessons.pupils(game.rules_hash)


def test_a_trial_that_was_chosen_for_another_lesson_is_not_played(game: Game, lessons: Lessons) -> None:
    course, _ = studied(game, lessons, until=lambda told: num_rounds(lessons, game) > 0)
    course._next_trial()
    assert course._following is not None
    other = Course(game, lessons, seed=1)
    while other.tuition.walks <= course.tuition.walks:
        other.go_on(monotonic() + 0.1, parts=["teaching"])
    other.store_lesson()
    course._stored_at = -1.0
    course.store_lesson()
    assert course.tuition.walks == other.tuition.walks
    assert course._following is None


def test_only_a_few_contests_are_under_way(game: Game, lessons: Lessons) -> None:
    """Each has a tree of 32 MiB."""
    course, _ = studied(game, lessons)
    for number in range(100, 110):
        plan = SearchPlan(None, GrowthSettings())
        course._advance(TrialRow(OPENINGS, number, WITHOUT), course._rivals.contest(plan, plan, [2]), 0.0)
        assert len(course._contests) <= 4


def test_two_courses_play_other_matches(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the same matches would count twice."""
    keys = {int(Course(game, lessons)._rivals.new_key()) for _ in range(10)}
    assert len(keys) == 10


def test_a_course_goes_on_from_what_another_process_has_stored(game: Game, lessons: Lessons) -> None:
    waiting = Course(game, lessons)
    assert waiting.tuition.walks == len(waiting.book) == 0
    course, _ = studied(game, lessons)
    assert waiting.tuition.walks == len(waiting.book) == 0
    waiting.refresh()
    assert waiting.tuition.walks == course.tuition.walks
    assert len(waiting.book) == len(course.book) > 0
    assert waiting.snapshot is not None
    assert course.snapshot is not None
    assert waiting.snapshot.number == course.snapshot.number
    tuition = waiting.tuition
    waiting.refresh()
    assert waiting.tuition is tuition, "nothing is new"


def test_a_lesson_that_was_deleted_does_not_come_back(game: Game, lessons: Lessons) -> None:
    """Neither in the next match, nor in the midst of a study: teaching begins anew."""
    for refreshes in (True, False):
        course, _ = studied(game, lessons)
        assert min(course.tuition.walks, len(course.book)) > 0
        assert course._id
        lessons.delete(game.rules_hash)
        if refreshes:
            course.refresh()
        else:
            course._stored_at = -1.0  # as if it had taught since
            assert course.store_lesson() is None
        assert (course._id, course.tuition.walks, course.snapshot, len(course.book)) == ("", 0, None, 0)
        assert lessons.find(game.rules_hash) is None


def test_a_value_in_use_is_read_once_and_made_when_it_is_needed(
    game: Game, lessons: Lessons, made: list[StoredValue]
) -> None:
    studied(game, lessons, until=lambda told: bool(lessons.generations(game.rules_hash)))
    made.clear()
    course = Course(game, lessons)
    newest = course.snapshot
    assert newest is not None
    assert made == []
    assert newest.value is newest.value
    assert len(made) == 1
    assert course.stored_snapshot(LESSON, newest.number) is newest
    assert course.stored_snapshot(LESSON, newest.number + 1) is None
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    value = lesson.value._replace(constants=tuple(constant + 0.25 for constant in lesson.value.constants))
    lessons.put(game, replace(lesson, id="another", walks=lesson.walks + 1, value=value), replaces=lesson.id)
    course.refresh()
    other = course.stored_snapshot(LESSON, newest.number)
    assert other is not None
    assert other.value is not None
    assert newest.value is not None
    assert np.allclose(other.value.constants, newest.value.constants + 0.25), "another process has begun anew"
    lessons.delete(game.rules_hash)
    course.refresh()
    assert course.stored_snapshot(LESSON, newest.number) is None, "another process has deleted it"


def test_a_value_that_nothing_uses_is_forgotten(game: Game, lessons: Lessons) -> None:
    lessons.add_rival(game, rival_name(1), 0, 0.0, NOTHING)
    course = Course(game, lessons)
    snapshot = course.stored_snapshot(rival_name(1), 0)
    assert snapshot is not None
    assert (rival_name(1), 0) in course._snapshots
    del snapshot
    assert (rival_name(1), 0) not in course._snapshots


def test_the_trial_of_playouts_is_not_begun_anew(game: Game, lessons: Lessons) -> None:
    """While a trial runs, the walks of the lesson stand still; nothing new is stored, and nothing is lost."""
    course, _ = studied(game, lessons)
    course._stored_at = -1.0
    tuition = course.tuition
    assert course.store_lesson() is None
    assert course.tuition is tuition


def test_generations_of_large_games_are_stored(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_module, "MOST_BYTES", 1000)
    course, _ = studied(game, lessons)
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert lesson.generation == course.tuition.generation > 1
    assert lesson.progress == b""
    again = Course(game, lessons)
    assert again.tuition.generation == lesson.generation
    assert again.tuition.walks == lesson.walks


def test_openings_are_searched_as_soon_as_teaching_has_ended(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends early where values explain hardly anything; a study of such a game ended with it, without a trial."""
    monkeypatch.setattr(course_module, "_OPENINGS_FROM", 1e9)
    course = Course(game, lessons)
    course.go_on(monotonic() + 0.3)
    assert not course.book
    monkeypatch.setattr(Tuition, "is_done", True)
    course.go_on(monotonic() + 0.3)
    assert course.book


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

    def counting(self: Lessons, game: Game, lesson: StoredLesson, replaces: str) -> Stored:
        stored.append(lesson)
        return put(self, game, lesson, replaces)

    monkeypatch.setattr(Lessons, "put", counting)
    monkeypatch.setattr(course_module, "_BETWEEN", 10.0)
    course = Course(game, lessons)
    for _ in range(50):
        course.go_on(monotonic() + 0.005)
    num_generations = course.tuition.generation
    assert len(stored) <= num_generations
    course.store_lesson()
    assert len(stored) <= num_generations + 1
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert lesson.walks == course.tuition.walks


# knobs


@pytest.fixture
def proved(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> TrialRow:
    """A lesson whose newest state says something, and has passed its test against the rival that is tried here."""
    monkeypatch.setattr(rivals_module.Rivals, "_new_rival", ignorant)
    course = Course(game, lessons)
    while course.snapshot is None or not course_module._differs(course.snapshot):
        course.go_on(monotonic() + 0.1, parts=["teaching"])
        course.store_lesson()
    row = TrialRow(LESSON, course.snapshot.number, rival_name(1), 400, 300.0, 1.0, 30.0, 0.0)
    lessons.add_evidence(game, row, lambda _: row)
    return row


def knob_rows(lessons: Lessons, game: Game) -> list[TrialRow]:
    return [row for row in lessons.trials(game.rules_hash) if row.advice in KNOBS]


def knob_trials(game: Game, lessons: Lessons) -> list[TrialRow]:
    """Return the trial of a knob with which a course in the game would go on, after it has described the game."""
    course = Course(game, lessons)
    course.startclocks = [1]
    course._ledger.describe(monotonic() + 60)
    rows = lessons.trials(game.rules_hash)
    return list(course._open_trials(rows, course._knob_trials(rows)))[:1]


def test_knobs_are_tried_in_the_order_of_the_ledger(game: Game, lessons: Lessons, proved: TrialRow) -> None:
    """In many games with the same descriptors, all knobs won, but some won by more."""
    own, order = descriptors(game), sorted(KNOBS, reverse=True)
    sheets = [parse(f"(role r{n}) (init s) (<= terminal (true s)) (goal r{n} 0) (legal r{n} m)") for n in range(100)]
    for number, sheet in enumerate(sheets):
        other = OtherGame(sheet.rules_hash, "other", sheet.roles, sheet)
        lesson = StoredLesson(1, 10, 1000, 1.0, NOTHING, id=f"x{number}")
        trials = [TrialRow(knob, 1, WITHOUT, 1000, 900.0 - 50 * place) for place, knob in enumerate(order)]
        lessons.add([(other, KeptLesson(lesson, {}, {}, [], trials, own))])
    assert [row[:3] for row in knob_trials(game, lessons)] == [(order[0], 0, WITHOUT)]
    lost = TrialRow(order[0], 0, WITHOUT, 399, 100.0, 1.0, 0.0, 0.0)
    lessons.add_evidence(game, lost, lambda _: lost)
    assert [row[:3] for row in knob_trials(game, lessons)] == [(order[1], 0, WITHOUT)]
    assert lessons.described()[game.rules_hash] == own


def test_openings_are_tried_with_the_state_that_has_passed(game: Game, lessons: Lessons, proved: TrialRow) -> None:
    """That is what they are used with, even if the lesson has newer states."""
    course = Course(game, lessons)
    course._chosen_trial(lessons.trials(game.rules_hash))
    assert course._tuned is not None
    assert course._tuned.number == proved.number
    course.snapshot = replace(course._tuned, number=proved.number + 1, restore=lambda: None)
    rounds = course._rounds(TrialRow(OPENINGS, course.book_state, WITHOUT), monotonic())
    assert rounds is not None
    assert course._tuned.value is not None
    for side in rounds.sides:
        assert side.grower.prior.visits == course._tuned.value.prior(course._tuned.growth).visits > 0


def test_no_other_knob_is_tried_once_one_has_passed(game: Game, lessons: Lessons, proved: TrialRow) -> None:
    won = TrialRow("playouts=1", 0, WITHOUT, 100, 90.0, 1.0, 30.0, 0.0)
    lessons.add_evidence(game, won, lambda _: won)
    assert knob_trials(game, lessons) == []


def test_knobs_are_tried_only_with_a_state_that_has_passed(game: Game, lessons: Lessons, proved: TrialRow) -> None:
    assert len(knob_trials(game, lessons)) == 1
    for row in lessons.trials(game.rules_hash):
        lessons.add_evidence(game, row, lambda own: own._replace(better=0.0))
    assert knob_trials(game, lessons) == []


def test_a_game_is_described_in_small_pieces_before_knobs_are_tried(
    game: Game, lessons: Lessons, proved: TrialRow
) -> None:
    course = Course(game, lessons)
    course.startclocks = [1]
    num_calls = 0
    while not knob_rows(lessons, game):
        assert course.go_on(monotonic() + 0.005, parts=["trials"])
        num_calls += not lessons.described()
    assert num_calls > 1
    assert lessons.described()[game.rules_hash] == descriptors(game)


def test_the_two_sides_of_a_trial_of_a_knob(game: Game, lessons: Lessons, proved: TrialRow) -> None:
    """The value is that of the state that has passed, also if there are newer ones."""
    course, _ = studied(
        game, lessons, until=lambda told: lessons.generations(game.rules_hash)[-1].number > proved.number
    )
    trial = TrialRow("exploration=0.25", 0, WITHOUT)
    course._tuned = None
    list(course._knob_trials(lessons.trials(game.rules_hash)))
    rounds = course._rounds(trial, monotonic() + 60)
    assert rounds is not None
    own, other = rounds.sides
    assert (own.growth.exploration, other.growth.exploration) == (0.25, 0.5)
    assert replace(own.growth, exploration=0.5) == other.growth
    value = lessons.value(game.rules_hash, LESSON, proved.number)
    assert value is not None
    expected = restored_value(game, value)
    assert expected is not None
    for side in (own, other):
        assert np.array_equal(side.grower.prior.tables, expected.prior(side.growth).tables)


def test_lessons_openings_and_knobs_take_turns(game: Game, lessons: Lessons, proved: TrialRow) -> None:
    """A lesson with many rounds does not wait for a knob with none, nor the other way round."""
    newer = TrialRow(LESSON, proved.number, rival_name(10), 200, 100.0, 50.0, 0.0, 0.0)
    lessons.add_evidence(game, newer, lambda _: newer)
    course = Course(game, lessons)
    course.startclocks = [1, 10]
    course._ledger.describe(monotonic() + 60)
    assert course.snapshot is not None
    course.snapshot = replace(course.snapshot, seconds=1000.0)
    advice = []
    for _ in range(10):
        trial = course._chosen_trial(lessons.trials(game.rules_hash))
        assert trial is not None
        advice.append("knob" if trial.advice in KNOBS else trial.advice)
        course._turn += 1
    between = [OPENINGS] if len(course.book) else []
    assert advice == ([LESSON, LESSON, *between, LESSON, LESSON, "knob"] * 2)[:10]


# opponents


def test_a_course_compares_the_opponents_of_matches(lessons: Lessons) -> None:
    game = load("tictactoe")
    match = MatchState.after(PositionGraph(game), [["(mark 1 1)", "noop"], ["noop", "(mark 1 2)"]], max_plies=2)
    lessons.add_match(game, PlayedMatch("a", 0, 5, match.record("", ("", "")).moves, (50, 50)))
    course = Course(game, lessons, opponents={"random": player("random"), "weak": player("weak")})
    course.startclocks = []
    end = monotonic() + 60
    while not lessons.fits(game.rules_hash, 0) and monotonic() < end:
        course.go_on(monotonic() + 0.2)
    assert list(lessons.fits(game.rules_hash, 0)) == [(0, 1)]
    (fits,) = lessons.fits(game.rules_hash, 0).values()
    assert [fit.player for fit in fits] == ["random", "weak"]
    assert fits[0].log == pytest.approx(log(1 / 8))
