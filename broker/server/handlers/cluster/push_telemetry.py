"""PushTelemetry (key 72), version 0: the metrics of a client (KIP-714)."""

from broker.server.handlers.cluster.get_telemetry_subscriptions import client_attributes
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.telemetry.client_telemetry import ClientTelemetry
from broker.telemetry.client_instances import RESERVED_IDS, Push
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)


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
