"""Finding features: the paper's twelve, the definition recursed over positions, other games and rewards."""

from __future__ import annotations

import numpy as np
import pytest

from figure2 import TWELVE
from gamelore import load
from gamelore.errors import GameloreError
from gamelore.learning.store.features import Equivalence, to_text
from gamelore.learning.td.afterstates import afterstates_of_facts, own_afterstates
from gamelore.learning.td.discovery import FeatureSpace, feature_space, reachable_features
from gamelore.players.position_graph import PositionGraph
from learning.plain_learner import PlainGame
from learning.small_games import COINS, PENNIES, TREE

X_FEATURES = set(TWELVE)


def test_tictactoe_has_the_papers_twelve_features_for_the_first_mover() -> None:
    census = reachable_features(load("tictactoe"), "xplayer")
    assert set(census.features) == X_FEATURES
    assert (census.complete, census.method) == (True, "all reachable positions")
    # 5478 positions, 958 of them terminal; with 1, 3, 5, 7, 9 marks: 9 + 252 + 1260 + 1140 + 78
    assert (census.num_positions, census.num_afterstates) == (5478 - 958, 2739)


def test_tictactoe_has_ten_features_for_the_second_mover_and_fourteen_in_all() -> None:
    found = set(reachable_features(load("tictactoe"), 1).features)
    assert len(found) == 10
    assert len(found | X_FEATURES) == 14


def test_both_engines_find_the_same_features() -> None:
    for text, role in ((TREE, "white"), (PENNIES, "red"), (COINS, 0)):
        native, reasoner = (reachable_features(load(text, engine=engine), role) for engine in ("native", "reasoner"))
        assert native == reasoner


def test_a_large_game_is_looked_at_over_random_matches() -> None:
    census = reachable_features(load("connect3"), "red", limit=500, num_matches=30)
    assert (census.complete, census.method) == (False, "the positions of 30 random matches")
    assert 100 < census.num_positions < 30 * 25
    assert "L,{n}" in census.features
    assert census == reachable_features(load("connect3"), "red", limit=500, num_matches=30)


def test_a_graph_that_knows_more_changes_nothing() -> None:
    game = load("tictactoe")
    graph = PositionGraph(game)
    graph.intern(game.state(["(control oplayer)", "(cell 1 1 x)"])[None])
    assert reachable_features(game, 0, graph=graph) == reachable_features(game, 0)


def test_in_othello_a_move_may_lose_at_once() -> None:
    found = reachable_features(load("othello4"), "black").features
    assert any(text.startswith(("W", "L,W")) for text in found)  # a win in the middle
    assert any("{L" in text or ",L}" in text for text in found)  # a loss at the bottom


@pytest.mark.parametrize("name", ["tictactoe", "capturego3", "othello4", "tictactoe3p", "pegsolitaire"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_trees_are_those_of_the_definition(name: str, depth: int) -> None:
    plain = PlainGame(load(name))
    graph = PositionGraph(plain.game)
    rows = np.array([graph.start], np.int32)
    for _ in range(6):
        rows = graph.children(rows)[-(12 if depth < 3 else 3) :]
    for role in range(plain.game.num_roles):
        ids = FeatureSpace(graph, role, depth).ids(rows)
        space = feature_space(graph, role, depth)
        found = [to_text(space.tree(number)) for number in space.ids(rows).tolist()]
        trees = [plain.tree(graph.facts(row), plain.game.roles[role], depth) for row in rows.tolist()]
        assert found == [to_text(tree) for tree in trees]
        assert ids.tolist() == space.ids(rows).tolist()


def test_space_is_kept_by_the_graph() -> None:
    graph = PositionGraph(load("tictactoe"))
    assert feature_space(graph, 0) is feature_space(graph, 0, 2, Equivalence.default((0, 50), (0, 50, 100)))
    assert feature_space(graph, 0) is not feature_space(graph, 1)


def names(game_text: str, depth: int = 2, equivalence: Equivalence | None = None) -> list[str]:
    """The features after each first move of the first role, "-" where there is none."""
    graph = PositionGraph(load(game_text))
    rows = np.array([graph.start], np.int32)
    graph.expand(rows)
    own = own_afterstates(rows, 0, graph.num_moves, graph.move_start, graph.succ_start, graph.successors)
    space = FeatureSpace(graph, 0, depth, equivalence)
    return [space.feature(number) or "-" for number in space.ids(own).tolist()]


def test_features_of_a_small_tree() -> None:
    assert names(TREE) == ["L,{D,W}", "{W}", "{W}", "-"]
    assert names(TREE, 1) == ["n,L", "-", "-", "-"]


def test_where_both_choose_at_once_the_others_answer_is_the_first_ply() -> None:
    assert names(PENNIES) == ["L,W", "L,W"]
    assert names(PENNIES, 1) == ["L,W", "L,W"]
    assert names(PENNIES, 0) == ["-", "-"]


def test_leaf_types_are_the_games_own_outcomes() -> None:
    # a missing goal counts 0
    assert names(COINS) == ["10", "20", "20,60", "L"]


def test_an_equivalence_makes_unlike_outcomes_alike_before_siblings_coalesce() -> None:
    relation = Equivalence.given({10: 0, 20: 100, 60: 100}, (10, 20, 60))
    assert names(COINS, equivalence=relation) == ["L", "W", "W", "L"]  # a missing goal is as bad as the worst


def test_an_outcome_outside_the_equivalence_is_refused() -> None:
    with pytest.raises(GameloreError, match="got another; give an equivalence"):
        names(COINS, equivalence=Equivalence(((10, 0), (60, 100))))


def test_a_terminal_afterstate_is_its_own_goal() -> None:
    graph = PositionGraph(load(TREE))
    over = afterstates_of_facts(graph, 0, [frozenset({"(at draw2)", "(control black)"})])
    assert FeatureSpace(graph, 0).ids(over).tolist() == [51]
    assert FeatureSpace(graph, 0, 2, Equivalence(((0, 0), (50, 0), (100, 100)))).ids(over).tolist() == [51]


def test_depth_must_not_be_negative() -> None:
    with pytest.raises(GameloreError, match="expected a depth from 0 to 100, got -1"):
        FeatureSpace(PositionGraph(load(TREE)), 0, -1)
