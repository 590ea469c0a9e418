"""The settings of replication between brokers: `replica.*` and related ones."""

from dataclasses import dataclass

from broker.config.listeners import Endpoint, read_inter_broker_name
from broker.config.sources import invalid
from broker.config.values import Values

RACK_AWARE_SELECTOR = "RackAwareReplicaSelector"


@dataclass(frozen=True, slots=True)
class CopyLimit:
    """A rate limit of copying, and the windows of its measurement."""

    bytes_per_second: int
    window_ms: int
    window_count: int


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    """The settings of this broker as a follower and as a leader."""

    lag_time_max_ms: int
    backoff_ms: int
    fetch_max_bytes: int
    """The limit for one partition in an answer."""
    fetch_min_bytes: int
    fetch_wait_max_ms: int
    response_max_bytes: int
    fetcher_count: int
    """The number of connections to each leader."""
    socket_timeout_ms: int
    high_watermark_checkpoint_interval_ms: int
    fetch_session_slots: int
    """The largest number of fetch sessions (KIP-227)."""
    listener_name: str
    """The listener between brokers."""
    selects_by_rack: bool
    """True if consumers are directed to a replica in their own rack (KIP-392)."""
    leader_limit: CopyLimit
    """The limit of sending to throttled replicas (KIP-73)."""
    follower_limit: CopyLimit
    """The limit of fetching for throttled replicas (KIP-73)."""
    move_limit: CopyLimit
    """The limit of copying between log directories."""


def read_replication_config(values: Values, listeners: tuple[Endpoint, ...]) -> ReplicationConfig:
    """Read the settings; raise KafkaError(INVALID_CONFIG)."""
    return ReplicationConfig(
        lag_time_max_ms=values.integer("replica.lag.time.max.ms", 1),
        backoff_ms=values.integer("replica.fetch.backoff.ms", 0),
        fetch_max_bytes=values.integer("replica.fetch.max.bytes", 0),
        fetch_min_bytes=values.integer("replica.fetch.min.bytes", 0),
        fetch_wait_max_ms=values.integer("replica.fetch.wait.max.ms", 0),
        response_max_bytes=values.integer("replica.fetch.response.max.bytes", 0),
        fetcher_count=values.integer("num.replica.fetchers", 1),
        socket_timeout_ms=values.integer("replica.socket.timeout.ms", 1),
        high_watermark_checkpoint_interval_ms=values.integer(
            "replica.high.watermark.checkpoint.interval.ms", 1
        ),
        fetch_session_slots=values.integer("max.incremental.fetch.session.cache.slots", 0),
        listener_name=read_inter_broker_name(values, listeners),
        selects_by_rack=_selects_by_rack(values),
        leader_limit=_copy_limit(values, "leader.replication.throttled.rate", "replication"),
        follower_limit=_copy_limit(values, "follower.replication.throttled.rate", "replication"),
        move_limit=_copy_limit(
            values,
            "replica.alter.log.dirs.io.max.bytes.per.second",
            "alter.log.dirs.replication",
        ),
    )


def _copy_limit(values: Values, name: str, windows: str) -> CopyLimit:
    return CopyLimit(
        bytes_per_second=values.integer(name, 0),
        window_ms=values.integer(f"{windows}.quota.window.size.seconds", 1) * 1_000,
        window_count=values.integer(f"{windows}.quota.window.num", 1),
    )


def _selects_by_rack(values: Values) -> bool:
    """Return True for Kafka's rack-aware selector; raise INVALID_CONFIG for other classes."""
    wanted = values.text("replica.selector.class").rpartition(".")[2]
    if wanted in {"", "LeaderSelector"}:
        return False
    if wanted != RACK_AWARE_SELECTOR:
        raise invalid(f"replica.selector.class={wanted}: only {RACK_AWARE_SELECTOR} is known")
    return True
