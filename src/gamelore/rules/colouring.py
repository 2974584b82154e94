"""Colours of the vertices of a graph, refined until vertices of one colour cannot be told apart by their neighbours.

No automorphism that keeps the colours at the start maps a vertex to one of another refined colour. (One-dimensional
Weisfeiler-Leman refinement, with the worklist of Hopcroft 1971: only what has a new colour is looked at again.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .groundrules import Ints, mixed, spread

LABELS = 16  # more than twice the number of kinds of edges


class Graph:
    """A directed graph: an edge from `sources[i]` to `targets[i]` of kind `kinds[i]`, 0 .. 7; int64[edges] each."""

    def __init__(self, num_vertices: int, sources: Ints, targets: Ints, kinds: Ints) -> None:
        self.num_vertices = num_vertices
        self.sources, self.targets, self.kinds = sources, targets, kinds
        ends = np.concatenate([sources, targets])
        order = np.argsort(ends, kind="stable")
        self._neighbours = np.concatenate([targets, sources])[order]
        self._labels = np.concatenate([2 * kinds, 2 * kinds + 1])[order]
        self._starts = np.searchsorted(ends[order], np.arange(num_vertices + 1))

    def _keys(self, sources: Ints, targets: Ints) -> Ints:
        """int64[edges], sorted: numbers that stand for the edges, were their ends these."""
        keys: Ints = np.sort((sources * self.num_vertices + targets) * LABELS + self.kinds)
        return keys

    def is_kept_by(self, images: Ints) -> bool:
        """Whether a permutation of the vertices takes the edges to the edges, kind by kind."""
        moved = self._keys(images[self.sources], images[self.targets])
        return bool(np.array_equal(moved, self._keys(self.sources, self.targets)))

    def between(self, vertices: Ints) -> list[tuple[int, int, int]]:
        """The edges between these vertices, by their places among them: (source, target, kind)."""
        place = np.full(self.num_vertices, -1)
        place[vertices] = np.arange(len(vertices))
        sources, targets = place[self.sources], place[self.targets]
        inside = (sources >= 0) & (targets >= 0)
        edges = (sources[inside].tolist(), targets[inside].tolist(), self.kinds[inside].tolist())
        return list(zip(*edges, strict=True))

    def leading_to(self, vertices: Ints) -> NDArray[np.bool_]:
        """bool[vertices]: from which vertices a path leads to some of these, themselves included."""
        leading = np.zeros(self.num_vertices, np.bool_)
        while len(vertices):
            leading[vertices] = True
            _, neighbours, labels = self.around(vertices)
            vertices = np.unique(neighbours[(labels & 1 == 1) & ~leading[neighbours]])
        return leading

    def around(self, vertices: Ints) -> tuple[Ints, Ints, Ints]:
        """Of each edge at these vertices: the place of the vertex among them, its neighbour, and what lies between."""
        starts, ends = self._starts[vertices], self._starts[vertices + 1]
        arcs = spread(starts, ends)
        return np.repeat(np.arange(len(vertices)), ends - starts), self._neighbours[arcs], self._labels[arcs]


@dataclass(slots=True)
class Colouring:
    """Colours of vertices, int64[vertices], from 0; `sizes`, int64[vertices], says how many have each.

    `trace` is a hash of all that refinement saw: graphs that look alike and are treated alike have the same one, and
    then vertices that correspond have the same colour.
    """

    colours: Ints
    sizes: Ints
    num_colours: int
    trace: np.uint64

    @classmethod
    def of(cls, colours: Ints) -> Colouring:
        """Given colours; any numbers, equal ones for equal colours."""
        values, colours = np.unique(colours, return_inverse=True)
        sizes = np.bincount(colours, minlength=len(colours) + 1)
        return cls(colours, sizes, len(values), np.uint64(0))

    def sharing(self) -> Ints:
        """The vertices that have no colour of their own, in the order of their colours."""
        order = np.argsort(self.colours, kind="stable")
        shared: Ints = order[~self.is_alone(order)]
        return shared

    def like(self, vertex: int, other: Colouring) -> list[int]:
        """The vertices that have in another colouring the colour that a vertex has here."""
        found: list[int] = np.flatnonzero(other.colours == self.colours[vertex]).tolist()
        return found

    def is_alone(self, vertices: Ints) -> NDArray[np.bool_]:
        """Which of these vertices have a colour of their own."""
        alone: NDArray[np.bool_] = self.sizes[self.colours[vertices]] == 1
        return alone

    def refined(self, graph: Graph, tick: Callable[[], None]) -> Colouring:
        """Refined until stable; `tick` is called now and then and may raise an exception to end it."""
        return self._copy()._refine(np.arange(graph.num_vertices), graph, tick)

    def individualised(self, vertex: int, graph: Graph, tick: Callable[[], None]) -> Colouring:
        """This stable colouring, but with a colour of its own for one vertex, and refined again."""
        new, vertices = self._copy(), np.array([vertex])
        new._recolour(vertices, np.array([new.num_colours]))
        return new._refine(vertices, graph, tick)

    def _refine(self, changed: Ints, graph: Graph, tick: Callable[[], None]) -> Colouring:
        """Goes on from vertices with new colours."""
        while len(changed):
            tick()
            changed = self._split(*self._seen(graph, changed))
        return self

    def _copy(self) -> Colouring:
        return Colouring(self.colours.copy(), self.sizes.copy(), self.num_colours, self.trace)

    def _seen(self, graph: Graph, changed: Ints) -> tuple[Ints, NDArray[np.uint64]]:
        """The neighbours of the vertices with new colours, and what each sees there: a hash, uint64[neighbours]."""
        places, neighbours, labels = graph.around(changed)
        sights = mixed((LABELS * self.colours[changed][places] + labels).astype(np.uint64))
        order = np.argsort(neighbours, kind="stable")
        neighbours, sights = neighbours[order], sights[order]
        firsts = np.flatnonzero(np.diff(neighbours, prepend=-1))
        return neighbours[firsts], np.add.reduceat(sights, firsts) if len(firsts) else sights

    def _split(self, vertices: Ints, sights: NDArray[np.uint64]) -> Ints:
        """Gives new colours where vertices of one colour see different things; the vertices that have them.

        Those that see nothing new keep the colour; if there are none, the largest part does.
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
        renamed: Ints = vertices[is_new[part]]
        self._recolour(renamed, numbers[part[is_new[part]]])
        return renamed

    def _keeping(self, colours: Ints, counts: Ints) -> NDArray[np.bool_]:
        """Which parts, sorted by colour, keep it: the first of the largest ones, unless there is another part."""
        begins = np.flatnonzero(np.diff(colours, prepend=-1))
        whole = np.add.reduceat(counts, begins) == self.sizes[colours[begins]]
        order = np.lexsort((np.arange(len(counts)), -counts, colours))
        keeping = np.zeros(len(counts), np.bool_)
        keeping[order[begins[whole]]] = True
        return keeping

    def _note(self, *seen: NDArray[np.generic]) -> None:
        for values in seen:
            words = mixed(values.astype(np.uint64) + np.uint64(2) * np.arange(len(values), dtype=np.uint64))
            self.trace = mixed(np.array([self.trace ^ np.add.reduce(words)]))[0]

    def _recolour(self, vertices: Ints, numbers: Ints) -> None:
        """New colours for vertices."""
        np.subtract.at(self.sizes, self.colours[vertices], 1)
        np.add.at(self.sizes, numbers, 1)
        self.colours[vertices] = numbers
        self.num_colours = max(self.num_colours, int(numbers.max(initial=-1)) + 1)
