"""Roles and the metadata quorum: `process.roles` and all settings named `controller.quorum.*`.

The voters are in the metadata log, to which `millstream storage format` wrote the first ones; a
node finds their leader through `controller.quorum.bootstrap.servers`. A quorum with `kraft.version`
0 has those of `controller.quorum.voters`, which do not change. A node with the controller role and
none of these is the only voter.
"""

from dataclasses import dataclass
from typing import NamedTuple

from broker.config.listeners import NON_ROUTABLE, parse_address
from broker.config.sources import invalid
from broker.config.values import Values

BROKER = "broker"
CONTROLLER = "controller"


class Voter(NamedTuple):
    """One controller of the quorum, with its address."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """The times and sizes of the quorum and of metadata snapshots."""

    election_timeout_ms: int
    election_backoff_max_ms: int
    fetch_timeout_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    fetch_max_bytes: int
    fetch_snapshot_max_bytes: int
    snapshot_after_bytes: int
    """A snapshot is due after this many committed bytes."""
    snapshot_interval_ms: int
    """A snapshot is due after this time, if records were committed; 0 turns this off."""
    segment_bytes: int
    leader_imbalance_check_interval_ms: int
    """The interval of preferred leader elections; 0 turns them off."""
    detects_failures_fast: bool
    """True if a refused connection counts as the failure of a node (not a setting of Kafka)."""
    joins_by_itself: bool
    """True if a new controller asks to become a voter (KIP-1186)."""


def read_roles(values: Values) -> frozenset[str]:
    """Read `process.roles`; raise KafkaError(INVALID_CONFIG)."""
    names = values.items("process.roles")
    roles = frozenset(names)
    if not roles or len(roles) < len(names) or not roles <= {BROKER, CONTROLLER}:
        raise invalid(
            f"process.roles={values.text('process.roles')}: must be broker, controller or both"
        )
    return roles


def read_voters(values: Values, node_id: int, roles: frozenset[str]) -> tuple[Voter, ...]:
    """Read `controller.quorum.voters`, ascending; raise KafkaError(INVALID_CONFIG)."""
    name = "controller.quorum.voters"
    voters = sorted(parse_voter(name, text) for text in values.items(name))
    ids = [voter.node_id for voter in voters]
    if len(set(ids)) < len(ids):
        raise invalid(f"{name}: a voter is named twice")
    if voters and CONTROLLER in roles and node_id not in ids:
        raise invalid(
            f"{name}: process.roles has controller, so node.id {node_id} must be one of the voters "
            f"{ids}"
        )
    if node_id in ids and CONTROLLER not in roles:
        raise invalid(
            f"{name}: process.roles has no controller, so node.id {node_id} must not be one of the "
            f"voters {ids}"
        )
    return tuple(voters)


def parse_voter(setting: str, text: str) -> Voter:
    """Parse `id@host:port`; raise KafkaError(INVALID_CONFIG)."""
    id_text, at, address = text.partition("@")
    if not at or not id_text.isdecimal():
        raise invalid(f"{setting}={text}: expected id@host:port")
    host, port = parse_address(setting, text, address)
    if host in NON_ROUTABLE or port == 0:
        raise invalid(f"{setting}={text}: must name a host and a port that others can reach")
    return Voter(int(id_text), host, port)


def read_bootstrap_servers(values: Values) -> tuple[tuple[str, int], ...]:
    """Read `controller.quorum.bootstrap.servers`; raise KafkaError(INVALID_CONFIG)."""
    name = "controller.quorum.bootstrap.servers"
    return tuple(parse_address(name, text, text) for text in values.items(name))


def read_quorum_config(values: Values) -> QuorumConfig:
    """Read the times and sizes; raise KafkaError(INVALID_CONFIG)."""
    return QuorumConfig(
        election_timeout_ms=values.integer("controller.quorum.election.timeout.ms", 1),
        election_backoff_max_ms=values.integer("controller.quorum.election.backoff.max.ms", 1),
        fetch_timeout_ms=values.integer("controller.quorum.fetch.timeout.ms", 2),
        request_timeout_ms=values.integer("controller.quorum.request.timeout.ms", 1),
        retry_backoff_ms=values.integer("controller.quorum.retry.backoff.ms", 1),
        fetch_max_bytes=values.integer("controller.quorum.fetch.max.bytes", 1),
        fetch_snapshot_max_bytes=values.integer("controller.quorum.fetch.snapshot.max.bytes", 1),
        snapshot_after_bytes=values.integer("metadata.log.max.record.bytes.between.snapshots", 1),
        snapshot_interval_ms=values.integer("metadata.log.max.snapshot.interval.ms", 0),
        segment_bytes=values.integer("metadata.log.segment.bytes", 8 * 1024 * 1024),
        leader_imbalance_check_interval_ms=_imbalance_check_interval_ms(values),
        detects_failures_fast=values.boolean("controller.fast.failure.detection.enable"),
        joins_by_itself=values.boolean("controller.quorum.auto.join.enable"),
    )


def _imbalance_check_interval_ms(values: Values) -> int:
    seconds = values.integer("leader.imbalance.check.interval.seconds", 1)
    return seconds * 1000 if values.boolean("auto.leader.rebalance.enable") else 0
