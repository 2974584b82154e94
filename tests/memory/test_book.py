"""The book of openings: which position is searched next, and which move it recommends, on values set by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from gamelore import Game, load
from gamelore.learning.store.lesson_rows import OpeningMove
from gamelore.memory.book import Book, chooser
from gamelore.rulesheets import path
from gamelore.search.choice import MoveReport
from gamelore.search.thinking import Search


def book_of(game: Game, pages: dict[tuple[str, ...], dict[str, tuple[int, float]]]) -> Book:
    """Return a book with pages: the moves to a position in tic-tac-toe -> move -> (visits, value)."""
    stored = {}
    for moves, rows in pages.items():
        position = reached(game, moves)
        role = 0 if "(control xplayer)" in position.facts else 1
        stored[position.facts] = [OpeningMove(role, f"(mark {move})", *row) for move, row in rows.items()]
    return Book(game, stored)


def reached(game: Game, moves: tuple[str, ...]):  # type: ignore[no-untyped-def]
    position = game.start()
    for ply, move in enumerate(moves):
        joint = [f"(mark {move})", "noop"] if ply % 2 == 0 else ["noop", f"(mark {move})"]
        position = position.play(joint)
    return position


def state_of(game: Game, *moves: str) -> NDArray[np.uint64]:
    return reached(game, moves).state  # type: ignore[no-any-return]


def text(game: Game, role: int, action: int | None) -> str | None:
    return None if action is None else game.move_text(role, action)


def test_an_empty_book_begins_with_the_first_position() -> None:
    game = load("tictactoe")
    book = Book(game)
    assert len(book) == 0
    assert np.array_equal(book.unsearched, game.initial)
    assert book.choice(game.initial, 0, 0) is None


def test_the_best_frequent_move_is_chosen() -> None:
    """The move (mark 1 1) has less than a tenth of the visits, so its high value says little."""
    game = load("tictactoe")
    book = book_of(game, {(): {"2 2": (1000, 60.0), "1 1": (90, 99.0), "1 2": (500, 61.0)}})
    assert text(game, 0, book.choice(game.initial, 0, 0)) == "(mark 1 2)"
    assert book.choice(game.initial, 1, 0) is None, "the page is for the other role"


def test_a_longer_search_knows_more() -> None:
    game = load("tictactoe")
    book = book_of(game, {(): {"2 2": (600, 60.0), "1 1": (400, 50.0)}})
    assert book.choice(game.initial, 0, 500) is not None
    assert book.choice(game.initial, 0, 501) is None


def test_the_value_of_a_searched_reply_replaces_that_of_the_move() -> None:
    """After (mark 2 2) the other role reaches 70, so the move is worth 30, and (mark 1 1) with 50 is better."""
    game = load("tictactoe")
    pages = {(): {"2 2": (1000, 60.0), "1 1": (900, 50.0)}}
    assert text(game, 0, book_of(game, pages).choice(game.initial, 0, 0)) == "(mark 2 2)"
    pages["2 2",] = {"1 1": (1000, 70.0), "1 2": (1000, 20.0)}
    assert text(game, 0, book_of(game, pages).choice(game.initial, 0, 0)) == "(mark 1 1)"


def test_the_next_position_has_the_lowest_cost() -> None:
    """A ply costs 3 points. After (mark 1 1), the cost is 3.5 + 3; after two good plies it is 6 or 7."""
    game = load("tictactoe")
    pages = {(): {"2 2": (1000, 60.0), "1 1": (900, 56.5)}}
    assert np.array_equal(book_of(game, pages).unsearched, state_of(game, "2 2"))
    pages["2 2",] = {"1 1": (1000, 40.0), "1 2": (900, 39.0)}
    assert np.array_equal(book_of(game, pages).unsearched, state_of(game, "2 2", "1 1"))
    pages["2 2", "1 1"] = {"3 3": (1000, 60.0)}
    assert np.array_equal(book_of(game, pages).unsearched, state_of(game, "1 1"))


def test_moves_that_are_not_legal_are_left_out() -> None:
    game = load("tictactoe")
    facts = game.start().facts
    assert len(Book(game, {facts: [OpeningMove(0, "(mark 9 9)", 10, 50.0)]})) == 0
    assert len(Book(game, {facts: [OpeningMove(1, "(mark 1 1)", 10, 50.0)]})) == 0


def test_positions_that_are_not_possible_are_left_out() -> None:
    game = load("tictactoe")
    moves, facts = [OpeningMove(0, "(mark 2 2)", 10, 50.0)], game.start().facts
    pages = {facts | {"(cell 7 7 x)"}: moves, frozenset({"(cell ?x 1 b)"}): moves, frozenset({"(("}): moves}
    assert len(Book(game, pages)) == 0
    assert len(Book(game, {**pages, facts: moves})) == 1


def test_openings_do_not_depend_on_the_letter_case_of_the_sheet(tmp_path: Path) -> None:
    (tmp_path / "other.kif").write_text(path("tictactoe").read_text(encoding="utf-8").upper())
    game, other = load("tictactoe"), load(tmp_path / "other.kif")
    book = Book(other, {game.start().facts: [OpeningMove(0, "(mark 2 2)", 10, 50.0)]})
    assert text(other, 0, book.choice(other.initial, 0, 0)) == "(MARK 2 2)"


def test_a_search_becomes_a_page_and_rows_of_the_store() -> None:
    game = load("tictactoe")
    search, book = Search(game, memory=16), Book(game)
    search.begin(game.initial, np.uint64(1))
    search.run(2000)
    rows = book.add(game.initial, search)
    assert sum(row.visits for row in rows) == pytest.approx(2000, abs=100)
    assert all(row.role == 0 and 0 <= row.value <= 100 for row in rows)
    assert len(book) == 1
    assert book.choice(game.initial, 0, 10) is not None
    assert Book(game, {game.start().facts: rows}).choice(game.initial, 0, 10) == book.choice(game.initial, 0, 10)


def test_who_chooses() -> None:
    game = load("tictactoe")
    role, joint = chooser(game, game.initial)
    assert role == 0
    assert joint.shape == (9, 2)
    assert chooser(game, state_of(game, "2 2"))[0] == 1
    won = state_of(game, "1 1", "2 1", "1 2", "2 2", "1 3")
    assert chooser(game, won) == (None, pytest.approx(np.zeros((0, 2))))
    last = state_of(game, "1 1", "1 2", "1 3", "2 1", "2 3", "2 2", "3 1", "3 3")
    role, joint = chooser(game, last)
    assert (role, len(joint)) == (None, 1), "a single move is no choice"
    assert chooser(load("goofspiel"), load("goofspiel").initial)[0] is None, "all choose at the same time"


def test_a_whole_small_game_is_searched_to_its_ends() -> None:
    """From a position with three empty cells, the book walks through forced positions until none is left."""
    game = load("tictactoe")
    game.initial = state_of(game, "1 1", "1 2", "1 3", "2 1", "2 3", "2 2")
    search, book, num = Search(game, memory=16), Book(game), 0
    while (state := book.unsearched) is not None:
        search.begin(state, np.uint64(num))
        search.run(200)
        assert book.add(state, search)
        num += 1
    assert 1 <= num == len(book) <= 1 + 3
    assert book.unsearched is None


def test_a_proved_win_is_chosen_however_few_visits_it_has() -> None:
    """x has two in a row; the search ends as soon as it has seen that the third one wins."""
    game = load("tictactoe")
    state = state_of(game, "1 1", "2 2", "1 2", "3 3")
    search, book = Search(game, memory=16), Book(game)
    search.begin(state, np.uint64(1))
    search.run(500)
    assert search.is_proved
    book.add(state, search)
    assert text(game, 0, book.choice(state, 0, 0)) == "(mark 1 3)"


def test_a_new_page_changes_the_values_and_the_next_position() -> None:
    game = load("tictactoe")
    book = book_of(game, {(): {"2 2": (1000, 60.0), "1 1": (900, 50.0)}})
    assert text(game, 0, book.choice(game.initial, 0, 0)) == "(mark 2 2)"
    assert (book.state, len(book)) == (1, 1)
    reply = state_of(game, "2 2")
    assert np.array_equal(book.unsearched, reply)
    search = Search(game, memory=16)
    search.begin(reply, np.uint64(1))
    search.run(2000)
    rows = book.add(reply, search)
    first = [OpeningMove(0, "(mark 2 2)", 1000, 60.0), OpeningMove(0, "(mark 1 1)", 900, 50.0)]
    both = Book(game, {game.start().facts: first, game.facts(reply): rows})
    assert (book.state, both.state) == (2, 2)
    assert book.choice(game.initial, 0, 0) == both.choice(game.initial, 0, 0)
    assert np.array_equal(book.unsearched, both.unsearched)


def test_closed_moves_are_left_out_and_values_are_within_their_bounds() -> None:
    """The first move may lose, and the search has shown that the second one is at least as good."""
    game = load("tictactoe")
    closed = MoveReport(0, 100, 70.0, 0, 50, None, is_closed=True, value=70.0)
    assured = MoveReport(1, 200, 62.0, 50, 100, None, is_closed=False, value=45.0)
    search = cast("Search", SimpleNamespace(moves=lambda role: [closed, assured]))
    book = Book(game)
    assert [(move.visits, move.value) for move in book.add(game.initial, search)] == [(200, 50.0)]
    choice = book.choice(game.initial, 0, 0)
    assert text(game, 0, choice) == game.start().legal["xplayer"][1]
