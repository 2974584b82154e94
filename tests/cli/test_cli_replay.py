"""gamelore replay: records of gamelore and of others, one or many, right and wrong."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from commands import run, run_json
from gamelore import rulesheets
from gamelore.analysis.isomorphism import scramble
from gamelore.matches.match import MatchState
from gamelore.players.position_graph import PositionGraph


@pytest.fixture(scope="module")
def graphs():
    return {name: PositionGraph(rulesheets.load(name)) for name in ("tictactoe", "goofspiel")}


@pytest.fixture
def folder(tmp_path, graphs):
    """A folder with a match of either game and something of a series that is no record."""
    for name, graph in graphs.items():
        record(graph, errors=1).write(tmp_path / f"{name}.json")
    (tmp_path / "series.json").write_text("{}")
    return tmp_path


def record(graph, errors=0):
    """A match in which everybody takes the first move."""
    match = MatchState(graph)
    while match.end is None:
        for role in match.pending():
            match.submit(role, 0)
    rows = (*[("", "")] * match.ply, ("", "TO" if errors else ""))
    return match.record("m.1", ["random", "random"], errors=rows)


def changed(path, **values):
    """The record in a file, with other values and without those that are None."""
    record = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in record.items() if value is not None}))
    return path


def test_a_folder_of_records(folder):
    rows = run_json("replay", folder)
    assert [Path(row["file"]).name for row in rows] == ["goofspiel.json", "tictactoe.json"]
    assert [row["as_recorded"] for row in rows] == [True, True]
    assert rows[1] | {"file": ""} == {
        "file": "",
        "as_recorded": True,
        "why": "",
        "match": "m.1",
        "game": "tictactoe",
        "plies": 7,
        "end": "terminal",
        "goals": [100, 0],
        "errors": {"TO": 1},
    }
    text = run("replay", folder).stdout
    assert "tictactoe.json  tictactoe      7  terminal  100 0  1 TO" in text
    assert text.endswith("2 records, all are as recorded\n")


def test_the_files_of_a_folder_as_a_shell_names_them(folder):
    assert run_json("replay", *sorted(folder.glob("*.json"))) == run_json("replay", folder)
    (row,) = run_json("replay", folder / "series.json", code=1)
    assert "it has no states and no moves" in row["why"]


def test_every_file_is_judged(folder):
    states = json.loads((folder / "tictactoe.json").read_text())["states"]
    states[3] = states[3].replace("(cell 1 1 x)", "(cell 1 1 o)")
    changed(folder / "tictactoe.json", states=states)
    (folder / "garbage.json").write_bytes(b"\xff\x00[[")
    files = [folder / name for name in ("tictactoe.json", "missing.json", "garbage.json", "goofspiel.json")]
    rows = run_json("replay", *files, code=1)
    assert [row["as_recorded"] for row in rows] == [False, False, False, True]
    assert "the recorded state at ply 3, got another state; facts only in the record: (cell 1 1 o);" in rows[0]["why"]
    assert "expected a file that can be read, got: No such file" in rows[1]["why"]
    assert "expected a GGP match record in JSON" in rows[2]["why"]
    text = run("replay", *files, code=1).stdout
    assert f"{files[0]}: expected the recorded state at ply 3" in text
    assert text.endswith("4 records, 3 of them could not be replayed as recorded\n")


def test_the_positions_are_drawn(folder):
    text = run("replay", folder / "tictactoe.json", "--show").stdout
    assert text.count("(cell x y *)") == 8
    assert "\n1. xplayer (mark 1 1)\n\n(cell x y *)\n3 | . . .\n2 | . . .\n1 | x . .\n" in text
    assert "noop" not in text
    (row,) = run_json("replay", folder / "tictactoe.json", "--show")
    assert [position["moves"] for position in row["positions"][:2]] == [[], ["(mark 1 1)", "noop"]]
    assert row["positions"][0]["others"] == ["(control xplayer)"]


def test_a_record_of_another_program_needs_a_game(folder):
    foreign = changed(folder / "tictactoe.json", gamelore=None, isCompleted=None, errors=None)
    (row,) = run_json("replay", foreign, code=1)
    assert "expected the rules of the game, got no rules.kif in the folder of the record; name the game" in row["why"]
    (row,) = run_json("replay", foreign, "--game", "tictactoe")
    assert (row["game"], row["errors"]) == ("tictactoe", {})
    shutil.copy(rulesheets.path("tictactoe"), folder / "rules.kif")
    assert run_json("replay", foreign)[0]["as_recorded"]


def test_the_rules_have_to_be_the_right_ones(folder):
    (row,) = run_json("replay", folder / "tictactoe.json", "--game", "connect3", code=1)
    assert "expected the recorded rules of tictactoe, got other rules" in row["why"]
    assert "did you mean tictactoe" in run("replay", folder, "--game", "tictactow", code=2).stderr
    (folder / "rules.kif").write_text("(role")
    assert "rules.kif:1:1: this '(' is never closed" in run_json("replay", folder, code=1)[0]["why"]


def test_a_name_in_a_record_leads_to_no_file(folder):
    shutil.copy(rulesheets.path("tictactoe"), folder / "elsewhere.kif")
    details = json.loads((folder / "tictactoe.json").read_text())["gamelore"]
    for name in (str(folder / "elsewhere.kif"), "../elsewhere", "tictactoe:cap=1", "(role x)"):
        wrong = changed(folder / "tictactoe.json", gamelore=details | {"game": name})
        (row,) = run_json("replay", wrong, code=1)
        assert not row["as_recorded"]
        assert "plies" not in row


def test_a_match_that_was_broken_off(folder, graphs):
    match = MatchState(graphs["tictactoe"])
    for role in match.pending():
        match.submit(role, 0)
    match.record("m.2", ["random", "random"], is_aborted=True).write(folder / "aborted.json")
    (row,) = run_json("replay", folder / "aborted.json")
    assert (row["end"], row["plies"], row["goals"]) == ("broken off", 1, [])


# as the field's managers write them: by hand, in their spelling and their order of keys

GGP_BASE = """{
"matchId":"base.tictactoe.1700000000000","randomToken":"q8h2","startTime":1700000000000,
"gameMetaURL":"http://games.ggp.org/base/games/ticTacToe/","isCompleted":true,"isAborted":false,
"states":["( ( cell 1 1 b ) ( cell 1 2 b ) ( cell 1 3 b ) ( cell 2 1 b ) ( cell 2 2 b ) ( cell 2 3 b ) ( cell 3 1 b )
 ( cell 3 2 b ) ( cell 3 3 b ) ( control xplayer ) )",
"( ( control oplayer ) ( cell 1 1 x ) ( cell 1 2 b ) ( cell 1 3 b ) ( cell 2 1 b ) ( cell 2 2 b ) ( cell 2 3 b )
 ( cell 3 1 b ) ( cell 3 2 b ) ( cell 3 3 b ) )",
"( ( cell 2 1 o ) ( cell 1 1 x ) ( cell 1 2 b ) ( cell 1 3 b ) ( cell 2 2 b ) ( cell 2 3 b ) ( cell 3 1 b )
 ( cell 3 2 b ) ( cell 3 3 b ) ( control xplayer ) )",
"( ( cell 2 1 o ) ( cell 1 1 x ) ( cell 1 2 x ) ( cell 1 3 b ) ( cell 2 2 b ) ( cell 2 3 b ) ( cell 3 1 b )
 ( cell 3 2 b ) ( cell 3 3 b ) ( control oplayer ) )",
"( ( cell 2 1 o ) ( cell 2 2 o ) ( cell 1 1 x ) ( cell 1 2 x ) ( cell 1 3 b ) ( cell 2 3 b ) ( cell 3 1 b )
 ( cell 3 2 b ) ( cell 3 3 b ) ( control xplayer ) )",
"( ( cell 2 1 o ) ( cell 2 2 o ) ( cell 1 1 x ) ( cell 1 2 x ) ( cell 1 3 x ) ( cell 2 3 b ) ( cell 3 1 b )
 ( cell 3 2 b ) ( cell 3 3 b ) ( control oplayer ) )"],
"moves":[["( mark 1 1 )","noop"],["noop","( mark 2 1 )"],["( mark 1 2 )","noop"],["noop","( mark 2 2 )"],
 ["( mark 1 3 )","noop"]],
"stateTimes":[1700000000000,1700000001000,1700000002000,1700000003000,1700000004000,1700000005000],
"errors":[["",""],["","IL ( mark 1 1 )"],["TO",""],["",""],["","CE"],["",""]],"goalValues":[100,0],
"previewClock":-1,"startClock":30,"playClock":15,"playerNamesFromHost":["Alloy","Random"],
"isPlayerHuman":[false,false],"scrambled":true,"tournamentNameFromHost":null,
"matchHostPK":"0MFww","matchHostSignature":"MEQCI"
}""".replace("\n ", " ")
ABORTED = {"isCompleted": False, "isAborted": True, "errors": None, "goalValues": [], "gameMetaURL": None}


def foreign(path, **values):
    path.write_text(GGP_BASE)
    return changed(path, **values)


def test_a_record_of_the_java_server(tmp_path):
    (row,) = run_json("replay", foreign(tmp_path / "a.json"), "--game", "tictactoe")
    assert row["as_recorded"], row["why"]
    assert (row["end"], row["goals"], row["errors"]) == ("terminal", [100, 0], {"IL": 1, "TO": 1, "CE": 1})
    wrong = foreign(tmp_path / "b.json", goalValues=[0, 100])
    assert (
        "expected the goals to be (0, 100) as recorded"
        in run_json("replay", wrong, "--game", "tictactoe", code=1)[0]["why"]
    )


def test_one_that_was_aborted(tmp_path):
    whole = json.loads(GGP_BASE)
    values = {key: whole[key][:length] for key, length in (("states", 3), ("moves", 2), ("stateTimes", 3))}
    (row,) = run_json("replay", foreign(tmp_path / "a.json", **values, **ABORTED), "--game", "tictactoe")
    assert (row["as_recorded"], row["end"], row["plies"], row["goals"]) == (True, "broken off", 2, [])


def test_one_in_capitals_with_a_byte_order_mark(tmp_path):
    whole = json.loads(GGP_BASE)
    states = [state.upper().replace("( ", "(").replace(" )", ")") for state in whole["states"]]
    moves = [[move.upper() for move in joint] for joint in whole["moves"]]
    path = foreign(tmp_path / "a.json", states=states, moves=moves, scrambled=None, randomToken=None)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert run_json("replay", path, "--game", "tictactoe")[0]["as_recorded"]


def test_one_whose_names_are_scrambled_needs_its_own_rules(tmp_path):
    rules = rulesheets.path("tictactoe").read_text()
    path = tmp_path / "a.json"
    path.write_text(GGP_BASE.replace("cell", "kuvo").replace("mark", "zib"))
    assert "only in the record: (kuvo 1 1 b)" in run_json("replay", path, "--game", "tictactoe", code=1)[0]["why"]
    (tmp_path / "rules.kif").write_text(rules.replace("cell", "kuvo").replace("mark", "zib"))
    assert run_json("replay", path)[0]["as_recorded"]


# what `gamelore play` writes

WALK = """
(role walker) (init (at hall))
(<= (legal walker ?move) (true (at hall)) (open ?move))
(<= (next (at hall)) (does walker stay)) (<= (next (at dead_end)) (does walker trap))
(<= (next (at garden)) (does walker leave)) (<= terminal (true (at garden))) (<= (goal walker 50) (true (at hall)))
"""
PLAYED = {
    "two roles": (rulesheets.path("tictactoe").read_text(), ["egreedy", "random"], "terminal"),
    "learner": (rulesheets.path("tictactoe").read_text(), ["baseline", "egreedy"], "terminal"),
    "simultaneous moves": (rulesheets.path("goofspiel").read_text(), ["random", "random"], "terminal"),
    "one role": (rulesheets.path("pegsolitaire").read_text(), ["random"], "terminal"),
    "three roles": (rulesheets.path("tictactoe3p").read_text(), ["random"] * 3, "terminal"),
    "without goals": (WALK + "(open leave)", ["random"], "terminal"),
    "stuck": (WALK + "(open trap)", ["random"], "stuck"),
    "capped": (WALK + "(open stay)", ["random"], "cap"),
    "scrambled": (
        str(scramble(rulesheets.load("connect3").rulesheet, np.random.default_rng(5))[0]),
        ["random", "egreedy"],
        "terminal",
    ),
}


@pytest.mark.parametrize("kind", PLAYED)
@pytest.mark.parametrize("in_folder", [False, True], ids=["file", "folder"])
def test_what_play_writes_is_replayed(tmp_path, monkeypatch, kind, in_folder):
    rules, players, end = PLAYED[kind]
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", str(tmp_path / "knowledge.db"))
    sheet = tmp_path / "sheet.kif"
    sheet.write_text(rules)
    records = tmp_path / ("records" if in_folder else "records.jsonl")
    if in_folder:
        records.mkdir()
    told = run_json("play", sheet, *players, "--matches", 3, "--seed", 5, "--records", records)
    rows = run_json("replay", records) if in_folder else run_json("replay", records, "--game", sheet)
    assert [(row["as_recorded"], row["why"], row["end"]) for row in rows] == [(True, "", end)] * 3
    assert [row["match"] for row in rows] == [f"5.0.play.{match}" for match in range(3)]
    assert told["ends"] == {end: 3}
    goals = [player["goals"] for player in told["players"]]
    assert goals == [
        dict(Counter(str(row["goals"][role]) for row in rows if row["goals"][role] is not None))
        for role in range(len(players))
    ]
    if kind in ("without goals", "stuck", "capped"):
        assert [row["goals"] for row in rows] == [[None]] * 3


def test_lines_are_judged_one_by_one(tmp_path):
    path = tmp_path / "records.jsonl"
    run("play", "tictactoe", "random", "random", "--matches", 4, "--records", path)
    lines = path.read_text().splitlines()
    lines[1] = lines[1].replace('"(mark', '"(marc', 1)
    lines[2] = lines[2][:-20]
    path.write_text("\n".join(lines))
    rows = run_json("replay", path, code=1)
    assert [(row["line"], row["as_recorded"]) for row in rows] == [(1, True), (2, False), (3, False), (4, True)]
    assert f"{path}:2: " in run("replay", path, code=1).stdout


def test_a_folder_of_matches_is_not_written_over(tmp_path):
    run("play", "tictactoe", "random", "random", "--records", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["match-000000.json", "rules.kif"]
    refused = run("play", "tictactoe", "random", "random", "--records", tmp_path, code=2)
    assert "expected a folder without matches" in refused.stderr


# what was written before there was one record: by `gamelore play` a line with the keys of states, by `gamelore host`

FORMER = Path(__file__).parent / "records"


def test_what_play_wrote_formerly_is_replayed():
    rows = run_json("replay", FORMER / "play.jsonl")
    assert [row["as_recorded"] for row in rows] == [True] * 4, [row["why"] for row in rows]
    assert [(row["game"], row["plies"], row["end"], row["goals"]) for row in rows] == [
        ("tictactoe", 5, "terminal", [100, 0]),
        ("tictactoe", 5, "terminal", [100, 0]),
        ("goofspiel", 5, "terminal", [100, 0]),
        ("pegsolitaire", 10, "terminal", [25]),
    ]
    rows = run_json("replay", FORMER / "walk")
    assert [(row["as_recorded"], row["end"], row["goals"]) for row in rows] == [
        (True, "terminal", [None]),
        (True, "stuck", [None]),
        (True, "cap", [None]),
    ]


def test_a_difference_in_what_play_wrote_formerly_is_found(tmp_path):
    text = (FORMER / "play.jsonl").read_text()
    (tmp_path / "play.jsonl").write_text(text.replace("17ef3cf048f73248", "17ef3cf048f73249"))
    row = run_json("replay", tmp_path / "play.jsonl", code=1)[0]
    assert "the state at ply 1 to be 17ef3cf048f73249 as recorded, got 17ef3cf048f73248" in row["why"]


def test_a_former_series_is_replayed_and_goes_on(tmp_path):
    folder = shutil.copytree(FORMER / "series", tmp_path / "series")
    rows = run_json("replay", folder)
    assert [(row["as_recorded"], row["plies"]) for row in rows] == [(True, 5), (True, 7)]
    former = [(folder / f"match-00000{number}.json").read_bytes() for number in range(2)]
    players = ("--player", "xplayer=egreedy", "--player", "oplayer=random")
    run("host", "tictactoe", *players, "--scramble", "--matches", 3, "--seed", 5, "--record", folder)
    assert [(folder / f"match-00000{number}.json").read_bytes() for number in range(2)] == former
    assert [row["as_recorded"] for row in run_json("replay", folder)] == [True] * 3
    again = tmp_path / "again"
    run("host", "tictactoe", *players, "--scramble", "--matches", 2, "--seed", 5, "--record", again)
    for old, path in zip(former, sorted(again.glob("match-*.json")), strict=True):
        own, their = json.loads(path.read_text()), json.loads(old)
        for record in (own, their):
            del record["matchId"], record["randomToken"], record["startTime"], record["stateTimes"]
        assert list(own.items()) == list(their.items())  # the same keys in the same order


def test_an_empty_folder(tmp_path):
    assert "got no .json or .jsonl file; name the files of the records" in run("replay", tmp_path, code=2).stderr
