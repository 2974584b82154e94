"""Features as trees: read from their texts, drawn in a terminal and in a picture."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from figure2 import TWELVE
from gamelore.errors import GameloreError
from gamelore.lab.feature_trees import (
    COLOURS,
    LEARNER,
    OPPONENT,
    DrawnFeature,
    Node,
    draw_features,
    feature_sheet,
    feature_svg,
    feature_text,
    feature_tree,
    feature_words,
    features_figure,
    labels,
)


def test_levels_alternate_between_opponent_and_learner() -> None:
    tree = feature_tree("L,{n,W}")
    open_, won = Node(OPPONENT), Node("W")
    assert tree == Node(OPPONENT, (Node("L"), Node(LEARNER, (open_, won))))
    assert (tree.num_leaves, tree.height) == (3, 3)
    assert feature_tree("n,0") == feature_tree("L,n") == Node(OPPONENT, (Node(LEARNER), Node("L")))
    assert feature_tree("{0,n},30").children == (Node("30"), Node(LEARNER, (open_, Node("0"))))


@pytest.mark.parametrize("text", ["L,{n", "L}", "{L,{W}", "L,{n}}"])
def test_braces_that_do_not_match_are_told(text: str) -> None:
    with pytest.raises(GameloreError, match=r"expected a feature such as .* its braces do not match"):
        feature_tree(text)


@pytest.mark.parametrize(
    ("text", "drawing"),
    [
        ("L", ["■", "│", "○"]),
        ("{D}", ["■", "│", "●", "│", "⊠"]),
        ("L,{n,W}", [" ■", "┌┴─┐", "○  ●", "  ┌┴┐", "  ■ □"]),
        ("L,{n},{n,W}", ["  ■", "┌─┼──┐", "○ ●  ●", "  │ ┌┴┐", "  ■ ■ □"]),
        ("100,{10,75}", ["   ■", " ┌─┴─┐", "100  ●", "    ┌┴─┐", "    10 75"]),
    ],
)
def test_a_tree_in_a_terminal(text: str, drawing: list[str]) -> None:
    assert feature_text(text).splitlines() == drawing


def test_a_tree_of_any_depth_in_a_terminal() -> None:
    lines = feature_text("L,{{n,25},{75}}").splitlines()
    assert [line.strip() for line in lines[::2]] == ["■", "0    ●", "■   ■", "● 25 75"]


def test_a_sheet_keeps_to_its_width_and_shows_every_value() -> None:
    features = [
        DrawnFeature(label, text, {"egreedy": 43.75, "weak": 50}) for label, text in zip(labels(), TWELVE, strict=False)
    ]
    sheet = feature_sheet(features, width=60)
    assert max(map(len, sheet.splitlines())) <= 60
    assert [sheet.count(f"({feature.label}) {feature.text}") for feature in features] == [1] * 12
    assert (sheet.count("egreedy  43.75"), sheet.count("weak     50.00")) == (12, 12)
    assert feature_sheet([]) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{n,W}", "after every reply of the opponent, red can play on or win at once"),
        (
            "L,{n,W}",
            "after some replies of the opponent, red loses at once; after others, red can play on or win at once",
        ),
        (
            "n,D,{L}",
            "after some replies of the opponent, the match goes on; after others, the match ends in a draw at once; "
            "after others, red can only lose at once",
        ),
        (
            "0,{n,30}",
            "after some replies of the opponent, red loses at once; after others, red can play on or end the match "
            "with 30 points",
        ),
        ("W", "after every reply of the opponent, red wins at once"),
    ],
)
def test_a_feature_in_words(text: str, words: str) -> None:
    assert feature_words(text, "red") == words


def test_a_small_picture_of_a_feature_has_its_nodes_and_a_legend() -> None:
    picture = feature_svg("L,{n,W},{D}")
    names = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture).iter()]
    assert names.count("line") == 6
    assert names.count("circle") == 3 + 2  # two of the learner and a loss, and their kinds in the legend
    assert names.count("rect") == 4 + 3  # two of the opponent, a win and a draw
    assert names.count("text") == 5
    assert ">30<" in feature_svg("0,{n,30}")


def test_labels_go_on_after_z() -> None:
    assert list(islice(labels(), 29))[24:] == ["y", "z", "aa", "ab", "ac"]


def nodes(figure: Figure) -> Counter[tuple[str, str]]:
    """(shape, colour) of all nodes of a picture."""
    (axes,) = figure.axes
    shapes: Counter[tuple[str, str]] = Counter()
    for patch in axes.patches:
        assert isinstance(patch, Circle | Rectangle)
        shapes[type(patch).__name__.lower(), to_hex(patch.get_facecolor())] += 1
    return shapes


def test_a_picture_has_the_nodes_of_its_trees_and_a_legend() -> None:
    figure = features_figure([DrawnFeature("a", "L,{D},{n,W}", {"weak": 58.42})], title="tictactoe")
    assert nodes(figure) == {
        ("rectangle", COLOURS[OPPONENT]): 1 + 1 + 1,  # the last of each is the legend's
        ("circle", COLOURS[LEARNER]): 2 + 1,
        ("circle", "#ffffff"): 1 + 1,  # loss
        ("rectangle", "#ffffff"): 1 + 1 + 2,  # draw, win
    }
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts >= {"tictactoe", "weak", "58.42", "loss", "draw", "win"}


def test_other_outcomes_are_numbers_in_boxes() -> None:
    figure = features_figure([DrawnFeature("a", "10,{n,75}")])
    assert {"10", "75"} <= {text.get_text() for text in figure.axes[0].texts}


def test_everything_lies_inside_the_picture() -> None:
    wide = ",".join(f"{{L,D,W,{value}}}" for value in range(12))
    long = {"egreedy:filler=random,epsilon=0.01": 50.0, "an opponent with an even longer name, and a comma": 100.0}
    figure = features_figure([DrawnFeature("a", wide), *(DrawnFeature("b", text, long) for text in TWELVE)])
    width, height = figure.get_size_inches()
    (axes,) = figure.axes
    boxes = [patch.get_window_extent() for patch in axes.patches]
    renderer_boxes = [text.get_window_extent() for text in axes.texts]
    for box in (*boxes, *renderer_boxes):
        assert 0 <= box.x0 <= box.x1 <= width * figure.dpi
        assert 0 <= box.y0 <= box.y1 <= height * figure.dpi


def test_a_png_and_an_svg_are_written_and_are_the_same_each_time(tmp_path: Path) -> None:
    features = [DrawnFeature(label, text) for label, text in zip(labels(), TWELVE, strict=False)]
    files = draw_features(features, tmp_path / "new" / "features")
    assert [file.name for file in files] == ["features.png", "features.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files[1].read_bytes()
    assert draw_features(features, tmp_path / "again.svg") == [tmp_path / "again.svg"]
    assert files[1].read_bytes() == (tmp_path / "again.svg").read_bytes()
