"""Solutions of games: exact values and distances of all positions, computed by `solve` and stored in files.

A game can be solved if it has one role, or if it is a zero-sum game of two roles that take turns. `solve` enumerates
all positions breadth first (statespace.py) and computes their values backward from the ends (retrograde.py). Symmetric
positions count as one position (analysis/symmetry.py).

Some games have a step counter that only ends matches, with half of the points for each role. The solution leaves out
such a counter: values and distances are those of the game without it, and `Solution.left_out` lists its facts. In the
game without the counter, a match need not end. An endless match gives half of the points to each role, like a match
that the counter ends. A win whose distance is larger than the number of plies that the counter leaves is none in the
match.

A solution file is memory-mapped for reading. Its format:

    8 bytes    "gamelore"
    8 bytes    length of the header, little-endian
    header     JSON: "key" identifies the input; "facts" has small data; "checksum" is the CRC-32 of all arrays with
               their padding; "arrays" maps each name to [dtype, shape, offset from the end of the header]
    arrays     each begins at a multiple of 64 bytes

A file is written under a temporary name and then renamed, so it is either complete or absent. A damaged file, or a file
with another key, counts as absent.
"""

from __future__ import annotations

import json
import mmap
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..analysis.symmetry import StepCounter, Symmetries, step_counter
from ..circuit.cache import folder, key_of
from ..errors import GameloreError
from ..files import whole_file
from ..players.position_graph import find_rows
from .retrograde import OPEN, Moves, values
from .statespace import (
    SECONDS,
    Canonical,
    CounterMattersError,
    TurnGame,
    affordable_symmetries,
    expand,
    fewest_positions,
    is_native,
    max_positions,
    refuse_size,
    sample_matches,
)

if TYPE_CHECKING:
    from ..game.game import Game

_MAGIC = b"gamelore"
_ALIGNMENT = 64
_PIECE = 1 << 24  # bytes of a file that the checksum reads at once


def write(path: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a solution file, and create its folder. Do nothing if the folder is not writable."""
    with suppress(OSError), whole_file(path) as file:
        _write(file, key, facts, arrays)


def read_file(path: Path, key: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Return (facts, arrays) of a solution file, memory-mapped copy-on-write; None if there is no valid file."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        begin = 16 + int.from_bytes(content[8:16], "little")
        header = json.loads(content[16:begin])
        if content[:8] != _MAGIC or header["key"] != key or header["checksum"] != _checksum(content, begin):
            return None
        return header["facts"], {
            name: np.frombuffer(content, dtype, int(np.prod(shape)), begin + offset).reshape(shape)
            for name, (dtype, shape, offset) in header["arrays"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(file: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    layout, offset, checksum = {}, 0, 0
    for name, array in arrays.items():
        layout[name] = [array.dtype.str, array.shape, offset]
        padding = _padding(array.nbytes)
        checksum = zlib.crc32(padding, zlib.crc32(_bytes(array), checksum))
        offset += array.nbytes + len(padding)
    header = json.dumps({"key": key, "facts": facts, "checksum": checksum, "arrays": layout}).encode()
    header += b" " * len(_padding(16 + len(header)))
    with file.open("wb") as out:
        out.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        for array in arrays.values():
            out.write(_bytes(array))
            out.write(_padding(array.nbytes))


def _bytes(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array, without a copy if it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _padding(size: int) -> bytes:
    """Return the zero bytes to write after `size` bytes, up to the next aligned offset."""
    return bytes(-size % _ALIGNMENT)


def _checksum(content: mmap.mmap, begin: int) -> int:
    """Return the CRC-32 of the content from `begin` on."""
    checksum = 0
    with memoryview(content) as view:
        for offset in range(begin, len(content), _PIECE):
            checksum = zlib.crc32(view[offset : offset + _PIECE], checksum)
    return checksum


DEFAULT_MEMORY = 4 << 30
MADE_BY = (
    *("circuit.transpose", "game.engines", "game.game", "game.reasoner"),
    *("analysis.automorphisms", "analysis.symmetry", "analysis.variables"),
    *("players.kernel", "players.position_graph", "players.random_streams"),
    *("solver.retrograde", "solver.solution", "solver.statespace"),
)
"""The modules that stored solutions depend on, in addition to the modules that compile."""
ENDLESS = -1  # distance where no role can force an end that is better for it than an endless match
_PERCENT = 100  # sum of both goals in a game without reachable terminal positions
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Solution:
    """Values and distances of all reachable positions.

    num_positions  number of positions; positions that differ only by a left-out counter count as one
    num_classes    number of classes of symmetric positions
    num_moves      sum over all classes of the number of moves in one position of the class
    left_out       facts of the left-out step counter, in the order of counting; empty if no counter was left out
    total          sum of the goals of both roles; None for a game of one role
    seconds        processor time that `solve` needed
    states, goals, distances  one entry for each class; see `look_up`
    slots          hash table of the states; see `StateTable`
    """

    canonical: Canonical
    total: int | None
    num_positions: int
    num_moves: int
    left_out: tuple[str, ...]
    seconds: float
    states: NDArray[np.uint64]
    slots: NDArray[np.int32]
    goals: NDArray[np.int16]
    distances: NDArray[np.int32]

    def __reduce__(self) -> tuple[Callable[..., Solution], tuple[object, ...]]:
        game, (facts, arrays) = self.canonical.symmetries.game, _contents(self)
        return _unpickled, (game, facts, arrays, _pickle_checksum(game, facts, arrays))

    @property
    def num_classes(self) -> int:
        """The number of classes of symmetric positions."""
        return len(self.states)

    @property
    def values(self) -> tuple[int, ...]:
        """The values of the initial position, by role."""
        return tuple(self._by_role(self.goals[:1])[0].tolist())

    @property
    def distance(self) -> int:
        """The distance of the initial position; see `look_up`."""
        return int(self.distances[0])

    def look_up(self, states: NDArray[np.uint64]) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
        """Return (goals int16[n, roles], distances int32[n]) of states uint64[n, words] of the game.

        Goals are the goals under best play. A distance is the number of plies to the end if the gaining role takes the
        fastest way and the other role takes the slowest way. It is ENDLESS if no role can force an end that is better
        for it than an endless match. Raise GameloreError for an unreachable state.
        """
        rows = find_rows(self.canonical.of(states), self.slots, self.states)
        if (rows < 0).any():
            raise GameloreError(
                f"expected positions that are reachable in the game, got {int((rows < 0).sum())} others; look up only "
                "positions from matches of the same game on the same engine"
            )
        return self._by_role(self.goals[rows]), self.distances[rows]

    def _by_role(self, goals: NDArray[np.int16]) -> NDArray[np.int16]:
        return goals[:, None] if self.total is None else np.stack([goals, np.int16(self.total) - goals], axis=1)


# key: the id of the game (a solution keeps its game alive), and whether symmetry was used
_in_use: WeakValueDictionary[tuple[int, bool], Solution] = WeakValueDictionary()


def solve(
    game: Game,
    *,
    memory: int = DEFAULT_MEMORY,
    symmetry: bool = True,
    cache: bool = True,
    patience: float = SECONDS,
    progress: Progress = lambda stage, done, of: None,
) -> Solution:
    """Return the solution of a game: from memory, from the file of an earlier call, or newly computed and stored.

    memory    approximate limit in bytes
    symmetry  False to store every position instead of one for each class of symmetric positions; this takes longer and
              gives the same values
    cache     False to compute the solution again and write no file; games on the reasoner never have a file
    patience  processor time in seconds for a better estimate of the number of positions, which the error tells, once
              they are known not to fit into memory
    progress  function that is called with ("positions", expanded so far, found so far), then with ("values", settled so
              far, all)

    Raise GameloreError for a game that is not solvable and for a game whose positions do not fit into memory. If random
    matches show this, the error comes before any long computation; else it comes as soon as the computation shows it.
    """
    if not cache:
        return _worked_out(game, memory, symmetry, patience, progress)
    solution = _in_use.get((id(game), symmetry))
    if solution is None:
        solution = _in_use[id(game), symmetry] = _from_file(game, memory, symmetry, patience, progress)
    return solution


def stored(game: Game) -> Solution | None:
    """Return the solution of a game if it is in use, or in the file of an earlier call of `solve`; otherwise None."""
    solution = _in_use.get((id(game), True))
    return solution if solution is not None or not is_native(game) else _load(_place(game, True), game)


def _from_file(game: Game, memory: int, symmetry: bool, patience: float, progress: Progress) -> Solution:
    """Return the solution from its file. If there is no file, solve the game and write the file.

    A game on the reasoner has no file, because the reasoner numbers facts anew in every process.
    """
    if not is_native(game):
        return _worked_out(game, memory, symmetry, patience, progress)
    path = _place(game, symmetry)
    solution = _load(path, game)
    if solution is None:
        solution = _worked_out(game, memory, symmetry, patience, progress)
        write(path, path.stem, *_contents(solution))
    return solution


def _load_code() -> None:
    """Import what every solution needs, so that this does not count as its time."""
    import_module("scipy.special")  # for the estimate of the number of positions


def _worked_out(game: Game, memory: int, symmetry: bool, patience: float, progress: Progress) -> Solution:
    """Solve a game, without its step counter if possible."""
    _load_code()
    begin = time.process_time()
    trivial = Symmetries.trivial(game)
    sample_matches(TurnGame(game, Canonical(trivial)))  # before the search for symmetries
    group = affordable_symmetries(game) if symmetry else trivial
    try:
        counter = step_counter(game) if game.num_roles == 2 else None
        solution = _solved(game, group, counter, memory, patience, progress)
    except CounterMattersError:
        solution = _solved(game, group, None, memory, patience, progress)
    return replace(solution, seconds=time.process_time() - begin)


def _solved(
    game: Game, group: Symmetries, counter: StepCounter | None, memory: int, patience: float, progress: Progress
) -> Solution:
    """Solve a game under a group of symmetries, without `counter`.

    Raise CounterMattersError if the counter cannot be left out.
    """
    canonical = Canonical.leaving_out(counter, group)
    turns = TurnGame(game, canonical, counter)
    fits = max_positions(turns, memory)
    fewest = fewest_positions(turns, fits, patience)
    if fewest > fits:
        refuse_size(turns, memory, fewest, fewest, "; estimated from random matches, with 99.9 % confidence")
    table, moves = expand(turns, memory, partial(progress, "positions"))
    num_moves = int(moves.num_children.sum())
    goals, distances = _values(turns, moves, partial(progress, "values"))
    return Solution(
        canonical=canonical,
        total=_total(turns) if game.num_roles == 2 else None,
        num_positions=int(canonical.orbit_sizes(table.states).sum()),
        num_moves=num_moves,
        left_out=() if counter is None else tuple(map(game.fact_text, counter.facts)),
        seconds=0.0,
        states=table.states,
        slots=table.slots,
        goals=goals,
        distances=distances,
    )


def _values(
    turns: TurnGame, moves: Moves, progress: Callable[[int, int], None]
) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """Return the first role's goals and the distances; see `Solution.look_up`."""
    total = 2 * OPEN if turns.game.num_roles == 1 else _total(turns)
    goals, distances = values(moves, total / 2, progress)
    open_rows = goals == OPEN
    if total % 2 and (open_rows & (moves.ends == OPEN)).any():
        raise GameloreError(
            f"expected goals of {turns.game.name} with an even sum, because each role gets half of it in an "
            f"endless match, got {total}; let the rules end each match, with a step counter"
        )
    goals[open_rows] = max(total // 2, 0)
    return goals, distances


def _total(turns: TurnGame) -> int:
    """Return the sum of both goals; 100 if no match ever ends."""
    return _PERCENT if turns.total is None else turns.total


def _place(game: Game, symmetry: bool) -> Path:
    """Return the path of a solution file. Its name is a hash of the rules, the code and the bits of the states."""
    assert game.circuit is not None
    key = key_of(MADE_BY, game.rules_hash, game.circuit.facts, game.circuit.actions, symmetry)
    return folder().parent / "solved" / f"{key}.solution"


_PLAIN = ("total", "num_positions", "num_moves", "left_out", "seconds")
_ARRAYS = ("states", "slots", "goals", "distances")


def _load(path: Path, game: Game) -> Solution | None:
    """Return the solution in a file; None if there is no valid file."""
    content = read_file(path, path.stem)
    return None if content is None else _made(game, *content)


def _contents(solution: Solution) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return (facts, arrays) of a solution, with the symmetries and the counter, which define canonical states."""
    facts = {name: getattr(solution, name) for name in _PLAIN}
    return facts, {name: getattr(solution, name) for name in _ARRAYS} | solution.canonical.arrays()


def _made(game: Game, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Solution:
    """Return a solution from what `_contents` returned."""
    tables: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    plain = {**facts, "left_out": tuple(facts["left_out"])}
    return Solution(Canonical.from_arrays(game, arrays), **plain, **tables)


def _unpickled(game: Game, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], checksum: int) -> Solution:
    """Return a solution that was pickled. Raise GameloreError if anything in it, or the game, is not as it was."""
    if checksum != _pickle_checksum(game, facts, arrays):
        raise GameloreError(
            "expected a pickle of a solution as it was written, got a damaged one or one of another version; solve the "
            "game again"
        )
    return _made(game, facts, arrays)


def _pickle_checksum(game: Game, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> int:
    """Return the CRC-32 of arrays with their types and shapes, of the facts, and of the numbering of the states.

    Machine code follows the numbers in these arrays, so it must never see others.
    """
    checksum = zlib.crc32(f"{game.numbering} {sorted(facts.items())}".encode())
    for name, array in arrays.items():
        checksum = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), checksum)
        checksum = zlib.crc32(_bytes(array), checksum)
    return checksum
