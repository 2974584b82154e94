"""gamelore replay: records of gamelore and of others, one or many, right and wrong."""

import json
import shutil
from pathlib import Path

import pytest

from commands import run, run_json
from gamelore import games
from gamelore.net.records import of_match
from gamelore.play.graph import Graph
from gamelore.play.match import MatchState


@pytest.fixture(scope="module")
def graphs():
    return {name: Graph(games.load(name)) for name in ("tictactoe", "goofspiel")}


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
    rows = [["", ""]] * match.ply + [["", "TO" if errors else ""]]
    return of_match(match, "m.1", ["random", "random"], errors=rows)


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
    assert text.endswith("2 matches, all as recorded\n")


def test_the_files_of_a_folder_as_a_shell_names_them(folder):
    assert run_json("replay", *sorted(folder.glob("*.json"))) == run_json("replay", folder)
    (row,) = run_json("replay", folder / "series.json", code=1)
    assert "without states and moves" in row["why"]


def test_every_file_is_judged(folder):
    states = json.loads((folder / "tictactoe.json").read_text())["states"]
    states[3] = states[3].replace("(cell 1 1 x)", "(cell 1 1 o)")
    changed(folder / "tictactoe.json", states=states)
    (folder / "garbage.json").write_bytes(b"\xff\x00[[")
    files = [folder / name for name in ("tictactoe.json", "missing.json", "garbage.json", "goofspiel.json")]
    rows = run_json("replay", *files, code=1)
    assert [row["as_recorded"] for row in rows] == [False, False, False, True]
    assert "the state at ply 3 as recorded, got another one; only recorded: (cell 1 1 o);" in rows[0]["why"]
    assert "expected a file that can be read, got: No such file" in rows[1]["why"]
    assert "expected a GGP match record in JSON" in rows[2]["why"]
    text = run("replay", *files, code=1).stdout
    assert f"{files[0]}: expected the state at ply 3" in text
    assert text.endswith("4 matches, 3 of them not as recorded\n")


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
    assert "expected to know what is played, got no rules.kif beside the record; say it with --game" in row["why"]
    (row,) = run_json("replay", foreign, "--game", "tictactoe")
    assert (row["game"], row["errors"]) == ("tictactoe", {})
    shutil.copy(games.path("tictactoe"), folder / "rules.kif")
    assert run_json("replay", foreign)[0]["as_recorded"]


def test_the_rules_have_to_be_the_right_ones(folder):
    (row,) = run_json("replay", folder / "tictactoe.json", "--game", "connect3", code=1)
    assert "expected the rules of tictactoe as recorded, got others" in row["why"]
    assert "did you mean tictactoe" in run("replay", folder, "--game", "tictactow", code=2).stderr
    (folder / "rules.kif").write_text("(role")
    assert "rules.kif:1:1: a '(' that is never closed" in run_json("replay", folder, code=1)[0]["why"]


def test_a_name_in_a_record_leads_to_no_file(folder):
    shutil.copy(games.path("tictactoe"), folder / "elsewhere.kif")
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
    of_match(match, "m.2", ["random", "random"], is_aborted=True).write(folder / "aborted.json")
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
    assert "the goals as recorded" in run_json("replay", wrong, "--game", "tictactoe", code=1)[0]["why"]


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
    rules = games.path("tictactoe").read_text()
    path = tmp_path / "a.json"
    path.write_text(GGP_BASE.replace("cell", "kuvo").replace("mark", "zib"))
    assert "only recorded: (kuvo 1 1 b)" in run_json("replay", path, "--game", "tictactoe", code=1)[0]["why"]
    (tmp_path / "rules.kif").write_text(rules.replace("cell", "kuvo").replace("mark", "zib"))
    assert run_json("replay", path)[0]["as_recorded"]


def test_an_empty_folder(tmp_path):
    assert "got no .json file; name the records" in run("replay", tmp_path, code=2).stderr
