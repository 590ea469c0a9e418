"""The facts go through the tables, and findings come out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from explain.causes.asking import ASKING
from explain.causes.cause import Cause, Finding, Severity, findings
from explain.causes.group import GROUP
from explain.causes.partition import PARTITION
from explain.causes.progress import PROGRESS
from explain.causes.record import RECORD
from explain.causes.topic import TOPIC, TopicCase
from explain.facts import (
    Cluster,
    Group,
    GroupCase,
    Partition,
    PartitionCase,
    Record,
    RecordCase,
    Topic,
    Unanswered,
)

TABLES: dict[str, Sequence[Cause[Any]]] = {
    "A topic": TOPIC,
    "A partition": PARTITION,
    "A record": RECORD,
    "A group": GROUP,
    "How far a group is": PROGRESS,
    "What is not known": ASKING,
}
"""Every cause, by what it is about."""


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
    order = list(Severity)
    listed = [*found, *findings(ASKING, unanswered)]
    return Explanation(subject, tuple(sorted(listed, key=lambda one: order.index(one.severity))))


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
    return [*findings(GROUP, case), *findings(PROGRESS, case), *of_partitions]
