"""The numbers of Kafka's `group-coordinator-metrics`, with Kafka's names."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.streams_group.streams_group import StreamsGroupState

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
        "classic": sum(len(state.groups) for state in states),
        "consumer": sum(len(state.consumer_groups) for state in states),
        "share": sum(len(state.share_groups) for state in states),
        "streams": sum(len(state.streams_groups) for state in states),
    }
    for protocol, count in counts.items():
        yield GroupNumber("group_count", "Groups by protocol", ("protocol", protocol), count)
    found = Counter(group.state for state in states for group in state.streams_groups.values())
    for group_state in StreamsGroupState:
        yield GroupNumber(
            "streams_group_count",
            "Streams groups by state",
            ("state", group_state.name.lower()),
            found[group_state],
        )
    yield GroupNumber(
        "streams_group_rebalance",
        "New epochs of streams groups",
        None,
        sum(state.streams_rebalance_count for state in states),
        is_counter=True,
    )
