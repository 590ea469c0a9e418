"""The numbers of Kafka's `share-coordinator-metrics`, with Kafka's names."""

from collections.abc import Iterator

from prometheus_client.core import Metric, SummaryMetricFamily

from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.coordinators.share_state_metrics import ShareStateMetrics
from broker.server.metric_families import counter, gauge, gauges

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
