"""The two engines behind a Game: both answer for batches of packed states, in the same order of actions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .asp import Limits
from .circuit import Circuit
from .gdl import Rulesheet, Variable
from .interpreter import TapedCode
from .kernels import compiled
from .names import GroundTerm, Names, goal_value
from .planes import words
from .playout import PlayoutRunner, Playouts, Rollouts
from .reasoner import Answer, Facts, Joint, Reasoner
from .relations import variables_of
from .rewrite import rewrite_for_a_state
from .rows import Rows
from .tape import Tapes

States: TypeAlias = NDArray[np.uint64]
Lanes: TypeAlias = NDArray[np.intp]
Progress: TypeAlias = Callable[[int], None]
Item = TypeVar("Item")
NO_GOAL = -1
COMPILED_GATES = 20_000  # for playouts: one or two seconds, once on a machine, for up to twice the speed
REASONED_AT_ONCE = 256  # states in one call of clingo
MOST_ANSWERS = 10_000  # that the reasoner keeps: 8 KB each in chess


@dataclass(frozen=True, slots=True)
class Legal:
    """Legal moves of a batch: of position i and role r `actions[offsets[k]:offsets[k + 1]]` with k = i * roles + r.

    offsets: int64[batch * roles + 1]; actions: int32, in the order of actions; terminal: bool[batch], where the match
    is over, and no moves are.
    """

    offsets: NDArray[np.int64]
    actions: NDArray[np.int32]
    terminal: NDArray[np.bool_]

    def by_role(self, num_roles: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the moves of each (position, role) begin in `actions`, and how many: int64[batch, roles] each."""
        return self.offsets[:-1].reshape(-1, num_roles), np.diff(self.offsets).reshape(-1, num_roles)


class Engine(Protocol):
    """What a Game asks of an engine. States are uint64[batch, num_words] that only the engine reads."""

    names: Names
    roles: list[GroundTerm]
    goal_values: list[list[int]]
    num_words: int
    initial: NDArray[np.uint64]

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]: ...

    def legal(self, states: States) -> Legal: ...

    def next(self, states: States, joint: NDArray[np.int32]) -> States: ...

    def keys(self, states: States) -> NDArray[np.uint64]: ...

    def playouts(self, n: int, seed: int, threads: int | None, progress: Progress | None) -> Playouts: ...

    def rollouts(self, states: States, seed: int, threads: int | None, max_steps: int) -> Rollouts: ...

    def holds(self, states: States, fact: GroundTerm) -> NDArray[np.bool_]: ...

    def facts(self, state: NDArray[np.uint64]) -> list[GroundTerm]: ...

    def pack(self, facts: Iterable[GroundTerm]) -> NDArray[np.uint64]: ...

    def move(self, role: int, action: int) -> GroundTerm: ...

    def action(self, role: int, move: GroundTerm) -> int: ...


def fact_key(fact: GroundTerm) -> int:
    """64 bits that depend on the fact's structure only, not on names; a state's key is the sum over its facts."""
    return int.from_bytes(hashlib.blake2b(repr(fact).encode(), digest_size=8).digest(), "little")


class NativeEngine:
    """Compiled circuits. A state is the bits of its facts, fact i in bit i % 64 of word i // 64."""

    def __init__(self, names: Names, roles: list[GroundTerm], circuit: Circuit, tapes: Tapes) -> None:
        self.names, self.roles, self.circuit = names, roles, circuit
        self.goal_values = circuit.goals
        self.num_words = words(circuit.num_facts)
        self.initial = pack_bits(np.array([circuit.initial]), self.num_words)[0]
        self._code = TapedCode(tapes)
        self._rows = Rows(self._code.address, circuit, tapes.num_planes)
        self.moves = [move for moves in circuit.actions for move in moves]
        self.role_of = np.repeat(np.arange(len(roles)), [len(moves) for moves in circuit.actions])
        self._index = {
            (int(role), move): i for i, (role, move) in enumerate(zip(self.role_of, self.moves, strict=True))
        }
        self._fact_index = {fact: i for i, fact in enumerate(circuit.facts)}
        self._goal_values = np.array([value for values in circuit.goals for value in values], np.int16)
        ends = np.cumsum([len(values) for values in circuit.goals]).tolist()
        self._goal_slices = [slice(end - len(values), end) for end, values in zip(ends, circuit.goals, strict=True)]

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """terminal: bool[batch]; goals: int16[batch, roles], NO_GOAL where not exactly one value holds."""
        return self._rows.ask("terminal", states)[:, 0].astype(np.bool_), self.goals(states)

    def goals(self, states: States) -> NDArray[np.int16]:
        """As `evaluate` gives them."""
        held = unpack_bits(self._rows.ask("goal", states), len(self._goal_values))
        goals = np.full((len(states), len(self.roles)), NO_GOAL, np.int16)
        for role, part in enumerate(self._goal_slices):
            own = held[:, part]
            goals[:, role] = np.where(own.sum(axis=1) == 1, own @ self._goal_values[part], NO_GOAL)
        return goals

    def legal(self, states: States) -> Legal:
        """Legal moves; none in terminal states."""
        return Legal(*self._rows.moves(self._rows.ask("legal", states)))

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """Successors for joint moves int32[batch, roles]; legality is not looked at."""
        return self._rows.ask("next", states, joint)

    @cached_property
    def _byte_keys(self) -> NDArray[np.uint64]:
        return _byte_keys(self.circuit.facts, 8 * self.num_words)

    def keys(self, states: States) -> NDArray[np.uint64]:
        """uint64[batch], see fact_key."""
        rows = np.ascontiguousarray(states).view(np.uint8).reshape(len(states), 8 * self.num_words)
        total: NDArray[np.uint64] = self._byte_keys[np.arange(rows.shape[1]), rows].sum(axis=1, dtype=np.uint64)
        return total

    def holds(self, states: States, fact: GroundTerm) -> NDArray[np.bool_]:
        """bool[batch]: in which states a fact holds."""
        index = self._fact_index.get(fact)
        if index is None:
            return np.zeros(len(states), np.bool_)
        return (states[:, index >> 6] >> np.uint64(index & 63) & np.uint64(1)).astype(np.bool_)

    def facts(self, state: NDArray[np.uint64]) -> list[GroundTerm]:
        """The facts of one state, uint64[words]."""
        return [self.circuit.facts[i] for i in np.flatnonzero(unpack_bits(state[None], self.circuit.num_facts)[0])]

    def pack(self, facts: Iterable[GroundTerm]) -> NDArray[np.uint64]:
        """One state from its facts. Raises KeyError for a fact that no reachable state can hold."""
        bits = np.zeros((1, self.circuit.num_facts), np.bool_)
        bits[0, [self._fact_index[fact] for fact in facts]] = True
        state: NDArray[np.uint64] = pack_bits(bits, self.num_words)[0]
        return state

    @cached_property
    def _playout_runner(self) -> PlayoutRunner:
        code = compiled(self.circuit) if self.circuit.num_gates <= COMPILED_GATES else self._code
        return PlayoutRunner(code.address, self.circuit, code.num_planes)

    def playouts(self, n: int, seed: int, threads: int | None, progress: Progress | None) -> Playouts:
        """Random matches in planes."""
        return self._playout_runner.playouts(n, seed, threads, progress)

    def rollouts(self, states: States, seed: int, threads: int | None, max_steps: int) -> Rollouts:
        """Random matches in planes, one from each state."""
        self._rows.check(states)
        return self._playout_runner.rollouts(states, seed, threads, max_steps)

    def move(self, role: int, action: int) -> GroundTerm:
        """The move that an action's index stands for."""
        return self.moves[action]

    def action(self, role: int, move: GroundTerm) -> int:
        """The index of a move. Raises KeyError for a move that is never legal."""
        return self._index[role, move]


def pack_bits(bits: NDArray[np.bool_], num_words: int) -> States:
    """bool[batch, n] to uint64[batch, num_words], bit i in bit i % 64 of word i // 64."""
    padded = np.zeros((len(bits), 64 * num_words), np.bool_)
    padded[:, : bits.shape[1]] = bits
    packed: States = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    return packed


def unpack_bits(rows: States, count: int) -> NDArray[np.uint8]:
    """The first `count` bits of each row, uint8[batch, count] of 0 and 1."""
    as_bytes = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), 8 * rows.shape[1])
    return np.unpackbits(as_bytes, axis=1, count=count, bitorder="little")


def _byte_keys(facts: Sequence[GroundTerm], num_bytes: int) -> NDArray[np.uint64]:
    """uint64[bytes, 256]: the sum of the keys of the facts in each possible byte of a state."""
    table = np.zeros((num_bytes, 256), np.uint64)
    values = np.arange(256)
    for index, fact in enumerate(facts):
        held = (values >> (index & 7)) & 1 == 1
        table[index >> 3, held] += np.uint64(fact_key(fact))
    return table


class _Numbered(Generic[Item]):
    """Numbers things from 0, in the order in which they are first met."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._numbers: dict[Item, int] = {}

    def number(self, item: Item) -> int:
        """The item's number, a new one for a new item."""
        number = self._numbers.setdefault(item, len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number


def possible_goals(sheet: Rulesheet, names: Names, roles: Sequence[GroundTerm]) -> list[set[int]]:
    """For each role the values in heads of goal rules; where one is a variable, every value 0 .. 100 is possible.

    The native engine knows better, from the ground rules: it lists only what some state may give.
    """
    values: list[set[int]] = [set() for _ in roles]
    for role, term in (rule.head.args for rule in sheet.rules if rule.head.name == "goal"):
        value = goal_value(str(term))
        found = set(range(101)) if isinstance(term, Variable) else set() if value is None else {value}
        for known, of in zip(values, roles, strict=True):
            if variables_of(role) or names.ground_term(role) == of:
                known |= found
    return values


class ReasonerEngine:
    """The plain reasoner. A state is one word, the number under which its set of facts was first met.

    The sets are kept as long as the engine: about 10 KB a state in chess.
    """

    def __init__(
        self, sheet: Rulesheet, limits: Limits | None = None, rewrite: bool = True, names: Names | None = None
    ) -> None:
        self.reasoner = Reasoner(rewrite_for_a_state(sheet) if rewrite else sheet, limits, names or Names(sheet))
        self.names, self.roles = self.reasoner.names, self.reasoner.roles
        self.goal_values = [sorted(values) for values in possible_goals(sheet, self.names, self.roles)]
        self.num_words = 1
        self._sets: _Numbered[Facts] = _Numbered()
        self._facts: dict[GroundTerm, GroundTerm] = {}
        self._moves: _Numbered[GroundTerm] = _Numbered()
        self._known: dict[int, Answer] = {}
        self.initial = self.pack(self.reasoner.initial)

    def _states(self, states: States) -> list[Facts]:
        return [self._sets.items[number] for number in states[:, 0].tolist()]

    def _answers(self, states: States) -> list[Answer]:
        """Asks the rules once about each state, REASONED_AT_ONCE in one call."""
        numbers = states[:, 0].tolist()
        if len(self._known) > MOST_ANSWERS:
            self._known.clear()
        new = [number for number in dict.fromkeys(numbers) if number not in self._known]
        for start in range(0, len(new), REASONED_AT_ONCE):
            part = new[start : start + REASONED_AT_ONCE]
            self._known.update(
                zip(part, self.reasoner.answers([self._sets.items[number] for number in part]), strict=True)
            )
        return [self._known[number] for number in numbers]

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """See NativeEngine.evaluate."""
        answers = self._answers(states)
        goals = [[values[0] if len(values) == 1 else NO_GOAL for values in answer.goals.values()] for answer in answers]
        terminal = np.array([answer.terminal for answer in answers], np.bool_)
        return terminal, np.array(goals, np.int16).reshape(len(states), len(self.roles))

    def legal(self, states: States) -> Legal:
        """See NativeEngine.legal."""
        answers = self._answers(states)
        moves = [[] if answer.terminal else list_ for answer in answers for list_ in answer.legal.values()]
        offsets = np.zeros(len(moves) + 1, np.int64)
        np.cumsum([len(list_) for list_ in moves], out=offsets[1:])
        actions = np.array([self._moves.number(move) for list_ in moves for move in list_], np.int32)
        return Legal(offsets, actions, np.array([answer.terminal for answer in answers], np.bool_))

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """See NativeEngine.next."""
        if not len(states):
            return np.zeros((0, 1), np.uint64)
        joint_moves: list[Joint] = [
            {role: self._moves.items[action] for role, action in zip(self.roles, actions, strict=True)}
            for actions in joint.tolist()
        ]
        sets = self._states(states)
        numbers: list[list[int]] = []
        for start in range(0, len(sets), REASONED_AT_ONCE):
            part = slice(start, start + REASONED_AT_ONCE)
            numbers += [[self._number(facts)] for facts in self.reasoner.successors(sets[part], joint_moves[part])]
        return np.array(numbers, np.uint64)

    def keys(self, states: States) -> NDArray[np.uint64]:
        """See NativeEngine.keys."""
        sums = [sum(map(fact_key, facts)) % 2**64 for facts in self._states(states)]
        return np.array(sums, np.uint64)

    def holds(self, states: States, fact: GroundTerm) -> NDArray[np.bool_]:
        """bool[batch]: in which states a fact holds."""
        return np.array([fact in facts for facts in self._states(states)], np.bool_)

    def facts(self, state: NDArray[np.uint64]) -> list[GroundTerm]:
        """The facts of one state, uint64[1]."""
        return sorted(self._sets.items[int(state[0])])

    def pack(self, facts: Iterable[GroundTerm]) -> NDArray[np.uint64]:
        """One state from its facts."""
        return np.array([self._number(facts)], np.uint64)

    def _number(self, facts: Iterable[GroundTerm]) -> int:
        """The number of a set of facts; of equal facts only one is kept."""
        known = self._facts.setdefault
        return self._sets.number(frozenset(known(fact, fact) for fact in facts))

    def playouts(self, n: int, seed: int, threads: int | None, progress: Progress | None) -> Playouts:
        """Random matches, step by step."""
        states = np.repeat(self.initial[None], n, axis=0)
        return play_stepwise(self, states, seed, 0, lambda going, _: progress and progress(n - len(going))).counted()

    def rollouts(self, states: States, seed: int, threads: int | None, max_steps: int) -> Rollouts:
        """Random matches, step by step, one from each state."""
        played = play_stepwise(self, states, seed, max_steps, lambda going, _: None)
        return Rollouts(played.goals, played.steps)

    def move(self, role: int, action: int) -> GroundTerm:
        """The move that an action's index stands for."""
        return self._moves.items[action]

    def action(self, role: int, move: GroundTerm) -> int:
        """The index of a move."""
        return self._moves.number(move)


@dataclass(frozen=True, slots=True)
class Played:
    """What became of random matches: goals int16[n, roles], steps int32[n], stuck bool[n]."""

    goals: NDArray[np.int16]
    steps: NDArray[np.int32]
    stuck: NDArray[np.bool_]

    @classmethod
    def none(cls, n: int, num_roles: int) -> Played:
        """Before they begin."""
        return cls(np.full((n, num_roles), NO_GOAL, np.int16), np.zeros(n, np.int32), np.zeros(n, np.bool_))

    def put(self, places: Lanes, others: Played, their_places: Lanes) -> None:
        """Takes what became of others in the place of some of these."""
        self.goals[places] = others.goals[their_places]
        self.steps[places] = others.steps[their_places]
        self.stuck[places] = others.stuck[their_places]

    def counted(self) -> Playouts:
        """All of them together."""
        counts = [Counter(None if goal == NO_GOAL else goal for goal in column) for column in self.goals.T.tolist()]
        return Playouts(len(self.steps), int(self.steps.sum()), int(self.stuck.sum()), tuple(map(dict, counts)))


def play_stepwise(
    engine: Engine, states: States, seed: int | Sequence[int], max_steps: int, see: Callable[[Lanes, States], object]
) -> Played:
    """One random match from each state, all of them in lockstep: an engine's answer to one step of all at once.

    max_steps: 0 for no limit. `see` is told, after each step, which matches were in which states.
    """
    rng = np.random.default_rng(seed)
    played = Played.none(len(states), len(engine.roles))
    matches = np.arange(len(states))
    while len(matches):
        legal = engine.legal(states)
        terminal = legal.terminal
        starts, counts = legal.by_role(len(engine.roles))
        stuck = ~terminal & (counts == 0).any(axis=1)
        if terminal.any():
            played.goals[matches[terminal]] = engine.evaluate(states[terminal])[1]
        played.stuck[matches[stuck]] = True
        going = ~terminal & ~stuck
        if max_steps:
            going &= played.steps[matches] < max_steps
        drawn = starts + (rng.random(counts.shape) * counts).astype(np.int64)
        states = engine.next(states[going], legal.actions[drawn[going]])
        matches = matches[going]
        played.steps[matches] += 1
        see(matches, states)
    return played
