from __future__ import annotations

import numpy as np
import pytest

from gamelore import GameloreError, load
from gamelore.players import position_graph
from gamelore.players.position_graph import PositionGraph

LINES = ["012", "345", "678", "036", "147", "258", "048", "246"]


def reachable_boards() -> dict[str, list[str]]:
    """Every tic-tac-toe board and the boards after it in the order of cells, in plain Python."""
    boards: dict[str, list[str]] = {}
    waiting = ["." * 9]
    while waiting:
        board = waiting.pop()
        if board not in boards:
            mark = "x" if board.count("x") == board.count("o") else "o"
            won = any(
                len({board[int(i)] for i in line} - {"."}) == 1 and all(board[int(i)] != "." for i in line)
                for line in LINES
            )
            free = [] if won else [i for i, cell in enumerate(board) if cell == "."]
            boards[board] = [board[:i] + mark + board[i + 1 :] for i in free]
            waiting += boards[board]
    return boards


def board_of(graph: PositionGraph, row: int) -> str:
    cells = ["?"] * 9
    for fact in graph.facts(row):
        if fact.startswith("(cell"):
            _, x, y, mark = fact.strip("()").split()
            cells[3 * int(x) + int(y) - 4] = "." if mark == "b" else mark
    return "".join(cells)


def expand_all(graph: PositionGraph) -> None:
    done = 0
    while done < graph.num_rows:
        end = graph.num_rows
        graph.expand(np.arange(done, end))
        done = end


def test_tictactoe_is_found_whole_and_right(graph_of) -> None:
    graph = graph_of("tictactoe")
    expand_all(graph)
    boards = reachable_boards()
    found = [board_of(graph, row) for row in range(graph.num_rows)]
    assert len(boards) == graph.num_rows == 5478
    assert set(found) == set(boards)
    assert int(graph.terminal.sum()) == sum(not after for after in boards.values()) == 958
    for row, board in enumerate(found):
        begin = graph.succ_start[row]
        after = graph.successors[begin : begin + graph.num_joint[row]]
        assert [found[child] for child in after] == boards[board]
        mover = int(board.count("x") != board.count("o"))
        assert graph.acting[row].tolist() == [mover == 0, mover == 1]
    assert len(set(graph.keys.tolist())) == graph.num_rows
    assert not graph.stuck.any()


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "tictactoe3p", "pegsolitaire", "othello4"])
def test_both_engines_build_the_same_rows(graph_of, name: str) -> None:
    graphs = [graph_of(name, engine) for engine in ("native", "reasoner")]
    for graph in graphs:
        for _ in range(2):
            graph.expand(np.arange(min(graph.num_rows, 40)))
    native, reasoner = graphs
    assert native.num_rows == reasoner.num_rows
    for column in ("keys", "terminal", "goals", "acting", "num_moves", "num_joint", "succ_start", "successors"):
        assert np.array_equal(getattr(native, column), getattr(reasoner, column)), column
    assert [native.facts(row) for row in range(native.num_rows)] == [
        reasoner.facts(row) for row in range(native.num_rows)
    ]


def test_joint_moves_count_in_mixed_radix_with_the_last_role_fastest(graph_of) -> None:
    graph = graph_of("goofspiel")
    graph.expand([graph.start])
    assert graph.num_moves[graph.start].tolist() == [5, 5]
    assert int(graph.num_joint[graph.start]) == 25
    for red in range(5):
        for blue in range(5):
            child = graph.successor([graph.start], [[red, blue]])[0]
            assert child == graph.successors[graph.succ_start[graph.start] + 5 * red + blue]
            facts = graph.facts(int(child))
            assert f"(holds red {red + 1})" not in facts
            assert f"(holds blue {blue + 1})" not in facts


def test_successors_are_the_same_expanded_or_not(graph_of) -> None:
    lazy, whole = graph_of("goofspiel"), graph_of("goofspiel")
    whole.expand([whole.start])
    choices = np.array([[0, 4], [4, 0], [2, 2]], np.int32)
    starts = np.full(3, lazy.start)
    assert not lazy.expanded[lazy.start]
    found, expected = lazy.successor(starts, choices), whole.successor(starts, choices)
    assert lazy.keys[found].tolist() == whole.keys[expected].tolist()
    assert lazy.num_rows == 4  # only what was played


def test_a_choice_outside_the_legal_moves_is_refused(graph_of) -> None:
    graph = graph_of("tictactoe")
    for choices in ([[9, 0]], [[-1, 0]], [[0, 1]]):
        with pytest.raises(IndexError, match="expected choices that are indices of legal moves"):
            graph.successor([graph.start], choices)


def test_positions_are_expanded_once(graph_of) -> None:
    graph = graph_of("tictactoe")
    graph.expand([0, 0, 0])
    rows, successors = graph.num_rows, graph.successors.copy()
    graph.expand([0])
    assert graph.num_rows == rows == 10
    assert np.array_equal(graph.successors, successors)
    assert graph.intern(graph.states[[3, 3, 0]]).tolist() == [3, 3, 0]


def test_a_part_of_an_expansion_that_fails_leaves_the_parts_before_whole(graph_of, monkeypatch) -> None:
    """Rows that count as expanded have their successors in the array, whatever ends the next part."""
    monkeypatch.setattr(position_graph, "_BATCH", 16)
    graph, whole = graph_of("tictactoe"), graph_of("tictactoe")
    for each in (graph, whole):
        each.expand([each.start])
    rows, calls, real = np.arange(1, 10), [], graph.game.next

    def failing(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(graph.game, "next", failing)
    with pytest.raises(KeyboardInterrupt):
        graph.expand(rows)
    done = rows[graph.expanded[rows]]
    assert 0 < len(done) < len(rows)
    ends = graph.succ_start[done] + graph.num_joint[done]
    assert ends.max() <= len(graph.successors)
    graph.expand(rows)
    whole.expand(rows)
    for row in rows:
        assert graph.successors_of([row]).tolist() == whole.successors_of([row]).tolist()


def test_children_are_the_open_positions_below(graph_of) -> None:
    graph = graph_of("tree")
    assert graph.children([graph.start]).tolist() == [1, 2]  # the third is a leaf
    assert sorted(graph.children([1, 2, 2]).tolist()) == [int(graph.successors[graph.succ_start[2] + 1])]


def test_legal_moves_come_in_action_order(graph_of) -> None:
    graph = graph_of("tictactoe")
    game = graph.game
    texts = [game.move_text(0, action) for action in graph.legal(graph.start, 0)]
    assert texts == game.start().legal["xplayer"]
    assert [game.move_text(1, action) for action in graph.legal(graph.start, 1)] == ["noop"]


def test_stuck_is_open_with_a_role_that_cannot_move(graph_of) -> None:
    graph = graph_of("walk")
    graph.expand([graph.start])
    stay, trap, leave = graph.successors[:3]
    assert stay == graph.start
    graph.list_moves([trap, leave])
    assert graph.stuck[[stay, trap, leave]].tolist() == [False, True, False]
    assert graph.terminal[[stay, trap, leave]].tolist() == [False, False, True]
    assert graph.num_joint[[trap, leave]].tolist() == [0, 0]
    assert graph.goals[leave].tolist() == [-1]


def test_a_full_graph_says_what_to_do(graph_of) -> None:
    graph = graph_of("tictactoe", max_rows=8)
    with pytest.raises(GameloreError, match=r"at most 8 positions of tictactoe.*max_rows"):
        graph.expand([graph.start])
    assert graph.num_rows == 8
    assert len(graph.keys) == len(graph.terminal) == 8
    assert graph.intern(graph.states).tolist() == list(range(8))


def test_too_many_joint_moves_say_what_to_do(graph_of) -> None:
    graph = graph_of("goofspiel", max_joint_moves=24)
    with pytest.raises(GameloreError, match=r"at most 24 joint moves in a position, got 5 x 5.*max_joint_moves"):
        graph.expand([graph.start])
    assert graph.successor([graph.start], [[1, 2]]).tolist() == [1]


def test_memos_are_made_once_per_graph(graph_of) -> None:
    one, other = graph_of("tictactoe"), graph_of("tictactoe")
    made: list[PositionGraph] = []

    def make(graph: PositionGraph) -> int:
        made.append(graph)
        return len(made)

    assert [one.memo(make), other.memo(make), one.memo(make)] == [1, 2, 1]
    assert made == [one, other]


def test_distinct_rows_keep_their_order(graph_of) -> None:
    graph = graph_of("tictactoe")
    graph.expand([graph.start])
    for _ in range(2):  # no trace is left behind
        assert graph.distinct([4, 2, 4, 0, 2, 9]).tolist() == [4, 2, 0, 9]
    assert graph.distinct([]).tolist() == []


def test_walks_through_positions_with_more_joint_moves_than_an_integer_counts() -> None:
    """70 roles with two moves each have 2^70 joint moves; the number of the last one was -1, as of no legal move."""
    roles = " ".join(f"(role r{number}) (legal r{number} up) (legal r{number} down)" for number in range(70))
    rules = roles + " (init (at here)) (<= (next (at there)) (does r0 down)) (<= (next (at here)) (does r0 up))"
    rules += " (<= terminal (true (at there))) (<= (goal ?r 100) (role ?r))"
    graph = PositionGraph(load(rules))
    rows = np.repeat(np.int32(graph.start), 3)
    choices = np.stack([np.zeros(70), np.ones(70), np.arange(70) % 2]).astype(np.int32)
    after = graph.successor(rows, choices)
    assert graph.game.move_text(0, int(graph.legal(graph.start, 0)[0])) == "up"
    assert graph.terminal[after].tolist() == [False, True, False]
    choices[1, 69] = 2
    with pytest.raises(IndexError):
        graph.successor(rows, choices)
