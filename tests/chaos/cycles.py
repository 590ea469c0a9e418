"""The cycles of dependent operations: no operation can have happened before itself.

An edge goes from an earlier operation to a later one. Tarjan's algorithm finds the strongly
connected components (R. Tarjan, "Depth-first search and linear graph algorithms", 1972), without
recursion: histories are longer than Python's stack.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.chaos.history import Operation, Outcome

Graph = Mapping[int, Iterable[int]]


def components(graph: Graph) -> Iterator[list[int]]:
    """Yield the strongly connected components of more than one node."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    is_on_path: set[int] = set()
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(graph.get(root, ())))]
        order[root] = lowest[root] = len(order)
        path.append(root)
        is_on_path.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = lowest[target] = len(order)
                    path.append(target)
                    is_on_path.add(target)
                    work.append((target, iter(graph.get(target, ()))))
                    break
                if target in is_on_path:
                    lowest[node] = min(lowest[node], order[target])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    found = _cut(path, node)
                    is_on_path.difference_update(found)
                    if len(found) > 1:
                        yield found


def _cut(path: list[int], node: int) -> list[int]:
    """Remove a node and all nodes after it from the path, and return them."""
    found = []
    while True:
        found.append(path.pop())
        if found[-1] == node:
            return found


def process_edges(operations: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """Yield edges from each operation to the next of its process."""
    last: dict[int, int] = {}
    for index in sorted(range(len(operations)), key=lambda at: operations[at].start_ms):
        process = operations[index].process
        if process in last:
            yield last[process], index
        last[process] = index


def realtime_edges(operations: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """Yield edges from an ended operation to one that started later, without the implied ones.

    An operation with the outcome `info` may take effect after its end, so no edge starts there.
    """
    beginnings = [(operation.start_ms, 1, at) for at, operation in enumerate(operations)]
    endings = [
        (operation.end_ms, 0, at)
        for at, operation in enumerate(operations)
        if operation.outcome is Outcome.OK
    ]
    newest: set[int] = set()
    before: dict[int, list[int]] = {}
    for _, is_beginning, at in sorted(beginnings + endings):
        if is_beginning:
            before[at] = sorted(newest)
            for earlier in before[at]:
                yield earlier, at
        elif at in before:
            newest.difference_update(before.pop(at))
            newest.add(at)


def graph_of(*edges: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Return the edges as lists of successors."""
    graph: dict[int, list[int]] = defaultdict(list)
    for some in edges:
        for source, target in some:
            graph[source].append(target)
    return dict(graph)
