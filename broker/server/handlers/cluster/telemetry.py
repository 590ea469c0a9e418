"""The metrics of clients (KIP-714): what they are to push, and what they push.

GetTelemetrySubscriptions (key 71), version 0, and PushTelemetry (key 72), version 0.
"""

from broker.log.checkpoints import encode_uuid
from broker.records.compression import Codec
from broker.server.clock import random_uuid
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.telemetry.client_telemetry import ClientTelemetry
from broker.telemetry.client_instances import RESERVED_IDS, ZERO_ID, Push
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from common.kafka.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)

ACCEPTED_COMPRESSION = [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]


class GetTelemetrySubscriptions:
    """Answers what the client shall push, and gives it an instance id."""

    def __init__(self, telemetry: ClientTelemetry) -> None:
        self._telemetry = telemetry

    def handle(self, context: RequestContext, request: GetTelemetrySubscriptionsRequest) -> Answer:
        """Answer a client; raise THROTTLING_QUOTA_EXCEEDED if it asks too often."""
        instance_id = bytes(request.client_instance_id)
        if instance_id == ZERO_ID:
            instance_id = random_uuid().bytes
        attributes = client_attributes(context, instance_id)
        instance = self._telemetry.instance(context.connection, instance_id, attributes)
        self._telemetry.check_get(instance)
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=[int(codec) for codec in ACCEPTED_COMPRESSION],
            push_interval_ms=instance.wanted.interval_ms,
            telemetry_max_bytes=self._telemetry.instances.max_push_bytes,
            delta_temporality=True,
            requested_metrics=list(instance.wanted.metrics),
        )


def client_attributes(context: RequestContext, instance_id: bytes) -> dict[str, str]:
    """Return the attributes of a client by the selectors of subscriptions."""
    peer = context.connection.peer
    return {
        "client_instance_id": encode_uuid(instance_id),
        "client_id": context.header.client_id or "",
        "client_software_name": peer.software_name,
        "client_software_version": peer.software_version,
        "client_source_address": peer.host,
        "client_source_port": str(context.connection.peer_port()),
    }


class PushTelemetry:
    """Takes the metrics of a client."""

    def __init__(self, telemetry: ClientTelemetry) -> None:
        self._telemetry = telemetry

    def handle(self, context: RequestContext, request: PushTelemetryRequest) -> Steps[Answer]:
        """Take a push; raise KafkaError."""
        instance_id = bytes(request.client_instance_id)
        if instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "invalid client instance id")
        attributes = client_attributes(context, instance_id)
        instance = self._telemetry.instance(context.connection, instance_id, attributes)
        push = Push(
            request.subscription_id,
            request.compression_type,
            len(request.metrics),
            request.terminating,
        )
        yield from self._telemetry.push(instance, push, request.metrics)
        return PushTelemetryResponse()
