"""The largest matching of a bipartite graph (Hopcroft and Karp, 1973)."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

_FREE: Final = -1


def largest_matching(choices: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return a largest matching: each left node gets at most one choice, each choice one node."""
    chosen: dict[int, int] = {}
    taken: dict[int, int] = {}
    while True:
        layers = _layers(choices, chosen, taken)
        gained = 0
        for one in choices:
            if one not in chosen and _augment(one, choices, layers, chosen, taken):
                gained += 1
        if not gained:
            return chosen


def _layers(
    choices: Mapping[int, Sequence[int]], chosen: Mapping[int, int], taken: Mapping[int, int]
) -> dict[int, int]:
    """Return the distance of each node from the nodes that have no choice yet."""
    layers = {one: 0 for one in choices if one not in chosen}
    waiting = deque(layers)
    while waiting:
        one = waiting.popleft()
        for choice in choices[one]:
            holder = taken.get(choice, _FREE)
            if holder != _FREE and holder not in layers:
                layers[holder] = layers[one] + 1
                waiting.append(holder)
    return layers


def _augment(
    start: int,
    choices: Mapping[int, Sequence[int]],
    layers: dict[int, int],
    chosen: dict[int, int],
    taken: dict[int, int],
) -> bool:
    """Find a path to a free choice along the layers; it may be long, so there is no recursion."""
    way: list[tuple[int, int]] = []
    trying = [(start, iter(choices[start]))]
    while trying:
        one, rest = trying[-1]
        for choice in rest:
            holder = taken.get(choice, _FREE)
            if holder == _FREE:
                for each, its_choice in [*way, (one, choice)]:
                    chosen[each], taken[its_choice] = its_choice, each
                return True
            if layers.get(holder, _FREE) == layers[one] + 1:
                way.append((one, choice))
                trying.append((holder, iter(choices[holder])))
                break
        else:
            layers.pop(one)
            trying.pop()
            if way:
                way.pop()
    return False
