"""The metrics of share groups at the leaders of partitions, under Kafka's names.

kafka_server_sharegroupmetrics_<name>      RecordAcknowledgementsPerSec by ackType,
                                           PartitionLoadTimeMs, and by group
                                           RequestTopicPartitionsFetchRatio and
                                           TopicPartitionsAcquireTimeMs
kafka_server_sharepartitionmetrics_<name>  InFlightMessageCount, InFlightBatchCount,
                                           InFlightBatchMessageCount, FetchLockTimeMs,
                                           FetchLockRatio and AcquisitionLockTimeoutPerSec, of
                                           each share-partition
kafka_server_delayedsharefetchmetrics_<name>
                                           ExpiresPerSec
kafka_server_sharesessioncache_<name>      ShareSessionsCount, SharePartitionsCount,
                                           ShareSessionEvictionsPerSec
kafka_server_brokertopicmetrics_<name>     TotalShareFetchRequestsPerSec and
                                           TotalShareAcknowledgementRequestsPerSec by topic, and
                                           Failed... for both

A counter stands for a rate: Prometheus computes the rate. A share-partition needs no fetch lock: a
fetch reads and acquires in one step. The time of that step is what others would wait for a lock.
"""

from collections import Counter

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from broker.server.share.share_metrics import ACK_TYPE_NAMES, Sum
from broker.server.share.share_partitions import SharePartitions

_GROUPS = "kafka_server_sharegroupmetrics_"
_PARTITIONS = "kafka_server_sharepartitionmetrics_"
_SESSIONS = "kafka_server_sharesessioncache_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_LABELS = ("group", "topic", "partition")


class ShareCollector:
    """Presents the numbers of share groups to the Prometheus client."""

    def __init__(self, shares: SharePartitions) -> None:
        self._shares = shares

    def describe(self) -> list[Metric]:
        """Return nothing: the names are known when they are collected."""
        return []

    def collect(self) -> list[Metric]:
        """Return all families."""
        return [*self._group_families(), *self._partition_families(), *self._session_families()]

    def _group_families(self) -> list[Metric]:
        metrics = self._shares.metrics
        acknowledged = CounterMetricFamily(
            f"{_GROUPS}recordacknowledgements",
            "Records by the type of their acknowledgement",
            labels=["ackType"],
        )
        for number, name in enumerate(ACK_TYPE_NAMES):
            acknowledged.add_metric([name], metrics.acknowledged[number])
        return [
            acknowledged,
            SummaryMetricFamily(
                f"{_GROUPS}partitionloadtimems",
                "The time to read the state of a share-partition",
                count_value=metrics.load_count,
                sum_value=metrics.load_ms,
            ),
            _by_group(
                "requesttopicpartitionsfetchratio",
                "The percentage of a fetch's partitions that had records",
                metrics.acquire_ratio,
            ),
            _by_group(
                "topicpartitionsacquiretimems",
                "The time from a fetch to its records",
                metrics.acquire_ms,
            ),
            _by_topic("totalsharefetchrequests", "ShareFetch requests", metrics.total_fetches),
            _by_topic(
                "failedsharefetchrequests", "ShareFetches with an error", metrics.failed_fetches
            ),
            _by_topic(
                "totalshareacknowledgementrequests",
                "Requests with acknowledgements",
                metrics.total_acknowledgements,
            ),
            _by_topic(
                "failedshareacknowledgementrequests",
                "Requests with acknowledgements that were refused",
                metrics.failed_acknowledgements,
            ),
        ]

    def _partition_families(self) -> list[Metric]:
        labels = list(_LABELS)
        messages = GaugeMetricFamily(
            f"{_PARTITIONS}inflightmessagecount", "Records in flight", labels=labels
        )
        batches = GaugeMetricFamily(
            f"{_PARTITIONS}inflightbatchcount",
            "Ranges of records in flight with the same state",
            labels=labels,
        )
        expired = CounterMetricFamily(
            f"{_PARTITIONS}acquisitionlocktimeout", "Records whose lock ended", labels=labels
        )
        together = _of_partition(
            "inflightbatchmessagecount", "The numbers of records that were acquired together"
        )
        lock_times = _of_partition(
            "fetchlocktimems", "The milliseconds for which one fetch read and acquired"
        )
        lock_ratios = _of_partition(
            "fetchlockratio",
            "The time of a fetch as a percentage of that since the one before",
        )
        for led in self._shares:
            topic, number = led.partition.topic_partition
            values, figures = [led.key.group_id, topic, str(number)], led.figures
            share = led.share
            messages.add_metric(values, 0 if share is None else share.record_count)
            batches.add_metric(values, 0 if share is None else len(share.runs))
            expired.add_metric(values, figures.expired_count)
            for family, found in (
                (together, figures.batch_records),
                (lock_times, figures.lock_ms),
                (lock_ratios, figures.lock_ratio),
            ):
                family.add_metric(values, found.count, found.total)
        return [messages, batches, expired, together, lock_times, lock_ratios]

    def _session_families(self) -> list[Metric]:
        sessions = self._shares.sessions
        return [
            GaugeMetricFamily(f"{_SESSIONS}sharesessionscount", "Share sessions", len(sessions)),
            GaugeMetricFamily(
                f"{_SESSIONS}sharepartitionscount",
                "Partitions of all share sessions together",
                sessions.partition_count,
            ),
            CounterMetricFamily(
                f"{_SESSIONS}sharesessionevictions",
                "Share sessions that ended with their connection",
                sessions.eviction_count,
            ),
            CounterMetricFamily(
                "kafka_server_delayedsharefetchmetrics_expires",
                "ShareFetches that waited as long as they could",
                self._shares.metrics.expired_fetch_count,
            ),
        ]


def _of_partition(name: str, text: str) -> SummaryMetricFamily:
    return SummaryMetricFamily(f"{_PARTITIONS}{name}", text, labels=_LABELS)


def _by_group(name: str, text: str, sums: dict[str, Sum]) -> Metric:
    family = SummaryMetricFamily(f"{_GROUPS}{name}", text, labels=["group"])
    for group_id, found in sorted(sums.items()):
        family.add_metric([group_id], found.count, found.total)
    return family


def _by_topic(name: str, text: str, counts: Counter[str]) -> Metric:
    family = CounterMetricFamily(f"{_TOPICS}{name}", text, labels=["topic"])
    for topic, count in sorted(counts.items()):
        family.add_metric([topic], count)
    return family
