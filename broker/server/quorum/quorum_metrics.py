"""The numbers of the quorum and of the metadata on a node for /metrics, with Kafka's names.

kafka_server_raftmetrics_<name>                  raft-metrics: this node in the quorum
kafka_server_raftchannelmetrics_<name>           raft-channel-metrics: its requests to others
kafka_controller_kafkacontroller_<name>          KafkaController, on controllers
kafka_controller_controllerstats_<name>          ControllerStats, on controllers
kafka_server_brokermetadatametrics_<name>        what this node has applied
kafka_server_metadataloader_<name>               MetadataLoader: levels and loaded snapshots
kafka_server_snapshotemitter_<name>              SnapshotEmitter: the snapshot taken last
kafka_server_node_metrics_<name>                 the feature levels that this software supports
"""

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

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
from broker.server.clock import monotonic_seconds
from broker.server.distribution import quantiles
from broker.server.metric_families import counter, gauge, gauges, summary
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

_RAFT = "kafka_server_raftmetrics_"
_CHANNEL = "kafka_server_raftchannelmetrics_"
_CONTROLLER = "kafka_controller_kafkacontroller_"
_STATS = "kafka_controller_controllerstats_"


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

    def describe(self) -> list[Metric]:
        """Return no description, so that registration does not collect the numbers."""
        return []

    def collect(self) -> list[Metric]:
        """Return all metrics with their current values."""
        return [
            *self._raft(),
            *self._activity(),
            *self._channel(),
            *self._controller(),
            *metadata_families(self._quorum, self._now_ms(), self._timestamp_ms()),
            counter(
                "kafka_server_authorizer_metrics_authorization_denied",
                "Operations that the authorizer denied",
                self._quorum.audit.denials,
            ),
        ]

    def _raft(self) -> Iterator[Metric]:
        quorum, node = self._quorum, self._quorum.node
        yield gauges(
            f"{_RAFT}current_state",
            "1, with the role of this node in the metadata quorum as label",
            ["current_state"],
            [([state_of(node)], 1)],
        )
        yield gauges(
            f"{_RAFT}current_vote_directory_id",
            "1, with the directory id of the replica that this node voted for as label",
            ["directory_id"],
            [([encode_uuid(node.quorum.voted_directory_id)], 1)],
        )
        observers = node.replicas()[1] if node.is_leader else {}
        others = [voter for voter in node.voters.ids if voter != quorum.node_id]
        unknown = sum(node.endpoint_of(voter) is None for voter in others)
        for name, about, number in (
            ("current_leader", "Leader of the quorum, -1 for none", quorum.leader_id),
            ("current_epoch", "Epoch of the quorum", node.leader_epoch),
            ("current_vote", "The vote in this epoch, -1 for none", node.quorum.voted_id),
            ("high_watermark", "First metadata offset not committed", node.high_watermark),
            ("log_end_offset", "Next offset of the metadata log", quorum.raft.log.end_offset),
            ("log_end_epoch", "Epoch of the last metadata record", quorum.raft.log.last_epoch),
            ("number_of_voters", "Voters of the quorum", len(node.voters.nodes)),
            (
                "number_of_observers",
                "Observers that the leader knows; 0 on other nodes",
                len(observers),
            ),
            (
                "uncommitted_voter_change",
                "1 if the newest voter set is not known to be committed",
                int(node.has_uncommitted_voters),
            ),
            ("number_unknown_voter_connections", "Voters without a known address", unknown),
        ):
            yield gauge(f"{_RAFT}{name}", about, number)

    def _activity(self) -> Iterator[Metric]:
        """Return Kafka's sampled statistics; NaN where nothing was sampled, as in Kafka."""
        activity, elections = self._quorum.activity, self._quorum.elections.recent_ms
        now_ms, commits = self._now_ms(), activity.commit_latencies_ms
        for name, about, number in (
            (
                "append_records_rate",
                "Records per second that this node appended as the leader",
                activity.appended_records.rate(now_ms),
            ),
            (
                "fetch_records_rate",
                "Records per second that this node fetched from the leader",
                activity.fetched_records.rate(now_ms),
            ),
            ("commit_latency_avg", "Milliseconds to a commit, mean", commits.average(now_ms)),
            ("commit_latency_max", "Milliseconds to a commit, longest", commits.largest(now_ms)),
            (
                "election_latency_avg",
                "Milliseconds of an election, mean",
                elections.average(now_ms),
            ),
            (
                "election_latency_max",
                "Milliseconds of an election, longest",
                elections.largest(now_ms),
            ),
            (
                "poll_idle_ratio_avg",
                "Share of the time in which the quorum had nothing to do",
                activity.idle_ratio(now_ms),
            ),
        ):
            yield gauge(f"{_RAFT}{name}", about, number)

    def _channel(self) -> Iterator[Metric]:
        """Return what Raft has sent to the other nodes, and what it was answered."""
        traffic = self._quorum.raft.peers.traffic
        for name, about, count in (
            ("request", "Requests to other nodes of the quorum", traffic.requests),
            ("response", "Answers of other nodes of the quorum", traffic.responses),
            ("outgoing_byte", "Bytes of requests to other nodes of the quorum", traffic.bytes_out),
            ("incoming_byte", "Bytes of answers of other nodes of the quorum", traffic.bytes_in),
        ):
            yield counter(f"{_CHANNEL}{name}", about, count)

    def _controller(self) -> Iterator[Metric]:
        """Return the controller's metrics; only the active one has them, as in Apache Kafka."""
        quorum = self._quorum
        if not quorum.config.is_controller:
            return
        last_offset = quorum.applied_offset - 1
        age_ms = 0 if quorum.is_serving else lag_ms(quorum, self._timestamp_ms())
        for name, about, number in (
            ("activecontrollercount", "1 on the active controller", int(quorum.is_serving)),
            ("lastappliedrecordoffset", "Offset of the last record applied", last_offset),
            (
                "lastappliedrecordtimestamp",
                "Time of the last record applied, in milliseconds since 1970",
                quorum.machine.last_timestamp_ms,
            ),
            (
                "lastappliedrecordlagms",
                "Age of the last record applied; 0 on the active controller",
                age_ms,
            ),
            (
                "lastcommittedrecordoffset",
                "Offset of the last record committed",
                quorum.node.high_watermark - 1,
            ),
            (
                "newactivecontrollerscount",
                "Active controllers that this node has heard of",
                quorum.activity.leader_count,
            ),
            (
                "ignoredstaticvoters",
                "1 if controller.quorum.voters is set and the voters are in the log",
                int(ignores_static_voters(quorum)),
            ),
            *([*_brokers(quorum.image), *_partitions(quorum.image)] if quorum.is_serving else []),
        ):
            yield gauge(f"{_CONTROLLER}{name}", about, number)
        yield from self._partition_elections()

    def _partition_elections(self) -> Iterator[Metric]:
        """Return counts since this node started, on every node."""
        elections = self._quorum.machine.elections
        for name, about, count in (
            ("leaderelections", "Elections of partitions' leaders", elections.all_count),
            (
                "uncleanleaderelections",
                "Elections of a leader that was not in sync",
                elections.unclean_count,
            ),
            (
                "electionfromeligibleleaderreplicas",
                "Elections of a leader out of the eligible leader replicas",
                elections.eligible_count,
            ),
        ):
            yield counter(f"{_STATS}{name}", about, count)
        times = self._quorum.partition_election_times
        recent = times.recent(monotonic_seconds())
        milliseconds = {label: 1000 * value for label, value in quantiles(recent).items()}
        yield summary(
            f"{_STATS}leaderelectionrateandtimems",
            "Milliseconds from a decision that gave partitions leaders to its commit",
            [],
            [([], times.count, milliseconds)],
        )


_Number = tuple[str, str, int]


def _brokers(image: MetadataImage) -> list[_Number]:
    brokers = list(image.brokers.values())
    fenced_count = sum(broker.is_fenced for broker in brokers)
    leaving_count = sum(
        broker.is_in_controlled_shutdown and not broker.is_fenced for broker in brokers
    )
    return [
        ("activebrokercount", "Brokers that are not fenced", len(brokers) - fenced_count),
        ("fencedbrokercount", "Brokers that are fenced", fenced_count),
        ("controlledshutdownbrokercount", "Brokers in their controlled shutdown", leaving_count),
    ]


def _partitions(image: MetadataImage) -> list[_Number]:
    topics = image.topics.by_id.values()
    partitions = [partition for topic in topics for partition in topic.partitions.values()]
    return [
        ("globaltopiccount", "Topics of the cluster", len(topics)),
        ("globalpartitioncount", "Partitions of the cluster", len(partitions)),
        (
            "offlinepartitionscount",
            "Partitions without a leader",
            sum(each.leader == NO_LEADER for each in partitions),
        ),
        (
            "preferredreplicaimbalancecount",
            "Partitions that another than the preferred replica leads",
            sum(not each.has_preferred_leader for each in partitions),
        ),
    ]


def ignores_static_voters(quorum: Quorum) -> bool:
    """Return True if `controller.quorum.voters` is set and the voters are in the log."""
    return bool(quorum.config.voters) and quorum.kraft_version > 0


def lag_ms(quorum: Quorum, timestamp_ms: int) -> int:
    """Return the age of the last record that this node has applied; 0 if there is none."""
    last_ms = quorum.machine.last_timestamp_ms
    return max(timestamp_ms - last_ms, 0) if last_ms >= 0 else 0


def metadata_families(quorum: Quorum, now_ms: int, timestamp_ms: int) -> list[Metric]:
    """Return the numbers as families of the Prometheus client."""
    machine, snapshots = quorum.machine, quorum.snapshots
    age_ms = now_ms - snapshots.taken_ms if snapshots.latest_size_bytes else 0
    version = quorum.image.features.get(METADATA_VERSION, 0)
    numbers = (
        (
            "brokermetadatametrics_last_applied_record_offset",
            "Offset of the last metadata record that this node has applied",
            quorum.applied_offset - 1,
        ),
        (
            "brokermetadatametrics_last_applied_record_timestamp",
            "Time of the last record applied, in milliseconds since 1970",
            machine.last_timestamp_ms,
        ),
        (
            "brokermetadatametrics_last_applied_record_lag_ms",
            "Age of the last record applied, in milliseconds",
            lag_ms(quorum, timestamp_ms),
        ),
        (
            "brokermetadatametrics_ignored_static_voters",
            "1 if controller.quorum.voters is set and the voters are in the log",
            int(ignores_static_voters(quorum)),
        ),
        ("metadataloader_currentcontrollerid", "The active controller", quorum.leader_id),
        ("metadataloader_currentmetadataversion", "The level of metadata.version", version),
        (
            "metadataloader_handleloadsnapshotcount",
            "Snapshots that this node has loaded",
            machine.loaded_snapshot_count,
        ),
        (
            "snapshotemitter_latestsnapshotgeneratedbytes",
            "Bytes of the snapshot taken last",
            snapshots.latest_size_bytes,
        ),
        (
            "snapshotemitter_latestsnapshotgeneratedagems",
            "Milliseconds since the last snapshot was taken",
            age_ms,
        ),
    )
    return [
        *(gauge(f"kafka_server_{name}", about, number) for name, about, number in numbers),
        *_levels(quorum),
    ]


def _levels(quorum: Quorum) -> Iterator[Metric]:
    levels = {**quorum.image.features, KRAFT_VERSION: quorum.kraft_version}
    features = sorted(SUPPORTED_FEATURES.items())
    yield gauges(
        "kafka_server_metadataloader_finalizedlevel",
        "The finalized level of each feature",
        ["featureName"],
        [([name], levels.get(name, 0)) for name, _ in features],
    )
    for place, word in enumerate(("minimum", "maximum")):
        yield gauges(
            f"kafka_server_node_metrics_{word}_supported_level",
            f"The {word} level of each feature that this software supports",
            ["feature_name"],
            [([name], bounds[place]) for name, bounds in features],
        )
