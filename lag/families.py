"""How far groups are behind, as metrics.

The names are those of kafka_exporter, on which Strimzi's dashboard and rules count, those of
kafka-lag-exporter for the lag in seconds, and Burrow's for the states.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lag.evaluate import State
from lag.facts import Look, Partition
from lag.monitor import GroupLag, Monitor, PartitionLag

MAX_GROUP_PARTITIONS = 20_000
"""The partitions of all groups that have metrics of their own; the sums have the others too."""

_Rows = Iterable[tuple[Sequence[str], float]]
_TOPIC = ("topic", "partition")
_GROUP = ("consumergroup", "topic")
_IN_GROUP = ("consumergroup", "topic", "partition")


class LagCollector(Collector):
    """Presents the last look to the Prometheus client."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def describe(self) -> list[Metric]:
        """Return no description, so that registration does not collect the numbers."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return all metrics with their current values."""
        look = self._monitor.look or Look(0, {}, {}, {})
        groups = sorted(self._monitor.groups.items())
        yield _gauge("kafka_brokers", "Brokers of the cluster", (), [((), len(look.brokers))])
        yield _gauge(
            "kafka_broker_info",
            "1 for each broker, with its address",
            ("id", "address"),
            [((str(node_id), at), 1) for node_id, at in sorted(look.brokers.items())],
        )
        yield from _topics(look)
        yield from _of_groups(groups)
        yield from _of_partitions(groups)
        yield from _in_seconds(groups)


def _topics(look: Look) -> Iterator[Metric]:
    counts: dict[str, int] = defaultdict(int)
    for topic, _ in look.partitions:
        counts[topic] += 1
    yield _gauge(
        "kafka_topic_partitions",
        "Partitions of a topic",
        ("topic",),
        [((topic,), count) for topic, count in sorted(counts.items())],
    )
    for name, about, number_of in (
        ("current_offset", "Offset after the last record", lambda each: each.end),
        ("oldest_offset", "Offset of the first record", lambda each: each.earliest),
        ("leader", "Broker that leads a partition, -1 for none", lambda each: each.leader_id),
        ("replicas", "Replicas of a partition", lambda each: len(each.replicas)),
        ("in_sync_replica", "Replicas that are in sync", lambda each: len(each.isr)),
        (
            "under_replicated_partition",
            "1 if a replica is not in sync",
            lambda each: int(len(each.isr) < len(each.replicas)),
        ),
        ("leader_is_preferred", "1 if the preferred replica leads", _has_preferred_leader),
    ):
        yield _gauge(
            f"kafka_topic_partition_{name}",
            about,
            _TOPIC,
            [
                ((topic, str(number)), value)
                for (topic, number), each in sorted(look.partitions.items())
                if (value := number_of(each)) is not None
            ],
        )


def _has_preferred_leader(partition: Partition) -> int:
    return int(partition.leader_id in partition.replicas[:1])


def _of_groups(groups: Sequence[tuple[str, GroupLag]]) -> Iterator[Metric]:
    yield _gauge(
        "kafka_consumergroup_members",
        "Members of a group; 0 for one that has committed and gone",
        ("consumergroup",),
        [((name,), each.group.member_count) for name, each in groups],
    )
    yield _gauge(
        "kafka_consumergroup_state",
        "1, with the state that the coordinator gives a group",
        ("consumergroup", "state"),
        [((name, each.group.state), 1) for name, each in groups],
    )
    yield _gauge(
        "burrow_kafka_consumer_status",
        "Burrow's state of a group: 1 OK, 2 WARN, 3 ERR, 0 while nothing is known",
        ("group",),
        [((name,), each.state) for name, each in groups],
    )


def _of_partitions(groups: Sequence[tuple[str, GroupLag]]) -> Iterator[Metric]:
    offsets: dict[tuple[str, str], int] = defaultdict(int)
    lags: dict[tuple[str, str], int] = defaultdict(int)
    shown: list[tuple[tuple[str, str, str], PartitionLag]] = []
    for name, found in groups:
        for (topic, number), each in found.partitions.items():
            offsets[name, topic] += each.committed
            lags[name, topic] += each.lag or 0
            if len(shown) < MAX_GROUP_PARTITIONS:
                shown.append(((name, topic, str(number)), each))
    yield _gauge(
        "kafka_consumergroup_current_offset",
        "Offset that a group has committed",
        _IN_GROUP,
        [(labels, each.committed) for labels, each in shown],
    )
    yield _gauge(
        "kafka_consumergroup_current_offset_sum",
        "Sum of the offsets that a group has committed in a topic",
        _GROUP,
        sorted(offsets.items()),
    )
    yield _gauge(
        "kafka_consumergroup_lag",
        "Records that a group has not handled; markers of transactions are none",
        _IN_GROUP,
        [(labels, each.lag) for labels, each in shown if each.lag is not None],
    )
    yield _gauge(
        "kafka_consumergroup_lag_sum",
        "Records of a topic that a group has not handled",
        _GROUP,
        sorted(lags.items()),
    )
    yield _gauge(
        "burrow_kafka_consumer_partition_status",
        "Burrow's state: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND, 0 while it is not known",
        ("group", "topic", "partition"),
        [(labels, each.state if each.complete == 1 else State.NOTFOUND) for labels, each in shown],
    )


def _in_seconds(groups: Sequence[tuple[str, GroupLag]]) -> Iterator[Metric]:
    yield _gauge(
        "kafka_consumergroup_group_lag_seconds",
        "Seconds since the first record that a group has not handled was written",
        ("group", "topic", "partition"),
        [
            ((name, topic, str(number)), each.seconds)
            for name, found in groups
            for (topic, number), each in list(found.partitions.items())[:MAX_GROUP_PARTITIONS]
            if each.seconds is not None
        ],
    )
    yield _gauge(
        "kafka_consumergroup_group_max_lag_seconds",
        "The largest of them of a group",
        ("group",),
        [((name,), each.seconds) for name, each in groups if each.seconds is not None],
    )
    yield _gauge(
        "kafka_consumergroup_group_max_lag",
        "Records of the partition in which a group has handled the fewest",
        ("group",),
        [
            ((name,), max((one.lag or 0 for one in each.partitions.values()), default=0))
            for name, each in groups
        ],
    )


def _gauge(name: str, about: str, labels: Sequence[str], rows: _Rows) -> Metric:
    family = GaugeMetricFamily(name, about, labels=labels)
    for values, number in rows:
        family.add_metric(values, number)
    return family
