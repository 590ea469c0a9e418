"""The numbers of a broker for /metrics: topics, partitions, requests, sockets, disk, clients.

A broker may have very many topics and partitions, and a page is made in one go. So those beyond
MAX_TOPICS and MAX_PARTITIONS have no numbers of their own, only their part in the sums; how many
they are is shown.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from broker.server.broker import Broker
from broker.server.clock import busy_seconds, monotonic_seconds
from broker.server.coordinators.group_metrics import group_families, share_state_families
from broker.server.metric_families import counter, counters, gauge, gauges, summary
from broker.server.metrics import TopicTraffic
from broker.server.network.request_times import FETCHES_BY_SENDER, PARTS, errors_of, part_of
from broker.server.quotas.quota_metrics import SOCKETS, quota_families
from broker.server.replication.partitions import Leader, Partition
from broker.server.replication.replication_metrics import (
    TOPICS,
    assignment_families,
    is_at_min_isr,
    purgatories,
    replication_families,
)
from broker.server.telemetry.client_telemetry import ClientTelemetry
from broker.telemetry.client_instances import ClientInstances
from broker.telemetry.pushed_metrics import PushedMetrics

MAX_TOPICS = 500
MAX_PARTITIONS = 1_000
_CLIENTS = "kafka_server_client_metrics_"
REQUESTS = "kafka_network_requestmetrics_"
ONE_LOOP = "0"
"""The value of the label networkProcessor: one loop serves all connections."""

_TRAFFIC = {
    "bytesin": ("bytes_in", "Bytes of batches produced"),
    "bytesout": ("bytes_out", "Bytes of batches fetched by clients"),
    "messagesin": ("records_in", "Records produced"),
    "totalproducerequests": ("produces", "Appends, one for each partition of a Produce"),
    "failedproducerequests": ("failed_produces", "Appends that were refused"),
    "totalfetchrequests": ("fetches", "Reads of clients, one for each partition of a Fetch"),
    "failedfetchrequests": ("failed_fetches", "Reads that were refused"),
}
_LED: dict[str, tuple[str, Callable[[Leader], int]]] = {
    "replicascount": ("Replicas of a partition led here", lambda led: 1 + len(led.followers)),
    "insyncreplicascount": (
        "Replicas in sync of a partition led here",
        lambda led: len(led.isr.committed),
    ),
    "underreplicated": (
        "1 if a replica of a partition led here is not in sync",
        lambda led: int(led.is_under_replicated),
    ),
    "underminisr": (
        "1 if too few replicas of a partition are in sync for acks=all",
        lambda led: int(led.is_under_min_isr),
    ),
    "atminisr": (
        "1 if no more replicas of a partition are in sync than acks=all needs",
        lambda led: int(is_at_min_isr(led)),
    ),
}


class BrokerCollector:
    """Presents the broker's numbers to the Prometheus client."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(self) -> list[Metric]:
        """Return no description, so that registration does not collect the numbers."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return all metrics with their current values."""
        broker = self._broker
        partitions = list(broker.partitions)
        yield from replication_families(partitions, broker.metrics, broker.fetch_sessions)
        yield from assignment_families(
            broker.config.node_id, broker.metadata.image, broker.partitions, broker.log_directories
        )
        yield from self._traffic()
        yield from _partitions(partitions)
        yield from self._purgatories()
        yield from group_families(broker.groups.shards())
        yield from self._coordinators()
        yield from share_state_families(broker.share_states.metrics)
        yield from quota_families(broker.quotas)
        yield self._fetcher_lags()
        yield from self._connections()
        yield from self._requests()
        yield gauge(
            "kafka_server_kafkaserver_brokerstate",
            "3 while it runs; the numbers are those of Kafka's BrokerState",
            broker.lifecycle.state,
        )
        yield from _disk()

    def _traffic(self) -> Iterator[Metric]:
        """Return the traffic of topics, and that of all together with an empty label."""
        traffic, names = self._broker.metrics.traffic, self._broker.metadata.image.topics.by_id
        shown: dict[str, TopicTraffic] = {}
        left_out = 0
        for key, found in traffic.items():
            image = names.get(key) if isinstance(key, bytes) else None
            name = key if isinstance(key, str) else image.name if image is not None else ""
            if name in shown or len(shown) < MAX_TOPICS:
                shown.setdefault(name, TopicTraffic()).add(found)
            else:
                left_out += 1
        shown[""] = traffic.sum()
        for name, (attribute, about) in _TRAFFIC.items():
            yield counters(
                f"{TOPICS}{name}",
                about,
                ["topic"],
                [([topic], getattr(found, attribute)) for topic, found in shown.items()],
            )
        yield gauge("millstream_metrics_topics_left_out", "Topics without own numbers", left_out)

    def _purgatories(self) -> Iterator[Metric]:
        """Return the number of requests of each kind that wait."""
        broker = self._broker
        found = purgatories(
            broker.partitions,
            broker.parked_fetches,
            broker.parked_produces,
            broker.parked_deletions,
            broker.parked_share_fetches,
        )
        name, labels = "kafka_server_delayedoperationpurgatory_", ["delayedOperation"]
        yield gauges(
            f"{name}purgatorysize",
            "Partitions that requests wait for",
            labels,
            [([each.delayed_operation], each.size) for each in found],
        )
        yield gauges(
            f"{name}numdelayedoperations",
            "Requests that wait",
            labels,
            [([each.delayed_operation], each.operation_count) for each in found],
        )

    def _coordinators(self) -> Iterator[Metric]:
        """Return the partitions of each coordinator by their state, and how long they load."""
        now_ms = self._broker.clock.now_ms()
        for kind, shards in (
            ("group", self._broker.groups),
            ("transaction", self._broker.transactions),
            ("share", self._broker.share_states),
        ):
            prefix = f"kafka_server_{kind}_coordinator_metrics_"
            yield gauges(
                f"{prefix}num_partitions",
                f"Partitions of the {kind} coordinator by state",
                ["state"],
                [([state], count) for state, count in shards.partition_counts().items()],
            )
            load = "Milliseconds to load a partition in the last minute"
            times_ms = shards.load_times_ms
            yield gauge(
                f"{prefix}partition_load_time_avg", f"{load}, mean", times_ms.average(now_ms)
            )
            yield gauge(
                f"{prefix}partition_load_time_max", f"{load}, longest", times_ms.largest(now_ms)
            )

    def _fetcher_lags(self) -> Metric:
        """Return Kafka's FetcherLagMetrics: the lag of every replica that follows."""
        return gauges(
            "kafka_server_fetcherlagmetrics_consumerlag",
            "Committed records that a replica here lacks",
            ["clientId", "topic", "partition"],
            [
                ([client_id, topic, str(partition)], lag)
                for client_id, (topic, partition), lag in islice(
                    self._broker.replica_fetchers.lags(), MAX_PARTITIONS
                )
            ],
        )

    def _requests(self) -> Iterator[Metric]:
        """Return Kafka's RequestMetrics, and how idle the thread is that serves requests."""
        now, by_name = monotonic_seconds(), dict(self._broker.request_times.by_name())
        yield counters(
            f"{REQUESTS}requests",
            "Requests by API and version",
            ["request", "version"],
            [
                ([name, str(version)], count)
                for name, times in by_name.items()
                if name not in FETCHES_BY_SENDER
                for version, count in sorted(times[0].versions.items())
            ],
        )
        yield counters(
            f"{REQUESTS}errors",
            "Errors in answers by API, each topic's and partition's; NONE: answers without errors",
            ["request", "error"],
            [
                ([name, error], count)
                for name, times in by_name.items()
                if name not in FETCHES_BY_SENDER
                for error, count in sorted(errors_of(times).items())
            ],
        )
        for part, about in PARTS.items():
            yield summary(
                f"{REQUESTS}{part}",
                about,
                ["request"],
                [([name], *part_of(times, part, now)) for name, times in by_name.items()],
            )
        idle = self._broker.idle_ratio.recent(now, busy_seconds())
        for name in (
            "network_socketserver_networkprocessoravgidle",
            "server_kafkarequesthandlerpool_requesthandleravgidle",
        ):
            yield gauge(
                f"kafka_{name}_percent",
                "The share of the last minute in which the only thread had nothing to do, 0 to 1",
                idle,
            )

    def _connections(self) -> Iterator[Metric]:
        yield gauges(
            f"{SOCKETS}_connection_count",
            "Open client connections",
            ["listener", "networkProcessor"],
            [
                ([name, ONE_LOOP], count)
                for name, count in self._broker.listeners.connection_counts().items()
            ],
        )


def _partitions(partitions: list[Partition]) -> Iterator[Metric]:
    """Return the numbers of each log here, and of each partition that is led here."""
    labels = ["topic", "partition"]
    shown = [(_values(each), each) for each in partitions[:MAX_PARTITIONS]]
    led: list[tuple[list[str], Leader]] = [
        (values, each.leader) for values, each in shown if each.leader is not None
    ]
    for name, (about, number_of) in _LED.items():
        yield gauges(
            f"kafka_cluster_partition_{name}",
            about,
            labels,
            [(values, number_of(leader)) for values, leader in led],
        )
    logs = [(values, each.log) for values, each in shown]
    log = "kafka_log_log_"
    yield gauges(f"{log}size", "Bytes of a log", labels, [(v, each.size_bytes) for v, each in logs])
    yield gauges(
        f"{log}logstartoffset",
        "First offset of a log",
        labels,
        [(values, each.log_start_offset) for values, each in logs],
    )
    yield gauges(
        f"{log}logendoffset",
        "Offset of the next record of a log",
        labels,
        [(values, each.log_end_offset) for values, each in logs],
    )
    yield gauge(
        "millstream_metrics_partitions_left_out",
        "Partitions without own numbers",
        len(partitions) - len(shown),
    )


def _values(partition: Partition) -> list[str]:
    topic, number = partition.topic_partition
    return [topic, str(number)]


def _disk() -> Iterator[Metric]:
    """Return the bytes that this process has read and written, where the system has them."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return
    found = dict(line.split(": ") for line in lines)
    for kind in ("read", "write"):
        yield gauge(
            f"kafka_server_kafkaserver_linux_disk_{kind}_bytes",
            f"Bytes that this process has had to {kind} at the disk",
            int(found[f"{kind}_bytes"]),
        )


class ClientMetricsCollector:
    """Presents client metrics to the Prometheus client."""

    def __init__(self, telemetry: ClientTelemetry) -> None:
        self._telemetry = telemetry

    def describe(self) -> list[Metric]:
        """Return no description, so that registration does not collect the numbers."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return all metrics with their current values."""
        telemetry = self._telemetry
        yield from _counts_of(telemetry.instances, telemetry.pushed)
        yield counter(f"{_CLIENTS}plugin_export", "Pushes that were taken", telemetry.export_count)
        yield counter(
            f"{_CLIENTS}plugin_error", "Pushes that could not be read", telemetry.error_count
        )
        if telemetry.forwarder is not None:
            yield counter(
                f"{_CLIENTS}forwarded",
                "Pushes sent to the endpoint",
                telemetry.forwarder.sent_count,
            )
            yield counter(
                f"{_CLIENTS}forward_dropped",
                "Pushes that the endpoint did not get",
                telemetry.forwarder.dropped_count,
            )
        yield from pushed_families(telemetry.pushed)


def _counts_of(instances: ClientInstances, pushed: PushedMetrics) -> Iterator[Metric]:
    yield gauge(f"{_CLIENTS}instance_count", "Known client instances", len(instances))
    yield counter(
        f"{_CLIENTS}unknown_subscription_request",
        "Pushes with an unknown subscription id",
        instances.unknown_subscription_count,
    )
    yield counter(f"{_CLIENTS}throttle", "Requests that came too early", instances.throttle_count)
    yield gauge(f"{_CLIENTS}series", "Pushed series", pushed.series_count)
    yield counter(
        f"{_CLIENTS}dropped_points", "Pushed values beyond the limits", pushed.dropped_count
    )


def pushed_families(pushed: PushedMetrics) -> list[Metric]:
    """Return what clients pushed, one family for each name."""
    families: dict[str, Metric] = {}
    for series in pushed:
        family = families.get(series.name)
        if family is None:
            kind = "counter" if series.is_counter else "gauge"
            family = families[series.name] = Metric(series.name, "Pushed by clients", kind)
        name = f"{series.name}_total" if series.is_counter else series.name
        family.samples.append(Sample(name, dict(series.labels), series.value))
    return list(families.values())
