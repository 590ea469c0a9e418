"""The topics that brokers make for themselves, when somebody first needs them."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.config.values import Values
from broker.metadata.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """How one of them is made."""

    partition_count: int
    replication_factor: int
    settings: Mapping[str, str]


def read_internal_topics(values: Values) -> Mapping[str, InternalTopic]:
    """Read `offsets.topic.*` and `transaction.state.log.*`; raises KafkaError(INVALID_CONFIG)."""
    return {
        CONSUMER_OFFSETS: InternalTopic(
            values.integer("offsets.topic.num.partitions", 1),
            values.integer("offsets.topic.replication.factor", 1),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(values.integer("offsets.topic.segment.bytes", 1)),
            },
        ),
        TRANSACTION_STATE: InternalTopic(
            values.integer("transaction.state.log.num.partitions", 1),
            values.integer("transaction.state.log.replication.factor", 1),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(values.integer("transaction.state.log.min.isr", 1)),
                "segment.bytes": str(values.integer("transaction.state.log.segment.bytes", 1)),
                # Who ends a transaction twice with two outcomes has lost more than a record.
                "unclean.leader.election.enable": "false",
            },
        ),
    }
