"""The command line: help, exit codes, names put right, JSON, and what each command does with the library."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from commands import wait_for_matches
from gamelore import GameloreError
from gamelore.cli import app
from gamelore.gdl.limits import GIB, Limits
from gamelore.lab import feature_trees
from gamelore.lab.report import ReportPaths
from gamelore.lab.studies import transfer_study
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.players.uct import SearchSettings
from learning.small_stores import SETTINGS, Rules, fill, learner
from privileges import without_override

ROOT: Any = typer.main.get_command(app)  # of click's classes, which typer brings along under various names


def leaves(command: Any = ROOT, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, child in command.commands.items():
        if hasattr(child, "commands"):
            yield from leaves(child, *path, name)
        else:
            yield (*path, name), child


COMMANDS = dict(leaves())
FORMAT3 = Path(__file__).parents[1] / "learning" / "stores" / "format3.db"


def run(*arguments: object, code: int = 0) -> str:
    """Standard output of a command that leaves with this exit code (standard error instead where it is not 0)."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result.stdout if code == 0 else result.stderr


def run_json(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*(str(argument) for argument in arguments), "--json"])
    assert result.exit_code == code, (result.stdout, result.stderr)
    return json.loads(result.stdout)


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No test looks into the user's own knowledge."""
    path = tmp_path / "knowledge.db"
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", str(path))
    return path


def test_all_commands_are_there() -> None:
    assert {" ".join(path) for path in COMMANDS} == {
        "games",
        "check",
        "fmt",
        "show",
        "think",
        "perft",
        "symmetries",
        "bench",
        "solve",
        "play",
        "study",
        "players",
        "tournament",
        "report",
        "replay",
        "recognise",
        "serve",
        "host",
        "duel",
        "learn",
        "features",
        "knowledge list",
        "knowledge show",
        "knowledge export",
        "knowledge import",
        "knowledge check",
        "knowledge delete",
        "lessons list",
        "lessons show",
        "lessons ledger",
        "lessons export",
        "lessons import",
        "lessons delete",
        "transfer",
        "reproduce",
        "demo",
        "matches",
        "web",
    }


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_examples_and_json(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    text = run(*path, "--help")
    assert "Examples:" in text
    assert "--json" in text
    assert all(parameter.help for parameter in command.params)
    with_chance = {"check", "show", "bench", "play", "serve", "host", "learn", "features", "transfer", "reproduce"}
    with_chance |= {"demo", "duel", "think", "tournament", "report", "study"}
    assert ("--seed" in text) == (path[0] in with_chance)


def examples() -> Iterator[tuple[tuple[str, ...], str]]:
    for path, command in COMMANDS.items():
        for line in command.help.splitlines():
            if line.startswith("  $ "):
                yield path, line.removeprefix("  $ ")


@pytest.mark.parametrize(("path", "example"), list(examples()))
def test_every_example_is_a_command_that_can_be_given(path: tuple[str, ...], example: str) -> None:
    words = shlex.split(example)
    assert words[: len(path) + 1] == ["gamelore", *path]
    context = COMMANDS[path].make_context(path[-1], words[len(path) + 1 :])
    assert context.params


def test_version_and_bare_call() -> None:
    assert run("--version").startswith("gamelore 0.")
    assert "Usage: gamelore" in CliRunner().invoke(app, []).output


def test_a_wrong_name_gets_the_nearest_right_ones(store: Path) -> None:
    assert "Did you mean 'play', 'replay'?" in run("plya", code=2)
    assert "did you mean tictactoe" in run("play", "tictactow", "random", "random", code=2)
    message = run("play", "tictactoe", "egreedi", "random", code=2)
    assert "egreedy, random, weak" in message
    assert "got 'egreedi'; did you mean egreedy?" in message
    assert "did you mean filler?" in run("play", "tictactoe", "egreedy:fillr=first", "random", code=2)
    players = ["random"] * 3
    assert "expected 2 players, one for each of xplayer, oplayer, got 3" in run("play", "tictactoe", *players, code=2)
    assert "No such option" in run("games", "--jsno", code=2)


def test_an_error_is_one_message_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "bad.kif").write_text("(role a)\n(init (p a)\n")
    message = run("play", tmp_path / "bad.kif", "random", code=1)
    assert message.startswith(f"error: {tmp_path / 'bad.kif'}:2:1: ")
    assert "Traceback" not in message


def test_a_file_that_cannot_be_used_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    inside = tmp_path / "file" / "inside"
    arguments = ("play", "tictactoe", "random", "random", "--records", inside)
    assert "expected a file or folder that can be used, got: " in run(*arguments, code=1)
    assert "expected a folder that can be written" in run("demo", "--runs", 1, "--out", inside, code=1)
    message = run("features", "tictactoe", "--role", "xplayer", "--draw", tmp_path / "features.doc", code=1)
    assert "got '.doc'; choose one of these, or leave out the suffix" in message


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    code = "import sys, gamelore.cli; print(*sorted(set(sys.modules) & {'numba', 'matplotlib', 'scipy', 'clingo'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_games() -> None:
    rows = {row["name"]: row for row in run_json("games")}
    assert rows["tictactoe"]["roles"] == ["xplayer", "oplayer"]
    assert Path(rows["othello4"]["path"]).is_file()
    assert "capturego3_suicide" in run("games")


def test_play_shows_a_single_match_move_by_move() -> None:
    text = run("play", "tictactoe", "minimax:depth=9", "minimax:depth=9")
    assert text.splitlines()[0].split() == ["ply", "xplayer", "oplayer"]
    assert sum("(mark" in line for line in text.splitlines()) == 9
    assert "50: 1" in text


def test_players_are_those_that_play_takes() -> None:
    listed = {kind["name"]: kind for kind in run_json("players")}
    assert run("play", "tictactoe", "zzz", "random", code=2).startswith(
        f"error: expected a player ({', '.join(listed)}),"
    )
    assert listed["uct"]["options"] == [field.name for field in fields(SearchSettings)]
    assert "1000 `simulations` for each move" in run("players")
    shown = run("players", "minimax").splitlines()
    assert shown[:4] == [
        "minimax: looks `depth` plies ahead and assumes that the other roles play against it",
        "",
        "depth",
        "    number of plies to look ahead (default: 2)",
    ]
    assert [kind["name"] for kind in run_json("players", "minimax")] == ["minimax"]
    assert "did you mean egreedy?" in run("players", "egredy", code=2)


def test_uct_plays_by_either_budget_and_any_number_of_roles() -> None:
    won = run_json("play", "tictactoe", "uct:simulations=200", "weak", "--matches", 5)["players"][0]
    assert won["goals"] == {"100": 5}
    assert run_json("play", "goofspiel", "uct:seconds=0.01", "random", "--matches", 2)["ends"] == {"terminal": 2}
    three = run_json("play", "tictactoe3p", *["uct:simulations=50"] * 3)
    assert [player["player"] for player in three["players"]] == ["uct:simulations=50"] * 3


def test_play_counts_goals_and_depends_on_the_seed_alone(tmp_path: Path) -> None:
    arguments = ("play", "tictactoe", "egreedy", "random", "--matches", 130)
    summary = run_json(*arguments, "--seed", 3, "--records", tmp_path / "r.jsonl")
    assert summary == run_json(*arguments, "--seed", 3)
    assert summary != run_json(*arguments, "--seed", 4)
    first, second = summary["players"]
    assert sum(first["goals"].values()) == summary["matches"] == 130
    assert first["mean_goal"] + second["mean_goal"] == pytest.approx(100)
    assert first["mean_goal"] > 85
    records = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [record["gamelore"]["key"] for record in records] == [[3, 0, "play", match] for match in range(130)]
    assert sum(record["gamelore"]["goals"][0] for record in records) / 130 == pytest.approx(first["mean_goal"])


def test_a_shorter_series_is_the_beginning_of_a_longer_one(tmp_path: Path) -> None:
    for matches in (7, 70):
        run("play", "tictactoe", "random", "random", "--matches", matches, "--records", tmp_path / str(matches))
    short, long = ((tmp_path / name).read_text().splitlines() for name in ("7", "70"))
    assert short == long[:7]


def test_check_gives_places_and_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / "good.kif").write_text(Path(run_json("games")[0]["path"]).read_text())
    (tmp_path / "bad.kif").write_text("(role a)\n(<= (next (p ?x)) (true (q ?y)))\n")
    assert run_json("check", tmp_path / "good.kif", "tictactoe") == []
    findings = run_json("check", tmp_path / "bad.kif", code=1)
    assert any(
        (found["line"], found["code"], found["severity"]) == (2, "unsafe-variable", "error") for found in findings
    )
    shown = CliRunner().invoke(app, ["check", str(tmp_path / "bad.kif")])
    assert f"{tmp_path / 'bad.kif'}:2:" in shown.stdout
    assert shown.exit_code == 1
    assert "there is no such file" in run("check", tmp_path / "none.kif", code=2)


def test_check_takes_warnings_as_findings_where_asked(tmp_path: Path) -> None:
    text = Path(run_json("games")[0]["path"]).read_text()
    (tmp_path / "warned.kif").write_text(text + "\n(unused of anything)\n")
    (finding,) = run_json("check", tmp_path / "warned.kif")
    assert finding["severity"] == "warning"
    assert run_json("check", tmp_path / "warned.kif", "--strict", code=1) == [finding]


def test_features_of_tictactoe_are_twelve_and_ten(tmp_path: Path) -> None:
    report = run_json("features", "tictactoe", "--draw", tmp_path / "features.png")
    xplayer, oplayer = report["roles"]
    assert (xplayer["role"], xplayer["num_features"], len(xplayer["features"])) == ("xplayer", 12, 12)
    assert (oplayer["role"], oplayer["num_features"], len(oplayer["features"])) == ("oplayer", 10, 10)
    assert xplayer["complete"]
    assert xplayer["num_positions"] == 4520  # of 5478 reachable ones 958 are terminal
    assert {file.name for file in tmp_path.glob("*.png")} == {"features-xplayer.png", "features-oplayer.png"}


def test_features_of_one_role_of_another_depth_in_some_matches() -> None:
    (black,) = run_json("features", "othello4", "--role", "black", "--depth", 1, "--limit", 10, "--matches", 20)[
        "roles"
    ]
    assert not black["complete"]
    assert black["method"] == "the positions of 20 random matches"
    assert {row["feature"] for row in black["features"]} <= {"L", "D", "W", "n,L", "n,D", "n,W"}
    text = run("features", "tictactoe", "--role", "oplayer")
    assert text.startswith("tictactoe, oplayer: 10 features in all reachable positions")
    assert "did you mean oplayer" in run("features", "tictactoe", "--role", "oplayr", code=2)


def test_what_is_learned_is_listed_shown_exported_and_used(tmp_path: Path) -> None:
    for opponent in ("egreedy:filler=first", "random"):
        report = run_json("learn", "tictactoe", "--opponent", opponent, "--matches", 60, "--seed", 2)
        assert report["num_matches"] == 60
        assert len(report["features"]) > 5
    first, second = run_json("knowledge", "list")
    assert (first["game"], first["role"], first["opponent"]) == (
        "tictactoe",
        "xplayer",
        "egreedy:filler=first,epsilon=0.01",
    )
    assert [row["number"] for row in run_json("knowledge", "list", "--opponent", "random")] == [second["number"]]
    shown = run("knowledge", "show", "--source", "tictactoe", "--draw", tmp_path / "table1")
    assert shown.count("egreedy  ") >= 5
    assert shown.count("preference for a move, compared with a neutral move: wins ") == 2
    learners = run_json("knowledge", "show", "--source", "tictactoe")["learners"]
    assert learners[0]["replies"]["wins"] > 2 > learners[1]["replies"]["wins"] > 0.5
    run("learn", "tictactoe", "--opponent", "egreedy", "--matches", 20)
    run("learn", "tictactoe", "--opponent", "egreedy", "--matches", 20, "--seed", 9)
    shown = run("knowledge", "show", 1, 3, 4)
    assert "\negreedy:filler=first,epsilon=0.01  " in shown
    assert "\negreedy (4)  " in shown
    assert (tmp_path / "table1.png").stat().st_size > 10_000
    assert (tmp_path / "table1.svg").is_file()
    learned = run_json("learn", "connect3", "--learner", "transfer", "--source", "tictactoe", "--opponent", "random")
    assert learned["role"] == "red"
    run("knowledge", "export", tmp_path / "all.json")
    assert "one that exists" in run("knowledge", "export", tmp_path / "all.json", code=1)
    other = ("--knowledge", tmp_path / "other.db")
    assert run_json("knowledge", "import", tmp_path / "all.json", *other)["learners"] == 5
    assert run_json("knowledge", "import", tmp_path / "all.json", *other)["learners"] == 0
    assert run_json("knowledge", "show", *other)["features"] == run_json("knowledge", "show")["features"]
    assert run_json("knowledge", "list", "--source", "connect3")[0]["sources"][0]["game"] == "tictactoe"
    turns = ("--source", "tictactoe", "--turns", 1, "--matches", 5)
    deep = run_json("learn", "connect3", "--learner", "transfer", "--opponent", "random", *turns)
    assert deep["settings"]["turns"] == 1
    assert deep["number"] != learned["number"]


def test_learn_takes_an_equivalence_and_a_control(store: Path) -> None:
    run("learn", "tictactoe", "--opponent", "random", "--matches", 60)
    transfer = ("learn", "tictactoe3p", "--learner", "transfer", "--source", "tictactoe", "--opponent", "random")
    options = ("--equivalence", "0=0,33=50,100=100", "--control", "shuffled", "--matches", 20)
    settings = run_json(*transfer, *options)["settings"]
    assert settings["control"] == "shuffled"
    assert settings["equivalence"] == [[0, 0], [33, 50], [100, 100]]


def test_learn_with_symmetries() -> None:
    learned = run_json("learn", "tictactoe", "--symmetry", "all", "--matches", 20)
    assert (learned["settings"]["symmetry"], learned["settings"]["symmetries"]) == ("all", 8)
    plain = run_json("learn", "tictactoe", "--matches", 20)
    assert "symmetry" not in plain["settings"]
    assert run_json("learn", "tictactoe", "--symmetry", "none", "--matches", 20)["number"] == plain["number"]
    result = CliRunner().invoke(app, ["learn", "goofspiel", "--symmetry", "all", "--matches", "3"])
    assert "goofspiel has no symmetries, so afterstates cannot be merged" in result.stderr


def test_learn_refuses_what_does_not_fit() -> None:
    assert "expected --source GAME together with --learner transfer" in run(
        "learn", "tictactoe", "--source", "connect3", code=2
    )
    assert "did you mean minimax" in run("learn", "tictactoe", "--opponent", "minimx", code=2)
    assert "expected alpha from 0 to 1, got 7.0" in run("learn", "tictactoe", "--alpha", 7, code=2)
    assert "such as 0=0,33=50,100=100, got '0=0,33'" in run("learn", "tictactoe", "--equivalence", "0=0,33", code=2)
    assert "only for the transfer learner" in run("learn", "tictactoe", "--control", "shuffled", code=2)
    arguments = ("learn", "connect3", "--learner", "transfer", "--source", "tictactoe")
    assert "expected knowledge of tictactoe against egreedy" in run(*arguments, code=1)
    message = run("learn", "connect3", "--learner", "transfer", "--source", "tictactow", code=2)
    assert "got 'tictactow'; did you mean tictactoe" in message


def test_knowledge_says_where_there_is_none(store: Path, tmp_path: Path) -> None:
    assert f"error: {store}: expected a knowledge store, got no such file; learn a game first" in run(
        "knowledge", "list", code=1
    )
    (tmp_path / "list.db").write_text("milk, eggs\n" * 100)
    assert "got: file is not a database" in run("knowledge", "list", "--knowledge", tmp_path / "list.db", code=1)


WRONG_LEARNERS = {
    "num_matches = 'many'": "expected learner 1 as gamelore stores it",
    "role = 'green', features_at = 0": "expected learner 1 in a role of tictactoe, got 'green'",
}


@pytest.mark.parametrize("change", WRONG_LEARNERS)
def test_a_wrong_learner_is_no_mistake_of_the_user(tmp_path: Path, change: str) -> None:
    path = shutil.copy(FORMAT3, tmp_path / "k.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE learner SET {change} WHERE id = 1")
        connection.commit()
    assert WRONG_LEARNERS[change] in run("knowledge", "show", "--knowledge", path, code=1)
    if "num_matches" in change:
        words = ("learn", "connect3", "--learner", "transfer", "--source", "tictactoe", "--knowledge", path)
        assert WRONG_LEARNERS[change] in run(*words, code=1)


def changed_store(folder: Path, statement: str) -> Path:
    """A copy of the store of format 3 in which a statement was carried out."""
    path = Path(shutil.copy(FORMAT3, folder / "k.db"))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    return path


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE learner SET num_matches = 'many' WHERE id = 1",
        "UPDATE learner SET opponent = CAST(x'ff41' AS TEXT) WHERE id = 1",
        "UPDATE feature SET value = 'much' WHERE learner = 1",
        "UPDATE pair SET role = 'nobody'",
        "DELETE FROM branch",
    ],
)
def test_a_wrong_learner_does_not_hide_the_others(tmp_path: Path, statement: str) -> None:
    words = ["knowledge", "show", "--knowledge", str(changed_store(tmp_path, statement))]
    shown, as_json = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--json"]))
    assert shown.exit_code == as_json.exit_code == 1
    (error,) = re.findall("^error: .*", shown.stderr, re.MULTILINE)
    wrong = re.findall(r"learner (\d)", error)[0]
    others = {1, 2, 3} - {int(wrong)}
    assert {row["number"] for row in json.loads(as_json.stdout)["learners"]} == others
    assert set(map(int, re.findall(r"^learner (\d): ", shown.stdout, re.MULTILINE))) == others


def test_a_wrong_learner_does_not_keep_the_features_of_another_out_of_the_file(tmp_path: Path) -> None:
    change = "role = CASE id WHEN 1 THEN 'green' ELSE role END, features_at = 0 WHERE id < 3"
    path = changed_store(tmp_path, f"UPDATE learner SET {change}")
    result = CliRunner().invoke(app, ["knowledge", "show", "1", "2", "--json", "--knowledge", str(path)])
    assert "expected learner 1 in a role of tictactoe, got 'green'" in result.stderr
    (shown,) = json.loads(result.stdout)["learners"]
    with KnowledgeStore(path, writable=False) as knowledge:
        assert shown["features_at"] == knowledge.find(2).features_at == shown["num_matches"] > 0


def test_a_role_is_chosen_in_any_case() -> None:
    for words in (("list",), ("show",), ("show", 3)):
        shown = [
            run_json("knowledge", *words, "--role", role, "--knowledge", FORMAT3) for role in ("xplayer", "XPLAYER")
        ]
        assert shown[0] == shown[1]
    assert shown[0]["pairs"]


def test_a_learner_of_all_roles_with_features_is_shown_without_them(tmp_path: Path) -> None:
    change = """role = 'all roles', settings = '{"kind":"sequences","lengths":[1]}'"""
    path = changed_store(tmp_path, f"UPDATE learner SET {change} WHERE id = 2")
    run("knowledge", "show", "--knowledge", path, "--draw", tmp_path / "all.svg")
    shown = run_json("knowledge", "show", "--knowledge", path)
    assert {row["learner"] for row in shown["features"]} == {1}
    assert len(shown["learners"]) == 3


def test_large_features_are_printed_as_json_but_not_drawn(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "L," + "{n," * 98 + "W" + "}" * 98
    wide = {f"{{{a},{b}}},{{{c}}}": (1.0, 1) for a in range(30, 40) for b in range(10, 30) for c in range(20)}
    with KnowledgeStore(store) as knowledge:
        settings = {**SETTINGS, "depth": 100}
        stored = knowledge.learner(Rules(), "red", opponent="weak", settings=settings, seed=0)
        knowledge.store_features(stored, FeatureValues({deep: (1.0, 1), **wide}, depth=100))
    assert len(run("knowledge", "show")) < 50_000
    monkeypatch.setattr(feature_trees, "MOST_FEATURES", 5)
    shown = CliRunner().invoke(app, ["knowledge", "show", "--draw", str(tmp_path / "deep.png")])
    assert "3996 of 4001 features are not drawn, only the first 5 of at most 400 characters" in shown.stderr
    assert (tmp_path / "deep.png").stat().st_size > 10_000
    assert len(run_json("knowledge", "show")["features"]) == 4001


def test_show_loads_games_within_its_limits() -> None:
    assert "learner 3" in run("knowledge", "show", 3, "--load-seconds", 0, "--knowledge", FORMAT3, code=1)


def test_words_that_no_store_has_are_told(store: Path, tmp_path: Path) -> None:
    with KnowledgeStore(store) as knowledge:
        fill(knowledge)
    for words in (("show",), ("delete",), ("export", tmp_path / "x.json")):
        assert "learner in this store (1), got 9999" in run("knowledge", *words, "9" * 23, code=1)
    for words in (("list", "--source"), ("show", "--opponent")):
        assert "in UTF-8" in run("knowledge", *words, "\udcff", code=1)


@pytest.mark.parametrize("mode", [0o444, 0o644])
def test_an_interrupted_learner_of_a_read_only_store_is_shown(tmp_path: Path, mode: int) -> None:
    paths = [Path(shutil.copy(FORMAT3, tmp_path / name)) for name in ("own.db", "read_only.db")]
    for path in paths:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript("UPDATE learner SET features_at = 0 WHERE id < 3; DELETE FROM feature")
    own, read_only = paths
    before = read_only.read_bytes()
    read_only.chmod(mode)
    tmp_path.chmod(0o555)
    try:
        with without_override():
            shown = run("knowledge", "show", "--knowledge", read_only)
    finally:
        tmp_path.chmod(0o755)
    assert "learner 1: tictactoe, xplayer against egreedy:filler=first,epsilon=0.1, after 12 matches" in shown
    assert shown == run("knowledge", "show", "--knowledge", own)
    assert read_only.read_bytes() == before


def test_pictures_of_any_names_lie_in_the_folder_that_was_named(store: Path, tmp_path: Path) -> None:
    roles = ("a/b", "<img/src=x>", "$x^$")
    with KnowledgeStore(store) as knowledge:
        for role in roles:
            game = Rules("../../coins", roles, goal_values=((0, 100),) * 3)
            stored = knowledge.learner(game, role, opponent="$weak", settings=SETTINGS, seed=0)
            knowledge.store_features(stored, FeatureValues({"L,{n,W}": (50.0, 2)}))
    assert "coins, a/b against $weak" in run("knowledge", "show", "--draw", tmp_path / "pictures" / "all.svg")
    files = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert len(files) == 3
    assert all(re.fullmatch("all-[A-Za-z0-9_-]+\\.svg", name) for name in files)


def test_a_store_is_checked_and_wrong_learners_are_deleted(store: Path) -> None:
    with KnowledgeStore(store) as knowledge:
        fill(knowledge)
        learner(knowledge)
    assert run_json("knowledge", "check") == {"knowledge": str(store), "problems": []}
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE match SET reward = 'much'")
        connection.commit()
    assert f"1 problem in {store}; remove wrong learners" in run("knowledge", "check", code=1)
    assert run_json("knowledge", "check", code=1)["problems"] == [
        "learner 1: Expected `float`, got `str` - at `$[0][0]`"
    ]
    assert "expected the number of a learner in this store (1, 2), got 3" in run("knowledge", "delete", 3, code=1)
    assert [gone["number"] for gone in run_json("knowledge", "delete", 1)["deleted"]] == [1]
    assert run_json("knowledge", "check")["problems"] == []
    assert [row["number"] for row in run_json("knowledge", "list")] == [2]


def test_an_interrupt_keeps_every_finished_match_and_says_so(store: Path) -> None:
    code = "from gamelore.cli import main; main()"
    command = [sys.executable, "-c", code, "learn", "tictactoe", "--matches", "1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_matches(store, 20)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip() == (
        "interrupted; every finished match is in the knowledge store; run the same command again to continue"
    )
    (kept,) = run_json("knowledge", "list")
    assert kept["num_matches"] >= 20
    assert f"after {kept['num_matches']} matches" in run("knowledge", "show")
    assert run_json("learn", "tictactoe", "--matches", kept["num_matches"] + 5)["number"] == kept["number"]


def test_an_interrupt_while_modules_are_read_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import of the command line is what takes a second."""
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gamelore.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from gamelore.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "games"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_an_empty_file_is_no_store(store: Path) -> None:
    store.write_bytes(b"")
    assert "expected a knowledge store, got an empty file" in run("knowledge", "list", code=1)


def test_transfer_gives_its_limits_to_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Limits] = []

    def start(*_: Any, limits: Limits, **__: Any) -> None:
        given.append(limits)
        raise GameloreError("enough")

    monkeypatch.setattr(transfer_study, "transfer", start)
    limits = ("--load-seconds", 7, "--memory", 2)
    assert "enough" in run("transfer", "tictactoe", "connect3", "--out", tmp_path, *limits, code=1)
    assert given == [Limits(7.0, memory=2 * GIB)]


def test_transfer_writes_a_report_and_refuses_a_folder_of_other_settings(tmp_path: Path) -> None:
    arguments = ("transfer", "tictactoe", "connect3", "--runs", 2, "--workers", 1, "--out", tmp_path / "out")
    result = run_json(*arguments, "--matches", 10)
    assert Path(result["report"]["html"]).is_file()
    assert [(gain["source"], gain["target"]) for gain in result["gains"]] == [("tictactoe", "connect3")]
    assert "choose another folder" in run(*arguments, "--matches", 11, code=1)
    rows = tmp_path / "matches.csv"
    assert run_json("matches", tmp_path / "out", rows)["matches"] == 2 * 3 * 10 + 2 * 100  # the source's are there, too
    assert len(rows.read_text().splitlines()) == 1 + 260
    assert "expected a new file" in run("matches", tmp_path / "out", rows, code=1)
    assert "expected the folder of an experiment" in run("matches", tmp_path, rows, "--force", code=2)
    assert "expected SOURCE and at least one TARGET" in run("transfer", "tictactoe", code=2)
    assert "did you mean connect3" in run("transfer", "tictactoe", "conect3", code=2)
    assert "expected no roles with --every-pair" in run("transfer", "--every-pair", "--source-role", "red", code=2)
    message = run("transfer", "tictactoe", "connect3", "--target-role", "blue", code=2)
    assert "expected a role of connect3 (red, yellow), got 'blue'" in message


@pytest.mark.parametrize(
    ("arguments", "place", "expected"),
    [
        (
            ("reproduce", "banerjee2007", "--reading", "text", "--verdicts", "--runs", 2),
            "gamelore.lab.papers.banerjee2007.reproduce",
            {"reading": "text", "verdicts": True, "runs": 2, "workers": 2},
        ),
        (
            ("reproduce", "lock2004", "--core", "--fresh", 30, "--seed", 7),
            "gamelore.lab.papers.lock2004.reproduce",
            {"core": True, "fresh": 30, "verdicts": False, "runs": 10, "seed": 7, "workers": 2},
        ),
        (
            ("demo", "--seed", 4),
            "gamelore.lab.papers.banerjee2007.demo",
            {"runs": 5, "matches": 3000, "seed": 4, "workers": 2},
        ),
    ],
)
def test_the_experiments_are_started_as_asked(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[object, ...],
    place: str,
    expected: dict[str, object],
) -> None:
    asked: dict[str, object] = {}

    def experiment(out: Path, *reading: str, **options: object) -> ReportPaths:
        asked.update(options, **({"reading": reading[0]} if reading else {}))
        (out / "claims.csv").write_text("claim,verdict\ntwelve,reproduced\n")
        return ReportPaths(out, out / "report.md", out / "report.html", "headline")

    monkeypatch.setattr(place, experiment)
    result = run_json(*arguments, "--out", tmp_path)
    assert asked == {**expected, "progress": False}
    assert result["claims"] == [{"claim": "twelve", "verdict": "reproduced"}]
    assert result["report"]["html"] == str(tmp_path / "report.html")


def test_reproduce_knows_its_papers() -> None:
    assert "did you mean banerjee2007?" in run("reproduce", "banerjee", code=2)
    assert "expected only options for lock2004, got --matches" in run("reproduce", "lock2004", "--matches", 5, code=2)
    assert "expected a reading of lock2004" in run("reproduce", "lock2004", "--reading", "figures", code=2)
    assert "expected a reading of banerjee2007" in run("reproduce", "banerjee2007", "--reading", "tables", code=2)
    assert "got --core, which is for lock2004" in run("reproduce", "banerjee2007", "--core", code=2)


@pytest.mark.parametrize("error", [SystemError, TypeError])
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_ctrl_c_in_a_kernel_is_an_interruption(error, is_interrupted):
    """Numba turns it into a SystemError where kernels return arrays, numpy into a TypeError where it compares rows."""
    from gamelore.cli.console import command

    app = typer.Typer()

    @command(app, "work", "work", kept="all is kept")
    def work() -> None:
        """Work."""
        try:
            if is_interrupted:
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pass
        raise error("Cannot compare structured arrays")

    result = CliRunner().invoke(app, [])
    assert result.exit_code == (130 if is_interrupted else 1)
    assert ("all is kept" in result.stderr) == is_interrupted
    assert isinstance(result.exception, SystemExit if is_interrupted else error)
