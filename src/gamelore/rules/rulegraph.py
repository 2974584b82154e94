"""The ground rules of a game as a coloured graph, whose automorphisms are symmetries of the game.

Its vertices are the facts, the actions, other atoms and the rules. Edges lead from each rule to its head, from the
atoms in its body to the rule, those under a `not` told apart, from `next` of a fact to the fact and from `legal` of an
action to the action. Colours tell facts from actions, facts that hold at first from others, the actions of each role,
the goals of each role by their values, and `terminal`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuit import Circuit
from .colouring import Graph
from .ground import GroundProgram
from .groundrules import GroundRules, Ints, rules_of, simplify
from .tallies import count_at_once

HEAD, BODY, NEGATED, NEXT, LEGAL = range(5)  # kinds of edges
ATOM, RULE, FACT, INITIAL, OTHERS = range(5)  # colours; from OTHERS on, one for each of many things


@dataclass(frozen=True, slots=True)
class RuleGraph:
    """The graph, and the colours of its vertices, int64[vertices].

    The first vertices are the facts and then the actions; `live`, bool[facts + actions], says which of them the legal
    moves, the goals and the end depend on, sooner or later; these moves are, too.
    """

    graph: Graph
    colours: Ints
    live: NDArray[np.bool_]


def rule_graph(program: GroundProgram, circuit: Circuit) -> RuleGraph:
    """The graph of a game.

    The program may be made of other rules of the same game than the circuit: facts and actions that it does not have
    stay where they are, and those that only it has never hold.
    """
    drawing = _Drawing(program, circuit)
    graph = drawing.graph()
    return RuleGraph(graph, drawing.colours(graph), drawing.live(graph))


class _Drawing:
    """`points`, int64[facts + actions], are the atoms of the first vertices, 0 where there is none.

    `vertex`, int64[atoms], is the vertex of each atom, -1 for those that nothing depends on.
    """

    def __init__(self, program: GroundProgram, circuit: Circuit) -> None:
        self.program, self.circuit = program, circuit
        pairs = zip(program.roles, circuit.actions, strict=True)
        self.actions = [(role, move) for role, moves in pairs for move in moves]
        facts = [program.true.get(fact, 0) for fact in circuit.facts]
        self.points = np.array(facts + [program.does.get(action, 0) for action in self.actions], np.int64)
        self.following = np.array(list(self._following()), np.int64).reshape(-1, 3)
        self.ends: list[tuple[int, tuple[int, ...]]] = list(self._ends())
        self.rules = self._simplified()
        self.vertex, self.first_rule = self._numbered()

    def _following(self) -> Iterator[tuple[int, int, int]]:
        """(atom, point, kind): the atoms for `next` and `legal`, each with the fact or the action it speaks of."""
        for point, fact in enumerate(self.circuit.facts):
            if fact in self.program.next:
                yield self.program.next[fact], point, NEXT
        for point, action in enumerate(self.actions, start=self.circuit.num_facts):
            if action in self.program.legal:
                yield self.program.legal[action], point, LEGAL

    def _ends(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """The atoms for goals and the end, each with what sets it apart: the role and the value."""
        if self.program.terminal:
            yield self.program.terminal, (-1, 0)
        for (role, term), atom in self.program.goal.items():
            value = self.program.names.goal_value(term)
            if value is not None and role in self.program.roles:
                yield atom, (self.program.roles.index(role), value)

    def _simplified(self) -> GroundRules:
        """The rules that the game depends on."""
        rules = rules_of(self.program)
        rules.is_input[:] = False
        rules.is_input[self.points[self.points > 0]] = True
        wanted = [*self.following[:, 0].tolist(), *(atom for atom, _ in self.ends)]
        simplify(rules, wanted)
        self.ends += [(atom, (-2, *holds)) for atom, holds in count_at_once(rules, wanted).items()]
        return rules

    def _numbered(self) -> tuple[Ints, int]:
        rules, known = self.rules, self.points > 0
        is_vertex = np.zeros(rules.num_atoms, np.bool_)
        for atoms in (rules.heads, rules.literals >> 1, self.following[:, 0], [atom for atom, _ in self.ends]):
            is_vertex[np.asarray(atoms, np.int64)] = True
        is_vertex[self.points[known]] = False
        vertex = np.where(is_vertex, len(self.points) + np.cumsum(is_vertex) - 1, -1)
        vertex[self.points[known]] = np.flatnonzero(known)
        return vertex, len(self.points) + int(np.count_nonzero(is_vertex))

    def graph(self) -> Graph:
        """The vertices and edges."""
        rules, following = self.rules, self.following
        numbers = self.first_rule + np.arange(rules.num_rules)
        sources = numbers, self.vertex[rules.literals >> 1], self.vertex[following[:, 0]]
        targets = self.vertex[rules.heads], self.first_rule + rules.rule_of_literal(), following[:, 1]
        kinds = np.full(rules.num_rules, HEAD), np.where(rules.literals & 1, NEGATED, BODY), following[:, 2]
        return Graph(self.first_rule + rules.num_rules, *map(np.concatenate, (sources, targets, kinds)))

    def live(self, graph: Graph) -> NDArray[np.bool_]:
        """bool[facts + actions]: see RuleGraph."""
        moves = self.following[self.following[:, 2] == LEGAL, 1]
        ends = self.vertex[[atom for atom, _ in self.ends]]
        return graph.leading_to(np.concatenate([moves, ends]))[: len(self.points)]

    def colours(self, graph: Graph) -> Ints:
        """int64[vertices]."""
        num_facts, num_points = self.circuit.num_facts, len(self.points)
        colours = np.full(graph.num_vertices, ATOM)
        colours[self.first_rule :] = RULE
        colours[:num_facts] = np.where(self.circuit.initial, INITIAL, FACT)
        colours[num_facts:num_points] = OTHERS + np.repeat(
            np.arange(len(self.circuit.actions)), list(map(len, self.circuit.actions))
        )
        used = OTHERS + len(self.circuit.actions)
        said = {what: number for number, what in enumerate(sorted({what for _, what in self.ends}), start=used)}
        for atom, what in self.ends:
            colours[self.vertex[atom]] = said[what]
        return colours
