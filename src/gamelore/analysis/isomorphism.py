"""Isomorphism of rulesheets: recognise a game under other names (a scrambled rulesheet), prove it, translate names.

`sheet_graph` makes a coloured graph that does not depend on names or on the order of rules. Its first vertices are the
names. The next vertices are, rule by rule: the rule, its variables, and every condition, atom and compound function.
Edges lead from each of these vertices to its name and to its parts. The edges to arguments show the position of the
argument; the edges to conditions, to branches and to the sides of a `distinct` show no order. Colours distinguish the
kinds of vertices. Each keyword of GDL, each whole number and each declared role (by its number) has its own colour. So
each isomorphism of two such graphs is a way to rename and reorder one sheet so that it becomes the other sheet. If a
word names a relation and also a term, it has two vertices.

`find_renaming` looks for an isomorphism. If only names differ, the two graphs are already equal. Otherwise both graphs
are refined. As long as several names of a sheet have the same colour, one of these names in each sheet gets the same
new colour (it is *individualised*), and both graphs are refined again. Next, the rules are compared one by one. Finally
all edges are compared, which proves the isomorphism. (This is individualisation and refinement as in McKay 1981,
without pruning by automorphisms. Instead, each step first tries the simplest pairing: it sorts the names of each colour
by their first appearance, and pairs them in this order. If names of the same colour are interchangeable, this ends the
search.)
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..gdl import syntax
from ..ground.program import Ints, Words, mixed
from .automorphisms import COLOURS, ColouredGraph, Colouring

NAME, PART, HEAD, FIRST = range(4)  # kinds of edges; FIRST is the edge to argument 1, FIRST + 1 to argument 2, ...
LAST = 7  # kind of the edges to all later arguments, which have an extra vertex for their position
MAX_DIGITS = 9  # longest whole number that every scrambler keeps; the most common scrambler parses 32-bit numbers
SIGHTS = 50_000_000  # largest number of edges to visit for a hash, which takes a few seconds
FEWEST_ROUNDS = 8
FEW_ROUNDS = 3  # before a search for an isomorphism
CONSONANTS, VOWELS = "bdfghjklmnprstvwz", "aeiou"
SYLLABLES = 3  # smallest number of syllables in a scrambled name

_WORD = re.compile(r"[^\s\ufeff();]+")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")

Tick = Callable[[], None]
"""A function that is called from time to time; it raises TimeoutError if time is up."""


@dataclass(frozen=True, slots=True)
class SheetGraph:
    """The graph of a sheet.

    colours       int64[vertices], independent of the order of rules and conditions
    terms         the names of constants and functions, as spelled at first, in order of first appearance; these are the
                  first vertices
    num_names     number of vertices that are names, of terms or of relations
    rules         int64[rules + 1], the first vertex of each rule, and at the end the number of all vertices
    edges         int64[rules + 1], the first edge of each rule, and at the end the number of all edges
    roles_stand   whether ground facts declare every role, so that the order of roles does not depend on names
    """

    graph: ColouredGraph
    colours: Ints
    terms: tuple[str, ...]
    num_names: int
    rules: Ints
    edges: Ints
    roles_stand: bool

    def vertices(self, rule: int) -> slice:
        """Return the range of vertices of a rule."""
        return slice(int(self.rules[rule]), int(self.rules[rule + 1]))

    def part(self, rule: int) -> ColouredGraph:
        """Return the graph of one rule, without the vertices of names and the edges to them."""
        here, own = self.vertices(rule), slice(int(self.edges[rule]), int(self.edges[rule + 1]))
        ends = np.array([self.graph.sources[own], self.graph.targets[own]])
        inside = ends[1] >= self.num_names
        sources, targets = ends[:, inside] - here.start
        return ColouredGraph(here.stop - here.start, sources, targets, self.graph.kinds[own][inside])


def sheet_graph(sheet: syntax.Rulesheet) -> SheetGraph:
    """Return the graph of a sheet in linear time; vertices and edges are in the order of the text."""
    drawing = _Drawing(_declared_roles(sheet))
    for rule in sheet.rules:
        drawing.rule(rule)
    return drawing.finished()


def shape_hash(sheet: syntax.Rulesheet) -> str:
    """Return a SHA-256 hash, in hexadecimal, that ignores names and the order of rules and conditions.

    Sheets with isomorphic graphs have equal hashes. Other sheets seldom have equal hashes; it can happen because
    refinement distinguishes vertices only by their surroundings. For a large sheet there are fewer rounds of
    refinement, so that a sheet of one megabyte takes a few seconds at most.
    """
    drawn = sheet_graph(sheet)
    colours = np.sort(_told_apart(drawn.graph, drawn.colours.astype(np.uint64)))
    return hashlib.sha256(colours.astype("<u8").tobytes()).hexdigest()


def _told_apart(graph: ColouredGraph, colours: Words, most_rounds: int | None = None) -> Words:
    """Refine colours, uint64[vertices], until a round adds no new colour.

    There are at most `most_rounds` rounds, or by default as many as the work SIGHTS allows. The colours are hashes, so
    vertices with equal surroundings have equal colours in every sheet.
    """
    places, neighbours, labels = graph.around(np.arange(graph.num_vertices))
    firsts, between = np.flatnonzero(np.diff(places, prepend=-1)), mixed(labels.astype(np.uint64))
    num_colours = len(np.unique(colours))
    for _ in range(most_rounds or max(FEWEST_ROUNDS, SIGHTS // max(1, len(between)))):
        sights = np.add.reduceat(mixed(colours[neighbours] ^ between), firsts) if len(firsts) else colours
        colours = mixed(colours ^ mixed(sights))
        before, num_colours = num_colours, len(np.unique(colours))
        if num_colours == before:
            break
    return colours


def _declared_roles(sheet: syntax.Rulesheet) -> dict[syntax.Term, int] | None:
    """Return the number of each role, in order of declaration; None if a rule or a variable declares a role."""
    declared: dict[syntax.Term, int] = {}
    for rule in sheet.rules:
        if rule.head.name == "role":
            (role,) = rule.head.args
            if rule.body or syntax.variables_of(role):
                return None
            declared.setdefault(role, len(declared))
    return declared


def _declares_compound_role(rule: syntax.Rule) -> bool:
    """Return whether a rule declares a role such as (player 1). Its fact has the colour of the role, not its name."""
    return rule.head.name == "role" and isinstance(rule.head.args[0], syntax.Function)


def _is_number(name: str) -> bool:
    """Return whether a name is a whole number, which scramblers do not rename.

    A number with a sign has no meaning in GDL, so it counts as an ordinary name.
    """
    return name.isascii() and name.isdecimal() and len(name) <= MAX_DIGITS


class _Drawing:
    """A graph under construction: its vertices and edges so far.

    The vertices of rules have the numbers 0, 1, ... The name of term i has the number ~(2 i), and the name of
    relation i has the number ~(2 i + 1).

    roles: the number of each role; None if not only ground facts declare roles.
    """

    def __init__(self, roles: dict[syntax.Term, int] | None) -> None:
        self.roles = roles
        self.edges: list[int] = []  # source, target and kind of each edge, one after the other
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

    def rule(self, rule: syntax.Rule) -> None:
        self.variables = {}
        if rule.body:
            vertex = self.vertex("rule")
            self.edges += (vertex, self.atom(rule.head), HEAD)
            self.parts(vertex, map(self.condition, rule.body))
        else:
            number = (self.roles or {}).get(rule.head.args[0]) if _declares_compound_role(rule) else None
            self.atom(rule.head, "fact" if number is None else f"fact of role {number}")
        self.first_vertices.append(len(self.colours))
        self.first_edges.append(len(self.edges) // 3)

    def condition(self, condition: syntax.Condition) -> int:
        match condition:
            case syntax.Atom():
                return self.atom(condition)
            case syntax.Distinct(left, right):
                return self.parts(self.vertex("distinct"), map(self.term, (left, right)))
            case syntax.Not(inner):
                return self.parts(self.vertex("not"), map(self.condition, (inner,)))
            case syntax.Or(parts) | syntax.And(parts):
                what = "or" if isinstance(condition, syntax.Or) else "and"
                return self.parts(self.vertex(what), map(self.condition, parts))

    def parts(self, vertex: int, parts: Iterable[int]) -> int:
        for part in parts:
            self.edges += (vertex, part, PART)
        return vertex

    def atom(self, atom: syntax.Atom, what: str = "atom") -> int:
        vertex = self.vertex(what, len(atom.args))
        number = self.relations.setdefault(atom.name, len(self.relations))
        self.edges += (vertex, ~(2 * number + 1), NAME)
        return self.arguments(vertex, atom.args)

    def term(self, term: syntax.Term) -> int:
        match term:
            case syntax.Constant():
                return self.name(term)
            case syntax.Function():
                vertex = self.vertex("function", len(term.args))
                self.edges += (vertex, self.name(term), NAME)
                return self.arguments(vertex, term.args)
        if term.name not in self.variables:
            self.variables[term.name] = self.vertex("variable")
        return self.variables[term.name]

    def name(self, term: syntax.Constant | syntax.Function) -> int:
        number = self.terms.setdefault(term.name, len(self.terms))
        if number == len(self.spellings):
            self.spellings.append(term.spelling)
        return ~(2 * number)

    def arguments(self, vertex: int, arguments: Sequence[syntax.Term]) -> int:
        for place, argument in enumerate(arguments, start=FIRST):
            if place < LAST:
                self.edges += (vertex, self.term(argument), place)
            else:
                between = self.vertex("argument", place)
                self.edges += (vertex, between, LAST, between, self.term(argument), LAST)
        return vertex

    def finished(self) -> SheetGraph:
        """Return the graph. Its vertices are the names of terms, the names of relations, and the vertices of rules."""
        num_terms, num_names = len(self.terms), len(self.terms) + len(self.relations)
        roles = (self.roles or {}).items()
        kinds = {role.name: f"role {number}" for role, number in roles if isinstance(role, syntax.Constant)}
        of_terms = [_colour(kinds.get(name, "term"), name if _is_number(name) else "") for name in self.terms]
        of_relations = [_colour("relation", name if name in syntax.KEYWORD_ARITY else "") for name in self.relations]
        edges = np.array(self.edges, np.int64).reshape(-1, 3)
        targets = edges[:, 1]
        targets = np.where(targets < 0, (~targets >> 1) + num_terms * (~targets & 1), targets + num_names)
        return SheetGraph(
            graph=ColouredGraph(num_names + len(self.colours), edges[:, 0] + num_names, targets, edges[:, 2].copy()),
            colours=np.array(of_terms + of_relations + self.colours, np.int64),
            terms=tuple(self.spellings),
            num_names=num_names,
            rules=num_names + np.array(self.first_vertices),
            edges=np.array(self.first_edges),
            roles_stand=self.roles is not None,
        )


def _colour(what: str, detail: str | int) -> int:
    """Return the colour of a kind of vertex: a 64-bit number that is the same in every sheet and process."""
    digest = hashlib.blake2b(f"{what} {detail}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True)
class Renaming:
    """A one-to-one renaming between the terms of two sheets, called *our* sheet and *their* sheet.

    their_names: maps each of our names, in lower case, to their name as their sheet spells it. our_names: maps each of
    their names, in lower case, to our name as our sheet spells it.
    """

    their_names: Mapping[str, str]
    our_names: Mapping[str, str]

    @classmethod
    def between(cls, ours: Sequence[str], theirs: Sequence[str]) -> Renaming:
        """Return the renaming of `ours[i]` to `theirs[i]`; the names of each sheet must be distinct."""
        pairs = list(zip(ours, theirs, strict=True))
        return cls({our.lower(): their for our, their in pairs}, {their.lower(): our for our, their in pairs})

    @classmethod
    def identity(cls, sheet: syntax.Rulesheet) -> Renaming:
        """Return the renaming that keeps every name as the sheet spells it."""
        terms = sheet_graph(sheet).terms
        return cls.between(terms, terms)

    @cached_property
    def is_identity(self) -> bool:
        """Whether every name, with its spelling, is the same in both sheets."""
        return all(self.our_names.get(theirs.lower()) == theirs for theirs in self.their_names.values())

    def theirs(self, text: str) -> str:
        """Translate a term of our sheet, as the game prints it, to their sheet; keep unknown names."""
        return _replaced(text, self.their_names)

    def ours(self, text: str) -> str:
        """Translate a term of their sheet to our sheet, as the game prints it; keep unknown names.

        Upper and lower case and the spacing of the text do not matter.

        Raise GDLSyntaxError if the text is not a term.
        """
        return _replaced(str(syntax.parse_term(text)), self.our_names)


def _replaced(text: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda word: names.get(word[0].lower(), word[0]), text)


def scramble(sheet: syntax.Rulesheet, key: np.random.Generator) -> tuple[syntax.Rulesheet, Renaming]:
    """Rename every name and variable at random, except keywords of GDL and whole numbers.

    Equal words get the same new name.

    Return the new sheet, and the renaming from the old sheet to the new one.
    """
    new = {word: word for word in syntax.FORM}
    taken = set(syntax.FORM)

    def scrambled(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word not in new and not _WHOLE_NUMBER.fullmatch(word):
            new[word] = "?" * word.startswith("?") + _fresh(key, taken)
        return new.get(word, word)

    renamed = syntax.parse(_WORD.sub(scrambled, str(sheet)))
    return renamed, Renaming.between(sheet_graph(sheet).terms, sheet_graph(renamed).terms)


def _fresh(key: np.random.Generator, taken: set[str]) -> str:
    """Return a pronounceable name that is not taken, and mark it as taken."""
    name = ""
    while name in taken or len(name) < 2 * SYLLABLES:
        name += CONSONANTS[key.integers(len(CONSONANTS))] + VOWELS[key.integers(len(VOWELS))]
    taken.add(name)
    return name


def find_renaming(ours: syntax.Rulesheet, theirs: syntax.Rulesheet, seconds: float = 2.0) -> Renaming | None:
    """Return the renaming from our sheet to their sheet, after a proof that they differ only in names and order.

    Return None if the sheets differ in other ways, or if `seconds` is not enough time. If several renamings exist,
    prefer one that keeps the order of appearance.

    If a rule derives roles, the order of roles may depend on the order of the text. The order of roles is also the
    order of moves in messages. So such sheets are recognised only if their rules have the same order.
    """
    end = time.monotonic() + seconds

    def tick() -> None:
        if time.monotonic() > end:
            raise TimeoutError

    left, right = sheet_graph(ours), sheet_graph(theirs)
    try:
        images = _isomorphism(left, right, tick)
    except TimeoutError:
        return None
    if images is None:
        return None
    return Renaming.between(left.terms, [right.terms[image] for image in images[: len(left.terms)].tolist()])


def _isomorphism(left: SheetGraph, right: SheetGraph, tick: Tick) -> Ints | None:
    """Return the image of each vertex, int64[vertices]; None if there is no isomorphism."""
    if len(left.colours) != len(right.colours) or len(left.rules) != len(right.rules):
        return None
    unmoved = np.arange(len(left.colours))
    if _is_isomorphism(left, right, unmoved):
        return unmoved
    if not (left.roles_stand and right.roles_stand and _may_be_isomorphic(left, right)):
        return None
    return _Pair(left, right, tick).isomorphism()


def _may_be_isomorphic(left: SheetGraph, right: SheetGraph) -> bool:
    """Return False if a few rounds of refinement tell two sheets apart."""
    ours, theirs = (_told_apart(own.graph, own.colours.astype(np.uint64), FEW_ROUNDS) for own in (left, right))
    return np.array_equal(np.sort(ours), np.sort(theirs))


def _is_isomorphism(left: SheetGraph, right: SheetGraph, images: Ints) -> bool:
    """Return whether `images` keeps all colours and maps the edges onto the edges, which proves the isomorphism."""
    same_colours = np.array_equal(left.colours, right.colours[images])
    return same_colours and left.graph.is_mapped_to(right.graph, images)


class _Pair:
    """A search for an isomorphism of two sheets, which first pairs the names and then the rules."""

    def __init__(self, left: SheetGraph, right: SheetGraph, tick: Tick) -> None:
        self.left, self.right, self.tick = left, right, tick
        self.sides = _Sides(left.graph, right.graph, tick)

    def isomorphism(self) -> Ints | None:
        """Return the image of each vertex; None if there is no isomorphism."""
        left, right = self.left, self.right
        return self.sides.search(left.colours, right.colours, left.num_names, self._with_names_in_order)

    def _with_names_in_order(self, left: Colouring, right: Colouring) -> Ints | None:
        """Pair the names of each colour in order of appearance; return the isomorphism, or None if this fails."""
        colours = (_with_names_alone(colouring.colours, self.left.num_names) for colouring in (left, right))
        refined = self.sides.refined(*colours)
        images = self._images(*(colouring.colours for colouring in refined)) if refined else None
        return images if images is not None and _is_isomorphism(self.left, self.right, images) else None

    def _images(self, left: Ints, right: Ints) -> Ints | None:
        """Map each rule to the first equal rule of the right sheet that is not used yet; return None if this fails.

        All names must have colours of their own.
        """
        names, waiting = slice(self.left.num_names), dict[int, list[int]]()
        images = np.empty_like(left)
        images[names] = np.argsort(right[names])[np.argsort(np.argsort(left[names]))]
        for rule, colour in enumerate(right[self.right.rules[:-1]].tolist()):
            waiting.setdefault(colour, []).append(rule)
        for rule, colour in enumerate(left[self.left.rules[:-1]].tolist()):
            for other in waiting.get(colour, ()):
                self.tick()
                places = self._places(rule, other, left, right)
                if places is not None:
                    images[self.left.vertices(rule)] = places + self.right.rules[other]
                    waiting[colour].remove(other)
                    break
            else:
                return None
        return images

    def _places(self, rule: int, other: int, left: Ints, right: Ints) -> Ints | None:
        """Map the vertices of rule `rule` on the left to those of rule `other` on the right; None if this fails."""
        left, right = left[self.left.vertices(rule)], right[self.right.vertices(other)]
        places = _in_order(left, right)
        if places is None or len(np.unique(left)) == len(left):
            return places
        ours, theirs = self.left.part(rule), self.right.part(other)

        def fitting(first: Colouring, second: Colouring) -> Ints | None:
            images = _in_order(first.colours, second.colours)
            return images if images is not None and ours.is_mapped_to(theirs, images) else None

        return _Sides(ours, theirs, self.tick).search(left, right, len(left), fitting)


def _in_order(left: Ints, right: Ints) -> Ints | None:
    """Map the vertices of each colour in their order; return None if the two sides have different colours."""
    first, second = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    if not np.array_equal(left[first], right[second]):
        return None
    images = np.empty_like(first)
    images[first] = second
    return images


def _with_names_alone(colours: Ints, num_names: int) -> Ints:
    """Give each name a colour of its own; the new colours are sorted by old colour, then by order of appearance."""
    order = np.argsort(colours[:num_names], kind="stable")
    alone = colours + num_names
    alone[order] = np.arange(num_names)
    return alone


@dataclass(frozen=True, slots=True)
class _Sides:
    """Two graphs that are coloured in the same way."""

    left: ColouredGraph
    right: ColouredGraph
    tick: Tick

    def search(
        self, left: Ints, right: Ints, points: int, finish: Callable[[Colouring, Colouring], Ints | None]
    ) -> Ints | None:
        """Return the first result of `finish` for a pair of stable colourings that refine these colours.

        Only pairs with equal traces are tried. In each step, one more of the first `points` vertices is individualised
        on each side. The step uses the colour with the fewest vertices, but with more than one. On the left, it takes
        the first vertex of this colour; on the right, it tries all vertices of this colour, one after the other.
        Return None if all pairs have been tried, as far as the limit COLOURS for memory allows.
        """
        begin = self.refined(left, right)
        most = COLOURS // max(1, self.left.num_vertices)
        waiting = [(begin[0], iter(begin[1:]))] if begin else []
        while waiting:
            ours, candidates = waiting[-1]
            theirs = next(candidates, None)
            if theirs is None:
                waiting.pop()
                continue
            images = finish(ours, theirs)
            if images is not None:
                return images
            shared = np.flatnonzero(~ours.is_alone(np.arange(points)))
            if len(shared) and len(waiting) <= most:
                vertex = int(shared[np.argmin(ours.sizes[ours.colours[shared]])])
                after = ours.individualised(vertex, self.left, self.tick)
                waiting.append((after, self._alike(after, ours.like(vertex, theirs), theirs)))
        return None

    def refined(self, left: Ints, right: Ints) -> tuple[Colouring, Colouring] | None:
        """Return the stable refinements of these colours; None if the two sides differ in colours or traces."""
        if not np.array_equal(np.sort(left), np.sort(right)):
            return None
        ours = Colouring.of(left).refined(self.left, self.tick)
        theirs = Colouring.of(right).refined(self.right, self.tick)
        return (ours, theirs) if ours.trace == theirs.trace else None

    def _alike(self, left: Colouring, vertices: Sequence[int], right: Colouring) -> Iterator[Colouring]:
        """Individualise each of these vertices on the right; yield the colourings with the same trace as `left`."""
        for vertex in vertices:
            colouring = right.individualised(vertex, self.right, self.tick)
            if colouring.trace == left.trace:
                yield colouring
