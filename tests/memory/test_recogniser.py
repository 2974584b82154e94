"""Opponents recognised from their moves: policies, likelihoods by hand, unknown players, and stored matches."""

from math import exp, log
from time import monotonic

import numpy as np
import pytest
from numpy.typing import ArrayLike

from gamelore import Game, Position, load
from gamelore.catalogue import KNOWN_OPPONENTS, known_opponents, player
from gamelore.learning.store.lesson_rows import Lessons, PlayedMatch, PolicyFit
from gamelore.matches.match import MatchState
from gamelore.memory import recogniser
from gamelore.memory.recogniser import (
    SAME_OPPONENT,
    UNKNOWN,
    Encounters,
    Policies,
    SeenMove,
    affordable,
    fits,
    posterior,
    recognised,
    seen_moves,
)
from gamelore.players.player import Player, PositionPlayer
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream

QUICK = ("random", "egreedy", "minimax:depth=2")


@pytest.fixture(scope="module")
def game() -> Game:
    return load("tictactoe")


@pytest.fixture
def graph(game: Game) -> PositionGraph:
    return PositionGraph(game)


def players(*specs: str) -> dict[str, Player]:
    return {spec: player(spec) for spec in specs}


def match(graph: PositionGraph, own: Player, other: Player, seed: int) -> MatchState:
    """Play a match in which the first player has the first role."""
    state, both = MatchState(graph), (own, other)
    for role, one in enumerate(both):
        one.begin(role, state.started())
    while state.end is None:
        for role in state.pending():
            has_choice = state.has_choice(role)
            state.submit(role, int(both[role].choose(state.turn(role, stream(seed, role)))[0]) if has_choice else 0)
    return state


def test_the_policies_of_players_that_draw_are_exact(graph: PositionGraph) -> None:
    """X has two in a row, and can win at (3 3): egreedy does so, unless it makes a random move (epsilon 0.01)."""
    state = MatchState.after(
        graph,
        [["(mark 1 1)", "noop"], ["noop", "(mark 1 2)"], ["(mark 2 2)", "noop"], ["noop", "(mark 1 3)"]],
        max_plies=100,
    )
    policies = Policies(graph, players("random", "egreedy", "minimax:depth=2"))
    legal = state.legal(0)
    by_random, by_egreedy, by_minimax = policies.of(state.row, 0)
    winning = legal.index("(mark 3 3)")
    assert by_random == pytest.approx(np.full(5, 0.2))
    assert by_egreedy[winning] == pytest.approx(0.99 * (0.99 + 0.01 / 5) + 0.01 / 5)
    assert by_minimax[winning] == pytest.approx(0.99 + 0.01 / 5)
    assert policies.of(state.row, 0) is policies.of(state.row, 0)


class Fickle(PositionPlayer):
    """A player whose policy can only be sampled: it makes the moves in turn."""

    def __init__(self) -> None:
        self.num = 0

    def move(self, position: Position, role: str) -> str:
        self.num += 1
        return position.legal[role][self.num % 3]


def test_the_policy_of_a_search_is_the_share_of_its_moves(graph: PositionGraph) -> None:
    """Of nine runs, three make each of three moves; the mean policy counts as three runs, and is flat by a fifth."""
    (own,) = Policies(graph, {"fickle": Fickle()}, runs=9).of(graph.start, 0)
    mean = np.where(np.arange(9) < 3, 0.8 / 3, 0) + 0.2 / 9
    smoothed = (np.where(np.arange(9) < 3, 3, 0) + 3 * mean) / 12
    assert own == pytest.approx(0.99 * smoothed + 0.01 / 9)
    assert own.sum() == pytest.approx(1)


def test_policies_are_computed_in_small_steps(graph: PositionGraph) -> None:
    policies = Policies(graph, {"fickle": Fickle(), **players("random")}, runs=9)
    assert len(list(policies.steps(graph.start, 0))) == 2 + 3
    assert list(policies.steps(graph.start, 0)) == []


def test_fits_by_hand(graph: PositionGraph) -> None:
    """Two players, two moves: sums of logarithms, of their means, and of their variances under each policy."""
    table = np.array([[0.9, 0.1], [0.5, 0.5]])
    policies = Policies(graph, players("random", "egreedy"))
    policies._kept = {(0, 0): table, (1, 0): table}
    *_, last = fits(policies, [SeenMove(0, 0, 0), SeenMove(1, 0, 1)])
    first, second = last
    mean = 0.9 * log(0.9) + 0.1 * log(0.1)
    variance = 0.9 * log(0.9) ** 2 + 0.1 * log(0.1) ** 2 - mean**2
    assert first.player == "random"
    assert first[1:] == pytest.approx((log(0.9) + log(0.1), 2 * mean, 2 * variance))
    assert second[1:] == pytest.approx((2 * log(0.5), 2 * log(0.5), 0.0), abs=1e-12)


def test_a_uniform_policy_has_no_negative_variance(graph: PositionGraph) -> None:
    for num in range(2, 200):
        policies = Policies(graph, players("random"))
        policies._kept = {(0, 0): np.full((1, num), 1 / num)}
        *_, ((_, _, _, variance),) = fits(policies, [SeenMove(0, 0, 0)])
        assert 0 <= variance < 1e-20


def test_the_posterior_by_hand() -> None:
    """Player b fits best, one standard deviation off: e^1/2 / 100 is the evidence for an unknown player."""
    one = [PolicyFit("a", -8.0, -3.0, 1.0), PolicyFit("b", -5.0, -4.0, 0.5)]
    two = [PolicyFit("a", -1.0, -3.0, 1.0), PolicyFit("b", -2.0, -2.0, 0.5), PolicyFit("new", -1.0, -1.0, 1.0)]
    shares = posterior([one, two])
    evidence = {"a": exp(-2.0), "b": 1.0, UNKNOWN: exp(0.5) / 100}
    assert shares == pytest.approx({name: own / sum(evidence.values()) for name, own in evidence.items()})
    assert list(shares) == ["b", "a", UNKNOWN]
    assert posterior([]) == {}
    assert posterior([[PolicyFit("a", -1.0, -1.0, 1.0)], [PolicyFit("b", -1.0, -1.0, 1.0)]]) == {}


def test_players_are_told_apart_and_others_are_unknown(graph: PositionGraph) -> None:
    policies = Policies(graph, players("egreedy:filler=first", "minimax:depth=2"))
    for spec, expected in (
        ("egreedy:filler=first", "egreedy:filler=first"),
        ("minimax:depth=2", "minimax:depth=2"),
        ("weak", UNKNOWN),
    ):
        own, seen = player(spec), list[SeenMove]()
        for seed in range(6):
            seen += seen_moves(match(graph, own, player("random"), seed), 0)
        *_, last = fits(policies, seen)
        assert next(iter(posterior([last]))) == expected


def test_some_moves_of_a_long_match_count(graph: PositionGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    state = match(graph, player("random"), player("random"), 2)
    everything = seen_moves(state, 0)
    monkeypatch.setattr(recogniser, "MOST_MOVES", 2)
    assert seen_moves(state, 0) == [everything[0], everything[-1]]


def test_only_moves_with_a_choice_are_seen(graph: PositionGraph) -> None:
    state = match(graph, player("random"), player("random"), 1)
    for role in (0, 1):
        seen = seen_moves(state, role)
        assert [move.role for move in seen] == [role] * len(seen)
        assert len(seen) == sum(graph.num_moves[row, role] > 1 for row in state.rows[:-1])
        assert [move.choice for move in seen] == [
            joint[role] for row, joint in zip(state.rows, state.choices, strict=False) if graph.num_moves[row, role] > 1
        ]


def stored(lessons: Lessons, game: Game, own: Player, num: int) -> None:
    """Store matches in which a player with the first role was the opponent of the player that remembers."""
    before = len(lessons.matches(game.rules_hash))
    for seed in range(before, before + num):
        state = match(PositionGraph(game), own, player("random"), seed)
        lessons.add_match(game, PlayedMatch(f"match {seed}", 1, 5, state.record("", ("", "")).moves, (50, 50)))


def posterior_of(lessons: Lessons, game: Game, role: int) -> str | None:
    return next(iter(recognised(lessons, game.rules_hash, role, game.num_roles)), None)


def test_opponents_of_stored_matches(game: Game, lessons: Lessons) -> None:
    assert Encounters(game, lessons, players(*QUICK)).is_done
    stored(lessons, game, player("minimax:depth=2"), SAME_OPPONENT + 1)
    encounters = Encounters(game, lessons, players(*QUICK))
    assert posterior_of(lessons, game, 0) is None
    encounters.go_on(monotonic() - 1)
    assert not encounters.is_done
    encounters.go_on(monotonic() + 60)
    assert encounters.is_done
    assert list(lessons.fits(game.rules_hash, 0)) == [(number, 0) for number in range(1, SAME_OPPONENT + 1)]
    assert posterior_of(lessons, game, 0) == posterior_of(lessons, game, 1) == "minimax:depth=2"
    assert Encounters(game, lessons, players(*QUICK)).is_done


def test_the_opponent_is_that_of_the_last_matches(game: Game, lessons: Lessons) -> None:
    """What was compared earlier says nothing about an opponent that came later."""
    stored(lessons, game, player("minimax:depth=2"), 3)
    Encounters(game, lessons, players(*QUICK)).go_on(monotonic() + 60)
    assert posterior_of(lessons, game, 0) == "minimax:depth=2"
    stored(lessons, game, player("weak"), SAME_OPPONENT)
    assert posterior_of(lessons, game, 0) is None
    Encounters(game, lessons, players("weak", "minimax:depth=2")).go_on(monotonic() + 60)
    assert posterior_of(lessons, game, 0) == "weak"


def test_what_is_known_of_an_opponent_stays_when_its_first_matches_are_long_ago(game: Game, lessons: Lessons) -> None:
    """All matches count alike, also one that repeats an earlier one, compared by this process or by another."""
    state = match(PositionGraph(game), player("minimax:depth=2"), player("random"), 1)
    for number in range(2 * SAME_OPPONENT):
        lessons.add_match(game, PlayedMatch(str(number), 1, 5, state.record("", ("", "")).moves, (50, 50)))
        if number % 2:
            Encounters(game, lessons, players(*QUICK)).go_on(monotonic() + 60)
    first, *others = (own for _, own in sorted(lessons.fits(game.rules_hash, 0).items()))
    assert first[0].log < -1
    assert len(others) == 2 * SAME_OPPONENT - 1
    assert all(own == first for own in others)
    assert next(iter(recognised(lessons, game.rules_hash, 0, 2))) == "minimax:depth=2"


@pytest.mark.parametrize("moves", [(("(mark 9 9)", "noop"),), (("noop",), ("noop",)), (("noop", "noop", "noop"),)])
def test_a_match_that_contradicts_the_rules_says_nothing(
    game: Game, lessons: Lessons, moves: tuple[tuple[str, ...], ...], caplog: pytest.LogCaptureFixture
) -> None:
    lessons.add_match(game, PlayedMatch("strange", 1, 5, moves, (50, 50)))
    Encounters(game, lessons, players(*QUICK)).go_on(monotonic() + 60)
    assert "cannot compare the moves of match strange: " in caplog.text
    assert Encounters(game, lessons, players(*QUICK)).is_done
    assert lessons.fits(game.rules_hash, 0)[0, 0] == [PolicyFit(name, 0.0, 0.0, 0.0) for name in sorted(QUICK)]


def test_a_match_that_needs_too_many_positions_says_nothing(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recogniser, "_MOST_POSITIONS", 100)
    stored(lessons, game, player("minimax:depth=2"), 2)
    Encounters(game, lessons, players(*QUICK)).go_on(monotonic() + 60)
    assert [record.getMessage()[:39] for record in caplog.records] == ["cannot compare the moves of match match"] * 2
    assert all(fit[1:] == (0, 0, 0) for own in lessons.fits(game.rules_hash, 0).values() for fit in own)
    assert Encounters(game, lessons, players(*QUICK)).is_done


def test_a_match_has_the_positions_in_memory_for_itself_if_need_be(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The positions of the matches before are given up then."""
    stored(lessons, game, player("minimax:depth=2"), SAME_OPPONENT)
    sizes, begin = list[int](), PositionGraph.expand

    def expand(self: PositionGraph, rows: ArrayLike) -> None:
        begin(self, rows)
        sizes.append(self.num_rows)

    monkeypatch.setattr(PositionGraph, "expand", expand)
    Encounters(game, lessons, players(*QUICK)).go_on(monotonic() + 60)
    expected = lessons.fits(game.rules_hash, 0)
    monkeypatch.setattr(recogniser, "_MOST_POSITIONS", max(sizes) - 1)
    with lessons.knowledge.writing() as connection:
        connection.execute("DELETE FROM fit")
    Encounters(game, lessons, players(*QUICK)).go_on(monotonic() + 60)
    assert lessons.fits(game.rules_hash, 0) == expected
    assert not caplog.records


def test_a_game_in_which_all_players_look_too_far_ahead_is_left_alone(
    game: Game, lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recogniser, "_MOST_AHEAD", 0)
    stored(lessons, game, player("weak"), 1)
    encounters = Encounters(game, lessons, players("weak", "minimax:depth=2"))
    encounters.go_on(monotonic() + 60)
    assert encounters.is_done
    assert not lessons.fits(game.rules_hash, 0)


@pytest.mark.parametrize(("most", "names"), [(72, QUICK), (71, ("random",))])
def test_players_that_look_ahead_are_left_out_where_this_takes_too_much(
    graph: PositionGraph, monkeypatch: pytest.MonkeyPatch, most: int, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(recogniser, "_MOST_AHEAD", most)
    assert tuple(affordable(graph, players(*QUICK))) == names


def test_the_known_players() -> None:
    assert tuple(known_opponents()) == KNOWN_OPPONENTS
