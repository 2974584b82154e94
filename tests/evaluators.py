"""Everybody who answers questions of the rules, behind one face.

States are frozen sets of facts and moves are text, all in lower case; a joint move is {role: move}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar
from unittest.mock import patch
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gamelore.circuit import aig
from gamelore.circuit.tape import record_circuit
from gamelore.circuit.translate import build
from gamelore.errors import GroundingError
from gamelore.game.engines import NativeEngine, ReasonerEngine
from gamelore.game.game import Game
from gamelore.gdl import clauses, syntax
from gamelore.gdl.limits import Limits
from gamelore.ground import invariants, optimize
from gamelore.ground import optimize as rewriting
from gamelore.ground.clingo import GroundTerm, Names
from gamelore.ground.domains import Domains, Estimate
from gamelore.ground.program import GroundProgram, ground
from naive import Naive

State = frozenset[str]
Joint = Mapping[str, str]
Make = Callable[[syntax.Rulesheet], "Evaluator"]
Item = TypeVar("Item")


class Answer(NamedTuple):
    """What the rules say of a state. Moves are in the order of actions, and nobody has any where a match is over."""

    legal: dict[str, list[str]]
    terminal: bool
    goals: dict[str, int | None]


class Evaluator(Protocol):
    """Answers for several states at once."""

    roles: list[str]
    initial: State

    def answers(self, states: Sequence[State]) -> list[Answer]: ...

    def successors(self, states: Sequence[State], joints: Sequence[Joint]) -> list[State]: ...


class Plainly:
    """The naive evaluator, with moves in the order of actions."""

    def __init__(self, sheet: syntax.Rulesheet) -> None:
        self.naive = Naive(str(sheet))
        self.order = order_of_terms(sheet)
        self.roles, self.initial = self.naive.roles, self.naive.initial

    def answer(self, state: State) -> Answer:
        terminal = self.naive.terminal(state)
        legal = {role: sorted(moves, key=self.order) for role, moves in self.naive.legal(state).items()}
        return Answer({role: [] for role in legal} if terminal else legal, terminal, self.naive.goals(state))

    def answers(self, states: Sequence[State]) -> list[Answer]:
        return [self.answer(state) for state in states]

    def successors(self, states: Sequence[State], joints: Sequence[Joint]) -> list[State]:
        return [self.naive.next(state, joint) for state, joint in zip(states, joints, strict=True)]


def order_of_terms(sheet: syntax.Rulesheet) -> Callable[[str], Any]:
    """The key that sorts moves: names by their first appearance in the sheet, terms by structure."""
    numbers: dict[str, int] = {}
    for rule in sheet.rules:
        for term in syntax.named_terms(rule):
            numbers.setdefault(term.name, len(numbers))

    def key(term: syntax.Term) -> Any:
        arguments = term.args if isinstance(term, syntax.Function) else ()
        return numbers[str(term.name)], tuple(map(key, arguments))

    return lambda text: key(syntax.parse_term(text))


class Played:
    """A game, on whatever engine."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.roles = [role.lower() for role in game.roles]
        self.initial = self._facts(game.initial)

    def _facts(self, state: NDArray[np.uint64]) -> State:
        return frozenset(fact.lower() for fact in self.game.facts(state))

    def pack(self, states: Sequence[State]) -> NDArray[np.uint64]:
        """States as the game has them, uint64[states, words]."""
        return np.array([self.game.state(sorted(state)) for state in states]).reshape(-1, self.game.num_words)

    def answers(self, states: Sequence[State]) -> list[Answer]:
        packed = self.pack(states)
        legal = self.game.legal(packed)
        terminal, goals = self.game.evaluate(packed)
        moves = [
            [self.game.move_text(number % len(self.roles), action).lower() for action in legal.actions[begin:end]]
            for number, (begin, end) in enumerate(zip(legal.offsets, legal.offsets[1:], strict=False))
        ]
        found = []
        for number in range(len(states)):
            own = moves[number * len(self.roles) : (number + 1) * len(self.roles)]
            values = [int(goal) if goal >= 0 else None for goal in goals[number]]
            answer = Answer(self._by_role(own), bool(terminal[number]), self._by_role(values))
            found.append(answer)
        return found

    def _by_role(self, items: Sequence[Item]) -> dict[str, Item]:
        return dict(zip(self.roles, items, strict=True))

    def successors(self, states: Sequence[State], joints: Sequence[Joint]) -> list[State]:
        joint = [[self.game.action(number, moves[role]) for number, role in enumerate(self.roles)] for moves in joints]
        return [self._facts(state) for state in self.game.next(self.pack(states), np.array(joint, np.int32))]


class Gates:
    """The circuit, evaluated gate by gate."""

    def __init__(self, program: GroundProgram) -> None:
        self.names = program.names
        self.circuit = build(program)
        self.roles = [self._text(role) for role in program.roles]
        self.facts = [self._text(fact) for fact in self.circuit.facts]
        moves = zip(self.roles, self.circuit.actions, strict=True)
        self.moves = [(role, self._text(move)) for role, own in moves for move in own]
        self.values = [(role, value) for role, own in zip(self.roles, self.circuit.goals, strict=True) for value in own]
        self.initial = frozenset(fact for fact, holds in zip(self.facts, self.circuit.initial, strict=True) if holds)

    def _text(self, term: GroundTerm) -> str:
        return self.names.text(term).lower()

    def _evaluate(self, states: Sequence[State], joints: Sequence[Joint]) -> dict[str, NDArray[np.bool_]]:
        assert all(state <= set(self.facts) for state in states), "a fact that the circuit does not know"
        facts = np.array([[fact in state for fact in self.facts] for state in states], np.bool_)
        moves = np.array([[joint.get(role) == move for role, move in self.moves] for joint in joints], np.bool_)
        inputs = [facts.reshape(len(states), len(self.facts)), moves.reshape(len(states), len(self.moves))]
        return aig.evaluate(self.circuit, np.concatenate(inputs, axis=1))

    def answers(self, states: Sequence[State]) -> list[Answer]:
        out = self._evaluate(states, [{} for _ in states])
        return [self._answer(*(out[group][i] for group in ("legal", "terminal", "goal"))) for i in range(len(states))]

    def _answer(self, legal: NDArray[np.bool_], terminal: NDArray[np.bool_], goal: NDArray[np.bool_]) -> Answer:
        moves: dict[str, list[str]] = {role: [] for role in self.roles}
        for (role, move), is_legal in zip(self.moves, legal, strict=True):
            if is_legal and not terminal[0]:
                moves[role].append(move)
        held = [value for value, holds in zip(self.values, goal, strict=True) if holds]
        values = {role: [value for owner, value in held if owner == role] for role in self.roles}
        goals = {role: own[0] if len(own) == 1 else None for role, own in values.items()}
        return Answer(moves, bool(terminal[0]), goals)

    def successors(self, states: Sequence[State], joints: Sequence[Joint]) -> list[State]:
        following = self._evaluate(states, joints)["next"]
        return [frozenset(fact for fact, holds in zip(self.facts, row, strict=True) if holds) for row in following]


LIMITS = Limits(seconds=600, literals=200_000)


class Unfit(Exception):
    """No example: too large, or without a perfect model."""


@contextmanager
def within_limits() -> Iterator[None]:
    """What is too large to ground is no example."""
    try:
        yield
    except GroundingError as error:
        raise Unfit(str(error)) from error


def program_of(sheet: syntax.Rulesheet, *, rewrite: bool = False) -> GroundProgram:
    """The ground rules of a sheet, or of what it is rewritten to, in its own order of actions."""
    return ground(rewriting.rewrite(sheet) if rewrite else sheet, LIMITS, Names(sheet))


def native_game(sheet: syntax.Rulesheet) -> Game:
    """The game on the native engine, compiled anew: the cache on disk would only grow."""
    program = program_of(sheet, rewrite=True)
    return Game(sheet, "random", native_engine(build(program), program.names, program.roles))


def native_engine(gates: aig.Circuit, names: Names, roles: list[GroundTerm]) -> NativeEngine:
    """The native engine of a circuit."""
    return NativeEngine(names, roles, gates, record_circuit(gates))


def reasoned_game(sheet: syntax.Rulesheet, *, rewrite: bool = True) -> Game:
    """The game on the reasoner."""
    return Game(sheet, "random", ReasonerEngine(sheet, LIMITS, rewrite))


_DEMAND = optimize.Demand


def _eager_demand(rules: Sequence[clauses.Clause], domains: Domains, prefix: str, **_: Any) -> optimize.Demand:
    return _DEMAND(rules, domains, prefix, large=1, must_pay=False)


class _Arbitrary(Estimate):
    """Costs from nowhere, but always the same for the same atoms: every cut must be right, not only the best."""

    def join(self, atoms: Iterable[syntax.Atom], part: Iterable[str] = (), part_size: float = inf) -> float:
        return 1.0 + crc32(" ".join([*map(str, atoms), *part]).encode()) % 1000


# What rewriting leaves alone because it is small, or would gain little, is what small sheets are made of.
EAGERLY: dict[Any, dict[str, Any]] = {
    optimize: {
        "SMALL": 0,
        "LARGE_JOIN": 0,
        "HUGE_JOIN": 0,
        "GAIN": 1,
        "UNFOLDING_GAIN": 1,
        "Estimate": _Arbitrary,
        "Demand": _eager_demand,
    },
    invariants: {"LARGE": 0, "GAIN": 1},
}


@contextmanager
def eagerly() -> Iterator[None]:
    """Everything is rewritten that can be, however small it is; what becomes too large by it is no example."""
    with ExitStack() as stack, within_limits():
        for module, constants in EAGERLY.items():
            for constant, value in constants.items():
                stack.enter_context(patch.object(module, constant, value))
        yield


def _eager_gates(sheet: syntax.Rulesheet) -> Evaluator:
    with eagerly():
        return Gates(program_of(sheet, rewrite=True))


def _eager_reasoner(sheet: syntax.Rulesheet) -> Evaluator:
    with eagerly():
        return Played(reasoned_game(sheet))


EVALUATORS: dict[str, Make] = {
    "reasoner": lambda sheet: Played(reasoned_game(sheet, rewrite=False)),
    "reasoner, rewritten": lambda sheet: Played(reasoned_game(sheet)),
    "reasoner, eagerly rewritten": _eager_reasoner,
    "gates": lambda sheet: Gates(program_of(sheet)),
    "gates, eagerly rewritten": _eager_gates,
    "native": lambda sheet: Played(native_game(sheet)),
}
