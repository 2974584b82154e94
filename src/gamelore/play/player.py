"""What a player is, and the three opponents of Banerjee & Stone (2007, section 4).

A player serves any number of matches at once: lane i of a batch is one seat at one table. It is told when
matches begin and end, and asked for moves as positions within the role's legal moves (action order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .decisive import MoveClasses
from .kernel import kernel
from .streams import EXPLORE, WHICH, below, mix, unit

if TYPE_CHECKING:
    from .graph import Graph

TERMINAL, STUCK, CAP = 0, 1, 2  # how a match ended
END_NAMES = ("terminal", "stuck", "cap")

Kind = Literal["egreedy", "random", "weak"]
Filler = Literal["random", "first", "hashed"]

_KINDS: tuple[Kind, ...] = get_args(Kind)
_FILLERS: tuple[Filler, ...] = get_args(Filler)


@dataclass(frozen=True, slots=True)
class MatchLog:
    """The matches so far: that of lane i went through `rows[i, : ply + 1]` by `choices[i, :ply]`.

    rows: int32[lanes, any]; choices: int32[lanes, any, roles], positions within the legal moves.
    """

    rows: NDArray[np.int32]
    choices: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Turn:
    """One role is asked for a move in some lanes; the rows are listed, and expanded only if someone did it.

    The arrays are good for the call only. A role is asked where it is its turn or where it has several moves.
    `log` is for players who need to know what was played before; None where positions are asked about out of a match.
    `deadline`, in seconds of `time.monotonic`, is when an answer is wanted at the latest: players who search as long as
    they like stop in time for it. None where nobody waits.
    """

    graph: Graph
    role: int
    lanes: NDArray[np.int64]  # [n], ascending
    rows: NDArray[np.int32]  # [n]
    keys: NDArray[np.uint64]  # [n], of the streams (seed, run, stage, match, role)
    plies: NDArray[np.int32]  # [n], counter of those streams
    log: MatchLog | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """Matches begin in these lanes."""

    graph: Graph
    lanes: NDArray[np.int64]  # [n], ascending
    matches: NDArray[np.int64]  # [n], number of the match within its lane


@dataclass(frozen=True, slots=True)
class Finished:
    """Matches ended in these lanes. Match i went through `rows[i, : plies[i] + 1]`.

    `goals` are -1 where the rules give none or several, and where the match ended elsewhere than in a
    terminal position. The arrays belong to whoever gets them.
    """

    graph: Graph
    lanes: NDArray[np.int64]  # [n], ascending
    matches: NDArray[np.int64]  # [n], number of the match within its lane
    plies: NDArray[np.int32]  # [n]
    rows: NDArray[np.int32]  # [n, longest + 1]
    choices: NDArray[np.int32]  # [n, longest, roles], positions within the legal moves
    goals: NDArray[np.int16]  # [n, roles]
    ends: NDArray[np.uint8]  # [n], TERMINAL, STUCK or CAP


class Player(Protocol):
    """Chooses; learns, if it does, in `end`. Subclasses need only `choose`."""

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """For each lane of the turn the position of a move within the role's legal moves, int32[n]."""
        ...

    def begin(self, role: int, started: Started) -> None:
        """Matches begin in which this player has that role."""
        return None

    def end(self, role: int, finished: Finished) -> None:
        """Matches ended in which this player had that role; comes before the next `begin` of these lanes."""
        return None


@dataclass(frozen=True, slots=True)
class OpponentSettings:
    """One opponent of B&S: `kind`, what it does when nothing is decisive (`filler`), how often it explores (`epsilon`).

    filler "random" draws anew each time, "first" takes the first move in action order, "hashed" makes a fixed
    pseudo-random choice in each position, another one for each `hash_key`: the paper leaves it open (readings.md,
    B&S 2). The random kind prefers nothing and always draws; the other settings do not matter to it.
    """

    kind: Kind = "egreedy"
    filler: Filler = "random"
    epsilon: float = 0.01
    hash_key: int = 0

    def __post_init__(self) -> None:
        _check_word("kind", self.kind, _KINDS)
        _check_word("filler", self.filler, _FILLERS)
        if not 0.0 <= self.epsilon <= 1.0:
            raise GameloreError(f"expected epsilon from 0 to 1, got {self.epsilon}; it is a probability")


class Opponent(Player):
    """egreedy, random and weak opponents, one settings object per lane (or one for all lanes).

    egreedy takes a winning move, else one that is not known to lose, else any; weak takes a losing move, else
    one that lets the others make it lose at once, else any but a winning one (readings.md, B&S 4; classes of
    moves: `MoveClasses`). With probability epsilon either makes a uniformly random move instead.
    """

    def __init__(self, settings: OpponentSettings | Sequence[OpponentSettings]) -> None:
        lanes = [settings] if isinstance(settings, OpponentSettings) else list(settings)
        if not lanes:
            raise GameloreError("expected settings for at least one lane, got none")
        self.settings = tuple(lanes)
        self._kinds = np.array([_KINDS.index(one.kind) for one in lanes], np.int8)
        self._fillers = np.array([_FILLERS.index(one.filler) for one in lanes], np.int8)
        self._epsilons = np.array([one.epsilon for one in lanes])
        self._hash_keys = np.array([one.hash_key & 0xFFFFFFFFFFFFFFFF for one in lanes], np.uint64)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. Expands what one full turn of lookahead needs, once per position and role."""
        classes = turn.graph.memo(MoveClasses)
        choices, unknown = self._try(turn, classes)
        if unknown.size:
            classes.classify(unknown, turn.role)
            choices, _ = self._try(turn, classes)
        return choices

    def begin(self, role: int, started: Started) -> None:
        """Raises GameloreError where a lane has no settings."""
        if len(self.settings) > 1 and started.lanes[-1] >= len(self.settings):
            raise GameloreError(
                f"expected settings for {started.lanes[-1] + 1} lanes, got {len(self.settings)}; "
                "give one per lane, or a single one for all"
            )

    def _try(self, turn: Turn, classes: MoveClasses) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(choices, rows whose classes are not known yet; where there are some the choices are not valid)."""
        graph = turn.graph
        return _choose(
            turn.role,
            turn.lanes,
            turn.rows,
            turn.keys,
            turn.plies,
            graph.num_moves,
            graph.move_start,
            graph.keys,
            classes.known,
            classes.classes,
            self._kinds,
            self._fillers,
            self._epsilons,
            self._hash_keys,
            _WANTS,
        )


def _check_word(name: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise GameloreError(f"expected {name} {' | '.join(words)}, got {word!r}; choose one of these")


_EGREEDY, _RANDOM = np.int8(0), np.int8(1)
_FILL_RANDOM, _FILL_FIRST = np.int8(0), np.int8(1)
_EXPLORE, _WHICH = np.uint64(EXPLORE), np.uint64(WHICH)

# how much a kind wants a move, by class WIN, LOSS, GIVES, NEUTRAL; random wants all alike
_WANTS = np.array([[2, 0, 0, 1], [0, 0, 0, 0], [0, 3, 2, 1]], np.int8)


@kernel("UniTuple(int64, 2)(int64, int64, int8[::1], int8[::1])")
def most_wanted(begin: int, num_moves: int, grades: NDArray[np.int8], wants: NDArray[np.int8]) -> tuple[int, int]:
    """(the highest want among the moves, how many have it); for use inside kernels.

    grades is parallel to `graph.move_actions`; wants says how much each grade is wanted, 0 or more.
    """
    best, count = -1, 0
    for i in range(begin, begin + num_moves):
        want = wants[grades[i]]
        if want > best:
            best, count = want, 0
        if want == best:
            count += 1
    return best, count


@kernel("int64(int64, int8[::1], int8[::1], int64, int64)")
def nth_wanted(begin: int, grades: NDArray[np.int8], wants: NDArray[np.int8], best: int, which: int) -> int:
    """The position of number `which` among the moves that are wanted so much; for use inside kernels."""
    i = begin
    while True:
        if wants[grades[i]] == best:
            if which == 0:
                return i - begin
            which -= 1
        i += 1


@kernel(
    "UniTuple(int32[::1], 2)(int64, int64[::1], int32[::1], uint64[::1], int32[::1], int32[:, ::1],"
    " int64[:, ::1], uint64[::1], boolean[:, ::1], int8[::1], int8[::1], int8[::1], float64[::1],"
    " uint64[::1], int8[:, ::1])"
)
def _choose(
    role: int,
    lanes: NDArray[np.int64],
    rows: NDArray[np.int32],
    keys: NDArray[np.uint64],
    plies: NDArray[np.int32],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    state_keys: NDArray[np.uint64],
    known: NDArray[np.bool_],
    classes: NDArray[np.int8],
    kinds: NDArray[np.int8],
    fillers: NDArray[np.int8],
    epsilons: NDArray[np.float64],
    hash_keys: NDArray[np.uint64],
    wants: NDArray[np.int8],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """See `Opponent._try`."""
    choices = np.empty(rows.size, np.int32)
    unknown = np.empty(rows.size, np.int32)
    num_unknown = 0
    for i in range(rows.size):
        row, ply = rows[i], np.uint64(plies[i])
        lane = lanes[i] if kinds.size > 1 else 0
        kind, moves, begin = kinds[lane], int(num_moves[row, role]), move_start[row, role]
        if kind == _RANDOM or unit(keys[i], ply, _EXPLORE) < epsilons[lane]:
            choices[i] = below(keys[i], ply, _WHICH, moves)
        elif row >= known.shape[0] or not known[row, role]:
            unknown[num_unknown] = row
            num_unknown += 1
        else:
            best, count = most_wanted(begin, moves, classes, wants[kind])
            which = 0
            if fillers[lane] == _FILL_RANDOM:
                which = below(keys[i], ply, _WHICH, count)
            elif fillers[lane] != _FILL_FIRST:
                # a function of the state alone: the same choice whenever the position comes back
                which = below(mix(state_keys[row], hash_keys[lane]), np.uint64(0), np.uint64(0), count)
            choices[i] = nth_wanted(begin, classes, wants[kind], best, which)
    return choices, unknown[:num_unknown]
