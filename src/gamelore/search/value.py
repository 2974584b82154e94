"""Learned value of positions, linear in their facts, and its use as a prior for the moves of a tree.

There is one set of weights for each role. It values the positions after a move of this role, for this role. So the
moves of a mover are compared by a single set.

A new move begins with virtual visits, and the prior is their mean value. A promising move is therefore tried first, a
poor move late or never, and the influence of the prior falls as the number of real visits grows. Virtual visits of this
kind are the heuristic values of Gelly & Silver (Combining Online and Offline Knowledge in UCT, 2007).

If two roles have opposite interests, the learned values of the leaves are also backed up by minimax, apart from the
results of playouts. A move is then compared by the weighted mean of both (implicit minimax backups; Lanctot, Winands,
Pepels & Sturtevant 2014). Playouts see far but vaguely; the minimax value sees tactics at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..game.engines import HIGHEST_GOAL, unpack_bits
from ..networks.network import NO_NETWORK, Network, NetworkArrays
from ..players.kernel import F64, F32x3, U64x2, inlined
from .settings import GrowthSettings
from .tree import COUNT, EDGE, FIRST, MOVER, NOBODY, PARENT, PROVED, STAGE, TreeArrays, are_opposed

if TYPE_CHECKING:
    from ..game.game import Game

NETWORK_TRUST = 0.5
"""How far a network is trusted. What it explains of the results of short searches says little about its worth."""
_BYTES, _BITS = 8, 64  # of a word


class Prior(NamedTuple):
    """A linear value in the form that kernels read, and the way in which it becomes a prior.

    tables     float32[roles, bytes of a state, 256], the sum of the weights of the facts in a byte, by role
    constants  float64[roles]
    visits     number of virtual visits of a new move; 0 for no prior
    gain       factor of the difference between the value of a move and the mean value of its siblings
    minimax    weight of the minimax value in the value of a move, from 0 to 1
    determination  how far the value explains mean results of walks, from 0 to 1
    network    an n-tuple network that takes the place of the linear value; one without tuples if there is none
    """

    tables: F32x3
    constants: F64
    visits: int
    gain: float
    minimax: float
    determination: float
    network: NetworkArrays


class UpperBound(NamedTuple):
    """Parameters of the upper bound by which walks choose moves, see `walks.best_move`.

    exploration  factor of the square root in UCB1
    minimax      weight of the minimax value in the value of a move, from 0 to 1
    joint        exploration where several roles choose, whose moves have neither priors nor minimax values
    """

    exploration: float
    minimax: float
    joint: float


@dataclass(frozen=True)
class LinearValue:
    """Value of positions that is linear in their facts, on the scale of 0 to 1 for goals from 0 to 100.

    weights    float32[roles, 64 * words], the weight of each fact in positions after a move of the role
    constants  float64[roles]
    determination  coefficient of determination of the value of the generation before, in the positions of which these
                   weights were taught, 0 to 1. The search trusts the value as far as this goes: it is the least
                   weight of minimax values, and a factor of the number of virtual visits, and narrows the exploration
    foresight      weight of minimax values, beside mean results of walks, in the best forecast of the results of
                   matches, 0 to 1
    network        n-tuple network that takes the place of the linear value as a prior, see `prior`; None for none
    """

    weights: NDArray[np.float32]
    constants: NDArray[np.float64]
    determination: float = 0.0
    foresight: float = 0.0
    network: Network | None = None

    @classmethod
    def zero(cls, game: Game) -> LinearValue:
        """Return the value 0 for every position of a game."""
        roles = game.num_roles
        return cls(np.zeros((roles, _BITS * game.num_words), np.float32), np.zeros(roles))

    def __call__(self, states: NDArray[np.uint64], role: int) -> NDArray[np.float64]:
        """Return the values for a role of states after a move of this role, uint64[n, words]: float64[n]."""
        facts = unpack_bits(states, self.weights.shape[1])
        values: NDArray[np.float64] = facts @ self.weights[role].astype(np.float64) + self.constants[role]
        return values

    @property
    def trust(self) -> float:
        """How far the search trusts the value, 0 to 1: the determination; a network is trusted as far everywhere."""
        return self.determination if self.network is None else NETWORK_TRUST

    def virtual_visits(self, settings: GrowthSettings) -> int:
        """Return the number of virtual visits of a new move: 0 where children are not looked at, so have no values."""
        return round(self.trust * settings.prior_visits) if settings.scout else 0

    def prior(self, settings: GrowthSettings) -> Prior:
        """Return the prior for a tree with these settings.

        The weight of minimax values is the determination, or halfway between this and the foresight if that is higher;
        for a network, it is the trust.
        """
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float32)
        tables = self.weights.reshape(len(self.weights), -1, _BYTES) @ bits.T
        trust = self.trust
        visits = self.virtual_visits(settings)
        foresight = self.foresight if self.network is None else 0.0  # of the linear value
        weight = trust + max(foresight - trust, 0.0) / 2.0 if settings.minimax is None else settings.minimax
        if not visits:
            weight, trust = 0.0, 0.0
        network = self.network.arrays if self.network is not None else NO_NETWORK
        constants = self.constants if self.network is None else np.zeros_like(self.constants)
        return Prior(np.ascontiguousarray(tables), constants, visits, settings.gain, float(weight), trust, network)


def no_prior(game: Game) -> Prior:
    """Return the prior that leaves new moves without visits and values."""
    return LinearValue.zero(game).prior(GrowthSettings(prior_visits=0))


def upper_bound(settings: GrowthSettings, prior: Prior, assumption: int) -> UpperBound:
    """Return the parameters for a tree with this `Tree.assumption`.

    The better the value explains results, the less exploration it takes. Where interests are not opposite, there are no
    minimax values, and the exploration is that without a value.
    """
    if not are_opposed(assumption):
        return UpperBound(settings.exploration, 0.0, settings.exploration)
    narrowed = settings.exploration * (1.0 - settings.narrowing * prior.determination)
    return UpperBound(narrowed, prior.minimax, settings.exploration)


@inlined
def worth(prior: Prior, role: int, states: U64x2, row: int) -> float:
    """Return the value for a role of a state after its move, without the constant; for use inside kernels."""
    total = np.float32(0.0)
    for word in range(states.shape[1]):
        bits = states[row, word]
        for byte in range(_BYTES * word, _BYTES * word + _BYTES):
            total += prior.tables[role, byte, int(bits & np.uint64(255))]
            bits >>= np.uint64(8)
    return float(total)


@inlined
def add_prior(tree: TreeArrays, node: int, mover: int, prior: Prior) -> None:
    """Give the moves of a mover virtual visits and a first minimax value, from the values that `tree.sums` holds.

    The prior is the mean value of all moves, and the difference from this mean times the gain, from 0 to 1. Moves that
    have a child already end the match; their minimax value is known. For use inside kernels.
    """
    first, count = int(tree.nodes[node, FIRST]) + mover, int(tree.nodes[node, COUNT])
    mean = 0.0
    for move in range(first, first + count):
        mean += tree.sums[move] / count
    level = min(1.0, max(0.0, mean + prior.constants[mover]))
    for move in range(first, first + count):
        if tree.child[move] < 0:
            tree.guesses[move] = min(1.0, max(0.0, tree.sums[move] + prior.constants[mover]))
        value = level + prior.gain * (tree.sums[move] - mean)
        tree.visits[move] = prior.visits
        tree.sums[move] = prior.visits * min(1.0, max(0.0, value))


@inlined
def guess_edge(tree: TreeArrays, node: int, edge: int, parent: int, total: int) -> bool:
    """Compute the minimax value of a move from those of the moves of the node after it; return whether it changes.

    Two roles have opposite interests, and the sum of their goals is `total`. The node has listed moves of a mover.
    """
    mover, first = int(tree.nodes[node, MOVER]), int(tree.nodes[node, FIRST] + tree.nodes[node, MOVER])
    chooser = int(tree.nodes[parent, MOVER])
    best = np.float32(0.0)
    for move in range(first, first + int(tree.nodes[node, COUNT])):
        best = max(best, tree.guesses[move])
    guess = best if mover == chooser else np.float32(total / HIGHEST_GOAL) - best
    guess = max(guess, np.float32(tree.low[node, chooser] / HIGHEST_GOAL))
    guess = min(guess, np.float32(tree.high[node, chooser] / HIGHEST_GOAL))
    changes = bool(guess != tree.guesses[edge])
    tree.guesses[edge] = guess
    return changes


@inlined
def back_up_guess(tree: TreeArrays, node: int, total: int) -> None:
    """Compute the minimax value of a node from those of its moves, then that of its parent, and so on while it changes.

    This goes on to first parents only, see walks.py for the others. For use inside kernels.
    """
    while tree.nodes[node, EDGE] >= 0 and tree.nodes[node, MOVER] != NOBODY:
        parent = int(tree.nodes[node, PARENT])
        changes = guess_edge(tree, node, int(tree.nodes[node, EDGE]), parent, total)
        # the edge to a node that was just proved has its guess already, but those above do not know of it yet
        if not changes and tree.nodes[node, STAGE] != PROVED:
            break
        node = parent
