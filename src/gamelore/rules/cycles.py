"""Cycles of a directed graph: its strongly connected components, and nodes that cut all cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence


def components(roots: Iterable[int], dependencies: Callable[[int], Iterable[int]]) -> Iterator[list[int]]:
    """Strongly connected components of what the roots depend on, dependencies first (Tarjan 1972)."""
    low: dict[int, int] = {}  # the smallest index that an open node is known to reach
    open_nodes: list[int] = []
    closed = 1 << 62  # larger than any index
    for root in roots:
        if root in low:
            continue
        path = [(root, len(low), iter(dependencies(root)))]
        low[root] = len(low)
        open_nodes.append(root)
        while path:
            node, index, successors = path[-1]
            for successor in successors:
                found = low.get(successor)
                if found is None:
                    low[successor] = len(low)
                    open_nodes.append(successor)
                    path.append((successor, low[successor], iter(dependencies(successor))))
                    break
                if found < low[node]:
                    low[node] = found
            else:
                path.pop()
                if low[node] == index:
                    component = _popped(open_nodes, node)
                    low.update(dict.fromkeys(component, closed))
                    yield component
                else:  # the first node of a path always closes a component
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[node])


def _popped(stack: list[int], last: int) -> list[int]:
    popped = [stack.pop()]
    while popped[-1] != last:
        popped.append(stack.pop())
    return popped


def cut(component: Sequence[int], dependencies: Callable[[int], Iterable[int]]) -> tuple[list[int], list[int]]:
    """Nodes of a component without which it has no cycle, and all its nodes, each after those others that it needs.

    Both come from one depth-first walk: every cycle has an edge back to a node that is being walked through.
    """
    members = set(component)
    targets: set[int] = set()
    done: dict[int, bool] = {component[0]: False}
    order: list[int] = []
    path = [(component[0], iter(dependencies(component[0])))]
    while path:
        node, successors = path[-1]
        for successor in successors:
            if successor not in members:
                continue
            if successor not in done:
                done[successor] = False
                path.append((successor, iter(dependencies(successor))))
                break
            if not done[successor]:
                targets.add(successor)
        else:
            done[node] = True
            order.append(node)
            path.pop()
    return [node for node in order if node in targets], order
