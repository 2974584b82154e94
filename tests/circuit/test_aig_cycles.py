"""Components come in the order of dependency, and what is said to cut their cycles does."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gamelore.circuit.aig import components_below, cut

NODES = range(12)
GRAPHS = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=40).map(
    lambda edges: {node: [end for start, end in edges if start == node] for node in NODES}
)


def reached(graph, start):
    found, stack = set(), list(graph[start])
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += graph[node]
    return found


def test_components_come_after_what_they_depend_on():
    edges = {1: [2], 2: [3, 4], 3: [2], 4: [5], 5: [], 6: [1]}
    found = components_below([6], lambda node: edges[node])
    assert [sorted(component) for component in found] == [[5], [4], [2, 3], [1], [6]]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(GRAPHS)
def test_components_are_what_reaches_each_other_dependencies_first(graph):
    found = list(components_below(NODES, graph.__getitem__))
    assert sorted(node for component in found for node in component) == list(NODES)
    known = set()
    for component in found:
        for node in component:
            assert {other for other in reached(graph, node) if node in reached(graph, other)} - {node} == set(
                component
            ) - {node}
        known |= set(component)
        assert all(set(graph[node]) <= known for node in component)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(GRAPHS)
def test_without_the_cut_no_node_comes_before_what_it_depends_on(graph):
    for component in components_below(NODES, graph.__getitem__):
        cutting, order = cut(component, graph.__getitem__)
        assert sorted(order) == sorted(component)
        before = set(cutting)
        for node in order:
            assert set(graph[node]) & set(component) <= before | ({node} & set(cutting))
            before.add(node)


def test_one_node_cuts_a_ring():
    cutting, _ = cut([3, 1, 2, 0], lambda node: [(node + 1) % 4])
    assert len(cutting) == 1
