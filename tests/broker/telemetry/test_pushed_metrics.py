"""The values of the metrics page: read from OTLP, added up, and bounded."""

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from broker.telemetry import otlp
from broker.telemetry.pushed_metrics import (
    MAX_SERIES,
    MAX_SERIES_OF_A_CLIENT,
    PushedMetrics,
    Series,
)
from common.kafka.errors import KafkaError

SHOP = ("shop", "id")
OWN = (("client_id", "shop"), ("client_instance_id", "id"))


def data(name: str, value: float = 1.0, kind: str = "gauge", **labels: str) -> MetricsData:
    made = MetricsData()
    metric = made.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    point = getattr(metric, kind).data_points.add()
    if kind == "sum":
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = otlp.DELTA
    if kind != "histogram":
        point.as_double = value
    for key, text in labels.items():
        point.attributes.add(key=key).value.string_value = text
    return made


def pushed(*all_data: MetricsData) -> PushedMetrics:
    kept = PushedMetrics()
    for each in all_data:
        points = otlp.points_of(otlp.parse(each.SerializeToString()))
        kept.push(b"id", SHOP, points, expires_ms=10)
    return kept


def test_deltas_are_added_up_and_gauges_replaced() -> None:
    kept = pushed(
        data("org.apache.kafka.sent.total", 2, "sum"),
        data("org.apache.kafka.sent.total", 3, "sum"),
        data("org.apache.kafka.latency", 7, node_id="1"),
        data("org.apache.kafka.latency", 5, node_id="1"),
    )
    assert list(kept) == [
        Series("org_apache_kafka_sent", True, OWN, 5),
        Series("org_apache_kafka_latency", False, (*OWN, ("node_id", "1")), 5),
    ]


def test_no_client_writes_one_of_the_broker_s_own_metrics() -> None:
    assert [each.name for each in pushed(data("kafka_server_bytes_in"))] == [
        "client_kafka_server_bytes_in"
    ]


def test_a_name_is_a_counter_for_all_clients_or_for_none() -> None:
    kept = pushed(data("org.a"))
    points = otlp.points_of(otlp.parse(data("org.a", 1, "sum").SerializeToString()))
    kept.push(b"other", SHOP, points, 10)
    assert [each.is_counter for each in kept] == [False]


@pytest.mark.parametrize(
    "bad",
    [
        data("x" * 201),
        data(""),
        data("a", 1, "histogram"),
        data("a", 1, label="x" * 201),
        data("a", 1, client_id="somebody else"),
        data("a", 1, **{f"label{number}": "x" for number in range(7)}),
    ],
)
def test_what_cannot_be_shown_is_dropped_and_counted(bad: MetricsData) -> None:
    kept = pushed(bad)
    assert list(kept) == []
    assert kept.dropped_count == 1


def test_series_are_bounded_and_leave_with_a_client_that_is_silent() -> None:
    kept = PushedMetrics()
    many = [otlp.Point(f"a{number}", (), 1.0, False, False) for number in range(3_000)]
    for number in range(20):
        kept.push(number.to_bytes(1, "big"), SHOP, many, expires_ms=number)
    assert kept.series_count == MAX_SERIES
    assert kept.dropped_count == 20 * 3_000 - MAX_SERIES
    kept.expire(now_ms=5)
    assert kept.series_count == MAX_SERIES - 5 * MAX_SERIES_OF_A_CLIENT


@pytest.mark.parametrize("payload", [b"\xff", b"\x0a\x05a", b"\x0a\x02" * 9])
def test_bytes_that_are_no_otlp_are_refused(payload: bytes) -> None:
    with pytest.raises(KafkaError):
        otlp.parse(payload)
