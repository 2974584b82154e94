"""UCT: the strong general opponent, for any game and any number of roles, against the clock or for so many simulations.

The other kind of lookahead beside search.py: it needs no value for open positions but plays on at random from them.
The trees are those of forest.py, where the sources are named; playouts.py evaluates their leaves, a batch at a time. A
tree is grown anew for every move.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .forest import Forest
from .player import Player, Turn
from .playouts import MAX_PLIES, playout_goals
from .search import draw_each
from .streams import extend

if TYPE_CHECKING:
    from ..rules.game import Game

SEARCH = 2  # the draw of streams.py that a search's own streams grow from
SELECTION, PLAYOUT = 0, 1  # what a simulation's stream is for
DEFAULT_SIMULATIONS = 1000
HIGHEST_GOAL = 100
NODES_AT_ONCE = 1 << 20  # bounds the memory of a search with a budget of simulations


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How long to search, and how.

    simulations  of a tree; 1000 where there is no budget at all
    seconds      for all lanes that are asked at once together; with both, whichever is over first. A search with a
                 clock is not repeatable, and begins with few leaves, so that something is found out where playouts
                 take long; where not one is over in time, the move is drawn
    exploration  the factor of the square root in UCB1, for goals scaled to 0 .. 1; sqrt(2) as in UCB1 itself
    leaves       simulations of a tree under way at once: they are evaluated in one batch, but none knows yet what the
                 others will find. In connect four 32 play as well as 16 or 8 do with as many simulations, and
                 better in the same time
    playouts     from each leaf; their mean is what the simulation found. They fill the batch, so that four cost
                 hardly more than the one of the textbook
    max_plies    of a playout; one that goes on is worth 0 to everybody, as a match that is cut off
    """

    simulations: int | None = None
    seconds: float | None = None
    exploration: float = 2**0.5
    leaves: int = 32
    playouts: int = 4
    max_plies: int = MAX_PLIES

    def __post_init__(self) -> None:
        if self.simulations is None and self.seconds is None:
            object.__setattr__(self, "simulations", DEFAULT_SIMULATIONS)
        for name in ("simulations", "leaves", "playouts", "max_plies"):
            _check(name, getattr(self, name), 1)
        for name in ("seconds", "exploration"):
            _check(name, getattr(self, name), 0)


def _check(name: str, value: float | None, least: int) -> None:
    if value is not None and not least <= value < float("inf"):
        raise GameloreError(f"expected {name} of at least {least}, got {value}; give another, or leave it out")


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found out about the moves at its roots: those of tree i and role r, in action order, are at
    `offsets[i * roles + r : i * roles + r + 2]`."""

    offsets: NDArray[np.int64]  # [trees * roles + 1]
    visits: NDArray[np.int32]  # [moves]
    means: NDArray[np.float64]  # [moves], the mean goal, 0 to 100; nan where not visited


def search(
    game: Game,
    states: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    settings: SearchSettings,
    deadline: float | None = None,
) -> Searched:
    """Grows one tree from each of the states uint64[n, words], drawing from the streams of `keys` uint64[n].

    With a budget of simulations tree i depends on states[i], keys[i] and the engine only. When the time is up, by the
    settings or by `deadline` (in seconds of `time.monotonic`), whichever is first, simulations that are not finished
    are dropped, and none are begun that would hardly be in time. In terminal and stuck states there is nothing to find
    out.
    """
    forest = Forest(game, states, settings.exploration)
    if settings.seconds is not None:
        own = monotonic() + settings.seconds
        deadline = own if deadline is None else min(own, deadline)
    limit = np.inf if settings.simulations is None else settings.simulations
    done, each, begin = 0, 0.0, monotonic()
    while done < limit:
        leaves = int(min(settings.leaves, limit - done, np.inf if deadline is None else done + 1))
        if done and deadline is not None and begin + leaves * each > deadline:
            break  # it would come too late, going by the last one
        streams = extend(keys, done)
        walks = extend(extend(streams, SELECTION)[:, None], np.arange(leaves)).ravel()
        ends = forest.select(np.repeat(np.arange(len(states)), leaves), walks)
        values = _values(forest, ends.reshape(-1, leaves), extend(streams, PLAYOUT), settings, deadline)
        if values is None:
            forest.withdraw(ends)
            break
        forest.back_up(ends, values)
        done += leaves
        now = monotonic()
        each, begin = (now - begin) / leaves, now
    return _at_roots(forest, len(states))


def _values(
    forest: Forest,
    ends: NDArray[np.int32],
    keys: NDArray[np.uint64],
    settings: SearchSettings,
    deadline: float | None,
) -> NDArray[np.float64] | None:
    """What the nodes int32[trees, leaves] are worth, float64[trees * leaves, roles]; None when the time is up."""
    leaves = forest.states[np.repeat(ends, settings.playouts, axis=1)]
    goals = playout_goals(forest.game, leaves, keys, max_plies=settings.max_plies, deadline=deadline)
    if goals is None:
        return None
    values: NDArray[np.float64] = np.maximum(goals, 0).reshape(ends.size, settings.playouts, -1).mean(axis=1)
    return values / HIGHEST_GOAL


def _at_roots(forest: Forest, trees: int) -> Searched:
    counts, starts = forest.num_moves[:trees].ravel(), forest.move_start[:trees].ravel()
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    moves = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
    visits = forest.visits[moves]
    means = np.divide(HIGHEST_GOAL * forest.sums[moves], visits, out=np.full(len(moves), np.nan), where=visits > 0)
    return Searched(offsets, visits, means)


class UCT(Player):
    """Makes the move that a search visited most; ties are drawn. It never searches past the deadline of a turn."""

    def __init__(self, settings: SearchSettings | None = None) -> None:
        self.settings = settings or SearchSettings()

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`. Where there is but one move nothing is searched."""
        choices = np.zeros(len(turn.rows), np.int32)
        several = np.flatnonzero(turn.graph.num_moves[turn.rows, turn.role] > 1)
        size = max(1, NODES_AT_ONCE // (self.settings.simulations or 1))  # with time only, all of them share it
        for begin in range(0, len(several), size):
            part = several[begin : begin + size]
            choices[part] = self._choose(turn, part)
        return choices

    def _choose(self, turn: Turn, part: NDArray[np.intp]) -> NDArray[np.int32]:
        """The choices for these places of the turn."""
        game, keys, plies = turn.graph.game, turn.keys[part], turn.plies[part]
        streams = extend(extend(keys, plies), SEARCH)
        searched = search(game, turn.graph.states[turn.rows[part]], streams, self.settings, turn.deadline)
        roles = game.num_roles
        visits = searched.visits.astype(np.float64)
        drawn = draw_each(searched.offsets, visits, np.repeat(keys, roles), np.repeat(plies, roles))
        return drawn.reshape(-1, roles)[:, turn.role]
