"""The numbers of Kafka's `share-coordinator-metrics`, with Kafka's names."""

from typing import TYPE_CHECKING

from broker.metadata.topic_names import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_PREFIX = "kafka_server_share_coordinator_metrics_"


class ShareStateMetrics:
    """Counters as plain numbers."""

    __slots__ = ("last_pruned_offsets", "max_write_ms", "request_count", "write_count", "write_ms")

    def __init__(self) -> None:
        self.write_count = 0
        """States of share-partitions that were written."""
        self.request_count = 0
        self.write_ms = 0
        self.max_write_ms = 0
        """Requests that wrote them, and the time until they were answered."""
        self.last_pruned_offsets: dict[int, int] = {}
        """By partition of the topic: the offset that its records were deleted before."""

    def note_write(self, write_count: int, elapsed_ms: int) -> None:
        """Count a request that was answered."""
        self.write_count += write_count
        self.request_count += 1
        self.write_ms += elapsed_ms
        self.max_write_ms = max(self.max_write_ms, elapsed_ms)


def share_state_families(metrics: ShareStateMetrics) -> "list[Metric]":
    """Return the numbers for the Prometheus client."""
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        SummaryMetricFamily,
    )

    pruned = GaugeMetricFamily(
        f"{_PREFIX}last_pruned_offset",
        "The offset that the records of a partition were deleted before",
        labels=["topic", "partition"],
    )
    for number, offset in sorted(metrics.last_pruned_offsets.items()):
        pruned.add_metric([SHARE_GROUP_STATE, str(number)], offset)
    return [
        CounterMetricFamily(
            f"{_PREFIX}write", "States of share-partitions that were written", metrics.write_count
        ),
        SummaryMetricFamily(
            f"{_PREFIX}write_latency",
            "Milliseconds until a request to write states was answered",
            count_value=metrics.request_count,
            sum_value=metrics.write_ms,
        ),
        GaugeMetricFamily(
            f"{_PREFIX}write_latency_avg",
            "The mean of them",
            metrics.write_ms / metrics.request_count if metrics.request_count else 0,
        ),
        GaugeMetricFamily(
            f"{_PREFIX}write_latency_max", "The longest of them", metrics.max_write_ms
        ),
        pruned,
    ]
