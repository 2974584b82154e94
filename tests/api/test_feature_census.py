"""`gamelore.features`."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gamelore
from gamelore import Features, GameloreError


@pytest.fixture(scope="module")
def tictactoe() -> Features:
    return gamelore.features("tictactoe")


def test_the_features_of_both_roles(tictactoe: Features) -> None:
    """Those of xplayer are the 12 of Figure 2 of Banerjee & Stone 2007 (`tests/figure2.py`)."""
    assert len(tictactoe["xplayer"].features) == 12
    assert repr(tictactoe) == "<Features of tictactoe: xplayer 12, oplayer 10>"
    assert all(census.complete for census in tictactoe.values())


def test_rows_are_features_with_counts(tictactoe: Features, tmp_path: Path) -> None:
    rows = tictactoe.rows
    assert len(rows) == 22
    assert rows[0].keys() == {"role", "feature", "afterstates"}
    tictactoe.save(tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    tictactoe.save(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        assert [row["feature"] for row in csv.DictReader(file)] == [row["feature"] for row in rows]
    with pytest.raises(GameloreError, match=r"expected a file that ends in .csv or .json, got .*rows.xls"):
        tictactoe.save(tmp_path / "rows.xls")


def test_features_draw_themselves(tictactoe: Features) -> None:
    assert "tictactoe, oplayer: 10 features in all reachable positions" in str(tictactoe)
    assert tictactoe.plot("oplayer").get_size_inches()[0] > 1
    pictures = tictactoe._repr_html_().split("<?xml")[1:]
    assert len(pictures) == 2
    for picture in pictures:
        ElementTree.fromstring("<?xml" + picture.split("</svg>")[0] + "</svg>")


def test_some_roles_of_a_larger_game() -> None:
    sampled = gamelore.features("connectfour", "red", limit=100, matches=5, seed=1)
    assert list(sampled) == ["red"]
    assert not sampled["red"].complete
    assert sampled["red"].method == "the positions of 5 random matches"
    assert pickle.loads(pickle.dumps(sampled)).rows == sampled.rows
    with pytest.raises(GameloreError, match="expected a role of connectfour"):
        gamelore.features("connectfour", "blue")
