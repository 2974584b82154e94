from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gamelore import GameloreError, load
from gamelore.catalogue import PLAYERS, PlayerKind, play_matches, player, register
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.lookahead import Lookahead


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("egreedy", OpponentSettings("egreedy", "random", 0.01, 0)),
        ("random", OpponentSettings("random")),
        ("weak:filler=first,epsilon=0.05", OpponentSettings("weak", "first", 0.05)),
        (" egreedy : filler = hashed , hash_key = 7", OpponentSettings("egreedy", "hashed", 0.01, 7)),
    ],
)
def test_opponents_by_name(spec: str, settings: OpponentSettings) -> None:
    found = player(spec)
    assert isinstance(found, Opponent)
    assert found.settings == (settings,)


def test_lookahead_players_by_name() -> None:
    found = player("avgmax:depth=3,default=25")
    assert isinstance(found, Lookahead)
    assert (found.heuristic, found.depth, found.default) == ("avgmax", 3, 25.0)
    assert isinstance(player("minimax"), Lookahead)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("egredy", "got 'egredy'; did you mean egreedy"),
        ("zzz", "got 'zzz'; choose one of these"),
        ("egreedy:fill=first", "got 'fill'; did you mean filler"),
        ("minimax:epsilon=1", "expected an option of minimax (depth, default), got 'epsilon'"),
        ("random:epsilon=1", "expected an option of random (there is none), got 'epsilon'"),
        ("minimax:depth=two", "expected a number for depth, got 'two'"),
        ("egreedy:first", "expected option=value, got 'first'"),
        ("egreedy:filler=last", "expected the setting filler to be random, first or hashed, got 'last'"),
        ("minimax:depth=0", "expected a depth of at least 1, got 0"),
    ],
)
def test_what_is_wrong_is_named(spec: str, message: str) -> None:
    with pytest.raises(GameloreError) as caught:
        player(spec)
    assert message in str(caught.value)


def test_names_are_registered_once() -> None:
    with pytest.raises(GameloreError, match="'random', which is already used"):
        register("random", PlayerKind("again", {}, Opponent))
    assert all(entry.about for entry in PLAYERS.values())


def test_given_values_are_for_options_that_the_spec_leaves_open() -> None:
    found = player("minimax:depth=3", depth=5, default=25.0, seed=7, knowledge="k.db")
    assert isinstance(found, Lookahead)
    assert (found.depth, found.default) == (3, 25.0)
    plain = player("minimax", depth=None)
    assert isinstance(plain, Lookahead)
    assert plain.depth == 2
    with pytest.raises(GameloreError, match="expected a depth of at least 1, got 0"):
        player("minimax", depth=0)


OWN = '''
"""A player of one's own."""

from __future__ import annotations

import numpy as np

import beside_own_player
from gamelore.players.player import Player

started = beside_own_player.started + 1


class Last(Player):
    """Always the last move."""

    def choose(self, turn):
        return turn.graph.num_moves[turn.rows, turn.role] - 1


class Careful(Last):
    def __init__(self, depth: int, hope: float | None = None, name="nobody", *, brave: bool = False, seed=3) -> None:
        self.told = depth, hope, name, brave, seed


class Loose(Last):
    def __init__(self, what: NotDefinedAnywhere = 1, **others) -> None:
        self.told = what, others


class Choosing:
    def choose(self, turn):
        return None


number = 7
'''


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "beside_own_player.py").write_text("started = 1\n")
    path = folder / "own.py"
    path.write_text(OWN)
    before = list(sys.path), set(sys.modules)
    yield path
    sys.path[:] = before[0]
    for name in set(sys.modules) - before[1]:
        del sys.modules[name]


def test_a_player_of_ones_own_plays(own: Path) -> None:
    assert type(player(f"{own}:Last")).__name__ == "Last"
    (record,) = play_matches(load("tictactoe"), [f"{own}:Last", f"{own}:Last"], 1)
    assert record.moves[0] == ("(mark 3 3)", "noop")


def told(spec: str, **given: object) -> object:
    return player(spec, **given).told  # type: ignore[attr-defined]


def test_its_parameters_are_its_options(own: Path) -> None:
    assert told(f"{own}:Careful:depth=2") == (2, None, "nobody", False, 3)
    assert told(f"{own} : Careful : depth=2, hope=0.5, name=me, brave=yes, seed=9") == (2, 0.5, "me", True, 9)
    assert told(f"{own}:Careful:seed=1", depth=4, seed=2, name=None, quota=5) == (4, None, "nobody", False, 1)
    assert told(f"{own}:Careful:depth=2,name=other.py:Player") == (2, None, "other.py:Player", False, 3)
    assert told(f"{own}:Loose:what=2", others=1) == (2, {})


def test_a_file_is_run_once_for_each_of_its_states(own: Path) -> None:
    assert type(player(f"{own}:Last")) is type(player(f"{own}:Last"))
    first = player(f"{own}:Last")
    own.write_text(OWN.replace("- 1", "* 0"))
    os.utime(own, ns=(1, 1))
    assert type(player(f"{own}:Last")) is not type(first)


@pytest.mark.parametrize(
    ("behind", "message"),
    [
        (
            "Lost",
            "expected the class of a player with the name Lost in PATH, got no such name; derive the class from "
            "gamelore.Player or gamelore.PositionPlayer",
        ),
        ("number", "expected the class of a player with the name number in PATH, got 7; derive"),
        ("Choosing", "expected the class of a player with the name Choosing in PATH, got <class"),
        (
            "Player",
            "expected the class of a player with the name Player in PATH, got <class 'gamelore.players.player.Player'>",
        ),
        ("Careful", "expected a player from 'PATH:Careful', got: Careful.__init__() missing 1 required"),
        (
            "Careful:deep=2",
            "expected an option of Careful (depth, hope, name, brave, seed), got 'deep'; did you mean depth",
        ),
        ("Careful:depth=x", "expected a number for depth, got 'x'"),
        ("Careful:depth=1,brave=1", "expected yes or no, got '1'"),
    ],
)
def test_what_is_wrong_with_a_player_of_ones_own_is_named(own: Path, behind: str, message: str) -> None:
    with pytest.raises(GameloreError) as caught:
        player(f"{own}:{behind}")
    assert message.replace("PATH", str(own)) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [(None, "FileNotFoundError"), ("class Last(:", "SyntaxError"), ("1 / 0", "ZeroDivisionError: division by zero")],
)
def test_a_file_that_cannot_be_imported_is_told(own: Path, text: str | None, found: str) -> None:
    own.unlink()
    if text is not None:
        own.write_text(text)
    with pytest.raises(
        GameloreError, match=f"expected a Python file that can be imported, got {found}.* correct the file"
    ):
        player(f"{own}:Last")
