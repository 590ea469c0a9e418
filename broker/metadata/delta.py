"""The changes of an image between two points in time."""

from dataclasses import dataclass, field

from broker.metadata.parts.configs import Resource
from broker.metadata.parts.topics import NO_LEADER, RECOVERING, PartitionImage, TopicImage


@dataclass(slots=True)
class Elections:
    """The number of elections, by the kind of the new leader."""

    all_count: int = 0
    unclean_count: int = 0
    """Elections of a replica that may lack committed records."""
    eligible_count: int = 0
    """Elections of an eligible leader replica, because no replica was in sync (KIP-966)."""

    def note(self, before: PartitionImage, after: PartitionImage) -> None:
        """Count the change of one partition if it is an election."""
        leader = after.leader
        if leader in {NO_LEADER, before.leader}:
            return
        self.all_count += 1
        if leader in before.elr:
            self.eligible_count += 1
        elif leader not in before.isr and after.leader_recovery_state == RECOVERING:
            self.unclean_count += 1

    def add(self, more: "Elections") -> None:
        """Add other counts."""
        self.all_count += more.all_count
        self.unclean_count += more.unclean_count
        self.eligible_count += more.eligible_count


@dataclass(slots=True)
class MetadataDelta:
    """The changes of the replayed records; the image has the current values.

    A topic that was created and deleted in between is only in `deleted_ids`. A topic that was
    deleted and created again under its name is in `deleted_topics` with its old id and in
    `created_topics` with its new one.
    """

    changed_partitions: dict[bytes, set[int]] = field(default_factory=dict)
    """Partitions by topic id, with those of created topics and without those of deleted ones."""
    created_topics: set[bytes] = field(default_factory=set)
    deleted_topics: list[TopicImage] = field(default_factory=list)
    """The topics as they were before their deletion, in the order of deletion."""
    deleted_ids: set[bytes] = field(default_factory=set)
    """The ids of all deleted topics, including topics that were also created in between."""
    changed_configs: set[Resource] = field(default_factory=set)
    """The resources with changed settings, including deleted resources."""
    changed_brokers: set[int] = field(default_factory=set)
    """The ids of changed brokers, including unregistered ones."""
    elections: Elections = field(default_factory=Elections)
    quotas_changed: bool = False
    features_changed: bool = False

    @property
    def is_empty(self) -> bool:
        """True if nothing that brokers follow has changed."""
        return not (
            self.changed_partitions
            or self.created_topics
            or self.deleted_ids
            or self.changed_configs
            or self.changed_brokers
            or self.quotas_changed
            or self.features_changed
        )

    def remove_topic(self, image: TopicImage) -> None:
        """Note that a topic was deleted."""
        self.deleted_ids.add(image.topic_id)
        self.changed_partitions.pop(image.topic_id, None)
        if image.topic_id in self.created_topics:
            self.created_topics.discard(image.topic_id)
        else:
            self.deleted_topics.append(image)
