"""Automorphisms of small graphs, against all permutations tried one by one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelore.analysis.automorphisms import Bounds, ColouredGraph, Colouring, automorphisms

Edge = tuple[int, int, int]  # source, target, kind


def graph_of(num_vertices: int, edges: list[Edge]) -> ColouredGraph:
    sources, targets, kinds = np.array(edges, np.int64).reshape(-1, 3).T
    return ColouredGraph(num_vertices, sources, targets, kinds)


def all_live(points: int) -> np.ndarray:
    return np.ones(points, np.bool_)


def one_by_one(num_vertices: int, edges: list[Edge], colours: list[int], points: int) -> set[tuple[int, ...]]:
    """What the automorphisms do to the first vertices."""
    found = set()
    for images in permutations(range(num_vertices)):
        moved = sorted((images[source], images[target], kind) for source, target, kind in edges)
        if moved == sorted(edges) and all(colours[image] == colours[v] for v, image in enumerate(images)):
            found.add(images[:points])
    return found


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Edge], list[int], int]:
    """Vertices, edges, colours and the number of points, which have other colours than the rest."""
    num_vertices = draw(st.integers(1, 6))
    vertices = st.integers(0, num_vertices - 1)
    edges = draw(st.lists(st.tuples(vertices, vertices, st.integers(0, 1)), max_size=9, unique=True))
    points = draw(st.integers(1, num_vertices))
    colours = [draw(st.integers(0, 1)) + 2 * (vertex >= points) for vertex in range(num_vertices)]
    return num_vertices, edges, colours, points


@given(graphs())
@settings(deadline=None, max_examples=150)
def test_as_many_as_one_by_one(drawn):
    num_vertices, edges, colours, points = drawn
    elements, why = automorphisms(graph_of(num_vertices, edges), np.array(colours), all_live(points), Bounds())
    assert why == ""
    assert tuple(elements[0]) == tuple(range(points))
    assert {tuple(element) for element in elements.tolist()} == one_by_one(*drawn)
    assert len({tuple(element) for element in elements.tolist()}) == len(elements)


def test_graphs_that_colours_do_not_tell_apart():
    """Two triangles and a hexagon: every vertex has two neighbours, so refinement sees no difference."""
    triangles = [(a + 3 * t, b + 3 * t, 0) for t in (0, 1) for a, b in ((0, 1), (1, 2), (2, 0))]
    hexagon = [(6 + v, 6 + (v + 1) % 6, 0) for v in range(6)]
    graph = graph_of(12, triangles + hexagon)
    elements, why = automorphisms(graph, np.zeros(12, np.int64), all_live(12), Bounds())
    assert (len(elements), why) == (2 * 3 * 3 * 6, "")


def test_too_many_are_a_group_all_the_same():
    edgeless = graph_of(8, [])
    elements, why = automorphisms(edgeless, np.zeros(8, np.int64), all_live(8), Bounds(most=1000))
    assert len(elements) == 720
    assert why == "there are more than 1000; those shown leave some facts or moves unchanged"
    known = {tuple(element) for element in elements.tolist()}
    assert {tuple(a[b]) for a in elements[::50] for b in elements} == known


def test_too_many_colourings_to_keep(monkeypatch):
    """Those of four base vertices are kept: the five last vertices change places, and the first three stay."""
    monkeypatch.setattr("gamelore.analysis.automorphisms.COLOURS", 4 * 8)
    elements, why = automorphisms(graph_of(8, []), np.zeros(8, np.int64), all_live(8), Bounds())
    assert len(elements) == 120
    assert why == "the search needs too much memory to find all; those shown leave some facts or moves unchanged"
    known = {tuple(element) for element in elements.tolist()}
    assert {tuple(a[b]) for a in elements for b in elements} == known
    assert (elements == np.arange(8)).all(axis=0).sum() == 3


def test_out_of_time_is_a_group_all_the_same():
    edgeless = graph_of(6, [])
    elements, why = automorphisms(edgeless, np.zeros(6, np.int64), all_live(6), Bounds(seconds=-1))
    assert elements.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert why == "the search for more stopped after -1 s of processor time"


@pytest.mark.parametrize("ticks", [1, 5, 20, 40, 60])
def test_out_of_time_in_the_midst(ticks, monkeypatch):
    """The clock strikes after so many looks at it."""
    looks = iter([0.0] * ticks + [1e9] * 10_000)
    monkeypatch.setattr("gamelore.analysis.automorphisms.processor_time", lambda: next(looks))
    elements, why = automorphisms(graph_of(5, []), np.zeros(5, np.int64), all_live(5), Bounds())
    known = {tuple(element) for element in elements.tolist()}
    assert (len(known) == 120) == (why == "")
    assert {tuple(a[b]) for a in elements for b in elements} == known


def test_what_is_not_live_stays_unless_it_must_move():
    """0 and 1 are live, each with a follower (2, 3); 4 and 5 are alike, and of no use."""
    graph = graph_of(6, [(0, 2, 0), (1, 3, 0), (4, 5, 1), (5, 4, 1)])
    live = np.array([True, True, False, False, False, False])
    elements, _ = automorphisms(graph, np.zeros(6, np.int64), live, Bounds())
    assert sorted(elements.tolist()) == [[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 4, 5]]
    elements, _ = automorphisms(graph, np.zeros(6, np.int64), all_live(6), Bounds())
    assert len(elements) == 4


def test_choices_that_do_not_fit_together():
    """A circle 2-3-4-5, with 0 at 2 and 4, and 1 at 3 and 5: to exchange 0 and 1 twice is to turn the circle half."""
    circle = [(2, 3, 0), (3, 4, 0), (4, 5, 0), (5, 2, 0)]
    graph = graph_of(6, [*circle, (0, 2, 1), (0, 4, 1), (1, 3, 1), (1, 5, 1)])
    live = np.array([True, True, False, False, False, False])
    elements, why = automorphisms(graph, np.array([0, 0, 1, 1, 1, 1]), live, Bounds())
    assert len(elements) == 4
    assert why == ""


@given(graphs(), st.randoms())
@settings(deadline=None, max_examples=100)
def test_what_live_vertices_do_is_all_there(drawn, random):
    num_vertices, edges, colours, points = drawn
    live = np.array([random.random() < 0.5 for _ in range(points)])
    elements, _ = automorphisms(graph_of(num_vertices, edges), np.array(colours), live, Bounds())
    expected = one_by_one(*drawn)
    known = {tuple(element) for element in elements.tolist()}
    assert known <= expected
    assert {tuple(a[b]) for a in elements for b in elements} == known
    of_live = np.flatnonzero(live).tolist()
    assert {tuple(e[v] for v in of_live) for e in known} == {tuple(e[v] for v in of_live) for e in expected}


def test_colours_are_refined_to_the_end_of_a_chain():
    chain = graph_of(100, [(v, v + 1, 0) for v in range(99)])
    refined = Colouring.of(np.zeros(100, np.int64)).refined(chain, lambda: None)
    assert refined.num_colours == len(set(refined.colours.tolist())) == 100
    assert refined.sizes[:100].tolist() == [1] * 100
    assert refined.is_alone(np.arange(100)).all()


@given(graphs(), st.randoms())
@settings(deadline=None, max_examples=60)
def test_graphs_with_other_numbers_get_the_same_colours(drawn, random):
    num_vertices, edges, colours, _ = drawn
    images = random.sample(range(num_vertices), num_vertices)
    moved = random.sample([(images[a], images[b], kind) for a, b, kind in edges], len(edges))
    own = Colouring.of(np.array(colours)).refined(graph_of(num_vertices, edges), lambda: None)
    moved_colours = [colours[images.index(vertex)] for vertex in range(num_vertices)]
    other = Colouring.of(np.array(moved_colours)).refined(graph_of(num_vertices, moved), lambda: None)
    assert own.trace == other.trace
    assert own.colours.tolist() == other.colours[images].tolist()


def test_an_edge_is_not_its_reverse_nor_of_another_kind():
    graph = graph_of(4, [(0, 1, 0), (2, 3, 1)])
    assert graph.is_mapped_to(graph, np.array([0, 1, 2, 3]))
    assert not graph.is_mapped_to(graph, np.array([1, 0, 2, 3]))
    assert not graph.is_mapped_to(graph, np.array([2, 3, 0, 1]))


def test_a_limit_on_work_is_a_group_that_does_not_depend_on_time(monkeypatch):
    """Six vertices without edges: a refinement looks at all six once, and a vertex of its own once more."""
    monkeypatch.setattr("gamelore.analysis.automorphisms.processor_time", lambda: 0.0)
    found = [automorphisms(graph_of(6, []), np.zeros(6, np.int64), all_live(6), Bounds(work=6 * n)) for n in range(80)]
    assert found[0][0].tolist() == [[0, 1, 2, 3, 4, 5]]
    assert found[0][1] == "the search for more stopped after 0 steps at vertices"
    sizes = [len(elements) for elements, _ in found]
    assert sizes == sorted(sizes)
    assert (sizes[-1], found[-1][1]) == (720, "")
    assert all(720 % size == 0 for size in sizes)
