"""Client metrics on the metrics page: what clients pushed, and Kafka's own counts of it."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from broker.server.telemetry.client_telemetry import ClientTelemetry
from broker.telemetry.client_instances import ClientInstances
from broker.telemetry.pushed_metrics import PushedMetrics

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
