"""What a batch of records puts out: first the rows that changed, then the events.

The rows go first, and no event goes before all of them are acknowledged: an event that others
have seen was made of state that will be found again. The other way round a crash in between
could have an order judged a second time, from state that no longer knows of the first.

Nothing is sent while records are being handled, so a record whose handling fails leaves no
trace: its part of the outbox is cut off again.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from aiokafka.structs import ConsumerRecord

from services.common.kafka import dead_letter_of
from services.common.telemetry import Headers


class Outgoing(NamedTuple):
    """One record to send; without a partition its key decides."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None


class Sender(Protocol):
    """The part of aiokafka's producer that is used here."""

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Any = None,
    ) -> Any: ...


class Outbox:
    """Outgoing records, and the last state of changed rows."""

    def __init__(self) -> None:
        self.outgoing: list[Outgoing] = []
        self.changes: list[Outgoing] = []

    def __len__(self) -> int:
        return len(self.outgoing) + len(self.changes)

    def send(self, topic: str, key: str, value: bytes, headers: Headers) -> None:
        self.outgoing.append(Outgoing(topic, key.encode(), value, headers))

    def change(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        self.changes.append(Outgoing(topic, key, value, [], partition))

    def mark(self) -> tuple[int, int]:
        return len(self.outgoing), len(self.changes)

    def cut_back(self, mark: tuple[int, int]) -> None:
        """Drop what was added since `mark`."""
        del self.outgoing[mark[0] :]
        del self.changes[mark[1] :]

    def dead_letter(self, record: ConsumerRecord, application: str, reason: str) -> None:
        """Set a record aside, unchanged, with what is wrong with it in its headers."""
        headers = [
            *record.headers,
            ("dead-letter-reason", reason.encode()),
            ("dead-letter-application", application.encode()),
            ("dead-letter-topic", record.topic.encode()),
            ("dead-letter-partition", str(record.partition).encode()),
            ("dead-letter-offset", str(record.offset).encode()),
        ]
        topic = dead_letter_of(record.topic)
        self.outgoing.append(Outgoing(topic, record.key, record.value, headers))

    async def flush(self, sender: Sender) -> None:
        """Send everything, rows before events; return when all of it is acknowledged."""
        changes = {(change.topic, change.partition, change.key): change for change in self.changes}
        outgoing = self.outgoing
        self.outgoing, self.changes = [], []
        await _send_all(sender, changes.values())
        await _send_all(sender, outgoing)


async def _send_all(sender: Sender, records: Iterable[Outgoing]) -> None:
    futures = [
        await sender.send(
            record.topic, record.value, record.key, record.partition, headers=record.headers
        )
        for record in records
    ]
    for future in futures:
        await future
