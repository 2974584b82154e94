from __future__ import annotations

import dataclasses

import pytest

from gamelore import GameloreError
from gamelore.play import matches
from gamelore.play.matches import play_matches, summarise


@pytest.mark.parametrize(
    ("name", "players"),
    [
        ("tictactoe", ["egreedy", "weak"]),
        ("othello4", ["random", "egreedy:filler=first"]),
        ("goofspiel", ["egreedy", "maxmax"]),
        ("pegsolitaire", ["avgmax:depth=1"]),
        ("tictactoe3p", ["random", "weak", "egreedy"]),
    ],
)
def test_records_replay(load, name: str, players: list[str]) -> None:
    game = load(name)
    records = play_matches(game, players, 6, seed=3)
    assert [record.key for record in records] == [(3, 0, "play", match) for match in range(6)]
    for record in records:
        assert record.players == tuple(players)
        assert record.replay(game).goals == record.goals


def test_a_match_is_the_same_however_many_are_played(load, monkeypatch) -> None:
    game, players = load("tictactoe"), ["egreedy", "random"]
    many = play_matches(game, players, 20, seed=1)
    assert play_matches(game, players, 5, seed=1) == many[:5]
    assert play_matches(game, players, 5, seed=2) != many[:5]
    monkeypatch.setattr(matches, "_SIDE_BY_SIDE", 3)
    monkeypatch.setattr(matches, "_TOO_MANY_ROWS", 10)
    told: list[int] = []
    assert play_matches(game, players, 20, seed=1, on_progress=told.append) == many
    assert told == [3, 6, 9, 12, 15, 18, 20]


def test_the_summary_by_hand(load) -> None:
    record = play_matches(load("tictactoe"), ["random", "egreedy"], 1)[0]
    goals = [(100, 0), (50, 50), (0, 100), (None, None)]
    records = [dataclasses.replace(record, goals=pair, end="terminal") for pair in goals[:3]]
    records.append(dataclasses.replace(record, goals=goals[3], end="cap"))
    summary = summarise(records)
    assert (summary.num_matches, summary.ends) == (4, {"cap": 1, "terminal": 3})
    assert summary.mean_plies == len(record.moves)
    first = summary.roles[0]
    assert (first.role, first.player, first.mean, first.missing) == ("xplayer", "random", 37.5, 1)
    # 100 50 0 0: standard deviation 47.87, divided by 2 times 3.182 of Student's t with 3 degrees of freedom
    assert first.low == pytest.approx(37.5 - 76.17, abs=0.02)
    assert first.high == pytest.approx(37.5 + 76.17, abs=0.02)


def test_one_match_has_no_interval_and_none_no_summary(load) -> None:
    summary = summarise(play_matches(load("tictactoe"), ["random", "random"], 1))
    assert (summary.roles[0].low, summary.roles[0].high) == (None, None)
    with pytest.raises(ValueError, match="expected at least one match"):
        summarise([])


def test_wrong_players_are_refused(load) -> None:
    with pytest.raises(GameloreError, match="did you mean random"):
        play_matches(load("tictactoe"), ["random", "randon"], 1)
    with pytest.raises(GameloreError, match="expected 2 players"):
        play_matches(load("tictactoe"), ["random"], 1)
