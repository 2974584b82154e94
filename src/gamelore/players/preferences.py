"""Preferences among moves by their grades: the highest preference, and the moves that have it."""

from __future__ import annotations

from .kernel import I8, inlined


@inlined
def most_wanted(begin: int, num_moves: int, grades: I8, wants: I8) -> tuple[int, int]:
    """Return (highest preference among the moves, number of moves with this preference); for use inside kernels.

    `grades[i]` is the grade of the move `graph.move_actions[i]`, and `wants[grade]` is the preference for this grade.
    Preferences are 0 or more.
    """
    best, count = -1, 0
    for i in range(begin, begin + num_moves):
        want = wants[grades[i]]
        if want > best:
            best, count = want, 0
        if want == best:
            count += 1
    return best, count


@inlined
def nth_wanted(begin: int, grades: I8, wants: I8, best: int, which: int) -> int:
    """Return the index of move number `which` among the moves with preference `best`; for use inside kernels."""
    i = begin
    while True:
        if wants[grades[i]] == best:
            if which == 0:
                return i - begin
            which -= 1
        i += 1
