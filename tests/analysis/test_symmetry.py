"""Symmetries of games: how many there are, that the games do not notice them, on either engine, under any names."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest

from evaluators import native_game, reasoned_game
from gamelore import rulesheets
from gamelore.analysis import symmetry
from gamelore.analysis.automorphisms import Bounds
from gamelore.analysis.symmetry import Symmetries, find, symmetries
from gamelore.circuit.cache import folder
from gamelore.errors import GameloreError, GDLError
from gamelore.game.game import Game
from gamelore.gdl import syntax
from gamelore.gdl.limits import Limits, within
from gamelore.gdl.lint import lint
from mutants import altered
from scrambling import Names, scrambled, shuffled
from symmetric import assert_group, assert_symmetric, drawn, stuck

NUMBER = {
    "tictactoe": 8,
    "losetictactoe": 8,
    "tictactoe3p": 8,
    "connectfour": 2,
    "connect3": 2,
    "othello4": 4,  # of the square; the two others exchange the players
    "capturego3": 8,
    "capturego3_suicide": 8,
    "pegsolitaire": 2,
    "goofspiel": 1,
    "fivemensmorris": 16,  # of the square, and the exchange of the rings
}
OUTER_RING = (1, 2, 3, 7, 10, 14, 15, 16)


@cache
def game(name: str) -> Game:
    return rulesheets.load(name)


@cache
def found(name: str) -> Symmetries:
    return find(game(name))


def of_text(text: str, bounds: Bounds | None = None) -> Symmetries:
    return find(native_game(syntax.parse(text)), bounds)


def in_words(given: Symmetries, names: dict[str, str] | None = None) -> set[frozenset[tuple[str, str]]]:
    """What each symmetry makes of each fact and each move, in lower case."""
    rules = given.game
    assert rules.circuit is not None
    roles = np.repeat(np.arange(rules.num_roles), list(map(len, rules.circuit.actions))).tolist()
    facts = [rules.fact_text(fact).lower() for fact in range(given.facts.shape[1])]
    moves = [f"{role} {rules.move_text(role, action).lower()}" for action, role in enumerate(roles)]
    return {
        frozenset((texts[i], texts[image]) for texts, row in ((facts, f), (moves, a)) for i, image in enumerate(row))
        for f, a in zip(given.facts.tolist(), given.actions.tolist(), strict=True)
    }


# ---- the shipped games --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "number"), NUMBER.items())
def test_number(name, number):
    assert (found(name).num, found(name).why) == (number, "")


@pytest.mark.parametrize("name", [name for name, number in NUMBER.items() if number > 1])
def test_the_game_does_not_notice(name):
    assert_group(found(name))
    assert_symmetric(game(name), found(name))


@pytest.mark.parametrize("name", ["tictactoe", "capturego3"])
def test_the_rules_as_they_are_written_do_not_notice(name):
    """The plain reasoner says the same of the images of facts and moves, matched as text."""
    native, symmetric = game(name), found(name)
    plain = reasoned_game(native.rulesheet, rewrite=False)
    rng = np.random.default_rng(0)
    state = native.initial
    while not native.evaluate(state[None])[0][0]:
        joint = drawn(native, state[None], rng)[0]
        following = native.next(state[None], joint[None])[0]
        for s in range(symmetric.num):
            image = plain.position(native.facts(symmetric.images(state[None])[0, s]))
            moves = [native.move_text(role, symmetric.actions[s, action]) for role, action in enumerate(joint)]
            after = image.play(moves)
            assert after.facts == native.facts(symmetric.images(following[None])[0, s])
            assert (after.is_terminal, list(after.goals.values())) == (
                bool(native.evaluate(following[None])[0][0]),
                native.evaluate(following[None])[1][0].tolist(),
            )
        state = following


def test_eight_of_the_sixteen_of_morris_keep_the_rings():
    outer = [f"(cell {point} {content})" for point in OUTER_RING for content in ("b", "black", "white")]
    square = found("fivemensmorris").keeping(outer)
    assert square.num == 8
    assert_group(square)
    assert in_words(square) < in_words(found("fivemensmorris"))
    assert square.keeping(["(CELL 1 b)"]).num == 2


def test_what_is_no_fact_cannot_be_kept():
    with pytest.raises(GameloreError, match=r"expected facts that tictactoe can reach, got \(cell 9 9 b\); game"):
        found("tictactoe").keeping(["(cell 9 9 b)"])


def test_a_game_on_the_reasoner_keeps_the_identity() -> None:
    identity = symmetries(rulesheets.load("tictactoe", engine="reasoner"))
    assert identity.keeping([]).num == 1
    with pytest.raises(GameloreError, match="expected facts that tictactoe can reach, got"):
        identity.keeping(["(cell 1 1 b)"])


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "fivemensmorris"])
def test_byte_tables_give_the_images(name):
    symmetric, rules = found(name), game(name)
    states = np.concatenate([rules.initial[None], np.zeros((1, rules.num_words), np.uint64)])
    states[1, -1] = 0b1011
    as_bytes = states.view(np.uint8).reshape(len(states), -1)
    places = np.arange(as_bytes.shape[1])
    for row, images in zip(as_bytes, symmetric.images(states), strict=True):
        by_table = np.bitwise_or.reduce(symmetric.byte_tables[:, places, row], axis=1)
        np.testing.assert_array_equal(by_table, images)


def test_the_inverse_undoes():
    symmetric, rules = found("fivemensmorris"), game("fivemensmorris")
    states = rules.next(rules.initial[None], drawn(rules, rules.initial[None], np.random.default_rng(1)))
    for s, image in enumerate(symmetric.images(states)[0]):
        np.testing.assert_array_equal(symmetric.images(image[None])[0, symmetric.inverse[s]], states[0])


def test_step_counter_and_control_stay():
    symmetric = found("fivemensmorris")
    for fact in range(symmetric.facts.shape[1]):
        if not game("fivemensmorris").fact_text(fact).startswith("(cell"):
            assert (symmetric.facts[:, fact] == fact).all()


# ---- other words for the same game --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tictactoe", "othello4", "capturego3", "connect3", "pegsolitaire"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_scrambled_sheet_has_the_same_symmetries(name, seed):
    text, random = str(game(name).rulesheet.text), Random(f"{name} {seed}")
    names = scrambled(text, random)
    other = of_text(shuffled(names.sheet(text), random))
    spelled = [role.lower() for role in other.game.roles]
    roles = [spelled.index(names.text(role)) for role in game(name).roles]
    assert in_words(other) == {
        frozenset((renamed(names, roles, text), renamed(names, roles, image)) for text, image in element)
        for element in in_words(found(name))
    }


def renamed(names: Names, roles: list[int], text: str) -> str:
    """A fact, or the number of a role and a move, with other names."""
    role, _, move = text.partition(" ")
    if role.isdecimal() and move:
        return f"{roles[int(role)]} {names.text(move)}"
    return names.text(text)


# ---- small sheets -------------------------------------------------------------------------------------------------

LAMPS = """
(role r) {items}
(<= (base (lit ?x)) (lamp ?x)) (<= (input r (press ?x)) (lamp ?x))
(<= (legal r (press ?x)) (lamp ?x))
(<= (next (lit ?x)) (does r (press ?x)))
(<= (next (lit ?x)) (true (lit ?x)))
(<= dark (lamp ?x) (not (true (lit ?x))))
(<= terminal (not dark))
(goal r 100)
"""


def lamps(number: int, more: str = "") -> str:
    return LAMPS.format(items=" ".join(f"(lamp {i})" for i in range(number))) + more


def test_lamps_may_be_exchanged():
    symmetric = of_text(lamps(4))
    assert symmetric.num == 24
    assert_group(symmetric)
    assert_symmetric(symmetric.game, symmetric)


def test_too_many():
    symmetric = of_text(lamps(8))
    assert symmetric.num == 720
    assert symmetric.why == "there are more than 1000; those shown leave some facts or moves unchanged"
    assert_group(symmetric)
    assert_symmetric(symmetric.game, symmetric)
    fewer = of_text(lamps(8), Bounds(most=10))
    assert fewer.num == 6
    assert_group(fewer)


def test_no_time():
    symmetric = of_text(lamps(4), Bounds(seconds=-1))
    assert symmetric.num == 1
    assert "the search for more stopped" in symmetric.why


@pytest.mark.parametrize(
    ("more", "number"),
    [
        ("(init (lit 0))", 6),  # the first state counts
        ("(<= (goal r 50) (true (lit 0)))", 6),  # so do goals
        ("(<= (legal r (press 0)) (not dark))", 24),  # never needed: it is legal anyhow
        ("(<= (next (lit 0)) (not (true (lit 1))))", 2),
        ("(<= terminal (true (lit 0)) (not (true (lit 1))))", 2),  # what is under a `not` is told apart
        ("(<= terminal (true (lit 0)) (true (lit 1)))", 4),
        ("(<= (p ?x) (true (lit ?x))) (<= (q ?x) (true (lit ?x))) (<= terminal (p ?x) (q ?x) (not dark))", 24),
    ],
)
def test_what_rules_tell_apart(more, number):
    symmetric = of_text(lamps(4, more))
    assert symmetric.num == number
    assert_symmetric(symmetric.game, symmetric)


def test_a_trace_moves_along_and_facts_of_no_use_stay():
    """Nobody reads `last` and `idle`; the first tells which lamp it was."""
    symmetric = of_text(
        lamps(
            3, "(<= (next (last ?x)) (does r (press ?x))) (<= (next (idle ?x)) (mark ?x)) (mark a) (mark b) (mark c)"
        ),
    )
    assert symmetric.num == 6
    assert_symmetric(symmetric.game, symmetric)
    images = {(text, image) for element in in_words(symmetric) for text, image in element}
    assert {pair for pair in images if "idle" in pair[0]} == {(f"(idle {m})", f"(idle {m})") for m in "abc"}
    assert {pair for pair in images if "last" in pair[0]} == {
        (f"(last {i})", f"(last {j})") for i in "012" for j in "012"
    }


def test_roles_stay():
    """Two players with the same rules do not change places."""
    symmetric = of_text(
        "(role a) (role b) (<= (legal ?r (pick ?n)) (role ?r) (number ?n)) (number 1) (number 2)"
        "(<= (next (has ?r ?n)) (does ?r (pick ?n))) (<= terminal (true (has ?r ?n)))"
        "(<= (goal ?r 100) (role ?r) (true (has a ?n)) (true (has b ?n)))"
        "(<= (goal ?r 0) (role ?r) (true (has a 1)) (true (has b 2)))"
        "(<= (goal ?r 0) (role ?r) (true (has a 2)) (true (has b 1)))"
    )
    assert symmetric.actions.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


def test_counting_in_any_order():
    """The sheet counts lamps one after the other; how many are lit does not depend on the order."""
    counting = (
        "(succ 0 1) (succ 1 2) (succ 2 3) (succ 3 4) (position 0 1) (position 1 2) (position 2 3) (position 3 4)"
        "(count 0 0)"
        "(<= (count ?j ?n) (succ ?i ?j) (count ?i ?n) (position ?x ?j) (not (true (lit ?x))))"
        "(<= (count ?j ?m) (succ ?i ?j) (count ?i ?n) (succ ?n ?m) (position ?x ?j) (true (lit ?x)))"
    )
    symmetric = of_text(lamps(4, counting + "(<= terminal (count 4 3))"))
    assert symmetric.num == 24
    assert_symmetric(symmetric.game, symmetric)
    assert of_text(lamps(4, counting + "(<= terminal (count 3 2))")).num == 6  # of the first three


def test_moves_that_are_counted_together():
    """Lamps 0 to 3 ring, through two relations, and 4 does not."""
    symmetric = of_text(
        "(role r) (lamp 0) (lamp 1) (lamp 2) (lamp 3) (lamp 4) (<= (legal r (press ?x)) (lamp ?x))"
        "(<= low (does r (press 0))) (<= low (does r (press 1)))"
        "(<= high (does r (press 2))) (<= high (does r (press 3)))"
        "(<= any low) (<= any high) (<= (next bell) any) (<= terminal (true bell)) (goal r 50)"
    )
    assert symmetric.num == 24
    assert_symmetric(symmetric.game, symmetric)


@pytest.mark.parametrize(
    ("third", "number"),
    [
        ("(<= third (does r (press 0)) (does r (press 1)))", 4),  # never holds
        ("(<= third (not (shadow 0))) (<= (shadow ?x) (true (lit ?x)))", 2),  # 0, the other way round
    ],
)
def test_what_is_counted_may_never_hold_or_be_counted_twice(third, number):
    """Lamps 0 and 1 ring, where both are lit, or one and a third thing."""
    symmetric = of_text(
        lamps(
            4,
            "(succ 0 1) (succ 1 2) (succ 2 3) (position 0 1) (position 1 2) (count 0 0)"
            "(<= (count ?j ?n) (succ ?i ?j) (count ?i ?n) (position ?x ?j) (not (true (lit ?x))))"
            "(<= (count ?j ?m) (succ ?i ?j) (count ?i ?n) (succ ?n ?m) (position ?x ?j) (true (lit ?x)))"
            "(<= (total ?n) (count 2 ?n) (not third)) (<= (total ?m) (count 2 ?n) (succ ?n ?m) third)"
            "(<= (next bell) (total 2)) (<= terminal (true bell))" + third,
        )
    )
    assert symmetric.num == number  # 2 and 3 may be exchanged; 0 and 1, too, where 0 is not the third as well
    assert_symmetric(symmetric.game, symmetric)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["tictactoe", "capturego3", "pegsolitaire", "lamps"])
def test_altered_sheets(name, seed):
    """Whatever a change of the rules does to the symmetries: those that are found are some."""
    random = Random(f"{name} {seed}")
    text = lamps(4) if name == "lamps" else str(game(name).rulesheet)
    for _ in range(4):
        try:
            sheet = syntax.parse(altered(text, random))
            if any(finding.severity == "error" for finding in lint(sheet)):
                continue
            rules = native_game(sheet)
        except GDLError:  # no rulesheet any more
            continue
        symmetric = find(rules)
        assert_group(symmetric)
        if not stuck(rules, rules.initial[None])[0]:
            assert_symmetric(rules, symmetric, num_matches=5, most_plies=15)


# ---- what is not compiled, and the disk ---------------------------------------------------------------------------


def test_the_reasoner_has_none():
    symmetric = symmetries(rulesheets.load("tictactoe", "reasoner"))
    assert symmetric.num == 1
    assert symmetric.why == "tictactoe is not compiled as a whole: the engine reasoner was chosen"


def test_on_disk_after_the_first_time(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path))
    rules = rulesheets.load("tictactoe")
    first = symmetries(rules)
    with monkeypatch.context() as patch:
        patch.setattr(symmetry, "find", None)
        again = symmetries(rules)
    assert (again.num, again.why) == (8, "")
    np.testing.assert_array_equal(again.facts, first.facts)
    np.testing.assert_array_equal(again.actions, first.actions)
    assert symmetries(rules, Bounds(most=4)).num == 2  # those that keep one cell more
    for path in folder().glob("*.npz"):
        path.write_bytes(b"damaged")
    assert symmetries(rules).num == 8


def test_too_large_to_ground(monkeypatch):
    monkeypatch.setattr(symmetry, "AFFORDABLE", symmetry.Limits(literals=100))
    symmetric = find(game("tictactoe"))
    assert symmetric.num == 1
    assert "expected grounding to end within 100" in symmetric.why


def test_a_result_that_a_small_budget_has_cut_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path))
    game = rulesheets.load("connect3")
    with monkeypatch.context() as patch, within(Limits(seconds=symmetry.AFFORDABLE.seconds / 2), "the command"):
        patch.setattr(symmetry, "find", lambda game, bounds: Symmetries.trivial(game, "time is up"))
        assert symmetries(game).num == 1
    assert symmetries(game).num == 2
