"""Automorphisms of a coloured graph by colour refinement: the permutations of vertices that keep edges and colours.

Colour refinement (one-dimensional Weisfeiler-Leman, with the worklist of Hopcroft 1971) splits colours until all
vertices of one colour have neighbours of the same colours. An automorphism maps each vertex to a vertex with the same
refined colour.

`automorphisms` first chooses a *base*, which is a list of vertices. Once each base vertex has a colour of its own,
refinement also gives each *point* (a vertex for a fact or an action) a colour of its own. Then the search tries each
possible image of the base: it refines the graph with the base and the graph with the image. If the two results differ,
no automorphism has this image. Otherwise equal colours determine the images of the other vertices. VF2 (Cordella et al.
2004, in rustworkx) maps the vertices that still share a colour. Finally all edges are compared, which proves the
automorphism.

The group is built from the stabilisers of the base, the last one first (Sims 1970). So one automorphism for each image
of a base vertex is enough, and images in known orbits need no search.

The caller marks some points as *live*: of several automorphisms that agree on all live points, one is enough. So if a
base vertex that is not live has several possible images, the search tries only the first one. If these choices turn out
to be inconsistent, the search is repeated with all points live.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gdl.limits import processor_time
from ..ground.program import Ints, joined_ranges, mixed

LABELS = 16  # upper bound of the labels of edges: two labels for each of the eight kinds, one for each direction
CALLS = 50  # largest number of VF2 calls for each vertex; if the colours leave no choice, one call is enough
COLOURS = 25_000_000  # largest number of vertex colours in memory in one search, about 400 MB
SOME_STAY = "those shown leave some facts or moves unchanged"


class ColouredGraph:
    """A directed graph: edge i leads from `sources[i]` to `targets[i]` and has the kind `kinds[i]`, from 0 to 7.

    The three arrays are int64[edges].
    """

    def __init__(self, num_vertices: int, sources: Ints, targets: Ints, kinds: Ints) -> None:
        self.num_vertices = num_vertices
        self.sources, self.targets, self.kinds = sources, targets, kinds
        ends = np.concatenate([sources, targets])
        order = np.argsort(ends, kind="stable")
        self._neighbours = np.concatenate([targets, sources])[order]
        self._labels = np.concatenate([2 * kinds, 2 * kinds + 1])[order]
        self._starts = np.searchsorted(ends[order], np.arange(num_vertices + 1))

    def _keys(self, images: Ints) -> Ints:
        """Return one number for each edge after replacing its ends by their images; int64[edges], sorted."""
        ends = images[self.sources] * self.num_vertices + images[self.targets]
        return np.sort(ends * LABELS + self.kinds)

    def is_mapped_to(self, other: ColouredGraph, images: Ints) -> bool:
        """Return whether the bijection `images` maps the edges onto the edges of `other` and keeps their kinds."""
        return np.array_equal(self._keys(images), other._keys(np.arange(other.num_vertices)))

    def between(self, vertices: Ints) -> list[tuple[int, int, int]]:
        """Return the edges between these vertices, as indices into them: (source, target, kind)."""
        place = np.full(self.num_vertices, -1)
        place[vertices] = np.arange(len(vertices))
        sources, targets = place[self.sources], place[self.targets]
        inside = (sources >= 0) & (targets >= 0)
        edges = (sources[inside].tolist(), targets[inside].tolist(), self.kinds[inside].tolist())
        return list(zip(*edges, strict=True))

    def leading_to(self, vertices: Ints) -> NDArray[np.bool_]:
        """Return bool[vertices]: whether a path leads from each vertex to one of `vertices`, or it is one of them."""
        leading = np.zeros(self.num_vertices, np.bool_)
        while len(vertices):
            leading[vertices] = True
            _, neighbours, labels = self.around(vertices)
            vertices = np.unique(neighbours[(labels & 1 == 1) & ~leading[neighbours]])
        return leading

    def around(self, vertices: Ints) -> tuple[Ints, Ints, Ints]:
        """Return three arrays about the edges at these vertices: index into `vertices`, neighbour, and edge label."""
        starts, ends = self._starts[vertices], self._starts[vertices + 1]
        arcs = joined_ranges(starts, ends)
        return np.repeat(np.arange(len(vertices)), ends - starts), self._neighbours[arcs], self._labels[arcs]


@dataclass(slots=True)
class Colouring:
    """Colours of vertices, int64[vertices], numbered from 0.

    `sizes[c]`, int64[vertices + 1], is the number of vertices of colour c. `trace` is a hash of all steps of the
    refinement. If isomorphic graphs are refined in the same way, their traces are equal, and corresponding vertices
    have the same colour.
    """

    colours: Ints
    sizes: Ints
    num_colours: int
    trace: np.uint64

    @classmethod
    def of(cls, colours: Ints) -> Colouring:
        """Return a colouring for arbitrary numbers; vertices with equal numbers get equal colours."""
        values, colours = np.unique(colours, return_inverse=True)
        sizes = np.bincount(colours, minlength=len(colours) + 1)
        return cls(colours, sizes, len(values), np.uint64(0))

    def sharing(self) -> Ints:
        """Return the vertices that share their colour with other vertices, sorted by colour."""
        order = np.argsort(self.colours, kind="stable")
        return order[~self.is_alone(order)]

    def like(self, vertex: int, other: Colouring) -> list[int]:
        """Return the vertices whose colour in `other` equals the colour of `vertex` in this colouring."""
        vertices: list[int] = np.flatnonzero(other.colours == self.colours[vertex]).tolist()
        return vertices

    def is_alone(self, vertices: Ints) -> NDArray[np.bool_]:
        """Return bool[n]: whether each of these vertices has a colour of its own."""
        return np.asarray(self.sizes[self.colours[vertices]] == 1)

    def refined(self, graph: ColouredGraph, tick: Callable[[], None]) -> Colouring:
        """Return the stable refinement. `tick` is called from time to time; it may raise an error to stop the work."""
        return self._copy()._refine(np.arange(graph.num_vertices), graph, tick)

    def individualised(self, vertex: int, graph: ColouredGraph, tick: Callable[[], None]) -> Colouring:
        """Give one vertex a new colour in a copy, and return the stable refinement of the copy."""
        new, vertices = self._copy(), np.array([vertex])
        new._recolour(vertices, np.array([new.num_colours]))
        return new._refine(vertices, graph, tick)

    def _refine(self, changed: Ints, graph: ColouredGraph, tick: Callable[[], None]) -> Colouring:
        """Refine this colouring until it is stable; `changed` are the vertices with new colours."""
        while len(changed):
            tick()
            changed = self._split(*self._seen(graph, changed))
        return self

    def _copy(self) -> Colouring:
        return Colouring(self.colours.copy(), self.sizes.copy(), self.num_colours, self.trace)

    def _seen(self, graph: ColouredGraph, changed: Ints) -> tuple[Ints, NDArray[np.uint64]]:
        """Return the neighbours of recoloured vertices, and a hash for each neighbour, uint64[neighbours].

        The hash covers the colours of the recoloured vertices next to the neighbour, and the labels of the edges.
        """
        places, neighbours, labels = graph.around(changed)
        sights = mixed((LABELS * self.colours[changed][places] + labels).astype(np.uint64))
        order = np.argsort(neighbours, kind="stable")
        neighbours, sights = neighbours[order], sights[order]
        firsts = np.flatnonzero(np.diff(neighbours, prepend=-1))
        return neighbours[firsts], np.add.reduceat(sights, firsts) if len(firsts) else sights

    def _split(self, vertices: Ints, sights: NDArray[np.uint64]) -> Ints:
        """Split each colour whose vertices have different hashes; return the vertices with new colours.

        Vertices without recoloured neighbours keep their colour. If a colour has no such vertices, its largest part
        keeps the colour.
        """
        if not len(vertices):
            return vertices
        own = self.colours[vertices]
        order = np.lexsort((sights, own))
        vertices, own, sights = vertices[order], own[order], sights[order]
        is_first = np.ones(len(own), np.bool_)
        is_first[1:] = (own[1:] != own[:-1]) | (sights[1:] != sights[:-1])
        firsts, part = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        counts = np.diff(firsts, append=len(own))
        self._note(own[firsts], sights[firsts], counts)
        is_new = ~self._keeping(own[firsts], counts)
        numbers = np.where(is_new, self.num_colours + np.cumsum(is_new) - 1, own[firsts])
        changed: Ints = vertices[is_new[part]]
        self._recolour(changed, numbers[part[is_new[part]]])
        return changed

    def _keeping(self, colours: Ints, counts: Ints) -> NDArray[np.bool_]:
        """Return which parts of split colours keep their colour, bool[parts]; `colours` of the parts are sorted.

        If the parts cover their colour completely, the largest part keeps the colour; if several parts are largest, the
        first of these does. Otherwise the vertices outside the parts keep the colour.
        """
        begins = np.flatnonzero(np.diff(colours, prepend=-1))
        whole = np.add.reduceat(counts, begins) == self.sizes[colours[begins]]
        order = np.lexsort((np.arange(len(counts)), -counts, colours))
        keeping = np.zeros(len(counts), np.bool_)
        keeping[order[begins[whole]]] = True
        return keeping

    def _note(self, *seen: NDArray[np.generic]) -> None:
        """Include arrays in the hash `trace`."""
        for values in seen:
            words = mixed(values.astype(np.uint64) + np.uint64(2) * np.arange(len(values), dtype=np.uint64))
            self.trace = mixed(np.array([self.trace ^ np.add.reduce(words)]))[0]

    def _recolour(self, vertices: Ints, numbers: Ints) -> None:
        """Give each of these vertices a new colour, `numbers[i]` for `vertices[i]`."""
        np.subtract.at(self.sizes, self.colours[vertices], 1)
        np.add.at(self.sizes, numbers, 1)
        self.colours[vertices] = numbers
        self.num_colours = max(self.num_colours, int(numbers.max(initial=-1)) + 1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a search.

    most     largest number of automorphisms
    seconds  processor time of the thread in seconds
    work     vertices in all steps of all refinements together, so that the result does not depend on the machine; None
             for no such limit
    """

    most: int = 1000
    seconds: float = 10.0
    work: int | None = None


def automorphisms(
    graph: ColouredGraph, colours: Ints, live: NDArray[np.bool_], bounds: Bounds
) -> tuple[NDArray[np.int32], str]:
    """Return the images of the first vertices under each automorphism, int32[num, points], and a text.

    The text says why some automorphisms may be missing; it is empty if none are. The *points* are the first vertices of
    the graph. colours: int64[vertices]; no point may have the colour of another vertex. live: bool[points]; of several
    automorphisms that agree on the live points, one is enough.

    The result is always a group, and the identity comes first. If there are too many automorphisms, the result is the
    subgroup that fixes some points. If a limit is reached, it is the subgroup known by then.
    """
    search = _Search(graph, live, bounds)
    search.run(Colouring.of(colours))
    if not search.fits():
        search = _Search(graph, np.ones_like(live), bounds)
        search.run(Colouring.of(colours))
    return search.elements.astype(np.int32), search.why


class _OutOfTime(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Level:
    """A base vertex with two stable colourings: `before` and `after` the vertex got a colour of its own."""

    vertex: int
    is_live: bool
    before: Colouring
    after: Colouring


class _Search:
    """A search. `elements`, int64[num, points], is the group known so far; `generators` generate this group."""

    def __init__(self, graph: ColouredGraph, live: NDArray[np.bool_], bounds: Bounds) -> None:
        self.graph, self.live, self.bounds = graph, live, bounds
        self.points = np.arange(len(live))
        self.elements = self.points[None]
        self.generators: list[Ints] = []
        self.why = ""
        self.chose_badly = False
        self._end = processor_time() + bounds.seconds
        self._work = 0

    def _tick(self) -> None:
        self._work += self.graph.num_vertices
        if self.bounds.work is not None and self._work > self.bounds.work:
            self.why = f"the search for more stopped after {self.bounds.work:,} steps at vertices"
            raise _OutOfTime
        if processor_time() > self._end:
            self.why = f"the search for more stopped after {self.bounds.seconds:g} s of processor time"
            raise _OutOfTime

    def run(self, colouring: Colouring) -> None:
        """Find the group, stabiliser by stabiliser."""
        try:
            self.levels = self._base(colouring.refined(self.graph, self._tick))
        except _OutOfTime:
            return
        for depth in reversed(range(sum(level.is_live for level in self.levels))):
            num_known = len(self.generators)
            ended = not self._extend(depth)
            orbit = self._orbit(self.levels[depth].vertex)
            if len(orbit) * len(self.elements) > self.bounds.most:
                self.why = f"there are more than {self.bounds.most}; {SOME_STAY}"
                del self.generators[num_known:]
                return
            self.elements = np.concatenate([representative[self.elements] for representative in orbit.values()])
            if ended:
                return

    def fits(self) -> bool:
        """Return whether no choice was inconsistent and the elements form a group; true if all points are live."""
        elements = {element.tobytes() for element in self.elements}
        products = (generator[element] for generator in self.generators for element in self.elements)
        return not self.chose_badly and all(product.tobytes() in elements for product in products)

    def _base(self, colouring: Colouring) -> list[_Level]:
        """Choose base vertices, live points first, until every point has its own colour.

        Each chosen vertex has a colour with few vertices. If there is not enough memory for all colourings, the first
        base vertices are dropped, so all automorphisms that are found fix them.
        """
        levels: deque[_Level] = deque(maxlen=max(1, COLOURS // self.graph.num_vertices))
        for chosen in (self.points[self.live], self.points):
            while len(shared := chosen[~colouring.is_alone(chosen)]):
                vertex = int(shared[np.argmin(colouring.sizes[colouring.colours[shared]])])
                after = colouring.individualised(vertex, self.graph, self._tick)
                if len(levels) == levels.maxlen:
                    self.why = f"the search needs too much memory to find all; {SOME_STAY}"
                levels.append(_Level(vertex, bool(self.live[vertex]), colouring, after))
                colouring = after
        return list(levels)

    def _extend(self, depth: int) -> bool:
        """Add generators that map a base vertex to each possible image and fix the earlier base vertices.

        Return False if time is up.
        """
        level = self.levels[depth]
        decided = set(self._orbit(level.vertex))
        try:
            for image in level.before.like(level.vertex, level.before):
                if image not in decided:
                    mapping = self._mapping(depth, level.before, image)
                    if mapping is not None:
                        self.generators.append(mapping)
                        decided |= set(self._orbit(level.vertex))
                    decided |= set(self._orbit(image))
        except _OutOfTime:
            return False
        return True

    def _orbit(self, vertex: int) -> dict[int, Ints]:
        """Return the orbit of a vertex under the generators: for each image, an element that maps the vertex to it."""
        orbit = {vertex: self.points}
        waiting = [vertex]
        while waiting:
            reached = waiting.pop()
            for generator in self.generators:
                image = int(generator[reached])
                if image not in orbit:
                    orbit[image] = generator[orbit[reached]]
                    waiting.append(image)
        return orbit

    def _mapping(self, depth: int, colouring: Colouring, image: int) -> Ints | None:
        """Return an automorphism that fixes the base vertices before `depth` and maps the one at `depth` to `image`.

        Return None if there is none.
        """
        right = colouring.individualised(image, self.graph, self._tick)
        if right.trace != self.levels[depth].after.trace:
            return None
        if depth + 1 == len(self.levels):
            return self._isomorphism(right)
        following = self.levels[depth + 1]
        images = following.before.like(following.vertex, right)
        for next_image in images if following.is_live else images[:1]:
            mapping = self._mapping(depth + 1, right, next_image)
            if mapping is not None:
                return mapping
        self.chose_badly |= not following.is_live
        return None

    def _isomorphism(self, right: Colouring) -> Ints | None:
        """Return the images of the points if equal colours of the last level and of `right` give an automorphism."""
        left = self.levels[-1].after
        images = np.empty(self.graph.num_vertices, np.int64)
        images[np.argsort(left.colours, kind="stable")] = np.argsort(right.colours, kind="stable")
        if not self._place_others(left, right, images) or not self.graph.is_mapped_to(self.graph, images):
            return None
        return images[: len(self.points)]

    def _place_others(self, left: Colouring, right: Colouring, images: Ints) -> bool:
        """Map the vertices that share a colour by VF2 and store the result in `images`; return False if this fails."""
        import rustworkx

        vertices, targets = left.sharing(), right.sharing()
        mappings = rustworkx.digraph_vf2_mapping(
            _part(self.graph, left, vertices),
            _part(self.graph, right, targets),
            node_matcher=operator.eq,
            edge_matcher=operator.eq,
            call_limit=CALLS * len(vertices),
        )
        mapping = dict(next(iter(mappings), {}))
        images[vertices[list(mapping)]] = targets[list(mapping.values())]
        return len(mapping) == len(vertices)


def _part(graph: ColouredGraph, colouring: Colouring, vertices: Ints) -> Any:
    """Return the subgraph of these vertices as a rustworkx graph, with their colours and the kinds of the edges."""
    import rustworkx

    part = rustworkx.PyDiGraph()
    part.add_nodes_from(colouring.colours[vertices].tolist())
    part.add_edges_from(graph.between(vertices))
    return part
