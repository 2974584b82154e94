"""Exact expected goals against known opponents: by hand, by plain expectimax, and as what the best play really gets."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from gamelore import GameloreError, load
from gamelore.learning.td.afterstates import own_afterstates
from gamelore.matches.lockstep import Uniform, expected
from gamelore.matches.opponents import Opponent, OpponentSettings
from gamelore.players.lookahead import MoveClasses
from gamelore.players.player import Memoryless, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import extend, stream
from gamelore.rulesheets import path
from gamelore.solver.best_response import BestResponse, expand_all
from learning.small_games import ASTRAY, PENNIES, PENNIES_TWICE, TREE, WAITING

LINES = ["012", "345", "678", "036", "147", "258", "048", "246"]
ROWS = {"xplayer": "x", "oplayer": "o"}


def value(text: str, opponent: Memoryless, epsilon: float = 0.0, engine: str = "auto") -> float:
    return BestResponse(PositionGraph(load(text, engine=engine)), 0, opponent, epsilon).expected  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_a_tree_by_hand(engine: str) -> None:
    # Against random, epsilon 0.2: C = 0.8 * 100 + 0.2 * 75 = 95, A = (0 + 95) / 2 = 47.5, B = E = 100, d = 50;
    # root = 0.8 * 100 + 0.2 * (47.5 + 100 + 100 + 50) / 4.
    graph = PositionGraph(load(TREE, engine=engine))  # type: ignore[arg-type]
    exact = BestResponse(graph, 0, Uniform(), 0.2)
    assert exact.expected == pytest.approx(94.875)
    after = graph.successors_of([graph.start])
    assert exact.values_of(after) == pytest.approx([47.5, 100, 100, 50])
    # egreedy takes the loss at A, and explores with probability 0.1
    greedy = BestResponse(graph, 0, Opponent(OpponentSettings("egreedy", "first", 0.1)))
    assert greedy.values_of(after) == pytest.approx([5, 100, 100, 50])
    # as black: A is 100, and so is the best that white can be hoped to choose
    assert BestResponse(graph, 1, Uniform()).expected == pytest.approx((100 + 0 + 0 + 50) / 4)


# White, then black, then grey choose a or b.
IN_TURN = """
(role white) (role black) (role grey)
(init (control white))
(move a) (move b)
(<= (legal ?p ?m) (true (control ?p)) (move ?m))
(<= (legal ?p noop) (role ?p) (true (control ?q)) (distinct ?p ?q))
(<= (next (chose ?p ?m)) (does ?p ?m) (move ?m))
(<= (next (chose ?p ?m)) (true (chose ?p ?m)))
(<= (next (control black)) (true (control white)))
(<= (next (control grey)) (true (control black)))
(<= (next over) (true (control grey)))
(<= terminal (true over))
(<= all (true (chose white a)) (true (chose black a)) (true (chose grey a)))
(<= (goal white 100) all)
(<= (goal white 40) (true (chose white b)))
(<= (goal white 0) (true (chose white a)) (not all))
(goal black 0)
(<= (goal grey 100) (true (chose black ?m)) (true (chose grey ?m)))
(<= (goal grey 0) (true (chose black ?m)) (not (true (chose grey ?m))))
"""


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_three_roles_of_which_two_move_in_a_row(engine: str) -> None:
    """White gets 100 / 4 for a, and 40 for b; grey sees what black chose."""
    graph = PositionGraph(load(IN_TURN, engine=engine))  # type: ignore[arg-type]
    assert BestResponse(graph, 0, Uniform(), 0.2).expected == pytest.approx(0.8 * 40 + 0.2 * (25 + 40) / 2)
    assert BestResponse(graph, 2, Uniform(), 0.2).expected == pytest.approx(0.8 * 100 + 0.2 * 50)


def test_where_both_choose_at_once() -> None:
    graph = PositionGraph(load(PENNIES))
    assert BestResponse(graph, 0, Uniform()).expected == pytest.approx(50)
    first = BestResponse(graph, 0, Opponent(OpponentSettings("egreedy", "first", 0.2)))
    graph.list_moves([graph.start])
    pairs = np.array([~graph.move_start[graph.start, 0], ~(graph.move_start[graph.start, 0] + 1)], np.int32)
    assert first.values_of(pairs) == pytest.approx([90, 10])
    assert value(PENNIES_TWICE, Uniform()) == pytest.approx(25)
    assert value(PENNIES_TWICE, Opponent(OpponentSettings("egreedy", "first", 0.0))) == pytest.approx(100)


def test_matches_without_an_end_or_a_goal_count_nothing() -> None:
    assert value(ASTRAY, Uniform()) == 0
    assert value(WAITING, Uniform()) == pytest.approx(100)
    # to end pays the best that blue can get, so a weak blue passes for ever
    assert value(WAITING, Opponent(OpponentSettings("weak", "first", 0.0))) == 0


def board_of(facts: frozenset[str]) -> str:
    cells = ["."] * 9
    for fact in facts:
        if cell := re.fullmatch(r"\(cell (\d) (\d) ([xo])\)", fact):
            cells[3 * int(cell[1]) + int(cell[2]) - 4] = cell[3]
    return "".join(cells)


def has_line(board: str, mark: str) -> bool:
    return any(all(board[int(i)] == mark for i in line) for line in LINES)


def put(board: str, mark: str) -> list[str]:
    return [board[:i] + mark + board[i + 1 :] for i, cell in enumerate(board) if cell == "."]


def likely(board: str, kind: str) -> list[tuple[str, float]]:
    """The replies of an opponent with a random filler and epsilon 0.1, with their probabilities, from the paper."""
    replies = put(board, "o")
    if kind == "random":
        return [(reply, 1 / len(replies)) for reply in replies]
    winning = [reply for reply in replies if has_line(reply, "o")]
    giving = [r for r in replies if r not in winning and any(has_line(after, "x") for after in put(r, "x"))]
    neither = [reply for reply in replies if reply not in winning + giving]
    orders = {"egreedy": (winning, neither, giving), "weak": (giving, neither, winning)}
    wanted = next(group for group in orders[kind] if group)
    return [(reply, 0.1 / len(replies) + 0.9 * (reply in wanted) / len(wanted)) for reply in replies]


@pytest.mark.parametrize("kind", ["egreedy", "weak", "random"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_as_plain_expectimax_in_all_of_tictactoe(kind: str, epsilon: float) -> None:
    @cache
    def plain(board: str) -> float:
        if has_line(board, "x") or has_line(board, "o") or "." not in board:
            return 100.0 if has_line(board, "x") else 0.0 if has_line(board, "o") else 50.0
        if board.count("x") > board.count("o"):
            return sum(share * plain(reply) for reply, share in likely(board, kind))
        values = list(map(plain, put(board, "x")))
        return (1 - epsilon) * max(values) + epsilon * sum(values) / len(values)

    graph = PositionGraph(load("tictactoe"))
    exact = BestResponse(graph, 0, Opponent(OpponentSettings(kind, "random", 0.1)), epsilon)  # type: ignore[arg-type]
    assert exact.expected == pytest.approx(plain("." * 9), abs=1e-4)
    boards = [board_of(graph.facts(row)) for row in range(graph.num_rows)]
    assert len(set(boards)) == graph.num_rows == 5478
    assert exact.values_of(np.arange(graph.num_rows, dtype=np.int32)) == pytest.approx(
        list(map(plain, boards)), abs=1e-4
    )


@pytest.mark.parametrize("kind", ["egreedy", "weak"])
def test_both_engines_agree(kind: str) -> None:
    """In tic-tac-toe with marks in four cells; on the reasoner the whole game takes too long."""
    cells = zip(product("123", repeat=2), "xobbobbbx", strict=True)
    inits = "".join(f"(init (cell {x} {y} {mark}))" for (x, y), mark in cells)
    text = path("tictactoe").read_text(encoding="utf-8")
    text = text.replace("(<= (init (cell ?x ?y b)) (index ?x) (index ?y))", inits)
    opponent = Opponent(OpponentSettings(kind, "hashed", 0.1, hash_key=5))  # type: ignore[arg-type]
    assert value(text, opponent, 0.1, "reasoner") == value(text, opponent, 0.1, "native") < 100


class Greedy:
    """The moves of highest exact value, one of them at random."""

    def __init__(self, exact: BestResponse) -> None:
        self.exact = exact

    def distribution(self, graph: PositionGraph, rows: NDArray[np.int32], role: int) -> NDArray[np.float64]:
        shares = []
        for row in rows:
            moves = graph.num_moves, graph.move_start, graph.succ_start, graph.successors
            values = self.exact.values_of(own_afterstates(np.array([row], np.int32), role, *moves))
            best = values > values.max() - 1e-6
            shares.append(best / best.sum())
        return np.concatenate(shares)


@pytest.mark.parametrize("name", ["othello4", "goofspiel", "losetictactoe"])
@pytest.mark.parametrize("settings", [("random",), ("egreedy", "hashed", 0.05, 3), ("weak", "random", 0.05)])
def test_best_play_gets_what_was_promised(name: str, settings: tuple[str, ...]) -> None:
    graph, opponent = PositionGraph(load(name)), Opponent(OpponentSettings(*settings))  # type: ignore[arg-type]
    exact = BestResponse(graph, 0, opponent)
    promised = exact.expected
    got = expected(graph, [Greedy(exact), opponent]).mean(0)
    assert got == pytest.approx(promised, abs=1e-3)
    assert expected(graph, [Uniform(), opponent]).mean(0) < promised


@pytest.mark.parametrize("filler", ["first", "hashed"])
@pytest.mark.parametrize("kind", ["egreedy", "weak"])
def test_the_probabilities_are_those_of_the_choices(kind: str, filler: str) -> None:
    graph = PositionGraph(load("losetictactoe"))
    expand_all(graph)
    opponent = Opponent(OpponentSettings(kind, filler, 0.0, 11))  # type: ignore[arg-type]
    rows = np.flatnonzero(graph.num_moves[:, 1] > 1).astype(np.int32)
    keys = extend(stream(1), np.arange(len(rows)))
    turn = Turn(graph, 1, np.zeros(len(rows), np.int64), rows, keys, np.zeros(len(rows), np.int32))
    shares = np.split(opponent.distribution(graph, rows, 1), np.cumsum(graph.num_moves[rows, 1])[:-1])
    assert [share.argmax() for share in shares] == opponent.choose(turn).tolist()
    assert {share.max() for share in shares} == {1.0}


def test_moves_are_classified_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, classified = PositionGraph(load("tictactoe")), []
    expand_all(graph)
    classify = MoveClasses.classify
    monkeypatch.setattr(MoveClasses, "classify", lambda *given: (classified.append(len(given[1])), classify(*given))[1])
    for hash_key in range(3):
        BestResponse(graph, 0, Opponent(OpponentSettings("weak", "hashed", 0.0, hash_key))).solve()
    assert classified == [(graph.num_moves[:, 1] > 1).sum()]


def test_a_random_filler_shares_among_equally_good_moves() -> None:
    graph = PositionGraph(load("tictactoe"))
    opponent = Opponent(OpponentSettings("egreedy", "random", 0.1))
    start = np.array([graph.start], np.int32)
    assert opponent.distribution(graph, start, 0) == pytest.approx([1 / 9] * 9)
    assert opponent.distribution(graph, start, 1).tolist() == [1.0]


def test_a_game_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMELORE_ORACLE_MIB", "2")
    with pytest.raises(
        GameloreError, match=r"expected all positions of othello4 .* at most 2 MiB.*GAMELORE_ORACLE_MIB"
    ):
        value("othello4", Uniform())
    monkeypatch.setenv("GAMELORE_ORACLE_MIB", "much")
    with pytest.raises(GameloreError, match="expected a number of MiB in GAMELORE_ORACLE_MIB, got 'much'"):
        value("tictactoe", Uniform())


def test_too_many_opponents_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMELORE_ORACLE_MIB", "2")
    graph = PositionGraph(load("tictactoe"))
    tables = [BestResponse(graph, 0, Uniform()) for _ in range(200)]
    with pytest.raises(GameloreError, match=r"exact values of tictactoe .* different opponents; play fewer series"):
        sum(exact.expected for exact in tables)
