"""Figure 2 and Table 1 of Banerjee & Stone (2007): the features of tic-tac-toe, their letters and printed values.

The text of the paper fixes what the letters h, f and i stand for, and the group {j, k, l} (forks); {a, b, e, g} are
the other features with an immediate loss, {c, d} the remaining two (readings.md, B&S 1). Which letter of a group is
which feature is a guess. The copy of the paper at hand runs Table 1's first and third column together, cell by cell,
without saying which is which. Read as a line that turns at the end of every row (weak first in the first row,
egreedy first in the second, and so on) it puts a weak opponent's value above an egreedy one's in every row but j,
the forks, where they are 0.35 apart; so it is read here.
"""

from __future__ import annotations

from typing import Literal, get_args

from ..errors import GameloreError
from .features import FeatureValues

Opponent = Literal["egreedy", "random", "weak"]
Within = Literal["guess", "mean"]

FIGURE_2: dict[str, tuple[str, ...]] = {
    "abeg": ("L,{n}", "L,{n},{n,W}", "L,{n,W}", "L,{W}"),
    "cd": ("{n},{n,W}", "{D},{W}"),
    "f": ("L",),
    "h": ("{D}",),
    "i": ("L,{D}",),
    "jkl": ("{W}", "{n,W}", "{n,W},{W}"),
}
"""Letters -> the features they stand for; within a group the order is a guess."""

TABLE_1: dict[str, tuple[float, float, float]] = {
    "a": (41.08, 46.31, 51.62),
    "b": (43.75, 48.81, 57.55),
    "c": (54.36, 53.75, 54.63),
    "d": (59.63, 60.11, 61.5),
    "e": (43.03, 50.41, 59.62),
    "f": (38.0, 43.5, 40.77),
    "g": (40.18, 49.43, 58.16),
    "h": (50.0, 50.0, 50.0),
    "i": (44.64, 42.98, 48.93),
    "j": (57.48, 58.9, 57.13),
    "k": (58.28, 54.84, 58.42),
    "l": (57.45, 54.26, 63.36),
}
"""Letter -> value against the egreedy, the random and the weak opponent, as printed."""


def printed_values(opponent: Opponent, within: Within = "guess") -> FeatureValues:
    """Table 1's column as feature values: letters of a group as guessed, or the group's mean for each of them.

    Visits are 1: the paper prints none. Raises GameloreError for an unknown opponent or way.
    """
    if opponent not in get_args(Opponent) or within not in get_args(Within):
        raise GameloreError(
            f"expected egreedy | random | weak, and guess | mean, got {opponent!r} and {within!r}; choose of these"
        )
    column = get_args(Opponent).index(opponent)
    values: dict[str, tuple[float, int]] = {}
    for letters, texts in FIGURE_2.items():
        cells = [TABLE_1[letter][column] for letter in letters]
        if within == "mean":
            cells = [sum(cells) / len(cells)] * len(cells)
        values.update((text, (cell, 1)) for text, cell in zip(texts, cells, strict=True))
    return FeatureValues(values)
