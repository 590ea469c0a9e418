"""The numbers of the quorum for /metrics: Apache Kafka's raft-metrics and KafkaController.

The Prometheus client is imported at the first scrape, to save the memory of an idle node.

The numbers of the metadata on a node have Kafka's names too:

kafka_server_broker_metadata_metrics_<name>    what this node has applied
kafka_server_metadata_loader_<name>            MetadataLoader: levels and loaded snapshots
kafka_server_snapshot_emitter_<name>           SnapshotEmitter: the snapshot taken last
kafka_server_node_metrics_<name>               the feature levels that this software supports
"""

from collections.abc import Callable
from typing import Any

from broker.log.checkpoints import encode_uuid
from broker.metadata.features import KRAFT_VERSION, METADATA_VERSION, SUPPORTED_FEATURES
from broker.metadata.image import NO_LEADER, MetadataImage
from broker.raft.node import RaftNode
from broker.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Observer,
    Prospective,
    Resigned,
    Unattached,
)
from broker.server.quorum.election_times import Latencies
from broker.server.quorum.quorum import Quorum

VOTED = "-voted"
"""The end of the state's name while the node has voted without knowing a leader."""
STATES: dict[type, str] = {
    Leader: "leader",
    Candidate: "candidate",
    Prospective: "prospective",
    Follower: "follower",
    Unattached: "unattached",
    Resigned: "resigned",
    Observer: "observer",
}


MAY_HAVE_VOTED = Unattached, Prospective


def state_of(node: RaftNode) -> str:
    """Return the name of a node's state, as Apache Kafka's metric current-state has it."""
    name = STATES[type(node.role)]
    return name + VOTED if isinstance(node.role, MAY_HAVE_VOTED) and node.quorum.has_voted else name


class QuorumCollector:
    """Presents a node's quorum to the Prometheus client."""

    def __init__(
        self,
        quorum: Quorum,
        now_ms: Callable[[], int],
        timestamp_ms: Callable[[], int],
    ) -> None:
        self._quorum = quorum
        self._now_ms = now_ms
        self._timestamp_ms = timestamp_ms

    def describe(self) -> list[Any]:
        """Return no description, so that registration does not collect the numbers."""
        return []

    def collect(self) -> list[Any]:
        """Return all metrics with their current values."""
        return [
            *self._raft(),
            *self._activity(),
            *self._elections(),
            *self._controller(),
            *metadata_families(self._quorum, self._now_ms(), self._timestamp_ms()),
            self._denials(),
        ]

    def _denials(self) -> Any:
        from prometheus_client.core import CounterMetricFamily

        return CounterMetricFamily(
            "kafka_server_authorizer_metrics_authorization_denied",
            "Operations that the authorizer denied",
            self._quorum.audit.denials,
        )

    def _raft(self) -> list[Any]:
        quorum, node = self._quorum, self._quorum.node
        from prometheus_client.core import GaugeMetricFamily

        state = GaugeMetricFamily(
            "kafka_server_raft_metrics_current_state",
            "The role of this node in the metadata quorum: 1 for the one it has",
            labels=["state"],
        )
        current = state_of(node)
        for name in (*STATES.values(), *(STATES[role] + VOTED for role in MAY_HAVE_VOTED)):
            state.add_metric([name], int(name == current))
        return [
            state,
            *self._votes(),
            *self._voters(),
            _gauge(
                "raft_metrics_current_leader", "Leader of the quorum, -1 for none", quorum.leader_id
            ),
            _gauge("raft_metrics_current_epoch", "Epoch of the quorum", quorum.node.leader_epoch),
            _gauge(
                "raft_metrics_high_watermark",
                "First metadata offset not committed",
                node.high_watermark,
            ),
            _gauge(
                "raft_metrics_log_end_offset",
                "Next offset of the metadata log",
                quorum.raft.log.end_offset,
            ),
        ]

    def _votes(self) -> list[Any]:
        """Return the vote of this epoch; the directory id is a label, because it is a text."""
        quorum = self._quorum.node.quorum
        from prometheus_client.core import GaugeMetricFamily

        directory = GaugeMetricFamily(
            "kafka_server_raft_metrics_current_vote_directory_id",
            "1 for the directory id of the replica that this node voted for",
            labels=["directory_id"],
        )
        directory.add_metric([encode_uuid(quorum.voted_directory_id)], 1)
        return [
            directory,
            _gauge(
                "raft_metrics_current_vote", "The vote in this epoch, -1 for none", quorum.voted_id
            ),
        ]

    def _voters(self) -> list[Any]:
        node = self._quorum.node
        observers = node.replicas()[1] if node.is_leader else {}
        others = [voter for voter in node.voters.ids if voter != self._quorum.node_id]
        unknown = sum(node.endpoint_of(voter) is None for voter in others)
        return [
            _gauge("raft_metrics_number_of_voters", "Voters of the quorum", len(node.voters.nodes)),
            _gauge(
                "raft_metrics_number_of_observers",
                "Observers that the leader knows; 0 on other nodes",
                len(observers),
            ),
            _gauge(
                "raft_metrics_uncommitted_voter_change",
                "1 if the newest voter set is not known to be committed",
                int(node.has_uncommitted_voters),
            ),
            _gauge(
                "raft_metrics_number_unknown_voter_connections",
                "Voters of whom no address is known",
                unknown,
            ),
            _gauge(
                "raft_metrics_log_end_epoch",
                "Epoch of the last metadata record",
                self._quorum.raft.log.last_epoch,
            ),
        ]

    def _activity(self) -> list[Any]:
        """Return Kafka's sampled statistics; NaN where nothing was sampled, as in Kafka."""
        activity, elections = self._quorum.activity, self._quorum.elections.recent_ms
        now_ms, commits = self._now_ms(), activity.commit_latencies_ms
        numbers = {
            "append_records_rate": (
                "Records per second that this node appended as the leader",
                activity.appended_records.rate(now_ms),
            ),
            "fetch_records_rate": (
                "Records per second that this node fetched from the leader",
                activity.fetched_records.rate(now_ms),
            ),
            "commit_latency_avg": ("Milliseconds to a commit", commits.average(now_ms)),
            "commit_latency_max": ("Milliseconds to a commit", commits.largest(now_ms)),
            "election_latency_avg": ("Milliseconds of an election", elections.average(now_ms)),
            "election_latency_max": ("Milliseconds of an election", elections.largest(now_ms)),
            "poll_idle_ratio_avg": (
                "Share of the time in which the quorum had nothing to do",
                activity.idle_ratio(now_ms),
            ),
        }
        return [
            _gauge(f"raft_metrics_{name}", text, number) for name, (text, number) in numbers.items()
        ]

    def _elections(self) -> list[Any]:
        return _latencies(
            "kafka_server_raft_metrics_election_latency",
            "Times from the loss of a leader to the next one",
            self._quorum.elections,
        )

    def _controller(self) -> list[Any]:
        """Return the controller's metrics; only the active one has them, as in Apache Kafka."""
        quorum = self._quorum
        if not quorum.config.is_controller:
            return []
        numbers = {
            "active_controller_count": int(quorum.is_serving),
            "last_applied_record_offset": quorum.applied_offset - 1,
            "last_applied_record_timestamp": quorum.machine.last_timestamp_ms,
            "last_applied_record_lag_ms": self._lag_ms(),
            "last_committed_record_offset": quorum.node.high_watermark - 1,
            "new_active_controllers_count": quorum.activity.leader_count,
            "ignored_static_voters": int(ignores_static_voters(quorum)),
        }
        if quorum.is_serving:
            numbers |= {**_brokers(quorum.image), **_partitions(quorum.image)}
        return [
            *(
                _gauge(name, f"KafkaController's {_words(name)}", number, "kafka_controller")
                for name, number in numbers.items()
            ),
            *self._partition_elections(),
        ]

    def _lag_ms(self) -> int:
        """Return the age of the last record that was applied; 0 on the active controller."""
        quorum = self._quorum
        return 0 if quorum.is_serving else lag_ms(quorum, self._timestamp_ms())

    def _partition_elections(self) -> list[Any]:
        """Return counts since this node started, on every node."""
        from prometheus_client.core import CounterMetricFamily

        elections = self._quorum.machine.elections
        counts = {
            "leader_elections": elections.all_count,
            "unclean_leader_elections": elections.unclean_count,
            "election_from_eligible_leader_replicas": elections.eligible_count,
        }
        return [
            CounterMetricFamily(
                f"kafka_controller_stats_{name}", f"ControllerStats' {_words(name)}", count
            )
            for name, count in counts.items()
        ] + _latencies(
            "kafka_controller_stats_leader_election_rate_and_time",
            "Times from a decision that gave partitions leaders to its commit",
            self._quorum.partition_election_times,
        )


def _brokers(image: MetadataImage) -> dict[str, int]:
    brokers = list(image.brokers.values())
    fenced_count = sum(broker.is_fenced for broker in brokers)
    return {
        "active_broker_count": len(brokers) - fenced_count,
        "fenced_broker_count": fenced_count,
        "controlled_shutdown_broker_count": sum(
            broker.is_in_controlled_shutdown and not broker.is_fenced for broker in brokers
        ),
    }


def _partitions(image: MetadataImage) -> dict[str, int]:
    topics = image.topics.by_id.values()
    partitions = [partition for topic in topics for partition in topic.partitions.values()]
    return {
        "global_topic_count": len(topics),
        "global_partition_count": len(partitions),
        "offline_partitions_count": sum(each.leader == NO_LEADER for each in partitions),
        "preferred_replica_imbalance_count": sum(
            not each.has_preferred_leader for each in partitions
        ),
    }


def _words(name: str) -> str:
    return name.replace("_", " ")


def _gauge(name: str, text: str, value: float, group: str = "kafka_server") -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"{group}_{name}", text, value)


def _latencies(name: str, text: str, found: Latencies) -> list[Any]:
    from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily

    return [
        SummaryMetricFamily(
            f"{name}_seconds", text, count_value=found.count, sum_value=found.total_ms / 1000
        ),
        GaugeMetricFamily(f"{name}_max_seconds", "The longest of them", found.longest_ms / 1000),
    ]


def ignores_static_voters(quorum: Quorum) -> bool:
    """Return True if `controller.quorum.voters` is set and the voters are in the log."""
    return bool(quorum.config.voters) and quorum.kraft_version > 0


def lag_ms(quorum: Quorum, timestamp_ms: int) -> int:
    """Return the age of the last record that this node has applied; 0 if there is none."""
    last_ms = quorum.machine.last_timestamp_ms
    return max(timestamp_ms - last_ms, 0) if last_ms >= 0 else 0


def metadata_families(quorum: Quorum, now_ms: int, timestamp_ms: int) -> list[Any]:
    """Return the numbers as families of the Prometheus client."""
    machine, snapshots = quorum.machine, quorum.snapshots
    age_ms = now_ms - snapshots.taken_ms if snapshots.latest_size_bytes else 0
    numbers = {
        "broker_metadata_metrics_last_applied_record_offset": quorum.applied_offset - 1,
        "broker_metadata_metrics_last_applied_record_timestamp": machine.last_timestamp_ms,
        "broker_metadata_metrics_last_applied_record_lag_ms": lag_ms(quorum, timestamp_ms),
        "broker_metadata_metrics_ignored_static_voters": int(ignores_static_voters(quorum)),
        "metadata_loader_current_controller_id": quorum.leader_id,
        "metadata_loader_current_metadata_version": quorum.image.features.get(METADATA_VERSION, 0),
        "metadata_loader_handle_load_snapshot_count": machine.loaded_snapshot_count,
        "snapshot_emitter_latest_snapshot_generated_bytes": snapshots.latest_size_bytes,
        "snapshot_emitter_latest_snapshot_generated_age_ms": age_ms,
    }
    from prometheus_client.core import GaugeMetricFamily

    return [
        *(
            GaugeMetricFamily(f"kafka_server_{name}", name.replace("_", " "), number)
            for name, number in numbers.items()
        ),
        *_levels(quorum),
    ]


def _levels(quorum: Quorum) -> list[Any]:
    from prometheus_client.core import GaugeMetricFamily

    finalized = GaugeMetricFamily(
        "kafka_server_metadata_loader_finalized_level",
        "The finalized level of each feature",
        labels=["feature_name"],
    )
    lowest, highest = (
        GaugeMetricFamily(
            f"kafka_server_node_metrics_{word}_supported_level",
            f"The {word} level of each feature that this software supports",
            labels=["feature_name"],
        )
        for word in ("minimum", "maximum")
    )
    levels = {**quorum.image.features, KRAFT_VERSION: quorum.kraft_version}
    for name, (minimum, maximum) in sorted(SUPPORTED_FEATURES.items()):
        finalized.add_metric([name], levels.get(name, 0))
        lowest.add_metric([name], minimum)
        highest.add_metric([name], maximum)
    return [finalized, lowest, highest]
