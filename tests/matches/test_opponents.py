from __future__ import annotations

import numpy as np
import pytest

from gamelore import GameloreError
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.lookahead import GIVES, LOSS, NEUTRAL, WIN, MoveClasses
from gamelore.players.player import Started, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import extend, stream

LINES = ["012", "345", "678", "036", "147", "258", "048", "246"]


def ask(
    graph: PositionGraph, row: int, role: int, settings: OpponentSettings, times: int = 400, seed: int = 1
) -> list[str]:
    """The moves of one opponent asked many times, with other streams each time."""
    graph.list_moves([row])
    turn = Turn(
        graph,
        role,
        np.arange(times),
        np.full(times, row, np.int32),
        extend(stream(seed), np.arange(times)),
        np.zeros(times, np.int32),
    )
    legal = graph.legal(row, role)
    return [graph.game.move_text(role, int(legal[choice])) for choice in Opponent(settings).choose(turn)]


def classes_of(graph: PositionGraph, row: int, role: int) -> dict[str, int]:
    table = graph.memo(MoveClasses)
    table.classify(np.array([row], np.int32), role)
    begin = graph.move_start[row, role]
    legal = graph.legal(row, role)
    classes = table.classes[begin : begin + len(legal)]
    return {graph.game.move_text(role, int(a)): int(c) for a, c in zip(legal, classes, strict=True)}


def has_line(board: str, mark: str) -> bool:
    return any(all(board[int(i)] == mark for i in line) for line in LINES)


def expected_class(board: str, cell: int, mark: str, other: str) -> int:
    """The class of a mark in tic-tac-toe, in plain Python."""
    after = board[:cell] + mark + board[cell + 1 :]
    if has_line(after, mark):
        return WIN
    free = [i for i, c in enumerate(after) if c == "."]
    gives = any(has_line(after[:i] + other + after[i + 1 :], other) for i in free)
    return GIVES if gives else NEUTRAL


def test_classes_agree_with_brute_force_in_all_of_tictactoe(graph_of) -> None:
    graph = graph_of("tictactoe")
    done = 0
    while done < graph.num_rows:
        end = graph.num_rows
        graph.expand(np.arange(done, end))
        done = end
    table = graph.memo(MoveClasses)
    open_rows = np.flatnonzero(~graph.terminal).astype(np.int32)
    table.classify(open_rows, 0)
    table.classify(open_rows, 1)
    checked = 0
    for row in open_rows:
        cells = {fact for fact in graph.facts(int(row)) if fact.startswith("(cell")}
        board = "".join(
            mark if mark != "b" else "."
            for i in range(9)
            for mark in "xob"
            if f"(cell {i // 3 + 1} {i % 3 + 1} {mark})" in cells
        )
        role = int(graph.acting[row, 1])
        marks = "xo" if role == 0 else "ox"
        begin = graph.move_start[row, role]
        found = table.classes[begin : begin + graph.num_moves[row, role]].tolist()
        free = [i for i, cell in enumerate(board) if cell == "."]
        assert found == [expected_class(board, i, marks[0], marks[1]) for i in free]
        checked += 1
    assert checked == 4520


def test_completing_a_line_is_a_loss_in_lose_tictactoe(graph_of, row_at) -> None:
    graph = graph_of("losetictactoe")
    classes = classes_of(graph, row_at(graph, "xx. o.. .o."), 0)
    assert classes["(mark 1 3)"] == LOSS
    assert set(classes.values()) == {LOSS, NEUTRAL}


def test_classes_where_both_choose_at_once(graph_of) -> None:
    graph = graph_of("one_shot")
    # after c some joint move loses: the worst of the next ply counts, whoever brings it about
    assert classes_of(graph, graph.start, 0) == {"a": WIN, "b": LOSS, "c": GIVES, "d": NEUTRAL}
    # column decides nothing for sure, and either move may lose: row may have chosen a
    assert classes_of(graph, graph.start, 1) == {"x": LOSS, "y": LOSS}


def test_two_replies_count_with_three_players(graph_of) -> None:
    graph = graph_of("tictactoe3p")
    marks = {"(cell 1 1 o)", "(cell 1 2 o)", "(cell 3 1 z)", "(cell 3 2 z)", "(cell 2 1 x)", "(cell 4 4 x)"}
    taken = {mark.rsplit(" ", 1)[0] for mark in marks}
    blank = {f"(cell {x} {y} b)" for x in range(1, 5) for y in range(1, 5) if f"(cell {x} {y}" not in taken}
    row = int(graph.intern(graph.game.state(marks | blank | {"(control xplayer)"})[None])[0])
    classes = classes_of(graph, row, 0)
    # oplayer wins at (1 3), and zplayer, who comes after it, at (3 3): neither block stops both
    assert set(classes.values()) == {GIVES}
    without = (marks - {"(cell 1 2 o)"}) | {"(cell 4 1 o)"}
    blank = (blank - {"(cell 4 1 b)"}) | {"(cell 1 2 b)"}
    row = int(graph.intern(graph.game.state(without | blank | {"(control xplayer)"})[None])[0])
    classes = classes_of(graph, row, 0)
    # now only the second reply loses, and blocking it is neutral
    assert classes.pop("(mark 3 3)") == NEUTRAL
    assert set(classes.values()) == {GIVES}


def test_a_single_player_gets_no_replies(graph_of) -> None:
    graph = graph_of("pegsolitaire")
    assert set(classes_of(graph, graph.start, 0).values()) == {NEUTRAL}


@pytest.mark.parametrize("filler", ["random", "first", "hashed"])
def test_egreedy_takes_the_win(graph_of, row_at, filler) -> None:
    graph = graph_of("tictactoe")
    moves = ask(graph, row_at(graph, "xx. oo. ..."), 0, OpponentSettings("egreedy", filler, epsilon=0.0))
    assert set(moves) == {"(mark 1 3)"}


@pytest.mark.parametrize("filler", ["random", "first", "hashed"])
def test_egreedy_blocks(graph_of, row_at, filler) -> None:
    graph = graph_of("tictactoe")
    moves = ask(graph, row_at(graph, "xx. o.. ..."), 1, OpponentSettings("egreedy", filler, epsilon=0.0))
    assert set(moves) == {"(mark 1 3)"}


def test_egreedy_is_indifferent_among_moves_that_lose(graph_of, row_at) -> None:
    graph = graph_of("tictactoe")
    fork = row_at(graph, "xox .o. x.o")  # o to move would be wrong: x has two lines open
    assert graph.acting[fork].tolist() == [True, False]
    row = row_at(graph, "x.x .o. x.o")  # o cannot stop both (mark 1 2) and (mark 2 1)
    moves = ask(graph, row, 1, OpponentSettings("egreedy", epsilon=0.0))
    assert set(moves) == {"(mark 1 2)", "(mark 2 1)", "(mark 2 3)", "(mark 3 2)"}


def test_weak_gives_the_win_away(graph_of, row_at) -> None:
    graph = graph_of("tictactoe")
    moves = ask(graph, row_at(graph, "xx. o.. ..."), 1, OpponentSettings("weak", epsilon=0.0))
    assert set(moves) == {"(mark 2 2)", "(mark 2 3)", "(mark 3 1)", "(mark 3 2)", "(mark 3 3)"}


def test_weak_wins_only_when_nothing_else_is_left(graph_of, row_at) -> None:
    graph = graph_of("tictactoe")
    settings = OpponentSettings("weak", epsilon=0.0)
    assert "(mark 1 3)" not in ask(graph, row_at(graph, "xx. oo. ..."), 0, settings)
    assert set(ask(graph, row_at(graph, "xx. oox xoo"), 0, settings)) == {"(mark 1 3)"}


def test_weak_prefers_losing_at_once(graph_of, row_at) -> None:
    graph = graph_of("losetictactoe")
    row = row_at(graph, "xx. o.. .o.")
    assert set(ask(graph, row, 0, OpponentSettings("weak", epsilon=0.0))) == {"(mark 1 3)"}
    assert "(mark 1 3)" not in ask(graph, row, 0, OpponentSettings("egreedy", epsilon=0.0))


def test_random_uses_all_moves_evenly_and_expands_nothing(graph_of) -> None:
    graph = graph_of("tictactoe")
    moves = ask(graph, graph.start, 0, OpponentSettings("random", filler="first"), times=9000)
    counts = [moves.count(move) for move in sorted(set(moves))]
    assert len(counts) == 9
    assert max(counts) - min(counts) < 200  # about six standard deviations
    assert graph.num_rows == 1


def test_explores_with_the_given_probability(graph_of, row_at) -> None:
    graph = graph_of("tictactoe")
    row = row_at(graph, "xx. oo. ...")  # five moves, one of them the win
    moves = ask(graph, row, 0, OpponentSettings("egreedy", epsilon=0.2), times=20_000)
    other = sum(move != "(mark 1 3)" for move in moves) / len(moves)
    assert other == pytest.approx(0.2 * 4 / 5, abs=0.012)
    assert len(set(moves)) == 5


def test_fillers(graph_of) -> None:
    graph = graph_of("connect3")
    first = ask(graph, graph.start, 0, OpponentSettings("egreedy", "first", epsilon=0.0))
    assert set(first) == {graph.game.start().legal[graph.game.roles[0]][0]}
    drawn = ask(graph, graph.start, 0, OpponentSettings("egreedy", "random", epsilon=0.0))
    assert len(set(drawn)) == 5
    hashed = [
        ask(graph, graph.start, 0, OpponentSettings("egreedy", "hashed", epsilon=0.0, hash_key=key))
        for key in range(40)
    ]
    assert all(len(set(moves)) == 1 for moves in hashed)  # one order of moves, whatever the stream
    assert len({moves[0] for moves in hashed}) == 5  # another order with another key


def test_hashed_choices_do_not_depend_on_the_engine(graph_of) -> None:
    settings = OpponentSettings("weak", "hashed", epsilon=0.3, hash_key=5)
    moves = [ask(graph_of("tictactoe", engine), 0, 0, settings, times=50) for engine in ("native", "reasoner")]
    assert moves[0] == moves[1]


def test_every_lane_has_its_own_settings(graph_of, row_at) -> None:
    graph = graph_of("tictactoe")
    row = row_at(graph, "xx. o.. ...")
    opponent = Opponent([OpponentSettings("egreedy", epsilon=0.0), OpponentSettings("weak", "first", epsilon=0.0)])
    graph.list_moves([row])
    keys = np.array([1, 2], np.uint64)
    turn = Turn(graph, 1, np.array([0, 1]), np.full(2, row, np.int32), keys, np.zeros(2, np.int32))
    legal = [graph.game.move_text(1, int(action)) for action in graph.legal(row, 1)]
    assert [legal[choice] for choice in opponent.choose(turn)] == ["(mark 1 3)", "(mark 2 2)"]


def test_a_lane_without_settings_is_refused(graph_of) -> None:
    opponent = Opponent([OpponentSettings(), OpponentSettings()])
    started = Started(graph_of("tictactoe"), np.arange(3), np.zeros(3, np.int64))
    with pytest.raises(GameloreError, match="expected settings for 3 lanes, got 2"):
        opponent.begin(0, started)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "strong"}, "expected the setting kind to be egreedy, random or weak, got 'strong'"),
        ({"filler": "last"}, "expected the setting filler to be random, first or hashed, got 'last'"),
        ({"epsilon": 1.5}, "expected an epsilon from 0 to 1, got 1.5"),
    ],
)
def test_wrong_settings_are_refused(settings, message) -> None:
    with pytest.raises(GameloreError) as caught:
        OpponentSettings(**settings)
    assert str(caught.value).startswith(message)
