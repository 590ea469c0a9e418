"""The settings of one node as typed values, from which the broker is built."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlsplit

from broker.config.internal_topics import InternalTopic, read_internal_topics
from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.listeners import (
    Endpoint,
    Listeners,
    parse_endpoint,
    read_advertised,
    read_listeners,
)
from broker.config.quorum_config import (
    BROKER,
    CONTROLLER,
    QuorumConfig,
    Voter,
    read_bootstrap_servers,
    read_quorum_config,
    read_roles,
    read_voters,
)
from broker.config.quota_config import QuotaConfig, read_quota_config
from broker.config.replication_config import ReplicationConfig, read_replication_config
from broker.config.security_config import SecurityConfig, read_security_config
from broker.config.sources import invalid
from broker.config.values import Values
from broker.coordinator.group_state.config import (
    ASSIGNOR,
    MAX_SHARE_GROUP_SIZE,
    RANGE,
    UNIFORM,
    ConsumerGroupConfig,
    GroupConfig,
    MigrationPolicy,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from broker.coordinator.share_state.state import MAX_UPDATES_PER_SNAPSHOT, ShareStateConfig
from broker.coordinator.transaction.config import TransactionConfig
from broker.log.config import LogConfig, topic_defaults
from broker.metadata.control.group_limits import GROUP_LIMITS, GroupLimit, broker_setting
from broker.share.group_settings import Bounded, ShareLeaderConfig
from broker.telemetry.library import has_library
from common.credentials.translation import ClientSettingsError
from common.http.security import HttpSecurity, http_security

__all__ = ["BrokerConfig", "CleanerConfig", "Endpoint", "QuorumConfig", "Voter"]

# Settings of features that are not implemented: the broker refuses to start with one of them.
_NOT_YET = {
    "alter.config.policy.class.name": "a policy for settings",
    "client.quota.callback.class": "a class that decides on quotas",
    "create.topic.policy.class.name": "a policy for new topics",
    "principal.builder.class": "a class that names principals",
    "queued.max.request.bytes": "a limit on the bytes of waiting requests",
    "remote.log.storage.system.enable": "tiered storage",
    "transaction.two.phase.commit.enable": "two-phase commit of transactions",
}

_KAFKAS_PRINCIPAL_BUILDER = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)

MIN_INITIAL_REBALANCE_DELAY_MS = 60
"""An empty group waits at least so long for more members, also where the setting says 0.

Members of one program join within milliseconds, those of librdkafka up to 55 ms apart, for it looks
after its groups every 50 ms. One that is let in alone handles records until its next heartbeat,
seconds later, whose partitions then move. A lone member does not feel so short a wait."""


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
    """A node's settings; `given` has their original texts, for DescribeConfigs."""

    given: Mapping[str, str]
    node_id: int
    rack: str | None
    process_roles: frozenset[str]
    listeners: tuple[Endpoint, ...]
    """The listeners for clients; a node without the broker role has none."""
    advertised_listeners: tuple[Endpoint, ...]
    controller_listeners: tuple[Endpoint, ...]
    voters: tuple[Voter, ...]
    """The static voters, ascending; empty if the voters are in the log."""
    bootstrap_servers: tuple[tuple[str, int], ...]
    security: SecurityConfig
    quorum: QuorumConfig
    replication: ReplicationConfig
    heartbeat_interval_ms: int
    session_timeout_ms: int
    registration_timeout_ms: int
    """How long a starting broker tries to register."""
    controlled_shutdown: bool
    http_listener: Endpoint | None
    http_allowed_hosts: str
    http_security: HttpSecurity
    http_neighbours: str
    otlp_endpoint: str
    """The URL that client metrics are sent to (KIP-714), or empty."""
    telemetry_max_bytes: int
    slow_request_trace_ms: int
    """A request that takes longer is told to OpenTelemetry; -1: none is."""
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    """The directory of the metadata log: one of `log_dirs` or another one."""
    log: LogConfig
    group: GroupConfig
    group_limits: Mapping[str, GroupLimit]
    """The bounds of the settings of groups, by the name of the group's setting."""
    transaction: TransactionConfig
    share_state: ShareStateConfig
    share_leader: ShareLeaderConfig
    cleaner: CleanerConfig
    partition_count: int
    replication_factor: int
    auto_create_topics: bool
    delete_topic: bool
    internal_topics: Mapping[str, InternalTopic]
    max_frame_bytes: int
    max_fetch_bytes: int
    quotas: QuotaConfig
    connections_max_idle_ms: int
    listen_backlog: int
    retention_check_interval_ms: int
    flush_checkpoint_interval_ms: int
    producer_id_expiration_ms: int
    verifies_transactions: bool
    """transaction.partition.verification.enable"""
    add_partitions_backoff_ms: int
    """add.partitions.to.txn.retry.backoff.ms"""
    add_partitions_backoff_max_ms: int
    """add.partitions.to.txn.retry.backoff.max.ms"""

    def on_ports(self, ports: Mapping[str, int]) -> Self:
        """Return these settings with each listener on its port; on a free one if it has none."""

        def moved(endpoints: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
            return tuple(each._replace(port=ports.get(each.name, 0)) for each in endpoints)

        advertised = (
            each._replace(port=0) if each.port == listener.port else each
            for each, listener in zip(self.advertised_listeners, self.listeners, strict=True)
        )
        return replace(
            self,
            listeners=moved(self.listeners),
            advertised_listeners=tuple(advertised),
            controller_listeners=moved(self.controller_listeners),
        )

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> "BrokerConfig":
        """Convert and check the given settings; raise KafkaError(INVALID_CONFIG)."""
        _refuse_what_is_not_built(settings)
        values = Values(settings)
        node_id, roles = _node_id(values), read_roles(values)
        listeners = read_listeners(values, roles)
        replication = read_replication_config(values, listeners.clients)
        log_dirs = _log_dirs(values)
        voters, bootstrap_servers = read_voters(values, node_id, roles), _servers(values, roles)
        is_alone = CONTROLLER in roles and len(voters) <= 1 and not bootstrap_servers
        return cls(
            given=dict(settings),
            node_id=node_id,
            rack=values.text("broker.rack") or None,
            process_roles=roles,
            listeners=listeners.clients,
            advertised_listeners=read_advertised(values, listeners.clients),
            controller_listeners=listeners.controllers,
            voters=voters,
            bootstrap_servers=bootstrap_servers,
            security=_security_config(values, listeners, replication.listener_name),
            quorum=read_quorum_config(values),
            replication=replication,
            heartbeat_interval_ms=values.integer("broker.heartbeat.interval.ms", 1),
            session_timeout_ms=values.integer("broker.session.timeout.ms", 1),
            registration_timeout_ms=values.integer("initial.broker.registration.timeout.ms", 0),
            controlled_shutdown=values.boolean("controlled.shutdown.enable"),
            http_listener=_http_listener(values),
            http_allowed_hosts=values.text("http.allowed.hosts"),
            http_security=_http_security(values),
            http_neighbours=values.text("http.neighbours"),
            otlp_endpoint=_otlp_endpoint(values),
            telemetry_max_bytes=values.integer("telemetry.max.bytes", 1),
            slow_request_trace_ms=values.integer("slow.request.trace.ms", -1),
            log_dirs=log_dirs,
            metadata_log_dir=values.text("metadata.log.dir") or log_dirs[0],
            log=LogConfig.from_settings(topic_defaults(settings)),
            group=_group_config(values),
            group_limits=_group_limits(values),
            transaction=_transaction_config(values),
            share_state=_share_state_config(values),
            share_leader=_share_leader_config(values),
            cleaner=_cleaner_config(values),
            partition_count=values.integer("num.partitions", 1),
            replication_factor=values.integer("default.replication.factor", 1),
            auto_create_topics=values.boolean("auto.create.topics.enable"),
            delete_topic=values.boolean("delete.topic.enable"),
            internal_topics=read_internal_topics(values, is_alone=is_alone),
            max_frame_bytes=values.integer("socket.request.max.bytes", 1),
            max_fetch_bytes=values.integer("fetch.max.bytes", 1024),
            quotas=read_quota_config(
                values, [each.name for each in (*listeners.clients, *listeners.controllers)]
            ),
            connections_max_idle_ms=values.integer("connections.max.idle.ms", -1),
            listen_backlog=values.integer("socket.listen.backlog.size", 1),
            retention_check_interval_ms=values.integer("log.retention.check.interval.ms", 1),
            flush_checkpoint_interval_ms=values.integer(
                "log.flush.offset.checkpoint.interval.ms", 0
            ),
            producer_id_expiration_ms=values.integer("producer.id.expiration.ms", 1),
            verifies_transactions=values.boolean("transaction.partition.verification.enable"),
            add_partitions_backoff_ms=values.integer("add.partitions.to.txn.retry.backoff.ms", 1),
            add_partitions_backoff_max_ms=values.integer(
                "add.partitions.to.txn.retry.backoff.max.ms", 0
            ),
        )

    @property
    def is_broker(self) -> bool:
        """True if this node serves clients."""
        return BROKER in self.process_roles

    @property
    def is_controller(self) -> bool:
        """True if this node has the controller role, so that it is or may become a voter."""
        return CONTROLLER in self.process_roles


def _refuse_what_is_not_built(settings: Mapping[str, str]) -> None:
    for name, what in _NOT_YET.items():
        value = settings.get(name, "")
        if value not in {"", "false", KNOWN_SETTINGS[name].default, _KAFKAS_PRINCIPAL_BUILDER}:
            raise invalid(f"{name}: {what} is not supported yet")


def _security_config(
    values: Values, listeners: Listeners, inter_broker_name: str
) -> SecurityConfig:
    names = [endpoint.name for endpoint in (*listeners.clients, *listeners.controllers)]
    controller_names = [name.upper() for name in values.items("controller.listener.names")]
    # A broker that is its own only controller asks no other. It connects to itself as to a broker:
    # the leader of a partition asks the coordinator of a transaction.
    has_controllers = bool(listeners.controllers or _names_controllers(values))
    return read_security_config(
        values,
        names,
        inter_broker=inter_broker_name if listeners.clients else "",
        controller=controller_names[0] if has_controllers and controller_names else "",
    )


def _names_controllers(values: Values) -> bool:
    return bool(
        values.items("controller.quorum.voters")
        or values.items("controller.quorum.bootstrap.servers")
    )


def _node_id(values: Values) -> int:
    if "node.id" not in values.given and values.given.get("broker.id", "-1") != "-1":
        return values.integer("broker.id", 0)
    return values.integer("node.id", 0)


def _log_dirs(values: Values) -> tuple[str, ...]:
    names = values.items("log.dirs") or values.items("log.dir")
    if not names or len(set(names)) < len(names):
        raise invalid("log.dirs: must name at least one directory, and none twice")
    return tuple(names)


def _servers(values: Values, roles: frozenset[str]) -> tuple[tuple[str, int], ...]:
    servers = read_bootstrap_servers(values)
    if not servers and CONTROLLER not in roles and not values.items("controller.quorum.voters"):
        raise invalid(
            "process.roles=broker needs controller.quorum.voters or "
            "controller.quorum.bootstrap.servers: there is no controller to follow"
        )
    return servers


def _http_listener(values: Values) -> Endpoint | None:
    text = values.text("http.listener")
    return parse_endpoint("http.listener", f"HTTP://{text}") if text else None


def _http_security(values: Values) -> HttpSecurity:
    try:
        return http_security(values.text("http.config"))
    except ClientSettingsError as error:
        raise invalid(f"http.config: {error}") from None


def _otlp_endpoint(values: Values) -> str:
    name = "client.telemetry.otlp.endpoint"
    url = values.text(name)
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
        has_port = parts.port != 0
    except ValueError:
        is_valid = has_port = False
    if url and not (is_valid and has_port):
        raise invalid(f"{name}={url}: must be a URL as http://localhost:4318/v1/metrics")
    if url and not has_library():
        raise invalid(f"{name} needs the extra millstream[telemetry], which is not installed")
    return url


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
        group_initial_rebalance_delay_ms=max(
            values.integer("group.initial.rebalance.delay.ms", 0), MIN_INITIAL_REBALANCE_DELAY_MS
        ),
        group_max_size=values.integer("group.max.size", 1),
        max_batch_bytes=values.integer("message.max.bytes", 0),
        commit_timeout_ms=values.integer("offsets.commit.timeout.ms", 1),
        offset_metadata_max_bytes=values.integer("offset.metadata.max.bytes", 0),
        offsets_retention_ms=values.integer("offsets.retention.minutes", 1) * 60_000,
        offsets_retention_check_interval_ms=values.integer(
            "offsets.retention.check.interval.ms", 1
        ),
        consumer=_consumer_group_config(values),
        share=_share_group_config(values),
        streams=_streams_group_config(values),
    )
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        raise invalid("group.min.session.timeout.ms must not exceed group.max.session.timeout.ms")
    return config


def _transaction_config(values: Values) -> TransactionConfig:
    return TransactionConfig(
        max_timeout_ms=values.integer("transaction.max.timeout.ms", 1),
        expiration_ms=values.integer("transactional.id.expiration.ms", 1),
        abort_check_interval_ms=values.integer(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms", 1
        ),
        expiration_check_interval_ms=values.integer(
            "transaction.remove.expired.transaction.cleanup.interval.ms", 1
        ),
        commit_timeout_ms=values.integer("request.timeout.ms", 1),
        max_batch_bytes=values.integer("message.max.bytes", 0),
    )


def _share_group_config(values: Values) -> ShareGroupConfig:
    if values.items("group.share.assignors") != [ASSIGNOR]:
        raise invalid(f"group.share.assignors: there is only {ASSIGNOR}")
    max_size = values.integer("group.share.max.size", 1)
    if max_size > MAX_SHARE_GROUP_SIZE:
        raise invalid(f"group.share.max.size must be at most {MAX_SHARE_GROUP_SIZE}")
    return ShareGroupConfig(
        session_timeout_ms=values.integer("group.share.session.timeout.ms", 1),
        heartbeat_interval_ms=values.integer("group.share.heartbeat.interval.ms", 1),
        assignment_interval_ms=values.integer("group.share.assignment.interval.ms", 0),
        max_size=max_size,
        initialize_retry_interval_ms=values.integer("group.share.initialize.retry.interval.ms", 1),
    )


def _streams_group_config(values: Values) -> StreamsGroupConfig:
    session_ms = values.integer("group.streams.session.timeout.ms", 1)
    heartbeat_ms = values.integer("group.streams.heartbeat.interval.ms", 1)
    if heartbeat_ms >= session_ms:
        raise invalid(
            "group.streams.heartbeat.interval.ms must be less than group.streams.session.timeout.ms"
        )
    return StreamsGroupConfig(
        is_enabled="streams" in values.items("group.coordinator.rebalance.protocols"),
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        max_size=values.integer("group.streams.max.size", 1),
        num_standby_replicas=values.integer("group.streams.num.standby.replicas", 0),
        initial_rebalance_delay_ms=values.integer("group.streams.initial.rebalance.delay.ms", 0),
        assignment_interval_ms=values.integer("group.streams.assignment.interval.ms", 0),
    )


def _group_limits(values: Values) -> dict[str, GroupLimit]:
    limits: dict[str, GroupLimit] = {}
    for key in GROUP_LIMITS:
        names = broker_setting(key, "min"), broker_setting(key, "max")
        lowest = values.integer(names[0], 0) if names[0] else GROUP_LIMITS[key].lowest
        highest = values.integer(names[1], 0) if names[1] else GROUP_LIMITS[key].highest
        if lowest > highest:
            raise invalid(f"{names[0]} exceeds {names[1]}")
        limits[key] = GroupLimit(lowest, highest, values.integer(f"group.{key}", 0))
    return limits


def _share_state_config(values: Values) -> ShareStateConfig:
    name = "share.coordinator.snapshot.update.records.per.snapshot"
    updates_per_snapshot = values.integer(name, 0)
    if updates_per_snapshot > MAX_UPDATES_PER_SNAPSHOT:
        raise invalid(f"{name} must be at most {MAX_UPDATES_PER_SNAPSHOT}")
    return ShareStateConfig(
        updates_per_snapshot=updates_per_snapshot,
        cold_snapshot_interval_ms=values.integer(
            "share.coordinator.cold.partition.snapshot.interval.ms", 1
        ),
        prune_interval_ms=values.integer("share.coordinator.state.topic.prune.interval.ms", 1),
        commit_timeout_ms=values.integer("share.coordinator.write.timeout.ms", 1),
        max_batch_bytes=values.integer("message.max.bytes", 0),
    )


def _share_leader_config(values: Values) -> ShareLeaderConfig:
    def bounded(name: str, minimum: int) -> Bounded:
        found = Bounded(
            values.integer(f"group.share.{name}", minimum),
            values.integer(f"group.share.min.{name}", minimum),
            values.integer(f"group.share.max.{name}", minimum),
        )
        if not found.lowest <= found.default <= found.highest:
            raise invalid(
                f"group.share.{name}={found.default} must be between group.share.min.{name}="
                f"{found.lowest} and group.share.max.{name}={found.highest}"
            )
        return found

    return ShareLeaderConfig(
        max_share_sessions=values.integer("group.share.max.share.sessions", 1),
        delivery_count_limit=bounded("delivery.count.limit", 2),
        record_lock_duration_ms=bounded("record.lock.duration.ms", 1_000),
        partition_max_record_locks=bounded("partition.max.record.locks", 100),
    )


def _consumer_group_config(values: Values) -> ConsumerGroupConfig:
    assignors = tuple(values.items("group.consumer.assignors"))
    if not assignors or not set(assignors) <= {UNIFORM, RANGE}:
        raise invalid(f"group.consumer.assignors: there are {UNIFORM} and {RANGE}")
    policy = values.text("group.consumer.migration.policy").lower()
    policies = [each.value for each in MigrationPolicy]
    if policy not in policies:
        raise invalid(f"group.consumer.migration.policy must be one of {', '.join(policies)}")
    return ConsumerGroupConfig(
        is_enabled="consumer" in values.items("group.coordinator.rebalance.protocols"),
        session_timeout_ms=values.integer("group.consumer.session.timeout.ms", 1),
        heartbeat_interval_ms=values.integer("group.consumer.heartbeat.interval.ms", 1),
        assignment_interval_ms=values.integer("group.consumer.assignment.interval.ms", 0),
        max_size=values.integer("group.consumer.max.size", 1),
        assignors=assignors,
        migration_policy=MigrationPolicy(policy),
    )
