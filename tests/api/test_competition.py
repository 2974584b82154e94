"""`gamelore.tournament`."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import gamelore
from commands import run, run_json
from gamelore import ExperimentError, GameloreError, Position, Tournament
from gamelore.lab.results import store_path


def first(position: Position, role: str) -> str:
    return position.legal[role][0]


@pytest.fixture(scope="module")
def three() -> Tournament:
    return gamelore.tournament("tictactoe", ["egreedy", "random", first], matches=20, seed=4)


def test_every_pair_meets_in_both_orders(three: Tournament) -> None:
    assert len(three.match_ups) == 6
    assert {len(matches) for matches in three.match_ups.values()} == {20}
    assert three.counts.sum() == 2 * 6 * 20
    assert (three.counts == three.counts.transpose(1, 0, 2)[:, :, ::-1]).all()


def test_cross_table_and_ratings_agree_with_the_matches(three: Tournament) -> None:
    table = three.cross_table
    goals = three.match_ups["egreedy", "random"].goals[:, 0], three.match_ups["random", "egreedy"].goals[:, 1]
    assert table[0, 1] == pytest.approx(np.concatenate(goals).mean() / 100)
    assert np.isnan(np.diag(table)).all()
    assert next(iter(three.ratings)) == "egreedy"
    assert sum(rating.elo for rating in three.ratings.values()) == pytest.approx(0, abs=1e-6)
    assert three.advantages["xplayer"] > 0
    assert [row["player"] for row in three.rows] == list(three.ratings)


def test_matches_do_not_depend_on_the_other_players(three: Tournament) -> None:
    two = gamelore.tournament("tictactoe", ["egreedy", "random"], matches=5, seed=4)
    for seated, matches in two.match_ups.items():
        assert [match.moves for match in matches] == [match.moves for match in three.match_ups[seated][:5]]


def test_results_draw_and_save_themselves(three: Tournament, tmp_path: Path) -> None:
    assert repr(three).startswith("<Tournament of tictactoe, 120 matches: egreedy +")
    assert len(str(three).splitlines()) == 6
    assert "<svg" in three._repr_html_()
    three.save(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == three.rows


def test_a_folder_keeps_the_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    def tell(stage: str, done: int, total: int) -> None:
        told.append((done, total))

    before = gamelore.tournament("tictactoe", ["egreedy", "random"], matches=3, out=tmp_path, progress=tell)
    assert told[-1] == (6, 6)
    more = gamelore.tournament("tictactoe", ["egreedy", "random", "weak"], matches=4, out=tmp_path, progress=tell)
    assert told[-1] == (18, 18)
    for seated, matches in before.match_ups.items():
        assert [match.moves for match in matches] == [match.moves for match in more.match_ups[seated][:3]]
    told.clear()
    assert gamelore.tournament("tictactoe", ["egreedy", "random"], matches=4, out=tmp_path, progress=tell).rows
    assert told == []
    with pytest.raises(ExperimentError, match="results"):
        gamelore.tournament("connect3", ["egreedy", "random"], matches=4, out=tmp_path)


def test_a_folder_tells_players_with_the_same_name_apart(tmp_path: Path) -> None:
    gamelore.tournament("tictactoe", {"mine": "random", "egreedy": "egreedy"}, matches=2, out=tmp_path)
    with pytest.raises(ExperimentError, match="results"):
        gamelore.tournament("tictactoe", {"mine": "weak", "egreedy": "egreedy"}, matches=2, out=tmp_path)


@pytest.mark.parametrize("options", [{"prior": -1.0}, {"prior": float("nan")}, {"matches": 0}, {"max_plies": 0}])
def test_numbers_are_checked_before_the_first_match(options: dict[str, float]) -> None:
    with pytest.raises(GameloreError, match="expected"):
        gamelore.tournament("tictactoe", ["random", "egreedy"], **options)  # type: ignore[arg-type]


def test_an_interrupted_tournament_goes_on(tmp_path: Path) -> None:
    calls = 0

    def stops(position: Position, role: str) -> str:
        nonlocal calls
        calls += 1
        if calls == 60:
            raise KeyboardInterrupt
        return first(position, role)

    with pytest.raises(KeyboardInterrupt):
        gamelore.tournament("tictactoe", [stops, "random"], matches=25, out=tmp_path, progress=False)
    resumed = gamelore.tournament("tictactoe", [stops, "random"], matches=25, out=tmp_path, progress=False)
    whole = gamelore.tournament("tictactoe", {"stops": first, "random": "random"}, matches=25)
    assert resumed.rows == whole.rows


def test_processes_give_the_same_matches(tmp_path: Path) -> None:
    alone = gamelore.tournament("connect3", ["egreedy", "random"], matches=12, seed=1)
    shared = gamelore.tournament("connect3", ["egreedy", "random"], matches=12, seed=1, workers=2, progress=False)
    assert alone.rows == shared.rows


def test_processes_play_with_the_engine_of_the_game(tmp_path: Path) -> None:
    for engine in ("native", "reasoner"):
        game = gamelore.load("tictactoe", engine=engine)  # type: ignore[arg-type]
        gamelore.tournament(game, ["egreedy", "random"], matches=1, out=tmp_path / engine, progress=False)
        with closing(sqlite3.connect(store_path(tmp_path / engine))) as store:
            assert store.execute("SELECT DISTINCT engine FROM trial").fetchall() == [(engine,)]


def test_three_roles_sit_in_all_orders() -> None:
    played = gamelore.tournament("tictactoe3p", ["egreedy", "random", first], matches=2)
    assert len(played.match_ups) == 6
    assert {frozenset(seated) for seated in played.match_ups} == {frozenset({"egreedy", "random", "first"})}


@pytest.mark.parametrize(
    ("game", "players", "message"),
    [
        ("tictactoe", ["random"], "expected at least 2 players for a tournament of tictactoe, got 1"),
        ("tictactoe3p", ["random", "egreedy"], "expected at least 3 players"),
        ("pegsolitaire", ["random", "egreedy"], "got pegsolitaire, a puzzle"),
        ("tictactoe", ["random", "egredy"], "did you mean egreedy"),
        ("tictactoe", ["random", "random"], "expected players with different names"),
        ("tictactoe", "random", "expected a list of players, got 'random'"),
        ("tictactoe", ["random", "baseline"], "expected players that do not learn during a tournament, got baseline"),
    ],
)
def test_mistakes_are_told(game: str, players: list[str], message: str) -> None:
    with pytest.raises(GameloreError, match=message):
        gamelore.tournament(game, players, matches=1)


def test_the_command_prints_the_same_tournament(tmp_path: Path) -> None:
    arguments = ("tournament", "tictactoe", "egreedy", "random", "--matches", 6, "--seed", 3)
    expected = gamelore.tournament("tictactoe", ["egreedy", "random"], matches=6, seed=3)
    assert run(*arguments, "--out", tmp_path / "t").stdout == f"{expected}\n"
    report = run_json(*arguments)
    assert report["players"] == expected.rows
    assert report["roles"] == expected.advantages
    assert "did you mean egreedy" in run("tournament", "tictactoe", "egredy", "random", code=2).stderr
