"""Positions for the tests of the shipped games: drawn as pictures, played by the naive evaluator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from gamelore import rulesheets
from naive import Naive

State = frozenset[str]


@cache
def naive(name: str) -> Naive:
    return Naive(rulesheets.path(name).read_text(encoding="utf-8"))


def board(picture: str, control: str = "", names: dict[str, str] | None = None) -> State:
    """A state from a picture: rows are x = 1, 2, .., columns are y; `.` is blank, `B` black, `W` white."""
    contents = {"B": "black", "W": "white", ".": "b", **(names or {})}
    rows = enumerate(picture.split(), start=1)
    cells = {f"(cell {x} {y} {contents.get(c, c)})" for x, row in rows for y, c in enumerate(row, start=1)}
    return frozenset(cells | ({f"(control {control})"} if control else set()))


def dropped(picture: str, control: str) -> State:
    """The same with gravity: x is the column, and y counts from the last row of the picture upwards."""
    rows = picture.split()[::-1]
    return board(" ".join(map("".join, zip(*rows, strict=True))), control, {"R": "red", "Y": "yellow"})


def play(name: str, state: State, move: str) -> State:
    """The mover's move, everybody else waiting."""
    game = naive(name)
    mover = next(role for role in game.roles if f"(control {role})" in state)
    assert move in game.legal(state)[mover]
    return game.next(state, {role: move if role == mover else "noop" for role in game.roles})


def cells(state: State) -> State:
    return frozenset(fact for fact in state if fact.startswith("(cell"))


def random_states(name: str, seed: int, matches: int) -> Iterator[State]:
    """All positions of random matches, the last one of each included."""
    game, draw = naive(name), random.Random(seed)
    for _ in range(matches):
        state = game.initial
        while not game.terminal(state):
            yield state
            state = game.next(state, {role: draw.choice(moves) for role, moves in game.legal(state).items()})
        yield state


def winners(name: str, state: State) -> dict[str, int | None]:
    assert naive(name).terminal(state)
    return naive(name).goals(state)
