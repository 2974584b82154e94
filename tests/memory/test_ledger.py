"""The ledger: forecasts from other games by hand, the descriptors of games, and which knobs are given up."""

from dataclasses import replace
from math import exp, log2
from time import monotonic

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.learning.store.lesson_rows import WITHOUT, KeptLesson, LedgerRow, Lessons, StoredLesson, TrialRow
from gamelore.learning.store.taught_rows import NOTHING
from gamelore.matches.match import MatchState
from gamelore.memory.advice import MOST_KNOBS
from gamelore.memory.descriptors import DESCRIPTORS, _of_role, composed, descriptors, random_playouts
from gamelore.memory.ledger import (
    KNOBS,
    Forecast,
    Ledger,
    forecasts,
    has_effect,
    similarities,
    taken_knob,
    with_knob,
)
from gamelore.players.position_graph import PositionGraph
from gamelore.search.settings import GrowthSettings
from gamelore.search.thinking import Search
from gamelore.search.value import LinearValue


def test_every_knob_changes_a_search() -> None:
    """With the same random numbers, a search with a knob finds other values."""
    game = load("breakthrough")
    value = replace(LinearValue.zero(game), determination=0.5)
    value.weights[:, ::3] = 0.1

    def values(growth: GrowthSettings) -> list[tuple[int, float]]:
        search = Search(game, growth, 16)
        search.begin(game.initial, np.uint64(1), value)
        search.run(2000)
        return [(move.visits, move.mean) for move in search.moves(0)]

    plain = values(GrowthSettings())
    assert values(with_knob(GrowthSettings(), None)) == plain
    for knob in KNOBS:
        assert values(with_knob(GrowthSettings(), knob)) != plain


def test_similarities_by_hand() -> None:
    """Over all three games, x has the standard deviation sqrt(8/3) about its mean 2, and y is the same."""
    described = {"near": {"x": 2.0, "y": 1.0}, "far": {"x": 4.0, "y": 1.0}, "older": {"x": 0.0}}
    found = similarities(described, {"x": 0.0, "y": 1.0})
    assert found == pytest.approx({"near": exp(-4 / (8 / 3)), "far": exp(-16 / (8 / 3))})
    assert similarities({}, {"x": 1.0}) == {}
    assert similarities({"same": {"x": 1.0}}, {"x": 1.0}) == {"same": 1.0}


def test_forecasts_by_hand() -> None:
    """A game that is the same in all descriptors, with 16 rounds, counts half: (1/2 + 0.75 / 2) / 1.5."""
    described = {"same": {"x": 1.0}}
    rows = [
        LedgerRow("same", "same", "playouts=1", WITHOUT, 16, 12.0),
        LedgerRow("same", "same", "exploration=1", WITHOUT, 48, 12.0),
        LedgerRow("gone", "gone", "exploration=0.25", WITHOUT, 99, 99.0),
        LedgerRow("same", "same", "openings", WITHOUT, 99, 99.0),
        LedgerRow("same", "same", "prior_visits=4", "another player", 99, 99.0),
    ]
    expected = forecasts(rows, described, {"x": 1.0}, np.random.default_rng(0))
    assert set(expected) == set(KNOBS)
    assert expected["playouts=1"].score == pytest.approx((0.5 + 0.75 / 2) / 1.5)
    assert expected["exploration=1"].score == pytest.approx((0.5 + 0.75 * 0.25) / 1.75)
    assert expected["exploration=0.25"].score == expected["prior_visits=4"].score == 0.5


def test_the_order_is_drawn_until_the_ledger_knows_more() -> None:
    described = {str(number): {"x": 1.0} for number in range(400)}
    rows = [LedgerRow(key, key, "playouts=1", WITHOUT, 1000, 560.0) for key in described]
    knobs = {knob: 560.0 if knob == "playouts=1" else 500.0 for knob in KNOBS}
    complete = [LedgerRow(key, key, knob, WITHOUT, 1000, total) for key in described for knob, total in knobs.items()]

    def orders(evidence: list[LedgerRow]) -> list[list[str]]:
        return [list(forecasts(evidence, described, {"x": 1.0}, np.random.default_rng(seed))) for seed in range(40)]

    first = {len(evidence): [order[0] for order in orders(evidence)] for evidence in ([], rows, complete)}
    assert len(set(first[0])) > 3
    assert first[0].count("playouts=1") < first[len(rows)].count("playouts=1") < 40
    assert set(first[len(complete)]) == {"playouts=1"}


def test_the_forecast_after_matches_by_hand() -> None:
    """A forecast with standard deviation 0.1, and 49 rounds with 0.35 / 7 = 0.05: weights 100 and 400."""
    after = Forecast(0.6, 0.1).after(49, 0.5)
    assert after == pytest.approx(((100 * 0.6 + 400 * 0.5) / 500, 500**-0.5))
    assert Forecast(0.6, 0.1).after(0, 0.5) == Forecast(0.6, 0.1)


def test_hopeless_knobs() -> None:
    assert not Forecast(0.5, 0.1).is_hopeless
    assert Forecast(0.4, 0.1).is_hopeless
    assert Forecast(0.5, 0.1).after(400, 0.5).is_hopeless
    assert not Forecast(0.5, 0.1).after(400, 0.6).is_hopeless


def test_a_knob_is_taken_after_its_test() -> None:
    rows = [
        TrialRow("exploration=1", 0, WITHOUT, 50, 20.0, 1.0, 0.0, 0.0),
        TrialRow("playouts=1", 0, WITHOUT, 50, 40.0, 1.0, 20.0, 0.0),
        TrialRow("unheard-of", 0, WITHOUT, 50, 40.0, 1.0, 20.0, 0.0),
    ]
    assert taken_knob(rows) == "playouts=1"
    assert taken_knob(rows[:1]) is None
    assert len(KNOBS) <= MOST_KNOBS


def test_the_copy_of_a_lesson_is_no_evidence_from_another_game(lessons: Lessons) -> None:
    """Two games have the same lesson, and one another lesson, which is damaged later on; all are described alike."""
    game, copy, other = (load(f"breakthrough:width={width},height=6,rows=2") for width in (4, 5, 6))
    row = TrialRow("playouts=1", 0, WITHOUT, 16, 12.0)
    for one, lesson in ((game, "a"), (copy, "a"), (other, "b")):
        lessons.add([(one, KeptLesson(StoredLesson(1, 1, 1, 1.0, NOTHING, id=lesson), {}, {}, [], [], {}))])
        lessons.add_evidence(one, row, lambda row: row)
        lessons.describe(one, dict.fromkeys(DESCRIPTORS, 1.0))

    def score(one: Game) -> float:
        return Ledger(one, lessons, np.uint64(1)).forecasts["playouts=1"].score

    once = (0.5 + 0.75 / 2) / 1.5
    assert [score(one) for one in (game, copy, other)] == pytest.approx([once] * 3)
    with lessons.knowledge.writing() as connection:
        connection.execute("UPDATE lesson SET walks = 'many' WHERE id = 'b'")
    assert score(game) == pytest.approx(once)


def test_a_game_is_described_before_there_are_forecasts(lessons: Lessons) -> None:
    game = load("tictactoe")
    ledger = Ledger(game, lessons, np.uint64(1))
    ledger.describe(monotonic())
    assert not ledger.is_described
    assert ledger.forecasts == lessons.described() == {}
    ledger.describe(monotonic() + 60)
    assert set(ledger.forecasts) == set(KNOBS)
    lessons.describe(game, {"of another version": 1.0})
    again = Ledger(game, lessons, np.uint64(1))
    assert not again.is_described
    again.describe(monotonic() + 60)
    assert set(again.forecasts) == set(KNOBS)
    assert lessons.described()[game.rules_hash].keys() == set(DESCRIPTORS)


def test_damaged_descriptors_are_left_out(lessons: Lessons) -> None:
    game, other = load("tictactoe"), load("connect3")
    for one in (game, other):
        lessons.describe(one, descriptors(one))
    query = "UPDATE described SET descriptors = ? WHERE game = (SELECT id FROM game WHERE rules_hash = ?)"
    for text in ("", "[1]", '{"x": "y"}', '{"x": 1e400}'):
        with lessons.knowledge.writing() as connection:
            assert connection.execute(query, [text, game.rules_hash]).rowcount == 1
        assert list(lessons.described()) == [other.rules_hash]


def test_knobs_without_an_effect_are_not_tried() -> None:
    zero = LinearValue.zero(load("tictactoe"))

    def effects(value: LinearValue | None) -> set[str]:
        return {knob for knob in KNOBS if has_effect(knob, value, GrowthSettings())}

    always = {"exploration=0.25", "exploration=1", "playouts=1"}
    assert effects(None) == effects(replace(zero, determination=0.001)) == always
    assert effects(replace(zero, determination=0.02)) == always | {"prior_visits=64"}
    assert effects(replace(zero, determination=0.5)) == set(KNOBS)


def test_random_playouts_of_tictactoe() -> None:
    """A position after n marks has 9 - n moves, and a match has 5 to 9 plies."""
    game = load("tictactoe")
    playouts = random_playouts(game, np.random.default_rng(1))
    assert (playouts.lengths >= 5).all()
    assert (playouts.lengths <= 9).all()
    assert len(playouts.states) == len(playouts.branching) == playouts.lengths.sum()
    assert sorted(set(playouts.branching)) == list(range(1, 10))
    assert set(playouts.goals.ravel()) <= {0, 50, 100}
    assert len(playouts.goals) == len(playouts.lengths)


def test_descriptors_of_tictactoe() -> None:
    own = descriptors(load("tictactoe"))
    assert own == descriptors(load("tictactoe"))
    assert tuple(own) == DESCRIPTORS
    assert own["roles"] == 1
    assert own["unfinished"] == 0
    assert log2(6) <= own["plies"] <= log2(10)
    assert own["growth"] == 0  # as many cells as before, and one fact for control
    assert own["wins 1"] > 0.1


def test_features_of_several_turns_by_hand() -> None:
    """With w = 1/4, l = 1/8 and two moves: w' = 1/4 + 3/4 (1 - 49/64), l' = 1/8 + 7/8 / 16."""
    own = composed(0.25, 0.125, 0.3, 2.0)
    assert (own["wins 1"], own["losses 1"], own["gives"]) == (0.25, 0.125, 0.3)
    won, lost = 0.25 + 0.75 * (1 - 49 / 64), 0.125 + 0.875 / 16
    assert (own["wins 2"], own["losses 2"]) == pytest.approx((won, lost))
    deeper = won + (1 - won) * (1 - (1 - lost) ** 2), lost + (1 - lost) * won**2
    assert (own["wins 3"], own["losses 3"]) == pytest.approx(deeper)


def test_features_of_one_turn() -> None:
    """After two marks each, X wins at once with (1 3); with other moves, O wins at once with (2 3)."""
    game = load("tictactoe")
    graph = PositionGraph(game)
    moves = [["(mark 1 1)", "noop"], ["noop", "(mark 2 1)"], ["(mark 1 2)", "noop"], ["noop", "(mark 2 2)"]]
    row = MatchState.after(graph, moves, max_plies=9).row
    assert _of_role(graph, np.array([row], np.int32), 0) == [(1.0, 0.0, 3 / 5, 5.0)]
    assert _of_role(graph, np.array([row], np.int32), 1) == []


def test_descriptors_of_games_with_other_turns() -> None:
    for name in ("goofspiel", "connect3"):
        own = descriptors(load(name))
        assert tuple(own) == DESCRIPTORS
        assert np.isfinite(list(own.values())).all()
