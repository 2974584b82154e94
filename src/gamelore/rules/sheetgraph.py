"""A rulesheet as a coloured graph, the same one whatever its names are and in whatever order its rules stand.

Its vertices are the names, and then, rule by rule, what stands there: the rule, its variables, and every condition,
atom and function with something inside. Edges lead from each of these to its name and to what is in it: to arguments by
their places, to conditions, branches and the sides of a `distinct` by none. Colours tell apart what is of different
kinds, and give the words of GDL, whole numbers and declared roles, by their order, colours of their own.

So isomorphisms of two such graphs are all the ways to read one sheet as the other in other words: other names and
variables, another order of rules, of conditions, of the sides of a `distinct`. Names of relations and of terms are
different things, even where they are one word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .colouring import Graph
from .gdl import KEYWORD_ARITY, And, Atom, Condition, Constant, Distinct, Function, Not, Or, Rule, Rulesheet, Term
from .groundrules import Ints, Words, mixed

NAME, PART, HEAD, FIRST = range(4)  # kinds of edges; FIRST and those behind it: to the first argument, the second, ..
LAST = 7  # arguments from this one on have a vertex that tells their place
MAX_DIGITS = 9  # of numbers that all scramblers take for such; the field's common one parses 32 bits
SIGHTS = 50_000_000  # edges to look along for a hash, a few seconds
FEWEST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class SheetGraph:
    """The graph of a sheet; `colours`, int64[vertices], do not depend on the order of anything.

    terms         the names of constants and functions as first spelled, in the order of first appearance; these are
                  the first vertices
    num_names     how many vertices are names, of terms or of relations
    rules         int64[rules + 1], the first vertex of each rule, and the end
    edges         int64[rules + 1], the same for the edges
    roles_stand   whether facts declare every role, so that their order is known whatever the names are
    """

    graph: Graph
    colours: Ints
    terms: tuple[str, ...]
    num_names: int
    rules: Ints
    edges: Ints
    roles_stand: bool

    def vertices(self, rule: int) -> slice:
        """Those of a rule."""
        return slice(int(self.rules[rule]), int(self.rules[rule + 1]))

    def part(self, rule: int) -> Graph:
        """The graph of one rule without the names."""
        here, own = self.vertices(rule), slice(int(self.edges[rule]), int(self.edges[rule + 1]))
        sources, targets, kinds = (of[own] for of in (self.graph.sources, self.graph.targets, self.graph.kinds))
        inside = targets >= self.num_names
        return Graph(here.stop - here.start, sources[inside] - here.start, targets[inside] - here.start, kinds[inside])


def sheet_graph(sheet: Rulesheet) -> SheetGraph:
    """The graph of a sheet; vertices and edges are in the order of the text. Linear in its length."""
    drawing = _Drawing()
    for rule in sheet.rules:
        drawing.rule(rule)
    return drawing.finished(_declared_roles(sheet))


def shape_hash(sheet: Rulesheet) -> str:
    """SHA-256 in hexadecimal of what a sheet is but for its names, and the order of its rules and conditions.

    Equal for sheets whose graphs are isomorphic; seldom for others, but it can be, as vertices are told apart by
    their surroundings only. No more than a few seconds for a sheet of a megabyte: then it is told by less of them.
    """
    drawn = sheet_graph(sheet)
    colours = np.sort(_told_apart(drawn.graph, drawn.colours.astype(np.uint64)))
    return hashlib.sha256(colours.astype("<u8").tobytes()).hexdigest()


def _told_apart(graph: Graph, colours: Words) -> Words:
    """Colours made, round after round, of those around, until no more vertices are told apart; uint64[vertices].

    They are hashes and no numbers in any order, so that they are the same for the same surroundings in every sheet.
    """
    places, neighbours, labels = graph.around(np.arange(graph.num_vertices))
    firsts, between = np.flatnonzero(np.diff(places, prepend=-1)), mixed(labels.astype(np.uint64))
    num_colours = len(np.unique(colours))
    for _ in range(max(FEWEST_ROUNDS, SIGHTS // max(1, len(between)))):
        sights = np.add.reduceat(mixed(colours[neighbours] ^ between), firsts) if len(firsts) else colours
        colours = mixed(colours ^ mixed(sights))
        before, num_colours = num_colours, len(np.unique(colours))
        if num_colours == before:
            break
    return colours


def _declared_roles(sheet: Rulesheet) -> dict[str, int] | None:
    """The roles with their places; None where they are not all constants declared by facts."""
    declared: dict[str, int] = {}
    for rule in sheet.rules:
        if rule.head.name == "role":
            (role,) = rule.head.args
            if rule.body or not isinstance(role, Constant):
                return None
            declared.setdefault(role.name, len(declared))
    return declared


def _is_number(name: str) -> bool:
    """Whether scramblers of names leave it alone. One with a sign means nothing in GDL, so it may be any name."""
    return name.isascii() and name.isdecimal() and len(name) <= MAX_DIGITS


class _Drawing:
    """Vertices and edges as they come. Vertices of rules are 0, 1, ..; name i is ~(2 i) of terms, ~(2 i + 1) else."""

    def __init__(self) -> None:
        self.edges: list[int] = []  # source, target, kind, source, ..
        self.colours: list[int] = []
        self.terms: dict[str, int] = {}
        self.spellings: list[str] = []
        self.relations: dict[str, int] = {}
        self.variables: dict[str, int] = {}
        self.first_vertices, self.first_edges = [0], [0]
        self._kinds: dict[tuple[str, int], int] = {}

    def vertex(self, what: str, number: int = 0) -> int:
        if (what, number) not in self._kinds:
            self._kinds[what, number] = _colour(what, number)
        self.colours.append(self._kinds[what, number])
        return len(self.colours) - 1

    def rule(self, rule: Rule) -> None:
        self.variables = {}
        if rule.body:
            vertex = self.vertex("rule")
            self.edges += (vertex, self.atom(rule.head), HEAD)
            self.parts(vertex, map(self.condition, rule.body))
        else:
            self.atom(rule.head, "fact")
        self.first_vertices.append(len(self.colours))
        self.first_edges.append(len(self.edges) // 3)

    def condition(self, condition: Condition) -> int:
        match condition:
            case Atom():
                return self.atom(condition)
            case Distinct(left, right):
                return self.parts(self.vertex("distinct"), map(self.term, (left, right)))
            case Not(inner):
                return self.parts(self.vertex("not"), map(self.condition, (inner,)))
            case Or(parts) | And(parts):
                what = "or" if isinstance(condition, Or) else "and"
                return self.parts(self.vertex(what), map(self.condition, parts))

    def parts(self, vertex: int, parts: Iterable[int]) -> int:
        for part in parts:
            self.edges += (vertex, part, PART)
        return vertex

    def atom(self, atom: Atom, what: str = "atom") -> int:
        vertex = self.vertex(what, len(atom.args))
        number = self.relations.setdefault(atom.name, len(self.relations))
        self.edges += (vertex, ~(2 * number + 1), NAME)
        return self.arguments(vertex, atom.args)

    def term(self, term: Term) -> int:
        match term:
            case Constant():
                return self.name(term)
            case Function():
                vertex = self.vertex("function", len(term.args))
                self.edges += (vertex, self.name(term), NAME)
                return self.arguments(vertex, term.args)
        if term.name not in self.variables:
            self.variables[term.name] = self.vertex("variable")
        return self.variables[term.name]

    def name(self, term: Constant | Function) -> int:
        number = self.terms.setdefault(term.name, len(self.terms))
        if number == len(self.spellings):
            self.spellings.append(term.spelling)
        return ~(2 * number)

    def arguments(self, vertex: int, arguments: Sequence[Term]) -> int:
        for place, argument in enumerate(arguments, start=FIRST):
            if place < LAST:
                self.edges += (vertex, self.term(argument), place)
            else:
                between = self.vertex("argument", place)
                self.edges += (vertex, between, LAST, between, self.term(argument), LAST)
        return vertex

    def finished(self, roles: dict[str, int] | None) -> SheetGraph:
        num_names = len(self.terms) + len(self.relations)
        of_terms = [_colour_of_term(name, (roles or {}).get(name)) for name in self.terms]
        of_relations = [_colour("relation", name if name in KEYWORD_ARITY else "") for name in self.relations]
        ends = np.array(self.edges, np.int64).reshape(-1, 3)
        sources, targets, kinds = ends[:, 0] + num_names, self._numbered(ends[:, 1]), ends[:, 2].copy()
        return SheetGraph(
            graph=Graph(num_names + len(self.colours), sources, targets, kinds),
            colours=np.array(of_terms + of_relations + self.colours, np.int64),
            terms=tuple(self.spellings),
            num_names=num_names,
            rules=num_names + np.array(self.first_vertices),
            edges=np.array(self.first_edges),
            roles_stand=roles is not None,
        )

    def _numbered(self, vertices: Ints) -> Ints:
        """The final numbers: names of terms, names of relations, the rest."""
        is_relation, number = ~vertices & 1, ~vertices >> 1
        numbers: Ints = np.where(
            vertices < 0, number + len(self.terms) * is_relation, vertices + len(self.terms) + len(self.relations)
        )
        return numbers


def _colour_of_term(name: str, role: int | None) -> int:
    return _colour("term" if role is None else f"role {role}", name if _is_number(name) else "")


def _colour(what: str, detail: str | int) -> int:
    """A number of 64 bits that is the same in every sheet and process."""
    digest = hashlib.blake2b(f"{what} {detail}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
