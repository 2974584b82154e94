"""Pairs and positions on boards: where places lie, what moves do to them, in a terminal and in a picture."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from gamelore import Game, rulesheets
from gamelore.drawing.board import Boards, Place
from gamelore.errors import GameloreError
from gamelore.lab.sequence_pictures import draw_pairs, pairs_figure
from gamelore.lab.sequence_text import DrawnPair, Effect, Effects, Scenes, pairs_text

X, O, W, B = "xplayer", "oplayer", "white", "black"  # noqa: E741

RING = """
    (role r) (role s)
    (init (at a red)) (init (at b none)) (init (at c none)) (init (at d none)) (init (at e none))
    (init (control r)) (init (hand r 2)) (init (hand s 2))
    (way a b) (way b c) (way c d) (way d e) (way e a)
    (next_to ?x ?y) (next_to ?y ?x)
    (<= (legal ?p (put ?x)) (true (control ?p)) (true (at ?x none)))
    (<= (legal ?p noop) (role ?p) (not (true (control ?p))))
    (<= (next (at ?x red)) (does ?p (put ?x)))
    (<= (next (at ?x ?c)) (true (at ?x ?c)) (not (put_at ?x)))
    (<= (put_at ?x) (does ?p (put ?x)))
    (<= (next (hand ?p ?n)) (true (hand ?p ?n)))
    (<= (next (control s)) (true (control r)))
    (<= (next (control r)) (true (control s)))
    (<= terminal (not open)) (<= open (true (at ?x none)))
    (<= (goal ?p 50) (role ?p))
"""
NEIGHBOURS = "(<= (next_to ?x ?y) (way ?x ?y)) (<= (next_to ?y ?x) (way ?x ?y))"


@cache
def game(name: str) -> Game:
    return rulesheets.load(name)


def ring(neighbours: str) -> Game:
    return rulesheets.load(RING.replace("(next_to ?x ?y) (next_to ?y ?x)", neighbours))


def text(drawing: str) -> str:
    return dedent(drawing).strip("\n")


def cells(*facts: str) -> frozenset[str]:
    return frozenset(f"(cell {fact})" for fact in facts)


def pair(*facts: str, moves: str, weight: float = 1.0, kind: str = "duet") -> DrawnPair:
    """A pair whose facts are cells, its branches "white: place 10, black: place 14; .."."""
    branches = tuple(
        tuple((role.strip(), f"({move.strip()})") for role, move in (step.split(":") for step in branch.split(",")))
        for branch in moves.split(";")
    )
    assert kind in ("duet", "solo")
    return DrawnPair("a", weight, cells(*facts), branches, "solo" if kind == "solo" else "duet")


# ---- where things lie -------------------------------------------------------------------------------------------


def test_squares_have_x_to_the_right_and_y_upwards_but_in_a_matrix() -> None:
    (board,) = Boards.of(game("tictactoe")).boards
    assert (board.kind, len(board.spots), board.lines) == ("squares", 9, ())
    assert (board.spots["1", "1"], board.spots["3", "1"], board.spots["1", "3"]) == ((0, 0), (2, 0), (0, 2))
    (matrix,) = Boards.of(game("tictactoe"), matrix=True).boards
    assert (matrix.spots["1", "1"], matrix.spots["3", "1"], matrix.spots["1", "3"]) == ((0, 2), (0, 0), (2, 2))


def test_squares_that_never_have_a_fact_are_none() -> None:
    (board,) = Boards.of(game("pegsolitaire")).boards
    assert len(board.spots) == 15


def test_points_lie_where_the_rules_say_and_lines_join_neighbours() -> None:
    (board,) = Boards.of(game("fivemensmorris")).boards
    assert (board.kind, len(board.spots), len(board.lines)) == ("points", 16, 20)
    assert [board.spots[point,] for point in ("1", "3", "7", "8", "14", "16")] == [
        (0, 4), (4, 4), (0, 2), (1, 2), (0, 0), (4, 0),
    ]  # fmt: skip
    assert {(("2",), ("5",)), (("7",), ("8",)), (("12",), ("15",))} <= set(board.lines)
    assert (("3",), ("6",)) not in board.lines


def test_points_go_from_the_top_down_whichever_way_their_numbers_run() -> None:
    sheet = RING.replace("(next_to ?x ?y) (next_to ?y ?x)", NEIGHBOURS)
    downwards, upwards = (
        "".join(
            f"(location {p} {x} {sign * y + 9}) "
            for p, x, y in zip("abcde", (2, 3, 3, 1, 1), (1, 2, 3, 3, 2), strict=True)
        )
        for sign in (1, -1)
    )
    spots = [Boards.of(rulesheets.load(sheet + places)).boards[0].spots for places in (downwards, upwards)]
    assert spots[0] == spots[1]
    assert spots[0]["a",] == (1, 2)


def test_points_without_places_are_where_their_neighbours_put_them() -> None:
    (board,) = Boards.of(ring(NEIGHBOURS)).boards
    assert (board.kind, len(board.lines)) == ("graph", 5)
    assert board == Boards.of(ring(NEIGHBOURS)).boards[0]
    xs, ys = zip(*board.spots.values(), strict=True)
    middle = sum(xs) / 5, sum(ys) / 5
    radii = [((x - middle[0]) ** 2 + (y - middle[1]) ** 2) ** 0.5 for x, y in board.spots.values()]
    assert max(radii) < 1.05 * min(radii)  # a ring is drawn as one


@pytest.mark.parametrize(
    "relation",
    [
        "(next_to a b) (next_to b c) (next_to c d) (next_to d e)",  # not symmetric
        "(next_to a b) (next_to b a) (next_to c d) (next_to d c) (next_to d e) (next_to e d)",  # in two parts
        "(<= (next_to ?x ?y) (way ?x ?z) (way ?y ?u) (distinct ?x ?y))",  # all pairs
        "(next_to a b) (next_to b a)",  # of some points
        "(next_to a a) (next_to b b)",
    ],
)
def test_other_relations_are_no_neighbours(relation: str) -> None:
    (board,) = Boards.of(ring(relation)).boards
    assert (board.kind, board.lines) == ("row", ())
    assert list(board.spots.values()) == [(x, 0) for x in range(5)]


def test_facts_that_lie_nowhere_are_told() -> None:
    boards = Boards.of(ring(NEIGHBOURS))
    laid = boards.lay(["(at a red)", "(hand s 2)", "(control r)"])
    assert laid.others == ("(control r)", "(hand s 2)")
    assert dict(laid.contents) == {Place(("at", 2), ("a",)): "red"}


def test_layers_lie_beside_each_other() -> None:
    sides = "(index 1) (index 2) (index 3)"
    cube = f"""(role r) {sides} (<= (init (cell ?z ?x ?y b)) (index ?z) (index ?x) (index ?y))
        (<= (next ?f) (true ?f)) (legal r wait) terminal (goal r 100) (<= (next (cell 1 1 1 x)) (does r wait))"""
    (board,) = Boards.of(rulesheets.load(cube)).boards
    assert len(set(board.spots.values())) == 27
    assert board.spots["2", "1", "1"][0] > board.spots["1", "3", "1"][0] + 1


# ---- what moves do ----------------------------------------------------------------------------------------------


def pair_text(played: Game, drawn: DrawnPair, width: int = 80, *, matrix: bool = False) -> str:
    return pairs_text(played, [drawn], width, matrix=matrix)


def effects(name: str, branch: DrawnPair) -> list[Effect]:
    return [step.effect for step in Scenes(game(name)).scene(branch).steps]


def at(*places: str) -> tuple[Place, ...]:
    return tuple(Place(("cell", len(place.split()) + 1), tuple(place.split())) for place in places)


def test_a_mark_is_placed() -> None:
    found = effects("losetictactoe", pair("2 2 b", moves=f"{X}: mark 2 2, {O}: mark 1 1"))
    assert found == [Effect(placed=at("2 2")), Effect(placed=at("1 1"))]


def test_a_stone_falls_onto_what_is_known_to_be_there() -> None:
    context = ("3 1 yellow", "3 2 b", "3 3 b")
    found = effects("connect3", pair(*context, moves="red: drop 3, yellow: drop 3, red: drop 2"))
    assert found[:2] == [Effect(placed=at("3 2")), Effect(placed=at("3 3"))]
    assert found[2].placed == ()
    assert found[2].guess in at(*(f"2 {y}" for y in range(1, 6)))  # nothing is known of that column


def test_pieces_move_and_are_taken() -> None:
    context = ("4 white", "5 white", "6 b", "9 black", "2 black")
    assert effects("fivemensmorris", pair(*context, moves="white: place_take 6 9")) == [
        Effect(placed=at("6"), taken=at("9"))
    ]
    jump = DrawnPair("", None, game("pegsolitaire").start().facts, ((("player", "(jump 3 1 1 1)"),),), "position")
    assert effects("pegsolitaire", jump) == [Effect(moved=(at("3 1", "1 1"),), taken=at("2 1"))]


def test_pieces_turn() -> None:
    start = game("othello4").start()
    first = DrawnPair("", None, start.facts, ((("black", "(place 1 2)"),),), "position")
    assert effects("othello4", first) == [Effect(placed=at("1 2"), turned=at("2 2"))]


SHUTTLE = DrawnPair(
    "b",
    1.0,
    cells("1 black", "2 black", "3 b", "10 black", "6 white", "12 white", "15 white")
    | {"(control black)", "(stage moving)"},
    (((B, "(move_take 10 3 6)"), (B, "(move 3 10)"), (B, "(move_take 10 3 12)")),),
    "solo",
)


def test_what_others_do_at_the_same_time_is_not_told() -> None:
    sheet = """(role r) (role s) (index 1) (index 2) (index 3)
        (<= (init (cell ?x ?y b)) (index ?x) (index ?y))
        (<= (legal r (put ?x 1)) (true (cell ?x 1 b))) (<= (legal s (put ?x 3)) (true (cell ?x 3 b)))
        (<= (next (cell ?x ?y ?p)) (does ?p (put ?x ?y))) (<= (marked ?x ?y) (does ?p (put ?x ?y)))
        (<= (next (cell ?x ?y ?c)) (true (cell ?x ?y ?c)) (not (marked ?x ?y)))
        (<= terminal (true (cell 1 1 r)) (true (cell 1 3 s))) (<= (goal ?p 50) (role ?p))"""
    both = rulesheets.load(sheet)
    found = Effects(both, Boards.of(both))
    assert found.of(cells("1 1 b", "2 1 b"), (("r", "(put 2 1)"),)) == [Effect(placed=at("2 1"))]
    assert found.of(both.start().facts, (("s", "(put 2 3)"),), whole=True) == [Effect(placed=at("2 3"))]


def test_between_the_moves_of_a_solo_the_others_reply() -> None:
    there, back = at("10", "3"), at("3", "10")
    assert effects("fivemensmorris", SHUTTLE) == [
        Effect(moved=(there,), taken=at("6")),
        Effect(moved=(back,)),
        Effect(moved=(there,), taken=at("12")),
    ]


@pytest.mark.parametrize(
    ("cell", "move", "effect"),
    [
        ("1 b", "move 7 8", Effect(moved=(at("7", "8"),))),
        ("1 b", "move_take 7 8 3", Effect(moved=(at("7", "8"),), taken=at("3"))),
        ("7 b", "place_take 7 8", Effect(placed=at("7"), taken=at("8"))),
        ("1 b", "place 16", Effect(placed=at("16"))),
    ],
)
def test_where_a_move_cannot_be_played_its_words_say_what_it_does(cell: str, move: str, effect: Effect) -> None:
    found = Effects(game("fivemensmorris"), Boards.of(game("fivemensmorris")))
    others_turn = cells(cell) | {"(control black)"}
    assert found.of(others_turn, ((W, f"({move})"),)) == [effect]


def test_words_say_that_a_piece_goes_on_from_where_it_went() -> None:
    found = Effects(game("fivemensmorris"), Boards.of(game("fivemensmorris")))
    others_turn = cells("2 white", "5 b") | {"(control black)"}
    there, back = at("2", "5"), at("5", "2")
    assert found.of(others_turn, ((W, "(move 2 5)"), (W, "(move 5 2)"))) == [
        Effect(moved=(there,)),
        Effect(moved=(back,)),
    ]


def test_a_move_that_touches_nothing() -> None:
    found = Effects(game("fivemensmorris"), Boards.of(game("fivemensmorris")))
    assert found.of({"(control black)"}, ((W, "noop"),)) == [Effect()]


# ---- in a terminal ----------------------------------------------------------------------------------------------

FIGURE_3 = pair(
    "1 1 b", "1 3 b", "2 2 x", "3 1 b", "3 3 o", moves=f"{X}: mark 1 1, {O}: mark 1 3, {X}: mark 3 1", weight=0.97
)
FIGURE_6 = DrawnPair(
    "a",
    1.0,
    cells("3 black", "16 black", "10 b", "14 b", "15 b") | {"(control white)", "(stage placing)", "(hand white 3)"},
    (((W, "(place 10)"), (B, "(place 14)"), (W, "(place 15)")),),
)


def test_figure_3() -> None:
    assert pair_text(game("losetictactoe"), FIGURE_3, matrix=True) == text("""
        (a) duet, weight 0.97
           1 2 3        1 2 3     1  xplayer (mark 1 1)
        1  . # .     1  1 · 2     2  oplayer (mark 1 3)
        2  # x #     2  · · ·     3  xplayer (mark 3 1)
        3  . # o     3  3 · ·

        # = anything, . = blank
    """)


def test_a_tree_of_three_sequences_as_in_figure_2() -> None:
    tree = pair(
        "2 2 b",
        moves=f"{X}: mark 1 1, {O}: mark 1 2, {X}: mark 3 2; {X}: mark 1 1, {O}: mark 1 2, {X}: mark 3 1;"
        f"{X}: mark 1 1, {O}: mark 2 1, {X}: mark 2 3",
    )
    lines = pair_text(game("losetictactoe"), tree, 40).splitlines()
    assert lines[lines.index("1  xplayer (mark 1 1)") :][:6] == [
        "1  xplayer (mark 1 1)",
        "├ 2a  oplayer (mark 1 2)",
        "│ ├ 3a  xplayer (mark 3 2)",
        "│ └ 3b  xplayer (mark 3 1)",
        "└ 2b  oplayer (mark 2 1)",
        "  └ 3c  xplayer (mark 2 3)",
    ]


def test_branches_that_begin_differently() -> None:
    tree = pair("2 2 b", moves=f"{X}: mark 1 1, {O}: mark 1 2; {X}: mark 2 2, {O}: mark 1 1")
    assert [step.number for step in Scenes(game("losetictactoe")).scene(tree).steps] == ["1a", "2a", "1b", "2b"]


def test_figure_6() -> None:
    assert pair_text(game("fivemensmorris"), FIGURE_6) == text("""
        (a) duet, weight 1.00
        #───────#───────b     ·───────·───────·     1  white (place 10)
        │       │       │     │       │       │     2  black (place 14)
        │   #───#───#   │     │   ·───·───·   │     3  white (place 15)
        │   │       │   │     │   │       │   │
        #───#       #───.     ·───·       ·───1
        │   │       │   │     │   │       │   │
        │   #───#───#   │     │   ·───·───·   │
        │       │       │     │       │       │
        .───────.───────b     2───────3───────·
        (control white) (hand white 3) (stage placing)

        # = anything, . = blank, b = black

        1─────────2─────────3
        │         │         │
        │    4────5────6    │
        │    │         │    │
        7────8         9────10
        │    │         │    │
        │    11───12───13   │
        │         │         │
        14────────15────────16
    """)


def test_a_solo_counts_the_plies_between() -> None:
    lines = pair_text(game("fivemensmorris"), SHUTTLE).splitlines()
    assert [line[:2].strip() for line in lines if "(move" in line] == ["1", "3", "5"]
    assert "1,5" in "".join(lines)
    assert sum(line.count("×") for line in lines) == 2  # noqa: RUF001
    assert Scenes(game("pegsolitaire")).scene(pair(moves="player: jump 3 1 1 1", kind="solo")).steps[0].number == "1"


CROWD = pair(
    "2 2 b",
    moves=";".join(
        f"{X}: mark 2 2, {O}: mark {x} 1, {X}: mark 3 {y}, {O}: mark 1 3" for x in (1, 2) for y in (1, 2, 3)
    ),
)


def test_where_many_moves_go_to_a_place_the_board_keeps_its_shape() -> None:
    lines = pair_text(game("losetictactoe"), CROWD).splitlines()
    assert lines[1:4] == [
        "3  # # #     3       4a,4b+ ·      3c,3f     1  xplayer (mark 2 2)",
        "2  # . #     2       ·      1      3b,3e     ├ 2a  oplayer (mark 1 1)",
        "1  # # #     1       2a     2b     3a,3d     │ ├ 3a  xplayer (mark 3 1)",
    ]
    assert lines[-1] == "# = anything, . = blank, 1+ = 1 and others"


def test_a_position_has_no_place_where_anything_may_lie() -> None:
    start = DrawnPair("the start", None, game("connect3").start().facts, (), "position")
    drawing = pair_text(game("connect3"), start)
    assert drawing.startswith("the start\n5  . . . . .\n")
    assert "#" not in drawing


def test_lines_keep_to_their_width_where_they_can() -> None:
    wide, narrow = (pairs_text(game("losetictactoe"), [FIGURE_3, FIGURE_3], width) for width in (80, 30))
    assert max(map(len, narrow.splitlines())) <= 30 < max(map(len, wide.splitlines()))
    assert wide.count("weight 0.97") == 2
    assert wide.count("# = anything") == 1


def test_points_without_a_drawing_stand_in_a_row() -> None:
    drawn = DrawnPair("a", 0.5, frozenset({"(at a red)", "(control r)"}), ((("r", "(put c)"),),))
    assert pair_text(ring(NEIGHBOURS), drawn) == text("""
        (a) duet, weight 0.50
        r  #  #  #  #     ·  ·  1  ·  ·     1  r (put c)
        a  b  c  d  e     a  b  c  d  e
        (control r)

        # = anything, r = red
    """)


# ---- pictures ---------------------------------------------------------------------------------------------------


def shapes(name: str, *pairs: DrawnPair) -> tuple[Counter[str], Counter[str]]:
    """How many shapes of each kind a picture has, and how often each text stands in it."""
    (axes,) = pairs_figure(game(name), pairs).axes
    kinds = Counter(
        "hatched" if patch.get_hatch() else type(patch).__name__
        for patch in axes.patches
        if isinstance(patch, Circle | Rectangle | FancyArrowPatch)
    )
    return kinds, Counter(words.get_text() for words in axes.texts)


def test_a_picture_of_squares() -> None:
    kinds, words = shapes("losetictactoe", FIGURE_3)
    assert kinds["hatched"] == 4 + 1  # and one in the legend
    assert kinds["Rectangle"] == 9
    assert (words["x"], words["o"], words["(a) duet, weight 0.97"], words["xplayer (mark 1 1)"]) == (1, 1, 1, 1)
    assert (words["2"], words["3"]) == (2 + 2, 2 + 2)  # on the board and in the list, and twice a coordinate


def test_a_picture_of_points_with_arrows_and_crosses() -> None:
    kinds, words = shapes("fivemensmorris", SHUTTLE)
    assert kinds["FancyArrowPatch"] == 2
    assert kinds["hatched"] == 16 - 7 + 1
    assert words["taken"] == words["anything"] == words["move of black"] == 1
    assert words["5"] == 1 + 3  # the point; on the arrow, at the cross, in the list


def test_a_picture_of_many_moves_to_one_place() -> None:
    _, words = shapes("losetictactoe", CROWD)
    assert [words[number] for number in ("2a", "3a", "4a", "4f")] == [2, 2, 1, 0]  # in the place and in the list
    assert words["... and 3 more moves"] == words["on the board: moves 1 to 3"] == 1


def test_a_picture_has_room_for_some_numbers_in_a_place() -> None:
    moves = (
        ";".join(f"{X}: mark {x} 2, {O}: mark 1 1" for x in (1, 2, 3)) + f";{X}: mark 1 1;{X}: mark 2 1, {O}: mark 1 1"
    )
    _, words = shapes("losetictactoe", pair("2 2 b", moves=moves))
    assert words["+"] == 1
    assert [words[number] for number in ("1d", "2a", "2b", "2c", "2d")] == [2, 2, 2, 1, 1]


def test_a_picture_of_a_position_has_no_hatching() -> None:
    kinds, words = shapes("othello4", DrawnPair("start", None, game("othello4").start().facts, (), "position"))
    assert (kinds["hatched"], kinds["Circle"], kinds["Rectangle"]) == (0, 4, 16)
    assert words["start"] == 1


def test_files_as_their_suffix_says_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    files = draw_pairs(game("losetictactoe"), [FIGURE_3], tmp_path / "pairs", "Figure 3")
    assert [file.name for file in files] == ["pairs.png", "pairs.svg"]
    again = draw_pairs(game("losetictactoe"), [FIGURE_3], tmp_path / "again.svg", "Figure 3")
    assert again[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(GameloreError, match=r"expected a picture format .*, svg, .*, got '.txt'"):
        draw_pairs(game("losetictactoe"), [FIGURE_3], tmp_path / "pairs.txt")
