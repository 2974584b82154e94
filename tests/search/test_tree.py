"""The tree of a search: what it says about positions, moves of its root, and the limit on its memory."""

import ctypes

import numpy as np
import pytest

from conftest import ONE_SHOT
from gamelore import load
from gamelore.errors import GameloreError
from gamelore.game.game import Game
from gamelore.players.random_streams import stream
from gamelore.search import growth
from gamelore.search.growth import EngineGrower, Grower
from gamelore.search.native_growth import NativeGrower, SharedGrower, grower
from gamelore.search.proofs import first_assumption
from gamelore.search.settings import GrowthSettings
from gamelore.search.tree import (
    COUNT,
    EDGE,
    FIRST,
    LISTED,
    MOVER,
    NOBODY,
    NUM_MOVES,
    PARENT,
    PROVED,
    RESERVED,
    SEEN,
    STAGE,
    VISITS,
    Tree,
    room_in,
)
from gamelore.search.value import LinearValue

GAMES = ["tictactoe", "connect3", "tictactoe3p", "goofspiel", "breakthrough"]
PRIOR_VISITS = GrowthSettings().prior_visits
WAYS = {"native": grower, "engine": EngineGrower}


def new(game: Game, num_nodes: int, num_moves: int) -> Tree:
    tree = Tree(game, num_nodes, num_moves)
    tree.assumption = first_assumption(game, GrowthSettings().max_plies)
    return tree


def grow(tree: Tree, way: Grower, walks: int, seed: int = 1) -> int:
    return way.grow(tree, walks, stream(seed), (0, 10_000)).walks


def planted(game: Game, walks: int, way: str = "native", nodes: int = 8192, **settings: int) -> Tree:
    tree = new(game, nodes, 400_000)
    tree.start(game.initial)
    assert grow(tree, WAYS[way](game, GrowthSettings(**settings)), walks) == walks
    return tree


def check(tree: Tree) -> None:
    """Hold the tree against the rules, and its numbers against each other."""
    game, arrays, size = tree.game, tree.arrays, tree.num_nodes
    nodes = arrays.nodes[:size]
    terminal, goals = game.evaluate(arrays.states[:size])
    legal = game.legal(arrays.states[:size])
    starts, counts = legal.by_role(game.num_roles)
    listed = np.flatnonzero(arrays.counts[:size].all(axis=1))
    for node in listed.tolist():
        assert arrays.counts[node].tolist() == counts[node].tolist()
        own = legal.actions[starts[node, 0] : starts[node, 0] + counts[node].sum()]
        first = nodes[node, FIRST]
        assert arrays.actions[first : first + len(own)].tolist() == own.tolist()
        if nodes[node, MOVER] != NOBODY:
            begin = first + nodes[node, MOVER]
            visits = arrays.visits[begin : begin + nodes[node, COUNT]]
            virtual = visits.sum() - nodes[node, VISITS]  # of the prior, the same number for each move
            assert 0 <= virtual <= PRIOR_VISITS * len(visits)
            assert virtual % len(visits) == 0
            assert (arrays.sums[begin : begin + len(visits)] <= visits + 1e-9).all()
            assert (arrays.sums[begin : begin + len(visits)] >= 0).all()
    ended = np.flatnonzero((nodes[:, STAGE] == PROVED) & (arrays.plies[:size] == 0))
    assert terminal[ended].all()
    assert (arrays.low[ended] == np.maximum(goals[ended], 0)).all()
    children = np.arange(1, size)
    parents, edges = nodes[children, PARENT], nodes[children, EDGE]
    joint = np.empty((len(children), game.num_roles), np.int32)
    for role in range(game.num_roles):
        first = nodes[parents, FIRST] + arrays.counts[parents][:, :role].sum(axis=1)
        joint[:, role] = arrays.actions[first + arrays.joint[children, role]]
    assert (game.next(arrays.states[parents], joint) == arrays.states[children]).all()
    assert (arrays.child[edges[edges >= 0]] == children[edges >= 0]).all()
    assert (arrays.layer[parents] < arrays.layer[children]).all()
    for node in listed[nodes[listed, MOVER] != NOBODY].tolist():
        check_children(tree, node)


def check_children(tree: Tree, node: int) -> None:
    """Hold the children of a node with a mover against the rules, also those that have another first parent."""
    arrays, mover = tree.arrays, int(tree.arrays.nodes[node, MOVER])
    first, count = tree.span(node, mover)
    moves = np.arange(first, first + count)[arrays.child[first : first + count] >= 0]
    below = arrays.child[moves]
    start = arrays.nodes[node, FIRST]
    joint = np.empty((len(moves), tree.game.num_roles), np.int32)
    joint[:, :mover] = arrays.actions[start : start + mover]
    joint[:, mover] = arrays.actions[moves]
    joint[:, mover + 1 :] = arrays.actions[first + count : first + count + tree.game.num_roles - mover - 1]
    assert (
        tree.game.next(np.repeat(arrays.states[node][None], len(moves), axis=0), joint) == arrays.states[below]
    ).all()
    assert (arrays.layer[below] > arrays.layer[node]).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GAMES)
def test_the_tree_agrees_with_the_rules(name: str, way: str) -> None:
    tree = planted(load(name), 1000, way)
    check(tree)
    assert tree.arrays.nodes[0, VISITS] == 1000


def grown_by_threads(game: Game, value: LinearValue | None = None) -> Tree:
    """Grow a tree with three threads, until they have walked 20,000 times or the root is proved."""
    tree, way = new(game, 60_000, 2_000_000), grower(game, GrowthSettings(), threads=3)
    if value is not None:
        way.prior = value.prior(GrowthSettings())
    tree.start(game.initial)
    walks = grow(tree, way, 20_000)
    assert walks == 20_000 or tree.arrays.nodes[0, STAGE] == PROVED
    assert tree.arrays.nodes[0, VISITS] >= walks  # a walk that leaves a proved move for another one counts twice
    return tree


def check_is_at_rest(tree: Tree) -> None:
    """Check that no batch has left anything half done."""
    stages = tree.arrays.nodes[: tree.num_nodes, STAGE]
    assert set(stages.tolist()) <= {SEEN, LISTED, PROVED}
    assert tree.arrays.size[RESERVED] == tree.arrays.lock[0] == 0


@pytest.mark.parametrize("name", GAMES)
def test_a_tree_that_threads_share_agrees_with_the_rules(name: str) -> None:
    """goofspiel has joint moves."""
    tree = grown_by_threads(load(name))
    check(tree)
    check_is_at_rest(tree)


def test_every_walk_in_a_shared_tree_counts_once() -> None:
    """In the first positions of breakthrough nothing is proved."""
    assert grown_by_threads(load("breakthrough")).arrays.nodes[0, VISITS] == 20_000


@pytest.mark.parametrize("name", ["connectfour", "breakthrough"])
def test_threads_share_a_tree_with_a_learned_value(name: str) -> None:
    game = load(name)
    weights = np.random.default_rng(1).normal(0.0, 0.05, (2, 64 * game.num_words)).astype(np.float32)
    tree = grown_by_threads(game, LinearValue(weights, np.full(2, 0.5), determination=0.5))
    check(tree)
    check_is_at_rest(tree)
    arrays, size = tree.arrays, int(tree.arrays.size[NUM_MOVES])
    assert ((arrays.guesses[:size] >= 0.0) & (arrays.guesses[:size] <= 1.0)).all()
    edges = arrays.nodes[1 : tree.num_nodes, EDGE]
    listed = (arrays.nodes[1 : tree.num_nodes, STAGE] == LISTED) & (edges >= 0) & (arrays.also[edges] < 0)
    for node in (1 + np.flatnonzero(listed)).tolist():  # with one parent, so its guess is up to date
        first, count = tree.span(node, int(arrays.nodes[node, MOVER]))
        edge, parent = int(arrays.nodes[node, EDGE]), int(arrays.nodes[node, PARENT])
        best = arrays.guesses[first : first + count].max()
        same = arrays.nodes[node, MOVER] == arrays.nodes[parent, MOVER]
        assert arrays.guesses[edge] == pytest.approx(best if same else 1.0 - best, abs=1e-6)


def test_threads_share_the_room_of_a_tree() -> None:
    game = load("breakthrough")
    tree, way = new(game, 3000, 100_000), grower(game, GrowthSettings(), threads=2)
    tree.start(game.initial)
    num_full = 0
    for call in range(60):
        if not grow(tree, way, 4000, seed=call):
            assert tree.num_nodes <= 3000
            check(tree)
            tree.prune()
            num_full += 1
    check(tree)
    check_is_at_rest(tree)
    assert num_full > 2


def test_walks_end_where_there_is_no_room_for_steps() -> None:
    game = load("breakthrough")
    tree, way = new(game, 30_000, 2_000_000), grower(game, GrowthSettings())
    assert isinstance(way, NativeGrower)
    steps = np.full((2000, 4), 7, np.int32)
    way._batch = way._batch._replace(steps=steps[:600])
    tree.start(game.initial)
    assert grow(tree, way, 20_000) == tree.arrays.nodes[0, VISITS] == 20_000
    check(tree)
    assert (steps[:512] != 7).any()
    assert (steps[600:] == 7).all(), "what lies behind the steps is not changed"


@pytest.mark.parametrize("name", GAMES)
def test_a_full_tree_takes_the_memory_that_it_was_given(name: str) -> None:
    game = load(name)
    own = Tree(game, *room_in(game, 32 << 20))
    assert sum(array.nbytes for array in own.arrays) == pytest.approx(32 << 20, rel=0.01)


def test_threads_have_the_same_prior_and_first_batches() -> None:
    game = load("connect3")
    way = grower(game, GrowthSettings(), threads=2)
    assert isinstance(way, SharedGrower)
    way.prior = way.prior._replace(visits=3)
    way.least = 64
    assert [own.prior.visits for own in way._growers] == [way.prior.visits] * 2 == [3, 3]
    assert [own.least for own in way._growers] == [way.least] * 2 == [64, 64]


def test_some_trees_are_not_shared() -> None:
    """The reasoner gains nothing from threads, and regret matching changes what other threads read."""
    assert isinstance(grower(load("connect3", engine="reasoner"), GrowthSettings(), threads=2), EngineGrower)
    assert isinstance(grower(load("connect3"), GrowthSettings(joint="regret"), threads=2), NativeGrower)


def test_threads_stop_in_time_from_the_first_batch_on() -> None:
    game = load("connect3")
    for seconds, batches, walks in ((0.0, 1, 32), (None, 10, 32 + 2 * 9 * 32)):
        tree, way = new(game, 9000, 100_000), grower(game, GrowthSettings(), threads=2)
        tree.start(game.initial)
        grown = way.grow(tree, 10_000, stream(1), (0, 10), seconds)
        assert grown.batches == batches
        assert grown.walks == walks or tree.arrays.nodes[0, STAGE] == PROVED


@pytest.mark.parametrize("name", GAMES)
def test_advance_keeps_what_is_below(name: str) -> None:
    game = load(name)
    tree = planted(game, 1000)
    for _ in range(3):
        arrays = tree.arrays
        size = tree.num_nodes
        below = [
            (node, arrays.joint[node, : game.num_roles].copy())
            for node in range(1, size)
            if arrays.nodes[node, PARENT] == 0 and arrays.nodes[node, STAGE] == LISTED
        ]
        node, choices = below[-1]
        state, visits = arrays.states[node].copy(), arrays.nodes[node, VISITS]
        assert tree.advance(choices)
        assert (tree.state == state).all()
        assert tree.arrays.nodes[0, VISITS] == visits
        assert 1 < tree.num_nodes < size
        check(tree)
        way = grower(game, GrowthSettings())
        assert grow(tree, way, 500, seed=2) == 500 or tree.arrays.nodes[0, STAGE] == PROVED
        check(tree)


def test_goals_above_100_are_refused() -> None:
    game = load(ONE_SHOT.replace("100", "300"))
    assert max(map(max, game.goal_values)) == 300
    with pytest.raises(GameloreError, match=r"at most 100, got 300 .* choose the player uct"):
        Tree(game, *room_in(game, 1 << 20))


def test_advance_to_an_unknown_position_changes_nothing() -> None:
    game = load("connect3")
    tree = new(game, 2048, 20_000)
    tree.start(game.initial)
    assert not tree.advance(np.array([1, 0], np.int32))
    assert (tree.state == game.initial).all()


@pytest.mark.parametrize("name", sorted(set(GAMES) - {"connect3"}))  # which is proved before
def test_a_full_tree_drops_the_least_visited_nodes_and_grows_on(name: str) -> None:
    game = load(name)
    tree = new(game, 1600, 400_000)
    tree.start(game.initial)
    way = grower(game, GrowthSettings())
    done = grow(tree, way, 10**6)
    assert tree.arrays.nodes[0, STAGE] != PROVED
    assert tree.num_nodes > 1600 - 64
    before, visits = tree.num_nodes, tree.arrays.nodes[0, VISITS]
    moves = tree.arrays.size[NUM_MOVES]
    tree.prune()
    assert tree.num_nodes <= 2 * before // 3
    assert tree.arrays.size[NUM_MOVES] <= 2 * moves // 3
    assert tree.arrays.nodes[0, VISITS] == visits == done
    check(tree)
    assert grow(tree, way, 300, seed=2) > 0
    check(tree)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_without_walks_tells_whether_the_tree_is_full(way: str) -> None:
    game = load("breakthrough")
    tree, growing = new(game, 600, 400_000), WAYS[way](game, GrowthSettings())
    tree.start(game.initial)
    assert not growing.grow(tree, 0, stream(1), (0, 10)).is_full
    assert not growing.grow(tree, 100, stream(1), (0, 10)).is_full
    assert growing.grow(tree, 10_000, stream(1), (10, 1000)).is_full
    assert growing.grow(tree, 100, stream(1), (0, 10)) == (0, 0, True, True)
    tree.arrays.nodes[0, STAGE] = PROVED
    assert growing.grow(tree, 100, stream(1), (0, 10)) == (0, 0, True, False)


def test_the_most_visited_nodes_stay_though_most_moves_are_those_of_the_root_and_its_children() -> None:
    tree = planted(load("breakthrough"), 110, least=1, leaves=1)
    moves = int(tree.arrays.size[NUM_MOVES])
    kept = int(tree.arrays.counts[: tree.num_nodes][tree.arrays.nodes[: tree.num_nodes, PARENT] <= 0].sum())
    assert 2 * moves // 3 < kept < moves
    tree.prune()
    assert kept < tree.arrays.size[NUM_MOVES] <= (kept + moves) // 2
    check(tree)


@pytest.mark.parametrize("num_nodes", [600, 3000, 20_000])
def test_a_game_is_proved_though_nodes_are_dropped(num_nodes: int) -> None:
    """What is proved about dropped nodes stays, and a proved draw does not take the visits of the other moves."""
    game = load("tictactoe")
    tree = new(game, num_nodes, 400_000)
    tree.start(game.initial)
    way, number, walks = grower(game, GrowthSettings(leaves=8, least=8)), 0, 0
    while walks < 40_000 and tree.arrays.nodes[0, STAGE] != PROVED:
        grown = way.grow(tree, 40_000 - walks, stream(1), (number, number + 50))
        number, walks = number + 50, walks + grown.walks
        if not grown.walks:
            tree.prune()
            check(tree)
    assert tree.arrays.low[0].tolist() == tree.arrays.high[0].tolist() == [50, 50]


def test_the_result_is_a_function_of_state_key_and_settings() -> None:
    game = load("connect3")
    whole, parts = planted(game, 1000), new(game, 9000, 500_000)
    parts.start(game.initial)
    way = grower(game, GrowthSettings())
    batches = 0
    while batches < 40:  # the same batches, a few at a time
        left = 1000 - int(parts.arrays.nodes[0, VISITS])
        batches += way.grow(parts, left, stream(1), (batches, batches + 3)).batches
        if left == 0:
            break
    size = whole.num_nodes
    assert size == parts.num_nodes
    for mine, other in zip(whole.arrays, parts.arrays, strict=True):
        rows = size if len(mine) == len(whole.arrays.nodes) else min(len(mine), len(other))
        assert (mine[:rows] == other[:rows]).all()
    assert (planted(game, 1000).arrays.visits == whole.arrays.visits).all()


@pytest.mark.parametrize("way", WAYS)
def test_without_time_one_batch_is_grown(way: str) -> None:
    game = load("connect3")
    for seconds, batches in ((0.0, 1), (1000.0, 10), (None, 10)):
        tree = new(game, 9000, 100_000)
        tree.start(game.initial)
        grown = WAYS[way](game, GrowthSettings()).grow(tree, 10_000, stream(1), (0, 10), seconds)
        assert (grown.batches, grown.walks) == (batches, 32 * batches)


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_begins_only_if_it_ends_in_time_should_it_take_as_long_as_the_one_before(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    game = load("connect3")
    tree, growing = new(game, 9000, 100_000), WAYS[way](game, GrowthSettings())
    tree.start(game.initial)
    times = iter([0.0, 1.0, 3.0, 4.0, 5.5, 7.0])
    monkeypatch.setattr(growth, "monotonic", lambda: next(times))

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
    def tell_time(_: int, time: ctypes.Array[ctypes.c_int64]) -> int:
        time[0], time[1] = divmod(int(1e9 * next(times)), 10**9)
        return 0

    if isinstance(growing, NativeGrower):
        growing._code.clock[0] = ctypes.cast(tell_time, ctypes.c_void_p).value
    assert growing.grow(tree, 10_000, stream(1), (0, 10), 6.5).batches == 4


def test_simultaneous_moves_have_children_for_joint_moves() -> None:
    tree = planted(load(ONE_SHOT), 400)
    arrays = tree.arrays
    assert arrays.nodes[0, MOVER] == NOBODY
    joint = {tuple(arrays.joint[node, :2]) for node in range(1, tree.num_nodes) if arrays.nodes[node, PARENT] == 0}
    assert joint == {(row, column) for row in range(4) for column in range(2)}
    visits = arrays.visits[:6]
    assert visits[:4].sum() == visits[4:].sum() == 400
    assert visits[:4].argmax() == 0, "a wins whatever happens"


def test_a_root_without_moves() -> None:
    game = load("tictactoe")
    position = game.start()
    while not position.is_terminal:
        position = position.play([moves[0] for moves in position.legal.values()])
    tree = new(game, 2048, 20_000)
    tree.start(position.state)
    assert tree.arrays.nodes[0, STAGE] == PROVED
    assert tree.arrays.low[0].tolist() == list(position.goals.values())
    assert grow(tree, grower(game, GrowthSettings()), 10) == 0


def test_a_batch_grows_with_the_tree() -> None:
    game = load("connect3")
    tree = new(game, 9000, 100_000)
    tree.start(game.initial)
    way = grower(game, GrowthSettings(least=4, share=16, leaves=64))
    sizes = [way.grow(tree, 10**6, stream(1), (batch, batch + 1)).walks for batch in range(60)]
    assert sizes[:16] == [4] * 16
    assert sizes == sorted(sizes)
    assert sizes[-1] <= 64
    assert all(size <= max(4, sum(sizes[:i]) // 16) for i, size in enumerate(sizes))


@pytest.mark.parametrize(
    "settings", [{"share": 0}, {"leaves": 513}, {"playouts": 0}, {"least": 0}, {"max_plies": 0}, {"exploration": -1}]
)
def test_impossible_settings_are_refused(settings: dict[str, int]) -> None:
    name = next(iter(settings))
    with pytest.raises(GameloreError, match=f"expected {name} "):
        GrowthSettings(**settings)


def test_a_batch_has_room_for_as_many_roots_as_walks() -> None:
    game = load("tictactoe")
    tree = new(game, 2048, 20_000)
    tree.plant(np.repeat(game.initial[None], 512, axis=0))
    assert grow(tree, grower(game, GrowthSettings()), 512) == 512
    with pytest.raises(GameloreError, match="at most 512 roots of a tree, got 513; search in parts"):
        tree.plant(np.repeat(game.initial[None], 513, axis=0))


def test_new_nodes_are_seen_only() -> None:
    tree = planted(load("connect3"), 1, least=1)
    assert tree.num_nodes == 2
    assert tree.arrays.nodes[1, STAGE] == SEEN
