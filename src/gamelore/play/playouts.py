"""Random playouts from any states, side by side: the leaf evaluation of a search."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .kernel import kernel
from .streams import below, extend

if TYPE_CHECKING:
    from ..rules.game import Game

MAX_PLIES = 1000  # of a playout: random moves need not end a game that players would end


def playout_goals(
    game: Game,
    states: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    *,
    max_plies: int = MAX_PLIES,
    deadline: float | None = None,
) -> NDArray[np.int16] | None:
    """Goals int16[trees, n, roles] of one uniformly random playout from each of the states uint64[trees, n, words].

    -1 where the rules give no goal or several, and where a playout ends elsewhere than in a terminal state: stuck,
    or after `max_plies`. The playouts of tree i depend on states[i], keys[i] and the engine only: the native one plays
    in machine code, 64 matches for hardly more than the price of one. None, and nothing is known, once `monotonic()`
    is past the deadline.
    """
    trees, each, words = states.shape
    if game.engine == "reasoner":
        streams = extend(keys[:, None], np.arange(each)).ravel()
        goals = _reasoned(game, states.reshape(-1, words), streams, max_plies, deadline)
        return None if goals is None else goals.reshape(trees, each, game.num_roles)
    goals = np.empty((trees, each, game.num_roles), np.int16)
    for tree in range(trees):
        if deadline is not None and monotonic() > deadline:
            return None
        goals[tree] = game.rollouts(states[tree], int(keys[tree]), threads=1, max_steps=max_plies).goals
    return goals


def _reasoned(
    game: Game, states: NDArray[np.uint64], keys: NDArray[np.uint64], max_plies: int, deadline: float | None
) -> NDArray[np.int16] | None:
    """As above, of states uint64[n, words], ply by ply: a playout can take longer than there is time."""
    last = states.copy()
    running = np.arange(len(states))
    for ply in range(max_plies):
        if deadline is not None and monotonic() > deadline:
            return None
        legal = game.legal(states)  # none in terminal states, so goals are asked for once, at the end
        going, joint = _draw(legal.offsets, legal.actions, keys[running], ply, game.num_roles)
        if len(going) < len(running):
            last[running] = states
            running, states = running[going], states[going]
        if not len(going):
            break
        states = game.next(states, joint)
    last[running] = states
    terminal, goals = game.evaluate(last)
    goals[~terminal] = -1
    return goals


@kernel("Tuple((int64[::1], int32[:, ::1]))(int64[::1], int32[::1], uint64[::1], int64, int64)")
def _draw(
    offsets: NDArray[np.int64], actions: NDArray[np.int32], keys: NDArray[np.uint64], ply: int, roles: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where every role has a move, and a random one of each there: (places [going], joint moves [going, roles])."""
    going = np.empty(keys.size, np.int64)
    joint = np.empty((keys.size, roles), np.int32)
    size = 0
    for i in range(keys.size):
        stuck = False
        for role in range(roles):
            begin = offsets[i * roles + role]
            count = offsets[i * roles + role + 1] - begin
            if count == 0:
                stuck = True
                break
            joint[size, role] = actions[begin]
            if count > 1:
                joint[size, role] = actions[begin + below(keys[i], np.uint64(ply), np.uint64(role), count)]
        if not stuck:
            going[size] = i
            size += 1
    return going[:size], joint[:size]
