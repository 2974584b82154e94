"""Lessons in the store: what is stored comes back, two processes do not undo each other, and evidence adds up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gamelore import Game, KnowledgeError, load
from gamelore.analysis.variants import rule_shapes
from gamelore.errors import DamagedLessonError
from gamelore.gdl.syntax import parse
from gamelore.learning.store import lesson_rows
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import (
    LESSON as PUPIL,
)
from gamelore.learning.store.lesson_rows import LedgerRow, Lessons, OpeningMove, PlayedMatch, StoredLesson, TrialRow
from gamelore.learning.store.taught_rows import NOTHING, GenerationRow, StoredNetwork, StoredValue, Taught

VALUE = StoredValue(0.5, 0.75, None, (0.5, 0.25), {"(cell 1 1 x)": (0.125, 0.0), "(control xplayer)": (-0.5, 0.25)})
LESSON = StoredLesson(2, 40, 1_750_000, 4.5, VALUE, b"\x00progress")


def test_a_lesson_comes_back(lessons: Lessons) -> None:
    game = load("tictactoe")
    assert lessons.find(game.rules_hash) is lessons.state(game.rules_hash) is None
    assert lessons.put(game, LESSON) == "stored"
    back = lessons.find(game.rules_hash)
    assert back is not None
    assert back.version
    assert back.created == back.updated != ""
    assert replace(back, id="", version="", created="", updated="") == LESSON
    assert lessons.state(game.rules_hash) == (back.id, LESSON.walks)
    assert lessons.find(load("connect3").rules_hash) is None


def test_the_shapes_and_the_variant_of_a_lesson_are_stored(lessons: Lessons) -> None:
    game = load("tictactoe")
    lessons.put(game, replace(LESSON, origin="a hash", likeness=0.75))
    back = lessons.find(game.rules_hash)
    assert back is not None
    assert (back.origin, back.likeness) == ("a hash", 0.75)
    assert lessons.shapes().keys() == {game.rules_hash}
    assert np.array_equal(lessons.shapes()[game.rules_hash], rule_shapes(game.rulesheet))
    row = lessons.game(game.rules_hash)
    assert row is not None
    assert (row.name, str(parse(row.rules))) == ("tictactoe", str(game.rulesheet))
    assert lessons.game(load("connect3").rules_hash) is None


def test_a_lesson_without_a_value_comes_back(lessons: Lessons) -> None:
    game = load("tictactoe")
    first = replace(LESSON, generation=0, value=NOTHING)
    assert lessons.put(game, first) == "stored"
    back = lessons.find(game.rules_hash)
    assert back is not None
    assert back.value == first.value
    assert lessons.generations(game.rules_hash) == lessons.taught(game.rules_hash, PUPIL) == []


def test_only_a_longer_lesson_takes_the_place(lessons: Lessons) -> None:
    game = load("tictactoe")
    later = VALUE._replace(constants=(0.0, 0.125), weights={}, network=StoredNetwork(("(cell 1 1 x)",), b"arrays"))
    longer = replace(LESSON, generation=3, walks=2_000_000, value=later)
    assert lessons.put(game, LESSON) == "stored"
    assert lessons.put(game, replace(LESSON, value=later)) == "same"
    assert lessons.put(game, longer) == "stored"
    assert lessons.put(game, LESSON) == "behind"
    back = lessons.find(game.rules_hash)
    assert back is not None
    assert (back.value, back.generation) == (later, 3)
    assert lessons.generations(game.rules_hash) == [
        GenerationRow(2, 1_750_000, 4.5, 0.5, 0.75, False),
        GenerationRow(3, 2_000_000, 4.5, 0.5, 0.75, True),
    ]
    assert lessons.taught(game.rules_hash, PUPIL) == [
        Taught(2, 1_750_000, 4.5, VALUE),
        Taught(3, 2_000_000, 4.5, later),
    ]
    assert lessons.value(game.rules_hash, PUPIL, 2) == VALUE
    assert lessons.value(game.rules_hash, PUPIL, 1) is None


def test_a_lesson_without_a_value_makes_way_for_that_of_a_variant(lessons: Lessons) -> None:
    """It keeps its id, and its tests of openings; a lesson with a value gives way to a longer one only."""
    game = load("tictactoe")
    blank = replace(LESSON, generation=0, value=NOTHING)
    lessons.put(game, blank)
    lessons.add_evidence(game, TrialRow("openings", 4, "without"), lambda row: row._replace(num=1))
    before, trials = lessons.find(game.rules_hash), lessons.trials(game.rules_hash)
    first = replace(LESSON, generation=0, walks=0, origin="a hash", likeness=0.5)
    assert lessons.put(game, replace(blank, walks=0)) == "behind"
    assert lessons.put(game, first) == "stored"
    assert lessons.put(game, first) == "same"
    back = lessons.find(game.rules_hash)
    assert before is not None
    assert back is not None
    assert (back.snapshot, back.walks, back.origin) == (0, 0, "a hash")
    assert (back.id, back.created) == (before.id, before.created)
    assert lessons.trials(game.rules_hash) == trials
    assert lessons.put(game, replace(LESSON, walks=-1)) == "behind"


def test_a_lesson_may_begin_with_the_value_of_a_variant(lessons: Lessons) -> None:
    """It is state 0; informed playouts that were right there are no decision here."""
    game = load("tictactoe")
    first = replace(LESSON, generation=0, walks=0, value=VALUE._replace(informed=0.5), origin="a hash", likeness=0.5)
    assert lessons.put(game, first) == "stored"
    back = lessons.find(game.rules_hash)
    assert back is not None
    assert (back.snapshot, back.value, back.decision, back.origin) == (0, first.value, None, "a hash")
    assert lessons.put(game, replace(LESSON, generation=1)) == "stored"
    assert [taught.number for taught in lessons.taught(game.rules_hash, PUPIL)] == [0, 1]


def test_a_decision_about_playouts_is_stored_without_more_walks(lessons: Lessons) -> None:
    game = load("tictactoe")
    assert lessons.put(game, LESSON) == "stored"
    decided = replace(LESSON, value=VALUE._replace(informed=0.5))
    assert (LESSON.snapshot, decided.snapshot) == (2, 3)
    assert lessons.put(game, decided) == "stored"
    assert lessons.put(game, decided) == "same"
    back = lessons.find(game.rules_hash)
    assert back is not None
    assert back.value.informed == 0.5
    assert [taught.value.informed for taught in lessons.taught(game.rules_hash, PUPIL)] == [None, 0.5]


def test_rivals_come_back_in_their_order(lessons: Lessons) -> None:
    game = load("tictactoe")
    for startclock, value in ((1, VALUE), (10, VALUE), (1, NOTHING)):
        lessons.add_rival(game, f"startclock={startclock}", 1000, 0.5, value)
    assert lessons.taught(game.rules_hash, "startclock=1") == [
        Taught(0, 1000, 0.5, VALUE),
        Taught(1, 1000, 0.5, NOTHING),
    ]
    assert lessons.value(game.rules_hash, "startclock=10", 0) == VALUE
    assert lessons.value(game.rules_hash, "startclock=60", 0) is None
    assert lessons.pupils(game.rules_hash) == {"startclock=1": 2, "startclock=10": 1}


def test_rivals_are_those_of_this_version(lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version may have learned less in the same startclock."""
    game = load("tictactoe")
    lessons.put(game, LESSON)
    lessons.add_rival(game, "startclock=1", 1000, 0.5, VALUE)
    lessons.add_rival(game, "startclock=10", 1000, 0.5, VALUE)
    monkeypatch.setattr(lesson_rows, "_version", lambda _: "999.0")
    assert lessons.pupils(game.rules_hash) == {PUPIL: 1}
    assert lessons.value(game.rules_hash, "startclock=1", 0) is None
    lessons.add_rival(game, "startclock=1", 2000, 0.5, NOTHING)
    assert lessons.pupils(game.rules_hash) == {PUPIL: 1, "startclock=1": 1}
    assert lessons.value(game.rules_hash, "startclock=1", 0) == NOTHING
    with lessons.knowledge.reading() as connection:
        assert connection.execute("SELECT count(*) FROM taught").fetchone() == (2,)


def test_a_copy_of_a_lesson_has_the_same_states(lessons: Lessons, tmp_path: Path) -> None:
    """Also where the lesson was taught on since its newest state."""
    game = load("tictactoe")
    lessons.put(game, LESSON)
    lessons.put(game, replace(LESSON, walks=3_000_000, seconds=9.0))
    kept = lessons.kept(game.rules_hash)
    assert kept is not None
    with KnowledgeStore(tmp_path / "copy.db") as knowledge:
        copy = Lessons(knowledge)
        copy.add([(game, kept)])
        (state,) = copy.taught(game.rules_hash, PUPIL)
        assert (state.walks, state.seconds) == (LESSON.walks, LESSON.seconds)
        assert copy.kept(game.rules_hash) is not None
        assert copy.state(game.rules_hash) == (kept.lesson.id, 3_000_000)


def test_a_value_with_too_few_weights_is_refused(lessons: Lessons) -> None:
    game = load("tictactoe")
    lessons.add_rival(game, "startclock=1", 1000, 0.5, VALUE._replace(weights={"(control xplayer)": (0.5,)}))
    with pytest.raises(KnowledgeError, match="expected 2 weights for each fact"):
        lessons.value(game.rules_hash, "startclock=1", 0)


def test_openings_that_were_searched_longer_stay(lessons: Lessons) -> None:
    game = load("tictactoe")
    first, second = frozenset({"(cell 1 1 b)"}), frozenset({"(cell 1 1 x)"})
    pages = {
        first: [OpeningMove(0, "(mark 1 1)", 60, 60.0), OpeningMove(0, "(mark 1 2)", 40, 50.0)],
        second: [OpeningMove(1, "(mark 2 2)", 50, 40.0)],
    }
    longer = [OpeningMove(1, "(mark 1 3)", 51, 45.0)]
    for facts, moves in pages.items():
        assert lessons.put_opening(game, facts, moves)
    assert not lessons.put_opening(game, first, [OpeningMove(0, "(mark 3 3)", 100, 10.0)])
    assert lessons.put_opening(game, second, longer)
    assert lessons.openings(game.rules_hash) == {first: pages[first], second: longer}
    assert lessons.num_openings(game.rules_hash) == 2


def test_evidence_adds_up(lessons: Lessons) -> None:
    game = load("tictactoe")

    def one_more(row: TrialRow) -> TrialRow:
        return row._replace(num=row.num + 1, total=row.total + 0.5)

    for _ in range(2):
        lessons.add_evidence(game, TrialRow("lesson", 3, "startclock=1"), one_more)
    lessons.add_evidence(game, TrialRow("lesson", 4, "startclock=1"), one_more)
    lessons.add_evidence(game, TrialRow("openings", 0, "without"), one_more)
    assert lessons.trials(game.rules_hash) == [
        TrialRow("lesson", 3, "startclock=1", 2, 1.0),
        TrialRow("lesson", 4, "startclock=1", 1, 0.5),
        TrialRow("openings", 0, "without", 1, 0.5),
    ]


def test_the_ledger_adds_up_the_states_of_advice(lessons: Lessons) -> None:
    """The state 0 of a lesson is the value of a variant; trials without a round do not count."""
    game, rival = load("tictactoe"), "startclock=1"
    for advice, number, num, total in (("lesson", 0, 1, 1.0), ("lesson", 1, 3, 0.5), ("lesson", 2, 2, 2.0)):
        row = TrialRow(advice, number, rival, num, total)
        lessons.add_evidence(game, row, lambda _, row=row: row)
    lessons.add_evidence(game, TrialRow("openings", 9, "without"), lambda row: row)
    about = game.rules_hash, "tictactoe"
    assert lessons.ledger() == [
        LedgerRow(*about, "lesson", rival, 5, 2.5),
        LedgerRow(*about, "variant", rival, 1, 1.0),
    ]


@pytest.mark.parametrize(
    "damage", ["trial SET num = 'some'", "trial SET num = -1", "trial SET total = 'much'", "lesson SET shapes = 'none'"]
)
def test_damage_of_one_game_costs_no_other_game(lessons: Lessons, damage: str) -> None:
    damaged, sound = load("tictactoe"), load("connect3")
    for game in (damaged, sound):
        lessons.put(game, LESSON)
        for advice in ("lesson", "openings"):
            lessons.add_evidence(game, TrialRow(advice, 2, "startclock=1"), lambda row: row._replace(num=1, total=0.5))
    with lessons.knowledge.writing() as connection:
        last = "AND advice = 'openings'" if damage.startswith("trial") else ""
        connection.execute(
            f"UPDATE {damage} WHERE game = (SELECT id FROM game WHERE rules_hash = ?) {last}", [damaged.rules_hash]
        )
    left = lessons.ledger() if last else lessons.shapes()
    assert {row if isinstance(row, str) else row.rules_hash for row in left} == {sound.rules_hash}


def test_damage_is_told_with_the_name_of_the_game(lessons: Lessons) -> None:
    game = load("tictactoe")
    lessons.put(game, LESSON)
    lessons.put_opening(game, frozenset({"(cell 1 1 b)"}), [OpeningMove(0, "(mark 1 1)", 60, 60.0)])
    damages = (
        ("opening SET move = 77", "77", (lessons.openings, lessons.kept)),
        ("taught SET constants = '[1]', weights = '{}'", "1 constants for 2 roles", (lessons.find, lessons.kept)),
    )
    for damage, text, readers in damages:
        with lessons.knowledge.writing() as connection:
            connection.execute(f"UPDATE {damage}")
        for read in readers:
            with pytest.raises(
                DamagedLessonError, match=rf"lesson about tictactoe: .*got: {text}; gamelore lessons delete tict"
            ):
                read(game.rules_hash)


def test_a_damaged_name_sends_nothing_to_the_terminal(lessons: Lessons) -> None:
    game = load("tictactoe")
    lessons.put(game, LESSON)
    with lessons.knowledge.writing() as connection:
        connection.execute("UPDATE taught SET constants = '[1]'")
        connection.execute("UPDATE game SET name = ?", ["\x1b[2J"])
    with pytest.raises(DamagedLessonError) as damaged:
        lessons.find(game.rules_hash)
    assert str(damaged.value).isprintable()


def test_two_open_stores_see_each_other(lessons: Lessons, tmp_path: Path) -> None:
    game = load("tictactoe")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        other = Lessons(knowledge)
        assert other.put(game, LESSON) == "stored"
        assert lessons.put(game, LESSON) == "same"
        assert lessons.find(game.rules_hash) == other.find(game.rules_hash)


def test_matches_come_back_once(lessons: Lessons) -> None:
    game = load("tictactoe")
    match = PlayedMatch("m1", 0, 10, (("(mark 1 1)", "noop"), ("noop", "(mark 2 2)")), (100, -1))
    assert lessons.add_match(game, match)
    assert not lessons.add_match(game, match)
    assert lessons.add_match(game, match._replace(role=1))
    assert lessons.matches(game.rules_hash) == [match, match._replace(role=1)]
    assert [lessons.num_matches(game.rules_hash, role) for role in (0, 1, 2)] == [1, 1, 0]


def test_a_game_with_a_lesson_only_is_kept(lessons: Lessons) -> None:
    """Learners of the same game can be deleted; the game goes with its last lesson."""
    game, knowledge = load("tictactoe"), lessons.knowledge
    lessons.put(game, LESSON)
    assert [row.name for row in knowledge.games()] == ["tictactoe"]
    learner = knowledge.learner(game, "xplayer", opponent="random", settings={"kind": "baseline"}, seed=0)
    knowledge.delete([learner.id])
    assert lessons.find(game.rules_hash) is not None
    assert [row.rules_hash for row in lessons.games()] == [game.rules_hash]
    assert lessons.delete(game.rules_hash)
    assert not lessons.delete(game.rules_hash)
    assert knowledge.games() == lessons.games() == []


def test_a_game_with_a_rival_only_does_not_prevent_other_deletions(lessons: Lessons) -> None:
    game, other, knowledge = load("tictactoe"), load("connect3"), lessons.knowledge
    lessons.add_rival(game, "startclock=1", 1000, 0.5, VALUE)
    learner = knowledge.learner(other, other.roles[0], opponent="random", settings={"kind": "baseline"}, seed=0)
    knowledge.delete([learner.id])
    assert [row.name for row in knowledge.games()] == ["tictactoe"]


def test_a_quota(lessons: Lessons) -> None:
    assert not lessons.is_full
    assert Lessons(lessons.knowledge, quota=10).is_full
    assert not Lessons(lessons.knowledge, quota=1 << 30).is_full


def test_what_is_deleted_leaves_room_in_the_quota(lessons: Lessons) -> None:
    game, before = load("tictactoe"), lessons.knowledge.size
    bounded = Lessons(lessons.knowledge, quota=before + 500_000)
    lessons.put(game, replace(LESSON, progress=bytes(1_000_000)))
    assert bounded.is_full
    lessons.delete(game.rules_hash)
    assert not bounded.is_full
    lessons.put(game, replace(LESSON, progress=bytes(1_000_000)))
    assert bounded.is_full


def test_a_lesson_is_deleted_whole(lessons: Lessons) -> None:
    game = load("tictactoe")
    lessons.put(game, LESSON)
    lessons.add_rival(game, "startclock=1", 1000, 0.5, VALUE)
    lessons.put_opening(game, frozenset({"(cell 1 1 b)"}), [OpeningMove(0, "(mark 1 1)", 60, 60.0)])
    lessons.add_evidence(game, TrialRow("lesson", 1, "startclock=1"), lambda row: row._replace(num=1))
    lessons.add_match(game, PlayedMatch("m1", 0, 10, (), (0, 0)))
    lessons.knowledge.learner(game, "xplayer", opponent="random", settings={"kind": "baseline"}, seed=0)
    assert lessons.delete(game.rules_hash)
    assert lessons.find(game.rules_hash) is None
    assert lessons.openings(game.rules_hash) == {}
    assert lessons.trials(game.rules_hash) == lessons.matches(game.rules_hash) == []
    assert lessons.pupils(game.rules_hash) == {}
    assert len(lessons.knowledge.games()) == 1, "the learner is still there"


def test_tests_of_another_lesson_do_not_count(lessons: Lessons) -> None:
    """A lesson that goes on keeps its id, and its tests. One with another id begins without tests."""
    game = load("tictactoe")

    def one_more(row: TrialRow) -> TrialRow:
        return row._replace(num=row.num + 1)

    lessons.put(game, LESSON)
    lessons.add_evidence(game, TrialRow("lesson", 1, "startclock=1"), one_more)
    assert lessons.add_evidence(game, TrialRow("lesson", 1, "startclock=1"), one_more, lesson="another") is None
    lessons.put(game, replace(LESSON, walks=2_000_000))
    assert [row.num for row in lessons.trials(game.rules_hash)] == [1]
    lessons.put(game, replace(LESSON, walks=3_000_000, id="another"), replaces=present(lessons, game))
    assert lessons.trials(game.rules_hash) == []
    assert len(lessons.taught(game.rules_hash, PUPIL)) == 1, "the values of the other lesson are gone"
    lessons.add_evidence(game, TrialRow("lesson", 1, "startclock=1"), one_more)
    assert [row.num for row in lessons.trials(game.rules_hash)] == [1]


def test_tests_by_another_version_do_not_count(lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its search may be another one. When the version comes back, its tests do, too."""
    game = load("tictactoe")
    lessons.put(game, LESSON)
    for version in ("9.0", "9.1", "9.0"):
        monkeypatch.setattr(lesson_rows, "_version", lambda name, version=version: version)
        lessons.add_evidence(game, TrialRow("lesson", 1, "startclock=1"), lambda row: row._replace(num=row.num + 1))
    assert [row.num for row in lessons.trials(game.rules_hash)] == [2]
    assert [row.num for row in lessons.ledger()] == [3], "the ledger only orders"


def test_a_network_does_not_get_to_the_state_of_another_process(lessons: Lessons) -> None:
    """Both have a state of the same number; the value that came first stays as it is, and tests of it count."""
    game = load("tictactoe")
    other = VALUE._replace(network=StoredNetwork(("(cell 1 1 x)",), b"arrays"))
    assert lessons.put(game, LESSON) == "stored"
    assert lessons.put(game, replace(LESSON, walks=LESSON.walks + 1, value=other)) == "stored"
    assert lessons.value(game.rules_hash, PUPIL, 2) == VALUE


def test_a_lesson_has_the_value_of_its_own_state(lessons: Lessons) -> None:
    """Another process was ahead for a time, and has stored a newer state."""
    game = load("tictactoe")
    newer = VALUE._replace(constants=(0.0, 0.125))
    lessons.put(game, LESSON)
    lessons.put(game, replace(LESSON, generation=3, walks=LESSON.walks + 1, value=newer))
    lessons.put(game, replace(LESSON, walks=LESSON.walks + 2))
    back = lessons.find(game.rules_hash)
    assert back is not None
    assert (back.generation, back.value) == (2, VALUE)


def present(lessons: Lessons, game: Game) -> str:
    """The id of the lesson that the store has."""
    state = lessons.state(game.rules_hash)
    assert state is not None
    return state[0]


def test_a_lesson_replaces_only_itself(lessons: Lessons, tmp_path: Path) -> None:
    """Two processes began at once: whatever one of them has read before, the store decides when it writes."""
    game, longer = load("tictactoe"), replace(LESSON, walks=3_000_000)
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        other = Lessons(knowledge)
        assert lessons.put(game, LESSON, replaces="") == "stored"
        own = present(lessons, game)
        assert other.put(game, replace(longer, id="second"), replaces="") == "behind"
        assert lessons.delete(game.rules_hash)
        assert lessons.put(game, replace(longer, id=own)) == "behind"
        assert other.put(game, replace(LESSON, id="second"), replaces="") == "stored"
        assert lessons.put(game, replace(longer, id=own)) == "behind", "it was deleted, and another one has begun"
        assert (present(lessons, game), lessons.state(game.rules_hash)) == ("second", ("second", LESSON.walks))
        assert other.put(game, replace(longer, id="second")) == "stored"
        assert lessons.put(game, replace(longer, walks=4_000_000)) == "stored", "one without an id goes on with any"
        assert present(lessons, game) == "second"
