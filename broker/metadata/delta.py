"""What changed in an image between two looks at it."""

from dataclasses import dataclass, field

from broker.metadata.parts.configs import Resource
from broker.metadata.parts.topics import NO_LEADER, RECOVERING, PartitionImage, TopicImage


@dataclass(slots=True)
class Elections:
    """How many partitions got another leader, by what was known of that one."""

    all_count: int = 0
    unclean_count: int = 0
    """By a replica that may lack what was committed."""
    eligible_count: int = 0
    """By an eligible leader replica, as nobody was in sync (KIP-966)."""

    def note(self, before: PartitionImage, after: PartitionImage) -> None:
        """Count the change of one partition if it was an election."""
        leader = after.leader
        if leader in {NO_LEADER, before.leader}:
            return
        self.all_count += 1
        if leader in before.elr:
            self.eligible_count += 1
        elif leader not in before.isr and after.leader_recovery_state == RECOVERING:
            self.unclean_count += 1

    def add(self, more: "Elections") -> None:
        """Add other counts to these."""
        self.all_count += more.all_count
        self.unclean_count += more.unclean_count
        self.eligible_count += more.eligible_count


@dataclass(slots=True)
class MetadataDelta:
    """What the records of a while touched; the image itself says what it is now.

    A topic that came and went in between is in none of these. One that went and came again under
    its name is in `deleted_topics` with its old id and in `created_topics` with its new one.
    """

    changed_partitions: dict[bytes, set[int]] = field(default_factory=dict)
    """By topic id; those of created topics too, those of deleted ones not."""
    created_topics: set[bytes] = field(default_factory=set)
    deleted_topics: list[TopicImage] = field(default_factory=list)
    """As each was when it went, in the order they went."""
    deleted_ids: set[bytes] = field(default_factory=set)
    """Of every topic that went, also of those that had come since the last look."""
    changed_configs: set[Resource] = field(default_factory=set)
    """Also of resources that are gone."""
    changed_brokers: set[int] = field(default_factory=set)
    """Also those that are gone."""
    elections: Elections = field(default_factory=Elections)
    quotas_changed: bool = False
    features_changed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed that a broker follows."""
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
        """Note that a topic went."""
        self.deleted_ids.add(image.topic_id)
        self.changed_partitions.pop(image.topic_id, None)
        if image.topic_id in self.created_topics:
            self.created_topics.discard(image.topic_id)
        else:
            self.deleted_topics.append(image)
