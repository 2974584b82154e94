"""Exact values of every reachable position of a game of one role, or of two that take turns in a zero-sum game.

The positions are found breadth first and valued from the ends back (retrograde.py). Symmetric positions are one
(rules/symmetry.py). A step counter that only ends matches, with half of the points for each, is left out
(rules/counter.py): values and distances are then those of the game in which nobody counts, and `Solution.left_out` says
so. In it a match need not end; one that does not is worth half of the points to each, as at the end of the count.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..rules.cache import folder, key_of
from ..rules.counter import StepCounter, step_counter
from ..rules.symmetry import Symmetries
from . import solutionfile
from .canonical import Canonical, affordable
from .expansion import expand, max_positions, refuse
from .retrograde import OPEN, Moves, values
from .sampling import fewest_positions, try_out
from .statetable import find_rows
from .turntaking import CounterMattersError, TurnGame, is_native

if TYPE_CHECKING:
    from ..rules.game import Game

DEFAULT_MEMORY = 4 << 30
ENDLESS = -1  # as a distance: nobody can force the end at this value
_PERCENT = 100  # what the goals add up to where no match ends
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Solution:
    """What every reachable position is worth.

    num_positions  all of them, those that differ only by a counter left out counted once; num_classes: those that are
                   left where symmetric ones count as one, too
    num_moves      of the classes
    left_out       the facts of the step counter that was left out, in the order of counting; empty where none was
    total          what the goals of both roles add up to; None for one role
    seconds        of processor time that it took
    states, slots, goals, distances: by class; see `look_up`, and statetable.py for the slots
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

    @property
    def num_classes(self) -> int:
        return len(self.states)

    @property
    def values(self) -> tuple[int, ...]:
        """By role, what the initial position is worth."""
        return tuple(self._by_role(self.goals[:1])[0].tolist())

    @property
    def distance(self) -> int:
        """Of the initial position; see `look_up`."""
        return int(self.distances[0])

    def look_up(self, states: NDArray[np.uint64]) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
        """(goals int16[n, roles], distance int32[n]) of states uint64[n, words] of the game.

        Goals are those under best play. The distance is that to the end in plies, where who gains from it goes the
        fastest way and the other the slowest; ENDLESS where nobody can force a better end than a match without one.
        Raises GameloreError for a state that cannot be reached.
        """
        rows = find_rows(self.canonical.of(states), self.slots, self.states)
        if (rows < 0).any():
            raise GameloreError(
                f"expected positions that can be reached from the first one, got {int((rows < 0).sum())} others; "
                "look up those of matches of the same game, on the same engine"
            )
        return self._by_role(self.goals[rows]), self.distances[rows]

    def _by_role(self, goals: NDArray[np.int16]) -> NDArray[np.int16]:
        return goals[:, None] if self.total is None else np.stack([goals, np.int16(self.total) - goals], axis=1)


# by the id of the game, which a solution keeps alive, and whether symmetric positions are one
_in_use: WeakValueDictionary[tuple[int, bool], Solution] = WeakValueDictionary()


def solve(
    game: Game,
    *,
    memory: int = DEFAULT_MEMORY,
    symmetry: bool = True,
    cache: bool = True,
    progress: Progress = lambda stage, done, of: None,
) -> Solution:
    """The solution of a game: one that somebody still holds, from the file of an earlier call, or worked out and kept.

    memory    bytes that it may take, about
    symmetry  False to hold every position, which takes longer and comes to the same values
    cache     False to work it out anew and write no file; what the reasoner plays never has one
    progress  is told ("positions", looked at, found so far), then ("values", settled, of how many)

    Raises GameloreError, before any long work, for a game that is not of the kind above (as far as random matches
    show it, else on the way) and for one whose positions do not fit (as far as these tell, else when it is full).
    """
    if not cache:
        return _worked_out(game, memory, symmetry, progress)
    solution = _in_use.get((id(game), symmetry))
    if solution is None:
        solution = _in_use[id(game), symmetry] = _from_file(game, memory, symmetry, progress)
    return solution


def _from_file(game: Game, memory: int, symmetry: bool, progress: Progress) -> Solution:
    """Written now, where there was no file; without one where the reasoner numbers states, for this process only."""
    if not is_native(game):
        return _worked_out(game, memory, symmetry, progress)
    place = _place(game, symmetry)
    if (known := _load(place, game)) is not None:
        return known
    solution = _worked_out(game, memory, symmetry, progress)
    _store(place, solution)
    return solution


def _worked_out(game: Game, memory: int, symmetry: bool, progress: Progress) -> Solution:
    begin = time.process_time()
    trivial = Symmetries.trivial(game)
    try_out(TurnGame(game, Canonical(trivial)))  # before symmetries are looked for
    group = affordable(game) if symmetry else trivial
    try:
        solution = _solved(game, group, step_counter(game) if game.num_roles == 2 else None, memory, progress)
    except CounterMattersError:
        solution = _solved(game, group, None, memory, progress)
    return replace(solution, seconds=time.process_time() - begin)


def _solved(game: Game, group: Symmetries, counter: StepCounter | None, memory: int, progress: Progress) -> Solution:
    left_out = () if counter is None else tuple(map(game.fact_text, counter.facts))
    if counter is not None:
        group = group.keeping(left_out)  # no image of a state without the counter has some of it
    canonical = Canonical(group, None if counter is None else counter.mask)
    turns = TurnGame(game, canonical, counter)
    fits = max_positions(turns, memory)
    fewest = fewest_positions(turns, fits)
    if fewest > fits:
        refuse(turns, memory, fewest, fewest)
    table, moves = expand(turns, memory, partial(progress, "positions"))
    num_moves = int(moves.num_children.sum())
    goals, distances = _values(turns, moves, partial(progress, "values"))
    states = table.states
    return Solution(
        canonical=canonical,
        total=_total(turns) if game.num_roles == 2 else None,
        num_positions=int(canonical.orbit_sizes(states).sum()),
        num_moves=num_moves,
        left_out=left_out,
        seconds=0.0,
        states=states,
        slots=table.slots,
        goals=goals,
        distances=distances,
    )


def _values(
    turns: TurnGame, moves: Moves, progress: Callable[[int, int], None]
) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """The first role's goals and the distances; see `Solution.look_up`."""
    total = 2 * OPEN if turns.game.num_roles == 1 else _total(turns)
    goals, distances = values(moves, total / 2, progress)
    open_rows = goals == OPEN
    if total % 2 and (open_rows & (moves.ends == OPEN)).any():
        raise GameloreError(
            f"expected goals of {turns.game.name} with an even sum, for a match that need not end counts half of it to "
            f"each, got {total}; let each match end in the rules, with a step counter"
        )
    goals[open_rows] = max(total // 2, 0)
    return goals, distances


def _total(turns: TurnGame) -> int:
    """What both goals add up to; any number where no match ends."""
    return _PERCENT if turns.total is None else turns.total


def _place(game: Game, symmetry: bool) -> Path:
    """The file of a solution: named by what it depends on, the names of its arrays' bits included."""
    assert game.circuit is not None
    key = key_of(_code(), game.rules_hash, game.circuit.facts, game.circuit.actions, symmetry)
    return folder().parent / "solved" / f"{key}.solution"


@once
def _code() -> str:
    """The source of the modules of this room that a file depends on, hashed; `key_of` has that of the rules room."""
    made_by = ("canonical", "expansion", "retrograde", "solutionfile", "solve", "statetable", "streams", "turntaking")
    source = b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in made_by)
    return hashlib.sha256(source).hexdigest()


_PLAIN = ("total", "num_positions", "num_moves", "left_out", "seconds")
_ARRAYS = ("states", "slots", "goals", "distances")


def _store(place: Path, solution: Solution) -> None:
    """Writes it, with the symmetries and the counter that its states are canonical under."""
    plain = {name: getattr(solution, name) for name in _PLAIN}
    arrays = {name: getattr(solution, name) for name in _ARRAYS} | solution.canonical.arrays()
    solutionfile.write(place, place.stem, plain, arrays)


def _load(place: Path, game: Game) -> Solution | None:
    found = solutionfile.read(place, place.stem)
    if found is None:
        return None
    plain, arrays = found
    plain["left_out"] = tuple(plain["left_out"])
    tables: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    return Solution(Canonical.from_arrays(game, arrays), **plain, **tables)
