"""The topology of a streams group: its subtopologies, and the topics that each reads and writes.

A subtopology reads *source topics* of the user and *repartition topics* of the application, writes
repartition topics (`sink`), and has a *changelog* for each state. Repartition topics and changelogs
are the internal topics, which the broker creates.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broker.coordinator.group_state.config import MAX_SUBTOPOLOGIES, MAX_TOPICS
from broker.metadata.topic_names import INTERNAL_TOPICS, validate_topic_name
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.streams_group_heartbeat import Subtopology, Topology


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    """A topology, by subtopology id; a group has one, and it never changes."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]
    readers: Mapping[str, str]
    """The id of a subtopology that reads a topic, by the topic's name."""

    def required_topics(self) -> frozenset[str]:
        """Return the topics without which the group cannot be assigned."""
        return frozenset(
            name
            for each in self.subtopologies.values()
            for name in (
                *source_topics(each),
                *(topic.name for topic in each.state_changelog_topics),
            )
        )


def source_topics(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads."""
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    return [*subtopology.source_topics, *repartition]


def topology_of(message: Topology) -> StreamsTopology:
    """Return the topology of a request or of a record."""
    return StreamsTopology(
        message.epoch,
        {each.subtopology_id: each for each in message.subtopologies},
        {
            name: each.subtopology_id
            for each in message.subtopologies
            for name in source_topics(each)
        },
    )


def validate_topology(topology: Topology) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY or INVALID_REQUEST for one that no cluster could serve."""
    if topology.epoch < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology epoch must be non-negative.")
    subtopologies = topology.subtopologies
    if len(subtopologies) > MAX_SUBTOPOLOGIES:
        raise invalid(f"The topology has more than {MAX_SUBTOPOLOGIES} subtopologies.")
    if len({each.subtopology_id for each in subtopologies}) < len(subtopologies):
        raise invalid("The topology has two subtopologies with one id.")
    for each in subtopologies:
        validate_subtopology(each)
    names = dict.fromkeys(name for each in subtopologies for name in named_topics(each))
    if sum(1 for each in subtopologies for _ in named_topics(each)) > MAX_TOPICS:
        raise invalid(f"The topology names more than {MAX_TOPICS} topics.")
    validate_names(list(names))


def named_topics(subtopology: Subtopology) -> Iterator[str]:
    """Iterate over all topics that a subtopology names."""
    yield from source_topics(subtopology)
    yield from subtopology.repartition_sink_topics
    yield from (topic.name for topic in subtopology.state_changelog_topics)


def validate_subtopology(subtopology: Subtopology) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY for a subtopology that is wrong by itself."""
    for topic in subtopology.state_changelog_topics:
        if topic.partitions:
            raise invalid(
                f"Changelog topic {topic.name} must have an undefined partition count, but it is "
                f"set to {topic.partitions}."
            )
    for topic in subtopology.repartition_source_topics:
        if topic.partitions < 0:
            raise invalid(f"Repartition topic {topic.name} has {topic.partitions} partitions.")
    if not source_topics(subtopology):
        raise invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
    sizes = len(subtopology.source_topics), len(subtopology.repartition_source_topics)
    for group in subtopology.copartition_groups:
        for indexes, size in zip(
            (group.source_topics, group.repartition_source_topics), sizes, strict=True
        ):
            if not all(0 <= index < size for index in indexes):
                raise invalid(
                    f"A copartition group of subtopology {subtopology.subtopology_id} names a "
                    "topic that the subtopology does not have."
                )


def validate_names(names: list[str]) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY for the cluster's own topics, and for invalid names."""
    own = [name for name in names if name in INTERNAL_TOPICS]
    if own:
        raise invalid(
            f"Use of Kafka internal topics {','.join(own)} in a Kafka Streams topology is "
            "prohibited."
        )
    wrong = []
    for name in names:
        try:
            validate_topic_name(name)
        except KafkaError:
            wrong.append(name)
    if wrong:
        raise invalid(f"Topic names {','.join(wrong)} are not valid topic names.")


def invalid(reason: str) -> KafkaError:
    """Return the error for a topology that cannot be served."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)
