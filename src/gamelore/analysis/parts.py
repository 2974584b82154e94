"""Independent parts of a game: facts that no move and no rule ties to the facts of other parts, and irrelevant facts.

The rules of many games are sums of smaller games: several puzzles, heaps or boards (Cox, Schiffel & Thielscher;
"Factoring general games", Schiffel et al. 2009). This module finds the parts in the circuit.

*Clock facts* depend on no move, directly or indirectly: counters, and whose turn it is in most games. They take the
same course in every match, so all parts may read them. The course has *phases*: times at which the same moves are
possible as far as the clock decides. In each phase, at most one role may have a choice; its action and the only actions
of the other roles are a *joint move*. If several roles have a choice, the game is one part.

Two facts belong to one part if the next value of one of them reads the other, or if a condition of a legal move reads
both; the legality of a move is a conjunction of conditions. Two joint moves are in the same *class* of a part if they
have the same effect on the part and the same conditions there. Then one of two things must hold, or else parts are
joined until it does:

- *Serial*: in each part and phase, one class without conditions is that of *waiting*, and each move is of another class
  in at most one part.
- *Parallel*: every combination of classes, one of each part, is a joint move.

So the part of a state, the clock and the class of a move determine the same part of the next state, and a move is
possible if its class is possible in every part. Terminal positions and goals may read several parts: what that means
depends on the use. Dependencies are read off the gates, so a part may be too large, but never too small.

*Irrelevant* facts have no influence on the end of the match, on goals, or on moves that do have one. Two positions that
differ in irrelevant facts only have the same value; their moves correspond to each other class by class.

`part_game` makes some parts of a game with one role a game of their own, with a part of the gates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..circuit.aig import FALSE, Builder, Circuit, GateLiteral, Node, drop_dead
from ..circuit.tape import record_circuit
from ..game.engines import HIGHEST_GOAL, NativeEngine, pack_bits, unpack_bits
from ..game.game import Game
from ..gdl.limits import check
from .symmetry import Groups, course_of, packed
from .variables import Bits, members

Bools: TypeAlias = NDArray[np.bool_]
Kind: TypeAlias = Literal["one", "serial", "parallel"]

MOST_GATES = 30_000
MOST_CELLS = 1 << 26  # of a table of gates and joint moves, or of phases, parts and joint moves, a byte each
LONGEST = 1000  # course of the clock
_TRIED_STATES = 16
MOST_CHECKED = 128  # parts whose moves are compared pair by pair


@dataclass(frozen=True, eq=False)
class GamePart:
    """A part of a game.

    facts    the bits of its facts in a state, ascending
    mask     uint64[words], the same
    classes  int64[moves], the class of each joint move
    touches  bool[phases, moves], whether a move of a phase is of another class than waiting
    """

    facts: tuple[int, ...]
    mask: NDArray[np.uint64]
    classes: NDArray[np.int64]
    touches: Bools


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a game.

    kind        how moves belong to parts, see the module; "one" if the game is one part, or could not be analysed
    clock       the bits of the clock facts
    relevant    uint64[words], the clock and all facts that are not irrelevant
    parts       the parts, those with the smallest bits first; empty if the game could not be analysed
    joint       int32[moves, roles], the joint moves; action numbers of the circuit
    possible    bool[phases, moves], which of them are possible in a phase as far as the clock decides
    conditions  for each joint move the literals of its conditions that do not only read the clock
    """

    game: Game
    kind: Kind
    clock: tuple[int, ...]
    relevant: NDArray[np.uint64]
    parts: tuple[GamePart, ...]
    joint: NDArray[np.int32]
    possible: Bools
    conditions: tuple[frozenset[GateLiteral], ...]

    @cached_property
    def clock_mask(self) -> NDArray[np.uint64]:
        """uint64[words], the clock facts."""
        return packed(self.game, self.clock)

    @cached_property
    def moves(self) -> dict[tuple[int, ...], int]:
        """The number of each joint move, by its actions."""
        return {tuple(actions): number for number, actions in enumerate(self.joint.tolist())}

    @property
    def num_irrelevant(self) -> int:
        """Number of irrelevant facts."""
        num_facts = self.game.circuit.num_facts if self.game.circuit is not None and self.parts else 0
        return num_facts - int(unpack_bits(self.relevant[None], num_facts).sum())

    def reads(self, literal: GateLiteral) -> Bits:
        """Return the facts that a literal of the circuit reads, without the clock."""
        return self.reading[literal >> 1] & ~_bits(self.clock)

    @cached_property
    def reading(self) -> list[Bits]:
        """The facts that each node of the circuit reads."""
        assert self.game.circuit is not None
        return _fact_reads(self.game.circuit)

    def joined(self, literals: Iterable[GateLiteral]) -> list[list[int]]:
        """Return the parts, by number, in groups: two are in one group if some of the literals reads both of them."""
        groups = Groups(len(self.parts))
        part_of = {fact: number for number, part in enumerate(self.parts) for fact in part.facts}
        for literal in literals:
            groups.join({part_of[fact] for fact in members(self.reads(literal))})
        return groups.lists()


def parts(game: Game) -> Parts:
    """Return the parts of a game; one part in case of doubt, and if tables get more than MOST_CELLS.

    It takes well under a second in nearly all games, and a few seconds at most.

    Raises GroundingError if the present budget is used up.
    """
    circuit = game.circuit
    if circuit is None or game.is_bounded or circuit.loops or not all(circuit.actions):
        return _unknown(game)
    anatomy = _Anatomy.of(game, circuit) if circuit.num_gates <= MOST_GATES else None
    if anatomy is None:
        return _unknown(game)
    groups = anatomy.tied()
    if len(groups.lists()) * anatomy.possible.size > MOST_CELLS:
        return _unknown(game)
    serial, parallel = anatomy.serial(groups), None
    if len(serial.lists()) == 1:
        parallel = anatomy.parallel(groups)
    kind: Kind = "serial" if parallel is None else "parallel"
    grouped = anatomy.parts(serial if parallel is None else parallel)
    relevant = anatomy.relevant() | _bits(anatomy.clock)
    return Parts(
        game,
        kind if len(grouped) > 1 else "one",
        tuple(anatomy.clock),
        packed(game, members(relevant)),
        grouped,
        anatomy.joint,
        anatomy.possible,
        tuple(anatomy.conditions),
    )


def _unknown(game: Game) -> Parts:
    """Return the result for a game that is not analysed."""
    no_moves = np.zeros((0, game.num_roles), np.int32)
    everything = np.full(game.num_words, ~np.uint64(0))
    return Parts(game, "one", (), everything, (), no_moves, np.zeros((0, 0), np.bool_), ())


@dataclass(eq=False)
class _Anatomy:
    """What the gates of a game read.

    reads       the facts that each node reads
    free        the facts that are not clock facts; groups and `keys` number them in this order
    effects     for each of these, the facts that its next value reads, without the clock
    keys        uint64[free facts, moves], equal for two moves with the same effect on a fact (hashes)
    idle        bool[free facts, moves], whether a move seems to leave a fact as it is
    """

    game: Game
    circuit: Circuit
    reads: list[Bits]
    clock: list[int]
    free: list[int]
    joint: NDArray[np.int32]
    possible: Bools
    conditions: list[frozenset[GateLiteral]]
    keys: NDArray[np.uint64]
    idle: Bools

    @classmethod
    def of(cls, game: Game, circuit: Circuit) -> _Anatomy | None:
        """Return the anatomy; None if several roles have a choice at a time, or if the game is too large."""
        reads = _fact_reads(circuit)
        clock = _clock_facts(circuit, reads)
        free = sorted(set(range(circuit.num_facts)) - set(clock))
        phases = _phases(game, circuit, reads, clock)
        if phases is None or not free:
            return None
        joint, possible = phases
        if len(joint) * (circuit.num_gates + circuit.num_inputs) > MOST_CELLS:
            return None
        keys = _effect_keys(circuit, free, joint, reads)
        anatomy = cls(game, circuit, reads, clock, free, joint, possible, [], keys, _idle(game, joint)[free])
        legal, outside = circuit.outputs["legal"], ~_bits(clock)
        of_action = [
            frozenset(part for part in conjuncts(circuit, literal) if reads[part >> 1] & outside) for literal in legal
        ]
        anatomy.conditions = [frozenset().union(*(of_action[a] for a in actions)) for actions in joint.tolist()]
        return anatomy

    @cached_property
    def _place(self) -> dict[int, int]:
        return {fact: place for place, fact in enumerate(self.free)}

    @cached_property
    def _free_bits(self) -> Bits:
        return _bits(self.free)

    def _next_reads(self, fact: int) -> Bits:
        return self.reads[self.circuit.outputs["next"][fact] >> 1] & self._free_bits

    def places(self, facts: Bits) -> list[int]:
        return [self._place[fact] for fact in members(facts & self._free_bits)]

    def tied(self) -> Groups:
        """Return groups of free facts that the rules tie, without regard to the effects of moves."""
        groups = Groups(len(self.free))
        for place, fact in enumerate(self.free):
            groups.join([place, *self.places(self._next_reads(fact))])
        for literal in frozenset().union(*self.conditions):
            groups.join(self.places(self.reads[literal >> 1]))
        return groups

    @cached_property
    def _conditions_by_place(self) -> tuple[dict[GateLiteral, int], dict[GateLiteral, NDArray[np.int64]]]:
        """For each condition, one place that it reads, and the moves that have it."""
        first: dict[GateLiteral, int] = {}
        moves: dict[GateLiteral, list[int]] = {}
        for move, conditions in enumerate(self.conditions):
            for literal in conditions:
                moves.setdefault(literal, []).append(move)
        for literal in moves:
            first[literal] = self._place[next(members(self.reads[literal >> 1] & self._free_bits))]
        return first, {literal: np.array(own) for literal, own in moves.items()}

    def _part_keys(self, lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.uint64], Bools]:
        """Return two [parts, moves]: a hash of the class of each move, and whether it has conditions on the part."""
        keys = np.array([self.keys[own].sum(axis=0, dtype=np.uint64) for own in lists], np.uint64)
        conditional = np.zeros(keys.shape, np.bool_)
        number = {place: part for part, own in enumerate(lists) for place in own}
        first, moves = self._conditions_by_place
        salts = np.random.default_rng(1).integers(1, 1 << 63, len(first), np.uint64)
        for salt, (literal, place) in zip(salts, first.items(), strict=True):
            keys[number[place], moves[literal]] += salt
            conditional[number[place], moves[literal]] = True
        return keys, conditional

    def touched(self, lists: Sequence[Sequence[int]]) -> Bools:
        """Return bool[phases, parts, moves]: whether a move of a phase is of another class than waiting.

        Waiting is the most frequent class of those without conditions on the part; before them come those that seem to
        leave the part as it is.
        """
        keys, conditional = self._part_keys(lists)
        idle = np.array([self.idle[own].all(axis=0) for own in lists], np.bool_) & ~conditional
        touched = np.zeros((len(self.possible), len(lists), len(self.joint)), np.bool_)
        for phase, possible in enumerate(self.possible):
            check()
            own, bound = keys[:, possible], conditional[:, possible]
            touched[phase][:, possible] = bound | (own != _waiting(own, bound, idle[:, possible])[:, None])
        return touched

    def serial(self, groups: Groups) -> Groups:
        """Join groups until each move touches at most one of them."""
        groups = groups.copy()
        while True:
            lists = groups.lists()
            touched = self.touched(lists)
            several = np.argwhere(touched.sum(axis=1) > 1)
            if not len(several):
                return groups
            for phase, move in several.tolist():
                groups.join(lists[part][0] for part in np.flatnonzero(touched[phase, :, move]))

    def parallel(self, groups: Groups) -> Groups | None:
        """Join groups until all combinations of classes are moves; None if that leaves one group, or takes long."""
        groups = groups.copy()
        while True:
            lists = groups.lists()
            if len(lists) > MOST_CHECKED:
                return None
            check()
            keys, _ = self._part_keys(lists)
            clashes = [pair for possible in self.possible for pair in _clashes(keys[:, possible])]
            if not clashes:
                break
            for left, right in clashes:
                groups.join([lists[left][0], lists[right][0]])
        is_product = all(_is_product(keys[:, possible]) for possible in self.possible)
        return groups if len(lists) > 1 and is_product else None

    def parts(self, groups: Groups) -> tuple[GamePart, ...]:
        """Return the part of each group."""
        lists = groups.lists()
        touched = self.touched(lists)
        parts = []
        for number, (own, keys) in enumerate(zip(lists, self._part_keys(lists)[0], strict=True)):
            facts = tuple(self.free[place] for place in own)
            classes = np.unique(keys, return_inverse=True)[1].ravel()
            parts.append(GamePart(facts, packed(self.game, facts), classes, touched[:, number]))
        return tuple(parts)

    def relevant(self) -> Bits:
        """Return the free facts that are not irrelevant."""
        outputs = self.circuit.outputs
        relevant = 0
        for literal in (*outputs["terminal"], *outputs["goal"]):
            relevant |= self.reads[literal >> 1] & self._free_bits
        before = -1
        while relevant != before:
            before = relevant
            for fact in members(before):
                relevant |= self._next_reads(fact)
            if relevant == before:
                relevant |= self._decisive(relevant)
        return relevant

    def _decisive(self, relevant: Bits) -> Bits:
        """Return the facts outside `relevant` on which it may depend whether a class of moves is possible.

        A class is always possible if these facts allow it, provided that one of its moves has no condition on other
        facts, and no condition that another move of the class does not have.
        """
        outside = self._free_bits & ~relevant
        outer = {own for own in frozenset().union(*self.conditions) if self.reads[own >> 1] & outside}
        inner = [all_of - outer for all_of in self.conditions]
        keys = self.keys[self.places(relevant)].sum(axis=0, dtype=np.uint64)
        missing = 0
        for possible in self.possible:
            plain: dict[int, set[frozenset[GateLiteral]]] = {}
            moves = np.flatnonzero(possible).tolist() if outer else []
            for move in moves:
                if len(inner[move]) == len(self.conditions[move]):
                    plain.setdefault(int(keys[move]), set()).add(inner[move])
            for move in moves:
                if not any(own <= inner[move] for own in plain.get(int(keys[move]), ())):
                    for literal in self.conditions[move] - inner[move]:
                        missing |= self.reads[literal >> 1] & outside
        return missing


def _waiting(keys: NDArray[np.uint64], conditional: Bools, idle: Bools) -> NDArray[np.uint64]:
    """Return the class of waiting for each part, if there is one; all arrays are [parts, moves]."""
    waiting: NDArray[np.uint64] = np.sort(keys, axis=1)[:, keys.shape[1] // 2]  # a class with a majority is there
    is_waiting = keys == waiting[:, None]
    doubtful = (2 * is_waiting.sum(axis=1) <= keys.shape[1]) | (is_waiting & ~idle).any(axis=1)
    for part in np.flatnonzero(doubtful & ~conditional.all(axis=1)).tolist():
        which = idle[part] if idle[part].any() else ~conditional[part]
        values, counts = np.unique(keys[part, which], return_counts=True)
        waiting[part] = values[np.argmax(counts)]
    return waiting


def _clashes(keys: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """Yield pairs of parts of whose classes not all pairs occur; keys: uint64[parts, moves]."""
    numbers = [np.unique(own, return_inverse=True)[1].ravel() for own in keys]
    counts = [int(own.max(initial=-1)) + 1 for own in numbers]
    for right in range(len(numbers)):
        for left in range(right):
            pairs = len(np.unique(numbers[left] * counts[right] + numbers[right]))
            if pairs != counts[left] * counts[right]:
                yield left, right


def _is_product(keys: NDArray[np.uint64]) -> bool:
    """Return whether all combinations of the classes occur; keys: uint64[parts, moves]."""
    size = 1
    for own in keys:
        size *= len(np.unique(own))
    return size == len(np.unique(keys, axis=1).T)


def _fact_reads(circuit: Circuit) -> list[Bits]:
    return spread(circuit, {1 + fact: 1 << fact for fact in range(circuit.num_facts)})


def spread(circuit: Circuit, seeds: Mapping[Node, Bits]) -> list[Bits]:
    """Return for each node of a circuit without loops the union of the seeds below it; a seeded node has its own."""
    bits = [seeds.get(node, 0) for node in range(len(circuit.left))]
    for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
        if left >= 0 and node not in seeds:
            bits[node] = bits[left >> 1] | bits[right >> 1]
    return bits


def conjuncts(circuit: Circuit, literal: GateLiteral) -> list[GateLiteral]:
    """Return the literals, no conjunctions themselves, whose conjunction is a literal."""
    literals, todo, seen = list[GateLiteral](), [literal], set[GateLiteral]()
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        if part & 1 or circuit.left[part >> 1] < 0:
            literals.append(part)
        else:
            todo += [circuit.right[part >> 1], circuit.left[part >> 1]]
    return literals


def truth(circuit: Circuit, seeds: Mapping[Node, Bools], length: int) -> dict[Node, Bools]:
    """Return the values of all nodes that read only the seeds, bool[length] each."""
    values: dict[Node, Bools] = {0: np.zeros(length, np.bool_), **seeds}
    for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
        if left >= 0 and left >> 1 in values and right >> 1 in values:
            values[node] = (values[left >> 1] ^ bool(left & 1)) & (values[right >> 1] ^ bool(right & 1))
    return values


def _clock_facts(circuit: Circuit, reads: Sequence[Bits]) -> list[int]:
    """Return the facts that depend on no move, directly or indirectly."""
    actions = range(circuit.num_facts, circuit.num_inputs)
    acted = spread(circuit, {1 + action: 1 for action in actions})
    following = [literal >> 1 for literal in circuit.outputs["next"]]
    clock = _bits(fact for fact in range(circuit.num_facts) if not acted[following[fact]])
    before = 0
    while clock != before:
        before = clock
        clock = _bits(fact for fact in members(before) if not reads[following[fact]] & ~before)
    return list(members(clock))


def _phases(
    game: Game, circuit: Circuit, reads: Sequence[Bits], clock: Collection[int]
) -> tuple[NDArray[np.int32], Bools] | None:
    """Return the joint moves, int32[moves, roles], and bool[phases, moves], those that are possible in each phase.

    None if several roles have a choice in a phase, if there are no moves, or if the clock takes too long.
    """
    course = course_of(game, clock, LONGEST)[0]
    if len(course) == LONGEST:
        return None
    held = unpack_bits(course, circuit.num_facts).astype(np.bool_)
    values = truth(circuit, {1 + fact: held[:, fact] for fact in clock}, len(course))
    going = np.ones(len(course), np.bool_)
    for literal in conjuncts(circuit, circuit.outputs["terminal"][0] ^ 1):
        if literal >> 1 in values:
            going &= values[literal >> 1] ^ bool(literal & 1)
    allowed = np.ones((circuit.num_actions, len(course)), np.bool_)
    for action, literal in enumerate(circuit.outputs["legal"]):
        for condition in conjuncts(circuit, literal):
            if condition >> 1 in values:
                allowed[action] &= values[condition >> 1] ^ bool(condition & 1)
    numbers: dict[tuple[int, ...], int] = {}
    phases = []
    for own in np.unique(allowed[:, going], axis=1).T if going.any() else ():
        joint = _joint_moves(circuit, own)
        if joint is None:
            return None
        phases.append([numbers.setdefault(actions, len(numbers)) for actions in joint])
    if not numbers:
        return None
    possible = np.zeros((len(phases), len(numbers)), np.bool_)
    for phase, moves in enumerate(phases):
        possible[phase, moves] = True
    joint_moves = np.array(list(numbers), np.int32).reshape(-1, game.num_roles)
    return joint_moves, possible[possible.any(axis=1)]


def _joint_moves(circuit: Circuit, allowed: Bools) -> list[tuple[int, ...]] | None:
    """Return the joint moves of allowed actions; None if several roles have a choice."""
    ends = np.cumsum([len(actions) for actions in circuit.actions])
    own = [np.flatnonzero(part) + end - len(part) for part, end in zip(np.split(allowed, ends[:-1]), ends, strict=True)]
    choosing = [role for role, actions in enumerate(own) if len(actions) > 1]
    if len(choosing) > 1:
        return None
    if any(len(actions) == 0 for actions in own):
        return []
    role = choosing[0] if choosing else 0
    fixed = [int(actions[0]) for actions in own]
    return [(*fixed[:role], action, *fixed[role + 1 :]) for action in own[role].tolist()]


def _effect_keys(
    circuit: Circuit, free: Sequence[int], joint: NDArray[np.int32], reads: Sequence[Bits]
) -> NDArray[np.uint64]:
    """Return uint64[free facts, moves], equal for two moves with the same effect on a fact.

    The next value of a fact depends on moves only through nodes that read no facts. A move is known by the values of
    the last such nodes on each path.
    """
    first, ends = circuit.num_facts + 1, np.cumsum([len(actions) for actions in circuit.actions])
    role_of = np.searchsorted(ends, np.arange(circuit.num_actions), side="right")
    seeds = {first + action: joint[:, role_of[action]] == action for action in range(circuit.num_actions)}
    values = truth(circuit, seeds, len(joint))
    following = [circuit.outputs["next"][fact] >> 1 for fact in free]
    asked = set(following)
    for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
        if left >= 0 and node not in values:
            asked |= {left >> 1, right >> 1}
    last = [node for node in sorted(asked & values.keys()) if node and 0 < values[node].sum() < len(joint)]
    below = spread(circuit, {node: 0 for node in values} | {node: 1 << i for i, node in enumerate(last)})
    salts = np.random.default_rng(0).integers(1, 1 << 63, (2, len(free), 1), np.uint64)
    keys = np.zeros((len(free), len(joint)), np.uint64)
    hashed: dict[Bits, NDArray[np.uint64]] = {}
    weights = np.random.default_rng(2).integers(1, 1 << 63, len(last), np.uint64)
    for place, node in enumerate(following):
        bits = below[node]
        if bits not in hashed:
            hashed[bits] = np.zeros(len(joint), np.uint64)
            for i in members(bits):
                hashed[bits] += weights[i] * values[last[i]]
        keys[place] = (
            hashed[bits] * (salts[0, place] | np.uint64(1)) + (hashed[bits] >> np.uint64(32)) * salts[1, place]
        )
    return keys


def _idle(game: Game, joint: NDArray[np.int32]) -> Bools:
    """Return bool[facts, moves]: whether moves leave facts as they are in some states with random facts."""
    assert game.circuit is not None
    drawn = np.random.default_rng(3).random((_TRIED_STATES, game.circuit.num_facts)) < 0.5
    changed = np.zeros((len(joint), game.num_words), np.uint64)
    for state in pack_bits(drawn, game.num_words):
        changed |= game.next(np.repeat(state[None], len(joint), axis=0), joint) ^ state
    return np.asarray(unpack_bits(changed, game.circuit.num_facts).T == 0)


def _bits(numbers: Iterable[int]) -> Bits:
    return sum(1 << number for number in numbers)


# parts as games


@dataclass(frozen=True, eq=False)
class PartGame:
    """A game that consists of some parts of another one, with a goal of its own.

    game   its facts are those of the parts and the clock; its actions are classes of the actions of the whole game
    facts  int64[facts], the bits of its facts in a state of the whole game
    moves  for each of its actions the actions of the whole game with the same effect on these parts, ascending
    """

    game: Game
    facts: NDArray[np.int64]
    moves: tuple[NDArray[np.int32], ...]

    def states(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return what states of the whole game, uint64[n, words], are in this game."""
        bits = unpack_bits(states, int(self.facts.max(initial=0)) + 1)
        return pack_bits(bits[:, self.facts].astype(np.bool_), self.game.num_words)


def part_game(
    whole: Parts, numbers: Sequence[int], goal: Sequence[GateLiteral], ends: Sequence[Sequence[GateLiteral]]
) -> PartGame:
    """Return some parts of a game with one role as a game.

    Args:
        whole: the parts of the game
        numbers: which of them to take
        goal: literals of the circuit that read only these parts and the clock; if all of them hold, the goal is 100,
            else 0
        ends: lists of literals of the same kind; the match is over if all literals of one list hold
    """
    game, native = whole.game, whole.game.native
    assert native is not None
    circuit = native.circuit
    own = [fact for number in numbers for fact in whole.parts[number].facts]
    facts = sorted({*own, *whole.clock})
    inside = sum(1 << fact for fact in facts)
    legal = {
        action: frozenset(c for c in conjuncts(circuit, literal) if not whole.reading[c >> 1] & ~inside)
        for action, literal in enumerate(circuit.outputs["legal"])
    }
    moves: dict[tuple[object, ...], list[int]] = {}
    for number, (action,) in enumerate(whole.joint.tolist()):
        classes = tuple(int(whole.parts[part].classes[number]) for part in numbers)
        moves.setdefault((classes, legal[action]), []).append(action)
    first = [actions[0] for actions in moves.values()]
    new = _restricted(circuit, facts, first, [legal[action] for action in first], goal, ends)
    engine = NativeEngine(native.names, native.roles, new, record_circuit(new))
    own_game = Game(game.rulesheet, f"{game.name}, part", engine)
    return PartGame(own_game, np.array(facts), tuple(np.array(sorted(own), np.int32) for own in moves.values()))


def _restricted(
    circuit: Circuit,
    facts: Sequence[int],
    actions: Sequence[int],
    conditions: Sequence[frozenset[GateLiteral]],
    goal: Sequence[GateLiteral],
    ends: Sequence[Sequence[GateLiteral]],
) -> Circuit:
    """Return the part of a circuit that reads only some facts and actions; the other actions are never made."""
    moves = circuit.actions[0]
    own_facts, initial = [circuit.facts[fact] for fact in facts], [circuit.initial[fact] for fact in facts]
    new = Circuit(own_facts, [[moves[action] for action in actions]], [[0, HIGHEST_GOAL]], initial)
    builder = Builder(new)
    values = {1 + circuit.num_facts + action: FALSE for action in range(circuit.num_actions)}
    values |= {1 + fact: 2 * (1 + place) for place, fact in enumerate(facts)}
    values |= {1 + circuit.num_facts + action: builder.first_action + 2 * i for i, action in enumerate(actions)}
    value = builder.compose(circuit, values)
    reached = builder.all_of(map(value, goal))
    new.outputs = {
        "legal": [builder.all_of(map(value, sorted(own))) for own in conditions],
        "terminal": [builder.sum_of_products(list(map(value, own)) for own in ends)],
        "goal": [reached ^ 1, reached],
        "next": [value(circuit.outputs["next"][fact]) for fact in facts],
    }
    drop_dead(new)
    return new
