from __future__ import annotations

import pytest

from gamelore import GameloreError
from gamelore.play.player import Opponent, OpponentSettings
from gamelore.play.roster import ROSTER, Entry, enlist, player
from gamelore.play.search import Lookahead


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
        ("minimax:epsilon=1", "expected option of minimax: depth, default; got 'epsilon'"),
        ("random:epsilon=1", "expected option of random: none; got 'epsilon'"),
        ("minimax:depth=two", "expected a number for depth, got 'two'"),
        ("egreedy:first", "expected option=value, got 'first'"),
        ("egreedy:filler=last", "expected filler random | first | hashed, got 'last'"),
        ("minimax:depth=0", "expected a depth of at least 1, got 0"),
    ],
)
def test_what_is_wrong_is_named(spec: str, message: str) -> None:
    with pytest.raises(GameloreError) as caught:
        player(spec)
    assert message in str(caught.value)


def test_names_are_enlisted_once() -> None:
    with pytest.raises(GameloreError, match="'random', which is taken"):
        enlist("random", Entry("again", {}, Opponent))
    assert all(entry.about for entry in ROSTER.values())
