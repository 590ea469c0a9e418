"""The acknowledgements that a request has for each partition."""

from broker.server.share.acknowledging import batches_in
from common.kafka.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)

TOPIC_ID = bytes(range(16))


def partition(index: int, *firsts: int) -> AcknowledgePartition:
    batches = [
        AcknowledgementBatch(first_offset=first, last_offset=first, acknowledge_types=[1])
        for first in firsts
    ]
    return AcknowledgePartition(partition_index=index, acknowledgement_batches=batches)


def test_no_acknowledgement_of_a_partition_that_is_named_twice_is_lost() -> None:
    named = [[partition(0, 3, 5), partition(1)], [partition(0, 7)]]
    topics = [AcknowledgeTopic(topic_id=TOPIC_ID, partitions=partitions) for partitions in named]
    found = {
        key: [batch.first_offset for batch in batches]
        for key, batches in batches_in(topics).items()
    }
    assert found == {(TOPIC_ID, 0): [3, 5, 7], (TOPIC_ID, 1): []}
