from __future__ import annotations

import numpy as np
import pytest

from gamelore import GameloreError
from gamelore.players.lookahead import Lookahead, choice_values, lookahead
from gamelore.players.player import Turn
from gamelore.players.random_streams import extend, stream

WHITE, BLACK = 0, 1


def tree_rows(graph) -> dict[str, int]:
    """The tree of conftest.py, rows by the name of the node."""
    done = 0
    while done < graph.num_rows:
        end = graph.num_rows
        graph.expand(np.arange(done, end))
        done = end
    return {
        fact.removeprefix("(at ").removesuffix(")"): row
        for row in range(graph.num_rows)
        for fact in graph.facts(row)
        if fact.startswith("(at ")
    }


@pytest.mark.parametrize(
    ("role", "heuristic", "node", "values"),
    [  # values by depth 0, 1, 2, 3, worked out by hand
        (WHITE, "minimax", "root", [50, 50, 40, 40]),  # depth 1: max(50, 50, 30); 2: max(40, min(0, 50), 30)
        (WHITE, "maxmax", "root", [50, 50, 90, 100]),
        (WHITE, "avgmax", "root", [50, 50, 65, 65]),  # 2: max((40 + 90) / 2, (0 + 50) / 2, 30)
        (WHITE, "minimax", "q", [50, 0, 0, 0]),
        (WHITE, "maxmax", "q", [50, 50, 100, 100]),
        (WHITE, "avgmax", "q", [50, 25, 50, 50]),  # 1: (0 + 50) / 2; 2: (0 + max(100, 10)) / 2
        (WHITE, "minimax", "deep", [50, 100, 100, 100]),
        (BLACK, "minimax", "root", [50, 50, 60, 60]),  # 2: min(max(60, 10), max(100, 50), 70)
        (BLACK, "maxmax", "root", [50, 70, 100, 100]),
        (BLACK, "avgmax", "root", [50, 170 / 3, 230 / 3, 230 / 3]),
        (BLACK, "minimax", "q", [50, 100, 100, 100]),
        (BLACK, "minimax", "deep", [50, 0, 0, 0]),
        (BLACK, "avgmax", "deep", [50, 45, 45, 45]),
        (WHITE, "minimax", "leaf30", [30, 30, 30, 30]),
        (BLACK, "avgmax", "leaf30", [70, 70, 70, 70]),
    ],
)
def test_values_by_hand(graph_of, role, heuristic, node, values) -> None:
    graph = graph_of("tree")
    row = tree_rows(graph)[node]
    found = [float(lookahead(graph, role, [row], depth, heuristic)[0]) for depth in range(4)]
    assert found == pytest.approx(values)


def test_the_default_stands_for_open_positions(graph_of) -> None:
    graph = graph_of("tree")
    values = [float(lookahead(graph, WHITE, [graph.start], 1, "minimax", default)[0]) for default in (10.0, 80.0)]
    assert values == [30.0, 80.0]  # leaf30 against a default below and above


def test_values_of_moves_by_hand(graph_of) -> None:
    graph = graph_of("tree")
    rows = tree_rows(graph)
    asked = [rows["root"], rows["leaf30"], rows["q"], rows["root"]]
    offsets, values = choice_values(graph, WHITE, asked, 2, "minimax")
    assert offsets.tolist() == [0, 3, 3, 4, 7]  # terminal: no moves; black's turn: only noop
    assert values.tolist() == [40, 0, 30, 0, 40, 0, 30]
    _, values = choice_values(graph, BLACK, [rows["p"]], 1, "avgmax")
    assert values.tolist() == [60, 10]


def test_own_moves_against_simultaneous_ones(graph_of) -> None:
    graph = graph_of("one_shot")
    graph.expand([graph.start])
    _, least = choice_values(graph, 0, [graph.start], 1, "minimax")
    _, most = choice_values(graph, 0, [graph.start], 1, "maxmax")
    _, mean = choice_values(graph, 0, [graph.start], 1, "avgmax")
    assert least.tolist() == [100, 0, 50, 50]
    assert most.tolist() == [100, 100, 50, 50]
    assert mean.tolist() == [100, 50, 50, 50]
    # column has no goal where row drew (counts 0), and row's four moves are its replies
    _, mean = choice_values(graph, 1, [graph.start], 1, "avgmax")
    assert mean.tolist() == [(0 + 0 + 50 + 0) / 4, (0 + 100 + 50 + 0) / 4]


def test_stuck_positions_count_the_default_and_missing_goals_nothing(graph_of) -> None:
    graph = graph_of("walk")
    _, values = choice_values(graph, 0, [graph.start], 2, "minimax", 42.0)
    assert values.tolist() == [42.0, 42.0, 0.0]  # stay: max(42, 42, 0); trap: stuck; leave: no goal


def test_deep_minimax_of_tictactoe_is_a_draw(graph_of) -> None:
    graph = graph_of("tictactoe")
    assert lookahead(graph, 0, [graph.start], 9).tolist() == [50.0]
    assert lookahead(graph, 1, [graph.start], 9, default=7.0).tolist() == [50.0]
    assert lookahead(graph, 1, [graph.start], 9, "maxmax").tolist() == [100.0]


def test_values_do_not_depend_on_what_was_asked_before(graph_of) -> None:
    one, other = graph_of("capturego3"), graph_of("capturego3")
    for depth in (1, 3, 2):
        lookahead(one, 0, [one.start], depth, "avgmax")
    rows = one.children(one.children([one.start]))
    other_rows = other.intern(one.states[rows])
    for heuristic in ("minimax", "maxmax", "avgmax"):
        left, right = lookahead(one, 0, rows, 2, heuristic), lookahead(other, 0, other_rows, 2, heuristic)
        assert np.array_equal(left, right)


def test_the_player_makes_a_best_move_and_draws_ties(graph_of, row_at) -> None:
    graph = graph_of("tictactoe")
    times = 300
    keys = extend(stream(3), np.arange(times))
    row = row_at(graph, "xx. oo. ...")
    asked = [row, row_at(graph, "x.. .o. ..x")]
    graph.list_moves(asked)

    def moves(player: Lookahead, row: int, role: int) -> set[str]:
        rows, plies = np.full(times, row, np.int32), np.zeros(times, np.int32)
        choices = player.choose(Turn(graph, role, np.arange(times), rows, keys, plies))
        return {graph.game.move_text(role, int(graph.legal(row, role)[choice])) for choice in choices}

    assert moves(Lookahead("minimax", 1), row, 0) == {"(mark 1 3)"}
    # o in the middle, x in two corners: a corner loses to a fork two plies on, the four sides hold
    sides = {"(mark 1 2)", "(mark 2 1)", "(mark 2 3)", "(mark 3 2)"}
    assert moves(Lookahead("minimax", 4), asked[1], 1) == sides
    assert moves(Lookahead("minimax", 1), asked[1], 1) == sides | {"(mark 1 3)", "(mark 3 1)"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda graph: lookahead(graph, 0, [0], -1), "expected a depth of at least 0, got -1"),
        (lambda graph: choice_values(graph, 0, [0], 0), "expected a depth of at least 1, got 0"),
        (
            lambda graph: lookahead(graph, 0, [0], 1, "minmax"),
            "expected the setting heuristic to be minimax, maxmax or avgmax",
        ),
        (lambda _: Lookahead("minimax", 0), "expected a depth of at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_refused(graph_of, call, message) -> None:
    with pytest.raises(GameloreError) as caught:
        call(graph_of("tree"))
    assert str(caught.value).startswith(message)
