from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from gamelore import GameloreError, IllegalMoveError
from gamelore.matches.match import Event, MatchRecord, MatchState
from gamelore.players.player import CAP, STUCK, TERMINAL

LINE = ["(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 2 2)", "(mark 1 3)"]  # x wins along the first row


def play_line(graph, moves: list[str]) -> MatchState:
    match = MatchState(graph)
    go_on(match, moves)
    return match


def go_on(match: MatchState, moves: list[str]) -> None:
    for move in moves:
        mover = match.ply % 2
        match.submit(mover, move)
        match.submit(1 - mover, "noop")


def test_a_match_waits_for_every_role(graph_of) -> None:
    match = MatchState(graph_of("tictactoe"))
    assert (match.pending(), match.ply, match.end, match.goals) == ((0, 1), 0, None, (None, None))
    assert (match.has_choice(0), match.has_choice(1)) == (True, False)
    match.submit(1, 0)
    assert (match.pending(), match.ply) == ((0,), 0)
    match.submit(0, "(mark 2 2)")
    assert (match.pending(), match.ply) == ((0, 1), 1)
    assert match.legal(0) == ["noop"]
    assert "(mark 2 2)" not in match.legal(1)


def test_a_match_ends_in_a_terminal_position(graph_of) -> None:
    match = play_line(graph_of("tictactoe"), LINE)
    assert (match.end, match.goals, match.pending(), match.legal(0)) == ("terminal", (100, 0), (), [])
    finished = match.finished(match=7)
    assert (finished.matches.tolist(), finished.plies.tolist(), finished.ends.tolist()) == ([7], [5], [TERMINAL])
    assert finished.goals.tolist() == [[100, 0]]
    assert finished.choices[0].tolist() == [[0, 0], [0, 2], [0, 0], [0, 1], [0, 0]]
    assert finished.rows[0, 0] == match.graph.start
    assert finished.rows[0, -1] == match.row


@pytest.mark.parametrize("move", ["(mark 1 1)", "(mark 4 4)", "noop", "(mark 1", "", 8, -1])
def test_illegal_moves_change_nothing_and_name_the_legal_ones(graph_of, move) -> None:
    match = play_line(graph_of("tictactoe"), LINE[:2])
    with pytest.raises(IllegalMoveError) as caught:
        match.submit(0, move)
    assert str(caught.value).startswith("expected a legal move of xplayer, got ")
    assert str(caught.value).endswith(f"legal moves: {', '.join(match.legal(0))}")
    assert (match.pending(), match.ply) == ((0, 1), 2)


@pytest.mark.parametrize("joint", [[], [8], [8, 0, 0]])
def test_a_joint_move_has_a_move_of_each_role(graph_of, joint) -> None:
    match = play_line(graph_of("tictactoe"), LINE[:2])
    with pytest.raises(IllegalMoveError, match=f"expected a move for each of 2 roles, got {len(joint)}"):
        match.play(joint)
    assert (match.pending(), match.ply) == ((0, 1), 2)


def test_joint_moves_are_made_again_as_texts_or_as_indices(graph_of) -> None:
    match = play_line(graph_of("tictactoe"), LINE)
    texts = [(move, "noop") if ply % 2 == 0 else ("noop", move) for ply, move in enumerate(LINE)]
    for moves in (texts, match.choices):
        again = MatchState.after(match.graph, moves, max_plies=9)
        assert (again.rows, again.choices, again.end) == (match.rows, match.choices, "terminal")
    assert MatchState.after(match.graph, texts[:2], max_plies=2).end == "cap"
    with pytest.raises(IllegalMoveError, match=r"got \(mark 1 1\)"):
        MatchState.after(match.graph, [*texts[:2], ("(mark 1 1)", "noop")], max_plies=9)


def test_a_joint_move_that_fails_changes_nothing(graph_of, monkeypatch) -> None:
    match = MatchState(graph_of("tictactoe"))

    def fails(rows: object, joint: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(match.graph, "successor", fails)
        match.submit(1, 0)
        with pytest.raises(MemoryError):
            match.submit(0, 3)
    assert (match.pending(), match.ply, match.choices) == ((0,), 0, [])
    match.submit(0, 4)
    assert (match.pending(), match.choices) == ((0, 1), [[4, 0]])
    again = MatchState(match.graph)
    with monkeypatch.context() as patched:
        patched.setattr(match.graph, "successor", fails)
        with pytest.raises(MemoryError):
            again.play((3, 0))
    again.play((4, 0))
    assert again.choices == match.choices


def test_moving_twice_or_after_the_end_is_refused(graph_of) -> None:
    match = MatchState(graph_of("tictactoe"))
    match.submit(0, 3)
    with pytest.raises(IllegalMoveError, match="expected a move of oplayer, got a move of role 0"):
        match.submit(0, 4)
    over = play_line(match.graph, LINE)
    with pytest.raises(IllegalMoveError, match=r"expected a move of no role \(the match is over\)"):
        over.submit(0, 0)


def test_moves_are_read_in_any_spelling(graph_of) -> None:
    match = MatchState(graph_of("tictactoe"))
    match.submit(0, "( MARK  2 2 )")
    match.submit(1, "NoOp")
    assert match.ply == 1


def test_dead_ends_caps_and_missing_goals(graph_of) -> None:
    graph = graph_of("walk")
    stuck, cap, out = MatchState(graph), MatchState(graph, max_plies=3), MatchState(graph)
    for match, moves in ((stuck, ["stay", "trap"]), (cap, ["stay"] * 3), (out, ["leave"])):
        for move in moves:
            assert match.end is None
            match.submit(0, move)
    assert [match.end for match in (stuck, cap, out)] == ["stuck", "cap", "terminal"]
    assert [match.goals for match in (stuck, cap, out)] == [(None,)] * 3
    assert [int(match.finished().ends[0]) for match in (stuck, cap, out)] == [STUCK, CAP, TERMINAL]
    assert [match.finished().goals.tolist() for match in (stuck, cap, out)] == [[[-1]]] * 3


def test_a_running_match_has_no_result(graph_of) -> None:
    with pytest.raises(GameloreError, match="expected a match that is over, got one that is still running at ply 1"):
        play_line(graph_of("tictactoe"), LINE[:1]).finished()


def test_the_turn_of_a_player(graph_of) -> None:
    match = play_line(graph_of("tictactoe"), LINE[:2])
    turn = match.turn(0, np.uint64(2**63 + 1))
    assert (turn.role, turn.lanes.tolist(), turn.rows.tolist()) == (0, [0], [match.row])
    assert (turn.keys.tolist(), turn.plies.tolist()) == ([2**63 + 1], [2])
    assert match.started(4).matches.tolist() == [4]


def finished_record(graph) -> MatchRecord:
    match = play_line(graph, LINE[:2])
    match.note(0, "timeout", "no reply within 10 s")
    go_on(match, LINE[2:])
    return match.record("m", ["a human", "egreedy"], key=(1, 0, "play", 3), settings={"startclock": 10})


def test_the_record_says_what_happened(graph_of) -> None:
    graph = graph_of("tictactoe")
    record = finished_record(graph)
    assert record.game == "tictactoe"
    assert record.rules_hash == graph.game.rules_hash
    assert record.roles == ("xplayer", "oplayer")
    assert record.moves[0] == ("(mark 1 1)", "noop")
    assert record.moves[1] == ("noop", "(mark 2 1)")
    assert (record.goals, record.end, record.key) == ((100, 0), "terminal", (1, 0, "play", 3))
    assert record.events == (Event(2, "xplayer", "timeout", "no reply within 10 s"),)
    assert len(record.states) == 6
    assert record.facts(0) == graph.facts(graph.start)


def test_records_survive_json(graph_of) -> None:
    record = finished_record(graph_of("tictactoe"))
    assert MatchRecord.from_json(record.to_json()) == record
    assert "\n" not in record.to_json()


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_records_replay_on_both_engines(graph_of, load, engine: str) -> None:
    record = finished_record(graph_of("tictactoe"))
    assert record.replay(load("tictactoe", engine)).goals == (100, 0)


@pytest.mark.parametrize(
    ("moves", "end"), [(["stay", "trap"], "stuck"), (["stay"] * 3, "cap"), (["leave"], "terminal")]
)
def test_every_kind_of_end_replays(graph_of, load, moves: list[str], end: str) -> None:
    match = MatchState(graph_of("walk"), max_plies=3)
    for move in moves:
        match.submit(0, move)
    record = match.record("m", ["me"])
    assert record.end == end
    assert record.replay(load("walk")).end == end


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goals": (0, 100)}, r"expected the goals to be \(0, 100\) as recorded, got \(100, 0\)"),
        ({"end": "stuck"}, "expected the end to be stuck as recorded, got terminal"),
        ({"rules_hash": "ff"}, "expected the recorded rules of tictactoe, got other rules"),
        ({"states": ("0" * 16,) * 6}, "expected the state at ply 0 to be 0000000000000000 as recorded, got "),
    ],
)
def test_a_changed_record_does_not_replay(graph_of, change, message: str) -> None:
    graph = graph_of("tictactoe")
    record = dataclasses.replace(finished_record(graph), **change)
    with pytest.raises(GameloreError, match=message):
        record.replay(graph.game)


def test_a_record_with_an_illegal_move_does_not_replay(graph_of) -> None:
    graph = graph_of("tictactoe")
    record = finished_record(graph)
    moves = (record.moves[0], ("noop", "(mark 1 1)"), *record.moves[2:])
    with pytest.raises(GameloreError, match=r"ply 1 .*: expected a legal move of oplayer, got \(mark 1 1\)"):
        dataclasses.replace(record, moves=moves).replay(graph.game)


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{}", '{"events": [{"no": 1}]}', '{"events": [], "who": 1}', "nonsense"]
)
def test_other_json_is_no_record(text: str) -> None:
    with pytest.raises(GameloreError, match="expected a GGP match record in JSON"):
        MatchRecord.from_json(text)


def test_another_format_is_named(graph_of) -> None:
    values = json.loads(finished_record(graph_of("tictactoe")).to_json())
    values["gamelore"]["format"] = 2
    with pytest.raises(GameloreError, match="expected format 1 in the entry 'gamelore', got 2"):
        MatchRecord.from_json(json.dumps(values))
    with pytest.raises(GameloreError, match="expected format 1 in the entry 'gamelore', got 2"):
        MatchRecord.from_json(json.dumps({"state_keys": [], "moves": [], "format": 2}))
