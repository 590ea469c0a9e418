"""PushTelemetry (key 72), version 0: the metrics of a client, as OTLP's MetricsData (KIP-714)."""

from common.kafka.protocol.message import (
    Message,
    binary,
    boolean,
    int8,
    int16,
    int32,
    uuid,
)


class PushTelemetryRequest(Message, api_key=72, versions="0", flexible="0+"):
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = binary()


class PushTelemetryResponse(Message, api_key=72, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
