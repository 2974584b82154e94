"""State space of solvable games: canonical states under symmetry, checks, enumeration, size estimates.

A game is solvable if it has one role, or if it has two roles that take turns and the goals of both roles have the same
sum in every terminal position. `TurnGame` checks this in every position that it gets. `Canonical` maps symmetric
states, and states that differ only by a step counter, to one state. `expand` enumerates all positions breadth first.

Before the enumeration, random matches check that the game is solvable. They also give a lower bound of the number of
positions, by the birthday problem. Consider one ply of n independent random matches. Let r be the number of repeats:
matches in a position that an earlier match has at this ply, too. Suppose that N positions are possible at this ply. Of
all distributions over N positions, the uniform distribution has the fewest repeats (Wong and Yue 1973). Under it, if
the first i - 1 matches have at most r repeats, match i is a repeat with probability at least (i - 1 - r) / N. So the
probability of at most r repeats is no larger than the probability that a Poisson variable with mean
(n (n - 1) / 2 - n r) / N is at most r. If the latter probability is below `DOUBT`, N is too small. The smallest N that
remains is a lower bound of the number of positions at this ply. The largest of the bounds of all plies is a lower bound
of the number of all positions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..analysis.symmetry import Symmetries, bounded_symmetries
from ..errors import GameloreError
from ..players.kernel import I8, I32, I64, U64, Bool, I32x2, U64x2, U64x4, kernel, kernel_without_gil
from ..players.position_graph import StateTable, hash_state
from ..players.random_streams import WHICH, extend, stream, uniform
from .retrograde import OPEN, Moves

if TYPE_CHECKING:
    from ..analysis.symmetry import StepCounter
    from ..game.engines import Legal
    from ..game.game import Game

_TABLES = 1 << 25  # maximum size in bytes of the tables of `_by_byte`


def affordable_symmetries(game: Game) -> Symmetries:
    """Return the symmetries of a game, or a subgroup small enough for fast canonical states in bounded memory."""
    return bounded_symmetries(game, _TABLES)


class Canonical:
    """Canonical form of states: the smallest image of a state under the symmetries, without the bits of the counter.

    Images are compared word by word, word 0 first. Two states have the same canonical state if and only if a symmetry
    maps one to the other, when the counter is ignored.
    """

    def __init__(self, symmetries: Symmetries, counter_mask: NDArray[np.uint64] | None = None) -> None:
        """Prepare the images. `counter_mask` uint64[words] has the bits of the counter to leave out, if any."""
        game = symmetries.game
        self.symmetries = symmetries
        self.counter_mask = np.zeros(game.num_words, np.uint64) if counter_mask is None else counter_mask
        self._kept = ~self.counter_mask
        self._first = game.initial & self.counter_mask
        self._images = _by_byte(symmetries)

    @classmethod
    def leaving_out(cls, counter: StepCounter | None, symmetries: Symmetries) -> Canonical:
        """Return the canonical form without this step counter, under those symmetries that keep its facts."""
        if counter is None:
            return cls(symmetries)
        # no symmetry may map other facts to facts of the counter
        return cls(symmetries.keeping(map(symmetries.game.fact_text, counter.facts)), counter.mask)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the symmetries and the counter mask as arrays for `from_arrays`."""
        return {
            "symmetric_facts": self.symmetries.facts,
            "symmetric_actions": self.symmetries.actions,
            "counter_mask": self.counter_mask,
        }

    @classmethod
    def from_arrays(cls, game: Game, arrays: Mapping[str, NDArray[Any]]) -> Canonical:
        """Return a `Canonical` from the arrays that `arrays` returned, without a search for symmetries."""
        group = Symmetries(game, arrays["symmetric_facts"], arrays["symmetric_actions"])
        return cls(group, arrays["counter_mask"])

    def of(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the canonical states uint64[n, words] of states uint64[n, words]."""
        if self.symmetries.num == 1:
            return np.ascontiguousarray(self.without_counter(states))
        return self._smallest(states)[0]

    def without_counter(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the states with the bits of the counter cleared. The last axis has the words."""
        return states & self._kept

    def playable(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return canonical states uint64[n, words] as states of the game, with the counter at its start."""
        return states | self._first

    def orbit_sizes(self, states: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return int64[n]: for each state, the number of states with the same canonical state, ignoring the counter."""
        if self.symmetries.num == 1:
            return np.ones(len(states), np.int64)
        return self.symmetries.num // self._smallest(states)[1]

    def _smallest(self, states: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return (smallest image of each state, number of symmetries that lead to it)."""
        smallest, ties = np.empty(states.shape, np.uint64), np.empty(len(states), np.int64)
        _smallest(np.ascontiguousarray(states), self._kept, self._images, smallest, ties)
        return smallest, ties


def _by_byte(symmetries: Symmetries) -> NDArray[np.uint64]:
    """Return tables of images, uint64[8 * words, 256, words, num].

    Entry [b, v, :, s] holds the bits that byte b of a state, with value v, sets in the image under symmetry s.
    """
    if symmetries.num == 1:
        return np.zeros((0, 256, symmetries.game.num_words, 1), np.uint64)
    return np.ascontiguousarray(symmetries.byte_tables.transpose(1, 2, 3, 0))


@kernel
def _held_bytes(states: U64x2, i: int, kept: U64, out: I64) -> int:
    """Write the non-zero bytes of a state into `out`, as 256 * index + value, and return their number."""
    size = 0
    for word in range(states.shape[1]):
        bits = states[i, word] & kept[word]
        for byte in range(8 * word, 8 * word + 8):
            value = np.int64(bits & np.uint64(255))
            if value:
                out[size] = byte << 8 | value
                size += 1
            bits >>= np.uint64(8)
    return size


@kernel
def _least_of(word: int, num_bytes: int, held: I64, images: U64x4, left: I64, num_left: int) -> tuple[int, np.uint64]:
    """Keep those symmetries in `left` for which word number `word` of the image is smallest.

    Return (number of kept symmetries, value of this word).
    """
    least, kept = np.uint64(0xFFFFFFFFFFFFFFFF), 0
    for k in range(num_left):
        s = left[k]
        image = np.uint64(0)
        for b in range(num_bytes):
            image |= images[held[b] >> 8, held[b] & 255, word, s]
        if image < least:
            least, kept = image, 0
        if image == least:
            left[kept] = s
            kept += 1
    return kept, least


# fills arguments instead of returning arrays: after Ctrl-C in a kernel that returns a tuple of arrays, numba raises
# SystemError
@kernel_without_gil
def _smallest(states: U64x2, kept: U64, images: U64x4, out: U64x2, ties: I64) -> None:
    """Fill in the smallest image of each state, and the number of symmetries that lead to it.

    Compare word by word. At word 0, compare the images under all symmetries. At each later word, compare only the
    images that are still smallest.
    """
    num_words, num = images.shape[2], images.shape[3]
    first = np.empty(num, np.uint64)
    left = np.empty(num, np.int64)
    held = np.empty(8 * num_words, np.int64)
    for i in range(states.shape[0]):
        num_bytes = _held_bytes(states, i, kept, held)
        first[:] = np.uint64(0)
        for k in range(num_bytes):
            byte, value = held[k] >> 8, held[k] & 255
            for s in range(num):
                first[s] |= images[byte, value, 0, s]
        least = first[0]
        for s in range(1, num):
            least = min(least, first[s])
        num_left = 0
        for s in range(num):
            if first[s] == least:
                left[num_left] = s
                num_left += 1
        out[i, 0] = least
        for word in range(1, num_words):
            num_left, out[i, word] = _least_of(word, num_bytes, held, images, left, num_left)
        ties[i] = num_left


_SEVERAL_CHOOSE, _STUCK = -1, -2


def is_native(game: Game) -> bool:
    """Return whether the circuit assigns a bit to every fact that can occur.

    Otherwise the engine numbers the facts in the order in which they appear.
    """
    return game.circuit is not None and not game.is_bounded


class CounterMattersError(Exception):
    """Error: a solution cannot leave out the step counter.

    It does more than end matches as draws, or there is a fault in a position that may be out of reach with it.
    """


@dataclass(frozen=True, slots=True)
class TurnBatch:
    """Moves and results of a batch of n positions.

    legal      the moves of every role
    chooser    int8[n], the role that has several moves; role 0 if no role has several moves
    num_moves  int32[n], number of joint moves; 0 in terminal positions
    ends       int16[n], the first role's goal in terminal positions, OPEN elsewhere
    """

    legal: Legal
    chooser: NDArray[np.int8]
    num_moves: NDArray[np.int32]
    ends: NDArray[np.int16]


class TurnGame:
    """Interface to a solvable game, for canonical states uint64[n, words].

    total    sum of the goals of both roles; None for a game of one role, and before the first terminal position
    counter  step counter that `canonical` leaves out, or None. Every position is also checked with the counter at its
             last value

    Every method raises GameloreError if it finds that the game is not solvable, and CounterMattersError if it finds
    that the counter cannot be left out.
    """

    def __init__(self, game: Game, canonical: Canonical, counter: StepCounter | None = None) -> None:
        if game.num_roles > 2:
            raise GameloreError(
                f"expected a game of one or two roles to solve, got {game.num_roles} in {game.name}: "
                f"{', '.join(game.roles)}; with more roles, a position has no single value. Use a search player, such "
                "as uct"
            )
        self.game = game
        self.canonical = canonical
        self.counter = counter
        self.total: int | None = None

    @property
    def start(self) -> NDArray[np.uint64]:
        """The canonical initial state, uint64[1, words]."""
        return self.canonical.of(self.game.initial[None])

    def ask(self, states: NDArray[np.uint64]) -> TurnBatch:
        """Return the legal moves, the choosers, the numbers of joint moves, and the goals of terminal positions."""
        playable = self.canonical.playable(states)
        legal = self.game.legal(playable)
        chooser, num_moves = np.zeros(len(states), np.int8), np.zeros(len(states), np.int32)
        fault = _choosers(legal.offsets, legal.terminal, self.game.num_roles, chooser, num_moves)
        if fault >= 0:
            self._refuse(playable[fault], int(chooser[fault]))
        ends = np.full(len(states), OPEN, np.int16)
        if legal.terminal.any():
            final = playable[legal.terminal]
            goals = np.maximum(self.game.evaluate(final)[1], 0)
            self._check_total(goals, final)
            ends[legal.terminal] = goals[:, 0]
        if self.counter is not None:
            self._check_counter(states | self.counter.last, legal.terminal, ends)
        return TurnBatch(legal, chooser, num_moves, ends)

    def successors(self, states: NDArray[np.uint64], asked: TurnBatch) -> NDArray[np.uint64]:
        """Return the canonical states after all joint moves of the positions, in the order of the positions."""
        return self._after(states, asked, np.zeros(len(states), np.int32), asked.num_moves)

    def successor(self, states: NDArray[np.uint64], asked: TurnBatch, move: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the canonical states after joint move number `move` int32[n] of each non-terminal position."""
        return self._after(states, asked, move, np.minimum(asked.num_moves, 1))

    def _after(
        self, states: NDArray[np.uint64], asked: TurnBatch, first: NDArray[np.int32], counts: NDArray[np.int32]
    ) -> NDArray[np.uint64]:
        """Return the canonical states after `counts` joint moves of each position, from number `first` on."""
        legal = asked.legal
        joint = _joint_moves(legal.offsets, legal.actions, asked.chooser, first, counts, self.game.num_roles)
        return self.canonical.of(self.game.next(np.repeat(self.canonical.playable(states), counts, axis=0), joint))

    def _check_total(self, goals: NDArray[np.int16], states: NDArray[np.uint64]) -> None:
        """Raise GameloreError unless the goals int16[n, roles] of two roles have the same sum in all states."""
        if self.game.num_roles == 1:
            return
        sums = goals.sum(axis=1)
        if self.total is None:
            self.total = int(sums[0])
        if (sums != self.total).any():
            if self.counter is not None:  # without it, positions are reached that the game never reaches
                raise CounterMattersError
            i = int(np.argmax(sums != self.total))
            raise GameloreError(
                f"expected goals that add up to the same in every terminal position of {self.game.name}, got "
                f"{self.total} in one and {goals[i, 0]} + {goals[i, 1]} in {_position_text(self.game, states[i])}; "
                "only in a zero-sum game does a position have one value for both roles. Use a search player, "
                "such as uct"
            )

    def _check_counter(self, at_last: NDArray[np.uint64], terminal: NDArray[np.bool_], ends: NDArray[np.int16]) -> None:
        """Raise CounterMattersError unless the last value of the counter only ends matches as draws.

        It must change neither a terminal position nor its goals. `at_last` holds the states with this last value.
        """
        over, goals = self.game.evaluate(at_last)
        goals = np.maximum(goals, 0)
        by_count = over & ~terminal
        if by_count.any():
            self._check_total(goals[by_count], at_last[by_count])
        is_draw = goals[:, 0] == goals[:, -1]
        if not np.where(terminal, over & (goals[:, 0] == ends), ~over | is_draw).all():
            raise CounterMattersError

    def _refuse(self, state: NDArray[np.uint64], why: int) -> None:
        """Raise the GameloreError for a position in which `_choosers` found the fault `why`."""
        if self.counter is not None:  # see `_check_total`
            raise CounterMattersError
        name, position = self.game.name, _position_text(self.game, state)
        if why == _SEVERAL_CHOOSE:
            raise GameloreError(
                f"expected only one role at a time to have a choice in {name}, got several legal moves of both "
                f"{' and '.join(self.game.roles)} in {position}; if roles choose at the same time, best play may need "
                "random choices, and `solve` cannot compute its value. Use a search player, such as uct"
            )
        raise GameloreError(
            f"expected a legal move of every role until the match is over, got none in {name}, in {position}; "
            "`gamelore check --play` shows the mistake in the rules"
        )


def _position_text(game: Game, state: NDArray[np.uint64]) -> str:
    """Return a position as text for an error message."""
    return f"the position {' '.join(sorted(game.facts(state)))}"


# fills arguments instead of returning arrays: see `_smallest`
@kernel
def _choosers(offsets: I64, terminal: Bool, num_roles: int, chooser: I8, num_moves: I32) -> int:
    """Fill in the arrays `chooser` and `num_moves` of `TurnBatch`, which must be 0 before the call.

    Return the index of the first faulty position, or -1. The chooser of a faulty position is _SEVERAL_CHOOSE or _STUCK.
    """
    for i in range(terminal.size):
        if terminal[i]:
            continue
        num_moves[i] = 1
        for role in range(num_roles):
            count = offsets[i * num_roles + role + 1] - offsets[i * num_roles + role]
            if count == 0 or (count > 1 and num_moves[i] > 1):
                chooser[i] = _STUCK if count == 0 else _SEVERAL_CHOOSE
                return i
            if count > 1:
                chooser[i], num_moves[i] = role, count
    return -1


@kernel
def _joint_moves(offsets: I64, actions: I32, chooser: I8, first: I32, counts: I32, num_roles: int) -> I32x2:
    """Return joint moves int32[total, roles], in the order of the positions.

    In position i, the chooser makes `counts[i]` of its moves, from move number `first[i]` on. Each other role has only
    one move.
    """
    total = at = 0
    for count in counts:
        total += count
    joint = np.empty((total, num_roles), np.int32)
    for i in range(counts.size):
        for move in range(first[i], first[i] + counts[i]):
            for role in range(num_roles):
                joint[at, role] = actions[offsets[i * num_roles + role] + (move if role == chooser[i] else 0)]
            at += 1
    return joint


MOST_ON_THE_REASONER = 20_000  # positions; each position takes milliseconds and about 10 KB
MOST_POSITIONS = (1 << 31) - 1  # row numbers are int32, whatever the memory
_EXPANDED_AT_ONCE = 1 << 12  # positions whose successors are computed together
_PER_POSITION, _PER_WORD, _PER_MOVE = 50, 16, 8  # bytes at peak, in the growing table or the retrograde analysis


def expand(turns: TurnGame, memory: int, progress: Callable[[int, int], None]) -> tuple[StateTable, Moves]:
    """Return a table of all canonical states, with the initial state in row 0, and the successors of all rows.

    `memory` is the limit for `bytes_needed`. `progress` is called with the number of positions expanded so far and the
    number of positions found so far. Raise GameloreError if the positions need more memory, and as `TurnGame` does.
    """
    table = StateTable(turns.game.num_words, max_positions(turns, memory))
    table.intern(turns.start)
    batches: list[tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int16]]] = []
    children: list[NDArray[np.int32]] = []
    done = num_moves = 0
    while done < table.num_rows:
        states = table.states[done : done + _EXPANDED_AT_ONCE]
        asked = turns.ask(states)
        after = turns.successors(states, asked)
        rows = table.intern(after)
        num_moves += len(after)
        if len(rows) < len(after) or bytes_needed(turns.game.num_words, table.num_rows, num_moves) > memory:
            refuse_size(turns, memory, table.num_rows, num_moves)
        batches.append((asked.chooser, asked.num_moves, asked.ends))
        children.append(rows)
        done += len(states)
        progress(done, table.num_rows)
    choosers, counts, ends = map(np.concatenate, zip(*batches, strict=True))
    return table, Moves(choosers, counts, children, ends)


def bytes_needed(num_words: int, num_positions: int, num_moves: int) -> int:
    """Return the approximate peak memory, in bytes, of solving a game.

    `num_positions` is the number of canonical positions; `num_moves` is the total number of moves in them.
    """
    return num_positions * (_PER_POSITION + _PER_WORD * num_words) + _PER_MOVE * num_moves


def max_positions(turns: TurnGame, memory: int) -> int:
    """Return the largest number of canonical positions that fit into the memory.

    At least one move is counted for each position, because a move leads to every position except the first.
    """
    if not is_native(turns.game):
        return MOST_ON_THE_REASONER
    return max(1, min(memory // bytes_needed(turns.game.num_words, 1, 1), MOST_POSITIONS))


def refuse_size(turns: TurnGame, memory: int, positions: int, moves: int, how_known: str = "") -> NoReturn:
    """Raise GameloreError for a game with at least `positions` canonical positions and `moves` moves: too many."""
    name = turns.game.name
    if not is_native(turns.game):
        raise GameloreError(
            f"expected at most {MOST_ON_THE_REASONER:,} positions of a game that is not compiled as a whole, got more "
            f"in {name}; it is not compiled as a whole for this reason: {turns.game.engine_reason}"
        )
    needed = bytes_needed(turns.game.num_words, positions, moves)
    raise GameloreError(
        f"expected a game that can be solved in {memory / 2**30:.3g} GiB, got {name}, which has at least "
        f"{_rounded(positions)} positions (symmetric positions count as one{how_known}) and needs "
        f"{needed / 2**30:.3g} GiB or more; {_remedy(turns, positions, needed)}"
    )


def _remedy(turns: TurnGame, positions: int, needed: int) -> str:
    """Return the advice of `refuse_size`. Advise more memory only if this machine may have enough."""
    machine = machine_memory()
    if positions <= MOST_POSITIONS and needed <= machine:
        return "allow more memory (gamelore solve --memory), or solve a smaller board"
    most = min(MOST_POSITIONS, machine // bytes_needed(turns.game.num_words, 1, 1))
    far = "far " if positions > 2 * most else ""
    return (
        f"this is {far}out of reach, because this machine can hold at most {_rounded(int(most))} positions with any "
        "--memory; solve a smaller board, or use a search player, such as uct"
    )


def machine_memory() -> float:
    """Return the memory of this machine in bytes; infinity if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return inf


def _rounded(count: int) -> str:
    """Return a count as text, such as 12,345. Round a large count down, as in 1.2 * 10^9."""
    exponent = len(str(count)) - 1
    if exponent < 9:
        return f"{count:,}"
    tenths = count // 10 ** (exponent - 1)
    return f"{tenths // 10}.{tenths % 10} * 10^{exponent}"


NUM_MATCHES = tuple(
    4**k for k in range(5, 12)
)  # matches in each round; rounds go on while more matches may raise the bound
SECONDS = 20.0  # approximate processor time of the last round, if the positions are known not to fit into memory
MATCHES_ON_THE_REASONER = 16  # matches; each position takes milliseconds
MOST_PLIES = 200  # of a random match
DOUBT = 0.001 / (MOST_PLIES * len(NUM_MATCHES))  # probability that one bound is wrong; 0.1 % for all bounds together
_MOST_IMAGES = 1 << 20  # images under all symmetries of the states of all matches at one ply
_MOST_WORDS = 1 << 25  # words in the states of all matches at one ply
_SAMPLED_AT_ONCE = 1 << 13


def sample_matches(turns: TurnGame) -> None:
    """Play a few random matches. Raise as `TurnGame` does if they show that the game is not solvable."""
    _repeats(turns, NUM_MATCHES[0] if is_native(turns.game) else MATCHES_ON_THE_REASONER, until=0)


def fewest_positions(turns: TurnGame, enough: int, patience: float = SECONDS) -> int:
    """Return a lower bound of the number of positions. The bound is wrong with a probability of at most 0.1 %.

    Once the bound is above `enough`, the search for a better bound goes on for about `patience` seconds of processor
    time. The bound is 1 for a game that is not native, because the reasoner is too slow for enough matches. Raise as
    `TurnGame` does.
    """
    least, since = 1, 0
    for num_matches in NUM_MATCHES if is_native(turns.game) else ():
        if num_matches * turns.game.num_words > _MOST_WORDS:
            break
        if least <= enough and num_matches * turns.canonical.symmetries.num > _MOST_IMAGES:
            break
        begin = time.process_time()
        seen = _repeats(turns, num_matches, num_matches // 4, since)
        least = max([least, *(_fewest(n, repeats) for n, repeats in seen)])
        if not _may_be_more(seen, max(enough, 2 * least)):
            break
        if least > enough and 4 * (time.process_time() - begin) > patience:
            break
        since += sum(4 * repeats > n for n, repeats in seen)
    return least


def _fewest(n: int, repeats: int) -> int:
    """Return a lower bound of the number of positions, if `n` matches have only `repeats` repeats at one ply.

    The bound is wrong with a probability of at most `DOUBT`.
    """
    from scipy.special import gammainccinv

    # mean of the Poisson variable that is at most `repeats` with probability DOUBT
    most_expected = float(gammainccinv(repeats + 1, DOUBT))
    return max(n - repeats, int((n * (n - 1) / 2 - n * repeats) / most_expected))


def _may_be_more(seen: list[tuple[int, int]], enough: int) -> bool:
    """Return whether a round with more matches may give a bound above `enough` at some ply.

    `seen` holds (number of matches, number of repeats) for each ply.
    """
    from scipy.special import gammaincinv

    return any(n * (n - 1) / 2 > enough * (float(gammaincinv(repeats, DOUBT)) if repeats else 0) for n, repeats in seen)


def _repeats(turns: TurnGame, num_matches: int, until: int, since: int = 0) -> list[tuple[int, int]]:
    """Play random matches. Return (number of running matches, number of repeats) for each ply from `since` on.

    Stop when at most `until` matches are running. The canonical form is computed only for counting repeats; the matches
    go on from the states themselves.
    """
    plain = TurnGame(turns.game, Canonical(Symmetries.trivial(turns.game), turns.canonical.counter_mask), turns.counter)
    keys = extend(stream(0, "solve", num_matches), np.arange(num_matches))
    states = np.repeat(plain.start, num_matches, axis=0)
    seen = []
    for ply in range(MOST_PLIES):
        if ply >= since:
            seen.append((len(states), _num_repeats(_hashes(turns.canonical.of(states)))))
        parts = [slice(begin, begin + _SAMPLED_AT_ONCE) for begin in range(0, len(states), _SAMPLED_AT_ONCE)]
        moved = [_move_on(plain, states[part], keys[part], ply) for part in parts]
        states = np.concatenate([after for after, _ in moved])
        keys = np.concatenate([rest for _, rest in moved])
        if len(states) <= until:
            break
    return seen


def _move_on(
    turns: TurnGame, states: NDArray[np.uint64], keys: NDArray[np.uint64], ply: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Make a random move in each match that is not over. Return (states, stream keys) of the continued matches."""
    asked = turns.ask(states)
    drawn = (uniform(keys, ply, WHICH) * asked.num_moves).astype(np.int32)
    return turns.successor(states, asked, drawn), keys[asked.ends == OPEN]


@kernel
def _hashes(states: U64x2) -> U64:
    """Return a hash of each state."""
    out = np.empty(states.shape[0], np.uint64)
    for i in range(out.size):
        out[i] = hash_state(states, i)
    return out


def _num_repeats(hashes: NDArray[np.uint64]) -> int:
    """Return the number of hashes that equal an earlier hash in the array."""
    ordered = np.sort(hashes)  # `np.unique` of numpy 2.4 takes 40 times as long
    return int(np.count_nonzero(ordered[1:] == ordered[:-1]))
