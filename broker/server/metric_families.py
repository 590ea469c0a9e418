"""Families of metrics, as the Prometheus client takes them.

This module imports that client. So it is imported at the first scrape, by the modules whose names
end in `_page` or `_metrics`, to save the memory of an idle broker.

Names follow the rules by which Strimzi exports Kafka's metrics, so that its dashboards and alerts
work: `kafka_<group>_<type>_<name>` in small letters, without separators inside a word of Kafka's;
a rate is a counter (`_total`), a percentage ends in `_percent`, and a histogram has a `_count` and
a value for each quantile.
"""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

Row = tuple[Sequence[str], float]


def gauge(name: str, about: str, value: float) -> Metric:
    """Return a number that goes up and down."""
    return GaugeMetricFamily(name, about, value)


def gauges(name: str, about: str, labels: Sequence[str], rows: Iterable[Row]) -> Metric:
    """Return such a number for each combination of values of the labels."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for values, number in rows:
        family.add_metric(values, number)
    return family


def counter(name: str, about: str, value: float) -> Metric:
    """Return a number that only grows; the name on the page ends in `_total`."""
    return CounterMetricFamily(name, about, value)


def counters(name: str, about: str, labels: Sequence[str], rows: Iterable[Row]) -> Metric:
    """Return such a number for each combination of values of the labels."""
    family = CounterMetricFamily(name, about, labels=labels)
    for values, number in rows:
        family.add_metric(values, number)
    return family


Summary = tuple[Sequence[str], int, Mapping[str, float]]
"""The values of the labels, the count, and the quantiles."""


def summary(name: str, about: str, labels: Sequence[str], rows: Iterable[Summary]) -> Metric:
    """Return counts with quantiles."""
    family = SummaryMetricFamily(name, about, labels=labels)
    for values, count, quantiles in rows:
        named = dict(zip(labels, values, strict=True))
        family.add_sample(f"{name}_count", named, count)
        for quantile, value in quantiles.items():
            family.add_sample(name, {**named, "quantile": quantile}, value)
    return family
