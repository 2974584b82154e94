"""gamelore play with players who learn: one match after the other, and one learner with `gamelore learn` and `host`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import run, run_json
from gamelore import games
from gamelore.learn.knowledge import Knowledge
from gamelore.learn.players import player
from gamelore.play.graph import Graph
from gamelore.play.lockstep import STAGE, run_lockstep
from gamelore.play.match import match_records
from gamelore.play.player import Finished
from gamelore.play.streams import stream


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own."""
    path = tmp_path / "knowledge.db"
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", str(path))
    return path


def known(path: Path) -> list[tuple[str, str, str, int, int]]:
    with Knowledge(path, create=False) as knowledge:
        return [
            (one.role, one.settings["kind"], one.opponent, one.seed, one.num_matches) for one in knowledge.learners()
        ]


def test_a_learner_learns_from_match_to_match(tmp_path: Path, store: Path) -> None:
    file = tmp_path / "records.jsonl"
    run("play", "tictactoe", "baseline", "egreedy", "--matches", 12, "--seed", 3, "--records", file)
    played = [json.loads(line)["moves"] for line in file.read_text().splitlines()]
    learner = player("baseline", knowledge=str(tmp_path / "other.db"), seed=3, opponent="egreedy")
    ended: list[Finished] = []
    for match in range(12):
        run_lockstep(
            Graph(games.load("tictactoe")),
            [learner, player("egreedy")],
            [stream(3, 0, STAGE)],
            1,
            first_match=match,
            on_end=ended.append,
        )
    assert played == [[list(moves) for moves in match_records(one, ["", ""], [()])[0].moves] for one in ended]


def test_it_is_the_learner_of_learn_and_of_host(store: Path) -> None:
    run("play", "tictactoe", "baseline", "egreedy", "--matches", 4, "--seed", 3)
    run("learn", "tictactoe", "--learner", "baseline", "--matches", 10, "--seed", 3)
    options = ("--player", "xplayer=baseline", "--player", "oplayer=egreedy")
    run("host", "tictactoe", *options, "--matches", 5, "--seed", 3)
    told = run_json("play", "tictactoe", "baseline", "egreedy", "--matches", 2, "--seed", 3)
    assert (told["matches"], told["players"][0]["player"]) == (2, "baseline")
    assert known(store) == [("xplayer", "baseline", "egreedy:filler=random,epsilon=0.01", 3, 17)]


def test_two_learners_in_one_store(store: Path) -> None:
    shown = run("play", "tictactoe", "baseline", "lookahead:seed=9", "--matches", 5)
    assert "5 matches (5 terminal)" in shown.stdout
    assert known(store) == [
        ("xplayer", "baseline", "lookahead:seed=9", 0, 5),
        ("oplayer", "lookahead", "baseline", 9, 5),
    ]


def test_a_learner_against_a_human(store: Path) -> None:
    run("play", "tictactoe", "human", "baseline", input="1\n2\n3\n4\n5\n6\n7\n8\n9\n" * 3)
    assert known(store) == [("oplayer", "baseline", "human", 0, 1)]


def test_goals_that_the_rules_do_not_give_are_told(tmp_path: Path) -> None:
    rules = tmp_path / "stuck.kif"
    rules.write_text(
        "(role r) (init (at 0)) (<= (legal r go) (true (at 0))) (<= (next (at 1)) (does r go)) (goal r 50)"
        " (<= terminal (true (at 2)))"
    )
    assert "none: 3" in run("play", rules, "random", "--matches", 3).stdout
    assert "none: 3" in run("host", rules, "--player", "r=random", "--matches", 3).stdout
