"""The facts go through the tables, and findings come out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from explain.causes.asking import ASKING, LEFT_OUT
from explain.causes.cause import Cause, Finding, Severity, findings
from explain.causes.cluster import CLUSTER
from explain.causes.group import GROUP, SHARE
from explain.causes.partition import PARTITION
from explain.causes.producer import PRODUCER
from explain.causes.progress import PROGRESS
from explain.causes.record import RECORD
from explain.causes.right import RIGHT
from explain.causes.share import SHARED
from explain.causes.topic import TOPIC, TopicCase
from explain.causes.transaction import TRANSACTION
from explain.facts import (
    Cluster,
    Group,
    GroupCase,
    Partition,
    PartitionCase,
    Producer,
    ProducerCase,
    Record,
    RecordCase,
    Right,
    Topic,
    Transaction,
    TransactionCase,
    Unanswered,
)

TABLES: dict[str, Sequence[Cause[Any]]] = {
    "A record": RECORD,
    "A topic": TOPIC,
    "A partition": PARTITION,
    "A group": GROUP,
    "How far a group is": PROGRESS,
    "A share group": SHARED,
    "A producer": PRODUCER,
    "A transaction": TRANSACTION,
    "The cluster": CLUSTER,
    "Rights": RIGHT,
    "What is not known": ASKING,
    "What is left out": LEFT_OUT,
}
"""Every cause, by what it is about."""


SAME: Final = 20
"""So many findings of one cause are shown: a broker that is down concerns all its partitions."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was found about a subject; problems first."""

    subject: str
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What does not work."""
        return tuple(one for one in self.findings if one.severity is Severity.PROBLEM)

    @property
    def codes(self) -> set[str]:
        """The causes that hold."""
        return {one.code for one in self.findings}


def explanation(
    subject: str, found: Iterable[Finding], unanswered: Sequence[Unanswered]
) -> Explanation:
    """Put the findings in order: the worst first, otherwise as they were found."""
    listed = [*_shortened(found), *findings(ASKING, unanswered)]
    order = list(Severity)
    return Explanation(subject, tuple(sorted(listed, key=lambda one: order.index(one.severity))))


def _shortened(found: Iterable[Finding]) -> list[Finding]:
    """Return the first findings of each cause, and one that counts the others."""
    counts: Counter[str] = Counter()
    kept = []
    for one in found:
        counts[one.code] += 1
        if counts[one.code] <= SAME:
            kept.append(one)
    left_out = {code: count - SAME for code, count in counts.items() if count > SAME}
    return [*kept, *findings(LEFT_OUT, left_out)]


def about_topic(cluster: Cluster, case: TopicCase) -> Iterable[Finding]:
    """Return the findings about a topic and its partitions."""
    partitions = (about_partition(cluster, case.topic, each) for each in case.topic.partitions)
    return [*findings(TOPIC, case), *chain.from_iterable(partitions)]


def about_partition(cluster: Cluster, topic: Topic, partition: Partition) -> list[Finding]:
    """Return the findings about one partition."""
    return findings(PARTITION, PartitionCase(cluster, topic, partition))


def about_record(
    cluster: Cluster, topic: Topic, partition: Partition, record: Record
) -> list[Finding]:
    """Return the findings about one offset."""
    return findings(RECORD, RecordCase(cluster, topic, partition, record))


def about_group(cluster: Cluster, group: Group) -> list[Finding]:
    """Return the findings about a group, and what is wrong with the partitions it reads."""
    case = GroupCase(cluster, group)
    of_partitions = [
        one
        for topic in group.topics.values()
        for partition in topic.partitions
        for one in about_partition(cluster, topic, partition)
        if one.severity is Severity.PROBLEM
    ]
    progress = SHARED if group.kind == SHARE else PROGRESS
    return [*findings(GROUP, case), *findings(progress, case), *of_partitions]


def about_transaction(cluster: Cluster, transaction: Transaction) -> list[Finding]:
    """Return the findings about a transactional id."""
    return findings(TRANSACTION, TransactionCase(cluster, transaction))


def about_producer(cluster: Cluster, producer: Producer) -> list[Finding]:
    """Return the findings about a producer id, and about its transaction."""
    found = findings(PRODUCER, ProducerCase(cluster, producer))
    if producer.transaction is not None:
        found += about_transaction(cluster, producer.transaction)
    return found


def about_rights(rights: Sequence[Right]) -> list[Finding]:
    """Return the findings about what a principal may do."""
    return findings(RIGHT, rights)


def about_cluster(
    cluster: Cluster, topics: Iterable[Topic], transactions: Iterable[Transaction]
) -> list[Finding]:
    """Return the findings about the nodes, and what is wrong with any partition."""
    found = findings(CLUSTER, cluster)
    for topic in topics:
        for partition in topic.partitions:
            found += about_partition(cluster, topic, partition)
    for transaction in transactions:
        found += about_transaction(cluster, transaction)
    return found
