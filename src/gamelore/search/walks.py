"""Walks down the tree to leaves, and back: selection by UCB1, virtual loss, a look at all children, and backing up.

Selection is UCB1 applied to trees (Kocsis & Szepesvari 2006). Where several roles choose at the same time, each role
selects for itself: by UCB1 (decoupled UCT; Finnsson & Bjornsson 2008), or as simultaneous.py says. A walk by UCB1 adds
1 to the visits of its moves on the way down, and adds its value on the way back. In between, the visit counts as a
loss, so that the next walk of the same batch takes another way (virtual loss; Chaslot, Winands & van den Herik 2008).

A walk ends at a new node, at a node whose moves are not listed yet, or at a proved node, whose value it takes. There is
nothing to learn about a proved move. If it is selected while others are open, both it and the best of the others get a
visit: the walk goes on with the other one, which gets its value, and the moves before get the proved value.

*Scouting* is a look at all children of a node at the time when its moves are listed.
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
from ..players.kernel import I32, I64, U8, F64x2, I16x2, I32x2, U64x2, inlined, kernel_without_refcounts
from ..players.random_streams import mix
from .proofs import assess_edge, tighten, tighten_parents
from .simultaneous import EXP3, UCT, JointRule, joint_move, learn, note_chances
from .tree import (
    CHILD,
    COUNT,
    EDGE,
    FIRST,
    HIGHEST_GOAL,
    LISTED,
    MOVER,
    NOBODY,
    NUM_NODES,
    NUM_ROOTS,
    PARENT,
    PROVED,
    SEEN,
    STAGE,
    UNRELATED,
    VISITS,
    TreeArrays,
    add_moves,
    add_node,
    copy_state,
    has_bounds,
    merge,
    settle,
    sibling_with,
)
from .value import Prior, UpperBound, add_prior, back_up_guess, guess_edge, worth


class WalkBatch(NamedTuple):
    """The walks of a batch, for kernels; arrays with room for the most walks of a batch.

    ends     int32[walks], the last node of each walk
    lasts    int32[walks], the last step of each walk, an index of `steps`; -1 before the first step
    steps    int32[steps, 4], the steps of all walks: the node, its move or -1, the step before in the walk or -1, and
             the proved move whose value counts for the steps before, or -1
    num_steps  int64[1]
    choices  int32[walks, roles]: `choices[0]` is the joint move that a walk is about to make
    order    int32[walks], nodes for which the rules are asked: those to list, or those without a state; or the walks
             at whose ends playouts begin
    values   float64[walks, roles], from 0 to 1
    """

    ends: I32
    lasts: I32
    steps: I32x2
    num_steps: I64
    choices: I32x2
    order: I32
    values: F64x2


@inlined
def _is_candidate(tree: TreeArrays, move: int, skips_proved: bool) -> bool:
    """Return whether a walk may make a move: not a closed one, and not one that is proved if these are skipped."""
    if tree.closed[move]:
        return False
    child = int(tree.child[move])
    return not (skips_proved and child >= 0 and tree.nodes[child, STAGE] == PROVED)


@inlined
def best_move(
    tree: TreeArrays, node: int, first: int, count: int, upper: UpperBound, noise: np.uint64, skips_proved: bool
) -> int:
    """Return the move with the best bound: value + exploration * sqrt(ln walks / visits); for use inside kernels.

    The value is the weighted mean of the mean result and of the minimax value, see `UpperBound`. The bound of a move
    without visits is infinite; one of these moves is drawn at random. Closed moves are left out, and proved ones if
    `skips_proved`. Return -1 if no move is left; without `skips_proved`, one is always open.
    """
    if count == 1 and not skips_proved:
        return first
    minimax, scale = upper.minimax, upper.exploration * np.sqrt(np.log(float(tree.nodes[node, VISITS])))
    best, best_bound, unvisited = -1, -1.0, 0
    for move in range(first, first + count):
        visits = tree.visits[move]
        if not _is_candidate(tree, move, skips_proved):
            continue
        if visits == 0:
            unvisited += 1
        else:
            inverse = 1.0 / visits
            value = (1.0 - minimax) * tree.sums[move] * inverse + minimax * tree.guesses[move]
            bound = value + scale * np.sqrt(inverse)
            if bound > best_bound:
                best, best_bound = move, bound
    if unvisited == 0:
        return best
    drawn = int(mix(noise, np.uint64(node)) >> np.uint64(33)) % unvisited
    for move in range(first, first + count):
        if tree.visits[move] == 0 and _is_candidate(tree, move, skips_proved):
            if drawn == 0:
                return move
            drawn -= 1
    return best


@inlined
def _step(tree: TreeArrays, node: int, upper: UpperBound, noise: np.uint64, tops: U8) -> tuple[int, bool, int, int]:
    """Make the mover's best move; return (child, whether it is new, the move, proved move or -1, see the module)."""
    mover = int(tree.nodes[node, MOVER])
    first, count = int(tree.nodes[node, FIRST]) + mover, int(tree.nodes[node, COUNT])  # other roles have one move each
    move, proved = best_move(tree, node, first, count, upper, noise, False), -1
    child = int(tree.child[move])
    if child >= 0 and tree.nodes[child, STAGE] == PROVED:
        other = best_move(tree, node, first, count, upper, noise, True)
        if other >= 0:
            tree.nodes[node, VISITS] += 1
            tree.visits[move] += 1
            tree.sums[move] += tree.low[child, mover] / HIGHEST_GOAL
            move, proved, child = other, move, int(tree.child[other])
    tree.visits[move] += 1
    if child >= 0:
        return child, False, move, proved
    child = add_node(tree, node, move, tops)
    tree.child[move] = child
    tree.joint[child, mover] = move - first
    return child, True, move, proved


@inlined
def _decoupled_move(tree: TreeArrays, choices: I32, node: int, upper: UpperBound, noise: np.uint64) -> int:
    """Select the best move of each role, as indices into its moves; return the child after them, or -1."""
    first = int(tree.nodes[node, FIRST])
    for role in range(choices.size):
        count = int(tree.counts[node, role])
        move = best_move(tree, node, first, count, upper, mix(noise, np.uint64(role)), False)
        tree.visits[move] += 1
        choices[role] = move - first
        first += count
    return sibling_with(tree, node, choices)


@inlined
def _joint_step(
    tree: TreeArrays, choices: I32, node: int, upper: UpperBound, rule: JointRule, noise: np.uint64, tops: U8
) -> tuple[int, bool]:
    """Make the move that each role selects; return (child, whether it is new)."""
    if rule.method == UCT:
        child = _decoupled_move(tree, choices, node, upper, noise)
    else:
        child = joint_move(tree, node, choices, rule, mix(noise, np.uint64(node)))
    is_new = child < 0
    if is_new:
        child = add_node(tree, node, -1, tops)
        for role in range(choices.size):
            tree.joint[child, role] = choices[role]
        tree.joint[child, choices.size] = tree.nodes[node, CHILD]
        tree.nodes[node, CHILD] = child
    if rule.method == EXP3:
        note_chances(tree, node, child, rule)
    return child, is_new


@kernel_without_refcounts
def is_fresh(tree: TreeArrays, batch: WalkBatch) -> bool:
    """Return whether no walk has left a root yet. `batch.order` then gets the roots, whose moves are listed."""
    walks = 0
    for root in range(tree.size[NUM_ROOTS]):
        batch.order[root] = root
        walks += tree.nodes[root, VISITS]
    return walks == 0


@kernel_without_refcounts
def begin(tree: TreeArrays, batch: WalkBatch, walks: int) -> None:
    """Begin each walk at a root, at all roots in turn."""
    batch.num_steps[0] = 0
    for walk in range(walks):
        batch.ends[walk] = walk % tree.size[NUM_ROOTS]
        batch.lasts[walk] = -1


@inlined
def _note_step(batch: WalkBatch, walk: int, parent: int, move: int, proved: int) -> None:
    """Add a step to a walk."""
    step = batch.num_steps[0]
    batch.steps[step, 3] = proved
    batch.steps[step, 0], batch.steps[step, 1], batch.steps[step, 2] = parent, move, batch.lasts[walk]
    batch.lasts[walk] = step
    batch.num_steps[0] = step + 1


@kernel_without_refcounts
def descend(
    tree: TreeArrays, batch: WalkBatch, walks: int, upper: UpperBound, rule: JointRule, key: np.uint64, tops: U8
) -> None:
    """Continue each walk from its node in `batch.ends` down to its end, see `best_move` and simultaneous.py.

    Random choices depend on `key` and the walk.
    """
    for walk in range(walks):
        node, noise = int(batch.ends[walk]), mix(key, np.uint64(walk))
        while tree.nodes[node, STAGE] == LISTED and batch.num_steps[0] < batch.steps.shape[0]:
            tree.nodes[node, VISITS] += 1
            parent, move, proved = node, -1, -1
            if tree.nodes[node, MOVER] == NOBODY:
                node, is_new = _joint_step(tree, batch.choices[0], node, upper, rule, noise, tops)
            else:
                node, is_new, move, proved = _step(tree, node, upper, noise, tops)
            _note_step(batch, walk, parent, move, proved)
            if is_new:
                break
        batch.ends[walk] = node


@kernel_without_refcounts
def unlisted(tree: TreeArrays, batch: WalkBatch, walks: int, first_new: int) -> int:
    """Write the ends of walks whose moves must be listed into `batch.order`, each once; return their number.

    These are the nodes that an earlier batch has created.
    """
    count = 0
    for walk in range(walks):
        end = batch.ends[walk]
        if end < first_new and tree.nodes[end, STAGE] == SEEN:
            batch.order[count] = end
            count += 1
            tree.nodes[end, STAGE] = LISTED  # so that it is written only once
    return count


@kernel_without_refcounts
def list_moves(tree: TreeArrays, batch: WalkBatch, count: int, offsets: I64, actions: I32) -> None:
    """List the moves of the first `count` nodes in `batch.order`."""
    for i in range(count):
        add_moves(tree, int(batch.order[i]), offsets, actions, i)


@kernel_without_refcounts
def joint_actions(tree: TreeArrays, batch: WalkBatch, first_new: int, states: U64x2, joint: I32x2) -> int:
    """Write the parent's state and the actions that lead to it, for each node from `first_new` on without a state.

    Return the number of these nodes. `batch.order` gets the nodes.
    """
    count, roles = 0, joint.shape[1]
    for node in range(first_new, int(tree.size[NUM_NODES])):
        if tree.nodes[node, STAGE] == PROVED:
            continue
        parent = int(tree.nodes[node, PARENT])
        copy_state(states, count, tree.states, parent)
        move = int(tree.nodes[parent, FIRST])
        for role in range(roles):
            joint[count, role] = tree.actions[move + tree.joint[node, role]]
            move += tree.counts[parent, role]
        batch.order[count] = node
        count += 1
    return count


@kernel_without_refcounts
def join(tree: TreeArrays, batch: WalkBatch, walks: int, first_new: int) -> None:
    """Let walks that end at a transposition end at the older node with its position, see `merge`."""
    merge(tree, first_new)
    for walk in range(walks):
        step = int(batch.lasts[walk])
        if step >= 0 and batch.steps[step, 1] >= 0:
            batch.ends[walk] = tree.child[batch.steps[step, 1]]


@kernel_without_refcounts
def open_ends(tree: TreeArrays, batch: WalkBatch, walks: int, playouts: int, states: U64x2) -> int:
    """Write the state of each walk's end, `playouts` times, for ends that are not proved; return the number of states.

    `batch.order` gets the walks of these ends.
    """
    count = 0
    for walk in range(walks):
        end = int(batch.ends[walk])
        if tree.nodes[end, STAGE] != PROVED:
            for i in range(playouts):
                copy_state(states, count * playouts + i, tree.states, end)
            batch.order[count] = walk
            count += 1
    return count * playouts


@inlined
def _value(tree: TreeArrays, batch: WalkBatch, walks: int, playouts: int, goals: I16x2) -> None:
    """Write the value of each walk: the proved value of its end, or the mean goal of its playouts, from 0 to 1."""
    roles = goals.shape[1]
    for walk in range(walks):
        end = int(batch.ends[walk])
        for role in range(roles):
            batch.values[walk, role] = tree.low[end, role] / HIGHEST_GOAL
    for i in range(goals.shape[0] // playouts):
        walk = int(batch.order[i])
        for role in range(roles):
            total = 0
            for k in range(i * playouts, (i + 1) * playouts):
                total += max(goals[k, role], 0)
            batch.values[walk, role] = total / (HIGHEST_GOAL * playouts)


@inlined
def _learns_guess(tree: TreeArrays, node: int, edge: int, parent: int, total: int) -> bool:
    """Bring the minimax value of a move to a transposition up to date; return whether it changes."""
    has_moves = tree.nodes[node, STAGE] == LISTED and tree.nodes[node, MOVER] != NOBODY
    return has_moves and guess_edge(tree, node, edge, parent, total)


@inlined
def _add(tree: TreeArrays, batch: WalkBatch, walk: int, prior: Prior, rule: JointRule, tops: U8, total: int) -> None:
    """Add the values of a walk to its moves, from its end to the root.

    On the way, a parent of a transposition learns what walks from other parents have guessed, and, if the walk ended
    there, what they have proved.
    """
    node, step, guesses = int(batch.ends[walk]), int(batch.lasts[walk]), prior.minimax > 0.0 and total != UNRELATED
    while step >= 0:
        parent, edge = int(batch.steps[step, 0]), int(batch.steps[step, 1])
        if edge < 0:
            learn(tree, parent, node, walk, batch.values, rule)
        else:
            is_first = tree.nodes[node, EDGE] == edge
            if tree.nodes[node, STAGE] == PROVED:
                assess_edge(tree, node, edge, parent)  # it counted with the proved value while this walk was under way
                if tree.nodes[parent, STAGE] != PROVED:
                    tighten(tree, parent, tops, total)
            else:
                tree.sums[edge] += batch.values[walk, tree.nodes[parent, MOVER]]
                if not is_first and step == batch.lasts[walk] and has_bounds(tree, node, tops):
                    tighten(tree, parent, tops, total)
                if not is_first and guesses and _learns_guess(tree, node, edge, parent, total):
                    back_up_guess(tree, parent, total)
        proved = int(batch.steps[step, 3])
        if proved >= 0:
            for role in range(batch.values.shape[1]):
                batch.values[walk, role] = tree.low[tree.child[proved], role] / HIGHEST_GOAL
        node, step = parent, int(batch.steps[step, 2])


@kernel_without_refcounts
def back_up(
    tree: TreeArrays,
    batch: WalkBatch,
    walks: int,
    playouts: int,
    prior: Prior,
    rule: JointRule,
    goals: I16x2,
    steps: I32,
    tops: U8,
    total: int,
) -> None:
    """Add the value of each walk to its moves, and prove the ends at which the match is over.

    goals  int16[states, roles], the results of the playouts from the states of `open_ends`
    steps  int32[states], their lengths
    """
    _value(tree, batch, walks, playouts, goals)
    for walk in range(walks):
        _add(tree, batch, walk, prior, rule, tops, total)
    for i in range(goals.shape[0] // playouts):
        end = int(batch.ends[batch.order[i]])
        if steps[i * playouts] == 0 and tree.nodes[end, STAGE] != PROVED:
            settle(tree, end, goals, i * playouts)
            tighten_parents(tree, end, tops, total)


@kernel_without_refcounts
def withdraw(tree: TreeArrays, batch: WalkBatch, walks: int) -> None:
    """Take back the visits of walks that are not backed up. What walks on the way have noted of proved moves stays."""
    for walk in range(walks):
        node, step = int(batch.ends[walk]), int(batch.lasts[walk])
        while step >= 0:
            parent, edge = int(batch.steps[step, 0]), int(batch.steps[step, 1])
            tree.nodes[parent, VISITS] -= 1
            first = edge if edge >= 0 else int(tree.nodes[parent, FIRST])
            for role in range(tree.counts.shape[1] if edge < 0 else 0):
                tree.visits[first + tree.joint[node, role]] -= 1
                first += tree.counts[parent, role]
            if edge >= 0:
                tree.visits[edge] -= 1
            node, step = parent, int(batch.steps[step, 2])


# ---- scouting ----


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
