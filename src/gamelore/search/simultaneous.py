"""Choice in nodes in which several roles choose at the same time: regret matching and Exp3, beside decoupled UCT.

Such a node is a matrix game. Its equilibrium can be mixed, as in rock paper scissors; the best fixed move then loses to
an opponent who expects it. Decoupled UCT (walks.py) need not converge to an equilibrium (Shafiei, Sturtevant &
Schaeffer 2009), the mean strategies of these two rules do (Lisy, Kovarik, Lanctot & Bosansky 2013):

    regret   A role draws a move with a probability in proportion to its regret, the sum of what the role would have won
             if it had always made this move, as far as the sum is positive (Hart & Mas-Colell 2000; in trees: Lanctot,
             Lisy & Winands 2013). A negative sum is set to 0 at once (regret matching+, Tammelin 2014)
    exp3     A role draws a move with a probability in proportion to exp(mixing / moves * gain). The gain of a move is
             the sum of the values of its walks, each divided by the probability of the move (Auer, Cesa-Bianchi, Freund
             & Schapire 2002)

With both rules, a share `mixing` of the moves is drawn uniformly. The moves are drawn, so walks of the same batch
differ without a virtual loss: a move counts as a visit only when its walk is backed up.

All walks of a batch are selected before the first of them is backed up. Regrets that change only on the way back stay
the same for up to 512 walks, and the strategies swing. So a walk updates them on the way down, by the mean values of
the children so far: every selection is a step of regret matching in the present estimate of the matrix. The regrets of
a role change only if no other role's move was drawn uniformly, so they are those against the strategies of the others.
With `optimism`, children with few walks get a bonus, as in UCB1 (compare O'Donoghue, Lattimore & Osband 2021), so that
a role tries a move again after bad luck in a few playouts. Exp3 has to wait for the value of the walk.

With regret matching, the mean strategy of a node counts a walk with the number of walks before it, so that later
strategies weigh more (linear averaging; Tammelin 2014).

The column `guesses` of the tree, which such nodes do not need, contains the regrets or gains of the moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..players.kernel import I32, F64x2, inlined
from ..players.random_streams import mix
from .proofs import proved_value
from .settings import GrowthSettings
from .tree import FIRST, PROVED, STAGE, VISITS, TreeArrays, sibling_with

UCT, REGRET, EXP3 = range(3)
_METHODS = {"uct": UCT, "regret": REGRET, "exp3": EXP3}
_UNIT = 1.0 / (1 << 53)
_UNIT_OF_REST, _MOST_REST = 16.0, (1 << 31) - 1  # a weight grows to 2^59, which has 35 bits below the first 24
_LARGE_GAIN = 1024.0  # numbers of 32 bits are exact to a ten thousandth up to here


class JointRule(NamedTuple):
    """How several roles choose at the same time: a method, and settings of the same names."""

    method: int
    mixing: float
    optimism: float


def joint_rule(settings: GrowthSettings) -> JointRule:
    """Return the rule that the settings name, for kernels."""
    return JointRule(_METHODS[settings.joint], float(settings.mixing), float(settings.optimism))


@inlined
def _weight(tree: TreeArrays, move: int, highest: float, rate: float, method: int) -> float:
    """Return the weight of a move, before it is divided by the sum of the weights."""
    return float(np.exp(rate * (tree.guesses[move] - highest))) if method == EXP3 else float(tree.guesses[move])


@inlined
def _weights(tree: TreeArrays, first: int, count: int, rule: JointRule) -> tuple[float, float, float]:
    """Return (highest gain, rate of Exp3, sum of the weights) of the moves of a role."""
    highest, total, rate = -np.inf, 0.0, rule.mixing / count
    for move in range(first, first + count):
        highest = max(highest, float(tree.guesses[move]))
    for move in range(first, first + count):
        total += _weight(tree, move, highest, rate, rule.method)
    return highest, rate, total


@inlined
def draw_move(tree: TreeArrays, first: int, count: int, rule: JointRule, noise: np.uint64) -> tuple[int, int]:
    """Draw one of the moves of a role; return (move, 1 if it was drawn uniformly). For use inside kernels."""
    if count == 1:
        return first, 0
    highest, rate, total = _weights(tree, first, count, rule)
    left = float(noise >> np.uint64(11)) * _UNIT
    is_uniform = int(left < rule.mixing)
    left = left / rule.mixing if is_uniform else (left - rule.mixing) / (1.0 - rule.mixing)
    last = first
    for move in range(first, first + count):
        share = 1.0 / count
        if not is_uniform and total > 0.0:
            share = _weight(tree, move, highest, rate, rule.method) / total
        if share == 0.0:
            continue
        last = move
        if left < share:
            break
        left -= share
    return last, is_uniform


@inlined
def joint_move(tree: TreeArrays, node: int, choices: I32, rule: JointRule, noise: np.uint64) -> int:
    """Draw a move for each role, as indices into its moves; return the child after them, or -1.

    With regret matching, the drawn moves change the regrets; see the module. For use inside kernels.
    """
    first, num_uniform, only = int(tree.nodes[node, FIRST]), 0, -1
    for role in range(choices.size):
        count = int(tree.counts[node, role])
        move, is_uniform = draw_move(tree, first, count, rule, mix(noise, np.uint64(role)))
        choices[role] = move - first
        if is_uniform:
            num_uniform += 1
            only = role
        first += count
    if rule.method == EXP3:
        return sibling_with(tree, node, choices)
    child = _collect_children(tree, node, choices)
    width = rule.optimism * np.sqrt(np.log(1.0 + tree.nodes[node, VISITS]))
    first = int(tree.nodes[node, FIRST])
    for role in range(choices.size):
        count = int(tree.counts[node, role])
        if count > 1:
            tree.child[first + choices[role]] = child
            if num_uniform == 0 or (num_uniform == 1 and role == only):  # the others play their strategies
                _add_regrets(tree, first, count, role, width)
            for move in range(first, first + count):
                tree.child[move] = -1
        first += count
    return child


@inlined
def _collect_children(tree: TreeArrays, node: int, choices: I32) -> int:
    """Return the child after a joint move, or -1; write children that differ in one role's move to `tree.child`.

    There they stand at the entry of this move.
    """
    first = int(tree.nodes[node, FIRST])
    for role in range(choices.size):
        drawn, count = choices[role], int(tree.counts[node, role])
        for other in range(count if count > 1 else 0):
            choices[role] = other
            tree.child[first + other] = sibling_with(tree, node, choices)
        choices[role] = drawn
        first += count
    return sibling_with(tree, node, choices)


@inlined
def _estimate(tree: TreeArrays, move: int, role: int, width: float) -> float:
    """Return the value of a move for its role: of the child in `tree.child`, else its mean value; -1 if there is none.

    The child is the one after this move and the drawn moves of the others. A value that is not proved gets a bonus,
    `width` divided by the square root of its number of walks.
    """
    child = int(tree.child[move])
    if child >= 0 and tree.nodes[child, STAGE] == PROVED:
        return float(proved_value(tree, child, role))
    if child >= 0 and tree.cells[child, tree.counts.shape[1]] > 0:
        bonus = width / np.sqrt(tree.cells[child, tree.counts.shape[1]])
        return min(1.0, float(tree.cells[child, role] + bonus))
    if tree.visits[move] == 0:
        return -1.0
    return min(1.0, float(tree.sums[move] / tree.visits[move] + width / np.sqrt(tree.visits[move])))


@inlined
def _add_regrets(tree: TreeArrays, first: int, count: int, role: int, width: float) -> None:
    """Add to the regret of each move what it is better than the strategy, see `_estimate`."""
    mean, weights, plain, num = 0.0, 0.0, 0.0, 0
    for move in range(first, first + count):
        value = _estimate(tree, move, role, width)
        if value >= 0.0:
            mean += tree.guesses[move] * value
            weights += tree.guesses[move]
            plain += value
            num += 1
    if weights > 0.0:
        mean /= weights
    elif num:
        mean = plain / num
    for move in range(first, first + count):
        value = _estimate(tree, move, role, width)
        if value >= 0.0:
            tree.guesses[move] = max(0.0, tree.guesses[move] + value - mean)


@inlined
def note_chances(tree: TreeArrays, node: int, child: int, rule: JointRule) -> None:
    """With Exp3, write the probability of each role's move to a child into `tree.cells`; for use inside kernels.

    The gains do not change before the batch is backed up, so these are the probabilities of all its walks.
    """
    first = int(tree.nodes[node, FIRST])
    for role in range(tree.counts.shape[1]):
        count = int(tree.counts[node, role])
        highest, rate, total = _weights(tree, first, count, rule)
        own = _weight(tree, first + int(tree.joint[child, role]), highest, rate, rule.method)
        tree.cells[child, role] = (1.0 - rule.mixing) * own / total + rule.mixing / count
        first += count


@inlined
def _add_weight(tree: TreeArrays, move: int, weight: int) -> None:
    """Add to the weight of a move. `also` keeps what is below its 32 bits, without which a large sum grows no more."""
    total = float(tree.weights[move]) + _UNIT_OF_REST * tree.also[move] + weight
    tree.weights[move] = total
    rest = round((total - tree.weights[move]) / _UNIT_OF_REST)
    tree.also[move] = min(max(rest, -_MOST_REST), _MOST_REST)


@inlined
def _lower_gains(tree: TreeArrays, first: int, count: int, move: int) -> None:
    """Subtract a large gain from the gains of all moves of a role: only differences count; large sums are inexact."""
    gain = tree.guesses[move]
    if gain > _LARGE_GAIN:
        for other in range(first, first + count):
            tree.guesses[other] -= gain


@inlined
def learn(tree: TreeArrays, node: int, child: int, walk: int, values: F64x2, rule: JointRule) -> None:
    """Add the values of a walk from a node without a mover to a child; for use inside kernels."""
    first, roles = int(tree.nodes[node, FIRST]), tree.counts.shape[1]
    if rule.method == REGRET:
        tree.cells[child, roles] += np.float32(1.0)
    for role in range(roles):
        move = first + int(tree.joint[child, role])
        tree.sums[move] += values[walk, role]
        if rule.method != UCT:
            tree.visits[move] += 1
        if rule.method == REGRET:
            _add_weight(tree, move, int(tree.nodes[node, VISITS]))
            error = values[walk, role] - tree.cells[child, role]
            tree.cells[child, role] += np.float32(error / tree.cells[child, roles])
        elif rule.method == EXP3:
            tree.weights[move] = np.float32(tree.visits[move])
            tree.guesses[move] += np.float32(values[walk, role] / tree.cells[child, role])
            _lower_gains(tree, first, int(tree.counts[node, role]), move)
        first += tree.counts[node, role]
