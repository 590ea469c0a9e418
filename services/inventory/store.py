"""The ledger's changelog: `inventory-ledger-changelog`, compacted, one partition.

Key: order id. Value: the entry of the ledger as JSON. One partition because the ledger is one:
its rows are read back in the order they were written.
"""

import json

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.reading import ReadToEnd
from common.processing.changelog import changelog_of
from common.processing.outbox import Outbox
from services.inventory.domain import Entry, Ledger, entry_from_row, entry_to_row

CHANGELOG = changelog_of("inventory", "ledger", partition_count=1)


class LedgerStore:
    """The ledger, and every entry on its way to the changelog."""

    def __init__(self, read_to_end: ReadToEnd) -> None:
        self.ledger = Ledger()
        self._read_to_end = read_to_end

    async def restore(self) -> None:
        self.forget()
        partition = TopicPartition(CHANGELOG.name, 0)
        await self._read_to_end([partition], self._replay_record)

    async def _replay_record(self, record: ConsumerRecord) -> None:
        self.replay(record.key, record.value)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one changelog record."""
        entry = None if value is None else entry_from_row(json.loads(value))
        self.ledger.put_entry(key.decode(), entry)

    def forget(self) -> None:
        self.ledger = Ledger()

    def put_entry(self, order_id: str, entry: Entry, outbox: Outbox) -> None:
        self.ledger.put_entry(order_id, entry)
        data = json.dumps(entry_to_row(entry), separators=(",", ":")).encode()
        outbox.change(CHANGELOG.name, 0, order_id.encode(), data)
        for surplus in self.ledger.surplus():
            self.ledger.put_entry(surplus, None)
            outbox.change(CHANGELOG.name, 0, surplus.encode(), None)
