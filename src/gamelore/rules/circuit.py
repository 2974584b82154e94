"""Ground rules to gates.

A circuit is an and-inverter graph. Node 0 is the constant false; nodes 1..num_facts are the facts of a state, the next
num_actions the actions of all roles (role by role); all later nodes are AND gates of two literals or *loop variables*.
A *literal* is `2 * node + negated`, so literal 0 is false and 1 is true.

Positive recursion within a state is a strongly connected component of atoms: each becomes a `Loop`, whose variables
start false and are set to its results, again and again, until nothing changes (the least fixpoint). Recursion through
negation has no perfect model and is refused.

Contract: the circuit is exact for states in which every role plays exactly one of its actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import GDLSemanticError
from .ground import GroundProgram, GroundTerm

FALSE, TRUE = 0, 1
MAX_FACTORED_TERMS = 300  # sums longer than this are not searched for common factors

Node: TypeAlias = int
GateLiteral: TypeAlias = int
Product: TypeAlias = frozenset[GateLiteral]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Loop:
    """Variables (nodes) and, in the same order, the literals that they become in each sweep."""

    variables: tuple[Node, ...]
    results: tuple[GateLiteral, ...]


@dataclass(slots=True)
class Circuit:
    """See the module. `left[i]`, `right[i]` are the literals of node i, -1 for inputs and loop variables.

    `outputs` maps each group to its literals: "legal" one for each action, "terminal" one, "goal" one for each
    (role, value), "next" one for each fact.
    """

    facts: list[GroundTerm]
    actions: list[list[GroundTerm]]
    goals: list[list[int]]
    initial: list[bool]
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    outputs: dict[str, list[GateLiteral]] = field(default_factory=dict)

    @property
    def num_facts(self) -> int:
        return len(self.facts)

    @property
    def num_actions(self) -> int:
        return sum(map(len, self.actions))

    @property
    def num_inputs(self) -> int:
        return self.num_facts + self.num_actions

    @property
    def num_gates(self) -> int:
        return sum(left >= 0 for left in self.left)


class Builder:
    """Makes AND gates, sharing equal ones and simplifying as it goes."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.left, self.right = circuit.left, circuit.right
        self.shared: dict[tuple[int, int], Node] = {}
        for _ in range(circuit.num_inputs + 1):
            self.new_node()
        self.role_actions: list[frozenset[GateLiteral]] = []
        self.role_of: dict[GateLiteral, int] = {}
        first = circuit.num_facts + 1
        for role, actions in enumerate(circuit.actions):
            literals = frozenset(2 * node for node in range(first, first + len(actions)))
            self.role_actions.append(literals)
            self.role_of.update(dict.fromkeys(literals, role))
            first += len(actions)

    def new_node(self, left: int = -1, right: int = -1) -> Node:
        self.left.append(left)
        self.right.append(right)
        return len(self.left) - 1

    def conjunction(self, a: GateLiteral, b: GateLiteral) -> GateLiteral:
        if a > b:
            a, b = b, a
        if a == FALSE or a == b ^ 1:
            return FALSE
        if a in (TRUE, b):
            return b
        simpler = self._absorbed(a, b)
        if simpler is None:
            simpler = self._absorbed(b, a)
        if simpler is not None:
            return simpler
        key = (a, b)
        if key not in self.shared:
            self.shared[key] = self.new_node(a, b)
        return 2 * self.shared[key]

    def _absorbed(self, a: GateLiteral, b: GateLiteral) -> GateLiteral | None:
        """a AND b where b is a gate that already says something about a."""
        left, right = self.left[b >> 1], self.right[b >> 1]
        if left < 0:
            return None
        if not b & 1:
            if a in (left, right):
                return b
            return FALSE if a ^ 1 in (left, right) else None
        if a ^ 1 in (left, right):
            return a
        if a in (left, right):
            return self.conjunction(a, (right if a == left else left) ^ 1)
        return None

    def disjunction(self, a: GateLiteral, b: GateLiteral) -> GateLiteral:
        return self.conjunction(a ^ 1, b ^ 1) ^ 1

    def all_of(self, literals: Iterable[GateLiteral]) -> GateLiteral:
        result = TRUE
        for literal in sorted(literals):
            result = self.conjunction(result, literal)
        return result

    def any_of(self, literals: Iterable[GateLiteral]) -> GateLiteral:
        return self.all_of(literal ^ 1 for literal in self._complement_actions(set(literals))) ^ 1

    def _complement_actions(self, literals: set[GateLiteral]) -> set[GateLiteral]:
        """Replaces more than half of a role's actions by NOT of the rest: it plays exactly one of them."""
        for actions in self.role_actions:
            played = actions & literals
            if 2 * len(played) > len(actions):
                rest = self.all_of(literal ^ 1 for literal in actions - played)
                literals = (literals - played) | {rest}
        return literals

    def sum_of_products(self, products: Iterable[Product]) -> GateLiteral:
        """OR of ANDs, with common factors taken out."""
        terms = {term for product in products if (term := self._simplified(product)) is not None}
        for role in range(len(self.role_actions)):
            terms = self._merge_actions(terms, role)
        return self._factored(sorted(terms, key=sorted))

    def _simplified(self, product: Product) -> Product | None:
        """The product without true literals; None where it is false."""
        product = product - {TRUE}
        if FALSE in product or any(literal ^ 1 in product for literal in product):
            return None
        return product

    def _merge_actions(self, terms: set[Product], role: int) -> set[Product]:
        """(x AND a1) OR (x AND a2) OR .. -> x AND (one of the actions a1, a2, ..), for one role's actions."""
        actions_of: dict[Product, set[GateLiteral]] = {}
        merged = set()
        for term in terms:
            actions = [literal for literal in term if self.role_of.get(literal) == role]
            if len(actions) == 1:
                actions_of.setdefault(term - {actions[0]}, set()).add(actions[0])
            elif not actions:
                merged.add(term)
        for context, played in actions_of.items():
            simplified = self._simplified(context | {self.any_of(played)})
            if simplified is not None:
                merged.add(simplified)
        return merged

    def _factored(self, terms: Sequence[Product]) -> GateLiteral:
        if any(not term for term in terms):
            return TRUE
        if len(terms) <= 1 or len(terms) > MAX_FACTORED_TERMS:
            return self.any_of(self.all_of(term) for term in terms)
        factor, occurrences = _most_frequent(terms)
        if occurrences == 1:
            return self.any_of(self.all_of(term) for term in terms)
        having = [term for term in terms if factor in term]
        common = frozenset[GateLiteral]().union(*having).intersection(*having)
        quotient = self._factored([term - common for term in having])
        rest = self._factored([term for term in terms if factor not in term])
        return self.disjunction(self.conjunction(self.all_of(common), quotient), rest)


def _most_frequent(terms: Sequence[Product]) -> tuple[GateLiteral, int]:
    counts: dict[GateLiteral, int] = {}
    for term in terms:
        for literal in term:
            counts[literal] = counts.get(literal, 0) + 1
    best = min(counts, key=lambda literal: (-counts[literal], literal))
    return best, counts[best]


def build(program: GroundProgram) -> Circuit:
    """The circuit of a ground program. Raises GDLSemanticError for recursion through negation."""
    facts = sorted(program.true)
    roles = program.roles
    actions: list[list[GroundTerm]] = [[] for _ in roles]
    for role, move in program.does:
        actions[roles.index(role)].append(move)
    for moves in actions:
        moves.sort()
    goal_values = [sorted({value for role, value in _goals(program) if role == roles[i]}) for i in range(len(roles))]
    circuit = Circuit(facts, actions, goal_values, [False] * len(facts))
    _Translation(program, circuit).run()
    return circuit


def _goals(program: GroundProgram) -> Iterable[tuple[GroundTerm, int]]:
    """Every (role, value) that a goal atom names; what is no goal value is left out (the check reports it)."""
    for role, term in program.goal:
        value = program.names.goal_value(term)
        if value is not None:
            yield role, value


def _known(atoms: Mapping[Key, int], key: Key) -> list[int]:
    return [atoms[key]] if key in atoms else []


class _Translation:
    """Atoms to literals, component by component in the order of dependency."""

    def __init__(self, program: GroundProgram, circuit: Circuit) -> None:
        self.program, self.circuit = program, circuit
        self.builder = Builder(circuit)
        self.literals: dict[int, GateLiteral] = {}
        self.bodies: dict[int, list[list[int]]] = {}
        literals, offsets = program.literals.tolist(), program.offsets.tolist()
        for rule, head in enumerate(program.heads.tolist()):
            self.bodies.setdefault(head, []).append(literals[offsets[rule] : offsets[rule + 1]])
        self._number_inputs()

    def _number_inputs(self) -> None:
        node = 1
        for fact in self.circuit.facts:
            self.literals[self.program.true[fact]] = 2 * node
            node += 1
        for role, moves in zip(self.program.roles, self.circuit.actions, strict=True):
            for move in moves:
                self.literals[self.program.does[role, move]] = 2 * node
                node += 1

    def run(self) -> None:
        outputs = self._output_atoms()
        wanted = [atom for lists in outputs.values() for atoms in lists for atom in atoms]
        for component in components(wanted, self._dependencies):
            self._translate(component)
        for group, lists in outputs.items():
            self.circuit.outputs[group] = [
                self.builder.any_of(self.literals.get(atom, FALSE) for atom in atoms) for atoms in lists
            ]
        self.circuit.initial = self._initial()
        del self.circuit.outputs["init"]

    def _output_atoms(self) -> dict[str, list[list[int]]]:
        """The atoms of each output, of which one must hold; the goals 50 and 050 are two atoms of one value."""
        program, circuit, roles = self.program, self.circuit, self.program.roles
        goals: dict[tuple[GroundTerm, int | None], list[int]] = {}
        for (role, term), atom in program.goal.items():
            goals.setdefault((role, program.names.goal_value(term)), []).append(atom)
        moves = [(role, move) for role, own in zip(roles, circuit.actions, strict=True) for move in own]
        values = [(role, value) for role, own in zip(roles, circuit.goals, strict=True) for value in own]
        return {
            "legal": [_known(program.legal, move) for move in moves],
            "terminal": [[program.terminal] if program.terminal else []],
            "goal": [goals[value] for value in values],
            "next": [_known(program.next, fact) for fact in circuit.facts],
            "init": [_known(program.init, fact) for fact in circuit.facts],
        }

    def _initial(self) -> list[bool]:
        """Which facts hold at first: constants, where no negation in a cycle of relations leaves gates to evaluate."""
        literals = self.circuit.outputs["init"]
        if max(literals, default=FALSE) <= TRUE:
            return [literal == TRUE for literal in literals]
        anything = np.zeros((1, self.circuit.num_inputs), np.bool_)  # the first facts depend on no state
        holds: list[bool] = evaluate(self.circuit, anything)["init"][0].tolist()
        return holds

    def _dependencies(self, atom: int) -> list[int]:
        if atom in self.literals:
            return []
        return [abs(literal) for body in self.bodies.get(atom, ()) for literal in body]

    def _translate(self, component: list[int]) -> None:
        members = set(component)
        if len(component) == 1 and component[0] not in self._dependencies(component[0]):
            (atom,) = component
            if atom not in self.literals:
                self.literals[atom] = self._definition(atom)
            return
        self._refuse_negation(members)
        variables = tuple(self.builder.new_node() for _ in component)
        self.literals.update(zip(component, (2 * node for node in variables), strict=True))
        results = tuple(self._definition(atom) for atom in component)
        self.circuit.loops.append(Loop(variables, results))

    def _definition(self, atom: int) -> GateLiteral:
        return self.builder.sum_of_products(
            frozenset(self._literal(literal) for literal in body) for body in self.bodies.get(atom, ())
        )

    def _literal(self, literal: int) -> GateLiteral:
        value = self.literals.get(abs(literal), FALSE)
        return value ^ (literal < 0)

    def _refuse_negation(self, members: set[int]) -> None:
        for atom in members:
            for body in self.bodies.get(atom, ()):
                negated = [-literal for literal in body if -literal in members]
                if negated:
                    text, other = self.program.texts[atom], self.program.texts[negated[0]]
                    raise GDLSemanticError(
                        f"no perfect model: {text} depends on not {other}, which depends on {text}",
                        remedy="break the cycle: define one of the two without the other",
                    )


def evaluate(circuit: Circuit, inputs: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Plain evaluation, gate by gate: inputs bool[batch, facts + actions] to each output group, bool[batch, outputs].

    Loops are swept over all gates until nothing changes; slow and simple, the measure of the compiled code.
    """
    values = np.zeros((len(circuit.left), len(inputs)), np.bool_)
    values[1 : 1 + circuit.num_inputs] = inputs.T

    def value(literal: GateLiteral) -> NDArray[np.bool_]:
        plane: NDArray[np.bool_] = values[literal >> 1] ^ bool(literal & 1)
        return plane

    def sweep() -> None:
        for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
            if left >= 0:
                values[node] = value(left) & value(right)

    sweep()
    for loop in circuit.loops:  # later loops may read earlier ones, which are stable by then
        changed = True
        while changed:
            results = [value(literal).copy() for literal in loop.results]
            changed = any((values[node] != result).any() for node, result in zip(loop.variables, results, strict=True))
            for node, result in zip(loop.variables, results, strict=True):
                values[node] = result
            sweep()
    return {
        group: np.array([value(literal) for literal in literals], np.bool_).reshape(-1, len(inputs)).T
        for group, literals in circuit.outputs.items()
    }


def components(roots: Iterable[int], dependencies: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """Strongly connected components of what the roots depend on, dependencies first (Tarjan 1972)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    found: list[list[int]] = []

    def enter(node: int) -> tuple[int, Iterator[int]]:
        index[node] = low[node] = len(index)
        open_nodes.append(node)
        is_open.add(node)
        return node, iter(dependencies(node))

    for root in roots:
        path = [] if root in index else [enter(root)]
        while path:
            node, successors = path[-1]
            for successor in successors:
                if successor not in index:
                    path.append(enter(successor))
                    break
                if successor in is_open:
                    low[node] = min(low[node], index[successor])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    component: list[int] = []
                    while not component or component[-1] != node:
                        component.append(open_nodes.pop())
                        is_open.discard(component[-1])
                    found.append(component)
    return found
