"""All metrics of a node in Prometheus' text format, and what clients pushed (KIP-714).

The Prometheus client is imported at the first scrape, to save the memory of an idle broker.
"""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from broker.server.broker import Broker
from broker.server.clock import SystemClock
from broker.server.coordinators.group_metrics import PREFIX
from broker.server.coordinators.share_state_metrics import share_state_families
from broker.server.quorum.quorum import Quorum
from broker.server.quotas.quota_numbers import quota_numbers
from broker.server.replication.replication_metrics import (
    assignment_numbers,
    purgatories,
    replication_numbers,
)
from broker.server.telemetry.client_telemetry import ClientTelemetry
from broker.telemetry.client_instances import ClientInstances
from broker.telemetry.pushed_metrics import PushedMetrics
from common.kafka.protocol.api_keys import ApiKey


def prometheus_text(broker: Broker | None, quorum: Quorum) -> bytes:
    """Return all metrics of a node in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    from broker.server.metrics_page import ClientMetricsCollector
    from broker.server.quorum.quorum_metrics import QuorumCollector
    from broker.server.share.share_metrics_page import ShareCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    clock = SystemClock()
    registry.register(QuorumCollector(quorum, clock.now_ms, clock.timestamp_ms))
    if broker is not None:
        registry.register(_BrokerCollector(broker))
        registry.register(ShareCollector(broker.shares))
        if broker.telemetry.is_advertised:
            registry.register(ClientMetricsCollector(broker.telemetry))
    return generate_latest(registry)


class _BrokerCollector:
    """Presents the broker's numbers to the Prometheus client."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> list[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        metrics = self._broker.metrics
        requests = CounterMetricFamily(
            "kafka_network_requests", "Requests by API", labels=["request"]
        )
        for api_key, count in sorted(metrics.requests.items()):
            requests.add_metric([ApiKey(api_key).name], count)
        broker = self._broker
        partitions = list(broker.partitions)
        families = {True: CounterMetricFamily, False: GaugeMetricFamily}
        replication = [
            families[number.is_counter](number.name, number.help, number.value)
            for number in [
                *replication_numbers(partitions, metrics, broker.fetch_sessions),
                *assignment_numbers(
                    broker.config.node_id,
                    broker.metadata.image,
                    broker.partitions,
                    broker.log_directories,
                ),
            ]
        ]
        return [
            requests,
            *replication,
            *self._purgatories(),
            *self._groups(),
            *share_state_families(broker.share_states.metrics),
            *self._quotas(),
            self._fetcher_lags(),
            CounterMetricFamily(
                "kafka_server_bytes_in", "Bytes of batches produced", metrics.produced_bytes
            ),
            CounterMetricFamily(
                "kafka_server_messages_in", "Records produced", metrics.produced_records
            ),
            CounterMetricFamily(
                "kafka_server_bytes_out", "Bytes of batches fetched", metrics.fetched_bytes
            ),
            GaugeMetricFamily(
                "kafka_server_partition_count", "Partitions on this broker", len(partitions)
            ),
            GaugeMetricFamily(
                "kafka_server_connection_count",
                "Open client connections",
                self._broker.listeners.connection_count(),
            ),
            GaugeMetricFamily(
                "kafka_log_size_bytes",
                "Bytes of all logs",
                sum(partition.log.size_bytes for partition in partitions),
            ),
        ]

    def _purgatories(self) -> list[Any]:
        """Return the number of requests of each kind that wait."""
        from prometheus_client.core import GaugeMetricFamily

        broker = self._broker
        name, labels = "kafka_server_delayed_operation_purgatory_", ["delayed_operation"]
        sizes = GaugeMetricFamily(
            f"{name}purgatory_size", "Partitions that requests wait for", labels=labels
        )
        counts = GaugeMetricFamily(
            f"{name}num_delayed_operations", "Requests that wait", labels=labels
        )
        for found in purgatories(
            broker.partitions,
            broker.parked_fetches,
            broker.parked_produces,
            broker.parked_deletions,
            broker.parked_share_fetches,
        ):
            sizes.add_metric([found.delayed_operation], found.size)
            counts.add_metric([found.delayed_operation], found.operation_count)
        return [sizes, counts]

    def _quotas(self) -> list[Any]:
        from prometheus_client.core import GaugeMetricFamily

        families: dict[str, GaugeMetricFamily] = {}
        for each in quota_numbers(self._broker.quotas):
            family = families.get(each.name)
            if family is None:
                family = GaugeMetricFamily(each.name, each.help, labels=each.labels)
                families[each.name] = family
            family.add_metric(each.values, each.number)
        return list(families.values())

    def _groups(self) -> list[Any]:
        """Return the numbers of groups, a family for each name."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        families: dict[str, Any] = {}
        for number in self._broker.groups.numbers():
            label = number.label or ()
            if number.name not in families:
                kind = CounterMetricFamily if number.is_counter else GaugeMetricFamily
                name = f"{PREFIX}{number.name}"
                families[number.name] = kind(name, number.help, labels=label[:1])
            families[number.name].add_metric(label[1:], number.value)
        return list(families.values())

    def _fetcher_lags(self) -> Any:
        """Return Kafka's FetcherLagMetrics: the lag of every replica that follows."""
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(
            "kafka_server_fetcher_lag_consumer_lag",
            "Committed records that a replica here lacks",
            labels=["client_id", "topic", "partition"],
        )
        for client_id, (topic, partition), lag in self._broker.replica_fetchers.lags():
            family.add_metric([client_id, topic, str(partition)], lag)
        return family


_NAME = "kafka_server_client_metrics_"


class ClientMetricsCollector:
    """Presents client metrics to the Prometheus client."""

    def __init__(self, telemetry: ClientTelemetry) -> None:
        self._telemetry = telemetry

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        telemetry = self._telemetry
        yield from _counts_of(telemetry.instances, telemetry.pushed)
        yield CounterMetricFamily(
            f"{_NAME}plugin_export", "Pushes that were taken", telemetry.export_count
        )
        yield CounterMetricFamily(
            f"{_NAME}plugin_error", "Pushes that could not be read", telemetry.error_count
        )
        if telemetry.forwarder is not None:
            yield CounterMetricFamily(
                f"{_NAME}forwarded", "Pushes sent to the endpoint", telemetry.forwarder.sent_count
            )
            yield CounterMetricFamily(
                f"{_NAME}forward_dropped",
                "Pushes that the endpoint did not get",
                telemetry.forwarder.dropped_count,
            )
        yield from pushed_families(telemetry.pushed)


def _counts_of(instances: ClientInstances, pushed: PushedMetrics) -> Iterator[Metric]:
    yield GaugeMetricFamily(f"{_NAME}instance_count", "Known client instances", len(instances))
    yield CounterMetricFamily(
        f"{_NAME}unknown_subscription_request",
        "Pushes with an unknown subscription id",
        instances.unknown_subscription_count,
    )
    yield CounterMetricFamily(
        f"{_NAME}throttle", "Requests that came too early", instances.throttle_count
    )
    yield GaugeMetricFamily(f"{_NAME}series", "Pushed series", pushed.series_count)
    yield CounterMetricFamily(
        f"{_NAME}dropped_points", "Pushed values beyond the limits", pushed.dropped_count
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
