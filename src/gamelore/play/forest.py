"""Search trees of many lanes in flat arrays: one simulation is a walk down, a playout at its end, and a walk back up.

Selection is UCB1 applied to trees (Kocsis & Szepesvari 2006, "Bandit based Monte-Carlo planning"), by every role for
itself: a node keeps visits and values of each role's own moves, each role takes the move with its best bound, and the
joint move leads to the child. That is decoupled UCT, for any number of roles and simultaneous moves, as in CadiaPlayer
(Finnsson & Bjornsson 2008, "Simulation-based approach to general game playing"); where one role moves at a time, and
the others have nothing but a noop, it is plain UCT, each role maximising its own goal. With simultaneous moves it need
not come to an equilibrium (Shafiei, Sturtevant & Schaeffer 2009, "Comparing UCT versus CFR in simultaneous games"):
roles that are alike choose in step, and never see what it is to be the only one that does otherwise. Drawing the bounds
at random mends that, but lost to this in most simultaneous games where it was tried (goofspiel: 51 wins to 149).

Several simulations of a tree are under way at once. A visit counts on the way down, its value on the way back, so until
then it counts as a loss: a virtual loss, which sends the next one elsewhere (Chaslot, Winands & van den Herik 2008,
"Parallel Monte-Carlo tree search").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .kernel import kernel
from .search import draw_best
from .statetable import longer
from .streams import mix

if TYPE_CHECKING:
    from ..rules.game import Game

# What is known of a node. Many are visited once only, so the moves are asked for at the second visit.
BORN, SEEN, LISTED, CLOSED = 0, 1, 2, 3  # nothing yet; its state; its moves; that there are none: terminal or stuck

PARENT, CHILD, SIBLING, DEPTH = 0, 1, 2, 3


class Forest:
    """Trees of one game, one for each of the states uint64[trees, words]; node i < trees is the root of tree i.

    Arrays, all with room for more than is in use:

    stage       int8[nodes], what is known, see above
    states      uint64[nodes, words]
    links       int32[nodes, 4], parent, first child and next sibling, -1 for none; and the depth
    led         int32[nodes, roles], the joint move that led here: positions within each role's legal moves
    walks       int32[nodes], how often it was walked through
    num_moves   int32[nodes, roles], 0 until listed
    move_start  int64[nodes, roles], into the arrays by move
    actions     int32[moves]
    visits      int32[moves], how often the role chose it
    sums        float64[moves], of what these visits were worth to the role, 0 to 1 each
    """

    def __init__(self, game: Game, states: NDArray[np.uint64], exploration: float) -> None:
        trees, roles = len(states), game.num_roles
        self.game = game
        self.exploration = exploration
        self.num_nodes = trees
        self.num_listed = 0  # moves in use
        self.states = states.copy()
        self.stage = np.full(trees, SEEN, np.int8)
        self.links = np.tile(np.array([-1, -1, -1, 0], np.int32), (trees, 1))
        self.led = np.zeros((trees, roles), np.int32)
        self.walks = np.zeros(trees, np.int32)
        self.num_moves = np.zeros((trees, roles), np.int32)
        self.move_start = np.zeros((trees, roles), np.int64)
        self.actions = np.zeros(0, np.int32)
        self.visits = np.zeros(0, np.int32)
        self.sums = np.zeros(0)
        self._scores = np.empty(1)

    def select(self, trees: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Walks down once for each entry of `trees` int64[n], in this order; the nodes at the ends, int32[n].

        Such a node is new, or has no moves. Ties are drawn from the streams of `keys` uint64[n]. Each walk is to be
        followed by `back_up` or `withdraw`.
        """
        ends = trees.astype(np.int32)
        self._make_room(len(ends))
        first = self.num_nodes
        self._descend(ends, keys)
        self._list(np.unique(ends[self.stage[ends] == SEEN]))
        self._descend(ends, keys)
        self._reach(np.arange(first, self.num_nodes))
        return ends

    def back_up(self, ends: NDArray[np.int32], values: NDArray[np.float64]) -> None:
        """Credits the moves of the walks that ended in these nodes with values float64[n, roles], each 0 to 1."""
        self._credit(ends, values, 0)

    def withdraw(self, ends: NDArray[np.int32]) -> None:
        """Takes back walks that ended in these nodes and led to nothing."""
        self._credit(ends, np.zeros((len(ends), self.game.num_roles)), -1)

    def _credit(self, ends: NDArray[np.int32], values: NDArray[np.float64], change: int) -> None:
        _credit(ends, values, change, self.links, self.led, self.move_start, self.walks, self.visits, self.sums)

    def _descend(self, ends: NDArray[np.int32], keys: NDArray[np.uint64]) -> None:
        self.num_nodes = _descend(
            ends,
            keys,
            self.exploration,
            self.num_nodes,
            self.stage,
            self.links,
            self.led,
            self.walks,
            self.num_moves,
            self.move_start,
            self.visits,
            self.sums,
            self._scores,
        )

    def _list(self, nodes: NDArray[np.int32]) -> None:
        """Asks the rules for the moves of these nodes."""
        if not len(nodes):
            return
        legal = self.game.legal(self.states[nodes])
        starts, counts = legal.by_role(self.game.num_roles)
        self.num_moves[nodes] = counts
        self.move_start[nodes] = self.num_listed + starts
        self.stage[nodes] = np.where(counts.all(axis=1), LISTED, CLOSED)
        begin, self.num_listed = self.num_listed, self.num_listed + len(legal.actions)
        if self.num_listed > len(self.actions):
            for name in ("actions", "visits", "sums"):
                setattr(self, name, longer(getattr(self, name), 2 * self.num_listed))
        self.actions[begin : self.num_listed] = legal.actions
        if counts.max() > len(self._scores):
            self._scores = np.empty(counts.max())

    def _reach(self, nodes: NDArray[np.int64]) -> None:
        """Asks the rules for the states of new nodes."""
        if len(nodes):
            parents = self.links[nodes, PARENT]
            joint = self.actions[self.move_start[parents] + self.led[nodes]]
            self.states[nodes] = self.game.next(self.states[parents], joint)
            self.stage[nodes] = SEEN

    def _make_room(self, nodes: int) -> None:
        if self.num_nodes + nodes > len(self.stage):
            for name in ("states", "stage", "links", "led", "walks", "num_moves", "move_start"):
                setattr(self, name, longer(getattr(self, name), 2 * (self.num_nodes + nodes)))


@kernel("int64(int64, int32[::1], int32[:, ::1], int32[:, ::1])")
def _child(node: int, choice: NDArray[np.int32], links: NDArray[np.int32], led: NDArray[np.int32]) -> int:
    """The child that a joint move leads to; -1 where there is none yet."""
    child = int(links[node, CHILD])
    while child >= 0:
        same = True
        for role in range(choice.size):
            same &= led[child, role] == choice[role]
        if same:
            break
        child = int(links[child, SIBLING])
    return child


@kernel("void(int64, int64, int32[::1], int8[::1], int32[:, ::1], int32[:, ::1])")
def _add_child(
    node: int,
    child: int,
    choice: NDArray[np.int32],
    stage: NDArray[np.int8],
    links: NDArray[np.int32],
    led: NDArray[np.int32],
) -> None:
    stage[child] = BORN
    led[child] = choice
    links[child, PARENT] = node
    links[child, CHILD] = -1
    links[child, SIBLING] = links[node, CHILD]
    links[child, DEPTH] = links[node, DEPTH] + 1
    links[node, CHILD] = child


@kernel("void(float64, int64, int32[::1], float64[::1], float64[::1])")
def _bounds(
    exploration: float, walks: int, visits: NDArray[np.int32], sums: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """UCB1 of each move: the mean value plus exploration * sqrt(ln walks / visits); infinite if unvisited."""
    log = np.log(walks)
    for i in range(visits.size):
        if visits[i] == 0:
            out[i] = np.inf
        else:
            out[i] = sums[i] / visits[i] + exploration * np.sqrt(log / visits[i])


@kernel(
    "int64(int32[::1], uint64[::1], float64, int64, int8[::1], int32[:, ::1], int32[:, ::1], int32[::1],"
    " int32[:, ::1], int64[:, ::1], int32[::1], float64[::1], float64[::1])"
)
def _descend(
    ends: NDArray[np.int32],
    keys: NDArray[np.uint64],
    exploration: float,
    num_nodes: int,
    stage: NDArray[np.int8],
    links: NDArray[np.int32],
    led: NDArray[np.int32],
    walks: NDArray[np.int32],
    num_moves: NDArray[np.int32],
    move_start: NDArray[np.int64],
    visits: NDArray[np.int32],
    sums: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> int:
    """Walks on from each end while its moves are listed; a step into the unknown makes a node. The new num_nodes."""
    choice = np.empty(led.shape[1], np.int32)
    for i in range(ends.size):
        node = int(ends[i])
        while stage[node] == LISTED:
            for role in range(choice.size):
                begin, end = move_start[node, role], move_start[node, role] + num_moves[node, role]
                choice[role] = 0
                if end > begin + 1:
                    bounds = scores[: end - begin]
                    _bounds(exploration, walks[node], visits[begin:end], sums[begin:end], bounds)
                    choice[role] = draw_best(bounds, 0.0, mix(keys[i], np.uint64(role)), np.uint64(links[node, DEPTH]))
                visits[begin + choice[role]] += 1
            walks[node] += 1
            child = _child(node, choice, links, led)
            if child < 0:
                child = num_nodes
                num_nodes += 1
                _add_child(node, child, choice, stage, links, led)
            node = child
        ends[i] = node
    return num_nodes


@kernel(
    "void(int32[::1], float64[:, ::1], int64, int32[:, ::1], int32[:, ::1], int64[:, ::1], int32[::1], int32[::1],"
    " float64[::1])"
)
def _credit(
    ends: NDArray[np.int32],
    values: NDArray[np.float64],
    change: int,
    links: NDArray[np.int32],
    led: NDArray[np.int32],
    move_start: NDArray[np.int64],
    walks: NDArray[np.int32],
    visits: NDArray[np.int32],
    sums: NDArray[np.float64],
) -> None:
    """Adds values to the sums, and `change` to the visits, of the moves on the way from each end up to its root."""
    for i in range(ends.size):
        node = int(ends[i])
        parent = int(links[node, PARENT])
        while parent >= 0:
            for role in range(values.shape[1]):
                move = move_start[parent, role] + led[node, role]
                visits[move] += change
                sums[move] += values[i, role]
            walks[parent] += change
            node, parent = parent, int(links[parent, PARENT])
