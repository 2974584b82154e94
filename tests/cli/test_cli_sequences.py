"""The command line with sequences: they are learned, kept, shown, carried to other stores and played."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import run, run_json, wait_for_matches
from gamelore.cli.learn_commands import curriculum
from gamelore.errors import GameloreError
from gamelore.learning.sequences.seqlearner import Curriculum

SHORT = ("--learner", "sequences", "--against", "random,expert", "--matches", 12, "--tests", 20)


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No test looks into the user's own knowledge."""
    path = tmp_path / "knowledge.db"
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", str(path))
    return path


def learned(*options: object) -> Any:
    return run_json("learn", "losetictactoe", *SHORT, *options)


def test_what_learn_tells(store: Path) -> None:
    report = learned("--seed", 5)
    assert report["role"] == "all roles"
    assert report["opponent"] == "2 x 12 matches each of perfect with random, expert"
    assert (report["num_matches"], report["tournaments"], report["seed"]) == (48, 4, 5)
    assert 0 < report["with_context"] <= report["sequences"]
    assert [one["from"] for one in report["classes"]] == [0.9, 0.8, 0.7, 0.55, 0.0]
    assert sum(one["pairs"] for one in report["classes"]) == report["pairs"] > 0
    players = ["random", "seqplayer:version=1", "seqplayer:version=2"]
    assert [(test["player"], test["against"]) for test in report["tests"]] == [
        (player, other) for player in players for other in ("random", "perfect")
    ]
    for test in report["tests"]:
        low, high = test["interval"]
        assert test["matches"] == 20
        assert low <= test["reliability"] == 5.0 * (test["wins"] + test["draws"]) <= high
    assert learned("--seed", 5) == report  # nothing is learned twice
    text = run("learn", "losetictactoe", *SHORT, "--seed", 5).stdout
    assert f"learner 1: losetictactoe, {report['opponent']}; 48 matches with" in text
    assert "won or drawn %  95 % interval" in text


def test_the_options_of_sequences_are_in_the_settings() -> None:
    options = ("--length", 2, "--length", 3, "--weighting", "laplace", "--repeated", "origins", "--trees", "first")
    report = learned(*options, "--draws", "lose", "--locality", "moves", "--contexts", "each", "--symmetry", "none")
    assert report["settings"] == {
        "kind": "sequences",
        "lengths": [2, 3],
        "weighting": "laplace",
        "repeated": "origins",
        "contexts": "each",
        "trees": "first",
        "draws": "lose",
        "locality": "moves",
        "symmetry": "none",
        "symmetries": 1,
        "curriculum": {"expert": "perfect", "opponents": ["random", "expert"], "cycles": 2, "matches": 12},
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--role", "xplayer"),
            "--learner sequences, got --role; leave it out, because this learner learns for all roles",
        ),
        (("--opponent", "weak"), "got --opponent; name the players that it watches with --expert and --against"),
        (("--alpha", 0.2), "got --alpha; leave it out, or choose another --learner"),
        (("--source", "tictactoe"), "got --source; leave it out"),
        (("--weighting", "none"), "expected the setting weighting to be agreement, laplace"),
        (("--expert", "perfct"), "got 'perfct'; did you mean perfect"),
        (("--against", "random,uct:simulation=5"), "did you mean simulations"),
    ],
)
def test_mistakes_are_told(options: tuple[object, ...], message: str, store: Path) -> None:
    assert message in run("learn", "losetictactoe", "--learner", "sequences", *options, code=2).stderr
    assert not store.exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--heuristic", "maxmax"), ("--source-role", "red"), ("--source-opponent", "weak"), ("--combine", "mean")],
)
def test_other_learners_of_values_have_no_such_options(option: str, value: str) -> None:
    message = run("learn", "losetictactoe", option, value, code=2).stderr
    assert f"expected only options for --learner baseline, got {option}; leave it out, or choose another" in message


@pytest.mark.parametrize("option", ["--length", "--cycles", "--tests"])
def test_other_learners_have_no_sequences(option: str) -> None:
    message = run("learn", "losetictactoe", option, 3, code=2).stderr
    assert f"expected only options for --learner baseline, got {option}; leave it out, or choose another" in message


def test_who_is_watched() -> None:
    assert curriculum("perfect", None, 2, 20) == Curriculum()
    assert curriculum("uct:simulations=9", None, 1, 3).opponents == ("random", "uct:simulations=9")
    assert curriculum("random", None, 1, 3).opponents == ("random",)
    mixed = ["random,uct:simulations=9,leaves=4,egreedy", "weak:filler=first, epsilon=0.1 , random"]
    assert curriculum("perfect", mixed, 1, 3).opponents == (
        "random",
        "uct:simulations=9,leaves=4",
        "egreedy",
        "weak:filler=first, epsilon=0.1",
        "random",
    )
    with pytest.raises(GameloreError, match="expected a player"):
        curriculum("nobody", None, 1, 3)


def test_a_game_without_a_solution_needs_another_expert(store: Path) -> None:
    message = run("learn", "goofspiel", "--learner", "sequences", code=1).stderr
    assert "perfect cannot play goofspiel: expected only one role at a time to have a choice" in message
    assert "choose other players, for example --expert uct:simulations=200" in message
    assert not store.exists()
    options = ("--expert", "uct:simulations=20", "--matches", 4, "--cycles", 1, "--tests", 2)
    report = run_json("learn", "goofspiel", "--learner", "sequences", *options)
    assert report["opponent"] == "1 x 4 matches each of uct:simulations=20 with random, uct:simulations=20"
    assert {test["against"] for test in report["tests"]} == {"random", "uct:simulations=20"}


def test_who_learned_nothing_to_trust_is_told() -> None:
    options = ("--expert", "random", "--matches", 2, "--cycles", 1, "--tests", 0)
    message = run("learn", "tictactoe", "--learner", "sequences", *options).stderr
    assert "no pair has a weight of at least 0.55, so seqplayer plays at random" in message
    message = run("learn", "tictactoe", "--learner", "sequences", *options, "--length", 20).stderr
    assert (
        "no sequence was found: the matches were shorter than a sequence (--length), or no role won or drew" in message
    )


def test_what_is_learned_is_listed_and_shown(tmp_path: Path) -> None:
    learned("--tests", 0)
    run("learn", "losetictactoe", "--matches", 20)
    listed = run("knowledge", "list").stdout
    assert "all roles  2 x 12 matches each of perfect with random, expert" in listed
    assert [row["number"] for row in run_json("knowledge", "list", "--role", "oplayer")] == [1]
    assert [row["number"] for row in run_json("knowledge", "list", "--opponent", "egreedy")] == [2]
    shown = run_json("knowledge", "show", "--top", 3)
    assert len(shown["pairs"]) == 3
    assert {row["learner"] for row in shown["features"]} == {2}
    weights = [pair["weight"] for pair in shown["pairs"]]
    assert weights == sorted(weights, reverse=True)
    best = shown["pairs"][0]
    assert best["learner"] == 1
    assert best["agreements"] <= best["comments"]
    assert all(role in ("xplayer", "oplayer") for branch in best["branches"] for role, _ in branch["moves"])
    text = run("knowledge", "show", "--top", 3).stdout
    assert "losetictactoe, xplayer: " in text
    assert "losetictactoe: the best 3 of " in text
    assert f"(1) {best['branches'][0]['kind']}, weight {best['weight']:.2f}" in text
    assert all(move in text for branch in best["branches"] for _, move in branch["moves"])
    assert "# = anything" in text


def test_pairs_are_chosen_by_role_and_weight_and_drawn(tmp_path: Path) -> None:
    learned("--tests", 0)
    every = run_json("knowledge", "show", 1, "--top", 1000)["pairs"]
    mine = run_json("knowledge", "show", 1, "--top", 1000, "--role", "oplayer", "--min-weight", 0.2)["pairs"]
    assert mine == [pair for pair in every if pair["role"] == "oplayer" and pair["weight"] >= 0.2]
    assert 0 < len(mine) < len(every)
    message = run("knowledge", "show", 1, "--role", "white", code=1).stderr
    assert "got none; `gamelore knowledge list` shows the learners" in message
    run("knowledge", "show", 1, "--top", 2, "--draw", tmp_path / "pairs.png")
    assert (tmp_path / "pairs.png").stat().st_size > 10_000


def test_features_and_pairs_are_drawn_apart(tmp_path: Path) -> None:
    learned("--tests", 0)
    run("learn", "losetictactoe", "--matches", 20)
    run("knowledge", "show", "--top", 1, "--draw", tmp_path / "all.svg")
    assert {path.name for path in tmp_path.glob("*.svg")} == {"all-features.svg", "all-pairs.svg"}


def test_sequences_are_carried_and_played(tmp_path: Path, store: Path) -> None:
    learned("--tests", 0)
    run("knowledge", "export", tmp_path / "all.json")
    other = tmp_path / "other.db"
    assert run_json("knowledge", "import", tmp_path / "all.json", "--knowledge", other)["learners"] == 1
    here = run_json("knowledge", "show")["pairs"]
    assert run_json("knowledge", "show", "--knowledge", other)["pairs"] == here
    players = ("seqplayer", f"seqplayer:knowledge={other},learner=1,version=1")
    summary = run_json("play", "losetictactoe", *players, "--matches", 20)
    assert summary["ends"] == {"terminal": 20}
    assert "seqplayer" in run("players").stdout
    assert "got none; learn sequences first" in run("play", "tictactoe", "seqplayer", "random", code=1).stderr
    assert "did you mean version" in run("play", "losetictactoe", "seqplayer:verion=1", "random", code=2).stderr
    options = "seqplayer:enforce=solos"
    assert (
        "expected the setting enforce to be all, duets or none"
        in run("play", "losetictactoe", options, "random", code=2).stderr
    )
    message = run("play", "connect3", "seqplayer:learner=1", "random", code=1).stderr
    assert "learner 1 (losetictactoe): expected a role of connect3 (red, yellow), got" in message


def test_an_interrupt_keeps_every_finished_tournament(store: Path) -> None:
    code = "from gamelore.cli import main; main()"
    options = ["--learner", "sequences", "--matches", "40", "--cycles", "100000"]
    command = [sys.executable, "-c", code, "learn", "losetictactoe", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_matches(store, 80)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip() == (
        "interrupted; every finished tournament is in the knowledge store; run the same command again to continue"
    )
    (kept,) = run_json("knowledge", "list")
    assert kept["num_matches"] >= 80
    assert kept["num_matches"] % 40 == 0
    assert run_json("knowledge", "show", 1)["pairs"]
