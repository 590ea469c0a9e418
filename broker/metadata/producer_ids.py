"""The producer ids of `ClusterState`, with the handler that gives them out."""

from broker.metadata.control.producer_ids import BLOCK_SIZE, MAX_PRODUCER_ID
from broker.metadata.parts.producer_ids import ProducerIdsImage
from broker.protocol.message import Message
from broker.protocol.records.metadata import ProducerIdsRecord

__all__ = ["BLOCK_SIZE", "ProducerIdControl"]


class ProducerIdControl(ProducerIdsImage):
    """The first producer id that no broker has been given."""

    def next_block(self, broker_id: int, broker_epoch: int) -> tuple[range, list[Message]]:
        """Return a block of ids for one broker, and the record that takes it."""
        first = self.next_producer_id
        assert first <= MAX_PRODUCER_ID - BLOCK_SIZE, first
        block = range(first, first + BLOCK_SIZE)
        record = ProducerIdsRecord(
            broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop
        )
        return block, [record]
