"""Ground rules to a circuit.

Positive recursion within a state is a strongly connected component of atoms: each becomes a loop, whose variables are
only those atoms that cut its cycles. Recursion through negation has no perfect model and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from ..errors import GDLSemanticError, GroundingError
from .circuit import FALSE, TRUE, Builder, Circuit, GateLiteral, Loop, drop_dead, evaluate
from .cycles import components, cut
from .factor import fewer_rules
from .ground import GroundProgram
from .groundrules import GroundRules
from .names import GroundTerm

MOST_LITERALS = 8_000_000  # in factored rules: about 2 GB and 25 s on their way to gates
Key = TypeVar("Key")


def build(program: GroundProgram) -> Circuit:
    """The circuit of a ground program.

    Raises GDLSemanticError for recursion through negation, GroundingError where the circuit would be too large.
    """
    facts = sorted(program.true)
    roles = program.roles
    actions: list[list[GroundTerm]] = [[] for _ in roles]
    for role, move in program.does:
        actions[roles.index(role)].append(move)
    for moves in actions:
        moves.sort()
    goal_values = [sorted({value for role, value in _goals(program) if role == roles[i]}) for i in range(len(roles))]
    circuit = Circuit(facts, actions, goal_values, [False] * len(facts), unique=program.unique)
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


def _affordable(rules: GroundRules) -> GroundRules:
    if len(rules.literals) > MOST_LITERALS:
        raise GroundingError(
            f"expected rules that factor to at most {MOST_LITERALS} literals, got {len(rules.literals)}: their circuit "
            'would not fit into memory. Remedy: use engine="reasoner", which needs none'
        )
    return rules


class _Translation:
    """Atoms to literals, component by component in the order of dependency.

    `values` holds the literal of each atom, FALSE where it has none; `literals` those of all rules, sorted by head.
    """

    def __init__(self, program: GroundProgram, circuit: Circuit) -> None:
        self.program, self.circuit = program, circuit
        self.builder = Builder(circuit)
        rules = _affordable(fewer_rules(program)).by_head()
        self.values = [FALSE] * rules.num_atoms
        self.literals: list[int] = rules.literals.tolist()
        self.offsets: list[int] = rules.offsets.tolist()
        self.first_rule: list[int] = np.searchsorted(rules.heads, np.arange(rules.num_atoms + 1)).tolist()
        self.num_own_atoms = rules.num_own_atoms
        self.negating_themselves = set(rules.negating_themselves().tolist())
        self._number_inputs()

    def _number_inputs(self) -> None:
        node = 1
        for fact in self.circuit.facts:
            self.values[self.program.true[fact]] = 2 * node
            node += 1
        for role, moves in zip(self.program.roles, self.circuit.actions, strict=True):
            for move in moves:
                self.values[self.program.does[role, move]] = 2 * node
                node += 1

    def run(self) -> None:
        outputs = self._output_atoms()
        wanted = [atom for lists in outputs.values() for atoms in lists for atom in atoms]
        for component in components(wanted, self._dependencies):
            if len(component) > 1 or component[0] in self.negating_themselves:
                self._loop(component)
            elif self._has_rules(component[0]):
                self.values[component[0]] = self._definition(component[0])
        for group, lists in outputs.items():
            self.circuit.outputs[group] = [self.builder.any_of(self.values[atom] for atom in atoms) for atoms in lists]
        self.circuit.initial = self._initial()
        del self.circuit.outputs["init"]
        drop_dead(self.circuit)

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

    def _has_rules(self, atom: int) -> bool:
        return self.first_rule[atom] < self.first_rule[atom + 1]

    def _read(self, atom: int) -> list[int]:
        """The literals in the rules of an atom."""
        first, end = self.first_rule[atom], self.first_rule[atom + 1]
        return self.literals[self.offsets[first] : self.offsets[end]]

    def _dependencies(self, atom: int) -> list[int]:
        return [literal >> 1 for literal in self._read(atom)]

    def _loop(self, component: list[int]) -> None:
        """Translates atoms that depend on each other."""
        self._refuse_negation(set(component))
        cutting, order = cut(component, self._dependencies)
        variables = {atom: self.builder.new_node() for atom in cutting}
        for atom, node in variables.items():
            self.values[atom] = 2 * node
        results = {}
        for atom in order:
            results[atom] = self._definition(atom)
            if atom not in variables:
                self.values[atom] = results[atom]
        self.circuit.loops.append(Loop(tuple(variables.values()), tuple(results[atom] for atom in variables)))

    def _definition(self, atom: int) -> GateLiteral:
        values, literals, offsets = self.values, self.literals, self.offsets
        bodies = [
            [values[literal >> 1] ^ literal & 1 for literal in literals[offsets[rule] : offsets[rule + 1]]]
            for rule in range(self.first_rule[atom], self.first_rule[atom + 1])
        ]
        return self.builder.sum_of_products(bodies)

    def _refuse_negation(self, members: set[int]) -> None:
        if not any(literal & 1 and literal >> 1 in members for atom in members for literal in self._read(atom)):
            return
        for atom in sorted(atom for atom in members if atom < self.num_own_atoms):
            for literal in self._read_through(atom):
                if literal & 1 and literal >> 1 in members:
                    text, other = self.program.texts[atom], self.program.texts[literal >> 1]
                    raise GDLSemanticError(
                        f"no perfect model: {text} depends on not {other}, which depends on {text}",
                        remedy="break the cycle: define one of the two without the other",
                    )

    def _read_through(self, atom: int) -> Iterator[int]:
        """The literals in the rules of an atom, and in those of the atoms there that factoring made."""
        for literal in self._read(atom):
            if literal >> 1 < self.num_own_atoms:
                yield literal
            else:
                yield from self._read_through(literal >> 1)
