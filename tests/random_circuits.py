"""Random circuits, each with what it means: a *recipe*, from which gates are built and which is also read directly.

Values are numbered: 1 is false, then the facts, then the actions of all roles, then what the steps define, one value
each, a loop one for each variable. An operand is a number, or minus a number for its negation; a number that nothing
defines is false, so that steps can be left out of a recipe. Steps, by their kind:

    and, or     [[operand, ..]]    two operands, by the builder, which shares and simplifies
    raw         [[operand, ..]]    AND of two operands as a gate of its own, whatever they are
    any, all    [[operand, ..]]    several operands
    sum         [[operand, ..], ..]   OR of ANDs
    loop        [[[operand, ..], ..], ..]   for each variable a sum; in it the loop's own variables are not negated

Only the next state depends on actions. In about half of the recipes every role always has exactly one legal action, so
that a random match is no longer random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from evaluators import native_engine
from gamelore.circuit.aig import FALSE, Builder, Circuit, GateLiteral, Loop, evaluate
from gamelore.game import engines
from gamelore.game.engines import NO_GOAL, NativeEngine, pack_bits, unpack_bits
from gamelore.gdl import syntax
from gamelore.ground.clingo import GroundTerm, Names

Planes = NDArray[np.bool_]
SIZES = (1, 2, 3, 5, 8, 63, 64, 65, 130)
NOTHING = 1  # the number of what is false


@dataclass(frozen=True)
class Step:
    """`first` is the number of the first value that the step defines."""

    kind: str
    first: int
    operands: Any


@dataclass(frozen=True)
class Recipe:
    """See the module. `outputs` gives each group's operands; a group's list has the length that a circuit needs."""

    num_facts: int
    num_actions: tuple[int, ...]
    num_goals: int
    steps: tuple[Step, ...]
    outputs: Mapping[str, Sequence[int]]
    num_lanes: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Recipe:
        steps = tuple(Step(**step) for step in data["steps"])
        return cls(**{**data, "steps": steps, "num_actions": tuple(data["num_actions"])})


def recipe(random: Random) -> Recipe:
    """A random recipe of up to some hundred steps."""
    return _Cook(random).recipe()


class _Cook:
    """Draws a recipe; knows the values that depend on facts only, and all values."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.num_facts = random.choice(SIZES)
        self.num_actions = tuple(random.choice((*SIZES, 0)) for _ in range(random.randint(1, 3)))
        self.of_facts = list(range(1, 2 + self.num_facts))
        self.of_all = list(range(1, 2 + self.num_facts + sum(self.num_actions)))
        self.steps: list[Step] = []

    def recipe(self) -> Recipe:
        for _ in range(self.random.choice((0, 3, 10, 30, 100, 300))):
            self.step()
        num_goals = self.random.randint(0, 5)
        sizes = {"legal": sum(self.num_actions), "terminal": 1, "goal": num_goals}
        outputs = {group: [self.operand(self.of_facts) for _ in range(size)] for group, size in sizes.items()}
        if self.random.random() < 0.5:
            outputs["legal"] = [operand for size in self.num_actions for operand in self.one_of(size)]
        outputs["next"] = [self.operand(self.of_all) for _ in range(self.num_facts)]
        lanes = self.random.choice((1, 63, 511, 512, 513, 1100))
        return Recipe(self.num_facts, self.num_actions, num_goals, tuple(self.steps), outputs, lanes)

    def one_of(self, size: int) -> list[int]:
        """Operands of which exactly one holds, in some states this one and in others that."""
        actions = [NOTHING] * size
        if size == 1:
            actions[0] = -NOTHING
        elif size:
            one, other = self.random.sample(range(size), 2)
            actions[one] = self.operand(self.of_facts)
            actions[other] = -actions[one]
        return actions

    def operand(self, known: Sequence[int]) -> int:
        """A value, more often a late one, perhaps negated."""
        late = self.random.choice(known[-20:])
        return self.random.choice((late, self.random.choice(known))) * self.random.choice((1, 1, -1))

    def step(self) -> None:
        """Adds a step, of facts only or of any values."""
        of_facts = self.random.random() < 0.5
        known = self.of_facts if of_facts else self.of_all
        kind = self.random.choice(("and", "and", "and", "or", "or", "or", "raw", "any", "all", "sum", "loop"))
        first = self.of_all[-1] + 1
        new = range(first, first + (self.random.choice((1, 1, 2, 3, 5, 70)) if kind == "loop" else 1))
        self.steps.append(Step(kind, first, self.operands(kind, known, new)))
        self.of_all += new
        self.of_facts += new if of_facts else ()

    def operands(self, kind: str, known: Sequence[int], new: Sequence[int]) -> Any:
        if kind == "loop":
            return [self.sum(known, new) for _ in new]
        if kind == "sum":
            return self.sum(known, ())
        number = 2 if kind in ("and", "or", "raw") else self.random.randint(0, 6)
        return [[self.operand(known) for _ in range(number)]]

    def sum(self, known: Sequence[int], variables: Sequence[int]) -> list[list[int]]:
        """OR of a few ANDs; some are empty, and so true."""
        low = 0 if self.random.random() < 0.05 else 1
        products = [
            [self.operand(known) for _ in range(self.random.randint(low, 3))] for _ in range(self.random.randint(0, 4))
        ]
        for product in products if variables else ():
            product += self.random.sample(variables, self.random.randint(0, min(2, len(variables))))
        return products


def _terms(number: int) -> list[GroundTerm]:
    return [(term, ()) for term in range(number)]


def circuit_of(recipe: Recipe) -> Circuit:
    """The gates."""
    facts = _terms(recipe.num_facts)
    moves = list(map(_terms, recipe.num_actions))
    goals = [list(range(recipe.num_goals)), *([] for _ in moves[1:])]
    builder = Builder(Circuit(facts, moves, goals, [False] * len(facts)))
    literals = {number: 2 * (number - 1) for number in range(1, 2 + builder.circuit.num_inputs)}

    def literal(operand: int) -> GateLiteral:
        return literals.get(abs(operand), FALSE) ^ (operand < 0)

    def total(products: Sequence[Sequence[int]]) -> GateLiteral:
        return builder.sum_of_products(frozenset(map(literal, product)) for product in products)

    def single(kind: str, operands: Sequence[int]) -> GateLiteral:
        parts = list(map(literal, operands))
        if kind == "raw" and min(parts) > 1:  # a gate never reads a constant
            return 2 * builder.new_node(*parts)
        many = {"any": builder.any_of, "all": builder.all_of}
        two = {"and": builder.conjunction, "or": builder.disjunction, "raw": builder.conjunction}
        return many[kind](parts) if kind in many else two[kind](*parts)

    for step in recipe.steps:
        if step.kind == "loop":
            nodes = tuple(builder.new_node() for _ in step.operands)
            literals.update({step.first + place: 2 * node for place, node in enumerate(nodes)})
            builder.circuit.loops.append(Loop(nodes, tuple(map(total, step.operands))))
        elif step.kind == "sum":
            literals[step.first] = total(step.operands)
        else:
            literals[step.first] = single(step.kind, step.operands[0])
    builder.circuit.outputs = {group: list(map(literal, operands)) for group, operands in recipe.outputs.items()}
    return builder.circuit


def meaning(recipe: Recipe, inputs: Planes) -> dict[str, Planes]:
    """What the recipe says, straight: bool[lanes, facts + actions] to each group, bool[lanes, outputs]."""
    nothing = np.zeros(len(inputs), np.bool_)
    values = {NOTHING: nothing} | {number + 2: plane for number, plane in enumerate(inputs.T)}

    def value(operand: int) -> Planes:
        plane: Planes = values.get(abs(operand), nothing) ^ (operand < 0)
        return plane

    def all_of(operands: Sequence[int]) -> Planes:
        plane: Planes = np.logical_and.reduce([~nothing, *map(value, operands)])
        return plane

    def total(products: Sequence[Sequence[int]]) -> Planes:
        plane: Planes = np.logical_or.reduce([nothing, *map(all_of, products)])
        return plane

    for step in recipe.steps:
        if step.kind == "loop":
            variables = range(step.first, step.first + len(step.operands))
            values.update(dict.fromkeys(variables, nothing))
            before = None
            while before is None or any((values[variable] != before[variable]).any() for variable in variables):
                before = dict(values)
                values.update({variable: total(sum_) for variable, sum_ in zip(variables, step.operands, strict=True)})
        elif step.kind == "sum":
            values[step.first] = total(step.operands)
        elif step.kind in ("or", "any"):
            values[step.first] = total([[operand] for operand in step.operands[0]])
        else:
            values[step.first] = all_of(step.operands[0])
    return {group: _columns([*map(value, operands)], len(inputs)) for group, operands in recipe.outputs.items()}


def _columns(planes: Sequence[Planes], lanes: int) -> Planes:
    return np.array(planes, np.bool_).reshape(-1, lanes).T


def assert_meaning(recipe: Recipe) -> None:
    """Gates say what the recipe says, machine code what the gates say; wherever each role plays one action."""
    circuit = circuit_of(recipe)
    rng = np.random.default_rng(0)
    facts = rng.random((recipe.num_lanes, recipe.num_facts)) < rng.random(recipe.num_facts)
    joint = np.stack([rng.integers(0, max(1, size), recipe.num_lanes) for size in recipe.num_actions], axis=1)
    said = evaluate(circuit, np.concatenate([facts, *_one_hot(circuit, joint)], axis=1))
    _assert_same("gates", said, meaning(recipe, np.concatenate([facts, *_one_hot(circuit, joint)], axis=1)))
    native = native_engine(circuit, Names(syntax.parse("")), _terms(len(circuit.actions)))
    _assert_same("machine code", _compiled(native, facts, joint), _as_told(circuit, said))
    if recipe.outputs["legal"]:
        _assert_matches(circuit, native, facts)


def _one_hot(circuit: Circuit, joint: NDArray[np.int64]) -> list[Planes]:
    """bool[lanes, actions] for each role; nothing for a role without actions."""
    return [np.arange(len(own)) == joint[:, [role]] for role, own in enumerate(circuit.actions)]


def _by_role(circuit: Circuit, legal: Planes) -> list[Planes]:
    return np.split(legal, np.cumsum([len(own) for own in circuit.actions])[:-1], axis=1)


def _assert_same(who: str, got: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> None:
    for what, planes in expected.items():
        if what in got:
            wrong = np.argwhere(got[what] != planes)
            assert not len(wrong), f"{who}: {what}, at {wrong[0].tolist()} of {list(planes.shape)}"


def _as_told(circuit: Circuit, said: Mapping[str, Planes]) -> dict[str, NDArray[Any]]:
    """The outputs as engines tell them: no moves where a match is over, a goal where exactly one value holds."""
    values = np.array(circuit.goals[0], np.int16)
    clear = said["goal"].sum(axis=1) == 1
    goals = np.full((len(clear), len(circuit.actions)), NO_GOAL, np.int16)
    goals[clear, 0] = said["goal"][clear] @ values
    return {**said, "legal": said["legal"] & ~said["terminal"], "terminal": said["terminal"][:, 0], "goal": goals}


def _compiled(native: NativeEngine, facts: Planes, joint: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """What machine code says; no bit beyond the facts of a state may be set."""
    states, actions = pack_bits(facts, native.num_words), native.circuit.actions
    terminal, goals = native.evaluate(states)
    legal = native.legal(states)
    lanes = np.repeat(np.arange(len(states)), np.diff(legal.offsets).reshape(len(states), -1).sum(axis=1))
    shown = np.zeros((len(states), native.circuit.num_actions), np.bool_)
    shown[lanes, legal.actions] = True
    found = {"terminal": terminal, "goal": goals, "legal": shown}
    if all(actions):
        first = np.cumsum([0, *map(len, actions)])[:-1]
        following = native.next(states, (first + joint).astype(np.int32))
        bits = unpack_bits(following, 64 * native.num_words).astype(np.bool_)
        assert not bits[:, facts.shape[1] :].any(), "machine code: a bit beyond the facts of a state is set"
        found["next"] = bits[:, : facts.shape[1]]
    return found


def _assert_matches(circuit: Circuit, native: NativeEngine, facts: Planes, max_steps: int = 4) -> None:
    """Random matches end where following their actions ends, if there is one legal action for each role all the way."""
    steps = np.zeros(len(facts), np.int32)
    goals = np.full((len(facts), len(circuit.actions)), NO_GOAL, np.int16)
    lanes, here = np.arange(len(facts)), facts
    for step in range(max_steps + 1):
        no_actions = np.zeros((len(here), circuit.num_actions), np.bool_)
        said = evaluate(circuit, np.concatenate([here, no_actions], axis=1))
        told = _as_told(circuit, said)
        goals[lanes[told["terminal"]]] = told["goal"][told["terminal"]]
        steps[lanes] = step
        on = ~told["terminal"]
        lanes, here, legal = lanes[on], here[on], said["legal"][on]
        if not len(lanes):
            break
        if not all((own.sum(axis=1) == 1).all() for own in _by_role(circuit, legal)):
            return
        here = evaluate(circuit, np.concatenate([here, legal], axis=1))["next"]
    expected: dict[str, NDArray[Any]] = {"goal": goals, "steps": steps}
    for kind, gates in (("compiled", 10**9), ("taped", 0)):
        with patch.object(engines, "COMPILED_GATES", gates):
            other = native_engine(circuit, native.names, native.roles)
            rollouts = other.rollouts(pack_bits(facts, native.num_words), 0, 1, max_steps)
        found: dict[str, NDArray[Any]] = {"goal": rollouts.goals, "steps": rollouts.steps}
        _assert_same(f"{kind} matches", found, expected)


def smaller(recipe: Recipe) -> Iterator[Recipe]:
    """Recipes with less in them: fewer lanes, simpler outputs, fewer or shorter steps."""
    data = {**recipe.__dict__}
    if recipe.num_lanes > 1:
        yield Recipe(**{**data, "num_lanes": 1})
    for group, operands in recipe.outputs.items():
        if set(operands) - {NOTHING}:
            yield Recipe(**{**data, "outputs": {**recipe.outputs, group: [NOTHING] * len(operands)}})
    for place, step in enumerate(recipe.steps):
        for instead in ((), *((Step(step.kind, step.first, less),) for less in _shorter(step))):
            yield Recipe(**{**data, "steps": (*recipe.steps[:place], *instead, *recipe.steps[place + 1 :])})


def _shorter(step: Step) -> Iterator[Any]:
    """The operands with one product, or one operand of one, less."""
    if step.kind == "sum":
        yield from _less(step.operands)
    if step.kind == "loop":
        for place, total in enumerate(step.operands):
            for less in _less(total):
                yield [*step.operands[:place], less, *step.operands[place + 1 :]]


def _less(total: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
    for place, product in enumerate(total):
        yield [*total[:place], *total[place + 1 :]]
        for operand in range(len(product)):
            yield [*total[:place], [*product[:operand], *product[operand + 1 :]], *total[place + 1 :]]
