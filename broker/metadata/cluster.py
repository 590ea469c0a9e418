"""The state of the cluster, whole: it sends every metadata record to the part that owns it."""

from broker.metadata.configs import ConfigControl
from broker.metadata.producer_ids import ProducerIdControl
from broker.metadata.topics import TOPIC_RESOURCE, TopicControl
from broker.protocol.message import Message
from broker.protocol.records.metadata import (
    ConfigRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class ClusterState:
    """Topics, settings and producer ids. Replaying the same records gives an equal state."""

    def __init__(self) -> None:
        self.topics = TopicControl()
        self.configs = ConfigControl()
        self.producer_ids = ProducerIdControl()

    def replay(self, record: Message) -> None:
        """Apply one committed record. Never refuses: a record was checked when it was made."""
        match record:
            case TopicRecord():
                self.topics.replay_topic(record)
            case PartitionRecord():
                self.topics.replay_partition(record)
            case RemoveTopicRecord():
                name = self.topics.replay_remove(record)
                self.configs.forget((TOPIC_RESOURCE, name))
            case ConfigRecord():
                self.configs.replay(record)
            case ProducerIdsRecord():
                self.producer_ids.replay(record)
            case _:
                # Records of features this state does not keep (feature levels, registrations)
                # are read by the parts that do.
                pass
