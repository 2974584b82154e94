"""Simultaneous moves: steps computed by hand, mixed equilibria, and what stays the same where roles take turns."""

from collections import Counter
from dataclasses import replace
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

from gamelore import load
from gamelore.catalogue import play_matches
from gamelore.errors import GameloreError
from gamelore.game.game import Game
from gamelore.players.kernel import kernel
from gamelore.players.random_streams import stream
from gamelore.search import tree as tree_module
from gamelore.search.choice import MoveReport, strategy_of
from gamelore.search.growth import EngineGrower
from gamelore.search.native_growth import grower
from gamelore.search.settings import GrowthSettings, Joint, TeachingSettings
from gamelore.search.simultaneous import _estimate
from gamelore.search.teaching import Teacher
from gamelore.search.thinking import Search
from gamelore.search.tree import (
    LISTED,
    MOVER,
    NOBODY,
    PARENT,
    PROVED,
    STAGE,
    VISITS,
    Tree,
    TreeArrays,
    child_of,
    compact,
)
from gamelore.search.value import LinearValue

Matrix = list[list[int]]

PENNIES = [[100, 0], [0, 100]]
UNEVEN = [[100, 0], [50, 75]]
ROSHAMBO = [[50, 0, 100], [100, 50, 0], [0, 75, 50]]
DILEMMA = ([[60, 0], [100, 20]], [[60, 100], [0, 20]])  # cooperate or defect
ONE_WALK = GrowthSettings(least=1, leaves=1)
ALMOST_NEVER = 1e-9


def matrix_game(rows: Matrix, columns: Matrix | None = None) -> Game:
    """Return a game of one joint move with the goals of row and of column, by default 100 minus those of row."""
    columns = columns or [[100 - goal for goal in line] for line in rows]
    sheet = ["(role row) (role column) (init start)"]
    sheet += [f"(legal row r{i})" for i in range(len(rows))] + [f"(legal column c{j})" for j in range(len(rows[0]))]
    for i, line in enumerate(rows):
        for j, goal in enumerate(line):
            sheet.append(f"(<= (next (at r{i} c{j})) (does row r{i}) (does column c{j}))")
            sheet.append(f"(pays r{i} c{j} {goal} {columns[i][j]})")
    sheet.append("(<= terminal (true (at ?i ?j)))")
    sheet.append("(<= (goal row ?a) (true (at ?i ?j)) (pays ?i ?j ?a ?b))")
    sheet.append("(<= (goal column ?b) (true (at ?i ?j)) (pays ?i ?j ?a ?b))")
    return load("\n".join(sheet))


def searched(game: Game, walks: int, seed: int = 1, **settings: object) -> Search:
    search = Search(game, replace(GrowthSettings(), **settings), memory=32)  # type: ignore[arg-type]
    search.begin(game.initial, stream(seed))
    search.run(walks)
    return search


def after_one_walk(settings: GrowthSettings, weights: list[float], seed: int) -> tuple[tuple[int, int], list[float]]:
    """Return the joint move of one more walk in UNEVEN, whose four ends are known, and what it makes of the weights."""
    game = matrix_game(UNEVEN)
    tree = Tree(game, 2048, 20_000)
    tree.start(game.initial)
    way = grower(game, settings)
    grower(game, replace(settings, mixing=1.0)).grow(tree, 100, stream(seed), (0, 1000))
    assert tree.num_nodes == 5
    tree.arrays.guesses[:4] = weights
    before = tree.arrays.visits[:4].copy()
    way.grow(tree, 1, stream(seed, 1), (0, 1))
    row, column = np.flatnonzero(tree.arrays.visits[:4] - before).tolist()
    return (row, column - 2), tree.arrays.guesses[:4].tolist()


def steps(settings: GrowthSettings, weights: list[float]) -> dict[tuple[int, int], list[float]]:
    """Return the steps of walks with several seeds, by their joint moves."""
    return dict(after_one_walk(settings, weights, seed) for seed in range(1, 25))


def test_steps_of_regret_matching_by_hand() -> None:
    """Regrets 1 and 3 of row, 2 and 2 of column: strategies (1/4, 3/4) and (1/2, 1/2).

    Against c0, row gets 1 or 1/2, on average 5/8; against c1, 0 or 3/4, on average 9/16.
    Against r0, column gets 0 or 1, on average 1/2; against r1, 1/2 or 1/4, on average 3/8.
    """
    row = [[1.375, 2.875], [0.4375, 3.1875]]  # by the column's move
    column = [[1.5, 2.5], [2.125, 1.875]]  # by the row's move
    regret = replace(ONE_WALK, joint="regret", mixing=ALMOST_NEVER)
    made = steps(regret, [1.0, 3.0, 2.0, 2.0])
    assert set(made) == {(i, j) for i in range(2) for j in range(2)}
    for (i, j), regrets in made.items():
        assert regrets == pytest.approx([*row[j], *column[i]])


def test_a_negative_regret_becomes_zero() -> None:
    """Row has the regrets 1/4 and 3; against c1, it gets 0 or 3/4, on average 9/13: r0 would go to -0.44."""
    regret = replace(ONE_WALK, joint="regret", mixing=ALMOST_NEVER)
    made = steps(regret, [0.25, 3.0, 0.0, 1.0])
    assert made[1, 1][:2] == pytest.approx([0.0, 3 + 3 / 4 - 9 / 13])


def test_moves_without_a_positive_regret_are_drawn_uniformly() -> None:
    regret = replace(ONE_WALK, joint="regret", mixing=ALMOST_NEVER)
    assert set(steps(regret, [0.0, 0.0, 0.0, 0.0])) == {(i, j) for i in range(2) for j in range(2)}
    assert {joint for joint, _ in steps(regret, [0.0, 5.0, 1.0, 0.0]).items()} == {(1, 0)}


def test_random_moves_of_others_teach_no_regrets() -> None:
    """Every move is drawn uniformly, so no role sees a move from the other's strategy."""
    regret = replace(ONE_WALK, joint="regret", mixing=1.0)
    assert list(steps(regret, [1.0, 3.0, 2.0, 2.0]).values()) == [pytest.approx([1.0, 3.0, 2.0, 2.0])] * 4


@kernel
def estimate(tree: TreeArrays, move: int, role: int, width: float) -> float:
    return _estimate(tree, move, role, width)


def test_positions_with_few_walks_get_a_bonus() -> None:
    """The width 0.4 gives a bonus of 0.1 after 16 walks and of 0.2 after 4. No value is above 1."""
    tree = Tree(load("goofspiel"), 2048, 20_000)
    arrays = tree.arrays
    arrays.child[:5] = [1, 2, 3, -1, -1]
    arrays.cells[1:4] = [[0.5, 0.3, 16], [0.95, 0.1, 4], [0.2, 0.2, 4]]
    arrays.nodes[3, STAGE], arrays.low[3] = PROVED, [70, 30]
    arrays.sums[3], arrays.visits[3] = 3.0, 4
    assert [estimate(arrays, move, 0, 0.4) for move in range(5)] == pytest.approx([0.6, 1.0, 0.7, 0.95, -1.0])
    assert [estimate(arrays, move, 1, 0.0) for move in range(5)] == pytest.approx([0.3, 0.1, 0.3, 0.75, -1.0])


def test_steps_of_exp3_by_hand() -> None:
    """Mixing 1/2 and two moves: weights exp(gain / 4). Row: 3 to 1, so 1/2 * 3/4 + 1/4 = 5/8 and 3/8; column: 1/2 each.

    The gain of the drawn move grows by its value, divided by its probability.
    """
    gain = 4 * log(3)
    gains = {
        (0, 0): [gain + 8 / 5, 0, 0, 0],
        (0, 1): [gain, 0, 0, 2],
        (1, 0): [gain, 4 / 3, 1, 0],
        (1, 1): [gain, 2, 0, 1 / 2],
    }
    made = steps(replace(ONE_WALK, joint="exp3", mixing=0.5), [gain, 0.0, 0.0, 0.0])
    assert set(made) == set(gains)
    for joint, own in made.items():
        assert own == pytest.approx(gains[joint], rel=1e-5)


EQUILIBRIA = [
    (PENNIES, [1 / 2, 1 / 2], [1 / 2, 1 / 2]),
    (UNEVEN, [1 / 5, 4 / 5], [3 / 5, 2 / 5]),  # p + (1 - p) / 2 = 3 (1 - p) / 4, and q = q / 2 + 3 (1 - q) / 4
    (ROSHAMBO, [4 / 15, 5 / 15, 6 / 15], [4 / 15, 6 / 15, 5 / 15]),  # each move gives 46 2/3
]


@pytest.mark.parametrize(("joint", "tolerance"), [("regret", 0.02), ("exp3", 0.12)])
@pytest.mark.parametrize(("rows", "own", "other"), EQUILIBRIA)
def test_mean_strategies_approach_the_equilibrium(
    rows: Matrix, own: list[float], other: list[float], joint: str, tolerance: float
) -> None:
    search = searched(matrix_game(rows), 100_000, joint=joint)
    assert search.strategy(0) == pytest.approx(own, abs=tolerance)
    assert search.strategy(1) == pytest.approx(other, abs=tolerance)


@pytest.mark.parametrize("joint", ["regret", "exp3"])
def test_prisoners_defect(joint: str) -> None:
    search = searched(matrix_game(*DILEMMA), 20_000, joint=joint)
    assert [search.strategy(role) for role in range(2)] == [[0.0, 1.0], [0.0, 1.0]]
    assert {search.choice(role, stream(seed)) for role in range(2) for seed in range(20)} == {1}


def test_moves_at_the_root_are_drawn_from_the_strategy() -> None:
    search = searched(matrix_game(UNEVEN), 20_000, joint="regret")
    strategy = search.strategy(0)
    assert strategy is not None
    counts = Counter(search.choice(0, stream(seed)) for seed in range(2000))
    assert counts[0] / 2000 == pytest.approx(strategy[0], abs=0.03)
    assert all(search.choice(0, stream(seed)) == search.choice(0, stream(seed)) for seed in range(20))


def test_decoupled_uct_makes_the_most_visited_move() -> None:
    search = searched(matrix_game(UNEVEN), 20_000, joint="uct")
    assert search.strategy(0) is None
    most = max(search.moves(0), key=lambda move: move.visits).index
    assert {search.choice(0, stream(seed)) for seed in range(20)} == {most}


def test_a_value_changes_nothing_where_all_roles_choose() -> None:
    """Such moves have no prior and no minimax value, so their means are compared, with the whole exploration."""
    game, reports = matrix_game(UNEVEN), []
    weights = np.ones((2, 64 * game.num_words), np.float32)
    for value in (None, LinearValue(weights, np.full(2, 0.5), determination=0.5)):
        search = Search(game, memory=32)
        search.begin(game.initial, stream(1), value, 100)
        search.run(2000)
        reports.append(search.moves(0) + search.moves(1))
    assert reports[0] == reports[1]
    assert all(move.value == move.mean for move in reports[1])


def test_rare_moves_are_cut() -> None:
    """Of a weight of 1,000, 10 % are uniform: 25 for each of 4 moves. 600, 300 and 25 are left; 25 is below a tenth."""
    reports = [MoveReport(i, 9, 50.0, 0, 100, None, False, weight) for i, weight in enumerate((625, 325, 50, 0))]
    assert strategy_of(reports, 0.1) == pytest.approx([2 / 3, 1 / 3, 0, 0])


@pytest.mark.parametrize("joint", ["uct", "regret", "exp3"])
def test_both_ways_to_grow_make_the_same_tree(joint: str) -> None:
    """Without random playouts, which have other random numbers in each way."""
    game, trees = matrix_game(ROSHAMBO), []
    for way in (grower, EngineGrower):
        tree = Tree(game, 8192, 200_000)
        tree.start(game.initial)
        settings = replace(GrowthSettings(), joint=joint, playouts=1)  # type: ignore[arg-type]
        assert way(game, settings).grow(tree, 2000, stream(3), (0, 1000)).walks == 2000
        trees.append(tree)
    for mine, other in zip(trees[0].arrays, trees[1].arrays, strict=True):
        assert np.array_equal(mine, other)


def test_where_roles_take_turns_the_rule_changes_nothing() -> None:
    game, trees = load("connect3"), []
    for joint in ("uct", "regret", "exp3"):
        tree = Tree(game, 8192, 200_000)
        tree.assumption = 100
        tree.start(game.initial)
        grower(game, replace(GrowthSettings(), joint=joint)).grow(tree, 3000, stream(2), (0, 1000))  # type: ignore[arg-type]
        trees.append(tree)
    assert not trees[0].arrays.cells.any()
    for tree in trees[1:]:
        for mine, other in zip(trees[0].arrays, tree.arrays, strict=True):
            assert np.array_equal(mine, other)


def test_a_kept_subtree_keeps_its_regrets() -> None:
    search = searched(load("goofspiel"), 5000, joint="regret")
    tree = search._stems[0].tree
    arrays, size = tree.arrays, tree.num_nodes
    node = next(
        node
        for node in range(1, size)
        if arrays.nodes[node, PARENT] == 0 and arrays.nodes[node, STAGE] == LISTED and arrays.nodes[node, VISITS] > 50
    )
    first, count = tree.span(node, 0)
    regrets, state = arrays.guesses[first : first + count].copy(), arrays.states[node].copy()
    weights = arrays.weights[first : first + count].copy()
    arrays.also[first : first + count] = rests = list(range(-1, count - 1))
    below = [n for n in range(size) if arrays.nodes[n, PARENT] == node]
    cells = {arrays.states[n].tobytes(): arrays.cells[n].copy() for n in below}
    assert regrets.any()
    search.follow(arrays.joint[node, :2].copy())
    assert (tree.state == state).all()
    first, count = tree.span(0, 0)
    assert (arrays.guesses[first : first + count] == regrets).all()
    assert (arrays.weights[first : first + count] == weights).all()
    assert arrays.also[first : first + count].tolist() == rests, "what is below the 32 bits of the weights"
    kept = [n for n in range(tree.num_nodes) if arrays.nodes[n, PARENT] == 0]
    assert len(kept) == len(cells) > 4
    assert all((arrays.cells[n] == cells[arrays.states[n].tobytes()]).all() for n in kept)


def test_weights_are_sums_of_the_numbers_of_walks() -> None:
    """With batches of one walk, moves of a role get 1 + 2 + .. together, also after the tree was compacted."""
    tree = Tree(matrix_game(UNEVEN), 2048, 20_000)
    tree.start(tree.game.initial)
    way = grower(tree.game, replace(ONE_WALK, joint="regret"))
    for walks in (100, 200):
        way.grow(tree, 100, stream(1), (walks, 1000))
        compact(tree.arrays, 0, 1, tree.tops)
        for role in range(2):
            first, count = tree.span(0, role)
            assert tree.arrays.weights[first : first + count].sum() == walks * (walks + 1) / 2


def test_cells_have_the_means_of_the_walks() -> None:
    """The walks to the children of the root are those of the moves of each role, with the same sums."""
    tree = searched(load("goofspiel"), 3000, joint="regret", mixing=0.3)._stems[0].tree
    arrays = tree.arrays
    children = np.flatnonzero(arrays.nodes[: tree.num_nodes, PARENT] == 0)
    numbers, means = arrays.cells[children, 2], arrays.cells[children, :2]
    assert numbers.sum() == 3000 == arrays.nodes[0, VISITS]
    for role in range(2):
        first, count = tree.span(0, role)
        for index in range(count):
            own = arrays.joint[children, role] == index
            assert arrays.visits[first + index] == numbers[own].sum()
            assert arrays.sums[first + index] == pytest.approx((numbers * means[:, role])[own].sum(), rel=1e-4)
    assert (arrays.child[: arrays.counts[0].sum()] == -1).all()


def test_matches_with_simultaneous_moves_repeat() -> None:
    players = ["gamelore:simulations=300,joint=regret", "gamelore:simulations=300,joint=uct"]
    runs = [play_matches(load("goofspiel"), players, 4, seed=7) for _ in range(2)]
    assert [record.moves for record in runs[0]] == [record.moves for record in runs[1]]
    assert len({str(record.moves) for record in runs[0]}) == 4, "moves are drawn anew in each match"


def test_teaching_draws_from_mixed_strategies() -> None:
    """Best moves of matching pennies would repeat; the drawn ones differ between lanes with equal trees."""
    lessons = TeachingSettings(simulations=2048, first=1024, matches=4, walks=64, opening=0, random=0.0)
    teacher = Teacher(matrix_game(UNEVEN), stream(1), GrowthSettings(joint="regret"), lessons)
    while teacher._left:
        teacher._grow()
    assert teacher._tree.arrays.nodes[0, MOVER] == NOBODY
    assert len({tuple(teacher._joint(0)) for _ in range(60)}) == 4


def test_other_rules_are_refused() -> None:
    with pytest.raises(GameloreError, match="expected joint to be uct, regret, exp3, got rm; choose one of these"):
        GrowthSettings(joint="rm")  # type: ignore[arg-type]
    for mixing in (0.0, 1.5):
        with pytest.raises(GameloreError, match="expected mixing above 0 and up to 1, got"):
            GrowthSettings(mixing=mixing)


# a, b and c move in turn; each leaf has the goals of a, b and c. Every role takes what is best for itself (max^n):
#     l -> b: l -> c: l 10 50 0, r 90 20 70        c takes r, b would get 20
#             r -> 30 40 60                         so b takes r: (30 40 60)
#     r -> b: l -> 20 10 0,  r -> c: l 50 80 30, r 100 0 20      c takes l, b gets 80: (50 80 30), which a prefers
# Against two enemies (paranoid), a would get 30 on the left and 20 on the right, and go left.
THREE = """
(role a) (role b) (role c) (init (at top)) (init (control a))
(after a b) (after b c)
(edge top l bl) (edge top r br)
(edge bl l cl) (edge bl r x3) (edge br l x4) (edge br r cr)
(edge cl l x1) (edge cl r x2) (edge cr l x5) (edge cr r x6)
(leaf x1 10 50 0) (leaf x2 90 20 70) (leaf x3 30 40 60) (leaf x4 20 10 0) (leaf x5 50 80 30) (leaf x6 100 0 20)
(<= (legal ?p (go ?e)) (true (control ?p)) (true (at ?n)) (edge ?n ?e ?m))
(<= (legal ?p noop) (role ?p) (not (true (control ?p))))
(<= (next (at ?m)) (true (at ?n)) (does ?p (go ?e)) (edge ?n ?e ?m))
(<= (next (control ?q)) (true (control ?p)) (after ?p ?q))
(<= terminal (true (at ?n)) (leaf ?n ?a ?b ?c))
(<= (goal a ?a) (true (at ?n)) (leaf ?n ?a ?b ?c))
(<= (goal b ?b) (true (at ?n)) (leaf ?n ?a ?b ?c))
(<= (goal c ?c) (true (at ?n)) (leaf ?n ?a ?b ?c))
"""


def test_three_roles_in_turn_take_the_best_for_themselves() -> None:
    search = searched(load(THREE), 300)
    assert search.is_proved
    assert search._stems[0].tree.arrays.low[0].tolist() == [50, 80, 30]
    assert search.line() == [(1, 0, 0), (0, 1, 0), (0, 0, 0)]


def test_moves_of_three_roles_have_the_sums_of_their_own_goals() -> None:
    """Without a look at the children, walks end at most two plies below the root: a sum is of the mover's own goals."""
    game = load(THREE)
    tree = Tree(game, 2048, 20_000)
    tree.start(game.initial)
    grower(game, replace(ONE_WALK, scout=False, exploration=0.0)).grow(tree, 2, stream(1), (0, 2))
    first, _ = tree.span(0, 0)
    assert tree.arrays.visits[first : first + 2].tolist() == [1, 1]
    left, right = (100 * tree.arrays.sums[first : first + 2]).tolist()
    # 512 lanes, 16 playouts: the mean of uniformly random leaves, a's goals 10, 90, 30 (twice as often) and 20, 50, 100
    assert left == pytest.approx((10 + 90 + 2 * 30) / 4, abs=30)
    assert right == pytest.approx((2 * 20 + 50 + 100) / 4, abs=30)
    assert all(value * 16 % 10 == pytest.approx(0, abs=1e-6) for value in (left, right))
    assert tree.arrays.nodes[0, STAGE] != PROVED


@pytest.mark.parametrize(("joint", "before"), [("exp3", 1 << 24), ("regret", 1 << 40)])
def test_the_weights_of_long_searches_go_on_growing(joint: Joint, before: int) -> None:
    """Numbers of 32 bits do not note a visit, or the number of visits so far, which is the weight of one by regret."""
    game, settings = matrix_game(UNEVEN), replace(ONE_WALK, joint=joint)
    tree = Tree(game, 2048, 20_000)
    tree.start(game.initial)
    way = grower(game, settings)
    way.grow(tree, 100, stream(1), (0, 1000))
    arrays, visits = tree.arrays, 10_000
    arrays.weights[:4] = before
    if joint == "exp3":
        arrays.visits[:4] = before
    else:
        arrays.nodes[0, VISITS] = visits
    way.grow(tree, 1000, stream(1), (1000, 2000))
    grown = 2 * 1000 if joint == "exp3" else 2 * (1000 * visits + 1000 * 1000 // 2)
    assert arrays.weights[:4].sum(dtype=np.float64) - 4 * before == pytest.approx(grown, rel=0.03)


def test_gains_of_exp3_stay_small() -> None:
    """Only their differences count, so what all have won is left out."""
    search = searched(matrix_game(DILEMMA[0], DILEMMA[1]), 30_000, joint="exp3")
    gains = search._stems[0].tree.arrays.guesses[:4]
    assert gains.max() < 2000
    assert search.strategy(0) == search.strategy(1) == [0.0, 1.0]


def test_the_children_of_a_node_without_a_mover_are_found_by_their_joint_moves() -> None:
    """There are 1,600 of them; the table that finds them grows, and is made again when the tree drops nodes."""
    size = 40
    game = matrix_game([[(i * j) % 101 for j in range(size)] for i in range(size)])
    tree = Tree(game, 8192, 200_000)
    tree.start(game.initial)
    grower(game, GrowthSettings(exploration=20.0)).grow(tree, 20_000, stream(1), (0, 10_000))
    for _ in range(2):
        arrays, num_nodes = tree.arrays, tree.num_nodes
        assert num_nodes > 1200
        for node in range(1, num_nodes):
            assert child_of(arrays, 0, arrays.joint[node, :2].copy()) == node
        missing = {(i, j) for i in range(size) for j in range(size)} - set(
            map(tuple, arrays.joint[1:num_nodes, :2].tolist())
        )
        for joint in missing:
            assert child_of(arrays, 0, np.array(joint, np.int32)) == -1
        tree.prune()
    tree.start(game.initial)
    assert child_of(tree.arrays, 0, np.zeros(2, np.int32)) == -1


class FleetingSlots:
    """Slots that another thread empties as soon as they have been read."""

    def __init__(self, slots: NDArray[np.int32]) -> None:
        self._slots = slots.copy()

    def __getitem__(self, slot: int) -> int:
        entry, self._slots[slot] = int(self._slots[slot]), -1
        return entry


def test_a_walk_reads_each_slot_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = searched(matrix_game(ROSHAMBO), 1000, joint="regret", mixing=1.0)._stems[0].tree
    for kernel_of_walks in ("_joint_slot", "sibling_with"):
        monkeypatch.setattr(tree_module, kernel_of_walks, getattr(tree_module, kernel_of_walks).py_func)
    assert tree.num_nodes == 10
    for node in range(1, 10):
        arrays = tree.arrays._replace(slots=FleetingSlots(tree.arrays.slots))  # type: ignore[arg-type]
        assert tree_module.sibling_with(arrays, 0, tree.arrays.joint[node, :2].copy()) == node
