"""What a batch of records puts out: first the rows that changed, then the events.

The rows go first, and no event goes before all of them are acknowledged: an event that others
have seen was made of state that will be found again. The other way round a crash in between
could have an order judged a second time, from state that no longer knows of the first.

Rows of errands (`errands`) go last: an errand counts as done when what came of it is told. They
are done again after a crash, and whoever does them answers as before.

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
        self.last_changes: list[Outgoing] = []

    def __len__(self) -> int:
        return len(self.outgoing) + len(self.changes) + len(self.last_changes)

    def send(self, topic: str, key: str, value: bytes, headers: Headers) -> None:
        self.outgoing.append(Outgoing(topic, key.encode(), value, headers))

    def change(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        self.changes.append(Outgoing(topic, key, value, [], partition))

    def change_last(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        self.last_changes.append(Outgoing(topic, key, value, [], partition))

    def mark(self) -> tuple[int, int, int]:
        return len(self.outgoing), len(self.changes), len(self.last_changes)

    def cut_back(self, mark: tuple[int, int, int]) -> None:
        """Drop what was added since `mark`."""
        del self.outgoing[mark[0] :]
        del self.changes[mark[1] :]
        del self.last_changes[mark[2] :]

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
        """Send everything, in its order; return when all of it is acknowledged."""
        changes, outgoing, last_changes = self.changes, self.outgoing, self.last_changes
        self.outgoing, self.changes, self.last_changes = [], [], []
        await _send_all(sender, _newest(changes))
        await _send_all(sender, outgoing)
        await _send_all(sender, _newest(last_changes))


def _newest(changes: Iterable[Outgoing]) -> Iterable[Outgoing]:
    """Return the last state of each changed row."""
    return {(change.topic, change.partition, change.key): change for change in changes}.values()


async def _send_all(sender: Sender, records: Iterable[Outgoing]) -> None:
    futures = [
        await sender.send(
            record.topic, record.value, record.key, record.partition, headers=record.headers
        )
        for record in records
    ]
    for future in futures:
        await future
