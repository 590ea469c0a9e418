"""The plan of a reassignment, from the current state: replicas, moves, throttles. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.cli.arguments import ToolFailed
from broker.cli.json_files import Assignments
from broker.model import TopicPartition
from common.kafka.admin.reassignments import Reassignment

LEADER_THROTTLE = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLE = "follower.replication.throttled.replicas"
BROKER_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)

Placement = dict[TopicPartition, list[int]]


class Move(NamedTuple):
    """The brokers that a partition is copied from, and those it is copied to."""

    sources: set[int]
    destinations: set[int]


def check_proposal(proposal: Assignments) -> Placement:
    """Return the replicas in a file; raise ToolFailed for an invalid assignment."""
    partitions = [partition for partition, _ in proposal.listed]
    if not partitions:
        raise ToolFailed("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in proposal.listed):
        raise ToolFailed("Partition replica list cannot be empty")
    twice = sorted({one for one in partitions if partitions.count(one) > 1})
    if twice:
        listed = ",".join(map(str, twice))
        raise ToolFailed(f"Partition reassignment contains duplicate topic partitions: {listed}")
    problems = []
    for partition, replicas in proposal.listed:
        repeated = sorted({one for one in replicas if replicas.count(one) > 1})
        if repeated:
            listed = ",".join(map(str, repeated))
            problems.append(f"{partition} contains multiple entries for {listed}")
    if problems:
        raise ToolFailed(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(problems)}"
        )
    return proposal.replicas()


def propose(
    current: Placement, racks: Mapping[int, str | None], start: int, shift: int
) -> Placement:
    """Spread partitions over brokers: leaders in turn, replicas on as many racks as possible.

    `start` is the first leader in the turn, `shift` the distance of the replicas from the leader.
    """
    proposed: Placement = {}
    topics: dict[str, list[TopicPartition]] = {}
    for partition in sorted(current):
        topics.setdefault(partition.topic, []).append(partition)
    order = _alternate_racks(racks)
    for partitions in topics.values():
        factor = len(current[partitions[0]])
        if factor > len(order):
            raise ToolFailed(
                f"Replication factor: {factor} larger than available brokers: {len(order)}"
            )
        for number, partition in enumerate(partitions):
            turn = number // len(order)
            proposed[partition] = _replicas(order, racks, start + number, factor, shift + turn)
    return proposed


def moves_of(
    under_way: Mapping[TopicPartition, Reassignment], proposed: Placement, current: Placement
) -> dict[TopicPartition, Move]:
    """Return the ongoing moves together with the proposed ones."""
    moves = {
        partition: Move(set(move.replicas) - set(move.adding), set(move.adding))
        for partition, move in under_way.items()
    }
    for partition, replicas in proposed.items():
        known = moves.get(partition)
        sources = known.sources if known else set(current[partition])
        moves[partition] = Move(sources, set(replicas) - sources)
    return moves


def topic_throttles(moves: Mapping[TopicPartition, Move]) -> dict[str, dict[str, str | None]]:
    """Return the settings with the throttled replicas of each topic."""
    throttles: dict[str, dict[str, str | None]] = {}
    for topic in sorted({partition.topic for partition in moves}):
        own = {key.partition: move for key, move in moves.items() if key.topic == topic}
        throttles[topic] = {
            LEADER_THROTTLE: _pairs((number, move.sources) for number, move in own.items()),
            FOLLOWER_THROTTLE: _pairs(
                (number, move.destinations - move.sources) for number, move in own.items()
            ),
        }
    return throttles


def moving_brokers(moves: Mapping[TopicPartition, Move]) -> list[int]:
    """Return the brokers that are a source or a target of a move."""
    return sorted({one for move in moves.values() for one in move.sources | move.destinations})


def _pairs(brokers: Iterable[tuple[int, set[int]]]) -> str:
    return ",".join(sorted(f"{number}:{one}" for number, ids in brokers for one in ids))


def _alternate_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Order brokers so that neighbours are on different racks as far as possible."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id] or "", []).append(broker_id)
    order = []
    while by_rack:
        for rack in sorted(by_rack):
            order.append(by_rack[rack].pop(0))
            if not by_rack[rack]:
                del by_rack[rack]
    return order


def _replicas(
    order: list[int], racks: Mapping[int, str | None], first: int, factor: int, shift: int
) -> list[int]:
    count = len(order)
    chosen = [order[first % count]]
    # The distance of the followers changes each round, so that pairs of brokers vary.
    steps = range(count - 1)
    others = [order[(first + 1 + (shift + step) % (count - 1)) % count] for step in steps]
    used = {racks[chosen[0]]}
    while len(chosen) < factor:
        fresh = [one for one in others if racks[one] is not None and racks[one] not in used]
        chosen.append((fresh or others)[0])
        others.remove(chosen[-1])
        used.add(racks[chosen[-1]])
    return chosen
