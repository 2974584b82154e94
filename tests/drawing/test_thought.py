"""What a search thinks, drawn: where moves act, the picture and the text, and `gamelore.think`."""

from __future__ import annotations

import re
from time import monotonic
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import gamelore
from gamelore import MoveThought, Position, Thought
from gamelore.drawing.board import Boards, Place
from gamelore.drawing.clicks import ClickMap
from gamelore.drawing.position import FAINTEST, STRONGEST
from gamelore.drawing.thought import MOST_LABELS, Way, facts_after, thought_signs, thought_text, way_of
from gamelore.puzzles.portfolio import PuzzleSearch
from gamelore.search.thinking import Search

CELL = ("cell", 3)
# Two roles take turns to mark one of four squares or to pass.
PASSING = (
    "(role a) (role b) (init (control a)) (<= (goal ?r 50) (role ?r)) (<= terminal (true (cell 2 2 a)))"
    "(init (cell 1 1 x)) (init (cell 1 2 x)) (init (cell 2 1 x)) (init (cell 2 2 x))"
    "(<= (legal ?r (mark ?x ?y)) (true (control ?r)) (true (cell ?x ?y x))) (<= (legal ?r pass) (role ?r))"
    "(<= (next (control b)) (true (control a))) (<= (next (control a)) (true (control b)))"
    "(<= (next (cell ?x ?y ?r)) (does ?r (mark ?x ?y))) (<= (marked ?x ?y) (does ?r (mark ?x ?y)))"
    "(<= (next (cell ?x ?y ?c)) (true (cell ?x ?y ?c)) (not (marked ?x ?y)))"
)


def thought_of(
    position: Position, *told: tuple[str, int, float, int, int], line: tuple[tuple[str, ...], ...] = ()
) -> Thought:
    """A thought about moves of the role that chooses, given as (move, visits, mean, low, high)."""
    role = next(role for role, moves in position.legal.items() if len(moves) > 1)
    moves = [
        MoveThought(position.legal[role].index(move), move, visits, mean, low, high, None, False)
        for move, visits, mean, low, high in told
    ]
    return Thought(position, {role: moves}, line, 1000, 0.5, 77, False)


def way(position: Position, move: str) -> Way | None:
    boards = Boards.of(position.game)
    joint = [move if move in legal else legal[0] for legal in position.legal.values()]
    return way_of(boards, boards.lay(position.facts), boards.lay(position.play(joint).facts), move)


def played(name: str, *moves: str) -> Position:
    position = gamelore.load(name).start()
    for move in moves:
        position = position.play([move if move in legal else legal[0] for legal in position.legal.values()])
    return position


def test_where_moves_act() -> None:
    assert way(played("tictactoe"), "(mark 2 3)") == Way(Place(CELL, ("2", "3")), None)
    assert way(played("connectfour", "(drop 4)"), "(drop 4)") == Way(Place(CELL, ("4", "2")), None)
    assert way(played("breakthrough"), "(move 1 1 1 2)") == Way(Place(CELL, ("1", "2")), Place(CELL, ("1", "1")))


def test_a_reversal_acts_where_the_new_disc_lies() -> None:
    """In othello4, other discs change their colour; the move is at the place that was empty."""
    position = played("othello4")
    move = next(moves[0] for moves in position.legal.values() if len(moves) > 1)
    assert way(position, move) == Way(Place(CELL, tuple(move.strip("()").split()[1:])), None)


def test_a_capture_acts_where_the_captured_piece_lies() -> None:
    position = played("breakthrough", "(move 1 1 1 2)", "(move 2 5 2 4)", "(move 1 2 1 3)")
    assert way(position, "(move 2 4 1 3)") == Way(Place(CELL, ("1", "3")), Place(CELL, ("2", "4")))
    thought = thought_of(position, ("(move 2 4 1 3)", 990, 88.0, 0, 100), ("(move 1 5 1 4)", 10, 5.0, 0, 100))
    assert "88" not in thought_text(thought), "the piece is shown"
    texts, _ = shapes(thought._repr_svg_())
    assert "88" in texts
    assert "99%" not in texts, "the badge leaves room for the piece"


def test_a_turn_beside_the_board_is_no_place_from_which_pieces_come() -> None:
    position = gamelore.load(PASSING).start()
    table, after = ClickMap.of(position.game).tabletop, position.play(["(mark 1 2)", "pass"])
    assert table.trays, "whose turn it is lies beside the board, for passes"
    acts = way_of(table, table.lay(position.facts), table.lay(after.facts), "(mark 1 2)")
    assert acts == Way(Place(CELL, ("1", "2")), None)


def test_a_move_that_changes_no_board_acts_nowhere() -> None:
    position = played("goofspiel")
    assert {way(position, move) for move in position.legal["red"]} == {None}


def test_the_text_has_values_in_empty_places() -> None:
    position = played("tictactoe", "(mark 2 2)")
    thought = thought_of(position, ("(mark 1 1)", 900, 49.6, 0, 100), ("(mark 1 2)", 100, 12.2, 0, 0))
    text = thought_text(thought)
    assert re.search(r"1 \| 50\b", text), text
    assert "=0" in text
    told = str(thought)
    assert "1,000 simulations in 0.50 s (2,000 a second), 77 positions in memory" in told
    assert "oplayer: (mark 1 1) 50 (900), (mark 1 2) =0 (100)" in told


def shapes(picture: str) -> tuple[list[str], list[str]]:
    """The texts and the names of the elements of an SVG picture."""
    root = ElementTree.fromstring(picture)
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    return [element.text or "" for element in root.iter() if element.tag.endswith("text")], names


def test_the_picture_has_badges_arrows_and_small_boards() -> None:
    position = played("breakthrough")
    line = (("(move 1 1 1 2)", "noop"), ("noop", "(move 1 5 2 4)"))
    thought = thought_of(
        position, ("(move 1 1 1 2)", 750, 61.0, 0, 100), ("(move 2 1 2 2)", 250, 40.0, 0, 100), line=line
    )
    texts, names = shapes(thought._repr_svg_())
    assert {"61", "75%", "40", "25%", "(move 1 1 1 2)", "(move 1 5 2 4)"} <= set(texts)
    assert names.count("polygon") == 2 + 2  # an arrow for each move, and one on each small board
    assert names.count("svg") == 1 + 1 + 2
    assert "best line: (move 1 1 1 2) (move 1 5 2 4)" in texts


def test_two_moves_to_one_place_have_one_badge() -> None:
    thought = thought_of(
        played("breakthrough"), ("(move 1 1 2 2)", 600, 61.0, 0, 100), ("(move 2 1 2 2)", 400, 40.0, 0, 100)
    )
    texts, names = shapes(thought._repr_svg_())
    assert "61" in texts
    assert "40" not in texts
    assert names.count("polygon") == 2


def test_places_are_shaded_by_the_visits_of_their_moves() -> None:
    thought = thought_of(played("tictactoe"), ("(mark 1 1)", 800, 49.6, 0, 100), ("(mark 1 2)", 200, 12.2, 0, 100))
    signs = thought_signs(Boards.of(thought.position.game), thought)
    assert signs.heat == {Place(CELL, ("1", "1")): 1.0, Place(CELL, ("1", "2")): 0.25}
    shades = re.findall(r'fill-opacity="([\d.]+)"', thought._repr_svg_())
    assert shades == [f"{STRONGEST:.2f}", f"{FAINTEST + 0.25 * (STRONGEST - FAINTEST):.2f}"]


def test_many_moves_have_numbers_and_the_best_of_them_badges() -> None:
    position = played("fivemensmorris")
    moves = [(move, 100 - number, 99.0 - number, 0, 100) for number, move in enumerate(position.legal["black"])]
    signs = thought_signs(Boards.of(position.game), thought_of(position, *moves))
    marks = list(signs.marks)[::-1]
    assert len(marks) == len(signs.heat) == len(moves) == 16
    assert [mark.is_plain for mark in marks] == [False] * MOST_LABELS + [True] * (16 - MOST_LABELS)
    assert [len(mark.texts) for mark in marks] == [2] * MOST_LABELS + [1] * (16 - MOST_LABELS)


def test_moves_that_were_never_tried_are_not_drawn() -> None:
    position = played("breakthrough")
    thought = thought_of(position, ("(move 1 1 1 2)", 10, 61.0, 0, 100))
    untried = MoveThought(
        position.legal["white"].index("(move 2 1 2 2)"), "(move 2 1 2 2)", 0, None, 0, 100, None, False
    )
    thought = Thought(position, {"white": [*thought.moves["white"], untried]}, (), 10, 0.1, 10, False)
    assert len(thought_signs(Boards.of(position.game), thought).marks) == 1


def test_moves_that_are_proved_as_good_as_the_best_stand_out_too() -> None:
    thought = thought_of(
        played("tictactoe"), ("(mark 1 1)", 5, 50, 50, 50), ("(mark 2 2)", 4, 50, 50, 50), ("(mark 1 2)", 9, 50, 0, 50)
    )
    marks = thought_signs(Boards.of(thought.position.game), thought).marks
    assert [mark.is_best for mark in marks] == [False, True, True]


def test_a_mean_stays_within_what_is_proved() -> None:
    assert MoveThought(0, "a", 10, 58.0, 0, 50, None, True).value == "50"
    assert MoveThought(0, "a", 10, 12.0, 50, 100, None, False).value == "50"


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "tictactoe3p"])
def test_facts_after_moves_are_those_of_playing(name: str) -> None:
    position = gamelore.load(name).start()
    role, legal = next((role, legal) for role, legal in position.legal.items() if len(legal) > 1)
    chosen = [2, 0]
    joint = [[legal[i] if other == role else moves[0] for other, moves in position.legal.items()] for i in chosen]
    assert list(facts_after(position, role, chosen)) == [position.play(moves).facts for moves in joint]


def test_the_html_lists_all_moves() -> None:
    thought = thought_of(played("tictactoe"), ("(mark 1 1)", 900, 49.6, 0, 100), ("(mark 1 2)", 100, 12.2, 0, 0))
    html = thought._repr_html_()
    assert "<svg" in html
    assert "<td>xplayer</td><td>(mark 1 2)</td><td>=0</td><td>100</td>" in html


@pytest.mark.parametrize("name", ["tictactoe", "goofspiel", "fivemensmorris", "pegsolitaire", "tictactoe3p"])
def test_every_kind_of_game_is_drawn(name: str) -> None:
    """Several roles choose, or one; points instead of squares; a game without a board."""
    thought = gamelore.think(gamelore.load(name).start(), simulations=200)
    ElementTree.fromstring(thought._repr_svg_())
    assert str(thought)
    assert thought.positions[0].facts == thought.position.facts
    assert len(thought.positions) == len(thought.line) + 1


def test_think_finds_a_win_and_repeats() -> None:
    position = played("tictactoe", "(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 3 3)")
    thought = gamelore.think(position, simulations=500, seed=3)
    best = thought.moves["xplayer"][0]
    assert (best.move, best.proved, best.low, best.plies) == ("(mark 1 3)", True, 100, 1)
    assert thought.is_proved
    assert "; proved" in thought.effort
    assert thought.line == (("(mark 1 3)", "noop"),)
    again = gamelore.think(position, simulations=500, seed=3)
    assert (again.moves, again.line) == (thought.moves, thought.line)


def test_think_follows_the_solution_of_a_puzzle_and_says_whether_it_is_proved_to_be_the_best() -> None:
    position = gamelore.load("pegsolitaire").start()
    thought = gamelore.think(position, simulations=20_000, seed=2)
    assert thought.positions[-1].goals == {"player": 100}
    assert (thought.is_proved, thought.solution) == (True, 100)
    assert f"; a solution for 100 in {len(thought.line)} moves, proved to be the best" in str(thought)
    best, *others = thought.moves["player"]
    assert (best.move,) == thought.line[0]
    assert (best.low, best.high, best.plies, best.is_closed) == (100, 100, len(thought.line), True)
    assert len({move.index for move in (best, *others)}) == len(position.legal["player"])
    again = gamelore.think(position, simulations=20_000, seed=2)
    assert (again.moves, again.line, again.simulations) == (thought.moves, thought.line, thought.simulations)
    assert thought.simulations < 20_000, "nothing is searched after the proof"


def test_think_shares_a_budget_between_the_solutions_of_a_puzzle_and_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is proved here, so the solution bounds its first move from below only. The tree may promise more."""
    puzzle = """(role r) (init start) (pays 1 10) (pays 2 60) (pays 3 20) (<= (legal r ?n) (pays ?n ?g) (true start))
        (<= (next (did ?n)) (does r ?n)) (<= terminal (true (did ?n))) (<= (goal r ?g) (true (did ?n)) (pays ?n ?g))"""
    position, asked = gamelore.load(puzzle).start(), list[tuple[int | None, float | None]]()

    def know(goal: int) -> None:
        def run(search: PuzzleSearch, simulations: int | None, deadline: float | None, least_steps: int) -> int:
            asked.append((simulations, deadline))
            search.solution = SimpleNamespace(goal=goal, actions=np.array([position.game.action(0, "2")]))  # type: ignore[assignment]
            return simulations or 0

        monkeypatch.setattr(PuzzleSearch, "run", run)

    monkeypatch.setattr(PuzzleSearch, "is_proved", False)
    monkeypatch.setattr(Search, "is_proved", False)
    know(60)
    thought = gamelore.think(position, simulations=8)
    assert asked == [(6, None)]
    assert thought.simulations <= 8
    assert (thought.line, thought.solution, thought.is_proved) == ((("2",),), 60, False)
    assert "a solution for 60 in 1 move, not proved to be the best" in thought.effort
    assert (thought.moves["r"][0].move, thought.moves["r"][0].low) == ("2", 60)
    know(10)
    thought = gamelore.think(position, simulations=8)
    assert (thought.line, thought.solution) == ((("2",),), None)
    begin = monotonic()
    gamelore.think(position, seconds=0.1)
    deadline = asked[-1][1]
    assert deadline is not None
    assert begin + 0.075 < deadline < monotonic() + 0.075


def test_think_may_be_limited_by_time() -> None:
    thought = gamelore.think(gamelore.load("connectfour").start(), seconds=0.05)
    assert thought.simulations == sum(move.visits for move in thought.moves["red"]) > 0


def test_think_needs_a_match_that_goes_on() -> None:
    over = played("tictactoe", "(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 3 3)", "(mark 1 3)")
    with pytest.raises(gamelore.GameloreError, match="expected a position in which the match goes on"):
        gamelore.think(over)
