"""Blocks of producer ids (KIP-360's allocator): each id is given out once, also across restarts."""

from broker.protocol.message import Message
from broker.protocol.records.metadata import ProducerIdsRecord

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1


class ProducerIdControl:
    """Owns the first producer id that no broker has been given."""

    def __init__(self) -> None:
        self.next_producer_id = 0

    def next_block(self, broker_id: int, broker_epoch: int) -> tuple[range, list[Message]]:
        """Return a block of ids for one broker, and the record that takes it."""
        first = self.next_producer_id
        assert first <= MAX_PRODUCER_ID - BLOCK_SIZE, first
        block = range(first, first + BLOCK_SIZE)
        record = ProducerIdsRecord(
            broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop
        )
        return block, [record]

    def replay(self, record: ProducerIdsRecord) -> None:
        """Move past a block that was given out."""
        self.next_producer_id = record.next_producer_id
