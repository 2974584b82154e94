"""Proved bounds, held against the solver, and against values computed by hand."""

from typing import Any, Literal

import numpy as np
import pytest

from conftest import ONE_SHOT, TREE
from gamelore import load
from gamelore.game.game import Game
from gamelore.players.random_streams import stream
from gamelore.search import thinking
from gamelore.search import tree as tree_module
from gamelore.search.growth import EngineGrower, Grown, as_assumed
from gamelore.search.native_growth import grower
from gamelore.search.proofs import NO_WINNER, _are_complements, _assumption, first_assumption
from gamelore.search.settings import GrowthSettings
from gamelore.search.thinking import Search
from gamelore.search.tree import (
    FIRST,
    LISTED,
    MOVER,
    NOBODY,
    NUM_NODES,
    PROVED,
    SEEN,
    SOLE_WINNER,
    STAGE,
    UNRELATED,
    VISITS,
    Tree,
)
from gamelore.solver.solution import solve

SOLVED = ["tictactoe", "losetictactoe", "connect3", "capturego3", "othello4", "breakthrough:width=3,height=5"]


def grown(
    game: Game,
    walks: int,
    *,
    assumption: int = 100,
    seed: int = 1,
    least: int = 32,
    threads: int = 1,
    proofs: bool = True,
) -> Tree:
    tree = Tree(game, 4 * walks + 2048, 64 * walks)
    tree.assumption = assumption
    tree.start(game.initial)
    grower(game, GrowthSettings(least=least, proofs=proofs), threads).grow(tree, walks, stream(seed), (0, 10_000))
    return tree


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_bound_holds_the_solved_value(name: str, seed: int, threads: int) -> None:
    game = load(name)
    tree = grown(game, 20_000, seed=seed, threads=threads)
    size = tree.num_nodes
    values, _ = solve(game).look_up(tree.arrays.states[:size])
    assert (tree.arrays.low[:size] <= values).all()
    assert (values <= tree.arrays.high[:size]).all()
    proved = tree.arrays.nodes[:size, STAGE] == PROVED
    assert (tree.arrays.low[:size][proved] == tree.arrays.high[:size][proved]).all()
    listed = proved & tree.arrays.counts[:size].any(axis=1)
    assert listed.sum() > 20, "positions in which the match goes on are proved as well"


@pytest.mark.parametrize("name", SOLVED)
def test_distances_of_proved_wins_are_at_least_the_shortest(name: str) -> None:
    game = load(name)
    tree = grown(game, 20_000)
    size = tree.num_nodes
    proved = np.flatnonzero(tree.arrays.nodes[:size, STAGE] == PROVED)
    values, distances = solve(game).look_up(tree.arrays.states[proved])
    decided = (values.max(axis=1) == 100) & (tree.arrays.counts[proved].any(axis=1))
    winner_moves = values[np.arange(len(proved)), tree.arrays.nodes[proved, MOVER]] == 100
    assert (decided & winner_moves).sum() > 20
    assert (tree.arrays.plies[proved] >= distances)[decided & winner_moves].all()


def test_bounds_without_opposite_interests_hold_too() -> None:
    """In a constant-sum game, the bounds for selfish roles are weaker, and still right."""
    game = load("tictactoe")
    tree = grown(game, 20_000, assumption=UNRELATED)
    size = tree.num_nodes
    values, _ = solve(game).look_up(tree.arrays.states[:size])
    assert (tree.arrays.low[:size] <= values).all()
    assert (values <= tree.arrays.high[:size]).all()
    assert (tree.arrays.nodes[:size, STAGE] == PROVED).sum() > 100


@pytest.mark.parametrize("threads", [1, 2])
def test_without_proofs_only_ends_of_the_match_are_proved(threads: int) -> None:
    """Nothing is closed then, and the search takes all walks; with proofs, it takes fewer, and a draw is proved."""
    game = load("tictactoe")
    tree = grown(game, 20_000, threads=threads, proofs=False)
    arrays, size = tree.arrays, tree.num_nodes
    is_end = ~arrays.counts[:size].all(axis=1)
    assert is_end.any()
    assert ((arrays.nodes[:size, STAGE] == PROVED) <= is_end).all()
    assert arrays.nodes[0, VISITS] == 20_000
    assert not arrays.closed.any()
    assert not arrays.low[:size][~is_end].any()
    assert (arrays.high[:size][~is_end] == 100).all()


def test_the_search_proves_unless_it_must_not() -> None:
    game = load("tictactoe")
    for proofs in (True, False):
        search = Search(game, GrowthSettings(proofs=proofs))
        search.begin(game.initial, stream(1))
        search.run(20_000)
        assert search.is_proved == proofs
        search.follow(np.zeros(2, np.int32))
        search.run(20_000)
        assert search.is_proved == proofs, "the setting holds after a move, too"


def test_values_by_hand() -> None:
    """White gets 40 after l (black takes the leaf 40), 0 after m, 30 after r."""
    search = Search(load(TREE))
    search.begin(search.game.initial, stream(3))
    search.run(200)
    assert search.is_proved
    by_name = dict(zip(search.game.start().legal["white"], search.moves(0), strict=True))
    bounds = {name: (move.low, move.high) for name, move in by_name.items()}
    assert bounds["(go l)"] == (40, 40)
    assert bounds["(go r)"] == (30, 30)
    assert bounds["(go m)"][1] <= 40
    assert search.game.start().legal["white"][search.choice(0, stream(1))] == "(go l)"


def test_a_third_role_is_not_an_enemy() -> None:
    """a moves, then b. After `give`, b may give c 0 or 100 and gets 50 each time: c's goal stays open, a's does not."""
    game = load(
        """
        (role a) (role b) (role c) (init (at start)) (init (control a))
        (<= (legal a give) (true (control a))) (<= (legal a take) (true (control a)))
        (<= (legal a noop) (not (true (control a))))
        (<= (legal b up) (true (control b))) (<= (legal b down) (true (control b)))
        (<= (legal b noop) (not (true (control b)))) (legal c noop)
        (<= (next (at given)) (does a give)) (<= (next (control b)) (does a give))
        (<= (next (at taken)) (does a take))
        (<= (next (at high)) (does b up)) (<= (next (at low)) (does b down))
        (<= terminal (true (at taken))) (<= terminal (true (at high))) (<= terminal (true (at low)))
        (<= (goal a 60) (true (at taken))) (<= (goal a 80) (true (at high))) (<= (goal a 80) (true (at low)))
        (<= (goal b 10) (true (at taken))) (<= (goal b 50) (true (at high))) (<= (goal b 50) (true (at low)))
        (<= (goal c 20) (true (at taken))) (<= (goal c 100) (true (at high))) (<= (goal c 0) (true (at low)))
        """
    )
    tree = grown(game, 50, assumption=UNRELATED, least=1)
    assert tree.arrays.low[0].tolist() == [80, 50, 0]
    assert tree.arrays.high[0].tolist() == [80, 50, 100]
    assert tree.arrays.nodes[0, STAGE] == LISTED, "c's goal is not proved"


THREE = """
    (role a) (role b) (role c) (init (control a)) (init (step 0)) (legal c noop)
    (<= (legal a pass) (true (control a))) (<= (legal a wait) (true (control a)))
    (<= (legal a noop) (not (true (control a))))
    (<= (legal b (take ?x)) (true (control b)) (digit ?x)) (<= (legal b noop) (not (true (control b))))
    (<= (next (control b)) (does a pass)) (<= (next (control a)) (not (does a pass)))
    (<= (next (taken ?x)) (does b (take ?x))) (<= (next waited) (does a wait))
    (<= (next (step ?y)) (true (step ?x)) (succ ?x ?y))
    (<= terminal (true (taken 3))) (<= terminal (true waited)) (<= terminal (true (step 9)))
    (<= (goal a 20) (true waited)) (<= (goal b 10) (true waited)) (<= (goal c 80) (true waited))
    (<= (goal a 0) (true (taken 3))) (<= (goal b 100) (true (taken 3))) (<= (goal c 0) (true (taken 3)))
    (<= (goal a 90) (true (step 9))) (<= (goal b 10) (true (step 9))) (<= (goal c 10) (true (step 9)))
    """ + " ".join(f"(digit {i}) (succ {i} {i + 1})" for i in range(10))
"""a waits or passes the move to b, who wins in one of ten moves; the nine others go on for long."""


def after_passing(tree: Tree) -> int:
    """Return the node after a's move `pass` in THREE."""
    first = int(tree.arrays.nodes[0, FIRST])
    moves = {tree.game.move_text(0, int(tree.arrays.actions[move])): move for move in (first, first + 1)}
    return int(tree.arrays.child[moves["pass"]])


def test_a_sole_winner_leaves_nothing_to_the_others() -> None:
    """What a gets if b can win is proved at once, and walks do not go on below the nine moves that do not win."""
    game = load(THREE)
    assert first_assumption(game, 1000) == SOLE_WINNER
    tree = grown(game, 300, assumption=SOLE_WINNER, least=1)
    passed = after_passing(tree)
    assert tree.arrays.nodes[passed, STAGE] == PROVED
    assert tree.arrays.low[passed].tolist() == tree.arrays.high[passed].tolist() == [0, 100, 0]
    assert tree.arrays.low[0].tolist() == tree.arrays.high[0].tolist() == [20, 10, 80]
    assert tree.num_nodes < 20


SPOILS = """
    (role a) (role b) (role c) (init (step 0)) (legal b noop) (legal c noop)
    (<= (legal a give) (true (step 0))) (<= (legal a spoil) (true (step 0))) (<= (legal a noop) (not (true (step 0))))
    (<= (next given) (does a give)) (<= (next given) (true given))
    (<= (next (step 1)) (true (step 0))) (<= (next (step 2)) (true (step 1))) (<= terminal (true (step 2)))
    (goal a 0) (goal c 0) (<= (goal b 100) (true given)) (<= (goal b 0) (not (true given)))
    """
"""a gets nothing; with one of two moves b wins, with the other one nobody does."""


@pytest.mark.parametrize("engine", ["native", "reasoner"])
@pytest.mark.parametrize("roles", [2, 3])
def test_an_end_without_winner_is_worth_something_to_three_roles(
    engine: Literal["native", "reasoner"], roles: int
) -> None:
    """The values of walks of which each ends with a playout: none is proved when the first batch of two begins."""
    rules = (
        SPOILS if roles == 3 else SPOILS.replace("(role c)", "").replace("(legal c noop)", "").replace("(goal c 0)", "")
    )
    game = load(rules, engine=engine)
    search = Search(game, GrowthSettings(least=2, leaves=2, scout=False))
    search.begin(game.initial, stream(1))
    search.run(2)
    moves = {game.start().legal["a"][move.index]: move for move in search.moves(0)}
    assert moves["spoil"].mean == (NO_WINNER if roles == 3 else 0)
    assert moves["give"].mean == 0


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_position_without_moves_is_an_end_that_gives_nothing(engine: Literal["native", "reasoner"]) -> None:
    """One move leads to a position that is not terminal, and in which nobody has a move."""
    rules = """
        (role a) (role b) (init start) (<= (legal a go) (true start)) (<= (legal a stop) (true start))
        (<= (legal b wait) (true start)) (<= (legal a back) (true half)) (<= (legal b wait) (true half))
        (<= (next half) (does a go)) (<= (next stuck) (does a stop)) (<= (next end) (does a back))
        (<= terminal (true end)) (<= (goal a 40) (true end)) (<= (goal b 60) (true end))
    """
    game = load(rules, engine=engine)
    search = Search(game, GrowthSettings(least=2, leaves=2, scout=False))
    search.begin(game.initial, stream(1), assumption=UNRELATED)
    search.run(200)
    legal = game.start().legal["a"]
    bounds = {legal[move.index]: (move.low, move.high, move.is_proved) for move in search.moves(0)}
    assert bounds == {"go": (40, 40, True), "stop": (0, 0, True)}
    assert search.is_proved
    assert search.num_nodes == 4


def test_several_winners_are_no_sole_winner() -> None:
    """c shares what b wins, so nothing is taken for granted; and a search that met no such end before finds it out."""
    shared = THREE.replace("(goal c 0)", "(goal c 100)")
    assert first_assumption(load(shared), 1000) == UNRELATED
    search = Search(load(shared))
    search.begin(search.game.initial, stream(1), assumption=SOLE_WINNER)
    search.run(2000)
    tree = search._stems[0].tree
    assert tree.assumption == UNRELATED
    passed = after_passing(tree)
    assert tree.arrays.low[passed, 1] == 100, "b wins"
    assert tree.arrays.high[passed, 2] == 100, "and c may win with b"


def test_positions_of_several_choosers_are_never_proved_by_their_children() -> None:
    game = load(ONE_SHOT)
    tree = grown(game, 3000, assumption=UNRELATED)
    assert tree.arrays.nodes[0, MOVER] == NOBODY
    assert tree.arrays.nodes[0, STAGE] == LISTED
    ended = tree.arrays.nodes[: tree.num_nodes, STAGE] == PROVED
    assert ended.sum() >= 6
    assert not tree.arrays.counts[: tree.num_nodes][ended].any(), "only ends of the match are proved"


def test_a_search_finds_out_that_interests_are_not_opposite() -> None:
    """Only a match of sixteen `on` ends with 100 for both; random playouts do not meet it."""
    steps = " ".join(f"(succ {i} {i + 1})" for i in range(16))
    search = Search(
        load(
            f"""
            (role a) (role b) (init (step 0)) {steps}
            (legal a on) (legal a stop) (legal b noop)
            (<= (next (step ?j)) (true (step ?i)) (succ ?i ?j) (does a on))
            (<= (next stopped) (does a stop) (not (true (step 1)))) (<= (next halved) (does a stop) (true (step 1)))
            (<= terminal (true stopped)) (<= terminal (true halved)) (<= terminal (true (step 16)))
            (<= (goal a 0) (true stopped)) (<= (goal b 100) (true stopped))
            (<= (goal a 50) (true halved)) (<= (goal b 50) (true halved))
            (<= (goal a 100) (true (step 16))) (<= (goal b 100) (true (step 16)))
            """
        )
    )
    search.begin(search.game.initial, stream(1))
    assert search._stems[0].tree.assumption == 100
    search.run(2000)
    assert search._stems[0].tree.assumption == UNRELATED
    assert search.is_proved
    assert [(move.low, move.high) for move in search.moves(0)][search.choice(0, stream(1))] == (100, 100)
    assert search._stems[0].tree.arrays.low[0].tolist() == [100, 100], "b gets 100, too"


@pytest.mark.parametrize("goal", [0, 50])
def test_ends_that_are_all_alike_make_no_opponents(goal: int) -> None:
    """Random matches soon end by `stop`; only after twelve times `on` both get 100, which both want."""
    steps = " ".join(f"(succ {i} {i + 1})" for i in range(12))
    search = Search(
        load(
            f"""
            (role a) (role b) (init (step 0)) (init (turn a)) {steps}
            (other a b) (other b a)
            (<= (legal ?r on) (true (turn ?r))) (<= (legal ?r stop) (true (turn ?r)))
            (<= (legal ?r noop) (true (turn ?other)) (other ?r ?other))
            (<= (next (turn ?r)) (true (turn ?other)) (other ?r ?other))
            (<= (next (step ?j)) (true (step ?i)) (succ ?i ?j) (does ?r on))
            (<= (next stopped) (does ?r stop))
            (<= terminal (true stopped)) (<= terminal (true (step 12)))
            (<= (goal ?r {goal}) (role ?r) (true stopped)) (<= (goal ?r 100) (role ?r) (true (step 12)))
            """
        )
    )
    search.begin(search.game.initial, stream(1))
    assert search._stems[0].tree.assumption == UNRELATED
    search.run(5000)
    assert search.is_proved
    assert search._stems[0].tree.arrays.low[0].tolist() == [100, 100]
    assert [(move.low, move.high) for move in search.moves(0)][search.choice(0, stream(1))] == (100, 100)


def test_goals_that_add_up_by_hand() -> None:
    """A missing goal counts as 0, but not in a playout that was cut after ten plies."""
    for goals, steps, expected in (
        ([[100, 0], [0, 100], [50, 50]], [3, 0, 10], True),
        ([[100, 0], [100, 100]], [3, 3], False),
        ([[100, -1], [-1, -1]], [3, 10], True),
        ([[100, 0], [-1, -1]], [3, 9], False),
        ([[-1, 50]], [0], False),
    ):
        rows = np.array(goals, np.int16), np.array(steps, np.int32)
        assert as_assumed(*rows, 10, 100) is expected
        assert as_assumed(*rows, 10, UNRELATED)


def test_a_sole_winner_by_hand() -> None:
    """Only a role with 100 must be alone; a missing goal counts as 0, and a playout that was cut says nothing."""
    for goals, steps, expected in (
        ([[100, 0, -1], [50, 50, 20], [-1, -1, 100]], [3, 0, 2], True),
        ([[100, 0, 10]], [3], False),
        ([[100, 0, 10]], [10], True),
        ([[50, 50, 0], [0, 100, 100]], [1, 1], False),
        ([[100, 150, 0]], [1], False),
        ([[150, 0, 0]], [1], False),
    ):
        assert as_assumed(np.array(goals, np.int16), np.array(steps, np.int32), 10, SOLE_WINNER) is expected


def test_what_random_matches_say_of_the_goals() -> None:
    """Sixteen wins are needed before a winner counts as alone."""
    for goals, expected in (
        ([[100, 0], [0, 100], [50, 50]], 100),
        ([[50, 50]] * 16, UNRELATED),
        ([[0, 0]] * 16, UNRELATED),
        ([[100, 0]] * 16, SOLE_WINNER),
        ([[100, 0], [0, 0]] * 16, SOLE_WINNER),
        ([[100, 0], [50, 60]] * 16, SOLE_WINNER),
        ([[100, 0], [0, 0]] * 15, UNRELATED),
        ([[100, 0, 0], [0, 0, 100]] * 16, SOLE_WINNER),
        ([[100, 0, 0], [0, 50, 100]] * 16, UNRELATED),
        ([[100, 0, 0], [150, 0, 0]] * 16, UNRELATED),
        (np.zeros((0, 3)), UNRELATED),
    ):
        assert _assumption(np.array(goals, np.int16)) == expected


def test_equal_gates_show_that_goals_are_complements() -> None:
    """In the second game, b gets 50 whatever a gets. Matches that all end as draws do not tell them apart."""
    rules = """
        (role a) (role b) (init (step 0)) (succ 0 1) (succ 1 2)
        (legal a one) (legal a two) (legal b noop)
        (<= (next (step ?j)) (true (step ?i)) (succ ?i ?j)) (<= (next won) (does a one) (does b one))
        (<= terminal (true (step 2))) (<= (goal a 100) (true won)) (<= (goal a 50) (not (true won)))
        """
    for other, expected in (("(<= (goal b 0) (true won)) (<= (goal b 50) (not (true won)))", 100), ("(goal b 50)", -1)):
        game = load(rules + "(legal b one)" + other)
        assert _are_complements(game, 100) is (expected == 100)
        assert not _are_complements(game, 150)
        always = np.array([[50, 50]] * 16, np.int16)
        assert _assumption(always, lambda total, game=game: _are_complements(game, total)) == expected  # type: ignore[misc]


def test_all_trees_begin_anew_if_one_finds_out_that_interests_are_not_opposite(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(load("connectfour"), threads=2)
    search.begin(search.game.initial, stream(1))
    search.run(2000)
    other, sums = search._stems[1].grower, [False]
    grow = other.grow
    monkeypatch.setattr(
        other, "grow", lambda *arguments: grow(*arguments)._replace(as_assumed=sums.pop() if sums else True)
    )
    assert search.run(2000) == 2000
    assert not sums
    assert [stem.tree.assumption for stem in search._stems] == [UNRELATED] * 2
    assert search.visits == 2000, "the trees are new, and so is the budget"
    assert search.num_walks > 2000 + 2000, "walks below the wrong assumption took time, too"
    search.begin(search.game.initial, stream(2))
    assert [stem.tree.assumption for stem in search._stems] == [100] * 2, "a match does not depend on those before it"
    search.begin(search.game.initial, stream(2), assumption=UNRELATED)
    assert [stem.tree.assumption for stem in search._stems] == [UNRELATED] * 2


def test_a_tree_without_its_assumption_begins_anew_below_all_of_its_roots() -> None:
    game = load("connect3")
    states = np.array([game.initial, game.start().play(["(drop 1)", "noop"]).state])
    tree = Tree(game, 2048, 20_000)
    tree.assumption = 100
    tree.plant(states)
    grower(game, GrowthSettings()).grow(tree, 120, stream(1), (0, 100))
    tree.drop_assumption()
    assert tree.assumption == UNRELATED
    assert tree.num_nodes == 2
    assert np.array_equal(tree.arrays.states[:2], states)
    assert not tree.arrays.nodes[:2, tree_module.VISITS].any()


def test_a_move_is_searched_for_even_if_the_trees_begin_anew_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    search, clock = Search(load("connectfour")), [0.0]
    search.begin(search.game.initial, stream(1))
    grower, calls = search._stems[0].grower, list[int]()
    grow = grower.grow

    def late(*arguments: Any) -> Grown:
        clock[0] += 1.0
        calls.append(0)
        return grow(*arguments)._replace(as_assumed=len(calls) > 1)

    monkeypatch.setattr(grower, "grow", late)
    monkeypatch.setattr(thinking, "monotonic", lambda: clock[0])
    assert search.run(deadline=0.5) > 0
    assert len(calls) == 2
    assert search.visits > 0


def test_trees_that_begin_anew_have_a_speed_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call takes a second. The first two are below the wrong assumption, and tell nothing of those after them."""
    search, clock, asked = Search(load("connectfour")), [0.0], list[float]()
    search.begin(search.game.initial, stream(1))
    grower, walks = search._stems[0].grower, list[int]()
    grow = grower.grow

    def slow(*arguments: Any) -> Grown:
        clock[0] += 1.0
        grown = grow(*arguments[:3], (arguments[3][0], arguments[3][0] + 1))._replace(as_assumed=len(walks) != 1)
        walks.append(grown.walks)
        return grown

    monkeypatch.setattr(grower, "grow", slow)
    monkeypatch.setattr(thinking, "monotonic", lambda: clock[0])
    monkeypatch.setattr(search, "_is_settled", lambda role, left: asked.append(left) or len(asked) == 3)
    search.run(deadline=10.0, chooser=0)
    assert asked == [walks[0] * 9.0, 0.0, walks[2] * 7.0]
    assert search.num_walks == sum(walks)
    assert search.rate == sum(walks) / 3.0


def test_the_engine_proves_the_same_bounds() -> None:
    """Both ways to grow a tree keep true bounds; the reasoner needs no machine code.

    x threatens to complete the first column and the second row. o can close only one of them, so all moves of o lose.
    """
    game = load("tictactoe", engine="reasoner")
    tree = Tree(game, 4096, 40_000)
    position = game.start()
    for cell in ((1, 1), (1, 2), (2, 2), (3, 3), (2, 1)):
        role = next(role for role, moves in position.legal.items() if len(moves) > 1)
        joint = [f"(mark {cell[0]} {cell[1]})" if name == role else "noop" for name in game.roles]
        position = position.play(joint)
    tree.assumption = 100
    tree.start(position.state)
    grower = EngineGrower(game, GrowthSettings(least=4, leaves=4, playouts=2))
    grower.grow(tree, 60, stream(1), (0, 1000))
    native = load("tictactoe")
    size = tree.num_nodes
    states = np.array([native.position(position.game.facts(state)).state for state in tree.arrays.states[:size]])
    values, _ = solve(native).look_up(states)
    assert (tree.arrays.low[:size] <= values).all()
    assert (values <= tree.arrays.high[:size]).all()
    assert (tree.arrays.nodes[:size, STAGE] != SEEN).any()
    assert tree.arrays.nodes[0, STAGE] == PROVED
    assert tree.arrays.low[0].tolist() == tree.arrays.high[0].tolist() == [100, 0]
    listed = (tree.arrays.nodes[:size, STAGE] == PROVED) & tree.arrays.counts[:size].any(axis=1)
    assert listed.sum() >= 5, "so are the positions after the four moves, in which the match goes on"
    assert tree.arrays.size[NUM_NODES] == size


@pytest.mark.parametrize("way", [grower, EngineGrower])
def test_a_win_in_one_ply_is_proved_when_the_moves_are_listed(way: type[EngineGrower]) -> None:
    """x to move at (1 1), (1 2) marked: (mark 1 3) wins. The second visit of the node lists its moves."""
    game = load("tictactoe")
    position = game.start()
    for moves in (["(mark 1 1)", "noop"], ["noop", "(mark 3 1)"], ["(mark 1 2)", "noop"]):
        position = position.play(moves)
    replies = position.legal["oplayer"]
    for scout in (True, False):
        tree = Tree(game, 2048, 20_000)
        tree.assumption = 100
        tree.start(position.state)
        settings = GrowthSettings(
            least=1, leaves=1, exploration=100.0, scout=scout
        )  # so all replies are visited in turn
        way(game, settings).grow(tree, 2 * len(replies), stream(1), (0, 1000))
        lost = [
            int(tree.arrays.high[int(child), 1]) == 0
            for child in tree.arrays.child[tree.span(0, 1)[0] :][: len(replies)]
        ]
        wins_anyway = replies.index("(mark 1 3)")
        if scout:
            assert [index for index, is_lost in enumerate(lost) if not is_lost] == [wins_anyway]
        else:
            assert sum(lost) < len(replies) - 1


KINGMAKER = """
    (role a) (role b) THIRD (init (control a)) (kind high) (kind low) (init (at start))
    (<= (legal a give) (true (control a))) (<= (legal a take) (true (control a)))
    (<= (legal a noop) (not (true (control a))))
    (<= (legal b FIRST) (true (control b))) (<= (legal b SECOND) (true (control b)))
    (<= (legal b noop) (not (true (control b))))
    (<= (next (control b)) (does a give)) (<= (next (at taken)) (does a take))
    (<= (next (at high)) (does b up)) (<= (next (at low)) (does b down))
    (<= terminal (true (at taken))) (<= terminal (true (at ?kind)) (kind ?kind))
    (<= (goal a 60) (true (at taken))) (<= (goal a 100) (true (at high))) (<= (goal a 0) (true (at low)))
    (<= (goal b 10) (true (at taken))) (<= (goal b GOAL) (true (at ?kind)) (kind ?kind))
    """
"""a takes 60, or lets b choose between 100 and 0 for a; b gets the same each time."""
THIRD = "(role c) (legal c noop) (goal c 0)"


def kingmaker(third: str, goal: int, moves: tuple[str, str]) -> Search:
    """Return a search of KINGMAKER; b's moves are listed in this order."""
    rules = KINGMAKER.replace("THIRD", third).replace("GOAL", str(goal))
    search = Search(load(rules.replace("FIRST", moves[0]).replace("SECOND", moves[1])))
    search.begin(search.game.initial, stream(1), assumption=UNRELATED)
    search.run(1000)
    return search


@pytest.mark.parametrize("moves", [("up", "down"), ("down", "up")])
@pytest.mark.parametrize(("third", "goal"), [("", 50), ("", 0), (THIRD, 50)])
def test_moves_that_are_equal_for_the_mover_alone_stay_open(third: str, goal: int, moves: tuple[str, str]) -> None:
    """So a does not count on one of them, and takes what is sure."""
    search = kingmaker(third, goal, moves)
    legal = search.game.start().legal["a"]
    reports = dict(zip(legal, search.moves(0), strict=True))
    assert reports["give"].mean == pytest.approx(50, abs=10)
    assert legal[search.choice(0, stream(1))] == "take"
    tree = search._stems[0].tree
    given = int(tree.arrays.child[tree.span(0, 0)[0] + legal.index("give")])
    first, count = tree.span(given, 1)
    assert count == 2
    assert not tree.arrays.closed[first : first + count].any()
    assert (tree.arrays.low[0, 0], tree.arrays.high[0, 0]) == (60, 100)


def test_the_open_move_of_a_role_that_has_lost_does_not_depend_on_the_order_of_moves() -> None:
    """In games for three roles it has one, see the module."""
    means = []
    for moves in (("up", "down"), ("down", "up")):
        search = kingmaker(THIRD, 0, moves)
        legal = search.game.start().legal["a"]
        means.append(search.moves(0)[legal.index("give")].mean)
    assert means[0] == pytest.approx(means[1], abs=10)
    assert not 40 < means[0] < 60
