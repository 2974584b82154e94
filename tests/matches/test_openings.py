"""Random openings, and rulesheets that begin where they lead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gamelore
from gamelore import Game, GameloreError, Position
from gamelore.analysis.perft import perft
from gamelore.gdl.syntax import parse
from gamelore.matches.openings import Opening, draw_opening, sheet_from
from gamelore.players.random_streams import stream

# Who counts to four, wins; a step counter ends the match after three plies. Rules ask for the first state.
COUNTING = """
(role white) (role black)
(init (sum 0)) (<= (init (step ?n)) (origin ?n)) (init (control white))
(origin 0) (after 0 1) (after 1 2) (after 2 3) (after 3 4)
(<= (base ?fact) (init ?fact))
(<= (base (sum ?n)) (after ?m ?n)) (<= (base (step ?n)) (after ?m ?n)) (base (control black))
(<= (legal ?p add) (true (control ?p))) (<= (legal ?p wait) (role ?p))
(<= (next (sum ?n)) (true (sum ?m)) (after ?m ?n) (does ?p add))
(<= (next (sum ?m)) (true (sum ?m)) (not added))
(<= added (does ?p add))
(<= (next (step ?n)) (true (step ?m)) (after ?m ?n))
(<= (next (control black)) (true (control white))) (<= (next (control white)) (true (control black)))
(<= terminal (true (step 3))) (<= terminal (true (sum 4)))
(<= (goal ?p 100) (role ?p) (true (sum 2)))
(<= (goal ?p 50) (role ?p) (or (not (true (sum 2))) (and (init (sum 2)))))
"""

LAST = "(role only) (init a) (legal only go) (<= (next b) (does only go)) (<= terminal (true b)) (goal only 100)"


def counts(position: Position, depth: int) -> list[int]:
    """Sequences of joint moves from a position, by their length, up to that of the longest match."""
    return np.trim_zeros(all_counts(position, depth), "b")


def all_counts(position: Position, depth: int) -> list[int]:
    if depth == 0 or position.is_terminal:
        return [1] + [0] * depth
    rows = [[1] + [0] * depth]
    legal = list(position.legal.values())
    for numbers in np.ndindex(*map(len, legal)):
        after = position.play([moves[number] for moves, number in zip(legal, numbers, strict=True)])
        rows.append([0, *all_counts(after, depth - 1)])
    return np.sum(rows, axis=0).tolist()


def opening(game: Game, plies: int, key: int = 1) -> Opening:
    return draw_opening(game, plies, stream(key))


def test_an_opening_depends_on_its_key_only() -> None:
    game = gamelore.load("connectfour")
    assert opening(game, 4) == opening(gamelore.load("connectfour", "reasoner"), 4)
    assert len({opening(game, 2, key).moves for key in range(30)}) > 20
    position = game.start()
    for joint in opening(game, 4).moves:
        position = position.play(joint)
    assert set(opening(game, 4).facts) == position.facts


def test_no_opening_ends_a_match() -> None:
    game = gamelore.load("tictactoe")
    for key in range(20):
        assert not game.position(opening(game, 7, key).facts).is_terminal
    with pytest.raises(GameloreError, match="choose fewer plies"):
        opening(gamelore.load(LAST + "\n"), 1)


@pytest.mark.parametrize(
    ("name", "plies", "depth"),
    [
        ("tictactoe", 3, 3),
        ("fivemensmorris", 2, 2),  # a step counter
        ("goofspiel", 1, 2),  # moves at the same time
        ("tictactoe3p", 2, 2),
        ("breakthrough", 4, 3),
        ("counting", 1, 3),  # a step counter, and rules with `init` in the body
    ],
)
def test_a_sheet_from_a_position_has_the_perft_counts_of_the_position(name: str, plies: int, depth: int) -> None:
    game = gamelore.load(COUNTING if name == "counting" else name)
    drawn = opening(game, plies)
    other = gamelore.load(sheet_from(game.rulesheet, drawn.facts))
    position = game.position(drawn.facts)
    assert other.start().facts == position.facts
    assert other.start().legal == position.legal
    assert list(perft(other, depth).sequences) == counts(position, depth)


def test_goals_are_those_of_the_former_sheet() -> None:
    """Rules that ask for `init` must not see the new first state: the goal 50 would be given beside the 100."""
    game = gamelore.load(COUNTING)
    after = game.start().play(["add", "wait"]).play(["wait", "add"])
    other = gamelore.load(sheet_from(game.rulesheet, after.facts))
    assert other.start().goals == after.goals == {"white": 100, "black": 100}
    assert "former_init_" in sheet_from(parse(COUNTING + "(former_init a)"), ["(sum 1)"])


def test_public_sheets(shared: Path) -> None:
    for name in ("checkers", "connectFour", "reversi"):
        game = gamelore.load(shared / "games" / f"{name}.kif")
        drawn = opening(game, 3)
        other = gamelore.load(sheet_from(game.rulesheet, drawn.facts))
        assert list(perft(other, 2).sequences) == counts(game.position(drawn.facts), 2)
