"""The `uniform` assignor for members that subscribe to different topics.

It works in three stages. Every member keeps its partitions. Each unassigned partition goes to the
subscriber with the fewest partitions. Then partitions move from a member to one that has at least
two fewer, until no such move exists. Each move reduces the sum of the squared sizes, so the last
stage ends; after it, no partition has a subscriber that has at least two partitions fewer than its
owner.
"""

from heapq import heapify, heappop, heappush, heapreplace

from broker.coordinator.consumer_group.assignors.spec import GroupSpec, Pieces
from broker.coordinator.consumer_group.member import Assignment


def assign(spec: GroupSpec) -> Pieces[dict[str, Assignment]]:
    """Assign all topics together."""
    balance = Balance(spec)
    yield from balance.take_over()
    yield from balance.hand_out()
    has_moved = True
    while has_moved:
        has_moved = False
        for topic_id in balance.topic_ids:
            has_moved |= yield from balance.level(topic_id)
    return (yield from balance.targets())


class Balance:
    """An assignment under construction."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._sizes: dict[str, int] = {}
        self._parts: dict[bytes, dict[str, set[int]]] = {}
        self.topic_ids: list[bytes] = []
        """The topics with the least choice first: those with many partitions per subscriber."""

    def take_over(self) -> Pieces[None]:
        """Start with the present targets."""
        spec = self._spec
        for member_id, member in spec.members.items():
            self._sizes[member_id] = sum(map(len, member.target.values()))
            for topic_id in member.topic_ids:
                part = set(member.target.get(topic_id, ()))
                self._parts.setdefault(topic_id, {})[member_id] = part
            yield len(member.topic_ids) + self._sizes[member_id]
        self.topic_ids = sorted(
            self._parts,
            key=lambda each: (
                -spec.partition_counts[each] / len(self._parts[each]),
                len(self._parts[each]),
                each,
            ),
        )

    def hand_out(self) -> Pieces[None]:
        """Give each unassigned partition to the subscriber with the fewest partitions."""
        for topic_id in self.topic_ids:
            parts = self._parts[topic_id]
            taken = {partition for part in parts.values() for partition in part}
            heap = [(self._sizes[member_id], member_id) for member_id in parts]
            heapify(heap)
            for partition in range(self._spec.partition_counts[topic_id]):
                if partition in taken:
                    continue
                size, member_id = heap[0]
                parts[member_id].add(partition)
                self._sizes[member_id] = size + 1
                heapreplace(heap, (size + 1, member_id))
            yield len(parts) + self._spec.partition_counts[topic_id]

    def level(self, topic_id: bytes) -> Pieces[bool]:
        """Move partitions of one topic while the balance improves; return True if any moved."""
        parts = self._parts[topic_id]
        lows = [(self._sizes[member_id], member_id) for member_id in parts]
        highs = [(-size, member_id) for size, member_id in lows if parts[member_id]]
        heapify(lows)
        heapify(highs)
        yield len(lows) + len(highs)
        has_moved = False
        while highs:
            high, giver = -highs[0][0], highs[0][1]
            low, taker = lows[0]
            if high != self._sizes[giver] or not parts[giver]:
                heappop(highs)  # The entry is outdated; the heap has a newer one.
            elif low != self._sizes[taker]:
                heappop(lows)
            elif high - low < 2:
                break
            else:
                yield len(parts[giver])
                self._move(topic_id, giver, taker)
                has_moved = True
                for member_id in (giver, taker):
                    heappush(lows, (self._sizes[member_id], member_id))
                    heappush(highs, (-self._sizes[member_id], member_id))
        return has_moved

    def _move(self, topic_id: bytes, giver: str, taker: str) -> None:
        """Move one partition: preferably one of the taker's target, or not of the giver's."""
        members = self._spec.members
        had = members[giver].target.get(topic_id, frozenset())
        wanted = members[taker].target.get(topic_id, frozenset())
        part = self._parts[topic_id][giver]
        partition = max(part, key=lambda each: (each in wanted, each not in had, each))
        part.remove(partition)
        self._parts[topic_id][taker].add(partition)
        self._sizes[giver] -= 1
        self._sizes[taker] += 1

    def targets(self) -> Pieces[dict[str, Assignment]]:
        """Return the target of each member."""
        targets: dict[str, dict[bytes, frozenset[int]]] = {each: {} for each in self._spec.members}
        for topic_id, parts in self._parts.items():
            for member_id, part in parts.items():
                if part:
                    targets[member_id][topic_id] = frozenset(part)
            yield len(parts)
        return dict(targets)
