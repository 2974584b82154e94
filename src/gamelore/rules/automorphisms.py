"""Automorphisms of a coloured graph, as permutations of those of its vertices that matter.

A base is chosen: vertices such that, once each of them has a colour of its own, refinement gives one to every vertex
that matters. For each possible image of the base, refinement from both sides either comes to differ or says where each
of them goes; VF2 (Cordella et al. 2004, rustworkx) finds where the others go, and all edges are compared, which is the
proof. The group is put together from the stabilisers of the base, the last one first (Sims 1970), so that one
automorphism for each image of a base vertex is enough; images in known orbits need none.

Some vertices matter only for what follows from where others go. Where that leaves a choice, they go to the first of
those that they may go to, always; should these choices not fit together, they are treated as all the others.
"""

from __future__ import annotations

import operator
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .colouring import Colouring, Graph
from .groundrules import Ints

CALLS = 50  # of VF2 for each vertex; where colours leave no choice it needs one
COLOURS = 25_000_000  # in all colourings of a search together, about 400 MB
SOME_STAY = "these keep some facts or moves in their places"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many automorphisms, and how many processor seconds to look for them."""

    most: int = 1000
    seconds: float = 10.0


def automorphisms(
    graph: Graph, colours: Ints, live: NDArray[np.bool_], bounds: Bounds
) -> tuple[NDArray[np.int32], str]:
    """What the automorphisms that keep the colours do to the first vertices: int32[num, points], and why not all.

    colours: int64[vertices], others for these vertices than for the rest. live: bool[points]; of automorphisms that do
    the same to live vertices one is enough. The identity comes first, and it is a group: where there are too many,
    those that keep some vertices in their places; where time is up, what is found by then.
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
    """A base vertex; the stable colourings in which it shares its colour, and in which it has its own."""

    vertex: int
    is_live: bool
    before: Colouring
    after: Colouring


class _Search:
    """`elements`, int64[num, points], is the group known so far, `generators` some elements that make it."""

    def __init__(self, graph: Graph, live: NDArray[np.bool_], bounds: Bounds) -> None:
        self.graph, self.live, self.bounds = graph, live, bounds
        self.points = np.arange(len(live))
        self.elements = self.points[None]
        self.generators: list[Ints] = []
        self.why = ""
        self.chose_badly = False
        self._end = time.process_time() + bounds.seconds

    def _tick(self) -> None:
        if time.process_time() > self._end:
            self.why = f"the search for more was given up after {self.bounds.seconds:g} processor seconds"
            raise _OutOfTime

    def run(self, colouring: Colouring) -> None:
        """Finds the group, stabiliser by stabiliser."""
        try:
            self.levels = self._base(colouring.refined(self.graph, self._tick))
        except _OutOfTime:
            return
        for depth in reversed(range(sum(level.is_live for level in self.levels))):
            known = len(self.generators)
            ended = not self._extend(depth)
            orbit = self._orbit(self.levels[depth].vertex)
            if len(orbit) * len(self.elements) > self.bounds.most:
                self.why = f"there are more than {self.bounds.most}; {SOME_STAY}"
                del self.generators[known:]
                return
            self.elements = np.concatenate([representative[self.elements] for representative in orbit.values()])
            if ended:
                return

    def fits(self) -> bool:
        """Whether no choice stood in the way, and the elements are a group; so it is if all vertices are live."""
        known = {element.tobytes() for element in self.elements}
        products = (generator[element] for generator in self.generators for element in self.elements)
        return not self.chose_badly and all(product.tobytes() in known for product in products)

    def _base(self, colouring: Colouring) -> list[_Level]:
        """Each time a vertex of a colour that few others have, until each has its own; first the live ones.

        Where these are too many to keep their colourings, the first ones are left out, so that they stay.
        """
        levels: deque[_Level] = deque(maxlen=max(1, COLOURS // self.graph.num_vertices))
        for chosen in (self.points[self.live], self.points):
            while len(shared := chosen[~colouring.is_alone(chosen)]):
                vertex = int(shared[np.argmin(colouring.sizes[colouring.colours[shared]])])
                after = colouring.individualised(vertex, self.graph, self._tick)
                if len(levels) == levels.maxlen:
                    self.why = f"there are too many to look for all; {SOME_STAY}"
                levels.append(_Level(vertex, bool(self.live[vertex]), colouring, after))
                colouring = after
        return list(levels)

    def _extend(self, depth: int) -> bool:
        """Adds generators for all images of a base vertex while those before it stay; False where time is up."""
        level = self.levels[depth]
        decided = set(self._orbit(level.vertex))
        try:
            for image in level.before.like(level.vertex, level.before):
                if image not in decided:
                    found = self._mapping(depth, level.before, image)
                    if found is not None:
                        self.generators.append(found)
                        decided |= set(self._orbit(level.vertex))
                    decided |= set(self._orbit(image))
        except _OutOfTime:
            return False
        return True

    def _orbit(self, vertex: int) -> dict[int, Ints]:
        """The images of a vertex under the group of the generators, each with an element that leads there."""
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
        """An automorphism that keeps the base before `depth`, and takes the next to `image`; `colouring` knows that."""
        right = colouring.individualised(image, self.graph, self._tick)
        if right.trace != self.levels[depth].after.trace:
            return None
        if depth + 1 == len(self.levels):
            return self._isomorphism(right)
        following = self.levels[depth + 1]
        images = following.before.like(following.vertex, right)
        for next_image in images if following.is_live else images[:1]:
            found = self._mapping(depth + 1, right, next_image)
            if found is not None:
                return found
        self.chose_badly |= not following.is_live
        return None

    def _isomorphism(self, right: Colouring) -> Ints | None:
        """The points' images where the graph in the last colours and the graph in these are the same."""
        left = self.levels[-1].after
        images = np.empty(self.graph.num_vertices, np.int64)
        images[np.argsort(left.colours, kind="stable")] = np.argsort(right.colours, kind="stable")
        if not self._place_others(left, right, images) or not self.graph.is_kept_by(images):
            return None
        return images[: len(self.points)]

    def _place_others(self, left: Colouring, right: Colouring, images: Ints) -> bool:
        """Puts into `images` what VF2 finds for the vertices that share a colour; False where it finds nothing."""
        import rustworkx

        vertices, targets = left.sharing(), right.sharing()
        found = rustworkx.digraph_vf2_mapping(
            _part(self.graph, left, vertices),
            _part(self.graph, right, targets),
            node_matcher=operator.eq,
            edge_matcher=operator.eq,
            call_limit=CALLS * len(vertices),
        )
        mapping = dict(next(iter(found), {}))
        images[vertices[list(mapping)]] = targets[list(mapping.values())]
        return len(mapping) == len(vertices)


def _part(graph: Graph, colouring: Colouring, vertices: Ints) -> Any:
    """A part of the graph for VF2: the colours of these vertices, sorted by them, and the kinds of edges."""
    import rustworkx

    part = rustworkx.PyDiGraph()
    part.add_nodes_from(colouring.colours[vertices].tolist())
    part.add_edges_from(graph.between(vertices))
    return part
