"""Self-play: an n-tuple network learns from matches against itself by temporal differences, without a tree.

Many matches run side by side. In each of them, the mover makes the move to the position with the highest value, or
sometimes a random move. At the end of a match, the positions after the moves of each role learn from it, the last one
first: the value of a position is drawn towards the mean of two targets, the value of the best move at the next turn of
the role and what the later positions of the match are drawn to (the weight of the latter is `trace`), and the last
position of each role towards the goal (TD(lambda); Sutton 1988). What comes after a random move that was not the best
one says nothing about the positions before it (Watkins 1989), except for the value of the best move there.

Step sizes differ for each entry: the larger, the more its errors have had the same sign so far (temporal coherence;
Beal & Smith 1999; Bagheri, Thill, Koch & Konen 2016, "Online adaptable learning rates for the game Connect-4"). Konen &
Bagheri (2020, "Reinforcement learning for n-player games: the importance of final adaptation") learn many games in this
way, each with tuples chosen by hand.

A search teaches more with each position (search/teaching.py), but has a thousand times fewer of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..game.engines import HIGHEST_GOAL, random_moves
from ..players.kernel import F32, F64, I32, I64, U8, Bool, F32x2, F64x2, U64x2, inlined, kernel
from ..players.random_streams import extend
from .network import Network, NetworkArrays, look_up, network_value
from .tuples import draw_tuples

if TYPE_CHECKING:
    from ..game.engines import Legal
    from ..game.game import Game

_MOST_PLIES = 1000  # of a match; a longer one is given up
_MOST_CHILDREN = 2048  # positions that are looked at in one step, about
_MOST_BARREN = 256  # matches without a position to learn from, after which self-play is given up
_MOST_STEPS = 4000  # of matches without learning
_FEWEST_ROWS = 64  # of the history of a match, at first
_LARGEST_SUM = 1e5  # of absolute errors of an entry
_TIE = 1e-7  # values that differ by less are equal
_TUPLES, _MATCHES = range(2)  # extend the key


@dataclass(frozen=True, slots=True)
class SelfPlaySettings:
    """Parameters of self-play.

    matches  number of matches side by side, at most; fewer where they have very many moves
    rate     step size of a value before it is squashed, shared by all tuples
    trace    lambda of TD(lambda), from 0 to 1
    random   probability of a random move
    opening  maximum number of random plies at the beginning of a match
    """

    matches: int = 256
    rate: float = 4.0
    trace: float = 0.9
    random: float = 0.05
    opening: int = 4


_WITHOUT_LEARNING = SelfPlaySettings(matches=32, rate=0.0, random=0.2, opening=8)


class SelfPlayState(NamedTuple):
    """What self-play has learned, without the matches under way.

    network    the network
    sums       float32[roles, room], sum of the errors of each entry
    changes    float32[roles, room], sum of the absolute errors
    matches    number of matches
    positions  number of positions that were played after the move of a role that had a choice alone
    """

    network: Network
    sums: NDArray[np.float32]
    changes: NDArray[np.float32]
    matches: int
    positions: int

    @property
    def is_barren(self) -> bool:
        """Whether many matches had no position from which a network can learn."""
        return not self.positions and self.matches >= _MOST_BARREN

    def copy(self) -> SelfPlayState:
        """Return a copy of the arrays that learning changes."""
        network = replace(self.network, entries=self.network.entries.copy())
        return self._replace(network=network, sums=self.sums.copy(), changes=self.changes.copy())


class _History(NamedTuple):
    """The positions after the moves of a role that had a choice alone, in each match so far.

    Position number `ply` of a match is in row `match * longest + ply`.

    states    uint64[matches * longest, words]
    movers    uint8[matches * longest], the role that has moved
    bests     float32[matches * longest], the value of the best move at this turn
    explored  bool[matches * longest], whether a worse move was made
    lengths   int32[matches]
    """

    states: U64x2
    movers: U8
    bests: F32
    explored: Bool
    lengths: I32

    @classmethod
    def empty(cls, matches: int, longest: int, words: int) -> _History:
        """Return a history with room for so many positions of each match."""
        rows = matches * longest
        arrays = np.zeros(rows, np.uint8), np.zeros(rows, np.float32), np.zeros(rows, np.bool_)
        return cls(np.zeros((rows, words), np.uint64), *arrays, np.zeros(matches, np.int32))

    @property
    def longest(self) -> int:
        return len(self.movers) // len(self.lengths)

    def with_room(self) -> _History:
        """Return the same history with room for twice as many positions."""
        matches, longest = len(self.lengths), self.longest
        larger = _History.empty(matches, 2 * longest, self.states.shape[1])
        arrays: list[tuple[NDArray[Any], NDArray[Any]]] = list(zip(larger[:-1], self[:-1], strict=True))
        for own, theirs in arrays:
            own.reshape(matches, 2 * longest, -1)[:, :longest] = theirs.reshape(matches, longest, -1)
        larger.lengths[:] = self.lengths
        return larger


class SelfPlay:
    """Matches of a network against itself, from which it learns.

    Args:
        game: game that has a circuit. Where several roles have a choice, their moves are random
        key: key of the random numbers
        settings: parameters
        begin: what an earlier self-play of the same game has learned

    Attributes:
        network: the network, which changes with each match
        matches: number of matches
        positions: number of positions so far that a network can learn from
    """

    def __init__(
        self,
        game: Game,
        key: np.uint64,
        settings: SelfPlaySettings | None = None,
        begin: SelfPlayState | None = None,
    ) -> None:
        self._game, self._settings = game, settings or SelfPlaySettings()
        if begin is None:
            tuples = draw_tuples(game, np.random.default_rng(int(extend(key, _TUPLES))))
            network = Network.zero(tuples, game.num_roles)
            begin = SelfPlayState(network, np.zeros_like(network.entries), np.zeros_like(network.entries), 0, 0)
        self.network, self._sums, self._changes, self.matches, self.positions = begin.copy()
        self._rng = np.random.default_rng(int(extend(extend(key, _MATCHES), self.matches)))
        num = self._settings.matches
        self._states, self._plies = np.repeat(game.initial[None], num, axis=0), np.zeros(num, np.int32)
        self._openings = self._drawn_openings(num)
        self._history = _History.empty(num, _FEWEST_ROWS, game.num_words)
        self._size = 1  # number of matches whose turn is next, the first ones of all

    def _drawn_openings(self, num: int) -> NDArray[np.int32]:
        """Return the number of random plies at the beginning of some matches."""
        return self._rng.integers(0, self._settings.opening + 1, num, dtype=np.int32)

    @property
    def state(self) -> SelfPlayState:
        """What was learned so far; its arrays change with further matches."""
        return SelfPlayState(self.network, self._sums, self._changes, self.matches, self.positions)

    @property
    def is_barren(self) -> bool:
        """See `SelfPlayState.is_barren`."""
        return self.state.is_barren

    def play(self, deadline: float, matches: int = 1 << 60) -> None:
        """Play until the deadline, in seconds of `time.monotonic`, or until so many matches have been played in all."""
        while self.matches < matches and monotonic() < deadline:
            self._step()

    def _step(self) -> None:
        """Make a move in all matches, or in the first ones where there are very many moves.

        So in a slow game, matches come to an end soon, and not all at once.
        """
        part = slice(0, self._size)
        states = self._states[part]
        legal = self._game.legal(states)
        starts, counts = legal.by_role(self._game.num_roles)
        if not counts.all():  # the rules leave a role without a move
            self._begin_anew(np.flatnonzero(~counts.all(axis=1)))
            return
        matches, movers, children = self._children(states, legal, starts, counts)
        nums = np.bincount(matches, minlength=len(states))
        is_over, goals = self._game.terminal(children), np.zeros((len(children), self._game.num_roles))
        goals[is_over] = np.maximum(self._game.evaluate(children[is_over])[1], 0) / HIGHEST_GOAL
        values = self.network(children, movers[matches], states, matches)
        values[is_over] = goals[is_over, movers[matches[is_over]]]
        best, chosen = self._chosen(values, nums, part)
        self._note(part, children[chosen], movers, nums, values[best], values[chosen])
        self._states[part], self._plies[part] = children[chosen], self._plies[part] + 1
        self._end(np.flatnonzero(is_over[chosen]), goals[chosen[is_over[chosen]]])
        self._size = min(max(_MOST_CHILDREN * len(states) // len(children), 1), len(self._states))

    def _children(
        self, states: NDArray[np.uint64], legal: Legal, starts: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
        """Return the positions after all moves, with the number of the match of each; and the mover of each match.

        Where several roles have a choice, this is a single position, after random moves. `starts`, `counts`: see
        `Legal.by_role`.
        """
        drawn = random_moves(starts, counts, self._rng)
        every, movers = np.arange(len(states)), counts.argmax(axis=1)
        has_mover = (counts > 1).sum(axis=1) == 1
        nums = np.where(has_mover, counts[every, movers], 1)
        matches = np.repeat(every, nums)
        numbers = np.arange(len(matches)) - np.repeat(np.cumsum(nums) - nums, nums)  # of the moves of a match
        joint = legal.actions[drawn[matches]]
        moves = legal.actions[starts[matches, movers[matches]] + numbers]
        own = has_mover[matches]
        joint[own, movers[matches[own]]] = moves[own]
        return matches, movers, self._game.next(states[matches], joint)

    def _chosen(
        self, values: NDArray[np.float64], nums: NDArray[np.int64], part: slice
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of the best child of each match, and of the one that is chosen."""
        firsts = np.cumsum(nums) - nums
        ties = values + _TIE * self._rng.random(len(values))
        best = np.empty_like(firsts)
        _find_best(ties, firsts, best)
        is_random = self._rng.random(len(nums)) < self._settings.random
        is_random |= self._plies[part] < self._openings[part]
        other = firsts + (self._rng.random(len(nums)) * nums).astype(np.int64)
        return best, np.where(is_random, other, best)

    def _note(
        self,
        part: slice,
        states: NDArray[np.uint64],
        movers: NDArray[np.int64],
        nums: NDArray[np.int64],
        bests: NDArray[np.float64],
        values: NDArray[np.float64],
    ) -> None:
        """Add the positions after the moves of a role that had a choice alone to the history."""
        if self._history.lengths[part].max() == self._history.longest:
            self._history = self._history.with_room()
        history, free = self._history, nums > 1
        lanes = np.arange(len(self._states))[part][free]
        rows = lanes * history.longest + history.lengths[lanes]
        history.states[rows], history.movers[rows] = states[free], movers[free]
        history.bests[rows], history.explored[rows] = bests[free], values[free] < bests[free] - 2 * _TIE
        history.lengths[lanes] += 1
        self.positions += len(lanes)

    def _end(self, over: NDArray[np.int64], goals: NDArray[np.float64]) -> None:
        """Learn from the matches that are over, with the goals of the roles, and begin new ones."""
        learned = self.network.arrays, self._sums, self._changes
        rate = self._settings.rate / len(self.network.offsets)
        _learn(*learned, self._history, over, np.ascontiguousarray(goals), rate, self._settings.trace)
        self._begin_anew(np.union1d(over, np.flatnonzero(self._plies >= _MOST_PLIES)))

    def _begin_anew(self, ended: NDArray[np.int64]) -> None:
        """Begin new matches in the place of some that are over, or given up."""
        self.matches += len(ended)
        self._states[ended], self._plies[ended], self._history.lengths[ended] = self._game.initial, 0, 0
        self._openings[ended] = self._drawn_openings(len(ended))


def played_positions(
    game: Game, network: Network, key: np.uint64, num: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return positions after moves of roles that had a choice alone, in matches of a network that does not learn.

    More moves are random than in self-play, so that facts are not always there together. The last positions of matches
    are left out, whose values the rules tell.

    Args:
        game: game of the network
        network: the network
        key: key of the random numbers
        num: number of positions; fewer where roles seldom have a choice alone

    Returns:
        The positions, uint64[n, words], and the role that has moved in each, uint8[n].
    """
    sums = np.zeros_like(network.entries)
    play = SelfPlay(game, key, _WITHOUT_LEARNING, SelfPlayState(network, sums, sums, 0, 0))
    states, movers, kept = [np.zeros((0, game.num_words), np.uint64)], [np.zeros(0, np.uint8)], 0
    for _ in range(_MOST_STEPS):
        before = play._history.lengths.copy()
        play._step()
        history = play._history
        lanes = np.flatnonzero(history.lengths > before)
        rows = lanes * history.longest + history.lengths[lanes] - 1
        states.append(history.states[rows])
        movers.append(history.movers[rows])
        kept += len(rows)
        if kept >= num:
            break
    return np.concatenate(states)[:num], np.concatenate(movers)[:num]


@kernel
def _find_best(values: F64, firsts: I64, best: I64) -> None:
    """Find the index of the highest value of each group of values; `firsts` has the first index of each group."""
    for group in range(firsts.size):
        end = firsts[group + 1] if group + 1 < firsts.size else values.size
        best[group] = firsts[group]
        for index in range(firsts[group] + 1, end):
            if values[index] > values[best[group]]:
                best[group] = index


@inlined
def _correct(
    network: NetworkArrays, sums: F32x2, changes: F32x2, role: int, indices: I32, error: float, rate: float
) -> None:
    """Change the entries of a position by its error, each with a step size of its own, see the module.

    Both sums are halved before they become so large that small errors are lost by rounding.
    """
    for number in range(indices.size):
        entry = indices[number]
        change = changes[role, entry]
        share = abs(sums[role, entry]) / change if change else np.float32(1.0)
        network.entries[role, entry] += np.float32(rate * error) * share
        if change > _LARGEST_SUM:
            sums[role, entry] *= np.float32(0.5)
            change *= np.float32(0.5)
        sums[role, entry] += np.float32(error)
        changes[role, entry] = change + np.float32(abs(error))


@kernel
def _learn(
    network: NetworkArrays,
    sums: F32x2,
    changes: F32x2,
    history: _History,
    matches: I64,
    goals: F64x2,
    rate: float,
    trace: float,
) -> None:
    """Draw the values of all positions of some matches towards their targets; goals: float64[matches, roles]."""
    indices = np.empty_like(network.offsets)
    longest = history.movers.size // history.lengths.size
    for number in range(matches.size):
        first = matches[number] * longest
        for role in range(goals.shape[1]):
            target = goals[number, role]
            for row in range(first + history.lengths[matches[number]] - 1, first - 1, -1):
                if history.movers[row] != role:
                    continue
                look_up(network, history.states, row, indices)
                error = target - network_value(network, role, indices)
                _correct(network, sums, changes, role, indices, error, rate)
                best = float(history.bests[row])
                target = best if history.explored[row] else (1.0 - trace) * best + trace * target
