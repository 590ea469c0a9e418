"""The shell of client metrics: subscriptions from the metadata, pushes to the page and onwards.

GetTelemetrySubscriptions and PushTelemetry are advertised while they are of use: while the cluster
has a subscription, or `client.telemetry.otlp.endpoint` is set. Every client asks at its start, and
again at each interval, as soon as they are advertised; a cluster that wants no metrics is spared
that. A client that connects earlier learns of the first subscription when it is restarted.

Metrics are read with the `opentelemetry-proto` library, an optional dependency
(`millstream[telemetry]`); without it nothing is advertised.
"""

import logging
from collections.abc import Mapping
from itertools import islice

from broker.metadata.delta import MetadataDelta
from broker.metadata.parts.configs import CLIENT_METRICS_RESOURCE
from broker.records.compression import Scratch, decompress
from broker.records.errors import CorruptBatch, TooMuchAtOnce
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.connection import Connection
from broker.server.network.later import Steps
from broker.server.telemetry.otlp_forwarder import OtlpForwarder
from broker.telemetry.client_instances import ClientInstance, ClientInstances, Push
from broker.telemetry.library import has_library
from broker.telemetry.pushed_metrics import PushedMetrics
from broker.telemetry.subscriptions import read_subscription
from common.kafka.errors import ErrorCode, KafkaError

log = logging.getLogger("millstream.telemetry")


POINTS_AT_ONCE = 1_000
"""These are read within two milliseconds."""


class ClientTelemetry:
    """Owns the known clients and what they pushed."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        clock: Clock,
        max_push_bytes: int,
        forwarder: OtlpForwarder | None,
    ) -> None:
        self.instances = ClientInstances(max_push_bytes)
        self.pushed = PushedMetrics()
        self.forwarder = forwarder
        self.export_count = 0
        self.error_count = 0
        self._metadata = metadata
        self._clock = clock
        self._max_push_bytes = max_push_bytes
        self._has_subscription = False
        self._scratch = Scratch()
        self._by_connection: dict[Connection, bytes] = {}

    @property
    def is_advertised(self) -> bool:
        """True if clients shall ask for subscriptions."""
        return (self._has_subscription or self.forwarder is not None) and has_library()

    def apply(self, delta: MetadataDelta) -> None:
        """Follow changes of the subscriptions."""
        if any(kind == CLIENT_METRICS_RESOURCE for kind, _ in delta.changed_configs):
            self.follow()

    def follow(self) -> None:
        """Read all subscriptions of the metadata."""
        configs = self._metadata.image.configs
        names = [name for kind, name in configs if kind == CLIENT_METRICS_RESOURCE]
        found = [
            read_subscription(configs.settings_of(CLIENT_METRICS_RESOURCE, name)) for name in names
        ]
        self._has_subscription = bool(names)
        self.instances.subscribe(each for each in found if each is not None)
        log.info("client metrics subscriptions count=%d", len(names))
        if names and not has_library():
            log.warning("clients are not asked for metrics: this needs millstream[telemetry]")

    def instance(
        self, connection: Connection, instance_id: bytes, attributes: Mapping[str, str]
    ) -> ClientInstance:
        """Return the client instance of a request."""
        instance = self.instances.find(instance_id, attributes, self._clock.now_ms())
        self._by_connection[connection] = instance_id
        return instance

    def check_get(self, instance: ClientInstance) -> None:
        """Raise KafkaError for a request that comes too early."""
        self.instances.check_get(instance, self._clock.now_ms())

    def push(self, instance: ClientInstance, push: Push, metrics: bytes) -> Steps[None]:
        """Take the metrics of a client; raise KafkaError."""
        self.instances.check_push(instance, push, self._clock.now_ms())
        if not metrics:
            return
        try:
            yield from self._export(instance, self._unpacked(push.compression_type, metrics))
        except KafkaError as error:
            self.error_count += 1
            instance.last_error = error.code
            raise
        self.export_count += 1

    def _unpacked(self, compression_type: int, metrics: bytes) -> bytes:
        """Decompress a push, which may have telemetry.max.bytes unpacked, as with Kafka's plug-ins.

        Raises KafkaError(INVALID_RECORD).
        """
        try:
            unpacked = decompress(compression_type, metrics, self._scratch)
        except (CorruptBatch, TooMuchAtOnce) as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, "cannot decompress the metrics") from error
        if len(unpacked) > self._max_push_bytes:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"more than {self._max_push_bytes} bytes")
        return bytes(unpacked)

    def _export(self, instance: ClientInstance, payload: bytes) -> Steps[None]:
        if not has_library():
            raise KafkaError(ErrorCode.INVALID_RECORD, "this broker reads no client metrics")
        from broker.telemetry import otlp

        data = otlp.parse(payload)
        wanted = instance.wanted
        attributes = instance.attributes
        client = attributes["client_id"], attributes["client_instance_id"]
        left = otlp.points_of(data)
        while points := list(islice(left, POINTS_AT_ONCE)):
            self.pushed.push(
                instance.instance_id,
                client,
                (each for each in points if each is None or wanted.includes(each.name)),
                instance.expires_ms,
            )
            yield None
        if self.forwarder is not None:
            self.forwarder.send(otlp.with_attributes(data, attributes))

    def forget(self, connection: Connection) -> None:
        """Drop the client of a closed connection; what it pushed stays until it expires."""
        instance_id = self._by_connection.pop(connection, None)
        if instance_id is not None:
            self.instances.forget(instance_id)

    def expire(self) -> None:
        """Drop silent clients and what they pushed."""
        now_ms = self._clock.now_ms()
        self.instances.expire(now_ms)
        self.pushed.expire(now_ms)

    def stop(self) -> None:
        """Stop forwarding."""
        if self.forwarder is not None:
            self.forwarder.stop()
