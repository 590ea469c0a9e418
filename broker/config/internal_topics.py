"""The internal topics, which brokers create at their first use.

They have three replicas, as in Kafka. If a node is the only controller, and the settings do not
name a replication factor, a topic has at most as many replicas as there are brokers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from broker.config.values import Values
from broker.metadata.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """The partitions, replicas and settings of one internal topic."""

    partition_count: int
    replication_factor: int
    settings: Mapping[str, str]
    has_fewer_on_few_brokers: bool = False

    def on(self, broker_count: int) -> "InternalTopic":
        """Return the topic to create in a cluster of `broker_count` brokers."""
        if not self.has_fewer_on_few_brokers or broker_count >= self.replication_factor:
            return self
        factor = max(broker_count, 1)
        settings = dict(self.settings)
        if MIN_ISR in settings:
            settings[MIN_ISR] = str(min(int(settings[MIN_ISR]), factor))
        return replace(self, replication_factor=factor, settings=settings)


def read_internal_topics(values: Values, *, is_alone: bool) -> Mapping[str, InternalTopic]:
    """Read the settings of the internal topics; raise KafkaError(INVALID_CONFIG).

    `is_alone` is True if the node is the only controller.
    """
    return {
        CONSUMER_OFFSETS: InternalTopic(
            values.integer("offsets.topic.num.partitions", 1),
            values.integer("offsets.topic.replication.factor", 1),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(values.integer("offsets.topic.segment.bytes", 1)),
            },
            is_alone and "offsets.topic.replication.factor" not in values.given,
        ),
        TRANSACTION_STATE: InternalTopic(
            values.integer("transaction.state.log.num.partitions", 1),
            values.integer("transaction.state.log.replication.factor", 1),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                MIN_ISR: str(values.integer("transaction.state.log.min.isr", 1)),
                "segment.bytes": str(values.integer("transaction.state.log.segment.bytes", 1)),
                # After an unclean election a transaction could end twice, with two outcomes.
                "unclean.leader.election.enable": "false",
            },
            is_alone and "transaction.state.log.replication.factor" not in values.given,
        ),
        SHARE_GROUP_STATE: InternalTopic(
            values.integer("share.coordinator.state.topic.num.partitions", 1),
            values.integer("share.coordinator.state.topic.replication.factor", 1),
            {
                # The share coordinator deletes what it does not need (DeleteRecords).
                "cleanup.policy": "delete",
                "compression.type": "producer",
                MIN_ISR: str(values.integer("share.coordinator.state.topic.min.isr", 1)),
                "retention.ms": "-1",
                "segment.bytes": str(
                    values.integer("share.coordinator.state.topic.segment.bytes", 1)
                ),
            },
            is_alone and "share.coordinator.state.topic.replication.factor" not in values.given,
        ),
    }
