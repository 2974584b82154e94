"""Positions as text: what is a board, how large it is, which way round, and what lies on it."""

import gzip
import json
from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gamelore import rulesheets
from gamelore.drawing.board import LONGEST, MARK, POINT, Boards, short_forms
from gamelore.drawing.position import TEXT_KINDS, position_text, state_text
from gamelore.gdl.syntax import parse, parse_term


def drawn(sheet, first, facts, matrix=False, **options):
    """A state of a sheet as text."""
    return state_text(Boards(sheet, first, matrix=matrix, kinds=TEXT_KINDS), facts, **options)


def draw(text, *facts, **options):
    """The drawing of a state of a sheet whose first state is given by its `init` facts."""
    sheet = parse(text)
    first = [str(rule.head.args[0]) for rule in sheet.rules if rule.head.name == "init"]
    return drawn(sheet, first, facts or first, **options)


def picture(text):
    return dedent(text).strip("\n")


LINE = "(role r) (<= (next ?fact) (true ?fact)) (<= (base ?fact) (init ?fact)) "


def filled(name, *sides, content=""):
    return "".join(f"(init ({name} {x} {y}{content})) " for x in sides[0].split() for y in sides[1].split())


# ---- boards -----------------------------------------------------------------------------------------------------


def test_x_goes_to_the_right_and_y_upwards():
    game = rulesheets.load("connectfour")
    position = game.start()
    for move in ("(drop 3)", "(drop 3)", "(drop 7)"):
        position = position.play([legal[0] if len(legal) == 1 else move for legal in position.legal.values()])
    drawing = drawn(game.rulesheet, game.start().facts, position.facts)
    assert drawing.others == ["(control yellow)"]
    assert drawing.boards == [
        picture("""
            (cell x y *)
            6 | . . . . . . .
            5 | . . . . . . .
            4 | . . . . . . .
            3 | . . . . . . .
            2 | . . y . . . .
            1 | . . r . . . r
              +--------------
                1 2 3 4 5 6 7
            . = b, r = red, y = yellow
        """)
    ]


def test_in_a_matrix_the_first_coordinate_goes_downwards():
    game = rulesheets.load("tictactoe")
    facts = ["(cell 1 1 x)", "(cell 1 2 o)", "(cell 1 3 b)", "(cell 2 1 b)", "(control xplayer)"]
    drawing = drawn(game.rulesheet, game.start().facts, facts, matrix=True)
    assert drawing == (
        [
            picture("""
                (cell row column *)
                    1 2 3
                  +------
                1 | x o .
                2 | .
                3 |
                . = b
            """)
        ],
        ["(control xplayer)"],
    )


def test_a_board_has_its_size_while_it_is_empty():
    sheet = """
        (role r) (init (step 1)) (column a) (column b) (column c) (succ 1 2) (succ 2 3)
        (<= (legal r (put ?x ?y)) (column ?x) (succ ?y ?above))
        (<= (next (at ?x ?y stone)) (does r (put ?x ?y)))
    """
    assert draw(sheet).boards == [
        picture("""
            (at x y *)
            2 | . . .
            1 | . . .
              +------
                a b c
        """)
    ]
    assert "1 | . . s" in draw(sheet, "(at c 1 stone)").boards[0]


def test_what_base_does_not_name_has_no_place():
    sheet = "(role r) (n 1) (n 2) (n 3) (n 4) (<= (next (at ?x ?y q)) (n ?x) (n ?y)) "
    assert "    1 2 3 4" in draw(sheet).boards[0]
    declared = sheet + "(<= (base (at ?x ?y q)) (n ?x) (n ?y) (small ?x) (small ?y)) (small 1) (small 2)"
    assert draw(declared).boards[0].splitlines()[1:] == ["2 | . .", "1 | . .", "  +----", "    1 2"]


def test_things_of_several_words_get_short_forms():
    sheet = LINE + (
        "(init (cell a 1 white king)) (init (cell b 2 white knight)) (init (cell b 1 black king))"
        "(init (cell c 3 black pawn))"
    )
    assert draw(sheet).boards[0].splitlines()[1:] == [
        "3 | .   .   bp",
        "2 | .   wkn .",
        "1 | wki bki .",
        "  +------------",
        "    a   b   c",
        "bki = black king, bp = black pawn, wki = white king, wkn = white knight",
    ]


def test_two_things_in_one_place_are_shown_and_three_are_facts():
    sheet = LINE + filled("at", "1 2", "1 2", content=" grass") + "(init (at 1 2 stone)) (init (at 2 2 bone))"
    assert draw(sheet).boards[0].splitlines()[1:3] == ["2 | g+s b+g", "1 | g   g"]
    drawing = draw(sheet + "(init (at 1 2 bone))")
    assert drawing.boards == []
    assert len(drawing.others) == 7


def test_points_have_lines_and_their_names_beside_them():
    start = rulesheets.load("fivemensmorris").start()
    position = start.play({"white": "noop", "black": "(place 7)"})
    assert drawn(position.game.rulesheet, start.facts, position.facts).boards == [
        picture("""
            (cell point *)
            .───────.───────.      1─────────2─────────3
            │       │       │      │         │         │
            │   .───.───.   │      │    4────5────6    │
            │   │       │   │      │    │         │    │
            b───.       .───.      7────8         9────10
            │   │       │   │      │    │         │    │
            │   .───.───.   │      │    11───12───13   │
            │       │       │      │         │         │
            .───────.───────.      14────────15────────16
            . = b, b = black
        """)
    ]
    assert position_text(position).endswith(
        "\n\n(control white)  (hand black 4)  (hand white 5)  (stage placing)  (step 1)"
    )


def test_marks_are_drawn_unless_one_coordinate_follows_from_the_other():
    sheet = LINE + filled("eaten", "1 2 3", "1 2") + "(init (left a 3)) (init (left b 3)) (init (left c 1))"
    drawing = draw(sheet, "(eaten 1 1)", "(eaten 1 2)", "(eaten 3 2)", "(left c 1)", "(left a 3)", "(left b 3)")
    assert drawing == (
        ["(eaten x y)\n2 | # . #\n1 | # . .\n  +------\n    1 2 3"],
        ["(left a 3)", "(left b 3)", "(left c 1)"],
    )


# ---- coordinates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "order"),
    [
        ("10 9 2", "2  9  10"),
        ("c b a", "a b c"),
        ("c10 c2 c1", "c1  c2  c10"),
        ("two three one", "one   two   three"),
        ("north east south", "north east  south"),
    ],
)
def test_the_order_of_coordinates(columns, order):
    sheet = LINE + filled("cell", columns, "1 2", content=" x") + "(next_to one two) (next_to two three)"
    assert draw(sheet).boards[0].splitlines()[-1].split() == order.split()


def test_names_without_an_order_are_coordinates_of_a_full_board_only():
    full = LINE + filled("holds", "red blue", "north south", content=" 5")
    assert draw(full).boards[0].splitlines()[-1].split() == ["red", "blue"]
    assert draw(LINE + "(init (holds red north 5)) (init (holds blue south 5))").boards == []


def test_terms_can_be_coordinates_of_a_full_board():
    facts = ("(init (at (row a) 1 x))", "(init (at (row a) 2 x))", "(init (at (row b) 1 x))", "(init (at (row b) 2 o))")
    assert draw(LINE + " ".join(facts)).boards[0].splitlines()[1:] == [
        "2 | x       o",
        "1 | x       x",
        "  +----------------",
        "    (row a) (row b)",
    ]


def test_a_chain_needs_one_row_of_all_names():
    facts = filled("cell", "one two three", "1 2", content=" x").replace("(init (cell one 1 x)) ", "")
    for pairs in ("(s one two)", "(s one two) (s two one)", "(s one two) (s one three)", "(s one two) (s three two)"):
        assert draw(LINE + facts + pairs).boards == []
    assert len(draw(LINE + facts + "(s three one) (s one two)").boards) == 1


def test_layers_are_beside_each_other_as_width_allows():
    sheet = LINE + "".join(filled(f"cell {layer}", "1 2 3", "1 2 3", content=" o") for layer in (1, 2))
    (wide,) = draw(sheet).boards
    assert wide.splitlines()[:2] == ["(cell 1 x y *)   (cell 2 x y *)", "3 | o o o        3 | o o o"]
    (narrow,) = draw(sheet, width=20).boards
    assert [line for line in narrow.splitlines() if "cell" in line] == ["(cell 1 x y *)", "(cell 2 x y *)"]


def test_two_layers_lie_as_their_coordinates_do():
    sheet = LINE + "".join(filled(f"cell {x} {y}", "1 2", "1 2", content=" o") for x in (1, 2) for y in (1, 2))
    titles = ["(cell 1 2 x y *)   (cell 2 2 x y *)", "(cell 1 1 x y *)   (cell 2 1 x y *)"]
    assert [line for line in draw(sheet).boards[0].splitlines() if "cell" in line] == titles
    titles = ["(cell 1 1 row column *)   (cell 1 2 row column *)", "(cell 2 1 row column *)   (cell 2 2 row column *)"]
    assert [line for line in draw(sheet, matrix=True).boards[0].splitlines() if "cell" in line] == titles


def test_a_third_coordinate_unlike_the_others_is_the_layer():
    sheet = LINE + "".join(filled("cell", "1 2 3", "1 2 3 4", content=f" {layer} o") for layer in (1, 2))
    assert "(cell x y 1 *)" in draw(sheet).boards[0]


def test_edges_and_bare_states_are_no_boards():
    assert draw(LINE + filled("line 1 1", "1 2", "1 2") + filled("line 2 2", "1 2", "1 2")).boards == []
    assert draw(LINE + "(init (on a))") == ([], ["(on a)"])
    assert draw("(role r) (init q) (init (p 10)) (init (p 9))") == ([], ["(p 9)", "(p 10)", "q"])


# ---- what lies there --------------------------------------------------------------------------------------------


def test_b_is_blank_where_it_lies_most_and_not_where_it_is_a_stone():
    most = LINE + filled("cell", "1 2", "1 2", content=" b").replace("1 1 b", "1 1 w")
    assert ". = b" in draw(most).boards[0]
    assert "1 | b ." in draw(LINE + "(init (cell 1 1 b)) (init (cell 1 2 w)) (init (cell 2 2 w))").boards[0]
    assert "1 | . ." in draw(LINE + filled("cell", "1 2", "1 2", content=" empty")).boards[0]


def test_short_forms():
    assert short_forms({"b", "bk", "wk"}) == {"b": "b", "bk": "bk", "wk": "wk"}
    assert short_forms({"black", "white", "b"}) == {"b": "b", "black": "bl", "white": "w"}
    assert short_forms({"blackKing", "blackKnight", "whitePawn"}) == {
        "blackKing": "bKi",
        "blackKnight": "bKn",
        "whitePawn": "wP",
    }
    assert short_forms({"piece1", "piece10", "mov_up"}) == {"piece1": "p1", "piece10": "p10", "mov_up": "mu"}
    assert short_forms({"unpromoted", "unpromotable"}) == {"unpromoted": "ue", "unpromotable": "ua"}


@settings(deadline=None, max_examples=200)
@given(st.sets(st.one_of(st.text("abBC1_-é", min_size=1, max_size=6), st.text(min_size=1, max_size=4)), max_size=12))
@example({"+++", "++", "ab", "abc", "abd", "a", "###", "..."})
def test_short_forms_tell_texts_apart(texts):
    forms = short_forms(texts)
    assert forms.keys() == texts
    assert len(set(forms.values())) == len(texts)
    assert all(len(form) <= max(len(text), LONGEST) for text, form in forms.items())
    assert all(form == text for text, form in forms.items() if len(text) <= LONGEST or form in texts | {MARK, POINT})


# ---- real sheets ------------------------------------------------------------------------------------------------

PICTURES = {
    "chess": """
        (cell x y *)
        8 | br bn bb bq bk bb bn br
        7 | bp bp bp bp bp bp bp bp
        6 | .  .  .  .  .  .  .  .
        5 | .  .  .  .  .  .  .  .
        4 | .  .  .  .  .  .  .  .
        3 | .  .  .  .  .  .  .  .
        2 | wp wp wp wp wp wp wp wp
        1 | wr wn wb wq wk wb wn wr
          +------------------------
            a  b  c  d  e  f  g  h
        . = b
    """,
    "reversi": """
        (cell x y *)
        8 | . . . . . . . .
        7 | . . . . . . . .
        6 | . . . . . . . .
        5 | . . . r b . . .
        4 | . . . b r . . .
        3 | . . . . . . . .
        2 | . . . . . . . .
        1 | . . . . . . . .
          +----------------
            1 2 3 4 5 6 7 8
        b = black, r = red
    """,
    "eightPuzzle": """
        (cell x y *)
        3 | 6 3 .
        2 | 7 4 1
        1 | 8 5 2
          +------
            1 2 3
        . = b
    """,
}
SIZES = {
    "ticTacToe": (3, 3),
    "connectFour": (8, 6),
    "checkers": (8, 8),
    "breakthrough": (8, 8),
    "hex": (9, 9),
    "amazons_8x8": (8, 8),
    "merrills": (3, 8),
    "sudoku": (9, 9),
    "speedChess": (8, 8),
    "knightsTour": (6, 5),
}


def states(shared, name):
    """The states of a recorded match."""
    with gzip.open(shared / "traces" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [step["state"] for step in json.loads(next(lines))["steps"]]


def public_boards(shared, name):
    played = states(shared, name)
    text = (shared / "games" / f"{name}.kif").read_text(encoding="utf-8")
    return Boards(parse(text), played[0], kinds=TEXT_KINDS), played


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(shared, name):
    boards, played = public_boards(shared, name)
    assert state_text(boards, played[0]).boards == [picture(PICTURES[name])]


@pytest.mark.parametrize("name", SIZES)
def test_sizes_stay_the_same_during_a_match(shared, name):
    boards, played = public_boards(shared, name)
    for state in (played[0], played[len(played) // 2], played[-1]):
        lines = state_text(boards, state).boards[0].splitlines()
        edge = next(number for number, line in enumerate(lines) if line.lstrip().startswith("+"))
        assert (len(lines[edge + 1].split()), edge - 1) == SIZES[name]


@pytest.mark.parametrize("part", range(4))
def test_every_fact_is_on_a_board_or_among_the_others(shared, part):
    for path in sorted((shared / "games").glob("*.kif"))[part::4]:
        boards, played = public_boards(shared, path.stem)
        for state in (played[0], played[-1]):
            drawing = state_text(boards, state)
            functions = {parse_term(fact).name for fact in set(state) - set(drawing.others)}
            assert set(drawing.others) <= set(state)
            titles = {board[1:].split()[0].rstrip(")").lower() for board in drawing.boards}
            assert functions <= titles, path.stem
