"""Every position of a game, breadth first, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .retrograde import Moves
from .statetable import StateTable
from .turntaking import TurnGame, is_native

ON_THE_REASONER = 20_000  # positions: each takes milliseconds and about 10 KB
_AT_ONCE = 1 << 12  # positions whose successors are worked out together
_PER_POSITION, _PER_WORD, _PER_MOVE = 50, 16, 8  # bytes, at the larger of two peaks: a growing table, the way back


def expand(turns: TurnGame, memory: int, progress: Callable[[int, int], None]) -> tuple[StateTable, Moves]:
    """The canonical states by row, 0 the initial one, and what leads where.

    memory: bytes that solving may take, by `bytes_needed`. `progress` is told how many of the positions found so far
    were looked at. Raises GameloreError over this limit, and as `TurnGame` does.
    """
    table = StateTable(turns.game.num_words, max_positions(turns, memory))
    table.intern(turns.start)
    choosers: list[NDArray[np.int8]] = []
    counts: list[NDArray[np.int32]] = []
    children: list[NDArray[np.int32]] = []
    ends: list[NDArray[np.int16]] = []
    done = num_moves = 0
    while done < table.num_rows:
        states = table.states[done : done + _AT_ONCE]
        asked = turns.ask(states)
        after = turns.successors(states, asked)
        rows = table.intern(after)
        num_moves += len(after)
        if len(rows) < len(after) or bytes_needed(turns.game.num_words, table.num_rows, num_moves) > memory:
            refuse(turns, memory, table.num_rows, num_moves)
        choosers.append(asked.chooser)
        counts.append(asked.num_moves)
        children.append(rows)
        ends.append(asked.ends)
        done += len(states)
        progress(done, table.num_rows)
    return table, Moves(np.concatenate(choosers), np.concatenate(counts), children, np.concatenate(ends))


def bytes_needed(num_words: int, num_positions: int, num_moves: int) -> int:
    """What solving takes at its peak, about, for so many canonical positions with so many moves in all."""
    return num_positions * (_PER_POSITION + _PER_WORD * num_words) + _PER_MOVE * num_moves


def max_positions(turns: TurnGame, memory: int) -> int:
    """The most canonical positions that fit: to each but the first leads a move."""
    if not is_native(turns.game):
        return ON_THE_REASONER
    return max(1, min(memory // bytes_needed(turns.game.num_words, 1, 1), (1 << 31) - 1))


def refuse(turns: TurnGame, memory: int, positions: int, moves: int) -> NoReturn:
    """Raises the GameloreError for a game with at least so many canonical positions and moves, which do not fit."""
    name = turns.game.name
    if not is_native(turns.game):
        raise GameloreError(
            f"expected at most {ON_THE_REASONER:,} positions of a game that is not all native, got more in {name}; "
            f"the reasoner plays because: {turns.game.engine_reason}"
        )
    needed = bytes_needed(turns.game.num_words, positions, moves)
    raise GameloreError(
        f"expected a game that can be solved in {memory / 2**30:.3g} GiB, got {name}, which has at least {positions:,} "
        f"positions (symmetric ones counted once) and needs {needed / 2**30:.3g} GiB or more; "
        "allow more memory (gamelore solve --memory), or solve a smaller board"
    )
