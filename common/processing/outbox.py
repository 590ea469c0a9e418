"""The effects of a batch of records: rows that changed, and events.

All of them go into one transaction with the offsets of the batch. So each event that others see was
made of state that can be read back, and no event is made twice.

Nothing is sent while records are being handled. Each record fills an outbox of its own, and the
batch's outbox takes it in when the handling succeeded: a record that fails has no effects.
"""

from typing import NamedTuple

from aiokafka.structs import ConsumerRecord

from common.process.telemetry import Headers
from common.processing.dead_letters import Origin, dead_letter_headers, dead_letter_of


class Outgoing(NamedTuple):
    """One record to send; without a partition its key decides."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None


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

    def take_in(self, other: "Outbox") -> None:
        """Add the effects of another outbox."""
        self.outgoing += other.outgoing
        self.changes += other.changes

    def dead_letter(self, record: ConsumerRecord, application: str, reason: str) -> None:
        """Set a record aside, unchanged, with what is wrong with it in its headers."""
        origin = Origin(record.topic, record.partition, record.offset)
        headers = [*record.headers, *dead_letter_headers(origin, application, reason)]
        topic = dead_letter_of(record.topic)
        self.outgoing.append(Outgoing(topic, record.key, record.value, headers))

    def take(self) -> list[Outgoing]:
        """Empty the outbox: return each changed row once, in its last state, and the records."""
        changes = {(change.topic, change.partition, change.key): change for change in self.changes}
        taken = [*changes.values(), *self.outgoing]
        self.outgoing, self.changes = [], []
        return taken
