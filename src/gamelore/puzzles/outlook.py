"""Positions of a puzzle: those that a search has reached, and what they promise (novelty, fit, prospect).

A *puzzle* is a game with one role. The searches of portfolio.py keep positions in a table, `Reached`, and rank them by
three measures. All of them work on large batches.

**Novelty**: the width of a position is 1 if it makes a fact true for the first time in the search, and 2 if it does so
for a pair of facts (Lipovetzky & Geffner 2012). A fact that counts plies would make every position new, so facts that
seem to count are left out.

**Fit** says how much of the condition of a goal holds: of a conjunction the mean of its parts, of a disjunction the
largest of its parts, of a fact 0 or 1. So it is 1 if and only if the condition holds, where this is known: what depends
on a loop of the circuit counts 0.5. Fluxplayer values positions in a similar way (Schiffel & Thielscher 2007).

**Prospect**: a position is *hopeless* if no end with a better goal than the best so far can be reached, not even in a
relaxation of the rules, as in planning (Bonet & Geffner 2001): a fact that can hold at some time can hold or not at any
later time, and all actions whose conditions can hold are made together. So no hopeless position is on the way to a
better end. It takes about a microsecond for a position of most puzzles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..analysis.parts import conjuncts
from ..circuit.aig import FALSE, TRUE, Circuit, GateLiteral, needed_nodes
from ..circuit.tape import LANES, words
from ..game.engines import pack_bits, random_moves
from ..players.kernel import I32, I64, U64, Bool, F32x2, U64x2, inlined, kernel, lowest_bit
from ..players.position_graph import longer
from ..players.random_streams import mix

if TYPE_CHECKING:
    from ..game.game import Game

States: TypeAlias = NDArray[np.uint64]
Ints: TypeAlias = NDArray[np.int32]

CHILDREN = 2048  # positions to compute in a step
BY_REASONER = 16  # the same where the reasoner plays
_FIRST_SLOTS = 1 << 12
_BITS = 64  # of a word
_MOST_GATES = 30_000  # of a circuit whose relaxation is computed
_ALL = ~np.uint64(0)
_MOST_OPERANDS = 20_000  # of the gates of a fit; above it takes too long
_BLOCK = 64  # positions whose fit is computed together
_LAST_ROW = (1 << 31) - 1
_OPEN = 0.5  # fit of a condition that is not known
_UNKNOWN, _FIRST_VALUE = 2, 3  # indices of values of a fit
_MATCHES, _LEAST_MATCHES, _PLIES = 64, 8, 64  # random matches that show which facts seem to count plies
_ONE = np.uint64(1)


class Children(NamedTuple):
    """Successors of some positions.

    states    uint64[n, words]
    parents   int32[n], the row of the position before
    actions   int32[n], the action that leads from there
    terminal  bool[n]
    goals     int16[n], of the only role; -1 for none
    """

    states: States
    parents: NDArray[np.int32]
    actions: NDArray[np.int32]
    terminal: NDArray[np.bool_]
    goals: NDArray[np.int16]

    def some(self, which: NDArray[Any]) -> Children:
        """Return some of the children, by a mask or by indices."""
        return Children(*(column[which] for column in self))


class Ending(NamedTuple):
    """The best end that a search has reached: its goal, and the actions that lead there from the first position."""

    goal: int
    actions: NDArray[np.int32]


class Prospect:
    """Whether ends of a match can be reached in the relaxed puzzle, see the module.

    `_can` has 512 lanes for each literal of the circuit, uint64[literals, 8]: whether the literal can hold.
    """

    def __init__(self, circuit: Circuit, clocks: States) -> None:
        nodes, following, legal = len(circuit.left), circuit.outputs["next"], circuit.outputs["legal"]
        self._goals = list(zip(circuit.goals[0], circuit.outputs["goal"], strict=True))
        self._end = circuit.outputs["terminal"][0]
        asked = needed_nodes(circuit, [*legal, self._end, *(literal for _, literal in self._goals)])
        needed = needed_nodes(circuit, following)
        left, right = np.array(circuit.left, np.int32), np.array(circuit.right, np.int32)
        first, then = (np.flatnonzero(part & (left >= 0)).astype(np.int32) for part in (asked, needed & ~asked))
        self._program = left, right, first, then, np.array(following, np.int32), np.array(legal, np.int32)
        self._clocks, self.action_words = clocks, words(circuit.num_actions)
        self._can = np.zeros((2 * nodes, LANES // _BITS), np.uint64)
        self._allowed = np.zeros((circuit.num_actions, LANES // _BITS), np.uint64)
        loops = np.flatnonzero((left < 0) & (np.arange(nodes) > circuit.num_inputs))
        self._can[2 * loops], self._can[2 * loops + 1], self._can[TRUE] = _ALL, _ALL, _ALL

    @classmethod
    def of_game(cls, game: Game, clocks: States) -> Prospect | None:
        """Return the prospect; `clocks` are facts that count plies. None without a circuit, or if it is very large."""
        circuit = game.circuit
        if circuit is None or game.is_bounded or circuit.num_gates > _MOST_GATES:
            return None
        return cls(circuit, clocks)

    def can_end(self, states: States, above: int, bans: States | None = None) -> NDArray[np.bool_]:
        """Return whether a position may lead to an end with a goal above a value, bool[n].

        bans: actions that are not to be made from a position on, as bits uint64[n, words]
        """
        wanted = np.array([literal for goal, literal in self._goals if goal > above], np.int32)
        hopeful = np.zeros(len(states), np.bool_)
        if len(wanted):
            states = np.ascontiguousarray(states)
            bans = np.zeros((0, 1), np.uint64) if bans is None else np.ascontiguousarray(bans)
            _relax(states, self._clocks, *self._program, wanted, self._end, self._can, bans, self._allowed, hopeful)
        return hopeful


@inlined
def _begin_relaxed(states: U64x2, clocks: U64, first: int, lanes: int, num_facts: int, can: U64x2) -> None:
    """Write the facts of some positions; a clock can hold or not from the beginning on."""
    for fact in range(num_facts):
        is_clock = (clocks[fact >> 6] >> np.uint64(fact & 63)) & _ONE
        for word in range(can.shape[1]):
            held = np.uint64(0)
            valid = np.uint64(0)
            for bit in range(min(64, lanes - 64 * word)):
                state = first + 64 * word + bit
                valid |= _ONE << np.uint64(bit)
                held |= ((states[state, fact >> 6] >> np.uint64(fact & 63)) & _ONE) << np.uint64(bit)
            can[2 + 2 * fact, word] = valid if is_clock else held
            can[3 + 2 * fact, word] = valid if is_clock else valid & ~held


@inlined
def _allow(bans: U64x2, first: int, lanes: int, allowed: U64x2) -> None:
    """Write which actions may be made in each of some positions."""
    for action in range(allowed.shape[0]):
        for word in range(allowed.shape[1]):
            allowed[action, word] = _ALL
            for bit in range(min(64, lanes - 64 * word) if bans.shape[0] else 0):
                ban = (bans[first + 64 * word + bit, action >> 6] >> np.uint64(action & 63)) & _ONE
                allowed[action, word] &= ~(ban << np.uint64(bit))


@inlined
def _sweep(left: I32, right: I32, gates: I32, can: U64x2) -> None:
    """Compute gates: a conjunction can hold if both parts can, and it can be false if a part can."""
    for gate in gates:
        a, b = left[gate], right[gate]
        for word in range(can.shape[1]):
            can[2 * gate, word] = can[a, word] & can[b, word]
            can[2 * gate + 1, word] = can[a ^ 1, word] | can[b ^ 1, word]


@inlined
def _follow(following: I32, can: U64x2) -> bool:
    """Add what can hold after a ply; return whether something is new."""
    new = np.uint64(0)
    for fact in range(following.size):
        for side in range(2):
            for word in range(can.shape[1]):
                old = can[2 + 2 * fact + side, word]
                can[2 + 2 * fact + side, word] = old | can[following[fact] ^ side, word]
                new |= can[2 + 2 * fact + side, word] ^ old
    return bool(new != np.uint64(0))


@kernel
def _relax(
    states: U64x2, clocks: U64, left: I32, right: I32, asked: I32, needed: I32, following: I32, legal: I32,
    wanted: I32, end: int, can: U64x2, bans: U64x2, allowed: U64x2, hopeful: Bool,
) -> None:  # fmt: skip
    first_action = 2 + 2 * following.size
    for first in range(0, states.shape[0], LANES):
        lanes = min(LANES, states.shape[0] - first)
        _begin_relaxed(states, clocks, first, lanes, following.size, can)
        _allow(bans, first, lanes, allowed)
        for action in range(legal.size):
            for word in range(can.shape[1]):
                can[first_action + 2 * action, word], can[first_action + 2 * action + 1, word] = np.uint64(0), _ALL
        is_changing = True
        while is_changing:
            _sweep(left, right, asked, can)
            left_over = 0
            for word in range(can.shape[1]):
                reached = np.uint64(0)
                for literal in wanted:
                    reached |= can[literal, word]
                reached &= can[end, word]
                for bit in range(min(64, lanes - 64 * word)):
                    if (reached >> np.uint64(bit)) & _ONE:
                        hopeful[first + 64 * word + bit] = True
                    left_over += not hopeful[first + 64 * word + bit]
            if left_over == 0:
                break
            for action in range(legal.size):
                for word in range(can.shape[1]):
                    can[first_action + 2 * action, word] |= can[legal[action], word] & allowed[action, word]
            _sweep(left, right, needed, can)
            is_changing = _follow(following, can)


class Reached:
    """Positions that a search has reached, by row, with room for as many as fit into a number of bytes.

    states   uint64[rows, words]
    parents  int32[rows], the row before; -1 for the first position
    actions  int32[rows], the action that leads from there
    depths   int32[rows], number of actions from the first position
    slots    int32[a power of two], hash table of rows + 1; 0 in an empty slot

    All arrays grow as they fill, so a small search takes little time and memory.
    """

    def __init__(self, game: Game, num_bytes: int, prospect: Prospect | None = None) -> None:
        self.game, self.num, self._prospect = game, 0, prospect
        self._most = max(CHILDREN, num_bytes // (8 * game.num_words + 3 * 4 + 32))
        self.states = np.zeros((min(_FIRST_SLOTS, self._most), game.num_words), np.uint64)
        self.parents, self.actions, self.depths = np.zeros((3, len(self.states)), np.int32)
        self.slots = np.zeros(_FIRST_SLOTS, np.int32)
        self.best: Ending | None = None
        self.above = 0  # only ends with a goal above this are of use
        self.branching = 1.0  # mean number of children so far
        self._expanded = self._computed = 0
        self.computed = 0  # number of positions in the last step

    @property
    def is_full(self) -> bool:
        return self.num == self._most

    @property
    def batch(self) -> int:
        """Number of positions to expand in a step."""
        most = BY_REASONER if self.game.uses_reasoner else CHILDREN
        return max(1, int(most / max(self.branching, 1.0)))

    def plant(self, state: States, mask: States | None = None) -> None:
        """Begin again with the first position, uint64[words]; `add_new` compares positions by the bits of the mask."""
        self._mask = np.full(len(state), ~np.uint64(0)) if mask is None else mask
        self.num, self.best = 0, None
        self.slots = np.zeros(_FIRST_SLOTS, np.int32)
        self._add(state[None], np.full(1, -1, np.int32), np.full(1, -1, np.int32), np.zeros(1, np.bool_))
        self.depths[0] = 0

    def _make_room(self, rows: int) -> None:
        """Make the arrays longer if there is no room for so many rows more."""
        length = min(self._most, 2 * (self.num + rows))
        if len(self.states) < min(self._most, self.num + rows):
            self.states, self.parents = longer(self.states, length), longer(self.parents, length)
            self.actions, self.depths = longer(self.actions, length), longer(self.depths, length)

    def _add(self, states: States, parents: Ints, actions: Ints, skipped: NDArray[np.bool_]) -> None:
        if 2 * (self.num + len(states)) > len(self.slots):
            self.slots = np.zeros(1 << (4 * (self.num + len(states))).bit_length(), np.int32)
            _refill(self.states, self.num, self._mask, self.slots)
        self._make_room(len(states))
        columns, first = (self.states, self.parents, self.actions, self.slots), self.num
        self.num = _add_new(states, parents, actions, skipped, self._mask, *columns, self.num)
        self.depths[first : self.num] = self.depths[self.parents[first : self.num]] + 1

    def add_new(self, children: Children) -> States:
        """Add the children that are not terminal and not there yet; return their states."""
        before = self.num
        self._add(*children[:4])
        return self.states[before : self.num]

    def keep(self, children: Children, indices: NDArray[np.int64]) -> None:
        """Add some children without a comparison, as long as there is room."""
        indices = indices[: self._most - self.num]
        self._make_room(len(indices))
        rows = slice(self.num, self.num + len(indices))
        self.states[rows], self.parents[rows] = children.states[indices], children.parents[indices]
        self.actions[rows] = children.actions[indices]
        self.depths[rows] = self.depths[self.parents[rows]] + 1
        self.num += len(indices)

    def expand(self, rows: NDArray[np.int32]) -> Children:
        """Return the children of rows, and note the best end among them."""
        children = successors(self.game, self.states[rows])
        children = children._replace(parents=rows[children.parents])
        self._expanded += len(rows)
        self.computed = len(children.actions)
        self._computed += self.computed
        self.branching = self._computed / self._expanded
        ends = np.flatnonzero(children.terminal)
        if len(ends):
            end = ends[np.argmax(children.goals[ends])]
            goal = max(int(children.goals[end]), 0)
            if self.best is None or goal > self.best.goal:
                path = self.path(int(children.parents[end]))
                self.above = max(self.above, goal)
                self.best = Ending(goal, np.append(path, children.actions[end]).astype(np.int32))
        return children if self._prospect is None else self._hopeful(children, self._prospect)

    def _hopeful(self, children: Children, prospect: Prospect) -> Children:
        """Leave out the children from which no better end can be reached."""
        hopeful = children.terminal | prospect.can_end(children.states, self.above)
        return children if hopeful.all() else children.some(hopeful)

    def path(self, row: int) -> list[int]:
        """Return the actions that lead from the first position to a row."""
        actions = []
        while self.parents[row] >= 0:
            actions.append(int(self.actions[row]))
            row = int(self.parents[row])
        return actions[::-1]


def successors(game: Game, states: States) -> Children:
    """Return the children of positions; their parents are the indices of these positions."""
    legal = game.legal(states)
    parents = np.repeat(np.arange(len(states), dtype=np.int32), np.diff(legal.offsets))
    following = game.next(states[parents], legal.actions[:, None])
    terminal, goals = game.evaluate(following)
    return Children(following, parents, legal.actions, terminal, goals[:, 0])


class FactBits:
    """Facts of positions as bits for novelty, uint64[n, words]. The mask has the facts that count.

    The native engine packs a state in this way. For the reasoner, facts get their bits when they first occur; if there
    are more than bits, some facts share a bit.
    """

    _WORDS = 16

    def __init__(self, game: Game, mask: States) -> None:
        self._game, self._mask = game, mask
        self._bits: dict[str, int] | None = {} if game.engine == "reasoner" else None
        self.num_bits = _BITS * (game.num_words if self._bits is None else self._WORDS)

    def of(self, states: States) -> States:
        if self._bits is None:
            return states & self._mask
        held = np.zeros((len(states), self.num_bits), np.bool_)
        for row, state in enumerate(states):
            for fact in sorted(self._game.facts(state)):
                held[row, self._bits.setdefault(fact, len(self._bits)) % self.num_bits] = True
        return pack_bits(held, self._WORDS)


def pair_bytes(num_bits: int) -> int:
    """Return the size of a table with a bit for each pair of facts."""
    return num_bits * num_bits // 8


class Novelty:
    """Facts and pairs of facts that have held in a search, apart for each of some levels.

    singles  uint64[levels, bits / 64]; pairs  uint64[levels, bits * bits / 64], or without entries for width 1
    """

    def __init__(self, num_bits: int, levels: int, width: int) -> None:
        self._singles = np.zeros((levels, num_bits // _BITS), np.uint64)
        self._pairs = np.zeros((levels, num_bits * num_bits // _BITS if width > 1 else 0), np.uint64)
        self._held = np.zeros(num_bits, np.int64)

    def widths(self, bits: States, before: States, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the width of each position, int64[n], and remember its facts.

        The width is 1 if a fact holds for the first time, else 2 if a pair does, else 3. Pairs without a fact that did
        not hold in the position before, `before`, are left out: they are not new.
        """
        widths, new = np.zeros(len(bits), np.int64), bits & ~before
        _note_facts(np.ascontiguousarray(bits), new, levels, self._singles, self._pairs, self._held, widths)
        return widths


@inlined
def _is_new(table: U64x2, level: int, index: int) -> bool:
    """Set a bit of a table; return whether it was 0. For use inside kernels."""
    word, bit = index >> 6, _ONE << np.uint64(index & 63)
    old = table[level, word]
    table[level, word] = old | bit
    return bool((old & bit) == np.uint64(0))


@kernel
def _note_facts(bits: U64x2, new: U64x2, levels: I64, singles: U64x2, pairs: U64x2, held: I64, widths: I64) -> None:
    num_bits = held.size
    for i in range(bits.shape[0]):
        level, count, width = levels[i], 0, 3
        for word in range(bits.shape[1]):
            left = bits[i, word]
            while left:
                held[count] = 64 * word + lowest_bit(left)
                if _is_new(singles, level, held[count]):
                    width = 1
                count += 1
                left &= left - _ONE
        for j in range(count if pairs.shape[1] else 0):
            if (new[i, held[j] >> 6] >> np.uint64(held[j] & 63)) & _ONE:
                for k in range(count):
                    pair = max(held[j], held[k]) * num_bits + min(held[j], held[k])
                    if j != k and _is_new(pairs, level, pair):
                        width = min(width, 2)
        widths[i] = width


@inlined
def _masked_hash(states: U64x2, i: int, mask: U64) -> np.uint64:
    value = np.uint64(0)
    for word in range(mask.size):
        value = mix(value, states[i, word] & mask[word])
    return value


@inlined
def _slot_of(states: U64x2, i: int, mask: U64, stored: U64x2, slots: I32) -> int:
    """Return the slot of a state, or the empty slot where it belongs (linear probing)."""
    slot = np.int64(_masked_hash(states, i, mask) & np.uint64(slots.size - 1))
    while slots[slot]:
        is_there = True
        for word in range(mask.size):
            is_there &= ((states[i, word] ^ stored[slots[slot] - 1, word]) & mask[word]) == np.uint64(0)
        if is_there:
            break
        slot = (slot + 1) & (slots.size - 1)
    return int(slot)


@kernel
def _refill(states: U64x2, num: int, mask: U64, slots: I32) -> None:
    """Write the first `num` states into empty slots."""
    for row in range(num):
        slots[_slot_of(states, row, mask, states, slots)] = row + 1


@kernel
def _add_new(
    states: U64x2, parents: I32, actions: I32, skipped: Bool, mask: U64,
    own_states: U64x2, own_parents: I32, own_actions: I32, slots: I32, num: int,
) -> int:  # fmt: skip
    """Add states that are not skipped and not there; return the new number of rows."""
    for i in range(states.shape[0]):
        if skipped[i]:
            continue
        slot = _slot_of(states, i, mask, own_states, slots)
        if slots[slot]:
            continue
        if num == own_parents.size:
            break
        slots[slot] = num + 1
        for word in range(mask.size):
            own_states[num, word] = states[i, word]
        own_parents[num], own_actions[num] = parents[i], actions[i]
        num += 1
    return num


@kernel
def _push(heap: I64, size: int, keys: I64) -> int:
    for key in keys:
        i = size
        while i and heap[(i - 1) >> 1] > key:
            heap[i] = heap[(i - 1) >> 1]
            i = (i - 1) >> 1
        heap[i] = key
        size += 1
    return size


@kernel
def _pop(heap: I64, size: int, rows: I32) -> int:
    """Take the smallest keys out of a heap, write their rows, and return the new size."""
    for out in range(rows.size):
        rows[out] = _LAST_ROW - (heap[0] & _LAST_ROW)
        size -= 1
        key, i = heap[size], 0
        while True:
            child = 2 * i + 1
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if child >= size or heap[child] >= key:
                break
            heap[i] = heap[child]
            i = child
        heap[i] = key
    return size


class Agenda:
    """Rows in the order of their ranks; among equal ranks, the row that was added last is the first."""

    def __init__(self) -> None:
        self._heap = np.zeros(1024, np.int64)
        self.size = 0

    def add(self, ranks: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Add rows with ranks from 0 to 2**32 - 1."""
        if self.size + len(rows) > len(self._heap):
            self._heap = np.concatenate([self._heap, np.zeros(len(self._heap) + len(rows), np.int64)])
        self.size = _push(self._heap, self.size, ranks << 31 | _LAST_ROW - rows)

    def take(self, most: int) -> Ints:
        """Take out the first rows, at most so many."""
        rows = np.zeros(min(most, self.size), np.int32)
        self.size = _pop(self._heap, self.size, rows)
        return rows


class Fit:
    """How much of a condition holds in positions: a program over the literals of a circuit, see the module.

    A program has a value for each literal that it needs: first 0, 1 and OPEN, then those of facts, then those of gates.
    """

    def __init__(self, circuit: Circuit, condition: GateLiteral) -> None:
        parts = _parts_below(circuit, condition)
        index = {FALSE: 0, TRUE: 1}
        facts, operands, ends, kinds = list[int](), list[int](), [0], list[int]()
        inputs = sorted(literal for literal in parts if TRUE < literal < 2 * circuit.num_facts + 2)
        index |= {literal: _FIRST_VALUE + number for number, literal in enumerate(inputs)}
        facts += [literal - 2 for literal in inputs]  # twice the number of the fact, plus 1 if it is negated
        for literal in sorted(parts.keys() - index.keys()):  # a gate reads earlier nodes only
            if not parts[literal]:
                index[literal] = _UNKNOWN
                continue
            index[literal] = _FIRST_VALUE + len(facts) + len(kinds)
            operands += [index[part] for part in parts[literal]]
            ends.append(len(operands))
            kinds.append(literal & 1)
        self._result = np.array([index[condition]], np.int32)
        parts_of_all = parts[condition] if parts[condition] and not condition & 1 else [condition]
        self._results = np.array([index[part] for part in parts_of_all], np.int32)
        columns = np.array(facts, np.int32), np.array(operands, np.int32), np.array(ends, np.int32)
        self._program = *columns, np.array(kinds, np.int32)
        self._values = np.zeros((_FIRST_VALUE + len(facts) + len(kinds), _BLOCK), np.float32)
        self._values[1], self._values[_UNKNOWN] = 1, _OPEN

    @classmethod
    def of_goal(cls, game: Game) -> Fit | None:
        """Return the fit of the highest goal; None without a circuit, or if the goal is a constant or very large."""
        circuit = game.circuit
        if circuit is None or game.is_bounded or not circuit.goals[0]:
            return None
        condition = circuit.outputs["goal"][int(np.argmax(circuit.goals[0]))]
        try:
            return cls(circuit, condition) if condition > TRUE else None
        except _TooLargeError:
            return None

    def of(self, states: States) -> NDArray[np.float32]:
        """Return the fit of positions, float32[n], from 0 to 1."""
        return self._computed(states, self._result)[:, 0]

    def held_parts(self, states: States) -> NDArray[np.bool_]:
        """Return which parts of the condition hold, if it is a conjunction, bool[n, parts]."""
        held: NDArray[np.bool_] = self._computed(states, self._results) == 1
        return held

    def _computed(self, states: States, results: Ints) -> NDArray[np.float32]:
        fits = np.zeros((len(states), len(results)), np.float32)
        _compute_fits(np.ascontiguousarray(states), *self._program, self._values, results, fits)
        return fits


class _TooLargeError(Exception):
    """The fit of a condition takes too long to compute."""


def _parts_below(circuit: Circuit, condition: GateLiteral) -> dict[GateLiteral, list[GateLiteral]]:
    """Return the literals that the fit of a condition needs, with their parts."""
    below, todo, size = dict[GateLiteral, list[GateLiteral]](), [condition], 0
    while todo:
        literal = todo.pop()
        if literal not in below:
            below[literal] = _parts(circuit, literal)
            todo += below[literal]
            size += len(below[literal])
            if size > _MOST_OPERANDS:
                raise _TooLargeError
    return below


def _parts(circuit: Circuit, literal: GateLiteral) -> list[GateLiteral]:
    """Return the parts of a conjunction, or of a disjunction if the literal is negated; none if it is not a gate."""
    if circuit.left[literal >> 1] < 0:
        return []
    negated = literal & 1
    return [part ^ negated for part in conjuncts(circuit, literal ^ negated)]


@inlined
def _compute_gate(values: F32x2, out: int, operands: I32, begin: int, end: int, is_disjunction: bool) -> None:
    for lane in range(_BLOCK):
        values[out, lane] = 0
    if is_disjunction:
        for i in range(begin, end):
            for lane in range(_BLOCK):
                values[out, lane] = max(values[out, lane], values[operands[i], lane])
        return
    for i in range(begin, end):
        for lane in range(_BLOCK):
            values[out, lane] += values[operands[i], lane]
    # the sum of n ones, divided by n, is 1; that of n times 1 / n need not be
    for lane in range(_BLOCK):
        values[out, lane] /= np.float32(end - begin)


@kernel
def _compute_fits(
    states: U64x2, facts: I32, operands: I32, ends: I32, kinds: I32, values: F32x2, results: I32, fits: F32x2
) -> None:
    gates = _FIRST_VALUE + facts.size
    for first in range(0, states.shape[0], _BLOCK):
        lanes = min(_BLOCK, states.shape[0] - first)
        for i in range(facts.size):
            bit = facts[i] >> 1
            for lane in range(lanes):
                held = int(states[first + lane, bit >> 6] >> np.uint64(bit & 63)) & 1
                values[_FIRST_VALUE + i, lane] = held ^ (facts[i] & 1)
        for gate in range(kinds.size):
            _compute_gate(values, gates + gate, operands, ends[gate], ends[gate + 1], kinds[gate] == 1)
        for i in range(results.size):
            for lane in range(lanes):
                fits[first + lane, i] = values[results[i], lane]


def seeming_clocks(game: Game, state: States, seed: int) -> States:
    """Return the facts that seem to count plies, uint64[words]: in random matches, only the ply decides about them.

    There are none where the reasoner plays, which would take seconds.
    """
    clocks = np.zeros(game.num_words, np.uint64)
    if game.uses_reasoner:
        return clocks
    rng = np.random.default_rng(seed)
    states = np.repeat(state[None], _MATCHES, axis=0)
    first, changed, differing = state, clocks.copy(), clocks.copy()
    for _ in range(_PLIES):
        legal = game.legal(states)
        counts = np.diff(legal.offsets)
        playing = np.flatnonzero(counts)
        if len(playing) < _LEAST_MATCHES:
            break
        drawn = random_moves(legal.offsets[playing], counts[playing], rng)
        states = game.next(states[playing], legal.actions[drawn][:, None])
        differing |= np.bitwise_or.reduce(states ^ states[0], axis=0)
        changed |= states[0] ^ first
    return changed & ~differing
