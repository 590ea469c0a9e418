"""The numbers of Kafka's `group-` and `share-coordinator-metrics`, with Kafka's names."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from prometheus_client.core import Metric, SummaryMetricFamily

from broker.coordinator.classic_group.classic_group import ClassicGroup
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup, ConsumerGroupState
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.share_group.share_group import ShareGroup, ShareGroupState
from broker.coordinator.streams_group.streams_group import StreamsGroup, StreamsGroupState
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.coordinators.share_states import ShareStateMetrics
from broker.server.metric_families import counter, gauge, gauges

PREFIX = "kafka_server_group_coordinator_metrics_"
_KINDS: tuple[tuple[str, type[Any], type[Enum]], ...] = (
    ("consumer", ConsumerGroup, ConsumerGroupState),
    ("streams", StreamsGroup, StreamsGroupState),
    ("share", ShareGroup, ShareGroupState),
)


def group_families(shards: Iterable[GroupShard]) -> Iterator[Metric]:
    """Return the numbers of the groups of these shards."""
    states = [shard.state for shard in shards]
    classes: dict[str, type[Any]] = {"classic": ClassicGroup}
    classes |= {kind: of_kind for kind, of_kind, _ in _KINDS}
    groups: dict[str, list[Any]] = {
        kind: [each for state in states for each in state.of(of_kind).values()]
        for kind, of_kind in classes.items()
    }
    yield gauges(
        f"{PREFIX}group_count",
        "Groups by protocol",
        ["protocol"],
        [([kind], len(found)) for kind, found in groups.items()],
    )
    for kind, of_kind, known in _KINDS:
        found = Counter(group.state for group in groups[kind])
        yield gauges(
            f"{PREFIX}{kind}_group_count",
            f"{kind.title()} groups by state",
            ["state"],
            [([state.name.lower()], found.get(state, 0)) for state in known],
        )
        yield counter(
            f"{PREFIX}{kind}_group_rebalance",
            f"New epochs of {kind} groups",
            sum(state.rebalance_counts[of_kind] for state in states),
        )


_PREFIX = "kafka_server_share_coordinator_metrics_"


def share_state_families(metrics: ShareStateMetrics) -> Iterator[Metric]:
    """Return the numbers for the Prometheus client."""
    count = metrics.request_count
    yield counter(
        f"{_PREFIX}write", "States of share-partitions that were written", metrics.write_count
    )
    yield SummaryMetricFamily(
        f"{_PREFIX}write_latency",
        "Milliseconds until a request to write states was answered",
        count_value=count,
        sum_value=metrics.write_ms,
    )
    mean = metrics.write_ms / count if count else 0
    yield gauge(
        f"{_PREFIX}write_latency_avg",
        "Mean milliseconds of a request to write",
        mean,
    )
    yield gauge(
        f"{_PREFIX}write_latency_max",
        "Most milliseconds of one of them",
        metrics.max_write_ms,
    )
    yield gauges(
        f"{_PREFIX}last_pruned_offset",
        "The offset that the records of a partition were deleted before",
        ["topic", "partition"],
        [
            ([SHARE_GROUP_STATE, str(number)], offset)
            for number, offset in sorted(metrics.last_pruned_offsets.items())
        ],
    )
