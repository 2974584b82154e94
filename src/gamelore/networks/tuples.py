"""Choice of the tuples of an n-tuple network: random walks between variables that the rules bring together.

A *variable* is a set of facts that exclude each other, as the contents of a cell (analysis/variables.py). A *tuple* is
a small set of variables, and a network has an entry for each combination of their values (Bledsoe & Browning 1959). On
boards, tuples are drawn by random walks from a cell to an adjacent one (Lucas 2008, "Learning to play Othello with
n-tuple systems"). A rulesheet says nothing of boards. But it says which variables are needed together: the four cells
of a line, the two cells of a move. A walk goes to another variable with a probability in proportion to its closeness to
those that the tuple has already. So tuples follow lines where lines decide, and moves where pieces move.

Each variable is a tuple of its own, too. Without these tuples, a network learns slowly what a fact is worth anywhere.

Symmetries of the game map a tuple to others, which share its entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..analysis.symmetry import quick_symmetries
from ..analysis.variables import Variables

if TYPE_CHECKING:
    from ..game.game import Game

NUM_LONG, FEWEST_ORBITS = 100, 25  # tuples of several variables; different ones, apart from symmetries
_LONGEST = 7  # variables of a tuple
_MOST_ENTRIES = 20_000  # of a tuple
_MOST_IMAGES = 8  # of a tuple
_ATTEMPTS = 40  # walks for each tuple that is wanted


class Tuples(NamedTuple):
    """The tuples of a network, in the form in which kernels look up its entries.

    In a position, the entry of a tuple is the one at `offsets`, plus `strides` of each fact that holds.

    strides  int32[facts, tuples], 0 if a fact is of no variable of a tuple
    offsets  int32[tuples], the first entry of each tuple; images of a tuple have the same
    num_entries  number of entries of all tuples
    """

    strides: NDArray[np.int32]
    offsets: NDArray[np.int32]
    num_entries: int

    @property
    def room(self) -> int:
        """Number of entries that kernels may read or write.

        That facts of a variable exclude each other was seen in random matches only. Where two of them hold, the entry
        of a tuple is among those of another one, or behind all entries.
        """
        ends = self.offsets + self.strides.sum(axis=0, dtype=np.int64)
        return max(self.num_entries, int(ends.max(initial=-1)) + 1)


class _Values:
    """The values of the variables of a game, which entries distinguish.

    Attributes:
        sizes: int64[variables], number of values; no fact at all is one of them, unless exactly one fact always holds
    """

    def __init__(self, variables: Variables) -> None:
        numbers = range(len(variables.settled))
        self._members = [np.flatnonzero(variables.numbers == number).tolist() for number in numbers]
        self.sizes = np.array([len(own) for own in self._members], np.int64) + ~variables.settled

    def strides(self, chosen: Sequence[int]) -> dict[int, int]:
        """Return what each fact of a tuple adds to the number of its entry."""
        strides: dict[int, int] = {}
        stride = 1
        for variable in chosen:
            size, own = int(self.sizes[variable]), self._members[variable]
            strides.update((fact, stride * (size - len(own) + number)) for number, fact in enumerate(own))
            stride *= size
        return strides


def draw_tuples(
    game: Game, rng: np.random.Generator, num: int = NUM_LONG, fewest_orbits: int = FEWEST_ORBITS
) -> Tuples:
    """Draw the tuples of a network for a game. This takes a tenth of a second, and more in large games.

    Args:
        game: game that has a circuit
        rng: random numbers of the walks
        num: number of tuples with several variables, or a few more, if there are as many
        fewest_orbits: least number of those that no symmetry maps to each other
    """
    variables = Variables.of(game)
    values, maps = _Values(variables), quick_symmetries(game).facts[:_MOST_IMAGES]
    strides, offsets = [], []
    seen: set[frozenset[int]] = set()
    num_entries = num_long = num_orbits = 0
    for chosen in _walks(variables.closeness, values.sizes, rng, _ATTEMPTS * num):
        own = values.strides(chosen)
        if frozenset(own) in seen:
            continue
        placed = dict[frozenset[int], dict[int, int]]()  # one image for each place that is free
        for facts in maps:  # some of the symmetries, the identity among them
            image = {int(facts[fact]): stride for fact, stride in own.items()}
            if frozenset(image) not in seen:
                placed.setdefault(frozenset(image), image)
        seen |= placed.keys()
        strides += [placed[facts] for facts in sorted(placed, key=sorted)]
        offsets += [num_entries] * len(placed)
        num_entries += int(np.prod(values.sizes[chosen]))
        if len(chosen) > 1:
            num_long, num_orbits = num_long + len(placed), num_orbits + 1
        if num_long >= num and num_orbits >= fewest_orbits:
            break
    table = np.zeros((len(variables.numbers), len(strides)), np.int32)
    for number, image in enumerate(strides):
        for fact, stride in image.items():
            table[fact, number] = stride
    return Tuples(table, np.array(offsets, np.int32), num_entries)


def _walks(
    closeness: NDArray[np.float64], sizes: NDArray[np.int64], rng: np.random.Generator, most: int
) -> Iterator[list[int]]:
    """Yield each variable alone, then the variables of random walks, sorted; walks may repeat."""
    yield from ([variable] for variable in np.flatnonzero(sizes <= _MOST_ENTRIES).tolist())
    starts = np.flatnonzero(closeness.any(axis=1))
    for _ in range(most if len(starts) else 0):
        chosen = [int(rng.choice(starts))]
        entries = int(sizes[chosen[0]])
        while len(chosen) < _LONGEST:
            close = closeness[chosen].sum(axis=0)
            close[chosen] = 0.0
            if not close.any():
                break
            following = int(rng.choice(len(close), p=close / close.sum()))
            entries *= int(sizes[following])
            if entries > _MOST_ENTRIES:
                break
            chosen.append(following)
        if len(chosen) > 1:
            yield sorted(chosen)
