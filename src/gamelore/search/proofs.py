"""Proved values: bounds on the goals of a position, from the ends of the tree up to the root.

`low` and `high` bound the goals that roles get from a position on. At the end of a match they are the goals. For other
positions they follow from the children (score-bounded Monte-Carlo tree search, Cazenave & Saffidine 2010; with goals
win and loss only, this is the MCTS-Solver of Winands, Bjornsson & Saito 2008):

    the mover      the highest bound of all moves, because the mover chooses
    other roles    if two roles have opposite interests: the lowest bound of all moves. The role then gets at least
                   `low` if it plays well, whatever the goals are, and at most `high` if the other role plays against
                   it. Otherwise: the lowest and the highest bound of all moves that can be best for the mover. These
                   bounds hold if every role plays for its own goal, however it chooses among equal moves. If a role
                   that gets 100 is always the only one that gets anything (SOLE_WINNER), the others get 0 as soon as
                   the mover gets 100 for sure

A move without a child has the bounds 0 and the highest goal. Positions where several roles choose at the same time get
no bounds from their children. The state contains everything that the rules can depend on, also a step counter, so a
proof never depends on the way to a position, and all parents of a transposition may use it.

If interests are not opposite, moves that give the mover the same may give others different goals. They all stay open,
so that walks count on none of them.

Bounds are about goals. Walks add up *values*, which are goals from 0 to 1, with one exception for three and more roles:
an end at which nobody gets anything is worth a little to each of them (NO_WINNER), and so is a playout that is cut, or
in which a role has no move. So a role that hardly has a chance keeps the others from winning, which gives it time.
(Sancho, the champion of 2014, gives each role a bonus for every role that is not ahead of it.) A role that gets nothing
for sure then has one open move, whoever wins after it: a search that trusts others to keep each other from winning
loses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..game.engines import HIGHEST_GOAL
from ..players.kernel import U8, I16x2, fence, inlined, kernel_without_refcounts
from ..players.position_graph import hash_state
from .tree import (
    COUNT,
    EDGE,
    FIRST,
    MOVER,
    NOBODY,
    PROVED,
    PROVES,
    SOLE_WINNER,
    STAGE,
    UNRELATED,
    TreeArrays,
    are_opposed,
    owner_of,
)
from .value import back_up_guess

if TYPE_CHECKING:
    from ..game.game import Game

NO_WINNER = 5  # of 100
_MOST_PLIES = 65_535
_PLAYOUTS, _LEAST_WINS = 512, 16  # that show what is the same in all ends; and those of them with the highest goal
_ASSUMPTIONS: WeakKeyDictionary[Game, dict[int, int]] = WeakKeyDictionary()  # by the plies of a playout


@inlined
def nobody_wins(goals: I16x2, row: int) -> bool:
    """Return whether nobody gets anything in a row of goals for three or more roles; False for fewer."""
    highest = 0
    for role in range(goals.shape[1]):
        highest = max(highest, goals[row, role])
    return highest == 0 and goals.shape[1] > 2


@inlined
def proved_value(tree: TreeArrays, node: int, role: int) -> float:
    """Return the value of a proved node for a role, from 0 to 1."""
    goal, total = int(tree.low[node, role]), 0
    for other in range(tree.low.shape[1] if goal == 0 else 0):
        total += int(tree.low[node, other])
    return (goal if goal or total or tree.low.shape[1] < 3 else NO_WINNER) / HIGHEST_GOAL


@inlined
def assess_edge(tree: TreeArrays, node: int, edge: int, parent: int) -> None:
    """Let all visits of a move that leads to a proved node count with the proved value, which is also its guess."""
    value = proved_value(tree, node, int(tree.nodes[parent, MOVER]))
    tree.sums[edge] = tree.visits[edge] * value
    tree.guesses[edge] = value


@inlined
def _assess_edges(tree: TreeArrays, node: int) -> None:
    """Call `assess_edge` for all moves that lead to a node; for none below a node without a mover."""
    edge = int(tree.nodes[node, EDGE])
    while edge >= 0:
        assess_edge(tree, node, edge, owner_of(tree, edge))
        edge = int(tree.also[edge])


@inlined
def _best_bounds(tree: TreeArrays, first: int, count: int, mover: int, tops: U8) -> tuple[int, int]:
    """Return (child with the highest low bound for the mover, or -1; highest high bound of all moves)."""
    best, low, high = -1, -1, 0
    for move in range(first, first + count):
        child = int(tree.child[move])
        if child < 0:
            high = int(tops[mover])
            continue
        if tree.low[child, mover] > low:
            best, low = child, int(tree.low[child, mover])
        high = max(high, int(tree.high[child, mover]))
    return best, high


@inlined
def _bounds_of_other(
    tree: TreeArrays, node: int, first: int, count: int, mover: int, role: int, tops: U8, opposed: bool
) -> tuple[int, int]:
    """Return the bounds for a role that does not choose; see the module."""
    low, high, least = int(tops[role]), 0, int(tops[role])
    for move in range(first, first + count):
        child = int(tree.child[move])
        if child < 0:
            low, high = 0, int(tops[role])
            continue
        least = min(least, int(tree.high[child, role]))
        if opposed or tree.high[child, mover] >= tree.low[node, mover]:
            low, high = min(low, int(tree.low[child, role])), max(high, int(tree.high[child, role]))
    return low, least if opposed else high


@inlined
def _raise_bounds(tree: TreeArrays, node: int, role: int, low: int, high: int) -> bool:
    """Set the bounds of a role where the new ones are tighter; return whether they are."""
    tighter = bool(low > tree.low[node, role] or high < tree.high[node, role])
    tree.low[node, role] = max(low, int(tree.low[node, role]))
    tree.high[node, role] = min(high, int(tree.high[node, role]))
    return tighter


@inlined
def _close_for_opponents(tree: TreeArrays, first: int, count: int, mover: int) -> None:
    """Close the moves that cannot be better for the mover than another move, which stays open.

    The bounds of the node do not count here: they may come from children that were dropped, see `compact`.
    """
    keeper, keeper_low, keeper_high = -1, -1, -1
    for move in range(first, first + count):
        child = int(tree.child[move])
        low = int(tree.low[child, mover]) if child >= 0 else 0
        high = int(tree.high[child, mover]) if child >= 0 else HIGHEST_GOAL + 1
        if not tree.closed[move] and (low > keeper_low or (low == keeper_low and high > keeper_high)):
            keeper, keeper_low, keeper_high = move, low, high
    for move in range(first, first + count):
        child = int(tree.child[move])
        if child >= 0 and move != keeper and tree.high[child, mover] <= keeper_low:
            tree.closed[move] = 1


@inlined
def _have_same_goals(tree: TreeArrays, node: int, other: int) -> bool:
    """Return whether every role is proved to get the same in two nodes."""
    different = 0
    for role in range(tree.low.shape[1]):
        low = tree.low[node, role]
        different += low != tree.high[node, role] or low != tree.low[other, role] or low != tree.high[other, role]
    return different == 0


@inlined
def _close_for_others(tree: TreeArrays, first: int, count: int, mover: int) -> None:
    """Close the moves that are worse for the mover than another move, and all but one of those that end alike.

    A move is also closed as long as another one is as good and may be better. The open move of a role that gets nothing
    for sure, see the module, is drawn by the states after its moves, so it does not depend on their order.
    """
    keeper, keeper_low, keeper_high, keeper_hash = -1, -1, -1, np.uint64(0)
    has_others = tree.low.shape[1] > 2
    for move in range(first, first + count):
        child, low, high, own_hash = int(tree.child[move]), 0, HIGHEST_GOAL + 1, np.uint64(0)
        if child >= 0:
            low, high = int(tree.low[child, mover]), int(tree.high[child, mover])
        if has_others and high == 0:
            own_hash = hash_state(tree.states, child)
        is_equal = low == keeper_low and high == keeper_high
        if low > keeper_low or (low == keeper_low and high > keeper_high) or (is_equal and own_hash > keeper_hash):
            keeper, keeper_low, keeper_high, keeper_hash = move, low, high, own_hash
    tree.closed[keeper] = 0
    may_improve, is_lost = keeper_high > keeper_low, has_others and keeper_high == 0
    for move in range(first, first + count):
        child, closes = int(tree.child[move]), False
        if child >= 0 and move != keeper:
            high = int(tree.high[child, mover])
            closes = high < keeper_low
            if high == keeper_low:
                closes = may_improve or is_lost or _have_same_goals(tree, child, int(tree.child[keeper]))
        tree.closed[move] = int(closes)


@inlined
def _is_proved(tree: TreeArrays, node: int) -> bool:
    """Return whether the bounds of every role are equal."""
    different = 0
    for role in range(tree.low.shape[1]):
        different += tree.low[node, role] != tree.high[node, role]
    return different == 0


@inlined
def _prove(tree: TreeArrays, node: int, first: int, count: int, mover: int) -> None:
    """Mark a node as proved, with the number of plies to the end: the most if the mover gets half a win or less.

    Otherwise it is the fewest. The visits of the move that leads to the node now count with the proved value.
    """
    value, plies = tree.low[node, mover], -1
    for move in range(first, first + count):
        child = int(tree.child[move])
        if child >= 0 and tree.nodes[child, STAGE] == PROVED and tree.low[child, mover] == value:
            own = int(tree.plies[child])
            if plies < 0 or (own > plies if 2 * value <= HIGHEST_GOAL else own < plies):
                plies = own
    tree.plies[node] = min(max(plies, 0) + 1, _MOST_PLIES)  # the child may have been dropped, see `compact`
    fence()
    tree.nodes[node, STAGE] = PROVED
    _assess_edges(tree, node)


@inlined
def _tighten_node(tree: TreeArrays, node: int, tops: U8, assumption: int) -> bool:
    """Compute the bounds of a node from those of its children; return whether they change."""
    if not tree.size[PROVES] or tree.nodes[node, MOVER] == NOBODY or tree.nodes[node, STAGE] == PROVED:
        return False
    mover, first, count = tree.nodes[node, MOVER], tree.nodes[node, FIRST], tree.nodes[node, COUNT]
    first += mover  # other roles have one move each
    best, high = _best_bounds(tree, first, count, mover, tops)
    changed = _raise_bounds(tree, node, mover, tree.low[best, mover] if best >= 0 else 0, high)
    is_won = assumption == SOLE_WINNER and tree.low[node, mover] == HIGHEST_GOAL
    for role in range(tops.size):
        if role != mover:
            low, high = 0, 0
            if not is_won:
                low, high = _bounds_of_other(tree, node, first, count, mover, role, tops, are_opposed(assumption))
            changed |= _raise_bounds(tree, node, role, low, high)
    if are_opposed(assumption):
        _close_for_opponents(tree, first, count, mover)
    else:
        _close_for_others(tree, first, count, mover)
    if changed and _is_proved(tree, node):
        _prove(tree, node, first, count, mover)
    return changed


@kernel_without_refcounts
def tighten(tree: TreeArrays, node: int, tops: U8, assumption: int) -> None:
    """Compute the bounds of a node from those of its children, then those of all parents, and so on while they change.

    A node whose bounds are equal for every role is proved. Minimax values follow. For `assumption` see `Tree`. If
    `tree.pending` is full, a parent learns of it when the bounds of a child change again, or a walk ends there.
    """
    tree.pending[0], count = node, 1
    while count:
        count -= 1
        node = int(tree.pending[count])
        if node < 0:
            continue
        changed = _tighten_node(tree, node, tops, assumption)
        if are_opposed(assumption) and tree.nodes[node, STAGE] != PROVED:
            back_up_guess(tree, node, assumption)
        edge = int(tree.nodes[node, EDGE]) if changed else -1
        while edge >= 0 and count < tree.pending.size:
            tree.pending[count] = owner_of(tree, edge)
            count += 1
            edge = int(tree.also[edge])


@inlined
def tighten_parents(tree: TreeArrays, node: int, tops: U8, assumption: int) -> None:
    """Call `assess_edge` and `tighten` for all parents of a node that was just proved."""
    edge = int(tree.nodes[node, EDGE])
    while edge >= 0:
        parent = owner_of(tree, edge)
        assess_edge(tree, node, edge, parent)
        tighten(tree, parent, tops, assumption)
        edge = int(tree.also[edge])


def first_assumption(game: Game, max_plies: int) -> int:
    """Return the `Tree.assumption` that random playouts suggest.

    This is the sum of the goals of two roles if it is always the same, and the goals are not; otherwise SOLE_WINNER if
    some playouts have a role with the highest goal, and no other role got anything there; UNRELATED in other games,
    with one role, and on the reasoner. A missing goal counts as 0. Where all ends are alike, they say nothing about the
    interests of the roles, and a proof that takes these for opposite would cut off the ends that show the contrary.
    There the sum counts only if the rules give it, see `_are_complements`. Whether rarer ends are different shows in
    the search, see `growth.as_assumed`. The playouts are made once for each game, because they take almost a second in
    games such as amazons.
    """
    if game.num_roles < 2 or game.uses_reasoner:
        return UNRELATED
    assumptions = _ASSUMPTIONS.setdefault(game, {})
    if max_plies not in assumptions:
        states = np.repeat(game.initial[None], _PLAYOUTS, axis=0)
        played = game.rollouts(states, 0, threads=1, max_steps=max_plies)
        goals = np.maximum(played.goals, 0)[played.steps < max_plies]
        assumptions[max_plies] = _assumption(goals, partial(_are_complements, game))
    return assumptions[max_plies]


def _assumption(goals: NDArray[np.int16], is_total: Callable[[int], bool] = lambda total: False) -> int:
    """Return the `Tree.assumption` that these goals suggest, int16[matches, roles].

    is_total: tells whether the rules always give this sum to two roles, as far as it can be seen
    """
    sums = goals.sum(axis=1)
    if (
        goals.shape[1] == 2
        and len(np.unique(sums)) == 1
        and (len(np.unique(goals[:, 0])) > 1 or is_total(int(sums[0])))
    ):
        return int(sums[0])
    won = (goals >= HIGHEST_GOAL).any(axis=1)
    return SOLE_WINNER if won.sum() >= _LEAST_WINS and (sums[won] == HIGHEST_GOAL).all() else UNRELATED


def _are_complements(game: Game, total: int) -> bool:
    """Return whether each of two roles gets a goal exactly where the other one gets the rest of a total.

    This is shown by equal gates. Rules may have complements that are computed by other gates.
    """
    circuit = game.circuit
    if circuit is None or game.is_bounded:
        return False
    goals = [(role, value) for role, own in enumerate(circuit.goals) for value in own]
    gates = dict(zip(goals, circuit.outputs["goal"], strict=True))
    return all(gate == gates.get((1 - role, total - value)) for (role, value), gate in gates.items())
