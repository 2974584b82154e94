from __future__ import annotations

from dataclasses import replace
from itertools import count
from time import monotonic

import numpy as np
import pytest

import gamelore
from drawn_trees import WALKING
from gamelore import GameloreError
from gamelore.catalogue import play_matches, player
from gamelore.players import uct
from gamelore.players.player import Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import extend, stream
from gamelore.players.uct import UCT, SearchSettings, search

# Both say a number at once. Row gets 100 for the same, column for another: half and half is the only equilibrium.
PENNIES = """
(role row) (role column)
(init asking)
(<= (legal ?r heads) (role ?r)) (<= (legal ?r tails) (role ?r))
(<= (next same) (does row ?m) (does column ?m))
(<= (next other) (does row ?m) (does column ?n) (distinct ?m ?n))
(<= terminal (true same)) (<= terminal (true other))
(<= (goal row 100) (true same)) (<= (goal column 0) (true same))
(<= (goal row 0) (true other)) (<= (goal column 100) (true other))
"""

# Both choose at once. Top is better for row whatever column does; knowing that, left is better for column, although
# right would be if row drew.
DOMINANT = """
(role row) (role column)
(init asking)
(legal row top) (legal row bottom) (legal column left) (legal column right)
(payoff top left 60 80) (payoff top right 60 20)
(payoff bottom left 20 0) (payoff bottom right 30 100)
(<= (next (paid ?v ?w)) (does row ?m) (does column ?n) (payoff ?m ?n ?v ?w))
(<= terminal (true (paid ?v ?w)))
(<= (goal row ?v) (true (paid ?v ?w))) (<= (goal column ?w) (true (paid ?v ?w)))
"""

# One player has a way of five steps; every wrong turn ends it with less.
WAY = """
(role white)
(init (at n0)) (init (control white))
(edge n0 left n1) (edge n1 right n2) (edge n2 left n3) (edge n3 left n4) (edge n4 right home)
(edge n0 right ditch) (edge n1 left ditch) (edge n2 right ditch) (edge n3 right ditch) (edge n4 left ditch)
(leaf ditch 10 0) (leaf home 100 0)
""" + WALKING.replace("(other white black) (other black white)", "(other white white)")


def turn_at(graph: PositionGraph, row: int, role: int, times: int = 20, seed: int = 1) -> Turn:
    graph.list_moves([row])
    rows, plies = np.full(times, row, np.int32), np.zeros(times, np.int32)
    return Turn(graph, role, np.arange(times), rows, extend(stream(seed), np.arange(times)), plies)


def moves(settings: SearchSettings, graph: PositionGraph, row: int, role: int, times: int = 20) -> set[str]:
    """What the player does when asked many times, with other streams each time."""
    choices = UCT(settings).choose(turn_at(graph, row, role, times))
    return {graph.game.move_text(role, int(graph.legal(row, role)[choice])) for choice in choices}


@pytest.mark.parametrize(
    ("drawing", "role", "move"),
    [
        ("xx. oo. ...", 0, "(mark 1 3)"),  # wins at once
        ("xx. oo. x..", 1, "(mark 2 3)"),
        ("x.. .o. x..", 1, "(mark 2 1)"),  # else the other wins at once
        ("oo. x.. .x.", 0, "(mark 1 3)"),
    ],
)
def test_a_win_is_taken_and_a_loss_blocked(graph_of, row_at, drawing, role, move) -> None:
    graph = graph_of("tictactoe")
    assert moves(SearchSettings(simulations=300), graph, row_at(graph, drawing), role) == {move}


def test_three_players_each_for_itself(graph_of) -> None:
    graph = graph_of("tictactoe3p")
    position = graph.game.start()
    for move in ["(mark 1 1)", "(mark 4 4)", "(mark 3 1)", "(mark 1 2)", "(mark 4 3)", "(mark 3 2)"]:
        mover = next(role for role, legal in position.legal.items() if len(legal) > 1)
        position = position.play({role: move if role == mover else "noop" for role in graph.game.roles})
    row = int(graph.intern(position.state[None])[0])
    assert moves(SearchSettings(simulations=600), graph, row, 0) == {"(mark 1 3)"}


def test_a_single_player_finds_its_way() -> None:
    graph = PositionGraph(gamelore.load(WAY))
    assert moves(SearchSettings(simulations=400), graph, graph.start, 0) == {"(go left)"}
    records = play_matches(graph.game, ["uct:simulations=400"], 5)
    assert [record.goals for record in records] == [(100,)] * 5


def test_simultaneous_moves_with_a_dominant_one() -> None:
    graph = PositionGraph(gamelore.load(DOMINANT))
    settings = SearchSettings(simulations=500)
    assert [moves(settings, graph, graph.start, role) for role in (0, 1)] == [{"top"}, {"left"}]


def test_simultaneous_moves_in_balance() -> None:
    game = gamelore.load(PENNIES)
    states, keys = np.repeat(game.initial[None], 30, axis=0), extend(stream(1), np.arange(30))
    found = search(game, states, keys, SearchSettings(simulations=1000))
    shares = found.visits.reshape(30, 2, 2)[:, :, 0] / 1000
    assert np.all(np.abs(shares - 0.5) < 0.25)
    assert found.means.mean() == pytest.approx(50, abs=3)


def test_the_best_move_of_a_tree(graph_of) -> None:
    """TREE: minimax 40 for l, 0 for m, 30 for r."""
    graph = graph_of("tree")
    found = search(graph.game, graph.game.initial[None], extend(stream(1), [0]), SearchSettings(simulations=3000))
    left, middle, right = found.visits[:3].tolist()
    assert left > right > middle
    assert found.means[[0, 2]] == pytest.approx([40, 30], abs=3)
    assert moves(SearchSettings(simulations=3000), graph, graph.start, 0, times=3) == {"(go l)"}


def test_stuck_positions_and_missing_goals_are_worth_nothing(graph_of) -> None:
    graph = graph_of("walk")
    keys = extend(stream(1), np.arange(2))
    states = np.repeat(graph.game.initial[None], 2, axis=0)
    found = search(graph.game, states, keys, SearchSettings(simulations=50, max_plies=20))
    assert found.visits.reshape(2, 3).sum(axis=1).tolist() == [50, 50]
    assert found.means.tolist() == [0.0] * 6


@pytest.mark.parametrize("name", ["tictactoe3p", "goofspiel"])
def test_a_tree_depends_on_its_state_and_key_only(load, name) -> None:
    game, lanes = load(name), 5
    settings = SearchSettings(simulations=50, leaves=7, playouts=2)
    states, keys = np.repeat(game.initial[None], lanes, axis=0), extend(stream(1), np.arange(lanes))
    whole = search(game, states, keys, settings)
    each = whole.offsets[:: game.num_roles]
    for lane in (0, 3):
        alone = search(game, states[:1], keys[lane : lane + 1], settings)
        assert np.array_equal(alone.visits, whole.visits[each[lane] : each[lane + 1]])
        assert np.array_equal(alone.means, whole.means[each[lane] : each[lane + 1]], equal_nan=True)
    assert not np.array_equal(*np.split(whole.visits[: 2 * each[1]], 2))


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_both_engines_search(graph_of, row_at, engine) -> None:
    """They draw other playouts, but on either the same search comes out twice, and a win is seen."""
    graph = graph_of("tictactoe", engine)
    row = row_at(graph, "xx. oo. ...")
    state, keys = graph.states[[row]], extend(stream(1), [0])
    one, other = (search(graph.game, state, keys, SearchSettings(simulations=64)) for _ in range(2))
    assert np.array_equal(one.visits, other.visits)
    assert np.array_equal(one.means, other.means, equal_nan=True)
    assert one.means[0] == 100  # (mark 1 3) is x's first move in the order of actions
    assert one.visits[0] > one.visits[1:5].max()


def test_matches_are_the_same_however_many_are_played(load) -> None:
    seats = ["uct:simulations=30", "uct:simulations=20,leaves=3"]
    assert play_matches(load("othello4"), seats, 3)[:1] == play_matches(load("othello4"), seats, 1)


def test_few_trees_at_once_are_as_good_as_many(graph_of, monkeypatch) -> None:
    graph = graph_of("tictactoe")
    asked = turn_at(graph, graph.start, 0)
    whole = UCT(SearchSettings(simulations=40)).choose(asked)
    monkeypatch.setattr(uct, "NODES_AT_ONCE", 130)
    assert np.array_equal(UCT(SearchSettings(simulations=40)).choose(asked), whole)
    assert len(set(whole.tolist())) > 1


@pytest.mark.parametrize(("simulations", "leaves"), [(1, 16), (100, 1), (100, 7), (33, 64)])
def test_the_budget_of_simulations_is_kept(load, simulations, leaves) -> None:
    game = load("goofspiel")
    settings = SearchSettings(simulations=simulations, leaves=leaves)
    found = search(game, game.initial[None], extend(stream(1), [0]), settings)
    assert np.add.reduceat(found.visits, found.offsets[:-1]).tolist() == [simulations] * game.num_roles
    assert np.array_equal(np.isnan(found.means), found.visits == 0)


class Clock:
    """A clock that moves on by a second whenever somebody looks at it."""

    def __init__(self, monkeypatch) -> None:
        seconds = count()
        for module in (uct, uct):
            monkeypatch.setattr(module, "monotonic", lambda: float(next(seconds)))


def simulations_in(game, **settings) -> int:
    found = search(game, game.initial[None], extend(stream(1), [0]), SearchSettings(leaves=4, **settings))
    return int(found.visits[: found.offsets[1]].sum())


def test_the_budget_of_time_is_kept(load, monkeypatch) -> None:
    Clock(monkeypatch)
    game = load("tictactoe")
    done = [simulations_in(game, seconds=seconds) for seconds in (0, 30, 300)]
    assert done[0] == 0  # what was under way when the time was up counts for nothing
    assert 0 < done[1] < done[2]
    assert all(number % 4 == 3 for number in done[1:])  # 1, 2 and then 4 leaves at once
    assert simulations_in(game, seconds=300, simulations=4) == 4  # whichever is over first
    assert simulations_in(game, seconds=30, simulations=4000) == done[1]


@pytest.mark.parametrize("settings", [{"simulations": 4000}, {"seconds": 1000}, {"simulations": 4000, "seconds": 1000}])
def test_a_deadline_is_kept_whatever_the_budget(load, monkeypatch, settings) -> None:
    Clock(monkeypatch)
    game = load("tictactoe")
    alone = simulations_in(game, seconds=30)
    Clock(monkeypatch)
    simulations_in(game, seconds=30)
    Clock(monkeypatch)
    keys = extend(stream(1), [0])
    found = search(game, game.initial[None], keys, SearchSettings(leaves=4, **settings), deadline=30.0)
    assert abs(int(found.visits[: found.offsets[1]].sum()) - alone) <= 4


def test_no_round_is_begun_that_would_come_too_late(load, monkeypatch) -> None:
    """Every round takes a second and 16 leaves at most; after one of 16 another does not fit into half a second."""
    game, now, rounds = load("tictactoe"), [0.0], []

    def playouts_that_take_a_second(game, states, keys, **_):
        now[0] += 1
        rounds.append(states.shape[1])
        return np.zeros((*states.shape[:2], game.num_roles), np.int16)

    monkeypatch.setattr(uct, "monotonic", lambda: now[0])
    monkeypatch.setattr(uct, "playout_goals", playouts_that_take_a_second)
    settings = SearchSettings(simulations=10**6, leaves=4, playouts=1)
    search(game, game.initial[None], extend(stream(1), [0]), settings, deadline=6.5)
    assert rounds == [1, 2, 4, 4, 4, 4]
    assert now[0] <= 6.5


def test_a_turn_has_a_deadline(graph_of) -> None:
    graph = graph_of("tictactoe")
    asked = replace(turn_at(graph, graph.start, 0, times=60), deadline=monotonic() - 1)
    choices = UCT(SearchSettings(simulations=10**9)).choose(asked)
    assert len(set(choices.tolist())) > 4  # drawn: nothing was found out
    soon = replace(turn_at(graph, graph.start, 0, times=1), deadline=monotonic() + 0.1)
    assert 0 <= UCT(SearchSettings(simulations=10**9)).choose(soon)[0] < 9


def test_the_time_is_that_of_all_lanes_together(graph_of, monkeypatch) -> None:
    """With both budgets, lanes are searched in parts."""
    graph, now, asked = graph_of("tictactoe"), [0.0], []

    def searched(game, states, keys, settings, deadline):
        asked.append((len(states), deadline))
        now[0] += 1
        return search(game, states, keys, SearchSettings(simulations=2))

    monkeypatch.setattr(uct, "monotonic", lambda: now[0])
    monkeypatch.setattr(uct, "search", searched)
    monkeypatch.setattr(uct, "NODES_AT_ONCE", 100)
    turn = turn_at(graph, graph.start, 0, times=5)
    UCT(SearchSettings(simulations=50, seconds=8)).choose(turn)
    assert asked == [(2, 8.0), (2, 8.0), (1, 8.0)]
    asked.clear()
    UCT(SearchSettings(simulations=50, seconds=8)).choose(replace(turn, deadline=9.0))
    assert {deadline for _, deadline in asked} == {9.0}


def test_without_time_any_legal_move_is_made(graph_of) -> None:
    graph = graph_of("tictactoe")
    choices = UCT(SearchSettings(seconds=0)).choose(turn_at(graph, graph.start, 0, times=60))
    assert set(choices.tolist()) <= set(range(9))
    assert len(set(choices.tolist())) > 4


@pytest.mark.parametrize("settings", [SearchSettings(), SearchSettings(seconds=1)])
def test_nothing_is_searched_where_there_is_one_move(graph_of, monkeypatch, settings) -> None:
    graph = graph_of("tictactoe")
    monkeypatch.delattr(uct, "search")
    assert UCT(settings).choose(turn_at(graph, graph.start, 1, times=3)).tolist() == [0, 0, 0]


def test_players_by_name() -> None:
    found = player("uct")
    assert isinstance(found, UCT)
    assert found.settings == SearchSettings(simulations=1000)
    found = player("uct:seconds=0.5,exploration=1,leaves=8,playouts=2,max_plies=200")
    assert isinstance(found, UCT)
    assert found.settings == SearchSettings(None, 0.5, 1.0, 8, 2, 200)
    found = player("uct:simulations=50")
    assert isinstance(found, UCT)
    assert found.settings.simulations == 50


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("uct:simulations=0", "expected simulations of at least 1, got 0"),
        ("uct:seconds=-1", "expected seconds of at least 0, got -1.0"),
        ("uct:seconds=nan", "expected seconds of at least 0, got nan"),
        ("uct:exploration=inf", "expected exploration of at least 0, got inf"),
        ("uct:leaves=0", "expected leaves of at least 1, got 0"),
        ("uct:simulations=1.5", "expected a number for simulations, got '1.5'"),
    ],
)
def test_wrong_settings_are_refused(spec, message) -> None:
    with pytest.raises(GameloreError) as caught:
        player(spec)
    assert str(caught.value).startswith(message)


def searched(deadline: float | None, **settings: object) -> uct.Searched:
    game = gamelore.load("connectfour")
    chosen = SearchSettings(**settings)  # type: ignore[arg-type]
    return search(game, game.initial[None], extend(stream(1), [0]), chosen, deadline)


def visits(found: uct.Searched) -> int:
    """The simulations of a tree whose first role moves."""
    return int(found.visits[: found.offsets[1]].sum())


def test_without_a_clock_by_the_clock_is_the_default() -> None:
    plain, by_clock = searched(None), searched(None, clock=True)
    assert visits(plain) == 1000
    assert np.array_equal(plain.visits, by_clock.visits)
    assert np.array_equal(plain.means, by_clock.means, equal_nan=True)


def test_by_the_clock_the_search_goes_on_until_shortly_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes with every look at the clock here."""
    now = count(0.0, 0.001)
    monkeypatch.setattr(uct, "monotonic", lambda: next(now))
    assert visits(searched(1.0, clock=True)) > 2000
    assert 0.9 < next(now) < 1.0


def test_a_budget_is_kept_by_the_clock() -> None:
    assert visits(searched(monotonic() + 60, clock=True, simulations=50)) == 50
    assert visits(searched(monotonic() + 60, simulations=50)) == 50


def test_by_the_clock_the_trees_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(uct.FOREST_VARIABLE, "1")
    assert 1000 < visits(searched(monotonic() + 3600, clock=True)) < 100_000


def test_with_seconds_the_trees_are_bounded_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound this search takes all of its seconds, and more and more memory."""
    monkeypatch.setenv(uct.FOREST_VARIABLE, "1")
    begin = monotonic()
    assert 1000 < visits(searched(None, seconds=20)) < 100_000
    assert monotonic() - begin < 15


def test_a_turn_without_a_time_limit_is_not_copied(graph_of, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, turns = graph_of("tictactoe"), list[Turn]()
    choose = UCT._choose

    def noted(self: UCT, turn: Turn, part: np.ndarray) -> np.ndarray:
        turns.append(turn)
        return choose(self, turn, part)

    monkeypatch.setattr(UCT, "_choose", noted)
    turn = turn_at(graph, graph.start, 0, times=2)
    UCT(SearchSettings(simulations=10)).choose(turn)
    UCT(SearchSettings(seconds=0)).choose(turn)
    assert [each is turn for each in turns] == [True, False]
