"""A topology on the cluster's topics: its tasks, and the internal topics that are missing.

The partition counts are decided in this order (KIP-1071, and the client of Kafka Streams before):

1. Source topics must exist: else MISSING_SOURCE_TOPICS.
2. A repartition topic has the count that the topology gives it, else the most partitions that a
   subtopology which writes it reads.
3. The topics of a copartition group must have equal counts. Repartition topics without a count of
   their own get that of the other topics, or the largest of the group: else
   INCORRECTLY_PARTITIONED_TOPICS.
4. A changelog has one partition for each task of its subtopology: as many as the most partitions
   that the subtopology reads.

An internal topic that exists with another count is INCORRECTLY_PARTITIONED_TOPICS, one that does
not exist is MISSING_INTERNAL_TOPICS, and is to be created.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from broker.coordinator.group_state.config import MAX_TASKS
from broker.coordinator.streams_group.topology import StreamsTopology, invalid, source_topics
from common.kafka.protocol.messages.streams_group_heartbeat import Status, Subtopology, TopicInfo


class StatusCode(IntEnum):
    """The statuses that a heartbeat's answer may have, with Kafka's numbers."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """An internal topic as it has to be; a replication factor of -1 is the cluster's default."""

    name: str
    partition_count: int
    replication_factor: int
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology with the number of its tasks and its internal topics."""

    task_count: int
    subtopology: Subtopology
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()

    @property
    def is_stateful(self) -> bool:
        """True if it has state, which standby tasks can copy."""
        return bool(self.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """What became of a topology. It is ready if there is no `problem`."""

    subtopologies: Mapping[str, ConfiguredSubtopology] = field(default_factory=dict)
    """By id, in the order of the ids; empty if the counts could not be decided."""
    missing: tuple[InternalTopic, ...] = ()
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        """True if tasks can be assigned."""
        return self.problem is None


class _Problem(Exception):  # noqa: N818 - becomes the status of a topology
    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(status_code=code, status_detail=detail)


def configure(topology: StreamsTopology, existing: Mapping[str, int]) -> ConfiguredTopology:
    """Configure a topology for the cluster's topics; raise KafkaError(STREAMS_INVALID_TOPOLOGY).

    `existing` has the partition count of each required topic that exists.
    """
    subtopologies = dict(sorted(topology.subtopologies.items()))
    try:
        _require_sources(subtopologies.values(), existing)
        counts = _Counts(subtopologies.values(), existing)
        counts.decide()
        configured = {
            subtopology_id: _configured(each, counts)
            for subtopology_id, each in subtopologies.items()
        }
        _require_few(configured.values())
        missing = _missing_topics(configured.values(), existing)
    except _Problem as problem:
        return ConfiguredTopology(problem=problem.status)
    if not missing:
        return ConfiguredTopology(configured)
    detail = f"Internal topics are missing: {summary([topic.name for topic in missing])}"
    status = Status(status_code=StatusCode.MISSING_INTERNAL_TOPICS, status_detail=detail)
    return ConfiguredTopology(configured, tuple(missing), status)


def _require_sources(subtopologies: Iterable[Subtopology], existing: Mapping[str, int]) -> None:
    missing = {name for each in subtopologies for name in each.source_topics} - existing.keys()
    if missing:
        raise _Problem(
            StatusCode.MISSING_SOURCE_TOPICS,
            f"Source topics {summary(sorted(missing))} are missing.",
        )


def _require_few(configured: Iterable[ConfiguredSubtopology]) -> None:
    if sum(each.task_count for each in configured) > MAX_TASKS:
        raise _Problem(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"The topology has more than {MAX_TASKS} tasks.",
        )


class _Counts:
    """The partition counts of a topology; those of existing topics come first."""

    def __init__(self, subtopologies: Iterable[Subtopology], existing: Mapping[str, int]) -> None:
        self._subtopologies = list(subtopologies)
        self._existing = existing
        self._decided: dict[str, int] = {}
        self._fixed = {
            topic.name: topic.partitions
            for each in self._subtopologies
            for topic in each.repartition_source_topics
            if topic.partitions
        }
        self._repartition = {
            topic.name for each in self._subtopologies for topic in each.repartition_source_topics
        }

    def decide(self) -> None:
        """Decide the counts of all internal topics."""
        self._decide_repartition_topics()
        for each in self._subtopologies:
            for group in each.copartition_groups:
                names = {each.source_topics[index] for index in group.source_topics}
                names |= {
                    each.repartition_source_topics[index].name
                    for index in group.repartition_source_topics
                }
                if names:
                    self._enforce_copartitioning(sorted(names))
        for each in self._subtopologies:
            count = self.most_partitions(each)
            self._decided.update((topic.name, count) for topic in each.state_changelog_topics)

    def of(self, topic: str) -> int:
        """Return the count of a topic that exists or that is decided."""
        return self._existing[topic] if topic in self._existing else self._decided[topic]

    def decided(self, topic: TopicInfo) -> int:
        """Return the count that an internal topic has to have."""
        return topic.partitions or self._decided[topic.name]

    def most_partitions(self, subtopology: Subtopology) -> int:
        """Return the most partitions that a subtopology reads."""
        return max(map(self.of, source_topics(subtopology)))

    def _decide_repartition_topics(self) -> None:
        """Go from the sources to the sinks; a subtopology waits until it reads something known."""
        self._decided.update(self._fixed)
        readers: dict[str, list[Subtopology]] = {}
        for each in self._subtopologies:
            for topic in each.repartition_source_topics:
                readers.setdefault(topic.name, []).append(each)
        left = deque(self._subtopologies)
        while left:
            each = left.popleft()
            count = self._count_read_by(each)
            for sink in each.repartition_sink_topics if count else ():
                if sink not in self._decided:
                    self._decided[sink] = count
                    left.extend(readers.get(sink, ()))
        if any(
            sink not in self._decided
            for each in self._subtopologies
            for sink in each.repartition_sink_topics
        ):
            raise invalid(
                "Failed to compute number of partitions for all repartition topics. There may be "
                "loops in the topology that cannot be resolved."
            )
        if not self._repartition <= self._decided.keys():
            raise invalid(
                "Failed to compute number of partitions for all repartition topics, because a "
                "repartition source topic is never used as a sink topic."
            )

    def _count_read_by(self, subtopology: Subtopology) -> int:
        """Return the most partitions that are known to be read; 0 if none are known yet."""
        known = [self._existing[name] for name in subtopology.source_topics]
        known += [
            self._decided[topic.name]
            for topic in subtopology.repartition_source_topics
            if topic.name in self._decided
        ]
        return max(known, default=0)

    def _enforce_copartitioning(self, names: list[str]) -> None:
        counts = {name: self.of(name) for name in names}
        internal = {name for name in names if name in self._repartition}
        leading = [name for name in names if name not in internal] or [
            name for name in names if name in self._fixed
        ]
        if len({counts[name] for name in leading}) > 1:
            shown = ", ".join(f"{name}={counts[name]}" for name in leading)
            raise _Problem(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Following topics do not have the same number of partitions: [{{{shown}}}]",
            )
        count = counts[leading[0]] if leading else max(counts.values())
        for name in sorted(internal):
            if name in self._fixed and counts[name] != count:
                raise _Problem(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{counts[name]}] of repartition topic [{name}] doesn't "
                    f"match number of partitions [{count}] of the source topic.",
                )
            self._decided[name] = count


def _configured(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        counts.most_partitions(subtopology),
        subtopology,
        tuple(_internal(topic, counts) for topic in subtopology.repartition_source_topics),
        tuple(_internal(topic, counts) for topic in subtopology.state_changelog_topics),
    )


def _internal(topic: TopicInfo, counts: _Counts) -> InternalTopic:
    return InternalTopic(
        topic.name,
        counts.decided(topic),
        topic.replication_factor or -1,
        tuple((each.key, each.value) for each in topic.topic_configs),
    )


def _missing_topics(
    configured: Iterable[ConfiguredSubtopology], existing: Mapping[str, int]
) -> list[InternalTopic]:
    wanted = {
        topic.name: topic
        for each in configured
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }
    for name, topic in sorted(wanted.items()):
        found = existing.get(name, topic.partition_count)
        if found != topic.partition_count:
            raise _Problem(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected "
                f"{topic.partition_count}, found {found}",
            )
    return [topic for name, topic in sorted(wanted.items()) if name not in existing]


def summary(names: list[str]) -> str:
    """Return the first three names, and how many more there are."""
    rest = len(names) - 3
    return ", ".join(names[:3]) + (f" and {rest} additional topics" if rest > 0 else "")
