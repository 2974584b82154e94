"""Walks down the tree to leaves, and back: selection by UCB1, virtual loss, a look at all children, and backing up.

Selection is UCB1 applied to trees (Kocsis & Szepesvari 2006). Where several roles choose at the same time, each role
selects for itself: by UCB1 (decoupled UCT; Finnsson & Bjornsson 2008), or as simultaneous.py says. A walk by UCB1 adds
1 to the visits of its moves on the way down, and adds its value on the way back. In between, the visit counts as a
loss, so that the next walk of the same batch takes another way (virtual loss; Chaslot, Winands & van den Herik 2008).

A walk ends at a node whose moves are not listed yet, at a proved node, whose value it takes, or at a move without a
child. When the state after this move has been computed, the child is entered into the tree, and the walk ends there.
There is nothing to learn about a proved move. If it is selected while others are open, both it and the best of the
others get a visit: the walk goes on with the other one, which gets its value, and the moves before get the proved
value.

*Scouting* is a look at all children of a node at the time when its moves are listed.
The machine code computes 512 successors in hardly more time than one. So all successors of the listed nodes are
computed at once, before any of them is in the tree. Children in which the match is over get into the tree with their
values, so that a win in one ply is proved at once (compare the decisive moves of Teytaud &
Teytaud 2010). The other children only give their moves a prior, see value.py.

Nodes without a mover are left out: there a move of one role does not lead to a position.

Several threads can walk in one tree. A thread changes it only while it has the lock, with three exceptions: visits on
the way down are added atomically, the moves of a node that is LISTING belong to the batch that lists them, and a walk
that swerves from a proved node writes the value of the move to it, as every walk that swerves there does. A node can be
reached only when its state is known, and its moves only when all of them are listed. Values and visits that a walk
reads may be a moment old (compare the lock-free search of Enzenberger & Mueller 2009).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..circuit.tape import LANES
from ..game.engines import HIGHEST_GOAL
from ..networks.network import MOST_TUPLES, look_up, look_up_child, network_value
from ..players.kernel import (
    I32,
    I64,
    U8,
    F64x2,
    I16x2,
    I32x2,
    U64x2,
    fence,
    increment,
    inlined,
    kernel_without_refcounts,
    prefetch,
    prefetch_to_change,
)
from ..players.random_streams import mix
from .proofs import NO_WINNER, assess_edge, nobody_wins, proved_value, tighten, tighten_parents
from .simultaneous import EXP3, UCT, JointRule, joint_move, learn, note_chances
from .tree import (
    COUNT,
    EDGE,
    FIRST,
    LISTED,
    LISTING,
    MOVER,
    NEW,
    NOBODY,
    NUM_NODES,
    NUM_ROOTS,
    PROVED,
    RESERVED,
    SEEN,
    STAGE,
    VISITS,
    TreeArrays,
    add_child,
    add_joint_child,
    add_moves,
    add_node,
    are_opposed,
    copy_state,
    fetch_slot,
    fetch_stored,
    has_bounds,
    make_slots,
    settle,
    sibling_with,
)
from .value import Prior, UpperBound, add_prior, back_up_guess, guess_edge, worth

_MOST_FETCHED = 64  # moves of a node; most games have fewer
_IN_LINE = 16  # numbers of four bytes in a line of the cache


class WalkBatch(NamedTuple):
    """The walks of a batch, for kernels; arrays with room for the most walks of a batch.

    ends     int32[walks], the last node of each walk; -1 if it ends at a move that has no child yet
    lasts    int32[walks], the last step of each walk, an index of `steps`; -1 before the first step
    steps    int32[steps, 4], the steps of all walks: the node, its move or -1, the step before in the walk or -1, and
             the proved move whose value counts for the steps before, or -1
    num_steps  int64[1]
    choices  int32[walks, roles], the last joint move of each walk in a node without a mover
    order    int32[walks], the nodes whose moves are listed; or the walks that end at moves without a child; or those at
             whose ends playouts begin
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
    best, best_bound, unvisited, spare = -1, -1.0, 0, -1
    for move in range(first, first + count):
        visits = tree.visits[move]
        if not _is_candidate(tree, move, skips_proved):
            continue
        if visits == 0:
            unvisited += 1
            spare = move
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
    return best if best >= 0 else spare  # another thread has visited moves meanwhile


@inlined
def _step(tree: TreeArrays, node: int, upper: UpperBound, noise: np.uint64, is_shared: bool) -> tuple[int, int]:
    """Make the mover's best move; return (child or -1, the move)."""
    first = int(tree.nodes[node, FIRST] + tree.nodes[node, MOVER])  # other roles have one move each
    move = best_move(tree, node, first, int(tree.nodes[node, COUNT]), upper, noise, False)
    move = max(move, first)  # another thread may have opened a move and closed the others meanwhile
    increment(tree.visits, move, is_shared)
    return int(tree.child[move]), move


@inlined
def _visit(tree: TreeArrays, node: int, is_shared: bool) -> None:
    """Count a walk through a node."""
    increment(tree.nodes[node], VISITS, is_shared)


@inlined
def _decoupled_move(
    tree: TreeArrays, choices: I32, node: int, upper: UpperBound, noise: np.uint64, is_shared: bool
) -> int:
    """Select the best move of each role, as indices into its moves; return the child after them, or -1."""
    first, plain = int(tree.nodes[node, FIRST]), UpperBound(upper.joint, 0.0, upper.joint)
    for role in range(choices.size):
        count = int(tree.counts[node, role])
        move = best_move(tree, node, first, count, plain, mix(noise, np.uint64(role)), False)
        increment(tree.visits, move, is_shared)
        choices[role] = move - first
        first += count
    return sibling_with(tree, node, choices)


@inlined
def _joint_step(
    tree: TreeArrays, choices: I32, node: int, upper: UpperBound, rule: JointRule, noise: np.uint64, is_shared: bool
) -> int:
    """Make the move that each role selects; return the child, or -1."""
    if rule.method == UCT:
        return _decoupled_move(tree, choices, node, upper, noise, is_shared)
    child = joint_move(tree, node, choices, rule, mix(noise, np.uint64(node)))
    if rule.method == EXP3 and child >= 0:
        note_chances(tree, node, child, rule)
    return child


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
def _note_step(batch: WalkBatch, walk: int, parent: int, move: int) -> None:
    """Add a step to a walk; `_swerve` notes a proved move."""
    step = batch.num_steps[0]
    batch.steps[step, 0], batch.steps[step, 1], batch.steps[step, 2] = parent, move, batch.lasts[walk]
    batch.steps[step, 3] = -1
    batch.lasts[walk] = step
    batch.num_steps[0] = step + 1


@inlined
def _next(
    tree: TreeArrays,
    batch: WalkBatch,
    walk: int,
    upper: UpperBound,
    rule: JointRule,
    noise: np.uint64,
    is_shared: bool,
) -> None:
    """Make the next step of a walk."""
    parent, move = int(batch.ends[walk]), -1
    _visit(tree, parent, is_shared)
    if tree.nodes[parent, MOVER] == NOBODY:
        node = _joint_step(tree, batch.choices[walk], parent, upper, rule, noise, is_shared)
    else:
        node, move = _step(tree, parent, upper, noise, is_shared)
    _note_step(batch, walk, parent, move)
    batch.ends[walk] = node
    if node >= 0:
        prefetch_to_change(tree.nodes.ctypes.data + tree.nodes.itemsize * tree.nodes.shape[1] * node)


@inlined
def _swerve(
    tree: TreeArrays, batch: WalkBatch, walk: int, upper: UpperBound, noise: np.uint64, is_shared: bool
) -> None:
    """Let a walk that has come to a proved node make the best move to a node that is not proved, if there is one."""
    step, node = int(batch.lasts[walk]), int(batch.ends[walk])
    if node < 0 or tree.nodes[node, STAGE] != PROVED or batch.steps[step, 1] < 0:
        return
    parent, move = int(batch.steps[step, 0]), int(batch.steps[step, 1])
    first = int(tree.nodes[parent, FIRST] + tree.nodes[parent, MOVER])
    other = best_move(tree, parent, first, int(tree.nodes[parent, COUNT]), upper, noise, True)
    if other < 0:
        return
    _visit(tree, parent, is_shared)
    increment(tree.visits, other, is_shared)
    fence()  # the value of a node that is PROVED is known
    assess_edge(tree, node, move, parent)
    batch.steps[step, 1], batch.steps[step, 3] = other, move
    batch.ends[walk] = tree.child[other]


@inlined
def _goes_on(tree: TreeArrays, batch: WalkBatch, walk: int) -> bool:
    """Return whether a walk goes on from its node, whose moves are then fetched."""
    node = int(batch.ends[walk])
    if node < 0 or tree.nodes[node, STAGE] != LISTED:
        return False
    first = int(tree.nodes[node, FIRST] + max(tree.nodes[node, MOVER], 0))
    last = first + min(int(tree.nodes[node, COUNT]), _MOST_FETCHED)
    for move in range(first, last, _IN_LINE):
        prefetch_to_change(tree.visits.ctypes.data + tree.visits.itemsize * move)
        prefetch(tree.guesses.ctypes.data + tree.guesses.itemsize * move)
        prefetch(tree.child.ctypes.data + tree.child.itemsize * move)
        prefetch(tree.sums.ctypes.data + tree.sums.itemsize * move)
        prefetch(tree.sums.ctypes.data + tree.sums.itemsize * (move + _IN_LINE // 2))
    prefetch(tree.closed.ctypes.data + first)
    return True


@kernel_without_refcounts
def descend(
    tree: TreeArrays, batch: WalkBatch, walks: int, upper: UpperBound, rule: JointRule, key: np.uint64, is_shared: bool
) -> None:
    """Continue each walk from its node in `batch.ends` down to its end, see `best_move` and simultaneous.py.

    All walks make a step in turn. So what they read can be fetched for many walks at once; and where threads share a
    tree, each one passes the root, which all change, in a short time. Walks end where there is no room for their next
    steps. Random choices depend on `key` and the walk. `is_shared` tells whether other threads walk in the tree, too.
    """
    active = 0
    for walk in range(walks):
        batch.order[active] = walk
        active += int(_goes_on(tree, batch, walk))
    while active and batch.num_steps[0] + active <= batch.steps.shape[0]:
        fence()  # a node that is LISTED has its moves
        for i in range(active):
            walk = int(batch.order[i])
            _next(tree, batch, walk, upper, rule, mix(key, np.uint64(walk)), is_shared)
        remaining = 0
        for i in range(active):
            walk = int(batch.order[i])
            _swerve(tree, batch, walk, upper, mix(key, np.uint64(walk)), is_shared)
            batch.order[remaining] = walk
            remaining += int(_goes_on(tree, batch, walk))
        active = remaining


@kernel_without_refcounts
def unlisted(tree: TreeArrays, batch: WalkBatch, walks: int) -> int:
    """Write the ends of walks whose moves must be listed into `batch.order`, each once; return their number."""
    count = 0
    for walk in range(walks):
        end = batch.ends[walk]
        if end >= 0 and tree.nodes[end, STAGE] == SEEN:
            batch.order[count] = end
            count += 1
            tree.nodes[end, STAGE] = LISTING
    return count


@kernel_without_refcounts
def list_moves(tree: TreeArrays, batch: WalkBatch, count: int, offsets: I64, actions: I32) -> None:
    """Enter the moves of the first `count` nodes in `batch.order`; `end_listing` then makes them LISTED."""
    for i in range(count):
        add_moves(tree, int(batch.order[i]), offsets, actions, i)


@kernel_without_refcounts
def childless(tree: TreeArrays, batch: WalkBatch, walks: int, states: U64x2, joint: I32x2) -> int:
    """Write the state and the actions of the last step of each walk that ends at a move without a child.

    Return the number of these walks. `batch.order` gets the walks.
    """
    count, roles = 0, joint.shape[1]
    for walk in range(walks):
        if batch.ends[walk] >= 0:
            continue
        parent, edge = int(batch.steps[batch.lasts[walk], 0]), int(batch.steps[batch.lasts[walk], 1])
        copy_state(states, count, tree.states, parent)
        first, mover = int(tree.nodes[parent, FIRST]), int(tree.nodes[parent, MOVER])
        for role in range(roles):
            choice = int(batch.choices[walk, role]) if edge < 0 else edge - first if role == mover else 0
            joint[count, role] = tree.actions[first + choice]
            first += tree.counts[parent, role]
        batch.order[count] = walk
        count += 1
    return count


@kernel_without_refcounts
def fetch_slots(tree: TreeArrays, batch: WalkBatch, count: int, states: U64x2) -> None:
    """Fetch what `attach` reads to find transpositions."""
    for i in range(count):
        fetch_slot(tree, int(batch.steps[batch.lasts[batch.order[i]], 0]), states, i)
    for i in range(count):
        fetch_stored(tree, int(batch.steps[batch.lasts[batch.order[i]], 0]), states, i)


@kernel_without_refcounts
def attach(
    tree: TreeArrays,
    batch: WalkBatch,
    count: int,
    states: U64x2,
    rule: JointRule,
    transpositions: bool,
    tops: U8,
) -> None:
    """Enter the children at which the first `count` walks in `batch.order` end, with these states, see `childless`.

    Where an earlier walk has done so, or another thread, a walk ends at this node.
    """
    make_slots(tree, count)
    for i in range(count):
        walk = int(batch.order[i])
        parent, edge = int(batch.steps[batch.lasts[walk], 0]), int(batch.steps[batch.lasts[walk], 1])
        if edge >= 0:
            child = int(tree.child[edge])
            if child < 0:
                child = add_child(tree, parent, edge, states, i, transpositions, tops)
        else:
            child = sibling_with(tree, parent, batch.choices[walk])
            if child < 0:
                child = add_joint_child(tree, parent, batch.choices[walk], states, i, tops)
            if rule.method == EXP3:
                note_chances(tree, parent, child, rule)
        batch.ends[walk] = child


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
    """Write the value of each walk: the proved value of its end, or the mean value of its playouts, from 0 to 1."""
    roles = goals.shape[1]
    for walk in range(walks):
        end = int(batch.ends[walk])
        for role in range(roles):
            batch.values[walk, role] = proved_value(tree, end, role)
    for i in range(goals.shape[0] // playouts):
        walk, without_winner = int(batch.order[i]), 0
        for k in range(i * playouts, (i + 1) * playouts):
            without_winner += NO_WINNER * nobody_wins(goals, k)
        for role in range(roles):
            total = without_winner
            for k in range(i * playouts, (i + 1) * playouts):
                total += max(goals[k, role], 0)
            batch.values[walk, role] = total / (HIGHEST_GOAL * playouts)


@inlined
def _learns_guess(tree: TreeArrays, node: int, edge: int, parent: int, total: int) -> bool:
    """Bring the minimax value of a move to a transposition up to date; return whether it changes."""
    has_moves = tree.nodes[node, STAGE] == LISTED and tree.nodes[node, MOVER] != NOBODY
    return has_moves and guess_edge(tree, node, edge, parent, total)


@inlined
def _add(
    tree: TreeArrays, batch: WalkBatch, walk: int, prior: Prior, rule: JointRule, tops: U8, assumption: int
) -> None:
    """Add the values of a walk to its moves, from its end to the root.

    On the way, a parent of a transposition learns what walks from other parents have guessed, and, if the walk ended
    there, what they have proved.
    """
    node, step, guesses = int(batch.ends[walk]), int(batch.lasts[walk]), prior.minimax > 0.0 and are_opposed(assumption)
    while step >= 0:
        parent, edge = int(batch.steps[step, 0]), int(batch.steps[step, 1])
        if edge < 0:
            learn(tree, parent, node, walk, batch.values, rule)
        else:
            is_first = tree.nodes[node, EDGE] == edge
            if tree.nodes[node, STAGE] == PROVED:
                assess_edge(tree, node, edge, parent)  # it counted with the proved value while this walk was under way
                if tree.nodes[parent, STAGE] != PROVED:
                    tighten(tree, parent, tops, assumption)
            else:
                tree.sums[edge] += batch.values[walk, tree.nodes[parent, MOVER]]
                if not is_first and step == batch.lasts[walk] and has_bounds(tree, node, tops):
                    tighten(tree, parent, tops, assumption)
                if not is_first and guesses and _learns_guess(tree, node, edge, parent, assumption):
                    back_up_guess(tree, parent, assumption)
        proved = int(batch.steps[step, 3])
        if proved >= 0:
            for role in range(batch.values.shape[1]):
                batch.values[walk, role] = proved_value(tree, int(tree.child[proved]), role)
        node, step = parent, int(batch.steps[step, 2])


@kernel_without_refcounts
def fetch_steps(tree: TreeArrays, batch: WalkBatch) -> None:
    """Fetch what `back_up` changes at the moves of all walks, which other threads may have changed since."""
    for step in range(batch.num_steps[0]):
        edge = int(batch.steps[step, 1])
        if edge >= 0:
            prefetch_to_change(tree.sums.ctypes.data + tree.sums.itemsize * edge)
            prefetch_to_change(tree.guesses.ctypes.data + tree.guesses.itemsize * edge)


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
    assumption: int,
) -> None:
    """Add the value of each walk to its moves, and prove the ends at which the match is over.

    goals  int16[states, roles], the results of the playouts from the states of `open_ends`
    steps  int32[states], their lengths
    """
    _value(tree, batch, walks, playouts, goals)
    for walk in range(walks):
        _add(tree, batch, walk, prior, rule, tops, assumption)
    for i in range(goals.shape[0] // playouts):
        end = int(batch.ends[batch.order[i]])
        if steps[i * playouts] == 0 and tree.nodes[end, STAGE] != PROVED:
            settle(tree, end, goals, i * playouts)
            tighten_parents(tree, end, tops, assumption)
        elif tree.nodes[end, STAGE] == NEW:
            tree.nodes[end, STAGE] = SEEN


@kernel_without_refcounts
def withdraw(tree: TreeArrays, batch: WalkBatch, walks: int, rule: JointRule) -> None:
    """Take back the visits of walks that are not backed up. What walks on the way have noted of proved moves stays."""
    for walk in range(walks):
        node, step = int(batch.ends[walk]), int(batch.lasts[walk])
        while step >= 0:
            parent, edge = int(batch.steps[step, 0]), int(batch.steps[step, 1])
            tree.nodes[parent, VISITS] -= 1
            first = edge if edge >= 0 else int(tree.nodes[parent, FIRST])
            for role in range(tree.counts.shape[1] if edge < 0 and rule.method == UCT else 0):
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
    before, indices  int32[4096], memory for the indices of a network: of the parent, and of a child; see
             `networks.network.look_up_child`
    """

    nodes: I32
    moves: I32
    cursor: I64
    before: I32
    indices: I32


def scouts() -> Scouts:
    """Return arrays for one pass."""
    nodes, moves = np.zeros((2, LANES), np.int32)
    return Scouts(nodes, moves, np.zeros(2, np.int64), *np.zeros((2, MOST_TUPLES), np.int32))


@kernel_without_refcounts
def next_children(tree: TreeArrays, batch: WalkBatch, count: int, rows: Scouts, states: U64x2, joint: I32x2) -> int:
    """Write parent states and joint moves for the next children of the first `count` nodes in `batch.order`.

    Return their number, at most 512; 0 at the end.
    """
    size, roles = 0, joint.shape[1]
    while rows.cursor[0] < count and size < rows.moves.size:
        node = int(batch.order[rows.cursor[0]])
        mover, num_moves = int(tree.nodes[node, MOVER]), int(tree.nodes[node, COUNT])
        if mover == NOBODY or rows.cursor[1] == num_moves or tree.nodes[node, STAGE] == PROVED:
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
    has_network, last = prior.network.offsets.shape[0] > 0, -1
    for row in range(size):
        node = int(rows.nodes[row])
        mover = int(tree.nodes[node, MOVER])
        if tree.nodes[node, COUNT] == 1:
            continue
        if has_network:
            if node != last:
                look_up(prior.network, tree.states, node, rows.before)
                last = node
            look_up_child(prior.network, tree.states, node, rows.before, children, row, rows.indices)
            tree.sums[rows.moves[row]] = network_value(prior.network, mover, rows.indices)
        else:
            tree.sums[rows.moves[row]] = worth(prior, mover, children, row)


@kernel_without_refcounts
def add_ends(tree: TreeArrays, rows: Scouts, children: U64x2, ended: I64, goals: I16x2, tops: U8) -> None:
    """Add the children in which the match is over, as long as there is room that is not reserved.

    ended  int64[ends], the rows of these children
    goals  int16[ends, roles]
    """
    for i in range(ended.size):
        if tree.size[NUM_NODES] + tree.size[RESERVED] >= tree.nodes.shape[0]:
            break
        row = int(ended[i])
        node, move = int(rows.nodes[row]), int(rows.moves[row])
        mover = int(tree.nodes[node, MOVER])
        child = add_node(tree, node, move, tops)
        tree.joint[child, mover] = move - mover - tree.nodes[node, FIRST]
        copy_state(tree.states, child, children, row)
        settle(tree, child, goals, i)
        tree.child[move] = child


@kernel_without_refcounts
def add_priors(tree: TreeArrays, batch: WalkBatch, count: int, prior: Prior) -> None:
    """Give the moves of the first `count` nodes in `batch.order` their priors, or the values of ends of the match."""
    for i in range(count):
        node = int(batch.order[i])
        mover, num_moves = int(tree.nodes[node, MOVER]), int(tree.nodes[node, COUNT])
        if mover == NOBODY or tree.nodes[node, STAGE] == PROVED:
            continue
        if prior.visits and num_moves > 1:
            add_prior(tree, node, mover, prior)
        first = int(tree.nodes[node, FIRST]) + mover
        for move in range(first, first + num_moves):
            if tree.child[move] >= 0:
                assess_edge(tree, int(tree.child[move]), move, node)


@kernel_without_refcounts
def end_listing(tree: TreeArrays, batch: WalkBatch, count: int, prior: Prior, tops: U8, assumption: int) -> None:
    """Make the first `count` nodes in `batch.order` LISTED, and let those above learn what their children show."""
    fence()
    for i in range(count):
        node = int(batch.order[i])
        mover, num_moves = int(tree.nodes[node, MOVER]), int(tree.nodes[node, COUNT])
        if tree.nodes[node, STAGE] == PROVED:
            continue
        tree.nodes[node, STAGE] = LISTED
        if mover == NOBODY:
            continue
        ends, first = 0, int(tree.nodes[node, FIRST]) + mover
        for move in range(first, first + num_moves):
            ends += int(tree.child[move] >= 0)
        if ends:
            tighten(tree, node, tops, assumption)
        elif are_opposed(assumption) and prior.visits and num_moves > 1:
            back_up_guess(tree, node, assumption)
