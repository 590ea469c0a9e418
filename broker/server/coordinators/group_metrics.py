"""The numbers of Kafka's `group-coordinator-metrics`, with Kafka's names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from broker.coordinator.classic_group.classic_group import ClassicGroup
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup, ConsumerGroupState
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.share_group.share_group import ShareGroup, ShareGroupState
from broker.coordinator.streams_group.streams_group import StreamsGroup, StreamsGroupState

PREFIX = "kafka_server_group_coordinator_metrics_"


class GroupNumber(NamedTuple):
    """One number, with the name and the value of its only label."""

    name: str
    help: str
    label: tuple[str, str] | None
    value: int
    is_counter: bool = False


def group_numbers(shards: Iterable[GroupShard]) -> Iterator[GroupNumber]:
    """Return the numbers of the groups of these shards."""
    states = [shard.state for shard in shards]
    counts = {
        "classic": sum(len(state.of(ClassicGroup)) for state in states),
        "consumer": sum(len(state.of(ConsumerGroup)) for state in states),
        "share": sum(len(state.of(ShareGroup)) for state in states),
        "streams": sum(len(state.of(StreamsGroup)) for state in states),
    }
    for protocol, count in counts.items():
        yield GroupNumber("group_count", "Groups by protocol", ("protocol", protocol), count)
    for kind, known, groups, rebalance_count in (
        (
            "consumer",
            ConsumerGroupState,
            [group for state in states for group in state.of(ConsumerGroup).values()],
            sum(state.rebalance_counts[ConsumerGroup] for state in states),
        ),
        (
            "streams",
            StreamsGroupState,
            [group for state in states for group in state.of(StreamsGroup).values()],
            sum(state.rebalance_counts[StreamsGroup] for state in states),
        ),
        (
            "share",
            ShareGroupState,
            [group for state in states for group in state.of(ShareGroup).values()],
            sum(state.rebalance_counts[ShareGroup] for state in states),
        ),
    ):
        yield from _numbers_of_kind(kind, known, Counter(group.state for group in groups))
        yield GroupNumber(
            f"{kind}_group_rebalance",
            f"New epochs of {kind} groups",
            None,
            rebalance_count,
            is_counter=True,
        )


def _numbers_of_kind(
    kind: str, known: type[Enum], found: Mapping[Any, int]
) -> Iterator[GroupNumber]:
    for state in known:
        label = ("state", state.name.lower())
        count = found.get(state, 0)
        yield GroupNumber(f"{kind}_group_count", f"{kind.title()} groups by state", label, count)
