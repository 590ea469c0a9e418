"""GetTelemetrySubscriptions (key 71), version 0: the metrics that a client shall push (KIP-714).

A client that has no instance id sends zeros, and uses the id of the answer from then on. The
metrics are prefixes of names; none means that nothing is pushed, and `*` all metrics.
"""

from common.kafka.protocol.message import (
    Message,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions="0", flexible="0+"):
    client_instance_id: bytes = uuid()


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string)
