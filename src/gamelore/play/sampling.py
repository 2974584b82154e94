"""Random matches before a game is solved: is it of the kind that can be, and are its positions too many?

How many positions there are is told by coincidences (the birthday problem): if n matches, drawn independently, stand in
positions of which c pairs are equal, the chance that two of them are equal is about p = c / (n (n - 1) / 2), and no
distribution over fewer than 1 / p positions has so small a chance. So 1 / p is a lower bound of the positions at that
ply, and the more so of all.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .kernel import kernel
from .retrograde import OPEN
from .statetable import hash_state
from .streams import WHICH, extend, stream, uniform
from .turntaking import TurnGame, is_native

NUM_MATCHES = (1024, 4096, 16384, 65536, 262144)  # one after the other, as long as it may still be too many
ON_THE_REASONER = 16  # matches: each position takes milliseconds
MOST_PLIES = 200
_MOST_IMAGES = 1 << 20  # of the states of all matches at one ply
_AT_ONCE = 1 << 13


def try_out(turns: TurnGame) -> None:
    """Plays a few matches. Raises as `TurnGame` does where they show that the game is not of its kind."""
    _coincidences(turns, NUM_MATCHES[0] if is_native(turns.game) else ON_THE_REASONER, until=0)


def fewest_positions(turns: TurnGame, enough: int) -> int:
    """A number of positions that the game has almost certainly: more than `enough`, or one that says little.

    It is wrong upwards, at each ply, with a probability of about 0.1 %. It is 1 for a game that is not native: so few
    matches can be played there that they tell nothing. Raises as `TurnGame` does.
    """
    least = 1
    for num_matches in NUM_MATCHES if is_native(turns.game) else ():
        if num_matches * turns.canonical.symmetries.num > _MOST_IMAGES:
            break
        seen = _coincidences(turns, num_matches, until=num_matches // 2)
        least = max(least, *(int(pairs / _at_most(equal)) for pairs, equal in seen))
        if least > enough or not _may_be_more(seen, enough):
            break
    return least


def _may_be_more(seen: list[tuple[float, int]], enough: int) -> bool:
    """Whether more matches may show more than `enough` positions at one of these plies."""
    return any(pairs > enough * _at_least(equal) for pairs, equal in seen)


def _at_most(count: int) -> float:
    """A mean from which a Poisson count as low as this is drawn with a probability of 0.1 % at most."""
    return count + 7 + 3.2 * math.sqrt(count)  # exact: 6.9 for 0, 23.0 for 9, 130 for 100; this 7, 25.6, 139


def _at_least(count: int) -> float:
    """A mean from which a Poisson count as high as this is drawn with a probability of 0.1 % at most."""
    return max(0.0, count - 3.2 * math.sqrt(count))


def _coincidences(turns: TurnGame, num_matches: int, until: int) -> list[tuple[float, int]]:
    """Ply by ply of so many random matches: the pairs of matches that go on, and how many are of equal positions.

    It ends when no more than `until` matches go on.
    """
    keys = extend(stream(0, "solve", num_matches), np.arange(num_matches))
    states = np.repeat(turns.start, num_matches, axis=0)
    seen = []
    for ply in range(MOST_PLIES):
        seen.append((len(states) * (len(states) - 1) / 2, _equal_pairs(np.sort(_hashes(states)))))
        parts = [slice(begin, begin + _AT_ONCE) for begin in range(0, len(states), _AT_ONCE)]
        moved = [_move_on(turns, states[part], keys[part], ply) for part in parts]
        states = np.concatenate([after for after, _ in moved])
        keys = np.concatenate([rest for _, rest in moved])
        if len(states) <= until:
            break
    return seen


def _move_on(
    turns: TurnGame, states: NDArray[np.uint64], keys: NDArray[np.uint64], ply: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A random move in each match that is not over: (states, stream keys) of these."""
    asked = turns.ask(states)
    drawn = (uniform(keys, ply, WHICH) * asked.num_moves).astype(np.int32)
    return turns.successor(states, asked, drawn), keys[asked.ends == OPEN]


@kernel("uint64[::1](uint64[:, ::1])")
def _hashes(states: NDArray[np.uint64]) -> NDArray[np.uint64]:
    out = np.empty(states.shape[0], np.uint64)
    for i in range(out.size):
        out[i] = hash_state(states, i)
    return out


@kernel("int64(uint64[::1])")
def _equal_pairs(ordered: NDArray[np.uint64]) -> int:
    """How many pairs of these are equal."""
    pairs, same = 0, 0
    for i in range(1, ordered.size):
        same = same + 1 if ordered[i] == ordered[i - 1] else 0
        pairs += same
    return pairs
