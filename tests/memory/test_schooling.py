"""What a player plays with in its first matches of a game, and what it leaves in the store for the next ones."""

import contextlib
import logging
import sqlite3
from dataclasses import replace
from time import monotonic, process_time, sleep

import numpy as np
import pytest

from gamelore import Game, KnowledgeError
from gamelore.analysis.isomorphism import scramble
from gamelore.game.game import make
from gamelore.learning.store import schema
from gamelore.learning.store.lesson_rows import LESSON, OPENINGS, WITHOUT, Lessons, TrialRow
from gamelore.learning.store.taught_rows import StoredValue
from gamelore.memory import course as course_module
from gamelore.memory import rivals as rivals_module
from gamelore.memory import schooling as schooling_module
from gamelore.memory import tuition as tuition_module
from gamelore.memory.advice import rival_name
from gamelore.memory.schooling import GameMemory, MatchMemory
from gamelore.search.proofs import first_assumption
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.startclock import Pupil
from gamelore.search.teaching import Teacher
from gamelore.search.value import LinearValue

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)
PROVED = TrialRow(LESSON, 0, rival_name(1), 50, 45.0, 1.0, 20.0, -5.0)
"""Evidence that no test doubts."""


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (course_module, rivals_module, tuition_module):
        monkeypatch.setattr(module, "TeachingSettings", lambda simulations=1 << 60: QUICK)


def memory_of(game: Game, lessons: Lessons) -> GameMemory:
    return GameMemory(game, lessons, 0)


def match(memory: GameMemory, startclock: float = 1.0) -> MatchMemory:
    """Let a memory use a fifth of a startclock, in CPU time, and end the match as if all of it had been used."""
    own = memory.begin(startclock)
    teach(own, startclock / 5)
    own._seconds += startclock
    own.end()
    return own


def teach(own: MatchMemory, seconds: float) -> None:
    """Let a match use some seconds, in CPU time, and a new teacher as many as it takes to end a generation."""
    end = process_time() + seconds
    while not own.is_done and (process_time() < end or (own._fresh is not None and own._fresh.teacher.generation < 1)):
        own.teach(monotonic() + 0.02)


def rivals(lessons: Lessons, game: Game, startclock: int) -> list[StoredValue]:
    return [taught.value for taught in lessons.taught(game.rules_hash, rival_name(startclock))]


def prove(lessons: Lessons, game: Game, **changes: float) -> int:
    """Add evidence for the newest state of the lesson; return its number."""
    number = lessons.taught(game.rules_hash, LESSON)[-1].number
    row = PROVED._replace(number=number, **changes)
    lessons.add_evidence(game, row, lambda _: row)
    return number


def same(value: LinearValue | None, taught: StoredValue) -> bool:
    assert value is not None
    return tuple(value.constants.tolist()) == taught.constants


def test_the_first_match_gives_a_lesson_and_a_rival(game: Game, lessons: Lessons) -> None:
    own = match(memory_of(game, lessons))
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    assert lesson.walks > 0
    (rival,) = rivals(lessons, game, 1)
    assert same(own.value, rival)
    own.end()
    assert len(rivals(lessons, game, 1)) == 1, "the end of a match may be told twice"


def test_generations_of_the_first_match_are_stored_at_once(game: Game, lessons: Lessons) -> None:
    """A process that is killed later, while the match runs, has lost nothing."""
    own = memory_of(game, lessons).begin(60.0)
    for _ in range(100):
        own.teach(monotonic() + 0.02)
        if len(lessons.generations(game.rules_hash)) > 1:
            break
    assert len(lessons.generations(game.rules_hash)) > 1


def test_a_startclock_that_was_cut_short_gives_no_rival(game: Game, lessons: Lessons) -> None:
    own = memory_of(game, lessons).begin(5.0)
    own.teach(monotonic() + 0.2)
    own.end()
    assert lessons.find(game.rules_hash) is not None
    assert rivals(lessons, game, 5) == []


def test_a_startclock_on_a_busy_machine_gives_no_rival(game: Game, lessons: Lessons) -> None:
    """Matches of a process share its time, too."""
    own = memory_of(game, lessons).begin(1.0)
    own.teach(monotonic() + 0.1)
    sleep(1.0)
    own.teach(monotonic() + 0.1)
    own.end()
    assert own.value is not None
    assert lessons.find(game.rules_hash) is not None
    assert rivals(lessons, game, 1) == []


def test_a_lesson_is_not_tried_against_what_a_busy_machine_has_taught(
    variant: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schooling_module, "_LONG", 1)
    own = memory_of(variant, lessons).begin(1.0)
    own.teach(monotonic() + 0.1)
    sleep(1.0)
    own.teach(monotonic() + 0.1)
    assert lessons.trials(variant.rules_hash) == []
    assert not own._was_tried


def test_the_time_of_the_solver_belongs_to_the_startclock(game: Game, lessons: Lessons) -> None:
    """A player without memory lacks it, too."""
    own = memory_of(game, lessons).begin(1.0)
    own.teach(monotonic() + 0.1)
    own.solved += 0.9
    own.end()
    assert len(rivals(lessons, game, 1)) == 1


def test_the_next_match_is_played_with_the_rival_while_the_lesson_goes_on(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    before, (rival, *_) = lessons.find(game.rules_hash), rivals(lessons, game, 1)
    own = match(memory_of(game, lessons))
    after = lessons.find(game.rules_hash)
    assert before is not None
    assert after is not None
    assert after.walks > before.walks
    assert own.verdicts[LESSON] == "open"
    assert own.snapshot is None
    assert same(own.value, rival)


def test_a_lesson_that_passed_its_test_is_used_while_it_goes_on(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    number = prove(lessons, game)
    before = lessons.find(game.rules_hash)
    assert memory_of(game, lessons).begin(1.0).verdicts == {LESSON: "taken", OPENINGS: "open"}
    own = match(memory_of(game, lessons))
    after = lessons.find(game.rules_hash)
    assert before is not None
    assert after is not None
    assert after.walks > before.walks
    assert (own.snapshot, own.openings) == (number, None)
    assert same(own.value, before.value), "the state that passed, not what it has become since then"


def test_a_match_begins_with_the_state_that_it_uses_and_no_other(
    game: Game, lessons: Lessons, made: list[StoredValue]
) -> None:
    """All else of a lesson takes time that the startclock may have no use for."""
    match(memory_of(game, lessons))
    first = prove(lessons, game)
    while lessons.taught(game.rules_hash, LESSON)[-1].number == first:
        match(memory_of(game, lessons))
    made.clear()
    memory = memory_of(game, lessons)
    own = memory.begin(1.0)
    assert own.snapshot == first
    assert own.value is not None
    assert own.assumption == first_assumption(game, GrowthSettings().max_plies)
    own._decide()
    assert len(made) == 1
    assert same(own.value, made[0])
    assert memory.course.tuition._present is None
    teach(own, 0.1)
    assert memory.course.tuition._present is not None


def test_a_test_in_the_startclock_decides_at_once(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The match begins with a rival, and is played with the lesson that passes before the first move."""
    match(memory_of(game, lessons))
    monkeypatch.setattr(course_module, "_LONGER", 0.1)
    own = memory_of(game, lessons).begin(1.0)
    assert own.snapshot is None
    number = prove(lessons, game)
    before = lessons.trials(game.rules_hash)
    while lessons.trials(game.rules_hash) == before:  # a test of the openings, or of a newer state
        own.teach(monotonic() + 0.1)
    assert own.snapshot == number
    assert f"lesson taken: 90% of 50 rounds against {rival_name(1)}" in own.about


def test_a_teacher_that_ends_early_gives_a_rival(game: Game, lessons: Lessons) -> None:
    own = memory_of(game, lessons).begin(4.0)
    assert own._fresh is not None
    fresh = own._fresh.teacher
    while fresh._grower.prior.visits < 3:  # with fewer, a trial of informed playouts would follow
        own.teach(monotonic() + 0.2)
    fresh._has_taught = True
    fresh._end_lessons()
    own.end()
    assert fresh.is_done
    assert len(rivals(lessons, game, 4)) == 1


def test_a_rival_has_the_playouts_of_its_teacher(game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """A player without memory uses informed playouts as soon as they are ahead, before their trial ends."""
    monkeypatch.setattr(Teacher, "growth", GrowthSettings(informed=0.5))
    match(memory_of(game, lessons))
    (rival,) = rivals(lessons, game, 1)
    assert rival.informed == 0.5
    assert memory_of(game, lessons).begin(1.0).growth.informed == 0.5


def test_the_newest_state_that_passed_is_used(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    number = prove(lessons, game)
    while lessons.taught(game.rules_hash, LESSON)[-1].number == number:
        match(memory_of(game, lessons))
    own = memory_of(game, lessons).begin(1.0)
    assert own.verdicts[LESSON] == "open", "that of the newest state"
    assert own.snapshot == number
    newest = lessons.taught(game.rules_hash, LESSON)[-1].number
    said = f"state {number} of the lesson (lesson taken: 90% of 50 rounds against {rival_name(1)}; "
    assert f"{said}state {newest} of the lesson open: " in own.about
    value = lessons.value(game.rules_hash, LESSON, number)
    assert value is not None
    assert same(own.value, value)


def test_a_running_process_takes_what_another_one_has_proved(game: Game, lessons: Lessons) -> None:
    serving = memory_of(game, lessons)
    match(serving)
    match(memory_of(game, lessons), 2.0)
    prove(lessons, game)
    newest = lessons.taught(game.rules_hash, LESSON)[-1].value
    assert same(serving.begin(1.0).value, newest)


def test_matches_that_overlap_do_not_change_each_other(game: Game, lessons: Lessons) -> None:
    """The first match ends while the second one learns: this goes on, and plays with what itself has learned."""
    memory = memory_of(game, lessons)
    first, second = memory.begin(1.0), memory.begin(1.0)
    first.teach(monotonic() + 0.3)
    second.teach(monotonic() + 0.1)
    value = second.value
    first.end()
    assert second.value is value
    second.teach(monotonic() + 0.1)
    assert second.value is not None
    third = memory.begin(60.0)
    assert second.startclock == 1
    third.teach(monotonic() + 0.2)
    assert third.value is not second.value


def test_evidence_against_a_short_startclock_is_not_enough_for_a_long_one(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    prove(lessons, game)
    own = memory_of(game, lessons).begin(2.0)
    assert own.verdicts[LESSON] == "open"
    assert own.value is None, "without a rival of 2 seconds, the player learns as one without memory does"
    own.teach(monotonic() + 0.2)
    assert own.value is not None


def test_a_refused_lesson_is_not_used(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    prove(lessons, game, total=5.0, better=-5.0, worse=20.0)
    own = memory_of(game, lessons).begin(1.0)
    assert own.verdicts[LESSON] == "refused"
    assert same(own.value, rivals(lessons, game, 1)[0])


def test_openings_that_passed_their_test_are_used(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    row = PROVED._replace(advice=OPENINGS, against=WITHOUT)
    lessons.add_evidence(game, row, lambda _: row)
    own = memory_of(game, lessons).begin(1.0)
    assert own.verdicts[OPENINGS] == "taken"
    assert own.openings is not None
    assert own.openings is not own._memory.course.book, "the book may grow while the match is played"


def test_without_a_startclock_only_tested_advice_counts(game: Game, lessons: Lessons) -> None:
    memory = memory_of(game, lessons)
    own = memory.begin(None)
    assert own.value is None
    own.end()
    assert lessons.find(game.rules_hash) is None
    match(memory)
    assert memory.begin(None).value is None
    prove(lessons, game)
    own = memory.begin(None)
    assert own.verdicts[LESSON] == "taken"
    assert own.value is not None


def test_informed_playouts_go_with_the_state_of_the_lesson(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    lessons.put(game, replace(lesson, value=lesson.value._replace(informed=0.5)))
    assert memory_of(game, lessons).begin(1.0).growth.informed is None
    prove(lessons, game)
    assert memory_of(game, lessons).begin(1.0).growth.informed == 0.5


def test_a_store_that_cannot_be_written_stops_no_match(
    game: Game, lessons: Lessons, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lesson that passed is played, and nothing more is stored."""

    def full(*given: object, **options: object) -> None:
        raise KnowledgeError("the disk is full")

    match(memory_of(game, lessons))
    prove(lessons, game)
    memory = memory_of(game, lessons)
    for name in ("put", "add_rival", "add_evidence", "put_opening"):
        monkeypatch.setattr(Lessons, name, full)
    with caplog.at_level(logging.WARNING):
        own = match(memory)
    assert "the disk is full" in caplog.text
    assert own.verdicts[LESSON] == "taken"
    assert own.value is not None


@pytest.mark.parametrize("part", ["is_full", "trials", "state"])
def test_a_store_that_cannot_be_read_costs_no_match(
    game: Game, lessons: Lessons, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The player that has the game in memory learns in its startclock, and stores nothing."""

    def broken(*_: object) -> None:
        raise KnowledgeError("the disk is broken")

    memory = memory_of(game, lessons)
    monkeypatch.setattr(Lessons, part, property(broken) if part == "is_full" else broken)
    with caplog.at_level(logging.WARNING):
        own = match(memory, 0.5)
    assert "the disk is broken" in caplog.text
    assert own.value is not None
    monkeypatch.undo()
    assert lessons.find(game.rules_hash) is None


def test_a_store_that_fails_ends_the_lesson_of_a_startclock(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_of(game, lessons)
    match(memory)
    own = memory.begin(1.0)
    assert not own.is_done

    def broken(_: object) -> bool:
        raise KnowledgeError("the disk is broken")

    monkeypatch.setattr(course_module.Course, "is_done", property(broken))
    assert own.is_done


def test_the_first_lesson_of_two_processes_is_that_of_one_of_them(game: Game, lessons: Lessons) -> None:
    """The other one stores what it has learned as a rival."""
    first, second = (GameMemory(game, lessons, seed).begin(1.0) for seed in (1, 2))
    for own in (first, second):
        teach(own, 0.2)
        own._seconds += 1.0
    first.end()
    before = lessons.find(game.rules_hash)
    second.end()
    assert lessons.find(game.rules_hash) == before
    assert len(rivals(lessons, game, 1)) == 2


def test_a_lesson_that_was_deleted_does_not_come_back_in_place_of_another_one(game: Game, lessons: Lessons) -> None:
    memory = memory_of(game, lessons)
    match(memory)
    memory.course.refresh()
    own = memory.begin(1.0)
    lessons.delete(game.rules_hash)
    match(memory_of(game, lessons), 0.3)
    other = lessons.state(game.rules_hash)
    assert other is not None
    end = process_time() + 0.5
    while process_time() < end:
        own.teach(monotonic() + 0.02)
    own.end()
    after = lessons.state(game.rules_hash)
    assert after is not None
    assert after[0] == other[0]


def test_openings_are_tried_with_what_matches_are_played_with(game: Game, lessons: Lessons) -> None:
    """Until a state of the lesson has passed, this is what a startclock has taught."""
    match(memory_of(game, lessons))
    course = memory_of(game, lessons).course
    course.prepare_for(1)
    trial = TrialRow(OPENINGS, course.book_state, WITHOUT)
    for is_proved in (False, True):
        state = prove(lessons, game) if is_proved else None
        course._chosen_trial(lessons.trials(game.rules_hash))
        rounds = course._rounds(trial, monotonic() + 5.0)
        assert rounds is not None
        (taught,) = rivals(lessons, game, 1) if state is None else lessons.taught(game.rules_hash, LESSON, state)
        stored_value = taught if state is None else taught.value
        constants = {tuple(side.grower.prior.constants.tolist()) for side in rounds.sides}
        assert constants == {stored_value.constants}
        assert [side.openings is not None for side in rounds.sides] == [True, False]


def test_a_locked_store_keeps_no_match_waiting(game: Game, lessons: Lessons, caplog: pytest.LogCaptureFixture) -> None:
    """A writer that takes its time, as an import, costs a fifth of a second of the startclock."""
    memory = memory_of(game, lessons)
    match(memory)
    own = memory.begin(1.0)
    with contextlib.closing(sqlite3.connect(lessons.knowledge.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        memory.course._stored_at = -100.0  # so that it is time to store
        begin = monotonic()
        with caplog.at_level(logging.WARNING):
            own.teach(begin + 0.5)
        assert monotonic() - begin < schema.BUSY_SECONDS / 2
        writer.execute("ROLLBACK")
    assert "locked the store" in caplog.text
    assert own.value is not None
    before, later = lessons.find(game.rules_hash), memory.begin(1.0)
    later.teach(monotonic() + 0.5)
    later.end()
    after = lessons.find(game.rules_hash)
    assert before is not None
    assert after is not None
    assert after.walks > before.walks, "the next match stores again"


def test_a_full_store_gets_no_more(game: Game, lessons: Lessons) -> None:
    own = match(memory_of(game, Lessons(lessons.knowledge, quota=10)))
    assert own.value is not None
    assert lessons.find(game.rules_hash) is None
    assert rivals(lessons, game, 1) == []


# variants


def test_a_lesson_begins_with_the_value_of_a_variant(game: Game, variant: Game, lessons: Lessons) -> None:
    own = match(memory_of(variant, lessons))
    assert not lessons.trials(variant.rules_hash), "a second has no room for trials"
    assert same(own.value, rivals(lessons, variant, 1)[0]), "it plays as without a memory"
    own = memory_of(variant, lessons).begin(1.0)
    while not lessons.trials(variant.rules_hash):
        own.teach(monotonic() + 0.05)
    own.end()
    assert own.snapshot in (None, 0)
    lesson = lessons.find(variant.rules_hash)
    assert lesson is not None
    assert (lesson.origin, lesson.likeness) == (game.rules_hash, 1.0)
    (row,) = lessons.trials(variant.rules_hash)
    assert row[:3] == (LESSON, 0, rival_name(1))
    assert row.num >= 4
    spent = own._memory.course._spent
    assert 20 * spent["trials"] > spent["teaching"], "before a decision, nothing else can be used"
    match(memory_of(variant, lessons))
    after = lessons.find(variant.rules_hash)
    assert after is not None
    assert after.walks > lesson.walks
    assert (after.origin, after.id) == (lesson.origin, lesson.id)


def test_the_value_of_a_variant_is_used_if_it_is_better(
    variant: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the first startclock counts as a long one, and brings the proof: the rest of it has taught nothing."""
    monkeypatch.setattr(schooling_module, "_LONG", 1)
    memory = memory_of(variant, lessons)
    own = memory.begin(1.0)
    own._seconds += 1.0
    while not lessons.trials(variant.rules_hash):
        own.teach(monotonic() + 0.1)
    while own.snapshot is None:
        (before,) = lessons.trials(variant.rules_hash)
        end = process_time() + 1.0
        while own.snapshot is None and process_time() < end:
            own.teach(monotonic() + 0.1)
        (after,) = lessons.trials(variant.rules_hash)
        assert after.num > before.num
    assert own.snapshot == 0
    assert memory.course.snapshot is not None
    assert memory.course.snapshot.value is not None
    assert own.value is not None
    assert own.value.constants.tolist() == memory.course.snapshot.value.constants.tolist()
    assert own.verdicts[LESSON] == "taken"
    own.end()
    assert rivals(lessons, variant, 1) == [], "what was learned in a part of a startclock is no rival"
    again = memory_of(variant, lessons).begin(1.0)
    assert again.snapshot == 0
    assert again.value is not None
    assert memory_of(variant, lessons).begin(10.0).snapshot is None, "nothing is known about longer startclocks"


def test_a_long_startclock_tries_a_variant_once(
    variant: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a whole startclock makes a rival, so that the lesson goes on in the ones after it."""
    monkeypatch.setattr(schooling_module, "_LONG", 1)
    memory = memory_of(variant, lessons)
    own = memory.begin(1.0)
    own._seconds += 0.85
    while not lessons.trials(variant.rules_hash):
        own.teach(monotonic() + 0.05)
    own.end()
    assert rivals(lessons, variant, 1) == []
    row = lessons.trials(variant.rules_hash)[0]
    lessons.add_evidence(variant, row, lambda old: old._replace(better=0.0, worse=0.0))
    match(memory_of(variant, lessons))
    assert len(rivals(lessons, variant, 1)) == 1


def test_a_lesson_is_not_tried_while_the_network_of_the_startclock_is(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    match(memory_of(game, lessons))
    monkeypatch.setattr(schooling_module, "_LONG", 1)
    monkeypatch.setattr(Pupil, "is_deciding", True)
    own = memory_of(game, lessons).begin(2.0)
    own._seconds += 1.9
    assert own._has_candidate
    own.teach(monotonic() + 0.1)
    assert own._fresh is not None
    assert own._fresh.simulations > 0
    assert lessons.trials(game.rules_hash) == []


def test_the_value_of_a_useless_variant_is_not_used(game: Game, variant: Game, lessons: Lessons) -> None:
    lesson = lessons.find(game.rules_hash)
    assert lesson is not None
    worse = {fact: tuple(-weight for weight in own) for fact, own in lesson.value.weights.items()}
    lessons.delete(game.rules_hash)
    lessons.put(game, replace(lesson, id="", value=lesson.value._replace(weights=worse)))
    memory = memory_of(variant, lessons)
    assert [match(memory).snapshot for _ in range(3)] == [None] * 3
    (row,) = (row for row in lessons.trials(variant.rules_hash) if row.number == 0)
    assert row.total < 0.5 * row.num


def test_a_player_that_does_not_learn_has_no_use_for_a_variant(variant: Game, lessons: Lessons) -> None:
    memory = GameMemory(variant, lessons, 0, learns=False)
    own = match(memory, 0.5)
    assert own.snapshot is None
    assert own.value is not None
    assert lessons.find(variant.rules_hash) is None


@pytest.mark.parametrize("learns", [False, True])
def test_a_store_that_is_only_read_knows_the_game_under_other_names(game: Game, lessons: Lessons, learns: bool) -> None:
    """A player that does not learn cannot copy the lesson into the store, nor can another one into a full store."""
    match(memory_of(game, lessons))
    number, matches = prove(lessons, game), lessons.num_matches(game.rules_hash, 0)
    sheet, renaming = scramble(game.rulesheet, np.random.default_rng(1))
    other = make(sheet, "other")
    memory = GameMemory(other, Lessons(lessons.knowledge, quota=1 if learns else None), 0, learns=learns)
    own = match(memory, 1.0)
    assert own.snapshot == number
    expected = lessons.value(game.rules_hash, LESSON, number)
    assert expected is not None
    assert own.value is not None
    white, theirs = game.roles.index("white"), other.roles.index(renaming.theirs("white"))
    assert own.value.constants[theirs] == expected.constants[white]
    assert lessons.find(other.rules_hash) is None
    assert lessons.num_matches(game.rules_hash, 0) == matches


def test_a_knob_is_used_with_a_state_that_has_passed(game: Game, lessons: Lessons) -> None:
    match(memory_of(game, lessons))
    number = prove(lessons, game)
    row = TrialRow("exploration=0.25", 0, WITHOUT, 100, 90.0, 1.0, 30.0, 0.0)
    lessons.add_evidence(game, row, lambda _: row)
    own = memory_of(game, lessons).begin(1.0)
    assert (own.snapshot, own.knob) == (number, "exploration=0.25")
    assert own.growth == GrowthSettings(exploration=0.25)
    assert own.about.startswith(f"state {number} of the lesson and exploration=0.25 (lesson taken: ")
    other = memory_of(game, lessons).begin(30.0)
    assert (other.snapshot, other.knob) == (None, None), "the lesson has not passed for a startclock of 30 s"
    assert other.growth == GrowthSettings()
    lessons.add_evidence(game, row, lambda _: row._replace(better=0.0))
    assert memory_of(game, lessons).begin(1.0).knob is None
    lessons.add_evidence(game, row, lambda _: row)
    own = memory_of(game, lessons).begin(1.0)
    lessons.add_evidence(game, PROVED._replace(number=number), lambda old: old._replace(better=0.0))
    own._decide()
    assert (own.snapshot, own.knob) == (None, None), "a knob goes with a lesson"
