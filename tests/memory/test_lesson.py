"""Lessons: what a teacher knows survives the store, and what does not fit is left out."""

import io
from dataclasses import replace
from math import inf
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.learning.store.taught_rows import StoredValue
from gamelore.memory import lesson as lesson_module
from gamelore.memory.lesson import (
    begun_anew,
    carried_network,
    is_as_assumed,
    restored,
    restored_network,
    restored_value,
    stored,
    stored_network,
    stored_value,
)
from gamelore.networks.network import Network
from gamelore.networks.self_play import SelfPlay, SelfPlaySettings
from gamelore.players.random_streams import stream
from gamelore.rulesheets import path
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import Teacher, TeachingState
from gamelore.search.tree import UNRELATED
from gamelore.search.value import LinearValue

SETTINGS = TeachingSettings(simulations=40_000, first=10_000, walks=64)


def teacher_of(game: Game, begin: TeachingState | None = None) -> Teacher:
    return Teacher(game, stream(1), GrowthSettings(), SETTINGS, begin)


def paused(game: Game, walks: int) -> TeachingState:
    """Return the state of a teacher after so many walks."""
    teacher = teacher_of(game)
    while teacher.simulations < walks:
        teacher.teach(deadline=monotonic() + 0.001)
    return teacher.pause()


@pytest.mark.parametrize("walks", [5_000, 15_000])
def test_a_teacher_goes_on_from_a_stored_lesson(walks: int) -> None:
    """Weights are stored as texts and numbers, so what follows is equal to the bit."""
    game = load("breakthrough")
    state = paused(game, walks)
    again = restored(game, stored(game, state, 1.5, None))
    assert (again.generation, again.rounds, again.walks) == (state.generation, state.rounds, state.walks)
    direct, resumed = teacher_of(game, state), teacher_of(game, again)
    for teacher in (direct, resumed):
        teacher.teach()
    assert direct.value is not None
    assert resumed.value is not None
    assert np.array_equal(direct.value.weights, resumed.value.weights)
    assert direct.value.determination == resumed.value.determination


def test_a_teacher_goes_on_with_what_it_has_found_out_about_interests() -> None:
    game = load("connect3")
    assert teacher_of(game).assumption == 100
    state = replace(paused(game, 5_000), as_assumed=False)
    lesson = stored(game, state, 1.5, None)
    again = restored(game, lesson)
    assert not again.as_assumed
    assert not is_as_assumed(lesson)
    teacher = teacher_of(game, again)
    assert teacher.assumption == UNRELATED
    assert not teacher.pause().as_assumed
    other = stored(game, paused(game, 5_000), 1.5, None)
    assert restored(game, other).as_assumed
    assert is_as_assumed(other)
    assert is_as_assumed(replace(lesson, progress=lesson.progress[:-30]))
    assert is_as_assumed(replace(lesson, progress=b""))


def test_a_damaged_or_foreign_progress_is_left_out() -> None:
    game = load("breakthrough")
    lesson = stored(game, paused(game, 15_000), 1.5, None)
    assert restored(game, lesson).progress is not None
    for progress in (b"", b"no zip", lesson.progress[:-30], lesson.progress[:200]):
        state = restored(game, replace(lesson, progress=progress))
        assert state.progress is None
        assert state.value is not None
        teacher_of(game, state).teach()
    foreign = stored(load("connect3"), paused(load("connect3"), 15_000), 1.5, None)
    assert restored(game, replace(lesson, progress=foreign.progress)).progress is None


@pytest.mark.parametrize("name", ["targets", "squares", "forecast_moments", "notes", "states", "plies"])
def test_arrays_of_a_wrong_shape_are_not_used(name: str) -> None:
    game = load("breakthrough")
    lesson = stored(game, paused(game, 15_000), 1.5, None)
    with np.load(io.BytesIO(lesson.progress)) as arrays:
        changed = {**arrays, name: np.zeros((1, 1))}
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **changed)
    assert restored(game, replace(lesson, progress=file.getvalue())).progress is None


def test_numbers_that_are_not_finite_are_not_used() -> None:
    game = load("breakthrough")
    lesson = stored(game, paused(game, 15_000), 1.5, None)
    with np.load(io.BytesIO(lesson.progress)) as arrays:
        changed = {**arrays, "targets": arrays["targets"] * np.nan}
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **changed)
    assert restored(game, replace(lesson, progress=file.getvalue())).progress is None


def test_a_value_goes_by_the_texts_of_facts() -> None:
    game = load("tictactoe")
    value = LinearValue.zero(game)
    value.weights[0, 3], value.weights[1, 5] = 0.5, -0.25
    value.constants[:] = 0.25, 0.75
    there = stored_value(game, replace(value, determination=0.5, foresight=0.75), 0.5)
    assert there.weights == {game.fact_text(3): (0.5, 0.0), game.fact_text(5): (0.0, -0.25)}
    back = restored_value(game, there._replace(weights={**there.weights, "(cell 9 9 x)": (1.0, 1.0)}))
    assert back is not None
    assert np.array_equal(back.weights, value.weights)
    assert (back.determination, back.foresight) == (0.5, 0.75)
    assert restored_value(game, stored_value(game, None, None)) is None
    assert restored_value(load("tictactoe3p"), there) is None, "a constant for each of three roles is missing"


def test_a_generation_begins_anew_with_the_walks_before_it() -> None:
    game = load("tictactoe")
    teacher = Teacher(game, stream(1), GrowthSettings(), TeachingSettings())
    for walks, generation, begins in ((100_000, 0, 0), (300_000, 1, 250_000), (800_000, 2, 750_000)):
        while teacher.simulations < walks:
            teacher.teach(deadline=monotonic() + 0.01)
        state = teacher.pause()
        assert (state.generation, state.begins) == (generation, begins)
        lesson = stored(game, state, 1.5, None)
        anew = begun_anew(lesson)
        assert (lesson.walks, anew.walks, anew.progress) == (state.walks, begins, b"")
        assert (anew.generation, anew.value) == (lesson.generation, lesson.value)


def test_a_lesson_does_not_depend_on_the_letter_case_of_the_sheet(tmp_path: Path) -> None:
    (tmp_path / "other.kif").write_text(path("connect3").read_text(encoding="utf-8").upper())
    game, other = load("connect3"), load(tmp_path / "other.kif")
    assert other.rules_hash == game.rules_hash
    assert other.fact_text(0) == game.fact_text(0).upper() != game.fact_text(0)
    state = paused(game, 15_000)
    again = restored(other, stored(game, state, 1.5, None))
    assert state.value is not None
    assert again.value is not None
    assert np.array_equal(again.value.weights, state.value.weights)
    assert again.value.determination == state.value.determination
    assert again.progress is not None


def test_a_value_none_of_whose_facts_fit_has_no_effect() -> None:
    game = load("tictactoe")
    there = StoredValue(0.5, 0.75, None, (0.25, 0.75), {"(cell 9 9 x)": (1.0, 1.0)})
    value = restored_value(game, there)
    assert value is not None
    assert value.virtual_visits(GrowthSettings()) == value.prior(GrowthSettings()).minimax == 0


def played_network(name: str) -> Network:
    """Return a network after some matches against itself."""
    self_play = SelfPlay(load(name), stream(1), SelfPlaySettings(matches=16))
    self_play.play(inf, 50)
    return self_play.network


def test_a_network_comes_back_rounded() -> None:
    game, network = load("connect3"), played_network("connect3")
    value = replace(LinearValue.zero(game), network=network)
    again = restored_value(game, stored_value(game, value, None))
    assert again is not None
    assert again.network is not None
    assert np.array_equal(again.network.strides, network.strides)
    assert np.array_equal(again.network.offsets, network.offsets)
    differences = np.abs(again.network.entries - network.entries)
    assert (differences <= np.maximum(1e-3 * np.abs(network.entries), 1e-6)).all()
    assert again.virtual_visits(GrowthSettings()) == 8


def test_a_network_reads_facts_by_their_texts() -> None:
    game, network = load("connect3"), played_network("connect3")
    kept = stored_network(game, network)
    without = restored_network(game, kept._replace(facts=("(cell 9 9 red)", *kept.facts[1:])))
    assert without is not None
    gone = [game.fact_text(bit) for bit in range(len(network.strides))].index(kept.facts[0])
    assert not without.strides[gone].any()
    assert np.array_equal(np.delete(without.strides, gone, axis=0), np.delete(network.strides, gone, axis=0))
    upper = restored_network(game, kept._replace(facts=tuple(fact.upper() for fact in kept.facts)))
    assert upper is not None
    assert np.array_equal(upper.strides, network.strides)


def test_what_facts_are_left_out_of_needs_less_room() -> None:
    """The entries that no position of the game reaches any more are left out, so the network can be stored again."""
    game, network = load("connect3"), played_network("connect3")
    kept = stored_network(game, network)
    fewer = restored_network(game, kept._replace(facts=("(cell 9 9 red)", *kept.facts[1:])))
    assert fewer is not None
    again = restored_network(game, stored_network(game, fewer))
    assert again is not None
    assert again.entries.shape == fewer.entries.shape
    assert again.entries.shape[1] <= network.entries.shape[1]


def test_a_carried_network_reads_fewer_facts() -> None:
    """Its roles change places, and what was good is bad: entries have the other sign."""
    game, network = load("connect3"), played_network("connect3")
    kept = stored_network(game, network)
    facts = [None, *kept.facts[1:]]
    carried = carried_network(kept, facts, [1, 0], is_turned=True)
    assert carried is not None
    assert carried.facts == kept.facts[1:]
    own, whole = restored_network(game, carried), restored_network(game, kept)
    assert own is not None
    assert whole is not None
    room = own.entries.shape[1]
    assert np.array_equal(own.entries, -whole.entries[[1, 0], :room])
    gone = [game.fact_text(bit) for bit in range(len(network.strides))].index(kept.facts[0])
    assert not own.strides[gone].any()
    assert np.array_equal(np.delete(own.strides, gone, axis=0), np.delete(whole.strides, gone, axis=0))
    assert restored_network(game, stored_network(game, own)) is not None


def test_a_network_that_is_damaged_or_of_fewer_roles_is_not_carried() -> None:
    kept = stored_network(load("connect3"), played_network("connect3"))
    assert carried_network(kept._replace(packed=b""), kept.facts, [0, 1], is_turned=False) is None
    assert carried_network(kept, kept.facts, [0, 1, 2], is_turned=False) is None
    assert carried_network(kept, kept.facts[1:], [0, 1], is_turned=False) is None


def test_damaged_networks_are_left_out() -> None:
    game, network = load("connect3"), played_network("connect3")
    kept = stored_network(game, network)
    assert restored_network(game, kept._replace(packed=kept.packed[:-100])) is None
    assert restored_network(game, kept._replace(facts=kept.facts[1:])) is None
    assert restored_network(load("tictactoe3p"), kept) is None, "it has another number of roles"
    for strides, entries in (
        (-network.strides, network.entries),
        (network.strides * 1000, network.entries),
        (network.strides, np.full_like(network.entries, np.nan)),
        (network.strides, network.entries[:, :-1]),
    ):
        assert restored_network(game, stored_network(game, Network(strides, network.offsets, entries))) is None


def test_only_whole_generations_of_large_games_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a generation under way are left out, and its walks do not count."""
    game = load("breakthrough")
    under_way = paused(game, 15_000)
    assert 0 < under_way.begins < under_way.walks
    monkeypatch.setattr(lesson_module, "MOST_BYTES", 1000)
    lesson = stored(game, under_way, 1.5, None)
    assert (lesson.walks, lesson.generation, lesson.progress) == (under_way.begins, under_way.generation, b"")
    again = restored(game, lesson)
    assert again.value is not None
    assert again.progress is None
    assert teacher_of(game, again).generation == under_way.generation


def test_a_lesson_with_sums_over_symmetric_facts_goes_on_to_the_bit() -> None:
    """In tic-tac-toe, 4 and 8 facts share a weight; only half of the sums is stored."""
    game = load("tictactoe")
    begin = paused(game, 6_000)
    assert begin.progress is not None
    states = [begin, restored(game, stored(game, begin, 1.5, None))]
    values = []
    for state in states:
        teacher = teacher_of(game, state)
        while teacher.generation == begin.generation and not teacher.is_done:
            teacher._step()
        values.append(teacher.value)
    assert values[0] is not None
    assert values[1] is not None
    assert np.array_equal(values[0].weights, values[1].weights)
