"""Records in the common format: what is written, what is read, and that a replay finds every difference."""

import json
from dataclasses import replace

import pytest

from gamelore.errors import GameloreError
from gamelore.matches.match import ILLEGAL, MatchRecord, MatchState
from gamelore.players.position_graph import PositionGraph
from gamelore.rulesheets import load

CROSS_WINS = ["(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 2 2)", "(mark 1 3)"]
EMPTY = "( (cell 1 1 b) (cell 1 2 b) (cell 1 3 b) (cell 2 1 b) (cell 2 2 b) (cell 2 3 b) (cell 3 1 b) (cell 3 2 b) "


@pytest.fixture(scope="module")
def tictactoe():
    return load("tictactoe")


def played(game, marks=CROSS_WINS, **limits):
    """A match of tic-tac-toe with these marks, the players by turns."""
    match = MatchState(PositionGraph(game), **limits)
    for ply, mark in enumerate(marks):
        match.submit(ply % 2, mark)
        match.submit(1 - ply % 2, "noop")
    return match


@pytest.fixture(scope="module")
def record(tictactoe):
    match = played(tictactoe)
    match.note(1, ILLEGAL, "(mark 9 9)")
    errors = (*[("", "")] * 5, ("", "IL (mark 9 9)"))
    return match.record(
        "m.1",
        ["egreedy", "http://127.0.0.1:9147"],
        player_names=("one", "two"),
        random_token="token",
        start_time=1_700_000_000_000,
        state_times=tuple(range(1_700_000_000_000, 1_700_000_000_006)),
        start_clock=10,
        play_clock=5,
        errors=errors,
        key=(7, 0, "host", 3),
        settings={"replace": "random"},
        tournament="cup",
    )


def test_the_common_keys(record):
    values = json.loads(record.to_json())
    assert set(values) == {
        "matchId",
        "randomToken",
        "startTime",
        "gameMetaURL",
        "isCompleted",
        "isAborted",
        "states",
        "moves",
        "stateTimes",
        "previewClock",
        "startClock",
        "playClock",
        "scrambled",
        "errors",
        "goalValues",
        "playerNamesFromHost",
        "tournamentNameFromHost",
        "gamelore",
    }
    assert values["states"][0] == EMPTY + "(cell 3 3 b) (control xplayer) )"
    assert values["moves"][:2] == [["(mark 1 1)", "noop"], ["noop", "(mark 2 1)"]]
    assert len(values["states"]) == len(values["stateTimes"]) == len(values["errors"]) == len(values["moves"]) + 1
    assert (values["isCompleted"], values["isAborted"], values["goalValues"]) == (True, False, [100, 0])
    assert values["gamelore"]["game"] == "tictactoe"
    assert values["gamelore"]["events"] == [{"ply": 5, "role": "oplayer", "kind": "IL", "text": "(mark 9 9)"}]


def test_a_record_is_read_back(record, tmp_path):
    assert MatchRecord.from_json(record.to_json()) == record
    record.write(tmp_path / "new" / "m.json")
    assert MatchRecord.read(tmp_path / "new" / "m.json") == record
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["m.json"]


def test_writing_fails_without_a_trace(record, tmp_path):
    (tmp_path / "m.json").mkdir()
    with pytest.raises(OSError, match=r"m\.json"):
        record.write(tmp_path / "m.json")
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_replay(record, tictactoe):
    match = record.replay(tictactoe)
    assert (match.end, match.goals, match.ply) == ("terminal", (100, 0), 5)
    assert record.replay(tictactoe, match.graph).state_key == match.state_key


def test_a_record_of_another_program(tictactoe, record):
    """In capitals, with other spaces and orders, with `true`, without what is optional, with what we do not know."""
    states = [
        "( " + " ".join(f"( true {fact} )" for fact in sorted(record.facts(ply), reverse=True)).upper() + " )"
        for ply in range(6)
    ]
    foreign = {
        "states": states,
        "moves": [["( MARK 1  1 )", "NOOP"], *record.moves[1:]],
        "startTime": 1.0,
        "goalValues": [100, 0],
        "matchHostPK": "key",
        "matchHostSignature": "signature",
        "apolloSigned": {"by": None},
        "isPlayerHuman": [False, True],
        "randomToken": None,
    }
    theirs = MatchRecord.from_json(json.dumps(foreign))
    assert theirs.replay(tictactoe).goals == (100, 0)
    assert (theirs.is_ours, theirs.random_token, theirs.is_player_human) == (False, "", (False, True))
    again = json.loads(theirs.to_json())
    assert (again["matchHostPK"], again["apolloSigned"]) == ("key", {"by": None})


def test_matches_that_did_not_end(tictactoe):
    running = played(tictactoe, CROSS_WINS[:3]).record("m", ["a", "b"])
    assert (running.is_completed, running.is_aborted, running.goal_values) == (False, False, ())
    assert running.replay(tictactoe).end is None
    aborted = played(tictactoe, CROSS_WINS[:3]).record("m", ["a", "b"], is_aborted=True)
    assert (aborted.is_aborted, aborted.end) == (True, None)
    assert aborted.replay(tictactoe).end is None
    capped = played(tictactoe, CROSS_WINS[:3], max_plies=3).record("m", ["a", "b"])
    assert (capped.is_completed, capped.is_aborted, capped.end) == (False, True, "cap")
    assert capped.replay(tictactoe).end == "cap"
    assert MatchRecord.from_json(capped.to_json()) == capped
    assert played(tictactoe, []).record("m", ["a", "b"]).replay(tictactoe).ply == 0


def changed(record, ply, old, new):
    states = list(record.states)
    assert old in states[ply]
    states[ply] = states[ply].replace(old, new)
    return replace(record, states=tuple(states))


@pytest.mark.parametrize("ply", range(6))
def test_a_replay_names_the_ply_and_the_facts_that_differ(record, tictactoe, ply):
    mark = "x" if ply else "b"
    wrong = changed(record, ply, f"(cell 1 1 {mark})", "(cell 1 1 o) (more of it)")
    why = (
        rf"at ply {ply}, .*facts only in the record: \(cell 1 1 o\) \(more of it\); facts only in the replay: "
        rf"\(cell 1 1 {mark}\)"
    )
    with pytest.raises(GameloreError, match=why):
        wrong.replay(tictactoe)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"moves": (("(mark 1 1)", "noop"),)}, "the number of states to be 6 as recorded, got 2"),
        ({"moves": (("(mark 1 1)",),) * 5}, "the number of moves at ply 0"),
        ({"errors": (("", ""),)}, "the number of lists of errors to be 1 as recorded, got 6"),
        ({"errors": (("", ""),) * 5 + (("",),)}, "the number of errors at ply 5 to be 1 as recorded, got 2"),
        ({"state_times": (1, 2)}, "the number of state times"),
        ({"goal_values": (100,)}, "the number of goals to be 1 as recorded, got 2"),
        ({"goal_values": (0, 100)}, r"the goals to be \(0, 100\) as recorded, got \(100, 0\)"),
        ({"player_names": ("one",)}, "the number of players"),
        ({"states": ("cell 1 1 b",) * 6}, "expected .* at ply 0, got cell 1 1 b"),
        ({"states": ("",) * 6}, "at ply 0, got "),
        ({"states": ("( (cell )",) * 6}, "expected facts at ply 0"),
        ({"states": ("(" * 1000 + ")" * 1000,) * 6}, "at most 200 levels of parentheses"),
        ({"moves": (("(mark 9 9)", "noop"),) * 5}, r"ply 0 differs from the record: .* got \(mark 9 9\)"),
        ({"moves": (("\x1b((", "noop"),) * 5}, r"ply 0 differs from the record: .* got \?\(\("),
    ],
)
def test_a_replay_finds_what_is_wrong(record, tictactoe, changes, why):
    with pytest.raises(GameloreError, match=why):
        replace(record, **changes).replay(tictactoe)


def test_a_replay_finds_a_wrong_end(record, tictactoe):
    for end in ("stuck", "cap"):
        wrong = replace(record, end=end)
        with pytest.raises(GameloreError, match=f"the end to be {end} as recorded, got terminal"):
            wrong.replay(tictactoe)
    early = replace(record, states=record.states[:4], moves=record.moves[:3], errors=(), state_times=())
    with pytest.raises(GameloreError, match="the end to be terminal as recorded, got None"):
        early.replay(tictactoe)
    late = replace(record, moves=(*record.moves, ("noop", "noop")), states=(*record.states, EMPTY))
    with pytest.raises(GameloreError, match=r"ply 5 differs from the record: .*no role \(the match is over\)"):
        replace(late, errors=(), state_times=()).replay(tictactoe)


def test_a_replay_needs_the_right_rules(record):
    with pytest.raises(GameloreError, match="expected the recorded rules of tictactoe, got other rules"):
        record.replay(load("losetictactoe"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "1" * 5000,
        "{}",
        '{"states": []}',
        '{"states": [1], "moves": []}',
        '{"states": {"a": 1}, "moves": []}',
        '{"states": [], "moves": [[1]]}',
        '{"states": [], "moves": ["noop"]}',
        '{"states": [], "moves": [], "startTime": "now"}',
        '{"states": [], "moves": [], "startTime": 1.5}',
        '{"states": [], "moves": [], "startTime": Infinity}',
        '{"states": [], "moves": [], "isCompleted": 1}',
        '{"states": [], "moves": [], "goalValues": [true]}',
        '{"states": [], "moves": [], "gamelore": 1}',
        '{"states": [], "moves": [], "gamelore": {"format": 2}}',
        '{"states": [], "moves": [], "gamelore": {"format": 1, "events": [], "more": 1}}',
        '{"states": [], "moves": [], "gamelore": {"format": 1}}',
        '{"states": [], "moves": [], "gamelore": {"format": 1, "game": 1, "rules_hash": "", "roles": []}}',
        '{"states": [], "moves": [], "gamelore": {"format": 1, "game": "", "rules_hash": 1, "roles": []}}',
        '{"states": [], "moves": [], "gamelore": {"format": 1, "game": "", "rules_hash": "", "roles": [1]}}',
        '{"states": [], "moves": [], "gamelore": {"format": 1, "game": "", "rules_hash": "", "roles": [], "end": 1}}',
        '{"states": [], "moves": [], "gamelore": {"format": 1, "game": "", "rules_hash": "", "events": [1]}}',
        "[" * 100_000,
        '{"states": [], "moves": [], "x": ' + "[" * 100_000,
    ],
    ids=lambda text: text[:50],
)
def test_what_is_no_record(text, tmp_path):
    with pytest.raises(GameloreError, match="expected a GGP match record in JSON, got something else"):
        MatchRecord.from_json(text)
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(GameloreError, match=r"bad\.json: expected a GGP match record"):
        MatchRecord.read(tmp_path / "bad.json")
