"""The tabletop: boards that stay, tokens on other boards, contents before coordinates, and trays."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import gamelore
from conftest import WALK
from gamelore.drawing.board import Board, Place
from gamelore.drawing.position import state_svg
from gamelore.drawing.tabletop import Tabletop

ONE_ROLE = "(role r) (<= (goal r 100) (role r)) (<= terminal (true over)) (init start) (<= (next start) (true start)) "
SQUARES = "".join(f"(init (cell {x} {y} {'wall' if x == y else 'b'})) " for x in (1, 2, 3) for y in (1, 2, 3))
STAY = "(<= (next ?fact) (true ?fact)) "
# Two robots and a sign on a board of cells; a move names the place to which a robot goes.
TOKENS = (
    ONE_ROLE
    + STAY
    + SQUARES
    + (
        "(init (at blue 1 2)) (init (at red 3 1)) (init (last 2 1)) (row 1) (row 2) (row 3)"
        "(<= (legal r (go ?who ?x ?y)) (true (at ?who ?u ?v)) (true (cell ?x ?y b)))"
        "(<= (next (at ?who ?x ?y)) (does r (go ?who ?x ?y)) (true (cell ?x ?y b)))"
        "(<= (next (last ?x ?y)) (does r (go ?who ?x ?y)) (true (cell ?x ?y b)))"
    )
)
# Nothing but two robots in a plane of 4 x 3.
ROBOTS = (
    ONE_ROLE
    + STAY
    + (
        "(init (at blue 1 2)) (init (at red 3 1)) (x 1) (x 2) (x 3) (x 4) (y 1) (y 2) (y 3)"
        "(<= (legal r (go ?who ?x ?y)) (true (at ?who ?u ?v)) (x ?x) (y ?y))"
        "(<= (next (at ?who ?x ?y)) (does r (go ?who ?x ?y)))"
    )
)
# Heaps from which stones are taken, cards in a pool, and two purses.
TRAYS = (
    ONE_ROLE
    + STAY
    + (
        "(init (heap a 3)) (init (heap b 5)) (init (heap c 1)) (size 1) (size 2) (size 3) (size 4)"
        "(init (pool ace)) (init (pool king)) (init (pool queen)) (init (gold 4)) (init (silver 4)) (init (control r))"
        "(<= (legal r (leave ?h ?n)) (true (heap ?h ?m)) (size ?n)) (<= (next (heap ?h ?n)) (does r (leave ?h ?n)))"
        "(<= (legal r (take ?card)) (true (pool ?card)))"
        "(<= (legal r (pay ?n)) (true (gold ?m)) (true (silver ?k)) (less ?n ?m) (less ?n ?k))"
        "(less 1 2) (less 1 3) (less 1 4) (less 2 3) (less 2 4) (less 3 4)"
        "(<= (next (gold ?n)) (does r (pay ?k)) (true (gold ?m)) (less ?n ?m))"
        "(<= (next (silver ?n)) (does r (pay ?k)) (true (silver ?m)) (less ?n ?m))"
    )
)


def tabletop(text: str) -> Tabletop:
    return Tabletop.of_all(gamelore.load(text))


def contents(text: str) -> dict[str, str]:
    """What lies on the tabletop of a game in its first state, by the coordinates of the place."""
    game = gamelore.load(text)
    laid = Tabletop.of_all(game).lay(game.start().facts)
    return {" ".join(place.at): content for place, content in laid.contents.items()}


def board(text: str, name: str) -> Board:
    return next(board for board in tabletop(text).boards if board.function[0] == name)


# ---- boards and tokens ------------------------------------------------------------------------------------------


def test_tokens_lie_on_the_board_of_another_function() -> None:
    told = tabletop(TOKENS)
    assert told.place_of("(at blue 1 2)") == (Place(("cell", 3), ("1", "2")), "blue")
    assert told.place_of("(last 2 1)") == (Place(("cell", 3), ("2", "1")), "last")
    lying = contents(TOKENS)
    assert (lying["1 2"], lying["3 1"], lying["2 1"], lying["2 2"]) == ("blue", "red", "last", "wall")


def test_a_mark_is_not_shown_where_a_piece_lies() -> None:
    game = gamelore.load(TOKENS)
    facts = {*game.start().facts} - {"(last 2 1)"} | {"(last 2 2)"}
    laid = Tabletop.of_all(game).lay(facts)
    assert laid.contents[Place(("cell", 3), ("2", "2"))] == "wall"
    assert "(last 2 2)" in laid.others


def test_contents_may_come_before_coordinates() -> None:
    robots = board(ROBOTS, "at")
    assert (robots.kind, robots.order) == ("squares", (("1", "2", "3", "4"), ("1", "2", "3")))
    assert contents(ROBOTS)["3 1"] == "red"


def test_names_of_a_letter_and_a_number_are_points_in_a_plane() -> None:
    cells = "".join(
        f"(init (cell {letter}{number} {'w' if number < 3 else 'b'})) " for letter in "abc" for number in (1, 2, 3)
    )
    sheet = ONE_ROLE + STAY + cells + "(<= (legal r (go ?from ?to)) (true (cell ?from w)) (true (cell ?to b)))"
    points = board(sheet, "cell")
    assert points.kind == "points"
    assert points.spots[("a1",)] == (0.0, 0.0)
    assert points.spots[("c2",)] == (2.0, 1.0)


def test_boards_stay_whatever_facts_there_are() -> None:
    game = gamelore.load(TOKENS)
    facts = {*game.start().facts, "(cell 1 2 wall)", "(cell 1 2 b)"}
    assert Place(("cell", 3), ("1", "2")) in Tabletop.of_all(game).lay(facts).contents


# ---- trays ------------------------------------------------------------------------------------------------------


def test_things_lie_on_their_tray_as_long_as_their_facts_hold() -> None:
    game = gamelore.load(TRAYS)
    told = Tabletop.of_all(game)
    pool = {at: content for at, content in contents(TRAYS).items() if at in ("ace", "king", "queen")}
    assert pool == {"ace": "ace", "king": "king", "queen": "queen"}
    laid = told.lay({*game.start().facts} - {"(pool king)"})
    assert Place(("pool", 1), ("king",)) not in laid.contents


def test_a_word_has_the_tray_of_the_facts_with_which_the_rules_link_it() -> None:
    words = {(slot.function[0], slot.number): tray for tray in tabletop(TRAYS).trays for slot in tray.words}
    assert words["take", 0].board.function == ("pool", 1)
    assert set(words["leave", 1].values) == {"1", "2", "3", "4", "5"}
    assert ("leave", 0) not in words, "heaps lie on a board"
    assert words["pay", 0].board.name == "gold / silver", "both are compared with what is paid"


def test_trays_are_below_the_boards_and_below_each_other() -> None:
    told = tabletop(TRAYS)
    tops = [max(y for _, y in own.spots.values()) for own in told.boards]
    lows = [min(y for _, y in own.spots.values()) for own in told.boards]
    num_boards = len(told.boards) - len(told.trays)
    assert all(low > top for low, top in zip(lows[num_boards:], tops[num_boards + 1 :], strict=False))
    assert min(lows[:num_boards]) > tops[num_boards]


def test_some_trays_can_be_left_out() -> None:
    told = tabletop(TRAYS).with_trays({("pool", 1)})
    assert [tray.board.function for tray in told.trays] == [("pool", 1)]
    assert told.place_of("(control r)") is None


@pytest.mark.parametrize("game", [TOKENS, ROBOTS, TRAYS, WALK, *(game.name for game in gamelore.list_games())])
def test_every_fact_lies_somewhere_or_is_among_the_others(game: str) -> None:
    rng, position = np.random.default_rng(0), gamelore.load(game).start()
    told = Tabletop.of_all(position.game)
    for _ in range(10):
        laid = told.lay(position.facts)
        assert set(laid.others) <= position.facts
        for fact in position.facts - set(laid.others):
            place, content = told.place_of(fact) or (None, "")
            assert place in laid.contents
            assert set(content.split("+")) <= set(laid.contents[place].split("+")) or told.board(place).is_blank(
                content
            )
        ElementTree.fromstring(state_svg(told, position.facts, position.game.roles))
        if not all(position.legal.values()):
            break
        position = position.play([moves[rng.integers(len(moves))] for moves in position.legal.values()])
