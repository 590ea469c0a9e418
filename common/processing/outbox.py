"""What a batch of records puts out: the rows that changed, and the events.

All of it goes into one transaction with the offsets of the batch, so an event that others see was
made of state that will be found again, and none is made twice.

Nothing is sent while records are being handled, and each fills an outbox of its own, which the
batch's takes in when all went well: so a record whose handling fails leaves no trace.
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
        """Put out what another would have."""
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
