"""Breakthrough, position by position, with the naive evaluator, and its boards with the native engine."""

from __future__ import annotations

import pytest

import gamelore
from gamelore.analysis.perft import perft
from gamelore.analysis.symmetry import symmetries
from pictures import State, dropped, naive, play, random_states, winners


def position(picture: str, control: str) -> State:
    """A state from rows, the last one is y = 1."""
    text = {fact.replace(" W)", " white)").replace(" B)", " black)") for fact in dropped(picture, control)}
    return frozenset(text)


def moves(state: State) -> set[str]:
    (mover,) = (role for role in naive("breakthrough").roles if f"(control {role})" in state)
    return {move[6:-1] for move in naive("breakthrough").legal(state)[mover]}


def plain_moves(state: State) -> set[str]:
    """The moves by the words of the rules: `x y to_x to_y`."""
    cells = {}
    for fact in state:
        if fact.startswith("(cell"):
            _, x, y, content = fact.strip("()").split()
            cells[int(x), int(y)] = content
    mover, step = ("white", 1) if "(control white)" in state else ("black", -1)
    found = set()
    for (x, y), content in cells.items():
        for side in (-1, 0, 1):
            there = cells.get((x + side, y + step), mover)
            if content == mover and (there == "b" or (side and there != mover)):
                found.add(f"{x} {y} {x + side} {y + step}")
    return found


def test_the_start() -> None:
    assert naive("breakthrough").initial == position("BBBB .... .... .... WWWW", "white")
    assert len(moves(naive("breakthrough").initial)) == 10


def test_moves_against_the_words() -> None:
    for state in random_states("breakthrough", seed=8, matches=10):
        if not naive("breakthrough").terminal(state):
            assert moves(state) == plain_moves(state) != set()


def test_straight_ahead_captures_nothing() -> None:
    state = position("B... .... .B.B ..W. ....", "white")
    assert moves(state) == {"3 2 3 3", "3 2 2 3", "3 2 4 3"}
    assert moves(position("B... .... ..B. ..W. ....", "white")) == {"3 2 2 3", "3 2 4 3"}
    assert play("breakthrough", state, "(move 3 2 2 3)") == position("B... .... .W.B .... ....", "black")


def test_the_other_side_of_the_board_wins() -> None:
    assert winners("breakthrough", position("W..B .... .... .... ..W.", "black")) == {"white": 100, "black": 0}
    assert winners("breakthrough", position("...B .... .... .... W.B.", "white")) == {"white": 0, "black": 100}


def test_all_pawns_captured_wins() -> None:
    after = play("breakthrough", position(".... .... .B.. W... ....", "white"), "(move 1 2 2 3)")
    assert winners("breakthrough", after) == {"white": 100, "black": 0}


@pytest.mark.parametrize(
    ("options", "sequences"),
    [  # by a program written for this game alone
        ("width=8,height=8,rows=2", (1, 22, 484, 11132, 256036)),
        ("width=4,height=4,rows=2", (1, 6, 42, 334, 2216, 16118)),
        ("width=3,height=6", (1, 7, 49, 273, 1521, 9300)),
    ],
)
def test_boards(options: str, sequences: tuple[int, ...]) -> None:
    game = gamelore.load(f"breakthrough:{options}", engine="native")
    assert perft(game, len(sequences) - 1).sequences == sequences


def test_left_and_right_are_alike_and_nothing_else_is() -> None:
    for options in ("", "width=3", "rows=2,height=6"):
        assert symmetries(gamelore.load(f"breakthrough:{options}")).num == 2
