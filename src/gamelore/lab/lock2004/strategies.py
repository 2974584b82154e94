"""The three strategies of the paper's Figures 5 to 7, found among learned pairs by their content.

reflection  lose tic-tac-toe, Figure 5: a duet of xplayer, which has the centre, in which every move of oplayer is
            answered in the square on the other side of the centre
block       five men's morris, Figure 6: a duet in the placing stage in which every move of the contestant's own takes
            the last free point of a mill of which the other one has two points
shuttle     five men's morris, Figure 7: a solo of slides from one point to another, back, and there again, of which
            one closes a mill at least

A pair shows a strategy where all of its branches of that kind do, and there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..effects import Branch
from ..learned import LearnedPair, learned

if TYPE_CHECKING:
    from ...learn.contexts import ContextPairs

STRONG = 0.9
MILLS = ((1, 2, 3), (3, 10, 16), (14, 15, 16), (1, 7, 14), (4, 5, 6), (6, 9, 13), (11, 12, 13), (4, 8, 11))


class Shown(NamedTuple):
    """How many pairs show a strategy, how many of them with a weight of at least .9, and the best of all."""

    num: int
    strong: int
    best: LearnedPair | None

    def as_json(self) -> dict[str, Any]:
        return {"num": self.num, "strong": self.strong, "best": self.best and self.best.as_json()}


def look_for(pairs: ContextPairs, game: str) -> dict[str, Shown]:
    """The strategies of a game of the paper among pairs, by name."""
    every = [learned(pairs, pair) for pair in range(len(pairs))]
    return {
        name: _shown([one for one in every if shows(one, name)]) for name, where in STRATEGIES.items() if where == game
    }


def _shown(found: list[LearnedPair]) -> Shown:
    strong = sum(one.weight >= STRONG for one in found)
    return Shown(len(found), strong, max(found, key=lambda one: (one.weight, one.comments), default=None))


def shows(pair: LearnedPair, strategy: str) -> bool:
    """Whether a pair shows a strategy, by the definitions above."""
    kind, test = _TESTS[strategy]
    branches = [moves for one, moves in pair.branches if one == kind]
    return bool(branches) and all(test(pair.role, pair.context, moves) for moves in branches)


def _points(move: str) -> tuple[int, ...]:
    """The numbers in a move: (mark 1 3) -> (1, 3)."""
    return tuple(int(word) for word in move.strip("()").split()[1:])


def _reflects(role: str, facts: frozenset[str], moves: Branch) -> bool:
    if role != "xplayer" or "(cell 2 2 x)" not in facts:
        return False
    pairs = [(one, other) for one, other in pairwise(moves) if one[0] != role == other[0]]
    return bool(pairs) and all(_points(reply[1]) == _opposite(_points(move[1])) for move, reply in pairs)


def _opposite(square: tuple[int, ...]) -> tuple[int, ...]:
    """On the other side of the centre of a 3x3 board."""
    return tuple(4 - coordinate for coordinate in square)


def _blocks(role: str, facts: frozenset[str], moves: Branch) -> bool:
    if "(stage placing)" not in facts:
        return False
    other = "white" if role == "black" else "black"
    theirs = {point for point in range(1, 17) if f"(cell {point} {other})" in facts}
    for mover, move in moves:
        point = _points(move)[0]
        if not move.startswith("(place"):
            return False
        if mover == other:
            theirs.add(point)
        elif not any(point in mill and theirs.issuperset(set(mill) - {point}) for mill in MILLS):
            return False
    return True


def _shuttles(role: str, facts: frozenset[str], moves: Branch) -> bool:
    if not all(move.startswith("(move") for _, move in moves):
        return False
    ways = [_points(move)[:2] for _, move in moves]
    returns = all(later == earlier[::-1] for earlier, later in pairwise(ways))
    return len(ways) > 2 and returns and any(move.startswith("(move_take") for _, move in moves)


STRATEGIES = {"reflection": "losetictactoe", "block": "fivemensmorris", "shuttle": "fivemensmorris"}
"""The game of each."""
_TESTS: dict[str, tuple[str, Callable[[str, frozenset[str], Branch], bool]]] = {
    "reflection": ("duet", _reflects), "block": ("duet", _blocks), "shuttle": ("solo", _shuttles)
}  # fmt: skip
