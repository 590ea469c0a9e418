"""The settings of one node as typed values: what the rest of the broker is built from."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.sources import invalid
from broker.coordinator.group.config import GroupConfig
from broker.log.config import LogConfig, topic_defaults

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
_LIMITS = {"SHORT": 2**15 - 1, "INT": INT32_MAX, "LONG": INT64_MAX}

# Settings that would promise safety and are not built yet: better no broker than a false promise.
_NOT_YET = {
    "authorizer.class.name": "authorization",
    "remote.log.storage.system.enable": "tiered storage",
    "sasl.jaas.config": "SASL",
    "ssl.keystore.location": "TLS",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener: its name, host ("" is every interface) and port (0 is a free one)."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """The settings of compaction, `log.cleaner.*`."""

    is_enabled: bool
    thread_count: int
    backoff_ms: int
    dedupe_buffer_bytes: int
    io_max_bytes_per_second: float


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A node's settings. `given` holds the texts as they were given, for DescribeConfigs."""

    given: Mapping[str, str]
    node_id: int
    rack: str | None
    listeners: tuple[Endpoint, ...]
    advertised_listeners: tuple[Endpoint, ...]
    http_listener: Endpoint | None
    log_dirs: tuple[str, ...]
    log: LogConfig
    group: GroupConfig
    cleaner: CleanerConfig
    partition_count: int
    replication_factor: int
    auto_create_topics: bool
    delete_topic: bool
    offsets_partition_count: int
    offsets_segment_bytes: int
    max_frame_bytes: int
    max_fetch_bytes: int
    max_connections: int
    max_connections_per_ip: int
    connections_max_idle_ms: int
    listen_backlog: int
    retention_check_interval_ms: int
    flush_checkpoint_interval_ms: int
    producer_id_expiration_ms: int

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> "BrokerConfig":
        """Type and check what was given; raises KafkaError(INVALID_CONFIG)."""
        _refuse_what_is_not_built(given)
        values = Values(given)
        listeners = _client_listeners(values)
        return cls(
            given=dict(given),
            node_id=_node_id(values),
            rack=values.text("broker.rack") or None,
            listeners=listeners,
            advertised_listeners=_advertised(values, listeners),
            http_listener=_http_listener(values),
            log_dirs=_log_dirs(values),
            log=LogConfig.from_settings(topic_defaults(given)),
            group=_group_config(values),
            cleaner=_cleaner_config(values),
            partition_count=values.integer("num.partitions", 1),
            replication_factor=values.integer("default.replication.factor", 1),
            auto_create_topics=values.boolean("auto.create.topics.enable"),
            delete_topic=values.boolean("delete.topic.enable"),
            offsets_partition_count=values.integer("offsets.topic.num.partitions", 1),
            offsets_segment_bytes=values.integer("offsets.topic.segment.bytes", 1),
            max_frame_bytes=values.integer("socket.request.max.bytes", 1),
            max_fetch_bytes=values.integer("fetch.max.bytes", 1024),
            max_connections=values.integer("max.connections", 0),
            max_connections_per_ip=values.integer("max.connections.per.ip", 0),
            connections_max_idle_ms=values.integer("connections.max.idle.ms", -1),
            listen_backlog=values.integer("socket.listen.backlog.size", 1),
            retention_check_interval_ms=values.integer("log.retention.check.interval.ms", 1),
            flush_checkpoint_interval_ms=values.integer(
                "log.flush.offset.checkpoint.interval.ms", 0
            ),
            producer_id_expiration_ms=values.integer("producer.id.expiration.ms", 1),
        )


class Values:
    """The given settings over their defaults, read by type."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given

    def text(self, name: str) -> str:
        """Return the text of a setting; the empty text where it is null."""
        value = self.given.get(name)
        return (KNOWN_SETTINGS[name].default or "") if value is None else value

    def items(self, name: str) -> list[str]:
        """Return a list setting, without empty items."""
        return [item.strip() for item in self.text(name).split(",") if item.strip()]

    def integer(self, name: str, minimum: int) -> int:
        """Return an integer of the setting's own width that is at least `minimum`."""
        text = self.text(name)
        limit = _LIMITS[KNOWN_SETTINGS[name].type]
        try:
            value = int(text)
        except ValueError:
            raise invalid(f"{name}={text}: not a whole number") from None
        if not minimum <= value <= limit:
            raise invalid(f"{name}={text}: must be between {minimum} and {limit}")
        return value

    def positive_number(self, name: str) -> float:
        """Return a number greater than zero."""
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            raise invalid(f"{name}={text}: not a number") from None
        if not value > 0:
            raise invalid(f"{name}={text}: must be greater than 0")
        return value

    def boolean(self, name: str) -> bool:
        """Return a boolean, in Java's spelling."""
        text = self.text(name).lower()
        if text not in {"true", "false"}:
            raise invalid(f"{name}={text}: must be true or false")
        return text == "true"


def _refuse_what_is_not_built(given: Mapping[str, str]) -> None:
    for name, what in _NOT_YET.items():
        if given.get(name, "") not in {"", "false"}:
            raise invalid(f"{name}: {what} is not supported yet")


def _node_id(values: Values) -> int:
    if "node.id" not in values.given and values.given.get("broker.id", "-1") != "-1":
        return values.integer("broker.id", 0)
    return values.integer("node.id", 0)


def _log_dirs(values: Values) -> tuple[str, ...]:
    names = values.items("log.dirs") or values.items("log.dir")
    if not names or len(set(names)) < len(names):
        raise invalid("log.dirs: must name at least one directory, and none twice")
    return tuple(names)


def _endpoint(setting: str, text: str) -> Endpoint:
    name, separator, address = text.partition("://")
    host, colon, port_text = address.rpartition(":")
    if not separator or not colon or not name or not port_text.isdecimal():
        raise invalid(f"{setting}={text}: expected NAME://host:port")
    port = int(port_text)
    if port > 65_535:
        raise invalid(f"{setting}={text}: port {port} is out of range")
    return Endpoint(name.upper(), host.strip("[]"), port)


def _security_protocol(values: Values, listener: str) -> str:
    pairs = (item.partition(":") for item in values.items("listener.security.protocol.map"))
    protocols = {name.upper(): protocol.upper() for name, _, protocol in pairs}
    # Kafka maps the controller listener by default; a map that was given replaces that.
    return protocols.get(listener, "PLAINTEXT" if listener == "CONTROLLER" else listener)


def _client_listeners(values: Values) -> tuple[Endpoint, ...]:
    controllers = {name.upper() for name in values.items("controller.listener.names")}
    endpoints = [_endpoint("listeners", text) for text in values.items("listeners")]
    if len({endpoint.name for endpoint in endpoints}) < len(endpoints):
        raise invalid("listeners: each listener must have a name of its own")
    clients = tuple(endpoint for endpoint in endpoints if endpoint.name not in controllers)
    if not clients:
        raise invalid("listeners: there must be at least one listener for clients")
    for endpoint in clients:
        protocol = _security_protocol(values, endpoint.name)
        if protocol not in {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}:
            raise invalid(
                f"listeners: no security protocol is defined for listener {endpoint.name}"
            )
        if protocol != "PLAINTEXT":
            raise invalid(f"listeners: {protocol} is not supported yet; use PLAINTEXT")
    return clients


def _advertised(values: Values, listeners: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    given = {
        endpoint.name: endpoint
        for endpoint in (
            _endpoint("advertised.listeners", text) for text in values.items("advertised.listeners")
        )
    }
    for endpoint in given.values():
        if endpoint.host in {"", "0.0.0.0", "::"}:
            raise invalid("advertised.listeners: cannot advertise a non-routable address")
    return tuple(given.get(endpoint.name, endpoint) for endpoint in listeners)


def _http_listener(values: Values) -> Endpoint | None:
    text = values.text("http.listener")
    return _endpoint("http.listener", f"HTTP://{text}") if text else None


def _cleaner_config(values: Values) -> CleanerConfig:
    return CleanerConfig(
        is_enabled=values.boolean("log.cleaner.enable"),
        thread_count=values.integer("log.cleaner.threads", 1),
        backoff_ms=values.integer("log.cleaner.backoff.ms", 0),
        dedupe_buffer_bytes=values.integer("log.cleaner.dedupe.buffer.size", 1024),
        io_max_bytes_per_second=values.positive_number("log.cleaner.io.max.bytes.per.second"),
    )


def _group_config(values: Values) -> GroupConfig:
    config = GroupConfig(
        group_min_session_timeout_ms=values.integer("group.min.session.timeout.ms", 0),
        group_max_session_timeout_ms=values.integer("group.max.session.timeout.ms", 0),
        group_initial_rebalance_delay_ms=values.integer("group.initial.rebalance.delay.ms", 0),
        group_max_size=values.integer("group.max.size", 1),
        max_batch_bytes=values.integer("message.max.bytes", 0),
        offset_metadata_max_bytes=values.integer("offset.metadata.max.bytes", 0),
        offsets_retention_ms=values.integer("offsets.retention.minutes", 1) * 60_000,
        offsets_retention_check_interval_ms=values.integer(
            "offsets.retention.check.interval.ms", 1
        ),
    )
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        raise invalid("group.min.session.timeout.ms must not exceed group.max.session.timeout.ms")
    return config
