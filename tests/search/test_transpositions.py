"""Transpositions: one node for a position to which different moves lead, and what its parents learn from each other."""

import numpy as np
import pytest

from gamelore import Game, load
from gamelore.players.random_streams import stream
from gamelore.search.growth import EngineGrower, Grower
from gamelore.search.native_growth import grower
from gamelore.search.settings import GrowthSettings
from gamelore.search.tree import EDGE, FIRST, LISTED, MOVER, NUM_MOVES, NUM_NODES, PARENT, PROVED, STAGE, VISITS, Tree

# Two players add 1 or 2 to a sum in turn; who reaches 6 wins. The sum 3 is reached by 1 + 2 and by 2 + 1, and also by
# 1 + 1 + 1, but then it is the other player's turn.
SUM = """
(role a) (role b)
(init (sum 0)) (init (turn a))
(plus 0 1 1) (plus 0 2 2) (plus 1 1 2) (plus 1 2 3) (plus 2 1 3) (plus 2 2 4) (plus 3 1 4) (plus 3 2 5)
(plus 4 1 5) (plus 4 2 6) (plus 5 1 6)
(<= (legal ?p (add ?n)) (true (turn ?p)) (true (sum ?m)) (plus ?m ?n ?s))
(<= (legal a noop) (true (turn b)))
(<= (legal b noop) (true (turn a)))
(<= (next (sum ?s)) (does ?p (add ?n)) (true (sum ?m)) (plus ?m ?n ?s))
(<= (next (turn b)) (true (turn a)))
(<= (next (turn a)) (true (turn b)))
(<= terminal (true (sum 6)))
(<= (goal a 100) (true (sum 6)) (true (turn b)))
(<= (goal a 0) (true (sum 6)) (true (turn a)))
(<= (goal b 100) (true (sum 6)) (true (turn a)))
(<= (goal b 0) (true (sum 6)) (true (turn b)))
"""
WAYS = {"native": grower, "engine": EngineGrower}


def shared(game: Game, settings: GrowthSettings) -> Grower:
    """Return how three threads grow one tree."""
    return grower(game, settings, threads=3)


def grown(game: Game, walks: int, way: str = "native", **settings: object) -> Tree:
    tree = Tree(game, 16_384, 400_000)
    tree.assumption = 100
    tree.start(game.initial)
    growing: Grower = (WAYS | {"shared": shared})[way](game, GrowthSettings(**settings))  # type: ignore[arg-type]
    growing.grow(tree, walks, stream(1), (0, 10_000))
    return tree


def states(tree: Tree) -> list[bytes]:
    """The states of the nodes in which the match goes on."""
    arrays = tree.arrays
    size = int(arrays.size[NUM_NODES])
    over = (arrays.nodes[:size, STAGE] == PROVED) & (arrays.counts[:size] == 0).any(axis=1)
    return [state.tobytes() for state in arrays.states[:size][~over]]


def child(tree: Tree, node: int, mover: int, index: int) -> int:
    return int(tree.arrays.child[tree.span(node, mover)[0] + index])


@pytest.mark.parametrize("way", WAYS)
def test_two_orders_of_moves_lead_to_one_node(way: str) -> None:
    """1 + 2 and 2 + 1 make 3, and then it is the first player's turn again."""
    tree = grown(load(SUM), 20, way, scout=False, least=1, leaves=1, exploration=5.0)
    one, two = child(tree, 0, 0, 0), child(tree, 0, 0, 1)
    assert child(tree, one, 1, 1) == child(tree, two, 1, 0) > 0
    assert child(tree, one, 1, 0) != child(tree, two, 1, 1), "1 + 1 is not 2 + 2"


@pytest.mark.parametrize("way", ["native", "shared"])
def test_every_position_is_one_node(way: str) -> None:
    """tictactoe has 5478 positions, and in 958 of them the match is over."""
    game = load("tictactoe")
    tree = grown(game, 100_000, way)
    assert len(states(tree)) == len(set(states(tree))) <= 4520
    apart = grown(game, 4000, transpositions=False)
    assert len(states(apart)) > len(set(states(apart)))


def test_a_move_leads_to_an_older_node_only_if_it_is_deeper() -> None:
    """In fivemensmorris pieces move to and fro, so a position can be its own descendant; the tree has no circle."""
    tree = grown(load("fivemensmorris"), 20_000)
    arrays = tree.arrays
    size = int(arrays.size[NUM_NODES])
    edges = 0
    for node in range(size):
        if arrays.counts[node].all():
            first, count = int(arrays.nodes[node, FIRST]), int(arrays.counts[node].sum())
            below = arrays.child[first : first + count]
            below = below[below >= 0]
            assert (arrays.layer[below] > arrays.layer[node]).all()
            edges += len(below)
    assert edges > size, "some nodes have several parents"


def test_a_proof_goes_through_transpositions() -> None:
    """3 is lost for the player to move: after 4 or 5 the other one reaches 6. So is 0, the first player's position."""
    tree = grown(load(SUM), 1000)
    arrays = tree.arrays
    assert arrays.nodes[0, STAGE] == PROVED
    assert arrays.low[0].tolist() == arrays.high[0].tolist() == [0, 100]


@pytest.mark.parametrize("way", ["native", "shared"])
def test_walks_through_all_parents_count_once_each(way: str) -> None:
    """The visits of a node are those of its moves; the visits of a move are those of one parent."""
    tree = grown(load("connectfour"), 3000, way)
    arrays = tree.arrays
    size = int(arrays.size[NUM_NODES])
    listed = [node for node in range(size) if arrays.counts[node].all() and arrays.nodes[node, STAGE] != PROVED]
    for node in listed:
        first, count = tree.span(node, int(arrays.nodes[node, MOVER]))
        assert arrays.visits[first : first + count].sum() == arrays.nodes[node, VISITS]
    assert arrays.nodes[0, VISITS] == 3000


@pytest.mark.parametrize("name", ["connectfour", "fivemensmorris", "othello4"])
def test_nodes_keep_a_parent_when_others_are_dropped(name: str) -> None:
    game = load(name)
    tree = grown(game, 3000)
    for _ in range(3):
        mover = int(tree.arrays.nodes[0, MOVER])
        first, count = tree.span(0, mover)
        choices = np.zeros(game.num_roles, np.int32)
        choices[mover] = int(tree.arrays.visits[first : first + count].argmax())
        assert tree.advance(choices)
        tree.prune()
        arrays = tree.arrays
        size = int(arrays.size[NUM_NODES])
        nodes = arrays.nodes[1:size]
        assert (arrays.child[nodes[:, EDGE]] == np.arange(1, size)).all()
        assert (arrays.layer[nodes[:, PARENT]] < arrays.layer[1:size]).all()
        assert len(states(tree)) - len(set(states(tree))) <= len(states(tree)) // 100
        growing = grower(game, GrowthSettings())
        growing.grow(tree, 1000, stream(2), (0, 1000))


def open_wins(tree: Tree) -> dict[int, int]:
    """Moves to a proved win in nodes that are not proved, with their visits, by node."""
    arrays, wins = tree.arrays, {}
    for node in np.flatnonzero(arrays.nodes[: tree.num_nodes, STAGE] == LISTED).tolist():
        mover = int(arrays.nodes[node, MOVER])
        first, count = tree.span(node, mover)
        below = arrays.child[first : first + count]
        won = np.flatnonzero((below >= 0) & (arrays.low[below, mover] == 100))
        if len(won):
            wins[node] = int(arrays.visits[first + won].sum())
    return wins


def test_a_proof_reaches_all_parents() -> None:
    """No node with a proved win is open, whatever move leads there, also after nodes were dropped."""
    game = load("connectfour")
    tree, growing = grown(game, 15_000), grower(game, GrowthSettings())
    num_shared = 0
    for ply in range(24):
        mover = int(tree.arrays.nodes[0, MOVER])
        first, count = tree.span(0, mover)
        choices = np.zeros(game.num_roles, np.int32)
        choices[mover] = int(tree.arrays.visits[first : first + count].argmax())
        if not tree.advance(choices) or tree.arrays.nodes[0, STAGE] == PROVED:
            break
        tree.prune()
        growing.grow(tree, 4000, stream(ply), (0, 1000))
        assert not open_wins(tree)
        arrays = tree.arrays
        proved = np.flatnonzero(arrays.nodes[: tree.num_nodes, STAGE] == PROVED)
        edges = arrays.nodes[proved, EDGE]
        num_shared += np.count_nonzero(arrays.also[edges[edges >= 0]] >= 0)
    assert num_shared > 0


@pytest.mark.parametrize("way", ["native", "shared"])
def test_the_moves_that_lead_to_a_node_are_a_list(way: str) -> None:
    tree = grown(load("connectfour"), 5000, way)
    for _ in range(2):
        arrays, moves = tree.arrays, int(tree.arrays.size[NUM_MOVES])
        for node in range(1, tree.num_nodes):
            edge, listed = int(arrays.nodes[node, EDGE]), list[int]()
            while edge >= 0:
                listed.append(edge)
                edge = int(arrays.also[edge])
            assert sorted(listed) == np.flatnonzero(arrays.child[:moves] == node).tolist()
        tree.prune()


def test_both_ways_to_grow_find_the_same_transpositions() -> None:
    """Playouts of one ply have no result in the first positions of connect four, so both see the same values."""
    trees = [grown(load("connectfour"), 400, way, max_plies=1) for way in WAYS]
    assert trees[0].num_nodes == trees[1].num_nodes
    assert trees[0].num_nodes < 400, "some walks end at transpositions"
    assert states(trees[0]) == states(trees[1])
