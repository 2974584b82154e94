"""Translation of a ground program into a circuit: atoms become gates, and recursion becomes loops.

Recursion without negation within a state is a strongly connected component of atoms. Each component becomes a loop.
The variables of the loop are atoms that cut all cycles of the component. A program with recursion through negation
has no perfect model, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from ..errors import GDLSemanticError, GroundingError
from ..gdl.limits import check, checked, working_on
from ..ground.clingo import GroundTerm
from ..ground.program import GroundProgram, factor_rules
from .aig import FALSE, TRUE, Builder, Circuit, GateLiteral, Loop, components_below, cut, drop_dead, evaluate

Value = TypeVar("Value", GroundTerm, int)
MOST_LITERALS = 8_000_000  # limit for the factored rules; translating this many takes about 2 GB and 25 s


class NegationInCycleError(GDLSemanticError):
    """A ground atom depends on its own negation. `head`: text of the atom, `negated`: text of the negated condition."""

    def __init__(self, head: str, negated: str) -> None:
        self.head, self.negated = head, negated
        super().__init__(
            f"no perfect model: {head} depends on not {negated}, which depends on {head}",
            remedy="break the cycle: define one of the two without the other",
        )


def build(program: GroundProgram) -> Circuit:
    """Return the circuit of a ground program.

    Raises NegationInCycleError for recursion through negation, and GroundingError if the circuit would be too large.
    """
    facts, roles = sorted(program.true), program.roles
    actions, values = _by_role(program.does, roles), _by_role(_goal_atoms(program), roles)
    circuit = Circuit(facts, actions, values, [False] * len(facts), unique=program.unique)
    _Translation(program, circuit).run()
    return circuit


def _by_role(pairs: Iterable[tuple[GroundTerm, Value]], roles: Sequence[GroundTerm]) -> list[list[Value]]:
    """Return for each role the sorted values of its pairs (role, value)."""
    values: dict[GroundTerm, list[Value]] = {role: [] for role in roles}
    for role, value in pairs:
        if role in values:
            values[role].append(value)
    return list(map(sorted, values.values()))


def _goal_atoms(program: GroundProgram) -> dict[tuple[GroundTerm, int], list[int]]:
    """Return (role, value) -> goal atoms. Goals 50 and 050 are two atoms of one value.

    Goal atoms whose second argument is not a goal value are left out.
    """
    atoms: dict[tuple[GroundTerm, int], list[int]] = {}
    for (role, term), atom in program.goal.items():
        value = program.names.goal_value(term)
        if value is not None:
            atoms.setdefault((role, value), []).append(atom)
    return atoms


class _Translation:
    """Translator of atoms to gates: one strongly connected component at a time, dependencies first.

    `values[atom]` is the gate literal of the atom, FALSE if it has no rule. `literals` contains the literals in the
    bodies of all rules, sorted by the head of the rule.
    """

    def __init__(self, program: GroundProgram, circuit: Circuit) -> None:
        self.program, self.circuit = program, circuit
        self.builder = Builder(circuit)
        factored = factor_rules(program)
        if len(factored.literals) > MOST_LITERALS:
            raise GroundingError(
                f"expected at most {MOST_LITERALS} literals in the rules after factoring, got "
                f"{len(factored.literals)}: the circuit would not fit into memory",
                'use engine="reasoner", which needs no circuit',
            )
        rules = factored.by_head()
        self.values = [FALSE] * rules.num_atoms
        self.literals: list[int] = rules.literals.tolist()
        self.offsets: list[int] = rules.offsets.tolist()
        self.first_rule: list[int] = np.searchsorted(rules.heads, np.arange(rules.num_atoms + 1)).tolist()
        self.num_own_atoms = rules.num_own_atoms
        self.negating_themselves = set(rules.negating_themselves().tolist())
        self.moves = [
            (role, move) for role, moves in zip(program.roles, circuit.actions, strict=True) for move in moves
        ]
        inputs = (*(program.true[fact] for fact in circuit.facts), *(program.does[move] for move in self.moves))
        for node, atom in enumerate(inputs, start=1):
            self.values[atom] = 2 * node

    def run(self) -> None:
        """Add all gates, loops and outputs to the circuit."""
        working_on("building the circuit")
        outputs = self._output_atoms()
        wanted = [atom for lists in outputs.values() for atoms in lists for atom in atoms]
        for component in components_below(wanted, self._dependencies):
            check()
            if len(component) > 1 or component[0] in self.negating_themselves:
                self._loop(component)
            elif self._has_rules(component[0]):
                self.values[component[0]] = self._definition(component[0])
        for group, lists in outputs.items():
            self.circuit.outputs[group] = [
                self.builder.any_of(self.values[atom] for atom in atoms) for atoms in checked(lists)
            ]
        self.circuit.initial = self._initial()
        del self.circuit.outputs["init"]
        drop_dead(self.circuit)

    def _output_atoms(self) -> dict[str, list[list[int]]]:
        """Return the atoms of each output, by group. An output is true if at least one of its atoms holds."""
        program, circuit, goals = self.program, self.circuit, _goal_atoms(self.program)
        values = [(role, value) for role, own in zip(program.roles, circuit.goals, strict=True) for value in own]
        return {
            "legal": [[program.legal[move]] if move in program.legal else [] for move in self.moves],
            "terminal": [[program.terminal] if program.terminal else []],
            "goal": [goals[value] for value in values],
            "next": [[program.next[fact]] if fact in program.next else [] for fact in circuit.facts],
            "init": [[program.init[fact]] if fact in program.init else [] for fact in circuit.facts],
        }

    def _initial(self) -> list[bool]:
        """Return for each fact whether it holds in the first state; evaluate the circuit if some outputs are gates."""
        literals = self.circuit.outputs["init"]
        if max(literals, default=FALSE) <= TRUE:
            return [literal == TRUE for literal in literals]
        any_inputs = np.zeros((1, self.circuit.num_inputs), np.bool_)  # the first state does not depend on the inputs
        holds: list[bool] = evaluate(self.circuit, any_inputs)["init"][0].tolist()
        return holds

    def _has_rules(self, atom: int) -> bool:
        return self.first_rule[atom] < self.first_rule[atom + 1]

    def _read(self, atom: int) -> list[int]:
        """Return the literals in the bodies of the rules of an atom."""
        first, end = self.first_rule[atom], self.first_rule[atom + 1]
        return self.literals[self.offsets[first] : self.offsets[end]]

    def _dependencies(self, atom: int) -> list[int]:
        return [literal >> 1 for literal in self._read(atom)]

    def _loop(self, component: list[int]) -> None:
        """Translate a component of atoms that depend on each other into a loop."""
        self._refuse_negation(set(component))
        cutting, order = cut(component, self._dependencies)
        variables = {atom: self.builder.new_node() for atom in cutting}
        for atom, node in variables.items():
            self.values[atom] = 2 * node
        results = {}
        for atom in order:
            check()
            results[atom] = self._definition(atom)
            if atom not in variables:
                self.values[atom] = results[atom]
        self.circuit.loops.append(Loop(tuple(variables.values()), tuple(results[atom] for atom in variables)))

    def _definition(self, atom: int) -> GateLiteral:
        """Build the gates for the rules of an atom, and return the literal of the result."""
        values, literals, offsets = self.values, self.literals, self.offsets
        bodies = [
            [values[literal >> 1] ^ literal & 1 for literal in literals[offsets[rule] : offsets[rule + 1]]]
            for rule in range(self.first_rule[atom], self.first_rule[atom + 1])
        ]
        return self.builder.sum_of_products(bodies)

    def _refuse_negation(self, members: set[int]) -> None:
        """Raise NegationInCycleError if a rule of an atom in `members` contains the negation of one of them."""
        if not any(literal & 1 and literal >> 1 in members for atom in members for literal in self._read(atom)):
            return
        for atom in sorted(atom for atom in members if atom < self.num_own_atoms):
            for literal in self._read_through(atom):
                if literal & 1 and literal >> 1 in members:
                    raise NegationInCycleError(self.program.texts[atom], self.program.texts[literal >> 1])

    def _read_through(self, atom: int) -> Iterator[int]:
        """Yield the literals in the rules of an atom; for an atom that factoring added, those in its own rules."""
        for literal in self._read(atom):
            if literal >> 1 < self.num_own_atoms:
                yield literal
            else:
                yield from self._read_through(literal >> 1)
