"""Weights of facts, drawn: a board for each piece, colours by size and sign, and a list of the rest."""

import re
from xml.etree import ElementTree

import pytest

from gamelore import load
from gamelore.drawing.board import Boards
from gamelore.drawing.weights import BAD, GOOD, weights_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(name: str, weights: dict[str, dict[str, float]]) -> ElementTree.Element:
    return ElementTree.fromstring(weights_svg(Boards.of(load(name)), weights))


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def colours(picture: ElementTree.Element) -> list[str]:
    return [str(element.get("fill")) for element in picture.iter(f"{SVG}rect")]


def test_a_board_for_each_role_and_piece() -> None:
    picture = drawn(
        "tictactoe",
        {
            "xplayer": {"(cell 2 2 x)": 12.0, "(cell 1 1 x)": -3.0, "(cell 2 2 o)": -6.0, "(control oplayer)": 4.0},
            "oplayer": {"(cell 2 2 o)": 12.4},
        },
    )
    told = texts(picture)
    assert [text for text in told if text.startswith("after")] == ["after a move of xplayer", "after a move of oplayer"]
    assert len(colours(picture)) == 3 * 9, "x and o for the first role, o for the second"
    assert {"+12", "-3", "-6", "(control oplayer) +4"} <= set(told)


def test_colours_say_how_good_a_fact_is() -> None:
    """The largest weight has the strongest colour, half of it is halfway to white, and 0 is white."""
    picture = drawn("tictactoe", {"xplayer": {"(cell 1 1 x)": -10.0, "(cell 2 2 x)": 5.0, "(cell 3 3 x)": 0.0}})
    halfway = "#{:02x}{:02x}{:02x}".format(*(round(255 - (255 - part) / 2) for part in GOOD))
    strongest = "#{:02x}{:02x}{:02x}".format(*BAD)
    assert sorted(set(colours(picture))) == sorted({strongest, halfway, "#ffffff"})
    assert colours(picture).count("#ffffff") == 7


@pytest.mark.parametrize("name", ["fivemensmorris", "goofspiel", "connectfour"])
def test_any_game_gives_a_whole_picture(name: str) -> None:
    game = load(name)
    assert game.circuit is not None
    facts = list(game.fact_texts)
    picture = drawn(name, {role: dict.fromkeys(facts, 2.0) for role in game.roles})
    wide, high = float(picture.get("width", 0)), float(picture.get("height", 0))
    for element in picture.iter(f"{SVG}rect"):
        assert 0 <= float(element.get("x", -1)) <= wide
        assert 0 <= float(element.get("y", -1)) <= high


def test_without_weights_there_is_an_empty_picture() -> None:
    assert re.match(r"<svg ", weights_svg(Boards.of(load("tictactoe")), {"xplayer": {}}))
