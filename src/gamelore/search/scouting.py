"""A look at all children of a node at the time when its moves are listed.

The machine code computes 512 successors in hardly more time than one. So all successors of the listed nodes are
computed at once, before any of them is in the tree. Children in which the match is over get into the tree with their
values, so that a win in one ply is proved at once (compare the decisive moves of Teytaud &
Teytaud 2010). The other children only give their moves a prior, see value.py.

Nodes without a mover are left out: there a move of one role does not lead to a position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..circuit.tape import LANES
from ..players.kernel import I32, I64, U8, I16x2, I32x2, U64x2, kernel_without_refcounts
from .proofs import assess_edge, tighten
from .tree import (
    COUNT,
    FIRST,
    LISTED,
    MOVER,
    NOBODY,
    NUM_NODES,
    STAGE,
    UNRELATED,
    TreeArrays,
    add_node,
    copy_state,
    settle,
)
from .value import Prior, add_prior, back_up_guess, worth
from .walks import WalkBatch


class Scouts(NamedTuple):
    """The children that are looked at in one pass, a row for each.

    nodes    int32[512], the parent
    moves    int32[512], the move that leads to the child
    cursor   int64[2], where the next pass begins: an index of `WalkBatch.order`, and the index of a move
    """

    nodes: I32
    moves: I32
    cursor: I64


def scouts() -> Scouts:
    """Return arrays for one pass."""
    nodes, moves = np.zeros((2, LANES), np.int32)
    return Scouts(nodes, moves, np.zeros(2, np.int64))


@kernel_without_refcounts
def next_children(tree: TreeArrays, batch: WalkBatch, count: int, rows: Scouts, states: U64x2, joint: I32x2) -> int:
    """Write parent states and joint moves for the next children of the first `count` nodes in `batch.order`.

    Return their number, at most 512; 0 at the end.
    """
    size, roles = 0, joint.shape[1]
    while rows.cursor[0] < count and size < rows.moves.size:
        node = int(batch.order[rows.cursor[0]])
        mover, num_moves = int(tree.nodes[node, MOVER]), int(tree.nodes[node, COUNT])
        if mover == NOBODY or rows.cursor[1] == num_moves or tree.nodes[node, STAGE] != LISTED:
            rows.cursor[0] += 1
            rows.cursor[1] = 0
            continue
        first, index = int(tree.nodes[node, FIRST]), int(rows.cursor[1])
        copy_state(states, size, tree.states, node)
        for role in range(roles):  # the other roles have one move each
            later = index if role == mover else num_moves - 1 if role > mover else 0
            joint[size, role] = tree.actions[first + role + later]
        rows.nodes[size], rows.moves[size] = node, first + mover + index
        rows.cursor[1] += 1
        size += 1
    return size


@kernel_without_refcounts
def note_values(tree: TreeArrays, rows: Scouts, size: int, children: U64x2, prior: Prior) -> None:
    """Put the value of each child into `tree.sums` of the move that leads to it. A forced move needs no prior."""
    for row in range(size):
        mover = int(tree.nodes[rows.nodes[row], MOVER])
        if tree.nodes[rows.nodes[row], COUNT] == 1:
            continue
        tree.sums[rows.moves[row]] = worth(prior, mover, children, row)


@kernel_without_refcounts
def add_ends(
    tree: TreeArrays, rows: Scouts, children: U64x2, ended: I64, goals: I16x2, most_nodes: int, tops: U8
) -> None:
    """Add the children in which the match is over, while the tree has fewer than `most_nodes` nodes.

    ended  int64[ends], the rows of these children
    goals  int16[ends, roles]
    """
    for i in range(ended.size):
        if tree.size[NUM_NODES] >= most_nodes:
            break
        row = int(ended[i])
        node, move = int(rows.nodes[row]), int(rows.moves[row])
        mover = int(tree.nodes[node, MOVER])
        child = add_node(tree, node, move, tops)
        tree.child[move] = child
        tree.joint[child, mover] = move - mover - tree.nodes[node, FIRST]
        copy_state(tree.states, child, children, row)
        settle(tree, child, goals, i)


@kernel_without_refcounts
def end_scouting(tree: TreeArrays, batch: WalkBatch, count: int, prior: Prior, tops: U8, total: int) -> None:
    """Give the moves of the first `count` nodes in `batch.order` their priors, and prove what their children prove."""
    for i in range(count):
        node = int(batch.order[i])
        mover, num_moves = int(tree.nodes[node, MOVER]), int(tree.nodes[node, COUNT])
        if mover == NOBODY or tree.nodes[node, STAGE] != LISTED:
            continue
        if prior.visits and num_moves > 1:
            add_prior(tree, node, mover, prior)
        ends, first = 0, int(tree.nodes[node, FIRST]) + mover
        for move in range(first, first + num_moves):
            if tree.child[move] >= 0:
                assess_edge(tree, int(tree.child[move]), move, node)
                ends += 1
        if ends:
            tighten(tree, node, tops, total)
        elif total != UNRELATED and prior.visits and num_moves > 1:
            back_up_guess(tree, node, total)
