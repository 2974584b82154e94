"""Engines of a Game: native (compiled circuit), reasoner (clingo), bounded (both); random play step by step.

All engines take batches of packed states, uint64[batch, num_words]. All engines list actions in the same order.

- `NativeEngine` evaluates the circuit for many states at once. A state is a row of bits, one bit for each fact.
- `ReasonerEngine` runs clingo. It numbers all sets of facts that it has seen. A state is the number of its set.
- `BoundedEngine` uses both engines for a game that is compiled within the bounds of `base` and `input`. If the circuit
  is exact for a state, the state is its native row and a last word 0. The row of any other state is zeros, and its
  last word is the reasoner's number plus 1. The facts alone decide between the two forms, so states with equal facts
  have equal rows. The indices of native actions come first, then the indices of the reasoner's actions.

The rewritten rules, and so the circuit, rely on some properties of reachable states: see `Promises`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..circuit.aig import Circuit
from ..circuit.native import LoadedCode, TapedCode, compiled
from ..circuit.playout import PlayoutRunner, Playouts, Rollouts, informed_playouts
from ..circuit.tape import Tapes, words
from ..circuit.transpose import Rows
from ..errors import GDLSemanticError
from ..gdl.clauses import clauses
from ..gdl.limits import Limits
from ..gdl.syntax import Constant, Rulesheet, Term, Variable, named_terms, variables_of
from ..ground.clingo import GroundTerm, Names, goal_value
from ..ground.domains import Domains, statics
from ..ground.invariants import persistent
from ..ground.optimize import goal_outside, rewrite_for_a_state
from .reasoner import Facts, Joint, Reasoner, StateAnswer

States: TypeAlias = NDArray[np.uint64]
Lanes: TypeAlias = NDArray[np.intp]
Progress: TypeAlias = Callable[[int], None]
Item = TypeVar("Item")
NO_GOAL, HIGHEST_GOAL = -1, 100  # by the definition of GDL; engines count up to `ground.clingo.MAX_GOAL`
MOST_JOINT = 10**18  # larger numbers of joint moves are not told apart
# Playouts use compiled gates for circuits with at most this number of gates. Compiled gates are up to twice as fast.
# Their compilation takes 1-2 s, once per machine.
COMPILED_GATES = 20_000
MOST_ANSWERS = 10_000  # maximum number of the reasoner's answers in memory; an answer takes 8 KB in chess
MOST_TRIED = 1024  # rejection sampling fills a batch with repeated tries up to this number of matches


@dataclass(frozen=True, slots=True)
class Legal:
    """Legal moves of a batch of positions.

    The moves of role r in position i are `actions[offsets[k]:offsets[k + 1]]` with k = i * roles + r. Terminal
    positions have no moves.

    offsets: int64[batch * roles + 1].
    actions: int32; the moves of a role in a position come in the order that all engines share.
    terminal: bool[batch].
    """

    offsets: NDArray[np.int64]
    actions: NDArray[np.int32]
    terminal: NDArray[np.bool_]

    def by_role(self, num_roles: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return two int64[batch, roles]: the start of the moves in `actions`, and the number of moves."""
        return self.offsets[:-1].reshape(-1, num_roles), np.diff(self.offsets).reshape(-1, num_roles)

    def num_joint(self, num_roles: int) -> NDArray[np.int64]:
        """Return the number of joint moves of each position, int64[batch]; MOST_JOINT if there are more."""
        counts = self.by_role(num_roles)[1]
        with np.errstate(over="ignore"):  # 2,000 roles have more joint moves than a float can count
            joint = np.minimum(np.maximum(counts, 1).prod(axis=1, dtype=np.float64), MOST_JOINT)
        return np.where((counts == 0).any(axis=1), 0, joint).astype(np.int64)

    def joint_moves(self, role: int, num_roles: int) -> NDArray[np.int32]:
        """Return a joint move for each move of a role in the first state, int32[moves, roles].

        The other roles make their first moves.
        """
        starts, counts = self.by_role(num_roles)
        joint = np.repeat(self.actions[starts[:1]], counts[0, role], axis=0)
        joint[:, role] = self.actions[starts[0, role] : starts[0, role] + counts[0, role]]
        return joint


def random_moves(starts: NDArray[np.int64], counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the index in `Legal.actions` of a random move for each role and position; see `Legal.by_role`."""
    return starts + (rng.random(counts.shape) * counts).astype(np.int64)


def fact_key(fact: GroundTerm) -> int:
    """Return a 64-bit hash of a numbered fact; the key of a state is the sum over its facts."""
    return int.from_bytes(hashlib.blake2b(repr(fact).encode(), digest_size=8).digest(), "little")


class NativeEngine:
    """Engine that evaluates a compiled circuit. Fact i holds in a state if bit i % 64 of word i // 64 is 1."""

    def __init__(self, names: Names, roles: list[GroundTerm], circuit: Circuit, tapes: Tapes) -> None:
        self.names, self.roles, self.circuit = names, roles, circuit
        self.goal_values = circuit.goals
        self.num_words = words(circuit.num_facts)
        self.initial = pack_bits(np.array([circuit.initial]), self.num_words)[0]
        self._code = TapedCode(tapes)
        self.rows = Rows(self._code.address, circuit, tapes.num_planes)
        self.moves = [move for moves in circuit.actions for move in moves]
        self.role_of = np.repeat(np.arange(len(roles)), [len(moves) for moves in circuit.actions])
        own_moves = zip(self.role_of.tolist(), self.moves, strict=True)
        self._index = {own_move: action for action, own_move in enumerate(own_moves)}
        self._fact_index = {fact: i for i, fact in enumerate(circuit.facts)}
        self._goal_values = np.array([value for values in circuit.goals for value in values], np.int16)
        ends = np.cumsum([len(values) for values in circuit.goals]).tolist()
        self._goal_slices = [slice(end - len(values), end) for end, values in zip(ends, circuit.goals, strict=True)]

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """Return terminal, bool[batch], and goals, int16[batch, roles].

        A goal is NO_GOAL if the rules give the role no goal value or several goal values.
        """
        return self.terminal(states), self.goals(states)

    def terminal(self, states: States) -> NDArray[np.bool_]:
        """Return only which states are terminal; see `evaluate`."""
        return self.rows.ask("terminal", states)[:, 0].astype(np.bool_)

    def goals(self, states: States) -> NDArray[np.int16]:
        """Return only the goals; see `evaluate`."""
        held = unpack_bits(self.rows.ask("goal", states), len(self._goal_values))
        goals = np.full((len(states), len(self.roles)), NO_GOAL, np.int16)
        for role, part in enumerate(self._goal_slices):
            own = held[:, part]
            goals[:, role] = np.where(own.sum(axis=1) == 1, own @ self._goal_values[part], NO_GOAL)
        return goals

    def legal(self, states: States) -> Legal:
        """Return the legal moves; none in terminal states."""
        return Legal(*self.rows.moves(self.rows.ask("legal", states)))

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """Return the states after joint moves, int32[batch, roles]. The moves must be legal; this is not checked."""
        return self.rows.ask("next", states, joint)

    @cached_property
    def _byte_keys(self) -> NDArray[np.uint64]:
        """Sum of the fact keys for each byte of a state and each value of that byte, uint64[bytes, 256]."""
        table = np.zeros((8 * self.num_words, 256), np.uint64)
        values = np.arange(256)
        for index, fact in enumerate(self.circuit.facts):
            table[index >> 3, (values >> (index & 7)) & 1 == 1] += np.uint64(fact_key(fact))
        return table

    def keys(self, states: States) -> NDArray[np.uint64]:
        """Return the keys of states, uint64[batch]; see `fact_key`."""
        rows = np.ascontiguousarray(states).view(np.uint8).reshape(len(states), 8 * self.num_words)
        total: NDArray[np.uint64] = self._byte_keys[np.arange(rows.shape[1]), rows].sum(axis=1, dtype=np.uint64)
        return total

    def holds(self, states: States, fact: GroundTerm) -> NDArray[np.bool_]:
        """Return bool[batch]: whether a fact holds in each state."""
        index = self._fact_index.get(fact)
        if index is None:
            return np.zeros(len(states), np.bool_)
        return (states[:, index >> 6] >> np.uint64(index & 63) & np.uint64(1)).astype(np.bool_)

    def facts(self, state: NDArray[np.uint64]) -> list[GroundTerm]:
        """Return the facts of one state, uint64[words]."""
        return [self.circuit.facts[i] for i in np.flatnonzero(unpack_bits(state[None], self.circuit.num_facts)[0])]

    def pack(self, facts: Iterable[GroundTerm]) -> NDArray[np.uint64]:
        """Return the state with these facts, uint64[words]. Raises KeyError for a fact that is not in the circuit."""
        bits = np.zeros((1, self.circuit.num_facts), np.bool_)
        bits[0, [self._fact_index[fact] for fact in facts]] = True
        return pack_bits(bits, self.num_words).reshape(-1)

    @cached_property
    def fast_code(self) -> LoadedCode | TapedCode:
        """The functions of the circuit: as compiled gates if they are not too many, else as tapes."""
        return compiled(self.circuit) if self.circuit.num_gates <= COMPILED_GATES else self._code

    @cached_property
    def playout_runner(self) -> PlayoutRunner:
        return PlayoutRunner(self.fast_code.address, self.circuit, self.fast_code.num_planes)

    def fact_number(self, fact: GroundTerm) -> int | None:
        """Return the number of a fact in states; None if no state has it."""
        return self._fact_index.get(fact)

    def informed_runner(self, turns: Sequence[GroundTerm], idle: Sequence[int]) -> PlayoutRunner | None:
        """Return the player of informed playouts, see `informed_playouts`; None where there are none.

        A state is marked by the bit after those of its facts, in one more word if they fill theirs.
        """
        circuit = informed_playouts(self.circuit, [self._fact_index[fact] for fact in turns], idle)
        if circuit is None:
            return None
        code = compiled(circuit)
        return PlayoutRunner(code.address, circuit, code.num_planes)

    def playouts(self, n: int, seed: int, threads: int | None, progress: Progress | None) -> Playouts:
        """Play n random matches from the first state, in batches of 512."""
        return self.playout_runner.playouts(n, seed, threads, progress)

    def rollouts(self, states: States, seed: int, threads: int | None, max_steps: int) -> Rollouts:
        """Play one random match from each state, in batches of 512."""
        self.rows.check(states)
        return self.playout_runner.rollouts(states, seed, threads, max_steps)

    def move(self, role: int, action: int) -> GroundTerm:
        """Return the move of an action index."""
        return self.moves[action]

    def action(self, role: int, move: GroundTerm) -> int:
        """Return the action index of a move. Raises KeyError for a move that is never legal."""
        return self._index[role, move]


def pack_bits(bits: NDArray[np.bool_], num_words: int) -> States:
    """Pack bool[batch, n] into uint64[batch, num_words], bit i into bit i % 64 of word i // 64."""
    padded = np.zeros((len(bits), 64 * num_words), np.bool_)
    padded[:, : bits.shape[1]] = bits
    packed: States = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    return packed


def unpack_bits(rows: States, count: int) -> NDArray[np.uint8]:
    """Return the first `count` bits of each row, uint8[batch, count] of 0 and 1."""
    as_bytes = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), 8 * rows.shape[1])
    return np.unpackbits(as_bytes, axis=1, count=count, bitorder="little")


class _Numbered(Generic[Item]):
    """Items numbered from 0 in the order of their first use."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._numbers: dict[Item, int] = {}

    def number(self, item: Item) -> int:
        """Return the number of an item. A new item gets a new number."""
        number = self._numbers.setdefault(item, len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number


def possible_goals(sheet: Rulesheet, names: Names, roles: Sequence[GroundTerm]) -> list[set[int]]:
    """Return the possible goals of each role: the values in the heads of its goal rules.

    The native engine may list fewer goals: only the values that the ground program can derive.
    """
    possible: list[set[int]] = [set() for _ in roles]
    for head_role, texts in _goal_heads(sheet):
        values = {value for text in texts if (value := goal_value(text)) is not None}
        for own, role in zip(possible, roles, strict=True):
            if variables_of(head_role) or names.ground_term(head_role) == role:
                own.update(values)
    return possible


def _goal_heads(sheet: Rulesheet) -> Iterator[tuple[Term, Iterable[str]]]:
    """Yield the role and the values of each goal rule.

    A variable as the value stands for its domain in this rule. If the domain has no bounds, it stands for all numbers
    of the rules that may be goals: rules derive no others. Higher ones are counts of something else.
    """
    heads = [rule.head.args for rule in sheet.rules if rule.head.name == "goal"]
    if not any(isinstance(value, Variable) for _, value in heads):
        yield from ((role, [str(value)]) for role, value in heads)
        return
    constants = {term.name for rule in sheet.rules for term in named_terms(rule) if isinstance(term, Constant)}
    written = constants.intersection(map(str, range(HIGHEST_GOAL + 1)))
    rules = clauses(sheet)
    domains = Domains(rules, statics(rules))
    for rule in rules:
        variables = domains.variables(rule.positive) if rule.head.name == "goal" else None
        if variables is not None:  # otherwise the conditions of the rule never hold
            role, value = rule.head.args
            if isinstance(value, Variable):
                terms = variables[value.name]
                yield role, written if terms.any else terms.constants
            else:
                yield role, [str(value)]


class ReasonerEngine:
    """Engine that runs the plain reasoner. A state is one word: the number of its set of facts.

    The engine keeps all sets of facts in memory, about 10 KB per state in chess. `NativeEngine` documents the methods.
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
        self._known: dict[int, StateAnswer] = {}
        self.initial = self.pack(self.reasoner.initial)

    def _states(self, states: States) -> list[Facts]:
        return [self._sets.items[number] for number in states[:, 0].tolist()]

    def _answers(self, states: States) -> list[StateAnswer]:
        """Return the answer of the rules for each state. Answers for recent states are kept in memory."""
        numbers = states[:, 0].tolist()
        if len(self._known) > MOST_ANSWERS:
            self._known.clear()
        new = [number for number in dict.fromkeys(numbers) if number not in self._known]
        answers = self.reasoner.answers(self._sets.items[number] for number in new)
        self._known.update(zip(new, answers, strict=True))
        return [self._known[number] for number in numbers]

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """See NativeEngine.evaluate."""
        answers = self._answers(states)
        goals = [[values[0] if len(values) == 1 else NO_GOAL for values in answer.goals.values()] for answer in answers]
        terminal = np.array([answer.terminal for answer in answers], np.bool_)
        return terminal, np.array(goals, np.int16).reshape(len(states), len(self.roles))

    def terminal(self, states: States) -> NDArray[np.bool_]:
        """See NativeEngine.terminal."""
        return np.array([answer.terminal for answer in self._answers(states)], np.bool_)

    def legal(self, states: States) -> Legal:
        """See NativeEngine.legal."""
        answers = self._answers(states)
        numbers = states[:, 0].tolist()
        different = dict(zip(numbers, answers, strict=True))
        actions_of = {number: self._actions(answer) for number, answer in different.items()}
        legal = [actions for number in numbers for actions in actions_of[number]]
        offsets = np.cumsum([0, *map(len, legal)], dtype=np.int64)
        actions = np.array(list(chain.from_iterable(legal)), np.int32)
        return Legal(offsets, actions, np.array([answer.terminal for answer in answers], np.bool_))

    def _actions(self, answer: StateAnswer) -> list[list[int]]:
        """Return the action indices of the legal moves of each role; none in a terminal state."""
        return [[] if answer.terminal else list(map(self._moves.number, moves)) for moves in answer.legal.values()]

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """See NativeEngine.next. Equal pairs of state and joint move, as at the start of random matches, count once."""
        pairs = list(zip(states[:, 0].tolist(), map(tuple, joint.tolist()), strict=True))
        after = dict.fromkeys(pairs, 0)
        joint_moves: Iterator[Joint] = (
            {role: self._moves.items[action] for role, action in zip(self.roles, actions, strict=True)}
            for _, actions in after
        )
        successors = self.reasoner.successors((self._sets.items[number] for number, _ in after), joint_moves)
        after = dict(zip(after, map(self._number, successors), strict=True))
        return np.array([after[pair] for pair in pairs], np.uint64).reshape(-1, 1)

    def try_first_ply(self) -> None:
        """Evaluate the first state and one joint move. Raise GroundingError if this exceeds the limits."""
        legal = self.legal(self.initial[None])
        starts, counts = legal.by_role(len(self.roles))
        if counts.min(initial=1) > 0:
            self.next(self.initial[None], legal.actions[starts])

    def keys(self, states: States) -> NDArray[np.uint64]:
        """See NativeEngine.keys."""
        return np.array([sum(map(fact_key, facts)) % 2**64 for facts in self._states(states)], np.uint64)

    def holds(self, states: States, fact: GroundTerm) -> NDArray[np.bool_]:
        """Return bool[batch]: whether a fact holds in each state."""
        return np.array([fact in facts for facts in self._states(states)], np.bool_)

    def facts(self, state: NDArray[np.uint64]) -> list[GroundTerm]:
        """Return the facts of one state, uint64[1], sorted."""
        return sorted(self._sets.items[int(state[0])])

    def pack(self, facts: Iterable[GroundTerm]) -> NDArray[np.uint64]:
        """Return the state with these facts, uint64[1]."""
        return np.array([self._number(facts)], np.uint64)

    def _number(self, facts: Iterable[GroundTerm]) -> int:
        """Return the number of a set of facts. Equal facts are stored as one object, to save memory."""
        shared = self._facts.setdefault
        return self._sets.number(frozenset(shared(fact, fact) for fact in facts))

    def playouts(self, n: int, seed: int, threads: int | None, progress: Progress | None) -> Playouts:
        """Play n random matches from the first state."""
        states = np.repeat(self.initial[None], n, axis=0)
        return play_stepwise(self, states, seed, 0, lambda going, _: progress and progress(n - len(going))).counted()

    def rollouts(self, states: States, seed: int, threads: int | None, max_steps: int) -> Rollouts:
        """Play one random match from each state."""
        return play_stepwise(self, states, seed, max_steps, lambda *_: None)

    def move(self, role: int, action: int) -> GroundTerm:
        """Return the move of an action index."""
        return self._moves.items[action]

    def action(self, role: int, move: GroundTerm) -> int:
        """Return the action index of a move. A new move gets a new index."""
        return self._moves.number(move)


@dataclass(frozen=True, slots=True)
class PlayedOut(Rollouts):
    """Outcomes of random matches played step by step.

    stuck: bool[n], the matches that ended in a state that is not terminal, because a role had no legal move.
    """

    stuck: NDArray[np.bool_]

    @classmethod
    def none(cls, n: int, num_roles: int) -> PlayedOut:
        """Return outcomes of n matches that have not begun."""
        return cls(np.full((n, num_roles), NO_GOAL, np.int16), np.zeros(n, np.int32), np.zeros(n, np.bool_))

    def put(self, indices: Lanes, source: PlayedOut, source_indices: Lanes) -> None:
        """Copy the outcomes of `source` at `source_indices` to `indices` of this object."""
        self.goals[indices] = source.goals[source_indices]
        self.steps[indices] = source.steps[source_indices]
        self.stuck[indices] = source.stuck[source_indices]

    def counted(self) -> Playouts:
        """Return the counts of steps, stuck matches and goals over all matches."""
        counts = [Counter(None if goal == NO_GOAL else goal for goal in column) for column in self.goals.T.tolist()]
        return Playouts(len(self.steps), int(self.steps.sum()), int(self.stuck.sum()), tuple(map(dict, counts)))


def play_stepwise(
    engine: Engine, states: States, seed: int | Sequence[int], max_steps: int, see: Callable[[Lanes, States], object]
) -> PlayedOut:
    """Play one random match from each state. All matches advance together, one step at a time.

    max_steps: the maximum number of steps of a match; 0 for no limit.
    see: a function that is called after each step, as `see(matches, states)`, with the indices and the new states of
        the matches that took the step.
    """
    rng = np.random.default_rng(seed)
    played = PlayedOut.none(len(states), len(engine.roles))
    matches = np.arange(len(states))
    while len(matches):
        legal = engine.legal(states)
        starts, counts = legal.by_role(len(engine.roles))
        if legal.terminal.any():
            played.goals[matches[legal.terminal]] = engine.evaluate(states[legal.terminal])[1]
        going = (counts > 0).all(axis=1) & ~legal.terminal
        played.stuck[matches] = ~going & ~legal.terminal
        if max_steps:
            going &= played.steps[matches] < max_steps
        states = engine.next(states[going], legal.actions[random_moves(starts, counts, rng)[going]])
        matches = matches[going]
        played.steps[matches] += 1
        see(matches, states)
    return played


class Promises:
    """Properties of reachable states on which a circuit compiled from rewritten rules relies.

    The persistent facts are those of the first state. At most one fact of each list in `circuit.unique` holds. All
    reachable states have these properties, but a user can give facts that break them.
    """

    def __init__(self, sheet: Rulesheet, names: Names, circuit: Circuit) -> None:
        self._text = names.text
        self._shapes = {(names.numbers[name], arity) for name, arity in persistent(clauses(sheet))}
        first = (fact for fact, holds in zip(circuit.facts, circuit.initial, strict=True) if holds)
        self._lasting = frozenset(filter(self._is_lasting, first))
        self._unique = circuit.unique

    def _is_lasting(self, fact: GroundTerm) -> bool:
        """Return whether facts with this name and number of arguments never change."""
        return (fact[0], len(fact[1])) in self._shapes

    def hold(self, facts: Collection[GroundTerm]) -> bool:
        """Return whether a state with these facts has the properties."""
        return next(self.errors(facts, "the game"), None) is None

    def errors(self, facts: Collection[GroundTerm], game: str) -> Iterator[GDLSemanticError]:
        """Yield an error for each property that a state with these facts breaks.

        game: the name of the game for the messages.
        """
        for fact in sorted(self._lasting.symmetric_difference(filter(self._is_lasting, facts))):
            yield GDLSemanticError(
                f"expected the facts that never change in {game} to be as in the initial state, got a difference in "
                f"{self._text(fact)}",
                remedy='take these facts from game.start().facts, or load the game with engine="reasoner"',
            )
        for unique in self._unique:
            together = sorted(set(facts).intersection(unique))[:2]
            if len(together) == 2:
                yield GDLSemanticError(
                    f"expected at most one of these facts, because they exclude each other in {game}, got "
                    f"{' and '.join(map(self._text, together))}",
                    remedy='leave out all but one, or load the game with engine="reasoner"',
                )


class BoundedEngine:
    """Engine with a native engine for states within the bounds of a sheet, and the reasoner for all other states.

    The docstring of the module describes the states. `NativeEngine` documents the methods.

    native: the engine compiled from the bounded sheet.
    reasoner: a function that makes the reasoner of the whole sheet, with the names of the native engine. It is called
        when the reasoner is first needed.
    """

    def __init__(self, sheet: Rulesheet, native: NativeEngine, reasoner: Callable[[], ReasonerEngine]) -> None:
        self.names, self.roles, self.circuit = native.names, native.roles, native.circuit
        self._native, self._make_reasoner = native, reasoner
        goal = goal_outside(sheet)
        assert goal is not None  # otherwise the sheet has no bounded rules
        self._goal_outside = goal
        goals = zip(possible_goals(sheet, self.names, self.roles), native.goal_values, strict=True)
        self.goal_values = [sorted(possible.union(own) - {self._goal_outside}) for possible, own in goals]
        self.num_words = native.num_words + 1
        self._promises = Promises(sheet, native.names, native.circuit)
        self._known_facts = frozenset(native.circuit.facts)
        self._num_actions = len(native.moves)
        self.initial = self.pack(native.facts(native.initial))

    @cached_property
    def _reasoner(self) -> ReasonerEngine:
        return self._make_reasoner()

    @cached_property
    def _reasoned_actions(self) -> NDArray[np.int32]:
        """Action index of the reasoner for each native action, int32[native actions]."""
        return np.array([self._reasoner.action(0, move) for move in self._native.moves], np.int32)

    def pack(self, facts: Iterable[GroundTerm]) -> NDArray[np.uint64]:
        """Return the state with these facts, uint64[num_words]."""
        return self._rows([frozenset(facts)]).reshape(-1)

    def facts(self, state: NDArray[np.uint64]) -> list[GroundTerm]:
        """Return the facts of one state, uint64[num_words]."""
        return self._reasoner.facts(state[-1:] - np.uint64(1)) if state[-1] else self._native.facts(state[:-1])

    def _rows(self, facts_of: Sequence[Collection[GroundTerm]]) -> States:
        """Return the states with these sets of facts."""
        rows = np.zeros((len(facts_of), self.num_words), np.uint64)
        for lane, facts in enumerate(facts_of):
            if self._known_facts.issuperset(facts) and self._promises.hold(facts):
                rows[lane, :-1] = self._native.pack(facts)
            else:
                rows[lane, -1] = self._reasoned_word(facts)
        native = np.flatnonzero(rows[:, -1] == 0)
        for lane in native[self._are_outside(rows[native, :-1])].tolist():
            rows[lane, :-1], rows[lane, -1] = 0, self._reasoned_word(facts_of[lane])
        return rows

    def _reasoned_word(self, facts: Iterable[GroundTerm]) -> int:
        return int(self._reasoner.pack(facts)[0]) + 1

    def _are_outside(self, rows: States) -> NDArray[np.bool_]:
        """Return bool[batch]: whether each row of the native engine is outside the bounds."""
        outside: NDArray[np.bool_] = self._native.goals(rows)[:, 0] == self._goal_outside
        return outside

    def _parts(self, states: States) -> Iterator[tuple[Lanes, Engine, States]]:
        """Yield each engine, the indices of its states in the batch, and these states in the form of that engine."""
        is_native = states[:, -1] == 0
        if is_native.all():
            yield np.arange(len(states)), self._native, states[:, :-1]
            return
        native, reasoned = np.flatnonzero(is_native), np.flatnonzero(~is_native)
        yield native, self._native, states[native, :-1]
        yield reasoned, self._reasoner, states[reasoned, -1:] - np.uint64(1)

    def evaluate(self, states: States) -> tuple[NDArray[np.bool_], NDArray[np.int16]]:
        """See NativeEngine.evaluate."""
        terminal = np.zeros(len(states), np.bool_)
        goals = np.zeros((len(states), len(self.roles)), np.int16)
        for lanes, engine, own in self._parts(states):
            terminal[lanes], goals[lanes] = engine.evaluate(own)
        return terminal, goals

    def terminal(self, states: States) -> NDArray[np.bool_]:
        """See NativeEngine.terminal."""
        terminal = np.zeros(len(states), np.bool_)
        for lanes, engine, own in self._parts(states):
            terminal[lanes] = engine.terminal(own)
        return terminal

    def keys(self, states: States) -> NDArray[np.uint64]:
        """See NativeEngine.keys."""
        keys = np.zeros(len(states), np.uint64)
        for lanes, engine, own in self._parts(states):
            keys[lanes] = engine.keys(own)
        return keys

    def holds(self, states: States, fact: GroundTerm) -> NDArray[np.bool_]:
        """Return bool[batch]: whether a fact holds in each state."""
        held = np.zeros(len(states), np.bool_)
        for lanes, engine, own in self._parts(states):
            held[lanes] = engine.holds(own, fact)
        return held

    def legal(self, states: States) -> Legal:
        """See NativeEngine.legal."""
        parts = [(lanes, engine, engine.legal(own)) for lanes, engine, own in self._parts(states)]
        if len(parts) == 1:
            return parts[0][2]
        num_roles = len(self.roles)
        counts, terminal = np.zeros((len(states), num_roles), np.int64), np.zeros(len(states), np.bool_)
        for lanes, _, legal in parts:
            counts[lanes], terminal[lanes] = legal.by_role(num_roles)[1], legal.terminal
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        actions = np.zeros(offsets[-1], np.int32)
        starts = offsets[:-1].reshape(-1, num_roles)
        for lanes, engine, legal in parts:
            moved = np.repeat(starts[lanes].ravel() - legal.offsets[:-1], np.diff(legal.offsets))
            actions[np.arange(len(moved)) + moved] = legal.actions if engine is self._native else self._numbered(legal)
        return Legal(offsets, actions, terminal)

    def _numbered(self, legal: Legal) -> list[int]:
        """Convert legal actions of the reasoner to actions of this engine."""
        roles = np.repeat(np.arange(len(legal.offsets) - 1) % len(self.roles), np.diff(legal.offsets)).tolist()
        moves = (self._reasoner.move(role, action) for role, action in zip(roles, legal.actions.tolist(), strict=True))
        return list(map(self.action, roles, moves))

    def action(self, role: int, move: GroundTerm) -> int:
        """Return the action index of a move."""
        try:
            return self._native.action(role, move)
        except KeyError:
            return self._num_actions + self._reasoner.action(role, move)

    def move(self, role: int, action: int) -> GroundTerm:
        """Return the move of an action index."""
        if action < self._num_actions:
            return self._native.move(role, action)
        return self._reasoner.move(role, action - self._num_actions)

    def next(self, states: States, joint: NDArray[np.int32]) -> States:
        """See NativeEngine.next. The reasoner computes successors outside the bounds again."""
        following = np.zeros_like(states)
        native = np.flatnonzero((states[:, -1] == 0) & (joint < self._num_actions).all(axis=1))
        rows = self._native.next(states[native, :-1], joint[native])
        following[native, :-1] = rows
        reasoned = np.delete(np.arange(len(states)), native[~self._are_outside(rows)])
        if len(reasoned):
            following[reasoned] = self._reasoned(states[reasoned], joint[reasoned])
        return following

    def _reasoned(self, states: States, joint: NDArray[np.int32]) -> States:
        """Return the successors that the reasoner computes."""
        given = np.array([self._reasoner.pack(self.facts(state)) for state in states])
        native = joint < self._num_actions
        moves = joint - np.int32(self._num_actions)
        moves[native] = self._reasoned_actions[joint[native]]
        return self._rows([self._reasoner.facts(state) for state in self._reasoner.next(given, moves)])

    def playouts(self, n: int, seed: int, threads: int | None, progress: Progress | None) -> Playouts:
        """Play n random matches on the native engine. If k of them leave the bounds, play n new matches step by step.

        Exactly k of the new matches leave the bounds.
        """
        num_left = n
        if not self.initial[-1]:
            played = self._native.playouts(n, seed, threads, progress)
            num_left = played.goals[0].get(self._goal_outside, 0)
            if not num_left:
                return played
        states = np.repeat(self.initial[None], n, axis=0)
        return self._played(states, np.arange(n) < num_left, seed, 0, progress).counted()

    def rollouts(self, states: States, seed: int, threads: int | None, max_steps: int) -> Rollouts:
        """Play one random match from each state.

        The native engine plays first. Matches that leave the bounds are played again, step by step.
        """
        goals = np.full((len(states), len(self.roles)), self._goal_outside, np.int16)
        steps = np.zeros(len(states), np.int32)
        native = np.flatnonzero(states[:, -1] == 0)
        played = self._native.rollouts(states[native, :-1], seed, threads, max_steps)
        goals[native], steps[native] = played.goals, played.steps
        left = np.flatnonzero(goals[:, 0] == self._goal_outside)
        again = self._played(states[left], np.ones(len(left), np.bool_), seed, max_steps)
        goals[left], steps[left] = again.goals, again.steps
        return Rollouts(goals, steps)

    def _played(
        self, states: States, leaving: NDArray[np.bool_], seed: int, max_steps: int, progress: Progress | None = None
    ) -> PlayedOut:
        """Play one random match from each state; `leaving`, bool[batch], says whether it must leave the bounds.

        This is rejection sampling: matches are played from each state until one of them is of the wanted kind. The
        native matches decided how many matches leave the bounds. Therefore all outcomes together have the distribution
        of random matches without bounds. Without the condition, some of the repeated matches would stay within the
        bounds, and too few matches would leave them.
        """
        chosen = PlayedOut.none(len(states), len(self.roles))
        lanes, rounds = np.arange(len(states)), 0
        while len(lanes):
            tried = np.tile(lanes, min(2**rounds, max(1, MOST_TRIED // len(lanes))))
            report = partial(progress, len(states) - len(lanes)) if progress else int
            played, left = self._watched(states[tried], (seed, rounds), max_steps, report)
            fitting = np.flatnonzero(left == leaving[tried])
            done, first = np.unique(tried[fitting], return_index=True)
            chosen.put(done, played, fitting[first])
            lanes, rounds = np.setdiff1d(lanes, done), rounds + 1
        return chosen

    def _watched(
        self, states: States, seed: Sequence[int], max_steps: int, report: Callable[[], object]
    ) -> tuple[PlayedOut, NDArray[np.bool_]]:
        """Play one random match from each state. Also return bool[batch]: whether the match ever left the bounds."""
        left = states[:, -1] > 0

        def see(going: Lanes, following: States) -> None:
            left[going] |= following[:, -1] > 0
            report()

        return play_stepwise(self, states, seed, max_steps, see), left


Engine: TypeAlias = NativeEngine | BoundedEngine | ReasonerEngine
"""Any engine. All engines have the same methods; see `NativeEngine`."""
