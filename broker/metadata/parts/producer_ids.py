"""Producer ids are given out in blocks, each once, also across restarts (KIP-730)."""

from broker.protocol.records.metadata import ProducerIdsRecord


class ProducerIdsImage:
    """Owns the first producer id that no broker has been given."""

    def __init__(self) -> None:
        self.next_producer_id = 0
        self.broker_id = -1  # who took the last block
        self.broker_epoch = -1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerIdsImage):
            return NotImplemented
        return self.next_producer_id == other.next_producer_id

    __hash__ = None  # type: ignore[assignment]  # it changes

    def replay(self, record: ProducerIdsRecord) -> None:
        """Move past a block that was given out."""
        self.next_producer_id = record.next_producer_id
        self.broker_id = record.broker_id
        self.broker_epoch = record.broker_epoch
