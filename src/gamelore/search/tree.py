"""Search tree of one match: its arrays, the root's move to a position below, and the limit on its memory.

A node is a position. In most positions only one role has a choice of moves, its *mover*. The moves of a node lie side
by side, role after role, in action order; the arrays below have an entry for each move. A move of the mover leads to
one child. In a node without a mover, several roles choose at the same time. There a joint move leads to a child, which
a hash table finds, and the children are a linked list.

If different moves lead to the same position, it is a *transposition*, usually a single node, to which several moves
lead. A state contains everything that the rules can depend on, so the way to a position does not matter. The moves that
lead to a node are a linked list, by which proofs reach all parents. There are no circles: a node has a *layer*, the
number of moves from the root on the way that was taken first, and a move leads to an older node only if the layer of
this node is deeper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..circuit.tape import LANES
from ..errors import GameloreError
from ..game.engines import HIGHEST_GOAL
from ..players.kernel import (
    F32,
    F64,
    I32,
    I64,
    U8,
    U16,
    F32x2,
    I16x2,
    I32x2,
    U8x2,
    U64x2,
    fence,
    inlined,
    kernel,
    kernel_without_gil,
    kernel_without_refcounts,
    lazy_zeros,
    new_lock,
    prefetch,
)
from ..players.position_graph import hash_state
from ..players.random_streams import mix

if TYPE_CHECKING:
    from ..game.game import Game

# Columns of `TreeArrays.nodes`. PARENT and EDGE: the first parent, and its move that leads to the node, an index of the
# arrays of moves; -1 below a node without a mover. FIRST: the first of the node's moves. COUNT: the number of moves of
# the mover. MOVER: a role, or NOBODY if several roles choose. VISITS: number of walks through the node; one that turns
# away from a proved move counts twice. CHILD: the first child of a node without a mover, or -1.
PARENT, EDGE, FIRST, COUNT, MOVER, VISITS, STAGE, CHILD = range(8)
NOBODY = -1
# Values of `Tree.assumption` that are not a sum. UNRELATED: nothing is assumed. SOLE_WINNER: a role with the highest
# goal is the only one that gets anything.
UNRELATED, SOLE_WINNER = -1, -2
# Stages. NEW: the state is known. SEEN: it is also known that the match is not over. LISTING: a batch is about to list
# the moves, and no other one does so. LISTED: the moves are known, too. PROVED: the values of all roles are known.
NEW, SEEN, LISTING, LISTED, PROVED = range(5)
# Indices of `TreeArrays.size`. NUM_SLOTS: number of the first slots that are in use. NUM_STORED: number of full slots.
# RESERVED: number of nodes that batches under way may still add; there is also room for the moves of so many nodes.
# PROVES: 1 if what grows the tree backs up bounds, else 0.
NUM_NODES, NUM_MOVES, NUM_LISTED, NUM_ROOTS, NUM_SLOTS, NUM_STORED, RESERVED, PROVES = range(8)
_FIRST_SLOTS = 1 << 12
_SLOTS_BEFORE_NEXT = 16  # for each node, when the hash table grows: storing all nodes again takes time
_MOST_LAYERS = 1 << 16
_MANY_VISITS = 1 << 30
_MOST_PLACES = (1 << 31) - 1  # of nodes and of moves: their numbers have 32 bits
_PENDING = 1024
MOVES_BY_REASONER = 4096
_SLOTS_OF_NODE = 2  # on average: a power of two, from 1.5 to 3 times the number of nodes
_NODES_SHARE = 0.4  # of the memory of a tree; the other part is for moves
_LEAST_LEAVES = 256


class TreeArrays(NamedTuple):
    """The arrays of a tree, all with unused entries at the end.

    size     int64[8], see the indices above
    nodes    int32[nodes, 8], see the columns above
    states   uint64[nodes, words]
    joint    int32[nodes, roles + 1], the joint move that leads to the node, as indices into the moves of each role;
             then its next sibling below a node without a mover, or -1
    counts   int32[nodes, roles], number of moves of each role
    low      uint8[nodes, roles], a goal that the role gets at least; see proofs.py
    high     uint8[nodes, roles], a goal that the role gets at most
    plies    uint16[nodes], number of plies to the end in a PROVED node
    layer    int32[nodes], number of moves from the root on the first way, and 2^16 times the number of the root
    slots    int32[a power of two], hash table: the deepest node with a state, or -1 in an empty slot; a child of a node
             without a mover, found by its joint move, is -2 minus its number
    cells    float32[nodes, roles + 1], mean values of the walks to a child of a node without a mover, from 0 to 1 (with
             Exp3, the probabilities of its moves), and the number of these walks; see simultaneous.py
    listed   int32[nodes], the nodes with moves, in the order of their moves
    pending  int32[1024], nodes whose bounds have to be computed again; see proofs.py
    lock     int64[2], what a thread has while it changes a tree that it shares, see `players.kernel.acquire`
    actions  int32[moves]
    child    int32[moves], the child that a mover's move leads to, or -1; without a mover, see simultaneous.py
    also     int32[moves], the next move that leads to the same child, or -1; the first is EDGE of the child. Without a
             mover, see simultaneous.py
    visits   int32[moves], how often the role chose the move, and the virtual visits of its prior, see value.py
    sums     float64[moves], sum of the values of these visits for the role; each value is from 0 to 1
    closed   uint8[moves], 1 if the move cannot be better for the mover than another move; it is not chosen any more
    guesses  float32[moves], value of the move for the role by minimax over learned values, from 0 to 1; see value.py.
             In a node without a mover, regret or gain of the move, see simultaneous.py
    weights  float32[moves], weight of the move in the mean strategy of a node without a mover; see simultaneous.py
    """

    size: I64
    nodes: I32x2
    states: U64x2
    joint: I32x2
    counts: I32x2
    low: U8x2
    high: U8x2
    plies: U16
    layer: I32
    slots: I32
    cells: F32x2
    listed: I32
    pending: I32
    lock: I64
    actions: I32
    child: I32
    also: I32
    visits: I32
    sums: F64
    closed: U8
    guesses: F32
    weights: F32


def room_in(game: Game, num_bytes: int) -> tuple[int, int]:
    """Return the numbers of nodes and of moves of a tree that takes so many bytes; see `TreeArrays` for their sizes."""
    roles = game.num_roles
    node = 32 + 8 * game.num_words + 4 * (roles + 1) + 4 * roles + 2 * roles + 2 + 4 + 4 * _SLOTS_OF_NODE
    node += 4 * (roles + 1) + 4
    move = 4 + 4 + 4 + 4 + 8 + 1 + 4 + 4
    nodes = int(_NODES_SHARE * num_bytes / node)
    moves = int((1 - _NODES_SHARE) * num_bytes / move)
    return min(max(2 * LANES, nodes), _MOST_PLACES), min(moves, _MOST_PLACES)


class Tree:
    """Search tree below a position of a match, with room for `num_nodes` nodes and `num_moves` moves.

    There is room for the moves of `leaves` positions at least, even if all actions are legal there.
    The system gives memory to the arrays only as they fill. `tops` are the highest goals of the roles. `assumption` is
    what bounds and minimax values take for granted of the goals of all roles together, see proofs.py: the sum of the
    goals of two roles with opposite interests, 0 or more, else SOLE_WINNER or UNRELATED.
    """

    def __init__(self, game: Game, num_nodes: int, num_moves: int, leaves: int = _LEAST_LEAVES) -> None:
        roles = game.num_roles
        self.game = game
        self.most_actions = _most_actions(game)
        num_moves = max(num_moves, leaves * self.most_actions)
        self.arrays = TreeArrays(
            size=np.zeros(8, np.int64),
            nodes=lazy_zeros((num_nodes, 8), np.int32),
            states=lazy_zeros((num_nodes, game.initial.size), np.uint64),
            joint=lazy_zeros((num_nodes, roles + 1), np.int32),
            counts=lazy_zeros((num_nodes, roles), np.int32),
            low=lazy_zeros((num_nodes, roles), np.uint8),
            high=lazy_zeros((num_nodes, roles), np.uint8),
            plies=lazy_zeros(num_nodes, np.uint16),
            layer=lazy_zeros(num_nodes, np.int32),
            slots=lazy_zeros(max(_FIRST_SLOTS, 1 << (3 * num_nodes // 2).bit_length()), np.int32),
            cells=lazy_zeros((num_nodes, roles + 1), np.float32),
            listed=lazy_zeros(num_nodes, np.int32),
            pending=np.zeros(_PENDING, np.int32),
            lock=new_lock(),
            actions=lazy_zeros(num_moves, np.int32),
            child=lazy_zeros(num_moves, np.int32),
            also=lazy_zeros(num_moves, np.int32),
            visits=lazy_zeros(num_moves, np.int32),
            sums=lazy_zeros(num_moves, np.float64),
            closed=lazy_zeros(num_moves, np.uint8),
            guesses=lazy_zeros(num_moves, np.float32),
            weights=lazy_zeros(num_moves, np.float32),
        )
        self.assumption = UNRELATED
        tops = [max(values, default=0) for values in game.goal_values]
        if max(tops) > HIGHEST_GOAL:
            raise GameloreError(
                f"expected goals of at most {HIGHEST_GOAL}, got {max(tops)} in {game.name}; choose the player uct"
            )
        self.tops = np.array(tops, np.uint8)

    @property
    def num_nodes(self) -> int:
        return int(self.arrays.size[NUM_NODES])

    @property
    def state(self) -> NDArray[np.uint64]:
        """The position at the root, uint64[words]."""
        state: NDArray[np.uint64] = self.arrays.states[0]
        return state

    def check_room(self, num_moves: int) -> None:
        """Raise GameloreError if the tree has no room for so many moves."""
        room = len(self.arrays.actions) - int(self.arrays.size[NUM_MOVES])
        if num_moves > room:
            raise GameloreError(
                f"expected at most {room} moves in the next positions of {self.game.name}, got {num_moves}; "
                "allow the search more memory"
            )

    def span(self, node: int, role: int) -> tuple[int, int]:
        """Return (index of the first move of a role in the arrays of moves, number of its moves)."""
        counts = self.arrays.counts[node]
        return int(self.arrays.nodes[node, FIRST] + counts[:role].sum()), int(counts[role])

    def start(self, state: NDArray[np.uint64]) -> None:
        """Begin a new tree below a position, and list the moves of its root."""
        self.plant(state[None])

    def plant(self, states: NDArray[np.uint64]) -> None:
        """Begin a new tree below each of some positions, uint64[roots, words], and list the moves of their roots."""
        if len(states) > LANES:
            raise GameloreError(f"expected at most {LANES} roots of a tree, got {len(states)}; search in parts")
        arrays = self.arrays
        arrays.size[:] = 0
        _empty_slots(arrays, _FIRST_SLOTS)
        legal = self.game.legal(states)
        self.check_room(len(legal.actions))
        for _ in states:
            _add_root(arrays, self.tops)
        arrays.states[: len(states)] = states
        has_moves = (np.diff(legal.offsets).reshape(-1, self.game.num_roles) > 0).all(axis=1)
        for root in np.flatnonzero(has_moves).tolist():
            _list_root(arrays, root, legal.offsets, legal.actions)
        over = np.flatnonzero(~has_moves)
        if len(over):
            _, goals = self.game.evaluate(states[over])
            goals = np.where(legal.terminal[over, None], goals, 0).astype(np.int16)
            for index, root in enumerate(over.tolist()):
                _settle_root(arrays, root, goals, index)

    def drop_assumption(self) -> None:
        """Begin anew below the same positions without an assumption, because bounds that rest on it may be wrong."""
        self.assumption = UNRELATED
        self.plant(self.arrays.states[: self.arrays.size[NUM_ROOTS]].copy())

    def advance(self, choices: NDArray[np.int32]) -> bool:
        """Make the child after a joint move, int32[roles] as indices into the legal moves, the new root.

        Drop all nodes that are not below it. Return False if the tree does not contain this child; the tree is then
        unchanged.
        """
        child = child_of(self.arrays, 0, np.ascontiguousarray(choices, np.int32))
        if child < 0:
            return False
        stage = int(self.arrays.nodes[child, STAGE])
        if stage in (SEEN, NEW) or not (
            self._has_proof(child) if stage == PROVED else self._accounts_for_bounds(child)
        ):
            self.start(self.arrays.states[child].copy())
        else:
            compact(self.arrays, child, 0, self.tops)
        return True

    def _has_proof(self, node: int) -> bool:
        """Return whether the tree still contains a child that proves the value of a PROVED node; see `prune`."""
        arrays, mover = self.arrays, int(self.arrays.nodes[node, MOVER])
        if not arrays.counts[node].any():
            return False
        first, count = self.span(node, mover)
        children = arrays.child[first : first + count]
        children = children[children >= 0]
        proved = arrays.nodes[children, STAGE] == PROVED
        return bool((proved & (arrays.low[children, mover] == arrays.low[node, mover])).any())

    def _accounts_for_bounds(self, node: int) -> bool:
        """Return whether the children of a LISTED node account for the bounds of its mover; see `compact`."""
        arrays, mover = self.arrays, int(self.arrays.nodes[node, MOVER])
        if mover == NOBODY:
            return True
        first, count = self.span(node, mover)
        children = arrays.child[first : first + count]
        is_whole, children = bool((children >= 0).all()), children[children >= 0]
        low = int(arrays.low[children, mover].max(initial=0))
        high = int(arrays.high[children, mover].max(initial=0)) if is_whole else int(self.tops[mover])
        return low >= int(arrays.low[node, mover]) and high <= int(arrays.high[node, mover])

    def prune(self) -> None:
        """Drop the nodes with the fewest visits until at least a third of the nodes and of the moves is gone.

        Children of the root are always kept, and so are bounds and proofs, see `compact`. If most moves are those of
        the root and its children, half of the others go. The moves that led to dropped nodes keep their visits and
        values.
        """
        size = self.arrays.size
        whole = size[[NUM_NODES, NUM_MOVES]]
        most = np.maximum(2 * whole // 3, (whole + self._always_kept()) // 2)
        least = self._least_visits(most)
        while (size[[NUM_NODES, NUM_MOVES]] > most).any() and least < _MANY_VISITS:
            compact(self.arrays, 0, least, self.tops)
            least *= 2

    def _always_kept(self) -> NDArray[np.int64]:
        """Return the numbers of nodes and of moves of the root and its children, int64[2]."""
        arrays = self.arrays
        is_kept = arrays.nodes[: self.num_nodes, PARENT] <= 0
        children = arrays.child[arrays.nodes[0, FIRST] :][: arrays.counts[0].sum()]
        is_kept[children[children >= 0]] = True
        return np.array([is_kept.sum(), arrays.counts[: self.num_nodes][is_kept].sum()])

    def _least_visits(self, most: NDArray[np.int64]) -> int:
        """Return a power of two: at most so many nodes and moves, int64[2], belong to nodes with that many visits."""
        visits, moves = self.arrays.nodes[: self.num_nodes, VISITS], self.arrays.counts[: self.num_nodes].sum(axis=1)
        least = 1
        while least < _MANY_VISITS // 2 and (
            np.count_nonzero(visits >= least) > most[0] or moves[visits >= least].sum() > most[1]
        ):
            least *= 2
        return least


def _most_actions(game: Game) -> int:
    """Return an upper bound on the number of moves of all roles together in a position; a guess without a circuit."""
    return game.native.circuit.num_actions if game.native else MOVES_BY_REASONER


@inlined
def copy_state(target: U64x2, index: int, source: U64x2, source_index: int) -> None:
    """Copy a row, word by word; for use inside kernels. The target may have more words."""
    for word in range(source.shape[1]):
        target[index, word] = source[source_index, word]


@inlined
def add_node(tree: TreeArrays, parent: int, edge: int, tops: U8) -> int:
    """Add a node without a state, and return it. `tops` are the highest goals of the roles."""
    node = int(tree.size[NUM_NODES])
    tree.size[NUM_NODES] = node + 1
    row = tree.nodes[node]
    row[PARENT] = parent
    row[EDGE] = edge
    row[FIRST] = row[COUNT] = row[MOVER] = row[VISITS] = 0
    row[STAGE] = SEEN
    row[CHILD] = -1
    tree.layer[node] = tree.layer[parent] + 1 if parent >= 0 else _MOST_LAYERS * node
    for role in range(tops.size):
        tree.counts[node, role] = 0
        tree.joint[node, role] = 0
        tree.cells[node, role] = 0.0
        tree.low[node, role] = 0
        tree.high[node, role] = tops[role]
    tree.joint[node, tops.size] = -1
    tree.cells[node, tops.size] = 0.0
    tree.plies[node] = 0
    return node


@inlined
def add_moves(tree: TreeArrays, node: int, offsets: I64, actions: I32, position: int) -> None:
    """Enter the moves of a node: those of number `position` in a batch, see `Legal`. Every role has a move.

    The node is not LISTED by this.
    """
    roles = tree.counts.shape[1]
    begin, first = offsets[position * roles], tree.size[NUM_MOVES]
    end = offsets[(position + 1) * roles]
    row = tree.nodes[node]
    row[FIRST] = first
    row[COUNT] = 1
    row[MOVER] = 0
    num_choosing = 0
    for role in range(roles):
        count = offsets[position * roles + role + 1] - offsets[position * roles + role]
        tree.counts[node, role] = count
        if count > 1:
            num_choosing += 1
            row[MOVER] = role
            row[COUNT] = count
    if num_choosing > 1:
        row[MOVER] = NOBODY
    for i in range(end - begin):
        tree.actions[first + i] = actions[begin + i]
        tree.child[first + i] = -1
        tree.also[first + i] = -1 if num_choosing < 2 else 0
        tree.visits[first + i] = 0
        tree.sums[first + i] = 0.0
        tree.closed[first + i] = 0
        tree.guesses[first + i] = 0.5 if num_choosing < 2 else 0.0
        tree.weights[first + i] = 0.0
    tree.size[NUM_MOVES] = first + end - begin
    tree.listed[tree.size[NUM_LISTED]] = node
    tree.size[NUM_LISTED] += 1


@kernel_without_refcounts
def are_opposed(assumption: int) -> bool:
    """Return whether a `Tree.assumption` says that two roles have opposite interests; it is the sum of their goals."""
    return assumption >= 0


@inlined
def owner_of(tree: TreeArrays, move: int) -> int:
    """Return the node to which a move belongs, by binary search in the nodes with moves."""
    low, high = 0, int(tree.size[NUM_LISTED]) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tree.nodes[tree.listed[middle], FIRST] <= move:
            low = middle
        else:
            high = middle - 1
    return int(tree.listed[low])


@inlined
def _lead_to(tree: TreeArrays, edge: int, node: int) -> None:
    """Enter a move into the list of those that lead to a node; it is not the first."""
    first = int(tree.nodes[node, EDGE])
    if edge != first:
        tree.also[edge] = tree.also[first]
        tree.also[first] = edge


@inlined
def settle(tree: TreeArrays, node: int, goals: I16x2, index: int) -> None:
    """Set the values of a node in which the match is over: the goals at this index. A goal below 0 counts 0."""
    for role in range(goals.shape[1]):
        tree.low[node, role] = tree.high[node, role] = max(goals[index, role], 0)
    fence()
    tree.nodes[node, STAGE] = PROVED


@kernel
def _add_root(tree: TreeArrays, tops: U8) -> None:
    add_node(tree, -1, -1, tops)
    tree.size[NUM_ROOTS] = tree.size[NUM_NODES]


@kernel
def _list_root(tree: TreeArrays, root: int, offsets: I64, actions: I32) -> None:
    add_moves(tree, root, offsets, actions, root)
    tree.nodes[root, STAGE] = LISTED


@kernel
def _settle_root(tree: TreeArrays, root: int, goals: I16x2, index: int) -> None:
    settle(tree, root, goals, index)


@inlined
def _first_slot(tree: TreeArrays, states: U64x2, row: int, root: int) -> int:
    """Return the slot where the search for a node with the state in a row below a root begins."""
    last = np.uint64(tree.size[NUM_SLOTS] - 1)
    return int(mix(hash_state(states, row), np.uint64(root)) & last)


@inlined
def _slot_of(tree: TreeArrays, node: int) -> int:
    """Return the slot of a node with the state of this node below the same root, or the slot where it belongs."""
    last, root = tree.size[NUM_SLOTS] - 1, tree.layer[node] // _MOST_LAYERS
    slot = _first_slot(tree, tree.states, node, int(root))
    while tree.slots[slot] != -1:
        stored = max(tree.slots[slot], 0)  # any node in place of a child of a node without a mover
        same = tree.slots[slot] >= 0 and tree.layer[stored] // _MOST_LAYERS == root
        for word in range(tree.states.shape[1]):
            same &= tree.states[stored, word] == tree.states[node, word]
        if same:
            break
        slot = (slot + 1) & last
    return int(slot)


@kernel_without_refcounts
def _empty_slots(tree: TreeArrays, count: int) -> None:
    """Empty the first `count` slots, and use only these from now on."""
    for slot in range(count):
        tree.slots[slot] = -1
    fence()  # another thread may look for a child
    tree.size[NUM_SLOTS], tree.size[NUM_STORED] = count, 0


@inlined
def _store(tree: TreeArrays, node: int) -> int:
    """Return the stored node with the state of this node if it lies below the parent's layer; else store this one.

    So every move leads to a deeper layer, and there are no circles.
    """
    slot = _slot_of(tree, node)
    stored = int(tree.slots[slot])
    if stored >= 0 and tree.layer[stored] >= tree.layer[node]:
        return stored
    tree.size[NUM_STORED] += int(stored < 0)
    tree.slots[slot] = node
    return node


@inlined
def _is_end(tree: TreeArrays, node: int) -> bool:
    """Return whether the match is over in a node."""
    return bool(tree.nodes[node, STAGE] == PROVED and tree.plies[node] == 0)


@inlined
def _joint_slot(tree: TreeArrays, node: int, choices: I32) -> tuple[int, int]:
    """Return (slot of the child after a joint move, or the one where it belongs; its entry, which is read once)."""
    last, key = tree.size[NUM_SLOTS] - 1, np.uint64(node)
    for role in range(tree.counts.shape[1]):
        key = mix(key, np.uint64(choices[role]))
    slot = np.int64(key & np.uint64(last))
    entry = int(tree.slots[slot])
    while entry != -1:
        child = max(-2 - entry, 0)  # the root in place of a node that is stored with its state
        same = tree.nodes[child, PARENT] == node
        for role in range(tree.counts.shape[1]):
            same &= tree.joint[child, role] == choices[role]
        if same:
            break
        slot = (slot + 1) & last
        entry = int(tree.slots[slot])
    return int(slot), entry


@inlined
def _store_joint_child(tree: TreeArrays, node: int) -> None:
    """Store a child of a node without a mover."""
    tree.slots[_joint_slot(tree, int(tree.nodes[node, PARENT]), tree.joint[node])[0]] = -2 - node
    tree.size[NUM_STORED] += 1


@kernel_without_refcounts
def fill_slots(tree: TreeArrays) -> None:
    """Store all nodes that can be transpositions in an empty hash table with room for eight times as many.

    These are nodes below a move of a mover which have been computed for a walk, and so have a state. Children of nodes
    without a mover are stored, too.
    """
    count = int(tree.size[NUM_SLOTS])
    while count < min(_SLOTS_BEFORE_NEXT * tree.size[NUM_NODES], tree.slots.size):
        count *= 2
    _empty_slots(tree, count)
    for node in range(tree.size[NUM_ROOTS], tree.size[NUM_NODES]):
        if tree.nodes[node, EDGE] < 0:
            _store_joint_child(tree, node)
        elif not _is_end(tree, node):
            _store(tree, node)


@inlined
def sibling_with(tree: TreeArrays, node: int, choices: I32) -> int:
    """Return the child of a node without a mover after a joint move, or -1; for use inside kernels."""
    return max(-1, -2 - _joint_slot(tree, node, choices)[1])


@kernel
def child_of(tree: TreeArrays, node: int, choices: I32) -> int:
    """Return the child after a joint move, int32[roles] as indices into the moves of each role; -1 if there is none."""
    row = tree.nodes[node]
    if row[STAGE] == SEEN or tree.counts[node, 0] == 0:
        return -1
    if row[MOVER] != NOBODY:
        return int(tree.child[row[FIRST] + row[MOVER] + choices[row[MOVER]]])
    return sibling_with(tree, node, choices)


@inlined
def _reach(tree: TreeArrays, node: int, parent: int, edge: int, new: I32, reached: I32, count: int) -> int:
    """Note that a node is kept, below this parent, unless it is noted already; return the number of noted nodes."""
    if new[node] >= 0:
        return count
    new[node] = 0
    before = int(tree.nodes[node, EDGE])
    if edge >= 0 and before >= 0 and tree.nodes[tree.nodes[node, PARENT], MOVER] == tree.nodes[parent, MOVER]:
        tree.guesses[edge] = tree.guesses[before]  # only the guess of the first parent is always up to date
    tree.nodes[node, PARENT], tree.nodes[node, EDGE] = parent, edge
    if edge >= 0:
        mover = int(tree.nodes[parent, MOVER])
        for role in range(tree.counts.shape[1]):
            tree.joint[node, role] = edge - mover - tree.nodes[parent, FIRST] if role == mover else 0
    reached[count] = node
    return count + 1


@inlined
def has_bounds(tree: TreeArrays, node: int, tops: U8) -> bool:
    """Return whether something is proved about a node."""
    narrower = 0
    for role in range(tops.size):
        narrower += int(tree.low[node, role] > 0) + int(tree.high[node, role] < tops[role])
    return narrower > 0


@inlined
def _is_kept(tree: TreeArrays, node: int, parent: int, least: int, tops: U8) -> bool:
    """Return whether to keep a child of a kept node: one with enough visits or with bounds.

    Below a proved node, only its proof counts: the children that have the value of the node for its mover.
    """
    if least and tree.nodes[parent, STAGE] == PROVED:
        mover = tree.nodes[parent, MOVER]
        return bool(tree.nodes[node, STAGE] == PROVED and tree.low[node, mover] == tree.low[parent, mover])
    return bool(tree.nodes[node, VISITS] >= least or has_bounds(tree, node, tops))


@inlined
def _strip(tree: TreeArrays, node: int) -> None:
    """Take the moves of a node, and so what is below it; its bounds stay."""
    if tree.nodes[node, STAGE] == LISTED:
        tree.nodes[node, STAGE] = SEEN
    tree.nodes[node, COUNT], tree.nodes[node, VISITS] = 0, 0
    tree.nodes[node, MOVER] = max(tree.nodes[node, MOVER], 0)
    for role in range(tree.counts.shape[1]):
        tree.counts[node, role] = 0


@inlined
def _number_kept(tree: TreeArrays, root: int, least: int, tops: U8, new: I32, reached: I32) -> None:
    """Give new numbers to the nodes that are kept, the root first, then in their order; set the number of nodes.

    `reached` is int32[nodes], an array to work on.
    """
    count, done = _reach(tree, root, -1, -1, new, reached, 0), 0
    while done < count:
        node = int(reached[done])
        done += 1
        if tree.nodes[node, VISITS] < least and node != root and tree.nodes[node, PARENT] != root:
            _strip(tree, node)
        if tree.nodes[node, MOVER] == NOBODY:
            child = int(tree.nodes[node, CHILD])
            while child >= 0:
                if node == root or _is_kept(tree, child, node, least, tops):
                    count = _reach(tree, child, node, -1, new, reached, count)
                child = int(tree.joint[child, tree.counts.shape[1]])
            continue
        first = int(tree.nodes[node, FIRST] + tree.nodes[node, MOVER])
        for move in range(first, first + (tree.nodes[node, COUNT] if tree.counts[node, 0] else 0)):
            child = int(tree.child[move])
            if child >= 0 and (node == root or _is_kept(tree, child, node, least, tops)):
                count = _reach(tree, child, node, move, new, reached, count)
    kept = 1
    for node in range(new.size):
        if new[node] >= 0 and node != root:
            new[node] = kept
            kept += 1
    tree.size[NUM_NODES] = kept
    tree.size[NUM_ROOTS] = 1


@inlined
def _move_moves(tree: TreeArrays, new: I32, shift: I32) -> None:
    """Move the moves of kept nodes down, and enter the new numbers of children; `shift` is how far they moved."""
    end, listed = 0, 0
    for i in range(tree.size[NUM_LISTED]):
        node = tree.listed[i]
        if new[node] < 0 or tree.nodes[node, COUNT] == 0:
            continue
        first, count = tree.nodes[node, FIRST], 0
        for role in range(tree.counts.shape[1]):
            count += tree.counts[node, role]
        for k in range(count):
            child = tree.child[first + k]
            tree.actions[end + k] = tree.actions[first + k]
            tree.child[end + k] = new[child] if child >= 0 else -1
            tree.also[end + k] = tree.also[first + k] if tree.nodes[node, MOVER] == NOBODY else -1
            tree.visits[end + k] = tree.visits[first + k]
            tree.sums[end + k] = tree.sums[first + k]
            tree.closed[end + k] = tree.closed[first + k]
            tree.guesses[end + k] = tree.guesses[first + k]
            tree.weights[end + k] = tree.weights[first + k]
        shift[node] = first - end
        tree.nodes[node, FIRST] = end
        end += count
        tree.listed[listed] = new[node]
        listed += 1
    tree.size[NUM_MOVES], tree.size[NUM_LISTED] = end, listed


@inlined
def _copy_node(tree: TreeArrays, node: int, at: int) -> None:
    """Copy the entries of a node to another place; in loops, because the copy of a slice takes memory."""
    if node == at:
        return
    for column in range(tree.nodes.shape[1]):
        tree.nodes[at, column] = tree.nodes[node, column]
    copy_state(tree.states, at, tree.states, node)
    for role in range(tree.counts.shape[1]):
        tree.joint[at, role] = tree.joint[node, role]
        tree.counts[at, role] = tree.counts[node, role]
        tree.low[at, role] = tree.low[node, role]
        tree.high[at, role] = tree.high[node, role]
        tree.cells[at, role] = tree.cells[node, role]
    tree.joint[at, tree.counts.shape[1]] = tree.joint[node, tree.counts.shape[1]]
    tree.cells[at, tree.counts.shape[1]] = tree.cells[node, tree.counts.shape[1]]
    tree.plies[at] = tree.plies[node]
    tree.layer[at] = tree.layer[node]


@inlined
def _move_node(tree: TreeArrays, node: int, new: I32, shift: I32) -> None:
    """Move a node to its new place, and enter the new numbers of its parent and of its move."""
    at, roles = int(new[node]), tree.counts.shape[1]
    _copy_node(tree, node, at)
    row = tree.nodes[at]
    row[CHILD] = -1
    if at == 0:
        return
    parent = row[PARENT]
    row[PARENT] = new[parent]
    if row[EDGE] >= 0:
        row[EDGE] -= shift[parent]
    else:
        tree.joint[at, roles] = tree.nodes[row[PARENT], CHILD]
        tree.nodes[row[PARENT], CHILD] = at


@kernel_without_gil
def compact(tree: TreeArrays, root: int, least: int, tops: U8) -> None:
    """Make a node the root, and keep only nodes below it with at least `least` visits; close the gaps in all arrays.

    Children of the root are always kept. A node keeps its moves, and a move to a dropped child becomes a move without
    a child. With fewer visits, a node about which something is proved is kept without its moves, because a move to it
    that is closed is never tried again. Below a proved node, only its proof is kept.
    """
    num_nodes = int(tree.size[NUM_NODES])
    new = np.full(num_nodes, -1, np.int32)
    shift = np.zeros(num_nodes, np.int32)
    _number_kept(tree, root, least, tops, new, np.empty(num_nodes, np.int32))
    _move_moves(tree, new, shift)
    _move_node(tree, root, new, shift)  # to the place of the old root; no other node moves up
    for node in range(num_nodes):
        if new[node] >= 0 and node != root:
            _move_node(tree, node, new, shift)
    for move in range(tree.size[NUM_MOVES]):
        if tree.child[move] >= 0:
            _lead_to(tree, move, int(tree.child[move]))
    base = tree.layer[0]
    for node in range(tree.size[NUM_NODES]):
        tree.layer[node] -= base
    fill_slots(tree)


@inlined
def make_slots(tree: TreeArrays, count: int) -> None:
    """Enlarge the hash table if so many more nodes would fill more than half of it."""
    if 2 * (tree.size[NUM_STORED] + count) > tree.size[NUM_SLOTS] < tree.slots.size:
        fill_slots(tree)


@inlined
def fetch_slot(tree: TreeArrays, parent: int, states: U64x2, row: int) -> None:
    """Fetch the slot from which on `add_child` looks for a node with the state in a row, below a parent."""
    slot = _first_slot(tree, states, row, int(tree.layer[parent] // _MOST_LAYERS))
    prefetch(tree.slots.ctypes.data + tree.slots.itemsize * slot)


@inlined
def fetch_stored(tree: TreeArrays, parent: int, states: U64x2, row: int) -> None:
    """Fetch the state of the node in this slot."""
    stored = int(tree.slots[_first_slot(tree, states, row, int(tree.layer[parent] // _MOST_LAYERS))])
    if stored >= 0:
        prefetch(tree.states.ctypes.data + tree.states.itemsize * tree.states.shape[1] * stored)
        prefetch(tree.layer.ctypes.data + tree.layer.itemsize * stored)


@inlined
def add_child(tree: TreeArrays, parent: int, move: int, states: U64x2, row: int, transpositions: bool, tops: U8) -> int:
    """Let a mover's move lead to the position with the state in a row, and return this node.

    If there is an older node with this position, and it lies below the layer of the parent, it is this one.
    """
    node, mover = add_node(tree, parent, move, tops), int(tree.nodes[parent, MOVER])
    copy_state(tree.states, node, states, row)
    stored = _store(tree, node) if transpositions else node
    if stored != node:
        tree.size[NUM_NODES] = node
        _lead_to(tree, move, stored)
    else:
        tree.joint[node, mover] = move - tree.nodes[parent, FIRST] - mover
        tree.nodes[node, STAGE] = NEW
    fence()
    tree.child[move] = stored
    return stored


@inlined
def add_joint_child(tree: TreeArrays, parent: int, choices: I32, states: U64x2, row: int, tops: U8) -> int:
    """Add a node with the state in a row after a joint move in a node without a mover, and return it.

    choices  int32[roles], indices into the moves of each role
    """
    node = add_node(tree, parent, -1, tops)
    copy_state(tree.states, node, states, row)
    for role in range(choices.size):
        tree.joint[node, role] = choices[role]
    tree.joint[node, choices.size] = tree.nodes[parent, CHILD]
    tree.nodes[node, STAGE] = NEW
    fence()
    tree.nodes[parent, CHILD] = node
    _store_joint_child(tree, node)
    return node
