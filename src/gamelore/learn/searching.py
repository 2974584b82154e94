"""A learner that searches as well: what it has learned of a move and what playouts say of it, weighed together.

Each of the two is a mean of so many observations, the visits of the afterstate and the simulations that tried the move.
They are pooled: (visits * Q + simulations * mean) / (visits + simulations). So a move that was met often is judged by
what came of it against this very opponent, a new one by the search.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..play.player import Turn
from ..play.search import draw_each
from ..play.streams import EXPLORE, extend, uniform
from ..play.uct import NODES_AT_ONCE, SEARCH, SearchSettings, search
from .learner import Learner


def pooled(
    q: NDArray[np.float64], visits: NDArray[np.int32], means: NDArray[np.float64], tries: NDArray[np.int32]
) -> NDArray[np.float64]:
    """The estimates of moves; q and means in units of reward, all float64[moves] or int32[moves].

    Where there is neither a visit nor a simulation, q as it is; means count only where there was a simulation.
    """
    total = visits.astype(np.float64) + tries
    sums = visits * q + tries * np.where(tries > 0, means, 0.0)
    return np.divide(sums, total, out=q.copy(), where=total > 0)


def search_on(learner: Learner, turn: Turn, choices: NDArray[np.int32], seconds: float) -> NDArray[np.int32]:
    """The learner's choices int32[n] for this turn, thought over for so many seconds, or till the deadline of the turn.

    The seconds are for all lanes of the turn together. Where the learner explores, and where no simulation was over in
    time, its choice stands.
    """
    epsilon = np.array([learner.settings[lane].epsilon for lane in turn.lanes])
    exploring = uniform(turn.keys, turn.plies, EXPLORE) < epsilon
    places = np.flatnonzero(~exploring & (turn.graph.num_moves[turn.rows, turn.role] > 1))
    if not places.size:
        return choices
    asked = replace(
        turn, lanes=turn.lanes[places], rows=turn.rows[places], keys=turn.keys[places], plies=turn.plies[places]
    )
    thought_over = choices.copy()
    thought_over[places] = _search(learner, asked, choices[places], seconds)
    return thought_over


def _search(learner: Learner, turn: Turn, choices: NDArray[np.int32], seconds: float) -> NDArray[np.int32]:
    graph, streams = turn.graph, extend(extend(turn.keys, turn.plies), SEARCH)
    settings = SearchSettings(simulations=max(1, NODES_AT_ONCE // len(turn.rows)), seconds=seconds)
    searched = search(graph.game, graph.states[turn.rows], streams, settings, turn.deadline)
    if not searched.visits.any():
        return choices
    thought_over = np.empty_like(choices)
    for i, lane in enumerate(turn.lanes.tolist()):
        begin = i * graph.game.num_roles + turn.role
        moves = slice(*searched.offsets[begin : begin + 2])
        offsets, q, visits = learner.estimates(lane, turn.rows[i : i + 1])
        values = pooled(q, visits, searched.means[moves], searched.visits[moves])
        if learner.settings[lane].ties == "first":
            thought_over[i] = values.argmax()
        else:
            thought_over[i] = draw_each(offsets, values, turn.keys[i : i + 1], turn.plies[i : i + 1])[0]
    return thought_over
