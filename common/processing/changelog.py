"""State between records: rows in memory, kept in a compacted changelog topic.

A row belongs to the partition of the input it was made from and is written to the same
partition of the changelog, so whoever gets the input partition can read the rows back. Rows
are JSON. Within one batch only the last state of a row is written.

Rows, output and offsets are one transaction, so what is read back is the state after exactly the
records that are committed: each record changes the rows once.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.reading import ReadToEnd
from common.kafka.topics import PARTITION_COUNT, Topic, compacted
from common.processing.outbox import Outbox

Row = TypeVar("Row")


def changelog_of(application: str, store: str, partition_count: int = PARTITION_COUNT) -> Topic:
    """Return the topic of a store's rows."""
    return compacted(f"{application}-{store}-changelog", partition_count)


class Store(Generic[Row]):
    """Rows by partition and key. Invariant: what is here was put here or read back."""

    def __init__(
        self,
        topic: str,
        encode: Callable[[Row], Any],
        decode: Callable[[Any], Row],
        read_to_end: ReadToEnd,
    ) -> None:
        self.topic = topic
        self._encode = encode
        self._decode = decode
        self._read_to_end = read_to_end
        self._rows: dict[int, dict[str, Row]] = {}

    def get(self, partition: int, key: str) -> Row | None:
        return self._rows[partition].get(key)

    def rows(self, partition: int) -> dict[str, Row]:
        """Return the rows of a partition in the order they were first put; do not change it."""
        return self._rows[partition]

    def put(self, partition: int, key: str, row: Row, outbox: Outbox) -> None:
        self._rows[partition][key] = row
        data = json.dumps(self._encode(row), separators=(",", ":")).encode()
        outbox.change(self.topic, partition, key.encode(), data)

    def delete(self, partition: int, key: str, outbox: Outbox) -> None:
        del self._rows[partition][key]
        outbox.change(self.topic, partition, key.encode(), None)

    async def restore(self, partitions: Iterable[int]) -> None:
        """Read the rows of these partitions back; others are dropped."""
        self._rows = {partition: {} for partition in partitions}
        wanted = [TopicPartition(self.topic, partition) for partition in sorted(self._rows)]
        await self._read_to_end(wanted, self._replay_record)

    async def _replay_record(self, record: ConsumerRecord) -> None:
        self.replay(record.partition, record.key, record.value)

    def replay(self, partition: int, key: bytes, value: bytes | None) -> None:
        """Apply one changelog record."""
        rows = self._rows.setdefault(partition, {})
        if value is None:
            rows.pop(key.decode(), None)
        else:
            rows[key.decode()] = self._decode(json.loads(value))

    def forget(self) -> None:
        self._rows = {}
