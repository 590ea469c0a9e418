"""OTLP's MetricsData (opentelemetry/proto/metrics/v1), read with the project's own library for it.

A push is the serialised message. Importing this module imports the protobuf runtime, so a broker
imports it with the first push.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1 import metrics_pb2

from common.kafka.errors import ErrorCode, KafkaError

MAX_RESOURCES: Final = 100
"""A client describes itself as one resource; what it describes gets attributes, for each."""

DELTA = metrics_pb2.AGGREGATION_TEMPORALITY_DELTA


class Point(NamedTuple):
    """One value of one series."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool
    is_delta: bool
    """True if the value counts what happened since the last push."""


def parse(payload: bytes) -> Any:
    """Return a MetricsData; raise KafkaError(INVALID_RECORD) for bytes that are none."""
    data = metrics_pb2.MetricsData()
    try:
        data.ParseFromString(payload)
    except (DecodeError, RecursionError) as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the metrics are not OTLP") from error
    if len(data.resource_metrics) > MAX_RESOURCES:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"more than {MAX_RESOURCES} resources")
    return data


def points_of(data: Any) -> Iterator[Point | None]:
    """Iterate over the values of gauges and sums; None stands for a part that has no such value."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            if not scope.metrics:
                yield None
            for metric in scope.metrics:
                yield from _points_of_metric(metric)


def _points_of_metric(metric: Any) -> Iterator[Point | None]:
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind) if kind in {"gauge", "sum"} else None
    if data is None or not data.data_points:
        yield None
        return
    is_counter = kind == "sum" and data.is_monotonic
    is_delta = kind == "sum" and data.aggregation_temporality == DELTA
    for point in data.data_points:
        value = point.as_double if point.WhichOneof("value") == "as_double" else point.as_int
        yield Point(metric.name, _labels(point.attributes), value, is_counter, is_delta)


def _labels(attributes: Any) -> tuple[tuple[str, str], ...]:
    return tuple((each.key, _text(each.value)) for each in attributes)


def _text(value: Any) -> str:
    kind = value.WhichOneof("value")
    return str(getattr(value, kind)) if kind in _PLAIN else ""


_PLAIN = {"string_value", "int_value", "bool_value", "double_value"}


def with_attributes(data: Any, attributes: Mapping[str, str]) -> bytes:
    """Return the message with the attributes of the client added to every resource.

    The bytes are an ExportMetricsServiceRequest too: it has the same field.
    """
    for resource_metrics in data.resource_metrics:
        for key, value in attributes.items():
            added = resource_metrics.resource.attributes.add()
            added.key = key
            added.value.string_value = value
    return bytes(data.SerializeToString())
