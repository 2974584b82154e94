"""Symmetries of a game, from automorphisms of its ground rules, and step counters (facts that count plies).

**Rule graph.** Vertices are the facts, the actions, the other atoms and the rules. Edges lead from each rule to its
head, from each atom of its body to the rule, from `next` of a fact to the fact, and from `legal` of an action to the
action. Edges from negated atoms are of another kind. Colours distinguish facts from actions, facts that hold in the
first state from other facts, the actions of each role, the goals of each role by value, and `terminal`.

An automorphism of this graph is a symmetry in every reachable state. It maps the legal moves and the successors of a
state to the legal moves and the successors of the image of the state. The state and its image have the same goals, and
both are terminal or neither is. Another rulesheet of the same game may show more symmetries, or fewer.

**Tallies.** An atom is a *tally* if there are some atoms, its *members*, and only the number of members that hold
decides whether the tally holds. An example is

    (<= (at_least ?k ?n) (next_cell ?j ?k) (at_least ?j ?n))
    (<= (at_least ?k ?n) (next_cell ?j ?k) (true (cell ?k x)) (succ ?m ?n) (at_least ?j ?m))

The atoms for the last cell do not depend on the order of the cells. But the rules depend on this order, which hides
symmetries. One rule that names all cells at once does not hide symmetries. Tallies are found bottom up. Suppose that
the bodies for an atom consist of tallies, and that each two of these tallies have the same members or no common member.
Then the atom is tabulated over the number of members that hold in each set of members. If the table depends only on the
sum of these numbers, the atom is a tally of all members. So every tally is proved.

**Step counters.** A step counter is a set of facts that count the plies and that influence only the end of a match. Its
properties are proved on the circuit:

- In states that are not terminal, the legal moves and the successors of all other facts are the same for every value of
  the counter. They read the counter only through `terminal`, which is false in these states.
- The counter depends neither on moves nor on other facts.
- Until the counter ends, `terminal` and the goals are the same for every value of the counter. When the counter ends,
  the match ends, or the counter does not change any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise, starmap
from math import inf, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..circuit import cache
from ..circuit.aig import FALSE, TRUE, Circuit, GateLiteral, Node, components_below, needed_nodes
from ..errors import GameloreError, GroundingError
from ..game.engines import pack_bits, unpack_bits
from ..game.game import Game
from ..gdl.limits import Budget, Limits, check
from ..gdl.syntax import Rulesheet
from ..ground.clingo import Names
from ..ground.optimize import rewrite
from ..ground.program import GroundProgram, GroundRules, Ints, drop_unneeded, ground, rules_of, simplify
from .automorphisms import Bounds, ColouredGraph, automorphisms
from .variables import members

REPEATABLE = Bounds(seconds=inf, work=20_000_000)
"""Bounds of about half a second for results that must not depend on time."""
MOST_POINTS = 2000  # facts and actions of a game whose symmetries are found within a second or two
LARGEST_TABLE = 5000  # largest number of entries of a table
MOST_LITERALS = 200  # largest number of literals in the rules of an atom that may be a tally
MOST_WORK = 500_000  # largest number of literals for all tables, about four seconds; above it no tally is replaced


@dataclass(frozen=True, slots=True)
class CountedAtom:
    """An atom that holds if and only if `holds[n]` is true, where n is the number of its members that hold."""

    members: frozenset[int]
    holds: tuple[bool, ...]


def count_at_once(rules: GroundRules, wanted: Sequence[int]) -> dict[int, tuple[bool, ...]]:
    """Replace rules that count step by step: write one rule for each tally.

    The body of the new rule contains the members and a new input atom. The new atom stands for the function `holds` of
    the tally; tallies with the same function share it. Return the function of each new atom. The rules must already be
    simplified. The new rules are only for graphs: do not evaluate or simplify them. The order of the rules does not
    matter.
    """
    return _Counting(rules, wanted).replace()


class _Counting:
    """A search for tallies.

    `bodies` contains the bodies of the rules of each atom. `tallies` contains the results of
    `_tallies_of`, by atom.
    """

    def __init__(self, rules: GroundRules, wanted: Sequence[int]) -> None:
        self.rules, self.wanted = rules, wanted
        self.bodies: dict[int, list[list[int]]] = {}
        literals, offsets = rules.literals.tolist(), rules.offsets.tolist()
        for rule, head in enumerate(rules.heads.tolist()):
            self.bodies.setdefault(head, []).append(literals[offsets[rule] : offsets[rule + 1]])
        self.tallies: dict[int, list[CountedAtom]] = {}
        self.work = 0

    def _dependencies(self, atom: int) -> list[int]:
        return [literal >> 1 for body in self.bodies.get(atom, ()) for literal in body]

    def replace(self) -> dict[int, tuple[bool, ...]]:
        for component in components_below(self.wanted, self._dependencies):
            atom = component[0]
            read = self._dependencies(atom)
            if len(component) == 1 and atom not in read and 1 < len(read) <= MOST_LITERALS:
                self.tallies[atom] = self._tallies_of(atom)
            if self.work > MOST_WORK:
                return {}
        largest = {atom: tallies[0] for atom, tallies in self.tallies.items() if tallies}
        # a tally is useless if its members are just the atoms in the rules of its atom
        chosen = {a: tally for a, tally in largest.items() if tally.members != frozenset(self._dependencies(a))}
        return self._written(chosen)

    def _tallies_of(self, atom: int) -> list[CountedAtom]:
        """Return the descriptions of an atom as a tally, one for each set of members; the largest set comes first."""
        by_members: dict[frozenset[int], CountedAtom] = {}
        for reading in self._readings(frozenset(self._dependencies(atom))):
            tally = self._tally(self.bodies[atom], reading)
            if tally is not None:
                by_members.setdefault(tally.members, tally)
        return sorted(by_members.values(), key=lambda tally: -len(tally.members))

    def _readings(self, atoms: frozenset[int]) -> Iterator[dict[int, CountedAtom]]:
        """Yield possible replacements of atoms by tallies; an atom can also stand for itself.

        First every atom stands for itself. Then all tallies with one set of members are used, for each set in turn.
        Finally the largest tally of each atom is used.
        """
        themselves = {atom: CountedAtom(frozenset([atom]), (False, True)) for atom in atoms}
        yield themselves
        tallies = [(atom, tally) for atom in atoms for tally in self.tallies.get(atom, ())]
        for common in {tally.members for _, tally in tallies}:
            yield themselves | {atom: tally for atom, tally in tallies if tally.members == common}
        yield themselves | dict(reversed(tallies))

    def _tally(self, bodies: Sequence[Sequence[int]], reading: Mapping[int, CountedAtom]) -> CountedAtom | None:
        """Return the tally that these bodies define if atoms are replaced by `reading`; None if it is not a tally."""
        blocks = list({tally.members: None for tally in reading.values()})
        sizes = [len(block) + 1 for block in blocks]
        if np.prod(sizes, dtype=np.float64) > LARGEST_TABLE or not _are_disjoint(blocks):
            return None
        self.work += sum(map(len, bodies))
        axes = {block: axis for axis, block in enumerate(blocks)}
        table = np.zeros(sizes, np.bool_)
        for body in bodies:
            holds = np.ones(sizes, np.bool_)
            for literal in body:
                tally = reading[literal >> 1]
                own = np.array(tally.holds) ^ bool(literal & 1)
                holds &= own.reshape([-1 if axis == axes[tally.members] else 1 for axis in range(len(sizes))])
            table |= holds
        number = np.add.reduce(np.indices(sizes)).ravel()
        often, positive = np.bincount(number), np.bincount(number, table.ravel())
        if ((positive > 0) & (positive < often)).any():
            return None
        return CountedAtom(frozenset().union(*blocks), tuple((positive > 0).tolist()))

    def _written(self, chosen: Mapping[int, CountedAtom]) -> dict[int, tuple[bool, ...]]:
        """Replace the rules of the chosen atoms by their tallies; return the function of each new atom."""
        if not chosen:
            return {}
        rules = self.rules
        kinds = sorted({tally.holds for tally in chosen.values()})
        atoms = rules.add_atoms(len(kinds))
        rules.is_input[atoms] = True
        stands_for = dict(zip(kinds, atoms.tolist(), strict=True))
        rules.keep_rules(~np.isin(rules.heads, list(chosen)))
        for size in {len(tally.members) for tally in chosen.values()}:
            own = [(head, tally) for head, tally in chosen.items() if len(tally.members) == size]
            bodies = [[*sorted(tally.members), stands_for[tally.holds]] for _, tally in own]
            rules.add_rules(np.array([head for head, _ in own], np.int64), 2 * np.array(bodies, np.int64))
        # more simplification could drop rules, because members may exclude each other or never hold
        drop_unneeded(rules, self.wanted)
        return {atom: holds for holds, atom in stands_for.items()}


def _are_disjoint(blocks: Sequence[frozenset[int]]) -> bool:
    return len(frozenset().union(*blocks)) == sum(map(len, blocks))


HEAD, BODY, NEGATED, NEXT, LEGAL = range(5)  # kinds of edges
ATOM, RULE, FACT, INITIAL, OTHERS = range(5)  # colours; roles, goals, `terminal` and counts get OTHERS, OTHERS + 1, ...


@dataclass(frozen=True, slots=True)
class RuleGraph:
    """The rule graph of a game, and the colours of its vertices, int64[vertices].

    The first vertices are the facts and then the actions. `live`, bool[facts + actions], says whether legal moves,
    goals or `terminal` depend on a fact or an action, in the same state or in later states. Moves that can be legal are
    live.
    """

    graph: ColouredGraph
    colours: Ints
    live: NDArray[np.bool_]


def rule_graph(program: GroundProgram, circuit: Circuit) -> RuleGraph:
    """Return the rule graph of a game.

    The program and the circuit may come from different versions of the rules, such as the rewritten rules. Every
    automorphism fixes the facts and actions that exist only in the circuit. Facts and actions that exist only in the
    program never hold.
    """
    drawing = _Drawing(program, circuit)
    graph = drawing.graph()
    return RuleGraph(graph, drawing.colours(graph), drawing.live(graph))


class _Drawing:
    """A rule graph under construction.

    `points`, int64[facts + actions], is the atom of each fact and action, 0 if there is none. `vertex`, int64[atoms],
    is the vertex of each atom, -1 if the atom is not needed.
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
        """Yield (atom, point, kind) for each atom of `next` or `legal`; `point` is the vertex of its fact or action."""
        for point, fact in enumerate(self.circuit.facts):
            if fact in self.program.next:
                yield self.program.next[fact], point, NEXT
        for point, action in enumerate(self.actions, start=self.circuit.num_facts):
            if action in self.program.legal:
                yield self.program.legal[action], point, LEGAL

    def _ends(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield the atom of `terminal` with (-1, 0), and the atom of each goal with its (role, value)."""
        if self.program.terminal:
            yield self.program.terminal, (-1, 0)
        for (role, term), atom in self.program.goal.items():
            value = self.program.names.goal_value(term)
            if value is not None and role in self.program.roles:
                yield atom, (self.program.roles.index(role), value)

    def _simplified(self) -> GroundRules:
        """Return the simplified rules that the game depends on; rules that count are replaced by tallies."""
        rules = rules_of(self.program)
        rules.is_input[:] = False
        rules.is_input[self.points[self.points > 0]] = True
        wanted = [*self.following[:, 0].tolist(), *(atom for atom, _ in self.ends)]
        simplify(rules, wanted)
        self.ends += [(atom, (-2, *holds)) for atom, holds in count_at_once(rules, wanted).items()]
        return rules

    def _numbered(self) -> tuple[Ints, int]:
        """Return the vertex of each atom, and the number of the first vertex that is a rule."""
        rules, has_atom = self.rules, self.points > 0
        is_vertex = np.zeros(rules.num_atoms, np.bool_)
        for atoms in (rules.heads, rules.literals >> 1, self.following[:, 0], [atom for atom, _ in self.ends]):
            is_vertex[np.asarray(atoms, np.int64)] = True
        is_vertex[self.points[has_atom]] = False
        vertex = np.where(is_vertex, len(self.points) + np.cumsum(is_vertex) - 1, -1)
        vertex[self.points[has_atom]] = np.flatnonzero(has_atom)
        return vertex, len(self.points) + int(np.count_nonzero(is_vertex))

    def graph(self) -> ColouredGraph:
        """Return the graph with all vertices and edges, without colours."""
        rules, following = self.rules, self.following
        numbers = self.first_rule + np.arange(rules.num_rules)
        sources = numbers, self.vertex[rules.literals >> 1], self.vertex[following[:, 0]]
        targets = self.vertex[rules.heads], self.first_rule + rules.rule_of_literal(), following[:, 1]
        kinds = np.full(rules.num_rules, HEAD), np.where(rules.literals & 1, NEGATED, BODY), following[:, 2]
        return ColouredGraph(self.first_rule + rules.num_rules, *map(np.concatenate, (sources, targets, kinds)))

    def live(self, graph: ColouredGraph) -> NDArray[np.bool_]:
        """Return bool[facts + actions]: see RuleGraph."""
        moves = self.following[self.following[:, 2] == LEGAL, 1]
        ends = self.vertex[[atom for atom, _ in self.ends]]
        return graph.leading_to(np.concatenate([moves, ends]))[: len(self.points)]

    def colours(self, graph: ColouredGraph) -> Ints:
        """Return the colours, int64[vertices]."""
        num_facts, num_points = self.circuit.num_facts, len(self.points)
        colours = np.full(graph.num_vertices, ATOM)
        colours[self.first_rule :] = RULE
        colours[:num_facts] = np.where(self.circuit.initial, INITIAL, FACT)
        num_actions = list(map(len, self.circuit.actions))
        colours[num_facts:num_points] = OTHERS + np.repeat(np.arange(len(num_actions)), num_actions)
        kinds = sorted({kind for _, kind in self.ends})
        for atom, kind in self.ends:
            colours[self.vertex[atom]] = OTHERS + len(num_actions) + kinds.index(kind)
        return colours


FOUND_BY = ("analysis.automorphisms", "analysis.symmetry", "analysis.variables")
"""The modules that stored symmetries depend on, in addition to the modules that compile."""
AFFORDABLE = Limits(seconds=3.0, literals=2_000_000)  # limits for grounding the rules, as written or rewritten


@dataclass(frozen=True, eq=False, repr=False)
class Symmetries:
    """A group of symmetries. Element s maps fact i to fact `facts[s, i]`, and action a to action `actions[s, a]`.

    The elements are distinct and form a group; element 0 is the identity. `mapping` tells what an element does, in
    texts of facts and moves.

    Attributes:
        game: the game.
        facts: int32[num, num_facts]; a fact has the number of its bit in the states of the native engine.
        actions: int32[num, num_actions].
        why: the reason why some symmetries may be missing; empty if none are missing.
    """

    game: Game
    facts: NDArray[np.int32]
    actions: NDArray[np.int32]
    why: str = ""

    @classmethod
    def trivial(cls, game: Game, why: str = "") -> Symmetries:
        """Return the group whose only element is the identity."""
        circuit = game.circuit
        num_facts, num_actions = (0, 0) if circuit is None else (circuit.num_facts, circuit.num_actions)
        facts, actions = (np.arange(count, dtype=np.int32)[None] for count in (num_facts, num_actions))
        return cls(game, facts, actions, why)

    @property
    def num(self) -> int:
        """Number of elements."""
        return len(self.facts)

    @cached_property
    def step_counter(self) -> StepCounter | None:
        """The facts of the game that only count plies; None if there are none."""
        return step_counter(self.game)

    def mapping(self, s: int) -> dict[str, dict[str, Any]]:
        """Return what element s changes: "facts", fact -> image, and "moves", role -> move -> image.

        Facts and moves that become themselves are left out.
        """
        game, actions = self.game, self.actions[s].tolist()
        circuit_actions = game.circuit.actions if game.circuit else [()] * game.num_roles
        firsts = accumulate(map(len, circuit_actions), initial=0)
        moves = {
            role: {game.move_text(number, a): game.move_text(number, actions[a]) for a in own if actions[a] != a}
            for number, (role, own) in enumerate(zip(game.roles, starmap(range, pairwise(firsts)), strict=True))
        }
        facts = {game.fact_text(f): game.fact_text(to) for f, to in enumerate(self.facts[s].tolist()) if f != to}
        return {"facts": facts, "moves": moves}

    def cycles(self, s: int) -> list[tuple[str, ...]]:
        """Return the cycles of facts of element s: (a, b, c) if a becomes b, b becomes c, and c becomes a.

        Cycles with facts of the first state come first. Facts that become themselves are left out.
        """
        initial = self.game.circuit.initial if self.game.circuit else []
        cycles = sorted(_cycles(self.facts[s]), key=lambda cycle: not initial[cycle[0]])
        return [tuple(map(self.game.fact_text, cycle)) for cycle in cycles]

    def row(self, s: int) -> dict[str, Any]:
        """Return element s as a row: its number, its order, its numbers of changed facts and moves, and its cycles.

        The order is the number of times after which everything is as it was.
        """
        facts, moves = _cycles(self.facts[s]), _cycles(self.actions[s])
        return {
            "symmetry": s,
            "order": lcm(*(len(cycle) for cycle in (*facts, *moves))),
            "facts": sum(map(len, facts)),
            "moves": sum(map(len, moves)),
            "cycles": self.cycles(s),
        }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each element, see `row`."""
        return list(map(self.row, range(self.num)))

    def __len__(self) -> int:
        return self.num

    def __repr__(self) -> str:
        counted = "1 symmetry, the identity" if self.num == 1 else f"{self.num} symmetries, including the identity"
        return f"<{counted}, of {self.game.name}{'; there may be more' if self.why else ''}>"

    @cached_property
    def inverse(self) -> NDArray[np.int32]:
        """int32[num]: the number of the inverse of each element."""
        number = {row.tobytes(): s for s, row in enumerate(np.hstack([self.facts, self.actions]))}
        undone = np.hstack([np.argsort(self.facts, axis=1), np.argsort(self.actions, axis=1)]).astype(np.int32)
        return np.array([number[row.tobytes()] for row in undone], np.int32)

    @cached_property
    def byte_tables(self) -> NDArray[np.uint64]:
        """uint64[num, 8 * words, 256, words]: tables for the images of states.

        The image of a state under element s is the OR of `byte_tables[s, k, b]` over its bytes, where b is byte k.
        """
        words = self.game.num_words
        tables = np.zeros((self.num, 8 * words, 256, words), np.uint64)
        elements = np.arange(self.num)[:, None]
        for i, image in enumerate(self.facts.T[:, :, None]):
            held = np.flatnonzero(np.arange(256) >> (i & 7) & 1)
            tables[elements, i >> 3, held, image >> 6] |= np.uint64(1) << (image & 63).astype(np.uint64)
        return tables

    def images(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the images of states, uint64[n, words], under all elements: uint64[n, num, words]."""
        images = np.empty((len(states), self.num, states.shape[1]), np.uint64)
        held = unpack_bits(states, self.facts.shape[1]).astype(np.bool_)
        for s in range(self.num):
            bits = np.empty_like(held)
            bits[:, self.facts[s]] = held
            images[:, s] = pack_bits(bits, states.shape[1])
        return images

    def keeping(self, facts: Iterable[str]) -> Symmetries:
        """Return the subgroup whose elements map this set of facts onto itself.

        Raise GameloreError if a text is not a fact of the game.
        """
        numbers = {self.game.fact_text(bit).lower(): bit for bit in range(self.facts.shape[1])}
        wanted = np.zeros(self.facts.shape[1], np.bool_)
        for fact in facts:
            if fact.lower() not in numbers:
                raise GameloreError(
                    f"expected facts that {self.game.name} can reach, got {fact}; game.facts(state) shows how facts "
                    "are written"
                )
            wanted[numbers[fact.lower()]] = True
        kept = (wanted[self.facts] == wanted).all(axis=1)
        return replace(self, facts=self.facts[kept], actions=self.actions[kept])


def _cycles(permutation: NDArray[np.int32]) -> list[list[int]]:
    """Return the cycles of length 2 or more of a permutation. Each cycle starts with its smallest number."""
    images = permutation.tolist()
    cycles, seen = [], set()
    for first in range(len(images)):
        cycle = [first]
        while first not in seen and images[cycle[-1]] != first:
            cycle.append(images[cycle[-1]])
        if len(cycle) > 1:
            cycles.append(cycle)
        seen.update(cycle)
    return cycles


def symmetries(game: Game, bounds: Bounds | None = None) -> Symmetries:
    """Return the symmetries of a game that keep its roles, goals and first state. The result is cached on disk.

    If the game is not compiled as a whole, or if its rules are too large to ground here, the result contains only the
    identity. If the search exceeds the bounds, the result is a subgroup. In these cases, `why` contains the reason.
    """
    if game.circuit is None or game.is_bounded:
        return find(game, bounds)
    key = cache.key_of(FOUND_BY, str(game.rulesheet), game.circuit.facts, game.circuit.actions, bounds or Bounds())
    arrays = cache.load_arrays(key)
    if arrays is not None:
        return Symmetries(game, arrays["facts"], arrays["actions"], str(arrays["why"]))
    group = find(game, bounds)
    # a budget around this call may have cut the grounding
    if group.num > 1 or not group.why or not Budget(AFFORDABLE).is_cut:
        cache.store_arrays(key, {"facts": group.facts, "actions": group.actions, "why": np.array(group.why)})
    return group


def bounded_symmetries(game: Game, size: int) -> Symmetries:
    """Return the symmetries of a game, or a subgroup if their `byte_tables` would have more than `size` bytes."""
    group = symmetries(game)
    most = max(1, size // (8 * 256 * 8 * game.num_words**2))
    return group if group.num <= most else symmetries(game, Bounds(most))


def quick_symmetries(game: Game) -> Symmetries:
    """Return symmetries that are found within a second or two; none in a large game.

    They do not depend on time, unless grounding the rules takes as long as AFFORDABLE allows.
    """
    circuit = game.circuit
    if circuit is not None and circuit.num_facts + circuit.num_actions > MOST_POINTS:
        return Symmetries.trivial(game, f"{game.name} has more than {MOST_POINTS} facts and actions")
    return symmetries(game, REPEATABLE)


def find(game: Game, bounds: Bounds | None = None) -> Symmetries:
    """Compute the result of `symmetries` without the cache. The elements are sorted."""
    circuit = game.circuit
    if circuit is None or game.is_bounded:
        return Symmetries.trivial(game, f"{game.name} is not compiled as a whole: {game.engine_reason}")
    try:
        program = affordable_program(game.rulesheet, Names(game.rulesheet))
    except GroundingError as error:
        return Symmetries.trivial(game, str(error))
    drawn = rule_graph(program, circuit)
    elements, why = automorphisms(drawn.graph, drawn.colours, drawn.live, bounds or Bounds())
    if len(elements) > 1:
        elements = elements[np.lexsort(elements.T[::-1])]
    return Symmetries(game, elements[:, : circuit.num_facts], elements[:, circuit.num_facts :] - circuit.num_facts, why)


def affordable_program(sheet: Rulesheet, names: Names) -> GroundProgram:
    """Ground the rules as written. If they are too large, ground the rewritten rules.

    The rules as written come first because rewriting may break symmetries. Raise GroundingError if the rewritten rules
    are too large, too.
    """
    try:
        return ground(sheet, AFFORDABLE, names)
    except GroundingError:
        return ground(rewrite(sheet), AFFORDABLE, names)


LONGEST = 10_000  # largest number of plies for which a counter is followed
SHORTEST = 2  # a counter must have more values than this
MOST_VALUES = 3_000_000  # of nodes in the course of a counter, about a second for each million

FactSet = frozenset[int]  # the bits of facts
Course = NDArray[np.uint64]  # [values, words]: values of facts from the first state on, without repetition
Gates = dict[tuple[GateLiteral, GateLiteral], GateLiteral]  # the literal of each conjunction that is not in the circuit


@dataclass(frozen=True, slots=True, eq=False)
class StepCounter:
    """A step counter of a game: a set of facts that count the plies.

    facts: the bit numbers of the facts in states of the native engine, sorted by the time at which they first hold
    mask: the bits of all these facts, uint64[words]
    first: the bits of the facts that hold in the first state, uint64[words]
    last: the bits of the facts that hold at the end of the count, uint64[words]
    length: the number of plies from the first state to the end of the count
    ends: whether every match is over at the end of the count

    Several sets of facts that count independently form one counter, so more than one fact may hold at a time.
    """

    facts: tuple[int, ...]
    mask: NDArray[np.uint64]
    first: NDArray[np.uint64]
    last: NDArray[np.uint64]
    length: int
    ends: bool


def step_counter(game: Game) -> StepCounter | None:
    """Return the step counter of a game; None if it has none, or if the game is not compiled as a whole."""
    circuit = game.circuit
    if circuit is None or game.is_bounded or not all(circuit.actions):
        return None
    parts = _left_alone(circuit)
    course, again = course_of(game, _joined(parts))
    changing = _held(game, np.bitwise_or.reduce(course ^ course[0]))
    moving = (part for part in parts if not part.isdisjoint(changing))
    counting = [part for part in moving if len(_of(game, part, course)) > SHORTEST]
    standing = _joined(part for part in counting if len(_of(game, part, course[again:])) == 1)
    candidates = (_joined(counting), standing, *counting)  # some facts count only in combination
    counters = (_cap(game, circuit, _of(game, part, course), must_end=not part <= standing) for part in candidates)
    return next(filter(None, counters), None)


def _joined(parts: Iterable[FactSet]) -> FactSet:
    return frozenset().union(*parts)


def _of(game: Game, part: FactSet, course: Course) -> Course:
    """Return the course of a part of the facts: its values, without repetition."""
    check()
    values: Course = course & packed(game, part)
    return values[np.sort(np.unique(values, axis=0, return_index=True)[1])]


def _cap(game: Game, circuit: Circuit, course: Course, must_end: bool) -> StepCounter | None:
    """Return the counter with this course; None if `terminal` or a goal changes before the count ends.

    must_end: return None also if the match does not end with the count.
    """
    outputs = _outputs_along(game, circuit, course)
    ends = bool(outputs) and outputs[-1][0] == TRUE
    if len(outputs) <= SHORTEST or len(set(outputs[: len(outputs) - ends])) != 1 or (must_end and not ends):
        return None
    values = course[: len(outputs)]
    values = values & ~np.bitwise_and.reduce(values)
    facts = tuple(dict.fromkeys(fact for value in values for fact in sorted(_held(game, value))))
    return StepCounter(facts, packed(game, facts), values[0], values[-1], len(values) - 1, ends)


class Groups:
    """Disjoint sets of the numbers below n."""

    def __init__(self, n: int) -> None:
        self._above = list(range(n))

    def root(self, member: int) -> int:
        while self._above[member] != member:
            self._above[member] = member = self._above[self._above[member]]
        return member

    def join(self, members: Iterable[int]) -> None:
        roots = {self.root(member) for member in members}
        for root in roots:
            self._above[root] = min(roots)

    def lists(self) -> list[list[int]]:
        lists: dict[int, list[int]] = {}
        for member in range(len(self._above)):
            lists.setdefault(self.root(member), []).append(member)
        return list(lists.values())

    def copy(self) -> Groups:
        groups = Groups(0)
        groups._above = list(self._above)
        return groups


def _left_alone(circuit: Circuit) -> list[FactSet]:
    """Return the smallest sets of facts that depend neither on moves nor on other facts, and decide no other facts.

    Legal moves must not depend on them. The sets are sorted by their last facts.
    """
    end = circuit.outputs["terminal"][0] >> 1
    facts, actions = range(circuit.num_facts), range(circuit.num_facts, circuit.num_inputs)
    acted = _reads(circuit, {1 + action: 1 for action in actions}, end)
    following = [literal >> 1 for literal in circuit.outputs["next"]]
    own = [fact for fact in facts if not acted[following[fact]]]
    place = {fact: number for number, fact in enumerate(own)}
    elsewhere = 1 << len(own)
    seeds = {1 + fact: 1 << place[fact] if fact in place else elsewhere for fact in (*facts, *actions)}
    read = _reads(circuit, seeds, end)
    decided_by = [read[following[fact]] for fact in facts]
    refused = 0
    for literal in circuit.outputs["legal"]:
        refused |= read[literal >> 1]
    groups = Groups(len(own))
    for fact, bits in enumerate(decided_by):
        check()
        if fact not in place:
            refused |= bits
            continue
        groups.join([place[fact], *members(bits & ~elsewhere)])
        if bits & elsewhere:
            refused |= 1 << place[fact]
    outside = set(members(refused))
    alone = (group for group in groups.lists() if outside.isdisjoint(group))
    return [frozenset(own[number] for number in group) for group in sorted(alone, key=max)]


def _reads(circuit: Circuit, seeds: Mapping[Node, int], cut: Node) -> list[int]:
    """Return for each node the union of the seeds on which it depends, as bits; ignore paths through the node `cut`."""
    read = [0] * len(circuit.left)
    for node, bits in seeds.items():
        read[node] = bits
    read[cut] = 0
    before: list[int] = []
    while before != read:
        before = list(read)
        for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
            if left >= 0 and node != cut:
                read[node] = read[left >> 1] | read[right >> 1]
        for loop in circuit.loops:
            for node, result in zip(loop.variables, loop.results, strict=True):
                read[node] |= read[result >> 1]
        if not circuit.loops:
            break
    return read


def course_of(game: Game, own: Collection[int], longest: int = LONGEST) -> tuple[Course, int]:
    """Return the course of these facts, and the index of the value that follows its last value.

    Nothing else affects these facts. A course ends after the `longest` number of values; the index is 0 then.

    Raises GroundingError if the present budget is used up.
    """
    assert game.circuit is not None
    mask = packed(game, own)
    joint = np.cumsum([0, *map(len, game.circuit.actions[:-1])]).astype(np.int32)[None]  # any joint move will do
    state = game.initial[None]
    course: list[NDArray[np.uint64]] = []
    place: dict[bytes, int] = {}
    while (value := (state & mask).tobytes()) not in place and len(course) < longest:
        place[value] = len(course)
        course.append(state & mask)
        state = state & ~mask | game.next(state, joint) & mask
    return np.concatenate(course), place.get(value, 0)


def packed(game: Game, facts: Iterable[int]) -> NDArray[np.uint64]:
    """Return the state, uint64[words], in which only these facts hold."""
    held = np.zeros((1, 64 * game.num_words), np.bool_)
    held[0, list(facts)] = True
    packed: NDArray[np.uint64] = pack_bits(held, game.num_words)[0]
    return packed


def _held(game: Game, state: NDArray[np.uint64]) -> FactSet:
    """Return the facts that hold in a state, uint64[words]."""
    return frozenset(np.flatnonzero(unpack_bits(state[None], 64 * game.num_words)[0]).tolist())


def _outputs_along(game: Game, circuit: Circuit, course: Course) -> list[tuple[GateLiteral, ...]]:
    """Return literals for `terminal` and the goals, for each value of the course until the match is over.

    Equal literals stand for equal functions. The result is empty if a loop reads the counter, because loops are not
    analysed, and where it would take seconds.
    """
    outputs = circuit.outputs["terminal"] + circuit.outputs["goal"]
    own = _held(game, np.bitwise_or.reduce(course))
    read = _reads(circuit, {1 + fact: 1 for fact in own}, FALSE)
    depending = [node for node in np.flatnonzero(needed_nodes(circuit, outputs)).tolist() if read[node]]
    if not {node for loop in circuit.loops for node in loop.variables}.isdisjoint(depending):
        return []
    gates: Gates = {}

    def fixed(held: FactSet) -> tuple[GateLiteral, ...]:
        """Return the outputs for the states in which, of the facts of the counter, only those in `held` hold."""
        values: dict[Node, GateLiteral] = {}

        def value(literal: GateLiteral) -> GateLiteral:
            return values.get(literal >> 1, literal & ~1) ^ literal & 1

        for node in depending:
            left, right = circuit.left[node], circuit.right[node]
            if left < 0:
                values[node] = TRUE if node - 1 in held else FALSE
            else:
                values[node] = _conjunction(value(left), value(right), len(circuit.left), gates)
        return tuple(map(value, outputs))

    course_of_outputs: list[tuple[GateLiteral, ...]] = []
    for value in course:
        check()
        course_of_outputs.append(fixed(_held(game, value)))
        if len(course_of_outputs) * len(depending) > MOST_VALUES:
            return []
        if course_of_outputs[-1][0] == TRUE:
            break
    return course_of_outputs


def _conjunction(a: GateLiteral, b: GateLiteral, num_nodes: int, gates: Gates) -> GateLiteral:
    """Return the literal of a AND b, from the circuit or from a new gate that is added to `gates`."""
    a, b = min(a, b), max(a, b)
    if a <= TRUE:
        return b if a else FALSE
    if a ^ b <= 1:
        return a if a == b else FALSE
    return gates.setdefault((a, b), 2 * (num_nodes + len(gates)))
