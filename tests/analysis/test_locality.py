"""What lies near what, by hand, on boards of all kinds and under any names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations
from random import Random

import numpy as np
import pytest

from evaluators import native_game
from gamelore import rulesheets
from gamelore.analysis import locality
from gamelore.analysis.locality import Vicinity
from gamelore.analysis.symmetry import symmetries
from gamelore.errors import GameloreError
from gamelore.game.game import Game
from gamelore.gdl import syntax
from scrambling import scrambled, shuffled

Pairs = set[frozenset[str]]
MORRIS_MILLS = [(1, 2, 3), (3, 10, 16), (14, 15, 16), (1, 7, 14), (4, 5, 6), (6, 9, 13), (11, 12, 13), (4, 8, 11)]
MORRIS_SPOKES = [(2, 5), (7, 8), (9, 10), (12, 15)]
SIDEWAYS, UP, RISING, FALLING = (1, 0), (0, 1), (1, 1), (1, -1)


@cache
def game(name: str) -> Game:
    return rulesheets.load(name)


@cache
def found(name: str) -> Vicinity:
    return Vicinity.of(game(name))


def of_text(text: str) -> tuple[Game, Vicinity]:
    rules = native_game(syntax.parse(text))
    return rules, Vicinity.of(rules)


def values(rules: Game, vicinity: Vicinity) -> list[set[str]]:
    """The facts of each variable."""
    facts = [rules.fact_text(bit) for bit in range(len(vicinity.variables))]
    return [
        {facts[bit] for bit in np.flatnonzero(vicinity.variables == variable)}
        for variable in range(len(vicinity.everywhere))
    ]


def places(rules: Game, vicinity: Vicinity) -> list[str]:
    """A name of each variable: its facts without the last argument, or the fact."""
    return [
        next(iter(own)) if len(own) == 1 else next(iter({fact.rpartition(" ")[0][1:] for fact in own}))
        for own in values(rules, vicinity)
    ]


def near(rules: Game, vicinity: Vicinity) -> Pairs:
    """The pairs of neighbours."""
    name = places(rules, vicinity)
    assert vicinity.neighbours.diagonal().all()
    assert (vicinity.neighbours == vicinity.neighbours.T).all()
    assert not (vicinity.neighbours & vicinity.everywhere & ~np.eye(len(name), dtype=np.bool_)).any()
    return {frozenset((name[a], name[b])) for a, b in np.argwhere(vicinity.neighbours).tolist() if a != b}


def everywhere(rules: Game, vicinity: Vicinity) -> set[str]:
    return {name for name, is_so in zip(places(rules, vicinity), vicinity.everywhere.tolist(), strict=True) if is_so}


def together(sets: Iterable[Iterable[str]]) -> Pairs:
    """All pairs in each of the sets."""
    return {frozenset(pair) for part in sets for pair in combinations(part, 2)}


def lines(width: int, height: int, length: int, directions: Iterable[tuple[int, int]]) -> list[list[str]]:
    """The cells of each straight line of a board."""
    cells = {(x, y) for x in range(1, width + 1) for y in range(1, height + 1)}
    runs = [
        [(x + step * dx, y + step * dy) for step in range(length)] for x, y in sorted(cells) for dx, dy in directions
    ]
    return [[f"cell {x} {y}" for x, y in run] for run in runs if cells.issuperset(run)]


ALL_WAYS = (SIDEWAYS, UP, RISING, FALLING)
NEAR = {
    "tictactoe": together(lines(3, 3, 3, ALL_WAYS)),
    "losetictactoe": together(lines(3, 3, 3, ALL_WAYS)),
    "tictactoe3p": together(lines(4, 4, 3, ALL_WAYS)),
    "connectfour": together(lines(7, 6, 4, ALL_WAYS)),
    "connect3": together(lines(5, 5, 3, ALL_WAYS)),
    "breakthrough": together(lines(4, 5, 2, (UP, RISING, FALLING))),  # from and to of a move
    "breakthrough:width=3,height=4": together(lines(3, 4, 2, (UP, RISING, FALLING))),
    # what is placed, what is turned in any case, and the next one, which decides whether it is
    "othello4": together(lines(4, 4, 3, ALL_WAYS)),
    "capturego3": together(lines(3, 3, 2, (SIDEWAYS, UP))),  # stones and their liberties
} | {
    f"fivemensmorris:{options}": together([f"cell {point}" for point in line] for line in MORRIS_MILLS + MORRIS_SPOKES)
    for options in ("", "flying=yes", "removal=standard")
}


@pytest.mark.parametrize("name", NEAR)
def test_neighbours(name):
    assert near(game(name), found(name)) == NEAR[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tictactoe", {"control"}),
        ("connectfour", {"control"}),
        ("breakthrough:width=3,height=4", {"control"}),
        ("othello4", {"control"}),
        ("fivemensmorris:", {"control", "stage", "hand black", "hand white", "step"}),
        ("pegsolitaire", {"pegs"}),  # counted by every jump
        ("goofspiel", {"prize", "points red", "points blue"}),
    ],
)
def test_everywhere(name, expected):
    assert everywhere(game(name), found(name)) == expected


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["tictactoe", "connect3", "othello4", "fivemensmorris:cap=20", "pegsolitaire"])
def test_names_and_order_do_not_matter(name, seed):
    text, random = str(game(name).rulesheet), Random(f"{name} {seed}")
    names = scrambled(text, random)
    rules, other = of_text(shuffled(names.sheet(text), random))
    own = [frozenset(map(names.text, facts)) for facts in values(game(name), found(name))]
    others = [frozenset(map(str.lower, facts)) for facts in values(rules, other)]
    order = [others.index(facts) for facts in own]
    assert sorted(order) == list(range(len(others)))
    np.testing.assert_array_equal(other.neighbours[np.ix_(order, order)], found(name).neighbours)
    np.testing.assert_array_equal(other.everywhere[order], found(name).everywhere)


@pytest.mark.parametrize("name", ["tictactoe", "connect3", "othello4", "fivemensmorris:", "breakthrough"])
def test_symmetries_keep_it(name):
    """So it is the same for a sequence and for what stands for it."""
    vicinity, symmetric = found(name), symmetries(game(name))
    assert symmetric.num > 1
    for facts, actions in zip(symmetric.facts, symmetric.actions, strict=True):
        images = np.empty(len(vicinity.everywhere), np.int64)
        images[vicinity.variables] = vicinity.variables[facts]
        assert (images[vicinity.variables] == vicinity.variables[facts]).all()
        np.testing.assert_array_equal(vicinity.neighbours[np.ix_(images, images)], vicinity.neighbours)
        np.testing.assert_array_equal(vicinity.everywhere[images], vicinity.everywhere)
        np.testing.assert_array_equal(vicinity.touched[np.ix_(actions, images)], vicinity.touched)


# ---- actions and sequences ----------------------------------------------------------------------------------------


def action(rules: Game, role: int, move: str) -> int:
    return rules.action(role, move)


def touched(rules: Game, vicinity: Vicinity, role: int, move: str) -> set[str]:
    name = places(rules, vicinity)
    return {name[variable] for variable in np.flatnonzero(vicinity.touched[action(rules, role, move)])}


def test_what_moves_touch():
    morris = game("fivemensmorris:"), found("fivemensmorris:")
    assert touched(*morris, 0, "(place 3)") == {"cell 3"}
    assert touched(*morris, 1, "(move_take 2 3 7)") == {"cell 2", "cell 3", "cell 7"}
    assert touched(*morris, 1, "noop") == set()
    connect = game("connect3"), found("connect3")
    assert touched(*connect, 0, "(drop 2)") == {f"cell 2 {y}" for y in range(1, 6)}


def sequences(rules: Game, *written: Iterable[str]) -> np.ndarray:
    """Moves of the first role and the second by turns; empty behind the end."""
    return np.array([[action(rules, i % 2, move) if move else -1 for i, move in enumerate(row)] for row in written])


def test_close_together():
    rules = game("fivemensmorris:")
    near_1 = sequences(
        rules,
        ("(place 1)", "(place 3)", "(place 14)"),  # mills of 1, though 3 and 14 are far from each other
        ("(place 1)", "(place 5)", "(place 2)"),
        ("(place 1)", "(place 1)", ""),
        ("(place 1)", "noop", "(place 7)"),  # to wait is near to all
        ("noop", "(place 9)", "(place 7)"),
        ("(move 1 2)", "(place 5)", ""),  # 5 is next to where it goes
        ("(place 5)", "(move_take 12 15 6)", ""),  # 6 is taken
    )
    assert found("fivemensmorris:").close_together(near_1).tolist() == [True, False, True, True, True, True, True]


def test_around():
    rules, vicinity = game("fivemensmorris:"), found("fivemensmorris:")
    around = vicinity.around(sequences(rules, ("(place 5)", "(place 9)"), ("(place 5)", "")))
    kept = [{rules.fact_text(bit) for bit in np.flatnonzero(row)} for row in around]
    always = {fact for fact in map(rules.fact_text, range(len(vicinity.variables))) if not fact.startswith("(cell")}
    for facts, points in zip(kept, [(5, 2, 4, 6, 9, 10, 13), (5, 2, 4, 6)], strict=True):
        assert facts == always | {f"(cell {point} {c})" for point in points for c in ("b", "black", "white")}


# ---- small sheets -------------------------------------------------------------------------------------------------

RING = """
(role r) (after 0 1) (after 1 2) (after 2 3) (after 3 4) (after 4 5) (after 5 0)
(<= (lamp ?x) (after ?x ?y))
(<= (legal r (press ?x)) (lamp ?x))
(init (clock 0)) (<= (next (clock ?y)) (true (clock ?x)) (after ?x ?y))
(goal r 50)
"""


def test_a_frame_that_says_what_others_do_is_no_touch():
    """Each lamp stays lit by the moves of the others."""
    rules, vicinity = of_text(
        RING + "(<= (next (lit ?x)) (does r (press ?x)) (not (true (lit ?x))))"
        "(<= (next (lit ?x)) (true (lit ?x)) (does r (press ?y)) (distinct ?x ?y))"
        "(<= terminal (true (lit ?x)) (true (lit ?y)) (after ?x ?y))"
    )
    assert touched(rules, vicinity, 0, "(press 2)") == {"(lit 2)"}
    assert near(rules, vicinity) == together([f"(lit {x})", f"(lit {(x + 1) % 6})"] for x in range(6))
    assert everywhere(rules, vicinity) == {"clock"}


@pytest.mark.parametrize(
    "rule",
    [
        "(<= terminal (or (true (lit 0)) (true (clock 3))) (true (lit 1)) (true (lit 2)))",
        "(<= both (true (lit 0)) (true (lit 1))) (<= terminal both (true (lit 2)))",
        "(<= unlit (not (true (lit 1)))) (<= terminal (not unlit) (true (lit 2)))",
        # whichever way it goes, 1 decides
        "(<= (p ?x) (true (lit 1)) (true (lit ?x))) (<= (q) (p 3)) (<= (q) (p 4)) (<= terminal (q) (true (lit 2)))",
        "(<= (p ?x) (true (lit 1)) (q ?x)) (<= (q ?x) (p ?x)) (<= (q 3) (true (lit 1)))"  # and within a recursion
        "(<= terminal (p 3) (true (lit 2)))",
    ],
)
def test_by_way_of_relations(rule):
    rules, vicinity = of_text(
        RING + "(<= (next (lit ?x)) (does r (press ?x))) (<= (next (lit ?x)) (true (lit ?x)))" + rule
    )
    assert frozenset({"(lit 1)", "(lit 2)"}) in near(rules, vicinity)
    assert frozenset({"(lit 2)", "(lit 3)"}) not in near(rules, vicinity)
    assert frozenset({"(lit 2)", "(lit 4)"}) not in near(rules, vicinity)


@pytest.mark.parametrize(
    "rule",
    [
        "(<= dark (lamp ?x) (not (true (lit ?x)))) (<= terminal (not dark))",  # says something of all
        "(<= terminal (true (lit ?x)) (true (lit ?y)) (distinct ?x ?y))",  # of any two
        "(<= terminal (true (lit 0)) (true (lit 1)) (true (lit 2)) (true (lit 3)) (true (lit 4)) (true (lit 5)))",
        "(<= some (true (lit ?x))) (<= terminal some (true (lit 0)))",  # of one, whichever
        "(<= terminal (true (lit 0)) (true (clock 3)))",  # of one, and of what is everywhere
    ],
)
def test_what_makes_no_neighbours(rule):
    """Then those moves are near each other that touch the same."""
    rules, vicinity = of_text(
        RING + "(<= (next (lit ?x)) (does r (press ?x))) (<= (next (lit ?x)) (true (lit ?x)))" + rule
    )
    assert near(rules, vicinity) == set()
    assert vicinity.close_together(np.array([[1, 1], [1, 2]])).tolist() == [True, False]


def test_without_facts():
    _, vicinity = of_text("(role r) (legal r a) (legal r b) terminal (goal r 50)")
    assert vicinity.variables.shape == (0,)
    assert vicinity.close_together(np.array([[0, 1]])).tolist() == [True]
    assert vicinity.around(np.array([[0, 1]])).shape == (1, 0)


def test_old_public_sheets_write_frames_so(shared):
    sheet = rulesheets.load(shared / "games" / "ticTacToe.kif")
    assert near(sheet, Vicinity.of(sheet)) == NEAR["tictactoe"]


def test_games_that_it_is_not_for(monkeypatch):
    with pytest.raises(
        GameloreError,
        match=(
            "expected a game that is compiled as a whole, got tictactoe, which is not: the engine reasoner was "
            "chosen; do not"
        ),
    ):
        Vicinity.of(rulesheets.load("tictactoe", "reasoner"))
    monkeypatch.setattr(locality, "AFFORDABLE", locality.Limits(literals=100))
    with pytest.raises(
        GameloreError, match=r"can be grounded as written, got tictactoe: .* 100 .*; do not use locality"
    ):
        Vicinity.of(game("tictactoe"))
