"""The allocation of producer ids in blocks; an id is never allocated twice (KIP-730)."""

from common.kafka.protocol.records.metadata import ProducerIdsRecord


class ProducerIdsImage:
    """The first producer id that is not allocated."""

    def __init__(self) -> None:
        self.next_producer_id = 0
        self.broker_id = -1  # the broker of the last block
        self.broker_epoch = -1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerIdsImage):
            return NotImplemented
        return self.next_producer_id == other.next_producer_id

    __hash__ = None  # type: ignore[assignment]  # it changes

    def replay(self, record: ProducerIdsRecord) -> None:
        """Move past an allocated block."""
        self.next_producer_id = record.next_producer_id
        self.broker_id = record.broker_id
        self.broker_epoch = record.broker_epoch
