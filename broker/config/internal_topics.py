"""The topics that brokers make for themselves, when somebody first needs them.

They have three replicas, as in Kafka. A node that is its own and only controller has nobody to give
the other two to: unless its settings say how many there are, it makes as many as there are brokers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from broker.config.values import Values
from broker.metadata.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE

MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """How one of them is made."""

    partition_count: int
    replication_factor: int
    settings: Mapping[str, str]
    has_fewer_on_few_brokers: bool = False

    def on(self, broker_count: int) -> "InternalTopic":
        """Return how it is made where there are so many brokers."""
        if not self.has_fewer_on_few_brokers or broker_count >= self.replication_factor:
            return self
        factor = max(broker_count, 1)
        settings = dict(self.settings)
        if MIN_ISR in settings:
            settings[MIN_ISR] = str(min(int(settings[MIN_ISR]), factor))
        return replace(self, replication_factor=factor, settings=settings)


def read_internal_topics(values: Values, *, is_alone: bool) -> Mapping[str, InternalTopic]:
    """Read `offsets.topic.*` and `transaction.state.log.*`; raises KafkaError(INVALID_CONFIG).

    `is_alone`: the node is its own and only controller.
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
                # Who ends a transaction twice with two outcomes has lost more than a record.
                "unclean.leader.election.enable": "false",
            },
            is_alone and "transaction.state.log.replication.factor" not in values.given,
        ),
    }
