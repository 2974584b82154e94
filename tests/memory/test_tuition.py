"""Tuition: a linear value first, then a network, state by state, and what survives the store."""

import io
from dataclasses import replace
from time import monotonic

import numpy as np
import pytest

from evaluators import native_game
from gamelore import Game
from gamelore.gdl import syntax
from gamelore.learning.store.lesson_rows import LESSON, Lessons, StoredLesson
from gamelore.memory import lesson as lesson_module
from gamelore.memory import tuition as tuition_module
from gamelore.memory.lesson import packed_play, restored_play, restored_value, stored_value
from gamelore.memory.tuition import Tuition
from gamelore.networks.network import Network
from gamelore.networks.tuples import draw_tuples
from gamelore.players.random_streams import stream
from gamelore.search.settings import TeachingSettings
from gamelore.search.teaching import Teacher
from gamelore.search.tree import UNRELATED
from gamelore.search.value import LinearValue

QUICK = TeachingSettings(simulations=1 << 60, first=4_000, walks=64)
BOTH_CHOOSE = """
(role a) (role b) (<= (base (step ?n)) (after ?n ?m)) (base (step 3)) (init (step 0)) (number 1) (number 2)
(<= (input ?r (say ?n)) (role ?r) (number ?n)) (<= (legal ?r (say ?n)) (role ?r) (number ?n))
(after 0 1) (after 1 2) (after 2 3) (<= (next (step ?m)) (true (step ?n)) (after ?n ?m)) (<= terminal (true (step 3)))
(<= (goal a 100) (true (step 3))) (<= (goal b 0) (true (step 3)))
"""


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a network follow after a tenth of a second, and give its first state after another one."""
    monkeypatch.setattr(tuition_module, "TeachingSettings", lambda simulations=1 << 60: QUICK)
    monkeypatch.setattr(tuition_module, "LINEAR_SECONDS", 0.1)
    for module in (tuition_module, lesson_module):
        monkeypatch.setattr(module, "FIRST_STATE_SECONDS", 0.1)


def tuition_of(game: Game, lesson: StoredLesson | None = None) -> Tuition:
    return Tuition(game, stream(0), lesson)


def taught(game: Game, states: int = 0, lesson: StoredLesson | None = None) -> Tuition:
    """Teach until a network is taught, and until it has given so many states."""
    own = tuition_of(game, lesson)
    while own.teacher is not None:
        own.teach(monotonic() + 0.02)
    before = own.generation
    while own.generation < before + states:
        own.teach(monotonic() + 0.02)
    return own


def test_a_network_follows_the_linear_value(game: Game) -> None:
    own = tuition_of(game)
    while own.teacher is not None:
        last, walks = own.lesson(), own.walks
        own.teach(monotonic() + 0.02)
    assert own.seconds >= 0.1
    assert own.generation == last.generation > 0
    lesson = own.lesson()
    assert lesson.value == last.value, "there is no new state yet"
    assert lesson.rounds == last.rounds
    assert lesson.walks >= last.walks
    own.teach(monotonic() + 0.1)
    assert own.walks > walks
    assert not own.is_done


def test_a_network_becomes_a_state_when_it_is_due(game: Game) -> None:
    own = taught(game)
    before, due = own.lesson(), own._stage.progress.due
    assert due >= 0.2, "a tenth of a second for each"
    while own.generation == before.generation:
        own.teach(monotonic() + 0.02)
    assert own.seconds >= due
    lesson = own.lesson()
    assert (lesson.generation, lesson.snapshot) == (before.generation + 1, before.snapshot + 1)
    assert lesson.value.network is not None
    assert lesson.value._replace(network=None) == before.value, "the linear value stays beside it"
    assert lesson.walks > before.walks
    first = own.seconds
    while own.generation == lesson.generation:
        own.teach(monotonic() + 0.02)
    assert own.seconds >= 1.5 * first
    assert own.lesson().value.network != lesson.value.network


def test_a_lesson_that_begins_with_a_network_goes_on_with_self_play(game: Game) -> None:
    """That of a variant has no seconds of its own. Its first state is as good as the network that came."""
    value = taught(game, 1).lesson().value
    own = tuition_of(game, StoredLesson(0, 0, 0, 0.0, value))
    assert own.teacher is None
    while own.generation == 0:
        own.teach(monotonic() + 0.02)
    assert own.seconds >= 0.1
    lesson = own.lesson()
    assert lesson.value.network not in (None, value.network)
    assert lesson.value._replace(network=None) == value._replace(network=None)


def test_the_network_of_a_variant_gives_way_where_roles_never_move_alone(game: Game, lessons: Lessons) -> None:
    """Self-play learns nothing there, so a linear value is taught."""
    both = native_game(syntax.parse(BOTH_CHOOSE))
    tuples = draw_tuples(both, np.random.default_rng(0))
    network = Network.zero(tuples, both.num_roles)
    value = stored_value(both, replace(LinearValue.zero(both), network=network), None)
    own = tuition_of(both, StoredLesson(0, 0, 0, 0.0, value))
    assert own.teacher is None
    end = monotonic() + 60
    while own.teacher is None and monotonic() < end:
        own.teach(monotonic() + 0.1)
    assert own.teacher is not None
    assert own.lesson().value.network is None


def test_tuition_goes_on_from_the_store(game: Game, lessons: Lessons) -> None:
    own = taught(game, 1)
    own.teach(monotonic() + 0.1)
    lesson = own.lesson()
    assert lessons.put(game, lesson) == "stored"
    kept = lessons.find(game.rules_hash)
    assert kept is not None
    again = tuition_of(game, kept)
    assert (again.teacher, again.generation, again.walks, again.seconds, again.assumption) == (
        None, own.generation, own.walks, own.seconds, own.assumption,
    )  # fmt: skip
    assert again.lesson().progress == lesson.progress
    again.teach(monotonic() + 0.1)
    assert again.walks > own.walks
    assert lessons.put(game, again.lesson()) == "stored"
    (state,) = lessons.taught(game.rules_hash, LESSON, lesson.snapshot)
    value = restored_value(game, state.value)
    assert value is not None
    assert value.network is not None
    assert value.trust == 0.5


def test_damaged_progress_is_replaced_by_the_newest_network(game: Game) -> None:
    lesson = taught(game, 1).lesson()
    for progress in (b"", lesson.progress[:-100], b"no file"):
        again = tuition_of(game, replace(lesson, progress=progress))
        assert again.teacher is None
        assert (again.generation, again.walks) == (lesson.generation, lesson.walks)
        again.teach(monotonic() + 0.1)
        assert again.walks > lesson.walks


def test_entries_that_came_with_a_lesson_are_kept(game: Game) -> None:
    """Those of a copy of the lesson about the same game under other names have no changes of their own."""
    lesson = replace(taught(game, 1).lesson(), progress=b"")
    progress = restored_play(game, lesson)
    assert progress is not None
    assert progress.state.network.entries.any()
    again = restored_play(game, replace(lesson, progress=packed_play(game, progress)))
    assert again is not None
    assert np.array_equal(again.state.network.entries, progress.state.network.entries)


def test_damaged_progress_without_a_network_begins_the_network_anew(game: Game) -> None:
    lesson = replace(taught(game).lesson(), progress=b"")
    again = tuition_of(game, lesson)
    assert again.teacher is not None
    assert (again.generation, again.walks) == (lesson.generation, lesson.walks)
    while again.teacher is not None:
        again.teach(monotonic() + 0.1)


def test_progress_comes_back_to_the_bit(game: Game) -> None:
    own = taught(game)
    own.teach(monotonic() + 0.2)
    progress = restored_play(game, own.lesson())
    assert progress is not None
    assert own._stage._self_play is not None
    state, again = own._stage._self_play.state, progress.state
    assert (again.matches, again.positions) == (state.matches, state.positions)
    for one, other in (
        (again.network.strides, state.network.strides),
        (again.network.offsets, state.network.offsets),
        (again.network.entries, state.network.entries),
        (again.sums, state.sums),
        (again.changes, state.changes),
    ):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("as_assumed", [True, False])
def test_what_is_known_of_goals_is_kept(game: Game, as_assumed: bool) -> None:
    own = taught(game)
    progress = own._stage.progress._replace(as_assumed=as_assumed)
    again = tuition_of(game, replace(own.lesson(), progress=packed_play(game, progress)))
    assert (again.assumption == UNRELATED) == (not as_assumed)
    assert again._present is None, "a match asks for it, and self-play takes long to read"
    assert (again._stage.assumption == UNRELATED) == (not as_assumed)


@pytest.mark.parametrize(
    "change",
    [
        {"layout": np.zeros(32, np.uint8)},
        {"offsets": np.zeros(0, np.int32)},
        {"learned": np.full((3, 1), np.nan, np.float32)},
        {"learned": np.array([[1], [1], [-1]], np.float32)},
        {"learned": np.ones((2, 1), np.float32)},
        {"numbers": np.array([-1, 0, 0])},
        {"changed": np.array([1 << 50])},
        {"due": np.array(np.inf)},
    ],
)
def test_progress_that_does_not_fit_is_not_used(game: Game, change: dict[str, np.ndarray]) -> None:
    packed = packed_play(game, taught(game)._stage.progress)
    whole = {"changed": np.array([7]), "learned": np.ones((3, 1), np.float32)}
    assert lesson_module._unpacked_play(game, with_arrays(packed, whole)) is not None
    assert lesson_module._unpacked_play(game, with_arrays(packed, whole | change)) is None


def with_arrays(packed: bytes, change: dict[str, np.ndarray]) -> bytes:
    """Return packed progress with other arrays."""
    with np.load(io.BytesIO(packed)) as arrays:
        changed = dict(arrays) | change
    file = io.BytesIO()
    np.savez(file, **changed)
    return file.getvalue()


def test_progress_asks_for_no_more_room_than_its_tuples_need(game: Game) -> None:
    """A file could name any room, and a player would run out of memory."""
    packed = packed_play(game, taught(game)._stage.progress)
    with np.load(io.BytesIO(packed)) as arrays:
        shape = arrays["shape"]
    for number, value in ((0, 1 << 40), (1, 1 << 40), (2, 1), (3, shape[3] + 1), (3, 1 << 50)):
        other = shape.copy()
        other[number] = value
        assert lesson_module._unpacked_play(game, with_arrays(packed, {"shape": other})) is None


def test_large_progress_is_rounded(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step sizes, which are sums divided by changes, stay what they were, also where float16 ends."""
    own = taught(game)
    while not own._stage.progress.state.changes.any():
        own.teach(monotonic() + 0.1)
    progress = own._stage.progress
    factor = np.float32(1e6 / progress.state.changes.max())
    state = progress.state._replace(sums=factor * progress.state.sums, changes=factor * progress.state.changes)
    monkeypatch.setattr(lesson_module, "_BYTES_OF_CHANGED", 1 << 40)
    again = lesson_module._unpacked_play(game, packed_play(game, progress._replace(state=state)))
    assert again is not None
    assert (again.due, again.state.matches, again.state.positions) == (progress.due, state.matches, state.positions)
    np.testing.assert_allclose(again.state.network.entries, state.network.entries, rtol=1e-3, atol=1e-6)
    has_changed = state.changes > 1
    assert state.changes.max() > again.state.changes.max()
    expected = state.sums[has_changed] / state.changes[has_changed]
    np.testing.assert_allclose(again.state.sums[has_changed] / again.state.changes[has_changed], expected, atol=2e-3)


def test_progress_that_is_too_large_is_not_stored(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_module, "_MOST_PLAY_BYTES", 100)
    lesson = taught(game, 1).lesson()
    assert lesson.progress == b""
    assert tuition_of(game, lesson).teacher is None, "it goes on from the newest network"


def test_a_game_that_is_too_large_for_a_network_stays_with_its_teacher(
    game: Game, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuition_module, "has_network", lambda game: False)
    own = tuition_of(game)
    while own.seconds < 0.3:
        own.teach(monotonic() + 0.05)
    assert own.teacher is not None
    monkeypatch.setattr(Teacher, "is_done", True)
    assert own.is_done


def test_a_trial_of_playouts_goes_on_to_its_end(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Teacher, "is_in_trial", True)
    own = tuition_of(game)
    while own.seconds < 0.3:
        own.teach(monotonic() + 0.05)
    assert own.teacher is not None
    monkeypatch.setattr(Teacher, "is_in_trial", False)
    monkeypatch.setattr(Teacher, "informed", 0.5)
    while own.teacher is not None:
        own.teach(monotonic() + 0.05)
    assert own.lesson().decision == 0.5
    assert taught(game, 1, own.lesson()).lesson().decision == 0.5


def test_a_trial_of_playouts_that_does_not_end_is_given_up(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuition_module, "_TRIAL_SECONDS", 0.4)
    monkeypatch.setattr(Teacher, "is_in_trial", True)
    own = tuition_of(game)
    while own.teacher is not None:
        before = own.seconds
        own.teach(monotonic() + 0.05)
    assert before >= 0.4
    assert own.lesson().decision is None


def test_there_is_nothing_to_learn_where_nobody_chooses_alone() -> None:
    own = tuition_of(native_game(syntax.parse(BOTH_CHOOSE)))
    end = monotonic() + 60
    while not own.is_done and monotonic() < end:
        own.teach(monotonic() + 0.05)
    assert own.is_done
    assert own.lesson().snapshot == -1


def test_a_network_without_a_linear_value_has_constants(game: Game) -> None:
    """The first generation of the teacher has not ended, because its searches gave no samples."""
    lesson = taught(game).lesson()
    begun = replace(lesson, generation=0, value=lesson.value._replace(constants=(), weights={}))
    state = taught(game, 1, begun).lesson()
    assert state.value.constants == (0.0, 0.0)
    assert state.snapshot == 1
