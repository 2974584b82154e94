"""Positions as SVG: what lies on the boards, as discs, glyphs or letters, and the words below."""

import subprocess
import sys
from collections import Counter
from itertools import product
from xml.etree import ElementTree

import pytest

from commands import run
from gamelore import load, rulesheets
from gamelore.drawing.board import Boards, Piece, pieces, role_styles
from gamelore.drawing.position import position_svg

SPACE = "{http://www.w3.org/2000/svg}"
BLACK_AND_WHITE = role_styles(["white", "black"])


def drawn(position):
    """How many elements of each kind a picture has, and its texts."""
    root = ElementTree.fromstring(position_svg(position))
    kinds = Counter(element.tag.removeprefix(SPACE) for element in root)
    return kinds, Counter(element.text for element in root.iter(f"{SPACE}text"))


def test_letters_on_squares():
    start = rulesheets.load("tictactoe").start()
    kinds, texts = drawn(start.play({"xplayer": "(mark 2 2)", "oplayer": "noop"}))
    assert kinds == {"path": 1, "text": 6 + 1 + 1}
    assert texts == {"1": 2, "2": 2, "3": 2, "x": 1, "(control oplayer)": 1}


def test_discs_for_colours():
    kinds, _ = drawn(rulesheets.load("othello4").start())
    assert kinds["circle"] == 4


def test_points_have_names_and_lines():
    start = rulesheets.load("fivemensmorris").start()
    kinds, texts = drawn(start.play({"white": "noop", "black": "(place 7)"}))
    assert kinds["circle"] == 16 + 1
    assert kinds["path"] == 1
    assert [texts[str(point)] for point in range(1, 17)] == [1] * 16


def spot(picture, text):
    texts = ElementTree.fromstring(picture).iter(f"{SPACE}text")
    return next((float(found.get("x")), float(found.get("y"))) for found in texts if found.text == text)


def test_a_matrix_goes_downwards():
    position = rulesheets.load("tictactoe").start().play({"xplayer": "(mark 1 3)", "oplayer": "noop"})
    x, _ = spot(position_svg(position), "x")
    right, _ = spot(position_svg(position, matrix=True), "x")
    assert round(right - x) == 2 * 44


def boards_of(*inits):
    facts = "".join(f"(init {init})" for init in inits)
    return Boards.of(load(f"(role r) {facts} (legal r wait) (<= (goal r 0) (role r)) (<= terminal (true over))"))


def cells(name, *sizes):
    return [f"({name} {' '.join(map(str, at))} b)" for at in product(*(range(1, size + 1) for size in sizes))]


def size_of(boards):
    xs, ys = zip(*(spot for board in boards.boards for spot in board.spots.values()), strict=True)
    return max(xs) - min(xs), max(ys) - min(ys)


def test_many_layers_are_in_several_rows():
    wide, high = size_of(boards_of(*cells("cell", 9, 3, 3)))
    assert 0.5 < wide / high < 2
    assert size_of(boards_of(*cells("cell", 3, 3, 3)))[1] == 2, "three layers are in a row"


def test_boards_that_are_too_far_to_the_right_are_below_the_others():
    one, two, three = boards_of(*cells("a", 9, 9), *cells("b", 9, 9), *cells("c", 9, 9)).boards
    assert max(x for x, _ in one.spots.values()) < min(x for x, _ in two.spots.values())
    assert max(y for _, y in three.spots.values()) < min(y for _, y in one.spots.values()) - 2
    assert min(x for x, _ in three.spots.values()) == 0


def test_many_points_are_in_rows_of_equal_length():
    (board,) = boards_of(*(f"(pit {name} 3)" for name in "abcdefghijkl")).boards
    assert board.kind == "row"
    assert {y: sum(spot[1] == y for spot in board.spots.values()) for y in (0, 1)} == {0: 6, 1: 6}


@pytest.mark.parametrize("white", ["wk wq wr wb wn", "white_king white_queen white_rook white_bishop white_knight"])
def test_a_chess_set_has_its_glyphs(white):
    black = white.replace("white", "black") if "_" in white else white.replace("w", "b")
    looks = pieces(dict.fromkeys([*white.split(), *black.split()], "?"), {})
    assert [looks[piece].text for piece in white.split()] == list("\u265a\u265b\u265c\u265d\u265e")
    assert looks[black.split()[0]] == Piece("\u265a", BLACK_AND_WHITE["black"])


def test_checkers_are_discs_and_kings_have_a_letter():
    looks = pieces({"wp": "wp", "wk": "wk", "bp": "bp", "bk": "bk", "b": "."}, {})
    assert looks == {
        "wp": Piece("", BLACK_AND_WHITE["white"], True),
        "wk": Piece("K", BLACK_AND_WHITE["white"], True),
        "bp": Piece("", BLACK_AND_WHITE["black"], True),
        "bk": Piece("K", BLACK_AND_WHITE["black"], True),
    }


def test_b_is_black_beside_w_and_blue_elsewhere():
    assert pieces({"b": "b", "w": "w"}, {})["b"].style == role_styles(["black"])["black"]
    assert pieces({"b": "b", "r": "r"}, {})["b"].style == role_styles(["blue"])["blue"]
    assert pieces({"b": "b", "x": "x"}, {})["b"] == Piece("b")


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from gamelore.drawing import board, position;"
        "print(*sorted({'numba', 'matplotlib', 'clingo', 'scipy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_show_draws_into_a_file(tmp_path):
    file = tmp_path / "position.svg"
    result = run("show", "connectfour", "--svg", file)
    assert result.stderr == f"wrote the picture {file}\n"
    assert ElementTree.parse(file).getroot().tag == f"{SPACE}svg"
    run("show", "connectfour", "--svg", tmp_path / "new" / "p.svg")
    assert (tmp_path / "new" / "p.svg").read_bytes() == file.read_bytes()
    message = run("show", "connectfour", "--svg", file / "p.svg", code=1).stderr
    assert f"expected a file or folder that can be used, got: [Errno 17] File exists: '{file}'" in message
