"""Moves by clicking: the paths of moves that name places, of those that only change some, and of all others."""

from __future__ import annotations

import numpy as np
import pytest

import gamelore
from bounded_sheets import COUNTER, LEAVING_BASE
from conftest import ONE_SHOT, WALK
from gamelore import Position
from gamelore.drawing.board import Place
from gamelore.drawing.clicks import ClickMap, ClickPath, clickable
from gamelore.drawing.tabletop import Tabletop
from gamelore.game.game import make
from gamelore.gdl.limits import Limits
from gamelore.gdl.syntax import parse

ONE_ROLE = "(role r) (<= (goal r 100) (role r)) (<= terminal (true (step 9))) (init (step 0)) "
STEPS = "(<= (next (step ?m)) (true (step ?n)) (after ?n ?m)) " + "".join(f"(after {n} {n + 1}) " for n in range(9))
CELLS = "".join(f"(init (cell {x} {y} b)) " for x in (1, 2, 3) for y in (1, 2, 3))
KEPT = "(<= (next (cell ?x ?y ?c)) (true (cell ?x ?y ?c)) (not (changed ?x ?y))) "

# A robot goes north or east in a maze without walls, or stays, and may jump to the place where it is.
ROBOT = (
    ONE_ROLE
    + STEPS.replace("(step", "(clock").replace("(true (clock 9))", "")
    + (
        "(init (clock 0)) (init (at robot 1 1)) (init (at exit 3 3)) (<= (next (step 0)) (true (step 0)))"
        "(legal r stay) (<= (legal r north) (true (at robot ?x ?y)) (up ?y ?z)) (up 1 2) (up 2 3)"
        "(<= (legal r east) (true (at robot ?x ?y)) (up ?x ?z))"
        "(<= (next (at robot ?x ?y)) (true (at robot ?x ?y)) (does r stay))"
        "(<= (next (at robot ?x ?z)) (true (at robot ?x ?y)) (up ?y ?z) (does r north))"
        "(<= (next (at robot ?z ?y)) (true (at robot ?x ?y)) (up ?x ?z) (does r east))"
        "(<= (next (at exit ?x ?y)) (true (at exit ?x ?y)))"
    )
)
# Numbers are written into squares; the number comes first, so that the words could be read as other squares.
WRITING = (
    ONE_ROLE
    + STEPS
    + CELLS
    + KEPT
    + (
        "(number 1) (number 2) (number 3)"
        "(<= (legal r (write ?n ?x ?y)) (true (cell ?x ?y b)) (number ?n))"
        "(<= (next (cell ?x ?y ?n)) (does r (write ?n ?x ?y))) (<= (changed ?x ?y) (does r (write ?n ?x ?y)))"
    )
)
# A stone is put down for good (seal), or pushed to the right; a wish changes nothing that can be seen.
STONES = (
    ONE_ROLE
    + STEPS
    + CELLS.replace("(cell 1 1 b)", "(cell 1 1 stone)")
    + KEPT
    + (
        "(right 1 2) (right 2 3)"
        "(<= (legal r (seal ?x ?y)) (true (cell ?x ?y stone)))"
        "(<= (legal r (push ?x ?y ?z ?y)) (true (cell ?x ?y stone)) (right ?x ?z))"
        "(<= (next (cell ?x ?y b)) (does r (push ?x ?y ?z ?y)))"
        "(<= (next (cell ?z ?y stone)) (does r (push ?x ?y ?z ?y)))"
        "(<= (next (cell ?x ?y rock)) (does r (seal ?x ?y)))"
        "(<= (changed ?x ?y) (does r (push ?x ?y ?z ?y))) (<= (changed ?z ?y) (does r (push ?x ?y ?z ?y)))"
        "(<= (changed ?x ?y) (does r (seal ?x ?y)))"
    )
)
# Two roles take turns to mark squares or to pass.
PASSING = (
    "(role white) (role black) (init (control white)) (<= terminal (true (cell 3 3 black))) (<= (goal ?r 50) (role ?r))"
    "(<= (next (control white)) (true (control black))) (<= (next (control black)) (true (control white)))"
    + CELLS
    + KEPT
    + "(<= (legal ?r (mark ?x ?y)) (true (control ?r)) (true (cell ?x ?y b))) (<= (legal ?r pass) (role ?r))"
    "(<= (next (cell ?x ?y ?r)) (does ?r (mark ?x ?y))) (<= (changed ?x ?y) (does ?r (mark ?x ?y)))"
)


def at(function: str, arity: int, *places: str) -> frozenset[Place]:
    """A step with some places of one board, such as "1 2"."""
    return frozenset(Place((function, arity), tuple(place.split())) for place in places)


def paths(position: Position) -> dict[str, ClickPath]:
    """The path of each move of the first role that has several."""
    role = next(role for role, moves in position.legal.items() if len(moves) > 1)
    return dict(zip(position.legal[role], ClickMap.of(position.game).paths(position, role), strict=True))


def paths_of_all(position: Position) -> dict[str, ClickPath]:
    """The path of each move of the only role."""
    (role,) = position.legal
    return dict(zip(position.legal[role], ClickMap.of(position.game).paths(position, role), strict=True))


def start(game: str) -> Position:
    return gamelore.load(game).start()


GAMES = [game.name for game in gamelore.list_games()]


# ---- places that moves name -------------------------------------------------------------------------------------


def test_a_mark_is_a_click_on_its_square() -> None:
    assert paths(start("tictactoe"))["(mark 2 3)"] == (at("cell", 3, "2 3"),)


def test_source_and_target_are_clicked_in_turn() -> None:
    told = paths(start("breakthrough"))
    assert told["(move 1 1 2 2)"] == (at("cell", 3, "1 1"), at("cell", 3, "2 2"))
    assert all(clickable(list(told.values())))


def test_a_drop_is_a_click_anywhere_in_its_column() -> None:
    column = at("cell", 3, *(f"4 {row}" for row in range(1, 7)))
    position = start("connectfour")
    assert paths(position)["(drop 4)"] == (column,)
    assert paths(position.play(["(drop 4)", "noop"]))["(drop 4)"] == (column,), "also where a piece lies"


def test_points_are_clicked() -> None:
    position = start("fivemensmorris")
    move = next(iter(paths(position)))
    assert paths(position)[move] == (at("cell", 2, move.strip("()").split()[1]),)


def test_numbers_that_are_no_coordinates_are_clicked_on_a_tray() -> None:
    told = paths(start(WRITING))
    assert told["(write 3 1 2)"] == (at("cell", 3, "1 2"), at("cell 3", 3, "3"))
    assert all(clickable(list(told.values())))


# ---- places that moves change -----------------------------------------------------------------------------------


def test_a_direction_is_a_click_on_the_next_square_and_staying_one_on_the_own() -> None:
    told = paths(start(ROBOT))
    assert told["north"] == (at("at", 3, "1 2"),)
    assert told["east"] == (at("at", 3, "2 1"),)
    assert told["stay"] == (at("at", 3, "1 1"),)


def test_a_pass_is_a_click_on_the_role_whose_turn_is_next() -> None:
    position = start(PASSING)
    assert paths(position)["pass"] == (at("control", 1, "black"),)
    assert paths(position.play(["pass", "pass"]))["pass"] == (at("control", 1, "white"),)


def test_a_counter_that_all_moves_change_alike_is_no_tray() -> None:
    marking = (
        "(<= (legal r (mark ?x ?y)) (true (cell ?x ?y b))) (legal r wait)"
        "(<= (next (cell ?x ?y r)) (does r (mark ?x ?y))) (<= (changed ?x ?y) (does r (mark ?x ?y)))"
    )
    position = start(ONE_ROLE + STEPS + CELLS + KEPT + marking)
    assert "step" in {tray.board.name for tray in Tabletop.of_all(position.game).trays}
    assert ClickMap.of(position.game).tabletop.trays == ()
    assert paths_of_all(position)["wait"] == ()
    assert [tray.board.name for tray in ClickMap.of(start(PASSING).game).tabletop.trays] == ["control"]


def test_facts_are_things_on_a_tray() -> None:
    told = paths(start(WALK))
    assert told["trap"] == (at("at", 1, "dead_end"),)
    assert told["leave"] == (at("at", 1, "garden"),)


def test_what_others_choose_too_is_no_click() -> None:
    """In a simultaneous game, a fact may follow from the moves of others; the moves name no places."""
    position = start(ONE_SHOT)
    assert set(ClickMap.of(position.game).paths(position, "row")) == {()}


# ---- all moves of a position ------------------------------------------------------------------------------------


def test_a_second_click_confirms_the_shorter_of_two_paths() -> None:
    told = paths(start(STONES))
    stone = at("cell", 3, "1 1")
    assert told["(push 1 1 2 1)"] == (stone, at("cell", 3, "2 1"))
    assert told["(seal 1 1)"] == (stone, stone)


def test_moves_are_clickable_if_some_clicks_mean_no_other() -> None:
    a, b, both = at("f", 2, "1 1"), at("f", 2, "1 2"), at("f", 2, "1 1", "1 2")
    assert clickable([(a,), (b,)]) == [True, True]
    assert clickable([(a,), (a,)]) == [False, False]
    assert clickable([(a,), ()]) == [True, False]
    assert clickable([(a, b), (a, a)]) == [True, True]
    assert clickable([(both,), (a,)]) == [True, False], "a click on the second place means the first move only"
    assert clickable([(a,), (a, b)]) == [False, False], "the first may go on"


def test_moves_with_the_same_result_have_one_path() -> None:
    sheet = PASSING.replace("(<= (legal ?r pass) (role ?r))", "(<= (legal ?r wait) (true (control ?r)))") + (
        "(<= (legal ?r rest) (role ?r)) "
    )
    position = start(sheet)
    choices = ClickMap.of(position.game).choices(position, "white")
    moves = position.legal["white"]
    wait, rest = moves.index("wait"), moves.index("rest")
    assert choices.twins[rest] == choices.twins[wait]
    assert {choices.paths[wait], choices.paths[rest]} == {(), (at("control", 1, "black"),)}
    assert all(choices.are_clickable)


def test_an_only_move_has_the_path_of_its_words() -> None:
    position = start("connectfour")
    assert ClickMap.of(position.game).paths(position, "yellow") == [()]
    forced = start(STONES.replace("(right 1 2) (right 2 3)", "(right 3 1)"))
    assert paths_of_all(forced) == {"(seal 1 1)": (at("cell", 3, "1 1"),)}


def test_a_finished_match_has_no_paths() -> None:
    position = start("connect3")
    while not position.is_terminal:
        position = position.play([moves[0] for moves in position.legal.values()])
    assert ClickMap.of(position.game).paths(position, position.game.roles[0]) == []


def clicked(told: list[ClickPath], move: int, rng: np.random.Generator) -> list[int]:
    """The moves that are left after clicks on the path of a move, as a page counts them."""
    left = [number for number, path in enumerate(told) if path]
    for depth, step in enumerate(told[move]):
        place = sorted(step)[rng.integers(len(step))]
        left = [number for number in left if place in told[number][depth]]
        assert depth == len(told[move]) - 1 or all(len(told[number]) > depth + 1 for number in left), "none ends here"
    return left


@pytest.mark.parametrize("game", [*GAMES, WRITING, STONES, ROBOT, PASSING])
def test_clicks_on_the_path_of_a_clickable_move_mean_this_move(game: str) -> None:
    rng, position = np.random.default_rng(0), start(game)
    for _ in range(30):
        if not all(position.legal.values()):
            break
        for role, moves in position.legal.items():
            told = ClickMap.of(position.game).paths(position, role)
            assert len(told) == len(moves)
            if len(moves) > 1:
                for move, is_clickable in enumerate(clickable(told)):
                    assert not is_clickable or clicked(told, move, rng) == [move]
        position = position.play([moves[rng.integers(len(moves))] for moves in position.legal.values()])


@pytest.mark.parametrize("game", GAMES)
def test_all_moves_of_shipped_games_can_be_clicked(game: str) -> None:
    position = start(game)
    for _ in range(4):
        for role, moves in position.legal.items():
            assert len(moves) == 1 or all(clickable(ClickMap.of(position.game).paths(position, role)))
        position = position.play([moves[-1] for moves in position.legal.values()])


# ---- engines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["tictactoe", "breakthrough", "connectfour", WRITING, STONES, ROBOT])
def test_the_reasoner_gives_the_same_clicks(game: str) -> None:
    native, reasoner = start(game), gamelore.load(game, engine="reasoner").start()
    for _ in range(3):
        if not all(native.legal.values()):
            break
        for role in native.game.roles:
            told = ClickMap.of(native.game).paths(native, role)
            assert len(native.legal[role]) == 1 or ClickMap.of(reasoner.game).paths(reasoner, role) == told
        native, reasoner = (p.play([moves[0] for moves in p.legal.values()]) for p in (native, reasoner))


@pytest.mark.parametrize("text", [COUNTER, LEAVING_BASE])
def test_states_outside_the_bounds_have_clicks(text: str) -> None:
    position = make(parse(text), "bounded", limits=Limits(seconds=5, literals=20_000)).start()
    assert position.game.is_bounded
    clicks = ClickMap.of(position.game)
    while not position.is_terminal:
        for role, moves in position.legal.items():
            assert len(clicks.paths(position, role)) == len(moves)
        position = position.play([moves[0] for moves in position.legal.values()])


def test_a_click_map_is_made_once_and_goes_with_its_game() -> None:
    game = gamelore.load("tictactoe")
    assert ClickMap.of(game) is ClickMap.of(game)
    assert ClickMap.of(game).tabletop.trays == (), "no move needs the tray of the roles"
    assert Tabletop.of_all(game).trays != ()
