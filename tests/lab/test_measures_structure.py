"""What can be counted on the games themselves."""

from gamelore.lab.feature_trees import feature_tree
from gamelore.lab.papers.banerjee2007 import measures as structure


def test_features_of_tictactoe() -> None:
    assert structure.feature_count("tictactoe", 0) == 12
    assert structure.feature_count("tictactoe", 1) == 10
    assert structure.features_with("tictactoe", 0, "win in the middle") == 0
    assert structure.features_with("tictactoe", 0, "loss at the bottom") == 0
    assert structure.features_shared("tictactoe", 0, "tictactoe") == 12
    assert structure.lookahead_values_else("tictactoe", 0) == 0


def test_features_that_othello_brings() -> None:
    assert structure.features_with("othello4", 0, "win in the middle") > 0
    assert structure.features_with("othello4", 0, "loss at the bottom") > 0


def test_minimax_on_a_feature() -> None:
    assert structure.minimax(feature_tree("L,{n,W}")) == 0
    assert structure.minimax(feature_tree("{n},{n,W}")) == 50
    assert structure.minimax(feature_tree("{n,W},{W}")) == 100
    assert structure.minimax(feature_tree("{0,30}")) == 30


def test_moves_and_afterstates() -> None:
    assert structure.moves_share("tictactoe", "no fewer") == 0.0
    assert structure.moves_share("connect3", "more") == 0.0
    assert 0.0 < structure.moves_share("connect3", "as many") < 1.0
    assert structure.moves_share("othello4", "more") > 0.0
    assert structure.repeated_afterstates("tictactoe", 0) == 0
    assert structure.other_rewards(["tictactoe"]) == 0


def test_tictactoe_has_fewer_afterstates_than_pairs_of_state_and_move() -> None:
    # reachable: 5478 positions, 549946 nodes of the tree; x moves first
    assert 0.0 < structure.afterstates_per_pair("tictactoe", 0) < 0.5
